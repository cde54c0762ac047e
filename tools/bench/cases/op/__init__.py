"""``cute-bench op``: the functions of ``cute_dialect.op`` compared with torch and ``torch.compile``, by group.

A group is a module of this package with a list ``CASES`` of :class:`Case`.  ``--build DIR`` compiles the kernels of
the cases into ``DIR/NAME`` in parallel.  ``--run DIR`` calls the functions with these kernels.  Each case is checked
against float64 and then timed in alternating rounds with its peers on the same data, with a cold L2.  A row is compared
with its fastest peer; a ratio above 1 means that ours is faster.

    cute-bench op --build build/op && cute-bench op --run build/op --groups rows --json op.json
"""

# torch may be missing when types are checked.
# pyright: reportMissingImports=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownParameterType=false

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from importlib import import_module
from math import exp, log
from pathlib import Path
from typing import Any, NamedTuple, Protocol
from unittest.mock import patch

from cute_dialect.op.select.timing import compare
from cute_dialect.runtime.progress import track
from cute_dialect.tools.bench.parallel import in_processes

__all__ = ["Case", "Trial", "build", "can_compile", "cases_of", "compiled", "groups", "run", "summary"]


class Trial(NamedTuple):
    """A case with its data on the GPU.

    ``check`` compares a result with float64 and returns the largest error relative to the tolerance, or raises
    ``BenchError``.  ``ours`` is the call to time, ``peers`` the calls of others by name, on the same data.  ``traffic``
    is the minimum number of bytes to move.  ``work`` is in bytes or operations, ``unit`` is ``TB/s`` or ``TFLOP/s``.
    """

    check: Callable[[], float]
    ours: Callable[[], object]
    peers: Mapping[str, Callable[[], object]]
    traffic: int
    work: float
    unit: str


class Case(Protocol):
    """A row of the table; hashable and picklable."""

    @property
    def name(self) -> str:
        """The name of the row, for example ``softmax bf16 5344x50257``."""
        ...

    @property
    def operation(self) -> str:
        """The key of the geometric means, for example ``softmax``."""
        ...

    def kernels(self) -> Mapping[str, Callable[[], str]]:
        """Return the kernels of the call on an H200 by name, with functions that generate their texts."""
        ...

    def trial(self) -> Trial:
        """Create the data."""
        ...


def groups() -> list[str]:
    """Return the names of the groups.

    >>> "products" in groups()
    True
    """
    return sorted(p.stem for p in Path(__file__).parent.glob("*.py") if p.stem not in ("__init__", "grouped_more"))


def cases_of(group: str) -> Sequence[Case]:
    """Return the cases of a group.  Raises ValueError for an unknown group."""
    if group not in groups():
        raise ValueError(f"--groups: unknown group {group!r}; choose from {', '.join(groups())}")
    return import_module(f"cute_dialect.tools.bench.cases.op.{group}").CASES


def build(folder: str, chip: str, groups: Sequence[str] = ()) -> list[str]:
    """Compile the kernels of some or all groups into ``folder/NAME``; return the reports of ptxas."""
    wanted: dict[str, Case] = {}
    for case in [c for group in groups or _all() for c in cases_of(group)]:
        for name in case.kernels():
            wanted.setdefault(name, case)
    jobs = [(case, name, folder, chip) for name, case in wanted.items()]
    return in_processes(_build_one, jobs, list(wanted))


def _all() -> list[str]:
    return groups()


def _build_one(job: tuple[Case, str, str, str]) -> str:
    from cute_dialect.pipelines import compile as compile_cute

    case, name, folder, chip = job
    module = compile_cute(case.kernels()[name](), chip=chip, filename=f"{name}.mlir", keep_stages=False)
    module.save(os.path.join(folder, name))
    return f"{name}: {module.report.strip().splitlines()[-1]}"


