"""Online softmax over steps of keys, in the registers of a warpgroup.

A thread has two of the 64 rows, eight apart, and two of every eight columns; four lanes share a row. For each row it
keeps the running maximum and the sum of exponentials relative to it. If the maximum grows, the accumulator is rescaled.
Exponentials are powers of two: the scale of the scores and ``log2(e)`` form one factor.
"""

# Traced values define operators and attributes that pyright cannot check.
# pyright: basic

from collections.abc import Callable, Sequence
from typing import Any

import cute_dialect.lang as cute
from cute_dialect.kernels.attention.config import AttentionConfig
from cute_dialect.kernels.attention.dropout import without_dropped
from cute_dialect.lang.values.signature_types import Condition, Int, Number

SLACK = 8.0
"""Largest power of two by which a weight may exceed 1 before the row maximum is updated. Weights up to 2^8 are as
accurate as smaller ones, and updating the maximum less often saves rescaling the accumulator."""

BYTE_SLACK, BYTE_EXPONENT = 0.75, 8.0
"""Slack, and the power of two by which weights are multiplied, if they are rounded to e4m3. Its largest number is 448,
and numbers below 2^-6 are less accurate."""

LN_2 = 0.6931471805599453
_ROUNDED, _CUBIC = 12582912.0, (0.05500829, 0.24221052, 0.69328295)
"""1.5 * 2^23, and the factors of a polynomial from the highest power to the first."""
_CHAINS = 2
"""Independent chains of a row reduction per thread. A single chain would be bound by instruction latency."""


def emulated_exp2(x: cute.Float32) -> cute.Float32:
    """Return 2^x with a relative error of 1e-4, without the special function unit. It is 0 for x up to -127.

    A number added to 1.5 * 2^23 is rounded to an integer, in the low bits of the sum. The polynomial has the smallest
    largest relative error from -1/2 to 1/2, and is 1 at 0.
    """
    x = cute.arch.fmax(x, -127.0)
    shifted = x + _ROUNDED
    part = x - (shifted - _ROUNDED)
    power = cute.math.fma(part, _CUBIC[0], _CUBIC[1])
    for factor in (*_CUBIC[2:], 1.0):
        power = cute.math.fma(power, part, factor)
    return (power.bitcast(cute.Int32) + (shifted.bitcast(cute.Int32) << 23)).bitcast(cute.Float32)


