"""Drawings of thread-value layouts, tiled copies and tiled MMAs.

A cell is an element of a tile. It shows a thread and the index of the thread's value.  Each thread has a color (eight
hues, strong and pale), and warps have borders.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, cast

from cute_dialect.algebra.compose import compose
from cute_dialect.algebra.evaluation import coshape, evaluate
from cute_dialect.algebra.leaf import AlgebraError
from cute_dialect.algebra.text import parse_shape, to_text
from cute_dialect.algebra.tiled_copy import reference_map, tile_to_thread
from cute_dialect.algebra.trees import column_major, product_each
from cute_dialect.algebra.values import Layout, layout_modes
from cute_dialect.arch.atom import CopyAtom, MmaAtom
from cute_dialect.spaces import AddressSpace
from cute_dialect.viz.cells import Border, Cell, DrawingError, Panel, few, grid
from cute_dialect.viz.drawing import Drawing, Path
from cute_dialect.viz.layouts import listed
from cute_dialect.viz.palette import kind
from cute_dialect.viz.panels import beside, cell_size, picture
from cute_dialect.viz.subjects import Sizes, has, static_given

WARP = 32
Holders = list[list[tuple[int, int]]]
"""The (thread, value) pairs that hold each element of a tile, in column-major order."""


def tile_of(tiler: Any) -> tuple[int, int]:
    """Parse the extents (M, N) of a tile. A single extent is a row.  Raises DrawingError.

    >>> tile_of("(16,128)"), tile_of((32,))
    ((16, 128), (1, 32))
    """
    given = tiler
    if isinstance(tiler, str):
        words = tiler.strip()
        try:
            given = parse_shape(words if words.startswith("(") else f"({words})")
        except AlgebraError as e:
            raise DrawingError(f"cannot read the tile '{tiler}': {e}; give a tile such as '(16,128)'") from None
    parts = cast("Sequence[Any]", given) if isinstance(given, tuple | list) else (given,)
    found: list[object] = []
    for p in parts:
        payload = getattr(p, "payload", p)
        found.append(product_each(payload.shape if isinstance(payload, Layout) else payload))
    sizes = [_times(f) for f in found]
    if not 1 <= len(sizes) <= 2 or any(not isinstance(n, int) or n < 1 for n in sizes):
        raise DrawingError(f"the tile must be (M, N) with positive extents, got {tiler}")
    m, n = (1, *sizes) if len(sizes) == 1 else sizes
    return cast("int", m), cast("int", n)


def _times(sizes: object) -> object:
    if not isinstance(sizes, tuple):
        return sizes
    total = 1
    for n in cast("tuple[object, ...]", sizes):
        if not isinstance(n, int):
            return n
        total *= n
    return total


# ------------------------------------------------------------------------------------------------------------- panels


def _counts(tv: Layout) -> tuple[int, int]:
    sizes = product_each(tv.shape)
    if not isinstance(tv.shape, tuple) or len(sizes) != 2:
        raise DrawingError(f"the thread-value layout must have rank 2 (thread, value), got {to_text(tv)}")
    return cast("int", sizes[0]), cast("int", sizes[1])


def _holders(tv: Layout, m: int, n: int) -> Holders:
    """Return the (thread, value) pairs that hold each element of a tile."""
    threads, values = _counts(tv)
    few(threads * values)
    found: Holders = [[] for _ in range(few(m * n))]
    for t in range(threads):
        for v in range(values):
            at = evaluate((t, v), tv)
            if not isinstance(at, int) or not 0 <= at < m * n:
                raise DrawingError(
                    f"thread {t}, value {v} is at {to_text(at)}, outside of the tile of {m} x {n}: {to_text(tv)}"
                )
            found[at].append((t, v))
    return found


def _name(t: int, v: int) -> str:
    return f"T{t}V{v}"


def _held(holders: Holders, m: int, n: int) -> dict[int, list[str]]:
    """Return the coordinates "(i,j)" of each thread's values, in order of the values."""
    places: dict[int, list[tuple[int, str]]] = {}
    for at, held in enumerate(holders):
        for t, v in held:
            places.setdefault(t, []).append((v, f"({at % m},{at // m})"))
    return {t: [where for _, where in sorted(found)] for t, found in places.items()}


