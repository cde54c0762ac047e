"""Compute a grouped product: its arguments are read and checked, a kernel is chosen and launched."""

# Arrays are of any library.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from types import MappingProxyType
from typing import Any, NamedTuple, cast

from cute_dialect.kernels.gemm.epilogue import Epilogue
from cute_dialect.kernels.gemm.grouped_config import GroupedConfig
from cute_dialect.kernels.moe_permute import BoundsConfig, GatherConfig, ZeroConfig
from cute_dialect.kernels.pointer_array_gemm import Base
from cute_dialect.op.arrays import Library, Where, aligned_strides, read_all
from cute_dialect.op.dtypes import (
    arithmetic_of,
    both,
    can_mix,
    check_types,
    element_name,
    element_of,
    result_of,
    tf32_allowed,
)  # fmt: skip
from cute_dialect.op.epilogue.bind import Bound, alone, traced_of
from cute_dialect.op.epilogue.matrices import Apart, by_name, is_arranged
from cute_dialect.op.epilogue.tracing import Traced
from cute_dialect.op.errors import (
    DeviceError,
    DtypeError,
    EpilogueError,
    LayoutError,
    OpError,
    ShapeError,
    UnsupportedError,
)  # fmt: skip
from cute_dialect.op.grouped.choosing import as_grouped, average, choose, majors_of
from cute_dialect.op.grouped.combination import combined, of_graph
from cute_dialect.op.grouped.kernels import kernel_of
from cute_dialect.op.grouped.known import KnownGroups, Launch
from cute_dialect.op.grouped.mma_sync import MATH, base_of, is_of_warps, launches_of
from cute_dialect.op.grouped.shapes import Shapes, shapes_of
from cute_dialect.op.known import Extras
from cute_dialect.op.operand_views import copied, expanded, kernel_order, turn
from cute_dialect.op.operands import check_result, matrix
from cute_dialect.op.product import Interpreted, options_of
from cute_dialect.op.select.gemm_dispatch import gpu_of, here
from cute_dialect.op.select.kernel_choice import Choice, Problem
from cute_dialect.op.select.kernel_override import Wanted, kernel_for
from cute_dialect.runtime import settings
from cute_dialect.runtime.arrays import ArrayView, numpy_dtype, view_of
from cute_dialect.runtime.call_options import check_options

__all__ = ["SCHEDULES", "Given", "Planned", "computed", "planned", "problem_of", "readable"]

SCHEDULES = ("auto", "device", "host")
RESTS = ("keep", "zero")


class Given(NamedTuple):
    """What a call says: ``groups``: offs, lengths or row_groups, those that there are; ``begins``: where groups begin
    that offs say the ends of, of those that do not begin where the one before ends; ``scales``: ``scale_a`` and
    ``scale_b``, checked, of blocks where ``accumulator`` is ``block``, else factors of the sums; ``gather``: which
    row of a is each row that is multiplied.
    """

    a: Any
    b: Any
    groups: Mapping[str, Any]
    out: Any = None
    c: Any = None
    bias: Any = None
    alpha: Any = 1.0
    beta: Any = 1.0
    activation: str = ""
    epilogue: Any = None
    args: Mapping[str, Any] | None = None
    rest: str = "keep"
    schedule: str = "auto"
    dtype: object = None
    math: str = "default"
    accumulator: object = None
    kernel: object = None
    begins: Any = None
    scales: Mapping[str, Any] = MappingProxyType({})
    gather: Any = None


class _Call(NamedTuple):
    """A call that is being computed; ``planned``: nothing is copied, and nothing launched yet."""

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
        """Launch a kernel."""
        self.launched.append((config, given))
        if self.planned:
            return
        report = kernel_of(config, self.where.cpu)(*given, **options_of(self.where, self.stream, self.run))
        if report is not None and "report" in self.run:
            self.run["report"](report)


class Planned(NamedTuple):
    """A grouped product whose kernels are not launched yet."""

    result: Any
    launches: Sequence[tuple[Any, tuple[Any, ...]]]
    where: Where


def planned(name: str, g: Given, device: object = None, stream: object = None) -> Planned:
    """Return a grouped product, checked, with what computes it; nothing of it is copied.  Raises OpError."""
    found: Planned = computed(name, g, device, stream, only_plan=True)
    return found


