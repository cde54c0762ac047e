"""Calls of grouped GEMMs: check the arguments, choose a kernel and launch it.

The epilogue ``activation(alpha * accum + beta * c + bias)`` is a graph.  Alpha and bias may be per group.
"""

# Arrays belong to any library.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from functools import partial
from types import MappingProxyType
from typing import Any, NamedTuple, cast

from cute_dialect.kernels.epilogue.activations import is_activation, unknown_activation
from cute_dialect.kernels.epilogue.combination import Epilogue
from cute_dialect.kernels.epilogue.graph import Graph, Input
from cute_dialect.kernels.gemm.config import GroupedConfig
from cute_dialect.kernels.gemm.grouped_sm100 import GroupedSm100Config
from cute_dialect.kernels.gemm.moe_permute import BoundsConfig, GatherConfig, ZeroConfig
from cute_dialect.kernels.gemm.pointer_array import Base
from cute_dialect.op.arrays.dtypes import (
    both,
    can_mix,
    checked_arithmetic,
    element_name,
    element_of,
    result_of,
    tf32_allowed,
)
from cute_dialect.op.arrays.library import (
    Library,
    Where,
    aligned_strides,
    check_options,
    chosen_device,
    gpu_here,
    read_all,
)
from cute_dialect.op.arrays.operand_views import copied, expanded, kernel_order, with_padded_rows
from cute_dialect.op.epilogue.bind import Apart, Bound, alone, bound, by_name, is_arranged, refuse_arranged, traced_of
from cute_dialect.op.epilogue.combination import LinearCombination, combination, operands_of
from cute_dialect.op.epilogue.tracing import FakeTensor, Traced, broadcast_kind
from cute_dialect.op.errors import (
    DeviceError,
    DtypeError,
    EpilogueError,
    LayoutError,
    OpError,
    ShapeError,
    UnsupportedError,
)
from cute_dialect.op.execute.gemm import options_of
from cute_dialect.op.execute.kernels import kernel_of
from cute_dialect.op.execute.launcher import launched
from cute_dialect.op.problems.grouped import GroupedArguments, Shapes, shapes_of
from cute_dialect.op.problems.operands import check_overlap, check_result, matrix
from cute_dialect.op.select.gemm_dispatch import KernelOverride, gpu_of, here, kernel_for
from cute_dialect.op.select.grouped import (
    MATH,
    Sm100Groups,
    as_grouped,
    average,
    base_of,
    choose_grouped,
    choose_sm100,
    is_of_warps,
    launches_of,
    majors_of,
)
from cute_dialect.op.select.kernel_choice import Choice, Problem
from cute_dialect.op.signature_types import Interpreted
from cute_dialect.runtime import settings
from cute_dialect.runtime.arrays import ArrayView, numpy_dtype, view_of

SCHEDULES = ("auto", "device", "host")
RESTS = ("keep", "zero")


class _Call(NamedTuple):
    """The state of one call.  If ``planned`` is True, nothing is copied or launched yet."""

    name: str
    where: Where
    stream: object
    run: Interpreted
    launched: list[tuple[Any, tuple[Any, ...]]]
    planned: bool = False

    @property
    def library(self) -> Library:
        return self.where.library

    def launch(self, config: Any, *given: Any) -> None:
        """Record a kernel launch, and run it unless the call is only planned."""
        self.launched.append((config, given))
        if self.planned:
            return
        report = launched(kernel_of(config, self.where.cpu), *given, **options_of(self.where, self.stream, self.run))
        if report is not None and "report" in self.run:
            self.run["report"](report)


class Planned(NamedTuple):
    """A grouped GEMM whose kernels are not launched yet."""

    result: Any
    launches: Sequence[tuple[Any, tuple[Any, ...]]]
    where: Where


def planned(name: str, g: GroupedArguments, device: object = None, stream: object = None) -> Planned:
    """Check a grouped GEMM and return its launches.  Nothing is copied.  Raises OpError."""
    found: Planned = computed(name, g, device, stream, only_plan=True)
    return found


