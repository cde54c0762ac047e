"""Building in processes, checking, timing and reporting, shared by all benchmarks, and the side of torch.

A :class:`Benchmark` returns ``{"rows": […]}``.  A row has at least the keys ``name``, ``ours``, ``peer``, ``unit`` and
``ratio``; a ratio above 1 means that ours is faster::

    build_kernels({"f32": partial(transpose_text, "f32")}, "build", "sm_90a")
    times = median_times([("ours", ours), ("torch", peer)], traffic=traffic, runs=100)
    row("transpose f32 8192", "TB/s", traffic / times["ours"] / 1e6, traffic / times["torch"] / 1e6)
"""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from functools import cache
from importlib import import_module
from math import exp, log
from multiprocessing import get_context
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, TypeVar, cast

import numpy as np

from cute_dialect.op.arrays.dtypes import torch_name
from cute_dialect.op.select.timing import compare
from cute_dialect.pipelines import compile as compile_cute
from cute_dialect.runtime import load
from cute_dialect.runtime.arrays import numpy_dtype
from cute_dialect.runtime.progress import Task

if TYPE_CHECKING:  # pragma: no cover
    import torch


class Benchmark(NamedTuple):
    """A benchmark of ``cute-bench``; a module of ``cases`` lists its own in ``BENCHMARKS``.

    ``build(folder, chip)`` compiles the kernels into ``folder/NAME`` and returns the reports of ptxas.
    ``run(folder, runs=, large=, say=)`` checks and measures them, and raises :class:`BenchError` if a result is wrong.
    A benchmark without a GPU has no ``build`` and ``run(runs=, say=)``.
    """

    build: Callable[..., list[str]] | None
    run: Callable[..., dict[str, Any]]
    table: Callable[[Mapping[str, Any]], Sequence[Sequence[str]]] | None = None
    """The header and the lines of the table; None: :func:`row_table`."""


Row: TypeAlias = dict[str, Any]
Say: TypeAlias = Callable[[str], None]
Text: TypeAlias = Callable[[], str]
"""A function that generates the MLIR text of a kernel; it can be pickled."""


class Trial(NamedTuple):
    """A problem with its data on the GPU.

    ``check`` compares a result with float64 and returns the largest error relative to the tolerance, or raises
    ``BenchError``.  ``ours`` is the call to time, ``peers`` the calls of others by name, on the same data.  ``traffic``
    is the minimum number of bytes to move.  ``work`` is in bytes or operations, ``unit`` is ``TB/s`` or ``TFLOP/s``.
    ``copy`` copies as many bytes, if the operation should be as fast as a copy.
    """

    check: Callable[[], float]
    ours: Callable[[], object]
    peers: Mapping[str, Callable[[], object]]
    traffic: int
    work: float
    unit: str
    copy: Callable[[], object] | None = None

    @property
    def contestants(self) -> dict[str, Callable[[], object]]:
        """The calls to time apart from those of the peers: ``ours``, and ``copy`` if there is one."""
        return {"ours": self.ours, **({} if self.copy is None else {"copy": self.copy})}


# ---------------------------------------------------------------------------------------------------------------- build


def build_kernels(texts: Mapping[str, Text], folder: str, chip: str) -> list[str]:
    return in_processes(build_kernel, [(name, text, folder, chip) for name, text in texts.items()], list(texts))


def build_kernel(job: tuple[str, Text, str, str]) -> str:
    """Compile one kernel (its name, text, folder and chip); return the report of ptxas."""
    name, text, folder, chip = job
    module = compile_cute(text(), chip=chip, filename=f"{os.path.basename(name)}.mlir")
    module.save(os.path.join(folder, name))
    lines = [line for line in module.report.strip().splitlines() if not line.startswith("ptxas ")]  # its version
    return f"{name}: {'; '.join(lines)}"


