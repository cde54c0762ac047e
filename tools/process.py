"""Garbage collection and fast exit of command-line programs; unused when a program is called as a library."""

from __future__ import annotations

import gc
import os
import sys
from typing import NoReturn

__all__ = ["collect_rarely", "leave"]


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
