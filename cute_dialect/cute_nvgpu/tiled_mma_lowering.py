"""Lowering of tiled GEMMs, and reads and writes of the register operands of matrix instructions.

In ``convert-cute-algo-to-arch``, ``cute.gemm`` becomes one arch op per instruction. It is unrolled over k, and for each
k over all (m, n). For ``mma.sync`` the (m, n) are in serpentine order, so that consecutive instructions share an
operand. Each operand of an instruction is a view of one atom's values. Each view is created once.

    cute.gemm(%mma, %d, %a, %b, %d)         with d (V,2,1), a (V,2,1), b (V,1,1)
    →
    %i  = cute.get_iter(%d)  …  %d0 = cute.make_view(%i, V)  …  %d1 = cute.make_view(%i + 4, V)  …
    cute_nvgpu.arch.mma_sync(%d0, %a0, %b0, %d0) {atom = …} : …
    cute_nvgpu.arch.mma_sync(%d1, %a1, %b0, %d1) {atom = …} : …

Without C the first MMA of each accumulator starts from zero: with a C of zeros for ``mma.sync`` and ``fma``, with
scale-d 0 for ``wgmma``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from typing import NamedTuple, TypeAlias, cast

from xdsl.dialects import arith
from xdsl.dialects.builtin import AnyFloat, FloatAttr, VectorType, f16, f32, f64, i1, i8, i16, i32
from xdsl.ir import Attribute, Operation, SSAValue

from cute_dialect.algebra.evaluation import evaluate, size
from cute_dialect.algebra.leaf import AlgebraError, Leaf, add
from cute_dialect.algebra.trees import is_static
from cute_dialect.algebra.values import Coord, IntTuple, Layout, layout_modes
from cute_dialect.arch.atom import MmaAtom, Registers
from cute_dialect.cute_nvgpu import gemm
from cute_dialect.cute_nvgpu import tiled_mma as mma
from cute_dialect.cute_nvgpu.gemm import gemm_operands
from cute_dialect.cute_nvgpu.tiled_mma import MmaAtomType, TiledMmaType
from cute_dialect.dialect import memory, views
from cute_dialect.dialect.memory_types import MemRefType, TensorType, integer_width
from cute_dialect.dialect.registry import instruction_of_atom, module_of_atom
from cute_dialect.dialect.types import CuteType, LayoutType, ShapeType
from cute_dialect.ir.editing import make_op
from cute_dialect.passes.lowering.carried import cells_of
from cute_dialect.passes.lowering.fragments import Lane, Member
from cute_dialect.passes.lowering.insertion import InsertionPoint
from cute_dialect.passes.lowering.packed import as_type, read_packed, register_bits, write_packed
from cute_dialect.passes.lowering.walk import Lowering
from cute_dialect.spaces import AddressSpace


def _nothing(op: Operation) -> None:
    """Keep a tiled MMA or a tiled copy, whose type describes it completely."""


def partition(op: Operation) -> None:
    """Replace a partition by a view of the thread's partition."""
    assert isinstance(op, mma.PartitionOp)
    tiled, tensor, tid = op.operands
    site = InsertionPoint(op)
    t, tiled_mma, declared = tensor.type, tiled.type, op.results[0].type
    assert isinstance(t, TensorType) and isinstance(tiled_mma, TiledMmaType) and isinstance(declared, TensorType)
    it = site.emit(views.GetIterOp(tensor))
    layout = site.bound(site.emit(views.GetLayoutOp(tensor)))
    part, offset = mma.partition(tiled_mma, op.OPERAND, t, layout, site.bound(tid))
    view = views.MakeViewOp(site.moved(it, offset), site.make(views.layout_type(declared.layout), part), declared)
    op.results[0].replace_all_uses_with(site.emit(view))


