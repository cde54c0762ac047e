"""Operand loads of a convolution: pixels of an image and taps of a filter.

Both map a K step to its tap and channels.
"""

# Traced values define operators and attributes that pyright cannot check.
# pyright: basic, reportOptionalMemberAccess=false

from collections.abc import Sequence
from math import prod
from typing import Any, NamedTuple

import cute_dialect.lang as cute
from cute_dialect.kernels.conv.config import DGRAD, ConvConfig
from cute_dialect.kernels.gemm.mainloop import Operand


class Grid(NamedTuple):
    """Sizes of an image from which the kernel computes the pixel of a row and the tap of a step."""

    extents: tuple[Any, ...]  # of the pixels that are GEMM rows, the last dimension first
    blocks: Any  # im2col loads per tap


def chosen(which: Any, values: Sequence[int]) -> Any:
    """Return one of several constants, selected at run time; a constant if all are equal."""
    if len(set(values)) == 1:
        return values[0]
    found = cute.Int32(values[0])
    for i in cute.range_constexpr(1, len(values)):
        found = cute.Int32(values[i]) if which == i else found
    return found


class Pixels:
    """Mapping from GEMM rows to pixels."""

    def __init__(self, grid: Grid):
        self.divisors = [cute.fast_divmod_create_divisor(n) for n in grid.extents]

    def of_row(self, row: Any) -> tuple[Any, ...]:
        """Return the pixel of a row: W, H, …, then N."""
        found = []
        for i in cute.range_constexpr(len(self.divisors)):
            row, rest = divmod(row, self.divisors[i])
            found.append(rest)
        return (*found, row)


class Steps:
    """Mapping from K steps to taps and channels."""

    def __init__(self, config: ConvConfig, grid: Grid):
        self.config, window = config, config.window
        self.blocks = cute.fast_divmod_create_divisor(grid.blocks)
        self.count, rank = grid.blocks, len(window.taps)
        self.last_first = range(rank - 1, -1, -1)
        self.residues = [window.residues(i) for i in range(rank)] if config.kind == DGRAD else None

    def taps(self, residue: Any) -> list[Any]:
        """Return the number of taps along each dimension, W first."""
        if self.residues is None:
            return [self.config.window.taps[i] for i in self.last_first]
        return [chosen(a, [r.hits for r in self.residues[i]]) for i, a in zip(self.last_first, self.places(residue))]

    def places(self, residue: Any) -> list[Any]:
        """Return the coordinates of a residue class, the remainder along each dimension, W first."""
        found = []
        for i in self.last_first:
            u = self.config.window.strides[i]
            if self.config.strided:
                found.append(residue % u)
                residue = residue // u
            else:
                found.append(0)
        return found

    def steps(self, residue: Any) -> Any:
        """Return the number of K steps of a residue class. A class without taps has one step, of zeros."""
        return cute.max(prod(self.taps(residue)) * self.count, 1)

    def tap(self, number: Any, residue: Any) -> tuple[Any, tuple[Any, ...]]:
        """Return the index of a tap in the filter, and its offset from the first pixel, W first."""
        window, places, taps = self.config.window, self.places(residue), self.taps(residue)
        found: Any = 0
        offsets, scale = [], 1
        lower = self.config.corners[0]
        for i, a, count in zip(self.last_first, places, taps):
            size = cute.max(count, 1)
            index = number % size
            number = number // size
            if self.residues is None:
                seen = window.taps[i] - 1 - index if window.flip else index
                tap, offset = index, seen * window.dilations[i]
            else:
                of_all = self.residues[i]
                tap = chosen(a, [r.first for r in of_all]) + index * of_all[0].step
                from_low = chosen(a, [r.at - lower[i] if r.hits else 0 for r in of_all])
                offset = from_low + (size - 1 - index) * of_all[0].apart
                tap = window.taps[i] - 1 - tap if window.flip else tap
            found = found + tap * scale
            scale = scale * window.taps[i]
            offsets.append(offset)
        return found, tuple(offsets)


