"""Evaluation of layouts: coordinates to indices and back, sizes.

>>> L = Layout("(3,(2,4)):(8,(4,1))")
>>> evaluate((1, 2), L), evaluate(7, L), size(L), cosize(L)
(9, 9, 24, 24)
"""

from __future__ import annotations

from collections.abc import Iterator

from cute_dialect.algebra.arithmetic import arithmetic_add
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
    """Multiply a stride leaf by ``n`` steps: a product, or a basis element with the value multiplied."""
    if type(stride) is int and type(n) is int:
        return n * stride
    if isinstance(stride, Basis):
        return Basis(mul(n, stride.value), stride.path)
    return mul(n, stride)


# ---------------------------------------------------------------------------------------------------- evaluation


def evaluate(coord: Coord, layout: AnyLayout) -> IntTuple:
    """Return the index value at a coordinate; ``_`` counts as 0, nothing is bounds-checked.

    An integer for integer strides, an arithmetic tuple for basis strides, ``()`` for the empty layout.  For a composed
    layout ``A o off o B`` it is ``A(off + B(coord))``.  Raises AlgebraError when the coordinate does not fit the shape.

    >>> evaluate(20, Layout("(4,4):(4,1)")), evaluate((1, 2), Layout("(4,8):(1@1,2@0)"))
    (5, (4, 1))
    """
    if type(layout) is Layout:
        s = layout.shape
        if type(coord) is int and type(s) is tuple and coord >= 0:
            total, rest, step = _evaluate_static(coord, s, layout.stride)  # type: ignore[arg-type]
            if step is not None:
                # What is left runs on along the last leaf, which has no upper end.
                return check_range(total + rest * step)
            return _evaluate_linear(coord, s, layout.stride)  # type: ignore[arg-type]
        return _evaluate(coord, s, layout.stride)
    assert isinstance(layout, ComposedLayout)
    outer = layout.outer
    index = arithmetic_add(layout.offset, _evaluate(coord, outer.shape, outer.stride))
    if isinstance(layout.inner, Swizzle):
        from cute_dialect.algebra.swizzle import apply_swizzle

        if isinstance(index, tuple):
            raise AlgebraError(f"expected an integer to swizzle, got the arithmetic tuple {shown(index)}")
        return apply_swizzle(layout.inner, index)
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
                # What is left runs on along the last leaf, which has no upper end.
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
    # Sum over the leaves with the digits of c, what remains of c, and the step of one more round of the last leaf.
    # None as the step: there are no leaves, or some are not plain integers.
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
            step = None  # An empty last mode takes what is left and steps nowhere.
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
            # Quotient and remainder of 0 are 0 whatever the extent, so it need not be multiplied out.
            r: Leaf = 0
        else:
            extent = product(s[i])
            q, r = leaf_div(c, extent), leaf_mod(c, extent)
            c = q
        total = arithmetic_add(total, _evaluate(r, s[i], d[i]))
    return arithmetic_add(total, _evaluate(c, s[last], d[last]))


