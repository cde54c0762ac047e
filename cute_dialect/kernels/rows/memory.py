"""Storage of rows: a thread's elements of a row in shared memory, in registers, or some of it in each.

A row is read in vectors of 16 bytes. If it is not aligned, its vectors begin at the first 16-byte boundary. The up to
seven elements before them, and those after the last vector, are its edges, with one element per thread.

Elements stay in registers in their own type, two 16-bit elements each, and are converted to ``f32`` on use. Long rows
go through slots in shared memory. A thread copies what it will itself read, so no synchronization is needed, and no
register holds an element from its first use to its last.
"""

# Traced values define operators and element types that pyright cannot check.
# pyright: basic, reportArgumentType=false, reportOptionalMemberAccess=false, reportOptionalOperand=false

from collections.abc import Callable
from itertools import pairwise
from typing import Any, NamedTuple

import cute_dialect.lang as cute
from cute_dialect.kernels.gemm.config import EVICT_FIRST
from cute_dialect.kernels.rows.config import HINTS, Plan
from cute_dialect.kernels.rows.sharing import Sharing
from cute_dialect.lang.nvgpu import LoadCacheMode, cpasync
from cute_dialect.lang.values.dtypes import type_of_mlir

STEP = 4
"""Elements that are converted to ``f32`` at once when a row is written in parts, to limit registers."""


class Place(NamedTuple):
    """Location of a row."""

    row: Any  # index of the row
    exists: Any  # whether the index is in range
    source: Any  # index clamped to the last row
    head: Any  # elements before the first vector
    vectors: Any  # number of vectors
    edges: list[tuple[Any, Any]]  # columns of this thread's edges, and whether it has them


class Line(NamedTuple):
    """This thread's chunks of a row."""

    place: Place
    slot: Any  # start of the first ``shared`` chunks in shared memory
    values: Any  # registers of the other chunks
    edges: Any = None  # the edges, or None if rows have none
    shared: int = 0
    coming: int = 0  # copy groups issued from this row's first one on; 0 if the row has arrived
    second: Any = None  # the chunks of a second row that is read with this one, or None
    second_edges: Any = None  # its edges


# --------------------------------------------------------------------------------------------------- register tensors


def part(values: cute.Tensor, first: int, count: int) -> cute.Tensor:
    """Return ``count`` elements of a register tensor from ``first`` on."""
    return cute.make_tensor(values.iterator + first, cute.make_layout(count))


