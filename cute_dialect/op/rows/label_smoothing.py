"""Class weights and label smoothing of the cross entropy.

A kernel computes the loss of each row.  The arrays' library weights the losses and differentiates that step.
Smoothing also needs the sum of each row of logits, so the library reads them once more.
"""

# torch is not installed where the types are checked. Arrays belong to any library.
# pyright: reportMissingImports=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownParameterType=false

from __future__ import annotations

import sys
from math import inf
from typing import Any

from cute_dialect.op.arrays.dtypes import element_name
from cute_dialect.op.errors import DtypeError, ShapeError, UnsupportedError
from cute_dialect.op.rows.arguments import check_number

__all__ = ["check_classes", "of_classes"]


def check_classes(x: Any, weight: Any, smoothing: float) -> None:
    """Check ``weight`` and ``label_smoothing``.  Raises subclasses of OpError."""
    call = "cross_entropy"
    check_number(call, "label_smoothing", smoothing)
    if not 0.0 <= smoothing <= 1.0:
        raise UnsupportedError(f"{call}: label_smoothing is {smoothing}; it must be between 0 and 1")
    if weight is None:
        return
    if tuple(weight.shape) != (x.shape[-1],):
        raise ShapeError(f"{call}: weight has shape {tuple(weight.shape)}; it must have ({x.shape[-1]},)")
    found, own = element_name(weight.dtype), element_name(x.dtype)
    if found not in ("f32", own):
        raise DtypeError(f"{call}: weight has dtype {found}; it must have f32 or that of x ({own})")


def of_classes(
    losses: Any, lse: Any, x: Any, target: Any, weight: Any, smoothing: float, ignored: int, reduction: str
) -> Any:  # fmt: skip
    """Return the losses that ``torch.nn.functional.cross_entropy`` gives with ``weight`` and ``label_smoothing``.

    Args:
        losses: loss of each row without them, in f32.
        lse: ``logsumexp`` of each row, in f32.
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
        # Sum weight * (logsumexp - x) over the classes in f64, because the result is small even if logits are large.
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
