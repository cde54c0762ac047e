"""Background compilation of kernels: :func:`prefetch`.

Each kernel is traced in a thread of this process and compiled in another process, unless the compile cache has it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from typing import TypeAlias, cast

from cute_dialect.kernels.conv.config import ConvConfig
from cute_dialect.op.execute import kernels
from cute_dialect.op.execute.array_call import RowKernel, library
from cute_dialect.op.explanations.gemm import Explanation
from cute_dialect.op.keywords import checks_keywords
from cute_dialect.op.select import gemm_dispatch
from cute_dialect.op.select.kernel_choice import Choice, Problem
from cute_dialect.runtime.launch import CompiledModule

Wanted: TypeAlias = "Problem | Choice | Explanation | RowKernel | ConvConfig | kernels.PlainKernel"
_Kernel: TypeAlias = "RowKernel | kernels.Config"


class Prefetch:
    """Kernels that :func:`prefetch` is compiling."""

    def __init__(self, made: Iterable[Future[CompiledModule]]):
        self._made = tuple(made)

    def __len__(self) -> int:
        return len(self._made)

    def done(self) -> bool:
        """Return True if every kernel is compiled or has failed."""
        return all(m.done() for m in self._made)

    def wait(self, timeout: float | None = None) -> None:
        """Wait for all kernels, then raise the first exception, if any.

        On a terminal a progress bar is shown (``CUTE_PROGRESS``).  ``Ctrl-C`` cancels the kernels that have not
        started; the compile cache keeps those that are compiled.

        Args:
            timeout: limit in seconds; None waits without a limit.

        Raises TimeoutError after ``timeout`` seconds; compilation continues.
        """
        from cute_dialect.runtime.progress import Task

        with Task("compiling", len(self._made), "kernels") as task:
            self.follow(task.advance, timeout)

    def modules(self) -> list[CompiledModule]:
        """Wait for all kernels and return their modules, in the order of the request."""
        return [made.result() for made in self._made]

    def follow(self, told: Callable[[], None], timeout: float | None = None) -> None:
        """Wait as :meth:`wait` does, without a progress bar; ``told`` is called after each kernel."""
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


@checks_keywords
def prefetch(wanted: Iterable[Wanted], workers: int | None = None) -> Prefetch:
    """Compile kernels in the background; ``prefetch(…).wait()`` waits for them.

    Each kernel is compiled once.  A call that needs a kernel that is being compiled waits for it; if its compilation
    has not started, the call compiles it.  The GEMM that may be part of a convolution is not prefetched.

    Args:
        wanted: each is a problem (:class:`Problem`, a GEMM of matrices that TMA can read, without an epilogue), a
            result of :func:`cute_dialect.op.explain`, or a kernel returned by :func:`cute_dialect.op.choose`.
        workers: number of compiler processes; default: one per CPU that this process may use.
    """
    kinds = list(dict.fromkeys([kernel for one in wanted for kernel in _kernels(one)]))
    count = workers if workers is not None else len(os.sched_getaffinity(0))
    with_threads = ThreadPoolExecutor(max(1, min(count, len(kinds))), thread_name_prefix="cute-prefetch")
    made = [with_threads.submit(_made, kind) for kind in kinds]
    with_threads.shutdown(wait=False)
    return Prefetch(made)


def _kernels(wanted: Wanted) -> Sequence[_Kernel]:
    """Return the kernels of a request.  Raises TypeError, or ValueError if no kernel can be chosen."""
    if isinstance(wanted, Explanation) and wanted.kernels is not None:
        return wanted.kernels
    if isinstance(wanted, RowKernel | Choice) or type(wanted).__name__ in kernels.GENERATORS:
        return [cast("_Kernel", wanted)]
    if isinstance(wanted, Problem):
        gpu, sms = gemm_dispatch.here()
        return [gemm_dispatch.choose(wanted, sms, gpu)]
    raise TypeError(f"prefetch: {wanted!r} is not a Problem, a Choice or a result of op.explain; pass one of these")


def _made(kernel: _Kernel) -> CompiledModule:
    if isinstance(kernel, RowKernel):
        return library(kernel, elsewhere=True)
    return kernels.library(kernel, elsewhere=True)
