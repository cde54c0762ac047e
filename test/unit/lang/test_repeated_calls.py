"""Repeated calls with GPU tensors of torch use generated code from the second call on (on a fake driver)."""

from __future__ import annotations

import ctypes
import dataclasses
import functools
import sys
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import pytest
from pipelines_support import FakeDriver

import cute_dialect.lang as cute
from cute_dialect.lang.calls import options
from cute_dialect.runtime import driver
from cute_dialect.runtime.launch_plan import StrideError

N = 3


class Device(NamedTuple):
    """A fake ``torch.device``."""

    type: str
    index: int


class OnGpu:
    """The attributes of a torch tensor that the launcher reads."""

    def __init__(self, n: int, pointer: int = 1 << 20, step: int = 1):
        self.shape, self.step, self.pointer = (n,), step, pointer
        self.dtype = "torch.float32"
        self.device = Device("cuda", 0)

    def stride(self) -> tuple[int, ...]:
        return (self.step,)

    def is_contiguous(self) -> bool:
        return self.step == 1

    def data_ptr(self) -> int:
        return self.pointer

    def get_device(self) -> int:
        return 0

    def __dlpack__(self) -> None:
        raise AssertionError("read as a torch tensor")


class FakeTorch:
    """A fake ``torch`` module whose current stream is 55."""

    Tensor = OnGpu

    class _C:
        @staticmethod
        def _cuda_getCurrentRawStream(device: int) -> int:
            return 55


@cute.kernel
def scale(x: cute.Tensor, y: cute.Tensor, by: Any) -> None:
    i = cute.arch.thread_idx()[0]
    y[i] = x[i] * by


@cute.jit
def run(x: Any, y: Any, mode: cute.Constexpr[str], n: cute.Int32, stream: cute.Stream = None) -> None:
    scale(x, y, N if mode == "fast" else n).launch(grid=1, block=32, stream=stream)


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeDriver]:
    fake = FakeDriver()
    fake.kernels = {"scale": lambda record: None}
    # A cached module would hold function handles of an earlier test's driver.
    monkeypatch.setenv("CUTE_CACHE", "0")
    monkeypatch.setattr(driver, "driver", lambda: fake)
    monkeypatch.setitem(sys.modules, "torch", FakeTorch)
    options._gpus_chip.cache_clear()
    run.cache_clear()
    yield fake
    options._gpus_chip.cache_clear()


def test_repeated_calls_are_not_inspected(gpu: FakeDriver, monkeypatch: pytest.MonkeyPatch) -> None:
    from cute_dialect.lang.calls import specializations

    seen: list[int] = []
    gpu.kernels["scale"] = lambda record: seen.append(ctypes.c_uint64.from_address(record["parameters"][0]).value)
    reads: list[int] = []
    read = specializations.read_call
    monkeypatch.setattr(specializations, "read_call", lambda *a, **k: reads.append(1) or read(*a, **k))
    x, y = OnGpu(32), OnGpu(32, 1 << 21)
    for i in range(4):
        run(OnGpu(32, (i + 1) << 20), y, "fast", 7)
    assert len(reads) == 1 and len(gpu.launches) == 4
    assert seen == [i << 20 for i in range(1, 5)]
    assert {r["stream"] for r in gpu.launches} == {55}
    run(x, y, "fast", 7, stream=9)
    assert gpu.launches[-1]["stream"] == 9
    # Calls with other arguments are inspected again, and some need another specialization.
    run(x, y, "slow", 7)
    run(x, y, "slow", 8)
    run(OnGpu(32, (1 << 20) + 4), y, "slow", 8)
    run(OnGpu(16), y, "slow", 8)
    run(OnGpu(16, step=2), y, "slow", 8)
    assert len(gpu.launches) == 10 and len(run.kinds()) == 4
    before = len(reads)
    for _ in range(2):  # Alternating shapes are all cached.
        run(OnGpu(16, step=2), y, "slow", 8)
        run(OnGpu(16), y, "slow", 8)
        run(x, y, "slow", 8)
    assert len(reads) - before <= 1 and len(gpu.launches) == 16


def test_a_changed_global_is_seen_by_quick_calls(gpu: FakeDriver, monkeypatch: pytest.MonkeyPatch) -> None:
    x, y = OnGpu(32), OnGpu(32)
    run(x, y, "fast", 7)
    run(x, y, "fast", 7)
    assert run.cache_info().misses == 1
    monkeypatch.setitem(globals(), "N", 4)
    run(x, y, "fast", 7)
    assert run.cache_info().misses == 2


def plus(x: Any) -> Any:
    return x + 1


def times(x: Any) -> Any:
    return x * 3


