"""Bank conflicts and sectors predicted by the interpreter, compared with Nsight Compute counters.

    python -m cute_dialect.tools.bench.counters --build DIR     compiles and counts on the interpreter (no GPU)
    python -m cute_dialect.tools.bench.counters --run DIR       measures and compares; needs a GPU and ``ncu``
    python -m cute_dialect.tools.bench.counters --launch DIR    launches each kernel once; run by ``ncu``

The compared counters are wavefronts of shared loads and stores
(``l1tex__data_pipe_lsu_wavefronts_mem_shared_op_{ld,st}``) and sectors of global loads and stores
(``l1tex__t_sectors_pipe_lsu_mem_global_op_{ld,st}``).
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import subprocess
import sys
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from cute_dialect.kernels.copies.transpose import transpose_text
from cute_dialect.kernels.elementwise.add import elementwise_add_text
from cute_dialect.kernels.gemm import gemm_text
from cute_dialect.kernels.gemm.ampere import ampere_gemm_text
from cute_dialect.kernels.gemm.config import GemmConfig
from cute_dialect.kernels.gemm.sgemm import RUNGS, sgemm_text
from cute_dialect.pipelines import compile as compile_cute
from cute_dialect.runtime import load
from cute_dialect.runtime.progress import Task, add_options, reporting, track

METRICS = {
    "shared load": "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum",
    "shared store": "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_st.sum",
    "global load": "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum",
    "global store": "l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum",
}
"""Kinds of accesses and their counters.  Reads of cp.async count as global loads."""


class Case(NamedTuple):
    """A kernel: its file, the host function or kernel, and the shapes of its arrays."""

    name: str
    text: str
    kernel: str
    shapes: tuple[tuple[int, ...], ...]
    element: str = "float32"


def cases() -> list[Case]:
    """Return kernels of the repository at small sizes."""
    out = [
        Case("elementwise add 256x512", elementwise_add_text(), "", ((256, 512),) * 3),
        Case("elementwise add 63x77", elementwise_add_text(), "", ((63, 77),) * 3),
        Case("transpose f32 256x192", transpose_text(), "launch", ((256, 192), (192, 256))),
        Case("transpose f32 61x75", transpose_text(), "launch", ((61, 75), (75, 61))),
        Case("transpose f16 256x192", transpose_text("f16"), "launch", ((256, 192), (192, 256)), "float16"),
        Case("GEMM sm_80 256x256x128", ampere_gemm_text(), "launch", ((256, 128), (256, 128), (256, 256)), "float16"),
        Case("GEMM sm_80 136x200x72", ampere_gemm_text(), "launch", ((136, 72), (200, 72), (136, 200)), "float16"),
        Case(
            "GEMM sm_90 128x256x128",
            gemm_text(GemmConfig(cluster_m=1)),
            "launch",
            ((128, 128), (256, 128), (128, 256)),
            "float16",
        ),
    ]
    for name in RUNGS:
        out.append(Case(f"sgemm {name} 128x128x64", sgemm_text(name), "launch", ((128, 64), (64, 128), (128, 128))))
    return out


def _arrays(case: Case) -> list[np.ndarray]:
    rng = np.random.default_rng(0)
    return [rng.integers(-3, 4, s).astype(case.element) for s in case.shapes]


def _kind(space: str, op: str) -> str:
    stores = any(word in op for word in ("store", "stmatrix"))
    return f"{space} {'store' if stores else 'load'}"


def build(folder: str) -> None:
    """Compile all cases into the folder and count accesses on the interpreter."""
    records: list[dict[str, object]] = []
    for i, case in enumerate(track(cases(), "counting", "cases")):
        module = compile_cute(case.text, save=os.path.join(folder, str(i)))
        name = case.kernel or module.manifest["hosts"][0]["name"]
        report = module.kernel(name)(*_arrays(case), device="cpu", reports=["banks", "coalescing"])
        assert report is not None and report.profile is not None
        counts = dict.fromkeys(METRICS, 0)
        ideal = dict.fromkeys(METRICS, 0)
        for line in report.profile.lines:
            kind = _kind(line.space, line.op)
            counts[kind] += line.transactions
            ideal[kind] += line.ideal
        records.append({**case._asdict(), "text": "", "kernel": name, "counts": counts, "ideal": ideal})
        print(f"{case.name}: {counts}", flush=True)
    with open(os.path.join(folder, "cases.json"), "w", encoding="utf-8") as f:
        json.dump(records, f, indent=1)


def _read(folder: str) -> list[dict[str, object]]:
    with open(os.path.join(folder, "cases.json"), encoding="utf-8") as f:
        return json.load(f)


def launch(folder: str) -> None:
    """Launch each case once under the profiler."""
    for i, record in enumerate(_read(folder)):
        case = Case(record["name"], "", record["kernel"], record["shapes"], record["element"])  # type: ignore[arg-type]
        load(os.path.join(folder, str(i))).kernel(case.kernel)(*_arrays(case))


def measure(folder: str) -> list[dict[str, object]]:
    """Run ``ncu`` over all cases; return a row per case and kind with the predicted, measured and ideal counts."""
    records = _read(folder)
    program = [sys.executable, "-m", "cute_dialect.tools.bench.counters", "--launch", folder]
    found = measured(tuple(METRICS.values()), program, len(records))
    out: list[dict[str, object]] = []
    for i, record in enumerate(records):
        for kind, metric in METRICS.items():
            ours, ideal = record["counts"][kind], record["ideal"][kind]  # type: ignore[index]
            counted = found.get(i, {}).get(metric)
            theirs = None if counted is None else int(float(counted))
            if ours or theirs:
                row = {"name": record["name"], "kind": kind, "ours": ours, "ncu": theirs, "ideal": ideal}
                out.append({**row, "equal": ours == theirs})
    return out


def main(argv: Sequence[str] | None = None) -> int:
    """Run the program and return the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m cute_dialect.tools.bench.counters",
        description="Compare predicted with measured memory transactions.",
    )
    parser.add_argument("--build", metavar="DIR")
    parser.add_argument("--run", metavar="DIR")
    parser.add_argument("--launch", metavar="DIR")
    parser.add_argument("--json", metavar="FILE")
    add_options(parser)
    options = parser.parse_args(argv)
    if options.launch:
        launch(options.launch)
        return 0
    with reporting(options.progress, options.progress_json):
        if options.build:
            build(options.build)
        rows = measure(options.run) if options.run else []
    if options.run:
        for r in rows:
            mark = "" if r["equal"] else "   differs"
            print(f"{r['name']:28} {r['kind']:13} ours {r['ours']:8} ncu {r['ncu']!s:>8} ideal {r['ideal']:8}{mark}")
        if options.json:
            with open(options.json, "w", encoding="utf-8") as f:
                json.dump(rows, f, indent=1)
                f.write("\n")
    return 0


