"""Atoms, tiled copies and copies of tensors.

A tiled copy maps each thread to the values of a tile that it moves. ``partition_S`` and ``partition_D`` return a
thread's partition of a source or destination tile. ``copy`` moves one partition to another, optionally predicated, with
the widest access that the types of both sides allow.

The tile of a tiled copy or tiled MMA must divide the copied tensors. ``partition_S`` of a tensor (24,128) by a tile
(16,128) gives two tiles. The second ends 8 rows past the end of the tensor, so an unpredicated copy accesses memory out
of bounds. Only static extents are compared. A slice by a dynamic index is assumed to be in bounds.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, NamedTuple, cast

from xdsl.dialects.builtin import i1
from xdsl.ir import Attribute, Data, Operation, SSAValue
from xdsl.irdl import irdl_attr_definition, operand_def, opt_operand_def, result_def, traits_def
from xdsl.parser import AttrParser, Parser
from xdsl.printer import Printer
from xdsl.traits import MemoryReadEffect, MemoryWriteEffect, Pure
from xdsl.utils.exceptions import VerifyException

from cute_dialect.algebra.evaluation import size
from cute_dialect.algebra.leaf import AlgebraError
from cute_dialect.algebra.tiling import logical_divide
from cute_dialect.algebra.trees import depth, is_static, leaves
from cute_dialect.algebra.values import (
    UNDERSCORE,
    AnyLayout,
    ComposedLayout,
    Coord,
    IntTuple,
    Layout,
    Payload,
    layout_modes,
    raw_layout,
)
from cute_dialect.dialect.atom_types import AtomType, CopyAtomType, TiledCopyType, TiledType
from cute_dialect.dialect.base import CuteOp, cute_op, ops_of
from cute_dialect.dialect.memory_types import MemRefType, TensorType, element_bits
from cute_dialect.dialect.tensor_lifting import tensor_with
from cute_dialect.dialect.typed_values import Properties, payload_text, tracked
from cute_dialect.dialect.types import CoordType
from cute_dialect.dialect.views import (
    EffectOp,
    MemoryOp,
    ResultFormOp,
    expect,
    expect_operands,
    parse_operand_types,
    print_operand_types,
)

# --------------------------------------------------------------------------------------------------------------- bounds


PARTIAL = "partial"
"""Attribute of a copy whose threads may access elements past the end of the tensor."""
_PARTITIONS = ("cute.tiled.copy.partition_", "cute.tiled.mma.partition_")


class TilePassed(AlgebraError):
    """Threads of an unpredicated copy access a tensor past its end; ``fact`` is the message without the advice."""

    def __init__(self, fact: str):
        super().__init__(f"{fact}; pass 'pred =', or set the attribute {{{PARTIAL}}} if this is intended")
        self.fact = fact


def _passed(tile: Sequence[int | Layout], tensor: MemRefType, sliced: Sequence[object]) -> list[int]:
    """Return the modes of a tensor that some thread accesses past the end.

    Args:
        tile: the tile's mode for each mode of the tensor.
        sliced: for each mode of the partition the index that a slice selects, an underscore for all indices, or
            None for an unknown index. Empty without slices.
    """
    layout = tensor.layout.outer if isinstance(tensor.layout, ComposedLayout) else tensor.layout
    modes = layout_modes(layout) if isinstance(layout.shape, tuple) else [layout]
    found: list[int] = []
    for i, (mode, part) in enumerate(zip(modes, tile)):
        extent, wide = size(mode), size(raw_layout(part, 1) if isinstance(part, int) else part)
        if not isinstance(extent, int) or all(stride == 0 for stride in leaves(mode.stride)):
            continue  # All elements of a mode of stride 0 are the same.
        covered = size(logical_divide(raw_layout(extent, 1), part))
        if covered == extent:
            continue
        assert isinstance(covered, int) and isinstance(wide, int)
        selected = sliced[i + 1] if i + 1 < len(sliced) else UNDERSCORE
        if selected is UNDERSCORE or covered == wide or selected == covered // wide - 1:
            found.append(i)
    return found


def check_whole(
    tiled: Attribute, tensor: Attribute, what: str, sliced: Sequence[object] = (), operand: str = "S"
) -> None:
    """Raise TilePassed if static extents show that an unpredicated copy accesses a tensor past its end.

    Args:
        tiled: the type of the tiled copy or tiled MMA that partitions the tensor.
        what: the tensor's role in the message.
        sliced: the selected index of each mode of the partition; see :func:`_passed`.
        operand: the operand of a tiled MMA.
    """
    if not isinstance(tiled, TiledType) or not isinstance(tensor, MemRefType) or tensor.space.per_thread:
        return
    if isinstance(tiled.atom, CopyAtomType) and tiled.atom.ONE_THREAD:
        return
    tile = tiled.tile_of(operand)
    passed = _passed(tile, tensor, sliced)
    if passed:
        layout = tensor.layout.outer if isinstance(tensor.layout, ComposedLayout) else tensor.layout
        extents = tuple([part if isinstance(part, int) else cast("int", size(part)) for part in tile])
        kind = "tiled copy" if isinstance(tiled, TiledCopyType) else "tiled MMA"
        raise TilePassed(
            f"the tile {payload_text(extents)} of the {kind} does not divide the {what} {payload_text(layout.shape)}, "
            f"so threads access elements past the end of mode {passed[0]}"
        )


def check_copied(op: Operation, sides: Sequence[tuple[SSAValue, str]]) -> None:
    """Raise TilePassed if a side of an unpredicated copy is a partition that fails :func:`check_whole`."""
    if PARTIAL in op.attributes:
        return
    for side, what in sides:
        sliced: list[object] = []
        value: SSAValue = side
        while isinstance(value.owner, Operation):
            if value.owner.name == "cute.slice":
                value, coord = value.owner.operands
                sliced = _before_slice(coord.type, sliced)
            elif value.owner.name == "cute.group_modes" and not sliced:
                value = value.owner.operands[0]
            else:
                break
        owner = value.owner
        if isinstance(owner, Operation) and owner.name.startswith(_PARTITIONS) and len(owner.operands) == 3:
            tiled, tensor, _ = owner.operands
            check_whole(tiled.type, tensor.type, what, sliced, owner.name.rpartition("_")[2])


def _before_slice(coord: Attribute, sliced: Sequence[object]) -> list[object]:
    """Combine a slice by ``coord`` with a later slice ``sliced`` of its result.

    For example, slicing by ``(_,1,_)`` and then by ``(_,2)`` selects ``(_,1,2)``.
    """
    assert isinstance(coord, CoordType)
    data = coord.data if isinstance(coord.data, tuple) else (coord.data,)
    rest = iter(sliced)
    return [next(rest, UNDERSCORE) if part is UNDERSCORE else part if isinstance(part, int) else None for part in data]


# ----------------------------------------------------------------------------------------------------- atoms and copies


@cute_op
class AtomOp(ResultFormOp):
    """Creates an atom. The result type describes it completely.

    Syntax: ``%a = cute.atom() : ATOM``

    Example:
        %a = cute.atom() : !cute_nvgpu.atom.universal_copy<f32>
    """

    name = "cute.atom"
    result = result_def()
    traits = traits_def(Pure())

    def __init__(self, result_type: Attribute):
        super().__init__(result_types=[result_type])

    def verify_(self) -> None:
        if not isinstance(self.result.type, AtomType):
            raise VerifyException(f"'{self.name}' op expected an atom type, got {self.result.type}")


@cute_op
class MakeTiledCopyOp(ResultFormOp):
    """Creates a tiled copy of an atom. The result type contains the thread-value layout and the tile.

    Syntax: ``%tc = cute.make_tiled_copy(%atom) : !cute.tiled_copy<…>``

    Example:
        %a = cute.atom() : !cute_nvgpu.atom.universal_copy<f32>
        %tc = cute.make_tiled_copy(%a) : !cute.tiled_copy<!cute_nvgpu.atom.universal_copy<f32>, layout_copy_tv = <"((32,4),(4,4)):((64,4),(16,1))">, tiler_mn = <"[16:1;128:1]">>
    """  # noqa: E501

    name = "cute.make_tiled_copy"
    atom = operand_def()
    result = result_def(TiledCopyType)
    traits = traits_def(Pure())

    def __init__(self, atom: SSAValue, result_type: TiledCopyType):
        super().__init__(operands=[atom], result_types=[result_type])

    def verify_(self) -> None:
        t = self.result.type
        assert isinstance(t, TiledCopyType)
        if self.atom.type != t.data.atom:
            raise VerifyException(
                f"'{self.name}' op expected an atom of type {t.data.atom} as in the result type, got {self.atom.type}"
            )


class _PartitionOp(MemoryOp):
    SIDE: ClassVar[str]

    def __init__(self, tiled_copy: SSAValue, tensor: SSAValue, tid: SSAValue):
        super().__init__(
            operands=[tiled_copy, tensor, tid],
            result_types=self.infer_types([tiled_copy.type, tensor.type, tid.type], {}),
        )

    @classmethod
    def infer_types(cls, operand_types: Sequence[Attribute], properties: Properties) -> list[Attribute]:
        expect_operands(operand_types, 3)
        tc, tensor, coord = operand_types
        expect(tc, TiledCopyType, 0, "a !cute.tiled_copy")
        expect(tensor, TensorType, 1, "a tensor")
        expect(coord, CoordType, 2, "a !cute.coord")
        assert isinstance(tc, TiledCopyType) and isinstance(tensor, TensorType) and isinstance(coord, CoordType)
        if depth(coord.data) != 0 or coord.data is UNDERSCORE:
            raise AlgebraError(f"operand #2 must be a thread index, got {payload_text(coord.data)}")
        layout, offset = partition(tc, tensor, tensor.layout, coord.data, cls.SIDE)
        return [tensor_with(tensor, layout, offset)]


def partition_side(op: Operation) -> str:
    """Return the side, "src" or "dst", of a ``partition_S`` or ``partition_D``."""
    assert isinstance(op, _PartitionOp)
    return op.SIDE


def partition(
    tc: TiledCopyType, tensor: TensorType, layout: Payload, tid: Payload, side: str
) -> tuple[AnyLayout, IntTuple]:
    """Return one thread's partition of a tile: its layout ``((v,rest_v),RestM,…)`` and the offset of the thread.

    The value mode comes first, followed by one mode for each mode of the tensor. Modes of static extent 1 have stride
    0. Raises AlgebraError.

    Args:
        tc: the tiled copy.
        tensor: the type of the tensor.
        layout: the tensor's layout, possibly with leaves bound to SSA values.
        tid: the thread index.
        side: "src" or "dst"; the assignment of values to threads may differ between the two.
    """
    from cute_dialect.algebra.tiled_copy import composed_thread_slice, thread_slice, tile_to_thread  # late: start-up

    atom = tc.data.atom
    assert isinstance(atom, CopyAtomType) and isinstance(layout, Layout | ComposedLayout)
    outer = tracked(layout.outer if isinstance(layout, ComposedLayout) else layout)
    counts = (atom.threads(), atom.values())
    thr_val = tile_to_thread(outer, tc.data.tiler, tc.data.layout_tv, counts, atom.reference_map(side))
    if isinstance(layout, ComposedLayout):
        return composed_thread_slice(layout, thr_val, cast("Coord", tracked(tid)))
    return thread_slice(thr_val, cast("Coord", tracked(tid)))


@cute_op
class PartitionSOp(_PartitionOp):
    """Returns a thread's partition of the source tensor of a tiled copy.

    Syntax: ``%t = cute.tiled.copy.partition_S(%tc, %tensor, %tid) : (TC, T, !cute.coord<"?">) -> T'``

    Inference:
        ``((v,rest_v), RestM, RestN, …)``, where ``v`` are the values of one atom and ``rest_v`` the atoms of a thread
        in one tile.

    Example:
        %t = cute.tiled.copy.partition_S(%tc, %b, %k) : (!cute.tiled_copy<!cute_nvgpu.atom.universal_copy<f32>, layout_copy_tv = <"((32,4),(4,4)):((64,4),(16,1))">, tiler_mn = <"[16:1;128:1]">>, !cute.memref<f32, gmem, "(16,128):(?,1)">, !cute.coord<"?">) -> !cute.memref<f32, gmem, "((1,(4,4)),1,1):((0,(1,?)),0,0)">
    """  # noqa: E501

    name = "cute.tiled.copy.partition_S"
    SIDE: ClassVar[str] = "src"
    tiled_copy = operand_def(TiledCopyType)
    tensor = operand_def()
    tid = operand_def(CoordType)
    result = result_def()
    traits = traits_def(Pure())


@cute_op
class PartitionDOp(_PartitionOp):
    """Returns a thread's partition of the destination tensor of a tiled copy; see ``partition_S``."""

    name = "cute.tiled.copy.partition_D"
    SIDE: ClassVar[str] = "dst"
    tiled_copy = operand_def(TiledCopyType)
    tensor = operand_def()
    tid = operand_def(CoordType)
    result = result_def()
    traits = traits_def(Pure())


