"""GEMM kernels for sm_100 on the CPU interpreter and in ptxas; they have never run on the chip."""

from __future__ import annotations

import re
import subprocess
from functools import cache
from math import erf
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from arch_support import find_ptxas

from cute_dialect import op
from cute_dialect.arch.targets import TARGETS
from cute_dialect.kernels.epilogue.combination import Epilogue
from cute_dialect.kernels.gemm.sm100 import COLUMNS, TILES, Sm100Config, sm100_gemm_text
from cute_dialect.op.epilogue import exp, pairs, relu
from cute_dialect.op.epilogue import max as reduced_max
from cute_dialect.op.epilogue import sum as reduced_sum
from cute_dialect.pipelines import compile
from cute_dialect.pipelines.compiler import compile_lazily
from cute_dialect.runtime.launch import CompiledModule

DTYPES: dict[str, Any] = {
    "f16": np.float16, "bf16": ml_dtypes.bfloat16, "f32": np.float32, "tf32": np.float32,
    "f8E4M3FN": ml_dtypes.float8_e4m3fn, "f8E5M2": ml_dtypes.float8_e5m2,
}  # fmt: skip
CHECKS = ("race", "uninit", "sync", "oob", "strict")
SCHEDULES = ("reverse", "adversarial", "random")
SMALL = Sm100Config(tile=(64, 32), stages=2, sms=2)
"""Two blocks compute several tiles each, so the ring and both accumulators are reused."""
CONFIGS = [
    SMALL,
    SMALL._replace(element="bf16", output="bf16", major_a="m", tile=(128, 64)),
    SMALL._replace(major_b="n", output="f32", tile=(128, 32)),
    SMALL._replace(element="bf16", output="f32", major_a="m", major_b="n", batch=True),
    SMALL._replace(element="tf32", output="f32"),
    SMALL._replace(element="f8E4M3FN", output="bf16", tile=(128, 32)),
    SMALL._replace(element="f8E4M3FN_f8E5M2", output="f32", major_a="m", major_b="n", tile=(64, 128)),
    SMALL._replace(tile=(128, 96), accumulators=1, stages=3),
    SMALL._replace(direct=True, output="f32"),
    SMALL._replace(accumulators=4, sms=1, buffers=1),
]
PAIR = SMALL._replace(tile=(256, 32))
"""A pair of blocks computes several tiles."""
PAIRS = [
    PAIR,
    PAIR._replace(element="bf16", output="bf16", major_a="m", major_b="n", tile=(256, 64), sms=4),
    PAIR._replace(output="f32", major_b="n", batch=True),
    PAIR._replace(element="tf32", output="f32"),
    PAIR._replace(element="f8E4M3FN_f8E5M2", output="f32", major_a="m", major_b="n", tile=(256, 64)),
    PAIR._replace(tile=(256, 96), accumulators=1, stages=3, direct=True),
]
ON_CHIPS = ("sm_100a", "sm_103a", "sm_100f", "sm_110a")


@cache
def compiled(config: Sm100Config) -> CompiledModule:
    return compile_lazily(sm100_gemm_text(config), config.name, chip="sm_100a")


