"""Drawings of TMA copies: the box of a tensor map on the left, and its position in shared memory on the right.

Cells are the 16-byte units that a swizzle moves.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, cast

from cute_dialect.algebra.values import Swizzle
from cute_dialect.arch.descriptors import SWIZZLES
from cute_dialect.arch.elements import bits_of
from cute_dialect.arch.tensor_map import TensorMapSpec
from cute_dialect.viz.cells import Cell, DrawingError, Panel, grid
from cute_dialect.viz.drawing import Drawing, Path
from cute_dialect.viz.palette import kind
from cute_dialect.viz.panels import beside

UNIT = 16
"""Bytes that a TMA swizzle moves as a unit."""

LINE = 128
"""Bytes of one row of the 32 banks."""

MAX_ROWS = 16


class TmaBox(NamedTuple):
    """The box of a TMA copy.

    - element, bits: name and bits of an element
    - counts: elements moved along each dimension, innermost first
    - swizzle: in bytes; notes: further properties as text
    """

    element: str
    bits: int
    counts: tuple[int, ...]
    swizzle: int
    notes: tuple[str, ...]

    @property
    def row_bytes(self) -> int:
        """Bytes along dimension 0."""
        return self.counts[0] * self.bits // 8

    @property
    def rows(self) -> int:
        """Number of rows of dimension 0 in the box."""
        n = 1
        for c in self.counts[1:]:
            n *= c
        return n

    def place(self, byte: int) -> int:
        """Return the offset in shared memory of a byte of the compact box.

        >>> TmaBox("f16", 16, (64, 8), 128, ()).place(128)  # the second row: units are exchanged in pairs
        144
        """
        if not self.swizzle:
            return byte
        bits = SWIZZLES.index(self.swizzle)
        return cast("int", Swizzle(bits, 4, 3)(byte))


def is_tma(x: Any) -> bool:
    """Return True for a TMA atom of the language, its type, or a tensor map's description."""
    if isinstance(x, TensorMapSpec):
        return True
    data = getattr(getattr(x, "type", x), "data", None)
    return (hasattr(data, "box") and hasattr(data, "interleave")) or _has_columns(data)


def _has_columns(data: Any) -> bool:
    """Return True for an im2col tensor map, which moves columns of pixels."""
    return hasattr(data, "channels") and hasattr(data, "pixels")


def tma_box(x: Any) -> TmaBox:
    """Return the box of a TMA atom or of a :class:`TensorMapSpec`.  Raises DrawingError for anything else."""
    if isinstance(x, TensorMapSpec):
        extents = " x ".join(str(d.extent) for d in x.dims)
        notes = [f"tensor {extents} (dimension 0 first), strides of {', '.join(map(str, x.strides)) or 'no'} bytes"]
        if x.boxes > 1:
            notes.append(f"{x.boxes} boxes fill a tile")
        if x.multicast > 1:
            notes.append(f"multicast: each of {x.multicast} blocks loads a part for all")
        counts, steps = tuple(d.count for d in x.dims), tuple(d.element_stride for d in x.dims)
        held = _held(x.element, x.unpack, notes)
        return _box(held, x.box, counts, steps, x.swizzle, x.interleave, x.oob_fill, x.l2_promotion, notes)
    if not is_tma(x):
        raise DrawingError(f"draw_tma needs a TMA atom from make_tiled_tma_atom, got {x!r}")
    m = getattr(x, "type", x).data
    notes = [f"reduction: {m.reduction}"] if getattr(m, "reduction", "") else []
    if _has_columns(m):
        if m.mode:
            halo = f", with a halo of {m.halo}" if m.halo else ""
            notes.append(f"{m.mode}: {m.pixels} pixels along W and N{halo}")
        notes.insert(0, "columns of pixels (im2col): dimension 0 are channels, dimension 1 pixels")
        corners = f"base pixels from {m.lower} to {m.upper} of the tensor's corners"
        notes.insert(1, f"{corners}, steps of {m.pixel_strides or (1,) * len(m.lower)}, W first")
        counts = (m.channels, m.rows)
        return _box(str(m.element), counts, counts, (1, 1), m.swizzle, 0, m.oob, m.l2, notes)
    if m.mode:
        notes.append(f"{m.mode}: four rows by index, each of {m.box[0]} elements")
    held = _held(str(m.element), m.unpack, notes)
    return _box(held, m.box, m.counts, m.strides, m.swizzle, m.interleave, m.oob, m.l2, notes)


def _held(element: str, unpack: int, notes: list[str]) -> str:
    """Return the element type of shared memory, and note elements that a load unpacks."""
    if not unpack:
        return element
    notes.append(f"unpacked: {unpack} elements {element} at the start of each {unpack} bytes")
    return "i8"


