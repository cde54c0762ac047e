"""Host functions, and launches of kernels from them and from Python."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import cute_dialect.lang as cute
from cute_dialect.errors import CompileError
from cute_dialect.lang.tracing.errors import KernelTypeError
from cute_dialect.lang.tracing.tracer import current, parse_type

pytest.importorskip("cute_dialect.lang.values.tensors")


def thread() -> Any:
    return cute.Int32.of(current().value("nvvm.read.ptx.sreg.tid.x", (), [parse_type("i32")]))


@cute.kernel
def scale(x: Any, y: Any, factor: Any) -> None:
    i = thread()
    y[i] = x[i] * factor


@cute.jit
def run(x: Any, y: Any, factor: cute.Float32) -> None:
    scale(x, y, factor).launch(grid=1, block=32)


def test_numpy_on_the_cpu() -> None:
    x, y = np.arange(32, dtype=np.float32), np.zeros(32, np.float32)
    run(x, y, 3, device="cpu")
    assert (y == 3 * x).all()
    run(x, y, 0.5, device="cpu")
    assert (y == 0.5 * x).all()


def test_a_kernel_that_is_not_launched() -> None:
    @cute.jit
    def forgets(x: Any) -> None:
        scale(x, x, 1.0)

    with pytest.raises(CompileError, match="F110: the kernel 'scale' is never launched") as caught:
        forgets(np.zeros(32, np.float32), device="cpu")
    assert caught.value.place is not None
    assert caught.value.place.file == __file__


def test_wrong_launches() -> None:
    def launched(**sizes: Any) -> Any:
        @cute.jit
        def f(x: Any) -> None:
            scale(x, x, 1.0).launch(**sizes)

        return f

    x = np.zeros(32, np.float32)
    with pytest.raises(KernelTypeError, match="F115: the launch has no block"):
        launched(grid=1)(x, device="cpu")
    with pytest.raises(KernelTypeError, match="F115: grid takes one to three integers, got 4"):
        launched(grid=(1, 1, 1, 1), block=1)(x, device="cpu")
    run(x, x, 1, device="cpu")
