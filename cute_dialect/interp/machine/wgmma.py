"""Asynchronous wgmma instructions of a warpgroup, with operands in shared memory given by descriptors.

Each of the four warps of a warpgroup issues the same instructions. An instruction is computed after all four have
issued it, at the latest when it is waited for. Its accumulator registers are `Pending` until a `wgmma.wait_group`
covers its commit group. The products and their sum over the K of one instruction are formed in f64, which is exact for
all element types. Then the accumulator is added and the result rounded once. The summation order on the device is
undocumented.

Sources: PTX ISA 9.0, 9.7.15.5 "Asynchronous warpgroup-level matrix multiply-accumulate", 9.7.15.5.1.2 (descriptors).

**Sparse operands.** The layouts of the metadata are in the table of atoms (PTX ISA 9.0, 9.7.14.6.1, 9.7.15.6.1).
"""

# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false, reportUnknownMemberType=false

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from cute_dialect.interp.errors import Fault, OpInfo
from cute_dialect.interp.field import elements_of, held
from cute_dialect.interp.memory.buffers import SMEM_ORIGIN
from cute_dialect.interp.types import float_leaf, int_leaf
from cute_dialect.interp.values import Array, Pending, Undefined, Value, to_lanes

if TYPE_CHECKING:  # pragma: no cover
    from cute_dialect.algebra.values import Layout
    from cute_dialect.arch.atom import Metadata
    from cute_dialect.interp.field import Algebra
    from cute_dialect.interp.machine.barriers import Block
    from cute_dialect.interp.machine.group import Group
    from cute_dialect.interp.types import Leaf


# Values are numpy arrays of many types, picked at run time; pyright cannot follow their element types.


@lru_cache(maxsize=64)
def positions(layout: Layout) -> Array:
    """Return the offset of each `(thread, value)` of a layout."""
    from cute_dialect.algebra.evaluation import evaluate  # late: start-up
    from cute_dialect.algebra.trees import product  # late: start-up
    from cute_dialect.algebra.values import layout_modes  # late: start-up

    threads, values = layout_modes(layout)
    first, second = (
        np.array([evaluate(i, x) for i in range(product(x.shape))])  # type: ignore[arg-type]
        for x in (threads, values)
    )
    return first[:, None] + second[None, :]


