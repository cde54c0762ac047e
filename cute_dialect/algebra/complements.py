"""Complements of layouts: the indices of the codomain that a layout does not reach.

>>> complement(Layout("(2,2):(1,6)"), 24), complement(Layout("5:2"))
(Layout("(3,2):(2,12)"), Layout("(2,1):(1,10)"))
"""

from __future__ import annotations

from collections.abc import Callable

from cute_dialect.algebra.arithmetic import ceil_div_tree
from cute_dialect.algebra.layout import Extents, Strides, basis_like, coalesce, flat_modes, fold_modes, from_modes
from cute_dialect.algebra.leaf import AlgebraError, Dyn, Leaf, ceil_div, mul
from cute_dialect.algebra.leaf import div as leaf_div
from cute_dialect.algebra.trees import check_range, column_major, shown, tree_leaves
from cute_dialect.algebra.values import Basis, IntTuple, Layout, Stride, raw_layout
from cute_dialect.algebra.verify import stride_profile


def complement(layout: Layout, cotarget: IntTuple | Layout | None = None) -> Layout:
    """Return the complement of a layout in its codomain.

    Without ``cotarget`` the result covers the gaps between the modes.  Its last mode has extent 1 and the stride at
    which layout and complement together repeat.  A stride that is not a multiple of the range that the smaller strides
    cover is truncated.

    Args:
        layout: an injective layout.  A dynamic stride is allowed only in a layout of one mode.
        cotarget: shape, or layout whose shape is used.  The complement extends to ``size(cotarget)``.

    Raises:
        AlgebraError: the layout is not injective, or has several modes and a dynamic stride.

    >>> complement(Layout("(2,3):(4,12)")), complement(Layout("(2,3):(4,12)"), 48)
    (Layout("(4,1):(1,36)"), Layout("(4,2):(1,36)"))
    """
    if cotarget is None:
        return minimal_complement(layout)
    return bounded_complement(layout, cotarget.shape if isinstance(cotarget, Layout) else cotarget)


def minimal_complement(layout: Layout) -> Layout:
    """Return :func:`complement` without a cotarget."""
    modes = _static_modes(layout)
    if modes is None:
        return _assemble(stride_profile(layout.stride), (), _gaps(layout))
    return from_modes(*_static_gaps(layout, modes))


def _static_modes(layout: Layout) -> list[tuple[int, int]] | None:
    # (stride, extent) of the leaf modes with extent > 1 and nonzero stride, by stride; None if a leaf is not a plain
    # integer.
    s, d = layout.shape, layout.stride
    modes: list[tuple[int, int]] = []
    if type(s) is tuple:
        if not _collect(s, d, modes):  # type: ignore[arg-type]
            return None
        if len(modes) > 1:
            modes.sort()
    elif type(s) is not int or type(d) is not int:
        return None
    elif s != 1 and d:
        modes.append((d, s))
    return modes


def _collect(s: tuple[IntTuple, ...], d: tuple[Stride, ...], modes: list[tuple[int, int]]) -> bool:
    for si, di in zip(s, d):
        if type(si) is int and type(di) is int:
            if si != 1 and di:
                modes.append((di, si))
        elif type(si) is not tuple or not _collect(si, di, modes):  # type: ignore[arg-type]
            return False
    return True


def _static_gaps(layout: Layout, modes: list[tuple[int, int]]) -> tuple[Extents, Strides]:
    # Each gap between two modes becomes a mode whose stride is the range covered so far.  Gaps never merge: a gap
    # ends at or below the stride of the next mode, and the next gap starts at a larger stride.
    S: Extents = []
    D: Strides = []
    covered = 1
    for d, s in modes:
        if d < covered:
            raise AlgebraError(
                f"expected an injective layout, got {shown(layout)}: stride {d} is less than {covered}, the range that "
                "smaller strides cover"
            )
        gap = d // covered
        if gap != 1:
            S.append(gap)
            D.append(covered)
        covered = d * s
    S.append(1)
    D.append(check_range(covered))
    return S, D


