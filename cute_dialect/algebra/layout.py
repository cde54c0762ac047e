"""Layouts: constructors (from modes, from an order, like another layout, identity), coalescing, grouping, padding,
recasting.

>>> make_ordered_layout((6, 5, 2), (2, 0, 1)), make_layout_like(Layout("(6,5):(10,2)"))
(Layout("(6,5,2):(10,1,5)"), Layout("(6,5):(5,1)"))
>>> coalesce(Layout("(2,(1,6)):(1,(6,2))"))
Layout("12:1")
"""

from __future__ import annotations

from collections.abc import Callable
from math import gcd
from typing import TypeAlias, TypeVar

from cute_dialect.algebra.arithmetic import shape_div_leaf
from cute_dialect.algebra.leaf import AlgebraError, Dyn, Leaf, ceil_div, mul
from cute_dialect.algebra.trees import (
    check_range,
    column_major,
    is_static,
    product,
    shown,
    tree_leaves,
    weakly_congruent,
)
from cute_dialect.algebra.values import (
    AnyLayout,
    Basis,
    ComposedLayout,
    Coord,
    IntTuple,
    Layout,
    Stride,
    Swizzle,
    layout_modes,
    raw_layout,
)

# --------------------------------------------------------------------------------------------------------- constructors


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


# --------------------------------------------------------------------------------------------------------- manipulation


Extents: TypeAlias = list[Leaf]
Strides: TypeAlias = "list[Leaf | Basis]"
A = TypeVar("A", Layout, ComposedLayout)
T = TypeVar("T")

# -------------------------------------------------------------------------------------------------- flat modes


def flat_modes(layout: Layout) -> tuple[list[Leaf], list[Leaf | Basis]]:
    """Return the leaves of the shape and the corresponding leaves of the stride."""
    s, d = layout.shape, layout.stride
    if type(s) is not tuple:
        return [s], [d]  # type: ignore[list-item]
    for x in s:
        if type(x) is tuple:
            break
    else:
        return list(s), list(d)  # type: ignore[arg-type,return-value]
    extents: list[Leaf] = []
    strides: list[Leaf | Basis] = []
    _flat(s, d, extents, strides)  # type: ignore[arg-type]
    return extents, strides


def _flat(s: tuple[IntTuple, ...], d: tuple[Stride, ...], S: list[Leaf], D: list[Leaf | Basis]) -> None:
    for si, di in zip(s, d):
        if type(si) is tuple:
            _flat(si, di, S, D)  # type: ignore[arg-type]
        else:
            S.append(si)  # type: ignore[arg-type]
            D.append(di)  # type: ignore[arg-type]


def fold_modes(
    extents: list[Leaf], strides: list[Leaf | Basis], keep_last: bool
) -> tuple[list[Leaf], list[Leaf | Basis]]:
    """Merge adjacent flat modes that are static if the second continues the first.

    Modes of extent 1 are dropped.  A last mode of extent 1 is kept if there is no other mode.  If ``keep_last`` it is
    also kept unless it continues the mode before it, because its stride is where a repetition starts.  Dynamic modes
    are never merged, whatever their divisors.
    """
    S: list[Leaf] = []
    D: list[Leaf | Basis] = []
    ps: Leaf = 0
    pd: Leaf | Basis = 0
    for s, d in zip(extents, strides):
        if s == 1:
            continue
        if type(s) is int and type(d) is int and type(ps) is int and type(pd) is int:
            if ps and d == ps * pd:
                S[-1] = ps = check_range(ps * s)
                continue
        elif S and _continues(ps, pd, s, d):
            S[-1] = ps = check_range(ps * s)  # type: ignore[operator]
            continue
        S.append(s)
        D.append(d)
        ps = s
        pd = d
    if extents and extents[-1] == 1 and (not S or (keep_last and not _continues(ps, pd, 1, strides[-1]))):
        S.append(1)
        D.append(strides[-1])
    return S, D


def _continues(ps: Leaf, pd: Leaf | Basis, s: Leaf, d: Leaf | Basis) -> bool:
    if type(ps) is not int or type(s) is not int:
        return False
    if type(pd) is int:
        return type(d) is int and d == ps * pd
    if isinstance(pd, Basis) and isinstance(d, Basis) and pd.path == d.path:
        return type(pd.value) is int and type(d.value) is int and d.value == ps * pd.value
    return False


def from_modes(extents: list[Leaf], strides: list[Leaf | Basis]) -> Layout:
    """Return the flat layout of these modes.  A single mode gives a scalar layout."""
    if len(extents) == 1:
        return raw_layout(extents[0], strides[0])
    return raw_layout(tuple(extents), tuple(strides))


# ----------------------------------------------------------------------------------------------------- coalesce


