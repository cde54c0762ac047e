"""What tests of refused calls need: whoever compiles anything, or asks for a GPU, is told so; arrays on a GPU."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from cute_dialect.op import compiled
from cute_dialect.runtime import driver as cuda


class OnGpu:
    """An array on a GPU that nobody can read here, of a library that nobody knows; ``strides``: in bytes."""

    def __init__(
        self, *shape: int, dtype: str = "<f2", device: int = 0, at: int = 4096, strides: tuple[int, ...] | None = None
    ) -> None:
        found: dict[str, Any] = {"shape": shape, "typestr": dtype, "data": (at, False), "version": 3}
        self.__cuda_array_interface__ = found | ({} if strides is None else {"strides": strides})
        self.device = SimpleNamespace(id=device)


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
