"""Gradients without the accumulator: one elementwise kernel, and reductions of its partial sums."""

# torch is not installed where the types are checked.
# pyright: reportMissingImports=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownParameterType=false

from __future__ import annotations

from collections.abc import Mapping
from math import prod
from typing import Any

from cute_dialect.kernels.common.elements import BITS
from cute_dialect.kernels.elementwise_sums import ROWS, SumsPlan, elementwise_sums_text
from cute_dialect.kernels.epilogue.finish_reduction import combine_parts_text
from cute_dialect.kernels.epilogue.graph import Graph, Input, Output
from cute_dialect.op.epilogue.bind import as_bytes, matrix_view, read_as
from cute_dialect.op.epilogue.reducing import Reduced, combining, memory_of
from cute_dialect.op.epilogue.saved_tensors import Slope
from cute_dialect.op.errors import UnsupportedError
from cute_dialect.op.execute.call_cache import KnownCalls
from cute_dialect.op.rows.call import RowCall, RowKernel
from cute_dialect.runtime.arrays import ArrayView, view_of

__all__ = ["SlopeCall"]

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
        done = None
        if device is None and not self._drawn:
            tensors, numbers = self._key(args)
            done = self._known.again(numbers, *tensors)
        if done is None:
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
        given, numbers = self._key(args)
        tensors = dict(zip(self._tensors, given))
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
        if device is None and not self._drawn:
            one.remember(self._known, numbers, given, tuple(made))
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
