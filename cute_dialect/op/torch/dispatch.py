"""Calls of the functions of ``op`` through torch operators, for tensors that need gradients or have no memory.

Each function converts its arguments to those of an operator.  Options that the operator lacks are rejected.
"""

# torch is not installed where types are checked.
# pyright: reportMissingImports=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownParameterType=false

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from cute_dialect.kernels.conv.config import DGRAD, FPROP
from cute_dialect.op.arrays.dtypes import element_name
from cute_dialect.op.arrays.library import operator_stream, refuse_options
from cute_dialect.op.arrays.operand_views import channels_first, first, last
from cute_dialect.op.epilogue.combination import LinearCombination
from cute_dialect.op.errors import UnsupportedError
from cute_dialect.op.execute.recording import is_eager, needs_gradients
from cute_dialect.op.problems.conv import NAMES, ConvOptions, window_of, wrong_rank
from cute_dialect.op.problems.grouped import GROUPS
from cute_dialect.op.torch.autograd import Context, apply_of, node_of
from cute_dialect.op.torch.gradients import activation_gradient, by_column, second_derivative_error, summed, torch_dtype
from cute_dialect.op.torch.registry import CUTE, differentiates, load_table

if TYPE_CHECKING:  # pragma: no cover
    from cute_dialect.op.problems.grouped import GroupedArguments

load_table()  # before torch.compile traces a call, because it cannot trace the import


def product(
    call: str, a: Any, b: Any, out: Any, dtype: Any, extras: LinearCombination, device: Any, stream: Any,
    others: Mapping[str, Any],
) -> Any:  # fmt: skip
    """Compute a GEMM.

    Args:
        others: options that operators do not support; each must be None.

    Raises UnsupportedError.
    """
    refuse_options(call, {"hook": extras.hook, **others})
    given = (extras.c, extras.bias)
    if differentiates(a, b, out, *given):
        raise UnsupportedError(
            f"{call}: torch.func.grad does not support operators of torch.library; use backward() or "
            "torch.autograd.grad"
        )
    more = {"alpha": extras.alpha, "beta": extras.beta, "activation": extras.activation, "dtype": torch_dtype(dtype)}
    more |= {"device": "" if device is None else str(device), "math": extras.math}
    more["accumulator"] = "" if extras.accumulator is None else element_name(extras.accumulator)
    with operator_stream(call, stream, a):
        if out is None:
            if extras.activation not in ("", "relu") and needs_gradients(a, b, *given):
                return getattr(CUTE, f"{call}_kept")(a, b, *given, **more)[0]
            return getattr(CUTE, call)(a, b, *given, **more)
        if needs_gradients(a, b, out, *given):
            raise UnsupportedError(f"{call}: out is not supported with gradients; omit it, or use torch.no_grad()")
        getattr(CUTE, f"{call}_out")(a, b, out, *given, **more)
        return out


def grouped_product(name: str, g: GroupedArguments, device: Any, stream: Any, others: Mapping[str, Any]) -> Any:
    """Compute a grouped GEMM; ``others`` are options of the interpreter.  Raises UnsupportedError."""
    refused = {"epilogue": g.epilogue, "out": g.out, "kernel": g.kernel, "gather": g.gather, **others}
    refuse_options(
        name, refused, "cannot be used when gradients are required, or in torch.compile; call it under torch.no_grad()"
    )
    if not isinstance(g.extras.alpha, int | float):
        raise UnsupportedError(f"{name}: alpha is an array; it must be a number when gradients are required")
    groups = {n: x for n, x in g.groups.items() if n in GROUPS}
    for n, x in groups.items():
        if isinstance(x, list | tuple):
            groups[n] = torch.tensor(x, dtype=torch.int32, device=g.a.device)
    with operator_stream(name, stream, g.a):
        x = g.extras
        return CUTE.grouped_mm(
            g.a, g.b, *(groups.get(n) for n in GROUPS), x.c, x.bias, alpha=float(x.alpha), beta=float(x.beta),
            activation=x.activation, rest=g.rest, dtype=torch_dtype(g.dtype),
            device="" if device is None else str(device), math=x.math,
        )  # fmt: skip


