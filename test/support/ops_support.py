"""Helpers of the op tests: parse lines of IR with free operands, infer types from text, check round trips."""

from __future__ import annotations

from io import StringIO

from xdsl.context import Context
from xdsl.dialects.arith import Arith
from xdsl.dialects.builtin import Builtin, ModuleOp
from xdsl.dialects.func import Func
from xdsl.dialects.test import Test, TestOp
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.parser import Parser
from xdsl.printer import Printer

from cute_dialect.dialect.registry import get_cute_dialect


def context() -> Context:
    """Return a context with the dialects that the tests use."""
    ctx = Context()
    for dialect in (Builtin, Arith, Func, Test):
        ctx.load_dialect(dialect)
    ctx.load_dialect(get_cute_dialect())
    return ctx


CONTEXT = context()


def type_of(text: str) -> Attribute:
    """Return the type of a short text: ``"layout (6,5):(5,1)"`` is ``!cute.layout<"(6,5):(5,1)">``.

    A text that contains ``!`` or no blank is parsed as it is.
    """
    kind, blank, payload = text.partition(" ")
    if blank and not text.startswith("!"):
        text = f'!cute.{kind}<"{payload}">'
    return Parser(CONTEXT, text).parse_type()


def value_of(text: str) -> SSAValue:
    """Return a value of the type that :func:`type_of` parses."""
    return TestOp(result_types=[type_of(text)]).results[0]


def op_class(name: str) -> type[Operation]:
    """Return the class of ``cute.<name>``."""
    return CONTEXT.get_op(f"cute.{name}")


def parse(text: str) -> ModuleOp:
    """Parse lines of IR into a module, without verifying it.

    ``test.op`` defines the operands that no line defines.
    """
    parser = Parser(CONTEXT, text)
    ops: list[Operation] = []
    while (op := parser.parse_optional_operation()) is not None:
        ops.append(op)
    parser._parse_token(parser._current_token.kind.EOF, "an operation expected")  # pyright: ignore
    module = ModuleOp([])
    for name, references in parser.forward_ssa_references.items():
        for value in references.values():
            source = TestOp(result_types=[value.type])
            source.results[0].name_hint = name if not name.isdigit() else None
            value.replace_all_uses_with(source.results[0])
            module.body.block.add_op(source)
    module.body.block.add_ops(ops)
    return module


def verified(text: str) -> ModuleOp:
    """Parse lines of IR as :func:`parse` does, and verify the module."""
    module = parse(text)
    module.verify()
    return module


def printed(op: Operation, *, generic: bool = False) -> str:
    """Return the text of an op."""
    out = StringIO()
    Printer(stream=out, print_generic_format=generic).print_op(op)
    return out.getvalue()


def cute_lines(module: ModuleOp) -> list[str]:
    """Return the custom form of the cute ops of a module."""
    lines = printed(module).splitlines()
    return [line.strip() for line in lines if "cute." in line and '"test.op"' not in line]


def round_trip(text: str) -> list[str]:
    """Check the round trips custom -> custom and custom -> generic -> custom, and return the custom lines."""
    module = verified(text)
    custom = printed(module)
    again = Parser(CONTEXT, custom).parse_module()
    again.verify()
    assert printed(again) == custom
    generic = Parser(CONTEXT, printed(module, generic=True)).parse_module()
    generic.verify()
    assert printed(generic) == custom
    assert printed(generic, generic=True) == printed(module, generic=True)
    return cute_lines(module)
