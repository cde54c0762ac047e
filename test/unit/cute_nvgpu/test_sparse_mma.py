"""Products with a sparse A: types, inference, every error, text that round-trips, and tiled kernels on the CPU."""

from __future__ import annotations

import re

import numpy as np
import pytest
from interp_support import kernel, run_kernel
from mma_atoms_support import sparse_rows
from test_mma_ops import parse
from test_tiled_mma import gmem, move, tiled
from xdsl.utils.exceptions import ParseError, VerifyException

from cute_dialect.algebra.leaf import AlgebraError
from cute_dialect.cute_nvgpu.cooperative_gemm.ops import CooperativeGemmOp
from cute_dialect.cute_nvgpu.sparse import ops as sparse_mma
from cute_dialect.cute_nvgpu.sparse.types import MmaSpType
from cute_dialect.cute_nvgpu.tiled_mma import gemm
from cute_dialect.cute_nvgpu.tiled_mma import ops as mma
from cute_dialect.cute_nvgpu.tiled_mma.types import TiledMmaType
from cute_dialect.interp import InterpError, Pointer
from cute_dialect.kernels.builder import Builder
from cute_dialect.kernels.sparse import compress
from cute_dialect.pipelines import compile as compile_cute
from cute_dialect.pipelines.stages import lower_to_base

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
        ("!cute_nvgpu.atom.mma_sp<16x8x8, (f32,f16,f16,f32)>", "shapes 16x8x16, 16x8x32.*, got 16x8x8"),
        ("!cute_nvgpu.atom.mma_sp<16x8x32, (f32,f16,f16,f32), selector = 2>", "from 0 to 1 for 16x8x32 .* got 2"),
        ("!cute_nvgpu.atom.mma_sp<16x8x64, (i32,i8,i8,i32), selector = 1>", "selector of 0 for 16x8x64 on i8, got 1"),
        ("!cute_nvgpu.atom.mma_sp<16x8x32, (f32,f16,f16,f32), selector = -1>", "selector from 0 to 1 .* got -1"),
        ("!cute_nvgpu.atom.mma_sp<16x8x32, (f32,f16,f16,f32), xor>", "expected one of saturate, selector, got 'xor'"),
        ("!cute_nvgpu.atom.wgmma_sp<64x64x16, (f32,f16,f16,f32)>", "expected 64x64x32 for wgmma with a sparse A"),
        ("!cute_nvgpu.atom.wgmma_sp<64x12x32, (f32,f16,f16,f32)>", "N: expected N among"),
        ("!cute_nvgpu.atom.wgmma_sp<64x64x32, (f32,f16,f16,f16)>", "same element type for C as for D"),
        ("!cute_nvgpu.atom.wgmma_sp<64x64x64, (i32,i8,i8,i32), selector = 1>", "selector of 0 for 64x64x64 .* got 1"),
        (
            f'!cute.tiled_mma<{F16}, atom_layout_MNK = <"(1,1,1):(0,0,0)">, permutation_MNK = <"[_;_;64:1]">>',
            "expected _ as the permutation of K of the sparse atom",
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
    # Threads along N hold the same words, and so do those of four that another selector would name.
    (layout,) = infer(sparse_mma.LayoutEOp, TM)
    assert layout == '!cute.layout<"((2,2,8,2,2),(2,(1,1))):((32,0,1,16,0),(8,(32,64)))">'


@pytest.mark.parametrize(
    ("cls", "types", "message"),
    [
        (sparse_mma.PartitionEOp, (DENSE_TM, '!cute.memref<i16, gmem, "(64,8):(8,1)">', THREAD), "of a sparse atom"),
        (sparse_mma.PartitionEOp, (TM, "i32", THREAD), "#1 must be a tensor"),
        (sparse_mma.PartitionShapeEOp, (DENSE_TM, '!cute.shape<"(64,8)">'), "tiled MMA of a sparse atom"),
        (sparse_mma.PartitionShapeEOp, (TM, '!cute.shape<"64">'), r"expected a shape \(M,K,…\) of rank 2"),
        (sparse_mma.MakeFragmentEOp, (DENSE_TM, '!cute.shape<"(2,2,4)">'), "tiled MMA of a sparse atom"),
        (sparse_mma.MakeFragmentEOp, (TM, '!cute.shape<"(4,2,4)">'), "expected 2 values of E in mode 0"),
        (sparse_mma.LayoutEOp, (DENSE_TM,), "tiled MMA of a sparse atom"),
        (
            CooperativeGemmOp,
            (TM, *['!cute.memref<f16, smem, "(32,32):(32,1)">'] * 3, THREAD),
            r"tiled MMA of a dense atom \(see cute.sparse_gemm\)",
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


def test_sparse_gemm_takes_these() -> None:
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
        (sparse_mma.SparseGemmOp, (DENSE_TM, D, A, B, E), "#0 must be a sparse atom, got the dense atom"),
        (gemm.GemmOp, (TM, D, A, B), r"#0 must be a dense atom, got the sparse \(see cute.sparse_gemm\) atom"),
        (sparse_mma.SparseGemmOp, (TM, D, A, B, "i32"), "#4 must be a !cute.memref, operand E"),
        (sparse_mma.SparseGemmOp, (TM, D, A, B, E.replace("i16", "i32")), "operand E of elements i16 .* got i32"),
        (sparse_mma.SparseGemmOp, (TM, D, A, B, E.replace("rmem", "gmem")), "expected E in rmem .* got gmem"),
        (sparse_mma.SparseGemmOp, (TM, D, A, B, E.replace("(2,2,4)", "(4,2,4)")), "2 values of E in mode V .* got 4"),
        (sparse_mma.SparseGemmOp, (TM, D, A, B, E.replace("2,4):", "3,4):")), "mode M in A and E, got 2 and 3"),
        (sparse_mma.SparseGemmOp, (TM, D, A, B, E.replace("2,4):", "2,2):")), "mode K in A and E, got 4 and 2"),
        (
            sparse_mma.SparseGemmOp,
            (TM, D, A, B, '!cute.memref<i16, rmem, "(2,2):(1,2)">'),
            r"layout \(V,M,K\) of E, as of A, which has 4 steps along K, got \(2,2\)",
        ),
        (
            sparse_mma.SparseGemmOp,
            (TM, D, A, B, '!cute.memref<i16, rmem, "(2,2,4,1):(1,2,4,0)">'),
            r"layout \(V,M,K\) of E, as of A, got rank 4",
        ),
        (sparse_mma.SparseGemmOp, (TM, D, A.replace("2,2,2", "2,2,4"), B, E), "expected 8 values of A in mode V"),
        (sparse_mma.SparseGemmOp, (TM, D, A, B, E, D.replace(",2,2)", ",2,3)")), "same extents in C and D"),
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
        (ONE[:4], F16, "expected 5 operands, got 4"),
        (ONE, DENSE, "property 'atom': got .* not of the expected kind"),
        ((*ONE[:4], '!cute.memref<i16, rmem, "4:1">'), F16, "expected 2 values of E .* got 4"),
        ((*ONE[:4], '!cute.memref<i32, rmem, "1:0">'), F16, "operand E of elements i16 .* got i32"),
        ((*ONE[:4], '!cute.memref<i16, smem, "2:1">'), F16, "expected E in rmem"),
        ((ONE[0], '!cute.memref<f16, rmem, "16:1">', *ONE[2:]), F16, "expected 8 values of A .* got 16"),
    ],
)
def test_errors_of_instructions(types: tuple[str, ...], atom: str, message: str) -> None:
    b = Builder()
    with b.kernel("k", {f"x{i}": t for i, t in enumerate(types)}, threads=32) as values:
        b.do("cute_nvgpu.arch.mma_sp", *values, atom=b.type(atom))
    (op,) = [o for o in b.module.walk() if isinstance(o, sparse_mma.MmaSpOp)]
    with pytest.raises((VerifyException, AlgebraError), match=message):
        op.verify_()


SMEM_A = '!cute.memref<f16, smem, align<1024>, S<3,4,3>, "(64,16):(64,1)">'
SMEM_B = '!cute.memref<f16, smem, align<1024>, S<3,4,3>, "(64,32):(64,1)">'
NARROW_B = '!cute.memref<f16, smem, align<1024>, S<1,4,3>, "(64,(16,2)):(16,(1,1024))">'
SPLIT_B = '!cute.memref<f16, smem, align<1024>, "((8,8),(8,2,2)):((8,64),(1,512,4096))">'
WIDE_D = '!cute.memref<f32, rmem, "(2,2,8):(1,2,4)">'


def verify_wgmma(types: tuple[str, ...], atom: str, accumulate: str) -> None:
    b = Builder()
    with b.kernel("k", {f"x{i}": t for i, t in enumerate(types)}, threads=128) as values:
        b.do("cute_nvgpu.arch.wgmma_sp", *values, atom=b.type(atom), accumulate=b.type(accumulate))
    (op,) = [o for o in b.module.walk() if isinstance(o, sparse_mma.WgmmaSpOp)]
    op.verify_()


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
        ((WIDE_D, SMEM_A, SMEM_A, ONE[4]), "expected 2048 values of B .* got 1024"),
        ((WIDE_D, SMEM_B, SMEM_B, ONE[4]), "expected 1024 values of A .* got 2048"),
        ((WIDE_D, SMEM_A, SMEM_B, ONE[4], "i32"), "#4 must be an i1, got i32"),
        (
            (WIDE_D, SMEM_A, NARROW_B, ONE[4]),
            "operand B, .* descriptor: K: expected rows of 64 bytes or no swizzle for a sparse product, got 32",
        ),
        (
            (WIDE_D, SMEM_A, SPLIT_B, ONE[4]),
            "operand B, .* K: expected one stride along the 64 bytes that a sparse product reads, 2048 bytes to the "
            "next 32, got 8192",
        ),
    ],
)
def test_errors_of_wgmma_sp(types: tuple[str, ...], message: str) -> None:
    with pytest.raises((VerifyException, AlgebraError), match=message):
        verify_wgmma(types, SS, "true")


