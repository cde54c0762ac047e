"""Types as lists of leaves; each leaf is one numpy array over lanes.

A struct or array type is flattened to its leaves; an empty struct has none. `llvm.insertvalue` and `llvm.extractvalue`
therefore only rename slots, and cost nothing at run time. A vector is one leaf, an array of shape `(lanes, d0, …)`.
Sizes and alignments follow the NVPTX data layout: an `i1` takes a byte and a pointer 8 bytes. A vector is aligned to
its size rounded up to a power of two, and `vector<Nxi1>` is packed to bits.

Example: `!llvm.struct<(ptr<1>, struct<(struct<()>, i32)>)>` has the leaves `ptr<1>` at byte 0 and `i32` at byte 8,
size 16.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, cast

import ml_dtypes
import numpy as np

from cute_dialect.interp.errors import InterpError

if TYPE_CHECKING:
    from xdsl.ir import Attribute

MAX_LEAVES = 1 << 14

_FLOATS: dict[str, np.dtype[Any]] = {
    "f16": np.dtype(np.float16),
    "f32": np.dtype(np.float32),
    "f64": np.dtype(np.float64),
    "bf16": np.dtype(ml_dtypes.bfloat16),
    "f8E4M3FN": np.dtype(ml_dtypes.float8_e4m3fn),
    "f8E5M2": np.dtype(ml_dtypes.float8_e5m2),
    "f8E8M0FNU": np.dtype(ml_dtypes.float8_e8m0fnu),
    "f6E2M3FN": np.dtype(ml_dtypes.float6_e2m3fn),
    "f6E3M2FN": np.dtype(ml_dtypes.float6_e3m2fn),
    "f4E2M1FN": np.dtype(ml_dtypes.float4_e2m1fn),
}
_INTS = {8: np.dtype(np.int8), 16: np.dtype(np.int16), 32: np.dtype(np.int32), 64: np.dtype(np.int64)}
_UINTS = {8: np.dtype(np.uint8), 16: np.dtype(np.uint16), 32: np.dtype(np.uint32), 64: np.dtype(np.uint64)}


class Leaf:
    """A scalar or vector type.

    - kind: "i" integer (also index), "f" float, "p" pointer
    - width: bits per element; space: address space of a pointer
    - shape: () for a scalar
    - dtype: numpy type of an element in a register; size: bytes in memory; align: ABI alignment in bytes
    """

    __slots__ = ("align", "dtype", "kind", "name", "shape", "size", "space", "width")

    def __init__(
        self, kind: str, width: int, dtype: np.dtype[Any], name: str, shape: tuple[int, ...] = (), space: int = 0
    ) -> None:
        self.kind = kind
        self.width = width
        self.dtype = dtype
        self.name = name
        self.shape = shape
        self.space = space
        count = 1
        for s in shape:
            count *= s
        if shape and kind == "i" and width in (1, 4, 6):
            self.size = (count * width + 7) // 8
        else:
            self.size = count * dtype.itemsize
        self.align = 1
        while self.align < self.size:
            self.align *= 2

    @property
    def count(self) -> int:
        """Number of elements."""
        n = 1
        for s in self.shape:
            n *= s
        return n

    @property
    def unsigned(self) -> np.dtype[Any]:
        """The unsigned integer type of the same size."""
        return _UINTS[self.dtype.itemsize * 8]

    def scalar(self) -> Leaf:
        """Return the leaf of one element."""
        return Leaf(self.kind, self.width, self.dtype, self.name, (), self.space)

    def __repr__(self) -> str:
        if self.shape:
            return f"vector<{'x'.join(map(str, self.shape))}x{self.name}>"
        return self.name


class Type:
    """A type as leaves with byte offsets.

    `children` are the fields of a struct, at the byte offsets `starts`, or the elements of an array.
    """

    __slots__ = ("align", "children", "leaves", "offsets", "size", "starts", "text")

    def __init__(
        self,
        leaves: tuple[Leaf, ...],
        offsets: tuple[int, ...],
        size: int,
        align: int,
        children: tuple[Type, ...],
        text: str,
        starts: tuple[int, ...] = (),
    ) -> None:
        self.leaves = leaves
        self.offsets = offsets
        self.size = size
        self.align = align
        self.children = children
        self.text = text
        self.starts = starts

    @property
    def leaf(self) -> Leaf:
        """The only leaf of a scalar or vector type."""
        if len(self.leaves) != 1 or self.children:
            raise InterpError("unsupported", f"{self.text} is not supported here; use a scalar or vector type")
        return self.leaves[0]


def round_up(n: int, align: int) -> int:
    """Round `n` up to a multiple of `align`."""
    return (n + align - 1) // align * align


def int_leaf(width: int) -> Leaf:
    """Return the leaf of `i<width>`, 1 ≤ width ≤ 64."""
    if width == 1:
        return Leaf("i", 1, np.dtype(np.bool_), "i1")
    for w in (8, 16, 32, 64):
        if width <= w:
            return Leaf("i", width, _INTS[w], f"i{width}")
    raise InterpError("unsupported", f"i{width} is not supported; integers have at most 64 bits")


def float_leaf(name: str) -> Leaf:
    """Return the leaf of a float type by its MLIR name, such as `bf16`."""
    dtype = _FLOATS.get(name)
    if dtype is None:
        raise InterpError("unsupported", f"float type {name} is not supported; supported: {', '.join(_FLOATS)}")
    return Leaf("f", dtype.itemsize * 8, dtype, name)


def has_float(name: str) -> bool:
    """Return True if the float type is supported."""
    return name in _FLOATS


def _number(v: object) -> int:
    """Return an integer parameter, plain or wrapped in an attribute."""
    data = getattr(v, "data", v)
    return data if isinstance(data, int) else 0


def _attributes(v: object) -> tuple[Attribute, ...]:
    """Return a list of type parameters, plain or wrapped in an attribute."""
    return tuple(cast("Sequence[Attribute]", getattr(v, "data", v)))


def struct_fields(attr: Attribute) -> tuple[Attribute, ...]:
    """Return the field types of an `!llvm.struct`, either xDSL's class or ours."""
    return _attributes(getattr(attr, "types", ()))


