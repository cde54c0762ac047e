"""Operands of TMA and bulk copies: lanes, tensor maps, and attributes of the pointer parameters."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from cute_dialect.interp.errors import Fault
from cute_dialect.interp.exec.compiler import FnCompiler
from cute_dialect.interp.exec.group import Group
from cute_dialect.interp.memory.accesses import Site
from cute_dialect.interp.memory.buffers import Buffer
from cute_dialect.interp.memory.provenance import MAPPED
from cute_dialect.interp.memory.tensor_map import MAP_BYTES, TensorMap
from cute_dialect.interp.types import int_leaf
from cute_dialect.interp.values import Array, Regs, to_lanes

if TYPE_CHECKING:
    from xdsl.ir import Operation

_I1 = int_leaf(1)


class Copies:
    """The operand slots of a copy, -1 for absent ones."""

    def __init__(self, c: FnCompiler) -> None:
        self.c = c
        self.map = self.shared = self.bar = self.mask = self.predicate = self.size = self.source = -1
        self.coordinates: list[int] = []
        self.offsets: list[int] = []
        self.columns = False  # True for im2col, whose boxes are columns of pixels
        c.fn.needs_warp.append("an asynchronous copy")

    def space(self, slot: int) -> int:
        """Return the address space of the pointer in a slot."""
        return self.c.leaf_of(slot).space


def active(g: Group, R: Regs, predicate: int) -> list[int]:
    """Return the active lanes whose predicate holds."""
    lanes = g.mask.idx
    if predicate >= 0:
        lanes = lanes[to_lanes(R[predicate], _I1, g.lanes)[lanes]]
    return lanes.tolist()


def operand(R: Regs, slot: int, lane: int) -> int:
    """Return an integer operand of one lane."""
    v = R[slot]
    if isinstance(v, np.ndarray):
        return int(v[lane])
    return int(v)  # type: ignore[arg-type]


@lru_cache(maxsize=256)
def _decoded(raw: bytes) -> TensorMap:
    return TensorMap.decode(raw)


def tensor_map(g: Group, address: int, lane: int) -> tuple[TensorMap, Buffer]:
    """Return the tensor map at a generic address, and the buffer of its tensor."""
    holder = g.memory.find(address)
    if holder is None or address + MAP_BYTES > holder.base + holder.size:
        raise Fault("tma", "no tensor map of 128 bytes is at this address", lane, address)
    if address % 64:
        raise Fault("misaligned", "a tensor map must be aligned to 64 bytes", lane, address)
    off = address - holder.base
    try:
        tm = _decoded(holder.data[off : off + MAP_BYTES].tobytes())
    except ValueError as e:
        raise Fault("tma", f"{e}, got other bytes in {holder.name}", lane, address) from None
    if g.machine.monitor is not None:
        g.machine.monitor.uses_map(g, lane, holder, off)
    return tm, tm.buffer(g.memory)


def through(op: Operation, k: Copies, store: bool, verb: str, *, reduces: bool = False) -> Site:
    """Return the site of the global side of a copy, with the attributes of its pointer parameter."""
    site = Site(int_leaf(8), 1, 1, store, verb, op)
    site.atomic = reduces
    if k.map >= 0:
        site.parameter = MAPPED if k.c.pieces.promised else None
    else:
        k.c.pieces.bound(site, k.source)
    return site


def check_promises(g: Group, lane: int, site: Site, buf: Buffer, offsets: Callable[[], Array], size: int) -> None:
    """Check that a copy of `size`-byte elements of global memory respects the attributes of parameters."""
    if site.parameter is None:
        return
    site.parameter.check(site)
    if g.machine.monitor is not None:
        g.machine.monitor.copies_through(g, lane, site, buf, offsets(), size)


__all__ = ["Copies", "active", "check_promises", "operand", "tensor_map", "through"]