def check_plain_copy(atom: CopyAtomType, operand_types: Sequence[Attribute]) -> None:
    """Raise AlgebraError unless loads and stores can copy tensors of the types ``(_, source, destination[, pred])``."""
    source, destination = operand_types[1:3]
    expect(source, MemRefType, 1, "a !cute.memref")
    expect(destination, MemRefType, 2, "a !cute.memref")
    assert isinstance(source, MemRefType) and isinstance(destination, MemRefType)
    element = atom.element
    shapes = [_shape(source), _shape(destination)]
    for i, (t, shape) in enumerate(zip((source, destination), shapes), 1):
        if not is_static(shape):
            raise AlgebraError(f"operand #{i} must have a static shape, got {payload_text(shape)}")
        if element_bits(t.element) != element_bits(element):
            raise AlgebraError(f"operand #{i} must have elements as wide as the atom's {element}, got {t.element}")
    if source.element != destination.element:
        raise AlgebraError(
            f"expected the same element type on both sides, got {source.element} and {destination.element}"
        )
    _congruent_modes(shapes[0], shapes[1])
    if len(operand_types) == 4:
        pred = operand_types[3]
        if not (isinstance(pred, MemRefType) and pred.element == i1 and pred.space.per_thread):
            raise AlgebraError(f"operand #3 must be an rmem tensor of i1, got {pred}")
        _check_predicate(_shape(pred), shapes[1])


