"""``cute-bench gemm --tune``: the search space of the Hopper GEMM, each configuration on each problem.

The space, for each type of A and B: tiles of 128x256, 128x128 and 128x192; clusters of one, two along M, two along
N; stores deferred or not; the last wave shared (stream-K) or not; consumers in turns (pingpong) with tiles of 64x256
and 128x128; raster groups of 4, 8, 16 cluster rows; for problems of few tiles 2 or 4 blocks that share K; for up to 256
rows the kernel for few rows with tiles of 32 to 224 columns, K whole or in two parts.  Configurations that do not suit
a problem (more blocks than can run at once where they must, fewer than half the multiprocessors) are left out.

First each kernel is compared with ``torch`` alone; then the three that are furthest ahead of it run in turns with what
the model takes (:mod:`cute_dialect.op.model`), a sixth of a second each: long enough that the chip's power limit finds
the clock that goes with a kernel (it moves clocks by more than kernels differ; in shorter turns one that needs more
power would borrow the others').  The best goes to the user's table (``cute_dialect.op.choice``), which ``mm`` asks
first; the model's choice stays where
nothing is faster by one percent.  ``cute-bench gemm_tune`` measures the same and saves nothing.

    cute-bench gemm --tune --shapes 128x8192x8192 4096x4096x14336 --element bf16
"""

# torch is not there where the types are checked.
# pyright: reportMissingImports=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownLambdaType=false, reportUnknownParameterType=false

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from functools import cache
from typing import TYPE_CHECKING

from cute_dialect.kernels.gemm.config import BITS, GemmConfig
from cute_dialect.kernels.gemm.skinny_config import SkinnyConfig, deepest
from cute_dialect.op.choice import Choice, Problem, few_rows, save
from cute_dialect.op.gemm import Runner
from cute_dialect.op.model import best as predicted
from cute_dialect.tools.bench_add import BenchError
from cute_dialect.tools.bench_gemm import LARGE, check, inputs, measure
from cute_dialect.tools.bench_timing import compare

if TYPE_CHECKING:  # pragma: no cover
    from pathlib import Path

__all__ = ["SHAPES", "build", "problems", "run", "save_best", "space", "suits"]

SHAPES = (*LARGE, (128, 8192, 8192), (256, 4096, 8192), (512, 8192, 4096))
"""(M, N, K)"""
OUTPUTS = {"f16": "f16", "bf16": "bf16", "f8E4M3FN": "bf16", "tf32": "f32"}
_FINALISTS = 3
_TURNS, _TURN = 4, 160_000
"""Turns of each finalist, and how many microseconds of it one is."""
_MARGIN = 1.01
"""The factor by which another one must be faster than the model's choice."""


def problems(shapes: Sequence[tuple[int, int, int]] = (), element: str = "f16") -> list[Problem]:
    """List what is tuned: rows of A and of B contiguous.  Raises ValueError for an element that ``mm`` lacks."""
    if element not in OUTPUTS:
        raise ValueError(f"expected an element of {', '.join(OUTPUTS)}, got {element!r}")
    return [Problem(*shape, element=element, output=OUTPUTS[element]) for shape in shapes or SHAPES]


@cache
def space(element: str = "f16") -> tuple[Choice, ...]:
    """List all configurations for a type of A and B."""
    output, k = OUTPUTS[element], 1024 // BITS[element]
    whole = GemmConfig(element=element, output=output, tile=(128, 256, k), deferred=BITS[output] == 16)
    one = whole._replace(cluster_m=1, deferred=False)
    flat, small = one._replace(serpentine=False), {"tile": (128, 128, k), "stages": 6}
    pingpong = one._replace(schedule="pingpong")
    found = [
        *(Choice(whole._replace(group=g)) for g in (4, 8, 16)),
        Choice(whole._replace(deferred=False)),
        Choice(whole._replace(cluster_m=1, cluster_n=2)),
        Choice(whole._replace(cluster_m=1)),
        Choice(one),
        Choice(whole._replace(**small)),
        Choice(one._replace(**small)),
        Choice(one._replace(tile=(128, 192, k))),
        Choice(whole._replace(tile=(128, 192, k), cluster_m=1)),
        *(Choice(pingpong._replace(tile=(64, 256, k), stages=4, cluster_m=n)) for n in (1, 2)),
        *(Choice(pingpong._replace(tile=(128, 128, k), stages=6, cluster_m=n)) for n in (1, 2)),
    ]
    shared = whole._replace(stream_k=True)
    found += [Choice(shared), Choice(shared._replace(deferred=False)), Choice(shared._replace(cluster_m=1))]
    found.append(Choice(shared._replace(cluster_m=1, deferred=False)))
    if BITS[output] == 16:
        found += [Choice(flat._replace(cluster_n=n), parts) for n in (1, 2) for parts in (2, 4)]
        found += [Choice(flat._replace(**small, cluster_n=n), 2) for n in (1, 2)]
    few = SkinnyConfig(element=element, output=output, direct=BITS[output] > 16)
    for rows in (64, 128):
        for columns in (32, *range(64, 225, 32)):
            c = few._replace(rows=rows, columns=columns, direct=few.direct or columns == 32)
            found.append(few_rows(deepest(c)))
        found += [few_rows(deepest(few._replace(rows=rows, columns=n, parts=2))) for n in (64, 128)]
    return tuple(dict.fromkeys(found))


