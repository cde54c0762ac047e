"""SSA values of a builder with Python's operators, and loops that are being built."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:  # pragma: no cover
    from xdsl.ir import Attribute, SSAValue

    from cute_dialect.kernels.builder import Builder

__all__ = ["Coordinate", "Loop", "Scalar", "Value"]

Scalar: TypeAlias = "Value | int"
Coordinate: TypeAlias = "Value | int | tuple[Coordinate, ...] | None"
"""Integers, values, and ``None`` for ``_`` ("all of this mode"), nested."""


class Value:
    """An SSA value of a builder; see :mod:`cute_dialect.kernels.builder` for its operators."""

    __slots__ = ("builder", "ssa")
    __hash__ = object.__hash__

    def __init__(self, builder: Builder, ssa: SSAValue):
        self.builder = builder
        self.ssa = ssa

    @property
    def type(self) -> Attribute:
        """Its type."""
        return self.ssa.type

    def _with(self, name: str, other: Scalar, *, swap: bool = False) -> Value:
        b = self.builder
        right = other if isinstance(other, Value) else b.constant(other, self.type)
        return b.binary(name, right, self) if swap else b.binary(name, self, right)

    def __add__(self, other: Scalar) -> Value:
        if isinstance(other, int) and other == 0:
            return self
        return self._with("add", other)

    def __radd__(self, other: int) -> Value:
        return self + other

    def __sub__(self, other: Scalar) -> Value:
        return self._with("sub", other)

    def __rsub__(self, other: int) -> Value:
        return self._with("sub", other, swap=True)

    def __mul__(self, other: Scalar) -> Value:
        if isinstance(other, int) and other == 1:
            return self
        return self._with("mul", other)

    def __rmul__(self, other: int) -> Value:
        return self * other

    def __floordiv__(self, other: Scalar) -> Value:
        if isinstance(other, int) and other == 1:
            return self
        return self._with("div", other)

    def __mod__(self, other: Scalar) -> Value:
        return self._with("rem", other)

    def __and__(self, other: Scalar) -> Value:
        return self._with("and", other)

    def __or__(self, other: Scalar) -> Value:
        return self._with("or", other)

    def __xor__(self, other: Scalar) -> Value:
        return self._with("xor", other)

    def __lshift__(self, other: Scalar) -> Value:
        return self._with("shl", other)

    def __rshift__(self, other: Scalar) -> Value:
        return self._with("shr", other)

    def __lt__(self, other: Scalar) -> Value:
        return self.builder.compare("ult", self, other)

    def __le__(self, other: Scalar) -> Value:
        return self.builder.compare("ule", self, other)

    def __gt__(self, other: Scalar) -> Value:
        return self.builder.compare("ugt", self, other)

    def __ge__(self, other: Scalar) -> Value:
        return self.builder.compare("uge", self, other)

    def eq(self, other: Scalar) -> Value:
        """``self == other`` as an ``i1``."""
        return self.builder.compare("eq", self, other)

    def ne(self, other: Scalar) -> Value:
        """``self != other`` as an ``i1``."""
        return self.builder.compare("ne", self, other)


class Loop:
    """A loop that is being built: its induction variable, the carried values, and after it its results."""

    def __init__(self, iv: Value, args: tuple[Value, ...]):
        self.iv = iv
        self.args = args
        self.results: tuple[Value, ...] = ()
        self.yielded: tuple[Value, ...] | None = None

    def next(self, *values: Value) -> None:
        """What the carried values are in the next iteration; the last thing to say in a loop that carries any."""
        self.yielded = values
