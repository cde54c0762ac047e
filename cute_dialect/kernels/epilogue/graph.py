"""Epilogue graphs: elementwise functions of a GEMM's accumulator, as values over (row, column) of D.

A graph is data. Its nodes are in topological order, and ``nodes[i].op`` is one of

    accum                  the accumulator
    constant               ``value``: a number, as an exact text
    load                   ``value``: the index of an input
    random                 a uniform number in [0, 1) from a seed and an offset (integers), see
                           :mod:`cute_dialect.kernels.common.philox`; ``value``: "half" for elements of (M, N / 2),
                           "turned" for those of the transposed result, or ""
    row, column, matrix    coordinates of the accumulator element (i32)
    element                ``value``: the index of an input, an array; the operands are the indices of the element.
                           Only functions of attention scores (:mod:`cute_dialect.kernels.attention.score_graph`)
                           have it, and the indices that are listed there
    cast                   ``value``: the type to which the operand is rounded
    even, odd              column 2 j or 2 j + 1 of a pair of adjacent columns; the result is over (M, N / 2)
    whole                  row reduction ``value`` (sum, max or min); needs a tile with all columns of a row
    block                  maximum over each ``value`` columns of a row, from 0 on; needs a tile with whole blocks
    interleave             combines two values over (M, N / 2) to one over (M, N): its even and its odd columns
    hook                   ``value``: a function in the kernel language; it has no reference implementation
    a name of FUNCTIONS    that function of the operands

>>> make = Builder()
>>> bias = make.load(Input("row", "f32"))
>>> graph = make.graph([Output(make.call("relu", make.call("add", make.accum(), bias)))])
>>> [n.op for n in graph.nodes], graph.name[:2]
(['accum', 'load', 'add', 'relu'], 'g-')

A graph is named after its structure. Names of variables and the order of independent statements do not affect it;
constants do.
"""

# Graph values are arrays of any library.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from hashlib import sha256
from math import inf
from typing import Any, NamedTuple

from cute_dialect.kernels.common.philox import drawn_of_arrays
from cute_dialect.kernels.epilogue.functions import FUNCTIONS, NUMPY, cast_of_arrays

KINDS = ("scalar", "matrix", "row", "column", "aux")


class Input(NamedTuple):
    """A tensor, or a number, that an epilogue reads."""

    # "scalar": one value; "matrix": one per matrix of a batch; "row": one per column of D, shared by all rows;
    # "column": one per row of D; "aux": one per element.
    kind: str
    element: str = "f32"
    number: bool = False  # a scalar that is an argument of the launch instead of a tensor
    batch: bool = False  # the input has a batch mode
    order: str = ""  # the contiguous index of D, "n" or "m", or none
    pairs: bool = False  # two adjacent elements along n can be loaded at once
    half: bool = False  # the input is over (M, N / 2)
    # The extents of the modes of rows, columns and matrices if these are several, the fastest first. "?" is a dynamic
    # extent. "?/64,?/" is a tensor (M, 64, N / 64); see ``parts_of``.
    split: str = ""

    def transposed(self) -> Input:
        """Return the input as the transposed result reads it."""
        kind = {"row": "column", "column": "row"}.get(self.kind, self.kind)
        order = {"n": "m", "m": "n"}.get(self.order, "")
        return self._replace(kind=kind, pairs=False, order=order, split=_turned(self.split))


def parts_of(split: str) -> list[list[str]]:
    """Return the extents of the modes of rows, of columns and of matrices.

    >>> parts_of("?/64,?/")
    [['?'], ['64', '?'], []]
    """
    return [part.split(",") if part else [] for part in split.split("/")]


def _turned(split: str) -> str:
    rows, columns, matrices = split.split("/") if split else ("", "", "")
    return f"{columns}/{rows}/{matrices}" if split else ""


class Node(NamedTuple):
    """An operation on earlier nodes. For ``value`` see the module."""

    op: str
    operands: tuple[int, ...] = ()
    value: Any = None


