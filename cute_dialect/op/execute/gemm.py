"""Execution of GEMMs: ``mm`` and ``bmm`` from their arguments to launches, and the launches of a planned call.

Usually there is one launch.  If f32 is split into tf32 parts, kernels that split A and B come first.  If split-K slices
are computed separately, a reduction follows.  Slices are multiples of 128 bytes of K, all equal except the last one,
and are added in order.
"""

# torch is not installed where types are checked; arrays may belong to any library.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from functools import partial
from math import prod
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from cute_dialect.kernels.epilogue.combination import Epilogue
from cute_dialect.kernels.epilogue.reductions import ReduceConfig
from cute_dialect.kernels.gemm.split_tf32 import PartsConfig, padded
from cute_dialect.op.arrays.dtypes import FAST, SIZES, both, element_name, result_of, tf32_allowed
from cute_dialect.op.arrays.library import Where, check_options, chosen_device, read_all
from cute_dialect.op.arrays.memory import NOWHERE, new_memory
from cute_dialect.op.arrays.operand_views import (
    copied,
    expanded,
    folded,
    goes_on,
    is_batch,
    kernel_order,
    one_matrix,
    vector,
    with_padded_rows,
    zeros,
)
from cute_dialect.op.epilogue.bind import Bound, arranged, bound, combining, in_place_of, memory_of, traced_of
from cute_dialect.op.epilogue.combination import LinearCombination, combination, is_rounded, operands_of, unfused
from cute_dialect.op.epilogue.output_layout import as_array
from cute_dialect.op.errors import OpError, UnsupportedError
from cute_dialect.op.execute.kernels import Variant, chip_here, launcher_of
from cute_dialect.op.execute.pointer_arrays import joined, one_view
from cute_dialect.op.execute.tma_copies import pads, with_padding
from cute_dialect.op.problems.gemm import GemmProblem, check_gemm
from cute_dialect.op.problems.operands import Operands, check_overlap, check_product, matrix
from cute_dialect.op.select.backends import GEMM_CCS, backend_of
from cute_dialect.op.select.configurations import Configured
from cute_dialect.op.select.descriptions import ALONE, Split
from cute_dialect.op.select.gemm_dispatch import (
    ANY,
    SCALES,
    KernelOverride,
    Plan,
    SlicesKernel,
    Target,
    here,
    make_plan,
    target_of,
)
from cute_dialect.op.select.kernel_choice import Problem
from cute_dialect.op.select.other_dispatch import plan_on
from cute_dialect.op.signature_types import Interpreted
from cute_dialect.runtime.arrays import ArrayView, view_of

if TYPE_CHECKING:  # pragma: no cover
    from cute_dialect.op.epilogue.bind import Reduced
    from cute_dialect.op.pycutlass.operation import GemmOperationUniversal


class _Call(NamedTuple):
    """A call in progress."""

    name: str
    rank: int
    where: Where
    stream: object
    run: Interpreted
    wanted: KernelOverride
    owned: bool = False  # the call may overwrite the padding between rows of ``out``


def product(
    name: str, rank: int, a: Any, b: Any, out: Any, dtype: object, extras: LinearCombination, device: object = None,
    stream: object = None, run: Interpreted | None = None, graph: Any = None,
    args: Mapping[str, Any] = MappingProxyType({}), wanted: KernelOverride = ANY,
    scales: Mapping[str, Any] = MappingProxyType({}), owned: bool = False,
) -> Any:  # fmt: skip
    """Compute ``mm`` (``rank`` 2) or ``bmm`` (3).

    Args:
        graph: an epilogue.
        args: its arguments.
        wanted: the kernel, if the call selects one.
        scales: block scales ``scale_a`` and ``scale_b``.
        owned: the call may overwrite the padding between rows of ``out``.

    Raises subclasses of OpError, and exceptions of a launch.
    """
    run, device = run or {}, chosen_device(device)
    options: dict[str, object] = {key: value for key, value in run.items() if key != "report"}
    check_options(name, device, options)
    arrays = {"a": a, "b": b, "out": args.get("D") if out is None else out, "c": extras.c, "bias": extras.bias}
    arrays |= scales
    where, views = read_all(name, arrays, device, stream)
    call = _Call(name, rank, where, stream, run, wanted, owned)
    on = nullcontext() if stream is None or where.cpu else where.library.on(stream, where.gpu)
    try:
        with on:
            return _product(call, arrays, views, dtype, extras, graph, args)
    except OpError as e:
        if str(e).startswith(f"{name}: "):
            raise
        raise type(e)(f"{name}: {e}") from None  # raised by code that does not know the call


