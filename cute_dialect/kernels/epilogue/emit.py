"""Evaluation of an epilogue graph in a kernel: over the accumulator registers of a warp, in f32, before rounding.

The accumulator has the ``wgmma`` layout (PTX ISA, "Register fragments and shared memory matrix layouts"). Register ``4
j + 2 h + e`` of lane ``l`` of warp ``w`` is row ``16 w + l / 4 + 8 h``, column ``8 j + 2 (l % 4) + e``.

- Scalars are loaded once.
- Per-row vectors are loaded once per thread for all of its columns.
- Per-column vectors are loaded once per warp.
- Elements of matrices are loaded in adjacent pairs if the alignment allows it.

Vectors may be loaded before the main loop, because they need few registers. The eight lanes with the same ``l % 4`` own
the same columns. Lane ``l`` therefore loads only columns ``2 l`` and ``2 l + 1`` of every 64, and the warp exchanges
them by shuffles. For a tile of 256 columns, each lane holds 8 values instead of 64.
"""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple, TypeAlias

import cute_dialect.lang as cute
from cute_dialect.kernels.common.elements import number, rounded
from cute_dialect.kernels.common.philox import drawn, number_of, words_of
from cute_dialect.kernels.epilogue.combination import Addends, Epilogue, extents_of, grouped
from cute_dialect.kernels.epilogue.fragment_layout import Lanes, lanes_of
from cute_dialect.kernels.epilogue.functions import ARITHMETIC, FUNCTIONS, function_in_f64
from cute_dialect.kernels.epilogue.graph import REDUCTIONS, STRIP, Graph, Input, Node, Output, constant_of

# Traced values define operators and attributes that pyright cannot check.
# pyright: basic, reportOptionalMemberAccess=false


_AT_ONCE = 64
"""Columns that a warp loads together, two per lane."""


class Ahead(NamedTuple):
    """Prefetched operands of a tile."""

    columns: "AnyColumns"
    # For each wgmma instruction and each of the thread's two rows, one value per input.
    rows: list[list[list[Any]]]
    # For each wgmma instruction the elements of matrices, if the epilogue is applied to a whole tile at once.
    matrices: Sequence[Any] = ()


