"""Ops of MMA atoms, tiled MMA and GEMM: type inference, every error, and round trips through text."""

from __future__ import annotations

import pytest
from xdsl.dialects import test as made_up
from xdsl.dialects.builtin import StringAttr
from xdsl.ir import Attribute
from xdsl.parser import Parser
from xdsl.utils.exceptions import ParseError, VerifyException

from cute_dialect.algebra.leaf import AlgebraError
from cute_dialect.cute_nvgpu import gemm
from cute_dialect.cute_nvgpu import tiled_mma as mma
from cute_dialect.cute_nvgpu import wgmma as wgmma
from cute_dialect.cute_nvgpu.mma import MmaSyncOp, MmaSyncType
from cute_dialect.cute_nvgpu.tiled_mma import MmaKey, TiledMmaType
from cute_dialect.dialect.machine import AtomSetValueOp
from cute_dialect.dialect.views import MemoryOp
from cute_dialect.ir.context import make_context

F16 = "!cute_nvgpu.atom.mma_sync<16x8x16, (f32,f16,f16,f32)>"
SS = "!cute_nvgpu.atom.wgmma<64x64x16, (f32,f16,f16,f32), A = smem, major = (k, k)>"
RS = "!cute_nvgpu.atom.wgmma<64x64x16, (f32,f16,f16,f32), A = rmem, major = (k, k)>"
TM = f'!cute.tiled_mma<{F16}, atom_layout_MNK = <"(2,2,1):(1,2,0)">>'
TW = f'!cute.tiled_mma<{SS}, atom_layout_MNK = <"(1,1,1):(0,0,0)">>'


def parse(text: str) -> Attribute:
    return Parser(make_context("all"), text).parse_attribute()


# ---------------------------------------------------------------------------------------------------------------- types


@pytest.mark.parametrize(
    "text",
    [
        F16,
        SS,
        RS,
        "!cute_nvgpu.atom.mma_sync<8x8x4, (f32,f16,f16,f32), major = (mn, k)>",
        "!cute_nvgpu.atom.mma_sync<16x8x32, (i32,i8,ui8,i32), saturate>",
        "!cute_nvgpu.atom.mma_sync<16x8x256, (i32,i1,i1,i32), and>",
        "!cute_nvgpu.atom.universal_fma<1x1x1, (bf16,bf16,bf16,bf16)>",
        "!cute_nvgpu.atom.dot_product<1x1x2, (i32,i16,i8,i32)>",
        "!cute_nvgpu.atom.wgmma<64x32x32, (i32,i8,ui8,i32), A = rmem, major = (k, k), saturate>",
        TM,
        f'!cute.tiled_mma<{F16}, atom_layout_MNK = <"(2,2,1):(1,2,0)">, permutation_MNK = <"[_;32:1;_]">>',
    ],
)
def test_types_round_trip(text: str) -> None:
    assert str(parse(text)) == text


