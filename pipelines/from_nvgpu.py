"""Conversion of nvgpu ops to nvvm by upstream MLIR, for the interpreter."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from cute_dialect.ir.printing import ir_text
from cute_dialect.pipelines.compiler import parse_module
from cute_dialect.pipelines.worker import borrowed

if TYPE_CHECKING:  # pragma: no cover
    from xdsl.dialects.builtin import ModuleOp

__all__ = ["without_nvgpu"]

TO_NVVM = (
    "builtin.module(convert-nvgpu-to-nvvm,gpu.module(convert-vector-to-llvm,convert-arith-to-llvm),"
    "reconcile-unrealized-casts,canonicalize)"
)
"""Passes that remove nvgpu ops and types, memrefs, and two-dimensional vectors."""


@lru_cache(maxsize=8)
def without_nvgpu(module: ModuleOp) -> ModuleOp:
    """Return the module after upstream's ``convert-nvgpu-to-nvvm``; the module itself if it has no nvgpu op.

    Raises :class:`~cute_dialect.pipelines.upstream_error.UpstreamMissing` if upstream MLIR is needed and not
    installed.
    """
    if not any(op.name.startswith("nvgpu.") for op in module.walk()):
        return module
    with borrowed() as worker:
        upstream = worker.module(ir_text(module, generic=True))
        upstream.run_pipeline(TO_NVVM)
        text = upstream.text(generic=True)
    return parse_module(text)
