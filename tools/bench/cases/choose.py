"""``cute-bench choose``: the time of kernel selection (no GPU).

For each element type and layout of the problems of ``--random``: the first selection in a process, which builds the
menu of kernels; the first selection for each problem, which takes the kernel with the lowest predicted time
(:func:`cute_dialect.op.select.cost_model.best`); and ranking the whole menu.  Times are user time in microseconds.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from statistics import mean
from time import process_time_ns
from typing import cast

from cute_dialect.op.select import candidates as menus
from cute_dialect.op.select import cost_model
from cute_dialect.op.select.kernel_choice import Problem
from cute_dialect.runtime.progress import track
from cute_dialect.tools.bench.random.gemm import of_menu, problems
from cute_dialect.tools.bench.runner import Row, Say

__all__ = ["run", "table"]

_PROBLEMS = 160


def run(*, runs: int, say: Say) -> dict[str, object]:
    """Measure each selection ``runs`` times and return the minimum times."""
    kinds: dict[str, list[Problem]] = {}
    for p in map(of_menu, problems(_PROBLEMS, 1)):
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


def table(result: Mapping[str, object]) -> list[Sequence[str]]:
    """Return the header and the rows of the table."""
    head = ("kind", "kernels", "first of a process, us", "first of a problem, us", "longest", "ranking all, us")
    rows: list[Sequence[str]] = [head]
    for r in cast("list[Row]", result["rows"]):
        times = [f"{cast(float, r[k]):.0f}" for k in ("first", "mean", "longest", "all")]
        rows.append((str(r["kind"]), str(r["kernels"]), *times))
    return rows
