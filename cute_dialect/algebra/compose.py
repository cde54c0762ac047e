"""Composition of layouts.

>>> composition(Layout("(6,10):(10,1)"), Layout("(3,4):(2,6)"))
Layout("(3,4):(20,1)")

The definitions follow the CuTe documentation of layout algebra.  Only static numbers are checked for divisibility.  A
dynamic extent or stride therefore never makes a composition illegal; it makes the result dynamic.
"""

from __future__ import annotations

from cute_dialect.algebra.evaluation import scale
from cute_dialect.algebra.layout import Extents, Strides, coalesce_keeping, concat, flat_modes, fold_modes, from_modes
from cute_dialect.algebra.leaf import AlgebraError, Dyn, Leaf, absolute, ceil_div, min_extent, mul, sign
from cute_dialect.algebra.leaf import div as leaf_div
from cute_dialect.algebra.trees import check_range, shape_to_tile, shown
from cute_dialect.algebra.values import (
    UNDERSCORE,
    AnyLayout,
    Basis,
    ComposedLayout,
    IntTuple,
    Layout,
    Stride,
    Tile,
    layout_modes,
    raw_layout,
)
from cute_dialect.algebra.verify import stride_profile, verify_layout

_LOW, _HIGH = -0x8000000000000000, 0x7FFFFFFFFFFFFFFF


# --------------------------------------------------------------------------------------------------- composition


def composition(a: AnyLayout, b: AnyLayout | Tile | IntTuple) -> AnyLayout:
    """Return the composition ``c -> a(b(c))``, mode by mode if ``b`` is a tile or shape.

    As in CuTe, a step smaller than an extent of ``a`` need not divide it.  The count is then rounded up, and the result
    equals ``a(b(c))`` only while ``b`` stays within that mode.

    Args:
        a: plain or composed layout.  For a composed layout, the outer layout is composed.
        b: layout, tile or shape, or ``inner o offset o outer`` with a layout ``inner``, which is composed with ``a``.
            In a tile ``_`` keeps a mode, and surplus modes of ``a`` are dropped.  An extent ``n`` is the layout
            ``n:1``, and 1 is ``1:0``.

    Raises:
        AlgebraError: ranks do not fit, or ``b`` does not fit the modes of ``a``: a step exceeds an extent without being
            a multiple of it, or the elements left in that mode do not divide the extent of ``b``.

    >>> A = Layout("(12,8):(8,1)")
    >>> composition(A, (Layout("3:4"), UNDERSCORE)), composition(A, (3, 2))
    (Layout("(3,8):(32,1)"), Layout("(3,2):(8,1)"))
    """
    if isinstance(b, ComposedLayout):
        if not isinstance(a, Layout) or not isinstance(b.inner, Layout):
            raise AlgebraError(
                f"cannot compose {shown(a)} with {shown(b)}: if the right layout is composed, the left must be plain "
                "and the inner layout must not be a swizzle"
            )
        return ComposedLayout(compose(a, b.inner), b.offset, b.outer)
    if isinstance(a, ComposedLayout):
        return ComposedLayout(a.inner, a.offset, composition(a.outer, b))  # type: ignore[arg-type]
    if type(b) is Layout:
        return compose(a, b)
    return _compose_tile(a, as_tiler(b))


def as_tiler(tiler: Layout | Tile | IntTuple) -> Tile:
    """Convert a shape to the tile of ``n:1`` (``1:0`` for 1).  Layouts and tiles are unchanged; a tuple may mix both.

    Raises:
        AlgebraError: an extent is below 1, or a layout in a slot is illegal.

    >>> as_tiler((4, (UNDERSCORE, Layout("3:2"))))
    (Layout("4:1"), (_, Layout("3:2")))
    """
    if type(tiler) is tuple:
        return tuple([as_tiler(t) if type(t) is not Layout else _verified(t) for t in tiler])  # type: ignore[arg-type]
    if type(tiler) is int or isinstance(tiler, Dyn):
        return shape_to_tile(tiler)
    return tiler  # type: ignore[return-value]


def _verified(layout: Layout) -> Layout:
    verify_layout(layout)
    return layout


def _compose_tile(a: Layout, tile: Tile) -> Layout:
    if tile is UNDERSCORE:
        return a
    if isinstance(tile, Layout):
        return compose(a, tile)
    assert type(tile) is tuple
    modes = layout_modes(a)
    check_tile_rank(tile, a)
    return concat(*[_compose_tile(m, t) for m, t in zip(modes, tile)])


def check_tile_rank(tile: tuple[Tile, ...], a: Layout) -> None:
    """Raise AlgebraError if a tile has more modes than the layout that it is applied to."""
    rank = len(a.shape) if type(a.shape) is tuple else 1
    if len(tile) > rank:
        raise AlgebraError(f"expected a tiler of rank at most {rank} for {shown(a)}, got rank {len(tile)}")


