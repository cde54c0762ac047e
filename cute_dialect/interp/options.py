"""Options for running a kernel on the CPU."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from cute_dialect.arch.targets import DEFAULT_CHIP, TARGETS
from cute_dialect.interp.errors import InterpError
from cute_dialect.interp.reports.run_report import Progress
from cute_dialect.runtime.call_options import CHECKS, REPORTS, SCHEDULES, read_checks

WIDTHS = ("auto", "warp")
DEFAULT_MEMORY_LIMIT = 4 << 30


@dataclass(frozen=True)
class RunOptions:
    """Options of `run_kernel`, validated on construction.

    - schedule: order of warps and of asynchronous copies. "round-robin" (default), "reverse", "random" (see `seed`) or
      "adversarial" (copies and wgmma complete as late as possible, and the order of warps changes)
    - seed: seed of the "random" schedule
    - overflow: "error" reports arithmetic that breaks its `nsw` or `nuw` flag, "wrap" lets it wrap
    - max_steps: number of ops of a warp (or of blocks in lockstep) between two checks that a loop still makes progress;
      default 10^6, see `interp.compiler.cfg`
    - memory_limit: limit for shared and local memory together, in bytes
    - blocks: the blocks to run, as linear numbers or as text such as "0,5,16:32" or "sample:16:seed". None runs all.
      Whole clusters run. `RunReport.written` then marks the bytes that were written; all others keep their old value
    - progress: called repeatedly with a `Progress`
    - checks: "race" detects data races. "uninit" reports uses of shared memory, registers or arrays
      (`Pointer.unwritten`) that nothing has written. "oob" and "sync" are always on
    - check_budget: work, in units of `Counter.work`, after which "race" and "uninit" stop (None: no limit).
      `RunReport.unchecked` is the number of blocks that ran without them
    - reports: "banks", "coalescing" and "occupancy" fill `RunReport.profile`; "timeline" fills `RunReport.timeline` and
      runs warp by warp; "flops" fills `RunReport.flops`
    - chip: the target chip. Its number of SMs and their limits determine how many blocks are resident at once
    - width: "warp" runs warp by warp. "auto" runs many whole blocks in lockstep where the result cannot differ

    Raises:
        InterpError: kind "argument", if an option has an unknown value.
    """

    schedule: str = "round-robin"
    seed: int = 0
    overflow: str = "error"
    max_steps: int | None = None
    memory_limit: int = DEFAULT_MEMORY_LIMIT
    blocks: Sequence[int] | str | None = None
    progress: Callable[[Progress], None] | None = None
    width: str = "auto"
    checks: Sequence[str] | str = ()
    check_budget: int | None = None
    reports: Sequence[str] = ()
    chip: str = DEFAULT_CHIP

    def __post_init__(self) -> None:
        if self.schedule not in SCHEDULES:
            known = ", ".join(f'"{s}"' for s in SCHEDULES)
            raise InterpError("argument", f"unknown schedule {self.schedule!r}; use one of {known}")
        if self.chip not in TARGETS:
            raise InterpError("argument", f"unknown chip {self.chip!r}; use one of {', '.join(TARGETS)}")
        if self.width not in WIDTHS:
            raise InterpError("argument", f'unknown width {self.width!r}; use "auto" or "warp"')
        if isinstance(self.checks, str):
            object.__setattr__(self, "checks", read_checks(self.checks).names)
        for name, known, given in (("check", CHECKS, self.checks), ("report", REPORTS, self.reports)):
            for one in given:
                if one not in known:
                    raise InterpError("argument", f"unknown {name} {one!r}; use one of {', '.join(known)}")
