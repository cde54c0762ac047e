"""Row kernels from text to numbers on the CPU interpreter, against float64."""

from __future__ import annotations

import re
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

import cute_dialect.lang as cute
from cute_dialect.kernels.row_config import SHARED_MEMORY, shared_bytes
from cute_dialect.kernels.rows import BITS, OPS, RowConfig, default_config, row_program, row_text, vector_width
from cute_dialect.pipelines import compile as compile_cute
from cute_dialect.runtime.launch import Kernel

EXAMPLE = Path(__file__).parents[2] / "examples" / "row_sum.mlir"
DTYPES = {"f32": np.float32, "f16": np.float16, "bf16": ml_dtypes.bfloat16}
HALF_ULP = {"f32": 2e-6, "f16": 2**-11, "bf16": 2**-8}
EPS = 1e-5
SENTINEL = 7.0


def reference(op: str, x: np.ndarray, *weights: np.ndarray) -> np.ndarray:
    """In float64."""
    x, *w = (a.astype(np.float64) for a in (x, *weights))
    if op == "sum":
        return x.sum(1)
    if op == "softmax":
        with np.errstate(invalid="ignore"):
            e = np.exp(x - x.max(1, keepdims=True))
            return e / e.sum(1, keepdims=True)
    if op == "rmsnorm":
        return x / np.sqrt((x**2).mean(1, keepdims=True) + EPS) * w[0]
    return (x - x.mean(1, keepdims=True)) / np.sqrt(x.var(1, keepdims=True) + EPS) * w[0] + w[1]


def kernel(op: str, element: str, n: int, config: RowConfig | None = None) -> Kernel:
    """Compiled for the CPU."""
    return compile_cute(row_text(op, element, n, config, eps=EPS), emit="base").kernel(op)


def aligned(shape: tuple[int, int], dtype: np.dtype, offset: int) -> np.ndarray:
    """A matrix of zeros that begins ``offset`` elements after a multiple of 16 bytes."""
    raw = np.zeros(shape[0] * shape[1] * dtype.itemsize + 64, np.uint8)
    skip = -raw.ctypes.data % 16 + offset * dtype.itemsize
    return raw[skip : skip + shape[0] * shape[1] * dtype.itemsize].view(dtype).reshape(shape)


