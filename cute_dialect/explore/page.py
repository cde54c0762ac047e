"""Self-contained HTML page of the collected and measured data, without a server or external resources.

The tabs give bank conflicts and coalescing per line, the fault that ended a run, shared memory buffers, registers and
spills per line, the roofline, and all measurements.

**Roofline.** A kernel with ``I`` operations per byte takes at least ``max(bytes / bandwidth, operations / peak)``, so
it reaches at most ``min(I * bandwidth, peak)``.  Source of the peaks: NVIDIA's data sheet of the H200 SXM (2024),
dense.
"""

from __future__ import annotations

import html
import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.resources import files
from math import log10
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, cast

from cute_dialect.explore.collect import Collected
from cute_dialect.explore.drawings import Drawings
from cute_dialect.explore.links import Pane, Source
from cute_dialect.explore.runs import Run
from cute_dialect.interp.errors import attr_of
from cute_dialect.interp.memory.allocations import shared_allocations
from cute_dialect.ir.diagnostics import op_frames
from cute_dialect.viz.cells import DrawingError
from cute_dialect.viz.drawing import Drawing, text
from cute_dialect.viz.timeline import draw_timeline

if TYPE_CHECKING:  # pragma: no cover
    from xdsl.dialects.builtin import ModuleOp
    from xdsl.ir import Operation

    from cute_dialect.interp.reports.profile import Line


# ----------------------------------------------------------------------------------------------------------------- tabs


Cell: TypeAlias = "str | int"


class Column(NamedTuple):
    """A column of a table: its header, and its kind, which is "words", "number" or "code"."""

    head: str
    kind: str


def words(head: str) -> Column:
    """Return a column of plain text."""
    return Column(head, "words")


def number(head: str) -> Column:
    return Column(head, "number")


def code(head: str) -> Column:
    """Return a column of source text."""
    return Column(head, "code")


class Row(NamedTuple):
    """A row: its cells, the groups that a click highlights, and the source line that it shows (from 0; -1 for none).

    ``bad`` marks the rows that the table is meant to find, such as bank conflicts.
    """

    cells: Sequence[Cell]
    groups: Sequence[int] = ()
    line: int = -1
    bad: bool = False


class Table(NamedTuple):
    columns: Sequence[Column]
    rows: Sequence[Row]


class Picture(NamedTuple):
    """A drawing, as an HTML element."""

    html: str


class Words(NamedTuple):
    """Preformatted text, as in a terminal."""

    text: str


Part: TypeAlias = "Table | Picture | Words"


@dataclass
class Tab:
    """A tab.

    ``says`` is introductory text. ``count`` is the number of problems, shown next to the title.
    """

    key: str
    title: str
    says: str = ""
    parts: list[Part] = field(default_factory=list[Part])
    count: int = 0


class Mark(NamedTuple):
    """A mark next to the lines of some groups: a short label, and a sentence shown on hover."""

    groups: Sequence[int]
    short: str
    text: str


# ------------------------------------------------------------------------------------------------------------- accesses


_COLUMNS = (
    words(""), words("where"), words("memory"), number("transactions"), number("ideal"), number("ratio"),
    number("requests"), number("bytes per thread"), code("op"), code("source"),
)  # fmt: skip


def _lines(run: Run) -> Sequence[Line]:
    profile = run.report.profile if run.report is not None else None
    return profile.lines if profile is not None else ()


