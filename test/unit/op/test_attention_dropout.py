"""Dropout of attention on the interpreter: the same elements are dropped forward, backward and in the mask function."""

from __future__ import annotations

import math
from typing import Any
from unittest.mock import patch

import ml_dtypes
import numpy as np
import pytest

torch = pytest.importorskip("torch")

from launched_here import Seen, here  # noqa: E402

from cute_dialect import flash_attn, op  # noqa: E402
from cute_dialect.kernels.attention.backward_config import BackwardConfig  # noqa: E402
from cute_dialect.kernels.attention.config import AttentionConfig, config_named  # noqa: E402
from cute_dialect.op.execute.call_cache import KnownCalls  # noqa: E402
from cute_dialect.op.functions import attention as attention_calls  # noqa: E402

CHECKS = ("race", "uninit", "sync", "oob")
STATE = torch.tensor([1234567890123456789, -7])


def normal(*shape: int, seed: int = 0) -> Any:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed + sum(shape))).half()


def philox(counter: list[int], key: list[int], rounds: int) -> list[int]:
    """Philox 4x32, as Salmon et al. define it."""
    c, k = list(counter), list(key)
    for _ in range(rounds):
        a, b = c[0] * 0xD2511F53, c[2] * 0xCD9E8D57
        c = [(b >> 32) ^ c[1] ^ k[0], b % 2**32, (a >> 32) ^ c[3] ^ k[1], a % 2**32]
        k = [(k[0] + 0x9E3779B9) % 2**32, (k[1] + 0xBB67AE85) % 2**32]
    return c


