"""Begin and end of the process of a program of ours; one that has us as a library goes on as it is."""

from __future__ import annotations

import gc
import os
import sys
from typing import NoReturn

__all__ = ["collect_rarely", "leave"]


def collect_rarely() -> None:
    """Let Python's collector run again, after imports that it was off for, which make no garbage; but rarely."""
    gc.freeze()
    gc.set_threshold(100_000, 20, 20)
    gc.enable()


def leave(status: int) -> NoReturn:
    """End the process at once: taking xDSL's and MLIR's objects apart would cost a tenth of a short run."""
    for stream in (sys.stdout, sys.stderr):
        try:
            if stream is not None:
                stream.flush()
        except BrokenPipeError:
            status = 1
    os._exit(status)
