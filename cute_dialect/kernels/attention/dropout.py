"""Dropout of attention probabilities: 15 random bits per query and key, from Philox 4x32-7 on their indices.

Forward, backward, and :func:`kept_of_arrays` draw the same bits, whatever their tiles. A counter has the bits of eight
elements, those of a thread of ``wgmma`` in 16 x 16 scores: queries i and i + 8, and keys j, j + 1, j + 8 and j + 9::

    counter = (key // 16 * 4 + key % 8 // 2, query // 16 * 8 + query % 8, matrix, offset mod 2^32)
    key     = (seed mod 2^32, seed // 2^32)
    bits    = half key % 2 of word 2 * (key // 8 % 2) + query // 8 % 2, without its highest bit

The matrix is ``sequence * query heads + query head``. A probability is kept if its bits are not less than
:func:`threshold_of` the dropout probability. Seven rounds are the least that pass BigCrush (Salmon et al., 2011).

>>> import numpy as np
>>> kept_of_arrays(np.array([7, 0]), 0.5, (1, 1, 2, 8)).astype(int).tolist()
[[[[1, 1, 1, 1, 0, 1, 0, 1], [0, 0, 1, 1, 1, 0, 1, 1]]]]
"""

# The functions take traced values or arrays of any library, whose operators pyright cannot check.
# pyright: basic

import math
from typing import Any, NamedTuple

import cute_dialect.lang as cute
from cute_dialect.kernels.attention.tiles import nothing_of
from cute_dialect.kernels.common.philox import key_of, low_word, philox, words_at
from cute_dialect.lang.values.signature_types import Int

__all__ = ["Dropout", "DropoutOperands", "dropout_types", "kept_of_arrays", "kept_share", "threshold_of"]

ROUNDS = 7

_BITS = 15
_HIGH = 1 << _BITS


def threshold_of(p: float) -> int:
    """Return the number of 2^15 equally likely values for which a probability is dropped.

    >>> threshold_of(0.1), threshold_of(1.0)
    (3277, 32768)
    """
    return round(p * _HIGH)


def kept_share(p: float) -> float:
    """Return the probability with which a value is kept, by which kept values are divided; 1 if none is kept.

    >>> kept_share(0.25), kept_share(1.0)
    (0.75, 1.0)
    """
    return 1.0 - threshold_of(p) / _HIGH or 1.0


def kept_of_arrays(state: Any, p: float, shape: tuple[int, int, int, int]) -> Any:
    """Return True for each probability that is kept, as an array (sequences, query heads, queries, keys).

    Args:
        state: Seed and offset, a numpy or torch array (2,) of i64.
        p: Dropout probability.
        shape: Shape of the result.
    """
    if hasattr(state, "data_ptr"):
        import torch  # pyright: ignore[reportMissingImports]

        def count(n: int) -> Any:
            return torch.arange(n, device=state.device, dtype=torch.int64)
    else:
        import numpy as np

        def count(n: int) -> Any:
            return np.arange(n, dtype=np.int64)

    batch, heads, queries, keys = shape
    shapes = (batch, heads, 1, 1), (queries, 1), (keys,)
    return kept_at(state, p, *[count(math.prod(x)).reshape(x) for x in shapes])


