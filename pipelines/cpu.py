"""Prepared launches on the CPU interpreter, with the same checks and parameter bytes as on the GPU."""

from __future__ import annotations

import struct
import sys
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple, cast

import numpy as np

from cute_dialect.arch.tensor_map_codes import ELEMENTS, OOB_FILLS, SWIZZLES, unpack_of
from cute_dialect.interp import Pointer, RunOptions, run_kernel
from cute_dialect.interp.field import Algebra, field_of
from cute_dialect.interp.memory.buffers import Elements
from cute_dialect.interp.memory.tensor_map import TensorMap
from cute_dialect.ir.printing import ir_text
from cute_dialect.pipelines.compiler import parse_module
from cute_dialect.pipelines.worker import borrowed
from cute_dialect.runtime import abi, host_program
from cute_dialect.runtime.arrays import ArrayView, numpy_dtype
from cute_dialect.runtime.call_options import OptionError, read_checks
from cute_dialect.runtime.host_memory import end_of_memory, host_bytes, is_writable, regions, span
from cute_dialect.runtime.launch_plan import DeviceError, LaunchError, Plan, Target

if TYPE_CHECKING:  # pragma: no cover
    from numpy.typing import NDArray
    from xdsl.dialects.builtin import ModuleOp

    from cute_dialect.interp import Pointer, Progress, RunOptions, RunReport
    from cute_dialect.interp.exec.ranks import World
    from cute_dialect.interp.memory.arguments import Argument
    from cute_dialect.interp.memory.buffers import Elements
    from cute_dialect.runtime.launch import CompiledModule

__all__ = ["queueing_on", "run_on_cpu", "without_nvgpu"]


TO_NVVM = (
    "builtin.module(convert-nvgpu-to-nvvm,gpu.module(convert-vector-to-llvm,convert-arith-to-llvm),"
    "reconcile-unrealized-casts,canonicalize)"
)
"""Passes that remove nvgpu ops and types, memrefs, and two-dimensional vectors."""


@lru_cache(maxsize=8)
def without_nvgpu(module: ModuleOp) -> ModuleOp:
    """Return the module after upstream's ``convert-nvgpu-to-nvvm``; the module itself if it has no nvgpu op.

    Raises :class:`~cute_dialect.pipelines.upstream.UpstreamMissing` if upstream MLIR is needed and not
    installed.
    """
    if not any(op.name.startswith("nvgpu.") for op in module.walk()):
        return module
    with borrowed() as worker:
        upstream = worker.module(ir_text(module, generic=True))
        upstream.run_pipeline(TO_NVVM)
        text = upstream.text(generic=True)
    return parse_module(text)


_MAX_WINDOWS = 1 << 18
"""Limit on the rows of a padded array that are passed to the interpreter as separate ranges."""
CHECK_BUDGET = 100_000_000
"""Work of a launch after which ``checks="auto"`` stops: about one second of interpretation without checks."""
_USUAL = RunOptions()
_FLOATS = {"f16": "<e", "f32": "<f", "tf32": "<f", "f64": "<d"}


def run_on_cpu(
    module: CompiledModule,
    plans: Sequence[Plan],
    views: Sequence[ArrayView | None],
    target: Target,
    *,
    progress: Callable[[Progress], None] | None = None,
    blocks: Sequence[int] | str | None = None,
    checks: Sequence[str] | str | None = None,
    reports: Sequence[str] = (),
    schedule: str = "round-robin",
    seed: int = 0,
    max_steps: int | None = None,
    resident: int | None = None,
    unwritten: Sequence[str] = (),
    field: int | Algebra | None = None,
) -> RunReport | None:
    """Run ``plans`` in order on numpy arrays or CPU tensors, which are updated in place.

    Return the report, summed over the launches, or ``None`` if no launch has anything to do.  Output of ``printf``
    appears on standard output after each launch, as on the GPU.

    Args:
        views: the array of each argument, None for plain values.
        progress, blocks, checks, reports, schedule, seed, max_steps, resident: see
            :class:`cute_dialect.interp.RunOptions`; ``blocks`` and ``reports`` need a call with one launch.
        unwritten: names of arrays without initial values.
        field: the prime of a run over a field, or an algebra; the arrays hold its elements in the bits of floats.

    Raises :class:`DeviceError` for an array that is not in CPU memory, and the errors of the interpreter.
    """
    for name, view in zip(target.names, views):
        if view is not None and view.device >= 0:
            raise DeviceError(f"argument {name}: expected an array in CPU memory, got one on GPU {view.device}")
    for name in unwritten:
        if name not in target.names or views[target.names.index(name)] is None:
            known = ", ".join(n for n, v in zip(target.names, views) if v is not None) or "none"
            raise OptionError(f"unwritten: expected names of array arguments ({known}), got {name!r}")
    plans = [plan for plan in plans if not plan.empty]
    for name, value in (("blocks", blocks), ("reports", reports)):
        if len(plans) > 1 and value:
            kernels = ", ".join(f"@{plan.kernel}" for plan in plans)
            raise OptionError(f"{name}: expected a call with one launch, but this call launches {kernels}")
    names, budgeted = read_checks(checks)
    options = RunOptions(
        progress=progress,
        blocks=blocks,
        checks=names,
        check_budget=CHECK_BUDGET if budgeted else None,
        reports=reports,
        schedule=schedule,
        seed=seed,
        max_steps=max_steps,
        resident=resident,
        chip=module.manifest["chip"],
        algebra=None if field is None else field_of(field),
    )
    if _queues:
        _queue(module, plans, views, target, options, unwritten)
        return None
    total: RunReport | None = None
    for plan in plans:
        memory = _memory(views, target.names, unwritten)
        report = _run_plan(module, plan, memory, target.names, options)
        if report.unchecked:
            report.warnings.append(
                f"the checks race and uninit were skipped for {report.unchecked} of {report.blocks} blocks of "
                f"@{plan.kernel}, because the run is large; checks='race,uninit' (CUTE_CHECKS=race,uninit) checks all"
            )
        sys.stdout.write("".join(report.printf))
        if total is None:
            total = report
        else:
            total.add(report)
        # Arrays that this launch can write no longer count as unwritten.
        reached = {argument for _, _, argument, _ in plan.packed.patches}
        reached |= {m.address.argument for _, m in plan.packed.maps}
        unwritten = [name for name in unwritten if target.names.index(name) not in reached]
    return total


