"""The builders of the ``arith`` dialect that programs for CuTe DSL call."""

from __future__ import annotations

import operator
from typing import Any

import cute_dialect.lang as cute
from cute_dialect.compat.mlir.packs import number_type
from cute_dialect.lang.tracing.errors import KernelTypeError

__all__ = ["cmpf", "cmpi", "constant", "select"]

_SIGNED = {
    "eq": operator.eq, "ne": operator.ne, "slt": operator.lt, "sle": operator.le, "sgt": operator.gt,
    "sge": operator.ge,
}  # fmt: skip
_UNSIGNED = {"ult": operator.lt, "ule": operator.le, "ugt": operator.gt, "uge": operator.ge}
_FLOATS = {
    "oeq": operator.eq, "ogt": operator.gt, "oge": operator.ge, "olt": operator.lt, "ole": operator.le,
    "une": operator.ne,
}  # fmt: skip


def constant(result: Any, value: Any, **_: Any) -> Any:
    """Return a constant of a number type."""
    return number_type(result)(value)


def select(condition: Any, true_value: Any, false_value: Any, **_: Any) -> Any:
    """Return ``true_value`` where ``condition`` holds, otherwise ``false_value``. Both are evaluated."""
    return cute.where(condition, true_value, false_value)


def _predicate(predicate: Any) -> str:
    return str(getattr(predicate, "name", predicate)).lower()


def cmpi(predicate: Any, lhs: Any, rhs: Any, **_: Any) -> Any:
    """Compare two integers (``eq``, ``slt``, ``ult``, …) to a Boolean. Raises F251 for an unknown predicate."""
    name = _predicate(predicate)
    if name in _SIGNED:
        return _SIGNED[name](_as(lhs, "Int"), _as(rhs, "Int"))
    if name in _UNSIGNED:
        return _UNSIGNED[name](_as(lhs, "Uint"), _as(rhs, "Uint"))
    raise KernelTypeError(
        "F251", f"arith.cmpi: predicate must be one of {', '.join([*_SIGNED, *_UNSIGNED])}, got {name}"
    )


def _as(x: Any, sign: str) -> Any:
    return x if isinstance(x, cute.Boolean) else x.bitcast(getattr(cute, f"{sign}{type(x).width}"))


def cmpf(predicate: Any, lhs: Any, rhs: Any, **_: Any) -> Any:
    """Compare two floats (``oeq``, ``olt``, ``une``, …) to a Boolean. Raises F251 for an unknown predicate."""
    name = _predicate(predicate)
    if name not in _FLOATS:
        raise KernelTypeError("F251", f"arith.cmpf: predicate must be one of {', '.join(_FLOATS)}, got {name}")
    return _FLOATS[name](lhs, rhs)
