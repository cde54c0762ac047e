"""Execution of ``mm`` and ``bmm``: check the arguments, choose a kernel and launch it."""

# torch is not installed where types are checked; arrays may belong to any library.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

from collections.abc import Mapping
from contextlib import nullcontext
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

from cute_dialect.kernels.epilogue.combination import Epilogue
from cute_dialect.op.arrays.dtypes import FAST, both, element_name, result_of, tf32_allowed
from cute_dialect.op.arrays.library import Where, check_options, chosen_device, read_all
from cute_dialect.op.arrays.operand_views import (
    copied,
    expanded,
    folded,
    goes_on,
    one_matrix,
    turn,
    vector,
    with_padded_rows,
    zeros,
)
from cute_dialect.op.epilogue.bind import Bound, arranged, bound, in_place_of, traced_of
from cute_dialect.op.epilogue.combination import LinearCombination, combination, is_rounded, operands_of, unfused
from cute_dialect.op.epilogue.output_layout import as_array
from cute_dialect.op.errors import OpError, UnsupportedError
from cute_dialect.op.execute.kernels import Variant, launcher_of
from cute_dialect.op.execute.launch_sequence import Step, combined_steps, split_step
from cute_dialect.op.execute.launcher import transposed_operands
from cute_dialect.op.execute.tma_copies import pads, with_padding
from cute_dialect.op.problems.gemm import GemmProblem, check_gemm
from cute_dialect.op.problems.operands import Operands, check_overlap, check_product, matrix
from cute_dialect.op.select.gemm_dispatch import (
    ANY,
    SCALES,
    GemmPlan,
    KernelOverride,
    Target,
    by_rows,
    gpu_of,
    here,
    make_plan,
)
from cute_dialect.op.select.kernel_choice import Problem
from cute_dialect.op.signature_types import Interpreted
from cute_dialect.runtime.arrays import ArrayView, view_of

if TYPE_CHECKING:  # pragma: no cover
    pass


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
    gpu, sms = here() if call.where.cpu else gpu_of(call.where.gpu)
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
    plan, is_stored = make_plan(name, checked, views, Target(gpu, sms, call.wanted, call.owned), graph, own)
    way, flipped, _ = plan
    if flipped:
        views, _ = by_rows(views, None)
    copy: ArrayView | None = None
    if own is not None and own.plain is None:
        if is_stored:
            views["flat"] = own.flat
        else:
            copy = views["out"] = with_padded_rows(library, shape, element, own.flat)
    if way.by_torch:
        if extras.hook is not None:
            raise UnsupportedError(f"{name}: {_no_hook(way.problem, flipped)}")
        factors = (turn(views["b"]), turn(views["a"])) if flipped else (views["a"], views["b"])
        of_sums = dict(zip("ab", factors)) | {n: views[n] for n in SCALES if n in views}
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
    call: _Call, views: Mapping[str, ArrayView], plan: GemmPlan, alpha: float, beta: float, found: Bound | None
) -> None:
    """Launch the kernels of a plan, on copies of operands that they cannot read or write.

    Args:
        found: the epilogue with its arrays, if it is traced.
    """
    library, way, epilogue = call.where.library, plan.dispatch, plan.epilogue
    a, b, out, c, bias = (views.get(n) for n in ("a", "b", "out", "c", "bias"))
    assert a is not None and b is not None and out is not None
    if way.folded and len(out.shape) == 3:
        if c is not None and not goes_on(c):
            c = copied(library, c, 1, out.dtype)
        a, out = folded(a), folded(out)
        b = b._replace(shape=b.shape[1:], strides=b.strides[1:])
        c = None if c is None else folded(c)
    else:  # a matrix shared by the batch is one matrix for the kernel
        a, b = one_matrix(a), one_matrix(b)
    steps: list[Step] = []
    if way.parts:
        of_a, of_b = (Variant(config) for config in way.parts)
        like_a, like_b = a, b
        steps = [
            split_step(of_a, a, lambda n: library.strided((n,), (1,), "f32", like_a)),
            split_step(of_b, turn(b), lambda n: library.strided((n,), (1,), "f32", like_b)),
        ]
        a, b = steps[0].operands.d, turn(steps[1].operands.d)
    along = (int(way.problem.major_a == "k"), int(way.problem.major_b == "n"))
    wanted = {n: (x, mode) for n, x, mode in (("a", a, along[0]), ("b", b, along[1])) if n in way.copied}
    to_pad = {n: x for n, x in wanted.items() if pads(*x)}
    made = {n: copied(library, *x) for n, x in wanted.items() if n not in to_pad}
    if to_pad:
        made |= with_padding(library, to_pad, partial(_tell, call), _options(call), call.where.cpu)
    target = with_padded_rows(library, out.shape, out.dtype, out) if "out" in way.copied else out
    scales = tuple([views[n] for n in SCALES if n in views])
    x = Operands(
        made.get("a", a), made.get("b", b), target, alpha=alpha, beta=beta, scales=scales, stored=views.get("flat")
    )
    if found is not None and epilogue is not None:
        behind = tuple([view_of(x) if hasattr(x, "shape") else x for x in found.operands])
        graph = epilogue.graph
        if plan.flipped and graph is not None:
            behind = transposed_operands(graph.transposed(), behind)
        x = x._replace(graph=graph, behind=behind, reduced=tuple(found.reduced))
    elif epilogue is not None:
        if c is not None and not (c.dtype == out.dtype and c.strides[-1] == 1 and matrix(c).suits_tma()):
            c = copied(library, c, 1, out.dtype)
        if bias is not None:
            flat = vector(bias)
            bias = library.copied(flat, (1,)) if flat.strides[0] != 1 or flat.pointer % 16 else flat
        x = x._replace(c=c, bias=bias)
    kernel = way.choice or way.other
    assert kernel is not None
    steps += combined_steps(
        Variant(kernel, epilogue or Epilogue()), x, lambda n: library.strided((n,), (1,), "f32", views["out"]),
        turned=plan.flipped, dependent=True,
    )  # fmt: skip
    for variant, operands in steps:
        _tell(call, launcher_of(variant, call.where.cpu)(operands, **_options(call)))
    if target is not out:
        library.native(out)[...] = library.native(target)


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
