"""Plans of GEMMs: the kernels of a call, and the operands that are copied or left to torch.

A :class:`Plan` holds configurations but no memory, so equal calls share it.  Functions get theirs from
:func:`make_plan`, and operations of ``op.Gemm`` and of PyCUTLASS from their tile
(:meth:`~cute_dialect.op.pycutlass.operation.GemmOperationUniversal.plan_for`).
:func:`cute_dialect.op.execute.gemm.steps_of` returns its launches, and ``op.explain`` prints it.

>>> choose(Problem(8192, 8192, 8192), gpu="NVIDIA H200").name         # measured
'f16-f16-kk-128x224-c2dw'
>>> [m * n >= 128 * 192 for m, n, _ in [choose(Problem(size, size, size)).config.tile for size in (1000, 8000)]]
[False, True]
"""

# torch is not installed where types are checked.
# pyright: reportMissingImports=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownParameterType=false

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping
from functools import cache, lru_cache
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from cute_dialect.kernels.common.elements import BITS, factors, sums_of
from cute_dialect.kernels.epilogue.combination import Epilogue
from cute_dialect.kernels.gemm.config import GemmConfig
from cute_dialect.kernels.gemm.split_tf32 import PartsConfig, padded
from cute_dialect.op.arrays.dtypes import both, check_types, element_of
from cute_dialect.op.arrays.library import gpu_here
from cute_dialect.op.arrays.operand_views import Matrix, folds
from cute_dialect.op.epilogue.bind import Arranged, stored_as
from cute_dialect.op.errors import LayoutError, OpError, UnsupportedError
from cute_dialect.op.keywords import checks_keywords, no_such_kernel
from cute_dialect.op.problems.gemm import CheckedGemm, without_memory
from cute_dialect.op.problems.operands import matrix
from cute_dialect.op.select.backends import GEMM_CCS, WGMMA, capability_named
from cute_dialect.op.select.candidates import menu, suiting, suits
from cute_dialect.op.select.configurations import Configured, KernelRequest, wanted
from cute_dialect.op.select.cost_model import NO_WORK, Costs, best, costs_of, predict, ranked, tell_clusters, work_of
from cute_dialect.op.select.descriptions import TileDescription
from cute_dialect.op.select.kernel_choice import OF_BLOCKS, Choice, Problem, tuned
from cute_dialect.op.select.mma_sync_model import (
    Cut,
    copies,
    cut_for,
    predict_cut,
    predict_direct,
    predict_exact,
    predict_unaligned,
)
from cute_dialect.runtime.arrays import ArrayView

if TYPE_CHECKING:  # pragma: no cover
    from cute_dialect.kernels.epilogue.graph import Graph
    from cute_dialect.kernels.gemm.ampere import AmpereConfig
    from cute_dialect.kernels.gemm.mma_sync import WarpConfig
    from cute_dialect.kernels.gemm.simt import ExactConfig

SCALES = ("scale_a", "scale_b")
"""Names of the block scales."""
WITHOUT_GPU = "NVIDIA H200"
"""The GPU that is assumed if there is none."""


MOST_BYTES = 1 << 31
"""Bytes of a matrix from which on the kernel that pads rows cannot address it."""
_CLOSE = 1.02
"""Factor of predictions below which a measurement without the epilogue is more reliable."""


class KernelOverride(NamedTuple):
    """The kernel or the number of split-K slices that a call selects."""

    kernel: object = None  # a name, a Choice or a TileDescription
    split_k: int | None = None


ANY = KernelOverride()
"""No selection: the cost model chooses the kernel."""


@checks_keywords
def choose(problem: Problem, sms: int = 132, gpu: str = "", epilogue: Epilogue | None = None) -> Choice:
    """Return the kernel for a problem, without an epilogue.

    The tables of the GPU (:mod:`cute_dialect.op.select.kernel_choice`) take precedence: the user's, then that of this
    package.  Otherwise the cost model (:mod:`cute_dialect.op.select.cost_model`) selects the fastest candidate.
    Tables are measured without an epilogue, so with one the kernel of a table is used only if its predicted time is
    near the minimum.

    Args:
        sms: number of multiprocessors.
        gpu: name of the GPU; without one no table is used.
        epilogue: its work is part of the prediction.
    """
    found, costs, work = (
        tuned(gpu).get(problem.key) if gpu else None,
        costs_of(gpu, sms),
        work_of(epilogue, problem.output),
    )
    if found is not None and work == NO_WORK:
        return found
    fastest = best(problem, costs, work)
    if found is not None and predict(found, problem, costs, work) <= _CLOSE * predict(fastest, problem, costs, work):
        return found
    return fastest


