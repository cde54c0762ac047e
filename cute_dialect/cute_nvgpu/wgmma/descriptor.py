"""Matrix descriptors of ``wgmma`` operands in shared memory.

Layout, major and swizzle of a tile determine its descriptor except for the address. The high word is a constant. The
low word is ``(address & 0x3FFFF) >> 4`` plus a constant (the leading byte offset). The address of a view is split into
the start of its buffer and a sum of offsets. The start is shifted once, next to its definition, and the offsets are
added in units of 16 bytes. Stepping along k or to another stage is then one integer addition, and ptxas keeps
descriptors in uniform registers::

    address = smem + 16384*stage + 32
    low     = ((smem & 0x3FFFF) >> 4) + 0x10000 + 1024*stage + 2
    descriptor = zext(low) | 0x4000004000000000
"""

from __future__ import annotations

from xdsl.dialects import arith
from xdsl.dialects.builtin import IntegerAttr, i32, i64
from xdsl.ir import SSAValue

from cute_dialect.algebra.leaf import Dyn, Leaf, add, mul
from cute_dialect.algebra.values import Layout
from cute_dialect.cute_nvgpu.tiled_mma.gemm import descriptor_of
from cute_dialect.cute_nvgpu.tiled_mma.types import MmaAtomType
from cute_dialect.dialect.memory_types import MemRefType
from cute_dialect.ir.editing import make_op
from cute_dialect.passes.lowering.swizzling import address_terms
from cute_dialect.passes.lowering.types import pointer
from cute_dialect.passes.lowering.walk import Lowering
from cute_dialect.spaces import AddressSpace
from cute_dialect.upstream import llvm

_UNIT = 16
_ADDRESS = 0x3FFFF
"""Mask of the shared-memory address bits in a descriptor (PTX ISA, "Matrix descriptor format")."""


def descriptor(low: Lowering, atom: MmaAtomType, operand: str, tensor: SSAValue) -> SSAValue:
    """Return the 64-bit descriptor of the tile of one instruction. Raises AlgebraError if no descriptor represents its
    layout.
    """
    t = tensor.type
    assert isinstance(t, MemRefType)
    assert isinstance(t.layout, Layout)
    bits = descriptor_of(atom, operand, t, t.layout)
    word = _low_word(low, low.build.part(low.value(tensor), (0,), pointer(AddressSpace.smem)), bits & 0xFFFFFFFF)
    high = bits >> 32 << 32
    high -= (high >> 63) << 64
    wide = low.build.once(("extui", word), lambda: make_op(arith.ExtUIOp, [word], [i64]))
    constant = low.build.constant(high, i64)
    return low.build.once(("ori", wide, constant), lambda: make_op(arith.OrIOp, [wide, constant], [i64]))


def _low_word(low: Lowering, address: SSAValue, constant: int) -> SSAValue:
    parts = address_terms(address)
    if parts is None:
        return low.ssa(add(Dyn(32, 1, _start(low, address, constant), low.emitter), 0))
    units: Leaf = parts.constant // _UNIT
    odd: Leaf = parts.constant % _UNIT
    for value, scale in parts.terms:
        leaf = Dyn(32, 1, value, low.emitter)
        if scale % _UNIT == 0:
            units = add(units, mul(leaf, scale // _UNIT))
        else:
            odd = add(odd, mul(leaf, scale))
    if not isinstance(odd, int) or odd:
        # The type guarantees that this sum is a multiple of the unit, although no single term shows it.
        shifted = low.build.emit(arith.ShRSIOp(low.ssa(odd), low.build.constant(4, i32)))
        units = add(units, Dyn(32, 1, shifted, low.emitter))
    start = Dyn(32, 1, _start(low, parts.root, constant), low.emitter)
    return low.ssa(add(start, units))


def _start(low: Lowering, root: SSAValue, constant: int) -> SSAValue:
    """Return ``((root & 0x3FFFF) >> 4) + constant``, built once, next to the definition of ``root``."""
    build = low.build
    whole = build.beside(("ptrtoint",), root, lambda: make_op(llvm.OPS["ptrtoint"], [root], [i32]))
    # In a cluster, the upper bits of a shared-memory address hold the rank of the block. They do not fit in a
    # descriptor.
    mask = build.beside(("constant", _ADDRESS), whole, lambda: arith.ConstantOp(IntegerAttr(_ADDRESS, i32), i32))
    number = build.beside(("andi", whole), mask, lambda: arith.AndIOp(whole, mask))
    four = build.beside(("constant", 4), number, lambda: arith.ConstantOp(IntegerAttr(4, i32), i32))
    shifted = build.beside(("shrui", number), four, lambda: arith.ShRUIOp(number, four))
    if constant == 0:
        return shifted
    more = build.beside(("constant", constant), shifted, lambda: arith.ConstantOp(IntegerAttr(constant, i32), i32))
    return build.beside(("addi", shifted), more, lambda: arith.AddiOp(shifted, more))


__all__ = ["descriptor"]
