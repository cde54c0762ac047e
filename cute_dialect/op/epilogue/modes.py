"""Shapes of what an epilogue reads and stores, other than those of the sums: what ``reshape`` and ``permute`` make.

A mode of such an array is a product of *digits*: of a row's number m, say, m // 64 and m % 64.  No data moves: a
kernel's address of (m, n) is that of the digits.

>>> x = modes_of((6, 8))
>>> y = permuted(reshaped(x, (6, 2, 4)), (1, 0, 2))
>>> extents(y), [[tuple(d) for d in mode] for mode in y]
((2, 6, 4), [[('n', 4, 2)], [('m', 1, 6)], [('n', 1, 4)]])
>>> reshaped(x, (8, 6))
Traceback (most recent call last):
    ...
ValueError: expected modes that are split or joined whole, got (6, 8) to (8, 6)
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
"""Of the sums: the matrix of a batch, the row, the column."""


class Digit(NamedTuple):
    """A part of a number: ``i // step % extent`` of ``base`` i, one of :data:`BASES` or a mode of an argument."""

    base: str
    step: int
    extent: int


Modes: TypeAlias = tuple[tuple[Digit, ...], ...]
"""Of each mode its digits, the slowest first; none of one element."""


def modes_of(shape: Sequence[int], names: Sequence[str] = BASES) -> Modes:
    """Return the modes of an array whose last ones are the last of ``names``."""
    names = names[len(names) - len(shape) :]
    return tuple([(Digit(b, 1, n),) if n != 1 else () for b, n in zip(names, shape)])


def extents(modes: Modes) -> tuple[int, ...]:
    """Return the shape of modes."""
    return tuple([prod(d.extent for d in mode) for mode in modes])


