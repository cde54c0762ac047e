"""Indices and sizes of threads, warps, blocks and clusters. Values fixed by the launch are static."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from cute_dialect.lang.machine.operands import emit_machine, in_kernel
from cute_dialect.lang.machine.warps import make_warp_uniform
from cute_dialect.lang.tracing.emission import require_chip
from cute_dialect.lang.tracing.tracer import parse_type
from cute_dialect.lang.values.dtypes import Boolean, Int32
from cute_dialect.lang.values.folding import Facts

if TYPE_CHECKING:
    from cute_dialect.lang.tracing.tracer import Tracer

__all__ = [
    "WARP_SIZE", "Dim3", "block_dim", "block_idx", "block_idx_in_cluster", "block_in_cluster_dim",
    "block_in_cluster_idx", "canonical_warp_idx_sync", "cluster_dim", "cluster_idx", "cluster_size", "elect_one",
    "grid_dim", "lane_idx", "thread_idx", "warp_idx", "warpgroup_idx",
]  # fmt: skip
"""The names of ``cute.arch``."""

WARP_SIZE = 32
"""Threads per warp."""

_MOST_BLOCKS = (2**31 - 1, 65535, 65535)
"""Maximum blocks per grid along x, y and z (CUDA C++ Programming Guide, "Compute Capabilities")."""

_MOST_THREADS = (1024, 1024, 64)
"""Maximum threads per block along x, y and z."""


class Dim3(NamedTuple):
    """Three numbers along x, y and z."""

    x: Int32
    y: Int32
    z: Int32


def _register(tracer: Tracer, name: str, low: int, end: int) -> Any:
    """Return a special register with a value in [low, end), or a static number if only one value is possible."""
    if end - low == 1:
        return Int32.exactly(low)
    bounds = {"range": parse_type(f"#llvm.constant_range<i32, {low}, {end}>")}
    read = tracer.value(f"nvvm.read.ptx.sreg.{name}", (), [Int32.attribute], bounds)
    return Int32.of(read, Facts(low, end - 1))


def thread_idx() -> Dim3:
    """Return the thread index in its block, ``(x, y, z)``. It is the constant 0 along axes of one thread."""
    tracer = in_kernel("cute.arch.thread_idx")
    sizes = zip("xyz", tracer.launch.block, _MOST_THREADS)
    return Dim3(*(_register(tracer, f"tid.{axis}", 0, n or most) for axis, n, most in sizes))


def block_idx() -> Dim3:
    """Return the block index in the grid, ``(x, y, z)``."""
    tracer = in_kernel("cute.arch.block_idx")
    sizes = zip("xyz", tracer.launch.grid, _MOST_BLOCKS)
    return Dim3(*(_register(tracer, f"ctaid.{axis}", 0, n or most) for axis, n, most in sizes))


def block_dim() -> Dim3:
    """Return the threads per block along x, y and z. Sizes that the launch gives as constants are static."""
    tracer = in_kernel("cute.arch.block_dim")
    sizes = zip("xyz", tracer.launch.block, _MOST_THREADS)
    return Dim3(*(_register(tracer, f"ntid.{axis}", n or 1, (n or most) + 1) for axis, n, most in sizes))


def grid_dim() -> Dim3:
    """Return the blocks per grid along x, y and z. Sizes that the launch gives as constants are static."""
    tracer = in_kernel("cute.arch.grid_dim")
    sizes = zip("xyz", tracer.launch.grid, _MOST_BLOCKS)
    return Dim3(
        *(_register(tracer, f"nctaid.{axis}", n or 1, min((n or most) + 1, 2**31 - 1)) for axis, n, most in sizes)
    )


def _linear_thread() -> Any:
    x, y, z = thread_idx()
    nx, ny, _ = block_dim()
    return x + nx * (y + ny * z)


def lane_idx() -> Int32:
    """Return the thread's lane index in its warp, 0 to 31."""
    return Int32.of(emit_machine("lane_id").results[0], Facts(0, WARP_SIZE - 1))


def warp_idx() -> Int32:
    """Return the index of the thread's warp in its block; see also :func:`canonical_warp_idx_sync`."""
    return _linear_thread() // WARP_SIZE


def canonical_warp_idx_sync() -> Int32:
    """Return the warp index as a warp-uniform value. All threads of the warp must execute the call."""
    return make_warp_uniform(warp_idx())


def warpgroup_idx() -> Int32:
    """Return the warpgroup index as a warp-uniform value. All threads of the warp must execute the call."""
    return make_warp_uniform(_linear_thread() // (4 * WARP_SIZE))


def elect_one() -> Boolean:
    """Return True for one thread of the warp: ``if cute.arch.elect_one():``. All threads must execute the call."""
    return Boolean.of(emit_machine("elect_one").results[0])


# ------------------------------------------------------------------------------------------------------- clusters


def block_in_cluster_dim() -> Dim3:
    """Return the blocks per cluster along x, y and z, as static numbers."""
    return Dim3(*map(Int32.exactly, in_kernel("cute.arch.block_in_cluster_dim").launch.cluster))


def cluster_size() -> Int32:
    """Return the number of blocks per cluster, as a static number."""
    x, y, z = block_in_cluster_dim()
    return x * y * z


def _in_cluster(what: str) -> Tracer:
    tracer = in_kernel(what)
    if tracer.launch.cluster != (1, 1, 1):
        require_chip(what, 90)
    return tracer


def block_in_cluster_idx() -> Dim3:
    """Return the block index in its cluster, ``(x, y, z)``. It is zero if the launch has no clusters."""
    tracer = _in_cluster("cute.arch.block_in_cluster_idx")
    sizes = zip("xyz", tracer.launch.cluster)
    return Dim3(*(_register(tracer, f"cluster.ctaid.{axis}", 0, n) for axis, n in sizes))


def block_idx_in_cluster() -> Int32:
    """Return the linear block index in its cluster. The x index varies fastest."""
    tracer = _in_cluster("cute.arch.block_idx_in_cluster")
    x, y, z = tracer.launch.cluster
    if x * y * z == 1:
        return Int32.exactly(0)
    return Int32.of(emit_machine("cluster_rank").results[0], Facts(0, x * y * z - 1))


def cluster_idx() -> Dim3:
    """Return the cluster index in the grid, ``(x, y, z)``."""
    tracer = _in_cluster("cute.arch.cluster_idx")
    if tracer.launch.cluster == (1, 1, 1):
        return block_idx()
    sizes = zip("xyz", tracer.launch.grid, tracer.launch.cluster, _MOST_BLOCKS)
    return Dim3(*(_register(tracer, f"clusterid.{axis}", 0, -(-(n or most) // c)) for axis, n, c, most in sizes))


def cluster_dim() -> Dim3:
    """Return the number of clusters in the grid along x, y and z."""
    tracer = _in_cluster("cute.arch.cluster_dim")
    return Dim3(*(n // c for n, c in zip(grid_dim(), tracer.launch.cluster)))
