"""Explanations of calls: the selected kernels, their predicted time, and the text that ``print`` shows.

:class:`Explanation` has the fields that all problems share, and writes the text.  A subclass for each kind of problem
adds fields, and the lines that only it has::

    softmax of 8192 rows of 50257 bf16                      _title()
      kernel    rows-softmax-bf16-512x7x1x2x0x1: for ...    kernel and why
      a row     2 blocks of 512 threads, up to 7 ...        _layout()
      bound     402.4 us: 1.65 GB (DRAM, an H200)           bound and _limits()

:func:`explain_plan` explains GEMMs, :func:`explain_grouped` grouped GEMMs.
"""

# Arrays may belong to any library.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Any, cast

from cute_dialect.kernels.epilogue.combination import Epilogue
from cute_dialect.kernels.gemm.config import BITS, GroupedConfig
from cute_dialect.kernels.gemm.grouped_sm100 import GroupedSm100Config
from cute_dialect.kernels.gemm.mma_sync import WarpConfig
from cute_dialect.kernels.gemm.pointer_array import ListedConfig
from cute_dialect.kernels.gemm.simt import ExactConfig
from cute_dialect.kernels.gemm.sm100 import COLUMNS, Sm100Config
from cute_dialect.kernels.gemm.sm120 import Sm120Config
from cute_dialect.kernels.gemm.split_tf32 import PartsConfig
from cute_dialect.op.arrays.dtypes import element_name, is_of_torch
from cute_dialect.op.arrays.operand_views import Matrix
from cute_dialect.op.epilogue.combination import LinearCombination
from cute_dialect.op.errors import DtypeError, UnsupportedError
from cute_dialect.op.execute.grouped import is_storable, problem_of, readable
from cute_dialect.op.execute.kernels import name_of
from cute_dialect.op.problems.grouped import GROUPS, GroupedArguments, Shapes, shapes_of
from cute_dialect.op.problems.operands import matrix
from cute_dialect.op.select import kernel_choice as tables
from cute_dialect.op.select.backends import MMA_SYNC, Backend
from cute_dialect.op.select.candidates import blocks
from cute_dialect.op.select.configurations import Configured
from cute_dialect.op.select.cost_model import NO_WORK, Work, costs_of, has_costs, predict, ranked, work_of
from cute_dialect.op.select.gemm_dispatch import Plan, here, with_epilogue
from cute_dialect.op.select.grouped import (
    Sm100Groups,
    base_of,
    choose_sm100,
    is_of_warps,
    majors_of,
    ranked_grouped,
    size_of,
)
from cute_dialect.op.select.kernel_choice import Choice, Problem
from cute_dialect.op.select.sm100_model import lines_of
from cute_dialect.runtime.arrays import ArrayView, NotAnArray, view_of

Line = tuple[str, str]
"""A label of at most 9 characters, and its text."""


