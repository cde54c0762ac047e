"""``alpha`` and ``beta`` given as arrays, against numpy in float64."""

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


def test_refused() -> None:
    two, one = np.ones(2, np.float32), torch.ones(1, requires_grad=True)
    with pytest.raises(op.ShapeError, match=r"mm: alpha has shape \(2,\); pass a number"):
        op.mm(A[0], B[0], alpha=two, **CPU)
    with pytest.raises(op.ShapeError, match=r"bmm: alpha has shape \(3,\).* without c, bias"):
        op.baddbmm(np.ones((1, 1, 24), np.float16), A, B, alpha=np.ones(3), **CPU)
    with pytest.raises(op.DtypeError, match="mm: beta is a str; pass a number"):
        op.mm(A[0], B[0], beta="x", **CPU)
    with pytest.raises(op.UnsupportedError, match="alpha has no gradient"):
        op.mm(A[0], B[0], alpha=one, **CPU)
