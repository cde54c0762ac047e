"""Observers of the pass runner of ``cute-opt``: IR dumps, timing and statistics."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from time import perf_counter
from typing import TYPE_CHECKING

from cute_dialect.tools.opt_options import CommandLineError, OptOptions

if TYPE_CHECKING:
    from cute_dialect.pipelines.runner import IR, Step


class IRDumper:
    """Prints the IR before and after passes, to standard error or to one file per dump.

    Files are ``DIR/<number>-<pass>.mlir`` and ``<number>-before-<pass>.mlir``, numbered by pass from 1;
    ``00-input.mlir`` is the parsed module.  Chunk ``k`` of a split input has the folder ``DIR/chunk-k``.
    """

    def __init__(self, options: OptOptions):
        self._generic = options.flag("mlir-print-op-generic")
        self._debuginfo = options.flag("mlir-print-debuginfo")
        self._local = options.flag("mlir-print-local-scope")
        self._folder = options.value("mlir-print-ir-tree-dir")
        self._before = _selected(options, "before")
        self._after = _selected(options, "after")
        self._failure = options.flag("mlir-print-ir-after-failure")
        self._changed = options.flag("mlir-print-ir-after-change")
        if (self._folder or self._changed) and self._before == () and self._after == () and not self._failure:
            self._after = None
        self._text = ""
        """The IR before the current pass, kept to detect changes."""
        self._chunk = ""
        self._number = 0

    def start(self, ir: IR, chunk: int | None) -> None:
        """Record a parsed module; ``chunk`` numbers the chunks of a split input from 1."""
        self._chunk = "" if chunk is None else f"chunk-{chunk}"
        self._number = 0
        if self._folder:
            self._show(ir, "00-input", "")

    def before(self, step: Step, ir: IR) -> None:
        """Print the module before a pass if it is selected."""
        self._number += 1
        if self._changed:
            self._text = self._text_of(ir)
        if self._before is None or step.name in self._before:
            self._show(ir, f"{self._number:02d}-before-{step.name}", f"IR Dump Before {step.name}")

    def after(self, step: Step, ir: IR, ok: bool, seconds: float, verify_seconds: float) -> None:
        """Print the module after a pass if it is selected."""
        if not ok and (self._failure or self._after is None or step.name in self._after):
            self._show(ir, f"{self._number:02d}-{step.name}-failed", f"IR Dump After {step.name} Failed")
        elif ok and self._changed and self._text_of(ir) == self._text:
            return
        elif ok and (self._after is None or step.name in self._after):
            self._show(ir, f"{self._number:02d}-{step.name}", f"IR Dump After {step.name}")

    def warn_of_absent(self, steps: Sequence[Step]) -> None:
        """Warn about selected passes that are not in the pipeline."""
        for name in dict.fromkeys([*(self._before or ()), *(self._after or ())]):
            if all(step.name != name for step in steps):
                runs = ", ".join(dict.fromkeys(step.name for step in steps)) or "nothing"
                sys.stderr.write(
                    f"cute-opt: warning: cannot print the IR around '{name}': it is not in the pipeline ({runs})\n"
                )

    def _text_of(self, ir: IR) -> str:
        return ir.text(generic=self._generic, debuginfo=self._debuginfo, local_scope=self._local)

    def _show(self, ir: IR, file: str, title: str) -> None:
        text = self._text_of(ir)
        if not self._folder:
            sys.stderr.write(f"// -----// {title} //----- //\n{text}\n")
            return
        folder = os.path.join(self._folder, self._chunk)
        try:
            os.makedirs(folder, exist_ok=True)
            with open(os.path.join(folder, file + ".mlir"), "w", encoding="utf-8") as f:
                f.write(text)
        except OSError as e:
            raise CommandLineError(f"option '--mlir-print-ir-tree-dir': cannot write {folder}: {e.strerror}") from None


def _selected(options: OptOptions, when: str) -> tuple[str, ...] | None:
    """Return the passes to print around, or None for all passes."""
    if options.flag(f"mlir-print-ir-{when}-all"):
        return None
    return tuple(name.strip() for name in options.value(f"mlir-print-ir-{when}").split(",") if name.strip())


class Timing:
    """Accumulates wall time per phase and formats the ``--mlir-timing`` table."""

    def __init__(self, start: float):
        self._start = start
        self._rows: dict[str, float] = {}

    def add(self, name: str, seconds: float) -> None:
        """Add seconds to a row."""
        self._rows[name] = self._rows.get(name, 0.0) + seconds

    def lap(self, name: str, since: float) -> float:
        """Add the time since ``since`` to a row and return the current time."""
        now = perf_counter()
        self.add(name, now - since)
        return now

    def before(self, step: Step, ir: IR) -> None:
        """Do nothing; times are recorded after each pass."""

    def after(self, step: Step, ir: IR, ok: bool, seconds: float, verify_seconds: float) -> None:
        """Add the times of a pass and of the verifier after it to their rows."""
        self.add(step.name, seconds)
        if verify_seconds > 1e-5:
            self.add("verify", verify_seconds)

    def table(self) -> str:
        """Return the table of wall time in seconds, share of the total and name."""
        total = perf_counter() - self._start
        rows = dict(self._rows)
        rows["rest"] = max(total - sum(rows.values()), 0.0)
        lines = ["===-- execution time report (wall) --===", f"  {'seconds':>9}  {'share':>6}  name"]
        lines += [_row(seconds, total, name) for name, seconds in rows.items()]
        return "\n".join([*lines, _row(total, total, "total"), ""])


def _row(seconds: float, total: float, name: str) -> str:
    return f"  {seconds:9.4f}  {100 * seconds / total if total else 0:5.1f}%  {name}"


def statistics_text(statistics: Mapping[str, int]) -> str:
    """Format the statistics of the passes (``--mlir-pass-statistics``)."""
    lines = ["===-- pass statistics --==="]
    lines += [f"  {count:9d}  {name}" for name, count in sorted(statistics.items())]
    return "\n".join([*lines, ""])
