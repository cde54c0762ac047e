"""Operations with gradients: one torch operator for ``torch.compile``, one autograd function for eager calls.

A call of a ``torch.library`` operator costs 50 us or more of host time, an ``autograd.Function`` about 10.  A
:class:`TorchOperator` has both, from the same functions.  It calls the operator only where something observes it: in
``torch.compile`` and ``torch.export``, under a dispatch mode, in transforms of ``torch.func``, and for tensor
subclasses::

    softmax = TorchOperator("softmax", compute, fake, keep=keep, backward=backward)
    softmax(x)                  # torch.ops.cute.softmax(x) is the same operation
"""

# torch is not installed where types are checked.
# pyright: reportMissingImports=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownParameterType=false, reportUntypedBaseClass=false

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch

from cute_dialect.op.autograd_node import Context, apply_of, node_of
from cute_dialect.op.execute.recording import is_eager

__all__ = ["TorchOperator"]


class TorchOperator:
    """An operation on tensors, callable with positional arguments, and with keyword arguments if it has a schema.

    Args:
        name: registers ``torch.ops.cute.NAME``.
        compute: computes it; its annotations are the operator's schema.
        fake: returns results without data.
        keep: ``keep(ctx, inputs, output)`` saves what ``backward`` needs; ``keep(ctx, inputs, keyword_only_inputs,
            output)`` if the schema has keyword-only arguments.
        backward: ``backward(ctx, *grads)`` returns a gradient for each input; without it the operation has none, and
            differentiating it raises.
        schema: the operator's schema, in place of annotations.
    """

    def __init__(
        self, name: str, compute: Callable[..., Any], fake: Callable[..., Any], *,
        keep: Callable[..., None] | None = None, backward: Callable[..., Any] | None = None, schema: str | None = None,
    ) -> None:  # fmt: skip
        self.compute = compute
        self.registered: Any = torch.library.custom_op(f"cute::{name}", compute, mutates_args=(), schema=schema)
        self.registered.register_fake(fake)
        self._apply: Callable[..., Any] = self.registered
        if backward is None:
            return
        self.registered.register_autograd(backward, setup_context=keep)
        arguments = self.registered._opoverload._schema.arguments
        named = {x.name: x.default_value for x in arguments if x.kwarg_only}
        places = [x.default_value for x in arguments if not x.kwarg_only]
        self._apply = _with_keywords(compute, keep, backward, places, named) if named else _apply_of(
            compute, keep, backward
        )  # fmt: skip

    def __call__(self, *inputs: Any, **more: Any) -> Any:
        """Compute the operation; the result has a gradient if an input needs one."""
        tensors = [x for x in inputs if isinstance(x, torch.Tensor)]
        if not is_eager(tensors):
            return self.registered(*inputs, **more)
        if torch.is_grad_enabled():
            for t in tensors:
                if t.requires_grad:
                    return self._apply(*inputs, **more)
        return self.compute(*inputs, **more)


def _apply_of(
    compute: Callable[..., Any], keep: Callable[..., None] | None, backward: Callable[..., Any]
) -> Callable[..., Any]:  # fmt: skip
    """Return a callable that computes the operation and records it for autograd."""

    def forward(context: Context, *inputs: Any) -> Any:
        output = compute(*inputs)
        if keep is not None:
            keep(context, inputs, output)
        return output

    return apply_of(node_of(forward, backward))


def _with_keywords(
    compute: Callable[..., Any], keep: Callable[..., None] | None, backward: Callable[..., Any],
    places: Sequence[Any], named: Mapping[str, Any],
) -> Callable[..., Any]:  # fmt: skip
    """Return a callable that computes the operation with keyword arguments and records it for autograd.

    Args:
        places: the defaults of the positional arguments.
        named: those of the keyword arguments.
    """

    def forward(context: Context, *given: Any) -> Any:
        *inputs, more = given
        output = compute(*inputs, **more)
        if keep is not None:
            keep(context, tuple(inputs), more, output)
        return output

    def of_inputs(context: Context, *grads: Any) -> Any:
        return (*backward(context, *grads), None)

    call = apply_of(node_of(forward, of_inputs))

    def apply(*inputs: Any, **more: Any) -> Any:
        return call(*inputs, *places[len(inputs) :], {**named, **more})

    return apply
