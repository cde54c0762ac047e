"""Cross entropy of a linear layer without the matrix of all logits, ``op.linear_cross_entropy``.

Chunks of rows share one buffer.  Each chunk takes these steps:

1. A GEMM writes the logits ``x @ weight.T + bias`` to the buffer.
2. A kernel computes the loss and ``logsumexp`` of each row.
3. A kernel overwrites the logits with their gradient.
4. Two GEMMs compute the rows of the gradient of ``x``, and add the chunk's share to the gradient of ``weight``.
"""

# torch is not installed where types are checked; arrays may belong to any library.
# pyright: reportMissingImports=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownParameterType=false

from __future__ import annotations

import sys
from math import nan
from typing import TYPE_CHECKING, Any, NamedTuple

from cute_dialect.kernels.rows.config import BITS
from cute_dialect.op.arrays.library import call_operator, is_autocast
from cute_dialect.op.errors import ArgumentError, DtypeError, ShapeError, UnsupportedError
from cute_dialect.op.execute.array_call import RowCall
from cute_dialect.op.execute.autocast import recast
from cute_dialect.op.execute.recording import needs_gradients
from cute_dialect.op.functions.gemm import mm
from cute_dialect.op.functions.row_gradients import cross_entropy_backward
from cute_dialect.op.functions.rows import REDUCTIONS, check_classes, check_targets, cross_entropy_with_lse
from cute_dialect.op.keywords import check_keywords
from cute_dialect.op.problems.linear_cross_entropy import (
    CALL,
    Settings,
    accumulation,
    default_chunk,
    row_stride,
    scale_of,
)
from cute_dialect.op.problems.rows import check_ignore_index

if TYPE_CHECKING:  # pragma: no cover
    from typing import Never

    from cute_dialect.op.signature_types import Array

NO_GRADIENTS = (False, False, False)
"""The gradients of ``x``, ``weight`` and the bias are not needed."""


def linear_cross_entropy(
    x: Array, weight: Array, target: Array, bias: Array = None, *, ignore_index: int = -100, reduction: str = "mean",
    label_smoothing: float = 0.0, chunk: int | None = None, device: object = None, **unknown: Never,
) -> Array:  # fmt: skip
    """Return ``cross_entropy(x @ weight.T + bias, target)`` in f32, without the matrix of all logits.

    Logits are computed for one chunk of rows at a time, and rounded to the type of ``x``.  With ``reduction="none"``
    the backward pass computes them again.  Otherwise the gradients are computed with the loss, and the backward pass
    multiplies them by the gradient of the loss.

    Args:
        x: (…, K), f16, bf16 or f32.
        weight: (classes, K), like all arrays but ``target`` of the type of ``x``.
        target: class of each row, i64 of (…). Other values are undefined on a GPU and refused on the CPU.
        bias: (classes,).
        ignore_index: rows with this target do not count.
        reduction: ``mean`` over targets other than ``ignore_index``, ``sum``, or ``none`` for the loss of each row.
        label_smoothing: fraction of a row's loss that is the mean over all classes.
        chunk: rows of a chunk; default: chosen so that the logits of a chunk take at most 256 MB or half the memory of
            the weight.
        device: ``"cpu"`` runs on the interpreter.

    Raises:
        OpError: if the arguments are not supported.
    """
    if unknown:
        check_keywords(CALL, linear_cross_entropy, unknown, interpreted=False)
    if is_autocast(x):
        return recast(
            CALL, linear_cross_entropy, {"x": x, "weight": weight, "bias": bias}, target=target,
            ignore_index=ignore_index, reduction=reduction, label_smoothing=label_smoothing, chunk=chunk,
            device=device,
        )  # fmt: skip
    if chunk is not None and (type(chunk) is not int or chunk < 1):
        raise ArgumentError(f"{CALL}: chunk is {chunk!r}; pass a positive number of rows, or None")
    if reduction not in REDUCTIONS:
        raise UnsupportedError(f"{CALL}: reduction={reduction!r} is not supported; use 'mean', 'sum' or 'none'")
    check_classes(x, None, label_smoothing, CALL)
    check_ignore_index(CALL, ignore_index)
    torch = sys.modules.get("torch")
    learns = needs_gradients(x, weight, bias)
    if torch is not None and (learns or torch.compiler.is_compiling()):
        from cute_dialect.op.torch.dispatch import CUTE  # late: torch

        needs = [learns and t is not None and bool(t.requires_grad) for t in (x, weight, bias)]
        how = (ignore_index, reduction, float(label_smoothing), chunk or 0)
        return call_operator(
            CALL, lambda: CUTE.linear_cross_entropy(x, weight, target, bias, *how, *needs)[0], x, device
        )
    how = Settings(ignore_index, reduction, float(label_smoothing), chunk or 0)
    return losses_and_gradients(x, weight, target, bias, how, device=device).loss