def computed(
    name: str, g: Given, device: object = None, stream: object = None, run: Any = None,
    known: tuple[KnownGroups, Sequence[Any], object] | None = None, *, only_plan: bool = False,
) -> Any:  # fmt: skip
    """Compute a grouped product; ``known`` is told how: calls that it remembers, the tensors and what else this one
    says.  ``only_plan``: see :func:`planned`.  Raises subclasses of OpError, and what a kernel raises.
    """
    run = cast("Interpreted", run or {})
    options: dict[str, object] = {key: value for key, value in run.items() if key != "report"}
    check_options(cast("Any", {"device": "gpu" if device is None else device, **options}))
    if g.rest not in RESTS:
        raise UnsupportedError(f"{name}: expected rest of {', '.join(RESTS)}, got {g.rest!r}")
    on_host = {n: x for n, x in g.groups.items() if isinstance(x, list | tuple)}
    if g.schedule == "host" and not on_host:
        raise UnsupportedError(f'{name}: expected numbers on the host for schedule="host", a list, got an array')
    arrays = {"a": g.a, "b": g.b, "out": g.out, "c": g.c, "bias": g.bias}
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
            if known is not None and not where.cpu and where.library.name == "torch":
                _remember(known, call, result)
            return result
    except OpError as e:
        if str(e).startswith(f"{name}: "):
            raise
        raise type(e)(f"{name}: {e}") from None  # of what does not know the call


def _remember(known: tuple[KnownGroups, Sequence[Any], object], call: _Call, result: Any) -> None:
    """Let a call be recognised, if nothing of it was copied."""
    calls, tensors, how = known
    launches: list[Launch] = []
    for config, given in call.launched:
        launch = kernel_of(config).by_address(*given)
        if launch is None:
            return
        launches.append(Launch(launch, [x.pointer if isinstance(x, ArrayView) else None for x in given]))
    calls.remember(tensors, how, result, launches)


def _check_numbers(call: str, name: str, x: Any, a: Any) -> None:
    """Check the type of offs, lengths or row_groups, and where they are.  Raises DtypeError, DeviceError."""
    found = element_name(getattr(x, "dtype", type(x)))
    if found != "i32":
        raise DtypeError(f"{call}: expected {name} of i32, or a list, got {found}")
    there, mine = (getattr(getattr(t, "device", None), "type", None) for t in (a, x))
    if there == "cuda" and mine == "cpu":
        raise DeviceError(f'{call}: expected {name} on {a.device} (or a list: schedule="host"), got it on the CPU')


def _uploaded(call: str, name: str, x: Any, where: Where, like: ArrayView) -> ArrayView:
    """Return numbers of the host where the operands are."""
    import numpy as np

    values = np.asarray(x)
    if values.ndim != 1 or (values.size and values.dtype.kind not in "iu"):
        raise DtypeError(f"{call}: expected {name} as a list of integers, got {x!r}")
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


