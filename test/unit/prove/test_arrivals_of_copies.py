"""Rings whose stages are filled by cp.async, and whose mbarriers count the copies (cp.async.mbarrier.arrive.noinc)."""

# ruff: noqa: F821, UP037  (the strings in annotations are names of extents)

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cute_dialect.lang as cute
from cute_dialect.lang.nvgpu import cpasync
from cute_dialect.prove.proof import Proof

A = cute.arch
STAGES = 2


def verdict(defect: str = "", engine: str = "auto", path: str = "") -> Proof:
    """Return the verdict on a ring with a writer and a reader warp, replayed for one to five steps."""

    @cute.kernel
    def kernel(x: cute.Tensor, y: cute.Tensor):
        tid = A.thread_idx().x
        warp, lane = A.make_warp_uniform(tid // 32), tid % 32
        memory = A.alloc_smem(cute.Float32, 128 * STAGES, 16)
        slots = cute.make_tensor(memory, cute.make_layout((32, 4, STAGES), stride=(4, 1, 128)))
        full, empty = A.alloc_smem(cute.Int64, STAGES, 8), A.alloc_smem(cute.Int64, STAGES, 8)
        atom = cute.make_copy_atom(cpasync.CopyG2SOp(), cute.Float32, num_bits_per_copy=128)
        if tid == 0:
            for s in cute.range_constexpr(STAGES):
                A.mbarrier_init(full + s, 64 if defect == "twice the arrivals" else 32)
                A.mbarrier_init(empty + s, 32)
        A.sync_threads()
        slot, phase = cute.Int32(0), cute.Int32(0)
        if warp == 0:
            for k in range(x.shape[0]):
                if defect != "no wait for the reader":
                    A.mbarrier_wait(empty + slot, phase ^ 1)
                if defect == "arrival before the copy":
                    A.cp_async_mbarrier_arrive_noinc(full + slot)
                cute.copy(atom, x[k, lane, None], slots[lane, None, slot])
                if defect == "plain arrival":
                    A.mbarrier_arrive(full + slot)
                elif defect != "arrival before the copy":
                    A.cp_async_mbarrier_arrive_noinc(full + slot)
                if defect == "the writer reads":
                    y[k, lane] = slots[lane, 0, slot]
                if defect == "the writer waits for no group":
                    A.cp_async_wait_group(0)
                    y[k, lane] = slots[lane, 0, slot]
                if defect == "the writer waits for its copies":
                    A.cp_async_commit_group()
                    A.cp_async_wait_group(0)
                    y[k, lane] = slots[lane, 0, slot]
                phase = phase ^ slot
                slot = slot ^ 1
        else:
            for k in range(x.shape[0] - (defect == "the last copy is not awaited")):
                if defect != "no wait for the copies":
                    A.mbarrier_wait(full + slot, phase)
                z = slots[31 - lane, 1, slot]
                if defect != "no release":
                    A.mbarrier_arrive(empty + slot)
                y[k, lane + 32] = z
                phase = phase ^ slot
                slot = slot ^ 1

    @cute.jit
    def launch(x: cute.Tensor[None, "n", 32, 4], y: cute.Tensor[None, "n", 64]):
        kernel(x, y).launch(grid=1, block=64)

    problems = [(np.ones((n, 32, 4), np.float32), np.zeros((n, 64), np.float32)) for n in (3, 1, 5)]
    options: Any = {"certificate": path} if path else {}
    (proof,) = cute.testing.prove(launch, problems[0], problems=problems, engine=engine, **options)
    if path:
        (line,) = cute.testing.recheck(launch, problems[0], path)
        assert "certificate accepted" in line
    return proof


@pytest.mark.parametrize("variant", ["", "the writer waits for its copies"])
@pytest.mark.parametrize("engine", ["facts", "exhaustive"])
def test_arrivals_that_follow_copies_are_proved(variant: str, engine: str):
    proof = verdict(variant, engine)
    assert proof, str(proof)


def test_a_certificate_is_accepted(tmp_path: Path):
    assert verdict(path=str(tmp_path / "ring.cert"))


@pytest.mark.parametrize(
    "defect",
    [
        "twice the arrivals",
        "no wait for the reader",
        "arrival before the copy",
        "plain arrival",
        "the writer reads",
        "the writer waits for no group",
        "no wait for the copies",
        "no release",
    ],
)
def test_planted_defects_are_refuted(defect: str):
    proof = verdict(defect)
    assert proof.verdict == "refuted", str(proof)


def test_a_copy_that_may_fly_at_the_end_of_its_block_is_refuted():
    proof = verdict("the last copy is not awaited")
    assert proof.verdict == "refuted", str(proof)
    assert "a cp.async may be in flight when its block ends; wait for its mbarrier" in proof.reason
