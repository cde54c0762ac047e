"""MMA with a sparse A: types, inference, errors, round trips through text, and tiled kernels on the CPU."""

# pyright: basic

import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from interp_support import kernel, run_kernel
from mma_atoms_support import metadata_words, sparse_rows
from test_mma_ops import made, parse
from xdsl.dialects.builtin import StringAttr
from xdsl.utils.exceptions import ParseError, VerifyException

import cute_dialect.lang as cute
from cute_dialect.algebra.leaf import AlgebraError
from cute_dialect.cute_nvgpu import gemm
from cute_dialect.cute_nvgpu import sparse as sparse_mma
from cute_dialect.cute_nvgpu import tiled_mma as mma
from cute_dialect.cute_nvgpu.cooperative_gemm import CooperativeGemmOp
from cute_dialect.cute_nvgpu.sparse import MmaSpType
from cute_dialect.cute_nvgpu.tiled_mma import TiledMmaType
from cute_dialect.dialect.machine import AtomSetValueOp
from cute_dialect.interp import InterpError, Pointer
from cute_dialect.kernels.gemm.sparse import compress
from cute_dialect.lang.nvgpu import warp, warpgroup
from cute_dialect.pipelines.compiler import lower_to_base

F16 = "!cute_nvgpu.atom.mma_sp<16x8x32, (f32,f16,f16,f32)>"
S8 = "!cute_nvgpu.atom.mma_sp<16x8x64, (i32,i8,ui8,i32), saturate>"
TF32 = "!cute_nvgpu.atom.mma_sp<16x8x8, (f32,tf32,tf32,f32), selector = 3>"
SS = "!cute_nvgpu.atom.wgmma_sp<64x64x32, (f32,f16,f16,f32), A = smem, major = (k, k)>"
RS = "!cute_nvgpu.atom.wgmma_sp<64x64x16, (f32,tf32,tf32,f32), A = rmem, major = (k, k), selector = 1>"
DENSE = "!cute_nvgpu.atom.mma_sync<16x8x16, (f32,f16,f16,f32)>"
TM = f'!cute.tiled_mma<{F16}, atom_layout_MNK = <"(2,2,1):(1,2,0)">>'
DENSE_TM = f'!cute.tiled_mma<{DENSE}, atom_layout_MNK = <"(2,2,1):(1,2,0)">>'
THREAD = '!cute.coord<"?">'


# ---------------------------------------------------------------------------------------------------------------- types


@pytest.mark.parametrize(
    "text",
    [
        F16,
        S8,
        TF32,
        TM,
        SS,
        RS,
        "!cute_nvgpu.atom.mma_sp<16x8x128, (i32,ui4,i4,i32)>",
        "!cute_nvgpu.atom.wgmma_sp<64x32x64, (i32,i8,ui8,i32), A = rmem, major = (k, k), saturate>",
    ],
)
def test_types_round_trip(text: str) -> None:
    assert str(parse(text)) == text


def test_row() -> None:
    atom = parse(S8)
    assert isinstance(atom, MmaSpType)
    assert atom.row.name == "SM80_SPARSE_16x8x64_S32S8U8S32_TN_SATURATE" and str(atom.element("E")) == "i32"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("!cute_nvgpu.atom.mma_sp<16x8x8, (f32,f16,f16,f32)>", "no shape 16x8x8 .*: 16x8x16, 16x8x32"),
        ("!cute_nvgpu.atom.mma_sp<16x8x32, (f32,f16,f16,f32), selector = 2>", "the sparsity selector is 2"),
        ("!cute_nvgpu.atom.mma_sp<16x8x64, (i32,i8,i8,i32), selector = 1>", "the sparsity selector is 1"),
        ("!cute_nvgpu.atom.mma_sp<16x8x32, (f32,f16,f16,f32), selector = -1>", "the sparsity selector is -1"),
        ("!cute_nvgpu.atom.mma_sp<16x8x32, (f32,f16,f16,f32), xor>", "'xor' is not supported here; write one of"),
        ("!cute_nvgpu.atom.wgmma_sp<64x64x16, (f32,f16,f16,f32)>", "64x64x16 is not supported by wgmma with a"),
        ("!cute_nvgpu.atom.wgmma_sp<64x12x32, (f32,f16,f16,f32)>", "N: expected N among"),
        ("!cute_nvgpu.atom.wgmma_sp<64x64x32, (f32,f16,f16,f16)>", "C has elements f16; they must be those of D, f32"),
        ("!cute_nvgpu.atom.wgmma_sp<64x64x64, (i32,i8,i8,i32), selector = 1>", "the sparsity selector is 1"),
        (
            f'!cute.tiled_mma<{F16}, atom_layout_MNK = <"(1,1,1):(0,0,0)">, permutation_MNK = <"[_;_;(2,32):(32,1)]">>',
            r"the permutation of K, \(2,32\):\(32,1\), separates 2 consecutive elements that share one of operand A",
        ),
    ],
)  # fmt: skip
def test_errors_of_types(text: str, message: str) -> None:
    with pytest.raises(ParseError, match=message):
        parse(text)


