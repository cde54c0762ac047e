"""Sparse matrices in the form that the tensor cores take: the kept half of each row, and the words that say which half.

>>> import numpy as np
>>> a = np.array([[0, 7, 0, 8, 0, 0, 0, 9] + 8 * [0]], np.float16)
>>> kept, metadata = compress(a, "f16")
>>> kept.tolist(), [f"{int(w):016b}" for w in metadata[0]]
([[7.0, 8.0, 0.0, 9.0, 0.0, 0.0, 0.0, 0.0]], ['0100010011001101'])
>>> bool((expand(kept, metadata, "f16") == a).all())
True

The first 4 bits, 1101, name elements 01 and 11 of the first group of four.  These are the operands A and E of
``cute.sparse_gemm``, row-major in memory (PTX ISA 9.0, 9.7.14.6.1 "Sparse matrix storage").
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:  # pragma: no cover
    from typing import Any, TypeAlias

    import numpy as np

    Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]

__all__ = ["Compressed", "compress", "expand"]


class Compressed(NamedTuple):
    """``kept``: ``(M, K/2)``, of the type of the matrix.  ``metadata``: ``(M, K/columns)`` of int16 or int32."""

    kept: Array
    metadata: Array


def _group(element: str) -> tuple[int, int, int]:
    # Elements in a group; units in it, of which half are kept; groups in a word.
    from cute_dialect.arch.elements import bits_of

    group, units, words = {32: (2, 2, 4), 16: (4, 4, 4), 8: (4, 4, 8), 4: (8, 4, 8)}[bits_of(element)]
    return group, units, words


def compress(matrix: Array, element: str) -> Compressed:
    """Compress a matrix ``(M, K)`` that has zeros enough.

    ``element``: its type as atoms name it (f16, bf16, tf32, i8, ui4 …), which says the groups: 2 of 4 elements are
    kept, 1 of 2 for tf32, 2 pairs of 4 for 4-bit integers, whose elements are here one to a byte.  Raises ValueError
    where a group has more, or K is no multiple of what a word of metadata speaks of.
    """
    import numpy as np

    group, units, per_word = _group(element)
    m, k = matrix.shape
    if k % (group * per_word):
        raise ValueError(f"expected a multiple of {group * per_word} columns for {element}, got {k}")
    parts = matrix.reshape(m, k // group, units, group // units)
    there = (parts != 0).any(axis=-1)
    half = units // 2
    over = np.argwhere(there.sum(axis=-1) > half)
    if len(over):
        r, g = over[0].tolist()
        what = "element" if group == units else "pair"
        raise ValueError(
            f"expected at most {half} {what}{'s' * (half > 1)} that {'are' if half > 1 else 'is'} not zero among "
            f"columns {g * group} to {g * group + group - 1} of row {r}, got {int(there[r, g].sum())}"
        )
    # Units with something in them first, then the others, both in order; those taken in rising order.
    chosen = np.sort(np.argsort(~there, axis=-1, kind="stable")[..., :half], axis=-1)
    kept = np.take_along_axis(parts, chosen[..., None], axis=2).reshape(m, k // 2)
    bits = np.where(chosen[..., 0] == 0, 0b0100, 0b1110) if half == 1 else chosen[..., 0] | chosen[..., 1] << 2
    words = (bits.reshape(m, -1, per_word).astype(np.uint32) << (4 * np.arange(per_word, dtype=np.uint32))).sum(-1)
    if per_word == 4:
        return Compressed(np.ascontiguousarray(kept), words.astype(np.uint16).view(np.int16))
    return Compressed(np.ascontiguousarray(kept), words.astype(np.uint32).view(np.int32))


def expand(kept: Array, metadata: Array, element: str) -> Array:
    """Return the matrix ``(M, K)`` of its compressed form; the inverse of :func:`compress`.

    Raises ValueError for metadata that means nothing.
    """
    import numpy as np

    from cute_dialect.arch.mma_sp import metadata as held

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
        raise ValueError(f"expected metadata that names elements of group {g} of row {r}, got {int(bits[r, g]):04b}")
    out = np.zeros((m, bits.shape[1], group), kept.dtype)
    np.put_along_axis(out, where, kept.reshape(where.shape), axis=-1)
    return out.reshape(m, 2 * half)
