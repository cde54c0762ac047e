"""Upstream MLIR in a process of its own, because it aborts the process that it is in.

It does so where an assertion of its own does not hold, where its stack is too small, where LLVM cannot select an
instruction.  Here that ends a worker, and becomes an :class:`UpstreamError` that says what was being done; the next
module gets another worker::

    start()                                           # first thing, so that MLIR loads while we import and parse
    …                                                 # parse, verify, lower
    with borrowed() as worker:
        m = worker.module(text, "add.mlir")           # what UpstreamModule.from_text gives, over there
        m.run("base-prepare")
        …

A worker is a fresh Python, never a fork: it knows nothing of the process's memory, GPU or threads.  It holds one module
at a time.  A process keeps it for all that it compiles, one for each thread that does so at a time; it ends by itself
when the process does.  What runs there, and the messages, are in :mod:`cute_dialect.pipelines.worker`.
"""

from __future__ import annotations

import os
import select
import signal
import sys
from collections.abc import Generator, Mapping
from contextlib import contextmanager, suppress
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from cute_dialect.pipelines.upstream_error import UpstreamError, UpstreamMissing, clip
from cute_dialect.pipelines.worker import receive, send

if TYPE_CHECKING:  # pragma: no cover
    from cute_dialect.pipelines.gpu_objects import GpuObject
    from cute_dialect.pipelines.line_info import CallSites

__all__ = ["Worker", "WorkerModule", "borrowed", "start"]

Serve: TypeAlias = Literal["serve", "serve_compilations"]
_KEPT = 4
"""The number of workers that wait for more at most; as many are there as threads compile at a time."""
_BACK_END = "LLVM's NVPTX back end"
"""The part of upstream that most often dies of its input."""


def start() -> None:
    """Start the worker that :func:`borrowed` will give, if none waits; errors come with the first module."""
    idle = _idle(os.getpid(), "serve")
    if not idle:
        idle.append(Worker())
        with suppress(UpstreamError):
            idle[0].start()


@contextmanager
def borrowed(serve: Serve = "serve") -> Generator[Worker]:
    """Give a worker for as long as the block runs, one of those that this process keeps.

    ``serve``: what it does, a function of :mod:`.worker`.
    """
    idle = _idle(os.getpid(), serve)
    worker = idle.pop() if idle else Worker(serve)
    try:
        yield worker
    finally:
        if worker.drop() and len(idle) < _KEPT:
            idle.append(worker)
        else:
            worker.close()


@lru_cache(maxsize=2)
def _idle(pid: int, serve: Serve) -> list[Worker]:
    """Give the workers that nobody uses, of this process, which is ``pid``: after a fork the new one has its own."""
    return []


def _python() -> str:
    """Find the Python to run: the program that we are in may be another one, that Python is part of."""
    name = sys.executable or ""
    if os.path.basename(name).startswith("python"):
        return name
    beside = os.path.join(sys.exec_prefix, "bin", "python3")
    if os.path.exists(beside):
        return beside
    raise UpstreamError(f"upstream MLIR runs in a Python of its own, but there is none: not '{name}', nor '{beside}'")


class _Process:
    """A process that serves, from here.  Only descriptors: nothing has to be closed at the end."""

    def __init__(self, serve: Serve) -> None:
        python = _python()
        # What it prints; where the platform has no such files, that is lost.
        self._log = os.memfd_create("mlir") if hasattr(os, "memfd_create") else os.open(os.devnull, os.O_RDWR)
        source, self._requests = os.pipe()
        self._replies, sink = os.pipe()
        code = f"import sys; sys.path[:] = {sys.path!r}; from cute_dialect.pipelines.worker import {serve}; {serve}()"
        streams = ((source, 0), (sink, 1), (self._log, 2))
        try:
            self.pid = os.posix_spawn(
                python,
                [python, "-c", code],
                os.environ,
                file_actions=[(os.POSIX_SPAWN_DUP2, *pair) for pair in streams],
                setpgroup=0,  # an interrupt from the keyboard is for us
            )
        finally:
            os.close(source)
            os.close(sink)

    def lives(self) -> bool:
        """Tell whether it can be asked; nothing is under way, so all that may come from it is its end."""
        poll = select.poll()
        poll.register(self._replies, select.POLLIN)
        return not poll.poll(0)

    def tell(self, request: tuple[str, tuple[object, ...]]) -> bool:
        """Send a request; give whether it lives."""
        try:
            send(self._requests, request)
        except BrokenPipeError:
            return False
        return True

    def ask(self, request: tuple[str, tuple[object, ...]]) -> tuple[str, Any] | None:
        """Send a request and wait for its reply; give None if it died."""
        return receive(self._replies) if self.tell(request) else None

    def close(self) -> tuple[str, int]:
        """End it and wait for it; give what it printed, and its status."""
        os.close(self._requests)
        os.close(self._replies)
        try:
            _, status = os.waitpid(self.pid, 0)
        except ChildProcessError:  # the program waits for all children itself
            status = 0
        os.lseek(self._log, 0, os.SEEK_SET)
        with open(self._log, "rb") as log:
            return log.read().decode(errors="replace"), status


