"""The text that crosses to upstream MLIR: generic form, printed fast.

xDSL's printer takes about 70 µs an op, most of it for types and attributes that repeat; a kernel before folding has
thousands of ops.  Here values get numbers, every type and attribute is printed once, and the text is joined at the end.
Only upstream reads it: names of values are lost, nothing is indented.

    "arith.addi"(%3, %4) <{"overflowFlags" = #arith.overflow<none>}> : (i32, i32) -> i32
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, cast

from xdsl.dialects.builtin import (
    DenseArrayBase,
    DictionaryAttr,
    FileLineColLoc,
    IntegerAttr,
    IntegerType,
    UnitAttr,
    UnknownLoc,
    UnregisteredOp,
)

if TYPE_CHECKING:  # pragma: no cover
    from xdsl.ir import Attribute, Block, BlockArgument, Operation, Region, SSAValue

from cute_dialect.upstream.typed import width

__all__ = ["handoff_text"]

_LONG = 80
"""A struct type whose text is longer is written once, as an alias: accumulators have hundreds of members."""


def handoff_text(
    module: Operation,
    *,
    locations: bool = True,
    retold: Mapping[Attribute, str] | None = None,
) -> str:
    """``module`` in generic form.  ``locations`` adds where each op comes from, so that errors can say it.

    ``retold`` gives the text of locations that are to be written otherwise than they are; with it an op without a
    location says so, where otherwise upstream would take a place in this text.
    """
    writer = _Writer(locations, retold or {})
    writer.op(module)
    return "".join([*writer.aliases, *writer.parts])


def _number_text(attribute: Attribute) -> str | None:
    """The text of an integer attribute and of an array of integers, of which there are the most."""
    if isinstance(attribute, IntegerAttr):
        bits = width(cast("IntegerAttr[IntegerType]", attribute).type)
        return None if bits is None or bits == 1 else f"{attribute.value.data} : i{bits}"
    if isinstance(attribute, DenseArrayBase):
        array = cast("DenseArrayBase[IntegerType]", attribute)
        bits = width(array.elt_type)
        numbers = ", ".join(map(str, array.get_values())) if len(array) else ""
        return f"array<i{bits}: {numbers}>" if numbers and bits is not None and bits > 1 else None
    return None


class _Writer:
    def __init__(self, locations: bool, retold: Mapping[Attribute, str]):
        self.retold = retold
        self.parts: list[str] = []
        self.aliases: list[str] = []
        self.values: dict[int, str] = {}
        """By identity, as types and attributes are: the module is there as long as the writer is."""
        self.blocks: dict[Block, str] = {}
        self.texts: dict[int, str] = {}
        self.by_value: dict[Attribute, str] = {}
        self.locations = locations

    def attribute(self, attribute: Attribute) -> str:
        """The text of a type or attribute; equal ones are printed once."""
        text = self.texts.get(id(attribute))
        if text is None and type(attribute) is DictionaryAttr:  # its parts are shared more often than it is
            text = self.texts[id(attribute)] = self.dictionary(attribute.data)
        if text is None:
            text = self.by_value.get(attribute)
            if text is None:
                text = _number_text(attribute) or str(attribute)
                if len(text) > _LONG and text.startswith("!llvm.struct"):
                    name = f"!s{len(self.aliases)}"
                    self.aliases.append(f"{name} = {text}\n")
                    text = name
                self.by_value[attribute] = text
            self.texts[id(attribute)] = text
        return text

    def block_name(self, block: Block) -> str:
        """The label of a block."""
        name = self.blocks.get(block)
        if name is None:
            name = self.blocks[block] = f"^bb{len(self.blocks)}"
        return name

    def dictionary(self, given: Mapping[str, Attribute]) -> str:
        """``{"key" = value, "unit"}``."""
        texts, items = self.texts, list[str]()
        for key, value in given.items():
            if type(value) is UnitAttr:
                items.append(f'"{key}"')
            else:
                items.append(f'"{key}" = {texts.get(id(value)) or self.attribute(value)}')
        return "{" + ", ".join(items) + "}"

    def names(self, values: Sequence[SSAValue]) -> str:
        """The names of values.  Where blocks branch, a use may come before the definition."""
        known = self.values
        found: list[str] = []
        for value in values:
            name = known.get(id(value))
            if name is None:
                name = known[id(value)] = f"%{len(known)}"
            found.append(name)
        return ", ".join(found)

    def types(self, values: Sequence[SSAValue]) -> str:
        """The types of values."""
        texts = self.texts
        return ", ".join([texts.get(id(t)) or self.attribute(t) for t in [v.type for v in values]])

    def op(self, op: Operation) -> None:
        """One op with its regions."""
        operands, results, attributes = tuple(op.operands), op.results, op.attributes
        name = op.name
        if name == "builtin.unregistered":
            assert isinstance(op, UnregisteredOp)
            name = op.op_name.data
            attributes = {k: v for k, v in attributes.items() if k != "op_name__"}
        head = f'{self.names(results)} = "{name}"(' if results else f'"{name}"('
        head += f"{self.names(operands)})" if operands else ")"
        if op.successors:
            head += "[" + ", ".join([self.block_name(b) for b in op.successors]) + "]"
        if op.properties:
            head += f" <{self.dictionary(op.properties)}>"
        if op.regions:
            self.parts.append(head + " (")
            for i, region in enumerate(op.regions):
                if i:
                    self.parts.append(", ")
                self.region(region)
            head = ")"
        if attributes:
            head += f" {self.dictionary(attributes)}"
        self.parts.append(f"{head} : ({self.types(operands)}) -> ({self.types(results)})")
        self.end(op)

    def end(self, op: Operation) -> None:
        """The location of an op, and the end of its line."""
        if self.locations and (self.retold or type(op.location) is not UnknownLoc):
            self.parts.append(f" {self.location(op.location)}\n")
        else:
            self.parts.append("\n")

    def value_name(self, value: SSAValue) -> str:
        """The name of a value."""
        return self.values.setdefault(id(value), f"%{len(self.values)}")

    def region(self, region: Region) -> None:
        """A region; every block has its label, but for an entry block that takes nothing and is not empty."""
        out = self.parts.append
        out("{\n")
        for i, block in enumerate(region.blocks):
            if i or block.args or block.first_op is None:
                arguments = ", ".join(
                    [f"{self.value_name(a)}: {self.attribute(a.type)}{self.argument_location(a)}" for a in block.args]
                )
                out(f"{self.block_name(block)}({arguments}):\n" if arguments else f"{self.block_name(block)}:\n")
            for op in block.ops:
                self.op(op)
        out("}")

    def argument_location(self, argument: BlockArgument) -> str:
        """The location of a block argument; without one, upstream would take a place in this text."""
        if not self.locations:
            return ""
        location = argument.location
        return " loc(unknown)" if type(location) is UnknownLoc else " " + self.location(location)

    def location(self, location: Attribute) -> str:
        """``loc("file":line:col)``."""
        text = self.texts.get(id(location))
        if text is None:
            if location in self.retold:
                text = self.retold[location]
            elif isinstance(location, FileLineColLoc):
                file = location.filename.data.replace("\\", "\\\\").replace('"', '\\"')
                text = f'loc("{file}":{location.line.data}:{location.column.data})'
            else:
                text = self.attribute(location)
            self.texts[id(location)] = text
        return text