def _product(
    call: _Call, arrays: Mapping[str, Any], views: dict[str, ArrayView], dtype: object, extras: LinearCombination,
    graph: Any = None, args: Mapping[str, Any] = MappingProxyType({}),
) -> Any:  # fmt: skip
    """Check a GEMM, then compute it."""
    name, library = call.name, call.where.library
    a, b = views["a"], views["b"]
    nothing = extras.alpha == 0.0 or a.shape[-1] == 0  # no terms, so the values of a and b do not matter
    if graph is None and _widens(views, extras, dtype):
        graph, args = _combination(arrays, views, check_product(name, call.rank, a, b), extras)
        extras = extras.of_sums()
        del views["c"]
    traced = None if graph is None else traced_of(name, graph, args, check_product(name, call.rank, a, b))
    tf32 = a.dtype == "f32" and library.name == "torch" and tf32_allowed()
    checked = check_gemm(GemmProblem.of(name, call.rank, views, dtype, extras, tf32=tf32), traced)
    sums_of, shape, kind, element, arithmetic, _ = checked
    if "out" in views:
        check_overlap(name, views)
    target = _target(call)._replace(wanted=call.wanted, owned=call.owned)
    result = arrays.get("out")
    if result is None:
        result = library.empty(name, shape, element, arrays["a"])
        views["out"] = view_of(result)
    found = None
    if traced is not None:

        def another(shape: tuple[int, ...], kind: str) -> Any:
            return library.empty(name, shape, kind or element, arrays["a"])

        found = bound(traced, args, result, sums_of, another)
        found.check_memory(name, views["out"], {"a": a, "b": b})
    own = None if traced is None else arranged(traced, views["out"], sums_of)
    if own is not None and 0 not in shape:
        shape = own.shape
        views["out"] = own.plain or in_place_of(own)
    if 0 in shape:
        if found is not None:
            found.nothing()
        return _returned(found, result)
    if nothing:
        views |= zeros(library, a, b, sums_of)
    narrow = FAST.get(extras.math)
    if narrow is not None:
        views |= {n: copied(library, views[n], int(matrix(views[n]).along(1)), narrow) for n in ("a", "b")}
    alpha = 1.0 if nothing else extras.alpha
    c = views.pop("c", None)
    if c is not None and extras.beta != 0.0:
        views["c"] = expanded(c, shape)
    graph = None if found is None else found.graph
    make = plan_on if target.chip else make_plan  # fewer calls on GPUs with wgmma
    plan, is_stored = make(name, checked, views, target, graph, own)
    copy: ArrayView | None = None
    if own is not None and own.plain is None:
        if is_stored:
            views["flat"] = own.flat
        else:
            copy = views["out"] = with_padded_rows(library, shape, element, own.flat)
    if plan.by_torch:
        if extras.hook is not None:
            raise UnsupportedError(f"{name}: {_no_hook(plan.problem, plan.flipped)}")
        of_sums = {n: views[n] for n in ("a", "b", *SCALES) if n in views}
        given = {n: library.native(v) for n, v in of_sums.items()}
        if found is not None and kind == "f64":
            raise UnsupportedError(
                f"{name}: a traced epilogue computes in f32 and does not support f64; apply the function to the result"
            )
        # The library rounds the result, so it gets the unrounded accumulator; an f16 accumulator stays f16.
        wide = "f32" if both(a.dtype, b.dtype)[:1] in "bf" and kind != "f64" and arithmetic != "f16" else None
        sums = _product(call, given, of_sums, wide, LinearCombination() if narrow else extras.of_sums())
        if found is not None:
            found.by_library(sums)
        else:
            added = None if extras.beta == 0.0 else arrays["c"]
            unfused(sums, result, alpha, extras.beta, added, arrays["bias"], extras.activation)
        return _returned(found, result)
    _launch(call, views, plan, alpha, extras.beta, found)
    if copy is not None and traced is not None:
        view = traced.views["D"]
        result[...] = as_array(library.native(copy), view, shape)
    return _returned(found, result)


