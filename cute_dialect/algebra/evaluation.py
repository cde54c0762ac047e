"""Layout evaluation: coordinate-to-index and index-to-coordinate maps, sizes and codomain sizes.

>>> L = Layout("(3,(2,4)):(8,(4,1))")
>>> evaluate((1, 2), L), evaluate(7, L), size(L), cosize(L)
(9, 9, 24, 24)
"""

from __future__ import annotations

from collections.abc import Iterator

from cute_dialect.algebra.arithmetic import arithmetic_add
from cute_dialect.algebra.layout import basis_like
from cute_dialect.algebra.leaf import AlgebraError, Dyn, Leaf, absolute, add, compare, mul, sub
from cute_dialect.algebra.leaf import div as leaf_div
from cute_dialect.algebra.leaf import mod as leaf_mod
from cute_dialect.algebra.leaf import select as leaf_select
from cute_dialect.algebra.trees import (
    check_range,
    column_major,
    congruent,
    product,
    shown,
    tree_leaves,
    weakly_congruent,
)
from cute_dialect.algebra.values import (
    UNDERSCORE,
    AnyLayout,
    Basis,
    ComposedLayout,
    Coord,
    IntTuple,
    Layout,
    Payload,
    Stride,
    Swizzle,
)


def scale(n: Leaf, stride: Leaf | Basis) -> Leaf | Basis:
    """Multiply a stride leaf by ``n``.  A basis element keeps its path and its value is multiplied."""
    if type(stride) is int and type(n) is int:
        return n * stride
    if isinstance(stride, Basis):
        return Basis(mul(n, stride.value), stride.path)
    return mul(n, stride)


# ---------------------------------------------------------------------------------------------------- evaluation


def evaluate(coord: Coord, layout: AnyLayout) -> IntTuple:
    """Return the index of a coordinate.  ``_`` counts as 0; coordinates are not bounds-checked.

    Integer strides give an integer, basis strides an arithmetic tuple and the empty layout ``()``.  A composed layout
    ``A o offset o B`` gives ``A(offset + B(coord))``.

    Raises:
        AlgebraError: the coordinate does not fit the shape.

    >>> evaluate(20, Layout("(4,4):(4,1)")), evaluate((1, 2), Layout("(4,8):(1@1,2@0)"))
    (5, (4, 1))
    """
    if type(layout) is Layout:
        s = layout.shape
        if type(coord) is int and type(s) is tuple and coord >= 0:
            total, rest, step = _evaluate_static(coord, s, layout.stride)  # type: ignore[arg-type]
            if step is not None:
                # The last mode has no upper bound, so the remaining quotient continues along it.
                return check_range(total + rest * step)
            return _evaluate_linear(coord, s, layout.stride)  # type: ignore[arg-type]
        return _evaluate(coord, s, layout.stride)
    assert isinstance(layout, ComposedLayout)
    outer = layout.outer
    index = arithmetic_add(layout.offset, _evaluate(coord, outer.shape, outer.stride))
    if isinstance(layout.inner, Swizzle):
        if isinstance(index, tuple):
            raise AlgebraError(f"expected an integer index for the swizzle, got the arithmetic tuple {shown(index)}")
        return layout.inner(index)
    return evaluate(index, layout.inner)


def _evaluate(c: Coord, s: IntTuple, d: Stride) -> IntTuple:
    if type(s) is not tuple:
        if type(c) is int and type(d) is int:
            return check_range(c * d)
        return _evaluate_leaf(c, d)  # type: ignore[arg-type]
    if type(c) is int:
        if c >= 0:
            total, rest, step = _evaluate_static(c, s, d)  # type: ignore[arg-type]
            if step is not None:
                # The last mode has no upper bound, so the remaining quotient continues along it.
                return check_range(total + rest * step)
        return _evaluate_linear(c, s, d)  # type: ignore[arg-type]
    if type(c) is not tuple:
        return _evaluate_linear(0 if c is UNDERSCORE else c, s, d)  # type: ignore[arg-type]
    if not s:
        return ()
    if len(c) != len(s):
        raise AlgebraError(f"expected a coordinate of rank {len(s)} for the shape {shown(s)}, got {shown(c)}")
    total = None
    for ci, si, di in zip(c, s, d):  # type: ignore[arg-type]
        v: IntTuple = ci * di if type(ci) is int and type(di) is int else _evaluate(ci, si, di)  # type: ignore
        if total is None:
            total = v
        elif type(total) is int and type(v) is int:
            total += v
        else:
            total = arithmetic_add(total, v)
    if type(total) is int:
        check_range(total)
    return total  # type: ignore[return-value]


