"""Checks of a traced kernel's partitions: the end of static tiles, and the threads that tiles need.

::

    copy = cute.make_tiled_copy_tv(atom, …)        # a tile of 4 x 32
    part = copy.get_slice(t).partition_S(tile)     # of a static tile of 6 x 32: its second step ends 2 rows past it
    cute.copy(atom, part, …)                       # F254 without pred=, unless a branch keeps threads from it

The checks run on the finished function, where the ops of discarded traces are gone and the conditions around a copy are
known.  The compiler applies the same checks to textual IR (``cute-opt``).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cute_dialect.lang.machine.elect import varies_by_thread
from cute_dialect.lang.tracing.errors import KernelTypeError
from cute_dialect.lang.tracing.source_location import place_of_location

if TYPE_CHECKING:
    from xdsl.ir import Operation, SSAValue

__all__ = ["check_partitions"]

_COPIES = ("cute.copy", "cute.tiled_copy")
_CALLS = {
    "cute.tiled_copy": "cute.copy with thread=", "cute.cooperative_gemm": "cute.gemm with thread=",
    "cute.cooperative_copy": "cute.cooperative_copy",
}  # fmt: skip
"""Maps an op on a whole tile to the call that emits it."""


def check_partitions(function: Operation) -> None:
    """Raise F254 for copies past the end of static tiles, and for tiles that need more threads than the block has."""
    _check_threads(function)
    known: dict[SSAValue, bool] = {}
    for op in function.walk():
        if op.name in _COPIES:
            _check_tile(op, known)


def _check_threads(function: Operation) -> None:
    from cute_dialect.passes.lowering.thread_slices import missing_slices  # late: start-up

    for missing in missing_slices(function):
        name = missing.op.name
        raise KernelTypeError(
            "F254", f"{_CALLS.get(name, name.rpartition('.')[2])}: {missing.message}",
            place=place_of_location(missing.op.location),
            hint=f"launch with block={missing.threads}, distribute the tile over fewer threads, or take several slices "
            "in each thread",
        )  # fmt: skip


def _check_tile(op: Operation, known: dict[SSAValue, bool]) -> None:
    from xdsl.dialects.builtin import UnitAttr

    from cute_dialect.dialect.tile_fit import PARTIAL, TilePassed  # late: start-up

    try:
        op.check_definitions()  # pyright: ignore[reportAttributeAccessIssue]
    except TilePassed as e:
        if _is_guarded(op, known):
            op.attributes[PARTIAL] = UnitAttr()
            return
        raise KernelTypeError(
            "F254", f"copy of a partition: {e.fact}", place=place_of_location(op.location),
            hint="add pred= to cute.copy, use a tile that divides the tensor, or add partial=True",
        ) from None  # fmt: skip


def _is_guarded(op: Operation, known: dict[SSAValue, bool]) -> bool:
    """Return True if a condition or loop bound around an op may differ between the threads of the block."""
    parent = op.parent_op()
    while parent is not None and not parent.name.endswith(".func"):
        deciding = list(parent.operands[:3] if parent.name == "scf.for" else parent.operands[:1])
        if parent.name == "scf.while":
            deciding = [end.operands[0] for end in (parent.regions[0].blocks[0].last_op,) if end is not None]
        if any(varies_by_thread(value, known) for value in deciding):
            return True
        parent = parent.parent_op()
    return False
