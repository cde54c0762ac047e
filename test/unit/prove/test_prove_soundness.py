"""Kernels that the protocol prover must not prove: unwritten memory, overwritten mbarriers, and the size 0."""

# ruff: noqa: F821, UP037  (the strings in annotations are names of extents)

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import cute_dialect.lang as cute
from cute_dialect.lang.nvgpu import cpasync
from cute_dialect.prove.proof import Proof

A = cute.arch


def verdict(kernel: Any) -> Proof:
    """Return the verdict on a kernel of one block of 64 threads, replayed on 32 x 4 elements."""

    @cute.jit
    def launch(x: cute.Tensor[None, 32, "n"], y: cute.Tensor[None, 32, "n"]):
        kernel(x, y).launch(grid=1, block=64)

    x = np.ones((32, 4), np.float32)
    (proof,) = cute.testing.prove(launch, (x, np.zeros_like(x)))
    return proof


def guarded(write: str, read: str = "") -> Any:
    """Return a kernel that writes and reads shared memory under conditions: a size, or an element of memory."""

    @cute.kernel
    def guarded_kernel(x: cute.Tensor, y: cute.Tensor):
        tid = A.thread_idx().x
        lane = tid % 32
        s = cute.make_tensor(A.alloc_smem(cute.Float32, 64, 16), cute.make_layout(64))
        if write == "size":
            if x.shape[1] > 30:
                s[tid] = 1.0
        elif x[lane, 0] > 5.0:
            s[tid] = 1.0
        A.sync_threads()
        if read == "size":
            if x.shape[1] > 30:
                y[lane, 0] = s[tid]
        elif read == "memory":
            if x[lane, 0] > 6.0:
                y[lane, 0] = s[tid]
        else:
            y[lane, 0] = s[tid]

    return guarded_kernel


def test_a_write_under_a_condition_on_sizes_does_not_initialize():
    proof = verdict(guarded("size"))
    assert proof.verdict == "refuted" and proof.sizes == ("x.shape[1] <= 30",), str(proof)
    assert "nothing has written them" in proof.cure


def test_a_write_under_a_condition_of_memory_does_not_initialize():
    proof = verdict(guarded("memory"))
    assert proof.verdict == "refuted" and "only under a condition that may be false" in proof.reason, str(proof)
    proof = verdict(guarded("memory", "memory"))
    assert proof.verdict == "not proved" and "which may be unwritten" in proof.reason, str(proof)


def test_a_write_and_a_read_under_the_same_sizes_are_proved():
    assert verdict(guarded("size", "size"))
    assert not verdict(guarded("memory", "size"))
    assert not verdict(guarded("size", "memory"))


def overwritten(how: str) -> Any:
    """Return a kernel with data at the bytes of an mbarrier."""

    @cute.kernel
    def overwritten_kernel(x: cute.Tensor, y: cute.Tensor):
        tid = A.thread_idx().x
        b = A.alloc_smem(cute.Int64, 4, 16)
        s = cute.make_tensor(cute.recast_ptr(b, dtype=cute.Float32), cute.make_layout(8))
        atom = cute.make_copy_atom(cpasync.CopyG2SOp(), cute.Float32, num_bits_per_copy=32)
        if how in ("data, then init", "data, barrier, init"):
            if tid < 2:
                s[tid] = 1.0
            if how == "data, barrier, init":
                A.sync_threads()
        if tid == 40:
            A.mbarrier_init(b, 64)
        A.sync_threads()
        if how == "store":
            if tid == 0:
                s[1] = 1.0
        elif how == "store next to it":
            if tid == 0:
                s[2] = 1.0
        elif how == "store under a condition":
            if tid < 2:
                y[tid, 0] = 0.0
                if x[tid, 0] > 5.0:
                    s[tid] = 1.0
        elif how == "load":
            y[tid % 32, 0] = s[0]
        elif how == "cp.async":
            if tid < 4:
                cute.copy(atom, cute.local_tile(x[0, None], (1,), (tid,)), cute.local_tile(s, (1,), (tid,)))
            A.cp_async_commit_group()
            A.cp_async_wait_group(0)
        A.sync_threads()
        A.mbarrier_arrive(b)
        A.mbarrier_wait(b, 0)

    return overwritten_kernel


@pytest.mark.parametrize(
    ("how", "result", "reason"),
    [
        ("store", "refuted", "the store overwrites shared memory byte 4"),
        ("store under a condition", "not proved", "the store overwrites shared memory byte 0"),
        ("load", "refuted", "the load reads shared memory byte 0"),
        ("cp.async", "refuted", "the cp.async overwrites shared memory byte 0"),
        ("data, then init", "refuted", "the initialization of an mbarrier writes shared memory byte 0"),
        ("data, barrier, init", "proved", ""),
        ("store next to it", "proved", ""),
    ],
)
def test_data_at_the_bytes_of_an_mbarrier(how: str, result: str, reason: str):
    proof = verdict(overwritten(how))
    assert proof.verdict == result and proof.reason.startswith(reason), str(proof)