def loaded(folder: str, name: str) -> Any:
    """Return the compiled module ``folder/NAME``."""
    return load(os.path.join(folder, name))


# -------------------------------------------------------------------------------------------------------------- measure


def median_times(
    contestants: Iterable[tuple[str, Callable[[], object]]], *, traffic: int, runs: int, **options: Any
) -> dict[str, float]:
    """Return the median microseconds of each contestant; the options are those of ``op.select.timing.compare``."""
    found = compare(list(contestants), traffic=traffic, runs=runs, **options)
    return {name: sample.median for name, sample in found.items()}


def speeds(
    trial: Trial, contestants: Mapping[str, Callable[[], object]], runs: int, **options: Any
) -> tuple[dict[str, float], dict[str, float]]:
    """Return the median microseconds and the speeds, in ``trial.unit``, of contestants and of the peers of a trial."""
    times = median_times([*contestants.items(), *trial.peers.items()], traffic=trial.traffic, runs=runs, **options)
    return times, {name: trial.work / t / 1e6 for name, t in times.items()}


def row(name: str, unit: str, ours: float, peer: float, **more: object) -> Row:
    """Return a row of the results; ``more`` are further columns."""
    ratio = peer / ours if unit == "us" else ours / peer
    return {"name": name, **more, "ours": ours, "peer": peer, "unit": unit, "ratio": ratio}


def geometric_mean(ratios: Sequence[float]) -> float:
    """Return the geometric mean.

    >>> geometric_mean([2.0, 0.5])
    1.0
    """
    return exp(sum(map(log, ratios)) / len(ratios))


