"""``op.ScaledGemm`` with block scales on sm_100: bitwise equal to float64 on the interpreter, choices and errors."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import ml_dtypes
import numpy as np
import pytest

from cute_dialect import op
from cute_dialect.op.execute import kernel_cache
from cute_dialect.op.functions import block_scaled
from cute_dialect.op.select.backends import SM100
from cute_dialect.runtime import driver as cuda

CHECKS: dict[str, Any] = {"device": "cpu", "checks": ("race", "uninit", "oob", "sync", "strict")}
E4, E5, E8 = ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2, ml_dtypes.float8_e8m0fnu
E2M1 = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6])
E2M1 = np.concatenate([E2M1, -E2M1])
FORMATS: dict[str, tuple[Any, Any, int]] = {
    "e4m3": (E4, E8, 32), "e5m2": (E5, E8, 32), "mxf4": (np.uint8, E8, 32), "nvf4": (np.uint8, E4, 16),
}  # fmt: skip
"""Format -> types of a matrix and of its scales, and the width of a block."""


def operand(rng: np.random.Generator, kind: str, rows: int, k: int) -> tuple[Any, Any, Any]:
    """Return a matrix whose rows are 16-byte aligned, its scales, and the scaled values."""
    element, scale, width = FORMATS[kind]
    size = k // 2 if element is np.uint8 else k
    x = np.zeros((rows, -(-size // 16) * 16), element)[:, :size]
    if element is np.uint8:
        x[:] = rng.integers(0, 256, x.shape)
        values = E2M1[np.stack([x & 15, x >> 4], -1)].reshape(rows, k)
    else:
        x[:] = rng.integers(-4, 5, x.shape)
        values = x.astype(np.float64)
    scales = np.exp2(rng.integers(-2, 3, (rows, -(-k // width)))).astype(scale)
    return x, scales, values * scales.astype(np.float64).repeat(width, 1)[:, :k]


def plan_of(kinds: tuple[str, str], **more: Any) -> op.ScaledGemm:
    """Return the plan of two formats."""
    elements = [{"e4m3": "f8E4M3FN", "e5m2": "f8E5M2"}.get(kind, "float4_e2m1fn_x2") for kind in kinds]
    recipe = f"block1x{FORMATS[kinds[0]][2]}"
    more = {"kernel_cc": 100, "element_D": "f32", **more}
    return op.ScaledGemm(element_A=elements[0], element_B=elements[1], recipe=recipe, **more)


@pytest.mark.end_to_end
def test_two_levels_of_nvfp4() -> None:
    """Scales of blocks, factors of the matrices, a bias and a factor of the result."""
    rng, (m, n, k) = np.random.default_rng(0), (24, 40, 128)
    (a, sa, wa), (b, sb, wb) = (operand(rng, "nvf4", rows, k) for rows in (m, n))
    bias, of_a, of_b = rng.integers(-3, 4, n).astype(np.float32), np.float32([0.5]), np.float32([4])
    given = a, b.T, (op.scale_blocks(sa), of_a), (op.scale_blocks(sb), of_b)
    plan = plan_of(("nvf4", "nvf4"))
    found = plan.run(*given, bias=bias, scale_out=np.float32([0.25]), **CHECKS)
    assert np.array_equal(found.D, (2 * (wa @ wb.T) + bias) * 0.25)
    assert np.array_equal(found.D, plan.reference(*given, bias=bias, scale_out=np.float32([0.25])))
    assert found.sources()[0].name.startswith("f4E2M1FN-f32-kk-128x64x256-7-sm100-nv-")


RANDOM = 2117
"""Seed of the random problems."""


@pytest.mark.slow
@pytest.mark.parametrize("number", range(40))
def test_random_problems(number: int) -> None:
    """Random formats, sizes, tiles of one block and of pairs, results, epilogues and schedules. Sums are exact."""
    rng = np.random.default_rng([RANDOM, number])
    kinds = [("e4m3", "e5m2"), ("e4m3", "e4m3"), ("e5m2", "e4m3"), ("mxf4", "mxf4"), ("nvf4", "nvf4")][rng.integers(5)]
    output = str(rng.choice(["f16", "bf16", "f32"]))
    m, n, k = (int(x) for x in rng.integers(1, (400, 300, 900)))
    k = -(-k // 128) * 128 if kinds[0] != "nvf4" else -(-k // 64) * 64  # A plan reads scales without padding along K.
    tile = [None, (256, 128), (256, 192), (256, 64), (128, 192), (128, 256)][rng.integers(6)]
    layout = str(rng.choice(["row", "column"]))
    (a, sa, wa), (b, sb, wb) = (operand(rng, kind, rows, k) for kind, rows in zip(kinds, (m, n)))
    plan = plan_of(kinds, element_D=output, layout_D=layout)
    if tile is not None:
        depth = 128 if kinds[0] in ("e4m3", "e5m2") else 256
        plan.tile_description = {"threadblock_shape": [*tile, depth]}
        plan.tile_description = {"epilogue_schedule": "direct"}
    options: dict[str, Any] = {"schedule": ["round-robin", "reverse", "adversarial", "random"][rng.integers(4)]}
    wanted, factors = wa @ wb.T, [None, None]
    if rng.integers(2):
        factors = [np.float32([x]) for x in rng.choice([0.5, 2.0, 4.0], 2)]
        wanted = wanted * float(factors[0][0]) * float(factors[1][0])
    if rng.integers(2):
        options["bias"] = rng.integers(-3, 4, n).astype(np.float32)
        wanted = wanted + options["bias"]
    if rng.integers(2):
        options["scale_out"] = np.float32([0.5])
        wanted = wanted * 0.5
    scales = [s if f is None else (s, f) for s, f in zip((op.scale_blocks(sa), op.scale_blocks(sb)), factors)]
    found = plan.run(a, b.T, *scales, **options, **CHECKS)
    assert np.array_equal(np.asarray(found.D), wanted.astype(np.float32).astype(found.D.dtype))
    assert found.D.flags.c_contiguous or layout == "column"


@pytest.mark.slow
def test_torch_tensors_and_other_epilogues() -> None:
    """4-bit floats of torch, alpha, beta and C, and an activation."""
    torch = pytest.importorskip("torch")
    rng, (m, n, k) = np.random.default_rng(3), (40, 24, 128)
    (a, sa, wa), (b, sb, wb) = (operand(rng, "nvf4", rows, k) for rows in (m, n))
    a, b = (torch.from_numpy(np.ascontiguousarray(x)).view(torch.float4_e2m1fn_x2) for x in (a, b))
    scales = [op.scale_blocks(torch.from_numpy(s.view(np.uint8)).view(torch.float8_e4m3fn)) for s in (sa, sb)]
    c = torch.from_numpy(rng.integers(-3, 4, (m, n)).astype(np.float32))
    plan = plan_of(("nvf4", "nvf4"))
    plan.activation = "relu"
    found = plan.run(a, b.t(), *scales, C=c, alpha=0.5, beta=2.0, **CHECKS)
    assert np.array_equal(found.D.numpy(), np.maximum(0.5 * (wa @ wb.T) + 2 * c.numpy(), 0))


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "extents"), [("e4m3", (70, 205, 300)), ("mxf4", (40, 24, 96)), ("nvf4", (1, 8, 40))])
def test_calls_on_such_a_gpu(kind: str, extents: tuple[int, int, int], monkeypatch: pytest.MonkeyPatch) -> None:
    """``op.scaled_mm`` with the kernels for a GPU of sm_100, for any layout of the scales and any alignment."""
    launched: list[str] = []

    def of_sm100(*_: object) -> object:
        launched.append("sm_100")
        return SM100

    monkeypatch.setattr(block_scaled, "_backend_of", of_sm100)
    rng, (m, n, k) = np.random.default_rng(5), extents
    (a, sa, wa), (b, sb, wb) = (operand(rng, kind, rows, k) for rows in (m, n))
    bias = rng.integers(-3, 4, n).astype(np.float32)
    for scales in ((sa, sb), (op.scale_blocks(sa), sb)):
        found = op.scaled_mm(a, b.T, *scales, bias=bias, dtype="f32", **CHECKS)
        assert np.array_equal(found, wa @ wb.T + bias)
    whole = np.float32([0.5])
    found = op.scaled_mm(a, b.T, (sa, whole), (sb, whole), scale_out=2.0, dtype="f16", **CHECKS)
    assert np.array_equal(found, (0.5 * (wa @ wb.T)).astype(np.float16)) and len(launched) == 3


class Compiled(Exception):
    """Raised in place of compiling a kernel."""


@pytest.mark.parametrize(
    ("capability", "kernel"),
    [((10, 0), "sm100-nv-sm_100a"), ((10, 3), "sm103-nv-sm_103a"), ((11, 0), "sm110-nv-sm_110a"), ((12, 1), "sm121")],
)
def test_kernels_of_a_gpu(capability: tuple[int, int], kernel: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A call has the kernel for the GPU of its arrays."""

    def compiling(name: str, *_: object, chip: str, **__: object) -> None:
        raise Compiled(f"{name}-{chip}")

    monkeypatch.setattr(kernel_cache, "load_or_compile", compiling)
    monkeypatch.setattr(cuda, "driver", lambda: SimpleNamespace(capability=lambda _: capability, name=str))
    rng = np.random.default_rng(6)
    (a, sa, _), (b, sb, _) = (operand(rng, "nvf4", 64, 128) for _ in "ab")
    with pytest.raises(Compiled, match=kernel):
        op.scaled_mm(a, b.T, sa, sb)
    text = str(op.explain(op.scaled_mm, a, b.T, scale_a=(sa, np.float32([2])), scale_b=sb))
    assert kernel.rpartition("-")[0] in text and "never run on the chip" in text
    assert ("columns of tensor memory" in text) == (capability < (12, 0))


