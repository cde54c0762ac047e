"""Register tensors in the packed registers of an instruction: several elements per 32-bit register.

``ldmatrix`` returns ``i32`` registers of two f16 values each, and ``mma.sync`` takes them in the same form.  The IR has
a fragment of single elements in between.  :func:`write_packed` makes the cells lanes of one bitcast of the register.
:func:`read_packed` recognizes such lanes and returns the register itself, so no instruction remains in between.  Other
cells (from a wide load or arithmetic) are packed.

    low: write_packed(low, %frag, [0, 1, 2, 3], [%r0, %r1])     # f16: cells 0,1 in %r0, cells 2,3 in %r1
         read_packed(low, %frag, [2, 3, 0, 1]) -> [%r1, %r0]

A tensor in local memory is loaded and stored element by element.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from xdsl.dialects.builtin import VectorType, i32
from xdsl.ir import Attribute, Operation, SSAValue

from cute_dialect.algebra.evaluation import evaluate, size
from cute_dialect.dialect.memory_types import MemRefType, element_bits, integer_width
from cute_dialect.ir.editing import make_op
from cute_dialect.passes.lowering.build import BaseBuilder
from cute_dialect.passes.lowering.fragments import Lane, Member, register_of, whole_register
from cute_dialect.passes.lowering.memory import load_element, store_element
from cute_dialect.passes.lowering.types import lowered, pointer
from cute_dialect.passes.lowering.types import vector as vector_type
from cute_dialect.passes.lowering.walk import Lowering
from cute_dialect.upstream import llvm


def value_offsets(t: MemRefType) -> list[int]:
    """Return the offsets of the values of a register tensor, in elements from its iterator.

    ``!cute.memref<f16, rmem, "(2,2):(1,4)">`` gives ``[0, 1, 4, 5]``.
    """
    n = size(t.layout)
    assert isinstance(n, int), "the verifier asks for static layouts in registers"
    offsets: list[int] = []
    for i in range(n):
        at = evaluate(i, t.layout)
        if isinstance(at, tuple):
            at = 0
        assert isinstance(at, int)
        offsets.append(at)
    return offsets


def register_bits(t: Attribute) -> int:
    """Return the width of a scalar or vector type of base ops, in bits."""
    if isinstance(t, VectorType):
        element = cast("VectorType[Attribute]", t).element_type
        return register_bits(element) * t.get_shape()[0]
    return integer_width(t) or element_bits(t)


def as_type(build: BaseBuilder, value: SSAValue, t: Attribute) -> SSAValue:
    """Bitcast a value to another type of the same width; a bitcast back to the source type returns the source."""
    if value.type == t:
        return value
    owner = value.owner
    if isinstance(owner, Operation) and owner.name == "llvm.bitcast":
        source = owner.operands[0]
        if source.type == t:
            return source
        value = source
    return build.once(("bitcast", value, build.type_key(t)), lambda: make_op(llvm.OPS["bitcast"], [value], [t]))


def read_packed(
    low: Lowering, tensor: SSAValue, offsets: Sequence[int] | None = None, register: Attribute = i32
) -> list[SSAValue]:
    """Read the elements at ``offsets`` (default: all values in order) in registers of type ``register``.

    A register holds as many elements as fit, the first one in the low bits.  ``register`` may be an integer, a float
    or a vector type; with the element's own type, each element has its own register.  The elements must fill whole
    registers, which the verifier has checked.
    """
    t = tensor.type
    assert isinstance(t, MemRefType)
    at = value_offsets(t) if offsets is None else list(offsets)
    bits, wide = element_bits(t.element), register_bits(register)
    per = wide // bits
    assert per and not wide % bits and not len(at) % per, f"{len(at)} values of {t.element} in registers of {wide} bits"
    return [_read_one(low, tensor, t, at[i : i + per], register) for i in range(0, len(at), per)]


def _read_one(low: Lowering, tensor: SSAValue, t: MemRefType, offsets: Sequence[int], register: Attribute) -> SSAValue:
    build = low.build
    view = low.views.get(tensor)
    if view is None:
        loaded = [_load(low, tensor, t, o) for o in offsets]
        return as_type(build, loaded[0] if len(loaded) == 1 else build.vector(loaded), register)
    cells = low.registers.cells[view.fragment]
    chosen = [cells[view.offset + o] for o in offsets]
    n = len(chosen)
    if all(c is None for c in chosen):
        return build.unwritten(register, view.fragment.op, [view.offset + offsets[0]])
    first = chosen[0]
    if isinstance(first, Lane):
        vector, start = first
        vt = vector.type
        assert isinstance(vt, VectorType)
        together = all(isinstance(c, Lane) and c == Lane(vector, start + i) for i, c in enumerate(chosen))
        if together and start % n == 0:
            count = vt.get_shape()[0]
            if count == n:
                return as_type(build, vector, register)
            if count % n == 0 and not _is_vector(register):
                parts = as_type(build, vector, vector_type(register, count // n))
                return build.once(("lane", parts, start // n), lambda: _extract(build, parts, start // n))
    if isinstance(first, Member) and whole_register(chosen):
        return as_type(build, register_of(build, first), register)
    if n == 1:
        return as_type(build, low.registers.read(build, view, offsets[0]), register)
    return as_type(build, low.registers.read_vector(build, view, list(offsets)), register)


def _is_vector(t: Attribute) -> bool:
    return isinstance(t, VectorType)


def _extract(build: BaseBuilder, vector: SSAValue, index: int) -> Operation:
    t = vector.type
    assert isinstance(t, VectorType)
    element = cast("VectorType[Attribute]", t).element_type
    at = build.constant(index, i32)
    return make_op(llvm.OPS["extractelement"], [vector, at], [element])


def write_packed(
    low: Lowering, tensor: SSAValue, registers: Sequence[SSAValue], offsets: Sequence[int] | None = None
) -> None:
    """Write registers to the elements at ``offsets`` (default: all values in order), low bits first.

    The verifier has checked that the registers hold exactly these elements.
    """
    t = tensor.type
    assert isinstance(t, MemRefType)
    at = value_offsets(t) if offsets is None else list(offsets)
    bits = element_bits(t.element)
    cell = lowered(t.element)
    position = 0
    for r in registers:
        wide = register_bits(r.type)
        n = wide // bits
        assert n and not wide % bits and position + n <= len(at), f"{len(at)} values in registers of {wide} bits"
        own = at[position : position + n]
        position += n
        if n == 1:
            values: list[SSAValue | Lane] = [as_type(low.build, r, cell)]
        else:
            vector = as_type(low.build, r, vector_type(cell, n))
            values = [Lane(vector, i) for i in range(n)]
        for o, v in zip(own, values):
            _write(low, tensor, t, o, v)
    assert position == len(at), f"{len(at)} values of {t.element}, {position} in registers"


def _write(low: Lowering, tensor: SSAValue, t: MemRefType, offset: int, value: SSAValue | Lane) -> None:
    view = low.views.get(tensor)
    if view is not None:
        low.registers.write(view, offset, value)
        return
    new = low.build.lane(*value) if isinstance(value, Lane) else value
    store_element(low.build, new, _address(low, tensor, t, offset), t.element)


def _load(low: Lowering, tensor: SSAValue, t: MemRefType, offset: int) -> SSAValue:
    return load_element(low.build, _address(low, tensor, t, offset), t.element)


def _address(low: Lowering, tensor: SSAValue, t: MemRefType, offset: int) -> SSAValue:
    base = low.build.part(low.value(tensor), (0,), pointer(t.space))
    return low.address(base, t.data.ptr, offset, small=True)
