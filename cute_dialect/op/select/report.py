"""Say how an operation would be computed, and why: :func:`explain` chooses, compiles nothing and runs nothing.

>>> found = explain(gemm.mm, (4096, 8192), (8192, 4096))
>>> found.problem.key, found.why, found.copies
('f16-f16-kn 4096x4096x8192', 'predicted to be the fastest', ())
>>> found.flops == 2 * 4096 * 4096 * 8192
True
"""

# torch is not there where the types are checked; operands are of any library.
# pyright: reportMissingImports=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownParameterType=false

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import prod
from typing import Any, NamedTuple

from cute_dialect.kernels.activations import Spelled, spelled
from cute_dialect.kernels.gemm.config import BITS
from cute_dialect.kernels.gemm.epilogue import Epilogue, Hook
from cute_dialect.kernels.split_tf32 import PartsConfig
from cute_dialect.op import gemm
from cute_dialect.op.compiled import AnyConfig
from cute_dialect.op.conv.report import explained as explained_convolution
from cute_dialect.op.conv.report import is_convolution
from cute_dialect.op.dtypes import FAST, arithmetic_of, both, check_types, element_name, result_of, tf32_allowed
from cute_dialect.op.epilogue.bind import (
    alone,
    arranged,
    bound,
    described,
    in_place_of,
    stored_as,
    traced_of,
)
from cute_dialect.op.epilogue.tracing import FakeTensor
from cute_dialect.op.errors import DtypeError, OpError, ShapeError, UnsupportedError
from cute_dialect.op.grouped.functions import grouped_mm
from cute_dialect.op.grouped.report import explained_grouped
from cute_dialect.op.known import Extras
from cute_dialect.op.operands import check_activation, check_addends, check_product, check_result, matrix
from cute_dialect.op.product import by_rows
from cute_dialect.op.rows.report import explained, is_of_rows
from cute_dialect.op.select import gemm_dispatch
from cute_dialect.op.select import kernel_choice as tables
from cute_dialect.op.select.candidates import blocks
from cute_dialect.op.select.cost_model import costs_of, predict, ranked
from cute_dialect.op.select.epilogue_work import NO_WORK, Work, work_of
from cute_dialect.op.select.gemm_dispatch import with_epilogue
from cute_dialect.op.select.kernel_choice import Choice, Problem
from cute_dialect.op.unfused import Matrix
from cute_dialect.runtime.arrays import ArrayView, NotAnArray, view_of

__all__ = ["Explanation", "explain", "explained_way"]

ANY_ROWS = "the sm_80 kernel for any rows"
_NAMES = {"f32": "FMAs of f32", "f64": "mma.sync of f64"}
_PEAK = {8: 4096, 16: 2048, 32: 1024}
"""Bits of an element -> multiplications and additions of an SM in a cycle, by wgmma (NVIDIA H100 whitepaper)."""


