"""Operands of a builder's operations: which op one is for a type, which operands go together, which numbers fit.

What does not fit raises TypeError or ValueError with what to write instead; nothing is converted silently.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, cast

from cute_dialect.kernels.values import Value

if TYPE_CHECKING:  # pragma: no cover
    from xdsl.ir import Attribute

__all__ = ["arithmetic", "check_alike", "check_condition", "comparison", "number_for"]

_PREDICATES = {"eq": 0, "ne": 1, "slt": 2, "sle": 3, "sgt": 4, "sge": 5, "ult": 6, "ule": 7, "ugt": 8, "uge": 9}
_FLOAT_PREDICATES = {"oeq": 1, "ogt": 2, "oge": 3, "olt": 4, "ole": 5, "one": 6, "une": 13}
_INTEGER_OPS = {
    "add": "arith.addi", "sub": "arith.subi", "mul": "arith.muli", "div": "arith.divui", "rem": "arith.remui",
    "and": "arith.andi", "or": "arith.ori", "xor": "arith.xori", "shl": "arith.shli", "shr": "arith.shrui",
    "min": "arith.minui", "max": "arith.maxui",
}  # fmt: skip
_FLOAT_OPS = {
    "add": "arith.addf", "sub": "arith.subf", "mul": "arith.mulf", "div": "arith.divf", "min": "arith.minimumf",
    "max": "arith.maximumf",
}  # fmt: skip
_SIGNED = {"arith." + name for name in ("extsi", "divsi", "remsi", "floordivsi", "maxsi", "minsi", "shrsi", "fptosi")}
_SIGNED_OPS = {"div": "divsi", "rem": "remsi", "shr": "shrsi", "min": "minsi", "max": "maxsi"}
_REACH = {
    "f16": (65504.0, 2.0**-24), "bf16": (3.3895313892515355e38, 2.0**-133), "f32": (3.4028234663852886e38, 2.0**-149),
}  # fmt: skip
"""The largest finite number and the least above 0, by float type."""


def number_for(value: object, type: Attribute) -> int | float:
    """Return a Python (or numpy) number as one of an MLIR type.  Raises TypeError or ValueError where it is none.

    >>> from xdsl.dialects.builtin import i8
    >>> number_for(300, i8)
    Traceback (most recent call last):
    ValueError: 300 does not fit i8, which holds -128 to 255
    """
    from operator import index

    from xdsl.dialects.builtin import AnyFloat, IndexType, IntegerType

    if isinstance(type, IntegerType | IndexType):
        try:
            number = index(value)  # pyright: ignore[reportArgumentType]  (asked here)
        except TypeError:
            raise TypeError(
                f"expected an integer for {type}, got {value!r}: "
                f"constants of other types are made by builder.constant({value!r}, type)"
            ) from None
        if isinstance(type, IntegerType):
            width = cast("IntegerType", type).width.data
            least, most = -(1 << width - 1), (1 << width) - 1
            if not least <= number <= most:
                raise ValueError(f"{number} does not fit {type}, which holds {least} to {most}")
        return number
    if not isinstance(type, AnyFloat):
        raise TypeError(f"expected the type of a number, got {type}: {value!r} cannot become a constant of it")
    try:
        wanted = float(value)  # pyright: ignore[reportArgumentType]  (asked here)
    except (TypeError, OverflowError):
        raise TypeError(f"expected a number for {type}, got {value!r}") from None
    most, least = _REACH.get(str(type), (float("inf"), 0.0))
    if most < abs(wanted) < float("inf") or 0 < abs(wanted) < least / 2:
        raise ValueError(f"{value!r} does not fit {type}, whose numbers lie between {least:g} and {most:g}")
    return wanted


def arithmetic(name: str, left: Value, right: Value) -> tuple[str, bool]:
    """Return the op of ``add sub mul div …`` for two values of one type, and whether it is one on integers."""
    from xdsl.dialects.builtin import AnyFloat, IndexType, IntegerType, VectorType

    check_alike(f"'{name}'", left, right)
    t = left.type
    element = cast("VectorType[Attribute]", t).element_type if isinstance(t, VectorType) else t
    integer = isinstance(element, IntegerType | IndexType)
    known: Mapping[str, str] = _INTEGER_OPS if integer else _FLOAT_OPS if isinstance(element, AnyFloat) else {}
    if name not in known:
        raise TypeError(f"'{name}' is no operation on {t}: there are {', '.join(known) or 'none'}")
    if integer and name in _SIGNED_OPS:
        cure = f"builder.op('arith.{_SIGNED_OPS[name]}', a, b, type=a.type)"
        check_unsigned(name, cure, left, *([] if name == "shr" else [right]))
    return known[name], integer


def comparison(predicate: str, left: Value, right: Value) -> tuple[str, int]:
    """Return the op that compares two values of one type, and the number of the predicate."""
    from xdsl.dialects.builtin import IndexType, IntegerType

    check_alike(f"'{predicate}'", left, right)
    integer = isinstance(left.type, IntegerType | IndexType)
    known = _PREDICATES if integer else _FLOAT_PREDICATES
    if predicate not in known:
        raise TypeError(
            f"'{predicate}' is no comparison of {left.type}: "
            f"use builder.compare(p, a, b) with p one of {', '.join(known)}"
        )
    if predicate.startswith("u"):
        check_unsigned(predicate, f"builder.compare('s{predicate[1:]}', a, b)", left, right)
    return "arith.cmpi" if integer else "arith.cmpf", known[predicate]


def check_alike(what: str, left: Value, right: Value) -> None:
    """Raise TypeError unless both sides have one type, ValueError unless they belong to one builder."""
    if left.builder is not right.builder:
        raise ValueError(f"{what}: {left!r} and {right!r} belong to different builders")
    if left.type != right.type:
        raise TypeError(
            f"{what}: {left.type} and {right.type} do not mix: bring both to one type first, for example with "
            "builder.op('arith.extui', v, type='i64'), 'arith.index_cast', 'arith.uitofp' or 'arith.extf'"
        )


def check_unsigned(what: str, cure: str, *values: Value) -> None:
    """Raise TypeError where an operation on unsigned integers gets a value that is signed."""
    for v in values:
        if _is_signed(v):
            raise TypeError(f"'{what}' takes integers as unsigned, but {v!r} is signed: use {cure}")


def check_condition(value: object) -> None:
    """Raise TypeError unless it is an ``i1``."""
    if not isinstance(value, Value) or str(value.type) != "i1":
        raise TypeError(f"expected a condition, a value of type i1, got {value!r}: compare first, e.g. v.ne(0)")


def _is_signed(value: Value) -> bool:
    """Tell whether it was made by an operation on signed integers, or is a negative constant."""
    from xdsl.dialects.builtin import IntegerAttr
    from xdsl.ir import Operation

    op = value.ssa.owner
    if not isinstance(op, Operation):
        return False
    if op.name == "arith.constant":
        held = op.properties.get("value")
        return isinstance(held, IntegerAttr) and str(value.type) != "i1" and held.value.data < 0
    return op.name in _SIGNED
