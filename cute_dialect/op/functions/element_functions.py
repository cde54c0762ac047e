"""Element-wise functions by name: ``op.gelu(x)``, ``op.exp(x)``, ``op.where(mask, x, 0.0)``.

The type of the first argument selects the meaning:

- an array: the function of its elements, one kernel, with gradients where torch wants them;
- a value of a traced epilogue, or a number: the function of :mod:`cute_dialect.op.epilogue` of the same name;
- an element type (``op.gelu("f32")``), for some activations: a description for ``op.LinearCombinationGeneric``.
"""

# Arrays belong to any library.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from cute_dialect.op.epilogue import functions
from cute_dialect.op.epilogue.tracer_values import Proxy
from cute_dialect.op.errors import ArgumentError, DtypeError
from cute_dialect.op.functions.elementwise import Elementwise
from cute_dialect.op.keywords import as_number, check_keywords
from cute_dialect.op.pycutlass.functors import described_activation

if TYPE_CHECKING:  # pragma: no cover
    from typing import Never

    from cute_dialect.op.signature_types import Array, Factor

_DESCRIBED = ("relu", "leaky_relu", "tanh", "sigmoid", "silu", "hardswish", "gelu")
"""Functions that describe an activation when their argument is an element type."""


def _is_array(x: object) -> bool:
    """Return True for an array of any library, and False for numbers and classes, such as np.float16."""
    if isinstance(x, type | int | float):
        return False
    return (hasattr(x, "shape") and hasattr(x, "dtype")) or hasattr(x, "__dlpack__")


class _Call:
    """An elementwise function under its public name."""

    def __init__(self, name: str, function: Callable[..., Any]) -> None:
        self.name, self.function = name, function
        self.of_arrays = Elementwise(function, name)

    def __call__(self, operands: tuple[Any, ...], out: Any, dtype: object, device: object) -> Any:
        if any([isinstance(x, Proxy) for x in operands]) or not any([_is_array(x) for x in operands]):
            self._check_operands(operands)
            given = {"out": out, "dtype": dtype, "device": device}
            passed = [key for key, value in given.items() if value is not None]
            if passed:
                raise ArgumentError(f"{self.name}: {passed[0]}= is for arrays; got a {type(operands[0]).__name__}")
            return self.function(*operands)
        return self.of_arrays(*operands, out=out, dtype=dtype, device=device)

    def _check_operands(self, operands: tuple[Any, ...]) -> None:
        for x in operands:
            if not isinstance(x, Proxy | bool | int | float):
                raise DtypeError(
                    f"{self.name}: x is a {type(x).__name__}; pass an array (torch, numpy, cupy), a value of an "
                    f"epilogue or a number"
                )


def _one_operand(name: str) -> Callable[..., Any]:
    """Return the public function with one operand."""
    call, describes = _Call(name, getattr(functions, name)), name in _DESCRIBED

    def of(
        x: Array = "f32", *, out: Array = None, dtype: object = None, device: object = None, **unknown: Never
    ) -> Array:
        if unknown:
            check_keywords(name, of, unknown, interpreted=False)
        if describes and _is_element_type(x):
            return described_activation(name, x)
        return call((x,), out, dtype, device)

    of.__name__ = of.__qualname__ = name
    of.__doc__ = f"Apply {name} to each element of ``x``.  Other arguments: see ``op.elementwise``." + (
        f"  ``{name}(element)`` describes the activation for ``LinearCombinationGeneric``." if describes else ""
    )
    return of


def _is_element_type(x: object) -> bool:
    """Return True for the name or the class of an element type."""
    return not isinstance(x, Proxy | bool | int | float) and not _is_array(x)


abs, erf, exp, exp2, log, rsqrt, sqrt = (_one_operand(n) for n in ("abs", "erf", "exp", "exp2", "log", "rsqrt", "sqrt"))
hardsigmoid, hardswish, mish, relu, relu6, sigmoid, silu, softplus, tanh = (
    _one_operand(n)
    for n in ("hardsigmoid", "hardswish", "mish", "relu", "relu6", "sigmoid", "silu", "softplus", "tanh")
)
_GELU, _GELU_TANH = _Call("gelu", functions.gelu), _Call("gelu", functions.gelu_tanh)
_LEAKY_RELU, _ELU = _Call("leaky_relu", functions.leaky_relu), _Call("elu", functions.elu)
_MAXIMUM, _MINIMUM = _Call("maximum", functions.maximum), _Call("minimum", functions.minimum)
_WHERE = _Call("where", functions.where)
_CLAMP = {
    (True, True): _Call("clamp", functions.clamp),
    (True, False): _Call("clamp", functions.maximum),
    (False, True): _Call("clamp", functions.minimum),
}
"""``clamp`` by the bounds that are given."""