def _computed(call: _Call, g: Given, views: dict[str, ArrayView]) -> Any:
    """Check a grouped product, and compute it."""
    name, library = call.name, call.library
    a, b, numbers = views["a"], views["b"], views.get("gather")
    rows = a.shape if numbers is None else _gathered_shape(name, a, numbers)
    of_groups = {n: views[n] for n in g.groups}
    s = shapes_of(
        name, rows, b.shape, {n: x.shape for n, x in of_groups.items()},
        views["out"].shape if "out" in views else None,
    )  # fmt: skip
    problem = problem_of(name, s, views, g, library.name == "torch")
    _check_operands(name, views)
    if g.begins is None and (call.where.cpu or settings.flag("CUTE_OP_CHECK", False)):
        check_groups(name, s, {n: _on_host(library, x) for n, x in of_groups.items()})
        if numbers is not None:
            _check_gather(name, a.shape[0], _on_host(library, numbers))
    traced = None
    if g.epilogue is not None:
        if not isinstance(g.alpha, int | float):
            raise UnsupportedError(f"{name}: expected epilogue alone, got alpha too")
        alone(name, Extras(g.alpha, g.beta, g.c, g.bias, g.activation))
        traced = traced_of(name, g.epilogue, g.args or {}, s.result)
        if is_arranged(traced):
            return _as_matrices(call, g, views, traced, s, problem.output)
    elif g.args:
        raise UnsupportedError(f"{name}: expected args with an epilogue only, got {', '.join(g.args)}")
    shape = s.result if traced is None else traced.shape_of(s.result)
    if "out" in views:
        check_result(name, views, shape, None if g.dtype is None else element_name(g.dtype))
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
    gpu, sms = here() if call.where.cpu else gpu_of(call.where.gpu)
    if numbers is not None:
        views["a"] = _gathered(call, a, numbers)
    a, b, out = views["a"], views["b"], views["out"]
    wgmma = not is_of_warps(problem, g.kernel, s.form)
    if wgmma and ((isinstance(g.alpha, int | float) and g.alpha == 0.0) or s.k == 0):
        a, b = _zeros(library, a, b, s)  # what they hold does not matter
    begins = "row_groups" in of_groups or g.begins is not None
    majors = "k" if matrix(a).along(1) else "m", "n" if matrix(b).along(1) else "k"
    problem = problem._replace(major_a=majors[0], major_b=majors[1])
    if not wgmma:
        nothing = isinstance(g.alpha, int | float) and g.alpha == 0.0
        base = base_of(problem, s.form, after.epilogue or Epilogue(), g.kernel, sms)
        _by_warps(call, base, s, views, g, of_groups, after, nothing=nothing)
        return after.returned(result)
    majors = majors_of(s.form, problem.element, *majors)
    problem = problem._replace(major_a=majors[0], major_b=majors[1])
    config = _config(problem, s, begins, after.epilogue, g.kernel, gpu, sms)
    if call.planned:
        _check_readable(name, {"A": (a, majors[0] == "k"), "B": (b, majors[1] == "n"), "D": (out, True)})
    a = a if readable(a, majors[0] == "k") else copied(library, a, int(majors[0] == "k"))
    b = b if readable(b, majors[1] == "n") else copied(library, b, int(majors[1] == "n"))
    target = out
    if not readable(out, True):
        strides = aligned_strides(out.shape, 1, numpy_dtype(out.dtype).itemsize)
        target = library.strided(out.shape, strides, out.dtype, out)
        if s.form != "k":  # what is not written stays
            library.native(target)[...] = library.native(out)
    stretches = _stretches(call, s, of_groups)
    stretches = (*stretches, views["begins"]) if g.begins is not None else stretches
    given = (*(kernel_order(x) for x in (a, turn(b), target)), *stretches)
    if g.accumulator == "block":
        given = (*given, *(kernel_order(views[n]) for n in ("scale_a", "scale_b")))
    call.launch(config, *given, *after.operands)
    _finish(call, s, g, of_groups.get("row_groups", stretches[0]), target, out, after)
    return after.returned(result)


def _finish(
    call: _Call, s: Shapes, g: Given, ends: ArrayView, target: ArrayView, out: ArrayView, after: _After
) -> None:  # fmt: skip
    """Zero what is no group's, if that is asked for; bring the result to where it belongs."""
    if g.rest == "zero" and s.form != "k":
        form = "groups" if "row_groups" in g.groups else s.form
        for x in (target, *after.others):
            call.launch(ZeroConfig(x.dtype, form), kernel_order(x), ends)
    if target is not out:
        call.library.native(out)[...] = call.library.native(target)


def _check_rest(call: _Call, s: Shapes, g: Given, after: _After) -> None:
    """Check that what is no group's can be zeroed, if that is asked for.  Raises LayoutError."""
    if g.rest == "zero" and s.form != "k" and any(x.strides[-1] != 1 for x in after.others):
        raise LayoutError(f"{call.name}: expected results with contiguous rows where the rest is zeroed")


def _by_warps(
    call: _Call, base: Base, s: Shapes, views: Mapping[str, ArrayView], g: Given, of_groups: Mapping[str, ArrayView],
    after: _After, *, nothing: bool,
) -> None:  # fmt: skip
    """Compute a product by kernels without wgmma."""
    library, out = call.library, views["out"]
    target = out
    if not matrix(out).along(1):
        strides = aligned_strides(out.shape, 1, numpy_dtype(out.dtype).itemsize)
        target = library.strided(out.shape, strides, out.dtype, out)
        if s.form != "k":  # what is not written stays
            library.native(target)[...] = library.native(out)
    ends, *begins = (*_stretches(call, s, of_groups), *([] if g.begins is None else [views["begins"]]))
    first, (config, given) = launches_of(
        library, base, s, views["a"], views["b"], target, ends, begins[0] if begins else None, nothing=nothing
    )  # fmt: skip
    call.launch(*first[:1], *first[1])
    call.launch(config, *given, *after.operands)
    _finish(call, s, g, of_groups.get("row_groups", ends), target, out, after)


