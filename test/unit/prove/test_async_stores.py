"""Blocks of a cluster that send numbers to each other with st.async."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cute_dialect.lang as cute
from cute_dialect.prove.proof import Proof

A = cute.arch


def verdict(defect: str = "", engine: str = "auto", path: str = "") -> Proof:
    """Return the verdict on a cluster of two blocks, whose first warps send 32 numbers in each of two rounds."""
    expected = 128 + {"bytes fewer": -4, "bytes more": 4}.get(defect, 0)

    @cute.kernel
    def kernel(y: cute.Tensor):
        tid = A.thread_idx().x
        warp, lane = A.make_warp_uniform(tid // 32), tid % 32
        slots = cute.make_tensor(A.alloc_smem(cute.Float32, 64, 16), cute.make_layout((32, 2)))
        full = A.alloc_smem(cute.Int64, 2, 8)
        rank = A.block_idx_in_cluster()
        if tid == 0:
            A.mbarrier_init(full, 1)
            A.mbarrier_init(full + 1, 1)
            A.mbarrier_init_fence()
        if defect == "no cluster barrier":
            A.sync_threads()
        else:
            A.cluster_arrive()
            A.cluster_wait()
        for i in cute.range_constexpr(2):
            if tid == 0:
                A.mbarrier_arrive_and_expect_tx(full + i, expected)
            if warp == 0:
                at = 0 if defect == "one address" else lane
                to = A.map_dsmem_ptr(slots.iterator + (at + (0 if defect == "one buffer" else 32 * i)), rank ^ 1)
                A.store_async(to, cute.Float32(1.0), A.map_dsmem_ptr(full + i, rank ^ 1))
            if defect != "no wait" and (not defect.startswith("the second is not awaited") or i == 0):
                A.mbarrier_wait(full + i, 0)
            if not defect.startswith("the second is not awaited") or i == 0:
                y[A.block_idx().x, i, tid] = slots[lane, 0 if defect == "one buffer" else i]

        if defect == "the second is not awaited, with a cluster barrier":
            A.cluster_arrive()
            A.cluster_wait()

    @cute.jit
    def launch(y: cute.Tensor):
        kernel(y).launch(grid=2, block=128, cluster=2)

    y = np.zeros((2, 2, 128), np.float32)
    options: Any = {"certificate": path} if path else {}
    (proof,) = cute.testing.prove(launch, (y,), engine=engine, **options)
    if path:
        (line,) = cute.testing.recheck(launch, (y,), path)
        assert "certificate accepted" in line
    return proof


def test_stores_that_signal_an_mbarrier_are_proved(tmp_path: Path):
    proof = verdict(path=str(tmp_path / "stores.cert"))
    assert proof, str(proof)


@pytest.mark.parametrize(
    ("defect", "reason"),
    [
        ("bytes fewer", ""),
        ("bytes more", "deadlock"),
        ("no cluster barrier", ""),
        ("one address", "the st.async: several lanes write the same bytes"),
        ("one buffer", "the st.async writes shared memory"),
        ("no wait", ""),
        ("the second is not awaited", "access to the shared memory of block 1 of the cluster, which has ended"),
        ("the second is not awaited, with a cluster barrier", "a bulk copy may be in flight when block"),
    ],
)
def test_planted_defects_are_refuted(defect: str, reason: str):
    proof = verdict(defect)
    assert proof.verdict == "refuted" and proof.reason.startswith(reason), str(proof)
