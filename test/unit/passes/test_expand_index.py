"""Lowering of sizes, indices, coordinates, arithmetic and comparison, evaluated."""

from __future__ import annotations

from random import Random

import brute
import pytest
from brute import ALL, C, L
from expand_support import (
    Case,
    Outcome,
    any_layout,
    check,
    composed,
    coordinate,
    extents,
    int_tuple,
    layout,
    natural_coordinate,
    nest,
    shape,
)

from cute_dialect.algebra.leaf import Dyn
from cute_dialect.dialect import arith, sizes
from cute_dialect.dialect.asm import mode_attr
from cute_dialect.dialect.base import CuteOp


def mode_path(r: Random, x: object) -> dict[str, object]:
    """Return a random ``mode`` property, or no property."""
    tree = brute.outer(x).shape if isinstance(x, L | C) else x
    path: list[int] = []
    while isinstance(tree, tuple) and tree and r.random() < 0.5:
        path.append(r.randrange(len(tree)))
        tree = tree[path[-1]]
    return {"mode": mode_attr(path)} if path else {}


def part(case: Case, x: object) -> object:
    """Return the mode of ``x`` that the ``mode`` property selects."""
    x = brute.outer(x) if isinstance(x, C) else x
    for i in case.properties["mode"].get_values() if "mode" in case.properties else ():
        x = L(x.shape[i], x.stride[i]) if isinstance(x, L) else x[i]
    return x


def test_size():
    def draw(r: Random) -> Case:
        kind = r.choice(("shape", "int_tuple", "layout", "composed_layout"))
        x = {"shape": shape, "int_tuple": int_tuple, "layout": layout, "composed_layout": composed}[kind](r)
        return Case([(kind, x)], mode_path(r, x))

    def verdict(case: Case, out: Outcome) -> None:
        x = part(case, case.operands[0][1])
        assert out.results == (brute.size(x.shape if isinstance(x, L) else x),)

    check(sizes.SizeOp, draw, verdict, dynamic=0.4)


def test_cosize():
    def draw(r: Random) -> Case:
        kind, x = any_layout(r, layouts=False)
        return Case([(kind, x)], mode_path(r, x))

    def verdict(case: Case, out: Outcome) -> None:
        x = part(case, case.operands[0][1])
        assert out.results == (brute.size(brute.coshape(x)),)

    check(sizes.CosizeOp, draw, verdict, dynamic=0.4)


def test_cosize_covers_a_nonnegative_layout():
    def draw(r: Random) -> Case:
        s = shape(r)
        return Case([("layout", L(s, brute.rebuild(s, iter([r.choice((0, 1, 2, 5, 9)) for _ in brute.leaves(s)]))))])

    def verdict(case: Case, out: Outcome) -> None:
        assert out.results == (max(brute.values(case.operands[0][1])) + 1,)

    check(sizes.CosizeOp, draw, verdict, dynamic=0.4)


@pytest.mark.parametrize("kind", ["shape", "int_tuple"])
def test_tuple_product(kind: str):
    def verdict(case: Case, out: Outcome) -> None:
        assert out.results == (brute.size(case.operands[0][1]),)

    check(sizes.TupleProductOp, lambda r: Case([(kind, shape(r))]), verdict, dynamic=0.4)


@pytest.mark.parametrize("kind", ["shape", "int_tuple"])
def test_tuple_product_each(kind: str):
    def verdict(case: Case, out: Outcome) -> None:
        x = case.operands[0][1]
        assert out.results == (tuple(map(brute.size, x if isinstance(x, tuple) else (x,))),)

    check(sizes.TupleProductEachOp, lambda r: Case([(kind, shape(r))]), verdict, dynamic=0.4)


def evaluation(r: Random) -> Case:
    kind, x = any_layout(r)
    return Case([("coord", coordinate(r, brute.outer(x).shape, underscores=r.random() < 0.3)), (kind, x)])


