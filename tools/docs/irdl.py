"""Generator of an IRDL description of the core dialect, for upstream's ``mlir-opt --irdl-file=…``.

    python -m cute_dialect.tools.docs.irdl -o cute.irdl.mlir             # the description of the dialect
    python -m cute_dialect.tools.docs.irdl FILE -o file.generic.mlir     # a file of cute IR for upstream
    mlir-opt --irdl-file=cute.irdl.mlir file.generic.mlir

The description lists the kinds and numbers of operands and results of an op and its required attributes.  IRDL cannot
express the following:

* the inference of result types, and the syntax of the string in a type: any string is accepted;
* optional attributes: they (``mode`` of ``get``, ``only_dynamic``) are not declared;
* variadic groups of values with different types: such a group is declared as :data:`MOST` optional values, and ops with
  more than one have the attributes ``operandSegmentSizes`` / ``resultSegmentSizes``;
* a type and an attribute of the same name: the attributes ``#cute.layout<"…">`` are omitted;
* types that are not a list of attributes: pointers, memrefs and other memory types are omitted, so ops accept no
  tensors.

Ops loaded from IRDL have neither a custom form nor properties, so the input is in generic form with properties in the
attribute dictionary.  :func:`interchange_text` writes it.  ``cute-opt`` reads the output of upstream.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from io import StringIO
from pathlib import Path

from xdsl.dialects.builtin import DenseArrayBase, IntegerType, ModuleOp, i32
from xdsl.ir import Operation
from xdsl.irdl import BaseAttr, EqAttrConstraint, IRDLOperation, OperandDef, OptionalDef, ResultDef, VariadicDef
from xdsl.printer import Printer

from cute_dialect.dialect.base import CuteOp, element_constraint
from cute_dialect.dialect.make import ScalarInt
from cute_dialect.dialect.registry import core_ops
from cute_dialect.dialect.typed_values import OneOfKinds
from cute_dialect.dialect.types import TYPES
from cute_dialect.ir.context import make_context
from cute_dialect.ir.diagnostics import DiagnosticEngine, Source, StreamHandler
from cute_dialect.ir.parsing import parse_module
from cute_dialect.ir.verifier import verify

MOST = 16
"""Maximum number of values of a variadic group in the description."""

_ATTRIBUTE = {"DenseArrayBase": '"#builtin.dense_array"', "IntegerAttr": '"#builtin.integer"'}


class _Body:
    """The lines of one operation.  Positions do not share a constraint, because IRDL would require equal types."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self._count = 0

    def add(self, text: str) -> str:
        name = f"%{self._count}"
        self._count += 1
        self.lines.append(f"{name} = {text}")
        return name

    def kind(self, kind: str) -> str:
        # irdl.base @type is equivalent, but is not allowed inside irdl.any_of.
        text = self.add('irdl.base "#builtin.string"')
        return self.add(f"irdl.parametric @cute::@{kind}<{text}>")

    def any_of(self, names: Sequence[str]) -> str:
        return names[0] if len(names) == 1 else self.add(f"irdl.any_of({', '.join(names)})")

    def type_of(self, definition: OperandDef | ResultDef) -> str:
        """Add a constraint on an operand or result and return its name."""
        constraint = element_constraint(definition)
        integers = ["irdl.is i32", "irdl.is i64"]
        if isinstance(constraint, OneOfKinds):
            return self.any_of([self.kind(k) for k in TYPES if k in constraint.kinds])
        if isinstance(constraint, ScalarInt):
            return self.any_of([*map(self.add, integers), self.kind("int_tuple")])
        if isinstance(constraint, EqAttrConstraint):
            return self.add(f"irdl.is {constraint.attr}")  # pyright: ignore[reportUnknownMemberType]
        if isinstance(constraint, BaseAttr) and constraint.attr is IntegerType:  # pyright: ignore[reportUnknownMemberType]
            return self.any_of([*map(self.add, integers)])
        return self.any_of([self.kind(k) for k in TYPES])

    def add_list(self, what: str, definitions: Sequence[tuple[str, OperandDef | ResultDef]]) -> None:
        entries: list[str] = []
        for name, definition in definitions:
            if is_variadic(definition):
                entries += [f"{name}{i}: optional {self.type_of(definition)}" for i in range(MOST)]
            else:
                how = "optional " if isinstance(definition, OptionalDef) else ""
                entries.append(f"{name}: {how}{self.type_of(definition)}")
        if entries:
            self.lines.append(f"irdl.{what}({', '.join(entries)})")


