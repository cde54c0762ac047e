"""Report and progress of a launch, and the count of floating-point operations.

**Floating-point operations, for ``reports=["flops"]``.** An addition, subtraction, multiplication or division counts 1
per lane, a fused multiply-add 2, each times the elements of a vector. An MMA of shape (M, N, K) counts 2·M·N·K, once
for the warp or warpgroup that executes it. Comparisons, conversions and functions such as ``exp`` count 0, as is usual.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Generator
from typing import TYPE_CHECKING, NamedTuple

from cute_dialect.interp.errors import op_name, op_text

if TYPE_CHECKING:  # pragma: no cover
    from xdsl.ir import Operation

    from cute_dialect.interp.compiler.function_compiler import GenStep, Step
    from cute_dialect.interp.machine.group import Group, Wait
    from cute_dialect.interp.reports.profile import Profile
    from cute_dialect.interp.reports.timeline import Timeline
    from cute_dialect.interp.values import Array, Regs


_ONE = re.compile(r"(arith|llvm)\.f?(add|sub|mul|div)f?")
_TWO = re.compile(r"(math|llvm\.intr|nvvm)\.(fma|fmuladd)(\.\w+)*")
_SHAPE = re.compile(r"m\s*=\s*(\d+)\D+n\s*=\s*(\d+)\D+k\s*=\s*(\d+)|\.m(\d+)n(\d+)k(\d+)")
_PTX_FMA = re.compile(r"\bfma\.rn[.\w]*?\.(f16x2|bf16x2|f32x2|f16|bf16|f32|f64)")
_WARP, _WARPGROUP = 32, 128


class FlopCount:
    """Counts of a launch per op: scalar operations, and operations of tensor cores."""

    def __init__(self) -> None:
        self.scalar: dict[Operation, float] = {}
        self.tensor: dict[Operation, float] = {}

    @property
    def total(self) -> float:
        return sum(self.scalar.values()) + sum(self.tensor.values())

    def step(self, step: Step, op: Operation) -> Step:
        """Wrap a step so that it also counts. Returns the step itself if its op is not counted."""
        found = self._table(op)
        if found is None:
            return step
        per_lane, table = found

        def counted(R: Regs, g: Group) -> None:
            table[op] += per_lane * g.mask.n
            step(R, g)

        return counted

    def blocking(self, gen: GenStep, op: Operation) -> GenStep:
        """Wrap a step that may wait so that it also counts."""
        found = self._table(op)
        if found is None:
            return gen
        per_lane, table = found

        def counted(R: Regs, g: Group) -> Generator[Wait, None, None]:
            table[op] += per_lane * g.mask.n
            yield from gen(R, g)

        return counted

    def _table(self, op: Operation) -> tuple[float, dict[Operation, float]] | None:
        """Return the count of an op per lane and the table it belongs to, None if it is not counted."""
        found = flops_of(op)
        if found is None:
            return None
        table = self.tensor if found[1] else self.scalar
        table.setdefault(op, 0.0)
        return found[0], table


def flops_of(op: Operation) -> tuple[float, bool] | None:
    """Return the operations of an op per lane, and whether tensor cores execute them. None if it has none."""
    name = op_name(op)
    if _ONE.fullmatch(name) and _is_float(op):
        return float(_elements(op)), False
    if _TWO.fullmatch(name):
        return 2.0 * _elements(op), False
    if not ("mma" in name or name == "llvm.inline_asm"):
        return None
    text = str(op) if name == "llvm.inline_asm" or "shape" in op.properties else op_text(op)
    if "mma" not in text:
        fmas = _PTX_FMA.findall(text)
        return (float(sum(4 if f.endswith("x2") else 2 for f in fmas)), False) if fmas else None
    found = [[int(n) for n in m.groups() if n is not None] for m in _SHAPE.finditer(text)]
    if not found or not re.search(r"mma[._]async|mma\.sync|mma\.sp", text):
        return None
    lanes = _WARPGROUP if "wgmma" in text else _WARP
    return sum(2.0 * m * n * k for m, n, k in found) / lanes, True


def _is_float(op: Operation) -> bool:
    return any(c in str(op.results[0].type) for c in ("f16", "f32", "f64", "bf16", "f8", "tf32"))


def _elements(op: Operation) -> int:
    shape = re.match(r"vector<(\d+(?:x\d+)*)x", str(op.results[0].type))
    count = 1
    for n in shape[1].split("x") if shape is not None else ():
        count *= int(n)
    return count


class Progress(NamedTuple):
    """Progress of a launch: blocks that have finished, blocks in total, lane-ops and seconds so far."""

    done: int
    total: int
    lane_ops: int
    seconds: float


class Writes(NamedTuple):
    """The last write to each byte of an array, recorded by the check "race"."""

    start: int  # address of the array's first byte in this process
    size: int  # bytes
    shift: int  # bytes of an entry of `sites` as a power of two
    sites: Array  # number of the op that wrote, -1 for none
    place: Callable[[int], str]  # location of an op


class RunReport:
    """The result of a call that ran on the interpreter. `print(report)` shows it as text, with the requested tables.

    - launches: number of kernel launches
    - checks: the checks that ran. Their findings raise `InterpError`, so a report never holds one
    - unchecked: number of blocks that ran without the checks "race" and "uninit", because the run is large
    - warnings: messages, each reported once per op
    - seconds: wall-clock time
    - blocks: number of blocks that ran, out of the `all_blocks` of the grid
    - ops: ops executed by groups of lanes; lane_ops: each op counted once per active lane
    - loads, stores: counted per lane; fences: number of fence ops executed
    - lanes: lanes per group, 32 or more if blocks ran in lockstep
    - printf: output of the kernel, one entry per call and thread
    - profile: bank conflicts, coalescing and occupancy, if requested; timeline: events per warp; flops: floating-point
      operations
    - written: only if some blocks were left out. Each writable array argument with a bool per byte: whether it was
      written
    - writes: the last write to each byte of the arrays, if the check "race" was on; see `line_of_write`
    - written_elements: the same by parameter name and element, for the written arguments of a compiled kernel
    """

    def __init__(self) -> None:
        self.ops = 0
        self.lane_ops = 0
        self.loads = 0
        self.stores = 0
        self.fences = 0
        self.seconds = 0.0
        self.blocks = 0
        self.all_blocks = 0
        self.launches = 1
        self.checks: tuple[str, ...] = ()
        self.unchecked = 0
        self.written: list[tuple[Array, Array]] = []
        self.written_elements: dict[str, Array] = {}
        self.lanes = 0
        self.warnings: list[str] = []
        self.printf: list[str] = []
        self.profile: Profile | None = None
        self.timeline: Timeline | None = None
        self.flops: FlopCount | None = None
        self.writes: list[Writes] = []

    def line_of_write(self, array: Array, index: tuple[int, ...]) -> str:
        """Return the source line of the last write to an element, "" if it is unknown or the check "race" was off."""
        at = array.__array_interface__["data"][0] + sum(i * s for i, s in zip(index, array.strides))
        for writes in reversed(self.writes):
            if writes.start <= at < writes.start + writes.size:
                site = int(writes.sites[(at - writes.start) >> writes.shift])
                if site >= 0:
                    return writes.place(site)
        return ""

    @property
    def lane_ops_per_second(self) -> float:
        """Lane-ops per second of wall-clock time."""
        return self.lane_ops / self.seconds if self.seconds else 0.0

    def add(self, later: RunReport) -> None:
        """Add the counts of a later launch. Profiles and written bytes stay those of this launch."""
        self.ops += later.ops
        self.lane_ops += later.lane_ops
        self.loads += later.loads
        self.stores += later.stores
        self.fences += later.fences
        self.seconds += later.seconds
        self.blocks += later.blocks
        self.all_blocks += later.all_blocks
        self.launches += later.launches
        self.unchecked += later.unchecked
        self.lanes = max(self.lanes, later.lanes)
        self.warnings += [w for w in later.warnings if w not in self.warnings]
        self.printf += later.printf
        self.writes += later.writes

    def __str__(self) -> str:
        blocks = f"{self.blocks:,}" + (f" of {self.all_blocks:,}" if self.blocks < self.all_blocks else "")
        partial = ("race", "uninit") if self.unchecked else ()
        checks = ", ".join(c for c in self.checks if c not in partial)
        if partial:
            checks += f"; race and uninit in {self.blocks - self.unchecked:,} of {self.blocks:,} blocks"
        rows = [
            ("launches", f"{self.launches} on the interpreter, blocks: {blocks}, time: {self.seconds:.3f} s"),
            ("checks", checks),
            ("warnings", str(len(self.warnings) or "none")),
            *[("warning", text) for text in self.warnings],
            ("work", f"{self.lane_ops:,} lane-ops, {self.loads:,} loads, {self.stores:,} stores, {self.fences} fences"),
        ]
        if self.flops is not None:
            rows.append(("flops", f"{self.flops.total:,.0f}"))
        if self.timeline is not None:
            rows.append(("timeline", f"{self.timeline.end:,} steps; cute.viz.draw(report) draws them"))
        if self.profile is not None and "occupancy" in self.profile.reports:
            rows.append(("occupancy", str(self.profile.occupancy)))
        text = "\n".join(f"{name:11}{value}" for name, value in rows)
        return text if self.profile is None or not self.profile.lines else f"{text}\n{self.profile.text()}"

    def __repr__(self) -> str:
        return (
            f"RunReport(blocks={self.blocks}, lanes={self.lanes}, ops={self.ops}, lane_ops={self.lane_ops}, "
            f"loads={self.loads}, stores={self.stores}, seconds={self.seconds:.3f}, warnings={len(self.warnings)})"
        )