class Explanation(NamedTuple):
    """How a product is computed; printed, it says all of this.

    ``choice``: the kernel, None for the one that takes any rows; ``why``; ``microseconds``: predicted, of the kernel
    (0 for the one for any rows); ``others``: the next kernels of the menu with theirs; ``grid``: blocks; ``waves``:
    how often all multiprocessors are given tiles, a fraction where the last time not all are; ``shared_memory``: bytes
    of a block; ``copies``: operands that are copied, and bytes; ``flops``, ``bytes``: of the product, read and written
    once; ``bound``: microseconds that these take at the least; ``kernel``: its name.  ``other``: the kernel where there
    is no choice; ``parts``: the kernels that split f32 in three parts of tf32 first; ``launches``: how many, and why
    not one; ``split``: parts of K that were asked for, that there are, and why fewer.
    ``work``: of the epilogue, by element; ``epilogue``: the part of ``microseconds`` that it takes.
    """

    operation: str
    problem: Problem
    gpu: str
    choice: Choice | None
    why: str
    microseconds: float
    others: tuple[tuple[float, Choice], ...]
    grid: int
    waves: float
    shared_memory: int
    copies: tuple[tuple[str, int], ...]
    folded: bool
    by_torch: bool
    flops: int
    bytes: int
    bound: float
    kernel: str = ""
    other: AnyConfig | None = None
    parts: tuple[PartsConfig, ...] = ()
    launches: tuple[int, str] = (1, "")
    split: tuple[int, int, str] = (1, 1, "")
    work: Work = NO_WORK
    epilogue: float = 0.0

    @property
    def last_wave(self) -> float:
        """The part of the multiprocessors' places that the last wave fills."""
        return self.waves % 1 or 1.0

    def __str__(self) -> str:
        p = self.problem
        batch = f"{p.matrices} matrices, " if p.matrices > 1 else ""
        lines = [
            f"{self.operation} on {self.gpu}: {batch}M {p.m}, N {p.n}, K {p.k}, {p.element} to {p.output}, "
            f"majors {p.major_a} and {p.major_b}",
        ]
        if self.folded:
            lines.append("  the batch is one product: B is one for all, and the rows of A and of the result go on")
        if self.parts:
            lines.append("  before    f32 is split in three parts of tf32, of each factor")
        lines.append(f"  kernel    {self.kernel}: {self.why}")
        asked, parts, fewer = self.split
        if asked > 1:
            lines.append(f"  split     K in {parts} parts" + f", {asked} were asked for: {fewer}" * bool(fewer))
        if self.launches[0] > 1:
            lines.append(f"  launches  {self.launches[0]}, one a matrix: {self.launches[1]}")
        if self.choice is not None:
            lines += [
                f"  predicted {self.microseconds:.1f} us, {self.flops / self.microseconds / 1e6:.3g} TFLOP/s",
                f"  blocks    {self.grid} of {self.shared_memory} bytes of shared memory; {self.waves:.2f} waves, "
                f"the last one {self.last_wave:.0%} full",
            ]  # fmt: skip
        if self.work != NO_WORK:
            w = self.work
            bytes = f", {(w.read + w.written) / 8:g} bytes of other matrices" if w.read + w.written else ""
            lines.append(
                f"  epilogue  {self.epilogue:.1f} us of it: {w.instructions:g} instructions and {w.specials:g} special "
                f"functions an element{bytes}"
            )
        lines.append(
            f"  bound     {self.bound:.1f} us: {self.flops / 1e9:.3g} GFLOP, {self.bytes / 1e6:.3g} MB "
            "(tensor cores, DRAM)"
        )
        for name, size in self.copies:
            lines.append(f"  copied    {name}, {size / 1e6:.3g} MB: {_COPIED[name]}")
        if self.by_torch:
            lines.append("  then      torch computes what becomes of the sums")
        lines += [f"  else      {t:.1f} us  {c.name}" for t, c in self.others]
        return "\n".join(lines)


