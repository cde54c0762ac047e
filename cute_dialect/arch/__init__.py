"""The instructions of NVIDIA GPUs as tables: copy and MMA atoms, shared-memory and tensor-map descriptors.

``ATOMS`` maps names to atoms; nothing is made before it is asked for.  The tables of the generations are in ``sm61`` to
``sm90``, ``mma_sp``, ``wgmma_sp``, ``matrix_copy``, ``async_copy`` and ``universal``; ``gmma`` and ``descriptors`` hold
what WGMMA reads from shared memory, ``tma`` the tensor maps.  ``python -m cute_dialect.arch`` lists the table.

>>> from cute_dialect.arch import ATOMS
>>> ATOMS["SM75_U32x4_LDSM_N"].dst
Layout("(32,(32,4)):(32,(1,1024))")
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cute_dialect.arch.atom import Atom, CopyAtom, Emit, Metadata, MmaAtom, Registers
    from cute_dialect.arch.errors import ArchError, AtomError, DescriptorError, TmaError
    from cute_dialect.arch.table import (
        AtomTable,
        atoms,
        copy_atom,
        find_cp_async,
        find_matrix_copy,
        find_mma_sp,
        find_mma_sync,
        find_tma,
        find_universal,
        find_wgmma,
        find_wgmma_sp,
        mma_atom,
    )

    ATOMS: AtomTable

_HOME = {
    "atom": ("Atom", "CopyAtom", "Emit", "Metadata", "MmaAtom", "Registers"),
    "errors": ("ArchError", "AtomError", "DescriptorError", "TmaError"),
    "table": (
        "AtomTable",
        "atoms",
        "copy_atom",
        "find_cp_async",
        "find_matrix_copy",
        "find_mma_sp",
        "find_mma_sync",
        "find_tma",
        "find_universal",
        "find_wgmma",
        "find_wgmma_sp",
        "mma_atom",
    ),
}


def __getattr__(name: str) -> object:
    from importlib import import_module

    if name == "ATOMS":
        from cute_dialect.arch.table import atoms

        return atoms()
    for module, names in _HOME.items():
        if name in names:
            return getattr(import_module(f"cute_dialect.arch.{module}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


__all__ = [
    "ATOMS",
    "ArchError",
    "Atom",
    "AtomError",
    "AtomTable",
    "CopyAtom",
    "DescriptorError",
    "Emit",
    "Metadata",
    "MmaAtom",
    "Registers",
    "TmaError",
    "atoms",
    "copy_atom",
    "find_cp_async",
    "find_matrix_copy",
    "find_mma_sp",
    "find_mma_sync",
    "find_tma",
    "find_universal",
    "find_wgmma",
    "find_wgmma_sp",
    "mma_atom",
]