def test_defaults_of_wgmma() -> None:
    assert str(parse("!cute_nvgpu.atom.wgmma<64x64x16, (f32,f16,f16,f32)>")) == SS


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("!cute_nvgpu.atom.mma_sync<16x8, (f32,f16,f16,f32)>", "the shape has rank 2; write MxNxK"),
        ("!cute_nvgpu.atom.mma_sync<16x8x16, (f32,f16,f16)>", "the number of element types is 3"),
        (
            "!cute_nvgpu.atom.mma_sync<16x8x4, (f32,f16,f16,f32)>",
            "mma.sync has no shape 16x8x4 with majors .*; shapes of these types: ",
        ),
        ("!cute_nvgpu.atom.mma_sync<16x8x16, (f32,f32,f32,f32)>", "no shape has these types"),
        ("!cute_nvgpu.atom.mma_sync<16x8x16, (f32,f16,f16,f32), major = (mn, k)>", "majors mn and k"),
        (
            "!cute_nvgpu.atom.mma_sync<16x8x16, (f32,f16,f16,f32), A = rmem>",
            "'A' is not supported here",
        ),
        (
            "!cute_nvgpu.atom.mma_sync<16x8x16, (f32,f16,f16,f32), major = (m, k)>",
            "'m' is not supported here; write k or mn",
        ),
        ("!cute_nvgpu.atom.universal_fma<1x1x1, (f32,f16,f16,f32)>", r"1x1x1 \(f32,f16,f16,f32\) is not supported"),
        ("!cute_nvgpu.atom.universal_fma<1x1x1, (f32,f32,f32,f32), saturate>", "expected '>'"),
        ("!cute_nvgpu.atom.dot_product<1x1x8, (i32,i8,i8,i32)>", r"1x1x8 \(i32,i8,i8,i32\) is not supported"),
        (
            "!cute_nvgpu.atom.wgmma<128x64x16, (f32,f16,f16,f32)>",
            "128x64x16 is not supported by wgmma on f16; use 64x64x16",
        ),
        ("!cute_nvgpu.atom.wgmma<64x60x16, (f32,f16,f16,f32)>", "N: expected N among"),
        ("!cute_nvgpu.atom.wgmma<64x64x16, (f32,f16,f16,f16)>", "C has elements f16; they must be those of D, f32"),
        ("!cute_nvgpu.atom.wgmma<64x64x16, (f32,f16,bf16,f32)>", "expected one of these types of D, A, B"),
        ("!cute_nvgpu.atom.wgmma<64x64x8, (f32,tf32,tf32,f32), major = (k, mn)>", "B: expected a k-major tf32 operand"),
        ("!cute_nvgpu.atom.wgmma<64x64x16, (f32,f16,f16,f32), A = rmem, major = (mn, k)>", "A: expected a k-major"),
        (
            "!cute_nvgpu.atom.wgmma<64x64x16, (f32,f16,f16,f32), A = gmem>",
            "'gmem' is not supported here; write smem or rmem",
        ),
        (
            '!cute.tiled_mma<i32, atom_layout_MNK = <"(1,1,1):(0,0,0)">>',
            "i32 is not an MMA atom type; write one, such as !cute_nvgpu.atom.mma_sync<…>",
        ),
        (f'!cute.tiled_mma<{F16}, atom_layout_MNK = <"(1,1):(0,0)">>', "atom layout of rank 3"),
        (
            f'!cute.tiled_mma<{F16}, atom_layout_MNK = <"(?,1,1):(1,0,0)">>',
            r"the atom layout or the permutation is not static \(\(\?,1,1\):\(1,0,0\) and \(_,_,_\)\)",
        ),
        (f'!cute.tiled_mma<{F16}, atom_layout_MNK = <"(1,1,1:(0,0,0)">>', "invalid layout"),
        (
            f'!cute.tiled_mma<{F16}, atom_layout_MNK = <"(1,1,1):(0,0,0)">, permutation_MNK = <"[_;_]">>',
            "permutation of rank 3",
        ),
        (
            f'!cute.tiled_mma<{F16}, atom_layout_MNK = <"(2,1,1):(1,0,0)">, permutation_MNK = <"[16:1;_;_]">>',
            "the permutation of M has extent 16",
        ),
    ],
)
def test_errors_of_types(text: str, message: str) -> None:
    with pytest.raises(ParseError, match=message):
        parse(text)


# ----------------------------------------------------------------------------------------------------------- partitions


def infer(cls: type[mma.MemoryOp], *types: str) -> list[str]:
    return [str(t) for t in cls.infer_types([parse(t) for t in types], {})]  # type: ignore[misc]


THREAD = '!cute.coord<"?">'
SMEM = "!cute.memref<f16, smem, align<1024>, S<3,4,3>, "


@pytest.mark.parametrize(
    ("cls", "mma_type", "tensor", "part"),
    [
        (
            mma.PartitionAOp,
            TM,
            '!cute.memref<f16, gmem, "(64,32):(32,1)">',
            '!cute.memref<f16, gmem, "((2,2,2),2,2):((1,256,8),1024,16)">',
        ),
        (
            mma.PartitionBOp,
            TM,
            '!cute.memref<f16, smem, align<16>, S<2,4,3>, "(32,32):(32,1)">',
            '!cute.memref<f16, smem, align<4>, S<2,4,3>, "((2,2),2,2):((1,8),512,16)">',
        ),
        (mma.PartitionAOp, TW, SMEM + '"(128,64,4):(64,1,8192)">', SMEM + '"((64,16),2,4,4):((64,1),4096,16,8192)">'),
        (
            mma.PartitionCOp,
            TM,
            '!cute.coord_tensor<"(0,0)", "(32,16):(1@0,1@1)">',
            '!cute.coord_tensor<"(?,?{div=2})", "((2,2),1,1):((1@1,8@0),0,0)">',
        ),
    ],
)
def test_partitions(cls: type[mma.MemoryOp], mma_type: str, tensor: str, part: str) -> None:
    assert infer(cls, mma_type, tensor, THREAD) == [part]


