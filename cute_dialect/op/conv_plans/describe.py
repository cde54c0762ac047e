"""Descriptions of a convolution: its kind, iterator algorithm and problem size.

>>> problem = Conv2dProblemSize((8, 56, 56, 64), (128, 3, 3, 64), (1, 1, 1, 1), (2, 2), (1, 1))
>>> problem.P, problem.Q, problem.implicit_gemm_size("fprop")
(28, 28, GemmCoord(m=6272, n=128, k=576))
>>> Conv2dProblemSize(8, 56, 56, 64, 128, 3, 3, 64, (1, 1, 1, 1), (2, 2), (1, 1)) == problem
True
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple, cast

from cute_dialect.op.conv.geometry import Geometry, geometry
from cute_dialect.op.errors import ShapeError
from cute_dialect.op.select.descriptions import GemmCoord, known

__all__ = [
    "Conv2dProblemSize", "ConvKind", "ConvMode", "IteratorAlgorithm", "MatrixCoord", "StrideSupport", "Tensor4DCoord",
]  # fmt: skip


class ConvKind(StrEnum):
    """Kind of a convolution: forward, gradient of the image, gradient of the filter.

    It defines A, B and the result:

    - ``fprop``: image, filter, result.
    - ``dgrad``: gradient of the result, filter, gradient of the image.
    - ``wgrad``: gradient of the result, image, gradient of the filter.
    """

    fprop = "fprop"
    dgrad = "dgrad"
    wgrad = "wgrad"


class ConvMode(StrEnum):
    """Orientation of the filter: as it is stored, or flipped."""

    cross_correlation = "cross_correlation"
    convolution = "convolution"


class IteratorAlgorithm(StrEnum):
    """Algorithms that read images.

    An *access* is the alignment of A's description, by default 16 bytes.

    - ``analytic``: any image; columns are written to memory and multiplied by a GEMM.
    - ``optimized``: im2col TMA, 128 bytes of channels at once; the channels are a multiple of an access.
    - ``fixed_channels``: forward only; the channels are one access.
    - ``few_channels``: forward only; the channels are a multiple of an access, and a step of K reads several taps.

    With instructions other than wgmma, or accesses of less than 16 bytes, all algorithms write columns.
    """

    analytic = "analytic"
    optimized = "optimized"
    fixed_channels = "fixed_channels"
    few_channels = "few_channels"


class StrideSupport(StrEnum):
    """Strides that an operation supports: any, or 1."""

    strided = "strided"
    unity = "unity"


class Tensor4DCoord(NamedTuple):
    """Four extents, of images (N, H, W, C) or filters (K, R, S, C / groups), or a padding: top, bottom, left, right."""

    n: int
    h: int
    w: int
    c: int


class MatrixCoord(NamedTuple):
    """Two numbers, for H and W."""

    row: int
    column: int


def _several(name: str, value: object, count: int) -> tuple[int, ...]:
    given = tuple(cast("Sequence[object]", value)) if isinstance(value, Sequence) else ()
    if len(given) != count or not all(isinstance(n, int) and not isinstance(n, bool) for n in given):
        raise ShapeError(f"Conv2dProblemSize: {name} is {value!r}; pass {count} integers")
    return tuple([int(cast(int, n)) for n in given])


@dataclass(frozen=True, init=False)
class Conv2dProblemSize:
    """Problem size of a convolution.

    Args:
        input: (N, H, W, C).
        filter: (K, R, S, C / groups); ``input`` and ``filter`` may also be passed as eight numbers.
        padding: top, bottom, left, right, or two numbers for H and W.
        stride, dilation: two numbers, for H and W.

    Raises ShapeError.
    """

    input: Tensor4DCoord
    filter: Tensor4DCoord
    padding: Tensor4DCoord
    stride: MatrixCoord
    dilation: MatrixCoord
    mode: ConvMode
    split_k_slices: int
    groups: int

    def __init__(
        self, *sizes: object, padding: object = (0, 0, 0, 0), stride: object = (1, 1), dilation: object = (1, 1),
        mode: str = ConvMode.cross_correlation, split_k_slices: int = 1, groups: int = 1,
    ):  # fmt: skip
        sizes = (sizes[:4], sizes[4:8], *sizes[8:]) if sizes and isinstance(sizes[0], int) else sizes
        names = ("input", "filter", "padding", "stride", "dilation", "mode", "split_k_slices", "groups")
        values: dict[str, object] = {
            "padding": padding, "stride": stride, "dilation": dilation, "mode": mode, "split_k_slices": split_k_slices,
            "groups": groups, **dict(zip(names, sizes)),
        }  # fmt: skip
        if not 2 <= len(sizes) <= len(names):
            raise ShapeError(f"Conv2dProblemSize: got {len(sizes)} arguments; pass {', '.join(names)}")
        pad = values["padding"]
        if isinstance(pad, Sequence) and len(cast("Sequence[object]", pad)) == 2:
            values["padding"] = [n for n in cast("Sequence[object]", pad) for _ in range(2)]
        put = object.__setattr__
        for name in names[:5]:
            kind = Tensor4DCoord if name in names[:3] else MatrixCoord
            put(self, name, kind(*_several(name, values[name], 4 if name in names[:3] else 2)))
        put(self, "mode", known(ConvMode, values["mode"], "mode"))
        put(self, "split_k_slices", values["split_k_slices"])
        put(self, "groups", values["groups"])
        self.geometry("fprop")

    def geometry(self, kind: str, call: str = "Conv2dProblemSize") -> Geometry:
        """Return the convolution, or a gradient of it.  Raises ShapeError."""
        top, bottom, left, right = self.padding
        how = (self.stride, ((top, bottom), (left, right)), self.dilation, self.groups, str(self.mode))
        return geometry(call, kind, tuple(self.input), tuple(self.filter), *how)

    @property
    def output(self) -> Tensor4DCoord:
        """Extents of the result: (N, P, Q, K)."""
        return Tensor4DCoord(*self.geometry("fprop").result)

    @property
    def P(self) -> int:
        """Height of the result."""
        return self.output.h

    @property
    def Q(self) -> int:
        """Width of the result."""
        return self.output.w

    @property
    def N(self) -> int:
        """Number of images."""
        return self.input.n

    @property
    def H(self) -> int:
        """Height of the images."""
        return self.input.h

    @property
    def W(self) -> int:
        """Width of the images."""
        return self.input.w

    @property
    def C(self) -> int:
        """Channels of the images."""
        return self.input.c

    @property
    def K(self) -> int:
        """Number of filters."""
        return self.filter.n

    @property
    def R(self) -> int:
        """Height of the filters."""
        return self.filter.h

    @property
    def S(self) -> int:
        """Width of the filters."""
        return self.filter.w

    def implicit_gemm_size(self, kind: str) -> GemmCoord:
        """Return the extents of the implicit GEMM of a kind of convolution; with groups, those of one group."""
        n, p, q, k = self.output
        per, taps, channels = k // self.groups, self.R * self.S, self.filter.c
        sizes = {
            "fprop": (n * p * q, per, taps * channels), "dgrad": (n * self.H * self.W, channels, taps * per),
            "wgrad": (per, taps * channels, n * p * q),
        }  # fmt: skip
        return GemmCoord(*sizes[known(ConvKind, kind, "conv_kind")])
