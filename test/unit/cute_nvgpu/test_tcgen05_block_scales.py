"""``tcgen05_scaled_mma`` and ``tmem_copy``: MXFP8, MXFP4 and NVFP4 on the CPU interpreter and in ptxas."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np
import pytest
from arch_support import find_ptxas

from cute_dialect.arch.tcgen05 import find_tcgen05
from cute_dialect.arch.tcgen05_kinds import SCALED_KINDS
from cute_dialect.interp import InterpError
from cute_dialect.pipelines import compile as compile_cute

EXAMPLE = Path(__file__).parents[2] / "examples" / "tile_sm100_mxf8.mlir"
CHECKS = ("race", "uninit", "sync", "oob", "strict")
M, N, STEP = 128, 32, 128  # rows of A and of B, and bytes of K in a stage
E2M1 = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6])
E2M1 = np.concatenate([E2M1, -E2M1])


class Format(NamedTuple):
    """A kind of MMA: K elements per byte, the type of the factors, and K elements per factor."""

    kind: str
    packed: int
    factor: Any
    vector: int

    @property
    def blocks(self) -> int:
        """Blocks of 512 bytes of factors in a stage."""
        return STEP * self.packed // self.vector // 4


E8M0, E4M3 = ml_dtypes.float8_e8m0fnu, ml_dtypes.float8_e4m3fn
FORMATS = [Format("mxf8f6f4", 1, E8M0, 32), Format("mxf4", 2, E8M0, 32), Format("mxf4nvf4", 2, E4M3, 16),
           Format("mxf4nvf4", 2, E8M0, 16)]  # fmt: skip


def program(f: Format) -> str:
    """Return the example with the MMAs of a format."""
    text = EXAMPLE.read_text()
    if f.packed == 1:
        return text
    sf = "ue4m3" if f.factor is E4M3 else "f8E8M0FNU"
    text = re.sub(r"!mma_atom = .*", "!mma_atom = ATOM", text).replace("f8E4M3FN", "i8")
    text = text.replace(
        "= ATOM", f"= !cute_nvgpu.atom.tcgen05_mma<128x32x64, (f32,f4E2M1FN,f4E2M1FN,f32), A = smem, major = (k, k), "
        f"kind = {f.kind}, sf = {sf}, vec = {f.vector}>",
    )  # fmt: skip
    text = text.replace('"512:1"', f'"{512 * f.blocks}:1"').replace(
        "%c512 = arith.constant 512", f"%c512 = arith.constant {512 * f.blocks}"
    )
    text = text.replace("constant 21504", f"constant {20480 + 1024 * f.blocks}").replace('<"4">', '<"16">')
    more = list[str]()
    for x in "ab":
        pointer, start = ("!tmem" if x == "a" else "!columns"), f"%sf{x}_columns"
        for i in range(f.blocks):
            more += [
                f'%d{x}{i} = cute.static : !cute.int_tuple<"{4 * i}">',
                f'%e{x}{i} = cute.static : !cute.int_tuple<"{512 * i}">',
                f'%t{x}{i} = cute.add_offset({start}, %d{x}{i}) : ({pointer}, !cute.int_tuple<"{4 * i}">) -> '
                f"{pointer if i == 0 else '!columns'}",
                f'%m{x}{i} = cute.add_offset(%pf{x}, %e{x}{i}) : (!bytes, !cute.int_tuple<"{512 * i}">) -> !bytes',
            ]  # fmt: skip
    text = text.replace("        %bytes = arith.constant", "\n".join(more) + "\n        %bytes = arith.constant")

    def kind_of(x: str, i: int) -> str:
        return "!tmem" if (x, i) == ("a", 0) else "!columns"

    copies = [
        f"cute_nvgpu.arch.tmem_copy(%t{x}{i}, %m{x}{i}) : ({kind_of(x, i)}, !bytes) -> ()"
        for x in "ab" for i in range(f.blocks)
    ]  # fmt: skip
    text = re.sub(r"( *cute_nvgpu\.arch\.tmem_copy\(.*\n)+", "\n".join(copies) + "\n", text)
    each = 64 // f.vector
    for step in range(4):
        block, first = divmod(step * each, 4)
        text = re.sub(
            rf"(scaled_mma\(%acc, %va{step}, %vb{step}, )%sfa_columns, %sfb_columns(.*)sf_a = \d : i32, sf_b = \d : i32"
            r"(.*)!tmem, !columns",
            rf"\1%ta{block}, %tb{block}\2sf_a = {first} : i32, sf_b = {first} : i32\3{kind_of('a', block)}, !columns",
            text,
        )
    return text


def operand(rng: np.random.Generator, f: Format, rows: int, k: int) -> tuple[Any, Any, Any]:
    """Return a matrix, its factors in blocks of 128 x 4, and the scaled values."""
    if f.packed == 1:
        x = rng.integers(-4, 5, (rows, k)).astype(ml_dtypes.float8_e4m3fn)
        values = x.astype(np.float64)
    else:
        codes = rng.integers(0, 256, (rows, k // 2)).astype(np.uint8)
        x, values = codes.view(np.int8), E2M1[np.stack([codes & 15, codes >> 4], -1)].reshape(rows, k)
    factors = np.exp2(rng.integers(-2, 3, (rows, k // f.vector))).astype(f.factor)
    r, s = np.indices(factors.shape)
    held = np.full(k // f.vector // 4 * 512, 0x7F, np.uint8)
    held[s // 4 * 512 + 16 * (r % 32) + 4 * (r // 32) + s % 4] = factors.view(np.uint8)
    return x, held.view(np.int8), values * factors.astype(np.float64).repeat(f.vector, 1)


def run(text: str, f: Format, schedule: str = "round-robin") -> tuple[Any, Any]:
    rng, k = np.random.default_rng(0), 3 * STEP * f.packed
    (a, sa, wa), (b, sb, wb) = (operand(rng, f, rows, k) for rows in (M, N))
    c = np.full((M, N), np.nan, np.float32)
    compile_cute(text, emit="base").kernel("launch")(a, b, sa, sb, c, device="cpu", checks=CHECKS, schedule=schedule)
    return c, wa @ wb.T


@pytest.mark.end_to_end
@pytest.mark.sample("mxf4nvf4-16-adversarial")
@pytest.mark.parametrize("schedule", ["round-robin", "reverse", "adversarial", "random"])
@pytest.mark.parametrize(
    "f", FORMATS, ids=lambda f: f"{f.kind}-{f.vector}{'-e8m0' * (f.packed == 2 and f.factor is E8M0)}"
)
def test_products_are_exact(f: Format, schedule: str) -> None:
    c, wanted = run(program(f), f, schedule)
    assert np.array_equal(c, wanted)


@pytest.mark.slow
@pytest.mark.skipif(find_ptxas() is None, reason="needs ptxas")
@pytest.mark.parametrize("chip", ["sm_100a", "sm_100f", "sm_103a", "sm_110a"])
@pytest.mark.parametrize("f", FORMATS, ids=lambda f: f"{f.kind}-{f.vector}-{f.factor.__name__}")
def test_ptxas(f: Format, chip: str, tmp_path: Path) -> None:
    (code,) = compile_cute(program(f), chip=chip, emit="ptx", cache=False).artifact.code
    assert len(re.findall(rf"tcgen05\.mma\S*kind::{f.kind}\.block_scale", code.ptx)) == 4
    assert len(re.findall(r"tcgen05\.cp\.cta_group::1\.32x128b\.warpx4", code.ptx)) == 2 * f.blocks
    (tmp_path / "k.ptx").write_text(code.ptx)
    ptxas = find_ptxas()
    assert ptxas is not None
    command = [ptxas, f"-arch={chip}", "-v", str(tmp_path / "k.ptx"), "-o", str(tmp_path / "k.cubin")]
    report = subprocess.run(command, capture_output=True, text=True, check=True).stderr
    assert "0 bytes spill stores, 0 bytes spill loads" in report


SYNCHRONIZATION = re.compile(
    r"arch\.(mbarrier_(wait|init|arrive_expect_tx)|tcgen05_(fence|commit)|tmem_(copy|wait|dealloc|alloc)|barrier\(\)|fence_)"
)
LINES = [i for i, line in enumerate(EXAMPLE.read_text().splitlines()) if SYNCHRONIZATION.search(line)]


@pytest.mark.slow
@pytest.mark.parametrize("line", LINES)
def test_every_synchronization_is_needed(line: int) -> None:
    lines = EXAMPLE.read_text().splitlines()
    with pytest.raises(InterpError):
        run("\n".join(lines[:line] + lines[line + 1 :]), FORMATS[0])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("sf_a = 2 : i32", "sf_a = 1 : i32"), ("sf_b = 3 : i32", "sf_b = 0 : i32"),
        ("tmem_copy(%sfb_columns, %pfb)", "tmem_copy(%sfb_columns, %pfa)"),
        ("%bytes = arith.constant 21504", "%bytes = arith.constant 20480"),
        ("%sfb_columns, %accumulates", "%sfa_columns, %accumulates"),
    ],
    ids=range(5),
)  # fmt: skip
def test_mutants(old: str, new: str) -> None:
    text = EXAMPLE.read_text()
    assert old in text
    changed = text.replace(old, new, 1).replace(
        "!va0, !vb0, !tmem, !columns, i1",
        "!va0, !vb0, !tmem, !tmem, i1" if "accumulates" in new else "!va0, !vb0, !tmem, !columns, i1",
    )
    try:
        c, wanted = run(changed, FORMATS[0])
    except InterpError:
        return
    assert not np.array_equal(c, wanted)


def test_atoms_of_each_kind() -> None:
    """The factors of A and B cover their rows."""
    for kind in SCALED_KINDS:
        for factor in kind.factors:
            for group, m in ((1, 128), (2, 128), (2, 256)):
                types = ("f32", kind.elements[0], kind.elements[-1])
                atom = find_tcgen05(kind.name, group, (m, 64, kind.depth), types, factor=factor)
                assert atom.tile("SFA") == (m, kind.depth // factor[1]) and atom.tile("SFB")[0] == 64
                assert atom.name.startswith(f"SM100_{kind.name.upper()}_") and f"_VS{factor[1]}_" in atom.name
