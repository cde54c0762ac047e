"""Work on numbered jobs in a process of its own, which may crash or hang: the step that it was at is left out, the rest
goes on in a new process.

A kernel that reads where it must not ends the use of the GPU in its process, and one that waits for ever cannot be
stopped but with it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from multiprocessing import get_context
from multiprocessing.connection import Connection
from typing import Protocol

__all__ = ["Reporter", "Supervised", "Work", "supervised"]


class Reporter:
    """What the process tells the one that watches it."""

    def __init__(self, pipe: Connection):
        self._pipe = pipe

    def at(self, job: int, step: str) -> None:
        """Say which step of a job comes now."""
        self._pipe.send(("at", job, step))

    def done(self, job: int, result: object) -> None:
        """Give the result of a job."""
        self._pipe.send(("done", job, result))

    def last_words(self, why: str) -> None:
        """Say why the process cannot go on; it ends then."""
        self._pipe.send(("last words", 0, why))


class Work(Protocol):
    """A function of a module, for jobs one after another: each step is told before it, and those that are ``broken``
    are left out.  A step of the name "" is the whole job.
    """

    def __call__(self, jobs: Sequence[int], broken: frozenset[str], reporter: Reporter) -> None: ...


@dataclass
class Supervised:
    """What came of it: results by job, steps that crashed or hung with the reason, jobs that did as a whole, jobs that
    are left, and why where that is not the deadline's doing.
    """

    results: dict[int, object] = field(default_factory=dict[int, object])
    broken: dict[str, str] = field(default_factory=dict[str, str])
    lost: dict[int, str] = field(default_factory=dict[int, str])
    left: list[int] = field(default_factory=list[int])
    stopped: str = ""


def supervised(
    work: Work, jobs: int, *, patience: float, deadline: float, tell: Callable[[int, object], None]
) -> Supervised:
    """Do jobs ``0`` to ``jobs - 1``; ``tell`` is called with each result.

    ``patience``: seconds that a step may take, the start of the process included; ``deadline``: of
    ``time.monotonic``.  It stops where a process ends before its first step: the next would as well.
    """
    found = Supervised(left=list(range(jobs)))
    while found.left and time.monotonic() < deadline:
        at, why = _one_process(work, found, patience, deadline, tell)
        if not why:
            continue
        if at is None:
            found.stopped = why
            break
        job, step = at
        if step:
            found.broken[step] = why
        elif job in found.left:
            found.lost[job] = why
            found.left.remove(job)
    return found


def _one_process(
    work: Work, found: Supervised, patience: float, deadline: float, tell: Callable[[int, object], None]
) -> tuple[tuple[int, str] | None, str]:
    """Work until the process ends, hangs, or the deadline comes: where it was then, and why it did not go on."""
    context = get_context("spawn")
    ours, theirs = context.Pipe(duplex=False)
    process = context.Process(target=_child, args=(work, tuple(found.left), frozenset(found.broken), theirs))
    process.start()
    theirs.close()
    at: tuple[int, str] | None = None
    last_words = ""
    try:
        while True:
            wait = min(patience, max(0.0, deadline - time.monotonic()))
            if not ours.poll(wait):
                return at, "" if time.monotonic() >= deadline else f"no answer for {patience:g} s"
            try:
                kind, job, value = ours.recv()
            except EOFError:
                process.join()
                return at, (last_words or f"its process ended with {process.exitcode}") if found.left else ""
            if kind == "done":
                found.results[job] = value
                found.left.remove(job)
                tell(job, value)
            elif kind == "at":
                at = (job, str(value))
            else:
                last_words = str(value)
    finally:
        process.kill()
        process.join()
        ours.close()


def _child(work: Work, jobs: Sequence[int], broken: frozenset[str], pipe: Connection) -> None:
    work(jobs, broken, Reporter(pipe))
