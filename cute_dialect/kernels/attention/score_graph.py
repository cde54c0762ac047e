"""Functions of attention scores as graphs, evaluated in registers: ``score_mod`` and ``mask_mod``.

A graph is one of :mod:`cute_dialect.kernels.epilogue.graph` whose accumulator is a score, scaled but not multiplied by
``log2(e)``. Its indices are i32 numbers:

    row, column, matrix    query, key and sequence
    head                   query head
    queries, keys          lengths of the sequence

Integers computed from i64 elements, or from constants beyond i32, have 64 bits (:meth:`ScoreGraph.is_wide`).

Inputs are numbers of the launch (``load``), or arrays that are read by indices (``element``). A thread evaluates nodes
that depend on the query alone once per row and tile, nodes that depend on the key alone once per column and step, and
the other nodes for each score.

>>> from cute_dialect.kernels.epilogue.graph import Builder, Input, Output
>>> make = Builder()
>>> document = make.array(Input("captured", "i32"))
>>> of = [make.element(document, make.place(index)) for index in ("row", "column")]
>>> same = ScoreGraph(make.graph([Output(make.call("equal", *of))]), ("visible",))
>>> same.depends, same.ranks, str(same)[:1]
(('row', 'row', 'column', 'column', 'both'), (1,), 'v')
"""

# Traced values define operators and attributes that pyright cannot check.
# pyright: basic

from __future__ import annotations

import json
from collections.abc import Callable
from functools import lru_cache
from hashlib import sha256
from math import inf
from typing import Any, NamedTuple, TypeAlias

import cute_dialect.lang as cute
from cute_dialect.kernels.common.elements import number
from cute_dialect.kernels.epilogue.emit import OF_FLOATS, value_of
from cute_dialect.kernels.epilogue.functions import FUNCTIONS
from cute_dialect.kernels.epilogue.graph import Builder, Graph, Node, constant_of
from cute_dialect.lang.values.signature_types import Int

__all__ = ["ARRAYS", "INTEGERS", "PLACES", "SMALL", "Indices", "ScoreGraph", "Scored", "Values", "Word", "WordType"]
__all__ += ["captured_types", "is_wide", "kind_of"]

PLACES = ("row", "column", "matrix", "head", "queries", "keys")
"""Indices of a graph."""

INTEGERS = ("i8", "ui8", "i32", "i64")
"""Integer types of arrays and casts of a graph."""

ARRAYS = ("f16", "bf16", "f32", "i1", *INTEGERS)
"""Element types of arrays that a graph may read."""


SMALL = 1 << 29
"""Absolute values of integers of which two may be added."""

Indices: TypeAlias = dict[str, Any]
"""Indices of a score by their names in a graph."""

Values: TypeAlias = dict[int, Any]
"""Values of nodes of a graph."""

Word: TypeAlias = cute.Float32 | cute.Int32
"""A value of an array as memory holds it, or half of an i64 value."""

WordType: TypeAlias = type[cute.Float32] | type[cute.Int32]
"""The type of a word."""


