"""Loads of tensor memory that also reduce the columns of each thread (``tcgen05.ld.red``), compared with numpy."""

# Values of the language are checked when a kernel is traced.
# pyright: basic, reportAttributeAccessIssue=false

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import cute_dialect.lang as cute
from cute_dialect.errors import CuteError
from cute_dialect.interp import InterpError
from cute_dialect.lang import pipeline, utils
from cute_dialect.lang.nvgpu import tcgen05
from cute_dialect.pipelines.compiler import compile_lazily

Reduction, Repetition = tcgen05.TmemLoadRedOp, tcgen05.Repetition
CHECKS = ["race", "uninit", "strict"]
COLUMNS = 32


@cute.kernel
def reduced(x: Any, y: Any, m: Any, op: cute.Constexpr) -> None:
    """Store x in tensor memory, load it to y, and store the reductions of thread t to row t of m."""
    thread, kind = cute.arch.thread_idx().x, x.element_type
    x, y = (cute.local_tile(t, (128, COLUMNS), (0, 0)) for t in (x, y))
    slot = cute.arch.alloc_smem(cute.Int32, 1)
    allocator = utils.TmemAllocator(slot, pipeline.NamedBarrier(1, 128))
    allocator.allocate(COLUMNS)
    allocator.relinquish_alloc_permit()
    allocator.wait_for_alloc()
    t = cute.make_tensor(allocator.retrieve_ptr(kind), cute.make_layout((128, COLUMNS), stride=(1 << 16, 1)))
    store = tcgen05.make_tmem_copy(cute.make_copy_atom(tcgen05.St32x32bOp(Repetition(COLUMNS)), kind), t)
    store = store.get_slice(thread)
    row = cute.make_rmem_tensor((COLUMNS, 1, 1), kind)
    cute.autovec_copy(store.partition_S(x), row)
    cute.copy(store, row, store.partition_D(t))
    cute.arch.fence_view_async_tmem_store()
    load = tcgen05.make_tmem_copy(cute.make_copy_atom(op, kind), t).get_slice(thread)
    shape = load.partition_D(x).shape
    values, found = cute.make_rmem_tensor(shape, kind), cute.make_rmem_tensor((1, *shape[1:]), kind)
    cute.copy(load, load.partition_S(t), (values, found))
    cute.autovec_copy(values, load.partition_D(y))
    for i in cute.range_constexpr(cute.size(found)):
        m[thread, i] = found[i]
    tcgen05.fence_before_thread_sync()
    cute.arch.sync_threads()
    allocator.free(t.iterator)


@cute.jit
def run(x: Any, y: Any, m: Any, op: cute.Constexpr) -> None:
    reduced(x, y, m, op).launch(grid=1, block=128)


def numbers(kind: Any, *, nan: bool = False) -> Any:
    rng = np.random.default_rng(0)
    if kind is not np.float32:
        return rng.integers(-1000, 1000, (128, COLUMNS)).astype(kind)
    x = rng.standard_normal((128, COLUMNS)).astype(kind)
    if nan:
        x[::7, 3] = np.nan
    return x


