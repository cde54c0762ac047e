"""Where a row is kept: the part of it that a thread has, in shared memory, in registers, or some in each.

Elements stay in registers as they were loaded, two 16-bit ones in each; they become ``f32`` where they are used.  Long
rows go through slots in shared memory: a thread copies there what it will read, so nobody waits for anybody, and no
register keeps an element from its first use to its last.
"""

# Operators and element types are those of values in a trace.
# pyright: basic, reportArgumentType=false, reportOptionalMemberAccess=false, reportOptionalOperand=false

from collections.abc import Callable
from math import inf
from typing import Any, NamedTuple

import cute_dialect.lang as cute
from cute_dialect.front.dtypes import type_of_mlir
from cute_dialect.kernels.row_config import Plan
from cute_dialect.kernels.row_sharing import Sharing
from cute_dialect.lang.nvgpu import LoadCacheMode, cpasync

__all__ = ["Line", "RowMemory", "combined", "grouped", "mapped", "part"]

STEP = 4
"""Elements that are written of a row in parts are worked on so many at a time: no more of them are ``f32`` at once."""


class Line(NamedTuple):
    """A row at hand: its number, whether there is such a row, and this thread's chunks of it.

    The first ``far`` chunks are in shared memory from ``slot`` on, the others in ``values``.  ``coming``: the groups of
    copies that were begun from this row's first one on; 0 if it is there.
    """

    row: Any
    exists: Any
    slot: Any
    values: Any
    far: int = 0
    coming: int = 0


# --------------------------------------------------------------------------------------------------- register tensors


def part(values: cute.Tensor, first: int, count: int) -> cute.Tensor:
    """Return some elements of a register tensor."""
    return cute.make_tensor(values.iterator + first, cute.make_layout(count))


