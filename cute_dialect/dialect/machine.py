"""Machine-level ops: their properties and assembly format, and the run-time state of atoms.

The type of an atom determines its fields, which ``cute.atom.set_value`` sets. For example, this sets the mbarrier of a
TMA load:

    %a = cute.atom.set_value(%atom, %bar) {field = tma_bar} : (!load, !bar) -> !load
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import ClassVar

from xdsl.dialects.builtin import StringAttr, i1
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.irdl import operand_def, prop_def, result_def, traits_def
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import Pure

from cute_dialect.algebra.leaf import AlgebraError
from cute_dialect.dialect.asm import parse_operand_list, print_operand_list
from cute_dialect.dialect.atom_types import FIELDS, AtomType, TiledType
from cute_dialect.dialect.base import cute_op, ops_of
from cute_dialect.dialect.typed_values import Properties
from cute_dialect.dialect.views import MemoryOp, expect, expect_operands


class MachineOp(MemoryOp):
    """Op of the form ``%r, … = op(%a, …) {prop = …} : (T, …) -> (R, …)``.

    A single result type is written without parentheses, and no results as ``()``.
    """

    WORDS: ClassVar[tuple[str, ...]] = ()
    """String properties that are written without quotation marks."""

    @classmethod
    def parse_entries(cls, parser: Parser) -> dict[str, Attribute]:
        """Parse the optional dictionary of properties and attributes between the operands and the types."""
        entries: dict[str, Attribute] = {}

        def one() -> None:
            name = parser.parse_identifier()
            if parser.parse_optional_punctuation("=") is None:
                parser.raise_error(f"expected '=' and a value after '{name}'")
            word = parser.parse_optional_identifier() if name in cls.WORDS else None
            entries[name] = StringAttr(word) if word is not None else parser.parse_attribute()

        if parser.parse_optional_punctuation("{") is not None:
            parser.parse_comma_separated_list(parser.Delimiter.NONE, one)
            parser.parse_punctuation("}")
        return entries

    @classmethod
    def check_entries(cls, declared: Iterable[str], attributes: Iterable[str]) -> None:
        """Raise AlgebraError for an attribute without the prefix of a dialect, which is a misspelled property."""
        unknown = next((name for name in attributes if "." not in name), None)
        if unknown is not None:
            known = list(declared)
            allowed = f"its properties are {', '.join(known)}" if known else "it has no properties"
            raise AlgebraError(
                f"has no property '{unknown}'; {allowed} (other attributes need the prefix of a dialect)"
            )

    def check_attributes(self) -> None:
        self.check_entries(self.get_irdl_definition().properties, self.attributes)

    def print_entries(self, printer: Printer) -> None:
        """Print the dictionary in the format that :meth:`parse_entries` reads."""
        entries = sorted({**self.properties, **self.attributes}.items())
        if entries:
            printer.print_string(" {")
            for i, (name, value) in enumerate(entries):
                printer.print_string(f"{', ' if i else ''}{name} = ")
                if name in self.WORDS and isinstance(value, StringAttr) and value.data.isidentifier():
                    printer.print_string(value.data)
                else:
                    printer.print_attribute(value)
            printer.print_string("}")

    @classmethod
    def parse(cls, parser: Parser) -> Operation:
        operands = parse_operand_list(parser)
        entries = cls.parse_entries(parser)
        declared = cls.get_irdl_definition().properties
        parser.parse_punctuation(":")
        at = parser.pos
        types = parser.parse_comma_separated_list(parser.Delimiter.PAREN, parser.parse_type)
        parser.parse_punctuation("->")
        results = parser.parse_optional_comma_separated_list(parser.Delimiter.PAREN, parser.parse_type)
        return cls.create(
            operands=parser.resolve_operands(operands, types, at),
            result_types=[parser.parse_type()] if results is None else results,
            properties={k: v for k, v in entries.items() if k in declared},
            attributes={k: v for k, v in entries.items() if k not in declared},
        )

    def print(self, printer: Printer) -> None:
        print_operand_list(printer, self.operands)
        self.print_entries(printer)
        printer.print_string(" : ")
        with printer.in_parens():
            printer.print_list(self.operand_types, printer.print_attribute)
        printer.print_string(" -> ")
        if len(self.results) == 1:
            printer.print_attribute(self.result_types[0])
        else:
            with printer.in_parens():
                printer.print_list(self.result_types, printer.print_attribute)


def check_accumulate(atom: Attribute, value: Attribute) -> None:
    """Raise AlgebraError unless the atom has a field ``accumulate`` and the value is an ``i1``."""
    if not isinstance(atom, AtomType) or "accumulate" not in atom.fields():
        expect(atom, (), 0, "a wgmma or tcgen05_mma atom, or a !cute.tiled_mma of one, for accumulate")
    if value != i1:
        raise AlgebraError(f"operand #1 must be i1 for accumulate, got {value}")


@cute_op
class AtomSetValueOp(MachineOp):
    """Sets a field of an atom's run-time state and returns the updated atom, of the same type.

    Syntax: ``%b = cute.atom.set_value(%a, %v) {field = FIELD} : (ATOM, V) -> ATOM`` with one of the fields below.

    The fields are:

    * ``tma_bar``: the mbarrier (``!cute.ptr<i64, smem>``) that counts the bytes of a load. A load requires one.
    * ``accumulate``: i1, for ``wgmma``, ``tcgen05_mma`` and their tiled MMAs. If true, a ``gemm`` without C adds to D.
    * ``multicast_mask``: i16, one bit per CTA of the cluster. The load writes to each selected CTA, at the same offset
      of its shared memory.
    * ``cache_hint``: i64, an L2 cache policy.
    * ``pred``: i1. If false, the copy does nothing.
    * ``im2col_offsets``: a coordinate (W first) that is added to all pixels of an im2col load. The default is 0.
    * ``rows``: a coordinate of the four row indices of a gather4 load or a scatter4 store, relative to the tile's first
      row. Such a copy requires it.

    The atom may be the atom of a tiled copy. A copy uses the values set in its own function, between the creation of
    the atom and the copy.

    Example:
        %b = cute.atom.set_value(%a, %bar) {field = tma_bar} : (!cute_nvgpu.atom.tma_load<f16, box = (64, 128)>, !cute.ptr<i64, smem>) -> !cute_nvgpu.atom.tma_load<f16, box = (64, 128)>
    """  # noqa: E501

    name = "cute.atom.set_value"
    atom = operand_def()
    value = operand_def()
    field = prop_def(StringAttr)
    result = result_def()
    traits = traits_def(Pure())
    WORDS = ("field",)

    def __init__(self, atom: SSAValue, value: SSAValue, field: str):
        self.build_inferred([atom, value], {"field": StringAttr(field)})

    @classmethod
    def infer_types(cls, operand_types: Sequence[Attribute], properties: Properties) -> list[Attribute]:
        expect_operands(operand_types, 2)
        atom, value = operand_types
        given = properties.get("field")
        field = given.data if isinstance(given, StringAttr) else ""
        if field == "accumulate":
            check_accumulate(atom.atom if isinstance(atom, TiledType) else atom, value)
            return [atom]
        inner = atom.atom if isinstance(atom, TiledType) else atom
        having = list(inner.fields()) if isinstance(inner, AtomType) else []
        if not having:
            expect(atom, (), 0, "an atom with run-time state (tma_load, tma_store, tma_reduce, bulk_copy, bulk_reduce)")
        if field not in having:
            found = f"no field {field}" if field else "fields, and none is given"
            allowed = f"its fields are {', '.join(having)}" if len(having) > 1 else f"its only field is {having[0]}"
            raise AlgebraError(f"property 'field': {inner.name} has {found}; {allowed}")
        assert isinstance(inner, AtomType)
        if not inner.takes(field, value):
            raise AlgebraError(f"operand #1 must be {FIELDS[field]} for {field}, got {value}")
        return [atom]


OPS = ops_of(__name__)