# ----------------------------------------------------------------------------------------------------------- partitions


def infer(cls: type[mma.MemoryOp], *types: str) -> list[str]:
    return [str(t) for t in cls.infer_types([parse(t) for t in types], {})]  # type: ignore[misc]


@pytest.mark.parametrize(
    ("cls", "tensor", "part"),
    [
        (
            mma.PartitionAOp,
            '!cute.memref<f16, gmem, "(64,64):(64,1)">',
            '!cute.memref<f16, gmem, "((2,2,2),2,4):((1,512,8),2048,16)">',
        ),
        (
            mma.PartitionBOp,
            '!cute.memref<f16, gmem, "(32,128):(128,1)">',
            '!cute.memref<f16, gmem, "((2,4),2,4):((1,8),2048,32)">',
        ),
        (
            sparse_mma.PartitionEOp,
            '!cute.memref<i16, gmem, "(64,8):(8,1)">',
            '!cute.memref<i16, gmem, "(2,2,4):(64,256,2)">',
        ),
        (
            sparse_mma.PartitionEOp,
            '!cute.memref<i16, gmem, "(?,?):(?,1)">',
            '!cute.memref<i16, gmem, "(2,?,?):(?{div=8},?{div=32},2)">',
        ),
    ],
)
def test_partitions(cls: type[mma.MemoryOp], tensor: str, part: str) -> None:
    assert infer(cls, TM, tensor, THREAD) == [part]


def test_shapes_fragments_and_layouts() -> None:
    assert infer(sparse_mma.PartitionShapeEOp, TM, '!cute.shape<"(64,8)">') == ['!cute.shape<"(2,2,4)">']
    part = '!cute.memref<i16, gmem, "(2,2,4):(64,256,2)">'
    assert infer(sparse_mma.MakeFragmentEOp, TM, part) == ['!cute.memref<i16, rmem, align<32>, "(2,2,4):(1,2,4)">']
    # Warps along N hold the same metadata, and so do the threads of each quad that other selectors would use.
    (layout,) = infer(sparse_mma.LayoutEOp, TM)
    assert layout == '!cute.layout<"((2,2,8,2,2),(2,(1,1))):((32,0,1,16,0),(8,(32,64)))">'


