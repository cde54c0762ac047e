"""Predicted time of a convolution that a GEMM computes, with the copies that its operands need.

>>> from cute_dialect.op.problems.conv import geometry
>>> aligned = geometry("conv2d", "fprop", (16, 56, 56, 64), (64, 3, 3, 64), 1, 1, 1, 1)
>>> odd = geometry("conv2d", "fprop", (16, 56, 56, 63), (64, 3, 3, 63), 1, 1, 1, 1)
>>> gemm_microseconds(ConvRequest(aligned, "f16", "f16")) < gemm_microseconds(ConvRequest(odd, "f16", "f16"))
True
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from math import prod

from cute_dialect.kernels.conv.config import DGRAD, FPROP, WGRAD, ConvConfig, Window
from cute_dialect.kernels.epilogue.combination import Epilogue
from cute_dialect.kernels.gemm.config import BITS
from cute_dialect.op.conv.channel_padding import narrow, padded_groups
from cute_dialect.op.conv.choice import ConvRequest, chosen_with_time, pads_channels, width_of
from cute_dialect.op.problems.conv import Geometry
from cute_dialect.op.select.cost_model import costs_of, predict
from cute_dialect.op.select.gemm_dispatch import MOST_BYTES, choose, predict_padded
from cute_dialect.op.select.kernel_choice import Problem
from cute_dialect.op.select.mma_sync_model import is_stored_directly, predict_direct, predict_unaligned

_COPY, _LAUNCH = 1.7e6, 3.0
"""Bytes per microsecond that a copy reads and writes, and microseconds per launch."""
MOST_LAUNCHES = 8
"""Maximum number of groups that are computed by a launch each."""
_FOLDED = 3.4e6
"""Bytes per microsecond of the kernel that folds filter columns."""
_LOAD = 10e-6
"""Microseconds per im2col load of a pixel, with all multiprocessors together."""
_NARROW_GROUPS, _WIDE_GROUPS = 1.3, 0.7
"""Factors of the predicted time of padded groups, for im2col loads of less than 64 bytes and for others."""
_PADDED = 2
"""Speed of the kernel that pads rows, compared with a copy by the array library.

