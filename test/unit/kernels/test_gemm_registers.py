"""Hopper GEMMs that load A into registers, because wgmma needs K-major shared memory for these types."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from cute_dialect.kernels.epilogue.combination import Epilogue
from cute_dialect.kernels.gemm import gemm_text
from cute_dialect.kernels.gemm.config import GemmConfig, SplitConfig
from cute_dialect.op.select.kernel_choice import Choice
from cute_dialect.pipelines import compile

TF32 = GemmConfig(
    element="tf32", output="f32", tile=(128, 64, 32), cluster_m=1, deferred=False, major_a="m", major_c="m"
)
INTEGERS = TF32._replace(element="i8", output="i32", tile=(128, 32, 128))
FLOATS = INTEGERS._replace(element="f8E4M3FN", output="bf16", tile=(64, 32, 128))
CHECKS = ("race", "uninit", "sync", "oob")
DTYPES: dict[str, Any] = {
    "f32": np.float32, "tf32": np.float32, "f16": np.float16, "bf16": ml_dtypes.bfloat16, "i8": np.int8,
    "i32": np.int32, "f8E4M3FN": ml_dtypes.float8_e4m3fn,
}  # fmt: skip
CASES: dict[str, tuple[GemmConfig | SplitConfig, tuple[int, ...]]] = {
    "columns of C": (TF32, (136, 72, 100)),
    "rows of C": (TF32._replace(major_c="n", sms=2), (200, 136, 72)),
    "columns of f16, odd chunks": (TF32._replace(tile=(64, 112, 32), output="f16"), (72, 120, 40)),
    "rows of f16, deferred": (
        TF32._replace(tile=(192, 48, 32), output="f16", major_c="n", deferred=True, sms=1), (200, 56, 72),
    ),
    "two instructions of rows, A in halves": (TF32._replace(tile=(256, 32, 32), cluster_n=2), (264, 72, 72)),
    "A shared by lines of K": (TF32._replace(tile=(64, 32, 32), cluster_n=4), (72, 136, 72)),
    "B shared, in turns": (TF32._replace(tile=(64, 48, 32), cluster_m=2, schedule="pingpong", sms=2), (264, 56, 72)),
    "batch": (TF32._replace(batch=True, tile=(64, 32, 32)), (72, 40, 40, 2)),
    "bytes, columns of C": (INTEGERS, (144, 40, 272)),
    "bytes, lines of 64, split-K": (
        SplitConfig(INTEGERS._replace(tile=(192, 32, 128), major_c="n", serpentine=False), 2), (208, 40, 528),
    ),
    "bytes to bytes, A shared": (
        INTEGERS._replace(tile=(256, 32, 128), output="i8", major_c="n", cluster_n=2), (272, 80, 144),
    ),
    "bytes in turns, two instructions of a line": (
        INTEGERS._replace(schedule="pingpong", cluster_m=2, major_c="n", sms=2), (272, 40, 272),
    ),
    "8-bit floats in turns, A shared": (
        FLOATS._replace(tile=(128, 32, 128), schedule="pingpong", cluster_n=2), (144, 72, 144),
    ),
    "8-bit floats, A shared by lines of K": (FLOATS._replace(cluster_n=2, deferred=True, sms=2), (144, 72, 272)),
    "8-bit floats in two levels": (FLOATS._replace(promote=True, major_c="n"), (80, 40, 272)),
    "split-K": (SplitConfig(TF32._replace(tile=(64, 64, 32), serpentine=False), 3), (72, 72, 200)),
}  # fmt: skip


def product(
    c: GemmConfig | SplitConfig, shape: tuple[int, ...], *, integers: bool = True, more: tuple[object, ...] = ()
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return A (M, K, L), B (N, K, L) and the kernel's result."""
    base = c.base if isinstance(c, SplitConfig) else c
    m, n, k, *matrices = shape
    rng = np.random.default_rng(sum(shape))

    def matrix(rows: int, columns: int, contiguous: int, values: Any = None) -> np.ndarray:
        x = np.full((*matrices, rows, columns), 77, DTYPES[base.output])
        if values is not None:
            x = values((*matrices, rows, columns)).astype(DTYPES[base.element])
        x = x if contiguous else x.swapaxes(-1, -2).copy().swapaxes(-1, -2)
        return x.transpose(1, 2, 0) if matrices else x

    def values(size: tuple[int, ...]) -> np.ndarray:
        most = 100 if base.output == "i32" else 1 if base.output in ("i8", "bf16") else 3
        return rng.integers(-most, most + 1, size) if integers else rng.standard_normal(size)

    a, b = matrix(m, k, base.major_a == "k", values), matrix(n, k, 1, values)
    out = matrix(m, n, base.major_c == "n")
    if isinstance(c, SplitConfig):
        size, counters = Choice(base, c.parts).workspace(*((n, m) if base.major_c == "m" else (m, n)))
        more = (np.full(size, np.nan, np.float32), np.zeros(counters, np.int32), *more)
    compile(gemm_text(c), emit="base").kernel("launch")(a, b, out, *more, device="cpu", checks=CHECKS)
    return a, b, out


