"""Copies that are one machine instruction: atom types, their base, and one op per instruction.

* ``!cute_nvgpu.atom.simt_async_copy``: ``cp.async``.
* ``!cute_nvgpu.atom.ldsm<val_type = f16, num_matrices = 4, n>``: ``ldmatrix``, smem to registers; ``t`` transposes.
* ``!cute_nvgpu.atom.stsm<val_type = f16, num_matrices = 4, n>``: ``stmatrix``, registers to smem.
* ``!cute_nvgpu.atom.movm<val_type = f16>``: ``movmatrix``, transposes an 8x8 matrix in registers.
* ``!cute_nvgpu.atom.shuffle``: copies between the registers of a warp.

Each atom is a row of the table in :mod:`cute_dialect.arch`. The layouts here are the layouts of the row, in units of
the value type.

``cute.copy`` with such an atom is a sequence of instructions. Each side is cut into *pieces*: the values of one thread
in one instruction. The pieces are numbered along mode 0 first, then along the other modes. On a side in memory a piece
must be contiguous and aligned; on a side in registers it may have any layout.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, ClassVar, NamedTuple, NoReturn, cast

from xdsl.dialects.builtin import i1
from xdsl.ir import Attribute, Data, SSAValue
from xdsl.irdl import irdl_attr_definition, operand_def, opt_operand_def, prop_def
from xdsl.parser import AttrParser
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException

from cute_dialect.algebra.evaluation import evaluate, size
from cute_dialect.algebra.layout import coalesce, make_layout
from cute_dialect.algebra.leaf import AlgebraError, Dyn, Leaf, divisibility
from cute_dialect.algebra.tiled_copy import reference_map
from cute_dialect.algebra.tiling import logical_divide
from cute_dialect.algebra.trees import is_static, leaves
from cute_dialect.algebra.values import AnyLayout, ComposedLayout, IntTuple, Layout, Swizzle, layout_modes, raw_layout
from cute_dialect.dialect.atom_types import CopyAtomType
from cute_dialect.dialect.base import cute_op, ops_of
from cute_dialect.dialect.memory_types import MemRefType, element_bits
from cute_dialect.dialect.typed_values import payload_text
from cute_dialect.dialect.views import InstructionOp, expect, expect_operands
from cute_dialect.ir.editing import fill_op

if TYPE_CHECKING:
    from cute_dialect.arch.atom import CopyAtom

BYTE_SOURCES = ("b4x16_p64", "b6x16_p32")
"""Packed formats of ``ldmatrix``; their rows are in :mod:`cute_dialect.arch.copies`, which is imported late."""


class Pieces(NamedTuple):
    """A side of a copy after cutting: the layout of one piece, and the layout of the pieces (mode 0, then the
    others).
    """

    piece: Layout
    others: Layout
    swizzled: ComposedLayout | None

    @property
    def counts(self) -> list[int]:
        """Number of pieces in mode 0, followed by the sizes of the other modes."""
        return [cast("int", size(m)) for m in layout_modes(self.others)]

    def offset(self, number: int) -> Leaf:
        """Return the offset of a piece in elements. Pieces are numbered colexicographically."""
        found = evaluate(number, self.others)
        at: Leaf = 0 if isinstance(found, tuple) else found  # type: ignore[assignment]
        if self.swizzled is None:
            return at
        whole = ComposedLayout(self.swizzled.inner, self.swizzled.offset, self.others)
        return cast("Leaf", evaluate(number, whole))


def outer_layout(layout: AnyLayout) -> Layout:
    """Return the layout itself, or the outer layout of a swizzled layout."""
    return layout.outer if isinstance(layout, ComposedLayout) else layout


def cut(layout: AnyLayout, values: int) -> Pieces:
    """Cut a side into pieces of ``values`` values. Raises AlgebraError if mode 0 is not a multiple of ``values``.

    ``layout`` may have leaves bound to run-time values.
    """
    plain = outer_layout(layout)
    modes = layout_modes(plain) if isinstance(plain.shape, tuple) else [plain]
    count = size(modes[0])
    if not isinstance(count, int) or count % values:
        raise AlgebraError(f"the layout is {payload_text(plain)}; the size of mode 0 must be a multiple of {values}")
    piece, among = layout_modes(logical_divide(modes[0], raw_layout(values, 1)))
    return Pieces(piece, make_layout(among, *modes[1:]), layout if isinstance(layout, ComposedLayout) else None)


# -------------------------------------------------------------------------------------------------------------- checks


def check_copy(
    atom: InstructionCopyType, source: Attribute, destination: Attribute, pred: Attribute | None
) -> tuple[Pieces, Pieces]:
    """Return both sides of a copy, cut into pieces. Raises AlgebraError unless ``atom`` can move each piece."""
    row = atom.row()
    cuts: list[Pieces] = []
    sides = (("source", "src", source, row.src_space), ("destination", "dst", destination, row.dst_space))
    for i, (what, side, t, space) in enumerate(sides, 1):
        assert isinstance(t, MemRefType)
        if t.space != space:
            raise AlgebraError(
                f"the {what} is in {t.space} ({t}); it must be in {space}, because {row.emit.kind} moves "
                f"{row.src_space} to {row.dst_space}"
            )
        if element_bits(t.element) != element_bits(atom.element):
            raise AlgebraError(f"operand #{i} must have elements as wide as the atom's {atom.element}, got {t.element}")
        cuts.append(_cut_side(atom, what, side, t))
    assert isinstance(source, MemRefType) and isinstance(destination, MemRefType)
    if source.element != destination.element:
        raise AlgebraError(
            f"the element types of both sides are {source.element} and {destination.element}; they must be equal"
        )
    _check_counts(atom, cuts, (source, destination))
    align = {"source": row.src_align, "destination": row.dst_align}
    for (what, _, t, _), pieces in zip(sides, cuts):
        assert isinstance(t, MemRefType)
        if t.space.per_thread:
            if not is_static(t.layout):
                raise AlgebraError(
                    f"the layout of the {what} in registers is not static ({t}); use static extents and strides"
                )
        elif not t.space.addressable:
            atom.check_window(what, t, pieces)
        else:
            check_memory_side(row.emit.kind, what, t, pieces, align[what])
    if pred is not None:
        _check_predicate(row.emit.kind, pred, cuts[1].counts)
    return cuts[0], cuts[1]


def _cut_side(atom: InstructionCopyType, what: str, side: str, t: MemRefType) -> Pieces:
    shape = outer_layout(t.layout).shape
    if not is_static(shape):
        raise AlgebraError(f"the shape of the {what} is not static ({payload_text(shape)}); use static extents")
    values = atom.side_values(side)
    try:
        return cut(t.layout, values)
    except AlgebraError:
        raise AlgebraError(
            f"the shape of the {what} is {payload_text(shape)}; the size of mode 0 must be a multiple of "
            f"{values}, the values per thread of one {atom.row().emit.kind} with {atom}"
        ) from None


def _check_counts(atom: InstructionCopyType, cuts: list[Pieces], sides: tuple[MemRefType, MemRefType]) -> None:
    a, b = cuts[0].counts, cuts[1].counts
    shapes = " and ".join(payload_text(outer_layout(t.layout).shape) for t in sides)
    if len(a) != len(b):
        raise AlgebraError(f"the shapes of the tensors are {shapes}; their ranks must be equal")
    if a[0] != b[0]:
        raise AlgebraError(
            f"mode 0 has {a[0]} instructions at the source ({atom.side_values('src')} values each) and {b[0]} "
            f"at the destination ({atom.side_values('dst')} values each) of {shapes}; use the same number"
        )
    for i, (x, y) in enumerate(zip(a, b)):
        if x != y:
            raise AlgebraError(f"mode {i} has sizes {x} and {y} in {shapes}; they must be equal")


def check_memory_side(kind: str, what: str, t: MemRefType, pieces: Pieces, align: int) -> None:
    """Raise AlgebraError unless each piece is contiguous and starts at a multiple of ``align`` bytes."""
    values = cast("int", size(pieces.piece))
    bits = element_bits(t.element)
    run = coalesce(pieces.piece)
    if values > 1 and not (run.shape == values and run.stride == 1):
        raise AlgebraError(
            f"one {kind} has {payload_text(pieces.piece)} elements of the {what} in mode 0 of "
            f"{payload_text(t.layout)}; {values} must be contiguous"
        )
    if t.alignment % align:
        raise AlgebraError(f"the {what} is aligned to {t.alignment} bytes ({t}); {kind} needs {align}")
    step = align * 8 // bits
    for i, mode in enumerate(layout_modes(pieces.others)):
        for extent, stride in zip(leaves(mode.shape), leaves(mode.stride)):
            if extent != 1 and divisibility(_leaf(stride)) % step:
                raise AlgebraError(
                    f"mode {i} of the {what} has stride {payload_text(mode)} in {payload_text(t.layout)}; "
                    f"{kind} needs multiples of {step} elements ({align} bytes)"
                )
    pointer = t.data.ptr.swizzle
    if pointer is not None and 1 << pointer.base < align:
        raise AlgebraError(
            f"the swizzle {payload_text(pointer)} of the {what} keeps {1 << pointer.base} bytes together; "
            f"{kind} needs {align}"
        )
    if pieces.swizzled is not None:
        _check_composed(kind, what, pieces.swizzled, step)


def _check_composed(kind: str, what: str, layout: ComposedLayout, step: int) -> None:
    if not isinstance(layout.inner, Swizzle):
        raise AlgebraError(
            f"the layout of the {what} is neither plain nor swizzled ({payload_text(layout)}); use one that is"
        )
    if 1 << layout.inner.base < step:
        raise AlgebraError(
            f"the swizzle {payload_text(layout.inner)} of the {what} keeps {1 << layout.inner.base} elements "
            f"together; {kind} needs {step}"
        )
    offset = layout.offset
    if not isinstance(offset, int | Dyn) or divisibility(offset) % step:
        raise AlgebraError(
            f"the layout of the {what} is {payload_text(layout)}; {kind} needs an offset that is a multiple "
            f"of {step} elements"
        )


def _leaf(x: object) -> Leaf:
    return x if isinstance(x, int | Dyn) else 0


def _check_predicate(kind: str, pred: Attribute, counts: list[int]) -> None:
    if kind != "cp_async":
        raise AlgebraError(
            f"{kind} takes no predicate, because all threads of the warp execute it together; "
            "use an scf.if with a warp-uniform condition"
        )
    if not (isinstance(pred, MemRefType) and pred.element == i1 and pred.space.per_thread):
        raise AlgebraError(f"operand #3 must be an rmem tensor of i1, got {pred}")
    shape = outer_layout(pred.layout).shape
    modes = shape if isinstance(shape, tuple) else (shape,)
    sizes = [size(cast("IntTuple", m)) for m in modes]
    if len(sizes) != len(counts) or sizes[0] not in (1, counts[0]) or sizes[1:] != counts[1:]:
        rest = "".join(f",{c}" for c in counts[1:])
        wanted = " or ".join(f"({n}{rest})" for n in dict.fromkeys((counts[0], 1)))
        raise AlgebraError(
            f"the predicate has shape {payload_text(shape)}; it must have one flag per instruction, of sizes {wanted}"
        )


class InstructionCopyType(CopyAtomType):
    """Base of the atom types of copies that are one machine instruction.

    The instruction determines the memory spaces, the alignment and the layouts.
    """

    def row(self) -> CopyAtom:
        """Row of the atom in the table of instructions."""
        raise NotImplementedError

    def check_copy(self, operand_types: Sequence[Attribute]) -> None:
        source, destination, *pred = operand_types[1:]
        expect(source, MemRefType, 1, "a !cute.memref")
        expect(destination, MemRefType, 2, "a !cute.memref")
        check_copy(self, source, destination, pred[0] if pred else None)

    def check_window(self, what: str, t: MemRefType, pieces: Pieces) -> None:
        """Raise AlgebraError unless each piece of a side in tensor memory is a window of the instruction."""
        raise NotImplementedError(self.name)

    def threads(self) -> int:
        return self.row().threads

    def values(self) -> int:
        return self.side_values("ref")

    def side_values(self, side: str) -> int:
        return _side_values(self.row().name, side, element_bits(self.element))

    def reference_map(self, side: str) -> Layout | None:
        return _reference_map(self.row().name, side, element_bits(self.element))


@lru_cache(maxsize=256)
def _side_values(name: str, side: str, bits: int) -> int:
    from cute_dialect.arch import copy_atom  # late: start-up

    count = size(layout_modes(copy_atom(name).in_elements(side, bits))[1])
    assert isinstance(count, int)
    return count


@lru_cache(maxsize=256)
def _reference_map(name: str, side: str, bits: int) -> Layout | None:
    from cute_dialect.arch import copy_atom  # late: start-up

    atom = copy_atom(name)
    return reference_map(atom.in_elements("ref", bits), atom.in_elements(side, bits))


def parse_element(parser: AttrParser) -> tuple[Attribute, int]:
    """Parse an element type and return it with its width in bits."""
    at = parser.pos
    element = parser.parse_type()
    try:
        return element, element_bits(element)
    except AlgebraError as e:
        parser.raise_error(str(e), at, parser.pos)


def parse_word(parser: AttrParser, what: str, words: tuple[str, ...]) -> str:
    """Parse one of the given words; ``what`` describes it in error messages."""
    at = parser.pos
    word = parser.parse_identifier(f" {what}")
    if word not in words:
        parser.raise_error(f"'{word}' is not a {what}; write {' or '.join(words)}", at, parser.pos)
    return word


def parse_value_type(parser: AttrParser, wanted: int) -> Attribute:
    """Parse ``val_type = T`` and check that ``T`` has a supported width."""
    parser.parse_keyword("val_type")
    parser.parse_punctuation("=")
    at = parser.pos
    element, bits = parse_element(parser)
    if bits != wanted:
        parser.raise_error(f"the element {element} has {bits} bits; use one of {wanted} bits", at, parser.pos)
    return element


# ------------------------------------------------------------------------------------------------------------- cp.async


class AsyncCopy(NamedTuple):
    """Parameters of the atom.

    ``cache`` is "always" (L1 and L2) or "global" (L2 only). ``bits`` is the size of one thread's access: 32, 64 or 128.
    """

    element: Attribute
    cache: str
    bits: int


@irdl_attr_definition
class SimtAsyncCopyType(Data[AsyncCopy], InstructionCopyType):
    """``!cute_nvgpu.atom.simt_async_copy<T, cache = always|global, N b>``: ``cp.async`` of 32, 64 or 128 bits.

    One thread copies from gmem to smem. Both addresses must be aligned to the width. ``cache = global`` (``.cg``,
    bypasses L1) requires 128 bits. A predicate has one flag per instruction; if the flag is false, the destination is
    zero-filled. Completion: ``cute_nvgpu.arch.cp_async_commit_group`` and ``cp_async_wait_group``.
    """

    name = "cute_nvgpu.atom.simt_async_copy"

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> AsyncCopy:
        with parser.in_angle_brackets():
            element, natural = parse_element(parser)
            parser.parse_punctuation(",")
            parser.parse_keyword("cache")
            parser.parse_punctuation("=")
            cache = parse_word(parser, "cache mode", ("always", "global"))
            parser.parse_punctuation(",")
            at = parser.pos
            bits = parser.parse_integer(allow_boolean=False, allow_negative=False)
            parser.parse_keyword("b")
            widths = (32, 64, 128) if cache == "always" else (128,)
            if bits not in widths or bits % natural:
                wanted = "32, 64 or 128" if cache == "always" else "128"
                parser.raise_error(
                    f"the copy has {bits} bits; with cache = {cache} use {wanted}, a multiple of the "
                    f"element's {natural}",
                    at,
                    parser.pos,
                )
        return AsyncCopy(element, cache, bits)

    def print_parameter(self, printer: Printer) -> None:
        printer.print_string("<")
        printer.print_attribute(self.data.element)
        printer.print_string(f", cache = {self.data.cache}, {self.data.bits} b>")

    @property
    def element(self) -> Attribute:
        return self.data.element

    def row(self) -> CopyAtom:
        from cute_dialect.arch import find_cp_async  # late: start-up

        return find_cp_async(self.data.bits // 8, "ca" if self.data.cache == "always" else "cg")


# ---------------------------------------------------------------------------------------- ldmatrix, stmatrix, movmatrix


class MatrixCopy(NamedTuple):
    """Parameters of the atom.

    ``matrices`` is the number of 8x8 matrices of 16-bit elements (1, 2, 4), or of matrices of bytes. ``transposed`` is
    True if each matrix is transposed. ``source`` is the packed format of 4-bit or 6-bit numbers, or "".
    """

    element: Attribute
    matrices: int
    transposed: bool
    source: str = ""


class MatrixCopyType(Data[MatrixCopy], InstructionCopyType):
    """Base of ``ldsm`` and ``stsm``."""

    STORES: ClassVar[bool]

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> MatrixCopy:
        with parser.in_angle_brackets():
            parser.parse_keyword("val_type")
            parser.parse_punctuation("=")
            start = parser.pos
            element, bits = parse_element(parser)

            def wrong(message: str) -> NoReturn:
                parser.raise_error(message, start, parser.pos)

            if bits not in (4, 8, 16, 32):
                wrong(f"the element {element} has {bits} bits; rows of 16 bytes need 4, 8, 16 or 32")
            parser.parse_punctuation(",")
            parser.parse_keyword("num_matrices")
            parser.parse_punctuation("=")
            at = parser.pos
            count = parser.parse_integer(allow_boolean=False, allow_negative=False)
            if count not in (1, 2, 4):
                parser.raise_error(f"the number of matrices is {count}; use 1, 2 or 4", at, parser.pos)
            parser.parse_punctuation(",")
            transposed = parse_word(parser, "order of the matrices (n: plain, t: transposed)", ("n", "t")) == "t"
            if transposed and bits not in (8, 16):
                wrong(f"the element {element} has {bits} bits; transposed matrices need 8 or 16")
            source = ""
            if not cls.STORES and parser.parse_optional_punctuation(",") is not None:
                parser.parse_keyword("from")
                parser.parse_punctuation("=")
                source = parse_word(parser, "packed format", BYTE_SOURCES)
                if bits != 8:
                    wrong(f"the element {element} has {bits} bits; from = {source} makes elements of 8")
            if transposed and bits == 8 and count == 4 and not cls.STORES:
                parser.raise_error("the number of matrices is 4; transposed bytes have 1 or 2", at, parser.pos)
        return MatrixCopy(element, count, transposed, source)

    def print_parameter(self, printer: Printer) -> None:
        printer.print_string("<val_type = ")
        printer.print_attribute(self.data.element)
        order = "t" if self.data.transposed else "n"
        source = f", from = {self.data.source}" if self.data.source else ""
        printer.print_string(f", num_matrices = {self.data.matrices}, {order}{source}>")

    @property
    def element(self) -> Attribute:
        return self.data.element

    def row(self) -> CopyAtom:
        from cute_dialect.arch import find_matrix_copy  # late: start-up

        bits = element_bits(self.data.element)
        return find_matrix_copy(self.data.matrices, self.data.transposed, self.STORES, bits, self.data.source)


@irdl_attr_definition
class LdsmType(MatrixCopyType):
    """``!cute_nvgpu.atom.ldsm<val_type = T, num_matrices = 1|2|4, n|t [, from = b4x16_p64|b6x16_p32]>``: ``ldmatrix``,
    executed by a warp.

    Thread ``t`` passes the address of row ``t mod 8`` of matrix ``t div 8``: 16 aligned bytes. It receives 32 bits of
    matrix ``j`` in register ``j``, from row ``t div 4`` (``n``) or from column ``t div 4`` (``t``). A thread-value
    layout of a tiled copy refers to the registers.

    Transposed elements of 8 bits are 1 or 2 matrices of 16 rows of 16 bytes, with two registers each. They need
    sm_100a, sm_120a or their families. So do loads ``from`` rows of 16 packed numbers of 4 or 6 bits, followed by
    padding to 16 bytes. Each number becomes an element of 8 bits with zeros above.
    """

    name = "cute_nvgpu.atom.ldsm"
    STORES = False


@irdl_attr_definition
class StsmType(MatrixCopyType):
    """``!cute_nvgpu.atom.stsm<val_type = T, num_matrices = 1|2|4, n|t>``: ``stmatrix`` (sm_90), the inverse of
    ``ldsm``. Transposed matrices of bytes have 8 rows of 16 bytes in memory, and one register each.
    """

    name = "cute_nvgpu.atom.stsm"
    STORES = True


# ------------------------------------------------------------------------------------------------ register to register


@irdl_attr_definition
class MovmType(Data[Attribute], InstructionCopyType):
    """``!cute_nvgpu.atom.movm<val_type = T>``: ``movmatrix``, transposes the 8x8 matrix of 16-bit elements of a warp.

    Thread ``t`` holds elements ``2(t mod 4)`` and ``2(t mod 4) + 1`` of row ``t div 4`` before the instruction, and of
    column ``t div 4`` after it.
    """

    name = "cute_nvgpu.atom.movm"

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> Attribute:
        with parser.in_angle_brackets():
            return parse_value_type(parser, 16)

    def print_parameter(self, printer: Printer) -> None:
        printer.print_string("<val_type = ")
        printer.print_attribute(self.data)
        printer.print_string(">")

    @property
    def element(self) -> Attribute:
        return self.data

    def row(self) -> CopyAtom:
        from cute_dialect.arch import copy_atom  # late: start-up

        return copy_atom("SM75_U32x1_MOVM_T")


# ------------------------------------------------------------------------------------------------------------- shuffles


class Shuffle(NamedTuple):
    """Parameters of the atom.

    ``transpose`` is the distance between exchanging lanes, 1 or 4; 0 means a broadcast of lane 0.
    """

    element: Attribute
    transpose: int


@irdl_attr_definition
class ShuffleType(Data[Shuffle], InstructionCopyType):
    """``!cute_nvgpu.atom.shuffle<val_type = T, transpose = 1|4>`` or ``<val_type = T, broadcast>``; T of 32 bits.

    ``transpose = N``: each thread holds two values. Lanes ``t`` and ``t xor N`` exchange one value each, which
    transposes 2x2 blocks (one ``shfl.sync`` and three selects). ``broadcast``: each lane receives the value of lane 0.
    """

    name = "cute_nvgpu.atom.shuffle"

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> Shuffle:
        with parser.in_angle_brackets():
            element = parse_value_type(parser, 32)
            parser.parse_punctuation(",")
            if parse_word(parser, "kind of shuffle", ("transpose", "broadcast")) == "broadcast":
                return Shuffle(element, 0)
            parser.parse_punctuation("=")
            at = parser.pos
            distance = parser.parse_integer(allow_boolean=False, allow_negative=False)
            if distance not in (1, 4):
                parser.raise_error(f"the transposition is over {distance} lanes; use 1 or 4", at, parser.pos)
        return Shuffle(element, distance)

    def print_parameter(self, printer: Printer) -> None:
        printer.print_string("<val_type = ")
        printer.print_attribute(self.data.element)
        kind = f"transpose = {self.data.transpose}" if self.data.transpose else "broadcast"
        printer.print_string(f", {kind}>")

    @property
    def element(self) -> Attribute:
        return self.data.element

    def row(self) -> CopyAtom:
        from cute_dialect.arch import copy_atom  # late: start-up

        if self.data.transpose == 0:
            return copy_atom("SM30_SHFL_IDX_U32_BROADCAST")
        return copy_atom(f"SM50_Shuffle_U32_2x2Trans_XOR{self.data.transpose}")


ATTRS: list[type[Attribute]] = [SimtAsyncCopyType, LdsmType, StsmType, MovmType, ShuffleType]


class CopyInstructionOp(InstructionOp):
    """One instruction of a copy atom. Both sides hold exactly the values of one thread in one instruction."""

    MOST: ClassVar[int] = 2
    """Maximum number of operands: 3 if the instruction accepts a predicate, otherwise 2."""
    source = operand_def(MemRefType)
    destination = operand_def(MemRefType)

    def __init__(self, atom: CopyAtomType, source: SSAValue, destination: SSAValue, *rest: SSAValue):
        fill_op(self, [source, destination, *rest], properties={"atom": atom})

    def verify_(self) -> None:
        try:
            types = self.operand_types
            expect_operands(types, 2, self.MOST)
            atom = self.properties["atom"]
            assert isinstance(atom, InstructionCopyType)
            for i, t in enumerate(types[:2]):
                expect(t, MemRefType, i, "a !cute.memref")
            source, destination = check_copy(atom, _as_values(types[0]), _as_values(types[1]), None)
            for what, side in (("source", source), ("destination", destination)):
                if any(n != 1 for n in side.counts):
                    raise AlgebraError(
                        f"the {what} must hold the values of exactly one instruction, "
                        f"got those of {math.prod(side.counts)}"
                    )
        except AlgebraError as e:
            raise VerifyException(f"'{self.name}' op {e}") from None


def _as_values(t: Attribute) -> Attribute:
    """Return the tensor type with all modes grouped into one mode of values."""
    assert isinstance(t, MemRefType)
    layout = t.layout
    if isinstance(layout, ComposedLayout) or not isinstance(layout.shape, tuple):
        return t
    assert isinstance(layout.stride, tuple)
    return t.with_layout(raw_layout((layout.shape,), (layout.stride,)))


@cute_op
class CpAsyncOp(CopyInstructionOp):
    """Issues one ``cp.async``. If the optional predicate is false, the source is not read and the destination is
    zero-filled.

    Syntax: ``cute_nvgpu.arch.cp_async(%gmem, %smem [, %pred]) {atom = ATOM} : (G, S [, i1]) -> ()``

    Example:
        cute_nvgpu.arch.cp_async(%g, %s) {atom = !cute_nvgpu.atom.simt_async_copy<f16, cache = global, 128 b>} : (!cute.memref<f16, gmem, align<16>, "8:1">, !cute.memref<f16, smem, align<16>, "8:1">) -> ()
    """  # noqa: E501

    name = "cute_nvgpu.arch.cp_async"
    MOST: ClassVar[int] = 3
    source = operand_def(MemRefType)
    destination = operand_def(MemRefType)
    pred = opt_operand_def(i1)
    atom = prop_def(SimtAsyncCopyType)


@cute_op
class LdmatrixOp(CopyInstructionOp):
    """Issues one ``ldmatrix``. ``%smem`` is the row whose address this thread passes, ``%rmem`` its result registers.

    Syntax: ``cute_nvgpu.arch.ldmatrix(%smem, %rmem) {atom = ATOM} : (S, R) -> ()``

    Example:
        cute_nvgpu.arch.ldmatrix(%s, %r) {atom = !cute_nvgpu.atom.ldsm<val_type = f16, num_matrices = 4, n>} : (!cute.memref<f16, smem, align<16>, "8:1">, !cute.memref<f16, rmem, "(2,4):(1,2)">) -> ()
    """  # noqa: E501

    name = "cute_nvgpu.arch.ldmatrix"
    atom = prop_def(LdsmType)


@cute_op
class StmatrixOp(CopyInstructionOp):
    """Issues one ``stmatrix`` (sm_90). ``%smem`` is the row whose address this thread passes, ``%rmem`` its source
    registers.

    Syntax: ``cute_nvgpu.arch.stmatrix(%rmem, %smem) {atom = ATOM} : (R, S) -> ()``

    Example:
        cute_nvgpu.arch.stmatrix(%r, %s) {atom = !cute_nvgpu.atom.stsm<val_type = f16, num_matrices = 2, t>} : (!cute.memref<f16, rmem, "4:1">, !cute.memref<f16, smem, align<16>, "8:1">) -> ()
    """  # noqa: E501

    name = "cute_nvgpu.arch.stmatrix"
    WRITES = "none"
    atom = prop_def(StsmType)


@cute_op
class MovmatrixOp(CopyInstructionOp):
    """Issues one ``movmatrix``, which transposes the 8x8 matrix in the registers of a warp.

    Syntax: ``cute_nvgpu.arch.movmatrix(%from, %to) {atom = ATOM} : (R, R) -> ()``

    Example:
        cute_nvgpu.arch.movmatrix(%r, %f) {atom = !cute_nvgpu.atom.movm<val_type = f16>} : (!cute.memref<f16, rmem, "2:1">, !cute.memref<f16, rmem, "2:1">) -> ()
    """  # noqa: E501

    name = "cute_nvgpu.arch.movmatrix"
    atom = prop_def(MovmType)


@cute_op
class ShuffleOp(CopyInstructionOp):
    """Issues one warp shuffle that transposes 2x2 blocks, or broadcasts the value of lane 0.

    Syntax: ``cute_nvgpu.arch.shuffle(%from, %to) {atom = ATOM} : (R, R) -> ()``

    Example:
        cute_nvgpu.arch.shuffle(%r, %f) {atom = !cute_nvgpu.atom.shuffle<val_type = f32, transpose = 4>} : (!cute.memref<f32, rmem, "2:1">, !cute.memref<f32, rmem, "2:1">) -> ()
    """  # noqa: E501

    name = "cute_nvgpu.arch.shuffle"
    atom = prop_def(ShuffleType)


OPS = ops_of(__name__)
