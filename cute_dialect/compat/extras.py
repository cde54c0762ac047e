"""Names of mlir-python-extras, for kernels written with it: ``from cute_dialect.compat.extras import T, gpu, range_``.

::

    @cute.generic("M", "K", "N", "dtype")              # or, since Python 3.12, def sgemm[M, K, N, dtype](…)
    @gpu.func
    def sgemm(A: "T.memref(M, K, dtype)", B: "T.memref(K, N, dtype)", C: "T.memref(M, N, dtype)"):
        tmp = arith.constant(0, type=dtype)
        r = block_dim.x * block_idx.x + thread_idx.x
        c = block_dim.y * block_idx.y + thread_idx.y
        for k, tmp in range_(K, iter_args=[tmp]):
            tmp += A[r, k] * B[k, c]
            tmp = yield tmp
        C[r, c] = tmp

    sgemm[1024, 1024, 1024, cute.Float32](a, b, c).launch(grid=(32, 32), block=(32, 32))

Loop-carried values are found automatically, so ``iter_args`` and ``yield`` are optional.
"""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import cute_dialect.lang as cute
from cute_dialect.lang.control.loops import loop_range
from cute_dialect.lang.tracing.errors import SyntaxErrorInKernel

__all__ = ["T", "arith", "block_dim", "block_idx", "gpu", "grid_dim", "range_", "scf", "thread_idx"]


class _Ids:
    """Three special registers: ``x``, ``y``, ``z``."""

    def __init__(self, name: str):
        self._name = name

    def __getattr__(self, axis: str) -> Any:
        if axis not in ("x", "y", "z"):
            raise AttributeError(f"{self._name} has no attribute '{axis}'; attributes: x, y, z")
        return getattr(getattr(cute.arch, self._name)(), axis)


thread_idx, block_idx, block_dim, grid_dim = (_Ids(n) for n in ("thread_idx", "block_idx", "block_dim", "grid_dim"))


def range_(*args: Any, iter_args: Any = None) -> Any:
    """Return the range of a run-time loop. ``iter_args`` is supported only in a ``for`` statement of a kernel."""
    if iter_args is not None:
        raise SyntaxErrorInKernel(
            "F150", "range_ with iter_args must be the iterable of a 'for' statement, called by its global name",
            hint="remove iter_args and yield; loop-carried values are found automatically",
        )  # fmt: skip
    return loop_range(*args)


range_.__cute_carries__ = True  # pyright: ignore[reportFunctionMemberAccess]


def constant(value: Any, type: Any = None, index: bool = False) -> Any:
    """Return a number of a type: by default Int32 or Float32, or Int64 with ``index``."""
    kind = cute.Int64 if index else type or (cute.Float32 if isinstance(value, float) else cute.Int32)
    return kind(value)


def _memref(*args: Any) -> Any:
    """Return the annotation of a tensor, from extents (None for any) and the element type."""
    *extents, dtype = args
    return cute.Tensor[(dtype, *extents)]  # pyright: ignore[reportInvalidTypeArguments]


def _vector(*args: Any) -> Any:
    """Return the type of a register vector, from its extents and element type."""
    from cute_dialect.compat.mlir.ir import pack_type  # late: start-up

    *extents, kind = args
    return pack_type(math.prod(extents), kind)


_TYPES = {
    "bool": "Boolean", "f16": "Float16", "f32": "Float32", "f64": "Float64", "bf16": "BFloat16", "i1": "Boolean",
    "i8": "Int8", "i16": "Int16", "i32": "Int32", "i64": "Int64", "index": "Int64", "ui8": "Uint8", "ui16": "Uint16",
    "ui32": "Uint32", "ui64": "Uint64",
}  # fmt: skip

T = SimpleNamespace(
    memref=_memref, vector=_vector, **{n: (lambda kind=kind: getattr(cute, kind)) for n, kind in _TYPES.items()}
)
"""Types: ``T.f32()`` and so on, and ``T.memref(M, N, T.f32())`` for annotations."""
arith = SimpleNamespace(constant=constant)
scf = SimpleNamespace(range_=range_, for_=range_)
gpu = SimpleNamespace(
    func=cute.kernel, barrier=lambda: cute.arch.sync_threads(), thread_idx=thread_idx, block_idx=block_idx,
    block_dim=block_dim, grid_dim=grid_dim,
)  # fmt: skip
