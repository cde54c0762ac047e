"""What all tests share: they compile anew, since a cache of the user's could hide an error; upstream's Python."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Iterator
from types import ModuleType

import pytest

os.environ["CUTE_CACHE"] = "0"

MLIR_WAS_THERE = "mlir.ir" in sys.modules
"""Before any test was collected: pytest may run in a process that has compiled."""


@pytest.fixture(scope="session")
def ir() -> ModuleType:
    """Upstream's ``mlir.ir``; where it is not installed, the test is skipped."""
    return pytest.importorskip("mlir.ir", reason="upstream's mlir package is not installed")


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