def test_a_changed_function_is_seen_by_quick_calls(gpu: FakeDriver, monkeypatch: pytest.MonkeyPatch) -> None:
    gpu.kernels["through"] = lambda record: None
    by = 2

    @cute.kernel
    def through(x: cute.Tensor, y: cute.Tensor) -> None:
        y[0] = plus(x[0]) * by

    @cute.jit
    def launch(x: Any, y: Any) -> None:
        through(x, y).launch(grid=1, block=1)

    x, y = OnGpu(32), OnGpu(32)

    def misses() -> int:
        for _ in range(3):
            launch(x, y)
        return launch.cache_info().misses

    assert misses() == 1
    monkeypatch.setitem(globals(), "plus", times)
    assert misses() == 2
    monkeypatch.setattr(times, "__code__", (lambda x: x - 1).__code__)
    assert misses() == 3
    by = 5
    assert misses() == 4
    monkeypatch.delitem(globals(), "plus")
    with pytest.raises(NameError):
        launch(x, y)


def test_fast_calls_notice_another_target(gpu: FakeDriver) -> None:
    x, y = OnGpu(32), OnGpu(32)
    run(x, y, "fast", 7)
    with cute.target("sm_80"):
        run(x, y, "fast", 7)
    run(x, y, "fast", 7)
    assert {k.options.chip for k in run.kinds()} == {"sm_80", run.kinds()[-1].options.chip}
    assert len(run.kinds()) == 2


def test_a_stream_among_the_arguments(gpu: FakeDriver) -> None:
    x, y = OnGpu(32), OnGpu(32)
    for stream in (3, 4, None, 5):
        run(x, y, "fast", 7, stream)
    assert [r["stream"] for r in gpu.launches] == [3, 4, 55, 5]
    assert run.cache_info().misses == 1


def test_compiled_specializations_have_fast_calls(gpu: FakeDriver, monkeypatch: pytest.MonkeyPatch) -> None:
    x, y = OnGpu(32), OnGpu(32)

    @cute.jit
    def two(x: Any, y: Any) -> None:
        scale(x, y, 2).launch(grid=1, block=32)

    k = cute.compile(two, x, y)
    first = k.__call__
    k(x, y)
    assert k.__call__ is not first
    k(y, x)
    assert len(gpu.launches) == 2
    with pytest.raises(StrideError, match=r"argument x, mode 0: expected stride 1, got 2"):
        k(OnGpu(32, step=2), y)
    k(x, y)
    assert len(gpu.launches) == 3


def test_omitted_defaults_keep_calls_fast(gpu: FakeDriver) -> None:
    """A call that omits a constant with a default is also a cached call."""
    x, y = OnGpu(32), OnGpu(32)

    @cute.jit
    def three(x: Any, y: Any, by: cute.Constexpr[int] = 2) -> None:
        scale(x, y, by).launch(grid=1, block=32)

    k = cute.compile(three, x, y)
    first = k.__call__
    k(x, y)
    assert k.__call__ is not first
    k(y, x)
    k(x, y, 2)
    assert len(gpu.launches) == 3


class Reads:
    """Counts calls whose arguments are fully inspected."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch):
        from cute_dialect.lang.calls import specializations

        self.count = 0
        read = specializations.read_call

        def counted(*args: Any, **kwargs: Any) -> Any:
            self.count += 1
            return read(*args, **kwargs)

        monkeypatch.setattr(specializations, "read_call", counted)

    def of(self, call: Callable[[], object]) -> int:
        """Return the number of full inspections of a call's arguments."""
        before = self.count
        call()
        return self.count - before


@pytest.fixture
def reads(gpu: FakeDriver, monkeypatch: pytest.MonkeyPatch) -> Reads:
    return Reads(monkeypatch)


@pytest.fixture
def addresses(gpu: FakeDriver) -> list[tuple[int, int]]:
    """Return the addresses that each launch of ``scale`` receives."""
    found: list[tuple[int, int]] = []

    def note(record: Any) -> None:
        x, y = (ctypes.c_uint64.from_address(p).value for p in record["parameters"][:2])
        found.append((x, y))

    gpu.kernels["scale"] = note
    return found


class Base:
    shift = 1


@dataclasses.dataclass
class Scale(Base):
    """A callable configuration object."""

    by: int = 2
    tiles: list[int] = dataclasses.field(default_factory=lambda: [8, 16])

    @cute.jit
    def __call__(self, x: Any, y: Any) -> None:
        self.later = self.by  # The value is restored after the trace.
        number = self.by * self.shift + self.tiles[0]
        scale(x, y, number).launch(grid=number, block=32)

    @cute.jit
    def other(self, x: Any, y: Any) -> None:
        scale(x, y, self.by).launch(grid=1, block=64)


