"""The operators of attention, ``torch.ops.cute.attention`` and others, and ``rope`` and ``append_kv``.

Gradients on a GPU are those of the kernels of :mod:`cute_dialect.kernels.attention.backward`.  Calls that they do not
support, and calls on the CPU, use matmuls in f32, in blocks of bounded size (:mod:`.attention_matmuls`).

The gradient of ``rope`` is the inverse rotation.
"""

# torch is not installed where types are checked.
# pyright: reportMissingImports=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownParameterType=false

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from cute_dialect.op.execute.array_call import RowCall
from cute_dialect.op.execute.attention_backward import (
    BACKWARD_CALL,
    BACKWARD_OTHERS,
    AttentionBackwardProblem,
    backward_form,
    choose_backward,
    launch_backward,
)
from cute_dialect.op.functions import attention as functions
from cute_dialect.op.functions.cascade_attention import CascadeNumbers, cascaded
from cute_dialect.op.functions.rope import Rotation, append_kv, rotated
from cute_dialect.op.operators.attention_matmuls import (
    Gradients,
    Mask,
    Saved,
    attention_of,
    empty_gradients,
    gradients_by_matmuls,
)
from cute_dialect.op.problems.attention import LAYOUTS, Form
from cute_dialect.op.select.backends import WGMMA
from cute_dialect.op.torch.registry import CUTE

if TYPE_CHECKING:  # pragma: no cover
    from cute_dialect.op.torch.autograd import Context


def gradients(
    saved: Saved, grad: Tensor | None, grad_lse: Tensor | None, mask: Mask, of_bias: bool = False
) -> Gradients:
    """Return the gradients, in the types of the tensors, from those of the result and of ``lse`` (None for zero)."""
    found = gradients_by_kernels(saved, grad, grad_lse, mask, of_bias)
    return gradients_by_matmuls(saved, grad, grad_lse, mask, of_bias) if found is None else found


def gradients_by_kernels(
    saved: Saved, grad: Tensor | None, grad_lse: Tensor | None, mask: Mask, of_bias: bool, device: str | None = None
) -> Gradients | None:
    """Return the gradients by the library's kernels, or None for calls that they do not support.

    Args:
        device: "cpu" for the interpreter.
    """
    q, k, v, begins_q, begins_k, out, lse = saved[:7]
    if (not q.is_cuda and device is None) or 0 in (q.numel(), k.numel(), lse.numel()):
        return None
    grad = torch.zeros_like(out) if grad is None else grad
    arrays = {"q": q, "k": k, "v": v, "out": out, "dout": grad, "lse": lse, "dlse": grad_lse}
    arrays |= {"cu_seqlens_q": begins_q, "cu_seqlens_k": begins_k}
    arrays |= {"sinks": saved.sinks, "alibi_slopes": saved.slopes, "mask": saved.bias, "rng_state": saved.state}
    one = RowCall(BACKWARD_CALL, arrays, device, BACKWARD_OTHERS)
    if not one.cpu and not WGMMA.runs_on(one.capability()):
        return None
    form = backward_form(
        one.views,
        mask.direction,
        mask.scale,
        mask.window,
        mask.layout,
        mask.longest,
        mask.softcap,
        mask.dropout_p,
    )
    ordered = torch.are_deterministic_algorithms_enabled() if mask.deterministic is None else mask.deterministic
    longest = mask.longest if begins_q is begins_k else mask.longest_keys
    problem = AttentionBackwardProblem(form, grad_lse is not None, ordered, longest, ("mask",) if of_bias else ())
    if of_bias and ordered and not _has_each_score(saved.bias, form):
        return None
    results = empty_gradients(q, k, v, mask.layout)
    if begins_q is not None:  # padding rows have no gradient
        results = results[0].zero_(), results[1].zero_(), results[2].zero_()
    made = launch_backward(one, choose_backward(problem), results)
    sinks = None if saved.sinks is None else _gradient_of_sinks(saved.sinks, made.stats)
    bias = made.sums["mask"].to(saved.bias.dtype) if of_bias and saved.bias is not None else None
    return Gradients(*results, sinks, bias)


def _has_each_score(bias: Tensor | None, f: Form) -> bool:
    """Return True if a mask has an element per score. Its gradient then needs no additions, whose order could vary."""
    return bias is not None and not f.packed and bias.numel() == f.batch * f.heads * f.queries * f.keys


def _gradient_of_sinks(sinks: Tensor, stats: Tensor) -> Tensor:
    """Return ``-sum of e^(sink - lse) delta`` over the rows of each head."""
    logs, deltas = stats.unflatten(-1, (2, -1)).unbind(-2)
    weights = torch.exp(sinks.float()[:, None, None] - logs * math.log(2))
    return (weights * deltas).sum((1, 2)).neg().to(sinks.dtype)


