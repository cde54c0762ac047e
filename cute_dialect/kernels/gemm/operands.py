"""What every GEMM asks of its matrices, A (M, K), B (N, K) and C (M, N), or of batches of them with a third mode."""

# Operators and attributes are those of values in a trace.
# pyright: basic, reportOptionalMemberAccess=false

from collections.abc import Sequence
from typing import Any

import cute_dialect.lang as cute
from cute_dialect.kernels.gemm.epilogue import Addends

__all__ = ["check_extents", "of_matrix"]


def check_extents(A: Any, B: Any, C: Any, pairs: bool = False) -> Any:
    """Assert in a host function that shapes fit; give how many matrices there are, None where there is no third mode.

    The third mode of A or B may be 1, for all.  ``pairs``: two columns of the product become one of C.
    """
    assert A.shape[1] == B.shape[1], "A and B must have the same K"
    assert A.shape[0] == C.shape[0], "A and C must have the same M"
    if pairs:
        assert B.shape[0] == C.shape[1] * 2, "B must have twice the N of C"
    else:
        assert B.shape[0] == C.shape[1], "B and C must have the same N"
    if {cute.rank(x) for x in (A, B, C)} not in ({2}, {3}):
        raise ValueError(f"expected matrices or batches of them, got {A}, {B}, {C}")
    if cute.rank(C) == 2:
        return None
    for name, x in (("A", A), ("B", B)):
        several = cute.Boolean(x.shape[2] == C.shape[2])
        assert several | (x.shape[2] == 1), f"{name} must have as many matrices as C, or one for all"
    return C.shape[2]


def of_matrix(A: Any, B: Any, C: Any, addends: Addends, matrix: Sequence[Any]) -> tuple[Any, Any, Any, Addends]:
    """Return the operands of a product of a batch; ``matrix``: its number, empty where there is no batch.  The last
    matrix stands for those that follow: one may be for all.
    """
    for i in matrix:
        A, B, C = (x[None, None, cute.min(i, x.shape[2] - 1)] for x in (A, B, C))
        if addends.source is not None:
            addends = addends._replace(source=addends.source[None, None, i])
    return A, B, C, addends
