"""``cute.sparse_gemm`` of tcgen05: exact products on the CPU interpreter, faults, and the code of ptxas."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from arch_support import find_ptxas
from ops_support import type_of
from tcgen05_kernels import Gemm

from cute_dialect.algebra.evaluation import evaluate
from cute_dialect.arch.tcgen05 import find_tcgen05
from cute_dialect.arch.tcgen05_sparse import metadata_layout
from cute_dialect.interp import InterpError
from cute_dialect.pipelines import compile as compile_cute

CHECKS = ("race", "oob", "uninit", "sync", "strict")
NUMBERS = {
    "f32": np.float32,
    "tf32": np.float32,
    "f16": np.float16,
    "bf16": ml_dtypes.bfloat16,
    "i32": np.int32,
    "f8E4M3FN": ml_dtypes.float8_e4m3fn,
    "f8E5M2": ml_dtypes.float8_e5m2,
    "i8": np.int8,
    "ui8": np.uint8,
}


def sparse(rng: np.random.Generator, name: str, m: int, k: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return a random sparse matrix, its kept elements (M, K / 2), and the four bits of each group."""
    group, half = (2, 1) if name == "tf32" else (4, 2)
    chosen = np.sort(rng.random((m, k // group, group)).argsort(axis=-1)[..., :half], axis=-1)
    low = -50 if name in ("i8", "f8E4M3FN") or "f" in name else 0
    kept = rng.integers(max(low, -4) if "f" in name else low, 5 if "f" in name else 100, chosen.shape)
    whole = np.zeros((m, k // group, group), np.int64)
    np.put_along_axis(whole, chosen, kept, axis=-1)
    bits = np.where(chosen[..., 0] == 0, 0b0100, 0b1110) if half == 1 else chosen[..., 0] | chosen[..., 1] << 2
    return whole.reshape(m, k).astype(NUMBERS[name]), kept.reshape(m, k // 2).astype(NUMBERS[name]), bits


def words_of_lanes(bits: np.ndarray, halves: bool, per_instruction: int) -> np.ndarray:
    """Return the columns of tensor memory (128, columns) for the bits of 128 rows, group by group.

    ``per_instruction`` is the number of groups of a row in one instruction.
    """
    steps = bits.shape[1] // per_instruction
    columns = -(-steps * (1 if halves else 2) // 4) * 4
    out = np.full((128, columns), 0xEEEEEEEE, np.uint64)  # columns that no instruction reads
    for row in range(128):
        for step in range(steps):
            own = [int(b) for b in bits[row, step * per_instruction : (step + 1) * per_instruction]]
            number = sum(b << 4 * i for i, b in enumerate(own))
            if not halves:
                out[row, 2 * step], out[row, 2 * step + 1] = number & 0xFFFFFFFF, number >> 32
                continue
            for part in range(2):
                lane = row % 8 + 8 * part + 16 * (row // 16)
                shift = 16 * (row // 8 % 2)
                word = int(out[lane, step]) & ~(0xFFFF << shift)
                out[lane, step] = word | (number >> 16 * part & 0xFFFF) << shift
    return out.astype(np.uint32).view(np.int32)


CASES: dict[str, Gemm] = {
    name: Gemm(tuple(type_of(t) for t in types.split()), shape, sparse=True, **more)  # type: ignore[arg-type]
    for name, types, shape, more in [
        ("f16", "f32 f16 f16", (128, 64, 4), {}),
        ("one step", "f32 bf16 bf16", (128, 16, 1), {"widths": (32, 64)}),
        ("f16 to f16, three steps", "f16 f16 f16", (128, 48, 3), {"widths": (0, 0)}),
        ("two tiles", "f32 bf16 bf16", (128, 32, 3), {"tiles": (2, 2), "widths": (32, 64)}),
        ("mn-major", "f32 f16 f16", (128, 64, 2), {"majors": ("mn", "mn"), "widths": (128, 64)}),
        ("tf32", "f32 tf32 tf32", (128, 32, 4), {}),
        ("8 bits", "f32 f8E4M3FN f8E5M2", (128, 32, 4), {}),
        ("8 bits to f16, mn-major B", "f16 f8E5M2 f8E5M2", (128, 64, 2), {"majors": ("k", "mn"), "widths": (64, 64)}),
        ("integers", "i32 i8 ui8", (128, 32, 4), {}),
        ("negated", "f32 bf16 bf16", (128, 16, 2), {"negate": "A", "widths": (64, 128)}),
    ]
}


def run(gemm: Gemm, text: str = "", change: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Return D of a kernel, and the product in float64. ``change`` is added to the first word of the metadata."""
    m, n, k = gemm.extents()
    d, a, b = map(str, gemm.types)
    rng = np.random.default_rng(m + n + k)
    whole, kept, bits = sparse(rng, a, m, k)
    other = rng.integers(0 if b == "ui8" else -4, 5, (n, k)).astype(NUMBERS[b])
    halves = a in ("tf32", "f16", "bf16")
    groups = 64 // 4 if not halves else 8
    rows = [words_of_lanes(bits[128 * i : 128 * i + 128], halves, groups) for i in range(m // 128)]
    e = np.concatenate(rows, axis=1)
    e[0, 0] += change
    arrays = [np.asfortranarray(x) if major == "mn" else x for x, major in zip((kept, other), gemm.majors)]
    out = np.full((m, n), 77, NUMBERS[d])
    kernel = compile_cute(text or gemm.text(), emit="base").kernel("k")
    kernel(e, *arrays, out, grid=(1, 1, 1), block=(128, 1, 1), device="cpu", checks=CHECKS)
    wanted = whole.astype(np.float64) @ other.astype(np.float64).T
    return out.astype(np.float64), -wanted if gemm.negate else wanted


@pytest.mark.sample("one step", "tf32", "8 bits")
@pytest.mark.parametrize("case", CASES)
def test_products_are_exact(case: str) -> None:
    """The metadata of the kernel are arranged by the formula of the PTX ISA, not by the layout of the atom."""
    got, wanted = run(CASES[case])
    np.testing.assert_array_equal(got, wanted)


def test_layouts_of_metadata_place_each_row() -> None:
    for kind, types, k in (("f16", ("f32", "f16", "f16"), 32), ("tf32", ("f32", "tf32", "tf32"), 16)):
        layout = metadata_layout(find_tcgen05(kind, 1, (128, 16, k), types, form="sp"))
        for row in range(128):
            for word in range(2):
                lane, half = row % 8 + 8 * word + 16 * (row // 16), row // 8 % 2
                assert evaluate((row, word), layout) == lane * (1 << 17) + half
    layout = metadata_layout(find_tcgen05("i8", 1, (128, 16, 64), ("i32", "i8", "ui8"), form="sp"))
    assert [evaluate((r, w), layout) for r, w in ((0, 1), (5, 0), (127, 1))] == [1, 5 << 16, (127 << 16) + 1]


SMALL = CASES["one step"]


@pytest.mark.parametrize(
    ("old", "new", "change", "message"),
    [
        ("", "", -0b0100, "the metadata of row 0, group 0 of A is 0000; it must be one of 0100, 1000"),
        ("recast_iter(%e_p)", "recast_iter(%later)", 0, "reads metadata of A from tensor memory that nothing has writ"),
        ('_tuple<"16">', '_tuple<"12">', 0, "reads its metadata of A from column 12, which it overwrites"),
        ('kind = "store"', 'kind = "load"', 0, "missing tcgen05.wait::st"),
    ],
    ids=["bits", "unwritten", "overlap", "no wait"],
)
def test_faults(old: str, new: str, change: int, message: str) -> None:
    text = SMALL.text()
    if new.endswith("(%later)"):
        four, start = '!cute.int_tuple<"4">', "!cute.ptr<i32, tmem, align<16>>"
        text = text.replace(
            "%e_w =",
            f"%four = cute.static : {four}\n"
            f"%later = cute.add_offset(%w_p, %four) : ({start}, {four}) -> {start}\n%e_w =",
        )
    assert not old or old in text
    kept = sparse(np.random.default_rng(128 + 16 + 32), "bf16", 128, 32)[2][0, 0]
    with pytest.raises(InterpError, match=re.escape(message)):
        run(SMALL, text.replace(old, new) if old else text, -int(kept) if change else 0)


SYNCHRONIZATION = re.compile(
    r"arch\.(mbarrier_(wait|init)|tcgen05_(fence|commit)|tmem_(wait|dealloc|alloc)|barrier\(\)|fence_)"
)
LINES = [i for i, line in enumerate(SMALL.text().splitlines()) if SYNCHRONIZATION.search(line)]
SPARE = {LINES[1], LINES[6], LINES[-2]}
"""Fences next to allocation and deallocation, which are synchronous, and one for the barriers of other blocks."""


@pytest.mark.slow
@pytest.mark.parametrize("line", LINES)
def test_every_synchronization_is_needed(line: int) -> None:
    """This includes the wait for the stores of the metadata."""
    lines = SMALL.text().splitlines()
    text = "\n".join(lines[:line] + lines[line + 1 :])
    if line in SPARE:
        assert "fence" in lines[line]
        got, wanted = run(SMALL, text)
        np.testing.assert_array_equal(got, wanted)
        return
    with pytest.raises(InterpError):
        run(SMALL, text)


@pytest.mark.slow
@pytest.mark.skipif(find_ptxas() is None, reason="needs ptxas")
@pytest.mark.parametrize("chip", ["sm_100a", "sm_103f", "sm_110a"])
@pytest.mark.parametrize("case", ["f16", "tf32", "8 bits", "integers"])
def test_ptxas(case: str, chip: str, tmp_path: Path) -> None:
    """Each step of K is one instruction, and consecutive ones use the selectors 0 and 1 of 16-bit elements."""
    if case == "integers" and chip == "sm_103f":
        pytest.skip("sm_103 has no integers")
    gemm = CASES[case]
    (code,) = compile_cute(gemm.text(), chip=chip, emit="ptx", cache=False).artifact.code
    found = re.findall(
        r"tcgen05\.mma\.sp\.cta_group::1\.kind::(\w+)\S* \[[^]]*\], \S+, \S+, \[[^]]*\], (\S+),", code.ptx
    )
    assert len(found) == gemm.shape[2]
    words = [re.search(rf"mov.b32\s+{re.escape(r)}, (-?\d+);", code.ptx) for _, r in found]
    selectors = [int(w[1]) & 3 for w in words if w is not None]
    assert selectors == ([0, 1] * 2 if case in ("f16", "tf32") else [0] * 4)
    (tmp_path / "k.ptx").write_text(code.ptx)
    ptxas = find_ptxas()
    assert ptxas is not None
    subprocess.run([ptxas, f"-arch={chip}", str(tmp_path / "k.ptx"), "-o", str(tmp_path / "k.cubin")], check=True)


def test_rows_with_block_scales() -> None:
    """A factor covers twice as many elements along K as for a dense A, and E has a word for 64 of them."""
    for kind, k, vectors in (("mxf8f6f4", 64, (32,)), ("mxf4", 128, (32,)), ("mxf4nvf4", 128, (16, 32))):
        a = "f8E5M2" if k == 64 else "f4E2M1FN"
        for vec in vectors:
            for group in (1, 2):
                shape, types = (128 * group, 64, k), ("f32", a, a)
                atom = find_tcgen05(kind, group, shape, types, form="sp", factor=("f8E8M0FNU", vec))
                assert atom.tile("SFA") == (128 * group, k // 2 // vec) and atom.tile("E") == (128 * group, 2)
                assert (
                    atom.name.replace("2SM_", "").startswith(f"SM100_SPARSE_{kind.upper()}_")
                    and f"_VS{vec}_" in atom.name
                )


# --------------------------------------------------------------------------------------------------------- block scales

E2M1 = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6])
E2M1 = np.concatenate([E2M1, -E2M1])
SCALED = {
    "mxf8f6f4": ("f8E4M3FN", "f8E8M0FNU", 32),
    "mxf4": ("f4E2M1FN", "f8E8M0FNU", 32),
    "mxf4nvf4": ("f4E2M1FN", "ue4m3", 16),
}


def factor_words(factors: np.ndarray, columns: int) -> np.ndarray:
    """Return the columns of tensor memory that hold factors (rows, along K): a copy in each quarter of the lanes."""
    out = np.zeros((128, columns, 4), np.uint8)
    for row in range(factors.shape[0]):
        for s in range(factors.shape[1]):
            for quarter in range(4):
                out[row % 32 + 32 * quarter, s // 4 * 4 + row // 32, s % 4] = factors[row, s]
    return out.reshape(128, -1).view(np.int32)


def scaled_operands(
    rng: np.random.Generator, kind: str, k: int
) -> tuple[list[np.ndarray], np.ndarray, list[np.ndarray]]:
    """Return kept A (128 rows) and B (64) as in shared memory, the words of tensor memory, and the scaled matrices."""
    a, sf, vec = SCALED[kind]
    is_packed = a == "f4E2M1FN"
    group, size = (8, 2) if is_packed else (4, 1)
    chosen = np.sort(rng.random((128, k // group, 4)).argsort(axis=-1)[..., :2], axis=-1)
    codes = rng.integers(0, 16, (128, k // group, 2, size))
    if not is_packed:
        codes = (codes - 8) / 2
    values = E2M1[codes] if is_packed else codes
    whole = np.zeros((128, k // group, 4, size))
    np.put_along_axis(whole, chosen[..., None], values, axis=2)
    whole = whole.reshape(128, k)
    other = rng.integers(0, 16, (64, k))
    if is_packed:
        kept = codes.reshape(128, -1, 2).astype(np.uint8)
        held = [(x[..., 0] | x[..., 1] << 4).view(np.int8) for x in (kept, other.reshape(64, -1, 2).astype(np.uint8))]
        wide = E2M1[other]
    else:
        wide = other - 8.0
        held = [x.reshape(len(x), -1).astype(ml_dtypes.float8_e4m3fn) for x in (values, wide)]
    kinds = {"f8E8M0FNU": ml_dtypes.float8_e8m0fnu, "ue4m3": ml_dtypes.float8_e4m3fn}
    factors = [np.exp2(rng.integers(-2, 3, (rows, k // vec // 2))).astype(kinds[sf]) for rows in (128, 64)]
    bits = chosen[..., 0] | chosen[..., 1] << 2
    columns = -(-factors[0].shape[1] // 4) * 4
    words = [words_of_lanes(bits, False, 16), *(factor_words(f.view(np.uint8), columns) for f in factors)]
    scaled = [x * f.astype(float).repeat(2 * vec, axis=1) for x, f in zip((whole, wide), factors)]
    return held, np.concatenate(words, axis=1), scaled


@pytest.mark.sample("mxf4nvf4")
@pytest.mark.parametrize("kind", SCALED)
def test_products_with_block_scales_are_exact(kind: str) -> None:
    """A factor scales twice as many elements along K as for a dense A."""
    a, sf, vec = SCALED[kind]
    gemm = Gemm((type_of("f32"), type_of(a), type_of(a)), (128, 64, 4), sparse=True, scales=(kind, sf, vec))
    _, _, k = gemm.extents()
    (kept, other), words, (wide_a, wide_b) = scaled_operands(np.random.default_rng(k), kind, k)
    out = np.full((128, 64), np.nan, np.float32)
    kernel = compile_cute(gemm.text(), emit="base").kernel("k")
    kernel(words, kept, other, out, grid=(1, 1, 1), block=(128, 1, 1), device="cpu", checks=CHECKS)
    np.testing.assert_array_equal(out, wide_a @ wide_b.T)


@pytest.mark.slow
@pytest.mark.skipif(find_ptxas() is None, reason="needs ptxas")
@pytest.mark.parametrize("chip", ["sm_100a", "sm_103a", "sm_110a"])
@pytest.mark.parametrize("kind", SCALED)
def test_ptxas_of_block_scales(kind: str, chip: str, tmp_path: Path) -> None:
    a, sf, vec = SCALED[kind]
    gemm = Gemm((type_of("f32"), type_of(a), type_of(a)), (128, 64, 4), sparse=True, scales=(kind, sf, vec))
    (code,) = compile_cute(gemm.text(), chip=chip, emit="ptx", cache=False).artifact.code
    assert len(re.findall(rf"tcgen05\.mma\.sp\S*kind::{kind}\.block_scale\.block{vec}", code.ptx)) == 4
    (tmp_path / "k.ptx").write_text(code.ptx)
    ptxas = find_ptxas()
    assert ptxas is not None
    subprocess.run([ptxas, f"-arch={chip}", str(tmp_path / "k.ptx"), "-o", str(tmp_path / "k.cubin")], check=True)
