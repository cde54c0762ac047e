"""``cute-bench sgemm``: the SGEMM ladder compared with ``torch.mm`` in f32 (cuBLAS without TF32).

Kernels are first checked against float64 on random normal data: odd sizes, rows not aligned to vectors, poisoned
outputs, and repeated runs with identical results.  Then TFLOP/s with a cold L2 are measured.
"""

# torch may be missing when types are checked.
# pyright: reportMissingImports=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownLambdaType=false, reportUnknownParameterType=false

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING

from cute_dialect.kernels.sgemm import RUNGS
from cute_dialect.op.select.timing import compare
from cute_dialect.runtime.progress import track
from cute_dialect.tools.bench.cases.elementwise_add import BenchError

if TYPE_CHECKING:  # pragma: no cover
    import torch

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
    from cute_dialect.kernels.sgemm import sgemm_text
    from cute_dialect.pipelines import compile as compile_cute

    reports: list[str] = []
    for rung in track(RUNGS, "compiling", "kernels"):
        module = compile_cute(sgemm_text(rung), chip=chip, filename=f"{rung}.mlir", save=os.path.join(folder, rung))
        reports.append(f"{rung}: {module.report.strip()}")
    return reports


def run(folder: str, *, runs: int, large: bool, say: Callable[[str], None]) -> dict[str, object]:
    """Check and measure the kernels of :func:`build`.  Raises ``BenchError`` if a result is wrong."""
    import torch

    from cute_dialect.runtime import load

    torch.backends.cuda.matmul.allow_tf32 = False
    rows: list[dict[str, object]] = []
    for rung in track(RUNGS, "measuring", "kernels"):
        module = load(os.path.join(folder, rung))
        found = [check(module, rung, *case) for case in CHECKS]
        worst, kernels = max(e for e, _ in found), sorted({k for _, k in found})
        by = ", ".join(kernels)
        say(f"  correct: {rung}, {len(CHECKS)} shapes, largest error {worst:.2f} of K eps |A||B|, by {by}")
        rows += [measure(module, rung, size, runs) for size in sizes(rung)]
    return {"rows": rows}


def _padded(rows: int, columns: int, ld: int, *, random: bool) -> tuple[torch.Tensor, torch.Tensor]:
    import torch

    storage = torch.full((rows * ld + 64,), float("nan"), device="cuda")
    inside = torch.as_strided(storage, (rows, columns), (ld, 1))
    if random:
        inside.normal_()
    return storage, inside


def check(module: CompiledModule, rung: str, m: int, n: int, k: int, more: int) -> tuple[float, str]:
    """Check one case; return the largest error and the kernel variant that ran.  Raises :class:`BenchError`."""
    import torch

    torch.manual_seed(0)
    (_, a), (_, b) = _padded(m, k, k + more, random=True), _padded(k, n, n + more, random=True)
    storage, c = _padded(m, n, n + more, random=False)
    kernel = module.kernel("launch")
    kernel(a, b, c)
    first = c.clone()
    for _ in range(10):
        c.fill_(float("nan"))
        kernel(a, b, c)
    torch.cuda.synchronize()
    if not torch.equal(first, c):
        raise BenchError(f"{rung} {(m, n, k)}: runs differ")
    exact = a.double() @ b.double()
    bound = k * 2.0**-24 * (a.double().abs() @ b.double().abs()) + 1e-30
    error = float(((c.double() - exact).abs() / bound).max())
    if not error <= 1:
        raise BenchError(f"{rung} {(m, n, k)}: the error is {error:.2f} times its bound")
    c.fill_(float("nan"))
    if not bool(storage.isnan().all()):
        raise BenchError(f"{rung} {(m, n, k)}: bytes outside the matrix were written")
    return error, f"@{kernel.plan(a, b, c).kernel}"


def measure(module: CompiledModule, rung: str, size: int, runs: int) -> dict[str, object]:
    """Measure one rung at one size in TFLOP/s, compared with torch."""
    import torch

    a, b = (torch.randn(size, size, device="cuda") for _ in range(2))
    c, reference = torch.empty_like(a), torch.empty_like(a)
    kernel = module.kernel("launch")
    times = compare(
        [("ours", lambda: kernel(a, b, c)), ("torch", lambda: torch.mm(a, b, out=reference))],
        traffic=3 * size * size * 4,
        runs=runs,
        rounds=10,
    )
    ours, peer = (2e-6 * size**3 / times[k].median for k in ("ours", "torch"))
    return {
        "name": f"sgemm {rung} {size}³",
        "us": times["ours"].median,
        "ours": ours,
        "peer": peer,
        "unit": "TFLOP/s",
        "ratio": ours / peer,
    }