def test_accumulate_flag() -> None:
    b = Builder()
    with b.kernel("k", {"flag": "i1"}, threads=128) as (flag,):
        assert str(b.op("cute.atom.set_value", b.atom(SS), flag, field='"accumulate"').type) == SS


# ------------------------------------------------------------------------------------------------------------ execution


def tiled_kernel(atom: str, layout: str, threads: int, shape: tuple[int, int, int], with_c: bool) -> str:
    """``D = A * B (+ C)`` of whole matrices with one tiled MMA."""
    m, n, k = shape
    t = parse(atom)
    assert isinstance(t, MmaSpType) and t.row.metadata is not None
    held = t.row.metadata
    names = {"tf32": "f32"}
    a, b_element, d = (names.get(x, x) for x in (t.row.a, t.row.b, t.row.d))
    b = Builder()
    parameters = {
        "A": gmem(a, m, k // 2), "B": gmem(b_element, n, k), "E": gmem(held.element, m, k // held.columns),
        "C": gmem(d, m, n), "D": gmem(d, m, n),
    }  # fmt: skip
    with b.kernel("k", parameters, threads=threads) as (pa, pb, pe, pc, pd):
        tid = b.thread_id()
        mma = tiled(b, atom, layout)
        parts = {x: b.partition(x, mma, p, tid) for x, p in (("A", pa), ("B", pb), ("E", pe), ("C", pc))}
        held_in = {}
        for x, part in parts.items():
            if x in "AB" and t.row.a == "tf32":
                from cute_dialect.ops.memory import fragment_like

                held_in[x] = b.registers(fragment_like(part.type))
            else:
                held_in[x] = b.op(f"cute.tiled.mma.make_fragment_{x}", mma, part)
            if x != "C" or with_c:
                move(b, part, held_in[x])
        d_fragment = b.op("cute.tiled.mma.make_fragment_C", mma, parts["C"])
        more = [held_in["C"]] if with_c else []
        b.do("cute.sparse_gemm", mma, d_fragment, held_in["A"], held_in["B"], held_in["E"], *more)
        move(b, d_fragment, b.partition("C", mma, pd, tid))
    return b.text()


@pytest.mark.parametrize(
    ("atom", "layout", "threads", "shape"),
    [
        (F16, "(1,1,1):(0,0,0)", 32, (16, 8, 32)),
        (F16, "(2,2,1):(1,2,0)", 128, (64, 32, 128)),
        (F16.replace("32, (", "16, ("), "(2,1,1):(1,0,0)", 64, (32, 16, 64)),
        (TF32, "(1,2,1):(0,1,0)", 64, (32, 32, 32)),
        (TF32.replace("8, (", "16, (").replace("= 3", "= 1"), "(2,1,1):(1,0,0)", 64, (32, 16, 32)),
        (S8, "(2,2,1):(2,1,0)", 128, (64, 16, 128)),
        (S8.replace("64, (", "32, (").replace(">", ", selector = 1>"), "(1,2,1):(0,1,0)", 64, (32, 32, 64)),
    ],
)
@pytest.mark.parametrize("with_c", [False, True])
def test_tiled(atom: str, layout: str, threads: int, shape: tuple[int, int, int], with_c: bool) -> None:
    m, n, k = shape
    t = parse(atom)
    assert isinstance(t, MmaSpType) and t.row.metadata is not None
    rng = np.random.default_rng(m + n + k)
    dense, a, bits = sparse_rows(rng, t.row.a, m, k)
    b = rng.integers(0, 4, (n, k))
    c = rng.integers(-5, 6, (m, n))
    number = {"f16": np.float16, "tf32": np.float32, "i8": np.int8}[t.row.a]
    second = np.uint8 if t.row.b == "ui8" else number
    result = np.int32 if t.row.d == "i32" else np.float32
    groups = t.row.metadata.groups
    words = (bits.reshape(m, -1, groups) << (4 * np.arange(groups, dtype=np.uint32))).sum(-1)
    e = words.astype(np.uint16).view(np.int16) if groups == 4 else words.astype(np.uint32).view(np.int32)
    d = np.full((m, n), -99, result)
    module = compile_cute(tiled_kernel(atom, layout, threads, shape, with_c), emit="base")
    module.kernel("k")(a.astype(number), b.astype(second), e, c.astype(result), d, grid=(1, 1, 1), device="cpu")
    assert np.array_equal(d, dense @ b.T + (c if with_c else 0))


def test_fragments_come_by_ldmatrix() -> None:
    """Shared memory, ldmatrix into retiled fragments of the kept half and of B, metadata from global memory."""
    m, n, k = 64, 32, 128
    rng = np.random.default_rng(7)
    dense, _, _ = sparse_rows(rng, "f16", m, k)
    kept, metadata = compress(dense.astype(np.float16), "f16")
    other = rng.integers(-3, 4, (n, k))
    b = Builder()
    parameters = {
        "A": gmem("f16", m, k // 2), "B": gmem("f16", n, k), "E": gmem("i16", m, k // 16), "D": gmem("f32", m, n),
    }  # fmt: skip
    with b.kernel("k", parameters, threads=128) as (pa, pb, pe, pd):
        tid = b.thread_id()
        mma = tiled(b, F16, "(2,2,1):(1,2,0)")
        ldsm = b.atom("!cute_nvgpu.atom.ldsm<val_type = f16, num_matrices = 4, n>")
        smem = {}
        for name, source, rows, columns in (("A", pa, m, k // 2), ("B", pb, n, k)):
            smem[name] = b.alloc_smem(f'!cute.memref<f16, smem, align<16>, "({rows},{columns}):({columns + 8},1)">')
            with b.for_(0, rows * columns, 128) as loop:
                b.store(smem[name], tid + loop.iv, b.load(source, tid + loop.iv))
        b.run("barrier")
        fragments = []
        for name in "AB":
            copy = b.op(f"cute.make_tiled_copy_{name}", ldsm, mma)
            part = b.partition(name, mma, smem[name], tid)
            fragment = b.op(f"cute.tiled.mma.make_fragment_{name}", mma, part)
            b.copy(copy, b.partition("S", copy, smem[name], tid), b.op("cute.tiled.copy.retile", copy, fragment))
            fragments.append(fragment)
        words = b.partition("E", mma, pe, tid)
        e = b.op("cute.tiled.mma.make_fragment_E", mma, words)
        move(b, words, e)
        target = b.partition("C", mma, pd, tid)
        acc = b.op("cute.tiled.mma.make_fragment_C", mma, target)
        b.do("cute.sparse_gemm", mma, acc, *fragments, e)
        move(b, acc, target)
    d = np.full((m, n), np.nan, np.float32)
    compile_cute(b.text(), emit="base").kernel("k")(
        kept, other.astype(np.float16), metadata, d, grid=(1, 1, 1), device="cpu", checks=("race", "uninit")
    )
    assert np.array_equal(d, dense @ other.T)


def test_accumulators_of_wgmma_sp_cross_loops_as_one_struct() -> None:
    n, stages, depth = 8, 3, 64  # two instructions deep
    m, k = 64, stages * depth
    b = Builder()
    parameters = {
        "A": gmem("f16", m, k // 2), "B": gmem("f16", n, k), "E": gmem("i16", m, k // 16), "D": gmem("f32", m, n),
    }  # fmt: skip
    with b.kernel("k", parameters, threads=128) as (pa, pb, pe, pd):
        tid = b.thread_id()
        mma = tiled(b, SS.replace("64x64x32", "64x8x32"), "(1,1,1):(0,0,0)")
        smem = {}
        for name, source, rows, columns in (("A", pa, m, depth // 2), ("B", pb, n, depth)):
            layout = f"({rows},{columns},{stages}):({columns},1,{rows * columns})"
            swizzle = "S<2,4,3>" if name == "A" else "S<3,4,3>"
            smem[name] = b.alloc_smem(f'!cute.memref<f16, smem, align<1024>, {swizzle}, "{layout}">')
            with b.for_(0, rows, 1) as row, b.for_(tid, columns * stages, 128) as column:
                where = (row.iv, column.iv % columns, column.iv // columns)
                b.store(smem[name], where, b.load(source, (row.iv, column.iv)))
        b.run("fence_proxy_async")
        b.run("barrier")
        a, other = (b.partition(x, mma, smem[x], tid) for x in "AB")
        words, target = b.partition("E", mma, pe, tid), b.partition("C", mma, pd, tid)
        acc = b.op("cute.tiled.mma.make_fragment_C", mma, target)
        b.do("cute.clear", acc)
        with b.for_(0, stages) as stage:
            e = b.registers('!cute.memref<i16, rmem, align<8>, "(2,1,2):(1,0,2)">')
            for step in range(2):
                for i in range(2):
                    b.store(e, (i, 0, step), b.load(words, (i, 0, stage.iv * 2 + step)))
            b.run("wgmma_fence", acc)
            b.do(
                "cute.sparse_gemm", mma, acc, *(b.slice(x, None, None, None, stage.iv) for x in (a, other)), e, acc
            )  # fmt: skip
            b.run("wgmma_commit_group")
            b.run("wgmma_wait_group", acc, n=0)
        move(b, acc, target)
    module = compile_cute(b.text(), emit="base")
    base = lower_to_base(b.text(), pipeline="base")
    assert re.search(r'"scf.yield"\(%\w+\) : \(!llvm.struct<\(f32, f32, f32, f32\)>\)', base)
    assert "llvm.alloca" not in base
    rng = np.random.default_rng(5)
    dense, _, _ = sparse_rows(rng, "f16", m, k)
    kept, metadata = compress(dense.astype(np.float16), "f16")
    second = rng.integers(-3, 4, (n, k))
    d = np.full((m, n), np.nan, np.float32)
    module.kernel("k")(kept, second.astype(np.float16), metadata, d, grid=(1, 1, 1), device="cpu", checks=("race",))
    assert np.array_equal(d, dense @ second.T)


def run_with_metadata(word: int, row: int) -> np.ndarray:
    shape = (16, 8, 32)
    module = compile_cute(tiled_kernel(F16, "(1,1,1):(0,0,0)", 32, shape, False), emit="base")
    e = np.full((16, 2), 0x4444, np.uint16)
    e[row, 1] = word
    d = np.zeros((16, 8), np.float32)
    module.kernel("k")(
        np.ones((16, 16), np.float16),
        np.ones((8, 32), np.float16),
        e.view(np.int16),
        d,
        d,
        grid=(1, 1, 1),
        device="cpu",
    )
    return d


@pytest.mark.parametrize(("bits", "text"), [(0b0000, "0000"), (0b0001, "0001"), (0b1011, "1011"), (0b1111, "1111")])
def test_metadata_that_means_nothing_is_an_error(bits: int, text: str) -> None:
    assert np.all(run_with_metadata(0x4484, 11) == 16)
    with pytest.raises(InterpError) as error:
        run_with_metadata(0x4404 | bits << 4, 11)
    assert f"one of 0100, 1000, 1001, 1100, 1101, 1110 as metadata of row 11, group 5 of A, got {text}" in str(
        error.value
    )
    assert error.value.thread == (13, 0, 0)  # row 3 + 8; the second thread of the pair that selector 0 names


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
    """Registers in, registers out: what the thread of a row and a column holds is placed by hand."""
    rng = np.random.default_rng(0)
    dense, a, bits = sparse_rows(rng, "i8", 16, 64)
    b = rng.integers(-128, 128, (8, 64))
    # PTX ISA 9.7.14.6.2.6: row g + 8*(r % 2), columns 4t + 16*(r // 2) of what is kept; B likewise, of all of it.
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