def test_fragments() -> None:
    part = '!cute.memref<f16, gmem, "((2,2,2),2,1):((1,256,8),0,16)">'
    assert infer(mma.MakeFragmentAOp, TM, part) == ['!cute.memref<f16, rmem, align<16>, "((2,2,2),2,1):((1,2,4),0,0)">']
    shape = '!cute.shape<"((2,2),2,4)">'
    assert infer(mma.MakeFragmentCOp, TM, shape) == ['!cute.memref<f32, rmem, align<32>, "((2,2),2,4):((1,2),4,8)">']
    view = SMEM + '"((64,16),2,4):((64,1),4096,16)">'
    assert infer(mma.MakeFragmentBOp, TW, view) == [view]


def test_shapes() -> None:
    assert infer(mma.PartitionShapeAOp, TM, '!cute.shape<"(64,32)">') == ['!cute.shape<"((2,2,2),2,2)">']
    assert infer(mma.PartitionShapeCOp, TM, '!cute.shape<"(?,32)">') == ['!cute.shape<"((2,2),?,2)">']


@pytest.mark.parametrize(
    ("cls", "types", "message"),
    [
        (mma.PartitionAOp, (F16, '!cute.memref<f16, gmem, "(64,32):(32,1)">', THREAD), "#0 must be a !cute.tiled_mma"),
        (mma.PartitionAOp, (TM, "i32", THREAD), "#1 must be a tensor"),
        (
            mma.PartitionAOp,
            (TM, '!cute.memref<f16, gmem, "(64,32):(32,1)">', '!cute.coord<"_">'),
            "thread index, got _",
        ),
        (mma.PartitionAOp, (TM, '!cute.memref<f16, gmem, "64:1">', THREAD), "rank 2 or more for operand A"),
        (
            mma.PartitionAOp,
            (TW, '!cute.memref<f16, smem, "S<3,3,3> o 0 o (64,64):(64,1)">', THREAD),
            r"the layout is composed \(S<3,3,3> o 0 o \(64,64\):\(64,1\)\); use a plain layout",
        ),
        (
            mma.PartitionAOp,
            (TW, '!cute.memref<f16, gmem, "(64,64):(64,1)">', THREAD),
            "operand A of.* is in gmem; it must be in smem",
        ),
        (mma.PartitionBOp, (TW, '!cute.memref<bf16, smem, "(64,64):(64,1)">', THREAD), "operand B has elements bf16"),
        (mma.PartitionShapeAOp, (TM, '!cute.shape<"64">'), r"the shape is 64; use \(M,K,…\) of rank 2 or more"),
        (
            mma.MakeFragmentAOp,
            (TM, '!cute.memref<f16, gmem, "(4,2,1):(1,4,0)">'),
            r"A has 4 values in mode 0 of \(4,2,1\)",
        ),
        (mma.MakeFragmentCOp, (TM, '!cute.shape<"((2,2),?,2)">'), r"the shape is not static \(\(\(2,2\),\?,2\)\)"),
        (mma.MakeFragmentBOp, (TM, "i32"), "#1 must be a tensor or a !cute.shape"),
        (mma.MakeFragmentBOp, (TW, '!cute.shape<"((64,16),1,1)">'), "partition of a tensor in smem"),
    ],
)
def test_errors_of_partitions(cls: type[mma.MemoryOp], types: tuple[str, ...], message: str) -> None:
    with pytest.raises(AlgebraError, match=message):
        infer(cls, *types)


# ----------------------------------------------------------------------------------------------------------------- gemm

D = '!cute.memref<f32, rmem, "((2,2),2,2):((1,2),4,8)">'
A = '!cute.memref<f16, rmem, "((2,2,2),2,4):((1,2,4),8,16)">'
B = '!cute.memref<f16, rmem, "((2,2),2,4):((1,2),4,8)">'
WD = '!cute.memref<f32, rmem, "((2,2,8),1,1):((1,2,4),0,0)">'
WA = SMEM + '"((64,16),1,4):((64,1),0,16)">'


def test_accepted_operands_of_gemm() -> None:
    assert infer(gemm.GemmOp, TM, D, A, B, D) == []
    assert infer(gemm.GemmOp, F16, D, A, B) == []
    assert infer(gemm.GemmOp, TW, WD, WA, WA) == []
    assert infer(gemm.GemmOp, RS, WD, A.replace("2,4)", "1,4)").replace("8,16)", "0,8)"), WA) == []


