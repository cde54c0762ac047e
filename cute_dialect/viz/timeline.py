"""Drawings of interpreter runs: warps over time, with waits, TMA copies, wgmma, and the phases of barriers.

The input is ``RunReport.timeline`` (``reports=["timeline"]``), recognized by its lists ``runs``, ``waits``, ``copies``,
``products`` and ``phases``.  Time counts the ops of a warp.
"""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple, Protocol, cast

from cute_dialect.viz.cells import DrawingError
from cute_dialect.viz.drawing import Drawing, Path, text

WIDE = 1040
"""Width of the time axis in pixels."""

LEFT, ROW, GAP = 132, 17, 10
COLOURS = {
    "run": "q8",
    "mbarrier": "q5",
    "barrier": "q1",
    "wait": "q7",
    "load": "q4",
    "store": "q3",
    "wgmma": "q2",
    "phase 0": "q6",
    "phase 1": "q14",
}
"""Maps the kind of a bar to the class of its color."""

_SAID = {
    "run": "runs",
    "mbarrier": "waits at an mbarrier",
    "barrier": "waits at a barrier",
    "wait": "waits for something else",
    "load": "copy to shared memory",
    "store": "copy to global memory",
    "wgmma": "wgmma, until waited for",
    "phase 0": "phase of an mbarrier",
}


class _Event(Protocol):
    """Attributes common to all events of a record."""

    @property
    def block(self) -> int: ...
    @property
    def start(self) -> int: ...
    @property
    def end(self) -> int: ...


class Bar(NamedTuple):
    """A bar in a row: start, end, kind (of :data:`COLOURS`), hover text, text in the bar, and key."""

    start: int
    end: int
    kind: str
    hover: str
    words: str = ""
    key: str = ""


class Row(NamedTuple):
    """A row: its name, its hover text, its bars, and its distance from the previous row."""

    name: str
    hover: str
    bars: list[Bar]
    gap: int = 0


def is_run(x: Any) -> bool:
    """Return True for the report of a run, or its timeline."""
    return hasattr(x, "lane_ops_per_second") or (hasattr(x, "waits") and hasattr(x, "phases"))


def draw_timeline(report: Any, *, block: int | None = None, file: Path | None = None) -> Drawing:
    """Draw the activity of a block's warps over time, from the report of a run with ``reports=["timeline"]``.

    Rows show each warp (when it runs, and what it waits for), the wgmma of each warpgroup from issue to wait, TMA
    copies in flight with their bytes, and the phases of each mbarrier.  ``block`` is the block's number, by default the
    first that ran.  Raises DrawingError if nothing was recorded.
    """
    record = report if hasattr(report, "phases") else getattr(report, "timeline", None)
    if record is None:
        raise DrawingError("the report has no timeline; run the kernel with device='cpu', reports=['timeline']")
    blocks = cast("list[int]", record.blocks)
    if not blocks:
        raise DrawingError("the timeline is empty, because no warp ran")
    number = blocks[0] if block is None else block
    if number not in blocks:
        raise DrawingError(f"block {number} did not run; blocks that ran: {', '.join(map(str, blocks[:8]))}")
    lists = {name: _of(getattr(record, name), number) for name in ("runs", "waits", "copies", "products", "phases")}
    end = max(e.end for events in lists.values() for e in events)
    names = [p.barrier for p in lists["phases"]]
    barriers = list(dict.fromkeys(names))
    rows = [*_warps(lists["runs"], lists["waits"], lists["products"], barriers)]
    rows += _copies(lists["copies"])
    rows += _phases(lists["phases"], barriers)
    title = f"block {number}: {len({e.warp for e in lists['runs']})} warps, {end} ops"
    return _picture(title, rows, end, lists["copies"], cast("int", record.dropped)).saved(file)


def _of(events: Iterable[_Event], block: int) -> list[Any]:
    return sorted((e for e in events if e.block == block), key=lambda e: (e.start, e.end))


def _when(e: _Event) -> str:
    return f"{e.start} to {e.end} ({e.end - e.start} ops)"


def _where(e: Any) -> str:
    """Return a line with the location of an event: file name, line and column."""
    location = cast("str", e.location).rpartition("/")[2]
    return f"\n{location}" if location else ""


# ----------------------------------------------------------------------------------------------------------------- rows


