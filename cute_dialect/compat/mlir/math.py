"""The builders of the ``math`` dialect that programs for CuTe DSL call, such as ``math.log(x, fastmath=…)``.

Each calls the function of :mod:`cute_dialect.lang.values.math` for the same operation. ``fastmath`` is ignored: results
are at least as accurate as the flags require.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from cute_dialect.lang.values import math as math_ops

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
