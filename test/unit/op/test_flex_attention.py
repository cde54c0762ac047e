"""Flex attention on the interpreter, compared with torch's eager operator; block masks, graphs and errors."""

# torch is not installed where types are checked, and its functions have no types.
# pyright: reportMissingImports=false, reportUnknownMemberType=false, reportUnknownLambdaType=false
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

import functools
import sys
from typing import Any

import pytest
import torch
from torch.nn.attention.flex_attention import and_masks, or_masks
from torch.nn.attention.flex_attention import create_block_mask as torch_block_mask
from torch.nn.attention.flex_attention import flex_attention as torch_flex

from cute_dialect import op
from cute_dialect.kernels.attention.backward_config import default_backward_config
from cute_dialect.kernels.attention.block_mask import block_counts_text
from cute_dialect.kernels.attention.config import AttentionConfig, config_named
from cute_dialect.op.epilogue.score_functions import trace_scores
from cute_dialect.op.errors import EpilogueError, OpError
from cute_dialect.op.execute import attention_backward
from cute_dialect.op.execute.array_call import RowCall
from cute_dialect.op.execute.attention import way_of
from cute_dialect.op.problems.attention import Numbers, form_of
from cute_dialect.runtime.arrays import view_of

CALL: Any = op.flex_attention
CREATE: Any = op.create_block_mask
CHECKS = ("race", "uninit", "sync", "oob")
S, HEADS = 130, 2
DOCUMENT = torch.tensor([0] * 40 + [1] * 5 + [2] * 70 + [3] * 15)
LENGTHS = torch.tensor([100])
PREFIX = torch.tensor([30])
SLOPES = torch.tensor([0.5, 0.25])
BIAS = torch.linspace(-1, 1, HEADS * (2 * S - 1)).reshape(HEADS, -1).sin()
VISIBLE = torch.tensor([True, False])
WINDOWS = torch.tensor([10, 50], dtype=torch.int32)


def causal(b: Any, h: Any, q_idx: Any, kv_idx: Any) -> Any:
    return q_idx >= kv_idx


def window(b: Any, h: Any, q_idx: Any, kv_idx: Any) -> Any:
    return q_idx - kv_idx <= 20


def document(b: Any, h: Any, q_idx: Any, kv_idx: Any) -> Any:
    return DOCUMENT[q_idx] == DOCUMENT[kv_idx]


def prefix(b: Any, h: Any, q_idx: Any, kv_idx: Any) -> Any:
    return kv_idx < PREFIX[b]


def neighbourhood(b: Any, h: Any, q_idx: Any, kv_idx: Any) -> Any:
    rows, columns = q_idx // 12 - kv_idx // 12, q_idx % 12 - kv_idx % 12
    return (abs(rows) <= 2) & (columns.abs() <= 3)


def mixed(b: Any, h: Any, q_idx: Any, kv_idx: Any) -> Any:
    either = torch.logical_xor(q_idx >= kv_idx, kv_idx >> 3 == q_idx >> 3) ^ VISIBLE[h]
    return True & (either | torch.bitwise_not(VISIBLE[h] & (kv_idx > 9))) & ~(h << 6 == q_idx)


def jagged(b: Any, h: Any, q_idx: Any, kv_idx: Any) -> Any:
    return (q_idx < LENGTHS[b]) & (kv_idx < LENGTHS[b])


def dilated(b: Any, h: Any, q_idx: Any, kv_idx: Any) -> Any:
    return (q_idx - kv_idx) % 3 == 0


def per_head(b: Any, h: Any, q_idx: Any, kv_idx: Any) -> Any:
    return torch.where(h == 0, q_idx >= kv_idx, torch.abs(q_idx - kv_idx) < WINDOWS[h])


def alibi(score: Any, b: Any, h: Any, q_idx: Any, kv_idx: Any) -> Any:
    return score + SLOPES[h] * (kv_idx - q_idx)


def softcap(score: Any, b: Any, h: Any, q_idx: Any, kv_idx: Any) -> Any:
    return 2.0 * torch.tanh(score / 2.0)


def relative(score: Any, b: Any, h: Any, q_idx: Any, kv_idx: Any) -> Any:
    return score + BIAS[h, q_idx - kv_idx + S - 1]


def tanh(score: Any, b: Any, h: Any, q_idx: Any, kv_idx: Any) -> Any:
    return (score * 0.5 + 0.25).tanh() * score


USUAL = {
    "causal": (None, causal), "window": (None, and_masks(causal, window)), "document": (None, document),
    "prefix": (None, or_masks(causal, prefix)), "alibi": (alibi, causal), "softcap": (softcap, None),
    "relative": (relative, None), "tanh": (tanh, document), "neighbourhood": (None, neighbourhood),
    "jagged": (None, jagged), "dilated": (None, dilated), "per_head": (None, per_head),
    "mixed": (None, mixed),
}  # fmt: skip
"""Functions in use -> score_mod and mask_mod."""


def arrays(batch: int = 1, heads: int = HEADS, keys: int = HEADS, size: int = 64) -> list[Any]:
    generator = torch.Generator().manual_seed(1)
    return [
        torch.randn(batch, n, S, size, generator=generator, dtype=torch.float32).half() for n in (heads, keys, keys)
    ]


@pytest.mark.end_to_end
@pytest.mark.sample("alibi")
@pytest.mark.filterwarnings("ignore:flex_attention called without torch.compile")
@pytest.mark.parametrize("name", USUAL)
def test_usual_functions_equal_torch(name: str) -> None:
    score_mod, mask_mod = USUAL[name]
    q, k, v = arrays()
    mask = theirs = None
    if mask_mod is not None:
        mask = op.create_block_mask(mask_mod, 1, HEADS, S, S, "cpu", 64, checks=CHECKS)
        theirs = torch_block_mask(mask_mod, 1, HEADS, S, S, "cpu", 64)
        for field in ("kv_num_blocks", "kv_indices", "full_kv_num_blocks", "full_kv_indices", "q_num_blocks",
                      "q_indices", "full_q_num_blocks", "full_q_indices"):  # fmt: skip
            assert torch.equal(getattr(mask, field), getattr(theirs, field)), field
    wanted, logs = torch_flex(q.float(), k.float(), v.float(), score_mod, theirs, return_lse=True)
    schedule = sorted(USUAL).index(name) % 2
    run: dict[str, Any] = {"schedule": ("random", "adversarial")[schedule], "seed": 1}
    found, lse = op.flex_attention(q, k, v, score_mod, mask, return_lse=True, device="cpu", checks=CHECKS, **run)
    torch.testing.assert_close(found.float(), wanted, rtol=1e-3, atol=1e-3)
    torch.testing.assert_close(lse, logs, rtol=0, atol=1e-4)


