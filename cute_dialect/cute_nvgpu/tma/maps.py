"""Static parts of tensor maps, tiled and im2col, and the limits that they must respect.

Dimensions are in TMA order, contiguous first. For im2col they are (C, W, N), (C, W, H, N) or (C, W, H, D, N).

Source: CUDA driver API, cuTensorMapEncodeTiled and cuTensorMapEncodeIm2col; PTX ISA 9.0, 5.5 "Tensors".
"""

from __future__ import annotations

from typing import NamedTuple

from xdsl.ir import Attribute

from cute_dialect.algebra.leaf import AlgebraError
from cute_dialect.arch.errors import ArchError
from cute_dialect.dialect.memory_types import element_bits

REDUCTIONS = ("add", "min", "max", "inc", "dec", "and", "or", "xor")
"""Operations of a TMA reduction (PTX ISA 9.7.9.25.5.3)."""

_LOGIC = ("and", "or", "xor")
_REDUCTIONS_OF = {
    "f16": ("add", "min", "max"),
    "bf16": ("add", "min", "max"),
    "f32": ("add",),
    "i32": ("add", "min", "max", *_LOGIC),
    "ui32": ("add", "min", "max", "inc", "dec", *_LOGIC),
    "i64": ("add", "min", "max", *_LOGIC),
}
"""Element type -> supported reductions."""


