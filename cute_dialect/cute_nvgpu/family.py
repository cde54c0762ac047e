"""Record of a family of instructions, from which the lists of ops, types and lowerings are derived.

Every program reads all records when it starts. It imports the modules of a family only when a file uses one of its ops
or types. Therefore a record contains names only.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

_NONE: Mapping[str, str] = {}
_NO_NAMES: Mapping[str, tuple[str, ...]] = {}


class Family(NamedTuple):
    """Modules and names of one family.

    Args:
        package: the folder of the family. All modules below are relative to it.
        types: module -> names of the types in its ``ATTRS``. A name that ends in ``*`` matches all names with this
            prefix that no other record lists.
        ops: module -> names of the ops in its ``OPS``, with the same use of ``*``.
        tile: module of ops -> module whose ``HANDLERS`` lower them in ``convert-cute-algo-to-arch``.
        lower: module of ops -> module whose ``HANDLERS`` lower them in ``cute-to-base``.
        atoms: module with a function ``copy`` or ``multiply``, which lowers ``cute.copy`` or ``cute.gemm`` with an atom
            of the family. ``FAMILY.MODULE`` selects a module of another family.
        instructions: name of an atom type -> name of the op for one instruction. The module of another family uses it.
        uses: other families that the modules of this family may import.
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
        """Name of the folder."""
        return self.package.rpartition(".")[2]

    def module(self, name: str) -> str:
        """Return the qualified name of a module of the family."""
        return f"{self.package}.{name}"

    def module_of_atoms(self) -> str:
        """Return the qualified name of the module that ``atoms`` selects."""
        return f"{self.package.rpartition('.')[0]}.{self.atoms}" if "." in self.atoms else self.module(self.atoms)
