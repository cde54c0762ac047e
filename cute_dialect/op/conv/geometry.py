"""Geometry of a convolution: extents, window and groups, checked.

>>> found = geometry("conv2d", "fprop", (8, 56, 56, 64), (128, 3, 3, 64), 2, 1, 1, 1)
>>> found.result, found.flops
((8, 28, 28, 128), 924844032)
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import NamedTuple, cast

from cute_dialect.kernels.conv.config import DGRAD, FPROP, WGRAD, Window
from cute_dialect.op.errors import ShapeError, UnsupportedError

__all__ = ["Geometry", "geometry", "of_pixels", "window_of"]

MODES = ("cross_correlation", "convolution")


class Geometry(NamedTuple):
    """A convolution: ``image`` (N, …, C), ``filter`` (K, …, C / groups), ``result`` (N, …, K)."""

    kind: str
    image: tuple[int, ...]
    filter: tuple[int, ...]
    result: tuple[int, ...]
    window: Window
    groups: int

    @property
    def extents(self) -> tuple[int, ...]:
        """Spatial extents of the image."""
        return self.image[1:-1]

    @property
    def taps(self) -> int:
        """Number of taps of the filter."""
        return prod(self.window.taps)

    @property
    def output(self) -> tuple[int, ...]:
        """Shape of the computed array."""
        return {FPROP: self.result, DGRAD: self.image, WGRAD: self.filter}[self.kind]

    @property
    def matrix(self) -> tuple[int, int]:
        """Shape of the computed array as a matrix: a row per pixel, or per filter."""
        shape = self.output
        return (shape[0], prod(shape[1:])) if self.kind == WGRAD else (prod(shape[:-1]), shape[-1])

    @property
    def is_product(self) -> bool:
        """True if each pixel of the result depends on one pixel of the image, so the convolution is a GEMM."""
        w = self.window
        return self.taps == 1 and not any((*w.before, *w.after)) and set(w.strides) == {1}

    @property
    def flops(self) -> int:
        """Number of multiplications and additions."""
        return 2 * prod(self.result) * self.taps * self.filter[-1]


_MOST_ELEMENTS = 1 << 31
"""Number of elements from which on the pixels of all images are not addressed as one row."""


def of_pixels(g: Geometry) -> Geometry:
    """Return a convolution of one tap as one without a stride, of the pixels that it reads; others are unchanged.

    Without a stride, the pixels of all images are one row.

    >>> of_pixels(geometry("conv2d", "fprop", (8, 56, 56, 16), (32, 1, 1, 16), 1, 0, 1, 1)).result
    (1, 1, 25088, 32)
    >>> of_pixels(geometry("conv2d", "fprop", (8, 56, 56, 16), (32, 1, 1, 16), 2, 0, 1, 1)).image
    (8, 28, 28, 16)
    """
    w, pixels, c, k = g.window, prod(g.result[:-1]), g.image[-1], g.result[-1]
    if g.taps > 1 or any((*w.before, *w.after)) or (g.kind == DGRAD and not g.is_product):
        return g
    if not g.is_product:
        ones, zeros = (1,) * len(w.taps), (0,) * len(w.taps)
        return g._replace(image=(*g.result[:-1], c), window=Window(ones, zeros, zeros, flip=w.flip))
    if pixels * max(c, k) >= _MOST_ELEMENTS:
        return g
    shapes = (1, 1, pixels, c), (g.filter[0], 1, 1, g.filter[-1]), (1, 1, pixels, k)
    return Geometry(g.kind, *shapes, Window((1, 1), (0, 0), (0, 0)), g.groups)


def _numbers(call: str, name: str, value: object, rank: int, least: int) -> tuple[int, ...]:
    """Return a number per dimension, given one number or a sequence."""
    found = (value,) * rank if isinstance(value, int) else value
    if isinstance(found, Sequence) and not isinstance(found, str):
        given = tuple(cast("Sequence[object]", found))
        given = given * rank if len(given) == 1 else given
        if len(given) == rank and all(isinstance(x, int) and not isinstance(x, bool) and x >= least for x in given):
            return tuple([int(cast(int, x)) for x in given])
    raise ShapeError(f"{call}: {name} is {value!r}; pass one number or {rank} numbers, each {least} or more")


def _padding(
    call: str, value: object, taps: Sequence[int], stride: Sequence[int], dilation: Sequence[int]
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the padding before and after, given numbers, pairs (before, after), "same" or "valid"."""
    rank = len(taps)
    if isinstance(value, str):
        if value == "valid":
            return (0,) * rank, (0,) * rank
        if value != "same":
            raise ShapeError(f'{call}: padding is {value!r}; pass numbers, pairs, "same" or "valid"')
        if set(stride) != {1}:
            raise ShapeError(f'{call}: stride is {tuple(stride)}, but padding "same" needs stride 1; pass numbers')
        whole = [d * (t - 1) for t, d in zip(taps, dilation)]
        return tuple([n // 2 for n in whole]), tuple([n - n // 2 for n in whole])
    given: object = value
    if isinstance(given, Sequence) and len(cast("Sequence[object]", given)) == rank:
        pairs = [cast("Sequence[object]", x) for x in cast("Sequence[object]", given) if isinstance(x, Sequence)]
        if len(pairs) == rank and all(len(x) == 2 for x in pairs):
            before, after = ([x[i] for x in pairs] for i in range(2))
            return _numbers(call, "padding", before, rank, 0), _numbers(call, "padding", after, rank, 0)
    both = _numbers(call, "padding", value, rank, 0)
    return both, both


def window_of(
    call: str, taps: tuple[int, ...], stride: object, padding: object, dilation: object, mode: str
) -> Window:  # fmt: skip
    """Return the window of a filter.  Raises ShapeError, UnsupportedError."""
    rank = len(taps)
    strides, dilations = _numbers(call, "stride", stride, rank, 1), _numbers(call, "dilation", dilation, rank, 1)
    before, after = _padding(call, padding, taps, strides, dilations)
    if mode not in MODES:
        raise UnsupportedError(f"{call}: mode is {mode!r}; use {' or '.join(MODES)}")
    return Window(taps, before, after, strides, dilations, (), mode == "convolution")


def geometry(
    call: str, kind: str, image: tuple[int, ...], filter: tuple[int, ...], stride: object, padding: object,
    dilation: object, groups: object, mode: str = "cross_correlation",
) -> Geometry:  # fmt: skip
    """Return a convolution of an image (N, …, C) and a filter (K, …, C / groups).  Raises ShapeError."""
    taps = filter[1:-1]
    window = window_of(call, taps, stride, padding, dilation, mode)
    before, after = window.before, window.after
    if not isinstance(groups, int) or groups < 1:
        raise ShapeError(f"{call}: groups is {groups!r}; pass an integer of 1 or more")
    channels, filters = image[-1], filter[0]
    if channels % groups or filters % groups:
        raise ShapeError(
            f"{call}: {channels} channels and {filters} filters do not divide into {groups} groups; "
            "pass multiples of groups"
        )
    if filter[-1] != channels // groups:
        raise ShapeError(
            f"{call}: f has {filter[-1]} channels, but x has {channels} channels in {groups} groups; pass f with "
            f"{channels // groups} channels"
        )
    if 0 in taps:
        raise ShapeError(f"{call}: the filter has no taps ({_by(taps)}); pass a filter with at least one")
    extents = image[1:-1]
    found = window.result(extents)
    if any(n < 1 for n in found):
        pads = _by(before) if before == after else f"{_by(before)} before and {_by(after)} after"
        raise ShapeError(
            f"{call}: a filter of {_by(taps)}, dilation {_of_all(window.dilations)}, does not fit an input of "
            f"{_by(extents)} with padding {pads if len(set(before + after)) > 1 else before[0]}"
        )
    if kind == DGRAD and set(window.strides) != {1}:
        window = window._replace(left=tuple([n % u for n, u in zip(extents, window.strides)]))
    return Geometry(kind, image, filter, (image[0], *found, filters), window, groups)


def _by(numbers: Sequence[int]) -> str:
    return " x ".join(map(str, numbers))


def _of_all(numbers: Sequence[int]) -> str:
    return str(numbers[0]) if len(set(numbers)) == 1 else _by(numbers)