def accesses_tab(made: Collected, run: Run) -> Tab:
    """Return the tab of memory accesses, the most expensive first."""
    tab = Tab("accesses", "Memory accesses")
    found = _lines(run)
    if not found:
        tab.says = (
            run.why_not or run.not_counted or "The run made no access to shared or global memory by loads and stores."
        )
        return tab
    tab.says = (
        "The cost of each access: transactions for shared memory (32 banks of 4 bytes; more than the ideal are bank "
        "conflicts) and 32-byte sectors for global memory (more than the ideal means not coalesced). Most expensive "
        "first; click a row to show its line."
    )
    rows: list[Row] = []
    for one in sorted(found, key=lambda one: (-one.excess, -one.transactions, _line_number(one))):
        groups = made.groups.at_place(one.location)
        line = made.source.line_of(groups)
        verdict = "" if one.excess <= 0 else "bank conflict" if one.space == "shared" else "not coalesced"
        cells = (
            verdict, made.source.name_of(line), one.space, one.transactions, one.ideal, f"{one.ratio:.2f}",
            one.requests, one.width, one.op, made.source.text_of(line),
        )  # fmt: skip
        rows.append(Row(cells, groups, line, bool(verdict)))
    tab.parts.append(Table(_COLUMNS, rows))
    tab.count = sum(row.bad for row in rows)
    return tab


def _line_number(one: Line) -> int:
    line = one.location.split(":")[-2:][0]
    return int(line) if line.isdecimal() else 0


def conflict_marks(made: Collected, run: Run) -> list[Mark]:
    """Return the marks of lines with bank conflicts, the worst first."""
    return [
        Mark(
            made.groups.at_place(one.location),
            f"{one.ratio:.3g}×",
            f"bank conflict: {one.op}, {one.transactions} transactions, ideally {one.ideal}",
        )
        for one in _lines(run)
        if one.space == "shared" and one.excess > 0
    ]


# --------------------------------------------------------------------------------------------------------------- faults


_PLACE = re.compile(r" at (\S.*:\d+:\d+)$")


def fault_marks(made: Collected, run: Run) -> list[Mark]:
    """Return the marks of a fault: its own line, then the locations in its notes (the earlier access of a race).

    Empty if there is no fault.
    """
    if run.fault is None:
        return []
    chain = tuple((f.position.file, f.position.line) for f in run.fault.frames)
    marks = [Mark(made.groups.of_chain(chain), run.fault.kind, run.fault.message)]
    for note in run.fault.notes:
        place = _PLACE.search(note)
        groups = made.groups.at_place(place[1]) if place is not None else ()
        marks += [Mark(groups, run.fault.kind, note)] if groups else []
    return marks


def faults_tab(made: Collected, run: Run, marks: Sequence[Mark]) -> Tab:
    """Return the tab of the fault whose marks :func:`fault_marks` returned, with the whole diagnostic."""
    tab = Tab("faults", "Races and faults", count=int(run.fault is not None))
    if run.fault is None:
        tab.says = run.why_not or (
            "This run has no race, no out-of-bounds access, no use of unwritten data and no synchronization error "
            f"({run.arguments})."
        )
        return tab
    rows: list[Row] = []
    for mark in marks:
        line = made.source.line_of(mark.groups)
        rows.append(Row((mark.short, made.source.name_of(line), mark.text), mark.groups, line, bad=True))
    tab.parts += [Table((words("kind"), words("where"), words("message")), rows), Words(str(run.fault))]
    return tab


# ------------------------------------------------------------------------------------------------------------ resources


def shared_tab(made: Collected, trace: ModuleOp) -> Tab:
    """Return the tab of the shared memory buffers.

    ``trace`` is the module that was compiled, with source locations.
    """
    tab = Tab("shared", "Shared memory")
    rows: list[Row] = []
    total = 0
    for name in [k["name"] for k in made.module.manifest["kernels"]]:
        lines = _allocating(made, trace, name)
        for op in cast("Operation", made.module.lowered(name)).walk():
            listed = attr_of(op, "cute.smem")
            if listed is None:
                continue
            segments = {str(e.data["segment"].data): (0, 0) for e in listed.data}  # type: ignore[union-attr]
            for a in shared_allocations(op, segments).known:
                total = max(total, a.start + a.size)
                buffer = a.name.strip("%'")
                groups = lines.get(buffer, ())
                row = Row((name, buffer, a.start, a.size, a.type), groups, made.source.line_of(groups))
                if row not in rows:
                    rows.append(row)
    static = [f"{k['name']}: {k['smem']} bytes static" for k in made.code.kernels if k.get("smem")]
    tab.says = (
        f"{total} bytes in {len(rows)} buffers. {'; '.join(static)}"
        if rows
        else "The kernel allocates no shared memory."
    )
    if rows:
        columns = (code("kernel"), code("buffer"), number("first byte"), number("bytes"), code("type"))
        tab.parts.append(Table(columns, rows))
    return tab


