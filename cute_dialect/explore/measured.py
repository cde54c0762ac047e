"""The tabs below the columns: accesses, shared memory, faults, timeline, roofline, registers, as plain data."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from cute_dialect.explore.collect import Collected
from cute_dialect.explore.runs import Run

__all__ = ["Measured", "Tab", "measured"]

GPU = "H200 SXM"
BANDWIDTH, SCALAR, TENSOR = 4800.0, 66.9e3, 989.5e3
"""NVIDIA H200 data sheet (2024): HBM3e 4.8 TB/s; f32 67 and dense f16 tensor 989.5 TFLOP/s, here in GFLOP/s."""


@dataclass
class Tab:
    """A tab: what it says above, and its parts, each a table, a text or HTML.  ``count`` stands beside its title."""

    key: str
    title: str
    says: str = ""
    parts: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    count: int = 0

    def json(self) -> dict[str, Any]:
        """Return it as plain data."""
        return {"key": self.key, "title": self.title, "says": self.says, "parts": self.parts, "count": self.count}


@dataclass
class Measured:
    """All tabs; accesses and faults by group; which tab is opened, at which line of the source (-1: none)."""

    tabs: list[Tab]
    accesses: list[dict[str, Any]]
    races: list[dict[str, Any]]
    first: str
    start: int


def measured(made: Collected, run: Run) -> Measured:
    """Return what a run and ptxas say of a module."""
    accesses = list(_accesses(made, run))
    races = _faults(made, run)
    why = run.why_not
    tabs = [
        _accesses_tab(made, accesses, why),
        _faults_tab(made, races, run),
        _timeline_tab(run),
        _shared_tab(made),
        _roofline_tab(run),
        _registers_tab(made),
    ]
    conflicts = [a for a in accesses if a["space"] == "shared" and a["excess"] > 0]
    first = "faults" if races else "accesses" if conflicts else "layouts"
    worst = (races or conflicts or [{"line": -1}])[0]["line"]
    return Measured(tabs, accesses, races, first, worst)


def _line_of(made: Collected, groups: Sequence[int]) -> int:
    """Return the line of the source pane that is the innermost place of one of the groups, counted from 0; -1: none."""
    known = made.line_of_group
    return min((known[g] for g in groups if g in known), default=-1)


def _where(made: Collected, line: int) -> str:
    numbers = made.panes[0].numbers or []
    return f"line {numbers[line]}" if 0 <= line < len(numbers) and numbers[line] is not None else ""


def _source(made: Collected, line: int) -> str:
    return made.panes[0].lines[line].strip()[:110] if line >= 0 else ""


# ----------------------------------------------------------------------------------------------------------- accesses


def _accesses(made: Collected, run: Run) -> Iterator[dict[str, Any]]:
    profile = run.report.profile if run.report is not None else None
    for line in profile.lines if profile is not None else ():
        groups = made.groups.at_place(line.location)
        at = _line_of(made, groups)
        yield {
            "space": line.space, "op": line.op, "width": line.width, "requests": line.requests,
            "transactions": line.transactions, "ideal": line.ideal, "excess": line.excess,
            "ratio": round(line.ratio, 2), "groups": list(groups), "line": at, "where": _where(made, at),
            "source": _source(made, at),
        }  # fmt: skip


def _accesses_tab(made: Collected, accesses: Sequence[dict[str, Any]], why: str) -> Tab:
    bad = sum(a["excess"] > 0 for a in accesses)
    tab = Tab("accesses", "Memory accesses", count=bad)
    tab.says = (
        "What each access cost: transactions of shared memory (32 banks of 4 bytes; more than the ideal are bank "
        "conflicts), sectors of 32 bytes of global memory (more than the ideal: not coalesced). Dearest first; a click "
        "shows the line."
    )
    if not accesses:
        tab.says = why or "The run made no access to shared or global memory by loads and stores."
        return tab
    heads = [["", 0], ["where", 0], ["memory", 0], ["source", 0, 1], ["op", 0, 1], ["bytes a thread", 1]]
    heads += [["requests", 1], ["transactions", 1], ["ideal", 1], ["ratio", 1]]
    rows: list[dict[str, Any]] = []
    for a in accesses:
        verdict = ""
        if a["excess"] > 0:
            verdict = "bank conflict" if a["space"] == "shared" else "not coalesced"
        cells = [verdict, a["where"], a["space"], a["source"], a["op"], a["width"], a["requests"]]
        cells += [a["transactions"], a["ideal"], f"{a['ratio']:.2f}"]
        rows.append({"cells": cells, "groups": a["groups"], "line": a["line"], "bad": bool(verdict)})
    tab.parts = [{"heads": heads, "rows": rows}]
    return tab


# ------------------------------------------------------------------------------------------------- faults, timeline


def _faults(made: Collected, run: Run) -> list[dict[str, Any]]:
    if run.fault is None:
        return []
    frames = [(f.position.file, f.position.line) for f in run.fault.frames]
    groups = [made.groups.number(tuple(frames))] if frames else []
    at = _line_of(made, groups) if groups else -1
    return [
        {"kind": run.fault.kind, "message": run.fault.message, "text": str(run.fault), "groups": groups, "line": at}
    ]


def _faults_tab(made: Collected, faults: Sequence[dict[str, Any]], run: Run) -> Tab:
    tab = Tab("faults", "Races and faults", count=len(faults))
    if not faults:
        ran = run.report is not None
        tab.says = run.why_not or (
            "No race, no access out of bounds, no use of what nothing has written, no fault of synchronisation in this "
            f"run ({run.arguments})." if ran else "There was no run."
        )  # fmt: skip
        return tab
    heads = [["kind", 0], ["where", 0], ["message", 0]]
    rows: list[dict[str, Any]] = []
    for f in faults:
        cells = [f["kind"], _where(made, f["line"]), f["message"]]
        rows.append({"cells": cells, "groups": f["groups"], "line": f["line"], "bad": True})
    tab.parts = [{"heads": heads, "rows": rows}, *({"text": f["text"]} for f in faults)]
    return tab


def _timeline_tab(run: Run) -> Tab:
    from cute_dialect.viz.errors import DrawingError
    from cute_dialect.viz.timeline import draw_timeline

    tab = Tab("timeline", "Timeline", run.why_not)
    if run.timeline is None:
        tab.says = tab.says or "The run ended before there was one."
        return tab
    try:
        drawing = draw_timeline(run.timeline)
    except DrawingError as e:
        tab.says = str(e)
        return tab
    tab.says = (
        "The first block's warps: where they run, where they wait and for what. Time counts ops, not nanoseconds."
    )
    tab.parts = [{"html": drawing.fragment}]
    return tab


# --------------------------------------------------------------------------------------------------- shared memory


def _shared_tab(made: Collected) -> Tab:
    from cute_dialect.interp.allocations import shared_allocations
    from cute_dialect.interp.errors import attr_of

    tab = Tab("shared", "Shared memory")
    rows: list[dict[str, Any]] = []
    total = 0
    for name in [k["name"] for k in made.module.manifest["kernels"]]:
        lowered: Any = made.module.lowered(name)
        for op in lowered.walk():
            if attr_of(op, "cute.smem") is None:
                continue
            segments = {str(e.data["segment"].data): (0, 0) for e in attr_of(op, "cute.smem").data}  # type: ignore[union-attr]
            for a in shared_allocations(op, segments).known:
                total = max(total, a.start + a.size)
                groups = _groups_of(made, a.name)
                cells = [name, a.name, a.start, a.size, a.type]
                row: dict[str, Any] = {"cells": cells, "groups": groups, "line": _line_of(made, groups)}
                if row not in rows:
                    rows.append(row)
    occupancy = [f"{r['name']}: {r['smem']} bytes static" for r in made.report if r.get("smem")]
    tab.says = f"{total} bytes in {len(rows)} buffers. {'; '.join(occupancy)}" if rows else "None is allocated."
    heads = [["kernel", 0, 1], ["buffer", 0, 1], ["first byte", 1], ["bytes", 1], ["type", 0, 1]]
    tab.parts = [{"heads": heads, "rows": rows}] if rows else []
    return tab


def _groups_of(made: Collected, name: str) -> list[int]:
    """Return the groups of the line of the trace that defines a value."""
    trace = made.pane("trace")
    wanted = f"{name} = "
    found = (g for x, g in zip(trace.lines, trace.groups) if x.strip().startswith(wanted))
    return list(next(found, ()))


# ------------------------------------------------------------------------------------------------------- roofline


def _roofline_tab(run: Run) -> Tab:
    tab = Tab("roofline", "Roofline", run.why_not)
    report = run.report
    if report is None or report.flops is None or report.profile is None:
        tab.says = tab.says or "There was no run."
        return tab
    scalar, tensor = sum(report.flops.scalar.values()), sum(report.flops.tensor.values())
    sectors = sum(x.transactions for x in report.profile.lines if x.space == "global")
    copied = sum(c.nbytes for c in run.timeline.timeline.copies) if run.timeline and run.timeline.timeline else 0
    copied *= report.blocks
    loaded = 32 * sectors + copied
    flops = scalar + tensor
    times = {
        "memory": loaded / BANDWIDTH,
        "f32 units": scalar / SCALAR,
        "tensor cores": tensor / TENSOR,
    }  # fmt: skip  (nanoseconds: bytes over GB/s)
    bound = max(times, key=lambda k: times[k])
    rows = [
        ["floating-point operations, scalar", f"{scalar:,.0f}", f"{times['f32 units']:,.1f} ns"],
        ["floating-point operations, tensor cores", f"{tensor:,.0f}", f"{times['tensor cores']:,.1f} ns"],
        ["bytes of global memory: sectors of loads and stores", f"{32 * sectors:,}", ""],
        ["bytes of global memory: copies by TMA (those of the first block, times the blocks)", f"{copied:,}", ""],
        ["bytes in all", f"{loaded:,}", f"{times['memory']:,.1f} ns"],
        ["operations a byte", f"{flops / loaded:.2f}" if loaded else "–", ""],
    ]
    tab.says = (
        f"Counted in this run ({run.arguments}; {report.blocks} blocks), with what tiles pad. At the peaks of an {GPU} "
        f"(4.8 TB/s; 67 TFLOP/s f32, 989 f16 on tensor cores) what takes longest is: {bound}. Bytes are those asked "
        "for by the kernel: what caches serve again is counted again."
    )
    heads = [["", 0], ["counted", 1], ["at least", 1]]
    tab.parts = [{"heads": heads, "rows": [{"cells": r} for r in rows]}]
    if report.profile.threads:
        o = report.profile.occupancy
        tab.parts.append({"text": f"occupancy: {o.blocks} blocks, {o.warps} of 64 warps an SM, limited by {o.limit}"})
    return tab


# ------------------------------------------------------------------------------------------------------ registers


def _registers_tab(made: Collected) -> Tab:
    tab = Tab("registers", "Registers and spills")
    names = ("name", "registers", "spill_stores", "spill_loads", "stack", "smem", "barriers", "code")
    kernels = [[k[n] for n in names] for k in made.report]
    heads = [["kernel", 0, 1], ["registers", 1], ["spill stores, bytes", 1], ["spill loads, bytes", 1], ["stack", 1]]
    heads += [["static shared", 1], ["barriers", 1], ["code, bytes", 1]]
    if kernels:
        tab.parts.append({"heads": heads, "rows": [{"cells": k} for k in kernels]})
    sass = made.pane("sass")
    if not sass.lines:
        tab.says = sass.missing
        return tab
    tab.says = (
        "By line of the source: registers that are live at its instructions at most, instructions, spills (nvdisasm)."
    )
    by_line: dict[int, list[int]] = {}
    for i, groups in enumerate(sass.groups):
        line = _line_of(made, groups) if groups else -1
        if line >= 0 and i < len(made.live):
            by_line.setdefault(line, []).append(i)
    rows: list[dict[str, Any]] = []
    for line, found in by_line.items():
        spills = [sum(made.spills[i] == kind for i in found) for kind in ("store", "load")]
        most = max(made.live[i] for i in found)
        groups = list((made.panes[0].own or [])[line])
        cells = [_where(made, line), most, len(found), *spills, _source(made, line)]
        rows.append({"cells": cells, "groups": groups, "line": line, "bad": any(spills)})
    rows.sort(key=lambda r: (-r["cells"][3] - r["cells"][4], -r["cells"][1], r["line"]))
    heads = [["where", 0], ["live registers", 1], ["instructions", 1], ["spill stores", 1], ["spill loads", 1]]
    tab.parts.append({"heads": [*heads, ["source", 0, 1]], "rows": rows})
    tab.count = sum(bool(r["bad"]) for r in rows)
    return tab
