"""Convolutions of few channels on the interpreter: folded filter columns, and gradients computed as fprop."""

# pyright: basic

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from conv_reference import How, forward, gradients, how, small

from cute_dialect import op

CHECKS: Any = {"device": "cpu", "checks": ("race", "uninit", "oob", "sync")}
CASES: dict[str, tuple[tuple[int, ...], tuple[int, ...], How, Any, str]] = {
    "first layer": ((1, 9, 11, 3), (16, 7, 7, 3), how(3, 2), np.float16, "fw"),
    "uneven, dilated, backwards": (
        (2, 6, 7, 5), (8, 2, 4, 5), How((1, 0), (0, 3), (2, 1), (1, 2), 1, True), np.float16, "fw"
    ),
    "8 channels": ((1, 5, 6, 8), (24, 3, 3, 8), how(), np.float16, "fw"),
    "one dimension": ((2, 23, 2), (8, 9, 2), how(4, 1, rank=1), np.float16, ""),
    "three dimensions": ((1, 3, 4, 5, 1), (8, 3, 3, 3, 1), how(1, 1, rank=3), np.float16, "f"),
    "tf32": ((1, 5, 6, 3), (12, 3, 3, 3), how(1, 2), np.float32, "f"),
}  # fmt: skip
"""Image, filters, window, dtype, and the passes that use im2col TMA loads: forward (f) and filter gradient (w)."""


