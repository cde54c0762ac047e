"""Compile kernels in the background, several at a time: :func:`prefetch`.

Each is traced in a thread of this process and compiled in another process; what the compile cache has is not compiled.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from typing import TypeAlias

from cute_dialect.kernels.split_tf32 import PartsConfig
from cute_dialect.op import compiled
from cute_dialect.op.attending.report import AttentionExplanation
from cute_dialect.op.conv.compiled import ConvKernel, kernel_library
from cute_dialect.op.conv.report import ConvExplanation
from cute_dialect.op.rows.call import RowKernel, library
from cute_dialect.op.rows.report import RowExplanation
from cute_dialect.op.select import gemm_dispatch
from cute_dialect.op.select.kernel_choice import Choice, Problem
from cute_dialect.op.select.report import Explanation
from cute_dialect.runtime.launch import CompiledModule

__all__ = ["Prefetch", "Wanted", "prefetch"]

Wanted: TypeAlias = (
    "Problem | Choice | Explanation | RowExplanation | AttentionExplanation | ConvExplanation | RowKernel | ConvKernel"
)
_Kernel: TypeAlias = "Choice | compiled.AnyConfig | PartsConfig | RowKernel | ConvKernel"


class Prefetch:
    """Kernels that are being compiled; made by :func:`prefetch`."""

    def __init__(self, made: Iterable[Future[CompiledModule]]):
        self._made = tuple(made)

    def __len__(self) -> int:
        return len(self._made)

    def done(self) -> bool:
        """Tell whether all are compiled, or failed."""
        return all(m.done() for m in self._made)

    def wait(self, timeout: float | None = None) -> None:
        """Wait for all; what failed raises when all are done, the first one that did.

        Raises TimeoutError where that takes more than ``timeout`` seconds; compiling goes on.  On a terminal a bar
        shows how far it is (``CUTE_PROGRESS``); after ``Ctrl-C`` nothing more is begun, and the compile cache has what
        was compiled.
        """
        from cute_dialect.runtime.progress import Task

        with Task("compiling", len(self._made), "kernels") as task:
            self.follow(task.advance, timeout)

    def follow(self, told: Callable[[], None], timeout: float | None = None) -> None:
        """Wait as :meth:`wait` does, but show nothing: ``told`` is called when a kernel is compiled, or failed."""
        try:
            for _ in as_completed(self._made, timeout):
                told()
        except TimeoutError:
            waiting = sum(not m.done() for m in self._made)
            raise TimeoutError(f"{waiting} of {len(self._made)} kernels are not compiled after {timeout} s") from None
        except KeyboardInterrupt:
            for m in self._made:
                m.cancel()
            raise
        for m in self._made:
            m.result()


def prefetch(wanted: Iterable[Wanted], workers: int | None = None) -> Prefetch:
    """Compile the kernels for some problems in the background; ``prefetch(…).wait()`` waits for them.

    A problem is that of a plain product of matrices that TMA reads; what :func:`cute_dialect.op.explain` gives is any
    call, with its epilogue (of a convolution all but a product of matrices that is part of it); a kernel is what
    :func:`cute_dialect.op.choose` gives.  Each kernel is compiled once, by
    ``workers`` processes, one a CPU that this process may use.  A call that needs one meanwhile waits for it, or, if
    its turn has not come, compiles it.
    """
    kinds = list(dict.fromkeys([kernel for one in wanted for kernel in _kernels(one)]))
    count = workers if workers is not None else len(os.sched_getaffinity(0))
    with_threads = ThreadPoolExecutor(max(1, min(count, len(kinds))), thread_name_prefix="cute-prefetch")
    made = [with_threads.submit(_made, kind) for kind in kinds]
    with_threads.shutdown(wait=False)
    return Prefetch(made)


def _kernels(wanted: Wanted) -> Sequence[_Kernel]:
    """Return the kernels of what is wanted."""
    if isinstance(wanted, RowExplanation | AttentionExplanation | ConvExplanation):
        return wanted.kernels
    if isinstance(wanted, ConvKernel):
        return [wanted]
    before = wanted.parts if isinstance(wanted, Explanation) else ()
    return [*before, wanted if isinstance(wanted, RowKernel) else _kernel(wanted)]


def _kernel(wanted: Problem | Choice | Explanation) -> Choice | compiled.AnyConfig:
    """Return the kernel, or that for any rows.  Raises TypeError, and ValueError as choosing does."""
    if isinstance(wanted, Choice):
        return wanted
    if isinstance(wanted, Explanation):
        found = wanted.choice or wanted.other
        assert found is not None
        return found
    if isinstance(wanted, Problem):  # pyright: ignore[reportUnnecessaryIsInstance]
        gpu, sms = gemm_dispatch.here()
        return gemm_dispatch.choose(wanted, sms, gpu)
    raise TypeError(f"prefetch: expected a Problem, a Choice, or what op.explain gives, got {wanted!r}")


def _made(kernel: _Kernel) -> CompiledModule:
    if isinstance(kernel, RowKernel):
        return library(kernel, elsewhere=True)
    if isinstance(kernel, ConvKernel):
        return kernel_library(kernel, elsewhere=True)
    if isinstance(kernel, Choice):
        return compiled.library(kernel, elsewhere=True)
    if isinstance(kernel, PartsConfig):
        return compiled.splitter_library(kernel, elsewhere=True)
    return compiled.any_rows_library(kernel, elsewhere=True)
