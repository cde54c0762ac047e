"""Row functions: softmax, norms, reductions and losses along the last dimension, as in torch.

A row extends along the last dimension, and the other dimensions count rows.  Rows may begin at any address and have
any stride.  An array is copied first if its last dimension is not contiguous, or if its rows have no constant stride.
A kernel is compiled for a range of lengths, not for each length.
"""

# torch is not installed where types are checked. Arrays belong to any library.
# pyright: reportMissingImports=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownParameterType=false

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from math import inf, nan
from typing import TYPE_CHECKING, Any, overload

from cute_dialect.kernels.copies.transpose import BYTES
from cute_dialect.kernels.rows.sums import loss_parts
from cute_dialect.op.arrays.dtypes import element_name
from cute_dialect.op.arrays.library import call_operator, is_autocast
from cute_dialect.op.errors import ArgumentError, DtypeError, ShapeError, UnsupportedError
from cute_dialect.op.execute.array_call import RowCall, RowKernel
from cute_dialect.op.execute.autocast import recast
from cute_dialect.op.execute.call_cache import KnownCalls
from cute_dialect.op.execute.recording import needs_gradients
from cute_dialect.op.execute.rows import choose_kernels, choose_transpose, launch_rows, loss_kernel
from cute_dialect.op.functions.quantize import Operands, norm_quantized
from cute_dialect.op.keywords import as_number, check_keywords
from cute_dialect.op.problems.rows import (
    FUNCTIONS,
    RowProblem,
    as_rows,
    check_eps,
    check_ignore_index,
    norm_arguments,
    one_dimension,
)
from cute_dialect.runtime.arrays import view_of

if TYPE_CHECKING:  # pragma: no cover
    from typing import Never

    from cute_dialect.op.signature_types import Array, Sizes
    from cute_dialect.runtime.arrays import ArrayView

_KNOWN = {name: KnownCalls(tf32=False) for name in (*FUNCTIONS, "transpose")}
"""Cached calls by function.  Those of ``cross_entropy`` return the losses with gradients, all results without."""
_LOSSES = _KNOWN["cross_entropy"]


def _operators(call: str, out: Any, *arrays: Any) -> Any:
    """Return the torch operators if the call needs them, for gradients or inside torch.compile, else None.

    They run on the device of the tensors.  Raises UnsupportedError if ``out`` is passed.
    """
    torch = sys.modules.get("torch")
    if torch is None:
        return None
    if not torch.compiler.is_compiling() and not needs_gradients(*arrays):
        return None
    if out is not None:
        raise UnsupportedError(
            f"{call}: out cannot be used when gradients are required, or in torch.compile; "
            "call it under torch.no_grad()"
        )
    from cute_dialect.op.torch.dispatch import CUTE  # late: torch

    return CUTE


def _is_last(x: Any, dim: int) -> bool:
    return dim in (-1, x.dim() - 1)


def _differentiable(call: str, how: object, tensors: Sequence[Any], device: object, compute: Callable[[], Any]) -> Any:
    """Compute a call whose result needs gradients, and cache it if it runs on the default device."""
    known = _KNOWN[call]

    def checked() -> Any:
        return call_operator(call, compute, tensors[0], device)

    return checked() if device is not None or known.is_traced() else known.differentiable(how, tensors, checked)


# ------------------------------------------------------------------------------------------------------- row to row


def softmax(x: Array, dim: int = -1, *, out: Array = None, device: object = None, **unknown: Never) -> Array:
    """Return ``e^x / sum(e^x)`` along the last dimension, like ``torch.softmax``.

    Args:
        x: an array of any rank.
        dim: the last dimension.
        out: memory for the result; may be ``x``.
        device: ``"cpu"`` runs NumPy arrays or torch tensors in CPU memory on the interpreter.

    Raises:
        OpError: if the arguments are not supported.
    """
    if unknown:
        check_keywords("softmax", softmax, unknown, interpreted=False)
    return _mapped("softmax", x, dim, out, device)