class Output(NamedTuple):
    """A result: the values of a node. The fields after ``node`` describe the tensor of outputs other than D."""

    node: int
    element: str = ""  # as in Input
    batch: bool = False
    order: str = ""  # as in Input; for a reshaped D "n" if TMA can store it
    pairs: bool = False
    # Reduction "sum", "max" or "min" along ``axis`` ("n": per row, "m": per column). A kernel stores f32 partial
    # results (parts, M) or (parts, N), with a batch mode last.
    reduce: str = ""
    axis: str = ""
    split: str = ""  # as in Input, also for D
    block: int = 0  # store one value per block of columns, (M, N / block); "ui8" stores exponents of powers of two
    tma: bool = False  # TMA can store it along ``order``: addresses and strides are multiples of 16 bytes

    def transposed(self) -> Output:
        """Return the output as the transposed result stores it."""
        other = {"n": "m", "m": "n"}
        order, axis = other.get(self.order, ""), other.get(self.axis, "")
        return self._replace(order=order, pairs=False, axis=axis, split=_turned(self.split))


class Graph(NamedTuple):
    """Nodes, inputs and outputs. The first output is D."""

    nodes: tuple[Node, ...]
    inputs: tuple[Input, ...]
    outputs: tuple[Output, ...]

    @property
    def name(self) -> str:
        """The part of a kernel's name that stands for the graph."""
        return _name(self)

    @property
    def halves(self) -> tuple[bool, ...]:
        """For each node, True if its shape is (M, N / 2)."""
        found: list[bool] = []
        for node in self.nodes:
            here = node.op in ("even", "odd") or (node.op == "load" and self.inputs[node.value].half)
            here = here or (node.op == "random" and node.value == "half")
            here = here or any(found[i] for i in node.operands)
            found.append(here and node.op != "interleave")
        return tuple(found)

    @property
    def paired(self) -> bool:
        """Return True if the graph combines pairs of adjacent columns."""
        return any(self.halves)

    @property
    def whole_rows(self) -> bool:
        """Return True if the graph uses a row reduction."""
        return any(n.op == "whole" for n in self.nodes)

    @property
    def block(self) -> int:
        """Columns of a block whose elements share a value; 0 for none."""
        return max([n.value for n in self.nodes if n.op == "block"], default=0)

    @property
    def of_blocks(self) -> tuple[bool, ...]:
        """For each node, True if it is uniform in a block: derived from block reductions and constants only."""
        found: list[bool] = []
        for node in self.nodes:
            alone = node.op in ("accum", "load", "row", "column", "matrix", "constant", "whole")
            operands = [(found[i], self.nodes[i].op == "constant") for i in node.operands]
            shared = any(a for a, _ in operands) and all(a or b for a, b in operands)
            found.append(node.op == "block" or (not alone and shared))
        return tuple(found)

    @property
    def kept(self) -> int | None:
        """A node from which, together with block values, all outputs can be computed; None if only the accumulator will
        do.

        Its value can replace the accumulator once the block maximum is known, so that nothing is computed twice.

        >>> make = Builder()
        >>> x = make.call("gelu", make.accum())
        >>> d = make.call("divide", x, make.block(make.call("abs", x), 128))
        >>> Graph(tuple(make.nodes), (), (Output(d),)).kept == x
        True
        """
        blocks = [node for node in self.nodes if node.op == "block"]
        if len(blocks) != 1:
            return None
        shared = self.of_blocks
        free = [
            s or n.op in ("constant", "whole") or (n.op == "load" and self.inputs[n.value].kind in ("scalar", "matrix"))
            for n, s in zip(self.nodes, shared)
        ]
        of_block = self._below([blocks[0].operands[0]], lambda i: free[i])
        outputs = [x.node for x in self.outputs]
        for kept in sorted(of_block, reverse=True):
            left = self._below(outputs, lambda i, kept=kept: i == kept or free[i])
            made = [self.nodes[i].op for i in left if i != kept and not free[i]]
            if self.nodes[kept].op != "accum" and not {"accum", "load", "row", "column", "matrix", "random"} & {*made}:
                return kept
        return None

    def _below(self, nodes: Sequence[int], ends: Callable[[int], bool]) -> set[int]:
        """Return nodes and their transitive operands, not going past nodes for which ``ends`` is true."""
        found, left = set[int](), list(nodes)
        while left:
            i = left.pop()
            if i not in found:
                found.add(i)
                left += [] if ends(i) else self.nodes[i].operands
        return found

    @property
    def half(self) -> bool:
        """Return True if D is (M, N / 2)."""
        return self.halves[self.outputs[0].node]

    @property
    def reduces(self) -> bool:
        """Return True if an output is a reduction over rows or columns."""
        return any(x.reduce for x in self.outputs)

    @property
    def places(self) -> bool:
        """Return True if the graph depends on the coordinates of elements."""
        return any(n.op in ("row", "column", "matrix", "random") for n in self.nodes)

    @property
    def whole_inputs(self) -> set[int]:
        """Indices of the inputs that are integers: seeds and offsets."""
        seeds = [self.nodes[i] for n in self.nodes if n.op == "random" for i in n.operands]
        return {n.value for n in seeds if n.op == "load"}

    @property
    def by_row(self) -> bool:
        """Return True if the graph depends on the row, so that a batch must not be flattened into one matrix."""
        return (
            self.places or self.outputs[0].split != "" or len(self.outputs) > 1
            or any(x.kind in ("column", "matrix", "aux") or x.batch for x in self.inputs)
        )  # fmt: skip

    @property
    def zero_factor(self) -> int | None:
        """A scalar input in memory that removes a ``scaled`` operand when it is 0, or None."""
        for node in self.nodes:
            if node.op == "scaled" and self.nodes[node.operands[0]].op == "load":
                index = self.nodes[node.operands[0]].value
                if not self.inputs[index].number and self.inputs[index].kind == "scalar":
                    return index
        return None

    def to_json(self) -> list[Any]:
        """Return the graph as JSON data: lists, strings and numbers."""
        return [[list(x) for x in part] for part in self]

    @classmethod
    def from_json(cls, parts: Sequence[Any]) -> Graph:
        """Return the graph of :meth:`to_json`.

        >>> make = Builder()
        >>> graph = make.graph([Output(make.call("add", make.accum(), make.load(Input("row"))))])
        >>> Graph.from_json(graph.to_json()) == graph
        True
        """
        nodes, inputs, outputs = parts
        return cls(
            tuple([Node(op, tuple(operands), value) for op, operands, value in nodes]),
            tuple([Input(*x) for x in inputs]), tuple([Output(*x) for x in outputs]),
        )  # fmt: skip

    def transposed(self) -> Graph:
        """Return the graph for the transposed result, with rows and columns exchanged."""
        other = {"row": "column", "column": "row"}
        nodes = tuple([n._replace(op=other.get(n.op, n.op)) for n in self.nodes])
        turned = {"": "turned", "turned": ""}
        nodes = tuple([n._replace(value=turned.get(n.value, n.value)) if n.op == "random" else n for n in nodes])
        inputs = tuple([x.transposed() for x in self.inputs])
        return Graph(nodes, inputs, tuple([x.transposed() for x in self.outputs]))

    def with_zero(self, index: int) -> tuple[Graph, tuple[int, ...]]:
        """Return the graph specialized for an input that is 0, and the indices of the remaining inputs."""
        make = Builder()
        make.inputs += self.inputs
        for node in self.nodes:
            if node == Node("load", (), index):
                node = Node("constant", (), exact(0.0))
            if node.op == "scaled" and make.nodes[node.operands[0]] == Node("constant", (), exact(0.0)):
                node = Node("constant", (), exact(0.0))
            make.nodes.append(node)
        return make.graph(self.outputs), make.kept


