"""Child processes of benchmarks: a pool with a progress report, and jobs that may crash or hang.

:func:`in_processes` maps a function over jobs, with one process per CPU.  :func:`supervised` processes numbered jobs in
one child process.  An illegal memory access in a kernel makes the GPU unusable for its process.  A kernel that hangs
can only be stopped by ending its process.  The step that crashed or hung is skipped, and the remaining jobs continue
in a new process.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from dataclasses import dataclass, field
from multiprocessing import get_context
from multiprocessing.connection import Connection
from typing import Protocol, TypeVar

from cute_dialect.runtime.progress import Task

_Job = TypeVar("_Job")
_Result = TypeVar("_Result")


def new_pool(processes: int | None = None) -> ProcessPoolExecutor:
    """Return a process pool, by default of one process per CPU that this process may use.

    The workers ignore ``Ctrl-C``, which the parent process handles.
    """
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()  # macOS has no masks
    processes = processes or usable
    return ProcessPoolExecutor(processes, get_context("spawn"), signal.signal, (signal.SIGINT, signal.SIG_IGN))


def in_processes(
    work: Callable[[_Job], _Result], jobs: Sequence[_Job], names: Sequence[str], what: str = "compiling",
    unit: str = "kernels", processes: int | None = None,
) -> list[_Result]:  # fmt: skip
    """Return ``work(job)`` for each job, in order.

    Args:
        names: labels shown in the progress report when jobs finish.
        processes: number of processes; default: one per CPU.

    If a job raises, or on KeyboardInterrupt, the exception is raised after the running jobs have finished.
    """
    pool = new_pool(processes)
    try:
        with Task(what, len(jobs), unit) as task:
            names_of: dict[Future[_Result], str] = {pool.submit(work, job): n for job, n in zip(jobs, names)}
            left = set(names_of)
            while left:
                done, left = wait(left, return_when=FIRST_COMPLETED)
                for future in done:
                    future.result()
                    task.advance(name=names_of[future])
            return [future.result() for future in names_of]
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


class Reporter:
    """The messages of the child process to its parent."""

    def __init__(self, pipe: Connection):
        self._pipe = pipe

    def at(self, job: int, step: str) -> None:
        """Report the start of a step of a job."""
        self._pipe.send(("at", job, step))

    def done(self, job: int, result: object) -> None:
        """Report the result of a job."""
        self._pipe.send(("done", job, result))

    def last_words(self, why: str) -> None:
        """Report the reason why the process is about to exit."""
        self._pipe.send(("last words", 0, why))


class Work(Protocol):
    """A module-level function that processes jobs in order.

    It reports each step before it starts and skips the steps in ``broken``.  The step "" is the whole job.
    """

    def __call__(self, jobs: Sequence[int], broken: frozenset[str], reporter: Reporter) -> None: ...


@dataclass
class Supervised:
    """The outcome: results by job, reasons of failed steps (``broken``) and of failed jobs (``lost``), remaining jobs
    (``left``), and the reason for stopping before the deadline (``stopped``).
    """

    results: dict[int, object] = field(default_factory=dict[int, object])
    broken: dict[str, str] = field(default_factory=dict[str, str])
    lost: dict[int, str] = field(default_factory=dict[int, str])
    left: list[int] = field(default_factory=list[int])
    stopped: str = ""


def supervised(
    work: Work, jobs: int, *, patience: float, deadline: float, tell: Callable[[int, object], None]
) -> Supervised:
    """Process jobs ``0`` to ``jobs - 1``; ``tell`` is called with each result.

    Stop if a process ends before its first step, because the next process would too.

    Args:
        patience: time limit of a step in seconds, including the start of the process.
        deadline: the value of ``time.monotonic()`` at which to stop.
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
    """Process jobs in one child process.

    Returns the step at which the process stopped and the reason, empty at the deadline or when all jobs are done.
    """
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
