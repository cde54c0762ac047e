"""Election of the thread that issues a single-thread copy, unless the surrounding code has already chosen one.

The whole warp reaches a copy under ``if warp == 0:``.  Only one thread reaches a copy under ``if tid == 0:`` or under
``if cute.arch.elect_one():``.  The conditions of the enclosing regions tell the cases apart: a condition computed from
a thread or lane index (not a warp index) or from ``elect_one`` has chosen a thread.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cute_dialect.lang.machine.ids import elect_one
from cute_dialect.lang.tracing.tracer import current
from cute_dialect.lang.values.dtypes import Boolean

if TYPE_CHECKING:
    from xdsl.ir import Operation, SSAValue

    from cute_dialect.lang.tracing.tracer import Tracer

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
