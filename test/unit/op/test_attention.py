"""Attention on the interpreter, compared with float64, with its checks, errors and torch operator."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from refused_calls import OnGpu

from cute_dialect import op
from cute_dialect.kernels.attention.config import HEADS, MASKS, AttentionConfig, config_named, default_config
from cute_dialect.kernels.attention.forward import attention_text, registers_of
from cute_dialect.op import kernel_prefetch
from cute_dialect.op.errors import OpError
from cute_dialect.op.execute.attention import check_call
from cute_dialect.op.problems.attention import Form
from cute_dialect.pipelines import compile
from cute_dialect.runtime.arrays import view_of

CHECKS = ("race", "uninit", "sync", "oob")
BF16 = ml_dtypes.bfloat16
NUMPY = {"f16": np.float16, "f32": np.float32}


def normal(*shape: int, dtype: Any = BF16, seed: int = 0) -> Any:
    return np.random.default_rng([seed, *shape]).standard_normal(shape).astype(dtype)


def numbers(n: int) -> Any:
    return np.arange(n)


def reference(
    q: Any, k: Any, v: Any, left: int | None = None, right: int | None = None, opposite: int = 0
) -> tuple[Any, Any]:
    """Return the result and the logsumexp for (B, H, S, D). Query 0 is aligned with key ``opposite``."""
    k, v = (np.repeat(x.astype(np.float64), q.shape[1] // x.shape[1], 1) for x in (k, v))
    scores = q.astype(np.float64) @ k.swapaxes(2, 3) / np.sqrt(q.shape[-1])
    own, at = numbers(q.shape[2])[:, None] + opposite, numbers(k.shape[2])[None]
    hidden = (own < -1) & (at < -1)
    if left is not None:
        hidden |= at < own - left
    if right is not None:
        hidden |= at > own + right
    scores = np.where(hidden, -np.inf, scores)
    most = scores.max(-1, keepdims=True, initial=-1e30)
    powers = np.exp(scores - most)
    total = powers.sum(-1, keepdims=True)
    with np.errstate(divide="ignore"):
        logs = np.where(total > 0, most + np.log(total), -np.inf)
    return np.where(total > 0, powers @ v / np.where(total > 0, total, 1), 0), logs[..., 0]


def check(result: Any, logs: Any, want: tuple[Any, Any]) -> None:
    """Compare with the reference. The tolerance allows for weights and results of 8 or 11 bits."""
    unit = 2.0**-7 if result.dtype == BF16 else 2.0**-10
    assert (np.abs(result.astype(np.float64) - want[0]) <= 0.75 * unit * np.abs(want[0]) + 0.25 * unit).all()
    np.testing.assert_allclose(logs, want[1], rtol=0, atol=1e-5)


@pytest.mark.end_to_end
@pytest.mark.sample("shape0-128-bfloat16-given0-bounds0")
@pytest.mark.parametrize(
    ("shape", "size", "dtype", "given", "bounds"),
    [
        # (batch, heads, key heads, queries, keys), then the window and the key aligned with the first query
        ((1, 2, 1, 70, 200), 128, BF16, {}, (None, None, 0)),
        ((1, 1, 1, 139, 160), 120, np.float16, {"causal": "bottom_right"}, (None, 0, 21)),
        ((1, 2, 1, 70, 190), 96, BF16, {"window": (90, None)}, (90, None, 0)),
        ((1, 1, 1, 139, 160), 136, np.float16, {"causal": "bottom_right"}, (None, 0, 21)),
    ],
)
def test_attention_of_any_lengths(shape: Any, size: int, dtype: Any, given: Any, bounds: Any) -> None:
    batch, heads, heads_k, queries, keys = shape
    q = normal(batch, heads, queries, size, dtype=dtype)
    k, v = (normal(batch, heads_k, keys, size, dtype=dtype, seed=i) for i in (1, 2))
    reports: list[Any] = []
    run: dict[str, Any] = {"checks": CHECKS, "report": reports.append, "stream": None, "schedule": "random", "seed": 1}
    named = op.explain(op.attention, q, k, v, **given, lse=True).kernels[0].name
    result, logs = op.attention(q, k, v, **given, lse=True, kernel=named, device="cpu", **run)
    assert len(reports) == 1 and reports[0].ops > 0
    left, right, opposite = bounds
    check(result, logs, reference(q, k, v, left, right, opposite))


def run(
    c: AttentionConfig, q: Any, k: Any, v: Any, numbers: tuple[int, int, int], begins: Any = (), **more: Any
) -> Any:
    """Run a kernel on (B, S, H, D) with poisoned results. ``numbers`` are the longest sequence and the window."""
    out, logs = np.full(q.shape, np.nan, q.dtype), np.full(q.shape[:3], np.nan, np.float32)
    kernel = compile(attention_text(c), emit="base", filename=f"{c.name}.mlir").kernel("launch")
    matrices = [x.transpose(1, 3, 2, 0) for x in (q, k, v, out)]
    longest, left, right = numbers
    scale = q.shape[-1] ** -0.5 * 1.4426950408889634
    kernel(
        *matrices, logs.transpose(1, 2, 0), *begins, longest, scale, left, right, device="cpu", checks=CHECKS, **more
    )
    return out, logs


@pytest.mark.slow
def test_checks_pass_with_wrapping_buffers() -> None:
    """One block processes several tiles in small steps, so every ring buffer wraps around."""
    c = default_config(mask="both")._replace(tile_n=32, lse=True, from_end=True, sms=1)
    q, k, v = normal(1, 130, 2, 96), normal(1, 190, 1, 96, seed=1), normal(1, 190, 1, 96, seed=2)
    out, logs = run(c, q, k, v, (130, 70, 5), schedule="adversarial", seed=3)
    a, b, c = (x.transpose(0, 2, 1, 3) for x in (q, k, v))
    want = reference(a, b, c, 70, 5, 60)
    check(out.transpose(0, 2, 1, 3), logs.transpose(0, 2, 1), want)


@pytest.mark.slow
@pytest.mark.parametrize("head", [96, 128, 192])
def test_packed_sequences_do_not_see_each_other(head: int) -> None:
    """Sequences of several lengths, including empty ones, ignore all memory past the end of their keys."""
    lengths = [(70, 100), (0, 30), (130, 37), (5, 0)]
    c = default_config(head=head)._replace(packed=True, tile_n=64, lse=True, sms=3)
    begins = [np.cumsum([0, *x]).astype(np.int32) for x in zip(*lengths)]
    q, k, v = (normal(1, int(begins[i > 0][-1]), 2 - (i > 0), head, seed=i) for i in range(3))
    for i, (queries, keys) in enumerate(lengths):
        mine, theirs = (slice(int(b[i]), int(b[i + 1])) for b in begins)
        for x, at, n in ((q, mine, queries), (k, theirs, keys), (v, theirs, keys)):
            x[0, at] = normal(n, *x.shape[2:], seed=i)
    v[0, 130:] = np.inf
    k[0, 130:] = np.nan
    out, logs = run(c, q, k, v, (130, 0, 0), begins)
    mine, theirs = slice(0, 70), slice(0, 100)
    want = reference(q[:, mine].swapaxes(1, 2), k[:, theirs].swapaxes(1, 2), v[:, theirs].swapaxes(1, 2))
    check(out[:, mine].swapaxes(1, 2), logs[:, mine].swapaxes(1, 2), want)
    assert (out[0, 200:] == 0).all() and (logs[0, 200:] == -np.inf).all()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("shape", "size", "given", "bounds"),
    [
        # One query of four heads that share keys, with a window over the last keys.
        ((2, 4, 1, 1, 150), 64, {"causal": "bottom_right", "window": (130, None), "layout": "bshd"}, (130, 0, 149)),
        ((1, 2, 1, 70, 420), 64, {"causal": "bottom_right", "split_keys": 3}, (None, 0, 350)),
        ((1, 1, 1, 70, 220), 192, {"split_keys": 2}, (None, None, 0)),
    ],
)
def test_split_kv_partials_are_combined(shape: Any, size: int, given: dict[str, Any], bounds: Any) -> None:
    batch, heads, heads_k, queries, keys = shape
    q = normal(batch, heads, queries, size)
    k, v = (normal(batch, heads_k, keys, size, seed=i) for i in (1, 2))
    reports: list[Any] = []
    kernel = AttentionConfig(tile_m=64, tile_n=16, split=True) if queries == 1 else None
    run: dict[str, Any] = {"checks": CHECKS, "report": reports.append, "kernel": kernel, "device": "cpu"}
    turned = [x.transpose(0, 2, 1, 3) if "layout" in given else x for x in (q, k, v)]
    result, logs = op.attention(*turned, **given, lse=True, **run)
    assert len(reports) == 2
    result = result.transpose(0, 2, 1, 3) if "layout" in given else result
    left, right, opposite = bounds
    want = reference(q, k, v, left, right, opposite)
    assert (np.abs(result.astype(np.float64) - want[0]) <= 2.0**-7 * (np.abs(want[0]) + 0.5)).all()
    np.testing.assert_allclose(logs, want[1], rtol=0, atol=1e-5)


def test_few_queries_use_split_kv() -> None:
    found = op.explain(op.attention, (1, 32, 1, 128), (1, 4, 8192, 128), element="bf16", causal="bottom_right")
    assert [k.name for k in found.kernels] == [
        "attention-bf16-128-full-lse-split-64x128-s3", "attention-combine-bf16-128-together",
    ]  # fmt: skip
    assert "keys in 32 slices" in str(found) and "heads that share keys are the rows" in str(found)
    for batch, heads in ((4, 32), (1, 8)):  # enough tiles for all SMs; slices that would cost more than they save
        whole = op.explain(op.attention, (batch, heads, 1024, 128), (batch, heads, 1024, 128))
        assert len(whole.kernels) == 1 and "slices" not in str(whole)
    # 154 tiles fill 1.2 waves of 132 SMs, and 6 slices of each tile fill 7 whole waves.
    uneven = op.explain(op.attention, (11, 28, 1, 128), (11, 14, 40490, 128), element="f16")
    assert uneven.way.parts == 6
    named = found.kernels[0].name
    assert op.explain(op.attention, (1, 8, 9, 128), (1, 8, 999, 128), element="bf16", kernel=named).way.parts == 8


FUNCTIONS: list[dict[str, Any]] = [
    {"scale": -0.4, "causal": True}, {"scale": 0.0, "sinks": "f32"}, {"softcap": 1.3, "alibi": 2, "causal": True},
    {"mask": "bool", "alibi": 1, "sinks": "f16"}, {"mask": "f16"}, {"mask": "f32", "window": (30, 5), "softcap": 2.0},
]  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("queries", [40, 1])
@pytest.mark.parametrize("given", FUNCTIONS)
def test_functions_of_scores(given: dict[str, Any], queries: int) -> None:
    """Head sizes of keys and values differ; rows without a visible key are 0, with the sink as logarithm."""
    q, k = normal(1, 4, queries, 64, dtype=np.float16), normal(1, 2, 70, 64, dtype=np.float16, seed=1)
    v = normal(1, 2, 70, 24, dtype=np.float16, seed=2)
    rng, arrays, options = np.random.default_rng(5), {}, dict(given)
    kind, rank, sinks = (options.pop(name, None) for name in ("mask", "alibi", "sinks"))
    if kind == "bool":
        arrays["mask"] = rng.random((queries, 70)) > 0.5
        arrays["mask"][0] = False
    elif kind is not None:
        arrays["mask"] = rng.standard_normal((1, 4, queries, 1 if kind == "f16" else 70)).astype(NUMPY[kind])
        arrays["mask"][0, 1, 0] = -np.inf
    if rank:
        arrays["alibi_slopes"] = rng.random((1, 4)[2 - rank :], np.float32)
    if sinks:
        arrays["sinks"] = rng.standard_normal(4).astype(NUMPY[sinks])
    plan = op.Attention(element="f16", head_size=64, lse=True, **options)
    run: dict[str, Any] = {"lse": True, "device": "cpu", "split_keys": 2 if queries == 1 else None}
    result, logs = op.attention(q, k, v, **run, checks=CHECKS, **options, **arrays)
    want, want_logs = plan.reference(q, k, v, **arrays)
    assert result.shape == (1, 4, queries, 24)
    assert (np.abs(result - want) <= 2.0**-10 * (np.abs(want) + 0.5)).all()
    finite = np.isfinite(want_logs)
    np.testing.assert_allclose(logs[finite], want_logs[finite], rtol=0, atol=1e-5)
    assert (logs[~finite] == -np.inf).all() and (result[~finite] == 0).all()


def test_names_of_kernels_with_functions_of_scores() -> None:
    c = AttentionConfig("f16", 64, head_v=128, softcap=True, alibi=True, scaled=True, bias="i1", sinks="bf16", lse=True)
    assert config_named(c.name) == c and "softcap" in c.name and "-v128" in c.name
    for wrong, words in (({"bias": "i8"}, "bias is 'i8'; use one of i1"), ({"sinks": "i1"}, "sinks is 'i1'; use one"),
                         ({"head_v": 40}, "head_v is 40; use one of 32, 64")):  # fmt: skip
        with pytest.raises(ValueError, match=words):
            c._replace(**wrong).check()


@pytest.mark.slow
def test_registers_do_not_spill_and_wgmma_is_not_serialized() -> None:
    """``test/oracle/attention_fuzz.py --assemble`` checks the other kernels."""
    c = AttentionConfig(lse=True)
    module = compile(attention_text(c), filename=f"{c.name}.mlir")
    assert " 0 bytes spilled, 0 bytes stack" in module.report and "C75" not in module.report, module.report


def test_setmaxnreg_fits_the_register_budget() -> None:
    for tile_m in (64, 128, 192):
        for packed in (False, True):
            c = AttentionConfig(tile_m=tile_m, packed=packed)
            producer, consumer = registers_of(c)
            groups = 1 + c.consumers
            assert producer + c.consumers * consumer <= 65536 // (128 * groups) // 8 * 8 * groups


def test_every_configuration_has_a_kernel() -> None:
    for head in HEADS:
        for mask in MASKS:
            default_config("f16", head, mask)._replace(packed=True, from_end=True, lse=True).check()
    with pytest.raises(
        ValueError,
        match=("the kernel needs 220 registers per consumer thread; at most 208 are available, use smaller tiles"),
    ):
        AttentionConfig(tile_n=208, stages=1).check()


@pytest.mark.slow
def test_a_plan(monkeypatch: pytest.MonkeyPatch) -> None:
    """A plan computes the function's result without copies, and reports its kernel."""
    plan = op.Attention(element=np.float16, head_size=64, causal="bottom_right", window=(9, None), lse=True)
    q, k, v = (normal(1, h, s, 64, dtype=np.float16, seed=h + s) for h, s in ((2, 20), (1, 40), (1, 40)))
    out = np.full_like(q, np.nan)
    with pytest.raises(
        op.UnsupportedError, match=("Attention: the kernel depends on the arrays; call run or compile first")
    ):
        plan.ir()
    done = plan.run(q, k, v, out, device="cpu", checks=CHECKS)
    assert done.out is out and "gpu.func @attention" in plan.ir() and "from_end" not in repr(plan)
    done.sync()
    want = plan.reference(q, k, v)
    check(out, done.lse, want)
    np.testing.assert_allclose(want[0], reference(q, k, v, 9, 0, 20)[0])
    for call, error, words in (
        (lambda: plan.run(q[..., ::2], k, v, device="cpu"), op.ShapeError, "head size 32"),
        (
            lambda: plan.run(*(x[..., :32] for x in (q, k, v)), device="cpu"),
            op.ShapeError,
            "the plan has 64",
        ),
        (lambda: plan.run(q.astype(BF16), k, v, device="cpu"), op.DtypeError, "k has dtype f16; it must have bf16"),
        (
            lambda: plan.run(*(x.astype(BF16) for x in (q, k, v)), device="cpu"),
            op.DtypeError,
            "the plan has element f16",
        ),
        (
            lambda: plan.run(np.repeat(q, 2, 3)[..., ::2], k, v, device="cpu"),
            op.LayoutError,
            "use op.attention, which copies it",
        ),
        (lambda: plan.bind(q, k, v, out, done.lse), op.DeviceError, "the arrays are in CPU memory"),
        (lambda: plan.bind(q, k, v, out), op.ShapeError, "lse is None; pass an array"),
        (lambda: plan.ir("sass"), op.UnsupportedError, "stage 'sass' is unknown; use one of cute, "),
        (
            lambda: op.Attention(element="f32", head_size=64),
            op.DtypeError,
            "use one of bf16, f16, f8E4M3FN, f8E5M2",
        ),
        (lambda: op.Attention(element="f16", head_size=12), op.UnsupportedError, "head size 12 is not supported"),
        (
            lambda: op.Attention(element="f16", head_size=64, causal="up"),
            op.UnsupportedError,
            "causal is 'up'",
        ),
    ):
        with pytest.raises(error, match=words):
            call()


