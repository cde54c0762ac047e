"""GEMM plans on the GPU compared with exact results: arrays of every library, bound calls, streams."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from planned_products import ARRAYS, CASES, F16, Planned, in_runs, saturating  # noqa: E402

from cute_dialect import op  # noqa: E402

FOLDER = "plans"


@pytest.fixture(autouse=True)
def kernels(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Return the prebuilt kernels (``python test/gpu/build.py DIR``)."""
    monkeypatch.setenv("CUTE_KERNELS", str(folder))


def on_the_gpu(array: Any) -> Any:
    """Copy an array to a torch tensor on the GPU, with the same strides."""
    columns = array.ndim > 1 and not array.flags.c_contiguous
    values = np.ascontiguousarray(array.swapaxes(-1, -2) if columns else array)
    name = values.dtype.name
    if name in ("bfloat16", "float8_e4m3fn", "float8_e5m2"):
        kind = np.uint16 if values.dtype.itemsize == 2 else np.uint8
        held = torch.from_numpy(values.view(kind)).cuda().view(getattr(torch, name))
    else:
        held = torch.from_numpy(values).cuda()
    return held.mT if columns else held


def exact(case: Planned, given: dict[str, Any]) -> Any:
    plan = case.planned()
    names = ("A", "B", "C", "bias")
    return plan.reference(**{n: given[n] for n in names if n in given}, alpha=case.numbers[0], beta=case.numbers[1])


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_run_and_bind(case: Planned) -> None:
    given = case.operands()
    want = exact(case, given)
    held = {name: on_the_gpu(x) for name, x in given.items()}
    plan = case.planned()
    numbers = {"alpha": case.numbers[0], "beta": case.numbers[1]}
    for turn in range(4):  # Later iterations are cached calls; iteration 2 switches to other tensors.
        held = {n: x.clone() for n, x in held.items()} if turn == 2 else held
        done = plan.run(**held, **numbers, split_k=case.split)
        np.testing.assert_array_equal(done.D.double().cpu().numpy(), want)
        held["D"].fill_(7)
    call = plan.bind(**held, **numbers, split_k=case.split)
    for stream in (None, torch.cuda.Stream(), None):
        held["D"].fill_(7)
        torch.cuda.synchronize()
        call() if stream is None else call(stream)
        torch.cuda.synchronize()
        np.testing.assert_array_equal(held["D"].double().cpu().numpy(), want)


@pytest.mark.parametrize("case", CASES[:4] + CASES[8:12], ids=lambda case: case.name)
def test_numpy_arrays_are_copied(case: Planned) -> None:
    given = case.operands()
    want = exact(case, given)
    numbers = {"alpha": case.numbers[0], "beta": case.numbers[1]}
    before = op.get_allocated_size()
    done = case.planned().run(**given, **numbers, sync=False)
    assert op.get_allocated_size() > before
    done.sync()
    assert op.get_allocated_size() == before
    np.testing.assert_array_equal(given["D"].astype(float), want)


def test_a_pool_of_memory() -> None:
    op.get_memory_pool(1 << 24, 1 << 30)
    for case in CASES[:2]:
        given = case.operands()
        case.planned().run(**given, alpha=case.numbers[0], beta=case.numbers[1])
        np.testing.assert_array_equal(given["D"].astype(float), exact(case, given))
    assert op.get_allocated_size() == 0


def test_cupy_arrays() -> None:
    cupy = pytest.importorskip("cupy", reason="NOT RUN: no CuPy")
    case = CASES[0]
    given = case.operands()
    held = {name: cupy.asarray(x) for name, x in given.items()}
    with cupy.cuda.Stream():
        done = case.planned().run(**held, alpha=case.numbers[0], beta=case.numbers[1])
        np.testing.assert_array_equal(cupy.asnumpy(done.D).astype(float), exact(case, given))


def test_a_graph_replays_a_plan() -> None:
    case = next(c for c in CASES if c.name == "tile, stream_k")
    given = case.operands()
    want = exact(case, given)
    held = {name: on_the_gpu(x) for name, x in given.items()}
    plan = case.planned()
    numbers = {"alpha": case.numbers[0], "beta": case.numbers[1]}
    plan.run(**held, **numbers)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        plan.run(**held, **numbers, sync=False)
    for _ in range(3):
        held["D"].fill_(7)
        graph.replay()
        torch.cuda.synchronize()
        np.testing.assert_array_equal(held["D"].double().cpu().numpy(), want)


@pytest.mark.parametrize("name", ["tile", "tile, stream_k", "tile, parts"])
def test_products_that_follow_each_other(name: str) -> None:
    """Consecutive GEMMs overlap. Each reads the previous result and permutes its columns."""
    plan, n = next(c for c in CASES if c.name == name).planned(), 256 if name == "tile, parts" else 1000
    step = torch.eye(n, device="cuda", dtype=torch.float16)[torch.randperm(n, device="cuda")]
    given = torch.randint(-9, 10, (n, n), device="cuda").half()
    held = [given.clone(), torch.empty_like(given)]
    plan.run(held[0], step, None, held[1], alpha=1.0, beta=0.0)
    graph, links = torch.cuda.CUDAGraph(), 20

    def chain() -> None:
        for i in range(links):
            plan.run(held[i % 2], step, None, held[1 - i % 2], alpha=1.0, beta=0.0, sync=False)

    with torch.cuda.graph(graph):
        chain()
    want = given
    for _ in range(links):
        want = (want.double() @ step.double()).half()
    for again in (chain, graph.replay, chain, graph.replay):
        held[0].copy_(given)
        again()
        torch.cuda.synchronize()
        assert torch.equal(held[0], want)


