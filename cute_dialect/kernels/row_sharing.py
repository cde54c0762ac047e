"""Who shares a row: threads of a warp, warps of a block, blocks of a cluster, and how their partial results meet.

There is one exchange a row.  A warp combines its numbers by shuffles, the warps of a block put theirs into shared
memory, and the blocks of a cluster send theirs to each other.  What it means to combine is the operation's affair.
"""

# Traced values define operators and element types that pyright cannot check.
# pyright: basic, reportOptionalMemberAccess=false, reportOptionalOperand=false

from typing import Any, NamedTuple

import cute_dialect.lang as cute
from cute_dialect.kernels.row_config import RowConfig

__all__ = ["Sharing", "Turn"]


class Turn(NamedTuple):
    """Which of two sides of shared memory a row's exchange uses, and the phase of its barrier.

    Rows in turn use both sides: nobody still reads what is written next.
    """

    side: Any
    phase: Any


class Sharing:
    """The threads that share a row, as one of them sees it.

    ``thread`` is its number among them; ``row`` is its row of those that the grid works on at once.  ``messages``: the
    blocks of a cluster send each other messages, by ``st.async``, rather than meet at its barrier.  ``in_turn``: they
    work on more than one row.
    """

    def __init__(self, config: RowConfig, messages: bool = False, in_turn: bool = False):
        self.config, self.messages = config, messages
        self.tid, self.row = cute.arch.thread_idx().x, cute.arch.block_idx().x
        self.lane = cute.arch.lane_idx()
        self.thread = self.tid
        self.rank: Any = 0
        if self.config.cluster > 1:
            if self.messages:
                self.barriers = self._make_barriers(2 if in_turn else 1)
            cute.arch.cluster_arrive_relaxed()
            self.rank = cute.arch.block_idx_in_cluster()
            self.row = self.row // self.config.cluster
            self.thread = self.rank * self.config.threads + self.tid
        elif self.config.rows > 1:
            self.thread = self.tid % self.config.threads
            self.row = self.row * self.config.rows + self.tid // self.config.threads

    def _make_barriers(self, sides: int) -> Any:
        """Make an mbarrier for the partial results that other blocks send, one for each side."""
        barriers = cute.arch.alloc_smem(cute.Int64, sides)
        if self.tid == 0:
            for side in cute.range_constexpr(sides):
                cute.arch.mbarrier_init(barriers + side, 1)
            cute.arch.mbarrier_init_fence()
        return barriers

    @property
    def lanes(self) -> int:
        """Threads of a row that are in one warp."""
        return min(32, self.config.threads)

    @property
    def warp(self) -> Any:
        """The number of this warp among those that share the row."""
        return self.thread // 32

    def exchange(self, operation: Any, numbers: list[Any], turn: Turn | None = None) -> list[Any]:
        """Return the numbers of each warp combined over the row, the same for all its threads.

        ``operation.over_lanes(numbers, lanes, threads)`` combines groups of lanes, each with the numbers of so many
        threads; ``operation.merged(lists)`` lists that one thread has, where blocks send no messages;
        ``operation.neutral(count)`` gives so many numbers that change nothing.
        """
        if self.config.warps == 1:
            return numbers
        warp = cute.arch.canonical_warp_idx_sync()
        if self.config.cluster > 1 and not self.messages:
            return self._by_barrier(operation, numbers, warp)
        warps, cluster, count = self.config.threads // 32, self.config.cluster, len(numbers)
        if warps > 1:
            # The warps put their numbers into shared memory; each lane reads those of one.
            partials, first = self._table(count, warps, turn)
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
        received, own = self._table(count, cluster, turn)
        if turn is None:
            cute.arch.cluster_wait()  # every block has begun: its barrier is there
        barrier, phase = (self.barriers, 0) if turn is None else (self.barriers + turn.side, turn.phase)
        if warp == 0:
            # Lane i tells block i; no fence, which would wait for what the thread has stored and is loading.
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
        """Let each warp write to all blocks, lane i to block i; then all threads of the cluster meet."""
        warps, count = self.config.warps, len(numbers)
        table, _ = self._table(count, warps, None)
        cute.arch.cluster_wait()  # every block has begun: its shared memory is there
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

    def _table(self, count: int, columns: int, turn: Turn | None) -> tuple[Any, Any]:
        """Return shared memory for ``count`` numbers of each of ``columns``, and where those of this row begin."""
        sides = 1 if turn is None else 2
        table = cute.smem_tensor(cute.Float32, cute.make_layout(sides * count * columns), byte_alignment=4)
        return table, 0 if turn is None else turn.side * (count * columns)

    def _column(self, operation: Any, table: Any, first: Any, count: int, columns: int) -> list[Any]:
        """Return the numbers of one column, another for each lane; beyond the last one neutral numbers."""
        lanes = _lanes(columns)
        column = self.lane if lanes >= 32 else self.lane % lanes
        if lanes == columns or columns > 32:
            return [table[first + column + i * columns] for i in range(count)]
        there, has = cute.min(column, columns - 1), column < columns
        numbers = [table[first + there + i * columns] for i in range(count)]
        return [cute.where(has, x, neutral) for x, neutral in zip(numbers, operation.neutral(count))]


def _lanes(columns: int) -> int:
    """Return the power of two that is not below a number of columns."""
    return 1 << (columns - 1).bit_length()
