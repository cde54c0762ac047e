"""The function :func:`explain`, which selects the kernels of a call, but does not compile or run them.

>>> found = explain(gemm.mm, (4096, 8192), (8192, 4096))
>>> found.problem.key, found.why, found.copies
('f16-f16-kn 4096x4096x8192', 'predicted to be the fastest', ())
>>> found.flops == 2 * 4096 * 4096 * 8192
True
"""

# torch is not installed where types are checked; operands may belong to any library.
# pyright: reportMissingImports=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownParameterType=false

from __future__ import annotations

from collections.abc import Callable, Mapping
from inspect import signature
from types import FunctionType
from typing import Any

from cute_dialect.kernels.activations import Spelled, spelled
from cute_dialect.kernels.gemm.epilogue import Epilogue, Hook
from cute_dialect.op.arrays.dtypes import FAST, arithmetic_of, both, check_types, element_name, result_of, tf32_allowed
from cute_dialect.op.attending.report import explained_attention
from cute_dialect.op.conv.report import explained as explained_convolution
from cute_dialect.op.conv.report import is_convolution
from cute_dialect.op.epilogue.bind import alone, arranged, bound, described, in_place_of, stored_as, traced_of
from cute_dialect.op.epilogue.combination import LinearCombination
from cute_dialect.op.epilogue.tracing import FakeTensor
from cute_dialect.op.errors import ArgumentError, OpError, ShapeError, UnsupportedError
from cute_dialect.op.execute.gemm import by_rows
from cute_dialect.op.explanation import example_view, is_of_torch
from cute_dialect.op.functions import gemm
from cute_dialect.op.functions.gemm_array import explained_array
from cute_dialect.op.grouped.call import GroupedArguments
from cute_dialect.op.grouped.functions import grouped_mm
from cute_dialect.op.grouped.lists import explained_lists
from cute_dialect.op.grouped.report import explained_grouped
from cute_dialect.op.keywords import check_keywords, checks_keywords
from cute_dialect.op.problems.operands import check_activation, check_addends, check_product, check_result, matrix
from cute_dialect.op.rows.report import explained as explained_rows
from cute_dialect.op.rows.report import is_of_rows
from cute_dialect.op.select import gemm_dispatch
from cute_dialect.op.select.report import GemmExplanation, explained_way
from cute_dialect.runtime.arrays import view_of

__all__ = ["explain"]


@checks_keywords
def explain(
    function: Callable[..., object],
    a: Any,
    b: Any = None,
    out: Any = None,
    *,
    alpha: float = 1.0,
    beta: float = 1.0,
    c: Any = None,
    bias: Any = None,
    residual: Any = None,
    activation: Spelled = "",
    hook: Hook | None = None,
    epilogue: Any = None,
    args: Mapping[str, Any] | None = None,
    dtype: object = None,
    math: str = "default",
    accumulator: object = None,
    element: str = "f16",
    gpu: str = "",
    others: int = 4,
    **more: Any,
) -> Any:
    """Return the kernel of a call, its predicted time and the reason for the choice.

    Args:
        function: ``op.mm``, ``op.bmm``, ``op.mm_array``, ``op.grouped_mm``, ``op.attention``, a convolution, or a
            function on rows such as ``op.softmax``.
        a, b, out: the first arguments.  They are arrays on any device, or shapes of contiguous arrays.  For attention
            they are q, k and v; for functions on rows ``b`` is the weight.
        residual: for functions on rows.
        args: arguments of ``epilogue``; arrays may be a ``FakeTensor``.
        element: type of operands that are given as shapes.
        gpu: name of the GPU; default: the current one, or an H200 if there is none.
        others: number of further candidates to list.
        more: further arguments of attention and convolutions, and of ``op.grouped_mm`` ``offs``, ``lengths`` or
            ``row_groups`` as arrays or shapes.
        alpha, beta, c, bias, activation, hook, epilogue, dtype, math, accumulator: as in the function.

    Raises the errors of the function.
    """
    name, applied = getattr(function, "__name__", ""), spelled(activation)
    if more and isinstance(function, FunctionType):
        options = ("element", "gpu", "others")
        without = [n for n in signature(explain).parameters if n not in options]
        check_keywords(name, function, more, also=explain, without=without, interpreted=False)
    if name == "attention":
        return explained_attention(a, b, out, element=element, **more)
    if is_convolution(function):
        how = {"alpha": alpha, "beta": beta, "c": c, "bias": bias, "activation": applied, "epilogue": epilogue}
        how |= {"dtype": dtype, "math": math, "accumulator": accumulator, **more}
        return explained_convolution(name, [x for x in (a, b, out) if x is not None], how, element, gpu)
    if function is grouped_mm and isinstance(a, list):
        lists = GroupedArguments(a, b, {}, out, activation=applied, dtype=dtype, math=math, accumulator=accumulator)
        return explained_lists(lists._replace(schedule=more.get("schedule", "auto")))
    if function is grouped_mm:
        return explained_grouped(a, b, out, more, dtype, math, gpu, others, element)
    of_lists = {n: more.pop(n) for n in ("outs", "Cs", "shape", "layouts") if name == "mm_array" and n in more}
    if more:
        raise ArgumentError(f"explain: {name or repr(function)} is not explained with {next(iter(more))}; omit it")
    if is_of_rows(function):
        return explained_rows(function, a, b, bias, residual, element=element)
    given: dict[str, Any] = {
        "hook": hook,
        "activation": applied,
        "dtype": dtype,
        "math": math,
        "epilogue": epilogue,
        "args": args,
    }
    given["accumulator"] = accumulator
    if name == "mm_array":
        return explained_array(a, b, others, outs=out, Cs=c, element=element, **given, **of_lists)
    if function not in (gemm.mm, gemm.bmm):
        raise UnsupportedError(
            f"explain: {name or repr(function)} is not supported; pass op.mm, op.bmm, op.mm_array, op.grouped_mm, "
            "op.attention, a convolution or a function on rows"
        )
    return _explained_gemm(name, a, b, out, alpha, beta, c, bias, element=element, gpu=gpu, others=others, **given)


