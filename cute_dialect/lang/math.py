"""``cute.math``: functions of numbers and vectors."""

from __future__ import annotations

from cute_dialect.lang.values.math import absf as absf
from cute_dialect.lang.values.math import absi as absi
from cute_dialect.lang.values.math import acos as acos
from cute_dialect.lang.values.math import asin as asin
from cute_dialect.lang.values.math import atan as atan
from cute_dialect.lang.values.math import atan2 as atan2
from cute_dialect.lang.values.math import brev as brev
from cute_dialect.lang.values.math import ceil as ceil
from cute_dialect.lang.values.math import clamp as clamp
from cute_dialect.lang.values.math import clz as clz
from cute_dialect.lang.values.math import copysign as copysign
from cute_dialect.lang.values.math import cos as cos
from cute_dialect.lang.values.math import erf as erf
from cute_dialect.lang.values.math import exp as exp
from cute_dialect.lang.values.math import exp2 as exp2
from cute_dialect.lang.values.math import expm1 as expm1
from cute_dialect.lang.values.math import floor as floor
from cute_dialect.lang.values.math import fma as fma
from cute_dialect.lang.values.math import log as log
from cute_dialect.lang.values.math import log1p as log1p
from cute_dialect.lang.values.math import log2 as log2
from cute_dialect.lang.values.math import log10 as log10
from cute_dialect.lang.values.math import max as max
from cute_dialect.lang.values.math import min as min
from cute_dialect.lang.values.math import popc as popc
from cute_dialect.lang.values.math import powf as powf
from cute_dialect.lang.values.math import rcp as rcp
from cute_dialect.lang.values.math import round as round
from cute_dialect.lang.values.math import rsqrt as rsqrt
from cute_dialect.lang.values.math import sin as sin
from cute_dialect.lang.values.math import sqrt as sqrt
from cute_dialect.lang.values.math import tan as tan
from cute_dialect.lang.values.math import tanh as tanh
from cute_dialect.lang.values.math import trunc as trunc

__all__ = [
    "absf", "absi", "acos", "asin", "atan", "atan2", "brev", "ceil", "clamp", "clz", "copysign", "cos", "erf",
    "exp", "exp2", "expm1", "floor", "fma", "log", "log1p", "log2", "log10", "max", "min", "popc", "powf", "rcp",
    "round", "rsqrt", "sin", "sqrt", "tan", "tanh", "trunc",
]  # fmt: skip


def __dir__() -> list[str]:
    return sorted(__all__)
