"""Rings of stages on the CPU interpreter: every item arrives, in order, whoever is faster."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from cute_dialect.interp import InterpError
from cute_dialect.kernels.builder import Builder
from cute_dialect.kernels.pipeline import CopyRing, Position, Ring, StoreRing, TmaRing
from cute_dialect.kernels.values import Value
from cute_dialect.pipelines import compile as compile_cute
from cute_dialect.pipelines.ptxas import assemble

X = '!cute.memref<i32, gmem, align<16>, "(?,32):(32,1)">'


def run(b: Builder, *arrays: np.ndarray, threads: int, grid: int = 1) -> None:
    """Run ``@k`` on the CPU."""
    k = compile_cute(b.text(), emit="base").kernel("k")
    k(*arrays, grid=(grid, 1, 1), block=(threads, 1, 1), device="cpu")


def matrix(items: int) -> tuple[np.ndarray, np.ndarray]:
    """Items of 32 numbers, and where they go."""
    raw = np.zeros(2 * items * 32 + 8, np.int32)
    skip = -raw.ctypes.data % 16 // 4
    x, y = raw[skip : skip + 2 * items * 32].reshape(2, items, 32)
    x[...] = np.random.default_rng(items).integers(-1000, 1000, x.shape)
    return x, y


def by_threads(stages: int, items: int, consumers: int = 1) -> Builder:
    """Warp 0 copies items to the ring, the other warps take turns in using them: ``y = 2 x + consumer's number``."""
    b = Builder()
    with b.kernel("k", {"x": X, "y": X}, threads=32 * (1 + consumers)) as (x, y):
        ring = Ring(b, stages=stages, producers=32, consumers=32 * consumers)
        slots = b.alloc_smem(f'!cute.memref<i32, smem, "({stages},32):(32,1)">')
        tid, warp, lane = b.thread_id(), b.arch("warp_id"), b.arch("lane_id")
        with b.if_(tid.eq(0)):
            ring.init()
        ring.sync()
        with b.if_else(warp.eq(0)) as (produce, consume):
            with produce, b.for_(0, items, carry=ring.start()) as loop:
                at = Position(*loop.args)
                ring.acquire(at)
                b.store(slots, (at.slot, lane), b.load(x, (loop.iv, lane)))
                ring.commit(at)
                loop.next(*ring.next(at))
            with consume, b.for_(0, items, carry=ring.start()) as loop:
                at = Position(*loop.args)
                ring.wait(at)
                value = b.load(slots, (at.slot, lane)) * 2
                with b.if_((loop.iv % consumers + 1).eq(warp)):
                    b.store(y, (loop.iv, lane), value + warp)
                ring.release(at)
                loop.next(*ring.next(at))
    return b


@pytest.mark.parametrize("stages, items, consumers", [(1, 5, 1), (2, 7, 1), (3, 7, 2), (4, 3, 3)])
def test_threads_fill_and_use_a_ring(stages: int, items: int, consumers: int) -> None:
    x, y = matrix(items)
    run(by_threads(stages, items, consumers), x, y, threads=32 * (1 + consumers))
    user = np.arange(items)[:, None] % consumers + 1
    assert (y == 2 * x + user).all()


def test_a_slot_that_is_not_released_stops_the_producer() -> None:
    text = by_threads(2, 5).text()
    last = text.rindex("cute_nvgpu.arch.mbarrier_arrive(")
    broken = text[:last] + text[last:].split("\n", 1)[1]
    x, y = matrix(5)
    with pytest.raises(InterpError, match="deadlock"):
        compile_cute(broken, emit="base").kernel("k")(x, y, grid=(1, 1, 1), block=(64, 1, 1), device="cpu")


def by_bulk_copies(stages: int, items: int, cluster: int) -> Builder:
    """One thread asks for items, a warp uses them; in a cluster a slot is free when both blocks have used theirs."""
    b = Builder()
    dims = (cluster, 1, 1) if cluster > 1 else None
    with b.kernel("k", {"x": X, "y": X}, threads=64, cluster=dims) as (x, y):
        slots = b.alloc_smem(f'!cute.memref<i32, smem, align<16>, "({stages},32):(32,1)">')
        ring = TmaRing(b, stages=stages, n_bytes=128, cluster=cluster)
        tid, warp, lane, block = b.thread_id(), b.arch("warp_id"), b.arch("lane_id"), b.block_id()
        with b.if_(tid.eq(0)):
            ring.init()
        ring.sync()
        with b.if_else(warp.eq(0)) as (produce, consume):
            with produce, b.if_(b.arch("elect_one")):
                with b.for_(0, items, carry=ring.start()) as loop:
                    at = Position(*loop.args)
                    bar = ring.acquire(at)
                    b.run("bulk_copy", b.slice(x, loop.iv, None), b.slice(slots, at.slot, None), bar)
                    loop.next(*ring.next(at))
                if cluster > 1:
                    ring.drain(Position(*loop.results))
            with consume, b.for_(0, items, carry=ring.start()) as loop:
                at = Position(*loop.args)
                ring.wait(at)
                b.store(y, (loop.iv * cluster + block, lane), b.load(slots, (at.slot, lane)) + block)
                b.run("syncwarp")
                if cluster > 1:
                    ring.release(at, block=lane % cluster, when=lane < cluster)
                else:
                    ring.release(at, when=lane.eq(0))
                loop.next(*ring.next(at))
        if cluster > 1:
            b.run("cluster_arrive")
            b.run("cluster_wait")
    return b


