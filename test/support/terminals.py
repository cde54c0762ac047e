"""Run programs in a pseudo-terminal and read their output."""

from __future__ import annotations

import os
import pty
import signal
import sys
from collections.abc import Mapping

__all__ = ["on_a_terminal"]


def on_a_terminal(
    command: list[str], environment: Mapping[str, str] | None = None, interrupt_at: str | None = None
) -> tuple[str, int]:
    """Run a Python program in a terminal of 100 columns and return its output and its exit status.

    ``interrupt_at`` is an output text after which ``Ctrl-C`` is sent.
    """
    child, terminal = pty.fork()
    if child == 0:
        signal.signal(signal.SIGINT, signal.SIG_DFL)  # Background jobs ignore SIGINT.
        more = {"TERM": "xterm", "COLUMNS": "100", "LINES": "24", "CUTE_PROGRESS": "", "CUTE_PROGRESS_JSON": ""}
        unset = ("NO_COLOR", "FORCE_COLOR")
        kept = {n: v for n, v in os.environ.items() if n not in unset}
        os.execve(sys.executable, [sys.executable, *command], {**kept, **more, **(environment or {})})
    written = b""
    while True:
        try:
            read = os.read(terminal, 4096)
        except OSError:  # On Linux, the end of the output raises OSError.
            break
        if not read:
            break
        written += read
        if interrupt_at is not None and interrupt_at.encode() in written:
            os.write(terminal, b"\x03")
            interrupt_at = None
    os.close(terminal)
    return written.decode(), os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