def _warps(runs: Sequence[Any], waits: Sequence[Any], products: Sequence[Any], barriers: Sequence[str]) -> list[Row]:
    out: list[Row] = []
    warps = sorted({e.warp for e in runs})
    for w in warps:
        mine, idle = [e for e in runs if e.warp == w], [e for e in waits if e.warp == w]
        bars = [Bar(e.start, e.end, "run", f"warp {w} runs: {_when(e)}") for e in mine]
        bars += [_wait(e, barriers) for e in idle]
        waited = sum(e.end - e.start for e in idle)
        all_of_it = waited + sum(e.end - e.start for e in mine)
        share = f"warp {w} waits for {waited} of {all_of_it} ops ({100 * waited // max(all_of_it, 1)} %)"
        out.append(Row(f"warp {w}", share, bars, 0 if w % 4 else GAP))
        group = w // 4
        if w % 4 == 3 or w == warps[-1]:
            out += _products([p for p in products if p.warpgroup == group], group)
    return out


def _wait(e: Any, barriers: Sequence[str]) -> Bar:
    what = cast("str", e.what)
    kind = "mbarrier" if "mbarrier" in what else "barrier" if "barrier" in what else "wait"
    name = next((b for b in barriers if f"{b} for phase" in what), "")
    short = what.partition(": it is in phase")[0]
    return Bar(e.start, e.end, kind, f"warp {e.warp} {short}: {_when(e)}{_where(e)}", "", f"b{name}" if name else "")


def _products(products: Sequence[Any], group: int) -> list[Row]:
    """Return the rows of a warpgroup's wgmma.

    Those of one commit group form a bar; overlapping bars are in separate rows.
    """
    batches: dict[tuple[int, int, str], list[Any]] = {}
    for p in products:
        batches.setdefault((p.start, p.end, p.shape), []).append(p)
    bars: list[Bar] = []
    for (start, end, shape), found in batches.items():
        words = f"{len(found)} x {shape.partition(' ')[0]}"
        said = f"warpgroup {group}: {len(found)} wgmma {shape}: {_when(found[0])}{_where(found[0])}"
        bars.append(Bar(start, end, "wgmma", said, words))
    return [Row(f"wgmma {group}" if not n else "", "", row) for n, row in enumerate(_packed(bars))]


def _copies(copies: Sequence[Any]) -> list[Row]:
    bars: list[Bar] = []
    for c in copies:
        kind = "load" if ".shared" in c.op.split(".global")[0] and "store" not in c.op else "store"
        size = f" of {c.nbytes} bytes" if c.nbytes else ""
        said = f"{c.op}{size} by warp {c.warp}: {_when(c)}{_where(c)}"
        bars.append(Bar(c.start, c.end, kind, said, _size(c.nbytes)))
    packed = _packed(bars)
    return [Row("TMA" if not n else "", "", row, 0 if n else GAP) for n, row in enumerate(packed)]


def _size(nbytes: int) -> str:
    return f"{nbytes // 1024} KiB" if nbytes >= 1024 and nbytes % 1024 == 0 else f"{nbytes} B" if nbytes else ""


def _packed(bars: Sequence[Bar]) -> list[list[Bar]]:
    """Distribute bars to rows without overlaps.

    >>> [[b.start for b in row] for row in _packed([Bar(0, 4, "", ""), Bar(2, 6, "", ""), Bar(4, 9, "", "")])]
    [[0, 4], [2]]
    """
    rows: list[list[Bar]] = []
    for bar in sorted(bars, key=lambda b: (b.start, b.end)):
        row = next((r for r in rows if r[-1].end <= bar.start), None)
        if row is None:
            rows.append([bar])
        else:
            row.append(bar)
    return rows


def _phases(phases: Sequence[Any], barriers: Sequence[str]) -> list[Row]:
    out: list[Row] = []
    for n, name in enumerate(barriers):
        bars = [
            Bar(
                p.start,
                p.end,
                f"phase {p.number % 2}",
                f"{name}: phase {p.number} was complete at {p.end}, after {p.end - p.start} ops",
                str(p.number),
                f"b{name}",
            )
            for p in phases
            if p.barrier == name
        ]
        out.append(Row(_short(name), f"mbarrier: {name}", bars, 0 if n else GAP))
    return out


