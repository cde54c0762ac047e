"""Writing the generic form of IR: for people, and for upstream MLIR to read.

xDSL's printer takes about 70 µs an op, most of it for types and attributes that repeat; a kernel before folding has
thousands of ops.  Here every type and attribute is written once, and the text is joined at the end: a third of that.

    %5 = "arith.addi"(%3, %4) <{overflowFlags = #arith.overflow<none>}> : (i32, i32) -> i32
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, cast

from xdsl.dialects.builtin import (
    DenseArrayBase,
    DictionaryAttr,
    FileLineColLoc,
    IntegerAttr,
    IntegerType,
    Signedness,
    UnitAttr,
    UnknownLoc,
    UnregisteredOp,
)
from xdsl.utils.mlir_lexer import MLIRLexer

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from xdsl.ir import Attribute, Block, BlockArgument, Operation, Region, SSAValue


class GenericWriter:
    """Writes an op and all that is in it; values and blocks get numbers unless they have a name.

    ``locations`` writes where each op comes from, ``unknown_locations`` says so where that is not known.
    """

    def __init__(self, *, locations: bool = False, unknown_locations: bool = False):
        self._parts: list[str] = []
        self._values: dict[int, str] = {}
        """By identity, as types and attributes are: the module is there as long as the writer is."""
        self._blocks: dict[Block, str] = {}
        self._texts: dict[int, str] = {}
        self._by_value: dict[Attribute, str] = {}
        self._locations = locations
        self._unknown_locations = unknown_locations

    def write(self, op: Operation) -> str:
        """Return the text of an op; the last line does not end."""
        self._op(op, "\n")
        return "".join(self._parts)

    # ------------------------------------------------------------------------------------ what a use of it may change

    def name_value(self, value: SSAValue) -> str:
        """Return the name of a value that has none."""
        return f"%{len(self._values)}"

    def name_block(self, block: Block) -> str:
        """Return the label of a block that has none."""
        return f"^bb{len(self._blocks)}"

    def write_attribute(self, attribute: Attribute) -> str:
        """Return the text of a type or attribute that was not written before."""
        return str(attribute)

    def write_op_location(self, op: Operation) -> str:
        """Return ``loc(…)`` of an op."""
        return self._location(op.location)

    def write_location(self, location: Attribute) -> str:
        """Return ``loc("file":line:col)``."""
        if isinstance(location, FileLineColLoc) and _is_plain(location.filename.data):
            return f'loc("{location.filename.data}":{location.line.data}:{location.column.data})'
        return self._attribute(location)

    # ------------------------------------------------------------------------------------------------------ the text

    def _attribute(self, attribute: Attribute) -> str:
        text = self._texts.get(id(attribute))
        if text is None and type(attribute) is DictionaryAttr:  # its parts are shared more often than it is
            text = self._texts[id(attribute)] = self._dictionary(attribute.data)
        if text is None:
            text = self._by_value.get(attribute)
            if text is None:
                text = self._by_value[attribute] = _number_text(attribute) or self.write_attribute(attribute)
            self._texts[id(attribute)] = text
        return text

    def _location(self, location: Attribute) -> str:
        text = self._texts.get(id(location))
        if text is None:
            text = self._texts[id(location)] = self.write_location(location)
        return text

    def _block_name(self, block: Block) -> str:
        name = self._blocks.get(block)
        if name is None:
            name = self._blocks[block] = self.name_block(block)
        return name

    def _dictionary(self, given: Mapping[str, Attribute]) -> str:
        """Return ``{key = value, unit}``, sorted as upstream's dictionaries are."""
        texts, items = self._texts, list[str]()
        for key in sorted(given) if len(given) > 1 else given:
            value = given[key]
            if type(value) is UnitAttr:
                items.append(_key_text(key))
            else:
                items.append(f"{_key_text(key)} = {texts.get(id(value)) or self._attribute(value)}")
        return "{" + ", ".join(items) + "}"

    def _names(self, values: Sequence[SSAValue]) -> str:
        """Return the names of values.  Where blocks branch, a use may come before the definition."""
        known = self._values
        found: list[str] = []
        for value in values:
            name = known.get(id(value))
            if name is None:
                name = known[id(value)] = self.name_value(value)
            found.append(name)
        return ", ".join(found)

    def _results(self, results: Sequence[SSAValue]) -> str:
        """Return the names that an op defines: ``%0:2`` where two have one."""
        names = self._names(results)
        return f"{names.partition('#')[0]}:{len(results)}" if "#" in names else names

    def _types(self, values: Sequence[SSAValue]) -> str:
        texts = self._texts
        return ", ".join([texts.get(id(t)) or self._attribute(t) for t in [v.type for v in values]])

    def _op(self, op: Operation, line: str) -> None:
        """Write an op with its regions; ``line`` begins a line as this one does."""
        operands, results, attributes = tuple(op.operands), op.results, op.attributes
        name = op.name
        if name == "builtin.unregistered":
            assert isinstance(op, UnregisteredOp)
            name = op.op_name.data
            attributes = {k: v for k, v in attributes.items() if k != "op_name__"}
        head = f'{self._results(results)} = "{name}"(' if len(results) else f'"{name}"('
        head += f"{self._names(operands)})" if operands else ")"
        if op.successors:
            head += "[" + ", ".join([self._block_name(b) for b in op.successors]) + "]"
        properties: Mapping[str, Attribute] = op.properties
        moved: tuple[str, ...] = getattr(type(op), "WRITTEN_AS_ATTRIBUTES", ())
        if moved:
            attributes = {**attributes, **{k: v for k, v in properties.items() if k in moved}}
            properties = {k: v for k, v in properties.items() if k not in moved}
        if properties:
            head += f" <{self._dictionary(properties)}>"
        if op.regions:
            self._parts.append(head + " (")
            for i, region in enumerate(op.regions):
                if i:
                    self._parts.append(", ")
                self._region(region, line)
            head = ")"
        if attributes:
            head += f" {self._dictionary(attributes)}"
        types = self._types(results) if len(results) else ""
        if len(results) != 1 or types[0] == "(":
            types = f"({types})"
        head += f" : ({self._types(operands)}) -> {types}" if operands else f" : () -> {types}"
        if self._locations and (self._unknown_locations or type(op.location) is not UnknownLoc):
            head += f" {self.write_op_location(op)}"
        self._parts.append(head)

    def _region(self, region: Region, line: str) -> None:
        """Write a region; every block has its label, but for an entry block that takes nothing and is not empty."""
        out = self._parts.append
        out("{")
        inner = line + "  "
        for i, block in enumerate(region.blocks):
            if i or block.args or block.first_op is None:
                arguments = ", ".join([f"{self._names((a,))}: {self._argument(a)}" for a in block.args])
                label = line + self._block_name(block)
                out(f"{label}({arguments}):" if arguments else f"{label}:")
            for op in block.ops:
                out(inner)
                self._op(op, inner)
        out(line + "}")

    def _argument(self, argument: BlockArgument) -> str:
        """Return the type of a block argument with its location; without it, upstream takes a place in the text."""
        text = self._attribute(argument.type)
        return f"{text} {self._location(argument.location)}" if self._locations else text


