"""``cute-bench chain``: chains of dependent GEMMs with and without programmatic dependent launch.

Each GEMM multiplies the result of the previous one.  Twenty GEMMs of N x N f16 matrices are captured in a CUDA graph
and replayed; a row is the time per GEMM, compared with ``torch.mm``.  ``op`` uses dependent launch.  First, the results
with and without dependent launch are compared bitwise.
"""

# torch may be missing when types are checked.
# pyright: reportMissingImports=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownLambdaType=false, reportUnknownParameterType=false

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any

from cute_dialect.op.execute.kernels import Runner
from cute_dialect.op.select.cost_model import best, costs_of
from cute_dialect.op.select.kernel_choice import Choice, Problem
from cute_dialect.op.select.timing import compare
from cute_dialect.runtime.progress import track
from cute_dialect.tools.bench.cases.elementwise_add import BenchError
from cute_dialect.tools.bench.parallel import in_processes

__all__ = ["build", "kernels", "run"]

SIZES = (128, 256, 512, 1024, 2048)
LINKS = 20


def kernels(size: int) -> list[Choice]:
    """Return the kernel with the lowest predicted time, without and with dependent launch.

    >>> [c.config.dependent for c in kernels(512)]
    [False, True]
    """
    found = best(Problem(size, size, size), costs_of("NVIDIA H200", 132))
    if found.skinny is not None:
        found = Choice(found.config._replace(tile=(64, 64, 64), stages=8, cluster_m=1, deferred=False))
    return [found, found._replace(config=found.config._replace(dependent=True))]


def build(folder: str, chip: str) -> list[str]:
    """Compile the kernels into ``folder/NAME``, in parallel processes; return the reports of ptxas."""
    found = {c.name: c for size in SIZES for c in kernels(size)}
    return in_processes(_build_one, [(c, folder, chip) for c in found.values()], list(found))


def _build_one(job: tuple[Choice, str, str]) -> str:
    """Compile a kernel with its own setting of dependent launch, which ``op`` would override."""
    from cute_dialect.kernels.gemm import gemm_text
    from cute_dialect.kernels.gemm.config import SplitConfig
    from cute_dialect.pipelines import compile as compile_cute

    choice, folder, chip = job
    text = gemm_text(SplitConfig(choice.config, choice.parts) if choice.parts > 1 else choice.config)
    module = compile_cute(text, chip=chip, filename=f"{choice.name}.mlir", keep_stages=False)
    module.save(os.path.join(folder, choice.name))
    return f"{choice.name}: {module.report.strip().splitlines()[-1]}"


def run(folder: str, *, runs: int, large: bool, say: Callable[[str], None]) -> dict[str, object]:
    """Check and measure the kernels of :func:`build`.  Raises ``BenchError`` if a result is wrong."""
    import torch

    from cute_dialect.runtime import load

    rows: list[dict[str, object]] = []
    for size in track(SIZES, "measuring", "sizes"):
        torch.manual_seed(0)
        factor = torch.randn(size, size, device="cuda", dtype=torch.float16) * size**-0.5
        first = torch.randn(size, size, device="cuda", dtype=torch.float16)
        usual, dependent = [Runner(c, load(os.path.join(folder, c.name))) for c in kernels(size)]
        chains: list[tuple[str, Callable[[Any, Any, Any], object]]] = [
            ("usual", usual),
            ("dependent", dependent),
            ("torch", lambda x, y, out: torch.mm(x, y.t(), out=out)),
        ]
        made = {name: _captured(call, first, factor) for name, call in chains}
        for graph, _ in made.values():
            graph.replay()
        torch.cuda.synchronize()
        if not torch.equal(made["usual"][1], made["dependent"][1]):
            raise BenchError(f"chain {size}: dependent launch changes the results")
        calls = [(name, graph.replay) for name, (graph, _) in made.items()]
        times = {n: t.median / LINKS for n, t in compare(calls, traffic=2**40, runs=runs).items()}
        for name in ("usual", "dependent"):
            ours, peer = times[name], times["torch"]
            rows.append(
                {"name": f"chain {name} {size}", "ours": ours, "peer": peer, "unit": "us", "ratio": peer / ours}
            )
            say(f"  {name} {size}: {ours:.2f} us per GEMM, torch {peer:.2f}, {peer / ours:.3f}")
    return {"rows": rows}


def _captured(call: Callable[[Any, Any, Any], object], first: Any, factor: Any) -> tuple[Any, Any]:
    """Return a CUDA graph of a chain of GEMMs, and its output tensor."""
    import torch

    results: Sequence[Any] = [torch.empty_like(first) for _ in range(2)]

    def chain() -> None:
        x = first
        for i in range(LINKS):
            call(x, factor, results[i % 2])
            x = results[i % 2]

    side = torch.cuda.Stream()
    with torch.cuda.stream(side):  # Allocations of the first call must not be captured.
        chain()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        chain()
    return graph, results[(LINKS - 1) % 2]
