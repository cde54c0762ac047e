"""Type constraints of upstream ops, from the English summaries of its declarations; typed access to attributes.

    accepts("signless-integer-like", type)      an integer or index, or a vector or tensor of them
    accepts("32-bit signless integer or 32-bit float", type)

An unknown phrase accepts every type, because upstream checks the constraint again.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import ClassVar, TypeGuard, TypeVar, cast

from xdsl.dialects.builtin import (
    AnyFloat,
    ArrayAttr,
    BFloat16Type,
    DenseArrayBase,
    IndexType,
    IntegerAttr,
    IntegerType,
    MemRefType,
    Signedness,
    TensorType,
    UnrankedMemRefType,
    VectorType,
)
from xdsl.ir import Attribute

Vector = VectorType[Attribute]
T = TypeVar("T")


def is_vector(t: Attribute | None) -> TypeGuard[Vector]:
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


Check = Callable[[Attribute], bool]


def _signless(t: Attribute) -> bool:
    return width(t) is not None


def _float(t: Attribute) -> bool:
    return isinstance(t, AnyFloat)


def _like(scalar: Check) -> Check:
    """Return the check for a scalar, or a vector or tensor of such scalars."""

    def check(t: Attribute) -> bool:
        return scalar(scalar_type(t))

    return check


def _signless_or_index(t: Attribute) -> bool:
    return _signless(t) or isinstance(t, IndexType)


def _bit(t: Attribute) -> bool:
    return width(t) == 1


def _named(*names: str) -> Check:
    """Return the check for types by name: in ``xdsl-opt``, types of ``llvm`` have xDSL's classes."""
    return lambda t: t.name in names


def _address_space(t: Attribute) -> int:
    """Return the address space of an LLVM pointer: a number, or an attribute in xDSL's class."""
    space: object = getattr(t, "addr_space", 0)
    return space if isinstance(space, int) else getattr(space, "data", 0)


def _memref(t: Attribute) -> bool:
    return isinstance(t, MemRefType)


_PHRASES: Mapping[str, Check] = {
    "signless integer": _signless,
    "integer": lambda t: isinstance(t, IntegerType),
    "Integer": _signless,
    "index": lambda t: isinstance(t, IndexType),
    "floating-point": _float,
    "Float": _float,
    "float": _float,
    "floating point LLVM type": _float,
    "bfloat16 type": lambda t: isinstance(t, BFloat16Type),
    "signless-integer-like": _like(_signless_or_index),
    "signless-fixed-width-integer-like": _like(_signless),
    "floating-point-like": _like(_float),
    "bool-like": _like(_bit),
    "LLVM pointer type": _named("llvm.ptr"),
    "LLVM structure type": _named("llvm.struct"),
    "LLVM struct type": _named("llvm.struct"),
    "LLVM aggregate type": _named("llvm.struct", "llvm.array"),
    "LLVM dialect-compatible vector type": lambda t: isinstance(t, VectorType),
    "LLVM dialect-compatible vector of floating-point": lambda t: is_vector(t) and _float(t.element_type),
    "vector of any type values": lambda t: isinstance(t, VectorType),
    "memref of any type values": _memref,
    "strided memref of any type values": _memref,
    "ranked or unranked memref of any type values": lambda t: isinstance(t, MemRefType | UnrankedMemRefType),
    "memref of signless-integer": lambda t: _memref(t) and _signless(element_type(t) or t),
}


def _numbered(phrase: str) -> Check | None:
    """Return the check for a phrase that contains a number: a width, an address space or a vector length."""
    if m := re.fullmatch(r"(\d+)-bit signless integer", phrase):
        return lambda t: width(t) == int(m[1])
    if m := re.fullmatch(r"(\d+)-bit float", phrase):
        return lambda t: isinstance(t, AnyFloat) and t.bitwidth == int(m[1]) and not isinstance(t, BFloat16Type)
    if m := re.fullmatch(r"LLVM pointer in address space (\d+)", phrase):
        return lambda t: t.name == "llvm.ptr" and _address_space(t) == int(m[1])
    if m := re.fullmatch(
        r"(?:LLVM dialect-compatible )?(?:fixed-length )?vector of (.+?)(?: values)?(?: of length ([\d/]+))?", phrase
    ):
        inner = _one(m[1])
        lengths = [int(n) for n in (m[2] or "").split("/") if n]
        if inner is not None:
            return lambda t: is_vector(t) and inner(t.element_type) and (not lengths or t.get_shape()[-1] in lengths)
    return None


def _one(phrase: str) -> Check | None:
    return _PHRASES.get(phrase) or _numbered(phrase)


class _Cache:
    checks: ClassVar[dict[str, Check]] = {}


def _anything(t: Attribute) -> bool:
    return True


def _compile(summary: str) -> Check:
    whole = _one(summary)
    if whole is not None:
        return whole
    checks = [_one(phrase) for phrase in summary.split(" or ")]
    known = [c for c in checks if c is not None]
    if len(known) < len(checks):
        return _anything
    return lambda t: any(check(t) for check in known)


def accepts(summary: str, type_: Attribute) -> bool:
    """Return True if `type_` satisfies the constraint with upstream's `summary`."""
    if summary not in _Cache.checks:
        _Cache.checks[summary] = _compile(summary)
    return _Cache.checks[summary](type_)