def log_softmax(x: Array, dim: int = -1, *, out: Array = None, device: object = None, **unknown: Never) -> Array:
    """Return ``x - logsumexp(x)`` along the last dimension, like ``torch.log_softmax``.

    For the arguments see :func:`softmax`.
    """
    if unknown:
        check_keywords("log_softmax", log_softmax, unknown, interpreted=False)
    return _mapped("log_softmax", x, dim, out, device)


def _mapped(call: str, x: Any, dim: int, out: Any, device: object) -> Any:
    known = _KNOWN[call]
    if type(dim) is not int:
        dim = one_dimension(call, dim)
    if out is None and device is None and not known.is_traced():
        done = known.again(dim, x)
        if done is not None:
            return done
    if out is None and is_autocast(x):
        return recast(call, _mapped, {"x": x}, call=call, dim=dim, out=out, device=device)
    operators = _operators(call, out, x)
    if operators is not None and _is_last(x, dim):
        return _differentiable(call, dim, (x,), device, lambda: getattr(operators, call)(x))
    return mapped(call, x, dim, out, device)


def mapped(call: str, x: Array, dim: int = -1, out: Array = None, device: object = None) -> Array:
    """Compute a function of :data:`~cute_dialect.op.problems.rows.MAPS` without gradients."""

    def compute() -> object:
        one = RowCall(call, {"x": x, "out": out}, device)
        one.length(dim)
        y = one.result(one.x.shape, out="out")
        if 0 not in one.x.shape:
            launch_rows(one, "", y)
        return y

    return _KNOWN[call].call(dim, (x,), compute) if out is None and device is None else compute()


@overload
def rms_norm(
    x: Array, weight: Array = None, eps: float | None = None, *, residual: Array = None, out: Array = None,
    quantize: object = None, block: object = None, device: object = None,
) -> Array: ...  # fmt: skip


@overload
def rms_norm(
    x: Array, normalized_shape: int | Sequence[int], weight: Array = None, eps: float | None = None, *,
    residual: Array = None, out: Array = None, quantize: object = None, block: object = None, device: object = None,
) -> Array: ...  # fmt: skip


def rms_norm(
    x: Array, *given: Any, normalized_shape: Sizes = None, weight: Array = None, eps: float | None = None,
    residual: Array = None, out: Array = None, quantize: object = None, block: object = None, device: object = None,
    **unknown: Any,
) -> Array:  # fmt: skip
    """Return ``x / sqrt(mean(x^2) + eps) * weight`` along the last dimension, like ``torch.nn.functional.rms_norm``.

    Both ``rms_norm(x, weight, eps)`` and torch's ``rms_norm(x, normalized_shape, weight, eps)`` are accepted.

    Args:
        normalized_shape: the last dimensions of ``x``, an int or a tuple; by default the last one.
        weight: an array of the normalized shape; None for ones.
        eps: 2^-23 by default, as in torch for f32 accumulators.
        residual: an array like ``x`` that is added to ``x`` first. The result is then a pair: the norm and the sum.
        out: memory for the norm; may be ``x``.
        quantize: 8-bit type of the result: e4m3 (``"f8E4M3FN"``), e5m2 or int8.  The results are then the quantized
            norm and its scales, as of :func:`cute_dialect.op.quantize`, and the sum with a residual.  Inputs
            that need gradients are refused.
        block: elements that share a scale: None or ``"row"`` for a row, 128 for 128 columns of a row.  In
            :func:`cute_dialect.op.quantize` None selects all elements; a norm has no such scale.
        device: ``"cpu"`` runs on the interpreter.
    """
    if len(given) == 1 and hasattr(given[0], "data_ptr"):  # the usual call: only a weight
        others = normalized_shape is None and weight is None and residual is None and out is None and device is None
        if others and quantize is None and block is None and not unknown and not _KNOWN["rms_norm"].is_traced():
            done = _KNOWN["rms_norm"].again((eps, "w"), x, *given)
            if done is not None:
                return done
    return _norm(
        rms_norm, ("weight", "eps"), x, given, normalized_shape, weight, None, eps, residual, out, device, unknown,
        (quantize, block),
    )  # fmt: skip


