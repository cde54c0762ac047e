"""Record of a trace's dependencies that its source does not name: called functions, and GPU properties queried.

The cache on disk compares both before it accepts an entry (:mod:`cute_dialect.lang.calls.cache.disk`).
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar
from types import FunctionType
from typing import TYPE_CHECKING

from cute_dialect.arch.targets import DEFAULT_TARGET
from cute_dialect.runtime.driver import CudaError, driver

if TYPE_CHECKING:
    from cute_dialect.errors import Place


class Recorder:
    """The record of one trace."""

    def __init__(self) -> None:
        self.functions: dict[int, FunctionType] = {}
        """The called functions, by the identity of their code."""
        self.multiprocessors: dict[int, int] = {}
        """The SM count of each GPU that was queried."""
        self.remarks: dict[str, None] = {}
        """Remarks of the tracer, without duplicates."""


_recorder: ContextVar[Recorder | None] = ContextVar("cute_dialect_recorder", default=None)


@contextmanager
def recorded() -> Generator[Recorder]:
    """Record the dependencies of traces within the ``with`` block."""
    recorder = Recorder()
    token = _recorder.set(recorder)
    try:
        yield recorder
    finally:
        _recorder.reset(token)


def called(f: FunctionType) -> None:
    """Record a function that a trace calls."""
    recorder = _recorder.get()
    if recorder is not None:
        recorder.functions.setdefault(id(f.__code__), f)


def remark(code: str, text: str, place: Place | None) -> None:
    """Record a remark for the user that is not an error."""
    recorder = _recorder.get()
    if recorder is not None:
        recorder.remarks[said(code, text, place)] = None


def said(code: str, text: str, place: Place | None) -> str:
    """Return the text of a remark."""
    return f"{place or '?'}: remark {code}: {text}"


def multiprocessors(device: int) -> int:
    """Return the number of SMs of a GPU. Without a GPU it is that of an H100 or H200 SXM."""
    try:
        found = driver().multiprocessors(device)
    except CudaError:
        found = DEFAULT_TARGET.sms
    recorder = _recorder.get()
    if recorder is not None:
        recorder.multiprocessors[device] = found
    return found
