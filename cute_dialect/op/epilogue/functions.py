"""Functions of elements that epilogues use; they take numbers, arrays of numpy, tensors of torch, and stand-ins of a
trace, so that a function written with them is its own reference.

>>> relu(-2.0), clamp(7.0, 0.0, 6.0)
(0.0, 6.0)
"""

# Arrays are of any library.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from cute_dialect.kernels import epilogue_functions as table
from cute_dialect.kernels.activations import parsed
from cute_dialect.kernels.epilogue_functions import NUMPY, arrays_of_torch
from cute_dialect.kernels.epilogue_graph import greatest_of_blocks
from cute_dialect.kernels.philox import drawn_of_arrays
from cute_dialect.op.dtypes import element_name
from cute_dialect.op.epilogue import tracer_values
from cute_dialect.op.errors import EpilogueError

__all__ = [
    "ACTIVATIONS", "abs", "activated", "cast", "clamp", "column", "d_elu", "d_gelu", "d_gelu_tanh", "d_hardsigmoid",
    "d_hardswish", "d_identity", "d_leaky_relu", "d_mish", "d_relu", "d_relu6", "d_sigmoid", "d_silu", "d_softplus",
    "d_square_relu", "d_tanh", "dropout", "elu", "erf", "exp", "exp2", "gelu", "gelu_tanh", "hardsigmoid", "hardswish",
    "identity", "leaky_relu", "log", "logical_and", "logical_not", "logical_or", "matrix", "max", "maximum", "min",
    "minimum", "mish", "multiply_add", "pairs", "permute", "prelu", "quantize", "random", "relu", "relu6",
    "reshape", "row", "rsqrt", "sigmoid", "silu", "softplus", "sqrt", "square_relu", "sum", "sum_squares",
    "tanh", "where",
]  # fmt: skip


def _function(name: str) -> Callable[..., Any]:
    f = table.FUNCTIONS[name]

    def of(*operands: Any) -> Any:
        operands = (*operands, *f.defaults[len(operands) - f.arity :]) if len(operands) < f.arity else operands
        if any(isinstance(x, tracer_values.Proxy) for x in operands):
            return tracer_values.call(name, *operands)
        if len(operands) != f.arity:
            raise TypeError(f"{name}: expected {f.arity} operands, got {len(operands)}")
        if any(type(x).__module__.startswith("torch") for x in operands):
            return f.of_arrays(arrays_of_torch(), *operands)
        import numpy as np

        with np.errstate(all="ignore"):
            found = f.of_arrays(NUMPY, *operands)
        return found if any(isinstance(x, np.ndarray) for x in operands) else found.item()

    of.__name__ = of.__qualname__ = name
    of.__doc__ = f"Return ``{name}`` of elements."
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
"""The activations by name; each has a gradient ``d_…`` (but prelu)."""


def activated(text: str, *, derivative: bool = False) -> Callable[[Any], Any]:
    """Return the activation of a text, or its derivative, as a function of elements.  Raises ValueError.

    >>> activated("leaky_relu(0.5)")(-4.0), activated("leaky_relu(0.5)", derivative=True)(-4.0)
    (-2.0, 0.5)
    """
    name, numbers = parsed(text)
    function = globals()[f"d_{name}" if derivative else name]
    return partial(_with_numbers, function, numbers) if numbers else function


def _with_numbers(function: Callable[..., Any], numbers: tuple[float, ...], x: Any) -> Any:
    return function(x, *numbers)


def cast(x: Any, element: str) -> Any:
    """Return elements rounded to ``f16``, ``bf16`` or ``f32``.

    >>> cast(1.0001, "f16")
    1.0
    """
    name = element_name(element)
    if name not in table.CASTS:
        raise EpilogueError(f"cast: expected a type of {', '.join(table.CASTS)}, got {element}")
    if isinstance(x, tracer_values.Proxy):
        return x.cast(name)
    found = table.cast_of_arrays(x, name)
    return found if hasattr(x, "shape") else found.item()


def row(x: Any) -> Any:
    """Return the number of the row of each element of a matrix or a batch: (M, 1)."""
    return _place(x, "row", -2)


def column(x: Any) -> Any:
    """Return the number of the column of each element of a matrix or a batch: (1, N)."""
    return _place(x, "column", -1)


def matrix(x: Any) -> Any:
    """Return the number of the matrix of each element of a batch: (L, 1, 1)."""
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


def sum(x: Any, dim: int | None = None, whole_rows: bool = False) -> Any:
    """Return the sums of rows (``dim`` -1), of columns (-2), or of all (None), with modes of one element in their
    place; of an epilogue as a result only, f32, added in the same order at each call; with ``whole_rows`` (``dim`` -1)
    to be computed with, where a tile has all of a row: of at most 256 columns.

    >>> import numpy as np
    >>> sum(np.ones((2, 3)), -1).tolist()
    [[3.0], [3.0]]
    """
    return _reduced(x, "sum", dim, whole_rows)


def sum_squares(x: Any, dim: int | None = None, whole_rows: bool = False) -> Any:
    """Return the sums of squares, as :func:`sum` does."""
    return _reduced(x * x, "sum", dim, whole_rows)


def max(x: Any, dim: int | None = None, whole_rows: bool = False) -> Any:
    """Return the greatest of rows, columns or all, as :func:`sum` does; NaN where there is one."""
    return _reduced(x, "max", dim, whole_rows)


def min(x: Any, dim: int | None = None, whole_rows: bool = False) -> Any:
    """Return the least of rows, columns or all, as :func:`sum` does; NaN where there is one."""
    return _reduced(x, "min", dim, whole_rows)


