"""MMA with A from registers, for M-major A whose elements are not 16-bit.

``wgmma`` reads such elements from shared memory only if they are K-major, but accepts A in registers too. TMA loads A
in its own layout, 128-byte lines along M. Each warp then loads the elements of its fragments from shared memory
(:mod:`cute_dialect.kernels.epilogue.fragment_layout` defines their rows). A stage is two groups of MMAs: while one is
in flight, the registers of the other are filled. B is K-major.
"""

# Traced values define operators and attributes that pyright cannot check.
# pyright: basic, reportOptionalMemberAccess=false

from typing import Any

import cute_dialect.lang as cute
from cute_dialect.kernels.gemm.block_scaling import Scales
from cute_dialect.kernels.gemm.config import GemmConfig
from cute_dialect.kernels.gemm.mainloop import Products
from cute_dialect.lang.nvgpu import warpgroup

__all__ = ["FromRegisters"]

_GROUPS = 2
"""Groups of MMAs of a stage. Each group has its own registers."""


class FromRegisters(Products):
    """MMA main loop of a warpgroup whose A goes through registers."""

    def __init__(self, c: GemmConfig, mma: cute.TiledMma, sA: Any, sB: Any, thread: Any, scales: Scales):
        super().__init__(c, mma, sA, sB, thread, scales)
        self.steps = c.tile[2] * c.bits // 256 // _GROUPS  # MMAs of a group
        source = Words if c.bits == 32 else Bytes
        self.source = source(c, sA, thread // 128 if c.sharers > 1 else 0)

    def fragment(self, part: Any, sA: Any) -> list[Any]:
        """Return the registers of A for both groups of a stage."""
        m, _, k = self.c.tile
        shape = self.mma.partition_shape_A((m, k // _GROUPS))
        return [self.mma.make_fragment_A(shape) for _ in range(_GROUPS)]

    def begin(self, slot: Any, *, accumulate: bool, to: int = 0) -> None:
        """Issue the MMAs of one stage; none may be in flight."""
        for group in cute.range_constexpr(_GROUPS):
            self._multiply(slot, group, accumulate=accumulate or group > 0)

    def _multiply(self, slot: Any, group: int, *, accumulate: bool) -> None:
        """Fill the registers of a group, and issue its MMAs."""
        first, held = group * self.steps, self.rA[group]
        for atom in cute.range_constexpr(self.c.atoms):
            for i in cute.range_constexpr(self.steps):
                self.source.read(slot.index, atom, first + i, held[None, atom, i])
        warpgroup.fence()
        for i in cute.range_constexpr(self.steps):
            at = (None, None, first + i, slot.index)
            cute.gemm(self.mma, self.acc, held[None, None, i], self.rB[at], accumulate=accumulate or i > 0)
        warpgroup.commit_group()

    def go_on(self, consumer: Any, slot: Any, steps: range) -> Any:
        """Multiply several stages; see :meth:`Products.go_on`."""
        for _ in steps:
            following = consumer.wait_and_advance()
            for group in cute.range_constexpr(_GROUPS):
                warpgroup.wait_group(_GROUPS - 1)
                if group == _GROUPS - 1:  # the previous stage is complete
                    self._release(slot)
                self._multiply(following, group, accumulate=True)
            slot = following
        return slot

    def end(self, slot: Any, of: int = 0, *, under_way: int = 0) -> None:
        """Wait for the MMAs of the last stage."""
        warpgroup.wait_group(under_way, self.acc)
        self._release(slot)

    @staticmethod
    def _release(slot: Any) -> None:
        """Release the slot for all lanes of a warp, once each of them has read its part of A."""
        cute.arch.sync_warp()
        slot.release()


class Words:
    """A of 32-bit elements in shared memory: lines of 32 elements along M, with swizzled 16-byte chunks.

    A lane's two rows are adjacent, and are read at once.
    """

    def __init__(self, c: GemmConfig, sA: Any, group: Any):
        self.c, kind = c, sA.element_type
        rows, _, k = c.tile
        lane, warp = cute.arch.lane_idx(), cute.arch.warp_idx() % 4
        row, column = c.lanes.row(lane, 0, warp), lane % 4
        plain = cute.recast_ptr(sA.iterator, cute.make_swizzle(0, 4, 3), kind)
        # The rows of an MMA: lines of 32 rows, k of them.
        start = row // 32 * (32 * k) + row % 4 + group * (64 * k)
        self.places = [
            plain + (start + (column + more) * 32 + ((row % 32 // 4) ^ (column + more)) * 4) for more in (0, 4)
        ]
        self.stage, self.atom, self.step = rows * k, c.sharers * 64 * k, 8 * 32

    def read(self, stage: Any, atom: int, step: int, registers: Any) -> None:
        """Load this lane's fragment of A for one MMA."""
        for half in cute.range_constexpr(2):
            at = self.places[half] + stage * self.stage
            at = (at + (atom * self.atom + step * self.step)).align(8)
            both = cute.make_tensor(at, cute.make_layout(2)).load()
            for i in cute.range_constexpr(2):
                registers[2 * half + i] = both[i]


class Bytes:
    """A of 8-bit elements in shared memory: lines of 128 or 64 elements along M, with swizzled 16-byte chunks.

    A fragment register holds one row's bytes of four lines of K. A lane loads two adjacent rows of each line and
    permutes the bytes. Lanes whose lines map to the same banks load them in a different order.
    """

    def __init__(self, c: GemmConfig, sA: Any, group: Any):
        self.c = c
        rows, _, k = c.tile
        line = 128 if rows % 128 == 0 else 64
        lane, warp = cute.arch.lane_idx(), cute.arch.warp_idx() % 4
        # Offsets are in elements of two bytes.
        plain = cute.recast_ptr(sA.iterator, cute.make_swizzle(0, 4, 3), cute.Uint16)
        row, other = c.lanes.row(lane, 0, warp) + group * 64, lane % 4 // 2
        chunk, start = row % line // 16, row // line * (line * k // 2) + row % 16 // 2
        self.places = []
        for i in range(4):
            column = lane % 4 * 4 + (i ^ other)
            phase = column % 8 if line == 128 else column // 2 % 4
            self.places.append(plain + (start + column * (line // 2) + (chunk ^ phase) * 8))
        self.order = cute.Uint32(0x1504) if other == 1 else cute.Uint32(0x5140)
        self.stage, self.atom, self.half = rows * k // 2, c.sharers * 64 // line * (line * k // 2), 16 * line // 2
        # Offset of every second atom in the lines of the previous atom: four chunks forward, or backward if the swizzle
        # has that bit set.
        self.second = 32 - lane % 2 * 64 if line > c.sharers * 64 else None

    def _of(self, atom: int) -> Any:
        """Return the offset of an atom's lines from those of the first atom."""
        if self.second is None:
            return atom * self.atom
        lines = atom // 2 * self.stage // (self.c.tile[0] // 128)
        return lines + self.second if atom % 2 else lines

    def read(self, stage: Any, atom: int, step: int, registers: Any) -> None:
        """Load this lane's fragment of A for one MMA."""
        words = cute.recast_tensor(registers, cute.Uint32)
        for half in cute.range_constexpr(2):
            held = []
            for i in cute.range_constexpr(4):
                at = self.places[i] + stage * self.stage
                at = at + (self._of(atom) + (2 * step + half) * self.half)
                held.append(cute.make_tensor(at, cute.make_layout(1))[0].to(cute.Uint32))
            first, second = (cute.arch.prmt(held[2 * i], held[2 * i + 1], self.order) for i in range(2))
            for i in cute.range_constexpr(2):
                words[2 * half + i] = cute.arch.prmt(first, second, (0x5410, 0x7632)[i])
