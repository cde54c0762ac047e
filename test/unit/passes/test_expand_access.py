"""Lowering of constructors and accessors, evaluated and compared with Python functions on nested tuples."""

from __future__ import annotations

from random import Random

import brute
import pytest
from brute import ALL, C, L, S
from expand_support import (
    Case,
    Outcome,
    any_layout,
    based,
    check,
    compact,
    composed,
    coordinate,
    int_tuple,
    layout,
    loose,
    natural_coordinate,
    nest,
    shape,
)
from xdsl.dialects.builtin import IntegerAttr, UnitAttr, i32

from cute_dialect.algebra.leaf import Dyn
from cute_dialect.algebra.values import ComposedLayout, Layout
from cute_dialect.dialect import access, make, sizes
from cute_dialect.dialect.asm import mode_attr
from cute_dialect.dialect.base import CuteOp


def tile(r: Random, *, underscores: bool = True) -> object:
    """Return a random tile of layouts, possibly nested."""

    def slot() -> object:
        return ALL if underscores and r.random() < 0.25 else layout(r, limit=30)

    return nest(r, [slot() for _ in range(r.randint(1, 3))], 1)


def value(r: Random, kinds: tuple[str, ...]) -> tuple[str, object]:
    """Return a random value of one of the kinds."""
    kind = r.choice(kinds)
    if kind == "shape":
        return kind, shape(r)
    if kind == "stride":
        return kind, r.choice((loose, based))(r, shape(r)).stride
    if kind == "coord":
        return kind, coordinate(r, shape(r), underscores=True)
    if kind == "layout":
        return kind, layout(r)
    if kind == "composed_layout":
        return kind, composed(r)
    if kind == "tile":
        return kind, tile(r)
    return "int_tuple", int_tuple(r)


def sub(x: object, f: object) -> object:
    """Apply ``f`` to a tuple, to the shape and stride of a layout, or to the outer layout of a composed one."""
    if isinstance(x, C):
        return C(x.inner, x.offset, sub(x.outer, f))
    if isinstance(x, L):
        return L(f(x.shape), f(x.stride))
    return f(x)


INDEXABLE = ("shape", "int_tuple", "coord", "stride", "tile", "layout", "composed_layout")


# --------------------------------------------------------------------------------------------------------- constructors


def test_make_layout_like():
    def draw(r: Random) -> Case:
        kind, x = any_layout(r, bases=False, layouts=False)
        return Case([(kind, x)])

    def verdict(case: Case, out: Outcome) -> None:
        (source,), (payload,) = [x for _, x in case.operands], out.operands
        b, p = brute.outer(source), payload.outer if isinstance(payload, ComposedLayout) else payload
        dynamic = [isinstance(d, Dyn) for d in brute.leaves(p.stride)]
        strides = brute.leaves(b.stride)
        extents = [1 if d == 0 and not u else s for s, d, u in zip(brute.leaves(b.shape), strides, dynamic)]
        most = max((d for d, u in zip(strides, dynamic) if not u), default=0)
        order = []
        for d, u in zip(strides, dynamic):
            most += u
            order.append(most if u else d)
        want = brute.ordered(tuple(extents), tuple(order))
        (got,) = out.results
        assert got.shape == b.shape
        for have, wish, n in zip(brute.leaves(got.stride), want, brute.leaves(b.shape)):
            assert have == wish or n == 1

    check(make.MakeLayoutLikeOp, draw, verdict)


def test_make_ordered_layout():
    def draw(r: Random) -> Case:
        s = shape(r)
        flat = brute.leaves(s)
        order = brute.rebuild(s, iter([r.randint(0, 3) for _ in flat]))
        if isinstance(order, tuple) and r.random() < 0.3:
            order = tuple(r.randint(0, 3) for _ in order)
        return Case([("shape", s), ("int_tuple", order)], keep_static=[1])

    def verdict(case: Case, out: Outcome) -> None:
        (_, s), (_, order) = case.operands
        (got,) = out.results
        assert got.shape == s
        for c in brute.coordinates(s):
            assert brute.evaluate(c, got) == brute.run(c, s, brute.ordered(s, order))

    check(make.MakeOrderedLayoutOp, draw, verdict, dynamic=0.5)


