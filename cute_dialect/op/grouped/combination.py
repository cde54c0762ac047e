"""Epilogue ``activation(alpha * accum + beta * c + bias)`` of groups, as a graph.  Alpha and bias may be per group."""

# Arrays belong to any library.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from cute_dialect.kernels.epilogue.activations import is_activation, unknown_activation
from cute_dialect.kernels.epilogue.graph import Graph, Input
from cute_dialect.op.arrays.dtypes import element_name
from cute_dialect.op.epilogue.bind import Bound, bound, refuse_arranged
from cute_dialect.op.epilogue.combination import LinearCombination, combination
from cute_dialect.op.epilogue.tracing import FakeTensor, Traced, broadcast_kind
from cute_dialect.op.errors import DtypeError, EpilogueError, ShapeError, UnsupportedError
from cute_dialect.op.problems.grouped import Shapes

__all__ = ["combined", "of_graph"]

_EXTENTS = {"l": 4, "m": 128, "n": 256}
"""Placeholder extents for the trace.  The graph does not depend on them."""


def combined(
    call: str, s: Shapes, result: Any, extras: LinearCombination, scales: Mapping[str, Any] = MappingProxyType({})
) -> tuple[Graph, tuple[Any, ...]] | None:  # fmt: skip
    """Return the graph of a linear combination and its operands, or None if the epilogue is the identity.

    ``scales`` are factors of the accumulator, ``scale_a`` and ``scale_b``: one element, per group (G,), per row, per
    column, or (G, N).  Raises ShapeError, DtypeError, EpilogueError.
    """
    alpha, beta, c, bias, activation = extras.alpha, extras.beta, extras.c, extras.bias, extras.activation
    if not isinstance(beta, int | float):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise DtypeError(f"{call}: beta must be a number, got {beta!r}")
    if activation and not is_activation(activation):
        raise EpilogueError(f"{call}: {unknown_activation(activation)}")
    args: dict[str, Any] = {}
    each: dict[str, Any] = {}
    for name, x in scales.items():
        shape = tuple(x.shape)
        if s.groups > 1 and shape in ((s.groups,), (s.groups, s.n)):
            each[name] = x
        args[name] = x[:1] if name in each else x.reshape(1) if not shape else x
    if not isinstance(alpha, int | float):
        shape = tuple(getattr(alpha, "shape", ()))
        if not hasattr(alpha, "dtype") or shape not in ((), (1,), (s.groups,)) or element_name(alpha.dtype) != "f32":
            raise ShapeError(
                f"{call}: alpha must be a number, or an f32 array of shape (1,) or ({s.groups},); its shape is {shape}"
            )
        each |= {"alpha": alpha} if shape == (s.groups,) and s.groups > 1 else {}
        args["alpha"] = alpha[:1] if "alpha" in each else alpha.reshape(1)
    elif alpha != 1.0:
        args["alpha"] = float(alpha)
    if c is not None and beta != 0.0:
        if broadcast_kind(tuple(c.shape), s.result) is None:
            raise ShapeError(f"{call}: c of shape {tuple(c.shape)} does not broadcast to {s.result}")
        args["C"] = c
        if beta != 1.0:
            args["beta"] = float(beta)
    if bias is not None:
        args["bias"] = _bias(call, s, bias)
        if s.form in ("m", "k", "rows") and tuple(bias.shape) == (s.groups, s.n) and s.groups > 1:
            each["bias"] = bias
    if not args and not activation:
        return None
    sums = tuple(_EXTENTS.values())[-len(s.result) :]
    traced = combination(tuple([(n, _like(x, s)) for n, x in args.items()]), sums, activation)
    found = bound(traced, args, result, s.result, lambda shape, kind: result)
    graph, operands = found.graph, list(found.operands)
    inputs = list(graph.inputs)
    for i, name in enumerate(found.reads):
        x = each.get(name)
        if x is None:
            continue
        if len(x.shape) == 2 and s.n > 1:
            pairs = inputs[i].pairs and _strides(x)[0] % 2 == 0
            inputs[i], operands[i] = inputs[i]._replace(batch=True, pairs=pairs), x.T
        else:
            x = x[:, 0] if len(x.shape) == 2 else x
            order = "n" if _strides(x)[0] == 1 else ""
            inputs[i], operands[i] = Input("matrix", element_name(x.dtype), order=order), x
    return _any_column(graph._replace(inputs=tuple(inputs)), s), tuple(operands)


def of_graph(
    call: str, s: Shapes, traced: Traced, args: Mapping[str, Any], result: Any,
    make: Callable[[tuple[int, ...], str], Any],
) -> Bound:  # fmt: skip
    """Bind a traced epilogue to its arrays; ``make`` allocates further results.  Raises EpilogueError,
    UnsupportedError.
    """
    if s.form == "n" and len(traced.results) > 1:
        raise UnsupportedError(
            f"{call}: the epilogue of groups of columns must have one result, got {', '.join(traced.results)}"
        )
    for what, there in (("whole_rows=True", traced.graph.whole_rows), ("quantize()", traced.graph.block)):
        if there:
            raise UnsupportedError(f"{call}: {what} in epilogue {traced.name} is not supported; use op.mm or op.bmm")
    reduced = [n for n, x in zip(traced.results, traced.graph.outputs) if x.reduce]
    if reduced:
        raise UnsupportedError(
            f"{call}: result {reduced[0]} of epilogue {traced.name} is a reduction, which is not supported; "
            "use op.mm or op.bmm"
        )
    refuse_arranged(call, traced)
    found = bound(traced, args, result, s.result, make)
    return found._replace(graph=_any_column(found.graph, s))


def _any_column(graph: Graph, s: Shapes) -> Graph:
    """Disable loads of column pairs if groups are columns, because a group may begin at an odd column."""
    if s.form != "n":
        return graph
    return graph._replace(inputs=tuple([x._replace(pairs=False) for x in graph.inputs]))


def _bias(call: str, s: Shapes, bias: Any) -> Any:
    """Return a bias as the graph reads it.  Raises ShapeError."""
    shape = tuple(bias.shape)
    if shape in ((s.n,), (1, s.n), (s.m, 1)):
        return bias
    if s.form in ("k", "rows") and shape in ((s.groups, 1, s.n), (s.groups, s.m, 1)):
        return bias
    if s.form != "n" and shape == (s.groups, s.n):
        return bias[:1]
    more = "" if s.form == "n" else f", ({s.groups}, {s.n})"
    raise ShapeError(f"{call}: bias has shape {shape}; it must have ({s.n},), (1, {s.n}){more} or ({s.m}, 1)")


def _like(x: Any, s: Shapes) -> Any:
    """Return the placeholder of an argument for the trace."""
    if isinstance(x, float):
        return 1.5
    shape = tuple(x.shape)
    kind = broadcast_kind(shape, s.result)
    if kind is None or all(n == 1 for n in shape):
        return FakeTensor(element_name(x.dtype), (1,))
    full = (*(1,) * (len(s.result) - len(shape)), *shape)
    there = tuple([1 if n == 1 else _EXTENTS[e] for n, e in zip(full, "lmn"[-len(full) :])])
    return FakeTensor(element_name(x.dtype), there)


def _strides(t: Any) -> tuple[int, ...]:
    return tuple(t.stride()) if hasattr(t, "stride") else tuple([n // t.itemsize for n in t.strides])
