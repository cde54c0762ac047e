"""Host functions with several launches on the GPU: ordered, conditional, cooperative, dependent, in a CUDA graph."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from cute_dialect.runtime import load
from cute_dialect.runtime.driver import CudaError

torch = pytest.importorskip("torch", reason="NOT RUN: torch is not installed")

FOLDER = "several"


def expected(x: np.ndarray, z: np.ndarray, k: int, adds: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the expected y = k * x, and z after ``adds`` additions of y."""
    y = k * x
    return y, z + adds * y


@pytest.mark.parametrize("host", ["both", "marked"])
def test_launches_in_order(folder: Path, host: str) -> None:
    """The second launch reads the first one's output, repeated often enough to reveal a launch that starts early."""
    call = load(folder).kernel(host)
    x = torch.arange(1 << 17, dtype=torch.int32, device="cuda")
    y = torch.zeros_like(x)
    z = torch.zeros_like(x)
    for k in range(1, 40):
        call(x, y, z, k)
    assert torch.equal(y, 39 * x) and torch.equal(z, sum(range(1, 40)) * x)
    bound = call.bind(x, y, z, 2)
    bound()
    assert torch.equal(z, (sum(range(1, 40)) + 2) * x)


def test_blocks_wait_for_each_other(folder: Path) -> None:
    call = load(folder).kernel("meeting")
    x, y = (torch.zeros(1000, dtype=torch.int32, device="cuda") for _ in range(2))
    count = torch.zeros(1, dtype=torch.int32, device="cuda")
    for _ in range(20):
        count.zero_()
        y.zero_()
        call(x, y, count)
        assert torch.equal(y.cpu(), (torch.arange(1000, dtype=torch.int32) + 1) % 1000)


def test_a_cooperative_launch_of_too_many_blocks(folder: Path) -> None:
    call = load(folder).kernel("marked")
    x, y, z = (torch.zeros(1 << 22, dtype=torch.int32, device="cuda") for _ in range(3))
    with pytest.raises(CudaError, match="more blocks than this GPU runs at once"):
        call(x, y, z, 2)


@pytest.mark.parametrize("k", range(-1, 8))
def test_conditions(folder: Path, k: int) -> None:
    """Conditional launches with torch tensors (twice, so that the second is a cached call) and with numpy arrays."""
    call = load(folder).kernel("choose")
    rng = np.random.default_rng(k + 1)
    x, y, z = (rng.integers(-1000, 1000, 1000, dtype=np.int32) for _ in range(3))
    adds = (k % 2) * (1 + (k > 4))
    want = expected(x, z, max(k, 1), adds)
    tensors = [torch.from_numpy(v.copy()).cuda() for v in (x, y, z)]
    call(x, y, z, k)
    assert np.array_equal(y, want[0]) and np.array_equal(z, want[1])
    call(*tensors, k)
    call(*tensors, k)
    assert np.array_equal(tensors[1].cpu().numpy(), want[0])
    assert np.array_equal(tensors[2].cpu().numpy(), want[1] + adds * want[0])


def test_in_a_graph(folder: Path) -> None:
    call = load(folder).kernel("both")
    x, y, z = (torch.zeros(5000, dtype=torch.int32, device="cuda") for _ in range(3))
    call(x, y, z, 3)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        call(x, y, z, 3)
    x.fill_(7)
    graph.replay()
    graph.replay()
    torch.cuda.synchronize()
    assert bool((y == 21).all()) and bool((z == 42).all())
