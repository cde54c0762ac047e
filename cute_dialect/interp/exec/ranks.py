"""GPUs of several ranks in one process: launches that run together, on memory that ranks map at their own addresses.

    world = World(2, RunOptions(checks=("race",)))
    addresses = world.allocate([a0, a1], "x")                    # symmetric memory, see `allocate`
    world.launch(0, module, "k", arguments, LaunchShape(...))    # queued on the stream of rank 0
    world.launch(1, module, "k", arguments, LaunchShape(...))
    world.run()                                                  # all streams together

**Streams.** Each rank has one stream. A launch begins when the launch before it on the stream has ended, and everything
that one did is ordered before it. In a dependent launch (PDL) this holds only after `griddepcontrol.wait`. Nothing else
orders launches: of two ranks, only signals in memory and `barrier` do. The race check therefore lasts as long as the
world, and finds a buffer that the next call overwrites while a peer may still read it.

**Addresses.** A rank maps the symmetric memory of all ranks, each at an address of its own. An address of another
rank's mapping is an error, as it is where each rank is a process.

**Schedules.** One cluster of each rank is resident at first. Others are admitted, up to the number that a GPU holds,
when no resident warp of any rank can continue.

| schedule | order |
|---|---|
| `round-robin` | all warps in turn, from rank 0 on |
| `reverse` | all warps in turn, from the last rank on |
| `random` | any order, blocks are admitted early |
| `adversarial` | one rank runs as far as it can before another continues, the last first |

Clusters of one rank start in the order described in `schedule`.
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import chain, zip_longest
from itertools import count as numbers
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from cute_dialect.arch.targets import TARGETS
from cute_dialect.interp.compiler.function_compiler import Function
from cute_dialect.interp.errors import InterpError
from cute_dialect.interp.exec.launch import (
    DEFAULTS,
    bind_all,
    clusters_for,
    count_steps,
    find_kernel,
    machine_of,
    place_locals,
    registers_of,
)
from cute_dialect.interp.exec.program import Program, lay_out_shared, place_globals
from cute_dialect.interp.exec.schedule import (
    POLL_ROUNDS,
    POLL_STEPS,
    SPIN_ROUNDS,
    Warp,
    admit,
    check_cooperative,
    check_room,
    deadlock,
    memory_state,
    no_room,
    resident_blocks,
    run_warp,
    smaller_clusters,
    take_next,
)
from cute_dialect.interp.machine.barriers import ClusterPool
from cute_dialect.interp.machine.group import Counter, Machine, Spurious, Transfers
from cute_dialect.interp.memory.arguments import Argument, Binder
from cute_dialect.interp.memory.buffers import VIEW_SHIFT, Buffer, Elements, GlobalMemory, PeerMemory
from cute_dialect.interp.race.clocks import PrecedingGrids
from cute_dialect.interp.race.flags import join
from cute_dialect.interp.race.monitor import Monitor
from cute_dialect.interp.reports.run_report import RunReport
from cute_dialect.interp.values import Array, Regs

if TYPE_CHECKING:
    from xdsl.ir import Operation

    from cute_dialect.interp.exec.launch import RunOptions
    from cute_dialect.interp.race.flags import Known
    from cute_dialect.runtime.host_program import LaunchShape

EARLY = 0.25  # Probability with which "random" admits another cluster of a rank in a round.


class Launch(NamedTuple):
    """A queued launch: its number in the stream, module, kernel, arguments, shape, options and input checks."""

    number: int
    module: Operation
    kernel: str
    args: Sequence[Argument]
    shape: LaunchShape
    options: RunOptions
    checks: Sequence[Callable[[], None]] = ()


class Stream:
    """The launches of a rank. `machine` is that of the launch that runs, None before the first one.

    `known` is what is ordered before the next launch.
    """

    def __init__(self, rank: int) -> None:
        self.rank = rank
        self.queue: deque[Launch] = deque()
        self.known: Known = {}
        self.launch: Launch | None = None
        self.machine: Machine | None = None
        self.fn: Function | None = None
        self.template: Regs = []
        self.waiting: list[list[int]] = []
        self.warps: list[Warp] = []
        self.most = 0
        self.report: RunReport | None = None
        self.numbers = numbers()
        self.checks: list[Callable[[], None]] = []

    @property
    def reports(self) -> list[RunReport]:
        """The report of the launches that have ended in this run, and that of the one that runs."""
        return [r for r in (self.report, self.machine and self.machine.report) if r is not None]

    @property
    def runs(self) -> bool:
        """Return True if a launch has blocks that have not ended."""
        return bool(self.warps or self.waiting)

    @property
    def is_full(self) -> bool:
        """Return True if blocks wait and none fits."""
        if not self.waiting or self.machine is None:
            return False
        return len(self.machine.blocks) + len(self.waiting[-1]) > self.most

    def admit(self, memory_limit: int) -> bool:
        """Admit the next cluster, and return True, if there is one that fits."""
        if not self.waiting or self.is_full or self.machine is None or self.fn is None:
            return False
        check_room(self.machine, len(self.warps), memory_limit)
        self.warps += admit(self.machine, self.fn, self.template, take_next(self.machine, self.waiting, self.most))
        return True

    @property
    def state(self) -> str:
        """The launch that the rank is in, for the report of a deadlock."""
        left = f", {len(self.queue)} more wait" if self.queue else ""
        if self.launch is None:
            return f"rank {self.rank} has launched nothing"
        does = "is in" if self.runs else "has ended"
        return f"rank {self.rank} {does} launch {self.launch.number} of its stream, @{self.launch.kernel}{left}"


def _no_launch() -> RunReport:
    """Return the report of a rank that has launched nothing."""
    report = RunReport()
    report.launches = 0
    return report


class World:
    """The memory, streams and race check of several ranks.

    Args:
        ranks: the number of GPUs.
        options: schedule, seed, checks, chip, steps and resident blocks of all launches.

    Raises:
        InterpError: kind "argument", if an option is not supported for ranks.
    """

    def __init__(self, ranks: int, options: RunOptions = DEFAULTS) -> None:
        if ranks < 1:
            raise InterpError("argument", f"a world of {ranks} ranks; it must have at least one")
        if options.schedule.startswith("replay:") or options.blocks is not None or options.reports:
            raise InterpError("argument", "ranks support neither schedule='replay:…' nor blocks= nor reports=")
        self.ranks = ranks
        self.options = options
        peers = PeerMemory()
        self.memories = [GlobalMemory(r, peers) for r in range(ranks)]
        self.streams = [Stream(r) for r in range(ranks)]
        self._binders = [Binder(m, False, options.algebra) for m in self.memories]
        self._count = Counter(count_steps(options.max_steps))
        self._programs: dict[tuple[int, str], tuple[Operation, Program]] = {}
        self._first = 0
        self._has_failed = False
        self._kept: list[object] = []
        self._rng = random.Random(options.seed)
        self._transfers = Transfers(options.schedule, self._rng)
        self._spurious = Spurious(options.schedule, options.seed)
        self.monitor: Monitor | None = None
        if "race" in options.checks or "strict" in options.checks:
            machine = Machine(self._count, (1, 1, 1), (1, 1, 1), True, TARGETS[options.chip])
            machine.strict_tensor_order = "strict" in options.checks
            self.monitor = Monitor(machine)

    # -- memory -------------------------------------------------------------------------------------------------------

    def allocate(self, arrays: Sequence[Array], name: str, unwritten: bool = False, has_signals: bool = False) -> Array:
        """Make arrays symmetric memory, one per rank, and return the address of each in the mapping of each rank.

        Args:
            arrays: C-contiguous arrays of one shape and type, which the caller keeps alive.
            name: their name in messages.
            unwritten: report reads of bytes that no kernel has written, with the check "uninit".
            has_signals: the race check requires that each word has one writer.

        Returns:
            An array of shape (ranks, ranks): the address on a rank (first axis) of the instance of an owner (second).
        """
        bases: list[int] = []
        for rank, array in enumerate(arrays):
            data = array.reshape(-1).view(np.uint8)
            root = self.memories[rank].add_symmetric(data, f"'{name}' of rank {rank}")
            root.elements = Elements(0, array.shape, array.strides, array.itemsize)
            root.source = array
            root.has_signals = has_signals
            if unwritten and "uninit" in self.options.checks:
                root.watch()
            self._binders[rank].knows(array, root)
            bases.append(root.base & PeerMemory.MASK)
        return np.array(bases, np.int64) | np.arange(self.ranks, dtype=np.int64)[:, None] << VIEW_SHIFT

    def keep(self, memory: object) -> None:
        """Keep memory alive as long as the world, so that its addresses are not used again."""
        self._kept.append(memory)

    # -- launches -----------------------------------------------------------------------------------------------------

    def launch(
        self,
        rank: int,
        module: Operation,
        kernel: str,
        args: Sequence[Argument],
        shape: LaunchShape,
        registers: int = 0,
    ) -> None:
        """Queue a launch on the stream of a rank. Its arrays must stay alive as long as the world, see `keep`."""
        stream = self.streams[rank]
        options = replace(self.options, registers=registers)
        stream.queue.append(Launch(next(stream.numbers), module, kernel, args, shape, options, stream.checks))
        stream.checks = []

    def check_before(self, rank: int, check: Callable[[], None]) -> None:
        """Call a function when the next launch that a rank queues begins. Its inputs are then in memory."""
        self.streams[rank].checks.append(check)

    def barrier(self) -> None:
        """Order all launches that have ended before all later launches, of all ranks, like `dist.barrier`."""
        known = join([s.known for s in self.streams])
        for s in self.streams:
            s.known = known

    def run(self) -> list[RunReport]:
        """Run all queued launches together, and return a report for each rank, summed over its launches.

        Raises InterpError for a finding. The world cannot be used afterwards.
        """
        if self._has_failed:
            raise InterpError("argument", "a kernel of these ranks has failed; make new ranks")
        self._has_failed = True
        for s in self.streams:
            s.report = None
        for buf in chain.from_iterable([m.buffers for m in self.memories]):
            buf.is_read = buf.is_written = False
        with np.errstate(all="ignore"):
            self._run()
        self._has_failed = False
        return [s.report or _no_launch() for s in self.streams]

    def forget(self) -> None:
        """Forget the queued launches."""
        for s in self.streams:
            s.queue.clear()
            s.checks = []

    def printed(self) -> list[str]:
        """Return the output of `printf` of each rank in the last run, also if it has failed."""
        return ["".join([t for r in s.reports for t in r.printf]) for s in self.streams]

    def _begin(self, s: Stream) -> None:
        """Begin the next launch of a stream."""
        launch = s.launch = s.queue.popleft()
        for check in launch.checks:
            check()
        program = self._program(launch)
        func = find_kernel(program, launch.kernel)
        machine = machine_of(func, launch.shape, launch.options, self._count)
        machine.rank, machine.ranks, machine.first = s.rank, self.ranks, self._first
        machine.memory, machine.ordered_before = self.memories[s.rank], s.known
        machine.tracks = machine.strict_uninit = "uninit" in launch.options.checks
        machine.strict_tensor_order = "strict" in launch.options.checks
        others = lay_out_shared(program, machine, func, launch.shape.smem)
        fn = program.function(func)
        machine.tensor_columns = program.tensor_columns
        if launch.shape.cooperative:
            check_cooperative(machine)
        bound = len(machine.memory.buffers)
        values = bind_all(self._binders[s.rank], fn, launch.args, launch.kernel)
        self._find_others(s.rank, machine.memory.buffers[bound:])
        if "uninit" in launch.options.checks:
            for buf in self._binders[s.rank].unwritten.values():
                if buf.contents is None:
                    buf.watch()
        place_globals(machine, others)
        place_locals(machine, fn)
        schedule = launch.options.schedule
        clusters = clusters_for(machine, launch.options)
        s.waiting = clusters[::-1] if schedule == "round-robin" else clusters
        if schedule == "random":
            self._rng.shuffle(s.waiting)
        machine.wide = False
        machine.transfers, machine.spurious = self._transfers, self._spurious
        machine.pool = ClusterPool(s.waiting, schedule, self._rng, smaller_clusters(machine))
        machine.monitor = self.monitor
        if self.monitor is not None:
            machine.observe = self.monitor.observe
            find = self._binders[s.rank].buffer_of
            machine.preceding = PrecedingGrids.of(fn, func, launch.args, find, launch.shape.pdl)
        report = machine.report
        report.checks = tuple(launch.options.checks)
        report.blocks = report.all_blocks = sum(map(len, clusters))
        report.lanes = 32
        self._first += report.blocks
        s.machine, s.fn, s.template, s.most = machine, fn, registers_of(fn, values), resident_blocks(machine)

    def _find_others(self, rank: int, buffers: Sequence[Buffer]) -> None:
        """Find the arrays of other ranks that share memory of the caller with new buffers of a rank."""
        for buf in buffers:
            buf.rank = rank
            for other in [b for m in self.memories if m.rank != rank for b in m.buffers if b.source is not None]:
                if buf.source is not None and buf.overlaps(other):
                    buf.others.append(other)
                    other.others.append(buf)

    def _program(self, launch: Launch) -> Program:
        """Return the compiled functions of a module, shared by its launches."""
        key = (id(launch.module), launch.kernel)
        found = self._programs.get(key)
        if found is None:
            program = Program(launch.module, launch.options.overflow, launch.options.algebra)
            program.tracks = "uninit" in launch.options.checks
            found = self._programs[key] = (launch.module, program)
        return found[1]

    def _end(self, s: Stream) -> None:
        """End the launch of a stream: order it before the next one, and add its report."""
        machine = s.machine
        assert machine is not None
        if self.monitor is not None:
            s.known = self.monitor.ordered_after(machine)
        report = machine.report
        report.fences = machine.fences
        if machine.poison_stores:
            report.warnings.append(f"{machine.poison_stores} stores of a poison (undefined) value: 0 was written")
        if s.report is None:
            s.report = report
        else:
            s.report.add(report)
        s.machine = None

    # -- schedule -----------------------------------------------------------------------------------------------------

    def _run(self) -> None:
        schedule, limit = self.options.schedule, self.options.memory_limit
        quiet, memory, favourite = 0, -1, self.ranks - 1
        while True:
            for s in self.streams:
                if s.machine is not None and not s.runs:
                    self._end(s)
                if s.machine is None and s.queue:
                    self._begin(s)
                if (s.waiting and not s.warps) or (schedule == "random" and self._rng.random() < EARLY):
                    s.admit(limit)
            active = [s for s in self.streams if s.runs]
            if not active:
                return
            moved = self._transfers.next_round(False)
            self._count.advances += moved
            chosen = active
            if schedule == "adversarial":
                chosen = [min(active, key=lambda s: (favourite - s.rank) % self.ranks)]
                favourite = chosen[0].rank
            moved |= self._round(chosen)
            if schedule == "adversarial" and not moved:
                favourite = (favourite - 1) % self.ranks
            if not moved and self._transfers.next_round(True):
                moved = True
                self._count.advances += 1
            if moved:
                quiet = 0
                continue
            quiet += 1
            rounds = quiet // len(active) if schedule == "adversarial" else quiet
            room = [s for s in active if s.waiting and not s.is_full]
            if rounds < (POLL_ROUNDS if room else SPIN_ROUNDS):
                continue
            quiet = 0
            if room:
                for s in room:
                    s.admit(limit)
                self._count.advances += 1
                continue
            machines = [s.machine for s in active if s.machine is not None]
            before, memory = memory, memory_state(self.memories, machines)
            if memory == before:
                raise self._deadlock(active)

    def _round(self, streams: list[Stream]) -> bool:
        """Run each warp of some streams once, and return True if one did more than poll."""
        schedule = self.options.schedule
        order = [(s, w) for s in streams for w in s.warps]
        if schedule == "reverse":
            order.reverse()
        elif schedule == "random":
            self._rng.shuffle(order)
        elif schedule == "adversarial":
            order = order[::-1]
        moved = False
        for s, w in order:
            assert s.machine is not None
            count, report = self._count, s.machine.report
            ops, lane_ops = count.steps, count.lane_ops
            went, _ = run_warp(s.machine, w, s.warps, POLL_STEPS)
            moved |= went
            report.ops += count.steps - ops
            report.lane_ops += count.lane_ops - lane_ops
        return moved

    def _deadlock(self, active: list[Stream]) -> InterpError:
        """Return the error for ranks of which none can continue."""
        full = next((s for s in active if s.is_full), None)
        notes = tuple(s.state for s in self.streams)
        if full is not None and full.machine is not None:
            notes = (*no_room(full.machine, full.most, full.waiting), *notes)
        rows = [s.warps for s in active]
        in_turn = [w for turn in zip_longest(*rows) for w in turn if w is not None]  # shows a warp of each rank
        return deadlock(in_turn, 0, notes, max(4, len(rows)))