def run(
    folder: str, *, runs: int, large: bool, say: Callable[[str], None], groups: Sequence[str] = ()
) -> dict[str, object]:  # fmt: skip
    """Check and measure the cases of some or all groups with the kernels of :func:`build`.

    Errors are reported, and raised as ``BenchError`` after all cases are measured.
    """
    from cute_dialect.tools.bench.cases.elementwise_add import BenchError

    rows: list[dict[str, object]] = []
    wrong: list[str] = []
    with patch.dict(os.environ, {"CUTE_KERNELS": folder}):
        for group in track(groups or _all(), "measuring", "groups"):
            say(f"== {group}")
            for case in track(cases_of(group), f"measuring {group}", "cases"):
                try:
                    rows.append(_measured(group, case, runs, say))
                except Exception as e:  # The other cases are still measured.
                    wrong.append(f"{case.name}: {type(e).__name__}: {e}")
                    say(f"  WRONG {wrong[-1]}")
                _empty_cache()
    for line in summary(rows):
        say(line)
    if wrong and not rows:
        raise BenchError("\n".join(wrong))
    return {"rows": rows, "wrong": wrong}


def _measured(group: str, case: Case, runs: int, say: Callable[[str], None]) -> dict[str, object]:
    """Check and measure one case."""
    trial = case.trial()
    share = trial.check()
    contestants = [("ours", trial.ours), *trial.peers.items()]
    times = {k: t.median for k, t in compare(contestants, traffic=trial.traffic, runs=runs).items()}
    peer = min((times[k] for k in trial.peers), default=float("nan"))
    speed = {k: trial.work / t / 1e6 for k, t in times.items()}
    row: dict[str, object] = {"name": case.name, "group": group, "operation": case.operation}
    row |= {k: x for k, x in speed.items() if k != "ours"}
    row |= {
        "us": times["ours"], "ours": speed["ours"], "peer": trial.work / peer / 1e6, "unit": trial.unit,
        "ratio": peer / times["ours"],
    }  # fmt: skip
    speeds = ", ".join(f"{k} {speed[k]:.3f}" for k in trial.peers)
    say(
        f"  {case.name}: {speed['ours']:.3f} {trial.unit} ({times['ours']:.1f} us), {speeds}, "
        f"ratio {peer / times['ours']:.3f}; error {share:.2f} times the limit"
    )
    return row


def _empty_cache() -> None:
    import torch

    torch.cuda.empty_cache()


@cache
def can_compile() -> bool:
    """Return True if ``torch.compile`` works; it needs a C compiler."""
    import torch

    def twice(x: torch.Tensor) -> torch.Tensor:
        return x * 2

    try:
        torch.compile(twice)(torch.ones(8, device="cuda"))
    except Exception:  # The kind of error depends on what is missing.
        return False
    return True


def compiled(function: Callable[..., Any], *args: Any) -> dict[str, Callable[[], object]]:
    """Return the peers ``torch``, which calls a function with the arguments, and ``compiled``, which uses
    ``torch.compile`` for static shapes, if it works.
    """
    import torch

    peers: dict[str, Callable[[], object]] = {"torch": lambda: function(*args)}
    if can_compile():
        torch.compiler.reset()
        fast = torch.compile(function, dynamic=False)
        fast(*args)
        peers["compiled"] = lambda: fast(*args)
    return peers


def summary(rows: Sequence[Mapping[str, object]]) -> list[str]:
    """Return the lines of a table: geometric mean, minimum ratio and number of faster rows of each operation.

    >>> row = {"group": "rows", "operation": "softmax", "ratio": 1.21}
    >>> summary([row, {**row, "ratio": 1.0}])[1].split()
    ['rows', 'softmax', '1.100', '1.000', '2', 'of', '2']
    """
    found: dict[tuple[str, str], list[float]] = {}
    for r in rows:
        found.setdefault((str(r["group"]), str(r["operation"])), []).append(float(str(r["ratio"])))
    lines = [f"  {'group':14} {'operation':26} {'geometric mean':>14} {'least':>7} {'ahead':>12}"]
    for (group, operation), ratios in found.items():
        mean, ahead = exp(sum(map(log, ratios)) / len(ratios)), sum(x >= 1 for x in ratios)
        lines.append(f"  {group:14} {operation:26} {mean:14.3f} {min(ratios):7.3f} {f'{ahead} of {len(ratios)}':>12}")
    return lines
