"""Functions of the scores of attention: scale, soft cap, ALiBi, bias and mask, between the MMA and softmax.

The accumulator of Q K^T becomes ``log2(e) (f(scale x) + bias)``, so that softmax uses powers of two without a factor.
The soft cap ``f(x) = cap tanh(x / cap)`` is ``cap - 2 cap / (1 + e^(2 x / cap))``, which needs one exponential and one
approximate reciprocal and is accurate to about 1e-6 of the cap.
"""

# Traced values define operators and attributes that pyright cannot check.
# pyright: basic, reportOptionalSubscript=false, reportOptionalMemberAccess=false

from typing import NamedTuple

import cute_dialect.lang as cute
from cute_dialect.kernels.attention.config import AttentionConfig
from cute_dialect.lang.values.signature_types import Int, Number

LOG2_E = 1.4426950408889634


class ScoreOperands(NamedTuple):
    """Operands of the functions of scores. Those that the configuration does not use are None."""

    scale: cute.Float32  # factor of the scores, times log2(e); with a soft cap times 2 log2(e) / cap
    cap: Number  # soft cap, times log2(e)
    slopes: cute.Tensor | None  # slopes of ALiBi, (H, B), in f32
    bias: cute.Tensor | None  # added bias or mask of visible keys, (queries, keys, H, B)
    sinks: cute.Tensor | None  # logits of keys without values, (H,)


class Line(NamedTuple):
    """A row of a thread: its query in the sequence, its head, and its ALiBi slope times ``log2(e)``."""

    query: Int
    head: Int
    slope: Number


class Scores:
    """The scores of a thread: two rows, eight apart, and two of every eight columns, as in :mod:`.softmax`."""

    def __init__(self, c: AttentionConfig, scores: cute.Tensor, operands: ScoreOperands):
        self.c, self.scores, self.operands = c, scores, operands

    def line(self, query: Int, head: Int, batch: Int) -> Line:
        """Return a row, with its slope loaded."""
        slope = self.operands.slopes[head, batch] * LOG2_E if self.c.alibi else None
        return Line(query, head, slope)

    def sinks(self, lines: list[Line]) -> list[cute.Float32] | None:
        """Return the logits of the rows' keys without values, times ``log2(e)``, or None."""
        if not self.c.sinks:
            return None
        return [self.operands.sinks[line.head].to(cute.Float32) * LOG2_E for line in lines]

    def adjust(self, lines: list[Line], batch: Int, first: Int, own: list[Int]) -> None:
        """Apply the functions to all scores.

        Args:
            lines: the thread's rows.
            batch: index of the sequence.
            first: the key of the thread's first column.
            own: for each row, the key at distance 0 for ALiBi, minus ``first``.
        """
        c, o = self.c, self.operands
        columns = c.tile_n // 4
        for row in cute.range_constexpr(2):
            line = lines[row]
            of_row: cute.Tensor | None = None
            if c.bias:  # rows and columns past the end are masked later, so any element may stand for them
                query = cute.min(line.query, o.bias.shape[0] - 1)
                of_row = o.bias[query, None, line.head, batch]
            away: Number = cute.Float32(own[row]) if c.alibi else None
            for column in cute.range_constexpr(columns):
                at, i = column // 2 * 8 + column % 2, column // 2 * 4 + row * 2 + column % 2
                score = self.scores[i] * o.scale
                if c.softcap:
                    power = cute.math.exp2(score, fastmath=True) + 1.0
                    score = cute.math.fma(cute.math.rcp(power, fastmath=True), -2.0 * o.cap, o.cap)
                if c.alibi:
                    score = cute.math.fma(cute.math.absf(away - float(at)), -line.slope, score)
                if c.bias:
                    held = of_row[cute.min(first + at, o.bias.shape[1] - 1)]
                    if c.bias == "i1":
                        score = score if held != 0 else cute.Float32(float("-inf"))
                    else:
                        score = cute.math.fma(held.to(cute.Float32), LOG2_E, score)
                self.scores[i] = score
