"""``cute-bench all``: every benchmark compared with torch in one table and one file of results.

``--build DIR`` compiles into ``DIR/NAME``.  ``--run DIR`` checks and measures all benchmarks.  ``--json FILE`` writes
``{"machine": …, "results": [{"name", "ours", "peer", "unit", "ratio"}]}``; a ratio above 1 means that ours is faster.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from importlib import import_module
from typing import cast

from cute_dialect.runtime.progress import track

__all__ = ["PARTS", "build", "run"]

PARTS = ("elementwise_add", "transpose", "rows", "sgemm", "gemm_sm80", "gemm")
"""The benchmarks in execution order."""


def _part(name: str) -> object:
    return import_module(f"cute_dialect.tools.bench.cases.{name}")


def build(folder: str, chip: str) -> list[str]:
    """Compile all kernels; return the reports of ptxas."""
    said: list[str] = []
    for name in track(PARTS, "compiling", "benchmarks"):
        make = cast("Callable[[str, str], list[str]]", getattr(_part(name), "build"))  # noqa: B009
        said += make(os.path.join(folder, name), chip)
    return said


def run(folder: str, *, runs: int, large: bool, say: Callable[[str], None]) -> dict[str, object]:
    """Check and measure all benchmarks.  Raises ``BenchError`` if a result is wrong."""
    results: list[dict[str, object]] = []
    for name in track(PARTS, "measuring", "benchmarks"):
        say(f"== {name}")
        measure = cast("Callable[..., dict[str, object]]", getattr(_part(name), "run"))  # noqa: B009
        found = measure(os.path.join(folder, name), runs=runs, large=large, say=say)
        results += [_row(r) for r in cast("list[dict[str, object]]", found["rows"])]
    return {"rows": results}


def _row(row: dict[str, object]) -> dict[str, object]:
    """Convert a row of any benchmark to the common keys."""
    if "name" in row:
        return {k: row[k] for k in ("name", "ours", "peer", "unit", "ratio")}
    ours, ratio = cast("float", row["terabytes"]), cast("float", row["ratio"])
    name = f"add {row['element']} {row['size']}x{row['size']} {row['layout']}"
    return {"name": name, "ours": ours, "peer": ours / ratio, "unit": "TB/s", "ratio": ratio}
