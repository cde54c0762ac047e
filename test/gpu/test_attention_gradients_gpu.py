"""Gradients of attention on the GPU: random calls, compiled on the GPU machine, compared with float64."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from attention_gradients import drawn, exact, inputs  # noqa: E402

from cute_dialect import op  # noqa: E402


def error_of(seed: int, most: int) -> tuple[str, float]:
    """Return a random call and the largest error of its gradients, relative to their norms."""
    call = drawn(seed, most, (64, 128))
    dtype = (torch.float16, torch.bfloat16)[seed % 2]
    given, begins = inputs(call, dtype, "cuda", seed)
    out, lse = op.attention(*given, lse=True, **begins, **call.options())
    torch.manual_seed(seed)
    grad, grad_lse = torch.randn_like(out), torch.randn_like(lse) if call.of_lse else None
    results = [(out, grad)] if grad_lse is None else [(out, grad), (lse, grad_lse)]
    leaves = list({id(x): x for x in given}.values())
    found = torch.autograd.grad([x for x, _ in results], leaves, [g for _, g in results])
    want = exact(call, given, grad, grad_lse)
    # A gradient may cancel to almost zero, so its error is relative to at least 5 % of the largest norm.
    scale = max(float(y.norm()) for y in want)
    errors = [float((x.cpu().double() - y).norm()) / max(float(y.norm()), 0.05 * scale, 1e-6)
              for x, y in zip(found, want, strict=True)]  # fmt: skip
    worst = max(errors)
    finite = all(bool(x.isfinite().all()) for x in found)
    return f"{call} {dtype}", worst if finite else float("inf")


@pytest.mark.parametrize("seed", range(60))
def test_random_calls(seed: int) -> None:
    call, error = error_of(seed, 150)
    assert error < (2e-2 if seed % 2 else 4e-3), (call, error)