def convolution(
    name: str, rank: int, kind: str, arrays: Mapping[str, Any], given: ConvOptions, extras: LinearCombination,
    device: Any, stream: Any, others: Mapping[str, Any],
) -> Any:  # fmt: skip
    """Compute a convolution.

    Args:
        others: options that operators do not support; each must be None.

    Raises UnsupportedError, ShapeError.
    """
    refuse_options(
        name, {"out": arrays.get("out"), "split_k": given.split_k, "accumulator": extras.accumulator, **others},
        "is not supported with gradients or torch.compile; omit it, or call under torch.no_grad()",
    )  # fmt: skip
    turn = channels_first(name, given.data_format, rank, "torch")
    axes = tuple(range(rank + 2))

    def torchs(t: Any) -> Any:
        return t if turn or t is None or t.dim() != rank + 2 else t.permute(first(axes, True))

    for n in NAMES[kind]:
        if len(arrays[n].shape) != rank + 2:
            raise wrong_rank(name, n, tuple(arrays[n].shape), rank)
    size = given.size if given.size is None or turn else first(tuple(given.size), True)  # type: ignore[arg-type]
    taps = tuple(torchs(arrays["f"]).shape[2:]) if "f" in arrays else tuple(size)[2:]  # type: ignore[arg-type]
    w = window_of(name, taps, given.stride, given.padding, given.dilation, given.mode)
    window: list[Any] = [list(x) for x in (w.strides, w.before, w.after, w.dilations)]
    how: dict[str, Any] = {"groups": given.groups, "flip": w.flip, "dtype": torch_dtype(given.dtype)}
    how |= {"device": "" if device is None else str(device), "math": extras.math}
    image, other = (torchs(arrays[n]) for n in NAMES[kind])
    with operator_stream(name, stream, image):
        if kind == FPROP:
            more = {"alpha": extras.alpha, "beta": extras.beta, "activation": extras.activation}
            bias = extras.bias
            bias = bias if bias is None or bias.dim() == 1 else bias.reshape(-1)
            operands = image, other, bias, torchs(extras.c)
            if extras.activation not in ("", "relu") and needs_gradients(*operands):
                found = CUTE.conv_kept(*operands, *window, **more, **how)[0]
            else:
                found = CUTE.conv(*operands, *window, **more, **how)
        elif extras.c is not None or extras.alpha != 1.0:
            raise UnsupportedError(
                f"{name}: c and alpha are not supported with gradients or torch.compile; omit them, or call under "
                "torch.no_grad()"
            )
        elif kind == DGRAD:
            found = CUTE.conv_input(list(size), other, image, *window, **how)  # type: ignore[arg-type]
        else:
            found = CUTE.conv_weight(image, list(size), other, *window, **how)  # type: ignore[arg-type]
    return found if turn else found.permute(last(axes, True))


# -------------------------------------------------------------------------------------------------------- linear layers


def linear(
    x: Tensor, weight: Tensor, bias: Tensor | None, activation: str, device: str | None, transposed: bool = False
) -> Tensor | None:
    """Return a layer with gradients; None if it must be composed of a GEMM and views that torch sees.

    Args:
        transposed: ``weight`` is (K, N).
    """
    if x.dtype.itemsize == 1 or x.dtype != weight.dtype or x.dtype == torch.float64 or not is_eager((x, weight, bias)):
        return None
    if bias is not None and bias.dtype.itemsize == 1:
        return None
    return _APPLY(x, weight, bias, activation, device or "", transposed)[0]


def _forward(
    ctx: Context, x: Tensor, weight: Tensor, bias: Tensor | None, activation: str, device: str, transposed: bool
) -> tuple[Tensor, ...]:
    """Compute a layer ``activation(x @ weight.T + bias)`` and the operand of its activation.

    The operand is an output of the node, so that the backward pass notices if its gradient is used.

    Args:
        transposed: the layer is ``activation(x @ weight + bias)``.
    """
    rows, kept = _as_rows(x), None
    matrix = weight if transposed else weight.t()
    if activation in ("", "relu"):
        found = CUTE.mm(rows, matrix, None, bias, activation=activation, device=device)
    else:
        found, kept = CUTE.mm_kept(rows, matrix, None, bias, activation=activation, device=device)
    if x.dim() != 2:  # not a view, which could not be modified in place
        found = torch.ops.aten._unsafe_view.default(found, (*x.shape[:-1], matrix.shape[1]))
    ctx.activation, ctx.device, ctx.transposed = activation, device, transposed
    ctx.bias = None if bias is None else (bias.shape, bias.dtype)
    ctx.save_for_backward(x, weight, found if activation == "relu" else kept)
    ctx.set_materialize_grads(False)
    return (found,) if kept is None else (found, kept)


def _backward(ctx: Context, grad: Tensor | None, of_sums: Any = None) -> tuple[Tensor | None, ...]:
    """Compute the gradient of each input, as GEMMs that are differentiable themselves."""
    x, weight, kept = ctx.saved_tensors
    activation, device, needs = ctx.activation, ctx.device, ctx.needs_input_grad
    if grad is None or of_sums is not None:
        if grad is None and of_sums is None:
            return (None,) * 6
        raise second_derivative_error("linear")
    kept = _as_rows(kept) if activation == "relu" else kept
    g, columns = activation_gradient(
        "linear", _as_rows(grad), None, activation, kept, lambda _: kept, CUTE.mm_slope, device
    )
    assert g is not None
    factor = g if g.dtype == x.dtype else g.to(x.dtype)
    factor = factor if 1 in factor.stride() else factor.contiguous()
    of_x = of_weight = of_bias = None
    if needs[0]:
        of_x = CUTE.mm(factor, weight.t() if ctx.transposed else weight, device=device)
        of_x = of_x if x.dim() == 2 else of_x.view(x.shape)
    if needs[1]:
        factors = (_as_rows(x).t(), factor) if ctx.transposed else (factor.t(), _as_rows(x))
        of_weight = CUTE.mm(*factors, device=device)
    if needs[2]:
        shape, dtype = ctx.bias
        of_bias = summed(g if columns is None or not by_column(shape) else columns, shape, dtype)
    return of_x, of_weight, of_bias, None, None, None


_APPLY = apply_of(node_of(_forward, _backward))


def _as_rows(x: Tensor) -> Tensor:
    return x if x.dim() == 2 else x.reshape(-1, x.shape[-1])
