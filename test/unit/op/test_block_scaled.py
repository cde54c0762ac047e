"""``op.scaled_mm`` with scales of 32 or 16 elements along K, on the interpreter, compared with float64."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from cute_dialect import op

CHECKS = ("race", "uninit", "oob", "sync")
E2M1 = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6])
E2M1 = np.concatenate([E2M1, -E2M1])
FORMATS = {
    "e4m3": (ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e8m0fnu, 32),
    "e5m2": (ml_dtypes.float8_e5m2, ml_dtypes.float8_e8m0fnu, 32),
    "mxf4": (np.uint8, ml_dtypes.float8_e8m0fnu, 32),
    "nvf4": (np.uint8, ml_dtypes.float8_e4m3fn, 16),
}
"""Format -> types of a matrix and of its scales, and the width of a block."""


def operand(rng: np.random.Generator, kind: str, rows: int, k: int) -> tuple[Any, Any, Any]:
    """Return a matrix, its scales, and the scaled values."""
    element, scale, width = FORMATS[kind]
    if element is np.uint8:
        x = rng.integers(0, 256, (rows, k // 2)).astype(np.uint8)
        values = E2M1[np.stack([x & 15, x >> 4], -1)].reshape(rows, k)
    else:
        x = rng.integers(-4, 5, (rows, k)).astype(element)
        values = x.astype(np.float64)
    scales = np.exp2(rng.integers(-2, 3, (rows, -(-k // width)))).astype(scale)
    return x, scales, values * scales.astype(np.float64).repeat(width, 1)[:, :k]


def blocks_of(scales: Any) -> Any:
    """Return scales in blocks of 128 x 4: row m, scale s at byte 16 * (m % 32) + 4 * (m // 32) + s of a block."""
    rows, columns = scales.shape
    across = -(-columns // 4)
    found = np.zeros(-(-rows // 128) * across * 512, np.uint8)
    m, s = np.indices(scales.shape)
    found[(m // 128 * across + s // 4) * 512 + 16 * (m % 32) + 4 * (m % 128 // 32) + s % 4] = scales.view(np.uint8)
    return found.view(scales.dtype)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(16))
def test_random_problems(seed: int) -> None:
    """Random formats, sizes, layouts of the scales, results and biases. All results are exact in f32."""
    rng = np.random.default_rng(seed)
    kinds = ["e4m3", "e5m2"][seed % 2], ["e4m3", "e5m2"][seed // 2 % 2]
    kinds = kinds if seed < 8 else (["mxf4", "nvf4"][seed % 2],) * 2
    m, n, k = (int(x) for x in rng.integers(1, (200, 140, 200)))
    k = k if seed < 8 else -(-k // 2) * 2
    (a, sa, wa), (b, sb, wb) = (operand(rng, kind, rows, k) for kind, rows in zip(kinds, (m, n)))
    scales = [blocks_of(s) if rng.integers(2) else s for s in (sa, sb)]
    bias = rng.integers(-3, 4, n).astype(np.float32) if rng.integers(2) else None
    dtype = ["f32", "bf16", "f16"][rng.integers(3)]
    schedule = ["round-robin", "reverse", "adversarial", "random"][rng.integers(4)]
    c = op.scaled_mm(a, b.T, *scales, bias=bias, dtype=dtype, device="cpu", checks=CHECKS, schedule=schedule)
    wanted = wa @ wb.T + (0 if bias is None else bias)
    assert np.array_equal(np.asarray(c), wanted.astype(np.float32).astype(np.asarray(c).dtype))


@pytest.mark.slow
@pytest.mark.end_to_end
def test_torch_tensors() -> None:
    """4-bit floats of torch with scales in blocks, whose padding may hold anything, into a given result."""
    torch = pytest.importorskip("torch")
    rng = np.random.default_rng(0)
    (a, sa, wa), (b, sb, wb) = (operand(rng, "nvf4", rows, 96) for rows in (40, 24))
    a, b = (torch.from_numpy(x).view(torch.float4_e2m1fn_x2) for x in (a, b))
    blocks = [blocks_of(s).view(np.uint8) for s in (sa, sb)]
    for x, s in zip(blocks, (sa, sb)):
        x[blocks_of(np.ones(s.shape, np.uint8)) == 0] = 255
    scales = [torch.from_numpy(x).view(torch.float8_e4m3fn) for x in blocks]
    out = torch.full((40, 24), torch.nan)
    assert op.scaled_mm(a, b.t(), *scales, out=out, recipe="block1x16", device="cpu", checks=CHECKS) is out
    assert np.array_equal(out.numpy(), wa @ wb.T)


def test_empty_matrices() -> None:
    rng = np.random.default_rng(0)
    a, sa, _ = operand(rng, "mxf4", 3, 0)
    b, sb, _ = operand(rng, "mxf4", 5, 0)
    bias = np.arange(5, dtype=np.float32)
    c = op.scaled_mm(a, b.T, sa, sb, bias=bias, dtype="f32", device="cpu")
    assert np.array_equal(np.asarray(c), np.tile(bias, (3, 1)))
    assert op.scaled_mm(a[:0], b.T, sa[:0], sb, device="cpu").shape == (0, 5)


@pytest.mark.parametrize("is_blocks", [False, True])
def test_scales_with_a_sign_are_refused(is_blocks: bool) -> None:
    """The MMA reads e4m3 scales as unsigned."""
    rng = np.random.default_rng(0)
    (a, sa, _), (b, bad, _) = (operand(rng, "nvf4", rows, 96) for rows in (7, 5))
    bad[3, 4] = -2
    with pytest.raises(op.OpError, match=r"scaled_mm: scale_b is -2\.0 for row 3, block 4 of K; e4m3 scales are"):
        op.scaled_mm(a, b.T, sa, blocks_of(bad) if is_blocks else bad, device="cpu")
