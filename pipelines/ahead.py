"""Upstream MLIR in a child process that is started ahead, so that it loads and warms up while we import and parse.

Loading LLVM takes a tenth of a second, and the first module that passes through it another twentieth: on a machine
with two cores or more, a program that will hand a module over starts the child first of all::

    ahead = start()                                   # before anything heavy is imported; None: not here
    …                                                 # parse, verify, lower
    m = ahead.module(text, "add.mlir")                # what UpstreamModule.from_text gives, over there
    m.run("base-prepare")
    …

The child holds one module at a time.  Upstream aborts its process where an assertion of its own does not hold, where
its stack is too small, where LLVM cannot select an instruction: here that ends the child, and becomes an
:class:`UpstreamError` that says what was being done; the next module gets another child.

A process that has us as a library keeps one (:func:`borrowed`) for all that it compiles.  That one is not forked but a
fresh Python: it knows nothing of the process's memory, GPU or threads, and what the process frees is free.  Where a
fresh Python cannot be had, a child is forked and ends with what it was for.

Requests and replies are those of :mod:`cute_dialect.pipelines.messages`.
"""

from __future__ import annotations

import os
import select
import signal
import sys
import warnings
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

from cute_dialect.pipelines.child import BACK_END, abort_message
from cute_dialect.pipelines.messages import receive, send
from cute_dialect.pipelines.upstream_error import UpstreamError, UpstreamMissing

if TYPE_CHECKING:
    from cute_dialect.pipelines.gpu_objects import GpuObject
    from cute_dialect.pipelines.upstream import UpstreamModule

__all__ = ["Ahead", "AheadModule", "borrowed", "can_start", "prepare", "serve", "start"]

_WARM = """gpu.module @warm [#nvvm.target<chip = "sm_80">] {
  gpu.func @warm(%p: !llvm.ptr<1>, %n: i32) kernel {
    %t = gpu.thread_id x
    %i = arith.index_cast %t : index to i32
    %c = arith.cmpi slt, %i, %n : i32
    scf.if %c {
      %q = llvm.getelementptr %p[%i] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, f32
      %v = llvm.load %q : !llvm.ptr<1> -> f32
      %w = arith.addf %v, %v : f32
      llvm.store %w, %q : f32, !llvm.ptr<1>
    }
    gpu.return
  }
}
"""
"""What the child compiles while it waits: passes and LLVM's back end set themselves up at their first use."""


_KEPT = 4
"""How many children wait for more at most; as many are there as threads compile at a time."""


def can_start() -> bool:
    """Whether this platform has what a child takes."""
    return hasattr(os, "fork") and hasattr(os, "memfd_create") and hasattr(os, "sched_getaffinity")


def start() -> Ahead | None:
    """The child of a program, started where another core is free for it; None: a platform without fork."""
    if not can_start():
        return None
    return Ahead(_Child(_fork(warm=True)) if len(os.sched_getaffinity(0)) > 1 else None)


def prepare() -> None:
    """Start the child that :func:`borrowed` will give, where another core is free for it."""
    idle = _idle(os.getpid())
    if not idle and can_start() and _can_spawn() and len(os.sched_getaffinity(0)) > 1:
        idle.append(Ahead(_Child(_spawn(warm=True), spawned=True), spawns=True))


@contextmanager
def borrowed(*, spawns: bool = True) -> Generator[Ahead | None]:
    """A child for as long as the block runs, of those that this process keeps; None: this platform has none.

    Without ``spawns``, which is for programs that end soon, it is forked and ends with the block.
    """
    if not can_start():
        yield None
        return
    idle = _idle(os.getpid())
    ahead = idle.pop() if spawns and idle else Ahead(spawns=spawns and _can_spawn())
    try:
        yield ahead
    finally:
        if ahead.drop() and len(idle) < _KEPT:
            idle.append(ahead)
        else:
            ahead.close()


@lru_cache(maxsize=1)
def _idle(pid: int) -> list[Ahead]:
    """The children that nobody uses, of this process, which is ``pid``: after a fork the new one has its own."""
    return []


def _can_spawn() -> bool:
    """Whether the program is Python itself, with MLIR, not one that Python is part of, which would not know ``-c``."""
    from cute_dialect.pipelines.upstream import is_available

    python = hasattr(os, "posix_spawn") and os.path.basename(sys.executable or "").startswith("python")
    return python and is_available()


class _Process(NamedTuple):
    """A child's pid, where requests go, where replies come from, what it prints."""

    pid: int
    requests: int
    replies: int
    log: int


