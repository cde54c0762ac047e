"""Explanation of GEMMs: the kernel that was selected, and its cost."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import prod

from cute_dialect.kernels.epilogue.combination import Epilogue
from cute_dialect.kernels.gemm.config import BITS
from cute_dialect.kernels.gemm.split_tf32 import PartsConfig
from cute_dialect.op.arrays.operand_views import Matrix
from cute_dialect.op.explanation import Explanation, Line
from cute_dialect.op.select import gemm_dispatch
from cute_dialect.op.select import kernel_choice as tables
from cute_dialect.op.select.candidates import blocks
from cute_dialect.op.select.cost_model import costs_of, predict, ranked
from cute_dialect.op.select.epilogue_work import NO_WORK, Work, work_of
from cute_dialect.op.select.gemm_dispatch import AnyConfig, with_epilogue
from cute_dialect.op.select.kernel_choice import Choice, Problem

__all__ = ["GemmExplanation", "explained_way"]

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

    def _reason(self, operand: str) -> str:
        return _COPIED[operand]

    def _finish(self) -> str:
        return "torch computes the epilogue" if self.by_torch else ""


_COPIED = {
    "a": "the kernel needs rows that are multiples of 16 bytes, and a or b contiguous along K",
    "b": "the kernel needs columns that are multiples of 16 bytes, and a or b contiguous along K",
    "out": "TMA stores rows that are multiples of 16 bytes",
}


def explained_way(
    name: str, way: gemm_dispatch.GemmDispatch, gpu: str, sms: int, matrices: dict[str, Matrix], others: int, *,
    why: str = "", kernel: str = "",
) -> GemmExplanation:  # fmt: skip
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
        return GemmExplanation(
            operation=name, gpu=gpu, kernel=kernel or _NAMES.get(p.element, ANY_ROWS) + _in_parts(way.other), why=why,
            copies=copies, flops=flops, bytes=moved, bound=bound, kernels=() if way.other is None else (way.other,),
            problem=p, choice=None, folded=way.folded, by_torch=way.by_torch, other=way.other,
        )  # fmt: skip
    own = way.choice.config.epilogue
    work = work_of(own.transposed() if way.choice.swapped else own, p.output)
    plain = with_epilogue(way.choice, Epilogue())
    rest = [(t, c) for t, c in ranked(p, costs, others + 1, work) if c != plain][:others]
    grid, waves = _blocks(plain, p)
    whole = predict(plain, p, costs, work)
    return GemmExplanation(
        operation=name, gpu=gpu, kernel=way.choice.name, why=why or _why(p, gpu, plain), microseconds=whole,
        others=tuple(rest), copies=copies, flops=flops, bytes=moved, bound=bound, kernels=(*way.parts, way.choice),
        problem=p, choice=way.choice, grid=grid, waves=waves, shared_memory=(plain.skinny or plain.config).smem_bytes,
        folded=way.folded, by_torch=way.by_torch, parts=way.parts, work=work,
        epilogue=whole - predict(plain, p, costs),
    )  # fmt: skip


def _in_parts(config: AnyConfig | None) -> str:
    """Return the split-K slices of a kernel without TMA as text."""
    from cute_dialect.kernels.gemm.ampere import AmpereConfig  # late: start-up

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