def array_parts(attr: Attribute) -> tuple[int, Attribute]:
    """Return (number of elements, element type) of an `!llvm.array`."""
    element = getattr(attr, "element_type", None)
    if element is None:
        element = getattr(attr, "type", None)
    return _number(getattr(attr, "size", 0)), cast("Attribute", element)


def element_of(attr: Attribute) -> Attribute:
    """Return the element type of an array or vector."""
    return array_parts(attr)[1]


@lru_cache(maxsize=4096)
def type_of(attr: Attribute) -> Type:
    """Return the leaves of an MLIR type. Raises InterpError for a type that lowered kernels do not use."""
    name = attr.name
    if name == "integer_type":
        return _single(int_leaf(_number(getattr(attr, "width", 0))))
    if name == "index":
        return _single(Leaf("i", 64, _INTS[64], "index"))
    if has_float(name):
        return _single(float_leaf(name))
    if name == "llvm.ptr":
        space = _number(getattr(attr, "addr_space", 0))
        return _single(Leaf("p", 64, _INTS[64], f"!llvm.ptr<{space}>" if space else "!llvm.ptr", (), space))
    if name == "vector":
        elem = type_of(element_of(attr)).leaf
        shape = tuple(_number(d) for d in _attributes(getattr(attr, "shape", ())))
        if elem.kind == "i" and elem.width not in (1, 4, 6) and elem.width != elem.dtype.itemsize * 8:
            raise InterpError(
                "unsupported", f"{attr} is not supported; vector integers have 1, 4, 6, 8, 16, 32 or 64 bits"
            )
        return _single(Leaf(elem.kind, elem.width, elem.dtype, elem.name, shape, elem.space))
    if name == "llvm.struct":
        packed = getattr(attr, "packed", False) is True
        return _struct([type_of(t) for t in struct_fields(attr)], str(attr), packed)
    if name == "llvm.array":
        n, element = array_parts(attr)
        elem_type = type_of(element)
        stride = round_up(elem_type.size, elem_type.align)
        if n * len(elem_type.leaves) > MAX_LEAVES:
            return Type((), (), n * stride, elem_type.align, (), str(attr))
        leaves = elem_type.leaves * n
        offsets = tuple(i * stride + o for i in range(n) for o in elem_type.offsets)
        return Type(leaves, offsets, n * stride, elem_type.align, (elem_type,) * n, str(attr))
    if name in ("llvm.void", "none"):
        return Type((), (), 0, 1, (), name)
    raise InterpError("unsupported", f"type {attr} is not supported; use integer, float, vector and llvm types")


def size_of(attr: Attribute) -> tuple[int, int]:
    """Return (bytes, alignment) of a type in memory, without flattening a large array."""
    if attr.name == "llvm.array":
        n, element = array_parts(attr)
        size, align = size_of(element)
        return n * round_up(size, align), align
    t = type_of(attr)
    return t.size, t.align


def stride_of(attr: Attribute) -> int:
    """Return the distance between consecutive elements in bytes, as used by `llvm.getelementptr`."""
    size, align = size_of(attr)
    return round_up(size, align)


def _single(leaf: Leaf) -> Type:
    return Type((leaf,), (0,), leaf.size, leaf.align, (), repr(leaf))


def _struct(fields: list[Type], text: str, packed: bool) -> Type:
    leaves: list[Leaf] = []
    offsets: list[int] = []
    at, align = 0, 1
    starts: list[int] = []
    for f in fields:
        if not packed:
            at = round_up(at, f.align)
            align = max(align, f.align)
        starts.append(at)
        leaves.extend(f.leaves)
        offsets.extend(at + o for o in f.offsets)
        at += f.size
    if len(leaves) > MAX_LEAVES:
        raise InterpError("unsupported", f"{text[:80]} has {len(leaves)} scalars; at most {MAX_LEAVES} are supported")
    return Type(tuple(leaves), tuple(offsets), round_up(at, align), align, tuple(fields), text, tuple(starts))
