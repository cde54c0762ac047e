"""Merge of attention results over disjoint keys, ``op.merge_attention``."""

# torch is not installed where types are checked; arrays may belong to any library.
# pyright: reportMissingImports=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownParameterType=false

from __future__ import annotations

import math
import sys
from math import prod
from typing import TYPE_CHECKING, Any

from cute_dialect.kernels.attention.combine import CombineConfig, combine_text
from cute_dialect.op.errors import DtypeError, ShapeError, UnsupportedError
from cute_dialect.op.execute.array_call import RowCall, RowKernel
from cute_dialect.op.execute.call_cache import KnownCalls
from cute_dialect.op.keywords import check_keywords

if TYPE_CHECKING:  # pragma: no cover
    from typing import Unpack

    from cute_dialect.op.signature_types import Array, Interpreted

_CALL = "merge_attention"
_MOST = 256
"""Largest head size."""
_KNOWN = KnownCalls(tf32=False)
"""Cached calls."""


def merge_attention(
    outs: Array, lses: Array, *, device: object = None, stream: object = None, **run: Unpack[Interpreted]
) -> Array:
    """Return the attention over all keys, and its ``lse``, from results over P disjoint parts of the keys.

    ``lse = log(sum over p of e^lses[p])`` and ``out = sum over p of e^(lses[p] - lse) outs[p]``, added in rising order
    of p.  A part without keys has an ``lse`` of minus infinity; its result must be finite.

    Args:
        outs: (P, …, D), f32, f16 or bf16; D is a multiple of 8 up to 256.
        lses: (P, …), f32, with the same leading extents.
        device, stream, run: as in :func:`cute_dialect.op.mm`.
    """
    if run:
        check_keywords(_CALL, merge_attention, run)
    usual = device is None and stream is None and not run and not _KNOWN.is_traced()
    if usual:
        done = _KNOWN.again((), outs, lses)
        if done is not None:
            return done
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(outs, torch.Tensor):
        learns = torch.is_grad_enabled() and (outs.requires_grad or lses.requires_grad)
        if learns or torch.compiler.is_compiling():
            from cute_dialect.op.torch.dispatch import CUTE  # late: torch

            def compute() -> Any:
                return CUTE.merge_attention(outs, lses)

            return _KNOWN.differentiable((), (outs, lses), compute) if usual and learns else compute()
    return merged(outs, lses, device, stream, run)


def merged(
    outs: Array, lses: Array, device: object = None, stream: object = None, run: Interpreted | None = None
) -> Array:
    """Compute :func:`merge_attention` without gradients."""
    one = RowCall(
        _CALL, {"outs": outs, "lses": lses}, device, ("lses",), ("f32", "f16", "bf16"), stream=stream, run=run
    )
    shape, logs = one.x.shape, one.views["lses"]
    if len(shape) < 2 or logs.shape != shape[:-1]:
        raise ShapeError(
            f"{_CALL}: outs has shape {shape} and lses {logs.shape}; pass arrays of shapes (P, …, D) and (P, …)"
        )
    if logs.dtype != "f32":
        raise DtypeError(f"{_CALL}: lses has dtype {logs.dtype}; pass an array of f32")
    parts, size, rows = shape[0], shape[-1], prod(shape[1:-1])
    if size % 8 or not 8 <= size <= _MOST:
        raise UnsupportedError(f"{_CALL}: head size {size} is not supported; use a multiple of 8 up to {_MOST}")
    with one.on():
        out, lse = one.result(shape[1:]), one.result(shape[1:-1], "f32")
        if parts == 0:
            out[...], lse[...] = 0, -math.inf
        elif rows:
            c = CombineConfig(one.element, 128 if size <= 128 else 256, True, parts >= 8, one.element)
            result, of_lse = one.numbers(out), one.numbers(lse)
            matrix, of_parts = one.flat("outs"), one.flat("lses")
            if matrix.pointer % 16:
                matrix = one.contiguous(one.views["outs"])
            one.launch(
                RowKernel(c.name, combine_text, (c,)),
                matrix._replace(shape=(size, rows, parts), strides=(1, size, rows * size)),
                of_parts._replace(shape=(rows, parts), strides=(1, rows)),
                result._replace(shape=(rows, size, 1, 1), strides=(size, 1, 8, 8)),
                of_lse._replace(shape=(rows, 1, 1), strides=(1, 1, 1)),
            )
    result = out, lse
    if device is None and stream is None and not run:
        one.remember(_KNOWN, (), (outs, lses), result)
    return result
