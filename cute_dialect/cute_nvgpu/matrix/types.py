"""Atom types of the matrix copies of a warp: ``ldsm``, ``stsm``, ``movm``.

* ``!cute_nvgpu.atom.ldsm<val_type = f16, num_matrices = 4, n>``: ``ldmatrix``, smem to registers; ``t`` transposes.
* ``!cute_nvgpu.atom.stsm<val_type = f16, num_matrices = 4, n>``: ``stmatrix``, registers to smem.
* ``!cute_nvgpu.atom.movm<val_type = f16>``: ``movmatrix``, transposes an 8x8 matrix in registers.

Each atom is a row of the table in :mod:`cute_dialect.arch`. The layouts here are the layouts of the row, in units of
the value type.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, NamedTuple, NoReturn

from xdsl.ir import Attribute, Data
from xdsl.irdl import irdl_attr_definition
from xdsl.parser import AttrParser
from xdsl.printer import Printer

if TYPE_CHECKING:
    from cute_dialect.arch.atom import CopyAtom
from cute_dialect.cute_nvgpu.instruction_copy.types import (
    InstructionCopyType,
    parse_element,
    parse_value_type,
    parse_word,
)

# --------------------------------------------------------------------------------------------------- ldmatrix, stmatrix


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
                wrong(f"expected an element of 8, 16 or 32 bits in rows of 16 bytes, got {element} ({bits} bits)")
            parser.parse_punctuation(",")
            parser.parse_keyword("num_matrices")
            parser.parse_punctuation("=")
            at = parser.pos
            count = parser.parse_integer(allow_boolean=False, allow_negative=False)
            if count not in (1, 2, 4):
                parser.raise_error(f"expected 1, 2 or 4 matrices, got {count}", at, parser.pos)
            parser.parse_punctuation(",")
            transposed = parse_word(parser, "order of the matrices (n: plain, t: transposed)", ("n", "t")) == "t"
            if transposed and bits != 16:
                wrong(f"expected an element of 16 bits for transposed matrices, got {element} ({bits} bits)")
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


ATTRS: list[type[Attribute]] = [LdsmType, StsmType, MovmType]
