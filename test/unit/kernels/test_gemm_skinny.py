"""The Hopper GEMM for few rows on the CPU interpreter: clusters that share A and K, and every store path."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from cute_dialect import op
from cute_dialect.kernels.gemm.config import SkinnyConfig
from cute_dialect.kernels.gemm.few_rows import few_rows_text, launch
from cute_dialect.op.select.candidates import menu
from cute_dialect.op.select.configurations import KernelRequest, configured
from cute_dialect.op.select.kernel_choice import Choice, Problem
from cute_dialect.pipelines import compile
from cute_dialect.runtime.launch_plan import LaunchError

BASE = SkinnyConfig(stages_a=2, stages=4)
DTYPES = {
    "f16": np.float16, "bf16": ml_dtypes.bfloat16, "f32": np.float32, "tf32": np.float32,
    "f8E4M3FN": ml_dtypes.float8_e4m3fn,
}  # fmt: skip
CASES = {
    "whole K": (BASE, (100, 200, 344)),
    "one step of K": (BASE, (100, 200, 40)),
    "more stages than steps": (SkinnyConfig(), (100, 200, 344)),
    "without a hint, directly": (BASE._replace(hint=False, direct=True), (100, 200, 344)),
    "two tiles of rows": (BASE, (136, 72, 200)),
    "A shared": (BASE._replace(share=2), (100, 264, 344)),
    "A shared by four": (BASE._replace(share=4, columns=72, direct=True), (100, 304, 344)),
    "two parts": (BASE._replace(columns=128, parts=2), (100, 264, 344)),
    "four parts": (BASE._replace(columns=128, parts=4), (100, 136, 344)),
    "parts, A shared": (BASE._replace(columns=128, parts=2, share=2), (100, 264, 344)),
    "parts, one warpgroup": (BASE._replace(rows=64, columns=128, parts=2), (60, 136, 344)),
    "64 rows, 16 of them there": (BASE._replace(rows=64, live=16), (11, 136, 344)),
    "chunks of 64 bytes": (BASE._replace(columns=96), (100, 104, 200)),
    "bf16 to f32": (BASE._replace(element="bf16", output="f32", direct=True), (100, 72, 200)),
    "fp8": (BASE._replace(element="f8E4M3FN", output="bf16"), (100, 72, 336)),
    "tf32": (BASE._replace(element="tf32", output="f32", direct=True), (100, 72, 100)),
    "tf32, two parts": (
        BASE._replace(element="tf32", output="f32", direct=True, columns=128, parts=2),
        (100, 136, 172),
    ),
    "tf32, 16 rows": (
        BASE._replace(element="tf32", output="f32", direct=True, rows=64, columns=96, live=16),
        (11, 200, 172),
    ),
    "A along M": (BASE._replace(major_a="m", rows=64), (40, 72, 200)),
    "B along N, in lines of 64 bytes": (BASE._replace(major_b="n", columns=96), (100, 104, 344)),
    "B along N, 16 rows": (BASE._replace(major_b="n", rows=64, live=16), (11, 136, 200)),
    "neither along K, four parts": (BASE._replace(major_a="m", major_b="n", columns=128, parts=4), (104, 136, 344)),
    "few columns": (BASE._replace(major_c="m"), (104, 200, 344)),
    "few columns, four parts": (
        BASE._replace(major_a="m", major_b="n", major_c="m", rows=64, parts=4, stages_a=4), (56, 136, 344)
    ),
    "few columns, tf32": (
        BASE._replace(major_c="m", rows=64, parts=2, element="tf32", output="f32", direct=True), (60, 136, 172)
    ),
    "few columns, fp8, 16 of them": (
        BASE._replace(major_c="m", rows=64, parts=2, live=16, element="f8E4M3FN", output="bf16"), (16, 136, 336)
    ),
}  # fmt: skip


@pytest.mark.end_to_end
@pytest.mark.sample("whole K")
@pytest.mark.parametrize("name", CASES)
def test_product(name: str) -> None:
    c, (m, n, k) = CASES[name]
    module = compile(few_rows_text(c), filename=f"{c.name}.mlir", emit="base")
    rng = np.random.default_rng(m + n + k)
    a, b = (rng.integers(-2, 3, (rows, k)).astype(DTYPES[c.element]) for rows in (m, n))
    out = np.full((m, n), np.nan, DTYPES[c.output], order="C" if c.major_c == "n" else "F")
    x, y = (v if major == "k" else np.asfortranarray(v) for v, major in ((a, c.major_a), (b, c.major_b)))
    # The rows of a stage that are not loaded only affect rows of C that are not stored, so "uninit" is not checked.
    checks = ("race", "sync", "oob") if c.live else ("race", "sync", "oob", "uninit")
    module.kernel("launch")(x, y, out, device="cpu", checks=checks)
    assert (out == (a.astype(np.float64) @ b.astype(np.float64).T).astype(out.dtype)).all()


@pytest.mark.sample("72-False")
@pytest.mark.parametrize(("n", "direct"), [(71, True), (130, True), (72, False), (128, False)])
def test_padding_of_c_is_not_written(n: int, *, direct: bool) -> None:
    """TMA stores need rows whose size is a multiple of 16 bytes."""
    kernel = compile(few_rows_text(BASE._replace(direct=direct)), emit="base").kernel("launch")
    rng = np.random.default_rng(n)
    a, b = (rng.integers(-2, 3, (rows, 64)).astype(np.float16) for rows in (20, n))
    storage = np.full((20, 136), np.nan, np.float16)
    kernel(a, b, storage[:, :n], device="cpu", checks=("race", "sync", "oob", "uninit"))
    assert (storage[:, :n] == (a.astype(np.float64) @ b.astype(np.float64).T)).all()
    assert np.isnan(storage[:, n:]).all()


@pytest.mark.slow
def test_split_k_slices_are_added_in_fixed_order() -> None:
    c = BASE._replace(columns=128, parts=4)
    kernel = compile(few_rows_text(c), emit="base").kernel("launch")
    rng = np.random.default_rng(0)
    a, b = (rng.standard_normal((rows, 520)).astype(np.float16) for rows in (70, 128))
    results: set[bytes] = set()
    for seed in range(3):
        out = np.full((70, 128), np.nan, np.float16)
        kernel(a, b, out, device="cpu", schedule="random", seed=seed)
        results.add(out.tobytes())
    assert len(results) == 1


def test_unsupported_shapes_are_rejected() -> None:
    c = BASE._replace(rows=64, live=16)
    kernel = compile(few_rows_text(c), emit="base").kernel("launch")
    a, b, out = (np.zeros(x, np.float16) for x in ((24, 64), (64, 64), (24, 64)))
    with pytest.raises(LaunchError, match="A has more than 16 rows"):
        kernel(a, b, out, device="cpu")


def test_operands_are_not_copied() -> None:
    a, b = (np.random.default_rng(i).integers(-2, 3, (rows, 200)).astype(np.float16) for i, rows in enumerate((40, 72)))
    out = np.full((40, 72), np.nan, np.float16)
    launch(a, b, out, device="cpu", checks=("race", "sync", "oob", "uninit"))
    assert (out == a.astype(np.float64) @ b.astype(np.float64).T).all()
    with pytest.raises(ValueError, match="B must be contiguous along mode 1"):
        launch(a, np.asfortranarray(b), out, device="cpu")


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"element": "f64"}, "f64 operands with f16 results are not supported"),
        ({"rows": 100}, "rows must be 64, 128 or 192"),
        ({"columns": 60}, "columns a multiple of 8 up to 256"),
        ({"stages": 1}, "must be at least 2, got"),
        ({"parts": 3}, "parts is 3; it must divide"),
        ({"share": 16}, "a cluster has at most 8 blocks"),
        ({"live": 12}, "live is 12; it must be a multiple of 8"),
        ({"columns": 72}, "chunks of 64 bytes"),
        ({"columns": 256, "stages": 9}, "at most 232448 are available"),
        ({"major_b": "m"}, "A must be along k or m, B along k or n"),
        ({"major_a": "m", "element": "tf32", "output": "f32"}, "A and B of tf32 must be K-major"),
        ({"major_a": "m", "live": 16}, "M-major A needs whole tiles"),
        ({"major_b": "n", "columns": 40, "direct": True}, "N-major B needs a multiple of 16"),
        ({"major_c": "m", "columns": 40}, "chunks of 16 columns"),
    ],
)
def test_invalid_configurations_are_rejected(change: dict[str, object], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        few_rows_text(BASE._replace(**change))  # type: ignore[arg-type]


@pytest.mark.slow
@pytest.mark.parametrize(("m", "n", "kernel"), [(20, 264, "y"), (264, 40, "yw")])
def test_epilogues(m: int, n: int, kernel: str) -> None:
    """Epilogues of ``op.mm`` with M-major A and N-major B, for few rows or few columns."""
    rng = np.random.default_rng(m)
    a, b = rng.integers(-2, 3, (328, m)).astype(np.float16).T, rng.integers(-2, 3, (328, n)).astype(np.float16)
    a = np.asfortranarray(np.pad(a, ((0, -m % 8), (0, 0))))
    c, bias = rng.integers(-9, 9, (len(a), n)).astype(np.float16), rng.integers(-9, 9, n).astype(np.float32)
    found = menu(Problem(len(a), n, 328, major_a="m", major_b="n"))
    choice = next(x for x in found if x.skinny is not None and x.swapped == (kernel == "yw") and x.skinny.parts == 2)
    assert f"-{kernel}-" in choice.name
    checks = ("race", "sync", "oob", "uninit")
    d = op.mm(a, b, alpha=2.0, beta=-1.0, c=c, bias=bias, kernel=choice, device="cpu", checks=checks)
    assert (d == 2 * (a.astype(np.float64) @ b) - c + bias).all()


def test_tile_description_for_few_rows() -> None:
    """The description accepts matrices of any layout, but no batch."""
    instruction = op.MathInstruction([64, 16, 16], "f16", "f16", "f32", op.OpcodeClass.TensorOp)
    tile = op.TileDescription([64, 16, 64], 4, None, instruction, kernel_schedule="few_rows")
    asked = KernelRequest("f16", "f16", "f32", "f32", "row", "row", "row", batch=False)
    found = configured(tile, asked)
    assert isinstance(found, Choice) and found.skinny is not None
    assert (found.skinny.major_a, found.skinny.major_b, found.skinny.major_c) == ("k", "n", "n")
    with pytest.raises(op.UnsupportedError, match="kernel_schedule few_rows does not support a batch"):
        configured(tile, asked._replace(batch=True))
