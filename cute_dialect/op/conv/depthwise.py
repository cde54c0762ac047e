"""Depthwise convolutions, with a filter per channel: forward, the gradient of the image, and that of the filters."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from math import gcd, prod
from typing import TYPE_CHECKING, Any, NamedTuple

from cute_dialect.kernels.conv.config import DGRAD, FPROP, WGRAD
from cute_dialect.kernels.conv.depthwise import DepthwiseConfig
from cute_dialect.kernels.conv.depthwise_weights import DepthwiseWeightsConfig
from cute_dialect.op.arrays.operand_views import aligned_vector, dense, padded_view, strides_of
from cute_dialect.op.execute.kernels import kernel_of
from cute_dialect.op.execute.launcher import launched
from cute_dialect.op.problems.conv import Geometry
from cute_dialect.runtime.arrays import ArrayView

if TYPE_CHECKING:  # pragma: no cover
    from cute_dialect.op.conv.compute import Call
    from cute_dialect.op.problems.conv import Prepared

_TYPES = ("f16", "bf16", "f32")
_ROWS, _COLUMNS = (32, 16, 8, 4, 2), 2
_AHEAD = (4, 3, 2)
_MULTIPLICATIONS = 2800
"""Maximum number of multiplications in a loop body, or in the code for all rows of a tile."""
_FEW_TAPS, _HELD = 16, 49
"""Maximum number of taps with four channels per thread; with fewer channels, taps whose filters stay in registers."""
_THREADS = 132 * 400
"""Wanted number of threads; tiles have fewer rows if there would be fewer threads."""
_UNROLLED, _SMALL, _SHORT = (1, 2), 80_000, 700
"""Rows of unrolled tiles, and the maximum numbers of threads and of multiplications per thread for them.

All loads of a small problem are in flight at once, and its code is short.
"""
_REGISTERS, _FEW_REGISTERS, _MOST_REGISTERS, _MANY_REGISTERS, _MOST_UNROLLED = 125, 100, 130, 190, 150
"""Limits of the registers per thread.