# ------------------------------------------------------------------------------------------------------------- errors

Q, K = normal(1, 4, 8, 64), normal(1, 2, 16, 64)
BEGINS = np.array([0, 8], np.int32)
PACKED_Q, PACKED_K = normal(8, 4, 64), normal(8, 2, 64)


def packed(**given: Any) -> dict[str, Any]:
    """Return the arguments of a call with packed sequences."""
    found = {"q": PACKED_Q, "k": PACKED_K, "v": PACKED_K, "cu_seqlens_q": BEGINS, "cu_seqlens_k": BEGINS}
    return found | given


@pytest.mark.parametrize(
    ("given", "error", "words"),
    [
        ({"q": Q.astype(np.float32)}, op.DtypeError, "q has dtype f32; it must have one of bf16, f16"),
        ({"v": K.astype(np.float16)}, op.DtypeError, "v has dtype f16; it must have bf16, like q"),
        ({"q": Q[0]}, op.ShapeError, "pass an array of rank 4"),
        ({"v": K[:, :, 1:]}, op.ShapeError, "but k has shape"),
        ({"k": K[..., :32], "v": K[..., :32]}, op.ShapeError, "but q has 1 sequences and head size 64"),
        ({"k": normal(2, 2, 16, 64), "v": normal(2, 2, 16, 64)}, op.ShapeError, "but q has 1 sequences"),
        ({"q": Q[:, :3]}, op.ShapeError, "q has 3 heads and k has 2; pass q with a multiple"),
        ({"q": Q[..., :12], "k": K[..., :12], "v": K[..., :12]}, op.UnsupportedError, "head size 12 is not supported"),
        ({"causal": "middle"}, op.UnsupportedError, "causal is 'middle'; use True"),
        ({"causal": 1.5}, op.UnsupportedError, "causal is 1.5; use True"),
        ({"window": (-1, 3)}, op.UnsupportedError, "pass two ints, each 0 or more"),
        ({"window": 3}, op.UnsupportedError, "pass two ints, each 0 or more"),
        ({"scale": "1"}, op.UnsupportedError, "scale is '1'; pass a finite int or float"),
        ({"scale": float("nan")}, op.UnsupportedError, "scale is nan; pass a finite int or float"),
        ({"softcap": -1.0}, op.UnsupportedError, "softcap is -1.0; pass a finite int or float above 0, or 0 for none"),
        ({"sinks": normal(3)}, op.ShapeError, r"sinks has shape \(3,\); pass one number per head, \(4,\)"),
        ({"sinks": normal(4, dtype=np.float16)}, op.DtypeError, "sinks has dtype f16; pass an array of f32 or bf16"),
        ({"alibi_slopes": normal(2, 4, dtype=np.float32)}, op.ShapeError, r"of shape \(4,\) or \(1, 4\)"),
        ({"alibi_slopes": normal(4)}, op.DtypeError, "alibi_slopes has dtype bf16; pass an array of f32"),
        ({"mask": normal(8, 15)}, op.ShapeError, r"an array that expands to \(1, 4, 8, 16\)"),
        ({"mask": normal(2, 1, 1, 8, 16)}, op.ShapeError, r"an array that expands to \(1, 4, 8, 16\)"),
        ({"mask": normal(8, 16, dtype=np.int32)}, op.DtypeError, "mask has dtype i32; pass an array of bool, f32 or"),
        (packed(mask=normal(8, 8)), op.UnsupportedError, "mask is not supported with packed sequences; omit it"),
        (
            {"mask": SimpleNamespace(kv_num_blocks=Q)}, op.UnsupportedError,
            r"mask is a BlockMask; use op\.flex_attention\(q, k, v, block_mask=mask\)",
        ),
        ({"score_mod": abs}, op.ArgumentError, r"attention\(\) has no argument 'score_mod'; use op\.flex_attention$"),
        ({"attn_mask": Q}, op.ArgumentError, r"attention\(\) has no argument 'attn_mask'; use mask$"),
        ({"is_causal": True}, op.ArgumentError, "'is_causal'; use causal"),
        ({"softmax_scale": 1.0}, op.ArgumentError, "'softmax_scale'; use scale"),
        ({"window_size": (1, 1)}, op.ArgumentError, "'window_size'; use window"),
        ({"logits_soft_cap": 1.0}, op.ArgumentError, "'logits_soft_cap'; use softcap"),
        ({"lse": "yes"}, op.ArgumentError, "lse is 'yes'; pass True or False"),
        ({"lse": None}, op.ArgumentError, "lse is None; pass True or False"),
        ({"deterministic": "x"}, op.ArgumentError, "deterministic is 'x'; pass True or False"),
        ({"layout": "shbd"}, op.LayoutError, "layout is 'shbd'; use \"bhsd\" or \"bshd\""),
        ({"layout": ["bhsd"]}, op.LayoutError, r"layout is \['bhsd'\]; use"),
        ({"out": Q}, op.LayoutError, "out shares memory with q; pass a separate out"),
        ({"out": normal(1, 4, 8, 65)[..., :64]}, op.LayoutError, "multiples of 8"),
        ({"out": normal(1, 4, 8, 72)[..., 1:65]}, op.AlignmentError, "16-byte alignment"),
        ({"out": Q[:, :2].copy()}, op.ShapeError, "out has shape"),
        ({"kernel": AttentionConfig(tile_n=40)}, op.UnsupportedError, "tile_n is 40; it must be a multiple of 16"),
        ({"kernel": "attention-bf16-64-right-192x128"}, op.UnsupportedError, 'use "attention-bf16-64-full-192x128"'),
        ({"split_keys": 0}, op.UnsupportedError, "split_keys is 0; pass an int of 1 or more"),
        ({"split_keys": True}, op.UnsupportedError, "split_keys is True; pass an int of 1 or more"),
        ({"split_keys": 2.0}, op.UnsupportedError, "split_keys is 2.0; pass an int of 1 or more"),
        ({"kernel": "attention-bf16-64"}, op.UnsupportedError, 'a valid name is "attention-bf16-128-full-128x176"'),
        ({"kernel": 3}, op.UnsupportedError, "kernel is 3; pass a kernel name or an AttentionConfig"),
        ({"max_seqlen_q": 8}, op.UnsupportedError, "max_seqlen_q is 8, but there is no cu_seqlens_q"),
        ({"cu_seqlens_q": BEGINS}, op.ShapeError, "cu_seqlens_q is given alone"),
        (packed(q=Q), op.ShapeError, "pass an array of rank 3"),
        (packed(cu_seqlens_k=BEGINS.astype(np.int64)), op.DtypeError, "cu_seqlens_k has dtype i64; pass an i32 array"),
        (packed(cu_seqlens_k=np.array([0, 4, 8], np.int32)), op.ShapeError, "but cu_seqlens_q has shape"),
        (packed(cu_seqlens_q=BEGINS[:1]), op.ShapeError, r"\(B \+ 1,\)"),
        (packed(cu_seqlens_q=np.array([0, 5, 8], np.int32)[::2]), op.LayoutError, "pass a contiguous array"),
        (packed(cu_seqlens_q=np.array([0, 9], np.int32)), op.ShapeError, "rise from 0 to at most 8"),
        (packed(max_seqlen_q=7), op.ShapeError, "max_seqlen_q is 7, but a sequence has 8 rows"),
        (packed(max_seqlen_k=7), op.ShapeError, "max_seqlen_k is 7, but a sequence has 8 keys; pass 8 or more"),
        ({"max_seqlen_k": 15}, op.ShapeError, "max_seqlen_k is 15, but each sequence has 16 keys; omit max_seqlen_k"),
        (
            packed(cu_seqlens_q=np.array([0, 3, 8], np.int32), cu_seqlens_k=np.array([0, 3, 8], np.int32),
                   seqused_k=np.array([4, 5], np.int32)),
            op.ShapeError, "seqused_k has a length of 4; pass lengths from 0 to 3",
        ),
        (packed(max_seqlen_q=-1), op.ShapeError, "0 or more"),
    ],
)  # fmt: skip
def test_invalid_arguments_are_rejected(given: dict[str, Any], error: type[OpError], words: str) -> None:
    arguments: dict[str, Any] = {"q": Q, "k": K, "v": K, **given}
    with pytest.raises(error, match=words):
        op.attention(**arguments, device="cpu")