def _fork(warm: bool) -> _Process:
    """A child that is a copy of this process."""
    log = os.memfd_create("mlir")
    to_child, requests = os.pipe()
    replies, from_child = os.pipe()
    sys.stdout.flush()
    sys.stderr.flush()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of threads, which the child never meets
        pid = os.fork()
    if pid == 0:  # pragma: no cover  (the child)
        try:
            os.close(requests)
            os.close(replies)
            nothing = os.open(os.devnull, os.O_RDWR)
            os.dup2(nothing, 0)
            os.dup2(nothing, 1)  # whoever reads our output must not wait for the child
            os.dup2(log, 2)
            if "faulthandler" in sys.modules:  # an abort here is expected: no dump of ours
                sys.modules["faulthandler"].disable()
            _serve(to_child, from_child, warm)
        finally:
            os._exit(0)
    os.close(to_child)
    os.close(from_child)
    return _Process(pid, requests, replies, log)


def _spawn(warm: bool) -> _Process:
    """A child that is a fresh Python."""
    log = os.memfd_create("mlir")
    to_child, requests = os.pipe()
    replies, from_child = os.pipe()
    code = f"import sys; sys.path[:] = {sys.path!r}; from {__name__} import serve; serve({warm})"
    try:
        pid = os.posix_spawn(
            sys.executable,
            [sys.executable, "-c", code],
            os.environ,
            file_actions=[
                (os.POSIX_SPAWN_DUP2, to_child, 0),
                (os.POSIX_SPAWN_DUP2, from_child, 1),
                (os.POSIX_SPAWN_DUP2, log, 2),
            ],
            setpgroup=0,  # an interrupt from the keyboard is for us
        )
    finally:
        os.close(to_child)
        os.close(from_child)
    return _Process(pid, requests, replies, log)


class _Child:
    """A process that runs upstream MLIR, from here.  Only descriptors: nothing has to be closed at the end."""

    def __init__(self, process: _Process, *, spawned: bool = False):
        self.pid, self._requests, self._replies, self._log = process
        self.spawned = spawned
        """Whether it is a fresh Python."""
        self._greeted = not spawned

    def lives(self) -> bool:
        """Whether it is there for a request; waits for the first words of a fresh Python, which may fail to start."""
        if not self._greeted:
            self._greeted = True
            return receive(self._replies) is not None
        poll = select.poll()
        poll.register(self._replies, select.POLLIN)
        return not poll.poll(0)  # nothing was asked: what comes is its end

    def tell(self, request: tuple[str, tuple[object, ...]]) -> bool:
        """Send a request; whether it lives."""
        try:
            send(self._requests, request)
        except BrokenPipeError:
            return False
        return True

    def ask(self, request: tuple[str, tuple[object, ...]]) -> tuple[str, Any] | None:
        """Its reply; None if it died."""
        return receive(self._replies) if self.tell(request) else None

    def close(self) -> tuple[str, int]:
        """End it and wait for it; what it printed, and its status."""
        os.close(self._requests)
        os.close(self._replies)
        try:
            _, status = os.waitpid(self.pid, 0)
        except ChildProcessError:  # the program waits for all children itself
            status = 0
        os.lseek(self._log, 0, os.SEEK_SET)
        with open(self._log, "rb") as log:
            return log.read().decode(errors="replace"), status


class Ahead:
    """The child, from here, and its successors.  ``spawns``: they are fresh Pythons, not forks of this process."""

    def __init__(self, child: _Child | None = None, *, spawns: bool = False):
        self.child = child
        """The process; None before the first module, and when it has died."""
        self._spawns = spawns

    def module(self, text: str, filename: str = "-") -> AheadModule:
        """Parse and verify ``text`` there.  Raises as :meth:`.upstream.UpstreamModule.from_text` does."""
        self._start()
        self.call("from_text", text, filename)
        return AheadModule(self, filename)

    def _start(self) -> None:
        """Have a child that lives."""
        with self._interruptible():
            if self.child is None and self._spawns:
                self.child = _Child(_spawn(warm=False), spawned=True)
            if self.child is not None and not self.child.lives():
                self.close()
        if self.child is None:
            self.child = _Child(_fork(warm=False))

    @contextmanager
    def _interruptible(self) -> Generator[None]:
        """End the child where waiting for it is interrupted: a late reply would pass for that to the next request."""
        try:
            yield
        except BaseException:
            if self.child is not None:
                os.kill(self.child.pid, signal.SIGKILL)
            self.close()
            raise

    def call(self, method: str, *arguments: object, filename: str = "-") -> Any:
        """Have the child carry out ``method``; its result.  Raises UpstreamError."""
        if self.child is None:
            raise UpstreamError("the process of upstream MLIR that held this module has ended", filename=filename)
        with self._interruptible():
            reply = self.child.ask((method, arguments))
        if reply is None:
            child, self.child = self.child, None
            raise UpstreamError(abort_message(*child.close(), _doing(method, arguments)), filename=filename)
        kind, value = reply
        if kind == "ok":
            return value
        error = UpstreamMissing if kind == "missing" else UpstreamError
        raise error(*value)

    def drop(self) -> bool:
        """Have the child forget its module; whether it can be kept for others: forks cannot."""
        return self.child is not None and self.child.spawned and self.child.tell(("drop", ()))

    def close(self) -> None:
        """End the child and wait for it."""
        child, self.child = self.child, None
        if child is not None:
            child.close()