@pytest.mark.slow
def test_methods(gpu: FakeDriver, reads: Reads, addresses: list[tuple[int, int]]) -> None:
    x, y = OnGpu(32, 1 << 20), OnGpu(32, 1 << 21)
    one, two = Scale(), Scale(by=5)
    Scale.__call__.cache_clear()  # pyright: ignore[reportAttributeAccessIssue]
    assert [reads.of(lambda: one(x, y)) for _ in range(3)] == [1, 0, 0]
    assert reads.of(lambda: one(y, x)) == 0 and addresses[-1] == (1 << 21, 1 << 20)
    assert [reads.of(functools.partial(s, x, y)) for s in (two, one, two)] == [1, 0, 0]
    assert [reads.of(lambda: one.other(x, y)) for _ in range(2)] == [1, 0]
    assert reads.of(lambda: one(x, y)) == 0

    def grids(call: Callable[[], object], n: int = 2) -> list[tuple[int, int]]:
        """Return the number of inspected calls, and each call's grid, which identifies the specialization."""
        return [(reads.of(call), gpu.launches[-1]["grid"][0]) for _ in range(n)]

    assert grids(lambda: one(x, y)) == [(0, 10), (0, 10)] and grids(lambda: two(x, y)) == [(0, 13), (0, 13)]
    # Each call compares the receiver's class and, recursively, its attributes.
    one.by = 3
    assert grids(lambda: one(x, y)) == [(1, 11), (0, 11)]
    one.tiles[0] = 9
    assert grids(lambda: one(x, y)) == [(1, 12), (0, 12)]
    one.tiles = [7]
    assert grids(lambda: one(x, y)) == [(1, 10), (0, 10)]
    one.more = 1  # pyright: ignore[reportAttributeAccessIssue]
    assert grids(lambda: one(x, y)) == [(1, 10), (0, 10)]
    Base.shift = 4
    try:
        assert grids(lambda: one(x, y)) == [(1, 19), (0, 19)]
    finally:
        Base.shift = 1
    assert grids(lambda: one(x, y)) == [(0, 10), (0, 10)]  # The first specialization is still cached.
    assert len(gpu.launches) == len(addresses)


def test_package_objects_compare_by_attributes() -> None:
    from cute_dialect.lang.calls.cache.dependencies import unchanged_since

    raster = cute.utils.GroupedRaster((4, 4), 8)
    same = unchanged_since([raster])
    assert same is not None and same()
    raster.group = 4
    assert not same()


def test_tensors_of_from_dlpack(gpu: FakeDriver, reads: Reads, addresses: list[tuple[int, int]]) -> None:
    def wrapped(n: int, pointer: int) -> Any:
        return cute.from_dlpack(OnGpu(n, pointer), assumed_align=16)

    @cute.jit
    def run(x: cute.Tensor, y: cute.Tensor) -> None:
        scale(x, y, 2).launch(grid=1, block=32)

    x, y = wrapped(32, 1 << 20), wrapped(32, 1 << 21)
    assert [reads.of(lambda: run(x, y)) for _ in range(2)] == [1, 0]
    assert reads.of(lambda: run(wrapped(32, 1 << 22), y)) == 0 and addresses[-1] == (1 << 22, 1 << 21)
    assert reads.of(lambda: run(wrapped(16, 1 << 20), y)) == 1 and len(run.kinds()) == 2  # The static shape differs.
    x.mark_layout_dynamic()
    assert reads.of(lambda: run(x, y)) == 1 and len(run.kinds()) == 3
    assert reads.of(lambda: run(wrapped(32, 1 << 20).mark_layout_dynamic(), y)) == 0
    x.mark_static(0)
    assert reads.of(lambda: run(x, y)) == 0 and len(run.kinds()) == 3  # This is the first specialization again.
    x.element_type = cute.Int32
    assert reads.of(lambda: run(x, y)) == 1 and len(run.kinds()) == 4
    k = cute.compile(run, wrapped(32, 0), wrapped(32, 0))
    first = k.__call__
    k(y, y)
    assert k.__call__ is not first
    k(wrapped(32, 3 << 20), y)
    assert addresses[-1] == (3 << 20, 1 << 21)
    before = len(gpu.launches)
    with pytest.raises(Exception, match="it was compiled for shape"):
        k(wrapped(16, 1 << 20), y)
    assert len(gpu.launches) == before


class Pair(NamedTuple):
    x: Any
    by: int


class Holder:
    def __init__(self, y: Any, mode: str):
        self.y = y
        self.mode = mode


