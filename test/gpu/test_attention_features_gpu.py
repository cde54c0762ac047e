"""Attention on the GPU with functions of scores and on pages, compiled on the GPU machine, compared with float64."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")

from cute_dialect import op  # noqa: E402

BF16, F16 = torch.bfloat16, torch.float16


def normal(*shape: int, dtype: Any = BF16) -> Any:
    return torch.randn(*shape, device="cuda", dtype=dtype)


def check(result: Any, logs: Any, want: Any, want_logs: Any) -> None:
    """Compare results, and logarithms that may be minus infinity."""
    error = float((result.double().cpu() - torch.as_tensor(want)).abs().max())
    assert error < (2e-2 if result.dtype == BF16 else 3e-3), error
    same = logs.double().cpu() == torch.as_tensor(want_logs)
    assert float(torch.where(same, 0.0, (logs.double().cpu() - torch.as_tensor(want_logs)).abs()).max()) < 1e-4


@pytest.mark.parametrize(
    ("sizes", "options", "arrays"),
    [
        # batch, heads, key heads, queries, keys, head size, head size of v
        ((2, 8, 2, 515, 700, 128, 128), {"causal": "bottom_right", "scale": -0.2}, ()),
        ((2, 8, 8, 377, 377, 64, 64), {"causal": True, "softcap": 3.0}, ("alibi_slopes",)),
        ((2, 8, 8, 513, 640, 128, 64), {}, ("mask", "sinks")),
        ((1, 4, 4, 300, 315, 256, 256), {"window": (100, 20)}, ("bias",)),
        ((2, 12, 4, 7, 1000, 64, 128), {"causal": "bottom_right"}, ("alibi_slopes", "sinks")),
        ((2, 16, 2, 1, 5000, 128, 128), {"softcap": 5.0}, ("sinks",)),
    ],
)
def test_functions_of_scores(sizes: Any, options: dict[str, Any], arrays: tuple[str, ...]) -> None:
    torch.manual_seed(0)
    b, h, hk, m, n, d, dv = sizes
    q, k, v = normal(b, h, m, d, dtype=F16), normal(b, hk, n, d, dtype=F16), normal(b, hk, n, dv, dtype=F16)
    made = {
        "alibi_slopes": torch.rand(b, h, device="cuda") * 0.1, "sinks": normal(h, dtype=torch.float32),
        "mask": torch.rand(m, n, device="cuda") > 0.5, "bias": normal(1, h, m, n, dtype=torch.float32),
    }  # fmt: skip
    given = {"mask" if name == "bias" else name: made[name] for name in arrays}
    result, logs = op.attention(q, k, v, lse=True, **options, **given)
    plan = op.Attention(element="f16", head_size=d, lse=True, **options)
    on_cpu = {name: x.cpu().numpy() for name, x in given.items()}
    check(result, logs, *plan.reference(q, k, v, **on_cpu))


@pytest.mark.parametrize("page", [1, 8, 12, 16, 64, 128])
@pytest.mark.parametrize("queries", [1, 5])
def test_pages(page: int, queries: int) -> None:
    """Memory past the end of a sequence is NaN, and table entries there are -1."""
    torch.manual_seed(0)
    lengths, most = [700, 1, 0, 333], -(-700 // page)
    caches = [torch.full((4 * most, page, 2, 128), float("nan"), device="cuda", dtype=BF16) for _ in range(2)]
    sequences = [normal(4, 700, 2, 128) for _ in caches]
    order = torch.randperm(4 * most).reshape(4, most)
    table = torch.full((4, most), -1, dtype=torch.int32)
    for b, length in enumerate(lengths):
        for j in range(0, length, page):
            table[b, j // page] = order[b, j // page]
            for cache, rows in zip(caches, sequences):
                cache[order[b, j // page], : length - j] = rows[b, j : min(length, j + page)]
    q, used = normal(4, queries, 8, 128), torch.tensor(lengths, dtype=torch.int32, device="cuda")
    result, logs = op.attention(
        q, *caches, seqused_k=used, page_table=table.cuda(), causal="bottom_right", layout="bshd", lse=True
    )
    plan = op.Attention(element="bf16", head_size=128, causal="bottom_right", lse=True)
    for b, length in enumerate(lengths):
        turned = [x[b : b + 1, :n].transpose(1, 2) for x, n in zip((q, *sequences), (queries, length, length))]
        check(result[b : b + 1].transpose(1, 2), logs[b : b + 1], *plan.reference(*turned))


@pytest.mark.parametrize(
    ("sizes", "options", "kind", "dtype"),
    [
        # batch, heads, key heads, queries, keys, head size
        ((2, 8, 2, 515, 700, 128), {"causal": "bottom_right"}, torch.float8_e4m3fn, BF16),
        ((2, 48, 48, 1030, 1000, 128), {}, torch.float8_e4m3fn, BF16),
        ((2, 8, 8, 377, 377, 64), {"causal": True, "softcap": 3.0}, torch.float8_e4m3fn, F16),
        ((1, 4, 4, 300, 315, 256), {"window": (100, 20)}, torch.float8_e5m2, torch.float32),
        ((2, 12, 4, 7, 1000, 64), {"causal": "bottom_right"}, torch.float8_e4m3fn, BF16),
        ((2, 16, 2, 1, 5000, 128), {}, torch.float8_e4m3fn, BF16),
    ],
)
def test_8_bit_floats(sizes: Any, options: dict[str, Any], kind: Any, dtype: Any) -> None:
    """A repeated call and a CUDA graph give the same bits."""
    torch.manual_seed(0)
    b, h, hk, m, n, d = sizes
    q, k, v = (normal(b, heads, rows, d).to(kind) for heads, rows in ((h, m), (hk, n), (hk, n)))
    factors = [torch.rand(b, hk, device="cuda") + 0.5 for _ in range(3)]
    given = dict(zip(("q_descale", "k_descale", "v_descale"), factors))
    result = op.attention(q, k, v, dtype=dtype, **options, **given)
    plan = op.Attention(element=kind, head_size=d, dtype=dtype, **options)
    want = torch.as_tensor(plan.reference(q, k, v, descales=factors))
    assert result.dtype == dtype and float((result.double().cpu() - want).norm() / want.norm()) < 0.04
    assert torch.equal(result, op.attention(q, k, v, dtype=dtype, **options, **given))
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        again = op.attention(q, k, v, dtype=dtype, **options, **given)
    again.zero_()
    graph.replay()
    assert torch.equal(result, again)


@pytest.mark.parametrize("page", [16, 64, 256])
def test_8_bit_pages(page: int) -> None:
    """Memory past the end of a sequence is NaN."""
    torch.manual_seed(0)
    lengths, most, kind = [700, 300], -(-700 // page), torch.float8_e4m3fn
    caches = [torch.full((2 * most, page, 2, 128), float("nan"), device="cuda").to(kind) for _ in range(2)]
    sequences = [normal(2, 700, 2, 128).to(kind) for _ in caches]
    table = torch.randperm(2 * most).reshape(2, most).int()
    for b, length in enumerate(lengths):
        for j in range(0, length, page):
            for cache, rows in zip(caches, sequences):
                cache.view(torch.uint8)[table[b, j // page], : length - j] = rows.view(torch.uint8)[
                    b, j : min(length, j + page)
                ]
    q, used = normal(2, 5, 8, 128).to(kind), torch.tensor(lengths, dtype=torch.int32, device="cuda")
    result = op.attention(q, *caches, seqused_k=used, page_table=table.cuda(), causal="bottom_right", layout="bshd")
    plan = op.Attention(element=kind, head_size=128, causal="bottom_right")
    for b, length in enumerate(lengths):
        turned = [x[b : b + 1, :n].transpose(1, 2) for x, n in zip((q, *sequences), (5, length, length))]
        want = torch.as_tensor(plan.reference(*turned))
        assert float((result[b : b + 1].transpose(1, 2).double().cpu() - want).norm() / want.norm()) < 0.04
