"""``cute-bench op --random GROUP``: operations on random problems, checked and compared with their fastest peer.

A group is a module of this package with ``draw(rng, number)``, whose docstring states the distribution.  Problem
``i`` of a seed is always the same.  First, parallel processes run each problem once, to fill the disk caches of kernels
and of ``torch.compile``.  Then this process checks and times the problems one at a time on an idle GPU.  Results are
compared with float64, or with the peer in f32 if float64 would take too long.  The docstring of each group states its
error bound.

    cute-bench op --random conv --seed 1 --json conv.json      200 convolutions on a GPU
    cute-bench op --random conv --count 8 --plan               the same kinds, small, on the interpreter (no GPU)
"""

from __future__ import annotations

import os
import random
import time
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from math import exp, log
from typing import Any, Protocol
from unittest.mock import patch

from cute_dialect.op.errors import UnsupportedError
from cute_dialect.runtime.progress import track
from cute_dialect.tools.bench.cases.host import random_rows
from cute_dialect.tools.bench.checks import BenchError
from cute_dialect.tools.bench.processes import in_processes
from cute_dialect.tools.bench.runner import Row, Say, Trial, ratio_lines, row, speeds

__all__ = ["Drawn", "log_uniform", "plan", "problems", "run", "summary"]


class Drawn(Protocol):
    """A random problem; hashable and picklable."""

    @property
    def name(self) -> str:
        """The name of the row, which identifies the problem."""
        ...

    @property
    def operation(self) -> str:
        """The key of the summary, for example ``dgrad``."""
        ...

    def tiny(self) -> Drawn:
        """Return a problem of the same kind that takes about a second on the interpreter."""
        ...

    def trial(self, device: str, compiled: bool) -> Trial:
        """Create the data on ``"cuda"`` or ``"cpu"``; ``compiled`` adds ``torch.compile`` to the peers."""
        ...


