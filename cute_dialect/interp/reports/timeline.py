"""Event record of a run, warp by warp, for ``reports=["timeline"]``.

Time counts the ops of a warp.  Warps that can run do so in parallel: each has a clock, which advances by the ops that
it executes.  After a wait, the clock continues from the event that ended the wait.  A TMA copy lasts from its issue
until the schedule completes it (by default after the round of the warps in which it was issued).  A wgmma lasts until
it is waited for.  The record shows the dependences between warps and the stages in flight, but not nanoseconds.

Nothing is recorded unless requested: the scheduler and wgmma check ``Machine.timeline``, which is None by default.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from cute_dialect.interp.errors import OpInfo
    from cute_dialect.interp.machine.barriers import Block
    from cute_dialect.interp.machine.group import Group, Machine, Transfer, Wait
    from cute_dialect.interp.machine.wgmma import Instruction, Warpgroup

MAX_EVENTS = 1 << 18


class Slice(NamedTuple):
    """An interval in which a warp ran or waited. For a wait, ``what`` describes it and ``location`` is its op."""

    block: int
    warp: int
    start: int
    end: int
    what: str = ""
    location: str = ""


class Copy(NamedTuple):
    """A copy issued by a warp, by TMA or `tcgen05.cp`, or a `tcgen05.commit`: ``op``, size in bytes (0 if unknown), and
    the interval in which it was in flight.
    """

    block: int
    warp: int
    start: int
    end: int
    op: str
    nbytes: int
    location: str


class Product(NamedTuple):
    """A wgmma of a warpgroup, from its issue until it was waited for, or a tcgen05.mma until it was executed."""

    block: int
    warpgroup: int
    start: int
    end: int
    shape: str
    location: str


class Phase(NamedTuple):
    """A phase of an mbarrier: its number, and the interval in which it was the current phase."""

    block: int
    barrier: str
    number: int
    start: int
    end: int


class Timeline:
    """The events of a run.  ``dropped`` counts events beyond the first 2^18, which are not recorded."""

    def __init__(self) -> None:
        self.runs: list[Slice] = []
        self.waits: list[Slice] = []
        self.copies: list[Copy] = []
        self.products: list[Product] = []
        self.phases: list[Phase] = []
        self.dropped = 0

    @property
    def end(self) -> int:
        """Time at which the last warp ended."""
        return max((s.end for s in self.runs), default=0)

    @property
    def blocks(self) -> list[int]:
        """Numbers of the blocks that ran."""
        return sorted({s.block for s in self.runs})

    def json(self) -> dict[str, object]:
        """Return the events as plain data."""
        lists = {"runs": self.runs, "waits": self.waits, "copies": self.copies, "products": self.products}
        out: dict[str, object] = {name: [e._asdict() for e in events] for name, events in lists.items()}
        return {**out, "phases": [p._asdict() for p in self.phases], "end": self.end, "dropped": self.dropped}


class _Warp:
    """A warp's clock. While it waits: start and reason of the wait, and the time it was satisfied (-1 for not yet)."""

    __slots__ = ("clock", "released", "since", "wait", "what")

    def __init__(self, clock: int) -> None:
        self.clock = clock
        self.since = clock
        self.wait: Wait | None = None
        self.what = ""
        self.released = -1