def run(k: Kernel, op: str, x: np.ndarray, *weights: np.ndarray, offset: int = 0) -> tuple[np.ndarray, str]:
    """The result and which kernel made it; rows of the result lie one element further apart than they are long."""
    rows, n = x.shape
    if op == "sum":
        storage = np.full(rows + 2, SENTINEL, x.dtype)
        y = storage[1:-1]
    else:
        storage = aligned((rows + 1, x.strides[0] // x.itemsize), x.dtype, offset)
        storage[...] = SENTINEL
        y = storage[:-1, :n]
    k(x, *weights, y, device="cpu")
    out = y.copy()
    y[...] = SENTINEL
    assert (storage.astype(np.float64) == SENTINEL).all(), "something outside of the result was written"
    return out, k.plan(x, *weights, y).kernel


def inputs(op: str, element: str, rows: int, n: int, ld: int, offset: int = 0) -> list[np.ndarray]:
    """Random normal data: x, and the weights that the operation takes."""
    rng = np.random.default_rng(n)
    dtype = np.dtype(DTYPES[element])
    x = aligned((rows, ld), dtype, offset)
    x[...] = rng.standard_normal((rows, ld)).astype(dtype)
    weights = [aligned((1, n), dtype, 0)[0] for _ in range({"rmsnorm": 1, "layernorm": 2}.get(op, 0))]
    for w in weights:
        w[...] = rng.standard_normal(n).astype(dtype)
    return [x[:, :n], *weights]


def close(op: str, element: str, got: np.ndarray, data: list[np.ndarray]) -> None:
    """Assert that a result is the rounded one, but for the error of sums."""
    wanted = reference(op, *data)
    scale = np.sqrt((wanted**2).mean())
    error = np.abs(got.astype(np.float64) - wanted)
    limit = HALF_ULP[element] * (np.abs(wanted) + scale)
    assert (error <= limit).all(), float((error / limit).max())


SMALL = [1, 2, 3, 31, 64, 100, 257, 1000]
SHARED = {
    "warp": RowConfig(32, 2), "half a warp": RowConfig(16, 4), "block": RowConfig(128), "cluster": RowConfig(64, 1, 4),
}  # fmt: skip


@pytest.mark.parametrize("element", BITS)
@pytest.mark.parametrize("op", OPS)
def test_rows_of_any_length(op: str, element: str) -> None:
    """Default configurations; three rows do not fill a block."""
    for n in SMALL if element == "f16" else SMALL[2::3]:
        data = inputs(op, element, 3, n, n)
        got, _ = run(kernel(op, element, n), op, *data)
        close(op, element, got, data)


WAYS = [(op, how) for op in OPS for how in SHARED if (op, how) != ("sum", "cluster")]


@pytest.mark.parametrize("op, how", WAYS)
def test_rows_shared_in_other_ways(op: str, how: str) -> None:
    for element, n in (("f32", 512), ("bf16", 1400), ("f32", 333)):
        data = inputs(op, element, 5, n, n)
        got, _ = run(kernel(op, element, n, SHARED[how]), op, *data)
        close(op, element, got, data)


IN_TURN = [
    ("f32", 512, RowConfig(64, stages=2)), ("bf16", 1400, RowConfig(32, 1, 2, stages=3)),
    ("f16", 333, RowConfig(64, 1, 2, stages=2)), ("f16", 70, RowConfig(32, stages=1)),
    ("f16", 1000, RowConfig(64, 1, 2, stages=1, together=2)), ("f32", 333, RowConfig(64, together=3)),
    ("f16", 5000, RowConfig(64, stages=1, groups=3, kept=16)), ("f32", 1300, RowConfig(32, 1, 2, stages=1, kept=8)),
    ("f16", 2200, RowConfig(32, 1, 2, stages=1, kept=32)),
    ("bf16", 1401, RowConfig(32, 1, 2, stages=1, together=2, groups=4, kept=2)),
    ("f16", 640, RowConfig(32, stages=1, groups=2)),
]  # fmt: skip


@pytest.mark.parametrize("element, n, config", IN_TURN, ids=str)
@pytest.mark.parametrize("op", OPS[1:])
def test_rows_in_turn(op: str, element: str, n: int, config: RowConfig) -> None:
    """Rows in shared memory, more of them than blocks: slots and partial results are used again; several at once.

    Without gaps between rows, and with gaps that no vector fits.
    """
    if op == "softmax" and config.together > 1:
        config = config._replace(together=1)
    k = compile_cute(row_text(op, element, n, config, eps=EPS, sms=2), emit="base").kernel(op)
    for ld in (n, n + 1):
        data = inputs(op, element, 9, n, ld)
        y = np.full(data[0].shape, np.nan, data[0].dtype)
        report = k(*data, y, device="cpu", checks=("race", "sync", "oob", "uninit"))
        assert report is not None and not report.warnings
        close(op, element, y, data)


def test_long_sums_go_round_a_loop() -> None:
    """With whole rounds, what is left of them, and part of a chunk; both widths of access."""
    config = RowConfig(32, 2)
    for n, ld in ((4096, 4096), (4096 + 3 * 128, 4481), (2048 + 36, 2084)):
        data = inputs("sum", "f32", 3, n, ld)
        got, _ = run(kernel("sum", "f32", n, config), "sum", *data)
        close("sum", "f32", got, data)


@pytest.mark.parametrize("op", OPS)
def test_alignment_chooses_the_kernel(op: str) -> None:
    """Rows of whole vectors, rows that are not, and a matrix that begins between two vectors."""
    k = kernel(op, "f16", 200)
    for ld, offset, chosen in ((208, 0, f"{op}_v"), (201, 0, op), (208, 1, op), (200, 0, f"{op}_v")):
        data = inputs(op, "f16", 4, 200, ld, offset)
        got, name = run(k, op, *data, offset=offset)
        close(op, "f16", got, data)
        assert name == chosen


@pytest.mark.parametrize(
    "config", [None, RowConfig(64), RowConfig(16, stages=1, kept=4)], ids=["warp", "block", "parts"]
)
def test_softmax_of_extremes(config: RowConfig | None) -> None:
    """Large numbers, minus infinity in part of a row and in all of it, NaN."""
    n = 200
    x = np.random.default_rng(0).standard_normal((6, n)).astype(np.float32)
    x[0] *= 1e4
    x[1, : n // 2] = -np.inf
    x[2] = -np.inf
    x[3, 17] = np.nan
    x[4] = -3.0e38
    x[5, 3] = 3.0e38
    got, _ = run(kernel("softmax", "f32", n, config), "softmax", x)
    assert np.isnan(got[2]).all() and np.isnan(got[3]).all()
    wanted = reference("softmax", x)
    for row in (0, 1, 4, 5):
        assert np.allclose(got[row], wanted[row], rtol=1e-4, atol=1e-9), row


@pytest.mark.parametrize(
    "config", [None, RowConfig(64), RowConfig(32, 1, 2), RowConfig(32, stages=1, groups=2)], ids=str
)
def test_layernorm_does_not_cancel(config: RowConfig | None) -> None:
    """A mean that is large beside the deviation: sums of squares would lose all digits."""
    n = 300
    rng = np.random.default_rng(1)
    x = (1000 + rng.standard_normal((3, n))).astype(np.float32)
    w, b = np.ones(n, np.float32), np.zeros(n, np.float32)
    got, _ = run(kernel("layernorm", "f32", n, config), "layernorm", x, w, b)
    assert np.abs(got - reference("layernorm", x, w, b)).max() < 2e-3


def test_the_trace_is_the_example() -> None:
    assert row_text("sum", "f32", 4096) == EXAMPLE.read_text()
    x = np.random.default_rng(2).standard_normal((3, 4096)).astype(np.float32)
    y = np.zeros(3, np.float32)
    compile_cute(str(EXAMPLE), emit="base").kernel("sum")(x, y, device="cpu")
    assert np.allclose(y, x.sum(1, dtype=np.float64), atol=1e-4)


@pytest.mark.parametrize("op", OPS)
def test_programs_are_called_with_arrays(op: str) -> None:
    """Any number of rows and rows with gaps, by one program; other rows are refused."""
    program = row_program(op, "f16", 200, eps=EPS)
    for rows, ld in ((4, 208), (3, 201)):
        data = inputs(op, "f16", rows, 200, ld)
        y = np.full(rows if op == "sum" else (rows, 200), np.nan, np.float16)
        program(*data, y, device="cpu", checks=("race", "uninit", "sync", "oob"))
        close(op, "f16", y, data)
    data = inputs(op, "f16", 4, 208, 208)
    y = np.zeros(4 if op == "sum" else (4, 208), np.float16)
    with pytest.raises(cute.ShapeError, match="argument x, mode 1: expected extent 200, got 208"):
        program(*data, y, device="cpu")


def test_rows_that_do_not_agree_are_refused() -> None:
    x, y = np.zeros((3, 64), np.float32), np.zeros(4, np.float32)
    with pytest.raises(Exception, match="y must have as many rows as x"):
        kernel("sum", "f32", 64)(x, y, device="cpu")


ERRORS: list[tuple[tuple[object, ...], str]] = [
    (("mean", "f32", 64), "expected an operation of sum, softmax, rmsnorm, layernorm, got 'mean'"),
    (("sum", "f64", 64), "expected an element type of f32, f16, bf16, got 'f64'"),
    (("sum", "f32", 0), "expected rows of at least one element, got 0"),
    (("softmax", "f32", 262145), "expected rows of at most 262144 elements"),
    (("sum", "f32", 64, RowConfig(48)), "expected threads to be a power of two up to 1024, got 48"),
    (("softmax", "f32", 64, RowConfig(32, 1, 16)), "expected cluster to be a power of two up to 8, got 16"),
    (("sum", "f32", 64, RowConfig(64, 2)), "expected one row a block where more than a warp shares it, got 2"),
    (("softmax", "f32", 64, RowConfig(16, 1, 4)), "expected whole warps in the blocks of a cluster, got 16 threads"),
    (("sum", "f32", 64, RowConfig(32, 64)), "expected blocks of 1 to 1024 threads, got 2048"),
    (("sum", "f32", 64, RowConfig(64, 1, 2)), "expected no cluster for a sum, got one of 2 blocks"),
    (("softmax", "f32", 64, RowConfig(32, 2, stages=1)), "expected one row a block, and no sum, where rows are in"),
    (("softmax", "f32", 64, RowConfig(32, together=2)), "expected no softmax, and at most one stage, where rows are"),
    (("layernorm", "f16", 32768, RowConfig(1024, stages=2)), "expected rows and weights of at most 229376 bytes a"),
]


@pytest.mark.parametrize("arguments, message", ERRORS, ids=[e[1][:40] for e in ERRORS])
def test_a_config_that_does_not_fit(arguments: tuple[object, ...], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        row_text(*arguments)  # type: ignore[arg-type]


def test_defaults_hold_rows() -> None:
    for n in (1, 17, 1024, 1025, 4096, 8192, 16384, 32768, 131072, 262144, 100_001):
        for element in BITS:
            for op in OPS[1:]:
                c = default_config(op, element, n)
                assert c.sharing * (64 if c.stages else 32) >= n and 1 <= c.block <= 1024 and c.cluster <= 8
                assert c.rows == 1 or c.threads <= 32
                assert not c.stages or shared_bytes(op, element, n, c) <= SHARED_MEMORY
    assert [vector_width("bf16", n) for n in (8, 12, 14, 7)] == [8, 4, 2, 1]


CODE = [
    ("softmax", "f32", 4096),
    ("layernorm", "bf16", 32768),
    ("sum", "f16", 1024),
    ("rmsnorm", "f16", 131072),
    ("layernorm", "f16", 131072),
]


@pytest.mark.parametrize("op, element, n", CODE, ids=str)
def test_code_moves_128_bits_and_spills_nothing(op: str, element: str, n: int) -> None:
    compiled = compile_cute(row_text(op, element, n), cache=False)
    fast = compiled.ptx.split(f".visible .entry {op}_v")[1].split(".visible .entry")[0]
    config = default_config(op, element, n)
    vectors = n // config.sharing * config.together * BITS[element] // 128
    kept = config.kept * config.together * BITS[element] // 128 if config.stages else vectors
    assert len(re.findall(r"cp\.async\.cg\.shared\.global \[.*\], \[.*\], 16", fast)) == vectors - kept
    assert fast.count("ld.global.v4.b32") >= kept
    assert "ld.global.b" not in fast and "ld.local" not in compiled.ptx
    if op != "sum":
        assert fast.count("st.global.v4.b32") == vectors
    assert "warning" not in compiled.report
    assert compiled.report.count(" 0 bytes spilled, 0 bytes stack") == 2
