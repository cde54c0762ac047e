"""GPU timing of several functions in one process: CUDA events, medians, L2 flushes between runs."""

# torch is not installed where types are checked.
# pyright: reportMissingImports=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownLambdaType=false, reportUnknownParameterType=false

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:  # pragma: no cover
    import torch


class Sample(NamedTuple):
    """Times of one contestant in microseconds: the median, and the 10th and 90th percentiles."""

    median: float
    p10: float
    p90: float
    runs: int


def compare(
    contestants: Sequence[tuple[str, Callable[[], object]]],
    *,
    traffic: int,
    runs: int = 100,
    warmup: int = 10,
    rounds: int = 0,
    flush: str = "write",
    hide_host: bool = False,
) -> dict[str, Sample]:
    """Time the contestants on torch's current stream.

    Events are queued without waiting, so the GPU is never idle between them and host time does not count.

    Args:
        contestants: names and functions.
        traffic: bytes that a run moves.  If they could stay in L2, the cache is flushed before each run.
        runs: number of runs per contestant.
        rounds: number of rounds, in each of which a contestant makes its share of runs alone, with its own clock and
            power. With 0 the contestants alternate after each launch.
        flush: ``write`` leaves L2 full of dirty lines that the run evicts, ``read`` of clean lines; ``none`` does not
            flush.
        hide_host: before each run a kernel spins for longer than the slowest contestant's host time, so that the GPU
            does not wait for launches.
    """
    import torch

    clear = _flusher(traffic, flush)
    for _ in range(warmup):
        for _, run in contestants:
            run()
    torch.cuda.synchronize()
    spin = _spinner(contestants) if hide_host else lambda: None
    events: dict[str, list[tuple[torch.cuda.Event, torch.cuda.Event]]] = {name: [] for name, _ in contestants}
    order = list(contestants)
    share = -(-runs // rounds) if rounds else 1
    for i in range(rounds or runs):
        for name, run in [x for x in (order if i % 2 == 0 else reversed(order)) for _ in range(share)]:
            start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
            spin()
            clear()
            start.record()
            run()
            end.record()
            events[name].append((start, end))
    torch.cuda.synchronize()
    out: dict[str, Sample] = {}
    for name, pairs in events.items():
        times = sorted(1000.0 * a.elapsed_time(b) for a, b in pairs)
        out[name] = Sample(statistics.median(times), times[len(times) // 10], times[-1 - len(times) // 10], len(times))
    return out


def _spinner(contestants: Sequence[tuple[str, Callable[[], object]]]) -> Callable[[], object]:
    """Return a function that keeps the GPU busy for 1.25 times the longest host time of a contestant, at most 20 ms.

    The longest of several calls counts, because host times vary, above all those of backward passes, which run in
    another thread.
    """
    import torch

    longest = 0.0
    for _, run in contestants:
        for _ in range(6):
            begin = time.perf_counter()
            run()
            longest = max(longest, time.perf_counter() - begin)
            torch.cuda.synchronize()
    cycles = int(min(1.25 * longest, 0.02) * 2e9)  # of a clock of about 2 GHz
    sleep: Callable[[int], object] = getattr(torch.cuda, "_sleep")  # noqa: B009  (torch has no public name for it)
    return lambda: sleep(cycles)


def _flusher(traffic: int, how: str) -> Callable[[], object]:
    """Return a function that overwrites or reads memory four times the size of L2; it does nothing for much larger
    data.

    For small problems the flush also keeps the GPU busy while the next launch is queued.
    """
    import torch

    size = 4 * torch.cuda.get_device_properties(0).L2_cache_size
    if traffic > 8 * size or how == "none":
        return lambda: None
    scratch = torch.empty(max(size, 1 << 26), dtype=torch.uint8, device="cuda")
    return scratch.zero_ if how == "write" else scratch.view(torch.int32).zero_().max


def host_overhead(run: Callable[[], object], *, calls: int = 2000, rounds: int = 7) -> float:
    """Measure the host time of a call in microseconds: the fastest of ``rounds``.

    The GPU's work should be tiny.
    """
    import torch

    best = float("inf")
    for _ in range(rounds):
        torch.cuda.synchronize()
        begin = time.perf_counter()
        for _ in range(calls):
            run()
        best = min(best, (time.perf_counter() - begin) / calls)
    torch.cuda.synchronize()
    return 1e6 * best
