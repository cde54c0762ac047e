"""Memory: buffers in one 64-bit address space, with the state of each byte.

Each allocation has its own addresses, surrounded by a guard. Pointer arithmetic, casts and swizzles therefore behave as
on the device, and every access outside an allocation is detected.

Each byte of memory is unwritten, written, or part of an mbarrier, and has one byte of state. Reads and writes access
the states in units of up to 8 bytes, as wide as the access is aligned. So a 4-byte read of 2 written bytes is detected,
and a 16-byte access costs two numbers.

A valid mbarrier is opaque: "The behavior of performing an mbarrier.init operation on a memory location containing a
valid mbarrier object is undefined; invalidate the mbarrier object using mbarrier.inval first, before repurposing the
memory location for any other purpose, including another mbarrier object" ("mbarrier.init"); "An mbarrier object must be
invalidated before using its memory location for any other purpose" (PTX ISA 9.0, "mbarrier.inval"). The contents after
mbarrier.inval are unspecified, so the bytes count as unwritten.

**Addresses.**

| memory | pointer type | address |
|---|---|---|
| global argument, constant | `ptr<1>`, `ptr` | from `GLOBAL_BASE` on; bases are multiples of 256, guards have 16 GiB |
| symmetric, of several ranks | `ptr<1>`, `ptr` | from `PEER_BASE` on; bits from `VIEW_SHIFT` on are the rank |
| shared, own block | `ptr<3>` | `SMEM_ORIGIN` + offset, the same in each block, as on the device |
| shared, cluster | `ptr<7>` | own block: as `ptr<3>`; rank r of the cluster: (r + 1) · 2^24 + that |
| shared, generic | `ptr` | `SHARED_WINDOW` + block · 2^24 + that |
| local (alloca) | `ptr`, `ptr<5>` | `LOCAL_WINDOW` + offset, the same in each thread, as on the device |

The first kilobyte of shared memory is reserved, as on sm_90, so address 0 is never valid.
"""

from __future__ import annotations

from bisect import bisect_right
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

import numpy as np

from cute_dialect.interp.errors import Fault, InterpError
from cute_dialect.interp.values import Array
from cute_dialect.spaces import AddressSpace

if TYPE_CHECKING:  # pragma: no cover
    from collections.abc import Iterable

    from cute_dialect.interp.machine.group import Group
    from cute_dialect.interp.memory.accesses import Site
    from cute_dialect.interp.memory.allocations import Allocation, Allocations
    from cute_dialect.interp.memory.buffers import Buffer
    from cute_dialect.interp.values import Array
    from cute_dialect.runtime.host_memory import HostArray


GENERIC, GLOBAL = AddressSpace.generic.llvm, AddressSpace.gmem.llvm
SHARED, SHARED_CLUSTER = AddressSpace.smem.llvm, AddressSpace.dsmem.llvm
CONSTANT, LOCAL = 4, 5
"""LLVM address spaces of pointers. The dialect has no pointers to constant and local memory."""

GLOBAL_SPACES = (GENERIC, GLOBAL, CONSTANT)
SHARED_SPACES = (SHARED, SHARED_CLUSTER)
LOCAL_SPACES = (GENERIC, LOCAL)
"""Address spaces whose pointers reach each memory."""

GLOBAL_BASE = 0x7F00_0000_0000
SHARED_WINDOW = 0x7E00_0000_0000
LOCAL_WINDOW = 0x7D00_0000_0000
WINDOW_BITS = 24
VIEW_SHIFT = 48
PEER_BASE = 0x1000_0000_0000
PEER_GUARD = 1 << 32
SMEM_ORIGIN = 1024


def misaligned(site: Site, g: Group, addr: int, lane: int) -> NoReturn:
    """Raise Fault: the address of an access is not a multiple of its alignment."""
    raise Fault(
        "misaligned",
        f"misaligned {site.verb} of {site.nbytes} bytes at {addr:#x}, which is {addr % site.align} bytes past a "
        f"multiple of {site.align}",
        lane,
        addr,
        (place(g, site, addr),),
    )


def place(g: Group, site: Site, addr: int) -> str:
    """Describe an address."""
    if site.space == SHARED or (site.space == SHARED_CLUSTER and addr < 1 << WINDOW_BITS):
        at = addr - SMEM_ORIGIN
        return f"shared memory ({g.smem_size} bytes) at byte offset {at}{g.machine.shared_names.place(at)}"
    if LOCAL_WINDOW <= addr < SHARED_WINDOW:
        at = addr - LOCAL_WINDOW
        return f"local memory of the thread ({g.local_size} bytes) at byte offset {at}{g.machine.local_names.place(at)}"
    if SHARED_WINDOW <= addr < GLOBAL_BASE:
        at = (addr & ((1 << WINDOW_BITS) - 1)) - SMEM_ORIGIN
        return f"shared memory at byte offset {at}{g.machine.shared_names.place(at)}"
    return g.memory.describe(addr, site.nbytes)


