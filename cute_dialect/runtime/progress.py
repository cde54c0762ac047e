"""Progress of long work: a bar on a terminal, and JSON events for tools.

    for name in track(names, "compiling", "kernels"): ...         # each iteration is a step
    with Task("compiling", len(jobs), "kernels") as task:
        task.advance(name="gemm")                                 # one more step is done

The bar appears on standard error after one second and disappears when the work ends.  ``CUTE_PROGRESS`` is ``auto``
(a bar if standard error is a terminal), ``always`` or ``never``.  ``CUTE_PROGRESS_JSON`` names a file to which events
are appended, one JSON object per line (docs/progress.md).  :func:`add_options` adds the same options to a program.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from collections.abc import Generator, Iterable, Sequence
from contextlib import ExitStack, contextmanager, redirect_stdout
from contextvars import ContextVar
from typing import IO, TYPE_CHECKING, TypeVar

from cute_dialect.runtime.settings import SettingError, word

if TYPE_CHECKING:  # pragma: no cover
    from argparse import ArgumentParser

    from rich.progress import Progress as Bar
    from rich.progress import TaskID

__all__ = ["FORMAT", "WHEN", "Task", "add_options", "clock", "reporting", "seconds_left", "track"]

_Item = TypeVar("_Item")

FORMAT = 1
"""Version of the event format, in each ``start`` event.  Incompatible changes increment it."""
WHEN = ("auto", "always", "never")
_DELAY = 1.0  # seconds before the bar appears
_EVERY = 0.1  # minimum seconds between step events


def seconds_left(done: float, total: float, at: float, now: float) -> float | None:
    """Return the estimated remaining seconds at the average speed so far; None before the first step.

    ``done`` of ``total`` steps were done ``at`` seconds after the start; ``now`` is the time since the start.

    >>> seconds_left(3, 12, 6.0, 7.0), seconds_left(1, 2, 1.0, 9.0), seconds_left(0, 12, 0.0, 5.0)
    (17.0, 0.0, None)
    """
    return max(0.0, at / done * (total - done) - (now - at)) if done > 0 else None


def clock(seconds: float) -> str:
    """Format seconds as minutes and seconds, or hours, minutes and seconds.

    >>> clock(7.2), clock(83), clock(7205)
    ('0:07', '1:23', '2:00:05')
    """
    minutes, s = divmod(round(seconds), 60)
    hours, m = divmod(minutes, 60)
    return f"{hours}:{m:02d}:{s:02d}" if hours else f"{m}:{s:02d}"


def add_options(parser: ArgumentParser) -> None:
    """Add ``--progress`` and ``--progress-json`` to a program; :func:`reporting` takes their values."""
    group = parser.add_argument_group("progress")
    group.add_argument(
        "--progress", choices=WHEN, help="show a progress bar; auto (the default): if standard error is a terminal"
    )
    group.add_argument(
        "--progress-json", metavar="FILE",
        help="write events to FILE, one JSON object per line ('-': standard output; then other output goes to stderr)",
    )  # fmt: skip


class Task:
    """A context manager for work of ``total`` steps in ``unit``; None until :meth:`update` sets the total.

    The task ends as done, or with an error if an exception leaves the context.  A nested task is a second line
    of the bar.  Bars appear only in the main thread.
    """

    def __init__(self, what: str, total: int | None = None, unit: str = "steps"):
        self.what, self.total, self.unit = what, total, unit
        self.done, self.name = 0, ""
        self.number = 0
        self._at = self._last_event = 0.0
        self._begin = time.monotonic()
        self._stack = ExitStack()
        self._outlet: _Outlet | None = None

    @property
    def seconds(self) -> float:
        """Seconds since the start."""
        return time.monotonic() - self._begin

    @property
    def left(self) -> float | None:
        """Estimated remaining seconds; None if unknown."""
        return None if self.total is None else seconds_left(self.done, self.total, self._at, self.seconds)

    def advance(self, steps: int = 1, name: str = "") -> None:
        """Report ``steps`` more steps as done; ``name`` is the last one."""
        self.update(self.done + steps, name=name)

    def update(self, done: int, total: int | None = None, name: str = "") -> None:
        """Report the number of finished steps, the total, and the name of the last step."""
        self.done, self.name, self._at = done, name, self.seconds
        self.total = self.total if total is None else total
        if self._outlet is None:
            return
        with_event = self._last_event == 0.0 or self._at - self._last_event >= _EVERY or self.done == self.total
        if with_event:
            self._last_event = self._at
        self._outlet.step(self, with_event)

    def __enter__(self) -> Task:
        outlet = _current.get()
        if outlet is None:
            self._stack.enter_context(reporting())
            outlet = _current.get()
            assert outlet is not None
        self._begin = time.monotonic()
        self._outlet = outlet
        outlet.begin(self)
        return self

    def __exit__(self, _: object, error: BaseException | None, traceback: object) -> None:
        if self._outlet is not None:
            self._outlet.end(self, error)
        self._stack.close()


def track(items: Iterable[_Item], what: str, unit: str = "steps") -> Generator[_Item]:
    """Yield the items.  Each item is a step, named by the item if it is a string.

    >>> list(track(["a", "b"], "reading", "files"))
    ['a', 'b']
    """
    listed: Sequence[_Item] = items if isinstance(items, Sequence) else list(items)
    with Task(what, len(listed), unit) as task:
        for item in listed:
            yield item
            task.advance(name=item if isinstance(item, str) else "")


@contextmanager
def reporting(when: str | None = None, events: str | None = None) -> Generator[None]:
    """Show the progress of the tasks inside the context.

    Args:
        when: show a bar: ``auto``, ``always`` or ``never``; None reads ``CUTE_PROGRESS``.
        events: file for events; ``-`` is standard output, with other output redirected to standard error.  None reads
            ``CUTE_PROGRESS_JSON``.

    A task that is still open when the context exits ends with the error of the context.

    Raises SettingError for a file that cannot be written or an invalid environment variable.
    """
    shows = when or word("CUTE_PROGRESS", WHEN) or "auto"
    path, name, mode = events, "--progress-json", "w"
    if path is None:
        path, name, mode = word("CUTE_PROGRESS_JSON"), "CUTE_PROGRESS_JSON", "a"
    with ExitStack() as stack:
        file: IO[str] | None = None
        if path == "-":
            file = sys.stdout
            stack.enter_context(redirect_stdout(sys.stderr))
        elif path:
            try:
                file = stack.enter_context(open(path, mode, encoding="utf-8"))
            except OSError as e:
                raise SettingError(f"{name}: cannot write '{path}': {e.strerror}") from None
        outlet = _Outlet(shows, file)
        token = _current.set(outlet)
        try:
            yield
        except BaseException as e:
            outlet.close(e)
            raise
        else:
            outlet.close(None)
        finally:
            _current.reset(token)


class _Outlet:
    """Destination of the progress of tasks: the bar and the event file."""

    def __init__(self, when: str, events: IO[str] | None):
        self._when, self._events = when, events
        self._open: list[Task] = []
        self._left: list[Task] = []
        self._count = 0
        self._lock = threading.RLock()
        self._timer: threading.Timer | None = None
        self._bar: Bar | None = None
        self._lines: dict[int, TaskID] = {}

    def begin(self, task: Task) -> None:
        with self._lock:
            self._tell_left(None)
            self._count += 1
            task.number = self._count
            self._open.append(task)
            self._write(task, "start", format=FORMAT, what=task.what, unit=task.unit)
            if self._bar is not None:
                self._draw(task)
            elif self._timer is None and self._shows():
                self._timer = threading.Timer(_DELAY, self._show)
                self._timer.daemon = True
                self._timer.start()

    def step(self, task: Task, with_event: bool) -> None:
        """Update the bar for a task, and write an event if ``with_event`` is set."""
        with self._lock:
            self._tell_left(None)
            if with_event and task in self._open:
                self._write(task, "step", name=task.name, left=None if task.left is None else round(task.left, 3))
            if self._bar is not None and task in self._open:
                self._draw(task)

    def end(self, task: Task, error: BaseException | None) -> None:
        """End a task, with an error or without; repeated ends are ignored."""
        with self._lock:
            if task not in self._open:
                return
            self._open.remove(task)
            line = self._lines.pop(task.number, None)
            if self._bar is not None and line is not None:
                self._bar.remove_task(line)
            if not self._open:
                self._hide()
            # A break or an exception left the loop. The exception will reach this object, too.
            if isinstance(error, GeneratorExit):
                self._left.append(task)
                return
            self._tell_left(error)
            self._write_end(task, error)

    def close(self, error: BaseException | None) -> None:
        """End the tasks that are still open, innermost first."""
        for task in reversed(self._open.copy()):
            self.end(task, error)
        self._tell_left(error)

    def _tell_left(self, error: BaseException | None) -> None:
        while self._left:
            self._write_end(self._left.pop(0), error)

    def _write_end(self, task: Task, error: BaseException | None) -> None:
        if error is None:
            self._write(task, "done")
        else:
            message = "interrupted" if isinstance(error, KeyboardInterrupt) else str(error) or type(error).__name__
            self._write(task, "error", message=message)

    def _shows(self) -> bool:
        if self._when == "never" or threading.current_thread() is not threading.main_thread():
            return False
        if self._when == "always":
            return True
        return sys.stderr is not None and sys.stderr.isatty() and os.environ.get("TERM") not in ("dumb", "unknown")

    def _write(self, task: Task, event: str, **more: object) -> None:
        if self._events is not None:
            fields = {"event": event, "task": task.number, "step": task.done, "total": task.total}
            self._events.write(json.dumps({**fields, "seconds": round(task.seconds, 3), **more}) + "\n")
            self._events.flush()

    def _show(self) -> None:
        """Draw the bar, from the timer's thread, one second after the first task began."""
        from rich.console import Console
        from rich.progress import BarColumn, Progress, ProgressColumn, TextColumn
        from rich.progress import Task as Line
        from rich.text import Text

        class TimeLeft(ProgressColumn):
            def render(self, task: Line) -> Text:
                of: Task = task.fields["of"]
                text = f"{clock(of.seconds)} so far" if of.left is None else f"{clock(of.left)} left"
                return Text(text, "progress.remaining")

        columns = (
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            TextColumn("{task.fields[count]}", "progress.download", markup=False),
            TimeLeft(),
            TextColumn("{task.fields[of].name}", "dim", markup=False),
        )
        with self._lock:
            self._timer = None
            if not self._open:
                return
            console = Console(stderr=True, force_terminal=self._when == "always" or None)
            # Output printed meanwhile appears above the bar, unless standard output is redirected.
            self._bar = Progress(*columns, console=console, transient=True, redirect_stdout=sys.stdout.isatty())
            for task in self._open:
                self._draw(task)
            self._bar.start()

    def _draw(self, task: Task) -> None:
        assert self._bar is not None
        count = f"{task.done}/{'?' if task.total is None else task.total} {task.unit}"
        if task.number not in self._lines:
            self._lines[task.number] = self._bar.add_task(task.what, total=task.total, count=count, of=task)
        self._bar.update(self._lines[task.number], completed=task.done, total=task.total, count=count)

    def _hide(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._bar is not None:
            self._bar.stop()
            self._bar = None
            self._lines.clear()


_current: ContextVar[_Outlet | None] = ContextVar("cute_dialect_progress", default=None)