class Results(NamedTuple):
    """Results of :func:`losses_and_gradients`.  Gradients that are not needed are None."""

    loss: Any  # f32
    lse: Any  # logsumexp of each row, f32
    x: Any = None
    weight: Any = None
    bias: Any = None


def losses_and_gradients(
    x: Any, weight: Any, target: Any, bias: Any, how: Settings, *, needs: tuple[bool, bool, bool] = NO_GRADIENTS,
    lse: Any = None, grad: Any = None, device: object = None,
) -> Results:  # fmt: skip
    """Compute the losses, and gradients of torch tensors.

    Args:
        needs: whether the gradients of ``x``, ``weight`` and ``bias`` are needed.
        lse: ``logsumexp`` of each row from an earlier call, which then computes no loss; default: computed.
        grad: gradient of each row's loss; default: the gradient of the mean or sum, times :func:`scale_of`.
    """
    arrays = {"x": x, "weight": weight, "target": target, "bias": bias}
    one = RowCall(CALL, arrays, device, ("target",))
    k, classes = _check_shapes(one)
    if one.cpu:
        check_targets(CALL, "weight", target, classes, how.ignore_index)
    shape, count, itemsize = one.x.shape[:-1], one.count, BITS[one.element] // 8
    x, target = x.reshape(count, k), target.reshape(count)
    step = how.chunk or default_chunk(count, k, classes, itemsize)
    buffer = one.result((max(1, min(step, count)), row_stride(classes, one.element)))
    loss = one.result((count,), "f32") if lse is None else None
    lse = one.result((count,), "f32") if lse is None else lse.reshape(count)
    targets = None if how.reduction == "none" else _as_f32((target != how.ignore_index).sum())
    of_x = one.result((count, k)) if needs[0] else None
    of_weight = WeightGradient(one, classes, k) if needs[1] else None
    of_bias = lse.new_zeros(classes) if needs[2] else None
    if any(needs) and grad is None:
        grad = lse.new_full((), scale_of(count, how.reduction))
    for begin in range(0, count, step):
        end = min(count, begin + step)
        rows, logits, classes_of = x[begin:end], buffer[: end - begin, :classes], target[begin:end]
        mm(rows, weight.T, logits, bias=bias, device=device)
        if loss is not None:
            loss[begin:end], lse[begin:end] = _losses(logits, classes_of, how, device)
        if not any(needs):
            continue
        cross_entropy_backward(
            grad if grad.ndim == 0 else grad[begin:end], logits, classes_of, lse[begin:end],
            targets if how.reduction == "mean" else None, how.ignore_index, label_smoothing=how.label_smoothing,
            out=logits, device=device,
        )  # fmt: skip
        if of_x is not None:
            mm(logits, weight, of_x[begin:end], device=device)
        if of_weight is not None:
            of_weight.add(logits, rows, begin == 0, end == count, device)
        if of_bias is not None:
            of_bias += logits.sum(0, dtype=of_bias.dtype)
    return Results(
        None if loss is None else _reduced(one, loss, targets, how, shape),
        lse.reshape(shape),
        None if of_x is None else of_x.reshape((*shape, k)),
        None if of_weight is None else of_weight.result,
        None if of_bias is None else of_bias.to(bias.dtype),
    )


