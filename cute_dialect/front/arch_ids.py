"""Who am I: threads, blocks, warps, lanes and clusters.  What the launch fixes is static."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from cute_dialect.front.dtypes import Boolean, Int32
from cute_dialect.front.machine import emit_machine, in_kernel, require_chip
from cute_dialect.front.numeric import Facts

if TYPE_CHECKING:
    from cute_dialect.front.trace import Tracer

__all__ = [
    "Dim3",
    "block_dim",
    "block_idx",
    "block_idx_in_cluster",
    "block_in_cluster_dim",
    "block_in_cluster_idx",
    "canonical_warp_idx_sync",
    "cluster_dim",
    "cluster_idx",
    "cluster_size",
    "elect_one",
    "grid_dim",
    "lane_idx",
    "thread_idx",
    "warp_idx",
    "warpgroup_idx",
]

WARP_SIZE = 32
"""Threads of a warp."""

_MOST_BLOCKS = (2**31 - 1, 65535, 65535)
"""Blocks of a grid along x, y and z (CUDA C++ Programming Guide, "Compute Capabilities")."""

_MOST_THREADS = (1024, 1024, 64)
"""Threads of a block along x, y and z."""


class Dim3(NamedTuple):
    """Three numbers, along x, y and z."""

    x: Any
    y: Any
    z: Any


def _register(tracer: Tracer, name: str, low: int, end: int) -> Any:
    """Return a special register whose value is in [low, end); a static number where that leaves one."""
    if end - low == 1:
        return Int32.exactly(low)
    from cute_dialect.front.trace import parse_type

    bounds = {"range": parse_type(f"#llvm.constant_range<i32, {low}, {end}>")}
    read = tracer.value(f"nvvm.read.ptx.sreg.{name}", (), [Int32.attribute], bounds)
    return Int32.of(read, Facts(low, end - 1))


def thread_idx() -> Dim3:
    """Return the thread's place in its block, ``(x, y, z)``; 0 where the block has one thread along that axis."""
    tracer = in_kernel("cute.arch.thread_idx")
    sizes = zip("xyz", tracer.launch.block, _MOST_THREADS)
    return Dim3(*(_register(tracer, f"tid.{axis}", 0, n or most) for axis, n, most in sizes))


def block_idx() -> Dim3:
    """Return the block's place in the grid, ``(x, y, z)``."""
    tracer = in_kernel("cute.arch.block_idx")
    sizes = zip("xyz", tracer.launch.grid, _MOST_BLOCKS)
    return Dim3(*(_register(tracer, f"ctaid.{axis}", 0, n or most) for axis, n, most in sizes))


def block_dim() -> Dim3:
    """Return the threads of a block along x, y and z; static where the launch says them with static numbers."""
    tracer = in_kernel("cute.arch.block_dim")
    sizes = zip("xyz", tracer.launch.block, _MOST_THREADS)
    return Dim3(*(_register(tracer, f"ntid.{axis}", n or 1, (n or most) + 1) for axis, n, most in sizes))


def grid_dim() -> Dim3:
    """Return the blocks of the grid along x, y and z; static where the launch says them with static numbers."""
    tracer = in_kernel("cute.arch.grid_dim")
    sizes = zip("xyz", tracer.launch.grid, _MOST_BLOCKS)
    return Dim3(
        *(_register(tracer, f"nctaid.{axis}", n or 1, min((n or most) + 1, 2**31 - 1)) for axis, n, most in sizes)
    )


def _linear_thread() -> Any:
    x, y, z = thread_idx()
    nx, ny, _ = block_dim()
    return x + nx * (y + ny * z)


def lane_idx() -> Any:
    """Return the thread's number in its warp."""
    return Int32.of(emit_machine("lane_id").results[0], Facts(0, WARP_SIZE - 1))


def warp_idx() -> Any:
    """Return the number of the thread's warp in its block; see :func:`canonical_warp_idx_sync`."""
    return _linear_thread() // WARP_SIZE


def canonical_warp_idx_sync() -> Any:
    """Return the number of the warp in a register that is known to be the same for all its threads.

    All threads of the warp execute it.
    """
    from cute_dialect.front.warps import make_warp_uniform

    return make_warp_uniform(warp_idx())


def warpgroup_idx() -> Any:
    """Return the number of the thread's group of four warps, known to be the same for the warp, which executes it."""
    from cute_dialect.front.warps import make_warp_uniform

    return make_warp_uniform(_linear_thread() // (4 * WARP_SIZE))


def elect_one() -> Any:
    """Return true for one thread of the warp, all of which execute it: ``if cute.arch.elect_one():``."""
    return Boolean.of(emit_machine("elect_one").results[0])


# ------------------------------------------------------------------------------------------------------- clusters


def block_in_cluster_dim() -> Dim3:
    """Return the blocks of a cluster along x, y and z, static numbers."""
    return Dim3(*map(Int32.exactly, in_kernel("cute.arch.block_in_cluster_dim").launch.cluster))


def cluster_size() -> Any:
    """Return how many blocks a cluster has, a static number."""
    x, y, z = block_in_cluster_dim()
    return x * y * z


def _in_cluster(what: str) -> Tracer:
    tracer = in_kernel(what)
    if tracer.launch.cluster != (1, 1, 1):
        require_chip(what, 90)
    return tracer


def block_in_cluster_idx() -> Dim3:
    """Return the block's place in its cluster, ``(x, y, z)``; zeros where the launch has no clusters."""
    tracer = _in_cluster("cute.arch.block_in_cluster_idx")
    sizes = zip("xyz", tracer.launch.cluster)
    return Dim3(*(_register(tracer, f"cluster.ctaid.{axis}", 0, n) for axis, n in sizes))


def block_idx_in_cluster() -> Any:
    """Return the block's number in its cluster, x running first."""
    tracer = _in_cluster("cute.arch.block_idx_in_cluster")
    x, y, z = tracer.launch.cluster
    if x * y * z == 1:
        return Int32.exactly(0)
    return Int32.of(emit_machine("cluster_rank").results[0], Facts(0, x * y * z - 1))


def cluster_idx() -> Dim3:
    """Return the cluster's place in the grid of clusters, ``(x, y, z)``."""
    tracer = _in_cluster("cute.arch.cluster_idx")
    if tracer.launch.cluster == (1, 1, 1):
        return block_idx()
    sizes = zip("xyz", tracer.launch.grid, tracer.launch.cluster, _MOST_BLOCKS)
    return Dim3(*(_register(tracer, f"clusterid.{axis}", 0, -(-(n or most) // c)) for axis, n, c, most in sizes))


def cluster_dim() -> Dim3:
    """Return how many clusters the grid has along x, y and z."""
    tracer = _in_cluster("cute.arch.cluster_dim")
    return Dim3(*(n // c for n, c in zip(grid_dim(), tracer.launch.cluster)))
