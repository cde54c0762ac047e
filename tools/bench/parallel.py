"""Process pools with progress reports: one process per CPU."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from multiprocessing import get_context
from typing import TypeVar

from cute_dialect.runtime.progress import Task

__all__ = ["in_processes", "new_pool"]

_Job = TypeVar("_Job")
_Result = TypeVar("_Result")


def new_pool(processes: int | None = None) -> ProcessPoolExecutor:
    """Return a process pool, by default of one process per CPU.

    The workers ignore ``Ctrl-C``, which the parent process handles.
    """
    return ProcessPoolExecutor(
        processes or os.cpu_count(), get_context("spawn"), signal.signal, (signal.SIGINT, signal.SIG_IGN)
    )


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