def _allocating(made: Collected, trace: ModuleOp, kernel: str) -> dict[str, tuple[int, ...]]:
    """Map each buffer name of the lowered kernel to the groups of the op that allocates it."""
    found: dict[str, tuple[int, ...]] = {}
    functions = (op for op in trace.walk() if op.name == "gpu.func")
    for function in functions:
        if getattr(attr_of(function, "sym_name"), "data", "") != kernel:
            continue
        made_by = (op for op in function.walk() if op.name == "cute.memref.alloc_smem")
        for n, op in enumerate(made_by):
            hint = op.results[0].name_hint
            chain = tuple((f.position.file, f.position.line) for f in op_frames(op))
            found[hint or f"alloc_smem #{n}"] = made.groups.of_chain(chain)
    return found


_KERNEL = {
    "name": code("kernel"), "registers": number("registers"), "spill_stores": number("spill stores, bytes"),
    "spill_loads": number("spill loads, bytes"), "stack": number("stack, bytes"),
    "smem": number("static shared, bytes"), "barriers": number("barriers"), "code": number("code, bytes"),
}  # fmt: skip
"""Maps a value that ptxas reports for a kernel to its column."""

_LINE = (
    words("where"), number("live registers"), number("instructions"), number("spill stores"), number("spill loads"),
    code("source"),
)  # fmt: skip


def registers_tab(made: Collected) -> Tab:
    """Return the tab of registers and spills: the report of ptxas per kernel, and the instructions per source line."""
    tab = Tab("registers", "Registers and spills")
    kernels = [Row([cast("Cell", k[name]) for name in _KERNEL]) for k in made.code.kernels]
    if kernels:
        tab.parts.append(Table(tuple(_KERNEL.values()), kernels))
    sass = made.code.sass
    if not sass.lines:
        tab.says = sass.missing
        return tab
    tab.says = (
        "Per source line: the maximum number of live registers at its instructions, the number of instructions, and "
        "the number of instructions that spill (nvdisasm)."
    )
    by_line: dict[int, list[int]] = {}
    for i, groups in enumerate(sass.groups):
        line = made.source.line_of(groups)
        if line >= 0:
            by_line.setdefault(line, []).append(i)
    rows: list[tuple[tuple[int, int, int], Row]] = []
    for line, found in by_line.items():
        stores, loads = (sum(made.code.spills[i] == kind for i in found) for kind in ("store", "load"))
        most = max(made.code.live[i] for i in found)
        cells = (made.source.name_of(line), most, len(found), stores, loads, made.source.text_of(line))
        row = Row(cells, made.source.own[line], line, bad=stores + loads > 0)
        rows.append(((-stores - loads, -most, line), row))
    rows.sort(key=lambda pair: pair[0])
    tab.parts.append(Table(_LINE, [row for _, row in rows]))
    tab.count = sum(row.bad for _, row in rows)
    return tab


# ------------------------------------------------------------------------------------------------------------- roofline


GPU = "H200 SXM"
BANDWIDTH = 4800.0
"""Bandwidth of its HBM3e in GB/s."""

PEAKS: Mapping[str, float] = {
    "f32 units": 66.9e3,
    "tensor cores, 64-bit": 66.9e3,
    "tensor cores, tf32": 494.7e3,
    "tensor cores, 16-bit": 989.5e3,
    "tensor cores, 8-bit": 1979e3,
}
"""Maps a unit to its peak in GFLOP/s. An addition or multiplication is one operation."""

_OPERAND = re.compile(r"(?<![a-z0-9])(?:(f64)|(tf32)|(e4m3|e5m2|[sui]{1,2}8))(?![a-z0-9])")
SECTOR = 32
"""Bytes per transaction of global memory."""


