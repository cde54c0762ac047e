"""Row reductions across threads: lanes of a warp, warps of a block, blocks of a cluster.

There is one exchange per row. A warp reduces by shuffles, the warps of a block through shared memory, and the blocks of
a cluster through distributed shared memory. The operation defines how two partial results are combined.
"""

# Traced values define operators and element types that pyright cannot check.
# pyright: basic, reportOptionalMemberAccess=false, reportOptionalOperand=false

from typing import Any, NamedTuple

import cute_dialect.lang as cute
from cute_dialect.kernels.rows.config import RowConfig


class ExchangeBuffer(NamedTuple):
    """The half of the shared-memory buffer that a row's exchange uses, and the phase of its barrier.

    Consecutive rows use alternate halves, so that no thread still reads the half that is written next.
    """

    side: Any
    phase: Any


class Sharing:
    """The threads that share a row, from the view of one of them.

    Args:
        config: The configuration. ``thread`` is the index among the threads of a row, ``row`` the index among the rows
            that the grid processes at once.
        messages: The blocks of a cluster send each other partial results by ``st.async``, instead of using cluster
            barriers.
        several_rows: The threads process more than one row.
    """

    def __init__(self, config: RowConfig, messages: bool = False, several_rows: bool = False):
        self.config, self.messages = config, messages
        self.tid, self.row = cute.arch.thread_idx().x, cute.arch.block_idx().x
        self.lane = cute.arch.lane_idx()
        self.thread = self.tid
        self.rank: Any = 0
        if self.config.cluster > 1:
            if self.messages:
                self.barriers = self._make_barriers(2 if several_rows else 1)
            cute.arch.cluster_arrive_relaxed()
            self.rank = cute.arch.block_idx_in_cluster()
            self.row = self.row // self.config.cluster
            self.thread = self.rank * self.config.threads + self.tid
        elif self.config.rows > 1:
            self.thread = self.tid % self.config.threads
            self.row = self.row * self.config.rows + self.tid // self.config.threads

    def _make_barriers(self, sides: int) -> Any:
        """Initialize an mbarrier per buffer half, for partial results from other blocks."""
        barriers = cute.arch.alloc_smem(cute.Int64, sides)
        if self.tid == 0:
            for side in cute.range_constexpr(sides):
                cute.arch.mbarrier_init(barriers + side, 1)
            cute.arch.mbarrier_init_fence()
        return barriers

    @property
    def lanes(self) -> int:
        """Threads of a row in one warp."""
        return min(32, self.config.threads)

    @property
    def warp(self) -> Any:
        """Index of this warp among those that share the row."""
        return self.thread // 32

    def exchange(self, operation: Any, numbers: list[Any], buffer: ExchangeBuffer | None = None) -> list[Any]:
        """Combine the partial results of all warps of a row, and return the result in every thread.

        Args:
            operation: ``over_lanes(numbers, lanes, threads)`` combines groups of lanes, each with the results of
                ``threads`` threads. ``merged(lists)`` combines lists in one thread (only without messages).
                ``neutral(count)`` returns identity elements.
            numbers: The partial results of this warp.
            buffer: The half of the buffer, if several rows are processed.
        """
        if self.config.warps == 1:
            return numbers
        warp = cute.arch.canonical_warp_idx_sync()
        if self.config.cluster > 1 and not self.messages:
            return self._by_barrier(operation, numbers, warp)
        warps, cluster, count = self.config.threads // 32, self.config.cluster, len(numbers)
        if warps > 1:
            # Each warp writes its results to shared memory, and each lane reads those of one warp.
            partials, first = self._table(count, warps, buffer)
            if self.lane == 0:
                for i, x in enumerate(numbers):
                    partials[first + warp + i * warps] = x
            cute.arch.sync_threads()

        def of_block() -> list[Any]:
            if warps <= 1:
                return numbers
            return operation.over_lanes(self._column(operation, partials, first, count, warps), _lanes(warps), 32)

        if cluster == 1:
            return of_block()
        received, own = self._table(count, cluster, buffer)
        if buffer is None:
            cute.arch.cluster_wait()  # every block has started, so its barrier exists
        barrier, phase = (self.barriers, 0) if buffer is None else (self.barriers + buffer.side, buffer.phase)
        if warp == 0:
            # Lane i signals block i. A fence would also wait for the thread's other stores and loads.
            found = of_block()
            if self.lane == 0:
                cute.arch.mbarrier_arrive_and_expect_tx(barrier, 4 * cluster * count)
            if self.lane < cluster:
                there = cute.arch.map_dsmem_ptr(received.iterator, self.lane)
                its_barrier = cute.arch.map_dsmem_ptr(barrier, self.lane)
                for i, x in enumerate(found):
                    cute.arch.store_async(there + (own + self.rank + i * cluster), x, its_barrier)
        cute.arch.mbarrier_wait(barrier, phase)
        return operation.over_lanes(
            self._column(operation, received, own, count, cluster), cluster, self.config.threads
        )

    def _by_barrier(self, operation: Any, numbers: list[Any], warp: Any) -> list[Any]:
        """Each warp writes to all blocks, lane i to block i; then the cluster synchronizes."""
        warps, count = self.config.warps, len(numbers)
        table, _ = self._table(count, warps, None)
        cute.arch.cluster_wait()  # every block has started, so its shared memory exists
        if self.lane < self.config.cluster:
            there = cute.arch.map_dsmem_ptr(table.iterator, self.lane)
            mine = self.rank * (warps // self.config.cluster) + warp
            for i, x in enumerate(numbers):
                there[mine + i * warps] = x
        cute.arch.cluster_arrive()
        cute.arch.cluster_wait()
        columns = min(32, warps)
        found = [self._column(operation, table, first, count, warps) for first in range(0, warps, columns)]
        return operation.over_lanes(operation.merged(found), columns)

    def _table(self, count: int, columns: int, buffer: ExchangeBuffer | None) -> tuple[Any, Any]:
        """Return shared memory for ``count`` numbers per column, and the offset of this row."""
        sides = 1 if buffer is None else 2
        table = cute.smem_tensor(cute.Float32, cute.make_layout(sides * count * columns), byte_alignment=4)
        return table, 0 if buffer is None else buffer.side * (count * columns)

    def _column(self, operation: Any, table: Any, first: Any, count: int, columns: int) -> list[Any]:
        """Return the numbers of one column per lane; lanes past the last column get identity elements."""
        lanes = _lanes(columns)
        column = self.lane if lanes >= 32 else self.lane % lanes
        if lanes == columns or columns > 32:
            return [table[first + column + i * columns] for i in range(count)]
        there, has = cute.min(column, columns - 1), column < columns
        numbers = [table[first + there + i * columns] for i in range(count)]
        return [cute.where(has, x, neutral) for x, neutral in zip(numbers, operation.neutral(count))]


def _lanes(columns: int) -> int:
    """Return the smallest power of two that is at least ``columns``."""
    return 1 << (columns - 1).bit_length()
