"""Attention on the GPU compared with float64: all lengths, poisoned outputs, packed sequences, CUDA graphs."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest

torch = pytest.importorskip("torch")

from attention_calls import CALLS, PACKED, Call  # noqa: E402

from cute_dialect import op  # noqa: E402

TYPES = {"f16": torch.float16, "bf16": torch.bfloat16}
LIMITS = {"f16": 2.0**-10, "bf16": 2.0**-7}
"""Error bound relative to the sum of the magnitudes of the terms, because weights and results are rounded."""


@pytest.fixture(autouse=True)
def _prebuilt(prebuilt: Callable[[str], None]) -> None:
    prebuilt("attention")


def exact(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, call: Call
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Compute attention on (B, H, S, D) in float64: the output, the sums of magnitudes, and the log-sum-exp."""
    k, v = (x.double().repeat_interleave(q.shape[1] // x.shape[1], 1) for x in (k, v))
    scores = q.double() @ k.transpose(2, 3) / math.sqrt(q.shape[3])
    queries, keys = scores.shape[2:]
    own = torch.arange(queries, device="cuda")[:, None] + (keys - queries if call.causal == "bottom_right" else 0)
    at = torch.arange(keys, device="cuda")[None]
    left, right = call.window or (None, None)
    right = 0 if call.causal else right
    if left is not None:
        scores = scores.masked_fill(at < own - left, -math.inf)
    if right is not None:
        scores = scores.masked_fill(at > own + right, -math.inf)
    logs = scores.logsumexp(-1)
    weights = (scores - logs.masked_fill(logs == -math.inf, 0)[..., None]).exp()
    return weights @ v, weights @ v.abs(), logs


def check(got: torch.Tensor, logs: torch.Tensor, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, call: Call) -> None:
    want, size, exact_logs = exact(q, k, v, call)
    share = float(((got.double() - want).abs() / (LIMITS[call.element] * size.clamp_min(1e-9))).max())
    assert share <= 1, share
    there = exact_logs > -math.inf
    assert bool(((logs > -math.inf) == there).all())
    assert float((logs.double() - exact_logs)[there].abs().max()) < 1e-4
    assert bool((got[~there] == 0).all())


def normal(call: Call, rows: int, heads: int, seed: int) -> torch.Tensor:
    """Return a normally distributed (B, H, S, D) tensor in the call's layout, with eight padding elements per head."""
    torch.manual_seed(seed)
    shape = (call.batch, heads, rows) if call.layout == "bhsd" else (call.batch, rows, heads)
    whole = torch.randn(*shape, call.head + 8, device="cuda").to(TYPES[call.element])[..., : call.head]
    return whole if call.layout == "bhsd" else whole.transpose(1, 2)


@pytest.mark.parametrize("call", CALLS, ids=str)
def test_attention(call: Call) -> None:
    """Repeated calls give the same bits, with and without LSE. Memory around a poisoned output stays intact."""
    q = normal(call, call.queries, call.heads, 1)
    k, v = (normal(call, call.keys, call.heads_k, seed) for seed in (2, 3))
    given = {"causal": call.causal, "window": call.window, "kernel": call.config, "split_keys": call.split}
    got, logs = op.attention(q, k, v, lse=True, **given)
    check(got, logs, q, k, v, call)
    place = torch.full((call.batch, call.heads, call.queries + 2, call.head), math.nan, device="cuda", dtype=q.dtype)
    out = place[:, :, 1:-1]
    assert op.attention(q, k, v, out=out, **given) is out
    assert torch.equal(out, got)
    assert bool(place[:, :, 0].isnan().all()) and bool(place[:, :, -1].isnan().all())
    for _ in range(3):  # These calls replay the cached call.
        again, same = op.attention(q, k, v, lse=True, **given)
        assert torch.equal(again, got) and torch.equal(same, logs)


LENGTHS = [(700, 700), (0, 40), (129, 511), (1, 1), (333, 0), (64, 1000), (128, 176)]


@pytest.mark.parametrize("call", PACKED, ids=str)
def test_packed_sequences(call: Call) -> None:
    """Each sequence matches float64, and its bits do not change if all other sequences are NaN."""
    begins = [torch.tensor([0, *x]).cumsum(0).to("cuda", torch.int32) for x in zip(*LENGTHS)]
    ends = [b.tolist() for b in begins]
    torch.manual_seed(0)
    q, k, v = (
        torch.randn(ends[i > 0][-1], call.heads_k if i else call.heads, call.head, device="cuda").to(
            TYPES[call.element]
        )
        for i in range(3)
    )
    given = {"causal": call.causal, "window": call.window, "cu_seqlens_q": begins[0], "cu_seqlens_k": begins[1]}
    got, logs = op.attention(q, k, v, lse=True, max_seqlen_q=700, **given)
    assert torch.equal(op.attention(q, k, v, **given), got)  # without max_seqlen_q
    for i in range(len(LENGTHS)):
        mine, theirs = (slice(e[i], e[i + 1]) for e in ends)
        if mine.start == mine.stop:
            continue
        if theirs.start == theirs.stop:
            assert bool((got[mine] == 0).all()) and bool((logs[:, mine] == -math.inf).all())
            continue
        one = [x[part].transpose(0, 1)[None] for x, part in ((got, mine), (q, mine), (k, theirs), (v, theirs))]
        check(one[0], logs[None, :, mine], *one[1:], call)
        poisoned = [torch.full_like(x, math.nan) for x in (q, k, v)]
        for new, old, part in zip(poisoned, (q, k, v), (mine, theirs, theirs)):
            new[part] = old[part]
        assert torch.equal(op.attention(*poisoned, max_seqlen_q=700, **given)[mine], got[mine])


def test_a_graph_and_large_scores() -> None:
    """A captured call replays to the same bits. Scores in the hundreds overflow if the maximum is not subtracted."""
    call = CALLS[5]
    q, k, v = (normal(call, 1024, 4, seed) for seed in range(3))
    q *= 30
    got, logs = op.attention(q, k, v, causal=True, lse=True)
    check(got, logs, q, k, v, call)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        held = op.attention(q, k, v, causal=True)
    held.fill_(0)
    graph.replay()
    assert torch.equal(held, got)


def test_a_bound_plan() -> None:
    """A bound plan, with or without split keys, fills poisoned outputs twice with the bits of an unsynchronized run."""
    for call in (CALLS[5], next(c for c in CALLS if c.split == 3)):
        q, k, v = (normal(call, n, 4, seed) for seed, n in enumerate((call.queries, call.keys, call.keys)))
        element = {torch.bfloat16: "bf16", torch.float16: "f16"}[q.dtype]
        plan = op.Attention(element=element, head_size=call.head, causal=True, lse=True, split_keys=call.split)
        done = plan.run(q, k, v, sync=False)
        done.sync()
        check(done.out, done.lse, q, k, v, call)
        out, lse = torch.full_like(done.out, math.nan), torch.full_like(done.lse, math.nan)
        bound = plan.bind(q, k, v, out, lse)
        for _ in range(2):
            out.fill_(math.nan)
            bound()
            assert torch.equal(out, done.out) and torch.equal(lse, done.lse)
