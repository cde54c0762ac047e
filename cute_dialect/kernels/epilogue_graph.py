"""What becomes of the sums of a product, as a graph: values over (row, column) of D, each computed once.

A graph is data.  Its nodes are in an order in which each comes after its operands; ``nodes[i].op`` is one of

    accum                  the sums
    constant               ``value``: a number, as a text that is exact
    load                   ``value``: the number of an input
    random                 of a seed and an offset, integers: a number of [0, 1), see
                           :mod:`cute_dialect.kernels.philox`; ``value``: half, of what lies over (M, N / 2);
                           turned, of the transposed result; or none
    row, column, matrix    where the element lies (i32), of the sums
    cast                   ``value``: the type that it is rounded to
    even, odd              of two neighbours of a row, columns 2 j and 2 j + 1, the first and the second: what is
                           computed of it lies over (M, N / 2)
    whole                  ``value``, sum, max or min, of a row: where a tile has all of it
    block                  the greatest of each ``value`` columns of a row, from 0 on: where a tile has all of them
    interleave             of two values over (M, N / 2) the one over (M, N) whose even and odd columns they are
    hook                   ``value``: a function in the language, of the operands; it has no reference
    a name of FUNCTIONS    of the operands

>>> make = Builder()
>>> bias = make.load(Input("row", "f32"))
>>> graph = make.graph([Output(make.call("relu", make.call("add", make.accum(), bias)))])
>>> [n.op for n in graph.nodes], graph.name[:2]
(['accum', 'load', 'add', 'relu'], 'g-')

Its name is that of its structure: what the variables are called, and in which order independent statements stand, makes
no other graph; a constant does.
"""

# Values of a graph are arrays of any library.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from hashlib import sha256
from math import inf
from typing import Any, NamedTuple

from cute_dialect.kernels.epilogue_functions import FUNCTIONS, NUMPY, cast_of_arrays
from cute_dialect.kernels.philox import drawn_of_arrays

__all__ = ["Builder", "Graph", "Input", "Node", "Output", "evaluate", "parts_of"]

KINDS = ("scalar", "matrix", "row", "column", "aux")


class Input(NamedTuple):
    """Memory, or a number, that is read.

    ``kind``: ``scalar``: one for all; ``matrix``: one a matrix of a batch; ``row``: one a column of D, which all rows
    share; ``column``: one a row of D; ``aux``: one an element.  ``element``: its type; ``number``: a scalar that is an
    argument of the launch, not memory.  ``batch``: there is one of it for each matrix.  ``order``: the index of D that
    is contiguous, n or m, or none; ``pairs``: neighbours along n can be read at once; ``half``: over (M, N / 2).
    ``split``: where rows, columns or matrices are several modes of the memory, the extents of each, the fastest first,
    ``?`` where the kernel does not know them: memory of ``?/64,?/`` is (M, 64, N / 64); see :func:`parts_of`.
    """

    kind: str
    element: str = "f32"
    number: bool = False
    batch: bool = False
    order: str = ""
    pairs: bool = False
    half: bool = False
    split: str = ""

    def transposed(self) -> Input:
        """Return how the transposed result reads it."""
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
    """A value: an operation, of earlier nodes; ``value``: see the module."""

    op: str
    operands: tuple[int, ...] = ()
    value: Any = None


class Output(NamedTuple):
    """A result: a node's values; of all but D, where they go: ``element``, ``batch``, ``order`` and ``pairs`` as of an
    :class:`Input`.  ``split``: of D, too, whose ``order`` is n then where TMA can store it.  ``reduce``: what becomes
    of values along ``axis`` (n: of a row, m: of a column): ``sum``, ``max`` or ``min``; a kernel stores those of some
    columns or rows, f32 (parts, M) or (parts, N), L behind them.  ``block``: a value is stored of each
    so many columns, (M, N / block), of ``ui8`` the exponents of powers of two.  ``tma``: TMA can store it: rows of n,
    addresses and distances of whole 16 bytes.
    """

    node: int
    element: str = ""
    batch: bool = False
    order: str = ""
    pairs: bool = False
    reduce: str = ""
    axis: str = ""
    split: str = ""
    block: int = 0
    tma: bool = False

    def transposed(self) -> Output:
        """Return how the transposed result is stored."""
        other = {"n": "m", "m": "n"}
        order, axis = other.get(self.order, ""), other.get(self.axis, "")
        return self._replace(order=order, pairs=False, axis=axis, split=_turned(self.split), tma=False)


