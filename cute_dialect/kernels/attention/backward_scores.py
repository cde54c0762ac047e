"""Functions of scores in the backward of attention: probabilities, derivatives, and gradients of captured arrays.

A thread has two keys, eight apart, and two of every eight queries of a tile. With ``s = f(x)`` and ``x = scale q k``::

    P   = exp2(log2(e) s - log2(e) lse), or 0 where the key is hidden
    dX  = P (dP - delta) f'(x)                  P f'(x) is computed with P, so that x need not stay in registers
    da += P (dP - delta) ds/da                  of an element a of a captured array, by atomic additions
"""

# Traced values define operators and attributes that pyright cannot check.
# pyright: basic, reportOptionalMemberAccess=false, reportArgumentType=false

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple, TypeAlias

import cute_dialect.lang as cute
from cute_dialect.kernels.attention.backward_config import BackwardConfig
from cute_dialect.kernels.attention.backward_tiles import KeyPlace, QueryTile
from cute_dialect.kernels.attention.score_graph import SMALL, Indices, Scored, Values, Word, WordType
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


def hide(values: Probabilities, seen: cute.Tensor, applies: Condition, count: int) -> None:
    """Clear the probabilities whose bit is 0.

    Args:
        values: The probabilities.
        seen: Words of bits as :meth:`BackwardScores.visible` returns them.
        applies: True if any bit may be 0; otherwise the words are not read.
        count: Queries of a thread.
    """
    if applies:
        for at in cute.range_constexpr(cute.size(values.plain)):
            i = at % count // 2 * 4 + at // count * 2 + at % 2
            for x in (values.plain,) if values.sloped is values.plain else values:
                x[i] = x[i] if (seen[at // 32] & _bit(at)) != 0 else cute.Float32(0.0)


_Bits: TypeAlias = list[cute.Int32 | int]
"""For each of a thread's two keys, a word of i32 with a bit for each of the thread's queries, or -1 or 0."""


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
        group: Index of the consumer.
        held: Ring of the row statistics, and values of keys in shared memory, or None.
    """

    def __init__(
        self,
        c: BackwardConfig,
        inputs: Any,
        sums: Any,
        scale: cute.Float32,
        row: Int,
        columns: tuple[Int, int],
        group: Int,
        held: tuple[cute.Tensor, cute.Tensor | None],
    ):
        self.c, self.graph, self.sums, self.scale = c, Scored(c.functions, inputs), sums, scale
        self.factor = scale * LOG2_E
        self.row, (self.column, self.columns) = row, columns
        self.s_stats, self.s_keys = held
        self.clamps = [
            self._reads_by(index, nodes) for index, nodes in (("row", c.query_reads), ("column", c.key_reads))
        ]
        # Integers that become floats: their f32 value is that at the first query, plus or minus the query's offset.
        self.floats = tuple([i for i in c.functions.float_integers if abs(c.functions.query_factor(i) or 0) == 1])
        self.own = row % 64 + group * 64  # this thread's first key among those of ``s_keys``

    def _reads_by(self, index: str, words: tuple[tuple[int, int], ...]) -> bool:
        """Return True if consumers read arrays by a query or a key, which thus must be in range.

        Args:
            index: ``row`` or ``column``.
            words: Words in shared memory, which consumers do not read from arrays.
        """
        of, held = self.c.functions, [node for node, _ in words]
        return any(
            [
                x.op == "element" and of.depends[i] in (index, "both") and i not in held
                for i, x in enumerate(of.graph.nodes)
            ]
        )

    def hold_keys(self, place: KeyPlace, head: Int) -> None:
        """Read the values of arrays at a tile of keys, and hold them in shared memory.

        A warp writes and reads those of its own keys; its reads for the previous tile came before a barrier. Consumers
        that split the head have the same keys, and hold their values twice.
        """
        if self.s_keys is None:
            return
        if cute.arch.lane_idx() % 4 == 0:
            base = self._base(place, head)
            for half in cute.range_constexpr(2):
                at = {**base, "column": self.graph.index(place.row + self.row + 8 * half, place.keys)}
                known: Values = {}
                for i, (node, word) in enumerate(self.c.key_reads):
                    value = self.graph.held(node, self.graph.node_value(node, None, at, known), word)
                    target = cute.recast_tensor(self.s_keys, self.graph.word_type(node))
                    target[self.own + 8 * half, i] = value
        cute.arch.sync_warp()

    def visible(self, place: KeyPlace, head: Int, here: QueryTile) -> cute.Tensor | None:
        """Return a bit for each of the thread's scores of a tile of queries: 1 if the mask function shows the key.

        The bits do not depend on the scores, so that they can be computed while the MMA of the scores runs. Bits of the
        first key come first.

        Args:
            place: Tile of keys.
            head, here: The queries. If the mask function does not apply to them, the bits are undefined.

        Returns:
            Words of 32 bits, 0 for a step without queries; or None without a mask function.
        """
        if not self.c.functions.has("visible"):
            return None
        count = self.columns // 4
        found = cute.make_rmem_tensor(-(-2 * count // 32), cute.Int32)
        found.fill(0)
        if here.computes_mask:
            first, second = _MaskBits(self, place, head, here).of(self.c.functions.node("visible"))
            if count == 32:
                found[0], found[1] = cute.Int32(first), cute.Int32(second)
            else:
                found[0] = (cute.Int32(first) & ((1 << count) - 1)) | (cute.Int32(second) << count)
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
        self._compute(both, scores, logs, place, head, here, limits)
        if seen is not None:
            hide(both, seen, here.hides, self.columns // 4)
        return both

    def _compute(
        self, found: Probabilities, scores: cute.Tensor, logs: cute.Tensor, place: KeyPlace, head: Int,
        here: QueryTile, limits: Limits | None,
    ) -> None:  # fmt: skip
        of = self.c.functions
        names = tuple([n for n in ("score", "slope") if of.has(n)])
        base, shared, of_keys = self.keys(names, place, head, here)
        floats = [self._floats(base, key, here) for key in of_keys]
        for column in cute.range_constexpr(self.columns // 4):
            x = column // 2 * 8 + column % 2
            at, of_query = self.query(names, base, shared, place, here, x)
            for half in cute.range_constexpr(2):
                i = column // 2 * 4 + half * 2 + column % 2
                place_of, known = {**at, "column": of_keys[half][0]}, {**of_query, **of_keys[half][1]}
                known.update({n: first + float(factor * x) for n, first, factor in floats[half]})
                score, log = scores[i] * self.scale, logs[i % 2 + i // 4 * 2]
                exponent = cute.math.fma(scores[i], self.factor, -log)
                if of.has("score"):
                    value = cute.Float32(self.graph.value("score", score, place_of, known))
                    exponent = cute.math.fma(value, LOG2_E, -log)
                power = cute.math.exp2(exponent, fastmath=True)
                if of.has("slope"):
                    product = power * self.graph.value("slope", score, place_of, known)
                    if limits is not None:
                        inside = x >= limits.low[half]
                        inside = inside if limits.high is None else inside & (x <= limits.high[half])
                        power = power if inside else cute.Float32(0.0)
                        product = product if inside else cute.Float32(0.0)
                    found.sloped[i] = product
                found.plain[i] = power

    def _floats(self, base: Indices, key: tuple[Int, Values], here: QueryTile) -> list[tuple[int, cute.Float32, int]]:
        """Return nodes whose integers become floats, their values at the thread's first query, and the factors of the
        query. Additions of f32 are exact below 2^24, and take less time than those of integers and conversions.
        """
        at = {**base, "row": here.tile * self.c.tile_m + self.column, "column": key[0]}
        known, of, found = dict(key[1]), self.c.functions, []
        for i in self.floats:
            first = cute.Float32(self.graph.node_value(i, None, at, known))
            found.append((i, first, of.query_factor(i) or 0))
        return found

    def add_captured(self, grads: cute.Tensor, place: KeyPlace, head: Int, here: QueryTile) -> None:
        """Add the gradients of captured arrays, from those of the scores that softmax takes."""
        for sums, index in zip(self.sums or (), self.c.learned):
            name = f"slope {index}"
            base, shared, of_keys = self.keys((name,), place, head, here)
            for column in cute.range_constexpr(self.columns // 4):
                at, of_query = self.query((name,), base, shared, place, here, column // 2 * 8 + column % 2)
                for half in cute.range_constexpr(2):
                    i = column // 2 * 4 + half * 2 + column % 2
                    place_of, known = {**at, "column": of_keys[half][0]}, {**of_query, **of_keys[half][1]}
                    value = grads[i] * self.graph.value(name, None, place_of, known)
                    element = self.graph.indices(index, place_of, known)
                    if value != 0.0:  # hidden keys, and those past the end
                        cute.arch.red(sums.iterator + cute.crd2idx(tuple(element), sums.layout), value)

    def _base(self, place: KeyPlace, head: Int) -> Indices:
        """Return the indices that all scores of a tile share."""
        return {"matrix": place.batch, "head": head, "queries": place.queries, "keys": place.keys}

    def keys(
        self, names: tuple[str, ...], place: KeyPlace, head: Int, here: QueryTile
    ) -> tuple[Indices, Values, list[tuple[Int, Values]]]:
        """Return the indices and the values that a tile shares, and for each key its index and values."""
        base = self._base(place, head)
        shared = self.graph.known(names, "", base)
        found = []
        # ptxas must not keep what depends on the keys alone in registers for all steps.
        first = place.row + self.row + nothing_of(here.tile)
        for half in cute.range_constexpr(2):
            key, held = first + 8 * half, dict(shared)
            if self.clamps[1]:
                key = self.graph.index(key, place.keys)
            held.update(self.graph.read_all(self.c.key_reads, partial(self._key_word, half)))
            found.append((key, self.graph.known(names, "column", {**base, "column": key}, held)))
        return base, shared, found

    def query(
        self,
        names: tuple[str, ...],
        base: Indices,
        shared: Values,
        place: KeyPlace,
        here: QueryTile,
        x: int,
    ) -> tuple[Indices, Values]:
        """Return the indices and values of a query, ``x`` after the thread's first one."""
        row = here.tile * self.c.tile_m + self.column + x
        at = {**base, "row": self.graph.index(row, place.queries) if self.clamps[0] else row}
        held = {**shared, **self.graph.read_all(self.c.query_reads, partial(self._query_word, here, x))}
        return at, self.graph.known(names, "row", at, held)

    def has_other_words(self, here: QueryTile) -> Condition:
        """Return True if a query of a tile has other words than the first one."""
        flags = cute.recast_tensor(self.s_stats, cute.Int32)
        found = flags[self.c.stats_values - 4, here.slot]
        for i in cute.range_constexpr(1, self.c.tile_m // 32):
            found = found & flags[self.c.stats_values - 4 + i, here.slot]
        return found == 0

    def _key_word(self, half: int, i: int, kind: WordType) -> Word:
        """Return a word of a key in shared memory: the ``i``-th of ``key_reads``, of type ``kind``."""
        values = cute.recast_tensor(self.s_keys, kind)
        return values[self.own + 8 * half, i]

    def _query_word(self, here: QueryTile, x: int, i: int, kind: WordType) -> Word:
        """Return a word of a query in shared memory: the ``i``-th of ``query_reads``, of type ``kind``."""
        values = cute.recast_tensor(self.s_stats, kind)
        return values[(2 + i) * self.c.tile_m + self.column + x, here.slot]


class _MaskBits:
    """Evaluation of Boolean nodes for all scores of a thread at once, as :data:`_Bits`.

    Logical functions are those of words. A comparison of the query with a number that does not depend on it, such as
    ``q_idx - kv_idx < 512``, is true for the queries on one side of a bound. Others are evaluated for each score.
    """

    def __init__(self, scores: BackwardScores, place: KeyPlace, head: Int, here: QueryTile):
        # The functions of scores recompute the indices, which ptxas would otherwise spill until then.
        tile = here.tile + nothing_of(here.tile + 1)
        self.scores, self.place, self.here = scores, place, here._replace(tile=tile)
        self.graph, self.of_graph, self.count = scores.graph, scores.c.functions, scores.columns // 4
        self.base, self.shared, self.of_keys = scores.keys(("visible",), place, head, self.here)
        self.queries: list[tuple[Indices, Values]] = []
        self.first_query = Indices(self.base, row=tile * scores.c.tile_m + scores.column)
        self.at_first = [dict(known) for _, known in self.of_keys]
        self.found: dict[int, _Bits] = {}

    def of(self, node: int) -> _Bits:
        """Return the bits of a node."""
        if node not in self.found:
            self.found[node] = self._compute(node)
        return self.found[node]

    def _compute(self, node: int) -> _Bits:
        of, n = self.of_graph, self.of_graph.graph.nodes[node]
        if of.depends[node] in ("", "column"):
            return [self._all(self._at_first(node, half)) for half in range(2)]
        if n.op in _OF_WORDS and all([of.is_boolean(i) for i in n.operands]):
            operands = [self.of(i) for i in n.operands]
            return [_OF_WORDS[n.op](*[x[half] for x in operands]) for half in range(2)]
        if n.op in _BOUNDS or n.op in ("equal", "not_equal"):
            factors = [of.query_factor(i) for i in n.operands]
            first, second = factors
            if first is not None and second is not None and abs(first - second) == 1:
                compare = self._bounded if n.op in _BOUNDS else self._equal
                return [compare(n.op, n.operands, first - second, half) for half in range(2)]
            if n.op in _BOUNDS and (found := self._distances(n.op, n.operands, factors)):
                return found
        return self._by_score(node)

    def _all(self, value: Any) -> Any:
        """Return a word of which each bit is a Boolean."""
        return (-1 if value else 0) if isinstance(value, bool) else cute.where(value, -1, 0)

    def _at_first(self, node: int, half: int) -> Any:
        """Return the value of a node at a key and the thread's first query."""
        at = {**self.first_query, "column": self.of_keys[half][0]}
        return self.graph.node_value(node, None, at, self.at_first[half])

    def _numbers(self, nodes: tuple[int, ...], half: int) -> list[Int]:
        """Return two integers at a key and the thread's first query, so that their sums do not overflow.

        A number that is compared with a small one is limited to the largest of those; two large ones have 64 bits, and
        only those of :meth:`.score_graph.ScoreGraph.is_wide` may overflow.
        """
        small = [self.of_graph.is_small(node) for node in nodes]
        values = [self._at_first(node, half) for node in nodes]
        values = [x if isinstance(x, cute.Int64) else cute.Int32(x) for x in values]
        if not any(small):
            return [x.to(cute.Int64) for x in values]
        return [
            x if is_small and not isinstance(x, cute.Int64) else cute.Int32(cute.max(cute.min(x, SMALL), -SMALL))
            for x, is_small in zip(values, small)
        ]

    def _sum(self, x: Int, y: Int, sign: int, nodes: tuple[int, ...]) -> Int:
        """Return ``x + sign * y``. For wide nodes, the sum is limited to i32 numbers of at most SMALL in size."""
        total = x + y if sign > 0 else x - y
        if not isinstance(total, cute.Int64) or not any([self.of_graph.is_wide(node) for node in nodes]):
            return total
        # The sum overflows if its sign is neither that of x nor that of sign * y.
        overflows = ((x ^ total) & ((y ^ total) if sign > 0 else (x ^ y))) < 0
        limited = cute.Int32(cute.max(cute.min(total, SMALL), -SMALL))
        return cute.where(overflows, cute.where(x < 0, -SMALL, SMALL), limited)

    def _bounded(self, op: str, operands: tuple[int, ...], factor: int, half: int) -> Any:
        """Return the bits of a comparison of integers whose difference is ``factor`` times the query plus a number."""
        left, right = self._numbers(operands, half)
        difference = self._sum(left, right, -1, operands)
        inverted = op in ("less", "less_equal")  # left < right is not left >= right
        if op in ("greater", "less_equal"):
            difference = difference - 1
        # The comparison is difference + factor x >= 0 for the x-th query after the first one.
        if factor < 0:
            difference, inverted = -1 - difference, not inverted
        bits = self._from(-difference)
        return ~bits if inverted else bits

    def _equal(self, op: str, operands: tuple[int, ...], factor: int, half: int) -> Any:
        """Return the bits of a comparison as :meth:`_bounded` does, for equality."""
        left, right = self._numbers(operands, half)
        difference = self._sum(left, right, -1, operands)
        center = -difference if factor > 0 else difference
        bits = self._from(center) & ~self._from(center + 1)
        return bits if op == "equal" else ~bits

    def _distances(self, op: str, operands: tuple[int, ...], factors: list[int | None]) -> _Bits | None:
        """Return the bits of a comparison of ``|x|`` with a number, where ``x`` is the query plus or minus a number.

        Other comparisons have None.
        """
        of, swapped = self.of_graph, factors[0] == 0
        distance, limit = operands[::-1] if swapped else operands
        node = of.graph.nodes[distance]
        if node.op != "abs" or factors[0 if swapped else 1] != 0:
            return None
        factor = of.query_factor(node.operands[0])
        if factor is None or abs(factor) != 1:
            return None
        op = _SWAPPED[op] if swapped else op
        found: _Bits = []
        for half in cute.range_constexpr(2):
            nodes = node.operands[0], limit
            first, radius = self._numbers(nodes, half)
            radius = cute.max(radius, -1) - (1 if op in ("less", "greater_equal") else 0)
            # |first + factor x| <= radius for the x-th query after the first one
            low, high = [self._sum(first, radius, sign, nodes) for sign in (factor, -factor)]
            low, high = (-low, -high) if factor > 0 else (low, high)
            bits = self._from(low) & ~self._from(high + 1)
            found.append(bits if op in ("less", "less_equal") else ~bits)
        return found

    def _from(self, x: Int) -> Int:
        """Return the bits of the queries from the ``x``-th one after the thread's first one on."""
        last = self.count * 4 - 7  # the thread's last query
        at = cute.Int32(cute.max(cute.min(x, last), 0))
        bits = cute.Int32(-1) << ((at >> 3) * 2 + cute.min(at & 7, 2))
        return cute.where(x > last, 0, bits)

    def _by_score(self, node: int) -> _Bits:
        """Return the bits of a node that is evaluated for each score, or for each query if it does not depend on the
        key.

        A node that reads the query only through the words of its arrays is evaluated for one query, if all queries of
        the tile have the same words.
        """
        if not (self.scores.c.has_row_flags and self._reads_words(node)):
            return self._of_queries(node, self.count)
        first, second = [cute.Int32(bits) for bits in self._of_queries(node, 1)]
        if self.scores.has_other_words(self.here):
            queries = self.queries
            self.queries = queries[:1]  # values of the branch are not defined after it
            first, second = [cute.Int32(bits) for bits in self._of_queries(node, self.count)]
            self.queries = queries
        return [first, second]

    def _reads_words(self, node: int) -> bool:
        """Return True if a node depends on the query only through the words of ``query_reads``."""
        of = self.of_graph
        if of.depends[node] in ("", "column") or node in [read for read, _ in self.scores.c.query_reads]:
            return True
        operands = of.graph.nodes[node].operands
        return len(operands) > 0 and all([self._reads_words(i) for i in operands])

    def _of_queries(self, node: int, count: int) -> _Bits:
        """Return the bits of a node for the thread's queries.

        Args:
            node: The node.
            count: Queries for which it is evaluated: all of the thread, or 1 if the others have the same bits.
        """
        halves = 1 if self.of_graph.depends[node] == "row" else 2
        words: _Bits = [0, 0]
        for column in cute.range_constexpr(count):
            at, of_query = self._query(column)
            for half in cute.range_constexpr(halves):
                key, of_key = self.of_keys[half]
                known = {**of_query, **of_key}
                value = self.graph.node_value(node, None, {**at, "column": key}, known)
                words[half] = words[half] | cute.where(value, -1 if count == 1 else _bit(column), 0)
        return [words[0], words[-1 if halves == 2 else 0]]

    def _query(self, column: int) -> tuple[Indices, Values]:
        """Return the indices and values of a query."""
        if len(self.queries) == column:
            x = column // 2 * 8 + column % 2
            self.queries.append(self.scores.query(("visible",), self.base, self.shared, self.place, self.here, x))
        return self.queries[column]


_SWAPPED = {"greater_equal": "less_equal", "greater": "less", "less": "greater", "less_equal": "greater_equal"}
"""Comparisons -> those with exchanged operands."""

_BOUNDS = tuple(_SWAPPED)

_OF_WORDS: dict[str, Callable[..., Any]] = {
    "logical_and": lambda x, y: x & y,
    "logical_or": lambda x, y: x | y,
    "logical_not": lambda x: ~x,
    "not_equal": lambda x, y: x ^ y,
    "equal": lambda x, y: ~(x ^ y),
    "where": lambda c, x, y: (c & x) | (~c & y),
}
"""Functions of Booleans -> functions of words."""