def test_bits_are_those_of_philox() -> None:
    """Known answers of Random123, and each element of a mask by the formula of its module."""
    assert philox([0] * 4, [0] * 2, 7) == [0x5F6FB709, 0x0D893F64, 0x4F121F81, 0x4F730A48]
    assert philox([2**32 - 1] * 4, [2**32 - 1] * 2, 7) == [0x5207DDC2, 0x45165E59, 0x4D8EE751, 0x8C52F662]
    seed, offset = (int(x) % 2**64 for x in STATE)
    found = op.attention_dropout_mask(STATE, 0.4, (2, 3, 40, 37))
    for b, h, i, j in np.random.default_rng(0).integers(0, (2, 3, 40, 37), (400, 4)).tolist():
        counter = [j // 16 * 4 + j % 8 // 2, i // 16 * 8 + i % 8, b * 3 + h, offset % 2**32]
        word = philox(counter, [seed % 2**32, seed // 2**32], 7)[j // 8 % 2 * 2 + i // 8 % 2]
        assert bool(found[b, h, i, j]) == ((word >> j % 2 * 16) % 2**15 >= round(0.4 * 2**15))
    assert np.array_equal(op.attention_dropout_mask(STATE.numpy(), 0.4, (2, 3, 40, 37)), found)


@pytest.mark.parametrize("p", [0.0, 0.001, 0.1, 0.5, 0.97, 1.0])
def test_share_of_dropped_elements(p: float) -> None:
    """Shares of elements, of pairs of neighbours, and of rows and columns are within some standard deviations."""
    n = 128
    kept = op.attention_dropout_mask(STATE, p, (1, 2, n, n)).double()

    def is_near(found: Any, share: float, count: int, limit: float) -> bool:
        return bool((found - share).abs().max() <= limit * math.sqrt(share * (1 - share) / count) + 2**-15)

    assert is_near(kept.mean(), 1 - p, 2 * n * n, 4)
    pairs = kept[..., ::2] * kept[..., 1::2], kept[..., ::2, :] * kept[..., 1::2, :], kept[:, 0] * kept[:, 1]
    assert all([is_near(x.mean(), (1 - p) ** 2, n * n, 4) for x in pairs])
    assert all([is_near(kept.mean(i), 1 - p, n, 6) for i in (-1, -2)])
    for other in (STATE + 1, STATE + torch.tensor([0, 1]), STATE + torch.tensor([1 << 32, 0])):
        same = op.attention_dropout_mask(other, p, (1, 2, n, n)) == (kept > 0)
        assert is_near(same.double().mean(), p * p + (1 - p) ** 2, 2 * n * n, 4)


def exact(q: Any, k: Any, v: Any, p: float, hidden: Any = None) -> tuple[Any, Any]:
    """Return attention of (B, H, S, D) in float64, and its log-sum-exp."""
    share = q.shape[1] // k.shape[1]
    scores = q @ k.repeat_interleave(share, 1).mT * q.shape[-1] ** -0.5
    scores = scores if hidden is None else scores.masked_fill(hidden, -math.inf)
    kept = op.attention_dropout_mask(STATE, p, tuple(scores.shape)) / (1 - round(p * 2**15) / 2**15)
    return (scores.softmax(-1) * kept) @ v.repeat_interleave(share, 1), scores.logsumexp(-1)


def error(found: Any, want: Any) -> float:
    return float((found.double() - want).abs().max() / want.abs().max())


@pytest.mark.slow
@pytest.mark.end_to_end  # Kernels of attention are compiled and run.
@pytest.mark.sample("1")
@pytest.mark.parametrize("heads", [1, 2])
def test_the_kernels_drop_the_elements_of_the_mask(heads: int) -> None:
    """With values of the identity the result has the probabilities, and with such a gradient dv has them."""
    q, k, one = normal(1, heads, 37, 64), normal(1, 1, 64, 64, seed=1), torch.eye(64).half()[None, None]
    kept = op.attention_dropout_mask(STATE, 0.3, (1, heads, 37, 64))
    more: dict[str, Any] = {"dropout_p": 0.3, "rng_state": STATE, "device": "cpu", "checks": CHECKS}
    tiles = AttentionConfig("f16", 64, tile_m=64, tile_n=32)  # a short kernel
    out, lse = op.attention(q, k, one, lse=True, kernel=tiles, **more)
    assert torch.equal(out != 0, kept)
    want, logs = exact(q.double(), k.double(), one.double(), 0.3)
    assert error(out, want) < 1e-3 and error(lse, logs) < 1e-6
    rows = torch.zeros_like(out)
    rows[0, 0, :, :37] = torch.eye(37).half()  # the second head adds nothing
    _, _, dv = op.attention_backward(
        rows, q, k, one, out, lse, kernel=BackwardConfig("f16", 64, tile_m=64, tile_n=64), **more
    )
    assert torch.equal(dv[0, 0, :, :37].mT != 0, kept[0, 0])
    assert error(dv[0, 0, :, :37].mT, want[0, 0]) < 2e-3


CASES: list[tuple[tuple[int, ...], int, float, dict[str, Any], dict[str, Any]]] = [
    # batch, heads, key heads, queries, keys; head size; probability; mask; options
    ((1, 4, 2, 70, 200), 64, 0.3, {}, {"schedule": "random"}),
    ((1, 2, 1, 139, 160), 128, 0.1, {"causal": True}, {"schedule": "adversarial"}),
    ((1, 1, 1, 139, 160), 40, 0.1, {"causal": True}, {"deterministic": True}),
    ((2, 1, 1, 70, 100), 256, 0.5, {}, {"schedule": "reverse"}),
    ((1, 2, 2, 130, 100), 192, 0.25, {"window": (30, 20)}, {}),
    ((1, 2, 2, 130, 100), 96, 0.999, {}, {"deterministic": True}),
    ((1, 2, 1, 3, 300), 128, 0.2, {}, {}),
]


@pytest.mark.slow
@pytest.mark.parametrize(("shape", "size", "p", "given", "options"), CASES)
def test_gradients(shape: Any, size: int, p: float, given: Any, options: Any) -> None:
    """Forward and backward equal float64 with the mask, by kernels and by matmuls."""
    batch, heads, key_heads, queries, keys = shape
    q, grad = (normal(batch, heads, queries, size, seed=i) for i in (0, 3))
    k, v = (normal(batch, key_heads, keys, size, seed=i) for i in (1, 2))
    grad_lse = normal(batch, heads, queries, seed=4).float()
    own, at = torch.arange(queries)[:, None], torch.arange(keys)[None]
    left, right = given.get("window", (10**6, 0 if given else 10**6))
    hidden = (at < own - left) | (at > own + right)
    leaves = [x.double().requires_grad_() for x in (q, k, v)]
    want, logs = exact(*leaves, p, hidden)
    wanted = torch.autograd.grad((want, logs), leaves, (grad.double(), grad_lse.double()))
    more: dict[str, Any] = {"dropout_p": p, "rng_state": STATE, "device": "cpu", **given}
    out, lse = op.attention(q, k, v, lse=True, checks=CHECKS, **more)
    assert error(out, want.detach()) < 1e-3
    found = op.attention_backward(grad, q, k, v, out, lse, grad_lse, checks=CHECKS, **more, **options)
    assert max(map(error, found, wanted)) < 1.5e-3
    leaves = [x.requires_grad_() for x in (q, k, v)]
    again = op.attention(*leaves, lse=True, **more)
    assert torch.equal(again[0], out)
    assert max(map(error, torch.autograd.grad(again, leaves, (grad, grad_lse)), wanted)) < 1e-3


@pytest.mark.slow
def test_packed_sequences_and_slices_of_keys() -> None:
    """Each packed sequence drops what it would drop as a sequence of a batch; slices of keys change nothing."""
    begins, heads = torch.tensor([0, 20, 20, 90], dtype=torch.int32), 2
    q, k, v = (normal(90, n, 64, seed=i) for i, n in enumerate((heads, 1, 1)))
    more: dict[str, Any] = {"dropout_p": 0.4, "rng_state": STATE, "causal": "bottom_right", "lse": True}
    sizes: dict[str, Any] = {"cu_seqlens_q": begins, "cu_seqlens_k": begins, "max_seqlen_q": 70}
    leaves = [x.requires_grad_() for x in (q, k, v)]
    out, lse = op.attention(*leaves, **more, **sizes, device="cpu")
    grad, kept = torch.randn_like(out), op.attention_dropout_mask(STATE, 0.4, (3, heads, 70, 70))
    found = torch.autograd.grad(out, leaves, grad)
    sizes["max_seqlen_k"] = 70
    more = {**more, **sizes, "device": "cpu"}
    more.pop("lse")
    given = [x.detach() for x in (grad, q, k, v, out, lse)]
    kernels = op.attention_backward(*given, **more, checks=CHECKS, schedule="random")
    for n, (i, j) in enumerate(((0, 20), (20, 90))):
        a, b, c = (x.detach()[i:j].transpose(0, 1).double().requires_grad_() for x in (q, k, v))
        scores = (a @ b.mT * 64**-0.5).masked_fill(torch.ones(j - i, j - i).triu(1) > 0, -math.inf)
        share = kept[2 * n, :, : j - i, : j - i] / (1 - round(0.4 * 2**15) / 2**15)
        want = scores.softmax(-1) * share @ c
        wanted = torch.autograd.grad(want, (a, b, c), grad[i:j].transpose(0, 1).double())
        assert error(out.detach()[i:j].transpose(0, 1), want.detach()) < 1e-3
        for x, y, z in zip(found, kernels, wanted, strict=True):
            assert error(x[i:j].transpose(0, 1), z) < 1e-3 and error(y[i:j].transpose(0, 1), z) < 2e-3
    q, k = normal(1, 1, 9, 64), normal(1, 1, 300, 64)
    both = [op.attention(q, k, k, dropout_p=0.4, rng_state=STATE, device="cpu", split_keys=n) for n in (1, 3)]
    want, _ = exact(q.double(), k.double(), k.double(), 0.4)
    assert max([error(x, want) for x in both]) < 1e-3


@pytest.mark.slow
def test_states_follow_the_generator_of_torch() -> None:
    """Calls, also cached ones, draw new states, which ``torch.manual_seed`` repeats."""
    q, known = normal(1, 1, 16, 64), KnownCalls()
    found: list[Any] = []
    with here(Seen()) as seen, patch.object(attention_calls, "_KNOWN", known):
        for _ in range(2):
            torch.manual_seed(5)
            found += [op.attention(q, q, q, dropout_p=0.5, lse=True)[0] for _ in range(2)]
    assert seen.first == 1 and seen.again == 3 and len(known) == 1
    assert torch.equal(found[0], found[2]) and torch.equal(found[1], found[3])
    assert not torch.equal(found[0], found[1])
    torch.manual_seed(5)
    state = torch.randint(1 << 62, (2,))
    explicit, _ = op.attention(q, q, q, dropout_p=0.5, rng_state=state, lse=True, device="cpu")
    assert torch.equal(explicit, found[0])


@pytest.mark.slow
def test_other_functions_draw_the_same_states() -> None:
    q = normal(1, 1, 16, 64)
    torch.manual_seed(5)
    explicit = op.attention(q, q, q, dropout_p=0.5, device="cpu")
    torch.manual_seed(5)
    assert torch.equal(op.scaled_dot_product_attention(q, q, q, dropout_p=0.5, device="cpu"), explicit)
    torch.manual_seed(5)
    turned = q.transpose(1, 2)
    assert torch.equal(flash_attn.flash_attn_func(turned, turned, turned, 0.5).transpose(1, 2), explicit)


@pytest.mark.slow
def test_torch_operator() -> None:
    """``torch.compile`` draws the state outside of the operator, and its gradients use the same one."""
    q = normal(1, 1, 16, 64).requires_grad_()

    def loss(x: Any) -> Any:
        return op.attention(x, x, x, dropout_p=0.5, device="cpu").float().square().sum()

    compiled = torch.compile(loss, fullgraph=True, backend="aot_eager")
    results: list[tuple[Any, Any]] = []
    for function in (loss, compiled):
        torch.manual_seed(7)
        found = function(q)
        results.append((found.detach(), torch.autograd.grad(found, q)[0]))
    assert torch.equal(results[0][0], results[1][0]) and torch.equal(results[0][1], results[1][1])


@pytest.mark.slow
def test_a_plan() -> None:
    q, k = normal(1, 2, 20, 64).numpy(), normal(1, 1, 30, 64).numpy()
    plan = op.Attention(element="f16", head_size=64, dropout_p=0.25, lse=True)
    assert "-dropout-" in plan.explain(q, k).kernels[0].name and "with dropout" in str(plan.explain(q, k))
    np.random.seed(1)
    first = plan.run(q, k, k, device="cpu")
    np.random.seed(1)
    state = np.random.randint(0, 1 << 62, 2, dtype="int64")
    want, logs = plan.reference(q, k, k, rng_state=state)
    assert np.abs(first.out - want).max() < 2e-3 and np.abs(first.lse - logs).max() < 1e-5
    assert op.Attention.of_settings(plan.settings()).settings() == plan.settings()


def test_names_of_kernels() -> None:
    c = AttentionConfig(dropout=True, lse=True)
    assert c.name == "attention-bf16-128-full-lse-dropout-128x176" and config_named(c.name) == c
    with pytest.raises(ValueError, match="dropout=True needs pack=False and elements"):
        c._replace(pack=True).check()
    few = op.explain(op.attention, (1, 32, 4, 128), (1, 4, 4096, 128), dropout_p=0.1)
    assert not few.config.pack and few.config.dropout
    found = op.explain(op.attention_backward, (1, 2, 64, 64), (1, 2, 64, 64), dropout_p=0.1)
    assert [("dropout" in kernel.name) for kernel in found.kernels] == [False, True, False]


Q = np.zeros((1, 2, 8, 64), np.float16)
TABLE, BYTES = np.zeros((1, 1), np.int32), np.zeros((1, 2, 8, 64), ml_dtypes.float8_e4m3fn)


@pytest.mark.parametrize(
    ("given", "error", "words"),
    [
        ({"dropout_p": 1.5}, op.UnsupportedError, "attention: dropout_p is 1.5; pass a probability from 0 to 1"),
        ({"dropout_p": "0.1"}, op.UnsupportedError, "dropout_p is '0.1'; pass a probability"),
        ({"dropout_p": True}, op.UnsupportedError, "dropout_p is True; pass a probability"),
        ({"rng_state": np.zeros(2, np.int32)}, op.DtypeError, "rng_state has dtype i32; pass an i64 array"),
        ({"rng_state": np.zeros(3, np.int64)}, op.ShapeError, r"rng_state has shape \(3,\); pass a seed and an offset"),
        ({"rng_state": np.zeros(4, np.int64)[::2]}, op.LayoutError, r"rng_state has strides \(2,\); pass a contiguous"),
        ({"page_table": TABLE}, op.UnsupportedError, "dropout_p cannot be combined with page_table; pass dropout_p=0"),
        ({"q": BYTES, "k": BYTES, "v": BYTES}, op.UnsupportedError, "dropout_p is not supported for q of f8E4M3FN"),
        ({"dropout": 0.1}, op.ArgumentError, "'dropout'; use dropout_p"),
        ({"generator": 0.1}, op.ArgumentError, "'generator'; use rng_state"),
    ],
)
def test_errors(given: dict[str, Any], error: type[op.OpError], words: str) -> None:
    arguments: dict[str, Any] = {"q": Q, "k": Q, "v": Q, "dropout_p": 0.1, **given}
    with pytest.raises(error, match=words):
        op.attention(**arguments, device="cpu")


def test_errors_of_other_functions() -> None:
    with pytest.raises(op.ShapeError, match="rng_state is None; pass that of the forward call, an i64 array"):
        op.attention_backward(Q, Q, Q, Q, Q, np.zeros((1, 2, 8), np.float32), dropout_p=0.1, device="cpu")
    with pytest.raises(op.ShapeError, match=r"rng_state has shape \(3,\) and shape is \(1, 2, 3\); pass \(2,\), and"):
        op.attention_dropout_mask(np.zeros(3, np.int64), 0.1, (1, 2, 3))  # pyright: ignore[reportArgumentType]
    for state in ([7, 0], 7, np.zeros(2, np.int32)):
        with pytest.raises(op.DtypeError, match=r"rng_state is of type .*; pass a torch or numpy array .* of i64"):
            op.attention_dropout_mask(state, 0.1, (1, 1, 2, 2))
    for shape in ((1, 1, -2, 2), (1, 1, 2.0, 2), 4):
        with pytest.raises(op.ShapeError, match=r"shape is .*; pass .* four extents .* of 0 or more"):
            op.attention_dropout_mask(np.zeros(2, np.int64), 0.1, shape)  # pyright: ignore[reportArgumentType]
    signed = np.array([-7, 3])
    want = op.attention_dropout_mask(signed, 0.5, (1, 1, 8, 8))
    for state in (signed.view(np.uint64), torch.from_numpy(signed).view(torch.uint64)):
        assert np.array_equal(np.asarray(op.attention_dropout_mask(state, 0.5, (1, 1, 8, 8))), want)
    with pytest.raises(op.UnsupportedError, match="return_debug_mask is not supported by the CUTE backend; pass False"):
        flash_attn.sdpa_forward(*[torch.from_numpy(Q)] * 3, 0.1, False, True)
