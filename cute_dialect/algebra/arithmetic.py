"""Arithmetic on trees: sums of indices, comparisons, division of shapes.

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
    """Return the sum of two indices: integers, or the arithmetic tuples of layouts with basis strides.

    Tuples are added element by element, and surplus elements of the longer one are copied.  ``()`` is neutral, and so
    is a static 0 added to a tuple.

    Raises:
        AlgebraError: any other scalar is added to a tuple.

    >>> arithmetic_add((0, 2), (3,)), arithmetic_add((), 4), arithmetic_add(0, (1, 2))
    ((3, 2), 4, (1, 2))
    """
    if type(a) is tuple:
        if type(b) is tuple:
            n = min(len(a), len(b))
            return tuple([_add_component(x, y) for x, y in zip(a, b)]) + a[n:] + b[n:]
        if not a or (type(b) is int and b == 0):
            return a or b
        raise AlgebraError(f"cannot add the scalar {b} to the arithmetic tuple {shown(a)}")
    if type(b) is tuple:
        if not b or (type(a) is int and a == 0):
            return b or a
        raise AlgebraError(f"cannot add the scalar {a} to the arithmetic tuple {shown(b)}")
    return add(a, b)  # type: ignore[arg-type]


def _add_component(a: IntTuple, b: IntTuple) -> IntTuple:
    # Zeros before the component of a basis element mark absent components, so adding them does not widen the result.
    if type(a) is int and a == 0:
        return b
    if type(b) is int and b == 0:
        return a
    return arithmetic_add(a, b)


def tuple_add(a: IntTuple, b: IntTuple) -> IntTuple:
    """Return the sum of two int tuples.  Surplus elements of the longer one are copied.

    Raises:
        AlgebraError: a scalar is added to a tuple, except a static 0 at the top level.

    >>> tuple_add((1, 2, 3), (4, 5)), tuple_add(0, (4, 5))
    ((5, 7, 3), (4, 5))
    """
    if type(a) is tuple and type(b) is not tuple and type(b) is int and b == 0:
        return a
    if type(b) is tuple and type(a) is not tuple and type(a) is int and a == 0:
        return b
    return _zip_leaves(add, a, b, ())


def tuple_sub(a: IntTuple, b: IntTuple) -> IntTuple:
    """Return the difference of two int tuples.  Surplus elements of either side are copied, *not* negated.

    Raises:
        AlgebraError: a scalar is subtracted from a tuple or a tuple from a scalar, except a static 0 on the right at
        the top level.

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
    """Return True if every leaf of ``a`` is less than the matching leaf of ``b``; ``()`` is less than ``()``.

    The result is a ``bool`` if it is known statically, else an ``i1`` leaf.

    Raises:
        AlgebraError: the trees are not congruent, or a leaf is ``_``.

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
    """Return True if two values are equal leaf by leaf.  Trees that are not congruent are not equal.

    The result is a ``bool`` if it is known statically, else an ``i1`` leaf.
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
    """Divide two extents, truncating.  A quotient of 0 is replaced by its sign unless ``a`` is 0.

    If both operands are static, one must be a multiple of the other.  If divisibility proves an exact quotient, no
    test for 0 is emitted: ``?{div=8} / 2`` is ``?{div=4}``.

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
    """Divide shapes.  A scalar divisor is consumed mode by mode.

    Raises:
        AlgebraError: ranks differ, a divisor is 0, or neither of two static leaves divides the other.

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
    """Divide shapes, rounding up.  A scalar divisor is consumed mode by mode; surplus modes of ``a`` are copied.

    An exact quotient keeps its divisibility: ``ceil(?{div=128} / 128)`` is an exact division.

    Raises:
        AlgebraError: ``b`` has the larger rank or a static 0 leaf.

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
