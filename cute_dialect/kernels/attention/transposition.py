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
from math import gcd

import cute_dialect.lang as cute
from cute_dialect.kernels.attention.config import MOST_OF_PRODUCER, AttentionConfig
from cute_dialect.kernels.attention.tiles import Place, Tiles
from cute_dialect.lang import pipeline
from cute_dialect.lang.nvgpu import warp
from cute_dialect.lang.pipeline import PipelineConsumer, PipelineProducer, PipelineState
from cute_dialect.lang.values.signature_types import Int

WARPS = 3
"""Number of producer warps that transpose V."""

_KEYS, _ELEMENTS = 32, 16
"""Keys and head elements of the piece that a warp transposes at once."""


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

    ``smem`` are pointers to the buffers of V as loaded and transposed, without swizzles: offsets are computed here,
    once for each lane. The two rings are those of the buffers.
    """

    def __init__(
        self,
        c: AttentionConfig,
        tiles: Tiles,
        index: Int,
        smem: Sequence[cute.Pointer],
        rings: tuple[PipelineConsumer, PipelineProducer],
    ):
        self.c, self.tiles, self.index = c, tiles, index
        self.source, self.target = smem
        self.loaded, self.transposed = rings
        self.load = cute.make_copy_atom(warp.LdMatrix8x8x16bOp(True, 4), cute.Float16)
        self.store = cute.make_copy_atom(warp.StMatrix8x8x16bOp(False, 4), cute.Float16)
        self.lane = lane = cute.arch.lane_idx()
        # Bytes of a row of a swizzle atom: of elements in the loaded buffer, and of keys in the transposed one.
        self.elements, self.keys = atom_bytes(c.value_head), atom_bytes(c.tile_n)
        # The pieces of a batch are loaded before they are stored, to hide latency.
        has_few = c.consumers == 3 or c.reads_past_end or c.registers > MOST_OF_PRODUCER  # registers
        self.together = 2 if has_few or self.elements < 64 else 4
        # A lane passes the even element of its pair first, or the odd one in the upper half of the warp. The eight
        # rows that stmatrix stores at once then have different numbers modulo 8, and different banks.
        upper = lane // 16
        self.orders = [0x6420 + (upper ^ i) * 0x1111 for i in range(2)]
        self.of_source = swizzled(lane, self.elements, 0)
        row, second = lane % 8, lane // 8 % 2
        self.of_target = swizzled(row * 2 + (row // 4 ^ second), self.keys, upper)

    def run(self) -> None:
        """Transpose the values of all tiles of this block."""
        self.tiles.visit(self)

    def tile(self, place: Place) -> None:
        """Transpose the values of a tile."""
        c = self.c
        for i in range(place.last - place.first):
            end: Int | None = None
            if c.reads_past_end:
                end = place.keys - (place.last - 1 - i) * c.tile_n
            self._step(end)

    def _step(self, end: Int | None) -> None:
        """Transpose the values of a step, with zeros for the keys from ``end`` on."""
        c = self.c
        source, target = self.loaded.wait_and_advance(), self.transposed.acquire_and_advance()
        first, second = (self._slot(x.index) for x in (source, target))
        batches = c.value_head // _ELEMENTS // self.together
        for i in range(self.index, c.tile_n // _KEYS * batches, WARPS):
            piece = cute.assume(i, range=(0, 1 << 10))
            self._batch(piece // batches, piece % batches, first, second, end)
        target.commit()
        source.release()

    def _slot(self, index: Int) -> Int:
        """Return the offset of a slot in bytes."""
        return index * self.c.value_bytes

    def _batch(self, keys: Int, batch: Int, source: Int, target: Int, end: Int | None) -> None:
        """Transpose a few pieces of 32 keys, which are adjacent in a head.

        Args:
            keys: index of the 32 keys.
            batch: index of the batch in the head.
            source, target: offsets of the slots.
            end: the first key that is zero, or None.
        """
        c, together = self.c, self.together
        # of an atom's rows
        each = self.elements // _ELEMENTS // together
        source = source + keys * (_KEYS * self.elements) + batch // each * (c.tile_n * self.elements)
        first = self.of_source ^ (batch % each * (together * _ELEMENTS))
        target = target + keys * _KEYS // self.keys * (c.value_head * self.keys)
        target = target + batch * (together * _ELEMENTS * self.keys) + (self.of_target ^ keys * _KEYS % self.keys)
        loaded = []
        for i in cute.range_constexpr(together):
            held = cute.make_rmem_tensor(8, cute.Float16)
            cute.copy(self.load, _line(self.source, source + (first ^ i * _ELEMENTS)), held)
            loaded.append(cute.recast_tensor(held, cute.Int32))
        for i in cute.range_constexpr(together):
            words = loaded[i]
            if end is not None:
                self._clear(words, end - keys * _KEYS)
            made = cute.make_rmem_tensor(4, cute.Uint32)
            for half in cute.range_constexpr(2):
                for j in cute.range_constexpr(2):
                    made[2 * half + j] = cute.arch.prmt(words[2 * half], words[2 * half + 1], self.orders[j])
            there = _line(self.target, target + i * (_ELEMENTS * self.keys))
            cute.copy(self.store, cute.recast_tensor(made, cute.Float16), there)

    def _clear(self, words: cute.Tensor, end: Int) -> None:
        """Zero the values of keys ``end`` and later. A word holds the values of two keys."""
        if end < _KEYS:
            for i in cute.range_constexpr(4):
                key = self.lane % 4 * 2 + i * 8
                words[i] = (words[i] & (0xFFFF if key + 1 >= end else -1)) if key < end else 0


def atom_bytes(row: int) -> int:
    """Return the row size of the widest swizzle atom that divides a row of ``row`` bytes, in bytes."""
    return gcd(row, 128)


def swizzled(row: Int, width: int, chunk: Int) -> Int:
    """Return the byte offset of 16-byte chunk ``chunk`` of a row; rows of the swizzle atom have ``width`` bytes."""
    return row * width + (chunk ^ (row * width // 128 & width // 16 - 1)) * 16


def _line(base: cute.Pointer, offset: Int) -> cute.Tensor:
    """Return a tensor of the eight 16-bit elements at a byte offset in shared memory."""
    return cute.make_tensor(cute.recast_ptr((base + offset).align(16), dtype=cute.Float16), cute.make_layout(8))
