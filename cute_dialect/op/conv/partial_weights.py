"""Gradients of filters as partial sums: a kernel writes a row per block, and a second kernel adds the rows.

If one block per group computes a small gradient, that block stores it, and there is no second kernel.
"""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, NamedTuple

from cute_dialect.kernels.conv.depthwise_weights import DepthwiseWeightsConfig
from cute_dialect.kernels.conv.direct_weights import DirectWeightsConfig
from cute_dialect.kernels.epilogue.finish_reduction import CombineConfig
from cute_dialect.op.arrays.image_layouts import aligned_vector, dense, padded_view
from cute_dialect.op.conv.depthwise_weights import depthwise_weights_of
from cute_dialect.op.conv.direct import pixels_of
from cute_dialect.op.conv.direct_weights import direct_weights_of
from cute_dialect.op.execute.kernels import kernel_of
from cute_dialect.op.execute.recording import launched
from cute_dialect.op.problems.conv import Geometry, of_pixels
from cute_dialect.runtime.arrays import ArrayView

if TYPE_CHECKING:  # pragma: no cover
    from cute_dialect.op.conv.compute import Call
    from cute_dialect.op.problems.conv import Prepared

__all__ = ["PartialWeights", "partial_weights", "partial_weights_of", "results_per_block"]


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
