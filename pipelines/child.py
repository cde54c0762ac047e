"""Work in a forked child, because LLVM's back end aborts the process on what it cannot select."""

from __future__ import annotations

import gc
import os
import signal
import sys
from collections.abc import Callable

from cute_dialect.pipelines.upstream_error import UpstreamError, clip

__all__ = ["BACK_END", "abort_message", "can_fork", "in_child"]

BACK_END = "LLVM's NVPTX back end"
"""What most often dies of its input."""


def can_fork() -> bool:
    """Whether this platform has fork."""
    return hasattr(os, "fork")


def in_child(work: Callable[[], str], filename: str, doing: str = BACK_END) -> str:
    """``work()`` in a forked child; an exception there is raised here, a death by signal becomes an error that says
    what the child was ``doing``."""
    import json
    import tempfile
    import warnings

    read_end, write_end = os.pipe()
    with tempfile.TemporaryFile() as log:
        sys.stdout.flush()
        sys.stderr.flush()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            pid = os.fork()
        if pid == 0:  # pragma: no cover  (the child)
            code = 1
            try:
                os.close(read_end)
                gc.disable()  # a collection would touch, and so copy, every object of the parent
                os.dup2(log.fileno(), 2)
                if "faulthandler" in sys.modules:  # an abort here is expected: no dump of ours
                    sys.modules["faulthandler"].disable()
                try:
                    reply = {"text": work()}
                except UpstreamError as e:
                    reply = {"message": e.message, "line": e.line, "col": e.col, "file": e.filename}
                except Exception as e:
                    reply = {"message": f"{type(e).__name__}: {e}", "line": 0, "col": 0, "file": filename}
                with os.fdopen(write_end, "wb") as pipe:
                    pipe.write(json.dumps(reply).encode())
                code = 0
            finally:
                os._exit(code)
        os.close(write_end)
        with os.fdopen(read_end, "rb") as pipe:
            data = pipe.read()
        _, status = os.waitpid(pid, 0)
        log.seek(0)
        said = log.read().decode(errors="replace")
    if not data:
        raise UpstreamError(abort_message(said, status, doing), filename=filename)
    reply = json.loads(data)
    if "text" in reply:
        return str(reply["text"])
    raise UpstreamError(str(reply["message"]), int(reply["line"]), int(reply["col"]), str(reply["file"]))


def abort_message(said: str, status: int, doing: str = BACK_END) -> str:
    """What a process printed before it died, in one line; ``doing``: what it was at."""
    lines = [line for line in said.splitlines() if line.strip()]
    start = next((i for i, line in enumerate(lines) if "LLVM ERROR" in line or "Assertion" in line), None)
    told = (
        " / ".join(line.strip() for line in lines[start : start + 3]) if start is not None else " / ".join(lines[-3:])
    )
    how = f"signal {os.WTERMSIG(status)}" if os.WIFSIGNALED(status) else f"exit status {status >> 8}"
    if os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGSEGV:
        told = told or "its stack was too small for what is nested here, most likely"
    hint = ""
    if "Cannot select" in told:
        hint = "; the chip or its PTX version (features) does not have an instruction that the kernel uses"
    return clip(f"{doing} aborted ({how}): {told or 'no message'}{hint}")