def _doing(method: str, arguments: tuple[object, ...]) -> str:
    """What the child does of a method, for the message when it dies of it."""
    if method in ("run", "run_pipeline"):
        return BACK_END if arguments[0] == "emit-gpu-binary" else f"pass '{arguments[0]}' of upstream MLIR"
    return {
        "from_text": "the parser of upstream MLIR",
        "text": "the printer of upstream MLIR",
        "llvm_ir": "the translation to LLVM IR",
    }.get(method, "upstream MLIR")


class AheadModule:
    """A module over there, with the methods of :class:`.upstream.UpstreamModule` that a compilation needs."""

    def __init__(self, ahead: Ahead, filename: str):
        self._ahead = ahead
        self._filename = filename

    def run(self, pass_name: str, options: Mapping[str, str] | None = None) -> None:
        """Run one base pass or pass of upstream, with its options."""
        from cute_dialect.pipelines.upstream import with_toolkit

        self._call("run", pass_name, with_toolkit(pass_name, options or {}))

    def run_pipeline(self, pipeline: str) -> None:
        """Run a textual pass pipeline."""
        self._call("run_pipeline", pipeline)

    def text(self, *, generic: bool = False, debuginfo: bool = False, local_scope: bool = False) -> str:
        """The module as text."""
        return str(self._call("text", generic, debuginfo, local_scope))

    def objects(self) -> list[GpuObject]:
        """The objects of every ``gpu.binary``, in order."""
        from cute_dialect.pipelines.gpu_objects import GpuObject

        return [GpuObject(*entry) for entry in self._call("objects")]

    def ptx(self) -> dict[str, str]:
        """PTX of every compiled ``gpu.module``."""
        return {o.module: o.data.decode() for o in self.objects() if o.format == "isa"}

    def llvm_ir(self) -> dict[str, str]:
        """LLVM IR as text, by ``gpu.module``; host code under ``""``."""
        return dict(self._call("llvm_ir"))

    def _call(self, method: str, *arguments: object) -> Any:
        return self._ahead.call(method, *arguments, filename=self._filename)


# ---------------------------------------------------------------------------------------------------------- the child


def serve(warm: bool) -> None:  # pragma: no cover  (the child)
    """Answer requests from standard input on standard output; what a fresh Python runs."""
    sink = os.dup(1)
    os.dup2(2, 1)  # what anything prints is no reply
    _serve(0, sink, warm, greets=True)
    os._exit(0)


def _warm_up() -> None:  # pragma: no cover  (the child)
    """Load MLIR and LLVM and compile a small module, in a process that may die of it.  Raises UpstreamMissing."""
    from cute_dialect.pipelines.upstream import UpstreamModule, import_light

    import_light()
    warm = UpstreamModule.from_text(_WARM)
    warm.run("base-prepare")
    warm.run("one-shot-convert-to-llvm")
    warm.run_pipeline("builtin.module(gpu-module-to-binary{format=isa})")


def _serve(source: int, sink: int, warm: bool, *, greets: bool = False) -> None:  # pragma: no cover  (the child)
    import gc

    from cute_dialect.pipelines.upstream import UpstreamModule, import_light, make_context

    gc.disable()
    context = None
    try:
        if warm:
            _warm_up()
        else:
            import_light()
        context = make_context()
    except UpstreamError:
        pass  # said when a module comes
    if greets:
        send(sink, ("ready", ()))
    module: UpstreamModule | None = None
    while (request := receive(source)) is not None:
        method, arguments = request
        if method == "drop":
            if module is not None:
                module, context = None, make_context()  # while the other side goes on
            continue
        try:
            if method == "from_text":
                text, filename = arguments
                module = UpstreamModule.from_text(str(text), str(filename), context)
                context = None  # the next module gets its own
                module.may_abort = True
                value: object = None
            else:
                assert module is not None
                value = _carry_out(module, method, arguments)
            reply = ("ok", value)
        except UpstreamMissing as e:
            reply = ("missing", (e.message,))
        except UpstreamError as e:
            reply = ("error", (e.message, e.line, e.col, e.filename))
        except Exception as e:
            reply = ("error", (f"{type(e).__name__}: {e}",))
        send(sink, reply)


def _carry_out(module: UpstreamModule, method: str, arguments: tuple[Any, ...]) -> object:  # pragma: no cover
    if method == "run":
        name, options = arguments
        return module.run(name, options)
    if method == "run_pipeline":
        return module.run_pipeline(*arguments)
    if method == "text":
        generic, debuginfo, local_scope = arguments
        return module.text(generic=generic, debuginfo=debuginfo, local_scope=local_scope)
    if method == "objects":
        return [tuple(o) for o in module.objects()]
    assert method == "llvm_ir"
    return module.llvm_ir()