def quantiles(ratios: Sequence[float]) -> tuple[float, float, float, int]:
    """Return the geometric mean, the 5th percentile, the minimum, and the number of ratios of at least 1.

    >>> quantiles([2.0, 0.5])
    (1.0, 0.5, 0.5, 1)
    """
    found = sorted(ratios)
    return geometric_mean(found), found[len(found) // 20], found[0], sum(x >= 1 for x in found)


def ratio_lines(classes: Mapping[str, Sequence[float]], *, ahead: str = "ahead") -> list[str]:
    """Return the lines of a table of ratios by class; empty classes are omitted.

    >>> [line.split() for line in ratio_lines({"all": [2.0, 0.5], "none": []})][1:]
    [['all', '2', '1.000', '0.500', '0.500', '1', 'of', '2']]
    """
    lines = [f"  {'':40} {'count':>5} {'geometric mean':>14} {'5th percentile':>14} {'least':>7} {ahead:>12}"]
    for name, ratios in classes.items():
        if ratios:
            mean, fifth, least, count = quantiles(ratios)
            of = f"{count} of {len(ratios)}"
            lines.append(f"  {name:40} {len(ratios):5} {mean:14.3f} {fifth:14.3f} {least:7.3f} {of:>12}")
    return lines


# --------------------------------------------------------------------------------------------------------------- report


def column_table(columns: Mapping[str, Callable[[Row], str]]) -> Callable[[Mapping[str, Any]], list[Sequence[str]]]:
    """Return the ``table`` of a :class:`Benchmark` with these columns of its rows."""
    return lambda result: [tuple(columns), *[[cell(r) for cell in columns.values()] for r in result["rows"]]]


def row_table(result: Mapping[str, object]) -> list[Sequence[str]]:
    """Return the header and the lines of the table of all rows."""
    found = cast("list[Row]", result["rows"])
    known = ("name", "group", "operation", "ours", "peer", "unit", "ratio")
    keys = [k for k in dict.fromkeys(k for r in found for k in r) if k not in known]

    def cell(value: object, digits: str = ".4g") -> str:
        return "" if value is None else format(value, digits) if isinstance(value, float) else str(value)

    lines: list[Sequence[str]] = [("name", *keys, "ours", "peer", "unit", "ratio")]
    for r in found:
        cells = [cell(r.get(k, "")) for k in keys]
        lines.append((r["name"], *cells, cell(r["ours"]), cell(r.get("peer")), r["unit"], cell(r.get("ratio"), ".3f")))
    return lines


def print_table(title: str, lines: Sequence[Sequence[str]]) -> None:
    """Print a header and lines, with rich if it is installed; the first column is left-aligned."""
    try:
        from rich.console import Console  # late: start-up
        from rich.table import Table  # late: start-up
    except ImportError:
        print(title)
        widths = [max(map(len, column)) for column in zip(*lines)]
        for line in lines:
            print("  ".join(c.rjust(w) for c, w in zip(line, widths)))
        return
    table = Table(title=title)
    for i, name in enumerate(lines[0]):
        table.add_column(name, justify="right" if i else "left")
    for line in lines[1:]:
        table.add_row(*line)
    Console(width=None if sys.stdout.isatty() else 100).print(table)


def write_json(path: str, result: object) -> None:
    with open(path, "w", encoding="utf-8") as f:
        json.dump(result, f, indent=1)
        f.write("\n")


# --------------------------------------------------------------------------------------------------------------- checks


class BenchError(Exception):
    """A wrong result."""


def is_gpu_alive() -> bool:
    """Return False if an earlier kernel failed and left the CUDA context unusable."""
    import torch

    if not torch.cuda.is_initialized():
        return True
    try:
        torch.cuda.synchronize()
    except RuntimeError:
        return False
    return True


def check_limit(name: str, found: torch.Tensor, wanted: torch.Tensor, limit: torch.Tensor | float) -> float:
    """Return the largest error relative to ``limit``; an error above the limit or NaN raises :class:`BenchError`."""
    share = float(((found.double() - wanted).abs() / limit).max())
    if not share <= 1:
        raise BenchError(f"{name}: the error is {share:.2f} times the limit")
    return share


def check_close(
    name: str, found: torch.Tensor, wanted: torch.Tensor, unit: float, *, terms: Any = 0.0, least: float = 0.0
) -> float:
    """Return the largest error relative to a limit, like :func:`check_limit`.

    The limit is ``unit`` times the sum of the element, the RMS of the result and ``terms``, plus ``least``.
    """
    return check_limit(name, found, wanted, unit * (wanted.abs() + wanted.square().mean().sqrt() + terms) + least)


def check_exact(name: str, found: torch.Tensor, exact: torch.Tensor) -> None:
    """Compare results of small integers, which must be exact."""
    wrong = int((found != exact.to(found.dtype)).sum())
    if wrong:
        raise BenchError(f"{name}: {wrong} elements are wrong on integer data")


def check_repeats(name: str, run: Callable[[], object], out: torch.Tensor, count: int) -> None:
    """Call a function that overwrites ``out`` ``count`` times with equal bits; ``out`` is poisoned before each call."""
    import torch

    first = None
    for _ in range(count):
        out.fill_(float("nan"))
        run()
        if first is None:
            first = out.clone()
        elif not torch.equal(first, out):
            raise BenchError(f"{name}: runs on the same data differ")


def guarded(
    dtype: torch.dtype, shape: Sequence[int], strides: Sequence[int], offset: int = 0
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return memory with all bits set (NaN for floats) as bytes, and a strided array inside it.

    Guards of 256 bytes surround the array; ``offset`` is its distance in elements from an aligned address.
    """
    import torch

    guard = 256 // dtype.itemsize
    last = sum((n - 1) * s for n, s in zip(shape, strides)) + 1
    storage = torch.full(((2 * guard + offset + last) * dtype.itemsize,), 0xFF, dtype=torch.uint8, device="cuda")
    return storage, torch.as_strided(storage.view(dtype), tuple(shape), tuple(strides), guard + offset)


def check_outside(name: str, storage: torch.Tensor, inside: torch.Tensor) -> None:
    """Check that a kernel wrote nothing to :func:`guarded` memory outside of the array, and poison the array again."""
    import torch

    inside.view(getattr(torch, f"int{8 * inside.dtype.itemsize}")).fill_(-1)
    if not bool((storage == 0xFF).all()):
        raise BenchError(f"{name}: bytes outside the matrix were written")


# ---------------------------------------------------------------------------------------------------------------- torch


def dtype(element: str) -> torch.dtype:
    """Return torch's type of an element type such as ``bf16``; ``tf32`` is stored as ``f32``."""
    import torch

    return getattr(torch, torch_name("f32" if element == "tf32" else element))


def normal(element: str, *shape: int, device: str = "cuda", scale: float = 1.0) -> torch.Tensor:
    """Return normally distributed values."""
    import torch

    return (torch.randn(shape, device=device) * scale).to(dtype(element))


def unread(element: str, *shape: int) -> Any:
    """Return an uninitialized array of numpy; its memory is never touched and takes no pages."""
    return np.empty(shape, numpy_dtype(element))


def operator(name: str) -> Callable[..., Any]:
    """Return a function of torch without a public name, such as ``_scaled_mm``."""
    import torch

    return getattr(torch, name)


@cache
def can_compile() -> bool:
    """Return True if ``torch.compile`` works; it needs a C compiler."""
    import torch

    def twice(x: torch.Tensor) -> torch.Tensor:
        return x * 2

    try:
        torch.compile(twice)(torch.ones(8, device="cuda"))
    except Exception:  # The kind of error depends on what is missing.
        return False
    return True


def tuned_compile(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function compiled by ``torch.compile`` for static shapes, with a graph that can be used repeatedly."""
    import torch

    config: Any = import_module("torch._functorch.config")
    config.donated_buffer = False  # Gradients are computed repeatedly from one retained graph.
    torch.compiler.reset()
    return torch.compile(function, dynamic=False)


def compiled(function: Callable[..., Any], *args: Any) -> Mapping[str, Callable[[], object]]:
    """Return the peers ``torch``, which calls a function with the arguments, and ``compiled``, which uses
    ``torch.compile`` for static shapes, if it works.
    """
    peers: dict[str, Callable[[], object]] = {"torch": lambda: function(*args)}
    if can_compile():
        fast = tuned_compile(function)
        fast(*args)
        peers["compiled"] = lambda: fast(*args)
    return peers


# ------------------------------------------------------------------------------------------------------------ processes


_Job = TypeVar("_Job")
_Result = TypeVar("_Result")


def new_pool(processes: int | None = None) -> ProcessPoolExecutor:
    """Return a process pool, by default of one process per CPU that this process may use.

    The workers ignore ``Ctrl-C``, which the parent process handles.
    """
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()  # macOS has no masks
    processes = processes or usable
    return ProcessPoolExecutor(processes, get_context("spawn"), signal.signal, (signal.SIGINT, signal.SIG_IGN))


def in_processes(
    work: Callable[[_Job], _Result], jobs: Sequence[_Job], names: Sequence[str], what: str = "compiling",
    unit: str = "kernels", processes: int | None = None,
) -> list[_Result]:  # fmt: skip
    """Return ``work(job)`` for each job, in order.

    Args:
        names: labels shown in the progress report when jobs finish.
        processes: number of processes; default: one per CPU.

    If a job raises, or on KeyboardInterrupt, the exception is raised after the running jobs have finished.
    """
    pool = new_pool(processes)
    try:
        with Task(what, len(jobs), unit) as task:
            names_of: dict[Future[_Result], str] = {pool.submit(work, job): n for job, n in zip(jobs, names)}
            left = set(names_of)
            while left:
                done, left = wait(left, return_when=FIRST_COMPLETED)
                for future in done:
                    future.result()
                    task.advance(name=names_of[future])
            return [future.result() for future in names_of]
    finally:
        pool.shutdown(wait=True, cancel_futures=True)