@pytest.mark.parametrize(
    ("types", "message"),
    [
        ((TM, D, A), "expected 4 to 5 operands, got 3"),
        (("i32", D, A, B), "#0 must be an MMA atom or a !cute.tiled_mma"),
        ((TM, D, "i32", B), "#2 must be a !cute.memref, operand A"),
        ((TM, D, A.replace("rmem", "gmem"), B), "A is in gmem.* needs it in rmem"),
        ((TW, WD, WA.replace(", S<3,4,3>", "").replace("smem", "gmem"), WA), "A is in gmem.* needs it in smem"),
        ((TM, D, A.replace("f16", "bf16"), B), "operand A has elements bf16"),
        ((TM, D.replace("f32", "f16"), A, B), "operand D has elements f16"),
        (
            (TM, D, A.replace("2,4)", "?,4)"), B),
            r"the layout of A is not static \(\(\(2,2,2\),\?,4\):\(\(1,\?,4\),8,16\)\)",
        ),
        ((TM, D, '!cute.memref<f16, rmem, "S<1,1,1> o 0 o 8:1">', B), "the layout of A is not plain"),
        (
            (TM, D, A, '!cute.memref<f16, rmem, "((2,2),2):((1,2),4)">'),
            r"A, B and D have ranks 3 2 3 \(\(\(2,2,2\),2,4\), \(\(2,2\),2\), \(\(2,2\),2,2\)\)",
        ),
        ((TM, D, '!cute.memref<f16, rmem, "(4,2,4):(1,4,8)">', B), r"A has 4 values in mode V of \(4,2,4\)"),
        (
            (TM, D, A.replace("2,4)", "3,4)"), B),
            r"mode M of A and D has extents 3 in \(\(2,2,2\),3,4\) and 2 in \(\(2,2\),2,2\)",
        ),
        (
            (TM, D, A, B.replace("2,4)", "3,4)")),
            r"mode N of B and D has extents 3 in \(\(2,2\),3,4\) and 2 in \(\(2,2\),2,2\)",
        ),
        (
            (TM, D, A.replace("2,4)", "2,5)"), B),
            r"mode K of A and B has extents 5 in \(\(2,2,2\),2,5\) and 4 in \(\(2,2\),2,4\)",
        ),
        (
            (TM, D, A, B, D.replace(",2,2)", ",2,3)")),
            r"C and D have extents \(\(2,2\),2,3\) and \(\(2,2\),2,2\), which differ in mode N",
        ),
        (
            (TM, D.replace("4,8)", "4,0)"), A, B),
            r"D has a mode of extent 2 and stride 0 in \(\(2,2\),2,2\):\(\(1,2\),4,0\)",
        ),
        ((TW, WD, SMEM + '"((64,16),1,4):((1,64),0,1024)">', WA), "operand A, tile .* no matrix descriptor: X"),
        ((TW, WD, WA.replace("S<3,4,3>", "S<3,3,3>"), WA), "no matrix descriptor: swizzle: expected one of"),
        ((TW, WD, SMEM + '"((64,16),1,4):((72,1),0,16)">', WA), "has no matrix descriptor: X"),
        (
            (TW, WD, WA.replace("align<1024>", "align<8>"), WA),
            r"A is aligned to 8 bytes.*\); it must be aligned to at least 16 bytes",
        ),
        (
            (TW, WD, SMEM + '"((64,16),1,4):((64,1),0,4)">', WA),
            r"mode RestK of A has a stride of 4 elements of 16 bits in \(\(64,16\),1,4\):\(\(64,1\),0,4\)",
        ),
    ],
)
def test_errors_of_gemm(types: tuple[str, ...], message: str) -> None:
    with pytest.raises(AlgebraError, match=message):
        infer(gemm.GemmOp, *types)


# ---------------------------------------------------------------------------------------------------- machine-level ops


def made(cls: type[MemoryOp], types: tuple[str, ...], result: str = "", **properties: str) -> MemoryOp:
    """Build an op of this class with operands of these types."""
    operands = [made_up.TestOp(result_types=[parse(t)]).results[0] for t in types]
    given = {name: parse(text) for name, text in properties.items()}
    return cls.create(operands=operands, properties=given, result_types=[parse(result)] if result else [])


def verify(cls: type[MemoryOp], types: tuple[str, ...], **properties: str) -> None:
    made(cls, types, **properties).verify_()


ONE_D = '!cute.memref<f32, rmem, "(2,2):(1,2)">'
ONE_A = '!cute.memref<f16, rmem, "(2,2,2):(1,2,4)">'
ONE_B = '!cute.memref<f16, rmem, "(2,2):(1,2)">'
TILE = SMEM + '"(64,16):(64,1)">'
ONE_WD = '!cute.memref<f32, rmem, "(2,2,8):(1,2,4)">'


