"""A call of ``op.linear_cross_entropy``: its settings, the rows of a chunk, and the sum over chunks.

8192 rows and 128256 classes of bf16 are four chunks.  The logits of a chunk have 525 MB, all logits have 2.1 GB:

>>> default_chunk(8192, 4096, 128256, 2)
2048
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

from cute_dialect.kernels.rows.config import BITS
from cute_dialect.op.epilogue.functions import cast
from cute_dialect.op.epilogue.tracing import FakeTensor, Traced, trace

CALL = "linear_cross_entropy"
BUFFER = 1 << 28
"""Logits of a chunk in bytes, unless half of the weight is larger."""
FEWEST = 512
"""Rows of a chunk at least, so that its GEMMs fill the GPU."""
UNIT = 128
"""Chunks are multiples of this number of rows."""
ALIGNMENT = 16
"""Alignment in bytes of the rows of logits, for TMA."""


class Settings(NamedTuple):
    """The arguments of :func:`cute_dialect.op.linear_cross_entropy` that are not arrays."""

    ignore_index: int
    reduction: str
    label_smoothing: float
    chunk: int  # 0 for the default


def default_chunk(rows: int, k: int, classes: int, itemsize: int) -> int:
    """Return the rows of a chunk.

    Args:
        rows: all rows.
        k: elements of a row of ``x``.
        classes: rows of the weight.
        itemsize: bytes of an element.
    """
    most = max(FEWEST, max(BUFFER, classes * k * itemsize // 2) // (classes * itemsize))
    chunks = max(1, -(-rows // most))
    return max(1, min(rows, -(-rows // (chunks * UNIT)) * UNIT))


def row_stride(classes: int, element: str) -> int:
    """Return the row stride of the logits in elements."""
    vector = ALIGNMENT * 8 // BITS[element]
    return -(-classes // vector) * vector


def scale_of(rows: int, reduction: str) -> float:
    """Return the power of two by which the gradients in a forward pass are multiplied.

    A mean divides gradients of logits by the number of rows, so that many of f16 would be 0; a sum of f16 would
    overflow.  The square root of the number of rows is between both.  The backward pass divides by the factor again,
    without a rounding error.
    """
    half = 2.0 ** (rows.bit_length() // 2)
    return {"mean": half, "sum": 1.0 / half, "none": 1.0}[reduction]


@lru_cache(64)
def accumulation(element: str, shape: tuple[int, ...], is_first: bool, is_last: bool) -> Traced:
    """Return the epilogue that adds a chunk to a sum.

    The sum is a pair of matrices of type ``element``: the rounded sum, and the remainder. The last chunk writes the
    rounded sum only.
    """

    def begin(accum: Any) -> Any:
        D = accum
        remainder = accum - cast(accum, element)
        return D, remainder

    def proceed(accum: Any, rounded: Any, rest: Any) -> Any:
        D = accum + rest + rounded
        remainder = D - cast(D, element)
        return D, remainder

    def finish(accum: Any, rounded: Any, rest: Any) -> Any:
        D = accum + rest + rounded
        return D

    matrix = FakeTensor(element, shape)
    examples = {"accum": FakeTensor("f32", shape)}
    examples |= {} if is_first else {"rounded": matrix, "rest": matrix}
    return trace(begin if is_first else finish if is_last else proceed, examples)
