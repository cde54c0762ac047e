"""``cute-bench gemm_tune``: the search space of the Hopper GEMM, each configuration on each problem.

The space, f16 with f32 accumulation: tiles 128x256 and 128x128, clusters of one, two along M, two along N, stores
deferred or not, raster groups of 4, 8, 16 cluster rows, and for problems of few tiles 2 or 4 blocks that share K.  The
best of each problem is what ``cute_dialect.op.gemm.choose`` should say.
"""

# torch is not there where the types are checked.
# pyright: reportMissingImports=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownLambdaType=false, reportUnknownParameterType=false

from __future__ import annotations

import os
from collections.abc import Callable

from cute_dialect.kernels.gemm_sm90 import GemmConfig
from cute_dialect.op.gemm import Choice, Problem, Runner, choose
from cute_dialect.tools.bench_gemm import LARGE, check, measure

__all__ = ["SPACE", "build", "run"]

_ONE = GemmConfig(cluster_m=1, deferred=False)
_FLAT = _ONE._replace(serpentine=False)
_SMALL = (128, 128, 64)
SPACE: tuple[Choice, ...] = (
    *(Choice(GemmConfig(group=g)) for g in (4, 8, 16)),
    Choice(GemmConfig(deferred=False)),
    Choice(GemmConfig(cluster_m=1, cluster_n=2)),
    Choice(GemmConfig(cluster_m=1)),
    Choice(_ONE),
    Choice(GemmConfig(tile=_SMALL, stages=6)),
    *(Choice(_FLAT._replace(cluster_n=n), parts) for n in (1, 2) for parts in (2, 4)),
    *(Choice(_FLAT._replace(tile=_SMALL, stages=6, cluster_n=n), 2) for n in (1, 2)),
)


def build(folder: str, chip: str) -> list[str]:
    """Compile the space into ``folder/NAME``; gives what ptxas says."""
    from cute_dialect.op.gemm import text_of
    from cute_dialect.pipelines import compile as compile_cute

    said: list[str] = []
    for choice in SPACE:
        module = compile_cute(text_of(choice), chip=chip, filename=f"{choice.name}.mlir")
        module.save(os.path.join(folder, choice.name))
        said.append(f"{choice.name}: {module.report.strip().splitlines()[-1]}")
    return said


def run(folder: str, *, runs: int, large: bool, say: Callable[[str], None]) -> dict[str, object]:
    """Measure the space; a row for each pair."""
    from cute_dialect.pipelines import load

    rows: list[dict[str, object]] = []
    runners = [Runner(c, load(os.path.join(folder, c.name))) for c in SPACE]
    for shape in (*LARGE, (128, 8192, 8192), (256, 4096, 8192), (512, 8192, 4096)):
        problem = Problem(*shape)
        found: list[dict[str, object]] = []
        for runner in runners:
            if not _suits(runner.choice, problem):
                continue
            check(runner, shape if shape[0] <= 512 else (1000, 1000, 1000), integers=True, repeats=2)
            found.append(measure(runner, problem, runs, integers=False))
        best = max(found, key=lambda r: float(str(r["ratio"])))
        say(f"  {shape}: best {best['kernel']} {best['ratio']:.3f}; chosen {choose(problem).name.split('-', 3)[3]}")
        rows += found
    return {"rows": rows}


def _suits(choice: Choice, p: Problem) -> bool:
    c = choice.config
    blocks = -(-p.m // (c.tile[0] * c.cluster_m)) * -(-p.n // (c.tile[1] * c.cluster_n)) * c.cluster * choice.parts
    if choice.parts > 1:
        return blocks <= c.sms
    return p.m > 512