@overload
def layer_norm(
    x: Array,
    weight: Array = None,
    bias: Array = None,
    eps: float | None = None,
    *,
    residual: Array = None,
    out: Array = None,
    quantize: object = None,
    block: object = None,
    device: object = None,
) -> Array: ...


@overload
def layer_norm(
    x: Array,
    normalized_shape: int | Sequence[int],
    weight: Array = None,
    bias: Array = None,
    eps: float | None = None,
    *,
    residual: Array = None,
    out: Array = None,
    quantize: object = None,
    block: object = None,
    device: object = None,
) -> Array: ...


def layer_norm(
    x: Array, *given: Any, normalized_shape: Sizes = None, weight: Array = None, bias: Array = None,
    eps: float | None = None, residual: Array = None, out: Array = None, quantize: object = None,
    block: object = None, device: object = None, **unknown: Any,
) -> Array:  # fmt: skip
    """Return ``(x - mean) / sqrt(variance + eps) * weight + bias`` along the last dimension.

    It is ``torch.nn.functional.layer_norm``.  Both ``layer_norm(x, weight, bias, eps)`` and torch's ``layer_norm(x,
    normalized_shape, weight, bias, eps)`` are accepted.

    Args:
        normalized_shape: the last dimensions of ``x``, an int or a tuple; by default the last one.
        weight, bias: arrays of the normalized shape; None for ones and zeros.
        eps: 1e-5 by default.
        residual: an array like ``x`` that is added to ``x`` first. The result is then a pair: the norm and the sum.
        out: memory for the norm; may be ``x``.
        quantize: 8-bit type of the result: e4m3 (``"f8E4M3FN"``), e5m2 or int8.  The results are then the quantized
            norm and its scales, as of :func:`cute_dialect.op.quantize`, and the sum with a residual.  Inputs
            that need gradients are refused.
        block: elements that share a scale: None or ``"row"`` for a row, 128 for 128 columns of a row.  In
            :func:`cute_dialect.op.quantize` None selects all elements; a norm has no such scale.
        device: ``"cpu"`` runs on the interpreter.
    """
    if len(given) == 2 and hasattr(given[0], "data_ptr") and hasattr(given[1], "data_ptr"):  # the usual call
        others = normalized_shape is None and weight is None and bias is None and residual is None and out is None
        others = others and quantize is None and block is None
        if others and device is None and not unknown and not _KNOWN["layer_norm"].is_traced():
            done = _KNOWN["layer_norm"].again((1e-5 if eps is None else eps, "wb"), x, *given)
            if done is not None:
                return done
    names = ("weight", "bias", "eps")
    return _norm(
        layer_norm, names, x, given, normalized_shape, weight, bias, eps, residual, out, device, unknown,
        (quantize, block),
    )  # fmt: skip


_EPS = {"rms_norm": None, "layer_norm": 1e-5}
"""Default eps; None for that of f32 accumulators, which torch uses for all types."""
_EPS_OF_F32 = 2.0**-23


