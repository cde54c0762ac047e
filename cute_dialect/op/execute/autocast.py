"""``torch.autocast``: the argument types of functions that torch also computes in other types.

A function calls :func:`recast` where no recorded call matched, so replayed calls pay nothing.  In ``torch.autocast`` no
recording from outside matches: torch's guards and the keys of :mod:`cute_dialect.op.execute.call_cache` have its state.
:func:`recast` converts the arguments, and calls the function again with autocast disabled.  Both are recorded as one
call, whose key has the type of autocast, so that a repeated call is replayed with its conversions.  If gradients are
needed, only the call after the conversions is recorded, because second derivatives need the nodes of the conversions.
Weights are converted once per context, by :mod:`cute_dialect.op.execute.converted_weights`::

    with torch.autocast("cuda", torch.bfloat16):
        op.mm(a, b)     # of f32: op.mm(a.bfloat16(), b.bfloat16())

Gradients flow through the conversions, so they have the types of the arguments.
"""

# torch is not installed where types are checked.
# pyright: reportMissingImports=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING

from cute_dialect.op.execute.call_cache import KnownCalls
from cute_dialect.op.execute.recording import needs_gradients
from cute_dialect.runtime.settings import flag

if TYPE_CHECKING:  # pragma: no cover
    from cute_dialect.op.signature_types import Array

_LOWER = {
    "mm": ("a", "b"), "bmm": ("a", "b"), "matmul": ("a", "b"), "grouped_mm": ("a", "b"), "mm_array": ("As", "Bs"),
    "linear": ("x", "weight"), "conv": ("x", "f"), "attention": ("q", "k", "v", "mask"),
    "flex_attention": ("query", "key", "value"), "linear_cross_entropy": ("x", "weight", "bias"),
}  # fmt: skip
"""Functions that compute in the type of autocast, and their arguments that are converted to it.

Addends (``c``, ``bias``) keep their types, because the epilogue reads any.
"""
F32_ELEMENTS = ("exp", "log", "rsqrt", "softplus")
"""Functions of elements that torch computes in f32 on GPUs."""
_F32 = {
    "cuda": ("cross_entropy", "layer_norm", "log_softmax", "logsumexp", "rms_norm", "softmax", "sum", *F32_ELEMENTS),
    "cpu": ("cross_entropy",),
}
"""Functions that torch computes in f32, by device."""


def recast(call: str, function: Callable[..., Array], arrays: Mapping[str, Array], /, **others: object) -> Array:
    """Call a function with autocast disabled, and its arrays in the types that autocast selects.

    Args:
        call: name of the public function.
        function: takes the arrays and ``others`` by name.
        arrays: arrays by name, the first one a tensor or a list of tensors; None for one that was not passed.
    """
    first = next(iter(arrays.values()))
    x = first[0] if isinstance(first, list | tuple) else first
    arrays = with_weights(call, arrays, x)

    def compute() -> Array:
        cast = cast_arrays(call, arrays, x)
        with disabled(x):
            return function(**cast, **others)

    if _KNOWN.is_traced():  # Nothing else of the cache is traced.
        return compute()
    found = _key_of(call, arrays, others, x)
    if found is None or flag("CUTE_OP_CHECK", False):
        return compute()
    how, tensors = found
    if needs_gradients(*tensors):
        return compute()
    done = _KNOWN.again(how, *tensors)
    return _KNOWN.recorded(how, tensors, compute) if done is None else done


def with_weights(call: str, arrays: Mapping[str, Array], x: Array) -> Mapping[str, Array]:
    """Return arrays by name, with weights in the type of autocast from the cache of conversions.

    Args:
        call: name of the public function.
        x: a tensor of the call.
    """
    names = _LOWER.get(call)
    if names is None or _KNOWN.is_traced():
        return arrays
    from cute_dialect.op.execute.converted_weights import converted_weight, is_weight  # late: torch

    dtype = sys.modules["torch"].get_autocast_dtype(x.device.type)
    found = dict(arrays)
    for name in names:
        value = arrays.get(name)
        if is_weight(value):
            found[name] = converted_weight(value, dtype)
        elif isinstance(value, list | tuple):
            found[name] = [converted_weight(y, dtype) if is_weight(y) else y for y in value]
    return found


_KNOWN = KnownCalls()
"""Cached calls in autocast, with their conversions."""


_CONSTANTS = (bool, int, float, str)
"""Types of arguments, other than tensors, that are part of a key."""


def _key_of(
    call: str, arrays: Mapping[str, Array], others: Mapping[str, object], x: Array
) -> tuple[tuple[object, ...], tuple[Array, ...]] | None:
    """Return the cache key and the tensors of a call, or None if an argument does not identify it, such as a function.

    Args:
        call, arrays, others: as in :func:`recast`.
        x: the first tensor.
    """
    torch = sys.modules["torch"]
    plain = torch.Tensor, torch.nn.Parameter
    key: list[object] = [call, torch.get_autocast_dtype(x.device.type)]
    tensors: list[Array] = []
    for given in (arrays, others):
        for name, value in given.items():
            if value is None:
                continue
            kind = type(value)
            if kind in plain:
                key.append(name)
                tensors.append(value)
            elif kind in _CONSTANTS and name not in ("device", "stream"):
                key.append((name, kind, value or repr(value)))
            elif kind is torch.dtype:
                key.append((name, value))
            elif kind not in (tuple, dict) or value:
                return None
    return tuple(key), tuple(tensors)


def cast_arrays(call: str, arrays: Mapping[str, Array], x: Array) -> dict[str, Array]:
    """Return arrays by name in the types that autocast selects for a function.

    Args:
        call: name of the public function.
        x: a tensor of the call.
    """
    torch = sys.modules["torch"]
    device, names = x.device.type, _LOWER.get(call)
    if names is not None:
        dtype = torch.get_autocast_dtype(device)
    elif call in _F32[device]:
        dtype = torch.float32
    else:  # torch accepts parameters of other types
        residual = arrays.get("residual")
        dtype = x.dtype if residual is None else torch.promote_types(x.dtype, residual.dtype)
    found: dict[str, Array] = {}
    for name, value in arrays.items():
        if names is not None and name not in names:
            found[name] = value
        elif isinstance(value, list | tuple):
            found[name] = [_cast(y, dtype, device) for y in value]
        else:
            found[name] = _cast(value, dtype, device)
    return found


def _cast(x: Array, dtype: object, device: str) -> Array:
    """Return a tensor of f32, f16 or bf16 in another type; other values as they are."""
    torch = sys.modules["torch"]
    if not isinstance(x, torch.Tensor) or x.dtype is dtype or x.device.type != device:
        return x
    return x.to(dtype) if x.dtype in (torch.float32, torch.float16, torch.bfloat16) else x


def disabled(x: Array) -> AbstractContextManager[object]:
    """Return a context in which autocast is disabled."""
    torch = sys.modules["torch"]
    if torch.compiler.is_compiling():
        return torch.autocast(x.device.type, enabled=False)
    return torch._C._DisableAutocast()  # a third of the time