class ScoreGraph(NamedTuple):
    """A graph and the names of its outputs.

    - ``score``: the score that softmax takes; without it, the accumulator itself
    - ``visible``: True for visible keys; without it, all keys are visible
    - ``slope``: derivative of the score with respect to the accumulator; without it, 1
    - ``slope 0``, ``slope 1``, …: derivatives with respect to the elements of an input
    """

    graph: Graph
    names: tuple[str, ...]

    def __str__(self) -> str:
        return _name(self)

    @property
    def text(self) -> str:
        """The graph as JSON text, from which :meth:`from_text` returns it."""
        return json.dumps([self.names, self.graph.to_json()])

    @staticmethod
    def from_text(text: str) -> ScoreGraph:
        """Return the graph of :attr:`text`.  Raises ValueError."""
        return _from_text(text)

    def has(self, name: str) -> bool:
        """Return True if the graph has an output of that name."""
        return name in self.names

    def node(self, name: str) -> int:
        """Return the node of an output."""
        return self.graph.outputs[self.names.index(name)].node

    @property
    def depends(self) -> tuple[str, ...]:
        """For each node, the indices on which it depends: "" for none, ``row``, ``column`` or ``both``.

        The score depends on both. The sequence and the head are the same for all scores of a tile.
        """
        return _depends(self)

    @property
    def gathers(self) -> bool:
        """Return True if the graph reads arrays by indices."""
        return any([node.op == "element" for node in self.graph.nodes])

    def read_along(self, index: str) -> tuple[int, ...]:
        """Return the outermost nodes that read an array at indices that depend on ``index`` alone.

        Those that read by keys do not depend on the head, which changes within a tile of keys.

        Args:
            index: ``row`` or ``column``.
        """
        return _read_along(self, index)

    def is_boolean(self, node: int) -> bool:
        """Return True if the value of a node is a Boolean."""
        n = self.graph.nodes[node]
        if n.op == "element":
            return self.graph.inputs[n.value].element == "i1"
        if n.op == "constant":
            return isinstance(constant_of(n), bool)
        if n.op == "where":
            return all([self.is_boolean(i) for i in n.operands])
        return n.op in FUNCTIONS and FUNCTIONS[n.op].result == "b"

    def is_integer(self, node: int) -> bool:
        """Return True if the value of a node is an integer for certain."""
        n = self.graph.nodes[node]
        if n.op in PLACES:
            return True
        if n.op == "element":
            return self.graph.inputs[n.value].element in INTEGERS
        if n.op == "constant":
            return type(constant_of(n)) is int
        if n.op == "cast":
            return n.value in INTEGERS
        return n.op in _OF_INTEGERS and all([self.is_integer(i) for i in n.operands])

    def is_wide(self, node: int) -> bool:
        """Return True if the value of a node is an integer of 64 bits."""
        return is_wide(self.graph, node)

    def is_small(self, node: int) -> bool:
        """Return True if an integer is computed from indices and constants, and at most :data:`SMALL`."""
        return self._most(node) <= SMALL

    def _most(self, node: int) -> float:
        """Return a bound of the absolute value of an integer."""
        n = self.graph.nodes[node]
        if n.op == "constant":
            return abs(constant_of(n))
        if n.op in PLACES:
            return 1 << 26
        if n.op == "cast" and n.value == "i64":
            return self._most(n.operands[0])
        if n.op not in _OF_INTEGERS or n.op == "multiply":
            return inf
        bounds = [self._most(i) for i in n.operands]
        return sum(bounds) if n.op in ("add", "subtract") else max(bounds)

    @property
    def float_integers(self) -> tuple[int, ...]:
        """Integers that are only used as floats by the score and its slope: operands of casts, and of products and sums
        with floats.
        """
        return _float_integers(self)

    def query_factor(self, node: int) -> int | None:
        """Return n for an integer of the form ``n * query + terms without the query``, and None for other nodes."""
        n = self.graph.nodes[node]
        if n.op == "row":
            return 1
        if self.depends[node] in ("", "column"):
            return 0 if self.is_integer(node) else None
        signs = {"add": (1, 1), "subtract": (1, -1), "negative": (-1,)}.get(n.op, ())
        if n.op == "cast" and n.value == "i64":
            signs = (1,)
        total = 0 if signs else None
        for sign, i in zip(signs, n.operands):
            factor = self.query_factor(i)
            total = None if factor is None or total is None else total + sign * factor
        return total

    @property
    def ranks(self) -> tuple[int, ...]:
        """For each input, the number of indices of an array; 0 for a number."""
        found = [0] * len(self.graph.inputs)
        for node in self.graph.nodes:
            if node.op == "element":
                found[node.value] = max(1, len(node.operands))
        return tuple(found)


_OF_ANY = (
    "add", "subtract", "multiply", "floor_divide", "remainder", "negative", "abs", "maximum", "minimum", "where",
    "multiply_add", "relu",
)  # fmt: skip
"""Functions whose results have the kind of their operands."""


def kind_of(graph: Graph | Builder, node: int) -> str:
    """Return the kind of a node's values: b (Boolean), i (integer) or f (float)."""
    return _kind_of(graph, node).replace("w", "i")


def is_wide(graph: Graph | Builder, node: int) -> bool:
    """Return True if the value of a node is an integer of 64 bits."""
    return _kind_of(graph, node) == "w"


def _kind_of(graph: Graph | Builder, node: int) -> str:
    """Return the kind of a node's values: b (Boolean), i (integer), w (integer of 64 bits) or f (float)."""
    n = graph.nodes[node]
    if n.op in PLACES:
        return "i"
    if n.op in ("element", "cast"):
        return _KINDS.get(graph.inputs[n.value].element if n.op == "element" else n.value, "f")
    if n.op == "constant":
        value = constant_of(n)
        return "b" if isinstance(value, bool) else "f" if isinstance(value, float) else "w" if _is_large(value) else "i"
    if n.op in FUNCTIONS and FUNCTIONS[n.op].result == "b":
        return "b"
    if n.op in _OF_ANY:
        of = [_kind_of(graph, i) for i in (n.operands[1:] if n.op == "where" else n.operands)]
        return max(of, key="biwf".index)
    return "f"


def _is_large(value: int) -> bool:
    """Return True if an integer does not fit in 32 bits."""
    return not -(1 << 31) <= value < 1 << 31