def right_value(case: Case, out: Outcome) -> None:
    (_, c), (_, x) = case.operands
    (got,) = out.results
    assert brute.norm(got) == brute.norm(brute.evaluate(c, x))


def test_layout_eval():
    check(sizes.LayoutEvalOp, evaluation, right_value, examples=250, dynamic=0.4)


@pytest.mark.slow
def test_layout_eval_everywhere():
    def draw(r: Random) -> Case:
        case = evaluation(r)
        return Case([("coord", r.randrange(brute.size(brute.outer(case.operands[1][1]).shape))), case.operands[1]])

    check(sizes.LayoutEvalOp, draw, right_value, examples=250, dynamic=0.4)


def test_layout_eval_with_basis_strides():
    def draw(r: Random) -> Case:
        s = shape(r)
        return Case([("coord", coordinate(r, s)), ("layout", L(s, brute.identity(s)))])

    check(sizes.LayoutEvalOp, draw, right_value, dynamic=0.4)


def test_crd2idx_of_a_layout():
    check(sizes.Crd2IdxOp, evaluation, right_value, dynamic=0.4)


def test_crd2idx():
    def draw(r: Random) -> Case:
        s = shape(r)
        return Case([("coord", coordinate(r, s)), ("shape", s)])

    def verdict(case: Case, out: Outcome) -> None:
        (_, c), (_, s) = case.operands
        # A dynamic extent is not known to be 1, so its mode has the running product as its stride instead of 0.
        flat, p = [], 1
        for n, d in zip(brute.leaves(s), brute.leaves(out.operands[1])):
            flat.append(0 if d == 1 else p)
            p *= n
        strides = brute.rebuild(s, iter(flat))
        assert out.results == (brute.run(c, s, strides),)

    check(sizes.Crd2IdxOp, draw, verdict, examples=150, dynamic=0.4)


def test_idx2crd():
    def index(r: Random, s: object) -> object:
        if isinstance(s, tuple) and r.random() < 0.4:
            return tuple(index(r, t) for t in s)
        return r.randrange(brute.size(s) + 2)

    def draw(r: Random) -> Case:
        s = shape(r)
        return Case([("int_tuple", index(r, s)), ("shape", s)])

    def digits(i: object, s: object) -> object:
        if isinstance(i, tuple):
            return tuple(map(digits, i, s))
        if not isinstance(s, tuple):
            return i
        out = []
        for t in s[:-1]:
            i, rest = divmod(i, brute.size(t))
            out.append(digits(rest, t))
        return (*out, digits(i, s[-1]))

    def verdict(case: Case, out: Outcome) -> None:
        (_, i), (_, s) = case.operands
        assert out.results == (digits(i, s),)
        if not isinstance(i, tuple):
            strides = brute.rebuild(s, iter(brute.leaves(brute.column_major(s, 1))))
            if 1 not in brute.leaves(s):
                assert brute.run(out.results[0], s, strides) == i

    check(sizes.Idx2CrdOp, draw, verdict, examples=150, dynamic=0.4)


def test_increment_coord():
    def draw(r: Random) -> Case:
        s = shape(r)
        c = natural_coordinate(r, s, beyond=0)
        if r.random() < 0.5:  # Choose a coordinate whose increment carries.
            pairs = zip(brute.leaves(s), brute.leaves(c))
            c = brute.rebuild(s, iter([n - 1 if r.random() < 0.6 else x for n, x in pairs]))
        return Case([("coord", c), ("shape", s)])

    def verdict(case: Case, out: Outcome) -> None:
        (_, c), (_, s) = case.operands
        flat, limits = list(brute.leaves(c)), brute.leaves(s)
        for i, n in enumerate(limits):
            flat[i] += 1
            if flat[i] < n or i == len(limits) - 1:
                break
            flat[i] = 0
        assert out.results == (brute.rebuild(s, iter(flat)),)

    check(sizes.IncrementCoordOp, draw, verdict, examples=150, dynamic=0.4)


