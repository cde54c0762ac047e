"""Elementwise functions of epilogues, each with a kernel implementation and an array implementation as its reference.

Kernels compute in f32, with approximations far more accurate than 16-bit results. NaN is propagated, and infinities
give the limit. ``ACTIVATIONS`` are the activations of neural networks, ``d_…`` their derivatives. ``FUNCTIONS`` also
has arithmetic.

>>> relu6 = FUNCTIONS["relu6"]
>>> float(relu6.of_arrays(NUMPY, 7.5)), FUNCTIONS["leaky_relu"].parameters
(6.0, ('slope',))
"""

# The functions take traced values or arrays of any library, whose operators pyright cannot check.
# pyright: reportArgumentType=false, reportUnknownArgumentType=false, reportOperatorIssue=false
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownLambdaType=false

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache, partial
from typing import Any, NamedTuple

import cute_dialect.lang as cute


class Function(NamedTuple):
    """An elementwise function."""

    in_kernel: Callable[..., Any]  # in_kernel(x, …)
    of_arrays: Callable[..., Any]  # of_arrays(arrays, x, …)
    arity: int = 1  # number of operands, parameters included
    parameters: tuple[str, ...] = ()  # names of the last operands that are parameters
    defaults: tuple[float, ...] = ()  # default values of the parameters
    result: str = ""  # "b" for a boolean, "" for the type of the operands


# ------------------------------------------------------------------------------------------------------------ arrays


class Arrays(NamedTuple):
    """Array functions that the references need, from some library."""

    exp: Callable[..., Any]
    log: Callable[..., Any]
    log1p: Callable[..., Any]
    expm1: Callable[..., Any]
    sqrt: Callable[..., Any]
    tanh: Callable[..., Any]
    erf: Callable[..., Any]
    abs: Callable[..., Any]
    maximum: Callable[..., Any]
    minimum: Callable[..., Any]
    where: Callable[..., Any]
    frexp: Callable[..., Any]


@cache
def _numpy() -> Arrays:
    import math

    import numpy as np

    def quiet(function: Callable[..., Any]) -> Callable[..., Any]:
        def silent(*x: Any) -> Any:
            with np.errstate(all="ignore"):
                return function(*x)

        return silent

    erf = np.vectorize(math.erf, otypes=[np.float64])
    found = (
        np.exp,
        np.log,
        np.log1p,
        np.expm1,
        np.sqrt,
        np.tanh,
        erf,
        np.abs,
        np.maximum,
        np.minimum,
        np.where,
        np.frexp,
    )
    return Arrays(*map(quiet, found))


class _Lazy:
    """Functions of numpy, imported on first use."""

    def __getattr__(self, name: str) -> Any:
        return getattr(_numpy(), name)


NUMPY: Any = _Lazy()
"""Functions of numpy arrays and of numbers."""


@cache
def arrays_of_torch() -> Arrays:
    """Return the functions of torch tensors, which also accept numbers as second operands."""
    import torch  # pyright: ignore[reportMissingImports]

    def both(function: Any) -> Callable[..., Any]:
        def of(x: Any, y: Any) -> Any:
            tensor = x if isinstance(x, torch.Tensor) else y

            def like(t: Any) -> Any:
                if isinstance(t, float) and (tensor.is_floating_point() or t.is_integer()):
                    return torch.tensor(t, dtype=tensor.dtype, device=tensor.device)
                return torch.as_tensor(t, device=tensor.device)

            return function(like(x), like(y))

        return of

    return Arrays(
        torch.exp, torch.log, torch.log1p, torch.expm1, torch.sqrt, torch.tanh, torch.erf, torch.abs,
        both(torch.maximum), both(torch.minimum), torch.where, torch.frexp,
    )  # fmt: skip


CASTS = {"f16": "float16", "bf16": "bfloat16", "f32": "float32"}
"""Types that values can be rounded to -> their numpy names."""

LARGEST = {"f8E4M3FN": 448.0, "f8E5M2": 57344.0, "i8": 127.0}
"""8-bit types that values are quantized to -> the largest value. Integers are symmetric."""


def exponent_of(limit: float) -> tuple[int, int]:
    """Return the exponent of a number, and the mantissa bits of its f32.

    >>> exponent_of(448.0)
    (8, 6291456)
    """
    mantissa, exponent = math.frexp(limit)
    return exponent - 1, int((2 * mantissa - 1) * 2**23)


