"""Tiles of consecutive memory: 16-byte accesses for rows that are shorter than a vector or not aligned.

Contiguous rows of ``n`` elements follow each other in memory, so vectors may cross row boundaries. A warp loads
consecutive vectors, one per lane, and exchanges them through shared memory, after which a lane has ``rows`` whole
consecutive rows in registers. Stores go the opposite way. Example: three ``f16`` columns. Eight rows are 48 bytes,
so a lane gets three vectors.

Lanes access shared memory ``vectors`` slots apart. An odd number causes no bank conflicts. For an even number, one slot
of padding follows every eight.
"""

# Traced values define operators and element types that pyright cannot check.
# pyright: basic, reportArgumentType=false, reportOptionalMemberAccess=false, reportOptionalOperand=false

from math import gcd
from typing import Any

import cute_dialect.lang as cute
from cute_dialect.kernels.row_memory import part

__all__ = ["PackedTile", "rows_per_thread"]

LANES = 32


def rows_per_thread(width: int, n: int) -> int:
    """Return the smallest number of rows of ``n`` elements that are whole vectors of ``width`` elements.

    >>> [rows_per_thread(8, n) for n in (1, 3, 4, 6, 8, 12)]
    [8, 8, 2, 4, 1, 2]
    """
    return width // gcd(width, n)


class PackedTile:
    """A warp's tile of ``rows`` consecutive rows of ``n`` elements per lane.

    Args:
        dtype: The element type.
        n: The row length, static.
        rows: Rows per lane; ``rows * n`` elements are whole vectors.
        threads: Threads of a block.
    """

    def __init__(self, dtype: Any, n: int, rows: int, threads: int):
        self.dtype, self.n, self.rows, self.width = dtype, n, rows, 128 // dtype.width
        self.elements, self.vectors = rows * n, rows * n // self.width
        assert self.elements % self.width == 0
        self.lane, warps = cute.arch.lane_idx(), threads // LANES
        self.thread = cute.arch.block_idx().x * threads + cute.arch.thread_idx().x
        warp = cute.arch.thread_idx().x // LANES
        self.first = (cute.arch.block_idx().x * warps + warp) * (LANES * self.vectors)
        each = self.slot(LANES * self.vectors - 1) + 1
        memory = cute.smem_tensor(dtype, cute.make_layout(warps * each * self.width), byte_alignment=16)
        self.memory = memory.iterator + warp * (each * self.width)
        self.reads = ""
        """The slots that lanes read last: their ``own`` consecutive ones, or those of ``all`` lanes."""

    def slot(self, vector: Any) -> Any:
        """Return the slot in shared memory of a vector of the tile."""
        return vector if self.vectors % 2 else vector + vector // 8

    def vector(self, begin: Any, number: Any) -> cute.Tensor:
        """Return a vector of contiguous memory."""
        return cute.make_tensor(begin + number * self.width, cute.make_layout(self.width))

    def load(self, sources: list[cute.Tensor], whole: Any) -> list[cute.Tensor]:
        """Load this lane's elements of contiguous matrices.

        Args:
            sources: The matrices as vectors. All loads are in flight together.
            whole: The number of vectors to load. If it is None, all elements are loaded, also those of a last vector
                that is not whole. Missing elements are 0.
        """
        loaded = [self.loaded(x, cute.size(x) // self.width if whole is None else whole) for x in sources]
        return [self.exchanged(x, values, whole is None) for x, values in zip(sources, loaded)]

    def loaded(self, x: cute.Tensor, whole: Any) -> cute.Tensor:
        """Load the vectors ``lane``, ``lane + 32``, … of the tile."""
        values = cute.make_rmem_tensor(self.elements, self.dtype)
        values.fill(0)
        for i in cute.range_constexpr(self.vectors):
            number = self.first + i * LANES + self.lane
            if number < whole:
                cute.autovec_copy(self.vector(x.iterator, number), part(values, i * self.width, self.width))
        return values

    def exchanged(self, x: cute.Tensor, values: cute.Tensor, to_the_end: bool) -> cute.Tensor:
        """Exchange vectors, so that each lane has consecutive ones."""
        w = self.width
        if self.reads:
            cute.arch.sync_warp()
        for i in cute.range_constexpr(self.vectors):
            to = self.vector(self.memory, self.slot(i * LANES + self.lane))
            cute.autovec_copy(part(values, i * w, w), to)
        cute.arch.sync_warp()
        if to_the_end:
            at, has = self.after(x)
            if has:
                self.element(at)[0] = x[cute.size(x) // w * w + self.lane]
            cute.arch.sync_warp()
        found = cute.make_rmem_tensor(self.elements, self.dtype)
        for i in cute.range_constexpr(self.vectors):
            at = self.vector(self.memory, self.slot(self.lane * self.vectors + i))
            cute.autovec_copy(at, part(found, i * w, w))
        self.reads = "own"
        return found

    def store(self, y: cute.Tensor, values: cute.Tensor, whole: Any) -> None:
        """Store this lane's elements to a contiguous matrix; the arguments are those of :meth:`load`."""
        w = self.width
        if self.reads == "all":
            cute.arch.sync_warp()
        for i in cute.range_constexpr(self.vectors):
            at = self.vector(self.memory, self.slot(self.lane * self.vectors + i))
            cute.autovec_copy(part(values, i * w, w), at)
        cute.arch.sync_warp()
        self.reads = "all"
        limit = cute.size(y) // w if whole is None else whole
        out = cute.make_rmem_tensor(self.elements, self.dtype)
        for i in cute.range_constexpr(self.vectors):
            at = self.vector(self.memory, self.slot(i * LANES + self.lane))
            cute.autovec_copy(at, part(out, i * w, w))
        for i in cute.range_constexpr(self.vectors):
            number = self.first + i * LANES + self.lane
            if number < limit:
                cute.autovec_copy(part(out, i * w, w), self.vector(y.iterator, number))
        if whole is None:
            at, has = self.after(y)
            if has:
                y[cute.size(y) // w * w + self.lane] = self.element(at)[0]

    def after(self, x: cute.Tensor) -> tuple[Any, Any]:
        """Return the position in shared memory of an element after the last whole vector, and whether this lane has
        one.
        """
        w, total = self.width, cute.size(x)
        number = total // w - self.first
        has = (number >= 0) & (number < LANES * self.vectors) & (self.lane < total % w)
        return self.slot(cute.where(has, number, 0)) * w + cute.where(has, self.lane, 0), has

    def element(self, at: Any) -> cute.Tensor:
        """Return one element of the tile in shared memory."""
        return cute.make_tensor(self.memory + at, cute.make_layout(1))
