"""``cute-bench sgemm``: the SGEMM ladder compared with ``torch.mm`` in f32 (cuBLAS without TF32).

Kernels are first checked against float64 on random normal data: odd sizes, rows not aligned to vectors, poisoned
outputs, and repeated runs with identical results.  Then TFLOP/s with a cold L2 are measured.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from cute_dialect.kernels.gemm.sgemm import RUNGS, sgemm_text
from cute_dialect.runtime.progress import track
from cute_dialect.tools.bench.checks import check_limit, check_outside, check_repeats, guarded
from cute_dialect.tools.bench.runner import Row, Say, build_kernels, loaded, median_times, row

if TYPE_CHECKING:  # pragma: no cover
    from cute_dialect.runtime.launch import CompiledModule

__all__ = ["CHECKS", "build", "run"]

CHECKS = (
    (1, 1, 1, 0), (37, 41, 19, 1), (128, 128, 128, 0), (300, 260, 136, 4), (129, 515, 1000, 3), (1024, 1024, 1000, 0),
)  # fmt: skip
"""M, N, K, and the row padding in elements."""


def sizes(rung: str) -> tuple[int, ...]:
    """Return the sizes to measure; slow rungs use only the smallest."""
    if rung in ("naive", "coalesced"):
        return (2048,)
    return (2048, 4096, 8192) if rung in ("warptile", "pipelined") else (2048, 4096)


def build(folder: str, chip: str) -> list[str]:
    """Compile all rungs into ``folder/RUNG``; return the reports of ptxas."""
    return build_kernels({rung: partial(sgemm_text, rung) for rung in RUNGS}, folder, chip)


def run(folder: str, *, runs: int, large: bool, say: Say) -> dict[str, object]:
    """Check and measure the kernels of :func:`build`.  Raises ``BenchError`` if a result is wrong."""
    import torch

    torch.backends.cuda.matmul.allow_tf32 = False
    rows: list[Row] = []
    for rung in track(RUNGS, "measuring", "kernels"):
        module = loaded(folder, rung)
        found = [check(module, rung, *case) for case in CHECKS]
        worst, by = max(e for e, _ in found), ", ".join(sorted({k for _, k in found}))
        say(f"  correct: {rung}, {len(CHECKS)} shapes, largest error {worst:.2f} of K eps |A||B|, by {by}")
        rows += [measure(module, rung, size, runs) for size in sizes(rung)]
    return {"rows": rows}


def check(module: CompiledModule, rung: str, m: int, n: int, k: int, more: int) -> tuple[float, str]:
    """Check one case; return the largest error and the kernel variant that ran.  Raises ``BenchError``."""
    import torch

    torch.manual_seed(0)
    (_, a), (_, b), (storage, c) = (
        guarded(torch.float32, (rows, columns), (columns + more, 1)) for rows, columns in ((m, k), (k, n), (m, n))
    )
    a.normal_()
    b.normal_()
    kernel, name = module.kernel("launch"), f"{rung} {(m, n, k)}"
    check_repeats(name, lambda: kernel(a, b, c), c, 11)
    bound = k * 2.0**-24 * (a.double().abs() @ b.double().abs()) + 1e-30
    error = check_limit(name, c, a.double() @ b.double(), bound)
    check_outside(name, storage, c)
    return error, f"@{kernel.plan(a, b, c).kernel}"


def measure(module: CompiledModule, rung: str, size: int, runs: int) -> Row:
    """Measure one rung at one size in TFLOP/s, compared with torch."""
    import torch

    a, b = (torch.randn(size, size, device="cuda") for _ in range(2))
    c, reference = torch.empty_like(a), torch.empty_like(a)
    kernel = module.kernel("launch")
    times = median_times(
        [("ours", lambda: kernel(a, b, c)), ("torch", lambda: torch.mm(a, b, out=reference))],
        traffic=3 * size * size * 4, runs=runs, rounds=10,
    )  # fmt: skip
    ours, peer = (2e-6 * size**3 / times[k] for k in ("ours", "torch"))
    return row(f"sgemm {rung} {size}³", "TFLOP/s", ours, peer, us=times["ours"])
