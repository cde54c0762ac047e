"""Poison-generating flags of ops (`nsw`, `nneg`, `exact`, …) and operand ranges. Violating one gives poison.

Poison is a fault only when something depends on it (LLVM LangRef, "Poison Values"), so a `select` may discard it. If
only selects in the same block read a result, the fault is reported when one of them picks it, else at once.
"""

# Values are numpy arrays of many types, picked at run time; pyright cannot follow their element types.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false, reportUnknownMemberType=false

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from cute_dialect.interp.errors import Fault, op_name
from cute_dialect.interp.exec.group import Group
from cute_dialect.interp.types import int_leaf
from cute_dialect.interp.values import Array, Regs, Value

if TYPE_CHECKING:
    from xdsl.ir import Operation

    from cute_dialect.interp.exec.compiler import FnCompiler

Bad: TypeAlias = "Array | np.generic | bool"
Text: TypeAlias = "Callable[[Callable[[Value], str]], str]"
"""Builds the message, given a function that formats a value in the first lane with a violation."""
Report: TypeAlias = "Callable[[Regs, Group, Bad, Text], None]"
SELECTS = ("arith.select", "llvm.select")


class Broken:
    """A violated flag whose poison has not been used yet."""

    __slots__ = ("bad", "kind", "text")

    def __init__(self, bad: Bad, kind: str, text: Text) -> None:
        self.bad = bad
        self.kind = kind
        self.text = text


def promise(c: FnCompiler, op: Operation, kind: str = "poison") -> Report:
    """Return the function with which a step reports the lanes where `op` violates a flag."""
    result = c.slots_of(op.results[0])[0]
    rank = len(c.leaf_of(result).shape)
    if not only_selected(op):
        return lambda R, g, bad, text: fail(g, bad, kind, text, rank)
    late = late_slot(c, result)

    def keep(R: Regs, g: Group, bad: Bad, text: Text) -> None:
        R[late] = Broken(bad, kind, text) if np.any(bad) else False  # type: ignore[call-overload]

    return keep


def only_selected(op: Operation) -> bool:
    """Return True if the result of an op is read only by selects in its block."""
    uses = list(op.results[0].uses)
    return bool(uses) and all(
        op_name(u.operation) in SELECTS and u.index > 0 and u.operation.parent is op.parent for u in uses
    )


def late_slot(c: FnCompiler, result: int) -> int:
    """Return the slot that holds the `Broken` of a result."""
    late = c.late.get(result)
    if late is None:
        late = c.late[result] = c.new_slot(int_leaf(1), fixed=True)
    return late


def picked(R: Regs, g: Group, late: int, condition: Value, on_true: bool, rank: int, onwards: bool) -> Broken | None:
    """Report a violation if a select picks the result in an active lane.

    With `onwards`, return it instead, for the selects that are the only readers of this select.
    """
    got: object = R[late]
    if not isinstance(got, Broken):
        return None
    k = np.asarray(condition if on_true else np.logical_not(condition))  # type: ignore[arg-type]
    bad = np.asarray(got.bad)
    if rank and k.ndim == 1 and bad.ndim != 1:
        k = k.reshape((-1,) + (1,) * rank)
    if onwards:
        return Broken(bad & k, got.kind, got.text) if np.any(bad & k) else None
    fail(g, bad & k, got.kind, got.text, rank)
    return None


def fail(g: Group, bad: Bad, kind: str, text: Text, rank: int) -> None:
    """Raise Fault if `bad`, of a value with `rank` vector dimensions, is True in an active lane."""
    flags = np.asarray(bad)
    if not flags.any():
        return
    if flags.ndim == 0:
        if not g.mask.n:
            return
        lane = int(g.mask.idx[0])
        where: tuple[int, ...] = ()
    else:
        if not g.mask.any(flags, rank):
            return
        lane = g.mask.first(flags, rank)
        row = flags[lane] if flags.ndim > rank else flags
        where = tuple(int(i) for i in np.argwhere(row)[0]) if row.ndim else ()

    def at(v: Value) -> str:
        if not isinstance(v, np.ndarray):
            return str(v)
        row = np.asarray(v[lane] if v.ndim > rank else v)
        return str(row[where] if where and row.ndim == len(where) else row)

    raise Fault(kind, text(at), lane)


__all__ = ["Bad", "Report", "Text", "fail", "late_slot", "only_selected", "picked", "promise"]
