"""State shared by the groups of one launch, and the report of a launch."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from cute_dialect.interp.allocations import Allocations
from cute_dialect.interp.errors import InterpError
from cute_dialect.interp.group import Counter, Dim3
from cute_dialect.interp.memory import Buffer, GlobalMemory
from cute_dialect.interp.program import Program
from cute_dialect.interp.spurious import Spurious
from cute_dialect.interp.sync import Block
from cute_dialect.interp.transfers import Transfers
from cute_dialect.interp.values import Array

if TYPE_CHECKING:
    from cute_dialect.interp.flops import FlopCount
    from cute_dialect.interp.group import Observer
    from cute_dialect.interp.profile import Profile
    from cute_dialect.interp.race import Monitor
    from cute_dialect.interp.timeline import Recorder, Timeline

MAX_PRINTS = 100_000


class Progress(NamedTuple):
    """Progress of a launch: blocks that have finished, blocks in total, lane-ops and seconds so far."""

    done: int
    total: int
    lane_ops: int
    seconds: float


class RunReport:
    """The report of a launch.

    - ops: ops executed by groups of lanes; lane_ops: each op counted once per active lane
    - loads, stores: counted per lane; fences: number of fence ops executed
    - seconds: wall-clock time
    - blocks: number of blocks that ran, out of the `all_blocks` of the grid
    - lanes: lanes per group, 32 or more if blocks ran in lockstep
    - written: only if some blocks were left out. Each writable array argument with a bool per byte: whether it was
      written
    - written_elements: the same by parameter name and element, for the written arguments of a compiled kernel
    - profile: bank conflicts, coalescing and occupancy, if requested; timeline: events per warp; flops: floating-point
      operations
    - warnings: messages, each reported once per op; printf: output of the kernel, one entry per call and thread
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
        self.unchecked += later.unchecked
        self.lanes = max(self.lanes, later.lanes)
        self.warnings += [w for w in later.warnings if w not in self.warnings]
        self.printf += later.printf

    def __repr__(self) -> str:
        return (
            f"RunReport(blocks={self.blocks}, lanes={self.lanes}, ops={self.ops}, lane_ops={self.lane_ops}, "
            f"loads={self.loads}, stores={self.stores}, seconds={self.seconds:.3f}, warnings={len(self.warnings)})"
        )


class Launch:
    """State shared by all groups of one launch."""

    def __init__(self, program: Program, count: Counter, grid: Dim3, block: Dim3, is_kernel: bool) -> None:
        self.program = program
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