def test_mixed_arrays_are_refused() -> None:
    given = CASES[8].operands()
    with pytest.raises(op.DeviceError, match="B is a numpy array on the CPU, but A is a torch array on GPU 0"):
        op.Gemm(**F16).run(on_the_gpu(given["A"]), given["B"])
    with pytest.raises(op.DeviceError, match="A is in CPU memory; move it to the GPU"):
        op.Gemm(**F16).run(torch.zeros(8, 8).half(), torch.zeros(8, 8).half())


@pytest.mark.parametrize("name", ARRAYS)
def test_matrices_anywhere(name: str) -> None:
    """A pointer-array GEMM over separate allocations is one launch. It also runs bound and with address arrays."""
    case = ARRAYS[name]
    given = case.operands()
    exact = [2.0 * (a.astype(float) @ b.astype(float)) + 0.5 * c for a, b, c in zip(*given.values())]
    exact = [np.rint(x) if given["C"][0].dtype.kind == "i" else x for x in exact]
    plan = op.Gemm(**case.kinds)
    held: dict[str, list[Any]] = {}
    keep = []
    for key, matrices in given.items():
        held[key] = []
        for i, x in enumerate(matrices):
            keep.append(torch.empty(1000 * i + 1, device="cuda"))  # gaps between the matrices
            memory = torch.zeros(x.size + 8, device="cuda", dtype=torch.from_numpy(x[:1, :1].copy()).dtype)
            inside = memory[case.offset : case.offset + x.size]
            rows = x.flags.c_contiguous
            inside.copy_(torch.from_numpy(np.ascontiguousarray(x if rows else x.T)).reshape(-1))
            held[key].append(inside.view(x.shape) if rows else inside.view(x.shape[::-1]).T)
    held["B"][-1] = held["B"][0]
    results = [torch.full_like(x, 7) for x in held["C"]]
    done = plan.run(held["A"], held["B"], held["C"], results, 2.0, 0.5)
    assert done.launches == 1
    for x, y in zip(results, exact):
        np.testing.assert_array_equal(x.double().cpu().numpy(), y)
        x.fill_(7)
    call = plan.bind(held["A"], held["B"], held["C"], results, 2.0, 0.5)
    call()
    torch.cuda.synchronize()
    for x, y in zip(results, exact):
        np.testing.assert_array_equal(x.double().cpu().numpy(), y)
        x.fill_(7)
    if name == "tma":
        addresses = [torch.tensor([x.data_ptr() for x in xs], device="cuda") for xs in (*held.values(), results)]
        m, n, k = case.shape
        op.mm_array(*addresses[:2], addresses[3], Cs=addresses[2], shape=(m, n, k), element="f16", alpha=2.0, beta=0.5)
        torch.cuda.synchronize()
        for x, y in zip(results, exact):
            np.testing.assert_array_equal(x.double().cpu().numpy(), y)
    # numpy arrays, copied to the GPU and back
    copied = plan.run(given["A"], given["B"], given["C"], alpha=2.0, beta=0.5)
    for x, y in zip(copied.D, exact):
        np.testing.assert_array_equal(np.asarray(x, float), y)


@pytest.mark.parametrize("chip", [80, 90])
def test_sums_stick_at_the_ends_of_i32(chip: int) -> None:
    """140032 products (-128) * (-128) sum to more than 2^31, so the result saturates. Smaller sums are exact."""
    m, n, k = 72, 80, 140032
    a = torch.zeros(m, k, dtype=torch.int8, device="cuda")
    b = torch.zeros(n, k, dtype=torch.int8, device="cuda")
    a[0], b[0], a[1, :16], b[1] = -128, -128, 3, 127
    d = torch.zeros(m, n, dtype=torch.int32, device="cuda")
    arguments = op.GemmArguments(saturating(chip), (m, n, k), a, b.T, None, d)
    arguments.operation.run(arguments)
    arguments.sync()
    exact = (a.double() @ b.double().T).clamp(-(2**31), 2**31 - 1)
    assert torch.equal(d.double(), exact) and int(d[0, 0]) == 2**31 - 1 and int(d[0, 1]) == -(2**31)


def test_interleaved_matrices() -> None:
    m, n, k = 264, 416, 288
    a, b = (torch.randint(-2, 3, (rows, k), dtype=torch.int8, device="cuda") for rows in (m, n))

    def runs(x: Any) -> Any:
        return x.reshape(x.shape[0], -1, 32).transpose(0, 1).reshape(-1).contiguous()

    d = torch.full((m * n,), 77, dtype=torch.int8, device="cuda")
    found = in_runs()
    arguments = op.GemmArguments(found, (m, n, k), runs(a), runs(b), None, d, found.epilogue_type(2.0))
    found.run(arguments)
    arguments.sync()
    exact = (2 * (a.double() @ b.double().T)).clamp(-128, 127).to(torch.int8)
    assert torch.equal(d, runs(exact))
