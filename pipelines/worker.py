"""Code of the worker processes of :mod:`.isolate`, which run upstream MLIR or compile, and their message format.

A message is :mod:`marshal` data, preceded by its length in 8 bytes.  A request is ``(method, arguments)``.  Methods
are those of :class:`.upstream.UpstreamModule`, and ``"drop"``, which has no reply.  A reply is ``("ok", result)``,
``("error", arguments of UpstreamError)`` or ``("missing", (message,))``.

A compiling worker has one method, ``"compile"``.  Its arguments are the keywords of :func:`.stages.compile_module`
and the caller's settings (``CUTE_…``); the result is the files of the compiled module.

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
import sys
from typing import TYPE_CHECKING, Any, NoReturn

from cute_dialect.pipelines.upstream_error import UpstreamError, UpstreamMissing

if TYPE_CHECKING:  # pragma: no cover
    import mlir.ir as ir

    from cute_dialect.pipelines.upstream import UpstreamModule

__all__ = ["receive", "send", "serve", "serve_compilations"]


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
                from cute_dialect.pipelines.upstream import UpstreamModule

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


def serve_compilations() -> NoReturn:  # pragma: no cover  (another process)
    """Compile: read requests from standard input, and reply on standard output until the input ends."""
    from cute_dialect.pipelines.stages import CompileError, compile_module
    from cute_dialect.runtime.artifact import artifact_files

    sink = os.dup(1)
    os.dup2(2, 1)
    while (request := receive(0)) is not None:
        method, arguments = request
        if method == "drop":
            continue
        try:
            keywords, settings = arguments
            for name in [n for n in os.environ if n.startswith("CUTE_") and n not in settings]:
                del os.environ[name]
            os.environ.update(settings)
            reply = ("ok", artifact_files(compile_module(**keywords).artifact))
        except CompileError as e:
            reply = ("error", (str(e),))
        except Exception as e:
            reply = ("error", (f"{type(e).__name__}: {e}",))
        send(sink, reply)
    os._exit(0)


def _make_context() -> ir.Context | None:  # pragma: no cover
    """Load MLIR and create a context, without numpy, which only attribute builders need.

    Return None without MLIR; the error is reported with the first module.
    """
    from cute_dialect.pipelines.upstream import make_context

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
