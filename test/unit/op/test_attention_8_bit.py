"""Attention of 8-bit floats on the interpreter, compared with float64 and with the rounding of its probabilities."""

from __future__ import annotations

import math
import re
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
        ((1, 2, 1, 70, 130), 128, E4M3, "f32", {}, (None, None, 0)),
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


@pytest.mark.slow
def test_numbers_are_factors() -> None:
    """A number has the result of an array of it, for arrays of NumPy and of torch."""
    torch = pytest.importorskip("torch")
    x = normal(1, 2, 5, 32), normal(1, 1, 20, 32, seed=1), normal(1, 1, 20, 32, seed=2)
    numbers = dict(zip(FACTORS, (2, 0.75, np.float32(1.5))))
    arrays: dict[str, Any] = {name: np.full((1, 1), n, np.float32) for name, n in numbers.items()}
    found, logs = op.attention(*x, **numbers, lse=True, device="cpu")
    check(found, logs, x, op.explain(op.attention, *x, **numbers, lse=True).config.tile_n, factors=arrays)
    tensors = [torch.from_numpy(t.view(np.uint8)).view(torch.float8_e4m3fn) for t in x]

    def call(*x: Any) -> Any:
        return op.attention(*x, q_descale=2, k_descale=0.75, v_descale=1.5, device="cpu")

    again = torch.compile(call, fullgraph=True, backend="eager")(*tensors)
    assert np.array_equal(again.float().numpy(), found.astype(np.float32))


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
        ({"q_descale": one * 0}, op.UnsupportedError, "q_descale has an element 0.0; pass finite numbers above 0"),
        *[({"v_descale": x}, op.UnsupportedError, "v_descale is .*; pass a number above 0")
          for x in (0, -1.5, True, math.nan, math.inf, 1e-60, 1e60, 10**400, np.float32(0))],
        ({"q": half[0], "k": half[1], "v": half[1], "k_descale": 2.0}, op.UnsupportedError, "needs q, k and v of 8"),
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
        for head in (x for x in HEADS if x >= 64):
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
    assert found.kernel == "attention-f8E4M3FN-128-full-output_f16-descale_qv-128x160"
    wide = op.explain(op.attention, *shapes, element="f16")
    assert found.bound == wide.bound / 2 and "stages of K, V and its transpose" in str(found)
    assert "4096 keys, f8E4M3FN to f16" in str(found) and found.bytes == 16 * 8192 * 384 + 4 * 8192 * 256


@pytest.mark.slow
def test_registers_hardly_spill_and_wgmma_is_not_serialized() -> None:
    c = default_config("f8E4M3FN", 128, "right")
    module = compile(attention_text(c), filename=f"{c.name}.mlir")
    spilled = re.search(r" (\d+) bytes spilled", module.report)
    # Steps of 160 keys are the fastest although a consumer keeps two numbers in memory.
    assert spilled and int(spilled[1]) <= 8 and "C75" not in module.report, module.report


@pytest.mark.slow
def test_packed_sequences_ignore_other_values() -> None:
    """Keys and values of other sequences and past the last one are NaN."""
    lengths = [(70, 100), (0, 30), (130, 37), (5, 0)]
    begins = [np.cumsum([0, *x]).astype(np.int32) for x in zip(*lengths)]
    factors = descales(4, 1)
    config = default_config("f8E4M3FN", 128, "right")._replace(tile_n=64, sms=3)
    for chosen, (queries, keys) in enumerate(lengths):
        if not queries:
            continue
        mine, theirs = (slice(int(b[chosen]), int(b[chosen + 1])) for b in begins)
        q = normal(int(begins[0][-1]), 2, 128)
        k, v = (np.full((200, 1, 128), np.nan, E4M3) for _ in range(2))
        k[theirs], v[theirs] = (normal(keys, 1, 128, seed=i) for i in (1, 2))
        ends = dict(zip(("cu_seqlens_q", "cu_seqlens_k"), begins))
        out, logs = op.attention(
            q, k, v, **ends, **factors, causal="bottom_right", kernel=config, lse=True, device="cpu", checks=CHECKS,
            schedule="adversarial",
        )  # fmt: skip
        if keys == 0:
            assert (out[mine] == 0).all() and (logs[:, mine] == -np.inf).all()
            continue
        a, b, c = (x.swapaxes(0, 1)[None] for x in (q[mine], k[theirs], v[theirs]))
        seen = visible(queries, keys, None, 0, keys - queries)
        of_one = {name: x[chosen : chosen + 1] for name, x in factors.items()}
        check(out[mine].swapaxes(0, 1)[None], logs[None, :, mine], (a, b, c), 64, seen, of_one)