@pytest.mark.parametrize(
    ("cls", "types", "message"),
    [
        (sparse_mma.PartitionEOp, (DENSE_TM, '!cute.memref<i16, gmem, "(64,8):(8,1)">', THREAD), "of a sparse atom"),
        (sparse_mma.PartitionEOp, (TM, "i32", THREAD), "#1 must be a tensor"),
        (sparse_mma.PartitionShapeEOp, (DENSE_TM, '!cute.shape<"(64,8)">'), "tiled MMA of a sparse atom"),
        (sparse_mma.PartitionShapeEOp, (TM, '!cute.shape<"64">'), r"the shape is 64; use \(M,K,…\) of rank 2 or more"),
        (sparse_mma.MakeFragmentEOp, (DENSE_TM, '!cute.shape<"(2,2,4)">'), "tiled MMA of a sparse atom"),
        (sparse_mma.MakeFragmentEOp, (TM, '!cute.shape<"(4,2,4)">'), r"E has 4 values in mode 0 of \(4,2,4\)"),
        (sparse_mma.LayoutEOp, (DENSE_TM,), "tiled MMA of a sparse atom"),
        (
            CooperativeGemmOp,
            (TM, *['!cute.memref<f16, smem, "(32,32):(32,1)">'] * 3, THREAD),
            "the tiled MMA has a sparse atom",
        ),
        (sparse_mma.LayoutEOp, (), "expected 1 operands?, got 0"),
    ],
)
def test_errors_of_partitions(cls: type[mma.MemoryOp], types: tuple[str, ...], message: str) -> None:
    with pytest.raises(AlgebraError, match=message):
        infer(cls, *types)


# ----------------------------------------------------------------------------------------------------------------- gemm

D = '!cute.memref<f32, rmem, "((2,2),2,2):((1,2),4,8)">'
A = '!cute.memref<f16, rmem, "((2,2,2),2,4):((1,2,4),8,16)">'
B = '!cute.memref<f16, rmem, "((2,4),2,4):((1,2),8,16)">'
E = '!cute.memref<i16, rmem, "(2,2,4):(1,2,4)">'


def test_accepted_operands_of_sparse_gemm() -> None:
    assert infer(sparse_mma.SparseGemmOp, TM, D, A, B, E, D) == []
    assert infer(sparse_mma.SparseGemmOp, F16, D, A, B, E) == []
    one = [t.split('"')[0] + f'"{layout}">' for t, layout in zip((D, A, B, E), ("4:1", "8:1", "8:1", "2:1"))]
    assert infer(sparse_mma.SparseGemmOp, F16, *one) == []
    two = [
        t.split('"')[0] + f'"{layout}">' for t, layout in zip((A, B, E), ("(8,2):(1,8)", "(8,2):(1,8)", "(2,2):(1,2)"))
    ]
    assert infer(sparse_mma.SparseGemmOp, F16, D, *two) == []


@pytest.mark.parametrize(
    ("cls", "types", "message"),
    [
        (sparse_mma.SparseGemmOp, (TM, D, A, B), "expected 5 to 6 operands, got 4"),
        (sparse_mma.SparseGemmOp, (DENSE_TM, D, A, B, E), r"#0 must be a sparse atom; .* is dense; use cute.gemm"),
        (gemm.GemmOp, (TM, D, A, B), r"#0 must be a dense atom; .* is sparse; use cute.sparse_gemm"),
        (sparse_mma.SparseGemmOp, (TM, D, A, B, "i32"), "#4 must be a !cute.memref, operand E"),
        (sparse_mma.SparseGemmOp, (TM, D, A, B, E.replace("i16", "i32")), "operand E has elements i32"),
        (sparse_mma.SparseGemmOp, (TM, D, A, B, E.replace("rmem", "gmem")), "E is in gmem.* needs it in rmem"),
        (sparse_mma.SparseGemmOp, (TM, D, A, B, E.replace("(2,2,4)", "(4,2,4)")), "E has 4 values in mode V of "),
        (sparse_mma.SparseGemmOp, (TM, D, A, B, E.replace("2,4):", "3,4):")), "mode M of A and E has extents 2 and 3"),
        (sparse_mma.SparseGemmOp, (TM, D, A, B, E.replace("2,4):", "2,2):")), "mode K of A and E has extents 4 and 2"),
        (
            sparse_mma.SparseGemmOp,
            (TM, D, A, B, '!cute.memref<i16, rmem, "(2,2):(1,2)">'),
            r"the layout of E is \(2,2\)",
        ),
        (
            sparse_mma.SparseGemmOp,
            (TM, D, A, B, '!cute.memref<i16, rmem, "(2,2,4,1):(1,2,4,0)">'),
            r"the layout of E has rank 4 \(\(2,2,4,1\)\)",
        ),
        (sparse_mma.SparseGemmOp, (TM, D, A.replace("2,2,2", "2,2,4"), B, E), "A has 16 values in mode V of "),
        (sparse_mma.SparseGemmOp, (TM, D, A, B, E, D.replace(",2,2)", ",2,3)")), "C and D have .* differ in mode N"),
    ],
)  # fmt: skip
def test_errors_of_sparse_gemm(cls: type[mma.MemoryOp], types: tuple[str, ...], message: str) -> None:
    with pytest.raises(AlgebraError, match=message):
        infer(cls, *types)


