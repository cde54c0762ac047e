"""Attention of 8-bit floats on the interpreter, compared with float64 and with the rounding of its probabilities."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from cute_dialect import op
from cute_dialect.kernels.attention.config import (
    DESCALES,
    HEADS,
    MASKS,
    AttentionConfig,
    config_named,
    default_config,
)
from cute_dialect.kernels.attention.forward import attention_text, registers_of
from cute_dialect.kernels.attention.softmax import BYTE_EXPONENT, BYTE_SLACK
from cute_dialect.pipelines import compile

CHECKS = ("race", "uninit", "sync", "oob")
E4M3, E5M2 = ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2
FACTORS = ("q_descale", "k_descale", "v_descale")


def normal(*shape: int, dtype: Any = E4M3, seed: int = 0) -> Any:
    return np.random.default_rng([seed, *shape]).standard_normal(shape).astype(dtype)


def descales(batch: int, heads: int, seed: int = 0) -> dict[str, Any]:
    found = np.random.default_rng(seed).uniform(0.5, 1.5, (3, batch, heads)).astype(np.float32)
    return dict(zip(FACTORS, found))


def reference(
    q: Any, k: Any, v: Any, seen: Any = None, step: int = 0, factors: dict[str, Any] | None = None
) -> tuple[Any, Any, Any]:
    """Return the result and ``lse`` for (B, H, S, D), and the mean magnitude of the values of a row.

    With ``step``, the probabilities of each step of keys are multiplied by a power of two relative to the running
    maximum and rounded to e4m3, from the last step to the first.
    """
    share, batch = q.shape[1] // k.shape[1], q.shape[0]
    of: Any = [
        np.repeat(np.broadcast_to((factors or {}).get(name, 1.0), (batch, k.shape[1])), share, 1)[..., None, None]
        for name in FACTORS
    ]
    a, b, c = q.astype(np.float64), *(np.repeat(x.astype(np.float64), share, 1) for x in (k, v))
    scores = a @ b.swapaxes(2, 3) * of[0] * of[1] / np.sqrt(q.shape[-1]) * np.log2(np.e)
    if seen is not None:
        scores = np.where(seen, scores, -np.inf)
    keys = k.shape[2]
    most = np.full((*scores.shape[:3], 1), -np.inf)
    total, sums, sizes = np.zeros_like(most), np.zeros((*scores.shape[:3], v.shape[-1])), 0.0
    for first in reversed(range(0, keys, step or keys)):
        here = scores[..., first : first + (step or keys)]
        found, before = np.maximum(most, here.max(-1, keepdims=True)), most
        with np.errstate(invalid="ignore"):
            most = np.where((found - before > BYTE_SLACK) | (before == -np.inf), found, before) if step else found
        finite = np.where(most == -np.inf, 0, most)
        powers = np.exp2(here - finite + BYTE_EXPONENT)
        by = np.exp2(before - finite)
        total = total * by + powers.sum(-1, keepdims=True)
        powers = powers.astype(np.float32).astype(E4M3).astype(np.float64) if step else powers
        values = c[..., first : first + (step or keys), :]
        sums, sizes = sums * by + powers @ values, sizes * by + powers @ np.abs(values)
    safe = np.where(total > 0, total, 1)
    with np.errstate(divide="ignore"):
        logs = (most - BYTE_EXPONENT + np.log2(total)) * np.log(2)
    return sums / safe * of[2], np.where(total > 0, logs, -np.inf)[..., 0], sizes / safe * of[2]


def check(result: Any, logs: Any, operands: Any, step: int, seen: Any = None, factors: Any = None) -> None:
    """Compare with the rounded probabilities, and with exact ones.

    The first tolerance allows for a few probabilities that are rounded the other way, the second for all of them.
    ``step`` is 0 if slices of the keys have running maxima of their own.
    """
    unit = {"float32": 0.0, "float16": 2.0**-11, "bfloat16": 2.0**-8}[result.dtype.name]
    found = result.astype(np.float64)
    want, want_logs, sizes = reference(*operands, seen, step, factors)
    if step:
        assert (np.abs(found - want) <= unit * np.abs(want) + 2.0**-7 * sizes + 1e-6).all()
    exact, _, sizes = reference(*operands, seen, 0, factors)
    assert (np.abs(found - exact) <= unit * np.abs(exact) + 2.0**-4 * sizes + 1e-6).all()
    assert ((found - exact) ** 2).sum() <= (0.04**2) * (exact**2).sum()
    np.testing.assert_allclose(logs, want_logs, rtol=0, atol=2e-5)


def visible(queries: int, keys: int, left: int | None, right: int | None, opposite: int) -> Any:
    own, at = np.arange(queries)[:, None] + opposite, np.arange(keys)[None]
    seen = np.ones((queries, keys), bool)
    if left is not None:
        seen &= at >= own - left
    if right is not None:
        seen &= at <= own + right
    return seen


@pytest.mark.end_to_end  # A kernel of attention is compiled and run.
@pytest.mark.sample("shape0-128-float8_e4m3fn-f32-given0-bounds0")
@pytest.mark.parametrize(
    ("shape", "size", "kind", "dtype", "given", "bounds"),
    [
        # (batch, heads, key heads, queries, keys), then the window and the key aligned with the first query
        ((2, 2, 1, 70, 130), 128, E4M3, "f32", {}, (None, None, 0)),
        ((1, 4, 2, 139, 160), 112, E4M3, "bf16", {"causal": "bottom_right"}, (None, 0, 21)),
        ((1, 2, 1, 200, 170), 64, E4M3, "f16", {"window": (40, 5)}, (40, 5, 0)),
        ((1, 1, 1, 130, 300), 256, E4M3, "bf16", {"causal": True}, (None, 0, 0)),
        ((1, 2, 1, 70, 190), 96, E5M2, "f32", {"window": (90, None)}, (90, None, 0)),
        ((1, 2, 1, 70, 100), 192, E4M3, "f16", {}, (None, None, 0)),
        ((2, 4, 2, 1, 300), 128, E4M3, "f32", {"causal": "bottom_right", "split_keys": 3}, (None, None, 0)),
        ((1, 8, 2, 3, 150), 64, E5M2, "bf16", {"causal": "bottom_right"}, (None, 0, 147)),
    ],
)
def test_any_lengths(shape: Any, size: int, kind: Any, dtype: str, given: Any, bounds: Any) -> None:
    batch, heads, heads_k, queries, keys = shape
    q = normal(batch, heads, queries, size, dtype=kind)
    k, v = (normal(batch, heads_k, keys, size, dtype=kind, seed=i) for i in (1, 2))
    factors = descales(batch, heads_k, size)
    explained = op.explain(op.attention, q, k, v, **given, **factors, dtype=dtype, lse=True)
    run: dict[str, Any] = {"checks": CHECKS, "schedule": "random", "seed": 1, "device": "cpu"}
    result, logs = op.attention(q, k, v, **given, **factors, dtype=dtype, lse=True, **run)
    step = 0 if explained.config.split else explained.config.tile_n
    check(result, logs, (q, k, v), step, visible(queries, keys, *bounds), factors)


def test_errors() -> None:
    q, k = normal(1, 4, 8, 64), normal(1, 2, 16, 64)
    half = [x.astype(np.float16) for x in (q, k)]
    one = np.ones((1, 2), np.float32)
    for given, error, words in (
        ({"q": half[0], "k": half[1], "v": half[1], "k_descale": one}, op.UnsupportedError,
         "k_descale needs q, k and v of 8-bit floats, but q has dtype f16; omit it"),
        ({"q": half[0], "k": half[1], "v": half[1], "dtype": "f32"}, op.DtypeError, "dtype is f32, but q has dtype"),
        ({"q_descale": one[:, :1].repeat(3, 1)}, op.ShapeError,
         r"q_descale has shape \(1, 3\); pass one number, or an array of shape \(1, 2\), sequences and heads of k"),
        ({"v_descale": one.astype(np.float64)}, op.DtypeError, "v_descale has dtype f64; pass an array of f32"),
        ({"q_descale": -one}, op.UnsupportedError, "q_descale has an element -1.0; pass finite numbers above 0"),
        ({"k_descale": one * np.inf}, op.UnsupportedError, "k_descale has an element inf"),
        ({"dtype": "f8E4M3FN"}, op.DtypeError, "the result has dtype f8E4M3FN; use one of bf16, f16, f32"),
        ({"out": np.zeros((1, 4, 8, 64), np.float16), "dtype": "f32"}, op.DtypeError, "out has dtype f16; it must"),
        ({"q": q[..., :24], "k": k[..., :24], "v": k[..., :24]}, op.UnsupportedError,
         "head size 24 is not supported for f8E4M3FN; use a multiple of 16 up to 256"),
        ({"k": half[1], "v": half[1]}, op.DtypeError, "k has dtype f16; it must have f8E4M3FN, like q"),
        ({"k": k.astype(E5M2)}, op.DtypeError, "k has dtype f8E5M2; it must have f8E4M3FN, like q"),
        ({"sinks": np.zeros(4, np.float16)}, op.DtypeError, "sinks has dtype f16; pass an array of f32 or bf16"),
        ({"k": normal(5, 2, 3, 64), "v": normal(5, 2, 3, 64), "page_table": np.zeros((1, 2), np.int32)},
         op.UnsupportedError, "page=3 with tile_n=.* is not supported for 8-bit elements"),
        ({"k_scale": one}, op.ArgumentError, "use k_descale"),
        ({"out_dtype": "bf16"}, op.ArgumentError, "use dtype"),
    ):  # fmt: skip
        arguments: dict[str, Any] = {"q": q, "k": k, "v": k, "device": "cpu"} | given
        with pytest.raises(error, match=words):
            op.attention(**arguments)
    for c, words in (
        (AttentionConfig("f8E4M3FN"), "output is ''; use one of bf16, f16, f32 for 8-bit elements"),
        (AttentionConfig(output="f32"), "output is 'f32'"),
        (default_config("f8E4M3FN")._replace(descale="vq"), "descale is 'vq'; use letters of 'qkv'"),
        (AttentionConfig(descale="q"), "descale is 'q'"),
        (default_config("f8E4M3FN")._replace(tile_n=48), "it must be a multiple of 32 up to 256"),
        (default_config("i8"), "element is 'i8'; use one of bf16, f16, f8E4M3FN, f8E5M2"),
    ):
        with pytest.raises(ValueError, match=words):
            c.check()


def test_every_configuration_has_a_kernel() -> None:
    for element in ("f8E4M3FN", "f8E5M2"):
        for head in HEADS:
            for mask in MASKS:
                for few in (False, True):
                    c = default_config(element, head, mask, few=few)
                    c = c._replace(packed=True, lse=True, descale=DESCALES[-1], output="f16")
                    c.check()
                    assert config_named(c.name) == c
                    producer, consumer = registers_of(c)
                    groups = 1 + c.consumers
                    assert producer + c.consumers * consumer <= 65536 // (128 * groups) // 8 * 8 * groups


def test_explanation() -> None:
    shapes = (2, 16, 4096, 128), (2, 4, 4096, 128)
    found = op.explain(op.attention, *shapes, element="f8E4M3FN", dtype="f16", q_descale=(1,), v_descale=(2, 4))
    assert found.kernel == "attention-f8E4M3FN-128-full-output_f16-descale_qv-128x192"
    wide = op.explain(op.attention, *shapes, element="f16")
    assert found.bound == wide.bound / 2 and "stages of K, V and its transpose" in str(found)
    assert "4096 keys, f8E4M3FN to f16" in str(found) and found.bytes == 16 * 8192 * 384 + 4 * 8192 * 256


@pytest.mark.slow
def test_registers_do_not_spill_and_wgmma_is_not_serialized() -> None:
    c = default_config("f8E4M3FN", 128, "right")
    module = compile(attention_text(c), filename=f"{c.name}.mlir")
    assert " 0 bytes spilled, 0 bytes stack" in module.report and "C75" not in module.report, module.report
