"""A progress bar on standard error for runs on the interpreter that take more than a second."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:  # pragma: no cover
    from rich.console import Console
    from rich.progress import Progress as Bar

    from cute_dialect.interp import Progress

__all__ = ["Ticker", "quantity"]

_DELAY = 1.0  # seconds before the bar appears
_EVERY = 0.1  # seconds between updates


def quantity(n: float) -> str:
    """Write a number with three digits and a unit.

    >>> quantity(1234567), quantity(12)
    ('1.23 M', '12')
    """
    for unit, size in (("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if n >= size:
            return f"{n / size:.3g} {unit}"
    return f"{n:.0f}"


class Ticker:
    """Give it to ``run_kernel`` as ``progress``; use as a context, so that the bar goes when the run ends."""

    def __init__(self, console: Console | None = None):
        self._console = console
        self._bar: Bar | None = None
        self._next = _DELAY

    def __call__(self, p: Progress) -> None:
        """Show blocks done and in all, lane-ops a second, and the time left as the blocks so far let expect."""
        if p.seconds < self._next:
            return
        self._next = p.seconds + _EVERY
        bar = self._bar or self._start(p)
        left = p.seconds / p.done * (p.total - p.done) if p.done else None
        eta = f"{left:.0f} s left" if left is not None else "time left unknown"
        bar.update(bar.task_ids[0], completed=p.done, rate=quantity(p.lane_ops / p.seconds), eta=eta)

    def _start(self, p: Progress) -> Bar:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

        columns = (
            TextColumn("blocks"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[rate]} lane-ops/s, {task.fields[eta]}"),
        )
        self._bar = bar = Progress(*columns, console=self._console or Console(stderr=True), transient=True)
        bar.add_task("", total=p.total, rate="", eta="")
        bar.start()
        return bar

    def __enter__(self) -> Ticker:
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.stop()
