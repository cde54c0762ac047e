"""Elementwise functions for epilogues.

They take numbers, NumPy arrays, torch tensors and traced values, so an epilogue written with them is its own
reference.

>>> relu(-2.0), clamp(7.0, 0.0, 6.0)
(0.0, 6.0)
"""

# Arrays belong to any library.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from inspect import Parameter, Signature
from typing import TYPE_CHECKING, Any

from cute_dialect.kernels.common.philox import drawn_of_arrays
from cute_dialect.kernels.epilogue import functions as table
from cute_dialect.kernels.epilogue.activations import parsed
from cute_dialect.kernels.epilogue.functions import NUMPY, arrays_of_torch
from cute_dialect.kernels.epilogue.graph import greatest_of_blocks
from cute_dialect.op.arrays.dtypes import element_name
from cute_dialect.op.epilogue import tracer_values
from cute_dialect.op.errors import ArgumentError, EpilogueError

if TYPE_CHECKING:
    from cute_dialect.op.signature_types import Factor, Operand

_DOCS = {
    "erf": "Return the error function of each element.",
    "identity": "Return the elements unchanged.",
    "logical_and": "Return the elementwise logical and of two Boolean arrays.",
    "logical_not": "Return the elementwise negation of a Boolean array.",
    "logical_or": "Return the elementwise logical or of two Boolean arrays.",
    "maximum": "Return the elementwise maximum; NaN if an operand is NaN.",
    "minimum": "Return the elementwise minimum; NaN if an operand is NaN.",
    "multiply_add": "Return ``x * y + z``, element by element.",
    "rsqrt": "Return the reciprocal square root of each element.",
    "sqrt": "Return the square root of each element.",
    "where": "Return ``x`` where the condition is true, else ``y``, element by element.",
}
_OPERANDS = {"elu": "x alpha", "leaky_relu": "x negative_slope", "prelu": "x slope", "where": "condition x y"}
"""Names of operands in signatures, by function; ``x y z`` by default."""


def _function(name: str) -> Callable[..., Any]:
    f = table.FUNCTIONS[name]

    def of(*operands: Any) -> Any:
        given = len(operands)
        operands = (*operands, *f.defaults[len(operands) - f.arity :]) if len(operands) < f.arity else operands
        if any(isinstance(x, tracer_values.Proxy) for x in operands):
            return tracer_values.call(name, *operands)
        if len(operands) != f.arity:
            names = _OPERANDS.get(name, "x y z").split()[: f.arity]
            if given < f.arity:
                required = ", ".join(names[: f.arity - len(f.defaults)])
                raise ArgumentError(f"{name}() needs an argument '{names[given]}'; required arguments: {required}")
            raise ArgumentError(f"{name}() has only the arguments {', '.join(names)}, but the call passes {given}")
        if any(type(x).__module__.startswith("torch") for x in operands):
            return f.of_arrays(arrays_of_torch(), *operands)
        import numpy as np

        with np.errstate(all="ignore"):
            found = f.of_arrays(NUMPY, *operands)
        return found if any(isinstance(x, np.ndarray) for x in operands) else found.item()

    of.__name__ = of.__qualname__ = name
    of.__doc__ = _DOCS.get(name) or (
        f"Return the derivative of ``{name[2:]}`` at each element." if name.startswith("d_")
        else f"Apply ``{name}`` to each element."
    )  # fmt: skip
    names = _OPERANDS.get(name.removeprefix("d_"), "x y z").split()
    defaults = (*[Parameter.empty] * (f.arity - len(f.defaults)), *f.defaults)
    parameters = [
        Parameter(n, Parameter.POSITIONAL_ONLY, default=default, annotation="Operand")
        for n, default in zip(names, defaults, strict=False)
    ]
    of.__signature__ = Signature(parameters, return_annotation="Operand")  # pyright: ignore[reportFunctionMemberAccess]
    return of


abs, sqrt, rsqrt, exp, exp2, log, erf, maximum, minimum, where, multiply_add = (
    _function(n)
    for n in ("abs", "sqrt", "rsqrt", "exp", "exp2", "log", "erf", "maximum", "minimum", "where", "multiply_add")
)
logical_and, logical_or, logical_not = (_function(n) for n in ("logical_and", "logical_or", "logical_not"))
identity, relu, leaky_relu, prelu, relu6, hardsigmoid, hardswish, sigmoid = (
    _function(n) for n in ("identity", "relu", "leaky_relu", "prelu", "relu6", "hardsigmoid", "hardswish", "sigmoid")
)
silu, tanh, gelu, gelu_tanh, softplus, elu, mish, square_relu = (
    _function(n) for n in ("silu", "tanh", "gelu", "gelu_tanh", "softplus", "elu", "mish", "square_relu")
)
d_identity, d_relu, d_leaky_relu, d_relu6, d_hardsigmoid, d_hardswish, d_sigmoid = (
    _function(n)
    for n in ("d_identity", "d_relu", "d_leaky_relu", "d_relu6", "d_hardsigmoid", "d_hardswish", "d_sigmoid")
)
d_silu, d_tanh, d_gelu, d_gelu_tanh, d_softplus, d_elu, d_mish, d_square_relu = (
    _function(n)
    for n in ("d_silu", "d_tanh", "d_gelu", "d_gelu_tanh", "d_softplus", "d_elu", "d_mish", "d_square_relu")
)

