"""Float ``//`` and ``%`` agree with numpy's ``floor_divide`` and ``remainder`` bit for bit."""

from __future__ import annotations

import itertools
import math
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import cute_dialect.lang as cute
from cute_dialect.lang.values.dtypes import Numeric

KINDS = ((cute.Float16, np.float16), (cute.BFloat16, ml_dtypes.bfloat16), (cute.Float32, np.float32),
         (cute.Float64, np.float64))  # fmt: skip
SPECIAL = (0.0, -0.0, 1.0, -1.0, 1.5, -1.5, 0.3, -0.3, 0.1, 2.5, -2.5, 7.0, 1e-7, -1e-7, 1e4, math.inf, -math.inf,
           math.nan)  # fmt: skip


@cute.kernel
def divides(x: cute.Tensor, y: cute.Tensor, quotient: cute.Tensor, rest: cute.Tensor) -> None:
    i = cute.arch.block_idx().x * 128 + cute.arch.thread_idx().x
    if i < cute.size(x):
        quotient[i] = x[i] // y[i]
        rest[i] = x[i] % y[i]


@cute.kernel
def divides_vectors(x: Any, y: Any, quotient: Any, rest: Any) -> None:
    i = cute.arch.block_idx().x * 128 + cute.arch.thread_idx().x
    if i < x.shape[0]:
        a, b = x[i, None].load(), y[i, None].load()
        quotient[i, None].store(a // b)
        rest[i, None].store(a % b)


def pairs(kind: Any, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Return dividends and divisors: special values, and random values of every magnitude of the type."""
    random = np.random.default_rng(7)
    limits = ml_dtypes.finfo(kind)
    greatest, least = float(limits.max), float(limits.smallest_subnormal)
    low, high = math.log2(least), math.log2(greatest)
    ends = (greatest, -greatest, least, -least, 3 * least, greatest / 3)
    sides = np.array(list(itertools.product((*SPECIAL, *ends), repeat=2)), kind).T
    wild = [2.0 ** random.uniform(low, high, count) * random.choice([-1, 1], count) for _ in range(2)]
    near = random.normal(size=count) * 100, random.normal(size=count)
    whole = random.integers(-50, 50, count).astype(float), random.choice([0.1, 0.5, 3.0, -0.7], count)
    made = [np.concatenate([sides[n].astype(np.float64), wild[n], near[n], whole[n]]).astype(kind) for n in (0, 1)]
    return made[0], made[1]


def expected(x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    wide = np.float64 if x.dtype == np.float64 else np.float32
    with np.errstate(all="ignore"):
        a, b = x.astype(wide), y.astype(wide)
        return np.floor_divide(a, b).astype(x.dtype), np.remainder(a, b).astype(x.dtype)


def same(got: np.ndarray, wanted: np.ndarray, x: np.ndarray, y: np.ndarray) -> None:
    bits = f"u{x.itemsize}"
    with np.errstate(all="ignore"):
        nans = np.isnan(got.astype(np.float64)) & np.isnan(wanted.astype(np.float64))
    wrong = np.flatnonzero((got.view(bits) != wanted.view(bits)) & ~nans)
    assert not wrong.size, [(x[i], y[i], got[i], wanted[i]) for i in wrong[:5]]


@pytest.mark.sample("Float16-float16", "BFloat16-bfloat16", "Float32-float32")
@pytest.mark.parametrize(("ours", "kind"), KINDS, ids=lambda k: getattr(k, "__name__", str(k)))
def test_numbers(ours: type[Numeric], kind: Any) -> None:
    x, y = pairs(kind, 300)
    quotient, rest = np.empty_like(x), np.empty_like(x)
    divides(x, y, quotient, rest).launch(grid=-(-x.size // 128), block=128, device="cpu")
    for got, wanted in zip((quotient, rest), expected(x, y)):
        same(got, wanted, x, y)


@pytest.mark.parametrize(("ours", "kind"), KINDS, ids=lambda k: getattr(k, "__name__", str(k)))
def test_static_numbers(ours: type[Numeric], kind: Any) -> None:
    x, y = pairs(kind, 100)
    found = [[float((ours(float(a)) // ours(float(b))).value), float((ours(float(a)) % ours(float(b))).value)]
             for a, b in zip(x, y)]  # fmt: skip
    for got, wanted in zip(np.array(found).T, expected(x, y)):
        same(got.astype(kind), wanted, x, y)


def test_the_reference_is_pythons() -> None:
    """In f64, numpy's division equals Python's wherever Python does not raise."""
    x, y = pairs(np.float64, 200)
    for a, b, q, r in zip(x, y, *expected(x, y)):
        if b != 0:
            for got, wanted in ((q, float(a) // float(b)), (r, float(a) % float(b))):
                assert str(float(got)) == str(wanted), (a, b)


@pytest.mark.parametrize("kind", [np.float16, np.float32], ids=lambda k: k.__name__)
def test_vectors(kind: Any) -> None:
    x, y = pairs(kind, 100)
    n = x.size // 4 * 4
    x, y = x[:n].reshape(-1, 4), y[:n].reshape(-1, 4)
    quotient, rest = np.empty_like(x), np.empty_like(x)
    given = [cute.from_dlpack(t) for t in (x, y, quotient, rest)]
    divides_vectors(*given).launch(grid=-(-n // 512), block=128, device="cpu")
    for got, wanted in zip((quotient, rest), expected(x, y)):
        same(got.reshape(-1), wanted.reshape(-1), x.reshape(-1), y.reshape(-1))


def test_short_quotients_need_no_loop_iteration() -> None:
    """The IR has one loop per division and no library call."""
    compiled = cute.compile(divides, *[np.zeros(4, np.float32)] * 4, grid=1, block=128, chip="sm_90a", device="cpu")
    text = compiled.mlir()
    assert text.count("scf.while") == 2 and "remf" not in text


@cute.jit
def divided_on_the_host(a: cute.Float32, b: cute.Float32):
    return a // b, a % b


@pytest.mark.parametrize(("a", "b"), [(-7.5, 2.0), (7.5, 2.0), (7.5, -2.0), (1e9, 0.375)])
def test_a_host_function_without_launches_divides(a: float, b: float) -> None:
    x, y = np.float32(a), np.float32(b)
    assert divided_on_the_host(a, b) == (np.floor_divide(x, y), np.remainder(x, y))
