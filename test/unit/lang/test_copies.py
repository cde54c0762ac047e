"""Copies with atoms and tiled copies, run on the interpreter and compared with numpy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from front_tensors import identity_tensor, run_on_arrays, shared_tensor, view, when
from tracing import text_of, trace_kernel

import cute_dialect.lang as cute
from cute_dialect.arch import find_matrix_copy
from cute_dialect.errors import CuteError
from cute_dialect.lang.values.tensors import Tensor

nvgpu = cute.nvgpu
cpasync = nvgpu.cpasync
warp = nvgpu.warp
arch = cute.arch

F32 = 'f32, gmem, align<16>, "(16,64):(64,1)"'


def numbers(m: int = 16, n: int = 64, dtype: Any = np.float32) -> Any:
    return np.arange(m * n).astype(dtype).reshape(m, n)


def threads_and_values() -> tuple[Any, Any]:
    return cute.make_layout((4, 8), stride=(8, 1)), cute.make_layout((2, 4), stride=(4, 1))


@pytest.mark.parametrize("bits", [None, 32, 128])
def test_universal(bits: int | None) -> None:
    def body(x: Tensor, y: Tensor) -> None:
        atom = cute.make_copy_atom(nvgpu.CopyUniversalOp(), cute.Float32, num_bits_per_copy=bits)
        tiled = cute.make_tiled_copy_tv(atom, *threads_and_values())
        assert tiled.size == 32 and tiled.tiler_mn == (8, 32)
        assert str(tiled.layout_tv_tiled) == "((8,4),(4,2)):((32,2),(8,1))"
        thr = tiled.get_slice(arch.thread_idx().x)
        source, destination = thr.partition_S(x), thr.partition_D(y)
        held = cute.make_fragment_like(source)
        cute.copy(tiled, source, held)
        cute.copy(atom, held, destination)

    x, y = numbers(), numbers() * 0
    run_on_arrays(body, {"x": (F32, x), "y": (F32, y)})
    assert (x == y).all()


def test_tile_copy_with_a_thread_index() -> None:
    def body(x: Tensor, y: Tensor) -> None:
        atom = cute.make_copy_atom(nvgpu.CopyUniversalOp(), x.element_type)
        tiled = cute.make_tiled_copy(atom, cute.make_layout(((8, 4), (4, 2)), stride=((32, 2), (8, 1))), (8, 32))
        cute.copy(tiled, x, y, thread=arch.thread_idx().x)

    x, y = numbers(), numbers() * 0
    run_on_arrays(body, {"x": (F32, x), "y": (F32, y)})
    assert (x == y).all()


def test_predicates() -> None:
    def body(x: Tensor, y: Tensor) -> None:
        atom = cute.make_copy_atom(nvgpu.CopyUniversalOp(), x.element_type)
        thr = cute.make_tiled_copy_tv(atom, *threads_and_values()).get_slice(arch.thread_idx().x)
        source, destination = thr.partition_S(x), thr.partition_D(y)
        coords = thr.partition_S(identity_tensor())
        held = cute.make_fragment_like(source)
        flags = cute.make_rmem_tensor(coords.shape, cute.Boolean)
        for i in range(cute.size(flags)):
            flags[i] = cute.elem_less(coords[i], (13, 50))
        held.fill(-1.0)
        cute.copy(atom, source, held, pred=flags)
        cute.copy(atom, held, destination, pred=flags)

    x, y = numbers(), numbers() * 0
    run_on_arrays(body, {"x": (F32, x), "y": (F32, y)})
    expected = x.copy()
    expected[13:] = 0
    expected[:, 50:] = 0
    assert (y == expected).all()


@pytest.mark.parametrize("mode", [nvgpu.LoadCacheMode.ALWAYS, nvgpu.LoadCacheMode.GLOBAL])
def test_cp_async(mode: Any) -> None:
    def body(x: Tensor, y: Tensor) -> None:
        tid = arch.thread_idx().x
        atom = cute.make_copy_atom(cpasync.CopyG2SOp(cache_mode=mode), cute.Float32, num_bits_per_copy=128)
        thr = cute.make_tiled_copy_tv(
            atom, cute.make_layout((4, 8), stride=(8, 1)), cute.make_layout((1, 4))
        ).get_slice(tid)
        s = shared_tensor('f32, smem, align<16>, "(16,64):(64,1)"')
        cute.copy(thr, thr.partition_S(x), thr.partition_D(s))
        arch.cp_async_commit_group()
        arch.cp_async_wait_group(0)
        arch.sync_threads()
        cute.cooperative_copy(s, y, tid, 32)

    x, y = numbers(), numbers() * 0
    module = run_on_arrays(body, {"x": (F32, x), "y": (F32, y)})
    assert f"cache = {mode}, 128 b" in text_of(module)
    assert (x == y).all()


def test_a_flag_an_access_fills_with_zeros() -> None:
    """A false predicate zero-fills its access. The predicate (accesses, M, N) has stride 0 along N, as in a GEMM."""

    def body(x: Tensor, y: Tensor) -> None:
        tid = arch.thread_idx().x
        atom = cute.make_copy_atom(cpasync.CopyG2SOp(), cute.Float32, num_bits_per_copy=128)
        threads, values = cute.make_layout((8, 4), stride=(4, 1)), cute.make_layout((1, 8))
        thr = cute.make_tiled_copy_tv(atom, threads, values).get_slice(tid)
        source, s = thr.partition_S(x), shared_tensor('f32, smem, align<16>, "(16,64):(64,1)"')
        rows = thr.partition_S(identity_tensor())
        assert source.shape == ((4, 2), 2, 2)
        flags = cute.make_rmem_tensor(cute.make_layout((2, 2, 2), stride=(2, 1, 0)), cute.Boolean)
        for v in range(2):
            for m in range(2):
                flags[v, m, 0] = cute.elem_less(rows[(0, v), m, 0][0], 11)
        cute.copy(thr, source, thr.partition_D(s), pred=flags)
        arch.cp_async_commit_group()
        arch.cp_async_wait_group(0)
        arch.sync_threads()
        cute.cooperative_copy(s, y, tid, 32)

    x, y = numbers() + 1, numbers() * 0 - 1
    run_on_arrays(body, {"x": (F32, x), "y": (F32, y)})
    assert (y[:11] == x[:11]).all() and (y[11:] == 0).all()


def test_a_flag_an_access_of_plain_copies() -> None:
    def body(x: Tensor, y: Tensor) -> None:
        tid = arch.thread_idx().x
        copy_atom = cute.make_copy_atom(nvgpu.CopyUniversalOp(), cute.Float32, num_bits_per_copy=128)
        threads, values = cute.make_layout((8, 4), stride=(4, 1)), cute.make_layout((1, 8))
        thr = cute.make_tiled_copy_tv(copy_atom, threads, values).get_slice(tid)
        source, columns = thr.partition_S(x), thr.partition_S(identity_tensor())
        flags = cute.make_rmem_tensor(cute.make_layout((2, 2, 2), stride=(1, 0, 2)), cute.Boolean)
        for v in range(2):
            for n in range(2):
                flags[v, 0, n] = cute.elem_less(columns[(0, v), 0, n][1], 20)
        cute.copy(thr, source, thr.partition_D(y), pred=flags)

    x, y = numbers() + 1, numbers() * 0 - 1
    run_on_arrays(body, {"x": (F32, x), "y": (F32, y)})
    assert (y[:, :20] == x[:, :20]).all() and (y[:, 20:] == -1).all()


@pytest.mark.parametrize("transpose", [False, True])
@pytest.mark.parametrize("matrices", [1, 2, 4])
def test_matrices(matrices: int, transpose: bool) -> None:
    """ldmatrix gives thread t elements 2(t%4) and 2(t%4)+1 of row t/4, or of column t/4 if transposed."""

    def body(x: Tensor, y: Tensor) -> None:
        tid = arch.thread_idx().x
        s = shared_tensor(f'f16, smem, align<16>, "(8,(8,{matrices})):(8,(1,64))"')
        cute.autovec_copy(x[tid, None], view(s.iterator + tid * 2 * matrices, cute.make_layout(2 * matrices)))
        arch.sync_threads()
        atom = cute.make_copy_atom(warp.LdMatrix8x8x16bOp(transpose, matrices), cute.Float16)
        rows = view((s.iterator + (tid % (8 * matrices)) * 8).align(16), cute.make_layout(8))
        held = cute.make_rmem_tensor(2 * matrices, cute.Float16)
        cute.copy(atom, rows, held)
        cute.autovec_copy(held, y[tid, None])

    layout = f'f16, gmem, align<4>, "(32,{2 * matrices}):({2 * matrices},1)"'
    x, y = numbers(32, 2 * matrices, np.float16), numbers(32, 2 * matrices, np.float16) * 0
    run_on_arrays(body, {"x": (layout, x), "y": (layout, y)})
    blocks = x.reshape(matrices, 8, 8)
    t = np.arange(32)
    for i in range(matrices):
        block = blocks[i].T if transpose else blocks[i]
        for v in range(2):
            assert (y[:, 2 * i + v] == block[t // 4, 2 * (t % 4) + v]).all()


BYTE_LOADS = [
    warp.LdMatrix16x16x8bOp(1), warp.LdMatrix16x16x8bOp(2), warp.LdMatrix16x16x8bOp(2, unpack_bits=4),
    warp.LdMatrix16x16x8bOp(1, unpack_bits=6), warp.LdMatrix8x16x8bOp(False, 1, unpack_bits=4),
    warp.LdMatrix8x16x8bOp(False, 4, unpack_bits=6),
]  # fmt: skip


@pytest.mark.parametrize("op", BYTE_LOADS, ids=str)
def test_matrices_of_bytes_are_loaded_as_the_table_of_atoms_states(op: Any) -> None:
    """Thread t passes the address of row t. The layouts of the atom map the rows to the registers."""
    bits = op.unpack_bits or 8
    row = find_matrix_copy(
        op.num_matrices, not hasattr(op, "transpose"), bits=8,
        source={4: "b4x16_p64", 6: "b6x16_p32", 8: ""}[bits],
    )  # fmt: skip
    values = row.bits // 256

    def body(x: Tensor, y: Tensor) -> None:
        tid = arch.thread_idx().x
        s = shared_tensor('i8, smem, align<16>, "512:1"')
        cute.autovec_copy(x[tid, None], view(s.iterator + tid * 16, cute.make_layout(16)))
        arch.sync_threads()
        rows = view((s.iterator + tid * 16).align(16), cute.make_layout(16))
        held = cute.make_rmem_tensor(values, cute.Int8)
        cute.copy(cute.make_copy_atom(op, cute.Int8), rows, held)
        cute.autovec_copy(held, y[tid, None])

    rng = np.random.default_rng(0)
    x, y = rng.integers(0, 256, (32, 16), np.uint8), np.zeros((32, values), np.uint8)
    run_on_arrays(
        body, {"x": ('i8, gmem, align<16>, "(32,16):(16,1)"', x.view(np.int8)),
               "y": (f'i8, gmem, align<4>, "(32,{values}):({values},1)"', y.view(np.int8))}, chip="sm_120a"
    )  # fmt: skip
    numbers = [[int.from_bytes(r.tobytes(), "little") >> bits * i & (1 << bits) - 1 for i in range(16)] for r in x]
    atom = {row.src(t, 8 * i): numbers[t][i] for t in range(31, -1, -1) for i in range(16)}
    assert [[atom[row.dst(t, 8 * v)] for v in range(values)] for t in range(32)] == y.tolist()
    if "trans" in row.emit.mnemonic:  # The permuted fragment, as measured on a GPU of sm_120a.
        q, g = np.arange(32) % 4, np.arange(32) // 4
        for v in range(8):
            k, column = 4 * q + v % 2 + 2 * (v // 4), g + 8 * (v // 2 % 2)
            assert y[:, v].tolist() == [numbers[k[t]][column[t]] for t in range(32)]


@pytest.mark.parametrize("matrices", [1, 2, 4])
def test_matrices_of_bytes_are_stored_as_the_table_of_atoms_states(matrices: int) -> None:
    row = find_matrix_copy(matrices, True, store=True, bits=8)

    def body(x: Tensor, y: Tensor) -> None:
        tid = arch.thread_idx().x
        s = shared_tensor('i8, smem, align<16>, "512:1"')
        cute.autovec_copy(y[tid, None], view(s.iterator + tid * 16, cute.make_layout(16)))
        held = cute.make_rmem_tensor(4 * matrices, cute.Int8)
        cute.autovec_copy(x[tid, None], held)
        arch.sync_threads()
        rows = view((s.iterator + tid * 16).align(16), cute.make_layout(16))
        cute.copy(cute.make_copy_atom(warp.StMatrix16x8x8bOp(matrices), cute.Int8), held, rows)
        arch.sync_threads()
        cute.autovec_copy(view(s.iterator + tid * 16, cute.make_layout(16)), y[tid, None])

    x = np.random.default_rng(1).integers(-128, 128, (32, 4 * matrices)).astype(np.int8)
    y = np.full((32, 16), 99, np.int8)
    layouts = f'i8, gmem, align<4>, "(32,{4 * matrices}):({4 * matrices},1)"', 'i8, gmem, align<16>, "(32,16):(16,1)"'
    run_on_arrays(body, {"x": (layouts[0], x), "y": (layouts[1], y)}, chip="sm_100a")
    held = {row.src(t, 8 * v): x[t, v] for t in range(32) for v in range(4 * matrices)}
    rows = range(8 * matrices)
    assert [[held[row.dst(t, 8 * i)] for i in range(16)] for t in rows] == y[: 8 * matrices].tolist()
    assert (y[8 * matrices :] == 99).all()


def test_stmatrix_undoes_ldmatrix() -> None:
    def body(x: Tensor, y: Tensor) -> None:
        tid = arch.thread_idx().x
        loads = cute.make_copy_atom(warp.LdMatrix8x8x16bOp(False, 4), cute.Float16)
        stores = cute.make_copy_atom(warp.StMatrix8x8x16bOp(False, 4), cute.Float16)
        mma = cute.make_tiled_mma(warp.MmaF16BF16Op(cute.Float16, cute.Float32, (16, 8, 16)))
        tiled = cute.make_tiled_copy_A(loads, mma)
        s, r = (shared_tensor('f16, smem, align<16>, "(16,16):(16,1)"') for _ in range(2))
        cute.cooperative_copy(x, s, tid, 32)
        arch.sync_threads()
        thr = tiled.get_slice(tid)
        held = mma.make_fragment_A(mma.get_slice(tid).partition_A(s))
        cute.copy(tiled, thr.partition_S(s), thr.retile(held))
        back = cute.make_tiled_copy_D(stores, tiled)
        cute.copy(back, back.retile(held), back.get_slice(tid).partition_D(r))
        arch.sync_threads()
        cute.cooperative_copy(r, y, tid, 32)

    layout = 'f16, gmem, align<16>, "(16,16):(16,1)"'
    x, y = numbers(16, 16, np.float16), numbers(16, 16, np.float16) * 0
    run_on_arrays(body, {"x": (layout, x), "y": (layout, y)})
    assert (x == y).all()


def test_bulk_copies() -> None:
    def body(x: Tensor, y: Tensor) -> None:
        tid = arch.thread_idx().x
        s = shared_tensor('f32, smem, align<16>, "1024:1"')
        bar = shared_tensor('i64, smem, align<8>, "1:0"').iterator
        atom = cute.make_copy_atom(nvgpu.BulkCopyOp(), cute.Float32)
        with when(tid == 0):
            arch.mbarrier_init(bar, 1)
            arch.mbarrier_init_fence()
        arch.sync_threads()
        with when(tid == 0):
            arch.mbarrier_arrive_and_expect_tx(bar, 4096)
        cute.copy(atom, cute.coalesce(x), s, tma_bar_ptr=bar)
        arch.mbarrier_wait(bar, 0)
        cute.copy(atom, s, cute.coalesce(y))
        arch.cp_async_bulk_commit_group()
        arch.cp_async_bulk_wait_group(0)

    x, y = numbers(), numbers() * 0
    flat = 'f32, gmem, align<16>, "1024:1"'
    module = run_on_arrays(body, {"x": (flat, x.reshape(-1)), "y": (flat, y.reshape(-1))})
    assert text_of(module).count("elect_one") == 2
    assert (x == y).all()


def test_threads_of_a_tiled_copy_issue_their_own_bulk_copies() -> None:
    """Every thread of the tiled copy issues its own bulk copy; no thread is elected."""

    def body(x: Tensor, y: Tensor) -> None:
        rows = cute.make_copy_atom(nvgpu.BulkCopyOp(), cute.Float32, num_bits_per_copy=1024)
        tiled = cute.make_tiled_copy(rows, cute.make_layout((32, 32)), (32, 32))
        s = shared_tensor('f32, smem, align<128>, "(32,32):(36,1)"')
        bar = arch.alloc_smem(cute.Int64, 1)
        with when(arch.thread_idx().x == 0):
            arch.mbarrier_init(bar, 1)
            arch.mbarrier_init_fence()
            cute.prefetch(rows, x[0, None])
            arch.mbarrier_arrive_and_expect_tx(bar, 4096)
        arch.sync_threads()
        cute.copy(tiled, x, s, thread=arch.thread_idx().x, tma_bar_ptr=bar)
        arch.mbarrier_wait(bar, 0)
        cute.copy(tiled, s, y, thread=arch.thread_idx().x)
        arch.cp_async_bulk_commit_group()
        arch.cp_async_bulk_wait_group(0)

    x, y = numbers(32, 32), np.zeros((32, 32), np.float32)
    square = 'f32, gmem, align<16>, "(32,32):(32,1)"'
    module = run_on_arrays(body, {"x": (square, x), "y": (square, y)})
    assert np.array_equal(x, y) and "cute_nvgpu.arch.bulk_prefetch" in text_of(module)


def test_prefetches_by_level() -> None:
    def body(x: Tensor) -> None:
        plain = cute.make_copy_atom(nvgpu.CopyUniversalOp(), cute.Float32)
        cute.prefetch(plain, x, level="L1")
        cute.prefetch(plain, x)
        with pytest.raises(CuteError, match=r"F254: cute.prefetch by BulkCopyOp: level must be L2, got 'L1'"):
            cute.prefetch(cute.make_copy_atom(nvgpu.BulkCopyOp(), cute.Float32), x, level="L1")

    text = text_of(trace_kernel(body, {"x": f"!cute.memref<{F32}>"}, Tensor.of))
    assert [text.count(f'level = "{level}"') for level in ("L1", "L2")] == [1, 1]


def test_reductions_of_unsigned_numbers_are_unsigned() -> None:
    def body(x: Tensor, y: Tensor) -> None:
        tid = arch.thread_idx().x
        s = cute.smem_tensor(cute.Uint32, cute.make_layout(32), 128)
        s[tid] = cute.Uint32(x[tid])
        arch.fence_proxy("async.shared", space="cta")
        arch.sync_threads()
        cute.copy(cute.make_copy_atom(nvgpu.BulkReduceOp("max"), cute.Uint32), s, cute.recast_tensor(y, cute.Uint32))
        arch.cp_async_bulk_commit_group()
        arch.cp_async_bulk_wait_group(0)

    x, y = np.arange(32, dtype=np.uint32) << 27, np.full(32, 1 << 30, np.uint32)
    words = 'i32, gmem, align<16>, "32:1"'
    run_on_arrays(body, {"x": (words, x.view(np.int32)), "y": (words, y.view(np.int32))})
    assert np.array_equal(y, np.maximum(x, 1 << 30))


def test_bulk_reductions() -> None:
    def body(x: Tensor, y: Tensor) -> None:
        tid = arch.thread_idx().x
        s = shared_tensor('f32, smem, align<16>, "1024:1"')
        cute.cooperative_copy(x, s, tid, 32)
        arch.fence_view_async_shared()
        arch.sync_threads()
        cute.copy(cute.make_copy_atom(nvgpu.BulkReduceOp("add"), cute.Float32), s, y)
        arch.cp_async_bulk_commit_group()
        arch.cp_async_bulk_wait_group(0)

    x, y = numbers().reshape(-1), np.full(1024, 2, np.float32)
    flat = 'f32, gmem, align<16>, "1024:1"'
    run_on_arrays(body, {"x": (flat, x), "y": (flat, y)})
    assert (y == x + 2).all()


def test_a_matrix_transposed_in_registers() -> None:
    def body(x: Tensor, y: Tensor) -> None:
        tid = arch.thread_idx().x
        held, turned = cute.make_rmem_tensor(2, cute.Float16), cute.make_rmem_tensor(2, cute.Float16)
        cute.autovec_copy(x[tid, None], held)
        cute.copy(cute.make_copy_atom(warp.MovMatrixOp(), cute.Float16), held, turned)
        cute.autovec_copy(turned, y[tid, None])

    layout = 'f16, gmem, align<4>, "(32,2):(2,1)"'
    x, y = numbers(32, 2, np.float16), numbers(32, 2, np.float16) * 0
    run_on_arrays(body, {"x": (layout, x), "y": (layout, y)})
    assert (y.reshape(8, 8) == x.reshape(8, 8).T).all()


def test_the_smallest_copy_of_accumulators() -> None:
    """An epilogue stores the values of one ``stmatrix``, retiled from all accumulators."""

    def body(x: Tensor, y: Tensor) -> None:
        tid = arch.thread_idx().x
        op = nvgpu.warpgroup.MmaF16BF16Op(cute.Float16, cute.Float32, (64, 64, 16))
        mma = cute.make_tiled_mma(op)
        stores = cute.make_copy_atom(warp.StMatrix8x8x16bOp(False, 4), cute.Float16)
        whole = cute.make_tiled_copy_C_atom(stores, mma)
        assert whole.size == 128 and whole.tiler_mn == (64, 16)
        tiled = cute.make_tiled_copy_S(stores, whole)
        held = cute.make_rmem_tensor(mma.partition_shape_C((64, 64)), cute.Float16)
        cute.autovec_copy(mma.get_slice(tid).partition_C(x), held)
        s = shared_tensor('f16, smem, align<128>, "(64,64):(64,1)"')
        source, destination = tiled.retile(held), tiled.get_slice(tid).partition_D(s)
        assert source.shape == ((8, 4), 1, 1) and destination.shape == ((8, 1), 1, 4)
        for n in range(4):
            cute.copy(tiled, source[(None, n), 0, 0], destination[(None, 0), 0, n])
        arch.sync_threads()
        cute.cooperative_copy(s, y, tid, 128)

    layout = 'f16, gmem, align<16>, "(64,64):(64,1)"'
    x, y = numbers(64, 64, np.float16), numbers(64, 64, np.float16) * 0
    run_on_arrays(body, {"x": (layout, x), "y": (layout, y)}, threads=128)
    assert (x == y).all()


def atom() -> Any:
    return cute.make_copy_atom(nvgpu.CopyUniversalOp(), cute.Float32)


def a_kernel(call: Any) -> Any:
    def body(x: Tensor, y: Tensor) -> None:
        call(x, y)

    return trace_kernel(
        body, {"x": f"!cute.memref<{F32}>", "y": '!cute.memref<f16, gmem, "(16,32):(32,1)">'}, Tensor.of
    )


ERRORS = {
    "F250: cute.make_copy_atom: op must be a copy descriptor, got the class CopyUniversalOp: call it\n"
    "hint: such as cute.nvgpu.CopyUniversalOp(), cute.nvgpu.cpasync.CopyG2SOp(), "
    "cute.nvgpu.warp.LdMatrix8x8x16bOp()": (
        lambda x, y: cute.make_copy_atom(nvgpu.CopyUniversalOp, cute.Float32)
    ),
    "F250: cute.make_copy_atom(CopyG2SOp, …): num_bits_per_copy must be 32, 64 or 128\nhint: num_bits_per_copy=32": (
        lambda x, y: cute.make_copy_atom(cpasync.CopyG2SOp(), cute.Float32)
    ),
    "F250: cute.make_copy_atom(CopyG2SOp, …): the copy has 16 bits; with cache = always use 32, 64 or 128, a "
    "multiple of the element's 32": (
        lambda x, y: cute.make_copy_atom(cpasync.CopyG2SOp(), cute.Float32, num_bits_per_copy=16)
    ),
    "F250: cute.make_copy_atom(LdMatrix8x8x16bOp, …): the number of matrices is 3; use 1, 2 or 4": (
        lambda x, y: cute.make_copy_atom(warp.LdMatrix8x8x16bOp(False, 3), cute.Float16)
    ),
    "F250: cute.make_copy_atom(CopyUniversalOp, …): the element type must be a number type such as "
    "cute.Float16, got 'f32'": (
        lambda x, y: cute.make_copy_atom(nvgpu.CopyUniversalOp(), "f32")
    ),
    "F254: cute.copy by CopyUniversalOp: the source must be a tensor, got 3": lambda x, y: cute.copy(atom(), 3, y),
    "F254: cute.copy by CopyUniversalOp: dst must have elements as wide as the atom's f32, got f16\n"
    "hint: src is tensor<ptr<f32, gmem, align<16>> o (16,64):(64,1)>, dst is "
    "tensor<ptr<f16, gmem> o (16,32):(32,1)>": lambda x, y: cute.copy(atom(), x, y),
    "F254: cute.copy by CopyUniversalOp: CopyUniversalOp does not take tma_bar_ptr (it has no run-time fields)": (
        lambda x, y: cute.copy(atom(), x, x, tma_bar_ptr=shared_tensor('i64, smem, "1:0"').iterator)
    ),
    "F251: cute.make_tiled_copy: tiler_mn must be a static layout, got S<1,0,1> o 0 o 4:1": (
        lambda x, y: cute.make_tiled_copy(
            atom(), "(4,1):(1,0)",
            (cute.make_composed_layout(cute.make_swizzle(1, 0, 1), 0, cute.make_layout(4)),),
        )
    ),
}  # fmt: skip


@pytest.mark.parametrize("message", ERRORS)
def test_errors(message: str) -> None:
    with pytest.raises(CuteError) as caught:
        a_kernel(ERRORS[message])
    caught.value.place = None
    caught.value.calls = []
    assert str(caught.value) == f"error {message}"


def test_a_target_without_cp_async() -> None:
    with pytest.raises(CuteError, match="F280: CopyG2SOp needs sm_80 or later, but the target is sm_75"):
        trace_kernel(
            lambda: cute.make_copy_atom(cpasync.CopyG2SOp(), cute.Float32, num_bits_per_copy=32), {}, chip="sm_75"
        )


def test_description_of_a_tiled_copy() -> None:
    tiled = cute.make_tiled_copy_tv(atom(), *threads_and_values())
    assert tiled.describe() == (
        "atom      !cute_nvgpu.atom.universal_copy<f32>\nthreads   32, values of Float32\n"
        "tile      (8, 32)\nlayout_tv ((8,4),(4,2)):((32,2),(8,1))"
    )
    ldsm = cute.make_copy_atom(warp.LdMatrix8x8x16bOp(False, 4), cute.Float16)
    assert (str(ldsm.layout_src_tv), str(ldsm.layout_dst_tv)) == ("(32,8):(8,1)", "(32,(2,4)):(2,(1,64))")
    assert str(ldsm.thr_id) == "32:1" and ldsm.value_type is cute.Float16
