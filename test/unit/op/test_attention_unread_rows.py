"""Rows that attention must not depend on: results and gradients have the same bits with NaN and with zeros there."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")

from cute_dialect import op  # noqa: E402

CPU: dict[str, Any] = {"device": "cpu"}


def filled(rows: int, heads: int, used: Any, other: float, seed: int) -> Any:
    """Return packed (rows, heads, 64) with random values in the used rows and ``other`` in the rest."""
    found = torch.full((rows, heads, 64), other).half()
    values = torch.randn(rows, heads, 64, generator=torch.Generator().manual_seed(seed)).half()
    found[used] = values[used]
    return found


@pytest.mark.slow
@pytest.mark.parametrize("causal", [False, "bottom_right"])
def test_rows_past_the_packed_sequences(causal: Any) -> None:
    """Rows after the last sequence, of q, k, v and the gradients of the results."""
    begins_q, begins_k = (torch.tensor(x, dtype=torch.int32) for x in ([0, 30, 30, 101], [0, 40, 45, 130]))
    how: dict[str, Any] = {
        "cu_seqlens_q": begins_q, "cu_seqlens_k": begins_k, "max_seqlen_q": 71, "max_seqlen_k": 85, "causal": causal,
        **CPU,
    }  # fmt: skip

    def run(other: float) -> list[Any]:
        q, grad = (filled(120, 4, slice(0, 101), other, seed) for seed in (0, 3))
        k, v = (filled(150, 2, slice(0, 130), other, seed) for seed in (1, 2))
        out, lse = op.attention(q, k, v, lse=True, **how)
        of_lse = torch.full_like(lse, other)
        of_lse[:, :101] = torch.linspace(-1, 1, 101)
        out[101:], lse[:, 101:] = other, other
        found = op.attention_backward(grad, q, k, v, out, lse, of_lse, deterministic=True, **how)
        return [out[:101], lse[:, :101], found[0][:101], *(x[:130] for x in found[1:3])]

    for x, y in zip(run(float("nan")), run(0.0), strict=True):
        assert bool(x.isfinite().all()) and torch.equal(x, y)
        assert bool(x.any())


@pytest.mark.slow
@pytest.mark.parametrize("page", [1, 16, 64])
def test_pages_that_sequences_share(page: int) -> None:
    """Two sequences begin with the same pages of a prompt, and one page is in no table."""
    prompt, own = 64, 30
    lengths, shared = [prompt + own, prompt + 7], prompt // page
    most = -(-lengths[0] // page)
    order = torch.randperm(2 * most + 1, generator=torch.Generator().manual_seed(page)).int()
    table = torch.full((2, most), -1, dtype=torch.int32)
    table[:, :shared] = order[:shared]
    for b, length in enumerate(lengths):
        n = -(-length // page)
        table[b, shared:n] = order[shared + b * most : b * most + n]
    keys, values = (torch.full((2 * most + 1, page, 2, 64), float("nan")).half() for _ in range(2))
    rows = torch.randn(2, 2, prompt + own, 2, 64).half()  # of keys and values, of sequences
    rows[:, 1, :prompt] = rows[:, 0, :prompt]
    for cache, x in ((keys, rows[0]), (values, rows[1])):
        for b, length in enumerate(lengths):
            for j in range(length):
                cache[table[b, j // page], j % page] = x[b, j]
    q, used = torch.randn(2, 3, 4, 64).half(), torch.tensor(lengths, dtype=torch.int32)
    how: dict[str, Any] = {"causal": "bottom_right", "layout": "bshd", **CPU}
    found = op.attention(q, keys, values, page_table=table, seqused_k=used, **how)
    for b, length in enumerate(lengths):
        k, v = (x[b : b + 1, :length].repeat_interleave(2, 2).double().transpose(1, 2) for x in rows)
        scores = q[b : b + 1].double().transpose(1, 2) @ k.mT / 8
        scores += torch.full((3, length), -torch.inf).triu(length - 2)
        want = (scores.softmax(-1) @ v).transpose(1, 2)
        assert float((found[b : b + 1] - want).abs().max()) < 2e-3


@pytest.mark.slow
@pytest.mark.parametrize("autocast", [False, True])
def test_checkpoints_compute_the_same_gradients(autocast: bool) -> None:
    """The forward pass that ``torch.utils.checkpoint`` repeats drops the same probabilities."""
    from torch.utils.checkpoint import checkpoint

    torch.manual_seed(2)
    kind = torch.float32 if autocast else torch.float16
    x = torch.randn(1, 2, 40, 64, dtype=kind)
    w = torch.nn.Parameter(torch.randn(64, 64, dtype=kind) / 8)

    def layer(x: Any) -> Any:
        y = op.linear(x, w, **CPU)
        return op.linear(op.attention(y, y, y, causal=True, dropout_p=0.3, **CPU), w, **CPU)

    def gradients(call: Any) -> list[Any]:
        leaf = x.clone().requires_grad_()
        torch.manual_seed(7)
        with torch.autocast("cpu", torch.bfloat16, enabled=autocast):
            y = call(leaf)
        return [y, *torch.autograd.grad(y.float().square().sum(), (leaf, w))]

    want = gradients(layer)
    found = gradients(lambda leaf: checkpoint(layer, leaf, use_reentrant=False))
    assert all([torch.equal(a, b) for a, b in zip(found, want, strict=True)])
    assert all([bool(a.any()) for a in want])