@dataclass(frozen=True, kw_only=True)
class Explanation:
    """The kernels of a call, their predicted time and the reason for the choice; ``print`` shows all of it."""

    operation: str
    gpu: str = ""
    kernel: str = ""  # name of the main kernel
    why: str = ""  # the reason for the choice
    microseconds: float = 0.0  # predicted time of the kernel; 0 without a prediction
    others: tuple[tuple[float, Any], ...] = ()  # the next candidates with their times
    copies: tuple[tuple[str, int], ...] = ()  # operands that are copied, and their bytes
    flops: int = 0
    bytes: int = 0  # with each operand read or written once
    bound: float = 0.0  # lower bound of the time in microseconds, from flops and bytes; 0 if there is none
    kernels: tuple[Any, ...] | None = None  # for `op.prefetch`; None if it does not support the call
    status: str = ""  # how far a kernel for a chip without measurements has been tested

    def _title(self) -> str:
        """Return the first line: the operation and its problem."""
        return self.operation

    def _before(self) -> Iterable[Line]:
        """Return lines about work before the kernel."""
        return ()

    def _layout(self) -> Iterable[Line]:
        """Return lines about the problem as the kernel sees it, after the line of the kernel."""
        return ()

    def _occupancy(self) -> Iterable[Line]:
        """Return lines about blocks and instructions, after the predicted time."""
        return ()

    def _limits(self) -> str:
        """Return the flops and bytes that determine the bound."""
        return ""

    def _after(self) -> Iterable[Line]:
        """Return lines about further kernels and operands."""
        return ()

    def _reason(self, operand: str) -> str:
        """Return the reason for the copy of an operand, or an empty string."""
        return ""

    def _finish(self) -> str:
        """Return the work of the array library after the kernels, or an empty string."""
        return ""

    def _lines(self) -> Iterable[Line]:
        """Return the lines below the title."""
        yield from self._before()
        yield "kernel", self.kernel + (f": {self.why}" if self.why else "")
        yield from self._layout()
        if self.microseconds:
            yield "predicted", f"{self.microseconds:.1f} us, {self.flops / self.microseconds / 1e6:.3g} TFLOP/s"
        if self.status:
            yield "status", self.status
        elif self.gpu and not has_costs(self.gpu):
            of = "the costs" if self.microseconds else "the kernel and the bound"
            yield "note", f"with {of} of an NVIDIA H200, because none are measured for {self.gpu!r}"
        yield from self._occupancy()
        if self._limits() and self.status:
            yield "work", self._limits()
        elif self._limits():
            yield "bound", f"{self.bound:.1f} us: {self._limits()}"
        yield from self._after()
        for name, size in self.copies:
            reason = self._reason(name)
            yield "copied", f"{name}, {size / 1e6:.3g} MB" + (f": {reason}" if reason else "")
        if self._finish():
            yield "then", self._finish()
        for time, other in self.others:
            yield "else", f"{time:.1f} us  {self._name_of(other)}"

    def _name_of(self, candidate: Any) -> str:
        """Return the name of the kernel of a candidate."""
        return candidate.name

    def __str__(self) -> str:
        return "\n".join([self._title(), *(f"  {label:<9} {text}" for label, text in self._lines())])


def example_view(call: str, name: str, t: Any, element: str) -> ArrayView:
    """Return a view of an operand, or of an array of a shape with contiguous rows.  Raises DtypeError."""
    if isinstance(t, ArrayView):
        return t
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


# ---------------------------------------------------------------------------------------------------------------- GEMMs


ANY_ROWS = "the mma.sync kernel for unaligned rows"
_NAMES = {"f32": "FMAs of f32", "f64": "mma.sync of f64"}
_PEAK = {8: 4096, 16: 2048, 32: 1024}
"""Bits of an element -> multiply-adds per SM and cycle with wgmma (NVIDIA H100 whitepaper)."""


@dataclass(frozen=True, kw_only=True)
class GemmExplanation(Explanation):
    """The kernel of a GEMM and its predicted time; both are 0 for a kernel without TMA."""

    problem: Problem
    choice: Choice | None  # the kernel; None for a kernel without TMA
    grid: int = 0  # blocks
    waves: float = 0.0  # number of waves of tiles; the fraction is the last, partial wave
    shared_memory: int = 0  # bytes per block
    folded: bool = False  # the batch is computed as one GEMM
    by_torch: bool = False  # torch computes the epilogue
    other: Configured | None = None  # the kernel without TMA
    parts: tuple[PartsConfig, ...] = ()  # kernels that split f32 into three tf32 parts first
    launches: tuple[int, str] = (1, "")  # their number, and the reason for more than one
    split: tuple[int, int, str] = (1, 1, "")  # split-K slices: requested, actual, and the reason for fewer
    work: Work = NO_WORK  # of the epilogue, per element
    epilogue: float = 0.0  # part of ``microseconds``
    budgets: str = ""  # what a block uses besides shared memory
    bounds: tuple[Line, ...] = ()  # static bounds, for a chip without measured costs

    @property
    def last_wave(self) -> float:
        """Fraction of the last wave that is occupied."""
        return self.waves % 1 or 1.0

    def _title(self) -> str:
        p = self.problem
        batch = f"{p.matrices} matrices, " if p.matrices > 1 else ""
        title = (
            f"{self.operation} on {self.gpu}: {batch}M {p.m}, N {p.n}, K {p.k}, {p.element} to {p.output}, "
            f"majors {p.major_a} and {p.major_b}"
        )
        if self.folded:
            title += "\n  the batch is one GEMM: B is shared, and the matrices of A and of the result are stacked"
        return title

    def _before(self) -> Iterator[Line]:
        if self.parts:
            yield "before", "each operand is split from f32 into three tf32 parts"

    def _layout(self) -> Iterator[Line]:
        asked, parts, fewer = self.split
        if asked > 1:
            yield "split", f"K in {parts} slices" + f", {asked} were requested: {fewer}" * bool(fewer)
        if self.launches[0] > 1:
            yield "launches", f"{self.launches[0]}, one per matrix: {self.launches[1]}"

    def _occupancy(self) -> Iterator[Line]:
        if self.choice is None and self.grid:
            yield "blocks", f"{self.grid} of {self.shared_memory} bytes of shared memory{self.budgets}"
        if self.choice is not None:
            memory = f"{self.grid} of {self.shared_memory} bytes of shared memory"
            yield "blocks", f"{memory}; {self.waves:.2f} waves, the last one {self.last_wave:.0%} full"
        if self.work != NO_WORK:
            w = self.work
            others = w.read + w.written + w.scattered
            each = f"{w.instructions:g} instructions and {w.specials:g} special functions per element"
            moved = f", {others / 8:g} bytes of other matrices" if others else ""
            yield "epilogue", f"{self.epilogue:.1f} us of it: {each}{moved}"

    def _limits(self) -> str:
        return f"{self.flops / 1e9:.3g} GFLOP, {self.bytes / 1e6:.3g} MB (tensor cores, DRAM)"

    def _after(self) -> Iterable[Line]:
        return self.bounds

    def _reason(self, operand: str) -> str:
        return _COPIED[operand]

    def _finish(self) -> str:
        return "torch computes the epilogue" if self.by_torch else ""


