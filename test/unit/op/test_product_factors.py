"""``alpha`` and ``beta`` passed as arrays, compared with numpy in float64."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from cute_dialect import op  # noqa: E402

CPU: dict[str, Any] = {"device": "cpu"}
A, B = (np.random.default_rng(2).integers(-3, 4, s).astype(np.float16) for s in ((3, 8, 16), (3, 16, 24)))
EXACT = A.astype(float) @ B.astype(float)


@pytest.mark.slow
@pytest.mark.parametrize("half", [np.float32(0.5), np.array(0.5), np.array([0.5], np.float16), torch.tensor([[0.5]])])
def test_factors_of_one_element(half: Any) -> None:
    assert np.array_equal(op.mm(A[0], B[0], alpha=half, **CPU), 0.5 * EXACT[0])
    assert np.array_equal(op.bmm(A, B, alpha=half, **CPU), 0.5 * EXACT)
    c = np.ones((8, 24), np.float16)
    assert np.array_equal(op.addmm(c, A[0], B[0], alpha=half, beta=half, **CPU), 0.5 * EXACT[0] + 0.5)


@pytest.mark.slow
def test_a_factor_for_each_matrix() -> None:
    alpha = np.array([1, 2, -0.5], np.float32)
    wanted = alpha[:, None, None] * EXACT
    assert np.array_equal(op.bmm(A, B, alpha=alpha, **CPU), wanted)
    out = np.full((3, 8, 24), np.nan, np.float16)
    op.bmm(A, B, out, alpha=alpha, **CPU)
    assert np.array_equal(out, wanted)


@pytest.mark.sample("-alpha-numpy")
@pytest.mark.parametrize("array", [np.asarray, torch.tensor], ids=["numpy", "torch"])
@pytest.mark.parametrize("each", ["alpha", "beta", "both"])
@pytest.mark.parametrize("activation", ["", "relu"])
def test_factors_of_a_batch_with_addends(array: Any, each: str, activation: str) -> None:
    """Each matrix has its own factor for the GEMM, the addend, or both."""
    alpha: Any = array([1, 2, -0.5], dtype=(np if array is np.asarray else torch).float32)
    beta: Any = array([[[0.5]], [[0]], [[-1]]], dtype=alpha.dtype)
    alpha, beta = (alpha if each != "beta" else 0.5), (beta if each != "alpha" else 2)
    rng = np.random.default_rng(3)
    c, bias = (rng.integers(-3, 4, s).astype(np.float16) for s in ((3, 8, 24), (24,)))
    a, b, c, bias = (x if array is np.asarray else torch.from_numpy(x) for x in (A, B, c, bias))
    x, y = (np.reshape(np.asarray(f, float), (-1, 1, 1)) for f in (alpha, beta))
    wanted = x * EXACT + y * np.asarray(c, float)
    for more in ({}, {"bias": bias}):
        exact = wanted + np.asarray(bias, float) if more else wanted
        exact = np.maximum(exact, 0) if activation else exact
        found = op.baddbmm(c, a, b, alpha=alpha, beta=beta, activation=activation, **more, **CPU)
        assert np.array_equal(np.asarray(found), exact), (each, more)
    found = op.baddbmm(c[:1, :1], a, b, alpha=alpha, beta=beta, **CPU)
    assert np.array_equal(np.asarray(found), x * EXACT + y * np.asarray(c, float)[:1, :1])


@pytest.mark.slow
def test_gradients_of_factors_of_a_batch() -> None:
    alpha, beta, a, b, c = (
        torch.randn(s, generator=torch.Generator().manual_seed(i), requires_grad=True)
        for i, s in enumerate(((3,), (3,), (3, 8, 16), (3, 16, 24), (3, 8, 24)))
    )
    found = op.baddbmm(c, a, b, alpha=alpha, beta=beta, **CPU)
    dy = torch.randn(found.shape, generator=torch.Generator().manual_seed(9))
    got = torch.autograd.grad(found, (alpha, beta, a, b, c), dy)
    double = [x.detach().double().requires_grad_() for x in (alpha, beta, a, b, c)]
    x, y, *_ = double
    wanted = torch.autograd.grad(
        x[:, None, None] * double[2] @ double[3] + y[:, None, None] * double[4], double, dy.double()
    )
    for one, other in zip(got, wanted, strict=True):
        assert bool(((one - other).abs() <= 1e-3 * (other.abs() + 1)).all())


@pytest.mark.slow
@pytest.mark.parametrize("activation", ["", "relu"])
def test_factors_of_a_batch_of_a_plan(activation: str) -> None:
    """Plans accept numbers, one-element arrays, and one factor per matrix."""
    plan = op.Gemm(element="f16", layout="row")
    plan.activation = activation
    rng = np.random.default_rng(3)
    c, bias = (rng.integers(-3, 4, s).astype(np.float16) for s in ((3, 8, 24), (24,)))
    each, half = np.array([1, 2, -0.5], np.float32), np.array([0.5], np.float32)
    for alpha, beta, more in (
        (each, half, {}), (half, each, {"bias": bias}), (each.reshape(3, 1, 1), each, {"bias": bias}), (half, half, {}),
        (each, 0.0, {}), (each, None, {}),
    ):  # fmt: skip
        d = np.full((3, 8, 24), np.nan, np.float16)
        wanted = plan.reference(A, B, c, alpha=alpha, beta=beta, **more)
        x, y = (np.asarray(0.0 if f is None else f).reshape(-1, 1, 1) for f in (alpha, beta))
        exact = x * EXACT + y * c.astype(float) + more.get("bias", np.zeros(24)).astype(float)
        assert np.array_equal(wanted, np.maximum(exact, 0) if activation else exact)
        found = plan.run(A, B, c, d, alpha, beta, **more, **CPU)
        assert np.array_equal(d, wanted) and found.D is d
    unread = np.full((3, 8, 24), np.nan, np.float16)
    assert np.array_equal(plan.run(A, B, unread, alpha=each, **CPU).D, plan.reference(A, B, alpha=each))


def test_unsupported_factors_are_rejected() -> None:
    plan, each = op.Gemm(element="f16", layout="row"), np.array([1, 2, -0.5], np.float32)
    with pytest.raises(op.ShapeError, match=r"Gemm.run: alpha has shape \(3,\); pass a number$"):
        plan.run(A[0], B[0], alpha=each, **CPU)
    with pytest.raises(op.ShapeError, match=r"Gemm.run: beta has shape \(3,\); pass a number, or 2 factors, one "):
        plan.run(A[:2], B[:2], beta=each, **CPU)
    with pytest.raises(op.ShapeError, match=r"Gemm.run: alpha has shape \(3,\), but A is a list; pass a number"):
        plan.run(list(A), list(B), alpha=each, **CPU)
    plan.epilogue_visitor = lambda x, row, column: x
    with pytest.raises(op.EpilogueError, match=r"Gemm.run: one alpha or beta per matrix cannot be combined with this"):
        plan.run(A, B, alpha=each, **CPU)


def test_refused() -> None:
    two, one = np.ones(2, np.float32), torch.ones(1, requires_grad=True)
    with pytest.raises(op.ShapeError, match=r"mm: alpha has shape \(2,\); pass a number"):
        op.mm(A[0], B[0], alpha=two, **CPU)
    with pytest.raises(op.ShapeError, match=r"bmm: alpha has shape \(3, 2\); .* or one factor per matrix, \(L,\)"):
        op.bmm(A, B, alpha=np.ones((3, 2)), **CPU)
    with pytest.raises(op.UnsupportedError, match="bmm: one alpha or beta per matrix cannot be combined with hook"):
        op.bmm(A, B, alpha=np.ones(3), hook=lambda x, row, column: x, **CPU)
    with pytest.raises(op.UnsupportedError, match="bmm: one alpha or beta per matrix cannot be combined with epilogue"):
        op.bmm(A, B, alpha=np.ones(3), epilogue=lambda accum: accum, **CPU)
    with pytest.raises(op.ShapeError, match=r"bmm: alpha has shape \(2,\); pass a number or 3 factors, one per"):
        op.bmm(A, B, alpha=two, **CPU)
    with pytest.raises(op.ShapeError, match=r"bmm: a has shape None; pass a batch of matrices"):
        op.bmm("x", B, alpha=two, **CPU)  # type: ignore[arg-type]
    with pytest.raises(op.DtypeError, match=r"bmm: C is of type str; pass an array"):
        op.bmm(A, B, c="x", alpha=np.ones(3), **CPU)
    with pytest.raises(op.DtypeError, match="mm: beta is a str; pass a number"):
        op.mm(A[0], B[0], beta="x", **CPU)
    with pytest.raises(op.UnsupportedError, match="alpha has no gradient"):
        op.mm(A[0], B[0], alpha=one, **CPU)
