"""Steps of ``op.adamw_`` on the GPU, replayed in Python and in C++, compared with ``torch.optim.AdamW(fused=True)``."""

# pyright: basic

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="NOT RUN: torch is not installed")

from cute_dialect import op  # noqa: E402
from cute_dialect.op.execute import pointer_arrays  # noqa: E402
from cute_dialect.op.execute.call_cache import forget_calls  # noqa: E402
from cute_dialect.op.functions.optimizers import CALLS  # noqa: E402
from cute_dialect.runtime import native  # noqa: E402

HOW: dict[str, Any] = {"lr": 0.02, "eps": 1e-6, "weight_decay": 0.1}
SHAPES = [(64, 100), (5000,), (3,), (0, 4), (128, 512)] * 20


@pytest.fixture(autouse=True, params=[False, True], ids=["python", "native"])
def replay(request: pytest.FixtureRequest) -> Iterator[None]:
    before = native._State.module, native._State.is_prepared
    native._State.module, native._State.is_prepared = None, True
    if request.param:
        try:
            native.build()
        except native.BuildError as e:
            pytest.skip(f"NOT RUN: {e}")
    forget_calls()
    yield
    native._State.module, native._State.is_prepared = before
    forget_calls()


def lists_of(dtype: Any) -> tuple[list[list[Any]], Any]:
    """Return parameters, gradients and moments, and torch's optimizer of copies of the parameters."""
    params = [torch.randn(s, device="cuda", dtype=dtype).requires_grad_() for s in SHAPES]
    copies = [p.detach().clone().requires_grad_() for p in params]
    peer = torch.optim.AdamW(copies, betas=(0.9, 0.999), fused=True, **HOW)
    return [params, [], *[[torch.zeros_like(p) for p in params] for _ in range(2)]], peer


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_steps_with_new_gradients(dtype: Any) -> None:
    """Gradients at the same and at other addresses, with some missing, and another learning rate in each step."""
    torch.manual_seed(1)
    lists, peer = lists_of(dtype)
    kept: list[Any] = []
    for n in range(1, 12):
        lists[1] = [torch.randn_like(p.detach()) for p in lists[0]]
        kept += [lists[1]] * (n % 3 == 0)
        copies = peer.param_groups[0]["params"]
        for p, g in zip(copies, lists[1]):
            p.grad = g.clone()
        peer.param_groups[0]["lr"] = HOW["lr"] / n
        peer.step()
        op.adamw_(*lists, n, **HOW | {"lr": HOW["lr"] / n})  # type: ignore[misc]
        limit = 2e-5 if dtype == torch.float32 else 4e-2
        for p, q in zip(lists[0], copies):
            torch.testing.assert_close(p, q, rtol=limit, atol=limit)
    assert len(CALLS.known) == 1


def test_a_captured_step_outlives_its_table() -> None:
    torch.manual_seed(1)
    lists, peer = lists_of(torch.float32)
    lists[1] = [torch.randn_like(p.detach()) for p in lists[0]]
    step = torch.zeros(1, device="cuda")
    step += 1
    op.adamw_(*lists, step, **HOW)  # type: ignore[misc]
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        op.adamw_(*lists, step, **HOW)  # type: ignore[misc]
    forget_calls()
    torch.cuda.synchronize()
    pointer_arrays._TABLES.clear()
    junk = [torch.full((1 << 16,), -1, device="cuda", dtype=torch.int64) for _ in range(64)]
    for _ in range(3):
        step += 1
        graph.replay()
    torch.cuda.synchronize()
    for p, g in zip(peer.param_groups[0]["params"], lists[1]):
        p.grad = g
    for _ in range(4):
        peer.step()
    assert len(junk) == 64
    for p, q in zip(lists[0], peer.param_groups[0]["params"]):
        torch.testing.assert_close(p, q, rtol=2e-5, atol=2e-5)
