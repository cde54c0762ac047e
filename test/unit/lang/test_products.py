"""Tiled MMA: fragments, GEMM and atom state, run on the interpreter and compared with numpy."""

from __future__ import annotations

import itertools
import re
from typing import Any

import numpy as np
import pytest
from front_tensors import run_on_arrays, shared_tensor
from tracing import text_of, trace_kernel

import cute_dialect.lang as cute
from cute_dialect.arch.tcgen05 import find_tcgen05
from cute_dialect.arch.tcgen05_kinds import kind_of_types
from cute_dialect.errors import CuteError
from cute_dialect.lang.values.tensors import Tensor

nvgpu = cute.nvgpu
warp = nvgpu.warp
warpgroup = nvgpu.warpgroup
arch = cute.arch


def small(m: int, n: int, dtype: Any, seed: int = 1) -> Any:
    return np.random.default_rng(seed).integers(-4, 5, (m, n)).astype(dtype)


def gmem(element: str, m: int, n: int) -> str:
    return f'{element}, gmem, align<16>, "({m},{n}):({n},1)"'


NUMPY = {"f16": np.float16, "f32": np.float32, "f64": np.float64, "i8": np.int8, "i32": np.int32}

WARP = {
    "f16": (lambda: warp.MmaF16BF16Op(cute.Float16, cute.Float32, (16, 8, 16)), "f16", "f32"),
    "f16k8": (lambda: warp.MmaF16BF16Op(cute.Float16, cute.Float32, (16, 8, 8)), "f16", "f32"),
    "f16 sums": (lambda: warp.MmaF16BF16Op(cute.Float16, cute.Float16, (16, 8, 16)), "f16", "f16"),
    "f64": (lambda: warp.MmaF64Op((8, 8, 4)), "f64", "f64"),
    "i8": (lambda: warp.MmaI8Op(cute.Int8, cute.Int8, (16, 8, 32)), "i8", "i32"),
    "fma": (lambda: nvgpu.MmaUniversalOp(cute.Float32), "f32", "f32"),
}


@pytest.mark.sample(every=2)
@pytest.mark.parametrize("name", WARP)
def test_products_of_a_warp(name: str) -> None:
    """Compute C = A B^T of 32 x 32 x 32 with one warp, from fragments loaded from global memory."""
    op, element, sums = WARP[name]

    def body(A: Tensor, B: Tensor, C: Tensor) -> None:
        layout = cute.make_layout((8, 4, 1)) if name == "fma" else (1, 1, 1)
        mma = cute.make_tiled_mma(op(), layout)
        assert mma.size == 32
        thr = mma.get_slice(arch.thread_idx().x)
        tA, tB, tC = thr.partition_A(A), thr.partition_B(B), thr.partition_C(C)
        rA, rB, acc = mma.make_fragment_A(tA), mma.make_fragment_B(tB), thr.make_fragment_C(tC)
        cute.autovec_copy(tA, rA)
        cute.autovec_copy(tB, rB)
        acc.fill(0)
        cute.gemm(mma, acc, rA, rB, acc)
        cute.autovec_copy(acc, tC)

    a, b = small(32, 32, NUMPY[element]), small(32, 32, NUMPY[element], 2)
    c = np.zeros((32, 32), NUMPY[sums])
    run_on_arrays(
        body, {"A": (gmem(element, 32, 32), a), "B": (gmem(element, 32, 32), b), "C": (gmem(sums, 32, 32), c)}
    )
    assert (c == a.astype(np.float64) @ b.T.astype(np.float64)).all()


