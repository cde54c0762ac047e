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
from cute_dialect.kernels.attention.backward_tiles import KeyPlace, QueryTile
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


def _bit(index: int) -> int:
    """Return a word of i32 with one bit, that of a score."""
    return -(1 << 31) if index % 32 == 31 else 1 << index % 32


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

    def visible(self, place: KeyPlace, head: Int, tile: Int, partial: Condition | None) -> cute.Tensor | None:
        """Return a bit for each of the thread's scores of a tile of queries: 1 if the mask function shows the key.

        The bits do not depend on the scores, so that they can be computed while the MMA of the scores runs.

        Args:
            place: Tile of keys.
            head, tile: The queries.
            partial: True if the mask function applies, otherwise the bits are undefined; None if it always applies.

        Returns:
            Words of 32 bits, or None without a mask function.
        """
        names = ("visible",)
        if not self.c.functions.has(names[0]):
            return None
        found = cute.make_rmem_tensor(-(-self.columns // 2 // 32), cute.Int32)
        found.fill(0)
        if True if partial is None else partial:
            # The functions of scores recompute the indices, which ptxas would otherwise spill until then.
            tile = tile + nothing_of(tile + 1)
            base, shared, of_keys = self._keys(names, place, head, tile)
            for column in cute.range_constexpr(self.columns // 4):
                at, of_query = self._query(names, base, shared, place, tile, column // 2 * 8 + column % 2)
                for half in cute.range_constexpr(2):
                    i = column // 2 * 4 + half * 2 + column % 2
                    here, known = {**at, "column": of_keys[half][0]}, {**of_query, **of_keys[half][1]}
                    if self.graph.value(names[0], None, here, known):
                        found[i // 32] = found[i // 32] | _bit(i)
        return found

    def powers(
        self, scores: cute.Tensor, logs: cute.Tensor, place: KeyPlace, head: Int, here: QueryTile,
        seen: cute.Tensor | None, limits: Limits | None,
    ) -> Probabilities:  # fmt: skip
        """Return the probabilities of a tile of queries.

        Args:
            scores: The accumulator of K Q^T.
            logs: Log-sum-exps of the thread's queries, times ``log2(e)``.
            place: Tile of keys.
            head, here: The queries.
            seen: The bits of :meth:`visible`.
            limits: Bounds of the visible queries, which apply to the products with slopes, too; None if the caller
                applies them to the probabilities.
        """
        count = cute.size(scores)
        plain = cute.make_rmem_tensor(count, cute.Float32)
        has_slope = self.c.functions.has("slope")
        sloped = cute.make_rmem_tensor(count, cute.Float32) if has_slope else plain
        both = Probabilities(plain, sloped)
        self._compute(both, scores, logs, place, head, here.tile, limits)
        if seen is not None and (True if here.partial is None else here.partial):
            for i in cute.range_constexpr(count):
                for x in (plain, sloped) if has_slope else (plain,):
                    x[i] = x[i] if (seen[i // 32] & _bit(i)) != 0 else cute.Float32(0.0)
        return both

    def _compute(
        self, found: Probabilities, scores: cute.Tensor, logs: cute.Tensor, place: KeyPlace, head: Int, tile: Int,
        limits: Limits | None,
    ) -> None:  # fmt: skip
        of = self.c.functions
        names = tuple([n for n in ("score", "slope") if of.has(n)])
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
                if of.has("slope"):
                    product = power * self.graph.value("slope", score, here, known)
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
