"""A pytest plug-in that measures the CPU time of tests and fails the run when the quick tests take too much.

CPU time is that of the test's process and of its finished children.  Unlike wall time it hardly depends on the load of
the machine.  A test is charged for its call.  Fixtures, imports at the top of test modules and
collection count for the suite only, because they serve several tests.  If tests share a result through
``functools.cache``, the first one is charged: mark it ``end_to_end`` when the others need it.

The plug-in reports the total of each run.  It fails a run of the quick tests if ``CUTE_TEST_BUDGET=1``,
as ``.ci/run`` sets it.  ``--cpu-report N`` lists the N most expensive tests.
"""

from __future__ import annotations

import os
import resource
import time
from collections.abc import Generator, Sequence
from typing import Any

import pytest

__all__ = ["CpuBudget", "cpu_seconds", "excess"]

TEST_LIMIT = 1.5
"""CPU seconds of the call of a quick test that is not marked ``end_to_end``."""
SUITE_LIMIT = 400.0
"""CPU seconds of pytest over all quick tests.  ``make test`` may take 480; lit takes the other 80."""


def cpu_seconds() -> float:
    """Return the CPU seconds that this process and its finished children have used."""
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + children.ru_utime + children.ru_stime


def excess(calls: Sequence[tuple[str, float, bool]], total: float) -> list[str]:
    """Return one line per violated limit.

    Args:
        calls: Name, CPU seconds and whether the test is marked ``end_to_end``, of each quick test.
        total: CPU seconds of the suite.
    """
    late = sorted(((s, name) for name, s, end_to_end in calls if s > TEST_LIMIT and not end_to_end), reverse=True)
    lines = [
        f"{name}: {s:.1f} s of CPU, the limit of a quick test is {TEST_LIMIT}: make it smaller, or mark it slow"
        for s, name in late
    ]
    if total > SUITE_LIMIT:
        lines.append(f"the quick tests took {total:.0f} s of CPU, the limit is {SUITE_LIMIT:.0f}")
    return lines


class CpuBudget:
    """The plug-in.  Each worker of xdist measures; the controller, or the only process, collects and reports."""

    def __init__(self, config: pytest.Config) -> None:
        self.config = config
        self.is_worker = hasattr(config, "workerinput")
        self.is_quick = not (config.getoption("--slow") or config.getoption("--all"))
        self.calls: list[tuple[str, float, bool]] = []
        self.workers = 0.0

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Generator[None]:
        """Measure the call of a test."""
        start = cpu_seconds()
        try:
            yield
        finally:
            item.stash[_CALL] = cpu_seconds() - start

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Put the CPU seconds into the report, in which xdist carries them to the controller."""
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
        """Add what a worker of xdist took."""
        self.workers += getattr(node, "workeroutput", {}).get("cpu_seconds", 0.0)

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Fail a run of quick tests that takes too much."""
        if self.is_worker:
            self.config.workeroutput["cpu_seconds"] = cpu_seconds()  # type: ignore[attr-defined]
        elif self._excess() and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Report the CPU time of the run, and what exceeds a limit."""
        terminalreporter.write_line(f"CPU time: {self._total():.0f} s")
        for name, seconds, _ in sorted(self.calls, key=lambda x: -x[1])[: self.config.getoption("--cpu-report")]:
            terminalreporter.write_line(f"{seconds:7.2f} s {name}")
        for line in self._excess():
            terminalreporter.write_line(f"CPU budget: {line}", red=True)

    def _total(self) -> float:
        return time.process_time() + self.workers if self.workers else cpu_seconds()

    def _excess(self) -> list[str]:
        if not self.is_quick or os.environ.get("CUTE_TEST_BUDGET") != "1":
            return []
        return excess(self.calls, self._total())


_CALL = pytest.StashKey[float]()
