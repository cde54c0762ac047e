"""Depthwise convolutions and their input gradients on the interpreter: random windows, types and strides."""

# pyright: basic

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from conv_reference import How, forward, gradients, small

from cute_dialect import op

CHECKS: Any = {"device": "cpu", "checks": ("race", "uninit", "oob", "sync")}


def drawn(rng: np.random.Generator) -> tuple[tuple[int, ...], tuple[int, ...], How]:
    """Return a random image, filters and a window that fits the image."""
    while True:
        taps = tuple(int(n) for n in rng.integers(1, 5, 2))
        before, after = (tuple(int(n) for n in rng.integers(0, 4, 2)) for _ in range(2))
        strides, dilations = (tuple(int(n) for n in rng.integers(1, 4, 2)) for _ in range(2))
        extents = tuple(int(n) for n in rng.integers(1, 14, 2))
        channels = int(rng.choice([8, 16, 24, 40]))
        whole = [x + a + b - d * (t - 1) for x, a, b, d, t in zip(extents, before, after, dilations, taps)]
        if min(whole) >= 1:
            h = How(before, after, strides, dilations, channels, bool(rng.integers(2)))
            return (int(rng.integers(1, 3)), *extents, channels), (channels, *taps, 1), h


@pytest.fixture
def kernels(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Record the names of the launched depthwise kernels."""
    from cute_dialect.op.conv import depthwise

    found, given = list[str](), depthwise.kernel_of
    monkeypatch.setattr(depthwise, "kernel_of", lambda config, cpu: found.append(config.name) or given(config, cpu))
    return found


@pytest.mark.end_to_end
@pytest.mark.sample("0")
@pytest.mark.parametrize("seed", range(12))
def test_random_windows(seed: int, kernels: list[str]) -> None:
    """Forward and input gradient with any stride, dilation and padding, and filters in any memory order."""
    rng = np.random.default_rng(seed)
    of_x, of_f, h = drawn(rng)
    dtype = (np.float16, np.float32)[seed % 2]
    x, f = small(rng, *of_x, dtype=dtype), small(rng, *of_f, dtype=dtype)
    if seed % 3:  # memory order: taps, then channels
        f = np.ascontiguousarray(f.transpose(1, 2, 3, 0)).transpose(3, 0, 1, 2)
    want = forward(x, f, h)
    y = small(rng, *want.shape, dtype=dtype)
    how = {**h.arguments, **CHECKS}
    assert (op.conv2d(x, f, **how) == want).all()
    assert (op.conv2d_input(x.shape, f, y, **how) == gradients(x, f, y, h)[0]).all()
    assert [name.split("-")[1] for name in kernels] == [("f16", "f32")[seed % 2], "dgrad"]


@pytest.mark.end_to_end
@pytest.mark.slow
@pytest.mark.parametrize("dilation", [1, 3])
def test_small_problems_with_large_windows(dilation: int, kernels: list[str]) -> None:
    """A thread computes one row of a tile, with filters in shared memory and all loads in flight."""
    rng, pad = np.random.default_rng(dilation), (3 * dilation, 3 * dilation)
    h = How(pad, pad, (1, 1), (dilation, dilation), 8, False)
    x, f = small(rng, 2, 7, 9, 8), small(rng, 8, 7, 7, 1)
    y = small(rng, 2, 7, 9, 8)
    assert (op.conv2d(x, f, **h.arguments, **CHECKS) == forward(x, f, h)).all()
    assert (op.conv2d_input(x.shape, f, y, **h.arguments, **CHECKS) == gradients(x, f, y, h)[0]).all()
    assert [name.split("-")[-1] for name in kernels] == [f"1x{4 if dilation == 1 else 2}a6c2"] * 2
