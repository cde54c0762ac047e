"""Block scales of a GEMM: a scale per row of A and per 128 columns (or per column) of B, for each 128 of K.

Each K step covers one scaling block. The scales are in global memory, where a load takes longer than a K step, so they
are prefetched to registers for later steps.

Four lanes own each accumulator row. In :class:`Factors` each of them loads the row's scale for one of four steps and
multiplies it by the column scales. Shuffles pass the products to the other three lanes. If each column of B has its own
scale, lane ``l`` of a warp loads the scales of every 32nd column, one step ahead (:class:`ColumnFactors`).
"""

# Traced values define operators and attributes that pyright cannot check.
# pyright: basic, reportOptionalMemberAccess=false

from math import gcd
from typing import Any, NamedTuple

import cute_dialect.lang as cute
from cute_dialect.kernels.gemm.config import BLOCK, GemmConfig, blocks_of

_LANES = 4
"""Lanes that own a row, and K steps whose factors they hold."""


class Scales(NamedTuple):
    """Block scales for 128 of K each."""

    a: Any = None  # (M, K / 128): per row of A
    b: Any = None  # (N / 128, K / 128): per 128 columns of B, or (N, K / 128): per column


def widened(scale: Any) -> Any:
    """Convert a scale to f32. An e8m0 scale ``x`` (OCP Microscaling Formats, 5.4.1) is ``2 ** (x - 127)``, and 255 is
    NaN.

    Its bits are the exponent bits of the f32. Only 0 is different: it is a subnormal of f32.
    """
    if scale.dtype is cute.Float32:
        return scale
    bits = scale.to(cute.Int32) << 23
    bits = cute.Int32(0x00400000) if scale == 0 else bits
    return (cute.Int32(0x7FC00000) if scale == 255 else bits).bitcast(cute.Float32)


