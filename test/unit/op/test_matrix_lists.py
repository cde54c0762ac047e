"""Equal products of matrices that lie anywhere: one launch, on the interpreter."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from cute_dialect import op
from cute_dialect.runtime.arrays import numpy_dtype

GENERATOR = np.random.default_rng(15)
CHECKED: dict[str, Any] = {"device": "cpu", "checks": ["race", "uninit", "oob"], "schedule": "adversarial"}


def integers(element: str, *shape: int, offset: int = 0) -> np.ndarray:
    """Small integers in memory of their own, which begins so many elements behind whole 16 bytes."""
    kind = numpy_dtype(element)
    memory = np.zeros(np.prod(shape, dtype=int) * kind.itemsize + 64, np.uint8)
    start = -memory.ctypes.data % 16 + offset * kind.itemsize
    made = memory[start : start + int(np.prod(shape)) * kind.itemsize].view(kind).reshape(shape)
    made[...] = GENERATOR.integers(0 if element == "ui8" else -2, 3, shape)
    return made


def columns(x: np.ndarray) -> np.ndarray:
    """The same, contiguous along columns."""
    made = integers("f16", *x.shape[::-1]).astype(x.dtype).T
    made[...] = x
    return made


def several(element: str, rows: int, cols: int, offset: int = 0) -> list[np.ndarray]:
    return [integers(element, rows, cols, offset=offset) for _ in range(3)]


CASES: dict[str, tuple[str, str, tuple[int, int, int], int, dict[str, Any]]] = {
    # elements, shape, elements behind 16 bytes, more arguments
    "tma": ("f16", "f16", (40, 72, 96), 0, {"alpha": 2.0, "activation": "relu"}),
    "ldmatrix": ("f16", "f16", (19, 21, 37), 1, {}),
}


@pytest.mark.parametrize("name", CASES)
def test_one_launch(name: str) -> None:
    element, result, (m, n, k), offset, more = CASES[name]
    a, b, c = several(element, m, k, offset), several(element, k, n, offset), several(result, m, n, offset)
    b[2] = b[0]  # one matrix in two places
    outs: Any = None
    if name == "tma":  # D^T is what the kernel computes; C is D
        c = outs = [columns(x) for x in c]
    exact = [
        more.get("alpha", 1.0) * (x.astype(float) @ y.astype(float)) + 0.5 * z.astype(float) for x, y, z in zip(a, b, c)
    ]
    exact = [np.rint(x) if result == "i32" else x.clip(min=0) if more.get("activation") else x for x in exact]
    reports: list[Any] = []
    found = op.mm_array(a, b, outs, Cs=c, beta=0.5, **more, **CHECKED, report=reports.append)
    assert len(reports) == 1 and op.explain(op.mm_array, a, b).launches == (1, "")
    for x, y in zip(found, exact):
        np.testing.assert_array_equal(np.asarray(x, float), y)


def test_addresses_and_plans_with_lists() -> None:
    a, b, d = several("f16", 24, 40), several("f16", 40, 16), several("f32", 24, 16)
    addresses = [np.array([x.ctypes.data for x in given]) for given in (a, b, d)]
    op.mm_array(*addresses, shape=(24, 16, 40), element="f16", dtype="f32", device="cpu")
    for x, y, z in zip(a, b, d):
        np.testing.assert_array_equal(z, x.astype(float) @ y.astype(float))
    plan = op.Gemm(element="f16", layout="row", element_C="f32")
    done = plan.run(a, b, device="cpu", bias=np.ones(16, np.float32))
    assert done.launches == 1 and plan.explain(a, b).launches == (1, "")
    for x, y, z in zip(a, b, done.D):
        np.testing.assert_array_equal(z, x.astype(float) @ y.astype(float) + 1)


def test_several_launches_are_told_of() -> None:
    a, b = several("f16", 24, 40), several("f16", 40, 16)
    a[1] = integers("f16", 24, 48)[:, :40]
    found = op.explain(op.mm_array, a, b)
    assert found.launches == (3, "A have several strides") and "launches  3, one a matrix" in str(found)
    for x, y, z in zip(a, b, op.mm_array(a, b, device="cpu")):
        np.testing.assert_array_equal(np.asarray(z, float), x.astype(float) @ y.astype(float))
    plan = op.Gemm(element="f16", layout="row")
    done = plan.run(several("f16", 24, 0), several("f16", 0, 16), device="cpu")
    assert done.apart == "nothing is multiplied" and not any(x.any() for x in done.D)


A, B = several("f16", 16, 24), several("f16", 24, 32)
SHARED = integers("f16", 16, 40)
BAD: list[tuple[type[op.OpError], str, Callable[[], object]]] = [
    (op.ShapeError, "mm_array: expected as many Bs as As (3), got 2", lambda: op.mm_array(A, B[:2])),
    (op.ShapeError, "mm_array: expected at least one matrix, got none", lambda: op.mm_array([], [])),
    (op.DtypeError, "mm_array: expected As as a list of arrays, or (L,) addresses of i64, got f16",
     lambda: op.mm_array(A[0], B)),
    (op.ShapeError, "mm_array: expected products of one size, M, N, K of (16, 32, 24), got (8, 32, 24) of 1",
     lambda: op.mm_array([A[0], A[1][:8], A[2]], B, device="cpu")),
    (op.ShapeError, "mm_array: expected B of (24, N), as A is (16, 24), got (16, 24)",
     lambda: op.mm_array(A, A, device="cpu")),
    (op.ShapeError, "mm_array: expected shape=(M, N, K) and element, as A are addresses",
     lambda: op.mm_array([1, 2], [3, 4])),
    (op.ShapeError, "mm_array: expected outs, as A are addresses",
     lambda: op.mm_array([1, 2], [3, 4], shape=(1, 1, 1), element="f16")),
    (op.DtypeError, "mm_array: expected b of f16, as a, got i8",
     lambda: op.mm_array(A, [x.astype(np.int8) for x in B], device="cpu")),
    (op.DtypeError, "mm_array: expected A of f16, row-major, as planned, got f32",
     lambda: op.mm_array([A[0], A[1].astype("f4"), A[2]], B, device="cpu")),
    (op.LayoutError, "mm_array: D of matrix 1 shares memory with D of matrix 0",
     lambda: op.mm_array(A[:2], B[:2], [SHARED[:, :32], SHARED[:, 8:]], device="cpu")),
    (op.UnsupportedError, "mm_array: there is no kernel of two-level sums of matrices that lie anywhere yet",
     lambda: op.mm_array(A, B, math="promote", device="cpu")),
    (op.DeviceError, "no GPU here", lambda: op.mm_array(A, B)),
]  # fmt: skip


@pytest.mark.parametrize("error, message, call", BAD, ids=[m[:60] for _, m, _ in BAD])
def test_what_is_refused(error: Any, message: str, call: Callable[[], object]) -> None:
    with pytest.raises(error) as found:
        call()
    assert str(found.value).startswith(message)
