"""``cute.math``: functions of numbers and vectors."""

from __future__ import annotations

from cute_dialect.front.math_ops import absf as absf
from cute_dialect.front.math_ops import absi as absi
from cute_dialect.front.math_ops import acos as acos
from cute_dialect.front.math_ops import asin as asin
from cute_dialect.front.math_ops import atan as atan
from cute_dialect.front.math_ops import atan2 as atan2
from cute_dialect.front.math_ops import brev as brev
from cute_dialect.front.math_ops import ceil as ceil
from cute_dialect.front.math_ops import clamp as clamp
from cute_dialect.front.math_ops import clz as clz
from cute_dialect.front.math_ops import copysign as copysign
from cute_dialect.front.math_ops import cos as cos
from cute_dialect.front.math_ops import erf as erf
from cute_dialect.front.math_ops import exp as exp
from cute_dialect.front.math_ops import exp2 as exp2
from cute_dialect.front.math_ops import expm1 as expm1
from cute_dialect.front.math_ops import floor as floor
from cute_dialect.front.math_ops import fma as fma
from cute_dialect.front.math_ops import log as log
from cute_dialect.front.math_ops import log1p as log1p
from cute_dialect.front.math_ops import log2 as log2
from cute_dialect.front.math_ops import log10 as log10
from cute_dialect.front.math_ops import max as max
from cute_dialect.front.math_ops import min as min
from cute_dialect.front.math_ops import popc as popc
from cute_dialect.front.math_ops import powf as powf
from cute_dialect.front.math_ops import rcp as rcp
from cute_dialect.front.math_ops import round as round
from cute_dialect.front.math_ops import rsqrt as rsqrt
from cute_dialect.front.math_ops import sin as sin
from cute_dialect.front.math_ops import sqrt as sqrt
from cute_dialect.front.math_ops import tan as tan
from cute_dialect.front.math_ops import tanh as tanh
from cute_dialect.front.math_ops import trunc as trunc

__all__ = [
    "absf", "absi", "acos", "asin", "atan", "atan2", "brev", "ceil", "clamp", "clz", "copysign", "cos", "erf",
    "exp", "exp2", "expm1", "floor", "fma", "log", "log1p", "log2", "log10", "max", "min", "popc", "powf", "rcp",
    "round", "rsqrt", "sin", "sqrt", "tan", "tanh", "trunc",
]  # fmt: skip


def __dir__() -> list[str]:
    return sorted(__all__)