def test_lengths_in_gpu_memory_are_checked_on_request(monkeypatch: pytest.MonkeyPatch) -> None:
    views = {"q": view_of(Q)._replace(device=0), "cu_seqlens_q": view_of(BEGINS), "cu_seqlens_k": view_of(BEGINS)}
    one: Any = SimpleNamespace(
        name="attention", views=views, x=views["q"], on_host=lambda _: BEGINS.tolist(), check_gpu=lambda: None
    )
    form = Form("bf16", "bhsd", True, 1, 4, 1, 8, 8, 64, 0.1, "full", False, 0, 0, False, 8)
    check_call(one, form, 7)
    monkeypatch.setenv("CUTE_OP_CHECK", "1")
    check_call(one, form, 8)
    for longest, keys, words in ((8, 7, "max_seqlen_k is 7, but a"), (7, 8, "max_seqlen_q is 7, but a")):
        with pytest.raises(op.ShapeError, match=words):
            check_call(one, form._replace(longest=longest), keys)
    check_call(one, form, None)


def test_plans_refuse_tensors_that_need_gradients() -> None:
    torch: Any = pytest.importorskip("torch")
    plan, x = op.Attention(element="f16", head_size=64), torch.zeros(1, 1, 8, 64, dtype=torch.float16)
    none = x[:, :, :0]  # Without keys nothing is compiled.
    with pytest.raises(op.UnsupportedError, match=r"Attention\.run: results of a plan have no gradients; use"):
        plan.run(x, none, none.clone().requires_grad_(), device="cpu")
    with torch.no_grad():
        assert not plan.run(x, none, none.clone().requires_grad_(), device="cpu").out.requires_grad


