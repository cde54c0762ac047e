"""Registration of torch operators, and eager calls of them without torch's dispatcher.

A call of a ``torch.library`` operator costs 50 us or more of host time, an ``autograd.Function`` about 10.  A
:class:`TorchOperator` has both, from the same functions.  It calls the operator only where something observes it: in
``torch.compile`` and ``torch.export``, under a dispatch mode, in transforms of ``torch.func``, and for tensor
subclasses::

    register([Operator("softmax", "(Tensor x) -> Tensor", forward, fake, keep, backward)])
    CUTE.softmax(x)             # torch.ops.cute.softmax(x) is the same operation

The operators are the table :mod:`cute_dialect.op.operators.table`, which is registered when one is first needed.
"""

# torch is not installed where types are checked.
# pyright: reportMissingImports=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownParameterType=false, reportUntypedBaseClass=false

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib import import_module
from typing import Any, NamedTuple, Never

import torch

from cute_dialect.op.errors import DtypeError, UnsupportedError
from cute_dialect.op.execute.recording import is_eager
from cute_dialect.op.keywords import type_name
from cute_dialect.op.torch.autograd import Context, apply_of, node_of


class Operator(NamedTuple):
    """A row of the table of operators."""

    name: str  # of ``torch.ops.cute.NAME``
    schema: str  # arguments and results
    forward: Callable[..., Any]  # computes the results
    fake: Callable[..., Any] | None  # returns results without data; None for a composition of other operators
    keep: Callable[..., None] | None = None
    """``keep(ctx, inputs, output)`` saves tensors for ``backward``; ``keep(ctx, inputs, keyword_only_inputs, output)``
    if the schema has keyword-only arguments."""
    backward: Callable[..., Any] | None = None
    """``backward(ctx, *grads)`` returns a gradient for each positional argument; without it, differentiating raises."""
    vmap: Callable[..., Any] | None = None  # rule of ``torch.vmap``; see torch.library.register_vmap
    mutates: tuple[str, ...] = ()  # arguments that ``forward`` writes


class TorchOperator:
    """A registered operator; calls take the arguments of its schema."""

    def __init__(self, row: Operator) -> None:
        self.name, self.compute = row.name, row.forward
        self.registered: Any = torch.library.custom_op(
            f"cute::{row.name}", row.forward, mutates_args=row.mutates, schema=row.schema
        )
        self.registered.register_fake(row.fake)
        if row.vmap is not None:
            self.registered.register_vmap(row.vmap)
        self._apply: Callable[..., Any] = self.registered
        arguments = self.registered._opoverload._schema.arguments
        self._tensors = [(i, x.name) for i, x in enumerate(arguments) if str(x.type) == "Tensor"]
        if row.backward is None:
            if row.name.endswith("_backward"):
                self.registered.register_autograd(_no_second_derivative(row.name.removesuffix("_backward")))
            return
        self.registered.register_autograd(row.backward, setup_context=row.keep)
        named = {x.name: x.default_value for x in arguments if x.kwarg_only}
        places = [x.default_value for x in arguments if not x.kwarg_only]
        if named:
            self._apply = _apply_with_keywords(row.forward, row.keep, row.backward, places, named)
        else:
            self._apply = _apply(row.forward, row.keep, row.backward)

    def __call__(self, *inputs: Any, **more: Any) -> Any:
        """Compute the operation; the result has a gradient if an input needs one."""
        tensors = [x for x in inputs if isinstance(x, torch.Tensor)]
        if not is_eager(tensors):
            for i, name in self._tensors:
                if i < len(inputs) and not isinstance(inputs[i], torch.Tensor):
                    kind = type_name(inputs[i])  # raises if the argument is missing
                    raise DtypeError(f"{self.name}: {name} is of type {kind}; pass a tensor")
            return self.registered(*inputs, **more)
        if torch.is_grad_enabled():
            for t in tensors:
                if t.requires_grad:
                    return self._apply(*inputs, **more)
        return self.compute(*inputs, **more)


class _Operators:
    """The registered operators as attributes."""

    def __getattr__(self, name: str) -> TorchOperator:
        if name.startswith("__"):
            raise AttributeError(name)
        load_table()
        return self.__dict__[name]


CUTE = _Operators()
"""The operators for eager calls, for example ``CUTE.softmax(x)``."""


def load_table() -> None:
    """Register the table of operators.

    It is imported by name, because it refers to the functions of ``op``, which look up their operators in :data:`CUTE`.
    """
    import_module("cute_dialect.op.operators.table")


_LIBRARY = torch.library.Library("cute", "FRAGMENT")


def register(table: Iterable[Operator]) -> None:
    """Register operators as ``torch.ops.cute.NAME``, and as attributes of :data:`CUTE` unless they are compositions."""
    for row in table:
        if row.fake is None:
            _LIBRARY.define(row.name + row.schema)
            _LIBRARY.impl(row.name, row.forward, "CompositeImplicitAutograd")
        else:
            setattr(CUTE, row.name, TorchOperator(row))


def _no_second_derivative(call: str) -> Callable[..., Never]:
    """Return the derivative of a gradient without one, which raises UnsupportedError."""

    def refuse(*_: object) -> Never:
        raise UnsupportedError(
            f"{call}: second derivatives are not supported; omit create_graph=True, or use torch's functions"
        )

    return refuse


def _apply(
    compute: Callable[..., Any], keep: Callable[..., None] | None, backward: Callable[..., Any]
) -> Callable[..., Any]:
    """Return a callable that computes the operation and records it for autograd."""

    def forward(context: Context, *inputs: Any) -> Any:
        output = compute(*inputs)
        if keep is not None:
            keep(context, inputs, output)
        return output

    return apply_of(node_of(forward, backward))


def _apply_with_keywords(
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


# --------------------------------------------------------------------------------------------- transforms of torch.func


_FUNCTORCH: Any = getattr(torch, "_C")._functorch  # noqa: B009


def wrapped(*tensors: Any) -> bool:
    """Return True if a tensor belongs to ``torch.vmap``, ``torch.func.grad`` or the like, and so has no memory."""
    told: Callable[[Any], bool] | None = getattr(_FUNCTORCH, "is_functorch_wrapped_tensor", None)
    return told is not None and any([told(t) for t in tensors])


def differentiates(*tensors: Any) -> bool:
    """Return True if ``torch.func.grad`` or a similar transform needs gradients of the tensors."""
    functorch = _FUNCTORCH
    kinds = functorch.TransformType.Grad, functorch.TransformType.Jvp
    if torch.compiler.is_compiling() or functorch.peek_interpreter_stack() is None:
        return False
    inside = any([i.key() in kinds for i in functorch.get_interpreter_stack()])
    return inside and torch.is_grad_enabled() and any([t is not None and t.requires_grad for t in tensors])
