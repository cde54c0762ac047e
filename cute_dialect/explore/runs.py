"""Interpreter runs for the page: one with all checks and counters, and one for the timeline."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from cute_dialect.interp import InterpError, RunReport
from cute_dialect.runtime.arrays import NotAnArray, numpy_dtype, view_of
from cute_dialect.runtime.call_options import OptionError
from cute_dialect.runtime.host_memory import host_bytes, span
from cute_dialect.runtime.launch_plan import LaunchError

if TYPE_CHECKING:
    from cute_dialect.runtime.launch import Kernel
    from cute_dialect.runtime.manifest import Param

EXTENT = 128
"""Default extent of a dynamic dimension."""


@dataclass
class Run:
    """Results of a kernel's run: counters, timeline, the fault found, and the reason if there was no run."""

    report: RunReport | None = None
    timeline: RunReport | None = None
    fault: InterpError | None = None
    why_not: str = ""
    arguments: str = ""

    @property
    def not_counted(self) -> str:
        """The reason why a run has no counters or no timeline, empty if it has them."""
        return "The run ended with a fault before it counted anything; see Races and faults." if self.fault else ""


def run(kernel: Kernel, arguments: Sequence[object], *, blocks: str | None = None) -> Run:
    """Run a kernel on CPU arrays, which it modifies. A fault is part of the result.

    ``blocks`` selects the blocks to count. The timeline shows the first block, or its cluster.

    Raises LaunchError.
    """
    made = Run(arguments=", ".join(_shown(n, a) for n, a in zip(kernel.target.names, arguments)))
    try:
        made.report = _counts(kernel, arguments, blocks, ("race", "uninit"))
    except OptionError as e:  # Reports need a single launch, but there are several.
        made.why_not = f"{e}; select one with --kernel"
        return made
    except InterpError as e:
        if e.kind == "argument":  # Nothing ran.
            raise LaunchError(e.message) from e
        made.fault = e
    try:
        made.report = made.report or _counts(kernel, arguments, blocks, ())
        made.timeline = kernel(*arguments, device="cpu", reports=("timeline",), blocks="0")
    except InterpError as e:  # The fault does not come from a check, so it occurs in every run.
        made.fault = made.fault or e
    return made


def _counts(kernel: Kernel, arguments: Sequence[object], blocks: str | None, checks: Sequence[str]) -> RunReport | None:
    reports = ("banks", "coalescing", "occupancy", "flops")
    return kernel(*arguments, device="cpu", checks=checks, blocks=blocks, reports=reports)


def _shown(name: str, value: object) -> str:
    shape, dtype = getattr(value, "shape", None), getattr(value, "dtype", None)
    return f"{name} {'x'.join(map(str, shape))} {dtype}" if shape is not None else f"{name} = {value}"


def copy_of(value: object) -> object:
    """Copy an argument in CPU memory to a numpy array with the same shape, strides and contents.

    Any other value is returned unchanged.
    """
    import numpy as np

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
    """Return the default ``cute-run --in`` text of a parameter, with ``extent`` for dynamic extents.

    None if its shape has nested modes, or if it is not a tensor.
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
