"""Timing, tuning and checking of kernels: ``cute.testing``.

us = cute.testing.benchmark(compiled, workspace_generator=make_arguments, workspace_count=10, iterations=100)
cute.testing.check(add, (a, b, c), {"c": a + b})        # every schedule of the interpreter, races on
"""

from __future__ import annotations

import inspect
import itertools
import statistics
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import cute_dialect.lang as cute
from cute_dialect.errors import CuteError
from cute_dialect.front.annotations import Stream
from cute_dialect.front.printing import assert_ as assert_
from cute_dialect.front.target import default_device
from cute_dialect.lang import autotuning

__all__ = [
    "CantImplementError", "JitArguments", "assert_", "assert_close", "autotune_jit", "benchmark", "check", "convert",
    "get_workspace_count", "tune",
]  # fmt: skip

_ROUNDS = 10
"""Turns of each candidate, at most."""
_L2_BYTES = 64 << 20
"""More than the L2 of any chip here has (H100, H200: 50 MB), so that what lies there is driven out."""


class CantImplementError(CuteError):
    """A program cannot do what was asked, and says so itself."""


class JitArguments:
    """The arguments of one call."""

    def __init__(self, *args: Any, **kwargs: Any):
        self.args = args
        self.kwargs = kwargs

    def __repr__(self) -> str:
        return f"JitArguments({', '.join([*map(repr, self.args), *(f'{k}={v!r}' for k, v in self.kwargs.items())])})"


