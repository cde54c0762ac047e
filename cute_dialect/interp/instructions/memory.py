"""Loads, stores, address arithmetic and atomics, as llvm ops and as inline PTX, with their memory order and scope."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from cute_dialect.interp.compiler.function_compiler import Builder, FnCompiler
from cute_dialect.interp.compiler.undefined import Offset, promise_address
from cute_dialect.interp.errors import Fault, InterpError, OpInfo, attr_of, op_name
from cute_dialect.interp.field import Algebra, elements_of, held
from cute_dialect.interp.instructions.field_ops import algebra_of, refusal
from cute_dialect.interp.instructions.moves import enum_word, ints_of
from cute_dialect.interp.instructions.ptx_text import B128, Handler, Statement, Text, not_modelled, number
from cute_dialect.interp.machine.group import Group, Wait
from cute_dialect.interp.memory.accesses import Site, check_written, load, locate, store
from cute_dialect.interp.memory.buffers import (
    GENERIC,
    GLOBAL,
    LOCAL,
    LOCAL_WINDOW,
    SHARED,
    SHARED_CLUSTER,
    SHARED_WINDOW,
    WINDOW_BITS,
    place,
)
from cute_dialect.interp.race.flags import ACQ_REL, ACQUIRE, CLUSTER, CTA, GPU, RELAXED, RELEASE, SYS, WEAK, Fence, Sync
from cute_dialect.interp.types import (
    Leaf,
    Type,
    element_of,
    float_leaf,
    int_leaf,
    size_of,
    stride_of,
    struct_fields,
    type_of,
)
from cute_dialect.interp.values import (
    POISON,
    Array,
    Regs,
    Value,
    active_uniform,
    merge,
    normalise,
    to_lanes,
    unsigned,
    wrap_int,
)

if TYPE_CHECKING:
    from collections.abc import Generator, Sequence

    from xdsl.ir import Operation

    from cute_dialect.interp.memory.allocations import Allocation


_LLVM = {4: ACQUIRE, 5: RELEASE, 6: ACQ_REL, 7: ACQ_REL}  # LLVM's AtomicOrdering: 1 unordered, 2 monotonic, 7 seq_cst
_SCOPES = {"block": CTA, "cta": CTA, "cluster": CLUSTER, "device": GPU, "gpu": GPU}
_WORDS = {"acquire": ACQUIRE, "release": RELEASE, "acq_rel": ACQ_REL, "sc": ACQ_REL, "": ACQ_REL}
_ALL = ("shared::cta", "shared::cluster", "global")
# The block's own memory can also be accessed as shared::cluster, so a fence for the window includes it.
_SPACES = {"": _ALL, ".global": ("global",), ".shared::cta": ("shared::cta",), ".shared::cluster": _ALL[:2]}
_NOT_MODELLED = (
    " is not supported; supported fences: fence.{sc,acq_rel,acquire,release}.SCOPE, membar.LEVEL, "
    "fence.proxy.{alias,async,async.global,async.shared::cta,async.shared::cluster}, "
    "fence.proxy.tensormap::generic, fence.mbarrier_init.release.cluster"
)


def _ordering(op: Operation) -> int:
    """Return LLVM's number for the memory order of an op, 0 if it is not atomic."""
    number = 0
    for name in ("ordering", "success_ordering"):
        data = getattr(getattr(attr_of(op, name), "value", None), "data", 0)
        number = max(number, data if isinstance(data, int) else 0)
    return number


def order_of_op(op: Operation, site: Site) -> None:
    """Set a site's order and scope from an llvm op."""
    number = _ordering(op)
    strong = number > 0 or attr_of(op, "volatile_") is not None or site.atomic
    site.order = _LLVM.get(number, RELAXED if strong else WEAK)
    site.scope = scope_of_op(op)


def scope_of_op(op: Operation) -> int:
    """Return the scope of an llvm or nvvm op, by default that of the system (LangRef, "Atomic Memory Ordering")."""
    data = getattr(attr_of(op, "syncscope"), "data", "")
    return _SCOPES.get(str(data) or enum_word(attr_of(op, "scope")), SYS)


def order_of_ptx(opcode: str, site: Site) -> None:
    """Set a site's order and scope from the opcode of a PTX instruction."""
    strong = site.atomic or re.search(r"\.(volatile|relaxed|mmio)\b", opcode) is not None
    found = re.search(r"\.(acquire|release|acq_rel)\b", opcode)
    site.order = _WORDS[found[1]] if found is not None else RELAXED if strong else WEAK
    site.scope = scope_of_ptx(opcode)


def scope_of_ptx(opcode: str) -> int:
    """Return the scope of `.cta`, `.cluster`, `.gpu`, `.sys` or `membar.gl`, ignoring `.shared::cluster`.

    The default is `.gpu`. Volatile and memory-mapped accesses have the scope of the system (PTX ISA 9.0, 9.7.9.8).
    """
    if re.search(r"\.(sys|volatile|mmio)\b", opcode):
        return SYS
    found = re.search(r"(?<!:)\.(cta|cluster)\b(?!::)", opcode)
    return _SCOPES[found[1]] if found is not None else GPU


def sync_of_op(op: Operation) -> Sync:
    """Return the memory order of an nvvm op that arrives or waits at an mbarrier.

    The op has scope `cta` by default, so only the scope of a relaxed op is meaningful.
    """
    relaxed = bool(getattr(getattr(attr_of(op, "relaxed"), "value", None), "data", 0))
    scope = scope_of_op(op)
    return Sync(relaxed, scope if scope < GPU else CTA) if relaxed else Sync()


