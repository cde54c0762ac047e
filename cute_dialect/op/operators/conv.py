"""Functions of the operators of convolutions: ``torch.ops.cute.conv``, ``conv_input`` and ``conv_weight``.

They have any rank.  The gradients of each operator are the others.  ``conv_kept`` also returns the operand of the
activation, which ``conv_slope``, its derivative, needs (as in :mod:`cute_dialect.op.operators.gemm`).
"""

# torch is not installed where types are checked.
# pyright: reportMissingImports=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownParameterType=false, reportUnknownLambdaType=false

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from cute_dialect.kernels.conv.config import DGRAD, FPROP, WGRAD, extent_of
from cute_dialect.op.conv.compute import convolution
from cute_dialect.op.epilogue.combination import LinearCombination
from cute_dialect.op.functions import conv as functions
from cute_dialect.op.problems.conv import ConvOptions
from cute_dialect.op.torch.gradients import (
    activation_gradient,
    keep_operands,
    keeping_function,
    kept_element,
    kept_type,
    result_dtype,
    slope,
    summed,
)
from cute_dialect.op.torch.registry import CUTE

if TYPE_CHECKING:  # pragma: no cover
    from cute_dialect.op.torch.autograd import Context

_DEFAULTS: Mapping[str, Any] = {"groups": 1, "flip": False, "dtype": None, "device": "", "math": "default"}


_PLAIN = (Tensor, torch.nn.Parameter, type(None))


def _call(
    kind: str, arrays: Mapping[str, Tensor], size: tuple[int, ...] | None, extras: LinearCombination,
    how: tuple[Sequence[int], ...],
    more: Mapping[str, Any]
) -> Any:  # fmt: skip
    """Compute a convolution of torch tensors with channels first."""
    more = {**_DEFAULTS, **more}  # torch omits arguments that equal their defaults
    stride, before, after, dilation = how
    rank = len(stride)
    name = f"conv{rank}d" + {FPROP: "", DGRAD: "forward_input", WGRAD: "forward_weight"}[kind]
    mode = "convolution" if more["flip"] else "cross_correlation"
    padding = tuple(zip(before, after))
    given = ConvOptions(tuple(stride), padding, tuple(dilation), more["groups"], size, mode, None, more["dtype"])
    extras = extras._replace(math=more["math"])
    graph, args = more.get("epilogue"), more.get("args", {})
    named = {**arrays, "bias": extras.bias, "c": extras.c}
    if all([type(t) in _PLAIN for t in named.values()]):
        named["out"] = None
        return functions.computed(rank, kind, named, given, extras, more["device"] or None, None, {}, graph, args)
    return convolution(name, kind, rank, named, given, extras, more["device"] or None, None, {}, graph, args)


def _made(like: Tensor, shape: Sequence[int], dtype: torch.dtype | None) -> Tensor:
    """Return a result without memory, with channels-last strides."""
    n, c, *extents = shape
    return like.new_empty((n, *extents, c), dtype=result_dtype(like, dtype)).permute(
        0, len(shape) - 1, *range(1, len(shape) - 1)
    )


def forward(
    x: Tensor, f: Tensor, bias: Tensor | None, c: Tensor | None, stride: Sequence[int],
    before: Sequence[int], after: Sequence[int], dilation: Sequence[int], *,
    alpha: float = 1.0, beta: float = 1.0, activation: str = "", **more: Any,
) -> Tensor:  # fmt: skip
    extras = LinearCombination(alpha, beta, c, bias, activation)
    return _call(FPROP, {"x": x, "f": f}, None, extras, (stride, before, after, dilation), more)


def fake(
    x: Tensor, f: Tensor, bias: Tensor | None, c: Tensor | None, stride: Sequence[int],
    before: Sequence[int], after: Sequence[int], dilation: Sequence[int], *,
    dtype: torch.dtype | None = None, **_: object,
) -> Tensor:  # fmt: skip
    of_each = zip(x.shape[2:], f.shape[2:], before, after, stride, dilation)
    # If the filter does not fit, the call itself reports it.
    return _made(x, (x.shape[0], f.shape[0], *[max(extent_of(*each), 0) for each in of_each]), dtype)


def forward_input(size: Sequence[int], f: Tensor, grad: Tensor, *how: Sequence[int], **more: Any) -> Tensor:
    return _call(DGRAD, {"grad_y": grad, "f": f}, tuple(size), LinearCombination(), how, more)


def fake_input(
    size: Sequence[int], f: Tensor, grad: Tensor, *_: object, dtype: torch.dtype | None = None, **__: object
) -> Tensor:
    return _made(grad, size, dtype)


def forward_weight(x: Tensor, size: Sequence[int], grad: Tensor, *how: Sequence[int], **more: Any) -> Tensor:
    return _call(WGRAD, {"x": x, "grad_y": grad}, tuple(size), LinearCombination(), how, more)


def fake_weight(
    x: Tensor, size: Sequence[int], grad: Tensor, *_: object, dtype: torch.dtype | None = None, **__: object
) -> Tensor:
    return _made(x, size, dtype)