_queues: list[tuple[World, int]] = []
"""The world and the rank whose stream receives launches, innermost last."""


@contextmanager
def queueing_on(world: World, rank: int) -> Generator[None]:
    """Queue launches on the stream of a rank, within the ``with`` block, instead of running them."""
    _queues.append((world, rank))
    try:
        yield
    finally:
        _queues.pop()


def _queue(
    module: CompiledModule,
    plans: Sequence[Plan],
    views: Sequence[ArrayView | None],
    target: Target,
    options: RunOptions,
    unwritten: Sequence[str],
) -> None:
    """Queue launches on the stream of a rank."""
    world, rank = _queues[-1]
    for name in ("blocks", "reports", "algebra", "schedule"):
        if getattr(options, name) != getattr(_USUAL, name):
            raise OptionError(f"{name}: ranks run together, so this is no option of one call")
    world.keep(views)
    for plan in plans:
        # Without TMA, arrays that follow each other in memory must not overlap those of earlier launches.
        memory = _memory(views, target.names, unwritten, is_padded=bool(plan.packed.maps))
        operands = _operands(module, plan, memory)
        lowered = without_nvgpu(cast("ModuleOp", module.lowered(plan.kernel)))
        world.launch(rank, lowered, plan.kernel, operands, plan.shape, _registers(module, plan.kernel))


def _operands(module: CompiledModule, plan: Plan, memory: Sequence[_Memory | None]) -> list[Argument]:
    """Return the arguments of a kernel; ``memory`` is that of the arguments of the call."""
    kernel = next(k for k in module.manifest["kernels"] if k["name"] == plan.kernel)
    patches = {(p, o): (a, add) for p, o, a, add in plan.packed.patches}
    maps = dict(plan.packed.maps)
    operands: list[Argument] = []
    for p, (param, data) in enumerate(zip(kernel["params"], plan.packed.buffers)):
        if p in maps:
            operands.append(_tensor_map(maps[p], memory, kernel["names"][p]))
            continue
        patched = {o: _pointer(memory, a, add) for (q, o), (a, add) in patches.items() if q == p}
        operands.append(_argument(abi.parse_type(param["lowered"]), data, patched))
    return operands


def _run_plan(
    module: CompiledModule, plan: Plan, memory: Sequence[_Memory | None], names: Sequence[str], options: RunOptions
) -> RunReport:
    """Run one launch; ``memory`` and ``names`` are those of the arguments."""
    registers = _registers(module, plan.kernel)
    report = run_kernel(
        without_nvgpu(cast("ModuleOp", module.lowered(plan.kernel))),
        plan.kernel,
        _operands(module, plan, memory),
        plan.shape,
        replace(options, registers=registers),
    )
    for found, name in zip(memory, names):
        mask = next((m for source, m in report.written if found is not None and source is found.data), None)
        if found is not None and mask is not None and (elements := _touched(found, mask)).any():
            report.written_elements[name] = elements
    if report.profile is not None:
        report.profile.registers = registers
    return report


