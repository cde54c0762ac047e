"""Compression of 2:4 sparse matrices: compared with matrices compressed by hand, round trips, and errors."""

from __future__ import annotations

import numpy as np
import pytest
from mma_atoms_support import dtype, metadata_words, sparse_rows

from cute_dialect.kernels.gemm.sparse import compress, expand


@pytest.mark.parametrize("element", ["f16", "bf16", "tf32", "i8", "ui8", "f8E4M3FN", "i4", "ui4"])
def test_compress(element: str) -> None:
    rng = np.random.default_rng(len(element))
    dense, kept, bits = sparse_rows(rng, element, 32, 128)
    words = metadata_words(element, bits)
    assert np.array_equal(expand(kept, words, element), dense)
    number = np.dtype(np.int8) if element.endswith("i4") else dtype(element)
    kept = np.abs(kept) + 1  # Zeros among the kept elements would make the metadata ambiguous.
    dense = expand(kept, words, element)
    got = compress(dense.astype(number), element)
    assert np.array_equal(got.kept, kept.astype(number)) and got.kept.dtype == number
    assert np.array_equal(got.metadata, words)
    assert np.array_equal(expand(*got, element), dense.astype(number))


def test_rows_with_more_zeros() -> None:
    a = np.zeros((2, 64), np.int8)
    a[1, [3, 5, 6, 12, 35]] = 1, 2, 3, 4, 5
    got = compress(a, "i8")
    assert np.array_equal(expand(*got, "i8"), a)
    assert got.metadata[0].tolist() == [0x44444444, 0x44444444]


@pytest.mark.parametrize(
    ("element", "columns", "where", "message"),
    [
        ("f16", 16, (4, 5, 6), "columns 4 to 7 of row 1 have 3 nonzero elements; at most 2 are allowed"),
        ("tf32", 8, (6, 7), "columns 6 to 7 of row 1 have 2 nonzero elements; at most 1 is allowed"),
        ("i4", 64, (0, 2, 5), "columns 0 to 7 of row 1 have 3 nonzero pairs; at most 2 are allowed"),
        ("i8", 16, (), "has 16 columns; i8 needs a multiple of 32"),
    ],
)
def test_errors(element: str, columns: int, where: tuple[int, ...], message: str) -> None:
    a = np.zeros((2, columns), np.float32)
    a[1, list(where)] = 1
    with pytest.raises(ValueError, match=message):
        compress(a, element)


def test_invalid_metadata_is_rejected() -> None:
    with pytest.raises(ValueError, match="metadata 0000 of group 2 of row 0 are invalid"):
        expand(np.zeros((1, 8), np.float16), np.array([[0x4044]], np.int16), "f16")
