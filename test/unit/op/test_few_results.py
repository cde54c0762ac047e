"""Convolutions of one tap with few results per pixel, on the interpreter, compared with exact integers."""

# pyright: basic

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from conv_reference import forward, gradients, how, small

from cute_dialect import op
from cute_dialect.kernels.conv.few_results import FewResultsConfig, few_results_text
from cute_dialect.op.conv import few_channels
from cute_dialect.pipelines import compile

CHECKS: Any = {"device": "cpu", "checks": ("race", "uninit", "oob", "sync")}


@pytest.fixture
def kernels(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """Record the names of the launched kernels, and prefer dot products to other kernels."""
    found, given = list[str](), few_channels.kernel_of
    few_channels.few_channels.cache_clear()
    monkeypatch.setattr(few_channels, "gemm_microseconds", lambda *_, **__: 1e9)
    monkeypatch.setattr(few_channels, "microseconds_of", lambda *_: 1e9)
    monkeypatch.setattr(few_channels, "kernel_of", lambda c, cpu: found.append(c.name) or given(c, cpu))
    yield found
    few_channels.few_channels.cache_clear()


@pytest.mark.parametrize(
    ("groups", "depth", "width", "pixels"),
    [
        (2, 79, 1, 1),
        pytest.param(1, 65, 3, 2, marks=pytest.mark.slow),
        pytest.param(4, 128, 2, 4, marks=pytest.mark.slow),
        pytest.param(1, 200, 8, 4, marks=pytest.mark.slow),
        pytest.param(3, 101, 5, 2, marks=pytest.mark.slow),
        pytest.param(2, 479, 1, 8, marks=pytest.mark.slow),
    ],
)
def test_forward_and_gradient(
    groups: int, depth: int, width: int, pixels: int, kernels: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A NaN reaches only the results of its pixel and group, also with a vector that lies in two groups."""
    given = few_channels.few_results_config
    monkeypatch.setattr(
        few_channels, "few_results_config", lambda *args: (c := given(*args)) and c._replace(pixels=pixels)
    )
    rng, h = np.random.default_rng(depth), how(0, groups=groups)
    x, f = small(rng, 2, 3, 3, depth * groups), small(rng, width * groups, 1, 1, depth)
    x[1, 2, 2, depth - 1] = np.nan
    want = forward(x, f, h)
    out = np.full(want.shape, -7, np.float16)
    op.conv2d(x, f, **h.arguments, **CHECKS, out=out)
    finite = np.isfinite(want)
    assert (out[finite] == want[finite]).all() and np.isnan(out[~finite]).all() and not finite.all()
    x, f = small(rng, 2, 3, 3, width * groups), small(rng, depth * groups, 1, 1, width)
    y = small(rng, *forward(x, f, h).shape)
    out = np.full(x.shape, np.nan, np.float16)
    assert (op.conv2d_input(x.shape, f, y, **h.arguments, **CHECKS, out=out) == gradients(x, f, y, h)[0]).all()
    assert [name.split("-")[2] for name in kernels] == ["fprop", "dgrad"]


@pytest.mark.slow
def test_strided_arrays_and_an_epilogue(kernels: list[str]) -> None:
    """Rows with gaps are read by narrower loads, and the array library computes the epilogue of an f32 accumulator."""
    rng, h = np.random.default_rng(5), how(0, groups=2)
    x, f = small(rng, 2, 3, 5, 79 * 2 + 3)[..., 1:-2], small(rng, 4, 79, 1, 1).transpose(0, 2, 3, 1)
    want, bias = forward(x, f, h), np.arange(4, dtype=np.float32) - 1
    whole = np.full((2, 3, 5, 7), np.nan, np.float16)
    op.conv2d(x, f, bias, **h.arguments, activation="relu", out=whole[..., 2:6], **CHECKS)
    assert (whole[..., 2:6] == np.maximum(want + bias, 0)).all() and np.isnan(whole[..., [0, 1, 6]]).all()
    assert kernels == ["few-results-fprop-f16-f32-g2c79k2-v1p1x2"]


def test_choice() -> None:
    """Two groups of 479 filters in the gradient of an image; more results use MMAs."""
    found = op.explain(op.conv2d_input, (106, 51, 51, 2), (958, 1, 1, 1), (106, 51, 51, 958), groups=2)
    assert found.kernel == "few-results-dgrad-f16-f16-g2c479k1-v2p4x2" and found.why.startswith("a pixel has few")
    wide = op.explain(op.conv2d_input, (106, 51, 51, 18), (958, 1, 1, 9), (106, 51, 51, 958), groups=2)
    assert "few-results" not in wide.kernel
    many = op.explain(op.conv2d_input, (16, 512, 512, 2), (958, 1, 1, 1), (16, 512, 512, 958), groups=2)
    assert "few-results" not in many.kernel  # their elements are not addressed as one row of pixels


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"vector": 8}, "vectors of 8 elements do not divide 134 channels"),
        ({"pixels": 8}, "8 pixels of 6 results need more than 32 accumulators"),
        ({"depth": 2**15, "width": 1}, "the filters need 262144 bytes of shared memory"),
    ],
)
def test_errors(change: dict[str, int], message: str) -> None:
    config = FewResultsConfig("f16", "f16", 2, 67, 3, vector=2)
    config.check()
    with pytest.raises(ValueError, match=message):
        config._replace(**change).check()


@pytest.mark.slow
def test_filters_are_not_kept_in_registers() -> None:
    """The filters of all steps do not fit the registers of a thread."""
    text = few_results_text(FewResultsConfig("f16", "f16", 1, 818, 8, vector=2, pixels=1))
    assert "0 bytes spilled, 0 bytes stack" in compile(text).report