@lru_cache(maxsize=1024)
def _name(graph: Graph) -> str:
    return "g-" + sha256(repr(graph).encode()).hexdigest()[:12]


def exact(value: float) -> str:
    """Return a number as a text that distinguishes the sign of zero, but not NaNs.

    >>> exact(-0.0), exact(0.5), exact(float("nan"))
    ('-0x0.0p+0', '0x1.0000000000000p-1', 'nan')
    """
    return value.hex()


REDUCTIONS = {"sum": 0.0, "max": -inf, "min": inf}
"""Reduction -> its identity."""

STRIP = 16
"""Rows that a kernel reduces to one partial result per column."""


class Builder:
    """Builds a graph, with common subexpressions shared."""

    def __init__(self) -> None:
        self.nodes: list[Node] = []
        self.inputs: list[Input] = []
        self.kept: tuple[int, ...] = ()
        self._found: dict[Node, int] = {}

    def add(self, node: Node) -> int:
        """Return the index of a node, which is added unless it exists."""
        found = self._found.get(node)
        if found is None:
            found = self._found[node] = len(self.nodes)
            self.nodes.append(node)
        return found

    def accum(self) -> int:
        """Return the accumulator."""
        return self.add(Node("accum"))

    def constant(self, value: bool | int | float) -> int:
        """Return a constant. Integers stay integers."""
        if isinstance(value, bool):
            return self.add(Node("constant", (), value))
        return self.add(Node("constant", (), value if isinstance(value, int) else exact(value)))

    def load(self, input: Input) -> int:
        """Add an input, and return its values."""
        self.inputs.append(input)
        return self.add(Node("load", (), len(self.inputs) - 1))

    def array(self, input: Input) -> int:
        """Add an array that is read by indices, and return the index of the input."""
        self.inputs.append(input)
        return len(self.inputs) - 1

    def element(self, array: int, *indices: int) -> int:
        """Return the element of an array at some indices."""
        return self.add(Node("element", indices, array))

    def place(self, index: str) -> int:
        """Return the ``row``, ``column`` or ``matrix`` index of the element, or another index of a score."""
        return self.add(Node(index))

    def pair(self, x: int) -> tuple[int, int]:
        """Return the even and the odd column of each pair of adjacent columns."""
        return self.add(Node("even", (x,))), self.add(Node("odd", (x,)))

    def whole(self, operation: str, x: int) -> int:
        """Return the row reduction ``sum``, ``max`` or ``min``."""
        return self.add(Node("whole", (x,), operation))

    def block(self, x: int, width: int) -> int:
        """Return the maximum over each ``width`` columns of a row."""
        return self.add(Node("block", (x,), width))

    def random(self, seed: int, offset: int, half: bool = False) -> int:
        """Return a uniform number in [0, 1) per element; of (M, N / 2) with ``half``."""
        return self.add(Node("random", (seed, offset), "half" if half else ""))

    def interleave(self, x: int, y: int) -> int:
        """Interleave two values as the even and the odd columns."""
        return self.add(Node("interleave", (x, y)))

    def captured(self, array: Any) -> int | None:
        """Return the node of an array that a traced function reads without an argument, None if it may not."""
        return None

    def call(self, name: str, *operands: int) -> int:
        """Return a function of the operands."""
        assert name in FUNCTIONS and len(operands) == FUNCTIONS[name].arity, name
        return self.add(Node(name, operands))

    def cast(self, x: int, element: str) -> int:
        """Return a value rounded to another type."""
        return self.add(Node("cast", (x,), element))

    def hook(self, function: Callable[..., Any], x: int) -> int:
        """Return a kernel-language function of a value, its row and its column."""
        return self.add(Node("hook", (x, self.place("row"), self.place("column")), function))

    def graph(self, outputs: Sequence[Output]) -> Graph:
        """Return the graph of some outputs, with only the nodes and inputs that they need.

        Nodes are ordered by a depth-first walk from the outputs. ``kept`` becomes the indices of the inputs in this
        builder.
        """
        numbers: dict[int, int] = {}
        inputs: dict[int, int] = {}
        nodes: list[Node] = []

        def visit(i: int) -> int:
            if i not in numbers:
                node = self.nodes[i]
                operands = tuple([visit(x) for x in node.operands])
                value = node.value
                if node.op in ("load", "element"):
                    value = inputs.setdefault(value, len(inputs))
                numbers[i] = len(nodes)
                nodes.append(Node(node.op, operands, value))
            return numbers[i]

        made = tuple([x._replace(node=visit(x.node)) for x in outputs])
        self.kept = tuple(inputs)
        return Graph(tuple(nodes), tuple([self.inputs[i] for i in inputs]), made)