def eight_bits(x: Any, element: str) -> Any:
    """Round an array to an 8-bit type, to nearest even and saturating, and return it in its own type."""
    most = LARGEST[element]
    if type(x).__module__.startswith("torch"):
        import torch  # pyright: ignore[reportMissingImports]

        if element == "i8":
            return torch.nan_to_num(torch.round(x), nan=0.0).clamp(-128, most)
        kind = torch.float8_e4m3fn if element == "f8E4M3FN" else torch.float8_e5m2
        return x.clamp(-most, most).to(kind).to(x.dtype)
    import numpy as np

    if element == "i8":
        return np.clip(np.nan_to_num(np.rint(x), nan=0.0), -128, most)
    import ml_dtypes

    kind: Any = ml_dtypes.float8_e4m3fn if element == "f8E4M3FN" else ml_dtypes.float8_e5m2
    return np.clip(x, -most, most).astype(np.float32).astype(kind).astype(x.dtype)


def cast_of_arrays(x: Any, element: str) -> Any:
    """Round an array or a number to another type, and return it in its own type."""
    if type(x).__module__.startswith("torch"):
        import torch  # pyright: ignore[reportMissingImports]

        return x.to(getattr(torch, CASTS[element])).to(x.dtype)
    import numpy as np

    if element == "bf16":
        import ml_dtypes

        kind: Any = ml_dtypes.bfloat16
    else:
        kind = CASTS[element]
    array = x if hasattr(x, "astype") else np.asarray(x, np.float64)
    return array.astype(kind).astype(array.dtype)


# -------------------------------------------------------------------------------------------------------- in kernels

_OF_F64 = Arrays(
    cute.math.exp, cute.math.log, cute.math.log1p, cute.math.expm1, cute.math.sqrt, cute.math.tanh, cute.math.erf,
    cute.math.absf, cute.max, cute.min, cute.where, math.frexp,
)  # fmt: skip
"""Functions of f64 values in a kernel."""


def function_in_f64(name: str) -> Callable[..., Any]:
    """Return the kernel implementation of a function of f64 values: the formula of its reference.

    The implementations for f32 are approximations.  Those of ``exp``, ``log`` and so on depend on the type alone.
    """
    function = FUNCTIONS[name]
    if name in ARITHMETIC and name != "rsqrt":  # rsqrt has only an approximate instruction.
        return function.in_kernel
    return partial(function.of_arrays, _OF_F64)


_LOG2_E = 1.4426950408889634
_LOWEST = -3.0e38
"""Stands for -inf in products with zero."""


def _finite(x: Any) -> Any:
    return cute.max(x, _LOWEST)


def _power(x: Any) -> Any:
    """Return ``e^x``."""
    return cute.arch.exp2(x * _LOG2_E)


def _sigmoid(x: Any) -> Any:
    return cute.arch.rcp_approx(_power(x * -1.0) + 1.0)


def _relu(x: Any) -> Any:
    return cute.max(x, 0 if x.is_integer else 0.0)


def _leaky_relu(x: Any, slope: Any) -> Any:
    return x if x >= 0.0 else x * slope


def _relu6(x: Any) -> Any:
    return cute.min(cute.max(x, 0.0), 6.0)


def _hardsigmoid(x: Any) -> Any:
    return cute.min(cute.max(x * (1 / 6) + 0.5, 0.0), 1.0)


def _hardswish(x: Any) -> Any:
    return _finite(x) * _hardsigmoid(x)


def _sigmoid_times(x: Any, y: Any) -> Any:
    """Return ``x / (1 + 2^y)``, which is 0 if the power is infinite."""
    return _finite(x) * cute.arch.rcp_approx(cute.arch.exp2(y) + 1.0)


def _silu(x: Any) -> Any:
    return _sigmoid_times(x, x * -_LOG2_E)


_TANH_SCALE = -2 * 0.7978845608028654 * _LOG2_E


def _gelu_tanh(x: Any) -> Any:
    """``x (1 + tanh u) / 2 = x / (1 + e^-2u)`` with ``u = sqrt(2 / pi) (x + 0.044715 x^3)``."""
    return _sigmoid_times(x, x * (x * x * (0.044715 * _TANH_SCALE) + _TANH_SCALE))


