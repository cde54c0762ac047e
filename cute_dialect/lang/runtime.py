"""Array and pointer arguments of kernels: ``cute.runtime.from_dlpack(x)``, fake tensors for ``cute.compile``."""

from __future__ import annotations

from cute_dialect.lang.calls.compiled import load as load_module
from cute_dialect.lang.calls.options import current_target
from cute_dialect.lang.calls.runtime_tensor import (
    FakeStream,
    RuntimePointer,
    RuntimeTensor,
    from_dlpack,
    make_fake_compact_tensor,
    make_fake_stream,
    make_fake_tensor,
    make_ptr,
)

Pointer = RuntimePointer
"""The name in CuTe DSL."""

__all__ = [
    "FakeStream", "Pointer", "RuntimePointer", "RuntimeTensor", "current_target", "from_dlpack", "load_module",
    "make_fake_compact_tensor", "make_fake_stream", "make_fake_tensor", "make_ptr",
]  # fmt: skip


def __dir__() -> list[str]:
    return sorted(__all__)