def test_cp_async_ldmatrix_and_four_warps() -> None:
    """Compute one tile of an sm_80 GEMM with cp.async, ldmatrix and mma.sync over blocks of K."""

    def body(A: Tensor, B: Tensor, C: Tensor) -> None:
        tid = arch.thread_idx().x
        sA = shared_tensor('f16, smem, align<128>, S<2,4,3>, "(64,32):(32,1)"')
        sB = shared_tensor('f16, smem, align<128>, S<2,4,3>, "(32,32):(32,1)"')
        atom = cute.make_copy_atom(nvgpu.cpasync.CopyG2SOp(), cute.Float16, num_bits_per_copy=128)
        thr = cute.make_tiled_copy_tv(
            atom, cute.make_layout((32, 4), stride=(4, 1)), cute.make_layout((1, 8))
        ).get_slice(tid)
        cute.copy(thr, thr.partition_S(A), thr.partition_D(sA))
        cute.copy(thr, thr.partition_S(B), thr.partition_D(sB))
        arch.cp_async_commit_group()
        arch.cp_async_wait_group(0)
        arch.sync_threads()
        mma = cute.make_tiled_mma(warp.MmaF16BF16Op(cute.Float16, cute.Float32, (16, 8, 16)), (2, 2, 1), (32, 32, 16))
        assert mma.size == 128 and mma.tile_shape_mnk == (32, 32, 16) and mma.permutation_mnk == (32, 32, 16)
        part = mma.get_slice(tid)
        loads = cute.make_copy_atom(warp.LdMatrix8x8x16bOp(False, 4), cute.Float16)
        copy_A, copy_B = cute.make_tiled_copy_A(loads, mma), cute.make_tiled_copy_B(loads, mma)
        rA, rB = mma.make_fragment_A(part.partition_A(sA)), mma.make_fragment_B(part.partition_B(sB))
        tC = part.partition_C(C)
        acc = mma.make_fragment_C(tC)
        acc.fill(0.0)
        sourceA, sourceB = copy_A.get_slice(tid).partition_S(sA), copy_B.get_slice(tid).partition_S(sB)
        viewA, viewB = copy_A.retile(rA), copy_B.retile(rB)
        for k in range(cute.size(rA, mode=[2])):
            cute.copy(copy_A, sourceA[None, None, k], viewA[None, None, k])
            cute.copy(copy_B, sourceB[None, None, k], viewB[None, None, k])
            cute.gemm(mma, acc, rA[None, None, k], rB[None, None, k], accumulate=True)
        cute.autovec_copy(acc, tC)

    a, b, c = small(64, 32, np.float16), small(32, 32, np.float16, 2), np.zeros((64, 32), np.float32)
    arrays = {"A": (gmem("f16", 64, 32), a), "B": (gmem("f16", 32, 32), b), "C": (gmem("f32", 64, 32), c)}
    module = run_on_arrays(body, arrays, threads=128, chip="sm_80")
    assert (c == a.astype(np.float64) @ b.T.astype(np.float64)).all()
    assert text_of(module).count("cute.gemm") == 2


def wgmma_body(n: int, accumulate: Any, rmem: bool = False, majors: tuple[str, str] = ("k", "k")) -> Any:
    """Compute C = A B^T or 3 C + A B^T with one warpgroup from shared memory."""
    source = warpgroup.OperandSource.RMEM if rmem else warpgroup.OperandSource.SMEM

    def body(A: Tensor, B: Tensor, C: Tensor) -> None:
        tid = arch.thread_idx().x
        layouts = {"k": "({0},64):(64,1)", "mn": "(64,64):(1,64)"}
        sA = shared_tensor(f'f16, smem, align<1024>, S<3,4,3>, "{layouts[majors[0]].format(64)}"')
        sB = shared_tensor(f'f16, smem, align<1024>, S<3,4,3>, "{layouts[majors[1]].format(n)}"')
        cute.cooperative_copy(A, sA, tid, 128)
        cute.cooperative_copy(B, sB, tid, 128)
        arch.fence_view_async_shared()
        arch.sync_threads()
        op = warpgroup.MmaF16BF16Op(cute.Float16, cute.Float32, (64, n, 16), source, *majors)
        mma = cute.make_tiled_mma(op)
        thr = mma.get_slice(tid)
        tA = thr.partition_A(sA)
        rA, rB = mma.make_fragment_A(tA), mma.make_fragment_B(thr.partition_B(sB))
        if rmem:
            cute.autovec_copy(tA, rA)
        tC = thr.partition_C(C)
        acc = mma.make_fragment_C(mma.partition_shape_C((64, n)))
        acc.fill(3.0)
        warpgroup.fence()
        for k in range(4):
            said = accumulate(tid, k) if k == 0 else True
            mma.set(warpgroup.Field.ACCUMULATE, said)
            cute.gemm(mma, acc, rA[None, None, k], rB[None, None, k], acc)
        warpgroup.commit_group()
        warpgroup.wait_group(0)
        cute.autovec_copy(acc, tC)

    return body


