"""Counter-based random numbers: Philox 4x32-10 on the coordinates of an element.

Any kernel, gradient or reference therefore draws the same number for an element. See Salmon et al., "Parallel random
numbers: as easy as 1, 2, 3". Four elements share a counter: rows r and r + 8 of each 16 (r < 8) in columns 2 c and 2 c
+ 1. These are the elements that a thread of ``wgmma`` owns in 8 columns.

    counter  = (column // 2, row // 16 * 8 + row % 8, matrix, offset mod 2^32)
    key      = (seed mod 2^32, seed // 2^32)
    number   = (word[2 * (row // 8 % 2) + column % 2] // 2^8) / 2^24

>>> import numpy as np
>>> [f"{int(x):08x}" for x in philox([np.int64(0)] * 4, [np.int64(0)] * 2)]
['6627e8d5', 'e169c58d', 'bc57ac4c', '9b00dbd8']
"""

# The functions take traced values or arrays of any library, whose operators pyright cannot check.
# pyright: basic

import math
from collections.abc import Sequence
from typing import Any

import cute_dialect.lang as cute

_FACTORS = (0xD2511F53, 0xCD9E8D57)
_STEPS = (0x9E3779B9, 0xBB67AE85)
_WORD = 0xFFFFFFFF


def philox(counter: Any, key: Any, rounds: int = 10) -> list[Any]:
    """Return the four words of a counter. Operands are int64 arrays of 32-bit words, whose products wrap at 64 bits."""
    c, k = list(counter), list(key)
    for _ in range(rounds):
        first, second = c[0] * _FACTORS[0], c[2] * _FACTORS[1]
        c = [
            ((second >> 32) & _WORD) ^ c[1] ^ k[0], second & _WORD,
            ((first >> 32) & _WORD) ^ c[3] ^ k[1], first & _WORD,
        ]  # fmt: skip
        k = [(x + step) & _WORD for x, step in zip(k, _STEPS)]
    return c


def index_shapes(shape: tuple[int, ...]) -> dict[str, tuple[int, ...]]:
    """Return the shapes in which the row, column and matrix indices broadcast to an array, if its rank has them.

    >>> index_shapes((2, 3, 5, 7))
    {'matrix': (2, 3, 1, 1), 'row': (5, 1), 'column': (7,)}
    >>> index_shapes((7,))
    {'column': (7,)}
    """
    found = {"matrix": (*shape[:-2], 1, 1)} if len(shape) > 2 else {}
    found |= {"row": (shape[-2], 1)} if len(shape) > 1 else {}
    return found | ({"column": shape[-1:]} if shape else {})


def drawn_of_arrays(like: Any, seed: Any, offset: Any) -> Any:
    """Return a uniform number in [0, 1) per element of a numpy or torch array, in its type.

    A vector is a row of one matrix.  Arrays of more than three modes are batches: the matrices are counted in the
    order of the modes before the last two.
    """
    shape = tuple(like.shape)
    rank = len(shape)
    if hasattr(like, "data_ptr"):
        import torch  # pyright: ignore[reportMissingImports]

        def count(n: int) -> Any:
            return torch.arange(n, device=like.device, dtype=torch.int64)

        def whole(x: Any) -> Any:
            return torch.as_tensor(x, device=like.device).to(torch.int64).reshape(())
    else:
        import numpy as np

        def count(n: int) -> Any:
            return np.arange(n, dtype=np.int64)

        def whole(x: Any) -> Any:
            return np.asarray(x).astype(np.int64).reshape(-1)[:1]

    places = {name: count(math.prod(of)).reshape(of) for name, of in index_shapes(shape).items()}
    row, column, matrix = (places.get(name, count(1).reshape((1,) * rank)) for name in ("row", "column", "matrix"))
    seed, offset = whole(seed), whole(offset)
    pairs, strips, zero = column // 2, row // 16 * 8 + row % 8, (row + column + matrix) * 0
    words = philox(
        [pairs + zero, strips + zero, matrix + zero, (offset & _WORD) + zero], [seed & _WORD, (seed >> 32) & _WORD]
    )
    which = row // 8 % 2 * 2 + column % 2
    word: Any = sum(w * (which == i) for i, w in enumerate(words))
    number = word >> 8
    number = number.to(like.dtype) if hasattr(like, "data_ptr") else number.astype(like.dtype)
    return number * 2.0**-24


# --------------------------------------------------------------------------------------------------------- in kernels


def words_of(row: Any, column: Any, matrix: Any, seed: Any, offset: Any) -> list[Any]:
    """Return the four words of an element's counter."""
    offset, key = low_word(cute.Int64(offset)), key_of(seed)
    return words_at((column // 2, row // 16 * 8 + row % 8, 0 if matrix is None else matrix, offset), key)


def low_word(x: Any) -> Any:
    """Return the lower 32 bits of an Int64."""
    return (x & _WORD).to(cute.Uint32)


def key_of(seed: Any) -> list[Any]:
    """Return the key of a seed."""
    seed = cute.Int64(seed)
    return [low_word(seed), low_word(seed >> 32)]


def words_at(counter: Sequence[Any], key: Sequence[Any], rounds: int = 10) -> list[Any]:
    """Return the four words of a counter."""
    c, k = [cute.Uint32(x) for x in counter], list(key)
    for _ in cute.range_constexpr(rounds):
        first, second = c[0].to(cute.Uint64) * _FACTORS[0], c[2].to(cute.Uint64) * _FACTORS[1]
        c = [
            (second >> 32).to(cute.Uint32) ^ c[1] ^ k[0], second.to(cute.Uint32),
            (first >> 32).to(cute.Uint32) ^ c[3] ^ k[1], first.to(cute.Uint32),
        ]  # fmt: skip
        k = [x + step for x, step in zip(k, _STEPS)]
    return c


def number_of(word: Any) -> Any:
    """Return a number in [0, 1) from the upper 24 bits of a word."""
    return (word >> 8).to(cute.Float32) * 2.0**-24


def drawn(row: Any, column: Any, matrix: Any, seed: Any, offset: Any) -> Any:
    """Return the random number of an element."""
    words = words_of(row, column, matrix, seed, offset)
    lower, odd = row // 8 % 2 == 1, column % 2 == 1
    first, second = cute.where(odd, words[1], words[0]), cute.where(odd, words[3], words[2])
    return number_of(cute.where(lower, second, first))
