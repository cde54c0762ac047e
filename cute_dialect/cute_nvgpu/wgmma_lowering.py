"""Lowering of ``wgmma``: ``nvvm`` ops where MLIR 22 supports the atom, else intrinsics or inline PTX.

In ``convert-cute-algo-to-arch``, the first ``wgmma`` of each accumulator of a GEMM without C has scale-d 0.

In ``cute-to-base``, register operands are read from and written to the cells of register tensors. The members of a
result struct are extracted only when they are read.

**Descriptors.** Layout, major and swizzle of a tile determine its descriptor except for the address. The high word is a
constant. The low word is ``(address & 0x3FFFF) >> 4`` plus a constant (the leading byte offset). The address of a view
is split into the start of its buffer and a sum of offsets. The start is shifted once, next to its definition, and the
offsets are added in units of 16 bytes. Stepping along k or to another stage is then one integer addition, and ptxas
keeps descriptors in uniform registers::

    address = smem + 16384*stage + 32
    low     = ((smem & 0x3FFFF) >> 4) + 0x10000 + 1024*stage + 2
    descriptor = zext(low) | 0x4000004000000000
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias

from xdsl.dialects import arith
from xdsl.dialects.builtin import BoolAttr, IntegerAttr, VectorType, i32, i64
from xdsl.ir import Attribute, Operation, SSAValue

from cute_dialect.algebra.evaluation import size
from cute_dialect.algebra.leaf import Dyn, Leaf, add, mul
from cute_dialect.algebra.values import Layout
from cute_dialect.arch.atom import MmaAtom
from cute_dialect.cute_nvgpu.gemm import descriptor_of
from cute_dialect.cute_nvgpu.tiled_mma import MmaAtomType
from cute_dialect.cute_nvgpu.tiled_mma_lowering import Product, order, row_of
from cute_dialect.cute_nvgpu.wgmma import WgmmaOp, WgmmaType
from cute_dialect.dialect import memory
from cute_dialect.dialect.memory_types import MemRefType
from cute_dialect.ir.editing import make_op
from cute_dialect.passes.base import PassError
from cute_dialect.passes.lowering.carried import Unit, accumulator_unit, held_units, read_unit, write_unit
from cute_dialect.passes.lowering.fragments import FragmentView, Lane, bits_as
from cute_dialect.passes.lowering.insertion import InsertionPoint
from cute_dialect.passes.lowering.packed import read_packed
from cute_dialect.passes.lowering.swizzling import address_terms
from cute_dialect.passes.lowering.types import lowered, pointer
from cute_dialect.passes.lowering.walk import Handler, Lowering
from cute_dialect.spaces import AddressSpace
from cute_dialect.upstream import llvm, nvvm


def multiply(product: Product) -> None:
    """Lower a ``cute.gemm`` to one ``wgmma`` per instruction tile."""
    multiply_by_warp_group(WgmmaOp, product)


Factors: TypeAlias = Callable[[int, int, int], tuple[list[SSAValue], Mapping[str, Attribute]]]
"""Function that maps the position (m, n, k) of an instruction to its further operands and properties."""


def multiply_by_warp_group(make: type[Operation], product: Product, factors: Factors | None = None) -> None:
    """Lower a GEMM to one op ``make`` per instruction, with the operands D, A, B, E if sparse, and scale factors."""
    site, op, c, atom, tiles, (m, n, k) = product
    mma, d = op.operands[:2]
    scale_d = _accumulate_flag(mma)
    if c is not None and scale_d is not None:
        raise PassError(
            "C cannot be combined with an accumulate flag of the atom (cute.atom.set_value); omit one of them", op
        )
    if c is not None and c is not d:
        _copy_accumulators(site, c, d)
    for step in range(k):
        for i, j in order(m, n, serpentine=False):
            operands: list[SSAValue] = [tiles["D"].at(i, j), tiles["A"].at(i, step), tiles["B"].at(j, step)]
            if "E" in tiles:
                operands.append(tiles["E"].at(i, step))
            chosen: Mapping[str, Attribute] = {}
            if factors is not None:
                more, chosen = factors(i, j, step)
                operands += more
            first = step == 0 and c is None
            if first and scale_d is not None:
                operands.append(scale_d)
            accumulate = not first or scale_d is not None
            properties = {"accumulate": BoolAttr.from_bool(accumulate), **chosen, "atom": atom}
            site.add(make_op(make, operands, properties=properties))


def _copy_accumulators(site: InsertionPoint, source: SSAValue, target: SSAValue) -> None:
    t = target.type
    assert isinstance(t, MemRefType)
    n = size(t.layout)
    assert isinstance(n, int)
    for i in range(n):
        where = site.coordinate(i)
        site.add(memory.StoreOp(target, where, site.emit(memory.LoadOp(source, where))))


def _accumulate_flag(value: SSAValue) -> SSAValue | None:
    """Return the flag that ``cute.atom.set_value {field = accumulate}`` has set on the MMA, or None."""
    while isinstance(value.owner, Operation):
        owner = value.owner
        if owner.name == "cute.atom.set_value":
            field = {**owner.attributes, **owner.properties}.get("field")
            if field is not None and "accumulate" in str(field):
                return owner.operands[1]
        elif owner.name != "cute.make_tiled_mma":
            return None
        value = owner.operands[0]
    return None


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


# --------------------------------------------------------------------------------------------------------------- wgmma


def accumulator(low: Lowering, tensor: SSAValue, row: MmaAtom, op: Operation) -> tuple[FragmentView, Unit]:
    """Return the view and the unit of registers that hold the accumulators. Raises PassError if they are in memory."""
    t = tensor.type
    assert isinstance(t, MemRefType)
    view = low.views.get(tensor)
    if view is None:
        raise PassError(
            "the accumulators of wgmma must stay in registers, but this tensor had to be placed in local memory", op
        )
    return view, accumulator_unit(t, view.offset, row.registers_d.count)


def _wgmma(low: Lowering, op: Operation) -> None:
    atom, row = row_of(op)
    assert isinstance(atom, WgmmaType)
    d, a, b, *flag = op.operands
    accumulate = op.properties["accumulate"]
    assert isinstance(accumulate, IntegerAttr)
    view, unit = accumulator(low, d, row, op)
    first = [descriptor(low, atom, "A", a)] if row.source_a == AddressSpace.smem else read_packed(low, a, None, i32)
    second = descriptor(low, atom, "B", b)
    if flag or accumulate.value.data:
        struct = read_unit(low.build, low.registers, view, unit)
    else:
        struct = low.build.emit(llvm.UndefOp(unit.type))  # The contents are overwritten.
    if row.emit.route == "op" and not flag and not row.emit["saturate"]:
        new = _wgmma_op(row, struct, first[0], second, bool(accumulate.value.data), atom.data.negate)
    else:
        scale_d = low.value(flag[0]) if flag else None
        new = wgmma_asm(low, row, struct, first, second, scale_d, bool(accumulate.value.data), negate=atom.data.negate)
    write_unit(low.registers, view, unit, low.build.emit(new))


def _wgmma_op(row: MmaAtom, struct: SSAValue, a: SSAValue, b: SSAValue, accumulate: bool, negate: str) -> Operation:
    m, n, k = row.shape_mnk
    return nvvm.OPS["wgmma.mma_async"](
        struct,
        a,
        b,
        shape=nvvm.nvvm_attr("shape", f"m = {m}, n = {n}, k = {k}"),
        typeA=str(row.emit["type_a"]),
        typeB=str(row.emit["type_b"]),
        typeD=str(row.emit["type_d"]),
        scaleD="one" if accumulate else "zero",
        scaleA="neg" if "A" in negate else "one",
        scaleB="neg" if "B" in negate else "one",
        layoutA=str(row.emit["layout_a"]),
        layoutB=str(row.emit["layout_b"]),
        result_types=[struct.type],
    )


def wgmma_asm(
    low: Lowering,
    row: MmaAtom,
    struct: SSAValue,
    a: list[SSAValue],
    b: SSAValue,
    scale_d: SSAValue | None,
    accumulate: bool,
    metadata: tuple[SSAValue, int] | None = None,
    negate: str = "",
) -> Operation:
    """Build one ``wgmma`` as inline PTX, for A in registers, dynamic scale-d, saturation, or a sparse A.

    ``metadata`` is the register of a sparse A and the selector. ``negate`` lists the operands with a scale of -1. The
    operands of the assembly are the outputs ``$0 …``, the same registers as tied inputs, then A, B, the metadata and
    the flag.
    """
    n = row.registers_d.count
    letter = row.registers_d.constraint
    names = [f"${i}" for i in range(2 * n, 2 * n + len(a) + 3)]
    text = row.ptx.replace("$d", "{" + ", ".join(f"${i}" for i in range(n)) + "}", 1)
    first = "{" + ", ".join(names[: len(a)]) + "}" if row.source_a == AddressSpace.rmem else names[0]
    signs = {f"$scale_{x.lower()}": "-1" if x in negate else "1" for x in "AB"}
    text = _replace(text, {"$a": first, "$b": names[len(a)], **signs})
    operands = [low.build.extract_once(struct, (i,), t) for i, t in enumerate(_members(struct))]
    operands += [*a, b]
    letters = [*([f"={letter}"] * n), *[str(i) for i in range(n)]]
    letters += ["r" if row.source_a == AddressSpace.rmem else "l"] * len(a) + ["l"]
    if metadata is not None:
        e, selector = metadata
        text = _replace(text, {"$e": names[len(a) + 1], "$selector": str(selector)})
        operands.append(e)
        letters.append("r")
    if scale_d is None:
        text = _replace(text, {"$scale_d": str(int(accumulate))})
    else:
        operands.append(low.build.once(("extui", scale_d), lambda: arith.ExtUIOp(scale_d, i32)))
        letters.append("r")
        flag = f"${len(operands) - 1 + n}"
        text = f"{{ .reg .pred p; setp.ne.b32 p, {flag}, 0; {_replace(text, {'$scale_d': 'p'})} }}"
    return llvm.InlineAsmOp(text, ",".join(letters), operands, struct.type, has_side_effects=True)


def _replace(text: str, by: Mapping[str, str]) -> str:
    import re

    return re.sub(r"\$[a-z_]+", lambda m: by.get(m[0], m[0]), text)


def _members(struct: SSAValue) -> tuple[Attribute, ...]:
    t = struct.type
    assert isinstance(t, llvm.LLVMStructType)
    return tuple(t.types)


def _lanes(t: MemRefType, n: int) -> Attribute:
    return VectorType(lowered(t.element), [n])


_LETTERS: Mapping[str, str] = {"f32": "f", "i32": "r", "f64": "d", "f16": "h", "bf16": "h", "i16": "h", "i64": "l"}


def _with_accumulators(low: Lowering, op: Operation, instruction: str, plain: Callable[[], Operation]) -> None:
    """Emit an instruction with all accumulators as tied operands, so that no access to them moves across it.

    The first struct is tied to the instruction itself, the others to empty assembly directly after it.
    """
    text = instruction
    for tensor in op.operands:
        t = tensor.type
        assert isinstance(t, MemRefType)
        view = low.views.get(tensor)
        if view is None:
            raise PassError("accumulators must stay in registers, but this tensor had to be placed in local memory", op)
        for unit in held_units(low.registers, view, t):
            struct = read_unit(low.build, low.registers, view, unit)
            types = _members(struct)
            letters = [_LETTERS[str(x)] for x in types]
            constraints = ",".join([*[f"={x}" for x in letters], *[str(i) for i in range(len(types))]])
            members = [low.build.extract_once(struct, (i,), x) for i, x in enumerate(types)]
            result = unit.type if len(types) > 1 else unit.type.types[0]
            tied = low.build.emit(llvm.InlineAsmOp(text, constraints, members, result, has_side_effects=True))
            text = ""
            if len(types) > 1:
                write_unit(low.registers, view, unit, tied)
                continue
            cells = low.registers.cells[view.fragment]
            one = bits_as(low.build, tied, _lanes(t, unit.parts)) if unit.parts > 1 else tied
            for i, c in enumerate(unit.cells):
                cells[c] = Lane(one, i) if unit.parts > 1 else one
    if text:
        low.build.add(plain())


def _wgmma_fence(low: Lowering, op: Operation) -> None:
    _with_accumulators(low, op, "wgmma.fence.sync.aligned;", lambda: nvvm.OPS["wgmma.fence.aligned"]())


def _wgmma_commit_group(low: Lowering, op: Operation) -> None:
    low.build.add(nvvm.OPS["wgmma.commit.group.sync.aligned"]())


def _wgmma_wait_group(low: Lowering, op: Operation) -> None:
    attribute = op.properties["n"]
    assert isinstance(attribute, IntegerAttr)
    n = attribute.value.data
    _with_accumulators(
        low, op, f"wgmma.wait_group.sync.aligned {n};", lambda: nvvm.OPS["wgmma.wait.group.sync.aligned"](group=n)
    )


TO_BASE: Mapping[str, Handler] = {
    "cute_nvgpu.arch.wgmma": _wgmma,
    "cute_nvgpu.arch.wgmma_fence": _wgmma_fence,
    "cute_nvgpu.arch.wgmma_commit_group": _wgmma_commit_group,
    "cute_nvgpu.arch.wgmma_wait_group": _wgmma_wait_group,
}
"""Op name -> lowering function."""