def _touched(memory: _Memory, mask: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Reduce a mask of bytes to a mask of the array's elements."""
    e = memory.elements
    shape, strides = (*e.shape, e.itemsize), (*e.strides, 1)
    return np.asarray(np.lib.stride_tricks.as_strided(mask[e.start :], shape, strides).any(axis=-1))


def _registers(module: CompiledModule, kernel: str) -> int:
    """Return the registers per thread from the ptxas report; 0 without a report."""
    for code in module.artifact.code:
        for entry in cast("list[dict[str, object]]", (code.ptxas or {}).get("kernels", [])):
            if entry["name"] == kernel:
                return cast("int", entry["registers"])
    return 0


def _tensor_map(m: host_program.TensorMap, memory: Sequence[_Memory | None], name: str) -> Argument:
    """Build the interpreter's tensor map."""
    if m.interleave:
        raise LaunchError(f"argument {name}: the interpreter does not support tensor maps with interleave")
    return TensorMap(
        ELEMENTS[m.element],
        m.extents,
        m.strides,
        m.box,
        m.steps if any(s != 1 for s in m.steps) else (),
        SWIZZLES[m.swizzle],
        OOB_FILLS[m.oob],
        m.pixels,
        m.lower,
        m.upper,
        unpack=unpack_of(m.element),
        wide=m.wide,
        pointer=_pointer(memory, m.address.argument, m.address.offset),
        name=name,
    )


def _argument(type_: abi.Type, data: bytes, pointers: Mapping[int, Pointer], offset: int = 0) -> Argument:
    """Decode a parameter value of a lowered type from the bytes that the GPU would get."""
    if isinstance(type_, abi.Struct):
        return tuple(_argument(m, data, pointers, offset + o) for m, o in zip(type_.members, type_.offsets))
    found = pointers.get(offset)
    return found if found is not None else _unpack(type_.name, data, offset)


class _Memory(NamedTuple):
    """Memory of an array argument: its bytes, the offset of its first element, and the bytes that are elements."""

    data: NDArray[np.uint8]
    start: int
    name: str
    window: Sequence[tuple[int, int]] | None
    elements: Elements
    unwritten: bool


def _memory(
    views: Sequence[ArrayView | None], names: Sequence[str], unwritten: Sequence[str], *, is_padded: bool = True
) -> list[_Memory | None]:
    """Return the memory of each array argument; arrays that overlap share it.

    With ``is_padded``, memory of the caller after an array is included up to a multiple of 16 bytes.
    """
    out: list[_Memory | None] = [None] * len(views)
    found = regions(views)
    for region in found:
        members = [(i, view) for i in region.members if (view := views[i]) is not None]
        # TMA stores write whole units of 16 bytes, so the last row of a padded array may reach into its padding.
        last, size = region.address + region.size, region.size
        end = -(-last // 16) * 16
        free = not any(last <= other.address < end for other in found)
        if is_padded and size and free and any(is_writable(view) and end_of_memory(view) >= end for _, view in members):
            size += -last % 16
        data = host_bytes(region.address, size)
        data.flags.writeable = any(is_writable(view) for _, view in members)
        for i, view in members:
            start, item = view.pointer - region.address, numpy_dtype(view.dtype).itemsize
            elements = Elements(start, tuple(view.shape), tuple([s * item for s in view.strides]), item)
            window = _window(view)
            if len(members) > 1 or size > region.size:  # restrict each array to its own bytes
                first, size = span(view)
                low = first - region.address
                window = [(low, size)] if window is None else [(low + at, length) for at, length in window]
            out[i] = _Memory(data, start, names[i], window, elements, names[i] in unwritten)
    return out


def _window(view: ArrayView) -> list[tuple[int, int]] | None:
    """Return the byte ranges (offset, length) of the elements; None without padding or with too many rows."""
    if 0 in view.shape:
        return None
    item = numpy_dtype(view.dtype).itemsize
    dims = sorted((s, e) for e, s in zip(view.shape, view.strides) if e > 1)
    if any(s <= 0 for s, _ in dims):
        return None
    run = 1
    while dims and dims[0][0] == run:  # the contiguous part
        run *= dims.pop(0)[1]
    rows = 1
    for _, extent in dims:
        rows *= extent
    if not dims or rows > _MAX_WINDOWS:
        return None
    starts = [0]
    for stride, extent in dims:
        starts = [s + i * stride for i in range(extent) for s in starts]
    return [(s * item, run * item) for s in sorted(starts)]


def _pointer(memory: Sequence[_Memory | None], argument: int, add: int) -> Pointer:
    found = memory[argument]
    if found is None:
        raise LaunchError("a plain address cannot be used on the CPU interpreter: pass an array")
    return Pointer(found.data, found.start + add, found.name, found.window, found.elements, found.unwritten)


def _unpack(name: str, data: bytes, offset: int) -> int | float:
    """Read a scalar from parameter bytes; integers are signed."""
    if name in _FLOATS:
        return float(struct.unpack_from(_FLOATS[name], data, offset)[0])
    if name == "bf16":
        return float(struct.unpack("<f", b"\0\0" + data[offset : offset + 2])[0])
    size = 8 if name in ("ptr", "index") else max(1, int(name.removeprefix("i")) // 8)
    value = int.from_bytes(data[offset : offset + size], "little", signed=True)
    return value & 1 if name == "i1" else value