@lru_cache(maxsize=256)
def _from_text(text: str) -> ScoreGraph:
    names, parts = json.loads(text)
    return ScoreGraph(Graph.from_json(parts), tuple(names))


@lru_cache(maxsize=256)
def _name(of: ScoreGraph) -> str:
    letters = "".join([name[0] if name[-1].isalpha() else name[-1] for name in of.names])
    return letters + sha256(repr(tuple(of)).encode()).hexdigest()[:12]


_KINDS = {"i1": "b", "i8": "i", "ui8": "i", "i32": "i", "i64": "w"}
"""Element types -> kinds of values, as :func:`_kind_of` returns them. Others are floats."""

_OF_INTEGERS = ("add", "subtract", "multiply", "floor_divide", "remainder", "negative", "abs", "maximum", "minimum")
"""Functions of integers whose results are integers."""


@lru_cache(maxsize=256)
def _read_along(of: ScoreGraph, index: str) -> tuple[int, ...]:
    nodes, of_head = of.graph.nodes, list[bool]()
    for node in nodes:
        of_head.append(node.op == "head" or any([of_head[i] for i in node.operands]))
    found, left = set[int](), [x.node for x in of.graph.outputs]
    while left:
        node = left.pop()
        if nodes[node].op == "element" and of.depends[node] == index and not (index == "column" and of_head[node]):
            found.add(node)
        else:
            left += nodes[node].operands
    return tuple(sorted(found))


@lru_cache(maxsize=256)
def _float_integers(of: ScoreGraph) -> tuple[int, ...]:
    nodes, left = of.graph.nodes, [of.node(name) for name in ("score", "slope") if of.has(name)]
    used = set[int]()
    while left:
        node = left.pop()
        if node not in used:
            used.add(node)
            left += nodes[node].operands

    def is_converted(i: int, user: int) -> bool:
        n = nodes[user]
        if n.op == "abs":
            return all([is_converted(user, other) for other in used if user in nodes[other].operands])
        if n.op == "cast" or n.op in OF_FLOATS:
            return n.value not in INTEGERS
        others = [x for x in n.operands if x != i]
        of_numbers = n.op in ("add", "subtract", "multiply", "maximum", "minimum")
        return of_numbers and len(others) == 1 and kind_of(of.graph, others[0]) == "f"

    outputs = {x.node for x in of.graph.outputs}
    return tuple(
        [
            i
            for i in sorted(used - outputs)
            if of.is_integer(i)
            and not of.is_wide(i)
            and of.depends[i] in ("row", "both")
            and all([is_converted(i, user) for user in used if i in nodes[user].operands])
        ]
    )


@lru_cache(maxsize=256)
def _depends(of: ScoreGraph) -> tuple[str, ...]:
    found: list[str] = []
    for node in of.graph.nodes:
        here = {node.op} & {"row", "column"} | {found[i] for i in node.operands} - {""}
        both = node.op == "accum" or "both" in here or len(here) > 1
        found.append("both" if both else next(iter(here), ""))
    return tuple(found)


