"""Arithmetic on shapes and coordinates: products, quotients, comparisons, indices.

Operations on run-time numbers emit ops of the dialect.

>>> product_each((4, (2, 3))), ceil_div((7, 9), (2, 4)), idx2crd(20, (6, 4))
((4, 6), (4, 3), (2, 3))
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cute_dialect.algebra.leaf import AlgebraError, Dyn
from cute_dialect.lang.tracing.errors import LayoutError
from cute_dialect.lang.tracing.tracer import active, current, op_class
from cute_dialect.lang.values.dtypes import Int32, Int64, Numeric, Uint32, Uint64
from cute_dialect.lang.values.dynamic import method_of
from cute_dialect.lang.values.folding import Facts, facts_of, is_natural, rounded_up
from cute_dialect.lang.values.int_tuples import (
    ScaledBasis,
    Tree,
    congruent,
    counted,
    has_underscore,
    is_tree,
    leaves,
    map_tree,
    modes_of,
    tree_text,
)
from cute_dialect.lang.values.layouts import AnyLayout, apply, as_layout, from_value, layout_of, operand_type, refused
from cute_dialect.lang.values.numeric import as_number, binary, pair

if TYPE_CHECKING:
    from cute_dialect.lang.values.signature_types import Condition, Coord, Int, IntTuple, LayoutLike, Shape


def _all_ints(*trees: Any) -> bool:
    return all(type(leaf) is int for tree in trees for leaf in leaves(tree))


def product(x: IntTuple) -> Int:
    """Return the product of all leaves.

    >>> product((4, (2, 3)))
    24
    """
    from math import prod

    if _all_ints(x):
        return prod(leaves(x))
    return counted(apply("cute.tuple_product", Tree(x, "shape")))


def product_each(x: IntTuple) -> IntTuple:
    """Return the product of each mode.

    >>> product_each((4, (2, 3))), product_each(8)
    ((4, 6), (8,))
    """
    modes = x if isinstance(x, tuple | list) else (x,)
    return tuple(product(mode) for mode in modes)


def product_like(x: IntTuple, target_profile: IntTuple) -> IntTuple:
    """Return the product of the subtree at each leaf of a profile.

    >>> product_like(((2, 3), (4, 5)), (0, (0, 0)))
    (6, (4, 5))
    """
    if not isinstance(target_profile, tuple | list):
        return product(x)
    if not isinstance(x, tuple | list) or len(x) != len(target_profile):
        raise LayoutError("F241", f"product_like: {tree_text(x)} does not have the profile {tree_text(target_profile)}")
    return tuple(map(product_like, x, target_profile))


def tuple_max(x: IntTuple) -> Int:
    """Return the largest leaf.

    >>> tuple_max((4, (7, 3)))
    7
    """
    found, *rest = leaves(x)
    for leaf in rest:
        found = max(found, leaf) if type(found) is int and type(leaf) is int else binary("max", found, leaf)
    return found


def min_dim(x: IntTuple) -> Int:
    """Return the smallest leaf.

    >>> min_dim((4, (7, 3)))
    3
    """
    found, *rest = leaves(x)
    for leaf in rest:
        found = min(found, leaf) if type(found) is int and type(leaf) is int else binary("min", found, leaf)
    return found


def elem_add(a: IntTuple, b: IntTuple) -> IntTuple:
    """Return the sum of two trees, leaf by leaf.

    >>> elem_add((1, (2, 3)), (4, (5, 6)))
    (5, (7, 9))
    """
    return map_tree(lambda x, y: x + y, a, b)


def elem_sub(a: IntTuple, b: IntTuple) -> IntTuple:
    """Return the difference of two trees, leaf by leaf.

    >>> elem_sub((7, (8, 9)), (4, (5, 6)))
    (3, (3, 3))
    """
    return map_tree(lambda x, y: x - y, a, b)


def ceil_div(a: IntTuple, b: IntTuple) -> IntTuple:
    """Return the quotient rounded up, of numbers or mode by mode: the number of tiles that cover a shape.

    >>> ceil_div(7, 2), ceil_div((7, 9, 4), (2, 4))
    (4, (4, 3, 4))
    """
    if type(a) is int and type(b) is int and b != 0:
        return -(-a // b)
    if isinstance(b, AnyLayout | str):
        b = as_layout(b).shape
    if _are_natural(*leaves(a), *leaves(b)) and (tracer := active()) is not None and tracer.kind == "kernel":
        if isinstance(a, tuple) and isinstance(b, tuple) and len(b) <= len(a):
            return tuple(map(ceil_div, a, b)) + a[len(b) :]
        if isinstance(a, Int32 | Int64) and not a.is_static and type(b) in (int, type(a)):
            return _quotient(a, b)
    made = apply("cute.ceil_div", Tree(a, "int_tuple"), Tree(b, "int_tuple" if not has_underscore(b) else "tiler"))
    _tell_quotients(made, a, b)
    return made


def _are_natural(*numbers: Any) -> bool:
    """Return True if all are integers known to be non-negative."""
    return all(isinstance(x, Numeric | int) and is_natural(as_number(x)) for x in numbers)


def _quotient(a: Numeric, b: Any) -> Any:
    """Return ``ceil(a / b)`` of two non-negative numbers by an unsigned division.

    ``a + b - 1`` does not overflow, because both are at most half the range of the unsigned type.
    """
    x, y, kind = pair(a, b, "floordiv")
    if y.is_static and (y.value == 0 or facts_of(x).divisor % y.value == 0):
        return binary("floordiv", x, y)
    wide: Any = Uint64 if kind.width == 64 else Uint32
    quotient = (wide(x) + (wide(y) - 1)) // wide(y)
    return kind.of(quotient.ssa, rounded_up(facts_of(x), facts_of(y), kind))


def _tell_quotients(result: Any, a: Any, b: Any) -> None:
    """Attach known facts to the quotients of non-negative numbers, mode by mode."""
    if isinstance(result, tuple):
        own = isinstance(b, tuple | list)
        for i, made in enumerate(result):  # An integer divisor is divided by each mode in turn, and at least 1 remains.
            _tell_quotients(made, a[i], 1 if not own and i > 0 else b if not own else b[i] if i < len(b) else 1)
    elif isinstance(result, Numeric) and not result.is_static and _are_natural(a, b):
        known = rounded_up(facts_of(as_number(a)), facts_of(as_number(b)), type(result))
        if known is not None:
            result.facts = Facts(known.low, known.high, facts_of(result).divisor)


def round_up(a: IntTuple, b: IntTuple) -> IntTuple:
    """Return the smallest multiple of ``b`` that is at least ``a``; mode by mode for trees.

    >>> round_up(7, 4), round_up((7, 9), (2, 4))
    (8, (8, 12))
    """
    if isinstance(a, tuple | list):
        divisors = b if isinstance(b, tuple | list) else (b,) * len(a)
        return tuple(map(round_up, a, divisors))
    return ceil_div(a, b) * b


def shape_div(a: Shape, b: Shape) -> Shape:
    """Return a shape divided by a shape. One of each pair of extents must divide the other.

    >>> shape_div((6, 4), 12)
    (1, 2)
    """
    return apply("cute.shape_div", Tree(a, "shape"), Tree(b, "shape"))


def gcd(*numbers: int) -> int:
    """Return the greatest common divisor of static integers.

    >>> gcd(12, 18)
    6
    """
    from math import gcd as of_ints
    from operator import index

    return of_ints(*[index(n) for n in numbers])


# -------------------------------------------------------------------------------------------------- comparisons


def _condition(name: str, a: Any, b: Any) -> Any:
    """Return a Python bool if the types decide a comparison, else a Boolean."""
    from cute_dialect.dialect.typed_values import track, typed  # late: start-up

    try:
        condition = op_class(name).infer_condition(track([typed(operand_type(x)) for x in (a, b)]))
    except AlgebraError as e:
        raise refused(name, (a, b), e) from None
    if not isinstance(condition, Dyn):
        return bool(condition)
    return from_value(current().value(name, [a.ssa, b.ssa]))


def elem_less(a: IntTuple, b: IntTuple) -> Condition:
    """Return True if each leaf of ``a`` is less than the corresponding leaf of ``b``.

    >>> elem_less((3, (1, 2)), (4, (2, 3)))
    True
    """
    return _condition("cute.elem_less", Tree(a, "int_tuple"), Tree(modes_of(b), "int_tuple"))


def equal(a: LayoutLike, b: LayoutLike) -> Condition:
    """Return True if two trees, or two layouts, are equal.

    >>> from cute_dialect.lang.values.layouts import make_layout
    >>> equal((4, (2, 3)), (4, (2, 3))), equal(make_layout(8), make_layout(8, 2))
    (True, False)
    """
    if isinstance(a, AnyLayout) and isinstance(b, AnyLayout):
        if a.is_static and b.is_static:
            return a.payload == b.payload
        if a.kind != b.kind:
            return False
        if a.kind == "composed_layout":
            return _both(equal(a.outer, b.outer), equal(a.offset, b.offset), equal(a.inner, b.inner))
        return _condition("cute.equal", a, b)
    if is_tree(a) and is_tree(b):
        kind = "stride" if any(isinstance(x, ScaledBasis) for x in (*leaves(a), *leaves(b))) else "coord"
        return _condition("cute.equal", Tree(a, kind), Tree(b, kind))
    return a == b


def _both(*conditions: Any) -> Any:
    made: Any = True
    for c in conditions:
        if c is False:
            return False
        made = c if made is True else made if c is True else made & c
    return made


def _either(a: Any, b: Any) -> Any:
    if a is True or b is True:
        return True
    return b if a is False else a if b is False else a | b


def _ordered(a: Any, b: Any, what: str) -> Any:
    """Return the comparison of trees in lexicographic or colexicographic order."""
    if not congruent(a, b):
        raise LayoutError("F241", f"{what} needs trees of the same profile, got {tree_text(a)} and {tree_text(b)}")
    pairs = list(zip(leaves(a), leaves(b)))
    if what == "colex_less":
        pairs.reverse()
    made: Any = False
    for x, y in reversed(pairs):
        same = _both(x == y, made)
        less = x < y
        made = _either(less, same)
    return made


def lex_less(a: IntTuple, b: IntTuple) -> Condition:
    """Return True if ``a`` precedes ``b`` in lexicographic order (first mode most significant).

    >>> lex_less((1, 5), (2, 0)), lex_less((2, 5), (2, 0))
    (True, False)
    """
    return _ordered(a, b, "lex_less")


def colex_less(a: IntTuple, b: IntTuple) -> Condition:
    """Return True if ``a`` precedes ``b`` in colexicographic order (last mode most significant).

    >>> colex_less((1, 5), (2, 0)), colex_less((1, 0), (2, 0))
    (False, True)
    """
    return _ordered(a, b, "colex_less")


# ------------------------------------------------------------------------------------------- indices, coordinates


def crd2idx(coord: Coord, x: LayoutLike) -> Int:
    """Return the index of a coordinate: column-major in a shape, or the offset in a layout.

    >>> from cute_dialect.lang.values.layouts import make_layout
    >>> crd2idx((1, (1, 2)), (2, (3, 4))), crd2idx((1, 2), make_layout((4, 8), (8, 1)))
    (15, 10)
    """
    target = Tree(x, "shape") if is_tree(x) else layout_of(x)
    return apply("cute.crd2idx", Tree(coord, "coord"), target)


def idx2crd(index: Int, x: Shape) -> Coord:
    """Return the coordinate of a column-major index in a shape.

    >>> idx2crd(20, (6, 4))
    (2, 3)
    """
    return apply("cute.idx2crd", Tree(index, "int_tuple"), Tree(modes_of(x), "shape"))


def increment_coord(coord: Coord, x: Shape) -> Coord:
    """Return the next coordinate in a shape, first leaf fastest.

    >>> increment_coord((5, 1), (6, 3))
    (0, 2)
    """
    return apply("cute.increment_coord", Tree(coord, "coord"), Tree(modes_of(x), "shape"))


# --------------------------------------------------------------------------------------------------- methods of layouts


@method_of(AnyLayout)
def __eq__(self: AnyLayout, other: object) -> Any:
    return equal(self, other) if isinstance(other, AnyLayout) else NotImplemented


@method_of(AnyLayout, "_flat_coord")
def _flat_coord_of(layout: AnyLayout, idx: Int) -> Coord:
    coord, shape = layout.get_hier_coord(idx), layout.shape  # pyright: ignore
    if not isinstance(shape, tuple):
        return coord
    return tuple([crd2idx(c, s) if isinstance(s, tuple) else c for c, s in zip(coord, shape)])


@method_of(AnyLayout, "_1d_coord")
def _1d_coord_of(layout: AnyLayout, idx: Int) -> Int:
    return crd2idx(layout.get_hier_coord(idx), layout.shape)  # pyright: ignore