def exact(q: Any, k: Any, v: Any, score_mod: Any, visible: Any) -> tuple[Any, Any]:
    """Return the result and the log-sum-exps in f64."""
    k, v = (x.double().repeat_interleave(q.shape[1] // k.shape[1], 1) for x in (k, v))
    x = q.double() @ k.mT * q.shape[-1] ** -0.5
    if score_mod is not None:
        b, h, i, j = (torch.arange(n).reshape(-1, *[1] * (3 - at)) for at, n in enumerate(x.shape))
        x = score_mod(x, b, h, i, j)
    x = torch.where(visible, x, -torch.inf)
    lse = x.logsumexp(-1)
    return torch.where(lse[..., None] > -torch.inf, x - lse[..., None], -torch.inf).exp() @ v, lse


@pytest.mark.slow
def test_heads_that_share_keys_and_queries_that_see_none() -> None:
    """Lists for all sequences, blocks of 128 x 64, a mask without lists of full blocks, and values of another size."""
    q, k, _ = arrays(2, 4, 2, 48)
    v = arrays(2, 4, 2, 64)[2]

    def some(b: Any, h: Any, q_idx: Any, kv_idx: Any) -> Any:
        return (q_idx >= 70) & (kv_idx >= 64) & (kv_idx < 120)

    mask = op.create_block_mask(some, None, None, S, S, "cpu", (128, 64), separate_full_blocks=False, checks=CHECKS)
    assert mask.full_kv_num_blocks is None and mask.kv_num_blocks.tolist() == [[[1, 1]]]
    found, lse = op.flex_attention(
        q, k, v, None, mask, enable_gqa=True, return_lse=True, device="cpu", checks=CHECKS, schedule="reverse"
    )
    rows, keys = torch.arange(S)[:, None], torch.arange(S)
    wanted, logs = exact(q, k, v, None, (rows >= 70) & (keys >= 64) & (keys < 120))
    torch.testing.assert_close(found.double(), wanted, rtol=1e-3, atol=1e-3)
    torch.testing.assert_close(lse.double(), logs, rtol=0, atol=1e-4)
    assert not found[:, :, :70].any() and (lse[:, :, :70] == -torch.inf).all()


@pytest.mark.slow
@pytest.mark.parametrize("scale", [0.0, -0.2])
def test_scales_that_are_not_positive_and_many_steps(scale: float) -> None:
    """One block computes all tiles, with steps of 32 keys in blocks of 64."""
    q, k, v = arrays(1, 2, 1)
    mask = op.create_block_mask(causal, None, None, S, S, "cpu", 64)
    c = AttentionConfig("f16", 64, tile_m=64, tile_n=32, stages=3, sms=1)
    found = op.flex_attention(
        q, k, v, None, mask, scale, enable_gqa=True, kernel=c, device="cpu", checks=CHECKS, schedule="adversarial"
    )
    wanted, _ = exact(q * (scale * 8), k, v, None, torch.ones(S, S, dtype=torch.bool).tril())
    torch.testing.assert_close(found.double(), wanted, rtol=1e-3, atol=2e-3)


@pytest.mark.slow
def test_slices_of_the_keys_of_few_queries() -> None:
    """Slices divide the lists of blocks.  Some get no block, because the second head sees few."""
    keys = 700
    q, (k, v) = arrays(1, 2, 1)[0][:, :, :4], (x.repeat(1, 1, 6, 1)[:, :, :keys] for x in arrays(1, 2, 1)[1:])

    def some(b: Any, h: Any, q_idx: Any, kv_idx: Any) -> Any:
        return torch.where(h == 0, kv_idx % 7 != q_idx, (kv_idx >= 300) & (kv_idx < 400) & (q_idx > 0))

    mask = op.create_block_mask(some, None, HEADS, 4, keys, "cpu", 64)
    views = {"q": view_of(q), "k": view_of(k), "v": view_of(v)}
    form = form_of(views, False, None, None, True, "bhsd", None, "f16", Numbers())
    assert way_of(form._replace(blocks=(64, 64))).parts > 4
    found, lse = CALL(
        q, k, v, alibi, mask, enable_gqa=True, return_lse=True, device="cpu", checks=CHECKS, schedule="random", seed=1
    )
    b, h, i, j = (torch.arange(n).reshape(-1, *[1] * (3 - at)) for at, n in enumerate((1, HEADS, 4, keys)))
    wanted, logs = exact(q, k, v, alibi, some(b, h, i, j))
    torch.testing.assert_close(found.double(), wanted, rtol=1e-3, atol=1e-3)
    torch.testing.assert_close(lse.double(), logs, rtol=0, atol=1e-4)
    assert not found[:, 1, 0].any() and lse[0, 1, 0] == -torch.inf


def test_a_mask_that_hides_nothing_lists_full_blocks() -> None:
    def everything(b: Any, h: Any, q_idx: Any, kv_idx: Any) -> Any:
        return b.new_ones((), dtype=torch.bool)

    mask = op.create_block_mask(everything, None, None, 100, 130, "cpu", 64)
    theirs = torch_block_mask(lambda b, h, q_idx, kv_idx: q_idx >= 0, None, None, 100, 130, "cpu", 64)
    assert torch.equal(mask.kv_num_blocks, theirs.kv_num_blocks)
    full = theirs.full_kv_num_blocks
    assert full is not None and torch.equal(mask.full_kv_num_blocks, full)


# ------------------------------------------------------------------------------------------------------------ gradients


RELATIVE = torch.linspace(-1, 1, HEADS * 2 * S).reshape(HEADS, -1).cos()


def added(score: Any, b: Any, h: Any, q_idx: Any, kv_idx: Any) -> Any:
    return score + RELATIVE[h, q_idx - kv_idx]


def capped(score: Any, b: Any, h: Any, q_idx: Any, kv_idx: Any) -> Any:
    return 0.5 * torch.tanh(3 * score) + 2 * RELATIVE[h, q_idx - kv_idx]


STARTS = torch.arange(S) * 7 % 60
KINDS = torch.arange(S, dtype=torch.int32) % 3
SHOWN = torch.arange(S) % 5 != 2
LINE = torch.linspace(-1, 1, S)
LINES = torch.linspace(-1, 1, HEADS * S).reshape(HEADS, -1)
LIMITS = torch.tensor([10, 2**31 - 1], dtype=torch.int32)


def ragged(b: Any, h: Any, q_idx: Any, kv_idx: Any) -> Any:
    return SHOWN[q_idx] & (kv_idx >= q_idx - STARTS[q_idx]) & (q_idx >= kv_idx) | (q_idx == kv_idx)


def kinds(b: Any, h: Any, q_idx: Any, kv_idx: Any) -> Any:
    far = ~(abs(kv_idx - q_idx) <= 2) & (q_idx - kv_idx < LIMITS[h])
    return (KINDS[q_idx] != KINDS[kv_idx]) & (q_idx + STARTS[kv_idx] >= kv_idx) & far | (q_idx == kv_idx + 3)


def branches(b: Any, h: Any, q_idx: Any, kv_idx: Any) -> Any:
    late = (q_idx > kv_idx - STARTS[kv_idx]) & (kv_idx - q_idx < 10) | (q_idx <= 3)
    return torch.where(h == 0, (KINDS[kv_idx] + 5 > abs(q_idx - kv_idx)) ^ SHOWN[kv_idx], late)


def lines(score: Any, b: Any, h: Any, q_idx: Any, kv_idx: Any) -> Any:
    return score + LINE[q_idx] * 0.5 + LINES[h, kv_idx] * LINE[kv_idx]


def distances(score: Any, b: Any, h: Any, q_idx: Any, kv_idx: Any) -> Any:
    return score - abs(q_idx - kv_idx) * 0.125 * LINES[h, q_idx]


def scaled(score: Any, b: Any, h: Any, q_idx: Any, kv_idx: Any) -> Any:
    return score * (1 + (kv_idx - q_idx).float() * 0.01) + torch.where(q_idx - kv_idx > 3, LINE[q_idx], 0.25)


SINCE = torch.tensor([1_700_000_000, 1_699_999_997], dtype=torch.int32)
STAMPS = SINCE[0] + torch.arange(S, dtype=torch.int32)


def times(b: Any, h: Any, q_idx: Any, kv_idx: Any) -> Any:
    at = q_idx + SINCE[h]
    return (at >= STAMPS[kv_idx]) ^ (abs(at) <= SINCE[h] + kv_idx - 30) | (at == STAMPS[kv_idx])


def gated(score: Any, b: Any, h: Any, q_idx: Any, kv_idx: Any) -> Any:
    return score + LINES[h, (q_idx - kv_idx) * VISIBLE[h].int()]


MILLISECONDS = 1_700_000_000_000 + 40_000_000 * torch.arange(S)
AGES = torch.tensor([2**31 + 5, 2**40])
ENDS = torch.where(torch.arange(S) % 4 > 0, MILLISECONDS[0] + 100 * torch.arange(S), 2**63 - 1)
BEGINS = torch.where(torch.arange(S) % 3 > 0, MILLISECONDS[0] + torch.arange(S), -(2**63))


def late(score: Any, b: Any, h: Any, q_idx: Any, kv_idx: Any) -> Any:
    return score + (MILLISECONDS[kv_idx] - MILLISECONDS[q_idx]).float() * 2.0**-32 + LINES[h, AGES[h] % 100]


def stamps(b: Any, h: Any, q_idx: Any, kv_idx: Any) -> Any:
    near = abs(MILLISECONDS[q_idx] - MILLISECONDS[kv_idx]) < AGES[h]
    shifted = (q_idx * 100 + MILLISECONDS[0] >= ENDS[kv_idx]) ^ (abs(q_idx - AGES[h]) <= AGES[h] - kv_idx)
    moved = (q_idx + MILLISECONDS[0] == kv_idx + (MILLISECONDS[0] - 3)) | (q_idx + MILLISECONDS[0] < ENDS[kv_idx])
    moved = moved & (q_idx + MILLISECONDS[0] > BEGINS[kv_idx])
    return near & shifted | (KINDS[q_idx].long() * 3_000_000_000 == 0) & moved | (q_idx == kv_idx)


GRADIENTS: dict[str, tuple[Any, Any, dict[str, Any]]] = {
    # score_mod, mask_mod, and the block mask
    "captured": (added, per_head, {"BLOCK_SIZE": 128}),
    "softcap": (softcap, causal, {"BLOCK_SIZE": (128, 256), "separate_full_blocks": False}),
    "tanh": (tanh, document, {"BLOCK_SIZE": 128}),
    "dense": (alibi, None, {}),
    "small blocks": (added, per_head, {"BLOCK_SIZE": 64}),
    "captured and capped": (capped, document, {"BLOCK_SIZE": 128}),
    "short blocks": (softcap, document, {"BLOCK_SIZE": (64, 128)}),
    "values of queries and keys": (lines, ragged, {"BLOCK_SIZE": 128}),
    "bounds": (distances, kinds, {"BLOCK_SIZE": (64, 128)}),
    "branches": (scaled, branches, {"BLOCK_SIZE": 64}),
    "large numbers": (gated, times, {"BLOCK_SIZE": 128}),
    "64 bits": (late, stamps, {"BLOCK_SIZE": 128}),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", GRADIENTS)
def test_gradients(name: str) -> None:
    """Gradients of the result and of lse, for two query heads with masks of their own that share keys."""
    score_mod, mask_mod, blocks = GRADIENTS[name]
    q, k, v = arrays(1, 2, 1)
    leaves = [x.requires_grad_() for x in (q, k, v[..., :40] if name == "dense" else v)]
    RELATIVE.requires_grad_(score_mod in (added, capped)).grad = None
    mask = None
    if mask_mod is not None:
        mask = op.create_block_mask(mask_mod, 1, HEADS, S, S, "cpu", **blocks)
    found = op.flex_attention(*leaves, score_mod, mask, enable_gqa=True, return_lse=True, device="cpu")
    torch.manual_seed(1)
    grads = [torch.randn_like(x) for x in found]
    torch.autograd.backward(found, grads)
    wide = [x.detach().double().requires_grad_() for x in leaves]
    b, h, i, j = (torch.arange(n).reshape(-1, *[1] * (3 - at)) for at, n in enumerate((1, HEADS, S, S)))
    visible = torch.ones(S, S, dtype=torch.bool) if mask_mod is None else mask_mod(b, h, i, j)
    bias = RELATIVE.grad
    RELATIVE.grad = None
    results = exact(*wide, score_mod, visible)
    torch.autograd.backward(results, [x.double() for x in grads])
    pairs = [*zip(found, results), *[(x.grad, y.grad) for x, y in zip(leaves, wide)]]
    pairs += [(bias, RELATIVE.grad)] if score_mod in (added, capped) else []
    RELATIVE.requires_grad_(False)
    for x, y in pairs:
        assert x is not None and y is not None
        assert float((x.double() - y).detach().norm()) < 2e-3 * float(y.detach().norm())


@pytest.mark.slow
@pytest.mark.parametrize(("size", "mask_mod", "sms"), [(64, mixed, 132), (64, causal, 2), (256, document, 132)])
def test_deterministic_gradients(size: int, mask_mod: Any, sms: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Parts of dq have one order under all schedules, also if a block computes several tiles of keys (``sms`` is 2)."""

    def with_multiprocessors(*given: Any) -> Any:
        return default_backward_config(*given)._replace(sms=sms)

    leaves = [x.requires_grad_() for x in arrays(1, 1, 1)]
    mask = op.create_block_mask(mask_mod, None, None, S, S, "cpu", size)
    monkeypatch.setattr(torch, "are_deterministic_algorithms_enabled", lambda: True)
    monkeypatch.setattr(attention_backward, "default_backward_config", with_multiprocessors)
    grad, found = torch.randn(1, 1, S, 64, generator=torch.Generator().manual_seed(3)).half(), []
    out = CALL(*leaves, alibi, mask, device="cpu")
    for schedule in ("random", "adversarial"):
        run = {"schedule": schedule, "seed": 1, "checks": ("race",)}
        module = sys.modules["cute_dialect.op.functions.flex_attention"]
        monkeypatch.setattr(module, "RowCall", functools.partial(RowCall, run=run))
        found.append(torch.autograd.grad(out, leaves, grad, retain_graph=True))
    b, h, i, j = (torch.arange(n).reshape(-1, *[1] * (3 - at)) for at, n in enumerate((1, 1, S, S)))
    wide = [x.detach().double().requires_grad_() for x in leaves]
    wanted = torch.autograd.grad(exact(*wide, alibi, mask_mod(b, h, i, j))[0], wide, grad.double())
    for x, y, z in zip(*found, wanted):
        assert torch.equal(x, y) and float((x.double() - z).norm()) < 2e-3 * float(z.norm())


@pytest.mark.slow
@pytest.mark.parametrize(("size", "head"), [(128, 64), (64, 192)])
def test_values_of_queries_and_keys_are_ordered(size: int, head: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first kernel passes values of queries, and threads of a warp those of keys, to each other."""
    leaves = [x.requires_grad_() for x in arrays(1, 1, 1, head)]
    mask = op.create_block_mask(ragged, None, None, S, S, "cpu", size)
    out = CALL(*leaves, lines, mask, device="cpu")
    run = {"schedule": "random", "seed": 1, "checks": CHECKS}
    module = sys.modules["cute_dialect.op.functions.flex_attention"]
    monkeypatch.setattr(module, "RowCall", functools.partial(RowCall, run=run))
    grad = torch.randn(1, 1, S, head, generator=torch.Generator().manual_seed(3)).half()
    found = torch.autograd.grad(out, leaves, grad)
    b, h, i, j = (torch.arange(n).reshape(-1, *[1] * (3 - at)) for at, n in enumerate((1, 1, S, S)))
    wide = [x.detach().double().requires_grad_() for x in leaves]
    wanted = torch.autograd.grad(exact(*wide, lines, ragged(b, h, i, j))[0], wide, grad.double())
    for x, y in zip(found, wanted):
        assert float((x.double() - y).norm()) < 2e-3 * float(y.norm())


def test_graphs_say_what_depends_on_the_query() -> None:
    def nodes(score_mod: Any, mask_mod: Any) -> tuple[Any, list[str]]:
        found = trace_scores("flex_attention", score_mod, mask_mod).graph
        assert found is not None
        return found, [n.op for n in found.graph.nodes]

    of, names = nodes(lines, ragged)
    arrays_of = {along: [names[i] for i in of.read_along(along)] for along in ("row", "column")}
    assert arrays_of == {"row": ["element"] * 3, "column": ["element"]}  # not LINES[h, kv_idx]
    of, names = nodes(None, kinds)
    factors = {of.query_factor(i) for i, name in enumerate(names) if name in ("subtract", "add")}
    assert factors == {-1, 0, 1}
    assert all([of.is_boolean(i) for i, name in enumerate(names) if name in ("less", "where", "logical_and")])
    of, names = nodes(distances, kinds)  # comparisons of the mask do not count
    assert [names[i] for i in of.float_integers] == ["subtract", "abs"]
    assert not of.is_integer(names.index("accum"))
    of, names = nodes(gated, None)  # indices stay integers
    assert "where" in names and of.float_integers == ()
    of, names = nodes(None, lambda b, h, i, j: abs(i - 3 * j) + (1 << 28) < SINCE[h] + j + (1 << 29))
    small = {name: of.is_small(i) for i, name in enumerate(names) if of.is_integer(i)}
    assert small["row"] and small["abs"] is small["element"] is False


def test_integers_of_64_bits_have_two_words() -> None:
    """Values of a query or a key have at most three words in shared memory, or one with heads above 128."""
    of = trace_scores("flex_attention", lines, stamps).graph
    assert of is not None
    wide = [i for i, n in enumerate(of.graph.nodes) if n.op == "element" and of.is_wide(i)]
    for head, most in ((128, 3), (192, 1)):
        c = default_backward_config(head=head)._replace(functions=of)
        for words, index in ((c.query_reads, "row"), (c.key_reads, "column")):
            assert len(words) <= most and {node for node, _ in words} <= set(of.read_along(index))
            for node in {node for node, _ in words}:
                assert [word for n, word in words if n == node] == [0, 1][: 2 if node in wide else 1]
    narrow = trace_scores("flex_attention", None, lambda b, h, i, j: (MILLISECONDS[i].int() == j) & (i < 2**31)).graph
    assert narrow is not None
    of_ops = {n.op: narrow.is_wide(i) for i, n in enumerate(narrow.graph.nodes)}
    assert of_ops["element"] and of_ops["constant"] and not of_ops["cast"] and not of_ops["row"]


def test_blocks_take_tiles_of_a_block_mask_from_a_counter() -> None:
    """Blocks that add to dq in a fixed order wait for each other, so they take tiles in turn."""
    q = view_of(torch.empty(1, 2, S, 64, dtype=torch.float16))
    views = {"q": q, "k": q, "v": q}
    form = form_of(views, False, None, None, True, "bhsd", None, "f16", Numbers())
    listed = form._replace(blocks=(128, 128))
    for found, ordered, dynamic in ((form, False, False), (listed, False, True), (listed, True, False)):
        problem = attention_backward.AttentionBackwardProblem(found, deterministic=ordered)
        assert attention_backward.choose_backward(problem).config.dynamic == dynamic


@pytest.mark.slow
@pytest.mark.parametrize(("size", "head", "schedule"), [(128, 64, "adversarial"), (64, 192, "random")])
def test_tiles_from_a_counter(size: int, head: int, schedule: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Three blocks take the tiles of four heads, some of which no query sees. Their order does not matter."""

    def few_blocks(*given: Any) -> Any:
        return default_backward_config(*given)._replace(sms=3)

    leaves = [x.requires_grad_() for x in arrays(2, 2, 2, head)]
    mask = op.create_block_mask(per_head, 2, 2, S, S, "cpu", size)
    monkeypatch.setattr(attention_backward, "default_backward_config", few_blocks)
    out = CALL(*leaves, alibi, mask, device="cpu")
    run = {"schedule": schedule, "seed": 2, "checks": CHECKS}
    module = sys.modules["cute_dialect.op.functions.flex_attention"]
    monkeypatch.setattr(module, "RowCall", functools.partial(RowCall, run=run))
    grad = torch.randn(2, 2, S, head, generator=torch.Generator().manual_seed(3)).half()
    found = torch.autograd.grad(out, leaves, grad)
    b, h, i, j = (torch.arange(n).reshape(-1, *[1] * (3 - at)) for at, n in enumerate((2, 2, S, S)))
    wide = [x.detach().double().requires_grad_() for x in leaves]
    wanted = torch.autograd.grad(exact(*wide, alibi, per_head(b, h, i, j))[0], wide, grad.double())
    for x, y in zip(found, wanted):
        assert float((x.double() - y).norm()) < 2e-3 * float(y.norm())


@pytest.mark.slow
def test_a_call_that_is_replayed_has_the_lists_of_its_mask() -> None:
    """The node of a call saves its tensors, so that another mask with lists of equal shapes has its own."""
    leaves = [x.requires_grad_() for x in arrays(1, 2, 2)]
    masks = [op.create_block_mask(f, None, None, S, S, "cpu", 128) for f in (causal, document)]
    found = [op.flex_attention(*leaves, None, mask, device="cpu") for mask in masks]
    rows, keys = torch.arange(S)[:, None], torch.arange(S)
    for out, visible in zip(found, (rows >= keys, DOCUMENT[rows] == DOCUMENT[keys])):
        wide = [x.detach().double().requires_grad_() for x in leaves]
        wanted = torch.autograd.grad(exact(*wide, None, visible)[0].sum(), wide)
        for x, y in zip(torch.autograd.grad(out.sum(), leaves), wanted):
            torch.testing.assert_close(x.double(), y, rtol=1e-2, atol=2e-3)


def test_errors_of_gradients() -> None:
    leaves = [torch.zeros(1, 2, 130, 64, dtype=torch.float16, requires_grad=True) for _ in range(3)]
    mask = torch_block_mask(causal, None, None, S, S, "cpu", 128)
    bias = torch.zeros(S, requires_grad=True)
    without = torch_block_mask(causal, None, None, S, S, "cpu", 128)
    without.q_num_blocks = None
    calls: list[tuple[dict[str, Any], str]] = [
        ({"block_mask": without}, "the block mask has no q_num_blocks, which gradients need"),
        ({"checks": ("race",)}, "checks is not supported with gradients"),
        ({"score_mod": lambda s, b, h, i, j: s * bias[i]}, "if their derivatives do not depend on the score"),
        ({"score_mod": lambda s, b, h, i, j: s + bias[i] + bias[j]}, "is read at several indices; read it once"),
        ({"score_mod": lambda s, b, h, i, j: s % 3.0}, "remainder() has no derivative"),
    ]
    for given, message in calls:
        with pytest.raises(OpError) as caught:
            CALL(**{**dict(zip(("query", "key", "value"), leaves)), "device": "cpu", **given})
        assert message in str(caught.value), str(caught.value)
    torch.use_deterministic_algorithms(True)
    try:
        with pytest.raises(OpError, match="deterministic gradients of captured tensors are not supported"):
            CALL(*leaves, lambda s, b, h, i, j: s + bias[i], mask, device="cpu")
    finally:
        torch.use_deterministic_algorithms(False)


# --------------------------------------------------------------------------------------------------------------- graphs


def graph(score_mod: Any = None, mask_mod: Any = None) -> list[str]:
    found = trace_scores("flex_attention", score_mod, mask_mod).graph
    assert found is not None
    return [node.op for node in found.graph.nodes]


def test_equal_functions_have_one_kernel() -> None:
    """The structure selects a kernel; captured tensors are its arguments."""
    twice = 2 * SLOPES
    found = trace_scores("flex_attention", alibi, causal)
    again = trace_scores("flex_attention", lambda s, b, h, i, j: s + twice[h] * (j - i), causal)
    assert found.graph == again.graph and found.captured[0] is SLOPES and again.captured[0] is twice
    assert str(found.graph) == str(again.graph) and found.graph is not None
    assert found.graph.names == ("score", "visible") and found.graph.ranks == (1,)


def relative_to(bias: Any, shift: Any, inner: Any = None) -> Any:
    def score_mod(score: Any, b: Any, h: Any, q_idx: Any, kv_idx: Any) -> Any:
        return (score if inner is None else inner(score, b, h, q_idx, kv_idx)) + bias[h, q_idx - kv_idx + shift]

    return score_mod


class Slopes:
    """An object whose method and call are functions of scores."""

    def __init__(self) -> None:
        self.slopes, self.factor = torch.ones(4), 3

    def score_mod(self, score: Any, b: Any, h: Any, q_idx: Any, kv_idx: Any) -> Any:
        return score + self.slopes[h] * self.factor

    __call__ = score_mod


def traced(score_mod: Any, mask_mod: Any = None) -> tuple[Any, list[Any]]:
    found = trace_scores("flex_attention", score_mod, mask_mod)
    return found.graph, list(found.captured)


def test_a_function_is_traced_again_only_after_a_change() -> None:
    """Functions of one code share a trace if their closures hold equal numbers, and tensors of equal types."""
    x, y = torch.ones(4, 9), torch.zeros(4, 9)
    graph, captured = traced(relative_to(x, 3), causal)
    assert captured[0] is x
    again, captured = traced(relative_to(y, 3), causal)
    assert again is graph and captured[0] is y
    halved = [functools.partial(lambda of, *indices: of * alibi(*indices), factor) for factor in (0.5, 0.5, 0.25)]
    graphs = [traced(score_mod)[0] for score_mod in halved]
    assert graphs[0] is graphs[1] and graphs[0] != graphs[2]
    others: list[tuple[Any, ...]] = [(y, 4), (y.half(), 3), (torch.ones(4, 10), 3), (y, 3, relative_to(x, 2))]
    for given in others:
        again, captured = traced(relative_to(*given), causal)
        assert again is not graph and captured[-1] is given[0]
    nested = [traced(relative_to(x, 1, relative_to(held, 2))) for held in (y, x, y.clone())]
    assert nested[0][0] is nested[2][0] and nested[1][0] is not nested[0][0] and len(nested[1][1]) == 1


def test_changes_of_what_a_function_reads_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    def change(*, to: Any, of: Any = "SLOPES") -> None:
        monkeypatch.setitem(globals(), of, to)

    def doubled(score: Any, b: Any, h: Any, q_idx: Any, kv_idx: Any) -> Any:
        return 2 * alibi(score, b, h, q_idx, kv_idx)

    graph, captured = traced(doubled)
    assert captured[0] is SLOPES and traced(doubled)[0] is graph
    change(to=torch.ones(2))
    again, captured = traced(doubled)
    assert captured[0] is SLOPES and again == graph and again is not graph
    change(of="alibi", to=lambda s, b, h, i, j: s + i)
    assert traced(doubled)[0] != graph
    doubled.__code__ = tanh.__code__
    assert traced(doubled)[0] == traced(tanh)[0]
    held = Slopes()
    for score_mod in (lambda: held.score_mod, lambda: held):
        graph, captured = traced(score_mod())
        assert traced(score_mod())[0] is graph and captured[0] is held.slopes
        held.slopes, held.factor = torch.zeros(4), held.factor + 1
        again, captured = traced(score_mod())
        assert again != graph and captured[0] is held.slopes


def test_functions_that_compute_with_tensors_are_traced_at_each_call() -> None:
    """Shapes are part of a trace, values are not."""
    slopes = torch.ones(2)

    def computes(score: Any, b: Any, h: Any, q_idx: Any, kv_idx: Any) -> Any:
        return score * float(slopes[0]) + (2 * slopes)[h]

    def reads_shapes(score: Any, b: Any, h: Any, q_idx: Any, kv_idx: Any) -> Any:
        return score * len(slopes) * slopes.shape[0] * slopes.size(0) + slopes[h]

    first = traced(computes)
    assert traced(computes)[0] is not first[0]
    slopes.fill_(3)
    again, (captured,) = traced(computes)
    assert again != first[0] and captured.tolist() == [6, 6]
    assert traced(reads_shapes)[0] is traced(reads_shapes)[0]


def test_functions_that_change_nothing_have_no_graph() -> None:
    found = trace_scores("flex_attention", lambda s, b, h, i, j: s, lambda b, h, i, j: b.new_ones(()))
    assert found.graph is None
    assert trace_scores("flex_attention", lambda s, b, h, i, j: s, None, keeps_score=True).graph is not None


def test_values_convert_as_torch_tensors_do() -> None:
    where = graph(lambda s, b, h, i, j: s + (i > j).float() + (i > j).int() + i.to(torch.float16) + i.long())
    assert where.count("where") == 2 and where.count("cast") == 2
    assert graph(None, lambda b, h, i, j: i.int() == DOCUMENT[j].long() // 2).count("cast") == 0
    assert graph(lambda s, b, h, i, j: s + BIAS[0][i] + PREFIX) == [
        "accum", "row", "element", "add", "element", "add",
    ]  # fmt: skip
    assert graph(None, lambda b, h, i, j: (i - j).bool() & DOCUMENT[i].type(torch.bool))[-1] == "logical_and"
    assert graph(lambda s, b, h, i, j: torch.where(i > j, s, -float("inf")))[-1] == "where"

    def typed(s: Any, b: Any, h: Any, i: Any, j: Any) -> Any:
        assert (s.dtype, i.dtype, (i > j).dtype) == (torch.float32, torch.int32, torch.bool)
        assert (i + 2**31).dtype == (DOCUMENT[i] * j).dtype == i.long().dtype == torch.int64
        assert DOCUMENT[i].int().dtype == torch.where(i > j, KINDS[i], 2).dtype == torch.int32
        return s + DOCUMENT[i].to(s.dtype)

    assert graph(typed)[-1] == "add"


def test_names_of_kernels_with_functions() -> None:
    found = trace_scores("flex_attention", alibi, causal).graph
    c = AttentionConfig("f16", 64, functions=found, tile_m=128, tile_n=64, block_m=128, block_n=64)
    assert f"functions_{found}" in c.name and c.name.endswith("bm128-bn64")
    assert config_named(c.name)._replace(functions=found) == c
    only = trace_scores("create_block_mask", None, causal).graph
    assert only is not None and "block_counts" in block_counts_text(only)


@pytest.mark.slow
@pytest.mark.parametrize("dynamic", [False, True])
def test_torch_compiles_functions_with_captured_tensors(dynamic: bool) -> None:
    """A function of the compiled region reads a parameter and a number; another number compiles another kernel."""
    torch.compiler.reset()
    mask = op.create_block_mask(causal, None, None, S, S, "cpu", 128)
    bias = torch.randn(1, 2 * S, generator=torch.Generator().manual_seed(2)).requires_grad_()

    def call(q: Any, k: Any, v: Any, factor: Any) -> Any:
        def score_mod(score: Any, b: Any, h: Any, q_idx: Any, kv_idx: Any) -> Any:
            return score + (bias * factor)[h, q_idx - kv_idx]

        out, lse = CALL(2 * q, k, v, score_mod, mask, return_lse=True, device="cpu")
        return out + 1, lse

    compiled = torch.compile(call, backend="aot_eager", fullgraph=True, dynamic=dynamic)
    for factor in (2, 3):
        leaves = [x.requires_grad_() for x in arrays(1, 1, 1)]
        found, wanted = compiled(*leaves, factor), call(*leaves, factor)
        grads = [torch.ones_like(x) for x in found]
        of = [torch.autograd.grad(x, [*leaves, bias], grads) for x in (found, wanted)]
        for x, y in zip((*found, *of[0]), (*wanted, *of[1])):
            assert x.dtype == y.dtype and x.stride() == y.stride()
            torch.testing.assert_close(x, y, rtol=1e-5, atol=1e-5)


@pytest.mark.slow
def test_torch_compiles_masks_and_calls_without_functions() -> None:
    def hides_nothing(b: Any, h: Any, q_idx: Any, kv_idx: Any) -> Any:
        return True

    q, k, v = (x[:, :, :64] for x in arrays(1, 1, 1))
    masks = [op.create_block_mask(f, None, None, 64, 64, "cpu", 64) for f in (causal, hides_nothing)]

    def call(q: Any, k: Any, v: Any) -> Any:
        found = [CALL(q, k, v, None, mask, device="cpu") for mask in masks]
        return [*found, CALL(q, k, v, lambda s, b, h, i, j: s, device="cpu"), CALL(q, k, v, scale=-0.5, device="cpu")]

    torch.compiler.reset()
    compiled = torch.compile(call, backend="eager", fullgraph=True)
    for x, y in zip(compiled(q, k, v), call(q, k, v)):
        assert torch.equal(x, y)


@pytest.mark.slow
@pytest.mark.end_to_end
def test_errors_in_torch_compile() -> None:
    q, k, v = (torch.zeros(1, 1, 64, 64, dtype=torch.float16, requires_grad=True) for _ in range(3))
    mask = torch_block_mask(causal, None, None, 64, 64, "cpu", 128)
    mask.q_num_blocks = None
    calls: list[tuple[dict[str, Any], str]] = [
        ({"block_mask": mask}, "the block mask has no q_num_blocks, which gradients need"),
        ({"score_mod": lambda s, b, h, i, j: s.cumsum(0)}, "cumsum"),
    ]
    for given, message in calls:
        torch.compiler.reset()
        call = torch.compile(functools.partial(CALL, device="cpu"), backend="aot_eager", fullgraph=True)
        with pytest.raises(Exception) as caught:
            call(**{"query": q, "key": k, "value": v, **given}).sum().backward()
        assert message in str(caught.value), str(caught.value)


# --------------------------------------------------------------------------------------------------------------- errors


def test_errors_of_functions() -> None:
    def branches(score: Any, b: Any, h: Any, q_idx: Any, kv_idx: Any) -> Any:
        return score if q_idx >= kv_idx else -float("inf")

    calls: list[tuple[Any, Any, str]] = [
        (branches, None, "use where(condition, x, y) to select per element"),
        (lambda s, b, h, i, j: s + BIAS, None, "a captured tensor of shape (2, 259) is an operand; index it"),
        (lambda s, b, h, i, j: s + BIAS[h], None, "has 1 index, but one element is needed; pass 2 indices"),
        (lambda s, b, h, i, j: s + BIAS[h, i, j], None, "has 3 indices; pass 2"),
        (lambda s, b, h, i, j: s + SLOPES[s], None, "an index of type float; use integers"),
        (lambda s, b, h, i, j: s + SLOPES.double()[h], None, "a captured tensor has dtype f64; it must have one of"),
        (lambda s, b, h, i, j: s.to(torch.float64), None, "conversion to f64 is not supported"),
        (lambda s, b, h, i, j: "s", None, "the result is a str; return a value computed from (score, b, h, q_idx"),
        (lambda s: s, None, "the function is called as score_mod(score, b, h, q_idx, kv_idx)"),
        (None, lambda b, h, i, j: torch.sort(i), "torch.sort cannot be traced"),
        (lambda s, b, h, i, j: s + SLOPES[h, i], None, "a captured tensor of shape (2,) has 2 indices; pass 1"),
        (lambda s, b, h, i, j: s + float(i), None, "but this one is computed by the kernel; use x.float()"),
        (lambda s, b, h, i, j: s + int(s), None, "but this one is computed by the kernel; use x.int()"),
        (3, None, "score_mod is of type int; pass a function score_mod(score, b, h, q_idx, kv_idx)"),
        (lambda s, b, h, i, j: s @ s, None, "for @: a traced value and a traced value; use arithmetic, comparisons"),
        (None, lambda b, h, i, j: i & 1, "an operand of & is int; pass bool values, such as comparisons (for bits"),
        (None, lambda b, h, i, j: (i > j) | h, "an operand of | is int; pass bool values"),
        (None, lambda b, h, i, j: torch.bitwise_and(i, 3), "an operand of & is int; pass bool values"),
        (None, lambda b, h, i, j: ~(i - j), "an operand of ~ is int; pass bool values"),
        (lambda s, b, h, i, j: s * (s ^ True), None, "an operand of ^ is float; pass bool values"),
        (None, lambda b, h, i, j: (i > j) & "s", "an operand of & is str; pass bool values"),
        (lambda s, b, h, i, j: s >> 1, None, ">> needs an integer and a constant from 0 to 30"),
        (lambda s, b, h, i, j: s + SLOPES.numpy()[h], None, "a NumPy array is indexed by, or combined with, a traced"),
        (lambda s, b, h, i, j: s + [0.5, 0.25][h], None, "to index by it, make a torch tensor of the list outside"),
        (None, lambda b, h, i, j: i < 2**63, "the constant 9223372036854775808 has more than 64 bits"),
    ]
    for score_mod, mask_mod, message in calls:
        with pytest.raises(EpilogueError) as caught:
            trace_scores("flex_attention", score_mod, mask_mod)
        assert message in str(caught.value), str(caught.value)
        assert str(caught.value).startswith("flex_attention: ") and "_Score'" not in str(caught.value)
    with pytest.raises(EpilogueError, match=r"score_mod branches \(.*test_flex_attention.py:\d+\): `if`"):
        trace_scores("flex_attention", branches, None)


def test_errors_of_arguments() -> None:
    q, k, v = (torch.zeros(1, 2, 130, 64, dtype=torch.float16) for _ in range(3))
    mask = torch_block_mask(causal, None, None, S, S, "cpu", 64)
    small = torch_block_mask(causal, None, None, 64, S, "cpu", 64)
    heads = torch_block_mask(causal, None, 3, S, S, "cpu", 64)
    odd = torch_block_mask(causal, None, None, S, S, "cpu", 32)
    wide = torch_block_mask(causal, None, None, S, S, "cpu", 64)
    wide.kv_num_blocks = wide.kv_num_blocks.long()
    calls: list[tuple[dict[str, Any], str]] = [
        ({"block_mask": causal}, "block_mask is a function; pass op.create_block_mask"),
        (
            {"block_mask": 3},
            "block_mask is of type int, without kv_num_blocks, kv_indices, BLOCK_SIZE; pass a BlockMask",
        ),
        ({"block_mask": odd}, "block_mask has BLOCK_SIZE (32, 32); use multiples of 64"),
        ({"block_mask": small}, "the block mask is for 64 queries and 130 keys, but the arrays have 130 and 130"),
        (
            {"block_mask": heads},
            "kv_num_blocks of the block mask has shape (1, 3, 3); a call with 1 sequences, 2 heads",
        ),
        ({"block_mask": wide}, "kv_num_blocks of the block mask has dtype i64; it must have i32"),
        ({"kernel_options": {}}, "kernel_options are those of Triton kernels"),
        ({"score_mod": mask}, "score_mod(score, b, h, q_idx, kv_idx); pass the mask as block_mask"),
        ({"return_aux": True}, "return_aux is True; pass torch's AuxRequest(lse=True)"),
        ({"scale": "1"}, "flex_attention: scale is '1'; pass a finite int or float"),
        ({"scale": float("nan")}, "flex_attention: scale is nan; pass a finite"),
        ({"query": [1.0]}, "flex_attention: query: "),
        ({"query": q[0]}, "flex_attention: query has shape (2, 130, 64); pass an array of rank 4"),
        ({"query": q.float()}, "flex_attention: query has dtype f32; it must have one of bf16, f16"),
        ({"value": v[:, :, :9]}, "flex_attention: value has shape (1, 2, 9, 64), but key has shape (1, 2, 130, 64)"),
        (
            {"query": q[:, [0, 0, 0]], "enable_gqa": True},
            "flex_attention: query has 3 heads and key has 2; pass query with a multiple of the heads of key",
        ),
        ({"query": q.clone().requires_grad_(), "key": k[:, :1], "enable_gqa": True}, "flex_attention: value has shape"),
        ({"key": k[:, :1], "value": v[:, :1]}, "pass equal numbers, or enable_gqa=True"),
        ({"block_mask": mask, "kernel": AttentionConfig("f16", 64, tile_m=128)}, "must divide the blocks of the mask"),
        ({"return_lse": "no"}, "flex_attention: return_lse is 'no'; pass True or False"),
        ({"enable_gqa": 2}, "flex_attention: enable_gqa is 2; pass True or False"),
        ({"softcap": 3}, "flex_attention() has no argument 'softcap'; return softcap * tanh(score / softcap) from"),
        ({"cu_seqlens_q": q}, "flex_attention() has no argument 'cu_seqlens_q'; use one sequence, with a mask_mod"),
        ({"mask_mod": causal}, "flex_attention() has no argument 'mask_mod'; use block_mask=op.create_block_mask(mask"),
    ]
    for given, message in calls:
        with pytest.raises(OpError) as caught:
            CALL(**{"query": q, "key": k, "value": v, "device": "cpu", **given})
        assert message in str(caught.value), str(caught.value)
    plain: dict[str, Any] = {"mask_mod": causal, "B": 1, "H": 1, "Q_LEN": 9, "KV_LEN": 9, "device": "cpu"}
    for more, message in (
        ({"BLOCK_SIZE": 96}, "BLOCK_SIZE is 96; use multiples of 64"),
        ({"Q_LEN": 0}, "Q_LEN is 0; pass an integer of 1 or more"),
        ({"Q_LEN": "70"}, "Q_LEN is '70'; pass an integer of 1 or more"),
        ({"KV_LEN": 70.0}, "KV_LEN is 70.0; pass an integer of 1 or more"),
        ({"B": 0}, "B is 0; pass an integer of 1 or more, or None for a mask that all share"),
        ({"H": -1}, "H is -1; pass an integer of 1 or more, or None"),
        ({"BLOCK_SIZE": 64.0}, "BLOCK_SIZE is 64.0; use multiples of 64"),
        ({"BLOCK_SIZE": (64, 64, 64)}, "BLOCK_SIZE is (64, 64, 64); use multiples of 64, one or two"),
        ({"device": "tpu"}, "create_block_mask: device: "),
        ({"separate_full_blocks": "no"}, "create_block_mask: separate_full_blocks is 'no'; pass True or False"),
        ({"steps": 1}, "create_block_mask() has no argument 'steps'"),
    ):  # fmt: skip
        with pytest.raises(OpError) as caught:
            CREATE(**{**plain, **more})
        assert message in str(caught.value), str(caught.value)
