"""Elementwise functions over matrices with sums of their rows and columns, in one kernel, as gradients need.

A graph is evaluated for each element of (M, N), or of a batch of such matrices. Its outputs are elementwise, or sums of
rows or columns. For a sum, a block writes the partial results of its tile, (parts, M) or (parts, N), which
:mod:`~cute_dialect.kernels.epilogue.reductions` adds up. A block has 128 rows: a warp every eighth of them, a
lane ``width`` adjacent elements of each. Pairs of rows that share a random counter are computed together.

Tensors are accessed by vectors if they are aligned, else element by element, as the plan specifies.

>>> from cute_dialect.kernels.epilogue.graph import Builder, Input, Output
>>> make = Builder()
>>> x = make.load(Input("aux", "bf16", order="n"))
>>> plan = SumsPlan(make.graph([Output(x, reduce="sum", axis="m")]), 8, True, (True,))
>>> plan.columns, plan.parts(plan.graph.outputs[0], 1000, 500), plan.name[-5:]
(256, (8, 500), '-8e-1')
"""

# Traced values define operators and element types that pyright cannot check.
# pyright: basic, reportOptionalMemberAccess=false, reportArgumentType=false

from typing import Any, NamedTuple

import cute_dialect.lang as cute
from cute_dialect.kernels.common.elements import BITS, number, rounded
from cute_dialect.kernels.common.philox import number_of, words_of
from cute_dialect.kernels.common.traced_text import printed
from cute_dialect.kernels.epilogue.combination import annotation, extents_of, grouped
from cute_dialect.kernels.epilogue.emit import element_of, evaluated, evaluated_pair
from cute_dialect.kernels.epilogue.graph import Graph, Input, Output, constant_of

WARPS = 8
THREADS = 32 * WARPS
ROWS = 16 * WARPS


class SumsPlan(NamedTuple):
    """Static parameters of a kernel."""

    graph: Graph
    width: int  # adjacent elements per lane
    even: bool  # N is a multiple of the width
    # For each input that is elementwise or per column, and each elementwise output: True if it is accessed by vectors.
    vectors: tuple[bool, ...]
    batch: bool = False  # there is a batch mode

    @property
    def name(self) -> str:
        """Name of the kernel."""
        vectors = "".join([str(int(v)) for v in self.vectors])
        return f"sums-{self.graph.name}-{self.width}{'e' * self.even}{'l' * self.batch}-{vectors}"

    @property
    def columns(self) -> int:
        """Columns per block."""
        return 32 * self.width

    def parts(self, x: Output, m: Any, n: Any) -> tuple[Any, Any]:
        """Return the extents of the partial results of a reduced output of (M, N)."""
        if x.axis == "n":
            return (n + (self.columns - 1)) // self.columns, m
        return (m + (ROWS - 1)) // ROWS, n // 2 if self.graph.halves[x.node] else n


class _Line(NamedTuple):
    """Adjacent elements of a row in their stored type: a list of registers, or a register tensor."""

    values: Any

    def all(self) -> Any:
        """Return the elements as f32."""
        return self.values if isinstance(self.values, list) else self.values.load().to(cute.Float32)


