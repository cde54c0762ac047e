"""``cute-bench rows_sweep``: how else the rows of ``cute-bench rows`` could be shared out among threads and blocks.

Built: for each case the default and the configurations of :func:`space`.  Measured: all of a case that the folder has,
in turns, with torch; the best three and the default are shown.
"""

# torch is not there where the types are checked.
# pyright: reportMissingImports=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownLambdaType=false, reportUnknownParameterType=false

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING, cast

from cute_dialect.kernels.rows import RowConfig, default_config
from cute_dialect.tools.bench_add import BenchError
from cute_dialect.tools.bench_rows import BYTES, CASES, Case, Data, build_one, measure

if TYPE_CHECKING:  # pragma: no cover
    from cute_dialect.runtime.launch import Kernel

__all__ = ["build", "run", "space"]


def space(case: Case) -> list[RowConfig]:
    """List the search space: rows in registers or, from 2 KiB on, in shared memory.

    A thread has 8 to 32 elements of a row, up to 64 where rows are in shared memory, which has room for one to four of
    them beside the weights.
    """
    found: list[RowConfig] = []
    for cluster in (1, 2, 4, 8):
        for threads in (32, 64, 128, 256, 512, 1024):
            values = case.n / (threads * cluster)
            if not 8 <= values <= 64 or (cluster > 1 and (case.op == "sum" or threads < 128)):
                continue
            if values <= 32 or threads <= 512:
                found += [RowConfig(threads, rows, cluster) for rows in ((1, 2, 4, 8) if threads == 32 else (1,))]
            if case.op != "sum" and case.n * BYTES[case.element] >= 2048:
                found += [c for s in (1, 2, 3, 4) if fits(case, c := RowConfig(threads, 1, cluster, s))]
    return [c for c in found if c != default_config(case.op, case.element, case.n)]


def fits(case: Case, config: RowConfig) -> bool:
    """Return whether shared memory has room."""
    from cute_dialect.kernels.row_config import SHARED_MEMORY, shared_bytes

    return shared_bytes(case.op, case.element, case.n, config) <= SHARED_MEMORY


def _name(config: RowConfig) -> str:
    used = max(i for i, (x, unused) in enumerate(zip(config, RowConfig(0))) if i < 3 or x != unused) + 1
    return "x".join(map(str, config[:used]))


def _configs(case: Case) -> list[RowConfig]:
    return [default_config(case.op, case.element, case.n), *space(case)]


def _built(folder: str, case: Case) -> list[RowConfig]:
    """List the configurations of a case that a folder has, the default first."""
    prefix = f"{case.folder}-"
    names = [name.removeprefix(prefix) for name in sorted(os.listdir(folder)) if name.startswith(prefix)]
    default = default_config(case.op, case.element, case.n)
    return sorted((RowConfig(*map(int, name.split("x"))) for name in names), key=lambda c: c != default)


def build(folder: str, chip: str) -> list[str]:
    """Compile all kernels into ``folder/OP-ELEMENT-N-THREADSxROWSxCLUSTER[xSTAGES[x…]]``; gives what ptxas says."""
    return [
        build_one(os.path.join(folder, f"{case.folder}-{_name(c)}"), case, c, chip)
        for case in {c.folder: c for c in CASES}.values()
        for c in _configs(case)
    ]


def run(folder: str, *, runs: int, large: bool, say: Callable[[str], None]) -> dict[str, object]:
    """Measure what :func:`build` made, each after a check; a wrong one is left out and said."""
    from cute_dialect.runtime import load

    rows: list[dict[str, object]] = []
    for case in CASES:
        configs = _built(folder, case)
        if not configs:
            continue
        data = Data(case, case.rows)
        kernels: list[tuple[str, Kernel]] = []
        for c in configs:
            kernel = load(os.path.join(folder, f"{case.folder}-{_name(c)}")).kernel(case.op)
            try:
                data.check(kernel)
                kernels.append((_name(c), kernel))
            except BenchError as e:
                say(f"  WRONG {_name(c)}: {e}")
        found = measure(kernels, data, runs)
        best = sorted(found, key=lambda r: -cast("float", r["ours"]))
        rows += [r for r in found if r is found[0] or r in best[:3]]
        listed = ", ".join(f"{str(r['name']).split()[-1]} {r['ours']:.3f}" for r in best)
        say(f"  {case}: torch {found[0]['peer']:.3f}; {listed}")
        del data
    return {"rows": rows}
