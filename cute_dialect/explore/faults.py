"""Tab and marks for the fault that ended a run, such as a race."""

from __future__ import annotations

import re
from collections.abc import Sequence

from cute_dialect.explore.collect import Collected
from cute_dialect.explore.runs import Run
from cute_dialect.explore.tabs import Mark, Row, Tab, Table, Words, words

__all__ = ["fault_marks", "faults_tab"]

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
