"""``reshape`` and ``permute`` of traced values.

Each mode of a value computed from the accumulator is described by digits of the accumulator's indices (l, m, n).  An
argument whose shape does not broadcast to the accumulator has no such digits at first.  It gets them from the first
operation that combines it with a value whose digits are known.
"""

# Operands are anything that users write.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import prod
from typing import Any, ClassVar, NamedTuple

from cute_dialect.kernels.epilogue.graph import Builder, Input
from cute_dialect.op.epilogue.mode_digits import (
    Digit,
    Modes,
    View,
    common,
    extents,
    matched,
    modes_of,
    permuted,
    reshaped,
    view_of_modes,
)
from cute_dialect.op.errors import EpilogueError

__all__ = ["Argument", "Making", "Origin", "operands_of", "permute", "reshape", "view_of_result"]


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
    return x.known(origin.build(node), x.shape, tuple(_joined(modes, places)))


def _joined(modes: Modes, places: Mapping[str, Sequence[tuple[Digit, Digit]]]) -> list[tuple[Digit, ...]]:
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