def computed(
    name: str, g: GroupedArguments, device: object = None, stream: object = None, run: Any = None,
    *, only_plan: bool = False,
) -> Any:  # fmt: skip
    """Compute a grouped GEMM.

    Args:
        name: name of the function, for errors.
        g: the arguments of the call.
        device: None or "gpu" for the GPU, "cpu" for the interpreter.
        stream: stream of the launches.
        run: options of the interpreter.
        only_plan: True to return a :class:`Planned`.

    Raises:
        OpError: if the arguments are not supported; and errors of the kernel.
    """
    run = cast("Interpreted", run or {})
    options: dict[str, object] = {key: value for key, value in run.items() if key != "report"}
    device = chosen_device(device)
    check_options(name, device, options)
    if g.rest not in RESTS:
        raise UnsupportedError(f"{name}: rest={g.rest!r} is not supported; use {' or '.join(map(repr, RESTS))}")
    on_host = {n: x for n, x in g.groups.items() if isinstance(x, list | tuple)}
    if g.schedule == "host" and not on_host:
        raise UnsupportedError(f'{name}: schedule="host" needs {" or ".join(g.groups)} as a Python list, got an array')
    arrays = {"a": g.a, "b": g.b, "out": g.out, "c": g.extras.c, "bias": g.extras.bias}
    arrays |= {n: x for n, x in g.groups.items() if n not in on_host} | {
        "begins": g.begins,
        **g.scales,
        "gather": g.gather,
    }
    for n, x in arrays.items():
        if x is not None and (n in g.groups or n == "gather"):
            _check_numbers(name, n, x, g.a)
    where, views = read_all(name, arrays, device, stream)
    on = nullcontext() if stream is None or where.cpu else where.library.on(stream, where.gpu)
    try:
        with on:
            for n, x in on_host.items():
                views[n] = _uploaded(name, n, x, where, views["a"])
            call = _Call(name, where, stream, run, [], only_plan)
            result = _computed(call, g, views)
            if only_plan:
                return Planned(result, call.launched, where)
            return result
    except OpError as e:
        if str(e).startswith(f"{name}: "):
            raise
        raise type(e)(f"{name}: {e}") from None  # Errors from shared code do not name the function.


def _check_numbers(call: str, name: str, x: Any, a: Any) -> None:
    """Check dtype and device of offs, lengths, row_groups or gather.  Raises DtypeError, DeviceError."""
    found = element_name(getattr(x, "dtype", type(x)))
    if found != "i32":
        raise DtypeError(f"{call}: {name} has dtype {found}; pass an i32 array or a list of integers")
    there, mine = (getattr(getattr(t, "device", None), "type", None) for t in (a, x))
    if there == "cuda" and mine == "cpu":
        raise DeviceError(f"{call}: {name} is on the CPU, but a is on {a.device}; move it, or pass a list")


def _uploaded(call: str, name: str, x: Any, where: Where, like: ArrayView) -> ArrayView:
    """Copy a list of integers to the device of the operands."""
    import numpy as np

    values = np.asarray(x)
    if values.ndim != 1 or (values.size and values.dtype.kind not in "iu"):
        raise DtypeError(f"{call}: {name} must be a list of integers, got {x!r}")
    numbers = np.ascontiguousarray(values, np.int32)
    if where.library.name == "torch":
        import torch

        keep: Any = like.keep
        return view_of(torch.from_numpy(numbers).to(keep.device, non_blocking=True))
    made = where.library.strided((max(1, numbers.size),), (1,), "i32", like)
    if where.library.name == "numpy":
        cast(Any, made.keep)[: numbers.size] = numbers
    else:
        cast(Any, made.keep)[: numbers.size].set(numbers)
    return made._replace(shape=(numbers.size,))


