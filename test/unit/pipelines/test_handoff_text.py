"""The text passed to upstream MLIR: it parses to the same module as the output of xDSL's printer."""

from __future__ import annotations

from pathlib import Path

import pytest
from pipelines_support import add_module, kernel, module
from xdsl.dialects.builtin import DenseArrayBase, IndexType, IntegerAttr, IntegerType, Signedness, UnitAttr, f32
from xdsl.dialects.test import TestOp as AnyOp

from cute_dialect.ir.printing import ir_text
from cute_dialect.pipelines.compiler import lower_to_base, parse_module
from cute_dialect.pipelines.handoff import handoff_text
from cute_dialect.pipelines.upstream import UpstreamModule

EXAMPLES = Path(__file__).parents[2] / "examples"

BRANCHES = module(
    kernel(
        "k",
        ["opaque", "i32"],
        ["!llvm.ptr<1>", "i32"],
        """\
      %c0 = arith.constant 0 : i32
      %q:2 = scf.for %i = %c0 to %a1 step %a1 iter_args(%u = %a1, %v = %c0) -> (i32, i32) : i32 {
        %w = arith.addi %u, %v : i32
        scf.yield %w, %u : i32, i32
      }
      %b = arith.cmpi slt, %q#1, %c0 : i32
      cf.cond_br %b, ^bb1(%q#0 : i32), ^bb2
    ^bb1(%x: i32):
      llvm.store %x, %a0 : i32, !llvm.ptr<1>
      cf.br ^bb2
    ^bb2:
""",
    )
)


@pytest.mark.parametrize("text", [add_module(), BRANCHES], ids=["add", "branches"])
@pytest.mark.parametrize("locations", [False, True])
def test_same_module(text: str, locations: bool) -> None:
    m = parse_module(text)
    ours = UpstreamModule.from_text(handoff_text(m, locations=locations))
    theirs = UpstreamModule.from_text(ir_text(m, generic=True, debuginfo=locations))
    assert ours.text() == theirs.text()
    if locations:
        assert ours.text(debuginfo=True) == theirs.text(debuginfo=True)


def test_same_module_for_the_example() -> None:
    base = lower_to_base(EXAMPLES / "elementwise_add.mlir", pipeline="base")
    m = parse_module(base)
    assert UpstreamModule.from_text(handoff_text(m)).text() == UpstreamModule.from_text(base).text()


def test_odd_names_and_strings_survive() -> None:
    text = r"""module {
  "llvm.mlir.global"() <{sym_name = "a \22b\22", global_type = i32, linkage = #llvm.linkage<external>,
    addr_space = 0 : i32, value = 3 : i32}> ({
  }) : () -> ()
}
"""
    m = parse_module(text, 'dir/"odd\\name.mlir')
    assert UpstreamModule.from_text(handoff_text(m)).text() == UpstreamModule.from_text(text).text()


def test_long_structs_are_written_once() -> None:
    long = f"!llvm.struct<({', '.join(['f32'] * 64)})>"
    insert = f'= "llvm.insertvalue"(%{{}}, %x) <{{{{position = array<i64: {{}}>}}}}> : ({long}, f32) -> {long}'
    steps = "\n".join(f"%{i + 1} {insert.format(i, i)}" for i in range(1, 60))
    text = f"""func.func @f(%x: f32, %s: !llvm.struct<(i32, {long})>) -> {long} {{
      %1 = "ub.poison"() <{{value = #ub.poison}}> : () -> {long}
      {steps}
      return %60 : {long}
    }}"""
    m = parse_module(text)
    crossing = handoff_text(m)
    assert UpstreamModule.from_text(crossing).text() == UpstreamModule.from_text(text).text()
    assert crossing.count(long) <= 4, "the alias, and inside other types"


def test_attributes_match_the_printer_of_xdsl() -> None:
    i8, i32, index = IntegerType(8), IntegerType(32), IndexType()
    numbers = [IntegerAttr(n, t) for n in (-1, 0, 7) for t in (i8, i32, index, IntegerType(32, Signedness.SIGNED))]
    arrays = [DenseArrayBase.from_list(t, v) for t in (i8, i32, IntegerType(1)) for v in ([], [1], [0, -1, 1])]
    given = [*numbers, *arrays, IntegerAttr(1, IntegerType(1)), DenseArrayBase.from_list(f32, [1.5]), UnitAttr()]
    op = AnyOp.create(attributes={f"a{i}": a for i, a in enumerate(given)})
    text = handoff_text(op, locations=False)
    for i, attribute in enumerate(given[:-1]):
        assert f"a{i} = {attribute}" in text
    assert f", a{len(given) - 1}, " in text
