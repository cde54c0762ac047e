"""``cute.gemm`` with MMAs that keep B in a buffer (``.ws``): exact products, uses of the buffers, and ptxas."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import numpy as np
import pytest
from arch_support import find_ptxas
from ops_support import type_of
from tcgen05_kernels import Gemm

from cute_dialect.algebra.evaluation import evaluate
from cute_dialect.arch.tcgen05 import find_tcgen05
from cute_dialect.arch.tcgen05_kinds import FORMS, kind_of, shapes_of
from cute_dialect.arch.tcgen05_ws import ZeroColumns, accumulator_layout
from cute_dialect.interp import InterpError
from cute_dialect.pipelines import compile as compile_cute

CHECKS = ("race", "oob", "uninit", "sync", "strict")
NUMBERS = {"f32": np.float32, "tf32": np.float32, "f16": np.float16, "i32": np.int32, "i8": np.int8, "ui8": np.uint8}

CASES: dict[str, Gemm] = {
    name: Gemm(tuple(type_of(t) for t in types.split()), shape, ws=True, **more)  # type: ignore[arg-type]
    for name, types, shape, more in [
        ("32 rows", "f32 f16 f16", (32, 64, 4), {}),
        ("64 rows", "f32 tf32 tf32", (64, 128, 3), {"widths": (32, 32)}),
        ("128 rows", "f16 f16 f16", (128, 64, 2), {"widths": (64, 64)}),
        ("32 x 256", "i32 i8 ui8", (32, 256, 2), {"widths": (64, 64)}),
        ("mn-major", "f32 f16 f16", (64, 64, 2), {"majors": ("mn", "mn"), "widths": (128, 128)}),
        ("two tiles", "f32 f16 f16", (64, 64, 2), {"tiles": (2, 1), "widths": (64, 64)}),
    ]
}


def run(gemm: Gemm, text: str = "") -> tuple[np.ndarray, np.ndarray]:
    """Return D of a kernel, and the product in float64."""
    m, n, k = gemm.extents()
    d, a, b = map(str, gemm.types)
    rng = np.random.default_rng(m + n + k)
    given = [rng.integers(0 if t == "ui8" else -4, 5, (rows, k)).astype(NUMBERS[t]) for t, rows in ((a, m), (b, n))]
    arrays = [np.asfortranarray(x) if major == "mn" else x for x, major in zip(given, gemm.majors)]
    out = np.full((m, n), 77, NUMBERS[d])
    kernel = compile_cute(text or gemm.text(), emit="base").kernel("k")
    kernel(*arrays, out, grid=(1, 1, 1), block=(128, 1, 1), device="cpu", checks=CHECKS)
    return out.astype(np.float64), given[0].astype(np.float64) @ given[1].astype(np.float64).T


@pytest.mark.sample("32 rows", "two tiles")
@pytest.mark.parametrize("case", CASES)
def test_products_are_exact(case: str) -> None:
    got, wanted = run(CASES[case])
    np.testing.assert_array_equal(got, wanted)


def test_accumulators() -> None:
    """The columns are divided among 128 / M groups of lanes, and the accumulator has N * M / 128 columns."""
    allowed = shapes_of(FORMS["ws"], kind_of("f16"), 1, "smem")
    assert (allowed.rows, allowed.extents) == ((32, 64, 128), (64, 128, 256))
    for m in allowed.rows:
        for n in allowed.extents:
            layout = accumulator_layout(find_tcgen05("f16", 1, (m, n, 16), ("f32", "f16", "f16"), form="ws"))
            width = n * m // 128
            for row, column in ((0, 0), (m - 1, n - 1), (5, n // 2), (m // 2, width - 1)):
                lane = row + m * (column // width)
                assert evaluate((row, column), layout) == lane + 128 * (column % width)


def with_ops(gemm: Gemm, uses: list[tuple[str, int]], mask: int | None = None) -> str:
    """Return the kernel with its MMAs as ops, with the use and the number of the buffer of each, and a mask."""
    m, n, _ = gemm.shape
    atom, lines = gemm.atom, list[str]()
    text = gemm.text()
    (found,) = re.findall(r"  cute\.gemm\(.*\n", text)
    d = f'!cute.memref<f32, tmem, align<128>, "({m},({n * m // 128},{128 // m})):(65536,(1,{m * 65536}))">'
    shapes = {x: f'!cute.memref<f16, smem, align<1024>, S<3,4,3>, "({r},16):(64,1)">' for x, r in (("A", m), ("B", n))}
    lines.append(f'%lacc = cute.static : !cute.layout<"({m},({n * m // 128},{128 // m})):(65536,(1,{m * 65536}))">')
    lines.append(f"%dd = cute.make_view(%pd, %lacc) : {d}")
    for x, t in shapes.items():
        lines.append(f'%l{x} = cute.static : !cute.layout<"({m if x == "A" else n},16):(64,1)">')
        lines.append(f"%i{x} = cute.get_iter(%s{x}) : {gemm._smem(x)}")
        lines.append(f"%v{x}0 = cute.make_view(%i{x}, %l{x}) : {t}")
    if mask is not None:
        lines.append(f"%mask = arith.constant {mask} : i64")
    last, of = (", %mask", ", i64") if mask is not None else ("", "")
    for i, (use, buffer) in enumerate(uses):
        lines.append(
            f"cute_nvgpu.arch.tcgen05_mma_ws(%dd, %vA0, %vB0{last}) {{accumulate = {str(i > 0).lower()}, "
            f'buffer = {buffer} : i32, collector = "{use}", atom = {atom}}} : '
            f"({d}, {shapes['A']}, {shapes['B']}{of}) -> ()"
        )
    return text.replace(found, "\n".join(lines) + "\n")


ONE = Gemm((type_of("f32"), type_of("f16"), type_of("f16")), (32, 64, 4), ws=True)


def partial_product(times: int) -> np.ndarray:
    """Return the sum of ``times`` products of the first 16 columns."""
    rng = np.random.default_rng(32 + 64 + 64)
    a, b = (rng.integers(-4, 5, (rows, 64)).astype(float)[:, :16] for rows in (32, 64))
    return times * (a @ b.T)


def test_buffers_hold_b() -> None:
    """A buffer may be used after it is filled, until the last use."""
    uses = [("fill", 0), ("fill", 3), ("use", 0), ("lastuse", 3), ("lastuse", 0), ("discard", 2)]
    got, _ = run(ONE, with_ops(ONE, uses, mask=0))
    np.testing.assert_array_equal(got, partial_product(len(uses)))


def spans(mask: list[bool]) -> str:
    """Return a mask as the PTX ISA writes it, the last column first."""
    return "".join([str(int(x)) for x in reversed(mask)])


def test_zero_columns_of_the_ptx_isa() -> None:
    """The examples of PTX ISA, "Zero-Column Mask Descriptor"."""
    assert ZeroColumns.of(ZeroColumns(5, 4).bits & ~(1 << 39)) is None
    assert spans(ZeroColumns(3, 4).mask(128, 14)) == "11100001110000"
    two = ZeroColumns(3, 4, (True, False)).mask(64, 34)
    assert spans(two[:17]) == "11100001110000111" and spans(two[17:]) == "00011100001110000"
    four = ZeroColumns(3, 4, (True, True, False, False), (0, 1, 2, 1), 2).mask(32, 48)
    ends = ("00001110000111", "0000111000011", "111000011100", "1110000111000")
    for i, end in enumerate(ends):
        assert end.endswith(spans(four[12 * i : 12 * i + 12]))


@pytest.mark.parametrize(
    "columns",
    [
        ZeroColumns(3, 4, (True, False, True, False), (0, 1, 2, 3)),
        pytest.param(ZeroColumns(1, 1), marks=pytest.mark.slow),
        pytest.param(ZeroColumns(256, 256, (True, False, True, True)), marks=pytest.mark.slow),
    ],
)
def test_zero_columns(columns: ZeroColumns) -> None:
    """Columns of zeros do not contribute; those after them do."""
    got, _ = run(ONE, with_ops(ONE, [("fill", 0), ("lastuse", 0)], mask=columns.bits))
    np.testing.assert_array_equal(got, np.where(np.array(columns.mask(32, 64)), 0, partial_product(2)))


@pytest.mark.parametrize(
    ("uses", "mask", "message"),
    [
        ([("use", 1)], None, "collector::b1::use, but no earlier MMA with collector::b1::fill has left the same B, N"),
        ([("fill", 0), ("lastuse", 0), ("use", 0)], None, "collector::b0::use, but no earlier MMA"),
        ([("fill", 0), ("discard", 0), ("lastuse", 0)], None, "collector::b0::lastuse, but no earlier MMA"),
        (
            [("discard", 0)],
            ZeroColumns(1, 1, shift=2).bits,
            "with the zero-column mask 0x200008000000000, which shifts B by 2 columns, is not supported",
        ),
    ],
)
def test_faults(uses: list[tuple[str, int]], mask: int | None, message: str) -> None:
    with pytest.raises(InterpError, match=re.escape(message)):
        run(ONE, with_ops(ONE, uses, mask))


@pytest.mark.slow
@pytest.mark.skipif(find_ptxas() is None, reason="needs ptxas")
@pytest.mark.parametrize("chip", ["sm_100a", "sm_103f", "sm_110a"])
def test_ptxas(chip: str, tmp_path: Path) -> None:
    text = with_ops(ONE, [("fill", 1), ("use", 1), ("lastuse", 1), ("discard", 0)], mask=1 << 39)
    (code,) = compile_cute(text, chip=chip, emit="ptx", cache=False).artifact.code
    found = re.findall(r"tcgen05\.mma\.ws\.cta_group::1\.kind::f16\.collector::(\S+) .*, %rd\d+;", code.ptx)
    assert found == ["b1::fill", "b1::use", "b1::lastuse", "b0::discard"]
    (tmp_path / "k.ptx").write_text(code.ptx)
    ptxas = find_ptxas()
    assert ptxas is not None
    subprocess.run([ptxas, f"-arch={chip}", str(tmp_path / "k.ptx"), "-o", str(tmp_path / "k.cubin")], check=True)
