"""Gradients of :func:`~cute_dialect.op.functions.gemm_array.mm_array`, as pointer-array GEMMs.

They are computed in the type of the operands.
"""

# torch is not installed where types are checked.
# pyright: reportMissingImports=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownParameterType=false, reportUntypedFunctionDecorator=false

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import torch

from cute_dialect.op.arrays.dtypes import element_name
from cute_dialect.op.errors import DtypeError, UnsupportedError
from cute_dialect.op.execute.recording import is_eager
from cute_dialect.op.torch.autograd import apply_of
from cute_dialect.op.torch.gradients import by_column, keeping_function, kept_element, kept_type, summed

__all__ = ["product_with_gradients"]


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


class _Products(torch.autograd.Function):
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


def product_with_gradients(
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
    apply = apply_of(_Products) if is_eager(tensors) else _Products.apply
    return list(apply(of, *tensors))
