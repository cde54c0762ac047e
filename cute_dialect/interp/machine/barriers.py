"""Barriers of a block: named barriers, mbarriers and the cluster barrier, and the register pool of setmaxnreg.

Source: PTX ISA "Parallel Synchronization and Communication Instructions: bar, mbarrier, barrier.cluster".
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

from cute_dialect.arch.targets import DEFAULT_TARGET
from cute_dialect.interp.errors import Fault
from cute_dialect.interp.machine.tensor_memory import TensorMemory
from cute_dialect.interp.machine.wgmma import Warpgroup
from cute_dialect.interp.memory.buffers import GENERIC, SHARED_CLUSTER, SHARED_WINDOW, SMEM_ORIGIN, WINDOW_BITS, outside

if TYPE_CHECKING:
    from cute_dialect.interp.errors import OpInfo
    from cute_dialect.interp.machine.group import Dim3, Group
    from cute_dialect.interp.machine.tcgen05 import Pipe
    from cute_dialect.interp.memory.allocations import Allocation
    from cute_dialect.interp.memory.buffers import Buffer
    from cute_dialect.interp.race.clocks import Meeting

WARP = DEFAULT_TARGET.warp
_REGISTERS = DEFAULT_TARGET.sm_registers
MAX_MBARRIER_COUNT = (1 << 20) - 1


class NamedBarrier:
    """`bar.sync id[, n]`. Counts arrivals in whole warps; `generation` counts completed phases.

    `expected` is None for a barrier of all live threads. `votes` gathers the predicates of a reduction.
    """

    __slots__ = ("arrived", "expected", "generation", "meeting", "result", "votes")

    def __init__(self) -> None:
        self.meeting: Meeting | None = None
        self.arrived = 0
        self.expected: int | None = None
        self.generation = 0
        self.votes: list[tuple[int, int]] = []
        self.result: tuple[int, int] = (0, 0)

    def arrive(self, block: Block, ident: int, expected: int | None, votes: tuple[int, int] | None) -> None:
        """Record the arrival of one warp. Raises Fault if warps disagree on the number of threads."""
        if self.arrived and self.expected != expected:
            raise Fault(
                "sync",
                f"barrier {ident}: this warp specifies {_threads(expected)}, but warps that arrived earlier specified "
                f"{_threads(self.expected)}; all warps must specify the same count",
            )
        self.expected = expected
        self.arrived += WARP
        if votes is not None:
            self.votes.append(votes)
        self.check(block)

    def check(self, block: Block) -> None:
        """Complete the phase if all warps have arrived."""
        need = block.live_warps * WARP if self.expected is None else self.expected
        if self.arrived and self.arrived >= need:
            self.result = (sum(v for v, _ in self.votes), sum(n for _, n in self.votes))
            self.votes = []
            self.arrived = 0
            self.generation += 1
            if self.meeting is not None:
                self.meeting.complete()


def _threads(n: int | None) -> str:
    return "all threads of the block" if n is None else f"{n} threads"


class MBarrier:
    """An mbarrier: arrivals per phase (`count`, `pending`), outstanding bytes (`tx`) and completed phases (`phase`)."""

    __slots__ = (
        "actor",
        "byte_phases",
        "clocks",
        "count",
        "delivered",
        "expected",
        "flying",
        "name",
        "pending",
        "phase",
        "tx",
        "waiting",
    )

    def __init__(self, count: int, name: str = "mbarrier") -> None:
        self.name = name
        self.actor = -1  # actor of the copies that signal it, for race detection
        self.clocks: object = None
        self.waiting: list[tuple[Group, OpInfo]] = []  # warps that wait at it, one entry per thread
        self.flying = 0  # bytes of issued copies that have not arrived
        self.delivered = 0  # bytes delivered in the current phase
        self.expected = 0
        self.byte_phases = 0  # phases up to the last completed one that received bytes
        self.count = count
        self.pending = count
        self.tx = 0
        self.phase = 0

    def arrive(self, n: int = 1) -> int:
        """Record `n` arrivals and return the phase that they count for.

        Raises Fault if they exceed the pending count.
        """
        if n > self.pending:
            raise Fault(
                "sync",
                f"{self.name}: {n} arrivals with only {self.pending} of {self.count} pending in phase {self.phase}; "
                "raise the count of mbarrier.init, or drop an arrival",
            )
        token = self.phase
        self.pending -= n
        self._check()
        return token

    def expect(self, nbytes: int) -> None:
        """Add bytes to the transaction count of this phase, as expect_tx does. This never completes a phase."""
        self.tx += nbytes
        self.expected += nbytes
        self._check_range()

    def complete(self, nbytes: int) -> None:
        """Record that bytes have arrived."""
        self.tx -= nbytes
        self.flying = max(0, self.flying - nbytes)
        self.delivered += nbytes
        self._check_range()
        self._check()

    def _check_range(self) -> None:
        if not -MAX_MBARRIER_COUNT <= self.tx <= MAX_MBARRIER_COUNT:
            raise Fault("sync", f"{self.name}: transaction count {self.tx} exceeds the limit of 2^20 - 1")

    def done(self, parity: int) -> bool:
        """Return True if the phase of this parity has completed (`test_wait.parity`)."""
        return (self.phase & 1) != (parity & 1)

    def _check(self) -> None:
        if self.pending == 0 and self.tx == 0:
            if self.flying:
                raise Fault(
                    "sync",
                    f"{self.name}: phase {self.phase} completes while {self.flying} bytes of copies that signal it are "
                    f"in flight; raise expect_tx from {self.expected} to at least {self.delivered + self.flying} bytes",
                )
            self.phase += 1
            if self.delivered:
                self.byte_phases = self.phase
            self.pending = self.count
            self.delivered = self.expected = 0
            if self.clocks is not None:
                self.clocks.complete()  # type: ignore[attr-defined]


class Cluster:
    """The blocks of a cluster and their barrier.

    - refused: a thread has seen an unsuccessful response of cluster launch control; ended: one was written
    """

    __slots__ = ("arrived", "blocks", "ended", "generation", "meeting", "refused")

    def __init__(self) -> None:
        self.refused = self.ended = False
        self.meeting: Meeting | None = None
        self.blocks: list[Block] = []
        self.arrived = 0
        self.generation = 0

    def check(self) -> None:
        """Complete the cluster barrier if all live warps have arrived."""
        need = sum(b.live_warps for b in self.blocks)
        if self.arrived and self.arrived >= need:
            self.arrived = 0
            self.generation += 1
            if self.meeting is not None:
                self.meeting.complete()


def clusters_of(grid: Dim3, cluster: Dim3) -> list[list[int]]:
    """Return the linear block numbers of each cluster of a grid.

    >>> clusters_of((4, 1, 1), (2, 1, 1))
    [[0, 1], [2, 3]]
    """
    total = grid[0] * grid[1] * grid[2]
    if cluster == (1, 1, 1):
        return [[b] for b in range(total)]
    out: dict[tuple[int, int, int], list[int]] = {}
    for b in range(total):
        at = (b % grid[0] // cluster[0], b // grid[0] % grid[1] // cluster[1], b // (grid[0] * grid[1]) // cluster[2])
        out.setdefault(at, []).append(b)
    return list(out.values())


def mixed_clusters(grid: Dim3, cluster: Dim3, larger: Dim3, schedule: str, seed: int = 0) -> list[list[int]]:
    """Return the clusters of a grid with two sizes, as a schedule groups the blocks.

    CUDA does not define where the larger size fits. "round-robin" uses it in the first of two places, "reverse" in the
    second, "adversarial" nowhere, and "random" in any.

    >>> mixed_clusters((8, 1, 1), (2, 1, 1), (4, 1, 1), "round-robin")
    [[0, 1, 2, 3], [4, 5], [6, 7]]
    """
    rng = random.Random(f"clusters {seed}")
    own = clusters_of(grid, cluster)
    found: list[list[int]] = []
    for i, members in enumerate(clusters_of(grid, larger)):
        whole = {"reverse": i % 2 == 1, "adversarial": False, "random": rng.random() < 0.5}.get(schedule, i % 2 == 0)
        found += [members] if whole else parts_of(members, own)
    return found


def parts_of(members: list[int], clusters: list[list[int]]) -> list[list[int]]:
    """Return the smaller clusters of the blocks of a larger one."""
    inside = set(members)
    return [c for c in clusters if c[0] in inside]


class ClusterPool:
    """The clusters of a launch that have not started, which cluster launch control takes and the scheduler starts.

    CUDA defines neither which cluster a request takes nor that it takes one while some are left. "round-robin" takes
    the first and "reverse" the last. "random" takes any, and sometimes none. "adversarial" refuses every second
    request, and takes the last. After an unsuccessful request the cluster gets no more.
    """

    __slots__ = ("requests", "rng", "schedule", "smaller", "taken", "waiting")

    def __init__(
        self,
        waiting: list[list[int]],
        schedule: str,
        rng: random.Random,
        smaller: list[list[int]] | None = None,
    ) -> None:
        self.smaller = smaller or []  # all clusters of the smaller of two sizes
        self.waiting = waiting  # The next cluster to start is the last one.
        self.schedule = schedule
        self.rng = rng
        self.requests = 0
        self.taken = 0  # blocks of canceled clusters

    def take(self, cluster: Cluster, grid: tuple[int, int, int]) -> tuple[int, int, int] | None:
        """Cancel a cluster for another one, and return the coordinates of its first block, or None.

        The canceled cluster has the size of the other one. If need be, a larger one is divided.
        """
        self.requests += 1
        refuses = self.schedule == "random" and self.rng.random() < 0.25
        refuses = refuses or (self.schedule == "adversarial" and self.requests % 2 == 0)
        size = len(cluster.blocks)
        fitting = [i for i, members in enumerate(self.waiting) if len(members) >= size]
        if cluster.ended or refuses or not fitting:
            cluster.ended = True
            return None
        ordered = sorted(fitting, key=lambda i: self.waiting[i][0])
        last = self.schedule in ("reverse", "adversarial")
        at = self.rng.choice(ordered) if self.schedule == "random" else ordered[-1 if last else 0]
        if len(self.waiting[at]) > size:
            self.waiting[at : at + 1] = parts_of(self.waiting[at], self.smaller)
        members = self.waiting.pop(at)
        self.taken += len(members)
        first = min(members)
        return first % grid[0], first // grid[0] % grid[1], first // (grid[0] * grid[1])


class RegisterPool:
    """The registers of a block: all 65536 of the SM, distributed equally among the threads at launch.

    All warps of a warpgroup must execute the same setmaxnreg instructions (PTX ISA 9.0, 9.7.19.5 "setmaxnreg").
    """

    __slots__ = ("_at_launch", "_ended", "_executed", "_warps", "free")

    def __init__(self, threads: int) -> None:
        warps = -(-threads // WARP)
        most = DEFAULT_TARGET.registers
        self._at_launch = min(most, _REGISTERS // (warps * WARP) // 8 * 8) if warps else most
        self._warps: dict[int, int] = {}
        self._executed: list[list[OpInfo]] = [[] for _ in range(warps)]
        self._ended = [False] * warps
        self.free = _REGISTERS - self._at_launch * warps * WARP

    def of(self, warp: int) -> int:
        """Return the registers per thread of a warp."""
        return self._warps.get(warp, self._at_launch)

    def may_have_fewer(self, warp: int) -> bool:
        """Return True if the compiler may use fewer registers than a thread of the warp was assumed to have.

        This is the case if the register file allows every thread the maximum.
        """
        return warp not in self._warps and self._at_launch == DEFAULT_TARGET.registers

    def executed(self, warp: int) -> int:
        """Return the number of setmaxnreg that a warp has executed."""
        return len(self._executed[warp])

    def executes(self, warp: int, info: OpInfo) -> None:
        """Record a setmaxnreg of a warp.

        Raises Fault if another warp of the warpgroup executed a different one, or ended without it.
        """
        mine = self._executed[warp]
        mine.append(info)
        for other in self.others(warp):
            theirs = self._executed[other]
            if len(theirs) < len(mine):
                if self._ended[other]:
                    raise _unequal(f"warp {other} ended without it", ())
            elif theirs[len(mine) - 1] is not info:
                where = theirs[len(mine) - 1]
                raise _unequal(f"warp {other} executed another one", (f"that is at {where.location or where.text}",))

    def ends(self, warp: int) -> tuple[Fault, OpInfo] | None:
        """Record the end of a warp.

        Return a fault and its op if another warp of the warpgroup executed more setmaxnreg.
        """
        self._ended[warp] = True
        count = len(self._executed[warp])
        for other in self.others(warp):
            theirs = self._executed[other]
            if len(theirs) > count:
                return _unequal(f"warp {warp} ended without it", (f"warp {other} executed it",)), theirs[count]
        return None

    def others(self, warp: int) -> list[int]:
        """Return the other warps of a warp's warpgroup."""
        first = warp // 4 * 4
        return [w for w in range(first, min(first + 4, len(self._ended))) if w != warp]

    def fits(self, more: int) -> bool:
        """Return True if the pool has `more` registers per thread for one warp."""
        return more * WARP <= self.free

    def change(self, warp: int, count: int) -> None:
        """Set the registers per thread of a warp."""
        self.free += (self.of(warp) - count) * WARP
        self._warps[warp] = count