@cute_op
class CopyOp(MemoryOp):
    """Copies a tensor to a tensor of equal size, with the widest access that the types of both sides allow.

    Syntax: ``cute.copy(%atom, %src, %dst [, pred = %p]) : (A, S, D [, P]) -> ()``

    Both shapes must be static. ``%p`` is an ``i1`` register tensor with one flag per element (``p[v, i]``), or with one
    flag per iteration if its mode 0 has size 1 or stride 0. Elements whose flag is false are neither read nor written.
    A contiguous, aligned group of elements is moved with one access if all its flags are true.

    The operands depend on the atom:

    * TMA: one side is a tensor of TMA coordinates, the other a tensor in shared memory.
    * im2col TMA: the coordinates are those of the first pixel. Channels advance along dimension 0, and the mode of the
      pixels has stride 0.
    * Bulk: both sides are plain tensors in memory. Each instruction moves one run that is contiguous on both sides.
    * A single instruction (``simt_async_copy``, ``ldsm``, ``stsm``): mode 0 of both sides holds the values of the same
      number of instructions; in memory, those of one instruction are contiguous and aligned. ``simt_async_copy``
      accepts one flag per instruction and zero-fills the destination if the flag is false. ``ldsm`` and ``stsm`` accept
      no flags.

    If the tile of a tiled copy does not divide the tensor, as static extents show, ``%p`` or the attribute ``partial``
    is required. ``partial`` asserts that threads past the end of the tensor access valid memory or are disabled.

    Example:
        cute.copy(%at, %tA, %fA, pred = %fP) : (!cute_nvgpu.atom.universal_copy<f32>, !cute.memref<f32, gmem, "(4,2):(1,?)">, !cute.memref<f32, rmem, "(4,2):(1,4)">, !cute.memref<i1, rmem, "(4,2):(1,4)">) -> ()
    """  # noqa: E501

    name = "cute.copy"
    atom = operand_def()
    source = operand_def()
    destination = operand_def()
    pred = opt_operand_def(MemRefType)
    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())
    LOOKS_BACK = True

    def __init__(self, atom: SSAValue, source: SSAValue, destination: SSAValue, pred: SSAValue | None = None):
        super().__init__(operands=[atom, source, destination, pred])

    @classmethod
    def infer_types(cls, operand_types: Sequence[Attribute], properties: Properties) -> list[Attribute]:
        expect_operands(operand_types, 3, 4)
        atom = operand_types[0]
        expect(atom, (CopyAtomType, TiledCopyType), 0, "a copy atom or a !cute.tiled_copy")
        atom_type = atom.data.atom if isinstance(atom, TiledCopyType) else atom
        assert isinstance(atom_type, CopyAtomType)
        atom_type.check_copy(operand_types)
        return []

    def check_definitions(self) -> None:
        if self.pred is None:
            check_copied(self, ((self.source, "source"), (self.destination, "destination")))

    @classmethod
    def parse(cls, parser: Parser) -> Operation:
        return parse_copy(cls, parser, 3)

    def print(self, printer: Printer) -> None:
        print_copy(self, printer, 3)


