"""Mapping of the lanes of a warpgroup to rows of a tile: the native ``wgmma`` order, or pairs of adjacent rows.

Each ``wgmma`` has 64 rows. Lane ``l`` of warp ``w`` owns ``16 w + l / 4`` and ``16 w + l / 4 + 8`` (two "halves"). A
kernel that loads A from shared memory to registers itself can permute the rows of a tile. It only has to store the
results with the same permutation. It then reads pairs of adjacent rows at once, without bank conflicts.

>>> lanes_of(0).row(5, 1, 1), lanes_of(32).row(5, 1, 1), lanes_of(8).row(5, 1, 1)
(25, 11, 19)
>>> sorted(lanes_of(32).row(lane, half, warp) for lane in range(0, 32, 4) for half in (0, 1) for warp in range(4)) == [
...     *range(64)]
True
"""

# Traced values define operators and types that pyright cannot check.
# pyright: basic

from typing import Any, NamedTuple


class Lanes(NamedTuple):
    """Row mapping of a warpgroup. Shapes and strides are those of layouts."""

    shape: Any = 8  # of the eight row groups of a warp, l / 4
    rows: Any = 1  # their strides in the tile
    half: int = 8  # stride from a lane's first row to its second
    warps: tuple[Any, Any] = (4, 16)  # shape and strides of the four warps
    staged: Any = 1  # strides of the row groups in the 16 rows that a warp stages
    staged_half: int = 8  # the stride from first to second row there
    boxes: tuple[int, ...] = (0,)  # first rows of the warp's TMA boxes, each of 16 / len(boxes) rows

    @property
    def paired(self) -> bool:
        """Return True if a lane's two rows are adjacent."""
        return self.half == 1

    def of_warp(self, warp: Any) -> Any:
        """Return the first row of a warp."""
        return warp * self.warps[1] if self.warps[0] == 4 else warp // 2 * 32 + warp % 2 * 8

    def of_lane(self, lane: Any, half: int) -> Any:
        """Return a lane's first (0) or second (1) row, relative to its warp."""
        eighth = lane // 4
        if self.shape == 8:
            return eighth * self.rows + self.half * half
        return eighth % 2 * 2 + eighth // 2 % 2 * 16 + eighth // 4 * 4 + half

    def row(self, lane: Any, half: int, warp: Any) -> Any:
        """Return a lane's first (0) or second (1) row in the tile."""
        return self.of_warp(warp) + self.of_lane(lane, half)


_AS_THEY_COME = Lanes()
_OF_WORDS = Lanes((2, 2, 2), (2, 16, 4), 1, ((2, 2), (8, 32)), (2, 8, 4), 1, (0, 16))
"""32-bit elements in swizzled 128-byte lines along rows. Four 16-byte chunks of a line share banks with chunks of the
next three lines. A warp therefore takes its rows from both halves of a line."""
_OF_BYTES = Lanes(8, 2, 1, staged=2, staged_half=1)
OF_TENSOR_MEMORY = Lanes(warps=(4, 32))
"""Accumulators of 128 lanes of tensor memory: each warp has 32 rows, and loads 16 of them at once."""


def lanes_of(bits: int) -> Lanes:
    """Return the row mapping for M-major A of ``bits`` bits that is loaded to registers, or the native one for 0."""
    return {0: _AS_THEY_COME, 32: _OF_WORDS, 8: _OF_BYTES}[bits]