def _evaluate_static(c: int, s: tuple[IntTuple, ...], d: tuple[Stride, ...]) -> tuple[int, int, int | None]:
    # Returns the index, the quotient that is left after the last leaf, and the index step per unit of that quotient.
    # The step is None if the shape has no leaves, or if a leaf is not a plain integer.
    total = 0
    step: int | None = None
    for si, di in zip(s, d):
        if type(si) is int and type(di) is int:
            step = si * di
            if c < si:
                total += c * di
                c = 0
            else:
                q = c // si
                total += c * di - q * step
                c = q
        elif type(si) is tuple:
            strides: tuple[Stride, ...] = di  # type: ignore[assignment]
            step = None  # An empty last mode consumes the quotient without a step.
            for sj, dj in zip(si, strides):
                if type(sj) is int and type(dj) is int:
                    step = sj * dj
                    if c < sj:
                        total += c * dj
                        c = 0
                    else:
                        q = c // sj
                        total += c * dj - q * step
                        c = q
                else:
                    part, c, step = _evaluate_static(c, (sj,), (dj,))  # type: ignore[arg-type]
                    if step is None:
                        return 0, 0, None
                    total += part
        else:
            return 0, 0, None
    return total, c, step


def _evaluate_leaf(c: Coord, d: Leaf | Basis) -> IntTuple:
    if c is UNDERSCORE:
        c = 0
    if type(c) is tuple:
        raise AlgebraError(f"expected an integer coordinate for a scalar mode, got {shown(c)}")
    if isinstance(d, Basis):
        result: IntTuple = mul(c, d.value)  # type: ignore[arg-type]
        for i in reversed(d.path):
            result = (0,) * i + (result,)
        return result
    return mul(c, d)  # type: ignore[arg-type]


def _evaluate_linear(c: Leaf, s: tuple[IntTuple, ...], d: tuple[Stride, ...]) -> IntTuple:
    if not s:
        return ()
    if type(c) is Dyn and c.value is not None:
        s, d = _merged(s, d)
    total: IntTuple = ()
    last = len(s) - 1
    for i in range(last):
        if type(c) is int and c == 0:
            # Quotient and remainder of 0 are 0 for any extent, so the extent need not be computed.
            r: Leaf = 0
        else:
            extent = product(s[i])
            q, r = leaf_div(c, extent), leaf_mod(c, extent)
            c = q
        total = arithmetic_add(total, _evaluate(r, s[i], d[i]))
    return arithmetic_add(total, _evaluate(c, s[last], d[last]))


def _merged(s: tuple[IntTuple, ...], d: tuple[Stride, ...]) -> tuple[tuple[IntTuple, ...], tuple[Stride, ...]]:
    """Merge adjacent modes of a run-time layout where one stride is the SSA value of the extent before it.

    ``(a,b):(1,a)`` at ``i`` is ``(i mod a) + (i div a)*a = i`` for every ``i``, so neither quotient nor remainder is
    needed.  Types cannot express that two ``?`` are equal, but two uses of one SSA value are.
    """
    extents = tree_leaves(s)
    strides = tree_leaves(d)
    if not extents:
        return s, d
    shape: list[Leaf] = [extents[0]]  # type: ignore[list-item]
    stride: list[Leaf | Basis] = [strides[0]]  # type: ignore[list-item]
    for extent, step in zip(extents[1:], strides[1:]):
        if type(stride[-1]) is int and stride[-1] == 1 and _is_same(shape[-1], step):
            shape[-1] = mul(shape[-1], extent)  # type: ignore[arg-type]
        else:
            shape.append(extent)  # type: ignore[arg-type]
            stride.append(step)  # type: ignore[arg-type]
    return (s, d) if len(shape) == len(extents) else (tuple(shape), tuple(stride))


def _is_same(a: object, b: object) -> bool:
    if type(a) is not Dyn or type(b) is not Dyn or a.value is None or b.value is None or a.width != b.width:
        return False
    return a.value is b.value or (a.emitter is not None and a.emitter.same(a.value, b.value))


# --------------------------------------------------------------------------------------------------------- sizes


