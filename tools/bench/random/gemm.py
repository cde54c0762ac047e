"""``cute-bench gemm --random N --seed S``: GEMM on random problems without tuning, compared with ``torch`` (cuBLAS).

M is drawn from 16 to 16384, N and K from 64 to 16384, log-uniform.  In a quarter of the problems all three are powers
of two or 3/4 of a power of two.  Elements alternate between f16, bf16, e4m3 and tf32.  A and B are row-major or
column-major, with leading dimensions of multiples of 16 bytes for TMA.  A seed always gives the same problems.  ``mm``
without user tuning selects the kernel and copies operands if necessary.  Operands that cuBLAS does not support (8-bit
floats that are not contiguous along K) are copied for it, too.  Each row reports the copies.

Each result is compared with torch's and, if that is fast enough, exactly with the float64 product of small integers.
Then both run with a cold L2 in alternating rounds on the same random normal data.

    cute-bench gemm --random 160 --seed 1 --json random.json
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from math import exp, log
from typing import Any

from cute_dialect.kernels.gemm.config import BITS
from cute_dialect.op.arrays.operand_views import Matrix
from cute_dialect.op.execute.kernels import Runner, any_text, run_any, text_of
from cute_dialect.op.select.gemm_dispatch import AnyConfig, GemmDispatch, way_of
from cute_dialect.op.select.kernel_choice import Choice, Problem
from cute_dialect.runtime.progress import track
from cute_dialect.tools.bench.cases.gemm import checked, chosen, copied_for_torch, measured
from cute_dialect.tools.bench.runner import Row, Say, build_kernels, loaded, ratio_lines

__all__ = ["build", "computed", "of_menu", "problems", "run", "summary", "way_for"]

OUTPUTS = {"f16": "f16", "bf16": "bf16", "f8E4M3FN": "bf16", "tf32": "f32"}
EXACT = 2e11
"""Maximum FLOPs of a problem to compare with the float64 product."""


def problems(count: int, seed: int) -> list[Problem]:
    """Return the first ``count`` problems of a seed.

    >>> problems(2, 1) == problems(3, 1)[:2]
    True
    """
    rng, majors = random.Random(seed), random.Random(f"majors {seed}")
    return [_problem(rng, majors, element) for element, _ in zip(_around(OUTPUTS), range(count))]


def _around(names: Iterable[str]) -> Iterable[str]:
    listed = list(names)
    while True:
        yield from listed


def _problem(rng: random.Random, majors: random.Random, element: str) -> Problem:
    """Draw a problem.

    ``majors`` is a separate generator for element types other than 16-bit, to keep the problems of a seed stable.
    """
    even = 128 // BITS[element]  # number of elements in 16 bytes
    if rng.random() < 0.25:
        sizes = [2**p * f // 4 for p in range(6, 15) for f in (3, 4)]
        m, n, k = (rng.choice([s for s in sizes if s >= least]) for least in (16, 64, 64))
    else:
        m, n, k = (round(exp(rng.uniform(log(least), log(16384)))) for least in (16, 64, 64))
    of_majors = rng if BITS[element] == 16 else majors
    major_a, major_b = of_majors.choice("km"), of_majors.choice("kn")
    n, k = (max(64, x // step * step) for x, step in ((n, max(even, 8)), (k, even)))
    m = m if major_a == "k" else max(16, m // even * even)
    return Problem(m, n, k, element, OUTPUTS[element], major_a, major_b)


def way_for(problem: Problem) -> GemmDispatch:
    """Return the dispatch of ``mm`` for a problem on an H200 without user tuning.

    >>> way_for(Problem(4096, 2048, 1024, "tf32", "f32", "m", "n")).copied
    ('b',)
    """
    p, item, of_result = problem, BITS[problem.element] // 8, BITS[problem.output] // 8
    a = Matrix((p.m, p.k), (p.k, 1) if p.major_a == "k" else (1, p.m), item, 0)
    b = Matrix((p.k, p.n), (1, p.k) if p.major_b == "k" else (p.n, 1), item, 0)
    tf32 = p.element == "tf32"
    way = way_of(
        a, b, Matrix((p.m, p.n), (p.n, 1), of_result, 0), "f32" if tf32 else p.element, p.output,
        arithmetic="tf32" if tf32 else "",
    )  # fmt: skip
    return way if way.choice is None else way._replace(choice=chosen(way.problem))


def of_menu(problem: Problem) -> Problem:
    """Return the problem after the copies that the menu of kernels requires.

    Kernels for element types other than 16-bit need A or B contiguous along K.  If neither is, the smaller is copied.

    >>> of_menu(Problem(64, 4096, 256, "tf32", "f32", "m", "n")).key
    'tf32-f32-kn 64x4096x256'
    """
    if BITS[problem.element] == 16 or (problem.major_a, problem.major_b) != ("m", "n"):
        return problem
    return problem._replace(major_a="k") if problem.m < problem.n else problem._replace(major_b="k")


def _kernel_of(way: GemmDispatch) -> Choice | AnyConfig:
    found = way.choice or way.other
    assert found is not None
    return found


def build(folder: str, chip: str, count: int, seed: int) -> list[str]:
    """Compile the kernels of the problems into ``folder/NAME``, in parallel processes; return the reports of ptxas."""
    kernels = [_kernel_of(way_for(p)) for p in problems(count, seed)]
    return build_kernels({c.name: partial(_text_of, c) for c in kernels}, folder, chip)


def _text_of(kernel: Choice | AnyConfig) -> str:
    return text_of(kernel) if isinstance(kernel, Choice) else any_text(kernel)


def computed(way: GemmDispatch, kernel: Callable[..., object], a: Any, b: Any, c: Any) -> object:
    """Compute ``c = a b^T`` like ``mm``, with the operands in ``way.copied`` copied to be contiguous along K."""
    a = a.contiguous() if "a" in way.copied else a
    b = b.contiguous() if "b" in way.copied else b
    return kernel(a, b, c)


def run(folder: str, *, runs: int, large: bool, say: Say, count: int, seed: int) -> dict[str, object]:
    """Check and measure the kernels of :func:`build`.  Raises ``BenchError`` if a result is wrong."""
    kernels: dict[str, Callable[..., object]] = {}
    rows: list[Row] = []
    for number, problem in enumerate(track(problems(count, seed), "measuring", "problems")):
        way = way_for(problem)
        kernel = _kernel_of(way)
        name = kernel.name
        if name not in kernels:
            module = loaded(folder, name)
            kernels[name] = run_any(kernel, module) if not isinstance(kernel, Choice) else Runner(kernel, module)
        ours = partial(computed, way, kernels[name])
        m, n, k = problem[:3]
        if 2.0 * m * n * k <= EXACT:
            checked(problem, ours, name, integers=True, repeats=2)
        row = {**measured(problem, ours, name, max(runs // 5, 8), integers=False), "kernel": name}
        copies = {"ours": list(way.copied), "torch": list(copied_for_torch(problem))}
        rows.append(row | ({"copied": copies} if any(copies.values()) else {}))
        said = "".join(f", {who} copies {' and '.join(x)}" for who, x in copies.items() if x)
        say(f"  {number + 1:4} {row['name']}  {name}  {row['ratio']:.3f}{said}")
    for line in summary(rows):
        say(line)
    return {"rows": rows}


def summary(rows: Sequence[Mapping[str, Any]], *, ahead: str = "ahead") -> list[str]:
    """Return the lines of a table of all problems, each element type, and large and small problems.

    >>> row = {"name": "gemm f16 kk 1024x1024x1024 normal", "ratio": 1.1}
    >>> summary([row, {**row, "ratio": 0.9}])[1].split()
    ['all', '2', '0.995', '0.900', '0.900', '1', 'of', '2']
    """
    classes: dict[str, list[float]] = {"all": []} | {e: [] for e in OUTPUTS} | {">= 1e11 flop": [], "< 1e10 flop": []}
    for r in rows:
        _, element, _, shape, _ = str(r["name"]).split()
        m, n, k = map(float, shape.split("x"))
        sizes = {">= 1e11 flop": 2 * m * n * k >= 1e11, "< 1e10 flop": 2 * m * n * k < 1e10}
        for name in ("all", element, *(size for size, fits in sizes.items() if fits)):
            classes[name].append(r["ratio"])
    return ratio_lines(classes, ahead=ahead)
