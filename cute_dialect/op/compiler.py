"""Compilation of operations before their first run, several at a time.

Kernels in the compile cache are not compiled again::

    op.compiler.add_module([operation, reduction])
    op.compiler.backend("driver")                        # no ptxas: the driver assembles PTX
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Protocol

from cute_dialect.op.execute.kernel_cache import backend
from cute_dialect.op.execute.kernels import Variant, compiled

__all__ = ["HasVariants", "add_module", "backend", "nvcc", "nvrtc"]


class HasVariants(Protocol):
    """An operation with kernels to compile."""

    def variants(self) -> list[Variant]:
        """Return the kernels for any alpha and beta."""
        ...


def add_module(operations: Iterable[HasVariants], workers: int | None = None) -> None:
    """Compile the kernels of operations for any alpha and beta, and wait for them.

    Each kernel is traced in a thread of this process and compiled in another one.  With the ``interpreter`` backend
    (:func:`backend`) kernels are compiled in this process, one after another.  Exceptions are raised after all are
    done.

    Args:
        workers: number of compiler processes; default: one per CPU that this process may use.
    """
    cpu = backend() == "interpreter"
    wanted = list(dict.fromkeys(v for operation in operations for v in operation.variants()))
    count = 1 if cpu else workers or len(os.sched_getaffinity(0))
    with ThreadPoolExecutor(max(1, min(count, len(wanted))), thread_name_prefix="cute-compile") as pool:
        made = [pool.submit(compiled, v, cpu=cpu, elsewhere=len(wanted) > 1 and not cpu) for v in wanted]
    for each in made:
        each.result()


def nvcc() -> None:
    """Select ``backend("ptxas")``, under PyCUTLASS's name for the compiler program."""
    backend("ptxas")


def nvrtc() -> None:
    """Select ``backend("driver")``, under PyCUTLASS's name for the compiler library."""
    backend("driver")
