"""Common vectors and modes of several layouts: contiguous vectors, widest accesses, null spaces, refinements.

>>> max_common_vector(Layout("(4,8):(1,16)"), Layout("(4,8):(1,4)"))
4
>>> common_modes([Layout((4, 8), (1, 16)), Layout(32, 1)])
[Mode(extent=4, strides=(1, 1)), Mode(extent=8, strides=(16, 4))]
"""

from __future__ import annotations

from collections.abc import Sequence
from math import gcd
from typing import NamedTuple

from cute_dialect.algebra.compose import compose
from cute_dialect.algebra.inverses import right_inverse
from cute_dialect.algebra.layout import coalesce, flat_modes
from cute_dialect.algebra.leaf import AlgebraError, Dyn, Leaf, divisibility, mul
from cute_dialect.algebra.tiling import logical_divide
from cute_dialect.algebra.trees import column_major, leaves
from cute_dialect.algebra.values import Layout, layout_modes, raw_layout


class Mode(NamedTuple):
    """A common mode of several layouts: one extent, and one stride per layout."""

    extent: int
    strides: tuple[Leaf, ...]


def common_modes(layouts: Sequence[Layout]) -> list[Mode]:
    """Split the modes of layouts of equal size until corresponding modes have equal extents.

    Raises:
        AlgebraError: the extents have no common refinement.
    """
    rows = [_flat(layout) for layout in layouts]
    modes: list[Mode] = []
    while any(rows):
        extent = min(row[0][0] for row in rows if row)
        if not all(rows) or any(row[0][0] % extent for row in rows):
            shapes = ", ".join(str(layout) for layout in layouts)
            raise AlgebraError(f"expected shapes that split into common modes, got {shapes}")
        modes.append(Mode(extent, tuple(row[0][1] for row in rows)))
        for row in rows:
            s, d = row[0]
            row[0:1] = [(s // extent, mul(d, extent))] if s != extent else []
    return modes


def _flat(layout: Layout) -> list[tuple[int, Leaf]]:
    pairs: list[tuple[int, Leaf]] = []
    for s, d in zip(leaves(layout.shape), leaves(layout.stride)):
        assert isinstance(s, int)
        if s != 1:
            assert isinstance(d, int | Dyn)
            pairs.append((s, d))
    return pairs


def common_vector(a: Layout, b: Layout) -> Layout | None:
    """Return the longest vector that is contiguous in both layouts, as a layout into their common domain.

    The result is None if the vector has one element.  The vector follows the index order of ``b``.  A dynamic stride of
    ``b`` ends the vector.

    >>> common_vector(Layout("(8,4):(16,1)"), Layout("(8,4):(4,1)"))
    Layout("4:8")
    """
    try:
        order = right_inverse(b)
        run = coalesce(compose(a, order))
    except AlgebraError:
        return None
    first = layout_modes(run)[0] if run.shape != () else run
    extent = first.shape
    if type(extent) is not int or extent == 1 or first.stride != 1:
        return None
    return compose(order, raw_layout(extent, 1))


def max_common_vector(a: Layout, b: Layout) -> int:
    """Return the number of leading elements that are contiguous in both layouts, at least 1.

    This is the extent of the first mode of ``coalesce(a o right_inverse(b))`` if the extent is static and its stride
    is 1.  It is 1 if the composition is not defined.

    >>> max_common_vector(Layout((4, 8), (1, Dyn())), Layout("(4,8):(1,4)"))
    4
    """
    vector = common_vector(a, b)
    return vector.shape if vector is not None and type(vector.shape) is int else _size(vector)


def _size(vector: Layout | None) -> int:
    n = 1
    if vector is not None:
        for s in flat_modes(vector)[0]:
            assert type(s) is int
            n *= s
    return n


def max_alignment(layout: Layout, vector: Layout, alignment: int) -> int:
    """Return the largest provable alignment, in elements, of the vectors of a layout.

    This is the gcd of ``alignment`` and of all strides outside the vector, or 1 if the layout is not divisible by the
    vector.

    Args:
        layout: layout of the tensor.
        vector: layout into the domain, as :func:`common_vector` returns it.
        alignment: alignment of the pointer in elements.

    >>> max_alignment(Layout((8, 4), (Dyn(div=6), 1)), Layout("4:8"), 8)
    2
    """
    try:
        rest = layout_modes(logical_divide(layout, vector))[1]
    except (AlgebraError, IndexError):
        return 1
    for s, d in zip(*flat_modes(rest)):
        if s == 1:
            continue
        if not isinstance(d, int | Dyn):
            return 1
        alignment = gcd(alignment, divisibility(d))
    return alignment


def vector_bits(
    a: Layout, b: Layout, element_bits: int, align_a: int, align_b: int, limit: int = 128
) -> tuple[int, Layout | None]:
    """Return the widest access, in bits, that can copy all elements from one layout to the other, and its vector.

    The width is a multiple of ``element_bits`` that divides ``limit``.  The vector is a layout into the domain, or None
    if only single elements can be copied.  A dynamic stride ``?{div=8}`` of 16-bit elements permits 128-bit accesses.

    Args:
        a: layout of one side.
        b: layout of the other side.
        element_bits: width of an element.
        align_a: alignment of the pointer to ``a`` in bits.
        align_b: alignment of the pointer to ``b`` in bits.
        limit: widest access in bits.

    >>> ld = Dyn(div=8)
    >>> vector_bits(Layout((16, 64), (ld, 1)), Layout("(16,64):(64,1)"), 16, 128, 128)
    (128, Layout("8:16"))
    >>> vector_bits(Layout((16, 64), (Dyn(div=2), 1)), Layout("(16,64):(64,1)"), 16, 128, 128)
    (32, Layout("2:16"))
    """
    vector = common_vector(a, b)
    if vector is None:
        return element_bits, None
    bits = gcd(_size(vector) * element_bits, limit)
    bits = gcd(bits, max_alignment(a, vector, max(1, align_a // element_bits)) * element_bits)
    bits = gcd(bits, max_alignment(b, vector, max(1, align_b // element_bits)) * element_bits)
    if bits % element_bits or bits == element_bits:
        return element_bits, None
    return bits, compose(vector, raw_layout(bits // element_bits, 1))


def nullspace(layout: Layout) -> Layout:
    """Return the part of the domain that the layout maps to 0: ``layout(nullspace(layout)(i)) == 0``.

    >>> nullspace(Layout("(2,(4,3)):(1,(0,2))")), nullspace(Layout("(2,4):(1,2)"))
    (Layout("4:2"), Layout("1:0"))
    """
    extents, strides = flat_modes(layout)
    starts = leaves(column_major(tuple(extents)))
    S: list[Leaf] = []
    D: list[Leaf] = []
    for s, d, start in zip(extents, strides, starts):
        if type(d) is int and d == 0 and s != 1:
            S.append(s)
            D.append(start)  # type: ignore[arg-type]
    if len(S) == 1:
        return raw_layout(S[0], D[0])
    return raw_layout(tuple(S), tuple(D)) if S else raw_layout(1, 0)


__all__ = ["Mode", "common_modes", "common_vector", "max_alignment", "max_common_vector", "nullspace", "vector_bits"]
