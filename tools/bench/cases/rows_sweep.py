"""``cute-bench rows_sweep``: alternative assignments of the rows of ``cute-bench rows`` to threads and blocks.

For each case, the default and the configurations of :func:`space` are built.  All built kernels of a case run in
alternating rounds with torch; the report shows the best three and the default.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from cute_dialect.kernels.rows.config import SHARED_MEMORY, RowConfig, shared_bytes, width
from cute_dialect.runtime.progress import track
from cute_dialect.tools.bench.cases.rows import BYTES, CASES, Case, Data, class_of, measure, text_of
from cute_dialect.tools.bench.checks import BenchError
from cute_dialect.tools.bench.runner import Row, Say, build_kernels, loaded

if TYPE_CHECKING:  # pragma: no cover
    from cute_dialect.runtime.launch import Kernel

__all__ = ["build", "run", "space"]


def space(case: Case) -> list[RowConfig]:
    """Return the search space: rows in registers or, from 2 KiB, in shared memory.

    A thread has 8 to 32 elements of a row, or up to 64 if rows are in shared memory.
    """
    found: list[RowConfig] = []
    w = width(case.element)
    for cluster in (1, 2, 4, 8):
        for threads in (32, 64, 96, 128, 160, 192, 256, 320, 384, 512, 1024):
            values = case.n / (threads * cluster)
            alone = cluster == 1 or (case.op != "sum" and threads >= 128 and threads & (threads - 1) == 0)
            if not 8 <= values <= 64 or not alone:
                continue
            chunks = -(-(case.n // w) // (threads * cluster))
            if values <= 32 or threads <= 512:
                found += [
                    RowConfig(threads, chunks, rows, cluster) for rows in ((1, 2, 4, 8) if threads == 32 else (1,))
                ]
            if case.op != "sum" and case.n * BYTES[case.element] >= 2048:
                found += [
                    RowConfig(threads, chunks, 1, cluster, shared, groups)
                    for shared in {chunks, chunks // 2, 0}
                    for groups in {0, 1, max(1, shared)}
                    if shared == chunks or groups
                ]
    default = class_of(case)
    return [c for c in dict.fromkeys(found) if c != default and shared_bytes(case.element, c) <= SHARED_MEMORY]


def _built(folder: str, case: Case) -> list[RowConfig]:
    """Return the configurations of a case with a kernel in the folder, the default first."""
    prefix = f"{case.folder}-"
    names = [name.removeprefix(prefix) for name in sorted(os.listdir(folder)) if name.startswith(prefix)]
    default = class_of(case)
    return sorted((RowConfig(*map(int, name.split("x"))) for name in names), key=lambda c: c != default)


def build(folder: str, chip: str) -> list[str]:
    """Compile all kernels into ``folder/OP-ELEMENT-N-THREADSxCHUNKS[xROWS[x…]]``; return the reports of ptxas."""
    wanted = {f"{case.folder}-{c.name}": text_of(case, c) for case in CASES for c in (class_of(case), *space(case))}
    return build_kernels(wanted, folder, chip)


def run(folder: str, *, runs: int, large: bool, say: Say) -> dict[str, object]:
    """Check and measure the kernels of :func:`build`; wrong kernels are reported and skipped."""
    rows: list[Row] = []
    for case in track(CASES, "measuring", "cases"):
        configs = _built(folder, case)
        if not configs:
            continue
        data = Data(case, case.rows)
        kernels: list[tuple[str, Kernel]] = []
        for c in configs:
            kernel = loaded(folder, f"{case.folder}-{c.name}").kernel(case.op)
            try:
                data.check(kernel)
                kernels.append((c.name, kernel))
            except BenchError as e:
                say(f"  WRONG {c.name}: {e}")
        found = measure(kernels, data, runs)
        best = sorted(found, key=lambda r: -r["ours"])
        rows += [r for r in found if r is found[0] or r in best[:3]]
        listed = ", ".join(f"{r['name'].split()[-1]} {r['ours']:.3f}" for r in best)
        say(f"  {case}: torch {found[0]['peer']:.3f}; {listed}")
        del data
    return {"rows": rows}
