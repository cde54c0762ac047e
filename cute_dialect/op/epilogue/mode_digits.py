"""Layouts that ``reshape`` and ``permute`` give to the arguments and results of an epilogue.

A mode of such an array is a product of *digits* of the accumulator's indices.  The row index m, for example, may be
split into the digits m // 64 and m % 64.  No data moves: the kernel computes an address from the digits of (m, n).

>>> x = modes_of((6, 8))
>>> y = permuted(reshaped(x, (6, 2, 4)), (1, 0, 2))
>>> extents(y), [[tuple(d) for d in mode] for mode in y]
((2, 6, 4), [[('n', 4, 2)], [('m', 1, 6)], [('n', 1, 4)]])
>>> reshaped(x, (8, 6))
Traceback (most recent call last):
    ...
ValueError: (6, 8) cannot be reshaped to (8, 6): each mode must be split or merged as a whole
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module
from itertools import pairwise
from math import prod
from typing import Any, NamedTuple, TypeAlias

from cute_dialect.runtime.arrays import ArrayView

__all__ = [
    "BASES", "Digit", "Modes", "View", "as_argument", "as_array", "as_sums", "common", "extents", "laid", "matched",
    "modes_of", "permuted", "reshaped", "view_of_modes",
]  # fmt: skip

BASES = "lmn"
"""The accumulator's indices: batch l, row m, column n."""


class Digit(NamedTuple):
    """The digit ``i // step % extent`` of an index i."""

    base: str  # the index: one of BASES, or a mode of an argument
    step: int
    extent: int


Modes: TypeAlias = tuple[tuple[Digit, ...], ...]
"""The digits of each mode, the slowest first.  A mode of one element has none."""


def modes_of(shape: Sequence[int], names: Sequence[str] = BASES) -> Modes:
    """Return the modes of an array, one digit each.  The last mode has the last of ``names``."""
    names = names[len(names) - len(shape) :]
    return tuple([(Digit(b, 1, n),) if n != 1 else () for b, n in zip(names, shape)])


def extents(modes: Modes) -> tuple[int, ...]:
    """Return the shape of modes."""
    return tuple([prod(d.extent for d in mode) for mode in modes])


