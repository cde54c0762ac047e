"""Detection of cute ops, types and attributes that remain anywhere in a module passed to upstream MLIR."""

import pytest
from xdsl.dialects.builtin import ModuleOp

from cute_dialect.ir.context import make_context
from cute_dialect.ir.diagnostics import DiagnosticEngine, Source
from cute_dialect.ir.parsing import parse_module
from cute_dialect.pipelines.runner import first_cute, is_cute

TYPE = '!cute.int_tuple<"(?,?)">'


def parsed(text: str) -> ModuleOp:
    engine = DiagnosticEngine()
    module = parse_module(make_context(), Source("t.mlir", text), engine)
    assert module is not None, engine.seen
    return module


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("func.func @f(%a: i32) -> i32 {\n  return %a : i32\n}", None),
        (f"func.func private @f({TYPE})", "func.func"),
        (f"func.func private @f(i32) -> {TYPE}", "func.func"),
        ("func.func @f() {\n  %s = cute.static : !cute.int_tuple<\"3\">\n  return\n}", "cute.static"),
        (
            'func.func @f(%a: i32) {\n  cf.br ^b\n^b:\n  %b = "builtin.unrealized_conversion_cast"(%a)'
            f" : (i32) -> {TYPE}\n  return\n}}",
            "builtin.unrealized_conversion_cast",
        ),
        (
            'func.func @f(%p: i1) {\n  cf.br ^b\n^a:\n  "builtin.unrealized_conversion_cast"(%b)'
            f" : ({TYPE}) -> ()\n  return\n^b:\n"
            f'  %b = "builtin.unrealized_conversion_cast"(%p) : (i1) -> {TYPE}\n  cf.br ^a\n}}',
            "builtin.unrealized_conversion_cast",
        ),
        (f'func.func @f() {{\n  cf.br ^b\n^b:\n  return\n^c(%c: {TYPE}):\n  return\n}}', "func.func"),
    ],
)  # fmt: skip
def test_first(text: str, found: str | None) -> None:
    module = parsed(text)
    op = first_cute(module)
    assert op is next((o for o in module.walk() if is_cute(o)), None)
    assert (op.name if op is not None else None) == found