def sync_of_ptx(opcode: str) -> Sync:
    """Return the memory order of a PTX instruction that arrives or waits at an mbarrier.

    Source: PTX ISA 9.0, 9.7.13.15.13 "mbarrier.arrive", 9.7.13.15.16 "mbarrier.test_wait / mbarrier.try_wait": "the
    .relaxed qualifier does not provide any memory ordering semantics and visibility guarantees".
    """
    return Sync(".relaxed" in opcode, scope_of_ptx(opcode))


def fence_of_op(op: Operation) -> Fence:
    """Return the effect of an llvm or nvvm fence. Raises InterpError if it is not supported."""
    name = op_name(op)
    if name == "llvm.fence":
        return Fence(_LLVM.get(_ordering(op), ACQ_REL), scope_of_op(op))
    if name in ("nvvm.memory.barrier", "nvvm.fence.sc.cluster"):
        return Fence(ACQ_REL, CLUSTER if name.endswith(".cluster") else scope_of_op(op))
    if name == "nvvm.fence.mbarrier.init":
        return Fence(init=True)
    kind = enum_word(attr_of(op, "kind"))
    if name == "nvvm.fence.proxy" and kind:
        space = enum_word(attr_of(op, "space"))
        return fence_of_ptx(f"fence.proxy.{kind}" + (f"::{space}" if space else ""))
    if name in ("nvvm.fence.proxy.acquire", "nvvm.fence.proxy.release"):
        return Fence(scope=scope_of_op(op), maps=_WORDS[name.rsplit(".", 1)[1]])
    raise InterpError("unsupported", f"{name}{_NOT_MODELLED}")


def fence_of_ptx(opcode: str) -> Fence:
    """Return the effect of a PTX fence or membar. Raises InterpError if it is not supported.

    Source: PTX ISA 9.0, 9.7.13.4 "membar / fence". `fence.proxy.async` applies to the space that it names, or to all
    memory. `fence.proxy.alias` has no effect here, since no memory has two addresses.
    """
    if re.fullmatch(r"membar\.(cta|gl|sys)|fence(\.(sc|acq_rel|acquire|release))?\.(cta|cluster|gpu|sys)", opcode):
        words = opcode.split(".")
        return Fence(_WORDS[words[1] if len(words) == 3 else ""], scope_of_ptx(opcode))
    found = re.fullmatch(r"(?:fence|membar)\.proxy\.async(\.global|\.shared::cta|\.shared::cluster)?", opcode)
    if found is not None:
        return Fence(proxy=_SPACES[found[1] or ""])
    if opcode == "fence.mbarrier_init.release.cluster":
        return Fence(init=True)
    found = re.fullmatch(r"fence\.proxy\.tensormap::generic\.(acquire|release)\.(cta|cluster|gpu|sys)", opcode)
    if found is not None:
        return Fence(scope=scope_of_ptx(opcode), maps=_WORDS[found[1]])
    if re.fullmatch(r"(fence|membar)\.proxy\.alias", opcode):
        return Fence()
    raise InterpError("unsupported", f"{opcode}{_NOT_MODELLED}")


GEP_SSA = -(1 << 31)


def _int_attr(op: Operation, name: str) -> int | None:
    got = attr_of(op, name)
    data = getattr(getattr(got, "value", None), "data", None)
    return data if isinstance(data, int) else None


def _space(leaf: Leaf) -> int:
    return leaf.space


def _sites(c: FnCompiler, op: Operation, t: Type, pointer: int, is_store: bool) -> list[tuple[int, Site]]:
    """Return one site per leaf with its byte offset. The alignment is that of the op at this offset."""
    align = _int_attr(op, "alignment") or t.align
    out: list[tuple[int, Site]] = []
    for leaf, off in zip(t.leaves, t.offsets):
        a = align
        while off % a:
            a //= 2
        site = Site(leaf, a, _space(c.leaf_of(pointer)), is_store, op=op)
        c.pieces.bound(site, pointer)
        order_of_op(op, site)
        site.constant = attr_of(op, "invariant") is not None
        if site.order:
            c.fn.needs_clocks.append("a volatile or atomic access")
        out.append((off, site))
    return out


def _polls(c: FnCompiler, op: Operation) -> bool:
    """Return True if a read in a loop may wait for another thread."""
    atomic = (_int_attr(op, "ordering") or 0) > 0 or attr_of(op, "volatile_") is not None
    return atomic and c.loops > 0


def spin_point(
    info: OpInfo, text: str | Callable[[Regs, Group], str]
) -> Callable[[Regs, Group], Generator[Wait, None, None]]:
    """Return a step in a loop at which other warps get to run."""

    def gen(R: Regs, g: Group) -> Generator[Wait, None, None]:
        said = text if isinstance(text, str) else partial(text, R, g)
        yield Wait(lambda: True, info, said, spin=True)

    return gen


def polls(site: Site, p: int, d: int) -> Callable[[Regs, Group], str]:
    """Return the description of a poll: the address of the first thread (slot `p`) and the value read (slot `d`)."""

    def text(R: Regs, g: Group) -> str:
        lane = int(g.mask.idx[0]) if g.mask.n else 0
        at, value = R[p], R[d]
        address = int(at[lane]) if isinstance(at, np.ndarray) else int(at)  # type: ignore[arg-type]
        found = value[lane] if isinstance(value, np.ndarray) else value
        return f"polls memory, {place(g, site, address)}, and reads {found}"

    return text


