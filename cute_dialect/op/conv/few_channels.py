"""Convolutions with few channels per group or few results, which an im2col GEMM would pad: kernels and their choice.

>>> from cute_dialect.op.problems.conv import geometry
>>> g = geometry("conv2d", "fprop", (32, 56, 56, 256), (256, 3, 3, 8), 1, 1, 1, 32)
>>> few_channels(ConvRequest(g, "f16", "f16")).name
'direct-fprop-f16-f16-3x3-p1x1-c8k8-8p1s1v8_8_8x8x28-w8x1m2hx2'

Gradients of filters are partial sums: a kernel writes a row per block, and a second kernel adds the rows.  If one block
per group computes a small gradient, that block stores it, and there is no second kernel.
"""

from __future__ import annotations

from functools import lru_cache
from math import gcd, prod
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from cute_dialect.kernels.conv.config import DGRAD, WGRAD
from cute_dialect.kernels.conv.depthwise import DepthwiseConfig
from cute_dialect.kernels.conv.depthwise_weights import DepthwiseWeightsConfig
from cute_dialect.kernels.conv.direct import DirectConfig
from cute_dialect.kernels.conv.direct_weights import DirectWeightsConfig
from cute_dialect.kernels.conv.few_results import FewResultsConfig
from cute_dialect.kernels.epilogue.reductions import CombineConfig
from cute_dialect.op.arrays.operand_views import aligned_vector, dense, merged, padded_view
from cute_dialect.op.conv import direct
from cute_dialect.op.conv.channel_padding import narrow
from cute_dialect.op.conv.choice import ConvRequest, served
from cute_dialect.op.conv.depthwise import depthwise_config, depthwise_weights_of
from cute_dialect.op.conv.direct import MEMORY, direct_config, direct_weights_of, pixels_of
from cute_dialect.op.conv.gemm_time import MOST_LAUNCHES, gemm_microseconds
from cute_dialect.op.execute.kernels import kernel_of
from cute_dialect.op.execute.launcher import launched
from cute_dialect.op.problems.conv import Geometry, of_pixels
from cute_dialect.runtime.arrays import ArrayView

if TYPE_CHECKING:  # pragma: no cover
    from cute_dialect.op.conv.compute import Call
    from cute_dialect.op.problems.conv import Prepared
    from cute_dialect.runtime.arrays import ArrayView


# ---------------------------------------------------------------------------------------------------------- few results


_TYPES = ("f16", "bf16")
_WIDTH, _RESULTS, _DEPTH = 8, 16, 64
"""Maximum number of results per group and per pixel, and minimum number of channels per group."""
_REGISTERS, _MOST_REGISTERS = 84, 128
"""Maximum numbers of registers for the vectors and accumulators of several pixels, and of one pixel."""
_LAUNCH, _STAGED, _READ, _ISSUE, _CYCLES = 6.0, 0.7, 4.2e6, 2.8, 1755
"""Microseconds per launch and per 8 filters of a thread that are staged, bytes per microsecond, instructions per cycle
and multiprocessor, cycles per microsecond.  Fitted to 14 problems on an H200.
"""
_NARROW = {8: 1.0, 4: 1.0, 2: 1.0, 1: 2.0}
"""Factor of the time to read vectors of a number of elements."""


def few_results_config(g: Geometry, element: str, output: str, sms: int = 132) -> FewResultsConfig | None:
    """Return the kernel of a convolution of one tap with few results per pixel; None for others.

    >>> from cute_dialect.op.problems.conv import geometry
    >>> g = geometry("conv2d_input", "dgrad", (8, 51, 51, 2), (958, 1, 1, 1), 1, 0, 1, 2)
    >>> few_results_config(g, "f16", "f16").name
    'few-results-dgrad-f16-f16-g2c479k1-v2p4x2'
    """
    if g.kind == WGRAD or not g.is_product or element not in _TYPES or output not in (*_TYPES, "f32"):
        return None
    if of_pixels(g).image[:2] != (1, 1):  # too many elements for one row of pixels
        return None
    c, k = g.filter[-1], g.filter[0] // g.groups
    depth, width = (k, c) if g.kind == DGRAD else (c, k)
    if width > _WIDTH or g.groups * width > _RESULTS or depth < _DEPTH or 0 in g.output:
        return None
    vector = gcd(8, g.groups * depth)
    base = FewResultsConfig(element, output, g.groups, depth, width, g.kind == DGRAD, vector, pixels=1)
    pixels = prod(g.output[:-1])
    if base.registers > _MOST_REGISTERS or base.blocks * base.bytes > MEMORY:
        return None
    for count in (8, 4, 2):
        fits = count * base.registers <= _REGISTERS and count * base.results <= 2 * _RESULTS
        if fits and pixels >= count * 8 * sms:
            return base._replace(pixels=count)
    return base


