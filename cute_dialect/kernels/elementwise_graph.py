"""Functions of elements over arrays of any number, as one kernel: a graph is evaluated for each element of a matrix.

Arrays are matrices (M, N), or one value a column, a row, or one for all; the results are matrices whose rows are
contiguous.  A thread has the elements of 16 bytes of the narrowest array that is read or written by vectors; so all
accesses are of 16 bytes, but where arrays have other strides, which are read element by element.

Two kernels, one body: ``elementwise_v`` takes rows that are whole aligned vectors but for their ends, ``elementwise``
any; there the threads of a warp have elements next to each other.  Matrices without gaps, whose rows are of any length,
are one row (``Plan.flat``): values a column or a row are found by dividing, element by element.

>>> from cute_dialect.kernels.epilogue_graph import Builder, Input, Output
>>> make = Builder()
>>> x, y = (make.load(Input(kind, "f16", order="n")) for kind in ("aux", "row"))
>>> plan = Plan(make.graph([Output(make.call("add", x, y), "f16")]))
>>> plan.vector, plan.name[:14]
(8, 'elementwise-g-')
"""

# Operators and element types are those of values in a trace.
# pyright: basic, reportOptionalMemberAccess=false, reportArgumentType=false

from typing import Any, NamedTuple

import cute_dialect.lang as cute
from cute_dialect.kernels.epilogue_graph import Graph, Input
from cute_dialect.kernels.gemm.elements import BITS, number, rounded
from cute_dialect.kernels.gemm.fused import evaluated
from cute_dialect.kernels.printed import printed

__all__ = ["ELEMENTS", "Plan", "elementwise_text"]

ELEMENTS = ("f16", "bf16", "f32", "f8E4M3FN", "f8E5M2", "i8", "ui8")
"""Types of arrays and results."""

THREADS = 256


class Plan(NamedTuple):
    """What is computed; of inputs ``order`` n says that rows are contiguous; ``flat``: matrices (M, N) are given as one
    row (1, M * N), of which N, that is at least a vector, is the extent of what has a value a column, M of what has one
    a row.
    """

    graph: Graph
    flat: bool = False

    @property
    def vector(self) -> int:
        """Elements that a thread has."""
        read = [x.element for x in self.graph.inputs if by_vectors(x, self.flat)]
        return 128 // min(BITS[e] for e in (*read, *(x.element for x in self.graph.outputs)))

    @property
    def name(self) -> str:
        """Names the kernel."""
        return f"elementwise-{self.graph.name}{'-flat' if self.flat else ''}"


def by_vectors(x: Input, flat: bool = False) -> bool:
    """Tell whether an array is read by vectors."""
    return x.kind in (("aux",) if flat else ("aux", "row")) and x.order == "n"


def line_length(operands: Any, results: Any, plan: Plan) -> Any:
    """Return the length of the rows that are flat: N."""
    sizes = {x.kind: cute.size(t) for x, t in zip(plan.graph.inputs, operands) if x.kind in ("row", "column")}
    return sizes["row"] if "row" in sizes else results[0].shape[1] // sizes["column"]


class Place(NamedTuple):
    """Where an element is: ``column`` of the row that is read and written; its row and column in the matrix."""

    column: Any
    of_row: Any
    of_column: Any


def places(row: Any, column: Any, count: int, length: Any) -> list[Place]:
    """Return the places of so many elements next to each other; ``length``: of flat rows, else None."""
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


def value_of(x: Input, t: Any, row: Any, place: Place) -> Any:
    """Return an element of an operand as f32, of a number the number."""
    if x.kind == "scalar":
        return t if x.number else t[0].to(cute.Float32)
    at = {"column": place.of_row, "row": place.of_column}.get(x.kind, place.column)
    return line_of(x, t, row)[at].to(cute.Float32)