def test_invalid_bindings_of_a_plan_are_rejected() -> None:
    plan = op.Attention(element="f16", head_size=64, lse=True)
    q, k, none = OnGpu(1, 2, 8, 64), OnGpu(1, 2, 16, 64, at=1 << 20), OnGpu(1, 2, 0, 64, at=1 << 20)
    out, lse = OnGpu(1, 2, 8, 64, at=1 << 22), OnGpu(1, 2, 8, dtype="<f4", at=1 << 24)
    for given, error, said in (
        (
            (q, k, k, out, OnGpu(1, 2, 8, at=1 << 24)),
            op.DtypeError,
            "Attention.bind: lse has dtype f16; it must have f32",
        ),
        (
            (q, none, none, out, lse),
            op.ShapeError,
            "Attention.bind: queries see no keys, so there is nothing to launch; use run",
        ),
    ):
        with pytest.raises(error) as told:
            plan.bind(*given)
        assert str(told.value) == said


@pytest.mark.slow
def test_empty_arrays_and_no_keys() -> None:
    one, logs = op.attention(Q[:, :, :1], K[:, :, :1], K[:, :, :1], window=(None, 3), lse=True, device="cpu")
    assert (one == np.repeat(K[:, :, :1], 2, 1)).all() and logs.shape == (1, 4, 1)
    assert op.attention(Q[:, :, :0], K, K, device="cpu").shape == (1, 4, 0, 64)
    result, logs = op.attention(Q, K[:, :, :0], K[:, :, :0], device="cpu", lse=True)
    assert (result == 0).all() and (logs == -np.inf).all()


