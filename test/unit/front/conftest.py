"""Disables the compile cache, because tests of the front end count traces, compilations and launches."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def _without_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUTE_CACHE", "0")
