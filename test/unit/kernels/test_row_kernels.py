"""Row kernels on the CPU interpreter, compared with float64."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from cute_dialect.kernels.rows.config import (  # fmt: skip
    BITS,
    HINTS,
    PROCESSORS,
    SHARED_MEMORY,
    RowConfig,
    capacity,
    check,
    longest,
    row_class,
    shared_bytes,
    width,
)
from cute_dialect.kernels.rows.forward import OPERATIONS, row_program, row_text
from cute_dialect.kernels.rows.gradients import entropy_backward_text
from cute_dialect.kernels.rows.sums import SUMS, loss_text, sum_class, sum_program, sum_text
from cute_dialect.pipelines import compile as compile_cute
from cute_dialect.runtime.launch import Kernel

FORWARD = ("softmax", "log_softmax", "rmsnorm", "layernorm")
BACKWARD = ("softmax_backward", "d")
EXAMPLE = Path(__file__).parents[2] / "examples" / "row_sum.mlir"
DTYPES = {"f32": np.float32, "f16": np.float16, "bf16": ml_dtypes.bfloat16}
HALF_ULP = {"f32": 2e-6, "f16": 2**-11, "bf16": 2**-8}
EPS = 1e-5
SENTINEL = 7.0
CHECKS = ("race", "sync", "oob", "uninit")


def reference(op: str, x: np.ndarray, *weights: np.ndarray, takes: str = "") -> np.ndarray:
    """Return the result in float64. ``takes`` contains "w" if ``weights`` has a weight, and "b" if it has a bias."""
    x, *w = (a.astype(np.float64) for a in (x, *weights))
    if "softmax" in op:
        with np.errstate(invalid="ignore", divide="ignore"):
            largest = x.max(1, keepdims=True)
            e = np.exp(x - largest)
            total = e.sum(1, keepdims=True)
            return e / total if op == "softmax" else x - largest - np.log(total)
    if op == "rmsnorm":
        y = x / np.sqrt((x**2).mean(1, keepdims=True) + EPS)
    else:
        y = (x - x.mean(1, keepdims=True)) / np.sqrt(x.var(1, keepdims=True) + EPS)
    y = y * w.pop(0) if "w" in takes else y
    return y + w.pop(0) if "b" in takes else y


def summed(op: str, x: np.ndarray) -> np.ndarray:
    """Return the reduction of each row in float64."""
    x = x.astype(np.float64)
    if op in ("sum", "mean", "max"):
        return np.asarray(getattr(x, op)(1))
    largest = x.max(1)
    return largest + np.log(np.exp(x - largest[:, None]).sum(1))


@cache
def kernel(op: str, element: str, n: int, config: RowConfig | None = None, takes: str | None = None) -> Kernel:
    """Return the kernel, compiled for the CPU."""
    text = sum_text(op, element, n, config) if op in SUMS else row_text(op, element, n, config, takes=takes)
    return compile_cute(text, emit="base").kernel("launch")


def of_class(op: str, element: str, n: int, config: RowConfig | None = None, takes: str | None = None) -> Kernel:
    """Return the kernel for a row length. All lengths of one class share a kernel."""
    if config is None:
        config = sum_class(element, n) if op in SUMS else row_class(op, element, n, default(op, takes))
    return kernel(op, element, capacity(element, config).start, config, takes)


def default(op: str, takes: str | None) -> str:
    return OPERATIONS[op].OPERANDS.replace("r", "") if takes is None else takes


def aligned(shape: tuple[int, int], dtype: np.dtype, offset: int) -> np.ndarray:
    """Return a zero matrix that starts ``offset`` elements after a 16-byte boundary."""
    raw = np.zeros(shape[0] * shape[1] * dtype.itemsize + 64, np.uint8)
    skip = -raw.ctypes.data % 16 + offset * dtype.itemsize
    return raw[skip : skip + shape[0] * shape[1] * dtype.itemsize].view(dtype).reshape(shape)


def matrix(element: str, rows: int, n: int, ld: int, offset: int = 0, seed: int = 0) -> np.ndarray:
    """Return a matrix of random normal numbers."""
    dtype = np.dtype(DTYPES[element])
    x = aligned((rows, ld), dtype, offset)
    x[...] = np.random.default_rng(n + seed).standard_normal((rows, ld)).astype(dtype)
    return x[:, :n]


def poisoned(element: str, rows: int, n: int, ld: int, offset: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Return a result matrix and its surrounding memory, filled with a sentinel."""
    storage = aligned((rows + 1, ld), np.dtype(DTYPES[element]), offset)
    storage[...] = SENTINEL
    return storage[:-1, :n], storage


