"""Negated operands of wgmma: a kernel for each pair of signs; shared by the CPU and the GPU tests."""

from __future__ import annotations

import numpy as np

SIGNS = {"": 1, ", negate_a": -1, ", negate_b": -1, ", negate_a, negate_b": 1}
"""What an atom's type says -> the sign of the product."""
CASES = {
    f"{source}{negate.replace(', negate', '')}": (source, negate) for source in ("smem", "rmem") for negate in SIGNS
}
"""Name of a kernel -> where A comes from, what is negated."""


def text(source: str, negate: str) -> str:
    """``D = 3 + A B`` for 64 x 8 x 16, the signs of A and B as ``negate`` says; A from ``source``."""
    from cute_dialect.kernels.builder import Builder

    b = Builder()
    atom = f"!cute_nvgpu.atom.wgmma<64x8x16, (f32,f16,f16,f32), A = {source}, major = (k, k){negate}>"
    tiles = [(name, f'!cute.memref<f16, gmem, "({x},16):(16,1)">', x) for name, x in (("A", 64), ("B", 8))]
    parameters = {name: t for name, t, _ in tiles} | {"D": '!cute.memref<f32, gmem, "(64,8):(8,1)">'}
    with b.kernel("k", parameters, threads=128) as (pa, pb, pd):
        tid = b.thread_id()
        mma_type = f'!cute.tiled_mma<{atom}, atom_layout_MNK = <"(1,1,1):(0,0,0)">>'
        mma = b.op("cute.make_tiled_mma", b.atom(atom), type=mma_type)
        plain = [b.atom(f"!cute_nvgpu.atom.universal_copy<{t}>") for t in ("f16", "f32")]
        parts = {}
        for (name, _, x), given in zip(tiles, (pa, pb)):
            if name == "A" and source == "rmem":
                there = b.partition("A", mma, given, tid)
                parts[name] = b.op("cute.tiled.mma.make_fragment_A", mma, there)
                b.copy(plain[0], there, parts[name])
                continue
            layout = f"((8,{x // 8}),(8,2)):((8,128),(1,64))"
            smem = b.alloc_smem(f'!cute.memref<f16, smem, align<128>, "{layout}">')
            with b.for_(tid, x * 16, 128) as loop:
                b.store(smem, loop.iv, b.load(given, loop.iv))
            parts[name] = b.partition(name, mma, smem, tid)
        b.run("fence_proxy_async")
        b.run("barrier")
        there = b.partition("C", mma, pd, tid)
        acc = b.op("cute.tiled.mma.make_fragment_C", mma, there)
        b.do("cute.fill", acc, b.constant(3.0, "f32"))
        b.run("wgmma_fence", acc)
        b.gemm(mma, acc, parts["A"], parts["B"], acc)
        b.run("wgmma_commit_group")
        b.run("wgmma_wait_group", acc, n=0)
        b.copy(plain[1], acc, there)
    return b.text()


def arrays(negate: str) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """A, B, a poisoned D, and what D must become."""
    rng = np.random.default_rng(7)
    a, b = (rng.integers(-4, 5, (x, 16)).astype(np.float16) for x in (64, 8))
    wanted = 3 + SIGNS[negate] * (a.astype(np.float32) @ b.astype(np.float32).T)
    return a, b, np.full((64, 8), np.nan, np.float32), wanted