def _check_shapes(one: RowCall) -> tuple[int, int]:
    """Check the arrays, and return the elements of a row of ``x`` and the number of classes."""
    k, views = one.length(), one.views
    shape = views["weight"].shape
    if len(shape) != 2 or shape[1] != k:
        raise ShapeError(f"{CALL}: weight has shape {shape}; it must have (classes, {k}), as x has shape {one.x.shape}")
    if 0 in shape:
        raise ShapeError(f"{CALL}: weight has shape {shape}; it must not be empty")
    one.expect("target", one.x.shape[:-1])
    one.expect("bias", shape[:1])
    if views["target"].dtype != "i64":
        raise one.wrong_type("target", "i64")
    for name, t in one.arrays.items():
        if t is not None and not hasattr(t, "reshape"):
            raise DtypeError(
                f"{CALL}: {name} is a {type(t).__name__} without reshape(); pass an array of torch, numpy or cupy"
            )
    return k, shape[0]


class WeightGradient:
    """The gradient of the weight, a sum over chunks that is rounded once.

    Until the last chunk, a 16-bit gradient is a pair of matrices: the rounded sum and the remainder, rounded as well.
    Both together have at least 16 bits of precision in the memory of one f32 matrix, and the first one is the result.
    """

    def __init__(self, one: RowCall, classes: int, k: int) -> None:
        self.result = one.result((classes, k))
        self._element, self._rest, self._one = one.element, None, one
        if not one.count:
            self.result[...] = 0

    def add(self, grad: Any, rows: Any, is_first: bool, is_last: bool, device: object) -> None:
        """Add ``grad.T @ rows``, the share of a chunk.

        Args:
            grad: gradient of the logits, (rows, classes).
            rows: rows of ``x``, (rows, K).
        """
        result, shape = self.result, tuple(self.result.shape)
        if self._element == "f32" or (is_first and is_last):
            mm(grad.T, rows, result, c=None if is_first else result, device=device)
            return
        if 1 in shape:  # An epilogue would broadcast such a matrix, and could not overwrite it.
            share = mm(grad.T, rows, dtype="f32", device=device)
            self._rest = share if is_first else self._rest + share
            if is_last:
                result[...] = self._rest
            return
        if self._rest is None:
            self._rest = self._one.result(shape)
        args = {"D": result}
        args |= {} if is_first else {"rounded": result, "rest": self._rest}
        args |= {} if is_last else {"remainder": self._rest}
        mm(grad.T, rows, epilogue=accumulation(self._element, shape, is_first, is_last), args=args, device=device)


def _losses(logits: Any, target: Any, how: Settings, device: object) -> tuple[Any, Any]:
    """Return the loss of each row of a chunk, and ``logsumexp``."""
    losses, lse, _ = cross_entropy_with_lse(logits, target, how.ignore_index, "none", device)
    s = how.label_smoothing
    if s:
        of_all = lse - logits.sum(-1, dtype=lse.dtype) / logits.shape[-1]
        losses = (1.0 - s) * losses + s * of_all
        losses[target == how.ignore_index] = 0.0
    return losses, lse


def _reduced(one: RowCall, loss: Any, targets: Any, how: Settings, shape: tuple[int, ...]) -> Any:
    """Return the losses, their sum or their mean, NaN without targets."""
    if how.reduction == "none":
        return loss.reshape(shape)
    found = one.result((), "f32")
    found[...] = loss.sum()
    if how.reduction == "mean":
        found[...] = found / targets if hasattr(found, "data_ptr") or targets else nan
    return found


def _as_f32(count: Any) -> Any:
    return count.float() if hasattr(count, "data_ptr") else count.astype("f4")
