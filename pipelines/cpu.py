"""Run a prepared launch on the CPU interpreter: the same checks, the same bytes as on the GPU."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import TYPE_CHECKING

from cute_dialect.pipelines import abi
from cute_dialect.pipelines.arrays import ArrayView
from cute_dialect.pipelines.binding import DeviceError, LaunchError
from cute_dialect.pipelines.prepare import Plan, Target, read_arguments
from cute_dialect.pipelines.staging import host_bytes, span

if TYPE_CHECKING:  # pragma: no cover
    from cute_dialect.interp import RunReport
    from cute_dialect.pipelines.launch import CompiledModule

__all__ = ["run_on_cpu"]

_FLOATS = {"f16": "<e", "f32": "<f", "tf32": "<f", "f64": "<d"}


def run_on_cpu(module: CompiledModule, plan: Plan, args: Sequence[object], target: Target) -> RunReport | None:
    """Run ``plan`` on ``args`` (numpy arrays or CPU tensors, changed in place); ``None`` for an empty launch.

    Raises :class:`DeviceError` for an array that is not in CPU memory, and what the interpreter raises.
    """
    from cute_dialect.interp import run_kernel

    views = read_arguments(target, args).views
    for name, view in zip(target.names, views):
        if view is not None and view.device >= 0:
            raise DeviceError(f"argument {name}: expected an array in CPU memory, got one on GPU {view.device}")
        if view is not None and view.library == "numpy" and not getattr(view.keep, "flags").writeable:  # noqa: B009
            raise DeviceError(f"argument {name}: the interpreter works in place and this array is read-only; copy it")
    if plan.empty:
        return None
    kernel = next(k for k in module.manifest["kernels"] if k["name"] == plan.kernel)
    memory = _memory(views)
    patches = {(p, o): (a, add) for p, o, a, add in plan.packed.patches}
    operands: list[object] = []
    for p, (param, data) in enumerate(zip(kernel["params"], plan.packed.buffers)):
        type_ = abi.parse_type(param["lowered"])
        scalars: dict[tuple[int, ...], object] = {}
        for slot, offset in type_.scalars():
            patch = patches.get((p, offset))
            if patch is not None:
                scalars[slot.path] = _pointer(memory, *patch)
            else:
                scalars[slot.path] = _unpack(slot.name, data, offset)
        operands.append(abi.nested(type_, scalars))  # type: ignore[arg-type]
    return run_kernel(module.lowered(), plan.kernel, operands, plan.grid, plan.block, dynamic_smem=plan.smem)


def _memory(views: Sequence[ArrayView | None]) -> list[tuple[object, int] | None]:
    """The bytes of each array argument and the offset of its first element in them; equal arrays share theirs."""
    seen: dict[tuple[int, int], object] = {}
    out: list[tuple[object, int] | None] = []
    for view in views:
        if view is None:
            out.append(None)
            continue
        where = span(view)
        if where not in seen:
            seen[where] = host_bytes(view)
        out.append((seen[where], view.pointer - where[0]))
    return out


def _pointer(memory: Sequence[tuple[object, int] | None], argument: int, add: int) -> object:
    from cute_dialect.interp import Pointer

    found = memory[argument]
    if found is None:
        raise LaunchError("a plain address cannot be used on the CPU interpreter: pass an array")
    data, start = found
    return Pointer(data, start + add)


def _unpack(name: str, data: bytes, offset: int) -> int | float:
    """One scalar of a parameter's bytes; integers signed."""
    if name in _FLOATS:
        return float(struct.unpack_from(_FLOATS[name], data, offset)[0])
    if name == "bf16":
        return float(struct.unpack("<f", b"\0\0" + data[offset : offset + 2])[0])
    size = 8 if name in ("ptr", "index") else max(1, int(name.removeprefix("i")) // 8)
    value = int.from_bytes(data[offset : offset + size], "little", signed=True)
    return value & 1 if name == "i1" else value