def computed(operands: Any, results: Any, row: Any, column: Any, length: Any, plan: Plan) -> None:
    """Compute one element of all results."""
    place = places(row, column, 1, length)[0]
    inputs = [value_of(x, t, row, place) for x, t in zip(plan.graph.inputs, operands)]
    found = evaluated(plan.graph, None, inputs, {})
    for x, t in zip(plan.graph.outputs, results):
        one = cute.make_rmem_tensor(1, cute.Float32)
        one[0] = cute.Float32(found[x.node])
        made = cute.make_rmem_tensor(1, t.element_type)
        made.store(rounded(one, t.element_type))
        t[row, column] = made[0]


def computed_vector(operands: Any, results: Any, row: Any, column: Any, length: Any, plan: Plan) -> None:
    """Compute a vector of all results; all is read before anything is written."""
    w, graph = plan.vector, plan.graph
    at = places(row, column, w, length)
    held: list[Any] = []
    for x, t in zip(graph.inputs, operands):
        if by_vectors(x, plan.flat):
            held.append(loaded(line_of(x, t, row), column, w))
        elif x.kind == "scalar" or (x.kind == "column" and not plan.flat):
            held.append([value_of(x, t, row, at[0])] * w)
        else:
            held.append([value_of(x, t, row, place) for place in at])
    made = [cute.make_rmem_tensor(w, cute.Float32) for _ in graph.outputs]
    for i in cute.range_constexpr(w):
        found = evaluated(graph, None, [x[i] for x in held], {})
        for x, values in zip(graph.outputs, made):
            values[i] = cute.Float32(found[x.node])
    for t, values in zip(results, made):
        stored = cute.make_rmem_tensor(w, t.element_type)
        stored.store(rounded(values, t.element_type))
        cute.autovec_copy(stored, vector_of(t[row, None], column, w))


def vector_of(line: Any, column: Any, w: int) -> Any:
    """Return some elements of a row, from whole 16 bytes on."""
    at = (line.iterator + column).align(min(16, w * line.element_type.width // 8))
    return cute.make_tensor(at, cute.make_layout(w))


def loaded(line: Any, column: Any, w: int) -> Any:
    """Load some elements of a row as f32."""
    values = cute.make_rmem_tensor(w, line.element_type)
    cute.autovec_copy(vector_of(line, column, w), values)
    return values.load().to(cute.Float32)


@cute.kernel(name="elementwise_v")
def by_vector(operands: Any, results: Any, plan: cute.Constexpr[Plan]):
    """Compute a vector a thread; where a row ends amid one, its elements."""
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
    """Compute so many elements a thread, those of neighbours next to each other."""
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
    """Launch a thread a vector."""
    w, (rows, columns) = plan.vector, results[0].shape
    for t in results[1:]:
        assert t.shape[0] == rows, "results must have the same rows"
        assert t.shape[1] == columns, "results must have the same columns"
    for x, t in zip(plan.graph.inputs, operands):
        if x.kind in ("column", "row") and plan.flat:
            assert columns % cute.size(t) == 0, "flat rows must be whole"
        elif x.kind == "column":
            assert cute.size(t) == rows, "a column must have a value a row"
        elif x.kind == "row":
            assert cute.size(t) == columns, "a row must have a value a column"
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


@printed
def elementwise_text(plan: Plan) -> cute.Compiled:
    """Return kernels and host function as text: ``launch(operands, results)``, numbers f32."""
    operands: list[Any] = []
    for x in plan.graph.inputs:
        if x.kind == "scalar":
            operands.append(cute.Float32(0.0) if x.number else cute.Tensor[number(x.element), "(?):(1)"])
        elif x.kind == "aux":
            rows = "(?,?):(?{i64},1)" if x.order == "n" else "(?,?):(?{i64},?{i64})"
            operands.append(cute.Tensor[number(x.element), rows])
        else:
            step = "1" if x.order == "n" else "?{i64}"
            operands.append(cute.Tensor[number(x.element), f"(?):({step})"])
    results = tuple([cute.Tensor[number(x.element), "(?,?):(?{i64},1)"] for x in plan.graph.outputs])
    return cute.trace(launch, tuple(operands), results, plan)