def build(folder: str, chip: str, shapes: Sequence[tuple[int, int, int]] = (), element: str = "f16") -> list[str]:
    """Compile what suits any of the shapes into ``folder/NAME``; gives what ptxas says."""
    from cute_dialect.op.gemm import text_of
    from cute_dialect.pipelines import compile as compile_cute

    said: list[str] = []
    for choice in _needed(problems(shapes, element), element):
        module = compile_cute(text_of(choice), chip=chip, filename=f"{choice.name}.mlir")
        module.save(os.path.join(folder, choice.name))
        said.append(f"{choice.name}: {module.report.strip().splitlines()[-1]}")
    return said


def _needed(wanted: Sequence[Problem], element: str) -> list[Choice]:
    found = [c for c in space(element) if any(suits(c, p) for p in wanted)]
    return list(dict.fromkeys([*found, *(predicted(p) for p in wanted)]))


def run(
    folder: str,
    *,
    runs: int,
    large: bool,
    say: Callable[[str], None],
    shapes: Sequence[tuple[int, int, int]] = (),
    element: str = "f16",
) -> dict[str, object]:
    """Measure the space; a row for each pair of a kernel that is right and a problem."""
    from cute_dialect.runtime import load

    wanted = problems(shapes, element)
    runners = {c: Runner(c, load(os.path.join(folder, c.name))) for c in _needed(wanted, element)}
    rows: list[dict[str, object]] = []
    for problem in wanted:
        rule = predicted(problem)
        found: list[tuple[float, Choice, dict[str, object]]] = []
        for choice, runner in runners.items():
            if choice != rule and not suits(choice, problem):
                continue
            try:
                check(runner, problem[:3] if problem.m <= 512 else (1000, 1000, 1008), integers=True, repeats=2)
                row = measure(runner, problem, runs, integers=False)
            except BenchError as e:
                say(f"  WRONG: {e}")
                continue
            found.append((float(str(row["ratio"])), choice, row))
        if not found:
            raise BenchError(f"{problem.key}: no kernel gives the right result")
        found.sort(key=lambda x: x[0], reverse=True)
        finalists = [choice for _, choice, _ in found[:_FINALISTS]]
        if rule not in finalists and any(choice == rule for _, choice, _ in found):
            finalists.append(rule)
        times = in_turns([runners[c] for c in finalists], problem, runs)
        best = min(finalists, key=lambda c: times[c.name] / (_MARGIN if c == rule else 1.0))
        for ratio, choice, row in found:
            row.update(name=problem.key, kernel=choice.name, best=choice == best)
            rows.append(row)
            if choice == best:
                say(f"  {problem.key}: best {choice.name} {ratio:.3f}; the model {rule.name}")
    return {"rows": rows}


def in_turns(runners: Sequence[Runner], problem: Problem, runs: int) -> dict[str, float]:
    """Measure kernels that take turns of :data:`_TURN`: median microseconds, by name."""
    m, n, k = problem[:3]
    a, b, c = inputs(problem, integers=False)

    def call(runner: Runner) -> Callable[[], object]:
        return lambda: runner(a, b, c)

    contestants = [(r.choice.name, call(r)) for r in runners]
    traffic = a.element_size() * (m * k + n * k) + c.element_size() * m * n
    fastest = min(sample.median for sample in compare(contestants, traffic=traffic, runs=8).values())
    share = max(runs // _TURNS, min(int(_TURN / fastest), 1000))
    samples = compare(contestants, traffic=traffic, runs=share * _TURNS, rounds=_TURNS)
    return {name: sample.median for name, sample in samples.items()}


def save_best(result: dict[str, object], gpu: str) -> Path:
    """Save the best kernels of :func:`run` in the user's table for a GPU; gives its path."""
    names = {c.name: c for element in OUTPUTS for c in space(element)}
    found: dict[str, tuple[Choice, float]] = {}
    rows = result["rows"]
    assert isinstance(rows, list)
    for row in rows:
        if row["best"]:
            key = str(row["name"])
            choice = names.get(str(row["kernel"])) or predicted(Problem.of_key(key))
            found[key] = (choice, float(row["ours"]))
    return save(gpu, found)


def suits(choice: Choice, p: Problem) -> bool:
    """Return whether it is worth measuring: see the module."""
    c, s = choice.config, choice.skinny
    if s is not None:
        blocks = -(-p.m // s.rows) * -(-p.n // (s.columns * s.share)) * s.cluster
        return p.m <= (s.live or 256) and (s.rows == 128 or p.m <= 64) and c.sms // 2 <= blocks <= 2 * c.sms
    blocks = -(-p.m // (c.tile[0] * c.cluster_m)) * -(-p.n // (c.tile[1] * c.cluster_n)) * c.cluster * choice.parts
    return blocks <= c.sms if choice.parts > 1 else p.m > 512