_COPIED = {
    "a": "the kernel needs rows that are multiples of 16 bytes, and a or b contiguous along K",
    "b": "the kernel needs columns that are multiples of 16 bytes, and a or b contiguous along K",
    "out": "TMA stores rows that are multiples of 16 bytes",
}


def explain_plan(
    name: str, plan: Plan, gpu: str, sms: int, matrices: dict[str, Matrix], others: int, *,
    why: str = "", kernel: str = "",
) -> GemmExplanation:  # fmt: skip
    """Return the explanation of a plan.

    Args:
        why: the reason, if the kernel was not chosen.
        kernel: the name of a kernel that is not a candidate.
    """
    p, choice, costs = plan.problem, plan.choice, costs_of(gpu, sms)
    bits, out_bits = BITS[p.element], BITS[p.output]
    elements = {n: prod(m.shape) * (m.matrices if m.step else 1) for n, m in matrices.items()}
    flops = 2 * p.matrices * p.m * p.n * p.k
    moved = ((elements["a"] + elements["b"]) * bits + elements["out"] * out_bits) // 8
    peak = 128 if p.element in _NAMES else _PEAK[max(8, bits)]
    bound = max(flops / (2 * peak * costs.sms * costs.ghz * 1e3), moved / costs.dram / 1e6)
    copies = tuple([(n, elements[n] * m.item) for n, m in matrices.items() if n in plan.copied])
    if choice is None:
        if not why and p.element in _NAMES:
            why = "wgmma multiplies f32 as tf32 (math=)" if p.element == "f32" else "wgmma has no f64"
        elif not why:
            why = "TMA needs addresses and strides that are multiples of 16 bytes"
        return GemmExplanation(
            operation=name, gpu=gpu, kernel=kernel or _NAMES.get(p.element, ANY_ROWS) + _in_parts(plan.kernel), why=why,
            copies=copies, flops=flops, bytes=moved, bound=bound, kernels=(plan.kernel,),
            problem=p, choice=None, folded=plan.folded, by_torch=plan.by_torch, other=plan.kernel,
        )  # fmt: skip
    own = choice.config.epilogue
    work = work_of(own.transposed() if choice.swapped else own, p.output)
    plain = with_epilogue(choice, Epilogue())
    rest = [(t, c) for t, c in ranked(p, costs, others + 1, work) if c != plain][:others]
    grid, waves = _blocks(plain, p)
    whole = predict(plain, p, costs, work)
    return GemmExplanation(
        operation=name, gpu=gpu, kernel=choice.name, why=why or _why(p, gpu, plain), microseconds=whole,
        others=tuple(rest), copies=copies, flops=flops, bytes=moved, bound=bound, kernels=(*plan.splitters, choice),
        problem=p, choice=choice, grid=grid, waves=waves, shared_memory=(plain.skinny or plain.config).smem_bytes,
        folded=plan.folded, by_torch=plan.by_torch, parts=plan.splitters, work=work,
        epilogue=whole - predict(plain, p, costs),
    )  # fmt: skip


