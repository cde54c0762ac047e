"""Convolutions of few channels: filter columns are folded into channels, which leaves one column.

An im2col load reads the channels of one tap: with three channels, 6 of up to 128 bytes.  If the taps of a filter row
are written side by side, a 7x7 filter of 3 channels becomes a 7x1 filter of 32 channels (21, padded with zeros).  The
written image is a third as large as the columns of all taps.

>>> from cute_dialect.op.problems.conv import geometry
>>> g = geometry("conv2d", "fprop", (32, 224, 224, 3), (64, 7, 7, 3), 2, 3, 1, 1)
>>> left = narrow(ConvRequest(g, "f16", "f16"))
>>> left.image, left.filter
((32, 224, 112, 32), (64, 7, 1, 32))
"""

# Arrays may belong to any library.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

from functools import lru_cache
from math import prod
from typing import TYPE_CHECKING

from cute_dialect.kernels.common.elements import FACTORS
from cute_dialect.kernels.conv.config import DGRAD, FPROP, WGRAD, Window
from cute_dialect.kernels.epilogue.combination import Epilogue
from cute_dialect.kernels.gemm.config import BITS
from cute_dialect.op.arrays.image_layouts import strides_of
from cute_dialect.op.conv.choice import ConvRequest, chosen
from cute_dialect.op.conv.im2col_gemm import Writing, writing
from cute_dialect.op.execute.kernels import kernel_of
from cute_dialect.op.execute.recording import launched
from cute_dialect.op.problems.conv import Geometry
from cute_dialect.runtime.arrays import ArrayView

if TYPE_CHECKING:  # pragma: no cover
    from cute_dialect.op.conv.compute import Call
    from cute_dialect.op.problems.conv import Prepared

__all__ = ["narrow", "narrowed", "of_taps", "written"]

_LOAD, _BYTE = 10.0, 0.29
"""Picoseconds of a load of up to 128 bytes of a pixel, and of a copied byte.

Measured on an H200, with all multiprocessors together.
"""


@lru_cache(maxsize=4096)
def narrow(asked: ConvRequest, gpu: str = "", sms: int = 132) -> Geometry | None:
    """Return the equivalent convolution with the filter columns folded into channels.

    Return None if that is not faster, or if im2col loads do not support the folded convolution.
    """
    g = asked.geometry
    left = _narrower(g, BITS[asked.element]) if asked.element in FACTORS else None
    plain = asked._replace(geometry=left or g, epilogue=Epilogue())
    return None if left is None or chosen(plain, gpu, sms) is None else left


def _narrower(g: Geometry, bits: int) -> Geometry | None:
    """Return the folded convolution, or None if it is not faster."""
    w, channels = g.window, g.filter[-1]
    if g.groups > 1 or g.kind == DGRAD or w.taps[-1] == 1:
        return None
    across = w.taps[-1] * channels
    least = 128 // bits
    width = next((least * n for n in (1, 2, 4, 8) if least * n >= across), 0)
    if not width or (g.kind == WGRAD and (bits != 16 or width < 32 or channels >= 32)):
        return None
    pixels, rows = prod(g.result[:-1]), prod(g.image[:-2]) * g.result[-2]
    above = prod(w.taps[:-1])
    if g.kind == FPROP:
        padded = -(-channels // least) * least
        copied = 0 if padded == channels else prod(g.image[:-1]) * (channels + padded)
        direct = pixels * g.taps * _LOAD + copied * bits // 8 * _BYTE
        if direct <= pixels * above * _LOAD + 2 * rows * width * bits // 8 * _BYTE:
            return None
    window = Window(
        (*w.taps[:-1], 1), (*w.before[:-1], 0), (*w.after[:-1], 0), (*w.strides[:-1], 1), (*w.dilations[:-1], 1), (),
        w.flip,
    )  # fmt: skip
    image = (*g.image[:-2], g.result[-2], width)
    return Geometry(g.kind, image, (g.filter[0], *w.taps[:-1], 1, width), g.result, window, 1)


def of_taps(x: ArrayView, g: Geometry) -> ArrayView:
    """Return filters whose channels are the taps of a row, padded with zeros, as filters of ``g``."""
    *steps, _, one = x.strides
    return x._replace(shape=g.filter, strides=(*steps, g.filter[-1] * one, one))


def written(g: Geometry, left: Geometry, x: ArrayView, made: ArrayView, filters: bool = False) -> Writing:
    """Return the launch that writes the taps of a row side by side, for an image or for filters."""
    w, rank = g.window, len(g.window.taps) - 1
    ones, zeros, width = (1,) * rank, (0,) * rank, left.image[-1]
    row = Window((*ones, w.taps[-1]), (*zeros, 0), (*zeros, 0))
    if not filters:
        along = zip((zeros, zeros, ones, ones), (w.before, w.after, w.strides, w.dilations))
        before, after, strides, dilations = ((*others, of_all[-1]) for others, of_all in along)
        row = Window(row.taps, before, after, strides, dilations, (), w.flip)
    pixels = *x.shape[:-2], 1 if filters else left.image[-2]
    of_row = Geometry(FPROP, x.shape, (1, *row.taps, x.shape[-1]), (*pixels, 1), row, 1)
    return writing(of_row, x, made._replace(shape=(prod(pixels), width), strides=(width, 1)))


def narrowed(call: Call, ready: Prepared, left: Geometry) -> Prepared:
    """Write the taps of a filter row side by side, in image and filters. Return the folded convolution."""
    g, found = ready.geometry, dict[str, ArrayView]()
    for name, x, shape in (("image", ready.image, left.image), ("other", ready.other, left.filter)):
        if name == "image" or g.kind != WGRAD:
            found[name] = made = call.where.library.strided(shape, strides_of(shape), x.dtype, x)
            how = written(g, left, x, made, name == "other")
            kernel = kernel_of(how.config, call.where.cpu)
            call.told(launched(kernel, how.image, how.columns, *how.numbers, **call.options))
    return ready._replace(geometry=left, **found)
