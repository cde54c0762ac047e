"""Comparison of the speed of several calls: they run in alternation, and slower ones are dropped early.

>>> times = contest({"a": 1.0, "b": 2.0}, lambda run, count: [run] * count, rounds=5, share=4)
>>> {name: len(found) for name, found in times.items()}
{'a': 12, 'b': 12}
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any, TypeVar

_Name = TypeVar("_Name", bound=Hashable)
_Run = TypeVar("_Run")
Measure = Callable[[_Run, int], Sequence[float]]
"""Runs a call a number of times and returns the time of each run in microseconds."""

_AT_LEAST = 3
"""Minimum number of rounds before a call is dropped."""
_SURE = 3.0
"""Number of standard errors by which two medians must differ."""


def contest(
    runs: Mapping[_Name, _Run],
    measure: Measure[_Run],
    *,
    rounds: int = 10,
    share: int = 10,
    until: float | None = None,
    told: Callable[[int, int], None] = lambda done, of: None,
) -> dict[_Name, list[float]]:
    """Return the times of the runs of each call, in microseconds.

    In each of ``rounds`` rounds every remaining call runs ``share`` times, in alternating order.  From the third round
    on, calls that are significantly slower than the fastest are dropped (:func:`is_slower`).  The comparison ends when
    one call is left.

    Args:
        until: the time (of ``time.monotonic``) after which no round is started.
        told: progress callback, called with the number of rounds done and the maximum.
    """
    times: dict[_Name, list[float]] = {name: [] for name in runs}
    left = list(runs)
    for number in range(rounds):
        for name in left if number % 2 == 0 else reversed(left):
            times[name] += measure(runs[name], share)
        told(number + 1, rounds)
        if number + 1 >= _AT_LEAST:
            best = min(left, key=lambda n: statistics.median(times[n]))
            left = [n for n in left if n == best or not is_slower(times[n], times[best])]
        if number + 1 >= _AT_LEAST and len(left) == 1:
            break
        if until is not None and time.monotonic() > until:
            break
    return times


def is_slower(a: Sequence[float], b: Sequence[float]) -> bool:
    """Return True if the first of two samples is significantly slower, by medians and their standard errors.

    >>> is_slower([2.0, 2.1, 1.9, 2.0], [1.0, 1.1, 0.9, 1.0]), is_slower([1.0, 3.0, 2.0], [0.9, 2.9, 1.9])
    (True, False)
    """
    return statistics.median(a) - statistics.median(b) > _SURE * (_error(a) + _error(b))


def _error(times: Sequence[float]) -> float:
    """Return the standard error of a median, assuming normally distributed times."""
    middle = statistics.median(times)
    spread = 1.4826 * statistics.median([abs(t - middle) for t in times])
    return 1.2533 * spread / len(times) ** 0.5


class HostClock:
    """Times calls on the interpreter by host time."""

    def __call__(self, run: Callable[[], object], count: int) -> list[float]:
        """Return the time of each of ``count`` calls in microseconds."""
        found: list[float] = []
        for _ in range(count):
            start = time.perf_counter()
            run()
            found.append(1e6 * (time.perf_counter() - start))
        return found


class GpuClock:
    """Times launches on a stream with CUDA events and a cold L2 cache.

    The context manager owns the memory that evicts L2.
    """

    def __init__(self, device: int = 0, stream: int = 0):
        from cute_dialect.runtime.driver import driver  # late: start-up

        self._gpu = driver()
        self._device = device
        self._stream = stream
        self._size = 4 * self._gpu.l2_bytes(device)
        self._memory = 0

    def __enter__(self) -> GpuClock:
        self._memory = self._gpu.allocate(self._size)
        return self

    def __exit__(self, *_: object) -> None:
        self._gpu.synchronize(self._stream)
        self._gpu.free(self._memory)

    def __call__(self, run: Callable[[], object], count: int) -> list[float]:
        """Return the time of each of ``count`` launches in microseconds. Launches are queued without waiting."""
        gpu = self._gpu
        events = [(gpu.new_event(), gpu.new_event()) for _ in range(count)]
        for start, end in events:
            gpu.fill(self._memory, 0, self._size, self._stream)
            gpu.record(start, self._stream)
            run()
            gpu.record(end, self._stream)
        return [gpu.elapsed(start, end) for start, end in events]


def differs(x: Any, y: Any) -> bool:
    """Return True if two NumPy or torch arrays differ by more than rounding in a different order explains.

    >>> import numpy as np
    >>> a = np.ones(4, np.float16)
    >>> differs(a, a + np.float16(0.001)), differs(a, 2 * a), differs(np.arange(3), np.arange(3))
    (False, True, False)
    """
    import numpy as np

    if hasattr(x, "detach"):
        import torch

        if not x.is_floating_point():
            return not torch.equal(x, y)
        steps = {torch.float16: 2.0**-9, torch.bfloat16: 2.0**-6, torch.float32: 2.0**-9, torch.float64: 2.0**-30}
        step = steps.get(x.dtype, 0.25)
        scale = float(y.double().square().mean().sqrt())
        return not torch.allclose(x.double(), y.double(), rtol=step, atol=step * scale, equal_nan=True)
    x, y = np.asarray(x), np.asarray(y)
    if x.dtype.kind in "iub":
        return not np.array_equal(x, y)
    step = {"float16": 2.0**-9, "float32": 2.0**-9, "float64": 2.0**-30, "bfloat16": 2.0**-6}.get(x.dtype.name, 0.25)
    x, y = x.astype(np.float64), y.astype(np.float64)
    scale = float(np.sqrt(np.mean(np.square(y)))) if y.size else 0.0
    return not np.allclose(x, y, rtol=step, atol=step * scale, equal_nan=True)
