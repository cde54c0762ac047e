"""Tensor-map specifications: the arguments of ``cuTensorMapEncodeTiled`` and ``cuTensorMapEncodeIm2col``.

A spec validates itself against all limits of the hardware on construction.  Extents and strides may be dynamic.
``unproven`` lists the conditions that divisibility does not prove, and :meth:`TensorMapSpec.bind` checks actual values.

Source: CUDA driver API, "Tensor Map Object Management"; PTX ISA 9.0, 5.5 "Tensors".
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from cute_dialect.algebra.leaf import Dyn, Leaf, div, divisibility, mul
from cute_dialect.algebra.trees import tree_leaves
from cute_dialect.algebra.values import Basis, IntTuple, Layout, Stride, raw_layout
from cute_dialect.arch.atom import int_leaves
from cute_dialect.arch.elements import bits_of
from cute_dialect.arch.errors import TmaError
from cute_dialect.arch.tensor_map_codes import UNPACKED_CODES, WIDE_MODES, counted_bytes

MAX_RANK = 5
MAX_BOX = 256
MAX_ELEMENT_STRIDE = 8
MAX_EXTENT = 1 << 32
MAX_STRIDE = 1 << 40
DATA_TYPES = {
    "f64": "FLOAT64",
    "f32": "FLOAT32",
    "tf32": "TFLOAT32",
    "f16": "FLOAT16",
    "bf16": "BFLOAT16",
    "i64": "INT64",
    "i32": "INT32",
    "ui32": "UINT32",
    "i16": "UINT16",
    "ui16": "UINT16",
    "i8": "UINT8",
    "ui8": "UINT8",
    "f8E4M3FN": "UINT8",
    "f8E5M2": "UINT8",
    "f8E8M0FNU": "UINT8",
    "f4E2M1FN": "16U4_ALIGN8B",
}
"""Element type -> CU_TENSOR_MAP_DATA_TYPE_….  16-bit and 8-bit integers and 8-bit floats are copied as unsigned.

Elements of 4 bits (sm_100) are packed in global and in shared memory.
"""

PACKED = ("f4E2M1FN",)
"""Element types of less than a byte that shared memory may hold packed."""

UNPACKED = {"f4E2M1FN": "16U4_ALIGN16B", "f6E2M3FN": "16U6_ALIGN16B", "f6E3M2FN": "16U6_ALIGN16B"}
"""Element type -> CU_TENSOR_MAP_DATA_TYPE_… of loads that unpack (sm_100).

