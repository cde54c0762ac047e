"""Bank conflicts, coalescing and occupancy of a run.

- Shared memory has 32 banks of 4 bytes. A warp's request is served in phases of 32 threads for accesses up to 4 bytes,
  16 threads for 8 bytes, and 8 threads for 16 bytes. Each 8x8 matrix of ldmatrix and stmatrix is a phase of 8 threads.
  A phase takes as many transactions as the busiest bank has different words. Two neighboring phases merge if each
  thread i has the address of thread i xor 1, or each that of thread i xor 2. This was measured, and agrees with the
  counters of an H200. Ideal: the words of the request, 32 at a time.
- A global request takes one transaction per 32-byte sector that it touches. Ideal: its bytes, 32 at a time.
- Occupancy: blocks per SM of the target, limited by threads, blocks, shared memory (each block reserves 1 KiB) and, if
  known, registers. On sm_90 an SM has 2048 threads, 32 blocks, 228 KiB and 65536 registers.

TMA copies are not counted, since they have no bank conflicts of this kind.
"""

# Values are numpy arrays of many types, picked at run time; pyright cannot follow their element types.
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false, reportUnknownMemberType=false
# pyright: reportOperatorIssue=false

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from cute_dialect.arch.targets import DEFAULT_TARGET, Target
from cute_dialect.interp.errors import location_text, op_name, op_text
from cute_dialect.interp.values import Array, Value

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.table import Table

    from cute_dialect.interp.machine.group import Group
    from cute_dialect.interp.memory.accesses import Part, Site
    from cute_dialect.interp.memory.buffers import Buffer

_FAR = 1 << 40


class Line(NamedTuple):
    """Transactions of one load or store.

    `transactions` are wavefronts for shared memory and sectors for global memory; `width` is bytes per thread.
    """

    space: str
    op: str
    text: str
    location: str
    width: int
    requests: int
    transactions: int
    ideal: int

    @property
    def excess(self) -> int:
        """Transactions in excess of the ideal."""
        return self.transactions - self.ideal

    @property
    def ratio(self) -> float:
        """Transactions divided by the ideal; 1.0 if there are none."""
        return self.transactions / self.ideal if self.ideal else 1.0


class Occupancy(NamedTuple):
    """Blocks and warps that are resident on an SM at once, and the resource that limits them."""

    blocks: int
    warps: int
    percent: float
    limit: str
    most_warps: int = 64

    def __str__(self) -> str:
        warps = f"{self.warps} of {self.most_warps} warps an SM ({self.percent} %)"
        return f"{self.blocks} blocks, {warps}, limited by {self.limit}"


class _Count:
    __slots__ = ("ideal", "requests", "site", "transactions")

    def __init__(self, site: Site) -> None:
        self.site = site
        self.requests = self.transactions = self.ideal = 0


class Profile:
    """Access counts of a launch. `reports` selects from "banks", "coalescing" and "occupancy"."""

    def __init__(self, reports: Sequence[str], threads: int, shared: int, target: Target = DEFAULT_TARGET) -> None:
        self.reports = tuple(reports)
        self.target = target
        self.threads = threads
        self.shared = shared
        self.registers = 0  # per thread, 0 until ptxas has reported it
        self.columns = 0  # of tensor memory per block
        self._shared: dict[int, _Count] = {}
        self._global: dict[int, _Count] = {}

    def observe(self, g: Group, site: Site, parts: list[Part], value: Value | None) -> None:
        """Count one access of a warp, or of all warps of blocks in lockstep."""
        for buf, off, sel in parts:
            if buf is g.local:
                continue
            lanes = g.mask.idx if sel is None else g.mask.idx[sel]
            if g.machine.wide and len(lanes):
                offs = np.full(len(lanes), off) if isinstance(off, int) else off
                number = np.asarray(g.lane_block) * 32 + g.lane_tid // 32  # A block has at most 32 warps.
                starts = np.flatnonzero(np.diff(number[lanes])) + 1
                for own, at in zip(np.split(g.lane_tid[lanes] % 32, starts), np.split(offs, starts)):
                    self._access(site, buf, at, own)
                continue
            if isinstance(off, int):
                off, lanes = np.array([off]), lanes[:1]
            self._access(site, buf, off, lanes)

    def _access(self, site: Site, buf: Buffer, off: Array, lanes: Array) -> None:
        if buf.name == "shared memory":
            if "banks" in self.reports:
                self._add(self._shared, site, *bank_transactions(off, lanes, site.nbytes))
        elif "coalescing" in self.reports:
            self._add(self._global, site, *sector_transactions(off + buf.base, site.nbytes))

    @staticmethod
    def _add(table: dict[int, _Count], site: Site, transactions: int, ideal: int) -> None:
        count = table.get(id(site))
        if count is None:
            count = table[id(site)] = _Count(site)
        count.requests += 1
        count.transactions += transactions
        count.ideal += ideal

    @property
    def lines(self) -> list[Line]:
        """One line per source op, largest excess first. The lowered accesses of one source op are merged."""
        merged: dict[tuple[str, str, str, int], Line] = {}
        for space, table in (("shared", self._shared), ("global", self._global)):
            for c in table.values():
                op = c.site.op
                name = op_name(op) if op is not None else c.site.verb
                text = op_text(op) if op is not None else c.site.verb
                where = location_text(op) if op is not None else ""
                key = (space, name, where or text, c.site.nbytes)
                old = merged.get(key)
                counts = (c.requests, c.transactions, c.ideal)
                if old is not None:
                    counts = tuple([x + y for x, y in zip(counts, old[5:])])
                merged[key] = Line(space, name, text, where, c.site.nbytes, *counts)
        out = list(merged.values())
        out.sort(key=lambda x: (-x.excess, -x.transactions, x.location))
        return out

    @property
    def occupancy(self) -> Occupancy:
        """Occupancy of an SM for the kernel's threads, shared memory and registers."""
        return occupancy(self.threads, self.shared, self.registers, self.target, self.columns)

    def json(self) -> dict[str, object]:
        """Return the report as plain data."""
        out: dict[str, object] = {
            "accesses": [{**x._asdict(), "excess": x.excess, "ratio": round(x.ratio, 4)} for x in self.lines]
        }
        if "occupancy" in self.reports:
            out["occupancy"] = self.occupancy._asdict()
        return out

    def text(self) -> str:
        """Return the lines as a table of text."""
        from io import StringIO

        from rich.console import Console

        console = Console(file=StringIO(), width=120)
        console.print(self.table())
        return "\n".join(line.rstrip() for line in console.file.getvalue().splitlines())  # pyright: ignore

    def table(self) -> Table:
        """Return the lines as a table."""
        from rich.table import Table

        t = Table(title="memory accesses, most expensive first", title_justify="left")
        for name in ("memory", "op", "where", "bytes", "requests", "transactions", "ideal", "ratio"):
            t.add_column(name, justify="left" if name in ("memory", "op", "where") else "right", no_wrap=True)
        for x in self.lines:
            numbers = (x.width, x.requests, x.transactions, x.ideal)
            t.add_row(x.space, x.op, x.location.rpartition("/")[2] or x.text[:40], *map(str, numbers), f"{x.ratio:.2f}")
        return t