All are fitted to times of random convolutions on an H200.
"""


def gemm_microseconds(asked: ConvRequest, gpu: str = "", sms: int = 132) -> float:
    """Return the predicted time without a kernel for few channels; arrays are contiguous."""
    found = gradient_as_fprop(asked, gpu, sms)
    return _microseconds(asked, gpu, sms) if found is None else found[0]


@lru_cache(maxsize=4096)
def gradient_as_fprop(asked: ConvRequest, gpu: str = "", sms: int = 132) -> tuple[float, Geometry] | None:
    """Return the fprop that computes the gradient of an image from a transposed copy of the filter, and its time.

    An im2col load of an fprop reads 16 to 128 bytes of channels, a load of a dgrad always 128.  With 32 filters of 16
    bits, half the products of a dgrad are therefore with zeros.  Return None if dgrad is predicted to be faster.

    >>> from cute_dialect.op.problems.conv import geometry
    >>> g = geometry("conv2d_input", "dgrad", (26, 30, 30, 104), (32, 4, 4, 104), 1, 1, 1, 1)
    >>> gradient_as_fprop(ConvRequest(g, "f16", "f16"))[1].filter
    (104, 4, 4, 32)
    """
    g, bits = asked.geometry, BITS[asked.element]
    w = g.window
    if g.kind != DGRAD or g.groups > 1 or g.taps == 1 or set(w.strides) != {1}:
        return None
    reach = [(t - 1) * d for t, d in zip(w.taps, w.dilations)]
    before, after = (tuple([r - p for r, p in zip(reach, pads)]) for pads in (w.before, w.after))
    if min(*before, *after) < 0:
        return None
    filters, *taps, channels = g.filter
    window = Window(w.taps, before, after, (), w.dilation, (), not w.flip)
    turned = Geometry(FPROP, g.result, (channels, *taps, filters), g.image, window, 1)
    if width_of(turned, bits) * bits == 1024:
        return None
    copied = _LAUNCH + 2 * prod(g.filter) * bits / 8 / _COPY
    time = _microseconds(asked._replace(geometry=turned), gpu, sms) + copied
    return (time, turned) if time < _microseconds(asked, gpu, sms) else None


def _microseconds(asked: ConvRequest, gpu: str, sms: int) -> float:
    """Return the predicted time of a convolution of this kind."""
    g, plain = asked.geometry, not asked.epilogue.active
    asked = asked._replace(epilogue=Epilogue(), parts=0)
    if g.is_product:
        return _product(asked, gpu, sms)
    left = narrow(asked, gpu, sms)
    if left is not None:
        found = chosen_with_time(asked._replace(geometry=left), gpu, sms)
        assert found is not None
        moved = sum(prod(x.result if g.kind == DGRAD else x.image) for x in (g, left)) * BITS[asked.element] / 8
        stored = _pads(asked, g.image, False) if g.kind == DGRAD else 0.0
        return found[0] + 3 * _LAUNCH + moved / _FOLDED + stored
    found = chosen_with_time(asked, gpu, sms)
    if found is None:
        columns, grouped = _columns(asked, gpu, sms), _grouped(asked, gpu, sms) if plain else None
        return columns if grouped is None else min(columns, grouped[0])
    if pads_channels(g, asked.channels):
        moved = prod(g.image[:-1]) * (g.image[-1] + asked.channels) * BITS[asked.element] / 8
        return max(found[0], _loads(asked, found[1])) + _LAUNCH + moved / _FOLDED
    image, result = g.kind != DGRAD, g.kind != FPROP  # is read
    time = max(found[0], _loads(asked, found[1]))
    return time + _pads(asked, g.image, image) + _pads(asked, g.result, result) + _filter(asked, found[1].flat)


def _loads(asked: ConvRequest, config: ConvConfig) -> float:
    """Return the time of narrow im2col loads; the last K step issues those past the last tap, too."""
    g, (_, n, _) = asked.geometry, config.base.tile
    if g.kind != FPROP or config.boxes == 1:
        return 0.0
    chunks = -(-g.filter[-1] // config.width) * g.taps
    loads = prod(g.result[:-1]) * -(-g.filter[0] // n) * -(-chunks // config.boxes) * config.boxes
    return _LAUNCH + loads * _LOAD


def of_group(g: Geometry) -> Geometry:
    """Return the convolution of one group.

    >>> from cute_dialect.op.problems.conv import geometry
    >>> of_group(geometry("conv2d", "fprop", (2, 9, 9, 130), (134, 3, 3, 65), 1, 1, 1, 2)).filter
    (67, 3, 3, 65)
    """
    image, result = ((*x[:-1], x[-1] // g.groups) for x in (g.image, g.result))
    return g._replace(image=image, filter=(result[-1], *g.filter[1:]), result=result, groups=1)


def grouped_gemm(asked: ConvRequest, gpu: str = "", sms: int = 132) -> Geometry | None:
    """Return the convolution that im2col loads compute for groups that they do not support; None for columns.

    It is the convolution of one group, launched once per group, or the convolution of all groups with padded channels.

    >>> from cute_dialect.op.problems.conv import geometry
    >>> g = geometry("conv2d", "fprop", (8, 56, 56, 140), (134, 3, 3, 70), 1, 1, 1, 2)
    >>> grouped_gemm(ConvRequest(g, "f16", "f16")).groups  # one launch, with padded channels
    2
    """
    found = _grouped(asked, gpu, sms)
    return None if found is None or found[0] >= _columns(asked, gpu, sms) else found[1]


def _grouped(asked: ConvRequest, gpu: str, sms: int) -> tuple[float, Geometry] | None:
    """Return the faster one of a launch per group and padded groups, with its time; None if neither is possible."""
    found = [*_padded_groups(asked, gpu, sms)]
    if (time := _by_group(asked, gpu, sms)) is not None:
        found.append((time, of_group(asked.geometry)))
    return min(found, key=lambda x: x[0], default=None)


def _padded_groups(asked: ConvRequest, gpu: str, sms: int) -> Iterator[tuple[float, Geometry]]:
    """Yield convolutions whose groups have more channels and filters, with the times that include the copies."""
    g, bits = asked.geometry, BITS[asked.element]
    c, k = g.filter[-1], g.filter[0] // g.groups
    if g.groups == 1 or g.is_product or bits != 16 or BITS[asked.output] != 16:
        return
    steps = (8, 16, 32, 64) if g.kind == FPROP else (8,)  # a load reads the largest power of two of channels
    filters = -(-k // (64 if g.kind == DGRAD else 8)) * (64 if g.kind == DGRAD else 8)
    for channels in dict.fromkeys(-(-c // step) * step for step in steps):
        padded = padded_groups(g, channels, filters)
        wide = asked._replace(geometry=padded, width=0)
        largest = max(map(prod, (padded.image, padded.filter, padded.result))) * bits // 8
        fits = largest < MOST_BYTES and (channels, filters) != (c, k)
        found = chosen_with_time(wide, gpu, sms) if fits else None
        if found is not None:
            time = max(found[0], _loads(wide, found[1]))
            if g.kind == FPROP:
                time *= _NARROW_GROUPS if found[1].width < 32 else _WIDE_GROUPS
            arrays = [(g.image, padded.image), (g.filter, padded.filter), (g.result, padded.result)]
            result = {FPROP: 2, DGRAD: 0, WGRAD: 1}[g.kind]
            for i, (before, after) in enumerate(arrays):
                if before != after:
                    by_library = i == result or (i == 1 and filters != k)  # the filter is cleared first
                    moved = (prod(before) + prod(after)) * bits / 8
                    launches = 2 if by_library and i != result else 1
                    time += launches * _LAUNCH + moved / (_COPY if by_library else _FOLDED)
            yield time, padded


def _by_group(asked: ConvRequest, gpu: str, sms: int) -> float | None:
    """Return the time of a launch per group; None if im2col loads do not support the convolution of a group."""
    one = asked._replace(geometry=of_group(asked.geometry))
    if (
        not 1 < asked.geometry.groups <= MOST_LAUNCHES
        or one.geometry.is_product
        or chosen_with_time(one, gpu, sms) is None
    ):
        return None
    return asked.geometry.groups * gemm_microseconds(one, gpu, sms)


def _copied(asked: ConvRequest, elements: int) -> float:
    """Return the time to read or write elements in a copy."""
    return elements * BITS[asked.element] / 8 / _COPY


def _pads(asked: ConvRequest, shape: tuple[int, ...], is_read: bool) -> float:
    """Return the time of a padded copy of an array, 0 if its lines are multiples of 16 bytes."""
    aligned = shape[-1] * BITS[asked.element] % 128 == 0
    return 0.0 if aligned else _LAUNCH + _copied(asked, 2 * prod(shape)) / (_PADDED if is_read else 1)


def _filter(asked: ConvRequest, flat: bool) -> float:
    """Return the time of padded copies of a filter, or of its gradient."""
    g = asked.geometry
    unit = asked.channels if flat else 128 // BITS[asked.element]
    padded = g.filter[-1] % unit != 0
    return padded * (_LAUNCH * (2 if flat and g.kind == FPROP else 1) + _copied(asked, 2 * prod(g.filter)))


def _product(asked: ConvRequest, gpu: str, sms: int) -> float:
    """Return the time of a convolution of one tap, a GEMM."""
    g = asked.geometry
    pixels, c, k = prod(g.result[:-1]), g.filter[-1], g.filter[0] // g.groups
    m, n, depth, a, b = {
        FPROP: (pixels, k, c, "k", "k"), DGRAD: (pixels, c, k, "k", "n"), WGRAD: (k, c, pixels, "m", "n"),
    }[g.kind]  # fmt: skip
    problem = Problem(m, n, depth, asked.element, asked.output, a, b, g.groups)
    bits = BITS[asked.element]
    lines = {FPROP: ((c, m), (c, n)), DGRAD: ((k, m), (c, n)), WGRAD: ((k, m), (c, n))}[g.kind]
    unaligned = [g.groups * rows * depth * bits // 8 for line, rows in lines if line * bits % 128]
    direct = (g.groups > 1 or is_stored_directly(prod(g.output), asked.output)) and n * BITS[asked.output] % 128 != 0
    if unaligned:
        time = predict_padded(problem, unaligned, gpu, sms, direct=direct)
        blocks = g.groups * -(-m // 128) * -(-n // 128)
        if 4 * blocks > sms or depth < 8192:
            time = min(time, predict_unaligned(problem, sms))
    else:
        time = predict(choose(problem, sms, gpu), problem, costs_of(gpu, sms))
        time = max(time, predict_direct(g.groups * m * n)) if direct else time
    return time + (0.0 if direct else _pads(asked, g.output, False) if g.groups == 1 else 0.0)


def _columns(asked: ConvRequest, gpu: str, sms: int) -> float:
    """Return the time of a convolution whose columns are written to memory."""
    g = asked.geometry
    c, k = g.filter[-1], g.filter[0] // g.groups
    gradient = g.kind == DGRAD
    rows = prod(g.image[:-1]) if gradient else prod(g.result[:-1])
    depth = g.taps * (k if gradient else c)
    m, n, inner = (k, depth, rows) if g.kind == WGRAD else (rows, c if gradient else k, depth)
    major = ("m", "n") if g.kind == WGRAD else ("k", "n" if gradient else "k")
    problem = Problem(m, n, inner, asked.element, asked.output, *major, g.groups)
    time = predict(choose(problem, sms, gpu), problem, costs_of(gpu, sms))
    if n * BITS[asked.output] % 128:
        time = max(time, predict_direct(g.groups * m * n)) if g.groups > 1 else time + _pads(asked, g.output, False)
    words = 2 if (k if gradient else c) % 4 else 1  # elements are moved one or two at a time
    return time + 2 * _LAUNCH + words * _copied(asked, 2 * g.groups * rows * depth)
