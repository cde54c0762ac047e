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
:class:`UpstreamError` that says what was being done; the next module gets another child.  A process that has us as a
library keeps one child (:func:`kept`) for all of its ``cute-opt`` runs.

Requests and replies are those of :mod:`cute_dialect.pipelines.messages`.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from cute_dialect.pipelines.child import BACK_END, abort_message
from cute_dialect.pipelines.messages import receive, send
from cute_dialect.pipelines.upstream_error import UpstreamError, UpstreamMissing

if TYPE_CHECKING:
    from cute_dialect.pipelines.gpu_objects import GpuObject
    from cute_dialect.pipelines.upstream import UpstreamModule

__all__ = ["Ahead", "AheadModule", "can_start", "kept", "start", "warm_up"]

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


def can_start() -> bool:
    """Whether this platform has what a child takes."""
    return hasattr(os, "fork") and hasattr(os, "memfd_create") and hasattr(os, "sched_getaffinity")


def start() -> Ahead | None:
    """Start the child; None where that would not save time: one core, or a platform without fork and memfd_create."""
    if not can_start() or len(os.sched_getaffinity(0)) < 2:
        return None
    return Ahead(_Child(warm=True))


@lru_cache(maxsize=1)
def kept(pid: int) -> Ahead | None:
    """The child that this process, which is ``pid``, keeps; it starts with the first module.  None: it cannot."""
    return Ahead() if can_start() else None


def _fork(warm: bool) -> tuple[int, int, int, int]:
    """A child: its pid, where requests go, where replies come from, what it prints."""
    log = os.memfd_create("mlir")
    to_child, requests = os.pipe()
    replies, from_child = os.pipe()
    sys.stdout.flush()
    sys.stderr.flush()
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
    return pid, requests, replies, log


class _Child:
    """A process that runs upstream MLIR, from here.  ``warm``: it sets itself up before the first module comes."""

    def __init__(self, warm: bool):
        self.pid, self._requests, self._replies, self._log = _fork(warm)

    def ask(self, request: tuple[str, tuple[object, ...]]) -> tuple[str, Any] | None:
        """Its reply; None if it died."""
        try:
            send(self._requests, request)
            return receive(self._replies)
        except BrokenPipeError:
            return None

    def close(self) -> tuple[str, int]:
        """End it and wait for it; what it printed, and its status."""
        os.close(self._requests)
        os.close(self._replies)
        _, status = os.waitpid(self.pid, 0)
        os.lseek(self._log, 0, os.SEEK_SET)
        with open(self._log, "rb") as log:
            return log.read().decode(errors="replace"), status


class Ahead:
    """The child, from here, and its successors.  Made by :func:`start` and :func:`kept`."""

    def __init__(self, child: _Child | None = None):
        self.child = child
        """The process; None before the first module, and when it has died."""

    def module(self, text: str, filename: str = "-") -> AheadModule:
        """Parse and verify ``text`` there.  Raises as :meth:`.upstream.UpstreamModule.from_text` does."""
        if self.child is None:
            self.child = _Child(warm=False)
        self.call("from_text", text, filename)
        return AheadModule(self, filename)

    def call(self, method: str, *arguments: object, filename: str = "-") -> Any:
        """Have the child carry out ``method``; its result.  Raises UpstreamError."""
        if self.child is None:
            raise UpstreamError("the process of upstream MLIR that held this module has ended", filename=filename)
        try:
            reply = self.child.ask((method, arguments))
        except BaseException:  # interrupted: a late reply would be taken for that to the next request
            os.kill(self.child.pid, signal.SIGKILL)
            self.close()
            raise
        if reply is None:
            child, self.child = self.child, None
            raise UpstreamError(abort_message(*child.close(), _doing(method, arguments)), filename=filename)
        kind, value = reply
        if kind == "ok":
            return value
        error = UpstreamMissing if kind == "missing" else UpstreamError
        raise error(*value)

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
        self._call("run", pass_name, dict(options or {}))

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


def warm_up() -> None:  # pragma: no cover  (the child)
    """Load MLIR and LLVM and compile a small module, in a process that may die of it.  Raises UpstreamMissing."""
    from cute_dialect.pipelines.upstream import UpstreamModule, import_light

    import_light()
    warm = UpstreamModule.from_text(_WARM)
    warm.run("base-prepare")
    warm.run("one-shot-convert-to-llvm")
    warm.run_pipeline("builtin.module(gpu-module-to-binary{format=isa})")


def _serve(source: int, sink: int, warm: bool) -> None:  # pragma: no cover  (the child)
    import gc

    gc.disable()
    context = None
    try:
        from cute_dialect.pipelines.upstream import import_light, make_context

        if warm:
            warm_up()
        else:
            import_light()
        context = make_context()
    except UpstreamError:
        pass  # said when a module comes
    module: UpstreamModule | None = None
    while (request := receive(source)) is not None:
        method, arguments = request
        try:
            if method == "from_text":
                from cute_dialect.pipelines.upstream import UpstreamModule

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
