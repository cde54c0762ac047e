"""Blackwell: the atoms of ``tcgen05.mma.sp``, whose A is sparse, and the metadata E in tensor memory.

K is twice that of the dense instruction.  A holds the kept elements, 32 bytes per row, and B is 64 bytes deep.  E
selects the kept elements in the format of ``mma.sp`` (:class:`cute_dialect.arch.atom.Metadata`).  It is a matrix of
half words for 16-bit and 32-bit elements, else of words, with two of them per row and instruction.

>>> from cute_dialect.arch.tcgen05 import find_tcgen05
>>> atom = find_tcgen05("f16", 1, (128, 64, 32), ("f32", "f16", "f16"), form="sp")
>>> atom.name, atom.tile("A"), atom.tile("B"), atom.tile("E")
('SM100_SPARSE_128x64x32_F32F16F16_SS_TN', (128, 16), (64, 32), (128, 2))

**Tensor memory.** A column holds the half words of one instruction.  Lane ``l`` has those of row ``l%8 + 16*(l//16)``
and of the row 8 further, for the first or second half of K if ``l // 8`` is even or odd.  Words need two columns, and
lane ``l`` has those of row ``l``.

>>> metadata_layout(atom)
Layout("((8,2,8),2):((131072,1,2097152),1048576)")
>>> metadata_layout(find_tcgen05("i8", 1, (128, 64, 64), ("i32", "i8", "i8"), form="sp"))
Layout("(128,2):(65536,1)")

The address of E is a multiple of two columns.  For half words the sparsity selector of the instruction descriptor
selects one of the two.  The PTX ISA shows the layouts in figures only.  These facts wait for a measurement:

* [?] tf32 has the selectors of f16;
* [?] the address is a multiple of two columns for the other kinds, too;
* [?] the layouts for M of 64, and of 128 for a pair, which the PTX ISA has; there are no rows for them.

Source: PTX ISA 9.1, "Sparse matrices" of tcgen05.mma; CUTLASS ``include/cute/atom/mma_traits_sm100.hpp`` (BSD-3).
"""

from __future__ import annotations

from cute_dialect.algebra.values import Layout, raw_layout
from cute_dialect.arch.atom import MmaAtom
from cute_dialect.arch.elements import bits_of
from cute_dialect.arch.tcgen05 import METADATA_WORDS
from cute_dialect.arch.tmem import LANES, strides

BLOCK_COLUMNS = 4
"""Columns of E that one ``tcgen05.cp.128x128b`` writes."""

ALIGNED_COLUMNS = 2
"""The address of E in an instruction is a multiple of this number of columns."""


def columns_of(found: MmaAtom) -> int:
    """Return the columns of E that one instruction reads.

    >>> from cute_dialect.arch.tcgen05 import find_tcgen05
    >>> columns_of(find_tcgen05("tf32", 1, (128, 16, 16), ("f32", "tf32", "tf32"), form="sp"))
    1
    """
    assert found.metadata is not None
    return METADATA_WORDS * bits_of(found.metadata.element) // 32


def metadata_layout(found: MmaAtom) -> Layout:
    """Return the position of E in the tensor memory of a block: ``(row, element of the row) -> element``."""
    assert found.metadata is not None
    lane, _ = strides(bits_of(found.metadata.element))
    if found.metadata.element == "i16":
        return raw_layout(((8, 2, 8), METADATA_WORDS), ((lane, 1, 16 * lane), 8 * lane))
    return raw_layout((LANES, METADATA_WORDS), (lane, 1))


def metadata_fragment(found: MmaAtom, rest: tuple[int, int]) -> Layout:
    """Return the layout of E for several instructions in tensor memory, ``(V, RestM, RestK)`` -> element.

    The instructions along K are in consecutive columns, and each tile along M starts at a multiple of 4 columns.

    >>> from cute_dialect.arch.tcgen05 import find_tcgen05
    >>> atom = find_tcgen05("f16", 1, (128, 64, 32), ("f32", "f16", "f16"), form="sp")
    >>> metadata_fragment(atom, (2, 3))
    Layout("(((8,2,8),2),2,3):(((131072,1,2097152),1048576),8,2)")
    """
    assert found.metadata is not None
    m, k = rest
    _, column = strides(bits_of(found.metadata.element))
    step, tile = columns_of(found), metadata_layout(found)
    whole = -(-k * step // BLOCK_COLUMNS) * BLOCK_COLUMNS
    return raw_layout((tile.shape, m, k), (tile.stride, whole * column, step * column))