# ------------------------------------------------------------------------------------------- functions of the operators


def forward(*inputs: Any) -> tuple[Tensor, Tensor]:
    """Return the result and ``lse``, which is empty if it is not needed; -1: no bound of the window."""
    q, k, v = inputs[:3]
    causal, left, right, scale, layout, longest, softcap, ordered, *more = inputs[_TENSORS + _CACHES :]
    longest_keys, dropout_p, lse, *others = more
    mask = Mask(causal, left, right, scale, layout, longest)
    numbers = (mask.direction, scale, mask.window, softcap, lse, layout, longest, None, None)
    numbers += (*others, dropout_p, ordered, longest_keys)
    device = "cpu" if q.device.type == "cpu" else None
    found = functions.attended(q, k, v, numbers, inputs[3 : _TENSORS + _CACHES], device=device)
    return found if lse else (found, q.new_empty(0, dtype=torch.float32))


def fake(q: Tensor, k: Tensor, v: Tensor, *more: Any) -> tuple[Tensor, Tensor]:
    dtype = more[-1]
    if dtype is None:
        dtype = torch.bfloat16 if q.dtype.itemsize == 1 else q.dtype
    return empty_results(q, v, dtype, more[17], more[23])


def forward_cascade(*inputs: Any) -> tuple[Tensor, Tensor]:
    q, numbers = inputs[0], CascadeNumbers(*inputs[11:])
    found = cascaded(inputs[:11], numbers, device="cpu" if q.device.type == "cpu" else None)
    return found if numbers.lse else (found, q.new_empty(0, dtype=torch.float32))


def fake_cascade(*inputs: Any) -> tuple[Tensor, Tensor]:
    q, numbers = inputs[0], CascadeNumbers(*inputs[11:])
    return empty_results(q, inputs[4], q.dtype, numbers.layout, numbers.lse)


def empty_results(q: Tensor, v: Tensor, dtype: torch.dtype, layout: str, lse: bool) -> tuple[Tensor, Tensor]:
    """Return an uninitialized result with the order of rows and heads of q, and ``lse``, which may be empty."""
    like = q if q.shape[-1] == v.shape[-1] else q.new_empty(1).expand(*q.shape[:-1], v.shape[-1])
    if q.dim() == 4 and q.stride(1) < q.stride(2):
        rows = like.transpose(1, 2)
        result = torch.empty_like(rows, dtype=dtype, memory_format=torch.contiguous_format).transpose(1, 2)
    else:
        result = torch.empty_like(like, dtype=dtype, memory_format=torch.contiguous_format)
    rows = [q.shape[1], q.shape[0]]
    if q.dim() == 4:
        rows = [q.shape[i] for i in LAYOUTS[layout][:3]]
    return result, q.new_empty(rows if lse else 0, dtype=torch.float32)


_TENSORS, _CACHES, _REST, _ARGUMENTS = 9, 7, 4, 30
"""Arguments of the operator: tensors that have gradients or affect them, other tensors, arguments that do not affect
gradients, and all."""


def keep(ctx: Context, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor]) -> None:
    ctx.mask = inputs[_TENSORS + _CACHES : -_REST]
    ctx.save_for_backward(*inputs[:5], *output, *inputs[5:_TENSORS])
    ctx.set_materialize_grads(False)
    ctx.settings = _settings


def _settings() -> object:
    """Return torch's setting for deterministic algorithms, which selects the kernel of the gradients."""
    return torch.are_deterministic_algorithms_enabled()


def backward(ctx: Context, grad: Tensor | None, grad_lse: Tensor | None) -> tuple[Tensor | None, ...]:
    saved = Saved(*ctx.saved_tensors)
    found: dict[int, Tensor] = {}
    needs = ctx.needs_input_grad
    if grad is None and grad_lse is None:
        return (None,) * _ARGUMENTS
    if torch.is_grad_enabled():  # create_graph=True: differentiable gradients
        inputs: dict[int, Any] = {0: saved.q, 1: saved.k, 2: saved.v, 5: saved.sinks, 7: saved.bias}
        of = [i for i, x in inputs.items() if needs[i] and x is not None]
        pairs = [(x, g) for x, g in zip(attention_of(saved, Mask(*ctx.mask)), (grad, grad_lse)) if g is not None]
        results, given = [x for x, _ in pairs], [g for _, g in pairs]
        again = torch.autograd.grad(results, [inputs[i] for i in of], given, create_graph=True, allow_unused=True)
        found = dict(zip(of, again))
    else:
        tensors = (*saved[:5], *saved[7:], *saved[5:7], grad, grad_lse)
        made = CUTE.attention_backward(*tensors, *ctx.mask, needs[7])
        found = {i: x for i, x in zip((0, 1, 2, 5, 7), made) if needs[i]}
    return tuple([found.get(i) for i in range(_ARGUMENTS)])


