"""Worker processes, which run upstream MLIR or compile: the parent's side, the messages and the code of the worker.

MLIR aborts on a failed assertion or a stack overflow, and LLVM on an instruction that it cannot select.  Such an
abort ends only a worker; it becomes an :class:`UpstreamError` that names the failing step, and the next module gets a
new worker::

    start()                                           # first, so that MLIR loads during our imports and parsing
    …                                                 # parse, verify, lower
    with borrowed() as worker:
        m = worker.module(text, "add.mlir")           # as UpstreamModule.from_text, in the worker
        m.run("base-prepare")
        …

A worker is a new Python process, not a fork, so it shares no memory, GPU or threads with this one.  It holds one
module at a time.  A process keeps its workers for later compilations, one per concurrently compiling thread.  A
worker exits with its parent.

A message is :mod:`marshal` data, preceded by its length in 8 bytes.  A request is ``(method, arguments)``.  Methods
are those of :class:`.upstream.UpstreamModule`, and ``"drop"``, which has no reply.  A reply is ``("ok", result)``,
``("error", arguments of UpstreamError)`` or ``("missing", (message,))``.

A compiling worker (:func:`.compiler.serve_compilations`) has one method, ``"compile"``.  Its arguments are the
keywords of :func:`.compiler.compile_module` and the caller's settings (``CUTE_…``); the result is the files of the
compiled module.

>>> source, sink = os.pipe()
>>> send(sink, ("ok", 3)); os.close(sink)
>>> receive(source), receive(source)
(('ok', 3), None)
>>> os.close(source)
"""

from __future__ import annotations

import gc
import marshal
import os
import select
import signal
import sys
from collections.abc import Generator, Mapping
from contextlib import contextmanager, suppress
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Literal, NoReturn, TypeAlias

from cute_dialect.pipelines.upstream import (
    GpuObject,
    UpstreamError,
    UpstreamMissing,
    UpstreamModule,
    clip,
    make_context,
    with_toolkit,
)

if TYPE_CHECKING:  # pragma: no cover
    import mlir.ir as ir

    from cute_dialect.pipelines.handoff import CallSites

__all__ = ["Worker", "WorkerModule", "borrowed", "receive", "run_host", "send", "serve", "start"]

Serve: TypeAlias = Literal["serve", "serve_compilations"]
"""Function that a worker runs."""
_MODULES: dict[Serve, str] = {"serve": "worker", "serve_compilations": "compiler"}
"""Modules of these functions. Compilations import the compiler, which uses this module."""
_KEPT = 4
"""Largest number of idle workers; each thread that compiles uses one."""
_BACK_END = "LLVM's NVPTX back end"
"""The part of upstream that crashes most often on its input."""


def start() -> None:
    """Start the worker that :func:`borrowed` will return, if none is idle; errors surface with the first module."""
    idle = _idle(os.getpid(), "serve")
    if not idle:
        idle.append(Worker())
        with suppress(UpstreamError):
            idle[0].start()


@contextmanager
def borrowed(serve: Serve = "serve") -> Generator[Worker]:
    """Lend one of this process's workers to the block.

    ``serve`` is the function that the worker runs.
    """
    idle = _idle(os.getpid(), serve)
    try:
        worker = idle.pop()
    except IndexError:  # A test of the length first would race with other threads.
        worker = Worker(serve)
    try:
        yield worker
    finally:
        if worker.drop() and len(idle) < _KEPT:
            idle.append(worker)
        else:
            worker.close()


@lru_cache(maxsize=2)
def _idle(pid: int, serve: Serve) -> list[Worker]:
    """Return the idle workers of process ``pid``; after a fork, the child has its own list."""
    return []


def _python() -> str:
    """Return the Python to run; ``sys.executable`` may be a program that embeds Python."""
    name = sys.executable or ""
    if os.path.basename(name).startswith("python"):
        return name
    fallback = os.path.join(sys.exec_prefix, "bin", "python3")
    if os.path.exists(fallback):
        return fallback
    raise UpstreamError(f"upstream MLIR needs a Python executable, but found neither '{name}' nor '{fallback}'")