ACTIVATIONS: Mapping[str, Callable[..., Any]] = {n: globals()[n] for n in table.ACTIVATIONS}
"""Activations by name.  Each but prelu has a derivative ``d_…``."""


def activated(text: str, *, derivative: bool = False) -> Callable[[Any], Any]:
    """Return the activation described by a text, or its derivative, as an elementwise function.  Raises ValueError.

    >>> activated("leaky_relu(0.5)")(-4.0), activated("leaky_relu(0.5)", derivative=True)(-4.0)
    (-2.0, 0.5)
    """
    name, numbers = parsed(text)
    function = globals()[f"d_{name}" if derivative else name]
    return partial(_with_numbers, function, numbers) if numbers else function


def _with_numbers(function: Callable[..., Any], numbers: tuple[float, ...], x: Any) -> Any:
    return function(x, *numbers)


def cast(x: Operand, element: str) -> Operand:
    """Round elements to ``f16``, ``bf16`` or ``f32``.

    >>> cast(1.0001, "f16")
    1.0
    """
    name = element_name(element)
    if name not in table.CASTS:
        raise EpilogueError(f"cast: element type {element} is not supported; use one of {', '.join(table.CASTS)}")
    if isinstance(x, tracer_values.Proxy):
        return x.cast(name)
    found = table.cast_of_arrays(x, name)
    return found if hasattr(x, "shape") else found.item()


def row(x: Operand) -> Operand:
    """Return the row index of each element of a matrix or a batch, of shape (M, 1)."""
    return _place(x, "row", -2)


def column(x: Operand) -> Operand:
    """Return the column index of each element of a matrix or a batch, of shape (1, N)."""
    return _place(x, "column", -1)


def matrix(x: Operand) -> Operand:
    """Return the batch index of each element of a batch, of shape (L, 1, 1)."""
    return _place(x, "matrix", -3)


def _place(x: Any, index: str, axis: int) -> Any:
    if isinstance(x, tracer_values.Proxy):
        return x.place(index)
    shape = [1] * len(x.shape)
    shape[axis] = -1
    if type(x).__module__.startswith("torch"):
        import torch  # pyright: ignore[reportMissingImports]

        return torch.arange(x.shape[axis], device=x.device).reshape(shape)
    import numpy as np

    return np.arange(x.shape[axis]).reshape(shape)


def sum(x: Operand, dim: int | None = None, whole_rows: bool = False) -> Operand:
    """Sum elements along a dimension, which stays with one element.

    In an epilogue a sum is a result of type f32, and its order of addition is the same at each call.

    Args:
        x: a matrix or a batch.
        dim: -1 for sums of rows, -2 for sums of columns, None for the sum of all.
        whole_rows: True for sums of rows (``dim`` -1) that are operands of other functions; N is at most 256.

    >>> import numpy as np
    >>> sum(np.ones((2, 3)), -1).tolist()
    [[3.0], [3.0]]
    """
    return _reduced(x, "sum", dim, whole_rows)


def sum_squares(x: Operand, dim: int | None = None, whole_rows: bool = False) -> Operand:
    """Return the sums of squares along a dimension; see :func:`sum`."""
    return _reduced(x * x, "sum", dim, whole_rows)


def max(x: Operand, dim: int | None = None, whole_rows: bool = False) -> Operand:
    """Return the maximum along a dimension; see :func:`sum`.  It is NaN if an element is NaN."""
    return _reduced(x, "max", dim, whole_rows)


def min(x: Operand, dim: int | None = None, whole_rows: bool = False) -> Operand:
    """Return the minimum along a dimension; see :func:`sum`.  It is NaN if an element is NaN."""
    return _reduced(x, "min", dim, whole_rows)


def _reduced(x: Any, operation: str, dim: int | None, whole_rows: bool) -> Any:
    if isinstance(x, tracer_values.Proxy) and whole_rows:
        return x.of_rows(operation, dim)
    if isinstance(x, tracer_values.Proxy):
        return x.reduced(operation, dim)
    return combined(x, operation, (-2, -1) if dim is None else (dim,))


def combined(x: Any, operation: str, axes: tuple[int, ...]) -> Any:
    """Reduce an array along some axes, which stay with one element."""
    if type(x).__module__.startswith("torch"):
        return getattr(x, {"sum": "sum", "max": "amax", "min": "amin"}[operation])(dim=axes, keepdim=True)
    return getattr(x, operation)(axis=axes, keepdims=True)


def pairs(x: Operand) -> tuple[Operand, Operand]:
    """Return the even and the odd columns.

    Values computed from them have half as many columns: ``gate, up = pairs(accum); D = silu(gate) * up``.
    """
    if isinstance(x, tracer_values.Proxy):
        return x.pair()
    return x[..., 0::2], x[..., 1::2]


