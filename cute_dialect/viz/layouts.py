"""Drawings of layouts: offsets in a grid, divided by a tiler, before and after a swizzle."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import product as all_of
from typing import Any, cast

from cute_dialect.algebra.evaluation import evaluate, idx2crd
from cute_dialect.algebra.leaf import AlgebraError
from cute_dialect.algebra.text import parse_tile, to_text
from cute_dialect.algebra.tiling import zipped_divide
from cute_dialect.algebra.trees import column_major, is_static, product, tree_leaves
from cute_dialect.algebra.values import ComposedLayout, IntTuple, Layout, Swizzle, layout_modes
from cute_dialect.viz.cells import Border, Cell, DrawingError, Panel, breaks, few, grid
from cute_dialect.viz.drawing import Drawing, Path
from cute_dialect.viz.palette import kind, level
from cute_dialect.viz.panels import beside
from cute_dialect.viz.subjects import Sizes, Subject, element_bits, extents, layout_given, static_given, swizzle_given

UNKNOWN = 4
"""Rows or columns drawn for a mode of unknown extent."""

LINE = 32
"""Coordinates per row for a layout of rank 1 that is longer than two rows."""

MAX_PANELS = 64
_LISTED = 8


def listed(words: Iterable[object]) -> str:
    """Join words with commas, abbreviated after the first few.

    >>> listed(range(10))
    '0, 1, 2, 3, 4, 5, 6, 7 and 2 more'
    """
    found = [str(w) for w in words]
    more = f" and {len(found) - _LISTED} more" if len(found) > _LISTED else ""
    return ", ".join(found[:_LISTED]) + more


def mode_breaks(mode: IntTuple) -> list[tuple[int, int]]:
    """Return the spans after which the inner modes of a nested mode wrap around, as far as they are known."""
    known: list[int] = []
    for extent in tree_leaves(mode):
        if not isinstance(extent, int):
            known.append(1 << 40)  # An unknown extent: no line for the modes after it.
            break
        known.append(extent)
    return breaks(known)


def draw_layout(layout: Any, *, sizes: Sizes = None, file: Path | None = None) -> Drawing:
    """Draw a layout as a grid of offsets. Mode 0 goes down, mode 1 goes right, and further modes are panels.

    A single mode goes right, in rows of 32 if it is long.  The color shows the offset, from light to dark; for a
    swizzled layout, it shows the unit of the swizzle.  Heavier lines separate nested modes.  Dynamic extents and
    strides are taken from ``sizes`` (by name or in order), or drawn as ``?``.

    >>> print(draw_layout("(2,(2,2)):(4,(1,2))").title)
    (2,(2,2)):(4,(1,2))
    """
    subject = layout_given(layout, sizes)
    counts = [UNKNOWN if n is None else n for n in extents(subject.shape)]
    outer_counts = counts[2:]
    few(_times(counts))
    if _times(outer_counts) > MAX_PANELS:
        raise DrawingError(
            f"modes 2 and higher would need {_times(outer_counts)} panels; at most {MAX_PANELS} are drawn"
        )
    offset = _offsets(subject)
    at: dict[object, list[str]] = {}
    values: dict[tuple[int, ...], object] = {}
    for coord in all_of(*map(range, counts)):
        value = offset(coord)
        values[coord] = value
        at.setdefault(value, []).append(_coordinate(coord))
    colour = _colours(subject, values.values())
    shape = subject.shape if isinstance(subject.shape, tuple) else (subject.shape,)
    more = tuple(n is None for n in extents(subject.shape))

    def panel(rest: tuple[int, ...]) -> Panel:
        def cell(i: int, j: int) -> Cell:
            coord = (i * LINE + j,) if len(counts) == 1 else (i, j, *rest)
            if coord not in values:
                return Cell((), "beyond the layout", "none")
            value = values[coord]
            return Cell((str(value),), _hover(coord, shape, value, at[value]), colour(value), f"o{value}")

        if len(counts) == 1 and counts[0] > 2 * LINE:
            rows = -(-counts[0] // LINE)
            labels = [str(i * LINE) for i in range(rows)]
            return Panel("", grid(rows, LINE, cell), more=(more[0], False), row_labels=labels)
        rows, columns = (1, counts[0]) if len(counts) == 1 else (counts[0], counts[1])
        title = f"(_,_,{','.join(map(str, rest))})" if rest else ""
        first, second = (1, shape[0]) if len(shape) == 1 else shape[:2]
        return Panel(
            title,
            grid(rows, columns, cell),
            mode_breaks(first),
            mode_breaks(second),
            more=(False, more[0]) if len(counts) == 1 else (more[0], more[1]),
            numbered=(len(counts) > 1, True),
        )

    panels = [panel(tuple(reversed(rest))) for rest in all_of(*map(range, reversed(outer_counts)))]
    return beside(subject.text, panels, _notes(subject)).saved(file)


def _times(numbers: Iterable[int]) -> int:
    total = 1
    for n in numbers:
        total *= n
    return total


def _coordinate(coord: Sequence[int]) -> str:
    return f"({','.join(map(str, coord))})" if len(coord) > 1 else str(coord[0])


def _hover(coord: tuple[int, ...], shape: tuple[IntTuple, ...], value: object, same: Sequence[str]) -> str:
    """Return the text in both directions: the offset of a coordinate, and all coordinates with that offset."""
    natural = ""
    if any(isinstance(m, tuple) for m in shape) and all(is_static(m) for m in shape):
        nested = tuple(idx2crd(c, m) for c, m in zip(coord, shape))
        natural = f" = {to_text(nested) if len(nested) > 1 else to_text(next(iter(nested)))}"
    back = f"\n{value} ← {listed(same)}" if len(same) > 1 else ""
    return f"{_coordinate(coord)}{natural} → {value}{back}"


def _notes(subject: Subject) -> list[str]:
    notes: list[str] = []
    if isinstance(subject.layout, ComposedLayout) and isinstance(subject.layout.inner, Swizzle):
        notes.append("colors: the unit that the swizzle moves")
    if not subject.is_static:
        notes.append(f"{', '.join(dict.fromkeys(subject.names))}: known at run time")
    return notes


def _colours(subject: Subject, values: Iterable[object]) -> Callable[[object], str]:
    layout = subject.layout
    if isinstance(layout, ComposedLayout) and isinstance(layout.inner, Swizzle) and layout.inner.bits:
        return lambda value: kind(_unit(cast("int", value), layout.inner))  # type: ignore[arg-type]
    numbers = [v for v in values if isinstance(v, int)]
    least, most = min(numbers, default=0), max(numbers, default=0)

    def colour(value: object) -> str:
        return level(value - least, most - least) if isinstance(value, int) else "none"

    return colour


def _unit(offset: int, swizzle: Swizzle) -> int:
    """Return the index of the swizzle unit at an offset, within the row of units that the swizzle permutes."""
    _, changed = swizzle.masks()
    return (offset & changed) >> (changed & -changed).bit_length() - 1


# -------------------------------------------------------------------------------------------------------- dynamic sizes


def _offsets(subject: Subject) -> Callable[[tuple[int, ...]], object]:
    """Return the function that maps a coordinate, one number per mode, to its offset, or to its symbolic text."""
    layout = subject.layout
    if subject.is_static:
        return lambda c: _shown(evaluate(c if len(c) > 1 else next(iter(c)), layout))
    if isinstance(layout, ComposedLayout):
        names = ", ".join(f"{n!r}: 8" for n in dict.fromkeys(subject.names))
        raise DrawingError(f"a swizzled layout with dynamic sizes cannot be drawn; give sizes={{{names}}}")
    names = iter(subject.names)
    shape = [_named(x, names) for x in tree_leaves(layout.shape)]
    stride = [_named(x, names) for x in tree_leaves(layout.stride)]
    counts = [len(tree_leaves(m)) for m in (layout.shape if isinstance(layout.shape, tuple) else (layout.shape,))]

    def offset(coord: tuple[int, ...]) -> object:
        total: dict[str, int] = {}
        at = 0
        for c, n in zip(coord, counts):
            for k in range(at, at + n):
                extent, step = shape[k], stride[k]
                if isinstance(extent, str) and k + 1 < at + n:
                    raise DrawingError(
                        f"the extent {extent} inside a nested mode is dynamic; give sizes={{{extent!r}: 8}}"
                    )
                digit, c = (c % extent, c // extent) if isinstance(extent, int) and k + 1 < at + n else (c, 0)
                name, factor = ("", step) if isinstance(step, int) else (step, 1)
                total[name] = total.get(name, 0) + digit * factor
            at += n
        return _sum(total)

    return offset


def _named(leaf: object, names: Any) -> int | str:
    return leaf if isinstance(leaf, int) else str(next(names))


def _sum(total: dict[str, int]) -> object:
    """Return a sum as short text such as ``2m+3``, or a number if it contains no name."""
    parts = [f"{n if n != 1 else ''}{name}" for name, n in total.items() if name and n]
    rest = total.get("", 0)
    if not parts:
        return rest
    return "+".join([*parts, *([str(rest)] if rest else [])])


def _shown(value: object) -> object:
    return value if isinstance(value, int) else to_text(cast("IntTuple", value))


# ------------------------------------------------------------------------------------------------------------ divided


def draw_divide(layout: Any, tiler: Any, *, sizes: Sizes = None, file: Path | None = None) -> Drawing:
    """Draw a layout divided by a tiler.

    On the left each tile has a color and the first one a border. On the right the tiles are columns, as in
    ``zipped_divide``.  ``tiler`` is an extent or a layout for each mode, as text ``"(2,4:2)"`` or
    ``"[3:3;(2,4):(1,8)]"``, or as values.

    >>> draw_divide("(4,6):(6,1)", (2, 3)).title
    '(4,6):(6,1) divided by (2,3)'
    """
    payload = static_given(layout, sizes, "draw_divide")
    outer = payload.outer if isinstance(payload, ComposedLayout) else payload
    tile = _tile(tiler)
    counts = [cast("int", n) for n in extents(outer.shape)]
    if len(counts) > 2:
        raise DrawingError(f"the layout to divide must have rank 1 or 2, got {to_text(payload)}; group its modes")
    # The tiler selects coordinates independently of strides, so divide a layout of cell indices.
    whole = Layout(outer.shape, column_major(outer.shape))
    try:
        cells = zipped_divide(whole, tile)
        divided = zipped_divide(payload, tile)
    except AlgebraError as e:
        raise DrawingError(f"{to_text(payload)} cannot be divided by {_tile_text(tile)}: {e}") from None
    inner, rest = layout_modes(cells)
    many, tiles = cast("int", product(inner.shape)), cast("int", product(rest.shape))
    rows = counts[0] if len(counts) == 2 else 1
    where: dict[int, list[tuple[int, int]]] = {}
    for t in range(tiles):
        for k in range(many):
            where.setdefault(cast("int", evaluate((k, t), cells)), []).append((k, t))
    few(2 * many * tiles)

    def name(k: int, t: int) -> str:
        return f"{to_text(idx2crd(k, inner.shape))} of tile {to_text(idx2crd(t, rest.shape))}"

    def cell(i: int, j: int) -> Cell:
        at, coord = i + rows * j, (i, j) if len(counts) == 2 else (j,)
        offset = _shown(evaluate(coord if len(coord) > 1 else coord[0], payload))
        held = where.get(at, [])
        if not held:
            return Cell((str(offset),), f"{_coordinate(coord)} → {offset}: in no tile", "none", "")
        t = held[0][1]
        return Cell(
            (str(offset),), f"{_coordinate(coord)} → {offset}: {listed(name(*h) for h in held)}", kind(t), f"t{t}"
        )

    def zipped(k: int, t: int) -> Cell:
        offset = _shown(evaluate((k, t), divided))
        at = cast("int", evaluate((k, t), cells))
        if at >= rows * (counts[-1]):
            return Cell((str(offset),), f"{name(k, t)} → {offset}, beyond the layout", "none", f"t{t}")
        coord = (at % rows, at // rows) if len(counts) == 2 else (at,)
        return Cell((str(offset),), f"{name(k, t)} → {offset}, at {_coordinate(coord)}", kind(t), f"t{t}")

    first = {(at % rows, at // rows) for at, held in where.items() if any(t == 0 for _, t in held)}
    shape = outer.shape if len(counts) == 2 and isinstance(outer.shape, tuple) else (1, outer.shape)
    title = f"{to_text(payload)} divided by {_tile_text(tile)}"
    panels = [
        Panel(
            "a color per tile",
            grid(rows, counts[-1], cell),
            mode_breaks(shape[0]),
            mode_breaks(shape[1]),
            [Border(first, 3)],
            numbered=(len(counts) == 2, True),
        ),
        Panel(
            f"zipped_divide: {to_text(divided)}",
            grid(many, tiles, zipped),
            mode_breaks(inner.shape),
            mode_breaks(rest.shape),
            [Border({(k, 0) for k in range(many)}, 3)],
            names=("tile", "rest"),
        ),
    ]
    return beside(title, panels).saved(file)


def _tile(tiler: Any) -> Any:
    if isinstance(tiler, str):
        try:
            return parse_tile(_brackets(tiler.strip()))
        except AlgebraError as e:
            known = "'(2,4)' or '[3:3;(2,4):(1,8)]'"
            raise DrawingError(f"cannot read the tiler '{tiler}': {e}; give a tiler such as {known}") from None
    payload = getattr(tiler, "payload", None)
    if isinstance(payload, Layout):
        return payload
    if isinstance(tiler, tuple | list):
        return tuple(_tile(t) for t in cast("Sequence[Any]", tiler))
    if isinstance(tiler, int | Layout):
        return tiler
    raise DrawingError(f"a tiler must consist of extents and layouts, got {tiler!r}")


def _brackets(words: str) -> str:
    """Convert the text of a tile to brackets: the elements of the outermost parentheses, separated by semicolons.

    >>> _brackets("(2,4:2)"), _brackets("(3:3,(2,4):(1,8))"), _brackets("(2,4):(1,8)")
    ('[2:1;4:2]', '[3:3;(2,4):(1,8)]', '(2,4):(1,8)')
    """
    depth, parts = 0, [""]
    for at, c in enumerate(words):
        depth += (c in "([<") - (c in ")]>")
        # The first parenthesis closes before the end, so the text is a single layout.
        if not depth and at + 1 < len(words):
            return words if ":" in words or not words.isdigit() else f"{words}:1"
        if c == "," and depth == 1:
            parts.append("")
        elif at and at + 1 < len(words):
            parts[-1] += c
    if not words.startswith("(") or not words.endswith(")"):
        return f"{words}:1" if words.isdigit() else words
    return f"[{';'.join(f'{p.strip()}:1' if p.strip().isdigit() else p.strip() for p in parts)}]"


def _tile_text(tile: Any) -> str:
    if isinstance(tile, tuple):
        parts = [_tile_text(t) for t in cast("Sequence[Any]", tile)]
        return f"({','.join(parts)})"
    return str(tile) if isinstance(tile, int) else to_text(tile)


# ------------------------------------------------------------------------------------------------------------- swizzles


def draw_swizzle(x: Any, *, bits: int | None = None, sizes: Sizes = None, file: Path | None = None) -> Drawing:
    """Draw the effect of a swizzle: the layout without it on the left and with it on the right, with a color per unit.

    Args:
        x: A swizzled layout or tensor, or a swizzle ``"S<3,4,3>"`` alone, whose units are drawn.
        bits: Bits of an element, which a tensor knows. If given, hover texts show byte and bank.
        sizes: Numbers for dynamic extents and strides.

    >>> [c.lines[0] for c in draw_swizzle("S<1,0,1>").panels[1].cells[1]]
    ['1', '0']
    """
    alone = swizzle_given(x)
    if alone is not None:
        return _units(alone).saved(file)
    width = element_bits(x, bits)
    payload = static_given(x, sizes, "draw_swizzle")
    of_pointer = getattr(getattr(x, "iterator", None), "swizzle", None)
    if isinstance(payload, ComposedLayout) and isinstance(payload.inner, Swizzle):
        swizzle, unit = payload.inner, 0
    elif isinstance(of_pointer, Swizzle) and width is not None and isinstance(payload, Layout):
        swizzle, unit = of_pointer, width
    else:
        raise DrawingError(
            f"draw_swizzle needs a swizzled layout such as 'S<3,3,3> o 0 o (8,64):(64,1)', got {to_text(payload)}"
        )
    plain = (
        ComposedLayout(Swizzle(0, 0, 0), payload.offset, payload.outer)
        if isinstance(payload, ComposedLayout)
        else payload
    )
    counts = [cast("int", n) for n in extents(plain.outer.shape if isinstance(plain, ComposedLayout) else plain.shape)]
    if len(counts) > 2:
        raise DrawingError(f"the swizzled layout must have rank 1 or 2, got {to_text(payload)}; group its modes")
    rows, columns = counts if len(counts) == 2 else (1, counts[0])
    few(2 * rows * columns)

    def offsets(i: int, j: int) -> tuple[int, int]:
        before = cast("int", evaluate((i, j) if len(counts) == 2 else j, plain))
        if unit:  # The swizzle applies to byte addresses.
            return before, cast("int", swizzle(before * unit // 8)) * 8 // unit
        return before, cast("int", swizzle(before))

    def cell(which: int) -> Callable[[int, int], Cell]:
        def made(i: int, j: int) -> Cell:
            both = offsets(i, j)
            offset = both[which]
            said = f"{_coordinate((i, j) if len(counts) == 2 else (j,))} → {both[0]} → {both[1]}"
            if width is not None:
                byte = offset * width // 8
                said += f"\nbyte {byte}, bank {byte // 4 % 32}"
            at = offset * unit // 8 if unit else offset
            return Cell((str(offset),), said, kind(_unit(at, swizzle)), f"u{both[which]}")

        return made

    outer = payload.outer if isinstance(payload, ComposedLayout) else payload
    shape = outer.shape if len(counts) == 2 and isinstance(outer.shape, tuple) else (1, outer.shape)
    panels = [
        Panel(name, grid(rows, columns, cell(which)), mode_breaks(shape[0]), mode_breaks(shape[1]))
        for which, name in enumerate((f"without: {to_text(outer)}", f"with {swizzle}"))
    ]
    title = to_text(payload) if not unit else f"{to_text(payload)} at a pointer with {swizzle}"
    notes = [f"colors: the units of {1 << _low(swizzle)} {'bytes' if unit else 'elements'} that the swizzle moves"]
    return beside(title, panels, notes).saved(file)


def _low(swizzle: Swizzle) -> int:
    _, changed = swizzle.masks()
    return (changed & -changed).bit_length() - 1 if changed else swizzle.base


def _units(swizzle: Swizzle) -> Drawing:
    """Draw a swizzle alone: rows are the bits that it reads, columns the bits that it changes."""
    n = 1 << swizzle.bits
    few(2 * n * n)
    read, _ = swizzle.masks()
    low = (read & -read).bit_length() - 1 if read else 0
    base = _low(swizzle)

    def cell(after: bool) -> Callable[[int, int], Cell]:
        def made(i: int, j: int) -> Cell:
            before = i << low | j << base
            unit = _unit(cast("int", swizzle(before)), swizzle)
            number = unit if after else j
            return Cell((str(number),), f"row {i}: unit {j} → {unit}", kind(number), f"r{i}u{number}")

        return made

    panels = [Panel(title, grid(n, n, cell(after))) for title, after in (("without", False), (f"with {swizzle}", True))]
    notes = [
        f"units of {1 << base}, rows {1 << low} apart: unit ^= row"
        if swizzle.shift >= 0
        else f"units of {1 << base}, rows {1 << low} apart (negative shift: the row lies in the lower bits)"
    ]
    return beside(str(swizzle), panels, notes)
