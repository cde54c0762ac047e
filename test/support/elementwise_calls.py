"""Elementwise calls of ``test/gpu/test_elementwise_gpu.py``, and the kernels that they launch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np

from cute_dialect import op
from cute_dialect.op import epilogue as ep
from cute_dialect.op.execute.array_call import RowKernel

TYPES: dict[str, Any] = {
    "f32": np.float32, "f16": np.float16, "bf16": ml_dtypes.bfloat16, "f8E4M3FN": ml_dtypes.float8_e4m3fn,
    "i8": np.int8, "f64": np.float64,
}  # fmt: skip


class Call(NamedTuple):
    """A call: the function, element types and layouts of its arrays, then scalar arguments.

    Layouts are ``mn`` (like the result), ``nm`` (contiguous columns), ``n`` (a per-column vector), ``m`` (a per-row
    vector) and ``1`` (one element for all).
    """

    name: str
    made: op.Elementwise
    elements: tuple[str, ...]
    lying: tuple[str, ...]
    numbers: tuple[float, ...] = ()
    dtype: str | None = None

    def arrays(self, m: int, n: int, make: Callable[..., Any]) -> list[Any]:
        """Return the arguments of a call, with arrays allocated by ``make(element, shape)``."""
        shapes = {"mn": (m, n), "nm": (n, m), "n": (n,), "m": (m, 1), "1": (1,)}
        found = [make(e, shapes[how]) for e, how in zip(self.elements, self.lying)]
        return [x.T if how == "nm" else x for x, how in zip(found, self.lying)] + list(self.numbers)


def _swiglu(gate: Any, up: Any) -> Any:
    return ep.silu(gate) * up


def _two(x: Any, bias: Any, scale: Any, s: Any) -> Any:
    y = (x + bias) * scale
    return y * s, ep.maximum(y, 0.0)


def _functions(x: Any, s: Any) -> Any:
    return ep.gelu(x) + ep.softplus(x * s) + ep.exp(x * s) + ep.rsqrt(x * x + 1.0)


CALLS = [
    Call("swiglu", op.elementwise(_swiglu), ("bf16", "bf16"), ("mn", "mn")),
    Call("swiglu f32", op.elementwise(_swiglu), ("f32", "f32"), ("mn", "mn")),
    Call("two", op.elementwise(_two), ("f16", "f32", "f32"), ("mn", "n", "m"), (0.5,)),
    Call("turned", op.elementwise(_two), ("bf16", "bf16", "f32"), ("mn", "nm", "1"), (2.0,)),
    Call("to e4m3", op.mul, ("bf16",), ("mn",), (0.25,), "f8E4M3FN"),
    Call("bytes", op.elementwise(lambda x, y: x + y), ("i8", "i8"), ("mn", "n"), (), "i8"),
    Call("add", op.add, ("bf16", "bf16"), ("mn", "mn")),
    Call("functions of f64", op.elementwise(_functions), ("f64",), ("mn",), (0.1,)),
]


def kernels() -> dict[str, RowKernel]:
    """Return the kernels by name, for contiguous and padded arrays, with and without vectorized access."""
    found: dict[str, RowKernel] = {}
    for call in CALLS:
        for n, gap in ((32, 0), (33, 0), (32, 16)):

            def make(element: str, shape: tuple[int, ...], gap: int = gap) -> Any:
                if len(shape) < 2 or 1 in shape:
                    return np.zeros(shape, TYPES[element])
                return np.zeros((shape[0], shape[1] + gap), TYPES[element])[:, : shape[1]]

            kernel = call.made.kernel(*call.arrays(4, n, make), dtype=call.dtype)
            found[kernel.name] = kernel
    return found