def _computed(call: _Call, g: GroupedArguments, views: dict[str, ArrayView]) -> Any:
    """Check a grouped GEMM and compute it."""
    name, library = call.name, call.library
    a, b, numbers = views["a"], views["b"], views.get("gather")
    rows = a.shape if numbers is None else _gathered_shape(name, a, numbers)
    of_groups = {n: views[n] for n in g.groups}
    s = shapes_of(
        name, rows, b.shape, {n: x.shape for n, x in of_groups.items()}, views["out"].shape if "out" in views else None
    )
    problem = problem_of(name, s, views, g, library.name == "torch")
    _check_operands(name, views)
    if g.begins is None and (call.where.cpu or settings.flag("CUTE_OP_CHECK", False)):
        check_groups(name, s, {n: _on_host(library, x) for n, x in of_groups.items()})
        if numbers is not None:
            _check_gather(name, a.shape[0], _on_host(library, numbers))
    traced = None
    if g.epilogue is not None:
        if not isinstance(g.extras.alpha, int | float):
            raise UnsupportedError(
                f"{name}: alpha cannot be combined with epilogue; compute it in the epilogue function"
            )
        alone(name, g.extras)
        traced = traced_of(name, g.epilogue, g.args or {}, s.result)
        if is_arranged(traced):
            return _as_matrices(call, g, views, traced, s, problem.output)
    elif g.args:
        raise UnsupportedError(f"{name}: args ({', '.join(g.args)}) needs an epilogue; pass epilogue=")
    shape = s.result if traced is None else traced.shape_of(s.result)
    if "out" in views:
        check_result(name, views["out"], shape, None if g.dtype is None else element_name(g.dtype))
        check_overlap(name, views)
    result = g.out
    if result is None:
        result = library.empty(name, shape, problem.output, g.a)
        views["out"] = view_of(result)
    after = _epilogue(call, s, g, traced, result, problem.output, wide=problem.element == "f64")
    if 0 in shape or s.groups == 0:
        for x in (views["out"], *after.others):
            if g.rest == "zero" and 0 not in x.shape:
                library.native(x)[...] = 0
        return after.returned(result)
    _check_rest(call, s, g, after)
    if isinstance(g.kernel, Sm100Groups):
        gpu, sms = "", 0  # The static bounds are those of the requested chip.
        if not call.where.cpu:
            g.kernel.check_gpu(gpu_here(name).capability(call.where.gpu), name)
    else:
        gpu, sms = here() if call.where.cpu else gpu_of(call.where.gpu)
    if numbers is not None:
        views["a"] = _gathered(call, a, numbers)
    a, b, out = views["a"], views["b"], views["out"]
    wgmma = not is_of_warps(problem, g.kernel, s.form)
    if wgmma and ((isinstance(g.extras.alpha, int | float) and g.extras.alpha == 0.0) or s.k == 0):
        a, b = _zeros(library, a, b, s)  # The result does not depend on the values of a and b.
    begins = "row_groups" in of_groups or g.begins is not None
    majors = "k" if matrix(a).along(1) else "m", "n" if matrix(b).along(1) else "k"
    problem = problem._replace(major_a=majors[0], major_b=majors[1])
    if not wgmma:
        nothing = isinstance(g.extras.alpha, int | float) and g.extras.alpha == 0.0
        base = base_of(problem, s.form, after.epilogue or Epilogue(), g.kernel, sms)
        _by_warps(call, base, s, views, g, of_groups, after, nothing=nothing)
        return after.returned(result)
    majors = majors_of(s.form, problem.element, *majors)
    problem = problem._replace(major_a=majors[0], major_b=majors[1])
    config = _config(problem, s, begins, after.epilogue, g.kernel, gpu, sms)
    if call.planned:
        _check_readable(name, {"A": (a, majors[0] == "k"), "B": (b, majors[1] == "n"), "D": (out, True)})
        if not is_storable(out):
            raise LayoutError(
                f"{name}: D has rows of {out.shape[-1]} elements; TMA stores rows that are multiples of 16 bytes; use "
                "grouped_mm(), which copies it"
            )
    a = a if readable(a, majors[0] == "k") else copied(library, a, int(majors[0] == "k"))
    b = b if readable(b, majors[1] == "n") else copied(library, b, int(majors[1] == "n"))
    target = out
    if not is_storable(out):
        target = with_padded_rows(library, out.shape, out.dtype, out)
        if s.form != "k":  # Rows and columns of no group keep their values.
            library.native(target)[...] = library.native(out)
    stretches = _stretches(call, s, of_groups)
    stretches = (*stretches, views["begins"]) if g.begins is not None else stretches
    given = (*(kernel_order(x) for x in (a, b.transposed(), target)), *stretches)
    if g.extras.accumulator == "block":
        given = (*given, *(kernel_order(views[n]) for n in ("scale_a", "scale_b")))
    call.launch(config, *given, *after.operands)
    _finish(call, s, g, of_groups.get("row_groups", stretches[0]), target, out, after)
    return after.returned(result)