AnyConfig: TypeAlias = "AmpereConfig | ExactConfig | WarpConfig"
"""A kernel that does not use TMA."""


def any_config(
    element: str, output: str, majors: tuple[str, str], batch: bool, epilogue: Epilogue, cut: Cut | None = None,
) -> AnyConfig:  # fmt: skip
    """Return the kernel without TMA for a problem.

    f32 operands use FMAs, 16-bit operands ``ldmatrix``, other operands plain loads.

    Args:
        cut: the tile and the number of split-K slices; for f32 it selects small tiles, for 16-bit operands it is
            ignored.
    """
    from cute_dialect.kernels.gemm.ampere import AmpereConfig  # late: start-up
    from cute_dialect.kernels.gemm.mma_sync import WarpConfig  # late: start-up
    from cute_dialect.kernels.gemm.simt import ExactConfig  # late: start-up

    if element == "f32":
        return ExactConfig(*majors, batch, epilogue, small=cut is not None, parts=1 if cut is None else cut.parts)
    of_any = ("k" if majors[0] == "k" else "mn", "k" if majors[1] == "k" else "mn")
    if BITS[element] == 16:
        output = "" if output == element or not epilogue.active else output
        return AmpereConfig(element, majors=of_any, batch=batch, output=output, epilogue=epilogue)
    # A block may be alone on its multiprocessor, so no other block hides the latency of fragment loads.  Fragments of
    # f64 and tf32 are therefore loaded one step ahead.  Fragments of 8-bit elements would need a register per byte.
    usual = WarpConfig(element, output, of_any, batch, ahead=element in ("f64", "tf32"))
    if cut is None:
        return usual
    return usual._replace(tile=cut.tile, warps=cut.warps, parts=cut.parts, stages=cut.stages)


class SlicesKernel(NamedTuple):
    """The kernel of one launch that stores accumulators of split-K slices in the workspace."""

    kernel: Configured
    first: int  # number of the first slice
    slices: int  # number of slices
    k: int  # extent of a slice along K
    begin: int  # index along K where the first slice begins
    array: bool = False  # the slices of the matrices of a batch are a pointer array


class Plan(NamedTuple):
    """The kernels of a GEMM in launch order: ``splitters``, those of ``slices``, and ``kernel``.

    It holds no memory.
    """

    problem: Problem  # the problem that the kernels compute
    kernel: Configured  # computes D; with ``slices`` or without terms it reduces a workspace
    epilogue: Epilogue | None = None  # in terms of the caller's D
    flipped: bool = False  # the kernel computes D^T = B^T A^T
    chip: str = ""  # target, "" for the default
    splitters: tuple[PartsConfig, ...] = ()  # kernels that split A and B into three tf32 parts first
    slices: tuple[SlicesKernel, ...] = ()  # split-K slices with a workspace
    copied: tuple[str, ...] = ()  # those of a, b and out of ``problem`` that the kernel cannot read or write in place
    folded: bool = False  # the batch is computed as one GEMM
    by_torch: bool = False  # torch computes the epilogue

    @property
    def choice(self) -> Choice | None:
        """The kernel with TMA, or None."""
        return self.kernel if isinstance(self.kernel, Choice) else None


