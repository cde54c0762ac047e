"""Profiling of a program with ``ncu``, the Nsight Compute command line."""

from __future__ import annotations

import csv
import subprocess
from collections.abc import Iterable, Sequence

from cute_dialect.runtime.progress import Task

__all__ = ["measured", "values"]


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
