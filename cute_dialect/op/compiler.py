"""Compile operations, several at once in processes of their own; what the compile cache has is not compiled.

op.compiler.add_module([operation, reduction])
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Protocol

from cute_dialect.op.plans.generators import Variant, compiled

__all__ = ["HasVariants", "add_module"]


class HasVariants(Protocol):
    """What has kernels to compile."""

    def variants(self) -> list[Variant]:
        """Return the kernels for any numbers."""
        ...


def add_module(operations: Iterable[HasVariants], workers: int | None = None) -> None:
    """Compile the kernels of operations for any alpha and beta; returns when all are.

    Each is traced in a thread of this process and compiled in another one, ``workers`` at a time, by default as many as
    this process has CPUs.  What fails raises when all are done.
    """
    wanted = list(dict.fromkeys(v for operation in operations for v in operation.variants()))
    count = workers or len(os.sched_getaffinity(0))
    with ThreadPoolExecutor(max(1, min(count, len(wanted))), thread_name_prefix="cute-compile") as pool:
        made = [pool.submit(compiled, v, elsewhere=len(wanted) > 1) for v in wanted]
    for each in made:
        each.result()