def oob_shared(site: Site, g: Group, addr: int, lane: int) -> None:
    """Raise Fault: an access leaves shared memory, or the allocation that its pointer was derived from."""
    off = (addr & ((1 << WINDOW_BITS) - 1)) - SMEM_ORIGIN
    if site.owner is not None and 0 <= off <= g.smem_size - site.nbytes:
        outside(f"{site.verb} of {site.nbytes} bytes", site.owner, off, g.machine.shared_names, lane, addr)
    raise Fault(
        "oob",
        f"out-of-bounds {site.verb} of {site.nbytes} bytes in shared memory ({g.smem_size} bytes) at byte offset "
        f"{off}{g.machine.shared_names.place(off)}",
        lane,
        addr,
    )


def outside(verb: str, owner: Allocation, off: int, names: Allocations, lane: int, addr: int) -> NoReturn:
    """Raise Fault: an access leaves the allocation of shared memory that its pointer was derived from."""
    raise Fault(
        "oob",
        f"out-of-bounds {verb} through a pointer into {owner.name} (bytes {owner.start} to "
        f"{owner.start + owner.size} of shared memory) at byte offset {off}{names.place(off)}",
        lane,
        addr,
    )


def oob_local(site: Site, g: Group, addr: int, lane: int) -> NoReturn:
    """Raise Fault: an access leaves the thread's local memory."""
    raise Fault(
        "oob",
        f"out-of-bounds {site.verb} of {site.nbytes} bytes in local memory ({g.local_size} bytes) at byte offset "
        f"{addr - LOCAL_WINDOW}{g.machine.local_names.place(addr - LOCAL_WINDOW)}",
        lane,
        addr,
    )


def oob_global(site: Site, g: Group, addr: int, lane: int) -> NoReturn:
    """Raise Fault: an access is outside all arrays in global memory."""
    raise Fault(
        "oob", f"out-of-bounds {site.verb} of {site.nbytes} bytes: {g.memory.describe(addr, site.nbytes)}", lane, addr
    )


def readonly(site: Site, buf: Buffer, addr: int, lane: int) -> NoReturn:
    """Raise Fault: a write to a read-only array."""
    raise Fault("readonly", f"{site.verb} to {buf.place(addr - buf.base)}, which is read-only", lane, addr)


def padding(site: Site, buf: Buffer, addr: int, lane: int) -> NoReturn:
    """Raise Fault: an access between the elements of a strided tensor."""
    raise Fault(
        "oob",
        f"out-of-bounds {site.verb} of {site.nbytes} bytes: {buf.name} at byte offset {addr - buf.base} "
        f"is padding between the elements of the tensor",
        lane,
        addr,
    )


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
    - has_signals: it holds signals, each of which has one writer
    - shown: the buffer whose bytes it shows at an address of another rank, else None
    - rank: the rank whose calls have the array as an argument
    - others: buffers of other ranks that hold the same bytes of the caller
    - is_read, is_written: a kernel has accessed it in this run; recorded for arrays that are passed to calls of ranks
    """

    __slots__ = (
        "base", "contents", "data", "elements", "has_signals", "is_read", "is_written", "name", "names", "others",
        "rank", "shown", "size", "source", "valid", "views", "writable", "written",
    )  # fmt: skip

    def __init__(self, base: int, data: Array, name: str, *, writable: bool = True, valid: Array | None = None) -> None:
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
        self.has_signals = False
        self.is_read = self.is_written = False
        self.rank = 0
        self.others: list[Buffer] = []
        self.shown: Buffer | None = None
        self.views: dict[tuple[np.dtype[Any], int], Array] = {}

    @property
    def root(self) -> Buffer:
        """The buffer itself, or the one whose bytes it shows."""
        return self if self.shown is None else self.shown

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

    def overlaps(self, other: Buffer) -> bool:
        """Return True if an accessible byte of the caller's memory is in both buffers."""
        a, b = [x.data.__array_interface__["data"][0] for x in (self, other)]
        low, high = max(a, b), min(a + self.size, b + other.size)
        if low >= high:
            return False
        masks = [x.valid[low - at : high - at] for x, at in ((self, a), (other, b)) if x.valid is not None]
        return not masks or bool(np.logical_and.reduce(masks).any())

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


