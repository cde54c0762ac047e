"""Helpers for tests of rejected calls: arrays on a fake GPU, and errors if a kernel is compiled or a GPU is used."""

from __future__ import annotations

import re
from types import SimpleNamespace
from typing import Any

import pytest

from cute_dialect.op.execute import kernel_cache
from cute_dialect.runtime import driver as cuda


class OnGpu:
    """A GPU array of an unknown library, whose memory cannot be read. ``strides`` are in bytes."""

    def __init__(
        self, *shape: int, dtype: str = "<f2", device: int = 0, at: int = 4096, strides: tuple[int, ...] | None = None
    ) -> None:
        found: dict[str, Any] = {"shape": shape, "typestr": dtype, "data": (at, False), "version": 3}
        self.__cuda_array_interface__ = found | ({} if strides is None else {"strides": strides})
        self.device = SimpleNamespace(id=device)


def without_place(error: Exception) -> str:
    """Return the message of an error without the file and line of a traced function."""
    return re.sub(r" \([^()]*\.py:\d+\)", "", str(error))


def refuse(*_: object, **__: object) -> None:
    raise AssertionError("something is compiled")


def no_driver() -> None:
    raise cuda.NoGpuError("no driver")


def refuse_compiling(monkeypatch: pytest.MonkeyPatch) -> None:
    """Raise an error if a kernel is compiled."""
    monkeypatch.setattr(kernel_cache, "load_or_compile", refuse)


def refuse_all(monkeypatch: pytest.MonkeyPatch) -> None:
    """Raise an error if a kernel is compiled, and report that there is no GPU."""
    refuse_compiling(monkeypatch)
    monkeypatch.setattr(cuda, "driver", no_driver)
