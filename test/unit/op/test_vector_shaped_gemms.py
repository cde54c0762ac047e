"""Plans and lists of GEMMs with an extent of 1, where two modes of a matrix have a stride of 1."""

from __future__ import annotations

import numpy as np
import pytest

from cute_dialect import op


def laid(x: np.ndarray, layout: str) -> np.ndarray:
    """Return a matrix, or a batch of them, in row-major or column-major memory."""
    return x if layout == "row" else np.ascontiguousarray(x.swapaxes(-1, -2)).swapaxes(-1, -2)


@pytest.mark.slow
@pytest.mark.parametrize("layouts", [("row", "row"), ("row", "column"), ("column", "row"), ("column", "column")])
@pytest.mark.parametrize("shape", [(32, 40, 1), (1, 40, 1), (32, 1, 16), (32, 1, 1)])
def test_products_of_vectors(shape: tuple[int, int, int], layouts: tuple[str, str]) -> None:
    m, n, k = shape
    rng = np.random.default_rng(1)
    for batch in ((), (2,)):
        a = laid(rng.integers(-2, 3, (*batch, m, k)).astype(np.float16), layouts[0])
        b = laid(rng.integers(-2, 3, (*batch, k, n)).astype(np.float16), layouts[1])
        plan = op.Gemm(element="f16", layout_A=layouts[0], layout_B=layouts[1], layout_C="row")
        np.testing.assert_array_equal(plan.run(a, b, device="cpu").D, a @ b)
        if not batch:
            for found in op.mm_array([a, a], [b, b], device="cpu"):
                np.testing.assert_array_equal(found, a @ b)