def _cells(holders: Holders, m: int, n: int, unit: Callable[[int], str] = str) -> Callable[[int, int], Cell]:
    places = _held(holders, m, n)

    def cell(i: int, j: int) -> Cell:
        held = holders[i + m * j]
        if not held:
            return Cell((), f"({i},{j}): no thread", "none", "")
        t, v = held[0]
        more = f"+{len(held) - 1}" if len(held) > 1 else ""
        back = f"\nT{t}: {listed(places[t])}"
        said = f"({i},{j}): {listed(_name(*h) for h in held)}{back}"
        return Cell((f"T{t}{more}", f"V{v}"), said, kind(t), f"t{t}")

    return cell


def _shared_notes(panels: Sequence[Panel]) -> list[str]:
    """Return the note that explains ``T0+1``, if a cell shows it."""
    several = any("+" in line for p in panels for row in p.cells for cell in row for line in cell.lines[:1])
    return ["T0+1: held by thread 0 and one more thread"] if several else []


def _warps(holders: Holders, m: int) -> list[Border]:
    """Return the borders of warps, empty if there is only one."""
    warps: dict[int, set[tuple[int, int]]] = {}
    for at, held in enumerate(holders):
        for t, _ in held[:1]:
            warps.setdefault(t // WARP, set()).add((at % m, at // m))
    return [Border(cells, 2) for cells in warps.values()] if len(warps) > 1 else []


def _transposed(p: Panel) -> Panel:
    cells = [[p.cells[i][j] for i in range(p.rows)] for j in range(p.columns)]
    borders = [Border({(j, i) for i, j in b.cells}, b.weight) for b in p.borders]
    return Panel(p.title, cells, p.column_breaks, p.row_breaks, borders, names=(p.names[1], p.names[0]))


def draw_tv(layout: Any, tiler: Any, *, sizes: Sizes = None, file: Path | None = None) -> Drawing:
    """Draw a thread-value layout over a tile ``(M, N)``: cells like ``T3`` over ``V1``, and a border per warp.

    ``layout`` maps (thread, value) to a column-major index in the tile.  Raises DrawingError if it is dynamic or leaves
    the tile.

    >>> draw_tv("(2,2):(2,1)", (2, 2)).panels[0].cells[1][0].lines
    ('T0', 'V1')
    """
    tv = static_given(layout, sizes, "draw_tv")
    if not isinstance(tv, Layout):
        raise DrawingError(f"draw_tv needs a layout without swizzle, got {to_text(tv)}")
    _counts(tv)
    m, n = tile_of(tiler)
    holders = _holders(tv, m, n)
    panel = Panel("", grid(m, n, _cells(holders, m, n)), borders=_warps(holders, m))
    return beside(f"{to_text(tv)} over {m} x {n}", [panel], _shared_notes([panel])).saved(file)


# --------------------------------------------------------------------------------------------------------------- copies


class CopyParts(NamedTuple):
    """The parts of a tiled copy.

    - tv: thread-value layout over the tile ``tile``, in terms of ``ref``
    - src, dst: (thread, value) to an element of one instruction
    - bits: per element; spaces: memory spaces of both sides ("smem", "gmem", …), "any" if open
    """

    name: str
    tv: Layout
    tile: tuple[int, int]
    ref: Layout
    src: Layout
    dst: Layout
    bits: int
    spaces: tuple[str, str]

    def partition(self, side: str, layout: Layout) -> tuple[Layout, Layout]:
        """Partition a block of memory on a side ("src" or "dst"), and return ``(thread, (v, rest_v))`` and the rest."""
        atom = cast("tuple[int, int]", tuple(product_each(self.ref.shape)))
        own = reference_map(self.ref, self.src if side == "src" else self.dst)
        try:
            tile, rest = layout_modes(tile_to_thread(layout, self.tile, self.tv, atom, own))
        except AlgebraError as e:
            raise DrawingError(f"{to_text(layout)} cannot be partitioned by {self.name}: {e}") from None
        return tile, rest

    def values(self, side: str) -> int:
        """Return the values per thread of one instruction, on a side."""
        return cast("int", product_each((self.src if side == "src" else self.dst).shape)[1])


def is_copy(x: Any) -> bool:
    """Return True for a tiled copy or a copy atom."""
    return isinstance(x, CopyAtom) or has(x, "layout_tv_tiled") or has(x, "layout_src_tv")


def copy_parts(x: Any) -> CopyParts:
    """Return the parts of a tiled copy of the language, or of a single atom.  Raises DrawingError for other objects."""
    if isinstance(x, CopyAtom):
        bits = int(x.element[1:])  # b8 … b128: the instruction's own element
        ref, src, dst = (x.in_elements(side, bits) for side in ("ref", "src", "dst"))
        return _alone(x.name, ref, src, dst, bits, (x.src_space, x.dst_space))
    if not is_copy(x):
        raise DrawingError(f"draw_copy needs a tiled copy or a copy atom, got {x!r}")
    atom = getattr(x, "atom", x)
    row = getattr(atom.type, "row", None)
    row = row() if callable(row) else row
    src, dst = (cast("Layout", side.payload) for side in (atom.layout_src_tv, atom.layout_dst_tv))
    known = isinstance(row, CopyAtom)
    bits = cast("int", atom.value_type.width)
    ref = dst if known and row.ref_side == "dst" else src
    spaces = (row.src_space, row.dst_space) if known else ("any", "any")
    name = atom.op.name
    if not hasattr(x, "layout_tv_tiled"):
        return _alone(name, ref, src, dst, bits, spaces)
    return CopyParts(name, x.layout_tv_tiled.payload, tile_of(x.tiler_mn), ref, src, dst, bits, spaces)


def _alone(name: str, ref: Layout, src: Layout, dst: Layout, bits: int, spaces: tuple[str, str]) -> CopyParts:
    """Return the parts of one instruction. Its data is arranged in rows of one thread's values on the wider side."""
    count = cast("int", coshape(ref))
    row = max(cast("int", product_each(side.shape)[1]) for side in (src, dst))
    row = row if count % row == 0 and row > 1 else min(count, WARP)
    high = count // row if count % row == 0 else 1
    wide = count // high
    tv = compose(Layout((wide, high), (high, 1)), ref)
    return CopyParts(name, tv, (high, wide), ref, src, dst, bits, spaces)


def draw_copy(x: Any, *, file: Path | None = None) -> Drawing:
    """Draw a tiled copy: reading threads on the left, writing threads on the right.

    A heavy border marks the data that the first instruction moves.  ``x`` is a tiled copy of the language, or a copy
    atom (an atom of the table, which ``draw`` finds by name).

    >>> from cute_dialect.arch import ATOMS
    >>> [p.title for p in draw_copy(ATOMS["SM75_U32x1_LDSM_N"]).panels]
    ['source (smem)', 'destination (rmem)']
    """
    parts = copy_parts(x)
    m, n = parts.tile
    threads = cast("int", product_each(parts.ref.shape)[0])
    panels: list[Panel] = []
    for side, word, space in zip(("src", "dst"), ("source", "destination"), parts.spaces):
        tv, _ = parts.partition(side, Layout((m, n), column_major((m, n))))
        holders = _holders(tv, m, n)
        values = parts.values(side)
        first = {
            (at % m, at // m) for at, held in enumerate(holders) if any(t < threads and v < values for t, v in held)
        }
        borders = [*_warps(holders, m), Border(first, 3)]
        title = word if space == "any" else f"{word} ({space})"
        panels.append(Panel(title, grid(m, n, _cells(holders, m, n)), borders=borders))
    moved = threads * parts.values("dst") * parts.bits // 8
    by = "one thread moves" if threads == 1 else f"{threads} threads move"
    what = f"{moved} bytes" if threads * parts.values("dst") * parts.bits >= 8 else f"{parts.bits} bits"
    notes = [f"heavy border: {what} that {by} with one instruction; {parts.bits}-bit values"]
    notes += _shared_notes(panels)
    return beside(f"{parts.name}: {m} x {n}", panels, notes).saved(file)


# ----------------------------------------------------------------------------------------------------------------- MMAs


def is_mma(x: Any) -> bool:
    """Return True for a tiled MMA or an MMA atom."""
    return isinstance(x, MmaAtom) or has(x, "tv_layout_A") or _mma_row(x) is not None


def _mma_row(x: Any) -> MmaAtom | None:
    row = getattr(getattr(x, "type", None), "row", None)
    row = row() if callable(row) else row
    return row if isinstance(row, MmaAtom) else None


class _Product(NamedTuple):
    """The parts of an MMA: tiles of A ``(M, K)``, B ``(N, K)`` and C ``(M, N)``, and their thread-value layouts."""

    title: str
    tiles: dict[str, tuple[int, int]]
    layouts: dict[str, Layout]
    shared: tuple[str, ...]


def _product_parts(x: Any) -> _Product:
    row = x if isinstance(x, MmaAtom) else _mma_row(x) or _mma_row(getattr(x, "atom", None))
    if row is None:
        raise DrawingError(f"draw_mma needs a tiled MMA or an MMA atom, got {x!r}")
    shared = tuple(o for o, source in (("A", row.source_a), ("B", row.source_b)) if source == AddressSpace.smem)
    if isinstance(x, MmaAtom) or not has(x, "tv_layout_A"):
        tiles = {o: row.tile(o) for o in "ABC"}
        return _Product(row.name, tiles, {o: row.layout(o) for o in "ABC"}, shared)
    m, n, k = cast("tuple[int, int, int]", x.tile_shape_mnk)
    tiles = {"A": (m, k // 2 if row.metadata is not None else k), "B": (n, k), "C": (m, n)}
    layouts = {o: cast("Layout", x.tv_layout(o).payload) for o in "ABC"}
    return _Product(f"{row.name} over {m} x {n} x {k}", tiles, layouts, shared)


def draw_mma(x: Any, *, file: Path | None = None) -> Drawing:
    """Draw the tiles of an MMA with their threads and values: A on the left, B on top, C where the two meet.

    ``x`` is a tiled MMA of the language, or an MMA atom.  An operand in shared memory, which all threads read through a
    descriptor, shows the index of the element.

    >>> from cute_dialect.arch import ATOMS
    >>> [p.cells[0][0].lines for p in draw_mma(ATOMS["SM80_16x8x16_F32F16F16F32_TN"]).panels]
    [('T0', 'V0'), ('T0', 'V0'), ('T0', 'V0')]
    """
    parts = _product_parts(x)
    panels: dict[str, Panel] = {}
    for operand in "ABC":
        rows, columns = parts.tiles[operand]
        names = {"A": ("M", "K"), "B": ("N", "K"), "C": ("M", "N")}[operand]
        if operand in parts.shared:
            cell, borders = _shared_cells(parts.layouts[operand], rows, columns), []
        else:
            holders = _holders(parts.layouts[operand], rows, columns)
            cell, borders = _cells(holders, rows, columns), _warps(holders, rows)
        name = f"{operand} (shared memory)" if operand in parts.shared else operand
        made = Panel(name, grid(rows, columns, cell), borders=borders, names=names)
        panels[operand] = _transposed(made) if operand == "B" else made
    a, b, c = (panels[o] for o in "ABC")
    side = cell_size(max(a.columns + c.columns, b.rows + c.rows))
    left, top = a.left + a.columns * side + 30 + c.left, b.top + b.rows * side + 20 + c.top
    placed = [(a, a.left, top), (b, left, b.top), (c, left, top)]
    notes = (
        [f"{' and '.join(parts.shared)} in shared memory, which all threads read through descriptors"]
        if parts.shared
        else []
    )
    return picture(parts.title, placed, [*notes, *_shared_notes([a, b, c])], side).saved(file)


def _shared_cells(tv: Layout, rows: int, columns: int) -> Callable[[int, int], Cell]:
    """Return the cells of an operand in shared memory, which is common to all threads: the index of each element."""
    _, values = _counts(tv)
    number = {cast("int", evaluate((0, v), tv)): v for v in range(values)}

    def cell(i: int, j: int) -> Cell:
        at = i + rows * j
        if at not in number:
            # The threads of a tiled MMA may read different parts of the operand.
            return Cell((), f"({i},{j}): another part of shared memory", "none", "")
        return Cell((f"V{number[at]}",), f"({i},{j}): V{number[at]} in shared memory, of all threads", "none", "")

    return cell
