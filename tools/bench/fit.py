"""``cute-bench gemm --fit FILE...``: fit the kernel selection cost model to sweeps and report its quality.

The fitted costs are written only if they select better kernels than the current costs on the held-out third of the
problems.  ``--regret FILE...`` reports the quality of the current costs.  Neither needs a GPU.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from cute_dialect.op.select.cost_model import GIVEN, Costs, best, costs_of, costs_path, read_costs, write_costs
from cute_dialect.tools.bench.fit_costs import Outcome, Quality, errors_by_kind, fit, held_out, quality
from cute_dialect.tools.bench.random.gemm import summary
from cute_dialect.tools.bench.sweeps import Sweep, SweepError, read_sweeps

__all__ = ["costs_in_force", "costs_to_build_for", "fit_files", "regret"]

_WORST = 5


def costs_in_force(path: str | None, gpu: str, sms: int) -> Costs:
    """Return the current costs for a GPU, or those of a file.

    Raises:
        SweepError: the file does not exist, or its costs are for another number of SMs.
        TableError: the file does not hold costs.
    """
    costs = costs_of(gpu, sms) if path is None else _costs_of_file(path)
    if costs.sms != sms:
        raise SweepError(f"expected costs for the {sms} SMs of {gpu}, got costs for {costs.sms}")
    return costs


def costs_to_build_for(path: str | None, here: tuple[str, int] | None) -> Costs:
    """Return the costs for choosing the kernels of a sweep.

    The source is the file ``path``, else the GPU ``here`` (name, number of SMs), else an H200.
    """
    if path is not None:
        return _costs_of_file(path)
    return costs_of(*(here or ("NVIDIA H200", 132)))


def _costs_of_file(path: str) -> Costs:
    found = read_costs(Path(path))
    if found is None:
        raise SweepError(f"--costs: file '{path}' does not exist")
    return found


def regret(paths: Sequence[str], *, costs: str | None, say: Callable[[str], None]) -> dict[str, object]:
    """Report and return the quality of the kernels that the current costs select for the problems of sweeps."""
    sweep = read_sweeps(paths)
    judged = costs_in_force(costs, sweep.gpu, sweep.sms)
    found = quality(sweep.rows, judged)
    _about(sweep, say)
    say(_HEAD)
    say(_line("current costs", found))
    _classes(found, say)
    _kinds(found, judged, say)
    _worst(found, say)
    _untimed(found, judged, say)
    return {"gpu": sweep.gpu, "sms": sweep.sms, "costs in force": found.as_record(), "choices": _records(found)}


def fit_files(
    paths: Sequence[str],
    *,
    seed: int,
    costs: str | None,
    output: str | None,
    command: str,
    say: Callable[[str], None],
) -> dict[str, object]:
    """Fit costs to sweeps, report their quality, and write them if they are better.

    Args:
        costs: a file of the initial costs; default: the current costs.
        output: the file to write; default: the user's costs for the GPU.
    """
    sweep = read_sweeps(paths)
    before = costs_in_force(costs, sweep.gpu, sweep.sms)
    _about(sweep, say)
    fitted_to = [r for r in sweep.rows if not held_out(r.problem)]
    held = [r for r in sweep.rows if held_out(r.problem)]
    if not fitted_to or not held:
        raise SweepError(f"{', '.join(paths)}: too few problems to fit and to hold out: "
                         f"{len(fitted_to)} and {len(held)}")  # fmt: skip
    after = _rounded(fit(fitted_to, before, seed))
    old, new = ((quality(fitted_to, c), quality(held, c)) for c in (before, after))
    say(_HEAD)
    for name, found in zip(("current, fitted", "current, held out", "new, fitted", "new, held out"), old + new):
        say(_line(name, found))
    say("held out, new costs:")
    _classes(new[1], say)
    _kinds(new[1], after, say)
    _worst(new[1], say)
    _untimed(new[1], after, say)
    changed = [
        f"{n} {a:.4g} -> {b:.4g}"
        for n, a, b in zip(Costs._fields, before, after)
        if n not in GIVEN and abs(b - a) > 1e-9
    ]
    say(f"costs that changed: {', '.join(changed) or 'none'}")
    record: dict[str, object] = {
        "gpu": sweep.gpu,
        "sms": sweep.sms,
        "in force": {"fitted": old[0].as_record(), "held out": old[1].as_record()},
        "new": {"fitted": new[0].as_record(), "held out": new[1].as_record()},
        "costs": after._asdict(),
    }
    path = Path(output) if output else costs_path(sweep.gpu)
    if not new[1].beats(old[1]):
        say("nothing written: on the held-out problems, the new costs are not better than the current ones")
        return {**record, "written": None}
    said = {
        "date": datetime.date.today().isoformat(),
        "command": command,
        "fitted": new[0].as_record(),
        "held out": new[1].as_record(),
        "held out, before": old[1].as_record(),
    }
    write_costs(path, sweep.gpu, after, said.items())
    say(f"written: {path}")
    return {**record, "written": str(path)}


def _rounded(costs: Costs) -> Costs:
    """Return costs rounded as in a file, so that the evaluation uses the stored values."""
    return costs._replace(**{n: float(f"{v:.4g}") for n, v in costs._asdict().items() if isinstance(v, float)})


# ------------------------------------------------------------------------------------------------ report

_HEAD = (
    f"  {'':20} {'problems':>8} {'error':>7} {'90 of 100':>9} {'of the best':>11} {'5th percentile':>14} {'least':>7}"
)


def _about(sweep: Sweep, say: Callable[[str], None]) -> None:
    say(sweep.said)
    if sweep.unknown:
        name, why = next(iter(sweep.unknown.items()))
        say(f"  skipped: {name} ({why})")


def _line(name: str, q: Quality) -> str:
    count, least = len(q.outcomes), q.outcomes[0].of_best
    return f"  {name:20} {count:8} {q.error:7.1%} {q.error_90:9.1%} {q.mean:11.3f} {q.percentile_5:14.3f} {least:7.3f}"


def _classes(q: Quality, say: Callable[[str], None]) -> None:
    """Report the quality for each element type and for large and small problems.

    "ahead" counts problems whose fastest kernel is selected.
    """
    rows: list[Mapping[str, object]] = []
    for o in q.outcomes:
        p = o.problem
        shape = f"{p.m * p.matrices}x{p.n}x{p.k}"
        rows.append({"name": f"gemm {p.element} {p.major_a}{p.major_b} {shape} normal", "ratio": o.of_best})
    for line in summary(rows):
        say(line.replace(" ahead", "  best"))


def _kinds(q: Quality, costs: Costs, say: Callable[[str], None]) -> None:
    """Report the prediction errors of each kind of kernel and the speed lost by selections."""
    say(f"  {'':16} {'times':>6} {'predicted':>10} {'90 of 100':>10} {'lost, taken':>12} {'lost, missed':>13}")
    for name, times, error, error_90, taken, missed in errors_by_kind(q, costs):
        say(f"  {name:16} {times:6} {error:+10.1%} {error_90:10.1%} {taken:12.2%} {missed:13.2%}")


def _worst(q: Quality, say: Callable[[str], None]) -> None:
    for o in q.outcomes[:_WORST]:
        if o.of_best < 1:
            say(f"  {o.of_best:.3f} {o.problem.key}: selects {_timed(o.taken.name, o.taken_times)}, "
                f"best {_timed(o.best.name, o.best_times)}")  # fmt: skip


def _untimed(q: Quality, costs: Costs, say: Callable[[str], None]) -> None:
    """Report the number of problems whose selected kernel of the whole menu was not timed."""
    untimed = sum(best(row.problem, costs) not in row.kernels for row in q.rows)
    if untimed:
        say(f"  for {untimed} problems the selected kernel was not timed; the next one that was timed is evaluated")


def _timed(name: str, times: tuple[float, float]) -> str:
    return f"{name.split('-', 3)[-1]} {times[0]:.1f} us (predicted {times[1]:.1f})"


def _records(q: Quality) -> list[dict[str, object]]:
    def record(o: Outcome) -> dict[str, object]:
        return {
            "problem": o.problem.key,
            "of_best": round(o.of_best, 4),
            "taken": o.taken.name,
            "taken_us": o.taken_times[0],
            "best": o.best.name,
            "best_us": o.best_times[0],
        }

    return [record(o) for o in q.outcomes]
