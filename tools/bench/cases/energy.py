"""``cute-bench energy``: power, clock and energy per FLOP of large GEMM kernels.

Each kernel is launched without pause on random normal data and compared with torch.  A large GEMM reaches the power
limit of the GPU, so its energy per FLOP determines its speed.
"""

from __future__ import annotations

import time

from cute_dialect.kernels.gemm.config import GemmConfig
from cute_dialect.op.select.kernel_choice import Choice, Problem
from cute_dialect.runtime.progress import track
from cute_dialect.tools.bench.cases.gemm import build_choices, check, inputs, peer_of, runner_of
from cute_dialect.tools.bench.profile import steady_load
from cute_dialect.tools.bench.runner import Say, row

__all__ = ["KERNELS", "PROBLEM", "SECONDS", "build", "run"]

PROBLEM = Problem(8192, 8192, 8192)
SECONDS = 1.2
_CONFIG = GemmConfig()
_SWAPPED = _CONFIG._replace(major_c="m", major_a="k", major_b="k")
KERNELS = tuple(
    Choice(config)
    for config in (
        _CONFIG,  # 128x256 tile, B is multicast to two blocks
        _CONFIG._replace(cluster_m=1),
        _CONFIG._replace(cluster_m=1, cluster_n=2),
        _CONFIG._replace(group=4),
        _CONFIG._replace(group=16),
        _CONFIG._replace(deferred=False),
        _SWAPPED,
        _CONFIG._replace(tile=(128, 224, 64)),
        _CONFIG._replace(tile=(128, 192, 64), cluster_m=2, cluster_n=2),
        _CONFIG._replace(tile=(128, 192, 64), cluster_m=4),
        _CONFIG._replace(tile=(128, 128, 64), cluster_m=2, cluster_n=2, stages=6),
        _CONFIG._replace(tile=(256, 128, 64), deferred=False),
    )
)
"""Variants with more or less data sharing: clusters, tiles, tile order, time of the stores."""


def build(folder: str, chip: str) -> list[str]:
    """Compile the kernels into ``folder/NAME``, in parallel processes; return the reports of ptxas."""
    return build_choices(KERNELS, folder, chip)


def run(folder: str, *, runs: int, large: bool, say: Say) -> dict[str, object]:
    """Check and measure the kernels of :func:`build`.  Raises ``BenchError`` if a result is wrong."""
    a, b, c = inputs(PROBLEM, integers=False)
    peer, _ = peer_of(PROBLEM, a, b)
    m, n, k = PROBLEM[:3]
    flop = 2.0 * m * n * k
    steady_load(peer, flop, SECONDS)  # Warm up, so that leakage is equal for all kernels.
    found = {"torch": steady_load(peer, flop, SECONDS)}
    for choice in track(KERNELS, "measuring", "kernels"):
        runner = runner_of(folder, choice)
        check(runner, (1024, 1024, 1024), integers=True, repeats=2)
        time.sleep(0.3)
        found[choice.name] = steady_load(lambda runner=runner: runner(a, b, c), flop, SECONDS)
        say(f"  {choice.name}: {found[choice.name]}")
    peers = found["torch"]["TFLOP/s"]
    rows = [
        row(
            f"gemm f16 {m}x{n}x{k}", "TFLOP/s", x["TFLOP/s"], peers, kernel=name, W=x["W"], MHz=x["MHz"],
            **{"pJ/FLOP": x["W"] / x["TFLOP/s"]},
        )
        for name, x in found.items()
    ]  # fmt: skip
    return {"rows": rows}
