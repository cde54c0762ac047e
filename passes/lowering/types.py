"""Lowered types: an SSA value of a cute type keeps only its dynamic leaves.

Number types that LLVM lacks become types of their width: an 8-bit float becomes ``i8``, ``tf32`` becomes ``f32``.
Integers become signless, and vectors change their element type.

A single leaf is represented by itself, any other number of leaves by a literal struct:

>>> # shape<"(?,(8,?{i64}))">      !llvm.struct<(i32, i64)>
>>> # layout<"(?,5):(5,1)">        !llvm.struct<(i32, struct<()>)>
>>> # memref<f32, gmem, "(?,?):(?,1)">   !llvm.struct<(ptr<1>, struct<(struct<(i32, i32)>, i32)>)>
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import cast

from xdsl.dialects.builtin import (
    BFloat16Type,
    Float16Type,
    Float32Type,
    Float64Type,
    FunctionType,
    IndexType,
    IntegerType,
    NoneType,
    Signedness,
    VectorType,
    f32,
    i8,
)
from xdsl.ir import Attribute

from cute_dialect.algebra.leaf import Dyn
from cute_dialect.algebra.trees import leaves, tree_leaves
from cute_dialect.algebra.values import Basis, ComposedLayout, Layout, Payload, Swizzle, Tile
from cute_dialect.dialect.atom_types import AtomType, TiledType, is_tensor_map
from cute_dialect.dialect.memory_types import ConstrainedIntType, CoordTensorType, MemRefType, PtrType
from cute_dialect.dialect.types import CuteType
from cute_dialect.spaces import AddressSpace
from cute_dialect.upstream.llvm_types import LLVMFunctionType, LLVMPointerType, LLVMStructType, LLVMVoidType

Path = tuple[int, ...]
"""Position of a leaf in a lowered value: indices of ``llvm.extractvalue``; empty if the value is the leaf."""


NARROW_FLOATS: dict[str, Attribute] = {
    "tf32": f32, "f8E4M3FN": i8, "f8E5M2": i8, "f8E8M0FNU": i8, "f6E2M3FN": IntegerType(6),
    "f6E3M2FN": IntegerType(6), "f4E2M1FN": IntegerType(4),
}  # fmt: skip
"""Element types that LLVM lacks, and the types that hold their bits."""


def struct(types: Sequence[Attribute]) -> LLVMStructType:
    """Return the literal struct type of these members."""
    return LLVMStructType(types)


def pointer(space: AddressSpace) -> LLVMPointerType:
    """Return the pointer type of a memory space."""
    return LLVMPointerType(space.llvm)


def _dynamic(tree: Payload) -> list[Dyn]:
    found: list[Dyn] = []
    for leaf in leaves(tree):
        value = leaf.value if isinstance(leaf, Basis) else leaf
        if isinstance(value, Dyn):
            found.append(value)
    return found


def _pack(types: list[Attribute]) -> Attribute:
    return types[0] if len(types) == 1 else struct(types)


def _tree(tree: Payload) -> Attribute:
    return _pack([integer(d.width) for d in _dynamic(tree)])


def _value(payload: Payload) -> Attribute:
    if isinstance(payload, Layout):
        return struct([_tree(payload.shape), _tree(payload.stride)])
    if isinstance(payload, ComposedLayout):
        return struct([_value(payload.outer), _tree(payload.offset), _value(payload.inner)])
    if isinstance(payload, Swizzle):
        return struct([])
    return _tree(payload)


def _tile_layouts(tile: Payload) -> list[Layout]:
    return [x for x in tree_leaves(cast("Tile", tile)) if isinstance(x, Layout)]


_UNCHANGED = frozenset({
    IndexType, NoneType, Float16Type, BFloat16Type, Float32Type, Float64Type,
    LLVMPointerType, LLVMStructType, LLVMVoidType,
})  # fmt: skip
"""Classes of types that stay unchanged."""


def lowered(attribute: Attribute) -> Attribute:
    """Return the lowered form of a type; a type that LLVM can represent is unchanged."""
    kind = type(attribute)
    if kind in _UNCHANGED:
        return attribute
    if kind is IntegerType:
        number = cast("IntegerType[int, Signedness]", attribute)
        return number if number.signedness.data is Signedness.SIGNLESS else integer(number.width.data)
    return _lowered(attribute)


@lru_cache(maxsize=256)
def integer(width: int) -> IntegerType:
    return IntegerType(width)


@lru_cache(maxsize=4096)
def vector(element: Attribute, n: int) -> VectorType[Attribute]:
    return VectorType(element, [n])


@lru_cache(maxsize=4096)
def _lowered(attribute: Attribute) -> Attribute:
    if isinstance(attribute, CuteType):
        if attribute.kind == "tile":
            return _pack([_value(layout) for layout in _tile_layouts(attribute.data)])
        return _value(attribute.data)
    if isinstance(attribute, ConstrainedIntType):
        return integer(attribute.width)
    if isinstance(attribute, PtrType):
        return pointer(attribute.data.space)
    if isinstance(attribute, MemRefType):
        return struct([pointer(attribute.space), _value(attribute.layout)])
    if isinstance(attribute, CoordTensorType):
        return struct([_tree(attribute.data.iter), _value(attribute.layout)])
    if is_tensor_map(attribute):
        return LLVMPointerType()  # pointer to the 128 bytes of the tensor map
    if isinstance(attribute, AtomType | TiledType):
        return struct([])
    if isinstance(attribute, VectorType):
        held = cast("VectorType[Attribute]", attribute)
        element = lowered(held.element_type)
        return held if element == held.element_type else VectorType(element, held.get_shape())
    if attribute.name in NARROW_FLOATS:
        return NARROW_FLOATS[attribute.name]
    if isinstance(attribute, FunctionType):
        return FunctionType.from_lists([lowered(t) for t in attribute.inputs], [lowered(t) for t in attribute.outputs])
    if isinstance(attribute, LLVMFunctionType):
        inputs = [lowered(t) for t in attribute.inputs]
        return LLVMFunctionType(inputs, lowered(attribute.output), is_variadic=attribute.is_variadic)
    return attribute


def is_cute(attribute: Attribute) -> bool:
    """Return True if the type belongs to a cute dialect."""
    return attribute.name.startswith(("cute.", "cute_nvgpu."))


def is_empty(attribute: Attribute) -> bool:
    """Return True if a lowered type is an empty struct or a struct of empty structs."""
    return isinstance(attribute, LLVMStructType) and all(is_empty(t) for t in attribute.types)


def _tree_paths(tree: Payload, prefix: Path) -> list[Path]:
    n = len(_dynamic(tree))
    return [prefix] if n == 1 else [(*prefix, i) for i in range(n)]


def _value_paths(payload: Payload, prefix: Path) -> list[Path]:
    if isinstance(payload, Layout):
        return _tree_paths(payload.shape, (*prefix, 0)) + _tree_paths(payload.stride, (*prefix, 1))
    if isinstance(payload, ComposedLayout):
        return (
            _value_paths(payload.outer, (*prefix, 0))
            + _tree_paths(payload.offset, (*prefix, 1))
            + _value_paths(payload.inner, (*prefix, 2))
        )
    if isinstance(payload, Swizzle):
        return []
    return _tree_paths(payload, prefix)


@lru_cache(maxsize=4096)
def leaf_paths(attribute: Attribute) -> tuple[Path, ...]:
    """Return the path of each dynamic leaf of a cute value in the lowered value, in storage order.

    For tensors, the leaves of the iterator (coordinate tensors only) precede those of the layout.  The pointer of a
    memref is at ``(0,)`` and not included.
    """
    if isinstance(attribute, MemRefType):
        return tuple(_value_paths(attribute.layout, (1,)))
    if isinstance(attribute, CoordTensorType):
        return tuple(_tree_paths(attribute.data.iter, (0,)) + _value_paths(attribute.layout, (1,)))
    assert isinstance(attribute, CuteType)
    if attribute.kind != "tile":
        return tuple(_value_paths(attribute.data, ()))
    layouts = _tile_layouts(attribute.data)
    if len(layouts) == 1:
        return tuple(_value_paths(layouts[0], ()))
    return tuple(p for i, layout in enumerate(layouts) for p in _value_paths(layout, (i,)))