def untouched(y: np.ndarray, storage: np.ndarray) -> bool:
    """Return True if only the result was written."""
    y[...] = SENTINEL
    return bool((storage.astype(np.float64) == SENTINEL).all())


def run(
    op: str, element: str, x: np.ndarray, takes: str | None = None, config: RowConfig | None = None, offset: int = 0
) -> str:  # fmt: skip
    """Run with all checks, compare with float64, and return the name of the launched kernel. ``x`` and the result have
    gaps between rows; a residual and its sum have none.
    """
    rows, n = x.shape
    takes = default(op, takes)
    k = of_class(op, element, n, config, takes)
    weights = [matrix(element, 1, n, n, seed=i)[0] for i in range(sum(t in takes for t in "wb"))]
    total, around = y, storage = poisoned(element, rows, n, x.strides[0] // x.itemsize, offset)
    given: list[Any] = [x, *weights, y]
    row = x
    if "r" in takes:
        residual, (total, around) = matrix(element, rows, n, n, seed=9), poisoned(element, rows, n, n)
        given = [x, residual, *weights, y, total]
        row = (x.astype(np.float32) + residual.astype(np.float32)).astype(x.dtype)
    given += [EPS] if "norm" in op else []
    report = k(*given, device="cpu", checks=CHECKS)
    assert report is not None and not report.warnings
    close(element, y, reference(op, row, *weights, takes=takes))
    if "r" in takes:
        assert (total == row).all() and untouched(total, around)
    chosen = k.plan(*given).kernel
    assert untouched(y, storage), "something outside of the result was written"
    return chosen


def close(element: str, got: np.ndarray, wanted: np.ndarray, more: float = 0.0) -> None:
    """Assert that the error is within rounding and the error of the row sums."""
    scale = np.sqrt((wanted**2).mean()) + more
    error = np.abs(got.astype(np.float64) - wanted)
    limit = HALF_ULP[element] * (np.abs(wanted) + scale) + 1e-7
    assert (error <= limit).all(), float((error / limit).max())


LENGTHS = [1, 7, 8, 9, 63, 64, 65, 255, 256, 257, 768, 1001]


@pytest.mark.end_to_end
@pytest.mark.sample("softmax-f32")
@pytest.mark.parametrize("element", BITS)
@pytest.mark.parametrize("op", FORWARD)
def test_rows_of_any_length(op: str, element: str) -> None:
    """Contiguous rows, rows with gaps, and misaligned rows; three rows do not fill a block."""
    for n in LENGTHS if element == "f16" else LENGTHS[1::3]:
        for ld, offset in ((n, 0), (n + 3, 1)):
            run(op, element, matrix(element, 3, n, ld, offset), offset=offset)


@pytest.mark.sample("softmax-bf16-5120")
@pytest.mark.parametrize("element, n", [("bf16", 5003), ("bf16", 5120), ("f32", 2057)])
@pytest.mark.parametrize("op", FORWARD)
def test_rows_of_a_block(op: str, element: str, n: int) -> None:
    """One block per row, where the number of warps is not a power of two."""
    chosen = run(op, element, matrix(element, 2, n, n))
    assert chosen == (f"{op}_v" if n % 8 == 0 else op)


SHARED = {
    "block": ("f16", RowConfig(96, 2)), "half a warp": ("f16", RowConfig(16, 2, 4)),
    "cluster": ("f32", RowConfig(64, 2, 1, 4)), "shared memory": ("f16", RowConfig(64, 2, shared=2)),
    "shared memory of a cluster": ("f16", RowConfig(32, 2, 1, 2, shared=2)),
    "parts": ("f16", RowConfig(64, 3, shared=2, groups=2)), "parts in registers": ("bf16", RowConfig(32, 5, groups=1)),
    "parts of a cluster": ("f32", RowConfig(32, 4, 1, 2, shared=3, groups=2)),
    "two rows at once": ("f16", RowConfig(64, 2, together=2)),
    "two rows in parts of a cluster": ("bf16", RowConfig(32, 3, 1, 2, shared=2, groups=2, together=2)),
}  # fmt: skip
WAYS = [(op, how) for op in FORWARD for how in SHARED if "two" not in how or "norm" in op]


@pytest.mark.slow
@pytest.mark.parametrize("op, how", WAYS)
def test_shortest_and_longest_rows_of_a_class(op: str, how: str) -> None:
    """The shortest and the longest row of each class, with and without vector accesses."""
    element, config = SHARED[how]
    held = capacity(element, config)
    for n, ld in (
        (held.start, held.start + 1),
        (held.stop - width(element), held.stop),
        (held.stop - 1, held.stop - 1),
    ):
        run(op, element, matrix(element, 5, n, -(-ld // 8) * 8 if n % 8 == 0 else ld), config=config)


NORMS = [("rmsnorm", x) for x in ("", "r", "wr")] + [("layernorm", x) for x in ("", "w", "b", "wbr", "r")]


@pytest.mark.slow
@pytest.mark.parametrize("op, takes", NORMS, ids=str)
def test_operands_of_norms(op: str, takes: str) -> None:
    for n, ld in ((64, 64), (333, 333), (1337, 1340)):
        run(op, "bf16", matrix("bf16", 3, n, ld), takes)


@pytest.mark.slow
@pytest.mark.parametrize("op", FORWARD)
def test_alignment_chooses_the_kernel(op: str) -> None:
    """Aligned rows, rows of odd length and a misaligned matrix select different kernels of one compilation."""
    for n, ld, offset, chosen in (
        (200, 208, 0, f"{op}_v"), (200, 201, 0, op), (200, 208, 1, op), (200, 200, 0, f"{op}_v"), (201, 208, 0, op),
    ):  # fmt: skip
        assert run(op, "f16", matrix("f16", 4, n, ld, offset), offset=offset) == chosen
    assert of_class(op, "f16", 200) is of_class(op, "f16", 201)


@pytest.mark.slow
def test_results_with_another_alignment() -> None:
    """The rows of the result are aligned differently from those of x, so the kernel uses scalar stores."""
    x = matrix("f16", 3, 333, 333)
    y, storage = poisoned("f16", 3, 333, 333, 1)
    of_class("softmax", "f16", 333)(x, y, device="cpu", checks=CHECKS)
    close("f16", y, reference("softmax", x))
    assert untouched(y, storage)


@pytest.mark.slow
@pytest.mark.parametrize("element", BITS)
@pytest.mark.parametrize("op", SUMS[:4])
def test_numbers_of_rows(op: str, element: str) -> None:
    """Row lengths with no full iteration, with several and a remainder, and with only unaligned edges."""
    for n in (*LENGTHS[:: 1 if element == "f16" else 4], 3000, 4096):
        for ld, offset in ((n, 0), (n + 3, 1)):
            x = matrix(element, 3, n, ld, offset)
            storage = np.full(5, SENTINEL, x.dtype)
            of_class(op, element, n)(x, storage[1:-1], device="cpu", checks=CHECKS)
            wanted = summed(op, x)
            close(element, storage[1:-1], wanted, n**0.5 if op == "sum" else 0.0)
            assert op != "max" or (storage[1:-1].astype(np.float64) == wanted).all()
            assert untouched(storage[1:-1], storage)


@pytest.mark.slow
def test_long_rows_use_a_loop() -> None:
    for n in (2048, 2048 + 129, 64 * 5 + 3):
        x, y = matrix("f32", 5, n, n), np.zeros(5, np.float32)
        of_class("logsumexp", "f32", n, RowConfig(32, 2, 2))(x, y, device="cpu", checks=CHECKS)
        close("f32", y, summed("logsumexp", x))


@pytest.mark.slow
@pytest.mark.parametrize("n", [9, 333, 1024])
def test_cross_entropy(n: int) -> None:
    """The kernel returns the loss of each row, and the total over rows whose target is not ignored."""
    x = matrix("bf16", 5, n, n)
    target = np.array([0, n - 1, -100, n // 2, 3])
    losses, lse, count = (np.full(size, np.nan, np.float32) for size in (5, 5, 1))
    of_class("cross_entropy", "bf16", n)(x, target, losses, lse, -100, device="cpu", checks=CHECKS)
    exact = summed("logsumexp", x)
    close("f32", lse, exact)
    wanted = exact - x.astype(np.float64)[np.arange(5), np.maximum(target, 0)]
    wanted[2] = 0.0
    close("f32", losses, wanted)
    for mean in (True, False):
        y = np.full(1, np.nan, np.float32)
        add_up = compile_cute(loss_text("f32", mean), emit="base").kernel("launch_losses")
        add_up(losses, target, y, count, -100, device="cpu", checks=CHECKS)
        close("f32", y, np.array([wanted.sum() / (4 if mean else 1)]))
        assert count[0] == 4


@pytest.mark.parametrize(("n", "cluster"), [(1027, 2), pytest.param(4096, 4, marks=pytest.mark.slow)])
def test_blocks_share_gradients_of_cross_entropy(n: int, cluster: int) -> None:
    """Each block computes some elements of a row, without an exchange with the others."""
    x = matrix("bf16", 3, n, n)
    target, g = np.array([n - 1, -100, 5]), np.array([1.0, 2.0, -3.0], np.float32)
    lse, dx = summed("logsumexp", x).astype(np.float32), np.full((3, n), np.nan, ml_dtypes.bfloat16)
    text = entropy_backward_text("bf16", n, "f32", False, RowConfig(32, 2, cluster=cluster))
    launch = compile_cute(text, emit="base").kernel("launch_entropy")
    launch(x, target, lse, g, dx, -100, device="cpu", checks=CHECKS)
    wanted = np.exp(x.astype(np.float64) - lse[:, None]) - (np.arange(n) == target[:, None])
    close("bf16", dx, wanted * np.where(target == -100, 0.0, g)[:, None])


def test_few_rows_have_more_threads() -> None:
    """Rows of any length fit the configurations of few rows, which have at most as many blocks as a GPU at once."""
    for op, element in (("logsumexp_backward", "bf16"), ("softmax", "f32"), ("layernorm", "f16")):
        for n in (*range(1, 9000, 61), *range(9001, 131_000, 1777)):
            for rows in (1, 7, 30, 66, 67):
                c = row_class(op, element, n, rows=rows)
                check(op, element, c)
                assert n in capacity(element, c)
                if c != row_class(op, element, n):
                    assert c.cluster > 1 and c.cluster * rows <= PROCESSORS
    assert row_class("softmax", "f16", 100_000, rows=67) == row_class("softmax", "f16", 100_000)
    assert sum_class("f16", 900, "logsumexp", 1057) == sum_class("f16", 900, "logsumexp")


def extremes(n: int) -> np.ndarray:
    """Return rows with large numbers, NaN, plus infinity, and minus infinity in some or all elements."""
    x = np.random.default_rng(0).standard_normal((7, n)).astype(np.float32)
    x[0] *= 1e4
    x[1, : n // 2] = -np.inf
    x[2] = -np.inf
    x[3, 17] = np.nan
    x[4] = -3.0e38
    x[5, 3] = 3.0e38
    x[6, 5] = np.inf
    return x


@pytest.mark.sample("softmax-warp")
@pytest.mark.parametrize(
    "config", [None, RowConfig(64), RowConfig(16, 4, shared=2, groups=2)], ids=["warp", "block", "parts"]
)
@pytest.mark.parametrize("op", ["softmax", "log_softmax"])
def test_softmax_of_extremes(op: str, config: RowConfig | None) -> None:
    for n in (200, 203):
        x = extremes(n)
        got = np.full(x.shape, 7, np.float32)
        of_class(op, "f32", n, config)(x, got, device="cpu")
        assert np.isnan(got[2]).all() and np.isnan(got[3]).all() and np.isnan(got[6]).any()
        wanted = reference(op, x)
        for row in (0, 1, 4, 5):
            assert np.allclose(got[row], wanted[row], rtol=1e-4, atol=1e-6), row


@pytest.mark.slow
def test_numbers_of_extremes() -> None:
    for n in (200, 203):
        x = extremes(n)
        largest, total = np.zeros((2, 7), np.float32)
        of_class("max", "f32", n)(x, largest, device="cpu")
        of_class("logsumexp", "f32", n)(x, total, device="cpu")
        assert np.array_equal(largest, x.max(1), equal_nan=True)
        assert total[2] == -np.inf and np.isnan(total[3]) and total[6] == np.inf
        wanted = summed("logsumexp", x[[0, 1, 4, 5]])
        assert np.allclose(total[[0, 1, 4, 5]], wanted, rtol=1e-6)


@pytest.mark.sample(
    "RowConfig(threads=128, chunks=1, rows=1, cluster=1, shared=0, groups=0, together=1, resident=0, stages=0, hint=0)"
)
@pytest.mark.parametrize(
    "config", [None, RowConfig(128), RowConfig(32, 2, 1, 2), RowConfig(64, 2, shared=2, groups=2)], ids=str
)
def test_layernorm_is_accurate_for_large_means(config: RowConfig | None) -> None:
    """The mean is so large compared with the deviation that a sum of squares would lose all digits."""
    for n in (300, 301):
        rng = np.random.default_rng(1)
        x = (1000 + rng.standard_normal((3, n))).astype(np.float32)
        y = np.full(x.shape, np.nan, np.float32)
        of_class("layernorm", "f32", n, config, "")(x, y, EPS, device="cpu")
        assert np.abs(y - reference("layernorm", x)).max() < 2e-3


@pytest.mark.sample("0-mean")
@pytest.mark.parametrize("op", ["sum", "mean", "max", "logsumexp"])
@pytest.mark.parametrize("hint", range(len(HINTS)))
def test_loads_with_cache_hints(op: str, hint: int) -> None:
    """Loads with an L2 eviction priority give right results in full iterations, remainders and edges."""
    config = RowConfig(32, 2, hint=hint)
    text = sum_text(op, "bf16", 3000, config)
    assert ("L2::cache_hint" in text) == (hint > 0) and HINTS[hint] in text
    program = sum_program(op, "bf16", 3000, config)
    for n in (511, 512, 1029, 3000):
        x, y = matrix("bf16", 3, n, n), np.zeros(3, DTYPES["bf16"])
        program(x, y, device="cpu", checks=CHECKS)
        close("bf16", y, summed(op, x), 0.2)
    assert HINTS[1] in sum_text("cross_entropy", "f16", 5000)


def test_the_trace_is_the_example() -> None:
    assert sum_text("sum", "f32", 4096, RowConfig(256, 4)) == EXAMPLE.read_text()
    x = np.random.default_rng(2).standard_normal((3, 4096)).astype(np.float32)
    y = np.zeros(3, np.float32)
    compile_cute(str(EXAMPLE), emit="base").kernel("sum")(x, y, device="cpu")
    assert np.allclose(y, x.sum(1, dtype=np.float64), atol=1e-4)


@pytest.mark.slow
def test_programs_are_called_with_arrays() -> None:
    """One program accepts any number of rows, with or without gaps. Rows of another length class raise an error."""
    program = row_program("layernorm", "f16", 200)
    w, b = (matrix("f16", 1, 200, 200, seed=i)[0] for i in range(2))
    for rows, ld in ((4, 208), (3, 201)):
        x, y = matrix("f16", rows, 200, ld), np.full((rows, 200), np.nan, np.float16)
        program(x, w, b, y, EPS, device="cpu", checks=CHECKS)
        close("f16", y, reference("layernorm", x, w, b, takes="wb"))
    x = matrix("f16", 2, 300, 300)
    with pytest.raises(Exception, match="the kernel is for rows of 136 to 263 elements"):
        program(x, x[0], x[0], x.copy(), EPS, device="cpu")
    y = np.zeros(3, np.float32)
    sum_program("sum", "f32", 40)(np.ones((3, 40), np.float32), y, device="cpu")
    assert (y == 40).all()


def test_rows_that_do_not_agree_are_refused() -> None:
    x, y = np.zeros((3, 64), np.float32), np.zeros(4, np.float32)
    with pytest.raises(Exception, match="y must have as many elements as x has rows"):
        of_class("sum", "f32", 64)(x, y, device="cpu")
    with pytest.raises(Exception, match="y must have as many rows as x"):
        of_class("softmax", "f32", 64)(x, x[:2].copy(), device="cpu")


ERRORS: list[tuple[tuple[object, ...], str]] = [
    (
        ("median", "f32", 64),
        "operation 'median' is not supported; use one of softmax, log_softmax, rmsnorm",
    ),
    (("softmax", "f64", 64), "element type 'f64' is not supported; use one of f32, f16, bf16"),
    (("softmax", "f32", 0), "rows must have at least one element, got 0"),
    (("softmax", "f32", 262145), "softmax supports rows of at most 131075 elements, got 262145"),
    (("softmax", "f32", 64, RowConfig(48)), "threads is 48; more than a warp must be a multiple of 32"),
    (("softmax", "f32", 64, RowConfig(24)), "threads is 24; it must be a power of two up to 32"),
    (("softmax", "f32", 64, RowConfig(32, 1, 1, 16)), "cluster is 16; it must be a power of two up to 8"),
    (("softmax", "f32", 64, RowConfig(64, 1, 2)), "rows is 2; a row that more than a warp shares needs rows=1"),
    (("softmax", "f32", 64, RowConfig(96, 1, 1, 4)), "threads is 96; the blocks of a cluster need a power of two"),
    (("softmax", "f32", 64, RowConfig(32, 1, 64)), "a block has 2048 threads; it must have 1 to 1024"),
    (("softmax", "f32", 64, RowConfig(32, 1, 2, shared=1)), "rows is 2; shared, groups or together > 1 need rows=1"),
    (("softmax", "f32", 64, RowConfig(32, together=2)), "together > 1 does not support softmax"),
    (("softmax", "f32", 64, RowConfig(32, 2, shared=3)), "chunks must be at least 1 and shared at most chunks"),
    (("softmax", "f32", 64, RowConfig(32, 2, shared=1, groups=2)), "groups is 2; it must be at most 1"),
    (("layernorm", "f16", 64, RowConfig(1024, 16, shared=16)), "shared memory per block; at most 229376 are available"),
]


@pytest.mark.parametrize("arguments, message", ERRORS, ids=[e[1][:40] for e in ERRORS])
def test_invalid_configurations_are_rejected(arguments: tuple[Any, ...], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        row_text(*arguments)


def test_every_operation_has_a_kernel() -> None:
    backward = {"softmax_backward", "log_softmax_backward", "max_backward", "logsumexp_backward"}
    assert set(OPERATIONS) == {*FORWARD} | backward


def test_unsupported_operands_are_rejected() -> None:
    with pytest.raises(ValueError, match="rmsnorm: operands 'b' are not supported; use some of 'wr'"):
        row_text("rmsnorm", "f32", 64, takes="b")
    with pytest.raises(ValueError, match="operation 'median' is not supported; use one of sum, mean"):
        sum_text("median")


@pytest.mark.parametrize("element", BITS)
@pytest.mark.parametrize("op, takes", [(op, "") for op in FORWARD] + [("layernorm", "r"), ("rmsnorm", "r"), BACKWARD])
def test_row_classes_cover_row_lengths(op: str, element: str, takes: str) -> None:
    """Each length belongs to a suitable class, and there are few classes."""
    most = longest(op, element, takes)
    lengths = [*range(1, 2100), *range(2101, min(70000, most), 37), *range(70001, most, 997), most]
    found: set[RowConfig] = set()
    for n in lengths:
        c = row_class(op, element, n, takes)
        if c not in found:
            check(op, element, c, takes)
            found.add(c)
        assert n in capacity(element, c), (n, c)
        assert shared_bytes(element, c) <= SHARED_MEMORY
    assert len(found) <= 80
    with pytest.raises(ValueError, match=f"supports rows of at most {most} elements"):
        row_class(op, element, most + 1, takes)


CODE = [
    ("softmax", "f32", 4096),
    ("layernorm", "bf16", 5120),
    ("layernorm", "bf16", 12288),
    ("rmsnorm", "bf16", 768),
    ("softmax", "bf16", 32768),
    ("rmsnorm", "f16", 131072),
    ("layernorm", "f16", 32768),
]


@pytest.mark.sample("layernorm-bf16-12288")
@pytest.mark.parametrize("op, element, n", CODE, ids=str)
def test_code_has_128_bit_accesses_and_no_spills(op: str, element: str, n: int) -> None:
    compiled = compile_cute(row_text(op, element, n), cache=False)
    fast = compiled.ptx.split(f".visible .entry {op}_v")[1].split(".visible .entry")[0]
    c = row_class(op, element, n)
    assert len(re.findall(r"cp\.async\.cg\.shared\.global \[.*\], \[.*\], 16", fast)) == c.shared * c.together
    assert fast.count("ld.global.v4.b32") >= (c.chunks - c.shared) * c.together
    pivots = c.together if op == "layernorm" else 0  # the first element of each row
    assert fast.count("ld.global.b") == pivots and "ld.local" not in compiled.ptx
    assert fast.count("st.global.v4.b32") == c.chunks * c.together
    assert "warning" not in compiled.report
    assert compiled.report.count(" 0 bytes spilled, 0 bytes stack") == 2


@pytest.mark.sample("sum-64-2048", "max-512-8200")
@pytest.mark.parametrize(("threads", "n"), [(64, 2048), (64, 2051), (512, 8200)])
@pytest.mark.parametrize("op", SUMS)
def test_clusters_share_reduced_rows(op: str, threads: int, n: int) -> None:
    config = RowConfig(threads, 4, cluster=4, hint=sum_class("f32", 1 << 16).hint)
    kernel = compile_cute(sum_text(op, "f32", n, config), emit="base").kernel("launch")
    x = np.random.default_rng(n).standard_normal((3, n)).astype(np.float32)
    wide, y, lse = x.astype(np.float64), np.full(3, np.nan, np.float32), np.full(3, np.nan, np.float32)
    target = np.array([5, n - 1, 0])
    given = (x, target, y, lse, -100) if op == "cross_entropy" else (x, y)
    kernel(*given, device="cpu", checks=("race", "oob", "uninit", "sync"))
    log = np.log(np.exp(wide).sum(1))
    exact = {
        "sum": wide.sum(1), "mean": wide.mean(1), "max": wide.max(1), "logsumexp": log,
        "cross_entropy": log - wide[np.arange(3), target],
    }  # fmt: skip
    assert np.allclose(y, exact[op], rtol=2e-6, atol=1e-4 if op == "sum" else 1e-6)
