"""Abstract states as JSON: a table of nodes, each a tag and its children, in which equal values are one node.

An integer is itself, or `x` and hexadecimal digits if it is large. A text begins with `'`; N, T and F are None, True
and False. Every other string is the number of a node. `["t", 1, "'a"]` is the tuple (1, "a"), and a later
`["t", "0", 2]` is ((1, "a"), 2). Ops and blocks of the kernel have the number at which a walk reaches them. States,
warps and so on are written field by field, so a field that is added to them is written without a change here. Masks of
shared memory are written as units, since the pieces of a partition differ between runs.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction
from typing import TypeAlias, cast

import numpy as np
from xdsl.ir import Block, Operation

from cute_dialect.prove.facts import Facts, Record, Table
from cute_dialect.prove.machine import Machine
from cute_dialect.prove.program import Code, Program
from cute_dialect.prove.regions import Region
from cute_dialect.prove.state import Flight, Frame, MBarrier, Named, Product, State, TensorColumns, Warp
from cute_dialect.prove.values import (
    UNKNOWN,
    Accumulator,
    Argument,
    Counter,
    Guard,
    Linear,
    Spread,
    Strided,
    Struct,
    Unknown,
)

Child: TypeAlias = "int | str"
Node: TypeAlias = "tuple[Child, ...]"
_SMALL = 1 << 53
_VALUES = (Linear, Counter, Strided, Spread, Guard, Accumulator, Struct, Argument)
_PARTS = (Frame, Warp, MBarrier, Named, Product)
_SHARED = (tuple, Record, np.ndarray, *_VALUES)  # read once, since nothing changes them
_CLASSES: dict[str, type] = {c.__name__: c for c in (*_VALUES, *_PARTS)}
_FIELDS: dict[type, tuple[str, ...]] = {
    c: tuple(f.name for f in dataclasses.fields(c) if f.init) for c in _CLASSES.values()
}
_RECORD = ("kind", "actor", "ticket", "known", "fenced", "may_be")
_WORDS: dict[str, object] = {"N": None, "T": True, "F": False}
_STATE = tuple(sorted(k for k in vars(State(Facts(Table(0)))) if k != "facts"))
_FACTS = tuple(sorted(k for k in vars(Facts(Table(0))) if k not in ("table", "version")))


class CodecError(Exception):
    """A node that does not describe a value."""


class Codec:
    """Converts values of the protocol prover to nodes and back."""

    def __init__(self, program: Program, nodes: Iterable[Sequence[Child]] = ()) -> None:
        """Number the ops, blocks and values of a kernel. Raises CodecError for nodes that are not distinct."""
        self._machine: Machine | None = None
        self._regions: dict[int, Region] = {}
        self.ops = list(program.kernel.walk())
        self.blocks = [b for op in self.ops for region in op.regions for b in region.blocks]
        self._op_numbers = {op: i for i, op in enumerate(self.ops)}
        self._block_numbers = {b: i for i, b in enumerate(self.blocks)}
        for block in self.blocks:
            program.code(block)
            for value in (*block.args, *(r for op in block.ops for r in op.results)):
                program.slot(value)
        self.program = program
        self.nodes: list[Node] = []
        self._numbers: dict[Node, int] = {}
        self._known: dict[object, Child] = {}
        self._decoded: dict[int, object] = {}
        for i, node in enumerate(nodes):
            self._numbers[tuple(node)] = i
            self.nodes.append(tuple(node))
            if len(self._numbers) != len(self.nodes):
                raise CodecError(f"nodes {self._numbers[tuple(node)]} and {i} are equal")

    @property
    def machine(self) -> Machine:
        """The machine whose states are converted. Other values need none."""
        if self._machine is None:
            raise CodecError("a state is read before the hints")
        return self._machine

    @machine.setter
    def machine(self, machine: Machine) -> None:
        self._machine = machine

    # -- writing ------------------------------------------------------------------------------------------------------

    def _node(self, tag: str, children: Iterable[Child]) -> str:
        key = (tag, *children)
        got = self._numbers.get(key)
        if got is None:
            got = self._numbers[key] = len(self.nodes)
            self.nodes.append(key)
        return str(got)

    def write(self, v: object) -> Child:
        """Return the node of a value, or the value itself if it is a number or text."""
        if v is None or isinstance(v, bool):
            return "N" if v is None else "T" if v else "F"
        if isinstance(v, (int, np.integer)):
            number = int(cast("int", v))
            return number if -_SMALL < number < _SMALL else f"x{number:x}"
        if isinstance(v, str):
            return f"'{v}"
        if isinstance(v, (Record, *_VALUES)):
            got = self._known.get(v)
            if got is None:
                got = self._known[v] = self._write(v)
            return got
        return self._write(v)

    def _write(self, v: object) -> Child:
        write = self.write
        if isinstance(v, (Flight, TensorColumns)):
            return self._node("flight" if isinstance(v, Flight) else "columns", [write(x) for x in v])
        if isinstance(v, tuple):
            return self._node("t", [write(x) for x in cast("tuple[object, ...]", v)])
        if isinstance(v, list):
            return self._node("l", [write(x) for x in cast("list[object]", v)])
        if isinstance(v, dict):
            items = [(write(k), write(x)) for k, x in cast("dict[object, object]", v).items()]
            return self._node("d", [c for pair in sorted(items, key=_order) for c in pair])
        if isinstance(v, (set, frozenset)):
            return self._node("s", sorted((write(x) for x in cast("set[object]", v)), key=_order))
        if isinstance(v, np.ndarray):
            return self._node("n", [int(x) for x in cast("Iterable[int]", v)])
        if isinstance(v, Fraction):
            return self._node("q", (v.numerator, v.denominator))
        if isinstance(v, Unknown):
            return self._node("?", ())
        if isinstance(v, Record):
            return self._node("record", [write(getattr(v, name)) for name in _RECORD])
        if isinstance(v, Operation):
            return self._node("op", (self._op_numbers[v],))
        if isinstance(v, (Code, Block)):
            return self._node("code", (self._block_numbers[v.block if isinstance(v, Code) else v],))
        if isinstance(v, State):
            self.machine.refresh(v)
            units = self.machine.pieces.units
            facts = {**vars(v.facts), "records": {r: units(m) for r, m in v.facts.records.items()}}
            facts["written"] = units(v.facts.written)
            fields = {**vars(v), "barrier_units": units(v.barrier_units)}
            node = self._node("facts", [write(facts[name]) for name in _FACTS])
            return self._node("state", [node, *(write(fields[name]) for name in _STATE)])
        fields = _FIELDS.get(type(v))
        if fields is None:
            raise CodecError(f"a value of type {type(v).__name__} cannot be written")
        return self._node(type(v).__name__, [write(getattr(v, name)) for name in fields])

    # -- reading ------------------------------------------------------------------------------------------------------

    def read(self, child: Child) -> object:
        """Return the value of a node. Raises CodecError if it has none."""
        if isinstance(child, int):
            return child
        try:
            if child[:1] == "'":
                return child[1:]
            if child in _WORDS:
                return _WORDS[child]
            if child[:1] == "x":
                return int(child[1:], 16)
            number = int(child)
            if number in self._decoded:
                return self._decoded[number]
            tag, *children = self.nodes[number]
            if any(isinstance(c, str) and c.isdecimal() and int(c) >= number for c in children):
                raise CodecError(f"node {number} refers to a later one")
            value: object = self._read(str(tag), children)
        except (ArithmeticError, IndexError, KeyError, TypeError, ValueError) as e:
            raise CodecError(f"node {child} is not understood ({type(e).__name__}: {e})") from None
        if isinstance(value, _SHARED):
            self._decoded[number] = value
        return cast("object", value)

    def _read(self, tag: str, children: Sequence[Child]) -> object:
        values = [self.read(c) for c in children]
        made = _MAKERS.get(tag)
        if made is not None:
            return made(values)
        if tag == "record":
            kind, actor, ticket, known, fenced, may_be = cast("tuple[str, tuple[str], int, int, int, bool]", values)
            return self.machine.table.record(kind, actor, ticket, known, fenced, may_be)
        if tag == "op":
            return self.ops[cast("int", values[0])]
        if tag == "code":
            return self.program.code(self.blocks[cast("int", values[0])])
        if tag == "facts":
            facts = Facts(self.machine.table)
            for name, value in zip(_FACTS, values, strict=True):
                setattr(facts, name, value)
            return facts
        if tag == "state":
            s = State(cast("Facts", values[0]))
            for name, value in zip(_STATE, values[1:], strict=True):
                setattr(s, name, value)
            self._cut(s)
            return s
        kind = _CLASSES[tag]
        return kind(**dict(zip(_FIELDS[kind], values, strict=True)))

    def _cut(self, s: State) -> None:
        """Replace the units of the masks of a state by pieces."""
        units = {s.barrier_units, s.facts.written, *s.facts.records.values()}
        regions = {u: self._regions.setdefault(u, Region(u)) for u in units}
        pieces = self.machine.pieces
        for region in regions.values():
            pieces.mask(region)
        s.facts.version = pieces.version
        s.barrier_units = pieces.mask(regions[s.barrier_units])
        s.facts.written = pieces.mask(regions[s.facts.written])
        s.facts.records = {r: pieces.mask(regions[u]) for r, u in s.facts.records.items()}


def _order(child: object) -> str:
    return repr(child)


def _pairs(values: Sequence[object]) -> dict[object, object]:
    return dict(zip(values[::2], values[1::2], strict=True))


_MAKERS: dict[str, Callable[[Sequence[object]], object]] = {
    "t": tuple,
    "l": list,
    "d": _pairs,
    "s": set,
    "n": lambda values: np.asarray(values, np.int64),
    "q": lambda values: Fraction(cast("int", values[0]), cast("int", values[1])),
    "?": lambda values: UNKNOWN,
    "columns": lambda values: TensorColumns(*cast("tuple[int, int, int, bool, bool]", values)),
    "flight": lambda values: Flight(*cast("tuple[int, int, int, int]", values)),
}