@pytest.mark.parametrize(
    ("said", "start"),
    [
        (lambda tid, k: False, 0),
        (lambda tid, k: True, 3),
        (lambda tid, k: tid // 128 == 0, 3),
        (lambda tid, k: None, 3),
    ],
)
def test_products_of_a_warp_group_accumulate(said: Any, start: int) -> None:
    a, b, c = small(64, 64, np.float16), small(32, 64, np.float16, 2), np.zeros((64, 32), np.float32)
    arrays = {"A": (gmem("f16", 64, 64), a), "B": (gmem("f16", 32, 64), b), "C": (gmem("f32", 64, 32), c)}
    run_on_arrays(wgmma_body(32, said), arrays, threads=128)
    assert (c == a.astype(np.float64) @ b.T.astype(np.float64) + start).all()


@pytest.mark.parametrize(("rmem", "majors"), [(True, ("k", "k")), (False, ("mn", "mn")), (False, ("k", "mn"))])
def test_products_of_a_warp_group_by_sources_and_majors(rmem: bool, majors: tuple[str, str]) -> None:
    a, b, c = small(64, 64, np.float16), small(64, 64, np.float16, 2), np.zeros((64, 64), np.float32)
    arrays = {"A": (gmem("f16", 64, 64), a), "B": (gmem("f16", 64, 64), b), "C": (gmem("f32", 64, 64), c)}
    run_on_arrays(wgmma_body(64, lambda tid, k: False, rmem, majors), arrays, threads=128)
    assert (c == a.astype(np.float64) @ b.T.astype(np.float64)).all()


@pytest.mark.parametrize("swizzle", ["S<2,3,3>", "S<3,3,4>", "S<1,1,3>"])
def test_accumulators_in_a_swizzled_layout(swizzle: str) -> None:
    """Accumulators stored through the MMA's partition of shared memory are read back through the whole layout."""

    def body(A: Tensor, B: Tensor, C: Tensor) -> None:
        tid = arch.thread_idx().x
        s = shared_tensor(f'f32, smem, align<128>, "{swizzle} o 0 o (64,32):(32,1)"')
        mma = cute.make_tiled_mma(warp.MmaF16BF16Op(cute.Float16, cute.Float32), (2, 2, 1))
        thr = mma.get_slice(tid)
        rA, rB = mma.make_fragment_A(thr.partition_A(A)), mma.make_fragment_B(thr.partition_B(B))
        cute.autovec_copy(thr.partition_A(A), rA)
        cute.autovec_copy(thr.partition_B(B), rB)
        acc = mma.make_fragment_C(thr.partition_C(C))
        acc.fill(0)
        cute.gemm(mma, acc, rA, rB, acc)
        cute.autovec_copy(acc, thr.partition_C(s))
        arch.sync_threads()
        for i in range(16):
            m, n = (tid + 128 * i) // 32, (tid + 128 * i) % 32
            C[m, n] = s[m, n]

    a, b, c = small(64, 32, np.float16), small(32, 32, np.float16, 2), np.zeros((64, 32), np.float32)
    arrays = {"A": (gmem("f16", 64, 32), a), "B": (gmem("f16", 32, 32), b), "C": (gmem("f32", 64, 32), c)}
    run_on_arrays(body, arrays, threads=128)
    assert (c == a.astype(np.float64) @ b.T.astype(np.float64)).all()


def test_whole_tiles() -> None:
    def body(A: Tensor, B: Tensor, C: Tensor) -> None:
        tid = arch.thread_idx().x
        sA, sB = (shared_tensor('f16, smem, align<128>, "(32,32):(32,1)"') for _ in range(2))
        cute.cooperative_copy(A, sA, tid, 32)
        cute.cooperative_copy(B, sB, tid, 32)
        arch.sync_threads()
        mma = cute.make_tiled_mma(warp.MmaF16BF16Op(cute.Float16, cute.Float32))
        tC = mma.get_slice(tid).partition_C(C)
        acc = mma.make_fragment_C(tC)
        cute.gemm(mma, acc, sA, sB, accumulate=False, thread=tid)
        cute.autovec_copy(acc, tC)

    a, b, c = small(32, 32, np.float16), small(32, 32, np.float16, 2), np.zeros((32, 32), np.float32)
    run_on_arrays(body, {"A": (gmem("f16", 32, 32), a), "B": (gmem("f16", 32, 32), b), "C": (gmem("f32", 32, 32), c)})
    assert (c == a.astype(np.float64) @ b.T.astype(np.float64)).all()


def test_a_sparse_product() -> None:
    from cute_dialect.kernels.gemm.sparse import compress

    def body(A: Tensor, E: Tensor, B: Tensor, C: Tensor) -> None:
        mma = cute.make_tiled_mma(warp.MmaSparseOp(cute.Float16, cute.Float32, (16, 8, 32)), (2, 1, 1))
        thr = mma.get_slice(arch.thread_idx().x)
        parts = [thr.partition_A(A), thr.partition_B(B), thr.partition_E(E)]
        makers = [mma.make_fragment_A, mma.make_fragment_B, mma.make_fragment_E]
        rA, rB, rE = (make(part) for make, part in zip(makers, parts))
        for part, held in zip(parts, (rA, rB, rE)):
            cute.autovec_copy(part, held)
        tC = thr.partition_C(C)
        acc = mma.make_fragment_C(tC)
        acc.fill(1.0)
        cute.sparse_gemm(mma, acc, rA, rB, rE, acc)
        cute.autovec_copy(acc, tC)

    dense = small(32, 64, np.float16).reshape(32, 16, 4)
    dense[:, ::2, :2] = 0
    dense[:, 1::2, 1:3] = 0
    dense = dense.reshape(32, 64)
    kept, words = compress(dense, "f16")
    b, c = small(16, 64, np.float16, 2), np.zeros((32, 16), np.float32)
    arrays = {
        "A": (gmem("f16", 32, 32), kept), "E": ('i16, gmem, "(32,4):(4,1)"', words),
        "B": (gmem("f16", 16, 64), b), "C": (gmem("f32", 32, 16), c),
    }  # fmt: skip
    run_on_arrays(body, arrays, threads=64)
    assert (c == dense.astype(np.float64) @ b.T.astype(np.float64) + 1).all()


def hopper() -> Any:
    return cute.make_tiled_mma(warpgroup.MmaF16BF16Op(cute.Float16, cute.Float32, (64, 128, 16)), (2, 1, 1))


def ampere() -> Any:
    return cute.make_tiled_mma(warp.MmaF16BF16Op(cute.Float16, cute.Float32, (16, 8, 16)), (2, 2, 1))


def test_properties_of_a_tiled_mma() -> None:
    mma = ampere()
    assert mma.shape_mnk == (16, 8, 16) and mma.tile_shape_mnk == (32, 16, 16) and mma.size == 128
    assert str(mma.thr_layout_vmnk) == "(32,2,2,1):(1,32,64,0)"
    assert str(mma.tv_layout_C_tiled) == "((4,8,2,2),((2,2),(1,1))):((64,1,16,256),((32,8),(32,512)))"
    assert str(mma.tv_layout_C) == "((4,8),(2,2)):((32,1),(16,8))"  # One instruction computes a 16 x 8 tile.
    assert mma.partition_shape_C((64, 32)) == ((2, 2), 2, 2)
    assert hopper().partition_shape_C((128, 256)) == ((2, 2, 16), 1, 2)
    assert hopper().describe() == (
        "atom      !cute_nvgpu.atom.wgmma<64x128x16, (f32,f16,f16,f32), A = smem, major = (k, k)>\n"
        "          wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16 $d, $a, $b, $scale_d, "
        "$scale_a, $scale_b, 0, 0;\n"
        "threads   256, (V,M,N,K) -> thread: (128,2,1,1):(1,128,0,0)\n"
        "tile      128x128x16 (M x N x K)\n"
        "A         in shared memory, k-major, by matrix descriptors: swizzle 0: LBO 1024, SBO 128; "
        "swizzle 32: LBO 16, SBO 256; swizzle 64: LBO 16, SBO 512; swizzle 128: LBO 16, SBO 1024\n"
        "B         in shared memory, k-major, by matrix descriptors: swizzle 0: LBO 2048, SBO 128; "
        "swizzle 32: LBO 16, SBO 256; swizzle 64: LBO 16, SBO 512; swizzle 128: LBO 16, SBO 1024\n"
        "C         in 64 registers f32 of 1, (thread, value) -> index: "
        "((4,8,8),((2,2,16),(1,1))):((256,1,16),((128,8,1024),(128,16384)))"
    )


def test_atoms_of_a_chip() -> None:
    assert cute.atoms("sm_80", cute.BFloat16) == (
        "fma 1x1x1 (bf16,bf16,bf16,bf16)",
        "mma_sync 16x8x8, 16x8x16 (f32,bf16,bf16,f32)",
        "mma_sp 16x8x16, 16x8x32 (f32,bf16,bf16,f32)",
    )
    assert "wgmma_sp 64xNx32 (f32,bf16,bf16,f32), N from 8 to 256" in cute.atoms("sm_90a", cute.BFloat16)
    assert "wgmma 64xNx16 (f32,bf16,bf16,f32), N from 8 to 256" in cute.atoms("sm_90a", cute.BFloat16)
    wide = {t for t in cute.atoms("sm_100a", cute.Float16) if t.startswith("tcgen05")}
    assert wide == {
        text
        for d in ("f16", "f32")
        for text in (
            f"tcgen05_mma 64xNx16, 128xNx16, 256xNx16 ({d},f16,f16,{d}), N from 8 to 256",
            f"tcgen05_mma_sp 128xNx32, 256xNx32 ({d},f16,f16,{d}), N from 16 to 256",
            f"tcgen05_mma 32xNx16, 64xNx16, 128xNx16 ({d},f16,f16,{d}), ws, N from 64 to 256",
        )
    }
    assert not any("tcgen05" in t for chip in ("sm_90a", "sm_120a") for t in cute.atoms(chip))
    assert not any("tcgen05" in t for t in cute.atoms("sm_103a", cute.Int8))


@pytest.mark.parametrize(
    ("chip", "a", "count"),
    [
        ("sm_100a", cute.Float8E5M2, 8),
        ("sm_100a", cute.Float4E2M1FN, 12),
        ("sm_103a", cute.Float4E2M1FN, 14),
        ("sm_100a", cute.Int8, 3),
    ],
)
def test_listed_atoms_of_tensor_memory_exist(chip: str, a: Any, count: int) -> None:
    """Each type and shape of a line is an atom, for N of 64, which all forms have, and for the largest."""
    lines = [t for t in cute.atoms(chip, a) if t.startswith("tcgen05")]
    assert len(lines) == count
    for line in lines:
        found = re.fullmatch(
            r"tcgen05_mma(_sp)? (.*) \((.*)\)(, ws)?(?:, kind = (\w+))?, N from (?:8|16|64) to 256", line
        )
        assert found is not None
        d, x, y, _ = found[3].split(",")
        form = "sp" if found[1] else "ws" if found[4] else ""
        for shape, b in itertools.product(found[2].split(", "), y.split("|")):
            m, k = map(int, shape.split("xNx"))
            for n in (64, 256):
                kind = found[5] or kind_of_types((d, x, b)).name
                made = find_tcgen05(kind, m // 128 or 1, (m, n, k), (d, x, b), form=form)
                assert made.shape_mnk == (m, n, k)


def registers(shape: Any, kind: Any) -> Any:
    return cute.make_rmem_tensor(shape, kind)


ERRORS = {
    "F250: warp.MmaF16BF16Op: ab_dtype must be one of Float16, BFloat16, got Float32": (
        lambda: cute.make_tiled_mma(warp.MmaF16BF16Op(cute.Float32, cute.Float32))
    ),
    "F250: MmaF16BF16Op: mma.sync has no shape 16x16x16 with majors k and k for D, A, B, C = f32, f16, f16, "
    "f32; shapes of these types: 8x8x4, 16x8x8, 16x8x16": (
        lambda: cute.make_mma_atom(warp.MmaF16BF16Op(cute.Float16, cute.Float32, (16, 16, 16)))
    ),
    "F250: MmaF16BF16Op: N: expected N among 8, 16,"
    " 24, 32, 40, 48, 56, 64, 72, 80, 88, 96, 104, 112, 120, 128, 136, 144, "
    "152, 160, 168, 176, 184, 192, 200, 208, 216, 224, 232, 240, 248, 256 for f32 f16 f16, got 12": (
        lambda: cute.make_mma_atom(warpgroup.MmaF16BF16Op(cute.Float16, cute.Float32, (64, 12, 16)))
    ),
    "F251: cute.make_tiled_mma: expected an atom layout of rank 3 (M,N,K), got (2,2):(1,2)": (
        lambda: cute.make_tiled_mma(warp.MmaF16BF16Op(cute.Float16, cute.Float32), (2, 2))
    ),
    "F251: cute.make_tiled_mma: the permutation of M has extent 24; it must be a multiple of 32 (2 atoms of "
    "extent 16)": lambda: cute.make_tiled_mma(
        warp.MmaF16BF16Op(cute.Float16, cute.Float32), (2, 2, 1), (24, None, None)
    ),
    "F254: a tiled MMA of mma_sync<16x8x16, (f32,f16,f16,f32)> has no field ACCUMULATE, which only "
    "wgmma and tcgen05 instructions have\nhint: pass C to gemm, or clear the accumulators": (
        lambda: ampere().set(warpgroup.Field.ACCUMULATE, True)
    ),
    "F254: cute.gemm by mma_sync<16x8x16, (f32,f16,f16,f32)>: operand A has elements f32; "
    "the atom mma_sync<16x8x16, (f32,f16,f16,f32)> needs "
    "f16\nhint: the operands are D tensor<ptr<f32, rmem, align<16>> o (4,1,1):(1,0,0)>, "
    "A tensor<ptr<f32, rmem, align<32>> o (8,1,1):(1,0,0)>, B tensor<ptr<f16, rmem, align<8>> o (4,1,1):(1,0,0)>\n"
    "sm_90a has for these elements: fma 1x1x1 (f32,f32,f32,f32)": lambda: cute.gemm(
        ampere(), registers((4, 1, 1), cute.Float32), registers((8, 1, 1), cute.Float32),
        registers((4, 1, 1), cute.Float16),
    ),
}  # fmt: skip


@pytest.mark.parametrize("message", ERRORS)
def test_errors(message: str) -> None:
    with pytest.raises(CuteError) as caught:
        trace_kernel(ERRORS[message], {})
    caught.value.place = None
    caught.value.calls = []
    assert str(caught.value) == f"error {message}"


def test_a_target_without_wgmma() -> None:
    for chip in ("sm_80", "sm_100"):
        with pytest.raises(CuteError, match=f"F280: MmaF16BF16Op needs sm_90a, but the target is {chip}"):
            trace_kernel(hopper, {}, chip=chip)