def _load(c: FnCompiler, op: Operation) -> None:
    p = c.use(op.operands[0])
    t = type_of(op.results[0].type)
    outs = c.defines(op.results[0])
    sites = _sites(c, op, t, p, False)
    if len(sites) == 1 and sites[0][0] == 0:
        site, d = sites[0][1], outs[0]

        def one(R: Regs, g: Group) -> None:
            R[d] = load(site, g, R[p])

        c.emit(op, one, pure=False)
    else:

        def many(R: Regs, g: Group) -> None:
            base = R[p]
            for (off, s), slot in zip(sites, outs):
                R[slot] = load(s, g, base + off)  # type: ignore[operator]

        c.emit(op, many, pure=False)
    if _polls(c, op):
        c.fn.needs_warp.append("a polled load")
        c.emit_blocking(op, spin_point(c.info(op), polls(sites[0][1], p, outs[0])))


def _store(c: FnCompiler, op: Operation) -> None:
    value = op.operands[0]
    vals = c.uses(value)
    p = c.use(op.operands[1])
    sites = _sites(c, op, type_of(value.type), p, True)

    def step(R: Regs, g: Group) -> None:
        base = R[p]
        g.count.progress += 1
        for (off, s), v in zip(sites, vals):
            store(s, g, base + off if off else base, R[v])  # type: ignore[operator]

    c.emit(op, step, pure=False)


def _gep(c: FnCompiler, op: Operation) -> None:
    """Compile getelementptr: base + Σ index · stride, in 64 bits."""
    p, offsets = _address(c, op)
    flags = _int_attr(op, "noWrapFlags") or 0
    if flags and c.overflow_errors:
        promise_address(c, op, p, offsets, flags)


def _address(c: FnCompiler, op: Operation) -> tuple[int, list[Offset]]:
    """Compile the address computation. Returns the slot of the base, and the offsets in order."""
    p = c.use(op.operands[0])
    raw = ints_of(attr_of(op, "rawConstantIndices"))
    elem = attr_of(op, "elem_type")
    if elem is None:
        raise InterpError("unsupported", "llvm.getelementptr has no elem_type")
    dynamic = [c.use(v) for v in op.operands[1:]]
    const = 0
    terms: list[tuple[int, int]] = []
    offsets: list[Offset] = []
    at = 0
    current = elem
    for n, i in enumerate(raw):
        if n == 0:
            stride = stride_of(current)
        elif current.name == "llvm.struct":
            fields = type_of(current)
            if not 0 <= i < len(fields.children):
                raise InterpError("unsupported", f"field index {i} is not a constant in [0, {len(fields.children)})")
            const += fields.starts[i]
            offsets.append(Offset(None, fields.starts[i], 1))
            current = struct_fields(current)[i]
            continue
        else:
            current = element_of(current)
            stride = stride_of(current)
        if i == GEP_SSA:
            terms.append((dynamic[at], stride))
            offsets.append(Offset(dynamic[at], 0, stride))
            at += 1
        else:
            const += i * stride
            offsets.append(Offset(None, i, stride))
    d = c.define(op.results[0])
    numbers = [c.fn.template[slot] for slot, _ in terms]
    known = all(isinstance(n, int) for n in numbers)
    offset = const + sum(int(n) * stride for n, (_, stride) in zip(numbers, terms)) if known else None  # type: ignore[arg-type]
    c.pieces.step(p, d, offset)
    if not terms:

        def fixed(R: Regs, g: Group) -> None:
            R[d] = R[p] + const  # type: ignore[operator]

        c.emit(op, fixed)
        return p, offsets
    if len(terms) == 1 and const == 0:
        slot, stride = terms[0]

        def single(R: Regs, g: Group) -> None:
            i = R[slot]
            if isinstance(i, np.ndarray):
                R[d] = np.multiply(i, stride, dtype=np.int64) + R[p]  # type: ignore[operator]
            else:
                R[d] = R[p] + i * stride  # type: ignore[operator]

        c.emit(op, single)
        return p, offsets

    def general(R: Regs, g: Group) -> None:
        r = R[p] + const  # type: ignore[operator]
        for slot, stride in terms:
            i = R[slot]
            r = r + (np.multiply(i, stride, dtype=np.int64) if isinstance(i, np.ndarray) else i * stride)  # type: ignore[operator]
        R[d] = r

    c.emit(op, general)
    return p, offsets


def _alloca(c: FnCompiler, op: Operation) -> None:
    """Compile stack memory, one allocation per function call. An alloca in a loop gives the same address each time."""
    n = c.use(op.operands[0])
    count = c.fn.template[n]
    if not isinstance(count, int):
        raise InterpError("unsupported", "llvm.alloca needs a constant number of elements")
    elem = attr_of(op, "elem_type")
    if elem is None:
        raise InterpError("unsupported", "llvm.alloca has no elem_type")
    size, align = size_of(elem)
    offset = c.alloca(op, count * max(stride_of(elem), size), max(_int_attr(op, "alignment") or align, 1))
    d = c.define(op.results[0])

    def step(R: Regs, g: Group) -> None:
        R[d] = LOCAL_WINDOW + g.frame + offset

    c.emit(op, step)


def _addressof(c: FnCompiler, op: Operation) -> None:
    ref = attr_of(op, "global_name")
    name = str(getattr(getattr(ref, "root_reference", ref), "data", ref))
    d = c.define(op.results[0])

    def step(R: Regs, g: Group) -> None:
        R[d] = g.machine.symbol_address(name)

    c.emit(op, step)