def test_make_identity_layout():
    def verdict(case: Case, out: Outcome) -> None:
        ((_, s),) = case.operands
        (got,) = out.results
        assert got == L(s, brute.identity(s))
        for c in brute.coordinates(s):
            assert brute.norm(brute.evaluate(c, got)) == brute.norm(c)

    check(make.MakeIdentityLayoutOp, lambda r: Case([("shape", shape(r))]), verdict, dynamic=0.5)


# ------------------------------------------------------------------------------------------------------------ accessors


def test_get_shape():
    def draw(r: Random) -> Case:
        return Case([("tile", tile(r, underscores=False)) if r.random() < 0.3 else any_layout(r)])

    def shape_of(x: object) -> object:
        return tuple(map(shape_of, x)) if isinstance(x, tuple) else brute.outer(x).shape

    def verdict(case: Case, out: Outcome) -> None:
        assert out.results == (shape_of(case.operands[0][1]),)

    check(access.GetShapeOp, draw, verdict, dynamic=0.4)


def test_get_stride():
    def verdict(case: Case, out: Outcome) -> None:
        assert out.results == (case.operands[0][1].stride,)

    check(access.GetStrideOp, lambda r: Case([("layout", layout(r))]), verdict, dynamic=0.4)


@pytest.mark.parametrize(
    ("op", "part"),
    [
        (access.ComposedGetInnerOp, "inner"),
        (access.ComposedGetOffsetOp, "offset"),
        (access.ComposedGetOuterOp, "outer"),
    ],
)
def test_composed_parts(op: type[CuteOp], part: str):
    def verdict(case: Case, out: Outcome) -> None:
        assert out.results == (getattr(case.operands[0][1], part),)

    check(op, lambda r: Case([("composed_layout", composed(r))]), verdict, dynamic=0.05 if part == "inner" else 0.25)


def test_get_leaves():
    kinds = ("shape", "stride", "coord", "int_tuple", "tile")

    def verdict(case: Case, out: Outcome) -> None:
        assert out.results == tuple(brute.leaves(case.operands[0][1]))

    check(access.GetLeavesOp, lambda r: Case([value(r, kinds)]), verdict, dynamic=0.4)


@pytest.mark.parametrize("only_dynamic", [True, False])
def test_get_scalars(only_dynamic: bool):
    def draw(r: Random) -> Case:
        operand = value(r, (*INDEXABLE, "swizzle"))
        if r.random() < 0.1:
            operand = "swizzle", S(2, 3, 3)
        return Case([operand], {"only_dynamic": UnitAttr()} if only_dynamic else {})

    def scalars(x: object, p: object) -> list[int]:
        if isinstance(p, Layout):
            return scalars(x.shape, p.shape) + scalars(x.stride, p.stride)
        if isinstance(p, ComposedLayout):
            return scalars(x.outer, p.outer) + scalars(x.offset, p.offset) + scalars(x.inner, p.inner)
        if isinstance(p, tuple):
            return [n for a, b in zip(x, p) for n in scalars(a, b)]
        if isinstance(p, int):
            return [] if only_dynamic else [p]
        if isinstance(p, Dyn):
            return [x]
        if isinstance(x, S):
            return [] if only_dynamic else [x.b, x.m, x.s]
        if isinstance(x, brute.E):
            return scalars(x.value, p.value) + ([] if only_dynamic else list(x.path))
        assert x == ALL
        return []

    def verdict(case: Case, out: Outcome) -> None:
        assert list(out.results) == scalars(case.operands[0][1], out.operands[0])

    check(access.GetScalarsOp, draw, verdict, dynamic=0.0)


def path_into(r: Random, x: object) -> list[int]:
    """Return a random path of mode indices into a nested tuple."""
    path: list[int] = []
    while isinstance(x, tuple) and x and r.random() < 0.8:
        path.append(r.randrange(len(x)))
        x = x[path[-1]]
    return path


