"""``cute-bench gemm --fit FILE...``: fit the kernel selection cost model to sweeps and report its quality.

The fitted costs are written only if they select better kernels than the current costs on the held-out third of the
problems.  ``--regret FILE...`` reports the quality of the current costs.  Neither needs a GPU.

The loss is a weighted sum of three means over problems: the errors of the predicted times; the errors relative to the
mean error of the same problem; and the expected slowdown of the selected kernel, where kernels that are predicted to be
nearly as fast are selected with some probability.  Kernels near the fastest of their problem have the highest weight.

Coordinate descent changes one cost at a time by a factor that grows after a success and shrinks after a failure.  It
starts from the current costs and then from perturbed ones.  It fits all fields of ``Costs`` except those in ``GIVEN``,
without knowledge of their meaning.

A hash of the problem name selects the held-out problems, so a problem is always in the same set.
"""

from __future__ import annotations

import datetime
import hashlib
from collections.abc import Sequence
from math import exp, log
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from cute_dialect.op.select.candidates import of_choices
from cute_dialect.op.select.cost_model import (
    COSTS,
    GIVEN,
    RANGES,
    CostQuery,
    Costs,
    best,
    costs_of,
    costs_path,
    read_costs,
    times,
    write_costs,
)
from cute_dialect.op.select.kernel_choice import Choice, Problem
from cute_dialect.runtime.progress import Task
from cute_dialect.tools.bench.cases.gemm import random_summary
from cute_dialect.tools.bench.runner import Say, quantiles
from cute_dialect.tools.bench.sweep import Row, Sweep, SweepError, read_sweeps

_NEAR = 0.2
"""Log ratio of a kernel's time to the fastest time at which its weight is one half."""
_SHARE = 0.03
"""Log ratio of predicted times at which the selection probability falls to 1/e."""
_CORNER = 0.05
"""Transition from squared to linear errors (log ratio)."""
_WEIGHTS = (0.6, 0.3, 1.0)
"""Weights of the three terms of the loss."""
_PULL = 1e-2
"""Weight of the squared log distance of a cost from its start value.

It keeps costs that no measurement constrains and reduces overfitting.  Cross-validated on H200 sweeps of 442 problems,
the selected kernels reach 0.952 of the best speed, and 0.950 with a weight smaller by 100.
"""
_STEP, _LEAST_STEP = 0.2, 0.004
_SHAKEN, _SHAKE = 2, 0.25
"""Number of restarts from perturbed costs, and the standard deviation of their logarithm."""
_PREDICTIONS = 60_000_000
"""Maximum number of predictions per fit, about half a minute of CPU time."""
Floats = NDArray[np.float64]


class Outcome(NamedTuple):
    """The kernel selected by a cost model for a problem (``taken``) and the fastest kernel (``best``).

    The times are measured and predicted microseconds.
    """

    problem: Problem
    taken: Choice
    best: Choice
    taken_times: tuple[float, float]
    best_times: tuple[float, float]

    @property
    def of_best(self) -> float:
        """The speed of the selected kernel relative to the fastest, at most 1."""
        return self.best_times[0] / self.taken_times[0]