def unit_of(product: str) -> str:
    """Return the unit in :data:`PEAKS` that executes a tensor core op, from the text of the op.

    >>> unit_of("nvvm.wgmma.mma_async … <e4m3>"), unit_of("wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16")
    ('tensor cores, 8-bit', 'tensor cores, 16-bit')
    """
    found = _OPERAND.search(product)
    names = ("64-bit", "tf32", "8-bit")
    return f"tensor cores, {names[(found.lastindex or 1) - 1] if found is not None else '16-bit'}"


@dataclass(frozen=True)
class Roofline:
    """Counts of a run: operations per unit, and bytes of global memory moved by loads and stores and by TMA copies."""

    operations: Mapping[str, float]
    sectors: int
    copied: int
    times: Mapping[str, float] = field(init=False)
    """Minimum time of memory and of each unit, in nanoseconds."""

    def __post_init__(self) -> None:
        units = {unit: n / PEAKS[unit] for unit, n in self.operations.items()}
        object.__setattr__(self, "times", {"memory": self.nbytes / BANDWIDTH, **units})

    @property
    def nbytes(self) -> int:
        """Bytes of global memory moved in total."""
        return self.sectors + self.copied

    @property
    def intensity(self) -> float:
        """Operations per byte; 0 if no bytes were moved."""
        return sum(self.operations.values()) / self.nbytes if self.nbytes else 0.0

    @property
    def bound(self) -> str:
        """The resource with the longest minimum time."""
        return max(self.times, key=lambda name: self.times[name])

    @property
    def reached(self) -> float:
        """Upper bound in GFLOP/s."""
        longest = max(self.times.values())
        return sum(self.operations.values()) / longest if longest else 0.0


def counted(run: Run) -> Roofline | None:
    """Return the counts of a run, None if it did not count."""
    report = run.report
    if report is None or report.flops is None or report.profile is None:
        return None
    timeline = run.timeline.timeline if run.timeline is not None else None
    copied = sum(c.nbytes for c in timeline.copies) if timeline is not None else 0
    sectors = sum(x.transactions for x in report.profile.lines if x.space == "global")
    operations = {"f32 units": sum(report.flops.scalar.values()), **_by_unit(report.flops.tensor)}
    return Roofline(operations, SECTOR * sectors, copied * report.blocks)


def _by_unit(products: Mapping[Operation, float]) -> dict[str, float]:
    found: dict[str, float] = {}
    for op, n in products.items():
        unit = unit_of(str(op))
        found[unit] = found.get(unit, 0.0) + n
    return found


def roofline_tab(run: Run) -> Tab:
    """Return the tab with a run's roofline and its counts."""
    tab = Tab("roofline", "Roofline")
    found = counted(run)
    if found is None or run.report is None:
        tab.says = run.why_not or run.not_counted
        return tab
    blocks = run.report.blocks
    tab.says = (
        f"Counted in this run ({run.arguments}; {blocks} block{'s' * (blocks != 1)}), including padding of tiles. At "
        f"the peaks of an {GPU}, this kernel is bound by: {found.bound}. Bytes are those that the kernel requests, "
        "including those served by caches."
    )
    rows = [
        *(_row(f"floating-point operations, {unit}", n, found.times[unit]) for unit, n in found.operations.items()),
        _row("bytes of global memory by loads and stores, in 32-byte sectors", found.sectors),
        _row("bytes of global memory by TMA (first block times number of blocks)", found.copied),
        _row("bytes of global memory, total", found.nbytes, found.times["memory"]),
        Row(("operations per byte", f"{found.intensity:.2f}" if found.nbytes else "–", "")),
    ]
    tab.parts += [
        Picture(draw_roofline(found).fragment),
        Table((words(""), number("counted"), number("at least")), rows),
    ]
    profile = run.report.profile
    if profile is not None and profile.threads:
        o = profile.occupancy
        tab.parts.append(
            Words(
                f"occupancy: {o.blocks} block{'s' * (o.blocks != 1)}, {o.warps} of 64 warps per SM, limited by "
                f"{o.limit}"
            )
        )
    return tab


