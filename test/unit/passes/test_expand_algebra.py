"""Lowering of the layout algebra, evaluated: composition composes functions, inverses invert, slices add up."""

from __future__ import annotations

from math import gcd
from random import Random

import brute
import pytest
from brute import ALL, C, E, L, S
from expand_support import (
    SCALE,
    Case,
    Outcome,
    any_layout,
    based,
    check,
    compact,
    composed,
    coordinate,
    layout,
    loose,
    nest,
    shape,
    split,
)
from test_expand_index import ceil_quotient
from xdsl.dialects.builtin import IntegerAttr, i32

from cute_dialect.algebra.leaf import Dyn
from cute_dialect.algebra.values import ComposedLayout
from cute_dialect.dialect import algebra

# ---------------------------------------------------------------------------------------------------------- composition


def dividing(r: Random, n: int) -> tuple[int, int]:
    """Return a random extent and stride whose product divides ``n``."""
    d = r.choice([x for x in range(1, n + 1) if n % x == 0])
    s = r.choice([x for x in range(1, n // d + 1) if (n // d) % x == 0])
    return s, d


def right_hand(r: Random, n: int) -> L:
    """Return a random right operand for the composition with a layout of ``n`` elements."""
    if r.random() < 0.4:  # A compact layout whose extents are factors of the size.
        factors = split(r, n, r.randint(1, 3))
        return compact(r, nest(r, factors))
    modes = [dividing(r, n) for _ in range(r.randint(1, 2))]
    s = nest(r, [m[0] for m in modes])
    return L(s, brute.rebuild(s, iter([m[1] for m in modes])))


def same_function(got: L | C, values: object, size: int) -> None:
    """Assert that the layout maps every index to ``values(index)``."""
    assert brute.size(brute.outer(got).shape) == size
    for i in range(size):
        assert brute.norm(brute.evaluate(i, got)) == brute.norm(values(i)), i


def fits(a: L | C, through: tuple[int, int | E]) -> bool:
    """Return True if the composition of ``a`` with the mode ``through`` equals the composition of their functions.

    The extent and stride of the mode must divide the extents of ``a`` or be multiples of them. Ops check this only for
    static values.
    """
    s, d = through
    extents = brute.leaves(brute.outer(a).shape)
    if not isinstance(d, int) or any(isinstance(x, E) for x in brute.leaves(brute.outer(a).stride)):
        return False
    d = abs(d)
    for n in extents[:-1]:
        if d == 0:
            return True
        if d >= n:
            if d % n:
                return False
            d //= n
            continue
        if n % d:
            return False
        n //= d
        if s <= n:
            return n % s == 0
        if s % n:
            return False
        s, d = s // n, 1
    return True


def composed_mode_by_mode(a: L | C, b: L, got: L | C) -> None:
    """Assert that ``got`` at a coordinate is the sum of ``a`` over the modes of ``b``."""
    inner, got_inner = brute.outer(a), brute.outer(got)
    assert brute.size(got_inner.shape) == brute.size(b.shape)
    if isinstance(a, C):
        assert isinstance(got, C) and (got.inner, got.offset) == (a.inner, a.offset)
    for c in brute.coordinates(b.shape):
        want: object = ()
        for i, (_, d) in zip(brute.leaves(c), brute.flat(b)):
            want = brute.plus(want, brute.evaluate(brute.times(i, d), inner))
        assert brute.norm(brute.evaluate(c, got_inner)) == brute.norm(want), c


@pytest.mark.slow
@pytest.mark.parametrize("bases", [False, True])
def test_composition_with_a_layout(bases: bool):
    judged = []

    def draw(r: Random) -> Case:
        kind, a = any_layout(r, bases=bases)
        return Case([(kind, a), ("layout", right_hand(r, brute.size(brute.outer(a).shape)))])

    def verdict(case: Case, out: Outcome) -> None:
        (_, a), (_, b) = case.operands
        if all(fits(a, m) for m in brute.flat(b)):
            judged.append(1)
            composed_mode_by_mode(a, b, out.results[0])

    check(algebra.CompositionOp, draw, verdict, examples=250, accepted=0.5, dynamic=0.3)
    assert len(judged) > 0.3 * SCALE


@pytest.mark.slow
def test_composition_reads_all_of_a_layout_in_another_order():
    def draw(r: Random) -> Case:
        kind, a = any_layout(r, bases=False)
        return Case([(kind, a), ("layout", compact(r, nest(r, split(r, brute.size(brute.outer(a).shape), 2))))])

    def verdict(case: Case, out: Outcome) -> None:
        (_, a), (_, b) = case.operands
        if all(fits(a, m) for m in brute.flat(b)):
            same_function(out.results[0], lambda i: brute.evaluate(brute.evaluate(i, b), a), brute.size(b.shape))

    check(algebra.CompositionOp, draw, verdict, examples=150, accepted=0.5, dynamic=0.3)


def test_composition_with_negative_and_zero_strides():
    def draw(r: Random) -> Case:
        a = loose(r, nest(r, [r.choice((2, 4, 8)) for _ in range(r.randint(1, 3))]))
        s, d = dividing(r, brute.size(a.shape))
        return Case([("layout", a), ("layout", r.choice((L(s, d), L((2, s), (0, d)), L((s, 2), (d, 0)))))])

    def verdict(case: Case, out: Outcome) -> None:
        (_, a), (_, b) = case.operands
        if all(fits(a, m) for m in brute.flat(b)):
            composed_mode_by_mode(a, b, out.results[0])

    check(algebra.CompositionOp, draw, verdict, examples=120, accepted=0.4, dynamic=0.25)


@pytest.mark.sample("tile")
@pytest.mark.parametrize("kind", ["tile", "shape"])
def test_composition_mode_by_mode(kind: str):
    def draw(r: Random) -> Case:
        a = any_layout(r, bases=False)
        while not isinstance(brute.outer(a[1]).shape, tuple):
            a = any_layout(r, bases=False)
        rest = brute.modes(brute.outer(a[1]))[: r.randint(1, 3)]

        def slot(m: L) -> object:
            s, d = dividing(r, brute.size(m.shape))
            return s if kind == "shape" else r.choice((ALL, L(s, d)))

        return Case([a, (kind, tuple(map(slot, rest)))])

    def verdict(case: Case, out: Outcome) -> None:
        (_, a), (_, tiler) = case.operands
        (got,) = out.results
        b, g = brute.outer(a), brute.outer(got)
        assert len(g.shape) == len(tiler)
        if isinstance(a, C):
            assert isinstance(got, C) and (got.inner, got.offset) == (a.inner, a.offset)
        for m, t, q in zip(brute.modes(b), tiler, brute.modes(g)):
            if t == ALL:
                assert q == m
            else:
                through = L(t, 1) if isinstance(t, int) else t
                if fits(m, (through.shape, through.stride)):
                    composed_mode_by_mode(m, through, q)

    check(algebra.CompositionOp, draw, verdict, examples=120, dynamic=0.3)


# ------------------------------------------------------------------------------------------------- coalesce and regroup


def test_coalesce():
    def draw(r: Random) -> Case:
        a = any_layout(r)
        if r.random() < 0.5:
            return Case([a])

        def profile(s: object) -> object:
            if isinstance(s, tuple) and r.random() < 0.6:
                return tuple(map(profile, s[: r.randint(0, len(s))]))
            return 1

        return Case([a, ("coord", profile(brute.outer(a[1]).shape))])

    def keeps(profile: object, source: object, result: object) -> None:
        if isinstance(profile, tuple):
            assert isinstance(result, tuple) and len(result) == len(source)
            for p, s, q in zip(profile, source, result):
                keeps(p, s, q)
            assert result[len(profile) :] == source[len(profile) :]
        else:
            assert brute.size(result) == brute.size(source)
            assert not isinstance(result, tuple) or not any(isinstance(x, tuple) for x in result)

    def verdict(case: Case, out: Outcome) -> None:
        a, (got,) = case.operands[0][1], out.results
        same_function(got, lambda i: brute.evaluate(i, a), brute.size(brute.outer(a).shape))
        profile = case.operands[1][1] if len(case.operands) == 2 else 0
        keeps(profile, brute.outer(a).shape, brute.outer(got).shape)

    check(algebra.CoalesceOp, draw, verdict, examples=200, dynamic=0.3)


def test_flatten():
    from test_expand_access import INDEXABLE, sub, value

    def verdict(case: Case, out: Outcome) -> None:
        ((kind, x),) = case.operands

        def flat(t: object) -> object:
            return tuple(brute.leaves(t)) if isinstance(t, tuple) else t

        assert out.results == (flat(x) if kind == "tile" else sub(x, flat),)

    check(algebra.FlattenOp, lambda r: Case([value(r, INDEXABLE)]), verdict, dynamic=0.3)


def test_group_modes():
    def draw(r: Random) -> Case:
        a = any_layout(r)
        s = brute.outer(a[1]).shape
        rank = len(s) if isinstance(s, tuple) else 1
        begin = r.randrange(rank)
        ends = {"begin": IntegerAttr(begin, i32), "end": IntegerAttr(r.randint(begin + 1, rank), i32)}
        return Case([a], ends)

    def verdict(case: Case, out: Outcome) -> None:
        begin, end = (case.properties[k].value.data for k in ("begin", "end"))

        def group(t: object) -> object:
            if not isinstance(t, tuple):  # A scalar is treated as a tuple of one mode.
                return (t,)
            modes = t
            return (*modes[:begin], modes[begin:end], *modes[end:])

        a = case.operands[0][1]
        b = brute.outer(a)
        assert out.results == (brute.with_outer(a, L(group(b.shape), group(b.stride))),)

    check(algebra.GroupModesOp, draw, verdict, dynamic=0.3)


# --------------------------------------------------------------------------------------------------------------- recast


def recast(new: int, old: int, s: int, d: int, dynamic: bool) -> tuple[int, int]:
    """Convert one leaf mode from elements of ``old`` bits to elements of ``new`` bits."""
    if new == old:
        return s, d
    if old % new == 0:
        n = old // new
        return (s * n, d) if not dynamic and abs(d) == 1 else (s, d * n)
    if new % old == 0:
        n = new // old
        if dynamic:
            q = brute.quotient(d, n)
            return s, q or (d > 0) - (d < 0)
        if d == 0:
            return s, 0
        return brute.ceil(s, brute.ceil(n, abs(d))), brute.ceil(abs(d), n) * (1 if d > 0 else -1)
    g = gcd(new, old)
    s, d = recast(new // g, 1, s, d, dynamic)
    return recast(1, old // g, s, d, dynamic)


@pytest.mark.slow
def test_recast_layout():
    def draw(r: Random) -> Case:
        if r.random() < 0.3:
            inner = S(r.choice((1, 2, 3)), r.choice((2, 3, 4)), 3)
            kind, a = "composed_layout", C(inner, r.choice((0, 8, 16)), compact(r, shape(r)))
        else:
            kind, a = "layout", r.choice((compact, loose))(r, shape(r))
        new, old = (r.choice((8, 16, 24, 32, 48, 64)) for _ in range(2))
        return Case([(kind, a)], {"new_type_bits": IntegerAttr(new, i32), "old_type_bits": IntegerAttr(old, i32)})

    def verdict(case: Case, out: Outcome) -> None:
        new, old = (case.properties[k].value.data for k in ("new_type_bits", "old_type_bits"))
        a, (got,), p = case.operands[0][1], out.results, out.operands[0]
        p = p.outer if isinstance(p, ComposedLayout) else p
        dynamic = [isinstance(d, Dyn) for d in brute.leaves(p.stride)]
        want = [recast(new, old, s, d, u) for (s, d), u in zip(brute.flat(brute.outer(a)), dynamic)]
        assert brute.flat(brute.outer(got)) == want
        if isinstance(a, C):  # The bit addresses must be unchanged.
            assert isinstance(got, C) and got.offset * new == a.offset * old
            assert got.inner.b == a.inner.b and got.inner.s == a.inner.s
            assert (new << got.inner.m) == (old << a.inner.m)

    check(algebra.RecastLayoutOp, draw, verdict, examples=250, accepted=0.5, dynamic=0.25)


def test_recast_to_smaller_elements_covers_the_same_bits():
    def draw(r: Random) -> Case:
        bits = {"new_type_bits": IntegerAttr(8, i32), "old_type_bits": IntegerAttr(32, i32)}
        return Case([("layout", compact(r, shape(r, limit=60)))], bits)

    def verdict(case: Case, out: Outcome) -> None:
        p = out.operands[0]
        if brute.leaves(p.stride).count(1) != 1:  # A dynamic stride of 1 is only scaled.
            return
        a, (got,) = case.operands[0][1], out.results
        assert set(brute.values(got)) == {4 * x + k for x in brute.values(a) for k in range(4)}

    check(algebra.RecastLayoutOp, draw, verdict, dynamic=0.25)


# ------------------------------------------------------------------------------------------------------- slice and dice


def test_slice_of_trees():
    def draw(r: Random) -> Case:
        s = shape(r)
        kind = r.choice(("shape", "stride", "int_tuple", "coord"))
        tree = based(r, s).stride if kind == "stride" else s
        return Case([(kind, tree), ("coord", coordinate(r, s, underscores=True))])

    def verdict(case: Case, out: Outcome) -> None:
        (_, t), (_, c) = case.operands
        assert out.results == (brute.slice_tree(c, t),)

    check(algebra.SliceOp, draw, verdict, dynamic=0.2)


def free(c: object, at: object) -> object:
    """Fill the free modes of coordinate ``c`` from ``at``, a coordinate in the slice."""
    if c == ALL:
        return at
    return brute.fill(c, iter(at))


def test_slice_of_a_layout_and_its_offset():
    def draw(r: Random) -> Case:
        a = layout(r)
        return Case([("layout", a), ("coord", coordinate(r, a.shape, underscores=True))])

    def verdict(case: Case, out: Outcome) -> None:
        (_, a), (_, c) = case.operands
        (got,) = out.results
        base = brute.evaluate(c, a)
        for at in brute.coordinates(got.shape):
            whole = brute.evaluate(free(c, at), a)
            assert brute.norm(brute.plus(base, brute.evaluate(at, got))) == brute.norm(whole)

    check(algebra.SliceOp, draw, verdict, examples=150, dynamic=0.2)


def test_slice_of_a_composed_layout():
    def draw(r: Random) -> Case:
        a = composed(r)
        while not isinstance(a.inner, L):
            a = composed(r)
        return Case([("composed_layout", a), ("coord", coordinate(r, a.outer.shape, underscores=True))])

    def verdict(case: Case, out: Outcome) -> None:
        (_, a), (_, c) = case.operands
        (got,) = out.results
        for at in brute.coordinates(got.outer.shape):
            assert brute.evaluate(at, got) == brute.evaluate(free(c, at), a)

    check(algebra.SliceOp, draw, verdict, examples=120, dynamic=0.2)


def fields(z: S) -> int:
    """Return the mask of the address bits that a swizzle reads or changes."""
    mask = ((1 << z.b) - 1) << z.m
    return mask | (mask << abs(z.s))


def swizzled_case(r: Random) -> Case:
    b = r.choice((1, 2, 3))
    z = S(b, r.choice((0, 1, 2, 4)), r.choice((b, b + 1, -b, 3 if b < 3 else 4)))
    s = nest(r, [r.choice((1, 2, 4, 8)) for _ in range(r.randint(2, 4))])
    a = compact(r, s)
    c = coordinate(r, s, underscores=True)
    while brute.holes(c) == 0 or any(i >= n for i, n in in_bounds(c, s)):
        c = coordinate(r, s, underscores=True)
    # The offset is XORed with the index, so its bits must not overlap those of the layout's range.
    offset = r.choice((0, 0, brute.size(s) * r.choice((1, 2, 3, 5))))
    return Case([("composed_layout", C(z, offset, a)), ("coord", c)], static_outer=True)


def in_bounds(c: object, s: object) -> list[tuple[int, int]]:
    if isinstance(c, tuple):
        return [x for ci, si in zip(c, s) for x in in_bounds(ci, si)]
    return [] if c == ALL else [(c, brute.size(s))]


def pointer_offset(case: Case, out: Outcome) -> int:
    """Return the offset that the slice adds to the pointer, for a plain or composed result."""
    (_, a), (_, c) = case.operands
    (got,) = out.results
    if set(brute.leaves(c)) == {ALL}:
        return 0
    f = brute.evaluate(c, a.outer)
    active = fields(a.inner)
    rest = f & ~active
    return rest if isinstance(got, C) else brute.swizzle(a.inner, a.offset ^ (f & active)) + rest


@pytest.mark.slow
def test_slice_of_a_swizzled_layout():
    shapes = {"plain": 0, "composed": 0}

    def verdict(case: Case, out: Outcome) -> None:
        (_, a), (_, c) = case.operands
        (got,) = out.results
        shapes["composed" if isinstance(got, C) else "plain"] += 1
        base = pointer_offset(case, out)
        kept = list(brute.coordinates(brute.slice_tree(c, a.outer.shape)))
        assert len(kept) == brute.size(brute.outer(got).shape)
        for i, at in enumerate(kept):
            assert base + brute.evaluate(i, got) == brute.evaluate(free(c, at), a), (at, base)

    check(algebra.SliceOp, swizzled_case, verdict, examples=500, accepted=0.5, dynamic=0.25)
    assert min(shapes.values()) > 0.2 * SCALE, shapes


def test_dice():
    def draw(r: Random) -> Case:
        kind, x = r.choice((("layout", layout(r)), ("composed_layout", composed(r)), ("shape", shape(r))))
        s = brute.outer(x).shape if kind != "shape" else x
        return Case([(kind, x), ("coord", coordinate(r, s, underscores=True))], keep_static=[1])

    def verdict(case: Case, out: Outcome) -> None:
        (kind, x), (_, c) = case.operands
        if kind == "shape":
            assert out.results == (brute.dice_tree(c, x),)
            return
        b = brute.outer(x)
        want = L(brute.dice_tree(c, b.shape), brute.dice_tree(c, b.stride))
        assert out.results == (brute.with_outer(x, want),)

    check(algebra.DiceOp, draw, verdict, examples=120, dynamic=0.2)


# --------------------------------------------------------------------------------------------- complement and inverses


def test_complement():
    def draw(r: Random) -> Case:
        return Case([("layout", compact(r, shape(r, limit=60), gaps=True))], keep_static=[0])

    def verdict(case: Case, out: Outcome) -> None:
        a, (got,) = case.operands[0][1], out.results
        m = brute.complement_modes(a)
        for i in range(2 * brute.size(got.shape)):
            assert brute.evaluate(i, got) == brute.at_modes(i, m)

    check(algebra.ComplementOp, draw, verdict, dynamic=0.0)


def test_complement_in_a_cotarget():
    def draw(r: Random) -> Case:
        s = shape(r, limit=40)
        a = compact(r, s)
        factor = r.choice((1, 1, 2, 4))
        a = L(s, brute.rebuild(s, iter([d * factor for d in brute.leaves(a.stride)])))
        target = nest(r, [brute.size(s) * r.choice((1, 2, 3)), r.choice((1, 2, 5))], 0)
        other = ("shape", target) if r.random() < 0.7 else ("layout", compact(r, target))
        rank_one = not isinstance(s, tuple) or len(brute.leaves(s)) == 1
        return Case([("layout", a), other], keep_static=[] if rank_one or r.random() < 0.2 else [0])

    def verdict(case: Case, out: Outcome) -> None:
        (_, a), (_, m) = case.operands
        (got,) = out.results
        p = out.operands[0]
        # Modes with a static extent of 1 or a static stride of 0 are skipped. Dynamic modes always count.
        modes = [
            (s, d)
            for (s, d), ps, pd in zip(brute.flat(a), brute.leaves(p.shape), brute.leaves(p.stride))
            if ps != 1 and pd != 0
        ]
        gaps, covered = [], 1
        for s, d in sorted(modes, key=lambda x: x[1]):
            gaps.append((d // covered, covered))
            covered = s * d
        rest = brute.size(ceil_quotient(m.shape if isinstance(m, L) else m, covered))
        for i in range(brute.size(got.shape)):
            assert brute.evaluate(i, got) == brute.at_modes(i, [*gaps, (rest, covered)])
        assert brute.size(got.shape) == brute.size(tuple(g for g, _ in gaps)) * rest

    check(algebra.ComplementOp, draw, verdict, examples=200, accepted=0.5, dynamic=0.2)


def test_right_inverse():
    def draw(r: Random) -> Case:
        a = r.choice((compact, compact, loose))(r, shape(r))
        return Case([("layout", a)], keep_static=[0] if r.random() < 0.5 else [])

    def verdict(case: Case, out: Outcome) -> None:
        a, (got,) = case.operands[0][1], out.results
        for i in range(brute.size(got.shape)):
            assert brute.evaluate(brute.evaluate(i, got), a) == i
        if all(isinstance(x, int) for x in brute.leaves(out.operands[0].stride)):
            covered = set(brute.values(a))
            contiguous = next(i for i in range(len(covered) + 1) if i not in covered)
            if sorted(brute.values(a)) == list(range(len(covered))):  # A compact layout is inverted completely.
                assert brute.size(got.shape) == contiguous

    check(algebra.RightInverseOp, draw, verdict, examples=150, dynamic=0.0)


def test_left_inverse():
    def draw(r: Random) -> Case:
        return Case([("layout", compact(r, shape(r), gaps=True))], keep_static=[0])

    def verdict(case: Case, out: Outcome) -> None:
        a, (got,) = case.operands[0][1], out.results
        for i in range(brute.size(a.shape)):
            assert brute.evaluate(brute.evaluate(i, a), got) == i

    check(algebra.LeftInverseOp, draw, verdict, examples=150, accepted=0.3, dynamic=0.0)