def _finish(
    call: _Call, s: Shapes, g: GroupedArguments, ends: ArrayView, target: ArrayView, out: ArrayView,
    after: GroupedEpilogue
) -> None:  # fmt: skip
    """Zero the rows or columns of no group if the call asks for it, and copy the result to ``out``."""
    if g.rest == "zero" and s.form != "k":
        form = "groups" if "row_groups" in g.groups else s.form
        for x in (target, *after.others):
            call.launch(ZeroConfig(x.dtype, form), kernel_order(x), ends)
    if target is not out:
        call.library.native(out)[...] = call.library.native(target)


def _check_rest(call: _Call, s: Shapes, g: GroupedArguments, after: GroupedEpilogue) -> None:
    """Check that the rows or columns of no group can be zeroed, if the call asks for it.  Raises LayoutError."""
    if g.rest == "zero" and s.form != "k" and any(x.strides[-1] != 1 for x in after.others):
        raise LayoutError(f"{call.name}: rest='zero' needs results with contiguous rows; make them contiguous")


def _by_warps(
    call: _Call, base: Base, s: Shapes, views: Mapping[str, ArrayView], g: GroupedArguments, of_groups: Mapping[str,
    ArrayView],
    after: GroupedEpilogue, *, nothing: bool,
) -> None:  # fmt: skip
    """Compute a grouped GEMM with kernels that do not use wgmma."""
    library, out = call.library, views["out"]
    target = out
    if not matrix(out).along(1):
        strides = aligned_strides(out.shape, 1, numpy_dtype(out.dtype).itemsize)
        target = library.strided(out.shape, strides, out.dtype, out)
        if s.form != "k":  # Rows and columns of no group keep their values.
            library.native(target)[...] = library.native(out)
    ends, *begins = (*_stretches(call, s, of_groups), *([] if g.begins is None else [views["begins"]]))
    first, (config, given) = launches_of(
        library, base, s, views["a"], views["b"], target, ends, begins[0] if begins else None, nothing=nothing
    )
    call.launch(*first[:1], *first[1])
    call.launch(config, *given, *after.operands)
    _finish(call, s, g, of_groups.get("row_groups", ends), target, out, after)


def problem_of(name: str, s: Shapes, views: Mapping[str, ArrayView], g: GroupedArguments, of_torch: bool) -> Problem:
    """Return the GEMM of a group of average size, with provisional majors.  Raises DtypeError, UnsupportedError."""
    a, b = views["a"], views["b"]
    if not can_mix(a.dtype, b.dtype):
        raise DtypeError(f"{name}: a has dtype {a.dtype} and b has {b.dtype}; use the same dtype for both")
    kind = both(a.dtype, b.dtype)
    output = views["out"].dtype if "out" in views else None
    if output is None:
        output = result_of(a.dtype) if g.dtype is None else element_name(g.dtype)
    tf32 = of_torch and tf32_allowed()
    arithmetic = checked_arithmetic(name, kind, output, g.extras.math, g.extras.accumulator, tf32)
    element = element_of(kind, arithmetic)
    if kind == "f32" and arithmetic != "tf32":
        return average(s, "f32", output, ("k", "k"), MATH.get(arithmetic, MATH.get(g.extras.math, "")))
    return average(s, element, output, ("k", "k"), "" if arithmetic == "tf32" else arithmetic)


def _check_operands(name: str, views: Mapping[str, ArrayView]) -> None:
    """Check that each operand has a contiguous mode.  Raises LayoutError."""
    for n in ("a", "b"):
        m = matrix(views[n])
        if not m.along(1) and not m.along(0) and 0 not in views[n].shape:
            raise LayoutError(
                f"{name}: {n} has strides {tuple(views[n].strides[-2:])}; its rows or columns must be contiguous"
            )