ONE = (
    '!cute.memref<f32, rmem, "(2,2):(1,2)">',
    '!cute.memref<f16, rmem, "(2,2,2):(1,2,4)">',
    '!cute.memref<f16, rmem, "(2,4):(1,2)">',
    '!cute.memref<f32, rmem, "(2,2):(1,2)">',
    '!cute.memref<i16, rmem, "2:1">',
)


@pytest.mark.parametrize(
    ("types", "atom", "message"),
    [
        (ONE[:4], F16, "expected at least 5 operands, got 4"),
        (ONE, DENSE, "property 'atom' has the wrong type"),
        ((*ONE[:4], '!cute.memref<i16, rmem, "4:1">'), F16, "E has 4 values in 4:1.* needs 2"),
        ((*ONE[:4], '!cute.memref<i32, rmem, "1:0">'), F16, "operand E has elements i32"),
        ((*ONE[:4], '!cute.memref<i16, smem, "2:1">'), F16, "E is in smem.* needs it in rmem"),
        ((ONE[0], '!cute.memref<f16, rmem, "16:1">', *ONE[2:]), F16, "A has 16 values in 16:1.* needs 8"),
    ],
)
def test_errors_of_instructions(types: tuple[str, ...], atom: str, message: str) -> None:
    with pytest.raises((VerifyException, AlgebraError), match=message):
        made(sparse_mma.MmaSpOp, types, atom=atom).verify_()


SMEM_A = '!cute.memref<f16, smem, align<1024>, S<3,4,3>, "(64,16):(64,1)">'
SMEM_B = '!cute.memref<f16, smem, align<1024>, S<3,4,3>, "(64,32):(64,1)">'
NARROW_B = '!cute.memref<f16, smem, align<1024>, S<1,4,3>, "(64,(16,2)):(16,(1,1024))">'
SPLIT_B = '!cute.memref<f16, smem, align<1024>, "((8,8),(8,2,2)):((8,64),(1,512,4096))">'
WIDE_D = '!cute.memref<f32, rmem, "(2,2,8):(1,2,4)">'


def verify_wgmma(types: tuple[str, ...], atom: str, accumulate: str) -> None:
    made(sparse_mma.WgmmaSpOp, types, atom=atom, accumulate=accumulate).verify_()


@pytest.mark.parametrize(
    "b",
    [
        SMEM_B,
        SMEM_B.replace("S<3,4,3>", "S<2,4,3>").replace("(64,1)", "(32,1)"),
        SMEM_B.replace(", S<3,4,3>", "").replace("(64,32):(64,1)", "((8,8),(8,4)):((8,64),(1,512))"),
        SMEM_B.replace("(64,32):(64,1)", "(64,(8,4)):(1,(64,512))"),
    ],
)
def test_b_is_64_bytes_deep(b: str) -> None:
    atom = SS.replace("(k, k)", "(k, mn)") if "(64,(8,4))" in b else SS
    verify_wgmma((WIDE_D, SMEM_A, b, ONE[4]), atom, "true")
    verify_wgmma((WIDE_D, SMEM_A, b, ONE[4], "i1"), atom, "true")


