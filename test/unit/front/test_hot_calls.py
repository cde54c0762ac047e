"""Calls of a function with torch tensors on a GPU go to generated code from the second one on; the driver is a fake."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest
from pipelines_support import FakeDriver

import cute_dialect.lang as cute
from cute_dialect.front import target
from cute_dialect.runtime import driver
from cute_dialect.runtime.binding import StrideError

N = 3


class Device(NamedTuple):
    """A device of torch."""

    type: str
    index: int


class FakeTensor:
    """As much of a torch tensor as the launcher looks at."""

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
    """The module ``torch``; its current stream is 55."""

    Tensor = FakeTensor

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
    monkeypatch.setattr(driver, "driver", lambda: fake)
    monkeypatch.setitem(sys.modules, "torch", FakeTorch)
    target._gpus_chip.cache_clear()
    run.cache_clear()
    yield fake
    target._gpus_chip.cache_clear()


def test_calls_like_the_last_are_not_read(gpu: FakeDriver, monkeypatch: pytest.MonkeyPatch) -> None:
    from cute_dialect.front import kinds

    seen: list[int] = []
    gpu.kernels["scale"] = lambda record: seen.append(ctypes.c_uint64.from_address(record["parameters"][0]).value)
    reads: list[int] = []
    read = kinds.read_call
    monkeypatch.setattr(kinds, "read_call", lambda *a, **k: reads.append(1) or read(*a, **k))
    x, y = FakeTensor(32), FakeTensor(32, 1 << 21)
    for i in range(4):
        run(FakeTensor(32, (i + 1) << 20), y, "fast", 7)
    assert len(reads) == 1 and len(gpu.launches) == 4
    assert seen == [i << 20 for i in range(1, 5)]
    assert {r["stream"] for r in gpu.launches} == {55}
    run(x, y, "fast", 7, stream=9)
    assert gpu.launches[-1]["stream"] == 9
    # Other arguments are read again, and are other kinds where they must be.
    run(x, y, "slow", 7)
    run(x, y, "slow", 8)
    run(FakeTensor(32, (1 << 20) + 4), y, "slow", 8)
    run(FakeTensor(16), y, "slow", 8)
    run(FakeTensor(16, step=2), y, "slow", 8)
    assert len(gpu.launches) == 10 and len(run.kinds()) == 4
    before = len(reads)
    for _ in range(2):  # of a few shapes in turn each is known
        run(FakeTensor(16, step=2), y, "slow", 8)
        run(FakeTensor(16), y, "slow", 8)
        run(x, y, "slow", 8)
    assert len(reads) - before <= 1 and len(gpu.launches) == 16


def test_a_changed_global_is_seen_by_quick_calls(gpu: FakeDriver, monkeypatch: pytest.MonkeyPatch) -> None:
    x, y = FakeTensor(32), FakeTensor(32)
    run(x, y, "fast", 7)
    run(x, y, "fast", 7)
    assert run.cache_info().misses == 1
    monkeypatch.setitem(globals(), "N", 4)
    run(x, y, "fast", 7)
    assert run.cache_info().misses == 2


def test_another_target_is_seen_by_quick_calls(gpu: FakeDriver) -> None:
    x, y = FakeTensor(32), FakeTensor(32)
    run(x, y, "fast", 7)
    with cute.target("sm_80"):
        run(x, y, "fast", 7)
    run(x, y, "fast", 7)
    assert {k.options.chip for k in run.kinds()} == {"sm_80", run.kinds()[-1].options.chip}
    assert len(run.kinds()) == 2


def test_a_stream_among_the_arguments(gpu: FakeDriver) -> None:
    x, y = FakeTensor(32), FakeTensor(32)
    for stream in (3, 4, None, 5):
        run(x, y, "fast", 7, stream)
    assert [r["stream"] for r in gpu.launches] == [3, 4, 55, 5]
    assert run.cache_info().misses == 1


def test_a_compiled_kind_has_quick_calls_too(gpu: FakeDriver, monkeypatch: pytest.MonkeyPatch) -> None:
    x, y = FakeTensor(32), FakeTensor(32)

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
        k(FakeTensor(32, step=2), y)
    k(x, y)
    assert len(gpu.launches) == 3


def test_what_a_call_leaves_out_costs_nothing(gpu: FakeDriver) -> None:
    """A default that is a constant of the kind: calls without it are quick, too."""
    x, y = FakeTensor(32), FakeTensor(32)

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
