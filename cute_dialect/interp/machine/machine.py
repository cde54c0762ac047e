"""The machine that the groups of one launch share: memory, resident blocks, barriers, copies and clocks.

Compiled instructions reach it through their group. It does not know programs or schedulers.

**Spurious failures.** `mbarrier.try_wait` waits for a limited time, and a weak compare-and-swap may fail although the
values are equal. `elect.sync` may elect any thread of its mask. Sources: PTX ISA 9.0, "mbarrier.try_wait",
"elect.sync"; LLVM LangRef, "cmpxchg". A kernel must be correct in every case:

| schedule | try_wait, weak compare-and-swap | elect.sync |
|---|---|---|
| `round-robin`, `reverse` | succeed; try_wait waits as long as needed | the first thread of the mask |
| `random` | fail half the time | one thread of the mask, chosen by the seed |
| `adversarial` | fail each time | the last thread of the mask |

In each warp an instruction fails at most `MAX_FAILURES` times in a row, so a loop around it ends. A try_wait whose
result is not read never waits, under any schedule.

**TMA and bulk copies.** A copy reads its source and writes its destination at some time after it was issued. The
program learns of its completion only through an mbarrier or a bulk group. The schedule determines the time: the next
round ("round-robin", "reverse"), random rounds in any order ("random"), or as late as possible in reverse order
("adversarial").
"""

# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false, reportUnknownMemberType=false

from __future__ import annotations

import random
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from cute_dialect.arch.targets import DEFAULT_TARGET, Target
from cute_dialect.interp.errors import Fault, InterpError, OpInfo
from cute_dialect.interp.machine.barriers import Block
from cute_dialect.interp.memory.allocations import Allocations
from cute_dialect.interp.memory.buffers import Buffer, GlobalMemory
from cute_dialect.interp.reports.run_report import RunReport
from cute_dialect.interp.values import Array

if TYPE_CHECKING:  # pragma: no cover
    from cute_dialect.interp.machine.group import Group, Observer
    from cute_dialect.interp.memory.allocations import Segment
    from cute_dialect.interp.race.monitor import Monitor
    from cute_dialect.interp.reports.timeline import Recorder
    from cute_dialect.interp.values import Array


MAX_FAILURES = 3


class Spurious:
    """Spurious failures and choices of one launch."""

    __slots__ = ("_rng", "_schedule", "_seed")

    def __init__(self, schedule: str = "round-robin", seed: int = 0) -> None:
        self._schedule = schedule
        self._seed = seed
        # separate from the scheduler's generator, whose sequence must not depend on this one
        self._rng = random.Random(seed)

    def fails(self, g: Group, op: int) -> bool:
        """Return True if the instruction `op` (any number that identifies it) fails this time in a warp."""
        if self._schedule not in ("random", "adversarial"):
            return False
        failed = g.failures.get(op, 0)
        if failed >= MAX_FAILURES or (self._schedule == "random" and self._rng.random() < 0.5):
            g.failures[op] = 0
            return False
        g.failures[op] = failed + 1
        return True

    def elect(self, members: Array) -> Array:
        """Return the number of the elected lane for each row of `members`, which holds a bool for each lane.

        The same mask elects the same lane each time.
        """
        if self._schedule == "adversarial":
            return members.shape[-1] - 1 - members[..., ::-1].argmax(axis=-1)
        if self._schedule == "random":
            rank = self._seed % np.maximum(members.sum(axis=-1), 1)
            return (members.cumsum(axis=-1) == rank[..., None] + 1).argmax(axis=-1)
        return members.argmax(axis=-1)


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


Dim3: TypeAlias = tuple[int, int, int]
MAX_PRINTS = 100_000


class Counter:
    """Counters of the work done in a launch.

    `steps` counts ops executed by groups; the current group has executed `steps - base` of them. After `most` steps of
    a group, its loops are checked for progress (see `compiler.cfg`). `advances` counts how often a warp has made
    progress beyond a poll.
    """

    __slots__ = ("advances", "base", "lane_ops", "loads", "most", "progress", "steps", "stores")

    def __init__(self, most: int) -> None:
        self.steps = 0
        self.lane_ops = 0
        self.loads = 0
        self.stores = 0
        self.most = most
        self.base = 0
        self.progress = 0
        self.advances = 0

    @property
    def work(self) -> int:
        """The work so far, in lane ops. The fixed cost of an op equals about 2000 lane ops."""
        return 2000 * self.steps + self.lane_ops


class Machine:
    """The memory, resident blocks, barriers and clocks of one launch, shared by all of its groups.

    - memory: global memory; shared: buffer and start offset of the shared memory of each resident block
    - blocks: the resident blocks with their barriers; transfers: the copies in flight
    - segments: the symbols in shared memory; symbols: address of each global
    - wide: groups run in lockstep; tracks: unwritten registers and local memory are tracked
    - monitor: the race check, which keeps the clocks of threads and copies; None if it is off
    """

    def __init__(
        self, count: Counter, grid: Dim3, block: Dim3, is_kernel: bool, target: Target = DEFAULT_TARGET
    ) -> None:
        self.target = target
        self.memory = GlobalMemory()
        self.count = count
        self.grid = grid
        self.block = block
        self.cluster: Dim3 = (1, 1, 1)
        self.threads = block[0] * block[1] * block[2]
        self.is_kernel = is_kernel
        self.wide = True
        self.smem_size = 0
        self.dynamic_smem = 0
        self.shared_names = Allocations()
        self.local_size = 0
        self.local_names = Allocations()
        self.local_valid: Array = np.zeros(0, np.bool_)
        self.blocks: dict[int, Block] = {}
        self.shared: dict[int, tuple[Buffer, int]] = {}
        self.segments: dict[str, Segment] = {}
        self.symbols: dict[str, int] = {}
        self.report = RunReport()
        self.fences = 0
        self.poison_stores = 0
        self.transfers = Transfers("round-robin", random.Random(0))
        self.spurious = Spurious()
        self.monitor: Monitor | None = None
        self.observe: Observer | None = None
        self.timeline: Recorder | None = None
        self.strict_uninit = False
        self.tracks = False
        self._warned: set[tuple[str, int]] = set()

    def warn(self, key: tuple[str, int], text: str) -> None:
        """Add a warning, once per key."""
        if key not in self._warned and len(self._warned) < 1000:
            self._warned.add(key)
            self.report.warnings.append(text)

    def print(self, text: str) -> None:
        """Append to the output of the kernel, up to `MAX_PRINTS` entries."""
        if len(self.report.printf) < MAX_PRINTS:
            self.report.printf.append(text)

    def symbol_address(self, name: str) -> int:
        """Return the address of a global. Raises InterpError if the global is unknown."""
        got = self.symbols.get(name)
        if got is None:
            raise InterpError("unsupported", f"there is no global @{name}")
        return got
