"""Tiled copies and tiled MMAs compared with the fragment formulas of the hardware, thread by thread."""

from __future__ import annotations

from itertools import product

import pytest

from cute_dialect.algebra import (
    UNDERSCORE,
    AlgebraError,
    ComposedLayout,
    Dyn,
    Layout,
    Swizzle,
    TiledMma,
    evaluate,
    is_static,
    local_partition,
    local_tile,
    make_identity_layout,
    make_layout_tv,
    retile,
    size,
    thread_slice,
    tile_to_thread,
    to_text,
)
from cute_dialect.algebra.tiled_copy import reference_map, thread_coord

WARP = Layout("32:1")
ATOM = (16, 8, 16)
"""mma.sync.m16n8k16 (PTX ISA, "Matrix fragments for mma.m16n8k16 with floating point type")."""
TV = {
    "A": Layout("((4,8),(2,2,2)):((32,1),(16,8,128))"),
    "B": Layout("((4,8),(2,2)):((16,1),(8,64))"),
    "C": Layout("((4,8),(2,2)):((32,1),(16,8))"),
}


def in_atom(operand: str, lane: int, i: int) -> tuple[int, int]:
    """Return the coordinates, in an operand's tile, of value ``i`` of a lane."""
    g, q = lane // 4, lane % 4
    if operand == "A":
        return g + 8 * (i // 2 % 2), 2 * q + i % 2 + 8 * (i // 4)
    if operand == "B":
        return g, 2 * q + i % 2 + 8 * (i // 2)
    return g + 8 * (i // 2), 2 * q + i % 2


VALUES = {"A": 8, "B": 4, "C": 4}
ATOM_EXTENT = {"A": (16, 16), "B": (8, 16), "C": (16, 8)}


@pytest.mark.parametrize("operand", ["A", "B", "C"])
@pytest.mark.parametrize("dynamic", [False, True])
def test_mma_partition(operand: str, dynamic: bool) -> None:
    mma = TiledMma(ATOM, WARP, Layout("(2,2,1):(1,2,0)"))
    assert mma.tile_size == (32, 16, 16)
    shape = {"A": (64, 32), "B": (32, 32), "C": (64, 32)}[operand]
    matrix = Layout(shape, (shape[1], 1))
    given = Layout(shape, (Dyn(div=32), 1)) if dynamic else matrix
    extent = ATOM_EXTENT[operand]
    for thread in (0, 1, 5, 37, 64, 101, 127):
        part, offset = mma.partition(operand, given, TV[operand], thread)
        warp = thread // 32
        warps = {"A": (warp % 2, 0), "B": (warp // 2, 0), "C": (warp % 2, warp // 2)}[operand]
        counts = {"A": (2, 1), "B": (2, 1), "C": (2, 2)}[operand]
        rests = [s // (e * n) for s, e, n in zip(shape, extent, counts)]
        if dynamic:
            assert to_text(part).count("?") > 0
            part = Layout(part.shape, _bound(part.stride, 32))
            offset = matrix_offset(thread, operand, warps, extent)
        for i, r0, r1 in product(range(VALUES[operand]), range(rests[0]), range(rests[1])):
            x, y = in_atom(operand, thread % 32, i)
            x += extent[0] * (warps[0] + counts[0] * r0)
            y += extent[1] * (warps[1] + counts[1] * r1)
            assert offset + evaluate((i, r0, r1), part) == matrix((x, y))


def matrix_offset(thread: int, operand: str, warps: tuple[int, int], extent: tuple[int, int]) -> int:
    x, y = in_atom(operand, thread % 32, 0)
    return 32 * (x + extent[0] * warps[0]) + y + extent[1] * warps[1]


def _bound(stride: object, number: int) -> object:
    """Replace each ``?`` in the strides of a row-major matrix by its divisor, which is its exact value here."""
    if isinstance(stride, tuple):
        return tuple([_bound(d, number) for d in stride])
    # Each dynamic stride equals its divisor: a number of rows times the leading dimension of 32.
    return stride.div if isinstance(stride, Dyn) else stride


def test_mma_layout_tv() -> None:
    mma = TiledMma(ATOM, WARP, Layout("(2,2,1):(1,2,0)"))
    for operand, (i, j) in {"A": (0, 2), "B": (1, 2), "C": (0, 1)}.items():
        tv = mma.layout_tv(operand, TV[operand])
        tile = (mma.tile_size[i], mma.tile_size[j])
        assert size(tv[0]) == 128
        for thread in range(128):
            part, offset = mma.partition(operand, Layout(tile), TV[operand], thread)
            assert [evaluate((thread, v), tv) for v in range(size(tv[1]))] == [
                offset + part(v) for v in range(size(part))
            ]


def test_mma_threads_along_k_share_the_accumulator() -> None:
    mma = TiledMma(ATOM, WARP, Layout("(1,2,2):(0,1,2)"))
    tv = mma.layout_tv("C", TV["C"])
    for thread in range(64):
        assert all(evaluate((thread, v), tv) == evaluate((thread + 64, v), tv) for v in range(4))
        one, other = [mma.partition("C", Layout((16, 16)), TV["C"], t) for t in (thread, thread + 64)]
        assert one == other


def test_mma_with_gaps_between_the_threads() -> None:
    # The two atoms run on warps 0 and 2. Warps 1 and 3 have no partition.
    mma = TiledMma(ATOM, WARP, Layout("(2,1,1):(2,0,0)"))
    tv = mma.layout_tv("C", TV["C"])
    for thread in (0, 31, 64, 95):
        part, offset = mma.partition("C", Layout((32, 8)), TV["C"], thread)
        assert [evaluate((thread, v), tv) for v in range(4)] == [offset + part(v) for v in range(4)]


def test_mma_permutation() -> None:
    permuted = Layout("(8,2,2):(1,16,8)")
    mma = TiledMma(ATOM, WARP, Layout("(1,2,1):(0,1,0)"), (UNDERSCORE, permuted, UNDERSCORE))
    assert mma.tile_size == (16, 32, 16)
    matrix = Layout("(16,64):(64,1)")
    seen: set[int] = set()
    for thread in range(64):
        part, offset = mma.partition("C", matrix, TV["C"], thread)
        warp = thread // 32
        expected = set()
        for i, r, tile in product(range(4), range(2), range(2)):
            m, n = in_atom("C", thread % 32, i)
            expected.add(64 * m + permuted(n + 8 * warp + 16 * r) + 32 * tile)
        got = {offset + part(v) for v in range(size(part))}
        assert got == expected
        seen |= got
    assert len(seen) == 16 * 64


def test_mma_of_a_coordinate_tensor() -> None:
    mma = TiledMma(ATOM, WARP, Layout("(2,2,1):(1,2,0)"))
    part, offset = mma.partition("C", make_identity_layout((64, 32)), TV["C"], 37)
    assert (part, offset) == (Layout("((2,2),2,2):((1@1,8@0),32@0,16@1)"), (17, 2))


def test_mma_errors() -> None:
    with pytest.raises(AlgebraError, match="rank 3"):
        TiledMma(ATOM, WARP, Layout("(2,2):(1,2)"))
    with pytest.raises(AlgebraError, match="rank 2 or more"):
        TiledMma(ATOM, WARP, Layout("(2,2,1):(1,2,0)")).partition("C", Layout(64), TV["C"], 0)


# ------------------------------------------------------------------------------------------------------ tiled copies


def test_ldmatrix_of_an_mma_operand() -> None:
    """In ldmatrix.x4, thread t passes the address of row t%8 of matrix t//8 and receives one A fragment of m16n8k16."""
    src, dst = Layout("(32,8):(8,1)"), Layout("(32,(2,4)):(2,(1,64))")
    mma = TiledMma(ATOM, WARP, Layout("(1,1,1):(0,0,0)"))
    tv = mma.layout_tv("A", TV["A"])
    x = Layout("(32,64):(64,1)")
    source = tile_to_thread(x, (16, 16), tv, (32, 8), reference_map(dst, src))
    target = tile_to_thread(x, (16, 16), tv, (32, 8), reference_map(dst, dst))
    for t in range(32):
        part, offset = thread_slice(source, t)
        matrix, row = t // 8, t % 8
        for v, r0, r1 in product(range(8), range(2), range(4)):
            m, k = row + 8 * (matrix % 2) + 16 * r0, 8 * (matrix // 2) + v + 16 * r1
            assert offset + evaluate((v, r0, r1), part) == x((m, k))
        got, at = thread_slice(target, t)
        fragment, begin = mma.partition("A", x, TV["A"], t)
        assert [at + got(i) for i in range(size(got))] == [begin + fragment(i) for i in range(size(fragment))]


@pytest.mark.parametrize(("operand", "atoms", "values"), [("A", "(2,2,1):(1,2,0)", 8), ("C", "(2,2,1):(1,2,0)", 2)])
def test_retile(operand: str, atoms: str, values: int) -> None:
    mma = TiledMma(ATOM, WARP, Layout(atoms))
    i, j = {"A": (0, 2), "C": (0, 1)}[operand]
    # Each tile of the copy covers two MMA atoms along N (K for operand A).
    tile = (mma.tile_size[i], mma.tile_size[j])
    x = Layout((64, 64), (64, 1))
    tv = mma.layout_tv(operand, TV[operand])
    copies = tile_to_thread(x, tile, tv, (1, values))
    for thread in (0, 33, 127):
        mine, begin = mma.partition(operand, x, TV[operand], thread)
        fragment = Layout(mine.shape)
        view = retile(fragment, tile, tv, values)
        theirs, at = thread_slice(copies, thread)
        assert size(view) == size(fragment) == size(theirs)
        assert [at + theirs(n) for n in range(size(theirs))] == [begin + mine(view(n)) for n in range(size(view))]


def test_retile_in_another_order() -> None:
    """A copy whose values span two MMA tiles along N takes them from two modes of the fragment."""
    mma = TiledMma((16, 8, 16), WARP, Layout("(1,1,1):(0,0,0)"), (16, 16, UNDERSCORE))
    x = Layout((16, 32), (32, 1))
    tv = mma.layout_tv("C", TV["C"])
    assert size(tv[1]) == 8
    copies = tile_to_thread(x, (16, 16), tv, (1, 2))
    for thread in (0, 7, 31):
        mine, begin = mma.partition("C", x, TV["C"], thread)
        view = retile(Layout(mine.shape), (16, 16), tv, 2)
        theirs, at = thread_slice(copies, thread)
        assert sorted(at + theirs(n) for n in range(16)) == sorted(begin + mine(view(n)) for n in range(16))


def test_tiled_copy_errors() -> None:
    tiler, tv = make_layout_tv(Layout("(4,8):(8,1)"), Layout("(1,4)"))
    with pytest.raises(AlgebraError, match="number of values is a multiple of the atom's 3"):
        tile_to_thread(Layout((8, 64)), tiler, tv, (1, 3))
    with pytest.raises(AlgebraError, match="without gap"):
        make_layout_tv(Layout("(4,8):(16,1)"), Layout("(1,4)"))
    with pytest.raises(AlgebraError, match="rank 2"):
        tile_to_thread(Layout((8, 64)), tiler, Layout(32))


def test_partition_with_a_dynamic_leading_dimension() -> None:
    tiler, tv = make_layout_tv(Layout("(4,32):(32,1)"), Layout("(4,4):(4,1)"))
    assert (tiler, to_text(tv)) == ((16, 128), "((32,4),(4,4)):((64,4),(16,1))")
    block = Layout((16, 128), (Dyn(32, 1), 1))
    part, offset = thread_slice(tile_to_thread(block, tiler, tv), Dyn(32, 1))
    assert to_text(part) == "((1,(4,4)),1,1):((0,(1,?)),0,0)"
    assert to_text(offset) == "?{div=4}"
    coordinates, at = thread_slice(tile_to_thread(make_identity_layout((16, 128)), tiler, tv), 74)
    assert to_text(coordinates) == "((1,(4,4)),1,1):((0,(1@1,1@0)),0,0)"
    assert at == (8, 40)


# ------------------------------------------------------------------------------------------------------------- tiles


def test_local_tile() -> None:
    matrix = Layout("(64,32):(32,1)")
    assert local_tile(matrix, (16, 8), (1, 2)) == (Layout("(16,8):(32,1)"), 528)
    assert local_tile(matrix, (16, 8), (1, UNDERSCORE)) == (Layout("(16,8,4):(32,1,8)"), 512)
    assert local_tile(matrix, (16, 8), (1,)) == (Layout("(16,8,4):(32,1,8)"), 512)
    # One tiler covers M, N and K. A has no N mode.
    assert local_tile(matrix, (16, 128, 8), (1, 5, 2), (1, UNDERSCORE, 1)) == (Layout("(16,8):(32,1)"), 528)
    swizzled = ComposedLayout(Swizzle(2, 0, 3), 0, Layout("(64,32):(32,1)"))
    tile, offset = local_tile(swizzled, (16, 8), (1, 2))
    for i, j in product(range(16), range(8)):
        assert evaluate((i, j), tile) + offset == swizzled(16 + i, 16 + j)
    with pytest.raises(AlgebraError, match="rank at most 2"):
        local_tile(matrix, (16, 8), (1, 2, 3))


def test_local_partition() -> None:
    matrix = Layout("(8,16):(16,1)")
    threads = Layout("((2,2),8):((8,16),1)")
    seen = []
    for t in range(32):
        part, offset = local_partition(matrix, threads, t)
        i, j = t // 8, t % 8
        assert [offset + part(n) for n in range(size(part))] == [
            matrix(i + 4 * a, j + 8 * b) for b in range(2) for a in range(2)
        ]
        seen += [offset + part(n) for n in range(size(part))]
    assert sorted(seen) == list(range(128))
    part, offset = local_partition(Layout((64, 64), (Dyn(div=8), 1)), Layout("(4,8):(8,1)"), Dyn())
    assert is_static(part.shape)
    assert to_text(part) == "(16,8):(?{div=32},8)"


def test_thread_coord() -> None:
    assert thread_coord(74, Layout("(32,2,2,1):(1,32,64,0)")) == (10, 0, 1, 0)
    assert thread_coord(13, Layout("((2,4),(2)):((1,2),(8))")) == ((1, 2), (1,))


def test_empty_tiles_and_basis_strides_are_rejected() -> None:
    """Reject empty fragments and tiles, thread layouts with basis strides, and projections deeper than the tiler."""
    for fragment, tiler, tv in (("8:0", 5, "():()"), ("():()", 4, "4:1"), ("4:2", (0, 1), "(2,2):(2,1)")):
        with pytest.raises(AlgebraError, match="expected a non-empty fragment, thread-value layout and tile"):
            retile(Layout(fragment), tiler, Layout(tv))
    with pytest.raises(AlgebraError, match="a copy atom of 0 values; an atom has at least one"):
        retile(Layout("8:0"), 24, Layout("(4,8):(8,1)"), 0)
    with pytest.raises(AlgebraError, match="expected a thread layout with integer strides, got the stride 1@0"):
        local_partition(Layout("(4,8):(1,4)"), Layout("(4,8):(1@0,1@1)"), 5)
    with pytest.raises(AlgebraError, match="expected a tree nested like the coordinate"):
        local_tile(Layout("(4,3):(-1,4)"), (0, 1), (-1, 4), (2, (3, 4)))
