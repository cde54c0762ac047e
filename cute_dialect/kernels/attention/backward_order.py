"""Order in which the blocks of the deterministic backward add to a tile of dq.

The order is that in which blocks reach the tile if all steps take equally long, so that blocks seldom wait:

- Blocks take their work items one after the other. Items of an earlier pass over the grid add first; of a pair of key
  tiles, the first one does.
- Without a mask, the block of key tile ``n`` starts at query tile ``n`` modulo their number, and reaches query tile
  ``m`` after ``m - n`` steps.
- With a mask, blocks start at the first query tile that sees their keys. Later keys come first. So do the listed blocks
  of a block mask.

    4 query tiles, 3 blocks, no mask: tile 2 gets the parts of key tiles 2, 1, 0; tile 0 gets those of 0, 2, 1

All blocks of the grid are resident, and a block waits only for blocks that are ahead in this order. The wait therefore
ends.
"""

# Traced values define operators and attributes that pyright cannot check.
# pyright: basic, reportOptionalMemberAccess=false

from typing import NamedTuple

import cute_dialect.lang as cute
from cute_dialect.kernels.attention.backward_tiles import KeyPlace, KeyTiles
from cute_dialect.lang.values.signature_types import Int


class _Range(NamedTuple):
    """Key tiles from ``low`` to ``high - 1``."""

    low: Int
    high: Int

    def __and__(self, other: "_Range") -> "_Range":
        return _Range(cute.max(self.low, other.low), cute.min(self.high, other.high))

    def count(self) -> Int:
        """Return the number of key tiles."""
        return cute.max(self.high - self.low, 0)


def blocks_before(tiles: KeyTiles, at: Int, place: KeyPlace, query_tile: Int) -> Int:
    """Return the number of blocks that add to a query tile before this block does.

    Args:
        tiles: The scheduler.
        at: Index of this block's tile of keys in the scheduler.
        place: The tile of keys.
        query_tile: Index of the query tile in the sequence.
    """
    c, count = tiles.c, tiles.tiles
    mine = place.row // c.tile_n
    unit = at // 2 if tiles.paired else at
    begin = unit // tiles.per_head * tiles.per_head  # first work item of this head
    grid = cute.arch.grid_dim().x
    low = unit // grid * grid - begin
    high = cute.min(low + grid, tiles.per_head)
    low = cute.max(low, 0)
    seen = _seeing(tiles, place, query_tile)
    before = (_Range(cute.Int32(0), low) & seen).count()
    if not c.masked:
        return before + _before_in_pass(_Range(low, cute.min(high, seen.high)), mine, query_tile, place.last)
    here = _Range(mine + 1, high)
    if tiles.paired:
        before = before + (_Range(cute.max(low, count - low), count) & seen).count()
        if (at & 1) != 0:
            before = before + (_Range(low, high) & seen).count()
            here = _Range(mine + 1, count - low)
    return before + (here & seen).count()


def listed_before(tiles: KeyTiles, at: Int, place: KeyPlace, head: Int, query_tile: Int) -> Int:
    """Return :func:`blocks_before` of a block mask. All lanes of a warp call it, and count the listed blocks together.

    Args:
        tiles, at, place: as in :func:`blocks_before`.
        head: Query head.
        query_tile: Index of the query tile in the sequence.
    """
    c, lists = tiles.c, tiles.problem.key_blocks
    each, row = c.block_n // c.tile_n, query_tile * c.tile_m // c.block_m
    begin, grid = at // tiles.per_head * tiles.per_head, cute.arch.grid_dim().x
    low = at // grid * grid - begin
    earlier = _Range(cute.Int32(0), cute.max(low, 0))
    later = _Range(cute.max(place.row // c.tile_n + 1, low), cute.min(low + grid, tiles.per_head))
    found = cute.Int32(0)
    for counts, indices in ((lists.counts, lists.indices), (lists.full_counts, lists.full_indices)):
        for i in range(cute.arch.lane_idx(), counts[row, head, place.batch], 32):
            first = indices[i, row, head, place.batch] * each
            block = _Range(first, first + each)
            found = found + (block & earlier).count() + (block & later).count()
    return cute.arch.warp_reduction_sum(found)


def _seeing(tiles: KeyTiles, place: KeyPlace, query_tile: Int) -> _Range:
    """Return the key tiles that a query tile sees."""
    c, p = tiles.c, tiles.problem
    left, right = c.bounded
    low, high = cute.Int32(0), cute.ceil_div(place.keys, c.tile_n)
    own = query_tile * c.tile_m + tiles.shift(place)
    if right:
        last = own + c.tile_m - 1 + p.right
        high = cute.min(high, cute.max(last + c.tile_n, 0) // c.tile_n)
    if left:
        low = cute.max(own - p.left, 0) // c.tile_n
    return _Range(low, high)


def _before_in_pass(blocks: _Range, mine: Int, query_tile: Int, query_tiles: Int) -> Int:
    """Return the number of blocks that reach a query tile earlier in the same pass over the grid.

    Args:
        blocks: Key tiles of the pass.
        mine: Key tile of this block.
        query_tile: Index of the query tile.
        query_tiles: Number of query tiles.
    """
    steps = (query_tile + query_tiles - mine % query_tiles) % query_tiles
    # Blocks n with (n - first) % query_tiles < steps are ahead. If two blocks are at
    # the same step, the first one is ahead.
    first = (mine + 1) % query_tiles

    def ahead(end: Int) -> Int:
        """Return the number of blocks with an index below ``end`` that reach the query tile earlier."""
        rest = end % query_tiles
        inside = cute.max(cute.min(rest, first + steps) - first, 0)
        wrapped = cute.max(cute.min(rest, first + steps - query_tiles), 0)
        return end // query_tiles * steps + inside + wrapped

    return ahead(blocks.high) - ahead(blocks.low) + (mine - blocks.low) // query_tiles
