"""Verification of algebra values: each function raises AlgebraError for the first rule that a value breaks.

The type verifiers call these functions.  Shape and stride of a layout must be congruent and static extents positive.
Strides must not mix integers with basis elements.  A composed layout must not be trivial, and its parts must fit.

>>> verify_layout(Layout("(4,8):(1,4)"))
>>> verify_stride((2, Basis(1, (0,))))
Traceback (most recent call last):
    ...
cute_dialect.algebra.leaf.AlgebraError: expected integer strides or basis elements, got both 2 and 1@0
"""

from __future__ import annotations

import itertools
from operator import index as to_int

from cute_dialect.algebra.arithmetic import arithmetic_add
from cute_dialect.algebra.leaf import AlgebraError, Dyn
from cute_dialect.algebra.text import parse_layout, parse_shape, parse_stride
from cute_dialect.algebra.trees import column_major, congruent, shown, tree_leaves, weakly_congruent
from cute_dialect.algebra.values import (
    UNDERSCORE,
    Basis,
    ComposedLayout,
    IntTuple,
    Layout,
    Payload,
    Stride,
    Swizzle,
    raw_layout,
)


def _verify_integers(tree: IntTuple, kind: str) -> None:
    for x in tree_leaves(tree):
        if type(x) is not int and not isinstance(x, Dyn):
            raise AlgebraError(f"expected integers in the {kind}, got {x}")


def verify_int_tuple(value: Payload) -> None:
    """Check that all leaves are integers or dynamic."""
    _verify_integers(value, "int tuple")  # type: ignore[arg-type]


def verify_shape(value: Payload) -> None:
    """Check that all leaves are integers or dynamic.  Extents <= 0 are legal here but not in a layout."""
    _verify_integers(value, "shape")  # type: ignore[arg-type]


def verify_coord(value: Payload) -> None:
    """Check that all leaves are integers, dynamic or ``_``."""
    for x in tree_leaves(value):  # type: ignore[arg-type]
        if type(x) is not int and not isinstance(x, Dyn) and x is not UNDERSCORE:
            raise AlgebraError(f"expected integers or '_' in the coord, got {x}")


def verify_stride(value: Payload) -> None:
    """Check that all leaves are integers or dynamic, or that all are basis elements or static zeros.

    No path of a basis element may be a proper prefix of another.
    """
    plain: object = None
    basis: list[Basis] = []
    for x in tree_leaves(value):  # type: ignore[arg-type]
        if isinstance(x, Basis):
            basis.append(x)
        elif type(x) is int or isinstance(x, Dyn):
            if plain is None and x != 0:
                plain = x
        else:
            raise AlgebraError(f"expected integers or basis elements in the stride, got {x}")
    if not basis:
        return
    if plain is not None:
        raise AlgebraError(f"expected integer strides or basis elements, got both {plain} and {basis[0]}")
    # In lexicographic order a path directly precedes the paths that it is a prefix of.
    basis.sort(key=lambda b: b.path)
    for a, b in itertools.pairwise(basis):
        if len(a.path) < len(b.path) and b.path[: len(a.path)] == a.path:
            raise AlgebraError(f"expected basis elements of distinct modes, got {b}, which lies inside the mode of {a}")


def _verify_profile(layout: Layout) -> None:
    if not congruent(layout.shape, layout.stride):
        raise AlgebraError(
            f"expected a stride congruent with the shape {shown(layout.shape)}, got {shown(layout.stride)}"
        )


def _verify_extents(layout: Layout) -> None:
    _verify_integers(layout.shape, "shape of a layout")
    for x in tree_leaves(layout.shape):
        if type(x) is int and x <= 0:
            raise AlgebraError(f"expected extents >= 1, got {x} in {shown(layout)}")


def verify_layout(value: Payload) -> None:
    """Check that shape and stride are congruent, static extents are positive and the stride is legal."""
    if not isinstance(value, Layout):
        raise AlgebraError(f"expected a layout, got {shown(value)}")
    _verify_profile(value)
    _verify_extents(value)
    verify_stride(value.stride)


def verify_tile(value: Payload) -> None:
    """Check that all slots are ``_`` or layouts with legal strides.

    Congruence and extents of a slot are checked when the slot is used.
    """
    for x in tree_leaves(value):  # type: ignore[arg-type]
        if isinstance(x, Layout):
            verify_stride(x.stride)
        elif x is not UNDERSCORE:
            raise AlgebraError(f"expected layouts or '_' in the tile, got {x}")


