"""Sparse MMA rows of the atom table: fragments and metadata of the PTX ISA, self-checks, lookup and listing."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace

import pytest
from tensor_layouts import atoms_nv
from test_fragment_formulas import C16, WARP, Formula, g, t, table
from test_tensor_layouts_atoms import same_function

from cute_dialect.algebra.values import Layout
from cute_dialect.arch import ATOMS, AtomError, Metadata, MmaAtom, find_mma_sp, find_wgmma_sp, mma_atom
from cute_dialect.arch.__main__ import main
from cute_dialect.arch.atom import Registers
from cute_dialect.arch.elements import bits_of

MMA_SP = [n for n in ATOMS if n.startswith(("SM80_SPARSE_", "SM89_SPARSE_"))]

# (K, bits) -> A: (lane, value) -> (row, first column). The kept elements in a register of n values come from columns
# first … first + 2n - 1, in order. PTX ISA 9.7.14.6.2.1 to .8.
FIRST_COLUMN: dict[tuple[int, int], Formula] = {
    (16, 16): lambda x, i: (g(x) if i < 2 else g(x) + 8, t(x) * 4),
    (32, 16): lambda x, i: (g(x) if i < 2 or 4 <= i < 6 else g(x) + 8, t(x) * 4 if i < 4 else t(x) * 4 + 16),
    (16, 32): lambda x, i: (g(x) if i in (0, 2) else g(x) + 8, t(x) * 2 if i < 2 else t(x) * 2 + 8),
    (8, 32): lambda x, i: (g(x) if i == 0 else g(x) + 8, t(x) * 2),
    (32, 8): lambda x, i: (g(x) if i < 4 else g(x) + 8, t(x) * 8),
    (64, 8): lambda x, i: (g(x) if i < 4 or 8 <= i < 12 else g(x) + 8, t(x) * 8 if i < 8 else t(x) * 8 + 32),
    (64, 4): lambda x, i: (g(x) if i < 8 else g(x) + 8, t(x) * 16),
    (128, 4): lambda x, i: (g(x) if i < 8 or 16 <= i < 24 else g(x) + 8, t(x) * 16 if i < 16 else t(x) * 16 + 64),
}
# B as (k, n), for the shapes that dense MMAs do not have.
DEEP_B: dict[tuple[int, int], Formula] = {
    (32, 16): lambda x, i: (t(x) * 2 + (i & 1) + 8 * (i // 2), g(x)),
    (16, 32): lambda x, i: (t(x) + 4 * i, g(x)),
    (64, 8): lambda x, i: (t(x) * 4 + (i & 3) + 16 * (i // 4), g(x)),
    (128, 4): lambda x, i: (t(x) * 8 + (i & 7) + 32 * (i // 8), g(x)),
}
# E: (lane, index of the 4-bit field) -> (row, group within the row).
BITS: dict[tuple[int, int], Formula] = {
    (16, 16): lambda x, j: (g(x) if j < 4 else g(x) + 8, j % 4),
    (32, 16): lambda x, j: (g(x) if j < 4 else g(x) + 8, j % 4 + 4 * (t(x) % 2)),
    (16, 32): lambda x, j: (g(x) if j < 4 else g(x) + 8, j % 4 + 4 * (t(x) % 2)),
    (8, 32): lambda x, j: (g(x) if j < 4 else g(x) + 8, j % 4),
    (32, 8): lambda x, j: (g(x) + 8 * (t(x) % 2), j),
    (64, 8): lambda x, j: (g(x) + 8 * (t(x) % 2), j + 8 * (t(x) // 2)),
    (64, 4): lambda x, j: (g(x) + 8 * (t(x) % 2), j),
    (128, 4): lambda x, j: (g(x) + 8 * (t(x) % 2), j + 8 * (t(x) // 2)),
}
# PTX ISA 9.7.14.6.1: the allowed values of the sparsity selector.
SELECTORS = {
    (16, 16): 4, (32, 16): 2, (8, 32): 4, (16, 32): 2, (32, 8): 2, (64, 8): 1, (64, 4): 2, (128, 4): 1,
}  # fmt: skip
RISING = {0b0100: (0, 1), 0b1000: (0, 2), 0b1001: (1, 2), 0b1100: (0, 3), 0b1101: (1, 3), 0b1110: (2, 3)}


def held(atom: MmaAtom) -> Metadata:
    assert atom.metadata is not None
    return atom.metadata


@pytest.mark.parametrize("name", MMA_SP)
def test_fragments(name: str) -> None:
    atom = mma_atom(name)
    m, n, k = atom.shape_mnk
    bits = bits_of(atom.a)
    kind = (k, bits)
    assert (m, n) == (16, 8) and atom.tile("A") == (16, k // 2)
    per = 32 // bits
    for x, values in enumerate(table(atom.layout_a)):
        places = [(FIRST_COLUMN[kind](x, i), i % per) for i in range(len(values))]
        assert values == [row + 16 * (first // 2 + place) for (row, first), place in places]
    b = DEEP_B[kind] if kind in DEEP_B else WARP[16, k, bits][1]
    for x, values in enumerate(table(atom.layout_b)):
        assert values == [col + 8 * row for row, col in (b(x, i) for i in range(len(values)))]
    for x, values in enumerate(table(atom.layout_c)):
        assert values == [row + 16 * col for row, col in (C16(x, i) for i in range(len(values)))]
    for layout, size in ((atom.layout_a, 16 * k // 2), (atom.layout_b, 8 * k), (atom.layout_c, 128)):
        assert sorted(v for values in table(layout) for v in values) == list(range(size))


@pytest.mark.parametrize("name", MMA_SP)
def test_metadata(name: str) -> None:
    atom = mma_atom(name)
    k, bits = atom.shape_mnk[2], bits_of(atom.a)
    e = held(atom)
    have = table(e.group_layout(16))
    for x, positions in enumerate(have):
        assert positions == [row + 16 * group for row, group in (BITS[k, bits](x, j) for j in range(8))]
    assert e.selectors == SELECTORS[k, bits]
    each = 4 // e.selectors
    for selector in range(e.selectors):
        asked = [have[x] for x in range(32) if x % 4 // each == selector]
        assert sorted(p for positions in asked for p in positions) == list(range(16 * k // e.group))
    if bits == 32:
        assert e.group == 2 and dict(e.kept) == {0b0100: (0,), 0b1110: (1,)}
    elif bits == 4:
        pairs = {b: (2 * i, 2 * i + 1, 2 * j, 2 * j + 1) for b, (i, j) in RISING.items()}
        assert e.group == 8 and dict(e.kept) == pairs
    else:
        assert e.group == 4 and dict(e.kept) == RISING
    assert e.element == ("i16" if bits >= 16 else "i32") and atom.tile("E") == (16, k // e.columns)


WGMMA_SP = [n for n in ATOMS if n.startswith("SM90_SPARSE_64x8x") or n.startswith("SM90_SPARSE_64x256x32_F32F16")]


@pytest.mark.sample(every=12)
@pytest.mark.parametrize("name", WGMMA_SP)
def test_warpgroup_fragments(name: str) -> None:
    # PTX ISA 9.7.15.6.2: warp w holds rows 16w to 16w + 15 of A and of the metadata, in the layout of mma.sp.
    atom = mma_atom(name)
    _, n, k = atom.shape_mnk
    bits = bits_of(atom.a)
    assert (atom.tile("A"), atom.tile("B")) == ((64, k // 2), (n, k)) and k * bits == 512
    per = 32 // bits
    a = table(atom.layout_a)
    for x in range(128):
        if atom.source_a == "smem":
            assert a[x] == list(range(64 * k // 2))
            continue
        places = [(FIRST_COLUMN[k, bits](x % 32, i), i % per) for i in range(len(a[x]))]
        assert a[x] == [row + 16 * (x // 32) + 64 * (first // 2 + place) for (row, first), place in places]
    assert all(values == list(range(n * k)) for values in table(atom.layout_b))
    dense = mma_atom(f"SM90_{name.removeprefix('SM90_SPARSE_').replace(f'x{k}_', f'x{k // 2}_')}")
    assert atom.layout_c == dense.layout_c and atom.registers_a == dense.registers_a
    assert atom.ptx_version == max(dense.ptx_version, "8.2") and atom.arch == "sm_90a"
    e = held(atom)
    for x, positions in enumerate(table(e.group_layout(64))):
        pairs = [BITS[k, bits](x % 32, j) for j in range(8)]
        assert positions == [row + 16 * (x // 32) + 64 * group for row, group in pairs]
    assert (e.selectors, dict(e.kept)) == (SELECTORS[k, bits], dict(held(mma_sp_like(k, bits)).kept))


def mma_sp_like(k: int, bits: int) -> MmaAtom:
    return next(a for a in map(mma_atom, MMA_SP) if (a.shape_mnk[2], bits_of(a.a)) == (k, bits))


@pytest.mark.parametrize(
    ("name", "operands"),
    [
        ("SM90_SPARSE_64x8x32_F32F16F16_SS_TN", "$d, $a, $b, $e, $selector, $scale_d, $scale_a, $scale_b, 0, 0;"),
        ("SM90_SPARSE_64x8x32_F32BF16BF16_RS_TT", "$d, $a, $b, $e, $selector, $scale_d, $scale_a, $scale_b, 1;"),
        ("SM90_SPARSE_64x8x16_F32TF32TF32_SS_TN", "$d, $a, $b, $e, $selector, $scale_d, $scale_a, $scale_b;"),
        ("SM90_SPARSE_64x8x64_S32S8U8_SS_TN_SATURATE", "$d, $a, $b, $e, $selector, $scale_d;"),
    ],
)
def test_warpgroup_instructions(name: str, operands: str) -> None:
    atom = mma_atom(name)
    assert atom.emit.mnemonic.startswith("wgmma.mma_async.sp.sync.aligned.m64n8k") and atom.emit.route == "asm"
    assert atom.ptx == f"{atom.emit.mnemonic} {operands}"


def test_every_dense_warpgroup_atom_has_a_sparse_one() -> None:
    dense, sparse = ([n for n in ATOMS if n.startswith(p)] for p in ("SM90_64x", "SM90_SPARSE_64x"))
    assert len(dense) == len(sparse)
    assert find_wgmma_sp(64, ("f32", "f16", "f16"), "smem", ("mn", "mn")).name == "SM90_SPARSE_64x64x32_F32F16F16_SS_NT"
    with pytest.raises(AtomError, match="expected N among"):
        find_wgmma_sp(12, ("f32", "f16", "f16"))


THEIR_SPARSE = [n for n in dir(atoms_nv) if n.startswith("SM90_64x") and n.endswith("_SS_SPARSE")]


@pytest.mark.parametrize("name", THEIR_SPARSE)
def test_layouts_of_b_and_c_match_tensor_layouts(name: str) -> None:
    """tensor-layouts describes A as if dense and has no metadata. Its B and C are the same functions as ours."""
    other = getattr(atoms_nv, name)
    _, shape, types, _, _ = name.split("_")
    ours = mma_atom(f"SM90_SPARSE_{shape}_{types}_SS_TN")
    assert ours.shape_mnk == other.shape_mnk
    same_function(ours.layout_b, other.b_layout)
    same_function(ours.layout_c, other.c_layout)


@pytest.mark.parametrize(
    ("theirs", "ours"),
    [
        ("SM120_16x8x64_F32E4M3E4M3F32_TN_SPARSE", "SM89_SPARSE_16x8x64_F32E4M3E4M3F32_TN"),
        ("SM120_16x8x128_F32E4M3E4M3F32_TN_SPARSE", "SM80_SPARSE_16x8x128_S32S4S4S32_TN"),
    ],
)
def test_layouts_match_blackwell_atoms(theirs: str, ours: str) -> None:
    """tensor-layouts describes A before compression. Our A keeps one of every two columns."""
    other, atom = getattr(atoms_nv, theirs), mma_atom(ours)
    same_function(atom.layout_b, other.b_layout)
    same_function(atom.layout_c, other.c_layout)
    for x, values in enumerate(table(atom.layout_a)):
        full = [other.a_layout(x, v) for v in range(2 * len(values))]
        assert {(p % 16, p // 16 // 2) for p in full} == {(p % 16, p // 16) for p in values}


def test_every_formula_is_used() -> None:
    used = {(a.shape_mnk[2], bits_of(a.a)) for a in map(mma_atom, MMA_SP)}
    assert used == set(FIRST_COLUMN) == set(BITS) == set(SELECTORS)
    assert len(MMA_SP) == 6 + 2 + 2 * 2 * 8 + 4


def test_instructions() -> None:
    for name, route, mnemonic, intrinsic in (
        (
            "SM80_SPARSE_16x8x32_F16F16F16F16_TN", "op",
            "mma.sp::ordered_metadata.sync.aligned.m16n8k32.row.col.f16.f16.f16.f16", "m16n8k32.row.col.f16.f16",
        ),
        (
            "SM80_SPARSE_16x8x64_S32U8S8S32_TN_SATURATE", "op",
            "mma.sp::ordered_metadata.sync.aligned.m16n8k64.row.col.satfinite.s32.u8.s8.s32",
            "m16n8k64.row.col.satfinite.u8.s8",
        ),
        (
            "SM89_SPARSE_16x8x64_F32E4M3E5M2F32_TN", "intrinsic",
            "mma.sp::ordered_metadata.sync.aligned.m16n8k64.row.col.f32.e4m3.e5m2.f32",
            "m16n8k64.row.col.f32.e4m3.e5m2.f32",
        ),
    ):  # fmt: skip
        atom = mma_atom(name)
        assert (atom.emit.route, atom.emit.mnemonic) == (route, mnemonic)
        assert atom.emit.intrinsic == f"llvm.nvvm.mma.sp.ordered.metadata.{intrinsic}"
        assert atom.ptx == f"{mnemonic} $d, $a, $b, $c, $e, $selector;"


def test_registers() -> None:
    for name, expected in {
        "SM80_SPARSE_16x8x16_F32F16F16F32_TN": ("f32 4 1", "b32 2 2", "b32 2 2", "b32 1 2"),
        "SM80_SPARSE_16x8x16_F32TF32TF32F32_TN": ("f32 4 1", "b32 4 1", "b32 4 1", "b32 1 2"),
        "SM80_SPARSE_16x8x64_S32S8S8S32_TN": ("s32 4 1", "b32 4 4", "b32 4 4", "b32 1 1"),
        "SM80_SPARSE_16x8x64_S32S4S4S32_TN": ("s32 4 1", "b32 2 8", "b32 2 8", "b32 1 1"),
    }.items():
        atom = mma_atom(name)
        assert tuple(f"{r.type} {r.count} {r.values}" for r in map(atom.registers, "DABE")) == expected, name


ATOM = mma_atom("SM80_SPARSE_16x8x32_F32F16F16F32_TN")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"group": 3}, "expected groups of 2, 4, 8, got 3"),
        ({"group": 8}, "expected the layout of E to cover 16 elements, got 32: ((2,2,8),2):((16,0,1),8)"),
        ({"selectors": 3}, "expected 1, 2 or 4 selectors, got 3"),
        ({"selectors": 4}, "expected E to be held once for each of 4 selectors, 128 in all, got 64"),
        ({"layout": Layout("((2,2,4),2):((16,0,1),8)")}, "expected 32 threads in the layout of E, got 16"),
        ({"layout": Layout("((2,2,8),2):((16,0,1),4)")}, "expected a layout without gaps or overlap for E"),
        ({"layout": Layout("64:1")}, "expected a layout (thread, value) for E, got 64:1"),
        ({"registers": Registers("b32", 2, 2, "i32")}, "expected 2 values of E per thread, got 2 registers of 2"),
        ({"element": "i8"}, "expected the layout of E to cover 64 elements, got 32"),
    ],
)
def test_metadata_checks_itself(changes: dict[str, object], message: str) -> None:
    with pytest.raises(AtomError) as error:
        replace(ATOM, metadata=replace(held(ATOM), **changes))  # type: ignore[arg-type]
    assert message in str(error.value)


def test_a_is_half() -> None:
    with pytest.raises(AtomError, match="expected the layout of A to cover 512 elements, got 256"):
        replace(ATOM, metadata=None)
    with pytest.raises(AtomError, match="expected a sparse atom, which has an operand E, got a dense one"):
        mma_atom("SM80_16x8x16_F32F16F16F32_TN").layout("E")


@pytest.mark.parametrize(
    ("search", "message"),
    [
        (
            lambda: find_mma_sp((16, 8, 8), ("f32", "f16", "f16", "f32")),
            "mma.sp has no shape 16x8x8 for D, A, B, C = f32, f16, f16, f32; shapes of these types: 16x8x16, 16x8x32",
        ),
        (lambda: find_mma_sp((16, 8, 16), ("f16", "bf16", "bf16", "f16")), "no shape has these types"),
        (lambda: find_mma_sp((16, 8, 16), ("f32", "f16", "f16", "f32"), True), "16x8x16, saturating for D"),
    ],
)
def test_unknown_atoms_are_rejected(search: Callable[[], object], message: str) -> None:
    with pytest.raises(AtomError) as error:
        search()
    assert message in str(error.value)


def test_finding() -> None:
    assert find_mma_sp((16, 8, 32), ("f32", "f16", "f16", "f32")) is ATOM
    assert find_mma_sp((16, 8, 64), ("f32", "f8E5M2", "f8E4M3FN", "f32")).arch == "sm_89"


def test_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--json", "-k", "SM80_SPARSE_16x8x32_F32F16"]) == 0
    (row,) = json.loads(capsys.readouterr().out)
    assert row["E"] == "((2,2,8),2):((16,0,1),8)" and row["A"] == "((4,8),(2,2,2)):((32,1),(16,8,128))"
    assert row["metadata"]["group_layout"] == "((2,2,8),(4,2)):((64,0,1),(16,8))"
    assert (row["metadata"]["element"], row["metadata"]["group"], row["metadata"]["selectors"]) == ("i16", 4, 2)
    assert row["metadata"]["kept"]["1101"] == [1, 3]
    assert main(["--show", "SM80_SPARSE_16x8x64_S32S8S8S32_TN"]) == 0
    lines = capsys.readouterr().out.splitlines()
    at = lines.index("E i32 (16,2)  ((2,2,8),1):((8,16,1),0)")
    assert lines[at + 3].split() == ["0", "T0V0", "T2V0"] and lines[at + 11].split() == ["8", "T1V0", "T3V0"]
