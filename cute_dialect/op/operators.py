"""Torch operators: ``torch.ops.cute.mm``, ``bmm`` and others, for ``torch.compile`` and autograd.

Importing this module registers the operators; the functions import it when they first need one.

- ``mm`` and ``bmm`` have shapes for tensors without memory, and gradients, which are GEMMs again.
- ``mm_out`` and ``bmm_out`` write the result to a given tensor.
- ``addmm``, ``baddbmm``, ``linear`` and ``matmul`` are composed of these.
- ``mm_kept`` and ``bmm_kept`` also return the operand of the activation, which its gradient needs (except that of
  relu, which needs the result).  Functions call them if a gradient is needed.  The gradient of ``mm`` itself
  recomputes it.
- ``mm_slope`` and ``bmm_slope`` multiply a gradient by the derivative of the activation, and sum its columns.
"""

# torch is not installed where types are checked.
# pyright: reportMissingImports=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownParameterType=false, reportUnknownLambdaType=false
# pyright: reportUntypedBaseClass=false

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from functools import cache, lru_cache
from inspect import Parameter, Signature
from math import floor, log2
from typing import Any, NamedTuple

import torch

from cute_dialect.op.arrays.dtypes import element_name, result_of, torch_name
from cute_dialect.op.autograd_node import Context, apply_of, node_of
from cute_dialect.op.errors import DtypeError, ShapeError, UnsupportedError
from cute_dialect.op.execute.call_cache import LinearCombination
from cute_dialect.op.execute.recording import is_eager
from cute_dialect.op.functions import gemm
from cute_dialect.op.functions import matmul as functions
from cute_dialect.op.problems.operands import check_addends
from cute_dialect.op.torch_vmap import differentiates, maps_of, slopes_mapped
from cute_dialect.runtime.arrays import view_of

__all__ = [
    "by_column", "by_operator", "factor_gradients", "keeping_function", "kept_element", "kept_type", "linear", "slope",
    "summed",
]  # fmt: skip

_MORE = (
    "Tensor? c=None, Tensor? bias=None, *, float alpha=1.0, float beta=1.0, str activation='', ScalarType? dtype=None, "
    "str device='', str math='default', str accumulator=''"
)
_RANK = {"mm": 2, "bmm": 3}


def by_operator(
    call: str, a: Any, b: Any, out: Any, dtype: Any, extras: LinearCombination, device: Any, stream: Any,
    others: Mapping[str, Any],
) -> Any:  # fmt: skip
    """Compute a GEMM with torch's dispatcher, for tensors that need gradients or have no memory.

    Args:
        others: options that operators do not support; each must be None.

    Raises UnsupportedError.
    """
    for name, given in (("hook", extras.hook), *others.items()):
        if given is not None:
            raise UnsupportedError(
                f"{call}: {name} is not supported with gradients, torch.compile or torch.vmap; omit it, or call "
                "under torch.no_grad() with plain tensors"
            )
    if differentiates(a, b, out, extras.c, extras.bias):
        raise UnsupportedError(
            f"{call}: torch.func.grad does not support operators of torch.library; use backward() or "
            "torch.autograd.grad"
        )
    if dtype is not None and not isinstance(dtype, torch.dtype):
        dtype = getattr(torch, torch_name(element_name(dtype)))
    given = (extras.c, extras.bias)
    more = {"alpha": extras.alpha, "beta": extras.beta, "activation": extras.activation, "dtype": dtype}
    more |= {"device": "" if device is None else str(device), "math": extras.math}
    more["accumulator"] = "" if extras.accumulator is None else element_name(extras.accumulator)
    with nullcontext() if stream is None else torch.cuda.stream(stream):
        learning = torch.is_grad_enabled() and any([t is not None and t.requires_grad for t in (a, b, *given)])
        if out is None and learning and is_eager((a, b, *given)):
            return _APPLY(a, b, *given, call, more)[0]
        if out is None and learning and extras.activation not in ("", "relu"):
            return getattr(torch.ops.cute, f"{call}_kept")(a, b, *given, **more)[0]
        if out is None:
            return getattr(torch.ops.cute, call)(a, b, *given, **more)
        if torch.is_grad_enabled() and any([t is not None and t.requires_grad for t in (a, b, out, *given)]):
            raise UnsupportedError(f"{call}: out is not supported with gradients; omit it, or use torch.no_grad()")
        getattr(torch.ops.cute, f"{call}_out")(a, b, out, *given, **more)
        return out


def _shape(call: str, a: torch.Tensor, b: torch.Tensor) -> list[Any]:
    """Return the shape of the result.  Raises ShapeError."""
    rank = _RANK[call]
    if a.dim() != rank or b.dim() != rank or a.shape[-1] != b.shape[-2]:
        raise ShapeError(
            f"{call}: cannot multiply shapes {tuple(a.shape)} and {tuple(b.shape)}; pass "
            f"{'(M, K) and (K, N)' if rank == 2 else '(L, M, K) and (L, K, N)'}"
        )
    matrices = [] if rank == 2 else [b.shape[0] if a.shape[0] == 1 else a.shape[0]]
    return [*matrices, a.shape[-2], b.shape[-1]]


_HOW = ("device", "math", "accumulator")
"""Options of operators that select the device and the arithmetic."""


def _given(how: Mapping[str, str]) -> dict[str, Any]:
    """Return these options as arguments of a function: empty strings become None."""
    return {name: value or None for name, value in how.items()}


def _define(call: str) -> None:
    """Register ``mm`` or ``bmm``, and the operator that writes to a given tensor."""
    function: Any = getattr(gemm, call)

    def compute(
        a: torch.Tensor, b: torch.Tensor, c: Any = None, bias: Any = None, *, alpha: float = 1.0, beta: float = 1.0,
        activation: str = "", dtype: Any = None, **how: str,
    ) -> torch.Tensor:  # fmt: skip
        more = {"alpha": alpha, "beta": beta, "c": c, "bias": bias, "activation": activation}
        return function(a, b, dtype=dtype, **more, **_given(how))

    def shaped(
        a: torch.Tensor, b: torch.Tensor, c: Any = None, bias: Any = None, *, dtype: Any = None, **_: Any
    ) -> torch.Tensor:  # fmt: skip
        dtype = dtype or getattr(torch, torch_name(result_of(element_name(a.dtype))))
        return a.new_empty(_shape(call, a, b), dtype=dtype)

    def write(
        a: torch.Tensor, b: torch.Tensor, out: torch.Tensor, c: Any = None, bias: Any = None, *, alpha: float = 1.0,
        beta: float = 1.0, activation: str = "", dtype: Any = None, **how: str,
    ) -> None:  # fmt: skip
        more = {"alpha": alpha, "beta": beta, "c": c, "bias": bias, "activation": activation}
        function(a, b, out, dtype=dtype, **more, **_given(how))

    schema = f"(Tensor a, Tensor b, {_MORE}) -> Tensor"
    made = torch.library.custom_op(f"cute::{call}", compute, mutates_args=(), schema=schema)
    made.register_fake(shaped)
    made.register_autograd(_backward_of(call), setup_context=_keep_of(call))
    made.register_vmap(maps_of(call))
    schema = f"(Tensor a, Tensor b, Tensor(a!) out, {_MORE}) -> ()"
    writing = torch.library.custom_op(f"cute::{call}_out", write, mutates_args=("out",), schema=schema)
    writing.register_fake(lambda a, b, *_, **__: _shape(call, a, b) and None)

    _define_activations(call)


_KEPT: dict[str, Any] = {}
"""GEMMs that also return the operand of the activation."""


def _define_activations(call: str) -> None:
    """Register the GEMM that saves the operand of its activation, and the derivative of activations."""
    function: Any = getattr(gemm, call)

    def compute(
        a: torch.Tensor, b: torch.Tensor, c: Any = None, bias: Any = None, *, alpha: float = 1.0, beta: float = 1.0,
        activation: str = "", dtype: Any = None, **how: str,
    ) -> tuple[torch.Tensor, torch.Tensor]:  # fmt: skip
        shape = tuple(_shape(call, a, b))
        views = {n: view_of(t.detach()) for n, t in (("c", c), ("bias", bias)) if t is not None}
        check_addends(call, views, shape, {"alpha": alpha, "beta": beta})
        args = {"alpha": alpha} | ({"C": c, "beta": beta} if c is not None else {})
        args |= {} if bias is None else {"bias": bias}
        kind = kept_type(a, dtype)
        args |= {} if kind is None else {"sums": torch.empty(shape, dtype=kind, device=a.device)}
        addends = [None if t is None else _like(t) for t in (c, bias)]
        epilogue = _keeping(activation, shape, *addends, kept_element(a, dtype))
        found = function(a, b, epilogue=epilogue, args=args, dtype=dtype, **_given(how))
        return found["D"], found["sums"]

    def shaped(
        a: torch.Tensor, b: torch.Tensor, c: Any = None, bias: Any = None, *, dtype: Any = None, **_: Any
    ) -> tuple[torch.Tensor, torch.Tensor]:  # fmt: skip
        dtype = dtype or getattr(torch, torch_name(result_of(element_name(a.dtype))))
        made = a.new_empty(_shape(call, a, b), dtype=dtype)
        return made, torch.empty_like(made, dtype=kept_type(a, dtype))

    _KEPT[call] = compute
    schema = f"(Tensor a, Tensor b, {_MORE}) -> (Tensor, Tensor)"
    made = torch.library.custom_op(f"cute::{call}_kept", compute, mutates_args=(), schema=schema)
    made.register_fake(shaped)
    made.register_autograd(_backward_of(call), setup_context=_keep_of(call))
    made.register_vmap(maps_of(call, kept=True))

    def slope_shape(grad: torch.Tensor, sums: torch.Tensor, *_: Any) -> tuple[torch.Tensor, torch.Tensor]:
        columns = (*grad.shape[:-2], 1, grad.shape[-1])
        return grad.new_empty(grad.shape), grad.new_empty(columns, dtype=torch.float32)

    schema = "(Tensor grad, Tensor sums, str activation, str device='') -> (Tensor, Tensor)"
    slopes = torch.library.custom_op(f"cute::{call}_slope", slope, mutates_args=(), schema=schema)
    slopes.register_fake(slope_shape)

    def no_second(*_: Any) -> Any:
        raise UnsupportedError(
            f"{call}: an activation has no second derivative; apply the activation with torch instead"
        )

    slopes.register_autograd(no_second)
    slopes.register_vmap(slopes_mapped)


def kept_type(a: torch.Tensor, dtype: torch.dtype | None) -> torch.dtype | None:
    """Return the type of the saved operand: None for the result's type, that of the factors for 8-bit results."""
    return a.dtype if dtype is not None and dtype.itemsize == 1 else None


def kept_element(a: torch.Tensor, dtype: Any) -> str:
    """Return the name of the type of the saved operand; ``dtype``: that of the result, None for the default."""
    usual = result_of(element_name(a.dtype)) if dtype is None else element_name(dtype)
    kind = kept_type(a, getattr(torch, torch_name(usual)))
    return usual if kind is None else element_name(kind)


class _Like(NamedTuple):
    """Type and shape of a tensor argument of an epilogue."""

    element: str
    shape: tuple[int, ...]


def _like(t: torch.Tensor) -> _Like:
    return _Like(element_name(t.dtype), tuple(t.shape))


@lru_cache(maxsize=256)
def _keeping(activation: str, sums: tuple[int, ...], c: _Like | None, bias: _Like | None, element: str) -> Any:
    """Return the epilogue of a GEMM with an activation that also returns its operand; ``element``: its type."""
    from cute_dialect.op.epilogue import FakeTensor, trace

    examples: dict[str, Any] = {"accum": FakeTensor("f32", sums), "alpha": 0.5}
    examples |= {} if c is None else {"C": FakeTensor(*c), "beta": 0.5}
    examples |= {} if bias is None else {"bias": FakeTensor(*bias)}
    function = keeping_function(activation, c is not None, bias is not None, element)
    return trace(function, examples, runtime=("alpha", "beta"))


_JUMPS = {"relu6": 6.0, "hardsigmoid": 3.0, "hardswish": 3.0}
"""Activations -> the number at which, and at whose negative, the derivative is discontinuous."""
_BITS = {"bf16": 7, "f16": 10}
"""Types that the operand of an activation is rounded to -> the number of fraction bits."""


@cache
def keeping_function(activation: str, c: bool, bias: bool, element: str) -> Any:
    """Return the epilogue that returns an activation and its operand, rounded to ``element``; cached.

    Rounding must not move the operand across a discontinuity of the derivative.  For example, -2.9927 as bf16 would be
    -3, where the derivative of hardswish is 0 instead of -0.5.
    """
    from cute_dialect.op.epilogue.functions import abs, activated, clamp, where

    function: Any = activated(activation)
    jump, bits = _JUMPS.get(activation.partition("(")[0]), _BITS.get(element)
    within = 0.0 if jump is None or bits is None else jump - 2.0 ** (floor(log2(jump)) - bits)

    def kept(accum: Any, **given: Any) -> Any:
        x = given["alpha"] * accum
        x = x + given["beta"] * given["C"] if c else x
        x = x + given["bias"] if bias else x
        return {"D": function(x), "sums": where(abs(x) < jump, clamp(x, -within, within), x) if within else x}

    names = ["accum", "alpha", *(("C", "beta") if c else ()), *(("bias",) if bias else ())]
    kept.__signature__ = Signature([Parameter(n, Parameter.KEYWORD_ONLY) for n in names])  # type: ignore[attr-defined]
    kept.__name__ = activation
    return kept


def slope(
    grad: torch.Tensor, sums: torch.Tensor, activation: str, device: str = ""
) -> tuple[torch.Tensor, torch.Tensor]:  # fmt: skip
    """Return a gradient times the derivative of an activation at ``sums``, and its column sums in f32."""
    found = _slope_call(activation, tuple(grad.shape), element_name(grad.dtype))
    found = found({"grad": grad, "sums": sums}, device or None)
    return found["D"], found["columns"]


@lru_cache(maxsize=256)
def _slope_call(activation: str, shape: tuple[int, ...], element: str) -> Any:
    """Return the call that multiplies a gradient by the derivative of an activation and sums its columns."""
    from cute_dialect.op.epilogue import FakeTensor, trace
    from cute_dialect.op.epilogue.functions import activated
    from cute_dialect.op.epilogue.functions import sum as summed_up
    from cute_dialect.op.epilogue.pointwise_backward import SlopeCall
    from cute_dialect.op.epilogue.saved_tensors import reading

    derivative: Any = activated(activation, derivative=True)

    def slope_of(accum: Any, grad: Any, sums: Any) -> Any:
        D = derivative(sums) * grad
        return {"D": D, "columns": summed_up(D, -2)}

    slope_of.__name__ = f"gradient of {activation}"
    traced = trace(slope_of, {n: FakeTensor("f32", shape) for n in ("accum", "grad", "sums")})
    return SlopeCall(reading(traced, ("D", "columns")), shape, {"D": element})


# ---------------------------------------------------------------------------------------------------------- gradients


def _keep_of(call: str) -> Any:
    """Return the function that saves the tensors for the gradients."""

    def keep(ctx: Any, inputs: tuple[Any, ...], keyword_only_inputs: Mapping[str, Any], output: Any) -> None:
        a, b, c, bias = inputs
        if a.dtype.itemsize == 1:
            raise DtypeError(
                f"{call}: a has dtype {element_name(a.dtype)}, which has no gradients; call it under torch.no_grad()"
            )
        activation = keyword_only_inputs["activation"]
        ctx.options = {n: keyword_only_inputs[n] for n in ("alpha", "beta", "activation", *_HOW)}
        ctx.added = [None if t is None else (t.shape, t.dtype) for t in (c, bias)]
        ctx.set_materialize_grads(False)
        if isinstance(output, tuple):  # the operator also returns the operand of the activation
            ctx.save_for_backward(a, b, None, None, output[1])
            return
        again = activation not in ("", "relu")
        ctx.save_for_backward(a, b, *((c, bias) if again else (None, None)), output if activation == "relu" else None)

    return keep


def _backward_of(call: str, products: Any = torch.ops.cute) -> Any:
    """Return the function that computes gradients; ``products``: the namespace of ``mm`` and ``bmm``."""

    def backward(ctx: Any, grad: torch.Tensor | None, of_sums: Any = None) -> tuple[torch.Tensor | None, ...]:
        a, b, c, bias, kept = ctx.saved_tensors
        options = dict(ctx.options)
        activation, alpha, beta = options.pop("activation"), options.pop("alpha"), options.pop("beta")
        columns = None
        if grad is None:
            if of_sums is None:
                return None, None, None, None
        elif activation == "relu":
            grad = torch.where(kept > 0, grad, 0)
        elif activation:
            if kept is None:
                more = {"alpha": alpha, "beta": beta, "dtype": grad.dtype}
                kept = getattr(torch.ops.cute, call)(a, b, c, bias, **more, **options)
            if products is gemm and not torch.is_grad_enabled():
                found = _slope_call(activation, tuple(grad.shape), element_name(grad.dtype))
                found = found({"grad": grad, "sums": kept}, options["device"] or None)
                grad, columns = found["D"], found["columns"]
            else:
                of_slope = getattr(torch.ops.cute, f"{call}_slope")
                grad, columns = of_slope(grad, kept, activation, options["device"])
        if of_sums is not None:  # gradient of the operand of the activation
            grad, columns = of_sums if grad is None else grad + of_sums, None
        assert grad is not None
        how = _given(options) if products is gemm else options
        of_a, of_b = factor_gradients(call, a, b, grad, ctx.needs_input_grad[:2], alpha, how, products)
        of_c, of_bias = (
            None if kind is None or not ctx.needs_input_grad[2 + i] else
            summed(grad if columns is None or not by_column(kind[0]) else columns, *kind)
            for i, kind in enumerate(ctx.added)
        )  # fmt: skip
        return of_a, of_b, of_c if of_c is None or beta == 1.0 else of_c * beta, of_bias

    return backward


def _product(
    ctx: Context, a: torch.Tensor, b: torch.Tensor, c: torch.Tensor | None, bias: torch.Tensor | None, call: str,
    more: dict[str, Any],
) -> tuple[torch.Tensor, ...]:  # fmt: skip
    """Compute a GEMM of plain tensors; return the result, and the operand of an activation."""
    if more["activation"] in ("", "relu"):
        how = more | {n: more[n] or None for n in _HOW}
        found = getattr(gemm, call)(a, b, c=c, bias=bias, **how)
    else:
        found = _KEPT[call](a, b, c, bias, **more)
    _keep_of(call)(ctx, (a, b, c, bias), more, found)
    ctx.call = call
    return found if isinstance(found, tuple) else (found,)


def _product_backward(ctx: Context, *grads: torch.Tensor | None) -> tuple[torch.Tensor | None, ...]:
    return (*_backward_of(ctx.call, gemm)(ctx, *grads), None, None)


_APPLY = apply_of(node_of(_product, _product_backward))


def _plain(ctx: Context, a: torch.Tensor, b: torch.Tensor, call: str, dtype: object) -> torch.Tensor:
    """Compute a GEMM without an epilogue."""
    found = getattr(gemm, call)(a, b, dtype=dtype)
    ctx.call = call
    ctx.save_for_backward(a, b)
    ctx.set_materialize_grads(False)
    return found


def _plain_backward(ctx: Context, grad: torch.Tensor | None) -> tuple[torch.Tensor | None, ...]:
    if grad is None:
        return None, None, None, None
    a, b = ctx.saved_tensors
    return *factor_gradients(ctx.call, a, b, grad, ctx.needs_input_grad, 1.0, {}, gemm), None, None


_APPLY_PLAIN = apply_of(node_of(_plain, _plain_backward))


def plain_product(call: str, a: torch.Tensor, b: torch.Tensor, dtype: object) -> torch.Tensor | None:
    """Return a GEMM with gradients and no other arguments; None if :func:`by_operator` must compute it."""
    if not is_eager((a, b)) or a.dtype.itemsize == 1:
        return None
    return _APPLY_PLAIN(a, b, call, dtype)


