"""Elementwise add on the GPU: bitwise equal to numpy or torch in every form of call, and all errors."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from cute_dialect.runtime import load
from cute_dialect.runtime.arrays import numpy_dtype
from cute_dialect.runtime.launch_plan import AlignmentError, DeviceError, StrideError
from cute_dialect.tools.bench.cases.elementwise import ADD_CASES, LARGE, check_add

FOLDER = "elementwise_add"
MODULES = [f"{element}-{layout}" for element in ("f32", "f16", "bf16") for layout in ("seed", "stream")]


@pytest.mark.parametrize("name", MODULES)
@pytest.mark.parametrize("shape", [(1, 1), (17, 129), (64, 512), (100, 333)])
def test_numpy(folder: Path, name: str, shape: tuple[int, int]) -> None:
    dtype = numpy_dtype(name.split("-")[0])
    rng = np.random.default_rng(0)
    a, b = (rng.standard_normal(shape, dtype=np.float32).astype(dtype) for _ in range(2))
    storage = np.full((shape[0], shape[1] + 8), -7, dtype=dtype)
    c = storage[:, : shape[1]]
    load(folder / name).kernel("add")(a, b, c)
    assert np.array_equal(c, a + b)
    assert (storage[:, shape[1] :] == dtype.type(-7)).all()


@pytest.mark.parametrize("name", MODULES)
@pytest.mark.parametrize("case", ADD_CASES[:-1], ids=str)
def test_torch(folder: Path, name: str, case: object) -> None:
    pytest.importorskip("torch", reason="NOT RUN: torch is not installed")
    chosen = check_add(load(folder / name), name.split("-")[0], case)  # type: ignore[arg-type]
    vector = 16 // numpy_dtype(name.split("-")[0]).itemsize
    aligned = case.offset % vector == 0  # type: ignore[attr-defined]
    assert chosen == ("add_v" if aligned and (case.rows == 1 or case.ld % vector == 0) else "add")  # type: ignore[attr-defined]


def test_more_than_2_to_the_31_elements(folder: Path) -> None:
    torch = pytest.importorskip("torch", reason="NOT RUN: torch is not installed")
    if torch.cuda.mem_get_info()[0] < 30 << 30:
        pytest.skip("NOT RUN: needs 30 GiB of free GPU memory")
    assert check_add(load(folder / "f16-stream"), "f16", LARGE) == "add_v"


def test_streams_and_repeated_calls(folder: Path) -> None:
    torch = pytest.importorskip("torch", reason="NOT RUN: torch is not installed")
    k = load(folder / "f32-stream").kernel("add")
    stream = torch.cuda.Stream()
    a, b = (torch.randn(257, 1024, device="cuda") for _ in range(2))
    torch.cuda.synchronize()
    for s in (stream, stream.cuda_stream, None):
        for _ in range(3):  # The third call takes the fast path.
            c = torch.full_like(a, float("nan"))
            torch.cuda.synchronize()
            k(a, b, c, stream=s)
            torch.cuda.synchronize()
            assert torch.equal(c, a + b)
    with torch.cuda.stream(stream):
        c = torch.zeros_like(a)
        k(a, b, c)
        c += 1
    torch.cuda.synchronize()
    assert torch.equal(c, a + b + 1)


def test_it_can_be_captured_in_a_graph(folder: Path) -> None:
    torch = pytest.importorskip("torch", reason="NOT RUN: torch is not installed")
    k = load(folder / "f32-seed").kernel("add")
    a, b = (torch.randn(64, 256, device="cuda") for _ in range(2))
    c = torch.empty_like(a)
    k(a, b, c)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        k(a, b, c)
    a.normal_()
    c.zero_()
    graph.replay()
    torch.cuda.synchronize()
    assert torch.equal(c, a + b)


def test_cupy(folder: Path) -> None:
    cupy = pytest.importorskip("cupy", reason="NOT RUN: cupy is not installed")
    k = load(folder / "f16-stream").kernel("add")
    a, b = (cupy.random.standard_normal((77, 640)).astype(cupy.float16) for _ in range(2))
    c = cupy.empty_like(a)
    k(a, b, c)
    cupy.cuda.Device().synchronize()
    assert bool((c == a + b).all())


def test_refusals(folder: Path) -> None:
    torch = pytest.importorskip("torch", reason="NOT RUN: torch is not installed")
    module = load(folder / "f32-seed")
    a = torch.zeros(16, 129, device="cuda")
    with pytest.raises(StrideError):
        module.kernel("add")(a, a, torch.zeros(129, 16, device="cuda").T)
    with pytest.raises(AlignmentError):
        module.kernel("add_v")(*[torch.zeros(16, 132, device="cuda")[:, 1:129]] * 3)
    with pytest.raises(DeviceError, match=r"got one on the CPU \(torch\)"):
        module.kernel("add")(a, a.cpu(), a)