def partition_shape(op: Operation) -> None:
    """Replace the op by the shape of the thread's partition."""
    assert isinstance(op, mma.PartitionShapeOp)
    site = InsertionPoint(op)
    declared, tiled = op.results[0].type, op.operands[0].type
    assert isinstance(declared, ShapeType) and isinstance(tiled, TiledMmaType)
    shape = (
        declared.data if declared.is_static() else mma.partition_shape(tiled, op.OPERAND, site.bound(op.operands[1]))
    )
    op.results[0].replace_all_uses_with(site.make(declared, shape))


def make_fragment(op: Operation) -> None:
    """Allocate registers for a part, place it in tensor memory, or return the part in shared memory itself."""
    assert isinstance(op, mma.MakeFragmentOp)
    t, tiled = op.results[0].type, op.operands[0].type
    assert isinstance(t, MemRefType) and isinstance(tiled, TiledMmaType)
    fragment = op.operands[1]
    if t.space == AddressSpace.tmem and op.results[0].first_use is None:
        return  # A host function only needs its type; there it has no address.
    if t.space.per_thread:
        fragment = InsertionPoint(op).emit(memory.AllocaOp(t))
    elif t.space == AddressSpace.tmem:
        module = import_module(module_of_atom(tiled.atom.name))
        fragment = cast("Place", module.place_fragment)(InsertionPoint(op), t)
    op.results[0].replace_all_uses_with(fragment)


def query(op: Operation) -> None:
    """Replace a query of a tiled MMA by its static value."""
    t = op.results[0].type
    assert isinstance(t, CuteType)
    op.results[0].replace_all_uses_with(InsertionPoint(op).static(t))


# ----------------------------------------------------------------------------------------------------------------- gemm


class Tiles:
    """Views of one atom's values of an operand, created on first use."""

    def __init__(self, site: InsertionPoint, tensor: SSAValue, modes: tuple[Layout, Layout, Layout]):
        self._site = site
        self._tensor = tensor
        self._values, *self._rest = modes
        t = tensor.type
        assert isinstance(t, MemRefType)
        self._type = t
        self._whole = all(size(m) == 1 for m in self._rest) and t.layout == self._values

    def at(self, first: int, second: int) -> SSAValue:
        """Return the view of the atom at these coordinates in the two modes."""
        if self._whole:
            return self._tensor
        site = self._site
        key = ("tile", self._tensor, first, second)
        return site.once(key, lambda: self._view(first, second))

    def place(self, first: int, second: int) -> tuple[SSAValue, Leaf]:
        """Return the iterator of the operand, and the offset of the atom at these coordinates in the two modes."""
        tensor = self._tensor
        it = self._site.once(("iter", tensor), lambda: views.GetIterOp(tensor))
        rest = [self._bound(i) for i in (1, 2)]
        return it, add(_value(first, rest[0]), _value(second, rest[1]))

    def _view(self, first: int, second: int) -> Operation:
        site = self._site
        it, offset = self.place(first, second)
        return views.MakeViewOp(site.moved(it, offset), site.static(LayoutType(self._values)))

    def _bound(self, mode: int) -> Layout:
        layout = self._rest[mode - 1]
        if is_static(layout):
            return layout
        # A shared-memory operand may have a mode with dynamic strides.
        ssa = self._site.once(("layout", self._tensor), lambda: views.GetLayoutOp(self._tensor))
        whole = self._site.bound(ssa)
        assert isinstance(whole, Layout)
        return layout_modes(whole)[mode]


def _value(coordinate: int, mode: Layout) -> Leaf:
    found: IntTuple = evaluate(cast("Coord", coordinate), mode)
    assert not isinstance(found, tuple)
    return found


def order(m: int, n: int, *, serpentine: bool) -> Iterator[tuple[int, int]]:
    """Return all (i, j) of an m by n grid. With ``serpentine``, every other row is reversed, so that neighbours share
    an operand.

    >>> list(order(2, 2, serpentine=True))
    [(0, 0), (0, 1), (1, 1), (1, 0)]
    """
    for i in range(m):
        for j in range(n):
            yield i, (n - 1 - j if serpentine and i % 2 else j)


def extent(mode: Layout) -> int:
    """Return the size of a static mode."""
    n = size(mode)
    assert isinstance(n, int)
    return n


