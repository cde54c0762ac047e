"""Operand checks and layouts common to all GEMMs: A (M, K), B (N, K) and C (M, N), or batches with a third mode."""

# Traced values define operators and attributes that pyright cannot check.
# pyright: basic, reportOptionalMemberAccess=false

from collections.abc import Sequence
from typing import Any

import cute_dialect.lang as cute
from cute_dialect.kernels.epilogue.combination import Addends

PLACES = cute.Tensor[cute.Int32, "(4,?):(?,1)"]
"""Launch argument (4, L) of a pointer array: the indices of its matrices of A, B, C and the epilogue's source along
their third mode."""


def places_of(places: Any, matrix: Any) -> tuple[Any, Any, Any, Any]:
    """Return the index of a matrix along the third mode of A, of B, of C and of the source.

    In a batch all four are ``matrix``. In a pointer array they are column ``matrix`` of ``places`` (4, L). The third
    mode then starts at the lowest address, with any stride.
    """
    if places is None:
        return matrix, matrix, matrix, matrix
    return tuple([places[i, matrix] for i in range(4)])  # type: ignore[return-value]


def count_of(places: Any) -> Any:
    """Return the number of matrices of a pointer array, or None for other operands."""
    return None if places is None else places.shape[1]


def check_extents(A: Any, B: Any, C: Any, pairs: bool = False, places: Any = None) -> Any:
    """Emit runtime assertions that the shapes match, and return the number of matrices, or None without a batch mode.

    Args:
        A, B, C: Matrices or batches. The third mode of A or B may be 1 (broadcast).
        pairs: The epilogue combines two accumulator columns into one column of C.
        places: Offsets of a pointer array (:func:`places_of`).
    """
    assert A.shape[1] == B.shape[1], "A and B must have the same K"
    rows, columns, *matrices = [cute.size(C, mode=[i]) for i in range(cute.rank(C))]
    assert A.shape[0] == rows, "A and C must have the same M"
    if pairs:
        assert B.shape[0] == columns * 2, "B must have twice the N of C"
    else:
        assert B.shape[0] == columns, "B and C must have the same N"
    if {cute.rank(x) for x in (A, B, C)} not in ({2}, {3}):
        raise ValueError(f"launch: A, B and C must all be matrices or all be batches, got {A}, {B}, {C}")
    if cute.rank(C) == 2:
        return None
    if places is not None:
        return places.shape[1]
    for name, x in (("A", A), ("B", B)):
        several = cute.Boolean(x.shape[2] == matrices[0])
        assert several | (x.shape[2] == 1), f"{name} must have as many matrices as C, or one for all"
    return matrices[0]


def layouts_of(*, batch: bool, array: bool = False, div: int = 1, whole: bool = True) -> tuple[str, str]:
    """Return the layouts of matrices or batches with contiguous rows and with contiguous columns.

    Args:
        batch: Add a batch mode.
        array: The batch is a pointer array, whose matrices are up to 2^63 bytes apart.
        div: Divisor of the strides.
        whole: ``div`` also divides the extent of the contiguous mode.

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
) -> tuple[Any, Any, Any, Addends]:
    """Return the operands of one GEMM of a batch.

    Args:
        A, B, C, addends: The operands of the batch.
        matrix: The index in the batch, or an empty sequence without one. An index past the end selects the last matrix.
        places: Offsets of a pointer array (:func:`places_of`).
    """
    for i in matrix:
        *at, of_source = places_of(places, i)
        A, B, C = (None if x is None else x[None, None, cute.min(j, x.shape[2] - 1)] for x, j in zip((A, B, C), at))
        if addends.source is not None:
            addends = addends._replace(source=addends.source[None, None, of_source])
    return A, B, C, addends