_TAIL = (
    -1.4839196e-07, 1.7687587e-06, 2.7027954e-05, -7.6333818e-04, 8.0765421e-03, -5.3380325e-02, -0.45883223,
    -1.1511633, -1.0,
)  # fmt: skip
"""Coefficients, highest power first, of a polynomial near ``log2((1 - erf(z / sqrt 2)) / 2)`` for z >= 0.

It is a weighted minimax fit over [0, 9]. The error of ``z * tail(z)`` is at most 1.6e-7 absolute, and up to z = 5 at
most 4e-5 relative. Past 9 it falls faster than the logarithm."""


def _gelu(x: Any) -> Any:
    """``max(x, 0) - |x| tail(|x|)``, where ``tail(z)`` is the upper tail of the normal distribution.

    It needs one exponential and no division, for both signs of x.
    """
    z = cute.min(cute.math.absf(x), 1.0e30)  # infinity times a tail of 0 would be NaN
    power = cute.Float32(_TAIL[0])
    for a in _TAIL[1:]:
        power = power * z + a
    return cute.max(x, 0.0) - z * cute.arch.exp2(power)


_ERF = (0.254829592, -0.284496736, 1.421413741, -1.453152027, 1.061405429)
"""``1 - erf(z) = t (a1 + t (a2 + ...)) e^(-z^2)``, ``t = 1 / (1 + 0.3275911 z)``, within 1.5e-7 (Abramowitz and Stegun,
7.1.26)."""


def _normal(x: Any, density: Any) -> Any:
    """Return ``(1 + erf(x / sqrt 2)) / 2`` without cancellation in the tail; ``density`` is ``e^(-x^2 / 2)``."""
    t = cute.arch.rcp_approx(cute.math.absf(x) * (0.3275911 * 0.7071067811865476) + 1.0)
    total = cute.Float32(0.5 * _ERF[-1])
    for a in reversed(_ERF[:-1]):
        total = total * t + 0.5 * a
    tail = total * t * density
    return tail if x < 0.0 else 1.0 - tail


def _tanh(x: Any) -> Any:
    """Near 0 use a polynomial, because the formula for larger values would cancel."""
    z = x * x
    near = x * (((z * (62 / 2835) - 17 / 315) * z + 2 / 15) * z * z - z * (1 / 3) + 1.0)
    far = 1.0 - 2.0 * cute.arch.rcp_approx(_power(x * 2.0) + 1.0)
    return near if z < 0.0625 else far


def _softplus(x: Any) -> Any:
    return cute.max(x, 0.0) + cute.math.log1p(_power(cute.min(x, x * -1.0)))


def _elu(x: Any, alpha: Any) -> Any:
    return x if x >= 0.0 else cute.math.expm1(x) * alpha


def _mish(x: Any) -> Any:
    """``x tanh(log(1 + e^x)) = x n / (n + 2)`` with ``n = e^x (e^x + 2)``."""
    e = _power(cute.min(x, 20.0))
    n = e * (e + 2.0)
    return _finite(x) * (n * cute.arch.rcp_approx(n + 2.0))


def _power_of_two(x: Any, limit: Any) -> Any:
    """Return the smallest power of two p with ``limit * p >= x``, from the bits of x, so that no logarithm is
    rounded.
    """
    exponent, mantissa = exponent_of(limit)
    bits = (x.bitcast(cute.Int32) + (0x7FFFFF - mantissa)) & 0x7F800000
    return (bits - (exponent << 23)).bitcast(cute.Float32)


def _ref_power_of_two(a: Arrays, x: Any, limit: Any) -> Any:
    """The reference of :func:`_power_of_two`, on arrays."""
    mantissa, exponent = math.frexp(limit)
    if type(x).__module__.startswith("torch"):
        import torch  # pyright: ignore[reportMissingImports]

        m, e = torch.frexp(x)
        return torch.ldexp(torch.ones_like(x), e - exponent + (m > mantissa))
    import numpy as np

    m, e = np.frexp(x)
    return np.ldexp(np.ones_like(m), (e - exponent + (m > mantissa)).astype(np.int32))


def _square_relu(x: Any) -> Any:
    y = cute.max(x, 0.0)
    return y * y


def _d_identity(x: Any) -> Any:
    return cute.Float32(1.0) if x == x else x


def _d_relu(x: Any) -> Any:
    return cute.Float32(0.0) if x <= 0.0 else (cute.Float32(1.0) if x > 0.0 else x)