def _split(d: Digit, inner: int) -> tuple[Digit, Digit]:
    """Return a digit as two, the second of ``inner`` values."""
    return Digit(d.base, d.step * inner, d.extent // inner), Digit(d.base, d.step, inner)


def _joined(digits: Sequence[Digit]) -> tuple[Digit, ...]:
    """Return digits of which neighbours of one number are one."""
    found: list[Digit] = []
    for d in digits:
        before = found[-1] if found else None
        if before is not None and before.base == d.base and before.step == d.step * d.extent:
            found[-1] = Digit(d.base, d.step, before.extent * d.extent)
        else:
            found.append(d)
    return tuple(found)


def reshaped(modes: Modes, shape: Sequence[int]) -> Modes:
    """Return the same elements in rows of another shape, one of whose extents may be -1.

    Raises ValueError where a mode would begin in the middle of one that was there.
    """
    old = extents(modes)
    wanted = [int(n) for n in shape]
    if wanted.count(-1) == 1 and prod(n for n in wanted if n != -1):
        wanted[wanted.index(-1)] = prod(old) // prod(n for n in wanted if n != -1)
    if prod(wanted) != prod(old) or any(n < 1 for n in wanted):
        raise ValueError(f"expected a shape of {prod(old)} elements, got {tuple(shape)}")
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
                raise ValueError(f"expected modes that are split or joined whole, got {old} to {tuple(wanted)}")
        made.insert(0, _joined(here))
    return tuple(made)


def permuted(modes: Modes, dims: Sequence[int]) -> Modes:
    """Return modes in another order.  Raises ValueError for what is none."""
    order = [d + len(modes) if d < 0 else d for d in dims]
    if sorted(order) != list(range(len(modes))):
        raise ValueError(f"expected an order of {len(modes)} modes, got {tuple(dims)}")
    return tuple([modes[d] for d in order])


def matched(x: Sequence[Digit], y: Sequence[Digit]) -> list[tuple[Digit, Digit]]:
    """Return two modes of one extent in parts of one extent each, the slowest first.  Raises ValueError."""
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
    raise ValueError(f"expected modes that are split alike, got {extents((tuple(x), tuple(y)))}")


def common(x: Modes, y: Modes) -> Modes:
    """Return the modes that two arrays expand to.  Raises ValueError where they are not of the same elements."""
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
                raise ValueError(f"expected operands of the same elements, got shapes {extents(x)} and {extents(y)}")
        found.append(one or other)
    return tuple(found)


class View(NamedTuple):
    """How an array lies in the sums.

    ``modes``: of each of its modes the digits of their numbers, the slowest first; the slowest of a number has extent
    0, for what is left, whatever the sums' extents.  ``bases``: of each number that it has the extents of all digits,
    the fastest first, so that the last one is 0; the array is the same for all values of those that it has not.
    """

    modes: Modes
    bases: tuple[tuple[str, tuple[int, ...]], ...]

    @classmethod
    def from_json(cls, parts: Any) -> View | None:
        """Return the view of lists."""
        return None if parts is None else cls(
            tuple([tuple([Digit(*d) for d in mode]) for mode in parts[0]]),
            tuple([(base, tuple(inner)) for base, inner in parts[1]]),
        )  # fmt: skip

    @property
    def split(self) -> str:
        """How many digits rows, columns and matrices have, as a kernel is told."""
        return _text({base: [*inner[:-1], 0] for base, inner in self.bases})

    def sized(self, sums: Sequence[int]) -> tuple[Modes, list[Digit]]:
        """Return its modes, and the digits of the sums, the slowest first, of sums of a shape.  Raises ValueError."""
        of, steps = dict(zip(BASES[3 - len(sums) :], sums)), dict[str, int]()
        digits: list[Digit] = []
        for base, inner in self.bases:
            step, here = 1, list[Digit]()
            for n in inner[:-1]:
                here.insert(0, Digit(base, step, n))
                step *= n
            if of[base] % step:
                raise ValueError(f"expected a multiple of {step} {_PLURAL[base]}, got {of[base]}: trace again")
            steps[base] = of[base] // step
            digits += [Digit(base, step, steps[base]), *here]
        modes = tuple([tuple([d._replace(extent=d.extent or steps[d.base]) for d in mode]) for mode in self.modes])
        return modes, digits

    def shape(self, sums: Sequence[int]) -> tuple[int, ...]:
        """Return the shape of the array, of sums of a shape.  Raises ValueError."""
        return extents(self.sized(sums)[0])


_PLURAL = {"l": "matrices", "m": "rows", "n": "columns"}


def _text(sizes: Mapping[str, Sequence[int]]) -> str:
    """Return the extents of digits of rows, columns, matrices; "" where each has one."""
    if all(len(n) == 1 for n in sizes.values()):
        return ""
    # Extents of columns are part of the kernel, so that powers of two leave no division.
    parts = [[str(n) if base == "n" and n else "?" for n in sizes.get(base, ())] for base in "mnl"]
    return "/".join(",".join(p) for p in parts)


def view_of_modes(modes: Modes, sums: Sequence[int], also: str = "", whole: bool = False) -> View:
    """Return the view of an array of modes, of sums of a shape; ``whole``: it has an element for each of theirs;
    ``also``: numbers that it has anyway.

    Raises ValueError where it should have, and has not.

    >>> view_of_modes(permuted(reshaped(modes_of((6, 8)), (6, 2, 4)), (1, 0, 2)), (6, 8)).split
    '?/4,?/'
    """
    of = dict(zip(BASES[3 - len(sums) :], sums))
    digits = [d for mode in modes for d in mode]
    if whole and prod(d.extent for d in digits) != prod(sums):
        raise ValueError(f"expected a result of all elements of {tuple(sums)}, got {extents(modes)}")
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
    """Return a digit in the parts that begin at some steps of its number; of the slowest part the extent is 0."""
    inside = [s for s in starts if d.step <= s < d.step * d.extent]
    ends = [*inside[1:], d.step * d.extent]
    parts = [Digit(d.base, a, 0 if a == starts[-1] else b // a) for a, b in zip(inside, ends)]
    return parts[::-1]


def laid(x: ArrayView, view: View, sums: Sequence[int]) -> tuple[ArrayView, str]:
    """Return an array as a kernel takes it: a mode for each digit of rows, columns and matrices, the fastest first;
    and the text that says which these are, "" where rows and columns are one each.  Digits that follow each other in
    memory are one.  Raises ValueError.
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
    """Return an array in the order of the sums, with one element where it is the same for all."""
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
    """Return what each element of an array gets of tensors of torch over the sums, with one element where they are
    summed up already: in the shape of the array, f32 where anything is added.
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
    """Return an array with an element for each of the sums, in their order, in its own."""
    modes, digits = view.sized(sums)
    there = [d for d in digits if d.extent > 1]
    wanted = [d for mode in modes for d in mode if d.extent > 1]
    return _turned(t.reshape([d.extent for d in there]), [there.index(d) for d in wanted]).reshape(extents(modes))


def _turned(t: Any, order: Sequence[int]) -> Any:
    return t.permute(*order) if hasattr(t, "permute") and order else t.transpose(order) if order else t