def walk(path: list[int]):
    def follow(x: object) -> object:
        for i in path:
            x = x[i]
        return x

    return follow


def tree_of(x: object) -> object:
    """Return the tuple that paths index: the shape of a layout, or the value itself."""
    return brute.outer(x).shape if isinstance(x, L | C) else x


def test_get():
    def draw(r: Random) -> Case:
        kind, x = value(r, INDEXABLE)
        return Case([(kind, x)], {"mode": mode_attr(path_into(r, x if kind == "tile" else tree_of(x)))})

    def verdict(case: Case, out: Outcome) -> None:
        ((kind, x),) = case.operands
        path = list(case.properties["mode"].get_values())
        assert out.results == (walk(path)(x) if kind == "tile" else sub(x, walk(path)),)

    check(access.GetOp, draw, verdict, dynamic=0.3)


def test_select():
    def draw(r: Random) -> Case:
        kind, x = value(r, INDEXABLE)
        tree = x if kind == "tile" else tree_of(x)
        rank = len(tree) if isinstance(tree, tuple) else 1
        return Case([(kind, x)], {"mode": mode_attr([r.randrange(rank) for _ in range(r.randint(0, 3))])})

    def verdict(case: Case, out: Outcome) -> None:
        ((kind, x),) = case.operands
        indices = case.properties["mode"].get_values()

        def pick(t: object) -> object:
            return tuple((t if isinstance(t, tuple) else (t,))[i] for i in indices)

        assert out.results == (pick(x) if kind == "tile" else sub(x, pick),)

    check(access.SelectOp, draw, verdict, dynamic=0.3)


def test_get_layouts_from_tile():
    def verdict(case: Case, out: Outcome) -> None:
        assert out.results == tuple(x for x in brute.leaves(case.operands[0][1]) if x != ALL)

    check(access.GetLayoutsFromTileOp, lambda r: Case([("tile", tile(r))]), verdict, dynamic=0.4)


@pytest.mark.parametrize("op", [access.ToShapeOp, access.ToStrideOp, access.ToCoordOp])
def test_casts_from_int_tuple(op: type[CuteOp]):
    def verdict(case: Case, out: Outcome) -> None:
        assert out.results == (case.operands[0][1],)

    check(op, lambda r: Case([("int_tuple", shape(r))]), verdict, dynamic=0.4)


def test_to_int_tuple():
    def draw(r: Random) -> Case:
        kind = r.choice(("shape", "stride", "coord", "int_tuple"))
        s = shape(r)
        return Case([(kind, s if kind == "shape" else natural_coordinate(r, s))])

    def verdict(case: Case, out: Outcome) -> None:
        assert out.results == (case.operands[0][1],)

    check(access.ToIntTupleOp, draw, verdict, dynamic=0.4)


@pytest.mark.parametrize("op", [sizes.AppendToRankOp, sizes.PrependToRankOp])
def test_pad_rank(op: type[CuteOp]):
    kinds = ("int_tuple", "coord", "stride", "shape", "layout", "composed_layout")

    def draw(r: Random) -> Case:
        kind, x = value(r, kinds)
        other = ("layout", compact(r, shape(r))) if kind == "composed_layout" else value(r, (kind,))
        return Case([(kind, x), other], {"rank": IntegerAttr(r.randint(1, 5), i32)})

    def verdict(case: Case, out: Outcome) -> None:
        (_, x), (_, element) = case.operands
        rank = case.properties["rank"].value.data

        def pad(t: object, e: object) -> object:
            modes = t if isinstance(t, tuple) else (t,)
            padding = (e,) * (rank - len(modes))
            if not padding:
                return t
            return padding + modes if op is sizes.PrependToRankOp else modes + padding

        b = brute.outer(x) if isinstance(x, C) else x
        if isinstance(b, L):
            want: object = L(pad(b.shape, element.shape), pad(b.stride, element.stride))
        else:
            want = pad(b, element)
        assert out.results == (brute.with_outer(x, want) if isinstance(x, C) else want,)

    check(op, draw, verdict, dynamic=0.3)