def _d_leaky_relu(x: Any, slope: Any) -> Any:
    return cute.Float32(slope) if x <= 0.0 else (cute.Float32(1.0) if x > 0.0 else x)


def _inside(x: Any, low: float, high: float, value: float) -> Any:
    """Return a value between two bounds, and 0 outside of them."""
    return cute.Float32(0.0) if (x <= low) | (x >= high) else x * 0.0 + value


def _d_relu6(x: Any) -> Any:
    return _inside(x, 0.0, 6.0, 1.0)


def _d_hardsigmoid(x: Any) -> Any:
    return _inside(x, -3.0, 3.0, 1 / 6)


def _d_hardswish(x: Any) -> Any:
    inside = cute.Float32(1.0) if x >= 3.0 else x * (1 / 3) + 0.5
    return cute.Float32(0.0) if x <= -3.0 else inside


def _d_sigmoid(x: Any) -> Any:
    """``e / (1 + e)^2`` with ``e = e^-|x|``."""
    e = _power(cute.min(x, x * -1.0))
    s = cute.arch.rcp_approx(e + 1.0)
    return e * s * s


def _bounded(x: Any) -> Any:
    return cute.min(cute.max(x, _LOWEST), -_LOWEST)


def _d_silu(x: Any) -> Any:
    return _sigmoid(x) + _bounded(x) * _d_sigmoid(x)


def _d_tanh(x: Any) -> Any:
    return _d_sigmoid(x * 2.0) * 4.0


def _d_gelu(x: Any) -> Any:
    density = cute.arch.exp2(x * x * (-0.5 * _LOG2_E))
    return _normal(x, density) + _bounded(x) * density * 0.3989422804014327


def _d_gelu_tanh(x: Any) -> Any:
    """``s(u) + x u' s'(u)`` with ``u = k (x + 0.044715 x^3)``, ``s`` the sigmoid."""
    z, k = x * x, 2 * 0.7978845608028654
    u = x * (z * (0.044715 * k) + k)
    slope = cute.min(z, 1.0e20) * (3 * 0.044715 * k) + k
    return _sigmoid(u) + cute.min(cute.max(x, -1.0e10), 1.0e10) * slope * _d_sigmoid(u)


def _d_elu(x: Any, alpha: Any) -> Any:
    return cute.Float32(1.0) if x > 0.0 else _power(x) * alpha


def _d_mish(x: Any) -> Any:
    """``t + x 4 e (e + 1) / (n + 2)^2``, with ``t``, ``n`` and ``e`` as in ``mish``."""
    e = _power(cute.min(x, 20.0))
    n = e * (e + 2.0)
    r = cute.arch.rcp_approx(n + 2.0)
    return n * r + cute.max(cute.min(x, 40.0), _LOWEST) * (e * (e + 1.0)) * 4.0 * r * r


def _d_square_relu(x: Any) -> Any:
    return cute.max(x, 0.0) * 2.0


# -------------------------------------------------------------------------------------------------------- references
# References compute in the type of the arrays, f64 at best. Limits that are infinity times 0 are given explicitly.


def _limits(f: Callable[[Arrays, Any], Any], low: float, high: float | None) -> Callable[[Arrays, Any], Any]:
    """Return a function with given values at the infinities; None stands for infinity itself."""
    inf = float("inf")

    def of(a: Arrays, x: Any) -> Any:
        y = a.where(x == -inf, low, f(a, x))
        return a.where(x == inf, x if high is None else high, y)

    return of


def _ref_sigmoid(a: Arrays, x: Any) -> Any:
    return 1.0 / (1.0 + a.exp(-x))


def _ref_normal(a: Arrays, x: Any) -> Any:
    return 0.5 * (1.0 + a.erf(x * 0.7071067811865476))


_K = 0.7978845608028654


def _ref_u(x: Any) -> Any:
    return 2 * _K * (x + 0.044715 * x * x * x)


def _ref_softplus(a: Arrays, x: Any) -> Any:
    return a.maximum(x, 0.0) + a.log1p(a.exp(-a.abs(x)))


def _ref_d_sigmoid(a: Arrays, x: Any) -> Any:
    e = a.exp(-a.abs(x))
    return e / ((1.0 + e) * (1.0 + e))


def _ref_clamped(a: Arrays, x: Any, low: float, high: float) -> Any:
    return a.where(x <= low, low, a.where(x >= high, high, x))


