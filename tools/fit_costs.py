"""Fitting the costs of the model that chooses kernels (:mod:`cute_dialect.op.select.cost_model`) to a sweep.

What is made small is a sum of three means over problems: how far predictions are off, how far they are off beside each
other within a problem, and how much longer than the best the kernel takes that would be chosen, with some chance for
each that is predicted to be nearly as fast.  Kernels near the best of their problem weigh most: of one that takes three
times as long it hardly matters how long exactly.

The search goes along one cost at a time by factors that grow where they help and shrink where they do not, from the
costs in force, then from shaken ones.  Nothing is known here of what a cost means: the fields of ``Costs`` are fitted,
but for ``GIVEN``.

Problems are held out by their names' hash, so that a problem is always on the same side.
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
from cute_dialect.tools.sweeps import Row

__all__ = ["KindErrors", "Outcome", "Quality", "errors_by_kind", "fit", "held_out", "kind", "quality"]

_NEAR = 0.2
"""The logarithm of the time to the best's at which a kernel weighs half as much as the best."""
_SHARE = 0.03
"""The same of predictions, at which a kernel's chance of being chosen falls to 1/e."""
_CORNER = 0.05
"""Errors (logarithms) below this count as squares, above it linearly."""
_WEIGHTS = (0.6, 0.3, 1.0)
"""Of the three sums."""
_PULL = 1e-2
"""Of a cost's squared distance (logarithm) from where it began: what no measurement speaks of stays there, and chance
has less to say (on an H200's sweeps of 442 problems, cross-validated, 0.952 of the best; 0.950 with a hundredth of it).
"""
_STEP, _LEAST_STEP = 0.2, 0.004
_SHAKEN, _SHAKE = 2, 0.25
"""Restarts from shaken costs, and by how much (standard deviation of the logarithm)."""
_PREDICTIONS = 60_000_000
"""How many predictions a fit may take: half a minute of CPU."""
Floats = NDArray[np.float64]


class Outcome(NamedTuple):
    """What costs choose for a problem among the kernels that were timed: ``taken`` and ``best`` with their measured and
    predicted microseconds.  ``of_best``: the best's time to that of the one taken, at most 1.
    """

    problem: Problem
    taken: Choice
    best: Choice
    taken_times: tuple[float, float]
    best_times: tuple[float, float]

    @property
    def of_best(self) -> float:
        """The share of the best kernel's speed that the choice gives."""
        return self.best_times[0] / self.taken_times[0]