def _target(call: _Call) -> Target:
    """Return the GPU of a call.  On the interpreter, the name of a kernel may select another one than sm_90."""
    if not call.where.cpu:
        return target_of(call.where.gpu)
    kernel = call.wanted.kernel
    named = re.search(r"-sm_?(\d+)a?\b", kernel) if isinstance(kernel, str) else None
    chip = 0 if named is None else int(named[1])
    return Target(*here(), chip=chip if chip in GEMM_CCS else 0)


def _widens(views: Mapping[str, ArrayView], extras: LinearCombination, dtype: object) -> bool:
    """Return True if kernels would round ``c`` to the result's type before it is added."""
    c, out = views.get("c"), views.get("out")
    if c is None or extras.beta == 0.0 or extras.hook is not None:
        return False
    result = out.dtype if out is not None else result_of(views["a"].dtype) if dtype is None else element_name(dtype)
    return is_rounded(c.dtype, result)


def _combination(
    arrays: Mapping[str, Any], views: Mapping[str, ArrayView], shape: tuple[int, ...], extras: LinearCombination
) -> tuple[Any, dict[str, Any]]:
    """Return the traced epilogue of ``activation(alpha * accum + beta * c + bias)``, and its arguments."""
    given = operands_of({"alpha": extras.alpha, "beta": extras.beta, "C": views["c"], "bias": views.get("bias")})
    args = {n: x if isinstance(x, float) else arrays["c" if n == "C" else n] for n, x in given.items()}
    return combination(given, shape, extras.activation), args


def _no_hook(p: Problem, flipped: bool) -> str:
    """Return the reason why no kernel for a problem supports a hook, and the alternative."""
    if p.element == "f64":
        return "hook does not support f64 operands; apply the function to the result"
    if p.element == "f32":
        return f"hook does not support f32 operands with {p.output} results; use math='tf32', or an f32 result"
    return f"hook needs an even {'M' if flipped else 'N'}, but it is {p.n}; use epilogue"


def _returned(found: Bound | None, result: Any) -> Any:
    """Return the results of the epilogue's function, or ``result`` if there is no epilogue."""
    return result if found is None else found.traced.formed(found.results)


