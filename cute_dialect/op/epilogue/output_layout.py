"""``reshape`` and ``permute`` of traced values, and the layouts that they give to arguments and results.

A mode of such a value is a product of *digits* of the accumulator's indices (l, m, n).  The row index m, for example,
may be split into the digits m // 64 and m % 64.  No data moves: the kernel computes an address from the digits.

>>> x = modes_of((6, 8))
>>> y = permuted(reshaped(x, (6, 2, 4)), (1, 0, 2))
>>> extents(y), [[tuple(d) for d in mode] for mode in y]
((2, 6, 4), [[('n', 4, 2)], [('m', 1, 6)], [('n', 1, 4)]])
>>> reshaped(x, (8, 6))
Traceback (most recent call last):
    ...
ValueError: (6, 8) cannot be reshaped to (8, 6): each mode must be split or merged as a whole

An argument whose shape does not broadcast to the accumulator has no such digits at first.  It gets them from the first
operation that combines it with a value whose digits are known.
"""

# Operands are anything that users write.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from itertools import pairwise
from math import prod
from typing import Any, ClassVar, NamedTuple, TypeAlias

from cute_dialect.kernels.epilogue.graph import Builder, Input
from cute_dialect.op.errors import EpilogueError
from cute_dialect.runtime.arrays import ArrayView

# --------------------------------------------------------------------------------------------------------------- digits


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
    """Return the modes of an array, one digit each; ``names`` are those of the last modes."""
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


# -------------------------------------------------------------------------------------------------------- traced values


class Argument(NamedTuple):
    """An argument of a traced function."""

    name: str
    number: int  # index of the graph's input
    kind: str  # broadcast kind in the trace: "aux", "row", "column", "scalar" or "matrix"
    batch: bool  # True if each matrix of a batch has its own values
    view: View | None = None  # place in the accumulator of a reshaped or permuted argument


class Origin(NamedTuple):
    """The single argument that a value is computed from."""

    name: str
    shape: tuple[int, ...]
    element: str
    modes: Modes  # modes of the value, as digits of the argument's modes
    build: Callable[[int], int]  # node of the loaded argument -> node of the value


class Making(Builder):
    """Builds a graph for an accumulator of shape `sums` and records the arguments that it reads."""

    ARRANGES: ClassVar[bool] = True
    """True if values may be reshaped and permuted."""

    def __init__(self, sums: tuple[int, ...]):
        super().__init__()
        self.sums = sums
        self.arguments: list[Argument] = []
        self._halves: list[bool] = []
        self._integers: dict[str, int] = {}

    def argument(self, name: str, input: Input, view: View | None = None) -> int:
        """Add an input and return the node that loads it."""
        node = self.load(input)
        self.arguments.append(Argument(name, len(self.inputs) - 1, input.kind, input.batch, view))
        return node

    def integer(self, name: str) -> int:
        """Return the node of an integer that is a launch argument."""
        if name not in self._integers:
            self._integers[name] = self.argument(name, Input("scalar", "i64", number=True))
        return self._integers[name]

    def is_half(self, node: int) -> bool:
        """Return True if a node has half as many columns as the accumulator."""
        for i in range(len(self._halves), len(self.nodes)):
            x = self.nodes[i]
            here = x.op in ("even", "odd") or (x.op == "load" and self.inputs[x.value].half)
            here = here or any(self._halves[k] for k in x.operands)
            self._halves.append(here and x.op != "interleave")
        return self._halves[node]


HALF = "h"
"""Index name for the columns of a value that has half as many columns as the accumulator."""


def own_modes(shape: Sequence[int]) -> Modes:
    """Return the modes of an argument.  Their bases are the positions of its modes ("0", "1", …)."""
    return modes_of(shape, [str(i) for i in range(len(shape))])


def modes_in_sums(x: Any) -> Modes:
    """Return the modes of a value as digits of the accumulator's indices."""
    if x.modes is not None:
        return x.modes
    return modes_of(x.shape, ("l", "m", HALF if x.make.is_half(x.node) else "n"))


def reshape(x: Any, shape: Sequence[int]) -> Any:
    """Return a traced value with another shape.  Raises EpilogueError."""
    return _arranged(x, "reshape", lambda modes: reshaped(modes, shape))


def permute(x: Any, dims: Sequence[int]) -> Any:
    """Return a traced value with its modes in another order.  Raises EpilogueError."""
    return _arranged(x, "permute", lambda modes: permuted(modes, dims))


def _arranged(x: Any, call: str, change: Callable[[Modes], Modes]) -> Any:
    if not isinstance(x.make, Making) or not x.make.ARRANGES:
        raise EpilogueError(f"{x.what}: {call}() is not supported here; use elementwise functions only")
    try:
        origin = None if x.origin is None else x.origin._replace(modes=change(x.origin.modes))
        if x.node < 0:
            assert origin is not None
            return x.arranged(extents(origin.modes), origin.modes, origin)
        modes = change(modes_in_sums(x))
    except ValueError as e:
        raise EpilogueError(f"{x.what}: {call}: {e}") from None
    return x.arranged(extents(modes), modes, origin)


