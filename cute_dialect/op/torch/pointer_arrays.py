"""Autograd functions of pointer-array GEMMs, whose gradients are pointer-array GEMMs in the type of the operands.

The GEMMs of :func:`~cute_dialect.op.functions.gemm_array.mm_array` have one shape.  Those of lists of ``grouped_mm``
have any shapes.
"""

# torch is not installed where types are checked.
# pyright: reportMissingImports=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownParameterType=false, reportUntypedFunctionDecorator=false
# pyright: reportUntypedBaseClass=false

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from torch.autograd.function import once_differentiable

from cute_dialect.op.arrays.dtypes import element_name
from cute_dialect.op.epilogue.functions import activated
from cute_dialect.op.errors import DtypeError, UnsupportedError
from cute_dialect.op.execute.recording import is_eager
from cute_dialect.op.problems.operands import read
from cute_dialect.op.torch.autograd import apply_of
from cute_dialect.op.torch.gradients import by_column, keeping_function, kept_element, kept_type, summed
from cute_dialect.runtime.arrays import numpy_dtype

if TYPE_CHECKING:  # pragma: no cover
    from cute_dialect.op.execute.grouped import GroupedArguments


# ------------------------------------------------------------------------------------------------------------- mm_array


class _Call(NamedTuple):
    """Arguments of a call that are not tensors."""

    function: Callable[..., Any]  # mm_array
    products: int  # number of GEMMs
    sources: bool  # C is given
    bias: bool  # bias is given
    alpha: float
    beta: float
    activation: str
    how: dict[str, Any]  # other arguments of mm_array

    def split(self, tensors: Sequence[Any]) -> tuple[Any, Any, Any, Any]:
        """Return A, B, C (None if it is not given) and the bias among the tensors of a call."""
        n = self.products
        rest = list(tensors[2 * n :])
        sources = rest[:n] if self.sources else None
        return list(tensors[:n]), list(tensors[n : 2 * n]), sources, rest[-1] if self.bias else None


class _ArrayProducts(torch.autograd.Function):
    """Autograd function of the GEMMs; it returns D in order."""

    @staticmethod
    def forward(ctx: Any, of: _Call, *tensors: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """Compute the GEMMs and save the tensors for the gradients."""
        a, b, c, bias = of.split(tensors)
        ctx.of = of
        if of.activation in ("", "relu"):
            more = {"alpha": of.alpha, "beta": of.beta, "bias": bias, "activation": of.activation}
            found = of.function(a, b, Cs=c, **more, **of.how)
            ctx.save_for_backward(*tensors, *(found if of.activation == "relu" else ()))
            return tuple(found)
        # The operand of the activation is saved.
        args: dict[str, Any] = {"alpha": of.alpha}
        args |= {} if c is None else {"C": torch.stack(c), "beta": of.beta}
        args |= {} if bias is None else {"bias": bias}
        kind = kept_type(a[0], of.how.get("dtype"))
        shape = (len(a), a[0].shape[0], b[0].shape[1])
        args |= {} if kind is None else {"sums": torch.empty(shape, dtype=kind, device=a[0].device)}
        element = kept_element(a[0], of.how.get("dtype"))
        epilogue = keeping_function(of.activation, c is not None, bias is not None, element)
        results = of.function(a, b, epilogue=epilogue, args=args, **of.how)
        ctx.save_for_backward(*tensors, results["sums"])
        return tuple(results["D"])

    @staticmethod
    def backward(ctx: Any, *grads: torch.Tensor) -> tuple[Any, ...]:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Compute the gradients: one launch for all A, one for all B, and one or two for an activation."""
        of: _Call = ctx.of
        if torch.is_grad_enabled():  # create_graph=True
            raise UnsupportedError("mm_array: second derivatives are not supported; use bmm")
        saved, n = list(ctx.saved_tensors), of.products
        kept = saved[-n:] if of.activation == "relu" else saved[-1:] if of.activation else []
        a, b, c, bias = of.split(saved[: len(saved) - len(kept)])
        how = {name: x for name, x in of.how.items() if name != "dtype"}
        g, columns = [x.contiguous() for x in grads], None
        if of.activation == "relu":
            g = [torch.where(y > 0, x, 0) for x, y in zip(g, kept)]
        elif of.activation:
            device = str(how.get("device", ""))
            together, columns = torch.ops.cute.bmm_slope(torch.stack(g), kept[0], of.activation, device)
            g = list(together)
        needs = ctx.needs_input_grad[1:]
        factors = [x.to(a[0].dtype) for x in g]
        of_a: list[Any] = [None] * n
        of_b: list[Any] = [None] * n
        if any(needs[:n]):
            of_a = of.function(factors, [x.mT for x in b], alpha=of.alpha, dtype=a[0].dtype, **how)
        if any(needs[n : 2 * n]):
            of_b = of.function([x.mT for x in a], factors, alpha=of.alpha, dtype=b[0].dtype, **how)
        of_c: list[Any] = [] if c is None else [x.to(t.dtype) * of.beta for x, t in zip(g, c)]
        of_bias: list[Any] = []
        if bias is not None:
            whole = columns if columns is not None and by_column(bias.shape) else torch.stack(g)
            of_bias = [summed(whole, bias.shape, bias.dtype) if needs[-1] else None]
        return (None, *of_a, *of_b, *of_c, *of_bias)


def array_with_gradients(
    function: Callable[..., Any], given: Sequence[Any], numbers: Mapping[str, float], bias: Any, activation: str,
    hook: Any, how: Mapping[str, Any],
) -> list[torch.Tensor]:  # fmt: skip
    """Compute a pointer-array GEMM whose tensors need gradients; ``function`` is ``mm_array``.  Raises OpError."""
    As, Bs, Cs, _ = given
    if hook is not None:
        raise UnsupportedError("mm_array: hook has no gradient; use an epilogue, or call under torch.no_grad()")
    for name, x in (("As", As), ("Bs", Bs), ("Cs", Cs), ("bias", None if bias is None else [bias])):
        for t in x or ():
            if not isinstance(t, torch.Tensor):
                raise UnsupportedError(
                    f"mm_array: {name} contains a value of type {type(t).__name__}, which has no gradient; "
                    "pass torch tensors"
                )
    if As[0].dtype.itemsize == 1:
        raise DtypeError(
            f"mm_array: As has dtype {element_name(As[0].dtype)}, which has no gradients; call it under torch.no_grad()"
        )
    kept = {n: x for n, x in how.items() if x is not None}
    of = _Call(function, len(As), Cs is not None, bias is not None, numbers["alpha"], numbers["beta"], activation, kept)
    tensors = [*As, *Bs, *(Cs or ()), *(() if bias is None else (bias,))]
    apply = apply_of(_ArrayProducts) if is_eager(tensors) else _ArrayProducts.apply
    return list(apply(of, *tensors))


# -------------------------------------------------------------------------------------------------- lists of grouped_mm


def lists_with_gradients(
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
    apply = apply_of(_ListProducts) if is_eager(tensors) else _ListProducts.apply
    return list(apply(function, g, device, stream, *tensors))


class _ListProducts(torch.autograd.Function):
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