def parse_copy(cls: type[CuteOp], parser: Parser, n: int) -> Operation:
    """Parse ``op(%a, … [, pred = %p]) : (T, …) -> ()`` with ``n`` operands before the predicate."""
    parser.parse_punctuation("(")
    operands = [parser.parse_unresolved_operand()]
    for _ in range(n - 1):
        parser.parse_punctuation(",")
        operands.append(parser.parse_unresolved_operand())
    if parser.parse_optional_punctuation(",") is not None:
        parser.parse_keyword("pred")
        parser.parse_punctuation("=")
        operands.append(parser.parse_unresolved_operand())
    parser.parse_punctuation(")")
    return parse_operand_types(cls, parser, operands)


def print_copy(op: Operation, printer: Printer, n: int) -> None:
    """Print a copy in the format that :func:`parse_copy` reads."""
    with printer.in_parens():
        printer.print_list(op.operands[:n], printer.print_ssa_value)
        if len(op.operands) > n:
            printer.print_string(", pred = ")
            printer.print_ssa_value(op.operands[n])
    print_operand_types(op, printer)


def _shape(tensor: MemRefType) -> IntTuple:
    layout = tensor.layout
    return layout.outer.shape if isinstance(layout, ComposedLayout) else layout.shape


def _top(shape: IntTuple) -> tuple[IntTuple, ...]:
    return shape if isinstance(shape, tuple) else (shape,)


