"""Parts of all programs: garbage collection, fast exit, and messages of user errors without a traceback."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Callable
from typing import NoReturn

from cute_dialect.errors import CompileError
from cute_dialect.ir.diagnostics import limit_message
from cute_dialect.runtime.settings import SettingError, missing_package


def collect_rarely() -> None:
    """Re-enable garbage collection after imports, with a higher threshold, and exempt the imported objects."""
    gc.freeze()
    gc.set_threshold(100_000, 20, 20)
    gc.enable()


def leave(status: int) -> NoReturn:
    """Flush the output and exit at once, skipping the destructors of xDSL and MLIR objects (10 % of a short run)."""
    for stream in (sys.stdout, sys.stderr):
        try:
            if stream is not None:
                stream.flush()
        except BrokenPipeError:
            status = 1
    os._exit(status)


def report_user_error(error: Exception, program: str) -> bool:
    """Print a user error to standard error and return True; return False for an internal error."""
    text = user_message(error, program)
    if text is not None:
        print(text, file=sys.stderr)
    return text is not None


def user_message(error: Exception, program: str) -> str | None:
    """Return the message of a user error, or None for an internal error."""
    module, spec = type(error).__module__, getattr(sys.modules["__main__"], "__spec__", None)
    if module == "__main__" and spec is not None:  # python -m cute_dialect.tools.cute_bench
        module = spec.name
    if module.startswith(("cute_dialect.interp", "cute_dialect.tools")):
        return f"{program}: error: {str(error).removeprefix('error: ')}"
    from cute_dialect.op.select.kernel_choice import TableError  # late: start-up
    from cute_dialect.pipelines.upstream import UpstreamError  # late: start-up
    from cute_dialect.runtime.artifact import ArtifactError  # late: start-up
    from cute_dialect.runtime.driver import CudaError  # late: start-up
    from cute_dialect.runtime.launch_plan import LaunchError  # late: start-up
    from cute_dialect.viz.cells import DrawingError  # late: start-up

    if isinstance(error, CompileError):
        return str(error)
    if isinstance(error, ModuleNotFoundError):
        hint = missing_package(error)
        return None if hint is None else f"{program}: error: {hint}"
    if isinstance(error, UpstreamError) and error.line:
        return f"{error.filename}:{error.line}:{error.col}: error: {error.message}"
    known = (ArtifactError, LaunchError, CudaError, UpstreamError, SettingError, TableError, DrawingError)
    if isinstance(error, known):
        return f"{program}: error: {error}"
    message = limit_message(error)
    return f"{program}: error: {message}" if message is not None else None


def run_program(program: str, work: Callable[[], int]) -> int:
    """Return the exit status of ``work``: 1 after a user error, which is printed, and 130 after Ctrl-C."""
    try:
        return work()
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return 130
    except Exception as e:
        if not report_user_error(e, program):
            raise
        return 1
