"""Gradients of GEMMs over lists: again GEMMs over lists, with permuted extents."""

# torch is not installed where the types are checked.
# pyright: reportMissingImports=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownParameterType=false, reportUntypedBaseClass=false

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import torch
from torch.autograd.function import once_differentiable

from cute_dialect.op.epilogue.functions import activated
from cute_dialect.op.errors import DtypeError, UnsupportedError
from cute_dialect.op.execute.recording import is_eager
from cute_dialect.op.problems.plan_operands import read
from cute_dialect.op.torch.autograd import apply_of
from cute_dialect.op.torch.gradients import summed
from cute_dialect.runtime.arrays import numpy_dtype

if TYPE_CHECKING:  # pragma: no cover
    from cute_dialect.op.grouped.call import GroupedArguments

__all__ = ["products_with_gradients"]


def products_with_gradients(
    function: Callable[..., list[Any]], g: GroupedArguments, device: object, stream: object,
    run: Mapping[str, Any] | None,
) -> list[Any]:  # fmt: skip
    """Compute GEMMs over lists whose gradients torch records; ``function`` computes them.  Raises OpError."""
    for what, given in (("out", g.out), *(run or {}).items()):
        if given is not None:
            raise UnsupportedError(
                f"grouped_mm: {what} cannot be used when gradients are required; call it under torch.no_grad()"
            )
    if not isinstance(g.extras.alpha, int | float):
        raise UnsupportedError(
            f"grouped_mm: alpha is a {type(g.extras.alpha).__name__}; it must be a number when gradients are required"
        )
    element = read("grouped_mm", "a", g.a[0]).dtype
    if numpy_dtype(element).itemsize == 1:
        raise DtypeError(f"grouped_mm: a has dtype {element}, which has no gradients; call it under torch.no_grad()")
    count = len(g.a)
    cs = [None] * count if g.extras.c is None else g.extras.c
    biases = g.extras.bias if isinstance(g.extras.bias, list | tuple) else [g.extras.bias] * count
    tensors = (*g.a, *g.b, *cs, *biases)
    apply = apply_of(_Products) if is_eager(tensors) else _Products.apply
    return list(apply(function, g, device, stream, *tensors))


class _Products(torch.autograd.Function):
    """GEMMs over lists as an autograd function.  Its tensors are all A, then all B, all C and all biases."""

    @staticmethod
    def forward(ctx: Any, function: Any, g: GroupedArguments, device: Any, stream: Any, *tensors: Any) -> Any:
        """Compute the GEMMs."""
        results = function(g, device, stream)
        ctx.given = g._replace(a=None, b=None, extras=g.extras._replace(c=None, bias=None))
        ctx.device, ctx.stream = device, stream
        ctx.function = function
        sums = g.extras.activation not in ("", "relu")
        count = len(g.a)
        kept = [*tensors[: 2 * count], *(tensors[2 * count :] if sums else [])]
        kept += results if g.extras.activation == "relu" else []
        ctx.save_for_backward(*kept)
        ctx.added = [None if t is None else (t.shape, t.dtype) for t in tensors[2 * count :]]
        return tuple(results)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *grads: Any) -> tuple[Any, ...]:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Compute the gradients of the tensors that require them."""
        g, count, kept = ctx.given, len(grads), ctx.saved_tensors
        a, b = list(kept[:count]), list(kept[count : 2 * count])
        wanted = ctx.needs_input_grad[4:]

        def product(x: Sequence[Any], y: Sequence[Any], **more: Any) -> list[Any]:
            given = g._replace(a=x, b=y, extras=g.extras._replace(activation=""), dtype=None)._replace(**more)
            with torch.no_grad():
                return ctx.function(given, ctx.device, ctx.stream)

        gs: list[Any] = list(grads)
        if g.extras.activation == "relu":
            gs = [torch.where(y > 0, x, 0) for x, y in zip(gs, kept[2 * count :])]
        elif g.extras.activation:
            rest = list(kept[2 * count :])
            c, bias = rest[:count], rest[count:]
            f32 = a[0].dtype if a[0].dtype == torch.float64 else torch.float32
            plain = product(a, b, dtype=f32)  # torch adds c and bias to the accumulator.
            pre = [
                x + (0 if y is None else g.extras.beta * y.to(f32)) + (0 if z is None else z.to(f32))
                for x, y, z in zip(plain, c, bias)
            ]
            derivative: Any = activated(g.extras.activation, derivative=True)
            gs = [(x * derivative(p)).to(x.dtype) for x, p in zip(gs, pre)]
        as_a = [x.to(t.dtype) for x, t in zip(gs, a)]
        as_a = [x if x.stride(-1) == 1 or x.stride(-2) == 1 else x.contiguous() for x in as_a]
        of_a: list[Any] = [None] * count
        of_b: list[Any] = [None] * count
        if any(wanted[:count]):
            of_a = product(as_a, [y.mT for y in b], dtype=a[0].dtype)
        if any(wanted[count : 2 * count]):
            of_b = product([x.mT for x in a], as_a, dtype=b[0].dtype)
        added: list[Any] = []
        for i, (kind, want) in enumerate(zip(ctx.added, wanted[2 * count :])):
            x = gs[i % count]
            if kind is None or not want:
                added.append(None)
            else:
                added.append(summed(x * g.extras.beta if i < count and g.extras.beta != 1.0 else x, *kind))
        found = [*of_a, *of_b, *added]
        return None, None, None, None, *[x if want else None for x, want in zip(found, wanted)]
