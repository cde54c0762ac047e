"""Atom types of copies that are one machine instruction, and their base.

* ``!cute_nvgpu.atom.simt_async_copy``: ``cp.async``.
* ``!cute_nvgpu.atom.ldsm<val_type = f16, num_matrices = 4, n>``: ``ldmatrix``, smem to registers; ``t`` transposes.
* ``!cute_nvgpu.atom.stsm<val_type = f16, num_matrices = 4, n>``: ``stmatrix``, registers to smem.
* ``!cute_nvgpu.atom.movm<val_type = f16>``: ``movmatrix``, transposes an 8x8 matrix in registers.
* ``!cute_nvgpu.atom.shuffle``: copies between the registers of a warp.

Each atom is a row of the table in :mod:`cute_dialect.arch`. The layouts here are the layouts of the row, in units of
the value type.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, ClassVar, NamedTuple, NoReturn

from xdsl.ir import Attribute, Data
from xdsl.irdl import irdl_attr_definition
from xdsl.parser import AttrParser
from xdsl.printer import Printer

from cute_dialect.algebra.evaluation import size
from cute_dialect.algebra.leaf import AlgebraError
from cute_dialect.algebra.tiled_copy import reference_map
from cute_dialect.algebra.values import Layout, layout_modes
from cute_dialect.cute_nvgpu.instruction_copy.checks import check_copy
from cute_dialect.dialect.atom_types import CopyAtomType
from cute_dialect.dialect.memory_types import MemRefType, element_bits
from cute_dialect.dialect.views import expect

if TYPE_CHECKING:  # pragma: no cover
    from cute_dialect.arch.atom import CopyAtom


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

    ``matrices`` is the number of 8x8 matrices of 16-bit elements (1, 2, 4). ``transposed`` is True if each matrix is
    transposed.
    """

    element: Attribute
    matrices: int
    transposed: bool


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

            if bits not in (8, 16, 32):
                wrong(f"the element {element} has {bits} bits; rows of 16 bytes need 8, 16 or 32")
            parser.parse_punctuation(",")
            parser.parse_keyword("num_matrices")
            parser.parse_punctuation("=")
            at = parser.pos
            count = parser.parse_integer(allow_boolean=False, allow_negative=False)
            if count not in (1, 2, 4):
                parser.raise_error(f"the number of matrices is {count}; use 1, 2 or 4", at, parser.pos)
            parser.parse_punctuation(",")
            transposed = parse_word(parser, "order of the matrices (n: plain, t: transposed)", ("n", "t")) == "t"
            if transposed and bits != 16:
                wrong(f"the element {element} has {bits} bits; transposed matrices need 16")
        return MatrixCopy(element, count, transposed)

    def print_parameter(self, printer: Printer) -> None:
        printer.print_string("<val_type = ")
        printer.print_attribute(self.data.element)
        order = "t" if self.data.transposed else "n"
        printer.print_string(f", num_matrices = {self.data.matrices}, {order}>")

    @property
    def element(self) -> Attribute:
        return self.data.element

    def row(self) -> CopyAtom:
        from cute_dialect.arch import find_matrix_copy  # late: start-up

        return find_matrix_copy(self.data.matrices, self.data.transposed, self.STORES)


@irdl_attr_definition
class LdsmType(MatrixCopyType):
    """``!cute_nvgpu.atom.ldsm<val_type = T, num_matrices = 1|2|4, n|t>``: ``ldmatrix``, executed by a warp.

    Thread ``t`` passes the address of row ``t mod 8`` of matrix ``t div 8``: 16 aligned bytes. It receives 32 bits of
    matrix ``j`` in register ``j``, from row ``t div 4`` (``n``) or from column ``t div 4`` (``t``). A thread-value
    layout of a tiled copy refers to the registers.
    """

    name = "cute_nvgpu.atom.ldsm"
    STORES = False


@irdl_attr_definition
class StsmType(MatrixCopyType):
    """``!cute_nvgpu.atom.stsm<val_type = T, num_matrices = 1|2|4, n|t>``: ``stmatrix`` (sm_90), the inverse of
    ``ldsm``.
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