def _row(what: str, n: float, time: float | None = None) -> Row:
    return Row((what, f"{n:,.0f}", "" if time is None else f"{time:,.1f} ns"))


# -------------------------------------------------------------------------------------------------------------- picture

WIDE, HIGH, LEFT, TOP = 400, 170, 90, 44
"""Size of the plot and its left and top margins, in pixels."""


def draw_roofline(found: Roofline) -> Drawing:
    """Draw the roofs and the bound of a kernel of this intensity, with logarithmic axes."""
    units = [u for u, n in found.operations.items() if n] or ["f32 units"]
    at = found.intensity
    low, high = min(-1, _floor(at)), max(4, _floor(at) + 1)
    bottom, top = _floor(10**low * BANDWIDTH), _floor(max(PEAKS[u] for u in units)) + 1

    def x(intensity: float) -> float:
        return round(LEFT + WIDE * (log10(intensity) - low) / (high - low), 1)

    def y(rate: float) -> float:
        return round(TOP + HIGH * (top - log10(rate)) / (top - bottom), 1)

    body = [text(16, 24, f"roofline of an {GPU}", 14, "h"), *_axes(x, range(low, high + 1), y, range(bottom, top + 1))]
    highest = max(PEAKS[u] for u in units)
    body.append(
        f'<path class="l2" d="M{x(10**low):g} {y(10**low * BANDWIDTH):g}L{x(highest / BANDWIDTH):g} {y(highest):g}"/>'
    )
    body.append(text(x(10**low) + 14, y(10**low * BANDWIDTH) - 18, "memory, 4.8 TB/s", 11))
    for unit in units:
        peak = PEAKS[unit]
        body.append(f'<path class="l2" d="M{x(peak / BANDWIDTH):g} {y(peak):g}H{LEFT + WIDE}"/>')
        body.append(text(LEFT + WIDE + 6, y(peak) + 4, f"{unit}, {_rate(peak)}", 11))
    if at and found.reached:
        px, py = x(at), y(found.reached)
        said = f"{at:.3g} operations per byte: at most {_rate(found.reached)}, by {found.bound}"
        body.append(f'<path class="l1" stroke-dasharray="4 3" d="M{px:g} {py:g}V{TOP + HIGH}"/>')
        body.append(
            f'<g class="cells"><path data-k="kernel" class="bad" d="M{px - 6:g} {py:g}l6 -6l6 6l-6 6z">'
            f"<title>{said}</title></path></g>"
        )
    else:
        said = "no floating-point operation" if not at else ""
    body.append(text(LEFT, TOP + HIGH + 52, said, 12))
    return Drawing(f"roofline of an {GPU}", LEFT + WIDE + 240, TOP + HIGH + 66, "\n".join(body))


