"""Memory spaces: one row per space, with the properties that the compiler and the language ask for.

Generic code tests a property of a space, ``t.space.per_thread``, not its name. Code for one memory, such as TMA for
shared memory, compares with the member: ``t.space == AddressSpace.smem``. Members are strings, so they print and
compare as their names.

>>> space = AddressSpace("smem")
>>> space, f"{space}", space.ptx, space.per_thread
(AddressSpace.smem, 'smem', '.shared', False)
>>> [space.name for space in AddressSpace if space.shared]
['smem', 'dsmem']
"""

from __future__ import annotations

from enum import ReprEnum
from typing import Self

__all__ = ["AddressSpace"]


class _Row(str):
    """The name of a memory space, with its properties."""

    words: str
    """The name in messages."""
    llvm: int
    """LLVM address space of pointers (NVPTX usage guide, "Address Spaces")."""
    ptx: str
    """Qualifier of PTX loads and stores, such as ``.global``; empty for generic addresses."""
    per_thread: bool
    """Each thread has its own elements, in registers."""
    shared: bool
    """Shared memory of this block or of another block in the cluster. Addresses have 32 bits; mbarriers are allowed."""
    swizzled: bool
    """Pointers may have a swizzle."""
    wide_offsets: bool
    """Run-time offsets from a pointer are computed in 64 bits."""
    accessed_by: str
    """The only instructions that access the space; empty if loads and stores do."""
    addressable: bool
    """Threads can load and store elements of the space."""
    unit_bits: int
    """Bits per unit of an address: a byte, or a 32-bit column of tensor memory."""

    def __new__(
        cls, name: str, words: str, llvm: int, ptx: str = "", *, per_thread: bool = False, shared: bool = False,
        swizzled: bool = False, wide_offsets: bool = False, accessed_by: str = "", unit_bits: int = 8,
    ) -> Self:  # fmt: skip
        row = str.__new__(cls, name)
        row.words, row.llvm, row.ptx = words, llvm, ptx
        row.per_thread, row.shared, row.swizzled, row.wide_offsets = per_thread, shared, swizzled, wide_offsets
        row.accessed_by, row.addressable, row.unit_bits = accessed_by, not accessed_by, unit_bits
        return row


class AddressSpace(_Row, ReprEnum):
    """Memory spaces."""

    _value_: str

    generic = _Row("generic", "generic memory", 0)
    gmem = _Row("gmem", "global memory", 1, ".global", wide_offsets=True)
    smem = _Row("smem", "shared memory", 3, ".shared", shared=True, swizzled=True)
    rmem = _Row("rmem", "registers", 0, per_thread=True)
    tmem = _Row("tmem", "tensor memory", 6, accessed_by="tcgen05 instructions", unit_bits=32)
    """Addresses hold the lane in bits 16 to 31 and the column in bits 0 to 15 (:mod:`cute_dialect.arch.tmem`)."""
    dsmem = _Row("dsmem", "distributed shared memory", 7, ".shared::cluster", shared=True)
    """Shared memory of another block in the cluster."""

    def __new__(cls, row: _Row) -> Self:
        space = str.__new__(cls, row)
        space._value_ = str(row)
        vars(space).update(vars(row))
        return space

    def __repr__(self) -> str:
        return f"AddressSpace.{self.value}"