@pytest.mark.slow
def test_containers(gpu: FakeDriver, reads: Reads, addresses: list[tuple[int, int]]) -> None:
    @cute.jit
    def run(pair: Any, others: Any, more: Any) -> None:
        scale(pair.x, others["y"][1], pair.by + len(more)).launch(grid=1, block=32)

    x, y, z = OnGpu(32, 1 << 20), OnGpu(32, 1 << 21), OnGpu(32, 1 << 22)
    assert [reads.of(lambda: run(Pair(x, 3), {"y": [x, y]}, ())) for _ in range(2)] == [1, 0]
    assert reads.of(lambda: run(Pair(y, 3), {"y": [x, z]}, ())) == 0 and addresses[-1] == (1 << 21, 1 << 22)
    low = OnGpu(32, (1 << 23) + 4)
    assert [reads.of(lambda: run(Pair(low, 3), {"y": [x, y]}, ())) for _ in range(2)] == [1, 0]
    assert addresses[-1] == ((1 << 23) + 4, 1 << 21)
    for changed in (
        lambda: run((x, 3), {"y": [x, y]}, ()),
        lambda: run(Pair(x, 4), {"y": [x, y]}, ()),
        lambda: run(Pair(x, 3), {"y": [x, y, z]}, ()),
        lambda: run(Pair(x, 3), {"y": (x, y)}, ()),
        lambda: run(Pair(x, 3), {"y": [x, y], "z": z}, ()),
        lambda: run(Pair(x, 3), {"y": [x, OnGpu(16)]}, ()),
        lambda: run(Pair(x, 3), {"y": [x, y]}, (1,)),
        lambda: run(Pair(x, 3), [x, y], ()),
        lambda: run(Pair(x, 3), {"y": [x, y]}, (), 1),
    ):
        before = len(gpu.launches)
        try:
            assert reads.of(changed) == 1
        except (cute.CompileError, AttributeError, TypeError):
            assert len(gpu.launches) == before
    assert len(gpu.launches) == len(addresses)


def test_objects_that_hold_tensors(gpu: FakeDriver, reads: Reads, addresses: list[tuple[int, int]]) -> None:
    @dataclasses.dataclass
    class Arguments:
        x: cute.Tensor
        y: cute.Tensor
        by: int = 2

    @cute.jit
    def run(a: Any) -> None:
        scale(a.x, a.y, a.by).launch(grid=1, block=32)

    x, y = OnGpu(32, 1 << 20), OnGpu(32, 1 << 21)
    a = Arguments(x, y)
    assert [reads.of(lambda: run(a)) for _ in range(2)] == [1, 0]
    assert reads.of(lambda: run(Arguments(y, x))) == 0 and addresses[-1] == (1 << 21, 1 << 20)
    a.x = y
    assert reads.of(lambda: run(a)) == 0 and addresses[-1] == (1 << 21, 1 << 21)
    a.more = 3  # pyright: ignore[reportAttributeAccessIssue]
    assert reads.of(lambda: run(a)) == 1
    del a.more  # pyright: ignore[reportAttributeAccessIssue]
    assert reads.of(lambda: run(a)) == 0
    a.y = OnGpu(8)
    assert reads.of(lambda: run(a)) == 1


CONFIG: dict[str, Any] = {"by": 2, "tiles": [8, 16]}


@pytest.mark.slow
def test_objects_referenced_by_a_function(gpu: FakeDriver, reads: Reads, monkeypatch: pytest.MonkeyPatch) -> None:
    local = Holder(None, "slow")

    @cute.jit
    def run(x: Any, y: Any) -> None:
        number = CONFIG["by"] + CONFIG["tiles"][1] + len(local.mode)
        scale(x, y, number).launch(grid=number, block=32)

    x, y = OnGpu(32), OnGpu(32)

    def grids() -> list[tuple[int, int]]:
        return [(reads.of(lambda: run(x, y)), gpu.launches[-1]["grid"][0]) for _ in range(2)]

    assert grids() == [(1, 22), (0, 22)]
    CONFIG["tiles"][1] = 17
    try:
        assert grids() == [(1, 23), (0, 23)]
    finally:
        CONFIG["tiles"][1] = 16
    assert grids() == [(0, 22), (0, 22)]  # The first specialization is still cached.
    local.mode = "fast one"
    assert grids() == [(1, 26), (0, 26)]
    CONFIG["by"] = True
    try:
        assert grids() == [(1, 25), (0, 25)]
        CONFIG["by"] = 1  # It compares equal but is a different constant.
        assert grids() == [(1, 25), (0, 25)]
    finally:
        CONFIG["by"] = 2
    assert grids() == [(0, 26), (0, 26)]
    monkeypatch.setitem(globals(), "CONFIG", {**CONFIG, "by": 5})
    assert grids() == [(1, 29), (0, 29)]