class PeerMemory:
    """The symmetric memory of all ranks. Each rank maps it at the same addresses, apart from the bits of the rank."""

    MASK = (1 << VIEW_SHIFT) - 1

    def __init__(self) -> None:
        self.roots: list[Buffer] = []  # the buffer of each owner, in the order of `_bases`
        self._bases: list[int] = []
        self._next = PEER_BASE

    def reserve(self, size: int) -> int:
        """Return the address of the next buffer, without the bits of a rank."""
        base = self._next
        if base + size > LOCAL_WINDOW:
            raise InterpError("limit", f"{len(self.roots)} symmetric arrays fill the address space; allocate fewer")
        self._bases.append(base)
        self._next = (base + size + PEER_GUARD + 0xFFFF) & ~0xFFFF
        return base

    def find(self, address: int) -> Buffer | None:
        """Return the owner's buffer that contains the byte at an address of any rank's mapping."""
        offset = address & self.MASK
        at = bisect_right(self._bases, offset) - 1
        return self.roots[at] if at >= 0 and offset < self._bases[at] + self.roots[at].size else None


class GlobalMemory:
    """The allocations outside shared and local memory, as one GPU addresses them.

    Each rank maps memory at other addresses: bits from `VIEW_SHIFT` on are the rank, so an address of one rank is
    recognized on another. `peers` is the memory of all ranks that each of them maps.
    """

    def __init__(self, rank: int = 0, peers: PeerMemory | None = None) -> None:
        self.buffers: list[Buffer] = []
        self.rank = rank
        self._peers = peers
        self._next = GLOBAL_BASE + (rank << VIEW_SHIFT)
        self._bases: list[int] = []  # of the buffers that do not overlap others, sorted
        self._sorted: list[Buffer] = []

    def add(self, data: Array, name: str, *, writable: bool = True) -> Buffer:
        """Place a byte array in the address space."""
        buf = self._place(Buffer(self._next, data, name, writable=writable))
        self._next = (self._next + buf.size + GUARD + 0xFFFF) & ~0xFFFF
        return buf

    def add_symmetric(self, data: Array, name: str) -> Buffer:
        """Place a byte array of this rank where all ranks can map it."""
        assert self._peers is not None
        buf = Buffer(self._peers.reserve(len(data)) | self.rank << VIEW_SHIFT, data, name)
        self._peers.roots.append(buf)
        return self._place(buf)

    def _place(self, buf: Buffer) -> Buffer:
        at = bisect_right(self._bases, buf.base)
        self._bases.insert(at, buf.base)
        self._sorted.insert(at, buf)
        self.buffers.append(buf)
        return buf

    def _show(self, root: Buffer) -> Buffer:
        """Map the bytes of another rank's buffer, at the address of this rank's mapping."""
        base = root.base & PeerMemory.MASK | self.rank << VIEW_SHIFT
        buf = Buffer(base, root.data, root.name, writable=root.writable, valid=root.valid)
        buf.contents, buf.elements, buf.source, buf.shown = root.contents, root.elements, root.source, root
        return self._place(buf)

    def add_host_arrays(self, arrays: Iterable[HostArray]) -> None:
        """Add tensors at their own addresses, for kernels that load these addresses."""
        for k, array in enumerate(arrays):
            buf = Buffer(array.address, array.data, f"host tensor {k}")
            buf.source = array.tensor  # It must not be freed during the launch.
            self.buffers.append(buf)

    def find(self, address: int) -> Buffer | None:
        """Return the buffer that contains the byte at `address`."""
        at = bisect_right(self._bases, address) - 1
        if at >= 0 and address < self._bases[at] + self._sorted[at].size:
            return self._sorted[at]
        if self._peers is not None and address >> VIEW_SHIFT == self.rank:
            root = self._peers.find(address)
            if root is not None:
                return self._show(root)
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
        owner = address >> VIEW_SHIFT
        if best is None and self._peers is not None and owner != self.rank and self._peers.find(address) is not None:
            return (
                f"rank {self.rank} uses an address of rank {owner}'s mapping; addresses do not travel between ranks, "
                f"because each GPU maps memory at other addresses: use x.peer({owner})"
            )
        if best is None and self._peers is None and PEER_BASE <= address & PeerMemory.MASK < LOCAL_WINDOW:
            return (
                f"an address of rank {owner} in cute.testing.ranks, but this call runs on its own; make the call in "
                "the function that is passed to world.run"
            )
        if best is None:
            return "no buffer is near this address"
        offset = address - best.base
        where = f"{best.name} ({best.size} bytes) at byte offset {offset}"
        if offset < 0:
            return f"{where}: {-offset} bytes before its start"
        if offset + nbytes > best.size:
            return f"{where}: {offset + nbytes - best.size} bytes past its end"
        return best.place(offset)


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

    def forget_padding(self, start: int, nbytes: int, unit_bytes: int) -> None:
        """Mark the bytes after the first `unit_bytes` of each 16 bytes of a range as unwritten."""
        self.state[start : start + nbytes].reshape(-1, 16)[:, unit_bytes:] = UNWRITTEN

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
