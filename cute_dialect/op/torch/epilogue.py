"""Gradients through traced epilogues for torch tensors: ``op.mm(a, b, epilogue=f, args={…})``.

The forward pass saves the factors, the arguments and at most one more tensor.  It is a result, or a value of the
graph stored in the type of D (:mod:`~cute_dialect.op.epilogue.derivative`).  From it, one kernel computes the
gradients of the accumulator and of the arguments (:mod:`~cute_dialect.op.torch.gradients`), and two GEMMs
compute those of the factors.  If there is no such value, or if the gradients need gradients, a GEMM whose epilogue is
the derivative (:mod:`~cute_dialect.op.epilogue.derivative`) recomputes the accumulator.
"""

# torch is not installed where the types are checked.
# pyright: reportMissingImports=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownParameterType=false, reportUntypedFunctionDecorator=false

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, NamedTuple

import torch

from cute_dialect.op.arrays.dtypes import element_name
from cute_dialect.op.arrays.library import operator_stream
from cute_dialect.op.epilogue.bind import traced_of
from cute_dialect.op.epilogue.derivative import (
    Kept,
    given_name,
    gradient_of,
    kept_name,
    kept_of,
    slope_of,
    structure_of,
)
from cute_dialect.op.epilogue.output_layout import as_argument
from cute_dialect.op.epilogue.tracing import Traced
from cute_dialect.op.errors import DtypeError, EpilogueError, UnsupportedError
from cute_dialect.op.execute.recording import is_eager
from cute_dialect.op.problems.operands import check_product
from cute_dialect.op.torch.autograd import Context, apply_of, node_of
from cute_dialect.op.torch.gradients import SlopeCall, factor_gradients, summed
from cute_dialect.runtime.arrays import view_of


class _Call(NamedTuple):
    """A GEMM with an epilogue."""

    function: Callable[..., Any]  # mm or bmm
    traced: Traced
    sums: tuple[int, ...]  # shape of the accumulator
    names: tuple[str, ...]  # names of the arguments that are tensors
    numbers: dict[str, Any]  # the other arguments
    more: dict[str, Any]  # further keyword arguments of the forward call
    how: dict[str, Any]  # the ones that the GEMMs of the gradients need, too
    kept: Kept | None  # the value saved for the gradients, None to recompute the accumulator
    narrow: bool  # True if D has 8 bits, so that the saved value has the type of the factors


def _forward(ctx: Context, of: _Call, a: torch.Tensor, b: torch.Tensor, *tensors: torch.Tensor) -> Any:
    """Compute the GEMM, and save its operands and the value that its gradients need."""
    args = of.numbers | dict(zip(of.names, tensors))
    if of.kept is not None and of.kept.name not in ("", *of.traced.results) and of.narrow:
        args[of.kept.name] = torch.empty(of.sums, dtype=a.dtype, device=a.device)
    traced = of.traced if of.kept is None else of.kept.forward
    found = of.function(a, b, epilogue=traced, args=args, **of.more)
    ctx.of = of
    given = found if isinstance(found, dict | tuple) else (found,)
    by_name = given if isinstance(given, dict) else dict(zip(traced.returned, given))
    kept = () if of.kept is None or not of.kept.name else (by_name[of.kept.name],)
    ctx.save_for_backward(a, b, *tensors, *kept)
    ctx.set_materialize_grads(False)
    return tuple([by_name[n] for n in of.traced.results])


def _backward(ctx: Context, *grads: torch.Tensor | None) -> tuple[torch.Tensor | None, ...]:
    """Compute the gradients of the accumulator, the factors and the arguments."""
    of: _Call = ctx.of
    a, b, *tensors = ctx.saved_tensors
    tensors, kept = tensors[: len(of.names)], tensors[len(of.names) :]
    given = {n: g for n, g in zip(of.traced.results, grads) if g is not None}
    learning = tuple([n for n, needed in zip(of.names, ctx.needs_input_grad[3:]) if needed])
    if not given or not any(ctx.needs_input_grad):
        return (None, *[None for _ in range(2 + len(tensors))])
    args = of.numbers | dict(zip(of.names, tensors))
    factors = any(ctx.needs_input_grad[1:3])
    read = {x.name for x in of.traced.arguments}
    wanted = tuple([n for n in learning if n in read])
    # With create_graph=True the gradient is itself a differentiable GEMM, because it needs gradients of its own.
    call = None
    if of.kept is not None and not torch.is_grad_enabled():
        kinds = tuple([(n, element_name(args[n].dtype)) for n in wanted])
        call = _slope_call(of.traced, of.sums, kinds, tuple(given), factors, of.kept.node, element_name(a.dtype))
    inputs = args | {given_name(of.traced, n): g for n, g in given.items()}
    inputs |= {kept_name(of.traced): t for t in kept}
    found = _by_product(of, a, b, inputs, wanted, given) if call is None else call(inputs, of.how.get("device"))
    of_a = of_b = None
    if factors:
        of_a, of_b = factor_gradients(of.function.__name__, a, b, found["D"], ctx.needs_input_grad[1:3], 1.0, of.how)
    named = dict(zip(of.names, tensors))
    of_args = [
        None if n not in wanted else _as_given(of.traced, n, found[f"d_{n}"], t, of.sums) if f"d_{n}" in found
        else torch.zeros_like(t) for n, t in named.items()
    ]  # fmt: skip
    return (None, of_a, of_b, *of_args)


_NODE = node_of(_forward, _backward)
"""A GEMM whose results are in the order of the epilogue's."""
_APPLY = apply_of(_NODE)