def neighbours(x: Input, line: Any, column: Any, width: int, vector: bool) -> _Line:
    """Load adjacent elements of a row. Indices past the end read the last elements."""
    count, at = (width // 2, column // 2) if x.half else (width, column)
    if not vector:
        return _Line([element_of(line, at + i, cute.Float32) for i in range(count)])
    values = cute.make_rmem_tensor(count, line.element_type)
    cute.autovec_copy(vector_of(line, cute.min(at, cute.size(line) - count), count), values)
    return _Line(values)


def vector_of(line: Any, column: Any, count: int) -> Any:
    """Return a vector of a row."""
    at = (line.iterator + column).align(min(16, count * line.element_type.width // 8))
    return cute.make_tensor(at, cute.make_layout(count))


class _Arrays:
    """Inputs and outputs of a graph for one matrix, in the kernel. ``rows`` and ``columns`` are those of the matrix."""

    def __init__(self, plan: SumsPlan, operands: Any, results: Any, rows: Any, columns: Any, matrix: Any):
        self.plan, self.rows, self.columns, self.matrix = plan, rows, columns, matrix
        graph = plan.graph
        whole = graph.whole_inputs
        self.inputs: list[tuple[Input, Any, bool]] = []
        for i, (x, t) in enumerate(zip(graph.inputs, operands)):
            t = t if x.number else grouped(x, t)
            if x.kind == "scalar":
                value = t if x.number else t[0]
                t = cute.Int64(value) if i in whole else value.to(cute.Float32)
            elif x.kind == "matrix":
                t = t[0 if matrix is None else matrix].to(cute.Float32)
            elif x.batch:
                t = t[(*(None,) * (2 if x.kind == "aux" else 1), matrix)]
            self.inputs.append((x, t, plan.vectors[i]))
        more = plan.vectors[len(graph.inputs) :]
        self.outputs: list[tuple[Output, Any, bool]] = []
        for x, t, vector in zip(graph.outputs, results, more):
            self.outputs.append((x, t[None, None, matrix] if plan.batch else t, vector))

    def of_columns(self, column: Any) -> list[Any]:
        """Return this lane's values of per-column inputs; None for the other inputs."""
        width = self.plan.width
        return [neighbours(x, t, column, width, v).all() if x.kind == "row" else None for x, t, v in self.inputs]

    def of_row(self, row: Any, column: Any, of_columns: list[Any]) -> list[Any]:
        """Load the inputs of a row: a :class:`_Line` per matrix, or a single value."""
        at = cute.min(row, self.rows - 1)
        found: list[Any] = []
        for (x, t, vector), columns in zip(self.inputs, of_columns):
            if x.kind == "aux":
                found.append(neighbours(x, t[at, None], column, self.plan.width, vector))
            elif x.kind == "row":
                found.append(columns)
            else:
                found.append(t[at].to(cute.Float32) if x.kind == "column" else t)
        return found

    def values(self, held: list[Any], row: Any, column: Any, drawn: list[dict[int, Any]]) -> list[list[Any]]:
        """Return each output's values for this lane's elements of a row."""
        graph, width = self.plan.graph, self.plan.width
        lines = [x.all() if isinstance(x, _Line) else x for x in held]
        found: list[list[Any]] = [[] for _ in graph.outputs]
        place = {"row": row, "matrix": self.matrix}
        for i in range(0, width, 2):
            both = [[self._element(k, line, i + e) for k, line in enumerate(lines)] for e in range(2)]
            if graph.paired:
                values = evaluated_pair(graph, [None, None], both, {**place, "column": column + i})
            else:
                each = [
                    evaluated(graph, None, both[e], {**place, "column": column + (i + e), **drawn[i + e]})
                    for e in range(2)
                ]
                values = list(zip(*each))
            for to, x in zip(found, graph.outputs):
                to += [cute.Float32(v) for v in values[x.node]]
        return found

    def _element(self, which: int, line: Any, i: int) -> Any:
        x = self.plan.graph.inputs[which]
        return line[i // 2 if x.half else i] if x.kind in ("aux", "row") else line

    def drawn(self, row: Any, column: Any) -> list[list[dict[int, Any]]]:
        """Return the random numbers of a row and of the row 8 below, which share counters.

        They are returned per row and element, by node index.
        """
        graph, width = self.plan.graph, self.plan.width
        found: list[list[dict[int, Any]]] = [[{} for _ in range(width)] for _ in range(2)]
        for which, node in enumerate(graph.nodes):
            if node.op != "random" or node.value != "" or graph.paired:
                continue
            nodes = [graph.nodes[k] for k in node.operands]
            seeds = [constant_of(n) if n.op == "constant" else self.inputs[n.value][1] for n in nodes]
            for i in range(0, width, 2):
                words = [number_of(w) for w in words_of(row, column + i, self.matrix, *seeds)]
                for half in range(2):
                    for e in range(2):
                        found[half][i + e][which] = words[2 * half + e]
        return found

    def count(self, x: Output) -> int:
        """Return the number of elements of an output per lane."""
        return self.plan.width // 2 if self.plan.graph.halves[x.node] else self.plan.width

    def place(self, x: Output, column: Any) -> tuple[Any, Any]:
        """Return this lane's first column of an output, and the number of columns."""
        half = self.plan.graph.halves[x.node]
        return (column // 2, self.columns // 2) if half else (column, self.columns)

    def inside(self, x: Output, value: Any, row: Any, column: Any, i: int) -> Any:
        """Return a value, or 0 if it is out of bounds."""
        first, end = self.place(x, column)
        here = (row < self.rows) & (first + i < end)
        return value if here else cute.Float32(0.0)

    def store(self, x: Output, t: Any, vector: bool, values: list[Any], row: Any, column: Any) -> None:
        """Store those elements of a row that are in bounds."""
        first, end = self.place(x, column)
        held = cute.make_rmem_tensor(len(values), cute.Float32)
        for i in cute.range_constexpr(len(values)):
            held[i] = values[i]
        made = cute.make_rmem_tensor(len(values), t.element_type)
        made.store(rounded(held, t.element_type))
        if vector:
            if (row < self.rows) & (first < end):
                cute.autovec_copy(made, vector_of(t[row, None], first, len(values)))
        else:
            for i in cute.range_constexpr(len(values)):
                if (row < self.rows) & (first + i < end):
                    t[row, first + i] = made[i]


@cute.kernel(name="elementwise_sums")
def compute(operands: Any, results: Any, m: cute.Int32, n: cute.Int32, plan: cute.Constexpr[SumsPlan]):
    """Compute a tile of all outputs."""
    thread, block = cute.arch.thread_idx().x, cute.arch.block_idx().x
    lane, warp = thread % 32, thread // 32
    across, down = cute.ceil_div(n, plan.columns), cute.ceil_div(m, ROWS)
    matrix = block // (across * down) if plan.batch else None
    tile = block % (across * down) if plan.batch else block
    strip, part = tile // across, tile % across
    column = part * plan.columns + lane * plan.width
    arrays = _Arrays(plan, operands, results, m, n, matrix)
    reduced = [(x, t) for x, t, _ in arrays.outputs if x.reduce and x.axis == "m"]
    totals = [cute.make_rmem_tensor(arrays.count(x), cute.Float32) for x, _ in reduced]
    for total in totals:
        total.fill(0.0)
    of_columns = arrays.of_columns(column)
    for step in range(cute.min(ROWS // WARPS // 2, cute.ceil_div(m - strip * ROWS, 2 * WARPS))):
        rows = [strip * ROWS + ((2 * step + u) * WARPS + warp) for u in range(2)]
        held = [arrays.of_row(row, column, of_columns) for row in rows]  # before any store, in case the arrays overlap
        drawn = arrays.drawn(rows[0], column)
        for u in cute.range_constexpr(2):
            found = arrays.values(held[u], rows[u], column, drawn[u])
            at = 0
            for (x, t, vector), values in zip(arrays.outputs, found):
                if not x.reduce:
                    arrays.store(x, t, vector, values, rows[u], column)
                elif x.axis == "m":
                    for i in cute.range_constexpr(len(values)):
                        totals[at][i] = totals[at][i] + arrays.inside(x, values[i], rows[u], column, i)
                    at += 1
                else:
                    total = cute.Float32(0.0)
                    for i in cute.range_constexpr(len(values)):
                        total = total + arrays.inside(x, values[i], rows[u], column, i)
                    for distance in (16, 8, 4, 2, 1):
                        total = total + cute.arch.shuffle_sync_bfly(total, distance)
                    if (lane == 0) & (rows[u] < m):
                        t[part, rows[u]] = total
    if reduced:
        shared = cute.smem_tensor(cute.Float32, cute.make_layout((WARPS, plan.columns), stride=(plan.columns, 1)), 16)
        for (x, t), total in zip(reduced, totals):
            count = arrays.count(x)
            cute.arch.sync_threads()
            for i in cute.range_constexpr(count):
                shared[warp, lane * count + i] = total[i]
            cute.arch.sync_threads()
            first, end = part * 32 * count, arrays.place(x, column)[1]
            if (thread < 32 * count) & (first + thread < end):
                whole = cute.Float32(0.0)
                for i in cute.range_constexpr(WARPS):
                    whole = whole + shared[i, thread]
                t[strip, first + thread] = whole


@cute.jit
def launch(
    operands: Any, results: Any, m: cute.Int32, n: cute.Int32, matrices: cute.Int32, plan: cute.Constexpr[SumsPlan]
):
    """Launch one block per 128 rows of some columns."""
    graph = plan.graph
    for i, (x, t) in enumerate(zip(graph.inputs, operands)):
        if x.kind in ("aux", "row", "column"):
            across = n // 2 if x.half else n
            wanted = {"aux": (m, across), "row": (across,), "column": (m,)}[x.kind]
            for have, want in zip(extents_of(grouped(x, t)), (*wanted, *((matrices,) if x.batch else ()))):
                assert have == want, f"operand {i}, {x.kind}, must have the extents of the elements"
    for i, (x, t) in enumerate(zip(graph.outputs, results)):
        rows, columns = plan.parts(x, m, n) if x.reduce else (m, n // 2 if graph.halves[x.node] else n)
        assert t.shape[0] == rows, f"result {i} must have the extents of the elements, or of their parts"
        assert t.shape[1] == columns, f"result {i} must have the extents of the elements, or of their parts"
        if plan.batch:
            assert t.shape[2] == matrices, f"result {i} must have the same number of matrices"
    tiles = cute.ceil_div(n, plan.columns) * cute.ceil_div(m, ROWS) * matrices
    compute(operands, results, m, n, plan).launch(grid=tiles, block=THREADS)


def _described(x: Input, vector: bool, width: int) -> Any:
    """Return the annotation of an input, or of an elementwise output."""
    if x.split or x.number or x.kind in ("scalar", "matrix"):
        return annotation(x._replace(pairs=False))
    kind, count = number(x.element), width // 2 if x.half else width
    step = f"?{{i64 div={count}}}" if vector else "?{i64}"
    align = f"align<{min(16, count * BITS[x.element] // 8) if vector else BITS[x.element] // 8}>"
    if x.kind == "aux":
        strides = {"n": f"{step},1", "m": f"1,{step}", "": f"{step},{step}"}[x.order]
        layout = f"(?,?,?):({strides},{step})" if x.batch else f"(?,?):({strides})"
    else:
        along = "1" if x.order else "?{i64}"
        layout = f"(?,?):({along},{step})" if x.batch else f"(?):({along})"
    return cute.Tensor[kind, layout, align]


@printed
def elementwise_sums_text(plan: SumsPlan) -> cute.Compiled:
    """Trace the kernel and the host function ``launch(operands, results, m, n, matrices)``; scalars are f32."""
    graph, halves = plan.graph, plan.graph.halves
    operands = tuple([_described(x, v, plan.width) for x, v in zip(graph.inputs, plan.vectors)])
    results: list[Any] = []
    for x, vector in zip(graph.outputs, plan.vectors[len(graph.inputs) :]):
        if x.reduce:
            results.append(cute.Tensor[cute.Float32, "(?,?,?):(?,1,?)" if plan.batch else "(?,?):(?,1)"])
        else:
            like = Input("aux", x.element, batch=plan.batch, order="n", half=halves[x.node])
            results.append(_described(like, vector, plan.width))
    sizes = cute.Int32(0), cute.Int32(0), cute.Int32(0)
    return cute.trace(launch, operands, tuple(results), *sizes, plan)