@pytest.mark.parametrize(
    ("types", "message"),
    [
        ((WIDE_D, SMEM_A, SMEM_B), "expected 4 to 5 operands, got 3"),
        ((WIDE_D, SMEM_A, SMEM_A, ONE[4]), r"B has 1024 values in \(64,16\):\(64,1\)"),
        ((WIDE_D, SMEM_B, SMEM_B, ONE[4]), r"A has 2048 values in \(64,32\):\(64,1\)"),
        ((WIDE_D, SMEM_A, SMEM_B, ONE[4], "i32"), "#4 must be an i1, got i32"),
        (
            (WIDE_D, SMEM_A, NARROW_B, ONE[4]),
            "operand B, .* descriptor: K: expected rows of 64 bytes or no swizzle for a sparse MMA, got 32",
        ),
        (
            (WIDE_D, SMEM_A, SPLIT_B, ONE[4]),
            "operand B, .* K: expected a stride of 2048 bytes between the 32-byte parts that a sparse MMA reads, "
            "got 8192",
        ),
    ],
)
def test_errors_of_wgmma_sp(types: tuple[str, ...], message: str) -> None:
    with pytest.raises((VerifyException, AlgebraError), match=message):
        verify_wgmma(types, SS, "true")


def test_accumulate_flag() -> None:
    (found,) = AtomSetValueOp.infer_types([parse(SS), parse("i1")], {"field": StringAttr("accumulate")})
    assert str(found) == SS


# ------------------------------------------------------------------------------------------------------------ execution


OF_F16 = warp.MmaSparseOp(cute.Float16, cute.Float32, (16, 8, 32))
OF_TF32 = warp.MmaSparseOp(cute.TFloat32, cute.Float32, (16, 8, 8), 3)
OF_I8 = warp.MmaSparseOp(cute.Int8, cute.Int32, (16, 8, 64), b_dtype=cute.Uint8, saturate=True)


def tiled_kernel(op: Any, layout: str, with_c: bool) -> Any:
    """Return a kernel that computes ``D = A * B (+ C)`` of whole matrices with one tiled MMA."""

    @cute.kernel
    def multiply(A: Any, B: Any, E: Any, C: Any, D: Any):
        mma = cute.make_tiled_mma(op, cute.layout(layout))
        thread = mma.get_slice(cute.arch.thread_idx().x)
        parts = [thread.partition_A(A), thread.partition_B(B), thread.partition_E(E)]
        if op.ab_dtype is cute.TFloat32:  # TF32 operands are stored as f32.
            held = [*[cute.make_rmem_tensor_like(part) for part in parts[:2]], mma.make_fragment_E(parts[2])]
        else:
            held = [mma.make_fragment_A(parts[0]), mma.make_fragment_B(parts[1]), mma.make_fragment_E(parts[2])]
        for part, fragment in zip(parts, held):
            cute.autovec_copy(part, fragment)
        d = mma.make_fragment_C(thread.partition_C(C))
        if with_c:
            c = mma.make_fragment_C(thread.partition_C(C))
            cute.autovec_copy(thread.partition_C(C), c)
            cute.sparse_gemm(mma, d, *held, c)
        else:
            cute.sparse_gemm(mma, d, *held)
        cute.autovec_copy(d, thread.partition_C(D))

    return multiply


def run(kernel: Any, threads: int, *arrays: np.ndarray, **options: Any) -> None:
    """Run a kernel on arrays with static layouts."""
    kernel(*[cute.from_dlpack(x) for x in arrays]).launch(grid=1, block=threads, device="cpu", **options)


