"""Races and other faults that the checks of a run found."""

from __future__ import annotations

import re
from collections.abc import Sequence

from cute_dialect.explore.collect import Collected
from cute_dialect.explore.runs import Run
from cute_dialect.explore.tabs import Mark, Row, Tab, Table, Words, words

__all__ = ["fault_marks", "faults_tab"]

_PLACE = re.compile(r" at (\S.*:\d+:\d+)$")


def fault_marks(made: Collected, run: Run) -> list[Mark]:
    """Return the mark of the line whose op ended the run, if one did; after it those of the places that it names, such
    as the earlier access of a race.
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
    """Return the tab of the fault of :func:`fault_marks`, with all that the interpreter says of it."""
    tab = Tab("faults", "Races and faults", count=int(run.fault is not None))
    if run.fault is None:
        tab.says = run.why_not or (
            "No race, no access out of bounds, no use of what nothing has written, no fault of synchronisation in this "
            f"run ({run.arguments})."
        )
        return tab
    rows: list[Row] = []
    for mark in marks:
        line = made.source.line_of(mark.groups)
        rows.append(Row((mark.short, made.source.name_of(line), mark.text), mark.groups, line, bad=True))
    tab.parts += [Table((words("kind"), words("where"), words("message")), rows), Words(str(run.fault))]
    return tab
