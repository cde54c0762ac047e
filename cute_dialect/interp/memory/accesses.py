"""Checked loads and stores: each access is located in a buffer, or is an error.

A :class:`Site` is one load or store of the program. It caches the buffer that it last accessed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from cute_dialect.interp.errors import Fault, PoisonUse
from cute_dialect.interp.memory.buffers import (
    GENERIC,
    GLOBAL_BASE,
    GLOBAL_SPACES,
    LOCAL_SPACES,
    LOCAL_WINDOW,
    SHARED,
    SHARED_CLUSTER,
    SHARED_SPACES,
    SHARED_WINDOW,
    SMEM_ORIGIN,
    UNWRITTEN,
    WINDOW_BITS,
    WRITTEN,
    Buffer,
    misaligned,
    oob_global,
    oob_local,
    oob_shared,
    padding,
    readonly,
)
from cute_dialect.interp.types import Leaf
from cute_dialect.interp.values import POISON, Array, Origin, Poison, Undefined, Value, to_lanes

if TYPE_CHECKING:
    from xdsl.ir import Operation

    from cute_dialect.interp.machine.group import Group
    from cute_dialect.interp.memory.allocations import Allocation, Parameter


_OR = np.bitwise_or.reduce
_MAX = np.maximum.reduce


class Site:
    """One load or store of the program: its type, checks and memory order, and the buffer that it last accessed."""

    __slots__ = (
        "align", "atomic", "buf", "compares", "constant", "copies", "hi", "leaf", "lo", "local", "nbytes", "number",
        "observes", "op", "order", "owner", "parameter", "quiet", "scope", "space", "store", "verb",
    )  # fmt: skip

    def __init__(
        self, leaf: Leaf, align: int, space: int, store: bool, verb: str = "", op: Operation | None = None
    ) -> None:
        self.op = op
        self.atomic = False  # True for a read-modify-write
        self.compares = False  # True for an atomic that stores only if the old value is the expected one
        self.order = 0  # order from `flags`: WEAK, RELAXED (also volatile), ACQUIRE, RELEASE or ACQ_REL
        self.scope = 2  # scope from `flags`: CTA, CLUSTER, GPU or SYS
        self.parameter: Parameter | None = None  # the parameter with attributes that the pointer was derived from
        # True for an invariant or non-coherent load, whose memory no thread may write while the kernel runs
        self.constant = False
        self.copies = False  # True for the source of a cp.async, which is read at any time until it is waited for
        self.observes = not store  # True if the program can act on the value read
        self.quiet = False  # True if observers do not receive it
        self.number = -1  # index in a race monitor
        self.leaf = leaf
        self.nbytes = leaf.size
        self.align = align
        self.space = space
        self.store = store
        self.verb = verb or ("store" if store else "load")
        self.buf: Buffer | None = None
        self.local = -1  # offset in local memory that was last found to be in bounds
        self.bound(None)

    def bound(self, owner: Allocation | None) -> None:
        """Restrict accesses in shared or local memory to the allocation that the pointer was derived from."""
        self.owner = owner
        self.lo = 0 if owner is None else owner.start
        self.hi = 1 << 62 if owner is None else owner.start + owner.size


# A part of an access: buffer, byte offsets (an int if all lanes share one), and indices of active lanes (None for all).
Part = tuple[Buffer, "int | Array", "Array | None"]


def locate(site: Site, g: Group, addr: Value) -> list[Part]:
    """Check an access of the active lanes and locate it. Raises Fault: oob, misaligned, readonly, poison."""
    if site.parameter is not None and g.mask.n:
        site.parameter.check(site)
    if type(addr) is int:
        if site.align > 1 and addr & (site.align - 1) and g.mask.n:
            misaligned(site, g, addr, int(g.mask.idx[0]))
        return [_locate_one(site, g, addr)] if g.mask.n else []
    if addr is POISON:
        raise Fault("poison", f"{site.verb} through a poison (undefined) pointer")
    if not isinstance(addr, np.ndarray):
        raise PoisonUse
    m = g.mask
    if m.n == 0:
        return []
    a = addr if m.bits is None else addr[m.idx]
    if site.align > 1 and int(_OR(a)) & (site.align - 1):
        at = int(np.flatnonzero(a & (site.align - 1))[0])
        misaligned(site, g, int(a[at]), int(m.idx[at]))
    return _locate_many(site, g, a)


def _locate_one(site: Site, g: Group, addr: int) -> Part:
    space = site.space
    if space in SHARED_SPACES and addr < 1 << WINDOW_BITS:
        off = addr - SMEM_ORIGIN
        if off < site.lo or off + site.nbytes > g.smem_size or off + site.nbytes > site.hi:
            oob_shared(site, g, addr, int(g.mask.idx[0]))
        if g.smem_lane is None:
            return g.smem, off + g.smem_offset, None
        base = g.smem_lane if g.mask.bits is None else g.smem_lane[g.mask.idx]
        return g.smem, base + off, None
    if LOCAL_WINDOW <= addr < SHARED_WINDOW and space in LOCAL_SPACES:
        off = addr - LOCAL_WINDOW
        if off + site.nbytes > g.local_size or not _local_inside(site, g, off):
            oob_local(site, g, addr, int(g.mask.idx[0]))
        base = g.local_lane if g.mask.bits is None else g.local_lane[g.mask.idx]
        return g.local, base + off, None
    if space == SHARED_CLUSTER or (SHARED_WINDOW <= addr < GLOBAL_BASE and space == GENERIC):
        buf, off = _window(site, g, addr, int(g.mask.idx[0]))
        return buf, off, None
    if space in GLOBAL_SPACES:
        buf = site.buf
        if buf is None or addr < buf.base or addr + site.nbytes > buf.base + buf.size:
            found = g.memory.find(addr)
            if found is None or addr + site.nbytes > found.base + found.size:
                oob_global(site, g, addr, int(g.mask.idx[0]))
            buf = site.buf = found
        assert buf is not None
        off = addr - buf.base
        if site.store and not buf.writable:
            readonly(site, buf, addr, int(g.mask.idx[0]))
        if buf.valid is not None and not buf.valid[off : off + site.nbytes].all():
            padding(site, buf, addr, int(g.mask.idx[0]))
        return buf, off, None
    oob_global(site, g, addr, int(g.mask.idx[0]))
    raise AssertionError("unreachable")


def _locate_many(site: Site, g: Group, a: Array) -> list[Part]:
    space, n, m = site.space, site.nbytes, g.mask
    if space == SHARED:
        return [_shared_many(site, g, a)]
    buf = site.buf
    if buf is not None:
        off = a - buf.base
        if _MAX(off.view(np.uint64)) <= buf.size - n:  # A negative offset is huge as an unsigned number.
            return [_global_many(site, g, buf, off)]
    lo, hi = int(a.min()), int(a.max())
    if space in GLOBAL_SPACES:
        found = g.memory.find(lo)
        if found is not None and hi + n <= found.base + found.size:
            site.buf = found
            return [_global_many(site, g, found, a - found.base)]
    if space in LOCAL_SPACES and lo >= LOCAL_WINDOW and hi < SHARED_WINDOW:
        off = a - LOCAL_WINDOW
        last = np.minimum(off + (n - 1), g.local_size - 1)
        bad = (off + n > g.local_size) | ~(g.local_valid[np.minimum(off, last)] & g.local_valid[last])
        bad |= (off - g.frame < site.lo) | (off - g.frame + n > site.hi)
        if bad.any():
            at = int(np.flatnonzero(bad)[0])
            oob_local(site, g, int(a[at]), int(m.idx[at]))
        return [(g.local, (g.local_lane if m.bits is None else g.local_lane[m.idx]) + off, None)]
    if space == SHARED_CLUSTER and hi < 1 << WINDOW_BITS:
        return [_shared_many(site, g, a)]
    # Several buffers or windows: locate lane by lane, then group by buffer.
    parts: dict[int, tuple[Buffer, list[int], list[int]]] = {}
    lanes = m.idx
    for k, address in enumerate(a.tolist()):
        lane = int(lanes[k])
        if space == GENERIC and LOCAL_WINDOW <= address < SHARED_WINDOW:
            if address - LOCAL_WINDOW + n > g.local_size or not _local_inside(site, g, address - LOCAL_WINDOW):
                oob_local(site, g, address, lane)
            b, off1 = g.local, int(g.local_lane[lane]) + address - LOCAL_WINDOW
        elif space == SHARED_CLUSTER or (space == GENERIC and SHARED_WINDOW <= address < GLOBAL_BASE):
            b, off1 = _window(site, g, address, lane)
        else:
            found = g.memory.find(address)
            if found is None or address + n > found.base + found.size:
                oob_global(site, g, address, lane)
            assert found is not None
            b, off1 = found, address - found.base
            if site.store and not b.writable:
                readonly(site, b, address, lane)
            if b.valid is not None and not b.valid[off1 : off1 + n].all():
                padding(site, b, address, lane)
        entry = parts.setdefault(id(b), (b, [], []))
        entry[1].append(off1)
        entry[2].append(k)
    return [(b, np.array(o, np.int64), np.array(s, np.int64)) for b, o, s in parts.values()]


def _shared_many(site: Site, g: Group, a: Array) -> Part:
    lo = site.lo
    end = site.hi if site.hi < g.smem_size else g.smem_size
    off = a - (SMEM_ORIGIN + lo)
    if _MAX(off.view(np.uint64)) > end - lo - site.nbytes:  # A negative offset is huge as an unsigned number.
        off += lo
        at = int(np.flatnonzero((off < lo) | (off + site.nbytes > end))[0])
        oob_shared(site, g, int(a[at]), int(g.mask.idx[at]))
    start = lo + g.smem_offset
    if start:
        off += start
    if g.smem_lane is None:
        return g.smem, off, None
    return g.smem, off + (g.smem_lane if g.mask.bits is None else g.smem_lane[g.mask.idx]), None


def _global_many(site: Site, g: Group, buf: Buffer, off: Array) -> Part:
    if site.store and not buf.writable:
        readonly(site, buf, int(off[0]) + buf.base, int(g.mask.idx[0]))
    if buf.valid is not None:
        ok = buf.valid[off]
        if site.nbytes > 1:
            ok = ok & buf.valid[off + (site.nbytes - 1)]
        if not ok.all():
            at = int(np.flatnonzero(~ok)[0])
            padding(site, buf, int(off[at]) + buf.base, int(g.mask.idx[at]))
    return buf, off, None


def _window(site: Site, g: Group, addr: int, lane: int) -> tuple[Buffer, int]:
    """Locate shared memory of any block of the cluster, by generic or cluster address."""
    low = addr & ((1 << WINDOW_BITS) - 1)
    off = low - SMEM_ORIGIN
    if addr >= SHARED_WINDOW:
        block = (addr - SHARED_WINDOW) >> WINDOW_BITS
    else:
        rank = addr >> WINDOW_BITS
        block = g.block_of(lane) if rank == 0 else g.cluster_peer(lane, rank - 1)
    found = g.shared_of(block, lane, addr)
    if found is None or off < site.lo or off + site.nbytes > min(g.smem_size, site.hi):
        oob_shared(site, g, addr, lane)
    assert found is not None
    return found[0], found[1] + off


def load(site: Site, g: Group, addr: Value) -> Value:
    """Load the value at `addr` in each active lane. Inactive lanes hold arbitrary values.

    The result is a single value if the address is uniform.
    """
    m = g.mask
    g.loads += m.n
    leaf = site.leaf
    follow = g.local.contents is not None
    if type(addr) is int and LOCAL_WINDOW <= addr < SHARED_WINDOW and site.space in LOCAL_SPACES and not follow:
        fast = _local_columns(site, g, addr)
        if fast is not None:
            out = fast.copy()
            return out.astype(np.bool_) if leaf.width == 1 and leaf.kind == "i" else out
    parts = locate(site, g, addr)
    if not parts:
        return np.zeros((m.lanes, *leaf.shape), leaf.dtype)
    if g.observe is not None and not site.quiet:
        g.observe(g, site, parts, None)
    got = _load_parts(site, g, parts)
    return _unwritten_local(site, g, parts, got) if follow else got


def _load_parts(site: Site, g: Group, parts: list[Part]) -> Value:
    m, leaf = g.mask, site.leaf
    buf, off, sel = parts[0]
    if isinstance(off, int):
        check_written(site, g, buf, np.array([off]), m.idx)
        got = _gather(buf, np.array([off]), site)[0]
        if leaf.shape:
            return got
        if leaf.kind == "f":
            return got
        return bool(got) if leaf.width == 1 else int(got)
    if len(parts) == 1 and sel is None:
        check_written(site, g, buf, off, m.idx)
        got = _gather(buf, off, site)
        if m.bits is None:
            return got
        out = np.zeros((m.lanes, *leaf.shape), leaf.dtype)
        out[m.idx] = got
        return out
    out = np.zeros((m.lanes, *leaf.shape), leaf.dtype)
    for buf, off, sel in parts:
        assert not isinstance(off, int)
        check_written(site, g, buf, off, m.idx[sel])
        out[m.idx[sel]] = _gather(buf, off, site)
    return out


def store(site: Site, g: Group, addr: Value, value: Value) -> None:
    """Write `value` in each active lane. If lanes write the same byte, the highest lane wins."""
    m = g.mask
    g.stores += m.n
    leaf = site.leaf
    if m.n == 0:
        return
    if isinstance(value, Poison):
        if isinstance(value, Undefined):
            _store_undefined(site, g, addr, value)
            return
        if value is not POISON:
            raise PoisonUse
        value = np.zeros(leaf.shape, leaf.dtype) if leaf.shape else (0.0 if leaf.kind == "f" else 0)
        g.note_poison_store()
    if (
        g.local.contents is None
        and type(addr) is int
        and LOCAL_WINDOW <= addr < SHARED_WINDOW
        and site.space in LOCAL_SPACES
    ):
        cols = _local_columns(site, g, addr)
        if cols is not None:
            if m.bits is None:
                cols[...] = value
            elif isinstance(value, np.ndarray) and value.ndim > len(leaf.shape):
                cols[m.idx] = value[m.idx]
            else:
                cols[m.idx] = value
            return
    parts = locate(site, g, addr)
    if g.observe is not None and not site.quiet:
        g.observe(g, site, parts, value)
    varying = isinstance(value, np.ndarray) and value.ndim > len(leaf.shape)
    for buf, off, sel in parts:
        if isinstance(off, int):
            v = to_lanes(value, leaf, m.lanes)[m.idx[-1]] if varying else np.asarray(value, leaf.dtype)
            _scatter(buf, np.array([off]), site, v[None] if v.ndim == len(leaf.shape) else v, m.idx)
            continue
        v = value
        lanes = m.idx if sel is None else m.idx[sel]
        if varying:
            assert isinstance(value, np.ndarray)
            v = value if m.bits is None and sel is None else value[lanes]
        _scatter(buf, off, site, v, lanes)


def _store_undefined(site: Site, g: Group, addr: Value, value: Undefined) -> None:
    """Store a value with unwritten bits: local memory keeps them as unwritten, other memory is an error."""
    parts = locate(site, g, addr)
    contents = g.local.contents
    if contents is None or any(buf is not g.local for buf, _, _ in parts):
        value.used(g.mask, f"{site.verb} of {site.nbytes} bytes")
    store(site, g, addr, value.value)
    if contents is None:
        return
    m = g.mask
    raw = np.broadcast_to(value.bits, (m.lanes, *site.leaf.shape)).reshape(m.lanes, -1)
    missing = np.ascontiguousarray(raw).view(np.uint8).reshape(m.lanes, -1) != 0
    if missing.shape[1] != site.nbytes:  # elements smaller than a byte
        missing = np.broadcast_to(missing.any(axis=1)[:, None], (m.lanes, site.nbytes))
    for buf, off, sel in parts:
        if buf is g.local:
            lanes = m.idx if sel is None else m.idx[sel]
            at = (np.asarray(off).reshape(-1, 1) + np.arange(site.nbytes))[missing[lanes]]
            contents.state[at] = UNWRITTEN


def _unwritten_local(site: Site, g: Group, parts: list[Part], got: Value) -> Value:
    """Return the loaded value, with the unwritten bits of local memory marked."""
    contents, m, leaf = g.local.contents, g.mask, site.leaf
    assert contents is not None
    missing = np.zeros((m.lanes, site.nbytes), np.bool_)
    first = -1
    for buf, off, sel in parts:
        if buf is g.local:
            lanes = m.idx if sel is None else m.idx[sel]
            at = np.asarray(off).reshape(-1, 1) + np.arange(site.nbytes)
            missing[lanes] = contents.state[at] != WRITTEN
            if first < 0 and missing[lanes].any():
                first = int(at[missing[lanes]][0])
    if first < 0:
        return got
    if leaf.dtype.itemsize * leaf.count != site.nbytes or leaf.width == 1:  # elements smaller than a byte
        bad = np.broadcast_to(missing.any(axis=1).reshape((-1,) + (1,) * len(leaf.shape)), (m.lanes, *leaf.shape))
        bits = bad if leaf.dtype == np.bool_ else np.where(bad, -1, 0).astype(leaf.dtype)
    else:
        bits = np.where(missing, np.uint8(255), np.uint8(0)).view(f"u{leaf.dtype.itemsize}")
    where = g.place_in(g.local, first)
    return Undefined(got, bits.reshape(m.lanes, *leaf.shape), Origin(lambda: where, True))


def _local_columns(site: Site, g: Group, addr: int) -> Array | None:
    """Return local memory at one offset in all lanes, as a strided view `(lanes[, count])`.

    None if the access is not aligned or has packed elements.
    """
    leaf = site.leaf
    off = addr - LOCAL_WINDOW
    if off != site.local and (off + site.nbytes > g.local_size or not _local_inside(site, g, off)):
        if g.mask.n:
            oob_local(site, g, addr, int(g.mask.idx[0]))
        return None
    site.local = off
    if site.align > 1 and off & (site.align - 1):
        misaligned(site, g, addr, int(g.mask.idx[0]) if g.mask.n else 0)
    item = leaf.dtype.itemsize
    if off % item or len(leaf.shape) > 1 or (leaf.shape and leaf.kind == "i" and leaf.width == 1):
        return None
    dtype = np.dtype(np.uint8) if leaf.width == 1 else leaf.dtype
    rows = g.local.view(dtype, g.local_size // item)
    if g.local_size == item:
        rows = rows.reshape(-1, 1)
    k = off // item
    return rows[:, k : k + leaf.shape[0]] if leaf.shape else rows[:, k]


def _local_inside(site: Site, g: Group, off: int) -> bool:
    """Return True if a local access lies in an allocation, and in the one that its pointer was derived from."""
    mine = site.lo <= off - g.frame and off - g.frame + site.nbytes <= site.hi
    return mine and bool(g.local_valid[off : off + site.nbytes].all())


def _gather(buf: Buffer, off: Array, site: Site) -> Array:
    leaf = site.leaf
    dtype, count, item = leaf.dtype, leaf.count, leaf.dtype.itemsize
    if leaf.width == 1 and leaf.kind == "i":
        if leaf.shape:
            raw = buf.data[off[:, None] + np.arange(site.nbytes)]
            return np.unpackbits(raw, axis=1, count=count, bitorder="little").astype(np.bool_).reshape(-1, *leaf.shape)
        return buf.data[off].astype(np.bool_)
    if site.align >= site.nbytes and buf.base % site.nbytes == 0 and site.nbytes & (site.nbytes - 1) == 0:
        got = buf.view(dtype, count)[off // site.nbytes]
    elif site.align >= item:
        got = buf.view(dtype, 1)[(off // item)[:, None] + np.arange(count)]
    else:
        got = buf.data[off[:, None] + np.arange(site.nbytes)].view(dtype)
    return got.reshape(len(off), *leaf.shape)


def _scatter(buf: Buffer, off: Array, site: Site, value: Value, lanes: Array) -> None:
    leaf = site.leaf
    dtype, count, item = leaf.dtype, leaf.count, leaf.dtype.itemsize
    buf.note_written(off, site.nbytes, site.align, site.verb, lanes)
    v = np.asarray(value, dtype)
    if leaf.width == 1 and leaf.kind == "i":
        if leaf.shape:
            flat = np.broadcast_to(v, (len(off), *leaf.shape)).reshape(len(off), count)
            buf.data[off[:, None] + np.arange(site.nbytes)] = np.packbits(flat, axis=1, bitorder="little")
        else:
            buf.data[off] = v
        return
    if len(leaf.shape) > 1:
        v = v.reshape(*v.shape[: v.ndim - len(leaf.shape)], count)
    if site.align >= site.nbytes and buf.base % site.nbytes == 0 and site.nbytes & (site.nbytes - 1) == 0:
        buf.view(dtype, count)[off // site.nbytes] = v if count > 1 or not leaf.shape else v[..., 0]
    elif site.align >= item:
        buf.view(dtype, 1)[(off // item)[:, None] + np.arange(count)] = v if leaf.shape else v[..., None]
    else:
        raw = np.ascontiguousarray(np.broadcast_to(v, (len(off), *leaf.shape)).reshape(len(off), count))
        buf.data[off[:, None] + np.arange(site.nbytes)] = raw.view(np.uint8)


def check_written(site: Site, g: Group, buf: Buffer, off: Array, lanes: Array) -> None:
    """Report the first access that reads unwritten bytes, if the buffer tracks them."""
    if buf.contents is not None and buf is not g.local:
        row = buf.contents.read(off, site.nbytes, site.align, site.verb, lanes)
        if row >= 0:
            g.warn_uninit(id(site), site.verb, buf, int(off[row]), site.nbytes, int(lanes[row]))