class Product(NamedTuple):
    """A ``cute.gemm`` or ``cute.sparse_gemm`` that is being lowered.

    ``c`` is the tensor C, or None. ``tiles`` are the views of D, A and B, of E for a sparse GEMM, and of C if it
    differs from D. ``extents`` are M, N and K in atoms.
    """

    site: InsertionPoint
    op: Operation
    c: SSAValue | None
    atom: MmaAtomType
    tiles: Mapping[str, Tiles]
    extents: tuple[int, int, int]


Multiply: TypeAlias = Callable[[Product], None]
"""Function that lowers a GEMM with the atoms of a family, in the family's module ``tile``."""


Place: TypeAlias = Callable[[InsertionPoint, MemRefType], SSAValue]
"""Function that returns a fragment in tensor memory, in the module of the family of its atom."""


def multiply_by(make: type[Operation], product: Product) -> None:
    """Lower a GEMM to one op ``make`` per instruction, with D, A, B, C, E if sparse, and SFA and SFB if scaled."""
    site, _, c_tensor, atom, tiles, (m, n, k) = product
    c = tiles.get("C", tiles["D"])
    zero = zeros(site, atom) if c_tensor is None else None
    for step in range(k):
        for i, j in order(m, n, serpentine=True):
            source = (zero or c.at(i, j)) if step == 0 else tiles["D"].at(i, j)
            operands = [tiles["D"].at(i, j), tiles["A"].at(i, step), tiles["B"].at(j, step), source]
            if "E" in tiles:
                operands.append(tiles["E"].at(i, step))
            if "SFA" in tiles:
                operands += [tiles["SFA"].at(i, step), tiles["SFB"].at(j, step)]
            site.add(make_op(make, operands, properties={"atom": atom}))


def multiply(product: Product) -> None:
    """Lower a ``cute.gemm`` to one op per instruction, as selected by the family of the atom."""
    multiply_by(instruction_of_atom(product.atom.name), product)


def _gemm(op: Operation) -> None:
    assert isinstance(op, gemm.GemmOp)
    site = InsertionPoint(op)
    atom, modes = gemm_operands(op.operand_types)
    tiles = {o: Tiles(site, t, modes[o]) for o, t in zip("DAB", (op.d, op.a, op.b))}
    if op.c is not None and op.c is not op.d:
        tiles["C"] = Tiles(site, op.c, modes["C"])
    extents = (extent(modes["D"][1]), extent(modes["D"][2]), extent(modes["A"][2]))
    multiply_by_family(Product(site, op, op.c, atom, tiles, extents))


def multiply_by_family(product: Product) -> None:
    """Lower a GEMM by the rules of its atom's family."""
    cast("Multiply", import_module(module_of_atom(product.atom.name)).multiply)(product)


def zeros(site: InsertionPoint, atom: MmaAtomType) -> SSAValue:
    """Return a fragment of zeros for the C of one atom."""
    element = atom.element("C")
    n = mma.atom_values(atom, "C")
    fragment = site.emit(memory.AllocaOp(memory.rmem_type(element, Layout(n, 1 if n > 1 else 0))))
    zero = zero_of(site, element)
    for i in range(n):
        site.add(memory.StoreOp(fragment, site.coordinate(i), zero))
    return fragment


def zero_of(site: InsertionPoint, element: Attribute) -> SSAValue:
    """Return the constant 0 of an element type."""
    if integer_width(element) is not None:
        return site.constant(0, element)
    return site.once(("zero", element), lambda: arith.ConstantOp(FloatAttr(0.0, cast("AnyFloat", element)), element))


