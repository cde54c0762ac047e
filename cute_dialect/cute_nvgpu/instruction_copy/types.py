"""Base of the atom types of copies that are one machine instruction."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

from xdsl.ir import Attribute
from xdsl.parser import AttrParser

from cute_dialect.algebra.evaluation import size
from cute_dialect.algebra.leaf import AlgebraError
from cute_dialect.algebra.tiled_copy import reference_map
from cute_dialect.algebra.values import Layout, layout_modes
from cute_dialect.cute_nvgpu.instruction_copy.checks import check_copy
from cute_dialect.dialect.atom_types import CopyAtomType
from cute_dialect.dialect.memory_types import MemRefType, element_bits
from cute_dialect.dialect.views import expect

if TYPE_CHECKING:
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
        parser.raise_error(f"expected {' or '.join(words)} as {what}, got '{word}'", at, parser.pos)
    return word


def parse_value_type(parser: AttrParser, wanted: int) -> Attribute:
    """Parse ``val_type = T`` and check that ``T`` has a supported width."""
    parser.parse_keyword("val_type")
    parser.parse_punctuation("=")
    at = parser.pos
    element, bits = parse_element(parser)
    if bits != wanted:
        parser.raise_error(f"expected an element of {wanted} bits, got {element} ({bits} bits)", at, parser.pos)
    return element
