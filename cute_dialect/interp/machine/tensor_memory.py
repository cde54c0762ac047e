"""Tensor memory of a block: 128 lanes of 512 words of 32 bits, their allocation, and the layouts of tcgen05.ld and st.

An address has its lane in bits 31..16 and its column, in words, in bits 15..0. Each half of a word is valid or not,
because `.unpack::16b` and f16 accumulators write only lower halves. A warp allocates columns and gets the number of
the first one. The schedules "reverse" and "adversarial" allocate from the last column down, so a kernel that assumes
column 0 is found. Tensor memory that other blocks of the SM hold is not modelled.

Example: thread t holds lane t and column r of `tcgen05.ld.32x32b.x4` in register r:

>>> fragment("32x32b", 4).lanes[:, 3].tolist() == list(range(32))
True

Sources: PTX ISA 9.1, 9.7.16.1 "Tensor Memory", 9.7.16.2 (shapes of data movement), 9.7.16.7 (allocation).
"""

# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false, reportUnknownMemberType=false

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from cute_dialect.interp.errors import Fault, OpInfo
from cute_dialect.interp.values import Array

if TYPE_CHECKING:  # pragma: no cover
    from cute_dialect.interp.machine.group import Group

LANES = 128
COLUMNS = 512
LOW, HIGH, WHOLE = 1, 2, 3  # valid halves of a word
GARBAGE = 0xFFFF_FFFF  # content of new tensor memory: NaN as a float, -1 as an integer
SHAPES = {"32x32b": 1, "16x64b": 1, "16x128b": 2, "16x256b": 4, "16x32bx2": 1}
"""Registers of a thread per repetition of each shape."""
MOST_REGISTERS = 128


class Address(NamedTuple):
    """An address of tensor memory."""

    lane: int
    column: int

    @staticmethod
    def of(bits: int) -> Address:
        """Decode an address. The lane keeps all 16 bits, so an address out of range is seen by its use."""
        return Address(bits >> 16 & 0xFFFF, bits & 0xFFFF)


class Rect(NamedTuple):
    """A rectangle of words: a bit mask of lanes, and the columns from `first` up to `end`."""

    lanes: int
    first: int
    end: int

    def overlap(self, other: Rect) -> Rect | None:
        """Return the words in both rectangles, None if there are none."""
        lanes, first, end = self.lanes & other.lanes, max(self.first, other.first), min(self.end, other.end)
        return Rect(lanes, first, end) if lanes and first < end else None

    def covers(self, other: Rect) -> bool:
        """Return True if all words of `other` are in this rectangle."""
        return not other.lanes & ~self.lanes and self.first <= other.first and other.end <= self.end

    def __str__(self) -> str:
        return f"{lanes_text(self.lanes)}, {_range('column', self.first, self.end)}"


def _range(noun: str, first: int, end: int) -> str:
    return f"{noun} {first}" if end == first + 1 else f"{noun}s {first} to {end - 1}"


def lanes_text(mask: int) -> str:
    """Format a set of lanes, such as `lanes 0 to 15 and 32 to 47`."""
    runs: list[tuple[int, int]] = []
    lane = 0
    while mask >> lane:
        if mask >> lane & 1:
            end = lane
            while mask >> end & 1:
                end += 1
            runs.append((lane, end))
            lane = end
        else:
            lane += 1
    if len(runs) == 1:
        return _range("lane", *runs[0])
    return "lanes " + " and ".join(str(a) if b == a + 1 else f"{a} to {b - 1}" for a, b in runs)


def lane_run(first: int, count: int) -> int:
    """Return the mask of `count` lanes from `first` on."""
    return ((1 << count) - 1) << first


class Fragment(NamedTuple):
    """The words that the registers of a warp hold, relative to the address of the instruction.

    - lanes, columns: of shape (thread, register); with 16-bit packing (thread, register, half)
    - rects: the same words as rectangles
    """

    lanes: Array
    columns: Array
    rects: tuple[Rect, ...]


