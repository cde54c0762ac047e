"""Number types: classes whose instances are numbers, static or dynamic. Calling one converts.

>>> Int32(3).is_static, Int32(3) + 4, Float16.width
(True, Int32(7), 16)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from cute_dialect.lang.tracing.errors import KernelTypeError, StaticError
from cute_dialect.lang.tracing.tracer import current, parse_type
from cute_dialect.lang.values.dynamic import OPERATORS, Dynamic, Form, later_methods

if TYPE_CHECKING:
    from xdsl.ir import Attribute, SSAValue

    from cute_dialect.lang.values.folding import Facts


class NumericType(type):
    """Metaclass of the number types."""

    width: int
    """Width in bits."""
    is_integer: bool
    is_float: bool
    signed: bool
    mlir_type: str
    """The MLIR type as text."""
    numpy: str
    """The name of the NumPy (or ml_dtypes) type with the same bits."""
    torch: str
    """The name of the torch type, or "" if there is none."""

    def __repr__(cls) -> str:
        return cls.__name__

    def __str__(cls) -> str:
        return cls.mlir_type

    @property
    def attribute(cls) -> Attribute:
        """The MLIR type as an xDSL attribute."""
        return parse_type(cls.mlir_type)

    @property
    def zero(cls) -> Any:
        """The zero of the type; for abstract types such as ``Float``, a Python zero.

        >>> Int8.zero, Float.zero
        (Int8(0), 0.0)
        """
        if cls.__name__ in ("Numeric", "Integer", "Float"):
            return 0.0 if cls.__name__ == "Float" else 0
        return cls(0)

    @property
    def max(cls) -> Any:
        """The largest finite value, as a Python number.

        >>> Int8.max, Float16.max
        (127, 65504.0)
        """
        if cls.is_integer:
            return (1 << cls.width - (cls.signed and cls.width > 1)) - 1
        return _FLOAT_LIMITS[cls.__name__][0]

    @property
    def min(cls) -> Any:
        """The smallest finite value, as a Python number.

        >>> Int8.min, Uint8.min, Float16.min
        (-128, 0, -65504.0)
        """
        if cls.is_integer:
            return -(1 << cls.width - 1) if cls.signed else 0
        return 2.0**-127 if cls.__name__ == "Float8E8M0FNU" else -cls.max

    def is_same_kind(cls, other: NumericType) -> bool:
        """Return True if both types are floating-point, both integer, or both Boolean.

        >>> Float16.is_same_kind(Float32), Int8.is_same_kind(Uint8), Int8.is_same_kind(Float16)
        (True, True, False)
        """
        own = (cls.is_float, cls.is_integer and cls.width > 1)
        return own == (other.is_float, other.is_integer and other.width > 1)

    @property
    def epsilon(cls) -> float:
        """The distance from 1 to the next larger value."""
        return _FLOAT_LIMITS[cls._a_float("epsilon")][1]

    @property
    def inf(cls) -> Any:
        """Infinity.  Raises F236 if the type has none."""
        return cls._special("infinity", float("inf"), _FLOAT_LIMITS[cls._a_float("infinity")][2])

    @property
    def nan(cls) -> Any:
        """NaN.  Raises F236 if the type has none."""
        return cls._special("NaN", float("nan"), _FLOAT_LIMITS[cls._a_float("NaN")][3])

    def _a_float(cls, what: str) -> str:
        if not cls.is_float:
            raise KernelTypeError("F236", f"{cls!r} has no {what} because it is not a floating-point type")
        return cls.__name__

    def _special(cls, what: str, value: float, has: bool) -> Any:
        if not has:
            raise KernelTypeError("F236", f"{cls!r} has no {what}")
        return cls.exactly(value)


class Numeric(Dynamic, metaclass=NumericType):
    """A number: ``value`` is a Python number (``is_static``) or an SSA value.

    ``facts`` holds the known bounds and a divisor of a dynamic integer.
    """

    __slots__ = ("facts", "is_static", "value")
    width: ClassVar[int] = 0
    is_integer: ClassVar[bool] = False
    is_float: ClassVar[bool] = False
    signed: ClassVar[bool] = True
    mlir_type: ClassVar[str] = ""
    numpy: ClassVar[str] = ""
    torch: ClassVar[str] = ""

    value: Any
    is_static: bool
    facts: Facts | None

    def __init__(self, x: object = 0):
        if type(self) in _ABSTRACT:
            raise TypeError(f"{type(self).__name__} is abstract: use one of its subclasses")
        self.facts = None
        self._convert(x)

    def ir_value(self, **_: object) -> Any:
        """Return the number itself. CuTe DSL programs call this to pass numbers to ops."""
        return self

    @classmethod
    def of(cls, ssa: SSAValue, facts: Facts | None = None) -> Any:
        """Return the dynamic number for an SSA value."""
        made = object.__new__(cls)
        made.value = ssa
        made.is_static = False
        made.facts = facts
        return made

    @classmethod
    def exactly(cls, value: int | float) -> Any:
        """Return the static number with this value, which must be representable."""
        made = object.__new__(cls)
        made.value = value
        made.is_static = True
        made.facts = None
        return made

    @property
    def ssa(self) -> SSAValue:
        """The SSA value. A static number becomes a constant."""
        if not self.is_static:
            return self.value
        return current().constant(self.value, type(self).attribute)

    @property
    def dtype(self) -> NumericType:
        return type(self)

    def to(self, dtype: NumericType) -> Any:
        """Return the number converted to another type."""
        return dtype(self)

    def bitcast(self, dtype: NumericType) -> Any:
        """Return the bits as a number of another type of the same width.

        >>> Float32(1.0).bitcast(Uint32)
        Uint32(1065353216)
        """
        return self._bits_as(dtype)

    def describe(self) -> str:
        name = "" if self.is_static else self.value.name_hint
        return f"'{name}' ({type(self).__name__})" if name else f"this {type(self).__name__}"

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.value if self.is_static else '?'})"

    def __str__(self) -> str:
        return str(self.value) if self.is_static else "?"

    def __format__(self, spec: str) -> str:
        return format(self.value, spec) if self.is_static else "?"

    def __hash__(self) -> int:
        return hash(self.value) if self.is_static else Dynamic.refuse_hash(self)

    def __bool__(self) -> bool:
        return bool(self.value) if self.is_static else Dynamic.__bool__(self)

    def __len__(self) -> int:
        raise StaticError("F146", f"{self.describe()} is a number and has no length")

    def __iter__(self) -> Any:
        raise StaticError("F145", f"{self.describe()} is a number and cannot be iterated", hint="use range(n)")

    def __index__(self) -> int:
        if self.is_static and type(self).is_integer:
            return int(self.value)
        if self.is_static:
            raise TypeError(f"{self!r} is not an integer")
        return Dynamic.__index__(self)

    def __int__(self) -> int:
        return int(self.value) if self.is_static else Dynamic.__int__(self)

    def __float__(self) -> float:
        return float(self.value) if self.is_static else Dynamic.__float__(self)

    if TYPE_CHECKING:  # Later modules define these methods; see later_methods() below.

        def _convert(self, x: object) -> None: ...
        def _bits_as(self, dtype: NumericType) -> Any: ...
        def __cute_form__(self) -> Form: ...
        def _whole(self, how: str) -> Any: ...
        def _takes(self, other: object) -> bool: ...
        def __add__(self, other: object) -> Any: ...
        def __radd__(self, other: object) -> Any: ...
        def __sub__(self, other: object) -> Any: ...
        def __rsub__(self, other: object) -> Any: ...
        def __mul__(self, other: object) -> Any: ...
        def __rmul__(self, other: object) -> Any: ...
        def __truediv__(self, other: object) -> Any: ...
        def __rtruediv__(self, other: object) -> Any: ...
        def __floordiv__(self, other: object) -> Any: ...
        def __rfloordiv__(self, other: object) -> Any: ...
        def __mod__(self, other: object) -> Any: ...
        def __rmod__(self, other: object) -> Any: ...
        def __and__(self, other: object) -> Any: ...
        def __rand__(self, other: object) -> Any: ...
        def __or__(self, other: object) -> Any: ...
        def __ror__(self, other: object) -> Any: ...
        def __xor__(self, other: object) -> Any: ...
        def __rxor__(self, other: object) -> Any: ...
        def __lshift__(self, other: object) -> Any: ...
        def __rlshift__(self, other: object) -> Any: ...
        def __rshift__(self, other: object) -> Any: ...
        def __rrshift__(self, other: object) -> Any: ...
        def __pow__(self, other: object) -> Any: ...
        def __rpow__(self, other: object) -> Any: ...
        def __eq__(self, other: object) -> Any: ...
        def __ne__(self, other: object) -> Any: ...
        def __lt__(self, other: object) -> Any: ...
        def __le__(self, other: object) -> Any: ...
        def __gt__(self, other: object) -> Any: ...
        def __ge__(self, other: object) -> Any: ...
        def __neg__(self) -> Any: ...
        def __invert__(self) -> Any: ...
        def __abs__(self) -> Any: ...

    def __pos__(self) -> Any:
        return self

    def __divmod__(self, other: Any) -> Any:
        return (self // other, self % other) if self._takes(other) else NotImplemented

    def __rdivmod__(self, other: Any) -> Any:
        return (other // self, other % self) if self._takes(other) else NotImplemented

    def __round__(self, digits: int | None = None) -> Any:
        if digits is not None:
            raise KernelTypeError("F236", "round() with a number of digits is not supported for typed numbers")
        return self._whole("round")

    def __floor__(self) -> Any:
        return self._whole("floor")

    def __ceil__(self) -> Any:
        return self._whole("ceil")

    def __trunc__(self) -> Any:
        return self._whole("trunc")


later_methods(
    Numeric, numeric=("_convert", "_takes", "_bits_as", *OPERATORS), forms=("__cute_form__",), math=("_whole",)
)


class Integer(Numeric):
    """Base of the integer types."""

    __slots__ = ()
    is_integer = True


class Float(Numeric):
    """Base of the floating-point types."""

    __slots__ = ()
    is_float = True


class _Row(NamedTuple):
    width: int
    mlir: str
    numpy: str
    torch: str = ""


_INTEGERS = {
    "Int4": _Row(4, "i4", "int4"), "Int8": _Row(8, "i8", "int8", "int8"),
    "Int16": _Row(16, "i16", "int16", "int16"), "Int32": _Row(32, "i32", "int32", "int32"),
    "Int64": _Row(64, "i64", "int64", "int64"), "Uint4": _Row(4, "i4", "uint4"),
    "Uint8": _Row(8, "i8", "uint8", "uint8"), "Uint16": _Row(16, "i16", "uint16", "uint16"),
    "Uint32": _Row(32, "i32", "uint32", "uint32"), "Uint64": _Row(64, "i64", "uint64", "uint64"),
    "Boolean": _Row(1, "i1", "bool", "bool"),
}  # fmt: skip
_FLOATS = {
    "Float16": _Row(16, "f16", "float16", "float16"), "BFloat16": _Row(16, "bf16", "bfloat16", "bfloat16"),
    "Float32": _Row(32, "f32", "float32", "float32"), "Float64": _Row(64, "f64", "float64", "float64"),
    "TFloat32": _Row(32, "tf32", "float32", "float32"),
    "Float8E4M3FN": _Row(8, "f8E4M3FN", "float8_e4m3fn", "float8_e4m3fn"),
    "Float8E5M2": _Row(8, "f8E5M2", "float8_e5m2", "float8_e5m2"),
    "Float8E8M0FNU": _Row(8, "f8E8M0FNU", "float8_e8m0fnu", "float8_e8m0fnu"),
    "Float6E2M3FN": _Row(6, "f6E2M3FN", "float6_e2m3fn"), "Float6E3M2FN": _Row(6, "f6E3M2FN", "float6_e3m2fn"),
    "Float4E2M1FN": _Row(4, "f4E2M1FN", "float4_e2m1fn"),
}  # fmt: skip


_FLOAT_LIMITS = {
    "Float16": (65504.0, 2.0**-10, True, True), "BFloat16": ((2 - 2.0**-7) * 2.0**127, 2.0**-7, True, True),
    "Float32": ((2 - 2.0**-23) * 2.0**127, 2.0**-23, True, True),
    "Float64": ((2 - 2.0**-52) * 2.0**1023, 2.0**-52, True, True),
    "TFloat32": ((2 - 2.0**-10) * 2.0**127, 2.0**-10, True, True), "Float8E4M3FN": (448.0, 2.0**-3, False, True),
    "Float8E5M2": (57344.0, 2.0**-2, True, True), "Float8E8M0FNU": (2.0**127, 1.0, False, True),
    "Float6E2M3FN": (7.5, 2.0**-3, False, False), "Float6E3M2FN": (28.0, 2.0**-2, False, False),
    "Float4E2M1FN": (6.0, 2.0**-1, False, False),
}  # fmt: skip
"""For each float type: the largest value, epsilon, and whether it has infinity and NaN."""


def _make(name: str, base: type[Numeric], row: _Row) -> type[Numeric]:
    signed = not name.startswith("U") and name != "Boolean"
    what = "a truth value" if name == "Boolean" else f"{row.width} bits, MLIR's ``{row.mlir}``"
    body = {
        "__slots__": (), "__doc__": f"The {name} type: {what}.", "__module__": __name__, "width": row.width,
        "signed": signed, "mlir_type": row.mlir, "numpy": row.numpy, "torch": row.torch,
    }  # fmt: skip
    return NumericType(name, (base,), body)


if TYPE_CHECKING:  # pragma: no cover

    class Int4(Integer): ...

    class Int8(Integer): ...

    class Int16(Integer): ...

    class Int32(Integer): ...

    class Int64(Integer): ...

    class Uint4(Integer): ...

    class Uint8(Integer): ...

    class Uint16(Integer): ...

    class Uint32(Integer): ...

    class Uint64(Integer): ...

    class Boolean(Integer):
        def __enter__(self) -> None: ...  # with cute.arch.elect_one():
        def __exit__(self, *error: object) -> None: ...

    class Float16(Float): ...

    class BFloat16(Float): ...

    class Float32(Float): ...

    class Float64(Float): ...

    class TFloat32(Float): ...

    class Float8E4M3FN(Float): ...

    class Float8E5M2(Float): ...

    class Float8E8M0FNU(Float): ...

    class Float6E2M3FN(Float): ...

    class Float6E3M2FN(Float): ...

    class Float4E2M1FN(Float): ...


NUMBER_TYPES: dict[str, type[Numeric]] = {
    **{name: _make(name, Integer, row) for name, row in _INTEGERS.items()},
    **{name: _make(name, Float, row) for name, row in _FLOATS.items()},
}
"""All concrete number types by name."""
globals().update(NUMBER_TYPES)
_ABSTRACT = (Numeric, Integer, Float)
setattr(NUMBER_TYPES["Boolean"], "__cute_region__", lambda self: self)  # noqa: B010  (``with cute.arch.elect_one():``)


def type_of_mlir(text: str, *, signed: bool = True) -> type[Numeric]:
    """Return the number type of an MLIR type's text. Integers are signed unless ``signed`` is False.

    >>> type_of_mlir("bf16"), type_of_mlir("i32", signed=False)
    (BFloat16, Uint32)
    """
    for kind in NUMBER_TYPES.values():
        if kind.mlir_type == text and (kind.signed == signed or not kind.is_integer or kind.width == 1):
            return kind
    raise StaticError("F230", f"'{text}' is not a number type")