def test_explain_and_prefetch(monkeypatch: pytest.MonkeyPatch) -> None:
    """For packed sequences, ``explain`` counts the work if the host can read the lengths."""
    begins = np.array([0, 5, 8], np.int32), np.array([0, 1, 8], np.int32)
    given: dict[str, Any] = {"cu_seqlens_q": begins[0], "cu_seqlens_k": begins[1]}
    found = op.explain(op.attention, PACKED_Q, PACKED_K, **given, causal=True, max_seqlen_q=5)
    assert found.flops == 4 * 64 * 4 * (5 * 1 + 1 + 2 + 3) and found.tiles == 2 * 2
    assert "2 packed sequences, the longest of 5, 4 heads of 64 on 2, 8 queries" in str(found)
    assert "GFLOP" not in str(op.explain(op.attention, (8, 4, 64), (8, 2, 64), cu_seqlens_q=(3,), cu_seqlens_k=(3,)))
    wide = op.explain(op.attention, Q[..., ::2], (1, 2, 16, 32), element="bf16")
    assert wide.copied == ("q",) and "copied    q" in str(wide)
    with pytest.raises(op.UnsupportedError, match="q has dtype f32"):
        op.explain(op.attention, (1, 1, 8, 64), (1, 1, 8, 64), element="f32")
    compiled: list[str] = []
    monkeypatch.setattr(kernel_prefetch, "library", lambda kernel, elsewhere: compiled.append(kernel.name))
    op.prefetch([op.explain(op.attention, (1, 1, 64, 64), (1, 1, 64, 64))]).wait(60)
    assert compiled == ["attention-f16-64-full-64x128-q1"]