def _number_text(attribute: Attribute) -> str | None:
    """Return the text of an integer attribute or of an array of integers, of which there are the most."""
    if isinstance(attribute, IntegerAttr):
        bits = _width(cast("IntegerAttr[IntegerType]", attribute).type)
        return None if bits is None else f"{attribute.value.data} : i{bits}"
    if isinstance(attribute, DenseArrayBase):
        array = cast("DenseArrayBase[IntegerType]", attribute)
        bits = _width(array.elt_type)
        numbers = ", ".join(map(str, array.get_values())) if len(array) else ""
        return f"array<i{bits}: {numbers}>" if numbers and bits is not None else None
    return None


def _width(t: Attribute) -> int | None:
    """Return the bits of a signless integer type whose values are written as numbers; None for another type."""
    if not isinstance(t, IntegerType):
        return None
    integer = cast("IntegerType[int, Signedness]", t)
    return integer.width.data if integer.signedness.data is Signedness.SIGNLESS and integer.width.data > 1 else None


@lru_cache(maxsize=1024)
def _key_text(key: str) -> str:
    if MLIRLexer.bare_identifier_regex.fullmatch(key) is not None:
        return key
    plain = key.isascii() and _is_plain(key)
    return f'"{key}"' if plain else '"' + "".join(map(_escaped, key.encode())) + '"'


def _escaped(byte: int) -> str:
    if byte == 0x5C:
        return "\\\\"
    return f"\\{byte:02X}" if not 0x20 <= byte <= 0x7E or byte == 0x22 else chr(byte)


@lru_cache(maxsize=64)
def _is_plain(text: str) -> bool:
    """Tell whether a text stands for itself between quotes."""
    return text.isascii() and text.isprintable() and '"' not in text and "\\" not in text