class Columns:
    """Per-column operands of ``count`` accumulator columns from ``first`` on, a multiple of 8.

    Args:
        inputs: The inputs of the epilogue graph.
        lines: The vector of each input, or None for an input that is not per column.
        first: The first accumulator column.
        count: Number of columns.
        compute: The type that the epilogue computes in.
        at: Maps an accumulator column to a column of D; None for the identity.
    """

    def __init__(
        self, inputs: Sequence[Input], lines: Sequence[Any], first: Any, count: int, compute: Any, at: Any = None
    ):
        self.inputs, self.lines, self.compute, self.lane = inputs, lines, compute, cute.arch.lane_idx()
        self.held: list[Any] = [None for _ in inputs]
        for n, (x, line) in enumerate(zip(inputs, lines)):
            if line is not None:
                found: list[Any] = []
                for start in range(0, count, _AT_ONCE):
                    place = first + (self.lane * 2 + start)
                    found += self._read(x, line, place if at is None else at(place))
                self.held[n] = cute.make_rmem_tensor(len(found), cute.Int32 if _is_word(x, line) else compute)
                for i in cute.range_constexpr(len(found)):
                    self.held[n][i] = found[i]

    def _read(self, x: Input, line: Any, place: Any) -> list[Any]:
        """Load a lane's two adjacent values: one value if the columns share it, and one packed word for 16-bit
        elements.
        """
        if x.half:
            return [element_of(line, place // 2, self.compute)]
        return [neighbours_of(line, place, x).bitcast(cute.Int32)[0]] if _is_word(x, line) else two(
            line, place, x, self.compute
        )  # fmt: skip

    def pair(self, group: Any) -> list[Any]:
        """Return each input's values in this thread's two columns of 8-column group ``group``; None for inputs without
        columns.
        """
        found: list[Any] = []
        start, lane = group // (_AT_ONCE // 8), group % (_AT_ONCE // 8) * 4 + self.lane % 4
        for x, line, held in zip(self.inputs, self.lines, self.held):
            if line is None:
                found.append(None)
            elif _is_word(x, line):
                word = cute.make_rmem_tensor(1, cute.Int32)
                word[0] = cute.arch.shuffle_sync(held[start], lane)
                both = word.load().bitcast(line.element_type).to(self.compute)
                found.append([both[0], both[1]])
            elif x.half:
                found.append([cute.arch.shuffle_sync(held[start], lane)] * 2)
            else:
                found.append([cute.arch.shuffle_sync(held[start * 2 + i], lane) for i in range(2)])
        return found


class OwnColumns:
    """Per-column operands that each thread loads for itself on use.

    This variant is for epilogues that also load matrices. There, ptxas would schedule the shuffles of :class:`Columns`
    first and the matrix loads last. Measured cost: 3 % (gelu(A B + bias) + matrix, 4096 x 4096 x 4096, H200).
    """

    def __init__(self, inputs: Sequence[Input], lines: Sequence[Any], first: Any, compute: Any, at: Any = None):
        self.inputs, self.lines, self.compute, self.at = inputs, lines, compute, at
        self.first = first + cute.arch.lane_idx() % 4 * 2

    def pair(self, group: Any) -> list[Any]:
        """Return each input's values in this thread's two columns of 8-column group ``group``; None for inputs without
        columns.
        """
        place = self.first + group * 8
        place = place if self.at is None else self.at(place)
        return [
            None if line is None else pair_of(line, place, x, self.compute) for x, line in zip(self.inputs, self.lines)
        ]


AnyColumns: TypeAlias = Columns | OwnColumns


def pair_of(line: Any, column: Any, x: Input, compute: Any) -> list[Any]:
    """Return two adjacent elements of a vector, or twice the element that two columns share."""
    return [element_of(line, column // 2, compute)] * 2 if x.half else two(line, column, x, compute)


def _is_word(x: Input, line: Any) -> bool:
    """Return True if two adjacent elements are held as one packed 32-bit word."""
    return line.element_type.width == 16 and not x.half


def element_of(line: Any, at: Any, compute: Any) -> Any:
    """Return an element of a vector. Indices past the end return the last element."""
    return line[cute.min(at, cute.size(line) - 1)].to(compute)


def two(line: Any, column: Any, x: Input, compute: Any) -> Any:
    """Return two adjacent elements of a vector. The first index is even."""
    if not x.pairs:
        return [element_of(line, column + i, compute) for i in range(2)]
    return neighbours_of(line, column, x).to(compute)


def neighbours_of(line: Any, column: Any, x: Input) -> Any:
    """Return two adjacent elements of a vector in their stored type."""
    if not x.pairs:
        both = cute.make_rmem_tensor(2, line.element_type)
        for i in cute.range_constexpr(2):
            both[i] = line[cute.min(column + i, cute.size(line) - 1)]
        return both.load()
    first = cute.min(column, cute.size(line) - 2)
    at = line.iterator + (cute.crd2idx(first, line.layout) if x.split else first)
    return cute.make_tensor(at.align(2 * line.element_type.width // 8), cute.make_layout(2)).load()


# Traced values define operators and element types that pyright cannot check.
# pyright: basic, reportOptionalMemberAccess=false


OF_FLOATS = {"divide", "sqrt", "rsqrt", "exp", "exp2", "log", "erf"} | (FUNCTIONS.keys() - ARITHMETIC.keys() - {"relu"})
"""Functions whose operands are converted to floats."""


def is_exact(graph: Graph) -> bool:
    """Return True if a graph can be computed in f64: none of its functions converts its operands to f32.

    >>> from cute_dialect.kernels.epilogue.graph import Builder
    >>> make = Builder()
    >>> twice = make.call("multiply", make.accum(), make.constant(2.0))
    >>> is_exact(Graph(tuple(make.nodes), (), (Output(twice),)))
    True
    """
    simple = Epilogue(graph=graph).by_element and len(graph.outputs) == 1
    return simple and not any(node.op in OF_FLOATS or node.op in ("cast", "hook") for node in graph.nodes)


class Fetched(NamedTuple):
    """Elements of matrices in registers, in the ``wgmma`` layout, by input index."""

    values: dict[int, Any]


class Leaving(NamedTuple):
    """The store of an extra output in chunks of columns.

    The first output is staged 16 columns at a time, so that only their registers are live in addition to the
    accumulator. Others are held until the store of the first output is issued, because buffers may be few.
    """

    widths: tuple[int, ...]  # columns of each chunk
    begin: Any  # begin(chunk) waits for the staging buffer of a chunk, and returns it
    stage: Any  # stage(buffer, values, i): the f32 registers of the i-th 16 columns, in the ``wgmma`` layout
    end: Any  # end(buffer, chunk) issues the store
    put: Any  # put(values, chunk): all steps, for the f32 registers of a chunk


class Fused:
    """An epilogue in a kernel.

    Args:
        epilogue: The epilogue.
        addends: Its arguments.
        pairs: Load adjacent elements of a row of C, and of similar matrices, at once.
        whole: Accumulator and result are integers; an exact epilogue then computes in i32.
        batch: The result has a batch mode.
        wide: Compute in f64.
        lanes: Mapping of lanes to rows; the native ``wgmma`` mapping by default.
        places: Maps rows and columns of the accumulator to those of D, for a convolution's gradient; None for the
            identity.
    """

    def __init__(
        self, epilogue: Epilogue, addends: Addends, *, pairs: bool = True, whole: bool = False, batch: bool = False,
        wide: bool = False, lanes: Lanes | None = None, places: Any = None,
    ):  # fmt: skip
        lanes = lanes or lanes_of(0)
        graph, operands = epilogue.as_graph(pairs=pairs, batch=batch), addends.in_order()
        self.compute = cute.Float64 if wide else cute.Int32 if whole and epilogue.whole else cute.Float32
        self.whole, self.without, self.factor = None, None, None
        if graph is not None:
            operands = [grouped(x, t) for x, t in zip((*graph.inputs, *graph.outputs[1:]), operands)]
            stored = operands[len(graph.inputs) :]
            self.whole = Evaluation(graph, operands, stored, self.compute, addends.extents, lanes, places)
            factor = graph.zero_factor
            if factor is not None:
                less, kept = graph.with_zero(factor)
                self.factor = self.whole.scalars[factor]
                kept = [operands[i] for i in kept]
                self.without = Evaluation(less, kept, stored, self.compute, addends.extents, lanes, places)

    def taken(self, values: Any) -> Any:
        """Convert accumulator values to the type that the epilogue computes in."""
        if values.element_type is self.compute:
            return values
        found = cute.make_rmem_tensor_like(values, self.compute)
        found.store(values.load().to(self.compute))
        return found

    def ahead(self, columns: int, rows: list[Any], column: Any, matrix: Any = None) -> Ahead | None:
        """Prefetch the per-row and per-column operands of a tile for :meth:`apply`.

        Returns None if a scalar argument of the launch decides which operands are read.

        Args:
            columns: Number of accumulator columns of the warp.
            rows: The first of the 16 rows of each MMA.
            column: The first column.
            matrix: Index in a batch.
        """
        return (
            None if self.whole is None or self.without is not None else self.whole.ahead(columns, rows, column, matrix)
        )

    def apply(
        self, values: Any, columns: int, row: Any, column: Any, matrix: Any = None, end: Any = None,
        leaving: Mapping[int, Leaving] = MappingProxyType({}), held: Ahead | None = None, atom: int = 0, first: int = 0,
        fetched: Fetched | None = None,
    ) -> None:  # fmt: skip
        """Apply the epilogue to the registers of 16 rows and ``columns`` columns of a warp, starting with
        ``values[0]``.

        Args:
            values: The accumulator registers, which are replaced by the result.
            columns: Number of accumulator columns.
            row, column: Coordinates in D of the first element.
            matrix: Index in a batch.
            end: The row before which extra outputs are stored; None for no limit.
            leaving: Extra outputs that are stored in chunks instead of by each lane, by output index.
            held: The operands that :meth:`ahead` prefetched.
            atom: The MMA in ``held`` to which these rows belong.
            first: The first column in ``held``.
            fetched: The elements that :meth:`fetch` loaded.
        """
        if self.without is not None:  # one branch for all loads
            if self.factor != 0.0:
                self.whole.apply(values, columns, row, column, matrix, end)
            else:
                self.without.apply(values, columns, row, column, matrix, end)
        elif self.whole is not None:
            self.whole.apply(values, columns, row, column, matrix, end, leaving, held, atom, first, fetched)

    def fetch(self, columns: int, row: Any, column: Any, matrix: Any = None) -> Fetched | None:
        """Load the matrices that the epilogue reads, for the registers of :meth:`apply`.

        Returns None if a scalar argument of the launch decides which operands are read.
        """
        return (
            None if self.whole is None or self.without is not None else self.whole.fetch(columns, row, column, matrix)
        )

    def apply_each(self, values: Any, ids: Any, matrix: Any = None) -> None:
        """Apply the epilogue to registers one by one; ``ids`` holds the coordinates of each in D, which is a matrix."""
        if self.without is not None:
            if self.factor != 0.0:
                self.whole.apply_each(values, ids, matrix)
            else:
                self.without.apply_each(values, ids, matrix)
        elif self.whole is not None:
            self.whole.apply_each(values, ids, matrix)


class Evaluation:
    """An epilogue graph with its inputs and outputs, in a kernel."""

    def __init__(
        self, graph: Graph, operands: Any, stored: Any, compute: Any, extents: Any = None, lanes: Lanes | None = None,
        places: Any = None,
    ):  # fmt: skip
        self.lanes, self.places = lanes or lanes_of(0), places
        self.graph, self.operands, self.compute, self.extents = graph, operands, compute, extents
        outputs = list(zip(graph.outputs[1:], stored))
        self.stored = [(x, t) for x, t in outputs if not x.reduce and not x.block]
        self.numbers = [i for i, (x, _) in enumerate(outputs, 1) if not x.reduce and not x.block]
        self.scales = [(x, t) for x, t in outputs if x.block]
        self.reduced = [(x, t) for x, t in outputs if x.reduce]
        self.kept = graph.kept
        whole = graph.whole_inputs
        self.scalars = [
            None if x.kind != "scalar" else cute.Int64(t if x.number else t[0]) if i in whole else
            t if x.number else t[0].to(compute) for i, (x, t) in enumerate(zip(graph.inputs, operands))
        ]  # fmt: skip

    def ahead(self, columns: int, rows: list[Any], column: Any, matrix: Any) -> Ahead:
        """See :meth:`Fused.ahead`."""
        found = self._columns(columns, column, matrix)
        return Ahead(found, [self._of_rows(self._rows(row, matrix), matrix) for row in rows])

    def _rows(self, row: Any, matrix: Any) -> list[Any]:
        """Return a thread's two rows in D, among the 16 rows from ``row`` on."""
        rows = [row + self.lanes.of_lane(cute.arch.lane_idx(), half) for half in range(2)]
        return rows if self.places is None else [self.places.row(r, matrix) for r in rows]

    def _of_rows(self, rows: list[Any], matrix: Any) -> list[list[Any]]:
        """Return each input's values in two rows of D, or its rows there."""
        return [self._of_row(r, matrix if self.places is None else None) for r in rows]

    def _columns(self, columns: int, column: Any, matrix: Any) -> AnyColumns:
        """Return the per-column operands of ``columns`` accumulator columns from ``column`` on."""
        of = matrix if self.places is None else None
        lines = [_vector(x, t, of) if x.kind == "row" else None for x, t in zip(self.graph.inputs, self.operands)]
        at = None if self.places is None else lambda place: self.places.column(place, matrix)
        if any(x.kind == "aux" for x in self.graph.inputs):
            return OwnColumns(self.graph.inputs, lines, column, self.compute, at)
        return Columns(self.graph.inputs, lines, column, columns, self.compute, at)

    def apply(
        self, values: Any, columns: int, row: Any, column: Any, matrix: Any, end: Any,
        leaving: Mapping[Any, Leaving] = MappingProxyType({}), ahead: Ahead | None = None, atom: int = 0,
        offset: int = 0, fetched: Fetched | None = None,
    ) -> None:  # fmt: skip
        """See :meth:`Fused.apply`."""
        rows = self._rows(row, matrix)
        if ahead is None:
            ahead = Ahead(self._columns(columns, column, matrix), [self._of_rows(rows, matrix)])
        held, of_columns = ahead.rows[atom], ahead.columns
        if self.graph.paired:
            self._apply_pairs(values, columns, rows, column, matrix, end, held, of_columns, offset // 8)
            return
        of_matrix = matrix
        if self.places is not None:
            matrix = None
        to_rows = _before(rows, end)
        first = column + cute.arch.lane_idx() % 4 * 2
        totals = [_Totals(x, t, self.extents, rows, matrix) for x, t in self.reduced]
        wholes = self._whole_rows(values, columns, rows, held, of_columns, first, matrix)
        widths = next(iter(leaving.values())).widths if leaving else (self.graph.block or columns,)
        if self.graph.block:
            widths *= columns // self.graph.block
        step = 2 if leaving else 1  # groups of 8 columns in an iteration
        for block in cute.range_constexpr(len(widths)):
            known, start, width = wholes, sum(widths[:block]), widths[block]
            staged, *together = leaving or (None,)
            buffer = leaving[staged].begin(block) if leaving else None
            held_back = {n: cute.make_rmem_tensor(width // 2, cute.Float32) for n in together}
            if self.graph.block:
                known = self._blocks(values, start, width, rows, held, of_columns, first, matrix, wholes)
                self._store_scales(known, to_rows, (column + start) // width, matrix)
            # held in registers, so the passes unroll this loop
            for k in range(start // (8 * step), (start + width) // (8 * step)):
                sixteen = cute.make_rmem_tensor(8, cute.Float32) if leaving else None
                for part in cute.range_constexpr(step):
                    j = k * step + part
                    at = first + j * 8
                    at = at if self.places is None else self.places.column(at, of_matrix)
                    both: list[Any] = []
                    two_columns = of_columns.pair(offset // 8 + j)
                    drawn_here = self._drawn(rows, at, matrix)
                    for half in cute.range_constexpr(2):
                        elements = self._elements(held[half], two_columns, at, fetched, j * 4 + 2 * half)
                        found: list[Any] = []
                        for i in cute.range_constexpr(2):
                            place = {"row": rows[half], "column": at + i, "matrix": matrix, **known[half]}
                            place |= {which: words[2 * half + i] for which, words in drawn_here.items()}
                            n = j * 4 + (2 * half + i)
                            place |= {} if self.kept is None else {self.kept: values[n]}
                            found.append(evaluated(self.graph, values[n], elements[i], place))
                            values[n] = self.compute(found[i][self.graph.outputs[0].node])
                        for which, (x, t) in zip(self.numbers, self.stored):
                            if which in leaving:
                                to = sixteen if which == staged else held_back[which]
                                start_of = part * 4 if which == staged else (j - start // 8) * 4
                                for i in cute.range_constexpr(2):
                                    to[start_of + (2 * half + i)] = cute.Float32(found[i][x.node])  # type: ignore[index]
                                continue
                            to = t[None, None, matrix] if x.batch else t
                            store_two([f[x.node] for f in found], to, x, to_rows[half], at)
                        both.append(found)
                    for total in totals:
                        total.take([[f[total.x.node] for f in found] for found in both], at)
                if leaving:
                    leaving[staged].stage(buffer, sixteen, k - start // 16)
            if leaving:
                leaving[staged].end(buffer, block)
            for which in together:
                leaving[which].put(held_back[which], block)
        for total in totals:
            total.store(column // columns)

    def fetch(self, columns: int, row: Any, column: Any, matrix: Any) -> Fetched:
        """See :meth:`Fused.fetch`. Matrices whose adjacent elements are not aligned are loaded later."""
        found: dict[int, Any] = {}
        held = self._of_rows(self._rows(row, matrix), matrix)
        first = column + cute.arch.lane_idx() % 4 * 2
        for which, x in enumerate(self.graph.inputs):
            if x.kind == "aux" and x.pairs and not x.half and self.places is None:
                values = found[which] = cute.make_rmem_tensor(columns // 2, self.operands[which].element_type)
                for j in range(columns // 8):  # held in registers, so the passes unroll this loop
                    for half in cute.range_constexpr(2):
                        both = neighbours_of(held[half][which], first + j * 8, x)
                        for i in cute.range_constexpr(2):
                            values[j * 4 + (2 * half + i)] = both[i]
        return Fetched(found)

    def _drawn(self, rows: list[Any], column: Any, matrix: Any) -> dict[int, list[Any]]:
        """Return the random numbers of two adjacent columns in each of two rows, by node index.

        Empty unless one Philox counter yields all four numbers, which requires the native row mapping.
        """
        found: dict[int, list[Any]] = {}
        if self.lanes.half != 8:
            return found
        for i, node in enumerate(self.graph.nodes):
            if node.op == "random" and node.value == "":
                seeds = [self._whole(k) for k in node.operands]
                found[i] = [number_of(word) for word in words_of(rows[0], column, matrix, *seeds)]
        return found

    def _whole(self, which: int) -> Any:
        """Return a seed or an offset."""
        node = self.graph.nodes[which]
        return constant_of(node) if node.op == "constant" else self.scalars[node.value]

    def _blocks(
        self, values: Any, start: int, width: int, rows: list[Any], held: list[Any], of_columns: AnyColumns, first: Any,
        matrix: Any, wholes: list[dict[int, Any]],
    ) -> list[dict[int, Any]]:  # fmt: skip
        """Return, for a thread's two rows, the values common to ``width`` columns from ``start`` on, by node index.

        They include the values common to the whole row, ``wholes``.
        """
        known = [dict(whole) for whole in wholes]
        for which, (node, shared) in enumerate(zip(self.graph.nodes, self.graph.of_blocks)):
            if node.op == "block":
                totals = cute.make_rmem_tensor(2, cute.Float32)
                totals.fill(REDUCTIONS["max"])
                for j in range(start // 8, (start + width) // 8):  # held in registers, so the passes unroll this loop
                    at, two_columns = first + j * 8, of_columns.pair(j)
                    for half in cute.range_constexpr(2):
                        elements = self._elements(held[half], two_columns, at)
                        for i in cute.range_constexpr(2):
                            place = {"row": rows[half], "column": at + i, "matrix": matrix, **known[half]}
                            n = j * 4 + (2 * half + i)
                            found = evaluated(self.graph, values[n], elements[i], place, which)
                            # the operand of the reduction replaces the accumulator, so that it is computed once
                            if self.kept is not None:
                                values[n] = self.compute(found[self.kept])
                            value = cute.Float32(found[node.operands[0]])
                            inside = value if at + i < self.extents[1] else cute.Float32(REDUCTIONS["max"])
                            totals[half] = cute.max(totals[half], inside)
                for half in cute.range_constexpr(2):
                    total = totals[half]
                    for step in (1, 2):
                        total = cute.max(total, cute.arch.shuffle_sync_bfly(total, step))
                    known[half][which] = total
            elif shared:
                for half in cute.range_constexpr(2):
                    operands = [
                        constant_of(self.graph.nodes[k]) if self.graph.nodes[k].op == "constant" else known[half][k]
                        for k in node.operands
                    ]
                    known[half][which] = value_of(node, None, None, operands, {})
        return known

    def _store_scales(self, known: list[dict[int, Any]], rows: list[Any], block: Any, matrix: Any) -> None:
        """Store the per-block outputs of a thread's two rows. Four threads share a row."""
        for x, t in self.scales:
            to = t[None, None, matrix] if x.batch else t
            for half in cute.range_constexpr(2):
                value = cute.Float32(known[half][x.node])
                if (cute.arch.lane_idx() % 4 == 0) & (rows[half] < to.shape[0]) & (block < to.shape[1]):
                    if to.element_type is cute.Float32:
                        to[rows[half], block] = value
                    else:  # a power of two, of which only the exponent is stored
                        to[rows[half], block] = (value.bitcast(cute.Int32) >> 23).to(to.element_type)

    def _whole_rows(
        self, values: Any, columns: int, rows: list[Any], held: list[Any], of_columns: AnyColumns, first: Any,
        matrix: Any,
    ) -> list[dict[int, Any]]:  # fmt: skip
        """Return the row reductions of a thread's two rows, by node index. Four threads share a row.

        Reductions run in order, because each may need the results of earlier ones.
        """
        wholes: list[dict[int, Any]] = [{}, {}]
        room = self.extents[1] - first if self.graph.whole_rows else None  # columns that remain from the first one on
        for which, node in enumerate(self.graph.nodes):
            if node.op == "whole":
                combine, none = COMBINE[node.value], REDUCTIONS[node.value]
                totals = cute.make_rmem_tensor(2, cute.Float32)
                totals.fill(none)
                for j in range(columns // 8):  # held in registers, so the passes unroll this loop
                    at, two_columns = first + j * 8, of_columns.pair(j)
                    for half in cute.range_constexpr(2):
                        elements = self._elements(held[half], two_columns, at)
                        for i in cute.range_constexpr(2):
                            place = {"row": rows[half], "column": at + i, "matrix": matrix, **wholes[half]}
                            n = j * 4 + (2 * half + i)
                            found = evaluated(self.graph, values[n], elements[i], place, which)
                            value = cute.Float32(found[node.operands[0]])
                            inside = value if j * 8 + i < room else cute.Float32(none)
                            totals[half] = combine(totals[half], inside)
                for half in cute.range_constexpr(2):
                    total = totals[half]
                    for step in (1, 2):
                        total = combine(total, cute.arch.shuffle_sync_bfly(total, step))
                    wholes[half][which] = total
        return wholes

    def _apply_pairs(
        self, values: Any, columns: int, rows: list[Any], column: Any, matrix: Any, end: Any, held: list[Any],
        of_columns: AnyColumns, group: int,
    ) -> None:  # fmt: skip
        """Apply a graph that combines pairs of adjacent columns; see :meth:`Fused.apply`.

        Each thread computes one result per 8 accumulator columns. Four threads exchange the results of two groups of 8
        columns, which then fill the first half of the registers in the layout of C.
        """
        graph, lane = self.graph, cute.arch.lane_idx()
        halves = graph.halves
        to_rows = _before(rows, end)
        first = column + lane % 4 * 2
        totals = [_Totals(x, t, self._extents(halves[x.node]), rows, matrix) for x, t in self.reduced]
        for k in range(columns // 16):  # held in registers, so the passes unroll this loop
            results: list[list[Any]] = [[], []]
            for part in cute.range_constexpr(2):
                at, two_columns = first + k * 16 + part * 8, of_columns.pair(group + k * 2 + part)
                both: list[Any] = []
                for half in cute.range_constexpr(2):
                    elements = self._elements(held[half], two_columns, at)
                    n = k * 8 + (part * 4 + half * 2)
                    place = {"row": rows[half], "column": at, "matrix": matrix}
                    found = evaluated_pair(graph, [values[n], values[n + 1]], elements, place)
                    d = found[graph.outputs[0].node]
                    if halves[graph.outputs[0].node]:
                        results[half].append(self.compute(d[0]))
                    else:
                        values[n], values[n + 1] = self.compute(d[0]), self.compute(d[1])
                    for x, t in self.stored:
                        to = t[None, None, matrix] if x.batch else t
                        if halves[x.node]:
                            store_one(found[x.node][0], to, to_rows[half], at // 2)
                        else:
                            store_two(found[x.node], to, x, to_rows[half], at)
                    both.append(found)
                for total in totals:
                    of_half = halves[total.x.node]
                    total.take([found[total.x.node] for found in both], at // 2 if of_half else at)
            if graph.half:
                for half in cute.range_constexpr(2):
                    pair = neighbours(results[half], lane)
                    for i in cute.range_constexpr(2):
                        values[k * 4 + (half * 2 + i)] = pair[i]
        for total in totals:
            total.store(column // columns)

    def _extents(self, half: bool) -> tuple[Any, Any]:
        """Return the number of rows, and of accumulator columns or half of them."""
        if not self.reduced:
            return None, None
        rows, columns = self.extents
        columns = columns * 2 if self.graph.half else columns
        return rows, columns // 2 if half else columns

    def apply_each(self, values: Any, ids: Any, matrix: Any) -> None:
        """See :meth:`Fused.apply_each`."""
        for i in range(cute.size(values)):  # held in registers, so the passes unroll this loop
            row, column = ids[i]
            elements = [
                element_of(line, column, self.compute) if x.kind in ("row", "aux") else line
                for x, line in zip(self.graph.inputs, self._of_row(row, matrix))
            ]
            found = evaluated(self.graph, values[i], elements, {"row": row, "column": column, "matrix": matrix})
            values[i] = self.compute(found[self.graph.outputs[0].node])
            for x, t in self.stored:
                to = t[None, None, matrix] if x.batch else t
                store_one(found[x.node], to, row, column)

    # Elements outside of D are not used, but their loads must be in bounds. Indices are therefore clamped.

    def _of_row(self, row: Any, matrix: Any) -> list[Any]:
        """Return each input's value in a row of D, its row there, or its scalar."""
        found = []
        for x, t, scalar in zip(self.graph.inputs, self.operands, self.scalars):
            if x.kind == "scalar":
                found.append(scalar)
            elif x.kind == "matrix":
                found.append(t[0 if matrix is None else matrix].to(self.compute))
            elif x.kind == "row":
                found.append(_vector(x, t, matrix))
            else:
                t = t[(*(None,) * (1 if x.kind == "column" else 2), matrix)] if x.batch else t
                rows = cute.size(t) if x.kind == "column" else cute.size(t, mode=[0])
                at = cute.min(row, rows - 1)
                found.append(t[at].to(self.compute) if x.kind == "column" else t[at, None])
        return found

    def _elements(
        self, of_row: list[Any], of_columns: list[Any], column: Any, fetched: Fetched | None = None, at: Any = 0
    ) -> list[list[Any]]:
        """Return each input's values in two adjacent columns of a row, whose registers begin at ``at``."""
        pairs: list[Any] = []
        for which, (x, held, both) in enumerate(zip(self.graph.inputs, of_row, of_columns)):
            if fetched is not None and which in fetched.values:
                pairs.append([fetched.values[which][at + i].to(self.compute) for i in range(2)])
                continue
            pairs.append(
                both if x.kind == "row" else pair_of(held, column, x, self.compute) if x.kind == "aux" else [held, held]
            )
        return [[pair[i] for pair in pairs] for i in range(2)]


def _vector(x: Input, t: Any, matrix: Any) -> Any:
    """Return a per-column vector of one matrix of a batch."""
    return t[None, matrix] if x.batch else t


def _before(rows: list[Any], end: Any) -> list[Any]:
    """Replace rows from ``end`` on by an index that is out of bounds in any matrix."""
    return rows if end is None else [cute.where(r < end, cute.Int32(r), cute.Int32(1 << 30)) for r in rows]


class _Totals:
    """A row or column reduction over a warp's registers: 16 rows of some columns.

    ``t`` has shape (parts, M) or (parts, N): a partial result per row for these columns, or per column for these rows.
    """

    def __init__(self, x: Output, t: Any, extents: Any, rows: list[Any], matrix: Any):
        self.x, self.to, self.rows, self.extents = x, t[None, None, matrix] if x.batch else t, rows, extents
        self.combine = COMBINE[x.reduce]
        self.none = REDUCTIONS[x.reduce]
        self.held = cute.make_rmem_tensor(2, cute.Float32)
        self.held.fill(self.none)

    def take(self, values: list[list[Any]], column: Any) -> None:
        """Accumulate the values of two adjacent columns, or of one column, in each of two rows."""
        m, n = self.extents
        if self.x.axis == "n":
            for half in cute.range_constexpr(2):
                for i in cute.range_constexpr(len(values[0])):
                    value = cute.Float32(values[half][i])
                    inside = value if column + i < n else cute.Float32(self.none)
                    self.held[half] = self.combine(self.held[half], inside)
            return
        lane = cute.arch.lane_idx()
        for i in cute.range_constexpr(len(values[0])):
            total = cute.Float32(self.none)
            for half in cute.range_constexpr(2):
                value = cute.Float32(values[half][i])
                total = self.combine(total, value if self.rows[half] < m else cute.Float32(self.none))
            for step in (4, 8, 16):
                total = self.combine(total, cute.arch.shuffle_sync_bfly(total, step))
            strip = (self.rows[0] - lane // 4) // STRIP
            if (lane < 4) & (column + i < n) & (self.rows[0] < m):
                self.to[strip, column + i] = total

    def store(self, part: Any) -> None:
        """Store the row reductions."""
        if self.x.axis == "n":
            lane = cute.arch.lane_idx()
            for half in cute.range_constexpr(2):
                total = self.held[half]
                for step in (1, 2):
                    total = self.combine(total, cute.arch.shuffle_sync_bfly(total, step))
                # a tile may extend past the end of D
                inside = (self.rows[half] < self.extents[0]) & (part < self.to.shape[0])
                if (lane % 4 == 0) & inside:
                    self.to[part, self.rows[half]] = total


def _add(x: Any, y: Any) -> Any:
    return x + y


COMBINE = {"sum": _add, "max": cute.max, "min": cute.min}
"""Reduction -> function that combines two values."""


def neighbours(values: list[Any], lane: Any) -> list[Any]:
    """Exchange values within a quad: thread ``q`` has columns ``q`` and ``4 + q``, and gets ``2 q`` and ``2 q + 1``."""
    second, upper = lane % 2 == 1, lane % 4 >= 2
    sent = [values[1] if second else values[0], values[0] if second else values[1]]
    start, part = lane - lane % 4 + lane % 2 * 2, lane % 4 // 2
    got = [cute.arch.shuffle_sync(sent[0], start + part), cute.arch.shuffle_sync(sent[1], start + 1 - part)]
    return [got[1] if upper else got[0], got[0] if upper else got[1]]


def store_one(value: Any, to: Any, row: Any, column: Any) -> None:
    """Store an element if it is in bounds."""
    if (row < cute.size(to, mode=[0])) & (column < cute.size(to, mode=[1])):
        to[row, column] = _stored([value], to.element_type)[0]


def store_two(values: list[Any], to: Any, x: Output, row: Any, column: Any) -> None:
    """Store those of two adjacent elements of a row that are in bounds."""
    rows, columns = extents_of(to)
    kind = to.element_type
    if x.pairs:
        if (row < rows) & (column < columns):
            both = _stored(values, kind)
            line = to[row, None]
            start = (line.iterator + (cute.crd2idx(column, line.layout) if x.split else column)).align(
                2 * kind.width // 8
            )
            cute.make_tensor(start, cute.make_layout(2)).store(both.load())
    else:
        for i in cute.range_constexpr(2):
            if (row < rows) & (column + i < columns):
                to[row, column + i] = _stored([values[i]], kind)[0]


def _stored(values: list[Any], kind: Any) -> Any:
    """Convert values to the stored type. 8-bit types and integers saturate."""
    held = cute.make_rmem_tensor(len(values), cute.Float32)
    for i in cute.range_constexpr(len(values)):
        held[i] = cute.Float32(values[i])
    found = cute.make_rmem_tensor(len(values), kind)
    found.store(rounded(held, kind))
    return found


def evaluated_pair(graph: Graph, accum: list[Any], inputs: list[list[Any]], place: dict[str, Any]) -> list[Any]:
    """Return the values of all nodes for two adjacent columns. A node over half of the columns has one value."""
    values: list[list[Any]] = []
    for node, half in zip(graph.nodes, graph.halves):
        if node.op in ("even", "odd"):
            values.append([values[node.operands[0]][node.op == "odd"]])
        elif node.op == "interleave":
            values.append([values[k][0] for k in node.operands])
        elif node.op == "column":
            values.append([place["column"], place["column"] + 1])
        else:
            found = []
            for i in range(1 if half else 2):
                if node.op == "random":
                    here = {**place, "column": place["column"] // 2 if half else place["column"] + i}
                    found.append(value_of(node, None, None, [values[k][0] for k in node.operands], here))
                    continue
                operands = [values[k][min(i, len(values[k]) - 1)] for k in node.operands]
                loaded = inputs[i][node.value] if node.op == "load" else None
                found.append(value_of(node, accum[i], loaded, operands, place))
            values.append(found)
    return values


def evaluated(
    graph: Graph, accum: Any, inputs: list[Any], place: dict[Any, Any], stop: int = -1, compute: str = "f32"
) -> list[Any]:
    """Return the values of all nodes for an element, or of those before node ``stop``.

    ``place`` holds the coordinates of the element and the known row and block values, by node index.  ``compute`` is
    the type in which functions of floats are computed, ``f64`` or ``f32``.
    """
    values: list[Any] = []
    for i, node in enumerate(graph.nodes[:stop] if stop >= 0 else graph.nodes):
        if i in place:
            values.append(place[i])
            continue
        loaded = inputs[node.value] if node.op == "load" else None
        values.append(value_of(node, accum, loaded, [values[i] for i in node.operands], place, compute))
    return values


def value_of(
    node: Node, accum: Any, loaded: Any, operands: list[Any], place: dict[str, Any], compute: str = "f32"
) -> Any:
    if node.op == "accum":
        return accum
    if node.op == "constant":
        return constant_of(node)
    if node.op == "load":
        return loaded
    if node.op in place:
        return place[node.op]
    if node.op == "random" and len(operands) > 2:  # the coordinates of the element are operands
        return drawn(*operands[2:], *operands[:2])
    if node.op == "random":
        row, column = (place[n] for n in (("column", "row") if node.value == "turned" else ("row", "column")))
        return drawn(row, column, place["matrix"], *operands)
    if node.op == "hook":
        return node.value(*operands)
    if compute == "f64" and node.op in OF_FLOATS:
        return function_in_f64(node.op)(*[cute.Float64(x) for x in operands])
    if compute == "f64" and node.op == "cast":
        return cute.Float64(cute.Float64(operands[0]).to(number(node.value)))
    if node.op == "cast":
        return cute.Float32(cute.Float32(operands[0]).to(number(node.value)))
    if node.op in OF_FLOATS and not any([isinstance(x, cute.Float64) for x in operands]):
        operands = [x if isinstance(x, cute.Float32) else cute.Float32(x) for x in operands]
    return FUNCTIONS[node.op].in_kernel(*operands)