def exact(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    if a.ndim == 2:
        return a.astype(np.float64) @ b.T.astype(np.float64)
    return np.stack([exact(a[..., i], b[..., i]) for i in range(a.shape[2])], axis=2)


@pytest.mark.slow
@pytest.mark.end_to_end
@pytest.mark.sample("batch")
@pytest.mark.parametrize("name", CASES)
def test_products(name: str) -> None:
    a, b, out = product(*CASES[name])
    assert (out == exact(a, b)).all()


@pytest.mark.slow
def test_the_same_bits_as_along_k() -> None:
    """The result is bitwise equal for M-major and K-major A."""
    shape = (72, 40, 104)
    c = TF32._replace(tile=(64, 32, 32), major_c="n")
    a, b, out = product(c, shape, integers=False)
    along_k = np.full_like(out, np.nan)
    text = gemm_text(c._replace(major_a="k"))
    compile(text, emit="base").kernel("launch")(np.ascontiguousarray(a), b, along_k, device="cpu")
    assert (out == along_k).all() and np.abs(out - exact(a, b)).max() > 1e-5


@pytest.mark.slow
@pytest.mark.parametrize("c", [TF32._replace(tile=(64, 32, 32)), INTEGERS._replace(tile=(64, 32, 128))], ids=str)
def test_no_bank_conflicts(c: GemmConfig) -> None:
    m, n, k = 64, 32, c.tile[2]
    a, b = (np.ones((rows, k), DTYPES[c.element], order=order) for rows, order in ((m, "F"), (n, "C")))
    out = np.zeros((m, n), DTYPES[c.output], order="F")
    kernel = compile(gemm_text(c), emit="base").kernel("launch")
    reads = [x for x in kernel(a, b, out, device="cpu", reports=("banks",)).profile.lines if x.op == "llvm.load"]
    assert len(reads) >= 8 and all(x.space == "shared" and x.transactions == x.ideal for x in reads)


@pytest.mark.slow
@pytest.mark.parametrize("major_c", ["n", "m"])
def test_an_epilogue_knows_the_rows(major_c: str) -> None:
    def placed(x: Any, row: Any, column: Any) -> Any:
        return x + row * 1000 + column

    c = TF32._replace(tile=(64, 32, 32), major_c=major_c, epilogue=Epilogue(bias="m", hook=placed))
    bias = np.arange(72, dtype=np.float32) * 3
    a, b, out = product(c, (72, 40, 40), more=(bias,))
    assert (out == exact(a, b) + bias[:, None] + np.arange(72)[:, None] * 1000 + np.arange(40)).all()


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        ({"major_b": "n"}, "B of .* must be K-major"),
        ({"cluster_n": 8, "tile": (64, 32, 32)}, "each of 8 blocks that share rows must load at least 8 of K"),
    ],
)
def test_invalid_configurations_are_rejected(changed: dict[str, Any], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        TF32._replace(**changed).check()
