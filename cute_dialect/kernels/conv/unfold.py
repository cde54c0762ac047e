"""Write out what the taps of a filter see: a matrix with a row for each pixel of a result, of all taps and channels.

What no im2col load reads is multiplied so: channels whose lines are no multiples of 16 bytes, types without wgmma, wide
filters.  Elements are moved as words of 1 to 8 bytes, whatever they are; all of the convolution is arguments, so that
there is one kernel for each size of words.

    columns[row, ((group * taps + tap) * channels + channel)] = image[n, pixel(row, tap), group * channels + channel]
"""

# Operators and attributes are those of values in a trace.
# pyright: basic, reportOptionalMemberAccess=false

from typing import Any, NamedTuple

import cute_dialect.lang as cute
from cute_dialect.kernels.printed import printed

__all__ = ["Sizes", "UnfoldConfig", "unfold_text"]

THREADS = 256
BLOCKS = 132 * 8


class UnfoldConfig(NamedTuple):
    """A kernel: the bits of its words; ``gradient``: it reads a result's gradient."""

    bits: int
    gradient: bool = False

    @property
    def name(self) -> str:
        """Names the kernel."""
        return f"unfold-{self.bits}{'-gradient' * self.gradient}"


class Sizes(NamedTuple):
    """Numbers of a convolution; of each dimension, W first: taps, extent of the rows' pixels, padding, stride and
    dilation.
    """

    channels: Any
    groups: Any
    w: Any
    h: Any
    d: Any


class Along(NamedTuple):
    """Numbers along one dimension."""

    taps: Any
    rows: Any
    before: Any
    stride: Any
    dilation: Any


@cute.jit
def launch(
    image: cute.Tensor, columns: cute.Tensor, channels: cute.Int32, groups: cute.Int32, w: Any, h: Any, d: Any,
    gradient: cute.Constexpr[bool] = False,
):  # fmt: skip
    """Write the columns of an image (C, W, H, D, N); ``gradient``: it is a result's gradient, and rows are the pixels
    of the image that it was made of.
    """
    rows, across = columns.shape
    sizes = Sizes(channels, groups, Along(*w), Along(*h), Along(*d))
    assert rows == image.shape[4] * (sizes.w.rows * sizes.h.rows * sizes.d.rows), "a row for each pixel"
    assert across == groups * channels * (sizes.w.taps * sizes.h.taps * sizes.d.taps), "a column for each tap"
    total = cute.assume(rows * across, range=(0, None))
    grid = cute.min(cute.ceil_div(total, THREADS), BLOCKS)
    unfold(image, columns, total, sizes, gradient).launch(grid=grid, block=THREADS)


@cute.kernel
def unfold(image: Any, columns: Any, total: cute.Int32, sizes: Sizes, gradient: cute.Constexpr[bool]):
    """Write every n-th element, n the number of threads."""
    channels, groups, w, h, d = sizes
    by = [
        cute.fast_divmod_create_divisor(cute.max(n, 1))
        for n in (channels, w.taps, h.taps, d.taps, groups, w.rows, h.rows, d.rows)
    ]
    across = cute.fast_divmod_create_divisor(cute.max(columns.shape[1], 1))
    first = cute.arch.block_idx().x * THREADS + cute.arch.thread_idx().x
    for element in range(first, total, cute.arch.grid_dim().x * THREADS):
        row, column = divmod(element, across)
        rest, channel = divmod(column, by[0])
        rest, s = divmod(rest, by[1])
        rest, r = divmod(rest, by[2])
        group, t = divmod(rest, by[3])
        pixel, q = divmod(row, by[5])
        pixel, p = divmod(pixel, by[6])
        n, o = divmod(pixel, by[7])
        places = [
            _place(x, place, tap, extent, gradient)
            for x, place, tap, extent in zip((w, h, d), (q, p, o), (s, r, t), image.shape[1:4])
        ]
        inside = places[0][1] & places[1][1] & places[2][1]
        value = image.element_type(0)
        if inside:
            value = image[group * channels + channel, places[0][0], places[1][0], places[2][0], n]
        columns[row, column] = value


def _place(x: Along, place: Any, tap: Any, extent: Any, gradient: bool) -> tuple[Any, Any]:
    """Return where along a dimension a tap reads, and whether that lies in the image."""
    if not gradient:
        at = place * x.stride - x.before + tap * x.dilation
        return at, (at >= 0) & (at < extent)
    far = place + x.before - tap * x.dilation
    at = cute.max(far, 0) // x.stride
    return at, (far >= 0) & (at * x.stride == far) & (at < extent)


@printed
def unfold_text(config: UnfoldConfig) -> cute.Compiled:
    """Return the kernel ``@unfold`` and its host function as text."""
    word = {8: cute.Int8, 16: cute.Int16, 32: cute.Int32, 64: cute.Int64}[config.bits]
    five = cute.Tensor[word, "(?,?,?,?,?):(?,?,?,?,?)"]
    matrix = cute.Tensor[word, "(?,?):(?,1)"]
    numbers = (cute.Int32(0),) * 5
    given = (five, matrix, cute.Int32(0), cute.Int32(0), numbers, numbers, numbers)
    return cute.trace(launch, *given, gradient=config.gradient)