class Graph(NamedTuple):
    """Nodes, what they read, and what is stored; the first output is D."""

    nodes: tuple[Node, ...]
    inputs: tuple[Input, ...]
    outputs: tuple[Output, ...]

    @property
    def name(self) -> str:
        """Names it in a kernel's name."""
        return _name(self)

    @property
    def halves(self) -> tuple[bool, ...]:
        """Of each node, whether it lies over (M, N / 2)."""
        found: list[bool] = []
        for node in self.nodes:
            here = node.op in ("even", "odd") or (node.op == "load" and self.inputs[node.value].half)
            here = here or (node.op == "random" and node.value == "half")
            here = here or any(found[i] for i in node.operands)
            found.append(here and node.op != "interleave")
        return tuple(found)

    @property
    def paired(self) -> bool:
        """Tell whether neighbours of a row are computed together."""
        return any(self.halves)

    @property
    def whole_rows(self) -> bool:
        """Tell whether what becomes of a row is computed with."""
        return any(n.op == "whole" for n in self.nodes)

    @property
    def block(self) -> int:
        """How many columns of a row are computed with together, 0 where each is alone."""
        return max([n.value for n in self.nodes if n.op == "block"], default=0)

    @property
    def of_blocks(self) -> tuple[bool, ...]:
        """Of each node, whether it is the same for all columns of a block: of what becomes of these, and of numbers."""
        found: list[bool] = []
        for node in self.nodes:
            alone = node.op in ("accum", "load", "row", "column", "matrix", "constant", "whole")
            operands = [(found[i], self.nodes[i].op == "constant") for i in node.operands]
            shared = any(a for a, _ in operands) and all(a or b for a, b in operands)
            found.append(node.op == "block" or (not alone and shared))
        return tuple(found)

    @property
    def kept(self) -> int | None:
        """The value of an element of which, with what its block gives, all results are made: it may take the place of
        the sum once the greatest of its block is known.  None where there is none but the sum.

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
        """Return nodes and what they are made of, no further than where ``ends`` is true."""
        found, left = set[int](), list(nodes)
        while left:
            i = left.pop()
            if i not in found:
                found.add(i)
                left += [] if ends(i) else self.nodes[i].operands
        return found

    @property
    def half(self) -> bool:
        """Tell whether D is (M, N / 2)."""
        return self.halves[self.outputs[0].node]

    @property
    def reduces(self) -> bool:
        """Tell whether a result is of whole rows or columns."""
        return any(x.reduce for x in self.outputs)

    @property
    def places(self) -> bool:
        """Tell whether it asks where an element lies."""
        return any(n.op in ("row", "column", "matrix", "random") for n in self.nodes)

    @property
    def whole_inputs(self) -> set[int]:
        """The inputs that are integers, as seeds and offsets are."""
        seeds = [self.nodes[i] for n in self.nodes if n.op == "random" for i in n.operands]
        return {n.value for n in seeds if n.op == "load"}

    @property
    def by_row(self) -> bool:
        """Tell whether rows of D differ, so that the matrices of a batch may not be taken for one."""
        return (
            self.places or self.outputs[0].split != "" or len(self.outputs) > 1
            or any(x.kind in ("column", "matrix", "aux") or x.batch for x in self.inputs)
        )  # fmt: skip

    @property
    def zero_factor(self) -> int | None:
        """The input in memory of which, where it is 0, nothing is left of what it multiplies; None: there is none."""
        for node in self.nodes:
            if node.op == "scaled" and self.nodes[node.operands[0]].op == "load":
                index = self.nodes[node.operands[0]].value
                if not self.inputs[index].number and self.inputs[index].kind == "scalar":
                    return index
        return None

    def to_json(self) -> list[Any]:
        """Return it as data: lists, texts and numbers."""
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
        """Return the same of the transposed result: rows are its columns."""
        other = {"row": "column", "column": "row"}
        nodes = tuple([n._replace(op=other.get(n.op, n.op)) for n in self.nodes])
        turned = {"": "turned", "turned": ""}
        nodes = tuple([n._replace(value=turned.get(n.value, n.value)) if n.op == "random" else n for n in nodes])
        inputs = tuple([x.transposed() for x in self.inputs])
        return Graph(nodes, inputs, tuple([x.transposed() for x in self.outputs]))

    def with_zero(self, index: int) -> tuple[Graph, tuple[int, ...]]:
        """Return the graph where an input is 0, and the numbers of the inputs that it still has."""
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
    """Return a number as a text, which tells zeros, and not NaN, apart.

    >>> exact(-0.0), exact(0.5), exact(float("nan"))
    ('-0x0.0p+0', '0x1.0000000000000p-1', 'nan')
    """
    return value.hex()


REDUCTIONS = {"sum": 0.0, "max": -inf, "min": inf}
"""What becomes of several values -> what it is of none."""

STRIP = 16
"""Rows whose columns a kernel reduces at once."""


class Builder:
    """Makes a graph; a node that is there already is not made again."""

    def __init__(self) -> None:
        self.nodes: list[Node] = []
        self.inputs: list[Input] = []
        self.kept: tuple[int, ...] = ()
        self._found: dict[Node, int] = {}

    def add(self, node: Node) -> int:
        """Return the number of a node."""
        found = self._found.get(node)
        if found is None:
            found = self._found[node] = len(self.nodes)
            self.nodes.append(node)
        return found

    def accum(self) -> int:
        """Return the sums."""
        return self.add(Node("accum"))

    def constant(self, value: bool | int | float) -> int:
        """Return a constant; integers stay integers."""
        if isinstance(value, bool):
            return self.add(Node("constant", (), value))
        return self.add(Node("constant", (), value if isinstance(value, int) else exact(value)))

    def load(self, input: Input) -> int:
        """Return a new input's values."""
        self.inputs.append(input)
        return self.add(Node("load", (), len(self.inputs) - 1))

    def place(self, index: str) -> int:
        """Return the ``row``, ``column`` or ``matrix`` of the element."""
        return self.add(Node(index))

    def pair(self, x: int) -> tuple[int, int]:
        """Return the first and the second of two neighbours of a row."""
        return self.add(Node("even", (x,))), self.add(Node("odd", (x,)))

    def whole(self, operation: str, x: int) -> int:
        """Return what becomes of each row: ``sum``, ``max`` or ``min``."""
        return self.add(Node("whole", (x,), operation))

    def block(self, x: int, width: int) -> int:
        """Return the greatest of each ``width`` columns of a row."""
        return self.add(Node("block", (x,), width))

    def random(self, seed: int, offset: int, half: bool = False) -> int:
        """Return a number of [0, 1) of each element; ``half``: of those of (M, N / 2)."""
        return self.add(Node("random", (seed, offset), "half" if half else ""))

    def interleave(self, x: int, y: int) -> int:
        """Return the value whose even and odd columns two others are."""
        return self.add(Node("interleave", (x, y)))

    def call(self, name: str, *operands: int) -> int:
        """Return a function's value."""
        assert name in FUNCTIONS and len(operands) == FUNCTIONS[name].arity, name
        return self.add(Node(name, operands))

    def cast(self, x: int, element: str) -> int:
        """Return a value rounded to another type."""
        return self.add(Node("cast", (x,), element))

    def hook(self, function: Callable[..., Any], x: int) -> int:
        """Return the value of a function in the language, of a value, its row and its column."""
        return self.add(Node("hook", (x, self.place("row"), self.place("column")), function))

    def graph(self, outputs: Sequence[Output]) -> Graph:
        """Return the graph of some results: of the nodes and inputs those that they need, in the order in which these
        are found going from results to operands; ``kept`` are the inputs' numbers here.
        """
        numbers: dict[int, int] = {}
        inputs: dict[int, int] = {}
        nodes: list[Node] = []

        def visit(i: int) -> int:
            if i not in numbers:
                node = self.nodes[i]
                operands = tuple([visit(x) for x in node.operands])
                value = node.value
                if node.op == "load":
                    value = inputs.setdefault(value, len(inputs))
                numbers[i] = len(nodes)
                nodes.append(Node(node.op, operands, value))
            return numbers[i]

        made = tuple([x._replace(node=visit(x.node)) for x in outputs])
        self.kept = tuple(inputs)
        return Graph(tuple(nodes), tuple([self.inputs[i] for i in inputs]), made)