# -------------------------------------------------------------------------------------------------------------- torch


@pytest.mark.slow
def test_cached_calls() -> None:
    """Cached calls are replayed at other addresses, also if one tensor is passed three times."""
    torch = pytest.importorskip("torch")
    from unittest.mock import patch

    from launched_here import Seen, here

    from cute_dialect.op.execute.call_cache import KnownCalls
    from cute_dialect.op.functions import attention as functions

    def zeros(*shape: int) -> Any:
        return torch.zeros(shape, dtype=torch.float16)

    q, k, v, out = (zeros(1, 2, 16, 64) for _ in range(4))
    begins, flat = torch.tensor([0, 16], dtype=torch.int32), zeros(16, 2, 64)
    packed = {"cu_seqlens_q": begins, "cu_seqlens_k": begins}
    odd = zeros(1, 2, 16, 68)[..., 2:66]  # misaligned, so it is copied at each call
    calls: list[Any] = [
        lambda: op.attention(q.clone(), k, v), lambda: op.attention(q.clone(), k, v, out=out),
        lambda: op.attention(flat.clone(), flat, flat, **packed), lambda: op.attention(q, odd, v, causal=True),
        lambda: op.attention(q, q, q), lambda: op.attention(q, k, k, window=[3, None], lse=True),
        lambda: op.attention(q[:, :, :1], k, v, causal="bottom_right", window=(8, None)),
    ]  # fmt: skip
    with here(Seen(works=False)) as seen, patch.object(functions, "_KNOWN", KnownCalls()):
        for call in calls:
            first = call()
            seen.first = seen.again = 0
            second = call()
            assert seen.first == 0 < seen.again
            pairs = zip(first, second) if isinstance(first, tuple) else [(first, second)]
            for x, y in pairs:
                assert x.shape == y.shape and x.stride() == y.stride() and x.dtype == y.dtype
        seen.again = 0
        others: tuple[dict[str, Any], ...] = (
            {"q": k.contiguous()[:, :, :8]}, {"causal": "bottom_right"}, {"scale": 2.0},
            {"out": None, "lse": True}, {"layout": "bshd", "out": None},
        )  # fmt: skip
        for other in others:
            op.attention(**({"q": q, "k": k, "v": v, "out": None} | other))
        assert seen.again == 0
        learning = q.clone().requires_grad_()
        with torch.no_grad():
            assert not op.attention(learning, k, v).requires_grad and seen.again == 1
        with pytest.raises(op.LayoutError, match="attention: out shares memory with q; pass a separate out"):
            op.attention(q, k, v, out=q)