def measured(
    metrics: Sequence[str], program: Sequence[str], launches: int, *, options: Sequence[str] = ()
) -> dict[int, dict[str, str]]:
    """Run a program under ``ncu`` and return the metrics of each launch, with its ``Kernel Name``.

    Args:
        launches: the minimum number of launches, for the progress report.
        options: more options of ``ncu``.

    Raises:
        SystemExit: ``ncu`` measured no launch.
    """
    command = ["ncu", "--csv", "--clock-control", "none", *options, "--metrics", ",".join(metrics), *program]
    lines: list[str] = []
    done = 0
    with (
        Task("profiling", launches, "launches") as task,
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as running,
    ):
        assert running.stdout is not None
        for line in running.stdout:
            lines.append(line)
            if line.startswith("==PROF== Profiling") and done < launches:
                done += 1
                task.advance()
    found = values(lines)
    if not found:
        raise SystemExit(f"ncu measured nothing: {''.join(lines)[-2000:]}")
    return found


def values(lines: Iterable[str]) -> dict[int, dict[str, str]]:
    """Parse the output of ``ncu --csv``; thousands separators and values that are not numbers are removed.

    >>> head = '"ID","Kernel Name","Metric Name","Metric Value"'
    >>> values(["==PROF== x", head, '"0","gemm","a.sum","1,024"', '"0","gemm","b","n/a"'])
    {0: {'Kernel Name': 'gemm', 'a.sum': '1024'}}
    """
    found: dict[int, dict[str, str]] = {}
    for row in csv.DictReader(line for line in lines if line.startswith('"')):
        of_launch = found.setdefault(int(row["ID"]), {"Kernel Name": row["Kernel Name"]})
        value = row["Metric Value"].replace(",", "")
        try:
            float(value)
        except ValueError:
            continue
        of_launch[row["Metric Name"]] = value
    return found


if __name__ == "__main__":
    sys.exit(main())