def _norm(
    function: Callable[..., Any], names: Sequence[str], x: Any, given: Sequence[Any], normalized_shape: Any,
    weight: Any, bias: Any, eps: float | None, residual: Any, out: Any, device: object, unknown: Mapping[str, Any],
    quantization: tuple[object, object] = (None, None),
) -> Any:  # fmt: skip
    """Compute a norm.

    Args:
        function: ``rms_norm`` or ``layer_norm``.
        names: its arguments after ``x`` that may be positional, without the normalized shape.
        given: its positional arguments after ``x``.
        unknown: its further arguments.
        quantization: its arguments ``quantize`` and ``block``.
    """
    call = function.__name__
    if unknown:
        check_keywords(call, function, unknown, interpreted=False)
    if quantization[0] is None and quantization[1] is not None:
        raise ArgumentError(f"{call}: block={quantization[1]!r} needs quantize; pass the 8-bit type as well")
    if given or normalized_shape is not None:
        by_name = _given(weight=weight, bias=bias, eps=eps)
        shape, by = norm_arguments(call, names, given, normalized_shape, by_name)
        weight, bias, eps = by.get("weight"), by.get("bias"), by.get("eps")
        if shape is not None:
            arrays = {"x": x, "weight": weight, "bias": bias, "residual": residual, "out": out}
            flat = as_rows(call, shape, x, arrays)
            if flat is not None and quantization[0] is not None:
                raise UnsupportedError(
                    f"{call}: quantize is not supported with a normalized_shape of several dimensions, {shape}; "
                    "reshape x to rows"
                )
            if flat is not None:
                return _shaped(function(**flat, eps=eps, device=device), x, out)
    eps = _EPS[call] if eps is None else eps
    if eps is not None:
        check_eps(call, eps)
    if quantization[0] is not None:
        return _norm_quantized(call, Operands(x, residual, weight, bias), eps, out, device, quantization)
    if out is None and device is None:
        done = _normed_again(call, x, weight, bias, eps, residual)
        if done is not None:
            return done
    if out is None and is_autocast(x):
        return recast(
            call, partial(_norm, function=function, names=names, given=(), normalized_shape=None, out=None, unknown={}),
            {"x": x, "weight": weight, "bias": bias, "residual": residual}, eps=eps, device=device,
        )  # fmt: skip
    operators = _operators(call, out, x, weight, bias, residual)
    if operators is None:
        return normed(call, x, weight, bias, eps, residual, out, device)

    def compute() -> object:
        operator = getattr(operators, call if residual is None else f"{call}_residual")
        rows = (x,) if residual is None else (x, residual)
        vectors = (weight, bias) if "bias" in names else (weight,)
        return operator(*rows, *vectors, _EPS_OF_F32 if eps is None else eps)

    return _differentiable(call, *_norm_key(x, weight, bias, eps, residual), device, compute)


def _norm_quantized(
    call: str, operands: Operands, eps: float | None, out: Any, device: object, quantization: tuple[object, object]
) -> Any:
    """Compute a norm with 8-bit results."""
    if out is not None:
        raise UnsupportedError(f"{call}: out is not supported with quantize; omit it")
    x, residual, weight, bias = operands

    def norm() -> Any:
        return normed(call, x, weight, bias, eps, residual, None, device)

    return norm_quantized(call, operands, _EPS_OF_F32 if eps is None else eps, *quantization, norm, device)


def _given(**values: Any) -> dict[str, Any]:
    """Return the arguments that are not None."""
    return {name: value for name, value in values.items() if value is not None}


def _shaped(found: Any, x: Any, out: Any) -> Any:
    """Reshape the results of a norm over several dimensions to the shape of ``x``, or return ``out``."""
    if isinstance(found, tuple):
        return _shaped(found[0], x, out), found[1].reshape(tuple(x.shape))
    return found.reshape(tuple(x.shape)) if out is None else out


def _taken(weight: Any, bias: Any, residual: Any) -> str:
    """Return the operands of a norm other than ``x`` as letters: w (weight), b (bias), r (residual)."""
    return ("w" if weight is not None else "") + ("b" if bias is not None else "") + "r" * (residual is not None)


def _normed_again(call: str, x: Any, weight: Any, bias: Any, eps: float | None, residual: Any) -> Any:
    """Replay a cached norm, or return None."""
    known = _KNOWN[call]
    if known.is_traced():
        return None
    how, tensors = _norm_key(x, weight, bias, eps, residual)
    return known.again(how, *tensors)


def _norm_key(
    x: Any, weight: Any, bias: Any, eps: float | None, residual: Any
) -> tuple[tuple[float | None, str], tuple[Any, ...]]:
    """Return the cache key of a norm and its tensors."""
    return (eps, _taken(weight, bias, residual)), tuple([t for t in (x, residual, weight, bias) if t is not None])