class Scored:
    """A graph in a kernel.

    Args:
        of: The graph.
        inputs: Numbers and arrays, in the order of the graph's inputs.
    """

    def __init__(self, of: ScoreGraph, inputs: Any):
        self.of, self.inputs = of, inputs

    def index(self, at: Int, extent: Int) -> Int:
        """Return a query or a key for the graph.

        Those past the end stand for the last one, because arrays may end there. Their scores are not used.
        """
        return cute.min(at, extent - 1) if self.of.gathers else at

    def known(self, names: tuple[str, ...], along: str, place: Indices, before: Values | None = None) -> Values:
        """Return the values, by node, that outputs need and that depend on one index alone, or on none.

        Args:
            names: Outputs; those that the graph does not have are ignored.
            along: ``row``, ``column``, or "" for neither.
            place: The indices.
            before: Values that are known already.
        """
        found = {} if before is None else dict(before)
        for name in names:
            if self.of.has(name):
                self._compute(self.of.node(name), ("", along), None, place, found)
        return found

    def value(self, name: str, score: Any, place: Indices, known: Values) -> Any:
        """Return an output for a score. ``known`` are values by node; those that are computed are added to it."""
        return self.node_value(self.of.node(name), score, place, known)

    def node_value(self, node: int, score: Any, place: Indices, known: Values) -> Any:
        """Return the value of a node for a score, as :meth:`value` does."""
        self._compute(node, ("", "row", "column", "both"), score, place, known)
        return known[node]

    def word_type(self, node: int) -> WordType:
        """Return the type of the words in which a value of an array is held: Float32, or Int32 for integers and
        Booleans.
        """
        element = self.of.graph.inputs[self.of.graph.nodes[node].value].element
        return cute.Float32 if element in ("f16", "bf16", "f32") else cute.Int32

    def held(self, node: int, value: Any, word: int) -> Word:
        """Return a word of a value of an array, as memory holds it: of i64, the low half and then the high one."""
        if self.of.is_wide(node):
            return (value >> 32 * word).to(cute.Int32)
        return cute.where(value, 1, 0) if self.of.is_boolean(node) else value

    def read(self, node: int, words: list[Word]) -> Any:
        """Return the value of an array from its words in memory."""
        if self.of.is_wide(node):
            low, high = [word.to(cute.Int64) for word in words]
            return (high << 32) | (low & 0xFFFFFFFF)
        return words[0] != 0 if self.of.is_boolean(node) else words[0]

    def read_all(self, words: tuple[tuple[int, int], ...], load: Callable[[int, WordType], Word]) -> Values:
        """Return the values of arrays from their words in memory.

        Args:
            words: Nodes and the indices of their words, those of a node in order.
            load: ``load(i, type)`` returns the ``i``-th of these words.
        """
        held, parts = Values(), list[Word]()
        for i, (node, _) in enumerate(words):
            parts.append(load(i, self.word_type(node)))
            if len(parts) == (2 if self.of.is_wide(node) else 1):
                held[node], parts = self.read(node, parts), []
        return held

    def indices(self, index: int, place: Indices, known: Values) -> list[Any]:
        """Return the indices at which the graph reads an input that it reads once."""
        node = next(x for x in self.of.graph.nodes if x.op == "element" and x.value == index)
        for i in node.operands:
            self._compute(i, ("", "row", "column", "both"), None, place, known)
        return self._within(node, self.inputs[index], known)

    def _compute(self, top: int, along: tuple[str, ...], score: Any, place: Indices, found: Values) -> None:
        """Add the values of a node and of those that it needs, as far as they depend on ``along``."""
        nodes, depends = self.of.graph.nodes, self.of.depends
        if top in found:
            return
        for i in nodes[top].operands:
            self._compute(i, along, score, place, found)
        if depends[top] in along:
            found[top] = self._value(nodes[top], score, place, found)

    def _value(self, node: Node, score: Any, place: Indices, found: Values) -> Any:
        operands = [found[i] for i in node.operands]
        if node.op == "element":
            array, element = self.inputs[node.value], self.of.graph.inputs[node.value].element
            held = array[tuple(self._within(node, array, found))]
            if element == "i1":
                return held != 0
            if element == "i64":
                return held
            return held.to(cute.Float32 if element in ("f16", "bf16", "f32") else cute.Int32)
        if node.op == "load":
            return self.inputs[node.value]
        if node.op == "constant":
            value = constant_of(node)
            if isinstance(value, bool):
                return cute.Boolean(value)
            return cute.Int64(value) if isinstance(value, int) and _is_large(value) else value
        if node.op == "cast" and node.value in INTEGERS:
            value = number(node.value)(operands[0])
            return value if node.value == "i64" else cute.Int32(value)
        if node.op == "tanh":  # an absolute error of 1e-7 is enough for a score
            power = cute.arch.exp2(cute.Float32(operands[0]) * 2.8853900817779268) + 1.0
            return cute.math.fma(cute.arch.rcp_approx(power), -2.0, 1.0)
        if node.op == "divide" and isinstance(operands[1], int | float) and operands[1] != 0:
            return cute.Float32(operands[0]) * (1.0 / operands[1])
        return value_of(node, score, None, operands, place)

    def _within(self, node: Node, array: cute.Tensor, found: Values) -> list[Any]:
        """Return the indices of an element, counted from the end if they are negative, as in Python."""
        at: list[Any] = []
        for mode, i in enumerate(node.operands):
            index = found[i]
            extent = array.shape[mode]
            if isinstance(index, int):
                index = extent + index if index < 0 else cute.Int32(index)
            elif self.of.graph.nodes[i].op not in PLACES:
                index = cute.Int32(cute.where(index < 0, index + extent, index))
            at.append(index)
        return at or [0]


def captured_types(of: ScoreGraph | None) -> Any:
    """Return the annotations of the inputs of a graph, or None without a graph."""
    if of is None or not of.graph.inputs:
        return None
    found = []
    for x, rank in zip(of.graph.inputs, of.ranks):
        if rank == 0:
            found.append(cute.Float32(0.0))
        else:
            modes = ",".join("?" * rank)
            found.append(cute.Tensor[cute.Uint8 if x.element == "i1" else number(x.element), f"({modes}):({modes})"])
    return tuple(found)