def matrix(rng: np.random.Generator, element: str, shape: tuple[int, ...], major: str = "k") -> np.ndarray:
    """Return small integers with 16-byte aligned rows, or columns if those are contiguous; NaN between them.

    The last mode is a batch.
    """
    if major in ("m", "n"):
        return matrix(rng, element, (shape[1], shape[0], *shape[2:]), "k").swapaxes(0, 1)
    rows, columns, *batch = shape
    storage = np.full((*batch, rows, -(-columns // 16) * 16), np.nan, DTYPES[element])
    storage[..., :columns] = rng.integers(-3, 4, (*batch, rows, columns))
    return np.moveaxis(storage[..., :columns], 0, -1) if batch else storage[..., :columns]


def run(config: Sm100Config, m: int, n: int, k: int, **options: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return the result of a kernel on a poisoned C, and the expected one."""
    rng, batch = np.random.default_rng(m + n + k), (3,) if config.batch else ()
    a, b = (
        matrix(rng, element, (rows, k, *batch), major)
        for element, rows, major in zip(config.elements, (m, n), (config.major_a, config.major_b))
    )
    c = matrix(rng, config.output, (m, n, *batch))
    c[...] = np.nan
    compiled(config).kernel("launch")(a, b, c, device="cpu", checks=CHECKS, **options)
    wanted = np.einsum("mk...,nk...->mn...", a.astype(np.float64), b.astype(np.float64))
    return c, wanted.astype(DTYPES[config.output])


@pytest.mark.end_to_end
@pytest.mark.sample(SMALL.name)
@pytest.mark.parametrize("config", CONFIGS, ids=lambda c: c.name)
def test_products_are_exact(config: Sm100Config) -> None:
    """Several tiles per block, and edges along M, N and K."""
    for extents in ((150, 136, 200), (1, 8, 1)) if config.direct or config.output == "f32" else ((150, 130, 200),):
        c, wanted = run(config, *extents)
        assert np.array_equal(c, wanted), extents


@pytest.mark.slow
@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("config", [*CONFIGS, *PAIRS], ids=lambda c: c.name)
def test_every_schedule(config: Sm100Config, schedule: str) -> None:
    c, wanted = run(config, 150, 130, 200, schedule=schedule, seed=1)
    assert np.array_equal(c, wanted)


@pytest.mark.end_to_end
@pytest.mark.sample(PAIR.name)
@pytest.mark.parametrize("config", PAIRS, ids=lambda c: c.name)
def test_products_of_pairs_are_exact(config: Sm100Config) -> None:
    """Several tiles per pair, and rows and columns that the odd block, the even block, or both lack."""
    others = ((300, 72, 72), (100, 8, 8)) if config is not PAIR else ()
    for extents in ((300, 40, 136), *others):
        c, wanted = run(config, *extents)
        assert np.array_equal(c, wanted), extents


@pytest.mark.end_to_end
@pytest.mark.sample("alpha-beta-bn-relu-False")
@pytest.mark.parametrize("direct", [False, True])
@pytest.mark.parametrize(
    "epilogue",
    [Epilogue(alpha="arg", beta="arg", bias="n", activation="relu"), Epilogue(alpha=0.5, bias="m", activation="gelu")],
    ids=lambda e: e.name,
)
def test_epilogue_is_rounded_once(epilogue: Epilogue, direct: bool) -> None:
    """The epilogue computes in f32, and its result is rounded once."""
    config, rng = SMALL._replace(output="bf16", epilogue=epilogue, direct=direct), np.random.default_rng(0)
    m, n, k = 70, 66 if not direct else 65, 72
    a, b, source = (matrix(rng, "f16", (m, k)), matrix(rng, "f16", (n, k)), matrix(rng, "bf16", (m, n)))
    bias = rng.standard_normal(n if epilogue.bias == "n" else m).astype(np.float32)
    d = np.full((m, n), np.nan, DTYPES["bf16"]) if direct else matrix(rng, "bf16", (m, n))
    d[...] = np.nan
    alpha, beta = (1.25, 0.75) if epilogue.alpha == "arg" else (0.5, 0.0)
    given = [a, b, d, source, bias, alpha, beta] if epilogue.alpha == "arg" else [a, b, d, bias]
    compiled(config).kernel("launch")(*given, device="cpu", checks=CHECKS)
    x = alpha * (a.astype(np.float64) @ b.astype(np.float64).T) + beta * source.astype(np.float64)
    x += bias.astype(np.float64) if epilogue.bias == "n" else bias.astype(np.float64)[:, None]
    if epilogue.activation == "relu":
        assert np.array_equal(d, np.maximum(x, 0).astype(np.float32).astype(DTYPES["bf16"]))
    else:
        gelu = np.vectorize(lambda v: v * 0.5 * (1 + erf(v / 2**0.5)))(x)
        np.testing.assert_allclose(d.astype(np.float64), gelu, rtol=2**-8, atol=1e-5)


def of_ptxas(config: Sm100Config, chip: str, folder: Path) -> str:
    """Return the report of ptxas for a kernel, whose shared memory must be that of the plan."""
    artifact = compile(sm100_gemm_text(config), chip=chip, emit="ptx", cache=False).artifact
    (code,), (kernel,) = artifact.code, artifact.manifest["kernels"]
    assert config.shared_bytes <= kernel["dynamic_smem"] <= config.shared_bytes + 8
    (folder / "k.ptx").write_text(code.ptx)
    ptxas = find_ptxas()
    assert ptxas is not None
    command = [ptxas, f"-arch={chip}", "-v", str(folder / "k.ptx"), "-o", str(folder / "k.cubin")]
    return subprocess.run(command, capture_output=True, text=True, check=True).stderr


@pytest.mark.slow
@pytest.mark.skipif(find_ptxas() is None, reason="needs ptxas")
@pytest.mark.parametrize(
    "config",
    [
        *[Sm100Config(tile=tile, stages=2, epilogue=Epilogue("arg", "arg", "n", activation="gelu")) for tile in TILES],
        *[x._replace(tile=(128, 256)) for x in CONFIGS if x.accumulators == 2],
        *[x._replace(tile=(256, 256)) for x in PAIRS if x.accumulators == 2],
    ],
    ids=lambda c: c.name,
)
def test_ptxas_keeps_the_budgets(config: Sm100Config, tmp_path: Path) -> None:
    """No spills, the shared memory and the registers of the plan."""
    config = config._replace(stages=2)
    config = config._replace(stages=config.most_stages)
    report = of_ptxas(config, "sm_100a", tmp_path)
    assert "0 bytes spill stores, 0 bytes spill loads" in report, report
    (registers,) = re.findall(r"Used (\d+) registers", report)
    assert int(registers) <= 255, report
    assert config.shared_bytes <= TARGETS["sm_100a"].shared and config.columns <= COLUMNS


@pytest.mark.slow
@pytest.mark.skipif(find_ptxas() is None, reason="needs ptxas")
@pytest.mark.parametrize("chip", ON_CHIPS)
@pytest.mark.parametrize("element", ["f16", "tf32", "f8E4M3FN"])
@pytest.mark.parametrize("rows", [128, 256])
def test_ptxas_of_each_chip(element: str, rows: int, chip: str, tmp_path: Path) -> None:
    report = of_ptxas(Sm100Config(element, "f32", tile=(rows, 256)), chip, tmp_path)
    assert "0 bytes spill stores, 0 bytes spill loads" in report, report


# --------------------------------------------------------------------------------------------------------------- plans


@pytest.mark.end_to_end
@pytest.mark.sample("f16-row-row-64-64")
@pytest.mark.parametrize(("m", "n"), [(64, 64), (65, 67), (70, 136)])
@pytest.mark.parametrize("layout_d", ["row", "column"])
@pytest.mark.parametrize(
    ("element", "layout_b"), [("f16", "row"), ("bf16", "column"), ("f8E4M3FN", "row"), ("tf32", "column")]
)
def test_a_plan_runs_on_the_cpu(element: str, layout_b: str, layout_d: str, m: int, n: int) -> None:
    rng, output = np.random.default_rng(m), "f32" if element == "tf32" else "bf16"
    a, b = matrix(rng, element, (m, 64)), matrix(rng, element, (64, n), "k" if layout_b == "row" else "n")
    d = np.full((m, n) if layout_d == "row" else (n, m), np.nan, DTYPES[output])
    d = d if layout_d == "row" else d.T
    plan = op.Gemm(
        element_A=element, element_B=element, layout_A="row", layout_B=layout_b, element_C="void", layout_C=layout_d,
        element_D=output, layout_D=layout_d, kernel_cc=100,
    )  # fmt: skip
    plan.run(a, b, None, d, device="cpu", checks=CHECKS)
    assert "sm100" in plan.construct().name
    assert np.array_equal(d, (a.astype(np.float64) @ b.astype(np.float64)).astype(d.dtype))


ACTIVATIONS: dict[str | None, Any] = {
    None: lambda x: x,
    "relu": lambda x: np.maximum(x, 0),
    "silu": lambda x: x / (1 + np.exp(-x)),
    "gelu": np.vectorize(lambda v: v * 0.5 * (1 + erf(v / 2**0.5))),
}


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(40))
def test_random_problems(seed: int) -> None:
    """Random types, layouts, sizes, tiles of one block and of pairs, and epilogues, compared with float64."""
    rng = np.random.default_rng(seed)
    element = str(rng.choice(["f16", "bf16", "tf32", "f8E4M3FN", "f8E5M2"]))
    output = "f32" if element == "tf32" else str(rng.choice(["f16", "bf16", "f32"]))
    m, n, k = (int(x) for x in rng.integers(1, (400, 200, 260)))
    tile, direct = [None, (256, 128), (256, 192), (256, 64), (128, 64)][rng.integers(5)], bool(rng.integers(2))
    if tile is not None and not direct:  # TMA stores lines of a multiple of 16 bytes.
        m, n = m // 8 * 8 + 8, n // 8 * 8 + 8
    layouts = [str(x) for x in rng.choice(["row", "column"], 3)]
    layouts[:2] = ["row", "column"] if element == "tf32" else layouts[:2]
    a = matrix(rng, element, (m, k), "k" if layouts[0] == "row" else "m")
    b = matrix(rng, element, (n, k), "n" if layouts[1] == "row" else "k").swapaxes(0, 1)
    c, d = (matrix(rng, output, (m, n), "k" if layouts[2] == "row" else "m") for _ in range(2))
    d[...] = np.nan
    bias = rng.standard_normal(n).astype(np.float32)
    alpha, beta = (float(x) for x in rng.choice([0.5, 1.0, -1.25, 0.0], 2))
    activation = [None, "relu", "silu", "gelu"][rng.integers(4)]
    plan = op.Gemm(
        element_A=element, element_B=element, layout_A=layouts[0], layout_B=layouts[1], element_C=output,
        layout_C=layouts[2], element_D=output, layout_D=layouts[2], kernel_cc=100,
    )  # fmt: skip
    if tile is not None:
        k_tile = {"tf32": 32, "f16": 64, "bf16": 64}.get(element, 128)
        plan.tile_description = {"threadblock_shape": [*tile, k_tile]}
        plan.tile_description = {"epilogue_schedule": "direct" if direct else "immediate"}
    if activation:
        plan.activation = activation
    schedule = ["round-robin", "reverse", "adversarial", "random"][rng.integers(4)]
    plan.run(a, b, c, d, alpha=alpha, beta=beta, bias=bias, device="cpu", checks=CHECKS, schedule=schedule)
    x = alpha * (a.astype(np.float64) @ b.astype(np.float64)) + beta * c.astype(np.float64) + bias
    epsilon = {"f16": 2**-11, "bf16": 2**-8, "f32": 2**-22}[output]
    wanted = ACTIVATIONS[activation](x)
    np.testing.assert_allclose(d.astype(np.float64), wanted, rtol=epsilon, atol=epsilon + 2**-20 * abs(x).max())


def stored_twice(accum: Any, bias: Any) -> Any:
    D = relu(accum + bias)
    F = accum + bias
    return D, F


def gated(accum: Any) -> Any:
    gate, up = pairs(accum)
    D = relu(gate) * up
    return D


def with_row_sums(accum: Any) -> Any:
    D = accum
    R = reduced_sum(accum, -1)
    return D, R


def with_column_maxima(accum: Any) -> Any:
    D = accum
    R = reduced_max(accum, -2)
    return D, R


def softmax(accum: Any) -> Any:
    x = exp(accum - reduced_max(accum, -1, whole_rows=True))
    D = x / reduced_sum(x, -1, whole_rows=True)
    return D


@pytest.mark.slow
@pytest.mark.end_to_end
@pytest.mark.sample("softmax-64-136")
@pytest.mark.parametrize("n", [136, 130])
@pytest.mark.parametrize("rows", [64, 256])
@pytest.mark.parametrize("epilogue", [stored_twice, gated, with_row_sums, with_column_maxima, softmax])
def test_traced_epilogues(epilogue: Any, rows: int, n: int) -> None:
    """Extra results, pairs of columns, reductions, and functions of whole rows, stored by TMA and directly."""
    rng = np.random.default_rng(n)
    a, b, bias = (rng.integers(-2, 3, shape).astype(np.float32) for shape in ((70, 64), (64, n), (n,)))
    x = a.astype(np.float64) @ b.astype(np.float64)
    plan = op.Gemm(
        element_A="f16", element_B="f16", layout_A="row", layout_B="row", element_C="void", layout_C="row",
        element_D="f32", layout_D="row", kernel_cc=100,
    )  # fmt: skip
    if rows == 256:
        direct = {"epilogue_schedule": "direct"} if n == 130 else {}
        plan.tile_description = {"threadblock_shape": [256, 192, 64], **direct}
    plan.epilogue_visitor = epilogue
    padded = matrix(rng, "f16", (64, n))
    padded[...] = b
    args = {"bias": bias} if epilogue is stored_twice else {}
    found = plan.run(a.astype(np.float16), padded, device="cpu", checks=CHECKS, visitor_args=args)
    assert "sm100" in found.sources()[0].name
    results = {name: np.asarray(value) for name, value in found.results.items()}
    if epilogue is softmax:
        e = np.exp(x - x.max(1, keepdims=True))
        np.testing.assert_allclose(results["D"], e / e.sum(1, keepdims=True), atol=1e-6)
    elif epilogue is gated:
        assert np.array_equal(results["D"], np.maximum(x[:, ::2], 0) * x[:, 1::2])
    elif epilogue is stored_twice:
        assert np.array_equal(results["D"], np.maximum(x + bias, 0)) and np.array_equal(results["F"], x + bias)
    else:
        wanted = x.sum(1) if epilogue is with_row_sums else x.max(0)
        assert np.array_equal(results["D"], x) and np.array_equal(results["R"].ravel(), wanted)


@pytest.mark.slow
def test_split_k_factors_and_saved_plans(tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    a, b = (rng.integers(-3, 4, shape).astype(np.float16) for shape in ((70, 200), (200, 136)))
    wanted = (a.astype(np.float64) @ b.astype(np.float64)).astype(np.float16)
    plan = op.Gemm(element="f16", layout="row", element_C="void", kernel_cc=100)
    found = plan.run(a, b, device="cpu", split_k=2, checks=CHECKS)
    assert np.array_equal(found.D, wanted) and found.sources()[0].name.endswith("-sm100-sm_100a")
    assert np.array_equal(plan.run([a, a], [b, b], device="cpu").D[1], wanted)
    batch = rng.integers(-3, 4, (3, 70, 200)).astype(np.float16)
    scaled = plan.run(batch, b, alpha=np.array([1, 2, 0.5], np.float32), device="cpu", checks=CHECKS)
    exact = batch.astype(np.float64) @ b.astype(np.float64) * np.array([1, 2, 0.5])[:, None, None]
    assert np.array_equal(scaled.D, exact.astype(np.float16))
    saved = op.load(plan.save(str(tmp_path / "plan")))
    assert np.array_equal(saved.run(a, b, device="cpu", split_k=2).D, wanted)


def test_operands_of_a_fixed_tile() -> None:
    """A fixed tile with TMA stores refuses rows that are not multiples of 16 bytes."""
    plan = op.Gemm(element="f16", layout="row", element_C="void", kernel_cc=100)
    plan.tile_description = {"threadblock_shape": [64, 64, 64]}
    with pytest.raises(op.AlignmentError, match="D has a row stride of 262 bytes, but TMA needs a multiple of 16"):
        plan.run(np.ones((8, 64), np.float16), np.ones((64, 136), np.float16)[:, :131], device="cpu")


def bounds_of(plan: op.Gemm, a: tuple[int, int], b: tuple[int, int], **options: int) -> dict[str, list[str]]:
    lines = [line.split() for line in str(plan.explain(a, b, **options)).splitlines()[1:]]
    return {label: rest for label, *rest in lines}


def test_bounds_of_matrices_smaller_than_a_tile() -> None:
    """TMA reads no row past the end: 64 tiles read one row of A, and their columns of B."""
    found = bounds_of(op.Gemm(element="f16", layout="row", kernel_cc=100), (1, 4096), (4096, 4096))
    moved = (64 * 4096 + 4096 * 4096 + 4096) * 2
    assert found["L2"] == [f"{moved / 64 / 64:.0f}", "cycles:", f"{moved / 1e6:.3g}", "MB"]


def test_bounds_of_slices() -> None:
    """Slices of K run at the same time, and each writes f32."""
    plan = op.Gemm(element="f16", layout="row", kernel_cc=100)
    whole, split = (bounds_of(plan, (64, 65536), (65536, 64), split_k=n) for n in (1, 16))
    assert (whole["blocks"][0], split["blocks"][0]) == ("1", "16")
    assert int(whole["MMA"][0]) == 16 * int(split["MMA"][0])
    assert int(split["L2"][0]) == (2 * 64 * 4096 * 2 + 64 * 64 * 4) / 64
    with pytest.raises(op.ShapeError, match="explain does not support empty matrices"):
        plan.explain((0, 64), (64, 64))


def test_a_plan_for_sm_100() -> None:
    plan = op.Gemm(element="f16", layout="row", kernel_cc=100)
    lines = str(plan.explain((4096, 2048), (2048, 1024))).splitlines()
    assert lines[:4] == [
        "Gemm on sm_100a: M 4096, N 1024, K 2048, f16 to f16, majors k and n",
        "  kernel    f16-f16-kn-256x256x64-6-sm100-sm_100a: TMA can read both operands",
        "  status    assembled and interpreted, never run on the chip",
        "  blocks    128 of 213132 bytes of shared memory, 512 of 512 columns of tensor memory, up to 255 registers",
    ]
    assert lines[5:-1] == [
        "  MMA       16384 cycles: 1 tile of 256 x 256 per pair of blocks",
        "  shared    9216 cycles: reads by the MMAs, staging of D",
        "  epilogue  512 cycles",
        "  L2        17408 cycles: 143 MB",
        "  HBM       6790 cycles: 29.4 MB",
        "  at least  17408 cycles, 9.4 us, by the L2; not a prediction",
    ]
    plan.tile_description = {"threadblock_shape": [128, 256, 64]}
    assert "at least  25600 cycles, 13.8 us, by the L2" in str(plan.explain((4096, 2048), (2048, 1024)))
    plan.tile_description = None
    assert lines[-1].startswith("  assumes   148 SMs at 1.85 GHz; per SM and cycle 4096 multiply-adds of 16 bits, 128")
    text = str(plan.explain((256, 255), (255, 255)))
    assert "H200" not in text and "sm_100a: M 256" in text and "never run on sm_100\n" in text
    plan.tile_description = {"threadblock_shape": [64, 64, 64], "stages": 3, "epilogue_schedule": "direct"}
    assert "f16-f16-kn-64x64x64-3-sm100-o-sm_100a" in str(plan.explain((256, 256), (256, 256)))


@pytest.mark.parametrize(("kernel_cc", "sms", "rows"), [(103, 160, 256), (110, 20, 256)])
def test_a_plan_for_another_chip(kernel_cc: int, sms: int, rows: int) -> None:
    plan = op.Gemm(element="bf16", layout="row", kernel_cc=kernel_cc)
    text = str(plan.explain((4096, 4096), (4096, 4096)))
    assert text.startswith(f"Gemm on sm_{kernel_cc}a: M 4096") and f"assumes   {sms} SMs at" in text
    assert re.search(rf"bf16-bf16-kn-{rows}x\d+x64-\d-sm{kernel_cc}-sm_{kernel_cc}a", text)
    with pytest.raises(op.UnsupportedError, match=f"no kernel of sm_{kernel_cc} multiplies i8 and i8; use f16"):
        op.Gemm(element="i8", layout="row", kernel_cc=kernel_cc)


@pytest.mark.end_to_end
@pytest.mark.parametrize("kernel_cc", [103, 110, 121])
def test_chips_of_a_family_compute_the_same(kernel_cc: int) -> None:
    rng = np.random.default_rng(kernel_cc)
    a, b = (rng.integers(-3, 4, shape).astype(np.float16) for shape in ((70, 64), (64, 72)))
    found = op.Gemm(element="f16", layout="row", kernel_cc=kernel_cc).run(a, b, device="cpu")
    assert found.sources()[0].name.endswith(f"-sm{kernel_cc}-sm_{kernel_cc}a")
    assert np.array_equal(found.D, (a.astype(np.float64) @ b.astype(np.float64)).astype(np.float16))


@pytest.mark.parametrize(
    ("tile", "message"),
    [
        (
            {"cluster_shape": [2, 1, 1]},
            "cluster_shape is (2, 1, 1); kernels of sm_100 need (1, 1, 1) for a tile of 128 rows",
        ),
        ({"epilogue_schedule": "deferred"}, "is 'deferred'; kernels of sm_100 have 'immediate' and 'direct'"),
        ({"stages": 1}, "stages is 1; use at least 2"),
        ({"stages": 9}, "9 stages need 458932 bytes of shared memory, but sm_100 has 232448 per block; use at most 4"),
        ({"threadblock_shape": [128, 128, 32]}, "the tile is 128 x 128 x 32 with instruction_shape [128, 128, 16]; "),
        ({"threadblock_shape": [256, 288, 64]}, "a tile of 256 x 288 is not supported; M must be 64, 128, or"),
        (
            {"threadblock_shape": [256, 128, 64], "cluster_shape": [1, 1, 1]},
            "(1, 1, 1); kernels of sm_100 need (2, 1, 1)",
        ),
        ({"threadblock_shape": [256, 128, 64], "kernel_schedule": "1sm"}, "is '1sm'; kernels of sm_100 need '2sm' for"),
        ({"threadblock_shape": [128, 40, 64]}, "a tile of 128 x 40 is not supported; M must be 64, 128, or 256 for a"),
        ({"warp_count": [2, 2, 1]}, "warp_count is [2, 2, 1]; kernels of sm_100 need [4, 1, 1] or none"),
        ({"parts": 2}, "kernels of sm_100 have no split-K or stream-K; use split_k= of the call"),
        (
            {"kernel_schedule": "pingpong"},
            "kernel_schedule is 'pingpong'; kernels of sm_100 need '1sm' for a tile of 128 rows",
        ),
    ],
    ids=range(12),
)
def test_refused_tiles(tile: dict[str, Any], message: str) -> None:
    plan = op.Gemm(element="f16", layout="row", kernel_cc=100)
    with pytest.raises(op.OpError, match=re.escape(message)):
        plan.tile_description = tile


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"element": "i8"}, "no kernel of sm_100 multiplies i8 and i8; use f16 and f16, bf16 and bf16, tf32 and tf32"),
        ({"element": "f64", "element_compute": "f64"}, "no kernel of sm_100 multiplies f64 and f64"),
        ({"element_A": "f16", "element_B": "bf16", "element_D": "f32"}, "no kernel of sm_100 multiplies f16 and bf16"),
        ({"element": "tf32"}, "B is row-major, but kernels of sm_100 read tf32 along K only; make it contiguous along"),
        ({"element": "f16", "element_C": "void", "element_D": "f8E4M3FN"}, "D is f8E4M3FN; kernels of sm_100 support"),
        ({"element": "f16", "element_accumulator": "f16"}, "accumulation in f16 is not supported for f16; use f32"),
        (
            {"element": "f16", "kernel_cc": 101},
            "kernel_cc=101 is not supported; use 80, 86, 87, 88, 89, 90, 100, 103, 110, 120 or 121",
        ),
    ],
    ids=range(7),
)
def test_refused_plans(given: dict[str, Any], message: str) -> None:
    with pytest.raises(op.OpError, match=re.escape(message)):
        op.Gemm(**{"layout": "row", "kernel_cc": 100, **given})


@pytest.mark.parametrize(
    ("config", "message"),
    [
        (Sm100Config("i8"), "element 'i8' is not supported; use one of f16, bf16, tf32"),
        (Sm100Config("f16_bf16"), "element 'f16_bf16' is not supported"),
        (Sm100Config(output="i8"), "output 'i8' is not supported; use f16, bf16 or f32"),
        (Sm100Config(major_a="n"), "majors are n, k; use 'k' or 'm' for A, 'k' or 'n' for B"),
        (Sm100Config("tf32", "f32", major_a="m"), "tf32 operands must be contiguous along K"),
        (Sm100Config(accumulators=4), "4 accumulators of 256 columns are not supported; use 1, 2 or 4, in 512 columns"),
        (Sm100Config(buffers=0), "buffers is 0; it must be at least 1"),
        (Sm100Config(tile=(96, 128)), "a tile of 96 x 128 is not supported"),
        (
            Sm100Config("f8E5M2", major_b="n", tile=(256, 96)),
            "a tile of 256 x 96 is not supported for an N-major B of 8 bits, of wh",
        ),
    ],
    ids=range(9),
)
def test_errors(config: Sm100Config, message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        config.check()


@pytest.mark.slow
@pytest.mark.end_to_end
def test_a_chosen_tile_with_a_d_that_tma_cannot_store() -> None:
    """The error names the cures, and both work."""
    rng = np.random.default_rng(0)
    a, b = (rng.integers(-4, 5, shape).astype(np.float16) for shape in ((34, 64), (64, 40)))
    plan = op.Gemm(element="f16", layout="row", element_C="f16", layout_C="column", layout_D="column", kernel_cc=100)
    d = np.full((40, 34), np.nan, np.float16).T
    plan.tile_description = {"threadblock_shape": [64, 64, 64]}
    with pytest.raises(op.AlignmentError) as raised:
        plan.run(a, b, None, d, device="cpu")
    assert str(raised.value) == (
        "Gemm.run: D has a row stride of 68 bytes, but TMA needs a multiple of 16; set epilogue_schedule to 'direct' "
        "in tile_description, or use no tile_description"
    )
    for tile in ({"threadblock_shape": [64, 64, 64], "epilogue_schedule": "direct"}, None):
        d[:] = np.nan
        plan.tile_description = tile
        plan.run(a, b, None, d, device="cpu")
        assert np.array_equal(d, a.astype(np.float32) @ b.astype(np.float32))
    plan.tile_description = {"threadblock_shape": [64, 64, 64]}
    with pytest.raises(op.AlignmentError, match=r"A has .*; set tile_description to None to have a kernel chosen"):
        plan.run(np.ones((34, 68), np.float16)[:, :64], b, None, d, device="cpu")
