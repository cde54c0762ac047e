"""Gradients of GEMMs and of their epilogues, for the operators and autograd nodes of all kinds of GEMMs.

A GEMM with an activation saves the operand of the activation, except for relu, whose derivative needs only the result.
The derivative kernel (:func:`slope`) multiplies a gradient by the derivative of the activation and sums its columns,
which is the gradient of a per-column bias.
"""

# torch is not installed where types are checked.
# pyright: reportMissingImports=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownParameterType=false

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache, lru_cache
from inspect import Parameter, Signature
from math import floor, log2, prod
from typing import Any, NamedTuple

import torch

from cute_dialect.kernels.common.elements import BITS
from cute_dialect.kernels.elementwise.sums import ROWS, SumsPlan, elementwise_sums_text
from cute_dialect.kernels.epilogue.activations import is_activation, unknown_activation
from cute_dialect.kernels.epilogue.graph import Graph, Input, Output
from cute_dialect.kernels.epilogue.reductions import combine_parts_text
from cute_dialect.op.arrays.dtypes import element_name, result_of, torch_name
from cute_dialect.op.epilogue.bind import Reduced, as_bytes, combining, matrix_view, memory_of, read_as
from cute_dialect.op.epilogue.derivative import Slope, reading
from cute_dialect.op.epilogue.functions import abs, activated, clamp, where
from cute_dialect.op.epilogue.functions import sum as sum_of
from cute_dialect.op.epilogue.tracing import FakeTensor, trace
from cute_dialect.op.errors import EpilogueError, UnsupportedError
from cute_dialect.op.execute.array_call import RowCall, RowKernel
from cute_dialect.op.execute.call_cache import KnownCalls
from cute_dialect.op.torch.registry import CUTE
from cute_dialect.runtime.arrays import ArrayView, view_of

# -------------------------------------------------------------------------------------------------- elementwise kernels


_MOST = 2**31
"""Limit of blocks of a launch."""