@lru_cache(maxsize=512)
def fragment(shape: str, count: int, offset: int = 0, packed: bool = False) -> Fragment:
    """Return the words of tcgen05.ld or st of a shape repeated `count` times.

    Args:
        offset: Column offset of the upper threads of 16x32bx2.
        packed: True for .pack::16b and .unpack::16b. Half h of a register is the lower half of the word in column
            2·c + h, where c is the column without packing.
    """
    t = np.arange(32)[:, None]
    r = np.arange(SHAPES[shape] * count)[None, :]
    if shape == "32x32b":
        lanes, columns = t + 0 * r, r + 0 * t
    elif shape == "16x64b":
        lanes, columns = t // 4 + 8 * (t % 2) + 0 * r, 2 * r + t // 2 % 2
    elif shape == "16x128b":
        lanes, columns = t // 4 + 8 * (r % 2), 4 * (r // 2) + t % 4
    elif shape == "16x256b":
        lanes, columns = t // 4 + 8 * (r // 2 % 2), 8 * (r // 4) + 2 * (t % 4) + r % 2
    else:
        lanes, columns = t % 16 + 0 * r, r + 0 * t
    if packed:
        half = np.arange(2)
        lanes, columns = np.broadcast_to(lanes[..., None], (*lanes.shape, 2)), 2 * columns[..., None] + half
    if shape == "16x32bx2":
        upper = np.reshape(np.arange(32) >= 16, (32,) + (1,) * (columns.ndim - 1))
        columns = columns + np.where(upper, offset, 0)
    width = 32 if shape == "32x32b" else 16
    span = int(columns[0].max()) + 1 if shape in ("32x32b", "16x32bx2") else int(columns.max()) + 1
    rects = [Rect(lane_run(0, width), 0, span)]
    if shape == "16x32bx2":
        rects.append(Rect(lane_run(0, width), offset, offset + span))
    return Fragment(np.ascontiguousarray(lanes), np.ascontiguousarray(columns), tuple(rects))


class Allocation:
    """Columns that a warp has allocated with one tcgen05.alloc."""

    __slots__ = ("columns", "first", "info", "warp")

    def __init__(self, first: int, columns: int, warp: int, info: OpInfo) -> None:
        self.first = first
        self.columns = columns
        self.warp = warp
        self.info = info

    @property
    def end(self) -> int:
        return self.first + self.columns

    @property
    def note(self) -> str:
        """Description for a diagnostic."""
        return f"{_range('column', self.first, self.end)} were allocated at {_at(self.info)} by warp {self.warp}"


def _at(info: OpInfo) -> str:
    return info.location or info.text


