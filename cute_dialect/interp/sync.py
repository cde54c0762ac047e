"""Barriers that the threads of a block share besides memory: named barriers, mbarriers, the cluster barrier.

Sources: PTX ISA "Parallel Synchronization and Communication Instructions: bar, mbarrier, barrier.cluster".
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cute_dialect.arch.targets import DEFAULT_TARGET
from cute_dialect.interp.addresses import SHARED_WINDOW, SMEM_ORIGIN, WINDOW_BITS, outside
from cute_dialect.interp.errors import Fault

if TYPE_CHECKING:
    from cute_dialect.interp.allocations import Allocation
    from cute_dialect.interp.clocks import Meeting
    from cute_dialect.interp.errors import OpInfo
    from cute_dialect.interp.group import Group
    from cute_dialect.interp.memory import Buffer
    from cute_dialect.interp.wgmma import Warpgroup

WARP = DEFAULT_TARGET.warp
_REGISTERS = DEFAULT_TARGET.sm_registers
MAX_MBARRIER_COUNT = (1 << 20) - 1


class NamedBarrier:
    """`bar.sync id[, n]`: counts arrivals by whole warps; `generation` counts completions.

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
        """Let one warp arrive. Raises Fault when warps disagree on the number of threads."""
        if self.arrived and self.expected != expected:
            raise Fault(
                "sync",
                f"barrier {ident}: expected {_threads(self.expected)} as the warps that arrived first said, "
                f"got {_threads(expected)}",
            )
        self.expected = expected
        self.arrived += WARP
        if votes is not None:
            self.votes.append(votes)
        self.check(block)

    def check(self, block: Block) -> None:
        """Complete the barrier if all have arrived."""
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
    """An mbarrier: `count` arrivals a phase, `pending` of them missing, `tx` bytes outstanding, `phase`s completed."""

    __slots__ = (
        "actor",
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
        self.actor = -1  # for race detection: who writes what it signals
        self.clocks: object = None
        self.waiting: list[tuple[Group, OpInfo]] = []  # the warps that wait at it, an entry a thread
        self.flying = 0  # bytes of copies that were issued and will be signalled
        self.delivered = 0  # bytes in the current phase
        self.expected = 0
        self.count = count
        self.pending = count
        self.tx = 0
        self.phase = 0

    def arrive(self, n: int = 1) -> int:
        """Arrive `n` times; returns the phase it counts for. Raises Fault on more arrivals than expected."""
        if n > self.pending:
            raise Fault(
                "sync",
                f"{self.name}: {n} arrivals with only {self.pending} of {self.count} pending in phase {self.phase}",
            )
        token = self.phase
        self.pending -= n
        self._check()
        return token

    def expect(self, nbytes: int) -> None:
        """Raise the bytes that this phase waits for; the phase cannot complete by it."""
        self.tx += nbytes
        self.expected += nbytes
        self._check_range()

    def complete(self, nbytes: int) -> None:
        """Note that bytes have arrived."""
        self.tx -= nbytes
        self.flying = max(0, self.flying - nbytes)
        self.delivered += nbytes
        self._check_range()
        self._check()

    def _check_range(self) -> None:
        if not -MAX_MBARRIER_COUNT <= self.tx <= MAX_MBARRIER_COUNT:
            raise Fault("sync", f"{self.name}: expected a transaction count below 2^20 in magnitude, got {self.tx}")

    def done(self, parity: int) -> bool:
        """Tell whether the phase of this parity has completed (`test_wait.parity`)."""
        return (self.phase & 1) != (parity & 1)

    def _check(self) -> None:
        if self.pending == 0 and self.tx == 0:
            if self.flying:
                raise Fault(
                    "sync",
                    f"{self.name}: phase {self.phase} completes while {self.flying} bytes of copies that signal it are "
                    f"on their way: expected expect_tx of at least {self.delivered + self.flying} bytes, "
                    f"got {self.expected}",
                )
            self.phase += 1
            self.pending = self.count
            self.delivered = self.expected = 0
            if self.clocks is not None:
                self.clocks.complete()  # type: ignore[attr-defined]


class Cluster:
    """The blocks of one cluster and their barrier."""

    __slots__ = ("arrived", "blocks", "generation", "meeting")

    def __init__(self) -> None:
        self.meeting: Meeting | None = None
        self.blocks: list[Block] = []
        self.arrived = 0
        self.generation = 0

    def check(self) -> None:
        """Complete the cluster's barrier if all warps that still run have arrived."""
        need = sum(b.live_warps for b in self.blocks)
        if self.arrived and self.arrived >= need:
            self.arrived = 0
            self.generation += 1
            if self.meeting is not None:
                self.meeting.complete()


class RegisterPool:
    """The registers of a block's share of the SM: 65536, at launch an equal number for each thread.

    All warps of a warpgroup execute the same setmaxnreg instructions (PTX ISA 9.0, 9.7.19.5 "setmaxnreg").
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
        """Return registers a thread of the warp has."""
        return self._warps.get(warp, self._at_launch)

    def may_have_fewer(self, warp: int) -> bool:
        """Tell whether the compiler may have chosen fewer registers for a warp: threads leave it all that there are."""
        return warp not in self._warps and self._at_launch == DEFAULT_TARGET.registers

    def executed(self, warp: int) -> int:
        """Return how many setmaxnreg a warp has executed."""
        return len(self._executed[warp])

    def executes(self, warp: int, info: OpInfo) -> None:
        """Note that a warp executes a setmaxnreg. Raises Fault when another of its warpgroup has not, and can no
        longer.
        """
        mine = self._executed[warp]
        mine.append(info)
        for other in self.others(warp):
            theirs = self._executed[other]
            if len(theirs) < len(mine):
                if self._ended[other]:
                    raise _unequal(f"warp {other}, which has ended without", ())
            elif theirs[len(mine) - 1] is not info:
                where = theirs[len(mine) - 1]
                raise _unequal(f"warp {other}, which executed another", (f"that is at {where.location or where.text}",))

    def ends(self, warp: int) -> tuple[Fault, OpInfo] | None:
        """Note that a warp has ended; return what is wrong if another of its warpgroup has executed more setmaxnreg,
        and which.
        """
        self._ended[warp] = True
        count = len(self._executed[warp])
        for other in self.others(warp):
            theirs = self._executed[other]
            if len(theirs) > count:
                return _unequal(f"warp {warp}, which has ended without", (f"warp {other} executed it",)), theirs[count]
        return None

    def others(self, warp: int) -> list[int]:
        """Return the other warps of a warp's warpgroup."""
        first = warp // 4 * 4
        return [w for w in range(first, min(first + 4, len(self._ended))) if w != warp]

    def fits(self, more: int) -> bool:
        """Tell whether the pool has `more` registers a thread for one warp."""
        return more * WARP <= self.free

    def change(self, warp: int, count: int) -> None:
        """Give a warp `count` registers a thread."""
        self.free += (self.of(warp) - count) * WARP
        self._warps[warp] = count


def _unequal(who: str, notes: tuple[str, ...]) -> Fault:
    text = f"setmaxnreg: expected the same instruction in all warps of the warpgroup, got {who}"
    return Fault("sync", text, notes=notes)


class Block:
    """A resident block."""

    __slots__ = (
        "barriers", "cluster", "groups", "linear", "live_warps", "mbarriers", "registers", "size", "smem",
        "smem_start", "warpgroups",
    )  # fmt: skip

    def __init__(self, linear: int, smem: Buffer, smem_start: int, cluster: Cluster) -> None:
        self.linear = linear
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

    def add_mbarrier(self, offset: int, bar: MBarrier, lane: int, address: int) -> None:
        """Execute `mbarrier.init`. Raises Fault where a valid mbarrier lies."""
        old = self.mbarriers.get(offset)
        if old is not None:
            raise Fault(
                "sync",
                f"mbarrier.init of the {old.name}, which is initialised already: expected mbarrier.inval before it",
                lane,
                address,
            )
        self.mbarriers[offset] = bar
        if self.smem.contents is not None:
            self.smem.contents.begin_barrier(self.smem_start + offset)

    def drop_mbarrier(self, offset: int, bar: MBarrier, lane: int, address: int) -> None:
        """Execute `mbarrier.inval`. Raises Fault while copies that will signal it are on their way, or threads wait at
        it.

        A wait is a loop of mbarrier operations, of which none but init may meet an mbarrier that is not valid (PTX ISA,
        "mbarrier.inval")."""
        if bar.flying:
            raise Fault(
                "sync",
                f"mbarrier.inval of the {bar.name} while {bar.flying} bytes of copies that signal it are on their way",
                lane,
                address,
            )
        if bar.waiting:
            group, info = bar.waiting[0]
            x, y, z = group.thread_coord(int(group.mask.idx[0]))
            raise Fault(
                "sync",
                f"mbarrier.inval of the {bar.name} while a thread waits at it: expected a barrier after its last wait",
                lane,
                address,
                (f"thread ({x}, {y}, {z}) waits at {info.location or info.text}",),
            )
        del self.mbarriers[offset]
        if self.smem.contents is not None:
            self.smem.contents.end_barrier(self.smem_start + offset)

    def warpgroup(self, number: int) -> Warpgroup:
        """Return the wgmma instructions of four warps."""
        got = self.warpgroups.get(number)
        if got is None:
            from cute_dialect.interp.wgmma import Warpgroup

            got = self.warpgroups[number] = Warpgroup(self, number)
        return got

    def barrier(self, ident: int) -> NamedBarrier:
        """Return the named barrier of a number. Raises Fault unless it is 0 to 15 (PTX ISA, "barrier")."""
        if not 0 <= ident < 16:
            raise Fault("sync", f"expected a barrier id in [0, 16), got {ident}")
        got = self.barriers.get(ident)
        if got is None:
            got = self.barriers[ident] = NamedBarrier()
        return got

    def check_runs(self, lane: int = -1, address: int | None = None) -> None:
        """Raise Fault if the block has ended, and its shared memory with it."""
        if self.live_warps <= 0:
            text = f"access to the shared memory of block {self.linear} of the cluster, which has ended"
            raise Fault("sync", text, lane, address)

    def warp_exits(self, warp: int) -> tuple[Fault, OpInfo] | None:
        """Note that a warp has ended: barriers of all threads no longer wait for it. What is wrong with that, and of
        which op.
        """
        self.live_warps -= 1
        for b in self.barriers.values():
            if b.expected is None:
                b.check(self)
        self.cluster.check()
        return self.registers.ends(warp)


def block_at(g: Group, address: int, space: int, lane: int) -> tuple[Block | None, int]:
    """Return the resident block and the byte offset that a shared address of space 0, 3 or 7 names."""
    if space == 7 and address >= 1 << WINDOW_BITS:
        linear = g.cluster_peer(lane, (address >> WINDOW_BITS) - 1)
    elif space == 0:
        linear = (address - SHARED_WINDOW) >> WINDOW_BITS
    else:
        linear = g.block_of(lane)
    block = g.launch.blocks.get(linear)
    if block is not None:
        block.check_runs(lane, address)
    return block, (address & ((1 << WINDOW_BITS) - 1)) - SMEM_ORIGIN


def shared_at(
    g: Group, address: int, space: int, lane: int, nbytes: int, what: str, align: int, owner: Allocation | None = None
) -> tuple[Block, int]:
    """Return the block and byte offset of `nbytes` of shared memory, all in one tensor. Raises Fault: oob, misaligned.

    `owner`: the allocation that the address was derived from, where that is known."""
    block, offset = block_at(g, address, space, lane)
    names = g.launch.shared_names
    if block is None or not 0 <= offset <= g.smem_size - nbytes:
        raise Fault(
            "oob",
            f"{what} {nbytes} bytes of shared memory: expected a byte offset in "
            f"[0, {max(g.smem_size - nbytes + 1, 0)}), got {offset}{names.place(offset)}",
            lane,
            address,
        )
    if offset % align:
        raise Fault(
            "misaligned",
            f"{what} shared memory: expected a byte offset that is a multiple of {align}, got "
            f"{offset}{names.place(offset)}",
            lane,
            address,
        )
    owner = owner or names.at(offset)
    if owner is not None and not owner.start <= offset <= owner.start + owner.size - nbytes:
        outside(f"{what} {nbytes} bytes", owner, offset, names, lane, address)
    return block, offset


def mbarrier_at(g: Group, address: int, space: int, lane: int, owner: Allocation | None = None) -> tuple[Block, int]:
    """Return the block and shared-memory offset that an mbarrier address names. Raises Fault: oob, misaligned."""
    block, offset = block_at(g, address, space, lane)
    if block is None or not 0 <= offset <= g.smem_size - 8:
        past = g.launch.shared_names.place(offset)
        text = f"mbarrier outside shared memory: byte offset {offset} of {g.smem_size}{past}"
        raise Fault("oob", text, lane, address)
    if offset % 8:
        at = f"byte offset {offset}{g.launch.shared_names.place(offset)}"
        raise Fault("misaligned", f"expected an mbarrier at a multiple of 8 bytes, got {at}", lane, address)
    if owner is not None and not owner.start <= offset <= owner.start + owner.size - 8:
        outside("mbarrier", owner, offset, g.launch.shared_names, lane, address)
    return block, offset


def find_mbarrier(
    g: Group, address: int, space: int, lane: int, owner: Allocation | None = None
) -> tuple[Block, MBarrier]:
    """Return the initialised mbarrier at an address, and the block that holds it."""
    block, offset = mbarrier_at(g, address, space, lane, owner)
    got = block.mbarriers.get(offset)
    if got is None:
        at = f"byte offset {offset}{g.launch.shared_names.place(offset)}"
        raise Fault("sync", f"no mbarrier was initialised at shared memory {at}", lane, address)
    return block, got
