"""Copy atom types of ``cute_nvgpu`` beyond plain loads and stores.

* ``!cute_nvgpu.atom.simt_async_copy<f16, cache = global, 128 b>``: ``cp.async`` of one thread, gmem to smem.
* ``!cute_nvgpu.atom.ldsm<val_type = f16, num_matrices = 4, n>``: ``ldmatrix``, smem to registers; ``t`` transposes.
* ``!cute_nvgpu.atom.stsm<val_type = f16, num_matrices = 4, n>``: ``stmatrix``, registers to smem.
* ``!cute_nvgpu.atom.movm<val_type = f16>``: ``movmatrix``, an 8x8 matrix in registers transposed.
* ``!cute_nvgpu.atom.shuffle<val_type = f32, transpose = 1>``: 2x2 blocks of a warp's values transposed by shuffles;
  ``broadcast``: those of lane 0 to all lanes.

What an atom does is a row of :mod:`cute_dialect.arch`; the layouts here are that row's in units of the value type.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, ClassVar, NamedTuple, NoReturn

from xdsl.ir import Attribute, Data
from xdsl.irdl import irdl_attr_definition
from xdsl.parser import AttrParser
from xdsl.printer import Printer

from cute_dialect.algebra.leaf import AlgebraError
from cute_dialect.algebra.values import Layout
from cute_dialect.memory_types import CopyAtomType, element_bits

if TYPE_CHECKING:
    from cute_dialect.arch.atom import CopyAtom


class InstructionCopyType(CopyAtomType):
    """Base of the copies that are one machine instruction with spaces, alignment and layouts of its own."""

    INSTRUCTION: ClassVar[bool] = True

    def row(self) -> CopyAtom:
        """The atom in the table of instructions."""
        raise NotImplementedError

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
    from cute_dialect.algebra.evaluation import size
    from cute_dialect.algebra.values import layout_modes
    from cute_dialect.arch import copy_atom

    count = size(layout_modes(copy_atom(name).in_elements(side, bits))[1])
    assert isinstance(count, int)
    return count


@lru_cache(maxsize=256)
def _reference_map(name: str, side: str, bits: int) -> Layout | None:
    from cute_dialect.algebra.tiled_copy import reference_map
    from cute_dialect.arch import copy_atom

    atom = copy_atom(name)
    return reference_map(atom.in_elements("ref", bits), atom.in_elements(side, bits))


def _parse_element(parser: AttrParser) -> tuple[Attribute, int]:
    at = parser.pos
    element = parser.parse_type()
    try:
        return element, element_bits(element)
    except AlgebraError as e:
        parser.raise_error(str(e), at, parser.pos)


def _parse_word(parser: AttrParser, what: str, words: tuple[str, ...]) -> str:
    at = parser.pos
    word = parser.parse_identifier(f" {what}")
    if word not in words:
        parser.raise_error(f"expected {' or '.join(words)} as {what}, got '{word}'", at, parser.pos)
    return word


# ------------------------------------------------------------------------------------------------------------ cp.async


class AsyncCopy(NamedTuple):
    """``cache``: "always" (L1 and L2) or "global" (L2 only); ``bits``: 32, 64 or 128 a thread."""

    element: Attribute
    cache: str
    bits: int


@irdl_attr_definition
class SimtAsyncCopyType(Data[AsyncCopy], InstructionCopyType):
    """``!cute_nvgpu.atom.simt_async_copy<T, cache = always|global, N b>``: ``cp.async`` of 32, 64 or 128 bits.

    gmem to smem, one thread; both addresses aligned to the width.  ``cache = global`` (``.cg``, around L1) has 128 bits
    only.  Under a predicate (one flag an instruction) it fills the destination with zeros where the flag is false.
    Completion: ``cute_nvgpu.arch.cp_async_commit_group`` and ``cp_async_wait_group``.
    """

    name = "cute_nvgpu.atom.simt_async_copy"

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> AsyncCopy:
        with parser.in_angle_brackets():
            element, natural = _parse_element(parser)
            parser.parse_punctuation(",")
            parser.parse_keyword("cache")
            parser.parse_punctuation("=")
            cache = _parse_word(parser, "cache mode", ("always", "global"))
            parser.parse_punctuation(",")
            at = parser.pos
            bits = parser.parse_integer(allow_boolean=False, allow_negative=False)
            parser.parse_keyword("b")
            widths = (32, 64, 128) if cache == "always" else (128,)
            if bits not in widths or bits % natural:
                wanted = "32, 64 or 128" if cache == "always" else "128"
                parser.raise_error(
                    f"expected {wanted} bits with cache = {cache}, a multiple of the element's {natural}, got {bits}",
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
        from cute_dialect.arch import find_cp_async

        return find_cp_async(self.data.bits // 8, "ca" if self.data.cache == "always" else "cg")


# --------------------------------------------------------------------------------------------------- ldmatrix, stmatrix


class MatrixCopy(NamedTuple):
    """``matrices``: 8x8 matrices of 16-bit elements (1, 2, 4); ``transposed``: each one on its way."""

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
            element, bits = _parse_element(parser)

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
            transposed = _parse_word(parser, "order of the matrices (n: plain, t: transposed)", ("n", "t")) == "t"
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
        from cute_dialect.arch import find_matrix_copy

        return find_matrix_copy(self.data.matrices, self.data.transposed, self.STORES)


@irdl_attr_definition
class LdsmType(MatrixCopyType):
    """``!cute_nvgpu.atom.ldsm<val_type = T, num_matrices = 1|2|4, n|t>``: ``ldmatrix``, executed by a warp.

    Thread ``t`` gives the address of row ``t mod 8`` of matrix ``t div 8`` (16 bytes, aligned) and gets, in register
    ``j``, 32 bits of matrix ``j``: of row ``t div 4`` plain, of column ``t div 4`` transposed.  A thread-value layout
    of a tiled copy refers to the registers.
    """

    name = "cute_nvgpu.atom.ldsm"
    STORES = False


@irdl_attr_definition
class StsmType(MatrixCopyType):
    """``!cute_nvgpu.atom.stsm<val_type = T, num_matrices = 1|2|4, n|t>``: ``stmatrix`` (sm_90), ``ldsm`` backwards."""

    name = "cute_nvgpu.atom.stsm"
    STORES = True


# ------------------------------------------------------------------------------------------------ register to register


@irdl_attr_definition
class MovmType(Data[Attribute], InstructionCopyType):
    """``!cute_nvgpu.atom.movm<val_type = T>``: ``movmatrix``, the 8x8 matrix of 16-bit elements of a warp transposed.

    Before, thread ``t`` holds elements ``2(t mod 4)`` and the next of row ``t div 4``, after it of column ``t div 4``.
    """

    name = "cute_nvgpu.atom.movm"

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> Attribute:
        with parser.in_angle_brackets():
            return _parse_value_type(parser, 16)

    def print_parameter(self, printer: Printer) -> None:
        printer.print_string("<val_type = ")
        printer.print_attribute(self.data)
        printer.print_string(">")

    @property
    def element(self) -> Attribute:
        return self.data

    def row(self) -> CopyAtom:
        from cute_dialect.arch import copy_atom

        return copy_atom("SM75_U32x1_MOVM_T")


def _parse_value_type(parser: AttrParser, wanted: int) -> Attribute:
    parser.parse_keyword("val_type")
    parser.parse_punctuation("=")
    at = parser.pos
    element, bits = _parse_element(parser)
    if bits != wanted:
        parser.raise_error(f"expected an element of {wanted} bits, got {element} ({bits} bits)", at, parser.pos)
    return element


class Shuffle(NamedTuple):
    """``transpose``: distance of the lanes that exchange, 1 or 4; 0 broadcasts lane 0."""

    element: Attribute
    transpose: int


@irdl_attr_definition
class ShuffleType(Data[Shuffle], InstructionCopyType):
    """``!cute_nvgpu.atom.shuffle<val_type = T, transpose = 1|4>`` or ``<val_type = T, broadcast>``; T of 32 bits.

    ``transpose``: of two values a thread, lanes ``t`` and ``t xor N`` exchange one each, so that 2x2 blocks are
    transposed (one ``shfl.sync`` and three selects).  ``broadcast``: every lane gets the value of lane 0.
    """

    name = "cute_nvgpu.atom.shuffle"

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> Shuffle:
        with parser.in_angle_brackets():
            element = _parse_value_type(parser, 32)
            parser.parse_punctuation(",")
            if _parse_word(parser, "kind of shuffle", ("transpose", "broadcast")) == "broadcast":
                return Shuffle(element, 0)
            parser.parse_punctuation("=")
            at = parser.pos
            distance = parser.parse_integer(allow_boolean=False, allow_negative=False)
            if distance not in (1, 4):
                parser.raise_error(f"expected a transposition over 1 or 4 lanes, got {distance}", at, parser.pos)
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
        from cute_dialect.arch import copy_atom

        if self.data.transpose == 0:
            return copy_atom("SM30_SHFL_IDX_U32_BROADCAST")
        return copy_atom(f"SM50_Shuffle_U32_2x2Trans_XOR{self.data.transpose}")


ATTRS: list[type[Attribute]] = [SimtAsyncCopyType, LdsmType, StsmType, MovmType, ShuffleType]