def compiled(op: Any, kind: Any, chip: str = "sm_103a") -> tuple[Any, list[Any]]:
    x = numbers(kind)
    m = np.zeros((128, COLUMNS // op.repeat.value), kind)
    given = [x, np.zeros_like(x), m]
    return cute.compile(run, *given, op, chip=chip, device="cpu"), given


@pytest.mark.sample(every=8)
@pytest.mark.end_to_end
@pytest.mark.parametrize("kind", [np.float32, np.int32], ids=["f32", "i32"])
@pytest.mark.parametrize("n", [2, 8, 32])
@pytest.mark.parametrize("reduction", [Reduction.MIN, Reduction.MAX])
def test_reductions(reduction: Any, n: int, kind: Any) -> None:
    """Each instruction reduces its columns, and loads the values, too."""
    kernel, (x, y, m) = compiled(tcgen05.LdRed32x32bOp(Repetition(n), redOp=reduction), kind)
    kernel(x, y, m, checks=CHECKS)
    want = x.reshape(128, -1, n)
    assert np.array_equal(y, x)
    assert np.array_equal(m, want.max(axis=2) if reduction is Reduction.MAX else want.min(axis=2))
    name = f"tcgen05.ld.red.sync.aligned.32x32b.x{n}.{reduction.value}.{'f32' if kind is np.float32 else 's32'}"
    assert kernel.ptx.count(name) == COLUMNS // n


@pytest.mark.slow
@pytest.mark.parametrize("nan", [False, True])
@pytest.mark.parametrize("reduction", [Reduction.MAXABS, Reduction.MINABS])
def test_absolute_values_and_nans(reduction: Any, nan: bool) -> None:
    op = tcgen05.LdRed32x32bOp(Repetition.x16, redOp=reduction, nan=nan)
    kernel, (_, y, m) = compiled(op, np.float32, "sm_110a")
    x = numbers(np.float32, nan=True)
    kernel(x, y, m, checks=CHECKS)
    parts = np.abs(x).reshape(128, -1, 16)
    of = {Reduction.MAXABS: (np.nanmax, np.max), Reduction.MINABS: (np.nanmin, np.min)}[reduction][nan]
    assert np.array_equal(m, of(parts, axis=2), equal_nan=True)
    assert np.isnan(m).any() == nan


@pytest.mark.slow
def test_without_the_wait_nothing_is_loaded() -> None:
    op = tcgen05.LdRed32x32bOp(Repetition.x32)
    given = [numbers(np.float32), np.zeros((128, COLUMNS), np.float32), np.zeros((128, 1), np.float32)]
    lines = cute.trace(run, *given, op, chip="sm_103a").mlir().splitlines()
    waits = [i for i, line in enumerate(lines) if "tmem_wait" in line and "load" in line]
    assert len(waits) == 1
    text = "\n".join(line for i, line in enumerate(lines) if i not in waits)
    with pytest.raises(InterpError, match=r"tcgen05\.wait::ld"):
        compile_lazily(text, "mutant", chip="sm_103a").kernel("run")(*given, device="cpu", checks=CHECKS)


ERRORS = {
    "F250: tcgen05.LdRed32x32bOp: reduces Float32 and Int32, got Uint32; use cute.recast_tensor": lambda: compiled(
        tcgen05.LdRed32x32bOp(Repetition.x2), np.uint32
    ),
    "F280: LdRed32x32bOp needs": (lambda: compiled(tcgen05.LdRed32x32bOp(Repetition.x2), np.float32, "sm_100a")),
    "F250: tcgen05.LdRed32x32bOp: a load with a reduction has no pack; use Pack.NONE": lambda: compiled(
        tcgen05.LdRed32x32bOp(Repetition.x2, tcgen05.Pack.PACK_16b_IN_32b), np.float32
    ),
    "F250: tcgen05.LdRed32x32bOp: redOp must be a tcgen05.TmemLoadRedOp, got 'max'": lambda: compiled(
        tcgen05.LdRed32x32bOp(Repetition.x2, redOp="max"),
        np.float32,  # pyright: ignore
    ),
    "F250: cute.make_copy_atom(LdRed32x32bOp, …): 32x32b with x1 has no load with a reduction; use 32x32b or 16x32bx2, "
    "with x2 or more": (lambda: compiled(tcgen05.LdRed32x32bOp(Repetition.x1), np.float32)),
    "F250: cute.make_copy_atom(LdRed32x32bOp, …): abs and nan need elements of f32, got i32": lambda: compiled(
        tcgen05.LdRed32x32bOp(Repetition.x2, redOp=Reduction.MAXABS), np.int32
    ),
}


@pytest.mark.parametrize("message", ERRORS)
def test_errors(message: str) -> None:
    with pytest.raises(CuteError) as caught:
        ERRORS[message]()
    caught.value.place = None
    caught.value.calls = []
    assert str(caught.value).startswith(f"error {message}")


def traced(body: Any) -> None:
    @cute.kernel
    def kernel() -> None:
        slot = cute.arch.alloc_smem(cute.Int32, 1)
        pointer = cute.arch.retrieve_tmem_ptr(cute.Float32, 16, slot)
        t = cute.make_tensor(pointer, cute.make_layout((128, 32), stride=(1 << 16, 1)))
        op = tcgen05.LdRed32x32bOp(Repetition.x8)
        load = tcgen05.make_tmem_copy(cute.make_copy_atom(op, cute.Float32), t).get_slice(cute.arch.thread_idx().x)
        body(load, load.partition_S(t), cute.make_rmem_tensor((8, 1, 4), cute.Float32))

    cute.trace(kernel, grid=1, block=128, chip="sm_103a")


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (
            lambda load, t, values: cute.copy(load, t, values),
            "dst must be a tuple of the values and the results of the reduction, got tensor<",
        ),
        (
            lambda load, t, values: cute.copy(load, t, (values, cute.make_rmem_tensor(1, cute.Float32))),
            "the results of the reduction must have one element per instruction, 4, got tensor<",
        ),
    ],
)
def test_errors_of_copies(body: Any, message: str) -> None:
    with pytest.raises(CuteError) as caught:
        traced(body)
    assert f"F254: cute.copy by LdRed32x32bOp: {message}" in str(caught.value)
