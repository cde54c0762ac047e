"""Replay in C++ on the GPU: other streams, CUDA graphs, threads, and gradients compared with float64."""

# pyright: basic

from __future__ import annotations

from collections.abc import Iterator
from threading import Thread
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="NOT RUN: torch is not installed")

from cute_dialect import op  # noqa: E402
from cute_dialect.op.execute.call_cache import forget_calls  # noqa: E402
from cute_dialect.runtime import native  # noqa: E402


@pytest.fixture(autouse=True)
def extension() -> Iterator[None]:
    try:
        native.build()
    except native.BuildError as e:
        pytest.skip(f"NOT RUN: {e}")
    forget_calls()
    yield
    native._State.module = None
    forget_calls()


def half(*shape: int) -> Any:
    return torch.randn(*shape, device="cuda").half()


def near(x: Any, exact: Any) -> bool:
    return bool(((x.double() - exact).abs() <= 2e-2 * (1 + exact.abs().max())).all())


def test_gradients_at_new_addresses() -> None:
    kept = []
    for _ in range(6):
        x, w = half(128, 256).requires_grad_(), half(64, 256).requires_grad_()
        kept.append((x, w))  # so that each step has other addresses, and other tensor maps
        y = op.linear(x, w)
        grad = half(128, 64)
        of_x, of_w = torch.autograd.grad(y, (x, w), grad)
        a, b, g = x.detach().double(), w.detach().double(), grad.double()
        assert near(y.detach(), a @ b.t()) and near(of_x, g @ b) and near(of_w, g.t() @ a)
    assert y.grad_fn.name() == "ReplayedBackward"


def test_the_backward_pass_runs_on_the_stream_of_the_call() -> None:
    x, y = half(1024, 1024).requires_grad_(), half(1024, 1024).requires_grad_()
    side = torch.cuda.Stream()
    for _ in range(5):
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            z = op.mul(x, y)
            torch.cuda._sleep(1_000_000)
        found = torch.autograd.grad(z, (x, y), torch.ones_like(z))
        torch.cuda.synchronize()
        assert torch.equal(found[0], y) and torch.equal(found[1], x) and near(z.detach(), (x * y).detach().double())


def test_a_graph_of_replayed_calls() -> None:
    a, b = half(64, 512), half(64, 512)
    for _ in range(3):
        op.softmax(op.add(a, b))
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        out = op.softmax(op.add(a, b))
    a.normal_()
    graph.replay()
    torch.cuda.synchronize()
    assert near(out, (a.double() + b.double()).softmax(-1))


def test_threads() -> None:
    wrong: list[int] = []

    def work(number: int) -> None:
        x, w = half(64 + number, 256).requires_grad_(), half(128, 256).requires_grad_()
        for _ in range(100):
            (of_x,) = torch.autograd.grad(op.linear(x, w).sum(), x)
        exact = torch.ones(64 + number, 128, device="cuda").double() @ w.detach().double()
        wrong.extend([number] * (not near(of_x, exact)))

    threads = [Thread(target=work, args=(i,)) for i in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong
