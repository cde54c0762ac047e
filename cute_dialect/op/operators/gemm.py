"""Functions of the operators of GEMMs: ``mm`` and ``bmm``, and the operators composed of them.

- ``mm`` and ``bmm`` have gradients, which are GEMMs again.
- ``mm_out`` and ``bmm_out`` write the result to a given tensor.
- ``mm_kept`` and ``bmm_kept`` also return the operand of the activation, which its gradient needs (except that of
  relu, which needs the result).  Functions call them if a gradient is needed.  The gradient of ``mm`` itself
  recomputes it.
- ``mm_slope`` and ``bmm_slope`` multiply a gradient by the derivative of the activation, and sum its columns.
- ``addmm``, ``baddbmm``, ``linear`` and ``matmul`` are composed of these.
"""

# torch is not installed where types are checked.
# pyright: reportMissingImports=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownParameterType=false

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Never

import torch
from torch import Tensor

from cute_dialect.op.arrays.dtypes import element_name
from cute_dialect.op.errors import DtypeError, ShapeError
from cute_dialect.op.functions import gemm
from cute_dialect.op.problems.operands import check_addends
from cute_dialect.op.torch.gradients import (
    activation_gradient,
    by_column,
    factor_gradients,
    keep_operands,
    keeping_epilogue,
    kept_element,
    kept_type,
    result_dtype,
    second_derivative_error,
    summed,
)
from cute_dialect.op.torch.registry import CUTE
from cute_dialect.runtime.arrays import view_of

if TYPE_CHECKING:  # pragma: no cover
    from cute_dialect.op.torch.autograd import Context

_RANK = {"mm": 2, "bmm": 3}

_HOW = ("device", "math", "accumulator")
"""Options of operators that select the device and the arithmetic."""


def _given(how: Mapping[str, str]) -> dict[str, str | None]:
    """Return these options as arguments of a function: empty strings become None."""
    return {name: value or None for name, value in how.items()}


def _shape(call: str, a: Tensor, b: Tensor) -> list[int]:
    """Return the shape of the result.  Raises ShapeError."""
    rank = _RANK[call]
    if a.dim() != rank or b.dim() != rank or a.shape[-1] != b.shape[-2]:
        raise ShapeError(
            f"{call}: cannot multiply shapes {tuple(a.shape)} and {tuple(b.shape)}; pass "
            f"{'(M, K) and (K, N)' if rank == 2 else '(L, M, K) and (L, K, N)'}"
        )
    matrices = [] if rank == 2 else [b.shape[0] if a.shape[0] == 1 else a.shape[0]]
    return [*matrices, a.shape[-2], b.shape[-1]]


# ----------------------------------------------------------------------------------------------------------- mm, bmm


def forward(call: str) -> Callable[..., Tensor]:
    """Return the function of ``mm`` or ``bmm``."""
    function: Any = getattr(gemm, call)

    def compute(
        a: Tensor,
        b: Tensor,
        c: Tensor | None = None,
        bias: Tensor | None = None,
        *,
        dtype: torch.dtype | None = None,
        **more: Any,
    ) -> Tensor:
        more |= _given({n: more[n] for n in _HOW if n in more})
        return function(a, b, c=c, bias=bias, dtype=dtype, **more)

    return compute


def out(call: str) -> Callable[..., None]:
    """Return the function of ``mm_out`` or ``bmm_out``."""
    function: Any = getattr(gemm, call)

    def write(
        a: Tensor, b: Tensor, out: Tensor, c: Tensor | None = None, bias: Tensor | None = None, *,
        dtype: torch.dtype | None = None, **more: Any,
    ) -> None:  # fmt: skip
        more |= _given({n: more[n] for n in _HOW if n in more})
        function(a, b, out, c=c, bias=bias, dtype=dtype, **more)

    return write


def kept(call: str) -> Callable[..., tuple[Tensor, Tensor]]:
    """Return the function of ``mm_kept`` or ``bmm_kept``."""
    function: Any = getattr(gemm, call)

    def compute(
        a: Tensor, b: Tensor, c: Tensor | None = None, bias: Tensor | None = None, *, alpha: float = 1.0,
        beta: float = 1.0, activation: str = "", dtype: torch.dtype | None = None, **how: str,
    ) -> tuple[Tensor, Tensor]:  # fmt: skip
        shape = tuple(_shape(call, a, b))
        views = {n: view_of(t.detach()) for n, t in (("c", c), ("bias", bias)) if t is not None}
        check_addends(call, views, shape, {"alpha": alpha, "beta": beta})
        args = {"alpha": alpha} | ({"C": c, "beta": beta} if c is not None else {})
        args |= {} if bias is None else {"bias": bias}
        kind = kept_type(a, dtype)
        args |= {} if kind is None else {"sums": torch.empty(shape, dtype=kind, device=a.device)}
        epilogue = keeping_epilogue(activation, shape, c, bias, kept_element(a, dtype))
        found = function(a, b, epilogue=epilogue, args=args, dtype=dtype, **_given(how))
        return found["D"], found["sums"]

    return compute