class SlopeCall:
    """``gradients = SlopeCall(slope, sums, {"D": "bf16"})({"grad_D": g, "kept": z, …})``: results by name.

    Results have the shape of the accumulator, or half its columns, and extent 1 along reduced modes.

    Args:
        slope: the derivative.
        sums: shape of the accumulator.
        kinds: types of the results by name.

    Raises:
        OpError: when called, if the problem is not supported.
    """

    def __init__(self, slope: Slope, sums: tuple[int, ...], kinds: Mapping[str, str]) -> None:
        self.slope, self.sums, self.kinds = slope, sums, dict(kinds)
        self._known = KnownCalls(tf32=False)
        arguments = {a.name: a for a in slope.traced.arguments}
        self._arguments = [arguments[n] for n in slope.names]
        numbers = [x.number for x in slope.graph.inputs]
        self._tensors = [n for n, number in zip(slope.names, numbers) if not number]
        self._numbers = [n for n, number in zip(slope.names, numbers) if number]
        self._drawn = any([x.number and x.element == "i64" for x in slope.graph.inputs])

    def __call__(self, args: Mapping[str, Any], device: object = None) -> dict[str, Any]:
        """Compute the gradients."""
        found: dict[str, Any] = {name: args[of] for name, of in self.slope.same.items()}
        if not self.slope.results:
            return found
        if device is None and not self._drawn:
            tensors, numbers = self._key(args)
            done = self._known.call(numbers, tensors, lambda: self.computed(args))
        else:
            done = self.computed(args, device)
        return found | dict(zip(self.slope.results, done))

    def kernels(self, args: Mapping[str, Any]) -> list[RowKernel]:
        """Return the kernels of a call with NumPy arrays of the same layouts."""
        seen: list[RowKernel] = []
        self.computed(args, "cpu", seen)
        return seen

    def _key(self, args: Mapping[str, Any]) -> tuple[tuple[Any, ...], tuple[str, ...]]:
        """Return the tensors to read, and the numbers that identify a specialization."""
        return tuple([as_bytes(args[n]) for n in self._tensors]), tuple([repr(args[n]) for n in self._numbers])

    def computed(
        self, args: Mapping[str, Any], device: object = None, seen: list[RowKernel] | None = None
    ) -> tuple[Any, ...]:  # fmt: skip
        """Compute gradients without a cached call.  If ``seen`` is given, only append the kernels to it and launch
        nothing.
        """
        tensors = dict(zip(self._tensors, self._key(args)[0]))
        traced, sums = self.slope.traced, self.sums
        one = RowCall(traced.name, tensors, device, tuple(tensors), tuple(BITS) + ("i64",))
        matrices = sums[0] if len(sums) == 3 else 1
        inputs, operands = self._inputs(tensors, args)
        made = [self._result(one, name, x) for name, x in zip(self.slope.results, self.slope.graph.outputs)]
        if 0 in sums:
            for t, x in zip(made, self.slope.graph.outputs):
                if x.reduce:
                    t.fill_(0)
            return tuple(made)
        outputs = [
            x._replace(element="f32" if x.reduce else view_of(t).dtype, axis="n" if x.axis == "nm" else x.axis)
            for x, t in zip(self.slope.graph.outputs, made)
        ]
        graph = Graph(self.slope.graph.nodes, tuple(inputs), tuple(outputs))
        stored = [None if x.reduce else view_of(matrix_view(t, (matrices > 1, True, True)))
                  for x, t in zip(outputs, made)]  # fmt: skip
        plan = planned(graph, [*operands, *stored], sums)
        if -(-sums[-1] // plan.columns) * -(-sums[-2] // ROWS) * matrices >= _MOST:
            raise UnsupportedError(
                f"{one.name}: shape {sums} is too large for one launch; it may have fewer than {_MOST} blocks of "
                f"{ROWS} x {plan.columns} elements"
            )

        def memory(count: int) -> ArrayView:
            return view_of(one.result((count,), "f32"))

        parts: list[tuple[Reduced, ArrayView]] = []
        results: list[ArrayView] = []
        for x, own, t, view in zip(graph.outputs, self.slope.graph.outputs, made, stored):
            if view is None:
                extents = plan.parts(x, *sums[-2:])
                view = memory_of(memory(prod(extents) * matrices), extents, matrices)
                parts.append((Reduced(0, x.reduce, own.axis, view_of(t)), view))
            results.append(view)
        first = RowKernel(plan.name, elementwise_sums_text, (plan,))
        launches: list[tuple[RowKernel, tuple[Any, ...]]] = [
            (first, (*operands, *results, sums[-2], sums[-1], matrices))
        ]
        for x, view in parts:
            for step in combining(x, view, memory):
                combiner = RowKernel(step.config.name, combine_parts_text, (step.config,))
                launches.append((combiner, (step.parts, step.results)))
        if seen is not None:
            seen += [kernel for kernel, _ in launches]
            return ()
        for kernel, taken in launches:
            one.launch(kernel, *taken)
        return tuple(made)

    def _inputs(self, tensors: Mapping[str, Any], args: Mapping[str, Any]) -> tuple[list[Input], list[Any]]:
        """Return the graph inputs, and views of the arrays, or numbers, to read."""
        inputs: list[Input] = []
        operands: list[Any] = []
        like = next(iter(tensors.values()))
        for argument, x in zip(self._arguments, self.slope.graph.inputs):
            given = tensors.get(argument.name, args[argument.name])
            read, array = read_as(self.slope.traced, argument, x, given, self.sums, like)
            inputs.append(read._replace(pairs=False))
            operands.append(array if x.number else view_of(array))
        return inputs, operands

    def _result(self, one: RowCall, name: str, x: Output) -> Any:
        """Allocate a result."""
        sums, half = self.sums, self.slope.graph.halves[x.node]
        n = sums[-1] // 2 if half else sums[-1]
        axis = x.axis if x.reduce else ""
        shape = (*sums[:-2], 1 if "m" in axis else sums[-2], 1 if "n" in axis else n)
        return one.result(shape, "f32" if x.reduce else self.kinds[name])


def planned(graph: Graph, arrays: list[Any], sums: tuple[int, ...]) -> SumsPlan:
    """Choose the vector width and the vectorized arrays of the kernel; `arrays` are the inputs, then the results (None
    for sums).
    """
    halves = [x.half for x in graph.inputs] + [graph.halves[x.node] for x in graph.outputs]
    kinds = [x.kind for x in graph.inputs] + ["" if x.reduce else "aux" for x in graph.outputs]
    split = [bool(x.split) for x in graph.inputs] + [False for _ in graph.outputs]
    narrow = [BITS.get(x.dtype, 64) for x, kind in zip(arrays, kinds) if kind == "aux"]
    width = 8 if min(narrow, default=16) <= 16 else 4
    lying = list(zip(kinds, arrays, halves, split))

    def suits(x: ArrayView, kind: str, half: bool, split: bool, along: int) -> bool:
        count = width // 2 if half else width
        item = BITS.get(x.dtype, 64) // 8
        steps = [s for i, s in enumerate(x.strides) if i != along]
        plain = not split and x.dtype in BITS and x.strides[along] == 1
        return plain and x.pointer % min(16, count * item) == 0 and all([s % count == 0 for s in steps])

    even = sums[-1] % width == 0
    vectors = [
        even and kind in ("aux", "row") and suits(x, kind, half, cut, 1 if kind == "aux" else 0)
        for kind, x, half, cut in lying
    ]
    if not all([v for v, kind in zip(vectors, kinds) if kind == "aux"]):
        width, vectors = 2, [False] * len(vectors)
    return SumsPlan(graph, width, sums[-1] % width == 0, tuple(vectors), len(sums) == 3 and sums[0] > 1)


# --------------------------------------------------------------------------------------------------- gradients of GEMMs


def torch_dtype(dtype: Any) -> torch.dtype | None:
    """Return the dtype of torch that a name or a dtype of another library denotes; None remains None."""
    if dtype is None or isinstance(dtype, torch.dtype):
        return dtype
    return getattr(torch, torch_name(element_name(dtype)))


def result_dtype(a: torch.Tensor, dtype: torch.dtype | None) -> torch.dtype:
    """Return the dtype of a GEMM's result; ``dtype``: that of the call, None for the default."""
    return dtype or getattr(torch, torch_name(result_of(element_name(a.dtype))))


def kept_type(a: torch.Tensor, dtype: torch.dtype | None) -> torch.dtype | None:
    """Return the type of the saved operand: None for the result's type, that of the factors for 8-bit results."""
    return a.dtype if dtype is not None and dtype.itemsize == 1 else None


def kept_element(a: torch.Tensor, dtype: Any) -> str:
    """Return the name of the type of the saved operand; ``dtype``: that of the result, None for the default."""
    usual = result_of(element_name(a.dtype)) if dtype is None else element_name(dtype)
    kind = kept_type(a, getattr(torch, torch_name(usual)))
    return usual if kind is None else element_name(kind)


class _Like(NamedTuple):
    """Type and shape of a tensor argument of an epilogue."""

    element: str
    shape: tuple[int, ...]


def _like(t: torch.Tensor) -> _Like:
    return _Like(element_name(t.dtype), tuple(t.shape))


def keeping_epilogue(
    activation: str, shape: tuple[int, ...], c: torch.Tensor | None, bias: torch.Tensor | None, element: str
) -> Any:  # fmt: skip
    """Return the epilogue of a GEMM with an activation that also returns its operand; ``element``: its type."""
    return _keeping(activation, shape, *(None if t is None else _like(t) for t in (c, bias)), element)


@lru_cache(maxsize=256)
def _keeping(activation: str, sums: tuple[int, ...], c: _Like | None, bias: _Like | None, element: str) -> Any:
    examples: dict[str, Any] = {"accum": FakeTensor("f32", sums), "alpha": 0.5}
    examples |= {} if c is None else {"C": FakeTensor(*c), "beta": 0.5}
    examples |= {} if bias is None else {"bias": FakeTensor(*bias)}
    function = keeping_function(activation, c is not None, bias is not None, element)
    return trace(function, examples, runtime=("alpha", "beta"))


_JUMPS = {"relu6": 6.0, "hardsigmoid": 3.0, "hardswish": 3.0}
"""Activations -> the number at which, and at whose negative, the derivative is discontinuous."""
_BITS = {"bf16": 7, "f16": 10}
"""Types that the operand of an activation is rounded to -> the number of fraction bits."""


@cache
def keeping_function(activation: str, c: bool, bias: bool, element: str) -> Any:
    """Return the epilogue that returns an activation and its operand, rounded to ``element``; cached.

    Rounding must not move the operand across a discontinuity of the derivative.  For example, -2.9927 as bf16 would be
    -3, where the derivative of hardswish is 0 instead of -0.5.  Raises EpilogueError for an unknown activation.
    """
    if not is_activation(activation):
        raise EpilogueError(unknown_activation(activation))
    function: Any = activated(activation)
    jump, bits = _JUMPS.get(activation.partition("(")[0]), _BITS.get(element)
    within = 0.0 if jump is None or bits is None else jump - 2.0 ** (floor(log2(jump)) - bits)

    def kept(accum: Any, **given: Any) -> Any:
        x = given["alpha"] * accum
        x = x + given["beta"] * given["C"] if c else x
        x = x + given["bias"] if bias else x
        return {"D": function(x), "sums": where(abs(x) < jump, clamp(x, -within, within), x) if within else x}

    names = ["accum", "alpha", *(("C", "beta") if c else ()), *(("bias",) if bias else ())]
    kept.__signature__ = Signature([Parameter(n, Parameter.KEYWORD_ONLY) for n in names])  # type: ignore[attr-defined]
    kept.__name__ = activation
    return kept


def slope(
    grad: torch.Tensor, sums: torch.Tensor, activation: str, device: str = ""
) -> tuple[torch.Tensor, torch.Tensor]:  # fmt: skip
    """Return a gradient times the derivative of an activation at ``sums``, and its column sums in f32."""
    found = _slope_call(activation, tuple(grad.shape), element_name(grad.dtype))
    found = found({"grad": grad, "sums": sums}, device or None)
    return found["D"], found["columns"]


@lru_cache(maxsize=256)
def _slope_call(activation: str, shape: tuple[int, ...], element: str) -> Any:
    """Return the call that multiplies a gradient by the derivative of an activation and sums its columns."""
    derivative: Any = activated(activation, derivative=True)

    def slope_of(accum: Any, grad: Any, sums: Any) -> Any:
        D = derivative(sums) * grad
        return {"D": D, "columns": sum_of(D, -2)}

    slope_of.__name__ = f"gradient of {activation}"
    traced = trace(slope_of, {n: FakeTensor("f32", shape) for n in ("accum", "grad", "sums")})
    return SlopeCall(reading(traced, ("D", "columns")), shape, {"D": element})


def by_column(shape: torch.Size) -> bool:
    """Return True if a tensor of this shape broadcasts along the rows of the result."""
    return len(shape) == 1 or (len(shape) == 2 and shape[0] == 1)


def keep_operands(
    ctx: Any, factors: Sequence[torch.Tensor], added: Sequence[torch.Tensor | None], activation: str, output: Any
) -> None:  # fmt: skip
    """Save the tensors that the gradients of an operator read: the factors, the addends, and the operand or the result
    of the activation.

    Args:
        added: the addends; they are saved if the operand of the activation is recomputed.
        output: the result, or the result and the operand of the activation.
    """
    ctx.added = [None if t is None else (t.shape, t.dtype) for t in added]
    ctx.set_materialize_grads(False)
    if isinstance(output, tuple):
        ctx.save_for_backward(*factors, *[None for _ in added], output[1])
        return
    again = activation not in ("", "relu")
    ctx.save_for_backward(
        *factors, *[t if again else None for t in added], output if activation == "relu" else None
    )  # fmt: skip


def activation_gradient(
    call: str, grad: torch.Tensor | None, of_sums: torch.Tensor | None, activation: str, kept: torch.Tensor | None,
    recompute: Callable[[torch.dtype], torch.Tensor], derivative: Callable[..., Any], device: str,
) -> tuple[torch.Tensor | None, torch.Tensor | None]:  # fmt: skip
    """Return the gradient of the operand of an activation, and its column sums if a kernel has computed them.

    Raises UnsupportedError if second derivatives need the graph of the operand, which replayed calls do not have.

    Args:
        call: name of the public function.
        grad: gradient of the result, None for zero.
        of_sums: gradient of the operand as a second result of the call; None for zero.
        kept: the result of relu, or the operand of another activation; None to recompute it.
        recompute: function of a type that computes the operand again, in that type.
        derivative: the operator that multiplies by the derivative and sums columns.
    """
    columns = None
    if grad is not None and activation == "relu":
        assert kept is not None
        grad = torch.where(kept > 0, grad, 0)
    elif grad is not None and activation:
        if kept is not None and torch.is_grad_enabled() and not kept.requires_grad:
            raise second_derivative_error(call)
        kept = recompute(grad.dtype) if kept is None else kept
        grad, columns = derivative(grad, kept, activation, device)
    if of_sums is None:
        return grad, columns
    return of_sums if grad is None else grad + of_sums, None


def second_derivative_error(call: str) -> UnsupportedError:
    """Return the error for a second derivative of a function with an activation."""
    return UnsupportedError(f"{call}: an activation has no second derivative; apply the activation with torch instead")


def factor_gradients(
    call: str, a: torch.Tensor, b: torch.Tensor, grad: torch.Tensor, needed: Sequence[bool], alpha: float,
    options: Mapping[str, Any],
) -> tuple[torch.Tensor | None, torch.Tensor | None]:  # fmt: skip
    """Return the gradients of the factors of a GEMM, those that are needed.

    Args:
        grad: gradient of the accumulator.
        needed: whether the gradient of ``a``, and that of ``b``, is needed.
        options: ``device``, ``math`` and ``accumulator`` of the GEMMs.
    """
    product = getattr(CUTE, call)
    g = grad.to(a.dtype)
    g = g if g.stride(-1) == 1 or g.stride(-2) == 1 else g.contiguous()
    of_a = of_b = None
    if needed[0]:
        several = call == "bmm" and a.shape[0] == 1 and g.shape[0] > 1
        of_a = product(g, b.mT, alpha=alpha, dtype=torch.float32 if several else a.dtype, **options)
        of_a = summed(of_a, a.shape, a.dtype)
    if needed[1]:
        if call == "bmm" and b.shape[0] == 1:  # one GEMM over the rows of all matrices sums over the batch
            x, y = (torch.broadcast_to(t, (g.shape[0], *t.shape[1:])).flatten(0, 1) for t in (a, g))
            of_b = CUTE.mm(x.t(), y, alpha=alpha, dtype=b.dtype, **options)[None]
        else:
            of_b = product(a.mT, g, alpha=alpha, dtype=b.dtype, **options)
    return of_a, of_b


def summed(grad: torch.Tensor, shape: torch.Size, dtype: torch.dtype) -> torch.Tensor:
    """Return the gradient of an array that was broadcast: the sum, in f32, over the broadcast modes."""
    if grad.shape == shape and grad.dtype == dtype:
        return grad
    full = (*(1,) * (grad.dim() - len(shape)), *shape)
    axes = [i for i, (have, was) in enumerate(zip(grad.shape, full)) if was == 1 and have != 1]
    if axes and grad.is_cuda and grad.dtype == dtype:  # torch sums in f32 and rounds once
        grad = grad.sum(axes, keepdim=True)
    elif axes:
        grad = grad.sum(axes, keepdim=True, dtype=torch.float32)
    return grad.reshape(shape).to(dtype)
