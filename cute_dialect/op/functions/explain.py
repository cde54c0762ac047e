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

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from inspect import signature
from types import FunctionType
from typing import TYPE_CHECKING, Any

import numpy as np

from cute_dialect.kernels.epilogue.activations import Spelled, spelled
from cute_dialect.kernels.epilogue.combination import Epilogue, Hook
from cute_dialect.op.arrays.dtypes import FAST, OPERANDS, element_name, result_of, tf32_allowed
from cute_dialect.op.arrays.library import aligned_strides
from cute_dialect.op.epilogue.bind import alone, arranged, bound, described, in_place_of, traced_of
from cute_dialect.op.epilogue.combination import LinearCombination
from cute_dialect.op.epilogue.tracing import FakeTensor, Traced
from cute_dialect.op.errors import ArgumentError, DtypeError, OpError, ShapeError, UnsupportedError
from cute_dialect.op.execute.kernels import Variant
from cute_dialect.op.explanations.all_reduce import explain_all_reduce
from cute_dialect.op.explanations.attention import explain_attention, explain_backward, explain_flex
from cute_dialect.op.explanations.conv import explain_convolution
from cute_dialect.op.explanations.gemm import (
    Explanation,
    GemmExplanation,
    example_view,
    explain_grouped,
    explain_plan,
    is_of_torch,
    on_chip,
)
from cute_dialect.op.explanations.mla import explain_latent
from cute_dialect.op.explanations.packed_weights import explain_mm_packed, explain_mm_sparse
from cute_dialect.op.explanations.rank_gemm import explain_rank_gemm
from cute_dialect.op.explanations.routing import explain_route, explain_token_combine, explain_token_dispatch
from cute_dialect.op.explanations.rows import (
    explain_gated,
    explain_linear_cross_entropy,
    explain_norm_quantize,
    explain_quantize,
    explain_rows,
    explain_sample,
    explain_topk,
)
from cute_dialect.op.functions import gemm, rows
from cute_dialect.op.functions import row_gradients as gradients
from cute_dialect.op.functions.all_reduce import all_reduce
from cute_dialect.op.functions.block_scaled import BlockScaled, explain_block_scaled
from cute_dialect.op.functions.conv import is_convolution
from cute_dialect.op.functions.gated import gated
from cute_dialect.op.functions.gemm_array import explained_array
from cute_dialect.op.functions.grouped import explained_lists, grouped_mm
from cute_dialect.op.functions.linear_cross_entropy import linear_cross_entropy
from cute_dialect.op.functions.mla import mla_decode
from cute_dialect.op.functions.packed_weights import mm_packed
from cute_dialect.op.functions.quantize import dequantize, quantize
from cute_dialect.op.functions.rank_gemm import all_gather_matmul, matmul_all_reduce, matmul_reduce_scatter
from cute_dialect.op.functions.routing import combine, dispatch, route
from cute_dialect.op.functions.sampling import filters_of, sample, topk
from cute_dialect.op.functions.scaled import SUMS, scaled_mm
from cute_dialect.op.functions.sparse_weights import mm_sparse
from cute_dialect.op.keywords import check_keywords, checks_keywords
from cute_dialect.op.problems.attention import SPELLINGS
from cute_dialect.op.problems.block_scaled import is_block_scaled
from cute_dialect.op.problems.gemm import GemmProblem, check_gemm
from cute_dialect.op.problems.grouped import GroupedArguments
from cute_dialect.op.problems.operands import check_product, matrix
from cute_dialect.op.problems.rows import FUNCTIONS, LOSS, MAPS, NORMS
from cute_dialect.op.problems.scaled import check_scaled, scales_epilogue
from cute_dialect.op.select import gemm_dispatch
from cute_dialect.op.select.backends import (
    GEMM_CCS,
    MMA_SYNC,
    UNMEASURED,
    WGMMA,
    backend_of,
    capability_named,
    of_tensor_memory,
    unknown_gpu,
    unmeasured,
)
from cute_dialect.op.select.cost_model import has_costs, work_of
from cute_dialect.op.select.gemm_dispatch import Target, by_rows
from cute_dialect.op.select.grouped import Sm100Groups
from cute_dialect.op.select.kernel_choice import table_path
from cute_dialect.op.select.other_dispatch import plan_on, why_chosen
from cute_dialect.runtime.arrays import ArrayView, NotAnArray, numpy_dtype, view_of

