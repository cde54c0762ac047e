"""``cute-bench gemm --batched``: batched GEMMs compared with ``torch.bmm`` (cuBLAS).

B is row-major or column-major, elements are f16 or bf16.  Each kernel is first checked against float64, on the problem
sizes and on sizes that are not multiples of a tile.  Integers must be exact, outputs are poisoned, and runs repeated.
Then TFLOP/s with a cold L2 are measured in alternating rounds.  ``op.bmm`` without user tuning selects the kernel.

``--kernels N`` measures N kernels per problem: the selected one and those with the next lowest predicted times.  The
result shows the distance of the selected kernel from the best.
"""

from __future__ import annotations

from cute_dialect.op.select.cost_model import ranked
from cute_dialect.op.select.kernel_choice import Choice, Problem
from cute_dialect.runtime.progress import track
from cute_dialect.tools.bench.cases.gemm import build_choices, check, chosen, measure, runner_of
from cute_dialect.tools.bench.runner import Row, Say, geometric_mean

__all__ = ["PROBLEMS", "build", "candidates", "run"]

SHAPES = ((32, 2048, 2048, 128), (128, 512, 512, 512), (16, 1024, 1024, 4096), (512, 128, 128, 64))
"""(L, M, N, K)"""
PROBLEMS: tuple[Problem, ...] = tuple(
    Problem(m, n, k, element, element, "k", major_b, matrices)
    for element, major_b in (("f16", "k"), ("f16", "n"), ("bf16", "n"))
    for matrices, m, n, k in SHAPES
)
ODD = ((200, 264, 72, 5), (1, 8, 8, 3), (130, 520, 328, 7))
"""(M, N, K, L)"""


def candidates(problem: Problem, count: int) -> list[Choice]:
    """Return the selected kernel and the next by predicted time, ``count`` in all."""
    found = [chosen(problem), *(c for _, c in ranked(problem, count=count))]
    return list(dict.fromkeys(found))[:count]


def build(folder: str, chip: str, kernels: int = 1) -> list[str]:
    """Compile the kernels into ``folder/NAME``, in parallel processes; return the reports of ptxas."""
    return build_choices([c for p in PROBLEMS for c in candidates(p, kernels)], folder, chip)


def run(folder: str, *, runs: int, large: bool, say: Say, kernels: int = 1) -> dict[str, object]:
    """Check and measure the kernels of :func:`build`.  Raises ``BenchError`` if a result is wrong."""
    wanted = {c.name: c for p in PROBLEMS for c in candidates(p, kernels)}
    runners = {name: runner_of(folder, c) for name, c in wanted.items()}
    for name in track(list(runners), "checking", "kernels"):
        runner = runners[name]
        worst = 0.0
        for number, shape in enumerate(ODD):
            for integers in (True, False):
                worst = max(worst, check(runner, shape, integers=integers, repeats=3 if number else 100))
        say(f"  correct: {name}, normal (largest error {worst:.1e} sqrt(K)) and integers (exact)")
    rows: list[Row] = []
    others: list[Row] = []
    bests: list[float] = []
    for problem in track(PROBLEMS, "measuring", "problems"):
        found: list[Row] = []
        for choice in candidates(problem, kernels):
            runner = runners[choice.name]
            check(runner, (*problem[:3], problem.matrices), integers=True, repeats=3)
            found.append(measure(runner, problem, runs, integers=False))
            say(f"  {found[-1]['name']}  {choice.name}  {found[-1]['ratio']:.3f}")
        rows.append(found[0])
        others += found[1:]
        bests.append(max(r["ratio"] for r in found))
    for name, ratios in (("chosen", [r["ratio"] for r in rows]), ("best", bests)):
        say(f"  {name}: geometric mean {geometric_mean(ratios):.3f}, least {min(ratios):.3f}")
    return {"rows": rows, "others": others}
