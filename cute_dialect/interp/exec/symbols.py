"""Globals of a module: offsets in shared memory, and buffers for all others."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from cute_dialect.arch.targets import DEFAULT_TARGET
from cute_dialect.interp.errors import InterpError, attr_of, op_name
from cute_dialect.interp.exec.machine import Machine
from cute_dialect.interp.exec.program import Program, symbol_name
from cute_dialect.interp.instructions.data import literal
from cute_dialect.interp.memory.addresses import SMEM_ORIGIN
from cute_dialect.interp.memory.allocations import Allocations, shared_allocations
from cute_dialect.interp.memory.provenance import Segment
from cute_dialect.interp.types import round_up, size_of, type_of
from cute_dialect.interp.values import Array

if TYPE_CHECKING:
    from xdsl.ir import Attribute, Operation

Global: TypeAlias = "tuple[Operation, str, Attribute, int, int]"
SMEM_LIMIT = DEFAULT_TARGET.shared


def lay_out_shared(program: Program, machine: Machine, func: Operation, dynamic_smem: int) -> list[Global]:
    """Assign an offset to every global in shared memory, static before dynamic. Returns the other globals."""
    static: list[tuple[str, int, int]] = []
    at = 0
    dynamic: list[tuple[str, int]] = []
    others: list[Global] = []
    for one in _globals(program, func):
        op, name, _, size, align = one
        if _int(op, "addr_space") != 3:
            others.append(one)
        else:
            if size == 0:
                dynamic.append((name, align))
            else:
                static.append((name, size, align))
    segments: dict[str, tuple[int, int]] = {}
    for name, size, align in static:
        at = round_up(at, align)
        segments[name] = (at, size)
        machine.symbols[name] = SMEM_ORIGIN + at
        at += size
    for name, align in dynamic:
        start = round_up(at, align)
        segments[name] = (start, dynamic_smem)
        machine.symbols[name] = SMEM_ORIGIN + start
        at = start
    machine.dynamic_smem = dynamic_smem
    machine.smem_size = at + dynamic_smem
    if machine.smem_size > SMEM_LIMIT:
        raise InterpError("limit", f"{machine.smem_size} bytes of shared memory exceed the limit of {SMEM_LIMIT} bytes")
    machine.shared_names = names = shared_allocations(func, segments)
    for name, (start, size) in segments.items():
        inside = [a for a in names.known if start <= a.start < start + size and a.name != f"@{name}"]
        program.segments[name] = machine.segments[name] = Segment(name, start, size, Allocations(inside))
    return others


def place_globals(machine: Machine, others: list[Global]) -> None:
    """Allocate the globals outside shared memory."""
    for op, name, t, size, _ in others:
        data = _initial(op, t, size)
        constant = attr_of(op, "constant") is not None
        buf = machine.memory.add(data, f"global @{name}", writable=not constant)
        machine.symbols[name] = buf.base


def _globals(program: Program, func: Operation) -> Iterator[Global]:
    """Yield the globals that a function uses: op, name, type, bytes and alignment."""
    used = _names_used(program, func)
    if not used:
        return
    for op in program.module.walk():
        if op_name(op) != "llvm.mlir.global":
            continue
        name = symbol_name(op)
        if name not in used:
            continue
        t = attr_of(op, "global_type")
        if t is None:
            raise InterpError("unsupported", f"global @{name} has no type")
        size, align = size_of(t)
        yield op, name, t, size, max(_int(op, "alignment"), align, 1)


def _names_used(program: Program, func: Operation) -> set[str]:
    """Return the names of the globals that a function and its callees refer to."""
    out: set[str] = set()
    todo, seen = [func], {func}
    while todo:
        for op in todo.pop().walk():
            for key in ("global_name", "callee"):
                ref = attr_of(op, key)
                if ref is None:
                    continue
                data = getattr(getattr(ref, "root_reference", ref), "data", None)
                if not isinstance(data, str):
                    continue
                if key == "global_name":
                    out.add(data)
                else:
                    callee = program.find(data, op)
                    if callee is not None and callee not in seen:
                        seen.add(callee)
                        todo.append(callee)
    return out


def _int(op: Operation, name: str) -> int:
    data = getattr(getattr(attr_of(op, name), "value", None), "data", None)
    return data if isinstance(data, int) else 0


def _initial(op: Operation, t: object, size: int) -> Array:
    data = np.zeros(size, np.uint8)
    value = attr_of(op, "value")
    if value is None and op.regions and op.regions[0].blocks:
        if any(
            op_name(o) not in ("llvm.mlir.undef", "llvm.mlir.zero", "llvm.mlir.poison", "llvm.return")
            for o in op.regions[0].walk()
        ):
            raise InterpError("unsupported", f"the initializer of global @{symbol_name(op)} must be undef or zero")
        return data
    if value is None:
        return data
    text = getattr(value, "data", None)
    if isinstance(text, (str, bytes)):
        raw = text.encode("latin-1", "replace") if isinstance(text, str) else text
        data[: len(raw)] = np.frombuffer(raw[:size], np.uint8)
        return data
    kind = type_of(t)  # type: ignore[arg-type]
    for leaf, off, v in zip(kind.leaves, kind.offsets, literal(value, kind)):
        raw_leaf = np.ascontiguousarray(np.asarray(v, leaf.dtype)).reshape(-1).view(np.uint8)
        data[off : off + len(raw_leaf)] = raw_leaf
    return data
