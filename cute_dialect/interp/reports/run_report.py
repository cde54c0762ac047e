"""Report and progress of a launch."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from cute_dialect.interp.reports.flops import FlopCount
    from cute_dialect.interp.reports.profile import Profile
    from cute_dialect.interp.reports.timeline import Timeline
    from cute_dialect.interp.values import Array


class Progress(NamedTuple):
    """Progress of a launch: blocks that have finished, blocks in total, lane-ops and seconds so far."""

    done: int
    total: int
    lane_ops: int
    seconds: float


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

    def __str__(self) -> str:
        blocks = f"{self.blocks:,}" + (f" of {self.all_blocks:,}" if self.blocks < self.all_blocks else "")
        partial = ("race", "uninit") if self.unchecked else ()
        checks = ", ".join(c for c in self.checks if c not in partial)
        if partial:
            checks += f"; race and uninit in {self.blocks - self.unchecked:,} of {self.blocks:,} blocks"
        rows = [
            (
                "launches",
                f"{self.launches} on the interpreter, blocks: {blocks}, time: {self.seconds:.3f} s",
            ),
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
