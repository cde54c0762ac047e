"""A group of lanes that executes together, and its view of the machine."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from cute_dialect.arch.targets import DEFAULT_TARGET
from cute_dialect.interp.errors import Fault, InterpError, OpInfo
from cute_dialect.interp.machine.machine import Counter, Dim3, Machine
from cute_dialect.interp.memory.accesses import Site
from cute_dialect.interp.memory.buffers import WRITTEN, Buffer, GlobalMemory, place
from cute_dialect.interp.types import round_up
from cute_dialect.interp.values import Array, Mask, Value

if TYPE_CHECKING:
    from collections.abc import Callable

    from cute_dialect.interp.machine.machine import BulkGroups
    from cute_dialect.interp.memory.accesses import Part
    from cute_dialect.interp.race.clocks import WarpClocks

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
        self,
        machine: Machine,
        lane_block: int | Array,
        lane_tid: Array,
        smem: Buffer,
        smem_lane: Array | None,
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
        return self.machine.cluster != (1, 1, 1)

    def sreg(self, name: str) -> Value:
        """Return a special register by its PTX name, such as `tid.x`; a uniform value is an int."""
        got = self.sregs.get(name)
        if got is None:
            got = self.sregs[name] = self._sreg(name)
        return got

    def _sreg(self, name: str) -> Value:
        grid, block, cluster = self.machine.grid, self.machine.block, self.machine.cluster
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
        if name in ("clock", "clock64", "globaltimer"):
            return self.count.steps & 0x7FFFFFFF
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
        return ids[axis] % self.machine.cluster[axis]

    def cluster_peer(self, lane: int, rank: int) -> int:
        """Return the linear index of the block with the given rank in the cluster of the lane's block."""
        c, grid = self.machine.cluster, self.machine.grid
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
