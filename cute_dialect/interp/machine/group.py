"""A group of lanes that executes together, and the machine that the groups of a launch share.

Memory, resident blocks, barriers and clocks belong to the machine. Compiled instructions reach it through their group.
It does not know programs or schedulers.

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
from math import prod
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from cute_dialect.arch.targets import DEFAULT_TARGET, Target
from cute_dialect.interp.errors import Fault, InterpError, OpInfo
from cute_dialect.interp.machine.barriers import Block, ClusterPool
from cute_dialect.interp.memory.accesses import Site
from cute_dialect.interp.memory.allocations import Allocations
from cute_dialect.interp.memory.buffers import WRITTEN, Buffer, GlobalMemory, place
from cute_dialect.interp.reports.run_report import RunReport
from cute_dialect.interp.types import round_up
from cute_dialect.interp.values import Array, Mask, Value

if TYPE_CHECKING:  # pragma: no cover
    from collections.abc import Callable

    from cute_dialect.interp.memory.accesses import Part
    from cute_dialect.interp.memory.allocations import Segment
    from cute_dialect.interp.race.clocks import PrecedingGrids, WarpClocks
    from cute_dialect.interp.race.monitor import Monitor
    from cute_dialect.interp.race.tensor_order import TensorEvent
    from cute_dialect.interp.reports.timeline import Recorder
    from cute_dialect.interp.values import Array


# -------------------------------------------------------------------------------------------------------------- machine


MAX_FAILURES = 3

_CLOCKS = ("clock", "clock64", "globaltimer")
"""Special registers that count ops, and change from read to read."""


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
    """A copy in flight. `read` reads the source; `write` writes the destination and signals. Each is called once.

    `product` describes an MMA of the tensor pipe, empty for copies.
    """

    __slots__ = ("block", "done", "group", "info", "lane", "nbytes", "product", "read", "read_done", "write")

    def __init__(
        self, read: Callable[[], None], write: Callable[[], None], info: OpInfo, group: Group, lane: int, nbytes: int
    ) -> None:
        self.read = read
        self.write = write
        self.info = info
        self.group = group
        self.lane = lane
        self.nbytes = nbytes
        self.block = group.machine.first + group.block_of(lane)
        self.read_done = False
        self.done = False
        self.product = ""

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
        self.is_replayed = False  # A replayed schedule lands the copies that signal an mbarrier, one by one.
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
        """Complete the remaining copies of blocks that have ended, given by their keys."""
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

    __slots__ = ("advances", "base", "lane_ops", "most", "progress", "steps")

    def __init__(self, most: int) -> None:
        self.steps = 0
        self.lane_ops = 0
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
    - tensor_columns: columns of tensor memory that a block allocates, as far as they are constants
    - registers: registers per thread, 0 if ptxas has not compiled the kernel
    - resident: number of blocks that are resident at once, None for the limits of the target
    - strict_tensor_order: order of tcgen05 operations is checked by the text of the PTX ISA, see `race.tensor_order`
    - rank, ranks: number of this GPU among those of the run. `first`: number of blocks of earlier launches
    - ordered_before: the tables of clusters, by number, that precede the launch, as earlier launches of its stream do
    - preceding: the grids that may still run when a dependent launch starts, None for other launches
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
        self.preferred_cluster: Dim3 | None = None
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
        self.pool = ClusterPool([], "round-robin", random.Random(0))
        self.monitor: Monitor | None = None
        self.observe: Observer | None = None
        self.timeline: Recorder | None = None
        self.strict_uninit = False
        self.strict_tensor_order = False
        self.tensor_columns = 0
        self.registers = 0
        self.rank, self.ranks, self.first = 0, 1, 0
        self.ordered_before: dict[int, Array] = {}
        self.preceding: PrecedingGrids | None = None
        self.resident: int | None = None
        self.tracks = False
        self._warned: set[tuple[str, int]] = set()

    @property
    def of_rank(self) -> str:
        """Return ` of rank 1` for messages, empty if there is one rank."""
        return f" of rank {self.rank}" if self.ranks > 1 else ""

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


# --------------------------------------------------------------------------------------------------------------- groups


Observer: TypeAlias = "Callable[[Group, Site, list[Part], Value | None], None]"
WARP = DEFAULT_TARGET.warp


class Wait:
    """The reason why a group is blocked.

    `ready()` is True when it may continue; `spin` marks a poll, which is always ready.
    """

    __slots__ = ("_text", "info", "ready", "spin")

    def __init__(
        self, ready: Callable[[], bool], info: OpInfo, text: str | Callable[[], str], spin: bool = False
    ) -> None:
        self.ready = ready
        self.info = info
        self._text = text
        self.spin = spin

    @property
    def text(self) -> str:
        """Description of the wait, in its current state."""
        return self._text if isinstance(self._text, str) else self._text()


class TensorAccess:
    """A tcgen05.ld or st of a warp in flight. `run` performs it, at any time until the warp has waited for it.

    - waited: True if the warp has waited for it
    - event: its entry in the race check, None without
    """

    __slots__ = ("done", "event", "run", "values", "waited", "where")

    def __init__(self, where: OpInfo, run: Callable[[], list[Value]], event: TensorEvent | None) -> None:
        self.where = where
        self.run = run
        self.event = event
        self.values: list[Value] = []
        self.done = self.waited = False

    def finish(self) -> None:
        """Perform the access if it has not been performed."""
        if not self.done:
            self.done = True
            self.values = self.run()

    def register(self, index: int) -> Value:
        """Return result `index` of a load. Raises Fault until the warp has waited for it."""
        if not self.waited:
            raise Fault(
                "tcgen05",
                "a register of tcgen05.ld is used before the load is complete: missing tcgen05.wait::ld",
                notes=(f"loaded at {self.where.location or self.where.text}",),
            )
        return self.values[index]


class AsyncCopy:
    """A cp.async in flight: its lanes, their commit groups, and the function that performs the copy."""

    __slots__ = ("apply", "lanes", "seq")

    def __init__(self, lanes: Array, seq: Array, apply: Callable[[Array], None]) -> None:
        self.lanes = lanes
        self.seq = seq
        self.apply = apply


class Group:
    """A set of lanes: one warp, one block or several blocks, in block-major order.

    - lane_block: linear block index of each lane, an int if all lanes are in one block
    - lane_tid: linear thread index in the block of each lane. Lanes past the end of the block are dead from the start
    - smem, smem_offset, smem_lane: shared memory; `smem_lane` holds the start for each lane if there are several blocks
    """

    def __init__(
        self, machine: Machine, lane_block: int | Array, lane_tid: Array, smem: Buffer, smem_lane: Array | None
    ) -> None:
        self.machine = machine
        self.memory: GlobalMemory = machine.memory
        self.count: Counter = machine.count
        self.lanes = len(lane_tid)
        self.lane_block = lane_block
        self.lane_tid = lane_tid
        self.smem = smem
        self.smem_size = machine.smem_size
        self.smem_offset = 0
        self.smem_lane = smem_lane
        self.local_size = machine.local_size
        self.local_valid = machine.local_valid
        self.local = Buffer(0, np.full(self.lanes * self.local_size, 0xFF, np.uint8), "local memory")
        if machine.tracks:
            self.local.watch()
        self.local_lane = np.arange(self.lanes, dtype=np.int64) * self.local_size
        self.frame = 0
        self.depth = 0
        threads = machine.threads
        live = lane_tid < threads
        self.dead: Array = ~live
        self.killed = False
        self.mask = Mask.of(live)
        self.loads = 0
        self.stores = 0
        self.advances = 0
        self.sregs: dict[str, Value] = {}
        self.clocks: WarpClocks
        self.observe: Observer | None = machine.observe
        self.copies: list[AsyncCopy] = []
        self.copy_seq = np.zeros(self.lanes, np.int64)
        self.copy_arrivals: dict[int, Array] = {}
        self.bulk: dict[int, BulkGroups] = {}
        self.tensor_loads: list[TensorAccess] = []  # tcgen05.ld and st that the warp has not waited for
        self.tensor_stores: list[TensorAccess] = []
        self.tensor_moves: list[Callable[[], None]] = []  # ops that move registers of these loads, in order
        self.stack: list[OpInfo] = []
        self.wait: Wait | None = None
        self.cluster_wait: int | None = None
        self.failures: dict[int, int] = {}  # consecutive spurious failures per instruction

    # -- position ---------------------------------------------------------------------------------------------------

    def block_of(self, lane: int) -> int:
        """Return the linear number of a lane's block."""
        return self.lane_block if isinstance(self.lane_block, int) else int(self.lane_block[lane])

    def thread_coord(self, lane: int) -> Dim3:
        """Return `threadIdx` of a lane."""
        x, y, _ = self.machine.block
        t = int(self.lane_tid[lane])
        return (t % x, t // x % y, t // (x * y))

    def block_coord(self, lane: int) -> Dim3:
        """Return `blockIdx` of a lane."""
        x, y, _ = self.machine.grid
        b = self.block_of(lane)
        return (b % x, b // x % y, b // (x * y))

    @property
    def in_cluster(self) -> bool:
        """Return True if the launch has clusters."""
        return self.machine.cluster != (1, 1, 1) or self.machine.preferred_cluster is not None

    @property
    def cluster(self) -> Dim3:
        """The blocks per cluster along x, y and z, of the group's own cluster if there are two sizes."""
        machine, larger = self.machine, self.machine.preferred_cluster
        if larger is None or len(machine.blocks[self.block_of(0)].cluster.blocks) != prod(larger):
            return machine.cluster
        return larger

    def sreg(self, name: str) -> Value:
        """Return a special register by its PTX name, such as `tid.x`; a uniform value is an int."""
        if name in _CLOCKS:
            return self.count.steps & 0x7FFFFFFF
        got = self.sregs.get(name)
        if got is None:
            got = self.sregs[name] = self._sreg(name)
        return got

    def _sreg(self, name: str) -> Value:
        grid, block, cluster = self.machine.grid, self.machine.block, self.cluster
        base, _, dim = name.rpartition(".")
        axis = "xyz".find(dim)
        if name in ("laneid", "warpid", "warpsize"):
            return (
                32 if name == "warpsize" else _compact(self.lane_tid % 32 if name == "laneid" else self.lane_tid // 32)
            )
        if name == "dynamic.smem.size":
            return self.machine.dynamic_smem
        if name == "nwarpid":
            return (self.machine.threads + 31) // 32
        if name in ("cluster.ctarank", "cluster.nctarank"):
            if name.endswith("nctarank"):
                return cluster[0] * cluster[1] * cluster[2]
            rank = self._cluster_id(self._block_ids(), 0)
            for a in (1, 2):
                scale = cluster[0] if a == 1 else cluster[0] * cluster[1]
                rank = rank + self._cluster_id(self._block_ids(), a) * scale  # type: ignore[operator]
            return _compact(rank)
        if axis >= 0:
            if base == "tid":
                x, y, _ = block
                t = self.lane_tid
                return _compact((t % x, t // x % y, t // (x * y))[axis])
            if base == "ntid":
                return block[axis]
            if base == "nctaid":
                return grid[axis]
            if base == "ctaid":
                return _compact(self._block_ids()[axis])
            if base == "cluster.nctaid":
                return cluster[axis]
            if base == "nclusterid":
                return grid[axis] // cluster[axis]
            if base == "clusterid":
                return _compact(self._block_ids()[axis] // cluster[axis])
            if base == "cluster.ctaid":
                return _compact(self._cluster_id(self._block_ids(), axis))
        if name == "smid":
            return 0
        if name.startswith("lanemask."):
            lane = self.lane_tid % 32
            one = np.int64(1) << lane
            bits = {"eq": one, "lt": one - 1, "le": (one << 1) - 1, "ge": -one, "gt": -(one << 1)}[name[9:]]
            return (bits & 0xFFFFFFFF).astype(np.uint32).view(np.int32)
        raise Fault("unsupported", f"special register %{name} is not supported")

    def _block_ids(self) -> tuple[int | Array, int | Array, int | Array]:
        x, y, _ = self.machine.grid
        b = self.lane_block
        return (b % x, b // x % y, b // (x * y))

    def _cluster_id(self, ids: tuple[int | Array, int | Array, int | Array], axis: int) -> int | Array:
        return ids[axis] % self.cluster[axis]

    def cluster_peer(self, lane: int, rank: int) -> int:
        """Return the linear index of the block with the given rank in the cluster of the lane's block."""
        c, grid = self.cluster, self.machine.grid
        if not 0 <= rank < c[0] * c[1] * c[2]:
            raise Fault(
                "oob", f"cluster rank {rank} is out of range; the cluster has {c[0] * c[1] * c[2]} blocks", lane
            )
        at = self.block_coord(lane)
        r = (rank % c[0], rank // c[0] % c[1], rank // (c[0] * c[1]))
        x, y, z = (at[i] // c[i] * c[i] + r[i] for i in range(3))
        return x + grid[0] * (y + grid[1] * z)

    def shared_of(self, block: int, lane: int, address: int) -> tuple[Buffer, int] | None:
        """Return the buffer and start offset of the shared memory of a block, None if it is not resident.

        Raises Fault if the block has ended.
        """
        resident = self.machine.blocks.get(block)
        if resident is not None:
            resident.check_runs(lane, address)
        return self.machine.shared.get(block)

    # -- masks ------------------------------------------------------------------------------------------------------

    def restore(self, mask: Mask) -> None:
        """Restore an outer mask, without the lanes that have exited meanwhile."""
        self.mask = mask.minus(self.dead) if self.killed else mask

    def kill(self) -> None:
        """End the active lanes, which have exited."""
        self.dead = self.dead | self.mask.array
        self.killed = True
        self.mask = Mask(self.lanes, np.zeros(self.lanes, np.bool_), 0)

    # -- diagnostics ------------------------------------------------------------------------------------------------

    def fail(self, fault: Fault, info: OpInfo) -> InterpError:
        """Return the InterpError for a fault of the current op."""
        lane = fault.lane
        if lane < 0 and self.mask.n:
            lane = int(self.mask.idx[0])
        known = lane >= 0 and self.machine.is_kernel
        return InterpError(
            fault.kind,
            fault.message,
            op=info.name,
            op_text=info.text,
            frames=info.frames,
            thread=self.thread_coord(lane) if known else None,
            block=self.block_coord(lane) if known else None,
            rank=self.machine.rank if self.machine.ranks > 1 else None,
            address=fault.address,
            notes=(*fault.notes, *(f"called from {i.location or i.text}" for i in reversed(self.stack))),
        )

    def advance(self) -> None:
        """Record progress of the group, which other warps may be waiting for."""
        self.advances += 1
        self.count.advances += 1

    def out_of_steps(self, info: OpInfo, times: int, *why: str) -> InterpError:
        """Return the error for a loop that has executed `times * max_steps` ops without progress."""
        who = "threads in lockstep" if self.machine.wide else "a warp"
        text = f"step limit of {times * self.count.most} ops of {who} reached: the loop may not terminate"
        return self.fail(
            Fault("limit", text, notes=(*why, "raise max_steps (cute-run --max-steps) if the loop does terminate")),
            info,
        )

    # -- cp.async ---------------------------------------------------------------------------------------------------

    def copies_arrive(self) -> None:
        """Record a cp.async.mbarrier.arrive of the active lanes, which does not cover their later copies."""
        for seq in np.unique(self.copy_seq[self.mask.idx]).tolist():
            arrived = self.copy_arrivals.setdefault(seq, np.zeros(self.lanes, np.int64))
            arrived[self.mask.idx] += self.copy_seq[self.mask.idx] == seq

    def copy_times(self, lanes: Array, groups: Array) -> Array:
        """Return the logical time at which the first `groups` commit groups of each lane end.

        Time counts the commits and arrivals of a lane. With all groups and the open one counted, it is the time of
        copies issued now.
        """
        times = groups.copy()
        for seq, arrived in self.copy_arrivals.items():
            times += np.where(seq < groups, arrived[lanes], 0)
        return times

    def warn_uninit(self, key: int, verb: str, buf: Buffer, start: int, nbytes: int, lane: int) -> None:
        """Report a read of unwritten bytes: an error with the "uninit" check, else a warning, once per `key`."""
        assert buf.contents is not None
        missing = buf.contents.state[start : start + nbytes] != WRITTEN
        at = start + int(missing.argmax())
        where = self.place_in(buf, at)
        if self.machine.strict_uninit:
            count = int(np.count_nonzero(missing))
            what = "them" if count == nbytes else f"{count} of them"
            raise Fault("uninit", f"{verb} of {nbytes} bytes of {where}: nothing has written {what}", lane)
        self.machine.warn(("uninit", key), f"{verb} of {where}, which nothing has written")

    def check_read(self, buf: Buffer, start: int, nbytes: int, verb: str, lane: int, key: int) -> None:
        """Check the bytes read by an asynchronous copy. Raises Fault if they hold an mbarrier or were not written."""
        contents = buf.contents
        if contents is None:
            return
        try:
            at = contents.read_range(start, nbytes, verb)
        except Fault as f:
            f.lane = lane
            raise
        if at >= 0:
            self.warn_uninit(key, verb, buf, start, nbytes, lane)

    def place_in(self, buf: Buffer, at: int) -> str:
        """Describe a byte of a buffer.

        Offsets in shared and local memory count from the start of the block or thread.
        """
        if buf is self.local:
            at %= self.local_size
            return f"local memory at byte offset {at}{self.machine.local_names.place(at)}"
        if buf is self.smem and self.smem_lane is not None:
            at %= round_up(self.smem_size, 1024)
        return buf.place(at)

    def note_poison_store(self) -> None:
        """Count a store of poison to memory."""
        self.machine.poison_stores += 1

    def where(self, address: int, site: Site) -> str:
        """Describe the location of an address for an access by `site`."""
        return place(self, site, address)


def _compact(v: int | Array) -> Value:
    """Return an id as an int when uniform, else as i32 lanes."""
    if isinstance(v, int):
        return v
    if len(v) and (v == v[0]).all():
        return int(v[0])
    return v.astype(np.int32)
