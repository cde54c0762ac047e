"""Transposition of V in shared memory, for MMAs of 8-bit elements, which read only K-major operands.

TMA loads V with contiguous heads. Three warps of the producer's warpgroup write it transposed to a second ring. A warp
takes 32 keys of 16 elements at once: ``ldmatrix`` transposes pairs of bytes, and ``prmt`` separates the two bytes::

    loaded    keys (2t, 2t + 1) and (8 + 2t, 9 + 2t) of elements (2g, 2g + 1)            lane 4g + t, two words
    stored    keys 2t, 2t + 1, 8 + 2t, 9 + 2t of element 2g, and of element 2g + 1       lane 4g + t, two words

Each 16 keys are thus in the order 0 1 8 9 2 3 10 11 4 5 12 13 6 7 14 15. The accumulator of Q K^T gives a thread the
columns 2t, 2t + 1, 8 + 2t and 9 + 2t, which are the columns 4t to 4t + 3 of an A operand in this order. The
probabilities therefore need no exchange between threads.
"""

# Traced values define operators and attributes that pyright cannot check.
# pyright: basic, reportOptionalSubscript=false

from collections.abc import Sequence

import cute_dialect.lang as cute
from cute_dialect.kernels.attention.config import AttentionConfig
from cute_dialect.kernels.attention.tiles import Place, Tiles
from cute_dialect.lang import pipeline
from cute_dialect.lang.nvgpu import warp
from cute_dialect.lang.pipeline import PipelineConsumer, PipelineProducer, PipelineState
from cute_dialect.lang.values.signature_types import Int

WARPS = 3
"""Warps that transpose."""

_KEYS, _ELEMENTS = 32, 16
"""Extents of the piece that a warp transposes at once."""


class WarpPipeline(pipeline.PipelineAsync):
    """Pipeline between warps that write to shared memory and warpgroups that read it with wgmma."""

    def producer_commit(self, state: PipelineState) -> None:
        """Signal that this warp's data is complete."""
        cute.arch.fence_proxy("async.shared", space="cta")
        cute.arch.sync_warp()
        if cute.arch.lane_idx() == 0:
            cute.arch.mbarrier_arrive(self.full(state.index))

    def consumer_release(self, state: PipelineState) -> None:
        """Signal that this warpgroup no longer needs the slot."""
        if cute.arch.thread_idx().x % 128 == 0:
            cute.arch.mbarrier_arrive(self.empty(state.index))


class Transposer:
    """A warp that transposes its pieces of V, in the order in which they are loaded.

    ``smem`` and the two rings are those of V as loaded, (elements, keys), and transposed.
    """

    def __init__(
        self,
        c: AttentionConfig,
        tiles: Tiles,
        index: Int,
        smem: Sequence[cute.Tensor],
        loaded: PipelineConsumer,
        transposed: PipelineProducer,
    ):
        self.c, self.tiles, self.index = c, tiles, index
        self.source, self.target = smem
        self.loaded, self.transposed = loaded, transposed
        self.lane = lane = cute.arch.lane_idx()
        half = cute.Float16
        self.load = cute.make_copy_atom(warp.LdMatrix8x8x16bOp(True, 4), half)
        self.store = cute.make_copy_atom(warp.StMatrix8x8x16bOp(False, 4), half)
        # A lane passes the even element of its pair first, or the odd one in the upper half of the warp. The eight
        # rows that stmatrix stores at once then have different numbers modulo 8, and different banks.
        upper = lane // 16
        self.orders = [0x6420 + (upper ^ i) * 0x1111 for i in range(2)]
        row, second = lane % 8, lane // 8 % 2
        self.element = row * 2 + (row // 4 ^ second)

    def run(self) -> None:
        """Transpose the values of all tiles of this block."""
        at = self.tiles.first()
        while self.tiles.is_there(at):
            place = self.tiles.place(at)
            if self.tiles.may_lack():
                if place.row < self.tiles.end(place):
                    self._tile(place)
            else:
                self._tile(place)
            at = self.tiles.following(at)

    def _tile(self, place: Place) -> None:
        c, at = self.c, place.last - 1
        if c.reads_past_end and (at + 1) * c.tile_n > place.keys:
            first = place.keys - at * c.tile_n
            self._step(cute.max(first, 0) if c.split else first)
        else:
            self._step(None)
        for _ in range(at - place.first):
            self._step(None)

    def _step(self, end: Int | None) -> None:
        """Transpose the values of a step, with zeros for the keys from ``end`` on."""
        c = self.c
        source, target = self.loaded.wait_and_advance(), self.transposed.acquire_and_advance()
        columns = c.value_head // _ELEMENTS
        for i in cute.range_constexpr(-(-c.tile_n // _KEYS * columns // WARPS)):
            piece = self.index + i * WARPS
            if piece < c.tile_n // _KEYS * columns:
                self._piece(piece // columns, piece % columns, source.index, target.index, end)
        target.commit()
        source.release()

    def _piece(self, keys: Int, elements: Int, source: Int, target: Int, end: Int | None) -> None:
        lane = self.lane
        held = self._row(self.source[None, keys * _KEYS + lane, source], elements)
        loaded = cute.make_rmem_tensor(8, cute.Float16)
        cute.copy(self.load, held, loaded)
        words = cute.recast_tensor(loaded, cute.Int32)
        if end is not None:
            own = keys * _KEYS + lane % 4 * 2
            for i in cute.range_constexpr(4):
                key = own + i * 8
                words[i] = (words[i] & (0xFFFF if key + 1 >= end else -1)) if key < end else 0
        made = cute.make_rmem_tensor(4, cute.Uint32)
        for half in cute.range_constexpr(2):
            for i in cute.range_constexpr(2):
                made[2 * half + i] = cute.arch.prmt(words[2 * half], words[2 * half + 1], self.orders[i])
        there = self._row(self.target[elements * _ELEMENTS + self.element, None, target], keys * 2 + lane // 16)
        cute.copy(self.store, cute.recast_tensor(made, cute.Float16), there)

    @staticmethod
    def _row(line: cute.Tensor, piece: Int) -> cute.Tensor:
        """Return 16 bytes of a line of shared memory, as 16-bit elements."""
        return cute.recast_tensor(cute.local_tile(line, (16,), (piece,)), cute.Float16)