def _gaps(layout: Layout) -> Callable[[tuple[int, ...]], tuple[Extents, Strides]]:
    # The gaps per path of the profile.  Each list ends with the mode of extent 1.
    extents, strides = flat_modes(layout)
    values = [d.value if isinstance(d, Basis) else d for d in strides]
    if len(values) > 1 and any(isinstance(v, Dyn) for v in values):
        raise AlgebraError(f"a complement needs static strides or a layout of one mode, got {shown(layout)}")
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
                    f"expected an injective layout, got {shown(layout)}: stride {v} is less than {covered}, the range "
                    "that smaller strides cover"
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
    # A layout with the structure of the profile.  The strides at each path step along that mode.
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
    """Return the complement that the divides use: :func:`complement`, extended until it and the layout cover ``shape``.

    For each extent ``x`` of the shape under a leaf of the index profile, the last mode is repeated ``ceil(x / z)``
    times.  ``z`` is the part of its stride that is not yet covered.  Modes of the shape along which the layout has no
    stride are included in full.

    >>> extended_complement(Layout("6:2"), 24), extended_complement(Layout("4:32@0"), (128, 64))
    (Layout("(2,2):(1,12)"), Layout("(32,64):(1@0,1@1)"))
    """
    modes = _static_modes(layout)
    if modes is None:
        return _extend(stride_profile(layout.stride), shape, (), _gaps(layout))
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
        # unreachable: callers in this package have checked it
        raise AlgebraError(
            f"the basis strides of the layout index {len(profile)} modes, but the shape has only {len(modes)}"
        )
    parts = [_extend(p, x, (*path, i), at) for i, (p, x) in enumerate(zip(profile, modes))]
    for i in range(len(profile), len(modes)):
        parts.append(raw_layout(modes[i], basis_like(modes[i], (*path, i))))
    return raw_layout(tuple([p.shape for p in parts]), tuple([p.stride for p in parts]))


def _repeat(S: Extents, D: Strides, shape: IntTuple) -> Layout:
    z = step = D.pop()
    S.pop()
    if type(shape) is int and type(z) is int:
        count = -(-shape // z)
        if count != 1 or not S:
            S.append(count)
            D.append(z)
        return from_modes(S, D)
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
    """Return :func:`complement` with a cotarget.

    >>> bounded_complement(Layout("4:2"), (6, Dyn())), bounded_complement(Layout("2:0"), 12)
    (Layout("(2,?):(1,8)"), Layout("12:1"))
    """
    if type(cotarget) is not int or cotarget <= 0:
        for x in tree_leaves(cotarget):
            if type(x) is int and x <= 0:
                raise AlgebraError(f"expected a cotarget with extents >= 1, got {shown(cotarget)}")
    if type(cotarget) is int:
        modes = _static_modes(layout)
        if modes is not None:
            return _bounded_static(layout, modes, cotarget)
    extents, strides = flat_modes(layout)
    for d in strides:
        if isinstance(d, Basis):
            raise AlgebraError(f"a complement needs integer strides, got {shown(layout)}")
    if type(layout.shape) is tuple and len(layout.shape) > 1 and any(isinstance(d, Dyn) for d in strides):
        raise AlgebraError(f"a complement needs static strides or a layout of rank 1, got {shown(layout)}")
    S, D = fold_modes([1 if type(d) is int and d == 0 else s for s, d in zip(extents, strides)], strides, False)
    if not S or S == [1] or (len(D) == 1 and type(D[0]) is int and D[0] == 0):
        whole = coalesce(raw_layout(cotarget, column_major(cotarget)))
        return raw_layout(1, 1) if whole.shape in (1, ()) else whole
    pairs: list[tuple[Leaf, Leaf]] = list(zip(D, S))  # type: ignore[arg-type]
    if len(pairs) > 1:
        if any(isinstance(d, Dyn) for d in D):
            # unreachable: callers in this package have checked it
            raise AlgebraError(f"a complement needs static strides or a layout of one mode, got {shown(layout)}")
        pairs.sort(key=_stride_of)
    out_s: Extents = []
    out_d: Strides = []
    covered: Leaf = 1
    for d, s in pairs:
        gap = leaf_div(d, covered)
        if type(gap) is int and gap < 1:
            # unreachable: callers in this package have checked it
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
    # Adjacent modes need not be merged first: a mode that continues another leaves a gap of 1, which is dropped.
    if not modes:
        return raw_layout(cotarget, 1)
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
        f"expected an injective layout with positive strides, got {shown(layout)}: stride {d} is less than {covered}, "
        "the range that smaller strides cover"
    )


def coalesce_shape(shape: IntTuple) -> IntTuple:
    """Flatten a shape and multiply adjacent extents that are both static or both dynamic.

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


__all__ = [
    "bounded_complement",
    "coalesce_shape",
    "complement",
    "extended_complement",
    "minimal_complement",
]
