"""Dominance check of a trace: values are used only where they are defined. It runs before all other checks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cute_dialect.lang.tracing.errors import MergeError
from cute_dialect.lang.tracing.source_location import place_of_location

if TYPE_CHECKING:
    from xdsl.ir import Block, Operation, SSAValue

__all__ = ["check_dominance"]


def check_dominance(function: Operation) -> None:
    """Raise F211 if an op uses a value from a branch or loop that does not contain the op.

    Such a value passed through state that snapshots do not cover: a global of another module, or an object array.
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
        "F211", f"{name} is used outside the branch or loop that computes it", place=place_of_location(op.location),
        notes=[("it is computed here", made)] if made is not None else [],
        hint="it was stored in an object that the branch does not track: pass it as an argument, or return the value",
    )  # fmt: skip


def _of_another(op: Operation, value: SSAValue) -> MergeError:
    """Return the error for a value of another function: from a finished trace, or from the host in its kernel."""
    name = f"'{value.name_hint}'" if value.name_hint else f"a value of type {value.type}"
    made = place_of_location(getattr(value.owner, "location", None))
    return MergeError(
        "F212", f"{name} is used in a function other than the one that computes it",
        place=place_of_location(op.location), notes=[("it is computed here", made)] if made is not None else [],
        hint="pass it as an argument",
    )  # fmt: skip


def _function_of(at: Any) -> Any:
    """Return the function that contains an op or a block, or None."""
    while at is not None and getattr(at, "name", "") not in ("func.func", "gpu.func"):
        at = at.parent
    return at
