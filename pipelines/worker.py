"""A process of its own for LLVM's back end, in programs that compile one module after another.

The back end aborts its process on what it cannot select, so something else has to run it.  A forked child
(:mod:`.child`) costs a third of the time of a GEMM: every page of memory that LLVM writes is copied first, and all that
it allocates is new.  From the third module on a *worker* does it instead: a fresh Python that knows nothing of this
process's memory, GPU or threads, and that keeps its own memory from one module to the next::

    1st module: child     2nd module: child, the worker is started     …, as soon as it is ready: worker

Modules cross as bytecode, both ways.  A worker that dies of a module is an :class:`UpstreamError` for that one, as the
child's death is; the next two modules are for children again.  Workers end with the process that started them.
"""

from __future__ import annotations

import os
import select
import sys
import threading
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from cute_dialect.pipelines.messages import receive, send
from cute_dialect.pipelines.upstream_error import UpstreamError

if TYPE_CHECKING:
    from cute_dialect.pipelines.upstream import UpstreamModule

__all__ = ["Workers", "serve", "workers"]

_FIRST = 2
"""How many modules a process has to compile until a worker is started."""


@lru_cache(maxsize=1)
def workers(pid: int) -> Workers:
    """Those of this process, which is ``pid``: after a fork the child has its own."""
    return Workers()


class Workers:
    """The worker of this process, if there is one; one module at a time."""

    def __init__(self) -> None:
        self.asked = 0
        self.worker: _Worker | None = None
        self.lock = threading.Lock()

    def emit(self, module: UpstreamModule, pipeline: str, filename: str) -> bytes | None:
        """What ``pipeline`` makes of the module, as bytecode; None: no worker is there, or it is busy.

        Raises UpstreamError, for what the pipeline refuses as well as for what LLVM dies of.
        """
        if not self.lock.acquire(blocking=False):
            return None
        try:
            self.asked += 1
            if self.worker is None:
                if self.asked >= _FIRST and _may_start():
                    self.worker = _Worker()
                return None
            if not self.worker.ready():
                return None
            reply = self.worker.ask((module.bytecode(), pipeline, filename))
            if reply is None:
                worker, self.worker, self.asked = self.worker, None, 0
                raise UpstreamError(worker.last_words(), filename=filename)
            kind, value = reply
            if kind == "error":
                raise UpstreamError(*value)
            return value
        finally:
            self.lock.release()


def _may_start() -> bool:
    """Two cores, and a program that is Python itself, not one that Python is part of."""
    if not (hasattr(os, "posix_spawn") and hasattr(os, "memfd_create") and hasattr(os, "sched_getaffinity")):
        return False
    return len(os.sched_getaffinity(0)) > 1 and os.path.basename(sys.executable or "").startswith("python")


class _Worker:
    """The process, from here.  Only descriptors: nothing has to be closed when the interpreter ends."""

    def __init__(self) -> None:
        code = f"import sys; sys.path[:] = {sys.path!r}; from {__name__} import serve; serve()"
        self.log = os.memfd_create("worker")
        source, self.requests = os.pipe()
        self.replies, sink = os.pipe()
        self.started: bool | None = None
        """Whether it could; None as long as nothing is known."""
        try:
            self.pid = os.posix_spawn(
                sys.executable,
                [sys.executable, "-c", code],
                os.environ,
                file_actions=[
                    (os.POSIX_SPAWN_DUP2, source, 0),
                    (os.POSIX_SPAWN_DUP2, sink, 1),
                    (os.POSIX_SPAWN_DUP2, self.log, 2),
                ],
                setpgroup=0,  # an interrupt from the keyboard is for us
            )
        finally:
            os.close(source)
            os.close(sink)

    def ready(self) -> bool:
        """Whether it has loaded all, without waiting for it."""
        if self.started is None and select.select([self.replies], [], [], 0)[0]:
            self.started = receive(self.replies) is not None
            if not self.started:
                self.last_words()
        return self.started is True

    def ask(self, request: tuple[bytes, str, str]) -> tuple[str, Any] | None:
        """Its reply; None if it died."""
        try:
            send(self.requests, request)
        except BrokenPipeError:
            return None
        return receive(self.replies)

    def last_words(self) -> str:
        """What it said when it died, which it has.  It is gone then."""
        from cute_dialect.pipelines.child import abort_message

        _, status = os.waitpid(self.pid, 0)
        said = os.pread(self.log, 1 << 20, 0).decode(errors="replace")
        for fd in (self.requests, self.replies, self.log):
            os.close(fd)
        return abort_message(said, status)


def serve() -> None:  # pragma: no cover  (the worker)
    """Compile modules from standard input to standard output until there are no more."""
    import gc

    gc.disable()
    sink = os.dup(1)
    os.dup2(2, 1)  # what anything prints is no reply
    from cute_dialect.pipelines.ahead import warm_up
    from cute_dialect.pipelines.upstream import UpstreamModule, make_context

    warm_up()
    context = make_context()
    module: UpstreamModule | None = None
    send(sink, ("ready", None))
    while (request := receive(0)) is not None:
        bytecode, pipeline, filename = request
        try:
            module = UpstreamModule.from_bytecode(bytecode, filename, context)
            module.run_pipeline(pipeline)
            reply: tuple[str, object] = ("ok", module.bytecode())
        except UpstreamError as e:
            reply = ("error", (e.message, e.line, e.col, e.filename))
        except Exception as e:
            reply = ("error", (f"{type(e).__name__}: {e}", 0, 0, filename))
        send(sink, reply)
        module = None
        context = make_context()  # while the other side goes on