class Softmax:
    """Softmax of a warpgroup's rows.

    ``scores`` is the accumulator of Q K^T, ``weights`` the A operand of the MMAs with V, and ``sums`` their
    accumulator. Scores times ``factor`` are the arguments of ``exp2``.
    """

    def __init__(
        self, c: AttentionConfig, scores: cute.Tensor, weights: cute.Tensor, sums: cute.Tensor, factor: cute.Float32
    ):
        self.c, self.scores, self.weights, self.sums, self.factor = c, scores, weights, sums, factor
        self.columns = c.tile_n // 4
        self.slack, self.exponent = (BYTE_SLACK, BYTE_EXPONENT) if c.bits == 8 else (SLACK, 0.0)
        self.most = [cute.Float32(0.0), cute.Float32(0.0)]
        self.total = [cute.Float32(0.0), cute.Float32(0.0)]

    def _index(self, row: int, column: int) -> int:
        """Return the register of a thread's column in one of its rows."""
        return column // 2 * 4 + row * 2 + column % 2

    def begin(self) -> None:
        """Reset the state: no keys so far."""
        self.sums.fill(0.0)
        for row in cute.range_constexpr(2):
            self.most[row], self.total[row] = cute.Float32(float("-inf")), cute.Float32(0.0)

    def mask(self, low: Sequence[Int] | None, high: Sequence[Int] | None) -> None:
        """Set the scores of columns before ``low`` and from ``high`` on to -inf, per row; None for no bound.

        Columns are counted from this thread's first one.
        """
        for row in cute.range_constexpr(2):
            for column in cute.range_constexpr(self.columns):
                at, i = column // 2 * 8 + column % 2, self._index(row, column)
                score = self.scores[i]
                if high is not None:
                    score = score if at < high[row] else cute.Float32(float("-inf"))
                if low is not None:
                    score = score if at >= low[row] else cute.Float32(float("-inf"))
                self.scores[i] = score

    def take(self, *, first: bool, masked: bool) -> list[cute.Float32]:
        """Replace the scores by their exponentials, and return the factors that rescale the accumulator."""
        by = []
        for row in cute.range_constexpr(2):
            found = self._over(row, cute.arch.fmax)
            for distance in (1, 2):
                found = cute.arch.fmax(found, cute.arch.shuffle_sync_bfly(found, distance))
            before = self.most[row]
            if not first:
                most = cute.arch.fmax(before, found)
                if self.c.lazy:
                    most = most if (most - before) * self.factor > self.slack else before
                found = most
            # A row that has not seen a key has a maximum of -inf, which must not be subtracted.
            most = found
            if masked:
                most = most if most != float("-inf") else cute.Float32(0.0)
            offset = most * self.factor
            if self.exponent:
                offset = offset - self.exponent
            if not first:
                by.append(cute.math.exp2((before - most) * self.factor, fastmath=True))
            self.most[row] = found
            for column in cute.range_constexpr(self.columns):
                i = self._index(row, column)
                power = cute.math.fma(self.scores[i], self.factor, -offset)
                emulated = column // 2 % 8 * 3 % 8 < self.c.emulated
                self.scores[i] = emulated_exp2(power) if emulated else cute.math.exp2(power, fastmath=True)
            here = self._over(row, lambda x, y: x + y)
            self.total[row] = here if first else cute.math.fma(self.total[row], by[row], here)
        return by

    def _over(self, row: int, combine: Callable[[Number, Number], Number]) -> Number:
        """Combine a row's registers."""
        chains = [self.scores[self._index(row, column)] for column in range(_CHAINS)]
        for column in cute.range_constexpr(_CHAINS, self.columns):
            at = column % _CHAINS
            chains[at] = combine(chains[at], self.scores[self._index(row, column)])
        return combine(*chains)

    def is_taken(self) -> Condition:
        """Return a condition that is always True and depends on all exponentials.

        ptxas moves a wait for MMAs ahead of instructions that do not depend on them. It would thus compute the softmax
        after the MMAs instead of during them. It does not move the wait ahead of a barrier arrival, nor the arrival
        ahead of its condition.
        """
        return not self.total[0] + self.total[1] < 0.0

    def weigh(self, signs: Callable[[int], list[cute.Uint32]] | None = None) -> None:
        """Round the exponentials to the A operand of the MMAs with V.

        Args:
            signs: Returns the sign words of 16 columns, see :class:`.dropout.Dropout`; None without dropout.
        """
        count = cute.size(self.scores)
        if signs is not None:
            layout = cute.make_layout((8, count // 8))
            flat, plain = (cute.make_tensor(x.iterator, layout) for x in (self.weights, self.scores))
            for i in cute.range_constexpr(count // 8):
                rounded = plain[None, i].load().to(flat.element_type)
                flat[None, i].store(without_dropped(rounded, signs(i)))
            return
        flat = cute.make_tensor(self.weights.iterator, cute.make_layout(cute.size(self.weights)))
        order: Any = cute.make_layout(count)
        if self.c.bits == 8:
            # A register of the A operand has four adjacent columns of a row. It gets those that this thread has of 16
            # columns, two and two. The transposed V has its keys in the same order (:mod:`.transposition`).
            order = cute.make_layout((2, 2, 2, self.columns // 4), stride=(1, 4, 2, 8))
        plain = cute.make_tensor(self.scores.iterator, order)
        flat.store(plain.load().to(flat.element_type))

    def rescale(self, by: Sequence[Number]) -> None:
        """Rescale the accumulator. With ``lazy``, skip it if no maximum in the warp's rows has grown."""
        if self.c.lazy:
            if cute.arch.vote_any_sync((by[0] != 1.0) | (by[1] != 1.0)):
                self._rescale(by)
        else:
            self._rescale(by)

    def _rescale(self, by: Sequence[Number]) -> None:
        for i in cute.range_constexpr(cute.size(self.sums)):
            self.sums[i] = self.sums[i] * by[i // 2 % 2]

    def finish(
        self,
        sinks: Sequence[cute.Float32] | None = None,
        descale: cute.Float32 | None = None,
        kept: cute.Float32 | None = None,
    ) -> list[Number]:
        """Divide the accumulator by the sums of exponentials, and return the log-sum-exp of each row.

        Rows without a key are 0, and their log-sum-exp is -inf.

        Args:
            sinks: for each row, the logit of a key without a value, times ``log2(e)``.
            descale: factor of the values, or None.
            kept: share of the exponentials that dropout keeps, or None.
        """
        logs, factors = [], []
        for row in cute.range_constexpr(2):
            total = self.total[row]
            for distance in (1, 2):
                total = total + cute.arch.shuffle_sync_bfly(total, distance)
            by, most = 1.0, self.most[row] * self.factor
            if sinks is not None:
                before = most
                most = cute.arch.fmax(before, sinks[row])
                # Without a key and without a sink both are -inf, which must not be subtracted.
                finite = most if most != float("-inf") else cute.Float32(0.0)
                by = cute.math.exp2(before - finite, fastmath=True)
                power = sinks[row] - finite
                power = power + self.exponent if self.exponent else power
                total = cute.math.fma(total, by, cute.math.exp2(power, fastmath=True))
            none = total == 0.0
            by = by if kept is None else by / kept
            factors.append(0.0 if none else by / total if descale is None else by / total * descale)
            if self.c.lse:
                log = most + cute.math.log2(total, fastmath=True)
                log = log - self.exponent if self.exponent else log
                logs.append(float("-inf") if none else log * LN_2)
        self._rescale(factors)
        return logs