@pytest.mark.sample(every=11)
@pytest.mark.parametrize(
    ("op", "layout", "threads", "shape"),
    [
        (OF_F16, "(1,1,1):(0,0,0)", 32, (16, 8, 32)),
        (OF_F16, "(2,2,1):(1,2,0)", 128, (64, 32, 128)),
        (replace(OF_F16, shape_mnk=(16, 8, 16)), "(2,1,1):(1,0,0)", 64, (32, 16, 64)),
        (OF_TF32, "(1,2,1):(0,1,0)", 64, (32, 32, 32)),
        (replace(OF_TF32, shape_mnk=(16, 8, 16), selector=1), "(2,1,1):(1,0,0)", 64, (32, 16, 32)),
        (OF_I8, "(2,2,1):(2,1,0)", 128, (64, 16, 128)),
        (replace(OF_I8, shape_mnk=(16, 8, 32), selector=1), "(1,2,1):(0,1,0)", 64, (32, 32, 64)),
    ],
)
@pytest.mark.parametrize("with_c", [False, True])
def test_tiled(op: Any, layout: str, threads: int, shape: tuple[int, int, int], with_c: bool) -> None:
    m, n, k = shape
    row = cute.make_mma_atom(op).type.row
    rng = np.random.default_rng(m + n + k)
    dense, a, bits = sparse_rows(rng, row.a, m, k)
    b = rng.integers(0, 4, (n, k))
    c = rng.integers(-5, 6, (m, n))
    number = {"f16": np.float16, "tf32": np.float32, "i8": np.int8}[row.a]
    second = np.uint8 if row.b == "ui8" else number
    result = np.int32 if row.d == "i32" else np.float32
    d = np.full((m, n), -99, result)
    arrays = (a.astype(number), b.astype(second), metadata_words(row.a, bits), c.astype(result), d)
    run(tiled_kernel(op, layout, with_c), threads, *arrays)
    assert np.array_equal(d, dense @ b.T + (c if with_c else 0))


def test_fragments_use_ldmatrix() -> None:
    """Load the compressed A and B with ldmatrix from shared memory, and the metadata from global memory."""

    @cute.kernel
    def multiply(A: Any, B: Any, E: Any, D: Any):
        tid = cute.arch.thread_idx().x
        mma = cute.make_tiled_mma(OF_F16, (2, 2, 1))
        thread = mma.get_slice(tid)
        ldsm = cute.make_copy_atom(warp.LdMatrix8x8x16bOp(False, 4), cute.Float16)
        tiles = []
        for source in (A, B):
            rows, columns = source.shape
            tile = cute.smem_tensor(cute.Float16, cute.make_layout((rows, columns), stride=(columns + 8, 1)), 16)
            for start in range(0, rows * columns, 128):
                tile[tid + start] = source[tid + start]
            tiles.append(tile)
        cute.arch.sync_threads()
        a, b = mma.make_fragment_A(thread.partition_A(tiles[0])), mma.make_fragment_B(thread.partition_B(tiles[1]))
        for copy, tile, fragment in (
            (cute.make_tiled_copy_A(ldsm, mma), tiles[0], a),
            (cute.make_tiled_copy_B(ldsm, mma), tiles[1], b),
        ):
            cute.copy(copy, copy.get_slice(tid).partition_S(tile), copy.retile(fragment))
        e = mma.make_fragment_E(thread.partition_E(E))
        cute.autovec_copy(thread.partition_E(E), e)
        acc = mma.make_fragment_C(thread.partition_C(D))
        cute.sparse_gemm(mma, acc, a, b, e)
        cute.autovec_copy(acc, thread.partition_C(D))

    m, n, k = 64, 32, 128
    rng = np.random.default_rng(7)
    dense, _, _ = sparse_rows(rng, "f16", m, k)
    kept, metadata = compress(dense.astype(np.float16), "f16")
    other = rng.integers(-3, 4, (n, k))
    d = np.full((m, n), np.nan, np.float32)
    run(multiply, 128, kept, other.astype(np.float16), metadata, d, checks=("race", "uninit"))
    assert np.array_equal(d, dense @ other.T)


