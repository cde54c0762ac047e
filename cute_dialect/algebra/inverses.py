"""Left and right inverses of layouts.

>>> right_inverse(Layout("(5,3):(3,1)")), left_inverse(Layout("5:2"))
(Layout("(3,5):(5,1)"), Layout("(2,5):(0,1)"))
"""

from __future__ import annotations

from collections.abc import Callable

from cute_dialect.algebra.layout import Extents, Strides, flat_modes, fold_modes, from_modes
from cute_dialect.algebra.leaf import AlgebraError, Dyn
from cute_dialect.algebra.trees import check_range, shown
from cute_dialect.algebra.values import Basis, IntTuple, Layout, raw_layout
from cute_dialect.algebra.verify import stride_profile


def right_inverse(layout: Layout) -> Layout:
    """Return ``R`` with ``layout(R(i)) == i`` on the longest gap-free prefix of the codomain.

    A dynamic stride ends the prefix.

    Raises:
        AlgebraError: an extent is dynamic.

    >>> right_inverse(Layout("(2,8):(4,1)")), right_inverse(Layout("5:2")), right_inverse(Layout("(2,3):(1@1,1@0)"))
    (Layout("8:2"), Layout("1:0"), Layout("(3,2):(2,1)"))
    """
    extents, strides = flat_modes(layout)
    modes = _folded_static(extents, strides)
    if modes is None:
        return _right_inverse(layout, extents, strides)
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
    if len(S) == 1:
        return raw_layout(S[0], D[0])
    if not S:
        return raw_layout(1, 0)
    return raw_layout(tuple(S), tuple(D))


def _folded_static(extents: Extents, strides: Strides) -> list[tuple[int, int, int]] | None:
    # (stride, prefix product, extent) of the folded modes that have extent > 1 and a nonzero stride, by stride.  None
    # if a leaf is not a plain integer.
    modes: list[tuple[int, int, int]] = []
    q = 1
    ps = pd = pq = 0
    for s, d in zip(extents, strides):
        if type(s) is not int or type(d) is not int:
            return None
        if s != 1:
            if ps and d == ps * pd:
                ps *= s
            else:
                if pd:
                    modes.append((pd, pq, ps))
                ps, pd, pq = s, d, q
            q *= s
    if pd:
        modes.append((pd, pq, ps))
    check_range(q)
    # The prefix product increases, so modes of equal stride keep their order.
    if len(modes) > 1:
        modes.sort()
    return modes


def _folded(layout: Layout, extents: Extents, strides: Strides) -> list[tuple[tuple[int, ...], int, int, int]]:
    # (path, stride, prefix product, extent) of the folded modes with extent > 1 and nonzero stride, by path and stride.
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
            raise AlgebraError(f"expected static extents to invert, got {shown(layout)}")
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
    """Return ``R`` with ``R(layout(i)) == i`` for every index of a static injective layout.  Gaps get stride 0.

    Injectivity is not fully checked.

    Raises:
        AlgebraError: a leaf is dynamic, a stride is negative, or a stride is not a multiple of the next smaller one.

    >>> left_inverse(Layout("5:2")), left_inverse(Layout("(3,4):(8,2)"))
    (Layout("(2,5):(0,1)"), Layout("(2,4,3):(0,3,1)"))
    """
    extents, strides = flat_modes(layout)
    static = _folded_static(extents, strides)
    if static is not None:
        S: Extents = [1]
        D: Strides = [0]
        running = 1
        for v, q, s in static:
            if v % running or v < 0:
                raise _not_multiple(layout, v, running)
            S[-1] = v // running
            running = v
            S.append(s)
            D.append(q)
        return from_modes(*fold_modes(S, D, True))
    for s, d in zip(extents, strides):
        if isinstance(s, Dyn) or isinstance(d.value if isinstance(d, Basis) else d, Dyn):
            raise AlgebraError(f"expected a static layout to invert, got {shown(layout)}")
    parts: dict[tuple[int, ...], tuple[Extents, Strides, list[int]]] = {}
    for path, v, q, s in _folded(layout, extents, strides):
        S, D, running = parts.setdefault(path, ([1], [0], [1]))  # type: ignore[assignment]
        if v % running[0] or v < 0:
            # unreachable: callers in this package have checked it
            raise _not_multiple(layout, v, running[0])
        gap = v // running[0]
        S[-1] = gap
        running[0] *= gap
        S.append(s)
        D.append(q)

    def at(path: tuple[int, ...]) -> Layout:
        S, D, _ = parts.get(path, ([1], [0], []))
        return from_modes(*fold_modes(S, D, True))

    return _inverse_of(stride_profile(layout.stride), (), at)


def _not_multiple(layout: Layout, v: int, running: int) -> AlgebraError:
    return AlgebraError(
        f"expected strides that are multiples of each other, got {v} after {running} in {shown(layout)}"
    )


__all__ = ["left_inverse", "right_inverse"]