def problem_of(name: str, s: Shapes, views: Mapping[str, ArrayView], g: Given, of_torch: bool) -> Problem:
    """Return the product of a group of average size, majors aside.  Raises DtypeError, UnsupportedError."""
    a, b = views["a"], views["b"]
    if not can_mix(a.dtype, b.dtype):
        raise DtypeError(f"{name}: expected b of {a.dtype}, as a, got {b.dtype}")
    kind = both(a.dtype, b.dtype)
    output = views["out"].dtype if "out" in views else None
    if output is None:
        output = result_of(a.dtype) if g.dtype is None else element_name(g.dtype)
    allowed = kind == "f32" and g.math == "default" and of_torch and tf32_allowed()
    arithmetic = arithmetic_of(kind, g.math, g.accumulator, allowed)
    check_types(kind, output, arithmetic)
    element = element_of(kind, arithmetic)
    if kind == "f32" and arithmetic != "tf32":
        return average(s, "f32", output, ("k", "k"), MATH.get(arithmetic, MATH.get(g.math, "")))
    return average(s, element, output, ("k", "k"), "" if arithmetic == "tf32" else arithmetic)


def _check_operands(name: str, views: Mapping[str, ArrayView]) -> None:
    """Check that operands have a contiguous mode.  Raises LayoutError."""
    for n in ("a", "b"):
        m = matrix(views[n])
        if not m.along(1) and not m.along(0) and 0 not in views[n].shape:
            raise LayoutError(
                f"{name}: expected {n} with a contiguous mode, got strides {tuple(views[n].strides[-2:])}"
            )


def check_groups(name: str, s: Shapes, numbers: Mapping[str, list[int]]) -> None:
    """Check where groups end, or how long they are, or the group of each row.  Raises ShapeError."""
    for what, x in numbers.items():
        before = 0
        for i, n in enumerate(x):
            if what == "lengths":
                if not 0 <= n <= s.m:
                    raise ShapeError(f"{name}: expected lengths between 0 and {s.m}, got lengths[{i}] = {n}")
            elif what == "row_groups":
                if not -1 <= n < s.groups:
                    raise ShapeError(f"{name}: expected groups of -1 to {s.groups - 1}, got row_groups[{i}] = {n}")
                if 0 <= n < before:
                    raise ShapeError(f"{name}: expected sorted row_groups, got row_groups[{i}] = {n} behind {before}")
                before = max(before, n)
            else:
                if i == 0 and len(x) == s.groups + 1 and n != 0:
                    raise ShapeError(f"{name}: expected offs of {len(x)} to begin with 0, got offs[0] = {n}")
                if n < before:
                    at = f"offs[{i - 1}] = {before}" if i else "0"
                    raise ShapeError(f"{name}: expected rising offs, got offs[{i}] = {n} < {at}")
                if n > s.cut:
                    raise ShapeError(f"{name}: expected offs up to {s.cut}, got offs[{i}] = {n}")
                before = n


def _on_host(library: Library, x: ArrayView) -> list[int]:
    """Return numbers; waits for them where they are on a GPU."""
    return [int(n) for n in library.native(x).tolist()] if 0 not in x.shape else []


class _After(NamedTuple):
    """What becomes of the sums, what the launch takes for it, and results beside the first."""

    epilogue: Epilogue | None = None
    operands: tuple[Any, ...] = ()
    others: tuple[ArrayView, ...] = ()
    bound: Bound | None = None

    def returned(self, result: Any) -> Any:
        """Return all results, as an epilogue's function does."""
        return result if self.bound is None else self.bound.traced.formed(self.bound.results)


def _as_matrices(
    call: _Call, g: Given, views: Mapping[str, ArrayView], traced: Traced, s: Shapes, output: str
) -> Any:  # fmt: skip
    """Compute a product whose epilogue has shapes of its own: as matrices, which are copied, but not of a plan."""
    if call.planned and traced.views:
        raise EpilogueError(
            f"{call.name}: expected no reshape() and permute() of {', '.join(traced.views)} in epilogue {traced.name}: "
            "op.grouped_mm has them"
        )

    def make(shape: tuple[int, ...], kind: str) -> Any:
        return call.library.empty(call.name, shape, kind or output, g.a)

    args = g.args or {}
    apart, out = Apart.of(call.name, traced, args, g.out, s.result, make, keep=g.rest == "keep")
    for n in [a.name for a in traced.arguments if call.planned and a.view is not None]:
        if view_of(apart.args[n]).pointer != view_of(args[n]).pointer:
            raise LayoutError(f"{call.name}: expected {n} that lies as the sums do: op.grouped_mm copies it")
    views = {n: v for n, v in views.items() if n != "out"} | ({} if out is None else {"out": view_of(out)})
    found = _computed(call, g._replace(epilogue=apart.plain, args=apart.args, out=out), views)
    return apart.arranged(by_name(apart.plain, found))


