"""Analyses in processes of their own: a slow one is stopped, one that crashes takes nothing with it.

Each analysis is a process that is forked from one that has imported the compiler and does nothing else
(:mod:`multiprocessing`'s fork server; where there is none, a fresh Python).  What the user's file prints goes to
standard error.
"""

from __future__ import annotations

import os
import signal
import threading
import traceback
from contextlib import suppress
from functools import lru_cache
from multiprocessing import get_all_start_methods, get_context
from multiprocessing.connection import Connection
from multiprocessing.context import BaseContext, ForkServerContext
from multiprocessing.process import BaseProcess
from typing import Any, Literal, NamedTuple

from cute_dialect.tools.lsp.records import Analysis, Problem, Span

__all__ = ["Job", "Task", "warm_up"]

_FIRST = """func.func @f(%n: !cute.int_tuple<"?">) -> !cute.layout<"?:1"> {
  %l = cute.make_layout(%n) : (!cute.int_tuple<"?">) -> !cute.layout<"?:1">
  return %l : !cute.layout<"?:1">
}
"""


class Task(NamedTuple):
    """What to analyse: the path of a file, its text as the editor has it, and for what.

    ``pipeline``: of a text of MLIR; ``chip``: of kernels in Python, empty for the default.
    """

    language: Literal["mlir", "python"]
    file: str
    text: str
    pipeline: str = "base"
    chip: str = ""


def analyse(task: Task) -> Analysis:
    """Return the analysis of a text, made in this process."""
    if task.language == "python":
        from cute_dialect.tools.lsp.python_analysis import analyse_python

        return analyse_python(task.file, task.text, task.chip or None)
    from cute_dialect.tools.lsp.mlir_analysis import analyse_mlir

    return analyse_mlir(task.file, task.text, task.pipeline)


def warm_up() -> None:
    """Analyse a small text, so that what passes import is there when processes are forked from this one."""
    analyse(Task("mlir", "first.mlir", _FIRST))


def _serve(sender: Connection, task: Task) -> None:
    """Do a task, in its process, and send what came of it."""
    with suppress(OSError):
        os.setsid()  # so that what the file starts can be stopped with it
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.dup2(2, 1)
    try:
        result = analyse(task)
    except BaseException as e:
        traceback.print_exc()
        result = _told(f"internal error of cute-lsp: {type(e).__name__}: {e}")
    sender.send(result)
    sender.close()
    os._exit(0)


def _told(message: str) -> Analysis:
    return Analysis((Problem("error", message, "cute-lsp", Span(0, 0, 0, 1)),))


@lru_cache(maxsize=1)
def _context() -> BaseContext:
    if "forkserver" not in get_all_start_methods():
        return get_context("spawn")
    context: ForkServerContext = get_context("forkserver")
    context.set_forkserver_preload(["cute_dialect.tools.lsp.imported"])
    return context


def _new_process(**arguments: Any) -> BaseProcess:
    return getattr(_context(), "Process")(**arguments)  # noqa: B009  (contexts say less of it than they have)


class Job:
    """One analysis: :meth:`run` waits for it in a thread, :meth:`stop` ends it from another."""

    def __init__(self, task: Task):
        self.task = task
        self._stopped = False
        self._pid: int | None = None
        self._lock = threading.Lock()

    def run(self, seconds: float) -> Analysis | None:
        """Return what was found; None if it was stopped.  After ``seconds`` it is ended, and a diagnostic says so."""
        receiver, sender = _context().Pipe(duplex=False)
        process: BaseProcess = _new_process(target=_serve, args=(sender, self.task), daemon=True)
        with self._lock:
            if self._stopped:
                return None
            process.start()
            self._pid = process.pid
        sender.close()
        try:
            if not receiver.poll(seconds):
                return _told(f"the check was stopped after {seconds:g} s (cute-lsp --timeout sets this limit)")
            return receiver.recv()
        except (EOFError, OSError):
            if self._stopped:
                return None
            process.join(5)
            return _told(f"the check of this file ended its process: {_ending(process.exitcode)}")
        finally:
            self._end()
            process.join(5)
            receiver.close()

    def stop(self) -> None:
        """End the analysis: its result is not wanted any more."""
        self._stopped = True
        self._end()

    def _end(self) -> None:
        with self._lock:
            pid, self._pid = self._pid, None
        if pid is None:
            return
        for kill in (getattr(os, "killpg", None), os.kill):
            with suppress(OSError):
                if kill is not None:
                    kill(pid, getattr(signal, "SIGKILL", signal.SIGTERM))


def _ending(status: int | None) -> str:
    if status is not None and status < 0:
        with suppress(ValueError):
            return f"signal {signal.Signals(-status).name}"
    return f"exit status {status}"
