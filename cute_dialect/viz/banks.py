"""Drawings of bank conflicts: the word that each of the 32 banks of shared memory serves, cycle by cycle.

A warp's request is served in phases of 32 threads (accesses up to 4 bytes), 16 threads (8 bytes) or 8 threads (16
bytes, and each 8x8 matrix of ldmatrix and stmatrix).  A phase takes as many cycles as the busiest bank has different
words. Two neighboring phases merge if each thread i has the address of thread i xor 1, or each that of thread i xor 2.
The interpreter counts by the same rules (``cute_dialect.interp.reports.profile``); a test compares the two.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, cast

from cute_dialect.algebra.evaluation import evaluate
from cute_dialect.algebra.text import to_text
from cute_dialect.algebra.trees import product, product_each
from cute_dialect.algebra.values import AnyLayout, ComposedLayout, Layout, Swizzle
from cute_dialect.spaces import AddressSpace
from cute_dialect.viz.cells import Cell, DrawingError, Panel
from cute_dialect.viz.drawing import Drawing, Path
from cute_dialect.viz.layouts import listed
from cute_dialect.viz.palette import kind
from cute_dialect.viz.panels import beside
from cute_dialect.viz.subjects import Sizes, element_bits, extents, static_given
from cute_dialect.viz.threads import WARP, CopyParts, copy_parts, is_copy

BANKS = 32
WORD = 4
"""Bytes per word of a bank."""

_PALE, _UNLIKE_RED = 8, 5
"""Index of the first pale color, and the number of colors from there on that do not resemble red."""


class Cycle(NamedTuple):
    """The words served in one cycle: bank -> (word, the lanes that request it); the phase, and the cycle within it."""

    phase: int
    number: int
    served: Mapping[int, tuple[int, tuple[int, ...]]]


def cycles(addresses: Mapping[int, int], nbytes: int) -> list[Cycle]:
    """Return the cycles of one request. ``addresses`` maps a lane to its byte address; each access has ``nbytes``.

    >>> len(cycles({t: 4 * t for t in range(32)}, 4)), len(cycles({t: 128 * t for t in range(32)}, 4))
    (1, 32)
    """
    wanted: dict[int, dict[int, dict[int, list[int]]]] = {}  # phase -> bank -> word -> lanes
    phases = _phases(addresses, nbytes)
    for lane in sorted(addresses):
        first = addresses[lane] // WORD
        for word in range(first, first + max(1, -(-nbytes // WORD))):
            banks = wanted.setdefault(phases[lane], {})
            banks.setdefault(word % BANKS, {}).setdefault(word, []).append(lane)
    out: list[Cycle] = []
    for phase in sorted(wanted):
        banks = wanted[phase]
        for k in range(max(len(words) for words in banks.values())):
            served: dict[int, tuple[int, tuple[int, ...]]] = {}
            for bank, words in sorted(banks.items()):
                if k < len(words):
                    word = list(words)[k]
                    served[bank] = (word, tuple(words[word]))
            out.append(Cycle(phase, k, served))
    return out


def _phases(addresses: Mapping[int, int], nbytes: int) -> dict[int, int]:
    """Return the phase of each lane."""
    if nbytes <= WORD:
        return dict.fromkeys(addresses, 0)
    per = 16 if nbytes <= 8 else 8
    out: dict[int, int] = {}
    for lane in addresses:
        span = range(lane // (2 * per) * 2 * per, (lane // (2 * per) + 1) * 2 * per)
        joined = any(
            all(addresses.get(i) is None or addresses.get(i ^ d) in (None, addresses[i]) for i in span) for d in (1, 2)
        )
        out[lane] = span.start // per if joined else lane // per
    return out


class _Request(NamedTuple):
    """One instruction of a warp: the byte address of each lane, and the bytes per lane."""

    addresses: dict[int, int]
    nbytes: int


def draw_banks(
    tensor: Any,
    copy: Any,
    *,
    bits: int | None = None,
    side: str = "",
    warp: int = 0,
    requests: int = 4,
    values: int = 1,
    sizes: Sizes = None,
    file: Path | None = None,
) -> Drawing:
    """Draw the bank conflicts of a copy from or to a tensor in shared memory.

    Columns are the 32 banks and rows are cycles. Red cells wait for a bank that serves another word.

    Args:
        tensor: A tensor of the language, or a layout together with ``bits``.
        copy: A tiled copy, a copy atom, or a thread-value layout over the tensor's tile.
        bits: Bits of an element.
        side: "src" or "dst", the side of the copy that the tensor is. Default: the side in shared memory.
        warp: Index of the warp.
        requests: Number of instructions that are drawn. All are counted.
        values: Values per access, for a thread-value layout.

    >>> draw_banks("(32,32):(32,1)", "(32,1):(1,0)", bits=32).title  # a column of a row-major tile
    '(32,32):(32,1): 32 cycles, 1 without conflicts'
    """
    width = element_bits(tensor, bits)
    if width is None:
        raise DrawingError("draw_banks: the element size is unknown; give bits=16 or a tensor of the language")
    layout = static_given(tensor, sizes, "draw_banks")
    of_pointer = getattr(getattr(tensor, "iterator", None), "swizzle", None)
    pointer = of_pointer if isinstance(of_pointer, Swizzle) else None
    parts, which = _parts(copy, layout, width, values, side)
    found = _requests(layout, pointer, parts, which, width, warp)
    counted = [cycles(r.addresses, r.nbytes) for r in found]
    total = sum(len(c) for c in counted)
    ideal = sum(_ideal(r) for r in found)
    panels = [
        _panel(c, f"request {i} of {len(found)}: {len(c)} cycle{'s' * (len(c) != 1)}")
        for i, c in enumerate(counted[:requests])
    ]
    title = f"{to_text(layout)}: {total} cycles, {ideal} without conflicts"
    notes = [
        f"warp {warp} {'reads' if which == 'src' else 'writes'} {found[0].nbytes} bytes per thread with {parts.name}"
        if parts.name
        else f"warp {warp}, {found[0].nbytes} bytes per thread",
        "red: waits while its bank serves another word; heavy lines: phases",
    ]
    return beside(title, panels, notes, 22).saved(file)


def _parts(copy: Any, layout: AnyLayout, width: int, values: int, side: str) -> tuple[CopyParts, str]:
    if side not in ("", "src", "dst"):
        raise DrawingError(f"side must be 'src' or 'dst', got {side!r}")
    if isinstance(copy, str) and copy.startswith(("SM", "Universal")):
        from cute_dialect.arch.table import copy_atom  # late: start-up

        copy = copy_atom(copy)
    if is_copy(copy):
        parts = copy_parts(copy)
        shared = [s for s, space in zip(("src", "dst"), parts.spaces) if space == AddressSpace.smem]
        return parts, side or (shared[0] if shared else "src")
    tv = static_given(copy, None, "draw_banks")
    if not isinstance(tv, Layout) or not isinstance(tv.shape, tuple) or len(tv.shape) != 2:
        raise DrawingError(f"draw_banks needs a tiled copy or a (thread, value) layout, got {to_text(tv)}")
    outer = layout.outer if isinstance(layout, ComposedLayout) else layout
    counts = [cast("int", n) for n in extents(outer.shape)]
    tile = (counts[0], counts[1]) if len(counts) == 2 else (1, cast("int", product(outer.shape)))
    one = Layout((1, values), (0, 1))
    return CopyParts("", tv, tile, one, one, one, width, ("any", "any")), side or "src"


def _requests(
    layout: AnyLayout, pointer: Swizzle | None, parts: CopyParts, side: str, width: int, warp: int
) -> list[_Request]:
    outer = layout.outer if isinstance(layout, ComposedLayout) else layout
    counts = [cast("int", n) for n in extents(outer.shape)]
    if len(counts) > 2:
        raise DrawingError(f"the tile in shared memory must have rank 2, got {to_text(layout)}")
    m, n = counts if len(counts) == 2 else (1, counts[0])
    # Partition coordinates, which works for any layout, including swizzled ones.
    tile, rest = parts.partition(side, Layout((m, n), (1, m)))
    threads, values = cast("tuple[int, int]", product_each(tile.shape))
    each = parts.values(side)
    many = values // each
    repeats = cast("int", product(rest.shape))
    lanes = range(warp * WARP, min(warp * WARP + WARP, threads))
    if warp < 0 or not lanes:
        raise DrawingError(f"warp {warp} does not exist; the copy has {-(-threads // WARP)} warps")
    nbytes = each * width // 8
    if each * width % 8:
        raise DrawingError(f"an access must have whole bytes, got {each} values of {width} bits")

    def byte(index: int) -> int:
        coord = (index % m, index // m)
        offset = evaluate(coord if len(counts) == 2 else coord[1], layout)
        if not isinstance(offset, int):
            raise DrawingError(f"{to_text(layout)} gives coordinates, not offsets in memory")
        at = offset * width // 8
        return cast("int", pointer(at)) if pointer is not None else at

    out: list[_Request] = []
    for r in range(repeats):
        base = cast("int", evaluate(r, rest))
        for i in range(many):
            addresses: dict[int, int] = {}
            for lane, t in enumerate(lanes):
                places = [byte(base + cast("int", evaluate((t, i * each + v), tile))) for v in range(each)]
                if [p - places[0] for p in places] != [v * width // 8 for v in range(each)]:
                    raise DrawingError(
                        f"the {each} values that thread {t} moves at once are not contiguous in {to_text(layout)}: "
                        f"bytes {listed(places)}"
                    )
                addresses[lane] = places[0]
            out.append(_Request(addresses, nbytes))
    return out


def _ideal(request: _Request) -> int:
    """Return the minimum number of cycles for the different words of a request."""
    words = {a // WORD + k for a in request.addresses.values() for k in range(max(1, -(-request.nbytes // WORD)))}
    return -(-len(words) // BANKS)


def _panel(found: Sequence[Cycle], title: str) -> Panel:
    rows: list[list[Cell]] = []
    starts: list[tuple[int, int]] = []
    for k, cycle in enumerate(found):
        if k and cycle.phase != found[k - 1].phase:
            starts.append((k, 2))
        row: list[Cell] = []
        for bank in range(BANKS):
            if bank not in cycle.served:
                row.append(Cell((), f"bank {bank}, cycle {k}: nothing", "none"))
                continue
            word, lanes = cycle.served[bank]
            first = lanes[0]
            who = listed(f"T{t}" for t in lanes)
            waits = f", {cycle.number} cycle{'s' * (cycle.number > 1)} late" if cycle.number else ""
            where = f"word {word} (bytes {WORD * word} to {WORD * word + WORD - 1})"
            said = f"bank {bank}, cycle {k}: {where} for {who}{waits}"
            more = f"+{len(lanes) - 1}" if len(lanes) > 1 else ""
            fill = "bad" if cycle.number else kind(_PALE + first % _UNLIKE_RED)
            row.append(Cell((f"T{first}{more}",), said, fill, f"t{first}"))
        rows.append(row)
    return Panel(title, rows, row_starts=starts, names=("cycle", "bank"))