def verify_swizzle(value: Payload) -> None:
    """Check that the value is a swizzle.  The constructor has already checked its fields."""
    if not isinstance(value, Swizzle):
        raise AlgebraError(f"expected a swizzle, got {shown(value)}")


def is_trivial_wrap(inner: Layout | Swizzle, offset: IntTuple) -> bool:
    """Return True if ``inner o offset o B`` equals ``B``: a swizzle of 0 bits and a static offset of 0."""
    return isinstance(inner, Swizzle) and inner.bits == 0 and type(offset) is int and offset == 0


def verify_composed_layout(value: Payload) -> None:
    """Check a composed layout: it is not trivial, both layouts are legal, and ``offset + outer(0)`` fits ``inner``."""
    if not isinstance(value, ComposedLayout):
        raise AlgebraError(f"expected a composed layout, got the plain layout {shown(value)}")
    inner, offset, outer = value.inner, value.offset, value.outer
    _verify_integers(offset, "offset")
    _verify_profile(outer)
    if isinstance(inner, Layout):
        _verify_profile(inner)
    if is_trivial_wrap(inner, offset):
        raise AlgebraError(
            "expected a nontrivial composed layout, got an identity swizzle with offset 0; "
            f"use the outer layout {shown(outer)}"
        )
    _verify_extents(outer)
    if isinstance(inner, Layout):
        _verify_extents(inner)
    verify_stride(outer.stride)
    if isinstance(inner, Layout):
        verify_stride(inner.stride)
    profile = stride_profile(outer.stride)
    try:
        index = arithmetic_add(offset, profile)
    except AlgebraError:
        raise AlgebraError(
            f"cannot add the offset {shown(offset)} to indices of the outer layout, of the form {shown(profile)}"
        ) from None
    if type(index) is not tuple:
        return
    if isinstance(inner, Swizzle):
        raise AlgebraError(f"expected an integer index for the swizzle, got the arithmetic tuple {shown(index)}")
    if not weakly_congruent(index, inner.shape):
        raise AlgebraError(f"indices of the form {shown(index)} are not coordinates of the inner layout {shown(inner)}")


def stride_profile(stride: Stride) -> IntTuple:
    """Return the index at coordinate 0: 0 for integer strides, a tuple of zeros for basis strides.

    >>> stride_profile((Basis(1, (1,)), Basis(2, (0, 1)))), stride_profile((4, 1)), stride_profile(())
    (((0, 0), 0), 0, 0)
    """
    profile: IntTuple = 0
    for x in tree_leaves(stride):
        if isinstance(x, Basis):
            zeros: IntTuple = 0
            for i in reversed(x.path):
                zeros = (0,) * i + (zeros,)
            profile = arithmetic_add(profile, zeros)
    return profile


# --------------------------------------------------------------------------------------- construction of layouts


def _normal(tree: object, what: str) -> object:
    if type(tree) is tuple or type(tree) is list:
        return tuple([_normal(t, what) for t in tree])  # type: ignore
    if type(tree) is int or isinstance(tree, Dyn | Basis):
        return tree
    try:
        n = to_int(tree)  # type: ignore[arg-type]
    except TypeError:
        raise AlgebraError(f"expected a tree of integers as {what}, got {tree!r}") from None
    return n


def checked_layout(shape: object, stride: object = None) -> Layout:
    """Build a verified layout from trees, from lists, or from the text of the layout or of its shape and stride.

    >>> checked_layout("(4,8)", "(8,1)"), checked_layout([4, 8])
    (Layout("(4,8):(8,1)"), Layout("(4,8):(1,4)"))
    """
    if isinstance(shape, str):
        if stride is None:
            layout = parse_layout(shape)
            verify_layout(layout)
            return layout
        shape = parse_shape(shape)
    if isinstance(stride, str):
        stride = parse_stride(stride)
    extents: IntTuple = _normal(shape, "shape")  # type: ignore[assignment]
    steps: Stride = column_major(extents) if stride is None else _normal(stride, "stride")  # type: ignore[assignment]
    layout = raw_layout(extents, steps)
    verify_layout(layout)
    return layout
