"""``cute-bench rows_sweep``: how else the rows of ``cute-bench rows`` could be shared out among threads and blocks.

Built: for each case all configurations with 8 to 64 elements a thread.  Measured: all of a case, in turns, with torch;
the best three and the default are shown.
"""

# torch is not there where the types are checked.
# pyright: reportMissingImports=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownLambdaType=false, reportUnknownParameterType=false

from __future__ import annotations

import os
from collections.abc import Callable
from typing import cast

from cute_dialect.kernels.rows import RowConfig, default_config
from cute_dialect.tools.bench_rows import CASES, Case, Data, build_configs, build_one, measure

__all__ = ["build", "run"]


def _name(config: RowConfig) -> str:
    return f"{config.threads}x{config.rows}x{config.cluster}"


def _configs(case: Case) -> list[RowConfig]:
    return [default_config(case.op, case.element, case.n), *build_configs(case)]


def build(folder: str, chip: str) -> list[str]:
    """Compile all kernels into ``folder/OP-ELEMENT-N-THREADSxROWSxCLUSTER``; gives what ptxas says."""
    return [
        build_one(os.path.join(folder, f"{case.folder}-{_name(c)}"), case, c, chip)
        for case in {c.folder: c for c in CASES}.values()
        for c in _configs(case)
    ]


def run(folder: str, *, runs: int, large: bool, say: Callable[[str], None]) -> dict[str, object]:
    """Measure what :func:`build` made, each after a check.  Raises ``BenchError`` when a result is wrong."""
    from cute_dialect.pipelines import load

    rows: list[dict[str, object]] = []
    for case in CASES:
        data = Data(case, case.rows)
        kernels = [
            (_name(c), load(os.path.join(folder, f"{case.folder}-{_name(c)}")).kernel(case.op)) for c in _configs(case)
        ]
        for _, kernel in kernels:
            data.check(kernel)
        found = measure(kernels, data, runs)
        best = sorted(found, key=lambda r: -cast("float", r["ours"]))[:3]
        rows += [r for r in found if r is found[0] or r in best]
        say(f"  {case}: default {found[0]['ours']:.3f} TB/s, best {best[0]['name']} {best[0]['ours']:.3f}")
    return {"rows": rows}
