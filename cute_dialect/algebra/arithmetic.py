"""Arithmetic on trees: sums of index values, comparisons, divisions of shapes.

>>> tuple_add((1, 2, 3), (4, 5)), shape_div((6, 4), 12), ceil_div_tree((7, 9), 5)
((5, 7, 3), (1, 2), (2, 9))
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from cute_dialect.algebra.leaf import AlgebraError, Dyn, Leaf, add, and_, ceil_div, mul, sign, sub
from cute_dialect.algebra.leaf import compare as leaf_compare
from cute_dialect.algebra.leaf import div as leaf_div
from cute_dialect.algebra.leaf import select as leaf_select
from cute_dialect.algebra.trees import check_range, congruent, leaves, product, shown, tree_leaves
from cute_dialect.algebra.values import Basis, Coord, IntTuple, Layout, Payload, Underscore


def arithmetic_add(a: IntTuple, b: IntTuple) -> IntTuple:
    """Sum of two index values: integers, or arithmetic tuples as layouts with basis strides give.

    Element by element, surplus elements of the longer side copied; ``()`` is neutral, a static 0 beside a tuple is an
    absent component.  Raises AlgebraError for any other scalar beside a tuple.

    >>> arithmetic_add((0, 2), (3,)), arithmetic_add((), 4), arithmetic_add(0, (1, 2))
    ((3, 2), 4, (1, 2))
    """
    if type(a) is tuple:
        if type(b) is tuple:
            n = min(len(a), len(b))
            return tuple([_add_component(x, y) for x, y in zip(a, b)]) + a[n:] + b[n:]
        if not a or (type(b) is int and b == 0):
            return a or b
        raise AlgebraError(f"expected an arithmetic tuple beside {shown(a)}, got the scalar {b}")
    if type(b) is tuple:
        if not b or (type(a) is int and a == 0):
            return b or a
        raise AlgebraError(f"expected an arithmetic tuple beside {shown(b)}, got the scalar {a}")
    return add(a, b)  # type: ignore[arg-type]


def _add_component(a: IntTuple, b: IntTuple) -> IntTuple:
    # The zeros before the one component of a basis contribution are absent, not addends: they add no width.
    if type(a) is int and a == 0:
        return b
    if type(b) is int and b == 0:
        return a
    return arithmetic_add(a, b)


def tuple_add(a: IntTuple, b: IntTuple) -> IntTuple:
    """Sum of two int tuples; surplus elements of the longer side are copied.

    Raises AlgebraError for a scalar beside a tuple, except a static 0 at the top level.

    >>> tuple_add((1, 2, 3), (4, 5)), tuple_add(0, (4, 5))
    ((5, 7, 3), (4, 5))
    """
    if type(a) is tuple and type(b) is not tuple and type(b) is int and b == 0:
        return a
    if type(b) is tuple and type(a) is not tuple and type(a) is int and a == 0:
        return b
    return _zip_leaves(add, a, b, ())


def tuple_sub(a: IntTuple, b: IntTuple) -> IntTuple:
    """Subtract two int tuples; surplus elements of either side are copied, *not* negated.

    Raises AlgebraError for a scalar beside a tuple, except a static 0 on the right at the top level.

    >>> tuple_sub((7, 8), (1, 2, 5)), tuple_sub((7, 8), 0)
    ((6, 6, 5), (7, 8))
    """
    if type(a) is tuple and type(b) is int and b == 0:
        return a
    return _zip_leaves(sub, a, b, ())


def _zip_leaves(f: Callable[[Leaf, Leaf], Leaf], a: IntTuple, b: IntTuple, path: tuple[int, ...]) -> IntTuple:
    if type(a) is tuple and type(b) is tuple:
        n = min(len(a), len(b))
        head = tuple([_zip_leaves(f, x, y, (*path, i)) for i, (x, y) in enumerate(zip(a, b))])
        return head + a[n:] + b[n:]
    if type(a) is tuple or type(b) is tuple:
        raise AlgebraError(f"expected two tuples or two integers at {list(path)}, got {shown(a)} and {shown(b)}")
    result = f(a, b)  # type: ignore[arg-type]
    return check_range(result) if type(result) is int else result


def elem_less(a: Coord, b: Coord) -> bool | Dyn:
    """Tell whether every leaf of ``a`` is below the matching leaf of ``b``; true for ``()``.

    A ``bool`` when that can be decided now, else an ``i1`` leaf.  Raises AlgebraError for trees that are not congruent
    and for ``_``.

    >>> elem_less((3, (1, 2)), (4, (2, 3))), elem_less((3, 5), (4, 5))
    (True, False)
    """
    if not congruent(a, b):
        raise AlgebraError(f"expected congruent operands, got {shown(a)} and {shown(b)}")
    return _conjunction("slt", tree_leaves(a), tree_leaves(b))


def _conjunction(predicate: str, a: Sequence[object], b: Sequence[object]) -> bool | Dyn:
    result: bool | Dyn = True
    for x, y in zip(a, b):
        if not isinstance(x, int | Dyn) or not isinstance(y, int | Dyn):
            raise AlgebraError(f"expected integers to compare, got {x} and {y}")
        test = leaf_compare(predicate, x, y)
        if test is False:
            return False
        if test is not True:
            result = test if result is True else and_(result, test)  # type: ignore[assignment]
    return result


def equal(a: Payload, b: Payload) -> bool | Dyn:
    """Tell whether two values of one kind are equal, leaf by leaf; trees that are not congruent are not equal.

    A ``bool`` when that can be decided now, else an ``i1`` leaf.
    """
    if isinstance(a, Layout) and isinstance(b, Layout):
        if not congruent(a.shape, b.shape) or not congruent(a.stride, b.stride):
            return False
    elif isinstance(a, Layout) or isinstance(b, Layout) or not congruent(a, b):  # type: ignore[arg-type]
        return False
    xs, ys = leaves(a), leaves(b)
    left: list[object] = []
    right: list[object] = []
    for x, y in zip(xs, ys):
        if isinstance(x, Basis) or isinstance(y, Basis):
            if not isinstance(x, Basis) or not isinstance(y, Basis) or x.path != y.path:
                return False
            x, y = x.value, y.value
        elif isinstance(x, Underscore) or isinstance(y, Underscore):
            if x is not y:
                return False
            continue
        left.append(x)
        right.append(y)
    return _conjunction("eq", left, right)


# ---------------------------------------------------------------------------------------------------- division


def shape_div_leaf(a: Leaf, b: Leaf) -> Leaf:
    """Divide two extents: truncating, but never to 0 unless ``a`` is 0: then the sign of the quotient.

    Static operands: one must be a multiple of the other.  With divisibility an exact quotient needs no test for zero:
    ``?{div=8} / 2`` is ``?{div=4}``, because a multiple of 2 over 2 is 0 only if the dividend is.

    >>> shape_div_leaf(24, 6), shape_div_leaf(3, 12), shape_div_leaf(4, -12)
    (4, 1, -1)
    """
    if type(a) is int and type(b) is int:
        if b == 0:
            raise AlgebraError("division by zero")
        if a % b and (a == 0 or b % a):
            raise AlgebraError(f"expected one of {a} and {b} to be a multiple of the other")
        q = leaf_div(a, b)
        return q if q else (a > 0) - (a < 0) if b > 0 else (a < 0) - (a > 0)
    if isinstance(b, int) and isinstance(a, Dyn) and (b == 1 or (b and a.div and a.div % b == 0)):
        return leaf_div(a, b)
    q = leaf_div(a, b)
    if isinstance(q, int):
        return q
    return leaf_select(leaf_compare("ne", q, 0), q, mul(sign(a), sign(b)))


def shape_div(a: IntTuple, b: IntTuple) -> IntTuple:
    """Divide shapes; a scalar divisor is used up mode by mode.

    Raises AlgebraError when ranks differ, a divisor is 0 or neither of two static leaves divides the other.

    >>> shape_div((8, 9), (2, 3)), shape_div((6, 4), 12), shape_div(24, (2, 3))
    ((4, 3), (1, 2), 4)
    """
    if type(a) is tuple:
        if type(b) is tuple:
            if len(a) != len(b):
                raise AlgebraError(f"expected shapes of equal rank to divide, got {shown(a)} and {shown(b)}")
            return tuple([shape_div(x, y) for x, y in zip(a, b)])
        out: list[IntTuple] = []
        for i, x in enumerate(a):
            out.append(shape_div(x, b))
            if i + 1 < len(a):
                b = shape_div_leaf(b, product(x))  # type: ignore[arg-type]
        return tuple(out)
    return shape_div_leaf(a, product(b))  # type: ignore[arg-type]


def ceil_div_tree(a: IntTuple, b: IntTuple) -> IntTuple:
    """Divide shapes, rounding up; a scalar divisor is used up mode by mode, surplus modes of ``a`` are copied.

    Raises AlgebraError when ``b`` has the larger rank or a static 0 leaf.  With divisibility exact quotients keep what
    is known: ``ceil(?{div=128} / 128)`` is an exact division.

    >>> ceil_div_tree((7, 9, 4), (2, 4)), ceil_div_tree((7, 9), 5), ceil_div_tree(-7, 2)
    ((4, 3, 4), (2, 9), -3)
    """
    if type(a) is tuple:
        if type(b) is tuple:
            if len(a) < len(b):
                raise AlgebraError(f"expected a tiler of rank at most {len(a)}, got {shown(b)}")
            return tuple([ceil_div_tree(x, y) for x, y in zip(a, b)]) + a[len(b) :]
        out: list[IntTuple] = []
        for i, x in enumerate(a):
            out.append(ceil_div_tree(x, b))
            if i + 1 < len(a):
                b = ceil_div(b, product(x))  # type: ignore[arg-type]
        return tuple(out)
    return ceil_div(a, product(b))  # type: ignore[arg-type]