TO_ARCH: Mapping[str, Callable[[Operation], None]] = {
    "cute.make_tiled_mma": _nothing,
    "cute.make_tiled_copy_A": _nothing,
    "cute.make_tiled_copy_B": _nothing,
    "cute.make_tiled_copy_C": _nothing,
    "cute.tiled.mma.partition_A": partition,
    "cute.tiled.mma.partition_B": partition,
    "cute.tiled.mma.partition_C": partition,
    "cute.tiled.mma.partition_shape_A": partition_shape,
    "cute.tiled.mma.partition_shape_B": partition_shape,
    "cute.tiled.mma.partition_shape_C": partition_shape,
    "cute.tiled.mma.make_fragment_A": make_fragment,
    "cute.tiled.mma.make_fragment_B": make_fragment,
    "cute.tiled.mma.make_fragment_C": make_fragment,
    "cute.tiled.mma.thr_layout_vmnk": query,
    "cute.tiled.mma.tile_shape_mnk": query,
    "cute.tiled.mma.layout_A_tv": query,
    "cute.tiled.mma.layout_B_tv": query,
    "cute.tiled.mma.layout_C_tv": query,
    "cute.gemm": _gemm,
}
"""Op name -> function that lowers it in place."""


REGISTERS: Mapping[str, Attribute] = {
    "f16": f16,
    "f32": f32,
    "f64": f64,
    "i32": i32,
    "vector<2xf16>": VectorType(f16, [2]),
    "vector<4xi8>": VectorType(i8, [4]),
    "vector<2xi16>": VectorType(i16, [2]),
}


def row_of(op: Operation) -> tuple[MmaAtomType, MmaAtom]:
    """Return the atom of an instruction and its row in the table."""
    atom = op.properties["atom"]
    assert isinstance(atom, MmaAtomType)
    return atom, atom.row


def read_operand(low: Lowering, tensor: SSAValue, held: Registers) -> list[SSAValue]:
    """Return the values of a tensor, packed in the registers of an operand."""
    t = tensor.type
    assert isinstance(t, MemRefType)
    if t.element == i1:
        return _read_bits(low, tensor, t)
    register = REGISTERS[held.mlir]
    if held.mlir.startswith("vector") and not _in_structs(low, tensor):
        # Cut a wide vector into words directly.
        return [as_type(low.build, word, register) for word in read_packed(low, tensor, None, i32)]
    return read_packed(low, tensor, None, register)


def _in_structs(low: Lowering, tensor: SSAValue) -> bool:
    view = low.views.get(tensor)
    return view is not None and isinstance(low.registers.cells[view.fragment][view.offset], Member)


def _read_bits(low: Lowering, tensor: SSAValue, t: MemRefType) -> list[SSAValue]:
    view = low.views.get(tensor)
    if view is None:
        raise AlgebraError(f"single-bit operands must stay in registers, but this one is in local memory: {t}")
    offsets = cells_of(t)
    cells = low.registers.cells[view.fragment]
    words: list[SSAValue] = []
    for start in range(0, len(offsets), 32):
        own = list(offsets[start : start + 32])
        first = cells[view.offset + own[0]]
        if isinstance(first, Lane) and first.number % 32 == 0:
            n = register_bits(first.vector.type)
            lanes = [Lane(first.vector, first.number + i) for i in range(32)]
            if n % 32 == 0 and [cells[view.offset + o] for o in own] == lanes:
                words.append(_word(low, first.vector, first.number // 32, n // 32))
                continue
        words.append(as_type(low.build, low.registers.read_vector(low.build, view, own), i32))
    return words


def _word(low: Lowering, vector: SSAValue, number: int, count: int) -> SSAValue:
    if count == 1:
        return as_type(low.build, vector, i32)
    return low.build.lane(as_type(low.build, vector, VectorType(i32, [count])), number)


def write_struct(low: Lowering, tensor: SSAValue, held: Registers, struct: SSAValue) -> None:
    """Write the result struct of an instruction to a tensor. Its cells become the struct members."""
    t = tensor.type
    assert isinstance(t, MemRefType)
    view = low.views.get(tensor)
    if view is None:
        register = REGISTERS[held.mlir]
        registers = [low.build.extract(struct, (i,), register) for i in range(held.count)]
        write_packed(low, tensor, registers)
        return
    for i, o in enumerate(cells_of(t)):
        low.registers.write(view, o, Member(struct, i // held.values, i % held.values, held.values))
