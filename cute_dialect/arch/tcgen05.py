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

Source: PTX ISA 9.1, "tcgen05.mma" and its table of shapes; CUTLASS ``include/cute/arch/mma_sm100_umma.hpp``,
``include/cute/atom/mma_traits_sm100.hpp`` (BSD-3).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cache, partial
from typing import NamedTuple

from cute_dialect.algebra.compose import compose
from cute_dialect.algebra.tiling import tiled_product
from cute_dialect.algebra.trees import column_major, product
from cute_dialect.algebra.values import IntTuple, Layout, raw_layout
from cute_dialect.arch.atom import Emit, MmaAtom, Registers, Scales
from cute_dialect.arch.elements import element
from cute_dialect.arch.errors import AtomError
from cute_dialect.arch.mma_sync import Row
from cute_dialect.arch.targets import TCGEN05
from cute_dialect.arch.tmem import LANES
from cute_dialect.spaces import AddressSpace

_FP8 = ("f8E4M3FN", "f8E5M2")
_NARROW = (*_FP8, "f6E2M3FN", "f6E3M2FN", "f4E2M1FN")
_S8 = ("i8", "ui8")


class Kind(NamedTuple):
    """A kind of ``tcgen05.mma``.

    Args:
        name: the qualifier in PTX.
        code: operand ``kind`` of the LLVM intrinsics.
        types: element types of D, A and B.
        summary: the types in words, for error messages.
        depth: K of one instruction, in elements.
        mn_major: element types that may be mn-major.
        integer_n: N above 32 is a multiple of 16, as for integers.
        arch: chips that have it.
        negates: A and B may be negated.
    """

    name: str
    code: int
    types: tuple[tuple[str, str, str], ...]
    summary: str
    depth: int
    mn_major: tuple[str, ...]
    integer_n: bool = False
    arch: str = TCGEN05
    negates: bool = True


KINDS: tuple[Kind, ...] = (
    Kind(
        "f16",
        0,
        (("f16", "f16", "f16"), ("f32", "f16", "f16"), ("f32", "bf16", "bf16")),
        "A and B f16 with D f16 or f32, or A and B bf16 with D f32",
        16,
        ("f16", "bf16"),
    ),
    Kind("tf32", 1, (("f32", "tf32", "tf32"),), "A and B tf32 with D f32", 8, ("tf32",)),
    Kind(
        "f8f6f4",
        2,
        tuple((d, a, b) for d in ("f32", "f16") for a in _NARROW for b in _NARROW),
        f"A and B each one of {', '.join(_NARROW)} with D f32 or f16",
        32,
        _FP8,
    ),
    Kind(
        "i8",
        3,
        tuple(("i32", a, b) for a in _S8 for b in _S8),
        "A and B each i8 or ui8 with D i32",
        32,
        _S8,
        integer_n=True,
        arch="sm_100a|sm_110a",
        negates=False,
    ),
)
"""The kinds without block scales: PTX ISA 9.1, tcgen05.mma, tables of types and shapes."""

ROWS_M = {1: (64, 128), 2: (128, 256)}
"""``cta_group``, the number of blocks that compute D -> rows of D."""


class ScaledKind(NamedTuple):
    """A kind of ``tcgen05.mma`` with block scales, with D of f32.

    Args:
        name: the qualifier in PTX.
        elements: element types of A and B.
        depth: K of one instruction, in elements.
        packed: elements per byte of shared memory.
        factors: types of the scale factors, and elements along K that share one.
        wide: K of the instruction that sm_103a has in addition, or 0.
    """

    name: str
    elements: tuple[str, ...]
    depth: int
    packed: int
    factors: tuple[tuple[str, int], ...]
    wide: int = 0


_E8M0, _FP4 = "f8E8M0FNU", ("f4E2M1FN",)
SCALED_KINDS: tuple[ScaledKind, ...] = (
    ScaledKind("mxf8f6f4", _NARROW, 32, 1, ((_E8M0, 32),)),
    ScaledKind("mxf4", _FP4, 64, 2, ((_E8M0, 32),), wide=96),
    ScaledKind("mxf4nvf4", _FP4, 64, 2, (("ue4m3", 16), (_E8M0, 16), (_E8M0, 32)), wide=96),
)
"""The kinds with block scales: PTX ISA 9.1, tcgen05.mma, tables of types and shapes.

With K of 96 an instruction reads 3 or 6 factors per row.  They begin at any byte of a column, or at byte 0 or 2, and
continue in the next column of the row.  The figures of the PTX ISA are not known as text, so these are assumptions:

* [?] the next column of a row is 4 columns later, and that of SFB 8 columns later if N exceeds 128;
* [?] only sm_103a has it, and not the family sm_103f.
"""

WIDE_ARCH = "sm_103a"
"""The chip with K of 96."""