@pytest.mark.slow
def test_torch_tensors() -> None:
    """The operator supports other shapes, strides and memory orders, graphs without breaks, and gradients."""
    torch = pytest.importorskip("torch")
    torch.manual_seed(0)
    q, k, v = (torch.randn(1, s, h, 64).half().transpose(1, 2) for s, h in ((20, 2), (40, 1), (40, 1)))
    from cute_dialect.op.torch.dispatch import CUTE

    state = torch.tensor([1, 2])
    numbers = "bottom_right", 9, -1, None, "bhsd", None, 0.0, None, None, 0.1
    given = (q, k, v, *(None,) * 5, state, *(None,) * 7, *numbers, True, 0, 0, None)
    torch.library.opcheck(CUTE.attention.registered, given)
    plain, logs = op.attention(q, k, v, causal="bottom_right", window=(9, None), lse=True, device="cpu")
    want = reference(q.numpy(), k.numpy(), v.numpy(), 9, 0, 20)
    check(plain.numpy(), logs.numpy(), want)
    assert plain.stride() == q.stride()
    leaves = [x.clone().requires_grad_() for x in (q, k, v)]
    result, _ = op.attention(*leaves, causal="bottom_right", window=(9, None), lse=True, device="cpu")
    result.square().sum().backward()
    exact = [x.detach().double().requires_grad_() for x in leaves]
    a, b, c = exact
    own, at = torch.arange(20)[:, None] + 20, torch.arange(40)[None]
    seen = (at <= own) & (at >= own - 9)
    b, c = (x.repeat_interleave(2, 1) for x in (b, c))
    torch.nn.functional.scaled_dot_product_attention(a, b, c, attn_mask=seen).square().sum().backward()
    for mine, theirs in zip(leaves, exact):
        torch.testing.assert_close(mine.grad.double(), theirs.grad, rtol=1e-2, atol=1e-2)
    with pytest.raises(
        op.UnsupportedError,
        match=(r"attention: out is not supported with gradients or torch\.compile; omit it, or use torch\.no_grad\(\)"),
    ):
        op.attention(*leaves, out=torch.empty_like(q), device="cpu")
    operands = q, k, v, *(None,) * 5, state, plain, logs, plain, None
    torch.library.opcheck(CUTE.attention_backward.registered, (*operands, *numbers, False))