def _short(name: str) -> str:
    """Abbreviate the name of a barrier.

    >>> _short("element 8 of alloc_smem #3"), _short("element 1 of %full")
    ('mbar #3 [8]', 'full [1]')
    """
    element, _, of = name.partition(" of ")
    if not of:
        return name[-18:]
    place = element.removeprefix("element ").removeprefix("byte ")
    return f"{of.replace('alloc_smem', 'mbar').lstrip('%')[:12]} [{place}]"


# -------------------------------------------------------------------------------------------------------------- picture


def _picture(title: str, rows: Sequence[Row], end: int, copies: Sequence[Any], dropped: int) -> Drawing:
    scale = WIDE / max(end, 1)
    body = [text(16, 24, title, 14, "h")]
    top = 58.0
    y = top
    out: list[str] = []
    words: list[str] = []
    for row in rows:
        y += row.gap
        if row.name:
            name = html.escape(row.name)
            hover = f"<title>{html.escape(row.hover)}</title>" if row.hover else ""
            body.append(f'<text x="{LEFT - 8}" y="{y + 12:g}" font-size="11" class="e">{hover}{name}</text>')
        for bar in row.bars:
            x, wide = LEFT + bar.start * scale, max((bar.end - bar.start) * scale, 0.4)
            key = f'data-k="{html.escape(bar.key)}" ' if bar.key else ""
            out.append(
                f'<path {key}class="{COLOURS[bar.kind]}" d="M{x:.4g} {y:g}h{wide:.4g}v{ROW - 3}h{-wide:.4g}z">'
                f"<title>{html.escape(bar.hover)}</title></path>"
            )
            if bar.words and wide > 6.6 * len(bar.words) + 2:
                words.append(text(round(x + wide / 2, 1), y + 10.5, bar.words, 9.5))
        y += ROW
    if copies:
        y += GAP
        body += _in_flight(copies, y, scale)
        y += 40
    body += _axis(top, y, end, scale)
    body += ['<g class="cells">', *out, "</g>", '<g class="n" pointer-events="none">', *words, "</g>"]
    y += 26
    used = {bar.kind for row in rows for bar in row.bars}
    at = float(LEFT)
    for kind, said in _SAID.items():
        if kind in used:
            if at + 7.2 * len(said) > LEFT + WIDE:
                at, y = float(LEFT), y + 20
            body.append(f'<rect class="{COLOURS[kind]}" x="{at:g}" y="{y - 11:g}" width="12" height="12"/>')
            body.append(text(at + 17, y, said, 11, "dim"))
            at += 34 + 6.9 * len(said)
    y += 20
    more = f"; {dropped} later events are not shown" if dropped else ""
    body.append(text(LEFT, y, f"time: ops of a warp, as the interpreter ran them{more}", 11, "dim"))
    return Drawing(title, LEFT + WIDE + 24, round(y + 14), "\n".join(body))


def _axis(top: float, bottom: float, end: int, scale: float) -> list[str]:
    step = 1
    while end / step > 12:
        step = step * 5 // 2 if str(step)[0] == "2" else step * 2
    out: list[str] = []
    for t in range(0, end + 1, step):
        x = LEFT + t * scale
        out.append(f'<path class="thin" d="M{x:.5g} {top:g}V{bottom:g}"/>')
        out.append(text(round(x, 1), top - 6, str(t), 10, "n dim"))
    return out


def _in_flight(copies: Sequence[Any], y: float, scale: float) -> list[str]:
    """Return the bytes in flight over time, as an area."""
    changes: dict[int, int] = {}
    for c in copies:
        changes[c.start] = changes.get(c.start, 0) + c.nbytes
        changes[c.end] = changes.get(c.end, 0) - c.nbytes
    total, most, steps = 0, 0, list[tuple[int, int]]()
    for t in sorted(changes):
        total += changes[t]
        most = max(most, total)
        steps.append((t, total))
    if not most:
        return []
    high = 34.0
    path = [f"M{LEFT:g} {y + high:g}"]
    for t, now in steps:
        path.append(f"H{LEFT + t * scale:.5g}V{y + high - high * now / most:.5g}")
    path.append(f"V{y + high:g}z")
    said = f"bytes of copies in flight: at most {most}"
    return [
        f'<path class="q4" d="{"".join(path)}"><title>{said}</title></path>',
        text(LEFT - 8, y + 12, "in flight", 11, "e"),
        text(LEFT - 8, y + 26, f"≤ {_size(most)}", 10, "e dim"),
    ]
