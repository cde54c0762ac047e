"""``cute-bench gemm --batched``: products of batches beside ``torch.bmm`` (cuBLAS).

Both orders of B, f16 and bf16.  Each kernel is checked first, on the problem's own sizes and on such as are no
multiples of a tile, against the float64 product: small integers bit for bit, normal data, outputs poisoned, runs alike.
Then TFLOP/s with a cold L2, in turns.  The kernel is the one that ``op.bmm`` takes where the user has tuned nothing.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from math import exp, log

from cute_dialect.op.choice import Problem
from cute_dialect.op.gemm import Runner
from cute_dialect.tools.bench_gemm import check, chosen, measure
from cute_dialect.tools.bench_gemm_random import build_all

__all__ = ["PROBLEMS", "build", "run"]

SHAPES = ((32, 2048, 2048, 128), (128, 512, 512, 512), (16, 1024, 1024, 4096), (512, 128, 128, 64))
"""(L, M, N, K)"""
PROBLEMS: tuple[Problem, ...] = tuple(
    Problem(m, n, k, element, element, "k", major_b, matrices)
    for element, major_b in (("f16", "k"), ("f16", "n"), ("bf16", "n"))
    for matrices, m, n, k in SHAPES
)
ODD = ((200, 264, 72, 5), (1, 8, 8, 3), (130, 520, 328, 7))
"""(M, N, K, L)"""


def build(folder: str, chip: str) -> list[str]:
    """Compile the kernels into ``folder/NAME``, in processes; gives what ptxas says."""
    return build_all(list(map(chosen, PROBLEMS)), folder, chip)


def run(folder: str, *, runs: int, large: bool, say: Callable[[str], None]) -> dict[str, object]:
    """Check and measure what :func:`build` made.  Raises ``BenchError`` when a result is wrong."""
    from cute_dialect.runtime import load

    runners = {c.name: Runner(c, load(os.path.join(folder, c.name))) for c in map(chosen, PROBLEMS)}
    for name, runner in runners.items():
        worst = 0.0
        for number, shape in enumerate(ODD):
            for integers in (True, False):
                worst = max(worst, check(runner, shape, integers=integers, repeats=3 if number else 100))
        say(f"  right: {name}, normal (largest error {worst:.1e} of sqrt(K)) and integers (exact)")
    rows: list[dict[str, object]] = []
    for problem in PROBLEMS:
        runner = runners[chosen(problem).name]
        check(runner, (*problem[:3], problem.matrices), integers=True, repeats=3)
        rows.append(measure(runner, problem, runs, integers=False))
        say(f"  {rows[-1]['name']}  {runner.choice.name}  {float(str(rows[-1]['ratio'])):.3f}")
    ratios = [float(str(r["ratio"])) for r in rows]
    say(f"  geometric mean {exp(sum(map(log, ratios)) / len(ratios)):.3f}, least {min(ratios):.3f}")
    return {"rows": rows}