def kept_at(state: Any, p: float, matrix: Any, row: Any, column: Any) -> Any:
    """Return True for each probability that is kept, by i64 indices that broadcast to each other."""
    word, zero = (1 << 32) - 1, matrix * 0 + row * 0 + column * 0
    seed, offset = state[:1], state[1:]
    counter = [column // 16 * 4 + column % 8 // 2, row // 16 * 8 + row % 8, matrix, offset & word]
    words = philox([x + zero for x in counter], [seed & word, (seed >> 32) & word], ROUNDS)
    which = column // 8 % 2 * 2 + row // 8 % 2
    found: Any = sum([w * (which == i) for i, w in enumerate(words)])
    return (found >> column % 2 * 16) % _HIGH >= threshold_of(p)


# --------------------------------------------------------------------------------------------------------- in kernels


class DropoutOperands(NamedTuple):
    """The random state and the dropout probability, as a launch takes them."""

    state: cute.Tensor  # seed and offset, (2,)
    threshold: cute.Int32  # see threshold_of
    kept: cute.Float32  # see kept_share


def dropout_operands(
    state: cute.Tensor | None, threshold: cute.Int32 | None, kept: cute.Float32 | None
) -> DropoutOperands | None:
    """Return the operands of a launch; None without dropout."""
    if state is None or threshold is None or kept is None:
        return None
    return DropoutOperands(state, threshold, kept)


def dropout_types(used: bool) -> dict[str, Any]:
    """Return the annotations of the operands in a launch; None without dropout."""
    found = {"state": cute.Tensor[cute.Int64, "2:1"], "threshold": cute.Int32, "kept": cute.Float32}
    return found if used else dict.fromkeys(found)


class Dropout:
    """Generates the dropout mask of a thread's accumulators: two of every eight columns, in rows that are eight apart.

    A sign word holds the mask of two scores in bits 15 and 31: 1 if the score is kept.
    """

    def __init__(self, operands: DropoutOperands):
        seed, offset = (cute.arch.make_warp_uniform(operands.state[i]) for i in range(2))
        self.key, self.offset, self.kept = key_of(seed), low_word(offset), operands.kept
        self.added = (cute.Uint32(_HIGH) - operands.threshold.to(cute.Uint32)) * 0x10001
        self.lane = cute.arch.lane_idx()

    def key_after(self, number: Int) -> list[cute.Uint32]:
        """Return the Philox key, recomputed for each ``number`` to save registers; see :func:`.tiles.nothing_of`."""
        zero = nothing_of(number).to(cute.Uint32)
        return [word + zero for word in self.key]

    def _signs(self, column: Int, row: Int, matrix: Int, key: list[cute.Uint32]) -> list[cute.Uint32]:
        """Return the four sign words of a Philox counter."""
        words = words_at((column, row, matrix, self.offset), key, ROUNDS)
        return [(word & 0x7FFF7FFF) + self.added for word in words]

    def of_queries(self, query: Int, block: Int, matrix: Int, key: list[cute.Uint32]) -> list[cute.Uint32]:
        """Return the sign words of 16 queries, which are rows, and 16 keys, in the order of accumulators.

        Args:
            query: The thread's first query in the sequence.
            block: Index of the keys.
            matrix: Index of the sequence and the head.
            key: The key.
        """
        return self._signs(block * 4 + self.lane % 4, query // 16 * 8 + self.lane // 4, matrix, key)

    def of_keys(self, block: Int, query: Int, count: int, matrix: Int) -> list[cute.Uint32]:
        """Return the mask of S^T, whose rows are 16 keys and whose columns are queries, for :func:`negate_dropped`.

        A returned word covers 64 queries. A thread needs half of each sign word of two counters, so it computes one
        counter and exchanges halves with its neighbour.

        Args:
            block: Index of the keys.
            query: Index of the first 16 queries.
            count: Number of queries, a multiple of 16.
            matrix: Index of the sequence and the head.
        """
        odd = self.lane // 4 % 2
        # ptxas must not keep words that are the same in all steps in registers.
        zero, key = nothing_of(query), self.key_after(query)
        column, matrix = block * 4 + self.lane // 8 + zero, matrix + zero
        found = list[cute.Uint32]()
        for first in range(0, count // 16, 4):
            bits = cute.Uint32(0)
            for i in range(first, min(first + 4, count // 16)):
                row = (query + i) * 8 + self.lane % 4 * 2 + odd
                for j, sign in enumerate(self._signs(column, row, matrix, key)):
                    place = (i - first) * 4 + j
                    bits = bits | ((sign >> place) & (0x80008000 >> place))
            found.append(
                cute.arch.prmt(bits, cute.arch.shuffle_sync_bfly(bits, 4), cute.where(odd == 1, 0x3276, 0x5410))
            )
        return found


def without_dropped(values: Any, signs: list[cute.Uint32]) -> Any:
    """Return a vector of 16-bit values with the dropped ones set to 0."""
    masks = cute.make_rmem_tensor(len(signs), cute.Int32)
    for i, sign in enumerate(signs):
        masks[i] = cute.arch.prmt(sign, 0, 0xBB99).to(cute.Int32)
    return (values.bitcast(cute.Int32) & masks.load()).bitcast(values.element_type)


def without_negative(values: Any) -> Any:
    """Return a vector of 16-bit values with the negative ones set to 0."""
    words = cute.make_rmem_tensor(cute.size(values.shape) // 2, cute.Int32)
    words.store(values.bitcast(cute.Int32))
    for i in range(cute.size(words)):
        words[i] = cute.arch.inline_ptx("max.relu.s16x2 $0, $1, $1;", words[i], result=cute.Int32, side_effects=False)
    return words.load().bitcast(values.element_type)


def negate_dropped(values: cute.Tensor, first: int, bits: list[cute.Uint32]) -> None:
    """Negate the dropped ones of eight nonnegative accumulators.

    Args:
        values: Accumulators of 16 keys, which are rows, and queries.
        first: Index of the first of the eight, a multiple of 8.
        bits: See :meth:`Dropout.of_keys`.
    """
    for i in range(first, first + 8):
        # Pairs of queries; a counter has those of keys j and j + 8 after each other.
        pair = i // 2
        place = pair // 4 * 4 + (0, 2, 1, 3)[pair % 4]
        kept = bits[place // 16] << (place % 16 + (0 if i % 2 else 16))
        values[i] = (values[i].bitcast(cute.Uint32) | (~kept & 0x80000000)).bitcast(cute.Float32)
