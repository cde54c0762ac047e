"""What the row kernels of :mod:`.rows` are made of: who has which part of a row, registers, exchanges between warps.

A thread has ``values`` elements of its row, in ``chunks`` vectors that lie as many vectors apart as threads share the
row, so that a warp reads 512 bytes at a time.  What is left of a row after whole chunks, if anything, is one more chunk
that only the first threads have; the others hold a neutral element there.

Elements stay in registers as they were loaded, two 16-bit ones in each; they become ``f32`` where they are used.  With
``stages`` a block goes on from row to row: the next ones are on their way into shared memory while it works on the one
at hand, and the weights stay there.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import contextmanager
from math import inf
from typing import TYPE_CHECKING, NamedTuple

from cute_dialect.kernels.builder import Value
from cute_dialect.kernels.row_arithmetic import Combine, RowArithmetic, named
from cute_dialect.kernels.script import Script
from cute_dialect.memory_types import MemRefType

if TYPE_CHECKING:  # pragma: no cover
    from collections.abc import Generator

    from cute_dialect.kernels.rows import RowConfig

__all__ = ["STREAM", "Line", "RowEmitter", "shared_bytes"]

STREAM = 8
"""Vectors a thread has under way in a sum over long rows."""

SHARED_MEMORY = 224 * 1024
"""Bytes of shared memory that blocks of an SM may have, beside what the partial results take."""


def _rows_of(matrix: Value) -> Value:
    b = matrix.builder
    size = b.op("cute.size", matrix, mode="array<i32: 0>")
    return named(b.op("cute.get_scalars", size, type="i32"), "rows")


def shared_bytes(op: str, element: str, n: int, config: RowConfig) -> int:
    """Bytes of shared memory that the rows and weights of a block take where it holds them.

    >>> from cute_dialect.kernels.rows import RowConfig
    >>> shared_bytes("layernorm", "f16", 32768, RowConfig(1024, 1, 2, stages=3))
    163840
    """
    from cute_dialect.kernels.rows import BITS, WEIGHTS, vector_width

    width = vector_width(element, n)
    share = -(-n // (config.sharing * width)) * width * config.threads * BITS[element] // 8
    slots = {0: 0, 1: config.together}.get(config.stages, config.stages + WEIGHTS[op])
    return slots * share


class Line(NamedTuple):
    """A row: its number, whether it exists if that is in question, and its elements in registers or in a slot."""

    row: Value
    real: Value | None
    values: Value | None
    slot: Value | None


class RowEmitter(RowArithmetic):
    """One kernel: ``width`` elements an access."""

    def __init__(self, b: Script, op: str, element: str, n: int, config: RowConfig, width: int, eps: float, sms: int):
        from cute_dialect.kernels.rows import BITS, WEIGHTS

        self.op, self.n, self.c, self.width = op, n, config, width
        self.eps, self.sms = eps, sms
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
        align = width * self.bits // 8
        aligned = f", align<{align}>" if width > 1 else ""
        stride = f"?{{div={width}}}" if width > 1 else "?"
        self.matrix = f'!cute.memref<{element}, gmem{aligned}, "(?,{n}):({stride},1)">'
        self.vector = f'!cute.memref<{element}, gmem{aligned}, "{n}:1">'
        self.column = f'!cute.memref<{element}, gmem, "?:1">'
        self.atom_type = f"!cute_nvgpu.atom.universal_copy<{element}>"

    def parameters(self) -> dict[str, str]:
        """Names and types of the kernel's parameters."""
        out = self.column if self.op == "sum" else self.matrix
        return {"x": self.matrix, **dict.fromkeys(("w", "b")[: self.weight_count], self.vector), "y": out}

    def name_types(self) -> None:
        """Name the types of parameters."""
        suffix = "_v" if self.width > 1 else ""
        self.b.name_type(f"matrix{suffix}", self.matrix)
        if self.op == "sum":
            self.b.name_type("column", self.column)
        if "w" in self.parameters():
            self.b.name_type(f"weights{suffix}", self.vector)
        self.b.name_type("atom", self.atom_type)

    # ------------------------------------------------------------------------------------------------------ the kernel

    @property
    def resident(self) -> int:
        """Blocks that an SM should hold at once."""
        blocks = self.c.resident or max(1, 1024 // self.c.block)
        if self.c.stages:
            blocks = min(blocks, max(1, SHARED_MEMORY // shared_bytes(self.op, self.element, self.n, self.c)))
        return blocks

    @property
    def spare(self) -> bool:
        """Whether a thread has registers for all its elements as ``f32``, where rows are in shared memory."""
        return self.values * self.c.together + 28 <= 65536 // (self.c.block * self.resident)

    @property
    def clusters(self) -> int:
        """Clusters that the GPU holds at once.  The SMs of a GPC, 16 or 18 on H100 and H200, hold whole ones."""
        sms = self.sms // 8 * 8 if self.c.cluster > 2 else self.sms
        return max(1, sms * self.resident // self.c.cluster)

    def kernel(self, name: str) -> None:
        """``gpu.func @name``."""
        b, c = self.b, self.c
        cluster = (c.cluster, 1, 1) if c.cluster > 1 else None
        # Single 16-bit elements take a register each before they are packed.
        resident = 1 if self.width * self.bits < 32 and self.values * self.c.together > 32 else self.resident
        attributes = [f"nvvm.minctasm = {resident} : i32"]
        with b.kernel(name, self.parameters(), threads=c.block, cluster=cluster, attributes=attributes) as p:
            self.weights = p[1:-1]
            self._begin(p[0], p[-1])
            if self.op == "sum":
                self.sum()
            elif c.stages > 1:
                self._row_after_row()
            else:
                self._rows_at_once()

    def launch(self, variants: Sequence[str]) -> None:
        """The host function."""
        b, c = self.b, self.c
        with b.host("launch", self.parameters()) as p:
            rows = _rows_of(p[0])
            b.say("The grid follows from the number of rows.")
            same = named(b.compare("eq", _rows_of(p[-1]), rows), "same")
            b.do("cf.assert", same, msg='"y must have as many rows as x"')
            at_once = c.rows * c.together
            grid = b.ceil_div(rows, at_once) if at_once > 1 else rows
            if c.stages > 1:
                grid = b.minimum(grid, b.constant(self.clusters))
            b.launch(self.op, p, grid=named(grid * c.cluster, "grid"), threads=c.block, variants=variants)

    def sum(self) -> None:
        """The sum of a row."""
        raise NotImplementedError

    def work(self, lines: Sequence[Line]) -> None:
        """Any other operation on the rows at hand."""
        raise NotImplementedError

    def _begin(self, x: Value, y: Value) -> None:
        b, c = self.b, self.c
        tid, block = named(b.thread_id(), "tid"), named(b.block_id(), "block")
        self.lane = named(b.arch("lane_id"), "lane")
        self.atom = named(b.atom(self.atom_type), "atom")
        self.rank: Value | None = None
        self.side: Value | None = None
        self.phase: Value | int = 0
        self.held: list[Value] = []
        self.tid = self.thread = tid
        if c.cluster > 1:
            self._make_barriers()
            self.rank = named(b.arch("cluster_rank"), "rank")
            block = named(block // c.cluster, "cluster")
            self.thread = named(self.rank * c.threads + tid, "thread")
        self.row = block
        self.real: Value | None = None
        self.source = self.row
        if c.rows > 1:
            self.thread = named(tid % c.threads, "thread")
            self.row = named(block * c.rows + tid // c.threads, "row")
            self.source, self.real = self._existing(x, self.row)
        b.say("Where this thread begins in each round of a row.")
        self.first = named(self._whole(self.thread * self.width), "first")
        self.x, self.y = x, y

    def _make_barriers(self) -> None:
        """An mbarrier for the partial results that other blocks send, two where rows are in turn."""
        b, sides = self.b, 1 if self.c.stages < 2 else 2
        self.barriers = named(b.alloc_smem(f'!cute.memref<i64, smem, "{sides}:1">'), "arrived")
        with b.if_(self.tid.eq(0)):
            for i in range(sides):
                b.run("mbarrier_init", self.at(self.barriers, i), 1)
            b.run("fence_mbarrier_init")
        b.run("cluster_arrive", relaxed=True)

    def _existing(self, x: Value, row: Value) -> tuple[Value, Value]:
        """A row that exists, and whether it is this one.

        Threads beyond the last row read that one: they take part in shuffles, but write nothing.
        """
        rows = _rows_of(x)
        real = named(row < rows, "real")
        return named(self.b.select(real, row, rows - 1), "source"), real

    def _rows_at_once(self) -> None:
        """The rows of this block, each in registers or in a slot of shared memory."""
        b, c = self.b, self.c
        lines = [(self.row, self.source, self.real)]
        if c.together > 1:
            rows = [named(self.row * c.together + i, "row") for i in range(c.together)]
            lines = [(row, *self._existing(self.x, row)) for row in rows]
        if not c.stages:
            self.work([Line(row, real, self.load(self._row_of(self.x, source)), None) for row, source, real in lines])
            return
        self._make_slots(c.together)
        for i, (_, source, _) in enumerate(lines):
            self._fetch(source, b.constant(i))
        b.run("cp_async_commit_group")
        b.run("cp_async_wait_group", n=0)
        slots = [self._slot(b.constant(i)) for i in range(c.together)]
        self.work([Line(row, real, None, slot) for (row, _, real), slot in zip(lines, slots)])

    def _row_of(self, matrix: Value, row: Value) -> Value:
        return named(self.b.slice(matrix, row, None), "gX")

    def _row_after_row(self) -> None:
        """This block's rows; while it works on one, the next ones come into other slots of shared memory."""
        b, c = self.b, self.c
        if self.weights:
            b.say("Weights stay in shared memory; each thread reads back what it has written.")
            self.held = [self._hold(w) for w in self.weights]
        rows = _rows_of(self.x)
        self._make_slots(c.stages)
        step = named(b.grid_size() // c.cluster, "step")

        def fetch(row: Value, slot: Value) -> None:
            with b.if_(row < rows):
                self._fetch(row, slot)
            b.run("cp_async_commit_group")

        for i in range(c.stages - 1):
            fetch(self.row + step * i, b.constant(i))
        if c.cluster > 1:
            b.run("cluster_wait")
        with b.for_(self.row, rows, step, carry=[b.constant(0), b.constant(0)]) as loop:
            slot, turn = loop.args
            self.side, self.phase = turn & 1, turn >> 1 & 1
            last = slot + (c.stages - 1)
            fetch(loop.iv + step * (c.stages - 1), b.select(last >= c.stages, last - c.stages, last))
            b.say("All groups but the latest have arrived: this row is there, as far as this thread reads it.")
            b.run("cp_async_wait_group", n=c.stages - 1)
            self.work([Line(loop.iv, None, None, named(self._slot(slot), "slot"))])
            following = slot + 1
            loop.next(b.select(following.eq(c.stages), 0, following), turn + 1)

    def _make_slots(self, count: int) -> None:
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
            with b.if_(self._outside_tail()):
                rest = self.registers(self.element, w)
                b.do("cute.fill", rest, b.constant(self.neutral, self.element))
                for s in range(count):
                    begin = self.at(self._slot(b.constant(s)), self.chunks * self.block_step)
                    self.move(begin, rest, 0, 1, store=True)

    def _slot(self, slot: Value) -> Value:
        """Where this thread's elements begin in a slot."""
        at = slot * self.share + self.tid * self.width
        return self.at(self.slots, self._whole(at))

    def _fetch(self, row: Value, slot: Value) -> None:
        """Begin to copy a row into a slot; what a thread copies is what it reads."""
        b = self.b
        source, begin = self._row_of(self.x, row), self._slot(slot)
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

    # ------------------------------------------------------------------------------------------------ memory, registers

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
        return self.first if chunk == 0 else self._whole(self.thread * self.width + chunk * self.step)

    def _whole(self, at: Value) -> Value:
        """A number of elements that is one of whole vectors."""
        return self.b.op("cute.assume", at, type=f"!cute.i32<divby {self.width}>") if self.width > 1 else at

    def _outside_tail(self) -> Value:
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

    def _hold(self, vector: Value) -> Value:
        """This thread's part of a vector in shared memory: where it begins."""
        b = self.b
        align = 16 if self.width > 1 else self.bits // 8
        shared = b.alloc_smem(f'!cute.memref<{self.element}, smem, align<{align}>, "{self.share}:1">')
        begin = named(self.at(named(shared, "held"), self._whole(self.tid * self.width)), "mine")
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

    # ------------------------------------------------------------------------------------------------------- exchanges

    def over_warp(self, x: Value, combine: Combine) -> Value:
        """Combine over the threads of a row that share a warp."""
        return self.over_lanes(x, combine, min(32, self.c.threads))

    @property
    def warps(self) -> int:
        """Warps that share a row, in all blocks."""
        return max(1, self.c.threads // 32) * self.c.cluster

    def exchange(self, parts: Sequence[Value], combine: Callable[[list[Value], int], list[Value]]) -> list[Value]:
        """Every warp's ``parts`` combined over the row, for all lanes.

        ``combine``: some numbers over groups of so many lanes, all of which get the result.  First the warps of a block
        are combined, by each of them through shared memory; then the blocks of a cluster, by messages of one warp to
        each block.  Nothing is exchanged within one warp.
        """
        b, c = self.b, self.c
        if self.warps == 1:
            return list(parts)
        warps = c.threads // 32
        sides = 1 if self.side is None else 2  # rows in turn use one each: nobody still reads what is written next
        found = list(parts)
        warp = named(b.arch("warp_id"), "warp")

        def table(name: str, columns: int) -> tuple[Value, Value | int]:
            shared = b.alloc_smem(f'!cute.memref<f32, smem, "{sides * len(parts) * columns}:1">')
            return named(shared, name), 0 if self.side is None else self.side * (len(parts) * columns)

        def read(buffer: Value, skip: Value | int, columns: int) -> list[Value]:
            at = self.lane % columns + skip
            return [b.load(buffer, at + i * columns) for i in range(len(parts))]

        b.say("The warps put their numbers into shared memory.")
        buffer, skip = table("partials", warps)
        if warps > 1:
            with b.if_(self.lane.eq(0)):
                for i, x in enumerate(parts):
                    b.store(buffer, warp + (skip + i * warps), x)
            b.run("barrier")
        if c.cluster == 1:
            return combine(read(buffer, skip, warps), warps)
        assert self.rank is not None
        received, offset = table("received", c.cluster)
        if self.side is None:
            b.say("Every block has begun: its barrier is there.")
            b.run("cluster_wait")
        bar = self.at(self.barriers, 0 if self.side is None else self.side)
        b.say("Lane i tells block i; no fence, which would wait for what the thread has stored and is loading.")
        with b.if_(warp.eq(0)):
            if warps > 1:
                found = combine(read(buffer, skip, warps), warps)
            with b.if_(self.lane.eq(0)):
                b.run("mbarrier_arrive_expect_tx", bar, 4 * c.cluster * len(parts))
            with b.if_(self.lane < c.cluster):
                far, far_bar = (b.arch("map_cluster", p, self.lane) for p in (b.iterator(received), bar))
                for i, x in enumerate(found):
                    b.run("store_async", self.at(far, self.rank + (offset + i * c.cluster)), x, far_bar)
        b.run("mbarrier_wait", bar, self.phase)
        return combine(read(received, offset, c.cluster), c.cluster)