def log_uniform(rng: random.Random, low: float, high: float, step: int = 1) -> int:
    """Return a multiple of ``step`` from ``low`` to ``high``, uniform on a logarithmic scale.

    >>> all(8 <= log_uniform(random.Random(i), 8, 64, 8) <= 64 for i in range(99))
    True
    """
    found = exp(rng.uniform(log(low), log(high)))
    return min(int(high) // step * step, max(-(-int(low) // step) * step, round(found / step) * step))


def problems(group: str, count: int, seed: int) -> list[Drawn]:
    """Return the first ``count`` problems of a seed.

    >>> problems("conv", 2, 1) == problems("conv", 3, 1)[:2]
    True
    """
    draw: Callable[[random.Random, int], Drawn] = import_module(f"cute_dialect.tools.bench.random.{group}").draw
    return [draw(random.Random(f"{group} {seed} {i}"), i) for i in range(count)]


def plan(group: str, count: int, seed: int, say: Say) -> dict[str, object]:
    """Print the problems of a seed, and check a small problem of each kind on the interpreter.

    Returns the rows, without times, and the errors.
    """
    rows: list[Row] = []
    wrong: list[str] = []
    for number, problem in enumerate(problems(group, count, seed)):
        small = problem.tiny()
        say(f"  {number:4} {problem.name}; as {small.name}")
        try:
            share = small.trial("cpu", False).check()
        except (BenchError, ValueError, RuntimeError, TypeError) as e:  # The other problems are still checked.
            wrong.append(f"problem {number}, {small.name}: {type(e).__name__}: {e}")
            say(f"  WRONG {wrong[-1]}")
            continue
        rows.append({"name": problem.name, "operation": problem.operation, "tiny": small.name, "error": share})
    return {"rows": rows, "wrong": wrong}


def _is_compiled(group: str, number: int) -> bool:
    """Return True if ``torch.compile`` is a peer of problem ``number``.

    Compilation takes seconds, so only every second problem of rows and epilogues has this peer.
    """
    return group in ("rows", "epilogue") and number % 2 == 0


def _warm(job: tuple[str, int, Drawn]) -> str:
    """Run a problem and its peers once in a child process to fill the disk caches; return the error message."""
    import torch

    group, number, problem = job
    torch.set_num_threads(1)
    try:
        trial = problem.trial("cuda", _is_compiled(group, number))
        trial.ours()
        if "compiled" in trial.peers:
            trial.peers["compiled"]()
        torch.cuda.synchronize()
    except Exception as e:  # The error is reported when the problem is measured.
        return f"{type(e).__name__}: {e}"
    finally:
        torch.cuda.empty_cache()
    return ""


def run(group: str, count: int, seed: int, *, runs: int, say: Say) -> dict[str, object]:
    """Check and measure ``count`` problems of a seed; wrong results and rejected problems are reported at the end."""
    if group == "host":
        return _host(count, seed, say)
    import torch

    begin = time.monotonic()
    drawn = problems(group, count, seed)
    jobs = [(group, i, p) for i, p in enumerate(drawn)]
    # A process compiles one kernel at a time.  Each has a CUDA context, so more than 16 would need much memory.
    processes = min(16, len(os.sched_getaffinity(0)))
    with patch.dict(os.environ, {"TORCHINDUCTOR_COMPILE_THREADS": "1"}):
        in_processes(_warm, jobs, [p.name for p in drawn], what="compiling", unit="problems", processes=processes)
    compiled_s = time.monotonic() - begin
    say(f"  compiled in {compiled_s:.0f} s")
    rows: list[Row] = []
    wrong: list[str] = []
    for number, problem in enumerate(track(drawn, f"measuring {group}", "problems")):
        try:
            rows.append(_measured(group, number, problem, runs, say))
        except Exception as e:  # The other problems are still measured.
            refused = "refused: " if isinstance(e, UnsupportedError) else ""
            wrong.append(f"problem {number}, {problem.name}: {refused}{type(e).__name__}: {e}")
            say(f"  WRONG {wrong[-1]}")
            if not _is_alive():
                wrong.append(f"the GPU context is broken: {count - number - 1} problems were not measured")
                break
        torch.cuda.empty_cache()
    for line in summary(rows):
        say(line)
    seconds = round(time.monotonic() - begin, 1)
    say(f"  {len(rows)} of {count} measured, {len(wrong)} wrong or rejected, {seconds} s")
    return {
        "group": group, "seed": seed, "count": count, "seconds": seconds, "compile_seconds": round(compiled_s, 1),
        "rows": rows, "wrong": wrong,
    }  # fmt: skip


def _is_alive() -> bool:
    """Return False if an earlier kernel failed and left the CUDA context unusable."""
    import torch

    try:
        torch.cuda.synchronize()
    except RuntimeError:
        return False
    return True


def _host(count: int, seed: int, say: Say) -> dict[str, object]:
    """Measure host time; rows have ``ours`` and ``peer`` in microseconds per call."""
    rows = random_rows(count, seed, say)
    for line in summary(rows):
        say(line)
    return {"group": "host", "seed": seed, "count": count, "rows": rows, "wrong": []}


def _measured(group: str, number: int, problem: Drawn, runs: int, say: Say) -> Row:
    """Check and time a problem."""
    trial = problem.trial("cuda", _is_compiled(group, number))
    share = trial.check()
    times, speed = speeds(trial, {"ours": trial.ours}, max(runs // 5, 5), warmup=3, hide_host=True)
    peers_us = {k: times[k] for k in trial.peers}
    best = min(peers_us, key=lambda k: times[k])
    more = {"group": group, "operation": problem.operation, "number": number, "us": times["ours"],
            "peers_us": peers_us, "best_peer": best, "error": share}  # fmt: skip
    found = row(problem.name, trial.unit, speed["ours"], speed[best], **more)
    peers = ", ".join(f"{k} {t:.1f}" for k, t in peers_us.items())
    say(f"  {number:4} {problem.name}: {times['ours']:.1f} us, {peers}, ratio {found['ratio']:.3f}; error {share:.2f}")
    return found


def summary(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the lines of a table: all problems, those with ``torch.compile`` as a peer, and each operation.

    >>> row = {"operation": "fprop", "ratio": 1.1}
    >>> summary([row, {**row, "ratio": 0.9}])[1].split()
    ['all', '2', '0.995', '0.900', '0.900', '1', 'of', '2']
    """
    classes: dict[str, list[float]] = {}
    for r in rows:
        has_compiled = "compiled" in r.get("peers_us", ())
        for name in ("all", *["with torch.compile"] * has_compiled, str(r["operation"])):
            classes.setdefault(name, []).append(r["ratio"])
    return ratio_lines(classes)
