"""Pingpong schedule of the Hopper GEMM: one consumer runs the main loop while the other runs its epilogue.

The two consumer warpgroups alternate between a block's tiles, and each computes all rows of its tile. One of them owns
the tensor cores for a whole main loop. Before its first K step, a warpgroup waits at its named barrier. The other one
arrives there after it has issued its last step.

This order is also needed for correctness. An mbarrier distinguishes only two phases. A warpgroup that waits while the
ring wraps around twice could mistake the current phase of a slot for an earlier one.

    full[s]:  as in :mod:`cute_dialect.kernels.gemm.hopper`
    empty[s]: one arrival per block that shares the stage, because only one warpgroup uses a slot
    turn[w]:  named barriers 2 and 3 with 256 threads; complete when the other warpgroup has issued its last step
"""

# Traced values define operators and attributes that pyright cannot check.
# pyright: basic

from typing import Any

import cute_dialect.lang as cute
from cute_dialect.kernels.gemm.config import GemmConfig
from cute_dialect.kernels.gemm.epilogue_store import Result
from cute_dialect.kernels.gemm.mainloop import Products, Tiles

__all__ = ["TURN", "Pingpong"]

TURN = 2
"""The first of two named barriers that pass the tensor cores between the warpgroups."""


class Pingpong:
    """Consumers that alternate between tiles, one tile per warpgroup."""

    def __init__(self, c: GemmConfig, consumer: Any, products: Products, result: Result, tiles: Tiles, k_tiles: Any):
        self.consumer, self.products, self.result, self.tiles, self.k_tiles = consumer, products, result, tiles, k_tiles

    def whole(self, first: Any) -> None:
        """Multiply and store every other tile of this block from ``first`` on."""
        consumer, products, result, tiles = self.consumer, self.products, self.result, self.tiles
        group = result.group
        mine, other = group + TURN, (group ^ 1) + TURN
        if group == 1:  # warpgroup 0 may start at once
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