def is_variadic(definition: OperandDef | ResultDef) -> bool:
    return isinstance(definition, VariadicDef) and not isinstance(definition, OptionalDef)


def operation_text(op: type[IRDLOperation]) -> str:
    """Return ``irdl.operation @name { … }``."""
    definition, body = op.get_irdl_definition(), _Body()
    body.add_list("operands", definition.operands)
    body.add_list("results", definition.results)
    attributes: list[str] = []
    for name, attribute in definition.properties.items():
        base = next((b for kind, b in _ATTRIBUTE.items() if kind in str(attribute.constr)), None)
        if base is not None and not isinstance(attribute, OptionalDef):
            attributes.append(f'"{name}" = {body.add(f"irdl.base {base}")}')
    if attributes:
        body.lines.append(f"irdl.attributes {{ {', '.join(attributes)} }}")
    lines = "".join(f"    {line}\n" for line in body.lines)
    return f"  irdl.operation @{op.name.removeprefix('cute.')} {{\n{lines}  }}\n"


def irdl_text() -> str:
    """Return the module ``irdl.dialect @cute { … }`` with eight string-parametrized types and the core ops."""
    types = [
        f'  irdl.type @{kind} {{\n    %0 = irdl.base "#builtin.string"\n    irdl.parameters(text: %0)\n  }}\n'
        for kind in TYPES
    ]
    ops: list[str] = []
    for op in core_ops():
        assert issubclass(op, IRDLOperation)
        ops.append(operation_text(op))
    return "irdl.dialect @cute {\n" + "".join(types) + "".join(ops) + "}\n"


def interchange_text(module: Operation) -> str:
    """Return a module in the form that upstream reads: generic, properties as attributes, with segment sizes.

    Raises:
        ValueError: an op has more than :data:`MOST` operands or results in one variadic group.
    """
    copy = module.clone()
    for op in copy.walk():
        if not isinstance(op, CuteOp):
            continue
        definition = op.get_irdl_definition()
        for name, definitions, values in (
            ("operandSegmentSizes", definition.operands, op.operands),
            ("resultSegmentSizes", definition.results, op.results),
        ):
            if any(is_variadic(d) for _, d in definitions):
                if len(values) > MOST:
                    raise ValueError(f"expected at most {MOST} values in '{op.name}', got {len(values)}")
                sizes = [1] * len(values) + [0] * (MOST - len(values))
                op.attributes[name] = DenseArrayBase.from_list(i32, sizes)
    out = StringIO()
    Printer(stream=out, print_generic_format=True, print_properties_as_attributes=True).print_op(copy)
    return out.getvalue()


def read_file(path: Path) -> ModuleOp | None:
    """Parse a file of cute IR; return None after reporting errors on standard error."""
    source = Source(str(path), path.read_text())
    engine = DiagnosticEngine(StreamHandler(sys.stderr, {source.name: source}), source.name)
    module = parse_module(make_context(), source, engine)
    return module if module is not None and verify(module, engine) else None


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the program and return the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m cute_dialect.tools.docs.irdl",
        description="Write the core dialect in IRDL, or a file of cute IR for it.",
    )
    parser.add_argument("file", type=Path, nargs="?", help="cute IR to convert (default: write the dialect)")
    parser.add_argument("-o", "--output", type=Path, help="output file (default: standard output)")
    options = parser.parse_args(arguments)
    text = irdl_text()
    if options.file is not None:
        module = read_file(options.file)
        if module is None:
            return 1
        text = interchange_text(module) + "\n"
    if options.output is None:
        sys.stdout.write(text)
    else:
        options.output.write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
