"""The atom table: contents, lookup, self-checks and command line."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace

import pytest

from cute_dialect.algebra.text import parse_layout
from cute_dialect.algebra.values import Layout
from cute_dialect.arch import (
    ATOMS,
    AtomError,
    CopyAtom,
    MmaAtom,
    Registers,
    copy_atom,
    find_cp_async,
    find_matrix_copy,
    find_mma_sync,
    find_tma,
    find_universal,
    find_wgmma,
    mma_atom,
)
from cute_dialect.arch.__main__ import grid, holders, main
from cute_dialect.arch.copies import sized
from cute_dialect.arch.elements import bits_of
from cute_dialect.arch.fragments import fragment
from cute_dialect.arch.sm90 import FLOAT_N, INTEGER_N, TYPES
from cute_dialect.arch.table import generated_names
from cute_dialect.arch.targets import TARGETS

# ------------------------------------------------------------------------------------------------------------- contents


def names(*parts: str) -> set[str]:
    return {n for n in ATOMS if all(p in n for p in parts)}


def test_every_dense_warp_shape_is_listed() -> None:
    # PTX ISA 9.0, 9.7.14.5.14: element types -> shapes (M, K).
    dense = {
        ("f16", "f16"): {(16, 8), (16, 16)},
        ("bf16", "f32"): {(16, 8), (16, 16)},
        ("tf32", "f32"): {(16, 4), (16, 8)},
        ("f64", "f64"): {(8, 4), (16, 4), (16, 8), (16, 16)},
        ("i8", "i32"): {(8, 16), (16, 16), (16, 32)},
        ("i4", "i32"): {(8, 32), (16, 32), (16, 64)},
        ("b1", "i32"): {(8, 128), (16, 128), (16, 256)},
        ("f8E4M3FN", "f32"): {(16, 16), (16, 32)},
        ("f8E5M2", "f16"): {(16, 16), (16, 32)},
    }
    for (elt, acc), shapes in dense.items():
        have = {
            (a.shape_mnk[0], a.shape_mnk[2])
            for a in ATOMS.values()
            if isinstance(a, MmaAtom)
            and a.family == "mma_sync"
            and a.threads == 32
            and (a.a, a.b, a.d) == (elt, elt, acc)
        }
        assert have == shapes, elt
    assert len(names("SM70_8x8x4")) == 8
    assert {n.rsplit("_", 1)[1] for n in names("SM80_8x8x128")} == {"XORPOPC", "ANDPOPC"}


def test_integer_atoms_have_every_signedness() -> None:
    mixes = {"S8S8", "S8U8", "U8S8", "U8U8"}
    for prefix in ("SM80_16x8x32_S32", "SM80_8x8x16_S32", "SM75_8x8x16_S32"):
        assert names(prefix) == {
            n for m in mixes | {m.replace("8", "4") for m in mixes} for n in names(f"{prefix}{m}S32_TN")
        }
    fp8 = {"E4M3E4M3", "E4M3E5M2", "E5M2E4M3", "E5M2E5M2"}
    assert {n.removeprefix("SM89_16x8x32_F") for n in names("SM89_16x8x32_F")} == {f"32{m}F32_TN" for m in fp8} | {
        f"16{m}F16_TN" for m in fp8
    }


def test_wgmma_rows() -> None:
    assert list(FLOAT_N) == [8 * i for i in range(1, 33)]
    assert len(INTEGER_N) == 18 and set(INTEGER_N) < set(FLOAT_N)
    for d, a, b in TYPES:
        for n in INTEGER_N if d == "i32" else FLOAT_N:
            for source in ("smem", "rmem"):
                wide = bits_of(a) == 16
                majors = [("k", "k")] + ([("k", "mn")] if wide else [])
                majors += [("mn", "k"), ("mn", "mn")] if wide and source == "smem" else []
                for major in majors:
                    atom = find_wgmma(n, (d, a, b), source, major)
                    assert atom.shape_mnk == (64, n, 256 // bits_of(a))
                    assert (atom.d, atom.a, atom.b, atom.source_a) == (d, a, b, source)
                    assert (atom.major_a, atom.major_b) == major
                    if d == "i32":
                        assert find_wgmma(n, (d, a, b), source, major, saturate=True).emit["saturate"] is True
    assert len(names("SM90_64x")) == 32 * (3 * (4 + 2) + 2 + 16) + 18 * 4 * 2 * 2


def test_wgmma_instructions() -> None:
    # Operands: scale-d, the two signs (not for integers), and a transpose bit for each 16-bit operand in shared memory.
    for name, operands in (
        ("SM90_64x8x16_F32F16F16_SS_TN", "$d, $a, $b, $scale_d, $scale_a, $scale_b, 0, 0;"),
        ("SM90_64x8x16_F32F16F16_SS_NT", "$d, $a, $b, $scale_d, $scale_a, $scale_b, 1, 1;"),
        ("SM90_64x8x16_F32BF16BF16_SS_TT", "$d, $a, $b, $scale_d, $scale_a, $scale_b, 0, 1;"),
        ("SM90_64x8x16_F16F16F16_RS_TT", "$d, $a, $b, $scale_d, $scale_a, $scale_b, 1;"),
        ("SM90_64x8x8_F32TF32TF32_SS_TN", "$d, $a, $b, $scale_d, $scale_a, $scale_b;"),
        ("SM90_64x8x32_S32S8U8_SS_TN", "$d, $a, $b, $scale_d;"),
    ):
        assert mma_atom(name).ptx.endswith(" " + operands)
    assert mma_atom("SM90_64x8x16_F32F16F16_RS_TN").emit.route == "asm"
    assert mma_atom("SM90_64x8x16_F32F16F16_SS_TN").emit.route == "op"


def test_registers() -> None:
    # The PTX ISA packs an operand's values in order into 32-bit registers.
    for name, expected in {
        "SM80_16x8x16_F32F16F16F32_TN": ("f32 4 1", "b32 4 2", "b32 2 2"),
        "SM80_16x8x16_F16F16F16F16_TN": ("b32 2 2", "b32 4 2", "b32 2 2"),
        "SM80_16x8x8_F32TF32TF32F32_TN": ("f32 4 1", "b32 4 1", "b32 2 1"),
        "SM80_8x8x4_F64F64F64F64_TN": ("f64 2 1", "f64 1 1", "f64 1 1"),
        "SM90_16x8x16_F64F64F64F64_TN": ("f64 4 1", "f64 8 1", "f64 4 1"),
        "SM80_16x8x32_S32S8S8S32_TN": ("s32 4 1", "b32 4 4", "b32 2 4"),
        "SM80_16x8x64_S32S4S4S32_TN": ("s32 4 1", "b32 4 8", "b32 2 8"),
        "SM80_16x8x256_S32U1U1S32_TN_XORPOPC": ("s32 4 1", "b32 4 32", "b32 2 32"),
        "SM89_16x8x32_F16E4M3E5M2F16_TN": ("b32 2 2", "b32 4 4", "b32 2 4"),
        "SM70_8x8x4_F32F16F16F32_TN": ("f32 8 1", "b32 2 2", "b32 2 2"),
        "SM90_64x64x16_F32F16F16_RS_TN": ("f32 32 1", "b32 4 2", "b64 1 0"),
        "SM90_64x64x16_F16F16F16_SS_TN": ("b32 16 2", "b64 1 0", "b64 1 0"),
        "SM61_DP4A": ("s32 1 1", "b32 1 4", "b32 1 4"),
    }.items():
        atom = mma_atom(name)
        assert tuple(f"{r.type} {r.count} {r.values}" for r in map(atom.registers, "DAB")) == expected, name
        assert atom.registers("C") == atom.registers("D")
    assert [Registers(t, 1, 1, "").constraint for t in ("b16", "b32", "s32", "b64", "f32", "f64")] == list("hrrlfd")


# -------------------------------------------------------------------------------------------------------------- look-up


def test_the_table_is_a_lazy_mapping() -> None:

    assert len(ATOMS) == len(list(ATOMS)) > 1600
    assert all(ATOMS[n].name == n for n in ATOMS)
    assert ATOMS["SM75_U32x4_LDSM_N"] is ATOMS["SM75_U32x4_LDSM_N"]
    assert "SM90_64x128x16_F32F16F16_SS" in ATOMS and "no such atom" not in ATOMS and 3 not in ATOMS
    code = (
        "import sys; import cute_dialect.arch; "
        "assert not [m for m in sys.modules if m.startswith(('cute_dialect.arch.', 'xdsl', 'mlir', 'dataclasses'))]; "
        "from cute_dialect.arch import ATOMS; ATOMS['SM90_64x8x16_F32F16F16_SS']; "
        "from cute_dialect.arch.table import _made; assert _made.cache_info().currsize == 1; "
        "assert not [m for m in sys.modules if m.startswith(('xdsl', 'mlir', 'numpy'))]"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_unknown_names() -> None:
    with pytest.raises(
        AtomError, match="expected the name of an atom, got 'SM80_16x8x16_F32F16F16_TN'; did you mean SM80_16x8x16_F3"
    ):
        ATOMS["SM80_16x8x16_F32F16F16_TN"]
    with pytest.raises(KeyError):
        ATOMS["nothing like it"]
    with pytest.raises(AtomError, match="expected an MMA atom, got a copy atom"):
        mma_atom("SM75_U32x4_LDSM_N")
    with pytest.raises(AtomError, match="expected a copy atom, got an MMA atom"):
        copy_atom("SM61_DP4A")


def test_finding() -> None:
    assert find_mma_sync((16, 8, 8), ("f16", "f16", "f16", "f16")).name == "SM75_16x8x8_F16F16F16F16_TN"
    assert find_mma_sync((8, 8, 4), ("f32", "f16", "f16", "f32"), ("mn", "k")).name == "SM70_8x8x4_F32F16F16F32_NN"
    assert find_mma_sync((16, 8, 32), ("i32", "i8", "ui8", "i32"), saturate=True).name.endswith("S8U8S32_TN_SATURATE")
    assert find_mma_sync((8, 8, 128), ("i32", "b1", "b1", "i32"), bit_op="and").name.startswith("SM80_")
    assert find_universal(64).bits == 64
    assert find_cp_async(16).name == "SM80_CP_ASYNC_CACHEALWAYS_16B"
    assert find_cp_async(4, zfill=True).emit["zfill"] is True
    assert find_matrix_copy(2, store=True).name == "SM90_U32x2_STSM_N"
    assert find_tma("load", 4, im2col=True).name == "SM90_TMA_LOAD_IM2COL_4D"
    assert find_tma("reduce_add", 1).name == "SM90_TMA_REDUCE_ADD_1D"
    assert find_tma("prefetch", 3).name == "SM90_TMA_LOAD_PREFETCH_3D"
    assert find_tma("load", 2, multicast=True, by_row=True).name == "SM100_TMA_LOAD_MULTICAST_2D_GATHER4"
    assert find_tma("prefetch", 2, by_row=True).arch == find_tma("store", 2, by_row=True).arch


@pytest.mark.parametrize(
    ("search", "message"),
    [
        (
            lambda: find_mma_sync((16, 8, 32), ("f32", "f16", "f16", "f32")),
            "mma.sync has no shape 16x8x32 with majors k and k for D, A, B, C = f32, f16, f16, f32; "
            "shapes of these types: 8x8x4, 16x8x8, 16x8x16",
        ),
        (lambda: find_mma_sync((16, 8, 16), ("f16", "bf16", "bf16", "f16")), "no shape has these types"),
        (lambda: find_mma_sync((16, 8, 16), ("f32", "f16", "f16", "f32"), saturate=True), "majors k and k, saturating"),
        (lambda: find_wgmma(12, ("f32", "f16", "f16")), "N: expected N among 8, 16, 24"),
        (lambda: find_wgmma(40, ("i32", "i8", "i8")), "N: expected N among 8, 16, 24, 32, 48"),
        (lambda: find_wgmma(64, ("f16", "bf16", "bf16")), "expected one of these types of D, A, B for wgmma"),
        (lambda: find_wgmma(64, ("f32", "tf32", "tf32"), "smem", ("k", "mn")), "B: expected a k-major tf32 operand"),
        (
            lambda: find_wgmma(64, ("f32", "f16", "f16"), "rmem", ("mn", "k")),
            "A: expected a k-major operand in registers",
        ),
        (lambda: find_universal(24), "expected the name of an atom, got 'UniversalCopy_24b'"),
        (lambda: find_cp_async(8, "cg"), "did you mean SM80_CP_ASYNC_CACHE"),
        (lambda: find_matrix_copy(3), "expected 1, 2 or 4 matrices, got 3"),
        (lambda: find_tma("fetch", 2), "expected one of load, store, reduce_add, prefetch"),
        (lambda: find_tma("load", 2, im2col=True), "expected the name of an atom, got 'SM90_TMA_LOAD_IM2COL_2D'"),
        (lambda: bits_of("f17"), "as element type, got 'f17'"),
    ],
)
def test_unknown_atoms_are_rejected(search: Callable[[], object], message: str) -> None:
    with pytest.raises(AtomError) as error:
        search()
    assert message in str(error.value)


def test_sized() -> None:
    atom = sized(copy_atom("SM90_TMA_LOAD_2D"), 8 * 16384)
    assert atom.src == atom.dst == atom.ref == Layout("(1,131072):(0,1)")
    for name, bits, message in (
        ("SM90_BULK_COPY_G2S", 64, "expected a positive multiple of 128 bits, got 64"),
        ("SM80_CP_ASYNC_CACHEGLOBAL_16B", 128, "expected a bulk or TMA copy"),
    ):
        with pytest.raises(AtomError) as error:
            sized(copy_atom(name), bits)
        assert message in str(error.value)


# ---------------------------------------------------------------------------------------------------------- self-checks


MMA = mma_atom("SM80_16x8x16_F32F16F16F32_TN")
WGMMA = mma_atom("SM90_64x64x16_F32F16F16_SS_TN")
LDSM = copy_atom("SM75_U32x4_LDSM_N")


@pytest.mark.parametrize(
    ("atom", "changes", "message"),
    [
        (MMA, {"layout_a": fragment(16, 8, 2)}, "expected the layout of A to cover 256 elements, got 128"),
        (
            MMA,
            {"layout_b": Layout("((4,8),(2,2)):((16,1),(8,128))")},
            "expected a layout without gaps or overlap for B",
        ),
        (
            MMA,
            {"layout_c": Layout("((4,8),(2,2)):((32,1),(16,16))")},
            "expected a layout without gaps or overlap for C",
        ),
        (
            MMA,
            {"layout_c": Layout("((4,8),(2,2,2)):((32,1),(16,8,0))")},
            "elements of C to be held once, got 256 values",
        ),
        (MMA, {"layout_a": Layout("128:1")}, "expected a layout (thread, value) for A, got 128:1"),
        (MMA, {"layout_a": Layout("(64,4):(4,1)")}, "expected 32 threads in the layout of A, got 64"),
        (MMA, {"thr_id": Layout("64:1")}, "expected 64 threads in the layout of A, got 32"),
        (
            MMA,
            {"registers_a": Registers("b32", 2, 2, "i32")},
            "expected 8 values of A per thread, got 2 registers of 2",
        ),
        (
            MMA,
            {"registers_a": Registers("b32", 2, 4, "i32")},
            "expected 32 bits in a b32 register of A, got 4 values of 16",
        ),
        (
            MMA,
            {"registers_d": Registers("f64", 4, 1, "f64")},
            "expected 64 bits in a f64 register of D, got 1 values of 32",
        ),
        (MMA, {"d": "f16"}, "expected D and C of one type, got f16, f32"),
        (MMA, {"a": "half"}, "as element type, got 'half'"),
        (MMA, {"major_a": "row"}, "expected 'k' or 'mn' as the major of A, got 'row'"),
        (
            WGMMA,
            {"layout_b": Layout("(128,(64,16)):(1,(1,64))")},
            "expected thread stride 0 in the layout of B in shared memory",
        ),
        (WGMMA, {"registers_b": Registers("b32", 4, 2, "i32")}, "expected one 64-bit descriptor for B"),
        (
            WGMMA,
            {"layout_a": Layout("(128,(64,8)):(0,(1,64))")},
            "expected the layout of A to cover 1024 elements, got 512",
        ),
        (LDSM, {"dst": parse_layout("(32,(32,4)):(32,(1,2048))")}, "expected a layout without gaps or overlap for dst"),
        (
            LDSM,
            {"dst": parse_layout("(32,(32,2)):(32,(1,1024))")},
            "expected 128 bits in registers in the layout dst, got 64",
        ),
        (
            LDSM,
            {"src": parse_layout("((16,2),128):((128,0),1)")},
            "expected as many bits at the source as at the destination, got 2048 and 4096",
        ),
        (LDSM, {"thr_id": Layout("8:1")}, "expected 8 threads in the layout src, got 32"),
        (LDSM, {"ref_side": "both"}, "expected 'src' or 'dst' as reference, got 'both'"),
    ],
)
def test_atoms_check_themselves(atom: MmaAtom | CopyAtom, changes: dict[str, object], message: str) -> None:
    with pytest.raises(AtomError) as error:
        replace(atom, **changes)  # type: ignore[arg-type]
    assert message in str(error.value)


# --------------------------------------------------------------------------------------------------------- command line


@pytest.mark.parametrize("part", ["SM80_", pytest.param("", marks=pytest.mark.slow)])
def test_json(part: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--json", "-k", part]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert [r["name"] for r in rows] == [n for n in (*ATOMS, *generated_names()) if part in n]
    for row in rows:
        atom = ATOMS[row["name"]]
        assert row["arch"] == atom.arch and parse_layout(row["thr_id"]) == atom.thr_id
        if isinstance(atom, MmaAtom):
            assert tuple(row["shape_mnk"]) == atom.shape_mnk
            assert row["element_types"] == {"D": atom.d, "A": atom.a, "B": atom.b, "C": atom.c}
            for op in "ABC":
                assert row[op] == str(atom.layout(op))
        else:
            assert row["shape_mnk"] is None
            for side in ("src", "dst", "ref"):
                assert row[side] == str(getattr(atom, side))
    by_name = {r["name"]: r for r in rows}
    row = by_name["SM80_16x8x16_F32F16F16F32_TN"]
    for op, text in (
        ("A", "((4,8),(2,2,2)):((32,1),(16,8,128))"),
        ("B", "((4,8),(2,2)):((16,1),(8,64))"),
        ("C", "((4,8),(2,2)):((32,1),(16,8))"),
    ):
        assert row[op] == text
    assert main(["--json", "-k", "SM90_U16x8_STSM_T"]) == 0
    (stored,) = json.loads(capsys.readouterr().out)
    assert stored["src"] == "((4,8),(16,2,4)):((256,16),(1,128,1024))"


def test_choosing(capsys: pytest.CaptureFixture[str]) -> None:
    def listed(*argv: str) -> list[str]:
        assert main([*argv, "--json"]) == 0
        return [r["name"] for r in json.loads(capsys.readouterr().out)]

    assert listed("--family", "ldmatrix", "-k", "_T") == [
        *(f"SM75_U16x{n}_LDSM_T" for n in (2, 4, 8)),
        *(f"SM100_{kind}x{n}_LDSM_T" for kind in ("U8", "SU4_DU8", "SU6_DU8") for n in (8, 16)),
    ]
    assert listed("-k", "no such") == []
    turing = listed("--arch", "sm_75")
    assert "SM75_U32x4_LDSM_N" in turing and "SM70_8x8x4_F16F16F16F16_TN" in turing
    assert not [n for n in turing if n.startswith(("SM80", "SM89", "SM90"))]
    hopper, portable = listed("--arch", "sm_90a"), listed("--arch", "sm_90")
    assert set(hopper) - set(portable) == {n for n in ATOMS if n.startswith(("SM90_64x", "SM90_SPARSE_64x"))}
    assert {n for n in set(ATOMS) - set(hopper) if not n.startswith(("SM100_", "SM103_", "SM120_"))} == {
        "UniversalCopy_256b"
    }
    tmem = {n for n in ATOMS if n.startswith("SM100_TMEM_")}
    assert len(tmem) == 148
    assert set(listed("--arch", "sm_103f", "--family", "tmem_load")) == {n for n in tmem if "_LOAD_" in n}
    assert main(["-k", "U32x4_LDSM_N"]) == 0
    assert capsys.readouterr().out == (
        "SM75_U32x4_LDSM_N  sm_75  smem -> rmem, 4096 bits  ThrID 32:1\n"
        "    src (32,128):(128,1)  dst (32,(32,4)):(32,(1,1024))  ref (32,(32,4)):(32,(1,1024))\n"
    )
    assert main(["-k", "16x8x4_F64"]) == 0
    assert capsys.readouterr().out == (
        "SM90_16x8x4_F64F64F64F64_TN  sm_90  16x8x4  D A B C: f64 f64 f64 f64  ThrID 32:1\n"
        "    A ((4,8),2):((16,1),8)  B ((4,8),1):((8,1),0)  C ((4,8),(2,2)):((32,1),(16,8))\n"
    )
    assert main(["--arch", "hopper"]) == 1
    assert capsys.readouterr().err == "error: --arch: expected one of " + ", ".join(TARGETS) + ", got 'hopper'\n"


def test_showing(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--show", "SM80_16x8x8_F32F16F16F32_TN"]) == 0
    lines = capsys.readouterr().out.splitlines()
    at = lines.index("B f16 (8,8)  ((4,8),2):((16,1),8)")
    assert lines[at + 1 : at + 4] == [
        "  1 b32 registers of 2; rows n, columns k",
        "        0     1     2     3     4     5     6     7",
        "  0  T0V0  T0V1  T1V0  T1V1  T2V0  T2V1  T3V0  T3V1",
    ]
    assert main(["--show", "SM70_8x8x4_F16F16F16F16_TN", "--show", "SM90_TMA_STORE_2D"]) == 0
    out = capsys.readouterr().out
    assert "T16V0" in out and "one thread, 128 bits: one box: a multiple of 16 bytes" in out
    assert main(["--show", "SM90_64x8x16_F32F16F16_SS"]) == 0
    assert "in shared memory, k-major, behind a matrix descriptor" in capsys.readouterr().out
    assert main(["--show", "SM75_U32x2_LDSM_N"]) == 0
    assert "+ where threads repeat each other" in capsys.readouterr().out
    assert main(["--show", "FOO"]) == 1
    assert capsys.readouterr().err.startswith("error: expected the name of an atom, got 'FOO'")


def test_pictures() -> None:
    assert holders(Layout("((2,2),2):((2,0),1)")) == {
        0: [(0, 0), (2, 0)],
        1: [(0, 1), (2, 1)],
        2: [(1, 0), (3, 0)],
        3: [(1, 1), (3, 1)],
    }
    assert grid(Layout("(2,2):(1,2)"), 2, 3, 1, 2) == [
        "     0    1 2",
        "0 T0V0 T0V1 -",
        "1 T1V0 T1V1 -",
    ]
