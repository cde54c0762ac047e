"""MMAs of 4-bit floats with K of 96 (sm_103): exact products, factors in two columns, and the code of ptxas."""

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
from test_tcgen05_sparse import E2M1, SCALED, factor_words

from cute_dialect.algebra.compose import compose
from cute_dialect.algebra.evaluation import evaluate
from cute_dialect.algebra.text import to_text
from cute_dialect.algebra.values import Layout
from cute_dialect.arch.tcgen05 import find_tcgen05
from cute_dialect.interp import InterpError
from cute_dialect.pipelines import compile as compile_cute

CHECKS = ("race", "oob", "uninit", "sync", "strict")
KINDS = ("mxf4", "mxf4nvf4")
K = 192
"""Two instructions."""


def gemm_of(kind: str, n: int) -> Gemm:
    a, sf, vec = SCALED[kind]
    return Gemm((type_of("f32"), type_of(a), type_of(a)), (128, n, 3), widths=(0, 0), scales=(kind, sf, vec))


def text_of(kind: str, n: int, *, second: int | None = None, later: int = 0) -> str:
    """Return a kernel of two MMAs with K of 96.

    ``second`` replaces the first byte of the factors of the second, and ``later`` moves its SFA by columns.
    """
    gemm = gemm_of(kind, n)
    _, sf, vec = SCALED[kind]
    atom = (
        f"!cute_nvgpu.atom.tcgen05_mma<128x{n}x96, (f32,f4E2M1FN,f4E2M1FN,f32), A = smem, major = (k, k), "
        f"kind = {kind}, sf = {sf}, vec = {vec}>"
    )
    d = f'!cute.memref<f32, tmem, align<128>, "(128,{n}):(65536,1)">'
    lines = [f'%l96 = cute.static : !cute.layout<"(128,{n}):(65536,1)">', f"%d96 = cute.make_view(%pd, %l96) : {d}"]
    types: dict[str, str] = {}
    for x, rows in (("A", 128), ("B", n)):
        smem = gemm._smem(x)
        assert isinstance(smem.layout, Layout)
        tile = compose(smem.layout, Layout((rows, 48), (1, rows)))
        pointer = "!cute.ptr<i8, smem, align<1024>>"
        types[x] = f'!cute.memref<i8, smem, align<16>, "{to_text(tile)}">'
        lines.append(f"%i{x} = cute.get_iter(%s{x}) : {smem}")
        lines.append(f'%t{x}l = cute.static : !cute.layout<"{to_text(tile)}">')
        for i in range(2):
            moved = pointer if i == 0 else "!cute.ptr<i8, smem, align<16>>"
            lines += moved_pointer(f"%{x}p{i}", f"%i{x}", pointer, evaluate((0, 48 * i), smem.layout), moved)
            lines.append(f"%{x}q{i} = cute.recast_iter(%{x}p{i}) : {moved} to !cute.ptr<i8, smem, align<16>>")
            lines.append(f"%{x}v{i} = cute.make_view(%{x}q{i}, %t{x}l) : {types[x]}")
    start = "!cute.ptr<i32, tmem, align<16>>"
    for i in range(2):
        word, first = divmod(i * 96 // vec, 4)
        for x, group in (("sfa", 4), ("sfb", 4 * -(-n // 128))):
            step = group * word + (later if (x, i) == ("sfa", 1) else 0)
            lines += moved_pointer(f"%{x}c{i}", f"%{x}_p", start, step, start)
        first = first if second is None or i == 0 else second
        lines.append(
            f"cute_nvgpu.arch.tcgen05_scaled_mma(%d96, %Av{i}, %Bv{i}, %sfac{i}, %sfbc{i}) {{accumulate = "
            f"{str(i > 0).lower()}, sf_a = {first} : i32, sf_b = {first} : i32, atom = {atom}}} : "
            f"({d}, {types['A']}, {types['B']}, {start}, {start}) -> ()"
        )
    return re.sub(r"  %atom = (.|\n)*?cute\.scaled_gemm\(.*\n", lambda _: "\n".join(lines) + "\n", gemm.text())


def moved_pointer(name: str, pointer: str, t: str, offset: object, moved: str) -> list[str]:
    """Return the addition of a static offset to a pointer."""
    tuple_type = f'!cute.int_tuple<"{offset}">'
    return [
        f"{name}_by = cute.static : {tuple_type}",
        f"{name} = cute.add_offset({pointer}, {name}_by) : ({t}, {tuple_type}) -> {moved}",
    ]


def operands(kind: str, n: int) -> tuple[list[np.ndarray], np.ndarray]:
    """Return the words of tensor memory, A and B, and the product in float64."""
    _, sf, vec = SCALED[kind]
    rng = np.random.default_rng(n)
    codes = [rng.integers(0, 16, (rows, K)).astype(np.uint8) for rows in (128, n)]
    held = [(x[:, ::2] | x[:, 1::2] << 4).view(np.int8) for x in codes]
    number = ml_dtypes.float8_e4m3fn if sf == "ue4m3" else ml_dtypes.float8_e8m0fnu
    factors = [np.exp2(rng.integers(-2, 3, (rows, K // vec))).astype(number) for rows in (128, n)]
    columns = gemm_of(kind, n).factor_columns
    words = [factor_words(f.view(np.uint8), columns) for f in factors]
    wide = [E2M1[x] * f.astype(float).repeat(vec, axis=1) for x, f in zip(codes, factors)]
    return [np.concatenate(words, axis=1), *held], wide[0] @ wide[1].T


def run(text: str, arrays: list[np.ndarray], n: int) -> np.ndarray:
    out = np.full((128, n), np.nan, np.float32)
    kernel = compile_cute(text, emit="base").kernel("k")
    kernel(*arrays, out, grid=(1, 1, 1), block=(128, 1, 1), device="cpu", checks=CHECKS)
    return out


@pytest.mark.sample("mxf4nvf4")
@pytest.mark.parametrize("kind", KINDS)
def test_products_are_exact(kind: str) -> None:
    """The factors of the second instruction begin in the first or second column of a row, and end in the next one."""
    arrays, wanted = operands(kind, 64)
    np.testing.assert_array_equal(run(text_of(kind, 64), arrays, 64), wanted)


def test_other_factors_change_the_result() -> None:
    arrays, wanted = operands("mxf4", 64)
    assert not np.array_equal(run(text_of("mxf4", 64, second=1), arrays, 64), wanted)


def test_factors_beyond_the_written_columns_are_reported() -> None:
    arrays, _ = operands("mxf4nvf4", 64)
    with pytest.raises(InterpError, match="reads a scale factor of A from tensor memory that nothing has written"):
        run(text_of("mxf4nvf4", 64, later=16), arrays, 64)


def test_rows() -> None:
    for kind in KINDS:
        _, sf, vec = SCALED[kind]
        for group in (1, 2):
            types = ("f32", "f4E2M1FN", "f4E2M1FN")
            atom = find_tcgen05(kind, group, (128 * group, 64, 96), types, factor=(sf, vec))
            assert atom.arch == "sm_103a" and atom.name.startswith(f"SM103_{kind.upper()}_")
            assert atom.tile("SFA") == (128 * group, 96 // vec)


@pytest.mark.slow
@pytest.mark.skipif(find_ptxas() is None, reason="needs ptxas")
@pytest.mark.parametrize("kind", KINDS)
def test_ptxas(kind: str, tmp_path: Path) -> None:
    (code,) = compile_cute(text_of(kind, 64), chip="sm_103a", emit="ptx", cache=False).artifact.code
    assert len(re.findall(rf"tcgen05\.mma\.cta_group::1\.kind::{kind}\.block_scale", code.ptx)) == 2
    (tmp_path / "k.ptx").write_text(code.ptx)
    ptxas = find_ptxas()
    assert ptxas is not None
    subprocess.run([ptxas, "-arch=sm_103a", str(tmp_path / "k.ptx"), "-o", str(tmp_path / "k.cubin")], check=True)
