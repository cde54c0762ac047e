"""Wgmma with negated operands: one kernel per pair of signs, shared by the CPU and the GPU tests."""

# pyright: basic

from __future__ import annotations

from typing import Any

import numpy as np
from kernel_modules import Use, module_text

import cute_dialect.lang as cute
from cute_dialect.lang.nvgpu import warpgroup

SIGNS = {"": 1, ", negate_a": -1, ", negate_b": -1, ", negate_a, negate_b": 1}
"""Suffix of the atom's type -> sign of the accumulated A * B."""
CASES = {
    f"{source}{negate.replace(', negate', '')}": (source, negate) for source in ("smem", "rmem") for negate in SIGNS
}
"""Name of a kernel -> source of A, and the negated operands."""


def text(source: str, negate: str) -> str:
    """Return the kernel of ``D = 3 + A B`` for 64 x 8 x 16.

    ``negate`` sets the signs of A and B, ``source`` is that of A.
    """
    signs = {"negate_a": "negate_a" in negate, "negate_b": "negate_b" in negate}
    op = warpgroup.MmaF16BF16Op(cute.Float16, cute.Float32, (64, 8, 16), source, **signs)

    def shared(tensor: Any):
        tid = cute.arch.thread_idx().x
        plain = warpgroup.make_smem_layout_atom(warpgroup.SmemLayoutAtomKind.K_INTER, cute.Float16)
        tile = cute.smem_tensor(cute.Float16, cute.tile_to_shape(plain, tensor.shape, (0, 1)), 128)
        for i in range(tid, cute.size(tensor), 128):
            tile[i] = tensor[i]
        return tile

    @cute.kernel
    def k(A: Any, B: Any, D: Any):
        mma = cute.make_tiled_mma(op)
        thread = mma.get_slice(cute.arch.thread_idx().x)
        if source == "rmem":
            a = mma.make_fragment_A(thread.partition_A(A))
            cute.autovec_copy(thread.partition_A(A), a)
        else:
            a = thread.partition_A(shared(A))
        b = thread.partition_B(shared(B))
        cute.arch.fence_proxy("async.shared", space="cta")
        cute.arch.sync_threads()
        acc = mma.make_fragment_C(thread.partition_C(D))
        acc.fill(3.0)
        warpgroup.fence(acc)
        cute.gemm(mma, acc, a, b, acc)
        warpgroup.commit_group()
        warpgroup.wait_group(0, acc)
        cute.autovec_copy(acc, thread.partition_C(D))

    a, b = (cute.Tensor[cute.Float16, f"({rows},16):(16,1)"] for rows in (64, 8))
    return module_text([Use(k, (a, b, cute.Tensor[cute.Float32, "(64,8):(8,1)"]), threads=128)])


def arrays(negate: str) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return A, B, a poisoned D, and the expected D."""
    rng = np.random.default_rng(7)
    a, b = (rng.integers(-4, 5, (x, 16)).astype(np.float16) for x in (64, 8))
    wanted = 3 + SIGNS[negate] * (a.astype(np.float32) @ b.astype(np.float32).T)
    return a, b, np.full((64, 8), np.nan, np.float32), wanted
