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

# Traced values define operators and element types that pyright cannot check.
# pyright: basic, reportOptionalMemberAccess=false, reportArgumentType=false

from typing import Any, NamedTuple

import cute_dialect.lang as cute
from cute_dialect.kernels.epilogue_functions import ARITHMETIC, FUNCTIONS
from cute_dialect.kernels.epilogue_graph import Graph, Input, constant_of
from cute_dialect.kernels.gemm.elements import BITS, number, rounded
from cute_dialect.kernels.gemm.epilogue_emit import OF_FLOATS, evaluated
from cute_dialect.kernels.traced_text import printed

__all__ = ["ELEMENTS", "OF_F64", "Plan", "elementwise_text", "kinds_of"]

ELEMENTS = ("f16", "bf16", "f32", "f8E4M3FN", "f8E5M2", "i8", "ui8", "i32", "i64", "f64", "i1")
"""Types of arrays and results; memory of ``i1`` is bytes of 0 and 1, which a plan has as ``ui8``."""

OF_F64 = {*ARITHMETIC, "relu", "identity"} - {"power_of_two", "rsqrt", "exp", "exp2", "log", "erf"}
"""Functions that are computed in f64; the others are approximations in f32."""

THREADS = 256


class Plan(NamedTuple):
    """What is computed; of inputs ``order`` n says that rows are contiguous; ``flat``: matrices (M, N) are given as one
    row (1, M * N), of which N, that is at least a vector, is the extent of what has a value a column, M of what has one
    a row.
    """

    graph: Graph
    flat: bool = False
    compute: str = "f32"
    """The type that arrays are converted to: f32, f64, i32 or i64.  Floats that are computed of integers are f32."""

    @property
    def stored(self) -> tuple[str, ...]:
        """The types that results are computed in."""
        kinds = kinds_of(self.graph, self.compute)
        floats = "f64" if self.compute == "f64" else "f32"
        types = {"b": "f32", "i": self.compute, "f": floats}  # truths are 0 and 1
        return tuple([types[kinds[x.node]] for x in self.graph.outputs])

    @property
    def vector(self) -> int:
        """Elements that a thread has."""
        read = [x.element for x in self.graph.inputs if by_vectors(x, self.flat)]
        return 128 // min(BITS[e] for e in (*read, *(x.element for x in self.graph.outputs)))

    @property
    def name(self) -> str:
        """Names the kernel."""
        compute = "" if self.compute == "f32" else f"-{self.compute}"
        return f"elementwise-{self.graph.name}{compute}{'-flat' if self.flat else ''}"


def kinds_of(graph: Graph, compute: str) -> tuple[str, ...]:
    """Return the kind of each node's values: b (a truth), i (an integer) or f (a float).

    >>> from cute_dialect.kernels.epilogue_graph import Builder, Output
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


def value_of(x: Input, t: Any, row: Any, place: Place, kind: Any) -> Any:
    """Return an element of an operand as a number of type ``kind``, of a number the number."""
    if x.kind == "scalar":
        return t if x.number else t[0].to(kind)
    at = {"column": place.of_row, "row": place.of_column}.get(x.kind, place.column)
    return line_of(x, t, row)[at].to(kind)


def kinds_read(plan: Plan) -> list[Any]:
    """Return the types that operands are converted to: those of random numbers, seeds and places, stay integers."""
    whole = plan.graph.whole_inputs
    return [cute.Int64 if i in whole else number(plan.compute) for i in range(len(plan.graph.inputs))]


def computed(operands: Any, results: Any, row: Any, column: Any, length: Any, plan: Plan) -> None:
    """Compute one element of all results."""
    place = places(row, column, 1, length)[0]
    kinds = kinds_read(plan)
    inputs = [value_of(x, t, row, place, kind) for x, t, kind in zip(plan.graph.inputs, operands, kinds)]
    found = evaluated(plan.graph, None, inputs, {})
    for x, t, stored in zip(plan.graph.outputs, results, plan.stored):
        one = cute.make_rmem_tensor(1, number(stored))
        one[0] = number(stored)(found[x.node])
        made = cute.make_rmem_tensor(1, t.element_type)
        made.store(rounded(one, t.element_type))
        t[row, column] = made[0]


def computed_vector(operands: Any, results: Any, row: Any, column: Any, length: Any, plan: Plan) -> None:
    """Compute a vector of all results; all is read before anything is written."""
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
        found = evaluated(graph, None, [x[i] for x in held], {})
        for x, values in zip(graph.outputs, made):
            values[i] = values.element_type(found[x.node])
    for t, values in zip(results, made):
        stored = cute.make_rmem_tensor(w, t.element_type)
        stored.store(rounded(values, t.element_type))
        cute.autovec_copy(stored, vector_of(t[row, None], column, w))


def vector_of(line: Any, column: Any, w: int) -> Any:
    """Return some elements of a row, from whole 16 bytes on."""
    at = (line.iterator + column).align(min(16, w * line.element_type.width // 8))
    return cute.make_tensor(at, cute.make_layout(w))


def loaded(line: Any, column: Any, w: int, kind: Any) -> Any:
    """Load some elements of a row as numbers of type ``kind``."""
    values = cute.make_rmem_tensor(w, line.element_type)
    cute.autovec_copy(vector_of(line, column, w), values)
    return values.load().to(kind)


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


def _launched(x: Input) -> Any:
    """Return an example of a number of the launch."""
    return cute.Int64(0) if x.element == "i64" else cute.Float32(0.0)


@printed
def elementwise_text(plan: Plan) -> cute.Compiled:
    """Return kernels and host function as text: ``launch(operands, results)``, numbers f32."""
    operands: list[Any] = []
    for x in plan.graph.inputs:
        if x.kind == "scalar":
            operands.append(_launched(x) if x.number else cute.Tensor[number(x.element), "(?):(1)"])
        elif x.kind == "aux":
            rows = "(?,?):(?{i64},1)" if x.order == "n" else "(?,?):(?{i64},?{i64})"
            operands.append(cute.Tensor[number(x.element), rows])
        else:
            step = "1" if x.order == "n" else "?{i64}"
            operands.append(cute.Tensor[number(x.element), f"(?):({step})"])
    results = tuple([cute.Tensor[number(x.element), "(?,?):(?{i64},1)"] for x in plan.graph.outputs])
    return cute.trace(launch, tuple(operands), results, plan)
