"""Broken kernels of several ranks: each defect is reported, and the correct kernels are not, under every schedule."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import pytest

import cute_dialect.lang as cute
from cute_dialect.interp import InterpError
from cute_dialect.lang.nvgpu import cpasync
from cute_dialect.lang.ranks import Ranks
from cute_dialect.runtime.call_options import SCHEDULES

N = 64
"""Threads of a block, and elements of a rank."""


def word(signals: cute.Signals, rank: cute.Int32, slot: int, writer: cute.Int32) -> cute.Pointer:
    """Return the address of a signal, for accesses that `Signals` does not offer."""
    words = signals.words.peer(rank)
    return words.iterator + cute.crd2idx((slot, writer, 0), words.layout)


# --------------------------------------------------------------------------------------- pull: data, signal, read, done


@cute.kernel
def pull_kernel(
    x: cute.Symmetric,
    ready: cute.Signals,
    done: cute.Signals,
    out: cute.Tensor,
    call: cute.Int32,
    bug: cute.Constexpr[str],
):
    """Each rank writes its x, and reads that of the next rank. It ends when the previous rank has read its own."""
    t, me, n = cute.arch.thread_idx().x, x.rank, x.ranks
    after, before = (me + 1) % n, (me + n - 1) % n
    value = cute.Int64(call)
    if bug == "signal before data" and t == 0:
        ready.set(before, 0, call)
    x.local[t] = cute.Float32(100 * me + t) + cute.Float32(call)
    if bug == "fence before the barrier":
        cute.arch.fence_acq_rel_sys()
    if bug != "no barrier before the signal":
        cute.arch.sync_threads()
    if t == 0:
        if bug == "scope gpu of the signal":
            cute.arch.store(word(ready, before, 0, me), value, sem="release", scope="gpu")
        elif bug in ("relaxed signal", "fence before the barrier", "fence after the barrier"):  # the last is correct
            if bug == "fence after the barrier":
                cute.arch.fence_acq_rel_sys()
            cute.arch.store(word(ready, before, 0, me), value, sem="relaxed", scope="sys")
        elif bug == "signal of the wrong slot":
            ready.set(before, 1, call)
        elif bug == "signal to the wrong rank":
            ready.set(after, 0, call)
        elif bug == "a signal fewer":
            if me != 0:
                ready.set(before, 0, call)
        elif bug == "call number not raised":
            ready.set(before, 0, 1)
        elif bug == "a signal that falls":
            ready.set(before, 0, call + 1)
            ready.set(before, 0, call)
        elif bug != "signal before data":
            ready.set(before, 0, call)
    if t == 0:
        if bug == "scope gpu of the wait":
            while cute.arch.load(word(ready, me, 0, after), sem="acquire", scope="gpu") < value:
                pass
        elif bug == "relaxed wait":
            while cute.arch.load(word(ready, me, 0, after), sem="relaxed", scope="sys") < value:
                pass
        elif bug == "weak wait":
            while cute.arch.load(word(ready, me, 0, after)) < value:
                pass
        elif bug == "wait for the last call":
            ready.wait(0, after, call - 1)
        elif bug != "no wait":
            ready.wait(0, after, call)
    if bug != "no barrier after the wait":
        cute.arch.sync_threads()
    out[t] = x.peer(after)[t]
    cute.arch.sync_threads()
    if t == 0:
        done.set(after, 0, call)
        if bug != "ends while a peer reads":
            done.wait(0, before, call)
    cute.arch.sync_threads()


@cute.jit
def pull(
    x: cute.Symmetric,
    ready: cute.Signals,
    done: cute.Signals,
    out: cute.Tensor,
    call: cute.Int32,
    bug: cute.Constexpr[str],
):
    pull_kernel(x, ready, done, out, call, bug).launch(grid=1, block=N)


def run_pull(world: Ranks, bug: str) -> None:
    n, calls = len(world), 3
    x, ready, done = world.symmetric(N, cute.Float32, name="x"), world.signals(2, name="ready"), world.signals()
    out = np.full((calls, n, N), np.nan, np.float32)

    def calls_of(rank: int) -> None:
        for e in range(calls):
            pull(x.on(rank), ready.on(rank), done.on(rank), out[e, rank], e + 1, bug)

    world.run(calls_of)
    for e in range(calls):
        for rank in range(n):
            assert (out[e, rank] == 100 * ((rank + 1) % n) + np.arange(N) + e + 1).all()


# ------------------------------------------------------------------------------------- gather: several blocks of a rank


@cute.kernel
def gather_kernel(parts: cute.Symmetric, ready: cute.Signals, out: cute.Tensor, bug: cute.Constexpr[str]):
    """The two blocks of each rank push their parts to rank 0 and count up; block 0 of rank 0 waits for all."""
    b, t, me = cute.arch.block_idx().x, cute.arch.thread_idx().x, parts.rank
    parts.peer(0)[me, b, t] = 1000 * me + 100 * b + t
    cute.arch.sync_threads()
    if t == 0:
        if bug == "two writers":
            cute.arch.store(word(ready, 0, 0, 0), cute.Int64(2), sem="release", scope="sys")
        elif bug == "blocks of a rank overwrite a count":
            ready.set(0, 0, b + 1)
        elif bug == "scope cta of a count":
            cute.arch.red(word(ready, 0, 0, me), cute.Int64(1), sem="release", scope="cta")
        else:
            ready.add(0, 0)
    if bug == "an array of two ranks" and t == 0:
        out[me, b, 0] = 0
    if me == 0 and b == 0:
        if t < parts.ranks:
            ready.wait(0, 0 if bug == "two writers" else t, 1 if bug == "count n - 1" else 2)
        cute.arch.sync_threads()
        for r in cute.range_constexpr(parts.ranks):
            for k in cute.range_constexpr(2):
                out[r, k, t] = parts.local[r, k, t]


@cute.jit
def gather(parts: cute.Symmetric, ready: cute.Signals, out: cute.Tensor, bug: cute.Constexpr[str]):
    gather_kernel(parts, ready, out, bug).launch(grid=2, block=N)


def run_gather(world: Ranks, bug: str) -> None:
    n = len(world)
    parts, ready = world.symmetric((n, 2, N), cute.Int32, name="parts", unwritten=True), world.signals()
    out = np.full((n, 2, N), -1, np.int32)
    world.run(lambda rank: gather(parts.on(rank), ready.on(rank), out, bug))
    assert (out == 1000 * np.arange(n)[:, None, None] + 100 * np.arange(2)[:, None] + np.arange(N)).all()


# -------------------------------------------------------------------------------------------------- ring of bulk copies


@cute.kernel
def bulk_kernel(inbox: cute.Symmetric, ready: cute.Signals, out: cute.Tensor, bug: cute.Constexpr[str]):
    """Each rank sends 64 numbers to the next one by a bulk copy, which loads them by another one."""
    t, me, n = cute.arch.thread_idx().x, inbox.rank, inbox.ranks
    row = cute.make_layout(N)
    there = cute.make_tensor(inbox.peer((me + 1) % n).iterator, row)
    here = cute.make_tensor(inbox.local.iterator, row)
    smem = cute.smem_tensor(cute.Int32, cute.make_layout((2, N), stride=(N, 1)), byte_alignment=128)
    bar = cute.arch.alloc_smem(cute.Int64, 1)
    if t == 0:
        cute.arch.mbarrier_init(bar, 1)
        cute.arch.mbarrier_init_fence()
    smem[0, t] = 100 * me + t
    if bug != "no proxy fence before the copy":
        cute.arch.fence_proxy("async.shared", space="cta")
    cute.arch.sync_threads()
    if t == 0:
        if bug in ("ordinary stores", "ordinary stores without a proxy fence"):  # the first is correct
            for i in range(N):
                there[i] = smem[0, i]
            ready.set((me + 1) % n, 0, 1)
        else:
            cute.copy(cute.make_copy_atom(cpasync.CopyBulkS2GOp(), cute.Int32), smem[0, None], there)
            cute.arch.cp_async_bulk_commit_group()
            if bug == "signal after the sources are read":
                cute.arch.cp_async_bulk_wait_group(0, read=True)
                ready.set((me + 1) % n, 0, 1)
            elif bug == "signal before the copy is complete":
                ready.set((me + 1) % n, 0, 1)
                cute.arch.cp_async_bulk_wait_group(0)
            else:
                ready.set((me + 1) % n, 0, 1, after="bulk")
        if bug == "ordinary stores without a proxy fence":
            ready.wait(0, (me + n - 1) % n, 1)
        elif bug != "no wait before the copy":
            ready.wait(0, (me + n - 1) % n, 1, then="tma")
        cute.arch.mbarrier_arrive_and_expect_tx(bar, 4 * N)
        load = cute.make_copy_atom(cpasync.CopyBulkG2SOp(), cute.Int32)
        cute.copy(load, here, smem[1, None], tma_bar_ptr=bar)
    cute.arch.mbarrier_wait(bar, 0)
    out[t] = smem[1, t]
    if t == 0:
        cute.arch.cp_async_bulk_wait_group(0)


@cute.jit
def bulk(inbox: cute.Symmetric, ready: cute.Signals, out: cute.Tensor, bug: cute.Constexpr[str]):
    bulk_kernel(inbox, ready, out, bug).launch(grid=1, block=N)


def run_bulk(world: Ranks, bug: str) -> None:
    n = len(world)
    inbox, ready = world.symmetric(N, cute.Int32, name="inbox"), world.signals()
    out = np.full((n, N), -1, np.int32)
    world.run(lambda rank: bulk(inbox.on(rank), ready.on(rank), out[rank], bug))
    assert (out == 100 * ((np.arange(n)[:, None] - 1) % n) + np.arange(N)).all()


# ------------------------------------------------------------------------------------- meetings, sums and odd addresses


@cute.kernel
def meet_kernel(ready: cute.Signals, blocks: cute.Constexpr[int], slot: cute.Constexpr[int]):
    """Block b of each rank meets the last block of all ranks: co-resident blocks."""
    b, t, n = cute.arch.block_idx().x, cute.arch.thread_idx().x, ready.words.ranks
    if t < n:
        if b == blocks - 1:
            ready.set(t, slot, 1)
        ready.wait(slot, t, 1)


@cute.jit
def meet(ready: cute.Signals, blocks: cute.Constexpr[int], slot: cute.Constexpr[int]):
    meet_kernel(ready, blocks, slot).launch(grid=blocks, block=32)


def run_meet(world: Ranks, bug: str) -> None:
    ready = world.signals(2)

    def calls_of(rank: int) -> None:
        order = (1, 0) if bug == "collectives in another order" and rank == 1 else (0, 1)
        for slot in order:
            blocks = 1 + (rank if bug == "blocks that never come" else 3)
            meet(ready.on(rank), blocks, slot)
            if bug == "a rank calls once" and rank == 1:
                return

    world.run(calls_of)


@cute.kernel
def skewed_kernel(ready: cute.Signals, blocks: cute.Constexpr[int]):
    """Block b signals block b of all ranks, and waits for them."""
    b, t = cute.arch.block_idx().x, cute.arch.thread_idx().x
    if t < ready.words.ranks:
        ready.set(t, b, 1)
        ready.wait(b, t, 1)


@cute.jit
def skewed(ready: cute.Signals, blocks: cute.Constexpr[int]):
    skewed_kernel(ready, blocks).launch(grid=blocks, block=32)


def run_skewed(world: Ranks, bug: str) -> None:
    ready = world.signals(4)
    world.run(lambda rank: skewed(ready.on(rank), 3 if bug == "grids differ" and rank == 0 else 4))


@cute.kernel
def sum_kernel(total: cute.Symmetric, scope: cute.Constexpr[str]):
    cute.arch.red(total.peer(0).iterator, cute.Int32(1), sem="relaxed", scope=scope)


@cute.jit
def add_up(total: cute.Symmetric, scope: cute.Constexpr[str]):
    sum_kernel(total, scope).launch(grid=2, block=32)


def run_sum(world: Ranks, bug: str) -> None:
    total = world.symmetric(1, cute.Int32, name="total")
    world.run(lambda rank: add_up(total.on(rank), bug or "sys"))
    assert total[0][0] == 64 * len(world)


@cute.kernel
def send_address_kernel(x: cute.Symmetric, box: cute.Symmetric, ready: cute.Signals, bug: cute.Constexpr[str]):
    """Rank 0 sends a number to rank 1, which writes it to rank 0. The defect sends an address instead."""
    if cute.arch.thread_idx().x == 0:
        if x.rank == 0:
            box.peer(1)[0] = x.table[0] if bug == "address of another rank" else cute.Int64(0)
            ready.set(1, 0, 1)
        if x.rank == 1:
            ready.wait(0, 0, 1)
            if bug == "address of another rank":
                cute.make_ptr(cute.Int32, box.local[0], "gmem").store(7)
            else:
                x.peer(box.local[0].to(cute.Int32))[0] = 7


@cute.jit
def send_address(x: cute.Symmetric, box: cute.Symmetric, ready: cute.Signals, bug: cute.Constexpr[str]):
    send_address_kernel(x, box, ready, bug).launch(grid=1, block=32)


def run_addresses(world: Ranks, bug: str) -> None:
    x, box, ready = world.symmetric(4, cute.Int32), world.symmetric(1, cute.Int64), world.signals()
    world.run(lambda rank: send_address(x.on(rank), box.on(rank), ready.on(rank), bug))
    assert x[0][0] == 7


@cute.kernel
def lock_kernel(count: cute.Symmetric, signals: cute.Signals, bug: cute.Constexpr[str]):
    """Each rank increments a number of rank 0. Atomics that compare acquire and release a lock in a signal."""
    if cute.arch.thread_idx().x == 0:
        lock = word(signals, 0, 0, 0)
        if bug == "stores to a lock":
            cute.arch.store(word(signals, 0, 0, 0), cute.Int64(1), sem="release", scope="sys")
        while cute.arch.atomic_cas(lock, cmp=cute.Int64(0), val=cute.Int64(1), sem="acquire", scope="sys") != 0:
            pass
        count.peer(0)[0] = count.peer(0)[0] + 1
        sem = "relaxed" if bug == "relaxed release of a lock" else "release"
        cute.arch.atomic_cas(lock, cmp=cute.Int64(1), val=cute.Int64(0), sem=sem, scope="sys")


@cute.jit
def lock_and_count(count: cute.Symmetric, signals: cute.Signals, bug: cute.Constexpr[str]):
    lock_kernel(count, signals, bug).launch(grid=2, block=32)


def run_lock(world: Ranks, bug: str) -> None:
    count, signals = world.symmetric(1, cute.Int32), world.signals()
    world.run(lambda rank: lock_and_count(count.on(rank), signals.on(rank), bug))
    assert count[0][0] == 2 * len(world)


# ---------------------------------------------------------------------------------------------------------- the corpus


class Defect(NamedTuple):
    """A defect, and the message of at least one schedule. It is reported under `least` of the four schedules.

    Under another one the run is right by chance, or its result is wrong: a rank that is a call ahead has overwritten x
    before its signal of that call, which the reader then takes for the one it waits for.
    """

    run: Callable[[Ranks, str], None]
    bug: str
    message: str
    least: int = 4
    resident: int | None = None


FAR = "signal with sem='release' and scope='sys'"
CORPUS = [
    Defect(run_pull, "signal before data", FAR),
    Defect(run_pull, "no barrier before the signal", FAR),
    Defect(
        run_pull,
        "scope gpu of the signal",
        "scopes .sys and .gpu do not include both threads; threads of two GPUs need .sys",
    ),
    Defect(
        run_pull,
        "scope gpu of the wait",
        "scopes .gpu and .sys do not include both threads; threads of two GPUs need .sys",
    ),
    Defect(run_pull, "relaxed signal", FAR),
    Defect(run_pull, "fence before the barrier", "a thread that writes the signal after a barrier needs a fence betw"),
    Defect(run_pull, "relaxed wait", "missing fence .or .acquire."),
    Defect(run_pull, "weak wait", "the condition uses a plain load"),
    Defect(run_pull, "no wait", FAR),
    Defect(run_pull, "wait for the last call", FAR),
    Defect(run_pull, "signal of the wrong slot", "deadlock"),
    Defect(run_pull, "signal to the wrong rank", "deadlock"),
    Defect(run_pull, "a signal fewer", "deadlock"),
    Defect(run_pull, "call number not raised", "deadlock"),
    Defect(run_pull, "a signal that falls", "the signal in 'ready' of rank . at byte offset .* falls from . to ."),
    Defect(run_pull, "no barrier after the wait", FAR),
    Defect(run_pull, "ends while a peer reads", "write-after-read race on 'x' of rank", 3),
    Defect(run_gather, "two writers", "two writers of the signal"),
    Defect(run_gather, "blocks of a rank overwrite a count", "two writers of the signal"),
    Defect(run_gather, "scope cta of a count", "scopes .cta and .cta do not include both threads"),
    Defect(run_gather, "an array of two ranks", "but rank . (reads|writes) the same array: each rank has memory of"),
    Defect(run_gather, "count n - 1", "nothing has written them", 2),
    Defect(run_bulk, "no proxy fence before the copy", "missing fence.proxy.async"),
    Defect(run_bulk, "signal after the sources are read", FAR),
    Defect(run_bulk, "signal before the copy is complete", FAR),
    Defect(run_bulk, "ordinary stores without a proxy fence", "missing fence.proxy.async"),
    Defect(run_bulk, "no wait before the copy", FAR),
    Defect(run_meet, "collectives in another order", "rank 1 is in launch 0 of its stream, @meet_kernel, 1 more wait"),
    Defect(run_meet, "a rank calls once", "rank 1 has ended launch 0 of its stream, @meet_kernel"),
    Defect(run_meet, "too few resident blocks", "the GPU of rank . holds at most 3 blocks", resident=3),
    Defect(run_skewed, "grids differ", "deadlock"),
    Defect(run_sum, "cta", "do not include both threads"),
    Defect(run_sum, "gpu", "scopes .gpu and .gpu do not include both threads"),
    Defect(run_addresses, "address of another rank", "rank 1 uses an address of rank 0's mapping"),
    Defect(run_lock, "relaxed release of a lock", FAR),
    Defect(run_lock, "stores to a lock", "two writers of the signal"),
]
CORRECT = [run_pull, run_gather, run_bulk, run_meet, run_skewed, run_sum, run_addresses, run_lock]
CORRECT_VARIANTS = {run_pull: "fence after the barrier", run_bulk: "ordinary stores"}


@pytest.mark.sample(every=8)
@pytest.mark.parametrize("run", CORRECT)
@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("count", [2, 3])
def test_correct_kernels_have_no_report(run: Callable[[Ranks, str], None], count: int, schedule: str) -> None:
    for seed in range(3 if schedule == "random" else 1):
        with cute.testing.ranks(count, schedule=schedule, seed=seed) as world:
            run(world, "")
    with cute.testing.ranks(count, schedule=schedule, resident=4) as world:
        run(world, CORRECT_VARIANTS.get(run, ""))


@pytest.mark.sample(every=9)
@pytest.mark.parametrize("defect", CORPUS, ids=lambda d: d.bug.replace(" ", "-"))
def test_defects_are_reported(defect: Defect) -> None:
    found: list[str] = []
    for schedule in SCHEDULES:
        with cute.testing.ranks(3, schedule=schedule, seed=1, resident=defect.resident, max_steps=100_000) as world:
            try:
                defect.run(world, defect.bug)
            except InterpError as e:
                assert e.kind in ("race", "uninit", "deadlock", "oob", "limit")
                found.append(str(e))
            except AssertionError:
                assert defect.least < len(SCHEDULES)
    assert len(found) >= defect.least
    assert any(re.search(defect.message, text) for text in found), found[0]


def test_one_rank_needs_no_wide_scope() -> None:
    """Between blocks of one rank, scope gpu orders accesses, also in a world of several."""

    @cute.kernel
    def kernel(x: cute.Tensor, flag: cute.Tensor, out: cute.Tensor):
        if cute.arch.thread_idx().x == 0:
            if cute.arch.block_idx().x == 0:
                x[0] = 5
                cute.arch.store(flag.iterator, cute.Int32(1), sem="release", scope="gpu")
            else:
                while cute.arch.load(flag.iterator, sem="acquire", scope="gpu") == 0:
                    pass
                out[0] = x[0]

    @cute.jit
    def run(x: cute.Tensor, flag: cute.Tensor, out: cute.Tensor):
        kernel(x, flag, out).launch(grid=2, block=32)

    for schedule in SCHEDULES:
        arrays = np.zeros((3, 2, 1), np.int32)
        with cute.testing.ranks(2, schedule=schedule) as world:
            x, flag, out = arrays
            world.run(lambda rank, x=x, flag=flag, out=out: run(x[rank], flag[rank], out[rank]))
        assert (arrays[2] == 5).all()
