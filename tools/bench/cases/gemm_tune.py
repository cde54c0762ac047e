"""``cute-bench gemm --tune``: the search space of the Hopper GEMM measured on each problem.

:func:`cute_dialect.op.select.tuning.space` is the search space of a problem (``op.tune`` measures it on the arguments
of a call).  Each kernel is first compared with ``torch``.  The three with the highest speedup then run in alternating
rounds with the kernel that the cost model selects (:mod:`cute_dialect.op.select.cost_model`); see
:func:`cute_dialect.op.select.tuning.finals`.  The best kernel is saved in the user's table
(``cute_dialect.op.select.kernel_choice``) if it is at least 1 % faster than the model's selection.  This table takes
precedence in ``mm``.  ``cute-bench gemm_tune`` measures the same and saves nothing.

    cute-bench gemm --tune --shapes 128x8192x8192 4096x4096x14336 --element bf16
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from cute_dialect.op.execute.kernels import Runner
from cute_dialect.op.select.cost_model import best as predicted
from cute_dialect.op.select.kernel_choice import Choice, Problem, save
from cute_dialect.op.select.tuning import MARGIN, finals, space
from cute_dialect.runtime.progress import track
from cute_dialect.tools.bench.cases.gemm import (
    LARGE,
    build_choices,
    check,
    fitting,
    inputs,
    measure,
    runner_of,
    traffic_of,
)
from cute_dialect.tools.bench.checks import BenchError
from cute_dialect.tools.bench.runner import Row, Say

if TYPE_CHECKING:  # pragma: no cover
    from pathlib import Path

__all__ = ["SHAPES", "build", "problems", "run", "save_best"]

SHAPES = (*LARGE, (128, 8192, 8192), (256, 4096, 8192), (512, 8192, 4096))
"""(M, N, K)"""
OUTPUTS = {"f16": "f16", "bf16": "bf16", "f8E4M3FN": "bf16", "tf32": "f32"}
_FINALISTS = 3


def problems(shapes: Sequence[tuple[int, int, int]] = (), element: str = "f16") -> list[Problem]:
    """Return the problems to tune, with A and B contiguous along K.  Raises ValueError for an unsupported element."""
    if element not in OUTPUTS:
        raise ValueError(f"unsupported element type {element!r}; expected one of {', '.join(OUTPUTS)}")
    return [Problem(*shape, element=element, output=OUTPUTS[element]) for shape in shapes or SHAPES]


def build(folder: str, chip: str, shapes: Sequence[tuple[int, int, int]] = (), element: str = "f16") -> list[str]:
    """Compile the kernels for any of the shapes into ``folder/NAME``; return the reports of ptxas."""
    return build_choices(_needed(problems(shapes, element)), folder, chip)


def _needed(wanted: Sequence[Problem]) -> list[Choice]:
    return list(dict.fromkeys(c for p in wanted for c in space(p)))


def run(
    folder: str, *, runs: int, large: bool, say: Say, shapes: Sequence[tuple[int, int, int]] = (), element: str = "f16"
) -> dict[str, object]:
    """Measure the search space; return a row for each pair of a correct kernel and a problem."""
    wanted = problems(shapes, element)
    runners = {c: runner_of(folder, c) for c in _needed(wanted)}
    rows: list[Row] = []
    for problem in track(wanted, "measuring", "problems"):
        rule = predicted(problem)
        found: list[tuple[float, Choice, Row]] = []
        for choice in track(space(problem), problem.key, "kernels"):
            runner = runners[choice]
            try:
                check(runner, fitting(choice, (1000, 1000, 1008)), integers=True, repeats=2)
                row = measure(runner, problem, runs, integers=False)
            except BenchError as e:
                say(f"  wrong result: {e}")
                continue
            found.append((row["ratio"], choice, row))
        if not found:
            raise BenchError(f"{problem.key}: all kernels give wrong results")
        found.sort(key=lambda x: x[0], reverse=True)
        finalists = [choice for _, choice, _ in found[:_FINALISTS]]
        if rule not in finalists and any(choice == rule for _, choice, _ in found):
            finalists.append(rule)
        times = in_turns([runners[c] for c in finalists], problem, runs)
        best = min(finalists, key=lambda c: times[c.name] / (MARGIN if c == rule else 1.0))
        for ratio, choice, row in found:
            row.update(name=problem.key, kernel=choice.name, best=choice == best)
            rows.append(row)
            if choice == best:
                say(f"  {problem.key}: best {choice.name} {ratio:.3f}; the model {rule.name}")
    return {"rows": rows}


def in_turns(runners: Sequence[Runner], problem: Problem, runs: int) -> dict[str, float]:
    """Return the median microseconds of kernels by name, measured in alternating rounds by
    :func:`cute_dialect.op.select.tuning.finals`.
    """
    operands = inputs(problem, integers=False)
    return finals([(r.choice.name, partial(r, *operands)) for r in runners], traffic_of(problem), runs)


def save_best(result: dict[str, object], gpu: str) -> Path:
    """Save the best kernels of :func:`run` in the user's table for a GPU and return its path."""
    found: dict[str, tuple[Choice, float]] = {}
    rows = result["rows"]
    assert isinstance(rows, list)
    for row in rows:
        if row["best"]:
            key = str(row["name"])
            names = {c.name: c for c in space(Problem.of_key(key))}
            found[key] = (names[str(row["kernel"])], float(row["ours"]))
    return save(gpu, found)
