"""Values are used only where they are known: one walk over a trace, before anything else looks at it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cute_dialect.front.errors import MergeError, Place

if TYPE_CHECKING:
    from xdsl.ir import Block, Operation, SSAValue

__all__ = ["check_dominance"]


def check_dominance(function: Operation) -> None:
    """Check that no op uses a value of a branch or loop that it is not in (F211).

    Such a value went through something that snapshots do not see: a global of another module, an array of objects.
    """
    for region in function.regions:
        for block in region.blocks:
            _check(block, set())


def _check(block: Block, known: set[SSAValue]) -> None:
    here: list[SSAValue] = [*block.args]
    known.update(here)
    for op in block.ops:
        for operand in op.operands:
            if operand not in known:
                raise _leaked(op, operand)
        for region in op.regions:
            for inner in region.blocks:
                _check(inner, known)
        known.update(op.results)
        here += op.results
    known.difference_update(here)


def _leaked(op: Operation, value: SSAValue) -> MergeError:
    owner: Any = value.owner
    name = f"'{value.name_hint}'" if value.name_hint else f"a value of type {value.type}"
    made = _place(getattr(owner, "location", None))
    return MergeError(
        "F211", f"{name} is used outside of the branch or loop that computes it", place=_place(op.location),
        notes=[("it is computed here", made)] if made is not None else [],
        hint="it was kept in something that the branch does not see: pass that as an argument, or return the value",
    )  # fmt: skip


def _place(location: Any) -> Place | None:
    from xdsl.dialects.builtin import CallSiteLoc, FileLineColLoc

    while isinstance(location, CallSiteLoc):
        location = location.callee
    if not isinstance(location, FileLineColLoc):
        return None
    return Place(location.filename.data, location.line.data, location.column.data)