class Quality(NamedTuple):
    """The quality of a cost model: prediction errors (absolute log ratios) and outcomes per row, the worst first."""

    error: float
    error_90: float
    outcomes: tuple[Outcome, ...]
    rows: tuple[Row, ...]

    @property
    def mean(self) -> float:
        """The geometric mean of the relative speeds."""
        return quantiles([o.of_best for o in self.outcomes])[0]

    @property
    def percentile_5(self) -> float:
        """The 5th percentile of the relative speeds."""
        return quantiles([o.of_best for o in self.outcomes])[1]

    def beats(self, other: Quality) -> bool:
        """Return True if this cost model is better than another for the same problems.

        The mean relative speed must not be lower.  In addition it must be higher by more than the standard error of
        the difference, or the prediction error must be lower.
        """
        before = {id(row): o.of_best for row, o in zip(other.rows, other.outcomes)}
        gains = [log(o.of_best / before[id(row)]) for row, o in zip(self.rows, self.outcomes)]
        mean = sum(gains) / len(gains)
        noise = (sum((g - mean) ** 2 for g in gains) / len(gains) ** 2) ** 0.5
        return mean >= 0 and (mean > noise or self.error < other.error)

    def as_record(self) -> dict[str, object]:
        """Return the numbers as a JSON-serializable record."""
        worst = self.outcomes[0].of_best
        found = {"of_best": self.mean, "percentile_5": self.percentile_5, "worst": worst}
        rounded = {k: round(v, 4) for k, v in (*found.items(), ("error", self.error), ("error_90", self.error_90))}
        return {"problems": len(self.outcomes), **rounded}


def held_out(problem: Problem) -> bool:
    """Return True for the third of the problems that is held out from fitting."""
    return int.from_bytes(hashlib.sha256(problem.key.encode()).digest()[:8]) % 3 == 0


