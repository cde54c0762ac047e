"""Blackwell: the atoms of ``tcgen05.mma.sp``, whose A is sparse, and the metadata E in tensor memory.

K is twice that of the dense instruction.  A holds the kept elements, 32 bytes per row, and B is 64 bytes deep.  E
selects the kept elements in the format of ``mma.sp`` (:class:`cute_dialect.arch.atom.Metadata`).  It is a matrix of
half words for 16-bit and 32-bit elements, else of words, with two of them per row and instruction.

>>> atom = find_tcgen05_sp("f16", 1, (128, 64, 32), ("f32", "f16", "f16"))
>>> atom.name, atom.tile("A"), atom.tile("B"), atom.tile("E")
('SM100_SPARSE_128x64x32_F32F16F16_SS_TN', (128, 16), (64, 32), (128, 2))

**Tensor memory.** A column holds the half words of one instruction.  Lane ``l`` has those of row ``l%8 + 16*(l//16)``
and of the row 8 further, for the first or second half of K if ``l // 8`` is even or odd.  Words need two columns, and
lane ``l`` has those of row ``l``.

>>> metadata_layout(atom)
Layout("((8,2,8),2):((131072,1,2097152),1048576)")
>>> metadata_layout(find_tcgen05_sp("i8", 1, (128, 64, 64), ("i32", "i8", "i8")))
Layout("(128,2):(65536,1)")

The address of E is a multiple of two columns.  For half words the sparsity selector of the instruction descriptor
selects one of the two.  The PTX ISA shows the layouts in figures only.  These facts wait for a measurement:

* [?] tf32 has the selectors of f16;
* [?] the address is a multiple of two columns for the other kinds, too;
* [?] the layouts for M of 64, and of 128 for a pair, which the PTX ISA has; there are no rows for them.

Source: PTX ISA 9.1, "Sparse matrices" of tcgen05.mma; CUTLASS ``include/cute/atom/mma_traits_sm100.hpp`` (BSD-3).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import cache, partial

from cute_dialect.algebra.values import Layout, raw_layout
from cute_dialect.arch import tcgen05 as dense
from cute_dialect.arch.atom import Emit, Metadata, MmaAtom, Registers, Scales
from cute_dialect.arch.elements import bits_of
from cute_dialect.arch.errors import AtomError
from cute_dialect.arch.mma_sync import Row
from cute_dialect.arch.targets import TCGEN05
from cute_dialect.arch.tmem import LANES, strides

ROWS_M = {1: 128, 2: 256}
"""``cta_group``, the number of blocks that compute D -> rows of D."""

WORDS = 2
"""Elements of E per row and instruction."""

BLOCK_COLUMNS = 4
"""Columns of E that one ``tcgen05.cp.128x128b`` writes."""

ALIGNED_COLUMNS = 2
"""The address of E in an instruction is a multiple of this number of columns."""

_FP4_ARCH = "sm_100a|sm_103a|sm_110a"
_GROUPS = {"tf32": 2, "mxf4": 8, "mxf4nvf4": 8}
"""Kind -> elements of A per group of four bits in E; 4 for other kinds."""


def extents_n(cta_group: int) -> range:
    """Return the N that an MMA supports.

    >>> extents_n(1)[:3], extents_n(2)[-1]
    (range(16, 64, 16), 256)
    """
    step = 16 * cta_group
    return range(step, 257, step)


def metadata(cta_group: int, m: int, k: int, kind: str) -> Metadata:
    """Return the operand E of an instruction of ``m`` rows, those of both blocks of a pair.

    >>> held = metadata(1, 128, 128, "mxf4")
    >>> held.element, held.group, held.columns
    ('i32', 8, 64)
    """
    return Metadata(
        element="i16" if kind in ("f16", "tf32") else "i32",
        layout=dense.halves(cta_group, m, WORDS),
        registers=Registers("b32", 1, 0, "!llvm.ptr<6>"),
        group=_GROUPS.get(kind, 4),
        selectors=1,
    )


def columns_of(found: MmaAtom) -> int:
    """Return the columns of E that one instruction reads.

    >>> columns_of(find_tcgen05_sp("tf32", 1, (128, 16, 16), ("f32", "tf32", "tf32")))
    1
    """
    assert found.metadata is not None
    return WORDS * bits_of(found.metadata.element) // 32


def metadata_layout(found: MmaAtom) -> Layout:
    """Return the position of E in the tensor memory of a block: ``(row, element of the row) -> element``."""
    assert found.metadata is not None
    lane, _ = strides(bits_of(found.metadata.element))
    if found.metadata.element == "i16":
        return raw_layout(((8, 2, 8), WORDS), ((lane, 1, 16 * lane), 8 * lane))
    return raw_layout((LANES, WORDS), (lane, 1))


def _sparse(found: MmaAtom, kind: str) -> MmaAtom:
    """Return the atom with a sparse A of a dense atom."""
    m, n, k = found.shape_mnk
    cta_group, emit = found.threads, found.emit
    start = f"SM100_{'2SM_' if cta_group == 2 else ''}"
    name = found.name.replace("SM100_", "", 1).removeprefix(f"{kind.upper()}_").removeprefix("2SM_")
    scaled = f"{kind.upper()}_" if found.scales is not None else ""
    mnemonic = emit.mnemonic.replace("tcgen05.mma.", "tcgen05.mma.sp.")
    scales = found.scales
    return replace(
        found,
        name=f"{start}SPARSE_{scaled}{name.replace(f'{m}x{n}x{k}_', f'{m}x{n}x{2 * k}_')}",
        shape_mnk=(m, n, 2 * k),
        layout_b=dense.halves(cta_group, n, 2 * k),
        emit=Emit(
            kind="tcgen05_sp",
            mnemonic=mnemonic,
            intrinsic=emit.intrinsic.replace("tcgen05.mma.", "tcgen05.mma.sp."),
            pieces=emit.pieces,
        ),
        ptx=found.ptx.replace(emit.mnemonic, mnemonic).replace("$b, ", "$b, [$e], "),
        isa=found.isa.replace("tcgen05.mma", "tcgen05.mma.sp"),
        metadata=metadata(cta_group, m, 2 * k, kind),
        scales=None if scales is None else Scales(scales.element, 2 * scales.vector, scales.layout_a, scales.layout_b),
    )


def rows() -> Iterator[Row]:
    """Return the table rows of all kinds without block scales, types, shapes, sources of A, and majors."""
    for kind in dense.KINDS:
        for types in kind.types:
            for source in ("smem", "tmem"):
                for cta_group, m in ROWS_M.items():
                    for n in extents_n(cta_group):
                        for majors in dense.majors_of(kind, types, source):
                            for saturate in (False, True) if types[0] == "i32" else (False,):
                                make = partial(_made, cta_group, m, n, types, source, majors, saturate)
                                yield _name(cta_group, m, n, types, source, majors, saturate), make


def _name(
    cta_group: int, m: int, n: int, types: tuple[str, str, str], source_a: str, majors: str, saturate: bool
) -> str:
    """Return the name of the atom: that of the dense atom, with twice the K."""
    k, name = dense.kind_of_types(types).depth, dense.tcgen05_name(cta_group, m, n, types, source_a, majors, saturate)
    return name.replace(f"{m}x{n}x{k}_", f"SPARSE_{m}x{n}x{2 * k}_", 1)


@cache
def _made(
    cta_group: int, m: int, n: int, types: tuple[str, str, str], source_a: str, majors: str, saturate: bool
) -> MmaAtom:
    name = dense.tcgen05_name(cta_group, m, n, types, source_a, majors, saturate)
    found = dense.atom(name, cta_group, m, n, types, source_a, majors, saturate)
    return _sparse(found, dense.kind_of_types(types).name)


def _check_shape(kind: str, cta_group: int, shape_mnk: tuple[int, int, int], depth: int) -> None:
    m, n, k = shape_mnk
    if cta_group not in ROWS_M:
        raise AtomError(f"cta_group is {cta_group}; use 1, or 2 for a pair of blocks")
    if m != ROWS_M[cta_group] or n not in extents_n(cta_group) or k != depth:
        step = 16 * cta_group
        raise AtomError(
            f"the shape is {m}x{n}x{k} with cta_group {cta_group}; kind {kind} with a sparse A needs M of "
            f"{ROWS_M[cta_group]}, N a multiple of {step} up to 256, and K of {depth}"
        )


def find_tcgen05_sp(
    kind: str,
    cta_group: int,
    shape_mnk: tuple[int, int, int],
    types: tuple[str, str, str],
    source_a: str = "smem",
    majors: tuple[str, str] = ("k", "k"),
    saturate: bool = False,
) -> MmaAtom:
    """Find the atom of ``tcgen05.mma.sp`` of a kind, a shape and element types of D, A and B.

    Args:
        kind: f16, tf32, f8f6f4 or i8.
        cta_group: 1, or 2 for a pair of blocks.
        shape_mnk: ``(M, N, K)``, of the pair if there is one; K counts all elements of A.
        types: element types of D, A, B.
        source_a: memory of A, "smem" or "tmem".
        majors: contiguous index of A and of B, "k" or "mn".
        saturate: clamp integer results to their range.

    Raises:
        AtomError: there is no such atom.  The message lists the allowed values.
    """
    found = dense.kind_of(kind)
    _check_shape(kind, cta_group, shape_mnk, 2 * found.depth)
    m, n, k = shape_mnk
    like = dense.find_tcgen05(kind, cta_group, (m, n, k // 2), types, source_a, majors, saturate)
    letters = ("T" if like.major_a == "k" else "N") + ("N" if like.major_b == "k" else "T")
    return _made(cta_group, m, n, types, source_a, letters, saturate)


def find_scaled_tcgen05_sp(
    kind: str,
    cta_group: int,
    shape_mnk: tuple[int, int, int],
    types: tuple[str, str, str],
    factor: tuple[str, int] | None = None,
) -> MmaAtom:
    """Find the atom of ``tcgen05.mma.sp`` with block scales.  A and B are k-major in shared memory.

    Args:
        kind: mxf8f6f4, mxf4 or mxf4nvf4.
        cta_group: 1, or 2 for a pair of blocks.
        shape_mnk: ``(M, N, K)``, of the pair if there is one; K counts all elements of A.
        types: element types of D, A, B.
        factor: type of the scale factors, and kept elements along K that share one; None for the default of the kind.

    Raises:
        AtomError: there is no such atom.  The message lists the allowed values.

    >>> found = find_scaled_tcgen05_sp("mxf8f6f4", 1, (128, 64, 64), ("f32", "f8E4M3FN", "f8E4M3FN"))
    >>> found.name, found.scales.vector
    ('SM100_SPARSE_MXF8F6F4_128x64x64_F32E4M3E4M3_UE8M0_VS32_SS_TN', 64)
    """
    depth = next((2 * x.depth for x in dense.SCALED_KINDS if x.name == kind), None)
    if depth is not None:
        _check_shape(kind, cta_group, shape_mnk, depth)
    m, n, k = shape_mnk
    return _made_scaled(dense.find_scaled_tcgen05(kind, cta_group, (m, n, k // 2), types, factor), kind)


@cache
def _made_scaled(found: MmaAtom, kind: str) -> MmaAtom:
    sparse = _sparse(found, kind)
    return replace(sparse, arch=TCGEN05 if kind == "mxf8f6f4" else _FP4_ARCH)


def metadata_fragment(found: MmaAtom, rest: tuple[int, int]) -> Layout:
    """Return the layout of E for several instructions in tensor memory, ``(V, RestM, RestK)`` -> element.

    The instructions along K are in consecutive columns, and each tile along M starts at a multiple of 4 columns.

    >>> metadata_fragment(find_tcgen05_sp("f16", 1, (128, 64, 32), ("f32", "f16", "f16")), (2, 3))
    Layout("(((8,2,8),2),2,3):(((131072,1,2097152),1048576),8,2)")
    """
    assert found.metadata is not None
    m, k = rest
    _, column = strides(bits_of(found.metadata.element))
    step, tile = columns_of(found), metadata_layout(found)
    whole = -(-k * step // BLOCK_COLUMNS) * BLOCK_COLUMNS
    return raw_layout((tile.shape, m, k), (tile.stride, whole * column, step * column))