def _congruent_modes(source: IntTuple, destination: IntTuple) -> None:
    a, b = _top(source), _top(destination)
    if len(a) != len(b):
        raise AlgebraError(
            f"expected tensors of equal rank, got {payload_text(source)} and {payload_text(destination)}"
        )
    for i, (x, y) in enumerate(zip(a, b)):
        if size(x) != size(y):
            raise AlgebraError(
                f"expected modes of equal size, got {size(x)} and {size(y)} in mode {i} "
                f"of {payload_text(source)} and {payload_text(destination)}"
            )


def _check_predicate(pred: IntTuple, destination: IntTuple) -> None:
    p, d = _top(pred), _top(destination)
    fits = len(p) == len(d) and size(p[0]) in (1, size(d[0])) and all(size(x) == size(y) for x, y in zip(p[1:], d[1:]))
    if not fits:
        raise AlgebraError(
            f"expected a predicate of shape {payload_text(destination)}, or with size 1 in mode 0, "
            f"got {payload_text(pred)}"
        )


class _FillOp(EffectOp):
    """Base of the ops that write all elements of a tensor, which have one value or none."""

    traits = traits_def(MemoryWriteEffect())

    @classmethod
    def infer_types(cls, operand_types: Sequence[Attribute], properties: Properties) -> list[Attribute]:
        expect_operands(operand_types, cls.MIN_OPERANDS)
        t, *value = operand_types
        expect(t, MemRefType, 0, "a !cute.memref")
        assert isinstance(t, MemRefType)
        if not is_static(_shape(t)):
            raise AlgebraError(f"operand #0 must have a static shape, got {payload_text(_shape(t))}")
        if value and value[0] != t.element:
            raise AlgebraError(f"operand #1 must be {t.element}, got {value[0]}")
        return []