@lru_cache(maxsize=4096)
def way_of(
    a: Matrix, b: Matrix, out: Matrix, dtype: str, result: str, epilogue: Epilogue | None = None,
    gpu: str = "", sms: int = 132, arithmetic: str = "",
) -> Plan:  # fmt: skip
    """Return the plan for ``a`` (M, K), ``b`` (K, N) and ``out`` (M, N) with contiguous rows, or batches of them.

    Args:
        dtype: element of the operands, as returned by :func:`cute_dialect.op.arrays.dtypes.both`.
        result: element of ``out``.
        gpu, sms: as in :func:`choose`.
        arithmetic: see :func:`cute_dialect.op.arrays.dtypes.arithmetic_of`.

    Raises DtypeError, and UnsupportedError if there is no kernel.
    """
    check_types(dtype, result, arithmetic)
    element, output = element_of(dtype, arithmetic), result
    by_row = epilogue is not None and epilogue.by_row
    folded = folds(a, b, out) and (out.matrices == 1 or not by_row)
    parts: tuple[PartsConfig, ...] = ()
    if arithmetic == "3xtf32":
        parts = PartsConfig("a", a.along(1), not folded), PartsConfig("b", b.along(0), not folded)
        a, b = in_parts(a, 1), in_parts(b, 0)
    m, n, k, matrices = out.shape[0], b.shape[1], a.shape[1], out.matrices
    if folded:
        m, matrices = m * matrices, 1
    majors = ("k" if a.contiguous == 1 else "m", "n" if b.contiguous == 1 else "k")
    sums = "two" if parts else "" if arithmetic in ("tf32", "exact") else arithmetic
    problem = Problem(m, n, k, element, output, *majors, matrices, sums)
    if element in ("f32", "f64"):
        return _without_tma(problem, a, b, out, epilogue, folded, costs_of(gpu, sms))
    copied: list[str] = []
    if BITS[element] == 16:
        copied = [name for name, x in (("a", a), ("b", b)) if not x.suits_tma()]
        copied += ["out"] * (not out.is_tma_storable())
        readable = not copied or sums != "" or (output != element and epilogue is None)
        readable |= copied == ["out"] and epilogue is None
        unaligned = [x for x in (a, b) if not x.suits_tma()]
        readable |= epilogue is None and (_is_long(problem, sms) or _pads_sooner(problem, unaligned, out, gpu, sms))
    else:  # any operand can be copied
        readable = True
        problem, copied = _read_along_k(problem, a, b, out, epilogue)
        lying = problem._replace(major_a=majors[0], major_b=majors[1])
        factors = {name: x for name, x in (("a", a), ("b", b)) if name in copied}
        if factors and epilogue is None and not sums and _warps_sooner(lying, problem, a, b, factors, gpu, sms):
            return _without_tma(lying, a, b, out, epilogue, folded, costs_of(gpu, sms))
    by_torch = epilogue is not None and (not readable or (n % 2 != 0 and epilogue.graph is None))
    if not readable:
        inside = Epilogue()
        single = epilogue is not None and (epilogue.graph is None or epilogue.by_element)
        if epilogue is not None and single and output in ("f16", "bf16", "f32"):
            inside, by_torch = epilogue, False
        config = any_config(element, output, (problem.major_a, problem.major_b), matrices > 1, inside)
        return Plan(problem, config, epilogue, folded=folded, by_torch=by_torch)
    choice = choose(problem, sms, gpu, None if by_torch else epilogue)
    if "out" in copied and (epilogue is None or by_torch):
        choice = with_direct(choice, problem, costs_of(gpu, sms))
        copied.remove("out")
    if epilogue is not None and not by_torch:
        choice = taking(choice, epilogue, problem, costs_of(gpu, sms))
    return Plan(problem, choice, epilogue, splitters=parts, copied=tuple(copied), folded=folded, by_torch=by_torch)


class Target(NamedTuple):
    """The GPU of a call, and its requests for the kernel."""

    gpu: str  # as in :func:`choose`
    sms: int
    wanted: KernelOverride = ANY  # the kernel, if the call selects one
    owned: bool = False  # the kernel may overwrite the padding between rows of ``out``
    chip: int = 0  # compute capability of a GPU without wgmma, such as 100; 0 for the kernels of sm_90


