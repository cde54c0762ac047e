"""Fixtures for tests that need an NVIDIA GPU. Without a GPU each module is skipped once, with a reason (``-rs``)."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable
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
    """The tests of a module, which are skipped because the machine has no suitable GPU."""

    def runtest(self) -> None:
        """Skip with the reason."""
        pytest.skip(str(no_gpu()))


class NotImported(pytest.Module):
    """A test module that cannot run here: one skipped item, without the time of importing the module."""

    def collect(self) -> list[NotRun]:
        """Return the skipped item."""
        return [NotRun.from_parent(self, name="needs_a_gpu")]


def pytest_pycollect_makemodule(module_path: Path, parent: pytest.Collector) -> pytest.Module | None:
    """Collect one skipped item per module if its tests cannot run, instead of its thousands of cases."""
    return NotImported.from_parent(parent, path=module_path) if no_gpu() is not None else None


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Callable[[str], Path]:
    """Return a function that returns the folder of a part of ``build.py``, for example ``built("tma")``.

    If ``CUTE_GPU_ARTIFACTS`` is set, the part comes from there (``python test/gpu/build.py DIR``).  Otherwise the first
    test that needs the part builds it; workers of pytest-xdist share it.
    """
    given = os.environ.get("CUTE_GPU_ARTIFACTS")
    base = tmp_path_factory.getbasetemp()
    shared = base.parent / "kernels" if hasattr(request.config, "workerinput") else base / "kernels"

    def folder_of(part: str) -> Path:
        if given:
            folder = Path(given) / part
            assert folder.exists(), f"{folder} is missing; build it: python test/gpu/build.py {given}"
            return folder
        if find_spec("xdsl") is None or find_spec("mlir") is None:
            pytest.skip(
                "NOT RUN: no compiler; build on another machine (python test/gpu/build.py DIR) and set "
                "CUTE_GPU_ARTIFACTS=DIR"
            )
        import build

        shared.mkdir(exist_ok=True)
        with open(shared / f"{part}.lock", "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not (shared / f"{part}.done").exists():
                build.PARTS[part](str(shared), "sm_90a")
                (shared / f"{part}.done").touch()
        return shared / part

    return folder_of


@pytest.fixture(scope="module")
def folder(request: pytest.FixtureRequest, built: Callable[[str], Path]) -> Path:
    """Return the folder of the part of ``build.py`` that the test module names in ``FOLDER``."""
    name: str = request.module.FOLDER
    return built(name)


@pytest.fixture
def prebuilt(built: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Return a function that makes operations load the kernels of a part of ``build.py``.

    Without ``CUTE_GPU_ARTIFACTS`` it does nothing: each call compiles the kernel that it needs.
    """

    def use(part: str) -> None:
        if os.environ.get("CUTE_GPU_ARTIFACTS"):
            monkeypatch.setenv("CUTE_KERNELS", str(built(part)))

    return use
