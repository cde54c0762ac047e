"""Gradients of elementwise functions: one kernel computes the derivative of the traced function.

A gradient that equals one of the result's, such as those of an addition, is not computed.  If the function has no
derivative by rule, or if gradients need gradients, torch runs the function on the arrays in f32.
"""

# torch is not installed where the types are checked.
# pyright: reportMissingImports=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownParameterType=false, reportUntypedBaseClass=false

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import torch

from cute_dialect.kernels.epilogue.graph import Graph, constant_of
from cute_dialect.op.arrays.dtypes import compute_type, element_name, result_element, torch_name
from cute_dialect.op.epilogue import functions
from cute_dialect.op.epilogue.derivative import WITHOUT, rule_of
from cute_dialect.op.epilogue.tracer_values import Proxy, call
from cute_dialect.op.errors import EpilogueError
from cute_dialect.op.execute.recording import is_eager
from cute_dialect.op.torch.autograd import Context, apply_of, no_settings, node_of
from cute_dialect.op.torch.gradients import summed
from cute_dialect.runtime.arrays import view_of

if TYPE_CHECKING:  # pragma: no cover
    from cute_dialect.op.functions.elementwise import Elementwise


def call_with_gradients(of: Elementwise, arrays: Sequence[Any], dtype: object, device: object) -> Any:
    """Compute a function whose gradients torch records; inside torch.compile, run it with torch."""
    if torch.compiler.is_compiling():
        found = _by_torch(of, arrays)
        wanted = getattr(torch, torch_name(element_name(dtype))) if dtype is not None else None
        elements = [element_name(x.dtype) for x in arrays if isinstance(x, torch.Tensor)]
        made = [x.to(wanted or getattr(torch, torch_name(result_element(_kind(x), elements)))) for x in found]
        return tuple(made) if len(made) > 1 else made[0]
    apply = _APPLY if is_eager([x for x in arrays if isinstance(x, torch.Tensor)]) else _NODE.apply
    return apply(of, dtype, device, *arrays)


def _by_torch(of: Elementwise, arrays: Sequence[Any]) -> tuple[Any, ...]:
    """Run the function with torch, in f32 or in f64 if an array has it, and broadcast the results."""
    elements = [element_name(x.dtype) for x in arrays if isinstance(x, torch.Tensor)]
    compute = compute_type(elements, None)
    given = [_wide(x, compute) if isinstance(x, torch.Tensor) else x for x in arrays]
    found = of.function(*given)
    shape = torch.broadcast_shapes(*[x.shape for x in arrays if isinstance(x, torch.Tensor)])
    results = found if isinstance(found, tuple | list) else (found,)
    made = [x if isinstance(x, torch.Tensor) else torch.as_tensor(x, dtype=torch.float32) for x in results]
    return tuple([x.expand(shape) for x in made])


def _kind(x: torch.Tensor) -> str:
    """Return the kind of a tensor's elements: "b" (boolean), "i" (integer) or "f" (float)."""
    return "b" if x.dtype == torch.bool else "f" if x.dtype.is_floating_point else "i"


def _floats(x: torch.Tensor) -> torch.Tensor:
    """Convert a tensor to f32, but leave f64."""
    return x if x.dtype == torch.float64 else x.float()


def _wide(x: torch.Tensor, compute: str) -> torch.Tensor:
    """Convert a tensor to the compute type, but leave booleans."""
    return x if x.dtype == torch.bool else x.to(getattr(torch, torch_name(compute)))


class _Slope(NamedTuple):
    """The derivative of a function for arrays of some types and shapes."""

    # For each argument that needs a gradient: n for result n of the kernel, or -1 - n for the given gradient n.
    places: tuple[int, ...]
    # Takes the given gradients and the function's arguments, and returns a tuple; None if nothing is left to compute.
    kernel: Elementwise | None


def _slope_of(of: Elementwise, arrays: Sequence[Any], needs: Sequence[bool], given: Sequence[int]) -> _Slope | None:
    """Return the derivative of a function, or None if it has none by rule or depends on a number's value.

    Args:
        needs: for each argument, whether it needs a gradient.
        given: the results whose gradients are given.
    """
    key = (
        tuple([
            (x.dtype, x.shape) if isinstance(x, torch.Tensor) else float if type(x) is float else repr(x)
            for x in arrays
        ]),
        tuple(needs), tuple(given),
    )  # fmt: skip
    if key not in of.slopes:
        if len(of.slopes) >= _MOST:
            of.slopes.clear()
        try:
            of.slopes[key] = _derived(of, arrays, needs, given)
        except EpilogueError:
            of.slopes[key] = None
    return of.slopes[key]


