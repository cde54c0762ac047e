"""Launches on the GPU: captured in a CUDA graph, on streams, bound to arrays, between other arguments."""

from __future__ import annotations

from pathlib import Path

import pytest

from cute_dialect.pipelines import load

torch = pytest.importorskip("torch", reason="NOT RUN: torch is not installed")


def test_a_graph_of_two_launches(artifacts: Path) -> None:
    """A call and a bound launch, one on the result of the other, captured and replayed on new data."""
    k = load(artifacts / "f32-stream").kernel("add")
    a, b = (torch.randn(65, 1024, device="cuda") for _ in range(2))
    c, d = torch.empty_like(a), torch.empty_like(a)
    second = k.bind(c, b, d)
    k(a, b, c)
    second()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        k(a, b, c)
        second()
    for _ in range(3):
        a.normal_()
        b.normal_()
        c.fill_(float("nan"))
        d.fill_(float("nan"))
        graph.replay()
        torch.cuda.synchronize()
        assert torch.equal(c, a + b)
        assert torch.equal(d, a + b + b)


def test_a_graph_keeps_its_addresses(artifacts: Path) -> None:
    """Calls on other arrays after the capture do not change what the graph launches."""
    k = load(artifacts / "f32-stream").kernel("add")
    a, b, c, other = (torch.randn(64, 512, device="cuda") for _ in range(4))
    k(a, b, c)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        k(a, b, c)
    k(a, a, other)
    c.zero_()
    graph.replay()
    torch.cuda.synchronize()
    assert torch.equal(c, a + b)
    assert torch.equal(other, a + a)


def test_launches_do_not_wait(artifacts: Path) -> None:
    """A launch behind a long kernel comes back while that still runs."""
    k = load(artifacts / "f32-stream").kernel("add")
    a, b = (torch.randn(64, 512, device="cuda") for _ in range(2))
    c = torch.empty_like(a)
    bound = k.bind(a, b, c)
    k(a, b, c)
    bound()
    torch.cuda.synchronize()
    done = torch.cuda.Event()
    torch.cuda._sleep(400_000_000)  # cycles: a fifth of a second
    done.record()
    k(a, b, c)
    bound()
    assert not done.query()
    torch.cuda.synchronize()
    assert torch.equal(c, a + b)


def test_bound_launches_follow_streams(artifacts: Path) -> None:
    k = load(artifacts / "f32-stream").kernel("add")
    a, b = (torch.randn(64, 512, device="cuda") for _ in range(2))
    c = torch.empty_like(a)
    bound = k.bind(a, b, c)
    side = torch.cuda.Stream()
    torch.cuda.synchronize()
    for stream in (side, side.cuda_stream, None):
        with torch.cuda.stream(side):  # the fill before it is on the same stream, or this would be a race
            c.fill_(float("nan"))
            bound(stream)
            c += 1
        torch.cuda.synchronize()
        assert torch.equal(c, a + b + 1)


def test_many_shapes_in_turn(artifacts: Path) -> None:
    k = load(artifacts / "f32-stream").kernel("add")
    cases = [(torch.randn(m, n, device="cuda"), torch.randn(m, n, device="cuda")) for m in (1, 33) for n in (4, 5, 640)]
    for _ in range(3):
        for a, b in cases:
            c = torch.full_like(a, float("nan"))
            k(a, b, c)
            assert torch.equal(c, a + b)


def test_from_another_thread(artifacts: Path) -> None:
    """A thread without a CUDA context may launch."""
    import threading

    k = load(artifacts / "f32-stream").kernel("add")
    a, b = (torch.randn(64, 512, device="cuda") for _ in range(2))
    c = torch.zeros_like(a)
    k(a, b, c)
    c.zero_()
    torch.cuda.synchronize()
    worker = threading.Thread(target=lambda: k(a, b, c))
    worker.start()
    worker.join()
    torch.cuda.synchronize()
    assert torch.equal(c, a + b)
