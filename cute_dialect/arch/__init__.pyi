# ruff: noqa: I001 (sorting would make a statement of each name)
"""Public names of the instruction tables, imported from the modules that define them."""

from cute_dialect.arch.atom import (
    Atom as Atom,
    CopyAtom as CopyAtom,
    Emit as Emit,
    Metadata as Metadata,
    MmaAtom as MmaAtom,
    Registers as Registers,
)
from cute_dialect.arch.errors import (
    ArchError as ArchError,
    AtomError as AtomError,
    DescriptorError as DescriptorError,
    TmaError as TmaError,
)
from cute_dialect.arch.table import (
    ATOMS as ATOMS,
    AtomTable as AtomTable,
    copy_atom as copy_atom,
    find_cp_async as find_cp_async,
    find_matrix_copy as find_matrix_copy,
    find_mma_sp as find_mma_sp,
    find_mma_sync as find_mma_sync,
    find_tma as find_tma,
    find_universal as find_universal,
    find_wgmma as find_wgmma,
    find_wgmma_sp as find_wgmma_sp,
    mma_atom as mma_atom,
)