class TensorMemory:
    """The tensor memory of a block."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.words = np.full((LANES, COLUMNS), GARBAGE, np.uint32)
        self.valid = np.zeros((LANES, COLUMNS), np.uint8)
        self.owners: list[Allocation | None] = [None] * COLUMNS
        self.freed: list[tuple[Allocation, OpInfo]] = []
        self.allocations: list[Allocation] = []
        self.relinquished: OpInfo | None = None
        self.last: Allocation | None = None  # latest allocation, freed or not
        self.waiting: tuple[int, int] | None = None  # (warp, columns) of an alloc that waits for its peer or for room
        self.requester: tuple[Group, OpInfo] | None = None  # warp and op of the last alloc
        self.granted = -1  # first column of the alloc that waits, set by the other block of a pair
        self.returned = 0  # deallocations of a pair that this block has executed

    # -- allocation ---------------------------------------------------------------------------------------------------

    def check_alloc(self, columns: int, warp: int) -> None:
        """Check that a warp may allocate columns now. Raises Fault."""
        if columns not in (32, 64, 128, 256, 512):
            raise _fault(f"tcgen05.alloc of {columns} columns; use 32, 64, 128, 256 or 512")
        if self.relinquished is not None:
            raise _fault(
                "tcgen05.alloc after tcgen05.relinquish_alloc_permit; a block cannot allocate after it has given up "
                "the permit",
                f"the permit was given up at {_at(self.relinquished)}",
            )
        if self.last is not None and columns > self.last.columns:
            raise _fault(
                f"tcgen05.alloc of {columns} columns after one of {self.last.columns}; allocate in order of "
                "decreasing sizes",
                self.last.note,
            )
        if self.waiting is not None and self.waiting[0] != warp:
            raise _fault(f"tcgen05.alloc by warp {warp} while warp {self.waiting[0]} allocates; one warp may allocate")

    def room(self, columns: int, last: bool, others: Sequence[TensorMemory] = ()) -> int:
        """Return the first of `columns` free columns, here and in `others`; -1 if there is no room.

        `last` selects the last such columns instead of the first.
        """
        starts = range(0, COLUMNS - columns + 1, columns)
        for start in reversed(starts) if last else starts:
            if all(m.owners[c] is None for m in (self, *others) for c in range(start, start + columns)):
                return start
        return -1

    def allocate(self, first: int, columns: int, warp: int, info: OpInfo) -> Allocation:
        """Allocate columns from `first` on. Their contents become undefined."""
        a = Allocation(first, columns, warp, info)
        self.owners[first : a.end] = [a] * columns
        self.allocations.append(a)
        self.last = a
        self.valid[:, first : a.end] = 0
        self.words[:, first : a.end] = GARBAGE
        return a

    def free(self, bits: int, columns: int, info: OpInfo) -> Allocation:
        """Free an allocation. Raises Fault if the operands are not those of an allocation."""
        lane, column = Address.of(bits)
        found = next((a for a in self.allocations if a.first == column), None) if lane == 0 else None
        if found is None:
            before = next(((a, i) for a, i in reversed(self.freed) if a.first == column and lane == 0), None)
            if before is not None:
                raise _fault(
                    f"tcgen05.dealloc of column {column}, which has already been freed; free each allocation once",
                    f"it was freed at {_at(before[1])}",
                )
            raise _fault(
                f"tcgen05.dealloc of lane {lane}, column {column}, where no allocation begins; pass the address that "
                "tcgen05.alloc wrote",
                *(a.note for a in self.allocations),
            )
        if columns != found.columns:
            raise _fault(
                f"tcgen05.dealloc of {columns} columns of an allocation of {found.columns}; pass the size of the "
                "allocation",
                found.note,
            )
        self.allocations.remove(found)
        self.freed.append((found, info))
        self.owners[found.first : found.end] = [None] * found.columns
        return found

    def check_access(self, rects: Sequence[Rect], name: str, what: str = "") -> None:
        """Check that words are inside the tensor memory and allocated. Raises Fault."""
        for rect in rects:
            if rect.end > COLUMNS or rect.lanes >> LANES:
                own = " and ".join(_range("column", a.first, a.end) for a in self.allocations)
                raise Fault(
                    "oob",
                    f"{name} accesses {rect} of tensor memory{what}; it has {LANES} lanes and {COLUMNS} columns, of "
                    f"which the block has allocated {own or 'none'}",
                    notes=tuple([a.note for a in self.allocations]),
                )
            missing = next((c for c in range(rect.first, rect.end) if self.owners[c] is None), -1)
            if missing < 0:
                continue
            freed = next(((a, i) for a, i in reversed(self.freed) if a.first <= missing < a.end), None)
            if freed is not None:
                why, notes = "after it was freed", (f"it was freed at {_at(freed[1])}",)
            else:
                why = "which is not allocated; allocate more columns, or access fewer"
                notes = tuple(a.note for a in self.allocations) or ("no tcgen05.alloc has been executed",)
            raise Fault("oob", f"{name} accesses column {missing} of tensor memory{what}, {why}", notes=notes)

    def check_end(self) -> tuple[Fault, OpInfo] | None:
        """Return the fault of a block that ends with allocated columns, and the op that allocated them."""
        for a in self.allocations:
            text = (
                f"the block ends, but {_range('column', a.first, a.end)} of tensor memory, allocated here, are not "
                "freed; execute tcgen05.dealloc before the end"
            )
            return _fault(text), a.info
        return None

    # -- words --------------------------------------------------------------------------------------------------------

    def read(self, address: Address, f: Fragment) -> tuple[Array, Array]:
        """Return the words of a fragment and their valid halves, each of shape (thread, register)."""
        at = f.lanes + address.lane, f.columns + address.column
        words, valid = self.words[at], self.valid[at]
        if f.lanes.ndim == 3:
            words = words[..., 0] & np.uint32(0xFFFF) | words[..., 1] << np.uint32(16)
            valid = (valid[..., 0] & LOW) | (valid[..., 1] & LOW) << 1
        return words, valid

    def write(self, address: Address, f: Fragment, words: Array, valid: Array) -> None:
        """Write the words of a fragment, with the halves of them that are valid."""
        at = f.lanes + address.lane, f.columns + address.column
        if f.lanes.ndim == 3:
            words = np.stack([words & np.uint32(0xFFFF), words >> np.uint32(16)], axis=-1)
            valid = np.stack([valid & LOW, valid >> 1 & LOW], axis=-1)
        self.words[at] = words
        self.valid[at] = valid

    def first_invalid(self, rect: Rect, halves: int) -> Address | None:
        """Return the first word of a rectangle that lacks one of the halves, None if all are valid."""
        lanes = lane_list(rect.lanes)
        bad = (self.valid[lanes, rect.first : rect.end] & halves) != halves
        if not bad.any():
            return None
        i, j = (int(x[0]) for x in np.nonzero(bad))
        return Address(int(lanes[i]), rect.first + j)


@lru_cache(maxsize=256)
def lane_list(mask: int) -> Array:
    """Return the numbers of the lanes in a mask."""
    return np.array([lane for lane in range(mask.bit_length()) if mask >> lane & 1])


def _fault(text: str, *notes: str) -> Fault:
    return Fault("tcgen05", text, notes=notes)


def window(rects: Sequence[Rect], address: Address) -> tuple[Rect, ...]:
    """Return rectangles relative to an address as absolute ones."""
    return tuple(Rect(r.lanes << address.lane, r.first + address.column, r.end + address.column) for r in rects)


def check_window(address: Address, shape: str, warp: int, name: str) -> None:
    """Check the lane of a tcgen05.ld or st: a warp reaches its own 32 lanes. Raises Fault."""
    base = 32 * (warp % 4)
    allowed = (base,) if shape == "32x32b" else (base, base + 16)
    if address.lane not in allowed:
        use = " or ".join(map(str, allowed))
        raise Fault(
            "tcgen05",
            f"{name}.{shape} of warp {warp} at lane {address.lane}; a warp reaches lanes {base} to {base + 31} "
            f"(32 · (warp mod 4)), so the lane of the address must be {use}",
        )