def _reduced(x: Any, operation: str, dim: int | None, whole_rows: bool) -> Any:
    if isinstance(x, tracer_values.Proxy) and whole_rows:
        return x.of_rows(operation, dim)
    if isinstance(x, tracer_values.Proxy):
        return x.reduced(operation, dim)
    return combined(x, operation, (-2, -1) if dim is None else (dim,))


def combined(x: Any, operation: str, axes: tuple[int, ...]) -> Any:
    """Return what becomes of an array along some modes, which stay, with one element."""
    if type(x).__module__.startswith("torch"):
        return getattr(x, {"sum": "sum", "max": "amax", "min": "amin"}[operation])(dim=axes, keepdim=True)
    return getattr(x, operation)(axis=axes, keepdims=True)


def pairs(x: Any) -> tuple[Any, Any]:
    """Return the even and the odd columns: of each two neighbours of a row the first and the second.

    What is computed of them has half of the columns: ``gate, up = pairs(accum); D = silu(gate) * up``.
    """
    if isinstance(x, tracer_values.Proxy):
        return x.pair()
    return x[..., 0::2], x[..., 1::2]


def random(x: Any, seed: Any, offset: Any = 0) -> Any:
    """Return a number of [0, 1) for each element of a matrix or a batch, multiples of 2 ** -24: by Philox of the seed,
    the offset and the element's place (:mod:`cute_dialect.kernels.philox`), so that each kernel, and numpy and
    torch, give the same.

    ``seed``, ``offset``: integers, arguments of the launch where they are arguments of the function, or arrays of one;
    of the offset the lower 32 bits count.

    >>> import numpy as np
    >>> random(np.zeros((1, 4)), 7).round(3).tolist()
    [[0.955, 0.75, 0.407, 0.795]]
    """
    return x.random(seed, offset) if isinstance(x, tracer_values.Proxy) else drawn_of_arrays(x, seed, offset)


def dropout(x: Any, p: Any, seed: Any, offset: Any = 0) -> Any:
    """Return elements that are 0 with a probability of ``p``, a number of [0, 1], and else ``x / (1 - p)``; which, say
    the seed and the offset (:func:`random`): give each call an offset, or a seed, of its own.
    """
    if isinstance(p, int | float):
        if not 0.0 <= p <= 1.0:
            raise EpilogueError(f"dropout: expected a probability of 0 to 1, got {p}")
        p = struct.unpack("f", struct.pack("f", p))[0]  # as a kernel compares it
        scale = 0.0 if p == 1.0 else 1.0 / (1.0 - p)
    else:
        scale = 1.0 / (1.0 - p)
    return where(random(x, seed, offset) >= p, x * scale, 0.0)


def quantize(x: Any, element: str = "f8E4M3FN", block: int | Sequence[int] = 128, scales: str = "f32") -> Any:
    """Return values of 8 bits and their scales: of each ``block`` columns of a row, 32, 64 or 128, from column 0 on,
    the largest magnitude is the largest one of ``element``, f8E4M3FN, f8E5M2 or i8, which the result is stored as; x
    is nearly ``values * scale``.

    Scales are (M, N / block), rounded up: ``f32``, or ``e8m0``, the least powers of two that do.  Where no value is
    larger than 2 ** -110 it is 1.  As of arrays, values are of the type of x.

    >>> import numpy as np
    >>> q, s = quantize(np.array([[896.0, -3.0]]), scales="e8m0", block=32)
    >>> q.tolist(), s.tolist()
    ([[448.0, -1.5]], [[2.0]])
    """
    name, width = element_name(element), block if isinstance(block, int) else block[-1]
    if name not in table.LARGEST or width not in (32, 64, 128) or (not isinstance(block, int) and block[0] != 1):
        known = ", ".join(table.LARGEST)
        raise EpilogueError(
            f"quantize: expected a type of {known}, by blocks of 32, 64 or 128, got {element} by {block}"
        )
    if scales not in ("f32", "e8m0"):
        raise EpilogueError(f'quantize: expected scales of f32 or e8m0, got "{scales}"')
    if isinstance(x, tracer_values.Proxy):
        return x.quantized(name, width, scales)
    arrays = arrays_of_torch() if type(x).__module__.startswith("torch") else NUMPY

    def call(function: str, *operands: Any) -> Any:
        import numpy as np

        with np.errstate(all="ignore"):
            return table.FUNCTIONS[function].of_arrays(arrays, *operands)

    scale, inverse = tracer_values.scales_of(greatest_of_blocks(call("abs", x), width), name, scales, call)
    return table.eight_bits(x * inverse, name), scale[..., ::width]


def reshape(x: Any, shape: Sequence[int]) -> Any:
    """Return the elements in rows of another shape; one extent may be -1.  In an epilogue nothing moves: it says where
    results are stored, and where arguments are read.

    >>> import numpy as np
    >>> reshape(np.arange(6), (2, -1)).tolist()
    [[0, 1, 2], [3, 4, 5]]
    """
    return x.reshape(tuple(shape))


def permute(x: Any, dims: Sequence[int]) -> Any:
    """Return the modes in another order; as of :func:`reshape`, nothing moves in an epilogue.

    >>> import numpy as np
    >>> permute(np.ones((2, 3, 4)), (1, 0, 2)).shape
    (3, 2, 4)
    """
    return x.permute(tuple(dims)) if hasattr(x, "permute") else x.transpose(tuple(dims))


def clamp(x: Any, low: Any = None, high: Any = None) -> Any:
    """Return elements between two bounds, each of which may be None."""
    x = x if low is None else maximum(x, low)
    return x if high is None else minimum(x, high)
