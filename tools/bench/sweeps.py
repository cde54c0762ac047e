"""Sweep files: times of many kernels for many problems on a GPU, written by ``cute-bench gemm --fit``.

    {"format": 1, "machine": {"gpu": NAME, …}, "sms": 132, "date": "2026-11-23", "command": "…",
     "menu": {KERNEL: {…}},                                                 as encoded by op.select.kernel_choice.encode
     "rows": [{"problem": "f16-f16-kk 128x8192x4096", "times": {"torch": 12.3, KERNEL: 11.9, …}, "bad": {KERNEL: WHY}}],
     "failed": {KERNEL: WHY}, "left": 0}             times in microseconds; kernels not built; problems not reached

Kernels that this version does not support are skipped and counted when a file is read.
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
    """A sweep that cannot be read or does not fit the command."""


class Row(NamedTuple):
    """The kernels timed for a problem, their times and that of torch in microseconds (0: not timed)."""

    problem: Problem
    kernels: tuple[Choice, ...]
    times: tuple[float, ...]
    peer: float = 0.0

    @property
    def best(self) -> int:
        """The index of the fastest kernel."""
        return min(range(len(self.times)), key=self.times.__getitem__)


class Sweep:
    """The rows of one or more files of the same GPU.

    ``unknown`` maps the kernels that this version lacks to the reason.  ``left_out`` counts their times in the files.
    """

    def __init__(self, gpu: str, sms: int, rows: Sequence[Row], unknown: Mapping[str, str], left_out: int):
        self.gpu, self.sms, self.rows = gpu, sms, tuple(rows)
        self.unknown, self.left_out = dict(unknown), left_out

    @cached_property
    def said(self) -> str:
        """A one-line summary."""
        times = sum(len(r.times) for r in self.rows)
        text = f"{self.gpu}, {self.sms} SMs: {len(self.rows)} problems, {times} kernel times"
        if self.unknown:
            text += f"; skipped {self.left_out} times of {len(self.unknown)} kernels that this version does not support"
        return text


def read_sweeps(paths: Sequence[str | Path]) -> Sweep:
    """Read and merge sweep files.

    Raises:
        SweepError: a file is not a sweep or has another format, the files are of different GPUs, or no problem has
            two kernels.
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
        raise SweepError(f"{names}: no problem has two or more kernels to choose from")
    unknown = {name: why for sweep in found for name, why in sweep.unknown.items()}
    return Sweep(first.gpu, first.sms, rows, unknown, sum(sweep.left_out for sweep in found))


def _read(path: Path) -> Sweep:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except OSError as e:
        raise SweepError(f"{path}: {e.strerror or e}") from None
    except ValueError as e:
        raise SweepError(f"{path}: not a sweep: {e}; record one with cute-bench gemm --fit --random") from None
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
        raise SweepError(f"{path}: not a sweep: {said}; record one with cute-bench gemm --fit --random") from None


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
