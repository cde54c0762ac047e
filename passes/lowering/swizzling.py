"""Addresses of swizzled pointers, with as few instructions as the structure of the address allows.

A swizzle ``S<b,m,s>`` acts on the byte address, which is decomposed as ``segment + sum(value * scale) + constant``.
The segment is aligned to the period ``2^(m+b+|s|)``, so multiples of the period (stages, whole rows of patterns) are
added after the swizzle.  The swizzle is linear over xor.  A constant that shares no bit with the other terms
(:mod:`.bits`) is therefore swizzled at compile time and added or xored.  Typically, one thread-dependent offset is
swizzled once, and each access of an unrolled copy needs only an immediate or one xor more.

Example, ``S<3,4,3>``, ``row = tid mod 8``, a buffer 4096 bytes into the segment::

    segment + (row*128 + 16 + 2048*stage + 4096)   becomes
    x = row*128;  y = x ^ ((x >> 3) & 0x70);   address = segment + 2048*stage + (y ^ 16) + 4096
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from xdsl.dialects.builtin import DenseArrayBase, IntegerType, i8, i32
from xdsl.ir import Operation, SSAValue

from cute_dialect.algebra.leaf import Dyn, Leaf, add, mul, xor
from cute_dialect.algebra.values import Swizzle
from cute_dialect.dialect.memory_types import integer_width
from cute_dialect.ir.editing import make_op
from cute_dialect.passes.lowering.bits import low_zeros, up_to
from cute_dialect.passes.lowering.build import inserted_at
from cute_dialect.passes.lowering.folding import constant_of
from cute_dialect.passes.lowering.smem import segment_alignment
from cute_dialect.upstream import llvm

if TYPE_CHECKING:
    from cute_dialect.passes.lowering.walk import Lowering

_DYNAMIC_INDEX = -(1 << 31)
_MAX_TERMS = 16
_LINEAR = ("arith.addi", "arith.muli", "arith.shli")


class Terms(NamedTuple):
    """An address as ``root + sum(value * scale for each term) + constant``, in bytes."""

    root: SSAValue
    terms: tuple[tuple[SSAValue, int], ...]
    constant: int


def address_terms(address: SSAValue) -> Terms | None:
    """Decompose an address; ``None`` if an index is not 32 bits wide."""
    constant = 0
    found: list[tuple[SSAValue, int]] = []
    while True:
        address, path = inserted_at(address, ())
        owner = address.owner
        if path or not isinstance(owner, Operation) or owner.name != "llvm.getelementptr":
            break
        raw = owner.properties["rawConstantIndices"]
        assert isinstance(raw, DenseArrayBase)
        indices = raw.get_values()
        size = _byte_size(owner)
        if len(indices) != 1 or size is None:
            break
        if indices[0] != _DYNAMIC_INDEX:
            constant += int(indices[0]) * size
        else:
            index = owner.operands[1]
            known = constant_of(index)
            if known is not None:
                constant += known * size
            elif index.type != i32:
                return None
            else:
                constant += _split(index, size, found)
        address = owner.operands[0]
    merged: dict[SSAValue, int] = {}
    for value, scale in reversed(found):
        merged[value] = merged.get(value, 0) + scale
    return Terms(address, tuple((v, s) for v, s in merged.items() if s), constant)


def _byte_size(gep: Operation) -> int | None:
    t = gep.properties["elem_type"]
    bits = integer_width(t) or {"f16": 16, "bf16": 16, "f32": 32, "f64": 64}.get(t.name)
    return None if bits is None or bits % 8 else bits // 8


def _split(value: SSAValue, scale: int, into: list[tuple[SSAValue, int]]) -> int:
    # Append the terms of value * scale and return the constant part, modulo 2^32.
    stack = [(value, scale)]
    constant = 0
    while stack:
        v, s = stack.pop()
        v, path = inserted_at(v, ()) if not isinstance(v.type, llvm.LLVMStructType) else (v, ())
        known = constant_of(v) if not path else None
        if known is not None:
            constant += known * s
            continue
        owner = v.owner
        name = owner.name if isinstance(owner, Operation) and not path else ""
        if isinstance(owner, Operation) and name in _LINEAR and len(into) < _MAX_TERMS:
            a, b = owner.operands
            by = constant_of(b)
            if name == "arith.addi":
                stack += [(a, s), (b, s)]
                continue
            if by is not None and (name == "arith.muli" or 0 <= by < 32):
                stack.append((a, s * by if name == "arith.muli" else s << by))
                continue
        into.append((v, s))
    return constant


def swizzled_address(low: Lowering, address: SSAValue, swizzle: Swizzle) -> SSAValue:
    """Return the address that a swizzled pointer to ``address`` refers to."""
    period = 1 << (swizzle.base + swizzle.bits + abs(swizzle.shift))
    parts = address_terms(address)
    if parts is None or not _aligned(low, parts.root, period):
        return _by_number(low, address, swizzle)
    aligned: Leaf = 0
    inner: Leaf = 0
    mask = 0
    for value, scale in parts.terms:
        bits = low.bits.mask(value)
        term = mul(_leaf(low, value), scale)
        if low_zeros(bits) + low_zeros(scale) >= low_zeros(period):
            aligned = add(aligned, term)
            continue
        scaled = bits * scale if scale > 0 and scale & (scale - 1) == 0 else up_to(bits * abs(scale), low_zeros(scale))
        if scale < 0 or scaled >> 31:
            zeros = low_zeros(scaled)
            scaled = 0xFFFFFFFF >> zeros << zeros
        mask = mask | scaled if not mask & scaled else up_to(mask + scaled, min(low_zeros(mask), low_zeros(scaled)))
        inner = add(inner, term)
    after = parts.constant // period * period
    rest = parts.constant - after
    # Constant bits that may overlap bits of the terms are swizzled together with them.
    if rest & mask:
        together = rest >> low_zeros(mask) << low_zeros(mask)
        inner = add(inner, together)
        mask = up_to(mask + together, low_zeros(mask))
        rest -= together
    moved, mask = _apply(low, swizzle, inner, mask)
    swizzled_rest = swizzle(rest)
    assert isinstance(swizzled_rest, int)
    flipped = swizzled_rest & mask
    if isinstance(moved, int):
        after += moved ^ flipped
    else:
        moved = xor(moved, flipped)
    after += swizzled_rest & ~mask
    build = low.build
    result = parts.root
    for leaf in (aligned, moved):
        if isinstance(leaf, Dyn):
            at, value = result, low.ssa(leaf)
            result = build.once(("gep", at, value), lambda at=at, value=value: llvm.GEPOp(at, [value], i8))
    if after:
        at = result
        result = build.once(("gep", at, after), lambda: llvm.GEPOp(at, [after], i8))
    return result


def _apply(low: Lowering, swizzle: Swizzle, x: Leaf, mask: int) -> tuple[Leaf, int]:
    # Return the swizzled terms and their mask; no op is needed if no bit read by the swizzle can be set.
    if isinstance(x, int):
        assert x == 0
        return 0, 0
    read, _ = swizzle.masks()
    if not mask & read:
        return x, mask
    s = swizzle.shift
    return swizzle(x), mask | ((mask & read) >> s if s >= 0 else (mask & read) << -s)


def _leaf(low: Lowering, value: SSAValue) -> Dyn:
    return Dyn(32, 1, value, low.emitter)


def _aligned(low: Lowering, root: SSAValue, period: int) -> bool:
    owner = root.owner
    return (
        isinstance(owner, Operation)
        and owner.name == "llvm.mlir.addressof"
        and segment_alignment(low, str(owner.properties["global_name"])) % period == 0
    )


def _by_number(low: Lowering, address: SSAValue, swizzle: Swizzle) -> SSAValue:
    # The structure of the address is unknown, so it is converted to an integer.
    number = low.build.once(("number", address), lambda: make_op(llvm.OPS["ptrtoint"], [address], [IntegerType(32)]))
    moved = low.ssa(swizzle(_leaf(low, number)))
    return low.build.once(("pointer", moved), lambda: make_op(llvm.OPS["inttoptr"], [moved], [address.type]))