def _merged(s: tuple[IntTuple, ...], d: tuple[Stride, ...]) -> tuple[tuple[IntTuple, ...], tuple[Stride, ...]]:
    """The modes for a run-time index, in lowering: a mode whose stride is the very SSA value that the mode before it
    spans is one with it.

    ``(a,b):(1,a)`` at ``i`` is ``(i mod a) + (i div a)*a = i`` for every ``i``, so neither quotient nor remainder is
    needed.  Types never say that two ``?`` are equal; two uses of one SSA value are.
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
    """Return the number of elements of a layout (of the outer one of a composed layout), or the product of a shape
    or int tuple.

    >>> size(Layout((4, (2, 3)))), size((6, Dyn())), size(())
    (24, Dyn(?), 1)
    """
    if type(value) is Layout:
        return product(value.shape)
    if type(value) is ComposedLayout:
        return product(value.outer.shape)
    return product(value)  # type: ignore[arg-type]


def coshape(layout: Layout) -> IntTuple:
    """Return one more than the largest index value, leaf by leaf, with the magnitudes of the strides.

    >>> coshape(Layout("(5,3):(1,-7)")), coshape(Layout("(5,3):(2@1,1@0)"))
    (19, (3, 9))
    """
    total = _last_static(layout.shape, layout.stride)
    if total is not None:
        return check_range(total + 1)
    last = sub(product(layout.shape), 1)
    return _plus_one(_evaluate(last, layout.shape, _magnitudes(layout.stride)))


def _last_static(s: IntTuple, d: Stride) -> int | None:
    # The largest index of plain integers: every leaf at its end.
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
    """Return the number of elements of the smallest codomain: the product of :func:`coshape`.

    Of a swizzled layout that of its outer layout.  Raises AlgebraError for a composed layout with an inner layout.

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
    """Return the column-major index of a coordinate.  Extents 1 have stride 0, so coordinates in such modes are
    ignored.

    With a layout in place of the shape the index that the layout gives: :func:`evaluate`.  Raises AlgebraError for a
    coordinate that is not weakly congruent with the shape.

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
    """The coordinate at which a static layout has an index, by the largest strides first.  Raises AlgebraError."""
    if not isinstance(layout, Layout) or not isinstance(index, int):
        raise AlgebraError(f"expected an integer and a plain layout, got {shown(index)} and {shown(layout)}")
    extents = [x for x in tree_leaves(layout.shape) if type(x) is int]
    strides = [d for d in tree_leaves(layout.stride) if type(d) is int]
    if len(extents) < len(tree_leaves(layout.shape)) or len(strides) < len(extents):
        raise AlgebraError(f"expected a static layout of integer strides to find an index in, got {shown(layout)}")
    rest, digits = index, [0] * len(extents)
    for i in sorted(range(len(extents)), key=strides.__getitem__, reverse=True):
        if strides[i] > 0:
            digits[i] = max(0, min(rest // strides[i], extents[i] - 1))
            rest -= digits[i] * strides[i]
    found = _refill(layout.shape, iter(digits))
    if evaluate(found, layout) != index:
        raise AlgebraError(f"expected an index that {shown(layout)} has, at strides that do not overlap, got {index}")
    return found


def idx2crd(index: IntTuple, shape: IntTuple | AnyLayout) -> IntTuple:
    """Return the coordinate of a column-major index: mixed-radix digits, the last mode keeps the overflow.

    A tuple of indices is taken element by element.  With a layout in place of the shape: where the layout has that
    index, the inverse of :func:`crd2idx`.  Raises AlgebraError when ranks differ and for an index that a layout lacks.

    >>> idx2crd(13, (6, 3)), idx2crd(20, (6, 3)), idx2crd((1, 7), (2, (3, 4)))
    ((1, 2), (2, 3), (1, (1, 2)))
    >>> idx2crd(11, Layout("(4,8):(8,1)"))
    (1, 3)
    """
    if isinstance(shape, Layout | ComposedLayout):
        return _coordinate_in(index, shape)
    if type(index) is tuple:
        if type(shape) is not tuple or len(index) != len(shape):
            raise AlgebraError(f"expected an index of the rank of the shape {shown(shape)}, got {shown(index)}")
        return tuple([idx2crd(i, s) for i, s in zip(index, shape)])
    if type(shape) is not tuple:
        return index
    if not all(shape):
        # An empty mode has no digit at all; what is left of it in the coordinate follows from the definition.
        from cute_dialect.algebra.make_layouts import basis_like

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
    """Take one odometer step, first leaf fastest; the last leaf does not wrap.

    Over the leaves with a carry that starts at 1: a static extent 1 gives 0 and passes the carry on; otherwise the leaf
    is ``c + carry`` and the carry 0 if that is below the extent, else 0 and the carry 1.  Raises AlgebraError for
    operands that are not congruent and for ``_``.

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
