"""Array arguments: their memref types, tensors with marks of static extents and strides, and fake tensors.

The memref type of an array becomes part of the specialization's key.  A *raw* array (from torch, cupy, numpy, …) has
dynamic extents and dynamic strides, except for the contiguous stride (1) and broadcast strides (0).  If the address and
all other strides are multiples of 16 bytes the type records this alignment.  Such arrays get a specialization with
vector loads.

>>> raw_type(ArrayView(4096, (8, 12), (12, 1), "f32", -1, "numpy", None))
'!cute.memref<f32, gmem, align<16>, "(?,?):(?{div=4},1)">'
>>> import numpy
>>> from_dlpack(numpy.zeros((4, 8), numpy.float32)).mark_compact_shape_dynamic(0).type
'!cute.memref<f32, gmem, align<16>, "(?,8):(8,1)">'
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from cute_dialect.errors import UsageError
from cute_dialect.lang.tracing.errors import KernelTypeError
from cute_dialect.lang.values.dtypes import NUMBER_TYPES, Float4E2M1FN, NumericType, type_of_mlir
from cute_dialect.runtime.arrays import ArrayView, NotAnArray, as_packed, view_of
from cute_dialect.runtime.launch_plan import MAX_EXTENT_I32 as MAX_STATIC
from cute_dialect.spaces import AddressSpace

if TYPE_CHECKING:
    from cute_dialect.lang.values.dtypes import NumericType
    from cute_dialect.lang.values.signature_types import Array

# ----------------------------------------------------------------------------------------------------------- raw arrays


VECTOR_BYTES = 16
"""Alignment of an aligned array, in bytes: the widest access of one thread."""


@lru_cache(maxsize=64)
def element_bytes(element: str) -> int:
    """Return the size of an element in memory, in bytes, from its MLIR type.

    >>> element_bytes("f16"), element_bytes("i1"), element_bytes("f8E4M3FN")
    (2, 1, 1)
    """
    digits = "".join(c for c in element.partition("E")[0] if c.isdigit())
    return max(8, int(digits)) // 8


@lru_cache(maxsize=64)
def type_of_element(dtype: str) -> NumericType:
    """Return the number type of an array's elements.

    >>> type_of_element("ui8"), type_of_element("bf16")
    (Uint8, BFloat16)
    """
    return type_of_mlir(dtype.removeprefix("u"), signed=not dtype.startswith("u"))


@lru_cache(maxsize=256)
def _is_array_type(kind: type) -> bool:
    return any(
        hasattr(kind, name) for name in ("__dlpack__", "__cuda_array_interface__")
    ) and not kind.__module__.startswith("cute_dialect.")


def is_array(value: object) -> bool:
    """Return True if ``value`` is an array of some library. NumPy scalars are not arrays."""
    return _is_array_type(type(value))


def leading_dimension(shape: tuple[int, ...], strides: tuple[int, ...]) -> int | None:
    """Return the last dimension of stride 1, or None. A dimension with several elements comes first.

    >>> leading_dimension((4, 8), (8, 1)), leading_dimension((8, 1), (1, 1)), leading_dimension((8, 8), (16, 2))
    (1, 1, None)
    """
    ones = [i for i, d in enumerate(strides) if d == 1]
    return ones[-1] if ones else None


def raw_type(view: ArrayView) -> str:
    """Return the memref type of a raw array."""
    return _raw_type(view.shape, view.strides, view.dtype, view.pointer % VECTOR_BYTES == 0)


@lru_cache(maxsize=4096)
def _raw_type(shape: tuple[int, ...], strides: tuple[int, ...], dtype: str, aligned: bool) -> str:
    size = element_bytes(dtype)
    lead = leading_dimension(shape, strides)
    per = VECTOR_BYTES // size
    used = [n > 1 and 0 not in shape for n in shape]
    whole = aligned and all(d % per == 0 for i, d in enumerate(strides) if i != lead and used[i])
    extents = ",".join("?" if n <= MAX_STATIC else "?{i64}" for n in shape)
    leaves: list[str] = []
    for i, d in enumerate(strides):
        if i == lead or (d == 0 and used[i]):
            leaves.append("1" if i == lead else "0")
            continue
        # Tile strides along a mode are computed at this leaf's width and do not exceed the extent of the mode in
        # memory.
        facts = [] if abs(d) * shape[i] < 1 << 31 else ["i64"]
        facts += [f"div={per}"] if whole and per > 1 else []
        leaves.append("?" + (f"{{{' '.join(facts)}}}" if facts else ""))
    align = f"align<{VECTOR_BYTES}>, " if whole else ""
    dtype = dtype.removeprefix("u")
    return f'!cute.memref<{dtype}, gmem, {align}"({extents}):({",".join(leaves)})">'


# ---------------------------------------------------------------------------------------------- tensors outside a trace


class SymInt:
    """A symbolic extent or stride, known at a call. All its uses must be equal."""

    __slots__ = ("divisibility", "name", "width")

    def __init__(self, divisibility: int = 1, width: int = 32, name: str | None = None):
        if width not in (32, 64):
            raise UsageError(f"SymInt: width must be 32 or 64, got {width}")
        self.divisibility = divisibility
        self.width = width
        self.name = name

    def __repr__(self) -> str:
        return self.name or f"?{{div={self.divisibility}}}"


def sym_int(divisibility: int = 1, width: int = 32) -> SymInt:
    """Return a new symbol for a number known at a call, which is a multiple of ``divisibility``."""
    return SymInt(divisibility, width)


def sym_int32(divisibility: int = 1) -> SymInt:
    """Return a new 32-bit symbol."""
    return SymInt(divisibility, 32)


def sym_int64(divisibility: int = 1) -> SymInt:
    """Return a new 64-bit symbol."""
    return SymInt(divisibility, 64)


class _Leaf:
    """A dynamic extent or stride."""

    __slots__ = ("div", "symbol", "width")

    def __init__(self, div: int = 1, width: int = 32, symbol: SymInt | None = None):
        self.div = div
        self.width = width
        self.symbol = symbol

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, _Leaf)
            and self.symbol is other.symbol
            and (self.div, self.width) == (other.div, other.width)
        )

    def __hash__(self) -> int:
        return hash((self.div, self.width))

    def __str__(self) -> str:
        facts = (["i64"] if self.width == 64 else []) + ([f"div={self.div}"] if self.div > 1 else [])
        return "?" + (f"{{{' '.join(facts)}}}" if facts else "")


class RuntimeTensor:
    """An array with marks of its static extents and strides. :func:`from_dlpack` creates it fully static."""

    __slots__ = ("_extents", "_strides", "alignment", "array", "dtype", "seen_as", "shape", "stride", "view")

    def __init__(
        self, view: ArrayView | None, dtype: NumericType, extents: Sequence[Any], strides: Sequence[Any], alignment: int
    ):
        self.view = view
        self.array: object = view.keep if view is not None else None
        self.seen_as = False
        self.dtype = dtype
        self.alignment = alignment
        self._extents = list(extents)
        self._strides = list(strides)
        self.shape: tuple[Any, ...] = tuple(_shown(e) for e in extents)
        self.stride: tuple[Any, ...] = tuple(_shown(d) for d in strides)

    @property
    def element_type(self) -> NumericType:
        """The element type. It may be set to another type of the same size."""
        return self.dtype

    @element_type.setter
    def element_type(self, dtype: object) -> None:
        kind = number_type(dtype)
        if self.view is not None:
            self.view = _seen_as(self.view, kind)
            self.seen_as = True
        elif kind.width != self.dtype.width:
            raise KernelTypeError(
                "F123", f"elements of {self.dtype!r} cannot be viewed as {kind!r}, which has a different size"
            )
        self.dtype = kind

    @property
    def leading_dim(self) -> int | None:
        """The last dimension of stride 1, or None. A dimension with several elements comes first."""
        return leading_dimension(self.shape, self.stride)

    @property
    def memspace(self) -> AddressSpace:
        """The memory space: always global memory."""
        return AddressSpace.gmem

    @property
    def type(self) -> str:
        """Its type in cute IR."""
        layout = f"({','.join(map(str, self._extents))}):({','.join(map(str, self._strides))})"
        align = f"align<{self.alignment}>, " if self.alignment > element_bytes(self.dtype.mlir_type) else ""
        return f'!cute.memref<{self.dtype.mlir_type}, gmem, {align}"{layout}">'

    @property
    def held(self) -> tuple[object, ...]:
        """Everything that determines its type, symbols and array address, for comparison in generated code."""
        return (self.dtype, self.alignment, self.seen_as, self._extents, self._strides)

    @property
    def symbols(self) -> list[tuple[int, bool, SymInt]]:
        """Its symbols, as (mode, True for a stride, symbol)."""
        return [
            (i, is_stride, leaf.symbol)
            for is_stride, leaves in ((False, self._extents), (True, self._strides))
            for i, leaf in enumerate(leaves)
            if isinstance(leaf, _Leaf) and leaf.symbol is not None
        ]

    @property
    def is_static(self) -> bool:
        """True if all extents and strides are static."""
        return not any(isinstance(leaf, _Leaf) for leaf in (*self._extents, *self._strides))

    def __repr__(self) -> str:
        return f"<tensor {self.type}>"

    def __deepcopy__(self, memo: object) -> RuntimeTensor:
        return self

    def mark_layout_dynamic(self, leading_dim: int | None = None) -> RuntimeTensor:
        """Make all extents and strides dynamic, except the stride 1 of the leading dimension. Returns the tensor
        itself.

        ``leading_dim`` defaults to the dimension of stride 1; if there are several, to the one with more than one
        element.
        """
        asked = leading_dim is not None
        if leading_dim is None:
            leading_dim = -1 if 0 in self.shape and 1 not in self.stride else self._leading()
        elif not -len(self.shape) <= leading_dim < len(self.shape):
            raise KernelTypeError(
                "F125", f"mark_layout_dynamic: leading_dim={leading_dim} is out of range for shape {self.shape}"
            )
        elif self.stride[leading_dim] != 1 and 0 not in self.shape:
            raise KernelTypeError(
                "F120",
                f"mark_layout_dynamic: leading_dim={leading_dim} must have stride 1, but the strides are {self.stride}",
            )
        empty = 0 in self.shape
        lead = leading_dim % len(self.shape) if self.shape and (1 in self.stride or asked) else -1
        self._extents = [_Leaf(width=_width(n, extent=True)) for n in self.shape]
        self._strides = [
            1 if i == lead else d if d == 0 and not empty else _Leaf(width=_width(d)) for i, d in enumerate(self.stride)
        ]
        return self

    def _leading(self) -> int:
        ones = [i for i, d in enumerate(self.stride) if d == 1]
        several = [i for i in ones if self.shape[i] != 1]
        if len(several) > 1 or not ones:
            which = "no" if not ones else "more than one"
            raise KernelTypeError(
                "F120", f"{which} dimension of shape {self.shape} and strides {self.stride} is contiguous",
                hint="use mark_layout_dynamic(leading_dim=…)" if ones else "use mark_dynamic(modes)",
            )  # fmt: skip
        return several[0] if several else ones[-1]

    def mark_compact_shape_dynamic(
        self, mode: int, stride_order: Sequence[int] | None = None, divisibility: int = 1, *,
        dim_order: Sequence[int] | None = None,
    ) -> RuntimeTensor:  # fmt: skip
        """Make one extent dynamic, as a multiple of ``divisibility``. The strides that depend on it become dynamic too.

        Args:
            mode: the dimension.
            stride_order: the rank of each dimension, 0 for the fastest. It is read as ``dim_order`` if only that
                reading matches the tensor's strides.
            divisibility: a divisor of the extent.
            dim_order: the dimensions from slowest to fastest, as torch's ``Tensor.dim_order()`` returns them.
        """
        rank = len(self.shape)
        mode = self._mode(mode)
        order = self._order(stride_order, dim_order)
        self._extents[mode] = self._dynamic_extent(mode, divisibility)
        step: Any = 1
        factor = 1
        for place in range(rank):
            i = order.index(place)
            self._strides[i] = step if isinstance(step, int) else _Leaf(factor, _width(self.stride[i]))
            extent = self._extents[i]
            factor *= extent.div if isinstance(extent, _Leaf) else extent
            step = None if step is None or isinstance(extent, _Leaf) else step * extent
        return self

    def _order(self, stride_order: Sequence[int] | None, dim_order: Sequence[int] | None) -> list[int]:
        rank = len(self.shape)
        if stride_order is not None:
            # CuTe DSL programs pass the dimensions from slowest to fastest. Only one reading can match the tensor's
            # strides, except for extents of 1.
            given = [int(n) for n in stride_order]
            reverse = [rank - 1 - given.index(i) if i in given else -1 for i in range(rank)]
            order = given if self._compact(given) or not self._compact(reverse) else reverse
        elif dim_order is not None:
            given = [int(n) for n in dim_order]
            order = [rank - 1 - given.index(i) if i in given else -1 for i in range(rank)]
        else:
            ranked = sorted(range(rank), key=lambda i: (self.stride[i], self.shape[i] != 1, -i))
            order = [ranked.index(i) for i in range(rank)]
        if sorted(order) != list(range(rank)):
            name, what = ("stride_order", stride_order) if stride_order is not None else ("dim_order", dim_order)
            raise KernelTypeError("F125", f"{name}={what} must name each of the {rank} dimensions once")
        if not self._compact(order):
            raise KernelTypeError(
                "F126", f"the tensor of shape {self.shape} and strides {self.stride} is not compact in this order",
                hint="use mark_layout_dynamic() or mark_dynamic(modes)",
            )  # fmt: skip
        return order

    def _compact(self, order: list[int]) -> bool:
        """Return True if the tensor is compact with dimensions of these ranks, 0 the fastest.

        A tensor without elements is compact in every order, because none of its strides is used.
        """
        if 0 in self.shape:
            return sorted(order) == list(range(len(self.shape)))
        step = 1
        for place in range(len(self.shape)):
            i = order.index(place) if place in order else -1
            if i < 0 or (self.shape[i] != 1 and self.stride[i] != step):
                return False
            step *= self.shape[i]
        return True

    def mark_dynamic(self, modes: int | Sequence[int], divisibility: int = 1) -> RuntimeTensor:
        """Make the extents and strides of these dimensions dynamic. A stride of 0 or 1 stays static."""
        for mode in [modes] if isinstance(modes, int) else modes:
            mode = self._mode(mode)
            self._extents[mode] = self._dynamic_extent(mode, divisibility)
            if self.stride[mode] not in (0, 1):
                self._strides[mode] = _Leaf(width=_width(self.stride[mode]))
        return self

    def mark_static(self, modes: int | Sequence[int]) -> RuntimeTensor:
        """Make the extents and strides of these dimensions static."""
        for mode in [modes] if isinstance(modes, int) else modes:
            mode = self._mode(mode)
            self._extents[mode] = self.shape[mode]
            self._strides[mode] = self.stride[mode]
        return self

    def _mode(self, mode: int) -> int:
        if not -len(self.shape) <= mode < len(self.shape):
            raise KernelTypeError("F125", f"dimension {mode} is out of range for shape {self.shape}")
        return mode % len(self.shape)

    def _dynamic_extent(self, mode: int, divisibility: int) -> _Leaf:
        n = self.shape[mode]
        if divisibility < 1 or (isinstance(n, int) and n % divisibility):
            raise KernelTypeError(
                "F127", f"dimension {mode} has {n} elements, which is not a multiple of divisibility={divisibility}"
            )
        return _Leaf(divisibility, _width(n, extent=True))


def _shown(leaf: Any) -> Any:
    return (leaf.symbol or leaf) if isinstance(leaf, _Leaf) else leaf


def _width(n: Any, *, extent: bool = False) -> int:
    if not isinstance(n, int):
        return n.width if isinstance(n, SymInt | _Leaf) else 32
    return 32 if -(1 << 31) <= n <= (MAX_STATIC if extent else (1 << 31) - 1) else 64


def number_type(dtype: object, *, what: str = "dtype") -> NumericType:
    """Return the number type for a type of this package, torch or NumPy, or for a name."""
    if isinstance(dtype, NumericType):
        return dtype
    name = str(getattr(dtype, "name", dtype)).removeprefix("torch.")
    for kind in NUMBER_TYPES.values():
        if name in (kind.numpy, kind.torch) and kind.__name__ != "TFloat32":
            return kind
    for kind in NUMBER_TYPES.values():
        if name == kind.mlir_type or name.lower() == kind.__name__.lower():
            return kind
    raise KernelTypeError("F123", f"{what}: {dtype!r} is not an element type")


def from_dlpack(
    array: Array, assumed_align: int | None = None, *, dtype: object = None, enable_tvm_ffi: bool = False, **_: object
) -> RuntimeTensor:
    """Return a tensor over an array (of torch, numpy, cupy, jax, …). It is fully static until it is marked otherwise.

    An extent of 0 is dynamic, because layouts have no static extent of 0.  A fake tensor of torch, or one on its device
    "meta", gives a tensor without memory, for ``cute.compile``.

    Args:
        array: the array.
        assumed_align: the alignment of the address in bytes, checked at each launch; by default 16 if the address has
            it, else the element size.
        dtype: another element type of the same size, for types that the library lacks. ``Float4E2M1FN`` views an
            array of bytes as two elements per byte, consecutive along its dimension of stride 1.
        enable_tvm_ffi: ignored; accepted for compatibility.
    """
    if isinstance(array, RuntimeTensor):
        return array
    # a torch tensor without memory
    if type(array).__name__ == "FakeTensor" or getattr(array, "is_meta", False) is True:
        fake: Any = array
        shape, stride = ([int(n) for n in ns] for ns in (fake.shape, fake.stride()))
        return make_fake_tensor(fake.dtype if dtype is None else dtype, shape, stride, assumed_align)
    try:
        view = view_of(array)
    except NotAnArray as e:
        raise KernelTypeError("F122", str(e)) from None
    kind = type_of_element(view.dtype) if dtype is None else number_type(dtype)
    seen = view
    if kind is Float4E2M1FN:
        try:
            seen = as_packed(view)
        except NotAnArray as e:
            raise KernelTypeError("F123", str(e)) from None
    elif dtype is not None:
        seen = view = _seen_as(view, kind)
    size = element_bytes(view.dtype)
    alignment = assumed_align or (VECTOR_BYTES if view.pointer % VECTOR_BYTES == 0 else size)
    made = RuntimeTensor(view, kind, [n or _Leaf() for n in seen.shape], seen.strides, alignment)
    made.shape = tuple(seen.shape)
    made.seen_as = dtype is not None
    return made


def _seen_as(view: ArrayView, kind: NumericType) -> ArrayView:
    if element_bytes(kind.mlir_type) != element_bytes(view.dtype) or kind.width < 8:
        raise KernelTypeError(
            "F123", f"elements of {view.dtype} cannot be viewed as {kind!r}, which has a different size"
        )
    return view._replace(dtype=kind.mlir_type)


def _leaf(n: Any, what: str) -> Any:
    if isinstance(n, SymInt):
        return _Leaf(n.divisibility, n.width, n)
    if isinstance(n, int):
        return n if n or what != "extents" else _Leaf()  # Layouts have no static extent of 0.
    raise KernelTypeError("F125", f"{what} of a fake tensor must be integers or symbols (cute.sym_int()), got {n!r}")


def make_fake_tensor(
    dtype: object,
    shape: Sequence[int | SymInt],
    stride: Sequence[int | SymInt],
    assumed_align: int | None = None,
    **_: object,
) -> RuntimeTensor:
    """Return a tensor without memory, for ``cute.compile``. Extents and strides are integers or symbols."""
    kind = number_type(dtype)
    if len(shape) != len(stride):
        raise KernelTypeError("F125", f"make_fake_tensor: shape has {len(shape)} extents but stride has {len(stride)}")
    extents, strides = [_leaf(n, "extents") for n in shape], [_leaf(d, "strides") for d in stride]
    return RuntimeTensor(None, kind, extents, strides, assumed_align or element_bytes(kind.mlir_type))


def make_fake_compact_tensor(
    dtype: object,
    shape: Sequence[int | SymInt],
    stride_order: Sequence[int] | None = None,
    assumed_align: int | None = None,
    **_: object,
) -> RuntimeTensor:
    """Return a compact tensor without memory, for ``cute.compile``.

    ``stride_order`` is the rank of each dimension, 0 for the fastest; by default the first dimension is the fastest.
    """
    kind = number_type(dtype)
    rank = len(shape)
    order = list(range(rank)) if stride_order is None else [int(n) for n in stride_order]
    if sorted(order) != list(range(rank)):
        raise KernelTypeError("F125", f"stride_order={stride_order} must name each of the {rank} dimensions once")
    extents = [_leaf(n, "extents") for n in shape]
    strides: list[Any] = [0] * rank
    step: int | None = 1
    factor, width = 1, 32
    for place in range(rank):
        i = order.index(place)
        extent = extents[i]
        strides[i] = step if step is not None else _Leaf(factor, width)
        if isinstance(extent, _Leaf):
            step, factor, width = None, factor * extent.div, max(width, extent.width)
        else:
            step, factor = None if step is None else step * extent, factor * extent
    return RuntimeTensor(None, kind, extents, strides, assumed_align or element_bytes(kind.mlir_type))


class FakeStream:
    """Placeholder for a stream given at the call."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "<a stream>"


