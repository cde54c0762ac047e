"""Mapping from accumulator coordinates to D for gradients and grouped convolutions, used by their epilogues.

A kernel numbers its own rows and columns. D is one matrix, with a row per pixel of an image or per filter.
"""

# Traced values define operators and attributes that pyright cannot check.
# pyright: basic, reportOptionalMemberAccess=false

from typing import Any

import cute_dialect.lang as cute
from cute_dialect.kernels.conv.im2col_loads import Pixels, Steps

__all__ = ["GroupPlaces", "PixelPlaces", "TapPlaces"]

_OUTSIDE = 1 << 30
"""An index that is out of bounds: nothing is stored there, and loaded values are not used."""


class PixelPlaces:
    """Mapping for a strided dgrad: rows are pixels of a residue class, which is the matrix index.

    ``image`` is the result (C, W, …, N).
    """

    def __init__(self, image: Any, pixels: Pixels, steps: Steps):
        self.image, self.pixels, self.steps = image, pixels, steps

    def row(self, row: Any, matrix: Any) -> Any:
        """Return the pixel's row in D."""
        *extents, images = self.image.shape[1:]
        strides = self.steps.config.window.strides[::-1]
        *pixel, n = self.pixels.of_row(row)
        found, inside = n, n < images
        where = [x * u + a for x, u, a in zip(pixel, strides, self.steps.places(matrix))]
        for x, extent in zip(reversed(where), reversed(extents)):
            found, inside = found * extent + x, inside & (x < extent)
        return found if inside else cute.Int32(_OUTSIDE)

    def column(self, column: Any, matrix: Any) -> Any:
        """Return the column unchanged."""
        return column


class GroupPlaces:
    """Mapping for groups. ``extents`` are the number of rows, and of columns of a group."""

    def __init__(self, steps: Steps, extents: Any):
        self.extents = extents

    def row(self, row: Any, matrix: Any) -> Any:
        """Return the row unchanged."""
        return row

    def column(self, column: Any, matrix: Any) -> Any:
        """Return the column among those of all groups."""
        _, per = self.extents
        return column + matrix * per if column < per else cute.Int32(_OUTSIDE)


class TapPlaces:
    """Mapping for wgrad, whose columns are chunks of 64 channels of a tap.

    ``extents`` are the number of filters (of a group), and of channels of a tap.
    """

    def __init__(self, steps: Steps, extents: Any):
        self.steps, self.extents = steps, extents

    def row(self, row: Any, matrix: Any) -> Any:
        """Return the row, counted over all groups."""
        if not self.steps.config.groups:
            return row
        per, _ = self.extents
        return row + matrix * per if row < per else cute.Int32(_OUTSIDE)

    def column(self, column: Any, matrix: Any) -> Any:
        """Return the column among the channels of all taps."""
        _, channels = self.extents
        tap, block = divmod(cute.assume(column // 64, range=(0, None)), self.steps.blocks)
        channel = block * 64 + column % 64
        return tap * channels + channel if channel < channels else cute.Int32(_OUTSIDE)
