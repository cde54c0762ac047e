"""A pytest plug-in that measures the CPU time of tests and fails the run when the quick tests exceed a limit.

CPU time is that of the test's process and of its finished children.  Limits are set for a machine that runs a short
loop in :data:`REFERENCE` seconds.  Workers time that loop at intervals, and a slower or shared CPU gets proportionally
more time.

A test is charged for its call.  Fixtures, imports at the top of test modules and collection count only towards the
total of the suite, because several tests share them.  If tests share a result through ``functools.cache``, the first
one is charged for it.  Mark that test ``end_to_end``.

The plug-in reports the total of each run, and the tests that exceed a limit.  With ``CUTE_TEST_BUDGET=1``, as
``.ci/run`` sets it, a run of the quick tests fails beyond :data:`MARGIN` times a limit.  ``--cpu-report N`` lists the N
most expensive tests.
"""

from __future__ import annotations

import os
import resource
import statistics
import time
from collections.abc import Generator, Sequence
from typing import Any

import pytest

__all__ = ["CpuBudget", "cpu_seconds", "excess"]

TEST_LIMIT = 1.5
"""Limit for the call of a quick test that is not marked ``end_to_end``, in CPU seconds."""
MARGIN = 1.5
"""Timings on a shared machine vary, so a run fails only beyond this multiple of a limit."""
REFERENCE = 0.005
"""CPU seconds of :func:`loop_seconds` on the reference machine, for which the limits are set."""
SAMPLED = 50
"""Number of tests between two measurements of the loop."""
SUITE_LIMIT = 400.0
"""Limit for pytest over all quick tests, in CPU seconds.  ``make test`` may take 480; lit takes the other 80."""


def cpu_seconds() -> float:
    """Return the CPU seconds of this process and its finished children."""
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + children.ru_utime + children.ru_stime


def loop_seconds() -> float:
    """Return the CPU seconds of a fixed loop."""
    start, x = time.process_time(), 0
    for i in range(150_000):
        x += i & 3
    return time.process_time() - start


def excess(calls: Sequence[tuple[str, float, bool]], total: float, slowdown: float = 1.0) -> list[str]:
    """Return one line per violated limit.

    Args:
        calls: Name, CPU seconds and whether the test is marked ``end_to_end``, of each quick test.
        total: CPU seconds of the suite.
        slowdown: CPU time of a fixed loop here, relative to the reference machine.
    """
    limit, suite = TEST_LIMIT * max(1.0, slowdown), SUITE_LIMIT * max(1.0, slowdown)
    late = sorted(((s, name) for name, s, end_to_end in calls if s > limit and not end_to_end), reverse=True)
    lines = [
        f"{name}: {s:.1f} s of CPU, the limit of a quick test is {limit:.1f}: make it smaller, or mark it slow"
        for s, name in late
    ]
    if total > suite:
        lines.append(f"the quick tests took {total:.0f} s of CPU, the limit is {suite:.0f}")
    return lines


class CpuBudget:
    """The plug-in. Each xdist worker measures; the controller, or the only process, collects and reports."""

    def __init__(self, config: pytest.Config) -> None:
        self.config = config
        self.is_worker = hasattr(config, "workerinput")
        self.is_quick = not (config.getoption("--slow") or config.getoption("--all"))
        self.calls: list[tuple[str, float, bool]] = []
        self.workers = 0.0
        self.loops: list[float] = [loop_seconds()]
        self.ran = 0

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Generator[None]:
        self.ran += 1
        if self.ran % SAMPLED == 0:
            self.loops.append(loop_seconds())
        start = cpu_seconds()
        try:
            yield
        finally:
            item.stash[_CALL] = cpu_seconds() - start

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Store the CPU seconds in the report, which xdist sends to the controller."""
        report = yield
        if call.when == "call":
            report.cpu_seconds = item.stash.get(_CALL, 0.0)  # type: ignore[attr-defined]
        return report

    def pytest_runtest_logreport(self, report: Any) -> None:
        """Collect the CPU seconds of a call."""
        if report.when == "call" and "slow" not in report.keywords:
            self.calls.append((report.nodeid, report.cpu_seconds, "end_to_end" in report.keywords))

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        """Add the CPU time of an xdist worker."""
        output = getattr(node, "workeroutput", {})
        self.workers += output.get("cpu_seconds", 0.0)
        self.loops += output.get("loops", [])

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Fail a run of quick tests that exceeds a limit."""
        if self.is_worker:
            self.config.workeroutput |= {"cpu_seconds": cpu_seconds(), "loops": self.loops}  # type: ignore[attr-defined]
        elif self._excess(MARGIN) and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Report the CPU time of the run and the tests that exceed a limit."""
        slowdown = f", on a CPU that is {self._slowdown():.1f} times slower than the reference"
        terminalreporter.write_line(f"CPU time: {self._total():.0f} s{slowdown if self._slowdown() > 1.1 else ''}")
        for name, seconds, _ in sorted(self.calls, key=lambda x: -x[1])[: self.config.getoption("--cpu-report")]:
            terminalreporter.write_line(f"{seconds:7.2f} s {name}")
        for line in self._excess():
            terminalreporter.write_line(f"CPU budget: {line}", red=True)

    def _total(self) -> float:
        return time.process_time() + self.workers if self.workers else cpu_seconds()

    def _slowdown(self) -> float:
        return statistics.mean(self.loops) / REFERENCE

    def _excess(self, margin: float = 1.0) -> list[str]:
        if not self.is_quick or os.environ.get("CUTE_TEST_BUDGET") != "1":
            return []
        return excess(self.calls, self._total(), max(1.0, self._slowdown()) * margin)


_CALL = pytest.StashKey[float]()
