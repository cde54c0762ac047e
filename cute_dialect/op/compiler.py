"""Compile operations, several at once in processes of their own; what the compile cache has is not compiled.

op.compiler.add_module([operation, reduction])
op.compiler.backend("driver")                        # no ptxas: the driver makes machine code of PTX
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Protocol

from cute_dialect.op.kernel_cache import backend
from cute_dialect.op.plans.generators import Variant, compiled

__all__ = ["HasVariants", "add_module", "backend", "nvcc", "nvrtc"]


class HasVariants(Protocol):
    """What has kernels to compile."""

    def variants(self) -> list[Variant]:
        """Return the kernels for any numbers."""
        ...


def add_module(operations: Iterable[HasVariants], workers: int | None = None) -> None:
    """Compile the kernels of operations for any alpha and beta; returns when all are.

    Each is traced in a thread of this process and compiled in another one, ``workers`` at a time, by default as many as
    this process has CPUs.  What fails raises when all are done.  For the interpreter (:func:`backend`) they are
    compiled as far as it needs them, here, one after another.
    """
    cpu = backend() == "interpreter"
    wanted = list(dict.fromkeys(v for operation in operations for v in operation.variants()))
    count = 1 if cpu else workers or len(os.sched_getaffinity(0))
    with ThreadPoolExecutor(max(1, min(count, len(wanted))), thread_name_prefix="cute-compile") as pool:
        made = [pool.submit(compiled, v, cpu=cpu, elsewhere=len(wanted) > 1 and not cpu) for v in wanted]
    for each in made:
        each.result()


def nvcc() -> None:
    """Choose what PyCUTLASS calls nvcc, a compiler of NVIDIA's that is a program: ``backend("ptxas")``."""
    backend("ptxas")


def nvrtc() -> None:
    """Choose what PyCUTLASS calls nvrtc, a compiler of NVIDIA's that is a library: ``backend("driver")``."""
    backend("driver")
