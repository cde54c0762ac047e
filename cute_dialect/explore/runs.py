"""Runs of a kernel on the interpreter, for the page: once with all checks and counts, once more for the timeline."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from cute_dialect.runtime.binding import LaunchError

if TYPE_CHECKING:
    from cute_dialect.interp import InterpError, RunReport
    from cute_dialect.runtime.launch import Kernel
    from cute_dialect.runtime.signature import Param

__all__ = ["Run", "copy_of", "default_text", "run"]

EXTENT = 128
"""What an extent is that nobody has said."""


@dataclass
class Run:
    """What is known of a kernel's run: counts, timeline, the fault that a check found, why there was no run."""

    report: RunReport | None = None
    timeline: RunReport | None = None
    fault: InterpError | None = None
    why_not: str = ""
    arguments: str = ""

    @property
    def not_counted(self) -> str:
        """Why there are no counts, or no timeline, where there was a run."""
        return "The run ended with a fault before anything was counted: see Races and faults." if self.fault else ""


def run(kernel: Kernel, arguments: Sequence[object], *, blocks: str | None = None) -> Run:
    """Run a kernel on arrays of the CPU, which change; a fault is part of what is returned.

    ``blocks``: which ones, for the counts; the timeline is that of the first block, or its cluster.

    Raises LaunchError.
    """
    from cute_dialect.interp import InterpError
    from cute_dialect.runtime.call_options import OptionError

    made = Run(arguments=", ".join(_shown(n, a) for n, a in zip(kernel.target.names, arguments)))
    try:
        made.report = _counts(kernel, arguments, blocks, ("race", "uninit"))
    except OptionError as e:  # several launches: reports are of one
        made.why_not = f"{e}; say which with --kernel"
        return made
    except InterpError as e:
        if e.kind == "argument":  # nothing ran
            raise LaunchError(e.message) from e
        made.fault = e
    try:
        made.report = made.report or _counts(kernel, arguments, blocks, ())
        made.timeline = kernel(*arguments, device="cpu", reports=("timeline",), blocks="0")
    except InterpError as e:  # not what a check found, but what no run survives
        made.fault = made.fault or e
    return made


def _counts(kernel: Kernel, arguments: Sequence[object], blocks: str | None, checks: Sequence[str]) -> RunReport | None:
    reports = ("banks", "coalescing", "occupancy", "flops")
    return kernel(*arguments, device="cpu", checks=checks, blocks=blocks, reports=reports)


def _shown(name: str, value: object) -> str:
    shape, dtype = getattr(value, "shape", None), getattr(value, "dtype", None)
    return f"{name} {'x'.join(map(str, shape))} {dtype}" if shape is not None else f"{name} = {value}"


def copy_of(value: object) -> object:
    """Return an array of numpy with the shape, the strides and the bytes of an argument that has memory on the CPU.

    Anything else is returned as it is.
    """
    import numpy as np

    from cute_dialect.runtime.arrays import NotAnArray, numpy_dtype, view_of
    from cute_dialect.runtime.device_memory import host_bytes, span

    try:
        view = view_of(value)
    except NotAnArray:
        return value
    if view.device >= 0:
        return value
    first, size = span(view)
    data = np.frombuffer(bytes(host_bytes(first, size)), np.uint8).copy()
    dtype = numpy_dtype(view.dtype)
    aligned = np.empty(size + 256, np.uint8)
    shift = -aligned.ctypes.data % 256
    aligned[shift : shift + size] = data
    strides = tuple(s * dtype.itemsize for s in view.strides)
    start = shift + (view.pointer - first)
    end = start + (shift + size - start) // dtype.itemsize * dtype.itemsize
    return np.lib.stride_tricks.as_strided(aligned[start:end].view(dtype), tuple(view.shape), strides)


def default_text(param: Param, extent: int = EXTENT) -> str | None:
    """Return what ``cute-run --in`` would be told of a parameter: extents that are not known are ``extent``.

    None where its shape has nested modes, or it is no tensor.
    """
    shape, stride = cast("dict[str, object]", param).get("shape"), cast("dict[str, object]", param).get("stride")
    if param["kind"] not in ("memref", "pointer"):
        return None
    if param["kind"] == "pointer" or shape is None:
        return f"{extent * extent}"
    dims = cast("list[object]", shape if isinstance(shape, list) else [shape])
    steps = cast("list[object]", stride if isinstance(stride, list) else [stride])
    extents: list[int] = []
    for d in dims:
        if isinstance(d, dict):
            div = cast("dict[str, int]", d).get("div", 1)
            extents.append(-(-extent // div) * div)
        elif isinstance(d, int):
            extents.append(d)
        else:
            return None
    words = "x".join(map(str, extents)) + "=randn"
    if len(extents) > 1 and all(isinstance(s, int) for s in steps):
        return f"{words}:strides={','.join(map(str, steps))}"
    if len(extents) == 2 and steps[0] == 1:
        return f"{words}:strides=1,{extents[0]}"
    return words
