"""What all tests share: they compile anew, since a cache of the user's could hide an error; upstream's Python."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Iterator
from types import ModuleType

import pytest
from slow_cases import slow_ones, without_a_case

os.environ["CUTE_CACHE"] = "0"

gc.set_threshold(100_000, 20, 20)  # compilations make objects by the hundred thousand, most of which stay for a while

MLIR_WAS_THERE = "mlir.ir" in sys.modules
"""Before any test was collected: pytest may run in a process that has compiled."""


@pytest.fixture(scope="session")
def ir() -> ModuleType:
    """Upstream's ``mlir.ir``; where it is not installed, the test is skipped."""
    return pytest.importorskip("mlir.ir", reason="upstream's mlir package is not installed")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add ``--slow``: run the cases of ``slow_cases.py``, which are left out else."""
    parser.addoption("--slow", action="store_true", help="run the cases that are left out else, and no others")


@pytest.hookimpl(tryfirst=True)  # of a grid all cases are counted
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out slow cases, or all others."""
    names = [item.nodeid.removeprefix("test/") for item in items]
    if not any("::" in argument for argument in config.args):
        unused = without_a_case(names)
        if unused:
            raise pytest.UsageError(f"slow_cases.py: no such cases: {', '.join(unused)}")
        chosen = [slow == config.getoption("--slow") for slow in slow_ones(names)]
        config.hook.pytest_deselected(items=[item for item, kept in zip(items, chosen) if not kept])
        items[:] = [item for item, kept in zip(items, chosen) if kept]


@pytest.fixture(scope="module", autouse=True)
def _settled() -> Iterator[None]:
    """Have the collector not look again at what a module leaves: compiled kernels, millions of objects."""
    yield
    gc.collect()
    gc.freeze()


def pytest_collection_finish() -> None:
    """Refuse test modules that import upstream MLIR: collection stays quick; a test that needs it takes ``ir``."""
    if "mlir.ir" in sys.modules and not MLIR_WAS_THERE:
        raise pytest.UsageError("a test module imports upstream's mlir while tests are collected")
    gc.freeze()
