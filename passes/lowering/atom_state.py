"""State of atoms set by ``cute.atom.set_value``, as seen by copies and MMAs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeGuard

from xdsl.dialects.builtin import StringAttr
from xdsl.ir import Block, Operation, SSAValue

from cute_dialect.dialect.atom_state import AtomSetValueOp
from cute_dialect.passes.base import PassError


def atom_state(atom: SSAValue) -> tuple[SSAValue, dict[str, SSAValue]]:
    """Return the atom below ``cute.atom.set_value`` and ``cute.make_tiled_copy…``, and the fields set.

    The last value set for a field wins.
    """
    state: dict[str, SSAValue] = {}
    while isinstance(atom.owner, AtomSetValueOp) or _makes_tiled_copy(atom.owner):
        if isinstance(atom.owner, AtomSetValueOp):
            field = atom.owner.properties["field"]
            assert isinstance(field, StringAttr)
            state.setdefault(field.data, atom.owner.operands[1])
        atom = atom.owner.operands[0]
    return atom, state


def _makes_tiled_copy(owner: Operation | Block) -> TypeGuard[Operation]:
    return isinstance(owner, Operation) and owner.name.startswith("cute.make_tiled_copy")


def barrier_is_set(state: Mapping[str, SSAValue], op: Operation) -> None:
    """Raise PassError if a copy that signals an mbarrier has none."""
    if "tma_bar" not in state:
        raise PassError(
            "this copy needs the mbarrier that counts its bytes: set it with cute.atom.set_value … {field = tma_bar} "
            "between the atom and the copy, in the same function",
            op,
        )


def nothing(op: Operation) -> None:
    """Keep ``cute.atom.set_value``, which copies and MMAs look through."""


HANDLERS: Mapping[str, Callable[[Operation], None]] = {"cute.atom.set_value": nothing}
"""Lowerings in place, by op name."""