def compose(a: Layout, b: Layout) -> Layout:
    """Return the composition ``c -> a(b(c))`` of two layouts; see :func:`composition`."""
    folded = fold_static(a)
    if folded is not None:
        parts = compose_static(*folded, b.shape, b.stride)
        if parts is not None:
            return raw_layout(*parts)
    if _has_basis(b.stride):
        profile = stride_profile(b.stride)
        rank = len(a.shape) if type(a.shape) is tuple else 1
        if type(profile) is tuple and len(profile) > rank:
            raise AlgebraError(f"the basis strides of {shown(b)} refer to modes beyond the {rank} of {shown(a)}")
        shape, stride = _compose_basis(coalesce_keeping(a, profile), b.shape, b.stride)
    else:
        extents, strides = flat_modes(a)
        if len(extents) > 1:
            extents, strides = fold_modes(extents, strides, True)
        shape, stride = _compose_flat(extents, strides, b.shape, b.stride)
    return raw_layout(shape, stride)


# Fast path for plain integers, the common case in programs: one pass over the leaves of ``a``, and one call per leaf of
# ``b``.


def fold_static(a: Layout) -> tuple[list[int], list[int]] | None:
    """Return the folded modes of a layout of plain integers, keeping a last extent of 1; None for other layouts."""
    s, d = a.shape, a.stride
    if type(s) is tuple:
        extents: list[int] = []
        strides: list[int] = []
        return (extents, strides) if _gather(s, d, extents, strides) else None  # type: ignore[arg-type]
    return ([s], [d]) if type(s) is int and type(d) is int else None


def _gather(s: tuple[IntTuple, ...], d: tuple[Stride, ...], E: list[int], F: list[int]) -> bool:
    for si, di in zip(s, d):
        if type(si) is int and type(di) is int:
            if E:
                if E[-1] == 1:
                    E.pop()
                    F.pop()
                    if E and di == E[-1] * F[-1]:
                        E[-1] *= si
                        continue
                elif di == E[-1] * F[-1]:
                    E[-1] *= si
                    continue
            E.append(si)
            F.append(di)
        elif type(si) is not tuple or not _gather(si, di, E, F):  # type: ignore[arg-type]
            return False
    return True


def compose_static(E: list[int], F: list[int], s: IntTuple, d: Stride) -> tuple[IntTuple, Stride] | None:
    """Return shape and stride of folded modes composed with ``s:d``, or None if a leaf is not a plain integer."""
    if type(s) is int and type(d) is int:
        return _leaf_static(E, F, s, d)
    if type(s) is not tuple:
        return None
    shapes: list[IntTuple] = []
    steps: list[Stride] = []
    for si, di in zip(s, d):  # type: ignore[arg-type]
        if type(si) is int and type(di) is int:  # type: ignore
            x: tuple[IntTuple, Stride] | None = _leaf_static(E, F, si, di)
        else:
            x = compose_static(E, F, si, di)  # type: ignore
            if x is None:
                return None
        shapes.append(x[0])
        steps.append(x[1])
    return tuple(shapes), tuple(steps)


