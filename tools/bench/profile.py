"""Profiles of kernels with Nsight Compute counters, and power and clock under a steady load.

    cute-bench all --build DIR                                          needs no GPU
    python -m cute_dialect.tools.bench.profile DIR [--json FILE]        needs a GPU, torch and ``ncu``
    python -m cute_dialect.tools.bench.profile --launch DIR             run by ``ncu``: each kernel once

The same counters for cases of ``cute-bench op`` and their peers, accumulated over the kernels of a call:

    cute-bench op --build DIR                                           needs no GPU
    python -m cute_dialect.tools.bench.profile DIR --cases 'scaled_mm block 4096.*' [--json FILE]

``ncu`` runs each kernel alone with cold caches and pauses between its passes.  The clock is then higher than under a
steady load, where GEMMs reach the power limit.  The second table therefore gives watts, clock and TFLOP/s (f16) over a
second of continuous launches.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from unittest.mock import patch

from cute_dialect.op.select.gemm_dispatch import choose
from cute_dialect.op.select.kernel_choice import Problem
from cute_dialect.runtime.progress import add_options, reporting, track
from cute_dialect.tools.bench.cases import gemm, rows
from cute_dialect.tools.bench.cases.op import Case, cases_of, groups
from cute_dialect.tools.bench.counters import measured
from cute_dialect.tools.bench.runner import Row, loaded, write_json

METRICS = {
    "us": ("gpu__time_duration.sum", 1e-3),
    "MHz": ("sm__cycles_elapsed.avg.per_second", 1e-6),
    "DRAM %": ("dram__throughput.avg.pct_of_peak_sustained_elapsed", 1.0),
    "read MB": ("dram__bytes_read.sum", 1e-6),
    "written MB": ("dram__bytes_write.sum", 1e-6),
    "L2 %": ("lts__throughput.avg.pct_of_peak_sustained_elapsed", 1.0),
    "tensor %": ("sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_elapsed", 1.0),
    "issue %": ("sm__issue_active.avg.pct_of_peak_sustained_elapsed", 1.0),
    "warps %": ("sm__warps_active.avg.pct_of_peak_sustained_active", 1.0),
}
"""Map columns to a counter and the factor to the unit of the column."""
GEMMS = ((2048, 2048, 2048), (4096, 4096, 4096), (8192, 8192, 8192), (128, 8192, 8192))
ROWS = (
    ("softmax", "f16", 32768),
    ("softmax", "f16", 131072),
    ("rmsnorm", "f16", 32768),
    ("rmsnorm", "f16", 131072),
    ("layernorm", "f32", 32768),
    ("layernorm", "f32", 131072),
    ("layernorm", "f16", 32768),
)
STEADY = ((4096, 4096, 4096), (8192, 8192, 8192))


def subjects(folder: str) -> Iterator[tuple[str, Callable[[], object]]]:
    """Yield the name and the launch function of everything to profile, ours and torch's."""
    yield from _gemms(folder, GEMMS)
    yield from _rows(folder)


def _gemms(
    folder: str, shapes: Sequence[tuple[int, int, int]], integers: bool = False
) -> Iterator[tuple[str, Callable[[], object]]]:
    import torch

    for shape in shapes:
        problem = Problem(*shape)
        choice = choose(problem)
        runner = gemm.runner_of(os.path.join(folder, "gemm"), choice)
        a, b, c = gemm.inputs(problem, integers=integers)
        title = f"gemm f16 {'x'.join(map(str, shape))}"
        yield f"{title} ours", lambda r=runner, x=a, y=b, z=c: r(x, y, z)
        yield f"{title} torch", lambda x=a, y=b, z=c: torch.mm(x, y.t(), out=z)


