"""Which rows of a tile the lanes of a warp group have: of the 64 rows of an instruction, as they come, or in pairs.

``wgmma`` leaves in lane ``l`` of warp ``w`` rows ``16 w + l / 4`` and 8 more ("halves").  Where a kernel reads A from
shared memory to registers itself, it may say which rows of the tile those are, as long as it stores the results
likewise: pairs of rows that are neighbours in memory are read at once, and no two lanes of one read meet in a bank.

>>> lanes_of(0).row(5, 1, 1), lanes_of(32).row(5, 1, 1), lanes_of(8).row(5, 1, 1)
(25, 11, 19)
>>> sorted(lanes_of(32).row(lane, half, warp) for lane in range(0, 32, 4) for half in (0, 1) for warp in range(4)) == [
...     *range(64)]
True
"""

# Operators and types are those of values in a trace.
# pyright: basic

from typing import Any, NamedTuple

__all__ = ["Lanes", "lanes_of"]


class Lanes(NamedTuple):
    """Where rows are; shapes and strides are those of layouts.

    ``shape``: of a lane's eighth of a warp; ``rows``, ``half``: its strides in the tile, and from one half to the
    other; ``warps``: shape and strides of the four warps; ``staged``, ``staged_half``: strides in the 16 rows that a
    warp stages; ``boxes``: where boxes of the warp's rows begin, of ``16 / len(boxes)`` rows each.
    """

    shape: Any = 8
    rows: Any = 1
    half: int = 8
    warps: tuple[Any, Any] = (4, 16)
    staged: Any = 1
    staged_half: int = 8
    boxes: tuple[int, ...] = (0,)

    @property
    def paired(self) -> bool:
        """Tell whether a lane's two rows are neighbours."""
        return self.half == 1

    def of_warp(self, warp: Any) -> Any:
        """Return the first row of a warp."""
        return warp * 16 if self.warps[0] == 4 else warp // 2 * 32 + warp % 2 * 8

    def of_lane(self, lane: Any, half: int) -> Any:
        """Return a row of a lane, from the first of its warp on."""
        eighth = lane // 4
        if self.shape == 8:
            return eighth * self.rows + self.half * half
        return eighth % 2 * 2 + eighth // 2 % 2 * 16 + eighth // 4 * 4 + half

    def row(self, lane: Any, half: int, warp: Any) -> Any:
        """Return a row of a lane of a warp."""
        return self.of_warp(warp) + self.of_lane(lane, half)


_AS_THEY_COME = Lanes()
_OF_WORDS = Lanes((2, 2, 2), (2, 16, 4), 1, ((2, 2), (8, 32)), (2, 8, 4), 1, (0, 16))
"""Of 32-bit elements in lines of 128 bytes along rows, swizzled: of a line, four chunks of 16 bytes lie in the same
banks as those of the three lines behind it, so that a warp takes its rows from both halves of the line."""
_OF_BYTES = Lanes(8, 2, 1, staged=2, staged_half=1)


def lanes_of(bits: int) -> Lanes:
    """Return the rows of lanes that read A of so many bits themselves; 0: that do not."""
    return {0: _AS_THEY_COME, 32: _OF_WORDS, 8: _OF_BYTES}[bits]