def get_workspace_count(one_workspace_bytes: int, warmup_iterations: int, iterations: int) -> int:
    """Return how many sets of arguments a benchmark needs so that none is in L2 when its turn comes again.

    >>> get_workspace_count(1 << 20, 2, 100), get_workspace_count(1 << 30, 2, 100), get_workspace_count(8, 0, 3)
    (65, 2, 3)
    """
    if one_workspace_bytes < 1:
        return 1
    return max(
        1, min(warmup_iterations + iterations, _L2_BYTES // one_workspace_bytes + 1 + (one_workspace_bytes > _L2_BYTES))
    )


def benchmark(
    callable: Callable[..., Any], *, warmup_iterations: int = 10, iterations: int = 100, stream: Any = None,
    kernel_arguments: JitArguments | None = None, workspace_generator: Callable[[], JitArguments] | None = None,
    workspace_count: int = 1, use_cuda_graphs: bool = False,
) -> float:  # fmt: skip
    """Return the median microseconds of a call, by CUDA events; on the interpreter the host's time.

    ``workspace_generator`` makes the arguments of a call, ``workspace_count`` times; calls take turns.  ``stream``:
    the one that the calls launch on.  ``use_cuda_graphs`` is accepted: launches are queued without a wait anyway.
    """
    if iterations < 1 or warmup_iterations < 0 or workspace_count < 1:
        raise ValueError(
            "expected at least one iteration, one workspace, no fewer than 0 to warm up, got "
            f"{iterations}, {workspace_count}, {warmup_iterations}"
        )
    if kernel_arguments is not None and workspace_generator is not None:
        raise ValueError("expected kernel_arguments or workspace_generator, got both")
    made = [workspace_generator() for _ in range(workspace_count)] if workspace_generator is not None else []
    for arguments in made:
        if not isinstance(arguments, JitArguments):
            raise TypeError(f"workspace_generator returns JitArguments, not {type(arguments).__name__}")
    turns = itertools.cycle(made or [kernel_arguments or JitArguments()])

    def call() -> None:
        arguments = next(turns)
        callable(*arguments.args, **arguments.kwargs)

    for _ in range(warmup_iterations):
        call()
    times = _host_times(call, iterations) if default_device() == "cpu" else _gpu_times(call, iterations, stream)
    return statistics.median(times)


def _host_times(call: Callable[[], None], iterations: int) -> Iterator[float]:
    for _ in range(iterations):
        start = time.perf_counter()
        call()
        yield 1e6 * (time.perf_counter() - start)


def _gpu_times(call: Callable[[], None], iterations: int, stream: Any) -> Iterator[float]:
    from cute_dialect.runtime.driver import driver

    gpu = driver()
    handle = int(stream.handle if isinstance(stream, Stream) else stream) if stream is not None else 0
    events = [(gpu.new_event(), gpu.new_event()) for _ in range(iterations)]
    for start, end in events:
        gpu.record(start, handle)
        call()
        gpu.record(end, handle)
    for start, end in events:
        yield gpu.elapsed(start, end)


def tune(
    func: Callable[..., Callable[[], Any]], params_dict: Mapping[str, Sequence[Any]],
    kernel_arguments: JitArguments | None = None, warmup_iterations: int = 10, iterations: int = 100,
    stream: Any = None,
) -> dict[str, Any]:  # fmt: skip
    """Return the parameters with the fastest kernel: each combination of ``params_dict`` is made and timed.

    ``func`` takes the arguments and the parameters, and returns a call without arguments.  Combinations for which it
    raises :class:`CantImplementError` are left out; those for which it raises another error, too, with a warning.

    Raises CantImplementError if no combination is left.
    """
    given = kernel_arguments or JitArguments()
    best: tuple[float, dict[str, Any]] | None = None
    for values in itertools.product(*params_dict.values()):
        params = dict(zip(params_dict, values))
        try:
            made = func(*given.args, **given.kwargs, **params)
        except CantImplementError:
            continue
        except Exception as e:
            warnings.warn(f"tune: {params} is left out: {type(e).__name__}: {e}", RuntimeWarning, stacklevel=2)
            continue
        if not callable(made):
            raise TypeError(f"func returns a function of no arguments, not {type(made).__name__}")
        us = benchmark(made, warmup_iterations=warmup_iterations, iterations=iterations, stream=stream)
        if best is None or us < best[0]:
            best = us, params
    if best is None:
        raise CantImplementError(f"none of the parameters of {dict(params_dict)} can be had")
    return best[1]


def autotune_jit(
    params_dict: Mapping[str, Sequence[Any]], update_on_change: Sequence[str] = (), warmup_iterations: int = 10,
    iterations: int = 100,
) -> Callable[[Callable[..., Any]], autotuning.Autotuned]:  # fmt: skip
    """Return a decorator for a host function whose constants in ``params_dict`` are chosen by timing.

    It is ``cute.autotune`` as CuTe DSL spells it: the first call times every combination of them with its own
    arguments, on the interpreter, too, and so does a call where an argument named in ``update_on_change`` has a value
    that was not there yet.  What raises :class:`CantImplementError` is left out, results are not compared, no table is
    written.

        @cute.testing.autotune_jit(params_dict={"threads": [64, 128, 256]}, update_on_change=["columns"])
        @cute.jit
        def row_sum(x: cute.Tensor, out: cute.Tensor, columns: cute.Constexpr, threads: cute.Constexpr = 128): ...
    """
    candidates = [dict(zip(params_dict, values)) for values in itertools.product(*params_dict.values())]
    share = -(-iterations // _ROUNDS)
    how = autotuning.How(
        tuple(update_on_change), None, None, -(-iterations // share), share, None, saved=False, compared=False,
        on_cpu=True, warmup=warmup_iterations,
    )  # fmt: skip

    def decorate(f: Callable[..., Any]) -> autotuning.Autotuned:
        return autotuning.make(f, candidates, how)

    return decorate


_THREADS = 256


@cute.kernel
def _convert_kernel(src: cute.Tensor, dst: cute.Tensor) -> None:
    i = cute.arch.block_idx().x * _THREADS + cute.arch.thread_idx().x
    if i < cute.size(dst):
        dst[i] = src[i].to(dst.element_type)


@cute.jit
def convert(src: cute.Tensor, dst: cute.Tensor) -> None:
    """Write the elements of a tensor into another of the same shape, converted to its element type.

    A host function: called with arrays it runs, called in a host function it is part of that.
    """
    if cute.is_static(src.shape) and cute.is_static(dst.shape) and src.shape != dst.shape:
        raise ValueError(f"expected tensors of one shape, got {src.shape} and {dst.shape}")
    cute.assert_(cute.equal(src.shape, dst.shape), "expected tensors of one shape")
    _convert_kernel(src, dst).launch(grid=cute.ceil_div(cute.size(dst), _THREADS), block=_THREADS)


def assert_close(actual: Any, expected: Any, rtol: float = 1e-5, atol: float = 1e-8) -> None:
    """Raise AssertionError unless two arrays agree: ``|actual - expected| <= atol + rtol * |expected|``."""
    import numpy as np

    np.testing.assert_allclose(_numbers(actual), _numbers(expected), rtol=rtol, atol=atol)


def _numbers(x: Any) -> Any:
    """Return an array (or a tensor for kernels over one) as float64, or integers as they are."""
    import numpy as np

    x = getattr(x, "array", x)
    if hasattr(x, "detach"):
        x = x.detach().cpu()
        x = x.double() if x.is_floating_point() else x
    found = np.asarray(x)
    return found if found.dtype.kind in "iub" else found.astype(np.float64)


_SCHEDULES = ("round-robin", "random")


def check(
    f: Callable[..., Any], args: Sequence[Any],
    reference: Mapping[str, Any] | Sequence[Any] | Callable[..., Any] = (), *,
    schedules: Sequence[str] = _SCHEDULES, checks: Sequence[str] = ("race", "oob", "uninit", "sync"),
    rtol: float = 1e-5, atol: float = 1e-8,
) -> None:  # fmt: skip
    """Run a host function on the interpreter under each schedule with all checks, and compare what it wrote.

    ``reference``: what arrays hold afterwards, by parameter name or by position (None: not compared), or a function
    that writes it into copies of the arguments.  Raises AssertionError, or what the interpreter reports.  Arrays hold
    the last run's results.
    """
    import copy

    before = [_copied(a) for a in args]
    expected = _expected(reference, before, copy.copy(args), list(inspect.signature(f).parameters))
    for schedule in schedules:
        for mine, first in zip(args, before):
            _restore(mine, first)
        f(*args, device="cpu", checks=tuple(checks), schedule=schedule)
        for at, want in expected.items():
            assert_close(args[at], want, rtol, atol)


def _copied(x: Any) -> Any:
    kept = getattr(x, "array", x)
    return kept.clone() if hasattr(kept, "clone") else kept.copy() if hasattr(kept, "copy") else kept


def _restore(x: Any, first: Any) -> None:
    kept = getattr(x, "array", x)
    if hasattr(kept, "copy_"):
        kept.copy_(first)
    elif hasattr(kept, "copy"):
        kept[...] = first


def _expected(reference: Any, before: list[Any], args: Any, names: list[str]) -> dict[int, Any]:
    if callable(reference):
        copies = [_copied(b) for b in before]
        reference(*copies)
        return {i: c for i, c in enumerate(copies) if hasattr(c, "shape")}
    if isinstance(reference, Mapping):
        unknown = [n for n in reference if n not in names]
        if unknown:
            raise ValueError(f"there is no parameter '{unknown[0]}': there are {', '.join(names)}")
        return {names.index(n): x for n, x in reference.items()}
    if len(reference) > len(args):
        raise ValueError(f"{len(reference)} references for {len(args)} arguments")
    return {i: x for i, x in enumerate(reference) if x is not None}
