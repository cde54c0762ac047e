"""Kernels written for CuTe DSL, run on the interpreter and compared with numpy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import cute_dialect.lang as cute
from cute_dialect.errors import CuteError


@cute.struct
class Storage:
    count: cute.Int32
    values: cute.struct.MemRange[cute.Float32, 4]


@cute.kernel
def fields_kernel(out: cute.Tensor):
    storage = cute.utils.SmemAllocator().allocate(Storage)
    if cute.arch.thread_idx().x == 0:
        storage.count = 40
        storage.count = storage.count.load() + 2
    cute.arch.sync_threads()
    out[cute.arch.thread_idx().x] = storage.count.load()


@cute.kernel
def wrong_fields_kernel(out: cute.Tensor):
    storage = cute.utils.SmemAllocator().allocate(Storage)
    storage.values = 3


@cute.kernel
def hints_kernel(x: cute.Tensor, out: cute.Tensor):
    total = cute.Float32(0)
    for i in range(4, unroll_full=True):
        total += x[i]
    for i in range(4, 8, unroll=2):
        total += x[i]
    if cute.const_expr(x.shape[0] == 8):
        out[cute.arch.thread_idx().x] = total


@cute.kernel
def const_kernel(out: cute.Tensor):
    if cute.const_expr(cute.arch.thread_idx().x == 0):
        out[0] = 1


@cute.jit
def launch(kernel: cute.Constexpr, *arrays):
    kernel(*arrays).launch(grid=1, block=32)


def test_fields_of_structures_are_assigned() -> None:
    out = np.zeros(32, np.int32)
    launch(fields_kernel, out, device="cpu", checks=("race", "uninit"))
    assert set(out) == {42}
    with pytest.raises(
        CuteError, match="F263: field 'values' of Storage is not a number; assign to its elements instead"
    ):
        launch(wrong_fields_kernel, out, device="cpu")


def test_hints_of_ranges() -> None:
    x, out = np.arange(8, dtype=np.float32), np.zeros(32, np.float32)
    fixed = cute.from_dlpack(x)
    launch(hints_kernel, fixed, out, device="cpu")
    assert set(out) == {28.0}
    trace = cute.compile(launch, hints_kernel, fixed, out, chip="sm_80").mlir("trace")
    assert trace.count("scf.for") == 1 and "cute.unroll = 2" in trace


def test_const_expr_checks() -> None:
    with pytest.raises(CuteError, match="F140: const_expr needs a value known at compile time"):
        launch(const_kernel, np.zeros(32, np.int32), device="cpu")


@pytest.mark.parametrize("swizzle", [(2, 3, 3), (3, 3, 3), (1, 2, 4)])
def test_accumulators_through_a_swizzled_layout(swizzle: tuple[int, int, int]) -> None:
    """Accumulators written through the MMA's partition of swizzled shared memory are read back by index."""

    @cute.kernel
    def kernel(x: cute.Tensor, out: cute.Tensor):
        op = cute.nvgpu.warp.MmaF16BF16Op(cute.Float16, cute.Float32, (16, 8, 16))
        mma = cute.make_tiled_mma(op, (2, 2, 1), permutation_mnk=(32, 32, 16))
        layout = cute.make_composed_layout(cute.make_swizzle(*swizzle), 0, cute.make_layout((32, 64), stride=(64, 1)))
        s = cute.utils.SmemAllocator().allocate_tensor(cute.Float32, layout, 128)
        thread = cute.arch.thread_idx().x
        thr = mma.get_slice(thread)
        mine = cute.make_fragment_like(thr.partition_C(x))
        cute.autovec_copy(thr.partition_C(x), mine)
        cute.autovec_copy(mine, thr.partition_C(s))
        cute.arch.sync_threads()
        for i in range(thread, 32 * 64, 128):
            out[i // 64, i % 64] = s[i // 64, i % 64]

    @cute.jit
    def host(x: cute.Tensor, out: cute.Tensor):
        kernel(x, out).launch(grid=1, block=128)

    x = np.arange(32 * 64, dtype=np.float32).reshape(32, 64)
    out: Any = np.full_like(x, np.nan)
    host(cute.from_dlpack(x), out, device="cpu", checks=("race", "uninit", "oob"))
    np.testing.assert_array_equal(out, x)


class Buffer:
    """A buffer with a dynamic address and static attributes, as host functions of CuTe DSL programs accept."""

    def __init__(self, ptr: Any, order: tuple[int, int], rows: int):
        self.ptr = ptr
        self.order = order
        self.rows = rows

    def tensor(self) -> Any:
        return cute.make_tensor(self.ptr, cute.make_ordered_layout((self.rows, 4), self.order))


@cute.kernel
def fill_kernel(out: cute.Tensor):
    i = cute.arch.thread_idx().x
    out[i // 4, i % 4] = i


@cute.jit
def fill(buffer: Buffer):
    assert buffer.ptr.value_type is cute.Int32 and buffer.ptr.alignment == 16
    fill_kernel(buffer.tensor()).launch(grid=1, block=32)


def test_objects_with_pointers() -> None:
    def pointer(array: Any) -> Any:
        return cute.runtime.make_ptr(cute.Int32, array, cute.AddressSpace.gmem, assumed_align=16)

    out = np.zeros((8, 4), np.int32)
    fill(Buffer(pointer(out), (1, 0), 8), device="cpu")
    np.testing.assert_array_equal(out, np.arange(32).reshape(8, 4))
    turned = np.zeros((4, 8), np.int32)
    fill(Buffer(pointer(turned), (0, 1), 8), device="cpu")
    np.testing.assert_array_equal(turned, np.arange(32).reshape(8, 4).T)
    fill(Buffer(pointer(out), (1, 0), 8), device="cpu")
    assert len(fill.kinds()) == 2  # The static attributes select the specialization.
    circle = Buffer(pointer(out), (1, 0), 8)
    circle.order = circle  # type: ignore
    with pytest.raises(CuteError, match=r"F121: argument 'buffer.order.order.* contains itself and holds arrays"):
        fill(circle, device="cpu")


@cute.kernel
def bytes_kernel(out: cute.Tensor):
    smem = cute.utils.SmemAllocator()
    first, small = smem.allocate(2000, byte_alignment=16), smem.allocate(100)
    assert first.alignment == 1024 and small.alignment == 64
    out[0] = 1.0


def test_bytes_are_aligned_so_that_swizzles_fit() -> None:
    bytes_kernel(np.zeros(1, np.float32)).launch(grid=1, block=1, device="cpu")


@cute.kernel
def asm_kernel(x: cute.Tensor, out: cute.Tensor):
    from cute_dialect.compat.mlir.llvm import AsmDialect, inline_asm
    from cute_dialect.lang.extras import T

    i = cute.arch.thread_idx().x
    cute.arch.fence_proxy(cute.arch.ProxyKind.async_shared, space=cute.arch.SharedSpace.shared_cta)
    a = cute.Int32(x[i])
    made = inline_asm(
        T.i32(), [a.ir_value(), cute.Int32(5).ir_value(loc=None, ip=None)], "add.s32 $0, $1, $2;", "=r,r,r",
        has_side_effects=False, is_align_stack=False, asm_dialect=AsmDialect.AD_ATT,
    )  # fmt: skip
    out[i] = cute.Int32(made)


@cute.kernel
def wrong_asm_kernel(x: cute.Tensor):
    from cute_dialect.compat.mlir.llvm import inline_asm

    inline_asm(cute.Int32, [x[0]], "add.s32 $0, $1, $2;", "=r,r,r")


def test_inline_asm() -> None:
    x, out = np.arange(32, dtype=np.int32), np.zeros(32, np.int32)
    launch(asm_kernel, x, out, device="cpu")
    np.testing.assert_array_equal(out, x + 5)
    with pytest.raises(CuteError, match="F251: inline_asm: the constraints '=r,r,r' do not match 1 results"):
        launch(wrong_asm_kernel, x, device="cpu")
