"""``op.quantize`` and ``op.dequantize`` on the interpreter, compared with float64."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from cute_dialect import op

BF16, E4M3, E5M2 = ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2
LARGEST: dict[Any, float] = {E4M3: 448.0, E5M2: 57344.0, np.int8: 127.0}
SIZES: dict[Any, tuple[int, int]] = {"row": (1, 1 << 20), 128: (1, 128), (128, 128): (128, 128)}
"""Rows and columns of the regions of a matrix."""


def normal(*shape: int, dtype: Any = BF16) -> Any:
    x = np.random.default_rng([*shape]).standard_normal(shape) * 3
    return x.astype(np.float32).astype(dtype)


def exact_scales(x: Any, block: Any, kind: Any) -> tuple[Any, Any]:
    """Return the scales in f32, and those of each element in f64."""
    wide = np.abs(x.astype(np.float64))
    matrix = wide.reshape(-1, x.shape[-1])
    rows, columns = SIZES.get(block, (1 << 20, 1 << 20))
    rows, columns = min(rows, matrix.shape[0]), min(columns, matrix.shape[1])
    down, across = -(-matrix.shape[0] // rows), -(-matrix.shape[1] // columns)
    padded = np.zeros((down * rows, across * columns))
    padded[: matrix.shape[0], : matrix.shape[1]] = matrix
    amax = padded.reshape(down, rows, across, columns).max((1, 3))
    scales = np.where(amax > 2.0**-110, amax.astype(np.float32) / np.float32(LARGEST[kind]), 1).astype(np.float32)
    each = scales.astype(np.float64).repeat(rows, 0).repeat(columns, 1)[: matrix.shape[0], : matrix.shape[1]]
    return scales, each.reshape(x.shape)


def check(x: Any, kind: Any, block: Any, **run: Any) -> None:
    """Compare values and scales with exact ones, and their product with the array."""
    q, scales = op.quantize(x, kind, block=block, device="cpu", **run)
    want, each = exact_scales(x, block, kind)
    assert q.dtype == kind and q.shape == x.shape
    np.testing.assert_array_equal(scales.reshape(want.shape), want)
    exact = x.astype(np.float64) / each
    # Half a unit in the last place, and the error of the inverse in f32.
    unit = {E4M3: 2.0**-4, E5M2: 2.0**-3}.get(kind, 0.0) * np.abs(exact) + (0.5 if kind is np.int8 else 2.0**-10)
    assert (np.abs(q.astype(np.float64) - exact) <= unit * 1.0001).all()
    found = op.dequantize(q, scales, np.float32, device="cpu", **run)
    np.testing.assert_allclose(found, q.astype(np.float64) * each, rtol=1e-6)


@pytest.mark.slow
@pytest.mark.sample("x1-128")
@pytest.mark.parametrize("block", [None, "row", 128, (128, 128)], ids=str)
@pytest.mark.parametrize(
    "x",
    [
        normal(3, 256), normal(2, 2, 300)[..., 3:], normal(5, 97, dtype=np.float16), normal(130, 136, dtype=np.float32),
        normal(4, 520)[:, :512], np.broadcast_to(normal(1, 200), (3, 200)), normal(200, 3).T, normal(77),
    ],
)  # fmt: skip
def test_regions(x: Any, block: Any) -> None:
    """Aligned and odd rows, ranks 1 to 3, gaps, unaligned addresses, broadcast and transposed arrays."""
    if block == (128, 128) and x.ndim != 2:
        with pytest.raises(op.ShapeError, match=r"block=\(128, 128\) needs a matrix"):
            op.quantize(x, block=block, device="cpu")
        return
    for kind in (E4M3, np.int8):
        check(x, kind, block, checks="all")


@pytest.mark.slow
@pytest.mark.parametrize(("rows", "n"), [(2, 8), (9, 64), (3, 1001), (2, 5000), (1, 66000), (2, 70001)])
def test_row_lengths(rows: int, n: int) -> None:
    """Rows of a part of a warp, a warp, a block, and rows that are read twice."""
    check(normal(rows, n), E5M2, "row")


def test_special_values() -> None:
    """Zeros have the scale 1; NaN and infinities spread over their region, and over no other."""
    x = np.zeros((4, 256), np.float32)
    x[1, 130], x[2, 5], x[3, 0] = np.nan, -np.inf, 2.0**-112
    q, scales = op.quantize(x, block=128, device="cpu")
    np.testing.assert_array_equal(scales, np.array([[1, 1], [1, np.nan], [np.inf, 1], [1, 1]], np.float32))
    wide = q.astype(np.float32)
    assert not wide[0].any() and not wide[1, :128].any() and np.isnan(wide[1, 128:]).all() and not wide[3].any()
    back = op.dequantize(q, scales, "f32", device="cpu")
    assert np.isnan(back[1, 128:]).all() and np.isnan(back[2, :128]).all() and not back[2, 128:].any()


def test_empty_arrays() -> None:
    for shape, block, scales in (
        ((0, 5), "row", (0, 1)),
        ((3, 0), "row", (3, 1)),
        ((3, 0), None, ()),
        ((0,), 128, (0,)),
    ):
        q, s = op.quantize(np.zeros(shape, np.float32), block=block, device="cpu")
        assert q.shape == shape and s.shape == scales and (s == 1).all()
        assert op.dequantize(q, s, device="cpu").shape == shape


@pytest.mark.sample("128")
@pytest.mark.parametrize("block", ["row", 128, (128, 128), None], ids=str)
def test_given_scales(block: Any) -> None:
    """Given scales, with strides of a transposed matrix, give the values that computed ones give."""
    x = normal(130, 300)
    q, scales = op.quantize(x, np.int8, block=block, device="cpu")
    given = np.asfortranarray(scales)
    again, same = op.quantize(x, "int8", scale=given, device="cpu")
    assert same is given
    np.testing.assert_array_equal(again, q)


@pytest.mark.end_to_end
def test_operators() -> None:
    torch = pytest.importorskip("torch")
    import_module("cute_dialect.op.operators.table")  # registers the operators

    x = torch.tensor(normal(3, 300).astype(np.float32)).bfloat16()
    q, scales = op.quantize(x, torch.int8, block=128, device="cpu")
    operators = torch.ops.cute
    for found, want in zip(operators.quantize(x, "i8", "block"), (q, scales)):
        assert torch.equal(found, want)
    assert torch.equal(operators.quantize_scaled(x, "i8", scales), q)
    for name, given in (
        ("quantize", (x, "f8E4M3FN", "row")), ("quantize_scaled", (x, "i8", scales)),
        ("dequantize", (q, scales, "bf16")),
    ):  # fmt: skip
        torch.library.opcheck(getattr(operators, name).default, given, test_utils=("test_schema", "test_faketensor"))

    def both(x: Any) -> Any:
        _, scales = op.quantize(x, torch.int8, block=128, device="cpu")
        return op.dequantize(op.quantize(x, "i8", scale=scales, device="cpu")[0], scales, device="cpu")

    compiled = torch.compile(both, fullgraph=True, backend="aot_eager")
    assert torch.equal(compiled(x), op.dequantize(q, scales, device="cpu"))


def test_explanations() -> None:
    found = op.explain(op.quantize, (4096, 7168), element="bf16", block=128)
    assert str(found).splitlines()[2].split(maxsplit=2)[2] == "per block of 128 columns, by 16 threads"
    assert found.bytes == 4096 * 7168 * 3 + 4096 * 56 * 4 and found.kernels is not None and len(found.kernels) == 1
    whole = op.explain(op.quantize, normal(64, 40), dtype="i8")
    assert whole.kernels is not None and len(whole.kernels) == 3 and whole.bytes > 64 * 40 * 5
    back = op.explain(op.dequantize, (64, 40), (64, 1), element="i8", dtype="f32")
    assert str(back).startswith("dequantize of 64 x 40 i8 to f32\n") and "per row" in str(back)
    long = op.explain(op.quantize, (2, 1 << 20), block="row")
    assert "which read the row twice" in str(long)


X, ONES = normal(130, 300), np.ones((130, 3), np.float32)
AXIS: dict[str, Any] = {"axis": 1}


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: op.quantize(X, "bf16", device="cpu"), op.DtypeError, "dtype bf16 is not supported; use one of f8E4"),
        (lambda: op.quantize(X, block=64, device="cpu"), op.UnsupportedError, "block=64 is not supported; use None"),
        (lambda: op.quantize(X, block=True, device="cpu"), op.UnsupportedError, "block=True is not supported"),
        (lambda: op.quantize(X[0], block=(128, 128), device="cpu"), op.ShapeError, "needs a matrix"),
        (lambda: op.quantize(X.astype(np.int8), device="cpu"), op.DtypeError, "x has dtype i8; it must have one"),
        (lambda: op.quantize(np.array(1.0, BF16), device="cpu"), op.ShapeError, "x is a scalar"),
        (lambda: op.quantize(X, block=128, scale=ONES, device="cpu"), op.ArgumentError, "be combined with scale"),
        (lambda: op.quantize(X, scale=ONES[1:], device="cpu"), op.ShapeError, r"or \(130, 1\), \(130, 3\)"),
        (lambda: op.quantize(X, scale=ONES.astype(BF16), device="cpu"), op.DtypeError, "scale has dtype bf16"),
        (lambda: op.quantize(X, **AXIS), op.ArgumentError, r"quantize\(\) has no argument 'axis'"),
        (lambda: op.dequantize(X, ONES, device="cpu"), op.DtypeError, "q has dtype bf16; it must"),
        (lambda: op.dequantize(X.astype(E4M3), ONES, "i8", device="cpu"), op.DtypeError, "dtype i8 is not supported"),
        (lambda: op.dequantize(X, ONES, **AXIS), op.ArgumentError, "has no argument 'axis'"),
        (lambda: op.explain(op.dequantize, (4, 4), element="i8"), op.ShapeError, "needs the scales as b"),
        (lambda: op.explain(op.quantize, (4, 0)), op.ShapeError, "it must not be empty"),
        (lambda: op.explain(op.quantize, (4, 4), dtype="f16"), op.DtypeError, "the result has dtype f16; it must"),
        (lambda: op.explain(op.quantize, (4, 4), blocks=128), op.ArgumentError, "no argument 'blocks'; did you mean"),
    ],
)  # fmt: skip
def test_errors(call: Any, error: type[op.OpError], words: str) -> None:
    with pytest.raises(error, match=words):
        call()