def few_results_microseconds(g: Geometry, c: FewResultsConfig, sms: int = 132) -> float:
    """Return the predicted time of a kernel."""
    pixels = prod(g.output[:-1])
    mixed = sum(len(c.groups_of(i)) if len(c.groups_of(i)) > 1 else 0 for i in range(c.steps))
    elements = c.steps * c.vector
    of_turn = elements * c.width + c.pixels * (
        elements * (1 + c.width) + mixed * c.vector * (1 + 2 * c.width) + 2 * c.steps + 14 * c.results
    )
    issue = -(-pixels // c.pixels) * of_turn / (sms * _ISSUE * _CYCLES)
    staged = -(-c.bytes // (4 * 256 * 8)) * _STAGED
    moved = 2 * pixels * (c.channels * _NARROW[c.vector] + c.results) / _READ
    return _LAUNCH + staged + max(issue, moved)


def few_results(call: Call, ready: Prepared, rows: ArrayView, config: FewResultsConfig, sms: int = 132) -> None:
    """Compute a convolution to a matrix of rows."""
    library = call.where.library
    ready = pixels_of(library, ready)
    image, other = ready.image, ready.other
    image = image if aligned_vector(image) else dense(library, image)
    inner = prod(other.shape[1:])
    if merged(other, 1, len(other.shape)) != 1 or (other.strides[0] != inner and other.shape[0] > 1):
        other = dense(library, other)
    config = config._replace(vector=min(config.vector, aligned_vector(image)))
    pixels, channels = image.shape[-2:]
    taken = image._replace(shape=(channels, pixels), strides=(1, image.strides[-2]))
    flat = other._replace(shape=(prod(other.shape),), strides=(1,))
    result = rows._replace(shape=rows.shape[::-1], strides=(1, rows.strides[0]))
    kernel = kernel_of(config, call.where.cpu)
    call.told(launched(kernel, taken, flat, result, sms * config.blocks, **call.options))


# --------------------------------------------------------------------------------- gradients of filters as partial sums


_FEW_ROWS, _MANY_ROWS, _FEW_SUMS = 64, 512, 1 << 18
"""Rows of partial sums that a block of 32 results reads at once, rows that a block of 8 results reads in two steps, and
partial sums that may be read a sector at a time.
"""


class PartialWeights(NamedTuple):
    """A kernel, the rows of partial sums that it writes, and further numbers that its launch takes."""

    config: DepthwiseWeightsConfig | DirectWeightsConfig
    rows: int
    numbers: tuple[int, ...] = ()

    @property
    def name(self) -> str:
        """Name of the kernel."""
        return self.config.name

    def kernel(self, output: str) -> DepthwiseWeightsConfig | DirectWeightsConfig:
        """Return the kernel of a gradient of a type; a single row is the gradient itself."""
        return self.config._replace(output=output) if self.rows == 1 else self.config


def partial_weights_of(g: Geometry, element: str, sms: int = 132) -> PartialWeights | None:
    """Return the kernel of a gradient of filters that are depthwise or of few channels; None for others."""
    alone = depthwise_weights_of(g, element, sms)
    if alone is not None:
        return PartialWeights(alone.config, alone.blocks, (alone.rows,))
    few = direct_weights_of(of_pixels(g), element, sms)
    return None if few is None else PartialWeights(few.config, few.rows)


def results_per_block(rows: int, results: int) -> int:
    """Return the number of results per block of the kernel that adds partial sums.

    A block of few results reads more rows at once.  One result per block reads a sector of 32 bytes for 4 of them.

    >>> results_per_block(40, 2304), results_per_block(1056, 2240), results_per_block(3168, 64)
    (32, 8, 1)
    """
    if rows <= _FEW_ROWS:
        return 32
    return 1 if rows > _MANY_ROWS and rows * results <= _FEW_SUMS else 8


def partial_weights(call: Call, ready: Prepared, rows: ArrayView, found: PartialWeights) -> None:
    """Compute the gradient of filters to a matrix with a row per filter."""
    if isinstance(found.config, DirectWeightsConfig):
        ready = pixels_of(call.where.library, ready)
    g, library = ready.geometry, call.where.library
    image, grads, config = padded_view(ready.image), padded_view(ready.other), found.config
    of_image, of_grads = aligned_vector(ready.image), aligned_vector(ready.other)
    if isinstance(config, DirectWeightsConfig):
        vectors = min(config.vectors[0], of_image or 8), min(config.vectors[1], of_grads or 8)
        config = config._replace(vectors=vectors)
        least_of_image, least_of_grads = vectors
    else:
        least_of_image, least_of_grads = config.given, config.channels
    if of_image < least_of_image:
        image = dense(library, ready.image)
    if of_grads < least_of_grads:
        grads = dense(library, ready.other)
    total = prod(g.filter)
    contiguous = rows.strides[0] == rows.shape[1] or rows.shape[0] == 1
    result = rows if contiguous else library.strided((total,), (1,), rows.dtype, rows)
    taken = [x._replace(shape=x.shape[::-1], strides=(1, *x.strides[-2::-1])) for x in (image, grads)]
    kernel = found._replace(config=config).kernel(rows.dtype)
    if found.rows == 1:
        parts = result._replace(shape=(1, total), strides=(total, 1))
    else:
        parts = library.strided((found.rows, total), (total, 1), "f32", rows)
    call.told(launched(kernel_of(kernel, call.where.cpu), *taken, parts, *found.numbers, **call.options))
    if found.rows > 1:
        sums = parts._replace(shape=(found.rows, total, 1), strides=(total, 1, total))
        flat = result._replace(shape=(total, 1), strides=(1, total))
        config = CombineConfig("sum", rows.dtype, results_per_block(found.rows, total), dependent=True)
        combine = kernel_of(config, call.where.cpu)
        call.told(launched(combine, sums, flat, **call.options))
    if not contiguous:
        library.native(rows)[...] = library.native(result).reshape(rows.shape)


# --------------------------------------------------------------------------------------------------------------- choice


FewChannels: TypeAlias = DepthwiseConfig | DirectConfig | FewResultsConfig | PartialWeights

_WIDE = 32
"""Channels per group above which an im2col GEMM may be faster, if it supports the problem."""
_FASTER, _FOLDED, _FEW = 0.95, 0.7, 1.8
"""Ratios of predicted times below which image tiles are preferred to a GEMM.

_FOLDED holds for a GEMM of folded filter columns, _FEW for groups of at most 8 channels or filters, whose GEMMs take
longer than predicted.
"""


@lru_cache(maxsize=4096)
def few_channels(asked: ConvRequest, sms: int = 132) -> FewChannels | None:
    """Return the kernel of a convolution with few channels per group.

    Return None if an im2col GEMM is the better choice, or if the call selects split-K.
    """
    g = asked.geometry
    if asked.parts:
        return None
    found: FewChannels | None = (
        partial_weights_of(g, asked.element, sms)
        if g.kind == WGRAD
        else depthwise_config(g, asked.element, asked.output)
        or direct_config(of_pixels(g), asked.element, asked.output, sms)
    )
    alone = isinstance(found, PartialWeights) and isinstance(found.config, DepthwiseWeightsConfig)
    if alone or isinstance(found, DepthwiseConfig):
        return found
    found = _few_results(asked, found, sms) or found
    if found is None or isinstance(found, FewResultsConfig):
        return found
    if g.groups == 1:
        return found if _is_faster(asked, found, sms) else None
    c, k = g.filter[-1], g.filter[0] // g.groups
    if max(c, k) <= _WIDE or g.is_product or not (served(asked) or g.groups <= MOST_LAUNCHES):
        return found
    margin = _FASTER if min(c, k) > 8 else _FEW
    return found if microseconds_of(asked, found, sms) < margin * gemm_microseconds(asked, sms=sms) else None


def _few_results(asked: ConvRequest, tiles: DirectConfig | PartialWeights | None, sms: int) -> FewResultsConfig | None:
    """Return the kernel of few results per pixel if it is predicted to be faster than image tiles and a GEMM."""
    found = few_results_config(asked.geometry, asked.element, asked.output, sms)
    if found is None:
        return None
    others = gemm_microseconds(asked, sms=sms)
    if tiles is not None:
        of_tiles = microseconds_of(asked, tiles, sms)
        others = min(others, of_tiles) if asked.geometry.groups == 1 else of_tiles
    return found if few_results_microseconds(asked.geometry, found, sms) < others else None


def _is_faster(asked: ConvRequest, found: DirectConfig | PartialWeights, sms: int) -> bool:
    """Return True if image tiles are faster than a GEMM for a convolution without groups."""
    g = asked.geometry
    folded = g.kind != DGRAD and not g.is_product and narrow(asked, sms=sms) is not None
    column = g.kind != DGRAD and g.window.taps[-1] == 1 and g.taps > 1 and g.filter[-1] in (8, 16, 32, 64)
    margin = _FOLDED if folded or column else _FASTER  # narrow() may have folded the window into a column
    return microseconds_of(asked, found, sms) < margin * gemm_microseconds(asked, sms=sms)


def microseconds_of(
    asked: ConvRequest, found: DirectConfig | FewResultsConfig | PartialWeights, sms: int = 132
) -> float:
    """Return the predicted time of image tiles, or of dot products."""
    g = of_pixels(asked.geometry)
    if isinstance(found, FewResultsConfig):
        return few_results_microseconds(asked.geometry, found, sms)
    if isinstance(found, DirectConfig):
        return direct.microseconds(g, found, sms)
    assert isinstance(found.config, DirectWeightsConfig)
    return direct.weights_microseconds(g, direct.DirectWeights(found.config, found.rows), sms)