def check_groups(name: str, s: Shapes, numbers: Mapping[str, list[int]]) -> None:
    """Check the values of offs, lengths or row_groups.  Raises ShapeError."""
    for what, x in numbers.items():
        before = 0
        for i, n in enumerate(x):
            if what == "lengths":
                if not 0 <= n <= s.m:
                    raise ShapeError(f"{name}: lengths[{i}] is {n}; it must be between 0 and {s.m}")
            elif what == "row_groups":
                if not -1 <= n < s.groups:
                    raise ShapeError(f"{name}: row_groups[{i}] is {n}; it must be between -1 and {s.groups - 1}")
                if 0 <= n < before:
                    raise ShapeError(f"{name}: row_groups[{i}] is {n}, but follows {before}; row_groups must be sorted")
                before = max(before, n)
            else:
                if i == 0 and len(x) == s.groups + 1 and n != 0:
                    raise ShapeError(f"{name}: offs[0] is {n}; offs of {len(x)} elements must begin with 0")
                if n < before:
                    at = f"offs[{i - 1}] = {before}" if i else "0"
                    raise ShapeError(f"{name}: offs[{i}] is {n}, less than {at}; offs must not decrease")
                if n > s.cut:
                    raise ShapeError(f"{name}: offs[{i}] is {n}; it must be at most {s.cut}")
                before = n


def _on_host(library: Library, x: ArrayView) -> list[int]:
    """Copy integers to the host.  Waits for the GPU."""
    return [int(n) for n in library.native(x).tolist()] if 0 not in x.shape else []


class GroupedEpilogue(NamedTuple):
    """The epilogue, its launch arguments, and the results other than the first."""

    epilogue: Epilogue | None = None
    operands: tuple[Any, ...] = ()
    others: tuple[ArrayView, ...] = ()
    bound: Bound | None = None

    def returned(self, result: Any) -> Any:
        """Return all results in the form that the epilogue function returns."""
        return result if self.bound is None else self.bound.traced.formed(self.bound.results)


def _as_matrices(
    call: _Call, g: GroupedArguments, views: Mapping[str, ArrayView], traced: Traced, s: Shapes, output: str
) -> Any:
    """Compute a GEMM whose epilogue reshapes: through matrices that are copied.  Plans do not copy."""
    if call.planned and traced.views:
        raise EpilogueError(
            f"{call.name}: epilogue {traced.name} reshapes or permutes {', '.join(traced.views)}, which a plan does "
            "not support; use op.grouped_mm"
        )

    def make(shape: tuple[int, ...], kind: str) -> Any:
        return call.library.empty(call.name, shape, kind or output, g.a)

    args = g.args or {}
    apart, out = Apart.of(call.name, traced, args, g.out, s.result, make, keep=g.rest == "keep")
    for n in [a.name for a in traced.arguments if call.planned and a.view is not None]:
        if view_of(apart.args[n]).pointer != view_of(args[n]).pointer:
            raise LayoutError(
                f"{call.name}: {n} does not have the accumulator's layout, and a plan copies nothing; use op.grouped_mm"
            )
    views = {n: v for n, v in views.items() if n != "out"} | ({} if out is None else {"out": view_of(out)})
    found = _computed(call, g._replace(epilogue=apart.plain, args=apart.args, out=out), views)
    return apart.arranged(by_name(apart.plain, found))


def _epilogue(
    call: _Call, s: Shapes, g: GroupedArguments, traced: Traced | None, result: Any, output: str, *, wide: bool
) -> GroupedEpilogue:
    """Return the epilogue of a call; ``wide`` computes it in f64.  Raises OpError."""
    name, found = call.name, None
    others: list[ArrayView] = []
    if traced is not None:

        def another(shape: tuple[int, ...], kind: str) -> Any:
            return call.library.empty(name, shape, kind or output, g.a)

        found = of_graph(name, s, traced, g.args or {}, result, another)
        graph, operands = found.graph, tuple(found.operands)
        others += [view_of(found.results[n]) for n in traced.results[1:]]
        found.check_memory(name, view_of(result), {"a": view_of(g.a), "b": view_of(g.b)})
    elif 0 in s.result:
        return GroupedEpilogue()
    else:
        of_sums = {} if g.extras.accumulator == "block" else g.scales
        made = combined(name, s, result, g.extras, of_sums)
        if made is None:
            return GroupedEpilogue()
        graph, operands = made
    if wide:
        graph = graph._replace(inputs=tuple([x._replace(element="f64") if x.number else x for x in graph.inputs]))
    given = tuple([view_of(x) if hasattr(x, "shape") else x for x in operands])
    return GroupedEpilogue(Epilogue(graph=graph), given, tuple(others), found)


