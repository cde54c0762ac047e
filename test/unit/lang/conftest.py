"""Disables the compile cache in most modules, because their tests count traces, compilations and launches."""

from __future__ import annotations

import pytest

WITH_CACHE = (
    "test_autotune", "test_changed_tensor_maps", "test_default_checks", "test_differential", "test_errors",
    "test_example_programs", "test_grouped_tiles", "test_language_md", "test_names", "test_pipeline",
    "test_tensor_kernels",
)  # fmt: skip
"""Modules that compile many kernels and count nothing."""


@pytest.fixture(autouse=True)
def _without_cache(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.module.__name__ not in WITH_CACHE:
        monkeypatch.setenv("CUTE_CACHE", "0")