def _between(a: Arrays, x: Any, low: float, high: float, value: float) -> Any:
    return a.where((x <= low) | (x >= high), 0.0, x * 0.0 + value)


def _ref_d_mish(a: Arrays, x: Any) -> Any:
    t = a.tanh(_ref_softplus(a, x))
    return t + x * (1.0 - t * t) * _ref_sigmoid(a, x)


def _ref_d_gelu(a: Arrays, x: Any) -> Any:
    return _ref_normal(a, x) + x * a.exp(-0.5 * x * x) * 0.3989422804014327


def _ref_d_gelu_tanh(a: Arrays, x: Any) -> Any:
    u = _ref_u(x)
    return _ref_sigmoid(a, u) + x * 2 * _K * (1.0 + 3 * 0.044715 * x * x) * _ref_d_sigmoid(a, u)


_SLOPE, _ALPHA = (("slope",), (0.01,)), (("alpha",), (1.0,))

ACTIVATIONS: dict[str, Function] = {
    "identity": Function(lambda x: x, lambda a, x: x),
    "relu": Function(_relu, lambda a, x: a.where(x <= 0.0, 0.0, x)),  # the gradient of torch.maximum at 0 is 1/2
    "leaky_relu": Function(_leaky_relu, lambda a, x, s: a.where(x >= 0.0, x, x * s), 2, *_SLOPE),
    "prelu": Function(_leaky_relu, lambda a, x, s: a.where(x >= 0.0, x, x * s), 2),
    "relu6": Function(_relu6, lambda a, x: _ref_clamped(a, x, 0.0, 6.0)),
    "hardsigmoid": Function(_hardsigmoid, lambda a, x: _ref_clamped(a, x / 6.0 + 0.5, 0.0, 1.0)),
    "hardswish": Function(_hardswish, _limits(lambda a, x: x * _ref_clamped(a, x / 6.0 + 0.5, 0.0, 1.0), 0.0, None)),
    "sigmoid": Function(_sigmoid, _ref_sigmoid),
    "silu": Function(_silu, _limits(lambda a, x: x * _ref_sigmoid(a, x), 0.0, None)),
    "tanh": Function(_tanh, lambda a, x: a.tanh(x)),
    "gelu": Function(_gelu, _limits(lambda a, x: x * _ref_normal(a, x), 0.0, None)),
    "gelu_tanh": Function(_gelu_tanh, _limits(lambda a, x: x * _ref_sigmoid(a, _ref_u(x)), 0.0, None)),
    "softplus": Function(_softplus, _ref_softplus),
    "elu": Function(_elu, lambda a, x, s: a.where(x >= 0.0, x, a.expm1(x) * s), 2, *_ALPHA),
    "mish": Function(_mish, _limits(lambda a, x: x * a.tanh(_ref_softplus(a, x)), 0.0, None)),
    "square_relu": Function(_square_relu, lambda a, x: a.maximum(x, 0.0) * a.maximum(x, 0.0)),
}
"""Name -> function. ``gelu`` uses erf, ``gelu_tanh`` is the approximation that torch calls ``tanh``."""

GRADIENTS: dict[str, Function] = {
    "d_identity": Function(_d_identity, lambda a, x: a.where(x == x, 1.0, x)),
    "d_relu": Function(_d_relu, lambda a, x: a.where(x <= 0.0, 0.0, a.where(x > 0.0, 1.0, x))),
    "d_leaky_relu": Function(_d_leaky_relu, lambda a, x, s: a.where(x <= 0.0, s, a.where(x > 0.0, 1.0, x)), 2, *_SLOPE),
    "d_relu6": Function(_d_relu6, lambda a, x: _between(a, x, 0.0, 6.0, 1.0)),
    "d_hardsigmoid": Function(_d_hardsigmoid, lambda a, x: _between(a, x, -3.0, 3.0, 1 / 6)),
    "d_hardswish": Function(_d_hardswish, lambda a, x: a.where(x <= -3.0, 0.0, a.where(x >= 3.0, 1.0, x / 3.0 + 0.5))),
    "d_sigmoid": Function(_d_sigmoid, _ref_d_sigmoid),
    "d_silu": Function(_d_silu, _limits(lambda a, x: _ref_sigmoid(a, x) + x * _ref_d_sigmoid(a, x), 0.0, 1.0)),
    "d_tanh": Function(_d_tanh, lambda a, x: 4.0 * _ref_d_sigmoid(a, 2.0 * x)),
    "d_gelu": Function(_d_gelu, _limits(_ref_d_gelu, 0.0, 1.0)),
    "d_gelu_tanh": Function(_d_gelu_tanh, _limits(_ref_d_gelu_tanh, 0.0, 1.0)),
    "d_softplus": Function(_sigmoid, _ref_sigmoid),
    "d_elu": Function(_d_elu, lambda a, x, s: a.where(x > 0.0, 1.0, a.exp(x) * s), 2, *_ALPHA),
    "d_mish": Function(_d_mish, _limits(_ref_d_mish, 0.0, 1.0)),
    "d_square_relu": Function(_d_square_relu, lambda a, x: a.maximum(x, 0.0) * 2.0),
}
"""Derivatives of the activations: ``dX = (dY W) * d_gelu(x)``."""

