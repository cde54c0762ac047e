"""The Hopper GEMM with a tile for each warp group: one multiplies while the other converts and stores.

The consumers take a block's tiles in turn, all rows of one each.  The tensor cores stay with one of them for the whole
of K: before its first step a warp group waits for its named barrier, which the other one arrives at when it has issued
its last step.  Without that order a warp group could wait for a slot's phase while the ring has come round twice, and
take it for the one before (mbarriers tell only two phases apart).

    full[s]:  as in :mod:`cute_dialect.kernels.gemm_sm90`
    empty[s]: one arrival for every block of the cluster: one warp group uses a slot
    turn[w]:  named barriers 2 and 3, 256 threads: the other warp group's last step is issued

>>> from cute_dialect.kernels.gemm_sm90 import GemmConfig, gemm_sm90
>>> "named_barrier_arrive" in gemm_sm90(GemmConfig(schedule="pingpong", tile=(64, 256, 64), deferred=False))
True
"""

from __future__ import annotations

from cute_dialect.kernels.gemm_sm90 import GemmEmitter
from cute_dialect.kernels.values import Value

__all__ = ["PingpongEmitter"]

_TURN = 2
"""The first of two named barriers."""


class PingpongEmitter(GemmEmitter):
    """Emits one kernel and its host function."""

    arrivals_a_block = 1

    def row_of(self, atom: int) -> Value | int:
        return 64 * atom

    def thread_of_mma(self) -> Value | int:
        return 0

    def consume(self) -> None:
        b, c = self.b, self.c
        one, other = self.consumer + _TURN, (self.consumer ^ 1) + _TURN
        ring = 2 * c.stages  # a place in the ring and its phase are one number below this
        b.say("This warp group's tiles are every other one of the block's; the first one's turn is at once.")
        with b.if_(self.consumer.eq(1)):
            b.run("named_barrier_arrive", other, 256)
        start = self.first_tile + self.consumer * self.step
        at = self.consumer * self.k_tiles % ring
        with b.for_(start, self.tiles, self.step * 2, [at]) as tiles:
            (at,) = self._name(tiles, "tile", "at")
            place = self.place(tiles.iv)
            b.run("named_barrier", one, 256)
            following = (at % c.stages, at // c.stages)
            self._step(*following, first=True)
            with b.for_(1, self.k_tiles, 1, [*self.next_slot(*following), following[0]]) as loop:
                self._pipelined(loop)
            with b.if_(tiles.iv + self.step < self.tiles):
                b.run("named_barrier_arrive", other, 256)
            self._complete(loop.results)
            self.convert(place)
            self.store_tile(place)
            tiles.next((at + self.k_tiles * 2) % ring)
        self.finish_stores()
