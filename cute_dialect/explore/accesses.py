"""Bank conflicts and coalescing: the cost of each load and store of a run, per line."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from cute_dialect.explore.collect import Collected
from cute_dialect.explore.runs import Run
from cute_dialect.explore.tabs import Mark, Row, Tab, Table, code, number, words

if TYPE_CHECKING:
    from cute_dialect.interp.reports.profile import Line

__all__ = ["accesses_tab", "conflict_marks"]

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
