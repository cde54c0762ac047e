"""What a thread has of a row, for the row kernels of :mod:`.rows`: where it is in memory, how it is read and written.

A thread has ``values`` elements of its row, in ``chunks`` vectors that lie as many vectors apart as threads share the
row, so that a warp reads 512 bytes at a time.  What is left of a row after whole chunks, if anything, is one more chunk
that only the first threads have; the others hold a neutral element there.

Elements stay in registers as they were loaded, two 16-bit ones in each; they become ``f32`` where they are used.  Long
rows go through slots in shared memory: a thread copies there what it will read, so nobody waits for anybody, and no
register keeps an element from its first use to its last.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import contextmanager
from math import inf
from typing import TYPE_CHECKING, NamedTuple

from cute_dialect.kernels.builder import Value
from cute_dialect.kernels.row_arithmetic import RowArithmetic, named
from cute_dialect.kernels.script import Script
from cute_dialect.memory_types import MemRefType

if TYPE_CHECKING:  # pragma: no cover
    from collections.abc import Generator

    from cute_dialect.kernels.rows import RowConfig

__all__ = ["STREAM", "Line", "RowMemory"]

STREAM = 8
"""Vectors a thread has under way in a sum over long rows."""


class Line(NamedTuple):
    """A row: its number, whether it exists if that is in question, and its elements in registers or in a slot."""

    row: Value
    real: Value | None
    values: Value | None
    slot: Value | None


class RowMemory(RowArithmetic):
    """For accesses of ``width`` elements.  Who the thread is, and the tensors, are set where the kernel begins."""

    tid: Value
    thread: Value
    first: Value
    atom: Value
    x: Value
    y: Value
    weights: tuple[Value, ...]

    def __init__(self, b: Script, op: str, element: str, n: int, config: RowConfig, width: int):
        from cute_dialect.kernels.rows import BITS, WEIGHTS

        self.op, self.n, self.c, self.width = op, n, config, width
        self.step = config.sharing * width
        """Elements of a row that all its threads read at once."""
        chunks = n // self.step
        self.rounds = 0
        if op == "sum" and chunks >= 2 * STREAM:
            self.rounds, chunks = divmod(chunks, STREAM)
        self.chunks, self.tail = chunks, n % self.step != 0
        super().__init__(b, element, (self.chunks + self.tail) * width)
        self.block_step = config.threads * width
        """Elements of one chunk that the threads of a block have: how far chunks lie apart in shared memory."""
        self.share = config.threads * self.values
        self.neutral = -inf if op == "softmax" else 0.0
        self.bits, self.weight_count = BITS[element], WEIGHTS[op]
        self.atom_type = f"!cute_nvgpu.atom.universal_copy<{element}>"
        self.held: list[Value] = []

    def row_of(self, matrix: Value, row: Value) -> Value:
        return named(self.b.slice(matrix, row, None), "gX")

    def make_slots(self, count: int) -> None:
        """Shared memory for so many rows."""
        b, w = self.b, self.width
        align = 16 if w > 1 else self.bits // 8
        size = count * self.share
        self.slots = named(b.alloc_smem(f'!cute.memref<{self.element}, smem, align<{align}>, "{size}:1">'), "slots")
        bits = min(128, w * self.bits)
        cache = "global" if bits == 128 else "always"
        kind = f"simt_async_copy<{self.element}, cache = {cache}, {bits} b>"
        self.fetch_atom = named(b.atom(f"!cute_nvgpu.atom.{kind}"), "fetch") if bits >= 32 else None
        if self.tail:
            b.say("Where a thread has no element of the last chunk, there is a neutral one.")
            with b.if_(self.outside_tail()):
                rest = self.registers(self.element, w)
                b.do("cute.fill", rest, b.constant(self.neutral, self.element))
                for s in range(count):
                    begin = self.at(self.slot(b.constant(s)), self.chunks * self.block_step)
                    self.move(begin, rest, 0, 1, store=True)

    def slot(self, slot: Value) -> Value:
        """Where this thread's elements begin in a slot."""
        at = slot * self.share + self.tid * self.width
        return self.at(self.slots, self.whole(at))

    def fetch(self, row: Value, slot: Value) -> None:
        """Begin to copy a row into a slot; what a thread copies is what it reads."""
        b = self.b
        source, begin = self.row_of(self.x, row), self.slot(slot)
        if self.fetch_atom is None:
            raw = self.load(source)
            self.move(begin, raw, 0, self.chunks + self.tail, store=True, step=self.block_step)
            return
        if self.chunks:
            layouts = [self._pieces(0, self.chunks, step)[0] for step in (self.step, self.block_step)]
            b.copy(self.fetch_atom, b.view(self.at(source, self._offset(0)), layouts[0]), b.view(begin, layouts[1]))
        if self.tail:
            with self._in_tail():
                there = b.view(self.at(source, self._offset(self.chunks)), f"{self.width}:1")
                b.copy(self.fetch_atom, there, b.view(self.at(begin, self.chunks * self.block_step), f"{self.width}:1"))

    def values_of(self, line: Line) -> Value:
        """This thread's elements of a row; read again where they are in shared memory: no register keeps them."""
        if line.values is not None:
            return line.values
        assert line.slot is not None
        raw = named(self.registers(self.element, self.values), "values")
        self.move(line.slot, raw, 0, self.chunks + self.tail, step=self.block_step)
        return raw

    def _pieces(self, start: int, chunks: int, step: int) -> tuple[str, str, int]:
        """Layouts of ``chunks`` chunks in memory and in registers, and where they begin in registers."""
        w = self.width
        if chunks == 1 or w == 1:
            shape = str(w if chunks == 1 else chunks)
            return f"{shape}:{1 if chunks == 1 else step}", f"{shape}:1", start * w
        return f"({w},{chunks}):(1,{step})", f"({w},{chunks}):(1,{w})", start * w

    def move(
        self, begin: Value, fragment: Value, start: int, chunks: int, *, store: bool = False, step: int | None = None
    ) -> None:
        """Copy chunks, ``step`` elements apart from ``begin`` on, to registers or from there."""
        b = self.b
        outside, inside, skip = self._pieces(start, chunks, self.step if step is None else step)
        there = named(b.view(begin, outside), "thread_part")
        here = fragment
        if skip or self.length(fragment) != self.width * chunks or ":(" in inside:
            here = named(b.view(self.moved(fragment, skip), inside), "registers")
        b.copy(self.atom, *((here, there) if store else (there, here)))

    def at(self, start: Value, offset: Value | int) -> Value:
        """The address so many elements after a tensor's first one, or after an address."""
        pointer = self.b.iterator(start) if isinstance(start.type, MemRefType) else start
        return self.b.op("cute.add_offset", pointer, self.b.int_tuple(offset))

    @contextmanager
    def _in_tail(self) -> Generator[None]:
        """The threads that have part of the last chunk, which begins after whole chunks."""
        if self.c.sharing == 1:
            yield
            return
        with self.b.if_(self.thread < (self.n % self.step) // self.width):
            yield

    def _offset(self, chunk: int) -> Value:
        """Where this thread's part of a chunk begins in a row."""
        return self.first if chunk == 0 else self.whole(self.thread * self.width + chunk * self.step)

    def whole(self, at: Value) -> Value:
        """A number of elements that is one of whole vectors."""
        return self.b.op("cute.assume", at, type=f"!cute.i32<divby {self.width}>") if self.width > 1 else at

    def outside_tail(self) -> Value:
        """Whether the thread has no part of the last chunk."""
        return self.thread >= (self.n % self.step) // self.width

    def raw(self) -> Value:
        """Registers for this thread's elements of a row (what :attr:`rounds` leave), neutral where it has none."""
        raw = named(self.registers(self.element, self.values), "values")
        if self.tail:
            rest = self.part(raw, self.chunks * self.width, self.width)
            self.b.do("cute.fill", rest, self.b.constant(self.neutral, self.element))
        return raw

    def load(self, tensor: Value) -> Value:
        """This thread's elements of a row, as they are."""
        self.b.say("What this thread has of a row; all its loads are under way together.")
        raw = self.raw()
        self._load(tensor, raw)
        return raw

    def _load(self, tensor: Value, raw: Value) -> None:
        skip = self.rounds * STREAM
        if self.chunks:
            self.move(self.at(tensor, self._offset(skip)), raw, 0, self.chunks)
        if self.tail:
            with self._in_tail():
                self.move(self.at(tensor, self._offset(skip + self.chunks)), raw, self.chunks, 1)

    def hold(self, vector: Value) -> Value:
        """This thread's part of a vector in shared memory: where it begins."""
        b = self.b
        align = 16 if self.width > 1 else self.bits // 8
        shared = b.alloc_smem(f'!cute.memref<{self.element}, smem, align<{align}>, "{self.share}:1">')
        begin = named(self.at(named(shared, "held"), self.whole(self.tid * self.width)), "mine")
        self.move(begin, self.load(vector), 0, self.chunks + self.tail, store=True, step=self.block_step)
        return begin

    def weight(self, i: int) -> Value:
        """This thread's elements of a vector of weights, as they are."""
        if not self.held:
            return self.load(self.weights[i])
        raw = named(self.registers(self.element, self.values), "values")
        self.move(self.held[i], raw, 0, self.chunks + self.tail, step=self.block_step)
        return raw

    def finish(
        self,
        lines: Sequence[Line],
        function: Callable[[int, Value, list[Value]], Value],
        weights: Sequence[Value] = (),
        values: Value | None = None,
    ) -> None:
        """Write the rows: ``function`` of a row's number, of some of its elements and of their weights, as ``f32``.

        ``values``: registers to take instead of the elements.  Rows in shared memory are written as they are read;
        else all stores come last, since no load of a weight can be moved past them.
        """
        b, w = self.b, self.width
        direct = all(line.slot is not None for line in lines)
        outs = [] if direct else [self.registers(self.element, self.values) for _ in lines]
        for start, count in self._spans():
            n = count * w
            factors = [self.wide(b.load_vec(self.part(t, start * w, n))) for t in weights]
            for i, line in enumerate(lines):
                held = values if values is not None else line.values
                x = self._span(line, start, count) if held is None else self.part(held, start * w, n)
                result = function(i, self.wide(b.load_vec(x)), factors)
                if self.narrow:
                    result = b.op("arith.truncf", result, type=f"vector<{n}x{self.element}>")
                out = self.registers(self.element, n) if direct else self.part(outs[i], start * w, n)
                b.store_vec(result, out)
                if direct:
                    with self._if(line.real):
                        self._write(line, out, start, count)
        for line, out in zip(lines, outs):
            with self._if(line.real):
                if self.chunks:
                    self._write(line, self.part(out, 0, self.chunks * w), 0, self.chunks)
                if self.tail:
                    self._write(line, self.part(out, self.chunks * w, w), self.chunks, 1)

    def _spans(self) -> list[tuple[int, int]]:
        """Chunks by up to eight elements: the first one, and how many; the tail is one by itself."""
        most = max(1, 8 // self.width)
        spans = [(i, min(most, self.chunks - i)) for i in range(0, self.chunks, most)]
        return [*spans, (self.chunks, 1)] if self.tail else spans

    def _span(self, line: Line, start: int, count: int) -> Value:
        """Some chunks of a row in shared memory."""
        assert line.slot is not None
        raw = named(self.registers(self.element, count * self.width), "values")
        self.move(self.at(line.slot, start * self.block_step), raw, 0, count, step=self.block_step)
        return raw

    def _write(self, line: Line, values: Value, start: int, count: int) -> None:
        """Store chunks of a row."""
        row = named(self.b.slice(self.y, line.row, None), "gY")
        if start < self.chunks:
            self.move(self.at(row, self._offset(start)), values, 0, count, store=True)
        else:
            with self._in_tail():
                self.move(self.at(row, self._offset(start)), values, 0, count, store=True)

    @contextmanager
    def _if(self, condition: Value | None) -> Generator[None]:
        if condition is None:
            yield
        else:
            with self.b.if_(condition):
                yield
