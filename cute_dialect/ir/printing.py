"""Printer for IR, used by all tools, with the same output as upstream MLIR.

* The dialect of an op's name is omitted where upstream omits it: in ``module``, and in ``return`` and ``call`` directly
  inside a ``func.func``.
* Values are named as by upstream's ``AsmPrinter``: ``%arg0`` for arguments of entry blocks; ``%c4_i32``, ``%true`` and
  ``%cst`` for constants; numbers for all others; ``%0:2`` for an op with two results.  With ``source_names``
  (``--mlir-use-nameloc-as-prefix``) values keep their names in the source.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from io import StringIO
from typing import cast

from xdsl.dialects.builtin import IndexType, IntegerAttr, IntegerType
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.traits import IsolatedFromAbove

from cute_dialect.ir.generic import GenericWriter
from cute_dialect.ir.xdsl_compat import OpenPrinter


class IRPrinter(OpenPrinter):
    """xDSL's printer with op names shortened and values named as in upstream MLIR."""

    def __init__(
        self,
        stream: StringIO,
        *,
        generic: bool = False,
        debuginfo: bool = False,
        source_names: bool = False,
        aliases: Mapping[str, Attribute] | None = None,
        comments: Mapping[Operation, Sequence[str]] | None = None,
    ):
        super().__init__(stream=stream, print_generic_format=generic, print_debuginfo=debuginfo)
        self._write = stream.write
        self._aliases: dict[Attribute, str] = {}
        for name, attribute in (aliases or {}).items():
            self.print_string(f"!{name} = ")
            self.print_attribute(attribute)
            self.print_string("\n")
            self._aliases[attribute] = f"!{name}"
        self._names: dict[SSAValue, str] = {}
        self._block_labels: dict[Block, int] = {}
        self._source_names = source_names
        self._comments = comments or {}

    def print_string(self, text: str, *, indent: int | None = None) -> None:
        """Print a string, as xDSL does."""
        if "\n" in text:
            super().print_string(text, indent=indent)
        else:
            self._write(text)

    def text_of(self, print_it: Callable[[], object]) -> str:
        """Return the text that a method of this printer prints, without printing it."""
        stream, write = self.stream, self._write
        self.stream = out = StringIO()
        self._write = out.write
        try:
            print_it()
        finally:
            self.stream, self._write = stream, write
        return out.getvalue()

    def print_attribute(self, attribute: Attribute) -> None:
        """Print an attribute, or its alias if it has one."""
        alias = self._aliases.get(attribute) if self._aliases else None
        if alias is not None:
            self.print_string(alias)
        else:
            super().print_attribute(attribute)

    def print_root(self, op: Operation) -> None:
        """Print an op with all nested ops."""
        namer = _Namer(self._names, self._block_labels, self._source_names, self.print_generic_format)
        namer.op(op)
        if self.print_generic_format:
            self._write(_ReadableGeneric(self, self._names, self._block_labels).write(op))
        else:
            self.print_op(op)

    def print_op(self, op: Operation) -> None:
        """Print the comments of an op and the op, with its name shortened if the enclosing op allows it."""
        for line in self._comments.get(op, ()):
            self.print_string(f"// {line}".rstrip() + "\n")
        if type(op).print is Operation.print or not _elided(op):
            super().print_op(op)
            return
        scope = bool(op.get_traits_of_type(IsolatedFromAbove))
        self.print_results(op)
        if scope:
            self.enter_scope()
        self.print_string(op.name.split(".", 1)[1])
        op.print(self)
        if self.print_debuginfo:
            self.print_string(" ")
            self.print_attribute(op.location)
        if scope:
            self.exit_scope()

    def print_results(self, op: Operation) -> None:
        """Print the names of an op's results and ``=``."""
        results = op.results
        if len(results) > 1 and results[0] in self._names:
            base = self._names[results[0]].split("#", 1)[0]
            self.print_string(f"%{base}:{len(results)} = ")
        else:
            super().print_results(op)

    def print_attr_dict(self, attr_dict: Mapping[str, Attribute]) -> None:
        """Print a dictionary, sorted by name as in upstream MLIR."""
        super().print_attr_dict(dict(sorted(attr_dict.items())))

    def print_successors(self, successors: Sequence[Block]) -> None:
        """Print ``[^bb1]`` without a leading space."""
        if successors:
            with self.in_square_brackets():
                self.print_list(successors, self.print_block_name)

    def print_ssa_value(self, value: SSAValue) -> str:
        """Print a value and return its name."""
        name = self._names.get(value)
        if name is None:
            return super().print_ssa_value(value)
        self.print_string(f"%{name}")
        return name

    def print_block_name(self, block: Block) -> str:
        """Print the label of a block and return it."""
        number = self._block_labels.get(block)
        if number is None:
            return super().print_block_name(block)
        name = f"bb{number}"
        self.print_string(f"^{name}")
        return name


