"""Booleans, integers, f64 and random numbers in elementwise functions, compared with numpy and torch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from cute_dialect import op  # noqa: E402
from cute_dialect.op import epilogue as ep  # noqa: E402

CPU: dict[str, Any] = {"device": "cpu"}
RNG = np.random.default_rng(11)
MASK = RNG.random((5, 33)) < 0.5
X = RNG.standard_normal((5, 33)).astype(np.float32)
I32 = RNG.integers(-(2**30), 2**30, (5, 33)).astype(np.int32)
I64 = RNG.integers(-(2**61), 2**61, (5, 33))
F64 = RNG.standard_normal((5, 33))


def same(found: Any, wanted: np.ndarray) -> None:
    assert found.dtype == wanted.dtype and np.array_equal(found, wanted)


@pytest.mark.slow
def test_masks() -> None:
    """A bool mask of any memory order selects elements and is broadcast."""
    same(op.where(MASK, X, 0.0, **CPU), np.where(MASK, X, 0).astype(np.float32))
    same(op.where(MASK[:, :1], X, -1.0, **CPU), np.where(MASK[:, :1], X, -1).astype(np.float32))
    same(op.where(MASK[0], X, 1.0, **CPU), np.where(MASK[0], X, 1).astype(np.float32))
    same(op.where(MASK.T, X.T, 0.0, **CPU), np.where(MASK.T, X.T, 0).astype(np.float32))
    same(op.where(MASK[:, ::2], X[:, ::2], 0.0, **CPU), np.where(MASK[:, ::2], X[:, ::2], 0).astype(np.float32))
    same(op.where(np.True_.reshape(1), X, 0.0, **CPU), X)
    same(op.mul(MASK, X, **CPU), MASK * X)
    same(op.where(MASK, I32, -1, **CPU), np.where(MASK, I32, np.int32(-1)))


@pytest.mark.slow
def test_truths_are_results() -> None:
    """Comparisons return bool, also into ``out``, and ``dtype`` converts the result."""
    same(op.elementwise(lambda x: x > 0.25, X, **CPU), X > 0.25)
    same(op.elementwise(lambda m, x: m & ~(x > 0.25) | (x < -1.0), MASK, X, **CPU), MASK & ~(X > 0.25) | (X < -1.0))
    same(op.elementwise(lambda m: ~m, MASK, **CPU), ~MASK)
    same(op.elementwise(lambda x, y: x == y, I64, I64 + MASK, **CPU), ~MASK)
    out = MASK.copy()
    assert op.elementwise(lambda x, y: x <= y, X, F64.astype(np.float32), out=out, **CPU) is out
    same(out, F64.astype(np.float32) >= X)
    same(op.elementwise(lambda x: x > 0.0, X, dtype="f16", **CPU), (X > 0).astype(np.float16))
    same(op.elementwise(lambda x: x, I32 % 3, dtype="bool", **CPU), I32 % 3 != 0)
    both = op.elementwise(lambda x: (x > 0.0, x * 2.0), X, **CPU)
    same(both[0], X > 0)
    same(both[1], X * 2)


@pytest.mark.slow
def test_integers_are_exact() -> None:
    small = RNG.integers(-100, 100, (5, 33)).astype(np.int8)
    same(op.sub(I32, I32 // 2 + 1, **CPU), I32 - (I32 // 2 + 1))
    same(op.elementwise(lambda x, y: x * 3 + y, I64, I32, **CPU), I64 * 3 + I32)
    same(op.add(I32, small, **CPU), I32 + small)
    same(op.elementwise(lambda x: abs(x) - ep.maximum(x, -x), I64, **CPU), np.zeros_like(I64))
    same(op.elementwise(lambda x: -x, I64, **CPU), -I64)
    same(op.clamp(I64, -5, 2**60, **CPU), np.clip(I64, -5, 2**60))
    same(op.relu(I64, **CPU), np.maximum(I64, 0))
    same(op.elementwise(lambda x: (x // 7, x % 7), I32, **CPU)[0], I32 // 7)
    same(op.elementwise(lambda x: (x // 7, x % 7), I32, **CPU)[1], I32 % 7)
    same(op.elementwise(lambda x: x, I64, dtype="i32", **CPU), np.clip(I64, -(2**31), 2**31 - 1).astype(np.int32))
    same(op.add(I64[:, ::3].T, 1, **CPU), I64[:, ::3].T + 1)
    out = np.full((5, 33), -7, np.int64)
    op.add(I64, I64, out=out, **CPU)
    same(out, I64 + I64)


@pytest.mark.slow
def test_f64_is_exact() -> None:
    def function(x: Any, y: Any) -> Any:
        return ep.maximum(x * y / 3.0, ep.sqrt(abs(x)) - y)

    same(op.elementwise(function, F64, F64[0], **CPU), np.maximum(F64 * F64[0] / 3.0, np.sqrt(abs(F64)) - F64[0]))
    same(op.add(F64, I32, **CPU), F64 + I32)
    same(op.sub(X, F64, **CPU), X - F64)
    same(op.elementwise(lambda x: x / 3.0, X, dtype="f64", **CPU), X.astype(np.float64) / 3.0)
    same(op.where(MASK, F64, 0.5, **CPU), np.where(MASK, F64, 0.5))


SPECIAL = np.array([-800.0, -30.0, -3.0, -1e-9, -0.0, 1e-9, 0.3, 3.0, 30.0, 800.0, np.inf, -np.inf, np.nan])


@pytest.mark.parametrize(
    "names", [("exp", "rsqrt", "log", "erf", "exp2"), ("gelu", "gelu_tanh", "softplus", "mish", "d_gelu")]
)
def test_functions_of_f64_compute_in_f64(names: tuple[str, ...]) -> None:
    """The results are those of numpy's f64 functions.  exp2 is compared with e^(x log 2), which rounds twice."""
    found = op.elementwise(lambda x: tuple([getattr(ep, name)(x) for name in names]), SPECIAL, **CPU)
    for name, values in zip(names, found):
        np.testing.assert_allclose(values, getattr(ep, name)(SPECIAL), rtol=3e-13 if name == "exp2" else 1e-15)


