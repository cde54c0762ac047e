"""Functions of scores in the backward of attention: probabilities, derivatives, and gradients of captured arrays.

A thread has two keys, eight apart, and two of every eight queries of a tile. With ``s = f(x)`` and ``x = scale q k``::

    P   = exp2(log2(e) s - log2(e) lse), or 0 where the key is hidden
    dX  = P (dP - delta) f'(x)                  P f'(x) is computed with P, so that x need not stay in registers
    da += P (dP - delta) ds/da                  of an element a of a captured array, by atomic additions
"""

# Traced values define operators and attributes that pyright cannot check.
# pyright: basic, reportOptionalMemberAccess=false, reportArgumentType=false

from typing import Any, NamedTuple

import cute_dialect.lang as cute
from cute_dialect.kernels.attention.backward_config import BackwardConfig
from cute_dialect.kernels.attention.backward_tiles import KeyPlace
from cute_dialect.kernels.attention.score_graph import Scored
from cute_dialect.kernels.attention.tiles import nothing_of
from cute_dialect.lang.values.signature_types import Condition, Int

LOG2_E = 1.4426950408889634


class Limits(NamedTuple):
    """Queries of a step that see a thread's keys, counted from the thread's first query, for each of two keys."""

    low: list[Int]  # the first one
    high: list[Int] | None  # the last one, None for no bound


class Probabilities(NamedTuple):
    """Probabilities of a step, and their products with the slopes of the scores."""

    plain: cute.Tensor
    sloped: cute.Tensor


class BackwardScores:
    """The graph of a configuration in the registers of a thread.

    Args:
        c: Configuration.
        inputs: Inputs of the graph.
        sums: Accumulators of the gradients of captured arrays, in the order of
            :attr:`.backward_config.BackwardConfig.learned`.
        scale: Factor of the scores.
        row: The thread's first key in the tile.
        columns: The thread's first query in a tile, and the number of queries of its consumer.
    """

    def __init__(
        self, c: BackwardConfig, inputs: Any, sums: Any, scale: cute.Float32, row: Int, columns: tuple[Int, int]
    ):
        self.c, self.graph, self.sums, self.scale = c, Scored(c.functions, inputs), sums, scale
        self.factor = scale * LOG2_E
        self.row, (self.column, self.columns) = row, columns

    def powers(
        self, scores: cute.Tensor, logs: cute.Tensor, place: KeyPlace, head: Int, tile: Int,
        partial: Condition | None, limits: Limits | None,
    ) -> Probabilities:  # fmt: skip
        """Return the probabilities of a tile of queries.

        Args:
            scores: The accumulator of K Q^T.
            logs: Log-sum-exps of the thread's queries, times ``log2(e)``.
            place: Tile of keys.
            head, tile: The queries.
            partial: True if the mask function applies; None if it always does.
            limits: Bounds of the visible queries, which apply to the products with slopes, too; None if the caller
                applies them to the probabilities.
        """
        count = cute.size(scores)
        plain = cute.make_rmem_tensor(count, cute.Float32)
        has_slope = self.c.functions.has("slope")
        sloped = cute.make_rmem_tensor(count, cute.Float32) if has_slope else plain
        both = Probabilities(plain, sloped)
        masked = True if partial is None or not self.c.functions.has("visible") else partial
        if masked:
            self._compute(both, scores, logs, place, head, tile, limits, True)
        else:
            self._compute(both, scores, logs, place, head, tile, limits, False)
        return both

    def _compute(
        self, found: Probabilities, scores: cute.Tensor, logs: cute.Tensor, place: KeyPlace, head: Int, tile: Int,
        limits: Limits | None, masked: bool,
    ) -> None:  # fmt: skip
        of = self.c.functions
        names = tuple([n for n in ("score", "slope", "visible") if of.has(n) and (masked or n != "visible")])
        base, shared, of_keys = self._keys(names, place, head, tile)
        for column in cute.range_constexpr(self.columns // 4):
            x = column // 2 * 8 + column % 2
            at, of_query = self._query(names, base, shared, place, tile, x)
            for half in cute.range_constexpr(2):
                i = column // 2 * 4 + half * 2 + column % 2
                here, known = {**at, "column": of_keys[half][0]}, {**of_query, **of_keys[half][1]}
                score, log = scores[i] * self.scale, logs[i % 2 + i // 4 * 2]
                exponent = cute.math.fma(scores[i], self.factor, -log)
                if of.has("score"):
                    value = cute.Float32(self.graph.value("score", score, here, known))
                    exponent = cute.math.fma(value, LOG2_E, -log)
                power = cute.math.exp2(exponent, fastmath=True)
                seen = self.graph.value("visible", None, here, known) if "visible" in names else None
                if seen is not None:
                    power = power if seen else cute.Float32(0.0)
                if of.has("slope"):
                    product = power * self.graph.value("slope", score, here, known)
                    if seen is not None:
                        product = product if seen else cute.Float32(0.0)
                    if limits is not None:
                        inside = x >= limits.low[half]
                        inside = inside if limits.high is None else inside & (x <= limits.high[half])
                        power = power if inside else cute.Float32(0.0)
                        product = product if inside else cute.Float32(0.0)
                    found.sloped[i] = product
                found.plain[i] = power

    def add_captured(self, grads: cute.Tensor, place: KeyPlace, head: Int, tile: Int) -> None:
        """Add the gradients of captured arrays, from those of the scores that softmax takes."""
        for sums, index in zip(self.sums or (), self.c.learned):
            name = f"slope {index}"
            base, shared, of_keys = self._keys((name,), place, head, tile)
            for column in cute.range_constexpr(self.columns // 4):
                at, of_query = self._query((name,), base, shared, place, tile, column // 2 * 8 + column % 2)
                for half in cute.range_constexpr(2):
                    i = column // 2 * 4 + half * 2 + column % 2
                    here, known = {**at, "column": of_keys[half][0]}, {**of_query, **of_keys[half][1]}
                    value = grads[i] * self.graph.value(name, None, here, known)
                    element = self.graph.indices(index, here, known)
                    if value != 0.0:  # hidden keys, and those past the end
                        cute.arch.red(sums.iterator + cute.crd2idx(tuple(element), sums.layout), value)

    def _keys(
        self, names: tuple[str, ...], place: KeyPlace, head: Int, tile: Int
    ) -> tuple[dict[str, Any], dict[int, Any], list[tuple[Int, dict[int, Any]]]]:
        """Return the indices and the values that a tile shares, and for each key its index and values."""
        base = {"matrix": place.batch, "head": head, "queries": place.queries, "keys": place.keys}
        shared = self.graph.known(names, "", base)
        found = []
        # ptxas must not keep what depends on the keys alone in registers for all steps.
        first = place.row + self.row + nothing_of(tile)
        for half in range(2):
            key = self.graph.index(first + 8 * half, place.keys)
            found.append((key, self.graph.known(names, "column", {**base, "column": key}, shared)))
        return base, shared, found

    def _query(
        self, names: tuple[str, ...], base: dict[str, Any], shared: dict[int, Any], place: KeyPlace, tile: Int, x: int
    ) -> tuple[dict[str, Any], dict[int, Any]]:
        """Return the indices and values of a query, ``x`` after the thread's first one."""
        at = {**base, "row": self.graph.index(tile * self.c.tile_m + self.column + x, place.queries)}
        return at, self.graph.known(names, "row", at, shared)