def coalesce(layout: A, profile: Coord | None = None) -> A:
    """Return a layout with as few modes as possible that is the same function of the linear index.

    Args:
        layout: layout to coalesce.  For a composed layout, the outer layout is coalesced.
        profile: tree whose structure selects the modes that are coalesced separately.  Surplus modes are unchanged.
            None coalesces the whole layout.

    Raises:
        AlgebraError: the profile has a larger rank than the mode it applies to.

    >>> coalesce(Layout("(1,4,1,2):(9,2,5,8)")), coalesce(Layout("(5,(4,2)):(1,(5,20))"), (1, 1))
    (Layout("8:2"), Layout("(5,8):(1,5)"))
    """
    if isinstance(layout, ComposedLayout):
        return ComposedLayout(layout.inner, layout.offset, coalesce(layout.outer, profile))
    return _coalesce(layout, 0 if profile is None else profile, False)


def coalesce_keeping(layout: Layout, profile: Coord = 0) -> Layout:
    """Coalesce as :func:`coalesce` does, but keep a last mode of extent 1 that does not continue another."""
    return _coalesce(layout, profile, True)


def _coalesce(layout: Layout, profile: Coord, keep_last: bool) -> Layout:
    if type(profile) is tuple:
        modes = layout_modes(layout)
        if len(profile) > len(modes):
            raise AlgebraError(
                f"expected a profile of rank at most {len(modes)} for {shown(layout)}, got {shown(profile)}"
            )
        parts = [_coalesce(m, p, keep_last) for m, p in zip(modes, profile)] + modes[len(profile) :]
        return raw_layout(tuple([p.shape for p in parts]), tuple([p.stride for p in parts]))
    if type(layout.shape) is not tuple:
        return layout
    extents, strides = flat_modes(layout)
    return from_modes(*fold_modes(extents, strides, keep_last))


# --------------------------------------------------------------------------------------------- grouping, padding


def group_modes(layout: A, begin: int, end: int) -> A:
    """Group the modes ``begin`` to ``end - 1`` into one mode.  A scalar layout counts as one mode.

    Raises:
        AlgebraError: unless ``0 <= begin < end <= rank``.

    >>> group_modes(Layout("(4,5,6):(1,4,20)"), 1, 3), group_modes(Layout("5:2"), 0, 1)
    (Layout("(4,(5,6)):(1,(4,20))"), Layout("(5):(2)"))
    """
    if isinstance(layout, ComposedLayout):
        return ComposedLayout(layout.inner, layout.offset, group_modes(layout.outer, begin, end))
    s, d = layout.shape, layout.stride
    rank = len(s) if type(s) is tuple else 1
    if not 0 <= begin < end <= rank:
        raise AlgebraError(f"expected 0 <= begin < end <= {rank}, got begin {begin} and end {end}")
    if type(s) is not tuple or type(d) is not tuple:
        return raw_layout((s,), (d,))
    return raw_layout(
        (*s[:begin], s[begin:end], *s[end:]),
        (*d[:begin], d[begin:end], *d[end:]),
    )


def append_to_rank(value: T, element: T | Layout, rank: int) -> T:
    """Append copies of ``element`` as modes until the value has ``rank`` modes.

    A value with at least ``rank`` modes is returned unchanged.  ``value`` is a tree or layout and ``element`` has the
    same kind; a composed layout takes a layout.  Raises AlgebraError for ``rank < 1``.

    >>> append_to_rank(Layout("6:2"), Layout("1:0"), 3), append_to_rank((6, 2), (5, 5), 3)
    (Layout("(6,1,1):(2,0,0)"), (6, 2, (5, 5)))
    """
    return _pad(value, element, rank, True)


def prepend_to_rank(value: T, element: T | Layout, rank: int) -> T:
    """Prepend copies of ``element`` as modes until the value has ``rank`` modes; see :func:`append_to_rank`.

    >>> prepend_to_rank(Layout("(6,2):(2,12)"), Layout("1:0"), 3)
    Layout("(1,6,2):(0,2,12)")
    """
    return _pad(value, element, rank, False)


def _pad(value: T, element: T | Layout, rank: int, behind: bool) -> T:
    if rank < 1:
        raise AlgebraError(f"expected a rank >= 1, got {rank}")
    if isinstance(value, ComposedLayout):
        outer = _pad(value.outer, element, rank, behind)  # type: ignore[arg-type]
        return ComposedLayout(value.inner, value.offset, outer)  # type: ignore[return-value]
    if isinstance(value, Layout):
        if not isinstance(element, Layout):
            raise AlgebraError(f"expected a layout as the padding of a layout, got {shown(element)}")
        if type(value.shape) is not tuple and rank == 1:
            return value
        shape = _pad(value.shape, element.shape, rank, behind)
        return raw_layout(shape, _pad(value.stride, element.stride, rank, behind))  # type: ignore[return-value]
    modes = value if type(value) is tuple else (value,)  # type: ignore
    if len(modes) >= rank:  # type: ignore
        return value  # type: ignore
    more = (element,) * (rank - len(modes))  # type: ignore
    return modes + more if behind else more + modes  # type: ignore[return-value]


# ------------------------------------------------------------------------------------------------------- recast


