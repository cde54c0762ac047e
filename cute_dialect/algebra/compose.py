"""Composition, complements and inverses of layouts.

>>> composition(Layout("(6,10):(10,1)"), Layout("(3,4):(2,6)"))
Layout("(3,4):(20,1)")
>>> complement(Layout("(2,2):(1,6)"), 24), right_inverse(Layout("(5,3):(3,1)"))
(Layout("(3,2):(2,12)"), Layout("(3,5):(5,1)"))

The definitions follow the CuTe documentation of layout algebra; where a check compares numbers it is made between
static ones only, so a dynamic extent or stride never makes a program illegal, it makes results dynamic.
"""

from __future__ import annotations

from collections.abc import Callable

from cute_dialect.algebra.evaluation import scale
from cute_dialect.algebra.int_tuple import (
    _text,
    ceil_div_tree,
    check_range,
    column_major,
    shape_to_tile,
    tree_leaves,
)
from cute_dialect.algebra.layout import coalesce, coalesce_keeping, flat_modes, fold_modes, from_modes
from cute_dialect.algebra.leaf import AlgebraError, Dyn, Leaf, absolute, ceil_div, min_extent, mul, sign
from cute_dialect.algebra.leaf import div as leaf_div
from cute_dialect.algebra.make import basis_like, concat
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

Extents = list[Leaf]
Strides = list["Leaf | Basis"]

# --------------------------------------------------------------------------------------------------- composition


def composition(a: AnyLayout, b: Layout | Tile | IntTuple) -> AnyLayout:
    """``c -> a(b(c))`` for a layout ``b``; mode by mode for a tile or shape.

    In a tile ``_`` keeps a mode and surplus modes of ``a`` are dropped; a shape ``n`` stands for ``n:1``.  A composed
    ``a`` is composed in its outer layout.  Raises AlgebraError when a step of ``b`` neither divides nor is a multiple
    of an extent of ``a`` that it runs over, and when ranks do not fit.

    >>> A = Layout("(12,8):(8,1)")
    >>> composition(A, (Layout("3:4"), UNDERSCORE)), composition(A, (3, 2))
    (Layout("(3,8):(32,1)"), Layout("(3,2):(8,1)"))
    """
    if isinstance(a, ComposedLayout):
        return ComposedLayout(a.inner, a.offset, composition(a.outer, b))  # type: ignore[arg-type]
    if type(b) is Layout:
        return compose(a, b)
    return _compose_tile(a, as_tiler(b))