class _OfSteps:
    """Scales of a tile, with those of the next steps in flight.

    ``coming`` holds the prefetched scales: one per row of the lane, then one per column block (or column) it
    loads. :meth:`ask` issues the loads of the first step before the tile begins.
    """

    def __init__(self, c: GemmConfig, scales: Scales, coming: Any, thread: Any, row: Any, columns: list[Any], k: Any):
        self.c, self.coming, self.lane = c, coming, cute.arch.lane_idx()
        warp, lane = cute.arch.warp_idx() % 4, self.lane
        firsts = [row + atom * c.sharers * 64 + thread // 2 + warp * 16 + lane // 4 for atom in range(c.atoms)]
        rows = [first + 8 * half for first in firsts for half in range(2)]
        a, b = scales
        self.lines = [a[cute.min(x, a.shape[0] - 1), None] for x in rows]
        self.rows, self.last, self.k = len(rows), a.shape[1] - 1, k
        self.lines += [b[cute.min(x, b.shape[0] - 1), None] for x in columns]

    def ask(self, step: Any) -> None:
        """Issue the loads of the scales of a step, counted from the first step of the tile."""
        k = cute.min(self.k + step, self.last)
        for i in cute.range_constexpr(len(self.lines)):
            self.coming[i] = self.lines[i][k]


class Factors(_OfSteps):
    """Scales of a warpgroup's rows, multiplied by those of 128 columns of B. A tile can span several column blocks.

    Args:
        registers: The result of :meth:`registers`.
        thread: The first thread of the warpgroup in the MMA, 0 or a multiple of 128.
        row, column: The first row and column of the tile.
        k: The first K step.
    """

    def __init__(
        self, c: GemmConfig, scales: Scales, registers: tuple[Any, Any], thread: Any, row: Any, column: Any, k: Any
    ):
        coming, self.held = registers
        self.blocks = blocks_of(c.tile[1])
        self.count = self.blocks[-1].stop
        columns = [column // BLOCK + i for i in range(self.count)]
        super().__init__(c, scales, coming, thread, row, columns, k + cute.arch.lane_idx() % _LANES)
        # Columns of the tile before its second scaling block begins, if it does.
        self.before = BLOCK - column % BLOCK if self.count > 1 else None

    @staticmethod
    def registers(c: GemmConfig, scales: Scales) -> tuple[Any, Any]:
        """Allocate registers for prefetched scales and for products of scales."""
        rows, blocks = 2 * c.atoms, blocks_of(c.tile[1])[-1].stop
        coming = cute.make_rmem_tensor(rows + blocks, scales.a.element_type)
        return coming, cute.make_rmem_tensor(rows * blocks, cute.Float32)

    def take(self, step: Any) -> list[list[Any]]:
        """Return the factors of a step, per column block and row. The step must follow the one last asked for.

        A shuffle fetches them from another lane, so they are not available at once.
        """
        if step % _LANES == 0:
            for i in cute.range_constexpr(self.rows):
                for j in cute.range_constexpr(self.count):
                    product = widened(self.coming[i]) * widened(self.coming[self.rows + j])
                    self.held[j * self.rows + i] = product
            self.ask(step + _LANES)
        source = self.lane // _LANES * _LANES + step % _LANES
        return [
            [cute.arch.shuffle_sync(self.held[j * self.rows + i], source) for i in range(self.rows)]
            for j in range(self.count)
        ]

    def add(self, sums: Any, products: Any, taken: list[list[Any]]) -> None:
        """Add the MMA results of a step to the accumulator, multiplied by the factors of the step."""
        by, columns = taken[0], self.c.tile[1]
        for j in cute.range_constexpr(columns // 8):
            possible = self.blocks[j]
            if j * 8 % gcd(columns, BLOCK) == 0:
                by = taken[possible.start]
                for block in possible[1:]:
                    begun = self.before + (block - 1) * BLOCK <= j * 8
                    by = [y if begun else x for x, y in zip(by, taken[block])]
            for atom in cute.range_constexpr(self.c.atoms):
                for half in cute.range_constexpr(2):
                    for e in cute.range_constexpr(2):
                        i = j * 4 + (atom * (columns // 2) + 2 * half + e)
                        sums[i] = products[i] * by[2 * atom + half] + sums[i]


class ColumnFactors(_OfSteps):
    """Scales of a warpgroup's rows and of single columns. Each lane of a warp holds the scales of every 32nd column.

    The arguments are those of :class:`Factors`.
    """

    def __init__(
        self, c: GemmConfig, scales: Scales, registers: tuple[Any], thread: Any, row: Any, column: Any, k: Any
    ):
        columns = [column + 32 * i + cute.arch.lane_idx() for i in range(-(-c.tile[1] // 32))]
        super().__init__(c, scales, *registers, thread, row, columns, k)

    @staticmethod
    def registers(c: GemmConfig, scales: Scales) -> tuple[Any]:
        """Allocate registers for prefetched scales."""
        return (cute.make_rmem_tensor(2 * c.atoms + -(-c.tile[1] // 32), scales.a.element_type),)

    def take(self, step: Any) -> list[Any]:
        """Return the scales of a step: per row, then per column. The step must follow the one last asked for."""
        taken = [widened(self.coming[i]) for i in range(len(self.lines))]
        self.ask(step + 1)
        return taken

    def add(self, sums: Any, products: Any, taken: list[Any]) -> None:
        """Add the MMA results of a step to the accumulator, multiplied by the scales of the step."""
        on_rows, on_columns = taken[: self.rows], taken[self.rows :]
        for j in cute.range_constexpr(self.c.tile[1] // 8):
            for e in cute.range_constexpr(2):
                on_column = cute.arch.shuffle_sync(on_columns[j // 4], j % 4 * 8 + self.lane % 4 * 2 + e)
                for atom in cute.range_constexpr(self.c.atoms):
                    for half in cute.range_constexpr(2):
                        i = j * 4 + (atom * (self.c.tile[1] // 2) + 2 * half + e)
                        sums[i] = products[i] * (on_rows[2 * atom + half] * on_column) + sums[i]