def first_iteration(is_guarded: bool) -> Any:
    """Return a kernel whose first iteration arrives at an mbarrier, so without iterations its wait never ends."""

    @cute.kernel
    def first_kernel(x: cute.Tensor, y: cute.Tensor):
        if x.shape[1] >= 1 if is_guarded else True:
            tid = A.thread_idx().x
            warp = A.make_warp_uniform(tid // 32)
            b = A.alloc_smem(cute.Int64, 1, 8)
            if tid == 0:
                A.mbarrier_init(b, 32)
            A.sync_threads()
            if warp == 0:
                for i in range(x.shape[1]):
                    if i == 0:
                        A.mbarrier_arrive(b)
            else:
                A.mbarrier_wait(b, 0)

    return first_kernel


def test_the_first_line_names_the_sizes_of_a_proof():
    first, excluded, cure, *_ = str(verdict(first_iteration(False))).splitlines()
    assert "proved for all x.shape[1] >= 1: no race" in first
    assert "not for x.shape[1] = 0: deadlock: 1 warp waits and cannot continue (at " in excluded
    assert "write `if x.shape[1] >= 1:` around the body" in cure
    assert "proved for all trip counts: no race" in str(verdict(first_iteration(True)))


def test_a_barrier_under_a_comparison_of_threads_with_a_size():
    @cute.kernel
    def divergent(x: cute.Tensor, y: cute.Tensor):
        if A.thread_idx().x < x.shape[1]:
            A.sync_threads()

    proof = verdict(divergent)
    assert proof.verdict == "not proved" and "compares threads with a size" in proof.reason, str(proof)


def test_a_second_loop_sees_the_same_trip_count_as_the_first():
    @cute.kernel
    def two_loops(x: cute.Tensor, y: cute.Tensor):
        lane = A.thread_idx().x
        s = cute.make_tensor(A.alloc_smem(cute.Float32, 32, 16), cute.make_layout(32))
        for i in cute.range_constexpr(2):
            for k in range(x.shape[1]):
                if k != 9 or i == 0:
                    A.sync_warp()
                s[lane] = x[lane, k]
                A.sync_warp()
                y[lane, k] = s[31 - lane]

    @cute.jit
    def launch(x: cute.Tensor[None, 32, "n"], y: cute.Tensor[None, 32, "n"]):
        two_loops(x, y).launch(grid=1, block=32)

    x = np.ones((32, 12), np.float32)
    (proof,) = cute.testing.prove(launch, (x, np.zeros_like(x)))
    assert proof.verdict == "refuted" and proof.sizes == ("x.shape[1] = 10",), str(proof)


@pytest.mark.parametrize("awaited", [True, False])
def test_bulk_copy_at_the_end_of_a_block(awaited: bool) -> None:
    """A copy that may land after its block has ended is refuted, as the interpreter reports it."""
    layout = cute.make_layout((8, 32), stride=(32, 1))

    @cute.kernel
    def kernel(load: cute.CopyAtom, tiles: cute.Tensor, y: cute.Tensor):
        tid = cute.arch.thread_idx().x
        tile = cute.smem_tensor(cute.Float32, layout, 128)
        full = cute.arch.alloc_smem(cute.Int64, 1, 8)
        if tid == 0:
            cute.arch.mbarrier_init(full, 1)
            cute.arch.mbarrier_init_fence()
        cute.arch.sync_threads()
        phase = cute.Int32(0)
        for k in range(y.shape[0] // 32):
            cute.arch.sync_threads()
            if tid == 0:
                cute.arch.mbarrier_arrive_and_expect_tx(full, 1024)
                cute.copy(load, cute.local_tile(tiles, (8, 32), (k, 0)), tile, tma_bar_ptr=full)
            cute.arch.mbarrier_wait(full, phase)
            phase = phase ^ 1
            y[k * 32 + tid] = tile[0, tid]
        cute.arch.sync_threads()
        if tid == 0:
            cute.arch.mbarrier_arrive_and_expect_tx(full, 1024)
            cute.copy(load, cute.local_tile(tiles, (8, 32), (0, 0)), tile, tma_bar_ptr=full)
        if awaited:
            cute.arch.mbarrier_wait(full, phase)

    @cute.jit
    def run(x: cute.Tensor, y: cute.Tensor):
        load, tiles = cpasync.make_tiled_tma_atom(cpasync.CopyBulkTensorTileG2SOp(), x, layout, (8, 32))
        kernel(load, tiles, y).launch(grid=1, block=32)

    problems = [(np.ones((8 * n, 32), np.float32), np.zeros(32 * n, np.float32)) for n in (2, 1)]
    (proof,) = cute.testing.prove(run, problems[0], problems=problems)
    assert proof.verdict == ("proved" if awaited else "refuted"), proof
    assert awaited or "may be in flight when the block ends; wait for its mbarrier" in proof.reason