@pytest.mark.parametrize(
    ("cls", "types", "properties", "message"),
    [
        (MmaSyncOp, (ONE_D, ONE_A, ONE_B), {"atom": F16}, "expected at least 4 operands, got 3"),
        (
            MmaSyncOp,
            (ONE_D, ONE_A, ONE_B, ONE_D),
            {"atom": SS},
            "property 'atom' has the wrong type",
        ),
        (MmaSyncOp, (ONE_D, ONE_A, ONE_A, ONE_D), {"atom": F16}, r"B has 8 values in \(2,2,2\):\(1,2,4\)"),
        (MmaSyncOp, (ONE_D, TILE, ONE_B, ONE_D), {"atom": F16}, "A is in smem.* needs it in rmem"),
        (MmaSyncOp, (ONE_D, "i32", ONE_B, ONE_D), {"atom": F16}, "#1 must be a !cute.memref, operand A"),
        (
            MmaSyncOp,
            (ONE_D, '!cute.memref<f16, rmem, "(2,?):(1,2)">', ONE_B, ONE_D),
            {"atom": F16},
            r"the layout of A is not static and plain \(\(2,\?\):\(1,2\)\)",
        ),
        (wgmma.WgmmaOp, (ONE_WD, TILE, TILE), {"atom": SS}, "requires the property 'accumulate'"),
        (
            wgmma.WgmmaOp,
            (ONE_WD, TILE, TILE, "i32"),
            {"atom": SS, "accumulate": "true"},
            "#3 must be an i1, got i32",
        ),
        (
            wgmma.WgmmaOp,
            (ONE_WD, TILE, TILE, "i1"),
            {"atom": SS, "accumulate": "false"},
            "accumulate must be true",
        ),
        (
            wgmma.WgmmaOp,
            (ONE_WD, SMEM + '"(64,16):(1,64)">', TILE),
            {"atom": SS, "accumulate": "true"},
            "has no matrix descriptor",
        ),
        (wgmma.WgmmaWaitGroupOp, (), {"n": "8 : i32"}, "property n is 8 : i32; use 0 to 7 of type i32"),
        (wgmma.WgmmaWaitGroupOp, (), {}, "requires the property 'n'"),
        (wgmma.WgmmaWaitGroupOp, (TILE,), {"n": "0 : i32"}, "#0 must be an accumulator tensor in rmem"),
        (wgmma.WgmmaFenceOp, ('!cute.memref<f32, rmem, "?:1">',), {}, "static plain layout"),
        (wgmma.WgmmaCommitGroupOp, (TILE,), {}, "expected 0 operands"),
    ],
)
def test_errors_of_instructions(
    cls: type[MemoryOp], types: tuple[str, ...], properties: dict[str, str], message: str
) -> None:
    with pytest.raises((VerifyException, AlgebraError), match=message):
        verify(cls, types, **properties)


def test_make_tiled_mma_names_the_atom() -> None:
    with pytest.raises(VerifyException, match=r"the atom has type .*; the result type needs "):
        made(mma.MakeTiledMmaOp, (SS,), TM).verify_()


def test_accumulate_flag_is_for_wgmma() -> None:
    field = {"field": StringAttr("accumulate")}
    with pytest.raises(AlgebraError, match=r"a wgmma or tcgen05_mma atom, or a !cute.tiled_mma of one, for accumulate"):
        AtomSetValueOp.infer_types([parse(F16), parse("i1")], field)
    with pytest.raises(AlgebraError, match="#1 must be i1 for accumulate, got i32"):
        AtomSetValueOp.infer_types([parse(SS), parse("i32")], field)


def test_unknown_field_of_an_mma() -> None:
    with pytest.raises(AlgebraError, match=r"wgmma has no field foo; its only field is accumulate"):
        AtomSetValueOp.infer_types([parse(SS), parse("i1")], {"field": StringAttr("foo")})


def test_atoms_on_the_same_threads() -> None:
    from xdsl.dialects.builtin import f16, f32

    from cute_dialect.algebra.values import Layout

    atom = MmaSyncType(MmaKey((16, 8, 16), (f32, f16, f16, f32)))
    with pytest.raises(AlgebraError, match=r"\(1,2,1\):\(0,0,0\) assigns several atoms to the same threads"):
        TiledMmaType.of(atom, Layout("(1,2,1):(0,0,0)"))


def test_types_from_python() -> None:
    from xdsl.dialects.builtin import f16, f32

    from cute_dialect.algebra.values import Layout

    atom = MmaSyncType(MmaKey((16, 8, 16), (f32, f16, f16, f32)))
    assert str(TiledMmaType.of(atom, Layout("(2,2,1):(1,2,0)"))) == TM
    assert atom.row.name == "SM80_16x8x16_F32F16F16F32_TN" and atom.threads() == 32
    with pytest.raises(AlgebraError, match="rank 3"):
        TiledMmaType.of(atom, Layout("2:1"))
