"""Building blocks of GEMMs with ``mma.sync``: cp.async operand rings, the main loop over K, and the store of C.

The last tile of K, which may be partial, is loaded first, so that the loop needs no predicates along K. If a copy moves
less than 4 bytes, elements go through registers.
"""

# pyright: basic

from collections.abc import Callable
from math import gcd
from typing import Any

import cute_dialect.lang as cute
from cute_dialect.lang.nvgpu import LoadCacheMode, cpasync, warp


def check_tile(tile: tuple[int, int], warps: tuple[int, int], block: tuple[int, int], stages: int) -> None:
    """Raise ValueError unless each warp computes whole blocks of (M, N) elements, with at least 2 stages."""
    steps = tuple(w * b for w, b in zip(warps, block))
    if any(t < 1 or t % s for t, s in zip(tile, steps)):
        raise ValueError(
            f"the tile is {tile[0]} x {tile[1]}; with {warps[0]} x {warps[1]} warps it must be a multiple of "
            f"{steps[0]} x {steps[1]}"
        )
    if stages < 2:
        raise ValueError(f"stages is {stages}; use at least 2")


class Staged:
    """An operand, A or B: its tiles in global memory, its ring in shared memory, and the copies of this thread.

    Args:
        matrix: The operand.
        shape: (rows, K) of a tile.
        tile: Index of the tile along the rows.
        buffer: Shared memory for the ring.
        stages: Number of stages.
        vector: Elements per copy. Copies of at least 4 bytes are asynchronous.
        thread, threads: Index and number of threads.

    ``begins`` is the tile of K that counts as the first one.
    """

    begins: Any = 0

    def __init__(
        self, matrix: Any, shape: tuple[int, int], tile: Any, buffer: Any, stages: int, vector: int, thread: Any,
        threads: int,
    ):  # fmt: skip
        kind, (rows, depth), contiguous = matrix.element_type, shape, contiguous_mode(matrix)
        bits = kind.width * vector
        self.direct, self.matrices = bits >= 32, self.fragments(kind, contiguous)
        atom = cute.make_copy_atom(cute.nvgpu.CopyUniversalOp(), kind)
        if self.direct:
            mode = LoadCacheMode.GLOBAL if bits == 128 else LoadCacheMode.ALWAYS
            atom = cute.make_copy_atom(cpasync.CopyG2SOp(mode), kind, num_bits_per_copy=bits)
        self.copy = tile_copy(atom, (rows, depth), contiguous, vector, threads).get_slice(thread)
        self.ring = cute.make_tensor(buffer, self.layout(kind, rows, depth, contiguous, stages))
        self.source = self.copy.partition_S(cute.local_tile(matrix, (rows, depth), (tile, None)))
        self.target = self.copy.partition_D(self.ring)
        ids = cute.local_tile(cute.make_identity_tensor(plain_shape(matrix)), (rows, depth), (tile, 0))
        self.ids = self.copy.partition_S(ids)
        _, self.first, self.second = cute.shape(self.ids)
        # One predicate per copy: is its row in bounds?
        self.flags = cute.make_rmem_tensor(
            cute.make_layout((1, self.first, self.second), stride=(0, 1, 0)), cute.Boolean
        )
        for i in range(self.first):
            self.flags[0, i, 0] = self.ids[0, i, 0][0] < matrix.shape[0]

    @staticmethod
    def fragments(kind: Any, contiguous: int) -> Any:
        """Return the copy atom that loads fragments to registers."""
        return cute.make_copy_atom(warp.LdMatrix8x8x16bOp(contiguous == 0, 4), kind)

    @staticmethod
    def layout(kind: Any, rows: int, depth: int, contiguous: int, stages: int) -> Any:
        """Return the layout of the ring, (rows, K, stages)."""
        behind = cute.make_layout(stages, stride=rows * depth)
        one = tile_layout(rows, depth) if contiguous == 1 else cute.select(tile_layout(depth, rows), [1, 0])
        return cute.append(one, behind)

    def commit(self) -> None:
        """Commit the copies of a stage if they are asynchronous."""
        if self.direct:
            cute.arch.cp_async_commit_group()

    def wait(self, stages: int) -> None:
        """Wait until all but ``stages`` stages have arrived."""
        if self.direct:
            cute.arch.cp_async_wait_group(stages)

    def flags_of_last(self, left: Any) -> Any:
        """Return predicates for the last tile of K, with ``left`` columns in bounds."""
        flags = cute.make_rmem_tensor((1, self.first, self.second), cute.Boolean)
        for i in range(self.first):
            for j in range(self.second):
                flags[0, i, j] = self.flags[0, i, 0] & (self.ids[0, i, j][1] < left)
        return flags

    def of_k(self, tile: Any) -> Any:
        """Return the elements of a tile of K that this thread copies."""
        return self.source[None, None, None, tile + self.begins]

    def move(self, tile: Any, stage: Any, flags: Any) -> None:
        """Copy a tile of K to a stage, with zeros where a predicate is false."""
        if self.direct:
            cute.copy(self.copy, self.of_k(tile), self.target[None, None, None, stage], pred=flags)
        else:
            held = self.held()
            cute.copy(self.copy, self.of_k(tile), held, pred=flags)
            self.end(stage, held)

    def held(self) -> Any:
        """Return zeroed registers for a tile in flight, or None if cp.async copies it."""
        if self.direct:
            return None
        held = cute.make_rmem_tensor_like(self.target[None, None, None, 0])
        held.fill(0)
        return held

    def begin(self, tile: Any, stage: Any, held: Any) -> None:
        """Issue the loads of a tile of K for a stage; ``end`` completes them."""
        if held is None:
            self.move(tile, stage, self.flags)
        else:
            cute.copy(self.copy, self.of_k(tile), held, pred=self.flags)

    def end(self, stage: Any, held: Any) -> None:
        """Write the loaded registers to a stage."""
        if held is not None:
            cute.copy(self.copy, held, self.target[None, None, None, stage])