def test_tiles_of_heads_of_64() -> None:
    """Tiles have 192 queries, or fewer if SMs would idle in the last wave."""
    for queries, causal, rows in (
        (1024, False, 128), (1024, True, 128), (4096, True, 192), (2048, False, 192), (256, False, 64),
        (192, False, 64),
    ):  # fmt: skip
        found = op.explain(op.attention, (4, 8, queries, 64), (4, 8, queries, 64), causal=causal)
        assert f"-{rows}x128" in found.kernels[0].name


@pytest.mark.slow
@pytest.mark.parametrize("pairs", [False, True])
@pytest.mark.parametrize("window", [None, (40, 10)])
def test_single_and_paired_tiles(pairs: bool, window: tuple[int, int] | None) -> None:
    """Blocks process the tiles of a masked call in pairs, or singly if there are fewer tiles than SMs."""
    rng = np.random.default_rng(3)
    q, k, v = (rng.standard_normal((1, 1, 150, 64)).astype(np.float16) for _ in range(3))
    causal = window is None
    usual = op.explain(op.attention, q, k, causal=causal, window=window).way.config
    assert not usual.pairs and usual.name.endswith("-pairs0")
    config = usual._replace(pairs=pairs, tile_m=64, tile_n=32, stages=2)
    found = op.attention(q, k, v, causal=causal, window=window, kernel=config, device="cpu")
    want = op.attention(q, k, v, causal=causal, window=window, kernel=config._replace(tile_m=192), device="cpu")
    assert not usual._replace(mask="full").takes_pairs and config.takes_pairs == pairs
    np.testing.assert_allclose(found.astype(np.float32), want.astype(np.float32), rtol=2.0**-9, atol=2.0**-9)
