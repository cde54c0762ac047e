"""While loops over tiles: proved if all roles take the same sequence of tiles, and planted defects refuted."""

# ruff: noqa: F821, UP037  (the strings in annotations are names of extents)

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cute_dialect.lang as cute
from cute_dialect.prove.proof import Proof

A = cute.arch
Arrays = tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]


def tiles_ring(defect: str = "") -> Callable[..., Any]:
    """Return a host function that moves rows through two stages. Tile `t` has `t % 3` rows, so some have none."""

    @cute.kernel
    def tiles_kernel(x: cute.Tensor, y: cute.Tensor):
        tid = A.thread_idx().x
        warp, lane = A.make_warp_uniform(tid // 32), tid % 32
        stages = cute.make_tensor(A.alloc_smem(cute.Float32, 64, 16), cute.make_layout((32, 2)))
        full, empty = A.alloc_smem(cute.Int64, 2, 8), A.alloc_smem(cute.Int64, 2, 8)
        if tid == 0:
            for s in cute.range_constexpr(2):
                A.mbarrier_init(full + s, 32)
                A.mbarrier_init(empty + s, 32)
        A.sync_threads()
        slot, phase, tile = cute.Int32(0), cute.Int32(0), A.block_idx().x
        if warp == 0:
            while tile < x.shape[1]:
                for _ in range(tile % 3):
                    A.mbarrier_wait(empty + slot, phase ^ 1)
                    stages[lane, slot] = x[lane, tile]
                    A.mbarrier_arrive(full + slot)
                    phase = phase ^ slot
                    slot = slot ^ 1
                tile += A.grid_dim().x
        else:
            rows = cute.Int32(0)
            while tile < x.shape[1]:
                before, rows = rows, tile % 3
                if cute.const_expr(defect == "rows of the tile before"):
                    rows = before
                if cute.const_expr(defect == "a row more"):
                    rows = rows + 1
                for _ in range(rows):
                    if cute.const_expr(defect != "no wait"):
                        A.mbarrier_wait(full + slot, phase)
                    if cute.const_expr(defect == "early release"):
                        A.mbarrier_arrive(empty + slot)
                    y[lane, tile] = stages[lane, slot]
                    if cute.const_expr(defect != "early release"):
                        A.mbarrier_arrive(empty + slot)
                    phase = phase ^ slot
                    slot = slot ^ 1
                rows = tile % 3
                tile += A.grid_dim().x * (2 if defect == "every other tile" else 1)

    @cute.jit
    def launch(x: cute.Tensor[None, 32, "n"], y: cute.Tensor[None, 32, "n"]):
        tiles_kernel(x, y).launch(grid=1, block=64)

    return launch


def arrays(columns: int) -> Arrays:
    x = np.ones((32, columns), np.float32)
    return x, np.zeros_like(x)


def proof_of(f: Callable[..., Any], **options: object) -> Proof:
    (proof,) = cute.testing.prove(f, arrays(6), problems=[arrays(9)], **options)
    return proof


def test_tiles_of_different_lengths_are_proved():
    proof = proof_of(tiles_ring())
    assert proof, str(proof)
    assert proof.assumed == () and 5 < proof.states < 100


def test_a_certificate_of_a_while_loop_is_accepted(tmp_path: Path):
    path = tmp_path / "tiles.cert"
    proof_of(tiles_ring(), certificate=str(path))
    (line,) = cute.testing.recheck(tiles_ring(), arrays(6), str(path))
    assert "certificate accepted" in line


@pytest.mark.parametrize("defect", ["no wait", "early release", "a row more", "every other tile"])
def test_a_defect_in_a_while_loop_is_refuted(defect: str):
    proof = proof_of(tiles_ring(defect))
    assert proof.verdict == "refuted", str(proof)


def test_a_value_of_another_tile_is_not_taken_for_that_of_this_one():
    proof = proof_of(tiles_ring("rows of the tile before"))
    assert proof.verdict != "proved", str(proof)


def spinning(reads: str) -> Callable[..., Any]:
    """Return a host function whose kernel waits in a while loop for memory."""

    @cute.kernel
    def spin_kernel(flag: cute.Tensor):
        slot = cute.make_tensor(A.alloc_smem(cute.Int32, 1, 16), cute.make_layout(1))
        tid = A.thread_idx().x
        if tid == 0:
            slot[0] = 1
        A.sync_threads()
        if cute.const_expr(reads == "shared"):
            while slot[0] < 1:
                A.sync_threads()
        else:
            while flag[0] < 1:
                if cute.const_expr(reads == "global"):
                    A.sync_threads()

    @cute.jit
    def launch(flag: cute.Tensor[cute.Int32, 1]):
        spin_kernel(flag).launch(grid=1, block=64)

    return launch


@pytest.mark.parametrize("reads", ["shared", "global"])
def test_synchronization_in_a_loop_that_depends_on_memory_is_not_proved(reads: str):
    (proof,) = cute.testing.prove(spinning(reads), (np.ones(1, np.int32),))
    assert proof.verdict == "not proved" and "while loop" in proof.reason, str(proof)


def test_a_wait_for_global_memory_is_left_out():
    (proof,) = cute.testing.prove(spinning("wait"), (np.ones(1, np.int32),))
    assert proof, str(proof)


def guarded(value: str) -> Callable[..., Any]:
    """Return a host function whose arrival depends on the sign of a float."""

    @cute.kernel
    def sign_kernel(x: cute.Tensor):
        tid = A.thread_idx().x
        done = A.alloc_smem(cute.Int64, 1, 8)
        if tid == 0:
            A.mbarrier_init(done, 64)
        A.sync_threads()
        total = cute.Float32(0.0)
        for i in range(4):
            if cute.const_expr(value == "sum of exponentials"):
                total = total * cute.math.exp2(x[i]) + cute.math.exp2(x[tid % 4])
            elif cute.const_expr(value == "sum of differences"):
                total = total + (cute.math.exp2(x[i]) - cute.math.exp2(x[tid % 4]))
            else:
                total = total + x[i]
        if not total < 0.0:
            A.mbarrier_arrive(done)
        A.mbarrier_wait(done, 0)

    @cute.jit
    def launch(x: cute.Tensor[cute.Float32, 4]):
        sign_kernel(x).launch(grid=1, block=64)

    return launch


@pytest.mark.parametrize(
    ("value", "is_proved"), [("sum of exponentials", True), ("sum of differences", False), ("sum", False)]
)
def test_a_sum_of_exponentials_is_never_negative(value: str, is_proved: bool):
    (proof,) = cute.testing.prove(guarded(value), (np.ones(4, np.float32),))
    assert bool(proof) is is_proved, str(proof)