def _launch(
    call: _Call, views: Mapping[str, ArrayView], plan: Plan, alpha: float, beta: float, found: Bound | None
) -> None:
    """Launch the kernels of a plan, on copies of operands that they cannot read or write.

    Args:
        found: the epilogue with its arrays, if it is traced.
    """
    library, epilogue = call.where.library, plan.epilogue
    a, b, out, c, bias = (views.get(n) for n in ("a", "b", "out", "c", "bias"))
    assert a is not None and b is not None and out is not None
    x = Operands(a, b, out, c, alpha=alpha, beta=beta)
    a, b, d, c, *_ = x.transposed() if plan.flipped else x  # those of the plan's problem
    if plan.folded and len(d.shape) == 3:
        if c is not None and not goes_on(c):
            c = copied(library, c, 1, d.dtype)
        a, d = folded(a), folded(d)
        b = b._replace(shape=b.shape[1:], strides=b.strides[1:])
        c = None if c is None else folded(c)
    elif len(d.shape) == 3:  # a matrix shared by the batch is one matrix for the kernel
        a, b = one_matrix(a), one_matrix(b)
    along = (int(plan.problem.major_a == "k"), int(plan.problem.major_b == "n"))
    wanted = {n: (t, mode) for n, t, mode in (("a", a, along[0]), ("b", b, along[1])) if n in plan.copied}
    # The kernel that pads is compiled for the default chip.
    to_pad = {n: t for n, t in wanted.items() if pads(*t) and not plan.chip}
    made = {n: copied(library, *t) for n, t in wanted.items() if n not in to_pad}
    if to_pad:
        made |= with_padding(library, to_pad, partial(_tell, call), _options(call), call.where.cpu)
    if found is None and epilogue is not None:
        if c is not None and not (c.dtype == d.dtype and c.strides[-1] == 1 and matrix(c).suits_tma()):
            c = copied(library, c, 1, d.dtype)
        if bias is not None:
            flat = vector(bias)
            bias = library.copied(flat, (1,)) if flat.strides[0] != 1 or flat.pointer % 16 else flat
        x = x._replace(bias=bias)
    else:
        c = None
    target = with_padded_rows(library, d.shape, d.dtype, d) if "out" in plan.copied else d
    x = x._replace(a=made.get("a", a), b=made.get("b", b), d=target, c=c)
    x = x.transposed() if plan.flipped else x
    x = x._replace(scales=tuple([views[n] for n in SCALES if n in views]), stored=views.get("flat"))
    if found is not None and epilogue is not None:
        behind = tuple([view_of(t) if hasattr(t, "shape") else t for t in found.operands])
        x = x._replace(graph=epilogue.graph, behind=behind, reduced=tuple(found.reduced))
    for variant, operands in steps_of(plan, x, lambda n: library.strided((n,), (1,), "f32", out), dependent=True):
        _tell(call, launcher_of(variant, call.where.cpu)(operands, **_options(call)))
    if target is not d:
        library.native(d)[...] = library.native(target)


def _tell(call: _Call, report: Any) -> None:
    """Pass the interpreter's report of a launch to the call's ``report`` function."""
    if report is not None and "report" in call.run:
        call.run["report"](report)


def _options(call: _Call) -> dict[str, Any]:
    return options_of(call.where, call.stream, call.run)


def options_of(where: Where, stream: object, run: Interpreted) -> dict[str, Any]:
    """Return the call options of a kernel."""
    if where.cpu:
        return {"device": "cpu", **{key: value for key, value in run.items() if key != "report"}}
    found: dict[str, Any] = {}
    if where.library.name == "numpy" and where.device is not None:
        found["device"] = where.device
    if stream is not None and where.library.name not in ("torch", "cupy"):  # their stream is the library's current one
        found["stream"] = stream
    return found


# ------------------------------------------------------------------------------------------------------- launches

Memory: TypeAlias = Callable[[int], ArrayView]
"""Allocates a number of f32 elements."""


class Step(NamedTuple):
    """A launch: the kernel and its operands."""

    variant: Variant
    operands: Operands


class Workspace(NamedTuple):
    """Accumulators of split-K slices in memory."""

    memory: ArrayView  # (M, N, slices) of D, or of D^T if kernels compute that; a batch has a last mode
    element: str
    asked: int = 0  # number of slices that was requested

    @property
    def parts(self) -> int:
        """Number of slices."""
        return self.memory.shape[2]


def steps_of(plan: Plan, x: Operands, memory: Memory | None = None, *, dependent: bool = False) -> list[Step]:
    """Return the launches of a plan.

    Args:
        memory: allocates f32 elements; default: like D.
        dependent: launches that combine partial reductions use programmatic dependent launch.
    """
    x, before = split_steps(plan.splitters, x, memory or f32_like(x.d), plan.chip)
    variant = Variant(plan.kernel, plan.epilogue or Epilogue(), plan.flipped, plan.chip)
    if not plan.slices and not isinstance(plan.kernel, ReduceConfig):
        return [*before, *combined_steps(variant, x, memory, dependent=dependent)]
    workspace, found = partial_steps(plan, x)
    return [*before, *found, reduction(variant, x, workspace)]


def operation_steps(operation: GemmOperationUniversal, x: Operands, split: Split = ALONE) -> list[Step]:
    """Return the launches of a call of an operation.  Raises UnsupportedError, EpilogueError."""
    if 0 in x.d.shape:
        return _of_nothing(x)
    if x.a.shape[-1] == 0 or x.alpha == 0.0:  # A and B do not affect the result, even if they hold NaN.
        x, split = _without_terms(x) if x.by_element else _zeros(x), ALONE
    return steps_of(operation.plan_for(x, split), x)