def _unequal(difference: str, notes: tuple[str, ...]) -> Fault:
    text = f"setmaxnreg: all warps of a warpgroup must execute the same setmaxnreg, but {difference}"
    return Fault("sync", text, notes=notes)


class Block:
    """A resident block."""

    __slots__ = (
        "barriers", "cluster", "groups", "key", "linear", "live_warps", "mbarriers", "pipe", "registers", "size",
        "smem", "smem_start", "tensor", "warpgroups",
    )  # fmt: skip

    def __init__(self, linear: int, smem: Buffer, smem_start: int, cluster: Cluster) -> None:
        self.linear = linear
        self.key = linear  # unique among the launches of a run
        self.smem = smem
        self.smem_start = smem_start
        self.size = smem.size
        self.warpgroups: dict[int, Warpgroup] = {}
        self.registers = RegisterPool(0)
        self.cluster = cluster
        self.barriers: dict[int, NamedBarrier] = {}
        self.mbarriers: dict[int, MBarrier] = {}
        self.groups: list[Group] = []
        self.live_warps = 0
        self.tensor: TensorMemory | None = None
        self.pipe: Pipe | None = None  # tensor pipe of the CTA or, for the first CTA of a pair, of both

    def add_mbarrier(self, offset: int, bar: MBarrier, lane: int, address: int) -> None:
        """Execute `mbarrier.init`. Raises Fault if a valid mbarrier is there already."""
        old = self.mbarriers.get(offset)
        if old is not None:
            raise Fault(
                "sync",
                f"mbarrier.init of the {old.name}, which is already initialized; execute mbarrier.inval first",
                lane,
                address,
            )
        self.mbarriers[offset] = bar
        if self.smem.contents is not None:
            self.smem.contents.begin_barrier(self.smem_start + offset)

    def drop_mbarrier(self, offset: int, bar: MBarrier, lane: int, address: int) -> None:
        """Execute `mbarrier.inval`. Raises Fault if copies that signal it are in flight or threads wait on it.

        A wait is a loop of mbarrier operations, all of which need a valid mbarrier, except init (PTX ISA,
        "mbarrier.inval").
        """
        if bar.flying:
            raise Fault(
                "sync",
                f"mbarrier.inval of the {bar.name} while {bar.flying} bytes of copies that signal it are in flight; "
                "wait for the phase first",
                lane,
                address,
            )
        if bar.waiting:
            group, info = bar.waiting[0]
            x, y, z = group.thread_coord(int(group.mask.idx[0]))
            raise Fault(
                "sync",
                f"mbarrier.inval of the {bar.name} while a thread waits on it; put a barrier between the last wait "
                "and mbarrier.inval",
                lane,
                address,
                (f"thread ({x}, {y}, {z}) waits at {info.location or info.text}",),
            )
        del self.mbarriers[offset]
        if self.smem.contents is not None:
            self.smem.contents.end_barrier(self.smem_start + offset)

    def warpgroup(self, number: int) -> Warpgroup:
        """Return the state of the wgmma of a warpgroup."""
        got = self.warpgroups.get(number)
        if got is None:
            got = self.warpgroups[number] = Warpgroup(self, number)
        return got

    def tensor_memory(self) -> TensorMemory:
        """Return the tensor memory of the block, created on first use."""
        if self.tensor is None:
            self.tensor = TensorMemory(f"tensor memory of block {self.linear}")
        return self.tensor

    def barrier(self, ident: int) -> NamedBarrier:
        """Return a named barrier. Raises Fault unless its number is in 0 to 15 (PTX ISA, "barrier")."""
        if not 0 <= ident < 16:
            raise Fault("sync", f"barrier id {ident} is out of range; use 0 to 15")
        got = self.barriers.get(ident)
        if got is None:
            got = self.barriers[ident] = NamedBarrier()
        return got

    def check_runs(self, lane: int = -1, address: int | None = None) -> None:
        """Raise Fault if the block has ended, which ends the life of its shared memory."""
        if self.live_warps <= 0:
            text = (
                f"access to the shared memory of block {self.linear} of the cluster, which has ended; add a cluster "
                "barrier before its end"
            )
            raise Fault("sync", text, lane, address)

    def warp_exits(self, warp: int) -> tuple[Fault, OpInfo] | None:
        """Record the end of a warp, which barriers of all threads no longer wait for.

        Return a fault and its op if the warpgroup executed setmaxnreg unequally, or the block leaves tensor memory
        allocated.
        """
        self.live_warps -= 1
        for b in self.barriers.values():
            if b.expected is None:
                b.check(self)
        self.cluster.check()
        if self.live_warps == 0 and self.tensor is not None:
            left = self.tensor.check_end()
            if left is not None:
                return left
        return self.registers.ends(warp)


