"""The derivative of a traced epilogue, as another traced epilogue, and the value that it needs from the forward pass.

    D = f(accum, x, …)   ->   {"D": of accum, "d_x": of x, …} = g(accum, x, …, grad_D, …)

The derivative walks the graph backwards and applies the rule of each function (:data:`RULES`).  Gradients of
broadcast arguments are reduced in the kernel that computes them.  The kernel is either a GEMM that recomputes the
accumulator, or one that reads a value saved by the forward pass (:func:`kept_of`).

Like torch, a GEMM saves the operand of an activation, rounded, as one more result.  For ``gelu(a @ b + bias) + skip``
that operand is ``a @ b + bias``.  In general the saved value is the last node from which the derivative can be computed
without the accumulator.  If a stored result suffices, as for ``relu``, that one is used.  If the derivative does not
read the accumulator, as for ``a @ b + skip``, nothing is saved.  For epilogues with reductions of whole rows, a GEMM
recomputes the accumulator.
"""

# Values are proxies of a trace.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownLambdaType=false, reportUnknownParameterType=false

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import lru_cache
from inspect import Parameter, Signature
from typing import Any, NamedTuple

from cute_dialect.kernels.epilogue.functions import FUNCTIONS
from cute_dialect.kernels.epilogue.graph import Builder, Graph, Input, Output, constant_of
from cute_dialect.op.epilogue import functions
from cute_dialect.op.epilogue.tracer_values import Proxy, call, interleaved
from cute_dialect.op.epilogue.tracing import FakeTensor, Placed, Traced, shape_in_sums, trace
from cute_dialect.op.errors import EpilogueError

_where, _exp = functions.where, functions.exp
_LN_2 = math.log(2.0)


def _larger(x: Any, y: Any, g: Any) -> Any:
    """Return the gradient of the greater of two operands, half of it each if they are equal."""
    return _where(x > y, g, _where(x == y, 0.5 * g, 0.0))


RULES: Mapping[str, Callable[..., Sequence[Any]]] = {
    "add": lambda g, r, x, y: (g, g),
    "subtract": lambda g, r, x, y: (g, -g),
    "multiply": lambda g, r, x, y: (g * y, g * x),
    "scaled": lambda g, r, x, y: (g * y, g * x),
    "divide": lambda g, r, x, y: (g / y, -(g * r) / y),
    "multiply_add": lambda g, r, x, y, z: (g * y, g * x, g),
    "negative": lambda g, r, x: (-g,),
    "abs": lambda g, r, x: (_where(x > 0.0, g, _where(x < 0.0, -g, 0.0)),),
    "sqrt": lambda g, r, x: (0.5 * g / r,),
    "rsqrt": lambda g, r, x: (-0.5 * g * r / x,),
    "relu": lambda g, r, x: (_where(r > 0.0, g, 0.0),),
    "exp": lambda g, r, x: (g * r,),
    "exp2": lambda g, r, x: (g * r * _LN_2,),
    "log": lambda g, r, x: (g / x,),
    "erf": lambda g, r, x: (g * (2.0 / math.sqrt(math.pi)) * _exp(-(x * x)),),
    "maximum": lambda g, r, x, y: (_larger(x, y, g), _larger(y, x, g)),
    "minimum": lambda g, r, x, y: (_larger(y, x, g), _larger(x, y, g)),
    "where": lambda g, r, c, x, y: (None, _where(c, g, 0.0), _where(c, 0.0, g)),
    "prelu": lambda g, r, x, a: (_where(x > 0.0, g, g * a), _where(x > 0.0, 0.0, g * x)),
    "leaky_relu": lambda g, r, x, a: (_where(x > 0.0, g, g * a), _where(x > 0.0, 0.0, g * x)),
    "elu": lambda g, r, x, a: (
        g * functions.d_elu(x, a),
        _where(x > 0.0, 0.0, g * (_exp(functions.minimum(x, 0.0)) - 1.0)),
    ),
}
"""``rule(gradient, result, *operands)`` -> the gradients of the operands, None for operands without one."""


def _normal(x: Any) -> Any:
    """Return the density of the standard normal distribution."""
    return 0.3989422804014327 * _exp(-0.5 * x * x)


def _curve_of_gelu_tanh(x: Any) -> Any:
    """Return the second derivative of ``x s(u)``, s the sigmoid, ``u = 2 k (x + c x^3)``."""
    k, c = 2 * 0.7978845608028654, 0.044715
    u, slope, curve = k * (x + c * x * x * x), k * (1.0 + 3 * c * x * x), k * 6 * c * x
    first = functions.d_sigmoid(u)
    second = first * (1.0 - 2.0 * functions.sigmoid(u))
    return 2.0 * slope * first + x * curve * first + x * slope * slope * second


