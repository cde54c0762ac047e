"""The target architecture, and the default device of calls.

::

    CUTE_CHIP=sm_90a     the architecture if there is no GPU to query
    CUTE_DEVICE=cpu      calls run on the interpreter

>>> with target("sm_80"):
...     current_target()
'sm_80'
"""

from __future__ import annotations

import weakref
from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import lru_cache
from typing import Any

from cute_dialect.arch.targets import DEFAULT_CHIP, default_features, find_target
from cute_dialect.lang.tracing.tracer import active
from cute_dialect.runtime.driver import CudaError, NoGpuError, driver
from cute_dialect.runtime.settings import word

__all__ = ["current_target", "default_device", "forget_quick_calls", "remember_quick_calls", "target"]

_chosen: ContextVar[str | None] = ContextVar("cute_dialect_target", default=None)
_quick: weakref.WeakSet[Any] = weakref.WeakSet()
"""Functions with a cached call, which is recognized without querying the target."""


@contextmanager
def target(chip: str) -> Generator[None]:
    """Compile for ``chip`` within the ``with`` block: ``with cute.target("sm_80"): …``."""
    find_target(chip, default_features(chip))
    forget_quick_calls()
    token = _chosen.set(chip)
    try:
        yield
    finally:
        _chosen.reset(token)
        forget_quick_calls()


def remember_quick_calls(function: Any) -> None:
    """Register a function with a cached call."""
    _quick.add(function)


def forget_quick_calls() -> None:
    """Discard all cached calls, so that each function looks up its specialization at the next call."""
    for function in list(_quick):
        function.forget()
    _quick.clear()


def current_target() -> str:
    """Return the target architecture: that of :func:`target`, of the GPU, of ``CUTE_CHIP``, or sm_90a."""
    tracer = active()
    if tracer is not None:
        return tracer.chip
    return _chosen.get() or _gpus_chip() or word("CUTE_CHIP") or _default_chip()


def _default_chip() -> str:
    return DEFAULT_CHIP


@lru_cache(maxsize=1)
def _gpus_chip() -> str | None:
    """Return the architecture of the first GPU, or None."""
    try:
        major, minor = driver().capability(0)
    except (NoGpuError, CudaError):
        return None
    return f"sm_{major}{minor}{'a' if major >= 9 else ''}"


_devices: list[str] = []
"""The devices set by ``running_on``, innermost last."""


def default_device() -> str:
    """Return the device of calls without ``device=``."""
    return _devices[-1] if _devices else word("CUTE_DEVICE", ("gpu", "cpu")) or "gpu"


_without_checks: list[bool] = []


def default_checks() -> str:
    """Return the checks of calls on the interpreter that name none: ``CUTE_CHECKS``, else ``auto``."""
    return "none" if _without_checks else word("CUTE_CHECKS") or "auto"


@contextmanager
def without_checks() -> Generator[None]:
    """Run calls that name no checks without any, in all threads: times are measured."""
    _without_checks.append(True)
    try:
        yield
    finally:
        _without_checks.pop()


@contextmanager
def running_on(device: str) -> Generator[None]:
    """Set the device of calls without ``device=`` within the ``with`` block, in all threads."""
    _devices.append(device)
    try:
        yield
    finally:
        _devices.remove(device)