Above _REGISTERS lines are loaded one ahead of their use; up to _FEW_REGISTERS more than two.  Above _MOST_REGISTERS a
multiprocessor has one block.  Above _MANY_REGISTERS registers would be spilled.  Unrolled tiles use at most
_MOST_UNROLLED.
"""


def depthwise_config(g: Geometry, element: str, output: str) -> DepthwiseConfig | None:
    """Return the kernel of a depthwise convolution in two dimensions, or of its gradient of the image.

    Return None for other convolutions.

    >>> from cute_dialect.op.problems.conv import geometry
    >>> depthwise_config(geometry("conv2d", "fprop", (8, 56, 56, 96), (96, 3, 3, 1), 1, 1, 1, 96), "f16", "f16").name
    'depthwise-f16-f16-3x3-p1x1-4x2ra4'
    """
    w, element = g.window, "f32" if element == "tf32" else element
    multiplier = g.filter[0] // g.groups
    one = g.filter[-1] == 1 and g.groups == g.image[-1] and len(w.taps) == 2 and multiplier in (1, 2, 4)
    if not one or g.kind not in (FPROP, DGRAD) or element not in _TYPES or output not in _TYPES:
        return None
    if multiplier > 1:
        few = multiplier if g.kind == FPROP else gcd(4 // multiplier, g.groups)
        found = _shaped(g, element, output, few, 4, 16)
        return found if found.registers <= _MANY_REGISTERS else None
    if g.groups % 8 == 0 and g.taps <= _FEW_TAPS:
        return _shaped(g, element, output, 4, _COLUMNS, 16)
    few = 2 if g.groups % 2 == 0 else 1
    found = _shaped(g, element, output, few, 4, min(g.taps, _HELD))
    if found.registers <= _MANY_REGISTERS or g.groups % 8:
        return found
    return _dilated(found, prod(g.output)) or _shaped(g, element, output, 4, _COLUMNS, 16)


def _dilated(config: DepthwiseConfig, elements: int) -> DepthwiseConfig | None:
    """Return the kernel of a small problem with a large, dilated window; None for others.

    A row at a time without a loop has all its loads in flight, and takes 0.6 of the time even if registers are spilled.
    """
    units = config.window.strides if config.gradient else (1, 1)
    if elements > 2 * _SMALL * config.tile[1] * config.channels:
        return None
    found = config._replace(
        rolled=False, shift=False, tile=(units[0], config.tile[1]), held=_FEW_TAPS, threads=256, blocks=2
    )
    found = found._replace(ahead=max(1, len({hit.at for hit in found.hits(0)}) - 1))
    return found if found.registers <= _MANY_REGISTERS else None


def _shaped(g: Geometry, element: str, output: str, channels: int, columns: int, held: int) -> DepthwiseConfig:
    """Return the kernel for the channels and columns of a thread, with matching rows, depth and threads."""
    w, units = g.window, g.window.strides if g.kind == DGRAD else (1, 1)
    columns = -(-columns // units[1]) * units[1]
    at_once = prod(g.output) // (columns * channels)  # threads, if each had one row
    least = min(8, max(2, w.dilations[0] * (w.taps[0] - 1) // 2))  # fewer rows would mostly load the halo
    heights = [rows for rows in _ROWS if rows >= least]
    most = next((rows for rows in heights if at_once // rows >= _THREADS), heights[-1])
    tile = -(-most // units[0]) * units[0], columns
    config = DepthwiseConfig(
        element, output, w._replace(left=()), gradient=g.kind == DGRAD, tile=tile, rolled=True, channels=channels,
        held=held, multiplier=g.filter[0] // g.groups,
    )  # fmt: skip
    if g.taps > _FEW_TAPS:
        config = config._replace(shift=True)
    unrolled = _unrolled(config, at_once)
    if unrolled is not None:
        return unrolled
    if config.iteration[0] * g.taps * columns * channels > _MULTIPLICATIONS:  # the loop body would be too long
        rows = max(1, min(most, _MULTIPLICATIONS // (g.taps * columns * channels)))
        config = config._replace(rolled=False, shift=False, tile=(-(-rows // units[0]) * units[0], columns))
    deeper = [config._replace(ahead=n) for n in _AHEAD if config.rolled]
    config = next((c for c in deeper if c.registers <= _FEW_REGISTERS), config)
    if config.registers > _REGISTERS:
        config = config._replace(ahead=1)
    if config.registers > _MOST_REGISTERS:
        return config._replace(threads=256, blocks=1)
    return config if config.registers <= _FEW_REGISTERS else config._replace(threads=192)


def _unrolled(config: DepthwiseConfig, rows: int) -> DepthwiseConfig | None:
    """Return the kernel of a small problem, without a loop; None for others.

    Args:
        rows: number of threads, if each had one row.
    """
    units = config.window.strides if config.gradient else (1, 1)
    # Filters in shared memory leave registers for the loads; a tile of one row reads each filter once per column.
    helds = dict.fromkeys((config.held, min(config.held, _FEW_TAPS)))
    shapes = product(helds, dict.fromkeys((config.tile[1], -(-_COLUMNS // units[1]) * units[1])))
    for held, columns in shapes:
        threads = rows * config.tile[1] // columns
        height = next((n for n in _UNROLLED if threads <= _SMALL * n), 0)
        if not height:
            continue
        found = config._replace(rolled=False, shift=False, tile=(-(-height // units[0]) * units[0], columns), held=held)
        found = found._replace(ahead=max(1, len({hit.at for hit in found.hits(0)}) - 1))
        if height * prod(found.window.taps) * columns * found.channels > _SHORT:
            continue
        if found.registers <= _MOST_UNROLLED:
            return found if found.registers <= _FEW_REGISTERS else found._replace(threads=192)
    return None


def depthwise(
    call: Call, ready: Prepared, rows: ArrayView, config: DepthwiseConfig, operands: Sequence[Any] = ()
) -> None:
    """Compute a depthwise convolution.

    ``rows`` is the output as a matrix, ``operands`` are the arguments of the epilogue.
    """
    g, library = ready.geometry, call.where.library
    image = ready.image if aligned_vector(ready.image) >= config.given else dense(library, ready.image)
    steps = strides_of(g.output)
    step = rows.strides[0]
    result = rows._replace(shape=g.output[::-1], strides=(1, *[n // g.output[-1] * step for n in steps[-2::-1]]))
    given = padded_view(image)
    given = given._replace(shape=image.shape[::-1], strides=(1, *given.strides[-2::-1]))
    axes = (0, 2, 1)  # channels, then the taps of a row
    filters = ready.other._replace(
        shape=tuple([ready.other.shape[i] for i in axes]), strides=tuple([ready.other.strides[i] for i in axes])
    )
    kernel = kernel_of(config, call.where.cpu)
    call.told(launched(kernel, given, filters, result, *operands, **call.options))


# ------------------------------------------------------------------------------------------------- gradients of filters


_WEIGHT_TYPES = ("f16", "bf16", "f32")
_LANES = 32
_WEIGHT_REGISTERS = 200
"""Registers per thread above which more threads share the rows of taps."""
_FEW = 128
"""Threads per multiprocessor, with a row of the result each, below which threads share the rows of taps."""
_LATENCY = 2
"""Latency before the first line of a band arrives, in lines."""
_SHORT_ITERATION = 280
"""Maximum number of multiplications of an iteration that covers more rows than are prefetched."""
_ACCUMULATORS = 160
"""Maximum number of accumulators per thread; wider filters use other kernels."""


class DepthwiseWeights(NamedTuple):
    """A kernel and its launch."""

    config: DepthwiseWeightsConfig
    blocks: int  # along the pixels
    rows: int  # rows of the result per tile


def depthwise_weights_of(g: Geometry, element: str, sms: int = 132) -> DepthwiseWeights | None:
    """Return the kernel of the gradient of depthwise filters of two dimensions; None for other convolutions.

    >>> from cute_dialect.op.problems.conv import geometry
    >>> g = geometry("conv2d_weight", "wgrad", (8, 56, 56, 96), (96, 3, 3, 1), 1, 1, 1, 96)
    >>> depthwise_weights_of(g, "f16").config.name
    'depthwise-wgrad-f16-3x3-p1x1-c2q4r3a2wso-l24t256x2'
    """
    element = "f32" if element == "tf32" else element
    w = g.window
    multiplier = g.filter[0] // g.groups
    one = g.filter[-1] == 1 and g.groups == g.image[-1] and len(w.taps) == 2 and multiplier in (1, 2, 4)
    if not one or g.kind != WGRAD or element not in _WEIGHT_TYPES or 0 in g.result or 0 in g.image:
        return None
    channels = max(multiplier, 2 if g.groups % 2 == 0 else 1)
    columns = _columns(g.result[2])
    config = DepthwiseWeightsConfig(element, w._replace(left=()), channels, columns, w.taps[0], ahead=2, shift=True)
    config = config._replace(multiplier=multiplier, whole=g.result[2] % columns == 0)
    vectors = g.filter[0] // channels
    chunks = -(-vectors // _LANES)
    config = config._replace(lanes=-(-vectors // chunks))
    if config.registers > _WEIGHT_REGISTERS:
        config = config._replace(ahead=1)
    # Threads of a small problem, with one row each, have few taps: the code is shorter, and more threads share it.
    threads = g.result[0] * -(-g.result[2] // columns) * g.result[1] * vectors
    slices = max(1, min(w.taps[0], _FEW * sms // threads))
    config = config._replace(taps=-(-w.taps[0] // slices))
    while config.registers > _WEIGHT_REGISTERS and config.taps > 1:
        slices += 1
        config = config._replace(taps=-(-w.taps[0] // slices))
    if config.channels * config.taps * w.taps[1] > _ACCUMULATORS or config.lanes * config.slices > config.threads:
        return None
    rotated = config._replace(rotate=True)
    if rotated.rows * config.taps * w.taps[1] * columns * channels <= _SHORT_ITERATION:
        config = rotated
    config = config._replace(blocks=3 if config.registers <= 64 else 2 if config.registers <= 100 else 1)
    return depthwise_launch(g, config, sms)


def depthwise_launch(g: Geometry, config: DepthwiseWeightsConfig, sms: int = 132) -> DepthwiseWeights:
    """Return the launch of a kernel: as many blocks as fit the GPU, and tiles that give each thread work."""
    vectors = -(-g.filter[0] // config.channels)
    chunks = -(-vectors // config.lanes)
    lanes = -(-vectors // chunks)
    groups = config.threads // (lanes * config.slices)
    blocks = max(1, sms * config.blocks // chunks)
    n, p, q, _ = g.result
    strips, slots = n * -(-q // config.columns), blocks * groups

    def cost(rows: int) -> tuple[int, int]:
        """Return a sort key: the image rows that the busiest thread reads, then taller bands first.

        Each band reads the rows of the window's span again.
        """
        rounds = -(-strips * -(-p // rows) // slots)
        return rounds * (rows * config.unit + config.span + _LATENCY), -rows

    rows = min({-(-p // bands) for bands in range(1, p + 1)}, key=cost)
    return DepthwiseWeights(config, min(blocks, -(-strips * -(-p // rows) // groups)), rows)


def _columns(q: int) -> int:
    """Return the width of strips: a divisor of the width of the result, if there is one near four."""
    return next((n for n in (4, 5, 3) if q % n == 0), 4 if q > 2 else q)
