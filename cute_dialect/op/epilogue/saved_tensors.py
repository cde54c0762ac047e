"""The value that a GEMM with an epilogue saves for its gradients.

Like torch, it saves the operand of an activation, rounded, as one more result of the same kernel.  For ``gelu(a @ b +
bias) + skip`` that operand is ``a @ b + bias``.  In general the saved value is the last node from which the
derivative can be computed without the accumulator.  If a stored result suffices, as for ``relu``, that one is used.
If the derivative does not read the accumulator, as for ``a @ b + skip``, nothing is saved.  For epilogues with
reductions of whole rows, a GEMM recomputes the accumulator.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import lru_cache
from typing import NamedTuple

from cute_dialect.kernels.epilogue.graph import Builder, Graph, Output
from cute_dialect.op.epilogue.derivative import WITHOUT, given_name, gradient_of, kept_name
from cute_dialect.op.epilogue.tracing import Traced
from cute_dialect.op.errors import EpilogueError

__all__ = ["Kept", "Slope", "kept_of", "reading", "slope_of"]

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
) -> Kept | None:  # fmt: skip
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