def kind_of(name: str) -> Kind:
    """Return the kind of this name.  Raises AtomError."""
    for kind in KINDS:
        if kind.name == name:
            return kind
    raise AtomError(f"{name!r} is not a kind of tcgen05.mma; use one of {', '.join(k.name for k in KINDS)}")


def kind_of_types(types: tuple[str, str, str]) -> Kind:
    """Return the kind that multiplies elements of D, A and B of these types.  Raises AtomError."""
    for kind in KINDS:
        if types in kind.types:
            return kind
    known = "; ".join(f"{k.name}: {k.summary}" for k in KINDS)
    raise AtomError(f"tcgen05.mma has no D, A, B = {', '.join(types)}; its kinds are {known}")


def extents_n(kind: Kind, m: int, cta_group: int, source_a: str = "smem") -> Sequence[int]:
    """Return the N that an MMA with M rows supports.

    >>> extents_n(kind_of("f16"), 128, 1)[:3], extents_n(kind_of("i8"), 64, 1)[:4], extents_n(kind_of("i8"), 128, 2)[:2]
    ((8, 16, 24), (8, 16, 32, 48), (32, 64))
    """
    if kind.integer_n:
        # The PTX ISA also lists N = 24, CUTLASS does not [?].
        extents = (8, *range(16, 257, 16)) if cta_group == 1 else tuple(range(32, 257, 32))
    else:
        extents = tuple(range(8 * cta_group, 257, 8 * cta_group))
    # With A in tensor memory CUTLASS requires multiples of 16 for M = 128, and of 32 for a pair [H].
    whole = 1 if source_a == AddressSpace.smem else 32 if cta_group == 2 else 16 if m == 128 else 8
    return tuple(n for n in extents if n % whole == 0)


def majors_of(kind: Kind, types: tuple[str, str, str], source_a: str) -> tuple[str, ...]:
    """Return the majors of A and B in BLAS notation; TN is k-major for both.  A in tensor memory is k-major.

    >>> types = ("f32", "f16", "f16")
    >>> majors_of(kind_of("f16"), types, "smem"), majors_of(kind_of("f16"), types, "tmem")
    (('TN', 'TT', 'NN', 'NT'), ('TN', 'TT'))
    """
    _, a, b = types
    first = "TN" if source_a == AddressSpace.smem and a in kind.mn_major else "T"
    second = "NT" if b in kind.mn_major else "N"
    return tuple(x + y for x in first for y in second)


def tcgen05_name(
    cta_group: int, m: int, n: int, types: tuple[str, str, str], source_a: str, majors: str, saturate: bool = False
) -> str:
    """Return the name of an atom: CuTe's prefix, the shape, the types of D, A and B, the source of A, and the majors.

    >>> tcgen05_name(2, 256, 128, ("f32", "f8E4M3FN", "f8E5M2"), "tmem", "TN")
    'SM100_2SM_256x128x32_F32E4M3E5M2_TS_TN'
    """
    letters = "".join([element(t).cute for t in types])
    k = kind_of_types(types).depth
    return (
        f"SM100_{'2SM_' if cta_group == 2 else ''}{m}x{n}x{k}_{letters}_"
        f"{'SS' if source_a == AddressSpace.smem else 'TS'}_{majors}{'_SATURATE' if saturate else ''}"
    )


def rows() -> Iterator[Row]:
    """Return the table rows of all kinds, types, shapes, sources of A, and majors."""
    for kind in KINDS:
        for types in kind.types:
            for source in ("smem", "tmem"):
                for cta_group, ms in ROWS_M.items():
                    for m in ms:
                        for n in extents_n(kind, m, cta_group, source):
                            for majors in majors_of(kind, types, source):
                                for saturate in (False, True) if types[0] == "i32" else (False,):
                                    name = tcgen05_name(cta_group, m, n, types, source, majors, saturate)
                                    yield name, partial(atom, name, cta_group, m, n, types, source, majors, saturate)


def halves(blocks: int, rows: int, columns: int) -> Layout:
    """Return ``(block of the pair, value) -> row + rows*column`` of an operand whose rows the blocks divide.

    >>> halves(1, 128, 16), halves(2, 256, 16)
    (Layout("(1,(128,16)):(0,(1,128))"), Layout("(2,(128,16)):(128,(1,256))"))
    """
    own = rows // blocks
    return raw_layout((blocks, (own, columns)), (0 if blocks == 1 else own, (1, rows)))


_DESCRIPTOR = Registers("b64", 1, 0, "i64")
_ADDRESS = Registers("b32", 1, 0, "!llvm.ptr<6>")