@pytest.mark.parametrize("stages, items, cluster", [(1, 4, 1), (3, 8, 1), (2, 5, 2), (3, 2, 4)])
def test_bulk_copies_fill_a_ring(stages: int, items: int, cluster: int) -> None:
    x, _ = matrix(items)
    y = np.zeros((items * cluster, 32), np.int32)
    run(by_bulk_copies(stages, items, cluster), x, y, threads=64, grid=cluster)
    assert (y.reshape(items, cluster, 32) == x[:, None] + np.arange(cluster)[None, :, None]).all()


def by_cp_async(stages: int, items: int) -> Builder:
    """All threads copy and all use: ``y`` is ``x`` with the columns reversed."""
    b = Builder()
    with b.kernel("k", {"x": X, "y": X}, threads=32) as (x, y):
        slots = b.alloc_smem(f'!cute.memref<i32, smem, align<16>, "({stages},32):(32,1)">')
        ring, lane = CopyRing(b, stages=stages), b.arch("lane_id")
        atom = b.atom("!cute_nvgpu.atom.simt_async_copy<i32, cache = always, 32 b>")

        def fetch(item: Value, slot: Value) -> None:
            with b.if_(item < items):
                source = b.view(b.pointer(b.slice(x, item, None), lane), "1:1")
                b.copy(atom, source, b.view(b.pointer(b.slice(slots, slot, None), lane), "1:1"))
            ring.commit()

        for i in range(stages - 1):
            fetch(b.constant(i), b.constant(i))
        with b.for_(0, items, carry=[b.constant(0), b.constant(stages - 1)]) as loop:
            slot, ahead = loop.args
            ring.wait()
            fetch(loop.iv + (stages - 1), ahead)
            b.store(y, (loop.iv, lane), b.load(slots, (slot, 31 - lane)))
            loop.next(ring.next(slot), ring.next(ahead))
    return b


@pytest.mark.parametrize("stages, items", [(2, 1), (2, 5), (4, 9)])
def test_asynchronous_copies_of_all_threads(stages: int, items: int) -> None:
    x, y = matrix(items)
    run(by_cp_async(stages, items), x, y, threads=32)
    assert (y == x[:, ::-1]).all()


def by_bulk_stores(stages: int, items: int) -> Builder:
    """Threads write slots, one of them stores each by a bulk copy."""
    b = Builder()
    with b.kernel("k", {"x": X, "y": X}, threads=32) as (x, y):
        slots = b.alloc_smem(f'!cute.memref<i32, smem, align<16>, "({stages},32):(32,1)">')
        lane = b.arch("lane_id")
        ring = StoreRing(b, stages=stages, issuer=lane.eq(0))
        with b.for_(0, items) as loop:
            slot = loop.iv % stages
            ring.acquire()
            b.store(slots, (slot, lane), b.load(x, (loop.iv, lane)) * 3)
            ring.publish()
            with b.if_(ring.issuer):
                b.run("bulk_copy", b.slice(slots, slot, None), b.slice(y, loop.iv, None))
                ring.commit()
        ring.finish()
    return b


@pytest.mark.parametrize("stages, items", [(1, 3), (2, 5)])
def test_asynchronous_stores(stages: int, items: int) -> None:
    x, y = matrix(items)
    run(by_bulk_stores(stages, items), x, y, threads=32)
    assert (y == 3 * x).all()


MADE: list[Callable[[], Builder]] = [
    lambda: by_threads(3, 9, 2), lambda: by_bulk_copies(4, 9, 2), lambda: by_cp_async(3, 9),
    lambda: by_bulk_stores(2, 9),
]  # fmt: skip


@pytest.mark.parametrize("made", MADE, ids=["threads", "bulk copies", "cp.async", "bulk stores"])
def test_ptxas_takes_them(made: Callable[[], Builder]) -> None:
    compiled = compile_cute(made().text(), emit="ptx", cache=False)
    assembled = assemble(compiled.ptx)
    assert assembled.warnings == () and all(k.spills == 0 for k in assembled.kernels)


def test_rings_that_cannot_be() -> None:
    b = Builder()
    with b.kernel("k", {}, threads=32):
        with pytest.raises(ValueError, match="expected at least one of stages, got 0"):
            Ring(b, stages=0)
        with pytest.raises(ValueError, match="expected 1 to 1048575 bytes a stage, which an mbarrier can count"):
            TmaRing(b, stages=1, n_bytes=1 << 20)
        with pytest.raises(ValueError, match="expected at least two stages, got 1"):
            CopyRing(b, stages=1)
        with pytest.raises(ValueError, match="expected at least one stage, got 0"):
            StoreRing(b, stages=0, issuer=b.thread_id().eq(0))
        ring = Ring(b, stages=2, cluster=2)
        with pytest.raises(ValueError, match="expected the block that is told, in a cluster of 2"):
            ring.release(ring.start())