ARITHMETIC: dict[str, Function] = {
    "add": Function(lambda x, y: x + y, lambda a, x, y: x + y, 2),
    "subtract": Function(lambda x, y: x - y, lambda a, x, y: x - y, 2),
    "multiply": Function(lambda x, y: x * y, lambda a, x, y: x * y, 2),
    "divide": Function(lambda x, y: x / y, lambda a, x, y: x / y, 2),
    "floor_divide": Function(lambda x, y: x // y, lambda a, x, y: x // y, 2),
    "remainder": Function(lambda x, y: x % y, lambda a, x, y: x % y, 2),
    "scaled": Function(lambda y, x: y * x, lambda a, y, x: a.where(y == 0.0, y * 0.0, y * x), 2),
    "negative": Function(lambda x: -x, lambda a, x: -x),
    "abs": Function(lambda x: cute.max(x, -x) if x.is_integer else cute.math.absf(x), lambda a, x: a.abs(x)),
    "sqrt": Function(lambda x: cute.math.sqrt(x), lambda a, x: a.sqrt(x)),
    "power_of_two": Function(_power_of_two, _ref_power_of_two, 2),
    "rsqrt": Function(lambda x: cute.math.rsqrt(x), lambda a, x: 1.0 / a.sqrt(x)),
    "exp": Function(lambda x: cute.math.exp(x), lambda a, x: a.exp(x)),
    "exp2": Function(lambda x: cute.math.exp2(x), lambda a, x: a.exp(x * 0.6931471805599453)),
    "log": Function(lambda x: cute.math.log(x), lambda a, x: a.log(x)),
    "erf": Function(lambda x: cute.math.erf(x), lambda a, x: a.erf(x)),
    "maximum": Function(lambda x, y: cute.max(x, y), lambda a, x, y: a.maximum(x, y), 2),
    "minimum": Function(lambda x, y: cute.min(x, y), lambda a, x, y: a.minimum(x, y), 2),
    "multiply_add": Function(lambda x, y, z: x * y + z, lambda a, x, y, z: x * y + z, 3),
    "where": Function(lambda c, x, y: cute.where(c, x, y), lambda a, c, x, y: a.where(c, x, y), 3),
    "less": Function(lambda x, y: x < y, lambda a, x, y: x < y, 2, result="b"),
    "less_equal": Function(lambda x, y: x <= y, lambda a, x, y: x <= y, 2, result="b"),
    "greater": Function(lambda x, y: x > y, lambda a, x, y: x > y, 2, result="b"),
    "greater_equal": Function(lambda x, y: x >= y, lambda a, x, y: x >= y, 2, result="b"),
    "equal": Function(lambda x, y: x == y, lambda a, x, y: x == y, 2, result="b"),
    "not_equal": Function(lambda x, y: x != y, lambda a, x, y: x != y, 2, result="b"),
    "logical_and": Function(lambda x, y: x & y, lambda a, x, y: x & y, 2, result="b"),
    "logical_or": Function(lambda x, y: x | y, lambda a, x, y: x | y, 2, result="b"),
    "logical_not": Function(lambda x: ~x, lambda a, x: ~x, result="b"),
}
"""Functions behind Python's operators and elementwise functions. In ``scaled``, a factor of 0 gives 0 even for NaN."""

FUNCTIONS: dict[str, Function] = {**ARITHMETIC, **ACTIVATIONS, **GRADIENTS}
"""All functions by name."""
