"""``cute-bench op``: the functions of ``cute_dialect.op`` compared with torch and ``torch.compile``, by group.

The modules of this package list the cases of each group in ``GROUPS``.  ``--build DIR`` compiles the kernels of
the cases into ``DIR/NAME`` in parallel.  ``--run DIR`` calls the functions with these kernels.  Each case is checked
against float64 and then timed in alternating rounds with its peers on the same data, with a cold L2.  A row is compared
with its fastest peer; a ratio above 1 means that ours is faster.

    cute-bench op --build build/op && cute-bench op --run build/op --groups rows --json op.json
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from functools import partial
from importlib import import_module
from typing import Any, Protocol
from unittest.mock import patch

from cute_dialect.runtime.progress import track
from cute_dialect.tools.bench.runner import (
    Benchmark,
    Row,
    Say,
    Text,
    Trial,
    build_kernel,
    in_processes,
    is_gpu_alive,
    ratio_lines,
    row,
    speeds,
)


class Case(Protocol):
    """A row of the table; hashable and picklable."""

    @property
    def name(self) -> str:
        """The name of the row, for example ``softmax bf16 5344x50257``."""
        ...

    @property
    def operation(self) -> str:
        """The key of the geometric means, for example ``softmax``."""
        ...

    def kernels(self) -> Mapping[str, Text]:
        """Return the kernels of the call on an H200 by name, with functions that generate their texts."""
        ...

    def trial(self) -> Trial:
        """Create the data: operands of normally distributed values, if the case says nothing else."""
        ...


_MODULES = {
    **dict.fromkeys(("modes", "products", "scaled", "types"), "gemm"),
    **dict.fromkeys(("elementwise", "norm_quantize", "rows", "sampling"), "rows"),
    **{
        name: name
        for name in (
            "attention",
            "block",
            "conv",
            "decode",
            "epilogues",
            "flex",
            "grouped",
            "layers",
            "mixed",
            "optimizers",
            "routing",
        )
    },
    **dict.fromkeys(("attention_8_bit", "attention_backward"), "attention"),
    "sparse": "mixed",
}
"""The module of each group."""


def groups() -> list[str]:
    """Return the names of the groups.

    >>> "products" in groups()
    True
    """
    return sorted(_MODULES)


def cases_of(group: str) -> Sequence[Case]:
    """Return the cases of a group.  Raises ValueError for an unknown group."""
    if group not in groups():
        raise ValueError(f"--groups: unknown group {group!r}; choose from {', '.join(groups())}")
    return import_module(f"cute_dialect.tools.bench.cases.op.{_MODULES[group]}").GROUPS[group]


def build(folder: str, chip: str, chosen: Sequence[str] = ()) -> list[str]:
    """Compile the kernels; those that fail have a line ``failed: …``, and the others are still compiled."""
    texts: dict[str, Text] = {}
    failed: list[str] = []
    for case in [c for group in chosen or groups() for c in cases_of(group)]:
        try:
            names = list(case.kernels())
        except Exception as e:  # The other cases are still compiled.
            failed.append(f"failed: {case.name}: {type(e).__name__}: {e}")
            continue
        for name in names:
            texts.setdefault(name, partial(_text_of, case, name))
    jobs = [(name, text, folder, chip) for name, text in texts.items()]
    return [*in_processes(_try_build, jobs, list(texts)), *failed]


def _try_build(job: tuple[str, Text, str, str]) -> str:
    try:
        return build_kernel(job)
    except Exception as e:  # The other kernels are still compiled.
        return f"failed: {job[0]}: {type(e).__name__}: {e}"


def _text_of(case: Case, name: str) -> str:
    return case.kernels()[name]()


def run(folder: str, *, runs: int, large: bool, say: Say, chosen: Sequence[str] = ()) -> dict[str, object]:
    """Check and measure the cases of some or all groups with the kernels of :func:`build`.

    A case that fails is reported, and the others are still measured.
    """
    import torch

    rows: list[Row] = []
    wrong: list[str] = []
    with patch.dict(os.environ, {"CUTE_KERNELS": folder}):
        for group in track(chosen or groups(), "measuring", "groups"):
            if not is_gpu_alive():
                wrong.append(f"the GPU context is broken: group {group} was not measured")
                continue
            say(f"== {group}")
            for case in track(cases_of(group), f"measuring {group}", "cases"):
                try:
                    rows.append(_measured(group, case, runs, say))
                except Exception as e:  # The other cases are still measured.
                    wrong.append(f"{case.name}: {type(e).__name__}: {e}")
                    say(f"  failed: {wrong[-1]}")
                    if not is_gpu_alive():
                        wrong.append(f"the GPU context is broken: cases after {case.name} were not measured")
                        break
                torch.cuda.empty_cache()
    for line in summary(rows):
        say(line)
    return {"rows": rows, "wrong": wrong}


def _measured(group: str, case: Case, runs: int, say: Say) -> Row:
    """Check and measure one case."""
    trial = case.trial()
    share = trial.check()
    times, speed = speeds(trial, trial.contestants, runs)
    peer = min((times[k] for k in trial.peers), default=float("nan"))
    peers = {k: x for k, x in speed.items() if k != "ours"}
    more = {"group": group, "operation": case.operation, **peers, "us": times["ours"]}
    found = row(case.name, trial.unit, speed["ours"], trial.work / peer / 1e6, **more)
    listed = ", ".join(f"{k} {x:.3f}" for k, x in peers.items())
    say(
        f"  {case.name}: {speed['ours']:.3f} {trial.unit} ({times['ours']:.1f} us), {listed}, "
        f"ratio {found['ratio']:.3f}; error {share:.2f} times the limit"
    )
    return found


def summary(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the lines of a table of ratios by operation.

    >>> row = {"group": "rows", "operation": "softmax", "ratio": 1.21}
    >>> summary([row, {**row, "ratio": 1.0}])[1].split()
    ['rows', 'softmax', '2', '1.100', '1.000', '1.000', '2', 'of', '2']
    """
    found: dict[str, list[float]] = {}
    for r in rows:
        found.setdefault(f"{r['group']:12} {r['operation']}", []).append(r["ratio"])
    return ratio_lines(found)


BENCHMARKS = {"op": Benchmark(build, run)}