# ----------------------------------------------------------------------------------------------------------- arithmetic


def combined(a: object, b: object, f: object) -> object:
    if isinstance(a, tuple) and isinstance(b, tuple):
        n = min(len(a), len(b))
        return tuple(combined(x, y, f) for x, y in zip(a, b)) + a[n:] + b[n:]
    if isinstance(a, tuple):
        assert b == 0
        return a
    if isinstance(b, tuple):
        assert a == 0
        return b
    return f(a, b)


@pytest.mark.sample(every=2)
@pytest.mark.parametrize("kind", ["int_tuple", "shape"])
@pytest.mark.parametrize(("op", "sign"), [(arith.TupleAddOp, 1), (arith.TupleSubOp, -1)])
def test_tuple_arithmetic(op: type[CuteOp], sign: int, kind: str):
    def draw(r: Random) -> Case:
        a = int_tuple(r, low=50, high=99) if kind == "shape" else int_tuple(r)
        b = brute.rebuild(a, iter([r.randint(1, 40) for _ in brute.leaves(a)]))
        if isinstance(a, tuple):
            a, b = (a[: r.randint(1, len(a))], b) if r.random() < 0.3 else (a, b[: r.randint(1, len(b))])
            b = 0 if kind == "int_tuple" and r.random() < 0.15 else b
        return Case([(kind, a), (kind, b)])

    def verdict(case: Case, out: Outcome) -> None:
        (_, a), (_, b) = case.operands
        assert out.results == (combined(a, b, lambda x, y: x + sign * y),)

    check(op, draw, verdict, dynamic=0.3)


def divide(a: int, b: int) -> int:
    q = brute.quotient(a, b)
    return q or (1 if (a < 0) == (b < 0) else -1)


def test_shape_div():
    def draw(r: Random) -> Case:
        if r.random() < 0.4:
            a = extents(r, limit=2000)
            s = nest(r, a)
            if isinstance(s, tuple) and r.random() < 0.5:
                b = brute.rebuild(s, iter([r.choice([d for d in range(1, n + 1) if n % d == 0]) for n in a]))
            else:
                b = r.choice([d for d in range(1, 2 * brute.size(s)) if brute.size(s) % d == 0])
            return Case([("shape", s), ("shape", b)])
        return Case([("shape", r.choice((1, 2, 6, 12, 24))), ("shape", nest(r, extents(r, 2, 12)))])

    def quotient(a: object, b: object) -> object:
        if isinstance(a, tuple) and isinstance(b, tuple):
            return tuple(map(quotient, a, b))
        if isinstance(a, tuple):
            out = []
            for x in a:
                out.append(quotient(x, b))
                b = divide(b, brute.size(x))
            return tuple(out)
        return divide(a, brute.size(b))

    def verdict(case: Case, out: Outcome) -> None:
        (_, a), (_, b) = case.operands
        assert out.results == (quotient(a, b),)

    check(arith.ShapeDivOp, draw, verdict, examples=150, dynamic=0.3)


def ceil_quotient(a: object, b: object) -> object:
    if isinstance(a, tuple) and isinstance(b, tuple):
        return tuple(map(ceil_quotient, a, b)) + a[len(b) :]
    if isinstance(a, tuple):
        out = []
        for x in a:
            out.append(ceil_quotient(x, b))
            b = ceil_quotient(b, x)
        return tuple(out)
    return brute.ceil(a, brute.size(b))


def test_ceil_div():
    def draw(r: Random) -> Case:
        kind = r.choice(("shape", "int_tuple"))
        a = nest(r, [r.randint(1, 40) for _ in range(3)], 1)
        if kind == "int_tuple" and r.random() < 0.3:
            a = r.randint(-30, 30)
        tiler = nest(r, [r.randint(1, 9) for _ in range(r.randint(1, 2))], 0)
        return Case([(kind, a), (r.choice(("shape", "int_tuple")), tiler)])

    def verdict(case: Case, out: Outcome) -> None:
        (_, a), (_, b) = case.operands
        assert out.results == (ceil_quotient(a, b),)

    check(arith.CeilDivOp, draw, verdict, examples=150, dynamic=0.4)


