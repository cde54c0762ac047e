"""The Hopper GEMM with a tile for each warp group: one multiplies while the other converts and stores.

The consumers take a block's tiles in turn, all rows of one each.  The tensor cores stay with one of them for the whole
of K: before its first step a warp group waits for its named barrier, which the other one arrives at when it has issued
its last step.  Without that order a warp group could wait for a slot's phase while the ring has come round twice, and
take it for the one before (mbarriers tell only two phases apart).

    full[s]:  as in :mod:`cute_dialect.kernels.gemm.hopper`
    empty[s]: one arrival for every block of the cluster: one warp group uses a slot
    turn[w]:  named barriers 2 and 3, 256 threads: the other warp group's last step is issued
"""

# Operators and attributes are those of values in a trace.
# pyright: basic

from typing import Any

import cute_dialect.lang as cute
from cute_dialect.kernels.gemm.config import GemmConfig
from cute_dialect.kernels.gemm.parts import Products, Tiles
from cute_dialect.kernels.gemm.result import Result

__all__ = ["TURN", "Pingpong"]

TURN = 2
"""The first of two named barriers, of warp groups that take turns with the tensor cores."""


class Pingpong:
    """The consumers' side: they take turns with a tile each."""

    def __init__(self, c: GemmConfig, consumer: Any, products: Products, result: Result, tiles: Tiles, k_tiles: Any):
        self.consumer, self.products, self.result, self.tiles, self.k_tiles = consumer, products, result, tiles, k_tiles

    def whole(self, first: Any) -> None:
        """Multiply and store every other one of this block's tiles from ``first`` on."""
        consumer, products, result, tiles = self.consumer, self.products, self.result, self.tiles
        group = result.group
        mine, other = group + TURN, (group ^ 1) + TURN
        if group == 1:  # the other one's first turn is at once
            cute.arch.barrier_arrive(other, 256)
        consumer.state.skip(group * self.k_tiles)
        for tile in range(first + group * tiles.step, tiles.count(), tiles.step * 2):
            place = tiles.place(tile)
            ahead = result.ahead(place)
            cute.arch.barrier(mine, 256)
            slot = consumer.wait_and_advance()
            products.begin(slot, accumulate=False)
            slot = products.go_on(consumer, slot, range(1, self.k_tiles))
            if tile + tiles.step < tiles.count():
                cute.arch.barrier_arrive(other, 256)
            products.end(slot)
            result.convert(place, ahead)
            result.store(place, ahead=ahead)
            consumer.state.skip(self.k_tiles)
        result.finish()