@cute_op
class FillOp(_FillOp):
    """Sets each element of a tensor of static shape to a value.

    Syntax: ``cute.fill(%t, %x) : (T, E) -> ()``

    Example:
        cute.fill(%f, %x) : (!cute.memref<f32, rmem, "4:1">, f32) -> ()
    """

    name = "cute.fill"
    tensor = operand_def(MemRefType)
    value = operand_def()


@cute_op
class ClearOp(_FillOp):
    """Sets each element of a tensor of static shape to zero.

    Syntax: ``cute.clear(%t) : (T) -> ()``

    Example:
        cute.clear(%f) : (!cute.memref<f32, rmem, "4:1">) -> ()
    """

    name = "cute.clear"
    tensor = operand_def(MemRefType)


OPS = ops_of(__name__)


# ---------------------------------------------------------------------------------------------- the universal copy atom


class UniversalCopy(NamedTuple):
    """``bits``: width of one access, 0 for the width of the element."""

    element: Attribute
    bits: int = 0


@irdl_attr_definition
class UniversalCopyType(Data[UniversalCopy], CopyAtomType):
    """``!cute_nvgpu.atom.universal_copy<T [, N b]>``: plain loads and stores of ``N`` bits by one thread.

    Without a width, the atom moves one element at a time.  ``cute.copy`` may widen the accesses as far as divisibility,
    alignment and layouts of both sides allow, up to 128 bits.  256 bits are one access of global memory from sm_100 on,
    and otherwise two accesses.
    """

    name = "cute_nvgpu.atom.universal_copy"

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> UniversalCopy:
        with parser.in_angle_brackets():
            at = parser.pos
            element = parser.parse_type()
            try:
                natural = element_bits(element)
            except AlgebraError as e:
                parser.raise_error(str(e), at, parser.pos)
            bits = 0
            if parser.parse_optional_punctuation(",") is not None:
                at = parser.pos
                bits = parser.parse_integer(allow_boolean=False, allow_negative=False)
                parser.parse_keyword("b")
                if bits not in (8, 16, 32, 64, 128, 256) or bits % natural:
                    parser.raise_error(
                        f"expected 8, 16, 32, 64, 128 or 256 bits and a multiple of the element's {natural}, "
                        f"got {bits}",
                        at,
                        parser.pos,
                    )
        return UniversalCopy(element, 0 if bits == natural else bits)

    def print_parameter(self, printer: Printer) -> None:
        printer.print_string("<")
        printer.print_attribute(self.data.element)
        printer.print_string(f", {self.data.bits} b>" if self.data.bits else ">")

    def check_copy(self, operand_types: Sequence[Attribute]) -> None:
        check_plain_copy(self, operand_types)

    def threads(self) -> int:
        return 1

    def values(self) -> int:
        return (self.data.bits or element_bits(self.data.element)) // element_bits(self.data.element)

    @property
    def element(self) -> Attribute:
        return self.data.element
