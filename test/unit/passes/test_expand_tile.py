"""Lowering of products and divides, evaluated: a product repeats its left operand, a divide splits it into tiles."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

import brute
import pytest
from brute import ALL, C, L
from expand_support import SCALE, Case, Outcome, any_layout, check, compact, loose, nest, shape
from test_expand_algebra import fits
from test_expand_index import ceil_quotient

from cute_dialect.dialect import tile
from cute_dialect.dialect.base import CuteOp

# ------------------------------------------------------------------------------------------------------------ products


def factor(r: Random) -> L:
    """Return a small random layout, compact or with gaps."""
    return compact(r, shape(r, limit=24), gaps=r.random() < 0.3)


def product_case(r: Random) -> Case:
    """Build a product of a static layout, possibly inside a composed one, and the layout that repeats it."""
    kind, a = any_layout(r, bases=False)
    a = brute.with_outer(a, factor(r)) if isinstance(a, C) else factor(r)
    b = compact(r, shape(r, limit=24), gaps=r.random() < 0.3)
    return Case([(kind, a), ("layout", b)], keep_static=[] if isinstance(a, C) else [0], static_outer=True)


def repeats(a: L, b: L) -> list[tuple[int, int]]:
    """Return the complement modes of ``a`` if ``b`` does not split them, else an empty list."""
    m = brute.complement_modes(a)
    if not all(fits(L(tuple(s for s, _ in m), 0), mode) for mode in brute.flat(b)):
        return []
    return m


def repeated(c: object, b: L, m: Sequence[tuple[int, int]]) -> int:
    """Return the offset of the copy of the left operand at coordinate ``c`` of ``b``."""
    return sum(brute.at_modes(i * d, list(m)) for i, (_, d) in zip(brute.leaves(c), brute.flat(b)))


def judge_product(case: Case, out: Outcome, pair: object) -> bool:
    """Compare a product with its definition. Return True if the product is defined.

    ``pair`` maps coordinates in the two operands to the coordinate in the result.
    """
    (_, whole), (_, b) = case.operands
    (got,) = out.results
    a, g = brute.outer(whole), brute.outer(got)
    if isinstance(whole, C):
        assert isinstance(got, C) and (got.inner, got.offset) == (whole.inner, whole.offset)
    m = repeats(a, b)
    if not m:
        return False
    assert brute.size(g.shape) == brute.size(a.shape) * brute.size(b.shape)
    for x in brute.coordinates(a.shape):
        for y in brute.coordinates(b.shape):
            assert brute.evaluate(pair(x, y), g) == brute.evaluate(x, a) + repeated(y, b, m), (x, y)
    return True


def product_check(op: type[CuteOp], pair: object, draw: object = product_case) -> None:
    seen = []

    def verdict(case: Case, out: Outcome) -> None:
        shape = brute.outer(out.results[0]).shape
        seen.append(judge_product(case, out, lambda x, y: pair(case, shape, x, y)))

    check(op, draw, verdict, examples=150, accepted=0.4, dynamic=0.2)
    assert sum(seen) > 0.2 * SCALE


def index_in(c: object, s: object) -> int:
    """Return the column-major index of a coordinate."""
    i, step = 0, 1
    for x, n in zip(brute.leaves(c), brute.leaves(s)):
        i, step = i + x * step, step * n
    return i


def spliced(x: object) -> tuple[object, ...]:
    return x if isinstance(x, tuple) else (x,)


def copies(case: Case, modes: tuple[object, ...], y: object) -> list[int]:
    """Return the index in each mode of a product that comes from coordinate ``y`` of the right operand."""
    s = case.operands[1][1].shape
    if isinstance(s, tuple):
        return list(map(index_in, y, s))
    indices = []
    for n in map(brute.size, modes[:-1]):  # A scalar right operand may be split into several modes.
        indices.append(y % n)
        y //= n
    return [*indices, y]


@pytest.mark.slow
@pytest.mark.parametrize("op", [tile.LogicalProductOp, tile.ZippedProductOp])
def test_logical_and_zipped_product(op: type[CuteOp]):
    def pair(case: Case, shape: object, x: object, y: object) -> object:
        return (x, index_in(y, case.operands[1][1].shape))

    product_check(op, pair)


@pytest.mark.slow
def test_tiled_product():
    def pair(case: Case, shape: object, x: object, y: object) -> object:
        return (x, *copies(case, shape[1:], y))

    product_check(tile.TiledProductOp, pair)


@pytest.mark.slow
def test_flat_product():
    def pair(case: Case, shape: object, x: object, y: object) -> object:
        return (*spliced(x), *copies(case, shape[len(spliced(x)) :], y))

    product_check(tile.FlatProductOp, pair)


def same_rank(r: Random) -> Case:
    """Build a product whose operands are both tuples, as products that pair modes require."""
    while True:
        case = product_case(r)
        if all(isinstance(brute.outer(x).shape, tuple) for _, x in case.operands):
            return case


def padded(case: Case, x: object, y: object) -> tuple[list[object], list[int], list[int]]:
    """Return per mode: the coordinate in the left operand, the index in the right one, and the right extent."""
    a, b = (brute.outer(v).shape for _, v in case.operands)
    rank = max(len(a), len(b))
    xs = [*x, *[0] * (rank - len(a))]
    ys = [*map(index_in, y, b), *[0] * (rank - len(b))]
    return xs, ys, [*map(brute.size, b), *[1] * (rank - len(b))]


@pytest.mark.slow
def test_blocked_product():
    def pair(case: Case, shape: object, x: object, y: object) -> object:
        xs, ys, _ = padded(case, x, y)
        return tuple(zip(xs, ys))

    product_check(tile.BlockedProductOp, pair, same_rank)


@pytest.mark.slow
def test_raked_product():
    def pair(case: Case, shape: object, x: object, y: object) -> object:
        xs, ys, sizes = padded(case, x, y)
        a = [*brute.outer(case.operands[0][1]).shape, *[1] * len(ys)]
        return tuple(j + n * index_in(i, s) for i, j, n, s in zip(xs, ys, sizes, a))

    product_check(tile.RakedProductOp, pair, same_rank)


# ------------------------------------------------------------------------------------------------------------- divides


def tiler_for(r: Random, n: int, *, exact: bool = True) -> L:
    """Return a random rank-1 tiler for ``n`` elements."""
    d = r.choice([x for x in range(1, n + 1) if n % x == 0])
    s = r.choice([x for x in range(1, n // d + 1) if (n // d) % x == 0])
    if not exact and r.random() < 0.5:
        return L(r.randint(1, 8), 1)
    return L(s, d)


def tiled_offset(t: L, n: int, i: int, j: int) -> int:
    """Return the offset in ``n`` of element ``i`` of tile ``j``. A tile and its complement cover each element once."""
    gap = t.stride if t.shape != 1 else 1
    rest = [(gap, 1), (1, gap * t.shape)] if t.shape != 1 else [(1, 1)]
    return i * t.stride + brute.at_modes(j, rest)


def pieces(t: L, n: int) -> int:
    """Return the number of tiles that cover ``n`` elements."""
    return brute.ceil(n, t.shape * t.stride) * t.stride if t.shape != 1 else n


@pytest.mark.slow
def test_logical_divide_by_a_layout():
    seen = []

    def draw(r: Random) -> Case:
        kind, a = any_layout(r, bases=False)
        return Case([(kind, a), ("layout", tiler_for(r, brute.size(brute.outer(a).shape)))])

    def verdict(case: Case, out: Outcome) -> None:
        (_, whole), (_, t) = case.operands
        (got,) = out.results
        a, g = brute.outer(whole), brute.outer(got)
        n = brute.size(a.shape)
        p = out.operands[1]
        if t.shape == 1 and p.shape != 1:  # A dynamic extent of 1 keeps its gap.
            return
        ok = fits(a, (t.shape, t.stride)) and fits(a, (t.stride, 1)) and fits(a, (n, t.shape * t.stride))
        seen.append(ok)
        tile_mode, rest_mode = brute.modes(g)
        if not ok:
            return
        assert brute.size(tile_mode.shape) == t.shape
        assert brute.size(rest_mode.shape) == pieces(t, n)
        covered = []
        for i in range(t.shape):
            for j in range(pieces(t, n)):
                at = tiled_offset(t, n, i, j)
                covered.append(at)
                assert brute.evaluate((i, j), g) == brute.evaluate(at, a), (i, j, at)
        assert sorted(covered) == list(range(n))  # Each element is covered exactly once.

    check(tile.LogicalDivideOp, draw, verdict, examples=250, accepted=0.5, dynamic=0.3)
    assert sum(seen) > 0.3 * SCALE


def mode_wise(r: Random, kind: str, *, underscores: bool) -> Case:
    a_kind, a = any_layout(r, bases=False)
    if r.random() < 0.5:
        s = tuple(r.choice((4, 6, 8, 12, 5)) for _ in range(r.randint(1, 3)))
        a_kind, a = "layout", r.choice((compact, loose))(r, s)
    while not isinstance(brute.outer(a).shape, tuple):
        a_kind, a = any_layout(r, bases=False)
    modes = brute.modes(brute.outer(a))
    tiler: list[object] = []
    for m in modes[: r.randint(1, len(modes))]:
        n = brute.size(m.shape)
        t = tiler_for(r, n, exact=False)
        if kind == "shape":
            tiler.append(r.choice((t.shape, r.randint(1, n + 2))))
        else:
            tiler.append(ALL if underscores and r.random() < 0.3 else t)
    return Case([(a_kind, a), (kind, tuple(tiler))])


def divided(mode: L, t: object, p: object) -> tuple[int, int, object] | None:
    """Return the tile size, number of tiles and offset of (i, j) in one mode, or None if they are undefined."""
    t = L(t, 1) if isinstance(t, int) else t
    n = brute.size(mode.shape)
    extent = p if not hasattr(p, "shape") else p.shape
    if t.shape == 1 and extent != 1:
        return None
    if not (fits(mode, (t.shape, t.stride)) and fits(mode, (t.stride, 1)) and fits(mode, (n, t.shape * t.stride))):
        return None
    return t.shape, pieces(t, n), lambda i, j: tiled_offset(t, n, i, j)


def judge_divide(case: Case, out: Outcome, arrange: object) -> bool:
    """Compare a divide with its definition. Return True if the divide is defined.

    ``arrange`` maps tile indices, rest indices and indices of surplus modes to the coordinate in the result.
    """
    (_, whole), (_, tiler) = case.operands
    (got,) = out.results
    a, g = brute.outer(whole), brute.outer(got)
    modes = brute.modes(a)
    facts = [divided(m, t, p) for m, t, p in zip(modes, tiler, out.operands[1]) if t != ALL]
    if ALL in tiler or None in facts:
        return False
    r = Random(str(case))
    for _ in range(60):
        ij = [(r.randrange(s), r.randrange(k)) for s, k, _ in facts]
        surplus = [r.randrange(brute.size(m.shape)) for m in modes[len(facts) :]]
        inside = [f[2](i, j) for f, (i, j) in zip(facts, ij)]
        want = sum(brute.evaluate(x, m) for x, m in zip([*inside, *surplus], modes) if x < brute.size(m.shape))
        if any(x >= brute.size(m.shape) for x, m in zip(inside, modes)):
            continue  # past the end of the mode
        at = arrange([i for i, _ in ij], [j for _, j in ij], surplus)
        assert brute.evaluate(at, g) == want, (at, want)
    return True


ARRANGED = {
    tile.LogicalDivideOp: lambda i, j, k: (*zip(i, j), *k),
    tile.ZippedDivideOp: lambda i, j, k: (tuple(i), (*j, *k)),
    tile.TiledDivideOp: lambda i, j, k: (tuple(i), *j, *k),
    tile.FlatDivideOp: lambda i, j, k: (*i, *j, *k),
}


@pytest.mark.sample("cute.logical_divide-shape")
@pytest.mark.parametrize("kind", ["shape", "tile"])
@pytest.mark.parametrize("op", list(ARRANGED), ids=lambda op: op.name)
def test_divide_mode_by_mode(op: type[CuteOp], kind: str):
    seen = []

    def verdict(case: Case, out: Outcome) -> None:
        seen.append(judge_divide(case, out, ARRANGED[op]))

    def draw(r: Random) -> Case:
        return mode_wise(r, kind, underscores=op is tile.LogicalDivideOp)

    check(op, draw, verdict, examples=150, accepted=0.5, dynamic=0.3)
    assert sum(seen) > 0.2 * SCALE


def test_underscore_keeps_a_mode():
    def verdict(case: Case, out: Outcome) -> None:
        (_, a), (_, tiler) = case.operands
        for m, t, g in zip(brute.modes(brute.outer(a)), tiler, brute.modes(brute.outer(out.results[0]))):
            assert t != ALL or g == m

    check(tile.LogicalDivideOp, lambda r: mode_wise(r, "tile", underscores=True), verdict, dynamic=0.3)


# ------------------------------------------------------------------------------------------------------- tile to shape


def test_tile_to_shape():
    seen = []

    def draw(r: Random) -> Case:
        block = compact(r, nest(r, [r.choice((1, 2, 3, 4)) for _ in range(r.randint(1, 3))], 0))
        rank = len(block.shape) if isinstance(block.shape, tuple) else 1
        rank += r.choice((0, 0, 1))
        sizes = [*map(brute.size, spliced(block.shape)), *[1] * 3][:rank]
        target = tuple(n * r.randint(1, 4) - (r.random() < 0.2 and n > 1) for n in sizes)
        order = list(range(rank))
        r.shuffle(order)
        operands = [("layout", block), ("shape", target)]
        if r.random() < 0.3:
            operands[0] = ("composed_layout", C(brute.S(2, 3, 3), r.choice((0, 64)), block))
        if r.random() < 0.6:
            operands.append(("int_tuple", tuple(order)))
        return Case(operands, keep_static=[2])

    def verdict(case: Case, out: Outcome) -> None:
        a, target = brute.outer(case.operands[0][1]), case.operands[1][1]
        order = case.operands[2][1] if len(case.operands) == 3 else tuple(range(len(target)))
        g = brute.outer(out.results[0])
        block = [*brute.modes(a), *[L(1, 0)] * (len(target) - len(brute.modes(a)))]
        counts = tuple(ceil_quotient(n, m.shape) for n, m in zip(target, block))
        strides = brute.ordered(counts, order)
        m = brute.complement_modes(a)
        assert all(gap == 1 for gap, _ in m)  # A compact block has no gaps.
        seen.append(1)
        for at in brute.coordinates(tuple(brute.size(b.shape) for b in block)):
            for n in brute.coordinates(counts):
                start = sum(x * d for x, d in zip(n, strides)) * m[-1][1]
                want = sum(brute.evaluate(x, b) for x, b in zip(at, block)) + start
                assert brute.evaluate(tuple(zip(at, n)), g) == want, (at, n)

    check(tile.TileToShapeOp, draw, verdict, examples=200, accepted=0.5, dynamic=0.25)
    assert len(seen) > 0.5 * SCALE