def _addrspacecast(c: FnCompiler, op: Operation) -> None:
    src, dst = type_of(op.operands[0].type).leaf.space, type_of(op.results[0].type).leaf.space
    if src == dst or (src in (0, 1, 4, 5) and dst in (0, 1, 4, 5)) or (src == 3 and dst == 7):
        c.alias(op.results[0], c.uses(op.operands[0]))
        return
    a = c.use(op.operands[0])
    d = c.define(op.results[0])
    low = (1 << WINDOW_BITS) - 1

    def to_generic(R: Regs, g: Group) -> None:
        v = R[a]
        if src == 7:
            _ = v + 0  # type: ignore[operator]
            arr = to_lanes(v, c_leaf, g.lanes)
            rank = arr >> WINDOW_BITS
            blocks = np.array(
                [g.block_of(i) if r == 0 else g.cluster_peer(i, r - 1) for i, r in enumerate(rank.tolist())]
            )
            R[d] = SHARED_WINDOW + (blocks.astype(np.int64) << WINDOW_BITS) + (arr & low)
            return
        if isinstance(g.lane_block, int):
            R[d] = v + (SHARED_WINDOW + (g.lane_block << WINDOW_BITS))  # type: ignore[operator]
        else:
            R[d] = v + (SHARED_WINDOW + (g.lane_block.astype(np.int64) << WINDOW_BITS))  # type: ignore[operator]

    def from_generic(R: Regs, g: Group) -> None:
        v = R[a]
        _ = v + 0  # type: ignore[operator]  # raises for poison
        arr = np.asarray(v)
        bad = (arr < SHARED_WINDOW) | (arr >= SHARED_WINDOW + (1 << 40))
        if bad.any() and (g.mask.any(bad) if bad.ndim else g.mask.n):
            lane = g.mask.first(bad) if bad.ndim else -1
            address = int(np.asarray(arr).flat[max(lane, 0)])
            raise Fault(
                "oob", "addrspacecast to shared memory of an address that is not in shared memory", lane, address
            )
        own = g.lane_block
        block = (arr - SHARED_WINDOW) >> WINDOW_BITS
        if np.any(block != own) and dst == 3 and g.mask.n:
            raise Fault("oob", "addrspacecast to ptr<3> of an address in another block's shared memory")
        r = arr & low
        R[d] = r if r.ndim else int(r)

    c_leaf = type_of(op.operands[0].type).leaf
    if src in (3, 7) and dst == 0:
        c.emit(op, to_generic)
    elif src == 0 and dst in (3, 7):
        c.emit(op, from_generic)
    else:
        raise InterpError(
            "unsupported", f"addrspacecast from {src} to {dst} is not supported; cast from or to generic pointers"
        )


def _ptrtoint(c: FnCompiler, op: Operation) -> None:
    a = c.use(op.operands[0])
    d = c.define(op.results[0])
    leaf = c.leaf_of(d)
    shared = type_of(op.operands[0].type).leaf.space == SHARED

    def step(R: Regs, g: Group) -> None:
        v = R[a]
        if shared and g.in_cluster:
            # On the device, the number contains the block's rank in its cluster above the 24 bits of the offset. Here
            # it contains rank + 1, as in addresses of cluster memory.
            v = v + ((g.sreg("cluster.ctarank") + 1) << WINDOW_BITS)  # type: ignore[operator]
        if isinstance(v, np.ndarray):
            R[d] = v if leaf.width == 64 else v.astype(leaf.dtype)
        else:
            R[d] = wrap_int(int(v), leaf.width)  # type: ignore[arg-type]

    c.emit(op, step)


def _inttoptr(c: FnCompiler, op: Operation) -> None:
    a = c.use(op.operands[0])
    d = c.define(op.results[0])
    src = c.leaf_of(a)
    shared = type_of(op.results[0].type).leaf.space == SHARED

    def step(R: Regs, g: Group) -> None:
        v = unsigned(R[a], src) if src.width < 64 else R[a]
        if shared and g.in_cluster:
            v = v & ((1 << WINDOW_BITS) - 1)  # type: ignore[operator]
        R[d] = v.astype(np.int64) if isinstance(v, np.ndarray) else int(v)  # type: ignore[arg-type]

    c.emit(op, step)


# -- atomics --------------------------------------------------------------------------------------------------------

_BIN_OPS = (
    "xchg", "add", "sub", "_and", "nand", "_or", "_xor", "max", "min", "umax", "umin", "fadd", "fsub", "fmax", "fmin",
    "uinc_wrap", "udec_wrap", "usub_cond", "usub_sat",
)  # fmt: skip


