"""Fixtures for tests that need an NVIDIA GPU. Without a GPU each test is skipped once, with a reason (``-rs``)."""

from __future__ import annotations

import os
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import pytest

from cute_dialect.runtime import driver as cuda


@cache
def no_gpu() -> str | None:
    """Return the reason why these tests cannot run here, or ``None`` if they can."""
    try:
        gpu = cuda.driver()
    except cuda.CudaError as e:
        return f"NOT RUN: {e}"
    if gpu.capability(0) != (9, 0):
        return f"NOT RUN: {gpu.name(0)} is no sm_90 GPU"
    return None


class NotRun(pytest.Item):
    """A test that is skipped because the machine has no suitable GPU."""

    def runtest(self) -> None:
        """Skip with the reason."""
        pytest.skip(str(no_gpu()))


def pytest_pycollect_makeitem(collector: pytest.Module, name: str) -> pytest.Item | None:
    """Collect one skipped item per test if the test cannot run, instead of its thousands of cases."""
    if name.startswith("test_") and no_gpu() is not None:
        return NotRun.from_parent(collector, name=name)
    return None


@pytest.fixture(scope="module")
def folder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of the kernels that the test module names in ``FOLDER``.

    If ``CUTE_GPU_ARTIFACTS`` is set, they come from there (``python test/gpu/build.py DIR``). Otherwise they
    are built now.
    """
    name: str = request.module.FOLDER
    given = os.environ.get("CUTE_GPU_ARTIFACTS")
    if given:
        return Path(given) / name
    if find_spec("xdsl") is None or find_spec("mlir") is None:
        pytest.skip(
            "NOT RUN: no compiler; build on another machine (python test/gpu/build.py DIR) and set "
            "CUTE_GPU_ARTIFACTS=DIR"
        )
    import build

    made = tmp_path_factory.mktemp(name)
    getattr(build, f"build_{name}")(str(made), "sm_90a")
    return made / name


@pytest.fixture(scope="session")
def artifacts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return compiled kernels, as ``cute-bench elementwise_add --build`` builds them.

    If ``CUTE_GPU_ARTIFACTS`` is set, they come from there. Otherwise they are built now.
    """
    given = os.environ.get("CUTE_GPU_ARTIFACTS")
    if given:
        return Path(given)
    if find_spec("xdsl") is None or find_spec("mlir") is None:
        pytest.skip(
            "NOT RUN: no compiler; build on another machine (cute-bench elementwise_add --build DIR) and set "
            "CUTE_GPU_ARTIFACTS=DIR"
        )
    from cute_dialect.tools.bench.cases.elementwise import build_add

    folder = tmp_path_factory.mktemp("artifacts")
    build_add(str(folder), "sm_90a")
    return folder
