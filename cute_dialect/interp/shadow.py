"""What is remembered of the accesses to a buffer: the last write and the reads since, by granules.

A granule starts as 16 bytes and is halved whenever an access is smaller, so that a granule never holds two accesses
that do not overlap.  Reads are kept one row a warp (and one an asynchronous reader) in shared memory; of global memory
only the last reader is kept, and whether there were several warps or clusters.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from cute_dialect.interp.values import Array

if TYPE_CHECKING:
    from cute_dialect.interp.memory import Buffer

MANY = -2


class Shadow:
    """The remembered accesses. `w_*`: last write (actor -1: none); `r_*`: reads since, rows by reader."""

    def __init__(self, buf: Buffer, rows: int) -> None:
        size = self.size = buf.size
        self.buf = buf
        self.shift = 4
        n = -(-size // 16) + 1
        self.w_actor = np.full(n, -1, np.int32)
        self.w_clock = np.zeros(n, np.int32)
        self.w_site = np.full(n, -1, np.int32)
        self.w_kind = np.zeros(n, np.int8)  # 1: asynchronous, 2: atomic
        self.r_actor = np.full((rows, n), -1, np.int32)
        self.r_clock = np.zeros((rows, n), np.int32)
        self.r_site = np.full((rows, n), -1, np.int32)
        self.rows: dict[int, int] = {}
        self.written = False  # of `race_wide`: whether there has been a write
        self.w_cluster: Array | None = None
        self.r_cluster: Array | None = None

    @staticmethod
    def of_global(buf: Buffer) -> Shadow:
        s = Shadow(buf, 1)
        s.w_cluster = np.full(len(s.w_actor), -1, np.int32)
        s.r_cluster = np.full(len(s.w_actor), -1, np.int32)
        return s

    def row(self, reader: int) -> int:
        """The row of a reader."""
        got = self.rows.get(reader)
        if got is None:
            got = self.rows[reader] = len(self.rows)
            if got >= len(self.r_actor):
                more = len(self.r_actor)
                self.r_actor = np.concatenate([self.r_actor, np.full_like(self.r_actor[:more], -1)])
                self.r_clock = np.concatenate([self.r_clock, np.zeros_like(self.r_clock[:more])])
                self.r_site = np.concatenate([self.r_site, np.full_like(self.r_site[:more], -1)])
        return got

    def refine(self, shift: int) -> None:
        """Halve the granules until they have 2^shift bytes."""
        times = 1 << (self.shift - shift)
        for name in ("w_actor", "w_clock", "w_site", "w_kind", "w_cluster", "r_cluster"):
            a = getattr(self, name)
            if a is not None:
                setattr(self, name, np.repeat(a, times))
        for name in ("r_actor", "r_clock", "r_site"):
            setattr(self, name, np.repeat(getattr(self, name), times, axis=1))
        self.shift = shift

    def granules(self, off: Array, nbytes: int, align: int) -> Array:
        """The granules of an access of `nbytes` at each offset: shape (accesses, granules)."""
        unit = nbytes & -nbytes
        if align < unit:
            unit = align
        if unit < 16 and unit < 1 << self.shift:
            self.refine(unit.bit_length() - 1)
        s = self.shift
        first = off >> s
        n = max(1, nbytes >> s)
        return first[:, None] + np.arange(n) if n > 1 else first[:, None]

    def span(self, first: int, nbytes: int) -> Array:
        """The granules of a range of bytes."""
        return np.arange(first >> self.shift, -(-(first + nbytes) >> self.shift) if nbytes else first >> self.shift)

    def units(self, units: Array) -> Array:
        """The granules of units of 16 bytes."""
        if self.shift == 4:
            return units
        k = 1 << (4 - self.shift)
        return (units[:, None] * k + np.arange(k)).reshape(-1)


__all__ = ["MANY", "Shadow"]