def fake(call: str) -> Callable[..., Tensor]:
    def shaped(a: Tensor, b: Tensor, *_: object, dtype: torch.dtype | None = None, **__: object) -> Tensor:
        return a.new_empty(_shape(call, a, b), dtype=result_dtype(a, dtype))

    return shaped


def fake_out(call: str) -> Callable[..., None]:
    def check(a: Tensor, b: Tensor, *_: object, **__: object) -> None:
        _shape(call, a, b)

    return check


def fake_kept(call: str) -> Callable[..., tuple[Tensor, Tensor]]:
    def shaped(
        a: Tensor, b: Tensor, *_: object, dtype: torch.dtype | None = None, **__: object
    ) -> tuple[Tensor, Tensor]:
        dtype = result_dtype(a, dtype)
        result = a.new_empty(_shape(call, a, b), dtype=dtype)
        return result, torch.empty_like(result, dtype=kept_type(a, dtype))

    return shaped


def fake_slope(grad: Tensor, sums: Tensor, *_: object) -> tuple[Tensor, Tensor]:
    """Return the results of ``mm_slope`` or ``bmm_slope``."""
    columns = (*grad.shape[:-2], 1, grad.shape[-1])
    return grad.new_empty(grad.shape), grad.new_empty(columns, dtype=torch.float32)


# --------------------------------------------------------------------------------------------------------- gradients


def keep(call: str) -> Callable[..., None]:
    """Return the function that saves tensors for the gradients of an operator and its ``_kept`` variant."""

    def save(
        ctx: Context,
        inputs: tuple[Any, ...],
        keyword_only_inputs: Mapping[str, Any],
        output: Tensor | tuple[Tensor, ...],
    ) -> None:
        a, b, c, bias = inputs
        if a.dtype.itemsize == 1:
            raise DtypeError(
                f"{call}: a has dtype {element_name(a.dtype)}, which has no gradients; call it under torch.no_grad()"
            )
        ctx.options = {n: keyword_only_inputs[n] for n in ("alpha", "beta", "activation", *_HOW)}
        keep_operands(ctx, (a, b), (c, bias), keyword_only_inputs["activation"], output)

    return save


def backward(call: str) -> Callable[..., tuple[Tensor | None, ...]]:
    """Return the function that computes the gradients of an operator and its ``_kept`` variant."""

    def gradients(ctx: Context, grad: Tensor | None, of_sums: Tensor | None = None) -> tuple[Tensor | None, ...]:
        a, b, c, bias, kept = ctx.saved_tensors
        options = dict(ctx.options)
        activation, alpha, beta = options.pop("activation"), options.pop("alpha"), options.pop("beta")
        product, derivative = getattr(CUTE, call), getattr(CUTE, f"{call}_slope")
        grad, columns = activation_gradient(
            call, grad, of_sums, activation, kept,
            lambda dtype: product(a, b, c, bias, alpha=alpha, beta=beta, dtype=dtype, **options),
            derivative, options["device"],
        )  # fmt: skip
        if grad is None:
            return None, None, None, None
        of_a, of_b = factor_gradients(call, a, b, grad, ctx.needs_input_grad[:2], alpha, options)
        of_c, of_bias = (
            None if kind is None or not ctx.needs_input_grad[2 + i] else
            summed(grad if columns is None or not by_column(kind[0]) else columns, *kind)
            for i, kind in enumerate(ctx.added)
        )  # fmt: skip
        return of_a, of_b, of_c if of_c is None or beta == 1.0 else of_c * beta, of_bias

    return gradients


def no_second_derivative(call: str) -> Callable[..., Never]:
    """Return the gradient of a derivative of activations, which raises UnsupportedError."""

    def refuse(*_: object) -> Never:
        raise second_derivative_error(call)

    return refuse


# ------------------------------------------------------------------------------------------------------ compositions


