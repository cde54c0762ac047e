"""The GEMM with packed weights on the interpreter, compared with float64, for weights packed by definition."""

from __future__ import annotations

import re
from itertools import product
from typing import Any

import numpy as np
import pytest
from quantized_weights import TYPES, packed, weights

from cute_dialect.kernels.gemm.mixed_input import MixedConfig, launch

CHECKS = ["race", "uninit", "oob", "sync"]
TIGHT = {"f16": 2.0**-11, "bf16": 2.0**-8, "f32": 1e-6}
"""Error of a result, relative to its magnitude."""


def check(c: MixedConfig, m: int, n: int, k: int, **run: Any) -> None:
    """Run the kernel on random operands. W is packed for a multiple of 64 x 128, of which N and K may be a part."""
    c.check()
    rng = np.random.default_rng([m, n, k])
    is_float, bits = c.weight == "f8E4M3FN", 4 if c.weight == "ui4" else 8
    size = -(-n // 64) * 64, -(-k // 128) * 128
    w = weights(*size, bits, c.group, c.scale, zeros=c.zeros, is_float=is_float)
    words = packed(w, c.scale)
    x, values = rng.standard_normal((m, k)).astype(TYPES[c.element]), w.exact()[:n, :k]
    if c.scaled:
        values = values.astype(np.float32).astype(TYPES[c.element]).astype(np.float64)
    exact = x.astype(np.float64) @ values.T
    d = np.full((m, n), np.nan, TYPES[c.output])
    more = []
    if c.bias:
        bias = rng.standard_normal(n).astype(TYPES[c.output])
        more, exact = [bias], exact + bias.astype(np.float64)
    launch(x, words, d, *more, config=c, device="cpu", checks=CHECKS, **run)
    scale = np.abs(x.astype(np.float64)) @ np.abs(values).T
    assert (np.abs(d.astype(np.float64) - exact) <= TIGHT[c.output] * np.abs(exact) + 1e-6 * scale).all()


SMALL = MixedConfig(rows=64, stages=2)


@pytest.mark.slow
@pytest.mark.end_to_end
@pytest.mark.sample("i8-0-True-bf16-f32")
@pytest.mark.parametrize(
    ("weight", "group", "zeros", "element", "scale"),
    list(product(("ui4", "i8"), (32, 64, 128, 0), (False, True), ("f16", "bf16"), ("f16", "bf16", "f32"))),
)
def test_formats(weight: str, group: int, zeros: bool, element: str, scale: str) -> None:
    check(
        SMALL._replace(weight=weight, group=group, zeros=zeros, element=element, scale=scale, output="f32"), 7, 64, 256
    )


@pytest.mark.slow
@pytest.mark.end_to_end
@pytest.mark.sample("ui4-32-True-bf16-bf16")
@pytest.mark.parametrize(
    ("weight", "group", "zeros", "element", "scale"),
    list(product(("ui4", "i8"), (32, 64, 128), (False, True), ("f16", "bf16"), ("f16", "bf16", "f32"))),
)
def test_scaled_weights(weight: str, group: int, zeros: bool, element: str, scale: str) -> None:
    """Weights that are scaled before the MMA equal unpacked weights, which are rounded once."""
    c = SMALL._replace(weight=weight, group=group, zeros=zeros, element=element, scale=scale, output="f32", scaled=True)
    check(c, 7, 64, 392)


@pytest.mark.slow
@pytest.mark.end_to_end
@pytest.mark.sample("32-True-f16-f16")
@pytest.mark.parametrize(
    ("group", "scaled", "element", "scale"),
    [x for x in product((32, 64, 128, 0), (False, True), ("f16", "bf16"), ("f16", "bf16", "f32")) if x[0] or not x[1]],
)
def test_floats(group: int, scaled: bool, element: str, scale: str) -> None:
    c = SMALL._replace(weight="f8E4M3FN", group=group, element=element, scale=scale, output="f32", scaled=scaled)
    check(c, 7, 64, 264)


@pytest.mark.end_to_end
@pytest.mark.sample("c2-3-64-640")
@pytest.mark.parametrize(
    ("c", "m", "n", "k"),
    [
        (SMALL._replace(columns=16, bias=True, output="bf16", element="bf16"), 17, 100, 384),
        (MixedConfig(stages=3, columns=16, zeros=True), 13, 130, 456),
        (SMALL._replace(parts=2, stages=3), 3, 64, 640),
        (SMALL._replace(parts=8, group=64), 5, 64, 1152),
        (MixedConfig(stages=2, rows=256, columns=32, parts=4), 40, 256, 1104),
        (MixedConfig(stages=2, columns=128, zeros=True, scaled=True), 131, 128, 256),
        (MixedConfig(stages=2, columns=160, scaled=True, group=32), 161, 180, 392),
        (MixedConfig(stages=2, columns=256, group=0, output="bf16", element="bf16"), 140, 192, 392),
        (SMALL._replace(columns=16, staged=True, bias=True), 13, 72, 264),
        (MixedConfig(stages=2, columns=64, staged=True, group=0, element="bf16", output="bf16"), 70, 200, 392),
        (MixedConfig(stages=2, columns=96, scaled=True, staged=True, bias=True), 131, 184, 392),
        (MixedConfig(stages=2, columns=96, scaled=True, parts=8), 90, 120, 1104),
        (MixedConfig(stages=2, columns=64, group=0, output="f32", hint=False), 65, 192, 256),
        (SMALL._replace(live=1), 1, 64, 392),
        (SMALL._replace(columns=48, live=40, parts=2, stages=3), 35, 64, 640),
    ],
)
def test_tiles(c: MixedConfig, m: int, n: int, k: int) -> None:
    check(c, m, n, k)


@pytest.mark.end_to_end
@pytest.mark.parametrize("schedule", ["adversarial", "reverse", "random"])
def test_schedules(schedule: str) -> None:
    check(SMALL._replace(parts=2), 5, 64, 640, schedule=schedule)


def test_wrong_configurations() -> None:
    for given, said in (
        ({"columns": 24}, "columns is 24; it must be one of 8, 16, 32, 48"),
        ({"group": 48}, "group is 48; it must be one of 32, 64, 128, 0"),
        ({"stages": 1}, "stages is 1; it must be at least 2"),
        ({"columns": 128}, "more than 64 columns need 128 rows, and scaled weights unless a row shares a scale"),
        ({"columns": 128, "scaled": True, "rows": 64}, "more than 64 columns need 128 rows, and scaled weights"),
        ({"group": 0, "scaled": True}, "a scale per row multiplies the result; scaled needs groups"),
        ({"weight": "f8E4M3FN", "zeros": True}, "weights of f8E4M3FN have no zero points"),
        ({"staged": True}, "staged needs results of 16 bits, 16 or more columns, and parts=1"),
        ({"live": 9}, "live is 9; it must be 0 to 8, the columns of a tile"),
        ({"rows": 64, "columns": 48, "parts": 4}, "parts is 4; it must divide 6, the pieces of 64 x 8"),
    ):
        with pytest.raises(ValueError, match=re.escape(said)):
            MixedConfig(**given).check()
