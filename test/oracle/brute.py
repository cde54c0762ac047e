"""An independent brute-force definition of layouts for tests.

This module does not import ``cute_dialect``. A tree is an ``int`` or a ``tuple`` of trees. ``ALL`` is the ``_`` of a
coordinate. :class:`E` is a scaled basis element, :class:`L` a layout, :class:`S` a swizzle and :class:`C` a composed
layout. All integers are concrete. There are no types, dynamic leaves or coalescing: two layouts are equal if they map
every coordinate to the same value.

>>> evaluate(7, L((3, (2, 4)), (8, (4, 1)))), evaluate((1, (0, 1)), L((3, (2, 4)), (8, (4, 1))))
(9, 9)
>>> evaluate((3, 1), C(S(1, 2, 1), 0, L((8, 4), (1, 8))))
15
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import product as cross
from math import prod

Tree = object
ALL = "_"


@dataclass(frozen=True)
class E:
    """``value@path``, with the outermost index of the path first."""

    value: int
    path: tuple[int, ...]


@dataclass(frozen=True)
class L:
    """A layout."""

    shape: Tree
    stride: Tree


@dataclass(frozen=True)
class S:
    """``S<b,m,s>``"""

    b: int
    m: int
    s: int


@dataclass(frozen=True)
class C:
    """``inner o offset o outer``"""

    inner: L | S
    offset: Tree
    outer: L


# --------------------------------------------------------------------------------------------------------------- trees


def leaves(tree: Tree) -> list[Tree]:
    """Return the leaves, depth first."""
    return [x for t in tree for x in leaves(t)] if isinstance(tree, tuple) else [tree]


def size(tree: Tree) -> int:
    """Return the product of the leaves."""
    return prod(leaves(tree))


def modes(layout: L) -> list[L]:
    """Return the top-level modes. A scalar layout is its own only mode."""
    if isinstance(layout.shape, tuple):
        return [L(s, d) for s, d in zip(layout.shape, layout.stride)]
    return [layout]


def flat(layout: L) -> list[tuple[int, int | E]]:
    """Return (extent, stride) of every leaf mode."""
    return list(zip(leaves(layout.shape), leaves(layout.stride)))


def outer(layout: L | C) -> L:
    """Return the layout that defines the domain."""
    return layout.outer if isinstance(layout, C) else layout


def with_outer(layout: L | C, new: L) -> L | C:
    """Replace the outer layout of a composed layout."""
    return C(layout.inner, layout.offset, new) if isinstance(layout, C) else new


def rebuild(tree: Tree, new_leaves: Iterator[Tree]) -> Tree:
    """Replace the leaves of a tree in order."""
    return tuple(rebuild(t, new_leaves) for t in tree) if isinstance(tree, tuple) else next(new_leaves)


# ---------------------------------------------------------------------------------------------------------- evaluation


def plus(a: Tree, b: Tree) -> Tree:
    """Add arithmetic tuples. ``()`` and, with a tuple, 0 are neutral. Extra elements of the longer tuple are copied."""
    if a == () or (a == 0 and isinstance(b, tuple) and b):
        return b
    if b == () or (b == 0 and isinstance(a, tuple)):
        return a
    if isinstance(a, tuple) and isinstance(b, tuple):
        n = min(len(a), len(b))
        return tuple(plus(x, y) for x, y in zip(a, b)) + a[n:] + b[n:]
    assert isinstance(a, int) and isinstance(b, int), (a, b)
    return a + b


def times(c: int, d: int | E) -> Tree:
    """Multiply: ``c * (v@path)`` has ``c*v`` at ``path`` and zeros at all earlier sibling positions."""
    if isinstance(d, int):
        return c * d
    value: Tree = c * d.value
    for i in reversed(d.path):
        value = (*[0] * i, value)
    return value


def quotient(a: int, b: int) -> int:
    """Return ``a / b`` truncated toward zero."""
    q = abs(a) // abs(b)
    return q if (a < 0) == (b < 0) else -q


def remainder(a: int, b: int) -> int:
    """Return the remainder, which has the sign of ``a``."""
    return a - quotient(a, b) * b


def run(c: Tree, s: Tree, d: Tree) -> Tree:
    """Evaluate ``s:d`` at the coordinate ``c``; ``_`` counts as 0."""
    if s == ():
        return ()
    if c == ALL:
        c = 0
    if isinstance(c, int):
        if not isinstance(s, tuple):
            return times(c, d)
        total: Tree = ()
        for si, di in zip(s[:-1], d[:-1]):
            n = size(si)
            total = plus(total, run(remainder(c, n), si, di))
            c = quotient(c, n)
        return plus(total, run(c, s[-1], d[-1]))
    assert isinstance(s, tuple) and len(c) == len(s), (c, s)
    total = ()
    for ci, si, di in zip(c, s, d):
        total = plus(total, run(ci, si, di))
    return total


def swizzle(z: S, x: int) -> int:
    """Xor the bits of ``x`` at ``m`` with the bits ``s`` positions above (below if ``s`` is negative)."""
    if z.s >= 0:
        return x ^ ((x & (((1 << z.b) - 1) << (z.m + z.s))) >> z.s)
    return x ^ ((x & (((1 << z.b) - 1) << z.m)) << -z.s)


def apply(inner: L | S, x: Tree) -> Tree:
    """Evaluate the inner part of a composed layout at an index."""
    return swizzle(inner, x) if isinstance(inner, S) else run(x, inner.shape, inner.stride)


def evaluate(c: Tree, layout: L | C) -> Tree:
    """Evaluate a layout at a coordinate."""
    if isinstance(layout, C):
        return apply(layout.inner, plus(layout.offset, evaluate(c, layout.outer)))
    return run(c, layout.shape, layout.stride)


def norm(value: Tree) -> Tree:
    """Drop trailing zeros of tuples, so that equal points have equal representations."""
    if not isinstance(value, tuple):
        return value
    parts = [norm(v) for v in value]
    while parts and parts[-1] in (0, ()):
        parts.pop()
    return tuple(parts) or 0


def coordinates(shape: Tree) -> Iterator[Tree]:
    """Return all natural coordinates, first mode fastest."""
    if not isinstance(shape, tuple):
        yield from range(shape)
        return
    for c in cross(*[list(coordinates(s)) for s in reversed(shape)]):
        yield tuple(reversed(c))


def values(layout: L | C) -> list[Tree]:
    """Return the values at ``0 … size-1``."""
    return [norm(evaluate(i, layout)) for i in range(size(outer(layout).shape))]


# ------------------------------------------------------------------------------------------------- strides from shapes


def column_major(shape: Tree, start: int = 1) -> Tree:
    """Return compact strides, first leaf fastest. An extent of 1 gets stride 0."""
    strides: list[int] = []
    for n in leaves(shape):
        strides.append(0 if n == 1 else start)
        start *= n
    return rebuild(shape, iter(strides))


def ordered(shape: Tree, order: Tree) -> Tree:
    """Return strides in which each sub-shape starts at the product of all sub-shapes of smaller order."""
    governed: list[tuple[int, Tree]] = []

    def collect(s: Tree, o: Tree) -> None:
        if isinstance(o, tuple):
            for si, oi in zip(s, o):
                collect(si, oi)
        else:
            governed.append((o, s))

    def assign(s: Tree, o: Tree) -> Tree:
        if isinstance(o, tuple):
            return tuple(assign(si, oi) for si, oi in zip(s, o))
        return column_major(s, prod(size(t) for v, t in governed if v < o))

    collect(shape, order)
    return assign(shape, order)


def identity(shape: Tree, path: tuple[int, ...] = ()) -> Tree:
    """Return the strides that map a coordinate to itself."""
    if isinstance(shape, tuple):
        return tuple(identity(s, (*path, i)) for i, s in enumerate(shape))
    return E(1, path) if path else 1


def coshape(layout: L) -> Tree:
    """Return one more than the value at the last index, computed with the magnitudes of the strides."""
    strides = [E(abs(d.value), d.path) if isinstance(d, E) else abs(d) for d in leaves(layout.stride)]
    top = run(size(layout.shape) - 1, layout.shape, rebuild(layout.stride, iter(strides)))
    return rebuild(top, iter([x + 1 for x in leaves(top)]))


# -------------------------------------------------------------------------------------------- complements, as functions


def complement_modes(layout: L) -> list[tuple[int, int]]:
    """Return the modes of the complement of a layout with integer strides.

    With the modes sorted by stride, each gap between the covered range and the next stride becomes a mode. The last
    mode (extent 1) extends without limit.
    """
    out: list[tuple[int, int]] = []
    covered = 1
    for s, d in sorted(((s, d) for s, d in flat(layout) if d != 0 and s != 1), key=lambda m: m[1]):
        out.append((d // covered, covered))
        covered = s * d
    return [*out, (1, covered)]


def at_modes(index: int, m: list[tuple[int, int]]) -> int:
    """Evaluate a flat layout at an index. The last mode extends without limit."""
    return run(index, tuple(s for s, _ in m), tuple(d for _, d in m))


def extended_complement(layout: L, extent: int) -> Callable[[int], int]:
    """Return the function from n to the offset of the n-th tile, for a layout used as a tiler."""
    m = complement_modes(layout)
    return lambda i: at_modes(i, m)


def ceil(a: int, b: int) -> int:
    """Return ``a / b`` rounded toward +infinity."""
    return -(-a // b)


# --------------------------------------------------------------------------------------------------------------- slice


def lift(c: Tree, t: Tree, keep: Callable[[Tree], bool], top: bool = True) -> Tree:
    """Return the modes that ``slice`` (keep ``_``) or ``dice`` (keep integers) selects from a tree."""
    if isinstance(c, tuple):
        return tuple(x for ci, ti in zip(c, t) for x in lift(ci, ti, keep, False))
    if not keep(c):
        return ()
    return t if top else (t,)


def slice_tree(c: Tree, t: Tree) -> Tree:
    """Return the parts of ``t`` where ``c`` has ``_``."""
    return lift(c, t, lambda x: x == ALL)


def dice_tree(c: Tree, t: Tree) -> Tree:
    """Return the parts of ``t`` where ``c`` has integers."""
    return lift(c, t, lambda x: x != ALL)


def fill(c: Tree, free: Iterator[Tree]) -> Tree:
    """Replace each ``_`` of a coordinate by the next element of ``free``."""
    if isinstance(c, tuple):
        return tuple(fill(ci, free) for ci in c)
    return next(free) if c == ALL else c


def holes(c: Tree) -> int:
    """Return the number of ``_`` in a coordinate."""
    return sum(x == ALL for x in leaves(c))
