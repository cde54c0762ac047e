"""Indices and sizes of threads, warps, blocks and clusters, and the election of a thread that issues a copy.

Values fixed by the launch are static.

A single-thread copy needs an issuing thread, unless the surrounding code has already chosen one.  The whole warp
reaches a copy under ``if warp == 0:``.  Only one thread reaches a copy under ``if tid == 0:`` or under
``if cute.arch.elect_one():``.  The conditions of the enclosing regions tell the cases apart: a condition computed from
a thread or lane index (not a warp index) or from ``elect_one`` has chosen a thread.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from cute_dialect.lang.machine.instructions import emit_machine, in_kernel
from cute_dialect.lang.machine.warps import make_warp_uniform
from cute_dialect.lang.tracing.tracer import current, parse_type, require_chip
from cute_dialect.lang.values.dtypes import Boolean, Int32
from cute_dialect.lang.values.folding import Facts

if TYPE_CHECKING:
    from xdsl.ir import Operation, SSAValue

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
    """Return the blocks per cluster along x, y and z.

    They are static, unless a launch with ``fallback_cluster`` has clusters of two sizes. The result is then the size of
    the block's own cluster.
    """
    launch = in_kernel("cute.arch.block_in_cluster_dim").launch
    sizes = zip("xyz", launch.fallback_cluster or launch.cluster, launch.cluster)
    return Dim3(*(_register(current(), f"cluster.nctaid.{axis}", least, most + 1) for axis, least, most in sizes))


def cluster_size() -> Int32:
    """Return the number of blocks per cluster, which is static if all clusters have one size."""
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
    """Return the cluster index in the grid, ``(x, y, z)``; in a launch with two sizes, as if all had the own size."""
    tracer = _in_cluster("cute.arch.cluster_idx")
    if tracer.launch.cluster == (1, 1, 1):
        return block_idx()
    least = tracer.launch.fallback_cluster or tracer.launch.cluster
    sizes = zip("xyz", tracer.launch.grid, least, _MOST_BLOCKS)
    return Dim3(*(_register(tracer, f"clusterid.{axis}", 0, -(-(n or most) // c)) for axis, n, c, most in sizes))


def cluster_dim() -> Dim3:
    """Return the number of clusters in the grid along x, y and z, as if all had the size of the block's own cluster."""
    _in_cluster("cute.arch.cluster_dim")
    return Dim3(*(n // c for n, c in zip(grid_dim(), block_in_cluster_dim())))


_OWN = ("nvvm.read.ptx.sreg.tid.", "nvvm.read.ptx.sreg.laneid", "cute_nvgpu.arch.lane_id", "cute_nvgpu.arch.elect_one")
"""Ops whose result may differ between the threads of a warp."""

_SHARED = (
    "cute_nvgpu.arch.vote_", "cute_nvgpu.arch.ballot", "cute_nvgpu.arch.redux_sync", "cute_nvgpu.arch.warp_id",
    "cute_nvgpu.arch.mbarrier_try_wait", "cute.memref.load",
)  # fmt: skip
"""Ops whose result is warp-uniform, or whose operands do not affect that."""


def one_of_the_warp() -> Any:
    """Return a Boolean that is true for one thread of the warp, or None if the surrounding code has chosen a thread."""
    tracer = current()
    if tracer.launch.block == (1, 1, 1) or has_chosen(tracer):
        return None
    return elect_one()


def issues() -> Boolean:
    """Return True for the thread that issues single-thread instructions.

    ``if cute.arch.issues(): cute.arch.mbarrier_arrive_and_expect_tx(bar, n)`` works whether the whole warp or one
    thread reaches it.
    """
    found = one_of_the_warp()
    return Boolean.exactly(True) if found is None else found


def issued_by_one(emit: Callable[[], object]) -> None:
    """Trace instructions that one thread of the warp issues: the elected one, unless a thread has been chosen.

    ``emit`` appends them. Their operands must have been computed before.
    """
    from xdsl.ir import Block, Region

    chosen = one_of_the_warp()
    if chosen is None:
        emit()
        return
    tracer, then = current(), Block()
    with tracer.into(then):
        emit()
        tracer.op("scf.yield", [])
    tracer.op("scf.if", [chosen.ssa], [], regions=[Region(then), Region()])


def has_chosen(tracer: Tracer) -> bool:
    """Return True if an enclosing condition may differ between the threads of a warp."""
    from cute_dialect.lang.control.branches import regions  # late: start-up

    known: dict[SSAValue, bool] = {}
    conditions = [getattr(region, "condition", None) for region in regions(tracer)]
    return any(varies_in_a_warp(c, known) for c in conditions if c is not None)


def varies_in_a_warp(value: SSAValue, known: dict[SSAValue, bool] | None = None) -> bool:
    """Return True if the ops that compute a value show that it depends on the thread's index in its warp.

    Values from memory or loops count as warp-uniform.
    """
    known = {} if known is None else known
    found = known.get(value)
    if found is None:
        known[value] = False  # A cycle adds no dependence.
        found = known[value] = _varies(value, known)
    return found


_UNIFORM_REGISTERS = ("ctaid.", "nctaid.", "ntid.", "cluster.ctaid.", "cluster.nctaid.", "clusterid.", "nclusterid.")


def varies_by_thread(value: SSAValue, known: dict[SSAValue, bool] | None = None) -> bool:
    """Return True unless the ops that compute a value show that it is uniform across the block.

    A uniform value is computed from constants, parameters, block indices and counters of loops with uniform bounds.
    Values from memory or a previous iteration count as varying.
    """
    known = {} if known is None else known
    found = known.get(value)
    if found is None:
        known[value] = True
        found = known[value] = _varies_by_thread(value, known)
    return found


def _varies_by_thread(value: SSAValue, known: dict[SSAValue, bool]) -> bool:
    from xdsl.ir import Block

    op = value.owner
    if isinstance(op, Block):
        parent = op.parent_op()
        if parent is not None and parent.name == "scf.for" and value is op.args[0]:
            return any(varies_by_thread(x, known) for x in parent.operands[:3])
        return parent is None or not parent.name.endswith(".func")
    if op.name == "scf.if":
        at = op.results.index(value)
        ends = [region.blocks[0].last_op for region in op.regions if region.blocks]
        values = [op.operands[0], *(end.operands[at] for end in ends if end is not None)]
        return any(varies_by_thread(x, known) for x in values)
    if op.name.startswith("nvvm.read.ptx.sreg."):
        return not op.name.removeprefix("nvvm.read.ptx.sreg.").startswith(_UNIFORM_REGISTERS)
    is_computed = op.name.startswith(("arith.", "cute.")) and not op.name.startswith("cute.memref.")
    if not is_computed and op.name != "cute_nvgpu.arch.cluster_rank":
        return True
    return any(varies_by_thread(x, known) for x in op.operands)


def _varies(value: SSAValue, known: dict[SSAValue, bool]) -> bool:
    from xdsl.ir import Block

    op = value.owner
    if isinstance(op, Block):
        return False
    if op.name.startswith(_OWN):
        return True
    if op.name.startswith(_SHARED):
        return False
    if op.name == "scf.if":  # ``warp == 0 and elect_one()``
        at = op.results.index(value)
        ends = [region.blocks[0].last_op for region in op.regions if region.blocks]
        return any(varies_in_a_warp(end.operands[at], known) for end in ends if end is not None) or varies_in_a_warp(
            op.operands[0], known
        )
    if op.name == "cute_nvgpu.arch.shfl_sync":
        mode = op.properties.get("mode")
        return getattr(mode, "data", "bfly") != "idx" or varies_in_a_warp(op.operands[1], known)
    if op.name == "arith.cmpi" and _is_thread_number(op.operands[0]) and _parts_warps(op):
        return False
    divisor = _divisor(op)
    if divisor % 32 == 0 and divisor and _is_thread_number(op.operands[0]):
        return False
    return any(varies_in_a_warp(x, known) for x in op.operands)


def _parts_warps(op: Operation) -> bool:
    """Return True if a comparison of a thread index splits the block at a warp boundary: ``tid < 32``, ``tid > 63``."""
    if getattr(op.operands[1].owner, "name", "") != "arith.constant":
        return False
    predicate = int(op.properties["predicate"].value.data)  # pyright: ignore
    end = {2: 0, 5: 0, 6: 0, 9: 0, 3: 31, 4: 31, 7: 31, 8: 31}.get(predicate)  # slt sge ult uge, sle sgt ule ugt
    return end is not None and _constant(op.operands[1]) % 32 == end


def _divisor(op: Operation) -> int:
    """Return the divisor of an op's first operand, or 0 if it is not a division."""
    if op.name in ("arith.divui", "arith.floordivsi", "arith.divsi"):
        return _constant(op.operands[1])
    if op.name in ("arith.shrui", "arith.shrsi"):
        return 1 << _constant(op.operands[1])
    return 0


def _constant(value: SSAValue) -> int:
    op: Any = value.owner
    attribute = getattr(op, "properties", {}).get("value") if getattr(op, "name", "") == "arith.constant" else None
    return int(attribute.value.data) if attribute is not None else 0


def _is_thread_number(value: SSAValue) -> bool:
    """Return True if a value is the linear thread index, so that the threads of a warp are consecutive."""
    op: Any = value.owner
    name = getattr(op, "name", "")
    if name == "nvvm.read.ptx.sreg.tid.x":
        return True
    # x + nx * (y + ny * z), as in warp_idx
    return name == "arith.addi" and getattr(op.operands[0].owner, "name", "") == "nvvm.read.ptx.sreg.tid.x"