SECOND: Mapping[str, Callable[..., Sequence[Any]]] = {
    **{n: lambda g, r, x: (None,) for n in ("d_identity", "d_relu", "d_relu6", "d_hardsigmoid")},
    "d_leaky_relu": lambda g, r, x, a: (None, _where(x > 0.0, 0.0, g)),
    "d_hardswish": lambda g, r, x: (_where(functions.abs(x) < 3.0, g * (1 / 3), 0.0),),
    "d_sigmoid": lambda g, r, x: (g * r * (1.0 - 2.0 * functions.sigmoid(x)),),
    "d_tanh": lambda g, r, x: (g * r * functions.tanh(x) * -2.0,),
    "d_softplus": lambda g, r, x: (g * functions.d_sigmoid(x),),
    "d_square_relu": lambda g, r, x: (_where(x > 0.0, 2.0 * g, 0.0),),
    "d_silu": lambda g, r, x: (g * functions.d_sigmoid(x) * (2.0 + x * (1.0 - 2.0 * functions.sigmoid(x))),),
    "d_gelu": lambda g, r, x: (g * _normal(x) * (2.0 - x * x),),
    "d_gelu_tanh": lambda g, r, x: (g * _curve_of_gelu_tanh(x),),
    "d_elu": lambda g, r, x, a: (
        _where(x > 0.0, 0.0, g * r),
        _where(x > 0.0, 0.0, g * _exp(functions.minimum(x, 0.0))),
    ),
}
"""Rules for the derivatives of activations, as in :data:`RULES`, for second-order gradients."""

WITHOUT = {
    "floor_divide", "less", "less_equal", "greater", "greater_equal", "equal", "not_equal", "logical_and", "logical_or",
    "logical_not", "row", "column", "matrix", "constant", "random",
}  # fmt: skip
"""Operations that are piecewise constant, so that no gradient passes through them."""


def gradient_of(
    traced: Traced, sums: Sequence[int], wanted: Sequence[str], given: Sequence[str], kept: int | None = None
) -> Traced:
    """Return an epilogue that computes the gradients of a traced epilogue.

    Its arguments are those of ``traced``, and ``grad_NAME`` for each result of ``given``, of the shape of that
    result. Its results are D, the gradient of the accumulator, and ``d_NAME`` for each argument of ``wanted``.  A
    result ``d_NAME`` has the shape of the argument if the kernel reduces it completely.  Otherwise it has one element
    per element of the accumulator, or per pair of columns.

    Args:
        traced: the epilogue.
        sums: shape of the accumulator.
        wanted: names of arguments that need gradients.
        given: names of results whose gradients are known.
        kept: node of ``traced`` whose values are passed as the argument :func:`kept_name`; results other than D that
            are 0 are then left out.

    Raises:
        EpilogueError: if there is no derivative.
    """
    if traced.graph.block:
        raise EpilogueError(f"epilogue {traced.name}: quantize() has no derivative")
    return _gradient(_Key(traced), tuple(sums), tuple(wanted), tuple(given), kept)


def given_name(traced: Traced, result: str) -> str:
    """Return the argument name for the gradient of a result: ``grad_NAME``, with further prefixes if that name is
    taken.
    """
    name = f"grad_{result}"
    while any(a.name == name for a in traced.arguments):
        name = f"grad_{name}"
    return name


def kept_name(traced: Traced) -> str:
    """Return the argument name for the saved values: ``kept``, with underscores if that name is taken."""
    name = "kept"
    while name in (*traced.parameters, *traced.results):
        name = f"{name}_"
    return name


def structure_of(traced: Traced) -> Traced:
    """Return the first epilogue of equal structure, so that a function traced at each call finds the caches."""
    return _first(_Key(traced))


class _Key:
    """A traced epilogue that is hashed by its structure."""

    def __init__(self, traced: Traced):
        self.traced = traced
        views, fixed = tuple(traced.views.items()), tuple([(n, repr(x)) for n, x in traced.fixed.items()])
        self.key = (traced.graph, traced.arguments, traced.results, traced.parameters, views, fixed)
        self.key += (traced.form, traced.returned)

    def __hash__(self) -> int:
        return hash(self.key)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Key) and self.key == other.key