def _linear(
    ctx: Context, x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None, activation: str,
    device: str | None, transposed: bool,
) -> tuple[torch.Tensor, ...]:  # fmt: skip
    """Compute a layer ``activation(x @ weight.T + bias)`` and the operand of its activation.

    It is one autograd node, without nodes for views of the arguments.  The operand is an output of the node, so that
    the backward pass notices if its gradient is used.

    Args:
        transposed: the layer is ``activation(x @ weight + bias)``.
    """
    rows, kept = _as_rows(x), None
    matrix = weight if transposed else weight.t()
    if activation in ("", "relu"):
        found = gemm.mm(rows, matrix, bias=bias, activation=activation, device=device)
    else:
        found, kept = _KEPT["mm"](rows, matrix, None, bias, activation=activation, device=device or "")
    if x.dim() != 2:  # not a view, which could not be modified in place
        found = torch.ops.aten._unsafe_view.default(found, (*x.shape[:-1], matrix.shape[1]))
    ctx.activation, ctx.device, ctx.transposed = activation, device, transposed
    ctx.bias = None if bias is None else (bias.shape, bias.dtype)
    ctx.save_for_backward(x, weight, found if activation == "relu" else kept)
    ctx.set_materialize_grads(False)
    return (found,) if kept is None else (found, kept)


def _linear_backward(
    ctx: Context, grad: torch.Tensor | None, of_sums: Any = None
) -> tuple[torch.Tensor | None, ...]:  # fmt: skip
    """Compute the gradient of each input, as GEMMs that are differentiable themselves."""
    x, weight, kept = ctx.saved_tensors
    activation, device, needs = ctx.activation, ctx.device, ctx.needs_input_grad
    if grad is None or of_sums is not None:
        if grad is None and of_sums is None:
            return (None,) * 6
        raise UnsupportedError(
            "linear: an activation has no second derivative; apply the activation with torch instead"
        )
    g, columns = _as_rows(grad), None
    if activation == "relu":
        g = torch.where(_as_rows(kept) > 0, g, 0)
    elif activation and torch.is_grad_enabled():
        g, columns = torch.ops.cute.mm_slope(g, kept, activation, device or "")
    elif activation:
        found = _slope_call(activation, tuple(g.shape), element_name(g.dtype))({"grad": g, "sums": kept}, device)
        g, columns = found["D"], found["columns"]
    factor = g if g.dtype == x.dtype else g.to(x.dtype)
    factor = factor if 1 in factor.stride() else factor.contiguous()
    of_x = of_weight = of_bias = None
    if needs[0]:
        of_x = gemm.mm(factor, weight.t() if ctx.transposed else weight, device=device)
        of_x = of_x if x.dim() == 2 else of_x.view(x.shape)
    if needs[1]:
        factors = (_as_rows(x).t(), factor) if ctx.transposed else (factor.t(), _as_rows(x))
        of_weight = gemm.mm(*factors, device=device)
    if needs[2]:
        shape, dtype = ctx.bias
        of_bias = summed(g if columns is None or not by_column(shape) else columns, shape, dtype)
    return of_x, of_weight, of_bias, None, None, None


_APPLY_LINEAR = apply_of(node_of(_linear, _linear_backward))


def linear(
    x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None, activation: str, device: str | None,
    transposed: bool = False,
) -> torch.Tensor | None:  # fmt: skip
    """Return a layer with gradients; None if it must be composed of a GEMM and views that torch sees.

    Args:
        transposed: ``weight`` is (K, N).
    """
    if x.dtype.itemsize == 1 or x.dtype != weight.dtype or x.dtype == torch.float64 or not is_eager((x, weight, bias)):
        return None
    if bias is not None and bias.dtype.itemsize == 1:
        return None
    return _APPLY_LINEAR(x, weight, bias, activation, device, transposed)[0]


def _as_rows(x: torch.Tensor) -> torch.Tensor:
    return x if x.dim() == 2 else x.reshape(-1, x.shape[-1])


