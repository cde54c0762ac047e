"""Functions of attention scores as graphs, evaluated in registers: ``score_mod`` and ``mask_mod``.

A graph is one of :mod:`cute_dialect.kernels.epilogue.graph` whose accumulator is a score, scaled but not multiplied by
``log2(e)``. Its indices are i32 numbers:

    row, column, matrix    query, key and sequence
    head                   query head
    queries, keys          lengths of the sequence

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
from functools import lru_cache
from hashlib import sha256
from typing import Any, NamedTuple

import cute_dialect.lang as cute
from cute_dialect.kernels.common.elements import number
from cute_dialect.kernels.epilogue.emit import value_of
from cute_dialect.kernels.epilogue.graph import Graph, Node, constant_of
from cute_dialect.lang.values.signature_types import Int

__all__ = ["ARRAYS", "PLACES", "ScoreGraph", "Scored", "captured_types"]

PLACES = ("row", "column", "matrix", "head", "queries", "keys")
"""Indices of a graph."""

ARRAYS = ("f16", "bf16", "f32", "i1", "i8", "ui8", "i32", "i64")
"""Element types of arrays that a graph may read."""


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

    @property
    def ranks(self) -> tuple[int, ...]:
        """For each input, the number of indices of an array; 0 for a number."""
        found = [0] * len(self.graph.inputs)
        for node in self.graph.nodes:
            if node.op == "element":
                found[node.value] = max(1, len(node.operands))
        return tuple(found)


@lru_cache(maxsize=256)
def _from_text(text: str) -> ScoreGraph:
    names, parts = json.loads(text)
    return ScoreGraph(Graph.from_json(parts), tuple(names))


@lru_cache(maxsize=256)
def _name(of: ScoreGraph) -> str:
    letters = "".join([name[0] if name[-1].isalpha() else name[-1] for name in of.names])
    return letters + sha256(repr(tuple(of)).encode()).hexdigest()[:12]


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

    def known(
        self, names: tuple[str, ...], along: str, place: dict[str, Any], before: dict[int, Any] | None = None
    ) -> dict[int, Any]:
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

    def value(self, name: str, score: Any, place: dict[str, Any], known: dict[int, Any]) -> Any:
        """Return an output for a score. ``known`` are values by node; those that are computed are added to it."""
        node = self.of.node(name)
        self._compute(node, ("", "row", "column", "both"), score, place, known)
        return known[node]

    def indices(self, index: int, place: dict[str, Any], known: dict[int, Any]) -> list[Any]:
        """Return the indices at which the graph reads an input that it reads once."""
        node = next(x for x in self.of.graph.nodes if x.op == "element" and x.value == index)
        for i in node.operands:
            self._compute(i, ("", "row", "column", "both"), None, place, known)
        return self._within(node, self.inputs[index], known)

    def _compute(
        self, top: int, along: tuple[str, ...], score: Any, place: dict[str, Any], found: dict[int, Any]
    ) -> None:
        """Add the values of a node and of those that it needs, as far as they depend on ``along``."""
        nodes, depends = self.of.graph.nodes, self.of.depends
        if top in found:
            return
        for i in nodes[top].operands:
            self._compute(i, along, score, place, found)
        if depends[top] in along:
            found[top] = self._value(nodes[top], score, place, found)

    def _value(self, node: Node, score: Any, place: dict[str, Any], found: dict[int, Any]) -> Any:
        operands = [found[i] for i in node.operands]
        if node.op == "element":
            array, element = self.inputs[node.value], self.of.graph.inputs[node.value].element
            held = array[tuple(self._within(node, array, found))]
            if element == "i1":
                return held != 0
            return held.to(cute.Float32 if element in ("f16", "bf16", "f32") else cute.Int32)
        if node.op == "load":
            return self.inputs[node.value]
        if node.op == "constant" and isinstance(constant_of(node), bool):
            return cute.Boolean(constant_of(node))
        if node.op == "tanh":  # an absolute error of 1e-7 is enough for a score
            power = cute.arch.exp2(cute.Float32(operands[0]) * 2.8853900817779268) + 1.0
            return cute.math.fma(cute.arch.rcp_approx(power), -2.0, 1.0)
        if node.op == "divide" and isinstance(operands[1], int | float) and operands[1] != 0:
            return cute.Float32(operands[0]) * (1.0 / operands[1])
        return value_of(node, score, None, operands, place)

    def _within(self, node: Node, array: cute.Tensor, found: dict[int, Any]) -> list[Any]:
        """Return the indices of an element, counted from the end if they are negative, as in Python."""
        at: list[Any] = []
        for mode, i in enumerate(node.operands):
            index = found[i]
            extent = array.shape[mode]
            if isinstance(index, int):
                index = extent + index if index < 0 else cute.Int32(index)
            elif self.of.graph.nodes[i].op not in PLACES:
                index = cute.where(index < 0, index + extent, index)
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