def make_plan(
    call: str, checked: CheckedGemm, views: Mapping[str, ArrayView], target: Target, graph: Graph | None = None,
    own: Arranged | None = None,
) -> tuple[Plan, bool]:  # fmt: skip
    """Return the plan of a checked problem, and True if its kernel stores a reshaped result.

    Args:
        call: name of the function.
        views: the operands, with an ``out``.
        graph: a traced epilogue, which replaces that of the problem.
        own: the layout of a reshaped result.  If no kernel stores it, the plan is that of a matrix to be copied.

    Raises LayoutError, UnsupportedError.
    """
    operands = without_memory(views)

    def plan_for(epilogue: Epilogue | None, target: Target = target) -> Plan:
        plan = _planned if target.wanted == ANY else _plan
        return plan(call, operands, checked.result, checked.arithmetic, epilogue, target)

    if graph is None:
        return plan_for(checked.epilogue), False
    if own is None or own.plain is not None:
        return plan_for(Epilogue(graph=graph)), False
    target = target._replace(owned=True)
    if target.wanted == ANY:
        try:
            plan = plan_for(Epilogue(graph=stored_as(graph, own)), target)
        except UnsupportedError:
            plan = None
        if plan is not None and plan.choice is not None and not plan.by_torch:
            return plan, True
    return plan_for(Epilogue(graph=graph), target), False


def _plan(
    call: str, operands: tuple[tuple[str, ArrayView], ...], result: str, arithmetic: str, epilogue: Epilogue | None,
    target: Target,
) -> Plan:  # fmt: skip
    """Return the plan of a GEMM.  It computes the transposed problem if the columns of the result are contiguous.

    Args:
        operands: see :func:`cute_dialect.op.problems.gemm.without_memory`.
        result: type of the result.
        arithmetic: see :func:`cute_dialect.op.arrays.dtypes.arithmetic_of`.
        epilogue: the epilogue, whose rows and columns are those of ``out``.
    """
    (gpu, sms, wanted, owned, _), views = target, dict(operands)
    flipped = not matrix(views["out"]).along(1)
    if flipped:
        check_flipped(call, views, epilogue)
    views, turned = by_rows(views, epilogue)
    x, y, z = (matrix(views[n]) for n in ("a", "b", "out"))
    kind = both(views["a"].dtype, views["b"].dtype)
    plan = way_of(x, y, z._replace(owned=owned), kind, result, turned, gpu, sms, arithmetic)
    if flipped:  # Its A is the caller's B.
        plan = plan._replace(epilogue=epilogue, flipped=True, splitters=plan.splitters[::-1])
    choice = plan.choice
    if choice is not None and SCALES[1] in views:
        config = choice.config._replace(scales="ui8" if views[SCALES[1]].dtype == "ui8" else "f32")
        plan = plan._replace(kernel=choice._replace(config=config))
    if wanted != ANY:
        if choice is None:
            raise UnsupportedError(
                f"{call}: kernel and split_k need TMA, for which addresses and row strides must be multiples of 16 "
                "bytes; pass aligned operands"
            )
        kernel = kernel_for(plan.problem, wanted, gpu, sms)
        if choice.config.direct:
            kernel = with_direct(kernel, plan.problem, costs_of(gpu, sms))
        plan = plan._replace(kernel=kernel if turned is None or plan.by_torch else with_epilogue(kernel, turned))
    return plan


_planned = lru_cache(maxsize=4096)(_plan)


def check_flipped(call: str, views: Mapping[str, ArrayView], epilogue: Epilogue | None) -> None:
    """Raise LayoutError if the columns of the result are contiguous, but must not be."""
    found = f"{call}: out has strides {views['out'].strides}, but"
    if SCALES[0] in views:
        raise LayoutError(f"{found} block scales need contiguous rows; pass a contiguous out")
    if epilogue is not None and epilogue.whole_tiles:
        what = "whole_rows" if epilogue.whole_rows else "quantize()"
        raise LayoutError(f"{found} {what} in an epilogue needs contiguous rows; pass a contiguous out")
    if epilogue is not None and epilogue.paired:
        raise LayoutError(f"{found} pairs() in an epilogue needs contiguous rows; pass a contiguous out")