def composed(name: str, positional: int) -> Callable[..., Tensor]:
    """Return the function of ``addmm``, ``baddbmm``, ``linear`` or ``matmul``.

    Args:
        positional: number of arguments that the function of ``op`` takes by position; a further one is the bias.
    """
    function: Any = getattr(gemm, name)

    def compute(*given: Any, **more: Any) -> Tensor:
        bias = dict(zip(("bias",), given[positional:]))
        more |= _given({n: more[n] for n in _HOW if n in more})
        return function(*given[:positional], **bias, **more)

    return compute


# ----------------------------------------------------------------------------------------------------------- torch.vmap


def batched_slope(
    info: Any, in_dims: Sequence[int | None], grad: torch.Tensor, sums: torch.Tensor, activation: str, device: str = ""
) -> tuple[tuple[torch.Tensor, torch.Tensor], tuple[int, int]]:
    """Compute the derivative of an activation under ``torch.vmap``, for a longer batch; a rule of ``torch.library``."""
    one = [t.unsqueeze(0) if d is None else t.movedim(d, 0) for t, d in zip((grad, sums), in_dims)]
    shape = (info.batch_size, *one[0].shape[1:])
    g, z = (t.expand(shape).reshape(-1, *shape[-2:]) for t in one)
    found, columns = torch.ops.cute.bmm_slope(g, z, activation, device)
    return (found.reshape(shape), columns.reshape(*shape[:-2], 1, shape[-1])), (0, 0)


def batched_product(call: str, kept: bool = False) -> Callable[..., Any]:
    """Return the rule of ``mm`` or ``bmm`` for ``torch.library``; ``kept``: of the variant that saves an operand."""
    last = "_kept" if kept else ""

    def rule(info: Any, in_dims: Sequence[int | None], *args: Any, **how: Any) -> tuple[Any, Any]:
        n = info.batch_size
        dims = (*in_dims, *(None,) * (len(args) - len(in_dims)))
        moved = [t if d is None else t.movedim(d, 0) for t, d in zip(args, dims)]
        mapped = [d is not None for d in dims]
        moved += [None] * (4 - len(moved))
        mapped += [False] * (4 - len(mapped))
        a, b, c, bias = moved
        of_a, of_b, of_c, of_bias = mapped
        if of_bias or (call == "mm" and bias is not None and bias.dim() > 2):
            each = [[t[i] if m else t for t, m in zip(moved, mapped)] for i in range(n)]
            found = [getattr(torch.ops.cute, call + last)(*x, **how) for x in each]
            return (tuple([torch.stack(x) for x in zip(*found)]), (0, 0)) if kept else (torch.stack(found), 0)
        several = call == "bmm"
        matrices = max(x.shape[1 if m else 0] for x, m in ((a, of_a), (b, of_b))) if several else 1
        rows, columns = a.shape[-2], b.shape[-1]

        def batch(x: torch.Tensor, of_x: bool, shape: tuple[int, int], one: bool) -> torch.Tensor:
            """Return (n L, …), or (1, …) for a matrix that is shared by the batch (``one``)."""
            if not of_x and one:
                return x.reshape(1, *shape)
            full = x.reshape(n if of_x else 1, -1, *shape)
            return full.expand(n, matrices, *shape).reshape(n * matrices, *shape)

        def added(x: torch.Tensor | None, of_x: bool) -> torch.Tensor | None:
            """Return an addend in a shape that broadcasts to the result."""
            if x is None or not (of_x or several):
                return x
            own = x.shape[1:] if of_x else x.shape
            full = (*(1,) * (2 + several - len(own)), *own)
            lead = (n if of_x else 1, *full) if several else (n, 1, *full)
            shape = (n, matrices, rows, columns)
            return x.reshape(lead).expand(shape).reshape(n * matrices, rows, columns)

        one_a = (not several or a.shape[0] == 1) and (of_b or not of_a)
        one_b = (not several or b.shape[0] == 1) and of_a
        x = batch(a, of_a, (rows, a.shape[-1]), one_a)
        y = batch(b, of_b, (b.shape[-2], columns), one_b)
        if x.shape[0] == y.shape[0] == 1 and n * matrices > 1:  # only addends are mapped
            x = x.expand(n * matrices, *x.shape[1:])
        shape = (n, *(matrices,) * several, rows, columns)
        found = getattr(torch.ops.cute, f"bmm{last}")(x, y, added(c, of_c), bias, **how)
        return (tuple([t.reshape(shape) for t in found]), (0, 0)) if kept else (found.reshape(shape), 0)

    return rule