def _leaf_static(E: list[int], F: list[int], s: int, d: int) -> tuple[IntTuple, Stride]:
    last = len(E) - 1
    if d <= 0 or last < 0:
        return _compose_flat(E, F, s, d)  # type: ignore[arg-type,return-value]
    i = 0
    while i < last:
        a = E[i]
        if d < a:
            break
        if d % a:
            raise AlgebraError(_step_error(E, F, i, s, d))  # type: ignore[arg-type]
        d //= a
        i += 1
    else:
        return s, check_range(d * F[last])
    if s == 1:
        # The step becomes 1 here and continues to the last mode.
        return 1, F[last]
    k = -(-a // d)
    if s <= k:
        return s, check_range(d * F[i])
    if s % k:
        raise AlgebraError(_count_error(E, F, i, s, d, k))  # type: ignore[arg-type]
    exact = k * d == a
    S = [k]
    D = [check_range(d * F[i])]
    s //= k
    for j in range(i + 1, last):
        a = E[j]
        if s <= a:
            S.append(s)
            D.append(F[j])
            break
        if s % a:
            # unreachable: callers in this package have checked it
            raise AlgebraError(_count_error(E, F, j, s, 1, a))  # type: ignore[arg-type]
        S.append(a)
        D.append(F[j])
        s //= a
    else:
        S.append(s)
        D.append(F[last])
        if not exact:
            # Adjacent modes can continue each other only if a step does not divide its extent.
            return _parts(*fold_modes(S, D, False))  # type: ignore[arg-type]
    return tuple(S), tuple(D)


def _parts(extents: Extents, strides: Strides) -> tuple[IntTuple, Stride]:
    return (extents[0], strides[0]) if len(extents) == 1 else (tuple(extents), tuple(strides))


def _has_basis(d: Stride) -> bool:
    if type(d) is tuple:
        return any(type(x) is not int and _has_basis(x) for x in d)
    return isinstance(d, Basis)


def _compose_basis(a: Layout, s: IntTuple, d: Stride) -> tuple[IntTuple, Stride]:
    if type(s) is tuple:
        parts = [_compose_basis(a, x, y) for x, y in zip(s, d)]  # type: ignore[arg-type]
        return tuple([p[0] for p in parts]), tuple([p[1] for p in parts])
    if not isinstance(d, Basis):
        # Strides that are not basis elements are static zeros here.
        return s, 0
    if isinstance(s, Dyn):
        raise AlgebraError(f"the extent of a mode with the basis stride {d} must be static, got {s}")
    shape, stride = a.shape, a.stride
    for at, i in enumerate(d.path):
        if type(shape) is not tuple or i >= len(shape):
            # unreachable: callers in this package have checked it
            raise AlgebraError(f"the basis stride {d} selects no mode of {shown(a)}: depth {at} has none")
        shape, stride = shape[i], stride[i]  # type: ignore[index]
    extents, strides = flat_modes(raw_layout(shape, stride))  # type: ignore
    return _compose_flat(extents, strides, s, d.value)


def _compose_flat(extents: Extents, strides: Strides, s: IntTuple, d: Stride) -> tuple[IntTuple, Stride]:
    # The left layout is flat and folded.  The right one is s:d with integer strides.
    if type(s) is tuple:
        shapes: list[IntTuple] = []
        steps: list[Stride] = []
        for si, di in zip(s, d):  # type: ignore[arg-type]
            x, y = _compose_flat(extents, strides, si, di)  # type: ignore
            shapes.append(x)
            steps.append(y)
        return tuple(shapes), tuple(steps)
    if type(d) is int and d == 0:
        return s, 0
    last = len(extents) - 1
    if last < 1:
        if last < 0:
            raise AlgebraError(f"cannot compose the empty layout ():() with {s}:{d}")
        return s, _checked(scale(d, strides[0]))  # type: ignore[arg-type]
    S: Extents = []
    D: Strides = []
    for i in range(last):
        a = extents[i]
        if type(a) is int and type(d) is int:
            if d >= a:
                if d % a:
                    raise AlgebraError(_step_error(extents, strides, i, s, d))
                d //= a
                continue
            if d > 0:
                count: Leaf = -(-a // d)
            elif -d >= a:
                d //= a  # rounds away from zero: -ceil(-d / a)
                continue
            else:
                count = -(-a // -d)
            step: Leaf | None = 1 if d > 0 else -1
            if s == 1:
                d = step
                continue
        else:
            step = None
            count = 1 if s == 1 else ceil_div(a, absolute(d))  # type: ignore[arg-type]
            if type(count) is int and count == 1:
                d = _next_step(a, d)  # type: ignore[arg-type]
                continue
        if type(s) is int and type(count) is int:
            k: Leaf = count if count < s else s
            if s % k:
                raise AlgebraError(_count_error(extents, strides, i, s, d, count))  # type: ignore
            rest: Leaf = s // k
        else:
            k = min_extent(count, s)  # type: ignore[arg-type]
            rest = leaf_div(s, k)  # type: ignore[arg-type]
        e = strides[i]
        S.append(k)
        D.append(_checked(d * e if type(e) is int and type(d) is int else scale(d, e)))  # type: ignore[arg-type]
        s = rest
        if rest == 1:
            # Further steps are 1, -1 or dynamic, so no check is needed.
            break
        d = _next_step(a, d) if step is None else step  # type: ignore[arg-type]
    if not S:
        return s, _checked(scale(d, strides[last]))  # type: ignore[arg-type]
    if s == 1:
        return _parts(S, D)
    S.append(s)  # type: ignore[arg-type]
    D.append(_checked(scale(d, strides[last])))  # type: ignore[arg-type]
    return _parts(*fold_modes(S, D, False))


def _next_step(a: Leaf, d: Leaf) -> Leaf:
    return mul(ceil_div(absolute(d), a), sign(d))


def _checked(d: Leaf | Basis) -> Leaf | Basis:
    if type(d) is int and not _LOW <= d <= _HIGH:
        check_range(d)
    return d


def _count_error(extents: Extents, strides: Strides, i: int, s: int, d: int, count: int) -> str:
    return (
        f"expected an extent divisible by {min(count, s)}, got {s}: a step of {d} covers {count} elements of mode {i} "
        f"of {shown(from_modes(extents, strides))}"
    )


def _step_error(extents: Extents, strides: Strides, i: int, s: IntTuple, d: int) -> str:
    return (
        f"expected a step that divides or is a multiple of extent {extents[i]} of mode {i} of "
        f"{shown(from_modes(extents, strides))}, got a step of {d} in {shown(s)}:{d}"
    )


__all__ = [
    "as_tiler",
    "check_tile_rank",
    "compose",
    "composition",
]