def as_tiler(tiler: Layout | Tile | IntTuple) -> Tile:
    """A layout or tile as it is, a shape as the tile of ``n:1``; a tuple may mix both.

    Raises AlgebraError for an extent below 1 and for an illegal layout in a slot.

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
    """Raises AlgebraError when a tile has more modes than the layout it is for."""
    rank = len(a.shape) if type(a.shape) is tuple else 1
    if len(tile) > rank:
        raise AlgebraError(f"expected a tiler of rank at most {rank} for {_text(a)}, got rank {len(tile)}")


def compose(a: Layout, b: Layout) -> Layout:
    """``c -> a(b(c))`` of two layouts; see :func:`composition`."""
    if type(b.stride) is int and type(a.stride) is int and type(a.shape) is int:
        return raw_layout(b.shape, check_range(a.stride * b.stride))
    if _has_basis(b.stride):
        profile = stride_profile(b.stride)
        rank = len(a.shape) if type(a.shape) is tuple else 1
        if type(profile) is tuple and len(profile) > rank:
            raise AlgebraError(f"expected at most {rank} modes to be stepped through in {_text(a)}, got {_text(b)}")
        shape, stride = _compose_basis(coalesce_keeping(a, profile), b.shape, b.stride)
    else:
        extents, strides = flat_modes(a)
        if len(extents) > 1:
            extents, strides = fold_modes(extents, strides, True)
        shape, stride = _compose_flat(extents, strides, b.shape, b.stride)
    return raw_layout(shape, stride)


def _has_basis(d: Stride) -> bool:
    if type(d) is tuple:
        return any(type(x) is not int and _has_basis(x) for x in d)
    return isinstance(d, Basis)


def _compose_basis(a: Layout, s: IntTuple, d: Stride) -> tuple[IntTuple, Stride]:
    if type(s) is tuple:
        parts = [_compose_basis(a, x, y) for x, y in zip(s, d)]  # type: ignore[arg-type]
        return tuple([p[0] for p in parts]), tuple([p[1] for p in parts])
    if not isinstance(d, Basis):
        # Only static zeros stand beside basis elements.
        return s, 0
    if isinstance(s, Dyn):
        raise AlgebraError(f"expected a static extent to go with the basis stride {d}, got {s}")
    shape, stride = a.shape, a.stride
    for at, i in enumerate(d.path):
        if type(shape) is not tuple or i >= len(shape):
            raise AlgebraError(f"expected the path of {d} to lead to a mode of {_text(a)}, but depth {at} has none")
        shape, stride = shape[i], stride[i]  # type: ignore[index]
    extents, strides = flat_modes(raw_layout(shape, stride))
    return _compose_flat(extents, strides, s, d.value)


def _compose_flat(extents: Extents, strides: Strides, s: IntTuple, d: Stride) -> tuple[IntTuple, Stride]:
    # The left layout is flat and folded; the right one is s:d with integer strides.
    if type(s) is tuple:
        shapes: list[IntTuple] = []
        steps: list[Stride] = []
        for si, di in zip(s, d):  # type: ignore[arg-type]
            x, y = _compose_flat(extents, strides, si, di)
            shapes.append(x)
            steps.append(y)
        return tuple(shapes), tuple(steps)
    if type(d) is int and d == 0:
        return s, 0
    last = len(extents) - 1
    if last < 1:
        if last < 0:
            raise AlgebraError(f"expected a layout with modes to compose with, got ():() for {s}:{d}")
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
                raise AlgebraError(
                    f"expected an extent that {k} divides, got {s}: a step of {d} covers {count} elements of mode "
                    f"{i} of {_text(from_modes(extents, strides))}"
                )
            rest: Leaf = s // k
        else:
            k = min_extent(count, s)  # type: ignore[arg-type]
            rest = leaf_div(s, k)  # type: ignore[arg-type]
        e = strides[i]
        S.append(k)
        D.append(_checked(d * e if type(e) is int and type(d) is int else scale(d, e)))  # type: ignore[arg-type]
        s = rest
        if rest == 1:
            # Further steps are 1, -1 or dynamic, which needs no check.
            break
        d = _next_step(a, d) if step is None else step  # type: ignore[arg-type]
    if not S:
        return s, _checked(scale(d, strides[last]))  # type: ignore[arg-type]
    if s == 1:
        return (S[0], D[0]) if len(S) == 1 else (tuple(S), tuple(D))
    S.append(s)  # type: ignore[arg-type]
    D.append(_checked(scale(d, strides[last])))  # type: ignore[arg-type]
    S, D = fold_modes(S, D, False)
    return (S[0], D[0]) if len(S) == 1 else (tuple(S), tuple(D))


def _next_step(a: Leaf, d: Leaf) -> Leaf:
    return mul(ceil_div(absolute(d), a), sign(d))


def _checked(d: Leaf | Basis) -> Leaf | Basis:
    if type(d) is int and not _LOW <= d <= _HIGH:
        check_range(d)
    return d


def _step_error(extents: Extents, strides: Strides, i: int, s: IntTuple, d: int) -> str:
    return (
        f"expected a step that divides or is a multiple of extent {extents[i]} of mode {i} of "
        f"{_text(from_modes(extents, strides))}, got a step of {d} in {_text(s)}:{d}"
    )


# --------------------------------------------------------------------------------------------------- complements


def complement(layout: Layout, cotarget: IntTuple | Layout | None = None) -> Layout:
    """What a layout leaves out of its codomain.

    Without ``cotarget``: the gaps, and last a mode of extent 1 whose stride is where layout and complement together
    repeat.  With one (a shape, or a layout whose shape counts): up to ``size(cotarget)``.  Where a stride is no
    multiple of what the smaller strides cover, the quotient is truncated.  Raises AlgebraError for a layout that is
    not injective and for dynamic strides (one single mode may have one).

    >>> complement(Layout("(2,3):(4,12)")), complement(Layout("(2,3):(4,12)"), 48)
    (Layout("(4,1):(1,36)"), Layout("(4,2):(1,36)"))
    """
    if cotarget is None:
        return minimal_complement(layout)
    return bounded_complement(layout, cotarget.shape if isinstance(cotarget, Layout) else cotarget)


def minimal_complement(layout: Layout) -> Layout:
    """:func:`complement` without cotarget."""
    extents, strides = flat_modes(layout)
    modes: list[tuple[int, int]] = []
    for s, d in zip(extents, strides):
        if type(s) is not int or type(d) is not int:
            return _assemble(stride_profile(layout.stride), (), _gaps(layout, extents, strides))
        if s != 1 and d:
            modes.append((d, s))
    return from_modes(*_static_gaps(layout, modes))


def _static_gaps(layout: Layout, modes: list[tuple[int, int]]) -> tuple[Extents, Strides]:
    # The extents between one mode and the next, at the strides up to which is covered.  No two of them can merge: an
    # extent times its stride is at most the stride of the next mode, which the next stride exceeds.
    modes.sort()
    S: Extents = []
    D: Strides = []
    covered = 1
    for d, s in modes:
        if d < covered:
            raise AlgebraError(
                f"expected an injective layout, got {_text(layout)}: stride {d} is below {covered}, which the smaller "
                "strides cover"
            )
        gap = d // covered
        if gap != 1:
            S.append(gap)
            D.append(covered)
        covered = d * s
    S.append(1)
    D.append(check_range(covered))
    return S, D


def _gaps(layout: Layout, extents: Extents, strides: Strides) -> Callable[[tuple[int, ...]], tuple[Extents, Strides]]:
    # The gaps for every path of the profile; each list ends in the mode of extent 1.
    values = [d.value if isinstance(d, Basis) else d for d in strides]
    if len(values) > 1 and any(isinstance(v, Dyn) for v in values):
        raise AlgebraError(f"expected static strides or a single mode to complement, got {_text(layout)}")
    by_path: dict[tuple[int, ...], list[tuple[Leaf, Leaf]]] = {}
    for s, d, v in zip(extents, strides, values):
        if (type(v) is int and v == 0) or (type(s) is int and s == 1):
            continue
        by_path.setdefault(d.path if isinstance(d, Basis) else (), []).append((v, s))

    def at(path: tuple[int, ...]) -> tuple[Extents, Strides]:
        modes = by_path.get(path, [])
        if len(modes) > 1:
            modes.sort(key=_stride_of)
        S: Extents = []
        D: Strides = []
        covered: Leaf = 1
        for v, s in modes:
            if type(v) is int and type(covered) is int and v < covered:
                raise AlgebraError(
                    f"expected an injective layout, got {_text(layout)}: stride {v} is below {covered}, which the "
                    "smaller strides cover"
                )
            S.append(leaf_div(v, covered))
            D.append(covered)
            covered = mul(v, s)
        S.append(1)
        D.append(covered)
        return fold_modes(S, D, True)

    return at


def _stride_of(mode: tuple[Leaf, Leaf]) -> int:
    v = mode[0]
    assert type(v) is int
    return v


def _assemble(
    profile: IntTuple, path: tuple[int, ...], at: Callable[[tuple[int, ...]], tuple[Extents, Strides]]
) -> Layout:
    # A layout of the structure of the profile, with the strides at each path along that mode.
    if type(profile) is tuple:
        parts = [_assemble(p, (*path, i), at) for i, p in enumerate(profile)]
        return raw_layout(tuple([p.shape for p in parts]), tuple([p.stride for p in parts]))
    return _along(from_modes(*at(path)), path)


def _along(mode: Layout, path: tuple[int, ...]) -> Layout:
    if not path:
        return mode
    if type(mode.stride) is tuple:
        return raw_layout(mode.shape, tuple([Basis(d, path) for d in mode.stride]))  # type: ignore[arg-type]
    return raw_layout(mode.shape, Basis(mode.stride, path))  # type: ignore[arg-type]


def extended_complement(layout: Layout, shape: IntTuple) -> Layout:
    """The complement that divides use: so many repetitions that layout and complement together cover ``shape``.

    For each extent ``x`` of the shape under a leaf of the index profile the last mode is repeated ``ceil(x / z)``
    times, ``z`` being what is left of its stride.  Modes of the shape that the layout does not step through are taken
    whole.

    >>> extended_complement(Layout("6:2"), 24), extended_complement(Layout("4:32@0"), (128, 64))
    (Layout("(2,2):(1,12)"), Layout("(32,64):(1@0,1@1)"))
    """
    extents, strides = flat_modes(layout)
    modes: list[tuple[int, int]] = []
    for s, d in zip(extents, strides):
        if type(s) is not int or type(d) is not int:
            return _extend(stride_profile(layout.stride), shape, (), _gaps(layout, extents, strides))
        if s != 1 and d:
            modes.append((d, s))
    return _repeat(*_static_gaps(layout, modes), shape)


def _extend(
    profile: IntTuple,
    shape: IntTuple,
    path: tuple[int, ...],
    at: Callable[[tuple[int, ...]], tuple[Extents, Strides]],
) -> Layout:
    if type(profile) is not tuple:
        return _along(_repeat(*at(path), shape), path)
    modes = shape if type(shape) is tuple else (shape,)
    if len(profile) > len(modes):
        raise AlgebraError(f"expected at most {len(modes)} modes to be stepped through, got {_text(profile)}")
    parts = [_extend(p, x, (*path, i), at) for i, (p, x) in enumerate(zip(profile, modes))]
    for i in range(len(profile), len(modes)):
        parts.append(raw_layout(modes[i], basis_like(modes[i], (*path, i))))
    return raw_layout(tuple([p.shape for p in parts]), tuple([p.stride for p in parts]))


def _repeat(S: Extents, D: Strides, shape: IntTuple) -> Layout:
    z = step = D.pop()
    S.pop()
    assert not isinstance(z, Basis) and not isinstance(step, Basis)
    xs = (shape,) if type(shape) is not tuple else tree_leaves(shape)
    for i, x in enumerate(xs):
        r = ceil_div(x, z)  # type: ignore[arg-type]
        S.append(r)
        D.append(step)
        if i + 1 < len(xs):
            z = ceil_div(z, x)  # type: ignore[arg-type]
            step = mul(step, r)
    return from_modes(*fold_modes(S, D, False))


def bounded_complement(layout: Layout, cotarget: IntTuple) -> Layout:
    """:func:`complement` with a cotarget.

    >>> bounded_complement(Layout("4:2"), (6, Dyn())), bounded_complement(Layout("2:0"), 12)
    (Layout("(2,?):(1,8)"), Layout("12:1"))
    """
    for x in tree_leaves(cotarget):
        if type(x) is int and x <= 0:
            raise AlgebraError(f"expected a cotarget with extents >= 1, got {_text(cotarget)}")
    extents, strides = flat_modes(layout)
    if type(cotarget) is int:
        modes: list[tuple[int, int]] = []
        for s, d in zip(extents, strides):
            if type(s) is not int or type(d) is not int:
                break
            if s != 1 and d:
                modes.append((d, s))
        else:
            return _bounded_static(layout, modes, cotarget)
    for d in strides:
        if isinstance(d, Basis):
            raise AlgebraError(f"expected integer strides to complement, got {_text(layout)}")
    if type(layout.shape) is tuple and len(layout.shape) > 1 and any(isinstance(d, Dyn) for d in strides):
        raise AlgebraError(f"expected static strides or rank 1 to complement, got {_text(layout)}")
    S, D = fold_modes([1 if type(d) is int and d == 0 else s for s, d in zip(extents, strides)], strides, False)
    if not S or S == [1] or (len(D) == 1 and type(D[0]) is int and D[0] == 0):
        whole = coalesce(raw_layout(cotarget, column_major(cotarget)))
        return raw_layout(1, 1) if whole.shape in (1, ()) else whole
    pairs: list[tuple[Leaf, Leaf]] = list(zip(D, S))  # type: ignore[arg-type]
    if len(pairs) > 1:
        if any(isinstance(d, Dyn) for d in D):
            raise AlgebraError(f"expected static strides or a single mode to complement, got {_text(layout)}")
        pairs.sort(key=_stride_of)
    out_s: Extents = []
    out_d: Strides = []
    covered: Leaf = 1
    for d, s in pairs:
        gap = leaf_div(d, covered)
        if type(gap) is int and gap < 1:
            raise _not_injective(layout, d, covered)
        out_s.append(gap)
        out_d.append(covered)
        covered = mul(s, d)
    rest = coalesce_shape(ceil_div_tree(cotarget, covered))
    steps: IntTuple = covered if rest == 1 else column_major(rest, covered)
    out_s += tree_leaves(rest)  # type: ignore[arg-type]
    out_d += tree_leaves(steps)  # type: ignore[arg-type]
    return from_modes(*fold_modes(out_s, out_d, False))


def _bounded_static(layout: Layout, modes: list[tuple[int, int]], cotarget: int) -> Layout:
    # Adjacent modes need not be merged first: one that continues another leaves a gap of 1, which vanishes.
    if not modes:
        return raw_layout(cotarget, 1)
    modes.sort()
    S: list[int] = []
    D: list[int] = []
    covered = 1
    for d, s in modes:
        gap = d // covered
        if gap != 1:
            if gap < 1:
                raise _not_injective(layout, d, covered)
            S.append(gap)
            D.append(covered)
        covered = d * s
    rest = -(-cotarget // covered)
    if rest != 1 or not S:
        S.append(rest)
        D.append(check_range(covered))
    if len(S) == 1:
        return raw_layout(S[0], D[0])
    return raw_layout(tuple(S), tuple(D))


def _not_injective(layout: Layout, d: Leaf, covered: Leaf) -> AlgebraError:
    return AlgebraError(
        f"expected an injective layout with positive strides, got {_text(layout)}: stride {d} is below {covered}, "
        "which the smaller strides cover"
    )


def coalesce_shape(shape: IntTuple) -> IntTuple:
    """Flattens a shape and multiplies neighbours that are both static or both dynamic.

    >>> coalesce_shape((2, (3, Dyn()), Dyn(), 4))
    (6, Dyn(?), 4)
    """
    if type(shape) is not tuple:
        return shape
    out: Extents = []
    for x in tree_leaves(shape):
        if out and isinstance(out[-1], Dyn) == isinstance(x, Dyn):
            out[-1] = mul(out[-1], x)  # type: ignore[arg-type]
        else:
            out.append(x)  # type: ignore[arg-type]
    return out[0] if len(out) == 1 else tuple(out)


# ------------------------------------------------------------------------------------------------------ inverses


def right_inverse(layout: Layout) -> Layout:
    """``R`` with ``layout(R(i)) == i`` on the longest first part of the codomain that is covered without gap.

    A dynamic stride ends that part.  Raises AlgebraError for a dynamic extent.

    >>> right_inverse(Layout("(2,8):(4,1)")), right_inverse(Layout("5:2")), right_inverse(Layout("(2,3):(1@1,1@0)"))
    (Layout("8:2"), Layout("1:0"), Layout("(3,2):(2,1)"))
    """
    extents, strides = flat_modes(layout)
    modes: list[tuple[int, int, int]] = []
    q = 1
    ps = pd = pq = 0
    for s, d in zip(extents, strides):
        if type(s) is not int:
            raise AlgebraError(f"expected static extents to invert, got {_text(layout)}")
        if type(d) is not int:
            return _right_inverse(layout, extents, strides)
        if s != 1:
            if modes and d == ps * pd:
                ps *= s
                modes[-1] = (pd, pq, ps)
            else:
                ps, pd, pq = s, d, q
                modes.append((d, q, s))
            q *= s
    # The prefix product q grows, so that equal strides stay in their order.
    if len(modes) > 1:
        modes.sort()
    S: list[int] = []
    D: list[int] = []
    covered = 1
    for d, pq, s in modes:
        if d == covered:
            covered *= s
            if S and pq == S[-1] * D[-1]:
                S[-1] *= s
            else:
                S.append(s)
                D.append(pq)
        elif d > covered:
            break
    check_range(q)
    if len(S) == 1:
        return raw_layout(S[0], D[0])
    if not S:
        return raw_layout(1, 0)
    return raw_layout(tuple(S), tuple(D))


def _folded(layout: Layout, extents: Extents, strides: Strides) -> list[tuple[tuple[int, ...], int, int, int]]:
    # (path, stride, prefix product, extent) of the folded modes that count, in order of path and stride.
    S, D = fold_modes(extents, strides, True)
    modes: list[tuple[tuple[int, ...], int, int, int]] = []
    q = 1
    for s, d in zip(S, D):
        path = d.path if isinstance(d, Basis) else ()
        v = d.value if isinstance(d, Basis) else d
        assert type(s) is int and type(v) is int
        if v and s != 1:
            modes.append((path, v, q, s))
        q = check_range(q * s)
    modes.sort()
    return modes


def _right_inverse(layout: Layout, extents: Extents, strides: Strides) -> Layout:
    for s in extents:
        if type(s) is not int:
            raise AlgebraError(f"expected static extents to invert, got {_text(layout)}")
    known = [0 if isinstance(d.value if isinstance(d, Basis) else d, Dyn) else d for d in strides]
    modes = _folded(layout, extents, known)
    parts: dict[tuple[int, ...], tuple[Extents, Strides, list[int]]] = {}
    for path, v, q, s in modes:
        S, D, covered = parts.setdefault(path, ([], [], [1]))
        if v == covered[0]:
            S.append(s)
            D.append(q)
            covered[0] = s * v

    def at(path: tuple[int, ...]) -> Layout:
        S, D, _ = parts.get(path, ((), (), ()))
        return from_modes(*fold_modes(list(S), list(D), False)) if S else raw_layout(1, 0)

    return _inverse_of(stride_profile(layout.stride), (), at)


def _inverse_of(profile: IntTuple, path: tuple[int, ...], at: Callable[[tuple[int, ...]], Layout]) -> Layout:
    if type(profile) is tuple:
        parts = [_inverse_of(p, (*path, i), at) for i, p in enumerate(profile)]
        return raw_layout(tuple([p.shape for p in parts]), tuple([p.stride for p in parts]))
    return at(path)


def left_inverse(layout: Layout) -> Layout:
    """``R`` with ``R(layout(i)) == i`` for every index of a static injective layout; gaps get stride 0.

    Injectivity is not fully checked.  Raises AlgebraError for dynamic leaves, negative strides, and a stride that is no
    multiple of what comes before it.

    >>> left_inverse(Layout("5:2")), left_inverse(Layout("(3,4):(8,2)"))
    (Layout("(2,5):(0,1)"), Layout("(2,4,3):(0,3,1)"))
    """
    extents, strides = flat_modes(layout)
    for s, d in zip(extents, strides):
        if isinstance(s, Dyn) or isinstance(d.value if isinstance(d, Basis) else d, Dyn):
            raise AlgebraError(f"expected a static layout to invert, got {_text(layout)}")
    parts: dict[tuple[int, ...], tuple[Extents, Strides, list[int]]] = {}
    for path, v, q, s in _folded(layout, extents, strides):
        S, D, running = parts.setdefault(path, ([1], [0], [1]))
        if v % running[0] or v < 0:
            raise AlgebraError(
                f"expected strides that are multiples of each other, got {v} after {running[0]} in {_text(layout)}"
            )
        gap = v // running[0]
        S[-1] = gap
        running[0] *= gap
        S.append(s)
        D.append(q)

    def at(path: tuple[int, ...]) -> Layout:
        S, D, _ = parts.get(path, ([1], [0], []))
        return from_modes(*fold_modes(S, D, True))

    return _inverse_of(stride_profile(layout.stride), (), at)


__all__ = [
    "as_tiler",
    "bounded_complement",
    "check_tile_rank",
    "coalesce_shape",
    "complement",
    "compose",
    "composition",
    "extended_complement",
    "left_inverse",
    "minimal_complement",
    "right_inverse",
]