def block_at(g: Group, address: int, space: int, lane: int) -> tuple[Block | None, int]:
    """Return the resident block and byte offset of a shared address of a generic, shared or cluster pointer."""
    if space == SHARED_CLUSTER and address >= 1 << WINDOW_BITS:
        linear = g.cluster_peer(lane, (address >> WINDOW_BITS) - 1)
    elif space == GENERIC:
        linear = (address - SHARED_WINDOW) >> WINDOW_BITS
    else:
        linear = g.block_of(lane)
    block = g.machine.blocks.get(linear)
    if block is not None:
        block.check_runs(lane, address)
    return block, (address & ((1 << WINDOW_BITS) - 1)) - SMEM_ORIGIN


def shared_at(
    g: Group, address: int, space: int, lane: int, nbytes: int, what: str, align: int, owner: Allocation | None = None
) -> tuple[Block, int]:
    """Return the block and byte offset of `nbytes` of shared memory in one tensor. Raises Fault: oob, misaligned.

    `owner` is the allocation that the address was derived from, None if unknown.
    """
    block, offset = block_at(g, address, space, lane)
    names = g.machine.shared_names
    if block is None or not 0 <= offset <= g.smem_size - nbytes:
        raise Fault(
            "oob",
            f"{what} {nbytes} bytes at byte offset {offset}{names.place(offset)}, out of the bounds of shared memory "
            f"({g.smem_size} bytes)",
            lane,
            address,
        )
    if offset % align:
        raise Fault(
            "misaligned",
            f"{what} byte offset {offset} of shared memory{names.place(offset)}, which is not a multiple of {align}",
            lane,
            address,
        )
    owner = owner or names.at(offset)
    if owner is not None and not owner.start <= offset <= owner.start + owner.size - nbytes:
        outside(f"{what} {nbytes} bytes", owner, offset, names, lane, address)
    return block, offset