def operands_of(name: str, what: str, operands: Sequence[Any], proxies: Sequence[Any]) -> tuple[list[Any], Modes]:
    """Place operands in the accumulator, and return them with the modes of the result.

    At least one operand is reshaped, permuted, or an argument without a place yet.  Raises EpilogueError.
    """
    firm = [x for x in proxies if x.node >= 0 and x.origin is None and prod(x.shape) > 1]
    loose = [x for x in proxies if x.node >= 0 and x.origin is not None and prod(x.shape) > 1]
    unknown = [x for x in proxies if x.node < 0]
    found: dict[int, Any] = {}
    try:
        target: Modes = ()
        for x in firm:
            target = common(target, modes_in_sums(x))
        for x in loose:
            try:
                target = common(target, modes_in_sums(x))
            except ValueError:
                found[id(x)] = resolved(x, target)
        for x in unknown:
            if not target:
                raise ValueError(
                    f"argument {x.origin.name} of shape {x.shape} does not broadcast to the accumulator's shape "
                    f"{x.make.sums}; in {name}, combine it with a value of accum that is reshaped to match"
                )
            try:
                found[id(x)] = resolved(x, target)
            except ValueError as e:
                if x.origin.modes != own_modes(x.origin.shape):
                    raise
                shape = extents(target)
                raise ValueError(f"argument {x.origin.name} of shape {x.shape} does not broadcast to {shape}") from e
    except ValueError as e:
        raise EpilogueError(f"{what}: {e}") from None
    return [found.get(id(x), x) for x in operands], target


def resolved(x: Any, target: Modes) -> Any:
    """Load the argument that a value is computed from in the modes of `target`, and rebuild the value from it."""
    origin, make = x.origin, x.make
    modes = (*((),) * (len(target) - len(origin.modes)), *origin.modes)
    whole = (*((),) * (len(modes) - len(target)), *target)
    places: dict[str, list[tuple[Digit, Digit]]] = {}
    for own, other in zip(modes, whole):
        try:
            for mine, its in matched(own, other) if own else ():
                places.setdefault(mine.base, []).append((mine, its))
        except ValueError:
            raise ValueError(
                f"argument {origin.name} of shape {x.shape} does not broadcast to shape {extents(target)}, whose modes "
                "are split differently"
            ) from None
    order = [sorted(places.get(str(i), ()), key=lambda both: -both[0].step) for i in range(len(origin.shape))]
    array: Modes = tuple([tuple([its for _, its in mode]) for mode in order])
    base, array = base_of(target, make.sums, array)
    view = view_of_modes(array, base)
    there = "".join(name for name, _ in view.bases)
    kind = {"mn": "aux", "m": "column", "n": "row", "": "scalar"}[there.replace("l", "")]
    if kind == "scalar" and "l" in there:
        if view.split:  # A batch index split over several modes is read per element.
            view, kind = view_of_modes(array, base, "mn"), "aux"
        else:
            kind = "matrix"
    batch, half = "l" in there and kind != "matrix", base != make.sums
    text = view.split
    node = make.argument(origin.name, Input(kind, origin.element, batch=batch, half=half, split=text), view)
    return x.known(origin.build(node), x.shape, tuple(_joined_digits(modes, places)))


def _joined_digits(modes: Modes, places: Mapping[str, Sequence[tuple[Digit, Digit]]]) -> list[tuple[Digit, ...]]:
    """Return the modes of a value as digits of the accumulator's indices."""
    found: list[tuple[Digit, ...]] = []
    for mode in modes:
        here: list[Digit] = []
        for d in mode:
            parts = [(mine, its) for mine, its in places[d.base] if d.step <= mine.step < d.step * d.extent]
            here += [its for _, its in sorted(parts, key=lambda both: -both[0].step)]
        found.append(tuple(here))
    return found


def base_of(target: Modes, sums: tuple[int, ...], modes: Modes) -> tuple[tuple[int, ...], Modes]:
    """Return the shape that `target` covers and `modes` in terms of that shape.

    The shape is that of the accumulator, or has half as many columns.
    """
    if not any(d.base == HALF for mode in target for d in mode):
        return sums, modes
    named = [[d._replace(base="n") if d.base == HALF else d for d in mode] for mode in modes]
    return (*sums[:-1], sums[-1] // 2), tuple([tuple(mode) for mode in named])


def view_of_result(x: Any, name: str) -> View | None:
    """Return the place of a result in the accumulator, or None if it was neither reshaped nor permuted.

    Raises EpilogueError.
    """
    if x.node < 0:
        raise EpilogueError(
            f"{x.what}: result {name} is computed from argument {x.origin.name} alone; combine it with accum"
        )
    if x.modes is None:
        return None
    base, modes = base_of(x.modes, x.make.sums, x.modes)
    if modes == modes_of(base):
        return None
    try:
        return view_of_modes(modes, base, whole=True)
    except ValueError as e:
        raise EpilogueError(f"{x.what}: {name}: {e}") from None
