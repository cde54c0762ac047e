"""CUDA streams and contexts for programs that use them explicitly (names: CuTe DSL's). Kernels do not need them.

Without a GPU, calls on the interpreter need no context, and streams have no effect.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum
from typing import Any

from cute_dialect.lang.calls.options import default_device
from cute_dialect.lang.values.annotations import Stream
from cute_dialect.runtime.driver import CudaError, driver

__all__ = [
    "CUresult",
    "CUstream",
    "CUstream_flags",
    "checkCudaErrors",
    "cuDeviceGetCount",
    "cuInit",
    "default_stream",
    "initialize_cuda_context",
    "stream_sync",
]


class CUresult(IntEnum):
    """Results of driver calls."""

    CUDA_SUCCESS = 0


def cuInit(flags: int = 0) -> tuple[CUresult]:
    """Initialize the driver. On the interpreter it does nothing.  Raises NoGpuError if there is no GPU."""
    if default_device() != "cpu":
        driver()
    return (CUresult.CUDA_SUCCESS,)


def cuDeviceGetCount() -> tuple[CUresult, int]:
    """Return the number of GPUs. The interpreter counts as one."""
    return CUresult.CUDA_SUCCESS, 1 if default_device() == "cpu" else driver().device_count


class CUstream_flags(IntEnum):
    """Flags of streams."""

    CU_STREAM_DEFAULT = 0
    CU_STREAM_NON_BLOCKING = 1


CUstream = Stream


def checkCudaErrors(result: Sequence[Any]) -> Any:
    """Return the values of a call of cuda-python: None, one value or a tuple.  Raises CudaError.

    >>> checkCudaErrors((0, 4096)), checkCudaErrors((0,))
    (4096, None)
    """
    code, *values = result
    if int(code):
        raise CudaError("a call of cuda-python", int(code), getattr(code, "name", "an error"))
    return None if not values else values[0] if len(values) == 1 else tuple(values)


def initialize_cuda_context(device_id: int = 0) -> None:
    """Make the primary context of a GPU current.  Raises NoGpuError if kernels run on the GPU and there is none."""
    if default_device() == "cpu":
        return
    driver().set_context(driver().primary_context(device_id))


def default_stream() -> Stream:
    """Return the default stream."""
    return Stream(0)


def stream_sync(stream: Stream | int) -> None:
    """Wait until all work on a stream is complete."""
    if default_device() == "cpu":
        return
    driver().synchronize(getattr(stream, "handle", stream))


def __dir__() -> list[str]:
    return sorted(__all__)