def _in_shared_memory(
    name: str, cta_group: int, shape_mnk: tuple[int, int, int], types: tuple[str, str, str], kind: str
) -> MmaAtom:
    """Return an atom with k-major A and B in shared memory.  The caller replaces what differs, and adds its PTX."""
    (m, n, k), (d, a, b) = shape_mnk, types
    return MmaAtom(
        name=name,
        arch=TCGEN05,
        family="tcgen05",
        shape_mnk=shape_mnk,
        d=d,
        a=a,
        b=b,
        c=d,
        thr_id=raw_layout(cta_group, 0 if cta_group == 1 else 1),
        layout_a=halves(cta_group, m, k),
        layout_b=halves(cta_group, n, k),
        layout_c=halves(cta_group, m, n),
        registers_d=_ADDRESS,
        registers_a=_DESCRIPTOR,
        registers_b=_DESCRIPTOR,
        registers_c=_ADDRESS,
        major_a="k",
        major_b="k",
        source_a="smem",
        source_b="smem",
        source_c="tmem",
        emit=Emit(kind="tcgen05", mnemonic="tcgen05.mma"),
        ptx="",
        isa=f'"tcgen05.mma" for kind::{kind}',
        ptx_version="8.6",
    )


def atom(
    name: str,
    cta_group: int,
    m: int,
    n: int,
    types: tuple[str, str, str],
    source_a: str,
    majors: str,
    saturate: bool = False,
) -> MmaAtom:
    """Build the atom of ``tcgen05.mma`` for element types D, A, B; see :func:`tcgen05_name`."""
    kind = kind_of_types(types)
    major_a = "k" if majors[0] == "T" else "mn"
    major_b = "k" if majors[1] == "N" else "mn"
    mnemonic = f"tcgen05.mma.cta_group::{cta_group}.kind::{kind.name}"
    in_tmem = source_a == AddressSpace.tmem
    return replace(
        _in_shared_memory(name, cta_group, (m, n, kind.depth), types, kind.name),
        arch=kind.arch,
        registers_a=_ADDRESS if in_tmem else _DESCRIPTOR,
        major_a=major_a,
        major_b=major_b,
        source_a=source_a,
        emit=Emit(
            kind="tcgen05",
            mnemonic=mnemonic,
            intrinsic=f"llvm.nvvm.tcgen05.mma.{'tensor' if in_tmem else 'shared'}",
            pieces=(
                ("kind", kind.name),
                ("code", kind.code),
                ("cta_group", cta_group),
                ("saturate", saturate),
                ("negate", kind.negates),
            ),
        ),
        ptx=f"{mnemonic} [$d], {'[$a]' if in_tmem else '$a'}, $b, $idesc, $accumulate;",
        isa=f'"tcgen05.mma" for kind::{kind.name}',
    )


def find_tcgen05(
    kind: str,
    cta_group: int,
    shape_mnk: tuple[int, int, int],
    types: tuple[str, str, str],
    source_a: str = "smem",
    majors: tuple[str, str] = ("k", "k"),
    saturate: bool = False,
) -> MmaAtom:
    """Find the atom of ``tcgen05.mma`` of a kind, a shape and element types of D, A and B.

    Args:
        kind: f16, tf32, f8f6f4 or i8.
        cta_group: 1, or 2 for a pair of blocks.
        shape_mnk: ``(M, N, K)``, of the pair if there is one.
        types: element types of D, A, B.
        source_a: memory of A, "smem" or "tmem".
        majors: contiguous index of A and of B, "k" or "mn".
        saturate: clamp integer results to their range.

    Raises:
        AtomError: there is no such atom.  The message lists the allowed values.
    """
    found = kind_of(kind)
    m, n, k = shape_mnk
    if types not in found.types:
        raise AtomError(f"kind {kind} has no D, A, B = {', '.join(types)}; use {found.summary}")
    if cta_group not in ROWS_M:
        raise AtomError(f"cta_group is {cta_group}; use 1, or 2 for a pair of blocks")
    if source_a not in (AddressSpace.smem, AddressSpace.tmem):
        raise AtomError(f"A is in {source_a}; use smem or tmem")
    if m not in ROWS_M[cta_group]:
        raise AtomError(f"M is {m}; use {' or '.join(map(str, ROWS_M[cta_group]))} for cta_group {cta_group}")
    extents = extents_n(found, m, cta_group, source_a)
    if n not in extents:
        raise AtomError(
            f"N is {n}; use one of {', '.join(map(str, extents))} for kind {kind}, M = {m}, cta_group {cta_group} and "
            f"A in {source_a}"
        )
    if k != found.depth:
        raise AtomError(f"K is {k}; use {found.depth} for kind {kind}")
    letters = ("T" if majors[0] == "k" else "N") + ("N" if majors[1] == "k" else "T")
    if letters not in majors_of(found, types, source_a):
        where = "in tensor memory" if source_a == AddressSpace.tmem else f"of type {types[1]}"
        raise AtomError(f"the majors of A {where} and B of type {types[2]} are {majors[0]} and {majors[1]}; use k")
    if saturate and types[0] != "i32":
        raise AtomError(f"saturate needs integers, got D of type {types[0]}")
    return _made(cta_group, m, n, types, source_a, letters, saturate)