def _box(
    element: str, box: tuple[int, ...], counts: tuple[int, ...], steps: tuple[int, ...], swizzle: int, interleave: int,
    oob: str, l2: int, notes: list[str],
) -> TmaBox:  # fmt: skip
    if any(s != 1 for s in steps):
        notes.append(f"every {', '.join(map(str, steps))}-th element along the dimensions of a box of {_by(box)}")
    if interleave:
        notes.append(f"interleaved by {interleave} bytes")
    notes.append(f"out of bounds: {'NaN' if oob == 'nan' else 'zero'}; L2 promotion: {f'{l2} bytes' if l2 else 'none'}")
    return TmaBox(element, bits_of(element), counts, swizzle, tuple(notes))


def _by(numbers: tuple[int, ...]) -> str:
    return " x ".join(map(str, numbers))


def draw_tma(x: Any, *, file: Path | None = None) -> Drawing:
    """Draw the data that one TMA instruction moves: the 16-byte units of its box, and their positions in shared memory.

    ``x`` is a TMA atom of the language (the first result of ``make_tiled_tma_atom``) or a ``TensorMapSpec``.  Only the
    first rows are drawn. Notes below state the bytes, the swizzle, the alignment and the fill value outside the tensor.

    >>> from cute_dialect.algebra import Layout
    >>> from cute_dialect.arch.descriptors import smem_tile
    >>> from cute_dialect.arch.tma import derive
    >>> spec = derive(Layout("(4096,1024):(1024,1)"), smem_tile("k", 128, "f16", (128, 64)), (128, 64), "f16")
    >>> draw_tma(spec).title
    'TMA box 64 x 128 of f16: 16384 bytes, swizzle of 128 bytes'
    """
    b = tma_box(x)
    if b.row_bytes % UNIT:
        raise DrawingError(f"a row of the box must be a multiple of {UNIT} bytes, got {b.row_bytes}")
    units, rows = b.row_bytes // UNIT, min(b.rows, MAX_ROWS)
    each = UNIT * 8 // b.bits
    lines = -(-rows * b.row_bytes // LINE)

    def row_name(row: int) -> str:
        at: list[int] = []
        for c in b.counts[1:]:
            at.append(row % c)
            row //= c
        return ",".join(map(str, at)) or "0"

    inverse = {b.place(UNIT * k): k for k in range(rows * units)}

    def said(k: int) -> tuple[str, str]:
        row, unit = divmod(k, units)
        place = b.place(UNIT * k)
        first = unit * each
        name = f"elements {first} to {first + each - 1} of row {row_name(row)}"
        return name, f"bytes {place} to {place + UNIT - 1} (banks {place // 4 % 32} to {place // 4 % 32 + 3})"

    def in_box(i: int, j: int) -> Cell:
        k = i * units + j
        name, place = said(k)
        return Cell((str(j * each),), f"{name} → {place}", kind(j), f"k{k}")

    def in_memory(i: int, j: int) -> Cell:
        k = inverse.get(i * LINE + j * UNIT)
        if k is None:
            return Cell((), f"bytes {i * LINE + j * UNIT} and on: not of this box", "none")
        name, place = said(k)
        return Cell((row_name(k // units), str(k % units * each)), f"{place} ← {name}", kind(k % units), f"k{k}")

    panels = [
        _panel(
            "box: elements of dimension 0 →", rows, units, in_box, b.rows > rows, [row_name(i) for i in range(rows)]
        ),
        _panel(
            "shared memory: 128 bytes per row",
            lines,
            min(LINE // UNIT, lines * LINE // UNIT),
            in_memory,
            b.rows > rows,
            [str(i * LINE) for i in range(lines)],
        ),
    ]
    size = b.row_bytes * b.rows
    notes = [
        f"{size} bytes, counted by the mbarrier; each cell has {UNIT} bytes ({each} elements): its row, first element",
        f"swizzle of {b.swizzle} bytes; a tile starts at a multiple of {max(LINE, 8 * b.swizzle)} bytes"
        if b.swizzle
        else f"no swizzle; a tile starts at a multiple of {LINE} bytes",
        *b.notes,
    ]
    how = f"swizzle of {b.swizzle} bytes" if b.swizzle else "no swizzle"
    title = f"TMA box {_by(b.counts)} of {b.element}: {size} bytes, {how}"
    return beside(title, panels, notes).saved(file)


def _panel(
    title: str, rows: int, columns: int, cell: Callable[[int, int], Cell], more: bool, labels: list[str]
) -> Panel:
    starts = [(i, 1) for i in range(8, rows, 8)]
    return Panel(
        title,
        grid(rows, columns, cell),
        row_starts=starts,
        more=(more, False),
        numbered=(True, False),
        row_labels=labels,
    )
