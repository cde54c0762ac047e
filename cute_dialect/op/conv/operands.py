"""Operands of a convolution in the layouts that kernels take; those that TMA cannot read are copied."""

from __future__ import annotations

from math import prod

from cute_dialect.kernels.conv.config import DGRAD, WGRAD, ConvConfig
from cute_dialect.op.arrays.image_layouts import as_rows, dense, lines_suit, merged, strides_of
from cute_dialect.op.arrays.library import Library
from cute_dialect.op.problems.conv import Geometry, Prepared
from cute_dialect.op.problems.operands import matrix
from cute_dialect.runtime.arrays import ArrayView, numpy_dtype

__all__ = ["as_taken", "read", "stored"]


def stored(library: Library, ready: Prepared, rows: ArrayView) -> ArrayView:
    """Return the memory to which a kernel stores: a padded copy if lines are not multiples of 16 bytes."""
    item = numpy_dtype(rows.dtype).itemsize
    line = ready.geometry.output[-1]
    if matrix(rows).suits_tma() and line * item % 16 == 0:
        return rows
    wide = -(-line * item // 16) * 16 // item
    count = rows.shape[1] // line
    made = library.strided((*rows.shape[:-1], count * wide), (count * wide, 1), rows.dtype, rows)
    return made._replace(shape=(rows.shape[0], count, line), strides=(count * wide, wide, 1))


def as_taken(ready: Prepared, x: ArrayView, config: ConvConfig) -> ArrayView:
    """Return the result in the layout that the kernel takes."""
    g, step = ready.geometry, x.strides[0]
    line = g.output[-1]
    if config.kind == WGRAD:
        apart = x.strides[1] if len(x.shape) == 3 else line
        per = x.shape[0] // g.groups
        more = ((g.groups,), (per * step,)) if config.groups else ((), ())
        return x._replace(shape=(per, line, g.taps, *more[0]), strides=(step, 1, apart, *more[1]))
    if config.strided:
        steps = strides_of(g.output)
        strides = (1, *[n // line * step for n in steps[-2::-1]])
        wide = x.strides[1] if len(x.shape) == 3 else line  # stores are 16 bytes wide, so a padded copy has wider lines
        return x._replace(shape=(wide, *g.output[-2::-1]), strides=strides)
    if config.groups:
        per = line // g.groups
        return x._replace(shape=(x.shape[0], per, g.groups), strides=(step, 1, per))
    return x._replace(shape=(x.shape[0], line), strides=(step, 1))


def read(library: Library, ready: Prepared, config: ConvConfig) -> tuple[ArrayView, ArrayView]:
    """Return image and filter in the layouts that the kernel takes, with the contiguous mode first."""
    g, item = ready.geometry, numpy_dtype(ready.image.dtype).itemsize
    unit = 16 // item
    image = ready.image if lines_suit(ready.image) else dense(library, ready.image, unit)
    image = _apart(image, unit)
    if config.kind == WGRAD:
        y = ready.other if lines_suit(ready.other) and as_rows(ready.other) else dense(library, ready.other, unit)
        rows = as_rows(y)
        assert rows is not None
        step, per = max(rows.strides[0], unit), rows.shape[1] // g.groups
        more = ((g.groups,), (per,)) if config.groups else ((), ())
        taken = rows._replace(shape=(per, rows.shape[0], *more[0]), strides=(1, step, *more[1]))
        return image._replace(shape=image.shape[::-1], strides=image.strides[::-1]), taken
    shape, strides = image.shape[::-1], image.strides[::-1]
    return image._replace(shape=shape, strides=strides), _filter(library, ready, config, unit, g)


def _apart(x: ArrayView, unit: int) -> ArrayView:
    """Return an array whose dimensions of extent 1 have strides that a tensor map allows."""
    strides, reach = list(x.strides), unit
    for i in reversed(range(len(x.shape) - 1)):
        if x.shape[i] == 1:
            strides[i] = reach
        reach = max(reach, -(-strides[i] * x.shape[i] // unit) * unit)
    return x._replace(strides=(*strides[:-1], 1))


def _filter(library: Library, ready: Prepared, config: ConvConfig, unit: int, g: Geometry) -> ArrayView:
    """Return the filter in the layout that the kernel takes."""
    other = ready.other
    if config.flat:
        width = config.width
        channels = -(-other.shape[-1] // width) * width
        if channels != other.shape[-1]:  # pad with zeros, because padding channels are multiplied
            shape = (*other.shape[:-1], channels)
            wide = library.strided(shape, strides_of(shape), other.dtype, other)
            library.clear(wide)
            library.native(wide)[..., : other.shape[-1]] = library.native(other)
            other = wide
        if merged(other, 1, len(other.shape)) != 1 or other.pointer % 16 or not lines_suit(other):
            other = dense(library, other, unit)
        columns = prod(other.shape[1:])
        rows, step = other.shape[0], other.strides[0] if other.shape[0] > 1 else columns
        if not config.groups:
            return other._replace(shape=(rows, columns), strides=(step, 1))
        per = rows // g.groups
        return other._replace(shape=(per, columns, g.groups), strides=(step, 1, per * step))
    along = 0 if config.kind == DGRAD and config.base.major_b == "k" else -1
    if along == 0:  # the channels of the result's gradient come last
        axes = (*range(1, len(other.shape)), 0)
        other = other._replace(
            shape=tuple([other.shape[i] for i in axes]), strides=tuple([other.strides[i] for i in axes])
        )
        other = dense(library, other, unit)  # (taps …, C, K)
        rank = len(other.shape) - 2
        axes = (rank, *range(rank), rank + 1)
        other = other._replace(
            shape=tuple([other.shape[i] for i in axes]), strides=tuple([other.strides[i] for i in axes])
        )
    tap = merged(other, 1, len(other.shape) - 1)
    if tap is None or not lines_suit(other):
        other = dense(library, other, unit)
        tap = merged(other, 1, len(other.shape) - 1)
    assert tap is not None
    rows, channels, taps = other.shape[0], other.shape[-1], g.taps
    tap = tap if taps > 1 else -(-channels // unit) * unit
    step = other.strides[0] if rows > 1 else tap * taps
    if config.kind == DGRAD and along == -1:  # (C, K, taps)
        return other._replace(shape=(channels, rows, taps), strides=(1, step, tap))
    return other._replace(shape=(rows, channels, taps), strides=(step, 1, tap))