if TYPE_CHECKING:  # pragma: no cover
    from cute_dialect.op.signature_types import Array

_OF_ROWS = frozenset([
    *[getattr(rows, name) for name in FUNCTIONS],
    *[getattr(gradients, f"{name}_backward", None) for name in (*MAPS, *NORMS, LOSS)],
])  # fmt: skip
"""Row functions, and gradients of row functions that can be called directly."""
_BY_WGMMA = (grouped_mm, linear_cross_entropy, mla_decode, mm_packed, mm_sparse)
"""Functions that, like convolutions, refuse other GPUs."""


@checks_keywords
def explain(
    function: Callable[..., object],
    a: Any,
    b: Any = None,
    out: Any = None,
    *given: object,
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
        function: ``op.mm``, ``op.bmm``, ``op.mm_array``, ``op.grouped_mm``, ``op.mm_packed``, ``op.mm_sparse``,
            ``op.scaled_mm``, ``op.attention``, ``op.attention_backward``, ``op.flex_attention``, ``op.mla_decode``,
            ``op.linear_cross_entropy``, ``op.quantize``, ``op.dequantize``, ``op.gated``, ``op.route``,
            ``op.dispatch``, ``op.combine``, ``op.sample``, ``op.topk``, the functions of ``op.distributed``,
            a convolution, or a function on rows such as ``op.softmax``.
        a, b, out: the first arguments.  They are arrays on any device, or shapes of contiguous arrays.  For attention
            they are q, k and v, and for ``op.mla_decode`` q and the cache; for functions on rows and
            ``op.linear_cross_entropy`` ``b`` is the weight, for ``op.dequantize`` the scales, for ``op.route`` and
            ``op.topk`` ``k``, for ``op.mm_packed`` a ``PackedWeight``, whose ``data`` may be None, and for
            ``op.mm_sparse`` a ``SparseWeight``; ``op.dispatch`` and ``op.combine`` have three.
        given: ``scale_b`` of ``op.scaled_mm``, whose ``scale_a`` comes before it.
        residual: for functions on rows.
        args: arguments of ``epilogue``; arrays may be a ``FakeTensor``.
        element: type of operands that are given as shapes.
        gpu: name of a known GPU such as "NVIDIA B200", or of a GPU with measurements of your own; default: the current
            one, or an H200 if there is none. With scales of blocks of 32 or 16 it selects the kernel, by default of
            sm_120 if there is no GPU.
        others: number of further candidates to list.
        more: further arguments of attention and convolutions, and of ``op.grouped_mm`` ``offs``, ``lengths`` or
            ``row_groups`` as arrays or shapes; of ``op.scaled_mm`` ``recipe``, ``fast`` and ``scale_out``; of
            ``op.quantize`` ``block`` and ``scale``; of norms ``quantize`` and ``block``; of
            ``op.linear_cross_entropy`` ``chunk``; of functions of ``op.distributed`` ``ranks``, the number of ranks,
            of ``all_reduce`` ``weight``, and of its GEMMs ``topology``, such as "h200-dgx"; and those of ``op.route``,
            ``op.sample`` and ``op.topk``.
        alpha, beta, c, bias, activation, hook, epilogue, dtype, math, accumulator: as in the function.

    Raises the errors of the function.
    """
    name, applied = getattr(function, "__name__", ""), spelled(activation)
    if type(gpu) is not str:
        raise ArgumentError(f"explain: gpu is {gpu!r}; pass a name such as 'NVIDIA H200'")
    if gpu:
        _check_gpu_name(gpu)
    try:
        numpy_dtype(element_name(element))
    except NotAnArray:
        raise DtypeError(f"explain: element is {element!r}; pass one of {', '.join(OPERANDS)}") from None
    if len(given) > (function is scaled_mm):
        names = ["function", "a", "b", *(("scale_a", "scale_b") if function is scaled_mm else ("out",))]
        raise ArgumentError(
            f"explain() has at most {len(names)} positional arguments ({', '.join(names)}), but the call passes "
            f"{4 + len(given)}; pass the others by name"
        )
    if type(others) is not int:
        raise ArgumentError(f"explain: others is {others!r}; pass a number of candidates")
    if function in (all_reduce, all_gather_matmul, matmul_reduce_scatter, matmul_all_reduce) and gpu:
        capability = capability_named(gpu)
        if capability is None or not WGMMA.runs_on(capability):
            raise UnsupportedError(
                f"explain: op.distributed.{name} has kernels for sm_90 only (H100, H200), and gpu is {gpu!r}; omit gpu"
            )
    if function is all_reduce:
        unknown = [key for key in more if key not in ("ranks", "weight", "eps")]
        _refuse(name, unknown)
        weight = more.get("weight", out)
        return explain_all_reduce(a, b if residual is None else residual, weight, more.get("ranks"), element)
    if function in (all_gather_matmul, matmul_reduce_scatter, matmul_all_reduce):
        allowed = ["ranks", "topology", *(["op"] if function is matmul_reduce_scatter else [])]
        allowed += ["return_a"] if function is all_gather_matmul else []
        _refuse(name, [key for key in more if key not in allowed])
        return explain_rank_gemm(name, a, b, element, **more)
    if more and isinstance(function, FunctionType):
        options = ("element", "gpu", "others")
        without = [n for n in signature(explain).parameters if n not in options]
        spellings = SPELLINGS if name.startswith("attention") else None
        check_keywords(name, function, more, also=explain, without=without, interpreted=False, spellings=spellings)

    def of_gpu(found: Explanation) -> Explanation:
        """Return the explanation of a function whose kernels do not depend on the GPU."""
        return replace(found, gpu=gpu) if gpu and not found.gpu else found

    gpu = gpu or gemm_dispatch.other_gpu()
    capability = capability_named(gpu)
    if name in ("attention", "attention_backward", "flex_attention"):
        of_gemms = {"c": c, "bias": bias, "residual": residual, "activation": applied or None, "epilogue": epilogue}
        of_gemms["dtype"] = dtype
        of_gemms = {key: value for key, value in of_gemms.items() if value is not None}
        more = {**of_gemms, **more}
        if name == "attention":
            return _explained_attention(name, a, b, out, element, more, gpu=gpu)
        if capability is not None:
            WGMMA.check_gpu(capability, name)
        return of_gpu(_explained_attention(name, a, b, out, element, more))
    if function is grouped_mm and not isinstance(a, list) and capability is not None:
        backend = next((x for x in UNMEASURED if x.has_tensor_memory and x.runs_on(capability)), None)
        if backend is not None:
            groups = explain_grouped(a, b, out, more, dtype, math, Sm100Groups(backend.target), others, element)
            launch = f"{name} needs sm_{WGMMA.chip}, so launch it by op.GroupedGemm with kernel_cc={backend.chip}"
            return replace(groups, gpu=gpu, status=f"{backend.status}; {launch}")
    is_sparse = function is mm_sparse and capability is not None and of_tensor_memory(capability) is not None
    if capability is not None and not is_sparse and (is_convolution(function) or function in _BY_WGMMA):
        WGMMA.check_gpu(capability, name)
    if is_convolution(function):
        how = {"alpha": alpha, "beta": beta, "c": c, "bias": bias, "activation": applied, "epilogue": epilogue}
        how |= {"dtype": dtype, "math": math, "accumulator": accumulator, **more}
        return explain_convolution(name, [x for x in (a, b, out) if x is not None], how, element, gpu)
    if function is scaled_mm:
        taken = ("hook", hook), ("epilogue", epilogue), ("c", c), ("activation", applied or None), ("args", args)
        _refuse(name, [key for key, value in taken if value is not None])
        names = [n for n in ("scale_a", "scale_b") if n not in more]
        _refuse(name, ["out"] if out is not None and not names else [])
        named = dict(zip(names, (out, *given)))
        return _explained_scaled(a, b, bias, dtype, {**named, **more}, element=element, gpu=gpu, others=others)
    if function is grouped_mm and isinstance(a, list):
        extras = LinearCombination(activation=applied, math=math, accumulator=accumulator)
        schedule = more.get("schedule", "auto")
        return explained_lists(GroupedArguments(a, b, {}, out, extras, dtype=dtype, schedule=schedule))
    if function is grouped_mm:
        return explain_grouped(a, b, out, more, dtype, math, gpu, others, element)
    if function is gated and not more:
        return of_gpu(explain_gated(a, applied, element))
    if function is mla_decode:
        more = {**more, "out": out} if out is not None else more
        return of_gpu(explain_latent(a, b, element=element, **more))
    if function is route:
        return of_gpu(explain_route(a, element, {"k": b, **more}, bias is not None))
    if function is dispatch:
        return of_gpu(explain_token_dispatch(a, more.get("experts", b), more.get("num_experts", out), element))
    if function is combine:
        return of_gpu(explain_token_combine(a, more.get("order", b), more.get("weights", out), element))
    if function is mm_packed and not more:

        def of_gemm(x: tuple[int, int], w: tuple[int, int]) -> GemmExplanation:
            transposed = example_view("mm_packed", "w", w, element)._replace(shape=w[::-1], strides=(1, w[1]))
            return explain(gemm.mm, x, transposed, element=element, gpu=gpu, others=0, dtype=dtype)

        return of_gpu(explain_mm_packed(of_gemm, a, b, element, bias, dtype))
    if function is mm_sparse and not more:
        backend = None if capability is None else of_tensor_memory(capability)
        return of_gpu(explain_mm_sparse(a, b, element, bias, backend))
    if function is sample:
        values = [more.get(x, y) for x, y in (("temperature", 1.0), ("top_k", 0), ("top_p", 1.0), ("min_p", 0.0))]
        arrays = [x if hasattr(x, "shape") else None for x in values]
        return of_gpu(explain_sample(a, filters_of(values, arrays), element))
    if function is topk:
        return of_gpu(explain_topk(a, more.get("k", b), more.get("largest", True), element))
    if function in (rows.rms_norm, rows.layer_norm) and "quantize" in more:
        operands = (("w", b), ("b", bias), ("r", residual))
        takes = "".join([letter for letter, t in operands if t is not None])
        return of_gpu(explain_norm_quantize(name, a, takes, more["quantize"], more.get("block"), element))
    if function in (quantize, dequantize):
        return of_gpu(explain_quantize(name, a, more.get("scale", b), element, dtype, more.get("block")))
    chunk = more.pop("chunk", None) if function is linear_cross_entropy else None
    of_lists = {n: more.pop(n) for n in ("outs", "Cs", "shape", "layouts") if name == "mm_array" and n in more}
    if more:
        raise ArgumentError(f"explain: {name or repr(function)} is not explained with {next(iter(more))}; omit it")
    if function is linear_cross_entropy:
        target: Any = {"element": element, "gpu": gpu, "others": 0}
        return explain_linear_cross_entropy(partial(explain, gemm.mm, **target), a, b, bias, chunk, element=element)
    if function in _OF_ROWS:
        return of_gpu(explain_rows(name, a, b, bias, residual, element=element))
    settings: dict[str, Any] = {
        "hook": hook,
        "activation": applied,
        "dtype": dtype,
        "math": math,
        "epilogue": epilogue,
        "args": args,
    }
    settings["accumulator"] = accumulator
    if name == "mm_array":
        found = explained_array(a, b, others, **{"outs": out, "Cs": c, "element": element, **settings, **of_lists})
        if capability is not None:
            for part in [found] if isinstance(found, GemmExplanation) else [part for _, part in found.parts]:
                for kernel in part.kernels or ():
                    backend_of(kernel).check_gpu(capability, name)
        return of_gpu(found)
    if function not in (gemm.mm, gemm.bmm):
        raise UnsupportedError(
            f"explain: {name or repr(function)} is not supported; pass op.mm, op.bmm, op.mm_array, op.grouped_mm, "
            "op.scaled_mm, op.mm_packed, op.attention, op.attention_backward, op.flex_attention, op.mla_decode, "
            "op.linear_cross_entropy, op.quantize, op.route, a convolution or a function on rows"
        )
    return _explained_gemm(name, a, b, out, alpha, beta, c, bias, element=element, gpu=gpu, others=others, **settings)


def _explained_attention(
    name: str, q: Any, k: Any, v: Any, element: str, more: Mapping[str, Any], **of_gpu: Any
) -> Any:
    """Return the explanation of ``attention``, ``attention_backward`` or ``flex_attention``.

    Args:
        of_gpu: ``gpu`` of ``attention``.
    """
    function = {"attention": explain_attention, "attention_backward": explain_backward}.get(name, explain_flex)
    known = set(signature(function).parameters)
    if name == "attention_backward":
        known |= set(signature(explain_attention).parameters) - {"lse"}
    for key in more:
        if key not in known:
            raise ArgumentError(f"explain: {name} is not explained with {key}; omit it")
    return function(q, k, v, element=element, **more, **of_gpu)


def _refuse(name: str, given: Sequence[str]) -> None:
    """Raise ArgumentError for arguments that the function does not have."""
    if given:
        raise ArgumentError(f"explain: {name} is not explained with {given[0]}; omit it")


def _explained_scaled(
    a: Array, b: Array, bias: Array, dtype: object, more: Mapping[str, Array], *, element: str, gpu: str, others: int
) -> Explanation:
    """Return the explanation of ``scaled_mm``.

    Args:
        more: ``scale_a`` and ``scale_b``, and if they are given ``recipe``, ``fast`` and ``scale_out``.
    """
    for key in ("scale_a", "scale_b"):
        if more.get(key) is None:
            raise ArgumentError(f"explain: scaled_mm needs an argument '{key}'; pass a, b, scale_a and scale_b")
    _refuse("scaled_mm", [n for n in more if n not in ("recipe", "fast", "scale_out", "scale_a", "scale_b")])
    recipe, scale_out = more.get("recipe"), more.get("scale_out")
    x, y = (_example(t, element) for t in (a, b))
    of_a, of_b = (_example(more[key], "f32") for key in ("scale_a", "scale_b"))
    if is_block_scaled(x, of_a, recipe):
        return explain_block_scaled("scaled_mm", BlockScaled(x, y, of_a, of_b, recipe, bias, dtype=dtype), gpu)
    recipes = check_scaled("scaled_mm", x, y, of_a, of_b, recipe)
    how: dict[str, Any] = {"hook": None, "activation": "", "dtype": "bf16" if dtype is None else dtype}
    how |= {"gpu": gpu, "others": others, "element": element, "math": "default", "accumulator": None}
    how |= {"epilogue": None, "args": None}
    if recipes[0].startswith("block"):
        how["accumulator"] = SUMS[recipes[1]]
        found = _explained_gemm("scaled_mm", a, b, None, 1.0, 1.0, None, bias, **how)
        return replace(found, kernels=None)  # The kernel to compile also depends on the type of the scales.
    args = {"scale_a": FakeTensor("f32", of_a.shape), "scale_b": FakeTensor("f32", of_b.shape)}
    args |= {"bias": bias, "scale_out": scale_out}
    how["epilogue"], how["args"] = scales_epilogue((x.shape[0], y.shape[1]), args)
    how["math"] = "default" if more.get("fast") else "promote"
    return _explained_gemm("scaled_mm", a, b, None, 1.0, 1.0, None, None, **how)


def _example(t: Array, element: str) -> Array:
    """Return an operand, or for a shape an array of one element that is broadcast to it. A pair of arrays is kept."""
    if isinstance(t, tuple | list) and any([hasattr(x, "dtype") for x in t]):
        return t
    return np.broadcast_to(np.zeros((), numpy_dtype(element)), t) if isinstance(t, tuple | list) else t


def _explained_gemm(
    name: str, a: Any, b: Any, out: Any, alpha: float, beta: float, c: Any, bias: Any, *, hook: Hook | None,
    activation: str, dtype: object, math: str, accumulator: object, epilogue: Any, args: Mapping[str, Any] | None,
    element: str, gpu: str, others: int,
) -> GemmExplanation:  # fmt: skip
    """Return the explanation of ``mm``, ``bmm`` or ``scaled_mm``."""
    views = {"a": example_view(name, "a", a, element), "b": example_view(name, "b", b, element)}
    views |= {n: example_view(name, n, t, "f32") for n, t in (("c", c), ("bias", bias)) if t is not None}
    extras = LinearCombination(alpha, beta, c, bias, activation, hook, math, accumulator)
    given = {n: t if isinstance(t, bool | int | float) else described(t) for n, t in (args or {}).items()}
    rank, traced = 3 if name == "bmm" else 2, None
    if epilogue is not None:
        alone(name, extras)
        traced = traced_of(name, epilogue, given, check_product(name, rank, views["a"], views["b"]))
    if out is not None:
        views["out"] = example_view(name, "out", out, _result(views["a"], dtype, traced))
    tf32 = is_of_torch(a) and tf32_allowed()
    checked = check_gemm(GemmProblem.of(name, rank, views, dtype, extras, tf32=tf32), traced)
    sums, shape, result = checked.sums, checked.shape, checked.result
    if 0 in (*sums, views["a"].shape[-1]):
        raise ShapeError(
            f"{name}: a has shape {views['a'].shape} and b has shape {views['b'].shape}; "
            "explain does not support empty matrices"
        )
    capability = capability_named(gpu)
    chip = 0 if capability is None or WGMMA.runs_on(capability) else 10 * capability[0] + capability[1]
    if capability is not None and chip and chip not in GEMM_CCS:
        WGMMA.check_gpu(capability, name)
    if out is None:
        views["out"] = example_view(name, "out", shape, result)
    graph, own = None, None
    if traced is not None:

        def another(shape: tuple[int, ...], element: str = "") -> Any:
            return described(FakeTensor(element or result, shape))

        d = another(shape)
        graph = bound(traced, given, d, sums, another).graph
        own = arranged(traced, view_of(d), sums)
        if own is not None:
            views["out"] = own.plain or in_place_of(own)
    gpu, sms = (gpu, 132) if gpu else gemm_dispatch.here()
    matrices = {n: matrix(x) for n, x in by_rows(views, None)[0].items() if n in ("a", "b", "out")}
    if math in FAST:  # The call multiplies copies.
        views |= {n: _copied(views[n], FAST[math]) for n in ("a", "b")}
    try:
        plan, _ = plan_on(name, checked, views, Target(gpu, sms, chip=chip), graph, own)
    except OpError as e:
        raise e if str(e).startswith(f"{name}: ") else type(e)(f"{name}: {e}") from None
    plan = plan._replace(folded=plan.folded and matrices["out"].matrices > 1)
    if not chip:
        return explain_plan(name, plan, gpu, sms, matrices, others)
    kernel = Variant(plan.kernel, Epilogue() if plan.by_torch else plan.epilogue or Epilogue(), plan.flipped, plan.chip)
    why, backend = why_chosen(plan, chip), unmeasured(chip)
    found = explain_plan(name, plan, gpu, sms, matrices, others, why=why, kernel=kernel.name)
    if backend is None:
        status = f"a kernel for sm_{MMA_SYNC.chip} and later, without measured times on sm_{chip}"
        return replace(found, bound=0.0, status=status)
    return on_chip(found, plan.kernel, plan.problem, work_of(kernel.epilogue, checked.result), backend, why)


def _check_gpu_name(gpu: str) -> None:
    """Raise ArgumentError if a name is neither that of a known or the current GPU, nor that of a measured one."""
    is_measured = has_costs(gpu) or table_path(gpu).exists()
    if capability_named(gpu) is None and not is_measured and gpu != gemm_dispatch.here()[0]:
        raise unknown_gpu(gpu)


def _result(a: ArrayView, dtype: object, traced: Traced | None) -> str:
    """Return the type of a result that is specified by its shape."""
    if dtype is not None:
        return element_name(dtype)
    return (traced is not None and traced.graph.outputs[0].element) or result_of(a.dtype)


def _copied(x: ArrayView, element: str) -> ArrayView:
    """Return the view of a copy of another type, as :func:`cute_dialect.op.arrays.operand_views.copied` makes it."""
    strides = aligned_strides(x.shape, int(matrix(x).along(1)), numpy_dtype(element).itemsize)
    return x._replace(pointer=0, dtype=element, strides=strides)