def recast_layout(layout: A, new_bits: int, old_bits: int) -> A:
    """Rewrite a layout of elements of ``old_bits`` as a layout of elements of ``new_bits``.

    For wider elements strides and extents are divided, rounding up; for narrower elements they are multiplied.  A
    stride ``?{div=8}`` divides exactly.  The static offset and the inner part of a composed layout are recast as well.

    Raises:
        AlgebraError: a width is below 1, a stride is a basis element, the offset is not divisible, or the base of the
            swizzle becomes negative.

    >>> recast_layout(Layout("(10,3):(1,10)"), 16, 8), recast_layout(Layout("(9,5):(1,9)"), 24, 16)
    (Layout("(5,3):(1,5)"), Layout("(6,5):(1,6)"))
    >>> recast_layout(ComposedLayout(Swizzle(3, 4, 3), 0, Layout("(64,8):(1,64)")), 32, 8)
    ComposedLayout("S<3,2,3> o 0 o (16,8):(1,16)")
    """
    if new_bits <= 0 or old_bits <= 0:
        raise AlgebraError(f"expected positive element widths, got {new_bits} and {old_bits} bits")
    common = gcd(new_bits, old_bits)
    up, down = new_bits // common, old_bits // common
    if up > 1:
        layout = upcast(layout, up)
    return downcast(layout, down) if down > 1 else layout if up > 1 else _integer_strides(layout)


def _integer_strides(layout: A) -> A:
    plain = layout.outer if isinstance(layout, ComposedLayout) else layout
    for d in tree_leaves(plain.stride):
        if isinstance(d, Basis):
            raise AlgebraError(f"expected integer strides to recast, got the basis element {d}")
    return layout


def upcast(layout: A, n: int) -> A:
    """Rewrite a layout for elements ``n`` times as wide.  Raises the errors of :func:`recast_layout`."""
    if isinstance(layout, ComposedLayout):
        inner, offset = layout.inner, layout.offset
        if type(offset) is not int:
            raise AlgebraError(f"expected a static integer offset to recast, got {shown(offset)}")
        if offset % n:
            raise AlgebraError(f"expected an offset divisible by {n}, got {offset}")
        part = _swizzle_base(inner, -_log2(n)) if isinstance(inner, Swizzle) else upcast(inner, n)
        return ComposedLayout(part, offset // n, upcast(layout.outer, n))
    return _per_leaf(layout, lambda s, d: _upcast_leaf(s, d, n))


def downcast(layout: A, n: int) -> A:
    """Rewrite a layout for elements ``1/n`` as wide.  Raises the errors of :func:`recast_layout`."""
    if isinstance(layout, ComposedLayout):
        inner, offset = layout.inner, layout.offset
        if type(offset) is not int:
            raise AlgebraError(f"expected a static integer offset to recast, got {shown(offset)}")
        part = _swizzle_base(inner, _log2(n)) if isinstance(inner, Swizzle) else downcast(inner, n)
        return ComposedLayout(part, check_range(offset * n), downcast(layout.outer, n))
    return _per_leaf(layout, lambda s, d: _downcast_leaf(s, d, n))


def _per_leaf(layout: Layout, f: Callable[[Leaf, Leaf], tuple[Leaf, Leaf]]) -> Layout:
    def walk(s: IntTuple, d: Stride) -> tuple[IntTuple, Stride]:
        if type(s) is tuple:
            parts = [walk(x, y) for x, y in zip(s, d)]  # type: ignore[arg-type]
            return tuple([p[0] for p in parts]), tuple([p[1] for p in parts])
        if isinstance(d, Basis):
            raise AlgebraError(f"expected integer strides to recast, got the basis element {d}")
        return f(s, d)  # type: ignore[arg-type]

    return raw_layout(*walk(layout.shape, layout.stride))


def _upcast_leaf(s: Leaf, d: Leaf, n: int) -> tuple[Leaf, Leaf]:
    if not isinstance(d, int):
        return s, shape_div_leaf(d, n)
    if d == 0:
        return s, 0
    covered = -(-n // abs(d))
    stride = -(-abs(d) // n)
    return ceil_div(s, covered), stride if d > 0 else -stride


def _downcast_leaf(s: Leaf, d: Leaf, n: int) -> tuple[Leaf, Leaf]:
    if isinstance(d, int) and d in (1, -1):
        return mul(s, n), d
    return s, mul(d, n)


def _log2(n: int) -> int:
    if n & (n - 1):
        raise AlgebraError(f"recasting a swizzled layout needs element widths whose ratio is a power of two, got {n}")
    return n.bit_length() - 1


def _swizzle_base(swizzle: Swizzle, by: int) -> Swizzle:
    if swizzle.base + by < 0:
        raise AlgebraError(f"expected a swizzle of base >= {-by} for the wider elements, got {swizzle}")
    return Swizzle(swizzle.bits, swizzle.base + by, swizzle.shift)


__all__ = [
    "append_to_rank",
    "basis_like",
    "coalesce",
    "coalesce_keeping",
    "concat",
    "downcast",
    "flat_modes",
    "fold_modes",
    "from_modes",
    "group_modes",
    "make_identity_layout",
    "make_layout",
    "make_layout_like",
    "make_ordered_layout",
    "ordered_stride",
    "prepend_to_rank",
    "recast_layout",
    "upcast",
]
