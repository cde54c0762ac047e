"""The autograd node of flex attention.  Its functions are those of the call: ``computed`` and ``gradients``."""

# torch is not installed where types are checked.
# pyright: reportMissingImports=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownParameterType=false

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import torch
from torch import Tensor

from cute_dialect.op.errors import UnsupportedError
from cute_dialect.op.torch.autograd import Context, apply_of, node_of


class Differentiable(Protocol):
    """A call: query, key, value, captured tensors and lists of blocks -> the result and ``lse``."""

    def computed(self, tensors: Sequence[Tensor]) -> tuple[Tensor, Tensor]:
        """Return the result and ``lse``."""
        ...

    def gradients(
        self, saved: Sequence[Tensor], grad: Tensor, grad_lse: Tensor | None, needs: Sequence[bool]
    ) -> Sequence[Tensor | None]:
        """Return the gradients of the tensors.

        Args:
            saved: the tensors, the result and ``lse``.
            grad, grad_lse: gradients of the results; None for zero.
            needs: for each tensor, whether its gradient is needed.
        """
        ...


def _forward(ctx: Context, call: Differentiable, *tensors: Tensor) -> tuple[Tensor, Tensor]:
    found = call.computed(tensors)
    ctx.call = call
    ctx.save_for_backward(*tensors, *found)
    ctx.set_materialize_grads(False)
    ctx.settings = torch.are_deterministic_algorithms_enabled
    return found


def _backward(ctx: Context, grad: Tensor | None, grad_lse: Tensor | None) -> tuple[Tensor | None, ...]:
    saved, needs = ctx.saved_tensors, ctx.needs_input_grad[1:]
    if grad is None and grad_lse is None:
        return (None,) * (1 + len(needs))
    if torch.is_grad_enabled():
        raise UnsupportedError("flex_attention: second derivatives are not supported; use create_graph=False")
    grad = torch.zeros_like(saved[-2]) if grad is None else grad
    return None, *ctx.call.gradients(saved, grad, grad_lse, needs)


attend = apply_of(node_of(_forward, _backward))
"""``attend(call, *tensors)`` returns the result and ``lse`` of a call, with gradients."""
