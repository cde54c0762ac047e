"""The builders of the ``arith``, ``math`` and ``vector`` dialects that programs for CuTe DSL call.

Those of ``math``, such as ``math.log(x, fastmath=…)``, call the function of :mod:`cute_dialect.lang.values.math` for
the same operation. ``fastmath`` is ignored: results are at least as accurate as the flags require.  Vectors are
:class:`~cute_dialect.compat.mlir.ir.Pack`.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import cute_dialect.lang as cute
from cute_dialect.compat.mlir.ir import Pack, bits_as, element, number_type, with_element
from cute_dialect.lang.tracing.errors import KernelTypeError
from cute_dialect.lang.values import math as math_ops

__all__ = [
    "bitcast",
    "cmpf",
    "cmpi",
    "constant",
    "extract",
    "extractelement",
    "from_elements",
    "insertelement",
    "select",
]


# ---------------------------------------------------------------------------------------------------------------- arith


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


# --------------------------------------------------------------------------------------------------------------- vector


def from_elements(result: Any, elements: Any, **_: Any) -> Pack:
    """Return a vector of the given numbers. Raises F251 if their count does not match the type."""
    if len(result) != len(elements):
        raise KernelTypeError(
            "F251", f"vector.from_elements: the type needs {len(result)} numbers, got {len(elements)}"
        )
    return Pack(kind(x) for kind, x in zip(result, elements))


def bitcast(result: Any, source: Any, **_: Any) -> Any:
    """Reinterpret the bits of a vector as another type."""
    return bits_as(result, source)


def extract(source: Any, dynamic_position: Any = (), static_position: Any = (), **_: Any) -> Any:
    """Return the element of a vector at a static index."""
    if len(dynamic_position):
        raise KernelTypeError(
            "F251",
            "vector.extract: the position must be known at compile time",
            hint="vectors are in registers, which cannot be indexed at run time",
        )
    return element(source, list(static_position))


def extractelement(source: Any, *, position: Any, **_: Any) -> Any:
    """Return the element of a vector at a static index."""
    return element(source, position)


def insertelement(source: Any, dest: Any, *, position: Any, **_: Any) -> Pack:
    """Return a copy of a vector with the element at a static index replaced."""
    return with_element(dest, position, source)


# ----------------------------------------------------------------------------------------------------------------- math


_RENAMED = {"clampf": "clamp", "ctlz": "clz", "ctpop": "popc", "fpowi": "powf", "roundeven": "round"}
"""Operations whose function has a different name in ``math_ops``."""
_SAME = (
    "absf", "absi", "acos", "asin", "atan", "atan2", "ceil", "copysign", "cos", "erf", "exp", "exp2", "expm1", "floor",
    "fma", "log", "log10", "log1p", "log2", "powf", "rsqrt", "sin", "sqrt", "tan", "tanh", "trunc",
)  # fmt: skip


def _builder(name: str) -> Callable[..., Any]:
    function = getattr(math_ops, _RENAMED.get(name, name))

    def build(*operands: Any, results: Any = None, fastmath: Any = None, loc: Any = None, ip: Any = None) -> Any:
        return function(*operands)

    build.__name__ = name
    return build


def __getattr__(name: str) -> Any:
    if name not in (*_RENAMED, *_SAME):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = _builder(name)
    return globals()[name]
