"""Tiles of consecutive memory: 16-byte accesses for rows that are shorter than a vector or not aligned.

Contiguous rows of ``n`` elements follow each other in memory, so vectors may cross row boundaries. A warp loads
consecutive vectors, one per lane at a time, and puts them into shared memory, where a lane finds its rows. Stores go
the opposite way. Example: of three ``f16`` columns, 160 rows are 60 vectors. A lane has five rows.

:class:`RowTile` gives a lane single rows, :class:`SharedRowTile` some columns of several rows.
:class:`VectorTile` gives it consecutive vectors in registers.
"""

# Traced values define operators and element types that pyright cannot check.
# pyright: basic, reportArgumentType=false, reportOptionalMemberAccess=false, reportOptionalOperand=false

from typing import Any

import cute_dialect.lang as cute
from cute_dialect.kernels.rows.memory import part

LANES = 32


class Tile:
    """A warp's tile of consecutive 16-byte vectors.

    Args:
        dtype: The element type.
        vectors: Vectors of a tile.
        threads: Threads of a block.
        matrices: Matrices that are in shared memory at the same time.
    """

    def __init__(self, dtype: Any, vectors: int, threads: int, matrices: int = 1):
        self.dtype, self.width, self.vectors = dtype, 128 // dtype.width, vectors
        self.rounds = -(-vectors // LANES)
        """Vectors that a lane loads."""
        self.lane, warps = cute.arch.lane_idx(), threads // LANES
        self.thread = cute.arch.block_idx().x * threads + cute.arch.thread_idx().x
        warp = cute.arch.thread_idx().x // LANES
        self.first = (cute.arch.block_idx().x * warps + warp) * vectors
        self.size = (self.slot(vectors - 1) + 1) * self.width
        layout = cute.make_layout(warps * matrices * self.size)
        self.memory = cute.smem_tensor(dtype, layout, byte_alignment=16).iterator + warp * (matrices * self.size)

    def slot(self, vector: Any) -> Any:
        """Return the slot in shared memory of a vector of the tile."""
        return vector

    def vector(self, begin: Any, number: Any) -> cute.Tensor:
        """Return a vector of contiguous memory."""
        return cute.make_tensor(begin + number * self.width, cute.make_layout(self.width))

    def held(self, matrix: int, vector: Any) -> cute.Tensor:
        """Return a vector of the tile in shared memory."""
        return self.vector(self.memory + matrix * self.size, self.slot(vector))

    def mine(self, i: int, end: Any) -> tuple[Any, Any]:
        """Return the number in the tile of this lane's ``i``-th vector, and whether it is in the tile and before
        ``end``.
        """
        number = i * LANES + self.lane
        mine = self.first + number < end
        return number, mine if (i + 1) * LANES <= self.vectors else mine & (number < self.vectors)

    def load(self, x: cute.Tensor, end: Any) -> cute.Tensor:
        """Load this lane's vectors before vector ``end`` of a contiguous matrix. Missing elements are 0."""
        values = cute.make_rmem_tensor(self.rounds * self.width, self.dtype)
        values.fill(0)
        for i in cute.range_constexpr(self.rounds):
            number, mine = self.mine(i, end)
            if mine:
                source = self.vector(x.iterator, self.first + number)
                cute.autovec_copy(source, part(values, i * self.width, self.width))
        return values

    def put(self, matrix: int, values: cute.Tensor) -> None:
        """Copy loaded vectors to shared memory."""
        for i in cute.range_constexpr(self.rounds):
            number = i * LANES + self.lane
            mine = True if (i + 1) * LANES <= self.vectors else number < self.vectors
            if mine:
                cute.autovec_copy(part(values, i * self.width, self.width), self.held(matrix, number))

    def write(self, y: cute.Tensor, matrix: int, end: Any) -> None:
        """Store the vectors of the tile before vector ``end`` from shared memory to a contiguous matrix."""
        for i in cute.range_constexpr(self.rounds):
            number, mine = self.mine(i, end)
            if mine:
                values = cute.make_rmem_tensor(self.width, self.dtype)
                cute.autovec_copy(self.held(matrix, number), values)
                cute.autovec_copy(values, self.vector(y.iterator, self.first + number))


class VectorTile(Tile):
    """A tile of ``each`` consecutive vectors per lane.

    Lanes access shared memory ``each`` slots apart. An odd number causes no bank conflicts. For an even number, one
    slot of padding follows every eight.
    """

    def __init__(self, dtype: Any, each: int, threads: int):
        self.each = each
        super().__init__(dtype, LANES * each, threads)

    def slot(self, vector: Any) -> Any:
        """Return the slot in shared memory of a vector of the tile."""
        return vector if self.each % 2 else vector + vector // 8

    def fetch(self, x: cute.Tensor, end: Any) -> cute.Tensor:
        """Return this lane's vectors before vector ``end`` of a contiguous matrix."""
        self.put(0, self.load(x, end))
        cute.arch.sync_warp()
        found = cute.make_rmem_tensor(self.each * self.width, self.dtype)
        for i in cute.range_constexpr(self.each):
            cute.autovec_copy(self.held(0, self.lane * self.each + i), part(found, i * self.width, self.width))
        return found

    def store(self, y: cute.Tensor, values: cute.Tensor, end: Any) -> None:
        """Store this lane's vectors to a contiguous matrix, those before vector ``end``."""
        for i in cute.range_constexpr(self.each):
            cute.autovec_copy(part(values, i * self.width, self.width), self.held(0, self.lane * self.each + i))
        cute.arch.sync_warp()
        self.write(y, 0, end)


class RowTile(Tile):
    """A tile of ``rows`` rows of ``n`` elements per lane. Consecutive lanes have consecutive rows."""

    def __init__(self, dtype: Any, n: int, rows: int, threads: int, matrices: int = 1):
        super().__init__(dtype, LANES * rows * n // (128 // dtype.width), threads, matrices)
        self.n = n
        self.first_row = self.thread // LANES * (LANES * rows)

    def fetch(self, sources: list[cute.Tensor]) -> None:
        """Copy the tile of contiguous matrices to shared memory. All loads are in flight together."""
        w = self.width
        loaded = [self.load(x, cute.size(x) // w) for x in sources]
        for i, values in enumerate(loaded):
            self.put(i, values)
        cute.arch.sync_warp()
        number, has = self.after(sources[0])
        if has:  # an element after the last whole vector
            for i, x in enumerate(sources):
                self.held(i, number)[self.lane] = x[cute.size(x) // w * w + self.lane]
        cute.arch.sync_warp()

    def after(self, x: cute.Tensor) -> tuple[Any, Any]:
        """Return the number in the tile of the vector after the last whole one, and whether this lane has one of its
        elements.
        """
        w, total = self.width, cute.size(x)
        number = total // w - self.first
        has = (number >= 0) & (number < self.vectors) & (self.lane < total % w)
        return cute.where(has, number, 0), has

    def row(self, matrix: int, i: int) -> cute.Tensor:
        """Return this lane's ``i``-th row in shared memory."""
        begin = self.memory + matrix * self.size + (i * LANES + self.lane) * self.n
        return cute.make_tensor(begin, cute.make_layout(self.n))

    def elements(self, matrix: int, i: int) -> cute.Tensor:
        """Load this lane's ``i``-th row from shared memory."""
        found = cute.make_rmem_tensor(self.n, self.dtype)
        cute.autovec_copy(self.row(matrix, i), found)
        return found

    def values(self, matrix: int, i: int) -> list[Any]:
        """Return the elements of this lane's ``i``-th row as ``f32``."""
        found = self.elements(matrix, i)
        return [found[k].to(cute.Float32) for k in range(self.n)]

    def replace(self, matrix: int, i: int, values: list[Any]) -> None:
        """Replace this lane's ``i``-th row."""
        made = cute.make_rmem_tensor(self.n, self.dtype)
        for k, value in enumerate(values):
            made[k] = value.to(self.dtype)
        cute.autovec_copy(made, self.row(matrix, i))

    def store(self, results: list[tuple[cute.Tensor, int]]) -> None:
        """Store matrices from shared memory to contiguous memory."""
        cute.arch.sync_warp()
        for y, matrix in results:
            self.write(y, matrix, cute.size(y) // self.width)
        number, has = self.after(results[0][0])
        if has:
            for y, matrix in results:
                y[cute.size(y) // self.width * self.width + self.lane] = self.held(matrix, number)[self.lane]


class SharedRowTile(RowTile):
    """A tile of ``rows`` rows of ``n`` elements per warp. ``sharing`` lanes have every ``sharing``-th column of a row.

    The rows are as many whole vectors.
    """

    def __init__(self, dtype: Any, n: int, rows: int, sharing: int, threads: int, matrices: int = 1):
        Tile.__init__(self, dtype, rows * n // (128 // dtype.width), threads, matrices)
        self.n, self.sharing, self.at_once = n, sharing, LANES // sharing
        self.passes = rows // self.at_once
        """Rows of a lane."""
        self.group, first = self.lane // sharing, self.lane % sharing
        # The last column of a lane may be past the end of the row; its place is then that of the lane's first column.
        columns = [(first + i * sharing, (i + 1) * sharing <= n) for i in reversed(range(-(-n // sharing)))]
        self.columns = [(c, True) if inside else (cute.where(c < n, c, first), c < n) for c, inside in columns]
        """Columns of this lane, and whether the lane has them."""

    def row(self, matrix: int, i: int) -> cute.Tensor:
        """Return the ``i``-th row of this lane in shared memory."""
        begin = self.memory + matrix * self.size + (i * self.at_once + self.group) * self.n
        return cute.make_tensor(begin, cute.make_layout(self.n))

    def exists(self, i: int, end: Any) -> Any:
        """Return True if the ``i``-th row of this lane is before element ``end`` of the matrix."""
        return self.first * self.width + (i * self.at_once + self.group) * self.n < end

    def values(self, matrix: int, i: int) -> list[Any]:
        """Return this lane's columns of its ``i``-th row as ``f32``. Missing elements are 0."""
        row = self.row(matrix, i)
        found = [(row[column].to(cute.Float32), mine) for column, mine in self.columns]
        return [x if mine is True else cute.where(mine, x, 0.0) for x, mine in found]

    def replace(self, matrix: int, i: int, values: list[Any]) -> None:
        """Replace this lane's columns of its ``i``-th row."""
        row = self.row(matrix, i)
        for (column, mine), value in zip(self.columns, values):
            if mine:
                row[column] = value.to(self.dtype)
