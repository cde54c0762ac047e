"""Building, timing and reporting, shared by all benchmarks.

A benchmark is a module of ``cases``.  Its ``build(folder, chip)`` compiles the kernels into ``folder/NAME``, and its
``run(folder, runs=, large=, say=)`` checks and measures them and returns ``{"rows": […]}``.  A row has at least the
keys ``name``, ``ours``, ``peer``, ``unit`` and ``ratio``; a ratio above 1 means that ours is faster::

    build_kernels({"f32": partial(transpose_text, "f32")}, "build", "sm_90a")
    times = median_times([("ours", ours), ("torch", peer)], traffic=traffic, runs=100)
    row("transpose f32 8192", "TB/s", traffic / times["ours"] / 1e6, traffic / times["torch"] / 1e6)
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from math import exp, log
from typing import Any, NamedTuple, TypeAlias, cast

from cute_dialect.op.select.timing import compare
from cute_dialect.pipelines import compile as compile_cute
from cute_dialect.runtime import load
from cute_dialect.tools.bench.processes import in_processes

__all__ = [
    "Row", "Say", "Text", "Trial", "build_kernel", "build_kernels", "geometric_mean", "loaded", "median_times",
    "print_table", "quantiles",
    "ratio_lines", "row", "row_table", "speeds", "write_json",
]  # fmt: skip

Row: TypeAlias = dict[str, Any]
Say: TypeAlias = Callable[[str], None]
Text: TypeAlias = Callable[[], str]
"""A function that generates the MLIR text of a kernel; it can be pickled."""


class Trial(NamedTuple):
    """A problem with its data on the GPU.

    ``check`` compares a result with float64 and returns the largest error relative to the tolerance, or raises
    ``BenchError``.  ``ours`` is the call to time, ``peers`` the calls of others by name, on the same data.  ``traffic``
    is the minimum number of bytes to move.  ``work`` is in bytes or operations, ``unit`` is ``TB/s`` or ``TFLOP/s``.
    """

    check: Callable[[], float]
    ours: Callable[[], object]
    peers: Mapping[str, Callable[[], object]]
    traffic: int
    work: float
    unit: str


# ---------------------------------------------------------------------------------------------------------------- build


def build_kernels(texts: Mapping[str, Text], folder: str, chip: str) -> list[str]:
    """Compile kernels into ``folder/NAME``, in parallel processes; return the reports of ptxas."""
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


def print_table(title: str, lines: Sequence[Sequence[str]], *, left: int = 1) -> None:
    """Print a header and lines, with rich if it is installed; the first ``left`` columns are left-aligned."""
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
        table.add_column(name, justify="left" if i < left else "right")
    for line in lines[1:]:
        table.add_row(*line)
    Console(width=None if sys.stdout.isatty() else 100).print(table)


def write_json(path: str, result: object) -> None:
    with open(path, "w", encoding="utf-8") as f:
        json.dump(result, f, indent=1)
        f.write("\n")