def _without_terms(x: Operands) -> Operands:
    """Return operands with a K of 0, whose alpha does not matter."""
    (*of_a, _), (*of_b, _, n) = x.a.shape, x.b.shape
    a, b = x.a._replace(shape=(*of_a, 0)), x.b._replace(shape=(*of_b, 0, n))
    return x._replace(a=a, b=b, alpha=1.0)


def split_steps(
    splitters: Sequence[PartsConfig], x: Operands, memory: Memory, chip: str = ""
) -> tuple[Operands, list[Step]]:
    """Return operands with A and B split into tf32 parts, and the launches that split them.

    Args:
        splitters: the kernels for A and B; empty if nothing is split.
        memory: allocates the parts.
    """
    if not splitters:
        return x, []
    views = [v if config.batch else _one(v) for config, v in zip(splitters, (x.a, x.b.transposed()))]
    found = [_split_step(Variant(config, chip=chip), view, memory) for config, view in zip(splitters, views)]
    of_a, of_b = (step.operands.d for step in found)
    return x._replace(a=of_a, b=of_b.transposed()), found


def _split_step(variant: Variant, x: ArrayView, memory: Memory) -> Step:
    """Return the launch that writes the three tf32 parts of an f32 operand (…, rows, K) side by side along K."""
    *matrices, rows, k = x.shape
    columns = 3 * padded(k)
    parts = memory(prod(matrices) * rows * columns)._replace(
        shape=(*matrices, rows, columns), strides=(*[rows * columns for _ in matrices], columns, 1)
    )
    return Step(variant, Operands(kernel_order(x), x, parts))


def f32_like(view: ArrayView) -> Memory:
    """Return the allocator of the library of an array."""
    return lambda n: new_memory(view, n, "f32")


def _one(view: ArrayView) -> ArrayView:
    """Return the matrix of a batch of one or of a broadcast batch; other arrays unchanged."""
    if len(view.shape) == 2 or is_batch(view):
        return view
    return view._replace(shape=view.shape[1:], strides=view.strides[1:])


def combined_steps(
    variant: Variant, x: Operands, memory: Memory | None = None, *, dependent: bool = False
) -> list[Step]:
    """Return a launch, and the launches that combine its partial reductions.

    Args:
        memory: allocates f32 elements; default: like D.
        dependent: the launches that combine use programmatic dependent launch.
    """
    if not x.reduced:
        return [Step(variant, x)]
    memory = memory or f32_like(x.d)
    recipe, (m, n) = variant.recipe(), x.d.shape[-2:]
    n = n * 2 if x.graph is not None and x.graph.half else n  # N of the accumulator
    rows, columns = (n, m) if recipe.transposed else (m, n)
    matrices = x.d.shape[0] if len(x.d.shape) == 3 else 1
    matrices = matrices if x.places is None else x.places.shape[1]
    behind, more = list(x.behind), list[Step]()
    for each in x.reduced:
        extents = each.extents(rows, columns, recipe.at_once, recipe.transposed)
        made = memory(extents[0] * extents[1] * matrices)
        behind[each.place] = parts = memory_of(made, extents, matrices)
        more += _combining(variant.chip, each, parts, memory, dependent=dependent)
    return [Step(variant, x._replace(behind=tuple(behind))), *more]


def _combining(chip: str, each: Reduced, parts: ArrayView, memory: Memory, *, dependent: bool = False) -> list[Step]:
    """Return the launches that combine the partial values of a reduced result."""
    steps: list[Step] = []
    for c in combining(each, parts, memory):
        config = c.config._replace(dependent=True) if dependent else c.config
        steps.append(Step(Variant(config, chip=chip), Operands(c.parts, c.parts, c.results)))
    return steps


