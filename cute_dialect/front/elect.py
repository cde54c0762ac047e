"""Who issues a copy that one thread issues: one of the warp, unless the code around it has chosen a thread already.

Users write ``if warp == 0: cute.copy(tma_atom, …)``, where the whole warp comes, and ``if cute.arch.elect_one():`` or
``if tid == 0:``, where one thread does.  Which it is stands in the conditions of the regions that the copy is in: one
that is made of a thread's or a lane's number (not of a warp's) or of ``elect_one`` has chosen.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from xdsl.ir import Operation, SSAValue

    from cute_dialect.front.trace import Tracer

__all__ = ["has_chosen", "issues", "one_of_the_warp", "varies_by_thread", "varies_in_a_warp"]

_OWN = ("nvvm.read.ptx.sreg.tid.", "nvvm.read.ptx.sreg.laneid", "cute_nvgpu.arch.lane_id", "cute_nvgpu.arch.elect_one")
"""Ops whose result may differ from thread to thread of a warp."""

_SHARED = (
    "cute_nvgpu.arch.vote_", "cute_nvgpu.arch.ballot", "cute_nvgpu.arch.redux_sync", "cute_nvgpu.arch.warp_id",
    "cute_nvgpu.arch.mbarrier_try_wait", "cute.memref.load",
)  # fmt: skip
"""Ops whose result is one for the warp, or whose operands say nothing about that."""


def one_of_the_warp() -> Any:
    """Return a Boolean that is true for one thread of the warp, or None where the code around has chosen one."""
    from cute_dialect.front.arch_ids import elect_one
    from cute_dialect.front.trace import current

    tracer = current()
    if tracer.launch.block == (1, 1, 1) or has_chosen(tracer):
        return None
    return elect_one()


def issues() -> Any:
    """Return whether this thread issues what one thread of the warp shall: true where the code around has chosen one.

    ``if cute.arch.issues(): cute.arch.mbarrier_arrive_and_expect_tx(bar, n)`` is right for a whole warp that comes,
    and for one thread.
    """
    from cute_dialect.front.dtypes import Boolean

    found = one_of_the_warp()
    return Boolean.exactly(True) if found is None else found


def has_chosen(tracer: Tracer) -> bool:
    """Tell whether a condition around what is being traced may differ from thread to thread of a warp."""
    from cute_dialect.front.branches import regions

    known: dict[SSAValue, bool] = {}
    conditions = [getattr(region, "condition", None) for region in regions(tracer)]
    return any(varies_in_a_warp(c, known) for c in conditions if c is not None)


def varies_in_a_warp(value: SSAValue, known: dict[SSAValue, bool] | None = None) -> bool:
    """Tell whether a value is made of a thread's number within its warp, as far as the ops before it show.

    What comes out of memory or of a loop counts as one for the warp.
    """
    known = {} if known is None else known
    found = known.get(value)
    if found is None:
        known[value] = False  # a cycle adds nothing
        found = known[value] = _varies(value, known)
    return found


_UNIFORM_REGISTERS = ("ctaid.", "nctaid.", "ntid.", "cluster.ctaid.", "cluster.nctaid.", "clusterid.", "nclusterid.")


def varies_by_thread(value: SSAValue, known: dict[SSAValue, bool] | None = None) -> bool:
    """Return True unless the ops before a value show that all threads of the block have the same one.

    Such a value is computed from constants, parameters, the place of the block and the counters of loops whose bounds
    are such values.  A value out of memory or from a previous iteration counts as one that varies.
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
    """Tell whether a comparison of a thread's number parts the threads between warps: ``tid < 32``, ``tid > 63``."""
    if getattr(op.operands[1].owner, "name", "") != "arith.constant":
        return False
    predicate = int(op.properties["predicate"].value.data)  # pyright: ignore
    end = {2: 0, 5: 0, 6: 0, 9: 0, 3: 31, 4: 31, 7: 31, 8: 31}.get(predicate)  # slt sge ult uge, sle sgt ule ugt
    return end is not None and _constant(op.operands[1]) % 32 == end


def _divisor(op: Operation) -> int:
    """Return what an op divides its first operand by, 0 if it does not."""
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
    """Tell whether a value counts the threads of the block, so that those of a warp follow each other."""
    op: Any = value.owner
    name = getattr(op, "name", "")
    if name == "nvvm.read.ptx.sreg.tid.x":
        return True
    # x + nx * (y + ny * z), as warp_idx has it
    return name == "arith.addi" and getattr(op.operands[0].owner, "name", "") == "nvvm.read.ptx.sreg.tid.x"