@pytest.mark.slow
def test_a_saved_plan(tmp_path: Path) -> None:
    rng, (m, n, k) = np.random.default_rng(4), (40, 24, 128)
    (a, sa, wa), (b, sb, wb) = (operand(rng, "e4m3", rows, k) for rows in (m, n))
    given, plan = (a, b.T, op.scale_blocks(sa), op.scale_blocks(sb)), plan_of(("e4m3", "e4m3"))
    plan.run(*given, **CHECKS)
    loaded = op.load(plan.save(tmp_path / "plan"))
    assert isinstance(loaded, op.ScaledGemm) and loaded.recipe == ("block1x32", "block1x32")
    assert np.array_equal(loaded.run(*given, device="cpu").D, wa @ wb.T)


def test_explanation() -> None:
    """The budgets and static bounds of a plan, with the rates of the elements."""
    lines = str(plan_of(("nvf4", "nvf4"), element_D="bf16").explain((4096, 2048), (2048, 4096))).splitlines()
    assert lines[0] == "ScaledGemm on sm_100a: M 4096, N 4096, K 4096, f4E2M1FN to bf16, majors k and k"
    assert lines[2] == "  status    assembled and interpreted, never run on the chip"
    assert re.match(r"  blocks    128 of \d+ bytes of shared memory, 512 of 512 columns of tensor memory", lines[3])
    assert "137 GFLOP, 50.3 MB" in lines[4] and "16384 multiply-adds of 4 bits" in lines[-1]
    text = str(plan_of(("e4m3", "e5m2"), kernel_cc=110).explain((512, 512), (512, 512)))
    assert text.startswith("ScaledGemm on sm_110a: M 512, N 512, K 512, f8E4M3FN_f8E5M2 to f32")
    assert "8192 multiply-adds of 8 bits" in text


