"""``op.scaled_mm`` on the interpreter, compared with float64."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from cute_dialect import op

E4, E5 = ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2


def factors(m: int, n: int, k: int, of_b: Any = E4) -> tuple[np.ndarray, np.ndarray]:
    """Return small integers, contiguous along K."""
    rng = np.random.default_rng(m + n + k)
    return rng.integers(-3, 4, (m, k)).astype(E4), rng.integers(-3, 4, (n, k)).astype(of_b).T


def powers(*shape: int, seed: int = 0) -> np.ndarray:
    """Return powers of two, which keep accumulators exact."""
    return np.exp2(np.random.default_rng(seed).integers(-3, 4, shape)).astype(np.float32)


def wide(x: np.ndarray) -> np.ndarray:
    return x.astype(np.float64)


@pytest.mark.end_to_end
@pytest.mark.sample("of_a0-of_b0-False")
@pytest.mark.parametrize("fast", [False, True])
@pytest.mark.parametrize(("of_a", "of_b"), [((1,), (1,)), ((40, 1), (1, 96)), ((40, 1), ()), ((1, 1), (1, 96))])
def test_scales_of_rows_and_of_all(of_a: tuple[int, ...], of_b: tuple[int, ...], fast: bool) -> None:
    a, b = factors(40, 96, 272, E5)
    sa, sb = powers(*of_a), powers(*of_b, seed=1)
    found = op.scaled_mm(a, b, sa, sb, dtype="f32", fast=fast, device="cpu")
    exact = wide(a) @ wide(b) * sa * sb
    assert found.dtype == np.float32 and (found == exact).all()
    bias = np.arange(96).astype(np.float32)
    found = op.scaled_mm(a, b, sa, sb, bias=bias, fast=fast, device="cpu")
    assert found.dtype == ml_dtypes.bfloat16 and (found == (exact + bias).astype(np.float32).astype(found.dtype)).all()


@pytest.mark.slow
def test_results_with_a_scale() -> None:
    a, b = factors(40, 96, 80)
    sa, sb, so = powers(40, 1), powers(1, 96, seed=1), np.full(1, 2.0**-6, np.float32)
    exact = (wide(a) @ wide(b) * sa * sb * so).clip(-448, 448)
    for scale in (so, 2.0**-6):
        found = op.scaled_mm(a, b, sa, sb, scale_out=scale, dtype=E4, device="cpu")
        assert (wide(found) == wide(exact.astype(np.float32).astype(E4))).all()
    out = np.zeros((40, 96), np.float16)
    assert op.scaled_mm(a, b, sa, sb, out=out, device="cpu") is out and (out == wide(a) @ wide(b) * sa * sb).all()


@pytest.mark.slow
@pytest.mark.parametrize("shape", [(40, 272, 400), (200, 144, 128), (5, 7, 1)])
@pytest.mark.parametrize("fused", [False, True])
def test_scales_of_blocks(shape: tuple[int, int, int], fused: bool) -> None:
    m, n, k = shape
    a, b = factors(m, n, k)
    blocks = -(-k // 128)
    sa, sb = np.asfortranarray(powers(m, blocks)), powers(-(-n // 128), blocks, seed=1)
    bias = np.arange(n).astype(np.float32) if fused else None
    found = op.scaled_mm(a, b, sa, sb, recipe="block", bias=bias, dtype="f32", device="cpu")
    exact = np.zeros((m, n))
    for i in range(blocks):
        part = slice(128 * i, 128 * i + 128)
        exact += wide(a[:, part]) @ wide(b[part]) * sa[:, i : i + 1] * np.repeat(sb[:, i], 128)[:n]
    assert (found == exact + (bias if fused else 0)).all()


@pytest.mark.slow
@pytest.mark.parametrize("shape", [(40, 272, 400), (67, 133, 257), (5, 7, 1), (3, 1, 130)])
@pytest.mark.parametrize("fused", [False, True])
def test_scales_of_columns_in_blocks(shape: tuple[int, int, int], fused: bool) -> None:
    m, n, k = shape
    a, b = factors(m, n, k)
    blocks = -(-k // 128)
    sa, sb = np.asfortranarray(powers(m, blocks)), np.asfortranarray(powers(n, blocks, seed=1))
    bias, checks = np.arange(n).astype(np.float32) if fused else None, ["race", "uninit", "oob", "sync"]
    found = op.scaled_mm(a, b, sa, sb, bias=bias, dtype="f32", device="cpu", checks=checks)
    exact = np.zeros((m, n))
    for i in range(blocks):
        part = slice(128 * i, 128 * i + 128)
        exact += wide(a[:, part]) @ wide(b[part]) * sa[:, i : i + 1] * sb[:, i]
    assert (found == exact + (bias if fused else 0)).all()
    for recipe in ("block", "block1x128", ("block", "block1x128")):
        assert (op.scaled_mm(a, b, sa, sb.copy(), recipe=recipe, bias=bias, dtype="f32", device="cpu") == found).all()


@pytest.mark.slow
def test_exponents_of_columns() -> None:
    a, b = factors(40, 144, 272)
    rng = np.random.default_rng(9)
    sa, sb = (rng.integers(124, 131, (n, 3)).astype(np.uint8).view(ml_dtypes.float8_e8m0fnu) for n in (40, 144))
    x, y = wide(sa).repeat(128, 1)[:, :272], wide(sb).repeat(128, 1)[:, :272]
    assert (op.scaled_mm(a, b, sa, sb, dtype="f32", device="cpu") == (x * wide(a)) @ (y.T * wide(b))).all()


@pytest.mark.slow
def test_e8m0_scales() -> None:
    """Scales of type e8m0, including the smallest, the largest and NaN."""
    a, b = factors(40, 144, 272)
    rng = np.random.default_rng(8)
    sa, sb = (rng.integers(124, 131, s).astype(np.uint8) for s in ((40, 3), (2, 3)))
    sa[3], sa[4], sa[5, 1] = 0, 230, 255
    e8m0 = ml_dtypes.float8_e8m0fnu
    found = op.scaled_mm(a, b, sa.view(e8m0), sb.view(e8m0), dtype="f32", device="cpu", checks=["race", "uninit"])
    x, y = wide(sa.view(e8m0)).repeat(128, 1)[:, :272], wide(sb.view(e8m0)).repeat(128, 1)[:, :272].repeat(128, 0)[:144]
    exact = (x * wide(a)) @ (y.T * wide(b))
    assert np.isnan(found[5]).all() and np.isnan(exact[5]).all()
    np.testing.assert_array_equal(np.delete(found, 5, 0), np.delete(exact, 5, 0).astype(np.float32))
    rows, columns = sa[:, :1].view(e8m0), rng.integers(124, 131, (1, 144)).astype(np.uint8).view(e8m0)
    found = op.scaled_mm(a, b, rows, columns, dtype="f32", device="cpu")
    np.testing.assert_array_equal(found, (wide(a) @ wide(b) * wide(rows) * wide(columns)).astype(np.float32))
    with pytest.raises(
        op.DtypeError, match=("scaled_mm: scale_b has dtype f32, but scale_a has dtype float8_e8m0fnu; pass one dtype")
    ):
        op.scaled_mm(a, b, sa.view(e8m0), powers(2, 3), device="cpu")


@pytest.mark.sample("0-96-272", "64-0-272", "0-0-0")
@pytest.mark.parametrize("m,n,k", [(0, 96, 272), (64, 0, 272), (64, 96, 0), (0, 0, 0)])
def test_block_scales_of_empty_matrices(m: int, n: int, k: int) -> None:
    """A result without elements is empty; without elements along K it is zero, or the bias."""
    a, b = np.zeros((m, k), E4), np.zeros((n, k), E4).T
    rows, columns, blocks = m, -(-n // 128), -(-k // 128)
    sa, sb = np.ones((rows, blocks), np.float32), np.ones((columns, blocks), np.float32)
    bias = np.arange(n, dtype=np.float32)
    found = op.scaled_mm(a, b, sa, sb, recipe="block", bias=bias, dtype="f32", device="cpu")
    assert (found == np.broadcast_to(bias, (m, n))).all() and found.shape == (m, n)
    out = np.full((m, n), 7, np.float32)
    assert op.scaled_mm(a, b, sa, sb, out=out, recipe="block", device="cpu") is out and not out.any()
    groups, scales = np.stack([b, b]), np.stack([sb, sb])
    ends = np.array([m // 2, m], np.int32)
    found = op.scaled_grouped_mm(a, groups, sa, scales, offs=ends, recipe="block", device="cpu")
    assert found.shape == (m, n) and not found.any()


@pytest.mark.slow
def test_scaling_mode_is_inferred_from_shapes() -> None:
    a, b = factors(40, 136, 144)
    sa, sb = powers(40, 2), powers(2, 2, seed=1)
    inferred = op.scaled_mm(a, b, sa, sb, device="cpu")
    assert (inferred == op.scaled_mm(a, b, sa, sb, recipe=("block", "block"), device="cpu")).all()


@pytest.mark.sample(every=4)
@pytest.mark.parametrize(
    ("change", "error", "said"),
    [
        ({"scale_a": powers(40, 5)}, op.ShapeError,
         r"scale_a has shape \(40, 5\), but a has shape \(40, 400\); pass scale_a of \(1,\), \(40, 1\) or \(40, 4\)"),
        ({"recipe": "row"}, op.ShapeError, r"scale_a has shape \(1,\), but a .*; pass scale_a of \(40, 1\)"),
        ({"recipe": "mx"}, op.UnsupportedError, "recipe 'mx' is not supported; use tensor, row, block, block1x128"),
        ({"scale_a": powers(40, 4)}, op.UnsupportedError, "use block scales for both or neither"),
        ({"scale_b": np.ones(1)}, op.DtypeError, "scale_b has dtype f64; pass an array of f32 or float8_e8m0fnu"),
        ({"scale_b": 2.0}, op.DtypeError, "scale_b is of type float; pass an array"),
        ({"a": np.ones((40, 400), np.float16)}, op.DtypeError, "a has dtype f16; pass an array of f8E4M3FN or f8E5M2"),
        ({"dtype": "f64"}, op.DtypeError, "a result of f64 is not supported for f8E4M3FN operands"),
    ],
)  # fmt: skip
def test_invalid_arguments_are_rejected(change: dict[str, Any], error: type[Exception], said: str) -> None:
    a, b = factors(40, 272, 400)
    given: dict[str, Any] = {"a": a, "b": b, "scale_a": powers(1), "scale_b": powers(1)}
    with pytest.raises(error, match=said):
        op.scaled_mm(**{**given, **change}, device="cpu")