def constant_of(node: Node) -> bool | int | float:
    """Return a constant's value."""
    return float.fromhex(node.value) if isinstance(node.value, str) else node.value


def of_rows(x: Any, operation: str) -> Any:
    """Return what becomes of the rows of an array of numpy or torch, with one element in their place."""
    if hasattr(x, "data_ptr"):
        return getattr(x, {"sum": "sum", "max": "amax", "min": "amin"}[operation])(dim=-1, keepdim=True)
    return getattr(x, operation)(axis=-1, keepdims=True)


def greatest_of_blocks(x: Any, width: int) -> Any:
    """Return of an array of numpy or torch the greatest of each so many columns, in their places."""
    n, full = x.shape[-1], -(-x.shape[-1] // width)
    if hasattr(x, "data_ptr"):
        import torch  # pyright: ignore[reportMissingImports]

        wide = torch.nn.functional.pad(x, (0, full * width - n), value=-inf)
        return wide.reshape(*x.shape[:-1], full, width).amax(-1).repeat_interleave(width, -1)[..., :n]
    import numpy as np

    wide = np.concatenate((x, np.full_like(x[..., :1], -inf).repeat(full * width - n, -1)), -1)
    return wide.reshape(*x.shape[:-1], full, width).max(-1).repeat(width, -1)[..., :n]


def interleaved(x: Any, y: Any) -> Any:
    """Return arrays of numpy or torch whose columns in turn are those of two, one of which may be a number."""
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
    """Return the values of all nodes, of arrays that broadcast to those of the sums; ``arrays``: functions of their
    library; ``place``: gives the array of row, column or matrix numbers.
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
