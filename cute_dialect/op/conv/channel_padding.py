"""Convolutions of few channels: filter columns are folded into channels, which leaves one column.

The gradient of an image has few channels if there are few filters.  The folded array is then the output's gradient.

An im2col load reads the channels of one tap: with three channels, 6 of up to 128 bytes.  If the taps of a filter row
are written side by side, a 7x7 filter of 3 channels becomes a 7x1 filter of 32 channels (21, padded with zeros).  The
written image is a third as large as the columns of all taps.

>>> from cute_dialect.op.problems.conv import geometry
>>> g = geometry("conv2d", "fprop", (32, 224, 224, 3), (64, 7, 7, 3), 2, 3, 1, 1)
>>> left = narrow(ConvRequest(g, "f16", "f16"))
>>> left.image, left.filter
((32, 224, 112, 32), (64, 7, 1, 32))

Groups are padded so that im2col loads read all groups in one launch.  A group of 106 channels does not begin at a
multiple of 16 bytes.  Its copy has 112 channels, zeros past the last one.

>>> g = geometry("conv2d_weight", "wgrad", (11, 22, 22, 848), (320, 7, 7, 106), 2, 9, 3, 8)
>>> padded_groups(g, 112, 40).filter
(320, 7, 7, 112)
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
from cute_dialect.op.arrays.library import Library
from cute_dialect.op.arrays.operand_views import as_rows, dense, strides_of
from cute_dialect.op.conv.choice import ConvRequest, chosen, chosen_with_time
from cute_dialect.op.conv.im2col_gemm import Writing, writing
from cute_dialect.op.execute.kernels import kernel_of
from cute_dialect.op.execute.launcher import launched
from cute_dialect.op.execute.tma_copies import pads, with_padding, without_padding
from cute_dialect.op.problems.conv import Geometry
from cute_dialect.runtime.arrays import ArrayView

if TYPE_CHECKING:  # pragma: no cover
    from cute_dialect.op.conv.compute import Call
    from cute_dialect.op.problems.conv import Prepared

_LAUNCH = 3.0
"""Microseconds per launch."""
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
    if left is not None and g.kind == DGRAD:
        return left if _is_faster_folded(plain._replace(geometry=g), left, gpu, sms) else None
    return None if left is None or chosen(plain, gpu, sms) is None else left


def _is_faster_folded(asked: ConvRequest, left: Geometry, gpu: str, sms: int) -> bool:
    """Return True if the gradient of an image is faster with the filter columns folded into channels."""
    plain, folded = (chosen_with_time(asked._replace(geometry=g), gpu, sms) for g in (asked.geometry, left))
    if plain is None or folded is None:
        return False
    moved = (prod(asked.geometry.result) + prod(left.result)) * BITS[asked.element] / 8
    return folded[0] + 3 * _LAUNCH + moved * _BYTE * 1e-6 < plain[0]


def _narrower(g: Geometry, bits: int) -> Geometry | None:
    """Return the folded convolution, or None if it is not faster."""
    w, channels = g.window, g.filter[-1]
    if g.groups > 1 or w.taps[-1] == 1:
        return None
    window = Window(
        (*w.taps[:-1], 1),
        (*w.before[:-1], 0),
        (*w.after[:-1], 0),
        (*w.strides[:-1], 1),
        (*w.dilations[:-1], 1),
        (),
        w.flip,
    )
    least = 128 // bits
    if g.kind == DGRAD:
        across = -(-w.taps[-1] * g.filter[0] // least) * least
        if bits != 16 or across >= w.taps[-1] * 64:
            return None
        window = window._replace(left=(*w.left[:-1], 0) if w.left else ())
        result = (*g.result[:-2], g.image[-2], across)
        return Geometry(g.kind, g.image, (across, *w.taps[:-1], 1, channels), result, window, 1)
    across = w.taps[-1] * channels
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
    image = (*g.image[:-2], g.result[-2], width)
    return Geometry(g.kind, image, (g.filter[0], *w.taps[:-1], 1, width), g.result, window, 1)


def of_taps(x: ArrayView, g: Geometry) -> ArrayView:
    """Return filters whose channels are the taps of a row, padded with zeros, as filters of ``g``."""
    *steps, _, one = x.strides
    return x._replace(shape=g.filter, strides=(*steps, g.filter[-1] * one, one))


def written(g: Geometry, left: Geometry, x: ArrayView, made: ArrayView, filters: bool = False) -> Writing:
    """Return the launch that writes the taps of a row side by side, for an image or for filters."""
    w, rank = g.window, len(g.window.taps) - 1
    ones, zeros, width = (1,) * rank, (0,) * rank, made.shape[-1]
    row = Window((*ones, w.taps[-1]), (*zeros, 0), (*zeros, 0))
    if not filters:
        along = zip((zeros, zeros, ones, ones), (w.before, w.after, w.strides, w.dilations))
        before, after, strides, dilations = ((*others, of_all[-1]) for others, of_all in along)
        row = Window(row.taps, before, after, strides, dilations, (), w.flip)
    pixels = *x.shape[:-2], 1 if filters else made.shape[-2]
    of_row = Geometry(FPROP, x.shape, (1, *row.taps, x.shape[-1]), (*pixels, 1), row, 1)
    if g.kind == DGRAD:
        of_row = of_row._replace(kind=DGRAD, image=(*pixels, x.shape[-1]), result=x.shape)
    return writing(of_row, x, made._replace(shape=(prod(pixels), width), strides=(width, 1)))


def narrowed(call: Call, ready: Prepared, left: Geometry) -> Prepared:
    """Write the taps of a filter row side by side, in image and filters. Return the folded convolution."""
    g, found = ready.geometry, dict[str, ArrayView]()
    read = left.result if g.kind == DGRAD else left.image
    for name, x, shape in (("image", ready.image, read), ("other", ready.other, left.filter)):
        if name == "other" and g.kind == DGRAD:
            found[name] = _folded_filter(call, x, g, left)
        elif name == "image" or g.kind != WGRAD:
            found[name] = made = call.where.library.strided(shape, strides_of(shape), x.dtype, x)
            how = written(g, left, x, made, name == "other")
            kernel = kernel_of(how.config, call.where.cpu)
            call.told(launched(kernel, how.image, how.columns, *how.numbers, **call.options))
    return ready._replace(geometry=left, **found)


def _folded_filter(call: Call, x: ArrayView, g: Geometry, left: Geometry) -> ArrayView:
    """Return a copy of the filter whose first mode is the taps of a row, and the filters, with aligned lines."""
    library, (filters, *above, across, channels) = call.where.library, g.filter
    made = library.strided(left.filter, strides_of(left.filter, 8), x.dtype, x)
    if left.filter[0] != across * filters:
        library.clear(made)
    step, *taps, one = made.strides
    target = made._replace(shape=(across, filters, *above, channels), strides=(filters * step, step, *taps[:-1], one))
    first, *steps, last = x.strides
    source = x._replace(shape=target.shape, strides=(steps[-1], first, *steps[:-1], last))
    library.native(target)[...] = library.native(source)
    return made


def with_transposed_filter(call: Call, ready: Prepared, turned: Geometry) -> Prepared:
    """Return the fprop ``turned`` that computes the gradient of an image, with a transposed copy of the filter."""
    library, x = call.where.library, ready.other
    made = library.strided(turned.filter, strides_of(turned.filter), x.dtype, x)
    first, *taps, one = x.strides
    source = x._replace(shape=turned.filter, strides=(one, *taps, first))
    library.native(made)[...] = library.native(source)
    return ready._replace(geometry=turned, other=made)


def padded_groups(g: Geometry, channels: int, filters: int) -> Geometry:
    """Return a convolution whose groups have the given numbers of channels and filters."""
    k = g.groups * filters
    return g._replace(
        image=(*g.image[:-1], g.groups * channels), filter=(k, *g.filter[1:-1], channels), result=(*g.result[:-1], k)
    )


def with_padded_groups(call: Call, ready: Prepared, padded: Geometry) -> Prepared:
    """Return a convolution on copies of its operands with the channels and filters of ``padded``, zeros past the last.

    One launch copies both operands if their groups get the same width.
    """
    g, library = ready.geometry, call.where.library
    found = {"image": ready.image, "other": ready.other}
    shapes = {"image": (g.result, padded.result) if g.kind == DGRAD else (g.image, padded.image)}
    shapes["other"] = (g.result, padded.result) if g.kind == WGRAD else (g.filter, padded.filter)
    if g.kind != WGRAD and padded.filter[0] != g.filter[0]:
        found["other"] = _padded_filter(call, ready.other, g, padded)
        del shapes["other"]
    launches = dict[int, dict[str, tuple[ArrayView, int]]]()
    for name, (before, after) in shapes.items():
        if before != after:
            groups = 1 if before is g.filter else g.groups
            width = after[-1] // groups
            launches.setdefault(width, {})[name] = _lines(library, found[name], groups), 1
    for width, lines in launches.items():
        made = with_padding(library, lines, call.told, call.options, call.where.cpu, width)
        for name, x in made.items():
            after = shapes[name][1]
            found[name] = x._replace(shape=after, strides=strides_of(after))
    return ready._replace(geometry=padded, **found)


def _lines(library: Library, x: ArrayView, groups: int) -> ArrayView:
    """Return the channels of each group and pixel as a row of a matrix."""
    rows, channels = as_rows(x), x.shape[-1]
    if rows is None or not pads(rows, 1) or rows.strides[0] != channels:
        rows = as_rows(dense(library, x))
    assert rows is not None
    per = channels // groups
    return rows._replace(shape=(rows.shape[0] * groups, per), strides=(per, 1))


def _padded_filter(call: Call, other: ArrayView, g: Geometry, padded: Geometry) -> ArrayView:
    """Return a copy of the filter with zeros in the padding."""
    library = call.where.library
    made = library.strided(padded.filter, strides_of(padded.filter), other.dtype, other)
    library.clear(made)
    library.native(_filter_of_groups(made, g))[...] = library.native(_filter_of_groups(other, g))
    return made


def _filter_of_groups(x: ArrayView, g: Geometry) -> ArrayView:
    """Return the filter of ``g``, which may lie in a padded one, with a mode for the groups."""
    shape = (g.groups, g.filter[0] // g.groups, *g.filter[1:])
    return x._replace(shape=shape, strides=(x.shape[0] // g.groups * x.strides[0], *x.strides))


def copy_result(call: Call, wide: ArrayView, rows: ArrayView, g: Geometry, padded: Geometry) -> None:
    """Copy the result of a convolution with padded groups, a matrix, without the padding."""
    library = call.where.library
    if g.kind == WGRAD:
        source = wide._replace(shape=padded.filter, strides=strides_of(padded.filter))
        target = rows._replace(shape=g.filter, strides=(rows.strides[0], *strides_of(g.filter)[1:]))
        library.native(_filter_of_groups(target, g))[...] = library.native(_filter_of_groups(source, g))
        return
    per = g.output[-1] // g.groups
    source, target = (
        x._replace(shape=(x.shape[0], g.groups, per), strides=(x.strides[0], x.shape[1] // g.groups, 1))
        for x in (wide, rows)
    )
    if rows.strides[0] == rows.shape[1]:  # a row for each group
        source, target = (
            x._replace(shape=(x.shape[0] * g.groups, per), strides=(x.strides[1], 1)) for x in (source, target)
        )
        without_padding(library, source, target, call.told, call.options, call.where.cpu)
    else:
        library.native(target)[...] = library.native(source)
