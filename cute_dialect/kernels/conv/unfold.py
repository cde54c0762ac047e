"""Explicit im2col: writes a matrix with a row per output pixel, which holds the channels of all taps.

It serves convolutions that im2col TMA cannot load: rows of channels that are not multiples of 16 bytes, types without
wgmma, and large filters. Elements are moved as words of 1 to 8 bytes, whatever their type. The geometry is passed as
arguments, so that there is one kernel per word size.

    columns[row, ((group * taps + tap) * channels + channel)] = image[n, pixel(row, tap), group * channels + channel]

Columns past the last tap are zero. A thread writes the same 16 bytes of many rows, so that it computes their taps and
channels only once. If rows of the matrix are not multiples of 16 bytes, it writes them word by word.
"""

# Traced values define operators and attributes that pyright cannot check.
# pyright: basic, reportOptionalMemberAccess=false

from typing import Any, NamedTuple

import cute_dialect.lang as cute
from cute_dialect.kernels.common.kernel_names import differing
from cute_dialect.kernels.common.traced_text import printed

THREADS = 256
BLOCKS = 132 * 3


class UnfoldConfig(NamedTuple):
    """Configuration of the kernel."""

    bits: int  # of a word
    gradient: bool = False  # read the output's gradient

    @property
    def name(self) -> str:
        """Name of the kernel."""
        return f"unfold-{self.bits}{differing(self, {'gradient': '-gradient'})}"


class Sizes(NamedTuple):
    """Sizes of a convolution; ``w``, ``h`` and ``d`` are :class:`Along`."""

    channels: Any
    groups: Any
    w: Any
    h: Any
    d: Any


class Along(NamedTuple):
    """Sizes along one dimension. ``rows`` is the extent of the pixels that are rows of the matrix."""

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
    """Write the im2col matrix of an image (C, W, H, D, N).

    With ``gradient``, the image is the output's gradient, and rows are pixels of the input image.
    """
    rows, across = columns.shape
    sizes = Sizes(channels, groups, Along(*w), Along(*h), Along(*d))
    used = groups * channels * (sizes.w.taps * sizes.h.taps * sizes.d.taps)
    assert rows == image.shape[4] * (sizes.w.rows * sizes.h.rows * sizes.d.rows), "columns must have one row per pixel"
    assert across >= used, "columns must have one column per tap and channel"
    piece = 128 // image.element_type.width
    pieces = cute.ceil_div(across, piece)
    chunks = cute.max(cute.ceil_div(pieces, THREADS), 1)
    lanes = cute.max(cute.ceil_div(pieces, chunks), 1)
    at_once = THREADS // lanes
    down = cute.max(cute.min(cute.ceil_div(rows, at_once), cute.ceil_div(BLOCKS, chunks)), 1)
    wide = cute.promise(columns, f"(?,?{{div={piece}}}):(?{{div={piece}}},1)", align=16)
    unfold(image, wide, sizes, (lanes, at_once), gradient, True).launch(
        grid=(down, chunks, 1), block=THREADS, fallback=unfold(image, columns, sizes, (lanes, at_once), gradient, False)
    )


@cute.kernel(max_threads=THREADS, min_blocks=3)
def unfold(
    image: Any, columns: Any, sizes: Sizes, shape: Any, gradient: cute.Constexpr[bool], whole: cute.Constexpr[bool]
):
    """Write one piece of every n-th row, n being the rows that all blocks write at once.

    A ``whole`` piece is a vector.
    """
    piece = 128 // image.element_type.width
    (lanes, at_once), (rows, across) = shape, columns.shape
    w, h, d = sizes[2:]
    by = [cute.fast_divmod_create_divisor(cute.max(n, 1)) for n in (w.rows, h.rows, d.rows)]
    thread, (block, chunk, _) = cute.arch.thread_idx().x, cute.arch.block_idx()
    line, lane = divmod(thread, lanes)
    first = (chunk * lanes + lane) * piece
    if (line < at_once) & (first < across):
        words = _words(image, sizes, first, gradient, piece)
        atom = cute.make_copy_atom(cute.nvgpu.CopyUniversalOp(), image.element_type)
        for row in range(block * at_once + line, rows, cute.arch.grid_dim().x * at_once):
            pixel, q = divmod(row, by[0])
            pixel, p = divmod(pixel, by[1])
            n, o = divmod(pixel, by[2])
            held, flags = cute.make_rmem_tensor((1, piece), image.element_type), cute.make_rmem_tensor(1, cute.Boolean)
            held.fill(0)
            for i in cute.range_constexpr(piece):
                at, flags[0] = words[i].read(image, (q, p, o), n)
                cute.copy(atom, cute.make_tensor(at, cute.make_layout(1)), held[None, i], pred=flags)
            at = columns[row, None].iterator + first
            if whole:
                cute.autovec_copy(held, cute.make_tensor(at.align(16), held.layout))
            else:
                for i in cute.range_constexpr(piece):
                    flags[0] = first + i < across
                    cute.copy(atom, held[None, i], cute.make_tensor(at + i, cute.make_layout(1)), pred=flags)


