"""``cutlass._mlir.ir``: the types that programs for CuTe DSL construct directly."""

from __future__ import annotations

from typing import Any

from cute_dialect.compat.mlir.packs import Pack, pack_type
from cute_dialect.lang.values.dtypes import BFloat16, Float16, Float32, Float64, NumericType, type_of_mlir

__all__ = ["BF16Type", "F16Type", "F32Type", "F64Type", "IntegerType", "Value", "VectorType"]

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