def gelu(
    x: Array = "f32", *, approximate: str = "none", out: Array = None, dtype: object = None, device: object = None,
    **unknown: Never,
) -> Array:  # fmt: skip
    """Return GELU of each element of ``x``, like ``torch.nn.functional.gelu``.

    Args:
        x: an array, a traced value or a number; an element type to describe the activation.
        approximate: ``"none"`` computes it with erf, ``"tanh"`` with the tanh approximation.
        out, dtype, device: as in ``op.elementwise``.
    """
    if unknown:
        check_keywords("gelu", gelu, unknown, interpreted=False)
    if approximate not in ("none", "tanh"):
        raise ArgumentError(f"gelu: approximate is {approximate!r}; pass 'none' or 'tanh'")
    by_tanh = approximate == "tanh"
    if _is_element_type(x):
        return described_activation("gelu_tanh" if by_tanh else "gelu", x)
    return (_GELU_TANH if by_tanh else _GELU)((x,), out, dtype, device)


def leaky_relu(
    x: Array = "f32", negative_slope: float | None = None, *, out: Array = None, dtype: object = None,
    device: object = None, **unknown: Never,
) -> Array:  # fmt: skip
    """Return ``x`` where it is positive, else ``x * negative_slope``.

    Args:
        x: an array, a traced value or a number; an element type to describe the activation.
        negative_slope: 0.01 by default, as in torch; 0.2 in a description (``op.leaky_relu("f32")``).
        out, dtype, device: as in ``op.elementwise``.
    """
    if unknown:
        check_keywords("leaky_relu", leaky_relu, unknown, interpreted=False)
    slopes = () if negative_slope is None else (as_number("leaky_relu", "negative_slope", negative_slope),)
    if _is_element_type(x):
        return described_activation("leaky_relu", x, *slopes)
    return _LEAKY_RELU((x, *(slopes or (0.01,))), out, dtype, device)


def elu(
    x: Array, alpha: float = 1.0, *, out: Array = None, dtype: object = None, device: object = None, **unknown: Never
) -> Array:
    """Return ``x`` where it is positive, else ``alpha * (e^x - 1)``.  Other arguments: see ``op.elementwise``."""
    if unknown:
        check_keywords("elu", elu, unknown, interpreted=False)
    return _ELU((x, as_number("elu", "alpha", alpha)), out, dtype, device)


def maximum(
    x: Array, y: Array, *, out: Array = None, dtype: object = None, device: object = None, **unknown: Never
) -> Array:
    """Return the elementwise maximum, NaN if an operand is NaN.  Other arguments: see ``op.elementwise``."""
    if unknown:
        check_keywords("maximum", maximum, unknown, interpreted=False)
    return _MAXIMUM((x, y), out, dtype, device)


def minimum(
    x: Array, y: Array, *, out: Array = None, dtype: object = None, device: object = None, **unknown: Never
) -> Array:
    """Return the elementwise minimum, NaN if an operand is NaN.  Other arguments: see ``op.elementwise``."""
    if unknown:
        check_keywords("minimum", minimum, unknown, interpreted=False)
    return _MINIMUM((x, y), out, dtype, device)


def where(
    condition: Array,
    x: Array,
    y: Array,
    *,
    out: Array = None,
    dtype: object = None,
    device: object = None,
    **unknown: Never,
) -> Array:
    """Return elements of ``x`` where ``condition`` is true, else of ``y``.  Other arguments: see ``op.elementwise``."""
    if unknown:
        check_keywords("where", where, unknown, interpreted=False)
    return _WHERE((condition, x, y), out, dtype, device)


def clamp(
    x: Array, min: Factor = None, max: Factor = None, *, out: Array = None, dtype: object = None, device: object = None,
    **unknown: Never,
) -> Array:  # fmt: skip
    """Clamp elements of ``x`` between two bounds, each of which may be None.

    For the other arguments see ``op.elementwise``.
    """
    if unknown:
        check_keywords("clamp", clamp, unknown, interpreted=False)
    bounds = [t for t in (min, max) if t is not None]
    if not bounds:
        raise ArgumentError("clamp: neither min nor max is given; pass one or both")
    return _CLAMP[min is not None, max is not None]((x, *bounds), out, dtype, device)
