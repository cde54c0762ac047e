"""``cute.gemm`` of tcgen05, and copies of tensor memory, on the CPU interpreter."""

from __future__ import annotations

from dataclasses import dataclass, field

import ml_dtypes
import numpy as np
import pytest
from ops_support import type_of
from tcgen05_kernels import Gemm, round_trip

from cute_dialect.arch.tmem import SHAPES
from cute_dialect.pipelines import compile as compile_cute

CHECKS = ("race", "oob", "uninit", "sync", "strict")

NUMBERS: dict[str, np.dtype] = {
    "f32": np.dtype(np.float32),
    "tf32": np.dtype(np.float32),
    "f16": np.dtype(np.float16),
    "bf16": np.dtype(ml_dtypes.bfloat16),
    "f8E4M3FN": np.dtype(ml_dtypes.float8_e4m3fn),
    "f8E5M2": np.dtype(ml_dtypes.float8_e5m2),
    "f6E2M3FN": np.dtype(ml_dtypes.float6_e2m3fn),
    "f6E3M2FN": np.dtype(ml_dtypes.float6_e3m2fn),
    "f4E2M1FN": np.dtype(ml_dtypes.float4_e2m1fn),
    "i32": np.dtype(np.int32),
    "i8": np.dtype(np.int8),
    "ui8": np.dtype(np.uint8),
}


@dataclass(frozen=True)
class Case:
    """A product: element types by name, and the other parameters of :class:`Gemm`."""

    types: str
    shape: tuple[int, int, int]
    more: dict[str, object] = field(default_factory=dict)

    def gemm(self) -> Gemm:
        """Return the kernel."""
        d, a, b = (type_of(t) for t in self.types.split())
        return Gemm((d, a, b), self.shape, **self.more)  # type: ignore[arg-type]


CASES = {
    "bf16": Case("f32 bf16 bf16", (128, 64, 4)),
    "f16 to f16, loads of 16-bit values": Case("f16 f16 f16", (128, 32, 4)),
    "half of the lanes": Case("f32 f16 f16", (64, 40, 4), {"load": ("16x256b", 1)}),
    "four tiles": Case("f32 bf16 bf16", (128, 32, 4), {"tiles": (2, 2)}),
    "four tiles of 64 rows": Case("f32 bf16 bf16", (64, 32, 4), {"tiles": (2, 2), "load": ("16x64b", 4)}),
    "A mn-major": Case("f32 f16 f16", (128, 64, 2), {"majors": ("mn", "k"), "widths": (128, 64)}),
    "B mn-major": Case("f32 bf16 bf16", (128, 64, 3), {"majors": ("k", "mn"), "widths": (32, 64)}),
    "both mn-major, no swizzle": Case("f32 f16 f16", (64, 24, 2), {"majors": ("mn", "mn"), "widths": (0, 0),
                                                                 "load": ("16x128b", 2)}),
    "no swizzle": Case("f32 bf16 bf16", (128, 16, 2), {"widths": (0, 32)}),
    "tf32": Case("f32 tf32 tf32", (128, 32, 4)),
    "tf32 mn-major": Case("f32 tf32 tf32", (128, 32, 2), {"majors": ("mn", "mn")}),
    "8 bits": Case("f32 f8E4M3FN f8E5M2", (128, 32, 4)),
    "8 bits mn-major": Case("f32 f8E5M2 f8E4M3FN", (128, 64, 2), {"majors": ("mn", "mn"), "widths": (128, 64)}),
    "8 bits to f16": Case("f16 f8E4M3FN f8E4M3FN", (128, 16, 2), {"widths": (64, 32)}),
    "6 and 4 bits": Case("f32 f6E2M3FN f4E2M1FN", (128, 32, 4)),
    "6 and 8 bits": Case("f32 f6E3M2FN f8E4M3FN", (64, 16, 4), {"load": ("16x32bx2", 2)}),
    "integers": Case("i32 i8 ui8", (128, 32, 4)),
    "integers mn-major": Case("i32 ui8 ui8", (64, 32, 2), {"majors": ("mn", "k"), "widths": (64, 32),
                                                        "load": ("16x64b", 8)}),
    "negated": Case("f32 bf16 bf16", (128, 16, 4), {"negate": "B"}),
}  # fmt: skip


def operand(rng: np.random.Generator, name: str, shape: tuple[int, int]) -> np.ndarray:
    """Return values whose products have exact sums."""
    if name in ("i8", "ui8"):
        return rng.integers(-100 if name == "i8" else 0, 100, shape).astype(NUMBERS[name])
    return rng.integers(-4, 5, shape).astype(np.float32).astype(NUMBERS[name])


BITS = {"f6E2M3FN": 6, "f6E3M2FN": 6, "f4E2M1FN": 4}


def padded(values: np.ndarray, bits: int) -> np.ndarray:
    """Return rows of bytes: 16 elements of 4 or 6 bits, the first in the lowest bits, and padding to 16 bytes."""
    codes = values.view(np.uint8).reshape(*values.shape[:-1], -1, 16)
    each = np.unpackbits(codes[..., None], axis=-1, bitorder="little")[..., :bits]
    packed = np.packbits(each.reshape(*codes.shape[:-1], 16 * bits), axis=-1, bitorder="little")
    out = np.full(codes.shape, 0xEE, np.uint8)
    out[..., : 2 * bits] = packed
    return out.reshape(values.shape).view(np.int8)


@pytest.mark.sample("half of the lanes", "A mn-major", "tf32 mn-major", "6 and 4 bits")
@pytest.mark.parametrize("case", CASES.values(), ids=list(CASES))
def test_gemm(case: Case) -> None:
    """The result is exact, and strict checks report nothing."""
    gemm = case.gemm()
    m, n, k = gemm.extents()
    d, a, b = case.types.split()
    rng = np.random.default_rng(len(case.types) + m + n + k)
    given = [operand(rng, t, (rows, k)) for t, rows in ((a, m), (b, n))]
    wanted = given[0].astype(np.float64) @ given[1].astype(np.float64).T
    wanted *= -1 if gemm.negate else 1
    out = np.full((m, n), 77, NUMBERS[d])
    held = [padded(x, BITS[t]) if t in BITS else x for x, t in zip(given, (a, b))]
    arrays = [np.asfortranarray(x) if major == "mn" else x for x, major in zip(held, gemm.majors)]
    kernel = compile_cute(gemm.text(), emit="base").kernel("k")
    kernel(*arrays, out, grid=(1, 1, 1), block=(128, 1, 1), device="cpu", checks=CHECKS)
    np.testing.assert_array_equal(out.astype(np.float64), wanted)


@pytest.mark.sample(every=12)
@pytest.mark.parametrize("loaded", SHAPES)
@pytest.mark.parametrize("stored", SHAPES)
@pytest.mark.parametrize("element", ["f32", "f16"])
def test_round_trip(element: str, stored: str, loaded: str) -> None:
    """Loads of any shape return the values that stores of any shape have written."""
    columns = 64
    bits = 32 if element == "f32" else 16
    times = {shape: 16 * 32 // bits // SHAPES[shape].columns for shape in (stored, loaded)}
    text = round_trip(type_of(element), columns, (stored, times[stored]), (loaded, times[loaded]))
    given = np.arange(128 * columns).reshape(128, columns).astype(NUMBERS[element])
    out = np.zeros_like(given)
    kernel = compile_cute(text, emit="base").kernel("k")
    kernel(given, out, grid=(1, 1, 1), block=(128, 1, 1), device="cpu", checks=CHECKS)
    np.testing.assert_array_equal(out, given)
