"""A traced epilogue bound to the arrays of a call.

:func:`bound` gives the operands of the kernel.  :func:`combining` gives the launches that combine the partial results
of reductions.  Kernels that store plain matrices only compute a reshaping epilogue as :class:`Apart`: its arguments are
brought into the accumulator's shape before the launch, and its results are copied into their own shapes.
"""

# Arrays belong to torch or NumPy.
# pyright: reportMissingImports=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownParameterType=false

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from math import prod
from typing import Any, NamedTuple

from cute_dialect.kernels.epilogue.graph import REDUCTIONS, STRIP, Graph, Input, Node, Output, evaluate, parts_of
from cute_dialect.kernels.epilogue.reductions import CombineConfig
from cute_dialect.op.arrays.dtypes import element_name, torch_name
from cute_dialect.op.arrays.library import aligned_strides
from cute_dialect.op.arrays.operand_views import overlap, same_matrix
from cute_dialect.op.epilogue.combination import as_type, functions_of, store
from cute_dialect.op.epilogue.functions import combined
from cute_dialect.op.epilogue.output_layout import Argument, View, as_array, as_sums, laid
from cute_dialect.op.epilogue.tracer_values import INTEGERS
from cute_dialect.op.epilogue.tracing import FakeTensor, Traced, broadcast_kind, missing_arguments, trace
from cute_dialect.op.errors import DeviceError, EpilogueError, LayoutError, ShapeError
from cute_dialect.op.keywords import similar
from cute_dialect.runtime.arrays import ArrayView, numpy_dtype, view_of

STORED = ("f16", "bf16", "f32", "f8E4M3FN", "f8E5M2", "i8", "ui8")
"""Types of results other than D.  Reduced results have one of the first three."""


