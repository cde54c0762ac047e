"""Drawings of runs of the interpreter: who did what when."""

from __future__ import annotations

from typing import Any

from cute_dialect.viz.drawing import Drawing, Path
from cute_dialect.viz.errors import DrawingError

__all__ = ["draw_timeline", "is_run"]


def is_run(x: Any) -> bool:
    """Tell whether something is the report of a run."""
    return hasattr(x, "lane_ops")


def draw_timeline(report: Any, *, file: Path | None = None) -> Drawing:
    """Draw a run of the interpreter.  Raises DrawingError where nothing was recorded."""
    raise DrawingError("expected a run with reports=('timeline',)")