class _Process:
    """Parent's side of a worker process.  It holds only descriptors, so it needs no cleanup at exit."""

    def __init__(self, serve: Serve) -> None:
        python = _python()
        # File for the worker's output; the output is lost on platforms without memfd_create.
        self._log = os.memfd_create("mlir") if hasattr(os, "memfd_create") else os.open(os.devnull, os.O_RDWR)
        source, self._requests = os.pipe()
        self._replies, sink = os.pipe()
        module = f"cute_dialect.pipelines.{_MODULES[serve]}"
        code = f"import sys; sys.path[:] = {sys.path!r}; from {module} import {serve}; {serve}()"
        streams = ((source, 0), (sink, 1), (self._log, 2))
        try:
            self.pid = os.posix_spawn(
                python,
                [python, "-c", code],
                os.environ,
                file_actions=[(os.POSIX_SPAWN_DUP2, *pair) for pair in streams],
                setpgroup=0,  # keep keyboard interrupts in this process
            )
        finally:
            os.close(source)
            os.close(sink)

    def lives(self) -> bool:
        """Return True if the process is alive.

        No request is pending, so readable input means that it has ended.
        """
        poll = select.poll()
        poll.register(self._replies, select.POLLIN)
        return not poll.poll(0)

    def tell(self, request: tuple[str, tuple[object, ...]]) -> bool:
        """Send a request; return False if the process has ended."""
        try:
            send(self._requests, request)
        except BrokenPipeError:
            return False
        return True

    def ask(self, request: tuple[str, tuple[object, ...]]) -> tuple[str, Any] | None:
        """Send a request and return its reply; None if the process ended."""
        return receive(self._replies) if self.tell(request) else None

    def close(self) -> tuple[str, int]:
        """End the process and wait for it; return its output and status."""
        os.close(self._requests)
        os.close(self._replies)
        try:
            _, status = os.waitpid(self.pid, 0)
        except ChildProcessError:  # the program reaps its children itself
            status = 0
        os.lseek(self._log, 0, os.SEEK_SET)
        with open(self._log, "rb") as log:
            return log.read().decode(errors="replace"), status