@lru_cache(maxsize=256)
def _slope_call(
    traced: Traced, sums: tuple[int, ...], wanted: tuple[tuple[str, str], ...], given: tuple[str, ...], factors: bool,
    kept: int, element: str,
) -> SlopeCall | None:  # fmt: skip
    """Return the call that computes gradients from the node `kept`, or None if they need the accumulator after all."""
    kinds = {f"d_{n}": kind for n, kind in wanted} | {"D": element}
    try:
        slope = slope_of(traced, sums, tuple([n for n, _ in wanted]), given, factors, None if kept < 0 else kept)
    except EpilogueError:
        return None
    return SlopeCall(slope, sums, kinds)


def _by_product(
    of: _Call, a: torch.Tensor, b: torch.Tensor, args: Mapping[str, Any], wanted: tuple[str, ...],
    given: Mapping[str, torch.Tensor],
) -> dict[str, torch.Tensor]:  # fmt: skip
    """Compute gradients with a GEMM that recomputes the accumulator.

    Returns the gradient of the accumulator, in the type of the factors, and those of the arguments before reduction.
    """
    traced = gradient_of(of.traced, of.sums, wanted, list(given))
    inputs = {n: t.view(torch.uint8) if isinstance(t, torch.Tensor) and t.dtype == torch.bool else t
              for n, t in args.items() if n in traced.parameters}  # fmt: skip
    # Gradients per element have the type of their argument. If they need gradients, the call allocates them itself.
    for n in wanted if not torch.is_grad_enabled() else ():
        shape = traced.shape_of(of.sums, f"d_{n}")
        reduced = traced.graph.outputs[traced.results.index(f"d_{n}")].reduce
        kind = torch.float32 if reduced or args[n].shape != shape else args[n].dtype
        inputs[f"d_{n}"] = torch.empty(shape, dtype=kind, device=a.device)
    return of.function(a, b, epilogue=traced, args=inputs, dtype=a.dtype, **of.how)


def _as_given(traced: Traced, name: str, g: torch.Tensor, t: torch.Tensor, sums: tuple[int, ...]) -> torch.Tensor:
    """Return the gradient of an argument in its shape and type, summed in f32 along broadcast modes."""
    x = next(x for x in traced.arguments if x.name == name)
    if x.view is not None:
        base = (*sums[:-1], sums[-1] // 2) if traced.graph.inputs[x.number].half else sums
        return as_argument(g, x.view, base).to(t.dtype)
    if x.kind == "scalar":
        return g.sum(dtype=torch.float32).reshape(t.shape).to(t.dtype)
    return summed(g, t.shape, t.dtype)


def product_with_gradients(
    function: Callable[..., Any], a: Any, b: Any, out: Any, dtype: Any, device: Any, stream: Any, epilogue: Any,
    args: Mapping[str, Any], how: Mapping[str, Any], others: Mapping[str, Any],
) -> Any:  # fmt: skip
    """Compute a GEMM with an epilogue whose gradients torch records.

    Args:
        function: ``mm`` or ``bmm``.
        args: the arguments of the epilogue.
        how: ``math`` and ``accumulator``, which the gradients use, too.
        others: further options that only the forward call uses.

    Raises:
        OpError: before anything is compiled or written.
    """
    call = function.__name__
    shape = check_product(call, 2 if call == "mm" else 3, view_of(a.detach()), view_of(b.detach()))
    traced = traced_of(call, epilogue, args, shape)
    if out is not None or any(n in args for n in traced.results):
        raise UnsupportedError(
            f"{call}: out= and result arrays in args cannot be used when gradients are required; "
            "call it under torch.no_grad()"
        )
    names = tuple([n for n in args if isinstance(args[n], torch.Tensor)])
    for name, t in (("a", a), ("b", b), *((n, args[n]) for n in names)):
        if t.requires_grad and t.dtype not in (torch.float16, torch.bfloat16, torch.float32):
            raise DtypeError(
                f"{call}: {name} has dtype {element_name(t.dtype)} and requires a gradient; only f16, bf16 and f32 "
                "have gradients"
            )
    if element_name(a.dtype)[:2] == "f8" and any(t.requires_grad for t in (a, b, *(args[n] for n in names))):
        raise DtypeError(
            f"{call}: gradients are not supported when a has dtype {element_name(a.dtype)}; "
            "call it under torch.no_grad()"
        )
    traced = structure_of(traced)
    learning = tuple([x.name for x in traced.arguments if x.name in names and args[x.name].requires_grad])
    try:
        narrow = dtype is not None and element_name(dtype)[:2] == "f8"
        keeps = _kept_of(traced, shape, learning, a.requires_grad or b.requires_grad, not narrow)
    except EpilogueError as e:
        raise EpilogueError(
            f"{call}: {e}; call it under torch.no_grad(), or pass arguments without requires_grad"
        ) from None
    kept = {n: str(v) for n, v in how.items() if v is not None} | ({} if device is None else {"device": str(device)})
    numbers = {n: v for n, v in args.items() if n not in names}
    of = _Call(function, traced, shape, names, numbers, {"dtype": dtype, **kept, **others}, kept, keeps, narrow)
    with operator_stream(call, stream, a):
        apply = _APPLY if is_eager([a, b, *[args[n] for n in names]]) else _NODE.apply
        found = apply(of, a, b, *[args[n] for n in names])
    return traced.formed(dict(zip(traced.results, found)))


@lru_cache(maxsize=256)
def _kept_of(
    traced: Traced, sums: tuple[int, ...], learning: tuple[str, ...], factors: bool, exact: bool
) -> Kept | None:
    """Return the value saved for gradients.  Raises EpilogueError in the forward pass if the epilogue has no
    derivative.
    """
    given = tuple([n for n, x in zip(traced.results, traced.graph.outputs) if x.reduce in ("", "sum")])
    gradient_of(traced, sums, learning, given)
    return kept_of(traced, sums, learning, given, factors, exact)