def random(x: Operand, seed: Operand, offset: Operand = 0) -> Operand:
    """Return a uniform random number in [0, 1) for each element, a multiple of 2 ** -24.

    Philox of the seed, the offset and the element's index makes the numbers
    (:mod:`cute_dialect.kernels.common.philox`). Each kernel, NumPy and torch give the same ones.

    Args:
        x: gives the shape.
        seed: an integer, or an array of one integer.  An argument of the function becomes an argument of the launch.
        offset: as ``seed``; its lower 32 bits count.

    >>> import numpy as np
    >>> random(np.zeros((1, 4)), 7).round(3).tolist()
    [[0.955, 0.75, 0.407, 0.795]]
    """
    return x.random(seed, offset) if isinstance(x, tracer_values.Proxy) else drawn_of_arrays(x, seed, offset)


def dropout(x: Operand, p: Factor, seed: Operand, offset: Operand = 0) -> Operand:
    """Return ``x / (1 - p)`` with elements set to 0 with probability `p`.

    Args:
        x: the elements.
        p: probability from 0 to 1.
        seed: seed of :func:`random`; pass another seed or offset at each call.
        offset: offset of :func:`random`.
    """
    if isinstance(p, int | float):
        if not 0.0 <= p <= 1.0:
            raise EpilogueError(f"dropout: p is {p}; it must be a probability from 0 to 1")
        p = struct.unpack("f", struct.pack("f", p))[0]  # The kernel compares with p rounded to f32.
        scale = 0.0 if p == 1.0 else 1.0 / (1.0 - p)
    else:
        scale = 1.0 / (1.0 - p)
    return where(random(x, seed, offset) >= p, x * scale, 0.0)


def quantize(
    x: Operand, element: str = "f8E4M3FN", block: int | Sequence[int] = 128, scales: str = "f32"
) -> tuple[Operand, Operand]:
    """Return 8-bit values and their scales, so that x is close to ``values * scale``.

    Each block of columns of a row has one scale, which maps the largest magnitude to the largest value of
    ``element``. If no magnitude of a block exceeds 2 ** -110, the scale is 1.  In a traced epilogue the result is
    stored as ``element``; of arrays, values keep the type of x.

    Args:
        x: a matrix or a batch.
        element: f8E4M3FN, f8E5M2 or i8.
        block: columns per block, 32, 64 or 128, or ``(1, block)``; the first block starts at column 0.
        scales: "f32", or "e8m0" for the smallest powers of two that suffice; of shape (M, N / block), rounded up.

    >>> import numpy as np
    >>> q, s = quantize(np.array([[896.0, -3.0]]), scales="e8m0", block=32)
    >>> q.tolist(), s.tolist()
    ([[448.0, -1.5]], [[2.0]])
    """
    name, width = element_name(element), block if isinstance(block, int) else block[-1]
    if name not in table.LARGEST or width not in (32, 64, 128) or (not isinstance(block, int) and block[0] != 1):
        known = ", ".join(table.LARGEST)
        raise EpilogueError(
            f"quantize: element={element} with block={block} is not supported; element is one of {known}, "
            "block is 32, 64 or 128"
        )
    if scales not in ("f32", "e8m0"):
        raise EpilogueError(f'quantize: scales="{scales}" is not supported; use "f32" or "e8m0"')
    if isinstance(x, tracer_values.Proxy):
        return x.quantized(name, width, scales)
    arrays = arrays_of_torch() if type(x).__module__.startswith("torch") else NUMPY

    def call(function: str, *operands: Any) -> Any:
        import numpy as np

        with np.errstate(all="ignore"):
            return table.FUNCTIONS[function].of_arrays(arrays, *operands)

    scale, inverse = tracer_values.scales_of(greatest_of_blocks(call("abs", x), width), name, scales, call)
    return table.eight_bits(x * inverse, name), scale[..., ::width]


def reshape(x: Operand, shape: Sequence[int]) -> Operand:
    """Return the elements, in row-major order, with another shape; one extent may be -1.

    In an epilogue no data moves.  The shape determines where results are stored and where arguments are read.

    >>> import numpy as np
    >>> reshape(np.arange(6), (2, -1)).tolist()
    [[0, 1, 2], [3, 4, 5]]
    """
    return x.reshape(tuple(shape))


def permute(x: Operand, dims: Sequence[int]) -> Operand:
    """Return the modes in another order.  As with :func:`reshape`, no data moves in an epilogue.

    >>> import numpy as np
    >>> permute(np.ones((2, 3, 4)), (1, 0, 2)).shape
    (3, 2, 4)
    """
    return x.permute(tuple(dims)) if hasattr(x, "permute") else x.transpose(tuple(dims))


def clamp(x: Operand, low: Operand = None, high: Operand = None) -> Operand:
    """Clamp elements between two bounds.  Each bound may be None."""
    x = x if low is None else maximum(x, low)
    return x if high is None else minimum(x, high)