They place 16 elements, 8 or 12 bytes of global memory, at the start of each 16 bytes of shared memory, as the MMAs of
kinds f8f6f4 and mxf8f6f4 read them.  A tensor of shared memory has one 8-bit element for each of them.
"""

UNPACKED_BOX = 128
"""Elements of a box of such loads along dimension 0; coordinates and the extent are multiples of it."""

_FLOATS = ("f64", "f32", "tf32", "f16", "bf16")

Path = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class TensorDim:
    """One dimension of a tensor map."""

    extent: Leaf
    """Extent of the global tensor in elements."""

    stride: Leaf
    """Stride of the global tensor in elements."""

    box: int
    """Extent of the box in elements, including those that the element stride skips."""

    element_stride: int = 1
    """Distance between the elements that are moved."""

    modes: tuple[Path, ...] = ()
    """Paths of the modes of the global layout that the dimension covers."""

    @property
    def count(self) -> int:
        """Number of elements of the box that are moved along this dimension."""
        return -(-self.box // self.element_stride)


@dataclass(frozen=True, slots=True)
class TensorMapSpec:
    """A tiled tensor map.

    Raises:
        TmaError: a limit is exceeded.  The message names the dimension.
    """

    element: str
    """Element type."""

    dims: tuple[TensorDim, ...]
    """Dimensions, innermost first."""

    swizzle: int = 0
    """Width of the swizzle: 0, 32, 64 or 128 bytes."""

    interleave: int = 0
    """Interleave: 0, 16 or 32 bytes."""

    l2_promotion: int = 128
    """Granularity of L2 fetches: 0, 64, 128 or 256 bytes."""

    oob_fill: str = "zero"
    """Value of elements out of bounds, "zero" or "nan"."""

    gmem: Layout = field(default_factory=lambda: raw_layout(1, 0))
    """Layout of the global tensor."""

    coordinates: Layout = field(default_factory=lambda: raw_layout(1, 0))
    """Coordinate of ``gmem`` -> TMA coordinates."""

    steps: Layout = field(default_factory=lambda: raw_layout(1, 0))
    """Box of the tile -> TMA coordinates relative to the tile."""

    offsets: Layout = field(default_factory=lambda: raw_layout(1, 0))
    """Box of the tile -> offset in shared memory in elements."""

    multicast: int = 1
    """Number of CTAs that share a tile."""

    slices: Layout = field(default_factory=lambda: raw_layout(1, 0))
    """CTA -> TMA coordinates relative to the box."""

    unpack: int = 0
    """16 if loads place 16 elements of 4 or 6 bits in 16 bytes of shared memory, else 0."""

    def __post_init__(self) -> None:
        _check_options(self.element, self.swizzle, self.interleave, self.l2_promotion, self.oob_fill, self.unpack)
        rank = len(self.dims)
        if not 1 <= rank <= MAX_RANK:
            raise TmaError(f"expected 1 to {MAX_RANK} dimensions, got {rank}", "rank")
        if self.interleave and rank < 3:
            raise TmaError(f"expected at least 3 dimensions with interleave, got {rank}", "rank")
        if self.unpack and self.dims[0].box != UNPACKED_BOX:
            raise TmaError(
                f"expected {UNPACKED_BOX} elements in the box of a load that unpacks, got {self.dims[0].box}",
                "dimension 0",
            )
        _check_row(self.dims[0].box * self.shared_bits, self.swizzle, self.interleave, "dimension 0")
        for i, d in enumerate(self.dims):
            where = f"dimension {i}"
            _in_range(d.box, 1, MAX_BOX, "elements in the box", where)
            _in_range(d.element_stride, 1, MAX_ELEMENT_STRIDE, "as element stride", where)
            if type(d.extent) is int:
                _in_range(d.extent, 1, MAX_EXTENT, "elements", where)
            self._check_stride(i, d, where)
        placed = self.box_elements * self.shared_bits // 8
        if (self.multicast > 1 or self.boxes > 1) and placed % 128:
            raise TmaError(f"expected boxes of a multiple of 128 bytes if several fill a tile, got {placed}", "box")
        for d in int_leaves(self.offsets.stride):
            if d * self.shared_bits % 1024:
                # unreachable: callers in this package have checked it
                raise TmaError(f"expected boxes at multiples of 128 bytes, got {d * self.shared_bits / 8:g}", "smem")
        first = self.dims[0].extent
        if self.unpack and type(first) is int and first % UNPACKED_BOX:
            raise TmaError(
                f"expected a multiple of {UNPACKED_BOX} elements for loads that unpack, got {first}", "dimension 0"
            )
        if self.element in PACKED and type(first) is int and first % 2:
            raise TmaError(f"expected an even number of elements of 4 bits, got {first}", "dimension 0")

    def _check_stride(self, i: int, d: TensorDim, where: str) -> None:
        if i == 0:
            if d.stride != 1:
                raise TmaError(f"expected stride 1, contiguous elements, got {d.stride}", where)
            if d.element_stride != 1:
                raise TmaError(f"expected element stride 1 in the contiguous dimension, got {d.element_stride}", where)
        elif type(d.stride) is int:
            bits = d.stride * self.element_bits
            if bits <= 0 or bits % (8 * self.stride_unit):
                raise TmaError(
                    f"expected a stride that is a positive multiple of {self.stride_unit} bytes, got {bits / 8:g} "
                    f"({d.stride} elements)",
                    where,
                )
            if bits // 8 >= MAX_STRIDE:
                raise TmaError(f"expected a stride below 2^40 bytes, got {bits // 8}", where)

    @property
    def element_bits(self) -> int:
        """Bits of an element."""
        return bits_of(self.element)

    @property
    def shared_bits(self) -> int:
        """Bits of shared memory per element."""
        return 8 if self.unpack else self.element_bits

    @property
    def stride_unit(self) -> int:
        """Required alignment of strides and address in bytes: 16, or 32 with an interleave of 32 or for unpacking."""
        return 32 if self.unpack else max(16, self.interleave)

    @property
    def rank(self) -> int:
        """Number of dimensions, 1 to 5."""
        return len(self.dims)

    @property
    def extents(self) -> tuple[Leaf, ...]:
        """``globalDim``: extents in elements, innermost first."""
        return tuple([d.extent for d in self.dims])

    @property
    def strides(self) -> tuple[Leaf, ...]:
        """``globalStrides``: strides in bytes, from dimension 1 on."""
        return tuple([stride_bytes(d.stride, self.element_bits) for d in self.dims[1:]])

    @property
    def box(self) -> tuple[int, ...]:
        """``boxDim``: extents of the box in elements, innermost first."""
        return tuple([d.box for d in self.dims])

    @property
    def element_strides(self) -> tuple[int, ...]:
        """``elementStrides``: distance between the elements that are moved, per dimension."""
        return tuple([d.element_stride for d in self.dims])

    @property
    def box_elements(self) -> int:
        """Number of elements that one instruction moves."""
        n = 1
        for d in self.dims:
            n *= d.count
        return n

    @property
    def box_bytes(self) -> int:
        """Number of bytes that one instruction moves, as an mbarrier counts them."""
        return counted_bytes(self.box_elements, self.element_bits)

    @property
    def boxes(self) -> int:
        """Number of instructions per tile (per CTA, with multicast)."""
        n = 1
        for s in int_leaves(self.steps.shape):
            n *= s
        return n

    @property
    def smem_alignment(self) -> int:
        """Required alignment of the tile in shared memory in bytes: 128, or the period of the swizzle pattern."""
        return max(128, 8 * self.swizzle)

    @property
    def data_type(self) -> str:
        """Suffix of CU_TENSOR_MAP_DATA_TYPE_ for the element type."""
        return UNPACKED[self.element] if self.unpack else DATA_TYPES[self.element]

    @property
    def unproven(self) -> tuple[str, ...]:
        """Conditions that depend on run-time values; :meth:`bind` checks them."""
        out: list[str] = []
        for i, d in enumerate(self.dims):
            if isinstance(d.extent, Dyn):
                unit = " and even" if i == 0 and self.element in PACKED else ""
                if i == 0 and self.unpack:
                    unit = f" and a multiple of {UNPACKED_BOX}"
                out.append(f"dimension {i}: the extent is 1 to 2^32{unit}")
            if isinstance(d.stride, Dyn):
                if divisibility(d.stride) * self.element_bits % (8 * self.stride_unit):
                    out.append(f"dimension {i}: the stride is a multiple of {self.stride_unit} bytes")
                out.append(f"dimension {i}: the stride is positive and below 2^40 bytes")
        return tuple(out)

    def bind(self, values: Sequence[int] = (), address: int | None = None) -> TensorMapSpec:
        """Return the spec with values for the dynamic leaves of ``gmem``, after checking all limits.

        Args:
            values: one value per dynamic leaf, extents first, then strides.
            address: the global address, if it is known.

        Raises:
            TmaError: a limit is exceeded, or the number of values is wrong.
        """
        if address is not None and (address < 0 or address % self.stride_unit):
            raise TmaError(f"expected an address aligned to {self.stride_unit} bytes, got {address:#x}", "address")
        wanted = [x for x in (*tree_leaves(self.gmem.shape), *tree_leaves(self.gmem.stride)) if isinstance(x, Dyn)]
        if len(values) != len(wanted):
            raise TmaError(f"expected {len(wanted)} values for {self.gmem}, got {len(values)}", "gmem")
        given = iter(values)
        shape: IntTuple = _substitute(self.gmem.shape, given)  # type: ignore[assignment]
        stride: Stride = _substitute(self.gmem.stride, given)  # type: ignore[assignment]
        dims = [
            replace(d, extent=_at(shape, d.modes[0]), stride=_at(stride, d.modes[0])) if len(d.modes) == 1 else d
            for d in self.dims
        ]
        coordinates = raw_layout(shape, self.coordinates.stride)
        return replace(self, dims=tuple(dims), gmem=raw_layout(shape, stride), coordinates=coordinates)


def stride_bytes(stride: Leaf, bits: int) -> Leaf:
    """Return a stride in bytes, for a stride in elements of ``bits`` bits.

    >>> stride_bytes(64, 16), stride_bytes(64, 4)
    (128, 32)
    """
    if bits >= 8:
        return mul(stride, bits // 8)
    return div(stride, 2) if bits == 4 else mul(div(stride, 4), 3)


def _substitute(tree: IntTuple | Stride, values: Iterator[int]) -> IntTuple | Stride:
    if type(tree) is tuple:
        return tuple([_substitute(t, values) for t in tree])  # type: ignore[misc]
    return next(values) if isinstance(tree, Dyn) else tree


def _at(tree: object, path: Path) -> int:
    for i in path:
        tree = tree[i]  # type: ignore[index]
    assert not isinstance(tree, Basis)
    return tree  # type: ignore[return-value]


# ------------------------------------------------------------------------------------------------------------- checks


def _in_range(value: int, low: int, high: int, what: str, where: str) -> None:
    if not low <= value <= high:
        raise TmaError(f"expected {low} to {high} {what}, got {value}", where)


def _one_of(value: object, allowed: tuple[object, ...], where: str) -> None:
    if value not in allowed:
        raise TmaError(f"expected one of {', '.join(map(str, allowed))}, got {value}", where)


def check_element(elt: str, unpack: int) -> None:
    """Raise TmaError unless TMA moves elements of this type."""
    if unpack:
        _one_of(unpack, (0, 16), "unpack")
        _one_of(elt, tuple(UNPACKED_CODES), "element of a load that unpacks")
    elif elt in UNPACKED_CODES and elt not in PACKED:
        raise TmaError(
            f"elements {elt} are packed in global memory only: use a load that unpacks them, to 8-bit elements of "
            "shared memory",
            "element",
        )
    elif bits_of(elt) % 8 and elt not in PACKED:
        raise TmaError(f"expected elements of whole bytes, got {elt}: recast the tensor to ui8", "element")
    else:
        _one_of(elt, tuple(DATA_TYPES), "element")


def _check_options(elt: str, swizzle: int, interleave: int, l2_promotion: int, oob_fill: str, unpack: int = 0) -> None:
    check_element(elt, unpack)
    _one_of(swizzle, (0, 128) if unpack else (0, 32, 64, 128), "swizzle")
    _one_of(interleave, (0,) if unpack else (0, 16, 32), "interleave")
    _one_of(l2_promotion, (0, 64, 128, 256), "L2 promotion")
    _one_of(oob_fill, ("zero", "nan"), "out-of-bounds fill")
    if oob_fill == "nan" and elt not in _FLOATS:
        raise TmaError(f"expected a float type of 16 bits or more for NaN, got {elt}", "out-of-bounds fill")
    if interleave == 32 and swizzle != 32:
        raise TmaError(f"expected a swizzle of 32 bytes with interleave 32, got {swizzle}", "swizzle")


def _check_row(bits: int, swizzle: int, interleave: int, where: str) -> None:
    row = bits / 8
    if interleave:
        if row != interleave:
            raise TmaError(f"expected rows of {interleave} bytes, the interleave, got {row:g}", where)
    elif row % 16:
        raise TmaError(f"expected a box whose rows are a multiple of 16 bytes, got {row:g}", where)
    elif swizzle and row > swizzle:
        raise TmaError(f"expected rows of at most {swizzle} bytes, the width of the swizzle, got {row:g}", where)


# ------------------------------------------------------------------------------------------------------------- im2col


@dataclass(frozen=True, slots=True)
class Im2colMapSpec:
    """An im2col tensor map, of tensors (C, W, N), (C, W, H, N) or (C, W, H, D, N), innermost dimension first.

    Raises:
        TmaError: a limit is exceeded.

    >>> spec = Im2colMapSpec("f16", (64, 56, 56, 8), (64, 3584, 200704), (-1, -1), (-1, -1), 64, 128, swizzle=128)
    >>> spec.box_bytes
    16384
    """

    element: str
    """Element type."""

    extents: tuple[int, ...]
    """Extents in elements."""

    element_pitches: tuple[int, ...]
    """Strides in elements, from dimension 1 on."""

    lower: tuple[int, ...]
    """Lower corner of the bounding box of base pixels relative to the tensor, W first."""

    upper: tuple[int, ...]
    """Upper corner of the bounding box."""

    channels: int
    """Channels that one instruction moves."""

    pixels: int
    """Pixels that one instruction moves."""

    element_strides: tuple[int, ...] = ()
    """Element strides; the default is 1."""

    swizzle: int = 0
    """Width of the swizzle: 0, 32, 64 or 128 bytes."""

    interleave: int = 0
    """Interleave: 0, 16 or 32 bytes."""

    l2_promotion: int = 128
    """Granularity of L2 fetches: 0, 64, 128 or 256 bytes."""

    oob_fill: str = "zero"
    """Value of elements out of bounds, "zero" or "nan"."""

    mode: str = ""
    """"w" or "w_128" for a map of ``cuTensorMapEncodeIm2colWide``, whose corners and steps are along W only."""

    def __post_init__(self) -> None:
        _check_options(self.element, self.swizzle, self.interleave, self.l2_promotion, self.oob_fill)
        if self.mode not in WIDE_MODES:
            raise TmaError(f"expected w, w_128 or no mode, got {self.mode}", "mode")
        rank = len(self.extents)
        if not 3 <= rank <= MAX_RANK:
            raise TmaError(f"expected 3 to {MAX_RANK} dimensions, got {rank}", "rank")
        if len(self.element_pitches) != rank - 1:
            raise TmaError(f"expected {rank - 1} strides, got {len(self.element_pitches)}", "strides")
        unit = max(16, self.interleave)
        for i, n in enumerate(self.extents):
            _in_range(n, 1, MAX_EXTENT, "elements", f"dimension {i}")
        for i, n in enumerate(self.strides):
            if n <= 0 or n % unit or n >= MAX_STRIDE:
                raise TmaError(
                    f"expected a stride that is a positive multiple of {unit} bytes below 2^40, got {n}",
                    f"dimension {i + 1}",
                )
        # The pixel dimensions share one field per corner, so each signed offset has 16, 8 or 5 bits.
        bits = 16 if self.mode else {3: 16, 4: 8, 5: 5}[rank]
        for what, corner in (("lower corner", self.lower), ("upper corner", self.upper)):
            if len(corner) != rank - 2:
                raise TmaError(f"expected {rank - 2} offsets, got {len(corner)}", what)
            for i, n in enumerate(corner):
                _in_range(n, -(1 << bits - 1), (1 << bits - 1) - 1, f"at rank {rank}", f"{what}[{i}]")
        _in_range(self.channels, 1, 256, "channels", "channels")
        _in_range(self.pixels, 1, 1024, "pixels", "pixels")
        _check_row(self.channels * bits_of(self.element), self.swizzle, self.interleave, "channels")
        if self.element_strides:
            if len(self.element_strides) != rank:
                raise TmaError(f"expected {rank} element strides, got {len(self.element_strides)}", "element strides")
            for i, n in enumerate(self.element_strides):
                _in_range(n, 1, MAX_ELEMENT_STRIDE, "as element stride", f"dimension {i}")
        if self.mode:
            self._check_wide()

    def _check_wide(self) -> None:
        """Check the limits of ``cuTensorMapEncodeIm2colWide``."""
        _one_of(self.swizzle, (64, 128), f"swizzle of mode {self.mode}")
        _one_of(self.interleave, (0,), f"interleave of mode {self.mode}")
        steps = self.element_strides[2:]
        for what, numbers, only in (("corners", (*self.lower[1:], *self.upper[1:]), 0), ("element strides", steps, 1)):
            if any(n != only for n in numbers):
                raise TmaError(f"expected {only} along all dimensions but W in mode {self.mode}, got {numbers}", what)
        if self.mode == "w_128" and self.pixels != 128:
            raise TmaError(f"expected 128 pixels in mode w_128, got {self.pixels}", "pixels")

    @property
    def strides(self) -> tuple[int, ...]:
        """``globalStrides``: strides in bytes, from dimension 1 on."""
        return tuple([n * bits_of(self.element) // 8 for n in self.element_pitches])

    @property
    def box_bytes(self) -> int:
        """Number of bytes that one instruction moves."""
        return self.channels * self.pixels * bits_of(self.element) // 8


def im2col_for_convolution(
    elt: str,
    extents: tuple[int, ...],
    filter_: tuple[int, ...],
    *,
    padding: tuple[int, ...],
    stride: tuple[int, ...],
    dilation: tuple[int, ...],
    channels: int,
    pixels: int,
    swizzle: int = 0,
) -> Im2colMapSpec:
    """Return the im2col map of the compact activations of a convolution.

    The base pixels run from ``-padding`` to the base pixel of the last filter position.  The instruction's offset of a
    filter tap is the tap times the dilation.  The stride of the convolution is the element stride of the pixels.

    Args:
        elt: element type.
        extents: (C, W, [H, [D,]] N).
        filter_: extents of the filter, W first.
        padding: padding at both ends, W first.
        stride: stride of the convolution, W first.
        dilation: dilation of the filter, W first.
        channels: channels per instruction.
        pixels: pixels per instruction.
        swizzle: 0, 32, 64 or 128 bytes.

    >>> im2col_for_convolution("f16", (64, 56, 56, 8), (3, 3), padding=(1, 1), stride=(1, 1), dilation=(1, 1),
    ...                        channels=64, pixels=128, swizzle=128).upper
    (-1, -1)
    """
    spatial = len(extents) - 2
    for what, given in (("filter", filter_), ("padding", padding), ("stride", stride), ("dilation", dilation)):
        if len(given) != spatial:
            raise TmaError(f"expected {spatial} numbers for {len(extents)} dimensions, got {len(given)}", what)
    pitches: list[int] = []
    for n in extents[:-1]:
        pitches.append(n * (pitches[-1] if pitches else 1))
    return Im2colMapSpec(
        element=elt,
        extents=extents,
        element_pitches=tuple(pitches),
        lower=tuple([-p for p in padding]),
        upper=tuple([p - (f - 1) * d for p, f, d in zip(padding, filter_, dilation)]),
        channels=channels,
        pixels=pixels,
        element_strides=(1, *stride, 1),
        swizzle=swizzle,
    )