class Quality(NamedTuple):
    """How good costs are: errors of predictions (absolute logarithms), what is chosen for each row, the worst first."""

    error: float
    error_90: float
    outcomes: tuple[Outcome, ...]
    rows: tuple[Row, ...]

    @property
    def mean(self) -> float:
        """The geometric mean of the shares of the best."""
        return exp(sum(log(o.of_best) for o in self.outcomes) / len(self.outcomes))

    @property
    def percentile_5(self) -> float:
        """What 95 of 100 problems reach of their best."""
        return self.outcomes[len(self.outcomes) // 20].of_best

    def beats(self, other: Quality) -> bool:
        """Tell whether these costs are better than others for the same problems: what they choose is not worse, and
        better by more than the standard error of the difference, or their predictions are.
        """
        before = {id(row): o.of_best for row, o in zip(other.rows, other.outcomes)}
        gains = [log(o.of_best / before[id(row)]) for row, o in zip(self.rows, self.outcomes)]
        mean = sum(gains) / len(gains)
        noise = (sum((g - mean) ** 2 for g in gains) / len(gains) ** 2) ** 0.5
        return mean >= 0 and (mean > noise or self.error < other.error)

    def as_record(self) -> dict[str, object]:
        """Return the numbers for a file."""
        worst = self.outcomes[0].of_best
        found = {"of_best": self.mean, "percentile_5": self.percentile_5, "worst": worst}
        rounded = {k: round(v, 4) for k, v in (*found.items(), ("error", self.error), ("error_90", self.error_90))}
        return {"problems": len(self.outcomes), **rounded}


def held_out(problem: Problem) -> bool:
    """Tell whether a problem is of the third that is not fitted."""
    return int.from_bytes(hashlib.sha256(problem.key.encode()).digest()[:8]) % 3 == 0


def quality(rows: Sequence[Row], costs: Costs) -> Quality:
    """Return how good costs are for some problems."""
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
    """Return what sort of kernel one is."""
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
    """How predictions for a kind of kernels differ from measurements (median and absolute 90th percentile, logarithms),
    of those within a half of the best; what problems lose by taking one, and by not taking one that is the best (both
    in shares of the speed, summed over problems, over their number).
    """

    kind: str
    times: int
    error: float
    error_90: float
    taken: float
    missed: float


def errors_by_kind(found: Quality, costs: Costs) -> list[KindErrors]:
    """Return the errors of each kind of kernels: which part of the formula to mend first."""
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
    """Return costs fitted to some problems, from those to begin with; the same for the same seed."""
    search = _Search(rows, begin)
    whole = predictions / len(search.times)  # times that all pairs can be predicted
    with Task("fitting", round(whole), "predictions") as task:
        found = search.descend(search.start, whole / 2, task)
        rng = np.random.default_rng(seed)
        for i in range(_SHAKEN):
            task.update(round(whole * (0.5 + 0.5 * i / _SHAKEN)), name=f"error {found[0]:.4g}")  # it may end early
            shaken = found[1] + rng.normal(0.0, _SHAKE, len(search.names)) * search.matters
            found = min(found, search.descend(shaken, whole / 2 / _SHAKEN, task), key=lambda x: x[0])
    return search.costs(found[1])


class _Search:
    """A search for the costs of some problems; a place in it is the logarithms of the costs ``names``."""

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

        # Costs of kernels that were not timed, which stay as they are.
        predicted, shift = self.predicted(self.start), np.eye(len(self.names)) * 0.1
        self.matters = np.array([not np.array_equal(self.predicted(self.start + x), predicted) for x in shift])

    def _sums(self, values: Floats) -> Floats:
        return np.add.reduceat(values, self.first)

    def costs(self, place: Floats) -> Costs:
        """Return the costs of a place."""
        return self.begin._replace(**{n: exp(x) for n, x in zip(self.names, place.tolist())})

    def predicted(self, place: Floats) -> Floats:
        """Return the logarithms of all predictions."""
        return np.log(times(self.kernels, self.asked, self.costs(place)))

    def score(self, place: Floats, predicted: Floats) -> float:
        """Return what is made small."""
        error = predicted - self.times
        beside = error - self._sums(self.weights * error)[self.row]
        ahead = predicted - np.minimum.reduceat(predicted, self.first)[self.row]
        chance = np.exp(-ahead / _SHARE)
        chance /= self._sums(chance)[self.row]
        sums = (float(np.sum(x)) for x in (self.weights * _bent(error), self.weights * _bent(beside),
                                           chance * self.behind))  # fmt: skip
        pull = _PULL * float(np.sum((place - self.start) ** 2))
        return sum(w * x for w, x in zip(_WEIGHTS, sums)) / len(self.first) + pull

    def descend(self, place: Floats, whole: float, task: Task) -> tuple[float, Floats]:
        """Return the least score near a place, and where; takes as many predictions as ``whole`` ones of all pairs.

        Each is a step of ``task``.
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
                        steps[i] = step * 1.5  # and further the same way first
                        break
                else:
                    steps[i] /= 2
        return self.score(place, self.predicted(place)), place


def _bent(errors: Floats) -> Floats:
    """Return squares of what is small, and what is large linearly."""
    return _CORNER * (np.sqrt(1 + (errors / _CORNER) ** 2) - 1)


def _range(name: str, value: float) -> tuple[float, float]:
    """Return between what a cost is looked for; a cost of nothing, as one of a microsecond's hundredths."""
    usual = getattr(COSTS, name) or 0.1
    low, high = RANGES.get(name, (usual / 10, usual * 10))
    return min(low, value or low), max(high, value)