def test_numbers_and_casts_in_f64_are_rounded_once() -> None:
    scaled, half, power = op.elementwise(
        lambda x, s: (x * s, ep.cast(x * s, "f16"), ep.exp(x > 0.0)), F64, 0.1, **CPU
    )  # fmt: skip
    same(scaled, F64 * 0.1)
    same(half, (F64 * 0.1).astype(np.float16).astype(np.float64))
    same(power, np.exp((F64 > 0) * 1.0))


KINDS = (
    torch.bool, torch.int8, torch.uint8, torch.int32, torch.int64, torch.float16, torch.bfloat16, torch.float32,
    torch.float64,
)  # fmt: skip


@pytest.mark.slow
def test_promotion_of_two_tensors_is_torchs() -> None:
    """All pairs promote as in torch, except two different 8-bit integer types, and two booleans."""
    for a in KINDS:
        for b in KINDS:
            narrow = (torch.int8, torch.uint8)
            if {a, b} <= {torch.bool} or (a != b and {a, b} <= {*narrow}):
                continue
            x, y = torch.tensor([3, 1]).to(a), torch.tensor([1, 1]).to(b)
            assert op.add(x, y, **CPU).dtype == torch.promote_types(a, b), (a, b)
            assert torch.equal(op.add(x, y, **CPU), x + y)
    for kind in (torch.int32, torch.int64):
        x = torch.tensor([7, -9]).to(kind)
        assert torch.equal(op.div(x, 2, **CPU), x / 2) and torch.equal(op.mul(x, 0.5, **CPU), x * 0.5)
        assert torch.equal(op.mul(x, 3, **CPU), x * 3) and op.exp(x, **CPU).dtype == torch.float32


