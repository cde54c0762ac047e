"""Explanations of operations: :func:`explain` chooses kernels, but does not compile or run them.

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
from math import prod
from types import FunctionType
from typing import Any, NamedTuple

from cute_dialect.kernels.activations import Spelled, spelled
from cute_dialect.kernels.gemm.config import BITS
from cute_dialect.kernels.gemm.epilogue import Epilogue, Hook
from cute_dialect.kernels.split_tf32 import PartsConfig
from cute_dialect.op.arrays.dtypes import FAST, arithmetic_of, both, check_types, element_name, result_of, tf32_allowed
from cute_dialect.op.conv.report import explained as explained_convolution
from cute_dialect.op.conv.report import is_convolution
from cute_dialect.op.epilogue.bind import (
    alone,
    arranged,
    bound,
    described,
    in_place_of,
    stored_as,
    traced_of,
)
from cute_dialect.op.epilogue.combination import LinearCombination
from cute_dialect.op.epilogue.tracing import FakeTensor
from cute_dialect.op.epilogue.unfused import Matrix
from cute_dialect.op.errors import ArgumentError, DtypeError, OpError, ShapeError, UnsupportedError
from cute_dialect.op.execute.gemm import by_rows
from cute_dialect.op.functions import gemm
from cute_dialect.op.grouped.functions import grouped_mm
from cute_dialect.op.grouped.report import explained_grouped
from cute_dialect.op.keywords import check_keywords, checks_keywords
from cute_dialect.op.problems.operands import check_activation, check_addends, check_product, check_result, matrix
from cute_dialect.op.rows.report import explained, is_of_rows
from cute_dialect.op.select import gemm_dispatch
from cute_dialect.op.select import kernel_choice as tables
from cute_dialect.op.select.candidates import blocks
from cute_dialect.op.select.cost_model import costs_of, predict, ranked
from cute_dialect.op.select.epilogue_work import NO_WORK, Work, work_of
from cute_dialect.op.select.gemm_dispatch import AnyConfig, with_epilogue
from cute_dialect.op.select.kernel_choice import Choice, Problem
from cute_dialect.runtime.arrays import ArrayView, NotAnArray, view_of

__all__ = ["Explanation", "explain", "explained_way"]

ANY_ROWS = "the mma.sync kernel for unaligned rows"
_NAMES = {"f32": "FMAs of f32", "f64": "mma.sync of f64"}
_PEAK = {8: 4096, 16: 2048, 32: 1024}
"""Bits of an element -> multiply-adds per SM and cycle with wgmma (NVIDIA H100 whitepaper)."""


class Explanation(NamedTuple):
    """The kernel of a GEMM, its predicted time and the reason for the choice; ``print`` shows all of it."""

    operation: str
    problem: Problem
    gpu: str
    choice: Choice | None  # the kernel; None for a kernel without TMA
    why: str
    microseconds: float  # predicted time of the kernel; 0 without TMA
    others: tuple[tuple[float, Choice], ...]  # the next candidates with their times
    grid: int  # blocks
    waves: float  # number of waves of tiles; the fraction is the last, partial wave
    shared_memory: int  # bytes per block
    copies: tuple[tuple[str, int], ...]  # operands that are copied, and their bytes
    folded: bool  # the batch is computed as one GEMM
    by_torch: bool  # torch computes the epilogue
    flops: int
    bytes: int  # with each operand read or written once
    bound: float  # lower bound of the time in microseconds, from flops and bytes
    kernel: str = ""  # name of the kernel
    other: AnyConfig | None = None  # the kernel without TMA
    parts: tuple[PartsConfig, ...] = ()  # kernels that split f32 into three tf32 parts first
    launches: tuple[int, str] = (1, "")  # their number, and the reason for more than one
    split: tuple[int, int, str] = (1, 1, "")  # split-K slices: requested, actual, and the reason for fewer
    work: Work = NO_WORK  # of the epilogue, per element
    epilogue: float = 0.0  # part of ``microseconds``

    @property
    def last_wave(self) -> float:
        """Fraction of the last wave that is occupied."""
        return self.waves % 1 or 1.0

    def __str__(self) -> str:
        p = self.problem
        batch = f"{p.matrices} matrices, " if p.matrices > 1 else ""
        lines = [
            f"{self.operation} on {self.gpu}: {batch}M {p.m}, N {p.n}, K {p.k}, {p.element} to {p.output}, "
            f"majors {p.major_a} and {p.major_b}",
        ]
        if self.folded:
            lines.append("  the batch is one GEMM: B is shared, and the matrices of A and of the result are stacked")
        if self.parts:
            lines.append("  before    each operand is split from f32 into three tf32 parts")
        lines.append(f"  kernel    {self.kernel}: {self.why}")
        asked, parts, fewer = self.split
        if asked > 1:
            lines.append(f"  split     K in {parts} slices" + f", {asked} were requested: {fewer}" * bool(fewer))
        if self.launches[0] > 1:
            lines.append(f"  launches  {self.launches[0]}, one per matrix: {self.launches[1]}")
        if self.choice is not None:
            lines += [
                f"  predicted {self.microseconds:.1f} us, {self.flops / self.microseconds / 1e6:.3g} TFLOP/s",
                f"  blocks    {self.grid} of {self.shared_memory} bytes of shared memory; {self.waves:.2f} waves, "
                f"the last one {self.last_wave:.0%} full",
            ]  # fmt: skip
        if self.work != NO_WORK:
            w = self.work
            others = w.read + w.written + w.scattered
            bytes = f", {others / 8:g} bytes of other matrices" if others else ""
            lines.append(
                f"  epilogue  {self.epilogue:.1f} us of it: {w.instructions:g} instructions and {w.specials:g} special "
                f"functions per element{bytes}"
            )
        lines.append(
            f"  bound     {self.bound:.1f} us: {self.flops / 1e9:.3g} GFLOP, {self.bytes / 1e6:.3g} MB "
            "(tensor cores, DRAM)"
        )
        for name, size in self.copies:
            lines.append(f"  copied    {name}, {size / 1e6:.3g} MB: {_COPIED[name]}")
        if self.by_torch:
            lines.append("  then      torch computes the epilogue")
        lines += [f"  else      {t:.1f} us  {c.name}" for t, c in self.others]
        return "\n".join(lines)


_COPIED = {
    "a": "the kernel needs rows that are multiples of 16 bytes, and a or b contiguous along K",
    "b": "the kernel needs columns that are multiples of 16 bytes, and a or b contiguous along K",
    "out": "TMA stores rows that are multiples of 16 bytes",
}


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
        from cute_dialect.op.attending.report import explained_attention

        return explained_attention(a, b, out, element=element, **more)
    if is_convolution(function):
        how = {"alpha": alpha, "beta": beta, "c": c, "bias": bias, "activation": applied, "epilogue": epilogue}
        how |= {"dtype": dtype, "math": math, "accumulator": accumulator, **more}
        return explained_convolution(name, [x for x in (a, b, out) if x is not None], how, element, gpu)
    if function is grouped_mm and isinstance(a, list):
        from cute_dialect.op.grouped.call import GroupedArguments
        from cute_dialect.op.grouped.lists import explained_lists

        lists = GroupedArguments(a, b, {}, out, activation=applied, dtype=dtype, math=math, accumulator=accumulator)
        return explained_lists(lists._replace(schedule=more.get("schedule", "auto")))
    if function is grouped_mm:
        operands = {n: _view(name, n, x, element) for n, x in (("a", a), ("b", b), ("out", out)) if x is not None}
        return explained_grouped(operands, more, dtype, math, gpu, others, _of_torch(a))
    of_lists = {n: more.pop(n) for n in ("outs", "Cs", "shape", "layouts") if name == "mm_array" and n in more}
    if more:
        raise ArgumentError(f"explain: {name or repr(function)} is not explained with {next(iter(more))}; omit it")
    if is_of_rows(function):
        return explained(function, a, b, bias, residual, element=element)
    if name == "mm_array":
        from cute_dialect.op.functions.gemm_array import explained_array

        given = {"outs": out, "Cs": c, "hook": hook, "activation": applied, "dtype": dtype, "math": math}
        given |= {"element": element, "epilogue": epilogue, "args": args, "accumulator": accumulator, **of_lists}
        return explained_array(a, b, others, **given)
    if function not in (gemm.mm, gemm.bmm):
        raise UnsupportedError(
            f"explain: {name or repr(function)} is not supported; pass op.mm, op.bmm, op.mm_array, op.grouped_mm, "
            "op.attention, a convolution or a function on rows"
        )
    rank = 2 if function is gemm.mm else 3
    views = {"a": _view(name, "a", a, element), "b": _view(name, "b", b, element)}
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
    views["out"] = _view(name, "out", shape if out is None else out, result)
    views |= {n: _view(name, n, t, "f32") for n, t in (("c", c), ("bias", bias)) if t is not None}
    try:
        allowed = kind == "f32" and math == "default" and _of_torch(a) and tf32_allowed()
        arithmetic = arithmetic_of(kind, math, accumulator, allowed)
        check_types(kind, views["out"].dtype, arithmetic)
    except OpError as e:
        raise type(e)(f"{name}: {e}") from None
    check_addends(name, views, shape, {"alpha": alpha, "beta": beta})
    check_activation(name, applied, hook)
    if out is not None:
        shaped = traced is not None and "D" in traced.views
        check_result(name, {"out": views["out"]}, shape, None if dtype is None else result, arranged=shaped)
    extras = LinearCombination(alpha, beta, c, bias, applied, hook)
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


def explained_way(
    name: str, way: gemm_dispatch.GemmDispatch, gpu: str, sms: int, matrices: dict[str, Matrix], others: int, *,
    why: str = "", kernel: str = "",
) -> Explanation:  # fmt: skip
    """Return the explanation of a dispatch decision.

    Args:
        why: the reason, if the kernel was not chosen.
        kernel: the name of a kernel that is not a candidate.
    """
    p, costs = way.problem, costs_of(gpu, sms)
    bits, out_bits = BITS[p.element], BITS[p.output]
    elements = {n: prod(m.shape) * (m.matrices if m.step else 1) for n, m in matrices.items()}
    flops = 2 * p.matrices * p.m * p.n * p.k
    moved = ((elements["a"] + elements["b"]) * bits + elements["out"] * out_bits) // 8
    peak = 128 if p.element in _NAMES else _PEAK[bits]
    bound = max(flops / (2 * peak * costs.sms * costs.ghz * 1e3), moved / costs.dram / 1e6)
    copies = tuple([(n, elements[n] * m.item) for n, m in matrices.items() if n in way.copied])
    if way.choice is None:
        if not why and p.element in _NAMES:
            why = "wgmma multiplies f32 as tf32 (math=)" if p.element == "f32" else "wgmma has no f64"
        elif not why:
            why = "TMA needs addresses and strides that are multiples of 16 bytes"
        return Explanation(
            name, p, gpu, None, why, 0.0, (), 0, 0.0, 0, copies, way.folded, way.by_torch, flops, moved, bound,
            kernel or _NAMES.get(p.element, ANY_ROWS) + _in_parts(way.other), way.other,
        )  # fmt: skip
    own = way.choice.config.epilogue
    work = work_of(own.transposed() if way.choice.swapped else own, p.output)
    plain = with_epilogue(way.choice, Epilogue())
    rest = [(t, c) for t, c in ranked(p, costs, others + 1, work) if c != plain][:others]
    grid, waves = _blocks(plain, p)
    whole = predict(plain, p, costs, work)
    return Explanation(
        name, p, gpu, way.choice, why or _why(p, gpu, plain), whole, tuple(rest), grid, waves,
        (plain.skinny or plain.config).smem_bytes, copies, way.folded, way.by_torch, flops, moved, bound,
        way.choice.name, None, way.parts, work=work, epilogue=whole - predict(plain, p, costs),
    )  # fmt: skip


def _in_parts(config: AnyConfig | None) -> str:
    """Return the split-K slices of a kernel without TMA as text."""
    from cute_dialect.kernels.ampere_gemm import AmpereConfig

    parts = 1 if config is None or isinstance(config, AmpereConfig) else config.parts
    return f", K in {parts} slices" if parts > 1 else ""


def _blocks(choice: Choice, problem: Problem) -> tuple[int, float]:
    """Return the number of blocks of a launch, and of the waves of their tiles."""
    c, found = choice.config, blocks(choice, problem)
    slots = max(1, c.sms // c.cluster)
    if choice.skinny is not None or choice.parts > 1:  # one tile per block, or a slice of one
        return found, found / c.sms
    if c.stream_k:
        return slots * c.cluster, found / (slots * c.cluster)
    tiles = found // c.cluster  # the fewest blocks that need no more waves
    return -(-tiles // -(-tiles // slots)) * c.cluster, tiles / slots


def _why(problem: Problem, gpu: str, choice: Choice) -> str:
    """Return the source of the choice as text."""
    if tables.tuned(gpu).get(problem.key) != choice:
        return "predicted to be the fastest"
    if problem.key in tables.read(tables.table_path(gpu)):
        return f"measured to be the fastest, in {tables.table_path(gpu)}"
    if problem.key in tables.shipped(gpu):
        return f"measured to be the fastest on {gpu}, in the table of this package"
    return "predicted to be the fastest"


def _of_torch(t: Any) -> bool:
    return type(t).__module__.partition(".")[0] == "torch"


def _view(call: str, name: str, t: Any, element: str) -> ArrayView:
    """Return a view of an operand, or of an array of a shape with contiguous rows.  Raises DtypeError."""
    if isinstance(t, tuple | list):
        shape: tuple[int, ...] = tuple(t)
        strides = tuple([prod(shape[i + 1 :]) for i in range(len(shape))])
        return ArrayView(0, shape, strides, element_name(element), -1, "", None)
    if hasattr(t, "stride"):  # torch's, which may have no memory
        address = t.data_ptr() if t.device.type in ("cpu", "cuda") else 0
        return ArrayView(address, tuple(t.shape), tuple(t.stride()), element_name(t.dtype), -1, "", None)
    try:
        return view_of(t)
    except NotAnArray as e:
        raise DtypeError(f"{call}: {name} must be an array or a shape: {e}") from None
