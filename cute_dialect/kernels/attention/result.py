"""Output path of attention: stores the rows of the accumulator directly from registers.

In the ``wgmma`` layout four lanes share a row, and each has two of every eight columns. The lanes exchange pairs so
that each has eight adjacent columns, and together store 64 bytes of a row at once. Shared memory is not involved, so
the next tile of Q need not wait.
"""

# Traced values define operators and attributes that pyright cannot check.
# pyright: basic, reportOptionalSubscript=false

import cute_dialect.lang as cute
from cute_dialect.kernels.attention.config import AttentionConfig
from cute_dialect.kernels.attention.tiles import Place, Tiles
from cute_dialect.lang.values.signature_types import Int


class Rows:
    """Store of the result ``out`` (S, D, H, B) and of ``lse`` (S, H, B), which may be None."""

    def __init__(self, c: AttentionConfig, tiles: Tiles, out: cute.Tensor, lse: cute.Tensor | None):
        self.c, self.tiles, self.out, self.lse = c, tiles, out, lse

    def store(self, place: Place, row: Int, sums: cute.Tensor, logs: list[cute.Float32]) -> None:
        """Store a warpgroup's rows. ``row`` is this thread's first row in the tile; its other row is 8 below."""
        c, lane = self.c, cute.arch.lane_idx() % 4
        if c.split or c.result == "f32":
            self._store_pairs(place, row, sums, logs, lane)
            return
        words = packed_words(sums, c.value_head, self.out.element_type)
        for half in cute.range_constexpr(2):
            at, query, head = self._place(place, row, half)
            # All lanes take part in the exchange, including those of rows past the end.
            pieces = row_pieces(words, half, c.value_head, lane)
            if at < self.tiles.end(place):
                store_row(self.out[query, None, head, place.matrix], pieces, lane)
                if c.lse and lane == 0:
                    self.lse[query, head, place.matrix] = logs[half]

    def _store_pairs(self, place: Place, row: Int, sums: cute.Tensor, logs: list[cute.Float32], lane: Int) -> None:
        """Store f32 rows by pairs of columns, so that four lanes store 32 bytes of a row."""
        plain = cute.make_tensor(sums.iterator, cute.make_layout((2, 2, self.c.value_head // 8)))
        for half in cute.range_constexpr(2):
            at, query, head = self._place(place, row, half)
            if at < self.tiles.end(place):
                line = self.out[query, None, head, place.matrix]
                for i in cute.range_constexpr(self.c.value_head // 8):
                    if 8 * i < self.out.shape[1]:
                        cute.autovec_copy(plain[None, half, i], cute.local_tile(line, (2,), (4 * i + lane,)))
                if self.c.lse and lane == 0:
                    self.lse[query, head, place.matrix] = logs[half]

    def _place(self, place: Place, row: Int, half: int) -> tuple[Int, Int, Int]:
        """Return a row of the sequence's tiles, its query in memory, and its head."""
        at, head = place.row + row + 8 * half, place.head
        query = at
        if self.c.pack:
            query, head = self.tiles.split_row(at)
            head = head + place.head * self.tiles.problem.sharing
        return at, query if self.c.split and not self.c.packed else place.query_start + query, head


def packed_words(sums: cute.Tensor, columns: int, element: type[cute.Numeric]) -> cute.Tensor:
    """Return accumulators of 64 rows and some columns rounded to the element type, two per 32-bit word."""
    words = cute.make_rmem_tensor(columns // 4, cute.Int32)
    plain = cute.make_tensor(sums.iterator, cute.make_layout(columns // 2))
    words.store(plain.load().to(element).bitcast(cute.Int32))
    return words


def row_pieces(words: cute.Tensor, half: int, columns: int, lane: Int) -> list[list[cute.Int32]]:
    """Return, for every 32 columns, the words of the 8 adjacent columns that this lane stores.

    Args:
        words: See :func:`packed_words`.
        half: 0 for the upper of the lane's two rows, 1 for the lower one.
        columns: Columns of the accumulator.
        lane: Index of the lane among the four of a row.
    """
    return [_exchanged([words[2 * (4 * i + j) + half] for j in range(4)], lane) for i in range(columns // 32)]


def store_row(line: cute.Tensor, pieces: list[list[cute.Int32]], lane: Int, first: Int = 0) -> None:
    """Store the pieces of a row to a line of global memory, without those past its end.

    Args:
        line: The line, (D,).
        pieces: See :func:`row_pieces`.
        lane: Index of the lane among the four of a row.
        first: Index of the first piece in the line.
    """
    for i, piece in enumerate(pieces):
        # the bounds check of a thread is the same for all pieces
        if lane * 8 < line.shape[0] - 32 * (first + i):
            eight = cute.make_rmem_tensor(4, cute.Int32)
            for j in cute.range_constexpr(4):
                eight[j] = piece[j]
            target = cute.local_tile(line, (8,), (4 * (first + i) + lane,))
            cute.autovec_copy(eight, cute.recast_tensor(target, cute.Int32))


def _exchanged(words: list[cute.Int32], lane: Int) -> list[cute.Int32]:
    """Transpose four words of four lanes: lane ``i`` gets word ``i`` of each lane."""
    words = list(words)
    for distance in (1, 2):
        upper = (lane & distance) != 0
        for i in (0, 3 - distance):  # of each pair of words, the lane keeps one and sends the other
            low, high = words[i], words[i + distance]
            got = cute.arch.shuffle_sync_bfly(low if upper else high, distance)
            words[i], words[i + distance] = (got if upper else low), (high if upper else got)
    return words
