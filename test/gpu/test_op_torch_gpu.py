"""GEMMs of torch tensors on the GPU: gradients, ``torch.compile``, CUDA graphs, streams, threads; other array types."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from torch_calls import CALLS, f16, f32, f64, integers  # noqa: E402

import cute_dialect.op.operators.table  # noqa: E402, F401  (torch.ops.cute is there)
from cute_dialect import op  # noqa: E402
from cute_dialect.op.functions import gemm  # noqa: E402


@pytest.fixture(autouse=True)
def _prebuilt(prebuilt: Callable[[str], None]) -> None:
    prebuilt("torch")


def operands() -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    a, b = integers(64, 72), integers(72, 96)
    return a, b, a.double() @ b.double()


@pytest.mark.parametrize("name", CALLS)
def test_gradients(name: str) -> None:
    for _ in range(2):
        found, exact = CALLS[name]("cuda", None)
        assert len(found) == len(exact)
        for x, y in zip(found, exact):
            assert float((x.double() - y).abs().max()) <= (2e-3 if name in ("layer", "gated") else 0.0) * float(
                y.abs().max()
            )


def test_gradcheck() -> None:
    a = torch.randn(6, 5, device="cuda", dtype=f64, requires_grad=True)
    b = torch.randn(5, 7, device="cuda", dtype=f64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda a, b: op.mm(a, b, alpha=0.5), (a, b))


def test_known_calls_learn() -> None:
    """A call cached without gradients still supports a later call that needs them."""
    a, b, exact = operands()
    for _ in range(3):
        assert torch.equal(op.mm(a, b).double(), exact)
    assert len(gemm.PLAIN[2]) > 0
    x = a.clone().requires_grad_()
    assert op.mm(x, b).requires_grad and not op.mm(a, b).requires_grad
    with torch.no_grad():
        for _ in range(3):
            assert torch.equal(op.mm(x, b).double(), exact)
    assert op.mm(x, b).requires_grad


def test_opcheck() -> None:
    a, b, _ = operands()
    torch.library.opcheck(torch.ops.cute.mm.default, (a, b))


@pytest.mark.parametrize("backend", ["aot_eager", "inductor"])
def test_compile(backend: str) -> None:
    if backend == "inductor":
        pytest.importorskip("triton", reason="NOT RUN: triton is not installed")
    torch.compiler.reset()
    a, b, exact = operands()
    f = torch.compile(lambda a, b: op.mm(a, b).float() * 2 + 1, fullgraph=True, backend=backend)
    for _ in range(2):
        assert torch.equal(f(a, b).double(), 2 * exact + 1)
    x = a.clone().requires_grad_()
    f(x, b).sum().backward()
    assert torch.equal(x.grad.double(), (2 * torch.ones_like(exact)) @ b.double().t())


@pytest.mark.parametrize("operator", [False, True])
def test_cuda_graph(operator: bool) -> None:
    function: Any = torch.ops.cute.mm if operator else op.mm
    a, b, _ = operands()
    function(a, b)  # Compile and load the kernel before the capture.
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        function(a, b)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        out = function(a, b)
    for seed in range(3):
        a.copy_(integers(64, 72, seed=seed))
        out.fill_(float("nan"))
        graph.replay()
        torch.cuda.synchronize()
        assert torch.equal(out.double(), a.double() @ b.double())


def test_streams() -> None:
    a, b, exact = operands()
    torch.cuda.synchronize()
    side = torch.cuda.Stream()
    for stream in (side, side.cuda_stream, torch.cuda.default_stream()):
        out = op.mm(a, b, stream=stream)
        torch.cuda.synchronize()
        assert torch.equal(out.double(), exact)
    # The GEMM must wait for earlier work on its stream.
    with torch.cuda.stream(side):
        x = a.clone()
        torch.cuda._sleep(50_000_000)
        x.zero_()
    out = op.mm(x, b, stream=side)
    side.synchronize()
    assert not out.any()


def test_threads() -> None:
    """Each thread computes results and gradients on its own stream."""
    a, b, exact = operands()
    torch.cuda.synchronize()
    wrong: list[Any] = []

    def run() -> None:
        with torch.cuda.stream(torch.cuda.Stream()):
            for _ in range(30):
                x = a.clone().requires_grad_()
                y = op.mm(x, b)
                y.backward(torch.ones_like(y))
                z = op.mm(a, b)
                torch.cuda.current_stream().synchronize()
                if not (torch.equal(y.double(), exact) and torch.equal(z.double(), exact)):
                    wrong.append(y)

    threads = [threading.Thread(target=run) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert wrong == []


def test_numpy() -> None:
    """Numpy arrays are copied to the GPU and the result is copied back."""
    a, b, exact = (t.cpu().numpy() for t in operands())
    found = op.mm(a, b)
    assert isinstance(found, np.ndarray) and np.array_equal(found.astype(float), exact)
    out = np.full((64, 96), np.nan, np.float16)
    assert op.mm(a, b, out, device=0) is out and np.array_equal(out.astype(float), exact)


class Foreign:
    """An array that supports only the CUDA array interface."""

    def __init__(self, tensor: torch.Tensor) -> None:
        self.tensor = tensor
        self.__cuda_array_interface__ = tensor.__cuda_array_interface__


class Exported:
    """An array that supports only DLPack."""

    def __init__(self, tensor: torch.Tensor) -> None:
        self.tensor = tensor

    def __dlpack__(self, **more: Any) -> Any:
        return self.tensor.__dlpack__(**more)

    def __dlpack_device__(self) -> Any:
        return self.tensor.__dlpack_device__()


@pytest.mark.parametrize("kind", [Foreign, Exported])
def test_other_libraries(kind: Any) -> None:
    a, b, exact = operands()
    torch.cuda.synchronize()
    out = torch.full((64, 96), float("nan"), device="cuda", dtype=f16)
    given = kind(out)
    assert op.mm(kind(a), kind(b), given) is given
    torch.cuda.synchronize()
    assert torch.equal(out.double(), exact)
    with pytest.raises(op.DeviceError, match=f"mm: b is an array of torch, but a is one of {type(given).__module__}"):
        op.mm(kind(a), b)
    with pytest.raises(op.UnsupportedError, match="mm: cannot allocate an array of"):
        op.mm(kind(a), kind(b))


def test_cupy() -> None:
    cupy = pytest.importorskip("cupy", reason="NOT RUN: cupy is not installed")
    a, b, exact = operands()
    torch.cuda.synchronize()
    found = op.mm(cupy.from_dlpack(a), cupy.from_dlpack(b))
    assert isinstance(found, cupy.ndarray) and np.array_equal(cupy.asnumpy(found).astype(float), exact.cpu().numpy())


def test_mixed_places() -> None:
    a, b, _ = operands()
    with pytest.raises(
        op.DeviceError, match=("mm: b is an array of numpy, but a is one of torch; pass arrays of one library")
    ):
        op.mm(a, b.cpu().numpy())
    with pytest.raises(op.DeviceError, match="mm: b is on the CPU, but a is on cuda:0"):
        op.mm(a, b.cpu())
    with pytest.raises(op.DeviceError, match="mm: a is on the CPU; move it to a GPU"):
        op.mm(a.cpu(), b.cpu())
    with pytest.raises(op.DeviceError, match=r"mm: a is on cuda:0, but .* interpreter"):
        op.mm(a, b, device="cpu")


@pytest.mark.skipif(torch.cuda.device_count() < 2, reason="NOT RUN: one GPU")
def test_another_gpu() -> None:
    a, b, exact = (t.to("cuda:1") for t in operands())
    out = op.mm(a, b)
    assert out.device == a.device and torch.equal(out.double(), exact)
    with torch.cuda.device(1):
        assert torch.equal(op.mm(a, b, alpha=1.0).double(), exact)


def test_modules() -> None:
    layer = op.nn.Linear(72, 96, bias=False, device="cuda", dtype=f16)
    with torch.no_grad():
        layer.weight.copy_(integers(96, 72))
    x = integers(64, 72)
    y = layer(x)
    assert torch.equal(y.double(), x.double() @ layer.weight.double().t())
    y.sum(dtype=f32).backward()
    assert torch.equal(layer.weight.grad.double(), x.double().sum(0).expand(96, -1))
