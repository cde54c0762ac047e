"""What tests of refused calls need: whoever compiles anything, or asks for a GPU, is told so."""

from __future__ import annotations

import pytest

from cute_dialect.op import compiled
from cute_dialect.runtime import driver as cuda


def refuse(*_: object, **__: object) -> None:
    raise AssertionError("something is compiled")


def no_driver() -> None:
    raise cuda.NoGpuError("no driver")


def refuse_compiling(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let nothing be compiled."""
    monkeypatch.setattr(compiled, "by_name", refuse)


def refuse_all(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let nothing be compiled, and no GPU be there."""
    refuse_compiling(monkeypatch)
    monkeypatch.setattr(cuda, "driver", no_driver)
