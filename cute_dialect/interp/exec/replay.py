"""Schedule "replay": a given order of steps of warps and of landings of copies, see `runtime.turns`.

A warp stops before each instruction that other warps can observe, such as an arrival, a wait or the issue of a copy
(`compiler.switches`). A turn of a warp executes one of them, and what follows up to the next. Bulk stores complete when
they are issued, and the copies that signal an mbarrier land when the schedule says so. After the last turn the run
continues round-robin.
"""

from __future__ import annotations

from collections.abc import Sequence

from cute_dialect.interp.errors import InterpError
from cute_dialect.interp.machine.group import Transfers, Wait
from cute_dialect.runtime.turns import PREFIX, parse_turns

MISFIT = "schedule"
"""Error kind of a schedule that does not fit the run."""


class Replay:
    """The turns of one launch that are left."""

    def __init__(self, schedule: str) -> None:
        self.turns = parse_turns(schedule)[::-1] if schedule.startswith(PREFIX) else []
        self.taken = 0

    def next_warp(self, count: int, transfers: Transfers) -> int | None:
        """Return the number of the warp that takes the next turn of `count` ones, None after landing a copy."""
        number, is_copy = self.turns.pop()
        self.taken += 1
        if not is_copy:
            if number >= count:
                raise self._mismatch(f"warp {number}, but the first cluster has {count} warps")
            return number
        if number >= len(transfers.pending):
            flying = f"{len(transfers.pending)} copies" if len(transfers.pending) != 1 else "1 copy"
            raise self._mismatch(f"the landing of copy {number}, but {flying} are in flight")
        transfers.pending.pop(number).finish()
        return None

    def check(self, number: int, waits: Sequence[Wait | None]) -> None:
        """Check that a warp can take its turn: `waits` has what it waits for, and is empty if it has ended."""
        if not waits:
            raise self._mismatch(f"warp {number}, which has ended")
        wait = waits[0]
        if wait is not None and not wait.ready():
            at = f" at {wait.info.location}" if wait.info.location else ""
            raise self._mismatch(f"warp {number}, which {wait.text}{at}")

    def _mismatch(self, what: str) -> InterpError:
        return InterpError(
            MISFIT,
            f"the schedule does not fit this run: turn {self.taken} is of {what}; a schedule belongs to one kernel "
            "and one problem, so pass the arguments that it was printed with",
        )
