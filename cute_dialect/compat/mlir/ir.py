"""``cutlass._mlir.ir``: the types that programs for CuTe DSL construct directly, and packs of numbers.

A pack holds several numbers in registers as one value, such as an LLVM vector or structure.
"""

from __future__ import annotations

from typing import Any

import cute_dialect.lang as cute
from cute_dialect.lang.tracing.errors import KernelTypeError
from cute_dialect.lang.values.dtypes import BFloat16, Float16, Float32, Float64, NumericType, type_of_mlir

__all__ = [
    "BF16Type",
    "F16Type",
    "F32Type",
    "F64Type",
    "IntegerType",
    "Pack",
    "Value",
    "VectorType",
    "bits_as",
    "element",
    "number_type",
    "pack_type",
    "with_element",
]


# ----------------------------------------------------------------------------------------- several numbers as one value


class Pack(tuple[Any, ...]):
    """A sequence of numbers, the first in the low bits.

    >>> Pack((cute.Int32(1), cute.Int32(2))).type
    (Int32, Int32)
    """

    __slots__ = ()

    @property
    def type(self) -> tuple[Any, ...]:
        """The types of the numbers."""
        return tuple(type(x) for x in self)


def number_type(kind: Any) -> Any:
    """Return a number type or a tuple of number types, each given as itself or as the text of its MLIR type.

    >>> number_type("f32"), number_type(cute.Uint32), number_type(("i16", cute.Float16))
    (Float32, Uint32, (Int16, Float16))
    """
    if isinstance(kind, tuple):
        return tuple(number_type(k) for k in kind)
    return type_of_mlir(kind) if isinstance(kind, str) else kind


def pack_type(count: int, kind: Any) -> tuple[Any, ...]:
    """Return the type of a pack of ``count`` numbers.

    >>> pack_type(2, cute.Float32)
    (Float32, Float32)
    """
    return (number_type(kind),) * count


def element(pack: Any, position: Any) -> Any:
    """Return one number of a pack. Raises F251 if ``position`` is not a static index, or a list of one, in range."""
    where = [int(p) for p in position] if isinstance(position, list | tuple) else [int(position)]
    if not isinstance(pack, Pack) or len(where) != 1 or not 0 <= where[0] < len(pack):
        raise KernelTypeError(
            "F251", f"index {where} is out of range for {pack!r}, which must be a vector or structure of numbers"
        )
    return pack[where[0]]


def with_element(pack: Any, position: Any, value: Any) -> Pack:
    """Return a copy of a pack with one number replaced."""
    old = element(pack, position)
    at = int(position[0]) if isinstance(position, list | tuple) else int(position)
    return Pack((*pack[:at], type(old)(value), *pack[at + 1 :]))


def bits_as(kind: Any, value: Any) -> Any:
    """Reinterpret the bits of a number or pack as a number or pack of another type. Raises F251 if the widths differ.

    >>> bits_as((cute.Int16, cute.Int16), cute.Int32(0x20001))
    (Int16(1), Int16(2))
    """
    given = value if isinstance(value, Pack) else (value,)
    kind = number_type(kind)
    wanted = kind if isinstance(kind, tuple) else (kind,)
    have, want = [type(x).width for x in given], [k.width for k in wanted]
    if sum(have) != sum(want) or len({*have}) != 1 or len({*want}) != 1:
        raise KernelTypeError(
            "F251", f"bitcast: the result type must have {sum(have)} bits, got {kind} with {sum(want)} bits"
        )
    old, new = have[0], want[0]
    words = [x.bitcast(_word(old)) for x in given]
    if new > old:
        each = new // old
        words = [_joined(words[i : i + each], old, new) for i in range(0, len(words), each)]
    elif new < old:
        words = [_word(new)(w >> (new * i)) for w in words for i in range(old // new)]
    numbers = [w.bitcast(k) for w, k in zip(words, wanted)]
    return Pack(numbers) if isinstance(kind, tuple) else numbers[0]


def _word(width: int) -> Any:
    return getattr(cute, f"Uint{width}")


def _joined(words: list[Any], old: int, new: int) -> Any:
    found = _word(new)(words[0])
    for i, word in enumerate(words[1:], 1):
        found = found | (_word(new)(word) << (old * i))
    return found


# ---------------------------------------------------------------------------------------------------------------- types


Value = Pack


class IntegerType:
    """Integer types by width. A width of 1 is Boolean."""

    @staticmethod
    def get_signless(width: int, *_: Any, **__: Any) -> Any:
        """Return the signed integer type of a width.

        >>> IntegerType.get_signless(1), IntegerType.get_signless(32)
        (Boolean, Int32)
        """
        return type_of_mlir(f"i{int(width)}")

    get_signed = get_signless

    @staticmethod
    def get_unsigned(width: int, *_: Any, **__: Any) -> Any:
        """Return the unsigned integer type of a width."""
        return type_of_mlir(f"i{int(width)}", signed=False)


class _FloatType:
    kind: NumericType

    @classmethod
    def get(cls, *_: Any, **__: Any) -> NumericType:
        return cls.kind


class F16Type(_FloatType):
    """``F16Type.get()`` is Float16."""

    kind = Float16


class BF16Type(_FloatType):
    """``BF16Type.get()`` is BFloat16."""

    kind = BFloat16


class F32Type(_FloatType):
    """``F32Type.get()`` is Float32."""

    kind = Float32


class F64Type(_FloatType):
    """``F64Type.get()`` is Float64."""

    kind = Float64


class VectorType(tuple[Any, ...]):
    """The type of a vector: the tuple of its element types."""

    __slots__ = ()

    def __new__(cls, of: Any) -> VectorType:
        return super().__new__(cls, of)

    @classmethod
    def get(cls, shape: Any, element: Any, **_: Any) -> VectorType:
        """Return the type of a one-dimensional vector.

        >>> import cute_dialect.lang as cute
        >>> VectorType.get([2], cute.Float32).shape
        [2]
        """
        (count,) = shape
        return cls(pack_type(int(count), element))

    @property
    def shape(self) -> list[int]:
        return [len(self)]

    @property
    def element_type(self) -> Any:
        return self[0]
