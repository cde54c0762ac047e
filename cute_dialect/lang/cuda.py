"""Streams and contexts of CUDA for programs that say them; kernels need none of it (names: CuTe DSL's).

Without a GPU, calls that run on the interpreter need no context, and its streams do nothing.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Any

from cute_dialect.front.annotations import Stream
from cute_dialect.front.target import default_device

__all__ = ["CUstream", "CUstream_flags", "default_stream", "initialize_cuda_context", "stream_sync"]


class CUstream_flags(IntEnum):
    """The streams that every context has."""

    CU_STREAM_DEFAULT = 0
    CU_STREAM_NON_BLOCKING = 1


CUstream = Stream


def initialize_cuda_context(device_id: int = 0) -> None:
    """Make the primary context of a GPU current.  Raises NoGpuError where there is none and kernels run on it."""
    if default_device() == "cpu":
        return
    from cute_dialect.runtime.driver import driver

    driver().set_context(driver().primary_context(device_id))


def default_stream() -> Stream:
    """Return the default stream."""
    return Stream(0)


def stream_sync(stream: Any) -> None:
    """Wait until what was launched on a stream is done."""
    if default_device() == "cpu":
        return
    from cute_dialect.runtime.driver import driver

    driver().synchronize(getattr(stream, "handle", stream))
