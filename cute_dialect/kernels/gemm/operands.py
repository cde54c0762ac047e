"""What every GEMM asks of its matrices, A (M, K), B (N, K) and C (M, N), or of batches of them with a third mode."""

# Operators and attributes are those of values in a trace.
# pyright: basic, reportOptionalMemberAccess=false

from collections.abc import Sequence
from typing import Any

import cute_dialect.lang as cute
from cute_dialect.kernels.gemm.epilogue import Addends

__all__ = ["PLACES", "check_extents", "count_of", "layouts_of", "of_matrix", "places_of"]

PLACES = cute.Tensor[cute.Int32, "(4,?):(?,1)"]
"""The argument that says where the matrices of an array lie: those of A, of B, of C and of the epilogue's source."""


def places_of(places: Any, matrix: Any) -> tuple[Any, Any, Any, Any]:
    """Return where a matrix of A, of B, of C and of the source lies along their third mode.

    Matrices of a batch are one behind the other, and all four are ``matrix``; those of an array lie anywhere:
    ``places`` (4, L) has a row for each of the four, and the third mode goes from the lowest address on in any steps.
    """
    if places is None:
        return matrix, matrix, matrix, matrix
    return tuple([places[i, matrix] for i in range(4)])  # type: ignore[return-value]


def count_of(places: Any) -> Any:
    """Return how many matrices there are that lie anywhere; None for others."""
    return None if places is None else places.shape[1]


def check_extents(A: Any, B: Any, C: Any, pairs: bool = False, places: Any = None) -> Any:
    """Assert in a host function that shapes fit; give how many matrices there are, None where there is no third mode.

    The third mode of A or B may be 1, for all.  ``pairs``: two columns of the product become one of C; ``places``: of
    matrices that lie anywhere (:func:`places_of`).
    """
    assert A.shape[1] == B.shape[1], "A and B must have the same K"
    rows, columns, *matrices = [cute.size(C, mode=[i]) for i in range(cute.rank(C))]
    assert A.shape[0] == rows, "A and C must have the same M"
    if pairs:
        assert B.shape[0] == columns * 2, "B must have twice the N of C"
    else:
        assert B.shape[0] == columns, "B and C must have the same N"
    if {cute.rank(x) for x in (A, B, C)} not in ({2}, {3}):
        raise ValueError(f"expected matrices or batches of them, got {A}, {B}, {C}")
    if cute.rank(C) == 2:
        return None
    if places is not None:
        return places.shape[1]
    for name, x in (("A", A), ("B", B)):
        several = cute.Boolean(x.shape[2] == matrices[0])
        assert several | (x.shape[2] == 1), f"{name} must have as many matrices as C, or one for all"
    return matrices[0]


def layouts_of(*, batch: bool, array: bool = False, div: int = 1, whole: bool = True) -> tuple[str, str]:
    """Return the layouts of matrices, or of batches of them, with contiguous rows and with contiguous columns; ``div``
    divides strides and, if they are ``whole``, the extents of contiguous modes; ``array``: matrices lie anywhere, up to
    2^63 bytes apart.

    >>> layouts_of(batch=True, div=8)
    ('(?,?{div=8},?):(?{div=8},1,?{div=8})', '(?{div=8},?,?):(1,?{div=8},?{div=8})')
    >>> layouts_of(batch=True, array=True)
    ('(?,?,?):(?,1,?{i64})', '(?,?,?):(1,?,?{i64})')
    """
    d = "?" if div == 1 else f"?{{div={div}}}"
    shape, extent = ",?" if batch else "", d if whole else "?"
    step = "" if not batch else f",{'?{i64}' if div == 1 else f'?{{i64 div={div}}}'}" if array else f",{d}"
    return f"(?,{extent}{shape}):({d},1{step})", f"({extent},?{shape}):(1,{d}{step})"


def of_matrix(
    A: Any, B: Any, C: Any, addends: Addends, matrix: Sequence[Any], places: Any = None
) -> tuple[Any, Any, Any, Addends]:  # fmt: skip
    """Return the operands of a product of a batch; ``matrix``: its number, empty where there is no batch.  The last
    matrix stands for those that follow: one may be for all.  ``places``: of matrices that lie anywhere.
    """
    for i in matrix:
        *at, of_source = places_of(places, i)
        A, B, C = (None if x is None else x[None, None, cute.min(j, x.shape[2] - 1)] for x, j in zip((A, B, C), at))
        if addends.source is not None:
            addends = addends._replace(source=addends.source[None, None, of_source])
    return A, B, C, addends