def on_chip(
    found: GemmExplanation, kernel: Configured, problem: Problem, work: Work, backend: Backend, why: str = ""
) -> GemmExplanation:
    """Return the explanation of a kernel for a chip without measured costs, with its static bounds.

    Args:
        found: the explanation.
        kernel: the kernel.
        problem: the problem that it computes; its slices along K are a batch.
        work: work of its epilogue.
        backend: kernels of the chip.
        why: the reason for the kernel, if it is not the operands.
    """
    status = f"a kernel for sm_{MMA_SYNC.chip} and later, never run on sm_{backend.chip}"
    found = replace(found, bound=0.0, status=status)
    if not isinstance(kernel, Sm100Config | Sm120Config):
        return found
    m, n = kernel.tile
    grid = -(-problem.m // m) * -(-problem.n // n) * problem.matrices
    if isinstance(kernel, Sm100Config):
        budgets = f", {kernel.columns} of {COLUMNS} columns of tensor memory, up to 255 registers"
        at_once = kernel.processors // kernel.blocks
        grid = -(-grid // -(-grid // at_once)) * kernel.blocks  # the fewest blocks that need no more waves
        found = replace(found, budgets=budgets, bounds=lines_of(kernel, problem, work))
    why = why or "TMA can read both operands"
    return replace(found, status=backend.status, why=why, grid=grid, shared_memory=kernel.shared_bytes)


def _in_parts(config: Configured) -> str:
    """Return the split-K slices of a kernel without TMA as text."""
    parts = config.parts if isinstance(config, WarpConfig | ExactConfig) else 1
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


# -------------------------------------------------------------------------------------------------------- grouped GEMMs


_CUT = {"m": "rows", "n": "columns", "k": "steps of K", "rows": "rows in use of matrices"}
NAME = "grouped_mm"


@dataclass(frozen=True, kw_only=True)
class GroupedExplanation(Explanation):
    """The kernel of a grouped GEMM, with its time for groups of average size; kernels without wgmma have no model."""

    shapes: Shapes
    problem: Problem  # GEMM of a group of average size
    config: GroupedConfig | GroupedSm100Config | ListedConfig  # the kernel

    @property
    def shared_memory(self) -> int:
        """Shared memory of a block in bytes; 0 for kernels without TMA."""
        config = self.config
        if isinstance(config, GroupedSm100Config):
            return config.shared_bytes
        return config.smem_bytes if isinstance(config, GroupedConfig) else 0

    def _title(self) -> str:
        s, p = self.shapes, self.problem
        return (
            f"{self.operation} on {self.gpu}: {s.groups} groups of {_CUT[s.form]}, M {s.m}, N {s.n}, K {s.k}, "
            f"{p.element} to {p.output}, majors {p.major_a} and {p.major_b}"
        )

    def _occupancy(self) -> Iterator[Line]:
        if isinstance(self.config, GroupedSm100Config):
            base = self.config.base
            columns = f"{base.columns} of {COLUMNS} columns of tensor memory"
            yield "blocks", f"up to {base.processors} of {self.shared_memory} bytes of shared memory, {columns}"
        elif isinstance(self.config, GroupedConfig):
            yield "blocks", f"up to {self.config.base.at_once} of {self.shared_memory} bytes of shared memory"
        else:
            m, n = self.config.tile
            yield "blocks", f"one for each tile of {m} x {n}; another kernel builds the table of groups first"

    def _name_of(self, candidate: GroupedConfig) -> str:
        return name_of(candidate)


def _explanation(
    s: Shapes, p: Problem, gpu: str, config: GroupedConfig | GroupedSm100Config | ListedConfig, microseconds: float,
    others: Sequence[tuple[float, GroupedConfig]], copies: Sequence[tuple[str, int]],
) -> GroupedExplanation:  # fmt: skip
    wgmma = isinstance(config, GroupedConfig)
    why = "predicted to be the fastest" if wgmma else f"{p.element} without wgmma,"
    if isinstance(config, GroupedSm100Config):
        why = "the tile with the lowest bound"
    return GroupedExplanation(
        operation=NAME, gpu=gpu, kernel=name_of(config), why=f"{why} for {p.matrices} groups of {p.m}x{p.n}x{p.k}",
        microseconds=microseconds, others=tuple(others), copies=tuple(copies), kernels=(config,), shapes=s,
        problem=p, config=config,
        flops=s.m * s.n * s.k * (s.groups if s.form == "rows" else 2),  # with lengths, of half of the rows
    )  # fmt: skip


def explain_grouped(
    a: Any, b: Any, out: Any, groups: Mapping[str, Any], dtype: object = None, math: str = "default",
    gpu: str | Sm100Groups = "", others: int = 4, element: str = "f16",
) -> GroupedExplanation:  # fmt: skip
    """Explain how a grouped GEMM is computed.

    Args:
        a, b, out: arrays, or shapes for contiguous arrays of type ``element``; ``out`` may be None.
        groups: offs, lengths or row_groups: arrays, lists, or their shapes as tuples.
        gpu: name of a GPU, or a request for kernels of sm_100.

    Raises the errors of the function.
    """
    views = {n: example_view(NAME, n, x, element) for n, x in (("a", a), ("b", b), ("out", out)) if x is not None}
    of_torch = is_of_torch(a)
    unknown = [n for n in groups if n not in GROUPS]
    if unknown:
        raise UnsupportedError(f"explain: {NAME} has no argument {unknown[0]!r}; use offs, lengths or row_groups")
    shapes = {n: _shape(x) for n, x in groups.items() if x is not None}
    out = views.get("out")
    a, b = views["a"], views["b"]
    s = shapes_of(NAME, a.shape, b.shape, shapes, None if out is None else out.shape)
    given = GroupedArguments(a, b, groups, extras=LinearCombination(math=math), dtype=dtype)
    p = problem_of(NAME, s, views, given, of_torch)
    majors = "k" if matrix(a).along(1) else "m", "n" if matrix(b).along(1) else "k"
    asked, gpu = (gpu, gpu.chip) if isinstance(gpu, Sm100Groups) else (None, gpu)
    if is_of_warps(p, asked, s.form):
        p = p._replace(major_a=majors[0], major_b=majors[1])
        gpu, sms = (gpu, 132) if gpu else here()
        base = ListedConfig(base_of(p, s.form, Epilogue(), None, sms))
        rows = not matrix(out).along(1) if out is not None else False
        copies = (("out", _elements(out) * BITS[p.output] // 8),) if out is not None and rows else ()
        config = base._replace(size=size_of(base, s, a, b, out))
        return _explanation(s, p, gpu, config, 0.0, (), copies)
    majors = majors_of(s.form, p.element, *majors)
    p = p._replace(major_a=majors[0], major_b=majors[1])
    copied = [
        (n, x) for n, x, along in (("a", a, majors[0] == "k"), ("b", b, majors[1] == "n")) if not readable(x, along)
    ]
    if out is not None and not is_storable(out):
        copied.append(("out", out))
    sizes = {n: BITS[p.output if n == "out" else p.element] // 8 for n in ("a", "b", "out")}
    copies = [(n, _elements(x) * sizes[n]) for n, x in copied]
    begins = "row_groups" in shapes
    if asked is not None:
        return _explanation(s, p, gpu, choose_sm100(p, s.form, begins, None, asked), 0.0, (), copies)
    gpu, sms = (gpu, 132) if gpu else here()
    (t, config), *rest = ranked_grouped(p, s.form, begins, None, gpu, sms, others + 1)
    return _explanation(s, p, gpu, config, t, rest, copies)


def _shape(x: Any) -> tuple[int, ...]:
    """Return the shape of an array or a list, or a tuple as it is."""
    if isinstance(x, tuple):
        return cast("tuple[int, ...]", x)
    return (len(cast("list[int]", x)),) if isinstance(x, list) else tuple(x.shape)


def _elements(x: ArrayView) -> int:
    found = 1
    for n in x.shape:
        found *= n
    return found