def _split(d: Digit, inner: int) -> tuple[Digit, Digit]:
    """Split a digit in two, the second of extent ``inner``."""
    return Digit(d.base, d.step * inner, d.extent // inner), Digit(d.base, d.step, inner)


def _joined(digits: Sequence[Digit]) -> tuple[Digit, ...]:
    """Merge adjacent digits of one index."""
    found: list[Digit] = []
    for d in digits:
        before = found[-1] if found else None
        if before is not None and before.base == d.base and before.step == d.step * d.extent:
            found[-1] = Digit(d.base, d.step, before.extent * d.extent)
        else:
            found.append(d)
    return tuple(found)


def reshaped(modes: Modes, shape: Sequence[int]) -> Modes:
    """Return the modes of the same elements, in row-major order, with another shape.  One extent may be -1.

    Raises ValueError if a new mode would begin inside a digit at an extent that does not divide it.
    """
    old = extents(modes)
    wanted = [int(n) for n in shape]
    if wanted.count(-1) == 1 and prod(n for n in wanted if n != -1):
        wanted[wanted.index(-1)] = prod(old) // prod(n for n in wanted if n != -1)
    if prod(wanted) != prod(old) or any(n < 1 for n in wanted):
        raise ValueError(f"shape {tuple(shape)} does not have the {prod(old)} elements of {old}")
    digits = [d for mode in modes for d in mode]
    made: list[tuple[Digit, ...]] = []
    for n in reversed(wanted):
        here: list[Digit] = []
        while n > 1:
            d = digits.pop()
            if n % d.extent == 0:
                here.insert(0, d)
                n //= d.extent
            elif d.extent % n == 0:
                rest, inner = _split(d, n)
                here.insert(0, inner)
                digits.append(rest)
                n = 1
            else:
                raise ValueError(
                    f"{old} cannot be reshaped to {tuple(wanted)}: each mode must be split or merged as a whole"
                )
        made.insert(0, _joined(here))
    return tuple(made)


def permuted(modes: Modes, dims: Sequence[int]) -> Modes:
    """Return the modes in another order.  Raises ValueError if `dims` is not a permutation."""
    order = [d + len(modes) if d < 0 else d for d in dims]
    if sorted(order) != list(range(len(modes))):
        raise ValueError(f"dims {tuple(dims)} is not a permutation of {len(modes)} modes")
    return tuple([modes[d] for d in order])


def matched(x: Sequence[Digit], y: Sequence[Digit]) -> list[tuple[Digit, Digit]]:
    """Split two modes of equal extent into digits of equal extents, the slowest first.

    Raises ValueError if their digits do not divide each other.
    """
    one, other, found = list(x), list(y), list[tuple[Digit, Digit]]()
    while one and other:
        a, b = one.pop(), other.pop()
        n = min(a.extent, b.extent)
        if max(a.extent, b.extent) % n:
            break
        if a.extent > n:
            rest, a = _split(a, n)
            one.append(rest)
        elif b.extent > n:
            rest, b = _split(b, n)
            other.append(rest)
        found.insert(0, (a, b))
    else:
        if not one and not other:
            return found
    raise ValueError(f"modes of extents {extents((tuple(x), tuple(y)))} are split differently")


def common(x: Modes, y: Modes) -> Modes:
    """Return the modes that two arrays broadcast to.  Raises ValueError if their modes are different digits."""
    rank = max(len(x), len(y))
    x, y = ((*((),) * (rank - len(m)), *m) for m in (x, y))
    found: list[tuple[Digit, ...]] = []
    for one, other in zip(x, y):
        if one and other and one != other:
            try:
                same = all(a == b for a, b in matched(one, other))
            except ValueError:
                same = False
            if not same:
                raise ValueError(
                    f"operands of shapes {extents(x)} and {extents(y)} cover different elements of the accumulator"
                )
        found.append(one or other)
    return tuple(found)


class View(NamedTuple):
    """The place of an array in the accumulator."""

    # Digits of each mode, the slowest first. The slowest digit of an index has extent 0: it covers the remainder,
    # whatever the accumulator's shape.
    modes: Modes
    # For each index that the array depends on, the extents of all digits, the fastest first; so the last one is 0.
    bases: tuple[tuple[str, tuple[int, ...]], ...]

    @classmethod
    def from_json(cls, parts: Any) -> View | None:
        """Return the view encoded by nested lists."""
        return None if parts is None else cls(
            tuple([tuple([Digit(*d) for d in mode]) for mode in parts[0]]),
            tuple([(base, tuple(inner)) for base, inner in parts[1]]),
        )  # fmt: skip

    @property
    def split(self) -> str:
        """The digits of rows, columns and matrices as text for the kernel, such as "?/4,?/"."""
        return _text({base: [*inner[:-1], 0] for base, inner in self.bases})

    def sized(self, sums: Sequence[int]) -> tuple[Modes, list[Digit]]:
        """Return its modes and the digits of the accumulator, the slowest first, for an accumulator shape.

        Raises ValueError if an extent is not divisible.
        """
        of, steps = dict(zip(BASES[3 - len(sums) :], sums)), dict[str, int]()
        digits: list[Digit] = []
        for base, inner in self.bases:
            step, here = 1, list[Digit]()
            for n in inner[:-1]:
                here.insert(0, Digit(base, step, n))
                step *= n
            if of[base] % step:
                raise ValueError(
                    f"the number of {_PLURAL[base]} is {of[base]}, which is not a multiple of {step}; "
                    "trace the epilogue again"
                )
            steps[base] = of[base] // step
            digits += [Digit(base, step, steps[base]), *here]
        modes = tuple([tuple([d._replace(extent=d.extent or steps[d.base]) for d in mode]) for mode in self.modes])
        return modes, digits

    def shape(self, sums: Sequence[int]) -> tuple[int, ...]:
        """Return the shape of the array for an accumulator shape.  Raises ValueError."""
        return extents(self.sized(sums)[0])


_PLURAL = {"l": "matrices", "m": "rows", "n": "columns"}


def _text(sizes: Mapping[str, Sequence[int]]) -> str:
    """Return the extents of the digits of rows, columns and matrices as text, "" if each index has one digit."""
    if all(len(n) == 1 for n in sizes.values()):
        return ""
    # Extents of columns are constants of the kernel, so that division by a power of two becomes a shift.
    parts = [[str(n) if base == "n" and n else "?" for n in sizes.get(base, ())] for base in "mnl"]
    return "/".join(",".join(p) for p in parts)


def view_of_modes(modes: Modes, sums: Sequence[int], also: str = "", whole: bool = False) -> View:
    """Return the view of an array with given modes.

    Args:
        modes: the modes of the array.
        sums: shape of the accumulator.
        also: indices that the view includes even if the array does not depend on them.
        whole: True to require an element for each one of the accumulator.

    Raises:
        ValueError: if ``whole`` is set and elements are missing.

    >>> view_of_modes(permuted(reshaped(modes_of((6, 8)), (6, 2, 4)), (1, 0, 2)), (6, 8)).split
    '?/4,?/'
    """
    of = dict(zip(BASES[3 - len(sums) :], sums))
    digits = [d for mode in modes for d in mode]
    if whole and prod(d.extent for d in digits) != prod(sums):
        raise ValueError(f"shape {extents(modes)} does not hold each element of the accumulator's shape {tuple(sums)}")
    bases: list[tuple[str, tuple[int, ...]]] = []
    starts: dict[str, list[int]] = {}
    for base, extent in of.items():
        here = [d for d in digits if d.base == base]
        if here or whole or base in also:
            edges = {1} | {d.step for d in here} | {d.step * d.extent for d in here}
            starts[base] = found = sorted(e for e in edges if e < extent or e == 1)
            bases.append((base, (*(b // a for a, b in pairwise(found)), 0)))
    return View(tuple([tuple([y for d in mode for y in _cut(d, starts[d.base])]) for mode in modes]), tuple(bases))


def _cut(d: Digit, starts: Sequence[int]) -> list[Digit]:
    """Split a digit at the steps of `starts`, the slowest part first.  The slowest digit of an index gets extent 0."""
    inside = [s for s in starts if d.step <= s < d.step * d.extent]
    ends = [*inside[1:], d.step * d.extent]
    parts = [Digit(d.base, a, 0 if a == starts[-1] else b // a) for a, b in zip(inside, ends)]
    return parts[::-1]


def laid(x: ArrayView, view: View, sums: Sequence[int]) -> tuple[ArrayView, str]:
    """Return an array with one mode per digit of rows, columns and matrices, the fastest first, and the text of its
    digits.

    Digits that are adjacent in memory are merged.  The text is "" if rows and columns are one mode each.  Raises
    ValueError.
    """
    modes, digits = view.sized(sums)
    steps: dict[tuple[str, int], int] = {}
    for mode, stride in zip(modes, x.strides):
        at = stride
        for d in reversed(mode):
            steps[d.base, d.step] = at
            at *= d.extent
    kept: dict[str, list[tuple[int, int]]] = {}
    for d in reversed(digits):
        found, stride = kept.setdefault(d.base, []), steps.get((d.base, d.step), 0)
        if found and d.extent == 1:
            continue
        if found and found[-1][0] == 1:
            found[-1] = (d.extent, stride)
        elif found and found[-1][0] * found[-1][1] == stride:
            found[-1] = (found[-1][0] * d.extent, found[-1][1])
        else:
            found.append((d.extent, stride))
    flat = [part for base in "mnl" for part in kept.get(base, ())]
    text = _text({base: [*(n for n, _ in found[:-1]), 0] for base, found in kept.items()})
    return x._replace(shape=tuple([n for n, _ in flat]), strides=tuple([s for _, s in flat])), text


def as_sums(t: Any, view: View, sums: Sequence[int]) -> Any:
    """Return an array in the accumulator's shape, with extent 1 along indices that it does not depend on."""
    modes, digits = view.sized(sums)
    there = [d for mode in modes for d in mode if d.extent > 1]
    wanted = [d for d in digits if d in there]
    t = _turned(t.reshape([d.extent for d in there]), [there.index(d) for d in wanted])
    t = t.reshape([d.extent if d in there else 1 for d in digits])
    full = [d.extent for d in digits]
    t = (
        t.expand(full)
        if hasattr(t, "expand")
        else import_module(type(t).__module__.split(".")[0]).broadcast_to(t, full)
    )
    bases = dict(view.bases)
    return t.reshape([n if b in bases else 1 for b, n in zip(BASES[3 - len(sums) :], sums)])


def as_argument(g: Any, view: View, sums: Sequence[int]) -> Any:
    """Return the gradient of an argument, in its shape, from a torch tensor over the accumulator.

    Indices that are already reduced have extent 1.  The result is f32 if anything is added.
    """
    modes, digits = view.sized(sums)
    bases = dict(view.bases)
    others = [i for i, b in enumerate(BASES[3 - len(sums) :]) if b not in bases]
    g = g.float().sum(others, keepdim=True) if others else g
    g = g.reshape([d.extent for d in digits])
    there = [d for mode in modes for d in mode if d.extent > 1]
    added = [i for i, d in enumerate(digits) if d not in there and d.extent > 1]
    g = g.float().sum(added, keepdim=True) if added else g
    wanted = [d for d in digits if d in there]
    return _turned(g.reshape([d.extent for d in wanted]), [wanted.index(d) for d in there]).reshape(extents(modes))


def as_array(t: Any, view: View, sums: Sequence[int]) -> Any:
    """Return an array in its own shape, given all its elements in the accumulator's order."""
    modes, digits = view.sized(sums)
    there = [d for d in digits if d.extent > 1]
    wanted = [d for mode in modes for d in mode if d.extent > 1]
    return _turned(t.reshape([d.extent for d in there]), [there.index(d) for d in wanted]).reshape(extents(modes))


def _turned(t: Any, order: Sequence[int]) -> Any:
    return t.permute(*order) if hasattr(t, "permute") and order else t.transpose(order) if order else t
