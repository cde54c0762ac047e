"""Sweeps: how long many kernels took for many problems on a GPU, in a file that ``cute-bench gemm --fit`` writes.

    {"format": 1, "machine": {"gpu": NAME, …}, "sms": 132, "date": "2026-11-23", "command": "…",
     "menu": {KERNEL: {…}},                                                 as op.select.kernel_choice.encode writes it
     "rows": [{"problem": "f16-f16-kk 128x8192x4096", "times": {"torch": 12.3, KERNEL: 11.9, …}, "bad": {KERNEL: WHY}}],
     "failed": {KERNEL: WHY}, "left": 0}                                  microseconds; what was not built, not reached

Kernels that this version does not know are left out when a file is read, and counted.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import NamedTuple, cast

from cute_dialect.op.select.kernel_choice import Choice, Problem, decode

__all__ = ["FORMAT", "Row", "Sweep", "SweepError", "read_sweeps"]

FORMAT = 1
PEER = "torch"


class SweepError(ValueError):
    """A sweep that cannot be read, or that does not serve what is asked."""


class Row(NamedTuple):
    """The kernels that were timed for a problem, their microseconds, and those of torch (0: not timed)."""

    problem: Problem
    kernels: tuple[Choice, ...]
    times: tuple[float, ...]
    peer: float = 0.0

    @property
    def best(self) -> int:
        """The number of the fastest kernel."""
        return min(range(len(self.times)), key=self.times.__getitem__)


class Sweep:
    """The rows of one or more files of one GPU.  ``unknown``: kernels that this version lacks → why; ``left_out``: how
    many times of theirs the files have.
    """

    def __init__(self, gpu: str, sms: int, rows: Sequence[Row], unknown: Mapping[str, str], left_out: int):
        self.gpu, self.sms, self.rows = gpu, sms, tuple(rows)
        self.unknown, self.left_out = dict(unknown), left_out

    @cached_property
    def said(self) -> str:
        """What there is of it, in a line."""
        times = sum(len(r.times) for r in self.rows)
        text = f"{self.gpu}, {self.sms} SMs: {len(self.rows)} problems, {times} times of kernels"
        if self.unknown:
            text += f"; left out: {self.left_out} times of {len(self.unknown)} kernels that this version does not know"
        return text


def read_sweeps(paths: Sequence[str | Path]) -> Sweep:
    """Return the sweeps of some files together.  Raises SweepError for a file that is none, or of another format, for
    files of different GPUs, and where no problem has two kernels.
    """
    found = [_read(Path(p)) for p in paths]
    first = found[0]
    for path, other in zip(paths, found):
        if (other.gpu, other.sms) != (first.gpu, first.sms):
            raise SweepError(f"expected sweeps of one GPU, got {first.gpu} ({first.sms} SMs) in {paths[0]}, {other.gpu}"
                             f" ({other.sms} SMs) in {path}")  # fmt: skip
    rows = [row for sweep in found for row in sweep.rows if len(row.times) > 1]
    if not rows:
        names = ", ".join(map(str, paths))
        raise SweepError(f"{names}: expected problems with two kernels or more to choose from, got none")
    unknown = {name: why for sweep in found for name, why in sweep.unknown.items()}
    return Sweep(first.gpu, first.sms, rows, unknown, sum(sweep.left_out for sweep in found))


def _read(path: Path) -> Sweep:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except OSError as e:
        raise SweepError(f"{path}: {e.strerror or e}") from None
    except ValueError as e:
        raise SweepError(f"{path}: expected a sweep (cute-bench gemm --fit --random writes one), got {e}") from None
    try:
        if found["format"] != FORMAT:
            raise SweepError(f"{path}: expected a sweep of format {FORMAT}, got format {found['format']!r}")
        gpu, sms = found["machine"]["gpu"], found["sms"]
        if not isinstance(gpu, str) or not gpu or isinstance(sms, bool) or not isinstance(sms, int) or sms < 1:
            raise ValueError(f"GPU {gpu!r} of {sms!r} SMs")
        return _sweep(gpu, sms, found["menu"], found["rows"])
    except SweepError:
        raise
    except (ValueError, KeyError, TypeError, AttributeError) as e:
        said = f"no {e}" if isinstance(e, KeyError) else e
        raise SweepError(f"{path}: expected a sweep (cute-bench gemm --fit --random writes one), got {said}") from None


def _sweep(gpu: str, sms: int, menu: Mapping[str, object], listed: Sequence[Mapping[str, object]]) -> Sweep:
    known: dict[str, Choice] = {}
    unknown: dict[str, str] = {}
    for name, fields in menu.items():
        try:
            choice = decode(cast("Mapping[str, object]", fields))
        except (ValueError, TypeError) as e:
            unknown[name] = str(e)
            continue
        if choice.skinny is not None or choice.config.sms == sms:
            known[name] = choice
        else:
            unknown[name] = f"for {choice.config.sms} SMs"
    rows: list[Row] = []
    left_out = 0
    for row in listed:
        times: dict[Choice, float] = {}
        peer = 0.0
        for name, time in cast("Mapping[str, object]", row["times"]).items():
            if isinstance(time, bool) or not isinstance(time, int | float) or not 0 < time < float("inf"):
                raise ValueError(f"{time!r} us of {name}")
            if name == PEER:
                peer = float(time)
            elif name in known:
                times[known[name]] = float(time)
            else:
                unknown.setdefault(name, "not in the menu of the file")
                left_out += 1
        rows.append(Row(Problem.of_key(str(row["problem"])), tuple(times), tuple(times.values()), peer))
    return Sweep(gpu, sms, rows, unknown, left_out)