def size(value: Payload) -> Leaf:
    """Return the number of elements of a layout, or the product of the leaves of a shape or int tuple.

    A composed layout has the size of its outer layout.

    >>> size(Layout((4, (2, 3)))), size((6, Dyn())), size(())
    (24, Dyn(?), 1)
    """
    if type(value) is Layout:
        return product(value.shape)
    if type(value) is ComposedLayout:
        return product(value.outer.shape)
    return product(value)  # type: ignore[arg-type]


def coshape(layout: Layout) -> IntTuple:
    """Return the largest index plus one, per leaf of the codomain.  Negative strides count by magnitude.

    >>> coshape(Layout("(5,3):(1,-7)")), coshape(Layout("(5,3):(2@1,1@0)"))
    (19, (3, 9))
    """
    total = _last_static(layout.shape, layout.stride)
    if total is not None:
        return check_range(total + 1)
    last = sub(product(layout.shape), 1)
    return _plus_one(_evaluate(last, layout.shape, _magnitudes(layout.stride)))


def _last_static(s: IntTuple, d: Stride) -> int | None:
    # The largest index of a layout of plain integers: the last element of every leaf mode.
    if type(s) is int and type(d) is int:
        return (s - 1) * (d if d >= 0 else -d)
    if type(s) is not tuple or not s:
        return None
    total = 0
    for si, di in zip(s, d):  # type: ignore[arg-type]
        if type(si) is int and type(di) is int:  # type: ignore
            total += (si - 1) * (di if di >= 0 else -di)
        else:
            part = _last_static(si, di)  # type: ignore
            if part is None:
                return None
            total += part
    return total


def _magnitudes(stride: Stride) -> Stride:
    if type(stride) is tuple:
        return tuple([_magnitudes(d) for d in stride])
    if isinstance(stride, Basis):
        return Basis(absolute(stride.value), stride.path)
    return absolute(stride)  # type: ignore[arg-type]


def _plus_one(tree: IntTuple) -> IntTuple:
    if type(tree) is tuple:
        return tuple([_plus_one(t) for t in tree])
    return add(tree, 1)  # type: ignore[arg-type]


def cosize(layout: AnyLayout) -> Leaf:
    """Return the codomain size of a layout: the product of :func:`coshape`.

    A swizzled layout has the cosize of its outer layout.

    Raises:
        AlgebraError: a composed layout whose inner part is a layout.

    >>> cosize(Layout("(5,3):(1,7)")), cosize(Layout("(5,3):(2@1,1@0)"))
    (19, 27)
    """
    if isinstance(layout, ComposedLayout):
        if isinstance(layout.inner, Layout):
            raise AlgebraError(f"expected a swizzled layout, got the inner layout {shown(layout.inner)}")
        layout = layout.outer
    return product(coshape(layout))


# ------------------------------------------------------------------------------------------ indices, coordinates


def crd2idx(coord: Coord, shape: IntTuple | AnyLayout) -> IntTuple:
    """Return the column-major index of a coordinate.

    Modes of extent 1 have stride 0, so their coordinates are ignored.  If ``shape`` is a layout, the result is the
    index that the layout assigns to the coordinate, as :func:`evaluate` returns it.

    Raises:
        AlgebraError: the coordinate is not weakly congruent with the shape.

    >>> crd2idx((1, (1, 2)), (2, (3, 4))), crd2idx((1, 4), (2, (3, 4)))
    (15, 9)
    """
    if isinstance(shape, Layout | ComposedLayout):
        return evaluate(coord, shape)
    if not weakly_congruent(coord, shape):
        raise AlgebraError(f"expected a coordinate that fits the shape {shown(shape)}, got {shown(coord)}")
    try:
        index = _evaluate(coord, shape, column_major(shape))
    except ZeroDivisionError:
        raise AlgebraError(f"expected extents other than 0 for a linear coordinate, got {shown(shape)}") from None
    # The empty shape has one index, 0.
    return index if type(index) is not tuple else 0  # type: ignore[return-value]