def test_ceil_div_by_a_tile():
    def draw(r: Random) -> Case:
        a = tuple(r.randint(1, 40) for _ in range(r.randint(1, 3)))
        tiler = tuple(L(r.randint(1, 8), r.choice((1, 1, 2, 3))) for _ in range(r.randint(1, len(a))))
        return Case([("shape", a), ("tile", tiler)])

    def verdict(case: Case, out: Outcome) -> None:
        (_, a), (_, tiler) = case.operands
        (got,) = out.results
        assert isinstance(got, tuple) and len(got) == len(a) and got[len(tiler) :] == a[len(tiler) :]
        for n, t, q, p in zip(a, tiler, got, out.operands[1]):
            # The mode is covered by spans of gap * t.shape elements, each of which holds ``gap`` interleaved tiles.
            gap = 1 if p.shape == 1 else t.stride
            assert brute.size(q) == gap * brute.ceil(n, gap * t.shape), (n, t, q)

    check(arith.CeilDivOp, draw, verdict, examples=120, dynamic=0.3)


# ----------------------------------------------------------------------------------------------------------- comparison


def near(r: Random, x: int) -> int:
    return x + r.choice((0, 0, 1, 1, 2, -1))


def test_elem_less():
    def draw(r: Random) -> Case:
        a = nest(r, [r.randint(1, 9) for _ in range(r.randint(1, 4))])
        b = brute.rebuild(a, iter([max(1, near(r, x) + r.choice((0, 1))) for x in brute.leaves(a)]))
        return Case([(r.choice(("coord", "shape", "int_tuple")), a), (r.choice(("coord", "shape", "int_tuple")), b)])

    def verdict(case: Case, out: Outcome) -> None:
        (_, a), (_, b) = case.operands
        assert out.results == (int(all(x < y for x, y in zip(brute.leaves(a), brute.leaves(b)))),)

    check(arith.ElemLessOp, draw, verdict, examples=150, dynamic=0.5)


def test_equal():
    def draw(r: Random) -> Case:
        kind = r.choice(("coord", "shape", "int_tuple", "stride", "layout"))
        if kind == "layout":
            a: object = layout(r)
            b = L(a.shape, a.stride) if r.random() < 0.6 else layout(r)
            if r.random() < 0.3:
                b = L(a.shape, brute.column_major(a.shape))
        else:
            a = coordinate(r, shape(r), underscores=True) if kind == "coord" else shape(r)
            b = a
            if r.random() < 0.5:
                b = brute.rebuild(a, iter([x if x == ALL else max(1, near(r, x)) for x in brute.leaves(a)]))
            elif r.random() < 0.2:
                b = shape(r)
        return Case([(kind, a), (kind, b)])

    def verdict(case: Case, out: Outcome) -> None:
        (_, a), (_, b) = case.operands
        assert out.results == (int(a == b),)

    check(arith.EqualOp, draw, verdict, examples=200, dynamic=0.5)


def test_dynamic_widths_were_mixed():
    """The random widths include sums of 32-bit and 64-bit values, which are lowered with an extension."""
    seen = set()

    def verdict(case: Case, out: Outcome) -> None:
        widths = {x.width for p in out.operands for x in brute.leaves(p) if isinstance(x, Dyn)}
        seen.add(frozenset(widths))
        assert len(widths) < 2 or "arith.extsi" in out.lowered or "i64" in out.lowered

    case = Case([("shape", (7, 8)), ("shape", (1, 2))])
    check(arith.TupleAddOp, lambda r: case, verdict, dynamic=0.3, keep_text=True)
    assert frozenset({32, 64}) in seen