@lru_cache(maxsize=256)
def _first(key: _Key) -> Traced:
    return key.traced


@lru_cache(maxsize=256)
def _gradient(
    key: _Key, sums: tuple[int, ...], wanted: tuple[str, ...], given: tuple[str, ...], kept: int | None
) -> Traced:
    traced = key.traced
    names = ["accum", *(a.name for a in traced.arguments), *(given_name(traced, n) for n in given)]
    names += [] if kept is None else [kept_name(traced)]

    def backward(**values: Any) -> dict[str, Any]:
        found = _backward(traced, wanted, given, values, kept)
        zero = _where(values["accum"] == values["accum"], 0.0, 0.0)
        return {n: zero if x is None else x for n, x in found.items() if x is not None or kept is None or n == "D"}

    backward.__name__ = f"gradient of {traced.name}"
    backward.__signature__ = Signature([Parameter(n, Parameter.KEYWORD_ONLY) for n in names])  # type: ignore[attr-defined]
    examples: dict[str, Any] = {"accum": FakeTensor("f32", sums)}
    if kept is not None:
        examples[kept_name(traced)] = FakeTensor("f32", traced.base_of(sums, kept))
    placed: dict[str, Placed] = {}
    for a, x in zip(traced.arguments, traced.graph.inputs):
        element = "ui8" if x.element == "i1" else x.element
        shape = shape_in_sums(x, sums)
        if a.view is not None:
            placed[a.name] = Placed(x, a.view)
            shape = a.view.shape((*sums[:-1], sums[-1] // 2) if x.half else sums)
        whole = x.number and x.element == "i64"
        examples[a.name] = 1 if whole else 0.5 if x.number else FakeTensor(element, shape)
    for n in given:
        name, view = given_name(traced, n), traced.views.get(n)
        examples[name] = FakeTensor("f32", traced.shape_of(sums, n))
        if view is not None:
            half = traced.graph.halves[traced.graph.outputs[traced.results.index(n)].node]
            placed[name] = Placed(Input("aux", batch=len(sums) == 3, half=half, split=view.split), view)
    return trace(backward, examples, runtime=[a.name for a in traced.arguments], placed=placed)


def _backward(
    traced: Traced, wanted: Sequence[str], given: Sequence[str], values: Mapping[str, Any], kept: int | None
) -> dict[str, Any]:
    """Return the gradients as traced values."""
    graph, what = traced.graph, f"epilogue {traced.name}"
    forward = _forward(traced, values, kept)
    halves = graph.halves
    number = {a.name: a.number for a in traced.arguments}
    loads = {node.value: i for i, node in enumerate(graph.nodes) if node.op == "load"}
    needed = _needed(graph, {number[n] for n in wanted})
    gradients: list[Any] = [None] * len(graph.nodes)
    pairs: dict[int, list[Any]] = {}

    def push(i: int, g: Any, half: bool) -> None:
        if g is None or not needed[i]:
            return
        if half and not halves[i]:  # The gradient belongs to the even columns; that of the odd ones is 0.
            g = interleaved(g, 0.0)
        gradients[i] = g if gradients[i] is None else gradients[i] + g

    for name in given:
        output = graph.outputs[traced.results.index(name)]
        if output.reduce not in ("", "sum"):
            raise EpilogueError(f"{what}: result {name} uses {output.reduce}(), which has no gradient; only sum() does")
        push(output.node, values[given_name(traced, name)], halves[output.node])
    for i in reversed(range(len(graph.nodes))):
        node = graph.nodes[i]
        for even_or_odd in (pairs.pop(i, None),):
            if even_or_odd is not None:
                push(i, interleaved(*[0.0 if x is None else x for x in even_or_odd]), False)
        g = gradients[i]
        if g is None or node.op in WITHOUT or node.op in ("accum", "load"):
            continue
        operands = [forward[k] for k in node.operands]
        if node.op in ("even", "odd"):
            both = pairs.setdefault(node.operands[0], [None, None])
            both[node.op == "odd"] = g
        elif node.op == "interleave":
            both = (g, g) if g.shape[-1] == 1 else g.pair()  # A per-row gradient holds for both columns.
            for k, x in zip(node.operands, both):
                push(k, x, True)
        elif node.op == "whole":
            push(node.operands[0], _of_rows(node.value, g, forward[i], *operands), False)
        elif node.op == "cast":
            push(node.operands[0], g, halves[i])
        else:
            for k, x in zip(node.operands, rule_of(what, node.op)(g, forward[i], *operands)):
                push(k, x, halves[i])
    accum = next((i for i, node in enumerate(graph.nodes) if node.op == "accum"), None)
    found: dict[str, Any] = {"D": None if accum is None else gradients[accum]}
    for name in wanted:
        i = loads.get(number[name])
        found[f"d_{name}"] = None if i is None or gradients[i] is None else _total(graph, traced, name, gradients[i])
    return found


def _total(graph: Graph, traced: Traced, name: str, g: Any) -> Any:
    """Return the gradient of an argument from the gradient per element, summed if it is broadcast per row, per column
    or as a scalar.
    """
    x = graph.inputs[next(a.number for a in traced.arguments if a.name == name)]
    if x.kind == "aux":
        return g
    return functions.sum(g, {"row": -2, "column": -1}.get(x.kind))


def _needed(graph: Graph, inputs: set[int]) -> list[bool]:
    """Return for each node whether it depends on the accumulator or on one of the inputs."""
    found: list[bool] = []
    for node in graph.nodes:
        own = node.op == "accum" or (node.op == "load" and node.value in inputs)
        found.append(own or (node.op not in WITHOUT and any(found[i] for i in node.operands)))
    return found


def _forward(traced: Traced, values: Mapping[str, Any], kept: int | None) -> list[Any]:
    """Return the value of each node; the node `kept` has the saved value."""
    names = {a.number: a.name for a in traced.arguments}
    found: list[Any] = []
    for i, node in enumerate(traced.graph.nodes):
        operands = [found[i] for i in node.operands]
        if i == kept:
            found.append(values[kept_name(traced)])
        elif node.op == "accum":
            found.append(values["accum"])
        elif node.op == "constant":
            found.append(constant_of(node))
        elif node.op == "load":
            found.append(values[names[node.value]])
        elif node.op in ("row", "column", "matrix"):
            found.append(values["accum"].place(node.op))
        elif node.op == "cast":
            found.append(operands[0].cast(node.value))
        elif node.op == "random":
            like = values["accum"].pair()[0] if node.value == "half" else values["accum"]
            found.append(like.random(*operands))
        elif node.op in ("even", "odd"):
            found.append(operands[0].pair()[node.op == "odd"])
        elif node.op == "interleave":
            found.append(interleaved(*operands))
        elif node.op == "whole":
            found.append(operands[0].of_rows(node.value, -1))
        elif any(isinstance(x, Proxy) for x in operands):
            found.append(call(node.op, *operands))
        else:
            found.append(getattr(functions, node.op)(*operands))
    return found


def _of_rows(operation: str, g: Any, r: Any, x: Any) -> Any:
    """Return the gradient of the operand of a row reduction.  Several equal maxima or minima share it equally."""
    total = functions.sum(g, -1, whole_rows=True)
    if operation == "sum":
        return total
    return _where(x == r, total / functions.sum(_where(x == r, 1.0, 0.0), -1, whole_rows=True), 0.0)


def rule_of(what: str, name: str) -> Callable[..., Sequence[Any]]:
    """Return the derivative rule of a function.  Raises EpilogueError."""
    rule = RULES.get(name) or SECOND.get(name)
    if rule is not None:
        return rule
    slope = getattr(functions, f"d_{name}", None)
    if slope is None or name not in FUNCTIONS or FUNCTIONS[name].arity != 1:
        raise EpilogueError(f"{what}: {name}() has no derivative, but gradients are required")
    return lambda g, r, x: (g * slope(x),)


# --------------------------------------------------------------------------------------------------------- saved values


_FLOATS = ("", "f16", "bf16", "f32")


class Kept(NamedTuple):
    """The value saved for gradients."""

    forward: Traced  # epilogue that stores the value
    name: str  # result that is saved, "" for none
    node: int  # node of that value, -1 for none


class Slope(NamedTuple):
    """A derivative that does not read the accumulator."""

    traced: Traced
    graph: Graph
    names: tuple[str, ...]  # names of the graph's inputs
    results: tuple[str, ...]  # names of the graph's results
    same: dict[str, str]  # results that equal an argument -> that argument


def kept_of(
    traced: Traced, sums: tuple[int, ...], wanted: tuple[str, ...], given: tuple[str, ...], factors: bool, exact: bool
) -> Kept | None:
    """Choose the value to save for the gradients, or None if they must recompute the accumulator.

    Args:
        traced: the epilogue.
        sums: shape of the accumulator.
        wanted: arguments that need gradients.
        given: results whose gradients are known.
        factors: True if the factors need gradients, and so the accumulator.
        exact: True if results have 16 bits or more.
    """
    graph = traced.graph
    if graph.whole_rows or graph.block:
        return None
    if _reads(traced, sums, wanted, given, factors, None):
        return Kept(traced, "", -1)
    of_sums = _of_sums(graph)
    for name, x in zip(traced.results, graph.outputs):
        plain = not x.reduce and name not in traced.views and x.element in _FLOATS and not graph.halves[x.node]
        if exact and plain and of_sums[x.node] and _reads(traced, sums, wanted, given, factors, x.node):
            return Kept(traced, name, x.node)
    for node in reversed(range(len(graph.nodes))):
        plain = of_sums[node] and not graph.halves[node] and graph.nodes[node].op not in WITHOUT
        if plain and _reads(traced, sums, wanted, given, factors, node):
            return Kept(_storing(traced, node), kept_name(traced), node)
    return None


def _of_sums(graph: Graph) -> list[bool]:
    """Return for each node whether it depends on the accumulator."""
    found: list[bool] = []
    for node in graph.nodes:
        found.append(node.op == "accum" or any([found[i] for i in node.operands]))
    return found


def _reads(
    traced: Traced, sums: tuple[int, ...], wanted: tuple[str, ...], given: tuple[str, ...], factors: bool,
    kept: int | None,
) -> bool:  # fmt: skip
    """Return True if the gradients can be computed without the accumulator from the values of node `kept` (or none)."""
    try:
        slope_of(traced, sums, wanted, given, factors, kept)
    except EpilogueError:
        return False
    return True


def slope_of(
    traced: Traced, sums: tuple[int, ...], wanted: tuple[str, ...], given: tuple[str, ...], factors: bool,
    kept: int | None,
) -> Slope:  # fmt: skip
    """Return the derivative without the accumulator; with ``factors``, D is one of its results.

    Raises EpilogueError if it reads the accumulator or whole rows.
    """
    found = gradient_of(traced, sums, wanted, given, -1 if kept is None else kept)
    gradients = {given_name(traced, n) for n in given if n not in traced.views}
    return reading(found, [n for n in found.results if n != "D" or factors], gradients)


def reading(found: Traced, results: Sequence[str], same_as: Collection[str] = ()) -> Slope:
    """Return the results of an epilogue that does not read the accumulator.

    Results that equal one of the arguments ``same_as`` are listed in ``same`` and not computed.  Raises EpilogueError
    if a result reads the accumulator or whole rows.
    """
    make = Builder()
    make.inputs += found.graph.inputs
    numbers: list[int] = []
    for node in found.graph.nodes:
        operands = tuple([numbers[i] for i in node.operands])
        if node.op == "scaled":  # A factor of 0 gives 0, even if the other operand is NaN.
            zero = make.constant(0.0)
            product = make.call("multiply", *operands)
            numbers.append(make.call("where", make.call("equal", operands[0], zero), zero, product))
        else:
            numbers.append(make.add(node._replace(operands=operands)))
    outputs = [found.graph.outputs[found.results.index(n)] for n in results]
    names = {a.number: a.name for a in found.arguments}
    same: dict[str, str] = {}
    left: list[tuple[str, Output]] = []
    for name, x in zip(results, outputs):
        node = found.graph.nodes[x.node]
        number: int = node.value if node.op == "load" else -1
        whole = number >= 0 and not x.reduce and found.graph.inputs[number].kind == "aux"
        if whole and names[number] in same_as:
            same[name] = names[number]
        else:
            left.append((name, x._replace(node=numbers[x.node])))
    graph = make.graph([x for _, x in left])
    wrong = [n.op for n in graph.nodes if n.op in ("accum", "whole", "block")]
    if wrong:
        raise EpilogueError(f"epilogue {found.name}: the derivative reads the accumulator or whole rows ({wrong[0]})")
    return Slope(found, graph, tuple([names[i] for i in make.kept]), tuple([n for n, _ in left]), same)


@lru_cache(maxsize=256)
def _storing(traced: Traced, node: int) -> Traced:
    """Return an epilogue that also stores the values of a node."""
    name = kept_name(traced)
    graph = traced.graph._replace(outputs=(*traced.graph.outputs, Output(node)))
    names = (*traced.results, name)
    return Traced(
        traced.function, graph, traced.arguments, names, names, "dict", traced.fixed, traced.parameters,
        traced.examples, traced.views,
    )  # fmt: skip
