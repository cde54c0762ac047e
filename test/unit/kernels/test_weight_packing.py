"""Packing of quantized weights on the interpreter, compared with the definition of the format, and unpacking."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from quantized_weights import Weights, awq, gptq, packed, weights

from cute_dialect.kernels.gemm.weight_packing import PackConfig, UnpackConfig, pack, unpack

CHECKS = ["race", "uninit", "oob"]


def sources(w: Weights, c: PackConfig) -> tuple[Any, Any, Any]:
    """Return the weights, scales (N, groups) and zero points in the layout of a configuration."""
    if c.layout == "rows":
        signed = c.source == "i8"
        zeros = None
        if c.zeros == "rows":
            assert w.zeros is not None
            zeros = (w.zeros - w.middle).astype(np.int8) if signed else w.zeros.astype(np.uint8)
        return w.signed if signed else w.q.astype(np.uint8), w.scales, zeros
    q, scales, zeros = gptq(w, c.offset) if c.layout == "gptq" else awq(w)
    return q, scales.T, zeros


def packed_by_kernel(w: Weights, c: PackConfig) -> Any:
    n, k = w.q.shape
    found = np.full((-(-n // 64), c.chunk.line(k)), 0x55555555, np.int32)
    pack(*sources(w, c), found, c, device="cpu", checks=CHECKS)
    return found


CONFIGS = [
    PackConfig(),
    PackConfig(zeros="rows", group=32, scale="f32"),
    PackConfig(source="ui8", zeros="rows", group=64, scale="bf16"),
    PackConfig(source="ui8", group=0),
    PackConfig("i8", 0, "f32", zeros="rows"),
    PackConfig("i8", 64, "bf16", source="ui8"),
    PackConfig(layout="gptq", source="ui8", zeros="words", offset=1),
    PackConfig("i8", 32, "f16", "gptq", "ui8", "words"),
    PackConfig(layout="gptq", source="ui8"),
    PackConfig(layout="awq", source="ui8", zeros="words", group=64),
]


@pytest.mark.end_to_end
@pytest.mark.parametrize("c", CONFIGS, ids=lambda c: c.name)
def test_words(c: PackConfig) -> None:
    w = weights(64, 128, c.bits, c.group, c.scale, zeros=bool(c.zeros))
    if c.offset:
        w.zeros[w.zeros == 0] = 1  # stored as zero points less 1
    np.testing.assert_array_equal(packed_by_kernel(w, c), packed(w, c.scale))


@pytest.mark.end_to_end
@pytest.mark.sample(every=4)
@pytest.mark.parametrize("c", CONFIGS, ids=lambda c: c.name)
def test_unpacking_parts_of_chunks(c: PackConfig) -> None:
    w = weights(72, 200, c.bits, c.group, c.scale, zeros=bool(c.zeros))
    if c.offset:
        w.zeros[w.zeros == 0] = 1
    found = np.full(w.q.shape, np.nan, np.float32)
    unpack(packed_by_kernel(w, c), found, UnpackConfig(*c.chunk, output="f32"), device="cpu", checks=CHECKS)
    np.testing.assert_allclose(found, w.exact(), rtol=1e-6)


def test_equal_zero_points() -> None:
    w = weights(64, 128, 4, 128, "f16", zeros=False)
    w = w._replace(zeros=np.full(w.scales.shape, 3))
    found = packed_by_kernel(w, PackConfig(zeros="plain", offset=3))
    np.testing.assert_array_equal(found, packed(w, "f16"))