def grouped(values: cute.Tensor) -> cute.Tensor:
    """Return a register tensor as ``(group, groups)`` of up to four elements: sums then have no long chain of steps."""
    n = cute.size(values)
    group = min(4, n & -n)
    return cute.make_tensor(values.iterator, cute.make_layout((group, n // group)))


def combined(values: cute.Tensor, combine: Callable[..., Any], term: Callable[..., Any]) -> Any:
    """Return what ``term`` makes of the elements of a register tensor, by groups, all of it as one number."""
    groups = grouped(values)
    total = term(groups[None, 0].load())
    for i in range(1, groups.shape[1]):
        total = combine(total, term(groups[None, i].load()))
    return total.reduce(combine)


def mapped(values: cute.Tensor, function: Callable[..., Any]) -> cute.Tensor:
    """Return ``function`` of the elements of a register tensor, by groups and as ``f32``, in new registers."""
    made = cute.make_rmem_tensor(cute.size(values), cute.Float32)
    groups, results = grouped(values), grouped(made)
    for i in range(groups.shape[1]):
        results[None, i].store(function(groups[None, i].load().to(cute.Float32)))
    return made


def widened(values: cute.Tensor, fresh: bool) -> Any:
    """Load registers as ``f32``; ``fresh``: the optimiser shall not keep what it converted before, which is larger."""
    found = values.load()
    if fresh and found.size * found.dtype.width % 32 == 0:
        found = cute.arch.opaque(found)
    return found.to(cute.Float32)


class RowMemory:
    """The memory of the rows that a thread works on: ``x`` and the ``weights`` to read, ``y`` to write."""

    def __init__(self, plan: Plan, sharing: Sharing, x: cute.Tensor, weights: list[cute.Tensor], y: cute.Tensor):
        self.plan, self.config, self.sharing = plan, plan.config, sharing
        self.x, self.weights, self.y = x, weights, y
        self.dtype: Any = type_of_mlir(plan.element)
        self.neutral = -inf if plan.op == "softmax" else 0.0
        # Where this thread begins in a row, and in the part of a row that the block has.
        self.first, self.first_in_block = sharing.thread * plan.width, sharing.tid * plan.width
        self.in_tail = sharing.thread < plan.tail if plan.tail and self.config.sharing > 1 else True
        self.fetch_atom = None
        if plan.bits >= 32:
            cache = LoadCacheMode.GLOBAL if plan.bits == 128 else LoadCacheMode.ALWAYS
            self.fetch_atom = cute.make_copy_atom(cpasync.CopyG2SOp(cache), self.dtype, num_bits_per_copy=plan.bits)
        self.held: list[Any] = []

    # ------------------------------------------------------------------------------------------------- this thread's

    def begin(self, tensor: cute.Tensor, row: Any = None) -> Any:
        """Return where this thread's elements begin in a row of a matrix, or in a vector."""
        return (tensor if row is None else tensor[row, None]).iterator + self.first

    def existing(self, row: Any) -> tuple[Any, Any]:
        """Return a row that exists, and whether it is this one.

        Threads beyond the last row read that one: they take part in shuffles, but write nothing.
        """
        rows = self.x.shape[0]
        return cute.min(row, rows - 1), row < rows

    def chunks(self, begin: Any, start: int, count: int, step: int | None = None) -> cute.Tensor:
        """Return chunks from ``start`` on as ``(width, count)``, ``step`` elements apart (as in a row)."""
        step = self.plan.step if step is None else step
        return cute.make_tensor(begin + start * step, cute.make_layout((self.plan.width, count), stride=(1, step)))

    def in_slot(self, slot: Any, start: int, count: int) -> cute.Tensor:
        """Return chunks of a row in shared memory."""
        return self.chunks(slot, start, count, self.plan.block_step)

    def in_registers(self, values: cute.Tensor, start: int, count: int) -> cute.Tensor:
        """Return chunks of a row in registers."""
        return self.chunks(values.iterator, start, count, self.plan.width)

    def pieces(self, start: int, count: int) -> list[tuple[int, int, Any]]:
        """Return the whole ones of some chunks, then the tail; each with whether this thread has them."""
        whole = min(count, self.plan.chunks - start)
        pieces = [(start, whole, True)] if whole > 0 else []
        return pieces if whole == count else [*pieces, (self.plan.chunks, 1, self.in_tail)]

    # ------------------------------------------------------------------------------------------------------- reading

    def registers(self, chunks: int) -> cute.Tensor:
        """Return new registers for so many chunks."""
        return cute.make_rmem_tensor(chunks * self.plan.width, self.dtype)

    def load(self, begin: Any, start: int, count: int) -> cute.Tensor:
        """Load chunks from global memory, neutral elements where this thread has none; all are under way together."""
        values = self.registers(count)
        pieces = self.pieces(start, count)
        if start + count > self.plan.chunks:
            self.in_registers(values, count - 1, 1).fill(self.neutral)
        for first, n, mine in pieces:
            if mine:
                cute.autovec_copy(self.chunks(begin, first, n), self.in_registers(values, first - start, n))
        return values

    def from_slot(self, slot: Any, start: int, count: int) -> cute.Tensor:
        """Load chunks from shared memory."""
        values = self.registers(count)
        cute.autovec_copy(self.in_slot(slot, start, count), self.in_registers(values, 0, count))
        return values

    def read(self, line: Line, start: int, count: int) -> cute.Tensor:
        """Return chunks of a row in registers, read again where they are in shared memory."""
        if start < line.far:
            return self.from_slot(line.slot, start, count)
        w = self.plan.width
        return part(line.values, (start - line.far) * w, count * w)

    def arrived(self, line: Line, number: int) -> cute.Tensor:
        """Return one of the plan's parts of a row, when it is there."""
        if line.coming and number < len(self.plan.groups):
            cute.arch.cp_async_wait_group(line.coming - 1 - number)
        return self.read(line, *self.plan.parts[number])

    def weights_of(self, start: int, count: int) -> list[cute.Tensor]:
        """Load chunks of the weights."""
        if self.held:
            return [self.from_slot(held, start, count) for held in self.held]
        return [self.load(self.begin(vector), start, count) for vector in self.weights]

    # ------------------------------------------------------------------------------------------------- shared memory

    def hold_weights(self) -> None:
        """Keep the weights in shared memory; each thread reads back what it has written."""
        for vector in self.weights:
            held = cute.smem_tensor(self.dtype, cute.make_layout(self.plan.share)).iterator + self.first_in_block
            values = self.load(self.begin(vector), 0, self.plan.count)
            cute.autovec_copy(self.in_registers(values, 0, self.plan.count), self.in_slot(held, 0, self.plan.count))
            self.held.append(held)

    def make_slots(self, count: int) -> list[Any]:
        """Allocate shared memory for so many rows; returns where this thread's elements of each begin."""
        plan = self.plan
        self.slots = cute.smem_tensor(self.dtype, cute.make_layout(count * plan.share)).iterator
        slots = [self.slot(i) for i in range(count)]
        if plan.tail and plan.far > plan.chunks and self.sharing.thread >= plan.tail:
            # Where a thread has no element of the last chunk, there is a neutral one.
            rest = self.registers(1)
            rest.fill(self.neutral)
            for slot in slots:
                cute.autovec_copy(self.in_registers(rest, 0, 1), self.in_slot(slot, plan.chunks, 1))
        return slots

    def slot(self, i: Any) -> Any:
        """Return where this thread's elements begin in a slot."""
        return self.slots + (i * self.plan.share + self.first_in_block)

    def fetch(self, begin: Any, slot: Any, start: int, count: int) -> None:
        """Begin to copy chunks of a row into a slot; what a thread copies is what it reads."""
        if self.fetch_atom is None:
            values = self.load(begin, start, count)
            cute.autovec_copy(self.in_registers(values, 0, count), self.in_slot(slot, start, count))
        else:
            for first, n, mine in self.pieces(start, count):
                if mine:
                    cute.copy(self.fetch_atom, self.chunks(begin, first, n), self.in_slot(slot, first, n))

    # ------------------------------------------------------------------------------------------------------- writing

    def write(self, lines: list[Line], function: Callable[..., Any], weights: list[list[cute.Tensor]]) -> None:
        """Write the rows: ``function`` of a row's number, of some of its elements and of their weights, as ``f32``.

        Rows from shared memory are written span by span; else all stores come last, since no load of a weight can be
        moved past them.  ``weights``: the first spans of them; where rows come in parts the next ones are loaded ahead
        of a span's stores, else all at once.
        """
        plan, in_parts, by_span = self.plan, self.config.in_parts, self.config.stages > 0
        w, spans = plan.width, plan.spans
        outs = [None if by_span else self.registers(plan.count) for _ in lines]
        for number, (start, count) in enumerate(spans):
            ahead = len(spans) if not in_parts else number + 1
            weights = weights + [self.weights_of(*span) for span in spans[len(weights) : ahead]]
            n = count * w
            results = [self.registers(count) if x is None else part(x, start * w, n) for x in outs]
            for i, (line, out) in enumerate(zip(lines, results)):
                x = self.read(line, start, count)
                size = STEP if in_parts and n % STEP == 0 else n
                for at in cute.range_constexpr(0, n, size):
                    of = [widened(part(t, at, size), False) for t in weights[number]]
                    element = function(i, widened(part(x, at, size), in_parts and start >= line.far), of)
                    part(out, at, size).store(element.to(self.dtype))
            if by_span:  # the next weights first; one span more as the registers of the row become free
                ahead = number + (2 if number < 2 else 3)
                weights = weights + [self.weights_of(*span) for span in spans[len(weights) : ahead]]
                for line, out in zip(lines, results):
                    self.store(line, out, start, count)
        if not by_span:
            for line, out in zip(lines, outs):
                self.store(line, out, 0, plan.count)

    def store(self, line: Line, values: cute.Tensor, start: int, count: int) -> None:
        """Store chunks of a row, if there is such a row."""
        if line.exists:
            begin = self.begin(self.y, line.row)
            for first, n, mine in self.pieces(start, count):
                if mine:
                    cute.autovec_copy(self.in_registers(values, first - start, n), self.chunks(begin, first, n))
