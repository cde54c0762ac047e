"""tcgen05 instructions in LLVM: their kinds, operands, and the words of tensor memory and shared memory that they use.

An address of tensor memory is the symbol of its allocation and an offset, because the hardware chooses the column.
Offsets have the lane in the upper 16 bits, as addresses do.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple, cast

from xdsl.ir import Operation, Region

from cute_dialect.interp.errors import Fault, attr_of
from cute_dialect.interp.machine.tcgen05 import COPIES, KINDS, Copy, Form, Multiply, decode_shape
from cute_dialect.interp.machine.tensor_memory import Address, Rect, check_window, fragment, window
from cute_dialect.prove.values import Linear, Value, symbol
from cute_dialect.prove.verdict import NotProved

if TYPE_CHECKING:
    from cute_dialect.interp.machine.barriers import Block

PREFIX = "llvm.nvvm.tcgen05."
GROUP = 16
"""Lanes that accesses distinguish."""
GROUPS, COLUMNS = 8, 512
WORDS = GROUPS * COLUMNS
"""Words of an allocation that accesses distinguish."""
_NO_BLOCK = cast("Block", None)
_FORMS: tuple[tuple[str, str, tuple[int, ...]], ...] = (
    (r"alloc\.shared\.cg1", "tensor_alloc", (0, 1)),
    (r"dealloc\.cg1", "tensor_dealloc", (0, 1)),
    (r"relinq\.alloc\.permit\.cg1", "tensor_relinquish", ()),
    (r"ld\.(32x32b|16x64b|16x128b|16x256b)\.x\d+", "tensor_read", (0, 1)),
    (r"st\.(32x32b|16x64b|16x128b|16x256b)\.x\d+", "tensor_write", (0, 2)),
    (r"wait\.(ld|st)", "tensor_wait", ()),
    (r"fence\.(before|after)\.thread\.sync", "tensor_fence", ()),
    (r"commit\.shared\.cg1", "tensor_commit", (0,)),
    (r"cp\.\w+\.cg1", "tensor_copy", (0, 1)),
    (r"mma\.shared", "tensor_multiply", (0, 1, 2, 3, 4)),
    (r"mma\.shared\.mx\w+\.block_scale\.block\d+", "tensor_multiply", (0, 1, 2, 3, 4, 5, 6)),
)
"""Patterns of names, kinds of effects, and the operands that the protocol depends on."""
_COPY_NAMES = {
    "64x128b_warpx2_02_13": "64x128b.warpx2::02_13",
    "64x128b_warpx2_01_23": "64x128b.warpx2::01_23",
    "32x128b_warpx4": "32x128b.warpx4",
}


class Uses(NamedTuple):
    """The memory that an MMA or a copy to tensor memory uses.

    Attributes:
        key: MMAs with equal keys execute in order of issue. Empty for a copy.
        reads, writes: Words of tensor memory, by the allocation that they are in.
        units: 16-byte units of shared memory of each operand.
    """

    key: tuple[object, ...]
    reads: tuple[tuple[Value, Rect], ...]
    writes: tuple[tuple[Value, Rect], ...]
    units: tuple[tuple[int, ...], ...]


def name_of(op: Operation) -> str:
    """Return the name of a tcgen05 intrinsic without its prefix, empty for another op."""
    called = str(getattr(attr_of(op, "intrin"), "data", "")) if op.name == "llvm.call_intrinsic" else ""
    return called.removeprefix(PREFIX) if called.startswith(PREFIX) else ""


def tensor_form(op: Operation) -> tuple[str, tuple[int, ...]] | None:
    """Return the kind of effect of a tcgen05 intrinsic, and its operands. None if it is not modelled."""
    name = name_of(op)
    for pattern, kind, operands in _FORMS:
        if re.fullmatch(pattern, name):
            return kind, operands
    return None


def check_loads(body: Region) -> None:
    """Check that a `tcgen05.wait::ld` stands between each load and the uses of its registers. Raises NotProved."""
    for op in body.walk():
        if not name_of(op).startswith("ld."):
            continue
        block = op.parent
        assert block is not None
        later = list(block.ops)
        at = later.index(op)
        wait = next((n for n in range(at, len(later)) if name_of(later[n]) == "wait.ld"), len(later))
        for use in op.results[0].uses:
            user: Operation | None = use.operation
            while user is not None and user.parent is not block:
                user = user.parent_op()
            if user is None or later.index(user) < wait:
                raise NotProved("registers of a tcgen05.ld are used before a tcgen05.wait::ld in the same block", op)


def place_of(value: Value, op: Operation) -> tuple[Value, int]:
    """Return the allocation and the offset of an address of tensor memory. Raises NotProved."""
    if isinstance(value, Linear) and len(value.terms) == 1 and value.terms[0][1] == 1:
        atom = value.terms[0][0]
        if atom[0] == "tensor" and 0 <= value.const < 1 << 32:
            return symbol(atom), value.const
    raise NotProved("an address of tensor memory is not an offset from the one that tcgen05.alloc wrote", op)


def fragment_of(op: Operation, offset: int, warp: int, packed: Value) -> tuple[Rect, ...]:
    """Return the words of a tcgen05.ld or st, relative to the allocation."""
    kind, shape, count = re.fullmatch(r"(ld|st)\.(\w+)\.x(\d+)", name_of(op)).groups()  # type: ignore[union-attr]
    if packed != 0:
        raise NotProved(f"a tcgen05.{kind} that packs 16-bit values is not modelled", op)
    at = Address.of(offset)
    try:
        check_window(at, shape, warp, f"tcgen05.{kind}")
    except Fault as f:
        raise NotProved(str(f), op) from None
    return window(fragment(shape, int(count)).rects, at)


def copy_uses(op: Operation, address: Value, descriptor: int) -> Uses:
    """Return the memory of a copy to tensor memory."""
    found = re.fullmatch(r"cp\.(\w+)\.cg1", name_of(op))
    assert found is not None
    shape = _COPY_NAMES.get(found[1], found[1])
    if shape not in COPIES:
        raise NotProved(f"tcgen05.cp.{shape} is not modelled", op)
    base, offset = place_of(address, op)
    work = Copy(shape, offset, descriptor & ((1 << 64) - 1), 8, [_NO_BLOCK])
    return _uses(op, work, (), [(base, u.rect) for u in work.uses()], [])


def multiply_uses(op: Operation, x: Sequence[Value], numbers: Sequence[int]) -> Uses:
    """Return the memory of an MMA.

    Args:
        x: The values of its operands.
        numbers: Descriptors of A and B, the instruction descriptor, and the constants after the operands.
    """
    scaled = re.fullmatch(r"mma\.shared\.(mx\w+)\.block_scale\.block(\d+)", name_of(op))
    a, b, shape_bits, *constants = numbers
    base, offset = place_of(x[0], op)
    form = Form(scaled[1], 1, int(scaled[2])) if scaled else Form(KINDS[constants[0]], 1)
    if constants[0 if scaled else 1] != 1:
        raise NotProved("a tcgen05.mma of a pair of blocks is not modelled", op)
    if constants[-1]:
        raise NotProved("a tcgen05.mma that keeps A in the collector buffer is not modelled", op)
    try:
        shape = decode_shape(shape_bits & 0xFFFFFFFF, form)
    except Fault as f:
        raise NotProved(str(f), op) from None
    word = (1 << 64) - 1
    work = Multiply(form, offset, a & word, b & word, shape, True, [_NO_BLOCK])
    reads: list[tuple[Value, Rect]] = []
    if scaled:
        places = [place_of(v, op) for v in x[5:7]]
        work.sfa, work.sfb = (Address.of(o & 0x3FFFFFFF) for _, o in places)
        factors = [u.rect for u in work.uses() if not u.writes]
        reads = [(place, rect) for (place, _), rect in zip(places, factors, strict=True)]
    writes = [(base, u.rect) for u in work.uses() if u.writes]
    return _uses(op, work, (base, *work.key), writes, reads)


def _uses(
    op: Operation,
    work: Copy | Multiply,
    key: tuple[object, ...],
    writes: Sequence[tuple[Value, Rect]],
    reads: Sequence[tuple[Value, Rect]],
) -> Uses:
    try:
        work.check()
        units = tuple(tuple(int(u) for u in o.locate(work.name)[3]) for o in work.operands())
    except Fault as f:
        raise NotProved(str(f), op) from None
    return Uses(key, tuple(reads), tuple(writes), units)


def bits_of_rect(rect: Rect) -> int:
    """Return the words of a rectangle as a mask: a bit per column and group of lanes."""
    out = 0
    for g in range(GROUPS):
        lanes = rect.lanes >> GROUP * g & (1 << GROUP) - 1
        if lanes:
            for c in range(rect.first, rect.end):
                out |= 1 << (GROUPS * c + g)
    return out
