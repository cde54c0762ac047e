"""Hopper convolution kernels: exact integer results under every check, for every cluster and load configuration."""

# pyright: basic

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pytest
from conv_reference import How, forward, gradients, small

from cute_dialect.kernels.conv import conv_text
from cute_dialect.kernels.conv.config import DGRAD, FPROP, WGRAD, ConvConfig, Window
from cute_dialect.kernels.gemm.config import GemmConfig
from cute_dialect.pipelines import compile

CHECKS = ("race", "uninit", "sync", "oob")
BASE = GemmConfig(tile=(64, 64, 64), sms=2, cluster_m=1)
PLAIN = BASE._replace(deferred=False, serpentine=False)


class Case(NamedTuple):
    base: GemmConfig
    window: Window
    image: tuple[int, ...]
    filters: int
    width: int = 64
    kind: str = FPROP


CASES = {
    "deferred": Case(BASE, Window((3, 3), (1, 1), (1, 1)), (2, 5, 7, 72), 72),
    "uneven padding, stride, dilation; two blocks share the filter": Case(
        BASE._replace(cluster_m=2, sms=4), Window((3, 2), (1, 0), (0, 2), (2, 1), (1, 2)), (1, 9, 8, 64), 64
    ),
    "two blocks share the image; consumers take turns": Case(
        BASE._replace(cluster_n=2, deferred=False, schedule="pingpong", sms=4),
        Window((1, 1), (0, 0), (0, 0), (2, 2)), (3, 8, 8, 72), 136,
    ),
    "16 channels": Case(BASE, Window((3, 3), (1, 1), (1, 1), (2, 2)), (2, 7, 7, 16), 40, 16),
    "8 channels": Case(BASE, Window((3, 3), (1, 1), (1, 1)), (1, 7, 7, 8), 40, 8),
    "32 channels, backwards": Case(
        BASE, Window((3, 3), (1, 1), (1, 1))._replace(dilation=(1, 2)), (1, 7, 7, 32), 40, 32
    ),
    "one dimension": Case(BASE, Window((5,), (2,), (1,)), (3, 30, 64), 64),
    "three dimensions": Case(BASE, Window((2, 3, 1), (1, 0, 0), (0, 2, 0)), (1, 3, 4, 6, 64), 64),
    "gradient": Case(
        BASE._replace(major_b="n"), Window((3, 2), (1, 0), (0, 2), (), (1, 2)), (2, 5, 7, 72), 72, kind=DGRAD
    ),
    "gradient, stride": Case(
        PLAIN._replace(major_b="n", batch=True, cluster_m=2, sms=4),
        Window((3, 2), (1, 0), (0, 2), (2, 3), (1, 2)), (1, 8, 9, 136), 64, kind=DGRAD,
    ),
    "gradient, pixels that no tap reaches": Case(
        PLAIN._replace(major_b="n", batch=True), Window((1, 1), (0, 0), (0, 0), (2, 2)), (3, 4, 5, 64), 64, kind=DGRAD
    ),
    "filters, two blocks share the gradient": Case(
        PLAIN._replace(major_a="m", major_b="n", cluster_n=2, sms=4), Window((3, 2), (1, 0), (0, 2), (2, 1), (1, 2)),
        (1, 9, 8, 64), 136, kind=WGRAD,
    ),
    "filters, three dimensions": Case(
        BASE._replace(major_a="m", major_b="n", tile=(64, 128, 64)), Window((2, 1, 2), (1, 0, 0), (0, 0, 1)),
        (1, 2, 3, 5, 72), 64, kind=WGRAD,
    ),
}  # fmt: skip


@pytest.mark.end_to_end
@pytest.mark.sample("8 channels")
@pytest.mark.parametrize("name", CASES)
def test_convolution(name: str) -> None:
    case = CASES[name]
    w, rng = case.window, np.random.default_rng(len(name))
    if case.kind == DGRAD and w.stride:
        w = w._replace(left=tuple([n % u for n, u in zip(case.image[1:-1], w.strides)]))
    config = ConvConfig(case.base, w, case.kind, case.width)
    kernel = compile(conv_text(config), filename="conv.mlir", emit="base").kernel("launch")
    x = small(rng, *case.image)
    f = small(rng, case.filters, *w.taps, case.image[-1])
    h = How(w.before, w.after, w.strides, w.dilations)
    want = forward(x, f, h)
    if case.kind == DGRAD:
        image = small(rng, *want.shape)
        want = gradients(x, f, image, h)[0]
        other = f.reshape(case.filters, -1, case.image[-1]).transpose(2, 0, 1)
    elif case.kind == WGRAD:
        other = small(rng, *want.shape)
        image, want = x, gradients(x, f, other, h)[1]
        other = other.reshape(-1, case.filters).T
    else:
        image, other = x, f.reshape(case.filters, -1)
        other = other if config.flat else f.reshape(case.filters, -1, case.image[-1]).transpose(0, 2, 1)
    got = np.full(want.shape, np.nan, np.float16)
    taken = got.reshape(-1, want.shape[-1])
    if config.strided:
        taken = got.transpose()
    elif case.kind == WGRAD:
        taken = got.reshape(case.filters, -1, want.shape[-1]).transpose(0, 2, 1)
    kernel(image.transpose(), other, taken, device="cpu", checks=CHECKS)
    assert (got == want).all()


BAD = {
    "kind is 'backwards'; use one of fprop, dgrad, wgrad": {"kind": "backwards"},
    "width is 24 channels; a load must have 16, 32, 64 or 128 bytes": {"width": 24},
    "a tap is 300 pixels from the first one": {"window": Window((2,), (0,), (300,), (1,), (300,))},
    "lower corner": {"window": Window((3, 3), (200, 200), (200, 200))},
    "as element stride": {"window": Window((3, 3), (1, 1), (1, 1), (9, 9))},
}


@pytest.mark.parametrize("message", BAD)
def test_unsupported_configurations_are_rejected(message: str) -> None:
    config = ConvConfig(BASE, Window((3, 3), (1, 1), (1, 1)))._replace(**BAD[message])
    with pytest.raises(ValueError, match=message):
        config.check()


@pytest.mark.slow
def test_registers_do_not_spill() -> None:
    found = compile(conv_text(ConvConfig(GemmConfig(), Window((3, 3), (1, 1), (1, 1)))), filename="conv.mlir")
    assert "168 registers, 0 bytes spilled" in found.report
    assert ".im2col" in found.ptx and not found.remarks
