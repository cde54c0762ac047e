"""Generic form passed from program to program: cute-opt, xDSL, upstream MLIR, and back without a difference."""

from __future__ import annotations

from io import StringIO
from pathlib import Path
from types import ModuleType

import pytest
from xdsl.context import Context
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.universe import Universe

from cute_dialect.ir.printing import ir_text
from cute_dialect.pipelines.compiler import parse_module

EXAMPLES = sorted((Path(__file__).parents[1] / "examples").glob("*.mlir"))


@pytest.mark.slow
@pytest.mark.parametrize("path", EXAMPLES, ids=lambda p: p.stem)
def test_xdsl(path: Path) -> None:
    module = parse_module(path.read_text())
    context = Context()
    for name, factory in Universe.get_multiverse().all_dialects.items():
        context.register_dialect(name, factory)
    theirs = Parser(context, ir_text(module, generic=True)).parse_module()
    theirs.verify()
    out = StringIO()
    Printer(out, print_generic_format=True).print_op(theirs)
    assert ir_text(parse_module(out.getvalue())) == ir_text(module)


@pytest.mark.sample("elementwise_add")
@pytest.mark.parametrize("path", EXAMPLES, ids=lambda p: p.stem)
def test_upstream(path: Path, ir: ModuleType) -> None:
    module = parse_module(path.read_text())
    with ir.Context() as context:
        context.allow_unregistered_dialects = True
        theirs = ir.Module.parse(ir_text(module, generic=True))
        text = theirs.operation.get_asm(print_generic_op_form=True)
    assert ir_text(parse_module(text)) == ir_text(module)