def _floor(x: float) -> int:
    """Return the exponent of the largest power of ten not above a number; -1 for 0.

    >>> _floor(57.3), _floor(0.02), _floor(0)
    (1, -2, -1)
    """
    return int(log10(x) // 1) if x > 0 else -1


def _rate(rate: float) -> str:
    """Format GFLOP/s with a suitable unit.

    >>> _rate(66.9e3), _rate(12.5)
    ('66.9 TFLOP/s', '12.5 GFLOP/s')
    """
    return f"{rate / 1000:.4g} TFLOP/s" if rate >= 1000 else f"{rate:.3g} GFLOP/s"


def _axes(
    x: Callable[[float], float], intensities: Iterable[int], y: Callable[[float], float], rates: Iterable[int]
) -> Sequence[str]:
    """Return the grid lines and labels of both axes at these powers of ten."""
    out: list[str] = []
    for n in intensities:
        out.append(f'<path class="thin" d="M{x(10**n):g} {TOP}v{HIGH}"/>')
        out.append(text(x(10**n), TOP + HIGH + 16, f"{10**n:g}", 10, "n dim"))
    for n in rates:
        out.append(f'<path class="thin" d="M{LEFT} {y(10**n):g}h{WIDE}"/>')
        out.append(text(LEFT - 6, y(10**n) + 3.5, _rate(10**n), 10, "e dim"))
    out.append(text(LEFT + WIDE / 2, TOP + HIGH + 32, "floating-point operations per byte", 11, "n dim"))
    return out


# --------------------------------------------------------------------------------------------------------- measurements


@dataclass
class Measured:
    """All tabs, the marks next to lines, the initial tab, and the initial source line (-1 for none)."""

    tabs: list[Tab]
    marks: list[Mark]
    first: str
    start: int


def measured(made: Collected, trace: ModuleOp, run: Run) -> Measured:
    """Return the measurements of a run and the report of ptxas for a module.

    ``trace`` is the module that was compiled.
    """
    faults, conflicts = fault_marks(made, run), conflict_marks(made, run)
    tabs = [
        accesses_tab(made, run),
        faults_tab(made, run, faults),
        _timeline_tab(run),
        shared_tab(made, trace),
        roofline_tab(run),
        registers_tab(made),
    ]
    marks = [*faults, *conflicts]
    first = "faults" if faults else "accesses" if conflicts else "layouts"
    return Measured(tabs, marks, first, made.source.line_of(marks[0].groups) if marks else -1)


def _timeline_tab(run: Run) -> Tab:
    tab = Tab("timeline", "Timeline", run.why_not or run.not_counted)
    if run.timeline is None:
        return tab
    try:
        drawing = draw_timeline(run.timeline)
    except DrawingError as e:
        tab.says = str(e)
        return tab
    tab.says = "The warps of the first block, when they run and what they wait for. Time counts ops, not nanoseconds."
    tab.parts.append(Picture(drawing.fragment))
    return tab


# ----------------------------------------------------------------------------------------------------------------- page


def page(data: Mapping[str, Any]) -> str:
    """Render the data of :func:`page_data` as an HTML page."""
    here = files("cute_dialect.explore")
    parts = {
        "TITLE": html.escape(str(data["title"])),
        "STYLE": (here / "page.css").read_text(encoding="utf-8"),
        # "</script>" in a text would end the element that contains the data.
        "DATA": json.dumps(data, separators=(",", ":"), ensure_ascii=False)
        .replace("</", "<\\/")
        .replace("<!--", "\\u003c!--"),
        "SCRIPT": (here / "page.js").read_text(encoding="utf-8"),
    }
    out: list[str] = []
    rest = (here / "page.html").read_text(encoding="utf-8")
    for name, part in parts.items():
        before, _, rest = rest.partition(f"@{name}@")
        out += [before, part]
    return "".join([*out, rest])


def page_data(title: str, facts: str, made: Collected, drawings: Drawings, measured: Measured) -> dict[str, Any]:
    """Return the contents of the page as plain data."""
    return {
        "title": title,
        "facts": facts,
        "mlir": made.is_mlir,
        "panes": [_pane(p) for p in made.panes],
        "values": drawings.values,
        "named": drawings.named,
        "drawings": drawings.pictures,
        "marks": [m._asdict() for m in measured.marks],
        "tabs": [_tab(t) for t in measured.tabs],
        "first": measured.first,
        "start": measured.start,
    }


def _pane(p: Pane) -> dict[str, Any]:
    out: dict[str, Any] = {
        "key": p.key, "title": p.title, "kind": p.kind, "lines": p.lines, "groups": p.groups, "shown": p.shown,
        "missing": p.missing,
    }  # fmt: skip
    if isinstance(p, Source):
        out |= {"numbers": [number or None for _, number in p.places], "own": p.own}
    if p.notes:
        out["notes"] = p.notes
    return out


def _tab(t: Tab) -> dict[str, Any]:
    return {"key": t.key, "title": t.title, "says": t.says, "count": t.count, "parts": [_part(p) for p in t.parts]}


def _part(p: Part) -> dict[str, Any]:
    if isinstance(p, Table):
        return {"columns": [c._asdict() for c in p.columns], "rows": [r._asdict() for r in p.rows]}
    return p._asdict()