def forward_kept(
    x: Tensor, f: Tensor, bias: Tensor | None, c: Tensor | None, stride: Sequence[int],
    before: Sequence[int], after: Sequence[int], dilation: Sequence[int], *,
    alpha: float = 1.0, beta: float = 1.0, activation: str = "", **more: Any,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    how = stride, before, after, dilation
    shape = fake(x.to("meta"), f.to("meta"), None, None, *how).shape
    args = {"alpha": alpha} | ({"C": c.expand(shape), "beta": beta} if c is not None else {})
    args |= {} if bias is None else {"bias": bias}
    kind = kept_type(x, more.get("dtype"))
    args |= {} if kind is None else {"sums": _made(x, shape, kind)}
    epilogue = keeping_function(activation, c is not None, bias is not None, kept_element(x, more.get("dtype")))
    found = _call(FPROP, {"x": x, "f": f}, None, LinearCombination(), how, {**more, "epilogue": epilogue, "args": args})
    return found["D"], found["sums"]


def fake_kept(x: Tensor, *given: Any, dtype: torch.dtype | None = None, **more: Any) -> tuple[Tensor, Tensor]:
    made = fake(x, *given, dtype=dtype, **more)
    return made, _made(x, made.shape, kept_type(x, dtype) or made.dtype)


def forward_slope(grad: Tensor, sums: Tensor, activation: str, device: str = "") -> tuple[Tensor, Tensor]:
    rank = grad.dim()
    rows, kept = (t.permute(0, *range(2, rank), 1).reshape(-1, t.shape[1]) for t in (grad, sums))
    found, columns = slope(rows, kept, activation, device)
    n, c, *extents = grad.shape
    return found.view(n, *extents, c).permute(0, rank - 1, *range(1, rank - 1)), columns.view(c)


def fake_slope(grad: Tensor, *_: object) -> tuple[Tensor, Tensor]:
    return _made(grad, grad.shape, grad.dtype), grad.new_empty(grad.shape[1:2], dtype=torch.float32)


def _how(ctx: Context, window: tuple[Sequence[int], ...], more: Mapping[str, Any]) -> None:
    """Save the window and the options of a convolution."""
    ctx.window, ctx.more = window, {n: more[n] for n in ("groups", "flip", "device", "math")}


def keep(
    ctx: Context,
    inputs: tuple[Any, ...],
    keyword_only_inputs: Mapping[str, Any],
    output: Tensor | tuple[Tensor, ...],
) -> None:
    x, f, bias, c, *window = inputs
    _how(ctx, tuple(window), keyword_only_inputs)
    ctx.sums = {n: keyword_only_inputs[n] for n in ("alpha", "beta", "activation")}
    keep_operands(ctx, (x, f), (bias, c), ctx.sums["activation"], output)


def backward(ctx: Context, grad: Tensor | None, of_sums: Tensor | None = None) -> tuple[Tensor | None, ...]:
    x, f, bias, c, kept = ctx.saved_tensors
    alpha, sums = ctx.sums["alpha"], {**ctx.sums, "activation": ""}
    grad, columns = activation_gradient(
        "conv", grad, of_sums, ctx.sums["activation"], kept,
        lambda dtype: CUTE.conv(x, f, bias, c, *ctx.window, dtype=dtype, **sums, **ctx.more),
        CUTE.conv_slope, ctx.more["device"],
    )  # fmt: skip
    if grad is None:
        return (None,) * 8
    scaled = (grad if alpha == 1.0 else grad * alpha).to(x.dtype)
    of_x = of_f = of_bias = of_c = None
    if ctx.needs_input_grad[0]:
        of_x = CUTE.conv_input(list(x.shape), f, scaled, *ctx.window, dtype=x.dtype, **ctx.more)
    if ctx.needs_input_grad[1]:
        of_f = CUTE.conv_weight(x, list(f.shape), scaled, *ctx.window, dtype=f.dtype, **ctx.more)
    if ctx.added[0] is not None and ctx.needs_input_grad[2]:
        shape, dtype = ctx.added[0]
        columns = grad.sum((0, *range(2, grad.dim())), dtype=torch.float32) if columns is None else columns
        of_bias = columns.reshape(shape).to(dtype)
    if ctx.added[1] is not None and ctx.needs_input_grad[3]:
        of_c = summed(grad if ctx.sums["beta"] == 1.0 else grad * ctx.sums["beta"], *ctx.added[1])
    return (of_x, of_f, of_bias, of_c, *(None,) * 4)


def keep_input(ctx: Context, inputs: tuple[Any, ...], keyword_only_inputs: Mapping[str, Any], output: Tensor) -> None:
    _, f, grad, *window = inputs
    _how(ctx, tuple(window), keyword_only_inputs)
    ctx.save_for_backward(f, grad)


def backward_input(ctx: Context, of_result: Tensor) -> tuple[Tensor | None, ...]:
    f, grad = ctx.saved_tensors
    g, of_f, of_grad = of_result.to(f.dtype), None, None
    if ctx.needs_input_grad[1]:
        of_f = CUTE.conv_weight(g, list(f.shape), grad, *ctx.window, dtype=f.dtype, **ctx.more)
    if ctx.needs_input_grad[2]:
        of_grad = CUTE.conv(g, f, None, None, *ctx.window, dtype=grad.dtype, **ctx.more)
    return (None, of_f, of_grad, *(None,) * 4)


def keep_weight(ctx: Context, inputs: tuple[Any, ...], keyword_only_inputs: Mapping[str, Any], output: Tensor) -> None:
    x, _, grad, *window = inputs
    _how(ctx, tuple(window), keyword_only_inputs)
    ctx.save_for_backward(x, grad)


def backward_weight(ctx: Context, of_result: Tensor) -> tuple[Tensor | None, ...]:
    x, grad = ctx.saved_tensors
    g, of_x, of_grad = of_result.to(x.dtype), None, None
    if ctx.needs_input_grad[0]:
        of_x = CUTE.conv_input(list(x.shape), g, grad, *ctx.window, dtype=x.dtype, **ctx.more)
    if ctx.needs_input_grad[2]:
        of_grad = CUTE.conv(x, g, None, None, *ctx.window, dtype=grad.dtype, **ctx.more)
    return (of_x, None, of_grad, *(None,) * 4)
