"""Layout constructors: from modes, from an order, like another layout, identity.

>>> make_ordered_layout((6, 5, 2), (2, 0, 1)), make_layout_like(Layout("(6,5):(10,2)"))
(Layout("(6,5,2):(10,1,5)"), Layout("(6,5):(5,1)"))
"""

from __future__ import annotations

from cute_dialect.algebra.leaf import AlgebraError, Dyn, Leaf, mul
from cute_dialect.algebra.trees import column_major, is_static, product, shown, weakly_congruent
from cute_dialect.algebra.values import AnyLayout, Basis, ComposedLayout, IntTuple, Layout, Stride, Swizzle, raw_layout


def make_layout(*parts: Layout | IntTuple) -> Layout:
    """Return the layout whose modes are the given layouts, or the layout of a shape and an optional stride.

    Raises:
        AlgebraError: layouts are mixed with trees, or the layout is not legal.

    >>> make_layout(Layout("4:1"), Layout("(2,3):(4,8)")), make_layout((4, 8), (8, 1))
    (Layout("(4,(2,3)):(1,(4,8))"), Layout("(4,8):(8,1)"))
    """
    layouts = [p for p in parts if isinstance(p, Layout)]
    if len(layouts) == len(parts):
        return raw_layout(tuple([p.shape for p in layouts]), tuple([p.stride for p in layouts]))
    if layouts or len(parts) > 2:
        raise AlgebraError(f"expected only layouts, or a shape and a stride, got {len(parts)} operands of mixed kinds")
    return Layout(*parts)  # type: ignore[arg-type]


def concat(*layouts: Layout) -> Layout:
    """Return the layout with these modes, leaving out empty layouts."""
    kept = [x for x in layouts if x.shape != ()]
    return raw_layout(tuple([x.shape for x in kept]), tuple([x.stride for x in kept]))


def make_identity_layout(shape: IntTuple) -> Layout:
    """Return the layout that maps a coordinate to itself.  It has unit basis strides; a scalar shape has stride 1.

    >>> make_identity_layout((6, (2, Dyn()))), make_identity_layout(7)
    (Layout("(6,(2,?)):(1@0,(1@0@1,1@1@1))"), Layout("7:1"))
    """
    return raw_layout(shape, basis_like(shape))


def basis_like(shape: IntTuple, path: tuple[int, ...] = ()) -> Stride:
    """Return the unit basis strides of a shape that is located at ``path`` in the whole shape."""
    if type(shape) is tuple:
        return tuple([basis_like(s, (*path, i)) for i, s in enumerate(shape)])
    return Basis(1, path) if path else 1


def ordered_stride(shape: IntTuple, order: IntTuple) -> IntTuple:
    """Return compact strides in which modes of smaller order vary faster.

    The sub-shape under an order leaf ``w`` gets column-major strides.  They start at the product of all sub-shapes
    whose order is *below* ``w``, so equal orders start at the same stride.

    Args:
        shape: shape of the layout.
        order: static tree, weakly congruent with the shape.

    Raises:
        AlgebraError: the order is dynamic or does not fit the shape.

    >>> ordered_stride((6, 1, 5), (2, 0, 1)), ordered_stride((6, 5), (3, 3)), ordered_stride((6, 5), 9)
    ((5, 0, 1), (1, 1), (1, 6))
    """
    if not is_static(order):
        raise AlgebraError(f"expected a static order, got {shown(order)}")
    if not weakly_congruent(order, shape):
        raise AlgebraError(f"expected an order that fits the shape {shown(shape)}, got {shown(order)}")
    return _ordered(shape, shape, order)


def _ordered(shape: IntTuple, extents: IntTuple, order: IntTuple) -> IntTuple:
    # ``extents`` is the shape with every mode that does not count set to 1.
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
    """Return the compact layout of ``shape`` in which modes of smaller ``order`` vary faster.

    See :func:`ordered_stride`.

    >>> make_ordered_layout((6, (5, 2)), (1, 0)), make_ordered_layout((6, Dyn(), 2), (2, 1, 3))
    (Layout("(6,(5,2)):(10,(1,5))"), Layout("(6,?,2):(?,1,?)"))
    """
    return raw_layout(shape, ordered_stride(shape, order))


def make_layout_like(layout: AnyLayout) -> Layout:
    """Return the compact layout with the shape of ``layout`` and its modes ordered by stride.

    Static strides of 0 stay 0.  Dynamic strides rank above all static strides, from left to right.  A swizzled layout
    is represented by its outer layout.

    Raises:
        AlgebraError: a stride is a basis element, or the inner part of a composed layout is a layout.

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
