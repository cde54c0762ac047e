"""SSA values of a builder with Python's operators, and loops that are being built.

What Python would decide at once (``if v``, ``v in …``, ``v == w``, ``int(v)``) is known only when the kernel runs:
it raises, and says what to call instead.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NoReturn, TypeAlias

if TYPE_CHECKING:  # pragma: no cover
    from xdsl.ir import Attribute, SSAValue

    from cute_dialect.kernels.builder import Builder

__all__ = ["Coordinate", "Loop", "Scalar", "Value"]

Scalar: TypeAlias = "Value | int"
Coordinate: TypeAlias = "Value | int | tuple[Coordinate, ...] | None"
"""Integers, values, and ``None`` for ``_`` ("all of this mode"), nested."""


def _refused(asked: str, instead: str) -> Callable[..., NoReturn]:
    """Make a method of Python's that no value can have: it raises TypeError and says what to use."""

    def method(self: Value, *others: object) -> NoReturn:
        raise TypeError(f"{asked} of {self!r} is not known while the kernel is built, only when it runs: {instead}")

    return method


_TAKE = "load elements with builder.load(tensor, where), take parts with builder.slice(tensor, …)"
_NUMBER = "use the value itself; loops over it are `with builder.for_(start, stop) as loop:`"
_NO_SIGN = "use 0 - v, builder.op('math.absi', v, type=v.type) or builder.op('math.absf', v, type=v.type)"
_DIVISION = "integers have // and % (unsigned), floats builder.binary('div', a, b)"


class Value:
    """An SSA value of a builder; see :mod:`cute_dialect.kernels.builder` for its operators."""

    __slots__ = ("builder", "ssa")
    __array_ufunc__ = None  # numpy's numbers leave their operators to ours

    __bool__ = _refused(
        "the truth",
        "branch by `with builder.if_(v):` or builder.select(v, a, b), loop by builder.while_(), join conditions with "
        "& and |, negate by `v ^ True`, use builder.minimum(a, b) for min",
    )
    __eq__ = _refused("the equality", "use v.eq(other), an i1 (`is` asks whether two names are one value)")
    __ne__ = _refused("the inequality", "use v.ne(other), an i1 (`is not` asks whether two names are one value)")
    __hash__ = _refused("the number", "key by v.ssa, if the same value is meant, not the same number")
    __len__ = _refused("the length", "ask its type, v.type, or builder.op('cute.size', v)")
    __iter__ = _refused("the elements", _TAKE)
    __getitem__ = _refused("an element", _TAKE)
    __contains__ = _refused("the elements", _TAKE)
    __int__ = __index__ = __float__ = __complex__ = __round__ = _refused("the number", _NUMBER)
    __neg__ = __pos__ = __abs__ = _refused("the sign", _NO_SIGN)
    __invert__ = _refused("the complement", "use `v ^ -1`, of an i1 `v ^ True`")
    __pow__ = __rpow__ = _refused("a power", "multiply, shift by <<, or use builder.op('math.powf', a, b, type=a.type)")
    __truediv__ = __rtruediv__ = __divmod__ = __rdivmod__ = _refused("a quotient", _DIVISION)

    def __init__(self, builder: Builder, ssa: SSAValue):
        self.builder = builder
        self.ssa = ssa

    @property
    def type(self) -> Attribute:
        """Its type."""
        return self.ssa.type

    def __repr__(self) -> str:
        name = f"%{self.ssa.name_hint} : " if self.ssa.name_hint else ""
        return f"Value({name}{self.type})"

    def _with(self, name: str, other: Scalar, *, swap: bool = False) -> Value:
        return self.builder.binary(name, other, self) if swap else self.builder.binary(name, self, other)

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
        self._refuse_zero("<", other, "never", "slt")
        return self.builder.compare("ult", self, other)

    def __le__(self, other: Scalar) -> Value:
        return self.builder.compare("ule", self, other)

    def __gt__(self, other: Scalar) -> Value:
        return self.builder.compare("ugt", self, other)

    def __ge__(self, other: Scalar) -> Value:
        self._refuse_zero(">=", other, "always", "sge")
        return self.builder.compare("uge", self, other)

    def _refuse_zero(self, sign: str, other: object, when: str, predicate: str) -> None:
        if isinstance(other, int) and other == 0:
            raise TypeError(
                f"`v {sign} 0` is {when} true of {self!r}, which is compared as unsigned: "
                f"use builder.compare('{predicate}', v, 0)"
            )

    def eq(self, other: Scalar) -> Value:
        """Return ``self == other`` as an ``i1``."""
        return self.builder.compare("eq", self, other)

    def ne(self, other: Scalar) -> Value:
        """Return ``self != other`` as an ``i1``."""
        return self.builder.compare("ne", self, other)


class Loop:
    """A loop that is being built: its induction variable, the carried values, and after it its results."""

    def __init__(self, iv: Value, args: tuple[Value, ...]):
        self.iv = iv
        self.args = args
        self.results: tuple[Value, ...] = ()
        self.yielded: tuple[Value, ...] | None = None

    def next(self, *values: Value) -> None:
        """Set what the carried values are in the next iteration; the last thing to say in a loop that carries any."""
        self.yielded = values
