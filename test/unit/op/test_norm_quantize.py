"""``op.rms_norm`` and ``op.layer_norm`` with 8-bit results on the interpreter, compared with float64."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from cute_dialect import op

BF16, E4M3, E5M2 = ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2
LARGEST: dict[Any, float] = {E4M3: 448.0, E5M2: 57344.0, np.int8: 127.0}
CALLS: dict[str, Any] = {"rms_norm": op.rms_norm, "layer_norm": op.layer_norm}


def normal(*shape: int, dtype: Any = BF16) -> Any:
    return (np.random.default_rng([*shape]).standard_normal(shape) * 3 + 1).astype(np.float32).astype(dtype)


def check(call: str, x: Any, kind: Any, block: Any, operands: str) -> None:
    """Compare all results with the norm in float64 of the rounded sum."""
    n = x.shape[-1]
    given: dict[str, Any] = {"weight": normal(n, dtype=x.dtype) if "w" in operands else None}
    if "b" in operands:
        given["bias"] = normal(n + 0, dtype=x.dtype)[::-1].copy()
    if "r" in operands:
        given["residual"] = normal(*x.shape[::-1], dtype=x.dtype).T
    eps = 1e-3
    q, scales, *total = CALLS[call](x, eps=eps, quantize=kind, block=block, device="cpu", **given)
    wide = x.astype(np.float64)
    if "r" in operands:
        rounded = (x.astype(np.float32) + given["residual"].astype(np.float32)).astype(x.dtype)
        np.testing.assert_array_equal(total[0], rounded)
        wide = rounded.astype(np.float64)
    if call == "layer_norm":
        wide = wide - wide.mean(-1, keepdims=True)
    exact = wide / np.sqrt((wide**2).mean(-1, keepdims=True) + eps)
    exact = exact if given["weight"] is None else exact * given["weight"].astype(np.float64)
    exact = exact + given["bias"].astype(np.float64) if "b" in operands else exact
    columns = 128 if block == 128 else n
    count = -(-n // columns)
    padded = np.zeros((*x.shape[:-1], count * columns))
    padded[..., :n] = np.abs(exact)
    amax = padded.reshape(*x.shape[:-1], count, columns).max(-1)
    assert q.dtype == kind and q.shape == x.shape and scales.shape == (*x.shape[:-1], count) == amax.shape
    np.testing.assert_allclose(scales, np.where(amax > 0, amax / LARGEST[kind], 1), rtol=1e-5)
    each = scales.astype(np.float64).repeat(columns, -1)[..., :n]
    # Half a unit in the last place, and the errors of the norm and of the inverse in f32.
    unit = {E4M3: 2.0**-4, E5M2: 2.0**-3}.get(kind, 0.0) * np.abs(exact / each) + (0.5 if kind is np.int8 else 2.0**-10)
    assert (np.abs(q.astype(np.float64) - exact / each) <= unit * 1.001 + 1e-3).all()


@pytest.mark.sample("x0-rms_norm-wr-None", "x1-layer_norm-wb-128")
@pytest.mark.parametrize("block", [None, 128], ids=str)
@pytest.mark.parametrize(
    ("call", "operands"), [("rms_norm", "wr"), ("rms_norm", ""), ("layer_norm", "wb"), ("layer_norm", "wbr")]
)
@pytest.mark.parametrize(
    "x",
    [
        normal(3, 256), normal(5, 130, dtype=np.float32), normal(2, 97, dtype=np.float16), normal(40, 16),
        normal(2, 700)[:, 3:], normal(200, 3).T, normal(2, 1500),
    ],
)  # fmt: skip
def test_norms(x: Any, call: str, operands: str, block: Any) -> None:
    """Aligned and odd rows, parts of a warp, unaligned addresses, and transposed arrays."""
    check(call, x, np.int8 if block else E4M3, block, operands)


def test_three_dimensions_and_other_arguments() -> None:
    x = normal(2, 3, 40, dtype=np.float32)
    q, scales = op.rms_norm(x, (40,), None, 1e-5, quantize=E5M2, block="row", device="cpu")
    again, same = op.rms_norm(x.reshape(6, 40), None, 1e-5, quantize="f8E5M2", device="cpu")
    np.testing.assert_array_equal(q.reshape(6, 40).view(np.uint8), again.view(np.uint8))
    np.testing.assert_array_equal(scales.reshape(6, 1), same)


@pytest.mark.slow
def test_long_rows() -> None:
    """Rows that do not fit into registers are normalized and quantized by separate kernels."""
    x = normal(1, 16400, dtype=np.float32)
    q, scales, total = op.rms_norm(x, residual=x, quantize="int8", device="cpu")
    y, sums = op.rms_norm(x, residual=x, device="cpu")
    wanted, of_rows = op.quantize(y, "int8", block="row", device="cpu")
    np.testing.assert_array_equal(q, wanted)
    np.testing.assert_array_equal(scales, of_rows)
    np.testing.assert_array_equal(total, sums)


def test_special_values() -> None:
    """A row of zeros has the scale 1, one with NaN has that scale, and other rows are not affected."""
    x = np.zeros((3, 256), np.float32)
    x[1, 5], x[2] = np.nan, 2.0
    q, scales = op.rms_norm(x, quantize="int8", block=128, device="cpu")
    np.testing.assert_array_equal(scales[:2], [[1, 1], [np.nan, np.nan]])
    assert not q[0].any() and (q[2] == 127).all()
    for shape in ((0, 8), (3, 0)):
        q, scales = op.layer_norm(np.zeros(shape, np.float32), quantize="int8", device="cpu")
        assert q.shape == shape and scales.shape == (shape[0], 1)


@pytest.mark.slow
@pytest.mark.end_to_end
def test_operator() -> None:
    torch = pytest.importorskip("torch")
    import_module("cute_dialect.op.operators.table")  # registers the operators
    x, w = torch.tensor(normal(3, 200, dtype=np.float32)), torch.rand(200)
    call = torch.ops.cute.norm_quantize.default
    utils = ("test_schema", "test_faketensor")
    torch.library.opcheck(call, ("rms_norm", x, None, w, None, 1e-5, "i8", "block"), test_utils=utils)
    torch.library.opcheck(call, ("layer_norm", x, x, w, w, 1e-5, "f8E4M3FN", "row"), test_utils=utils)

    def both(x: Any) -> Any:
        q, scales, total = op.rms_norm(x, w, 1e-5, residual=x, quantize="int8", block=128, device="cpu")
        return op.dequantize(q, scales, device="cpu") + total

    compiled = torch.compile(both, fullgraph=True, backend="aot_eager")
    q, scales, total = op.rms_norm(x, w, 1e-5, residual=x, quantize=torch.int8, block=128, device="cpu")
    assert torch.equal(compiled(x), op.dequantize(q, scales, device="cpu") + total)
    with pytest.raises(op.UnsupportedError, match="quantize has no gradient; call it under"):
        op.rms_norm(x, w.requires_grad_(), quantize="int8", device="cpu")


def test_explanation() -> None:
    found = op.explain(op.rms_norm, (4096, 4096), (4096,), residual=(4096, 4096), quantize="f8E4M3FN", element="bf16")
    assert found.kernel == "rms_norm-quantize-bf16-f8E4M3FN-row-wr-128x4"
    assert found.bytes == 4096 * 4096 * 7 + 4096 * 2 + 4096 * 4 and "per row" in str(found)
    assert str(found).startswith("rms_norm with quantize of 4096 x 4096 bf16 to f8E4M3FN\n")


X = np.zeros((3, 8), np.float32)


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: op.rms_norm(X, quantize="bf16", device="cpu"), op.DtypeError, "quantize=bf16 is not supported; use"),
        (lambda: op.rms_norm(X, quantize="int8", block=64), op.UnsupportedError, "block=64 is not supported with"),
        (lambda: op.rms_norm(X, block=128, device="cpu"), op.ArgumentError, "block=128 needs quantize; pass the 8-bit"),
        (lambda: op.rms_norm(X, quantize="int8", out=X), op.UnsupportedError, "out is not supported with quantize"),
        (
            lambda: op.layer_norm(X, (3, 8), quantize="int8"), op.UnsupportedError,
            r"normalized_shape of several dimensions, \(3, 8\); reshape x to rows",
        ),
        (lambda: op.layer_norm(X, X[0, 1:], quantize="int8", device="cpu"), op.ShapeError, "weight has shape"),
        (lambda: op.explain(op.rms_norm, (2, 0), quantize="int8"), op.ShapeError, "it must not be empty"),
        (lambda: op.explain(op.rms_norm, (2, 8), quantize="int8", element="i8"), op.DtypeError, "x has dtype i8"),
        (lambda: op.explain(op.rms_norm, (2, 1 << 20), quantize="int8"), op.UnsupportedError, "by separate kernels"),
    ],
)  # fmt: skip
def test_errors(call: Any, error: type[op.OpError], words: str) -> None:
    with pytest.raises(error, match=words):
        call()


def test_rows_without_elements_have_scale_1() -> None:
    torch = pytest.importorskip("torch")
    for element in ("int8", "f8E4M3FN"):
        q, scales = op.rms_norm(torch.empty(3, 0).bfloat16(), quantize=element, device="cpu")
        assert q.shape == (3, 0)
        assert scales.tolist() == [[1.0]] * 3
