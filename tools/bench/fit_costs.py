"""Fitting of the kernel selection cost model (:mod:`cute_dialect.op.select.cost_model`) to a sweep.

The loss is a weighted sum of three means over problems: the errors of the predicted times; the errors relative to the
mean error of the same problem; and the expected slowdown of the selected kernel, where kernels that are predicted to be
nearly as fast are selected with some probability.  Kernels near the fastest of their problem have the highest weight.

Coordinate descent changes one cost at a time by a factor that grows after a success and shrinks after a failure.  It
starts from the current costs and then from perturbed ones.  It fits all fields of ``Costs`` except those in ``GIVEN``,
without knowledge of their meaning.

A hash of the problem name selects the held-out problems, so a problem is always in the same set.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from math import exp, log
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from cute_dialect.op.select.candidates import of_choices
from cute_dialect.op.select.cost_model import COSTS, GIVEN, RANGES, CostQuery, Costs, times
from cute_dialect.op.select.kernel_choice import Choice, Problem
from cute_dialect.runtime.progress import Task
from cute_dialect.tools.bench.sweeps import Row

__all__ = ["KindErrors", "Outcome", "Quality", "errors_by_kind", "fit", "held_out", "kind", "quality"]

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
        return exp(sum(log(o.of_best) for o in self.outcomes) / len(self.outcomes))

    @property
    def percentile_5(self) -> float:
        """The 5th percentile of the relative speeds."""
        return self.outcomes[len(self.outcomes) // 20].of_best

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