@pytest.mark.slow
@pytest.mark.parametrize(("page", "queries"), [(64, 1), (16, 5), (256, 70)])
def test_pages_and_lengths(page: int, queries: int) -> None:
    """Bytes past the last key of a page and in unused pages are NaN."""
    used, heads_k, size = np.array([150, 70], np.int32), 2, 64
    per = 256 // page
    k, v = (np.full((2, heads_k, 256, size), np.nan, E4M3) for _ in range(2))
    for b, n in enumerate(used):
        k[b, :, :n], v[b, :, :n] = (normal(heads_k, n, size, seed=i) for i in (1, 2))
    table = np.random.default_rng(3).permutation(2 * per).astype(np.int32).reshape(2, per)
    paged = [np.full((2 * per, heads_k, page, size), np.nan, E4M3) for _ in range(2)]
    for x, y in zip(paged, (k, v)):
        x[table.ravel()] = y.reshape(2, heads_k, per, page, size).swapaxes(1, 2).reshape(-1, heads_k, page, size)
    q, factors = normal(2, 4, queries, size), descales(2, heads_k)
    explained = op.explain(
        op.attention, q, *paged, causal="bottom_right", page_table=table, seqused_k=used, split_keys=1
    )
    out, logs = op.attention(
        q, *paged, **factors, causal="bottom_right", page_table=table, seqused_k=used, lse=True, device="cpu",
        checks=CHECKS, split_keys=1,
    )  # fmt: skip
    for b, n in enumerate(used):
        of_one = {name: x[b : b + 1] for name, x in factors.items()}
        operands = q[b : b + 1], k[b : b + 1, :, :n], v[b : b + 1, :, :n]
        seen = visible(queries, int(n), None, 0, int(n) - queries)
        check(out[b : b + 1], logs[b : b + 1], operands, explained.config.tile_n, seen, of_one)


@pytest.mark.slow
def test_emulated_exponentials() -> None:
    """Their relative error is 1e-4, and rows without a key are 0. Scores differ by up to 2^9."""
    q, k, v = normal(1, 1, 130, 128), normal(1, 1, 77, 128, seed=1), normal(1, 1, 77, 128, seed=2)
    q[..., 110:, :] = (q[..., 110:, :].astype(np.float32) * 16).astype(E4M3)
    c = default_config("f8E4M3FN", 128, "right")._replace(tile_n=64, emulated=5)
    out, logs = op.attention(
        q, k, v, causal="bottom_right", kernel=c, lse=True, dtype="f32", device="cpu", checks=CHECKS
    )
    exact, wanted, sizes = reference(q, k, v, visible(130, 77, None, 0, -53))
    assert (np.abs(out - exact) <= 2.0**-4 * sizes + 1e-6).all()
    assert (out[..., :53, :] == 0).all() and (logs[..., :53] == -np.inf).all()
    np.testing.assert_allclose(logs[..., 53:], wanted[..., 53:], rtol=0, atol=2e-4)


@pytest.mark.slow
@pytest.mark.parametrize("is_paged", [False, True])
def test_append(is_paged: bool) -> None:
    """Any bits are copied, those of NaN included, and other rows keep theirs."""
    bits = np.random.default_rng(0).integers(0, 256, (2, 2, 1, 3, 48), np.uint8)
    k, v = (x.view(E5M2).repeat(2, 1) for x in bits)
    cache = [np.zeros((3, 2, 16, 48), np.uint8).view(E5M2) for _ in range(2)]
    used, table = np.array([5], np.int32), np.array([[2, 0]], np.int32)
    given = {"page_table": table} if is_paged else {}
    rows = [x if is_paged else x[:1] for x in cache]
    op.append_kv(*rows, k[:1], v[:1], used, **given, device="cpu", checks=CHECKS)
    for x, new in zip(cache, (k, v)):
        wanted = np.zeros((3, 2, 16, 48), np.uint8)
        wanted[2 if is_paged else 0, :, 5:8] = new[0].view(np.uint8)
        assert np.array_equal(x.view(np.uint8), wanted)
    angles = np.ones((9, 8), np.float32)
    with pytest.raises(op.UnsupportedError, match="cos needs k of bf16 or f16, got f8E5M2; rotate k before rounding"):
        op.append_kv(*rows, k[:1], v[:1], used, cos=angles, sin=angles, device="cpu")