class TmaMap(NamedTuple):
    """Static part of a tensor map.

    Args:
        element: the element type.
        box: extents of the box of one instruction in elements, innermost first.
        element_strides: the instruction moves each n-th element of a dimension of the box. ``()`` means each element.
        swizzle: 0, 32, 64 or 128 bytes.
        interleave: 0, 16 or 32 bytes.
        oob: value of loads out of bounds, "zero" or "nan".
        l2: minimum size of a fetch into L2 in bytes.
        reduction: the reduction of a reduce atom.
    """

    element: Attribute
    box: tuple[int, ...]
    swizzle: int = 0
    interleave: int = 0
    element_strides: tuple[int, ...] = ()
    oob: str = "zero"
    l2: int = 128
    reduction: str = ""

    @property
    def rank(self) -> int:
        """Number of dimensions of the map."""
        return len(self.box)

    @property
    def counts(self) -> tuple[int, ...]:
        """Number of elements that one instruction moves along each dimension."""
        return tuple([-(-b // s) for b, s in zip(self.box, self.strides)])

    @property
    def strides(self) -> tuple[int, ...]:
        """Element strides of all dimensions."""
        return self.element_strides or (1,) * len(self.box)

    @property
    def elements(self) -> int:
        """Number of elements that one instruction moves."""
        n = 1
        for c in self.counts:
            n *= c
        return n

    @property
    def bytes(self) -> int:
        """Number of bytes that one instruction moves and a barrier counts."""
        return self.elements * element_bits(self.element) // 8

    @property
    def smem_alignment(self) -> int:
        """Required alignment of a tile in shared memory, in bytes: 128, or the period of the swizzle."""
        return max(128, 8 * self.swizzle)

    @property
    def spatial(self) -> int:
        """Number of offsets that a load takes; only im2col loads take any."""
        return 0

    @property
    def numbers(self) -> tuple[int, ...]:
        """Numbers that the runtime encodes in the map, before the codes of element type, swizzle and so on."""
        return (*self.box, *self.strides)


def check_map(m: TmaMap) -> None:
    """Raise AlgebraError, with the text of the TmaError, if a parameter of the map is invalid."""
    from cute_dialect.arch.tensor_map import TensorDim, TensorMapSpec  # late: start-up

    if m.element_strides and len(m.element_strides) != len(m.box):
        raise AlgebraError(f"expected {len(m.box)} element strides, one per dimension, got {len(m.element_strides)}")
    unit = max(16, m.interleave) * 8
    try:
        TensorMapSpec(
            element=str(m.element),
            dims=tuple([TensorDim(1, unit if i else 1, b, s) for i, (b, s) in enumerate(zip(m.box, m.strides))]),
            swizzle=m.swizzle,
            interleave=m.interleave,
            l2_promotion=m.l2,
            oob_fill=m.oob,
        )
    except ArchError as e:
        raise AlgebraError(str(e)) from None
    if m.reduction:
        check_reduction(m.element, m.reduction)


def check_reduction(element: Attribute, reduction: str) -> None:
    """Raise AlgebraError unless TMA supports this reduction for this element type."""
    known = _REDUCTIONS_OF.get(str(element), ())
    if reduction not in known:
        these = ", ".join(known) or "none"
        raise AlgebraError(f"expected a reduction that TMA supports for {element} ({these}), got {reduction}")


def canonical(m: TmaMap) -> TmaMap:
    """Return the map with default values removed."""
    return m._replace(element_strides=()) if all(s == 1 for s in m.element_strides) else m


class Im2colMap(NamedTuple):
    """Static part of an im2col tensor map.

    Args:
        element: the element type.
        channels: number of channels per instruction.
        pixels: number of pixels per instruction.
        lower: lower corner of the box of base pixels, relative to that of the tensor, W first.
        upper: upper corner of the box of base pixels, relative to that of the tensor, W first.
        pixel_strides: distance between base pixels, W first: the strides of a convolution. ``()`` means 1.
        swizzle: 0, 32, 64 or 128 bytes.
        oob: value of loads out of bounds, "zero" or "nan".
        l2: minimum size of a fetch into L2 in bytes.
        reduction: the reduction of a reduce atom.
    """

    element: Attribute
    channels: int
    pixels: int
    lower: tuple[int, ...]
    upper: tuple[int, ...]
    pixel_strides: tuple[int, ...] = ()
    swizzle: int = 0
    oob: str = "zero"
    l2: int = 128
    reduction: str = ""

    @property
    def spatial(self) -> int:
        """Number of spatial dimensions. The instruction has one offset for each of them."""
        return len(self.lower)

    @property
    def rank(self) -> int:
        """Number of dimensions of the map."""
        return len(self.lower) + 2

    @property
    def steps(self) -> tuple[int, ...]:
        """Element strides of all dimensions."""
        return (1, *(self.pixel_strides or (1,) * self.spatial), 1)

    @property
    def bytes(self) -> int:
        """Number of bytes that one instruction moves and a barrier counts."""
        return self.channels * self.pixels * element_bits(self.element) // 8

    @property
    def smem_alignment(self) -> int:
        """Required alignment of a tile in shared memory, in bytes: 128, or the period of the swizzle."""
        return max(128, 8 * self.swizzle)

    @property
    def interleave(self) -> int:
        """im2col maps are not interleaved."""
        return 0

    @property
    def numbers(self) -> tuple[int, ...]:
        """Numbers that the runtime encodes in the map, before the codes of element type, swizzle and so on."""
        return (self.channels, self.pixels, *self.lower, *self.upper, *self.steps)


def check_im2col(m: Im2colMap, writes: bool = False) -> None:
    """Raise AlgebraError, with the text of the TmaError, if a parameter of the map is invalid.

    ``writes`` is True for a store or a reduction. Base pixels before the first pixel are allowed for loads only. A
    write from one is an illegal instruction (measured on an H200). PTX ISA 9.7.9.27 "cp.async.bulk.tensor" does not
    mention it.
    """
    from cute_dialect.arch.tensor_map import Im2colMapSpec  # late: start-up

    if not 1 <= m.spatial <= 3:
        raise AlgebraError(f"expected a lower corner of 1 to 3 numbers (W, H, D), got {m.spatial}")
    if m.pixel_strides and len(m.pixel_strides) != m.spatial:
        raise AlgebraError(
            f"expected {m.spatial} pixel strides, one per number of the lower corner, got {len(m.pixel_strides)}"
        )
    if writes and min(m.lower) < 0:
        raise AlgebraError(f"expected a nonnegative lower corner for a store or reduction, got {m.lower}")
    pitch = max(1, 128 // element_bits(m.element))
    try:
        Im2colMapSpec(
            element=str(m.element),
            extents=(1,) * m.rank,
            element_pitches=(pitch,) * (m.rank - 1),
            lower=m.lower,
            upper=m.upper,
            channels=m.channels,
            pixels=m.pixels,
            element_strides=m.steps,
            swizzle=m.swizzle,
            l2_promotion=m.l2,
            oob_fill=m.oob,
        )
    except ArchError as e:
        raise AlgebraError(str(e)) from None
    if m.reduction:
        check_reduction(m.element, m.reduction)