def forward_gradients(*inputs: Any) -> tuple[Tensor, ...]:
    """Return the gradients of q, k, v, sinks and mask; the last two are empty if they are not needed."""
    q, k, v, begins_q, begins_k, sinks, slopes, mask, state, out, lse, grad, grad_lse = inputs[:13]
    saved = Saved(q, k, v, begins_q, begins_k, out, lse, sinks, slopes, mask, state)
    found = gradients(saved, grad, grad_lse, Mask(*inputs[13:-1]), inputs[-1])
    return tuple([q.new_empty(0) if x is None else x for x in found])


def fake_gradients(*inputs: Any) -> tuple[Tensor, ...]:
    q, sinks, mask = inputs[0], inputs[5], inputs[7]
    like = [x.new_empty(x.shape) if x is not None and used else q.new_empty(0)
            for x, used in ((sinks, True), (mask, inputs[-1]))]  # fmt: skip
    return (*empty_gradients(*inputs[:3], layout=inputs[17]), *like)


# --------------------------------------------------------------------------------------------------------------- merges


def forward_merge(outs: Tensor, lses: Tensor) -> tuple[Tensor, Tensor]:
    return functions.merged(outs, lses, "cpu" if outs.device.type == "cpu" else None)


def fake_merge(outs: Tensor, lses: Tensor) -> tuple[Tensor, Tensor]:
    return outs.new_empty(outs.shape[1:]), lses.new_empty(lses.shape[1:])


def forward_merge_in_place(out: Tensor, lse: Tensor, other: Tensor, other_lse: Tensor) -> None:
    functions.merge_attention_(out, lse, other, other_lse, device="cpu" if out.device.type == "cpu" else None)


def keep_merge(ctx: Context, inputs: tuple[Tensor, Tensor], output: tuple[Tensor, Tensor]) -> None:
    ctx.save_for_backward(*inputs, *output)
    ctx.set_materialize_grads(False)


def backward_merge(ctx: Context, grad: Tensor | None, grad_lse: Tensor | None) -> tuple[Tensor | None, Tensor | None]:
    """Return ``w[p] grad`` and ``w[p] (grad . (outs[p] - out) + grad_lse)`` with ``w[p] = e^(lses[p] - lse)``."""
    outs, lses, out, lse = ctx.saved_tensors
    if grad is None and grad_lse is None:
        return None, None
    weights = torch.where(lses == -torch.inf, 0.0, (lses - lse).exp())
    of_outs = of_lses = None
    if grad is not None:
        of_outs = (weights[..., None] * grad).to(outs.dtype)
        of_lses = weights * ((outs.float() - out.float()) * grad.float()).sum(-1)
    if grad_lse is not None:
        of_lses = weights * grad_lse + (0 if of_lses is None else of_lses)
    return of_outs, of_lses


def rotate(
    x: Tensor, cos: Tensor, sin: Tensor, positions: Tensor | None, offsets: Tensor | None, interleaved: bool,
    layout: str, inverse: bool,
) -> Tensor:  # fmt: skip
    device = "cpu" if x.device.type == "cpu" else None
    return rotated(x, Rotation(cos, sin, positions, offsets, interleaved, layout, inverse), device=device)


def fake_rotate(x: Tensor, *_: object) -> Tensor:
    return torch.empty_like(x, memory_format=torch.contiguous_format)


def keep_rotate(ctx: Context, inputs: tuple[Any, ...], output: Tensor) -> None:
    ctx.save_for_backward(*inputs[1:5])
    ctx.how = inputs[5:]


def rotate_back(ctx: Context, grad: Tensor) -> tuple[Tensor | None, ...]:
    interleaved, layout, inverse = ctx.how
    return CUTE.rope(grad, *ctx.saved_tensors, interleaved, layout, not inverse), *(None,) * 7


def append(
    k_cache: Tensor, v_cache: Tensor, k: Tensor, v: Tensor, seqused_k: Tensor, page_table: Tensor | None,
    *rotation: Any,
) -> None:  # fmt: skip
    cos, sin, offsets, interleaved, layout = rotation
    append_kv(
        k_cache, v_cache, k, v, seqused_k, page_table=page_table, cos=cos, sin=sin, interleaved=interleaved,
        offsets=offsets, layout=layout, device="cpu" if k.device.type == "cpu" else None,
    )  # fmt: skip


def fake_append(*_: object) -> None:
    return None
