"""Losses of classes that weigh differently, and smoothed labels: what becomes of the cross entropy of each row.

The losses come from the kernel; these are numbers of rows, and what is here is done to them by the arrays' library,
which also differentiates it.  Smoothing needs the sum of each row of logits besides, which the library reads once more.
"""

# torch is not there where the types are checked; arrays are of any library.
# pyright: reportMissingImports=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownParameterType=false

from __future__ import annotations

import sys
from math import inf
from typing import Any

from cute_dialect.op.dtypes import element_name
from cute_dialect.op.errors import DtypeError, ShapeError, UnsupportedError

__all__ = ["check_classes", "of_classes"]


def check_classes(x: Any, weight: Any, smoothing: float) -> None:
    """Check weights and smoothing.  Raises subclasses of OpError."""
    call = "cross_entropy"
    if not 0.0 <= smoothing <= 1.0:
        raise UnsupportedError(f"{call}: expected label_smoothing from 0 to 1, got {smoothing}")
    if weight is None:
        return
    if tuple(weight.shape) != (x.shape[-1],):
        raise ShapeError(f"{call}: expected weight of ({x.shape[-1]},), got {tuple(weight.shape)}")
    found, own = element_name(weight.dtype), element_name(x.dtype)
    if found not in ("f32", own):
        raise DtypeError(f"{call}: expected weight of f32, or of the type of x, {own}, got {found}")


def of_classes(
    losses: Any, lse: Any, x: Any, target: Any, weight: Any, smoothing: float, ignored: int, reduction: str
) -> Any:  # fmt: skip
    """Return losses as ``torch.nn.functional.cross_entropy`` has them with ``weight`` and ``label_smoothing``;
    ``losses``: those of each row without, and ``lse``, its ``logsumexp``, in f32.
    """
    arrays = sys.modules[type(x).__module__.partition(".")[0] if not hasattr(x, "data_ptr") else "torch"]
    kept, f32 = target != ignored, arrays.float32
    classes = arrays.where(kept, target, 0)
    each = kept.to(f32) if hasattr(x, "data_ptr") else kept.astype(f32)
    if weight is not None:
        weight = weight.to(f32) if hasattr(x, "data_ptr") else weight.astype(f32)
        each = weight[classes] * each
    found = losses * each
    if smoothing:
        # The sum over the classes of weight * (logsumexp - x), in f64: it is small where logits are large.
        count, f64 = x.shape[-1], arrays.float64
        all_of, terms = float(count), x
        if hasattr(x, "data_ptr"):
            picked = x.gather(-1, classes[..., None])[..., 0].to(f64)
            of_row = arrays.where(picked == -inf, lse.to(f64), losses.to(f64) + picked)
            if weight is not None:
                terms, all_of = x.to(f64) * weight, weight.sum(dtype=f64)
            smooth = (all_of * of_row - terms.sum(-1, dtype=f64)).to(f32)
        else:
            picked = arrays.take_along_axis(x, classes[..., None], -1)[..., 0].astype(f64)
            of_row = arrays.where(picked == -inf, lse.astype(f64), losses.astype(f64) + picked)
            if weight is not None:
                terms, all_of = x.astype(f64) * weight, weight.sum(dtype=f64)
            smooth = (all_of * of_row - terms.sum(-1, dtype=f64)).astype(f32)
        smooth = arrays.where(kept, smooth, 0.0)
        found = (1.0 - smoothing) * found + smoothing / count * smooth
    if reduction == "none":
        return found
    value = found.sum() if reduction == "sum" else found.sum() / each.sum()
    return value.to(x.dtype) if hasattr(x, "data_ptr") else arrays.asarray(value, x.dtype)
