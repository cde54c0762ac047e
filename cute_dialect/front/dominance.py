"""Values are used only where they are known: one walk over a trace, before anything else looks at it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cute_dialect.front.errors import MergeError
from cute_dialect.front.source_location import place_of_location

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
    if _function_of(owner) is not _function_of(op):
        return _of_another(op, value)
    name = f"'{value.name_hint}'" if value.name_hint else f"a value of type {value.type}"
    made = place_of_location(getattr(owner, "location", None))
    return MergeError(
        "F211", f"{name} is used outside of the branch or loop that computes it", place=place_of_location(op.location),
        notes=[("it is computed here", made)] if made is not None else [],
        hint="it was kept in something that the branch does not see: pass that as an argument, or return the value",
    )  # fmt: skip


def _of_another(op: Operation, value: SSAValue) -> MergeError:
    """Return the error for a value of another function: of a trace that ended, or of the host in its kernel."""
    name = f"'{value.name_hint}'" if value.name_hint else f"a value of type {value.type}"
    made = place_of_location(getattr(value.owner, "location", None))
    return MergeError(
        "F212", f"{name} is known in the function that computes it only, and is used in another",
        place=place_of_location(op.location), notes=[("it is computed here", made)] if made is not None else [],
        hint="pass it as an argument",
    )  # fmt: skip


def _function_of(at: Any) -> Any:
    """Return the function that an op or a block is in; None outside of any."""
    while at is not None and getattr(at, "name", "") not in ("func.func", "gpu.func"):
        at = at.parent
    return at