_FLOATS = (torch.float16, torch.bfloat16, torch.float32)
"""Types whose derivatives are computed by a kernel, in f32."""

_MOST = 256
"""Limit of cached derivatives of a function."""


def _derived(of: Elementwise, arrays: Sequence[Any], needs: Sequence[bool], given: Sequence[int]) -> _Slope | None:
    tensors = [x.detach() for x in arrays if isinstance(x, torch.Tensor)]
    if any([x.dtype not in _FLOATS for x in tensors]):
        return None  # The kernel of the derivative would compute in the type of the arrays.
    found = of.traced(arrays, [view_of(x) for x in tensors])
    graph, inputs = found.graph, found.inputs
    if found.places:
        return None
    if any([type(x) is float and i not in inputs for i, x in enumerate(arrays)]):
        return None
    wanted = [i for i, need in enumerate(needs) if need]
    shape = torch.broadcast_shapes(*[x.shape for x in tensors])
    grads = [torch.empty(1, dtype=torch.float32).expand(shape) for _ in given]
    whole = _function(graph, inputs, wanted, given)
    made = type(of)(whole).traced([*grads, *arrays], [view_of(x) for x in (*grads, *tensors)])
    places: list[int] = []
    kept: list[int] = []
    for i, output in enumerate(made.graph.outputs):
        node = made.graph.nodes[output.node]
        source = made.inputs[node.value] if node.op == "load" else len(grads)
        places.append(-1 - source if source < len(grads) else len(kept))
        if source >= len(grads):
            kept.append(i)

    def slope(*values: Any) -> tuple[Any, ...]:
        found = whole(*values)
        return tuple([found[i] for i in kept])

    return _Slope(tuple(places), type(of)(slope, f"gradient of {of.name}") if kept else None)


def _function(
    graph: Graph, inputs: Sequence[int], wanted: Sequence[int], given: Sequence[int]
) -> Callable[..., tuple[Any, ...]]:
    """Return the function that computes the gradients of the ``wanted`` arguments from given gradients and all
    arguments.
    """

    def slope(*values: Any) -> tuple[Any, ...]:
        arguments = values[len(given) :]
        forward: list[Any] = []
        for node in graph.nodes:
            operands = [forward[i] for i in node.operands]
            if node.op == "load":
                forward.append(arguments[inputs[node.value]])
            elif node.op == "constant":
                forward.append(constant_of(node))
            elif node.op == "cast":
                forward.append(operands[0].cast(node.value))
            elif any([isinstance(x, Proxy) for x in operands]):
                forward.append(call(node.op, *operands))
            else:
                forward.append(getattr(functions, node.op)(*operands))
        needed: list[bool] = []
        for node in graph.nodes:
            own = node.op == "load" and inputs[node.value] in wanted
            needed.append(own or (node.op not in WITHOUT and any([needed[i] for i in node.operands])))
        slopes: list[Any] = [None] * len(graph.nodes)

        def add(i: int, g: Any) -> None:
            if g is not None and needed[i]:
                slopes[i] = g if slopes[i] is None else slopes[i] + g

        for g, number in zip(values, given):
            add(graph.outputs[number].node, g)
        for i in reversed(range(len(graph.nodes))):
            node, g = graph.nodes[i], slopes[i]
            if g is None or node.op == "load" or node.op in WITHOUT:
                continue
            if node.op == "cast":
                add(node.operands[0], g)
                continue
            operands = [forward[k] for k in node.operands]
            for k, x in zip(node.operands, rule_of("elementwise", node.op)(g, forward[i], *operands)):
                add(k, x)
        of = {inputs[node.value]: slopes[i] for i, node in enumerate(graph.nodes) if node.op == "load"}
        return tuple([0.0 if of.get(i) is None else of[i] for i in wanted])

    return slope


