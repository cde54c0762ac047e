"""Asynchronous TMA and bulk copies, and the time at which they complete.

A copy reads its source and writes its destination at some time after it was issued. The program learns of its
completion only through an mbarrier or a bulk group. The schedule determines the time: the next round ("round-robin",
"reverse"), random rounds in any order ("random"), or as late as possible in reverse order ("adversarial").
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import TYPE_CHECKING

from cute_dialect.interp.errors import Fault, OpInfo

if TYPE_CHECKING:
    from cute_dialect.interp.machine.group import Group


class Transfer:
    """A copy in flight. `read` reads the source; `write` writes the destination and signals. Each is called once."""

    __slots__ = ("block", "done", "group", "info", "lane", "nbytes", "read", "read_done", "write")

    def __init__(
        self, read: Callable[[], None], write: Callable[[], None], info: OpInfo, group: Group, lane: int, nbytes: int
    ) -> None:
        self.read = read
        self.write = write
        self.info = info
        self.group = group
        self.lane = lane
        self.nbytes = nbytes
        self.block = group.block_of(lane)
        self.read_done = False
        self.done = False

    def finish_read(self) -> None:
        """Read the source if it has not been read."""
        if not self.read_done:
            self.read_done = True
            self._do(self.read)

    def finish(self) -> None:
        """Read the source and write the destination, each at most once."""
        self.finish_read()
        if not self.done:
            self.done = True
            self._do(self.write)

    def _do(self, part: Callable[[], None]) -> None:
        try:
            part()
        except Fault as f:
            f.lane = self.lane
            raise self.group.fail(f, self.info) from None


class Transfers:
    """The copies in flight of a launch, and the policy for their completion."""

    def __init__(self, schedule: str, rng: random.Random) -> None:
        self.schedule = schedule
        self.rng = rng
        self.pending: list[Transfer] = []

    def eager(self) -> bool:
        """Return True if a wgmma that all warps have issued is computed at once, and not when it is waited for."""
        if self.schedule == "random":
            return self.rng.random() < 0.5
        return self.schedule != "adversarial"

    def add(self, t: Transfer) -> None:
        self.pending.append(t)

    def next_round(self, idle: bool) -> bool:
        """Complete copies between two rounds of the warps, and return True if any completed.

        `idle` is True if no warp could continue.
        """
        if not self.pending:
            return False
        if self.schedule == "adversarial":
            if not idle:
                return False
            t = self.pending.pop()
            t.finish()
            return True
        if self.schedule == "random" and not idle:
            now = [t for t in self.pending if self.rng.random() < 0.5]
            self.rng.shuffle(now)
            for t in now:
                if self.rng.random() < 0.5:
                    t.finish_read()
                else:
                    t.finish()
            self.pending = [t for t in self.pending if not t.done]
            return bool(now)
        now, self.pending = self.pending, []
        for t in now:
            t.finish()
        return True

    def flush(self, blocks: set[int]) -> None:
        """Complete the remaining copies of blocks that have ended."""
        left = [t for t in self.pending if t.block not in blocks]
        for t in self.pending:
            if t.block in blocks:
                t.finish()
        self.pending = left


class BulkGroups:
    """The bulk async-groups of a thread: open copies, committed groups in order, and the number waited for."""

    __slots__ = ("groups", "open", "read", "waited")

    def __init__(self) -> None:
        self.open: list[Transfer] = []
        self.groups: list[list[Transfer]] = []
        self.read = 0
        self.waited = 0

    def ready(self, keep: int, only_read: bool) -> bool:
        """Return True if all groups but the latest `keep` are complete, or with `only_read` have read their sources."""
        for group in self.groups[: max(0, len(self.groups) - keep)]:
            for t in group:
                if not (t.read_done if only_read else t.done):
                    return False
        return True


__all__ = ["BulkGroups", "Transfer", "Transfers"]
