"""Worker processes of ``cute-lsp``: slow work can be stopped, and a crash does not affect the server.

Each task runs in a process forked from a server process that has imported the compiler (:mod:`multiprocessing`'s fork
server; on platforms without one, a new Python process).  Output of the user's file goes to standard error.
"""

from __future__ import annotations

import os
import signal
import threading
import traceback
from collections.abc import Callable
from contextlib import suppress
from functools import lru_cache
from multiprocessing import get_all_start_methods, get_context
from multiprocessing.connection import Connection
from multiprocessing.context import BaseContext, ForkServerContext
from multiprocessing.process import BaseProcess
from typing import Any, Generic, Literal, NamedTuple, TypeVar

from cute_dialect.tools.lsp.analysis_results import Analysis, Catalogue, Picture, Problem, Span

T = TypeVar("T")

_FIRST = """func.func @f(%n: !cute.int_tuple<"?">) -> !cute.layout<"?:1"> {
  %l = cute.make_layout(%n) : (!cute.int_tuple<"?">) -> !cute.layout<"?:1">
  return %l : !cute.layout<"?:1">
}
"""

_FIRST_KERNEL = """import cute_dialect.lang as cute

@cute.kernel
def first(x: cute.Tensor["f32", 8]):
    x[0] = x[1]
"""


class Task(NamedTuple):
    """A text to analyse: the path of a file and its text in the editor.

    ``pipeline`` applies to MLIR.  ``chip`` applies to Python kernels; empty for the default.
    """

    language: Literal["mlir", "python"]
    file: str
    text: str
    pipeline: str = "base"
    chip: str = ""


def analyse(task: Task) -> Analysis:
    """Analyse a text in this process."""
    if task.language == "python":
        from cute_dialect.tools.lsp.analysis import analyse_python  # late: start-up

        return analyse_python(task.file, task.text, task.chip or None)
    from cute_dialect.tools.lsp.analysis import analyse_mlir  # late: start-up

    return analyse_mlir(task.file, task.text, task.pipeline)


def catalogue() -> Catalogue:
    """Compute the catalogue of names in this process."""
    from cute_dialect.tools.lsp.catalogue import make_catalogue  # late: start-up

    return make_catalogue()


def documentation(kind: str, name: str) -> str:
    """Compute the documentation of a catalogue entry in this process, in Markdown."""
    from cute_dialect.tools.lsp.catalogue import describe  # late: start-up

    return describe(kind, name)


def picture(drawn: str) -> Picture:
    """Draw an MLIR type or a layout in this process."""
    from cute_dialect.tools.lsp.pictures import picture_of  # late: start-up

    return picture_of(drawn)


def warm_up() -> None:
    """Run a small task of each kind, so that forked processes inherit the imported modules."""
    analyse(Task("mlir", "first.mlir", _FIRST))
    analyse(Task("python", "first.py", _FIRST_KERNEL))
    for kind, name in (("op", "cute.size"), ("op", "cute_nvgpu.none"), ("op", "gpu.none"), ("flag", "cse")):
        documentation(kind, name)
    picture("4:1")


def _serve(sender: Connection, work: Callable[[], T], failed: Callable[[str], T]) -> None:
    """Run a task in a worker process and send its result."""
    with suppress(OSError):
        os.setsid()  # Processes started by the file can then be stopped as a group.
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.dup2(2, 1)
    try:
        result = work()
    except BaseException as e:
        traceback.print_exc()
        result = failed(f"internal error of cute-lsp: {type(e).__name__}: {e}")
    sender.send(result)
    sender.close()
    os._exit(0)


def no_picture(why: str) -> Picture:
    """Return an empty picture with the reason as its note."""
    return Picture(note=why)


def no_catalogue(why: str) -> Catalogue:
    """Return an empty catalogue."""
    return Catalogue()


def no_documentation(why: str) -> str:
    """Return empty documentation."""
    return ""


def told(message: str) -> Analysis:
    """Return an analysis with one message at the first line, for a text that could not be analysed."""
    return Analysis((Problem("error", message, "cute-lsp", Span(0, 0, 0, 1)),))


@lru_cache(maxsize=1)
def _context() -> BaseContext:
    if "forkserver" not in get_all_start_methods():
        return get_context("spawn")
    context: ForkServerContext = get_context("forkserver")
    context.set_forkserver_preload(["cute_dialect.tools.lsp.preload"])
    return context


def _new_process(**arguments: Any) -> BaseProcess:
    return getattr(_context(), "Process")(**arguments)  # noqa: B009  (contexts say less of it than they have)


class Job(Generic[T]):
    """A task in a worker process: :meth:`run` waits for it, :meth:`stop` ends it from another thread.

    Args:
        work: a picklable function without arguments.
        failed: a function that converts an error message to a result.

    Both functions must be in a module that workers have already imported, such as this one.
    """

    def __init__(self, work: Callable[[], T], failed: Callable[[str], T]):
        self.work, self.failed = work, failed
        self._stopped = False
        self._pid: int | None = None
        self._lock = threading.Lock()

    def run(self, seconds: float) -> T | None:
        """Return the result, or None if stopped.  After ``seconds`` the process is ended and ``failed`` is returned."""
        receiver, sender = _context().Pipe(duplex=False)
        process: BaseProcess = _new_process(target=_serve, args=(sender, self.work, self.failed), daemon=True)
        with self._lock:
            if self._stopped:
                return None
            process.start()
            self._pid = process.pid
        sender.close()
        try:
            if not receiver.poll(seconds):
                return self.failed(f"the check was stopped after {seconds:g} s (cute-lsp --timeout sets this limit)")
            return receiver.recv()
        except (EOFError, OSError):
            if self._stopped:
                return None
            process.join(5)
            return self.failed(f"the check of this file crashed: {_ending(process.exitcode)}")
        finally:
            self._end()
            process.join(5)
            receiver.close()

    def stop(self) -> None:
        """End the task and discard its result."""
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