def by_rows(
    views: dict[str, ArrayView], epilogue: Epilogue | None
) -> tuple[dict[str, ArrayView], Epilogue | None]:  # fmt: skip
    """Return a GEMM whose result has contiguous rows: the transposed one, ``b^T a^T``, if it has contiguous columns."""
    if matrix(views["out"]).along(1):
        return views, epilogue
    turned = views | {"a": views["b"].transposed(), "b": views["a"].transposed()}
    turned |= {n: views[n].transposed() for n in ("out", "c") if n in views}
    return turned, None if epilogue is None else epilogue.transposed()


CACHES: list[Callable[[], None]] = [way_of.cache_clear, _planned.cache_clear]
"""Functions that clear the caches of choices."""


def forget_plans() -> None:
    """Clear the caches of choices, so that later calls look up the tables again."""
    for clear in CACHES:
        clear()


def _read_along_k(
    p: Problem, a: Matrix, b: Matrix, out: Matrix, epilogue: Epilogue | None
) -> tuple[Problem, list[str]]:  # fmt: skip
    """Return the problem for elements that wgmma multiplies along K only, and the operands to copy.

    At most one of A and B may not be contiguous along K:  A, or in the transposed problem B.  It is loaded to
    registers (:mod:`cute_dialect.kernels.gemm.mainloop`).
    """
    factors = ("a", a, 1), ("b", b, 0)
    copied = [name for name, x, _ in factors if not x.suits_tma()]
    copied += ["out"] * (not (out.is_tma_storable() and out.along(1)))
    across = [name for name, x, mode in factors if not x.along(mode)]
    plain = epilogue is None or not (epilogue.half or epilogue.reduces)
    # The transposed problem accesses matrices other than D element by element, and cannot store bytes that way.
    swapped = BITS[p.output] > 8 and (epilogue is None or not epilogue.by_elements)
    may_stay = [name for name in across if plain and p.sums not in OF_BLOCKS and (name == "a" or swapped)]
    kept = max(may_stay, key=lambda name: p.m if name == "a" else p.n, default="")  # the larger one
    copied = [name for name in ("a", "b", "out") if name in copied or (name in across and name != kept)]
    return p._replace(major_a="m" if kept == "a" else "k", major_b="n" if kept == "b" else "k"), copied


