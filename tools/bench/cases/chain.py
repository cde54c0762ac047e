"""``cute-bench chain``: chains of dependent GEMMs with and without programmatic dependent launch.

Each GEMM multiplies the result of the previous one.  Twenty GEMMs of N x N f16 matrices are captured in a CUDA graph
and replayed.  A row is the time per GEMM, compared with ``torch.mm``.  ``op`` uses dependent launch.  First, the
results with and without dependent launch are compared bitwise.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from cute_dialect.kernels.gemm import gemm_text
from cute_dialect.kernels.gemm.config import SplitConfig
from cute_dialect.op.select.cost_model import best, costs_of
from cute_dialect.op.select.kernel_choice import Choice, Problem
from cute_dialect.runtime.progress import track
from cute_dialect.tools.bench.cases.gemm import runner_of
from cute_dialect.tools.bench.checks import BenchError
from cute_dialect.tools.bench.peers import normal
from cute_dialect.tools.bench.runner import Row, Say, build_kernels, median_times, row

__all__ = ["build", "kernels", "plain_text", "run"]

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
    return build_kernels({c.name: partial(plain_text, c) for size in SIZES for c in kernels(size)}, folder, chip)


def plain_text(choice: Choice) -> str:
    """Return the text of a kernel with its own setting of dependent launch, which ``op`` would override."""
    return gemm_text(SplitConfig(choice.config, choice.parts) if choice.parts > 1 else choice.config)


def run(folder: str, *, runs: int, large: bool, say: Say) -> dict[str, object]:
    """Check and measure the kernels of :func:`build`.  Raises ``BenchError`` if a result is wrong."""
    import torch

    rows: list[Row] = []
    for size in track(SIZES, "measuring", "sizes"):
        torch.manual_seed(0)
        factor, first = normal("f16", size, size) * size**-0.5, normal("f16", size, size)
        usual, dependent = [runner_of(folder, c) for c in kernels(size)]
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
        times = {n: t / LINKS for n, t in median_times(calls, traffic=2**40, runs=runs).items()}
        for name in ("usual", "dependent"):
            rows.append(row(f"chain {name} {size}", "us", times[name], times["torch"]))
            say(f"  {name} {size}: {times[name]:.2f} us per GEMM, torch {times['torch']:.2f}, {rows[-1]['ratio']:.3f}")
    return {"rows": rows}


def _captured(call: Callable[[Any, Any, Any], object], first: Any, factor: Any) -> tuple[Any, Any]:
    """Return a CUDA graph of a chain of GEMMs, and its output tensor."""
    import torch

    results = [torch.empty_like(first) for _ in range(2)]

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
