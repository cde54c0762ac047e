"""``cute-bench gemm --random N --seed S``: matrix multiply on problems that nobody tuned, beside ``torch`` (cuBLAS).

M is drawn from 16 to 16384, N and K from 64 to 16384, evenly on a logarithmic scale; in a quarter of the problems all
three are powers of two or three quarters of them.  Elements are f16, bf16, e4m3 and tf32, in turn; A and B of 16-bit
elements have any contiguous mode.  Rows are multiples of 16 bytes, as TMA wants them.  A seed always gives the same
problems.  The kernel is the one that ``mm`` takes where the user has tuned nothing.

Each result is compared with torch's, and, where that does not take long, with the float64 product on small integers,
bit for bit.  Then both run with a cold L2, in turns, on the same random normal data.

    cute-bench gemm --random 160 --seed 1 --json random.json
"""

# torch is not there where the types are checked.
# pyright: reportMissingImports=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownLambdaType=false, reportUnknownParameterType=false

from __future__ import annotations

import os
import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from math import exp, log

from cute_dialect.kernels.gemm.config import BITS
from cute_dialect.op.choosing.choice import Choice, Problem
from cute_dialect.op.compiled import Runner, text_of
from cute_dialect.tools.bench_gemm import check, chosen, measure

__all__ = ["build", "problems", "run", "summary"]

OUTPUTS = {"f16": "f16", "bf16": "bf16", "f8E4M3FN": "bf16", "tf32": "f32"}
EXACT = 2e11
"""Flops of a problem up to which its integers are compared with the float64 product."""


def problems(count: int, seed: int) -> list[Problem]:
    """Return ``count`` problems of a seed.

    >>> problems(2, 1) == problems(3, 1)[:2]
    True
    """
    rng = random.Random(seed)
    return [_problem(rng, element) for element, _ in zip(_around(OUTPUTS), range(count))]


def _around(names: Iterable[str]) -> Iterable[str]:
    listed = list(names)
    while True:
        yield from listed


def _problem(rng: random.Random, element: str) -> Problem:
    even = 128 // BITS[element]  # elements in 16 bytes
    if rng.random() < 0.25:
        sizes = [2**p * f // 4 for p in range(6, 15) for f in (3, 4)]
        m, n, k = (rng.choice([s for s in sizes if s >= least]) for least in (16, 64, 64))
    else:
        m, n, k = (round(exp(rng.uniform(log(least), log(16384)))) for least in (16, 64, 64))
    major_a, major_b = (rng.choice("km"), rng.choice("kn")) if BITS[element] == 16 else ("k", "k")
    n, k = (max(64, x // step * step) for x, step in ((n, max(even, 8)), (k, even)))
    m = m if major_a == "k" else max(16, m // even * even)
    return Problem(m, n, k, element, OUTPUTS[element], major_a, major_b)


def build(folder: str, chip: str, count: int, seed: int) -> list[str]:
    """Compile the kernels that the problems need into ``folder/NAME``, in processes; gives what ptxas says."""
    return build_all(list(map(chosen, problems(count, seed))), folder, chip)


def build_all(kernels: Sequence[Choice], folder: str, chip: str) -> list[str]:
    """Compile kernels into ``folder/NAME``, each once, in processes; gives what ptxas says."""
    from concurrent.futures import ProcessPoolExecutor
    from multiprocessing import get_context

    choices = list({c.name: c for c in kernels}.values())
    with ProcessPoolExecutor(os.cpu_count(), get_context("spawn")) as pool:
        return list(pool.map(_build_one, choices, [folder] * len(choices), [chip] * len(choices)))


def _build_one(choice: Choice, folder: str, chip: str) -> str:
    from cute_dialect.pipelines import compile as compile_cute

    module = compile_cute(text_of(choice), chip=chip, filename=f"{choice.name}.mlir")
    module.save(os.path.join(folder, choice.name))
    return f"{choice.name}: {module.report.strip().splitlines()[-1]}"


def run(folder: str, *, runs: int, large: bool, say: Callable[[str], None], count: int, seed: int) -> dict[str, object]:
    """Check and measure what :func:`build` made.  Raises ``BenchError`` when a result is wrong."""
    from cute_dialect.runtime import load

    runners: dict[str, Runner] = {}
    rows: list[dict[str, object]] = []
    for number, problem in enumerate(problems(count, seed)):
        choice = chosen(problem)
        if choice.name not in runners:
            runners[choice.name] = Runner(choice, load(os.path.join(folder, choice.name)))
        runner = runners[choice.name]
        m, n, k = problem[:3]
        if 2.0 * m * n * k <= EXACT:
            check(runner, problem[:3], integers=True, repeats=2)
        row = measure(runner, problem, max(runs // 5, 8), integers=False)
        rows.append({**row, "kernel": choice.name})
        say(f"  {number + 1:4} {row['name']}  {choice.name}  {float(str(row['ratio'])):.3f}")
    for line in summary(rows):
        say(line)
    return {"rows": rows}


def summary(rows: Sequence[Mapping[str, object]]) -> list[str]:
    """Return lines of a table: all problems, each type, large and small ones: geometric mean, 5th percentile, least,
    how many are ahead.

    >>> row = {"name": "gemm f16 kk 1024x1024x1024 normal", "ratio": 1.1}
    >>> summary([row, {**row, "ratio": 0.9}])[1].split()
    ['all', '0.995', '0.900', '0.900', '1', 'of', '2']
    """
    classes: list[tuple[str, Callable[[str, float], bool]]] = [
        ("all", lambda element, flop: True),
        *((e, lambda element, flop, e=e: element == e) for e in OUTPUTS),
        (">= 1e11 flop", lambda element, flop: flop >= 1e11),
        ("< 1e10 flop", lambda element, flop: flop < 1e10),
    ]
    lines = [f"  {'':14} {'geometric mean':>14} {'5th percentile':>14} {'least':>7} {'ahead':>12}"]
    for name, takes in classes:
        found = sorted(float(str(r["ratio"])) for r in rows if takes(*_class(str(r["name"]))))
        if found:
            mean = exp(sum(map(log, found)) / len(found))
            ahead = f"{sum(x >= 1 for x in found)} of {len(found)}"
            lines.append(f"  {name:14} {mean:14.3f} {found[len(found) // 20]:14.3f} {found[0]:7.3f} {ahead:>12}")
    return lines


def _class(name: str) -> tuple[str, float]:
    _, element, _, shape, _ = name.split()
    m, n, k = map(float, shape.split("x"))
    return element, 2 * m * n * k