_COPIED = {
    "a": "its elements are multiplied in rows of whole 16 bytes, of a or b contiguous along K",
    "b": "its elements are multiplied in columns of whole 16 bytes, of a or b contiguous along K",
    "out": "TMA stores rows of whole 16 bytes",
}


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
    """Return how ``op.mm`` or ``op.bmm`` (``function``) computes a product of these arguments; or a function on rows,
    ``op.softmax`` and so on, of ``a``, with ``b`` for weights, a ``bias`` and a ``residual``; or a
    convolution of its first arguments, arrays or shapes, with ``stride`` and so on in ``more``.

    Matrices are whatever has ``shape``, ``strides`` or ``stride()`` and ``dtype``, on any device, or shapes, of
    contiguous rows and elements of type ``element``; arrays in ``args`` may be a ``FakeTensor``.  ``gpu``: for which,
    by its name; by default the one here, else an H200.  ``others``: how many more kernels are told of.  Raises what the
    function does.

    Of ``op.grouped_mm`` it takes ``offs``, ``lengths`` or ``row_groups``, too, or a shape of them; or lists of arrays.

    Of ``op.attention``, ``a``, ``b`` and ``out`` are q, k and v (as k where it is not given), and its other arguments
    follow by name.
    """
    name, applied = getattr(function, "__name__", ""), spelled(activation)
    if name == "attention":
        from cute_dialect.op.attending.report import explained_attention

        return explained_attention(a, b, out, element=element, **more)
    if is_convolution(function):
        how = {"alpha": alpha, "beta": beta, "c": c, "bias": bias, "activation": applied, "epilogue": epilogue}
        how |= {"dtype": dtype, "math": math, "accumulator": accumulator, **more}
        return explained_convolution(name, [x for x in (a, b, out) if x is not None], how, element, gpu)
    if function is grouped_mm and isinstance(a, list):
        from cute_dialect.op.grouped.call import Given
        from cute_dialect.op.grouped.lists import explained_lists

        lists = Given(a, b, {}, out, activation=applied, dtype=dtype, math=math, accumulator=accumulator)
        return explained_lists(lists._replace(schedule=more.get("schedule", "auto")))
    if function is grouped_mm:
        operands = {n: _view(name, n, x, element) for n, x in (("a", a), ("b", b), ("out", out)) if x is not None}
        return explained_grouped(operands, more, dtype, math, gpu, others, _of_torch(a))
    if more:
        raise UnsupportedError(f"explain: expected no {next(iter(more))} of {name or repr(function)}")
    if is_of_rows(function):
        return explained(function, a, b, bias, residual, element=element)
    if name == "mm_array":
        from cute_dialect.op.matrix_lists import explained_array

        given = {"outs": out, "Cs": c, "hook": hook, "activation": applied, "dtype": dtype, "math": math}
        return explained_array(a, b, others, **given, accumulator=accumulator)
    if function not in (gemm.mm, gemm.bmm):
        raise UnsupportedError(
            f"explain: expected op.mm, op.bmm, op.mm_array or op.attention, got {name or repr(function)}"
        )
    rank = 2 if function is gemm.mm else 3
    views = {"a": _view(name, "a", a, element), "b": _view(name, "b", b, element)}
    shape = check_product(name, rank, views["a"], views["b"])
    kind = both(views["a"].dtype, views["b"].dtype)
    result = result_of(views["a"].dtype) if dtype is None else element_name(dtype)
    if 0 in (*shape, views["a"].shape[-1]):
        raise ShapeError(f"{name}: expected matrices with elements, got {views['a'].shape} and {views['b'].shape}")
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
    extras = Extras(alpha, beta, c, bias, applied, hook)
    of_bias = (None, "") if bias is None else (views["bias"].shape, views["bias"].dtype)
    fused, result = None, views["out"].dtype
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
    name: str, way: gemm_dispatch.Way, gpu: str, sms: int, matrices: dict[str, Matrix], others: int, *,
    why: str = "", kernel: str = "",
) -> Explanation:  # fmt: skip
    """Return what there is to say of a way; ``why`` it is this one, where nobody chose; ``kernel``: its name, of one
    that is not on the menu.
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
            why = "TMA reads and writes addresses, rows and matrices of whole 16 bytes"
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
    """Return what is told of a kernel without TMA whose blocks share K."""
    from cute_dialect.kernels.ampere_gemm import AmpereConfig

    parts = 1 if config is None or isinstance(config, AmpereConfig) else config.parts
    return f", K in {parts} parts" if parts > 1 else ""


def _blocks(choice: Choice, problem: Problem) -> tuple[int, float]:
    """Return the blocks of a launch, and the waves of their tiles."""
    c, found = choice.config, blocks(choice, problem)
    slots = max(1, c.sms // c.cluster)
    if choice.skinny is not None or choice.parts > 1:  # one tile a block, or a part of one
        return found, found / c.sms
    if c.stream_k:
        return slots * c.cluster, found / (slots * c.cluster)
    tiles = found // c.cluster  # the fewest blocks that need no more waves
    return -(-tiles // -(-tiles // slots)) * c.cluster, tiles / slots


def _why(problem: Problem, gpu: str, choice: Choice) -> str:
    """Return where the choice comes from."""
    if tables.tuned(gpu).get(problem.key) != choice:
        return "predicted to be the fastest"
    if problem.key in tables.read(tables.table_path(gpu)):
        return f"measured to be the fastest, says {tables.table_path(gpu)}"
    if problem.key in tables.shipped(gpu):
        return f"measured to be the fastest on {gpu}, says the table of this package"
    return "predicted to be the fastest"


def _of_torch(t: Any) -> bool:
    return type(t).__module__.partition(".")[0] == "torch"


def _view(call: str, name: str, t: Any, element: str) -> ArrayView:
    """Return how an operand lies in memory; a shape is one of contiguous rows.  Raises DtypeError."""
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
        raise DtypeError(f"{call}: expected {name} as an array or a shape: {e}") from None
