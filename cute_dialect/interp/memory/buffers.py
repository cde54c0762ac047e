"""Memory: buffers in one 64-bit address space (see `addresses`).

Each allocation has its own addresses, surrounded by a guard. Pointer arithmetic, casts and swizzles therefore behave as
on the device, and every access outside an allocation is detected.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from cute_dialect.interp.memory.addresses import (
    GLOBAL_BASE,
)
from cute_dialect.interp.memory.byte_states import Contents
from cute_dialect.interp.values import Array

if TYPE_CHECKING:
    from cute_dialect.interp.memory.allocations import Allocations

GUARD = 1 << 34
UNINIT_BYTE = 0xFF  # fill byte of new shared and local memory: NaN as a float, -1 as an integer


class Elements(NamedTuple):
    """A tensor in a buffer: byte offset of its first element, shape, strides and element size in bytes."""

    start: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    itemsize: int

    def coordinate(self, offset: int) -> str:
        """Return `element (3, 17)` for a byte offset, empty if it belongs to no element.

        >>> Elements(0, (4, 8), (32, 4), 4).coordinate(70)
        'element (2, 1)'
        """
        left = offset - self.start
        at = [0] * len(self.shape)
        for i in sorted(range(len(self.shape)), key=lambda i: -self.strides[i]):
            if self.strides[i] > 0 and self.shape[i] > 1:
                at[i] = min(left // self.strides[i], self.shape[i] - 1)
                left -= at[i] * self.strides[i]
        if not 0 <= left < self.itemsize or any(a < 0 for a in at):
            return ""
        return f"element ({', '.join(map(str, at))})"


class Buffer:
    """One allocation: `data` holds its bytes, `base` is the address of `data[0]`.

    - valid: mask of the bytes that may be accessed, None for all
    - contents: state of each byte if reads of unwritten bytes are reported, else None
    - written: mask of the written bytes if the caller requested it, else None
    - source: the caller's array
    - elements, names: the tensor or tensors in the buffer, for diagnostics
    """

    __slots__ = (
        "base", "contents", "data", "elements", "name", "names", "size", "source", "valid", "views", "writable",
        "written",
    )  # fmt: skip

    def __init__(
        self,
        base: int,
        data: Array,
        name: str,
        *,
        writable: bool = True,
        valid: Array | None = None,
    ) -> None:
        self.base = base
        self.data = data
        self.size = len(data)
        self.name = name
        self.writable = writable
        self.valid = valid
        self.contents: Contents | None = None
        self.written: Array | None = None
        self.source: Array | None = None
        self.elements: Elements | None = None
        self.names: Allocations | None = None
        self.views: dict[tuple[np.dtype[Any], int], Array] = {}

    def track(self) -> Array:
        """Start recording which bytes are written, and return the mask."""
        if self.written is None:
            self.written = np.zeros(self.size, np.bool_)
        return self.written

    def watch(self) -> None:
        """Start reporting reads of unwritten bytes."""
        self.contents = Contents(self)

    def note_written(self, off: Array, nbytes: int, align: int, verb: str, lanes: Array) -> None:
        """Record a store by lanes of `nbytes` at each offset. Raises Fault if it overlaps an mbarrier."""
        if self.contents is not None:
            self.contents.write(off, nbytes, align, verb, lanes)
        if self.written is not None:
            self.written[off[:, None] + np.arange(nbytes)] = True

    def note_range(self, start: int, nbytes: int, verb: str) -> None:
        """Record a write to one range of bytes, like `note_written`."""
        if self.contents is not None:
            self.contents.write_range(start, nbytes, verb)
        if self.written is not None:
            self.written[start : start + nbytes] = True

    def place(self, offset: int) -> str:
        """Describe a byte offset, with the coordinate of its element if known."""
        if self.names is not None:
            return f"{self.name} at byte offset {offset}{self.names.place(offset)}"
        found = self.elements.coordinate(offset) if self.elements is not None else ""
        return f"{self.name} at byte offset {offset}" + (f", {found}" if found else "")

    def view(self, dtype: np.dtype[Any], count: int) -> Array:
        """Return the bytes as elements of `dtype` (count 1) or as rows of `count` elements.

        An incomplete last row is left out.
        """
        key = (dtype, count)
        got = self.views.get(key)
        if got is None:
            row = dtype.itemsize * count
            got = self.data[: self.size - self.size % row].view(dtype)
            if count != 1:
                got = got.reshape(-1, count)
            self.views[key] = got
        return got


class GlobalMemory:
    """The allocations outside shared and local memory."""

    def __init__(self) -> None:
        self.buffers: list[Buffer] = []
        self._next = GLOBAL_BASE

    def add(self, data: Array, name: str, *, writable: bool = True, valid: Array | None = None) -> Buffer:
        """Place a byte array in the address space."""
        buf = Buffer(self._next, data, name, writable=writable, valid=valid)
        self._next = (self._next + buf.size + GUARD + 0xFFFF) & ~0xFFFF
        self.buffers.append(buf)
        return buf

    def find(self, address: int) -> Buffer | None:
        """Return the buffer that contains the byte at `address`."""
        for b in self.buffers:
            if b.base <= address < b.base + b.size:
                return b
        return None

    def describe(self, address: int, nbytes: int) -> str:
        """Describe an address relative to the nearest buffer."""
        best: Buffer | None = None
        gap = GUARD
        for b in self.buffers:
            d = max(b.base - address, address + nbytes - (b.base + b.size), 0)
            if d < gap:
                best, gap = b, d
        if best is None:
            return "no buffer is near this address"
        offset = address - best.base
        where = f"{best.name} ({best.size} bytes) at byte offset {offset}"
        if offset < 0:
            return f"{where}: {-offset} bytes before its start"
        if offset + nbytes > best.size:
            return f"{where}: {offset + nbytes - best.size} bytes past its end"
        return best.place(offset)
