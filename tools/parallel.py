"""Do the same for many jobs in processes, one a CPU, and show how far they are."""

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


def new_pool() -> ProcessPoolExecutor:
    """Return a pool of a process a CPU, which ``Ctrl-C`` leaves alone: it is for the process that waits for them."""
    return ProcessPoolExecutor(os.cpu_count(), get_context("spawn"), signal.signal, (signal.SIGINT, signal.SIG_IGN))


def in_processes(
    work: Callable[[_Job], _Result], jobs: Sequence[_Job], names: Sequence[str], what: str = "compiling",
    unit: str = "kernels",
) -> list[_Result]:  # fmt: skip
    """Return ``work(job)`` of each job, in order; ``names`` say which is done.

    Raises what a job raised, when those that have begun are done; so does ``Ctrl-C``.
    """
    pool = new_pool()
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
