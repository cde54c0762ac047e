"""Launches on the GPU: CUDA graphs, streams, threads, contexts, bound arrays and cuda-python handles."""

from __future__ import annotations

from pathlib import Path

import pytest

from cute_dialect.runtime import load

torch = pytest.importorskip("torch", reason="NOT RUN: torch is not installed")

FOLDER = "elementwise_add"


def test_a_graph_of_two_launches(folder: Path) -> None:
    """A call and a bound launch that reads its result are captured and replayed on new data."""
    k = load(folder / "f32-stream").kernel("add")
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


def test_a_graph_keeps_its_addresses(folder: Path) -> None:
    """Later calls with other arrays do not change the addresses in a captured graph."""
    k = load(folder / "f32-stream").kernel("add")
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


def test_launches_do_not_wait(folder: Path) -> None:
    """A launch queued behind a long-running kernel returns before that kernel ends."""
    k = load(folder / "f32-stream").kernel("add")
    a, b = (torch.randn(64, 512, device="cuda") for _ in range(2))
    c = torch.empty_like(a)
    bound = k.bind(a, b, c)
    k(a, b, c)
    bound()
    torch.cuda.synchronize()
    done = torch.cuda.Event()
    torch.cuda._sleep(400_000_000)  # cycles, about a fifth of a second
    done.record()
    k(a, b, c)
    bound()
    assert not done.query()
    torch.cuda.synchronize()
    assert torch.equal(c, a + b)


def test_bound_launches_follow_streams(folder: Path) -> None:
    k = load(folder / "f32-stream").kernel("add")
    a, b = (torch.randn(64, 512, device="cuda") for _ in range(2))
    c = torch.empty_like(a)
    bound = k.bind(a, b, c)
    side = torch.cuda.Stream()
    torch.cuda.synchronize()
    for stream in (side, side.cuda_stream, None):
        # The launch uses the same stream as the fill before it; another stream would be a race.
        with torch.cuda.stream(side):
            c.fill_(float("nan"))
            bound(stream)
            c += 1
        torch.cuda.synchronize()
        assert torch.equal(c, a + b + 1)


def test_many_shapes_in_turn(folder: Path) -> None:
    k = load(folder / "f32-stream").kernel("add")
    cases = [(torch.randn(m, n, device="cuda"), torch.randn(m, n, device="cuda")) for m in (1, 33) for n in (4, 5, 640)]
    for _ in range(3):
        for a, b in cases:
            c = torch.full_like(a, float("nan"))
            k(a, b, c)
            assert torch.equal(c, a + b)


def test_from_another_thread(folder: Path) -> None:
    """A launch from a thread without a current CUDA context succeeds."""
    import threading

    k = load(folder / "f32-stream").kernel("add")
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


def test_from_two_threads_at_once(folder: Path) -> None:
    """Concurrent launches from two threads use separate parameter buffers."""
    import threading

    k = load(folder / "f32-stream").kernel("add")
    a, b = (torch.randn(64, 512, device="cuda") for _ in range(2))
    mine = [torch.full_like(a, float("nan")) for _ in range(2)]
    others = [torch.randn_like(a) for _ in range(2)]
    torch.cuda.synchronize()
    bound = [k.bind(a, o, c) for o, c in zip(others, mine)]

    def work(i: int) -> None:
        for _ in range(300):
            k(b, b, mine[i])
            bound[i]()
            k(a, others[i], mine[i])

    workers = [threading.Thread(target=work, args=(i,)) for i in range(2)]
    for w in workers:
        w.start()
    for w in workers:
        w.join()
    torch.cuda.synchronize()
    for other, c in zip(others, mine):
        assert torch.equal(c, a + other)


def test_under_another_context(folder: Path) -> None:
    """A launch uses the GPU's primary context even if another context is current, and leaves that context current."""
    import ctypes

    k = load(folder / "f32-stream").kernel("add")
    a, b = (torch.randn(64, 512, device="cuda") for _ in range(2))
    c = torch.empty_like(a)
    bound = k.bind(a, b, c)
    driver = ctypes.CDLL("libcuda.so.1")
    own, now = ctypes.c_void_p(), ctypes.c_void_p()
    for launch in (lambda: k(a, b, c), lambda: k(a, b, c), bound):
        c.fill_(float("nan"))
        torch.cuda.synchronize()
        assert driver.cuCtxCreate_v2(ctypes.byref(own), 0, 0) == 0
        try:
            launch()
            assert driver.cuCtxGetCurrent(ctypes.byref(now)) == 0 and now.value == own.value
        finally:
            assert driver.cuCtxDestroy_v2(own) == 0
        torch.cuda.synchronize()
        assert torch.equal(c, a + b)