def grouped(values: cute.Tensor) -> cute.Tensor:
    """Return a register tensor as ``(group, groups)`` with up to four elements per group, which shortens dependency
    chains.
    """
    n = cute.size(values)
    group = min(4, n & -n)
    return cute.make_tensor(values.iterator, cute.make_layout((group, n // group)))


def combined(values: cute.Tensor, combine: Callable[..., Any], term: Callable[..., Any]) -> Any:
    """Reduce ``term`` of the elements of a register tensor to one number, in groups."""
    groups = grouped(values)
    total = term(groups[None, 0].load())
    for i in range(1, groups.shape[1]):
        total = combine(total, term(groups[None, i].load()))
    return total.reduce(combine)


def mapped(values: cute.Tensor, function: Callable[..., Any]) -> cute.Tensor:
    """Apply a function to the elements of a register tensor as ``f32``, in groups, and return new registers."""
    made = cute.make_rmem_tensor(cute.size(values), cute.Float32)
    groups, results = grouped(values), grouped(made)
    for i in range(groups.shape[1]):
        results[None, i].store(function(groups[None, i].load().to(cute.Float32)))
    return made


def shifted(words: list[Any], by: Any, bits: int) -> list[Any]:
    """Return the vector that starts ``by`` elements into two consecutive ones, given as eight 32-bit words."""
    step = 32 // bits  # elements per word
    words = [cute.where((by // step) & 2 != 0, words[i + 2], words[i]) for i in range(6)]
    words = [cute.where((by // step) & 1 != 0, words[i + 1], words[i]) for i in range(5)]
    if step == 1:
        return words[:4]
    odd = by & 1 != 0  # half a word: the upper 16 bits of one word and the lower 16 bits of the next
    halves = [(x >> 16) | (y << 16) for x, y in pairwise(words)]
    return [cute.where(odd, y, x) for x, y in zip(words[:4], halves)]


def widened(values: cute.Tensor, fresh: bool) -> Any:
    """Load registers as ``f32``. ``fresh`` keeps the optimizer from reusing an earlier conversion, which needs
    registers.
    """
    found = values.load()
    if fresh and found.size * found.dtype.width % 32 == 0:
        found = cute.arch.opaque(found)
    return found.to(cute.Float32)


class RowMemory:
    """Memory of the rows of a thread: ``x`` to read, ``y`` to write, and the vectors ``weights`` that all rows
    share.
    """

    def __init__(self, plan: Plan, sharing: Sharing, x: cute.Tensor, weights: list[cute.Tensor], y: cute.Tensor):
        self.plan, self.config, self.sharing = plan, plan.config, sharing
        self.x, self.weights, self.y = x, weights, y
        self.added: Any = None
        """A matrix that is added to ``x`` first, or None."""
        self.n = x.shape[1]
        self.dtype: Any = type_of_mlir(plan.element)
        self.of_rows: Any = None
        """The gradient of a number per row, or None."""
        self.neutral = 0.0
        """Value of elements past the end of a row."""
        # This thread's first element in a row, and in the part of a row that the block has.
        self.first, self.first_in_block = sharing.thread * plan.width, sharing.tid * plan.width
        cache = LoadCacheMode.GLOBAL
        self.fetch_atom = cute.make_copy_atom(cpasync.CopyG2SOp(cache), self.dtype, num_bits_per_copy=128)

    # ------------------------------------------------------------------------------------------------ where a row is

    def place(self, row: Any) -> Place:
        """Return the location of a row.

        Threads past the last row read that one. They take part in shuffles, but write nothing.
        """
        rows = self.x.shape[0]
        source, exists = row, True
        if self.config.rows * self.config.together > 1:
            source, exists = cute.min(row, rows - 1), row < rows
        if self.plan.whole:
            return Place(row, exists, source, 0, self.n // self.plan.width, [])
        return self.placed(row, exists, source, self.head(source))

    def head(self, row: Any) -> Any:
        """Return the number of elements of a row before its first vector."""
        return cute.min(self.skew(self.x, row, self.plan.width), self.n)

    def placed(self, row: Any, exists: Any, source: Any, head: Any) -> Place:
        """Return the location of a row with ``head`` elements before its first vector."""
        plan, n, w = self.plan, self.n, self.plan.width
        vectors = (n - head) // w
        after = n - head - vectors * w
        edges: list[tuple[Any, Any]] = []
        for j in range(plan.edges):
            # The first threads have the elements before the first vector, the next ones those after the last vector.
            i = self.sharing.thread + j * self.config.sharing
            column = cute.where(i < w, i, n - after + i - w)
            edges.append((column, cute.where(i < w, i < head, i - w < after)))
        return Place(row, exists, source, head, vectors, edges)

    def skew(self, tensor: cute.Tensor, row: Any, w: int) -> Any:
        """Return the number of elements of a row before its first 16-byte boundary."""
        address = tensor[row, None].iterator.toint().to(cute.Int32)
        return ((0 - address) & 15) // (16 // w)

    def begin(self, tensor: cute.Tensor, place: Place) -> Any:
        """Return the start of this thread's vectors in a row of ``x``, or of a matrix with the same alignment."""
        start = tensor[place.source, None].iterator
        return start + self.first if self.plan.whole else (start + place.head).align(16) + self.first

    def chunks(self, begin: Any, start: int, count: int) -> cute.Tensor:
        """Return chunks of a row from ``start`` on as ``(width, count)``."""
        return self._chunks(begin, start, count, self.plan.step)

    def in_slot(self, slot: Any, start: int, count: int) -> cute.Tensor:
        """Return chunks of a row in shared memory."""
        return self._chunks(slot, start, count, self.plan.block_step)

    def in_registers(self, values: cute.Tensor, start: int, count: int) -> cute.Tensor:
        """Return chunks of a row in registers."""
        return self._chunks(values.iterator, start, count, self.plan.width)

    def _chunks(self, begin: Any, start: int, count: int, step: int) -> cute.Tensor:
        return cute.make_tensor(begin + start * step, cute.make_layout((self.plan.width, count), stride=(1, step)))

    def has_last(self, place: Place) -> Any:
        """Return True if this thread has the last chunk of a row."""
        return self.sharing.thread < place.vectors - (self.plan.chunks - 1) * self.config.sharing

    def pieces(self, place: Place, start: int, count: int) -> list[tuple[int, int, Any]]:
        """Split chunks into those that all threads have and the last one of a row, each with a predicate for this
        thread.
        """
        whole = min(count, self.plan.chunks - 1 - start)
        pieces = [(start, whole, True)] if whole > 0 else []
        return pieces if whole == count else [*pieces, (self.plan.chunks - 1, 1, self.has_last(place))]

    # ------------------------------------------------------------------------------------------------------- reading

    def registers(self, chunks: int) -> cute.Tensor:
        """Allocate registers for chunks."""
        return cute.make_rmem_tensor(chunks * self.plan.width, self.dtype)

    def load(self, tensor: cute.Tensor, place: Place, start: int, count: int, *, alike: Any = True) -> cute.Tensor:
        """Load chunks of a row with all loads in flight together. Missing elements are identity elements.

        ``alike`` is True if rows of this matrix are aligned as those of ``x``. Others are loaded element by element.
        """
        values = self.registers(count)
        if start + count == self.plan.chunks:
            self.in_registers(values, count - 1, 1).fill(self.neutral)
        for first, n, mine in self.pieces(place, start, count):
            if mine:
                target = self.in_registers(values, first - start, n)
                if alike:
                    cute.autovec_copy(self.chunks(self.begin(tensor, place), first, n), target)
                else:
                    at = tensor[place.source, None].iterator + (place.head + self.first)
                    cute.autovec_copy(self.chunks(at, first, n), target)
        return values

    def load_once(self, source: cute.Tensor, target: cute.Tensor) -> None:
        """Load vectors ``(width, count)`` into registers with the configured cache hint.

        The hint marks lines that are not read again, so that they are evicted first.
        """
        if not self.config.hint:
            cute.autovec_copy(source, target)
            return
        text = f"ld.global.{HINTS[self.config.hint]}.L2::cache_hint.v4.b32 {{$0, $1, $2, $3}}, [$4], $5;"
        words, w = cute.make_rmem_tensor(4, cute.Uint32), self.plan.width
        for i in range(source.shape[1]):
            found = cute.arch.inline_ptx(
                text, source[None, i].iterator, cute.Uint64(EVICT_FIRST), result=(cute.Uint32,) * 4, side_effects=False
            )
            for k in cute.range_constexpr(4):
                words[k] = found[k]
            part(target, i * w, w).store(words.load().bitcast(self.dtype))

    def load_edges(self, tensor: cute.Tensor, place: Place) -> cute.Tensor | None:
        """Load the edges of a row. Missing elements are identity elements."""
        if not place.edges:
            return None
        values = cute.make_rmem_tensor(len(place.edges), self.dtype)
        values.fill(self.neutral)
        for j, (column, mine) in enumerate(place.edges):
            if mine:
                values[j] = tensor[place.source, column]
        return values

    def number(self, place: Place) -> Any:
        """Load the gradient of the row's number as ``f32``."""
        return self.of_rows[place.source].to(cute.Float32)

    def first_element(self, place: Place) -> Any:
        """Load the first element of a row, with the residual added."""
        first = self.x[place.source, 0]
        if self.added is None:
            return first
        return (first.to(cute.Float32) + self.added[place.source, 0].to(cute.Float32)).to(self.dtype)

    def alike(self, tensor: cute.Tensor, place: Place) -> Any:
        """Return True if a row of another matrix is aligned as that of ``x``."""
        if self.plan.whole:
            return True
        w = self.plan.width
        return self.skew(tensor, place.source, w) == self.skew(self.x, place.source, w)

    def from_slot(self, slot: Any, start: int, count: int) -> cute.Tensor:
        """Load chunks from shared memory."""
        values = self.registers(count)
        cute.autovec_copy(self.in_slot(slot, start, count), self.in_registers(values, 0, count))
        return values

    def read(self, line: Line, start: int, count: int) -> cute.Tensor:
        """Return chunks of a row in registers, reloaded if they are in shared memory."""
        if start < line.shared:
            return self.from_slot(line.slot, start, count)
        w = self.plan.width
        return part(line.values, (start - line.shared) * w, count * w)

    def arrived(self, line: Line, number: int) -> cute.Tensor:
        """Wait for one of the plan's parts of a row, and return it."""
        if line.coming and number < len(self.plan.groups):
            cute.arch.cp_async_wait_group(line.coming - 1 - number)
        return self.read(line, *self.plan.parts[number])

    # ------------------------------------------------------------------------------------------------------- weights

    def weights_of(self, place: Place, start: int, count: int) -> list[cute.Tensor]:
        """Load chunks of the weights."""
        if self.plan.whole:
            return [self._whole_weights(vector, place, start, count) for vector in self.weights]
        return [self._moved_weights(vector, place, start, count) for vector in self.weights]

    def _whole_weights(self, vector: cute.Tensor, place: Place, start: int, count: int) -> cute.Tensor:
        values = self.registers(count)
        for first, n, mine in self.pieces(place, start, count):
            if mine:
                source = self.chunks(vector.iterator + self.first, first, n)
                cute.autovec_copy(source, self.in_registers(values, first - start, n))
        return values

    def _moved_weights(self, vector: cute.Tensor, place: Place, start: int, count: int) -> cute.Tensor:
        """Load the weights of a row whose vectors begin at column ``head``, from vectors that begin at column 0.

        Each vector of the row overlaps two vectors of the weights.
        """
        w, values = self.plan.width, self.registers(count)
        base = vector.iterator.align(16)
        for chunk in range(start, start + count):
            mine = chunk < self.plan.chunks - 1 or self.has_last(place)
            if mine:
                number = self.sharing.thread + chunk * self.config.sharing
                two = self.registers(2)
                at = cute.make_tensor(base + number * w, cute.make_layout((w, 2), stride=(1, w)))
                cute.autovec_copy(at[None, 0], self.in_registers(two, 0, 1)[None, 0])
                # Only the last two chunks can contain the last vector of the row.
                whole = chunk < self.plan.chunks - 2 or (number + 2) * w <= self.n
                if whole:
                    cute.autovec_copy(at[None, 1], self.in_registers(two, 1, 1)[None, 0])
                else:
                    for k in cute.range_constexpr(w - 1):
                        if k < place.head:
                            two[w + k] = vector[(number + 1) * w + k]
                words = two.load().bitcast(cute.Uint32)
                found = shifted([words[k] for k in range(8)], place.head, self.dtype.width)
                made = cute.make_rmem_tensor(4, cute.Uint32)
                for k in cute.range_constexpr(4):
                    made[k] = found[k]
                part(values, (chunk - start) * w, w).store(made.load().bitcast(self.dtype))
        return values

    def edge_weights(self, place: Place) -> list[cute.Tensor]:
        """Load the weights of the edges."""
        found: list[cute.Tensor] = []
        for vector in self.weights:
            values = cute.make_rmem_tensor(len(place.edges), self.dtype)
            for j, (column, mine) in enumerate(place.edges):
                if mine:
                    values[j] = vector[column]
            found.append(values)
        return found

    # ------------------------------------------------------------------------------------------------- shared memory

    def make_slots(self, places: list[Place]) -> list[Any]:
        """Allocate shared memory for rows, and return the start of this thread's elements of each."""
        plan = self.plan
        slots = cute.smem_tensor(self.dtype, cute.make_layout(len(places) * plan.share)).iterator
        found = [slots + (i * plan.share + self.first_in_block) for i in range(len(places))]
        if plan.shared == plan.chunks:
            # Fill the last chunk of threads that lack it with identity elements.
            for place, slot in zip(places, found):
                if not self.has_last(place):
                    rest = self.registers(1)
                    rest.fill(self.neutral)
                    cute.autovec_copy(self.in_registers(rest, 0, 1), self.in_slot(slot, plan.chunks - 1, 1))
        return found

    def fetch(self, place: Place, slot: Any, start: int, count: int) -> None:
        """Issue the copies of chunks of a row to a slot. Each thread copies what it will read."""
        begin = self.begin(self.x, place)
        for first, n, mine in self.pieces(place, start, count):
            if mine:
                cute.copy(self.fetch_atom, self.chunks(begin, first, n), self.in_slot(slot, first, n))

    # ------------------------------------------------------------------------------------------------------- writing

    def write(self, lines: list[Line], function: Callable[..., Any], weights: list[list[cute.Tensor]]) -> None:
        """Write the rows.

        Long rows are written span by span. Otherwise all stores come last, because loads of weights cannot be moved
        past them. If rows come in parts, or weights need many registers, the weights of the next spans are loaded ahead
        of a span's stores.

        Args:
            lines: The rows.
            function: ``function(i, elements, weights)`` computes elements of row ``i`` in ``f32``. The weights are
                followed by elements of the second row, if there is one.
            weights: The weights of the first spans, already loaded.
        """
        plan, moved = self.plan, bool(self.weights) and not self.plan.whole
        in_parts, by_span = self.config.in_parts or moved, self.config.is_long or moved
        w, spans, place = plan.width, plan.spans, lines[0].place
        fresh = in_parts or plan.weights > 0
        outs = [None if by_span else self.registers(plan.chunks) for _ in lines]
        of_edges = self.edge_weights(place) if place.edges and not in_parts else []
        for number, (start, count) in enumerate(spans):
            ahead = len(spans) if not in_parts else number + 1
            weights = weights + [self.weights_of(place, *span) for span in spans[len(weights) : ahead]]
            n = count * w
            results = [self.registers(count) if x is None else part(x, start * w, n) for x in outs]
            for i, (line, out) in enumerate(zip(lines, results)):
                x = self.read(line, start, count)
                size = STEP if in_parts and n % STEP == 0 else n
                for at in cute.range_constexpr(0, n, size):
                    of = [widened(part(t, at, size), False) for t in weights[number]]
                    if line.second is not None:
                        of = [*of, widened(part(line.second, start * w + at, size), fresh)]
                    element = function(i, widened(part(x, at, size), fresh and start >= line.shared), of)
                    part(out, at, size).store(element.to(self.dtype))
            if by_span:  # load the next weights first, and one more span once registers of the row are free
                ahead = number + (2 if number < 2 else 3)
                weights = weights + [self.weights_of(place, *span) for span in spans[len(weights) : ahead]]
                for line, out in zip(lines, results):
                    self.store(self.y, line.place, out, start, count)
        if not by_span:
            for line, out in zip(lines, outs):
                self.store(self.y, line.place, out, 0, plan.chunks)
        if place.edges:
            of_edges = self.edge_weights(place) if in_parts else of_edges
            for i, line in enumerate(lines):
                of = [t.load().to(cute.Float32) for t in of_edges]
                of = of if line.second_edges is None else [*of, line.second_edges.load().to(cute.Float32)]
                self.store_edges(self.y, line.place, function(i, line.edges.load().to(cute.Float32), of))

    def store(self, tensor: cute.Tensor, place: Place, values: cute.Tensor, start: int, count: int) -> None:
        """Store chunks of a row if the row exists."""
        alike = self.alike(tensor, place)
        if place.exists:
            for first, n, mine in self.pieces(place, start, count):
                if mine:
                    source = self.in_registers(values, first - start, n)
                    if alike:
                        cute.autovec_copy(source, self.chunks(self.begin(tensor, place), first, n))
                    else:
                        at = tensor[place.source, None].iterator + (place.head + self.first)
                        cute.autovec_copy(source, self.chunks(at, first, n))

    def store_edges(self, tensor: cute.Tensor, place: Place, values: Any) -> None:
        """Store the edges of a row if the row exists."""
        for j, (column, mine) in enumerate(place.edges):
            if mine and place.exists:
                tensor[place.source, column] = values[j].to(self.dtype)