def normed(
    call: str, x: Array, weight: Array, bias: Array, eps: float | None, residual: Array = None, out: Array = None,
    device: object = None,
) -> Array:  # fmt: skip
    """Compute ``rms_norm`` or ``layer_norm`` without gradients."""
    takes = _taken(weight, bias, residual)
    read = tuple([t for t in (x, residual, weight, bias) if t is not None])

    def compute() -> object:
        one = RowCall(call, {"x": x, "residual": residual, "weight": weight, "bias": bias, "out": out}, device)
        n = one.length()
        one.expect("residual", one.x.shape)
        one.expect("weight", (n,))
        one.expect("bias", (n,))
        y = one.result(one.x.shape, out="out")
        results = [y] if residual is None else [y, one.result(one.x.shape)]
        if 0 not in one.x.shape:
            w, b, by = one.vector("weight"), one.vector("bias"), _EPS_OF_F32 if eps is None else float(eps)
            launch_rows(one, takes, y, w=w, b=b, s=results[1] if residual is not None else None, eps=by)
        return y if residual is None else (y, results[1])

    return _KNOWN[call].call((eps, takes), read, compute) if out is None and device is None else compute()


def transpose(x: Array, *, out: Array = None, device: object = None, **unknown: Never) -> Array:
    """Return the transpose of a matrix in new memory: (M, N) -> (N, M).

    Elements have 1, 2, 4 or 8 bytes, and strides are arbitrary.  There is no gradient.  For the other arguments see
    :func:`softmax`.
    """
    if unknown:
        check_keywords("transpose", transpose, unknown, interpreted=False)

    def compute() -> object:
        one = RowCall("transpose", {"x": x, "out": out}, device, elements=tuple(BYTES))
        if len(one.x.shape) != 2:
            raise ShapeError(f"transpose: x has shape {one.x.shape}; it must have rank 2")
        if needs_gradients(x):
            raise UnsupportedError("transpose: x requires a gradient, but transpose() has none; use x.t().contiguous()")
        y = one.result(one.x.shape[::-1], out="out")
        if 0 not in one.x.shape:
            one.launch(*choose_transpose(one.x, view_of(y)))
        return y

    return _KNOWN["transpose"].call((), (x,), compute) if out is None and device is None else compute()


# ---------------------------------------------------------------------------------------------------- row to number


def sum(x: Array, dim: int = -1, keepdim: bool = False, *, device: object = None, **unknown: Never) -> Array:
    """Return the row sums, like ``torch.sum``, computed in ``f32`` and rounded once.

    For the arguments see :func:`softmax`; ``keepdim`` keeps the dimension, with one element.
    """
    if unknown:
        check_keywords("sum", sum, unknown, interpreted=False)
    return _summed("sum", x, dim, keepdim, device)


def mean(x: Array, dim: int = -1, keepdim: bool = False, *, device: object = None, **unknown: Never) -> Array:
    """Return the means along the last dimension, like ``torch.mean``.  For the arguments see :func:`sum`."""
    if unknown:
        check_keywords("mean", mean, unknown, interpreted=False)
    return _summed("mean", x, dim, keepdim, device)


def max(x: Array, dim: int = -1, keepdim: bool = False, *, device: object = None, **unknown: Never) -> Array:
    """Return the maxima along the last dimension, like ``torch.amax``; NaN if a row has one.

    For the arguments see :func:`sum`.
    """
    if unknown:
        check_keywords("max", max, unknown, interpreted=False)
    return _summed("max", x, dim, keepdim, device)


def logsumexp(x: Array, dim: int = -1, keepdim: bool = False, *, device: object = None, **unknown: Never) -> Array:
    """Return ``log(sum(e^x))`` along the last dimension, like ``torch.logsumexp``.

    For the arguments see :func:`sum`.
    """
    if unknown:
        check_keywords("logsumexp", logsumexp, unknown, interpreted=False)
    return _summed("logsumexp", x, dim, keepdim, device)


def _summed(call: str, x: Any, dim: int, keepdim: bool, device: object) -> Any:
    known = _KNOWN[call]
    if type(dim) is not int:
        dim = one_dimension(call, dim)
    if device is None and not known.is_traced():
        done = known.again((dim, keepdim), x)
        if done is not None:
            return done
    if is_autocast(x):
        return recast(call, _summed, {"x": x}, call=call, dim=dim, keepdim=keepdim, device=device)
    operators = _operators(call, None, x)
    if operators is not None and _is_last(x, dim):
        how = (dim, keepdim)
        return _differentiable(call, how, (x,), device, lambda: operators.row_number(call, x, keepdim))
    return summed(call, x, dim, keepdim, device)


