"""Machine-level ops, ``cute_nvgpu.arch.*`` (one op an instruction), and what else belongs to ``cute_nvgpu``."""

from __future__ import annotations

from xdsl.ir import Operation

from cute_dialect.ops import (
    arch_copy,
    arch_mma,
    arch_sparse_mma,
    arch_sync,
    cooperative_gemm,
    gemm,
    im2col,
    mma,
    sparse_mma,
    tensors,
    tile_copies,
    tma,
)

OPS: list[type[Operation]] = [
    *arch_sync.OPS, *arch_copy.OPS, *arch_mma.OPS, *arch_sparse_mma.OPS, *tma.OPS, *im2col.OPS, *mma.OPS,
    *tensors.OPS,
]  # fmt: skip
"""Ops of ``cute_nvgpu``."""

CUTE_OPS: list[type[Operation]] = [
    *tensors.CUTE_OPS, *mma.CUTE_OPS, *gemm.CUTE_OPS, *sparse_mma.CUTE_OPS, *cooperative_gemm.CUTE_OPS,
    *tma.CUTE_OPS, *tile_copies.OPS,
]  # fmt: skip
"""Ops of ``cute`` that need an architecture, or memory of one."""