def _kinds_of_sum(of: Elementwise, arrays: Sequence[Any]) -> list[tuple[Any, ...] | None] | None:
    """Return shape and type of each array that needs a gradient if all gradients equal that of the result.

    Such a function, for example an addition, saves no arrays.  Return None for any other function.
    """
    needs = [isinstance(x, torch.Tensor) and x.requires_grad for x in arrays]
    slope = _slope_of(of, arrays, needs, (0,))
    if slope is None or slope.kernel is not None or len(slope.places) != sum(needs):
        return None
    return [(x.shape, x.dtype) if need else None for x, need in zip(arrays, needs)]


def _forward(ctx: Context, of: Any, dtype: Any, device: Any, *arrays: Any) -> Any:
    """Run the kernel."""
    ctx.of, ctx.device, ctx.numbers = of, device, [None if isinstance(x, torch.Tensor) else x for x in arrays]
    result = of(*arrays, dtype=dtype, device=device)  # Gradients are disabled here.
    kind = None if isinstance(result, tuple) else (result.shape, result.dtype)
    kinds = None if kind is None else _kinds_of_sum(of, arrays)
    ctx.settings, ctx.kinds = no_settings, kinds
    if kinds is None:
        ctx.save_for_backward(*[x for x in arrays if isinstance(x, torch.Tensor)])
    elif all([x in (None, kind) for x in kinds]):
        ctx.aliases = (False, False, False, *[x is not None for x in kinds])
    ctx.set_materialize_grads(False)
    return result


def _backward(ctx: Context, *gradients: Any) -> Any:
    """Compute the gradients of the arrays that need them."""
    if ctx.kinds is not None:
        (dy,) = gradients
        return None, None, None, *[None if x is None or dy is None else summed(dy, *x) for x in ctx.kinds]
    saved = iter(ctx.saved_tensors)
    arrays = [next(saved) if x is None else x for x in ctx.numbers]
    needs = ctx.needs_input_grad[3:]
    given = [i for i, g in enumerate(gradients) if g is not None]
    slope = None
    if not torch.is_grad_enabled() and given:
        slope = _slope_of(ctx.of, arrays, needs, given)
    if slope is None:
        return None, None, None, *_gradients_by_torch(ctx.of, arrays, needs, gradients)
    grads = [gradients[i] for i in given]
    found: Sequence[Any] = ()
    if slope.kernel is not None:
        wanted = [x for x, need in zip(arrays, needs) if need]
        computed = [x for x, place in zip(wanted, slope.places) if place >= 0]
        kinds = {x.dtype for x in computed}
        # Gradients that are reduced later stay in f32, so that they are rounded once.
        exact = len(kinds) == 1 and all([x.shape == grads[0].shape for x in computed])
        dtype = kinds.pop() if exact else torch.float32
        found = slope.kernel(*grads, *arrays, dtype=dtype, device=ctx.device)
    places = iter(slope.places)
    made: list[Any] = []
    for x, need in zip(arrays, needs):
        if not need:
            made.append(None)
            continue
        place = next(places)
        made.append(summed(found[place] if place >= 0 else grads[-1 - place], x.shape, x.dtype))
    return None, None, None, *made


_NODE = node_of(_forward, _backward)
_APPLY = apply_of(_NODE)


def _gradients_by_torch(
    of: Elementwise, arrays: Sequence[Any], needs: Sequence[bool], gradients: Sequence[Any]
) -> list[Any]:
    """Return the gradients of a function that torch runs on the arrays in f32, or f64 if an array has it."""
    again = torch.is_grad_enabled()  # True with create_graph=True: the gradients need gradients.
    with torch.enable_grad():
        if again:
            wanted = [_floats(x) if need else x for x, need in zip(arrays, needs)]
        else:
            wanted = [
                _floats(x.detach()).requires_grad_() if need else x.detach() if isinstance(x, torch.Tensor) else x
                for x, need in zip(arrays, needs)
            ]
        pairs = [(y, dy) for y, dy in zip(_by_torch(of, wanted), gradients) if dy is not None]
        results = [(y, dy.to(y.dtype)) for y, dy in pairs if y.requires_grad]
        over = [x for x, need in zip(wanted, needs) if need]
        found: Any = [None] * len(over)
        if results:
            ys, dys = zip(*results)
            found = torch.autograd.grad(ys, over, dys, allow_unused=True, create_graph=again)
    found = iter(found)
    made: list[Any] = []
    for x, need in zip(arrays, needs):
        dx = next(found) if need else None
        made.append(None if dx is None else dx.to(x.dtype))
    return made