def _is_long(p: Problem, sms: int) -> bool:
    """Return True if the kernel for unaligned rows, which has no split-K, would leave most multiprocessors idle.

    Copies of A and B for a split-K kernel cost less then: 20 us instead of 1.5 ms for 171x38x40824 on an H200.
    """
    blocks = p.matrices * -(-p.m // 128) * -(-p.n // 128)
    return p.k >= 8192 and 4 * blocks <= sms


def _pads_sooner(p: Problem, unaligned: list[Matrix], out: Matrix, gpu: str, sms: int) -> bool:
    """Return True if padded copies of unaligned f16 or bf16 operands and wgmma are predicted to be the fastest."""
    sizes = _bytes(unaligned)
    if any(x.address % 4 for x in unaligned) or max(sizes, default=0) >= MOST_BYTES:  # torch would copy these
        return False
    return predict_padded(p, sizes, gpu, sms, direct=not out.is_tma_storable()) < predict_unaligned(p, sms)


def predict_padded(p: Problem, sizes: list[int], gpu: str, sms: int, *, direct: bool) -> float:
    """Return the predicted time of padded copies of f16 or bf16 operands and of a wgmma kernel, in microseconds.

    Args:
        sizes: bytes of each copied operand.
        direct: rows of the result are no multiples of 16 bytes.
    """
    time = predict(choose(p, sms, gpu), p, costs_of(gpu, sms))
    time = max(time, predict_direct(p.m * p.n * p.matrices)) if direct else time
    return time + copies(sizes, transposed=False, recorded=True)


def _warps_sooner(
    lying: Problem, copied: Problem, a: Matrix, b: Matrix, factors: Mapping[str, Matrix], gpu: str, sms: int
) -> bool:
    """Return True if ``mma.sync`` is predicted to be faster than copies of operands and wgmma.

    Args:
        lying: the problem of the operands in place.
        copied: the problem of the copies.
    """
    costs, single = costs_of(gpu, sms), _single(a, b)
    turned = (lying.major_a, lying.major_b) != (copied.major_a, copied.major_b)
    by_copies = copies(_bytes(factors.values()), transposed=turned) + predict(choose(copied, sms, gpu), copied, costs)
    return predict_cut(cut_for(lying, costs, single=single), lying, costs, single=single) < by_copies


def _bytes(of: Iterable[Matrix]) -> list[int]:
    """Return the size of each matrix, or of its batch, in bytes."""
    return [x.shape[0] * x.shape[1] * x.item * (x.matrices if x.step else 1) for x in of]


def _single(a: Matrix, b: Matrix) -> bool:
    """Return True if lines of the operands are not aligned to 4 bytes."""
    return any(n % 4 for x in (a, b) for n in (x.address, x.stride[1 - x.contiguous] * x.item, x.step * x.item))


def _without_tma(
    p: Problem, a: Matrix, b: Matrix, out: Matrix, epilogue: Epilogue | None, folded: bool, costs: Costs
) -> Plan:
    """Return the plan of a GEMM without wgmma: exact f32, f64, or a small one."""
    by_torch = epilogue is not None and (p.element != "f32" or not (epilogue.graph is None or epilogue.by_element))
    by_torch |= p.element == "f32" and p.output != "f32"  # the result is only rounded
    copied: list[str] = []
    cut = cut_for(p, costs, single=_single(a, b))
    if p.element == "f32":  # the kernel with large tiles reads A along K and B along N
        wanted = {name: x for name, x in (("a", a), ("b", b), ("out", out)) if not (x.along(1) and x.suits_tma())}
        turned = any(not x.along(1) for x in wanted.values())
        by_copies = copies(_bytes(wanted.values()), transposed=turned) + predict_exact(p, costs)
        if predict_cut(cut, p, costs) > by_copies:
            copied, cut, p = [*wanted], None, p._replace(major_a="k", major_b="n")
    inside = Epilogue() if epilogue is None or by_torch else epilogue
    config = any_config(p.element, p.output, (p.major_a, p.major_b), p.matrices > 1, inside, cut)
    return Plan(p, config, epilogue, copied=tuple(copied), folded=folded, by_torch=by_torch)


def in_parts(x: Matrix, mode: int) -> Matrix:
    """Return the layout of the three tf32 parts of an operand, whose mode ``mode`` is K."""
    k = 3 * padded(x.shape[mode])
    rows = x.shape[1 - mode]
    shape, stride = ((rows, k), (k, 1)) if mode == 1 else ((k, rows), (1, k))
    return Matrix(shape, stride, x.item, 0, x.matrices, rows * k if x.step else 0)


def taking(choice: Choice, epilogue: Epilogue, problem: Problem, costs: Costs) -> Choice:
    """Return a kernel with an epilogue: this one, or the fastest one that supports the epilogue.

    The transposed problem reads matrices element by element, and so it stores results that are not staged like D.
    """
    of_rows = epilogue.whole_rows
    own = epilogue.paired or epilogue.whole_tiles or epilogue.split != ""
    if not own and not epilogue.reduces and not (choice.swapped and not _is_staged(with_epilogue(choice, epilogue))):
        return with_epilogue(choice, epilogue)
    for other in (choice, *(c for _, c in ranked(problem, costs, work=work_of(epilogue, problem.output)))):
        found = with_epilogue(other, epilogue)
        try:
            fits = not found.swapped or (not own and _is_staged(found))
            if epilogue.paired or epilogue.whole_tiles or epilogue.split:
                fits = found.skinny is None and found.parts == 1 and fits
            fits = fits and (not of_rows or found.config.tile[1] >= problem.n)
            if fits and epilogue.split:
                found = found._replace(config=found.config._replace(direct=not epilogue.suits_tma(found.config.widths)))
            if fits:
                found.config.check()
                return found
        except ValueError:
            continue
    if of_rows:
        raise UnsupportedError(f"whole_rows needs a tile with all columns, at most 256, but N is {problem.n}; reduce N")
    raise UnsupportedError(f"no kernel supports this epilogue for {problem.key}; apply it to the result instead")


def _is_staged(choice: Choice) -> bool:
    """Return True if a kernel reads no matrices in its epilogue, and stages all results that are not reduced."""
    epilogue, graph = choice.config.epilogue, choice.config.epilogue.graph
    if not epilogue.by_elements:
        return True
    if graph is None or any(x.kind == "aux" for x in graph.inputs) or choice.skinny is not None or choice.parts > 1:
        return False
    return len(choice.config.beside) == sum(not x.reduce for x in graph.outputs[1:])


def with_direct(choice: Choice, problem: Problem, costs: Costs) -> Choice:
    """Return a kernel that stores to any row stride: this one, or for a few-rows kernel the fastest other one."""
    found = choice if choice.skinny is None else next(c for _, c in ranked(problem, costs) if c.skinny is None)
    return found._replace(config=found.config._replace(direct=True))


def with_epilogue(choice: Choice, epilogue: Epilogue) -> Choice:
    """Return the kernel with an epilogue, which is transposed for the transposed problem.

    It prefetches the matrix that the epilogue reads if that is faster.
    """
    epilogue = epilogue.transposed() if choice.swapped else epilogue
    if choice.skinny is not None:
        skinny = choice.skinny._replace(epilogue=epilogue)
        return choice._replace(config=choice.config._replace(epilogue=epilogue), skinny=skinny)
    config = choice.config._replace(epilogue=epilogue)
    kept = epilogue.active and config.prefetch
    return choice._replace(config=config._replace(prefetch=kept or (choice.parts == 1 and _prefetches(config))))


def _prefetches(config: GemmConfig) -> bool:
    """Return True if a kernel is faster with prefetch of the matrix that its epilogue reads.

    Kernels with three consumers have too few registers.
    """
    c = config
    if c.deferred or c.stream_k or c.array or c.major_c == "m" or c.consumers == 3:
        return False
    return c.registers <= work_of(c.epilogue, c.output).prefetch_limit


@cache
def gpu_of(number: int) -> tuple[str, int]:
    """Return the name and the number of multiprocessors of a GPU; also set its clusters in the cost model.

    Raises DeviceError, UnsupportedError.
    """
    from cute_dialect.runtime.driver import clusters_at_once

    gpu = gpu_here()
    WGMMA.check_gpu(gpu.capability(number))
    found = gpu.name(number), gpu.multiprocessors(number)
    tell_clusters(*found, *(clusters_at_once(number, size) for size in (4, 8)))
    return found


@cache
def target_of(number: int) -> Target:
    """Return the target of GEMMs on a GPU of any generation that has kernels.

    Raises DeviceError, UnsupportedError.
    """
    gpu = gpu_here()
    major, minor = capability = gpu.capability(number)
    chip = 10 * major + minor
    if WGMMA.runs_on(capability) or chip not in GEMM_CCS:
        return Target(*gpu_of(number))
    return Target(gpu.name(number), gpu.multiprocessors(number), chip=chip)


def here() -> tuple[str, int]:
    """Return the name and the multiprocessors of the current GPU, or of an H200 if no GPU can run our kernels."""
    torch = sys.modules.get("torch")
    return _gpu_or_default(torch.cuda.current_device() if torch is not None and torch.cuda.is_initialized() else 0)


@cache
def _gpu_or_default(number: int) -> tuple[str, int]:
    """Return the GPU, or an H200.  Cached: looking for a missing driver takes longer than planning a call."""
    try:
        return gpu_of(number)
    except OpError:
        return WITHOUT_GPU, 132


@cache
def other_gpu() -> str:
    """Return the name of the first GPU if it is a known one without the kernels of sm_90, otherwise an empty text."""
    try:
        gpu = gpu_here()
    except OpError:
        return ""
    name = "" if WGMMA.runs_on(gpu.capability(0)) else gpu.name(0)
    return "" if capability_named(name) is None else name


def forget_gpus() -> None:
    """Look for the GPUs of this machine again at the next call."""
    gpu_of.cache_clear()
    target_of.cache_clear()
    other_gpu.cache_clear()
    _gpu_or_default.cache_clear()


# ------------------------------------------------------------------------------------------ kernels that a call selects


def kernel_for(problem: Problem, wanted: KernelOverride, gpu: str = "", sms: int = 132) -> Choice:
    """Return the kernel that a call selects.  Raises UnsupportedError if it cannot compute the problem.

    >>> p = Problem(4096, 4096, 4096)
    >>> kernel_for(p, KernelOverride("f16-f16-kk-128x192-c2d")).config.tile
    (128, 192, 64)
    >>> kernel_for(Problem(640, 256, 16384), KernelOverride(split_k=4)).parts
    4
    """
    if wanted.kernel is not None and wanted.split_k is not None:
        raise UnsupportedError("kernel and split_k are both given; pass one of them")
    if wanted.split_k is not None:
        return _with_parts(problem, wanted.split_k, gpu, sms)
    kernel = wanted.kernel
    if isinstance(kernel, str):
        kernel = _named(problem, kernel, sms)
    elif isinstance(kernel, TileDescription):
        kernel = _described(problem, kernel)
    if not isinstance(kernel, Choice):
        raise UnsupportedError(f"kernel is {kernel!r}; pass a Choice, a kernel name or a TileDescription")
    c = kernel.config
    have = (c.element, c.output, *kernel.majors, c.batch)
    asked = (problem.element, problem.output, problem.major_a, problem.major_b, problem.matrices > 1)
    if have != asked:
        raise UnsupportedError(
            f"kernel {kernel.name} is for {_told(*have)}, but the problem is {_told(*asked)}; omit kernel"
        )
    sums = "columns" if c.scaled_columns else "block" if c.scaled else "two" if c.promote else c.accumulator
    if sums != problem.sums and (sums, problem.sums) != ("two", ""):  # two-level accumulation is at least as accurate
        raise UnsupportedError(
            f"kernel {kernel.name} has another accumulator than the {problem.sums or 'f32'} of this call; omit kernel"
        )
    if not suits(kernel, problem):
        raise UnsupportedError(
            f"kernel {kernel.name} does not support {problem.m}x{problem.n}x{problem.k}: its split-K blocks would not "
            "all run at once, K has too few steps, or there are too many rows; omit kernel"
        )
    return kernel


def _told(element: str, output: str, major_a: str, major_b: str, batch: bool) -> str:
    return f"{'batches' if batch else 'matrices'} of {element} to {output}, majors {major_a} and {major_b}"


def _with_parts(problem: Problem, parts: object, gpu: str, sms: int) -> Choice:
    """Return the fastest kernel with this number of split-K slices, or with the largest possible one below it."""
    if isinstance(parts, bool) or not isinstance(parts, int):
        raise UnsupportedError(f"split_k is {parts!r}; pass an integer")
    if parts < 1:
        raise UnsupportedError(f"split_k is {parts}; pass 1 or more")
    found = [c for _, c in ranked(problem, costs_of(gpu, sms))]
    there = sorted({_parts(c) for c in found})
    most = max(n for n in there if n <= parts)
    return next(c for c in found if _parts(c) == most)


def _parts(choice: Choice) -> int:
    return choice.skinny.parts if choice.skinny is not None else choice.parts


def _named(problem: Problem, name: str, sms: int) -> Choice:
    """Return the candidate kernel with a name."""
    found = menu(problem, sms)
    names: dict[str, Choice] = {}
    for index in suiting(found, problem).nonzero()[0].tolist():
        choice = found.choice(index)
        if choice.name == name:
            return choice
        names[choice.name] = choice
    raise no_such_kernel(name, names, problem.key)


def _described(problem: Problem, tile: TileDescription) -> Choice:
    """Return the kernel of a tile description."""
    a, b = factors(problem.element)
    sums = problem.sums or sums_of(problem.element)
    layouts = ("row" if problem.major_a == "k" else "column", "row" if problem.major_b == "n" else "column")
    found = wanted(tile, KernelRequest(a, b, sums, problem.output, *layouts, "row", problem.matrices > 1))
    if not isinstance(found, Choice):
        raise UnsupportedError(f"kernel {tile.name} does not use wgmma for {BITS[a]}-bit elements; pass another tile")
    return found
