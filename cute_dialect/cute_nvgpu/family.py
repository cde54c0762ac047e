"""The record of a family of instructions: strings, from which all lists of ops, types and handlers are derived.

A family is a folder.  Its record is read whenever a program starts, its modules are imported when a file names an op or
a type of theirs; so a record holds names, and nothing of the family.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

_NONE: Mapping[str, str] = {}
_NO_NAMES: Mapping[str, tuple[str, ...]] = {}


class Family(NamedTuple):
    """What a family has, each by the module of ``package`` that holds it.

    ``types``, ``ops``: module -> names of the types in its ``ATTRS``, of the ops in its ``OPS``; a name that ends in
    ``*`` stands for all that begin so and that no other record names.
    ``tile``, ``lower``: module of ops -> module whose ``HANDLERS`` take these ops through
    ``convert-cute-algo-to-arch`` and ``cute-to-base``.
    ``atoms``: module that has ``copy`` (how ``cute.copy`` is lowered by an atom of the family) or ``multiply`` (how
    ``cute.gemm`` is); ``FAMILY.MODULE`` for that of another family, which makes ``instructions``: name of an atom's
    type -> name of the op, one an instruction.
    ``uses``: the families that its modules may import.
    """

    package: str
    types: Mapping[str, tuple[str, ...]] = _NO_NAMES
    ops: Mapping[str, tuple[str, ...]] = _NO_NAMES
    tile: Mapping[str, str] = _NONE
    lower: Mapping[str, str] = _NONE
    atoms: str = ""
    instructions: Mapping[str, str] = _NONE
    uses: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """The folder's name."""
        return self.package.rpartition(".")[2]

    def module(self, name: str) -> str:
        """Return the whole name of a module of the family."""
        return f"{self.package}.{name}"

    def module_of_atoms(self) -> str:
        """Return the whole name of the module that ``atoms`` names."""
        return f"{self.package.rpartition('.')[0]}.{self.atoms}" if "." in self.atoms else self.module(self.atoms)
