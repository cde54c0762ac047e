"""What the sums of blocks of 128 of K are multiplied by: scales of rows of A and of columns of B, read from memory.

A step of K is one block.  Scales lie anywhere in global memory, and a load takes longer than a step: they are on their
way for the steps that follow while one is multiplied.

The four lanes that have a row of sums each read its scale of one of four steps, times that of columns of B, and give it
to the others in turn (:class:`Factors`); where each column of B has scales of its own, the lanes of a warp read those
of every 32nd column, of one step ahead (:class:`ColumnFactors`).
"""

# Operators and attributes are those of values in a trace.
# pyright: basic, reportOptionalMemberAccess=false

from math import gcd
from typing import Any, NamedTuple

import cute_dialect.lang as cute
from cute_dialect.kernels.gemm.config import BLOCK, GemmConfig, blocks_of

__all__ = ["ColumnFactors", "Factors", "Scales", "widened"]

_LANES = 4
"""Lanes that have a row, and steps of K whose factors they hold."""


class Scales(NamedTuple):
    """Factors of blocks of 128 of K: ``a`` (M, K / 128), for each row of A, ``b`` (N / 128, K / 128), for 128 of B, or
    (N, K / 128), for each.
    """

    a: Any = None
    b: Any = None


def widened(scale: Any) -> Any:
    """Return a scale as f32: exponents of e8m0 (OCP Microscaling Formats, 5.4.1) are those of f32; 255 is no number.

    ``x`` of 8 bits is ``2 ** (x - 127)``: its bits belong 23 further up, but for 0, of which f32 has a subnormal.
    """
    if scale.dtype is cute.Float32:
        return scale
    bits = scale.to(cute.Int32) << 23
    bits = cute.Int32(0x00400000) if scale == 0 else bits
    return (cute.Int32(0x7FC00000) if scale == 255 else bits).bitcast(cute.Float32)


class _OfSteps:
    """Scales of a tile, and those of the next steps on their way to registers.

    ``coming``: these registers, one for each of the lane's rows and of the blocks of columns (or columns) that it reads
    scales of: they are asked for before the tile begins (:meth:`ask`).
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
        """Begin to read the scales of a step, from the tile's first one on."""
        k = cute.min(self.k + step, self.last)
        for i in cute.range_constexpr(len(self.lines)):
            self.coming[i] = self.lines[i][k]


class Factors(_OfSteps):
    """The factors of a warp group's rows, times those of 128 columns of B each, of which a tile may have parts of
    several blocks.

    ``row``, ``column``: the tile's first ones, ``k``: its first step; ``held``: registers for products of scales.
    """

    def __init__(
        self, c: GemmConfig, scales: Scales, registers: tuple[Any, Any], thread: Any, row: Any, column: Any, k: Any
    ):  # fmt: skip
        coming, self.held = registers
        self.blocks = blocks_of(c.tile[1])
        self.count = self.blocks[-1].stop
        columns = [column // BLOCK + i for i in range(self.count)]
        super().__init__(c, scales, coming, thread, row, columns, k + cute.arch.lane_idx() % _LANES)
        # Columns before which the tile's second block begins, if it does.
        self.before = BLOCK - column % BLOCK if self.count > 1 else None

    @staticmethod
    def registers(c: GemmConfig, scales: Scales) -> tuple[Any, Any]:
        """Return registers for scales that are asked for, and for products of scales."""
        rows, blocks = 2 * c.atoms, blocks_of(c.tile[1])[-1].stop
        coming = cute.make_rmem_tensor(rows + blocks, scales.a.element_type)
        return coming, cute.make_rmem_tensor(rows * blocks, cute.Float32)

    def take(self, step: Any) -> list[list[Any]]:
        """Return the factors of a step, which follows the one that was asked last: of each block of columns, of rows.

        They are another lane's, and on their way for a while.
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
        """Add a step's products, times its factors."""
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
    """The factors of a warp group's rows and of single columns, of which a lane of a warp holds one in 32.

    The arguments are those of :class:`Factors`.
    """

    def __init__(
        self, c: GemmConfig, scales: Scales, registers: tuple[Any], thread: Any, row: Any, column: Any, k: Any
    ):  # fmt: skip
        columns = [column + 32 * i + cute.arch.lane_idx() for i in range(-(-c.tile[1] // 32))]
        super().__init__(c, scales, *registers, thread, row, columns, k)

    @staticmethod
    def registers(c: GemmConfig, scales: Scales) -> tuple[Any]:
        """Return registers for scales that are asked for."""
        return (cute.make_rmem_tensor(2 * c.atoms + -(-c.tile[1] // 32), scales.a.element_type),)

    def take(self, step: Any) -> list[Any]:
        """Return the scales of a step, which follows the one that was asked last: of rows, then of columns."""
        taken = [widened(self.coming[i]) for i in range(len(self.lines))]
        self.ask(step + 1)
        return taken

    def add(self, sums: Any, products: Any, taken: list[Any]) -> None:
        """Add a step's products, times its factors."""
        on_rows, on_columns = taken[: self.rows], taken[self.rows :]
        for j in cute.range_constexpr(self.c.tile[1] // 8):
            for e in cute.range_constexpr(2):
                on_column = cute.arch.shuffle_sync(on_columns[j // 4], j % 4 * 8 + self.lane % 4 * 2 + e)
                for atom in cute.range_constexpr(self.c.atoms):
                    for half in cute.range_constexpr(2):
                        i = j * 4 + (atom * (self.c.tile[1] // 2) + 2 * half + e)
                        sums[i] = products[i] * (on_rows[2 * atom + half] * on_column) + sums[i]
