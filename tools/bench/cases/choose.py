"""CPU time of kernel selection: ``cute-bench choose``.

It gives microseconds for the problems of ``gemm --random``, by element type and layout: the first selection in a
process, which builds the menu of kernels; the first selection for each problem, which takes the kernel with the lowest
predicted time (:func:`cute_dialect.op.select.cost_model.best`); and ranking the whole menu.
"""

# pyright: reportMissingImports=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownLambdaType=false, reportMissingTypeStubs=false
# pyright: reportMissingModuleSource=false

from __future__ import annotations

from collections.abc import Callable
from statistics import mean
from time import process_time_ns
from typing import TYPE_CHECKING, cast

from cute_dialect.op.select import candidates as menus
from cute_dialect.op.select import cost_model
from cute_dialect.op.select.kernel_choice import Problem
from cute_dialect.runtime.progress import track
from cute_dialect.tools.bench.cases.gemm import of_menu, random_problems
from cute_dialect.tools.bench.runner import Benchmark, Row, Say, column_table

if TYPE_CHECKING:  # pragma: no cover
    pass


_PROBLEMS = 160


def run_choose(*, runs: int, say: Say) -> dict[str, object]:
    """Measure each selection ``runs`` times and return the minimum times."""
    kinds: dict[str, list[Problem]] = {}
    for p in map(of_menu, random_problems(_PROBLEMS, 1)):
        for q in (p, p._replace(matrices=16)):
            batch = " batches" if q.matrices > 1 else ""
            kinds.setdefault(f"{q.element}-{q.output}-{q.major_a}{q.major_b}{batch}", []).append(q)
    rows: list[Row] = []
    for kind, found in track(sorted(kinds.items()), "measuring", "kinds"):
        first = min(_first(found[0]) for _ in range(runs))
        each = [_least(lambda p=p: cost_model.best.__wrapped__(p), runs) for p in found]
        whole = [_least(lambda p=p: cost_model.ranked(p), runs) for p in found]
        kernels = len(menus.menu(found[0]))
        row: Row = {
            "kind": kind, "kernels": kernels, "first": first, "mean": mean(each), "longest": max(each),
            "all": mean(whole),
        }  # fmt: skip
        rows.append(row)
    longest = max(cast(float, r["longest"]) for r in rows)
    say(f"  {len(rows)} kinds; the longest selection took {longest:.0f} us")
    return {"rows": rows}


def _first(problem: Problem) -> float:
    for module in (cost_model, menus):
        module.forget()
    return _time(lambda: cost_model.best(problem))


def _least(work: Callable[[], object], runs: int) -> float:
    return min(_time(work) for _ in range(runs))


def _time(work: Callable[[], object]) -> float:
    begin = process_time_ns()
    work()
    return (process_time_ns() - begin) / 1e3


BENCHMARKS = {
    "choose": Benchmark(
        None,
        run_choose,
        column_table(
            {
                "kind": lambda r: r["kind"],
                "kernels": lambda r: str(r["kernels"]),
                "first of a process, us": lambda r: f"{r['first']:.0f}",
                "first of a problem, us": lambda r: f"{r['mean']:.0f}",
                "longest": lambda r: f"{r['longest']:.0f}",
                "ranking all, us": lambda r: f"{r['all']:.0f}",
            }
        ),
    ),
}
