"""Producer-consumer rings of the language, correct or with one defect, for tests of the protocol prover."""

# ruff: noqa: F821, UP037  (the strings in annotations are names of extents)

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import cute_dialect.lang as cute

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
