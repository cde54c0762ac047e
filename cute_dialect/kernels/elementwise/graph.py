"""Elementwise functions of several arrays in one kernel: a graph is evaluated for each element of a matrix.

Inputs are matrices (M, N), per-column or per-row vectors, or scalars. Outputs are matrices with contiguous rows. A
thread has as many elements as fill 16 bytes of the narrowest array that is accessed by vectors. All accesses have 16
bytes, except for arrays with other strides, which are read element by element.

There are two kernels with one body. ``elementwise_v`` takes rows of aligned vectors, which may have a partial vector at
the end. ``elementwise`` takes any rows, with adjacent elements in the threads of a warp. Gapless matrices of any row
length are treated as one row (``Plan.flat``). Per-column and per-row values are then found by a division per element.

>>> from cute_dialect.kernels.epilogue.graph import Builder, Input, Output
>>> make = Builder()
>>> x, y = (make.load(Input(kind, "f16", order="n")) for kind in ("aux", "row"))
>>> plan = Plan(make.graph([Output(make.call("add", x, y), "f16")]))
>>> plan.vector, plan.name[:14]
(8, 'elementwise-g-')

Gated activations ``f(a) * b`` of the halves of a row, and their gradients, are such plans.

>>> gated_plan("silu", "bf16").vector, len(gated_plan("gelu", "f16", is_gradient=True).graph.outputs)
(8, 2)
"""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

import cute_dialect.lang as cute
from cute_dialect.kernels.common.elements import BITS, number, rounded
from cute_dialect.kernels.common.kernel_names import differing
from cute_dialect.kernels.common.traced_text import printed
from cute_dialect.kernels.epilogue.emit import OF_FLOATS, evaluated
from cute_dialect.kernels.epilogue.functions import FUNCTIONS
from cute_dialect.kernels.epilogue.graph import Builder, Graph, Input, Output, constant_of

# Traced values define operators and element types that pyright cannot check.
# pyright: basic, reportOptionalMemberAccess=false, reportArgumentType=false


ELEMENTS = ("f16", "bf16", "f32", "f8E4M3FN", "f8E5M2", "i8", "ui8", "i32", "i64", "f64", "i1")
"""Types of arrays and results. ``i1`` is stored as bytes of 0 and 1, and is ``ui8`` in a plan."""

THREADS = 256


class Plan(NamedTuple):
    """Static parameters of a kernel.

    Inputs of ``order`` n have contiguous rows. With ``flat``, matrices (M, N) are given as one row (1, M * N). N, which
    is at least a vector, is then the extent of per-column vectors, and M that of per-row vectors.
    """

    graph: Graph
    flat: bool = False
    # The type that arrays are converted to: f32, f64, i32 or i64. Floats computed from integers are f32.
    compute: str = "f32"

    @property
    def stored(self) -> tuple[str, ...]:
        """The types in which outputs are computed."""
        kinds = kinds_of(self.graph, self.compute)
        floats = "f64" if self.compute == "f64" else "f32"
        types = {"b": "f32", "i": self.compute, "f": floats}  # booleans are 0 and 1
        return tuple([types[kinds[x.node]] for x in self.graph.outputs])

    @property
    def vector(self) -> int:
        """Elements per thread."""
        read = [x.element for x in self.graph.inputs if by_vectors(x, self.flat)]
        return 128 // min(BITS[e] for e in (*read, *(x.element for x in self.graph.outputs)))

    @property
    def name(self) -> str:
        """Name of the kernel."""
        return f"elementwise-{self.graph.name}{differing(self, {'compute': '-{}', 'flat': '-flat'})}"


def kinds_of(graph: Graph, compute: str) -> tuple[str, ...]:
    """Return the kind of each node's values: b (boolean), i (integer) or f (float).

    >>> from cute_dialect.kernels.epilogue.graph import Builder, Output
    >>> make = Builder()
    >>> x = make.load(Input("aux", "i32"))
    >>> graph = make.graph([Output(make.call("less", x, make.call("divide", x, make.constant(2))))])
    >>> kinds_of(graph, "i32")
    ('i', 'i', 'f', 'b')
    """
    found: list[str] = []
    for node in graph.nodes:
        of = [found[i] for i in node.operands]
        if node.op == "load":
            whole = compute in ("i32", "i64") and not graph.inputs[node.value].number
            found.append("i" if whole else "f")
        elif node.op == "constant":
            value = constant_of(node)
            found.append("b" if isinstance(value, bool) else "i" if isinstance(value, int) else "f")
        elif node.op in ("logical_and", "logical_or", "logical_not"):
            found.append("b" if set(of) == {"b"} else "i")
        elif FUNCTIONS[node.op].result == "b" if node.op in FUNCTIONS else False:
            found.append("b")
        elif node.op in OF_FLOATS or node.op in ("random", "cast"):
            found.append("f")
        else:
            values = of[1:] if node.op == "where" else of
            found.append(max(values, key="bif".index))
    return tuple(found)


