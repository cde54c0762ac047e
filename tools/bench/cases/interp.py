"""Speed of the CPU interpreter: ``cute-bench interp``.

Kernels run with and without checks, the best of several runs in CPU seconds without compilation.  A lane-op is one op
of the lowered kernel for one thread; a wgmma or a TMA copy counts as one.
"""

# pyright: reportMissingImports=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownLambdaType=false, reportMissingTypeStubs=false
# pyright: reportMissingModuleSource=false

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from cute_dialect.kernels.copies.transpose import transpose_text
from cute_dialect.kernels.elementwise.add import elementwise_add_text
from cute_dialect.kernels.gemm import gemm_text
from cute_dialect.kernels.gemm.ampere import ampere_gemm_text
from cute_dialect.kernels.gemm.config import GemmConfig
from cute_dialect.kernels.gemm.sgemm import sgemm_text
from cute_dialect.pipelines import compile as compile_cute
from cute_dialect.runtime.progress import track
from cute_dialect.tools.bench.runner import Benchmark, Row, Say, column_table

if TYPE_CHECKING:  # pragma: no cover
    from cute_dialect.interp import RunReport
    from cute_dialect.runtime.launch import Kernel


MODES: tuple[tuple[str, tuple[str, ...], tuple[str, ...]], ...] = (
    ("plain", (), ()),
    ("race", ("race", "uninit"), ()),
    ("reports", (), ("banks", "coalescing")),
)


class Kernel_(NamedTuple):
    """A kernel file, its kernel or host function, its arrays, and the number of 128x128x64 GEMM tile steps."""

    name: str
    text: Callable[[], str]
    kernel: str
    arrays: Callable[[], list[np.ndarray]]
    steps: int = 0


def _random(*shapes: tuple[int, int], dtype: type = np.float16) -> Callable[[], list[np.ndarray]]:
    def make() -> list[np.ndarray]:
        rng = np.random.default_rng(0)
        return [rng.integers(-3, 4, s).astype(dtype) for s in shapes]

    return make


_SM90 = GemmConfig(tile=(128, 128, 64), cluster_m=1, deferred=False)
KERNELS = (
    Kernel_("elementwise add, f32 1024x1024", elementwise_add_text, "", _random(*[(1024, 1024)] * 3, dtype=np.float32)),
    Kernel_("transpose, f32 512x512", transpose_text, "launch", _random((512, 512), (512, 512), dtype=np.float32)),
    Kernel_(
        "SGEMM, shared memory, 128x128x64",
        partial(sgemm_text, "smem"),
        "launch",
        _random((128, 64), (64, 128), (128, 128), dtype=np.float32),
    ),
    Kernel_("GEMM sm_80, f16 128x128x128", ampere_gemm_text, "launch", _random((128, 128), (128, 128), (128, 128))),
    Kernel_(
        "GEMM sm_90, f16 128x128x256 (one block)",
        partial(gemm_text, _SM90),
        "launch",
        _random((128, 256), (128, 256), (128, 128)),
        4,
    ),
    Kernel_(
        "GEMM sm_90, f16 512x512x256 (16 blocks)",
        partial(gemm_text, _SM90),
        "launch",
        _random((512, 256), (512, 256), (512, 512)),
        64,
    ),
)


def _compiled(case: Kernel_) -> Kernel:
    module = compile_cute(case.text(), emit="base")
    names = [h["name"] for h in module.manifest["hosts"]]
    return module.kernel(case.kernel or names[0])


def run_interp(*, runs: int, say: Say, cases: Sequence[Kernel_] = KERNELS) -> dict[str, object]:
    """Measure each kernel in each mode."""
    rows: list[Row] = []
    for case in track(cases, "measuring", "kernels"):
        say(f"  {case.name}")
        kernel = _compiled(case)
        for mode, checks, reports in MODES:
            best: RunReport | None = None
            for _ in range(max(1, min(runs, 3))):
                arrays = case.arrays()
                started = time.process_time()
                report = kernel(*arrays, device="cpu", checks=checks, reports=reports)
                assert report is not None
                report.seconds = time.process_time() - started
                if best is None or report.seconds < best.seconds:
                    best = report
            assert best is not None
            rows.append(
                {
                    "name": case.name,
                    "mode": mode,
                    "seconds": best.seconds,
                    "blocks": best.blocks,
                    "lanes": best.lanes,
                    "lane_ops": best.lane_ops,
                    "lane_ops_per_second": best.lane_ops / best.seconds,
                    "ms_per_tile_step": 1e3 * best.seconds / case.steps if case.steps else None,
                }
            )
    return {"rows": rows}


BENCHMARKS = {
    "interp": Benchmark(
        None,
        run_interp,
        column_table(
            {
                "kernel": lambda r: r["name"],
                "mode": lambda r: r["mode"],
                "CPU s": lambda r: f"{r['seconds']:.2f}",
                "blocks": lambda r: str(r["blocks"]),
                "M lane-ops": lambda r: f"{r['lane_ops'] / 1e6:.2f}",
                "M lane-ops/s": lambda r: f"{r['lane_ops_per_second'] / 1e6:.2f}",
                "ms per 128x128x64": lambda r: "" if (x := r["ms_per_tile_step"]) is None else f"{x:.0f}",
            }
        ),
    ),
}