@pytest.fixture
def launched(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Record the names of the launched im2col kernels, on a chip with two SMs."""
    from cute_dialect.op.conv import compute, dispatch

    found: list[str] = []
    given, tiles = compute.kernel_of, dispatch.few_channels
    # Other tests cover image tiles, which may be faster without groups.
    monkeypatch.setattr(dispatch, "few_channels", lambda x, sms: tiles(x, sms) if x.geometry.groups > 1 else None)
    monkeypatch.setattr(compute, "here", lambda: ("NVIDIA H200", 2))
    monkeypatch.setattr(compute, "kernel_of", lambda c, cpu=False: found.append(c.name) or given(c, cpu))
    return found


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_forward_and_gradient(name: str, launched: list[str]) -> None:
    of_x, of_f, h, dtype, kinds = CASES[name]
    rng = np.random.default_rng(3)
    x, f = small(rng, *of_x, dtype=dtype), small(rng, *of_f, dtype=dtype)
    want = forward(x, f, h)
    y = small(rng, *want.shape, dtype=dtype)
    how_ = {**h.arguments, **CHECKS, "math": "tf32" if dtype is np.float32 else "default"}
    function = getattr(op, f"conv{len(of_x) - 2}d"), getattr(op, f"conv{len(of_x) - 2}d_weight")
    assert (function[0](x, f, **how_) == want).all()
    assert (function[1](x, f.shape, y, **how_) == gradients(x, f, y, h)[1]).all()
    taps = "x".join(map(str, (*of_f[1:-2], 1)))
    assert [n.split("-")[0][0] for n in launched if f"-{taps}-" in n + "-"] == list(kinds)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("of_x", "of_f", "h", "kernels"),
    [
        ((1, 5, 6, 13), (3, 2, 3, 13), How((1, 0), (0, 1), (2, 1), (1, 1), 1, True), 2),
        ((2, 6, 7, 24), (8, 3, 4, 24), How((1, 2), (2, 1), (1, 1), (1, 1), 1), 2),
        ((1, 9, 11, 16), (5, 2, 3, 16), How((1, 0), (0, 3), (2, 3), (1, 2), 1, True), 2),
        ((1, 9, 11, 16), (5, 1, 3, 16), How((0, 0), (0, 3), (1, 3), (1, 2), 1), 0),
        ((2, 23, 24), (9, 3, 24), how(1, 2, rank=1), 0),
        ((1, 5, 4, 6, 8), (4, 2, 2, 3, 8), how(1, 2, rank=3), 2),
    ],
)
def test_gradient_of_few_filters(
    of_x: tuple[int, ...], of_f: tuple[int, ...], h: How, kernels: int, launched: list[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    """The gradient of an image reads the output's gradient under all taps of a filter row as channels of a pixel."""
    from cute_dialect.op.conv import channel_padding, dispatch

    channel_padding.narrow.cache_clear()
    monkeypatch.setattr(dispatch, "gradient_as_fprop", lambda *_: None)
    monkeypatch.setattr(channel_padding, "_is_faster_folded", lambda *_: True)
    rng = np.random.default_rng(of_x[-1])
    x, f = small(rng, *of_x), small(rng, *of_f)
    y, c = small(rng, *forward(x, f, h).shape), small(rng, *of_x)
    want, function = gradients(x, f, y, h)[0], getattr(op, f"conv{len(of_x) - 2}d_input")
    out = np.full(want.shape, np.nan, np.float16)
    assert (function(x.shape, f, y, **h.arguments, **CHECKS, out=out) == want).all()
    assert (function(x.shape, f, y, **h.arguments, **CHECKS, c=c, alpha=2.0) == 2 * want + c).all()
    channel_padding.narrow.cache_clear()
    assert len(launched) == kernels and all(name.startswith("dgrad-") and "x1-" in name for name in launched)


@pytest.mark.slow
@pytest.mark.sample("16 filters, uneven, dilated, backwards")
@pytest.mark.parametrize(
    ("of_x", "of_f", "h", "dtype", "name"),
    [
        pytest.param(
            (1, 7, 9, 24), (16, 2, 3, 24), How((1, 0), (0, 3), (1, 1), (1, 2), 1, True), np.float16,
            "fprop-f16-f16-2x3-p0x4to1x1-d1x2-", id="16 filters, uneven, dilated, backwards",
        ),
        pytest.param((2, 5, 6, 40), (32, 3, 3, 40), how(), np.float16, "fprop-f16-f16-3x3-p1x1-f-", id="32 filters"),
        pytest.param((2, 23, 24), (12, 3, 24), how(1, rank=1), np.float16, "fprop-f16-f16-3-p1-f-", id="12 filters"),
        pytest.param((1, 5, 6, 16), (8, 2, 3, 16), how(), np.float32, "fprop-tf32-f32-2x3-p0x1-f-", id="tf32"),
        pytest.param((1, 5, 6, 16), (16, 2, 3, 16), how(2), np.float16, "dgrad-", id="wide padding"),
        pytest.param((1, 5, 6, 16), (16, 3, 3, 16), how(1, 2), np.float16, "dgrad-", id="stride"),
    ],
)  # fmt: skip
def test_gradient_as_fprop(
    of_x: tuple[int, ...], of_f: tuple[int, ...], h: How, dtype: Any, name: str, launched: list[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    """The gradient of an image is an fprop of the output's gradient, with narrower loads and a transposed filter."""
    from cute_dialect.op.conv import dispatch, gemm_time

    decide = gemm_time.gradient_as_fprop.__wrapped__
    monkeypatch.setattr(dispatch, "gradient_as_fprop", decide)
    monkeypatch.setattr(dispatch, "ROWS", [r for r in dispatch.ROWS if r.__name__ != "_folded"])
    monkeypatch.setattr(gemm_time, "_microseconds", lambda asked, *_: 9.0 * (asked.geometry.kind == "dgrad"))
    rng = np.random.default_rng(of_x[-1])
    x, f = small(rng, *of_x, dtype=dtype), small(rng, *of_f, dtype=dtype)
    y, c = small(rng, *forward(x, f, h).shape, dtype=dtype), small(rng, *of_x, dtype=dtype)
    want, function = gradients(x, f, y, h)[0], getattr(op, f"conv{len(of_x) - 2}d_input")
    how_ = {**h.arguments, **CHECKS, "math": "tf32" if dtype is np.float32 else "default"}
    out = np.full(want.shape, np.nan, dtype)
    assert (function(x.shape, f, y, **how_, out=out) == want).all()
    assert (function(x.shape, f, y, **how_, c=c, alpha=2.0) == 2 * want + c).all()
    assert len(launched) == 2 and all(n.startswith(name) for n in launched)


@pytest.mark.parametrize(
    ("channels", "dtype", "width"),
    [
        (21, np.float16, "w32"),
        pytest.param(24, np.float16, "w32", marks=pytest.mark.slow),
        pytest.param(40, np.float16, "", marks=pytest.mark.slow),
        pytest.param(19, np.float32, "", marks=pytest.mark.slow),
    ],
)
def test_channels_of_whole_loads(
    channels: int, dtype: Any, width: str, launched: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Image and filter get as many channels as a load has, with zeros, so that other pixels' values do not count."""
    from cute_dialect.op.conv import choice

    monkeypatch.setattr(choice, "_LAUNCH", 0.0)
    monkeypatch.setattr(choice, "_SPEED", 1.0)
    choice._predicted.cache_clear()
    rng = np.random.default_rng(channels)
    x, f = small(rng, 1, 5, 6, channels, dtype=dtype), small(rng, 16, 2, 3, channels, dtype=dtype)
    x[0, 4, 5, channels - 1] = np.nan
    want = forward(x, f, how())
    got = op.conv2d(x, f, padding=1, math="tf32" if dtype is np.float32 else "default", **CHECKS)
    choice._predicted.cache_clear()
    finite = np.isfinite(want)
    assert (got[finite] == want[finite]).all() and np.isnan(got[~finite]).all() and not finite.all()
    assert len(launched) == 1 and (width in launched[0].split("-") or not width)


@pytest.mark.slow
def test_epilogues(launched: list[str]) -> None:
    """Bias, activation and ``c``, filter gradients with an epilogue, and channels-first tensors."""
    rng, h = np.random.default_rng(4), how(1, 2)
    x, f = small(rng, 1, 7, 6, 6), small(rng, 8, 3, 3, 6)
    sums, bias = forward(x, f, h), np.arange(8, dtype=np.float32) - 4
    y, c, d = small(rng, *sums.shape), small(rng, *sums.shape), small(rng, *f.shape)
    got = op.conv2d(x, f, bias, **h.arguments, c=c, activation="relu", **CHECKS)
    assert (got == np.maximum(sums + bias + c, 0)).all()
    df = gradients(x, f, y, h)[1]
    assert (op.conv2d_weight(x, f.shape, y, **h.arguments, alpha=2.0, **CHECKS) == 2 * df).all()
    assert (op.conv2d_weight(x, f.shape, y, **h.arguments, c=d, beta=2.0, **CHECKS) == df + 2 * d).all()

    def twice(accum: Any) -> Any:
        D = accum
        double = 2 * accum
        return D, double

    one, double = op.conv2d_weight(x, f.shape, y, **h.arguments, epilogue=twice, **CHECKS)
    assert (one == df).all() and (double == 2 * df).all()
    assert [name.split("-")[0] for name in launched] == ["fprop", "wgrad", "wgrad", "wgrad"]
    torch = pytest.importorskip("torch")
    given = [torch.from_numpy(np.ascontiguousarray(t.transpose(0, 3, 1, 2))) for t in (x, f)]
    got = op.conv2d(*given, stride=2, padding=1, **CHECKS)
    assert (got.permute(0, 2, 3, 1).numpy() == sums).all()


def test_explained() -> None:
    """``explain`` reports the kernel of the reduced convolution, and the columns that are written first."""
    few = op.explain(op.conv2d_input, (44, 18, 18, 840), (8, 7, 7, 840), (44, 9, 9, 8), stride=2, padding=3)
    assert few.kernel.startswith("dgrad-f16-f16-7x1-p3x0-s2x1-") and "folded into 56 channels" in few.why
    assert few.copies == (("columns", 44 * 9 * 18 * 56 * 2),)
    found = op.explain(op.conv2d, (32, 224, 224, 3), (64, 7, 7, 3), stride=2, padding=3)
    assert found.kernel.startswith("fprop-f16-f16-7x1-p3x0-s2x1-") and found.why.startswith(
        "the columns of the filter are folded"
    )
    assert found.copies == (("columns", 32 * 224 * 112 * 32 * 2),) and [k.name for k in found.kernels][1] == "unfold-16"
    wide = op.explain(op.conv2d, (32, 56, 56, 64), (64, 3, 3, 64), padding=1)
    assert "3x3" in wide.kernel and not wide.copies
    line = op.explain(op.conv1d, (2, 23, 2), (8, 9, 2))
    assert line.kernel == "columns, and a GEMM" and line.why.endswith("it has one row")