def by_vectors(x: Input, flat: bool = False) -> bool:
    """Return True if an array is read by vectors."""
    return x.kind in (("aux",) if flat else ("aux", "row")) and x.order == "n"


def line_length(operands: Any, results: Any, plan: Plan) -> Any:
    """Return N, the length of a matrix row, for flat matrices."""
    sizes = {x.kind: cute.size(t) for x, t in zip(plan.graph.inputs, operands) if x.kind in ("row", "column")}
    return sizes["row"] if "row" in sizes else results[0].shape[1] // sizes["column"]


class Place(NamedTuple):
    """Location of an element."""

    column: Any  # in the row that is read and written
    of_row: Any  # row in the matrix
    of_column: Any  # column in the matrix


def places(row: Any, column: Any, count: int, length: Any) -> list[Place]:
    """Return the locations of ``count`` adjacent elements. ``length`` is the row length of flat matrices, else None."""
    if length is None:
        return [Place(column + i, row, column + i) for i in range(count)]
    first = column // length
    at, found = column - first * length, list[Place]()
    for i in range(count):
        over = at + i >= length
        found.append(Place(column + i, cute.where(over, first + 1, first), cute.where(over, at + i - length, at + i)))
    return found


def line_of(x: Input, t: Any, row: Any) -> Any:
    """Return a row of an array."""
    return t[row, None] if x.kind == "aux" else t


def value_of(x: Input, t: Any, row: Any, place: Place, kind: Any) -> Any:
    """Return an element of an operand, or a scalar argument, as type ``kind``."""
    if x.kind == "scalar":
        return t if x.number else t[0].to(kind)
    at = {"column": place.of_row, "row": place.of_column}.get(x.kind, place.column)
    return line_of(x, t, row)[at].to(kind)


def kinds_read(plan: Plan) -> list[Any]:
    """Return the types that operands are converted to. Seeds and offsets of random numbers stay integers."""
    whole = plan.graph.whole_inputs
    return [cute.Int64 if i in whole else number(plan.compute) for i in range(len(plan.graph.inputs))]


def computed(operands: Any, results: Any, row: Any, column: Any, length: Any, plan: Plan) -> None:
    """Compute one element of all outputs."""
    place = places(row, column, 1, length)[0]
    kinds = kinds_read(plan)
    inputs = [value_of(x, t, row, place, kind) for x, t, kind in zip(plan.graph.inputs, operands, kinds)]
    found = evaluated(plan.graph, None, inputs, {}, compute=plan.compute)
    for x, t, stored in zip(plan.graph.outputs, results, plan.stored):
        one = cute.make_rmem_tensor(1, number(stored))
        one[0] = number(stored)(found[x.node])
        made = cute.make_rmem_tensor(1, t.element_type)
        made.store(rounded(one, t.element_type))
        t[row, column] = made[0]


def computed_vector(operands: Any, results: Any, row: Any, column: Any, length: Any, plan: Plan) -> None:
    """Compute a vector of all outputs. All loads precede the stores."""
    w, graph = plan.vector, plan.graph
    at = places(row, column, w, length)
    held: list[Any] = []
    for x, t, kind in zip(graph.inputs, operands, kinds_read(plan)):
        if by_vectors(x, plan.flat):
            held.append(loaded(line_of(x, t, row), column, w, kind))
        elif x.kind == "scalar" or (x.kind == "column" and not plan.flat):
            held.append([value_of(x, t, row, at[0], kind)] * w)
        else:
            held.append([value_of(x, t, row, place, kind) for place in at])
    made = [cute.make_rmem_tensor(w, number(stored)) for stored in plan.stored]
    for i in cute.range_constexpr(w):
        found = evaluated(graph, None, [x[i] for x in held], {}, compute=plan.compute)
        for x, values in zip(graph.outputs, made):
            values[i] = values.element_type(found[x.node])
    for t, values in zip(results, made):
        stored = cute.make_rmem_tensor(w, t.element_type)
        stored.store(rounded(values, t.element_type))
        cute.autovec_copy(stored, vector_of(t[row, None], column, w))


