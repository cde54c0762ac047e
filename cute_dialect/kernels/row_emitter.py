"""The row kernels of :mod:`.rows` but for the arithmetic: the host function, who works on which row, exchanges.

With ``stages`` a block goes on from row to row: the next ones are on their way into shared memory while it works on the
one at hand, and the weights stay there.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from cute_dialect.arch.targets import DEFAULT_TARGET
from cute_dialect.kernels.row_arithmetic import Combine, named
from cute_dialect.kernels.row_memory import Line, RowMemory
from cute_dialect.kernels.script import Script
from cute_dialect.kernels.values import Value

if TYPE_CHECKING:  # pragma: no cover
    from cute_dialect.kernels.rows import RowConfig

__all__ = ["SHARED_MEMORY", "RowEmitter", "shared_bytes"]

SHARED_MEMORY = 224 * 1024
"""Bytes of shared memory that blocks of an SM may have, beside what the partial results take."""


def _rows_of(matrix: Value) -> Value:
    b = matrix.builder
    size = b.op("cute.size", matrix, mode="array<i32: 0>")
    return named(b.op("cute.get_scalars", size, type="i32"), "rows")


def shared_bytes(op: str, element: str, n: int, config: RowConfig) -> int:
    """Return bytes of shared memory that the rows and weights of a block take where it holds them.

    >>> from cute_dialect.kernels.rows import RowConfig
    >>> shared_bytes("layernorm", "f16", 32768, RowConfig(1024, 1, 2, stages=3))
    163840
    """
    from cute_dialect.kernels.rows import BITS, WEIGHTS, vector_width

    width = vector_width(element, n)
    values = -(-n // (config.sharing * width)) * width
    if config.in_parts:  # without what follows whole rounds, which is shorter with longer vectors
        values = n // config.sharing - config.kept
    share = values * config.threads * BITS[element] // 8
    slots = {0: 0, 1: config.together}.get(config.stages, config.stages + WEIGHTS[op])
    return slots * share


class RowEmitter(RowMemory):
    """One kernel: ``width`` elements an access."""

    def __init__(self, b: Script, op: str, element: str, n: int, config: RowConfig, width: int, eps: float, sms: int):
        super().__init__(b, op, element, n, config, width)
        self.eps, self.sms = eps, sms
        align = width * self.bits // 8
        aligned = f", align<{align}>" if width > 1 else ""
        stride = f"?{{div={width}}}" if width > 1 else "?"
        self.matrix = f'!cute.memref<{element}, gmem{aligned}, "(?,{n}):({stride},1)">'
        self.vector = f'!cute.memref<{element}, gmem{aligned}, "{n}:1">'
        self.column = f'!cute.memref<{element}, gmem, "?:1">'

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
            blocks = min(blocks, max(1, SHARED_MEMORY // max(1, shared_bytes(self.op, self.element, self.n, self.c))))
        return blocks

    @property
    def spare(self) -> bool:
        """Tell whether a thread has registers for all its elements as ``f32``, where rows are in shared memory."""
        return self.values * self.c.together + 28 <= DEFAULT_TARGET.sm_registers // (self.c.block * self.resident)

    @property
    def messages(self) -> bool:
        """Tell whether blocks of a cluster send each other messages, by ``st.async``, rather than meet at its barrier.

        That is 12 % faster for softmax, 2 % for LayerNorm in registers, 4 % for RMSNorm partly in registers; norms with
        all of a row in shared memory, whose weights are on their way meanwhile, are 3 to 6 % faster with the barrier.
        """
        return self.op == "softmax" or self.c.stages != 1 or self.c.kept > 0

    @property
    def clusters(self) -> int:
        """Clusters that the GPU holds at once.  The SMs of a GPC, 16 or 18 on H100 and H200, hold whole ones."""
        sms = self.sms // 8 * 8 if self.c.cluster > 2 else self.sms
        return max(1, sms * self.resident // self.c.cluster)

    def kernel(self, name: str) -> None:
        """Emit ``gpu.func @name``."""
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
        """Emit the host function."""
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
        """Return the sum of a row."""
        raise NotImplementedError

    def work(self, lines: Sequence[Line]) -> None:
        """Do any other operation on the rows at hand."""
        raise NotImplementedError

    def _begin(self, x: Value, y: Value) -> None:
        b, c = self.b, self.c
        tid, block = named(b.thread_id(), "tid"), named(b.block_id(), "block")
        self.lane = named(b.arch("lane_id"), "lane")
        self.atom = named(b.atom(self.atom_type), "atom")
        self.rank: Value | None = None
        self.side: Value | None = None
        self.phase: Value | int = 0
        self.tid = self.thread = tid
        if c.cluster > 1:
            if self.messages:
                self._make_barriers()
            b.run("cluster_arrive", relaxed=True)
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
        self.first = named(self.whole(self.thread * self.width), "first")
        self.x, self.y = x, y

    def _make_barriers(self) -> None:
        """Make an mbarrier for the partial results that other blocks send, two where rows are in turn."""
        b, sides = self.b, 1 if self.c.stages < 2 else 2
        self.barriers = named(b.alloc_smem(f'!cute.memref<i64, smem, "{sides}:1">'), "arrived")
        with b.if_(self.tid.eq(0)):
            for i in range(sides):
                b.run("mbarrier_init", self.at(self.barriers, i), 1)
            b.run("fence_mbarrier_init")

    def _existing(self, x: Value, row: Value) -> tuple[Value, Value]:
        """Return a row that exists, and whether it is this one.

        Threads beyond the last row read that one: they take part in shuffles, but write nothing.
        """
        rows = _rows_of(x)
        real = named(row < rows, "real")
        return named(self.b.select(real, row, rows - 1), "source"), real

    def _rows_at_once(self) -> None:
        """Work on the rows of this block, each in registers or in a slot of shared memory."""
        b, c = self.b, self.c
        lines = [(self.row, self.source, self.real)]
        if c.together > 1:
            rows = [named(self.row * c.together + i, "row") for i in range(c.together)]
            lines = [(row, *self._existing(self.x, row)) for row in rows]
        if not c.stages:
            self.work([Line(row, real, self.load(self.row_of(self.x, source)), None) for row, source, real in lines])
            return
        if not c.in_parts or self.far:
            self.make_slots(c.together)
        if c.in_parts:
            self.work(self.fetch_parts(lines))
            return
        for i, (_, source, _) in enumerate(lines):
            self.fetch(source, b.constant(i))
        b.run("cp_async_commit_group")
        b.run("cp_async_wait_group", n=0)
        slots = [self.slot(b.constant(i)) for i in range(c.together)]
        self.work([Line(row, real, None, slot) for (row, _, real), slot in zip(lines, slots)])

    def _row_after_row(self) -> None:
        """Work on this block's rows; while it works on one, the next ones come into other slots of shared memory."""
        b, c = self.b, self.c
        if self.weights:
            b.say("Weights stay in shared memory; each thread reads back what it has written.")
            self.held = [self.hold(w) for w in self.weights]
        rows = _rows_of(self.x)
        self.make_slots(c.stages)
        step = named(b.grid_size() // c.cluster, "step")

        def fetch(row: Value, slot: Value) -> None:
            with b.if_(row < rows):
                self.fetch(row, slot)
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
            self.work([Line(loop.iv, None, None, named(self.slot(slot), "slot"))])
            following = slot + 1
            loop.next(b.select(following.eq(c.stages), 0, following), turn + 1)

    # ------------------------------------------------------------------------------------------------------- exchanges

    def over_warp(self, x: Value, combine: Combine) -> Value:
        """Combine over the threads of a row that share a warp."""
        return self.over_lanes(x, combine, min(32, self.c.threads))

    @property
    def warps(self) -> int:
        """Warps that share a row, in all blocks."""
        return max(1, self.c.threads // 32) * self.c.cluster

    def exchange(
        self,
        parts: Sequence[Value],
        combine: Callable[[list[Value], int], list[Value]],
        merge: Callable[[list[list[Value]]], list[Value]],
    ) -> list[Value]:
        """Combine every warp's ``parts`` over the row, for all lanes; nothing is exchanged within one warp.

        ``combine``: some numbers over groups of so many lanes, all of which get the result; ``merge``: those of
        some warps.
        """
        b, c = self.b, self.c
        if self.warps == 1:
            return list(parts)
        warp = named(b.arch("warp_id"), "warp")
        b.say("The warps put their numbers into shared memory.")
        if c.cluster > 1 and not self.messages:
            buffer, _ = self._table("partials", len(parts), self.warps)
            self._send_by_barrier(buffer, parts, warp)
            columns = min(32, self.warps)
            found = [self._read(buffer, i, len(parts), self.warps) for i in range(0, self.warps, columns)]
            return combine(merge(found), columns)
        warps = c.threads // 32
        buffer, skip = self._table("partials", len(parts), warps)
        if warps > 1:
            with b.if_(self.lane.eq(0)):
                for i, x in enumerate(parts):
                    b.store(buffer, warp + (skip + i * warps), x)
            b.run("barrier")
        if c.cluster == 1:
            return combine(self._read(buffer, skip, len(parts), warps), warps)
        received, offset = self._table("received", len(parts), c.cluster)
        if self.side is None:
            b.say("Every block has begun: its barrier is there.")
            b.run("cluster_wait")
        bar = self.at(self.barriers, 0 if self.side is None else self.side)
        b.say("Lane i tells block i; no fence, which would wait for what the thread has stored and is loading.")
        assert self.rank is not None
        with b.if_(warp.eq(0)):
            found = list(parts)
            if warps > 1:
                found = combine(self._read(buffer, skip, len(parts), warps), warps)
            with b.if_(self.lane.eq(0)):
                b.run("mbarrier_arrive_expect_tx", bar, 4 * c.cluster * len(parts))
            with b.if_(self.lane < c.cluster):
                far, far_bar = (b.arch("map_cluster", p, self.lane) for p in (b.iterator(received), bar))
                for i, x in enumerate(found):
                    b.run("store_async", self.at(far, self.rank + (offset + i * c.cluster)), x, far_bar)
        b.run("mbarrier_wait", bar, self.phase)
        return combine(self._read(received, offset, len(parts), c.cluster), c.cluster)

    def _table(self, name: str, count: int, columns: int) -> tuple[Value, Value | int]:
        """Allocate shared memory for ``count`` numbers of each of ``columns``, and where those of this row begin.

        Rows in turn use two sides: nobody still reads what is written next.
        """
        sides = 1 if self.side is None else 2
        table = self.b.alloc_smem(f'!cute.memref<f32, smem, "{sides * count * columns}:1">')
        return named(table, name), 0 if self.side is None else self.side * (count * columns)

    def _read(self, table: Value, skip: Value | int, count: int, columns: int) -> list[Value]:
        """Return the numbers of a column for each lane."""
        at = (self.lane if columns >= 32 else self.lane % columns) + skip
        return [self.b.load(table, at + i * columns) for i in range(count)]

    def _send_by_barrier(self, table: Value, parts: Sequence[Value], warp: Value) -> None:
        """Let each warp write to all blocks; then all threads of the cluster meet."""
        b, c, warps = self.b, self.c, self.warps
        assert self.rank is not None
        b.say("Lane i writes to block i.  Every block has begun: its shared memory is there.")
        b.run("cluster_wait")
        with b.if_(self.lane < c.cluster):
            far = b.arch("map_cluster", b.iterator(table), self.lane)
            there = b.view(far, f"{len(parts) * warps}:1")
            first = self.rank * (warps // c.cluster) + warp
            for i, x in enumerate(parts):
                b.store(there, first + i * warps, x)
        b.run("cluster_arrive")
        b.run("cluster_wait")
