"""State of each byte of a buffer: unwritten, written, or part of an mbarrier.

Each byte of memory has one byte of state. Reads and writes access the states in units of up to 8 bytes, as wide as the
access is aligned. So a 4-byte read of 2 written bytes is detected, and a 16-byte access costs two numbers.

A valid mbarrier is opaque: "The behavior of performing an mbarrier.init operation on a memory location containing a
valid mbarrier object is undefined; invalidate the mbarrier object using mbarrier.inval first, before repurposing the
memory location for any other purpose, including another mbarrier object" ("mbarrier.init"); "An mbarrier object must be
invalidated before using its memory location for any other purpose" (PTX ISA 9.0, "mbarrier.inval"). The contents after
mbarrier.inval are unspecified, so the bytes count as unwritten.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from cute_dialect.interp.errors import Fault

if TYPE_CHECKING:
    from cute_dialect.interp.memory.buffers import Buffer
    from cute_dialect.interp.values import Array

UNWRITTEN, WRITTEN, BARRIER = 0, 1, 2
MBARRIER_BYTES = 8
_TYPES = {n: np.dtype(f"u{n}") for n in (1, 2, 4, 8)}
_AND = np.bitwise_and.reduce
_ONES = {1: 0x01, 2: 0x0101, 4: 0x01010101, 8: 0x0101010101010101}


class Contents:
    """The states of a buffer's bytes. `barriers` counts the valid mbarriers in it."""

    __slots__ = ("_views", "barriers", "buf", "state")

    def __init__(self, buf: Buffer) -> None:
        size = -(-buf.size // 16) * 16
        self.buf = buf
        self.state: Array = np.zeros(size, np.uint8)
        self.barriers = 0
        self._views = {n: self.state.view(t) for n, t in _TYPES.items()}

    def _units(self, off: Array, nbytes: int, align: int) -> tuple[Array, Array, int]:
        """Return the states viewed in the units of an access, its unit indices, and `WRITTEN` as such a unit."""
        unit, shift, columns, written = _shape(nbytes, align)
        first = off >> shift if shift else off
        return self._views[unit], first if columns is None else first[:, None] + columns, written

    def write(self, off: Array, nbytes: int, align: int, verb: str, lanes: Array) -> None:
        """Mark the bytes at each offset as written by `lanes`. Raises Fault if they overlap a valid mbarrier."""
        view, at, written = self._units(off, nbytes, align)
        if self.barriers:
            self._no_barrier(view[at], off, nbytes, verb, written, lanes)
        view[at] = written

    def read(self, off: Array, nbytes: int, align: int, verb: str, lanes: Array) -> int:
        """Return the index of the first access that reads an unwritten byte, -1 if there is none.

        Raises Fault if the bytes overlap a valid mbarrier.
        """
        view, at, written = self._units(off, nbytes, align)
        seen = view[at]
        if _AND(seen, axis=None) == written:  # no other state has the bit of `WRITTEN`
            return -1
        if self.barriers:
            self._no_barrier(seen, off, nbytes, verb, written, lanes)
        whole = seen == written
        return -1 if whole.all() else _first(whole)

    def write_range(self, start: int, nbytes: int, verb: str) -> None:
        """Mark one range of bytes as written, like `write`."""
        self.no_barrier(start, nbytes, verb)
        self.state[start : start + nbytes] = WRITTEN

    def read_range(self, start: int, nbytes: int, verb: str) -> int:
        """Return the first unwritten byte of a range, -1 if there is none, like `read`."""
        whole = self.state[start : start + nbytes] == WRITTEN
        if whole.all():
            return -1
        self.no_barrier(start, nbytes, verb)
        return start + int((~whole).argmax())

    def no_barrier(self, start: int, nbytes: int, verb: str) -> None:
        """Raise Fault if a range of bytes overlaps a valid mbarrier."""
        if self.barriers:
            held = self.state[start : start + nbytes] == BARRIER
            if held.any():
                self._barrier_at(start + int(held.argmax()), nbytes, verb)

    def no_barrier_in(self, units: Array, verb: str) -> None:
        """Raise Fault if one of these 16-byte units overlaps a valid mbarrier."""
        if self.barriers:
            held = (self.state.reshape(-1, 16)[units] == BARRIER).reshape(-1)
            if held.any():
                at = int(held.argmax())
                self._barrier_at(int(units[at // 16]) * 16 + at % 16, 16, verb)

    def forget(self, off: Array, nbytes: int) -> None:
        """Mark the bytes at each offset as unwritten."""
        self.state[off[:, None] + np.arange(nbytes)] = UNWRITTEN

    def begin_barrier(self, start: int) -> None:
        """Record an mbarrier.init."""
        self.state[start : start + MBARRIER_BYTES] = BARRIER
        self.barriers += 1

    def end_barrier(self, start: int) -> None:
        """Record an mbarrier.inval."""
        self.state[start : start + MBARRIER_BYTES] = UNWRITTEN
        self.barriers -= 1

    def _no_barrier(self, seen: Array, off: Array, nbytes: int, verb: str, written: int, lanes: Array) -> None:
        held = seen & np.array(written << 1, seen.dtype) != 0
        if held.any():
            row = _first(~held)
            part = self.state[int(off[row]) : int(off[row]) + nbytes]
            self._barrier_at(int(off[row]) + int((part == BARRIER).argmax()), nbytes, verb, int(lanes[row]))

    def _barrier_at(self, at: int, nbytes: int, verb: str, lane: int = -1) -> None:
        raise Fault(
            "sync",
            f"{verb} of {nbytes} bytes overlaps the valid mbarrier in {self.buf.place(at)}; execute mbarrier.inval "
            "before reusing its memory",
            lane,
        )


@lru_cache(maxsize=1024)
def _shape(nbytes: int, align: int) -> tuple[int, int, Array | None, int]:
    """Return the unit of an access in bytes, its log2, the indices of units (None for one), and `WRITTEN` as a unit."""
    unit = min(nbytes & -nbytes, align & -align, 8) if align > 0 else 1
    n = nbytes // unit
    return unit, unit.bit_length() - 1, np.arange(n) if n > 1 else None, _ONES[unit]


def _first(whole: Array) -> int:
    """Return the index of the first access with a False entry."""
    rows = whole if whole.ndim == 1 else whole.all(axis=1)
    return int((~rows).argmax())


__all__ = ["BARRIER", "MBARRIER_BYTES", "UNWRITTEN", "WRITTEN", "Contents"]
