"""The part of a row that a thread has, for the row kernels of :mod:`.rows`: its memory, how it is read and written.

A thread has ``values`` elements of its row, in ``chunks`` vectors that lie as many vectors apart as threads share the
row, so that a warp reads 512 bytes at a time.  What is left of a row after whole chunks, if anything, is one more chunk
that only the first threads have; the others hold a neutral element there.

Elements stay in registers as they were loaded, two 16-bit ones in each; they become ``f32`` where they are used.  Long
rows go through slots in shared memory: a thread copies there what it will read, so nobody waits for anybody, and no
register keeps an element from its first use to its last.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise
from math import inf
from typing import TYPE_CHECKING, NamedTuple

from cute_dialect.kernels.row_arithmetic import RowArithmetic, named
from cute_dialect.kernels.script import Script
from cute_dialect.kernels.values import Value
from cute_dialect.memory_types import MemRefType

if TYPE_CHECKING:  # pragma: no cover
    from collections.abc import Generator

    from cute_dialect.kernels.rows import RowConfig

__all__ = ["STREAM", "Line", "RowMemory"]

STREAM = 8
"""Vectors a thread has under way in a sum over long rows."""


AHEAD = 1
"""Parts of the weights that are on their way when the first parts of a row are written."""


PART = 32
"""Elements in registers that a thread works on while it waits for the next ones."""

STEP = 4
"""Elements that are written of a row in parts are worked on so many at a time: no more of them are ``f32`` at once."""


class Line(NamedTuple):
    """A row: its number, whether it exists if that is in question, and its elements in registers, in a slot or both.

    ``coming``: the groups of copies that were begun from its first one on.
    """

    row: Value
    real: Value | None
    values: Value | None
    slot: Value | None
    coming: int = 0


class RowMemory(RowArithmetic):
    """The memory of rows, in accesses of ``width`` elements.

    Who the thread is, and the tensors, are set where the kernel begins.
    """

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
        self.far = chunks - config.kept // width
        """Whole chunks that are in shared memory, where rows come in parts; the rest is in registers."""
        super().__init__(b, element, (self.chunks + self.tail) * width)
        self.block_step = config.threads * width
        """Elements of one chunk that the threads of a block have: how far chunks lie apart in shared memory."""
        self.share = config.threads * (self.far * width if config.in_parts else self.values)
        self.neutral = -inf if op == "softmax" else 0.0
        self.bits, self.weight_count = BITS[element], WEIGHTS[op]
        self.atom_type = f"!cute_nvgpu.atom.universal_copy<{element}>"
        self.held: list[Value] = []

    def row_of(self, matrix: Value, row: Value) -> Value:
        """Return a row of a matrix."""
        return named(self.b.slice(matrix, row, None), "gX")

    def make_slots(self, count: int) -> None:
        """Allocate shared memory for so many rows."""
        b, w = self.b, self.width
        align = 16 if w > 1 else self.bits // 8
        size = count * self.share
        self.slots = named(b.alloc_smem(f'!cute.memref<{self.element}, smem, align<{align}>, "{size}:1">'), "slots")
        bits = min(128, w * self.bits)
        cache = "global" if bits == 128 else "always"
        kind = f"simt_async_copy<{self.element}, cache = {cache}, {bits} b>"
        self.fetch_atom = named(b.atom(f"!cute_nvgpu.atom.{kind}"), "fetch") if bits >= 32 else None
        if self.tail and not self.c.in_parts:
            b.say("Where a thread has no element of the last chunk, there is a neutral one.")
            with b.if_(self.outside_tail()):
                rest = self.registers(self.element, w)
                b.do("cute.fill", rest, b.constant(self.neutral, self.element))
                for s in range(count):
                    begin = self.at(self.slot(b.constant(s)), self.chunks * self.block_step)
                    self.move(begin, rest, 0, 1, store=True)

    def slot(self, slot: Value) -> Value:
        """Return where this thread's elements begin in a slot."""
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
            self._fetch(source, begin, 0, self.chunks)
        if self.tail:
            with self._in_tail():
                there = b.view(self.at(source, self._offset(self.chunks)), f"{self.width}:1")
                b.copy(self.fetch_atom, there, b.view(self.at(begin, self.chunks * self.block_step), f"{self.width}:1"))

    def _fetch(self, source: Value, begin: Value, start: int, count: int) -> None:
        """Begin to copy some whole chunks of a row into a slot."""
        b = self.b
        there, here = self.at(source, self._offset(start)), self.at(begin, start * self.block_step) if start else begin
        if self.fetch_atom is None:
            raw = self.registers(self.element, count * self.width)
            self.move(there, raw, 0, count)
            self.move(here, raw, 0, count, store=True, step=self.block_step)
            return
        outside, inside = (self._pieces(0, count, step)[0] for step in (self.step, self.block_step))
        b.copy(self.fetch_atom, b.view(there, outside), b.view(here, inside))

    def fetch_parts(self, lines: Sequence[tuple[Value, Value, Value | None]]) -> list[Line]:
        """Begin to copy the parts of rows, each a group of copies of its own, and to load what registers keep."""
        b, w, kept = self.b, self.width, self.chunks - self.far
        sources = [self.row_of(self.x, source) for _, source, _ in lines]
        slots = [self.slot(b.constant(i)) if self.far else None for i in range(len(lines))]
        for source, slot in zip(sources, slots):
            if slot is None:
                break
            for start, count in self.groups:
                self._fetch(source, slot, start, count)
                b.run("cp_async_commit_group")
        found: list[Line] = []
        for i, ((row, _, real), source, slot) in enumerate(zip(lines, sources, slots)):
            b.say("What this thread keeps in registers.")
            raw = self.raw()
            if kept:
                self.move(self.at(source, self._offset(self.far)), self.part(raw, self.far * w, kept * w), 0, kept)
            self._load_tail(source, raw)
            found.append(Line(row, real, raw, slot, (len(lines) - i) * self.c.groups))
        return found

    @property
    def groups(self) -> list[tuple[int, int]]:
        """The parts in which a row comes into shared memory: the first chunk, and how many."""
        ends = [self.far * i // self.c.groups for i in range(self.c.groups + 1)]
        return [(start, end - start) for start, end in pairwise(ends)]

    def arriving(self, line: Line) -> Iterator[tuple[Value, int, int]]:
        """Return the elements of a row as they come: registers, the number of the first there, how many."""
        if not self.c.in_parts:
            yield self.values_of(line), 0, self.values
            return
        assert line.values is not None
        w = self.width
        for i, (start, count) in enumerate(self.groups if self.far else ()):
            self.b.say("What this thread has copied of this part is there.")
            self.b.run("cp_async_wait_group", n=line.coming - 1 - i)
            yield self._span(line, start, count), start * w, count * w
        for first in range(self.far * w, self.values, PART):
            n = min(PART, self.values - first)
            yield self.part(line.values, first, n), first, n

    def values_of(self, line: Line) -> Value:
        """Return this thread's elements of a row; read again where they are in shared memory: no
        register keeps them.
        """
        if line.values is not None:
            return line.values
        assert line.slot is not None
        raw = named(self.registers(self.element, self.values), "values")
        self.move(line.slot, raw, 0, self.chunks + self.tail, step=self.block_step)
        return raw

    def _pieces(self, start: int, chunks: int, step: int) -> tuple[str, str, int]:
        """Return layouts of ``chunks`` chunks in memory and in registers, and where they begin in registers."""
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
        """Return the address so many elements after a tensor's first one, or after an address."""
        pointer = self.b.iterator(start) if isinstance(start.type, MemRefType) else start
        return self.b.op("cute.add_offset", pointer, self.b.int_tuple(offset))

    @contextmanager
    def _in_tail(self) -> Generator[None]:
        """Return the threads that have part of the last chunk, which begins after whole chunks."""
        if self.c.sharing == 1:
            yield
            return
        with self.b.if_(self.thread < (self.n % self.step) // self.width):
            yield

    def _offset(self, chunk: int) -> Value:
        """Return where this thread's part of a chunk begins in a row."""
        return self.first if chunk == 0 else self.whole(self.thread * self.width + chunk * self.step)

    def whole(self, at: Value) -> Value:
        """Return a number of elements that is one of whole vectors."""
        return self.b.op("cute.assume", at, type=f"!cute.i32<divby {self.width}>") if self.width > 1 else at

    def outside_tail(self) -> Value:
        """Tell whether the thread has no part of the last chunk."""
        return self.thread >= (self.n % self.step) // self.width

    def raw(self) -> Value:
        """Return registers for this thread's elements of a row (what :attr:`rounds` leave), neutral
        where it has none.
        """
        raw = named(self.registers(self.element, self.values), "values")
        if self.tail:
            rest = self.part(raw, self.chunks * self.width, self.width)
            self.b.do("cute.fill", rest, self.b.constant(self.neutral, self.element))
        return raw

    def load(self, tensor: Value) -> Value:
        """Load this thread's elements of a row, as they are."""
        self.b.say("What this thread has of a row; all its loads are under way together.")
        raw = self.raw()
        self._load(tensor, raw)
        return raw

    def _load(self, tensor: Value, raw: Value) -> None:
        skip = self.rounds * STREAM
        if self.chunks:
            self.move(self.at(tensor, self._offset(skip)), raw, 0, self.chunks)
        self._load_tail(tensor, raw, skip)

    def _load_tail(self, tensor: Value, raw: Value, skip: int = 0) -> None:
        if self.tail:
            with self._in_tail():
                self.move(self.at(tensor, self._offset(skip + self.chunks)), raw, self.chunks, 1)

    def hold(self, vector: Value) -> Value:
        """Hold this thread's part of a vector in shared memory: return where it begins."""
        b = self.b
        align = 16 if self.width > 1 else self.bits // 8
        shared = b.alloc_smem(f'!cute.memref<{self.element}, smem, align<{align}>, "{self.share}:1">')
        begin = named(self.at(named(shared, "held"), self.whole(self.tid * self.width)), "mine")
        self.move(begin, self.load(vector), 0, self.chunks + self.tail, store=True, step=self.block_step)
        return begin

    def weight(self, i: int) -> Value:
        """Load this thread's elements of a vector of weights, as they are."""
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
        early: Sequence[list[Value]] = (),
    ) -> None:
        """Write the rows: ``function`` of a row's number, of some of its elements and of their weights, as ``f32``.

        ``values``: registers to take instead of the elements.  Rows in shared memory are written as they are read;
        else all stores come last, since no load of a weight can be moved past them.  ``early``: the
        first parts of the weights, where those come in parts; the loads of the next ones are ahead of the stores.
        """
        b, w = self.b, self.width
        direct = self.c.in_parts or all(line.slot is not None for line in lines)
        outs = [None if direct else self.registers(self.element, self.values) for _ in lines]
        spans = self._spans()
        coming = self.c.in_parts and self.weight_count > 0
        ahead = list(early) if early or not coming else [self._weight_spans(*spans[0])]
        for number, (start, count) in enumerate(spans):
            n = count * w
            here = ahead.pop(0) if coming else [self.part(t, start * w, n) for t in weights]
            results = [self.registers(self.element, n) if x is None else self.part(x, start * w, n) for x in outs]
            for i, (line, out) in enumerate(zip(lines, results)):
                held = values if values is not None else self._kept(line, start)
                x = self._span(line, start, count) if held is None else self.part(held, start * w, n)
                fresh = self.c.in_parts and held is not None
                for at, size in self._steps(n):
                    result = function(i, self._wide_at(x, at, size, fresh), [self._wide_at(t, at, size) for t in here])
                    if self.narrow:
                        result = b.op("arith.truncf", result, type=f"vector<{size}x{self.element}>")
                    b.store_vec(result, out if size == n else self.part(out, at, size))
            if coming:
                following = number + 1 + len(ahead)
                ahead += [self._weight_spans(*span) for span in spans[following : number + 1 + self._ahead(number)]]
            for line, out in zip(lines, results if direct else ()):
                with self._if(line.real):
                    self._write(line, out, start, count)
        for line, out in zip(lines, outs):
            if out is None:
                continue
            with self._if(line.real):
                if self.chunks:
                    self._write(line, self.part(out, 0, self.chunks * w), 0, self.chunks)
                if self.tail:
                    self._write(line, self.part(out, self.chunks * w, w), self.chunks, 1)

    def _spans(self) -> list[tuple[int, int]]:
        """Return chunks by up to eight elements: the first one, and how many; the tail is one by itself."""
        most = max(1, 8 // self.width)
        ends = [self.far, self.chunks] if self.c.in_parts else [self.chunks]
        spans = [(i, min(most, end - i)) for begin, end in pairwise([0, *ends]) for i in range(begin, end, most)]
        return [*spans, (self.chunks, 1)] if self.tail else spans

    def _kept(self, line: Line, start: int) -> Value | None:
        """Return the registers that hold a chunk of a row, if any do."""
        return line.values if line.slot is None or start >= self.far else None

    def _steps(self, n: int) -> list[tuple[int, int]]:
        """Return the elements of a part that are worked on together: fewer where registers are short."""
        size = STEP if self.c.in_parts and n % STEP == 0 else n
        return [(at, size) for at in range(0, n, size)]

    def _wide_at(self, x: Value, at: int, n: int, fresh: bool = False) -> Value:
        """Return elements of a register tensor as ``f32``; ``fresh``: what was converted before is not kept, being
        larger.
        """
        v = self.b.load_vec(self.part(x, at, n))
        if fresh and n * self.bits % 32 == 0:
            v = self.b.arch("opaque", v)
        return self.wide(v)

    def _ahead(self, number: int) -> int:
        """Parts of the weights to have under way when a row's part is written; more as its registers become free."""
        return AHEAD if number < 2 else AHEAD + 1

    def early_spans(self) -> list[list[Value]]:
        """Return the first part of the weights, on its way during the exchange; two vectors of them have no registers
        then.
        """
        return [self._weight_spans(*self._spans()[0])] if self.c.in_parts and self.weight_count == 1 else []

    def _weight_spans(self, start: int, count: int) -> list[Value]:
        """Return some chunks of each vector of weights."""
        found: list[Value] = []
        for vector in self.weights:
            raw = self.registers(self.element, count * self.width)
            if start < self.chunks:
                self.move(self.at(vector, self._offset(start)), raw, 0, count)
            else:
                self.b.do("cute.fill", raw, self.b.constant(0.0, self.element))
                with self._in_tail():
                    self.move(self.at(vector, self._offset(start)), raw, 0, 1)
            found.append(raw)
        return found

    def _span(self, line: Line, start: int, count: int) -> Value:
        """Return some chunks of a row in shared memory."""
        assert line.slot is not None
        raw = named(self.registers(self.element, count * self.width), "values")
        begin = self.at(line.slot, start * self.block_step) if start else line.slot
        self.move(begin, raw, 0, count, step=self.block_step)
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
