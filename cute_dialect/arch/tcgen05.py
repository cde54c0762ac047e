"""Blackwell: the MMA atoms of ``tcgen05.mma``, which accumulates in tensor memory.

One thread issues the instruction for a block, or for a pair of blocks (``cta_group`` 2).  B is read from shared memory
through a matrix descriptor; A from shared memory (SS) or from tensor memory (TS); D is in tensor memory.  K is 32 bytes
of elements.

``ThrID`` counts the blocks of a pair, not threads: thread 1 is the block of odd rank.

>>> atom = find_tcgen05("f16", 1, (128, 256, 16), ("f32", "bf16", "bf16"))
>>> atom.name, atom.layout_a, atom.layout_c
('SM100_128x256x16_F32BF16BF16_SS_TN', Layout("(1,(128,16)):(0,(1,128))"), Layout("(1,(128,256)):(0,(1,128))"))
>>> find_tcgen05("f16", 2, (256, 256, 16), ("f32", "bf16", "bf16")).layout_b
Layout("(2,(128,16)):(128,(1,256))")

The types and shapes are those of :mod:`.tcgen05_kinds`.

Source: PTX ISA 9.1, "tcgen05.mma"; CUTLASS ``include/cute/arch/mma_sm100_umma.hpp``,
``include/cute/atom/mma_traits_sm100.hpp`` (BSD-3).
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache, partial

from cute_dialect.algebra.compose import compose
from cute_dialect.algebra.tiling import tiled_product
from cute_dialect.algebra.trees import column_major, product
from cute_dialect.algebra.values import IntTuple, Layout, raw_layout
from cute_dialect.arch.atom import Emit, Metadata, MmaAtom, Registers, Scales
from cute_dialect.arch.elements import element
from cute_dialect.arch.errors import AtomError
from cute_dialect.arch.mma_sync import Row
from cute_dialect.arch.tcgen05_kinds import FORMS, WIDE_ARCH, Key, Kind, check, kind_of, plain_keys
from cute_dialect.arch.tmem import LANES
from cute_dialect.spaces import AddressSpace

METADATA_WORDS = 2
"""Elements of the metadata of a sparse A per row and instruction."""


def name_of(key: Key) -> str:
    """Return the name of an atom: CuTe's prefix, the shape, the types of D, A and B, the source of A, and the majors.

    >>> from cute_dialect.arch.tcgen05_kinds import KINDS
    >>> types = ("f32", "f8E4M3FN", "f8E5M2")
    >>> name_of(Key(KINDS[2], FORMS[""], 2, (256, 128, 32), types, "tmem"))
    'SM100_2SM_256x128x32_F32E4M3E5M2_TS_TN'
    """
    kind = f"{key.kind.name.upper()}_" if key.factor is not None else ""
    pair = "2SM_" if key.cta_group == 2 else ""
    words = f"{pair}{key.form.word}{kind}" if key.form.word else f"{kind}{pair}"
    letters = "".join([element(t).cute for t in key.types])
    scales = ""
    if key.factor is not None:
        sf, vec = key.factor
        scales = f"{'UE4M3' if sf == 'ue4m3' else 'UE8M0'}_VS{vec}_"
    source = "SS" if key.source_a == AddressSpace.smem else "TS"
    return (
        f"SM{103 if key.is_wide else 100}_{words}{'x'.join(map(str, key.shape))}_{letters}_{scales}{source}"
        f"_{key.majors}{'_SATURATE' if key.saturate else ''}"
    )


def rows() -> Iterator[Row]:
    """Return the table rows of all atoms without block scales."""
    for key in plain_keys():
        yield name_of(key), partial(_atom, key)


def halves(blocks: int, rows: int, columns: int) -> Layout:
    """Return ``(block of the pair, value) -> row + rows*column`` of an operand whose rows the blocks divide.

    >>> halves(1, 128, 16), halves(2, 256, 16)
    (Layout("(1,(128,16)):(0,(1,128))"), Layout("(2,(128,16)):(128,(1,256))"))
    """
    own = rows // blocks
    return raw_layout((blocks, (own, columns)), (0 if blocks == 1 else own, (1, rows)))


_DESCRIPTOR = Registers("b64", 1, 0, "i64")
_ADDRESS = Registers("b32", 1, 0, "!llvm.ptr<6>")


@cache
def _atom(key: Key) -> MmaAtom:
    """Build an atom."""
    kind, form, group, (m, n, k), (d, a, b) = key.kind, key.form, key.cta_group, key.shape, key.types
    depth, is_wide, in_tmem = k // form.deeper, key.is_wide, key.source_a == AddressSpace.tmem
    qualifiers, arch = f"cta_group::{group}.kind::{kind.name}", kind.arch
    intrinsic = "tensor" if in_tmem else "shared"
    pieces: dict[str, int | str | bool] = {"kind": kind.name, "cta_group": group, "packed": kind.packed}
    operands = f"[$d], {'[$a]' if in_tmem else '$a'}, $b, "
    scales, metadata = None, None
    if form.deeper > 1:
        metadata = metadata_of(kind, group, m)
        operands += "[$e], "
        arch = kind.sparse_arch or arch
    if key.factor is None:
        pieces = {"kind": kind.name, "code": kind.code, "cta_group": group}
        pieces |= {"saturate": key.saturate, "negate": kind.negates}
        operands += "$idesc, $accumulate;"
    else:
        sf, vec = key.factor
        of_b = raw_layout((group, (n, depth // vec)), (0, (1, n)))  # Each block of a pair has all factors of B.
        scales = Scales(sf, form.deeper * vec, halves(group, m, depth // vec), of_b)
        qualifiers += f".block_scale.block{vec}"
        intrinsic += f".{kind.name}.block_scale.block{vec}"
        operands += "$idesc, [$sfa], [$sfb], $accumulate;"
        arch = WIDE_ARCH if is_wide else arch
    stem = f"tcgen05.mma.{form.name}" if form.name else "tcgen05.mma"
    mnemonic = f"{stem}.{qualifiers}"
    return MmaAtom(
        name=name_of(key),
        arch=arch,
        family="tcgen05",
        shape_mnk=key.shape,
        d=d,
        a=a,
        b=b,
        c=d,
        thr_id=raw_layout(group, 0 if group == 1 else 1),
        layout_a=halves(group, m, depth),
        layout_b=halves(group, n, k),
        layout_c=halves(group, m, n),
        registers_d=_ADDRESS,
        registers_a=_ADDRESS if in_tmem else _DESCRIPTOR,
        registers_b=_DESCRIPTOR,
        registers_c=_ADDRESS,
        major_a="k" if key.majors[0] == "T" else "mn",
        major_b="k" if key.majors[1] == "N" else "mn",
        source_a=key.source_a,
        source_b="smem",
        source_c="tmem",
        emit=Emit(
            kind=f"tcgen05_{form.name}" if form.name else "tcgen05",
            mnemonic=mnemonic,
            intrinsic=f"llvm.nvvm.{stem}.{intrinsic}",
            pieces=tuple(pieces.items()),
        ),
        ptx=f"{mnemonic} {operands}",
        isa=f'"{stem}" for kind::{kind.name}',
        ptx_version="8.6" if key.factor is None else "8.8",
        scales=scales,
        metadata=metadata,
    )


def metadata_of(kind: Kind, cta_group: int, m: int) -> Metadata:
    """Return the operand E of an instruction with a sparse A of ``m`` rows, those of both blocks of a pair.

    >>> from cute_dialect.arch.tcgen05_kinds import kind_of
    >>> held = metadata_of(kind_of("mxf4", scaled=True), 1, 128)
    >>> held.element, held.group, held.columns
    ('i32', 8, 64)
    """
    return Metadata(
        element="i16" if kind.depth <= 16 else "i32",
        layout=halves(cta_group, m, METADATA_WORDS),
        registers=_ADDRESS,
        group=kind.group,
        selectors=1,
    )


def find_tcgen05(
    kind: str,
    cta_group: int,
    shape_mnk: tuple[int, int, int],
    types: tuple[str, str, str],
    source_a: str = "smem",
    majors: tuple[str, str] = ("k", "k"),
    saturate: bool = False,
    *,
    form: str = "",
    factor: tuple[str, int] | None = None,
) -> MmaAtom:
    """Find the atom of ``tcgen05.mma`` of a kind, a shape and element types of D, A and B.

    Args:
        kind: f16, tf32, f8f6f4 or i8; with block scales mxf8f6f4, mxf4 or mxf4nvf4.
        cta_group: 1, or 2 for a pair of blocks.
        shape_mnk: ``(M, N, K)``, of the pair if there is one; with a sparse A, K counts all elements.
        types: element types of D, A, B.
        source_a: memory of A, "smem" or "tmem".
        majors: contiguous index of A and of B, "k" or "mn".
        saturate: clamp integer results to their range.
        form: a key of :data:`~cute_dialect.arch.tcgen05_kinds.FORMS`: "" (dense), "sp" (sparse A) or "ws".
        factor: type of the scale factors, and elements along K that share one, kept elements if A is sparse; None for
            the default of a kind with block scales.

    Raises:
        AtomError: there is no such atom.  The message lists the allowed values.

    >>> find_tcgen05("mxf4nvf4", 1, (128, 64, 64), ("f32", "f4E2M1FN", "f4E2M1FN")).name
    'SM100_MXF4NVF4_128x64x64_F32E2M1E2M1_UE4M3_VS16_SS_TN'
    >>> found = find_tcgen05("mxf8f6f4", 1, (128, 64, 64), ("f32", "f8E4M3FN", "f8E4M3FN"), form="sp")
    >>> found.name, found.scales.vector
    ('SM100_SPARSE_MXF8F6F4_128x64x64_F32E4M3E4M3_UE8M0_VS32_SS_TN', 64)
    """
    is_scaled = factor is not None or kind.startswith("mx")
    found, variant = kind_of(kind, scaled=is_scaled), FORMS[form]
    if is_scaled and not variant.scales:
        raise AtomError(f"kind {kind} has block scales, and tcgen05.mma.{form} has none; use a kind without")
    letters = ("T" if majors[0] == "k" else "N") + ("N" if majors[1] == "k" else "T")
    factor = (factor or found.factors[0]) if is_scaled else None
    key = Key(found, variant, cta_group, shape_mnk, types, source_a, letters, saturate, factor)
    check(key)
    return _atom(key)


# ------------------------------------------------------------------------------------------------- tensor memory


def accumulator_layout(found: MmaAtom) -> Layout:
    """Return the position of the accumulator in tensor memory: ``(row, column) -> lane + 128*column``.

    The rows are those of one block.  With 64 rows, a second accumulator fits 16 lanes after the first.

    >>> accumulator_layout(find_tcgen05("f16", 1, (64, 128, 16), ("f32", "f16", "f16")))
    Layout("((16,4),128):((1,32),128)")
    >>> accumulator_layout(find_tcgen05("f16", 2, (128, 256, 16), ("f32", "f16", "f16")))
    Layout("(64,(128,2)):(1,(128,64))")

    Source: PTX ISA 9.1, "Data path layout organization"; CUTLASS ``include/cute/atom/mma_traits_sm100.hpp`` (BSD-3).
    """
    m, n, _ = found.shape_mnk
    own = m // found.threads
    if own == 128:
        return raw_layout((128, n), (1, 128))
    if found.threads == 1:
        return raw_layout(((16, 4), n), ((1, 32), 128))
    return raw_layout((64, (n // 2, 2)), (1, (128, 64)))


def source_layout(found: MmaAtom) -> Layout:
    """Return the position of A in tensor memory: ``(row, k) -> lane + 128*(element of the row)``.

    The elements of a row are packed in its columns.

    >>> source_layout(find_tcgen05("f16", 1, (128, 128, 16), ("f32", "f16", "f16"), "tmem"))
    Layout("(128,16):(1,128)")
    """
    m, k = found.tile("A")
    own = m // found.threads
    if own == 128 or found.threads == 2:
        # With 64 rows per block of a pair, lanes 64 to 127 hold a copy.
        return raw_layout((own, k), (1, 128))
    return raw_layout(((16, 4), k), ((1, 32), 128))


def fragment_layout(found: MmaAtom, tile: Layout, rest: IntTuple, lane: int, column: int) -> Layout:
    """Return the layout of several tiles of A, C or D in tensor memory, ``(V, Rest0, ...)`` -> element.

    Tiles of 64 rows fill the free lanes first, unless A is in tensor memory: then A and D have the same lanes.

    Args:
        found: the atom.
        tile: position of one tile, ``-> lane + 128*column``, as :func:`accumulator_layout` returns it.
        rest: numbers of tiles.
        lane: distance of two lanes in elements.
        column: distance of two columns in elements.

    >>> atom = find_tcgen05("f16", 1, (64, 32, 16), ("f32", "f16", "f16"))
    >>> fragment_layout(atom, accumulator_layout(atom), (2, 2), 65536, 1)
    Layout("(((16,4),32),2,2):(((65536,2097152),1),1048576,32)")
    """
    step = 2 if found.source_a == AddressSpace.tmem and found.threads == 1 and found.shape_mnk[0] == 64 else 1
    tiles = raw_layout(rest, column_major(rest))
    if step != 1:
        tiles = compose(raw_layout(product(rest), step), tiles)
    lanes_and_columns = raw_layout((LANES, 1 << 16), (lane, column))
    return compose(lanes_and_columns, tiled_product(tile, tiles))