def summed(call: str, x: Array, dim: int = -1, keepdim: bool = False, device: object = None) -> Array:
    """Compute ``sum``, ``mean``, ``max`` or ``logsumexp`` without gradients."""

    def compute() -> object:
        one = RowCall(call, {"x": x}, device)
        n = one.length(dim)
        if n == 0 and call not in _OF_NOTHING:
            raise ShapeError(f"{call}: rows have no elements (x has shape {one.x.shape}); pass rows of at least one")
        shape = one.x.shape[:-1] + ((1,) if keepdim else ())
        y = one.result(shape)
        if n == 0:
            y[...] = _OF_NOTHING[call]
        if 0 not in one.x.shape:
            kernel, rows = _kernel_of_rows(one)
            one.launch(kernel, rows, one.numbers(y))
        return y

    return _KNOWN[call].call((dim, keepdim), (x,), compute) if device is None else compute()


def _kernel_of_rows(one: RowCall) -> tuple[RowKernel, ArrayView | None]:
    """Return the kernel from rows to numbers, and its rows."""
    packed = one.packed_rows(one.x)
    p = RowProblem(one.name, one.element, one.count, one.x.shape[-1], flat=packed is not None)
    rows = packed[0] if packed is not None and p.family == "packed" else one.matrix("x")
    return choose_kernels(p).kernels[0], rows


_OF_NOTHING = {"sum": 0.0, "mean": nan, "logsumexp": -inf}
"""Results for empty rows, as in torch; ``max`` has none."""


def cross_entropy(
    x: Array, target: Array, weight: Array = None, *, ignore_index: int = -100, reduction: str = "mean",
    label_smoothing: float = 0.0, device: object = None, **unknown: Never,
) -> Array:  # fmt: skip
    """Return the cross entropy ``logsumexp(x) - x[target]``, like ``torch.nn.functional.cross_entropy``.

    Unlike in torch, classes are the last dimension of ``x`` for any rank.

    Args:
        x: logits, (…, classes).
        target: class of each row, i64 of (…). Other values are undefined on a GPU and refused on the CPU.
        weight: weight of each class, (classes,).
        ignore_index: rows with this target do not count.
        reduction: ``mean`` over targets other than ``ignore_index``, ``sum``, or ``none`` for the loss of each row in
            f32.
        label_smoothing: fraction of a row's loss that is the mean over all classes.
        device: ``"cpu"`` runs on the interpreter.
    """
    if type(ignore_index) is not int or ignore_index != -100:
        check_ignore_index("cross_entropy", ignore_index)
    if type(label_smoothing) is not float:
        label_smoothing = as_number("cross_entropy", "label_smoothing", label_smoothing)
    how = (ignore_index, reduction)
    usual = weight is None and not label_smoothing and device is None and not unknown and not _LOSSES.is_traced()
    if usual:
        done = _LOSSES.again(how, x, target)
        if done is not None:
            return done[0] if type(done) is tuple else done
    if unknown:
        check_keywords("cross_entropy", cross_entropy, unknown, interpreted=False)
    if is_autocast(x):
        return recast(
            "cross_entropy", cross_entropy, {"x": x, "weight": weight}, target=target, ignore_index=ignore_index,
            reduction=reduction, label_smoothing=label_smoothing, device=device,
        )  # fmt: skip
    if weight is not None or label_smoothing:
        check_classes(x, weight, label_smoothing)
        if reduction not in REDUCTIONS:
            raise UnsupportedError(
                f"cross_entropy: reduction={reduction!r} is not supported; use 'mean', 'sum' or 'none'"
            )
        operators = _operators("cross_entropy", None, x)
        if operators is not None:

            def losses_of() -> Any:
                return operators.cross_entropy(x, target, ignore_index, "none")

            losses, lse, _ = call_operator("cross_entropy", losses_of, x, device)
        else:
            losses, lse, _ = cross_entropy_with_lse(x, target, ignore_index, "none", device)
        return of_classes(losses, lse, x, target, weight, label_smoothing, ignore_index, reduction)
    operators = _operators("cross_entropy", None, x)
    if operators is not None:

        def compute() -> object:
            return operators.cross_entropy(x, target, ignore_index, reduction)[0]

        def checked() -> object:
            return call_operator("cross_entropy", compute, x, device)

        return _LOSSES.differentiable(how, (x, target), checked) if usual else checked()
    return cross_entropy_with_lse(x, target, ignore_index, reduction, device)[0]