def _gathered_shape(name: str, a: ArrayView, numbers: ArrayView) -> tuple[int, int]:
    """Return the shape of the rows to multiply.  Raises ShapeError."""
    if len(a.shape) != 2 or len(numbers.shape) != 1:
        raise ShapeError(
            f"{name}: with gather, a must have rank 2 and gather rank 1; got shapes {tuple(a.shape)} and "
            f"{tuple(numbers.shape)}"
        )
    if 0 in (*a.shape, *numbers.shape):
        raise ShapeError(
            f"{name}: a and gather must not be empty; got shapes {tuple(a.shape)} and {tuple(numbers.shape)}"
        )
    return numbers.shape[0], a.shape[1]


def _check_gather(name: str, rows: int, numbers: list[int]) -> None:
    """Check the values of gather.  Raises ShapeError."""
    for i, n in enumerate(numbers):
        if not 0 <= n < rows:
            raise ShapeError(f"{name}: gather[{i}] is {n}; it must be between 0 and {rows - 1}")


def _gathered(call: _Call, a: ArrayView, numbers: ArrayView) -> ArrayView:
    """Gather rows of a into new memory with a kernel."""
    item, k = numpy_dtype(a.dtype).itemsize, a.shape[1]
    a = a if a.strides[1] == 1 else copied(call.library, a, 1)
    shape = (numbers.shape[0], k)
    found = call.library.strided(shape, aligned_strides(shape, 1, item), a.dtype, a)
    if numbers.strides[0] != 1:
        numbers = call.library.copied(numbers, (1,))
    wide = min(item, 4)
    while wide < 4 and all(x * item % (2 * wide) == 0 for x in (k, a.strides[0])) and a.pointer % (2 * wide) == 0:
        wide *= 2
    words = f"i{8 * wide}"

    def as_words(x: ArrayView) -> ArrayView:
        return x._replace(shape=(x.shape[0], k * item // wide), strides=(x.strides[0] * item // wide, 1), dtype=words)

    call.launch(GatherConfig(words), as_words(a), numbers, as_words(found))
    return found


def _zeros(library: Library, a: ArrayView, b: ArrayView, s: Shapes) -> tuple[ArrayView, ArrayView]:
    """Return operands of zeros, broadcast to the groups."""
    k = 16 // numpy_dtype(a.dtype).itemsize
    x = library.zeros((a.shape[-2], k), a.dtype, a)
    y = library.zeros((b.shape[-1], k), b.dtype, b).transposed()
    of_a, of_b = ((t.shape[0],) if len(t.shape) == 3 else () for t in (a, b))
    return expanded(x, (*of_a, *x.shape)), expanded(y, (*of_b, *y.shape))


def readable(x: ArrayView, rows: bool) -> bool:
    """Return True if TMA can access a matrix, or a batch, that is contiguous along rows (or columns)."""
    m = matrix(x)
    if not m.along(1 if rows else 0):
        return False
    line = x.strides[-2] if rows else x.strides[-1]
    step = x.strides[0] if len(x.shape) == 3 and x.shape[0] > 1 else 0
    whole = line * m.item % 16 == 0 and line > 0 and (len(x.shape) == 2 or x.shape[0] == 1 or step > 0)
    return m.address % 16 == 0 and whole and step * m.item % 16 == 0


def is_storable(x: ArrayView) -> bool:
    """Return True if TMA can store a matrix, or a batch, of contiguous rows without changing other memory.

    TMA stores write whole units of 16 bytes, so a row that ends inside a unit needs padding that may change.
    """
    return readable(x, True) and x.shape[-1] * numpy_dtype(x.dtype).itemsize % 16 == 0


def _check_readable(name: str, matrices: Mapping[str, tuple[ArrayView, bool]]) -> None:
    """Raise LayoutError for a matrix that TMA cannot access without a copy.

    Each matrix comes with True if it is read along rows.
    """
    for n, (view, rows) in matrices.items():
        if not readable(view, rows):
            raise LayoutError(
                f"{name}: {n} has strides {tuple(view.strides)}; TMA needs contiguous {'rows' if rows else 'columns'}, "
                "and an address and strides that are multiples of 16 bytes; use grouped_mm(), which copies it"
            )


def _stretches(call: _Call, s: Shapes, given: Mapping[str, ArrayView]) -> tuple[ArrayView, ...]:
    """Return the ends of the groups (or their lengths), and their begins if the kernel needs them."""
    ((name, x),) = given.items()
    if x.strides[0] != 1 and x.shape[0] > 1:
        if call.planned:
            raise LayoutError(
                f"{call.name}: {name} has strides {tuple(x.strides)}; it must be contiguous, or use grouped_mm(), "
                "which copies it"
            )
        x = call.library.copied(x, (1,))
    if name == "row_groups":
        begins, ends = (call.library.strided((s.groups,), (1,), "i32", x) for _ in range(2))
        call.launch(BoundsConfig(), x, begins, ends)
        return ends, begins
    if name == "offs" and x.shape[0] == s.groups + 1:
        return (view_of(call.library.native(x)[1:]),)
    return (x,)


def _config(
    p: Problem, s: Shapes, begins: bool, epilogue: Epilogue | None, kernel: object, gpu: str, sms: int
) -> GroupedConfig | GroupedSm100Config:
    """Return the requested kernel, or else the fastest one."""
    if isinstance(kernel, Sm100Groups):
        return choose_sm100(p, s.form, begins, epilogue, kernel)
    if kernel is None:
        return choose_grouped(p, s.form, begins, epilogue, gpu, sms)
    if isinstance(kernel, GroupedConfig):
        choice = Choice(kernel.base._replace(batch=True))
    else:
        choice = kernel_for(p, KernelOverride(kernel), gpu, sms)
    try:
        return as_grouped(choice, s.form, begins, epilogue)
    except ValueError as e:
        raise UnsupportedError(f"kernel {choice.name} cannot compute groups: {e}") from None


# ------------------------------------------------------------------------------------------------------------ epilogues


_EXTENTS = {"l": 4, "m": 128, "n": 256}
"""Placeholder extents for the trace.  The graph does not depend on them."""


def combined(
    call: str, s: Shapes, result: Any, extras: LinearCombination, scales: Mapping[str, Any] = MappingProxyType({})
) -> tuple[Graph, tuple[Any, ...]] | None:
    """Return the graph of a linear combination and its operands, or None if the epilogue is the identity.

    ``scales`` are factors of the accumulator, ``scale_a`` and ``scale_b``: one element, per group (G,), per row, per
    column, or (G, N).  Raises ShapeError, DtypeError, EpilogueError.
    """
    alpha, beta, c, bias, activation = extras.alpha, extras.beta, extras.c, extras.bias, extras.activation
    if isinstance(beta, bool) or not isinstance(beta, int | float):  # pyright: ignore[reportUnnecessaryIsInstance]
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
    else:
        args["alpha"] = alpha
    if c is not None and beta != 0.0:
        if broadcast_kind(tuple(c.shape), s.result) is None:
            raise ShapeError(f"{call}: c of shape {tuple(c.shape)} does not broadcast to {s.result}")
        args |= {"C": c, "beta": beta}
    if bias is not None:
        args["bias"] = _bias(call, s, bias)
        if s.form in ("m", "k", "rows") and tuple(bias.shape) == (s.groups, s.n) and s.groups > 1:
            each["bias"] = bias
    args = operands_of(args)
    if not args and not activation:
        return None
    traced = combination(args, tuple(_EXTENTS.values())[-len(s.result) :], activation, partial(_like, s=s))
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


def _like(x: Any, s: Shapes) -> FakeTensor:
    """Return the placeholder of an array for the trace."""
    shape = tuple(x.shape)
    kind = broadcast_kind(shape, s.result)
    if kind is None or all(n == 1 for n in shape):
        return FakeTensor(element_name(x.dtype), (1,))
    full = (*(1,) * (len(s.result) - len(shape)), *shape)
    there = tuple([1 if n == 1 else _EXTENTS[e] for n, e in zip(full, "lmn"[-len(full) :])])
    return FakeTensor(element_name(x.dtype), there)


def _strides(t: Any) -> tuple[int, ...]:
    return tuple(t.stride()) if hasattr(t, "stride") else tuple([n // t.itemsize for n in t.strides])