@pytest.mark.slow
@pytest.mark.parametrize("schedule", ["round-robin", "adversarial", "reverse", "random"])
def test_rings_wrap(schedule: str) -> None:
    """One block computes several tiles in many steps, each with functions of scores."""
    c = default_config("f8E4M3FN", 64, "both")._replace(tile_m=128, tile_n=32, q_stages=1, lse=True, sms=1)
    q, k, v = normal(1, 2, 130, 64), normal(1, 1, 190, 64, seed=1), normal(1, 1, 190, 64, seed=2)
    factors, sinks = descales(1, 1), np.array([0.5, -1.0], np.float32)
    out = op.attention(
        q, k, v, **factors, window=(70, 5), softcap=4.0, sinks=sinks, kernel=c, device="cpu", checks=CHECKS,
        schedule=schedule, seed=3,
    )  # fmt: skip
    plan = op.Attention(element="e4m3", head_size=64, window=(70, 5), softcap=4.0)
    exact = plan.reference(q, k, v, sinks=sinks, descales=tuple(factors.values()))
    error = out.astype(np.float64) - exact
    assert (error**2).sum() <= (0.04**2) * (exact**2).sum()


@pytest.mark.end_to_end
@pytest.mark.slow
def test_a_plan() -> None:
    plan = op.Attention(element="e4m3", head_size=64, dtype="f16", causal=True, lse=True)
    assert op.Attention.of_settings(plan.settings()).settings() == plan.settings()
    q, k = normal(1, 2, 9, 64), normal(1, 1, 20, 64)
    factors = descales(1, 1)
    done = plan.run(q, k, k, device="cpu", **factors)
    assert done.out.dtype == np.float16 and plan.explain(q, k, **factors).config.descale == "qkv"
    exact, logs = plan.reference(q, k, k, descales=tuple(factors.values()))
    assert np.abs(done.out - exact).max() < 0.1
    np.testing.assert_allclose(done.lse, logs, rtol=0, atol=2e-5)


@pytest.mark.slow
def test_torch() -> None:
    """FlashAttention's arguments, torch.compile, gradients and factors of one number."""
    torch = pytest.importorskip("torch")
    from cute_dialect import flash_attn

    kind, make = torch.float8_e4m3fn, torch.Generator().manual_seed(0)
    q, k, v = (torch.randn(2, n, h, 64, generator=make).to(kind) for n, h in ((9, 4), (20, 2), (20, 2)))
    factors = dict(zip(FACTORS, (torch.rand(2, 2, generator=make), torch.tensor(0.7), torch.tensor([1.3]))))
    found = flash_attn.flash_attn_func(q, k, v, causal=True, **factors)
    same = op.attention(q, k, v, causal="bottom_right", layout="bshd", device="cpu", **factors)
    assert found.dtype == torch.bfloat16 and torch.equal(found, same)
    plan = op.Attention(element="e4m3", head_size=64, causal="bottom_right", layout="bshd")
    exact = torch.from_numpy(plan.reference(*(x.float() for x in (q, k, v)), descales=tuple(factors.values())))
    assert (found.double() - exact).norm() < 0.04 * exact.norm()

    def call(*tensors: Any) -> Any:
        return op.attention(*tensors, causal="bottom_right", layout="bshd", device="cpu", dtype="f16", **factors)

    compiled = torch.compile(call, fullgraph=True, backend="aot_eager")(q, k, v)
    assert compiled.dtype == torch.float16 and (compiled.double() - exact).norm() < 0.04 * exact.norm()
    with pytest.raises(op.UnsupportedError, match="q has dtype f8E4M3FN, which has no gradients; call it under"):
        op.attention(q.detach().requires_grad_(), k, v, layout="bshd", device="cpu")
    with pytest.raises(op.UnsupportedError, match=r"k_descale has no gradient; pass k_descale\.detach"):
        op.attention(q, k, v, k_descale=torch.ones(1, requires_grad=True), layout="bshd", device="cpu")