def make_fake_stream(**_: object) -> FakeStream:
    """Return a placeholder for a stream in ``cute.compile``."""
    return FakeStream()


class RuntimePointer:
    """An address with an element type."""

    __slots__ = ("address", "alignment", "dtype", "space")

    def __init__(self, dtype: NumericType, address: object, space: str, alignment: int):
        self.dtype = dtype
        self.address = address
        self.space = space
        self.alignment = alignment

    @property
    def type(self) -> str:
        """Its type in cute IR."""
        align = f", align<{self.alignment}>" if self.alignment > element_bytes(self.dtype.mlir_type) else ""
        return f"!cute.ptr<{self.dtype.mlir_type}, {self.space}{align}>"

    def __repr__(self) -> str:
        return f"<{self.type}>"


def make_ptr(
    dtype: object, value: Any, mem_space: object = "gmem", *, assumed_align: int | None = None
) -> RuntimePointer:
    """Return a pointer argument. ``value`` is an address, or an array whose address is used."""
    kind = number_type(dtype)
    space = str(mem_space)
    if space not in (AddressSpace.gmem, AddressSpace.generic):
        raise KernelTypeError("F125", f"make_ptr: a pointer argument must point to global memory, got {space}")
    return RuntimePointer(kind, value, AddressSpace.gmem, assumed_align or element_bytes(kind.mlir_type))
