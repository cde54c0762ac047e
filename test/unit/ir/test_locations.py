"""Location syntax: aliases used before and after their definition, every kind of location, ranges, and errors."""

from __future__ import annotations

import pytest

from cute_dialect.ir.context import make_context
from cute_dialect.ir.diagnostics import DiagnosticEngine, Source
from cute_dialect.ir.parsing import parse_module
from cute_dialect.ir.printing import ir_text

TEXT = """\
#loc7 = loc("early.mlir":1:1)
module {
  func.func @f(%arg0: i32 loc("x.mlir":1:2), %arg1: i32 loc(#loc9)) -> i32 {
    %0 = arith.addi %arg0, %arg1 : i32 loc(LOC)
    return %0 : i32
  } loc(#loc1)
} loc(#loc)
#loc = loc(unknown)
#loc1 = loc("f.mlir":1:2)
#loc4 = loc("n"(#loc1))
#loc9 = loc(fused[#loc1, #loc4])
"""


def parse(location: str) -> tuple[str | None, list[str]]:
    """Parse a module whose add has this location. Return its printed form with locations, and the errors."""
    engine = DiagnosticEngine()
    module = parse_module(make_context(), Source("in.mlir", TEXT.replace("LOC", location)), engine)
    wrong = [f"{d.position.line}:{d.position.col}: {d.message}" for d in engine.seen]
    return (None if module is None else ir_text(module, debuginfo=True)), wrong


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("#loc7", '"early.mlir":1:1'),
        ("#loc1", '"f.mlir":1:2'),
        ("#loc4", '"n"("f.mlir":1:2)'),
        ('callsite(#loc4 at "g"(#loc7))', 'callsite("n"("f.mlir":1:2) at "g"("early.mlir":1:1))'),
        ('fused[#loc1, "z", unknown]', 'fused["f.mlir":1:2, "z", unknown]'),
        ('fused<#llvm.cconv<fastcc>>[#loc1, "z"]', 'fused["f.mlir":1:2, "z"]'),
        ('"u.mlir":3:4 to :9', '"u.mlir":3:4'),
        ('"u.mlir":3:4 to 5:9', '"u.mlir":3:4'),
        ("unknown", "unknown"),
    ],
)
def test_locations_are_read(written: str, read: str) -> None:
    text, wrong = parse(written)
    assert not wrong and text is not None
    assert f"arith.addi %arg0, %arg1 : i32 loc({read})" in text
    assert 'func.func @f(%arg0: i32 loc("x.mlir":1:2), %arg1: i32 loc(fused["f.mlir":1:2, "n"("f.mlir":1:2)]))' in text
    assert '} loc("f.mlir":1:2)\n} loc(unknown)' in text.replace("  }", "}")


@pytest.mark.parametrize(
    ("written", "message"),
    [
        ("#loc5", "4:44: undefined symbol alias '#loc5'"),
        ('"f":1', "4:49: "),
        ("fuzed[#loc1]", "4:"),
        ("callsite(#loc1)", "4:"),
    ],
)
def test_invalid_locations_are_reported(written: str, message: str) -> None:
    text, wrong = parse(written)
    assert text is None and len(wrong) == 1 and wrong[0].startswith(message), wrong


def test_aliases_of_other_attributes() -> None:
    engine = DiagnosticEngine()
    source = Source("in.mlir", '"x.y"() : () -> () loc(#a)\n#a = 3 : i32\n')
    assert parse_module(make_context(allow_unregistered=True), source, engine) is None
    assert engine.seen[0].message == "expected a location, but the alias '#a' is another kind of attribute"
