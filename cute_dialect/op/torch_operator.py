"""Operations with gradients: one torch operator for ``torch.compile``, one autograd function for eager calls.

Calling an operator of ``torch.library`` costs 50 us and more of host time, an ``autograd.Function`` about 10.  A
:class:`TorchOperator` has both, made of the same functions.  It takes the operator only where something has to see it,
that is in ``torch.compile`` and ``torch.export``, under a dispatch mode, in transforms of ``torch.func``, and for
subclasses of tensors::

    softmax = TorchOperator("softmax", compute, fake, keep=keep, backward=backward)
    softmax(x)                  # torch.ops.cute.softmax(x) is the same operation
"""

# torch is not there where the types are checked.
# pyright: reportMissingImports=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownParameterType=false, reportUntypedBaseClass=false

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any

import torch

__all__ = ["TorchOperator", "apply_of", "is_eager"]

_TYPES = (torch.Tensor, torch.nn.Parameter, type(None))


def is_eager(tensors: Sequence[torch.Tensor | None]) -> bool:
    """Return True if nothing observes operators: plain tensors, no compilation, no dispatch mode, no transform."""
    core: Any = sys.modules["torch._C"]
    return (
        all([type(t) in _TYPES for t in tensors])
        and not torch.compiler.is_compiling()
        and core._len_torch_dispatch_stack() == 0
        and core._functorch.peek_interpreter_stack() is None
    )


def apply_of(function: type[torch.autograd.Function]) -> Callable[..., Any]:
    """Return the ``apply`` of an autograd function for calls that :func:`is_eager` has looked at.

    It leaves out what ``torch.autograd.Function.apply`` does for ``torch.func``: 5 to 10 us of Python.
    """
    return super(torch.autograd.Function, function).apply  # pyright: ignore[reportAttributeAccessIssue]


class TorchOperator:
    """An operation on tensors, callable with positional arguments.

    Args:
        name: registers ``torch.ops.cute.NAME``.
        compute: computes it; its annotations are the operator's schema.
        fake: returns results without data.
        keep: ``keep(ctx, inputs, output)`` saves what ``backward`` needs.
        backward: ``backward(ctx, *grads)`` returns a gradient for each input; without it the operation has none, and
            differentiating it raises.
    """

    def __init__(
        self, name: str, compute: Callable[..., Any], fake: Callable[..., Any], *,
        keep: Callable[..., None] | None = None, backward: Callable[..., Any] | None = None,
    ) -> None:  # fmt: skip
        self.compute = compute
        self.registered: Any = torch.library.custom_op(f"cute::{name}", compute, mutates_args=())
        self.registered.register_fake(fake)
        self._apply: Callable[..., Any] = self.registered
        if keep is not None and backward is not None:
            self.registered.register_autograd(backward, setup_context=keep)
            self._apply = _apply_of(compute, keep, backward)

    def __call__(self, *inputs: Any) -> Any:
        """Compute the operation; the result has a gradient if an input needs one."""
        tensors = [x for x in inputs if isinstance(x, torch.Tensor)]
        if not is_eager(tensors):
            return self.registered(*inputs)
        if not torch.is_grad_enabled() or not any([t.requires_grad for t in tensors]):
            return self.compute(*inputs)
        return self._apply(*inputs)


def _apply_of(
    compute: Callable[..., Any], keep: Callable[..., None], backward: Callable[..., Any]
) -> Callable[..., Any]:  # fmt: skip
    """Return what computes an operation and lets autograd differentiate it."""

    class Function(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, *inputs: Any) -> Any:
            output = compute(*inputs)
            keep(ctx, inputs, output)
            return output

    Function.backward = staticmethod(backward)
    return apply_of(Function)