def apply_atomic(kind: str, old: Value, v: Value, leaf: Leaf, algebra: Algebra | None = None) -> Value:
    """Apply one atomic read-modify-write to scalars or vectors, and return the new value."""
    x, y = np.asarray(old, leaf.dtype), np.asarray(v, leaf.dtype)
    if algebra is not None and kind == "fadd":
        return held(algebra.add(elements_of(x), elements_of(y)), leaf.dtype)
    if kind == "xchg":
        return y
    if kind in ("add", "fadd"):
        r = x + y
    elif kind in ("sub", "fsub"):
        r = x - y
    elif kind == "_and":
        r = x & y
    elif kind == "nand":
        r = ~(x & y)
    elif kind == "_or":
        r = x | y
    elif kind == "_xor":
        r = x ^ y
    elif kind == "max":
        r = np.maximum(x, y)
    elif kind == "min":
        r = np.minimum(x, y)
    elif kind == "umax":
        r = np.maximum(x.view(leaf.unsigned), y.view(leaf.unsigned)).view(leaf.dtype)
    elif kind == "umin":
        r = np.minimum(x.view(leaf.unsigned), y.view(leaf.unsigned)).view(leaf.dtype)
    elif kind == "fmax":
        r = np.fmax(x, y)
    elif kind == "fmin":
        r = np.fmin(x, y)
    elif kind in ("uinc_wrap", "udec_wrap"):
        ux, uy = int(unsigned(int(x), leaf)), int(unsigned(int(y), leaf))  # type: ignore[arg-type]
        new = (0 if ux >= uy else ux + 1) if kind == "uinc_wrap" else (uy if ux == 0 or ux > uy else ux - 1)
        return np.asarray(wrap_int(new, leaf.width), leaf.dtype)
    else:
        raise Fault("unsupported", f"atomic operation {kind} is not supported")
    if leaf.kind == "i":
        return normalise(r, leaf) if leaf.width < leaf.dtype.itemsize * 8 else r
    return r.astype(leaf.dtype)


def atomic_lanes(
    site: Site, g: Group, addr: Value, value: Value, kind: str, want_old: bool, algebra: Algebra | None = None
) -> Value:
    """Execute an atomic in the active lanes, in lane order, and return the old values."""
    m = g.mask
    leaf = site.leaf
    if value is POISON:
        raise Fault("poison", "atomic operation with a poison (undefined) value")
    old = np.zeros((m.lanes, *leaf.shape), leaf.dtype)
    if m.n == 0:
        return old
    g.loads += m.n
    g.stores += m.n
    g.count.progress += 1
    vals = to_lanes(value, leaf, m.lanes)
    found = locate(site, g, addr)
    if g.observe is not None:
        g.observe(g, site, found, None)
    for buf, off, sel in found:
        lanes = m.idx if sel is None else m.idx[sel]
        offs = np.full(len(lanes), off, np.int64) if isinstance(off, int) else off
        check_written(site, g, buf, offs, lanes)
        buf.note_written(offs, site.nbytes, site.align, site.verb, lanes)
        view = buf.view(leaf.dtype, leaf.count)
        rows = offs // site.nbytes if leaf.count == 1 or site.align >= site.nbytes else None
        if rows is None:
            raise Fault("misaligned", f"an atomic must be aligned to its {site.nbytes} bytes")
        unique = len(np.unique(rows)) == len(rows)
        if unique:
            before = np.array(view[rows])
            if kind in ("uinc_wrap", "udec_wrap"):
                new = np.array([apply_atomic(kind, b, v, leaf) for b, v in zip(before, vals[lanes])], leaf.dtype)
            else:
                new = apply_atomic(kind, before, vals[lanes], leaf, algebra)
            view[rows] = new
            old[lanes] = before
        elif not want_old and leaf.kind == "i" and kind in ("add", "max", "min") and leaf.count == 1:
            {"add": np.add, "max": np.maximum, "min": np.minimum}[kind].at(view, rows, vals[lanes])
        else:
            for r, lane in zip(rows.tolist(), lanes.tolist()):
                before = np.array(view[r])
                old[lane] = before
                view[r] = apply_atomic(kind, before, vals[lane], leaf, algebra)
    return old


def _atomic_algebra(c: FnCompiler, kind: str, leaf: Leaf, name: str) -> Algebra | None:
    """Return the algebra of an atomic on floats, None on integers. Raises InterpError for other than add and swap."""
    if c.program.algebra is None or leaf.kind != "f":
        return None
    if kind not in ("fadd", "xchg"):
        raise refusal(name)
    return algebra_of(c, leaf)


def _atomicrmw(c: FnCompiler, op: Operation) -> None:
    p, v = c.use(op.operands[0]), c.use(op.operands[1])
    d = c.define(op.results[0])
    leaf = c.leaf_of(d)
    number = _int_attr(op, "bin_op")
    kind = _BIN_OPS[number] if number is not None and 0 <= number < len(_BIN_OPS) else enum_word(attr_of(op, "bin_op"))
    kind = {"and": "_and", "or": "_or", "xor": "_xor"}.get(kind, kind)
    if kind not in _BIN_OPS:
        raise InterpError("unsupported", f"atomic operation {kind} is not supported; use one of {', '.join(_BIN_OPS)}")
    algebra = _atomic_algebra(c, kind, leaf, f"llvm.atomicrmw {kind}")
    site = Site(leaf, max(_int_attr(op, "alignment") or 0, leaf.align), _space(c.leaf_of(p)), True, "atomic", op)
    c.pieces.bound(site, p)
    site.atomic = True
    order_of_op(op, site)
    site.observes = used = bool(list(op.results[0].uses))
    if used or site.order > RELAXED or (site.scope < GPU and site.space != SHARED):
        c.fn.needs_clocks.append("an atomic")

    def step(R: Regs, g: Group) -> None:
        R[d] = atomic_lanes(site, g, R[p], R[v], kind, used, algebra)

    c.emit(op, step, pure=False)
    if used and c.loops:
        c.fn.needs_warp.append("a polled atomic")
        c.emit_blocking(op, spin_point(c.info(op), polls(site, p, d)))


