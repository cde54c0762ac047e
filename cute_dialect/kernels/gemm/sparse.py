"""Compression of 2:4 sparse matrices for sparse MMAs: the kept half of each row, and the metadata with its positions.

>>> import numpy as np
>>> a = np.array([[0, 7, 0, 8, 0, 0, 0, 9] + 8 * [0]], np.float16)
>>> kept, metadata = compress(a, "f16")
>>> kept.tolist(), [f"{int(w):016b}" for w in metadata[0]]
([[7.0, 8.0, 0.0, 9.0, 0.0, 0.0, 0.0, 0.0]], ['0100010011001101'])
>>> bool((expand(kept, metadata, "f16") == a).all())
True

The first 4 bits, 1101, are elements 01 and 11 of the first group of four. The results are the operands A and E of
``cute.sparse_gemm``, row-major in memory (PTX ISA 9.0, 9.7.14.6.1 "Sparse matrix storage").
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from cute_dialect.arch.elements import bits_of

if TYPE_CHECKING:  # pragma: no cover
    from typing import Any, TypeAlias

    import numpy as np

    Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]


class Compressed(NamedTuple):
    """A compressed matrix."""

    kept: Array  # (M, K / 2), of the type of the matrix
    metadata: Array  # (M, K / columns per word), int16 or int32


def _group(element: str) -> tuple[int, int, int]:
    # Elements per group; units per group, half of which are kept; groups per metadata word.
    group, units, words = {32: (2, 2, 4), 16: (4, 4, 4), 8: (4, 4, 8), 4: (8, 4, 8)}[bits_of(element)]
    return group, units, words


def compress(matrix: Array, element: str) -> Compressed:
    """Compress a matrix ``(M, K)`` with enough zeros.

    A group keeps 2 of 4 elements; for tf32 1 of 2, and for 4-bit integers 2 pairs of 4. Elements of 4-bit integers are
    stored one per byte here.

    Args:
        matrix: The matrix.
        element: Its type as in atoms: f16, bf16, tf32, i8, ui4, …

    Raises:
        ValueError: if a group has more nonzero elements, or K is not a multiple of the columns per metadata word.
    """
    import numpy as np

    group, units, per_word = _group(element)
    m, k = matrix.shape
    if k % (group * per_word):
        raise ValueError(f"compress: the matrix has {k} columns; {element} needs a multiple of {group * per_word}")
    parts = matrix.reshape(m, k // group, units, group // units)
    there = (parts != 0).any(axis=-1)
    half = units // 2
    over = np.argwhere(there.sum(axis=-1) > half)
    if len(over):
        r, g = over[0].tolist()
        what = "element" if group == units else "pair"
        raise ValueError(
            f"compress: columns {g * group} to {g * group + group - 1} of row {r} have {int(there[r, g].sum())} "
            "nonzero "
            f"{what}s; at most {half} {'are' if half > 1 else 'is'} allowed"
        )
    # Nonzero units first, then the others, each in order. The chosen ones are sorted.
    chosen = np.sort(np.argsort(~there, axis=-1, kind="stable")[..., :half], axis=-1)
    kept = np.take_along_axis(parts, chosen[..., None], axis=2).reshape(m, k // 2)
    bits = np.where(chosen[..., 0] == 0, 0b0100, 0b1110) if half == 1 else chosen[..., 0] | chosen[..., 1] << 2
    words = (bits.reshape(m, -1, per_word).astype(np.uint32) << (4 * np.arange(per_word, dtype=np.uint32))).sum(-1)
    if per_word == 4:
        return Compressed(np.ascontiguousarray(kept), words.astype(np.uint16).view(np.int16))
    return Compressed(np.ascontiguousarray(kept), words.astype(np.uint32).view(np.int32))


def expand(kept: Array, metadata: Array, element: str) -> Array:
    """Return the matrix ``(M, K)`` of a compressed form; the inverse of :func:`compress`.

    Raises:
        ValueError: if the metadata are invalid.
    """
    import numpy as np

    from cute_dialect.arch.sparse_mma import metadata as held  # late: start-up

    group, _, per_word = _group(element)
    m, half = kept.shape
    words = metadata.astype(np.int64)[..., None] >> (4 * np.arange(per_word))
    bits = (words & 15).reshape(m, -1)
    table = np.full((16, group // 2), -1)
    for key, elements in held(16, group * per_word, element).kept.items():
        table[key] = elements
    where = table[bits]
    wrong = np.argwhere(where[..., 0] < 0)
    if len(wrong):
        r, g = wrong[0].tolist()
        raise ValueError(f"expand: metadata {int(bits[r, g]):04b} of group {g} of row {r} are invalid")
    out = np.zeros((m, bits.shape[1], group), kept.dtype)
    np.put_along_axis(out, where, kept.reshape(where.shape), axis=-1)
    return out.reshape(m, 2 * half)