@cache
def _made(
    cta_group: int, m: int, n: int, types: tuple[str, str, str], source_a: str, majors: str, saturate: bool
) -> MmaAtom:
    name = tcgen05_name(cta_group, m, n, types, source_a, majors, saturate)
    return atom(name, cta_group, m, n, types, source_a, majors, saturate)


def find_scaled_tcgen05(
    kind: str,
    cta_group: int,
    shape_mnk: tuple[int, int, int],
    types: tuple[str, str, str],
    factor: tuple[str, int] | None = None,
) -> MmaAtom:
    """Find the atom of ``tcgen05.mma`` with block scales.  A and B are k-major in shared memory.

    Args:
        kind: mxf8f6f4, mxf4 or mxf4nvf4.
        cta_group: 1, or 2 for a pair of blocks.
        shape_mnk: ``(M, N, K)``, of the pair if there is one.
        types: element types of D, A, B.
        factor: type of the scale factors, and elements along K that share one; None for the default of the kind.

    Raises:
        AtomError: there is no such atom.  The message lists the allowed values.

    >>> find_scaled_tcgen05("mxf4nvf4", 1, (128, 64, 64), ("f32", "f4E2M1FN", "f4E2M1FN")).name
    'SM100_MXF4NVF4_128x64x64_F32E2M1E2M1_UE4M3_VS16_SS_TN'
    """
    found = next((x for x in SCALED_KINDS if x.name == kind), None)
    if found is None:
        known = ", ".join([x.name for x in SCALED_KINDS])
        raise AtomError(f"{kind!r} is not a kind of tcgen05.mma with block scales; use one of {known}")
    d, a, b = types
    if d != "f32" or a not in found.elements or b not in found.elements:
        raise AtomError(f"kind {kind} has no D, A, B = {', '.join(types)}; use f32 and {', '.join(found.elements)}")
    factor = factor or found.factors[0]
    if factor not in found.factors:
        known = " or ".join([f"sf = {sf}, vec = {vec}" for sf, vec in found.factors])
        raise AtomError(f"kind {kind} has no scale factors sf = {factor[0]}, vec = {factor[1]}; use {known}")
    rows_m, step = {1: (128,), 2: (128, 256)}.get(cta_group, ()), 8 * cta_group
    m, n, k = shape_mnk
    is_wide = k == found.wide
    if is_wide:
        rows_m, step = rows_m[-1:], 2 * step
    if m not in rows_m or n % step or not step <= n <= 256 or k not in (found.depth, found.wide):
        wide = f", or of {found.wide} on {WIDE_ARCH}, with N a multiple of 16 (32)" if found.wide else ""
        raise AtomError(
            f"the shape is {m}x{n}x{k} with cta_group {cta_group}; kind {kind} needs M of 128 (or 256 with cta_group "
            f"2), N a multiple of 8 (16 with cta_group 2) up to 256, and K of {found.depth}{wide}"
        )
    return _made_scaled(found._replace(depth=k), cta_group, m, n, types, factor)


@cache
def _made_scaled(
    kind: ScaledKind, cta_group: int, m: int, n: int, types: tuple[str, str, str], factor: tuple[str, int]
) -> MmaAtom:
    sf, vec = factor
    letters, blocks = "".join([element(t).cute for t in types]), kind.depth // vec
    mnemonic = f"tcgen05.mma.cta_group::{cta_group}.kind::{kind.name}.block_scale.block{vec}"
    of_b = raw_layout((cta_group, (n, blocks)), (0, (1, n)))  # Each block of a pair has all factors of B.
    is_wide = kind.depth == kind.wide
    start = f"SM{103 if is_wide else 100}_{kind.name.upper()}_{'2SM_' if cta_group == 2 else ''}"
    name = f"{start}{m}x{n}x{kind.depth}_{letters}_{'UE4M3' if sf == 'ue4m3' else 'UE8M0'}_VS{vec}_SS_TN"
    return replace(
        _in_shared_memory(name, cta_group, (m, n, kind.depth), types, kind.name),
        emit=Emit(
            kind="tcgen05",
            mnemonic=mnemonic,
            intrinsic=f"llvm.nvvm.tcgen05.mma.shared.{kind.name}.block_scale.block{vec}",
            pieces=(("kind", kind.name), ("cta_group", cta_group), ("packed", kind.packed)),
        ),
        ptx=f"{mnemonic} [$d], $a, $b, $idesc, [$sfa], [$sfb], $accumulate;",
        ptx_version="8.8",
        arch=WIDE_ARCH if is_wide else TCGEN05,
        scales=Scales(sf, vec, halves(cta_group, m, blocks), of_b),
    )


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
