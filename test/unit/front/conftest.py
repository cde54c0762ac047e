"""Tests of the language's front end count traces, compilations and launches, so they run without a compile cache."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def _without_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUTE_CACHE", "0")
