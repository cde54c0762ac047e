"""Functions of the scores of attention: scale, soft cap, ALiBi, bias and mask, between the MMA and softmax.

Functions of users, ``score_mod`` and ``mask_mod``, are graphs (:mod:`.score_graph`). They replace the scores by
``f(scale x)``, or by -inf where a key is hidden; softmax then has the factor ``log2(e)``, or ``scale log2(e)`` if keys
are only hidden.

Without them, the accumulator of Q K^T becomes ``log2(e) (f(scale x) + bias)``, so that softmax uses powers of two
without a factor. The soft cap ``f(x) = cap tanh(x / cap)`` is ``cap - 2 cap / (1 + e^(2 x / cap))``, which needs one
exponential and one approximate reciprocal and is accurate to about 1e-6 of the cap.
"""

# Traced values define operators and attributes that pyright cannot check.
# pyright: basic, reportOptionalSubscript=false, reportOptionalMemberAccess=false

from typing import Any, NamedTuple

import cute_dialect.lang as cute
from cute_dialect.kernels.attention.config import AttentionConfig
from cute_dialect.kernels.attention.dropout import DropoutOperands
from cute_dialect.kernels.attention.score_graph import Scored
from cute_dialect.kernels.attention.tiles import Place, Step
from cute_dialect.lang.values.signature_types import Int, Number

LOG2_E = 1.4426950408889634


class ScoreOperands(NamedTuple):
    """Operands of the functions of scores. Those that the configuration does not use are None."""

    # Factor of the scores, times log2(e); with a soft cap times 2 log2(e) / cap; with a graph of scores neither.
    scale: cute.Float32
    cap: Number  # soft cap, times log2(e)
    slopes: cute.Tensor | None  # slopes of ALiBi, (H, B), in f32
    bias: cute.Tensor | None  # added bias or mask of visible keys, (queries, keys, H, B)
    sinks: cute.Tensor | None  # logits of keys without values, (H,)
    captured: Any  # inputs of the graph, or None
    descales: tuple[cute.Tensor | None, ...]  # factors of Q, K and V, (key heads, B), in f32
    drops: DropoutOperands | None  # of dropout


class Line(NamedTuple):
    """A row of a thread."""

    query: Int  # in the sequence
    head: Int
    slope: Number  # of ALiBi, times log2(e)
    values: dict[int, Any]  # values of the graph that depend on the query, by node


class Scores:
    """The scores of a thread: two rows, eight apart, and two of every eight columns, as in :mod:`.softmax`.

    ``scale`` is the factor of the scores: that of the operands, times the factors of Q and K.
    """

    def __init__(self, c: AttentionConfig, scores: cute.Tensor, operands: ScoreOperands):
        self.c, self.scores, self.operands = c, scores, operands
        self.scale = operands.scale
        self.graph = None if c.functions is None else Scored(c.functions, operands.captured)

    def line(self, query: Int, head: Int, place: Place) -> Line:
        """Return a row, with what depends on it alone loaded."""
        slope = self.operands.slopes[head, place.batch] * LOG2_E if self.c.alibi else None
        values: dict[int, Any] = {}
        if self.graph is not None:
            at = {**_indices(place), "row": self.graph.index(query, place.queries)}
            values = self.graph.known(("score", "visible"), "row", at)
        return Line(query, head, slope, values)

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
                score = self.scores[i] * self.scale
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

    def apply(self, lines: list[Line], place: Place, step: Step, column: Int) -> None:
        """Apply the graph to all scores of a step.

        Args:
            lines: the thread's rows.
            place: the tile.
            step: the step.
            column: the thread's first column.
        """
        if not self.c.has_mask or step.partial is None:
            self._apply(lines, place, step.key + column, ("score", "visible"))
        elif self.c.has_score:
            if step.partial:
                self._apply(lines, place, step.key + column, ("score", "visible"))
            else:
                self._apply(lines, place, step.key + column, ("score",))
        elif step.partial:
            self._apply(lines, place, step.key + column, ("visible",))

    def _apply(self, lines: list[Line], place: Place, first: Int, names: tuple[str, ...]) -> None:
        graph, scale = self.graph, self.scale
        base = _indices(place)
        shared = graph.known(names, "", base)
        for column in cute.range_constexpr(self.c.tile_n // 4):
            at = {**base, "column": graph.index(first + (column // 2 * 8 + column % 2), place.keys)}
            of_column = graph.known(names, "column", at, shared)
            for row in cute.range_constexpr(2):
                line, i = lines[row], column // 2 * 4 + row * 2 + column % 2
                at["row"] = graph.index(line.query, place.queries)
                known = {**of_column, **line.values}
                score = self.scores[i]
                if "score" in names and self.c.has_score:
                    score = cute.Float32(graph.value("score", score * scale, at, known))
                if "visible" in names and self.c.has_mask:
                    score = score if graph.value("visible", None, at, known) else cute.Float32(float("-inf"))
                self.scores[i] = score


def _indices(place: Place) -> dict[str, Any]:
    """Return the indices of a graph that are the same for all scores of a tile."""
    return {"matrix": place.batch, "head": place.head, "queries": place.queries, "keys": place.keys}