class Columns:
    """An operand whose rows are pixels of an image and whose K is the channels of filter taps.

    Args:
        config: The configuration.
        atom: im2col TMA atom.
        smem: Stages (rows, K, stages).
        grid, steps: Mappings of rows and K steps.
        blocks: Number of blocks of the cluster that share the operand. Each loads some of its rows.
        rank: Index of this block among them.
        mask: Multicast mask.
    """

    def __init__(
        self, config: ConvConfig, atom: Any, smem: Any, grid: Grid, steps: Steps, blocks: int, rank: Any, mask: Any
    ):
        self.config, self.atom, self.smem, self.steps = config, atom, smem, steps
        self.pixels, self.blocks, self.rank, self.mask = Pixels(grid), blocks, rank, mask
        self.shared = blocks > 1

    def fetch(self, slot: Any, barrier: Any, row: Any, k: Any, matrix: Any) -> None:
        """Issue the loads of this block's part of tile (row, k) to a slot. ``matrix`` is a group or a residue class."""
        config, (m, _, depth) = self.config, self.config.base.tile
        width, rows = config.width, m // self.blocks
        lower = config.corners[0][::-1]
        strides = (1,) * len(lower) if config.kind == DGRAD else config.window.strides[::-1]
        *pixel, n = self.pixels.of_row(row * m + self.rank * rows)
        first = [x * s + low for x, s, low in zip(pixel, strides, lower)]
        for box in range(config.boxes):
            number, block = divmod(k * config.boxes + box if config.boxes > 1 else k, self.steps.blocks)
            channel = block * width
            if config.groups:
                channel = channel + matrix * (self.steps.count * width)
            if config.boxes > 1:  # past the last tap: load channels that are out of bounds, that is, zeros
                inside = number < prod(config.window.taps)
                channel = channel if inside else cute.Int32(_NOWHERE)
                number = number if inside else cute.Int32(0)
            if config.strided:  # a class without taps
                none = prod(self.steps.taps(matrix)) == 0
                channel = cute.Int32(_NOWHERE) if none else channel
            _, offsets = self.steps.tap(number, matrix)
            at = cute.make_tensor((channel, *first, n), cute.layout(f"({width},{rows}):(1@0,0)"))
            start = self.smem.iterator + (slot * (m * depth) + self.rank * (rows * width) + box * (m * width))
            align = 128 if rows * width % 512 else 1024
            there = cute.make_tensor(start.align(align), cute.layout(f"({width},{rows}):(1,{width})"))
            cute.copy(self.atom, at, there, tma_bar_ptr=barrier, mcast_mask=self.mask, im2col_offsets=offsets)


_NOWHERE = 1 << 24
"""A channel that is out of bounds in any image."""


class Filter:
    """The filter operand: tiles of (rows, channels, taps), or of (rows, taps and channels) of one group."""

    def __init__(self, config: ConvConfig, operand: Operand, steps: Steps):
        self.config, self.operand, self.steps = config, operand, steps
        self.shared = operand.shared

    def fetch(self, slot: Any, barrier: Any, row: Any, k: Any, matrix: Any) -> None:
        """Issue the load of this block's part of tile (row, k) to a slot."""
        if self.config.flat:
            self.operand.fetch(slot, barrier, row, k, matrix)
        else:
            number, block = divmod(k, self.steps.blocks)
            tap, _ = self.steps.tap(number, matrix)
            block = block + matrix * self.steps.count if self.config.groups else block
            self.operand.fetch(slot, barrier, row, block, tap)


class Chunks:
    """The image operand of wgrad: its rows are 64-channel chunks of a filter tap, its K mode is output pixels.

    ``atom`` loads 64 channels of pixels to ``smem`` (rows, K, stages). ``channels`` is the number of channels of a
    group.
    """

    shared = False

    def __init__(self, config: ConvConfig, atom: Any, smem: Any, grid: Grid, steps: Steps, channels: Any = 0):
        self.config, self.atom, self.smem, self.steps, self.pixels = config, atom, smem, steps, Pixels(grid)
        self.channels = channels

    def fetch(self, slot: Any, barrier: Any, row: Any, k: Any, matrix: Any) -> None:
        """Issue the loads of the chunks of tile (row, k) to a slot."""
        config, (_, n, depth) = self.config, self.config.base.tile
        window, low = config.window, config.window.lower[::-1]
        *pixel, image = self.pixels.of_row(k * depth)
        first = [x * u + start for x, u, start in zip(pixel, window.strides[::-1], low)]
        for chunk in range(n // 64):
            number, block = divmod(row * (n // 64) + chunk, self.steps.blocks)
            inside = number < prod(window.taps)
            first_one = block * 64 + (matrix * self.channels if config.groups else 0)
            channel = first_one if inside else cute.Int32(_NOWHERE)
            _, offsets = self.steps.tap(number if inside else cute.Int32(0), None)
            at = cute.make_tensor((channel, *first, image), cute.layout(f"(64,{depth}):(1@0,0)"))
            start = self.smem.iterator + (slot * (n * depth) + chunk * (64 * depth))
            there = cute.make_tensor(start.align(1024), cute.layout(f"(64,{depth}):(1,64)"))
            cute.copy(self.atom, at, there, tma_bar_ptr=barrier, im2col_offsets=offsets)