def quality(rows: Sequence[Row], costs: Costs) -> Quality:
    """Evaluate a cost model on some problems."""
    errors: list[float] = []
    outcomes: list[tuple[Outcome, Row]] = []
    for row in rows:
        problem, kernels, measured, _ = row
        predicted = times(of_choices(kernels), problem, costs).tolist()
        errors += [abs(log(p / t)) for p, t in zip(predicted, measured)]
        best = min(range(len(measured)), key=measured.__getitem__)
        taken = min(range(len(measured)), key=predicted.__getitem__)
        found = Outcome(problem, kernels[taken], kernels[best], (measured[taken], predicted[taken]),
                        (measured[best], predicted[best]))  # fmt: skip
        outcomes.append((found, row))
    errors.sort()
    outcomes.sort(key=lambda x: x[0].of_best)
    error, error_90 = errors[len(errors) // 2], errors[len(errors) * 9 // 10]
    return Quality(error, error_90, tuple(o for o, _ in outcomes), tuple(row for _, row in outcomes))


def kind(choice: Choice) -> str:
    """Return the kind of a kernel, by its distinguishing feature."""
    c = choice.config
    found = (
        (choice.skinny is not None, "few rows"),
        (choice.parts > 1, "K in parts"),
        (c.stream_k, "last wave shared"),
        (c.schedule == "pingpong", "in turns"),
        (c.cluster > 1, "cluster"),
    )
    return next((name for there, name in found if there), "plain")


class KindErrors(NamedTuple):
    """Errors of a kind of kernels.

    ``error`` and ``error_90`` are the median and the absolute 90th percentile of the log ratio of predicted to measured
    times, of kernels within 1.5 times the best.  ``taken`` and ``missed`` are the mean log speed lost by selecting a
    kernel of this kind, and by not selecting one that is the best.
    """

    kind: str
    times: int
    error: float
    error_90: float
    taken: float
    missed: float


def errors_by_kind(found: Quality, costs: Costs) -> list[KindErrors]:
    """Return the errors per kind of kernel, which show the part of the cost model to improve first."""
    errors: dict[str, list[float]] = {}
    for problem, kernels, measured, _ in found.rows:
        predicted = times(of_choices(kernels), problem, costs).tolist()
        for choice, time, p in zip(kernels, measured, predicted):
            if time < 1.5 * min(measured):
                errors.setdefault(kind(choice), []).append(log(p / time))
    taken, missed = dict.fromkeys(errors, 0.0), dict.fromkeys(errors, 0.0)
    for o in found.outcomes:
        taken[kind(o.taken)] = taken.get(kind(o.taken), 0.0) - log(o.of_best) / len(found.outcomes)
        missed[kind(o.best)] -= log(o.of_best) / len(found.outcomes)
    return [
        KindErrors(
            name, len(x), sorted(x)[len(x) // 2], sorted(map(abs, x))[len(x) * 9 // 10], taken[name], missed[name]
        )
        for name, x in sorted(errors.items())
    ]


def fit(rows: Sequence[Row], begin: Costs, seed: int = 0, predictions: int = _PREDICTIONS) -> Costs:
    """Fit costs to problems, starting from ``begin``; deterministic for a given seed."""
    search = _Search(rows, begin)
    whole = predictions / len(search.times)  # number of predictions of all pairs
    with Task("fitting", round(whole), "predictions") as task:
        found = search.descend(search.start, whole / 2, task)
        rng = np.random.default_rng(seed)
        for i in range(_SHAKEN):
            task.update(round(whole * (0.5 + 0.5 * i / _SHAKEN)), name=f"error {found[0]:.4g}")  # may end early
            shaken = found[1] + rng.normal(0.0, _SHAKE, len(search.names)) * search.matters
            found = min(found, search.descend(shaken, whole / 2 / _SHAKEN, task), key=lambda x: x[0])
    return search.costs(found[1])


class _Search:
    """The search for costs; a point is the vector of the logarithms of the costs ``names``."""

    def __init__(self, rows: Sequence[Row], begin: Costs):
        self.begin = begin
        self.names = [n for n in Costs._fields if n not in GIVEN]
        ranges = [_range(n, getattr(begin, n)) for n in self.names]
        self.low, self.high = (np.log([r[i] for r in ranges]) for i in (0, 1))
        self.start = np.array([log(max(getattr(begin, n), exp(low))) for n, low in zip(self.names, self.low)])
        counts = [len(row.times) for row in rows]
        self.kernels = of_choices([kernel for row in rows for kernel in row.kernels])
        asked = zip(*(CostQuery.of(row.problem) for row in rows))
        self.asked = CostQuery(*(np.repeat(np.array(values), counts) for values in asked))
        self.times: Floats = np.log([t for row in rows for t in row.times])
        self.first = np.cumsum([0, *counts[:-1]])
        self.row = np.repeat(np.arange(len(rows)), counts)
        self.behind: Floats = self.times - np.minimum.reduceat(self.times, self.first)[self.row]
        weights: Floats = 1 / (1 + (self.behind / _NEAR) ** 2)
        self.weights: Floats = weights / self._sums(weights)[self.row]

        # Costs of kernels that were not timed do not change.
        predicted, shift = self.predicted(self.start), np.eye(len(self.names)) * 0.1
        self.matters = np.array([not np.array_equal(self.predicted(self.start + x), predicted) for x in shift])

    def _sums(self, values: Floats) -> Floats:
        return np.add.reduceat(values, self.first)

    def costs(self, place: Floats) -> Costs:
        """Return the costs at a point."""
        return self.begin._replace(**{n: exp(x) for n, x in zip(self.names, place.tolist())})

    def predicted(self, place: Floats) -> Floats:
        """Return the logarithms of all predicted times."""
        return np.log(times(self.kernels, self.asked, self.costs(place)))

    def score(self, place: Floats, predicted: Floats) -> float:
        """Return the loss."""
        error = predicted - self.times
        relative = error - self._sums(self.weights * error)[self.row]
        ahead = predicted - np.minimum.reduceat(predicted, self.first)[self.row]
        chance = np.exp(-ahead / _SHARE)
        chance /= self._sums(chance)[self.row]
        sums = (float(np.sum(x)) for x in (self.weights * _bent(error), self.weights * _bent(relative),
                                           chance * self.behind))  # fmt: skip
        pull = _PULL * float(np.sum((place - self.start) ** 2))
        return sum(w * x for w, x in zip(_WEIGHTS, sums)) / len(self.first) + pull

    def descend(self, place: Floats, whole: float, task: Task) -> tuple[float, Floats]:
        """Return the minimum loss near a point, and the point.

        Args:
            whole: the maximum number of predictions of all pairs; each advances ``task`` by one step.
        """
        place = np.clip(place, self.low, self.high)
        predicted = self.predicted(place)
        score = self.score(place, predicted)
        steps = np.full(len(place), _STEP)
        left = whole
        while left > 0 and np.abs(steps[self.matters]).max(initial=0.0) > _LEAST_STEP:
            for i in np.flatnonzero(self.matters):
                if abs(steps[i]) <= _LEAST_STEP:
                    steps[i] = 0.0
                    continue
                for step in (steps[i], -steps[i]):
                    there = place.copy()
                    there[i] = min(max(place[i] + step, self.low[i]), self.high[i])
                    if there[i] == place[i]:
                        continue
                    left -= 1
                    task.advance()
                    values = self.predicted(there)
                    found = self.score(there, values)
                    if found < score - 1e-8:
                        place, predicted, score = there, values, found
                        steps[i] = step * 1.5  # The next step tries the same direction with a larger factor.
                        break
                else:
                    steps[i] /= 2
        return self.score(place, self.predicted(place)), place


def _bent(errors: Floats) -> Floats:
    """Return a loss that is quadratic for small errors and linear for large ones."""
    return _CORNER * (np.sqrt(1 + (errors / _CORNER) ** 2) - 1)


def _range(name: str, value: float) -> tuple[float, float]:
    """Return the search range of a cost; the range of a zero cost is based on 0.1."""
    usual = getattr(COSTS, name) or 0.1
    low, high = RANGES.get(name, (usual / 10, usual * 10))
    return min(low, value or low), max(high, value)


# --------------------------------------------------------------------------------------------------------------- report

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


def regret(paths: Sequence[str], *, costs: str | None, say: Say) -> dict[str, object]:
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
    paths: Sequence[str], *, seed: int, costs: str | None, output: str | None, command: str, say: Say
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
        raise SweepError(
            f"{', '.join(paths)}: too few problems to fit and to hold out: {len(fitted_to)} and {len(held)}"
        )
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


def _about(sweep: Sweep, say: Say) -> None:
    say(sweep.said)
    if sweep.unknown:
        name, why = next(iter(sweep.unknown.items()))
        say(f"  skipped: {name} ({why})")


def _line(name: str, q: Quality) -> str:
    count, least = len(q.outcomes), q.outcomes[0].of_best
    return f"  {name:20} {count:8} {q.error:7.1%} {q.error_90:9.1%} {q.mean:11.3f} {q.percentile_5:14.3f} {least:7.3f}"


def _classes(q: Quality, say: Say) -> None:
    """Report the quality for each element type and for large and small problems.

    "best" counts problems whose fastest kernel is selected.
    """
    rows: list[dict[str, object]] = []
    for o in q.outcomes:
        p = o.problem
        shape = f"{p.m * p.matrices}x{p.n}x{p.k}"
        rows.append({"name": f"gemm {p.element} {p.major_a}{p.major_b} {shape} normal", "ratio": o.of_best})
    for line in random_summary(rows, ahead="best"):
        say(line)


def _kinds(q: Quality, costs: Costs, say: Say) -> None:
    """Report the prediction errors of each kind of kernel and the speed lost by selections."""
    say(f"  {'':16} {'times':>6} {'predicted':>10} {'90 of 100':>10} {'lost, taken':>12} {'lost, missed':>13}")
    for name, count, error, error_90, taken, missed in errors_by_kind(q, costs):
        say(f"  {name:16} {count:6} {error:+10.1%} {error_90:10.1%} {taken:12.2%} {missed:13.2%}")


def _worst(q: Quality, say: Say) -> None:
    for o in q.outcomes[:_WORST]:
        if o.of_best < 1:
            say(f"  {o.of_best:.3f} {o.problem.key}: selects {_timed(o.taken.name, o.taken_times)}, "
                f"best {_timed(o.best.name, o.best_times)}")  # fmt: skip


def _untimed(q: Quality, costs: Costs, say: Say) -> None:
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
