"""Tensor memory: allocation, and its loads and stores.

* ``!cute_nvgpu.atom.tmem_load<f32, 32x32b, x32>``: ``tcgen05.ld``, tensor memory to registers of a warp.
* ``!cute_nvgpu.atom.tmem_store<f32, 16x256b, x4>``: ``tcgen05.st``, registers to tensor memory.

One warp allocates columns, and the address is written to shared memory. Other threads read it after a barrier::

    cute_nvgpu.arch.tmem_alloc(%slot) {columns = 256 : i32} : (!cute.ptr<i32, smem>) -> ()
    cute_nvgpu.arch.barrier() : () -> ()
    %p = cute_nvgpu.arch.tmem_pointer(%slot) : (!cute.ptr<i32, smem>) -> !cute.ptr<f32, tmem, align<128>>
    …
    cute_nvgpu.arch.tmem_dealloc(%p) {columns = 256 : i32} : (!cute.ptr<f32, tmem, align<128>>) -> ()

Each warp of a warpgroup accesses the 32 lanes from ``32 * (warp % 4)`` on. The layouts are those of
:mod:`cute_dialect.arch.tmem`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar, NamedTuple

from xdsl.dialects.builtin import Float32Type
from xdsl.ir import Attribute, Data, Operation, SSAValue
from xdsl.irdl import irdl_attr_definition, operand_def, prop_def, result_def, traits_def
from xdsl.parser import AttrParser
from xdsl.printer import Printer
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException

from cute_dialect.algebra.evaluation import size
from cute_dialect.algebra.layout import coalesce, make_layout
from cute_dialect.algebra.leaf import AlgebraError, divisibility
from cute_dialect.algebra.tiled_copy import make_cotiled_layout
from cute_dialect.algebra.trees import is_static, leaves
from cute_dialect.algebra.values import Layout, layout_modes, raw_layout
from cute_dialect.arch.errors import AtomError
from cute_dialect.arch.targets import TCGEN05
from cute_dialect.arch.tmem import ALLOCATIONS, SHAPES, load_reduction, strides, tmem_atom, window
from cute_dialect.cute_nvgpu.instruction_copy import CopyInstructionOp, InstructionCopyType, Pieces, parse_element
from cute_dialect.cute_nvgpu.sync import Number, Row, Words, op_class
from cute_dialect.dialect.atom_types import TiledCopy, TiledCopyType, verify_tiled_copy
from cute_dialect.dialect.base import cute_op, ops_of
from cute_dialect.dialect.memory_types import MemRefType, PtrType, element_bits, ptr
from cute_dialect.dialect.typed_values import Properties, payload_text
from cute_dialect.dialect.views import MemoryOp, expect, expect_operands
from cute_dialect.spaces import AddressSpace

if TYPE_CHECKING:
    from cute_dialect.arch.atom import CopyAtom


def _is_allocation(n: int) -> bool:
    return n in ALLOCATIONS


def _is_group(n: int) -> bool:
    return n in (1, 2)


CTA_GROUP = Number("cta_group", "1, or 2 for a pair of blocks", _is_group, 1)
"""Property of the ops that a pair of blocks executes together."""

_COLUMNS = Number("columns", "32, 64, 128, 256 or 512", _is_allocation)
_POINTER = PtrType(ptr(Float32Type(), AddressSpace.tmem, 4 * ALLOCATIONS[0]))


def _pointer(types: Sequence[Attribute]) -> list[Attribute]:
    return [_POINTER]


ROWS: tuple[Row, ...] = (
    Row(
        "tmem_alloc",
        "Allocates columns of tensor memory, and writes their address to ``slot``. All threads of one warp execute it. "
        "It waits until the columns are free. Other threads read the slot with ``tmem_pointer`` after a barrier.",
        '"tcgen05.alloc"',
        ("slot:slot",),
        properties=(_COLUMNS, CTA_GROUP),
        arch=TCGEN05,
        example="(%slot) {columns = 256 : i32} : (!cute.ptr<i32, smem>) -> ()",
    ),
    Row(
        "tmem_relinquish",
        "Declares that the block allocates no more tensor memory. All threads of the allocating warp execute it.",
        '"tcgen05.relinquish_alloc_permit"',
        properties=(CTA_GROUP,),
        arch=TCGEN05,
    ),
    Row(
        "tmem_pointer",
        "Returns the address of allocated tensor memory, which ``tmem_alloc`` has written to ``slot``.",
        '"tcgen05.alloc"',
        ("slot:slot",),
        _pointer,
        arch=TCGEN05,
        example="(%slot) : (!cute.ptr<i32, smem>) -> !cute.ptr<f32, tmem, align<128>>",
    ),
    Row(
        "tmem_address",
        "Returns an address of tensor memory as a pointer: the lane in bits 16 to 31, the column in bits 0 to 15.",
        "",
        ("address:i32",),
        _pointer,
        pure=True,
        example="(%address) : (i32) -> !cute.ptr<f32, tmem, align<128>>",
    ),
    Row(
        "tmem_dealloc",
        "Frees columns of tensor memory. All threads of one warp execute it. A kernel must free all columns.",
        '"tcgen05.dealloc"',
        ("ptr:tmem",),
        properties=(_COLUMNS, CTA_GROUP),
        arch=TCGEN05,
        example="(%ptr) {columns = 256 : i32} : (!cute.ptr<f32, tmem, align<128>>) -> ()",
    ),
    Row(
        "tmem_wait",
        "Waits until the earlier ``tmem_load`` or ``tmem_store`` of the thread are complete. All threads of the warp "
        "execute it. Loaded registers hold their values only after the wait.",
        '"tcgen05.wait"',
        properties=(Words("kind", ("load", "store")),),
        arch=TCGEN05,
        example='() {kind = "load"} : () -> ()',
    ),
)
"""The ops without atoms."""


# --------------------------------------------------------------------------------------------------------------- atoms


class TmemCopy(NamedTuple):
    """Parameters of an atom.

    Args:
        element: value type.
        shape: shape of the instruction, such as ``32x32b``.
        repetitions: number of repetitions of the shape along the columns.
        packed: two 16-bit elements of consecutive columns are one register.
        reduction: the reduction of a load over the columns of a thread, such as "max" or "min.abs.NaN"; else "".
    """

    element: Attribute
    shape: str
    repetitions: int
    packed: bool = False
    reduction: str = ""


class TmemAtomType(InstructionCopyType):
    """Base of the copies to and from tensor memory."""

    def window(self) -> Layout:
        """Return the elements of tensor memory that one instruction accesses."""
        raise NotImplementedError(self.name)

    def thread_lanes(self) -> Layout:
        """Return the first element of each thread of the tiled copy, relative to that of thread 0."""
        return raw_layout(1, 0)


class TmemCopyType(Data[TmemCopy], TmemAtomType):
    """Base of ``tmem_load`` and ``tmem_store``."""

    DIRECTION: ClassVar[str]
    PACKED: ClassVar[str]

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> TmemCopy:
        with parser.in_angle_brackets():
            start = parser.pos
            element, bits = parse_element(parser)
            parser.parse_punctuation(",")
            at = parser.pos
            shape = f"{parser.parse_integer(allow_boolean=False, allow_negative=False)}{parser.parse_identifier()}"
            parser.parse_punctuation(",")
            times = parser.parse_identifier(" number of repetitions, such as x32")
            packed, reduction = False, ""
            if parser.parse_optional_punctuation(",") is not None:
                if cls.DIRECTION == "load" and parser.parse_optional_keyword("red"):
                    reduction = _parse_reduction(parser)
                else:
                    parser.parse_keyword(cls.PACKED)
                    packed = True
            if not (times.startswith("x") and times[1:].isdigit()):
                parser.raise_error(f"'{times}' is not a number of repetitions; write one such as x32", at, parser.pos)
            if packed and bits != 16:
                parser.raise_error(f"{cls.PACKED} needs elements of 16 bits, got {element}", start, parser.pos)
            if bits < 16:
                parser.raise_error(f"the element {element} has {bits} bits; use one of 16 or 32", start, parser.pos)
            key = TmemCopy(element, shape, int(times[1:]), packed, reduction)
            try:
                _row(cls.DIRECTION, key)
                if reduction:
                    load_reduction(shape, key.repetitions, reduction, str(element))
            except AtomError as e:
                parser.raise_error(str(e), at, parser.pos)
        return key

    def print_parameter(self, printer: Printer) -> None:
        printer.print_string("<")
        printer.print_attribute(self.data.element)
        packed = f", {self.PACKED}" if self.data.packed else ""
        operation, *modifiers = self.data.reduction.split(".")
        reduced = f", red = {', '.join([operation, *map(str.lower, modifiers)])}" if operation else ""
        printer.print_string(f", {self.data.shape}, x{self.data.repetitions}{packed}{reduced}>")

    @property
    def element(self) -> Attribute:
        return self.data.element

    def check_copy(self, operand_types: Sequence[Attribute]) -> None:
        if self.data.reduction:
            raise AlgebraError(f"a copy has no operand for the reduction of {self}; use cute_nvgpu.arch.tmem_load_red")
        super().check_copy(operand_types)

    def row(self) -> CopyAtom:
        """Return the row of the instruction, for a reduction that of the plain load with the same registers."""
        return _row(self.DIRECTION, self.data)

    def window(self) -> Layout:
        key = self.data
        return coalesce(window(key.shape, key.repetitions, element_bits(key.element), key.packed))

    def thread_lanes(self) -> Layout:
        lane, _ = strides(element_bits(self.element))
        return raw_layout((32, 4), (0, 32 * lane))

    def check_window(self, what: str, t: MemRefType, pieces: Pieces) -> None:
        key, bits = self.data, element_bits(t.element)
        wanted = self.window()
        if coalesce(pieces.piece) != wanted:
            raise AlgebraError(
                f"one {self.DIRECTION} with {self} accesses the elements {payload_text(wanted)} of tensor memory, got "
                f"{payload_text(coalesce(pieces.piece))} in mode 0 of {payload_text(t.layout)}"
            )
        lane, column = strides(bits)
        for i, mode in enumerate(layout_modes(pieces.others)):
            for extent, stride in zip(leaves(mode.shape), leaves(mode.stride)):
                step = divisibility(stride)  # type: ignore[arg-type]
                if extent != 1 and (step % column or (step >= lane and step % (lane * SHAPES[key.shape].lanes))):
                    raise AlgebraError(
                        f"mode {i} of the {what} has stride {payload_text(stride)} in {payload_text(t.layout)}; use "
                        f"multiples of {column} (columns), or of {lane * SHAPES[key.shape].lanes} "
                        f"({SHAPES[key.shape].lanes} lanes)"
                    )


def _parse_reduction(parser: AttrParser) -> str:
    """Parse ``= min|max [, abs] [, nan]`` and return the modifiers of PTX."""
    parser.parse_punctuation("=")
    found = parser.parse_identifier(" reduction, min or max")
    if parser.parse_optional_punctuation(",") is not None:
        if parser.parse_optional_keyword("abs"):
            found += ".abs"
            if parser.parse_optional_punctuation(",") is None:
                return found
        parser.parse_keyword("nan")
        found += ".NaN"
    return found


def _row(direction: str, key: TmemCopy) -> CopyAtom:
    return tmem_atom(direction, key.shape, key.repetitions, key.packed)


@irdl_attr_definition
class TmemLoadType(TmemCopyType):
    """``!cute_nvgpu.atom.tmem_load<T, SHAPE, xN [, pack]>``: ``tcgen05.ld``, executed by a warp. With ``red = min|max
    [, abs] [, nan]`` in place of ``pack`` it is ``tcgen05.ld.red`` (sm_103, sm_110).

    SHAPE is 32x32b, 16x64b, 16x128b, 16x256b or 16x32bx2. ``pack`` loads 16-bit elements, one per column, into the
    halves of registers. ``red`` needs 32x32b or 16x32bx2, at least x2, and f32, i32 or ui32; ``abs`` and ``nan`` are
    for f32.
    """

    name = "cute_nvgpu.atom.tmem_load"
    DIRECTION = "load"
    PACKED = "pack"


@irdl_attr_definition
class TmemStoreType(TmemCopyType):
    """``!cute_nvgpu.atom.tmem_store<T, SHAPE, xN [, unpack]>``: ``tcgen05.st``, the inverse of ``tmem_load``."""

    name = "cute_nvgpu.atom.tmem_store"
    DIRECTION = "store"
    PACKED = "unpack"


ATTRS: list[type[Attribute]] = [TmemLoadType, TmemStoreType]


@cute_op
class TmemLoadOp(CopyInstructionOp):
    """Issues one ``tcgen05.ld`` of a warp. The registers hold the values after ``tmem_wait``.

    Syntax: ``cute_nvgpu.arch.tmem_load(%tmem, %rmem) {atom = ATOM} : (T, R) -> ()``

    ``%tmem`` is the window of 32 or 16 lanes that the warp reads, the columns of a lane first.

    Example:
        cute_nvgpu.arch.tmem_load(%t, %r) {atom = !cute_nvgpu.atom.tmem_load<f32, 32x32b, x8>} : (!cute.memref<f32, tmem, "(8,32):(1,65536)">, !cute.memref<f32, rmem, "8:1">) -> ()
    """  # noqa: E501

    name = "cute_nvgpu.arch.tmem_load"
    atom = prop_def(TmemLoadType)

    def verify_(self) -> None:
        super().verify_()
        if self.atom.data.reduction:
            raise VerifyException(f"'{self.name}' op {self.atom} has a reduction; use cute_nvgpu.arch.tmem_load_red")


@cute_op
class TmemLoadRedOp(CopyInstructionOp):
    """Issues one ``tcgen05.ld.red`` of a warp: a load that also reduces the values of each thread to ``%red``. The
    registers hold the values after ``tmem_wait``.

    Syntax: ``cute_nvgpu.arch.tmem_load_red(%tmem, %rmem, %red) {atom = ATOM} : (T, R, R1) -> ()``

    A NaN is ignored, unless the atom has ``nan``; then it is the result.

    Example:
        cute_nvgpu.arch.tmem_load_red(%t, %r, %m) {atom = !cute_nvgpu.atom.tmem_load<f32, 32x32b, x8, red = max>} : (!cute.memref<f32, tmem, "(8,32):(1,65536)">, !cute.memref<f32, rmem, "8:1">, !cute.memref<f32, rmem, "1:0">) -> ()
    """  # noqa: E501

    name = "cute_nvgpu.arch.tmem_load_red"
    MOST: ClassVar[int] = 3
    source = operand_def(MemRefType)
    destination = operand_def(MemRefType)
    reduced = operand_def(MemRefType)
    atom = prop_def(TmemLoadType)

    def verify_(self) -> None:
        super().verify_()
        atom, reduced = self.atom, self.operand_types[2]
        assert isinstance(atom, TmemLoadType) and isinstance(reduced, MemRefType)
        if not atom.data.reduction:
            raise VerifyException(f"'{self.name}' op {atom} has no reduction; write one such as red = max")
        if reduced.space != AddressSpace.rmem or reduced.element != atom.element or size(reduced.layout) != 1:
            raise VerifyException(
                f"'{self.name}' op operand #2 must be one {atom.element} in registers, got {reduced}; use "
                f'!cute.memref<{atom.element}, rmem, "1:0">'
            )


@cute_op
class TmemStoreOp(CopyInstructionOp):
    """Issues one ``tcgen05.st`` of a warp. It is complete after ``tmem_wait``.

    Syntax: ``cute_nvgpu.arch.tmem_store(%rmem, %tmem) {atom = ATOM} : (R, T) -> ()``

    Example:
        cute_nvgpu.arch.tmem_store(%r, %t) {atom = !cute_nvgpu.atom.tmem_store<f32, 16x64b, x4>} : (!cute.memref<f32, rmem, "4:1">, !cute.memref<f32, tmem, "(8,16):(1,65536)">) -> ()
    """  # noqa: E501

    name = "cute_nvgpu.arch.tmem_store"
    WRITES = "none"
    atom = prop_def(TmemStoreType)


@cute_op
class MakeTmemCopyOp(MemoryOp):
    """Builds the tiled copy of a warpgroup that loads or stores a tensor in tensor memory, or of one thread that copies
    from shared memory to it (``tmem_copy``).

    Syntax: ``%tc = cute.make_tmem_copy(%atom, %tensor) : (ATOM, T) -> TC``

    Inference:
        Warp ``w`` of the 4 accesses the lanes from ``32 * w`` on, with the thread-value layout of the atom. The tile
        consists of the coordinates of the tensor whose elements the warps, or the thread, access at once.

    Example:
        %tc = cute.make_tmem_copy(%a, %t) : (!cute_nvgpu.atom.tmem_load<f32, 32x32b, x8>, !cute.memref<f32, tmem, "(128,64):(65536,1)">) -> !cute.tiled_copy<!cute_nvgpu.atom.tmem_load<f32, 32x32b, x8>, layout_copy_tv = <"((32,4),(8,32)):((0,32),(128,1))">, tiler_mn = <"[128:1;8:1]">>
    """  # noqa: E501

    name = "cute.make_tmem_copy"
    atom = operand_def()
    tensor = operand_def(MemRefType)
    result = result_def(TiledCopyType)
    traits = traits_def(Pure())

    def __init__(self, atom: SSAValue, tensor: SSAValue):
        self.build_inferred([atom, tensor])

    @classmethod
    def infer_types(cls, operand_types: Sequence[Attribute], properties: Properties) -> list[Attribute]:
        expect_operands(operand_types, 2)
        atom, t = operand_types
        expect(atom, TmemAtomType, 0, "an atom of tensor memory")
        expect(t, MemRefType, 1, "a !cute.memref")
        assert isinstance(atom, TmemAtomType) and isinstance(t, MemRefType)
        if t.space != AddressSpace.tmem:
            raise AlgebraError(f"operand #1 must be a tensor in tmem, got {t}")
        bits = element_bits(t.element)
        if bits != element_bits(atom.element):
            raise AlgebraError(f"operand #1 must have elements as wide as the atom's {atom.element}, got {t.element}")
        layout = t.layout
        if not isinstance(layout, Layout) or not is_static(layout):
            raise AlgebraError(f"the layout of the tensor is not static ({payload_text(layout)}); use a static one")
        values = atom.window()
        try:
            tiler, layout_tv = make_cotiled_layout(make_layout(atom.thread_lanes(), values), layout)
            data = TiledCopy(atom, layout_tv, tiler)
            verify_tiled_copy(data)
        except AlgebraError as e:
            raise AlgebraError(
                f"the elements {payload_text(layout)} of the tensor are not windows {payload_text(values)} of "
                f"{atom}: {e}"
            ) from None
        return [TiledCopyType(data)]


OPS: list[type[Operation]] = [*(op_class(row, __name__) for row in ROWS), *ops_of(__name__)]
