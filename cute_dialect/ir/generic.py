"""Fast writer of the generic form of IR, for users and for upstream MLIR.

xDSL's printer takes about 70 µs per op, mostly for types and attributes, which repeat.  A kernel has thousands of ops
before folding.  This writer formats every type and attribute once and joins the text at the end, which takes a third of
the time.

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
    """Writes an op with all nested ops.  Values and blocks without a name are numbered.

    Args:
        locations: write the location of each op.
        unknown_locations: also write unknown locations.
    """

    def __init__(self, *, locations: bool = False, unknown_locations: bool = False):
        self._parts: list[str] = []
        self._values: dict[int, str] = {}
        """Names by the identity of the value.  The writer does not outlive the module, so identities are stable."""
        self._blocks: dict[Block, str] = {}
        self._texts: dict[int, str] = {}
        self._by_value: dict[Attribute, str] = {}
        self._locations = locations
        self._unknown_locations = unknown_locations

    def write(self, op: Operation) -> str:
        """Return the text of an op without a line break at its end."""
        self._op(op, "\n")
        return "".join(self._parts)

    # ------------------------------------------------------------------------------------------ hooks of subclasses

    def name_value(self, value: SSAValue) -> str:
        """Return the name for a value that has none."""
        return f"%{len(self._values)}"

    def name_block(self, block: Block) -> str:
        """Return the label for a block that has none."""
        return f"^bb{len(self._blocks)}"

    def write_attribute(self, attribute: Attribute) -> str:
        """Return the text of a type or attribute that has not been written before."""
        return str(attribute)

    def write_op_location(self, op: Operation) -> str:
        """Return the ``loc(…)`` of an op."""
        return self._location(op.location)

    def write_location(self, location: Attribute) -> str:
        """Return ``loc("file":line:col)``."""
        if isinstance(location, FileLineColLoc) and _is_plain(location.filename.data):
            return f'loc("{location.filename.data}":{location.line.data}:{location.column.data})'
        return self._attribute(location)

    # ------------------------------------------------------------------------------------------------------ the text

    def _attribute(self, attribute: Attribute) -> str:
        text = self._texts.get(id(attribute))
        if text is None and type(attribute) is DictionaryAttr:  # Its parts repeat more often than the dictionary.
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
        """Return ``{key = value, unit}``, sorted by key as in upstream MLIR."""
        texts, items = self._texts, list[str]()
        for key in sorted(given) if len(given) > 1 else given:
            value = given[key]
            if type(value) is UnitAttr:
                items.append(_key_text(key))
            else:
                items.append(f"{_key_text(key)} = {texts.get(id(value)) or self._attribute(value)}")
        return "{" + ", ".join(items) + "}"

    def _names(self, values: Sequence[SSAValue]) -> str:
        """Return the names of values.  With several blocks, a use may come before the definition."""
        known = self._values
        found: list[str] = []
        for value in values:
            name = known.get(id(value))
            if name is None:
                name = known[id(value)] = self.name_value(value)
            found.append(name)
        return ", ".join(found)

    def _results(self, results: Sequence[SSAValue]) -> str:
        """Return the names of an op's results: ``%0:2`` for two results."""
        names = self._names(results)
        return f"{names.partition('#')[0]}:{len(results)}" if "#" in names else names

    def _types(self, values: Sequence[SSAValue]) -> str:
        texts = self._texts
        return ", ".join([texts.get(id(t)) or self._attribute(t) for t in [v.type for v in values]])

    def _op(self, op: Operation, line: str) -> None:
        """Write an op with its regions; ``line`` is the line break with the current indentation."""
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
        defaults: Mapping[str, Attribute] | None = getattr(type(op), "DEFAULT_PROPERTIES", None)
        if defaults:
            properties = {**defaults, **properties}
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
        """Write a region.  Every block has a label, except a nonempty entry block without arguments."""
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
        """Return the type and location of a block argument.  Without a location, upstream assigns one in the text."""
        text = self._attribute(argument.type)
        return f"{text} {self._location(argument.location)}" if self._locations else text


def _number_text(attribute: Attribute) -> str | None:
    """Return the text of an integer attribute or an integer array, the most frequent kinds."""
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
    """Return the width of a signless integer type whose values are written as numbers, or None for another type."""
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
    """Return True if a string needs no escapes between quotes."""
    return text.isascii() and text.isprintable() and '"' not in text and "\\" not in text
