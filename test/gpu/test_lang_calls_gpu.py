"""Calls of Python kernel functions on a GPU: specializations, cached calls, streams and argument errors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="NOT RUN: torch is not installed")

import cute_dialect.lang as cute  # noqa: E402
from cute_dialect.runtime.launch_plan import LaunchError  # noqa: E402


@cute.kernel
def add_kernel(a: cute.Tensor, b: cute.Tensor, c: cute.Tensor, by: Any) -> None:
    i = cute.arch.block_idx()[0] * 128 + cute.arch.thread_idx()[0]
    if i < cute.size(c):
        c[i] = a[i] + b[i] * by


@cute.jit
def add(a: Any, b: Any, c: Any, by: cute.Float32 = 1.0, stream: cute.Stream = None) -> None:
    add_kernel(a, b, c, by).launch(grid=(cute.size(c) + 127) // 128, block=128, stream=stream)


def tensors(n: int) -> Any:
    return [torch.randn(n, device="cuda") for _ in range(3)]


def test_calls() -> None:
    for n in (1000, 1000, 77, 1000, 4096):
        a, b, c = tensors(n)
        add(a, b, c)
        assert torch.equal(c, a + b)
        add(a, b, c, 2.0)
        assert torch.allclose(c, a + 2 * b, atol=1e-6)  # The GPU may round once (FMA) or twice.
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        add(a, b, c, 3.0, side)
        side.synchronize()
        assert torch.allclose(c, a + 3 * b, atol=1e-6)
    a, b, c = tensors(1001)
    add(a[1:], b[1:], c[1:])  # Pointers without 16-byte alignment need another specialization.
    assert torch.equal(c[1:], a[1:] + b[1:])
    x, y, z = (np.arange(50, dtype=np.float32) for _ in range(3))
    add(x, y, z)
    assert (z == x + y).all()
    with pytest.raises((LaunchError, cute.CuteError)):
        add(a, b, "c")
    add(a, b, c)
    assert torch.equal(c, a + b)
    add_kernel(a, b, c, 4).launch(grid=8, block=128)
    assert torch.allclose(c, a + 4 * b, atol=1e-6)