class _ReadableGeneric(GenericWriter):
    """Writer of the generic form with upstream's names and labels; ``printer`` prints the attributes."""

    def __init__(self, printer: IRPrinter, names: Mapping[SSAValue, str], labels: Mapping[Block, int]):
        super().__init__(locations=printer.print_debuginfo, unknown_locations=True)
        self._printer = printer
        self._values.update({id(value): f"%{name}" for value, name in names.items()})
        self._blocks.update({block: f"^bb{number}" for block, number in labels.items()})

    def name_value(self, value: SSAValue) -> str:
        return self._printer.text_of(lambda: self._printer.print_ssa_value(value))

    def name_block(self, block: Block) -> str:
        return self._printer.text_of(lambda: self._printer.print_block_name(block))

    def write_attribute(self, attribute: Attribute) -> str:
        return self._printer.text_of(lambda: self._printer.print_attribute(attribute))


class _Namer:
    """Assigns a name to every value: first to all values of a region, then to those of nested regions.

    In generic form numbers are not reused in sibling regions, regions are visited last first, and constants are
    numbered like all other values.
    """

    def __init__(self, names: dict[SSAValue, str], labels: dict[Block, int], source_names: bool, generic: bool):
        self._names = names
        self._generic = generic
        self._labels = labels
        self._source = source_names
        self._value = 0
        self._argument = 0
        self._conflict = 0
        self._used: list[set[str]] = [set()]

    def op(self, op: Operation) -> None:
        """Name the results of an op and the values in its regions."""
        self._results(op)
        if not self._generic:
            self._regions(op)
            return
        stack = [(region, self._used) for region in op.regions]
        while stack:
            region, around = stack.pop()
            self._used = [*around, set()]
            self._values(region)
            stack += [(r, self._used) for block in region.blocks for inner in block.ops for r in inner.regions]

    def _regions(self, op: Operation) -> None:
        for region in op.regions:
            saved = (self._value, self._argument, self._conflict)
            self._used.append(set())
            self._region(region)
            self._used.pop()
            self._value, self._argument, self._conflict = saved

    def _region(self, region: Region) -> None:
        self._values(region)
        for block in region.blocks:
            for op in block.ops:
                if op.regions:
                    self._regions(op)

    def _values(self, region: Region) -> None:
        for number, block in enumerate(region.blocks):
            self._labels[block] = number
            for argument in block.args:
                if self._source and argument.name_hint:
                    name = self._unique(argument.name_hint)
                elif number == 0:
                    name = self._unique(f"arg{self._argument}")
                    self._argument += 1
                else:
                    name = self._number()
                self._names[argument] = name
            for op in block.ops:
                self._results(op)

    def _results(self, op: Operation) -> None:
        results = op.results
        if not results:
            return
        hint = results[0].name_hint if self._source else None
        suggested = hint or (None if self._generic else _constant_name(op))
        name = self._number() if suggested is None else self._unique(suggested)
        if len(results) == 1:
            self._names[results[0]] = name
        else:
            for i, result in enumerate(results):
                self._names[result] = f"{name}#{i}"

    def _number(self) -> str:
        self._value += 1
        return str(self._value - 1)

    def _unique(self, name: str) -> str:
        if any(name in scope for scope in self._used):
            while True:
                probe = f"{name}_{self._conflict}"
                self._conflict += 1
                if not any(probe in scope for scope in self._used):
                    name = probe
                    break
        self._used[-1].add(name)
        return name


def _constant_name(op: Operation) -> str | None:
    """Return upstream's name for a constant: ``c4_i32``, ``c4`` (index), ``true``, ``cst``."""
    if op.name != "arith.constant":
        return None
    value = op.properties.get("value")
    if not isinstance(value, IntegerAttr):
        return "cst"
    number = value.value.data
    value_type = cast("IntegerAttr[IntegerType | IndexType]", value).type
    if isinstance(value_type, IndexType):
        return f"c{number}"
    if value_type.width.data == 1:
        return "true" if number else "false"
    return f"c{number}_{value_type}"


def _elided(op: Operation) -> bool:
    """Return True if upstream omits the dialect of the op's name."""
    parent = op.parent_op()
    if op.name.startswith("builtin."):
        return parent is None or parent.name == "builtin.module"
    return parent is not None and parent.name == "func.func" and op.name.startswith("func.")


def ir_text(
    op: Operation,
    *,
    generic: bool = False,
    debuginfo: bool = False,
    source_names: bool = False,
    aliases: Mapping[str, Attribute] | None = None,
    comments: Mapping[Operation, Sequence[str]] | None = None,
) -> str:
    """Return the text of an op, which ends with a newline.

    Args:
        op: op to print.
        generic: print the generic form.
        debuginfo: print the location of every op and block argument.
        source_names: keep the names of values in the source.
        aliases: names for types, which are defined at the top.
        comments: comment lines above ops; ignored in generic form.
    """
    out = StringIO()
    IRPrinter(
        out, generic=generic, debuginfo=debuginfo, source_names=source_names, aliases=aliases, comments=comments
    ).print_root(op)
    out.write("\n")
    return out.getvalue()