class Recorder:
    """Fills a :class:`Timeline` while a launch runs."""

    def __init__(self, machine: Machine) -> None:
        self.timeline = Timeline()
        self._machine = machine
        self._warps: dict[tuple[int, int], _Warp] = {}
        self._flying: list[tuple[Transfer, int, int]] = []
        self._products: dict[tuple[int, int, int], tuple[int, str, str]] = {}
        self._phases: dict[tuple[int, int], tuple[int, int]] = {}
        self._now = 0
        self._start = 0
        self._steps = 0
        self._running: tuple[int, int] = (0, 0)
        self._events = 0

    @property
    def time(self) -> int:
        """Current time of the running warp."""
        return self._start + self._machine.count.steps - self._steps

    # -- scheduler ----------------------------------------------------------------------------------------------------

    def admits(self, block: int, warps: int) -> None:
        """Record that a block has become resident. Its warps begin now."""
        for w in range(warps):
            self._warps[block, w] = _Warp(self._now)

    def begins(self, block: int, warp: int) -> None:
        """Record that a warp continues."""
        at = self._warps[block, warp]
        start = max(at.clock, at.released)
        if at.wait is not None and not at.wait.spin:
            self._waited(block, warp, at, start)
        self._running = (block, warp)
        self._start, self._steps = start, self._machine.count.steps

    def stops(self, wait: Wait | None) -> None:
        """Record that the running warp waits, or has ended."""
        block, warp = self._running
        at = self._warps[block, warp]
        end = self.time
        if wait is not None and wait.spin and at.wait is not None and at.wait.spin and at.wait.info is wait.info:
            return  # The warp polls again, so it still waits.
        if at.wait is not None and at.wait.spin:
            self._waited(block, warp, at, self._start)
        if self._keeps() and end > self._start:
            self.timeline.runs.append(Slice(block, warp, self._start, end))
        at.clock = at.since = end
        at.wait, at.released = wait, -1
        at.what = wait.text if wait is not None else ""
        if wait is None:
            del self._warps[block, warp]
            self._now = max(self._now, end)
        self._happened(end)

    def _waited(self, block: int, warp: int, at: _Warp, until: int) -> None:
        assert at.wait is not None
        if until > at.since and self._keeps():
            self.timeline.waits.append(Slice(block, warp, at.since, until, at.what, at.wait.info.location))

    def round_ends(self) -> None:
        """Record the copies that completed after a round of the warps."""
        self._now = max([self._now, *(w.clock for w in self._warps.values() if w.wait is None or not w.wait.spin)])
        left: list[tuple[Transfer, int, int]] = []
        for transfer, start, warp in self._flying:
            if not transfer.done:
                left.append((transfer, start, warp))
            elif self._keeps():
                info = transfer.info
                end = max(self._now, start + 1)
                if transfer.product:
                    self.timeline.products.append(
                        Product(transfer.block, warp // 4, start, end, transfer.product, info.location)
                    )
                    continue
                self.timeline.copies.append(
                    Copy(transfer.block, warp, start, end, info.name, transfer.nbytes, info.location)
                )
        self._flying = left
        self._happened(self._now)

    def _happened(self, now: int) -> None:
        """Record the phases that are complete and the waits that are satisfied."""
        for block in self._machine.blocks.values():
            self._complete(block, now)
        for at in self._warps.values():
            if at.wait is None or (at.released >= 0 and not at.wait.spin):
                continue
            if at.wait.spin or at.wait.ready():
                at.released = max(now, at.since)

    def _complete(self, block: Block, now: int) -> None:
        for offset, bar in block.mbarriers.items():
            key = (block.linear, offset)
            phase, since = self._phases.get(key, (0, now))
            if bar.phase > phase and self._keeps():
                name = self._machine.shared_names.names(offset)
                self.timeline.phases.append(Phase(block.linear, name, phase, since, now))
            # A lower phase means that the mbarrier was initialized again.
            if bar.phase != phase or key not in self._phases:
                self._phases[key] = (bar.phase, now)

    def _keeps(self) -> bool:
        self._events += 1
        if self._events > MAX_EVENTS:
            self.timeline.dropped += 1
        return self._events <= MAX_EVENTS

    # -- copies and wgmma ---------------------------------------------------------------------------------------------

    def issued(self, transfer: Transfer) -> None:
        """Record that the running warp issues a copy."""
        self._flying.append((transfer, self.time, self._running[1]))

    def product_issued(self, g: Group, group: Warpgroup, i: Instruction) -> None:
        """Record that a warp issues a wgmma, which begins with its first warp."""
        key = (g.block_of(0), group.number, i.number)
        if key not in self._products:
            s = i.shape
            self._products[key] = (self.time, f"m64n{s.n}k{s.k} {s.d} {s.a} {s.b}", _place(i.info))

    def products_waited(self, g: Group, group: Warpgroup, target: int) -> None:
        """Record that a warp has waited for all wgmma below a number. They end with the first warp that has waited."""
        block = g.block_of(0)
        for key in [k for k in self._products if k[:2] == (block, group.number) and k[2] < target]:
            start, shape, place = self._products.pop(key)
            if self._keeps():
                self.timeline.products.append(
                    Product(block, group.number, start, max(self.time, start + 1), shape, place)
                )


def _place(info: OpInfo) -> str:
    return info.location
