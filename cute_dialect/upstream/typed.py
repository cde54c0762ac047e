"""Typed access to xDSL's generic attributes: element types, widths, shapes and numbers of dense arrays."""

from collections.abc import Sequence
from typing import TypeGuard, TypeVar, cast

from xdsl.dialects.builtin import (
    ArrayAttr,
    DenseArrayBase,
    IntegerAttr,
    IntegerType,
    MemRefType,
    Signedness,
    TensorType,
    VectorType,
)
from xdsl.ir import Attribute

Vector = VectorType[Attribute]
T = TypeVar("T")


def is_vector(t: Attribute | None) -> TypeGuard[Vector]:
    """Return True if `t` is a vector type."""
    return isinstance(t, VectorType)


def element_type(t: Attribute) -> Attribute | None:
    """Return the element type of a vector, tensor or memref, or None for another type."""
    if isinstance(t, VectorType | TensorType | MemRefType):
        return cast("Vector", t).element_type
    return None


def scalar_type(t: Attribute) -> Attribute:
    """Return the element type of a vector or tensor, or the type itself."""
    return cast("Vector", t).element_type if isinstance(t, VectorType | TensorType) else t


def width(t: Attribute) -> int | None:
    """Return the width in bits of a signless integer type, or None for another type."""
    if not isinstance(t, IntegerType):
        return None
    integer = cast("IntegerType[int, Signedness]", t)
    return integer.width.data if integer.signedness.data == Signedness.SIGNLESS else None


def vector(element: Attribute, shape: Sequence[int], like: Vector | None = None) -> Vector:
    """Build a vector type of `shape`, with the scalable dimensions of `like`."""
    return VectorType(element, shape, None if like is None else like.scalable_dims)


def numbers(attribute: Attribute | None) -> tuple[int, ...]:
    """Return the integers of a dense array, or an empty tuple for another attribute."""
    if not isinstance(attribute, DenseArrayBase):
        return ()
    return tuple(cast("DenseArrayBase[IntegerType]", attribute).iter_values())


def number(attribute: Attribute | None) -> int:
    """Return the value of an integer attribute, or 0 for another attribute or None."""
    return cast("IntegerAttr[IntegerType]", attribute).value.data if isinstance(attribute, IntegerAttr) else 0


def items(attribute: Attribute | None) -> tuple[Attribute, ...]:
    """Return the elements of an array attribute, or an empty tuple for another attribute."""
    return tuple(cast("ArrayAttr[Attribute]", attribute).data) if isinstance(attribute, ArrayAttr) else ()