def _epilogue(
    call: _Call, s: Shapes, g: Given, traced: Traced | None, result: Any, output: str, *, wide: bool
) -> _After:  # fmt: skip
    """Return what becomes of the sums; ``wide``: all in f64.  Raises OpError."""
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
        return _After()
    else:
        of_sums = {} if g.accumulator == "block" else g.scales
        made = combined(name, s, result, g.alpha, g.beta, g.c, g.bias, g.activation, of_sums)
        if made is None:
            return _After()
        graph, operands = made
    if wide:
        graph = graph._replace(inputs=tuple([x._replace(element="f64") if x.number else x for x in graph.inputs]))
    given = tuple([view_of(x) if hasattr(x, "shape") else x for x in operands])
    return _After(Epilogue(graph=graph), given, tuple(others), found)


def _gathered_shape(name: str, a: ArrayView, numbers: ArrayView) -> tuple[int, int]:
    """Return the extents of the rows of a that are multiplied.  Raises ShapeError."""
    if len(a.shape) != 2 or len(numbers.shape) != 1:
        raise ShapeError(
            f"{name}: expected a matrix a and gather of rank 1, got {tuple(a.shape)} and {tuple(numbers.shape)}"
        )
    if 0 in (*a.shape, *numbers.shape):
        raise ShapeError(f"{name}: expected rows to gather, got {tuple(numbers.shape)} of {tuple(a.shape)}")
    return numbers.shape[0], a.shape[1]


def _check_gather(name: str, rows: int, numbers: list[int]) -> None:
    """Check which rows are multiplied.  Raises ShapeError."""
    for i, n in enumerate(numbers):
        if not 0 <= n < rows:
            raise ShapeError(f"{name}: expected gather of rows 0 to {rows - 1}, got gather[{i}] = {n}")


def _gathered(call: _Call, a: ArrayView, numbers: ArrayView) -> ArrayView:
    """Return rows of a, brought together by a kernel."""
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
    """Return operands whose products are zeros."""
    k = 16 // numpy_dtype(a.dtype).itemsize
    x = library.zeros((a.shape[-2], k), a.dtype, a)
    y = turn(library.zeros((b.shape[-1], k), b.dtype, b))
    of_a, of_b = ((t.shape[0],) if len(t.shape) == 3 else () for t in (a, b))
    return expanded(x, (*of_a, *x.shape)), expanded(y, (*of_b, *y.shape))


def readable(x: ArrayView, rows: bool) -> bool:
    """Tell whether TMA can read or write a matrix, or those of a batch, along rows or columns."""
    m = matrix(x)
    if not m.along(1 if rows else 0):
        return False
    line = x.strides[-2] if rows else x.strides[-1]
    step = x.strides[0] if len(x.shape) == 3 and x.shape[0] > 1 else 0
    whole = line * m.item % 16 == 0 and line > 0 and (len(x.shape) == 2 or x.shape[0] == 1 or step > 0)
    return m.address % 16 == 0 and whole and step * m.item % 16 == 0


def _check_readable(name: str, matrices: Mapping[str, tuple[ArrayView, bool]]) -> None:
    """Raise LayoutError for a matrix that TMA reads only after a copy; with each whether it is read along rows."""
    for n, (view, rows) in matrices.items():
        if not readable(view, rows):
            raise LayoutError(
                f"{name}: expected {n} contiguous along {'rows' if rows else 'columns'}, at a whole 16 bytes and with "
                f"lines of whole 16 bytes, which TMA needs, got strides {tuple(view.strides)}; grouped_mm() copies it"
            )


def _stretches(call: _Call, s: Shapes, given: Mapping[str, ArrayView]) -> tuple[ArrayView, ...]:
    """Return where groups end (or how long they are), and where they begin if that is to be said."""
    ((name, x),) = given.items()
    if x.strides[0] != 1 and x.shape[0] > 1:
        if call.planned:
            raise LayoutError(
                f"{call.name}: expected {name} without gaps, got strides {tuple(x.strides)}; grouped_mm() copies it"
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
) -> GroupedConfig:  # fmt: skip
    """Return the kernel: the one that a call wants, or the fastest."""
    if kernel is None:
        return choose(p, s.form, begins, epilogue, gpu, sms)
    if isinstance(kernel, GroupedConfig):
        choice = Choice(kernel.base._replace(batch=True))
    else:
        choice = kernel_for(p, Wanted(kernel), gpu, sms)
    try:
        return as_grouped(choice, s.form, begins, epilogue)
    except ValueError as e:
        raise UnsupportedError(f"kernel: {choice.name} computes no groups: {e}") from None