def test_tensors_of_another_gpu_than_the_current(folder: Path) -> None:
    if torch.cuda.device_count() < 2:
        pytest.skip("NOT RUN: one GPU here, this needs two")
    k = load(folder / "f32-stream").kernel("add")
    for _ in range(3):
        for number in (0, 1):
            a, b = (torch.randn(64, 512, device=f"cuda:{number}") for _ in range(2))
            c = torch.full_like(a, float("nan"))
            k(a, b, c)
            torch.cuda.synchronize(number)
            assert torch.equal(c, a + b)
            assert torch.cuda.current_device() == 0


def test_like_calls_are_told_from_others(folder: Path) -> None:
    """Cached calls are found by dtype, device and shape. Gradients, inference mode and repeated tensors are ignored."""
    from cute_dialect.runtime.launch_plan import LaunchError

    k = load(folder / "f32-stream").kernel("add")
    a, b = (torch.randn(64, 512, device="cuda") for _ in range(2))
    c = torch.empty_like(a)
    k(a, b, c)
    leaf = torch.nn.Parameter(b)
    for x, y in ((a, b), (a, a), (a, leaf), (a, b), (a.clone().requires_grad_(), b)):
        for mode in (torch.enable_grad, torch.no_grad, torch.inference_mode):
            c.fill_(float("nan"))
            with mode():
                k(x, y, c)
            assert torch.equal(c, x + y)
    for wrong in (b.half(), b.cpu(), b.t()):
        with pytest.raises(LaunchError):
            k(a, wrong, c)
    wide = torch.randn(64, 1024, device="cuda")
    k(a, wide[:, 512:], c)
    assert torch.equal(c, a + wide[:, 512:])
    for tensor in (a, b, c):  # The same tensor objects now have another shape.
        tensor.data = torch.randn(33, 260, device="cuda")
    k(a, b, c)
    assert torch.equal(c, a + b)


def test_handles_of_cuda_python_pass_both_ways(folder: Path) -> None:
    """Launches accept streams and memory of cuda-python, and cuda-python can launch the handles of a loaded module."""
    from cuda.bindings import driver as bindings

    from cute_dialect.runtime.arrays import ArrayView

    def ok(result: tuple[object, ...]) -> object:
        assert int(result[0]) == 0, result[0]  # type: ignore[call-overload]
        return result[1] if len(result) > 1 else None

    module = load(folder / "f32-stream")
    k = module.kernel("add")
    a, b = (torch.randn(64, 512, device="cuda") for _ in range(2))
    c = torch.full_like(a, float("nan"))
    torch.cuda.synchronize()
    stream = ok(bindings.cuStreamCreate(0))
    for launch in (lambda: k(a, b, c, stream=stream), lambda: k.bind(a, b, c)(stream)):
        c.fill_(float("nan"))
        torch.cuda.synchronize()
        launch()
        ok(bindings.cuStreamSynchronize(stream))
        assert torch.equal(c, a + b)
    bound = k.bind(a, b, c)
    assert isinstance(bound.function, bindings.CUfunction)
    loaded = module.driver_module(0)
    assert isinstance(loaded, bindings.CUmodule)
    found = ok(bindings.cuModuleGetFunction(loaded, bound.plan.kernel.encode()))
    assert int(found) == int(bound.function)  # type: ignore[call-overload]
    memory = ok(bindings.cuMemAlloc(c.numel() * 4))
    view = ArrayView(int(memory), (64, 512), (512, 1), "f32", 0, "cuda", memory)  # type: ignore[call-overload]
    k(a, b, view, stream=stream)
    ok(bindings.cuMemcpyDtoD(c.data_ptr(), memory, c.numel() * 4))
    torch.cuda.synchronize()
    assert torch.equal(c, a + b)
    ok(bindings.cuMemFree(memory))
    ok(bindings.cuStreamDestroy(stream))