def test_accumulators_of_wgmma_sp_cross_loops_as_one_struct() -> None:
    n, stages, depth = 8, 3, 64  # Each stage is two instructions deep in K.
    m, k = 64, stages * depth

    @cute.kernel
    def multiply(A: Any, B: Any, E: Any, D: Any):
        tid = cute.arch.thread_idx().x
        mma = cute.make_tiled_mma(
            warpgroup.MmaSparseOp(cute.Float16, cute.Float16, cute.Float32, (64, 8, 32), warpgroup.OperandSource.SMEM)
        )
        thread = mma.get_slice(tid)
        tiles = []
        for source, columns, bits in ((A, depth // 2, 2), (B, depth, 3)):
            rows = source.shape[0]
            layout = cute.make_layout((rows, columns, stages), stride=(columns, 1, rows * columns))
            tile = cute.smem_tensor(cute.Float16, layout, 1024, cute.Swizzle(bits, 4, 3))
            for row in range(rows):
                for column in range(tid, columns * stages, 128):
                    tile[row, column % columns, column // columns] = source[row, column]
            tiles.append(tile)
        cute.arch.fence_proxy("async.shared", space="cta")
        cute.arch.sync_threads()
        a, b = thread.partition_A(tiles[0]), thread.partition_B(tiles[1])
        words, target = thread.partition_E(E), thread.partition_C(D)
        acc = mma.make_fragment_C(target)
        cute.clear(acc)
        for stage in range(cute.Int32(stages)):
            e = cute.make_rmem_tensor((2, 1, 2), cute.Int16)
            for step in cute.range_constexpr(2):
                for i in cute.range_constexpr(2):
                    e[i, 0, step] = words[i, 0, stage * 2 + step]
            warpgroup.fence(acc)
            parts = (a[None, None, None, stage], b[None, None, None, stage])
            cute.sparse_gemm(mma, acc, *parts, e, accumulate=True)
            warpgroup.commit_group()
            warpgroup.wait_group(0, acc)
        cute.autovec_copy(acc, target)

    rng = np.random.default_rng(5)
    dense, _, _ = sparse_rows(rng, "f16", m, k)
    kept, metadata = compress(dense.astype(np.float16), "f16")
    second = rng.integers(-3, 4, (n, k))
    d = np.full((m, n), np.nan, np.float32)
    arrays = (kept, second.astype(np.float16), metadata, d)
    given = [cute.from_dlpack(x) for x in arrays]
    base = lower_to_base(cute.trace(multiply, *given, grid=1, block=128).mlir(), pipeline="base")
    assert re.search(r'"scf.yield"\(%\w+\) : \(!llvm.struct<\(f32, f32, f32, f32\)>\)', base)
    assert "llvm.alloca" not in base
    run(multiply, 128, *arrays, checks=("race",))
    assert np.array_equal(d, dense @ second.T)


def run_with_metadata(word: int, row: int) -> np.ndarray:
    e = np.full((16, 2), 0x4444, np.uint16)
    e[row, 1] = word
    c, d = np.zeros((16, 8), np.float32), np.zeros((16, 8), np.float32)
    kept, b = np.ones((16, 16), np.float16), np.ones((8, 32), np.float16)
    run(tiled_kernel(OF_F16, "(1,1,1):(0,0,0)", False), 32, kept, b, e.view(np.int16), c, d)
    return d


@pytest.mark.sample(every=2)
@pytest.mark.parametrize(("bits", "text"), [(0b0000, "0000"), (0b0001, "0001"), (0b1011, "1011"), (0b1111, "1111")])
def test_invalid_metadata_is_rejected(bits: int, text: str) -> None:
    assert np.all(run_with_metadata(0x4484, 11) == 16)
    with pytest.raises(InterpError) as error:
        run_with_metadata(0x4404 | bits << 4, 11)
    said = f"the metadata of row 11, group 5 of A is {text}; it must be one of 0100, 1000, 1001, 1100, 1101, 1110"
    assert said in str(error.value)
    assert error.value.thread == (13, 0, 0)  # Row 3 + 8: with selector 0, the second thread of the pair holds it.


TEXT = "mma.sp::ordered_metadata.sync.aligned.m16n8k64.row.col.s32.s8.s8.s32"


@pytest.mark.parametrize(
    "instruction",
    [
        f'llvm.inline_asm "{TEXT} {{$0, $1, $2, $3}}, {{$4, $5, $6, $7}}, {{$8, $9, $10, $11}}, '
        '{$12, $12, $12, $12}, $13, 0;", "=r,=r,=r,=r,r,r,r,r,r,r,r,r,r,r" '
        "%a0, %a1, %a2, %a3, %b0, %b1, %b2, %b3, %c, %e : "
        "(i32, i32, i32, i32, i32, i32, i32, i32, i32, i32) -> !llvm.struct<(i32, i32, i32, i32)>",
        'llvm.call_intrinsic "llvm.nvvm.mma.sp.ordered.metadata.m16n8k64.row.col.s8"'
        "(%a0, %a1, %a2, %a3, %b0, %b1, %b2, %b3, %c, %c, %c, %c, %e, %z) : "
        "(i32, i32, i32, i32, i32, i32, i32, i32, i32, i32, i32, i32, i32, i32) -> !llvm.struct<(i32, i32, i32, i32)>",
    ],
    ids=["inline PTX", "intrinsic"],
)
def test_other_forms_of_the_instruction(instruction: str) -> None:
    """The inline PTX and the intrinsic compute the exact product from registers filled by hand."""
    rng = np.random.default_rng(0)
    dense, a, bits = sparse_rows(rng, "i8", 16, 64)
    b = rng.integers(-128, 128, (8, 64))
    # PTX ISA 9.7.14.6.2.6: row g + 8*(r % 2), columns 4t + 16*(r // 2) of the kept elements. B uses all elements.
    lane, r = np.arange(32)[:, None, None], np.arange(4)[None, :, None]
    g, t, i = lane // 4, lane % 4, np.arange(4)
    held_a = a[g + 8 * (r % 2), 4 * t + 16 * (r // 2) + i].astype(np.int8).view(np.int32)[..., 0]
    held_b = b[g, 4 * t + 16 * r + i].astype(np.int8).view(np.int32)[..., 0]
    shifts = 4 * np.arange(8, dtype=np.uint32)
    words = (bits.reshape(16, 2, 8) << shifts).sum(-1).astype(np.uint32).view(np.int32)
    held_e = words[lane[:, 0, 0] // 4 + 8 * (lane[:, 0, 0] % 2), lane[:, 0, 0] % 4 // 2]
    registers = np.ascontiguousarray(np.concatenate([held_a, held_b, held_e[:, None]], axis=1))
    loads = "".join(
        f"""
        %o{n} = arith.constant {n} : i32
        %n{n} = arith.addi %first, %o{n} : i32
        %p{n} = llvm.getelementptr %in[%n{n}] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
        %{name} = llvm.load %p{n} : !llvm.ptr<1> -> i32"""
        for n, name in enumerate(("a0", "a1", "a2", "a3", "b0", "b1", "b2", "b3", "e"))
    )
    stores = "".join(
        f"""
        %s{n} = arith.constant {n} : i32
        %m{n} = arith.addi %four, %s{n} : i32
        %q{n} = llvm.getelementptr %out[%m{n}] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
        %d{n} = llvm.extractvalue %d[{n}] : !llvm.struct<(i32, i32, i32, i32)>
        llvm.store %d{n}, %q{n} : i32, !llvm.ptr<1>"""
        for n in range(4)
    )
    body = f"""
        %nine = arith.constant 9 : i32
        %fourc = arith.constant 4 : i32
        %z = arith.constant 0 : i32
        %c = arith.constant 1000 : i32
        %first = arith.muli %tid, %nine : i32
        %four = arith.muli %tid, %fourc : i32
        {loads}
        %d = {instruction}
        {stores}
        llvm.return
    """
    out = np.zeros((32, 4), np.int32)
    run_kernel(
        kernel(body, "%in: !llvm.ptr<1>, %out: !llvm.ptr<1>"), "k", [Pointer(registers), Pointer(out)], block=(32,)
    )
    rows = g[:, 0] + 8 * (np.arange(4) // 2)
    assert np.array_equal(out, (dense @ b.T + 1000)[rows, 2 * t[:, 0] + np.arange(4) % 2])


def test_types_from_python() -> None:
    t = parse(TM)
    assert isinstance(t, TiledMmaType)
    assert (t.tiling("A").tile_size, t.tiling("B").tile_size, t.tiling("E").tile_size) == (
        (32, 16, 16), (32, 16, 32), (32, 16, 2),
    )  # fmt: skip