def _of_nothing(x: Operands) -> list[Step]:
    """Return the launches that fill reduced results with their identity when D is empty."""
    found: list[Step] = []
    for each in x.reduced:
        if 0 not in each.result.shape:
            *matrices, m, n = each.result.shape
            many = matrices[0] if matrices else 1
            none = x.d._replace(dtype="f32", pointer=x.d.pointer & -16, shape=(0, m * n, many), strides=(1, 1, 1))
            found += _combining(chip_here(), each._replace(axes="m" if m == 1 else "n"), none, f32_like(x.d))
    return found


def _zeros(x: Operands) -> Operands:
    """Return operands of zeros with a small K, so that the accumulator is 0."""
    k = 16

    def zeros(view: ArrayView, mode: int, rows: int) -> ArrayView:
        lines = -(-rows // 16) * 16
        memory = new_memory(x.d, lines * k, view.dtype, zero=True)
        along = view.strides[-2:][mode] == 1  # contiguous along K
        shape, strides = (rows, k), ((k, 1) if along else (1, lines))
        return memory._replace(shape=shape[:: 1 if mode else -1], strides=strides[:: 1 if mode else -1])

    return x._replace(a=zeros(x.a, 1, x.a.shape[-2]), b=zeros(x.b, 0, x.b.shape[-1]))


def _workspace(plan: Plan, x: Operands, parts: int) -> Workspace:
    """Allocate the workspace of split-K slices."""
    assert isinstance(plan.kernel, ReduceConfig)
    *batch, m, n = x.d.shape
    m, n = (n, m) if plan.flipped else (m, n)
    wide = -(-n // 4) * 4
    sums = plan.kernel.sums
    # Without slices it is never read.
    memory = (
        new_memory(x.d, prod(batch) * parts * m * wide, sums)
        if parts
        else x.d._replace(dtype=sums, pointer=x.d.pointer & -16)
    )
    shape, strides = (m, wide, parts, *batch), (wide, 1, m * wide, *[parts * m * wide for _ in batch])
    return Workspace(memory._replace(shape=shape, strides=strides), sums, parts)


def reduction(variant: Variant, x: Operands, workspace: Workspace) -> Step:
    """Return the launch that adds up slices and computes the epilogue."""
    return Step(variant, x._replace(a=workspace.memory, b=workspace.memory))


def partial_steps(plan: Plan, x: Operands) -> tuple[Workspace, list[Step]]:
    """Return the workspace, and the launches that compute its split-K slices."""
    workspace = _workspace(plan, x, sum([s.slices for s in plan.slices]))
    found: list[Step] = []
    for s in plan.slices:
        variant = Variant(s.kernel, flipped=plan.flipped, chip=backend_of(s.kernel).target or plan.chip)
        found.append(Step(variant, _slice_operands(x, workspace.memory, s, flipped=plan.flipped)))
    return workspace, found


def _slice_operands(x: Operands, workspace: ArrayView, s: SlicesKernel, *, flipped: bool) -> Operands:
    """Return the operands of a launch that computes split-K slices."""
    if s.array:
        return joined(_each_slice(x, workspace, s, flipped=flipped))
    return Operands(
        _along_k(x.a, -1, s.begin, s.slices, s.k),
        _along_k(x.b, -2, s.begin, s.slices, s.k),
        _part(workspace, x.d, s.first, s.slices, turned=flipped),
    )


def _each_slice(x: Operands, workspace: ArrayView, s: SlicesKernel, *, flipped: bool) -> list[Operands]:
    """Return the GEMM of each slice and matrix of a batch."""
    each = [s._replace(first=s.first + i, slices=1, begin=s.begin + i * s.k, array=False) for i in range(s.slices)]
    return [y for one in each for y in _each_matrix(_slice_operands(x, workspace, one, flipped=flipped))]


def with_slices(plan: Plan, x: Operands, parts: int, kernel_for: Callable[[Operands, bool], Configured]) -> Plan:
    """Return a plan whose kernel adds up split-K slices, with the launches that compute these.

    Args:
        x: the operands after the splitters.
        kernel_for: returns the kernel for the operands of slices, and True if they are a pointer array.
    """
    each, whole, rest = _division(x, parts)
    memory = _workspace(plan, x._replace(d=x.d._replace(library=NOWHERE)), whole + (rest > 0)).memory

    def launch(first: int, count: int, k: int, *, array: bool = False) -> SlicesKernel:
        s = SlicesKernel(plan.kernel, first, count, k, first * each, array)
        return s._replace(kernel=kernel_for(_slice_operands(x, memory, s, flipped=plan.flipped), array))

    found = [(0, whole)] if whole else []
    if len(x.d.shape) == 3:  # Each slice is a batch.
        every = SlicesKernel(plan.kernel, 0, whole, each, 0)
        if whole > 1 and _is_joinable(_each_slice(x, memory, every, flipped=plan.flipped)):
            last = [launch(whole, 1, rest)] if rest else []
            return plan._replace(slices=(launch(0, whole, each, array=True), *last))
        found = [(i, 1) for i in range(whole)]
    slices = [launch(*pair, each) for pair in found] + ([launch(whole, 1, rest)] if rest else [])
    return plan._replace(slices=tuple(slices))


def _each_matrix(x: Operands) -> list[Operands]:
    """Return the GEMMs of a batch."""

    def matrix(view: ArrayView, i: int) -> ArrayView:
        if len(view.shape) == 2:
            return view
        at = i * view.strides[0] * SIZES.get(view.dtype, 1) if view.shape[0] > 1 else 0
        return view._replace(pointer=view.pointer + at, shape=view.shape[1:], strides=view.strides[1:])

    return [Operands(matrix(x.a, i), matrix(x.b, i), matrix(x.d, i)) for i in range(x.d.shape[0])]


def _is_joinable(found: Sequence[Operands]) -> bool:
    """Return True if GEMMs can be a pointer array of one launch: matrices are aligned, and not too far apart."""
    for name in ("a", "b", "d"):
        one = one_view([getattr(x, name) for x in found])
        if one is None or (len(found) > 1 and one[0].strides[0] * SIZES.get(one[0].dtype, 1) % 16):
            return False
    return True


def _division(x: Operands, parts: int) -> tuple[int, int, int]:
    """Return the K of a full slice, the number of full slices, and the K of a smaller last slice, or 0."""
    unit = 128 // SIZES.get(x.a.dtype, 1)
    k = x.a.shape[-1]
    steps = -(-k // unit)
    each = -(-steps // min(parts, steps)) * unit
    return each, *divmod(k, each)


def parts_of(x: Operands, split: Split) -> tuple[int, str]:
    """Return the number of split-K slices, and the reason if they are fewer than requested."""
    unit = 128 // SIZES.get(x.a.dtype, 1)
    steps = max(1, -(-x.a.shape[-1] // unit))
    if split.mode == "stream" or split.parts == 1:
        return split.parts, ""
    found = min(split.parts, steps)
    if split.mode == "parallel" and x.a.shape[-1]:
        _, whole, rest = _division(x, split.parts)
        found = whole + (rest > 0)
    if found == split.parts:
        return found, ""
    why = f"K {x.a.shape[-1]} has {steps} steps of {unit}"
    return found, why if split.parts > steps else f"{why}, split evenly over the slices"


def _along_k(view: ArrayView, mode: int, begin: int, many: int, length: int) -> ArrayView:
    """Return slices of a matrix along K as a batch; one slice as a matrix."""
    step = view.strides[mode]
    shape = [length if i == mode % len(view.shape) else n for i, n in enumerate(view.shape)]
    at = view._replace(pointer=view.pointer + begin * step * SIZES.get(view.dtype, 1), shape=tuple(shape))
    if many == 1:
        return at
    return at._replace(shape=(many, *at.shape), strides=(length * step, *at.strides))


def _part(memory: ArrayView, d: ArrayView, first: int, many: int, *, turned: bool) -> ArrayView:
    """Return the workspace of some slices of D as a matrix, or a batch (slices, M, N)."""
    row, column, step, *matrix = memory.strides
    at = memory._replace(pointer=memory.pointer + first * step * SIZES[memory.dtype])
    strides = (*matrix, column, row) if turned else (*matrix, row, column)
    if many == 1:
        return at._replace(shape=d.shape, strides=strides)
    return at._replace(shape=(many, *d.shape), strides=(step, *strides))
