"""Work in processes of its own: what is slow is stopped, what crashes takes nothing with it.

Each piece of work is a process that is forked from one that has imported the compiler and does nothing else
(:mod:`multiprocessing`'s fork server; where there is none, a fresh Python).  What the user's file prints goes to
standard error.
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

__all__ = [
    "Job",
    "Task",
    "analyse",
    "catalogue",
    "documentation",
    "no_catalogue",
    "no_documentation",
    "no_picture",
    "picture",
    "told",
    "warm_up",
]

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


def catalogue() -> Catalogue:
    """Return all that can be named, collected in this process."""
    from cute_dialect.tools.lsp.catalogue import make_catalogue

    return make_catalogue()


def documentation(kind: str, name: str) -> str:
    """Return what is known of something of the catalogue in Markdown, found in this process."""
    from cute_dialect.tools.lsp.catalogue import describe

    return describe(kind, name)


def picture(drawn: str) -> Picture:
    """Return a type of MLIR or a layout as a picture, made in this process."""
    from cute_dialect.tools.lsp.pictures import picture_of

    return picture_of(drawn)


def warm_up() -> None:
    """Do a little of each kind of work, so that what it needs is there when processes are forked from this one."""
    analyse(Task("mlir", "first.mlir", _FIRST))
    analyse(Task("python", "first.py", _FIRST_KERNEL))
    for kind, name in (("op", "cute.size"), ("op", "cute_nvgpu.none"), ("op", "gpu.none"), ("flag", "cse")):
        documentation(kind, name)
    picture("4:1")


def _serve(sender: Connection, work: Callable[[], T], failed: Callable[[str], T]) -> None:
    """Do a piece of work, in its process, and send what came of it."""
    with suppress(OSError):
        os.setsid()  # so that what the file starts can be stopped with it
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
    """Return a picture that could not be made."""
    return Picture(note=why)


def no_catalogue(why: str) -> Catalogue:
    """Return a catalogue that could not be made."""
    return Catalogue()


def no_documentation(why: str) -> str:
    """Return documentation that could not be found."""
    return ""


def told(message: str) -> Analysis:
    """Return the analysis of a text that could not be analysed: a message at its first line."""
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


class Job(Generic[T]):
    """A piece of work: :meth:`run` waits for it in a thread, :meth:`stop` ends it from another.

    ``work``: a function without arguments that can be sent; ``failed``: what makes a result of why there is none.  Both
    are of a module that a worker has imported, such as this one: that of the server takes a second.
    """

    def __init__(self, work: Callable[[], T], failed: Callable[[str], T]):
        self.work, self.failed = work, failed
        self._stopped = False
        self._pid: int | None = None
        self._lock = threading.Lock()

    def run(self, seconds: float) -> T | None:
        """Return what came of it; None if it was stopped.  After ``seconds`` it is ended, and ``failed`` says so."""
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
            return self.failed(f"the check of this file ended its process: {_ending(process.exitcode)}")
        finally:
            self._end()
            process.join(5)
            receiver.close()

    def stop(self) -> None:
        """End the work: its result is not wanted any more."""
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