def _coordinate_in(index: IntTuple, layout: AnyLayout) -> IntTuple:
    """Return the coordinate that a static layout maps to an index, matching the largest strides first."""
    if not isinstance(layout, Layout) or not isinstance(index, int):
        raise AlgebraError(f"expected an integer and a plain layout, got {shown(index)} and {shown(layout)}")
    extents = [x for x in tree_leaves(layout.shape) if type(x) is int]
    strides = [d for d in tree_leaves(layout.stride) if type(d) is int]
    if len(extents) < len(tree_leaves(layout.shape)) or len(strides) < len(extents):
        raise AlgebraError(f"expected a static layout with integer strides to invert, got {shown(layout)}")
    rest, digits = index, [0] * len(extents)
    for i in sorted(range(len(extents)), key=strides.__getitem__, reverse=True):
        if strides[i] > 0:
            digits[i] = max(0, min(rest // strides[i], extents[i] - 1))
            rest -= digits[i] * strides[i]
    found = _refill(layout.shape, iter(digits))
    if evaluate(found, layout) != index:
        raise AlgebraError(
            f"the index {index} is not an index of {shown(layout)}, or its modes overlap; idx2crd needs a layout whose "
            "modes do not overlap"
        )
    return found


def idx2crd(index: IntTuple, shape: IntTuple | AnyLayout) -> IntTuple:
    """Return the coordinate of a column-major index as mixed-radix digits.  The last mode keeps the overflow.

    A tuple of indices is converted element by element.  If ``shape`` is a layout, the result is the coordinate that the
    layout maps to the index: the inverse of :func:`crd2idx`.

    Raises:
        AlgebraError: ranks differ, or the layout maps no coordinate to the index.

    >>> idx2crd(13, (6, 3)), idx2crd(20, (6, 3)), idx2crd((1, 7), (2, (3, 4)))
    ((1, 2), (2, 3), (1, (1, 2)))
    >>> idx2crd(11, Layout("(4,8):(8,1)"))
    (1, 3)
    """
    if isinstance(shape, Layout | ComposedLayout):
        return _coordinate_in(index, shape)
    if type(index) is tuple:
        if type(shape) is not tuple or len(index) != len(shape):
            raise AlgebraError(f"expected an index with the same rank as the shape {shown(shape)}, got {shown(index)}")
        return tuple([idx2crd(i, s) for i, s in zip(index, shape)])
    if type(shape) is not tuple:
        return index
    if not all(shape):
        # An empty mode has no digits, so the coordinate is computed as the image under the identity layout.
        return _evaluate(index, shape, basis_like(shape))  # type: ignore[arg-type]
    out: list[IntTuple] = []
    last = len(shape) - 1
    for i, s in enumerate(shape):
        if i == last or (type(index) is int and index == 0):
            r: Leaf = index  # type: ignore[assignment]
        else:
            extent = product(s)
            q, r = leaf_div(index, extent), leaf_mod(index, extent)  # type: ignore[arg-type]
            index = q
        out.append(idx2crd(r, s))
    return tuple(out)


def increment_coord(coord: IntTuple, shape: IntTuple) -> IntTuple:
    """Advance a coordinate by one element.  The first leaf varies fastest; the last leaf does not wrap.

    Leaves are visited with a carry that starts at 1.  A static extent of 1 yields 0 and passes the carry on.  Any other
    leaf becomes ``c + carry``, or 0 with a carry of 1 if that reaches the extent.

    Raises:
        AlgebraError: the operands are not congruent, or a leaf is ``_``.

    >>> increment_coord((5, 1), (6, 3)), increment_coord((5, 2), (6, 3)), increment_coord((1, (2, 0)), (2, (3, 4)))
    ((0, 2), (0, 3), (0, (0, 1)))
    """
    if not congruent(coord, shape):
        raise AlgebraError(f"expected a coordinate congruent with the shape {shown(shape)}, got {shown(coord)}")
    cs, extents = tree_leaves(coord), tree_leaves(shape)
    out: list[Leaf] = []
    carry: Leaf = 1
    for i, (c, s) in enumerate(zip(cs, extents)):
        if not isinstance(c, int | Dyn) or not isinstance(s, int | Dyn):
            raise AlgebraError(f"expected an integer in the coordinate, got {c}")
        if i == len(cs) - 1:
            out.append(add(c, carry))
        elif type(s) is int and s == 1:
            out.append(0)
        else:
            t = add(c, carry)
            inside = compare("slt", t, s)
            out.append(leaf_select(inside, t, 0))
            carry = leaf_select(inside, 0, 1)
    return _refill(coord, iter(out))


def _refill(tree: IntTuple, values: Iterator[Leaf]) -> IntTuple:
    if type(tree) is tuple:
        return tuple([_refill(t, values) for t in tree])
    return next(values)
