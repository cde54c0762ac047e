"""Tabs and marks with all measurements, and the initial state of the page."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from cute_dialect.explore.accesses import accesses_tab, conflict_marks
from cute_dialect.explore.collect import Collected
from cute_dialect.explore.faults import fault_marks, faults_tab
from cute_dialect.explore.resources import registers_tab, shared_tab
from cute_dialect.explore.roofline import roofline_tab
from cute_dialect.explore.runs import Run
from cute_dialect.explore.tabs import Mark, Picture, Tab
from cute_dialect.viz.errors import DrawingError
from cute_dialect.viz.timeline import draw_timeline

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp

__all__ = ["Measured", "measured"]


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
