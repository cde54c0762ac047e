"""What a trace came by that no name in the source says: the functions that it called, what it asked of the GPU.

The cache on disk compares both before it believes an entry (:mod:`cute_dialect.front.disk`).
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar
from types import FunctionType
from typing import TYPE_CHECKING

from cute_dialect.arch.targets import DEFAULT_TARGET

if TYPE_CHECKING:
    from cute_dialect.front.errors import Place

__all__ = ["Recorder", "called", "multiprocessors", "recorded", "remark", "said"]


class Recorder:
    """The notes of one trace."""

    def __init__(self) -> None:
        self.functions: dict[int, FunctionType] = {}
        """By the identity of their code."""
        self.multiprocessors: dict[int, int] = {}
        """Of each GPU that was asked for."""
        self.remarks: dict[str, None] = {}
        """What the front-end has to say, each once."""


_recorder: ContextVar[Recorder | None] = ContextVar("cute_dialect_recorder", default=None)


@contextmanager
def recorded() -> Generator[Recorder]:
    """Note what traces inside come by."""
    recorder = Recorder()
    token = _recorder.set(recorder)
    try:
        yield recorder
    finally:
        _recorder.reset(token)


def called(f: FunctionType) -> None:
    """Note a function that a trace calls."""
    recorder = _recorder.get()
    if recorder is not None:
        recorder.functions.setdefault(id(f.__code__), f)


def remark(code: str, text: str, place: Place | None) -> None:
    """Note what a user may want to know of a trace, and that is no error."""
    recorder = _recorder.get()
    if recorder is not None:
        recorder.remarks[said(code, text, place)] = None


def said(code: str, text: str, place: Place | None) -> str:
    """Return the text of a remark."""
    return f"{place or '?'}: remark {code}: {text}"


def multiprocessors(device: int) -> int:
    """Return the SMs of a GPU; without one those of an H100 or H200 SXM."""
    from cute_dialect.runtime.driver import CudaError, driver

    try:
        found = driver().multiprocessors(device)
    except CudaError:
        found = DEFAULT_TARGET.sms
    recorder = _recorder.get()
    if recorder is not None:
        recorder.multiprocessors[device] = found
    return found
