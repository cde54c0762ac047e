"""Tiled copies built from layouts, copies of whole tiles, and fragments in the value order of a tiled copy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from xdsl.dialects.builtin import IntegerAttr
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.irdl import operand_def, opt_operand_def, prop_def, result_def, traits_def
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import MemoryReadEffect, MemoryWriteEffect, Pure

from cute_dialect.algebra.evaluation import size
from cute_dialect.algebra.leaf import AlgebraError, Leaf
from cute_dialect.algebra.tiled_copy import make_layout_tv, retile
from cute_dialect.algebra.trees import depth, is_static, shape_to_tile
from cute_dialect.algebra.values import UNDERSCORE, ComposedLayout, IntTuple, Layout, Payload, Tile
from cute_dialect.dialect.asm import print_operand_list
from cute_dialect.dialect.atom_types import CopyAtomType, TiledCopy, TiledCopyType, verify_tiled_copy
from cute_dialect.dialect.base import cute_op, ops_of
from cute_dialect.dialect.memory_types import MemRefType, TensorType
from cute_dialect.dialect.tiled import PARTIAL, CopyOp, PartitionDOp, PartitionSOp, check_whole, parse_copy, print_copy
from cute_dialect.dialect.typed_values import Properties, payload_text
from cute_dialect.dialect.types import CoordType, LayoutType
from cute_dialect.dialect.views import MemoryOp, expect, expect_operands, parse_no_result


def tile_extents(tiler: Tile) -> IntTuple:
    """Return the extents of a tile.

    >>> from cute_dialect.algebra import text
    >>> tile_extents(text.parse_tile("[16:1;128:1]"))
    (16, 128)
    """
    parts = tiler if isinstance(tiler, tuple) else (tiler,)
    extents = tuple([p if isinstance(p, int) else cast("int", size(cast("Layout", p))) for p in parts])
    return extents if isinstance(tiler, tuple) else extents[0]


def retiled(tc: TiledCopyType, layout: Payload) -> Layout:
    """Return a fragment's layout in a tiled copy's value order, ``((v,rest_v), RestM, …)``. Raises AlgebraError."""
    if isinstance(layout, ComposedLayout) or not is_static(layout):
        raise AlgebraError(f"expected a fragment with a static layout that is not composed, got {payload_text(layout)}")
    assert isinstance(layout, Layout)
    atom = tc.data.atom
    assert isinstance(atom, CopyAtomType)
    extents = tile_extents(tc.data.tiler)
    rank = len(layout.shape) if isinstance(layout.shape, tuple) else 1
    needed = 1 + (len(extents) if isinstance(extents, tuple) else 1)
    if rank < needed:
        raise AlgebraError(
            f"expected a fragment of rank {needed} or more (a value mode, then one mode per mode of the tile), "
            f"got {payload_text(layout)}"
        )
    try:
        return retile(layout, extents, tc.data.layout_tv, atom.values())
    except AlgebraError as e:
        raise AlgebraError(f"the fragment does not consist of whole tiles of the copy: {e}") from None


# ------------------------------------------------------------------------------------------------- making tiled copies


def made_copy(atom: Attribute, layout_tv: Layout, tiler: Tile | IntTuple) -> TiledCopyType:
    """Build the tiled copy with a thread-value layout over a tile of extents and layouts.

    Raises AlgebraError if the two do not fit.
    """
    data = TiledCopy(atom, layout_tv, _as_tile(tiler))
    verify_tiled_copy(data)
    return TiledCopyType(data)


def _as_tile(tiler: Tile | IntTuple) -> Tile:
    if isinstance(tiler, tuple):
        return tuple([_as_tile(part) for part in tiler])
    return tiler if isinstance(tiler, Layout) else shape_to_tile(cast("IntTuple", tiler))


@cute_op
class MakeTiledCopyTvOp(MemoryOp):
    """Builds a tiled copy from a layout of threads and a layout of the values of each thread.

    Syntax: ``%tc = cute.make_tiled_copy_tv(%atom, %thr, %val) : (ATOM, LT, LV) -> TC``

    ``%thr`` maps a coordinate in the tile of threads to a thread index. ``%val`` maps a coordinate in the tile of a
    thread to a value index. Both must be static.

    Inference:
        Let ``mn = raked_product(thr, val)``. The thread-value layout is the right inverse of ``mn`` with the shape
        (threads, values). The tile is the shape of ``mn``, mode by mode.

    Example:
        %tc = cute.make_tiled_copy_tv(%a, %t, %v) : (!cute_nvgpu.atom.universal_copy<f32>, !cute.layout<"(4,32):(32,1)">, !cute.layout<"(4,4):(4,1)">) -> !cute.tiled_copy<!cute_nvgpu.atom.universal_copy<f32>, layout_copy_tv = <"((32,4),(4,4)):((64,4),(16,1))">, tiler_mn = <"[16:1;128:1]">>
    """  # noqa: E501

    name = "cute.make_tiled_copy_tv"
    atom = operand_def()
    thr = operand_def(LayoutType)
    val = operand_def(LayoutType)
    result = result_def(TiledCopyType)
    traits = traits_def(Pure())

    def __init__(self, atom: SSAValue, thr: SSAValue, val: SSAValue):
        self.build_inferred([atom, thr, val])

    @classmethod
    def infer_types(cls, operand_types: Sequence[Attribute], properties: Properties) -> list[Attribute]:
        expect_operands(operand_types, 3)
        expect(operand_types[0], CopyAtomType, 0, "a copy atom")
        layouts: list[Layout] = []
        for i, t in enumerate(operand_types[1:], 1):
            expect(t, LayoutType, i, "a layout")
            assert isinstance(t, LayoutType) and isinstance(t.data, Layout)
            if not is_static(t.data):
                raise AlgebraError(f"operand #{i} must be a static layout, got {payload_text(t.data)}")
            layouts.append(t.data)
        extents, layout_tv = make_layout_tv(layouts[0], layouts[1])
        return [made_copy(operand_types[0], layout_tv, extents)]


# ------------------------------------------------------------------------------------------- fragments, whole tiles


@cute_op
class RetileOp(MemoryOp):
    """Rearranges a register fragment of another partition, such as that of a tiled MMA, in the value order of a tiled
    copy.

    Syntax: ``%r = cute.tiled.copy.retile(%tc, %frag) : (TC, T) -> T'``

    Inference:
        ``((v,rest_v), RestM, RestN, …)``, where ``v`` are the values of one atom in the order in which the atom moves
        them.

    Example:
        %r = cute.tiled.copy.retile(%tc, %f) : (!cute.tiled_copy<!cute_nvgpu.atom.ldsm<val_type = f16, num_matrices = 4, n>, layout_copy_tv = <"((4,8),(2,2,2)):((32,1),(16,8,128))">, tiler_mn = <"[16:1;16:1]">>, !cute.memref<f16, rmem, "((2,2,2),2,1):((1,2,4),8,0)">) -> !cute.memref<f16, rmem, "((8,1),2,1):((1,0),8,0)">
    """  # noqa: E501

    name = "cute.tiled.copy.retile"
    tiled_copy = operand_def(TiledCopyType)
    fragment = operand_def(MemRefType)
    result = result_def()
    traits = traits_def(Pure())

    def __init__(self, tiled_copy: SSAValue, fragment: SSAValue):
        super().__init__(
            operands=[tiled_copy, fragment],
            result_types=self.infer_types([tiled_copy.type, fragment.type], {}),
        )

    @classmethod
    def infer_types(cls, operand_types: Sequence[Attribute], properties: Properties) -> list[Attribute]:
        expect_operands(operand_types, 2)
        tc, fragment = operand_types
        expect(tc, TiledCopyType, 0, "a !cute.tiled_copy")
        expect(fragment, MemRefType, 1, "a !cute.memref")
        assert isinstance(tc, TiledCopyType) and isinstance(fragment, MemRefType)
        if not fragment.space.per_thread:
            raise AlgebraError(f"operand #1 must be a fragment in registers, got {fragment}")
        return [fragment.with_layout(retiled(tc, fragment.layout))]


@cute_op
class TiledCopyOp(MemoryOp):
    """Copies a tile with all threads of a tiled copy. Each thread copies its partition of the source to that of the
    destination.

    Syntax: ``cute.tiled_copy(%tc, %src, %dst, %tid [, pred = %p]) : (TC, S, D, !cute.coord<"?"> [, P]) -> ()``

    The op is equivalent to ``partition_S``, ``partition_D`` and ``cute.copy``. A side in registers already belongs to
    the thread and is not partitioned. ``%p`` must have the shape that ``cute.copy`` requires. If the tile does not
    divide a side, ``%p`` or the attribute ``partial`` is required. With an atom that a single thread issues (TMA,
    bulk), each thread of the tiled copy issues its own copy. Fields set with ``cute.atom.set_value`` on the atom or on
    the tiled copy apply.

    Example:
        cute.tiled_copy(%tc, %g, %s, %k) : (!cute.tiled_copy<!cute_nvgpu.atom.universal_copy<f32>, layout_copy_tv = <"((32,4),(4,4)):((64,4),(16,1))">, tiler_mn = <"[16:1;128:1]">>, !cute.memref<f32, gmem, "(16,128):(?,1)">, !cute.memref<f32, smem, "(16,128):(128,1)">, !cute.coord<"?">) -> ()
    """  # noqa: E501

    name = "cute.tiled_copy"
    tiled_copy = operand_def(TiledCopyType)
    source = operand_def()
    destination = operand_def()
    tid = operand_def(CoordType)
    pred = opt_operand_def(MemRefType)
    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())
    LOOKS_BACK = True

    @classmethod
    def infer_types(cls, operand_types: Sequence[Attribute], properties: Properties) -> list[Attribute]:
        expect_operands(operand_types, 4, 5)
        tc, source, destination, tid = operand_types[:4]
        expect(tc, TiledCopyType, 0, "a !cute.tiled_copy")
        assert isinstance(tc, TiledCopyType)
        assert isinstance(tc.data.atom, CopyAtomType)
        # A TMA copy has coordinates on one side.
        sides, what = (MemRefType, "a !cute.memref")
        if tc.data.atom.TENSOR_MAP:
            sides, what = (TensorType, "a tensor")
        parts: list[Attribute] = []
        for i, (t, op) in enumerate(((source, PartitionSOp), (destination, PartitionDOp)), 1):
            expect(t, sides, i, what)
            held = isinstance(t, MemRefType) and t.space.per_thread
            parts.append(t if held else op.infer_types([tc, t, tid], {})[0])
        CopyOp.infer_types([tc, *parts, *operand_types[4:]], {})
        return []

    def check_definitions(self) -> None:
        if self.pred is None and PARTIAL not in self.attributes:
            for side, what in ((self.source, "source"), (self.destination, "destination")):
                check_whole(self.tiled_copy.type, side.type, what)

    @classmethod
    def parse(cls, parser: Parser) -> Operation:
        return parse_copy(cls, parser, 4)

    def print(self, printer: Printer) -> None:
        print_copy(self, printer, 4)


@cute_op
class CooperativeCopyOp(MemoryOp):
    """Copies a tile between memories with a group of threads, without a tiled copy.

    Syntax: ``cute.cooperative_copy(%src, %dst, %tid) {threads = N : i32} : (S, D, !cute.coord<"?">) -> ()``

    Threads ``0`` to ``N-1`` take one access each in turn; adjacent threads access adjacent addresses. Each access is
    the widest that the types of both sides allow. Both shapes must be static, and are split into common modes. The op
    does not synchronize threads.

    Example:
        cute.cooperative_copy(%g, %s, %k) {threads = 128 : i32} : (!cute.memref<f32, gmem, align<16>, "(16,128):(?{div=4},1)">, !cute.memref<f32, smem, align<16>, "(16,128):(128,1)">, !cute.coord<"?">) -> ()
    """  # noqa: E501

    name = "cute.cooperative_copy"
    source = operand_def(MemRefType)
    destination = operand_def(MemRefType)
    tid = operand_def(CoordType)
    threads = prop_def(IntegerAttr)
    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())

    @classmethod
    def infer_types(cls, operand_types: Sequence[Attribute], properties: Properties) -> list[Attribute]:
        expect_operands(operand_types, 3)
        source, destination, tid = operand_types
        sizes: list[Leaf] = []
        for i, t in enumerate((source, destination)):
            expect(t, MemRefType, i, "a !cute.memref")
            assert isinstance(t, MemRefType)
            if t.space.per_thread:
                raise AlgebraError(f"operand #{i} must be in memory that the threads share, got {t}")
            layout = t.layout.outer if isinstance(t.layout, ComposedLayout) else t.layout
            if not is_static(layout.shape):
                raise AlgebraError(f"operand #{i} must have a static shape, got {payload_text(layout.shape)}")
            sizes.append(size(layout))
        assert isinstance(source, MemRefType) and isinstance(destination, MemRefType)
        if sizes[0] != sizes[1]:
            raise AlgebraError(f"expected tensors of equal size, got {sizes[0]} and {sizes[1]} elements")
        if source.element != destination.element:
            raise AlgebraError(
                f"expected the same element type on both sides, got {source.element} and {destination.element}"
            )
        expect(tid, CoordType, 2, "a !cute.coord")
        assert isinstance(tid, CoordType)
        if depth(tid.data) != 0 or tid.data is UNDERSCORE:
            raise AlgebraError(f"operand #2 must be a thread index, got {payload_text(tid.data)}")
        threads = properties.get("threads")
        if isinstance(threads, IntegerAttr) and threads.value.data < 1:
            raise AlgebraError(f"expected at least one thread, got {threads.value.data}")
        return []

    @classmethod
    def parse(cls, parser: Parser) -> Operation:
        op = parse_no_result(cls, parser)
        if "threads" in op.attributes:
            op.properties["threads"] = op.attributes.pop("threads")
        return op

    def print(self, printer: Printer) -> None:
        print_operand_list(printer, self.operands)
        printer.print_op_attributes({**self.properties, **self.attributes})
        printer.print_string(" : ")
        with printer.in_parens():
            printer.print_list(self.operand_types, printer.print_attribute)
        printer.print_string(" -> ()")


OPS = ops_of(__name__)