def _cmpxchg(c: FnCompiler, op: Operation) -> None:
    p, expected, new = (c.use(v) for v in op.operands)
    d, flag = c.defines(op.results[0])
    leaf = c.leaf_of(d)
    site = Site(leaf, leaf.size, _space(c.leaf_of(p)), True, "atomic", op)
    c.pieces.bound(site, p)
    site.atomic = site.compares = site.observes = True
    order_of_op(op, site)
    c.fn.needs_clocks.append("an atomic")
    weak = attr_of(op, "weak") is not None

    def step(R: Regs, g: Group) -> None:
        m = g.mask
        _ = R[expected] == R[new]
        fails = weak and m.n > 0 and g.machine.spurious.fails(g, id(op))
        want, put = to_lanes(R[expected], leaf, m.lanes), to_lanes(R[new], leaf, m.lanes)
        old = np.zeros(m.lanes, leaf.dtype)
        ok = np.zeros(m.lanes, np.bool_)
        g.loads += m.n
        g.stores += m.n
        found = locate(site, g, R[p])
        if g.observe is not None:
            g.observe(g, site, found, None)
        for buf, off, sel in found:
            lanes = m.idx if sel is None else m.idx[sel]
            offs = np.full(len(lanes), off, np.int64) if isinstance(off, int) else off
            view = buf.view(leaf.dtype, 1)
            check_written(site, g, buf, offs, lanes)
            buf.note_written(offs, site.nbytes, site.align, site.verb, lanes)
            for r, lane in zip((offs // site.nbytes).tolist(), lanes.tolist()):
                old[lane] = view[r]
                if view[r] == want[lane] and not fails:
                    view[r] = put[lane]
                    ok[lane] = True
                    g.count.progress += 1
        R[d], R[flag] = old, ok

    c.emit(op, step, pure=False)
    if c.loops:
        c.fn.needs_warp.append("a polled atomic")
        c.emit_blocking(op, spin_point(c.info(op), polls(site, p, d)))


# -- block copies ---------------------------------------------------------------------------------------------------


def _byte_site(space: int, n: int, is_store: bool, verb: str, owner: Allocation | None = None) -> Site:
    leaf = Leaf("i", 8, np.dtype(np.int8), "i8", (n,))
    site = Site(leaf, 1, space, is_store, verb)
    site.bound(owner)
    return site


def copy_bytes(
    g: Group,
    dst: Value,
    dst_space: int,
    src: Value,
    src_space: int,
    n: int,
    owners: tuple[Allocation | None, Allocation | None] = (None, None),
) -> None:
    """Copy `n` bytes in each active lane. `owners` are the allocations of the two pointers."""
    data = load(_byte_site(src_space, n, False, "memcpy read", owners[1]), g, src)
    store(_byte_site(dst_space, n, True, "memcpy write", owners[0]), g, dst, data)


def _memcpy(c: FnCompiler, op: Operation) -> None:
    d, s = c.use(op.operands[0]), c.use(op.operands[1])
    n = c.use(op.operands[2]) if len(op.operands) > 2 else -1
    fixed = _int_attr(op, "len")
    ds, ss = _space(c.leaf_of(d)), _space(c.leaf_of(s))
    owners = c.pieces.allocation(d), c.pieces.allocation(s)

    def step(R: Regs, g: Group) -> None:
        size = active_uniform(R[n], g.mask, "the length of a memcpy") if n >= 0 else (fixed or 0)
        if size > 0:
            copy_bytes(g, R[d], ds, R[s], ss, size, owners)

    c.emit(op, step, pure=False)


def _memset(c: FnCompiler, op: Operation) -> None:
    d, v, n = (c.use(x) for x in op.operands[:3])
    ds = _space(c.leaf_of(d))
    owner = c.pieces.allocation(d)

    def step(R: Regs, g: Group) -> None:
        size = active_uniform(R[n], g.mask, "the length of a memset")
        byte = active_uniform(R[v], g.mask, "the byte of a memset")
        if size > 0:
            store(_byte_site(ds, size, True, "memset", owner), g, R[d], np.full((size,), byte, np.int8))

    c.emit(op, step, pure=False)


_MOST_BULK = 1 << 24
"""Maximum size of st.bulk in bytes (PTX ISA 9.7.9.13)."""


def _zero(g: Group, address: Value, space: int, size: int, owner: Allocation | None) -> None:
    """Execute st.bulk. The alignment of the address is assumed to be that of its granule, 8 bytes [?]."""
    if size % 8 or not 0 <= size <= _MOST_BULK:
        raise Fault("poison", f"st.bulk: the size is {size} bytes; use a multiple of 8, at most {_MOST_BULK}")
    if size:
        site = _byte_site(space, size, True, "st.bulk", owner)
        site.align = 8
        store(site, g, address, np.zeros((size,), np.int8))


def _store_bulk(c: FnCompiler, op: Operation) -> None:
    d, n = c.use(op.operands[0]), c.use(op.operands[1])
    space = _space(c.leaf_of(d))
    owner = c.pieces.allocation(d)

    def step(R: Regs, g: Group) -> None:
        if g.mask.n:
            _zero(g, R[d], space, active_uniform(R[n], g.mask, "the size of st.bulk"), owner)
            g.count.progress += 1

    c.emit(op, step, pure=False)


def _nothing(c: FnCompiler, op: Operation) -> None:
    """Compile an op without effect."""
    for r in op.results:
        c.constant(r, [POISON] * len(type_of(r.type).leaves))


OPS: dict[str, Builder] = {
    "nvvm.st.bulk": _store_bulk,
    "llvm.load": _load,
    "llvm.store": _store,
    "llvm.getelementptr": _gep,
    "llvm.alloca": _alloca,
    "llvm.mlir.addressof": _addressof,
    "llvm.addrspacecast": _addrspacecast,
    "llvm.ptrtoint": _ptrtoint,
    "llvm.inttoptr": _inttoptr,
    "llvm.atomicrmw": _atomicrmw,
    "llvm.cmpxchg": _cmpxchg,
    "llvm.intr.memcpy": _memcpy,
    "llvm.intr.memcpy.inline": _memcpy,
    "llvm.intr.memmove": _memcpy,
    "llvm.intr.memset": _memset,
    "llvm.intr.lifetime.start": _nothing,
    "llvm.intr.lifetime.end": _nothing,
    "llvm.intr.stacksave": _nothing,
    "llvm.intr.stackrestore": _nothing,
}


# -- inline PTX -------------------------------------------------------------------------------------------------------

_BITS = re.compile(r"\.([bfus])(8|16|32|64|128)$")


def _ptx_space(opcode: str) -> int:
    if ".shared::cluster" in opcode:
        return SHARED_CLUSTER
    if ".shared" in opcode:
        return SHARED
    return GLOBAL if ".global" in opcode else LOCAL if ".local" in opcode else GENERIC


def _element(opcode: str) -> Leaf:
    if opcode.endswith(".b128"):
        return B128
    m = _BITS.search(opcode)
    if m is None:
        raise InterpError("unsupported", f"{opcode} does not end with a type")
    return float_leaf(f"f{m[2]}") if m[1] == "f" else int_leaf(int(m[2]))


def _count(opcode: str) -> int:
    m = re.search(r"\.v(2|4|8)\b", opcode)
    return int(m[1]) if m is not None else 1


def _vector(leaf: Leaf, n: int) -> Leaf:
    return Leaf(leaf.kind, leaf.width, leaf.dtype, leaf.name, (n,)) if n > 1 else leaf


def _as(v: Array, source: Leaf, target: Leaf) -> Array:
    """Convert between register types by truncating or zero-extending the bits."""
    if source.dtype == target.dtype:
        return v
    raw = np.ascontiguousarray(v)
    if raw.dtype.itemsize == target.dtype.itemsize:
        return raw.view(target.dtype)
    wide = raw.view(np.dtype(f"u{raw.dtype.itemsize}")).astype(np.dtype(f"u{target.dtype.itemsize}"))
    return wide.view(target.dtype)


def _ptx_address(text: Text, slot: int, add: int, space: int) -> Callable[[Regs, Group], Value]:
    """Return a function that computes the address of an access.

    An integer that is an address in `.shared` loses the rank of the block in its cluster, as in `inttoptr`.
    """
    low = (1 << WINDOW_BITS) - 1 if space == SHARED and not text.leaf(slot).space else 0

    def address(R: Regs, g: Group) -> Value:
        at: Value = R[slot] + add if add else R[slot]  # type: ignore[operator]
        return at & low if low and g.in_cluster else at  # type: ignore[operator]

    return address


def _ptx_load(text: Text, s: Statement) -> None:
    outs = [text.slot(p) for p in s.parts(0)]
    slot, add = text.address(s.operands[1])
    element = _element(s.opcode)
    n = _count(s.opcode)
    if len(outs) != n:
        raise InterpError("unsupported", f"{s.opcode} needs {n} registers, got {len(outs)}")
    leaf = _vector(element, n)
    space = text.leaf(slot).space or _ptx_space(s.opcode)
    site, address = Site(leaf, leaf.size, space, False, op=text.op), _ptx_address(text, slot, add, space)
    text.c.pieces.bound(site, slot)
    order_of_ptx(s.opcode, site)
    site.constant = ".nc" in s.opcode
    if site.order:
        text.c.fn.needs_clocks.append(s.opcode)
    out_leaves = [text.leaf(d) for d in outs]
    guarded = text.guard(s)[0] >= 0

    def step(R: Regs, g: Group) -> None:
        got = to_lanes(load(site, g, address(R, g)), leaf, g.lanes)  # type: ignore[operator]
        for i, (d, t) in enumerate(zip(outs, out_leaves)):
            v = _as(got[:, i] if n > 1 else got, element, t) if element is not B128 else got
            R[d] = merge(g.mask, v, R[d], t) if guarded else v

    text.emit(s, step)
    if site.order and text.c.loops:
        _may_poll(text, site, slot, outs[0])


def _ptx_store_bulk(text: Text, s: Statement) -> None:
    slot = text.plain_address(s.operands[0])
    if number(s.operands[2]) != 0:
        raise InterpError("unsupported", f"{s.opcode}: the initial value is {s.operands[2]}; PTX allows only 0")
    size = text.slot(s.operands[1])
    space = text.leaf(slot).space or _ptx_space(s.opcode)
    owner = text.c.pieces.allocation(slot)

    def step(R: Regs, g: Group) -> None:
        _zero(g, R[slot], space, active_uniform(R[size], g.mask, "the size of st.bulk"), owner)
        g.count.progress += 1

    text.emit(s, step)


def _ptx_store(text: Text, s: Statement) -> None:
    slot, add = text.address(s.operands[0])
    values = [text.slot(p) for p in s.parts(1)]
    element = _element(s.opcode)
    leaf = _vector(element, _count(s.opcode))
    space = text.leaf(slot).space or _ptx_space(s.opcode)
    site, address = Site(leaf, leaf.size, space, True, op=text.op), _ptx_address(text, slot, add, space)
    text.c.pieces.bound(site, slot)
    order_of_ptx(s.opcode, site)
    if site.order:
        text.c.fn.needs_clocks.append(s.opcode)
    leaves = [text.leaf(v) for v in values]

    def step(R: Regs, g: Group) -> None:
        cols = [_as(to_lanes(R[v], t, g.lanes), t, element) for v, t in zip(values, leaves)]
        data = np.stack(cols, axis=-1) if leaf.shape else cols[0]
        store(site, g, address(R, g), data)  # type: ignore[operator]
        g.count.progress += 1

    text.emit(s, step)


_KINDS = {"and": "_and", "or": "_or", "xor": "_xor", "exch": "xchg", "inc": "uinc_wrap", "dec": "udec_wrap"}


def _atomic(text: Text, s: Statement) -> None:
    """Compile red.… and atom.…, except cas."""
    returns = s.opcode.startswith("atom")
    slot, add = text.address(s.operands[1 if returns else 0])
    values = [text.slot(p) for p in s.parts(2 if returns else 1)]
    m = re.search(r"\.(add|min|max|and|or|xor|exch|inc|dec)\b", s.opcode)
    packed = re.search(r"\.(f16x2|bf16x2)$", s.opcode)
    if m is None:
        raise not_modelled(s.opcode)
    kind = m[1]
    if packed is not None:
        base = float_leaf(packed[1][:-2])
        leaf, n = Leaf("f", 16, base.dtype, base.name, (2,)), 1
        unit = leaf
    else:
        unit = _element(s.opcode)
        n = _count(s.opcode)
        leaf = _vector(unit, n)
    if unit.kind == "f":
        kind = {"add": "fadd", "min": "fmin", "max": "fmax"}.get(kind, kind)
    elif re.search(r"\.u\d+$", s.opcode) and kind in ("min", "max"):
        kind = "u" + kind
    kind = _KINDS.get(kind, kind)
    algebra = _atomic_algebra(text.c, kind, leaf, s.opcode)
    space = text.leaf(slot).space or _ptx_space(s.opcode)
    site, address = Site(leaf, leaf.size, space, True, "atomic", text.op), _ptx_address(text, slot, add, space)
    text.c.pieces.bound(site, slot)
    site.atomic = True
    order_of_ptx(s.opcode, site)
    if site.order:
        text.c.fn.needs_clocks.append(s.opcode)
    leaves = [text.leaf(v) for v in values]
    result = text.slot(s.operands[0]) if returns and s.operands[0] != "_" else -1
    site.observes = result >= 0

    def step(R: Regs, g: Group) -> None:
        if packed is not None:
            raw = np.ascontiguousarray(to_lanes(R[values[0]], leaves[0], g.lanes))
            data = raw.view(leaf.dtype).reshape(g.lanes, 2)
        else:
            cols = [_as(to_lanes(R[v], t, g.lanes), t, unit) for v, t in zip(values, leaves)]
            data = np.stack(cols, axis=-1) if leaf.shape else cols[0]
        old = atomic_lanes(site, g, address(R, g), data, kind, result >= 0, algebra)  # type: ignore[operator]
        if result >= 0:
            raw_old = np.ascontiguousarray(to_lanes(old, leaf, g.lanes))
            R[result] = raw_old.view(text.leaf(result).dtype).reshape(g.lanes)

    text.emit(s, step)
    if result >= 0 and text.c.loops:
        _may_poll(text, site, slot, result)


def _may_poll(text: Text, site: Site, slot: int, result: int) -> None:
    """Emit a scheduling point after a read in a loop, which may wait for another thread."""
    text.c.fn.needs_warp.append("a polled load")
    text.c.emit_blocking(text.op, spin_point(text.c.info(text.op), polls(site, slot, result)))


_MAP_FIELDS = {"global_address": (8, 64, 0), "global_dim": (24, 32, 4), "global_stride": (48, 64, 8)}
"""Fields of an encoded tensor map (`TensorMap.encode`): first byte, bits, distance of the dimensions."""


def _replace_in_map(text: Text, s: Statement) -> None:
    """Compile tensormap.replace: a store to a field of the emulated map. Extents are encoded minus one."""
    m = re.fullmatch(r"tensormap\.replace\.tile\.(\w+)(?:\.global|\.shared::cta)?\.b1024\.b(32|64)", s.opcode)
    if m is None or m[1] not in _MAP_FIELDS or int(m[2]) != _MAP_FIELDS[m[1]][1]:
        raise not_modelled(s.opcode)
    first, width, step_bytes = _MAP_FIELDS[m[1]]
    slot, add = text.address(s.operands[0])
    dimension = int(number(s.operands[1]) or 0) if step_bytes else 0
    value = text.slot(s.operands[-1])
    leaf = int_leaf(width)
    site = Site(leaf, leaf.size, text.leaf(slot).space or _ptx_space(s.opcode), True, op=text.op)
    text.c.pieces.bound(site, slot)
    source = text.leaf(value)
    add += first + step_bytes * dimension

    def step(R: Regs, g: Group) -> None:
        data = _as(to_lanes(R[value], source, g.lanes), source, leaf)
        store(site, g, R[slot] + add, data - 1 if m[1] == "global_dim" else data)  # type: ignore[operator]
        g.count.progress += 1

    text.emit(s, step)


TABLE: Sequence[tuple[str, Handler]] = (
    (r"tensormap\.replace\..*", _replace_in_map),
    (r"ld(\.\w+|\.L[12]::\w+|::\w+)*", _ptx_load),
    (r"st\.bulk(\.weak)?(\.shared::cta)?", _ptx_store_bulk),
    (r"st(\.(?!async|bulk)\w+|\.L[12]::\w+|::\w+)*", _ptx_store),
    (r"(red|atom)\.(?!async|.*cas).*", _atomic),
)