def test_gradients_pass_masks_integers_and_f64() -> None:
    mask, whole = torch.from_numpy(MASK), torch.from_numpy(I32 % 5)
    for kind in (torch.float32, torch.float64):
        x, y = (torch.from_numpy(F64).to(kind).requires_grad_() for _ in range(2))

        def function(m: Any, n: Any, x: Any) -> Any:
            return ep.where(m, x * x * n, x / 3.0), x > 0.0

        found, above = op.elementwise(function, mask, whole, x, **CPU)
        wanted = torch.where(mask, y * y * whole, y / 3.0)
        assert torch.equal(above, y > 0) and not above.requires_grad
        torch.testing.assert_close(found, wanted)
        found.sum().backward()
        wanted.sum().backward()
        assert x.grad is not None
        torch.testing.assert_close(x.grad, y.grad)


@pytest.mark.slow
@pytest.mark.parametrize("shape", [(8, 64), (9, 33), (3, 17, 31), (1, 40)])
def test_dropout_draws_the_numbers_of_the_reference(shape: tuple[int, ...]) -> None:
    x = torch.randn(shape)
    seed = 12345678901
    assert torch.equal(op.elementwise(lambda x: ep.dropout(x, 0.5, 7), x, **CPU), ep.dropout(x, 0.5, 7))
    made = op.elementwise(lambda x, s, o: ep.dropout(x, 0.25, s, o) + x)
    for offset in (0, 3):
        assert torch.equal(made(x, seed, offset, **CPU), ep.dropout(x, 0.25, seed, offset) + x)
    assert made.kernel(x, 1, 2).name == made.kernel(x, 3, 4).name
    turned = x.transpose(-1, -2)
    assert torch.equal(op.elementwise(lambda x: ep.dropout(x, 0.5, 7), turned, **CPU), ep.dropout(turned, 0.5, 7))


def test_dropout_has_gradients() -> None:
    x = torch.randn(9, 33, requires_grad=True)
    op.elementwise(lambda x, s: ep.dropout(x, 0.5, s), x, 5, **CPU).sum().backward()
    assert torch.equal(x.grad, ep.dropout(torch.ones(9, 33), 0.5, 5))


@pytest.mark.parametrize("shape", [(), (40,), (2, 3, 4, 5)])
def test_dropout_of_any_rank(shape: tuple[int, ...]) -> None:
    """Kernel and arrays draw the same numbers in arrays of any rank, f64 included, and matrices differ."""
    x = torch.ones(shape, dtype=torch.float64 if shape == (40,) else torch.float32)
    found = op.elementwise(lambda x: ep.dropout(x, 0.5, 1), x, **CPU)
    assert torch.equal(found, ep.dropout(x, 0.5, 1)) and found.dtype == x.dtype
    if len(shape) == 4:
        assert len({matrix.numpy().tobytes() for matrix in found.reshape(6, 4, 5)}) == 6


REFUSED: list[tuple[Callable[[], object], type[Exception], str]] = [
    (lambda: op.add(MASK, MASK, **CPU), op.EpilogueError, r"add: add\(\) does not take booleans only"),
    (lambda: op.where(X, X, 0.0, **CPU), op.EpilogueError, r"condition of where\(\) is a number; compare it"),
    (lambda: op.elementwise(lambda x, y: x & y, X, X, **CPU), op.EpilogueError, "an operand of & is not Boolean"),
    (lambda: op.elementwise(lambda x: x | 3, X.astype(np.int32), **CPU), op.EpilogueError, r"operand of \| is not"),
    (lambda: op.elementwise(lambda x: np.bitwise_and(x, 3), X.astype(np.int32), **CPU), op.EpilogueError, "of & is"),
    (lambda: op.elementwise(lambda x: ~x, X.astype(np.int32), **CPU), op.EpilogueError, "of ~ is not Boolean"),
    (lambda: op.add(X, X, dtype="i64", **CPU), op.DtypeError, "cannot be stored as i64"),
    (lambda: op.add(F64, F64, dtype="i8", **CPU), op.DtypeError, "a result in f64 cannot be stored as i8"),
    (lambda: op.add(X.astype(np.int16), 1, **CPU), op.DtypeError, "argument 0 has dtype i16"),
]  # fmt: skip


@pytest.mark.parametrize("case", REFUSED, ids=[case[2][:40] for case in REFUSED])
def test_refused(case: tuple[Callable[[], object], type[Exception], str]) -> None:
    do, kind, message = case
    with pytest.raises(kind, match=message):
        do()