@lru_cache(maxsize=8)
def kept_table(held: Metadata) -> Array:
    """Map the 4 metadata bits of a group to the positions of its nonzero elements, of shape `(16, kept)`.

    Invalid bits map to -1.
    """
    table = np.full((16, held.group // 2), -1)
    for bits, elements in held.kept.items():
        table[bits] = elements
    return table


def contributing(held: Metadata, selector: int, threads: int) -> Array:
    """Return a mask of the threads that provide metadata: those that the selector picks in each quad."""
    each = 4 // held.selectors
    return np.arange(threads) % 4 // each == selector


def words_of(held: Metadata, m: int, columns: int, e: Array, selector: int) -> Array:
    """Return the metadata matrix E, `(n, m, columns)`, unsigned, from one register per thread, `(n, threads)`."""
    bits = 4 * held.groups
    values = np.stack([e.astype(np.uint32) >> np.uint32(bits * i) for i in range(held.registers.values)], axis=-1)
    values &= np.uint32((1 << bits) - 1)
    asked = contributing(held, selector, e.shape[1])
    flat = np.zeros((e.shape[0], m * columns), np.uint32)
    flat[:, positions(held.layout)[asked]] = values[:, asked]
    return flat.reshape(-1, columns, m).transpose(0, 2, 1)


def expand(
    held: Metadata, a: Array, words: Array, ask: Array, selector: int, name: str, *, lanes: bool = True
) -> Array:
    """Return a sparse operand `(n, m, k / 2)` at full K. `words` has shape `(n, m, columns)`.

    Args:
        ask: Mask over n of the entries to check. Invalid metadata bits in these are a fault.
        lanes: True if the threads are those of the running group. The fault then names the thread that holds the bits.
    """
    n, m, columns = words.shape
    shifts = np.arange(held.groups, dtype=np.uint32) * np.uint32(4)
    bits = (words[..., None] >> shifts & np.uint32(15)).reshape(n, m, columns * held.groups)
    where = kept_table(held)[bits]
    wrong = (where[..., 0] < 0) & ask[:, None, None]
    if wrong.any():
        i, r, g = (int(x[0]) for x in np.nonzero(wrong))
        known = ", ".join(f"{b:04b}" for b in held.kept)
        at = positions(held.group_layout(m))
        holds = (at == r + m * g).any(axis=1) & contributing(held, selector, len(at))
        raise Fault(
            "argument",
            f"{name}: the metadata of row {r}, group {g} of A is {int(bits[i, r, g]):04b}; it must be one of {known}",
            i * len(at) + int(holds.argmax()) if lanes else -1,
        )
    out = np.zeros((n, m, columns * held.groups, held.group), a.dtype)
    np.put_along_axis(out, np.maximum(where, 0), a.reshape(where.shape), axis=-1)
    return out.reshape(n, m, -1)


def expand_warpgroup(a: Array, registers: list[Array], kind: str, selector: int) -> Array:
    """Return the compressed A, `(64, k / 2)`, at full K.

    Args:
        registers: The metadata registers of the lanes of each warp.
        kind: The PTX type of A.
    """
    from cute_dialect.arch.elements import by_ptx  # late: start-up
    from cute_dialect.arch.sparse_mma import metadata  # late: start-up

    held = metadata(64, 2 * a.shape[1], by_ptx(kind))
    e = np.concatenate(registers).view(np.uint32)[None]
    words = words_of(held, 64, 2 * a.shape[1] // held.columns, e, selector)
    return expand(held, a[None], words, np.ones(1, np.bool_), selector, "wgmma.mma_async.sp", lanes=False)[0]


# Values are numpy arrays of many types, picked at run time; pyright cannot follow their element types.


ELEMENTS = {"f32": "f32", "f16": "f16", "bf16": "bf16", "tf32": "f32", "e4m3": "f8E4M3FN", "e5m2": "f8E5M2"}
_BYTES = {"f16": 2, "bf16": 2, "tf32": 4, "e4m3": 1, "e5m2": 1, "s8": 1, "u8": 1, "u16": 2, "u32": 4}
_WIDTHS = (0, 128, 64, 32)
WARPS = 4
_I32 = int_leaf(32)


class Shape(NamedTuple):
    """Shape and types of an instruction.

    - d: f32, f16 or s32; a, b: element types; a_major, b_major: "k" or "mn"
    - selector: sparsity selector of a sparse A, -1 for a dense A
    """

    n: int
    k: int
    d: str
    a: str
    b: str
    a_major: str = "k"
    b_major: str = "k"
    scale_a: int = 1
    scale_b: int = 1
    saturate: bool = False
    selector: int = -1
    algebra: Algebra | None = None  # arithmetic over a field, None for that of the machine

    @property
    def depth_a(self) -> int:
        """Stored elements of a row of A: half of `k` if A is sparse."""
        return self.k if self.selector < 0 else self.k // 2

    @property
    def registers(self) -> int:
        """Accumulator registers per thread."""
        return self.n // 4 if self.d == "f16" else self.n // 2


class Instruction:
    """One wgmma of a warpgroup. `issued` counts the warps that have issued it."""

    def __init__(self, shape: Shape, info: OpInfo, number: int) -> None:
        self.shape = shape
        self.info = info
        self.number = number
        self.a: int | list[list[Array]] = 0  # descriptor, or registers of each warp
        self.b = 0
        self.metadata: list[Array] = [np.zeros(32, np.int32)] * WARPS  # metadata register of each warp, for a sparse A
        self.scale_d = True
        self.issued = 0
        self.chained: Instruction | None = None  # the instruction whose accumulators this one continues
        self.inputs: list[list[Value] | None] = [None] * WARPS
        self.leaf: Leaf | None = None
        self.value: Array | None = None  # (64, n) after it is computed
        self.fragments: Array | None = None

    @property
    def ready(self) -> bool:
        """True if all warps of the warpgroup have issued it."""
        return self.issued == WARPS

    def registers(self) -> Array:
        """Return the accumulators as registers, of shape (warp, register, lane)."""
        if self.fragments is None:
            assert self.value is not None
            self.fragments = to_fragments(self.value, self.shape.d)
        return self.fragments


class Accumulator:
    """The accumulator registers of one warp, written by an instruction."""

    __slots__ = ("done", "instruction", "warp")

    def __init__(self, instruction: Instruction, warp: int) -> None:
        self.instruction = instruction
        self.warp = warp
        self.done = False

    def register(self, index: int) -> Array:
        """Return register `index`. Raises Fault until the instruction has been waited for."""
        if not self.done:
            where = self.instruction.info.location or self.instruction.info.name
            raise Fault(
                "wgmma",
                "accumulator register is used before its wgmma has been waited for: missing wgmma.wait_group that "
                "covers its commit group",
                notes=(f"written asynchronously at {where}",),
            )
        return self.instruction.registers()[self.warp, index]


class Lane:
    """The wgmma state of one warp: instructions issued, commit groups, and instructions waited for."""

    __slots__ = ("accumulators", "committed", "fenced", "groups", "issued", "waited")

    def __init__(self) -> None:
        self.issued = 0
        self.committed = 0
        self.groups: list[int] = []  # number of instructions issued by the end of each commit group
        self.waited = 0
        self.fenced = False
        self.accumulators: list[Accumulator] = []


class Warpgroup:
    """The wgmma instructions of four warps, in order."""

    def __init__(self, block: Block, number: int) -> None:
        self.block = block
        self.number = number
        self.instructions: dict[int, Instruction] = {}
        self.lanes = [Lane() for _ in range(WARPS)]
        self.computed = 0

    def compute(self, upto: int) -> None:
        """Compute the instructions with numbers below `upto`, in order. All must be ready."""
        while self.computed < upto:
            i = self.instructions[self.computed]
            execute(i, self.block)
            self.computed += 1
            self.instructions.pop(self.computed - 8, None)


def issue(
    g: Group,
    shape: Shape,
    a: int | list[Value],
    b: int,
    acc: list[Value],
    scale_d: bool,
    leaf: Leaf,
    info: OpInfo,
    metadata: Value = 0,
) -> list[Pending]:
    """Issue an instruction for one warp and return its pending accumulator registers.

    Args:
        a: Descriptor or registers of A.
        metadata: Metadata register of a sparse A.
    """
    if g.mask.bits is not None:
        raise Fault("sync", f"wgmma: all 32 threads of the warp must be active, got {g.mask.n}")
    block = g.machine.blocks[g.block_of(0)]
    warp = int(g.lane_tid[0]) // 32
    if (warp | 3) * 32 >= g.machine.threads:
        raise Fault("sync", f"wgmma: needs a warpgroup of 128 threads, but the block has {g.machine.threads}")
    group = block.warpgroup(warp // WARPS)
    at = warp % WARPS
    lane = group.lanes[at]
    number = lane.issued
    lane.issued += 1
    i = group.instructions.get(number)
    if i is None:
        i = group.instructions[number] = Instruction(shape, info, number)
        i.b, i.scale_d, i.leaf = b, scale_d, leaf
        i.a = a if isinstance(a, int) else [[] for _ in range(WARPS)]
    elif i.shape != shape or i.b != b or i.scale_d != scale_d or (isinstance(a, int) and a != i.a):
        raise Fault(
            "sync",
            f"wgmma: all warps of a warpgroup must issue the same instruction and descriptors, but warp {warp} of "
            f"warpgroup {group.number} differs",
            notes=(f"the first warp issued it at {i.info.location or i.info.name}",),
        )
    if not isinstance(a, int):
        assert isinstance(i.a, list)
        values = [v.result() if isinstance(v, Pending) else _written(v, g, "A") for v in a]
        i.a[at] = [np.array(to_lanes(v, _I32, 32)) for v in values]
    if shape.selector >= 0:
        i.metadata[at] = np.array(to_lanes(metadata, _I32, 32))
    chained = _chain(acc, at)
    if not lane.fenced and (chained is None or not isinstance(a, int)):
        raise Fault(
            "wgmma",
            "missing wgmma.fence: registers of this wgmma.mma_async were accessed since the last one; execute "
            "wgmma.fence before the first wgmma and after each wgmma.wait_group",
        )
    if scale_d:
        if chained is not None:
            i.chained = chained
        else:
            i.inputs[at] = [v.result() if isinstance(v, Pending) else _written(v, g, "the accumulator") for v in acc]
    i.issued += 1
    g.count.progress += 1
    monitor = g.machine.monitor
    if monitor is not None:
        monitor.wgmma_issued(g, group, i, at)
    if g.machine.timeline is not None:
        g.machine.timeline.product_issued(g, group, i)
    if i.ready and g.machine.transfers.eager():
        group.compute(number + 1)
    out = Accumulator(i, at)
    lane.accumulators.append(out)
    return [Pending(out, r) for r in range(shape.registers)]


def _written(v: Value, g: Group, what: str) -> Value:
    """Return a register that a wgmma reads. Raises Fault if it is unwritten."""
    return v.used(g.mask, f"{what} of a wgmma") if isinstance(v, Undefined) else v


def _chain(acc: list[Value], warp: int) -> Instruction | None:
    """Return the pending instruction whose accumulators exactly match these registers, None if there is none."""
    first = acc[0]
    if not isinstance(first, Pending) or not isinstance(first.source, Accumulator) or first.source.warp != warp:
        return None
    source = first.source
    if source.done:
        return None
    for r, v in enumerate(acc):
        if not isinstance(v, Pending) or v.source is not source or v.index != r:
            return None
    return source.instruction


def fence(g: Group) -> None:
    """Record a `wgmma.fence` of a warp."""
    _lane(g).fenced = True


def commit(g: Group) -> None:
    """Commit the warp's wgmma since the last commit as a group."""
    lane = _lane(g)
    lane.groups.append(lane.issued)
    lane.committed += 1


def wait_target(g: Group, keep: int) -> tuple[Warpgroup, int]:
    """Return the warpgroup, and the number of instructions that must complete to leave `keep` commit groups pending."""
    lane = _lane(g)
    done = lane.committed - keep
    target = lane.groups[done - 1] if done > 0 else 0
    return g.machine.blocks[g.block_of(0)].warpgroup(int(g.lane_tid[0]) // 128), target


def finish_wait(g: Group, group: Warpgroup, target: int) -> None:
    """Finish a wait after the instructions below `target` are ready: compute them and release their registers."""
    group.compute(target)
    lane = _lane(g)
    lane.waited = max(lane.waited, target)
    lane.fenced = False
    left: list[Accumulator] = []
    for acc in lane.accumulators:
        if acc.instruction.number < target:
            acc.done = True
        else:
            left.append(acc)
    lane.accumulators = left
    if g.machine.timeline is not None:
        g.machine.timeline.products_waited(g, group, target)
    monitor = g.machine.monitor
    if monitor is not None:
        monitor.wgmma_waited(g, group, target)


def _lane(g: Group) -> Lane:
    warp = int(g.lane_tid[0]) // 32
    return g.machine.blocks[g.block_of(0)].warpgroup(warp // WARPS).lanes[warp % WARPS]


# -- computing ----------------------------------------------------------------------------------------------------


def execute(i: Instruction, block: Block) -> None:
    """Compute D = A·B + D of one instruction."""
    s = i.shape
    if s.algebra is not None:
        _execute_over(s.algebra, i, block)
        return
    if isinstance(i.a, int):
        a = read_operand(block, i.a, 64, s.depth_a, s.a, s.a_major, i.info)
    else:
        a = decode(np.array(i.a), s)
    if s.selector >= 0:
        a = expand_warpgroup(a, i.metadata, s.a, s.selector)
    b = read_operand(block, i.b, s.n, s.k, s.b, s.b_major, i.info)
    total = a @ b.T
    if s.scale_a * s.scale_b < 0:
        total = -total
    if i.scale_d:
        total += _inputs(i)
    if s.d == "s32":
        if s.saturate:
            total = np.clip(total, -(2.0**31), 2.0**31 - 1)
        i.value = total.astype(np.int64).astype(np.int32)
    else:
        i.value = total.astype(np.float16 if s.d == "f16" else np.float32)
    i.inputs = [None] * WARPS
    i.chained = None
    i.a = 0


def _execute_over(algebra: Algebra, i: Instruction, block: Block) -> None:
    """Compute an instruction over an algebra."""
    s = i.shape
    a_kind, b_kind = (f"u{8 * _BYTES[x]}" for x in (s.a, s.b))
    if isinstance(i.a, int):
        a = read_operand(block, i.a, 64, s.depth_a, a_kind, s.a_major, i.info)
    else:
        a = decode(np.array(i.a), s._replace(a=a_kind))
    total = algebra.matmul(a, read_operand(block, i.b, s.n, s.k, b_kind, s.b_major, i.info).T)
    if s.scale_a * s.scale_b < 0:
        total = algebra.negate(total)
    if i.scale_d:
        total = algebra.add(total, elements_of(_accumulators(i)))
    dtype = np.dtype(np.float16 if s.d == "f16" else np.float32)
    i.value = np.asarray(held(total, dtype))
    i.inputs = [None] * WARPS
    i.chained = None
    i.a = 0


def _inputs(i: Instruction) -> Array:
    return _accumulators(i).astype(np.float64)


def _accumulators(i: Instruction) -> Array:
    if i.chained is not None:
        assert i.chained.value is not None
        return i.chained.value
    rows = []
    assert i.leaf is not None
    for warp in i.inputs:
        assert warp is not None
        rows.append(np.array([to_lanes(v, i.leaf, 32) for v in warp]))
    return from_fragments(np.array(rows), i.shape)


def to_fragments(d: Array, kind: str) -> Array:
    """Convert (64, N) to (warp, register, lane).

    Register 4·(n/8) + 2·h + e of lane 4·g + t holds row 16w + 8h + g and column 8·(n/8) + 2t + e. For f16, both values
    of e share a register.
    """
    n = d.shape[1]
    parts = d.reshape(4, 2, 8, n // 8, 4, 2)  # w h g n t e
    if kind == "f16":
        packed = np.ascontiguousarray(parts.transpose(0, 3, 1, 2, 4, 5)).reshape(4, n // 4, 32, 2)
        return packed.view(np.int32)[..., 0]
    return np.ascontiguousarray(parts.transpose(0, 3, 1, 5, 2, 4)).reshape(4, n // 2, 32)


def from_fragments(r: Array, s: Shape) -> Array:
    """Invert `to_fragments`."""
    if s.d == "f16":
        halves = np.ascontiguousarray(r.astype(np.int32)).view(np.float16).reshape(4, s.n // 8, 2, 8, 4, 2)
        return halves.transpose(0, 2, 3, 1, 4, 5).reshape(64, s.n)
    return r.reshape(4, s.n // 8, 2, 2, 8, 4).transpose(0, 2, 4, 1, 5, 3).reshape(64, s.n)


def decode(regs: Array, s: Shape) -> Array:
    """Convert A from registers (warp, 4, lane) to (64, K).

    Register h + 2·half holds row 8h + g and columns E·t + e + 4E·half.
    """
    per = 4 // _BYTES[s.a]
    raw = np.ascontiguousarray(regs.astype(np.int32)).reshape(4, 2, 2, 8, 4, 1)  # w half h g t
    elems = raw.view(_dtype(s.a)).reshape(4, 2, 2, 8, 4, per)
    return _wide(elems, s.a).transpose(0, 2, 3, 1, 4, 5).reshape(64, s.depth_a)


def _dtype(kind: str) -> np.dtype[np.generic]:
    if kind[0] in "su":
        return np.dtype(f"{'i' if kind[0] == 's' else 'u'}{_BYTES[kind]}")
    return float_leaf(ELEMENTS[kind]).dtype


def _wide(v: Array, kind: str) -> Array:
    if kind == "tf32":
        v = (v.view(np.uint32) & np.uint32(0xFFFFE000)).view(np.float32)
    return v.astype(np.float64)


def read_operand(block: Block, descriptor: int, x: int, k: int, kind: str, major: str, info: OpInfo) -> Array:
    """Return the operand (X, K) of a descriptor, in f64. Raises Fault oob."""
    at = operand_index(descriptor & 0xFFFF_FFFF_FFFF_FFFF, x, k, _BYTES[kind], major)
    check_operand(block, at, "wgmma", f"descriptor {describe(descriptor)}")
    index = at[0]
    return _wide(block.smem.view(_dtype(kind), 1)[index + block.smem_start // _BYTES[kind]], kind)


@lru_cache(maxsize=2048)
def operand_index(descriptor: int, x: int, k: int, size: int, major: str) -> tuple[Array, int, int, Array]:
    """Return the positions of an operand's elements (X, K), its first and last byte, and the 16-byte units accessed."""
    width = _WIDTHS[descriptor >> 62 & 3]
    start = (descriptor & 0x3FFF) << 4
    lbo = (descriptor >> 16 & 0x3FFF) << 4
    sbo = (descriptor >> 32 & 0x3FFF) << 4
    base = descriptor >> 49 & 7
    row = width or 16
    unit = 16 // size
    xs, ks = np.arange(x)[:, None], np.arange(k)[None, :]
    if major == "k":
        at = xs % 8 * row + xs // 8 * sbo
        at = at + (ks * size if width else ks // unit * lbo + ks % unit * size)
    else:
        run = row // size
        outer, inner = (lbo, sbo) if width else (sbo, lbo)
        at = xs % run * size + xs // run * outer + ks % 8 * row + ks // 8 * inner
    at = at + start
    mask = width // 16 - 1 if width else 0
    at = at ^ (((at >> 7) - base & mask) << 4)
    at = at - SMEM_ORIGIN
    return at // size, int(at.min()), int(at.max()) + size, np.unique(at // 16)


def check_operand(block: Block, at: tuple[Array, int, int, Array], name: str, note: str) -> None:
    """Check that an operand in shared memory is inside one tensor and holds no mbarrier. Raises Fault.

    Args:
        at: The result of `operand_index`.
        name: The instruction.
        note: Description of the descriptor.
    """
    _, low, high, units = at
    inside(low, high, block.size, name, note)
    owner = block.smem.names.at(low) if block.smem.names is not None else None
    if owner is not None and high > owner.start + owner.size:
        raise Fault(
            "oob",
            f"{name} reads bytes {low} to {high} of shared memory, past the end of {owner.name}, which has bytes "
            f"{owner.start} to {owner.start + owner.size}",
            notes=(note,),
        )
    if block.smem.contents is not None:
        block.smem.contents.no_barrier_in(units + block.smem_start // 16, f"{name} read")


def inside(low: int, high: int, size: int, name: str, note: str) -> None:
    """Check that an operand is inside shared memory of `size` bytes. Raises Fault."""
    if low < 0 or high > size:
        raise Fault("oob", f"{name} reads bytes {low} to {high} of shared memory, which has {size}", notes=(note,))


def _inside(at: tuple[Array, int, int, Array], descriptor: int, size: int = 1 << 18) -> None:
    _, low, high, _ = at
    inside(low, high, size, "wgmma", f"descriptor {describe(descriptor)}")


def operand_units(i: Instruction, warp: int) -> list[Array]:
    """Return the 16-byte units of shared memory that a warp's part of an instruction reads.

    These are its rows of A and all of B.
    """
    s = i.shape
    out: list[Array] = []
    if isinstance(i.a, int):
        at = operand_index(i.a & 0xFFFF_FFFF_FFFF_FFFF, 64, s.depth_a, _BYTES[s.a], s.a_major)
        _inside(at, i.a)
        out.append(_rows(i.a & 0xFFFF_FFFF_FFFF_FFFF, s.depth_a, _BYTES[s.a], s.a_major, warp))
    at = operand_index(i.b & 0xFFFF_FFFF_FFFF_FFFF, s.n, s.k, _BYTES[s.b], s.b_major)
    _inside(at, i.b)
    out.append(at[3])
    return out


@lru_cache(maxsize=2048)
def _rows(descriptor: int, k: int, size: int, major: str, warp: int) -> Array:
    index = operand_index(descriptor, 64, k, size, major)[0]
    return np.unique(index[16 * warp : 16 * warp + 16] * size // 16)


def describe(descriptor: int) -> str:
    """Format the fields of a descriptor."""
    d = descriptor & 0xFFFF_FFFF_FFFF_FFFF
    return (
        f"start {(d & 0x3FFF) << 4:#x}, LBO {(d >> 16 & 0x3FFF) << 4}, SBO {(d >> 32 & 0x3FFF) << 4}, "
        f"base offset {d >> 49 & 7}, swizzle {_WIDTHS[d >> 62 & 3]} bytes"
    )
