"""Configuration of all tests: the quick and slow tiers, a compile cache per test run, and CPU limits."""

from __future__ import annotations

import gc
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from types import ModuleType

import pytest
from cpu_budget import CpuBudget
from tiers import mark_slow_cases

os.environ.setdefault("CUTE_CHECKS", "none")  # Some test kernels race on purpose.

gc.set_threshold(100_000, 20, 20)  # A compilation allocates hundreds of thousands of long-lived objects.

MLIR_WAS_THERE = "mlir.ir" in sys.modules
"""Before any test was collected: pytest may run in a process that has compiled."""


@pytest.fixture(scope="session")
def ir() -> ModuleType:
    """Return upstream's ``mlir.ir``, or skip the test if it is not installed."""
    return pytest.importorskip("mlir.ir", reason="upstream's mlir package is not installed")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options that select a tier and report CPU times."""
    parser.addoption("--slow", action="store_true", help="run the slow tests, and no others")
    parser.addoption("--all", action="store_true", help="run the slow tests, too")
    parser.addoption("--cpu-report", type=int, default=0, metavar="N", help="list the N tests that take most CPU time")


def pytest_configure(config: pytest.Config) -> None:
    """Create the compile cache of this test run and start measuring the CPU time of tests.

    The cache starts empty, so that the user's own cache cannot hide an error.  The workers of xdist and the
    programs that tests start share it.  ``CUTE_CACHE=0`` runs all tests without one.
    """
    config.pluginmanager.register(CpuBudget(config), "cpu_budget")
    if os.environ.get("CUTE_CACHE") != "0" and not hasattr(config, "workerinput"):
        folder = tempfile.mkdtemp(prefix="cute-tests-")
        os.environ |= {"CUTE_CACHE": "1", "CUTE_CACHE_DIR": folder}
        config.add_cleanup(lambda: shutil.rmtree(folder, ignore_errors=True))


@pytest.hookimpl(tryfirst=True)  # Samples are drawn from all cases, before -k filters them.
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Deselect the slow tests, or with ``--slow`` all others.  Tests named with ``::`` always run."""
    if any("::" in argument for argument in config.args):
        return
    mark_slow_cases(items)
    if config.getoption("--all"):
        return
    wanted = config.getoption("--slow")
    left_out = [item for item in items if ("slow" in item.keywords) != wanted]
    config.hook.pytest_deselected(items=left_out)
    items[:] = [item for item in items if ("slow" in item.keywords) == wanted]


@pytest.fixture(scope="module", autouse=True)
def _settled() -> Iterator[None]:
    """Freeze the objects that survive a test module, so that the garbage collector does not scan them again."""
    yield
    gc.collect()
    gc.freeze()


def pytest_collection_finish() -> None:
    """Refuse test modules that import upstream MLIR, which slows collection. Tests use the fixture ``ir`` instead."""
    if "mlir.ir" in sys.modules and not MLIR_WAS_THERE:
        raise pytest.UsageError("a test module imports upstream's mlir while tests are collected")
    gc.freeze()
