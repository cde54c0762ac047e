"""Layouts made from scratch: from several parts, in a given order, like another, the identity.

>>> make_ordered_layout((6, 5, 2), (2, 0, 1)), make_layout_like(Layout("(6,5):(10,2)"))
(Layout("(6,5,2):(10,1,5)"), Layout("(6,5):(5,1)"))
"""

from __future__ import annotations

from cute_dialect.algebra.leaf import AlgebraError, Dyn, Leaf, mul
from cute_dialect.algebra.trees import column_major, is_static, product, shown, weakly_congruent
from cute_dialect.algebra.values import AnyLayout, Basis, ComposedLayout, IntTuple, Layout, Stride, Swizzle, raw_layout


def make_layout(*parts: Layout | IntTuple) -> Layout:
    """Make a layout whose modes are the given layouts, or ``make_layout(shape, stride)`` / ``make_layout(shape)``.

    Raises AlgebraError as the constructor of :class:`Layout` does.

    >>> make_layout(Layout("4:1"), Layout("(2,3):(4,8)")), make_layout((4, 8), (8, 1))
    (Layout("(4,(2,3)):(1,(4,8))"), Layout("(4,8):(8,1)"))
    """
    layouts = [p for p in parts if isinstance(p, Layout)]
    if len(layouts) == len(parts):
        return raw_layout(tuple([p.shape for p in layouts]), tuple([p.stride for p in layouts]))
    if layouts or len(parts) > 2:
        raise AlgebraError(f"expected layouts only, or a shape and a stride, got {len(parts)} mixed operands")
    return Layout(*parts)  # type: ignore[arg-type]


def concat(*layouts: Layout) -> Layout:
    """Make the layout with these modes, empty layouts dropped."""
    kept = [x for x in layouts if x.shape != ()]
    return raw_layout(tuple([x.shape for x in kept]), tuple([x.stride for x in kept]))


def make_identity_layout(shape: IntTuple) -> Layout:
    """Make the layout that maps a coordinate to itself: basis strides; for a scalar shape the integer 1.

    >>> make_identity_layout((6, (2, Dyn()))), make_identity_layout(7)
    (Layout("(6,(2,?)):(1@0,(1@0@1,1@1@1))"), Layout("7:1"))
    """
    return raw_layout(shape, basis_like(shape))


def basis_like(shape: IntTuple, path: tuple[int, ...] = ()) -> Stride:
    """Return the unit basis strides of a shape; ``path`` leads to where the shape stands."""
    if type(shape) is tuple:
        return tuple([basis_like(s, (*path, i)) for i, s in enumerate(shape)])
    return Basis(1, path) if path else 1


def ordered_stride(shape: IntTuple, order: IntTuple) -> IntTuple:
    """Return compact strides in which modes of smaller order vary faster.

    ``order`` is a static tree, weakly congruent to the shape.  The sub-shape under an order leaf ``w`` gets
    column-major strides that start at the product of all sub-shapes whose order is *below* ``w``; equal orders start
    equally.  Raises AlgebraError for an order that does not fit.

    >>> ordered_stride((6, 1, 5), (2, 0, 1)), ordered_stride((6, 5), (3, 3)), ordered_stride((6, 5), 9)
    ((5, 0, 1), (1, 1), (1, 6))
    """
    if not is_static(order):
        raise AlgebraError(f"expected a static order, got {shown(order)}")
    if not weakly_congruent(order, shape):
        raise AlgebraError(f"expected an order that fits the shape {shown(shape)}, got {shown(order)}")
    return _ordered(shape, shape, order)


def _ordered(shape: IntTuple, extents: IntTuple, order: IntTuple) -> IntTuple:
    # ``extents`` is the shape with the modes that shall not count set to 1.
    governed: list[tuple[int, IntTuple]] = []

    def collect(s: IntTuple, o: IntTuple) -> None:
        if type(o) is tuple:
            for si, oi in zip(s, o):  # type: ignore[arg-type]
                collect(si, oi)  # type: ignore
        else:
            governed.append((o, s))  # type: ignore[arg-type]

    def strides(s: IntTuple, o: IntTuple) -> IntTuple:
        if type(o) is tuple:
            return tuple([strides(si, oi) for si, oi in zip(s, o)])  # type: ignore[arg-type]
        start: Leaf = 1
        for v, sv in governed:
            if v < o:  # type: ignore[operator]
                start = mul(start, product(sv))
        return column_major(s, start)

    collect(extents, order)
    return strides(extents, order)


def make_ordered_layout(shape: IntTuple, order: IntTuple) -> Layout:
    """Make the compact layout of ``shape`` in which modes of smaller ``order`` vary faster; see
    :func:`ordered_stride`.

    >>> make_ordered_layout((6, (5, 2)), (1, 0)), make_ordered_layout((6, Dyn(), 2), (2, 1, 3))
    (Layout("(6,(5,2)):(10,(1,5))"), Layout("(6,?,2):(?,1,?)"))
    """
    return raw_layout(shape, ordered_stride(shape, order))


def make_layout_like(layout: AnyLayout) -> Layout:
    """Make the compact layout of the same shape whose modes are in the order of the strides; static stride 0 stays
    0.

    Dynamic strides count, from left to right, as larger than every static one.  Of a swizzled layout the outer layout
    counts.  Raises AlgebraError for basis strides and for a composed layout with an inner layout.

    >>> make_layout_like(Layout("(6,5,2):(0,2,20)")), make_layout_like(Layout("(6,5):(?,1)"))
    (Layout("(6,5,2):(0,1,5)"), Layout("(6,5):(5,1)"))
    """
    if isinstance(layout, ComposedLayout):
        if not isinstance(layout.inner, Swizzle):
            raise AlgebraError(f"expected a swizzled or plain layout, got the inner layout {shown(layout.inner)}")
        layout = layout.outer
    statics: list[int] = []
    _static_strides(layout.stride, statics)
    above = max(statics, default=-1)

    def order_of(d: Stride) -> IntTuple:
        nonlocal above
        if type(d) is tuple:
            return tuple([order_of(x) for x in d])
        if isinstance(d, Dyn):
            above += 1
            return above
        return d  # type: ignore[return-value]

    def extents_of(s: IntTuple, d: Stride) -> IntTuple:
        if type(s) is tuple:
            return tuple([extents_of(x, y) for x, y in zip(s, d)])  # type: ignore[arg-type]
        return 1 if type(d) is int and d == 0 else s

    order = order_of(layout.stride)
    return raw_layout(layout.shape, _ordered(layout.shape, extents_of(layout.shape, layout.stride), order))


def _static_strides(d: Stride, out: list[int]) -> None:
    if type(d) is tuple:
        for x in d:
            _static_strides(x, out)
    elif isinstance(d, Basis):
        raise AlgebraError(f"expected integer strides, got the basis element {d}")
    elif type(d) is int:
        out.append(d)


__all__ = [
    "basis_like",
    "concat",
    "make_identity_layout",
    "make_layout",
    "make_layout_like",
    "make_ordered_layout",
    "ordered_stride",
]