class Worker:
    """A process that runs upstream MLIR or compiles; it is replaced after a crash."""

    def __init__(self, serve: Serve = "serve") -> None:
        self._serve: Serve = serve
        self._process: _Process | None = None

    @property
    def pid(self) -> int | None:
        """Process ID; None before the first module and after a crash."""
        return self._process.pid if self._process is not None else None

    def start(self) -> None:
        """Start the process unless it is running."""
        if self._process is not None and not self._process.lives():
            self.close()
        if self._process is None:
            self._process = _Process(self._serve)

    def module(self, text: str, filename: str = "-", call_sites: CallSites | None = None) -> WorkerModule:
        """Parse and verify ``text`` in the worker.  Raises like :meth:`.upstream.UpstreamModule.from_text`.

        ``call_sites`` holds the call sites of the locations in the text, for the PTX.
        """
        self.start()
        self.call("from_text", text, filename)
        return WorkerModule(self, filename, call_sites)

    def compiled(self, keywords: dict[str, object]) -> dict[str, bytes]:
        """Compile in the worker and return the files of the compiled module.  Raises UpstreamError."""
        self.start()
        return self.call("compile", keywords, {n: x for n, x in os.environ.items() if n.startswith("CUTE_")})

    def call(self, method: str, *arguments: object, filename: str = "-") -> Any:
        """Call ``method`` in the worker and return its result.  Raises UpstreamError."""
        process = self._process
        if process is None:
            raise UpstreamError("the process of upstream MLIR that held this module has ended", filename=filename)
        try:
            reply = process.ask((method, arguments))
        except BaseException:  # after an interrupt, a late reply would be taken for the reply to the next request
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
        """Discard the worker's module; return True if the worker can be reused."""
        return self._process is not None and self._process.tell(("drop", ()))

    def close(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            process.close()


class WorkerModule:
    """A module in a worker, with the methods of :class:`.upstream.UpstreamModule` that a compilation needs."""

    def __init__(self, worker: Worker, filename: str, call_sites: CallSites | None = None):
        self._worker = worker
        self._filename = filename
        self._call_sites = call_sites

    def run(self, pass_name: str, options: Mapping[str, str] | None = None) -> None:
        """Run a base pass or a pass of upstream, with its options."""
        self._call("run", pass_name, with_toolkit(pass_name, options or {}))

    def run_pipeline(self, pipeline: str) -> None:
        self._call("run_pipeline", pipeline)

    def text(self, *, generic: bool = False, debuginfo: bool = False, local_scope: bool = False) -> str:
        """Print the module."""
        text = str(self._call("text", generic, debuginfo, local_scope))
        return text if self._call_sites is None else self._call_sites.plain_text(text)

    def objects(self) -> list[GpuObject]:
        """Return the objects of all ``gpu.binary`` ops, in order."""
        found = [GpuObject(*entry) for entry in self._call("objects")]
        if self._call_sites is None:
            return found
        restore = self._call_sites.restore
        return [o._replace(data=restore(o.data.decode()).encode()) if o.format == "isa" else o for o in found]

    def ptx(self) -> dict[str, str]:
        """Return the PTX of each compiled ``gpu.module``."""
        return {o.module: o.data.decode() for o in self.objects() if o.format == "isa"}

    def llvm_ir(self) -> dict[str, str]:
        """Return LLVM IR as text per ``gpu.module``, with host code under ``""``."""
        texts: dict[str, str] = dict(self._call("llvm_ir"))
        plain = self._call_sites.plain_text if self._call_sites is not None else str
        return {name: plain(text) for name, text in texts.items()}

    def _call(self, method: str, *arguments: object) -> Any:
        return self._worker.call(method, *arguments, filename=self._filename)


def run_host(module_text: str, entry: str = "main", filename: str = "-") -> None:
    """Run the host function ``entry`` (no arguments, no results) of base or LLVM-dialect IR in this process.

    Output of ``printf`` goes to standard output.  Raises :class:`UpstreamError` if the function does not exist, has
    arguments or results, or if the ``mlir`` package has no execution engine.
    """
    with borrowed() as worker:
        module = worker.module(module_text, filename)
        module.run("base-prepare")
        module.run("one-shot-convert-to-llvm")
        lowered = module.text(generic=True, debuginfo=True)
    UpstreamModule.from_text(lowered, filename).run_entry(entry)


# --------------------------------------------------------------------------------------------------------- crashes


def _doing(method: str, arguments: tuple[object, ...]) -> str:
    """Name the step that a method runs, for the message about a crash."""
    if method in ("run", "run_pipeline"):
        return _BACK_END if arguments[0] == "emit-gpu-binary" else f"pass '{arguments[0]}' of upstream MLIR"
    return {
        "from_text": "the parser of upstream MLIR",
        "text": "the printer of upstream MLIR",
        "llvm_ir": "the translation to LLVM IR",
    }.get(method, "upstream MLIR")


def _abort_message(output: str, status: int, doing: str) -> str:
    """Format the output of a crashed worker as one line; ``doing`` names the step."""
    lines = [line for line in output.splitlines() if line.strip()]
    first = next((i for i, line in enumerate(lines) if "LLVM ERROR" in line or "Assertion" in line), None)
    message = " / ".join(line.strip() for line in (lines[-3:] if first is None else lines[first : first + 3]))
    how = f"signal {os.WTERMSIG(status)}" if os.WIFSIGNALED(status) else f"exit status {status >> 8}"
    if os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGSEGV:
        message = message or "the stack probably overflowed on deeply nested IR"
    hint = ""
    if "Cannot select" in message:
        hint = "; the chip or its PTX version (features) does not have an instruction that the kernel uses"
    return clip(f"{doing} aborted ({how}): {message or 'no message'}{hint}")


# -------------------------------------------------------------------------------------------------------- messages


def send(pipe: int, data: Any) -> None:
    """Write a message.  Raises BrokenPipeError if the reader has closed the pipe."""
    payload = marshal.dumps(data)
    rest = memoryview(len(payload).to_bytes(8, "little") + payload)
    while rest:
        rest = rest[os.write(pipe, rest) :]


def receive(pipe: int) -> Any:
    """Read the next message; return None at the end of the pipe."""
    head = _read(pipe, 8)
    payload = _read(pipe, int.from_bytes(head, "little")) if head is not None else None
    return marshal.loads(payload) if payload is not None else None


def _read(pipe: int, size: int) -> bytes | None:
    parts: list[bytes] = []
    while size:
        part = os.read(pipe, min(size, 1 << 20))
        if not part:
            return None
        parts.append(part)
        size -= len(part)
    return b"".join(parts)


# ----------------------------------------------------------------------------------------------------- in the process


def serve() -> NoReturn:  # pragma: no cover  (another process)
    """Run upstream MLIR: read requests from standard input, and reply on standard output until the input ends."""
    sink = os.dup(1)
    os.dup2(2, 1)  # replies use the saved descriptor; printed text goes to standard error
    gc.disable()
    context = _make_context()
    module: UpstreamModule | None = None
    while (request := receive(0)) is not None:
        method, arguments = request
        if method == "drop":
            if module is not None:
                module, context = None, _make_context()  # while the parent continues
            continue
        try:
            if method == "from_text":
                text, filename = arguments
                module = UpstreamModule.from_text(text, filename, context)
                context = None  # the next module needs a new context
                value: object = None
            else:
                value = _carry_out(module, method, arguments)
            reply = ("ok", value)
        except UpstreamMissing as e:
            reply = ("missing", (e.message,))
        except UpstreamError as e:
            reply = ("error", (e.message, e.line, e.col, e.filename))
        except Exception as e:
            reply = ("error", (f"{type(e).__name__}: {e}",))
        send(sink, reply)
    os._exit(0)


def _make_context() -> ir.Context | None:  # pragma: no cover
    """Load MLIR and create a context, without numpy, which only attribute builders need.

    Return None without MLIR; the error is reported with the first module.
    """
    sys.modules.setdefault("numpy", None)  # pyright: ignore[reportArgumentType, reportCallIssue]
    try:
        return make_context()
    except UpstreamError:
        return None


def _carry_out(module: UpstreamModule | None, method: str, arguments: tuple[Any, ...]) -> object:  # pragma: no cover
    assert module is not None
    if method == "text":
        generic, debuginfo, local_scope = arguments
        return module.text(generic=generic, debuginfo=debuginfo, local_scope=local_scope)
    if method == "objects":
        return [tuple(o) for o in module.objects()]
    work = {"run": module.run, "run_pipeline": module.run_pipeline, "llvm_ir": module.llvm_ir}
    return work[method](*arguments)
