"""Options of a run of a kernel on the CPU."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from cute_dialect.interp.errors import InterpError
from cute_dialect.interp.state import Progress
from cute_dialect.runtime.call_options import CHECKS, REPORTS, SCHEDULES

WIDTHS = ("auto", "warp")
DEFAULT_MEMORY_LIMIT = 4 << 30


@dataclass(frozen=True)
class RunOptions:
    """Options of `run_kernel`, checked when they are made.

    - schedule: order of warps and of asynchronous copies: "round-robin", "reverse", "random" (by `seed`) or
      "adversarial" (copies and wgmma complete as late as possible, warps run in changing order)
    - overflow: "error" reports arithmetic that breaks its `nsw`/`nuw` promise, "wrap" lets it wrap
    - max_steps: after how many ops of a warp, or of blocks in lockstep, a loop is asked whether it comes closer to its
      end (default 10^6, see `endless`); memory_limit: bytes for shared and local memory
    - blocks: which blocks run (None: all): linear numbers, or a text like "0,5,16:32" or "sample:16:seed"; clusters
      are taken whole. What the others would write stays as it is; `RunReport.written` then says what was written
    - progress: called now and then with a `Progress`
    - checks: "race" looks for races, "uninit" makes a use of shared memory, registers or arrays (`Pointer.unwritten`)
      that nothing has written an error; "oob" and "sync" are always on
    - reports: "banks", "coalescing", "occupancy": see `RunReport.profile`; "timeline": `RunReport.timeline`, which runs
      warp by warp; "flops": `RunReport.flops`
    - width: "warp" runs warp by warp; "auto" runs whole blocks, many at once, where that cannot be told apart

    Raises InterpError ("argument").
    """

    schedule: str = "round-robin"
    seed: int = 0
    overflow: str = "error"
    max_steps: int | None = None
    memory_limit: int = DEFAULT_MEMORY_LIMIT
    blocks: Sequence[int] | str | None = None
    progress: Callable[[Progress], None] | None = None
    width: str = "auto"
    checks: Sequence[str] = ()
    reports: Sequence[str] = ()

    def __post_init__(self) -> None:
        if self.schedule not in SCHEDULES:
            known = ", ".join(f'"{s}"' for s in SCHEDULES)
            raise InterpError("argument", f"expected a schedule of {known}; got {self.schedule!r}")
        if self.width not in WIDTHS:
            raise InterpError("argument", f'expected width "auto" or "warp", got {self.width!r}')
        for name, known, given in (("check", CHECKS, self.checks), ("report", REPORTS, self.reports)):
            for one in given:
                if one not in known:
                    raise InterpError("argument", f"expected a {name} of {', '.join(known)}; got {one!r}")
