"""Rows of the table of machine-level ops: operands, result, properties and source of each op."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import NamedTuple, TypeAlias, cast

from xdsl.dialects.builtin import IntegerAttr, StringAttr, UnitAttr, VectorType, i1, i32
from xdsl.ir import Attribute

from cute_dialect.dialect.memory_types import ConstrainedIntType, PtrType, element_bits, is_barrier
from cute_dialect.spaces import AddressSpace


class Words(NamedTuple):
    """String property with a fixed set of values. It is required unless there is a default."""

    name: str
    allowed: tuple[str, ...]
    default: str | None = None

    def check(self, value: Attribute | None) -> str | None:
        """Return the error message for an invalid attribute, or None."""
        if value is None and self.default is not None:
            return None
        if isinstance(value, StringAttr) and value.data in self.allowed:
            return None
        return f"property {self.name} is {shown(value)}; use one of {', '.join(repr(w) for w in self.allowed)}"


def i32_value(value: Attribute | None) -> int | None:
    """Return the value of an ``i32`` attribute, or None for any other attribute."""
    if not isinstance(value, IntegerAttr):
        return None
    number = cast("IntegerAttr", value)
    return number.value.data if number.type == i32 else None


class Number(NamedTuple):
    """``i32`` property. It is required unless there is a default.

    ``fits`` returns True for allowed values; ``what`` describes them in error messages.
    """

    name: str
    what: str
    fits: Callable[[int], bool]
    default: int | None = None

    def check(self, value: Attribute | None) -> str | None:
        """Return the error message for an invalid attribute, or None."""
        if value is None and self.default is not None:
            return None
        number = i32_value(value)
        if number is not None and self.fits(number):
            return None
        return f"property {self.name} is {shown(value)}; use {self.what} (i32)"


class Flag(NamedTuple):
    """Optional flag, written alone or as ``true`` or ``false``."""

    name: str

    def check(self, value: Attribute | None) -> str | None:
        """Return the error message for an invalid attribute, or None."""
        if value is None or isinstance(value, UnitAttr) or value in _TRUTH:
            return None
        return f"property {self.name} is {shown(value)}; write {self.name} alone, or {self.name} = true or false"


_TRUTH = (IntegerAttr(1, i1), IntegerAttr(0, i1), IntegerAttr(-1, i1))

PropertyRow: TypeAlias = Words | Number | Flag


def shown(value: Attribute | None) -> str:
    """Format an attribute for an error message."""
    return "missing" if value is None else str(value)


# ------------------------------------------------------------------------------------------------------------- operands


class Operand(NamedTuple):
    """Kind of an operand.

    ``accepts`` returns True for allowed types, ``what`` describes them in error messages, ``example`` is one of them.
    """

    what: str
    accepts: Callable[[Attribute], bool]
    example: str


def _is_i32(t: Attribute) -> bool:
    return t == i32 or (isinstance(t, ConstrainedIntType) and t.width == 32)


def _is_i1(t: Attribute) -> bool:
    return t == i1


def _is_plain_i32(t: Attribute) -> bool:
    return t == i32


_SCOPED = (AddressSpace.gmem, AddressSpace.smem, AddressSpace.dsmem)
"""Spaces of the pointers of atomics and of accesses with a memory scope."""


def _points_at_integers(t: Attribute) -> bool:
    return _points(*_SCOPED)(t) and isinstance(t, PtrType) and str(t.data.element) in INTEGERS


def register_count(n: int) -> bool:
    """Return True if ``setmaxnreg`` accepts this number of registers."""
    return 24 <= n <= 256 and n % 8 == 0


def shuffle_width(n: int) -> bool:
    """Return True if a shuffle accepts groups of this many lanes."""
    return n in (1, 2, 4, 8, 16, 32)


def _points(*spaces: AddressSpace) -> Callable[[Attribute], bool]:
    return lambda t: isinstance(t, PtrType) and t.data.space in spaces


def _named(*names: str) -> Callable[[Attribute], bool]:
    return lambda t: str(t) in names


INTEGERS = ("i32", "i64")
"""Element types of integer atomics."""

_SHUFFLED = ("i8", "i16", "i32", "i64", "f16", "bf16", "f32", "f64")

REGISTERS: dict[str, str] = {"f16": "h", "bf16": "h", "i16": "h", "i32": "r", "f32": "f", "i64": "l", "f64": "d"}
"""Type of a PTX register -> constraint letter in inline assembly."""


def _held(t: Attribute) -> bool:
    if not isinstance(t, VectorType):
        return str(t) in REGISTERS
    v = cast("VectorType[Attribute]", t)
    return str(v.element_type) in REGISTERS and prod(v.get_shape()) * element_bits(v.element_type) % 32 == 0


KINDS: dict[str, Operand] = {
    "bar": Operand("!cute.ptr<i64, smem>, an mbarrier", is_barrier, "!cute.ptr<i64, smem>"),
    "i32": Operand("i32", _is_i32, "i32"),
    "i1": Operand("i1", _is_i1, "i1"),
    "f32": Operand("f32", _named("f32"), "f32"),
    "value": Operand(f"one of {', '.join(_SHUFFLED)}", _named(*_SHUFFLED), "f32"),
    "held": Operand(f"one of {', '.join(REGISTERS)} or a vector of them of whole 32-bit words", _held, "f32"),
    "word": Operand("i32", _is_plain_i32, "i32"),
    "smem": Operand("a pointer to smem", _points(AddressSpace.smem), "!cute.ptr<f32, smem>"),
    "ptr": Operand("a pointer to gmem, smem or dsmem", _points(*_SCOPED), "!cute.ptr<f32, gmem>"),
    "int_ptr": Operand("a pointer to i32 or i64 in gmem, smem or dsmem", _points_at_integers, "!cute.ptr<i32, gmem>"),
    "element": Operand("the element type of the pointer", _named(*_SHUFFLED), "f32"),
    "int_element": Operand("the element type of the pointer", _named("i32", "i64"), "i32"),
}
"""Word used in the rows -> kind of operand."""


Inference: TypeAlias = Callable[[Sequence[Attribute]], list[Attribute]]


class Row(NamedTuple):
    """Description of one op.

    Args:
        name: name without ``cute_nvgpu.arch.``.
        summary: first paragraph of the documentation.
        isa: section of the PTX ISA, in quotes.
        operands: ``name:kind``, or ``name:kind?`` for an optional operand.
        result: a type; ``=`` for the type of operand 0; ``*`` for the element type of the pointer operand 0; or a
            function.
        properties: the properties of the op.
        sm: first architecture that has the instruction.
        pure: True if the op has no effect, so that it can be moved or removed.
        check: further check of the operand types.
        example: text after the op name in the example of the documentation.
    """

    name: str
    summary: str
    isa: str
    operands: tuple[str, ...] = ()
    result: str | Inference = ""
    properties: tuple[PropertyRow, ...] = ()
    sm: int = 50
    pure: bool = False
    check: Callable[[Sequence[Attribute]], None] | None = None
    example: str = ""

    @property
    def kinds(self) -> list[tuple[str, str, bool]]:
        """Name and kind of each operand, and whether it is optional."""
        parts = [o.rstrip("?").split(":") for o in self.operands]
        return [(n, k, o.endswith("?")) for (n, k), o in zip(parts, self.operands)]
