"""Where a row is kept: the part of it that a thread has, in registers, in shared memory, or in both.

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

PART = 32
"""Elements in registers that a thread works on while it waits for the next ones."""

STEP = 4
"""Elements that are written of a row in parts are worked on so many at a time: no more of them are ``f32`` at once."""


class Line(NamedTuple):
    """A row: its number, whether it exists if that is in question, and its elements in registers, in a slot or both.

    ``coming``: the groups of copies that were begun from its first one on.
    """

    row: Any
    exists: Any
    values: Any
    slot: Any
    coming: int = 0


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


class RowMemory:
    """The memory of the rows that a thread works on: ``x`` and the ``weights`` to read, ``y`` to write."""

    def __init__(self, plan: Plan, sharing: Sharing, x: cute.Tensor, weights: list[cute.Tensor], y: cute.Tensor):
        self.plan, self.config, self.sharing = plan, plan.config, sharing
        self.x, self.weights, self.y = x, weights, y
        self.dtype: Any = type_of_mlir(plan.element)
        self.neutral = -inf if plan.op == "softmax" else 0.0
        # Where this thread begins in a row, and in the part of a row that the block has.
        self.first, self.first_in_block = sharing.thread * plan.width, sharing.tid * plan.width
        self.in_tail = sharing.thread < plan.tail if plan.tail and plan.config.sharing > 1 else True
        self.fetch_atom = None
        if plan.bits >= 32:
            cache = LoadCacheMode.GLOBAL if plan.bits == 128 else LoadCacheMode.ALWAYS
            self.fetch_atom = cute.make_copy_atom(cpasync.CopyG2SOp(cache), self.dtype, num_bits_per_copy=plan.bits)
        self.held: list[Any] = []

    # --------------------------------------------------------------------------------------------------------- moving

    def chunks(self, begin: Any, start: int, count: int, step: int | None = None) -> cute.Tensor:
        """Return this thread's chunks from ``start`` on as ``(width, count)``.

        ``begin``: where its elements of the row are; ``step``: how far chunks lie apart there.
        """
        step = self.plan.step if step is None else step
        return cute.make_tensor(begin + start * step, cute.make_layout((self.plan.width, count), stride=(1, step)))

    def in_slot(self, slot: Any, start: int, count: int) -> cute.Tensor:
        """Return chunks of a row in shared memory."""
        return self.chunks(slot, start, count, self.plan.block_step)

    def in_registers(self, values: cute.Tensor, start: int, count: int) -> cute.Tensor:
        """Return chunks of a row in registers."""
        return self.chunks(values.iterator, start, count, self.plan.width)

    def registers(self, count: int) -> cute.Tensor:
        """Return new registers for so many elements."""
        return cute.make_rmem_tensor(count, self.dtype)

    def row_of(self, matrix: cute.Tensor, row: Any) -> Any:
        """Return where this thread's elements of a row begin."""
        return matrix[row, None].iterator + self.first

    def existing(self, row: Any) -> tuple[Any, Any]:
        """Return a row that exists, and whether it is this one.

        Threads beyond the last row read that one: they take part in shuffles, but write nothing.
        """
        rows = self.x.shape[0]
        return cute.min(row, rows - 1), row < rows

    def neutral_registers(self) -> cute.Tensor:
        """Return registers for this thread's elements of a row, neutral where it has none."""
        values = self.registers(self.plan.values)
        if self.plan.tail:
            self.in_registers(values, self.plan.chunks, 1).fill(self.neutral)
        return values

    def load(self, begin: Any, skip: int = 0) -> cute.Tensor:
        """Load this thread's elements of a row but the first ``skip`` chunks; all loads are under way together."""
        values = self.neutral_registers()
        if self.plan.chunks:
            whole = self.in_registers(values, 0, self.plan.chunks)
            cute.autovec_copy(self.chunks(begin, skip, self.plan.chunks), whole)
        self._load_tail(begin, values, skip)
        return values

    def _load_tail(self, begin: Any, values: cute.Tensor, skip: int = 0) -> None:
        if self.plan.tail and self.in_tail:
            end = self.plan.chunks
            cute.autovec_copy(self.chunks(begin, skip + end, 1), self.in_registers(values, end, 1))

    # -------------------------------------------------------------------------------------------------- shared memory

    def make_slots(self, count: int) -> None:
        """Allocate shared memory for so many rows."""
        size = count * self.plan.share
        self.slots = cute.smem_tensor(self.dtype, cute.make_layout(size)).iterator
        if self.plan.tail and not self.config.in_parts and self.sharing.thread >= self.plan.tail:
            # Where a thread has no element of the last chunk, there is a neutral one.
            rest = self.registers(self.plan.width)
            rest.fill(self.neutral)
            for i in cute.range_constexpr(count):
                cute.autovec_copy(self.in_registers(rest, 0, 1), self.in_slot(self.slot(i), self.plan.chunks, 1))

    def slot(self, i: Any) -> Any:
        """Return where this thread's elements begin in a slot."""
        return self.slots + (i * self.plan.share + self.first_in_block)

    def fetch(self, begin: Any, slot: Any, start: int, count: int) -> None:
        """Begin to copy chunks of a row into a slot; what a thread copies is what it reads."""
        source, target = self.chunks(begin, start, count), self.in_slot(slot, start, count)
        if self.fetch_atom is not None:
            cute.copy(self.fetch_atom, source, target)
        else:
            values = self.registers(count * self.plan.width)
            cute.autovec_copy(source, self.in_registers(values, 0, count))
            cute.autovec_copy(self.in_registers(values, 0, count), target)

    def fetch_row(self, row: Any, slot: Any) -> None:
        """Begin to copy a whole row into a slot."""
        begin = self.row_of(self.x, row)
        if self.plan.chunks:
            self.fetch(begin, slot, 0, self.plan.chunks)
        if self.plan.tail and self.in_tail:
            self.fetch(begin, slot, self.plan.chunks, 1)

    def fetch_parts(self, rows: list[tuple[Any, Any, Any]]) -> list[Line]:
        """Begin to copy the parts of rows, each a group of copies of its own, and to load what registers keep."""
        far, kept = self.plan.far, self.plan.chunks - self.plan.far
        begins = [self.row_of(self.x, source) for _, source, _ in rows]
        slots = [self.slot(i) if far else None for i in range(len(rows))]
        for begin, slot in zip(begins, slots):
            for start, count in self.plan.groups:
                self.fetch(begin, slot, start, count)
                cute.arch.cp_async_commit_group()
        lines: list[Line] = []
        for i, ((row, _, exists), begin, slot) in enumerate(zip(rows, begins, slots)):
            values = self.neutral_registers()
            if kept:
                cute.autovec_copy(self.chunks(begin, far, kept), self.in_registers(values, far, kept))
            self._load_tail(begin, values)
            lines.append(Line(row, exists, values, slot, (len(rows) - i) * len(self.plan.groups)))
        return lines

    def hold(self, vector: cute.Tensor) -> Any:
        """Copy this thread's part of a vector to shared memory; returns where it begins."""
        size = cute.make_layout(self.plan.share)
        held = cute.smem_tensor(self.dtype, size).iterator + self.first_in_block
        count = self.plan.values // self.plan.width
        values = self.in_registers(self.load(vector.iterator + self.first), 0, count)
        cute.autovec_copy(values, self.in_slot(held, 0, count))
        return held

    # -------------------------------------------------------------------------------------------------------- reading

    def from_slot(self, slot: Any, start: int, count: int) -> cute.Tensor:
        """Load chunks from shared memory."""
        values = self.registers(count * self.plan.width)
        cute.autovec_copy(self.in_slot(slot, start, count), self.in_registers(values, 0, count))
        return values

    def values_of(self, line: Line) -> cute.Tensor:
        """Return this thread's elements of a row; read again where they are in shared memory."""
        if line.values is not None:
            return line.values
        return self.from_slot(line.slot, 0, self.plan.values // self.plan.width)

    def parts(self) -> list[tuple[int, int]]:
        """Return the parts in which a row comes: a thread's first element, and how many it has."""
        w, values = self.plan.width, self.plan.values
        if not self.config.in_parts:
            return [(0, values)]
        rest = range(self.plan.far * w, values, PART)
        return [(i * w, n * w) for i, n in self.plan.groups] + [(i, min(PART, values - i)) for i in rest]

    def arrived(self, line: Line, number: int) -> cute.Tensor:
        """Return a part of a row when it is there."""
        if not self.config.in_parts:
            return self.values_of(line)
        if number < len(self.plan.groups):
            cute.arch.cp_async_wait_group(line.coming - 1 - number)
            return self.from_slot(line.slot, *self.plan.groups[number])
        return part(line.values, *self.parts()[number])

    def all_weights(self) -> list[cute.Tensor]:
        """Load this thread's weights; none where they come in parts, as the row does."""
        if self.config.in_parts:
            return []
        if self.held:
            return [self.from_slot(held, 0, self.plan.values // self.plan.width) for held in self.held]
        return [self.load(vector.iterator + self.first) for vector in self.weights]

    def weights_of(self, start: int, count: int) -> list[cute.Tensor]:
        """Load some chunks of the weights."""
        found: list[cute.Tensor] = []
        for vector in self.weights:
            values, begin = self.registers(count * self.plan.width), vector.iterator + self.first
            if start < self.plan.chunks:
                cute.autovec_copy(self.chunks(begin, start, count), self.in_registers(values, 0, count))
            else:
                values.fill(0.0)
                if self.in_tail:
                    cute.autovec_copy(self.chunks(begin, start, count), self.in_registers(values, 0, count))
            found.append(values)
        return found

    def early_spans(self) -> list[list[cute.Tensor]]:
        """Load the first span of the weights during the exchange; two vectors of them have no registers then."""
        return [self.weights_of(*self.plan.spans[0])] if self.config.in_parts and len(self.weights) == 1 else []

    # -------------------------------------------------------------------------------------------------------- writing

    def finish(
        self, lines: list[Line], function: Callable[..., Any], weights: list[cute.Tensor],
        early: list[list[cute.Tensor]], values: cute.Tensor | None = None,
    ) -> None:  # fmt: skip
        """Write the rows: ``function`` of a row's number, of some of its elements and of their weights, as ``f32``.

        ``values``: registers to take instead of the elements.  Rows in shared memory are written as they are read;
        else all stores come last, since no load of a weight can be moved past them.  Weights that come in parts are
        loaded ahead of the stores before; ``early``: those that are on their way already.
        """
        w, spans = self.plan.width, self.plan.spans
        in_parts, coming = self.config.in_parts, self.config.in_parts and len(self.weights) > 0
        at_once = in_parts or lines[0].slot is not None
        outs = [None if at_once else self.registers(self.plan.values) for _ in lines]
        ahead = early or ([self.weights_of(*spans[0])] if coming else [])
        for number, (start, count) in enumerate(spans):
            n = count * w
            if coming:
                here, ahead = ahead[0], ahead[1:]
            else:
                here = [part(x, start * w, n) for x in weights]
            results = [self.registers(n) if x is None else part(x, start * w, n) for x in outs]
            for i, (line, out) in enumerate(zip(lines, results)):
                kept = line.slot is None or start >= self.plan.far
                held = values if values is not None else line.values if kept else None
                x = self.from_slot(line.slot, start, count) if held is None else part(held, start * w, n)
                # What was converted before is not kept, being larger.
                fresh = in_parts and held is not None
                size = STEP if in_parts and n % STEP == 0 else n
                for at in cute.range_constexpr(0, n, size):
                    of = [wide(part(t, at, size), False) for t in here]
                    result = function(i, wide(part(x, at, size), fresh), of)
                    part(out, at, size).store(result.to(self.dtype))
            if coming:  # the next ones; one more as the registers of the row become free
                following = number + 1 + len(ahead)
                last = number + 1 + (1 if number < 2 else 2)
                ahead = ahead + [self.weights_of(*span) for span in spans[following:last]]
            if at_once:
                for line, out in zip(lines, results):
                    self._store(line, out, start, count)
        if not at_once:
            for line, out in zip(lines, outs):
                self._store(line, out, 0, self.plan.chunks + (self.plan.tail > 0))

    def _store(self, line: Line, values: cute.Tensor, start: int, count: int) -> None:
        """Store chunks of a row, if it exists."""
        whole = min(count, self.plan.chunks - start)
        if line.exists is None or line.exists:
            begin = self.row_of(self.y, line.row)
            if whole > 0:
                cute.autovec_copy(self.in_registers(values, 0, whole), self.chunks(begin, start, whole))
            if whole < count and self.in_tail:
                end = self.plan.chunks
                cute.autovec_copy(self.in_registers(values, end - start, 1), self.chunks(begin, end, 1))


def wide(values: cute.Tensor, fresh: bool) -> Any:
    """Load registers as ``f32``; ``fresh``: the optimiser does not know that it has converted them before."""
    found = values.load()
    if fresh and found.size * found.dtype.width % 32 == 0:
        found = cute.arch.opaque(found)
    return found.to(cute.Float32)
