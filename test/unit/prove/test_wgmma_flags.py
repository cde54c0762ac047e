"""Wgmma with A in registers, whose accumulator is enabled by a register."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import cute_dialect.lang as cute
from cute_dialect.lang.nvgpu import warpgroup
from cute_dialect.prove.proof import Proof

ATOM = warpgroup.MmaF16BF16Op(cute.Float16, cute.Float32, (64, 32, 16), warpgroup.OperandSource.RMEM)


def verdict(case: str) -> Proof:
    """Return the verdict on a loop of MMAs with one tile of B, replayed for three steps."""

    @cute.kernel
    def kernel(b: cute.Tensor, c: cute.Tensor, steps: cute.Int32):
        tid = cute.arch.thread_idx().x
        warp = cute.arch.make_warp_uniform(tid // 32)
        rows_of_b = cute.make_layout((32, 64), stride=(64, 1))
        s = cute.smem_tensor(cute.Float16, rows_of_b, 1024, cute.make_swizzle(3, 4, 3))
        cute.cooperative_copy(cute.make_tensor(b.iterator, rows_of_b), s, tid, 128)
        cute.arch.fence_view_async_shared()
        cute.arch.sync_threads()
        mma = cute.make_tiled_mma(ATOM)
        part = mma.get_slice(tid)
        rows, columns = mma.make_fragment_A(mma.partition_shape_A((64, 16))), mma.make_fragment_B(part.partition_B(s))
        rows.fill(1.0)
        acc = mma.make_fragment_C(mma.partition_shape_C((64, 32)))
        for i in range(steps):
            flag = i > 0
            if case == "flags of warps differ":
                flag = (i > 0) | (warp == 1)
            if case == "flag from memory":
                flag = c[0, 0] > 0.0
            warpgroup.fence()
            cute.gemm(mma, acc, rows[None, None, 0], columns[None, None, 0], accumulate=flag)
            warpgroup.commit_group()
            if case != "no wait":
                warpgroup.wait_group(0)
        out = cute.make_tensor(c.iterator, cute.make_layout((64, 32), stride=(32, 1)))
        cute.autovec_copy(acc, part.partition_C(out))

    @cute.jit
    def launch(b: cute.Tensor, c: cute.Tensor, steps: cute.Int32):
        kernel(b, c, steps).launch(grid=1, block=128)

    b, c = np.ones((32, 64), np.float16), np.zeros((64, 32), np.float32)
    (proof,) = cute.testing.prove(launch, (b, c, 3))
    return proof


def test_a_flag_that_depends_on_the_iteration_is_proved():
    proof = verdict("")
    assert proof, str(proof)


@pytest.mark.parametrize(
    ("case", "result", "reason"),
    [
        ("flags of warps differ", "refuted", "the warps of a warpgroup issue different wgmma"),
        ("no wait", "refuted", "accumulator registers are used before their wgmma"),
        ("flag from memory", "not proved", "the register that enables the accumulator of a wgmma is not known"),
    ],
)
def test_wrong_flags(case: str, result: str, reason: Any):
    proof = verdict(case)
    assert proof.verdict == result and proof.reason.startswith(reason), str(proof)
