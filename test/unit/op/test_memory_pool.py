"""The memory pool for copies and workspaces: driver calls and memory in use."""

from __future__ import annotations

from typing import Any

import pytest

from cute_dialect import op
from cute_dialect.op.arrays import memory
from cute_dialect.runtime import driver as cuda

bindings = pytest.importorskip("cuda.bindings.driver", reason="NOT RUN: no cuda-python (pip install '.[test]')")


class Bindings:
    """A fake ``cuda.bindings.driver`` that records memory calls."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, tuple[Any, ...]]] = []

    def __getattr__(self, name: str) -> Any:
        if not name.startswith("cu") or name.startswith("cuuint"):
            return getattr(bindings, name)

        def call(*arguments: Any) -> tuple[Any, ...]:
            self.calls.append((name, arguments))
            given = {"cuMemPoolCreate": "pool", "cuCtxGetCurrent": 7, "cuDevicePrimaryCtxRetain": 7}.get(name)
            if name in ("cuMemAlloc", "cuMemAllocFromPoolAsync"):
                given = 4096 * len(self.calls)
            return (0,) if given is None else (0, given)

        return call

    def named(self, name: str) -> list[tuple[Any, ...]]:
        return [arguments for called, arguments in self.calls if called == name]


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> Any:
    made = Bindings()
    gpu = cuda.Driver.__new__(cuda.Driver)
    gpu._cuda, gpu._contexts, gpu.device_count = made, {}, 1
    monkeypatch.setattr(cuda, "driver", lambda: gpu)
    memory.pool_of.cache_clear()
    memory._POOLS.clear()
    yield made
    memory.pool_of.cache_clear()
    memory._POOLS.clear()
    memory._SIZES[:] = [0, 0]


def test_allocations_without_a_pool(fake: Bindings) -> None:
    pool = memory.pool_of(0)
    x, y = pool.array(100, "f32"), pool.array(3, "i32", zero=True)
    assert op.get_allocated_size() == 412 and x.shape == (100,) and y.device == 0 and x.pointer != y.pointer
    assert [size for (size,) in fake.named("cuMemAlloc")] == [400, 12] and not fake.named("cuMemPoolCreate")
    ((pointer, _, size),) = fake.named("cuMemcpyHtoD")
    assert (pointer, size) == (y.pointer, 12)
    del x
    assert op.get_allocated_size() == 12 and len(fake.named("cuMemFree")) == 1
    with pytest.raises(
        op.ShapeError, match=("get_memory_pool: 12 bytes are in use; call it before the first operation on a GPU")
    ):
        op.get_memory_pool(0, 1 << 20)


def test_a_pool(fake: Bindings) -> None:
    op.get_memory_pool(1 << 20, 1 << 30)
    assert not fake.calls  # No memory is reserved before a GPU is used.
    pool = memory.pool_of(0)
    ((wanted,),) = fake.named("cuMemPoolCreate")
    assert (wanted.location.id, wanted.maxSize) == (0, 1 << 30)
    assert wanted.location.type == bindings.CUmemLocationType.CU_MEM_LOCATION_TYPE_DEVICE
    ((_, attribute, kept),) = fake.named("cuMemPoolSetAttribute")
    assert attribute == bindings.CUmemPool_attribute.CU_MEMPOOL_ATTR_RELEASE_THRESHOLD and int(kept) == 1 << 30
    assert fake.named("cuMemAllocFromPoolAsync")[0][:2] == (1 << 20, "pool")
    assert len(fake.named("cuMemFreeAsync")) == 1 and op.get_allocated_size() == 0
    held = pool.allocate(64)
    assert op.get_allocated_size() == 64 and not fake.named("cuMemAlloc")
    pool.free(held)


def test_sizes_are_checked() -> None:
    with pytest.raises(
        op.ShapeError,
        match=(
            "get_memory_pool: init_pool_size is 2 and max_pool_size is 1; pass 0 <= init_pool_size <= max_pool_size "
            "and max_pool_size > 0"
        ),
    ):
        op.get_memory_pool(2, 1)