def _explained_gemm(
    name: str, a: Any, b: Any, out: Any, alpha: float, beta: float, c: Any, bias: Any, *, hook: Hook | None,
    activation: str, dtype: object, math: str, accumulator: object, epilogue: Any, args: Mapping[str, Any] | None,
    element: str, gpu: str, others: int,
) -> GemmExplanation:  # fmt: skip
    """Return the explanation of ``mm`` or ``bmm``."""
    rank = 2 if name == "mm" else 3
    views = {"a": example_view(name, "a", a, element), "b": example_view(name, "b", b, element)}
    shape = check_product(name, rank, views["a"], views["b"])
    kind = both(views["a"].dtype, views["b"].dtype)
    result = result_of(views["a"].dtype) if dtype is None else element_name(dtype)
    if 0 in (*shape, views["a"].shape[-1]):
        raise ShapeError(
            f"{name}: a has shape {views['a'].shape} and b has shape {views['b'].shape}; "
            "explain does not support empty matrices"
        )
    given = {n: t if isinstance(t, bool | int | float) else described(t) for n, t in (args or {}).items()}
    traced, sums = None if epilogue is None else traced_of(name, epilogue, given, shape), shape
    shape = shape if traced is None else traced.shape_of(shape)
    if traced is not None and dtype is None:
        result = traced.graph.outputs[0].element or result
    views["out"] = example_view(name, "out", shape if out is None else out, result)
    views |= {n: example_view(name, n, t, "f32") for n, t in (("c", c), ("bias", bias)) if t is not None}
    try:
        allowed = kind == "f32" and math == "default" and is_of_torch(a) and tf32_allowed()
        arithmetic = arithmetic_of(kind, math, accumulator, allowed)
        check_types(kind, views["out"].dtype, arithmetic)
    except OpError as e:
        raise type(e)(f"{name}: {e}") from None
    check_addends(name, views, shape, {"alpha": alpha, "beta": beta})
    check_activation(name, activation, hook)
    if out is not None:
        shaped = traced is not None and "D" in traced.views
        check_result(name, {"out": views["out"]}, shape, None if dtype is None else result, arranged=shaped)
    extras = LinearCombination(alpha, beta, c, bias, activation, hook)
    of_bias = (None, "") if bias is None else (views["bias"].shape, views["bias"].dtype)
    fused, result, own = None, views["out"].dtype, None
    if not extras.plain:
        fused = gemm_dispatch.epilogue_of(name, extras, shape[-2], shape[-1], *of_bias, result)
    if traced is not None:
        alone(name, extras)

        def another(shape: tuple[int, ...], element: str = "") -> Any:
            return described(FakeTensor(element or result, shape))

        d = another(shape)
        graph = bound(traced, given, d, sums, another).graph
        own = arranged(traced, view_of(d), sums)
        if own is not None:
            views["out"] = own.plain or in_place_of(own)
            graph = graph if own.plain else stored_as(graph, own)
        fused = Epilogue(graph=graph)
    gpu, sms = (gpu, 132) if gpu else gemm_dispatch.here()
    views, fused = by_rows(views, fused)
    matrices = {n: matrix(views[n]) for n in ("a", "b", "out")}
    matrices["out"] = matrices["out"]._replace(owned=own is not None and own.plain is None)
    if math in FAST:
        views |= {n: views[n]._replace(dtype=FAST[math]) for n in ("a", "b")}
    try:
        kind = both(views["a"].dtype, views["b"].dtype)
        way = gemm_dispatch.way_of(*matrices.values(), kind, views["out"].dtype, fused, gpu, sms, arithmetic)
    except OpError as e:
        raise type(e)(f"{name}: {e}") from None
    way = way._replace(folded=way.folded and matrices["out"].matrices > 1)
    return explained_way(name, way, gpu, sms, matrices, others)