class Worker:
    """A process that runs upstream MLIR (or that compiles), and its successors."""

    def __init__(self, serve: Serve = "serve") -> None:
        self._serve: Serve = serve
        self._process: _Process | None = None

    @property
    def pid(self) -> int | None:
        """The process; None before the first module, and when it has died."""
        return self._process.pid if self._process is not None else None

    def start(self) -> None:
        """Start the process unless it lives."""
        if self._process is not None and not self._process.lives():
            self.close()
        if self._process is None:
            self._process = _Process(self._serve)

    def module(self, text: str, filename: str = "-", call_sites: CallSites | None = None) -> WorkerModule:
        """Parse and verify ``text`` there.  Raises as :meth:`.upstream.UpstreamModule.from_text` does.

        ``call_sites``: what the locations in the text stand for, to be put into PTX.
        """
        self.start()
        self.call("from_text", text, filename)
        return WorkerModule(self, filename, call_sites)

    def compiled(self, keywords: dict[str, object]) -> dict[str, bytes]:
        """Compile there; gives the files of the compiled module.  Raises UpstreamError."""
        self.start()
        return self.call("compile", keywords, {n: x for n, x in os.environ.items() if n.startswith("CUTE_")})

    def call(self, method: str, *arguments: object, filename: str = "-") -> Any:
        """Have the process carry out ``method``; gives the result.  Raises UpstreamError."""
        process = self._process
        if process is None:
            raise UpstreamError("the process of upstream MLIR that held this module has ended", filename=filename)
        try:
            reply = process.ask((method, arguments))
        except BaseException:  # an interrupt: a late reply would pass for that to the next request
            os.kill(process.pid, signal.SIGKILL)
            self.close()
            raise
        if reply is None:
            self._process = None
            raise UpstreamError(_abort_message(*process.close(), _doing(method, arguments)), filename=filename)
        kind, value = reply
        if kind == "ok":
            return value
        error = UpstreamMissing if kind == "missing" else UpstreamError
        raise error(*value)

    def drop(self) -> bool:
        """Have the process forget its module; give whether there is one for others to use."""
        return self._process is not None and self._process.tell(("drop", ()))

    def close(self) -> None:
        """End the process and wait for it."""
        process, self._process = self._process, None
        if process is not None:
            process.close()


class WorkerModule:
    """A module over there, with the methods of :class:`.upstream.UpstreamModule` that a compilation needs."""

    def __init__(self, worker: Worker, filename: str, call_sites: CallSites | None = None):
        self._worker = worker
        self._filename = filename
        self._call_sites = call_sites

    def run(self, pass_name: str, options: Mapping[str, str] | None = None) -> None:
        """Run one base pass or pass of upstream, with its options."""
        from cute_dialect.pipelines.upstream import with_toolkit

        self._call("run", pass_name, with_toolkit(pass_name, options or {}))

    def run_pipeline(self, pipeline: str) -> None:
        """Run a textual pass pipeline."""
        self._call("run_pipeline", pipeline)

    def text(self, *, generic: bool = False, debuginfo: bool = False, local_scope: bool = False) -> str:
        """Print the module."""
        text = str(self._call("text", generic, debuginfo, local_scope))
        return text if self._call_sites is None else self._call_sites.plain_text(text)

    def objects(self) -> list[GpuObject]:
        """List the objects of every ``gpu.binary``, in order."""
        from cute_dialect.pipelines.gpu_objects import GpuObject

        found = [GpuObject(*entry) for entry in self._call("objects")]
        if self._call_sites is None:
            return found
        restore = self._call_sites.restore
        return [o._replace(data=restore(o.data.decode()).encode()) if o.format == "isa" else o for o in found]

    def ptx(self) -> dict[str, str]:
        """Give the PTX of every compiled ``gpu.module``."""
        return {o.module: o.data.decode() for o in self.objects() if o.format == "isa"}

    def llvm_ir(self) -> dict[str, str]:
        """Give LLVM IR as text, by ``gpu.module``; host code under ``""``."""
        texts: dict[str, str] = dict(self._call("llvm_ir"))
        plain = self._call_sites.plain_text if self._call_sites is not None else str
        return {name: plain(text) for name, text in texts.items()}

    def _call(self, method: str, *arguments: object) -> Any:
        return self._worker.call(method, *arguments, filename=self._filename)


# ------------------------------------------------------------------------------------------------- what it died of


def _doing(method: str, arguments: tuple[object, ...]) -> str:
    """Say what a worker does of a method, for the message when it dies of it."""
    if method in ("run", "run_pipeline"):
        return _BACK_END if arguments[0] == "emit-gpu-binary" else f"pass '{arguments[0]}' of upstream MLIR"
    return {
        "from_text": "the parser of upstream MLIR",
        "text": "the printer of upstream MLIR",
        "llvm_ir": "the translation to LLVM IR",
    }.get(method, "upstream MLIR")


def _abort_message(said: str, status: int, doing: str) -> str:
    """Put what a process printed before it died in one line; ``doing``: what it was at."""
    lines = [line for line in said.splitlines() if line.strip()]
    first = next((i for i, line in enumerate(lines) if "LLVM ERROR" in line or "Assertion" in line), None)
    told = " / ".join(line.strip() for line in (lines[-3:] if first is None else lines[first : first + 3]))
    how = f"signal {os.WTERMSIG(status)}" if os.WIFSIGNALED(status) else f"exit status {status >> 8}"
    if os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGSEGV:
        told = told or "its stack was too small for what is nested here, most likely"
    hint = ""
    if "Cannot select" in told:
        hint = "; the chip or its PTX version (features) does not have an instruction that the kernel uses"
    return clip(f"{doing} aborted ({how}): {told or 'no message'}{hint}")
