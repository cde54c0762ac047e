"""The rows of attention's result on their way to memory, from the registers that ``wgmma`` leaves them in.

A row's columns lie in four lanes, pairs of every eight.  The lanes exchange pairs, so that each has eight columns that
are neighbours, and stores them at once: 64 bytes of a row by the four.  Nothing goes through shared memory, so that the
next tile of Q need not wait.
"""

# Traced values define operators and attributes that pyright cannot check.
# pyright: basic

from typing import Any

import cute_dialect.lang as cute
from cute_dialect.kernels.attention.config import AttentionConfig
from cute_dialect.kernels.attention.tiles import Place

__all__ = ["Rows"]


class Rows:
    """Where rows go: ``out`` (S, D, H, B), ``lse`` (S, H, B) or None."""

    def __init__(self, c: AttentionConfig, out: Any, lse: Any):
        self.c, self.out, self.lse = c, out, lse

    def store(self, place: Place, row: Any, sums: Any, logs: list[Any]) -> None:
        """Store a warp group's rows; ``row``: this thread's first one in the tile, the other is eight after it."""
        c, lane = self.c, cute.arch.lane_idx() % 4
        if c.split:
            self._store_parts(place, row, sums, logs, lane)
            return
        words = cute.make_rmem_tensor(c.head // 4, cute.Int32)
        plain = cute.make_tensor(sums.iterator, cute.make_layout(c.head // 2))
        words.store(plain.load().to(self.out.element_type).bitcast(cute.Int32))
        for half in cute.range_constexpr(2):
            at = place.row + row + 8 * half
            # All lanes exchange, those of rows that are not there, too.
            pieces = [_exchanged([words[2 * (4 * i + j) + half] for j in range(4)], lane) for i in range(c.head // 32)]
            if at < place.queries:
                line = self.out[place.query_start + at, None, place.head, place.matrix]
                for i in cute.range_constexpr(c.head // 32):
                    # The side of the thread is one for all pieces.
                    if lane * 8 < self.out.shape[1] - 32 * i:
                        eight = cute.make_rmem_tensor(4, cute.Int32)
                        for j in cute.range_constexpr(4):
                            eight[j] = pieces[i][j]
                        target = cute.local_tile(line, (8,), (4 * i + lane,))
                        cute.autovec_copy(eight, cute.recast_tensor(target, cute.Int32))
                if c.lse and lane == 0:
                    self.lse[place.query_start + at, place.head, place.matrix] = logs[half]

    def _store_parts(self, place: Place, row: Any, sums: Any, logs: list[Any], lane: Any) -> None:
        """Store rows of f32, which :mod:`.combine` reads: pairs of columns, 32 bytes of a row by four lanes."""
        plain = cute.make_tensor(sums.iterator, cute.make_layout((2, 2, self.c.head // 8)))
        for half in cute.range_constexpr(2):
            at = place.row + row + 8 * half
            if at < place.queries:
                line = self.out[at, None, place.head, place.matrix]
                for i in cute.range_constexpr(self.c.head // 8):
                    if 8 * i < self.out.shape[1]:
                        cute.autovec_copy(plain[None, half, i], cute.local_tile(line, (2,), (4 * i + lane,)))
                if lane == 0:
                    self.lse[at, place.head, place.matrix] = logs[half]


def _exchanged(words: list[Any], lane: Any) -> list[Any]:
    """Return of four lanes' four words each those of this lane's number."""
    words = list(words)
    for distance in (1, 2):
        upper = (lane & distance) != 0
        for i in (0, 3 - distance):  # of pairs of words, this lane keeps its own side and sends the other one
            low, high = words[i], words[i + distance]
            got = cute.arch.shuffle_sync_bfly(low if upper else high, distance)
            words[i], words[i + distance] = (got if upper else low), (high if upper else got)
    return words