def mbarrier_at(g: Group, address: int, space: int, lane: int, owner: Allocation | None = None) -> tuple[Block, int]:
    """Return the block and shared-memory offset of an mbarrier address. Raises Fault: oob, misaligned."""
    block, offset = block_at(g, address, space, lane)
    if block is None or not 0 <= offset <= g.smem_size - 8:
        past = g.machine.shared_names.place(offset)
        text = f"mbarrier outside shared memory: 8 bytes at byte offset {offset} of {g.smem_size} bytes{past}"
        raise Fault("oob", text, lane, address)
    if offset % 8:
        at = f"byte offset {offset}{g.machine.shared_names.place(offset)}"
        raise Fault("misaligned", f"an mbarrier must be aligned to 8 bytes, got {at}", lane, address)
    if owner is not None and not owner.start <= offset <= owner.start + owner.size - 8:
        outside("mbarrier", owner, offset, g.machine.shared_names, lane, address)
    return block, offset


def find_mbarrier(
    g: Group, address: int, space: int, lane: int, owner: Allocation | None = None
) -> tuple[Block, MBarrier]:
    """Return the initialized mbarrier at an address and its block. Raises Fault if there is none."""
    block, offset = mbarrier_at(g, address, space, lane, owner)
    got = block.mbarriers.get(offset)
    if got is None:
        at = f"byte offset {offset}{g.machine.shared_names.place(offset)}"
        raise Fault(
            "sync",
            f"no mbarrier is initialized at shared memory {at}; execute mbarrier.init before its first use",
            lane,
            address,
        )
    return block, got