class _Word:
    """A column of the matrix: its channel, and the offset of its tap from a row's pixel along W, H and D.

    For ``gradient``, the offset is in pixels times the stride, before the division by the stride.
    """

    def __init__(self, image: Any, sizes: Sizes, channel: Any, taps: list[Any], there: Any, gradient: bool):
        self.gradient, self.channel, self.along = gradient, channel, sizes[2:]
        apart = [tap * x.dilation - x.before for tap, x in zip(taps, self.along)]
        self.apart = [-n for n in apart] if gradient else apart
        if not gradient:  # relative to a row's pixel
            steps = [cute.Int64(n) * step for n, step in zip((channel, *apart), image.stride)]
            self.offset = cute.arch.opaque(sum(steps[1:], steps[0]))  # keep it as one number
        # A column that does not exist is far out of bounds.
        self.apart[0] = cute.where(there, self.apart[0], -(1 << 30))

    def read(self, image: Any, pixel: Any, n: Any) -> tuple[Any, Any]:
        """Return the address of the column's element for a pixel, and whether it is in bounds."""
        if not self.gradient:
            places = [at * x.stride + far for at, x, far in zip(pixel, self.along, self.apart)]
            inside = [x.to(cute.Uint32) < extent.to(cute.Uint32) for x, extent in zip(places, image.shape[1:4])]
            corner = [at * x.stride for at, x in zip(pixel, self.along)]
            return image[None, *corner, n].iterator + self.offset, inside[0] & inside[1] & inside[2]
        far = [at + more for at, more in zip(pixel, self.apart)]
        places = [cute.max(x, 0) // along.stride for x, along in zip(far, self.along)]
        flags = [
            (x >= 0) & (place * along.stride == x) & (place < extent)
            for x, place, along, extent in zip(far, places, self.along, image.shape[1:4])
        ]
        return image[None, *places, n].iterator + self.channel * image.stride[0], flags[0] & flags[1] & flags[2]


def _words(image: Any, sizes: Sizes, first: Any, gradient: bool, piece: int) -> list[_Word]:
    """Return the columns of a piece, from column ``first`` on."""
    channels, groups, w, h, d = sizes
    extents = [cute.max(n, 1) for n in (channels, w.taps, h.taps, d.taps)]
    rest, digits = first, list[Any]()
    for n in extents:
        rest, digit = divmod(rest, n)
        digits.append(digit)
    found = list[_Word]()
    for _ in range(piece):
        channel, *taps = digits
        found.append(_Word(image, sizes, rest * channels + channel, taps, rest < groups, gradient))
        more = cute.Int32(1)  # the next column: the next channel, tap or group
        for i, n in enumerate(extents):
            digit = digits[i] + more
            more = cute.where(digit < n, 0, 1)
            digits[i] = cute.where(digit < n, digit, 0)
        rest = rest + more
    return found


@printed
def unfold_text(config: UnfoldConfig) -> cute.Compiled:
    """Trace the kernel ``@unfold`` and its host function."""
    word = {8: cute.Int8, 16: cute.Int16, 32: cute.Int32, 64: cute.Int64}[config.bits]
    five = cute.Tensor[word, "(?,?,?,?,?):(?,?,?,?,?)"]
    matrix = cute.Tensor[word, "(?,?):(?,1)"]
    numbers = (cute.Int32(0),) * 5
    given = (five, matrix, cute.Int32(0), cute.Int32(0), numbers, numbers, numbers)
    return cute.trace(launch, *given, gradient=config.gradient)
