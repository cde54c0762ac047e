"""``cute-bench all``: every benchmark compared with torch in one table and one file of results.

``--build DIR`` compiles into ``DIR/NAME``.  ``--run DIR`` checks and measures all benchmarks.  ``--json FILE`` writes
``{"machine": …, "results": [{"name", "ours", "peer", "unit", "ratio"}]}``; a ratio above 1 means that ours is faster.
"""

from __future__ import annotations

import os
from typing import Any, cast

from cute_dialect.runtime.progress import track
from cute_dialect.tools.bench.cases import elementwise_add, gemm, gemm_sm80, rows, sgemm, transpose
from cute_dialect.tools.bench.runner import Row, Say

__all__ = ["PARTS", "build", "run"]

PARTS: dict[str, Any] = {
    "elementwise_add": elementwise_add, "transpose": transpose, "rows": rows, "sgemm": sgemm, "gemm_sm80": gemm_sm80,
    "gemm": gemm,
}  # fmt: skip
"""The benchmarks in execution order."""


def build(folder: str, chip: str) -> list[str]:
    """Compile all kernels; return the reports of ptxas."""
    reports: list[str] = []
    for name, part in track(list(PARTS.items()), "compiling", "benchmarks"):
        reports += part.build(os.path.join(folder, name), chip)
    return reports


def run(folder: str, *, runs: int, large: bool, say: Say) -> dict[str, object]:
    """Check and measure all benchmarks.  Raises ``BenchError`` if a result is wrong."""
    results: list[Row] = []
    for name, part in track(list(PARTS.items()), "measuring", "benchmarks"):
        say(f"== {name}")
        found = part.run(os.path.join(folder, name), runs=runs, large=large, say=say)
        results += [_row(r) for r in cast("list[Row]", found["rows"])]
    return {"rows": results}


def _row(r: Row) -> Row:
    """Convert a row of any benchmark to the common keys."""
    if "name" in r:
        return {k: r[k] for k in ("name", "ours", "peer", "unit", "ratio")}
    name = f"add {r['element']} {r['size']}x{r['size']} {r['layout']}"
    ours, ratio = r["terabytes"], r["ratio"]
    return {"name": name, "ours": ours, "peer": ours / ratio, "unit": "TB/s", "ratio": ratio}