def _rows(folder: str) -> Iterator[tuple[str, Callable[[], object]]]:
    for op, element, n in ROWS:
        case = rows.Case(op, element, n, rows.ELEMENTS // n)
        kernel = loaded(folder, f"rows/{case.folder}").kernel(op)
        data = rows.Data(case, case.rows)
        yield f"{case} ours", lambda k=kernel, d=data: k(*d.given)
        yield f"{case} torch", data.peer()


def launch(folder: str) -> None:
    """Launch everything once to warm up, and once for the profiler."""
    import torch

    for _, run in subjects(folder):
        run()
        torch.cuda.synchronize()
        torch.cuda.profiler.start()
        run()
        torch.cuda.synchronize()
        torch.cuda.profiler.stop()


def counters(folder: str) -> list[Row]:
    """Profile the kernels in a folder; return a row of counters per launch.  Raises ``SystemExit``."""
    names = {metric: (column, factor) for column, (metric, factor) in METRICS.items()}
    program = [sys.executable, "-m", "cute_dialect.tools.bench.profile", "--launch", folder]
    more = ("--profile-from-start", "off", "--print-units", "base")
    count = 2 * (len(GEMMS) + len(ROWS))
    rows: list[Row] = []
    for launched in measured(tuple(names), program, count, options=more).values():
        row: dict[str, object] = {"kernel": launched["Kernel Name"][:40]}
        for metric, (column, factor) in names.items():
            if metric in launched:
                row[column] = float(launched[metric]) * factor
        rows.append(row)
    return rows


def launch_cases(folder: str, pattern: str) -> list[str]:
    """Call ours and the peers of some cases of ``cute-bench op`` for the profiler; return their names.

    A marker kernel of torch separates the calls.
    """
    names: list[str] = []
    with patch.dict(os.environ, {"CUTE_KERNELS": folder}):
        for name, run in _contestants(pattern):
            names.append(name)
            _profiled(run)
    return names


def _profiled(run: Callable[[], object]) -> None:
    """Call a function to warm up, and once for the profiler."""
    import torch

    for _ in range(3):  # The first calls compile, select kernels and allocate.
        run()
    torch.cuda.synchronize()
    torch.cuda.profiler.start()
    run()
    torch.cuda.synchronize()
    getattr(torch.cuda, "_sleep")(1000)  # noqa: B009  (a kernel that is easy to tell)
    torch.cuda.synchronize()
    torch.cuda.profiler.stop()


_BETWEEN = "spin_kernel"
"""The kernel that ``torch.cuda._sleep`` launches."""


def _cases(pattern: str) -> list[Case]:
    """Return the cases of ``cute-bench op`` with matching names.  Raises ``SystemExit`` if there are none."""
    found = [c for group in groups() for c in cases_of(group) if re.search(pattern, c.name)]
    if not found:
        raise SystemExit(f"--cases: no case of cute-bench op matches {pattern!r}")
    return found


def _contestants(pattern: str) -> Iterator[tuple[str, Callable[[], object]]]:
    """Yield the names and calls to profile; each creates its data when requested."""
    for case in _cases(pattern):
        trial = case.trial()
        for name, run in (("ours", trial.ours), *trial.peers.items()):
            yield f"{case.name} {name}", run


def of_cases(folder: str, pattern: str) -> list[Row]:
    """Profile cases of ``cute-bench op``; return a row per call.

    A row has the name, the number of kernels and the columns: sums of times and bytes, and time-weighted means of the
    other counters.  Raises ``SystemExit``.
    """
    more = ("--profile-from-start", "off", "--print-units", "base")
    metrics = [metric for metric, _ in METRICS.values()]
    with tempfile.TemporaryDirectory() as place:
        names_file = os.path.join(place, "names.json")
        program = [
            sys.executable, "-m", "cute_dialect.tools.bench.profile", "--launch", folder, "--cases", pattern,
            "--json", names_file,
        ]  # fmt: skip
        launches = measured(metrics, program, 4 * len(_cases(pattern)), options=more)
        with open(names_file, encoding="utf-8") as f:
            names: list[str] = json.load(f)
    found = calls([launches[i] for i in sorted(launches)])
    if len(found) != len(names):
        raise SystemExit(f"ncu reported {len(found)} calls, expected {len(names)}")
    return [{"name": name, **together(call)} for name, call in zip(names, found)]


def calls(launches: Iterable[Mapping[str, str]]) -> list[list[Mapping[str, str]]]:
    """Split the launches into calls, which are separated by a launch of :data:`_BETWEEN`.

    >>> one, end = {"Kernel Name": "gemm"}, {"Kernel Name": "at::cuda::spin_kernel(long)"}
    >>> [len(x) for x in calls([one, one, end, one, end])]
    [2, 1]
    """
    found: list[list[Mapping[str, str]]] = [[]]
    for launched in launches:
        if _BETWEEN in launched["Kernel Name"]:
            found.append([])
        else:
            found[-1].append(launched)
    return found[:-1]


def together(launches: Sequence[Mapping[str, str]]) -> dict[str, object]:
    """Combine the metrics of the kernels of a call into one row.

    >>> names = {c: m for c, (m, _) in METRICS.items()}
    >>> a = {"Kernel Name": "a", names["us"]: "3000", names["tensor %"]: "90", names["read MB"]: "2e6"}
    >>> b = {"Kernel Name": "b", names["us"]: "1000", names["tensor %"]: "10", names["read MB"]: "1e6"}
    >>> together([a, b])
    {'kernels': 2, 'kernel': 'a', 'us': 4.0, 'read MB': 3.0, 'tensor %': 70.0}
    """
    time_of = METRICS["us"][0]
    times = [float(x[time_of]) for x in launches]
    longest = max(launches, key=lambda x: float(x[time_of]), default={"Kernel Name": ""})
    row: dict[str, object] = {"kernels": len(launches), "kernel": longest["Kernel Name"][:40]}
    sums = [c for c in METRICS if c == "us" or c.endswith("MB")]
    for column in (*sums, *(c for c in METRICS if c not in sums)):
        metric, factor = METRICS[column]
        if launches and all(metric in x for x in launches):
            values = [factor * float(x[metric]) for x in launches]
            mean = sum(v * t for v, t in zip(values, times)) / sum(times)
            row[column] = sum(values) if column in sums else mean
    return row


def steady_load(run: Callable[[], object], flop: float, seconds: float) -> dict[str, float]:
    """Launch without pause for some seconds; return power, clock and speed of the second half: ``W``, ``MHz``,
    ``TFLOP/s``.
    """
    import torch

    command = ["nvidia-smi", "--query-gpu=power.draw.instant,clocks.sm", "--format=csv,noheader,nounits"]
    torch.cuda.synchronize()
    sampler = subprocess.Popen([*command, "--loop-ms=100", "--id=0"], stdout=subprocess.PIPE, text=True)
    end, count = time.monotonic() + seconds, 0
    begin = time.monotonic()
    while time.monotonic() < end:
        for _ in range(20):
            run()
        torch.cuda.synchronize()
        count += 20
    took = time.monotonic() - begin
    sampler.terminate()
    samples = [line.split(",") for line in (sampler.communicate()[0] or "").splitlines() if "," in line]
    late = samples[len(samples) // 2 :]
    watts, clock = (sorted(float(s[i]) for s in late)[len(late) // 2] for i in (0, 1))
    return {"W": watts, "MHz": clock, "TFLOP/s": 1e-12 * flop * count / took}


def steady(folder: str, seconds: float = 1.5) -> list[Row]:
    """Measure power and clock of GEMMs during seconds of launches, on normal and on small-integer data."""
    rows: list[Row] = []
    for integers in (False, True):
        for name, run in track(list(_gemms(folder, STEADY, integers)), "launching without pause", "kernels"):
            m, n, k = map(int, name.split()[2].split("x"))
            found = steady_load(run, 2.0 * m * n * k, seconds)
            rows.append({"name": f"{name} {'int' if integers else 'normal'}", **found})
            time.sleep(0.5)
    return rows


def _print(rows: Sequence[Row], columns: Sequence[str]) -> None:
    for row in rows:
        cells = (f"{column} {row[column]:.4g}" for column in columns if isinstance(row.get(column), float | int))
        print(f"{row.get('name', ''):50} {row.get('kernel', ''):42}", "  ".join(cells), flush=True)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the program and return the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m cute_dialect.tools.bench.profile", description="Profile kernels: counters, power and clock."
    )
    parser.add_argument("folder", metavar="DIR", help="folder of cute-bench all --build")
    parser.add_argument("--launch", action="store_true", help="only launch the kernels (run by ncu)")
    parser.add_argument(
        "--cases",
        metavar="PATTERN",
        help="profile the cases of cute-bench op that match a regular expression; DIR is from cute-bench op --build",
    )
    parser.add_argument("--json", metavar="FILE", help="write the results to FILE")
    add_options(parser)
    options = parser.parse_args(argv)
    if options.launch:
        if options.cases is None:
            launch(options.folder)
        else:
            _write(options.json, launch_cases(options.folder, options.cases))
        return 0
    if options.cases is not None:
        with reporting(options.progress, options.progress_json):
            rows = of_cases(options.folder, options.cases)
        _print(rows, ("kernels", *METRICS))
        _write(options.json, {"counters": rows})
        return 0
    with reporting(options.progress, options.progress_json):
        power = steady(options.folder)
        _print(power, ("W", "MHz", "TFLOP/s"))
        profile = counters(options.folder)
    titles = [name for name, _ in subjects(options.folder)]
    if len(titles) == len(profile):
        profile = [{"name": title, **row} for title, row in zip(titles, profile)]
    _print(profile, tuple(METRICS))
    _write(options.json, {"steady": power, "counters": profile})
    return 0


def _write(path: str | None, found: object) -> None:
    """Write the results to a file if ``path`` is given."""
    if path:
        write_json(path, found)


if __name__ == "__main__":
    sys.exit(main())
