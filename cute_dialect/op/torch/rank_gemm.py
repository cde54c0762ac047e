"""Gradients of GEMMs of several ranks: each is a GEMM of several ranks, too.

    all_gather_matmul       da = matmul_reduce_scatter(dy, b.T)    db = gathered(a).T @ dy
    matmul_reduce_scatter   da = all_gather_matmul(dy, b.T)        db = a.T @ gathered(dy)
    matmul_all_reduce       da = dy @ b.T                          db = a.T @ dy

The gathered ``a`` is kept if ``b`` needs a gradient.  Results of ``matmul_all_reduce`` are equal on all ranks, and so
must be their gradients, which are not added.
"""

# torch is not installed where types are checked.
# pyright: reportMissingImports=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownParameterType=false, reportUntypedBaseClass=false
# pyright: reportUntypedFunctionDecorator=false, reportIncompatibleMethodOverride=false

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import torch
from torch.autograd.function import once_differentiable

from cute_dialect.lang.ranks import current_rank
from cute_dialect.op.errors import UnsupportedError

if TYPE_CHECKING:  # pragma: no cover
    from cute_dialect.op.functions.rank_gemm import Options
    from cute_dialect.op.signature_types import Array


class Node(Protocol):
    """The context of a call, which its gradient reads."""

    needs_input_grad: tuple[bool, ...]
    saved_tensors: tuple[Array, ...]
    how: Options
    op: str
    next_functions: tuple[tuple[object, int], ...]

    def save_for_backward(self, *tensors: Array) -> None: ...
    def mark_non_differentiable(self, *tensors: Array) -> None: ...


def check_leaves(node: Node) -> None:
    """Raise UnsupportedError if torch adds gradients to ``.grad`` in ``world.run``, before their kernels have run."""
    if current_rank() is None:
        return
    for function, _ in node.next_functions:
        if type(function).__name__ == "AccumulateGrad" and _is_executed(function):
            raise UnsupportedError(
                "op.distributed: .backward() in world.run adds gradients to .grad before their kernels have run; use "
                "torch.autograd.grad(y, inputs, dy), or call .backward() on GPUs"
            )


def _is_executed(function: object) -> bool:
    """Return True if the backward pass executes a node of a leaf; torch.autograd.grad does not."""
    try:
        return getattr(torch, "_C")._will_engine_execute_node(function)  # noqa: B009  (private, but the only way)
    except RuntimeError:  # torch.autograd.grad
        return False


class AllGatherMatmul(torch.autograd.Function):
    """``all_gather_matmul(a, b)``, with the gathered ``a`` as second result, which has no gradient."""

    @staticmethod
    def forward(ctx: Node, a: Array, b: Array, return_a: bool, how: Options) -> tuple[Array, Array]:
        ctx.how, keeps = how, return_a or ctx.needs_input_grad[1]
        product = how.gather(a, b, return_a=keeps)
        product, gathered = product if keeps else (product, None)
        if gathered is not None:
            ctx.mark_non_differentiable(gathered)
        ctx.save_for_backward(b, gathered)
        return product, gathered

    @staticmethod
    @once_differentiable
    def backward(ctx: Node, grad: Array, _: Array) -> tuple[Array, ...]:
        check_leaves(ctx)
        (b, gathered), (needs_a, needs_b, *_) = ctx.saved_tensors, ctx.needs_input_grad
        of_a = ctx.how.scatter(grad, b.t()) if needs_a else None
        of_b = ctx.how.mm(gathered.t(), grad) if needs_b else None
        return of_a, of_b, None, None


class MatmulReduceScatter(torch.autograd.Function):
    """``matmul_reduce_scatter(a, b, op=op)``."""

    @staticmethod
    def forward(ctx: Node, a: Array, b: Array, op: str, how: Options) -> Array:
        ctx.how, ctx.op = how, op
        ctx.save_for_backward(a, b)
        return how.scatter(a, b, op)

    @staticmethod
    @once_differentiable
    def backward(ctx: Node, grad: Array) -> tuple[Array, ...]:
        check_leaves(ctx)
        (a, b), (needs_a, needs_b, *_) = ctx.saved_tensors, ctx.needs_input_grad
        rows = a.shape[0] // grad.shape[0]
        # All ranks gather, also those that need no gradient of a.
        of_a, whole = ctx.how.gather(grad, b.t(), return_a=True)
        factor = 1.0 / rows if ctx.op == "avg" else 1.0
        if factor != 1.0:
            of_a = ctx.how.mm(whole, b.t(), factor)
        of_b = ctx.how.mm(a.t(), whole, factor) if needs_b else None
        return of_a if needs_a else None, of_b, None, None


class MatmulAllReduce(torch.autograd.Function):
    """``matmul_all_reduce(a, b)``, whose result has the same gradient on all ranks."""

    @staticmethod
    def forward(ctx: Node, a: Array, b: Array, how: Options) -> Array:
        ctx.how = how
        ctx.save_for_backward(a, b)
        return how.reduce(a, b)

    @staticmethod
    @once_differentiable
    def backward(ctx: Node, grad: Array) -> tuple[Array, ...]:
        check_leaves(ctx)
        (a, b), (needs_a, needs_b, *_) = ctx.saved_tensors, ctx.needs_input_grad
        of_a = ctx.how.mm(grad, b.t()) if needs_a else None
        of_b = ctx.how.mm(a.t(), grad) if needs_b else None
        return of_a, of_b, None


class ReplicatedMatmul(torch.autograd.Function):
    """``a @ b`` for an ``a`` that is equal on all ranks: its gradient is the sum over the ranks."""

    @staticmethod
    def forward(ctx: Node, a: Array, b: Array, how: Options) -> Array:
        ctx.how = how
        ctx.save_for_backward(a, b)
        return how.mm(a, b)

    @staticmethod
    @once_differentiable
    def backward(ctx: Node, grad: Array) -> tuple[Array, ...]:
        check_leaves(ctx)
        (a, b), (needs_a, needs_b, *_) = ctx.saved_tensors, ctx.needs_input_grad
        of_a = ctx.how.reduce(grad, b.t()) if needs_a else None
        of_b = ctx.how.mm(a.t(), grad) if needs_b else None
        return of_a, of_b, None


class BiasAdd(torch.autograd.Function):
    """``x + bias``, whose gradient of the bias is a GEMM: sums over rows in f32, without work of torch."""

    @staticmethod
    def forward(ctx: Node, x: Array, bias: Array, how: Options) -> Array:
        ctx.how = how
        return how.add(x, bias)

    @staticmethod
    @once_differentiable
    def backward(ctx: Node, grad: Array) -> tuple[Array, ...]:
        check_leaves(ctx)
        ones = grad.new_ones(1, grad.shape[0]) if ctx.needs_input_grad[1] else None
        return grad, None if ones is None else ctx.how.mm(ones, grad).view(-1), None
