"""The machine that the groups of one launch share: memory, resident blocks, barriers and clocks.

Compiled instructions reach it through their group. It does not know programs or schedulers.
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from cute_dialect.arch.targets import DEFAULT_TARGET, Target
from cute_dialect.interp.errors import InterpError
from cute_dialect.interp.machine.barriers import Block
from cute_dialect.interp.machine.spurious import Spurious
from cute_dialect.interp.machine.transfers import Transfers
from cute_dialect.interp.memory.allocations import Allocations
from cute_dialect.interp.memory.buffers import Buffer, GlobalMemory
from cute_dialect.interp.reports.run_report import RunReport
from cute_dialect.interp.values import Array

if TYPE_CHECKING:
    from cute_dialect.interp.machine.group import Observer
    from cute_dialect.interp.memory.provenance import Segment
    from cute_dialect.interp.race.monitor import Monitor
    from cute_dialect.interp.reports.timeline import Recorder

Dim3: TypeAlias = tuple[int, int, int]
MAX_PRINTS = 100_000


class Counter:
    """Counters of the work done in a launch.

    `steps` counts ops executed by groups; the current group has executed `steps - base` of them. After `most` steps of
    a group, its loops are checked for progress (see `nontermination`). `advances` counts how often a warp has made
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