class Bound(NamedTuple):
    """A graph with the arrays of a call."""

    traced: Traced
    graph: Graph
    reads: tuple[str, ...]  # names of the inputs
    inputs: tuple[Any, ...]  # arrays (as the kernel reads them) or numbers
    stored: tuple[Any, ...]  # arrays of the results other than D, None for reduced ones
    results: dict[str, Any]  # all results as the caller passed or gets them
    sums: tuple[int, ...]  # shape of the accumulator
    given: tuple[tuple[Any, View | None], ...]  # the inputs as passed, with the views of reshaped or permuted ones

    @property
    def names(self) -> list[str]:
        """Names of the launch arguments after the matrices, "" for numbers."""
        read = ["" if x.number else name for name, x in zip(self.reads, self.graph.inputs)]
        return [*read, *self.traced.results[1:]]

    @property
    def operands(self) -> list[Any]:
        """Launch arguments after the matrices.  The partial results of reductions are None."""
        return [*self.inputs, *self.stored]

    @property
    def reduced(self) -> list[Reduced]:
        """The reduced results, with their positions among :attr:`operands`."""
        found: list[Reduced] = []
        for i, (name, x) in enumerate(zip(self.traced.results[1:], self.traced.graph.outputs[1:])):
            if x.reduce:
                half = self.traced.graph.halves[x.node]
                found.append(Reduced(len(self.inputs) + i, x.reduce, x.axis, view_of(self.results[name]), half))
        return found

    def check_memory(self, call: str, d: ArrayView, factors: Mapping[str, ArrayView]) -> None:
        """Check that no result shares memory with a factor, another result or an argument.

        An argument may be the same matrix as a result, because each element is read before it is written.

        Args:
            d: the result D.
            factors: the matrices that the GEMM reads, by name.

        Raises:
            LayoutError: if memory is shared.
        """
        launched = {
            n: t if x.element != "e8m0" else _exponents(self.traced, n, t)
            for (n, t), x in zip(self.results.items(), self.traced.graph.outputs)
        }
        results = {n: d if n == "D" else view_of(t) for n, t in launched.items()}
        plain = not self.traced.views
        for i, (name, view) in enumerate(results.items()):
            others = list(results.items())[:i] + (list(factors.items()) if name != "D" else [])
            for other, there in others:
                if overlap(view, there):
                    raise LayoutError(f"{call}: {name} shares memory with {other}; pass separate arrays")
            for other, x, taken, (given, own) in zip(self.reads, self.graph.inputs, self.inputs, self.given):
                if x.number or not overlap(view, view_of(taken)):
                    continue
                if not plain or own is not None or x.kind != "aux" or not same_matrix(view, view_of(given)):
                    raise LayoutError(
                        f"{call}: {name} shares memory with {other}; only an argument that is exactly the same matrix "
                        "may be overwritten"
                    )

    def nothing(self) -> None:
        """Fill reduction outputs with their identity when the input is empty."""
        for name, x in zip(self.traced.results, self.traced.graph.outputs):
            if x.reduce:
                self.results[name][...] = REDUCTIONS[x.reduce]

    def by_library(self, sums: Any) -> None:
        """Compute the results with NumPy or torch, in f32, from an accumulator array of the shape of D."""
        sums, of_torch = as_type(sums, "f32"), hasattr(sums, "copy_")

        def place(index: str) -> Any:
            axis = {"matrix": -3, "row": -2, "column": -1}[index]
            shape = [1] * sums.ndim
            if -axis > sums.ndim:
                return as_type(sums[(0,) * sums.ndim] * 0, "i64")
            shape[axis] = -1
            extent = sums.shape[axis]
            if of_torch:
                import torch

                return torch.arange(extent, device=sums.device).view(shape)
            return import_module(type(sums).__module__.partition(".")[0]).arange(extent).reshape(shape)

        def spread(x: Input, t: Any, of: tuple[Any, View | None]) -> Any:
            given, view = of
            if x.number and x.element == "i64":
                return int(t)
            if x.number:
                return sums[(0,) * sums.ndim] * 0 + float(t)
            if view is not None:
                shape = (*self.sums[:-1], self.sums[-1] // 2) if x.half else self.sums
                given = given if x.element in ("ui8", "i32", "i64") else as_type(given, "f32")
                return as_sums(given, view, shape)
            t = as_type(t, "f32") if x.element not in ("ui8", "i32", "i64") else t
            if x.batch:  # The kernel's layout has the batch mode last.
                axes = (t.ndim - 1, *range(t.ndim - 1))
                t = t.permute(axes) if of_torch else t.transpose(axes)
            if x.kind == "row":
                return t[..., None, :]
            if x.kind == "column":
                return t[..., None]
            return t.reshape(-1, 1, 1) if x.kind == "matrix" else t

        inputs = [spread(*both) for both in zip(self.graph.inputs, self.inputs, self.given)]
        values = evaluate(self.graph, sums, inputs, functions_of(sums), place)
        for name, x in zip(self.traced.results, self.traced.graph.outputs):
            node = self.graph.outputs[self.traced.results.index(name)].node
            value = values[node]
            if x.reduce:
                of = sums[..., ::2] if self.graph.halves[node] else sums
                value = combined(value + of * 0, x.reduce, tuple(["mn".index(a) - 2 for a in x.axis]))
            if x.block:
                value, to = value[..., :: x.block], self.results[name]
                if x.element == "f32":
                    store(to, value)
                else:
                    store(_exponents(self.traced, name, to), functions_of(sums).frexp(value)[1] + 126)
                continue
            view = self.traced.views.get(name)
            if view is not None:
                of = (*self.sums[:-1], self.sums[-1] // 2) if self.graph.halves[node] else self.sums
                value = as_array(value, view, of)
            store(self.results[name], value)


def traced_of(call: str, epilogue: Any, args: Mapping[str, Any], shape: Sequence[int]) -> Traced:
    """Return the trace of an epilogue for results of shape `shape`.  Raises EpilogueError."""
    if not isinstance(epilogue, Traced):
        if not isinstance(epilogue, Callable):
            raise EpilogueError(
                f"{call}: epilogue must be a function or the result of op.epilogue.trace, got {epilogue!r}"
            )
        traced = trace(epilogue, {**args, "accum": FakeTensor("f32", tuple(shape))})
    else:
        traced = epilogue
    missing = [n for n in traced.parameters if n not in args and n != "accum"]
    if missing:
        raise EpilogueError(f"epilogue {traced.name}: {missing_arguments(missing, traced.parameters, args)}")
    others = [n for n in args if n not in traced.parameters and n not in traced.results]
    if others:
        near = similar(others[0], [*traced.parameters, *traced.results])
        guess = f"; did you mean {near[0]!r}? Its" if near else "; its"
        raise EpilogueError(
            f"epilogue {traced.name}: args has unknown names {', '.join(others)}{guess} parameters are "
            f"{', '.join(traced.parameters)} and its results {', '.join(traced.results)}"
        )
    changed = {n: args[n] for n, value in traced.fixed.items() if not _same(args[n], value)}
    if changed:  # These numbers are constants of the graph, so other values need another graph.
        examples = {**args, "accum": FakeTensor("f32", tuple(shape))}
        traced = trace(traced.function, examples, runtime=[a.name for a in traced.arguments])
    return traced


def _same(x: Any, y: Any) -> bool:
    """Return True if two constants are equal in type and value, signs of zeros included."""
    return type(x) is type(y) and repr(x) == repr(y)


def alone(call: str, extras: Any) -> None:
    """Check that no other argument changes the result of a call with an epilogue.  Raises EpilogueError."""
    for name in ("c", "bias", "activation", "hook", "alpha"):
        value = getattr(extras, name)
        if value is not None and not (isinstance(value, str | float | int) and value in ("", 1.0)):
            raise EpilogueError(f"{call}: {name} cannot be combined with epilogue; compute it in the epilogue function")


def bound(
    traced: Traced, args: Mapping[str, Any], d: Any, sums: Sequence[int], make: Callable[[tuple[int, ...], str], Any]
) -> Bound:
    """Bind an epilogue to its arrays.

    Args:
        traced: the epilogue.
        args: its arguments, and memory for results by name.
        d: the result D.
        sums: shape of the accumulator.
        make: ``make(shape, type)`` allocates another result; type "" is that of ``d``.

    Raises:
        EpilogueError: if an argument or a result does not fit.
    """
    inputs: list[Input] = []
    arrays: list[Any] = []
    for argument, x in zip(traced.arguments, traced.graph.inputs):
        read, array = read_as(traced, argument, x, args[argument.name], tuple(sums), d)
        inputs.append(read)
        arrays.append(array)
    reads = [argument.name for argument in traced.arguments]
    given = [(args[argument.name], argument.view) for argument in traced.arguments]
    results, stored = {"D": d}, list[Any]()
    outputs = [_of_type(traced, "D", traced.graph.outputs[0], d)._replace(split="", element="")]
    for name, x in zip(traced.results[1:], traced.graph.outputs[1:]):
        t, shape = args.get(name), traced.shape_of(sums, name)
        if x.reduce and t is None:
            t = make(shape, "f32")
        t = _made(make, shape, x) if t is None else t
        if tuple(t.shape) != shape:
            raise EpilogueError(f"epilogue {traced.name}: {name} has shape {tuple(t.shape)}; it must have {shape}")
        _on_device(traced, name, t, d)
        if x.block:
            batch = len(shape) == 3 and shape[0] > 1
            results[name], bits = t, t if x.element == "f32" else _exponents(traced, name, t)
            element = element_name(bits.dtype)
            if x.element == "f32" != element:
                raise EpilogueError(f"epilogue {traced.name}: {name} has dtype {element}; it must have f32")
            outputs.append(x._replace(element=element, batch=batch))
            stored.append(matrix_view(bits, (batch, True, True)))
            continue
        element = element_name(t.dtype)
        _of_type(traced, name, x, t)
        if element not in (STORED[:3] if x.reduce else STORED):
            raise EpilogueError(
                f"epilogue {traced.name}: {name} has dtype {element}; it must have one of "
                f"{', '.join(STORED[: 3 if x.reduce else None])}"
            )
        results[name] = t
        if x.reduce:
            axis = "n" if x.axis == "nm" else x.axis
            outputs.append(x._replace(element="f32", batch=len(shape) == 3 and shape[0] > 1, axis=axis))
            stored.append(None)
            continue
        view = traced.views.get(name)
        if view is not None:
            of = traced.base_of(sums, x.node)
            array, split = _laid(view_of(t), view, of)
            batch = len(sums) == 3 and sums[0] > 1
            order, pairs = _order_of_digits(array, split, "mn") if split else _order(array, "aux")
            outputs.append(x._replace(element=element, batch=batch, order=order, pairs=pairs, split=split))
            stored.append(array)
            continue
        batch = len(shape) == 3 and shape[0] > 1
        view = matrix_view(t, (batch, True, True))
        order, pairs = _order(view, "aux")
        tma = order == "n" and _suits_tma(view)
        outputs.append(x._replace(element=element, batch=batch, order=order, pairs=pairs, tma=tma))
        stored.append(view)
    graph = Graph(traced.graph.nodes, tuple(inputs), tuple(outputs))
    for i in reversed(range(len(inputs))):  # An operand scaled by 0 is not read.
        zero = inputs[i].number and inputs[i].element != "i64" and float(arrays[i]) == 0.0
        if zero and any(n.op == "scaled" and graph.nodes[n.operands[0]] == Node("load", (), i) for n in graph.nodes):
            graph, kept = graph.with_zero(i)
            arrays, reads, given = [arrays[k] for k in kept], [reads[k] for k in kept], [given[k] for k in kept]
    return Bound(traced, graph, tuple(reads), tuple(arrays), tuple(stored), results, tuple(sums), tuple(given))


def _of_type(traced: Traced, name: str, x: Output, t: Any) -> Output:
    """Check that a result has the type that the epilogue produces.  Raises EpilogueError."""
    if x.element and element_name(t.dtype) != x.element:
        raise EpilogueError(
            f"epilogue {traced.name}: {name} has dtype {element_name(t.dtype)}; quantize() makes {x.element}"
        )
    return x


_EXPONENTS = "float8_e8m0fnu"


def _made(make: Callable[[tuple[int, ...], str], Any], shape: tuple[int, ...], x: Output) -> Any:
    """Allocate a result.  Exponents have the e8m0 type of torch or ml_dtypes."""
    if x.element != "e8m0":
        return make(shape, x.element)
    t = make(shape, "ui8")
    if hasattr(t, "data_ptr"):
        import torch

        return t.view(torch.float8_e8m0fnu)
    import ml_dtypes

    return t.view(ml_dtypes.float8_e8m0fnu)


def _exponents(traced: Traced, name: str, t: Any) -> Any:
    """Return e8m0 values as bytes.  Raises EpilogueError for another type."""
    kind = str(getattr(t.dtype, "name", t.dtype)).removeprefix("torch.")
    if kind not in (_EXPONENTS, "uint8"):
        raise EpilogueError(f"epilogue {traced.name}: {name} has dtype {kind}; it must have {_EXPONENTS}")
    if hasattr(t, "data_ptr"):
        import torch

        return t.view(torch.uint8)
    return t.view("uint8")


def described(x: Any) -> Any:
    """Return a NumPy array without contents that has the layout of an array or a :class:`FakeTensor`."""
    import numpy as np

    if isinstance(x, FakeTensor):
        shape = tuple(x.shape)
        last = list(reversed(range(len(shape))))
        modes = last if x.layout != "column" or len(shape) < 2 else [last[1], last[0], *last[2:]]
        steps, step = [0] * len(shape), 1
        for i in modes:
            steps[i], step = step, step * shape[i]
        strides = tuple(steps)
    else:
        shape, strides = tuple(x.shape), _strides(x)
    kind = _numpy_type(element_name(x.element if isinstance(x, FakeTensor) else x.dtype))
    apart = tuple([s * kind.itemsize for s in strides])
    ends = [(n - 1) * s for n, s in zip(shape, apart) if 0 not in shape]
    below = -(sum([min(0, e) for e in ends]) // 16 * 16)
    # Pages of np.empty that are never touched take no physical memory.
    words = np.empty(below + sum([max(0, e) for e in ends]) + 64, np.uint8)
    start = below - words.ctypes.data % 16 + 16 + (0 if isinstance(x, FakeTensor) else _address(x) % 16)
    one = words[start : start + 16].view(f"u{kind.itemsize}")  # as_strided does not take types of ml_dtypes.
    return np.lib.stride_tricks.as_strided(one, shape, apart, writeable=False).view(kind)


def _numpy_type(element: str) -> Any:
    """Return the NumPy or ml_dtypes type of elements."""
    import numpy as np

    long = torch_name(element)
    try:
        return np.dtype(long)
    except TypeError:
        import ml_dtypes

        return np.dtype(getattr(ml_dtypes, long))


_SHAPES = {"aux": "(M, N)", "row": "(1, N)", "column": "(M, 1)", "scalar": "one element", "matrix": "(L, 1, 1)"}


def read_as(
    traced: Traced, argument: Argument, x: Input, value: Any, shape: tuple[int, ...], d: Any
) -> tuple[Input, Any]:
    """Return the graph input for an argument, and the array as the kernel takes it."""
    what = f"epilogue {traced.name}"
    if isinstance(value, bool | int | float):
        if x.kind != "scalar":
            raise EpilogueError(
                f"{what}: {argument.name} is a number, but was {_SHAPES[x.kind]} in the trace; trace the epilogue again"
            )
        if argument.number in traced.graph.whole_inputs:
            if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < 2**63:
                raise EpilogueError(f"{what}: {argument.name} is {value!r}; it must be an integer from 0 to 2**63 - 1")
            return Input("scalar", "i64", number=True), value
        return Input("scalar", number=True), float(value)
    if not hasattr(value, "shape") or not hasattr(value, "dtype"):
        raise EpilogueError(f"{what}: {argument.name} is a {type(value).__name__}; it must be a number or an array")
    _on_device(traced, argument.name, value, d)
    if argument.view is not None and x.kind != "scalar":
        return _arranged(traced, argument, x, value, argument.view, shape)
    have, matrices = tuple(value.shape), shape[0] if len(shape) == 3 else 1
    full = (*(1,) * (3 - len(have)), *have)
    m, n = shape[-2], shape[-1] // 2 if x.half else shape[-1]
    wanted = {"aux": (m, n), "row": (1, n), "column": (m, 1)}.get(x.kind, (1, 1))
    fits = full[-2:] == wanted and len(full) == 3 and (full[0] == 1 or (full[0] == matrices and x.kind != "scalar"))
    if not fits and not (x.kind == "scalar" and prod(have) == 1):
        found = broadcast_kind(have, shape)
        if found is None:
            raise EpilogueError(f"{what}: {argument.name} of shape {have} does not broadcast to {shape}")
        raise EpilogueError(
            f"{what}: {argument.name} is {_SHAPES[found[0]]}, but was {_SHAPES[x.kind]} in the trace; "
            "trace the epilogue again"
        )
    value = as_bytes(value)
    element = element_name(value.dtype)
    if x.kind in ("scalar", "matrix"):
        flat = value.reshape(-1)
        if argument.number in traced.graph.whole_inputs and element not in INTEGERS:
            raise EpilogueError(f"{what}: {argument.name} has dtype {element}; it must have an integer type")
        if x.kind == "matrix" and matrices > 1 and flat.shape[0] == 1:
            raise EpilogueError(
                f"{what}: {argument.name} is one element, but was (L, 1, 1) in the trace; trace the epilogue again"
            )
        return Input(x.kind, element, order="n" if _strides(flat)[0] == 1 else ""), flat
    batch = full[0] > 1
    kept = {"aux": (True, True), "row": (False, True), "column": (True, False)}[x.kind]
    view = matrix_view(value, (batch, *kept))
    order, pairs = _order(view, x.kind)
    return Input(x.kind, element, False, batch, order, pairs and not x.half, x.half), view


def _arranged(
    traced: Traced, argument: Argument, x: Input, value: Any, view: View, shape: tuple[int, ...]
) -> tuple[Input, ArrayView]:
    """Return the graph input and the layout of an argument that is reshaped or permuted."""
    what, base = f"epilogue {traced.name}", (*shape[:-1], shape[-1] // 2) if x.half else shape
    try:
        wanted = view.shape(base)
        if tuple(value.shape) != wanted:
            raise ValueError(f"{argument.name} has shape {tuple(value.shape)}; it must have {wanted}")
        value = as_bytes(value)
        array, split = _laid(view_of(value), view, base)
    except ValueError as e:
        raise EpilogueError(f"{what}: {e}") from None
    modes = {"aux": "mn", "row": "n", "column": "m", "matrix": ""}[x.kind]
    if split:
        order, pairs = _order_of_digits(array, split, modes)
    else:
        order, pairs = _order(array, x.kind) if modes else ("n" if array.strides[0] == 1 else "", False)
    pairs = pairs and not x.half
    return Input(x.kind, array.dtype, False, x.batch and shape[0] > 1, order, pairs, x.half, split), array


def _laid(array: ArrayView, view: View, sums: Sequence[int]) -> tuple[ArrayView, str]:
    """Return an array as :func:`laid` does, without the batch mode if the batch has one matrix."""
    found, split = laid(array, view, sums)
    if len(sums) == 3 and sums[0] == 1 and "l" in dict(view.bases) and len(found.shape) > 1:
        found = found._replace(shape=found.shape[:-1], strides=found.strides[:-1])
        split = split.rpartition("/")[0] + "/" if split else ""
    return found, split


class Arranged(NamedTuple):
    """A result D that is reshaped or permuted."""

    shape: tuple[int, ...]  # shape of its values in the accumulator
    plain: ArrayView | None  # the result as a matrix or batch of that shape, if its strides allow one
    flat: ArrayView  # the result with one mode per digit, as the kernel stores it
    split: str  # the modes of `flat`: see View.split
    tma: bool  # True if TMA can store it


def arranged(traced: Traced, d: ArrayView, sums: Sequence[int]) -> Arranged | None:
    """Return the layout of a result D that is reshaped or permuted, or None for a plain one.  Raises EpilogueError."""
    view = traced.views.get("D")
    if view is None:
        return None
    base = traced.base_of(sums, traced.graph.outputs[0].node)
    flat, split = _laid(d, view, base)
    if not split:
        shape, strides = flat.shape, flat.strides
        if len(base) == 3:
            one = len(shape) == 2  # The batch has one matrix.
            shape, strides = (1 if one else shape[2], *shape[:2]), (0 if one else strides[2], *strides[:2])
        if 1 in (strides[-1], strides[-2], shape[-1], shape[-2]):
            return Arranged(base, flat._replace(shape=shape, strides=strides), flat, "", True)
        split = "?/?/" + "?" * (len(flat.shape) == 3)
    rows, columns, _ = parts_of(split)
    item = numpy_dtype(flat.dtype).itemsize
    steps = [s for i, s in enumerate(flat.strides) if i != len(rows)]
    tma = (
        flat.strides[len(rows)] == 1 and flat.pointer % 16 == 0 and len(steps) < 5
        and flat.shape[len(rows)] * item % 16 == 0  # stores overwrite the rest of a partial unit of 16 bytes
        and all(s > 0 and s * item % 16 == 0 for s in steps)
        and (len(rows) == 1 or flat.shape[0] % 16 == 0) and (len(columns) == 1 or columns[0] != "?")
    )  # fmt: skip
    return Arranged(base, None, flat, split, tma)


def in_place_of(own: Arranged) -> ArrayView:
    """Return a placeholder for a reshaped result: a matrix or batch that TMA can store, used to choose a kernel."""
    strides = aligned_strides(own.shape, 1, numpy_dtype(own.flat.dtype).itemsize)
    return own.flat._replace(pointer=0, shape=own.shape, strides=strides)


def stored_as(graph: Graph, own: Arranged) -> Graph:
    """Return a graph that stores D in the layout `own`."""
    d = graph.outputs[0]._replace(split=own.split, order="n" if own.tma else "")
    return graph._replace(outputs=(d, *graph.outputs[1:]))


def refuse_arranged(call: str, traced: Traced) -> None:
    """Raise EpilogueError if an epilogue reshapes or permutes D, or quantizes."""
    if "D" in traced.views:
        raise EpilogueError(
            f"{call}: epilogue {traced.name} reshapes or permutes D, which this call does not support; use op.mm or "
            "op.bmm"
        )
    if traced.graph.block:
        raise EpilogueError(
            f"{call}: epilogue {traced.name} uses quantize(), which this call does not support; use op.mm or op.bmm"
        )


def _order_of_digits(array: ArrayView, split: str, modes: str) -> tuple[str, bool]:
    """Return the contiguous index as :func:`_order` does, for an array whose rows or columns are several modes."""
    parts = dict(zip("mnl", parts_of(split)))
    item = numpy_dtype(array.dtype).itemsize
    first, extent = 0, 0
    for mode in "mn":
        if mode in modes and array.strides[first] == 1:
            extent = array.shape[first]
            others = [s for i, s in enumerate(array.strides) if i != first]
            even = extent % 2 == 0 and all(s % 2 == 0 for s in others) and array.pointer % (2 * item) == 0
            return mode, mode == "n" and even
        first += len(parts[mode])
    return "", False


def matrix_view(t: Any, kept: tuple[bool, bool, bool]) -> Any:
    """Return an array without the modes of (L, M, N) that `kept` leaves out, and with the batch mode last."""
    view = t[tuple([slice(None) if keep else 0 for keep in kept])[3 - len(t.shape) :]]
    if not kept[0]:
        return view
    axes = (*range(1, len(view.shape)), 0)
    return view.permute(axes) if hasattr(view, "permute") else view.transpose(axes)


def _order(view: Any, kind: str) -> tuple[str, bool]:
    """Return the contiguous index of an array ("n", "m" or ""), and whether pairs of neighbors along n are aligned."""
    strides, modes = _strides(view), {"aux": "mn", "row": "n", "column": "m"}[kind]
    for mode in "nm":
        if mode in modes and strides[modes.index(mode)] == 1:
            others = [s for i, s in enumerate(strides) if i != modes.index(mode)]
            even = all(s % 2 == 0 for s in others) and view.shape[modes.index(mode)] % 2 == 0
            item = _item(view)
            return mode, mode == "n" and even and _address(view) % (2 * item) == 0
    return "", False


def _suits_tma(view: Any) -> bool:
    """Return True if TMA can store a matrix, or a batch, of contiguous rows.

    Rows must be multiples of 16 bytes, because stores overwrite the rest of a partial unit of 16 bytes.
    """
    apart = [s * _item(view) for i, s in enumerate(_strides(view)) if i != 1]
    row = view.shape[1] * _item(view)
    return _address(view) % 16 == 0 and row % 16 == 0 and all([s > 0 and s % 16 == 0 for s in apart])


def _item(t: Any) -> int:
    if isinstance(t, ArrayView):
        return numpy_dtype(t.dtype).itemsize
    return t.element_size() if hasattr(t, "element_size") else t.itemsize


def _on_device(traced: Traced, name: str, t: Any, d: Any) -> None:
    """Check that an array is on the device of the result.  Raises DeviceError."""
    if getattr(t, "device", None) != getattr(d, "device", None):
        raise DeviceError(
            f"epilogue {traced.name}: {name} is on {t.device}, but the result is on {d.device}; move it to {d.device}"
        )


def as_bytes(t: Any) -> Any:
    """Return a boolean array as bytes, any other array unchanged."""
    if element_name(t.dtype) != "i1":
        return t
    if hasattr(t, "data_ptr"):
        import torch

        return t.view(torch.uint8)
    return t.view("uint8")


def _strides(t: Any) -> tuple[int, ...]:
    """Return the strides of an array in elements."""
    if isinstance(t, ArrayView):
        return t.strides
    if hasattr(t, "stride"):
        return tuple(t.stride())
    return tuple([s // t.itemsize for s in t.strides])


def _address(t: Any) -> int:
    if isinstance(t, ArrayView):
        return t.pointer
    if hasattr(t, "data_ptr"):
        return t.data_ptr()
    return t.ctypes.data if hasattr(t, "ctypes") else view_of(t).pointer


# --------------------------------------------------------------------------------------------------- partial reductions


class Reduced(NamedTuple):
    """A result that reduces the rows (``axes`` "n"), columns ("m") or all elements ("nm") of D."""

    place: int  # position among the launch arguments after the matrices
    operation: str  # "sum", "max" or "min"
    axes: str
    result: ArrayView  # (M, 1), (1, N) or (1, 1), with L in front for a batch
    half: bool = False  # True if the reduced value has half as many columns as the accumulator

    def extents(self, rows: int, columns: int, at_once: int, turned: bool) -> tuple[int, int]:
        """Return the shape of the partial results.

        Args:
            rows: rows of the kernel's result.
            columns: columns of the kernel's result.
            at_once: columns that are reduced together.
            turned: True if the kernel computes the transpose of D.
        """
        if (self.axes != "m") != turned:
            return -(-columns // at_once), rows
        return -(-rows // STRIP), columns // 2 if self.half else columns


class Combining(NamedTuple):
    """A launch that combines partial results."""

    config: CombineConfig
    parts: ArrayView  # (parts, results, matrices)
    results: ArrayView  # (results, matrices)


def memory_of(memory: ArrayView, extents: tuple[int, int], matrices: int) -> ArrayView:
    """Return memory for partial results in the kernel's layout, with a third mode if there are several matrices."""
    shape, strides = (*extents, matrices), (extents[1], 1, prod(extents))
    return memory._replace(shape=shape, strides=strides) if matrices > 1 else memory._replace(
        shape=shape[:2], strides=strides[:2]
    )  # fmt: skip


def combining(x: Reduced, parts: ArrayView, memory: Callable[[int], ArrayView]) -> list[Combining]:
    """Return the launches that combine partial results; ``memory(n)`` allocates n f32 for intermediate results."""
    to = x.result
    if len(to.shape) == 2:
        to = to._replace(shape=(1, *to.shape), strides=(0, *to.strides))
    mode = 1 if to.shape[1] != 1 else 2
    results = to._replace(shape=(to.shape[mode], to.shape[0]), strides=(to.strides[mode], to.strides[0]))
    if len(parts.shape) == 2:
        parts = parts._replace(shape=(*parts.shape, 1), strides=(*parts.strides, prod(parts.shape)))
    if x.axes != "nm":
        return [Combining(CombineConfig(x.operation, to.dtype), parts, results)]
    _, rows, matrices = parts.shape
    between = memory(max(1, rows * matrices))._replace(shape=(rows, matrices), strides=(1, rows))
    lines = between._replace(shape=(rows, 1, matrices), strides=(1, rows, rows))
    return [
        Combining(CombineConfig(x.operation), parts, between),
        Combining(CombineConfig(x.operation, to.dtype, 1), lines, results),
    ]


# --------------------------------------------------------------------------------------------------- reshapes as copies


def is_arranged(traced: Traced) -> bool:
    """Return True if an argument or a result is reshaped or permuted."""
    return bool(traced.views) or any([a.view is not None for a in traced.arguments])


def as_matrices(traced: Traced) -> Traced:
    """Return the same epilogue with arguments and results in the accumulator's shape."""
    graph = traced.graph._replace(
        inputs=tuple([x._replace(split="") for x in traced.graph.inputs]),
        outputs=tuple([x._replace(split="") for x in traced.graph.outputs]),
    )
    arguments = [a._replace(view=None) for a in traced.arguments]
    return Traced(
        traced.function, graph, arguments, traced.results, traced.returned, traced.form, traced.fixed,
        traced.parameters, traced.examples,
    )  # fmt: skip


def by_name(traced: Traced, returned: Any) -> dict[str, Any]:
    """Return the results of a call with an epilogue by name."""
    if isinstance(returned, dict):
        return dict(returned)
    return dict(zip(traced.returned, returned if isinstance(returned, tuple) else (returned,)))


class Apart(NamedTuple):
    """An epilogue without reshapes, and the arrays of a call."""

    traced: Traced
    plain: Traced
    args: dict[str, Any]  # arguments in the accumulator's shape
    memory: dict[str, Any]  # reshaped or permuted results that the caller passed, by name
    sums: tuple[int, ...]  # shape of the accumulator
    make: Callable[[tuple[int, ...], str], Any]  # make(shape, type) allocates an array

    @classmethod
    def of(
        cls, call: str, traced: Traced, args: Mapping[str, Any], out: Any, sums: Sequence[int],
        make: Callable[[tuple[int, ...], str], Any], *, keep: bool = False,
    ) -> tuple[Apart, Any]:  # fmt: skip
        """Return the epilogue for a result ``out`` (None to allocate it), and the memory for D in the accumulator's
        shape.

        With ``keep``, elements of D that the call does not write keep their values.  Raises ShapeError, DtypeError.
        """
        sums, given, memory = tuple(sums), dict(args), dict[str, Any]()
        for a in traced.arguments:
            x = traced.graph.inputs[a.number]
            if a.view is not None:
                base = (*sums[:-1], sums[-1] // 2) if x.half else sums
                wanted = a.view.shape(base)
                if tuple(given[a.name].shape) != wanted:
                    raise ShapeError(f"{call}: {a.name} has shape {tuple(given[a.name].shape)}; it must have {wanted}")
                given[a.name] = as_sums(given[a.name], a.view, base)
        for name in traced.views:
            to = out if name == "D" else given.get(name)
            if to is None:
                continue
            wanted = traced.shape_of(sums, name)
            if tuple(to.shape) != wanted:
                what = "out" if name == "D" else name
                raise ShapeError(f"{call}: {what} has shape {tuple(to.shape)}; it must have {wanted}")
            memory[name] = to
            base = traced.base_of(sums, traced.graph.outputs[traced.results.index(name)].node)
            matrix = make(base, element_name(to.dtype))
            if keep:
                matrix[...] = as_sums(to, traced.views[name], base)
            given[name] = matrix
        d = given.pop("D", None) if "D" in memory else out
        return cls(traced, as_matrices(traced), given, memory, sums, make), d

    def arranged(self, found: Mapping[str, Any]) -> Any:
        """Return the function's results, given those in the accumulator's shape by name."""
        results = dict(found)
        for name, view in self.traced.views.items():
            t = results[name]
            base = self.traced.base_of(self.sums, self.traced.graph.outputs[self.traced.results.index(name)].node)
            t = as_array(t, view, base)
            to = self.memory.get(name)
            to = self.make(tuple(t.shape), element_name(t.dtype)) if to is None else to
            to[...] = t
            results[name] = to
        return self.traced.formed(results)