def bank_transactions(off: Array, lanes: Array, nbytes: int) -> tuple[int, int]:
    """Return the transactions of one warp's request to shared memory, and the ideal.

    >>> bank_transactions(np.arange(32) * 4, np.arange(32), 4), bank_transactions(np.arange(32) * 128, np.arange(32), 4)
    ((1, 1), (32, 1))
    """
    words = off // 4
    if nbytes > 4:
        phase = _phases(off, lanes, nbytes)[:, None]
        words = words[:, None] + np.arange(-(-nbytes // 4))
        phase = np.broadcast_to(phase, words.shape)
    else:
        phase = np.zeros_like(words)
    keys = np.unique(phase * _FAR + words)
    banks = keys // _FAR * 32 + keys % _FAR % 32
    per_bank = np.bincount(banks, minlength=128).reshape(-1, 32)
    return int(per_bank.max(axis=1).sum()), -(-len(np.unique(keys % _FAR)) // 32)


def _phases(off: Array, lanes: Array, nbytes: int) -> Array:
    """Return the phase of each lane of an 8- or 16-byte access: half warps or quarters, where two may merge."""
    per = 16 if nbytes <= 8 else 8
    at = np.full(32, -1, np.int64)
    at[lanes % 32] = off
    place = np.arange(32)
    paired = np.zeros((2, 32), np.bool_)
    for i, distance in enumerate((1, 2)):
        other = at[place ^ distance]
        paired[i] = (at < 0) | (other < 0) | (at == other)
    span = 2 * per
    joined: Array = np.asarray(paired.reshape(2, -1, span).all(axis=2)).any(axis=0).reshape(-1)
    phase = place // per
    phase = np.where(joined[place // span], place // span * 2, phase)
    return phase[lanes % 32]


def sector_transactions(address: Array, nbytes: int) -> tuple[int, int]:
    """Return the 32-byte sectors that one warp's request to global memory touches, and the ideal.

    >>> sector_transactions(np.arange(32) * 4, 4), sector_transactions(np.arange(32) * 64, 4)
    ((4, 4), (32, 4))
    """
    first, last = address // 32, (address + nbytes - 1) // 32
    sectors = len(np.unique(np.concatenate([first, last])))
    return sectors, -(-len(np.unique(address)) * nbytes // 32)


def occupancy(
    threads: int, shared: int, registers: int = 0, target: Target = DEFAULT_TARGET, columns: int = 0
) -> Occupancy:
    """Return the occupancy of an SM.

    Args:
        threads: Threads per block.
        shared: Bytes of shared memory per block.
        registers: Registers per thread, 0 if unknown.
        target: The chip, by default sm_90a.
        columns: Columns of tensor memory that a block allocates.

    >>> occupancy(384, 229504, 168)
    Occupancy(blocks=1, warps=12, percent=18.8, limit='shared memory', most_warps=64)
    """
    warps = -(-threads // 32)
    limits = {"threads": target.sm_threads // (target.warp * warps), "blocks": target.sm_blocks}
    limits["shared memory"] = target.sm_shared // (shared + target.reserved_shared)
    if registers:
        limits["registers"] = target.sm_registers // (-(-registers // 8) * 8 * target.warp * warps)
    if columns and target.tmem_columns:
        limits["tensor memory"] = max(1, target.tmem_columns // columns)
    which = min(limits, key=lambda k: (limits[k], k == "registers"))
    blocks = limits[which]
    most = target.sm_threads // target.warp
    return Occupancy(blocks, blocks * warps, round(100 * blocks * warps / most, 1), which, most)