def constant_of(node: Node) -> bool | int | float:
    """Return the value of a constant node."""
    return float.fromhex(node.value) if isinstance(node.value, str) else node.value


def of_rows(x: Any, operation: str) -> Any:
    """Reduce the rows of a numpy or torch array, keeping the dimension."""
    if hasattr(x, "data_ptr"):
        return getattr(x, {"sum": "sum", "max": "amax", "min": "amin"}[operation])(dim=-1, keepdim=True)
    return getattr(x, operation)(axis=-1, keepdims=True)


def greatest_of_blocks(x: Any, width: int) -> Any:
    """Return the maximum over each ``width`` columns of a numpy or torch array, broadcast to these columns."""
    n, full = x.shape[-1], -(-x.shape[-1] // width)
    if hasattr(x, "data_ptr"):
        import torch  # pyright: ignore[reportMissingImports]

        wide = torch.nn.functional.pad(x, (0, full * width - n), value=-inf)
        return wide.reshape(*x.shape[:-1], full, width).amax(-1).repeat_interleave(width, -1)[..., :n]
    import numpy as np

    wide = np.concatenate((x, np.full_like(x[..., :1], -inf).repeat(full * width - n, -1)), -1)
    return wide.reshape(*x.shape[:-1], full, width).max(-1).repeat(width, -1)[..., :n]


def interleaved(x: Any, y: Any) -> Any:
    """Interleave the columns of two numpy or torch arrays, one of which may be a number."""
    like = x if hasattr(x, "shape") else y
    x, y = (t if hasattr(t, "shape") else like * 0 + t for t in (x, y))
    if hasattr(like, "data_ptr"):
        import torch  # pyright: ignore[reportMissingImports]

        return torch.stack(torch.broadcast_tensors(x, y), -1).flatten(-2)
    import numpy as np

    x, y = np.broadcast_arrays(x, y)
    return np.stack((x, y), -1).reshape(*x.shape[:-1], -1)


def evaluate(
    graph: Graph, accum: Any, inputs: Sequence[Any], arrays: Any = NUMPY, place: Callable[[str], Any] | None = None
) -> list[Any]:
    """Evaluate a graph on arrays, and return the values of all nodes.

    Args:
        graph: The graph.
        accum: The accumulator.
        inputs: Arrays that broadcast to the accumulator.
        arrays: Functions of their library.
        place: Returns the array of row, column or matrix indices.
    """
    import numpy as np

    values: list[Any] = []
    with np.errstate(all="ignore"):
        for node in graph.nodes:
            if node.op == "accum":
                found = accum
            elif node.op == "constant":
                found = constant_of(node)
            elif node.op == "load":
                found = inputs[node.value]
            elif node.op in ("row", "column", "matrix"):
                assert place is not None
                found = place(node.op)
            elif node.op == "cast":
                found = cast_of_arrays(values[node.operands[0]], node.value)
            elif node.op in ("even", "odd"):
                x = values[node.operands[0]]
                found = x[..., (0 if node.op == "even" else 1) :: 2]
            elif node.op == "whole":
                x = values[node.operands[0]]
                found = of_rows(arrays.where(accum == accum, x, x), node.value)
            elif node.op == "random":
                like = accum[..., ::2] if node.value == "half" else accum
                found = drawn_of_arrays(like, *[values[i] for i in node.operands])
            elif node.op == "block":
                x = values[node.operands[0]]
                found = greatest_of_blocks(arrays.where(accum == accum, x, x), node.value)
            elif node.op == "interleave":
                found = interleaved(*[values[i] for i in node.operands])
            else:
                found = FUNCTIONS[node.op].of_arrays(arrays, *[values[i] for i in node.operands])
            values.append(found)
    return values