class CuPyArray(np.ndarray):
    """An array of a library with NumPy's interface, which is neither NumPy nor torch."""

    __module__ = "cupy"


@pytest.mark.parametrize("scales", [(8, 3), (130, 5), (256, 8)], ids=str)
def test_scale_blocks(scales: tuple[int, int]) -> None:
    """Row m and scale s are at byte 16 * (m % 32) + 4 * (m // 32) + s of a block; the padding is 0."""
    rows, blocks = scales
    x = np.random.default_rng(0).integers(1, 127, scales).astype(np.uint8).view(E4)
    found = op.scale_blocks(x)
    assert found.dtype == x.dtype and found.shape == (-(-rows // 128) * -(-blocks // 4) * 512,)
    m, s = np.indices(scales)
    at = (m // 128 * -(-blocks // 4) + s // 4) * 512 + 16 * (m % 32) + 4 * (m % 128 // 32) + s % 4
    assert np.array_equal(found.view(np.uint8)[at], x.view(np.uint8))
    assert np.count_nonzero(found.view(np.uint8)) == x.size
    of_cupy = op.scale_blocks(x.view(CuPyArray))
    assert type(of_cupy) is CuPyArray and of_cupy.tobytes() == found.tobytes()


CALLS: dict[str, tuple[dict[str, Any], str]] = {
    "a matrix of scales": (
        {"scale_a": np.ones((8, 4), E8)},
        "ScaledGemm.run: scale_a has shape (8, 4); a plan copies nothing, so pass scale_a in blocks of 128 x 4 "
        "(op.scale_blocks), or use op.scaled_mm",
    ),
    "padding along K": (
        {"A": np.ones((8, 96), E4), "B": np.ones((8, 96), E4).T},
        "ScaledGemm.run: K is 96, so the blocks of 128 x 4 scales have padding along K; a plan does not clear it, so "
        "use a K that is a multiple of 128, or op.scaled_mm",
    ),
    "three levels": (
        {"scale_a": (1, 2, 3)},
        "ScaledGemm.run: scale_a has 3 parts; pass (scales of blocks, factor of the matrix)",
    ),
    "a number": (
        {"scale_a": (np.ones(512, E8), 2.0)},
        "ScaledGemm.run: scale_a[1] is of type float; pass an array of one f32",
    ),
    "a factor of f16": (
        {"scale_a": (np.ones(512, E8), np.ones(1, np.float16))},
        "ScaledGemm.run: scale_a[1], the factor of the matrix, has dtype f16; pass f32",
    ),
    "factors of rows": (
        {"scale_b": (np.ones(512, E8), np.ones(8, np.float32))},
        "ScaledGemm.run: scale_b[1] has shape (8,); pass one element, the factor of the matrix",
    ),
    "scales of other rows": (
        {"scale_a": np.ones((70, 4), E8)},
        "ScaledGemm.run: scale_a has shape (70, 4) for 8 rows and K = 128; pass (512,), blocks of 128 x 4 scales "
        "(op.scale_blocks)",
    ),
    "strided scales": (
        {"scale_b": np.ones(1024, E8)[::2]},
        "ScaledGemm.run: scale_b has strides (2,); a plan copies nothing, so pass a contiguous vector",
    ),
    "misaligned scales": (
        {"scale_b": np.ones(528, E8)[1:513]},
        "ScaledGemm.run: scale_b has an address of 1 mod 16, but TMA needs 0; a plan copies nothing, so pass an "
        "aligned vector",
    ),
    "split-K": ({"split_k": 2}, "ScaledGemm.run: split_k is not supported with scales; omit it"),
    "no C": ({"beta": 1.0}, "ScaledGemm.run: beta is 1.0, but C is missing; pass C or beta=0"),
    "4-bit floats": (
        {"A": np.ones((8, 64), np.uint8), "B": np.ones((8, 64), np.uint8).T},
        "ScaledGemm.run: a has dtype ui8; the plan needs f8E4M3FN",
    ),
}


@pytest.mark.parametrize("name", CALLS)
def test_refused_calls(name: str) -> None:
    changes, message = CALLS[name]
    given = {"A": np.ones((8, 128), E4), "B": np.ones((8, 128), E4).T}
    given |= {"scale_a": np.ones(512, E8), "scale_b": np.ones(512, E8), **changes}
    with pytest.raises(op.OpError) as raised:
        plan_of(("e4m3", "e4m3")).run(**given, device="cpu")
    assert str(raised.value) == message


def test_a_signed_scale() -> None:
    scales = np.ones((8, 4), E4)
    scales[3, 2] = -1
    a = np.ones((8, 32), np.uint8)
    message = "ScaledGemm.run: scale_b is -1.0 for row 3, block 2 of K; e4m3 scales are unsigned in the MMA, so pass"
    with pytest.raises(op.ArgumentError, match=re.escape(message)):
        plan_of(("nvf4", "nvf4")).run(a, a.T, op.scale_blocks(abs(scales)), op.scale_blocks(scales), device="cpu")


PLANS: dict[str, tuple[dict[str, Any], str]] = {
    "of sm_90": (
        {"kernel_cc": 90},
        "kernel_cc=90 is not supported for block1x32 scales; use kernel_cc=100, 103 or 110, or op.scaled_mm on sm_120",
    ),
    "two recipes": ({"recipe": ("block1x32", "tensor")}, "the recipes block1x32 and tensor cannot be combined; use"),
    "unknown": ({"recipe": "block1x64"}, "recipe 'block1x64' is not supported; use one of tensor, row, block"),
    "of floats": ({"element_A": "f16"}, "A has dtype f16 and B f8E4M3FN; kernels of sm_100 with block1x32 scales"),
    "bytes and floats": ({"element_B": "ui8"}, "A has dtype f8E4M3FN and B float4_e2m1fn_x2; kernels of sm_100 with"),
    "bytes of nv": ({"recipe": "block1x16"}, "with block1x16 scales support float4_e2m1fn_x2 (or ui8 of two elements"),
    "M-major": ({"layout_A": "column"}, "A is column-major, but kernels of sm_100 read operands with block1x32 scales"),
    "scales of f8": (
        {"element_scale": "f8E4M3FN"},
        "element_scale f8E4M3FN is not supported for recipe block1x32; use",
    ),
    "scales of f32": (
        {"element_scale": "f32"},
        "element_scale f32 is not supported for recipe block1x32; use float8_e8m0fnu",
    ),
    "coarse": (
        {"recipe": "tensor"},
        "kernel_cc=100 is not supported; tensor scales need wgmma on sm_90, those of blocks of 32 or 16 along K",
    ),
    "result": ({"element_D": "f8E4M3FN"}, "D is f8E4M3FN; kernels of sm_100 support f16, bf16 or f32 for D"),
}


@pytest.mark.parametrize("name", PLANS)
def test_refused_plans(name: str) -> None:
    changes, message = PLANS[name]
    given = {"element_A": "f8E4M3FN", "element_B": "f8E4M3FN", "recipe": "block1x32", "kernel_cc": 100, **changes}
    with pytest.raises(op.OpError, match=re.escape(message)):
        op.ScaledGemm(**given)


def gemm_plan() -> op.Gemm:
    """Return the plan of such operands without scales."""
    elements: dict[str, Any] = {"element_A": "f8E4M3FN", "element_B": "f8E4M3FN", "element_D": "f32"}
    return op.Gemm(**elements, layout_A="row", layout_B="column", kernel_cc=100)


@pytest.mark.parametrize("number", [0, -1], ids=["tcgen05", "mma.sync"])
def test_tiles_without_scales(number: int) -> None:
    """Tiles of ``op.Gemm`` ignore scales, and tiles with scales need them, so neither plan takes those of the other."""
    plan, other = plan_of(("e4m3", "e4m3")), gemm_plan()
    tiles = plan.tile_descriptions()
    assert len(tiles) == 7 and {td.math_instruction and td.math_instruction.scaling for td in tiles} == {"block1x32"}
    td = other.tile_descriptions()[number]
    with pytest.raises(op.UnsupportedError) as raised:
        plan.tile_description = td
    cure = "does not support block1x32 scales; use one of tile_descriptions()"
    assert str(raised.value) == f"ScaledGemm: tile {td.name} {cure}" and plan.tile_description is None
    with pytest.raises(
        op.UnsupportedError, match=r"Gemm: tile .* does not support operands without scales; use op.Sca"
    ):
        other.tile_description = tiles[number]


@pytest.mark.parametrize("types", [{}, {"element_C": "void"}, {"layout_C": "row"}, {"element_D": "f32"}], ids=str)
def test_default_types(types: dict[str, str]) -> None:
    """D is bf16 by default, C is like D, and plans print 4-bit floats as such."""
    given: dict[str, Any] = {"layout_C": "row", **types}
    given = {n: x for n, x in given.items() if "void" not in types.values() or n != "layout_C"}
    plan = op.ScaledGemm(element="float4_e2m1fn_x2", recipe="block1x16", kernel_cc=100, **given)
    wanted = f"A f4E2M1FN, row-major; B f4E2M1FN, column-major; D {types.get('element_D', 'bf16')}, row-major"
    assert repr(plan) == f"<ScaledGemm block1x16; {wanted}>" and plan.element_scale == "f8E4M3FN"
    assert plan.kinds.c in (None, plan.kinds.d)
    assert repr(op.ScaledGemm.of_settings(plan.settings())) == repr(plan)


@pytest.mark.parametrize(
    ("gpu", "kernel"),
    [
        ("NVIDIA B200", "sm100-mx"),
        ("NVIDIA GB300", "sm103-mx"),
        ("NVIDIA Thor", "sm110-mx"),
        ("NVIDIA GeForce RTX 5090", "sm120-mx"),
        ("NVIDIA GB10", "sm121-mx"),
    ],
)
def test_explanations_for_a_gpu(gpu: str, kernel: str) -> None:
    """The name selects the kernel. A call copies operands and scales that a plan refuses, so any K is explained."""
    (a, sa, _), (b, sb, _) = (operand(np.random.default_rng(0), "e4m3", rows, 100) for rows in (8, 24))
    assert kernel in op.explain(op.scaled_mm, a, b.T, sa, sb, gpu=gpu).kernel


def test_plans_for_unaligned_operands() -> None:
    """A and B that TMA cannot read take kernels of sm_80, and D that it cannot store takes stores from registers."""
    plan = op.Gemm(element="f16", layout="row", kernel_cc=100)
    names = [plan.construct(**{f"alignment_{x}": 1}).name for x in "ABC"]
    assert names[0] == names[1] == "f16-128x128x32-3-km" and "-sm100-o-" in names[2]
    of_sm120 = op.Gemm(element="f16", layout="row", kernel_cc=120)
    assert {of_sm120.construct(**{f"alignment_{x}": 1}).name for x in "ABC"} == {names[0]}


OTHERS: dict[str, tuple[type[op.OpError], str, Callable[[], object]]] = {
    "explain of a Hopper": (
        op.UnsupportedError,
        "scaled_mm: scales of blocks of 32 along K need sm_100, sm_103, sm_110, sm_120 or sm_121, but the GPU is sm_90",
        lambda: explained("NVIDIA H200"),
    ),
    "explain of an unknown GPU": (
        op.ArgumentError,
        "explain: gpu is 'B2000', whose compute capability is unknown; did you mean 'NVIDIA B200'?",
        lambda: explained("B2000"),
    ),
    "unaligned A": (
        op.UnsupportedError,
        "ScaledGemm: kernels with scales of blocks of 32 or 16 read A and B by TMA, which needs 16 bytes",
        lambda: plan_of(("e4m3", "e4m3")).construct(alignment_A=1),
    ),
    "explain with padding": (
        op.ShapeError,
        "ScaledGemm.explain: K is 96, so the blocks of 128 x 4 scales have padding along K; a plan does not clear it",
        lambda: plan_of(("e4m3", "e4m3")).explain((4096, 96), (96, 4096)),
    ),
    "explain of other lines": (
        op.AlignmentError,
        "ScaledGemm.explain: A, B has an address or row stride that is not a multiple of 16 bytes",
        lambda: plan_of(("e4m3", "e4m3")).explain((64, 100), (100, 64)),
    ),
    "explain of a Gemm": (
        op.ShapeError,
        "Gemm.explain: A has shape (4096,); it must have rank 2, or 3 for a batch",
        lambda: gemm_plan().explain((4096,), (96, 64)),
    ),
    "explain of a vector": (
        op.ShapeError,
        "ScaledGemm.explain: B has shape (1, 64, 64); pass a matrix (rank 2)",
        lambda: plan_of(("e4m3", "e4m3")).explain((64, 128), (1, 64, 64)),
    ),
    "a package": (
        op.UnsupportedError,
        "emit.pytorch: kernels with block scales are not exported; use plan.save(folder) and op.load(folder)",
        lambda: op.emit.pytorch(plan_of(("e4m3", "e4m3")).construct(), "package"),
    ),
    "a file": (
        op.UnsupportedError,
        "emit.mlir: kernels with block scales are not exported; use plan.ir() for the text of the kernel",
        lambda: op.emit.mlir(op.ScaledGemm(element="f8E4M3FN", recipe="block").construct()),
    ),
    "a file of a plan": (
        op.UnsupportedError,
        "emit.mlir: kernels with block scales are not exported",
        lambda: op.emit.mlir(cast("Any", plan_of(("e4m3", "e4m3")))),
    ),
    "a file of a plan without scales": (
        op.ArgumentError,
        "emit.mlir: operation is of type Gemm; pass plan.construct()",
        lambda: op.emit.mlir(cast("Any", gemm_plan())),
    ),
    "tune": (
        op.UnsupportedError,
        "ScaledGemm.tune: scaled GEMMs are not tuned; set tile_description to one of tile_descriptions() and time run",
        lambda: plan_of(("e4m3", "e4m3")).tune(np.ones((8, 128), E4), np.ones((8, 128), E4).T),
    ),
    "scales of a list": (
        op.DtypeError,
        "scale_blocks: scales is of type list; pass an array",
        lambda: op.scale_blocks([[1]]),
    ),
    "scales as f32": (
        op.DtypeError,
        "scale_blocks: scales has dtype f32; pass float8_e8m0fnu or f8E4M3FN, or their bytes",
        lambda: op.scale_blocks(np.ones((3, 3), np.float32)),
    ),
    "scales of a vector": (
        op.ShapeError,
        "scale_blocks: scales has shape (4,); pass a matrix (rows, blocks along K)",
        lambda: op.scale_blocks(np.ones(4, E8)),
    ),
}


def explained(gpu: str) -> object:
    """Explain a call with scales of ones on a GPU."""
    a, scales = np.ones((8, 128), E4), np.ones((8, 4), E8)
    return op.explain(op.scaled_mm, a, a.T, scales, scales, gpu=gpu)


@pytest.mark.parametrize("name", OTHERS)
def test_other_refusals(name: str) -> None:
    kind, message, do = OTHERS[name]
    with pytest.raises(op.OpError) as raised:
        do()
    assert type(raised.value) is kind and str(raised.value).startswith(message)