class WarpsOfK:
    """Groups of warps that share the K of a stage. Each group multiplies every n-th K step of the whole tile.

    The first group then reduces the accumulators in a fixed order. ``groups`` is the number of groups, of ``threads``
    threads each. ``lane`` is this thread's index in its group, and ``leads`` is True in the first group.
    """

    def __init__(self, groups: int, threads: int, thread: Any):
        self.groups, self.threads = groups, threads
        self.group, self.lane = (0, thread) if groups == 1 else (thread // threads, thread % threads)
        self.leads = True if groups == 1 else self.group == 0

    def step(self, i: Any) -> Any:
        """Return the index in a stage of this group's step ``i``."""
        return i if self.groups == 1 else i * self.groups + self.group

    def add_up(self, acc: Any, memory: Any) -> None:
        """Reduce the accumulators of all groups to the first one, through free shared memory at ``memory``."""
        if self.groups == 1:
            return
        layout = cute.make_layout((cute.size(acc), self.threads), stride=(self.threads, 1))
        shared = cute.make_tensor(cute.recast_ptr(memory, dtype=acc.element_type), layout)
        for other in cute.range_constexpr(1, self.groups):
            cute.arch.sync_threads()
            if self.group == other:
                for i in range(cute.size(acc)):  # held in registers, so the passes unroll this loop
                    shared[i, self.lane] = acc[i]
            cute.arch.sync_threads()
            if self.group == 0:
                for i in range(cute.size(acc)):  # held in registers, so the passes unroll this loop
                    acc[i] = acc[i] + shared[i, self.lane]


class BlocksOfK:
    """Split-K blocks of a tile. Each writes its partial accumulator, and the last one to arrive adds them in slice
    order.

    The result is deterministic, and no block waits.

    Args:
        workspace: The partial accumulators of all blocks.
        counters: Number of blocks that have arrived per tile; zero before and after the launch.
        parts: Number of blocks per tile.
        tile: Index of the tile.
        part: Index of this block in the tile.
        thread, threads: Index and number of threads.
    """

    def __init__(self, workspace: Any, counters: Any, parts: int, tile: Any, part: Any, thread: Any, threads: int):
        self.workspace, self.counters, self.parts = workspace, counters, parts
        self.tile, self.part, self.thread, self.threads = tile, part, thread, threads

    def begin(self, k: Any, depth: int) -> tuple[Any, Any]:
        """Return the first tile of K of this block, and the extent of K from there on, which may be empty."""
        tiles = cute.ceil_div(k, depth)
        begin, end = self.part * tiles // self.parts, (self.part + 1) * tiles // self.parts
        return begin, cute.min(k, end * depth) - begin * depth

    def add_up(self, acc: Any) -> Any:
        """Write this block's partial accumulator. Returns True in the last block, whose accumulator is then the sum."""
        kind, size = acc.element_type, cute.size(acc)
        vector = gcd(size, 128 // kind.width)
        runs = size // vector
        # Vectors of 16 bytes of adjacent threads are contiguous.
        values = cute.make_layout((vector, runs, self.parts), stride=(1, vector * self.threads, size * self.threads))
        start = cute.recast_ptr(self.workspace.iterator, dtype=kind)
        first = self.tile * (size * self.threads * self.parts) + self.thread * vector
        sums = cute.make_tensor(start + first, values)
        atom = cute.make_copy_atom(cute.nvgpu.CopyUniversalOp(), kind, num_bits_per_copy=vector * kind.width)
        held = cute.make_tensor(acc.iterator, cute.make_layout((vector, runs)))
        cute.copy(atom, held, sums[None, None, self.part])
        come = cute.smem_tensor(cute.Int32, cute.make_layout(1), 4)
        cute.arch.sync_threads()
        if self.thread == 0:
            cute.arch.fence_acq_rel_gpu()  # after the barrier, so that the fence covers the writes of all warps
            counter = self.counters.iterator + self.tile
            found = cute.arch.atomic_add(counter, 1, sem="acq_rel")
            if found == self.parts - 1:
                cute.arch.atomic_exch(counter, 0)
            come[0] = found
        cute.arch.sync_threads()
        last = come[0] == self.parts - 1
        if last:
            cute.arch.fence_acq_rel_gpu()
            acc.fill(0)
            # Unrolled, so that the loads of one slice overlap with adding another.
            for part in cute.range_constexpr(self.parts):
                other = cute.make_rmem_tensor((vector, runs), kind)
                cute.copy(atom, sums[None, None, part], other)
                for i in range(size):  # held in registers, so the passes unroll this loop
                    acc[i] = acc[i] + other[i]
        return last


class TileStore:
    """Store of a tile of C through shared memory, some rows at a time, so that stores are coalesced for any alignment.

    Args:
        C: The matrix.
        tile: (M, N) of the tile.
        where: Row and column of the tile.
        part: This thread's slice of the tiled MMA.
        rows: Rows that one MMA of all warps covers, or those of the whole tile.
        memory: Free shared memory of :meth:`size` bytes.
        thread, threads: Index and number of threads.
    """

    def __init__(
        self, C: Any, tile: tuple[int, int], where: tuple[Any, Any], part: Any, rows: int, memory: Any, thread: Any,
        threads: int,
    ):  # fmt: skip
        self.kind, self.times = C.element_type, tile[0] // rows
        layout = cute.make_layout((rows, tile[1]), stride=(tile[1] + self._PAD, 1))
        staged = cute.make_tensor(cute.recast_ptr(memory, dtype=self.kind), layout)
        self.part = part.partition_C(staged)
        # Threads are adjacent along the row, for the largest power of two that divides it.
        along = min(tile[1] & -tile[1], threads)
        across = gcd(rows, threads // along)
        self.idle = threads > along * across  # some threads are idle
        self.works = thread < along * across
        copy = cute.make_tiled_copy_tv(
            cute.make_copy_atom(cute.nvgpu.CopyUniversalOp(), self.kind),
            cute.make_layout((across, along), stride=(along, 1)), cute.make_layout((1, 1)),
        ).get_slice(thread % (along * across) if self.idle else thread)  # fmt: skip
        self.source = copy.partition_S(staged)[0, None, None]
        self.target = copy.partition_D(cute.local_tile(C, tile, where))[0, None, None]
        self.ids = copy.partition_S(cute.make_identity_tensor(tile))[0, None, None]
        self.left = [extent - i * n for extent, i, n in zip(plain_shape(C), where, tile)]

    _PAD = 8
    """Row padding, in elements: the pairs that a warp writes map to all banks once."""

    @classmethod
    def size(cls, kind: Any, rows: int, columns: int) -> int:
        """Return the bytes of shared memory for ``rows`` rows."""
        return rows * (columns + cls._PAD) * kind.width // 8

    def write(self, out: Any, mine: Any = True) -> None:
        """Write a tile. ``out`` holds this thread's elements, if ``mine`` is True. All threads must call it."""
        # A tensor-core MMA gives a thread two adjacent elements of a row, an FMA one.
        neighbours = 2 if cute.size(out, mode=[0]) > 1 else 1
        atom = cute.make_copy_atom(
            cute.nvgpu.CopyUniversalOp(), self.kind, num_bits_per_copy=neighbours * self.kind.width
        )
        down, wide = cute.shape(self.source)
        for i in cute.range_constexpr(self.times):
            cute.arch.sync_threads()
            if mine:
                if self.times == 1:
                    cute.copy(atom, out, self.part)
                else:
                    cute.copy(atom, out[None, i, None], self.part[None, 0, None])
            cute.arch.sync_threads()
            held = cute.make_rmem_tensor((down, wide), self.kind)
            for row in cute.range_constexpr(down):
                for column in cute.range_constexpr(wide):
                    held[row, column] = self.source[row, column]
            for row in cute.range_constexpr(down):
                for column in cute.range_constexpr(wide):
                    at = self.ids[i * down + row, column]
                    inside = (at[0] < self.left[0]) & (at[1] < self.left[1])
                    if self.idle:
                        inside = inside & self.works
                    if inside:
                        self.target[i * down + row, column] = held[row, column]


def plain_shape(matrix: Any) -> Any:
    """Return the extents of a matrix as two numbers, even if its columns are interleaved."""
    if isinstance(matrix.shape[1], tuple):
        return cute.size(matrix, mode=[0]), cute.size(matrix, mode=[1])
    return matrix.shape


def contiguous_mode(matrix: Any) -> int:
    """Return the contiguous mode of a matrix, or 1 if there is none."""
    return 0 if matrix.leading_dim == 0 else 1


def tile_layout(rows: int, columns: int) -> Any:
    """Return the shared-memory layout of a tile, whose rows are split into runs of 128 bytes."""
    run = min(64, columns)
    if columns == run:
        return cute.make_layout((rows, columns), stride=(run, 1))
    return cute.make_layout((rows, (run, columns // run)), stride=(run, (1, rows * run)))


def tile_copy(atom: Any, tile: tuple[int, int], contiguous: int, vector: int, threads: int) -> Any:
    """Return a tiled copy with threads adjacent along the contiguous mode and ``vector`` elements each."""
    runs = min(tile[contiguous] // vector, threads)
    across = threads // runs
    if contiguous == 1:
        of_threads, of_values = cute.make_layout((across, runs), stride=(runs, 1)), cute.make_layout((1, vector))
    else:
        of_threads, of_values = cute.make_layout((runs, across)), cute.make_layout((vector, 1))
    return cute.make_tiled_copy_tv(atom, of_threads, of_values)


def over_k(a: Staged, b: Staged, extent: Any, depth: int, stages: int, multiply: Callable[[Any], None]) -> None:
    """Main loop: call ``multiply(stage)`` for each tile of K, of ``depth`` each, while later tiles are in flight."""
    k_tiles = _begin(a, b, extent, depth, stages)
    read, write = cute.Int32(0), cute.Int32(stages - 1)
    for i in range(k_tiles):
        a.wait(stages - 2)
        cute.arch.sync_threads()
        # Refill the stage that was read in the previous step with the tile for ``stages - 1`` steps later.
        ahead = i + (stages - 1)
        more = ahead < k_tiles
        held = [x.held() for x in (a, b)]
        if more:
            for x, h in zip((a, b), held):
                x.begin(ahead - 1, write, h)
        a.commit()
        multiply(read)
        if more:
            for x, h in zip((a, b), held):
                x.end(write, h)
        read, write = (0 if x + 1 == stages else x + 1 for x in (read, write))
    a.wait(0)


def _begin(a: Staged, b: Staged, extent: Any, depth: int, stages: int) -> Any:
    """Issue the loads of the first tiles of K, for all stages but one, and return the number of tiles."""
    k_tiles = cute.ceil_div(extent, depth)
    last = k_tiles - 1
    left = cute.min(extent - last * depth, extent)  # zero if K is 0
    for x in (a, b):
        x.move(last, 0, x.flags_of_last(left))
    a.commit()
    for stage in cute.range_constexpr(1, stages - 1):
        if stage < k_tiles:
            for x in (a, b):
                x.move(stage - 1, stage, x.flags)
        a.commit()
    return k_tiles


def over_k_ahead(
    a: Staged, b: Staged, extent: Any, depth: int, stages: int, steps: int, fetch: Callable[[Any, int, int], None],
    multiply: Callable[[int], None],
) -> None:  # fmt: skip
    """Main loop with fragments loaded one step ahead; see :func:`over_k`.

    A tile has an even number of ``steps``. ``fetch(stage, step, i)`` loads fragments to register set ``i``, 0 or 1,
    while ``multiply(1 - i)`` multiplies the other set. No warp is thus without MMAs at the barrier between two tiles.
    """
    k_tiles = _begin(a, b, extent, depth, stages)
    read, write = cute.Int32(0), cute.Int32(stages - 1)
    a.wait(stages - 2)
    cute.arch.sync_threads()
    if k_tiles > 0:
        fetch(read, 0, 0)
    for i in range(k_tiles):
        ahead = i + (stages - 1)
        more = ahead < k_tiles
        held = [x.held() for x in (a, b)]
        # Refill the stage of the previous tile with the tile for ``stages - 1`` tiles later.
        if more:
            for x, h in zip((a, b), held):
                x.begin(ahead - 1, write, h)
        a.commit()
        following = 0 if read + 1 == stages else read + 1
        for step in cute.range_constexpr(steps):
            if step < steps - 1:
                fetch(read, step + 1, (step + 1) % 2)
            else:
                if more:
                    for x, h in zip((a, b), held):
                        x.end(write, h)
                a.wait(stages - 2)
                cute.arch.sync_threads()
                if i + 1 < k_tiles:
                    fetch(following, 0, 0)
            multiply(step % 2)
        read, write = following, 0 if write + 1 == stages else write + 1
    a.wait(0)
