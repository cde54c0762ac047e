"""Convolutions of one tap with few results per pixel, as dot products of channels."""

from __future__ import annotations

from math import gcd, prod
from typing import TYPE_CHECKING

from cute_dialect.kernels.conv.config import DGRAD, WGRAD
from cute_dialect.kernels.conv.few_results import FewResultsConfig
from cute_dialect.op.arrays.image_layouts import aligned_vector, dense, merged
from cute_dialect.op.conv.direct import MEMORY, pixels_of
from cute_dialect.op.execute.kernels import kernel_of
from cute_dialect.op.execute.recording import launched
from cute_dialect.op.problems.conv import Geometry, of_pixels

if TYPE_CHECKING:  # pragma: no cover
    from cute_dialect.op.conv.compute import Call
    from cute_dialect.op.problems.conv import Prepared
    from cute_dialect.runtime.arrays import ArrayView

__all__ = ["few_results", "few_results_config", "microseconds"]

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


def microseconds(g: Geometry, c: FewResultsConfig, sms: int = 132) -> float:
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
