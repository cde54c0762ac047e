"""Small protocols of the language, correct or with one defect, for tests of the protocol prover.

`ring` moves rows with mbarriers, `tma_ring` with TMA copies, `copy_pipeline` with cp.async and barriers of the block,
`handoff` with two named barriers, and `cluster_ring` with multicast copies in a cluster of two blocks. `tile_ring` is
`ring` for several tiles of one number of steps. In `alternating_ring` two consumers take alternate tiles, `tail_ring`
has phases that depend on remainders of sizes, and in `sparse_waits` a warp waits for some phases only.
"""

# ruff: noqa: F821, UP037  (the strings in annotations are names of extents)

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np

import cute_dialect.lang as cute
from cute_dialect.lang.nvgpu import cpasync

DEFECTS = (
    "no wait for full", "no wait for empty", "early release", "no release", "wrong phase", "wrong count", "late full",
)  # fmt: skip


def ring(stages: int, defect: str = "") -> Callable[..., Any]:
    """Return a host function that copies rows of 32 numbers from one warp to another through a ring of stages."""

    @cute.kernel
    def ring_kernel(x: cute.Tensor, y: cute.Tensor):
        tid = cute.arch.thread_idx().x
        warp = cute.arch.make_warp_uniform(tid // 32)
        lane = tid % 32
        slots = cute.make_tensor(cute.arch.alloc_smem(cute.Float32, 32 * stages, 16), cute.make_layout((32, stages)))
        full = cute.arch.alloc_smem(cute.Int64, stages, 8)
        empty = cute.arch.alloc_smem(cute.Int64, stages, 8)
        if tid == 0:
            for s in cute.range_constexpr(stages):
                cute.arch.mbarrier_init(full + s, 16 if defect == "wrong count" else 32)
                cute.arch.mbarrier_init(empty + s, 32)
        cute.arch.sync_threads()
        slot, phase = cute.Int32(0), cute.Int32(0)
        if warp == 0:
            for k in range(x.shape[1]):
                if defect != "no wait for empty":
                    cute.arch.mbarrier_wait(empty + slot, phase if defect == "wrong phase" else phase ^ 1)
                if defect == "late full":
                    cute.arch.mbarrier_arrive(full + slot)
                slots[lane, slot] = x[lane, k]
                if defect != "late full":
                    cute.arch.mbarrier_arrive(full + slot)
                slot += 1
                if slot == stages:
                    slot = cute.Int32(0)
                    phase = phase ^ 1
        else:
            for k in range(x.shape[1]):
                if defect != "no wait for full":
                    cute.arch.mbarrier_wait(full + slot, phase)
                if defect == "early release":
                    cute.arch.mbarrier_arrive(empty + slot)
                y[lane, k] = slots[lane, slot]
                if defect not in ("early release", "no release"):
                    cute.arch.mbarrier_arrive(empty + slot)
                slot += 1
                if slot == stages:
                    slot = cute.Int32(0)
                    phase = phase ^ 1

    @cute.jit
    def launch(x: cute.Tensor[None, 32, "n"], y: cute.Tensor[None, 32, "n"]):
        ring_kernel(x, y).launch(grid=1, block=64)

    return launch


def arrays(columns: int) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Return an input and an output of `columns` steps."""
    x = np.arange(32 * columns, dtype=np.float32).reshape(32, columns)
    return x, np.zeros_like(x)


TMA_DEFECTS = ("one arrival fewer", "bytes more", "bytes fewer", "no proxy fence", "wrong phase", "no release")


def tma_ring(stages: int, defect: str = "") -> Callable[..., Any]:
    """Return a host function that loads tiles of 8x32 by TMA. The reader also writes into each stage."""
    expected = 1024 + {"bytes more": 16, "bytes fewer": -16}.get(defect, 0)

    @cute.kernel
    def tma_kernel(tma_x: Any, y: cute.Tensor, steps: cute.Int32):
        load, X = tma_x
        tid = cute.arch.thread_idx().x
        warp, lane = cute.arch.make_warp_uniform(tid // 32), tid % 32
        slots = cute.smem_tensor(cute.Float32, cute.make_layout((8, 32, stages), stride=(32, 1, 256)), 128)
        full = cute.arch.alloc_smem(cute.Int64, stages, 8)
        empty = cute.arch.alloc_smem(cute.Int64, stages, 8)
        if tid == 0:
            for i in cute.range_constexpr(stages):
                cute.arch.mbarrier_init(full + i, 1)
                cute.arch.mbarrier_init(empty + i, 31 if defect == "one arrival fewer" else 32)
            cute.arch.mbarrier_init_fence()
        cute.arch.sync_threads()
        tiles, whole = cute.flat_divide(X, (8, 32)), cute.make_layout(1)
        ts, tg = cpasync.tma_partition(load, 0, whole, cute.group_modes(slots, 0, 2), cute.group_modes(tiles, 0, 2))
        slot, phase = cute.Int32(0), cute.Int32(0)
        if warp == 0:
            if cute.arch.elect_one():
                for k in range(steps):
                    cute.arch.mbarrier_wait(empty + slot, phase if defect == "wrong phase" else phase ^ 1)
                    cute.arch.mbarrier_arrive_and_expect_tx(full + slot, expected)
                    cute.copy(load, tg[None, 0, k], ts[None, slot], tma_bar_ptr=full + slot)
                    slot += 1
                    if slot == stages:
                        slot = cute.Int32(0)
                        phase = phase ^ 1
        else:
            for k in range(steps):
                cute.arch.mbarrier_wait(full + slot, phase)
                y[lane, k] = slots[0, lane, slot]
                slots[1, lane, slot] = 1.0
                if defect != "no proxy fence":
                    cute.arch.fence_proxy("async.shared", space="cta")
                if defect != "no release":
                    cute.arch.mbarrier_arrive(empty + slot)
                slot += 1
                if slot == stages:
                    slot = cute.Int32(0)
                    phase = phase ^ 1

    @cute.jit
    def launch(x: cute.Tensor[None, "m", "n"], y: cute.Tensor[None, 32, "k"]):
        box = cute.make_layout((8, 32), stride=(32, 1))
        atom = cpasync.make_tiled_tma_atom(cpasync.G2S(), x, box, (8, 32))
        tma_kernel(atom, y, y.shape[1]).launch(grid=1, block=64)

    return launch


def tma_arrays(columns: int) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Return the arguments of `tma_ring` for a number of steps."""
    return np.ones((8, 32 * columns), np.float32), np.zeros((32, columns), np.float32)


COPY_DEFECTS = ("no barrier", "one group too many in flight", "no commit", "copy before the barrier")


def copy_pipeline(stages: int, defect: str = "") -> Callable[..., Any]:
    """Return a host function whose 64 threads prefetch rows with cp.async, `stages` - 1 steps ahead."""

    @cute.kernel
    def copy_kernel(x: cute.Tensor, y: cute.Tensor):
        tid = cute.arch.thread_idx().x
        memory = cute.arch.alloc_smem(cute.Float32, 256 * stages, 16)
        slots = cute.make_tensor(memory, cute.make_layout((stages, 64, 4), stride=(256, 4, 1)))
        atom = cute.make_copy_atom(cpasync.CopyG2SOp(), cute.Float32, num_bits_per_copy=128)
        steps, ahead = x.shape[0], stages - 1
        for i in cute.range_constexpr(ahead):
            if i < steps:
                cute.copy(atom, x[i, tid, None], slots[i, tid, None])
            cute.arch.cp_async_commit_group()
        read, write = cute.Int32(0), cute.Int32(ahead)
        for k in range(steps):
            if defect == "copy before the barrier" and k + ahead < steps:
                cute.copy(atom, x[k + ahead, tid, None], slots[write, tid, None])
            cute.arch.cp_async_wait_group(ahead - 1 + (defect == "one group too many in flight"))
            if defect != "no barrier":
                cute.arch.sync_threads()
            if defect != "copy before the barrier" and k + ahead < steps:
                cute.copy(atom, x[k + ahead, tid, None], slots[write, tid, None])
            if defect != "no commit":
                cute.arch.cp_async_commit_group()
            y[k, tid] = slots[read, 63 - tid, 0]
            read = cute.Int32(0) if read == stages - 1 else read + 1
            write = cute.Int32(0) if write == stages - 1 else write + 1
        cute.arch.cp_async_wait_group(0)

    @cute.jit
    def launch(x: cute.Tensor[None, "n", 64, 4], y: cute.Tensor[None, "n", 64]):
        copy_kernel(x, y).launch(grid=1, block=64)

    return launch


def copy_arrays(rows: int) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Return the arguments of `copy_pipeline` for a number of steps."""
    return np.ones((rows, 64, 4), np.float32), np.zeros((rows, 64), np.float32)


HANDOFF_DEFECTS = ("wrong count", "no second barrier", "one barrier", "arrive first")


def handoff(stages: int, defect: str = "") -> Callable[..., Any]:
    """Return a host function whose warps hand `stages` rows over with one pair of named barriers per row."""
    count = 96 if defect == "wrong count" else 64

    @cute.kernel
    def handoff_kernel(x: cute.Tensor, y: cute.Tensor):
        tid = cute.arch.thread_idx().x
        warp, lane = cute.arch.make_warp_uniform(tid // 32), tid % 32
        slots = cute.make_tensor(cute.arch.alloc_smem(cute.Float32, 32 * stages, 16), cute.make_layout((32, stages)))
        for k in range(x.shape[1]):
            for s in cute.range_constexpr(stages):
                full, empty = 1 + s, 1 + s if defect == "one barrier" else 8 + s
                if warp == 0:
                    if k > 0 and defect != "no second barrier":
                        cute.arch.barrier(barrier_id=empty, number_of_threads=count)
                    if defect == "arrive first":
                        cute.arch.barrier_arrive(barrier_id=full, number_of_threads=count)
                    slots[lane, s] = x[lane, k]
                    if defect != "arrive first":
                        cute.arch.barrier_arrive(barrier_id=full, number_of_threads=count)
                else:
                    cute.arch.barrier(barrier_id=full, number_of_threads=count)
                    y[lane, k] = slots[lane, s]
                    if k + 1 < x.shape[1] and defect != "no second barrier":
                        cute.arch.barrier_arrive(barrier_id=empty, number_of_threads=count)

    @cute.jit
    def launch(x: cute.Tensor[None, 32, "n"], y: cute.Tensor[None, 32, "n"]):
        handoff_kernel(x, y).launch(grid=1, block=64)

    return launch


CLUSTER_DEFECTS = (
    "no barrier at the start", "no barrier at the end", "own release only", "bytes of one block", "one arrival fewer",
)  # fmt: skip


def cluster_ring(stages: int, defect: str = "") -> Callable[..., Any]:
    """Return a host function whose two blocks load half of each stage for both of them, by multicast."""
    expected = 1024 if defect == "bytes of one block" else 2048

    @cute.kernel
    def cluster_kernel(tma_x: Any, y: cute.Tensor, steps: cute.Int32):
        load, X = tma_x
        tid, rank = cute.arch.thread_idx().x, cute.arch.block_idx_in_cluster()
        warp, lane = cute.arch.make_warp_uniform(tid // 32), tid % 32
        layout = cute.make_layout((8, 32, 2 * stages), stride=(32, 1, 256))
        slots = cute.smem_tensor(cute.Float32, layout, 128)
        full = cute.arch.alloc_smem(cute.Int64, stages, 8)
        empty = cute.arch.alloc_smem(cute.Int64, stages, 8)
        if tid == 0:
            for i in cute.range_constexpr(stages):
                cute.arch.mbarrier_init(full + i, 1)
                cute.arch.mbarrier_init(empty + i, 1 if defect == "one arrival fewer" else 2)
            cute.arch.mbarrier_init_fence()
        if defect == "no barrier at the start":
            cute.arch.sync_threads()
        else:
            cute.arch.cluster_arrive()
            cute.arch.cluster_wait()
        tiles, whole = cute.flat_divide(X, (8, 32)), cute.make_layout(1)
        ts, tg = cpasync.tma_partition(load, 0, whole, cute.group_modes(slots, 0, 2), cute.group_modes(tiles, 0, 2))
        slot, phase = cute.Int32(0), cute.Int32(0)
        if warp == 0:
            if cute.arch.elect_one():
                for k in range(steps):
                    cute.arch.mbarrier_wait(empty + slot, phase ^ 1)
                    cute.arch.mbarrier_arrive_and_expect_tx(full + slot, expected)
                    cute.copy(load, tg[None, rank, k], ts[None, 2 * slot + rank], tma_bar_ptr=full + slot, mcast_mask=3)
                    slot += 1
                    if slot == stages:
                        slot = cute.Int32(0)
                        phase = phase ^ 1
        elif warp == 1:
            for k in range(steps):
                cute.arch.mbarrier_wait(full + slot, phase)
                y[32 * rank + lane, k] = slots[0, lane, 2 * slot] + slots[0, lane, 2 * slot + 1]
                cute.arch.sync_warp()
                if defect == "own release only":
                    if lane < 2:
                        cute.arch.mbarrier_arrive(empty + slot, rank)
                elif lane < 2:
                    cute.arch.mbarrier_arrive(empty + slot, lane)
                slot += 1
                if slot == stages:
                    slot = cute.Int32(0)
                    phase = phase ^ 1
        if defect != "no barrier at the end":
            cute.arch.cluster_arrive()
            cute.arch.cluster_wait()

    @cute.jit
    def launch(x: cute.Tensor[None, "m", "n"], y: cute.Tensor[None, 64, "k"]):
        box = cute.make_layout((8, 32), stride=(32, 1))
        atom = cpasync.make_tiled_tma_atom(cpasync.G2SMulticast(), x, box, (8, 32))
        cluster_kernel(atom, y, y.shape[1]).launch(grid=2, block=128, cluster=(2, 1, 1))

    return launch


def cluster_arrays(columns: int) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Return the arguments of `cluster_ring` for a number of steps."""
    return np.ones((16, 32 * columns), np.float32), np.zeros((64, columns), np.float32)


TILE_DEFECTS = ("no wait for empty", "early release", *(f"no release of {n} columns" for n in range(1, 5)))


def tile_ring(stages: int, defect: str = "") -> Callable[..., Any]:
    """Return a host function that moves rows of tiles through one ring, each tile a row more than `x` has columns.

    "no release of 3 columns" affects only this number of columns.
    """

    @cute.kernel
    def tile_kernel(x: cute.Tensor, y: cute.Tensor, tiles: cute.Int32):
        tid = cute.arch.thread_idx().x
        warp, lane = cute.arch.make_warp_uniform(tid // 32), tid % 32
        slots = cute.make_tensor(cute.arch.alloc_smem(cute.Float32, 32 * stages, 16), cute.make_layout((32, stages)))
        full, empty = cute.arch.alloc_smem(cute.Int64, stages, 8), cute.arch.alloc_smem(cute.Int64, stages, 8)
        if tid == 0:
            for s in cute.range_constexpr(stages):
                cute.arch.mbarrier_init(full + s, 32)
                cute.arch.mbarrier_init(empty + s, 32)
        cute.arch.sync_threads()
        slot, phase = cute.Int32(0), cute.Int32(0)
        if warp == 0:
            for _ in range(tiles):
                for _ in range(x.shape[1] + 1):
                    if defect != "no wait for empty":
                        cute.arch.mbarrier_wait(empty + slot, phase ^ 1)
                    slots[lane, slot] = x[lane, 0]
                    cute.arch.mbarrier_arrive(full + slot)
                    slot += 1
                    if slot == stages:
                        slot = cute.Int32(0)
                        phase = phase ^ 1
        else:
            for _ in range(tiles):
                for _ in range(x.shape[1] + 1):
                    cute.arch.mbarrier_wait(full + slot, phase)
                    if defect == "early release":
                        cute.arch.mbarrier_arrive(empty + slot)
                    y[lane, 0] = slots[lane, slot]
                    if defect.startswith("no release of"):
                        if x.shape[1] != int(defect.split()[3]):
                            cute.arch.mbarrier_arrive(empty + slot)
                    elif defect != "early release":
                        cute.arch.mbarrier_arrive(empty + slot)
                    slot += 1
                    if slot == stages:
                        slot = cute.Int32(0)
                        phase = phase ^ 1

    @cute.jit
    def launch(x: cute.Tensor[None, 32, "n"], y: cute.Tensor[None, 32, "n"], tiles: cute.Int32):
        tile_kernel(x, y, tiles).launch(grid=1, block=64)

    return launch


def tile_arrays(columns: int) -> tuple[Any, ...]:
    """Return the arguments of `tile_ring` for four tiles."""
    return *arrays(columns), 4


ALTERNATING_DEFECTS = (
    "no turns", "early turn", "one step less skipped", "one step more skipped", "no release",
    "wrong phase", "all skip twice", "wrong count of turns",
)  # fmt: skip


def alternating_ring(
    stages: int, defect: str = "", *, tiles: int = 0, by_mbarrier: bool = False, steps_over: bool = False
) -> Callable[..., Any]:
    """Return a host function whose two consumers take alternate tiles from one ring (ping-pong).

    A consumer waits for its turn before a tile, gives the turn to the other one after its last row, and advances its
    place in the ring by the rows of the other's tile. A tile has a row more than `x` has columns.

    Args:
        tiles: Number of tiles, 0 for an argument of the kernel.
        by_mbarrier: Pass turns by mbarriers, not by named barriers.
        steps_over: Consumers run over all tiles and step over those of the other, instead of every second one.
    """
    of_turn = 32 if defect == "wrong count of turns" else 64

    def pass_turn(turns: Any, group: Any) -> None:
        if by_mbarrier:
            cute.arch.mbarrier_arrive(turns + group)
        else:
            cute.arch.barrier_arrive(barrier_id=2 + group, number_of_threads=of_turn)

    @cute.kernel
    def alternating_kernel(x: cute.Tensor, y: cute.Tensor, count: cute.Int32):
        tid = cute.arch.thread_idx().x
        warp, lane = cute.arch.make_warp_uniform(tid // 32), tid % 32
        n = x.shape[1] + 1
        slots = cute.make_tensor(cute.arch.alloc_smem(cute.Float32, 32 * stages, 16), cute.make_layout((32, stages)))
        full, empty = cute.arch.alloc_smem(cute.Int64, stages, 8), cute.arch.alloc_smem(cute.Int64, stages, 8)
        turns = cute.arch.alloc_smem(cute.Int64, 2, 8)
        if tid == 0:
            for s in cute.range_constexpr(stages):
                cute.arch.mbarrier_init(full + s, 32)
                cute.arch.mbarrier_init(empty + s, 32)
            for s in cute.range_constexpr(2):
                cute.arch.mbarrier_init(turns + s, 16 if defect == "wrong count of turns" else 32)
        cute.arch.sync_threads()
        number = tiles or cute.assume(count, range=(0, 1 << 20))
        if warp == 0:
            slot, phase = cute.Int32(0), cute.Int32(0)
            for _ in range(number):
                for _ in range(n):
                    cute.arch.mbarrier_wait(empty + slot, phase if defect == "wrong phase" else phase ^ 1)
                    slots[lane, slot] = x[lane, 0]
                    cute.arch.mbarrier_arrive(full + slot)
                    slot += 1
                    if slot == stages:
                        slot = cute.Int32(0)
                        phase = phase ^ 1
        else:
            group = warp - 1
            more = {"one step less skipped": n - 1, "one step more skipped": n + 1, "all skip twice": 2 * n}
            skip = more.get(defect, n)
            place = 0 * n if steps_over else group * n
            slot, phase, turn = place % stages, (place // stages) & 1, cute.Int32(0)
            first, step = (0, 1) if steps_over else (group, 2)
            if group == 1 and defect != "no turns":
                pass_turn(turns, 0)
            for tile in range(first, number, step):
                if tile % 2 == group if steps_over else True:
                    if defect != "no turns":
                        if by_mbarrier:
                            cute.arch.mbarrier_wait(turns + group, turn)
                            turn = turn ^ 1
                        else:
                            cute.arch.barrier(barrier_id=2 + group, number_of_threads=of_turn)
                    if defect == "early turn" and tile + 1 < number:
                        pass_turn(turns, group ^ 1)
                    for _ in range(n):
                        cute.arch.mbarrier_wait(full + slot, phase)
                        y[lane, 0] = slots[lane, slot]
                        if defect != "no release":
                            cute.arch.mbarrier_arrive(empty + slot)
                        slot += 1
                        if slot == stages:
                            slot = cute.Int32(0)
                            phase = phase ^ 1
                    if defect not in ("no turns", "early turn") and tile + 1 < number:
                        pass_turn(turns, group ^ 1)
                if tile % 2 != group if steps_over else True:
                    place = slot + skip
                    slot, phase = place % stages, phase ^ ((place // stages) & 1)

    @cute.jit
    def launch(x: cute.Tensor[None, 32, "n"], y: cute.Tensor[None, 32, "n"], count: cute.Int32):
        alternating_kernel(x, y, count).launch(grid=1, block=96)

    return launch


def alternating_mbarriers(stages: int, defect: str = "") -> Callable[..., Any]:
    """Return `alternating_ring` with turns by mbarriers, and consumers that step over tiles."""
    return alternating_ring(stages, defect, by_mbarrier=True, steps_over=True)


def alternating_pair(stages: int, defect: str = "") -> Callable[..., Any]:
    """Return `alternating_ring` with two tiles, a loop of known length."""
    return alternating_ring(stages, defect, tiles=2, steps_over=True)


TAIL_DEFECTS = ("wrong phase", "one slot off", "offset of the reader", "no release", "early release", "no last wait")


def tail_ring(stages: int, defect: str = "") -> Callable[..., Any]:
    """Return a host function with a ring that starts at any slot. The writer waits for the last releases at the end.

    It has `stages` steps more than `x` has columns. Its last slots and phases follow from remainders of the number of
    steps and of the first slot, which is an argument.
    """

    @cute.kernel
    def tail_kernel(x: cute.Tensor, y: cute.Tensor, start: cute.Int32):
        tid = cute.arch.thread_idx().x
        warp, lane = cute.arch.make_warp_uniform(tid // 32), tid % 32
        n = x.shape[1] + stages
        slots = cute.make_tensor(cute.arch.alloc_smem(cute.Float32, 32 * stages, 16), cute.make_layout((32, stages)))
        full, empty = cute.arch.alloc_smem(cute.Int64, stages, 8), cute.arch.alloc_smem(cute.Int64, stages, 8)
        if tid == 0:
            for s in cute.range_constexpr(stages):
                cute.arch.mbarrier_init(full + s, 32)
                cute.arch.mbarrier_init(empty + s, 32)
        cute.arch.sync_threads()
        first = start % stages
        if warp == 0:
            slot, phase = first, cute.Int32(0)
            for _ in range(n):
                cute.arch.mbarrier_wait(empty + slot, phase ^ 1)
                slots[lane, slot] = x[lane, 0]
                cute.arch.mbarrier_arrive(full + slot)
                slot = (slot + 1) % stages
                if slot == first:
                    phase = phase ^ 1
            for i in cute.range_constexpr(stages):
                at = (first + n + i + (defect == "one slot off")) % stages
                parity = ((n - stages + i) // stages) & 1
                if defect != "no last wait":
                    cute.arch.mbarrier_wait(empty + at, parity ^ 1 if defect == "wrong phase" else parity)
                slots[lane, at] = 0.0
        else:
            slot, phase = (start + (defect == "offset of the reader")) % stages, cute.Int32(0)
            begin = slot
            for _ in range(n):
                cute.arch.mbarrier_wait(full + slot, phase)
                if defect == "early release":
                    cute.arch.mbarrier_arrive(empty + slot)
                y[lane, 0] = slots[lane, slot]
                if defect not in ("early release", "no release"):
                    cute.arch.mbarrier_arrive(empty + slot)
                slot = (slot + 1) % stages
                if slot == begin:
                    phase = phase ^ 1

    @cute.jit
    def launch(x: cute.Tensor[None, 32, "n"], y: cute.Tensor[None, 32, "n"], start: cute.Int32):
        tail_kernel(x, y, start).launch(grid=1, block=64)

    return launch


def started_arrays(columns: int) -> tuple[Any, ...]:
    """Return the arguments of `tail_ring` for a number of steps."""
    return *arrays(columns), columns + 1


SPARSE_DEFECTS = ("no barrier", "barrier before the wait", "wrong phase", "no second barrier")


def sparse_waits(period: int, defect: str = "") -> Callable[..., Any]:
    """Return a host function whose reader waits for every `period`-th phase of an mbarrier, and skips the others.

    Two block barriers per step order it after the phases that it skips. The slots are written `period` steps at once.
    """

    @cute.kernel
    def sparse_kernel(x: cute.Tensor, y: cute.Tensor):
        tid = cute.arch.thread_idx().x
        warp, lane = cute.arch.make_warp_uniform(tid // 32), tid % 32
        slots = cute.make_tensor(cute.arch.alloc_smem(cute.Float32, 32 * period, 16), cute.make_layout((32, period)))
        done = cute.arch.alloc_smem(cute.Int64, 1, 8)
        if tid == 0:
            cute.arch.mbarrier_init(done, 32)
        cute.arch.sync_threads()
        phase, slot = cute.Int32(0), cute.Int32(0)
        for k in range(x.shape[1]):
            if warp == 0:
                slots[lane, slot] = x[lane, k]
                if defect == "barrier before the wait":
                    cute.arch.barrier_arrive(barrier_id=1, number_of_threads=64)
                cute.arch.mbarrier_arrive(done)
                cute.arch.mbarrier_wait(done, phase)
                if defect not in ("barrier before the wait", "no barrier"):
                    cute.arch.barrier_arrive(barrier_id=1, number_of_threads=64)
                if defect != "no second barrier":
                    cute.arch.barrier(barrier_id=2, number_of_threads=64)
            else:
                if slot == period - 1:
                    cute.arch.mbarrier_wait(done, phase ^ 1 if defect == "wrong phase" else phase)
                    for s in cute.range_constexpr(period):
                        y[lane, k] = slots[lane, s]
                if defect != "no barrier":
                    cute.arch.barrier(barrier_id=1, number_of_threads=64)
                if defect != "no second barrier":
                    cute.arch.barrier_arrive(barrier_id=2, number_of_threads=64)
            phase = phase ^ 1
            slot += 1
            if slot == period:
                slot = cute.Int32(0)

    @cute.jit
    def launch(x: cute.Tensor[None, 32, "n"], y: cute.Tensor[None, 32, "n"]):
        sparse_kernel(x, y).launch(grid=1, block=64)

    return launch


Family: TypeAlias = "tuple[Callable[..., Any], tuple[str, ...], Callable[[int], tuple[Any, ...]]]"
REMAINDERS: tuple[Family, ...] = (
    (alternating_ring, ALTERNATING_DEFECTS, tile_arrays),
    (alternating_mbarriers, ALTERNATING_DEFECTS, tile_arrays),
    (alternating_pair, ALTERNATING_DEFECTS, tile_arrays),
    (tail_ring, TAIL_DEFECTS, started_arrays),
    (sparse_waits, SPARSE_DEFECTS, arrays),
)
"""Families whose waits skip phases, or whose phases depend on remainders of sizes."""
FAMILIES: tuple[Family, ...] = (
    (ring, DEFECTS, arrays),
    (tma_ring, TMA_DEFECTS, tma_arrays),
    (copy_pipeline, COPY_DEFECTS, copy_arrays),
    (handoff, HANDOFF_DEFECTS, arrays),
    (cluster_ring, CLUSTER_DEFECTS, cluster_arrays),
    *REMAINDERS,
)
"""Functions that return a host function, their defects, and functions that return arguments for a number of steps."""
