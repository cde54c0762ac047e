"""Lowered IR with ops of nvgpu, taken on to nvvm by upstream MLIR and read back, for the interpreter."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # pragma: no cover
    from xdsl.dialects.builtin import ModuleOp

__all__ = ["without_nvgpu"]

TO_NVVM = (
    "builtin.module(convert-nvgpu-to-nvvm,gpu.module(convert-vector-to-llvm,convert-arith-to-llvm),"
    "reconcile-unrealized-casts,canonicalize)"
)
"""The passes that leave no op, type or cast of nvgpu, memref and vectors of two dimensions."""


@lru_cache(maxsize=8)
def without_nvgpu(module: ModuleOp) -> ModuleOp:
    """Return the module itself if it has no op of nvgpu, else what upstream's ``convert-nvgpu-to-nvvm`` makes of it.

    Raises :class:`~cute_dialect.pipelines.upstream_error.UpstreamMissing` where that takes upstream MLIR and there is
    none.
    """
    if not any(op.name.startswith("nvgpu.") for op in module.walk()):
        return module
    from cute_dialect.ir.printing import ir_text
    from cute_dialect.pipelines.isolate import borrowed
    from cute_dialect.pipelines.stages import parse_module

    with borrowed() as worker:
        upstream = worker.module(ir_text(module, generic=True))
        upstream.run_pipeline(TO_NVVM)
        text = upstream.text(generic=True)
    return parse_module(text)