def vector_of(line: Any, column: Any, w: int) -> Any:
    """Return some elements of a row, starting at a 16-byte boundary."""
    at = (line.iterator + column).align(min(16, w * line.element_type.width // 8))
    return cute.make_tensor(at, cute.make_layout(w))


def loaded(line: Any, column: Any, w: int, kind: Any) -> Any:
    """Load some elements of a row as type ``kind``."""
    values = cute.make_rmem_tensor(w, line.element_type)
    cute.autovec_copy(vector_of(line, column, w), values)
    return values.load().to(kind)


@cute.kernel(name="elementwise_v")
def by_vector(operands: Any, results: Any, plan: cute.Constexpr[Plan]):
    """Compute one vector per thread, or the elements of a partial vector at the end of a row."""
    thread, block = cute.arch.thread_idx().x, cute.arch.block_idx().x
    w, (rows, columns) = plan.vector, results[0].shape
    across, at = cute.ceil_div(columns, w), block * THREADS + thread
    row = at // across
    column = (at - row * across) * w
    length = line_length(operands, results, plan) if plan.flat else None
    if row < rows:
        if column + w <= columns:
            computed_vector(operands, results, row, column, length, plan)
        else:
            for i in range(w):
                if column + i < columns:
                    computed(operands, results, row, column + i, length, plan)


@cute.kernel(name="elementwise")
def by_element(operands: Any, results: Any, plan: cute.Constexpr[Plan]):
    """Compute several elements per thread, with adjacent elements in adjacent threads."""
    thread, block = cute.arch.thread_idx().x, cute.arch.block_idx().x
    w, (rows, columns) = plan.vector, results[0].shape
    across, at = cute.ceil_div(columns, w), block * THREADS + thread
    row = at // across
    first = at - row * across
    length = line_length(operands, results, plan) if plan.flat else None
    if row < rows:
        for i in range(w):
            column = first + i * across
            if column < columns:
                computed(operands, results, row, column, length, plan)


@cute.jit
def launch(operands: Any, results: Any, plan: cute.Constexpr[Plan]):
    """Launch one thread per vector."""
    w, (rows, columns) = plan.vector, results[0].shape
    for t in results[1:]:
        assert t.shape[0] == rows, "results must have the same rows"
        assert t.shape[1] == columns, "results must have the same columns"
    for x, t in zip(plan.graph.inputs, operands):
        if x.kind in ("column", "row") and plan.flat:
            assert columns % cute.size(t) == 0, "the size of a flat matrix must be a multiple of the row length"
        elif x.kind == "column":
            assert cute.size(t) == rows, "a per-row vector must have one value per row"
        elif x.kind == "row":
            assert cute.size(t) == columns, "a per-column vector must have one value per column"
        elif x.kind == "aux":
            assert t.shape[0] == rows, "arrays must have the rows of the results"
            assert t.shape[1] == columns, "arrays must have the columns of the results"
    matrix = f"(?,?):(?{{i64 div={w}}},1)"
    read = []
    for x, t in zip(plan.graph.inputs, operands):
        if by_vectors(x, plan.flat):
            t = cute.promise(t, matrix if x.kind == "aux" else "(?):(1)", align=16)
        read.append(t)
    written = [cute.promise(t, matrix, align=16) for t in results]
    across = cute.ceil_div(columns, w)
    by_vector(tuple(read), tuple(written), plan).launch(
        grid=cute.ceil_div(rows * across, THREADS), block=THREADS,
        fallback=by_element(tuple(operands), tuple(results), plan),
    )  # fmt: skip


def _launched(x: Input, compute: str) -> Any:
    """Return an example of a scalar argument of the launch."""
    if x.element == "i64":
        return cute.Int64(0)
    return cute.Float64(0.0) if compute == "f64" else cute.Float32(0.0)


@printed
def elementwise_text(plan: Plan) -> cute.Compiled:
    """Trace the kernels and the host function ``launch(operands, results)``.

    Scalars are integers, or floats of f64 if the plan computes in f64, else of f32.
    """
    operands: list[Any] = []
    for x in plan.graph.inputs:
        if x.kind == "scalar":
            operands.append(_launched(x, plan.compute) if x.number else cute.Tensor[number(x.element), "(?):(1)"])
        elif x.kind == "aux":
            rows = "(?,?):(?{i64},1)" if x.order == "n" else "(?,?):(?{i64},?{i64})"
            operands.append(cute.Tensor[number(x.element), rows])
        else:
            step = "1" if x.order == "n" else "?{i64}"
            operands.append(cute.Tensor[number(x.element), f"(?):({step})"])
    results = tuple([cute.Tensor[number(x.element), "(?,?):(?{i64},1)"] for x in plan.graph.outputs])
    return cute.trace(launch, tuple(operands), results, plan)


ACTIVATIONS = ("silu", "gelu", "gelu_tanh", "relu", "sigmoid")
"""Supported activations ``f``."""


@cache
def gated_plan(activation: str, element: str, *, is_gradient: bool = False) -> Plan:
    """Return the plan of matrices (a, b) -> result, or (a, b, gradient of the result) -> (gradients of a and b)."""
    make = Builder()
    a, b = (make.load(Input("aux", element, order="n")) for _ in range(2))
    value = make.call(activation, a)
    if not is_gradient:
        return Plan(make.graph([Output(make.call("multiply", value, b), element)]))
    g = make.load(Input("aux", element, order="n"))
    # A graph numbers its inputs in the order of this expression: a, b, g.
    of_a = make.call("multiply", make.call("multiply", make.call(f"d_{activation}", a), b), g)
    return Plan(make.graph([Output(of_a, element), Output(make.call("multiply", g, value), element)]))