REDUCTIONS = ("mean", "sum", "none")


def check_targets(call: str, of: str, target: Array, classes: int, ignore_index: int) -> None:
    """Raise ArgumentError if a target in host memory is not a class; ``of`` names the array that has the classes."""
    import numpy as np  # late: only on the interpreter

    found = np.asarray(target)
    wrong = found[(found != ignore_index) & ((found < 0) | (found >= classes))]
    if wrong.size:
        raise ArgumentError(
            f"{call}: target has the class {wrong[0]}, but {of} has {classes} classes; pass 0 to {classes - 1}, or "
            f"ignore_index={ignore_index}"
        )


def cross_entropy_with_lse(
    x: Array, target: Array, ignore_index: int = -100, reduction: str = "mean", device: object = None
) -> tuple[Any, Any, Any]:
    """Return the losses, ``logsumexp`` of each row in f32, and the number of targets in f32 (None for ``none``)."""
    call = "cross_entropy"
    if reduction not in REDUCTIONS:
        raise UnsupportedError(f"{call}: reduction={reduction!r} is not supported; use 'mean', 'sum' or 'none'")

    def compute() -> tuple[Any, ...]:
        one = RowCall(call, {"x": x, "target": target}, device, others=("target",))
        n = one.length()
        one.expect("target", one.x.shape[:-1])
        if one.views["target"].dtype != "i64":
            raise one.wrong_type("target", "i64")
        if n == 0:
            raise ShapeError(f"{call}: x has shape {one.x.shape}; it must have at least one class")
        if one.cpu:
            check_targets(call, "x", target, n, ignore_index)
        losses, lse = (one.result(one.x.shape[:-1], "f32") for _ in range(2))
        targets = one.flat("target")
        if 0 not in one.x.shape:
            kernel, logits = _kernel_of_rows(one)
            one.launch(kernel, logits, targets, one.numbers(losses), one.numbers(lse), ignore_index)
        if reduction == "none":
            return losses, lse
        y, parts = one.result((), one.element), loss_parts(one.count)
        count, mean = one.result((), "f32"), reduction == "mean"
        of = (one.numbers(y), one.numbers(count))
        if parts == 1:
            one.launch(loss_kernel(one.element, mean), one.numbers(losses), targets, *of, ignore_index)
        else:
            sums = [one.result((parts,), "f32") for _ in range(2)]
            steps, given = ("first", "last"), [one.numbers(x) for x in sums]
            first, last = (loss_kernel(one.element, mean, step) for step in steps)
            one.launch(first, one.numbers(losses), targets, *given, ignore_index)
            one.launch(last, *given, *of)
        return y, lse, count

    found = compute() if device is not None else _LOSSES.call((ignore_index, reduction), (x, target), compute)
    return found if reduction != "none" else (*found, None)


# ------------------------------------------------------------------------------------ class weights and label smoothing


def check_classes(x: Any, weight: Any, smoothing: float, call: str = "cross_entropy") -> None:
    """Check ``weight`` and ``label_smoothing``.  Raises subclasses of OpError."""
    if not 0.0 <= as_number(call, "label_smoothing", smoothing) <= 1.0:
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
) -> Any:
    """Return the losses that ``torch.nn.functional.cross_entropy`` gives with ``weight`` and ``label_smoothing``.

    The arrays' library weights the losses that a kernel has computed, and differentiates that step.  Smoothing also
    needs the sum of each row of logits, so the library reads them once more.

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