def by_column(shape: torch.Size) -> bool:
    """Return True if a tensor of this shape broadcasts along the rows of the result."""
    return len(shape) == 1 or (len(shape) == 2 and shape[0] == 1)


def factor_gradients(
    call: str, a: torch.Tensor, b: torch.Tensor, grad: torch.Tensor, needed: Sequence[bool], alpha: float,
    options: Mapping[str, Any], products: Any = torch.ops.cute,
) -> tuple[torch.Tensor | None, torch.Tensor | None]:  # fmt: skip
    """Return the gradients of the factors of a GEMM, those that are needed.

    Args:
        grad: gradient of the accumulator.
        needed: whether the gradient of ``a``, and that of ``b``, is needed.
        products: the namespace of ``mm`` and ``bmm``.
    """
    product = getattr(products, call)
    g = grad.to(a.dtype)
    g = g if g.stride(-1) == 1 or g.stride(-2) == 1 else g.contiguous()
    of_a = of_b = None
    if needed[0]:
        several = call == "bmm" and a.shape[0] == 1 and g.shape[0] > 1
        of_a = product(g, b.mT, alpha=alpha, dtype=torch.float32 if several else a.dtype, **options)
        of_a = summed(of_a, a.shape, a.dtype)
    if needed[1]:
        if call == "bmm" and b.shape[0] == 1:  # one GEMM over the rows of all matrices sums over the batch
            x, y = (torch.broadcast_to(t, (g.shape[0], *t.shape[1:])).flatten(0, 1) for t in (a, g))
            of_b = products.mm(x.t(), y, alpha=alpha, dtype=b.dtype, **options)[None]
        else:
            of_b = product(a.mT, g, alpha=alpha, dtype=b.dtype, **options)
    return of_a, of_b


def summed(grad: torch.Tensor, shape: torch.Size, dtype: torch.dtype) -> torch.Tensor:
    """Return the gradient of an array that was broadcast: the sum, in f32, over the broadcast modes."""
    if grad.shape == shape and grad.dtype == dtype:
        return grad
    full = (*(1,) * (grad.dim() - len(shape)), *shape)
    axes = [i for i, (have, was) in enumerate(zip(grad.shape, full)) if was == 1 and have != 1]
    if axes and grad.is_cuda and grad.dtype == dtype:  # torch sums in f32 and rounds once
        grad = grad.sum(axes, keepdim=True)
    elif axes:
        grad = grad.sum(axes, keepdim=True, dtype=torch.float32)
    return grad.reshape(shape).to(dtype)


# ------------------------------------------------------------------------------------------------- composed operators


def _compose(library: torch.library.Library) -> None:
    """Register the operators composed of ``mm`` and ``bmm``."""
    how = "ScalarType? dtype=None, str device='', str math='default', str accumulator=''"
    options = f"*, float beta=1.0, float alpha=1.0, str activation='', {how}"
    some = f"*, float alpha=1.0, {how}"
    schemas = {
        "addmm": f"(Tensor c, Tensor a, Tensor b, Tensor? bias=None, {options}) -> Tensor",
        "baddbmm": f"(Tensor c, Tensor a, Tensor b, Tensor? bias=None, {options}) -> Tensor",
        "linear": f"(Tensor x, Tensor weight, Tensor? bias=None, str activation='', {some}) -> Tensor",
        "matmul": f"(Tensor a, Tensor b, {some}) -> Tensor",
    }
    for name, schema in schemas.items():
        function: Any = getattr(functions, name)

        def composed(*given: Any, _function: Any = function, **more: Any) -> torch.Tensor:
            added = dict(zip(("bias",), given[3:])) if _function in (functions.addmm, functions.baddbmm) else {}
            given = given[:3] if added else given
            return _function(*given, **added, **more | _given({n: more[n] for n in _HOW if n in more}))

        library.define(name + schema)
        library.impl(name, composed, "CompositeImplicitAutograd")


for _call in ("mm", "bmm"):
    _define(_call)
_LIBRARY = torch.library.Library("cute", "FRAGMENT")
_compose(_LIBRARY)
