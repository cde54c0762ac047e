"""Translation validation: correct passes are accepted for every op, wrong ones are reported by op."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from xdsl.dialects import arith
from xdsl.dialects.builtin import FunctionType, IntegerAttr, ModuleOp
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Operation
from xdsl.parser import Parser

from cute_dialect.interp.validation.validate import validate, validation_report
from cute_dialect.ir.context import make_context
from cute_dialect.passes.algo_to_arch import AlgoToArchPass
from cute_dialect.passes.base import Pass, PassContext
from cute_dialect.passes.expand_ops import ExpandOpsPass
from cute_dialect.passes.fold_static import FoldStaticPass
from cute_dialect.passes.to_base import ToBasePass

CONTEXT = make_context("all")
FILES = sorted((Path(__file__).parents[2] / "filecheck" / "dialect").glob("*.mlir"))
CORE = ("access", "algebra", "arith", "make", "sizes", "tile")
PIPELINES: dict[str, list[type[Pass]]] = {
    "fold": [FoldStaticPass],
    "expand": [ExpandOpsPass],
    "base": [FoldStaticPass, ExpandOpsPass, AlgoToArchPass, ToBasePass],
    "base_without_fold": [ExpandOpsPass, AlgoToArchPass, ToBasePass],
    "base_folded_late": [ExpandOpsPass, FoldStaticPass, AlgoToArchPass, ToBasePass],
}


def parse(text: str) -> ModuleOp:
    return Parser(CONTEXT, text).parse_module()


def through(passes: list[type[Pass]]) -> Callable[[ModuleOp], None]:
    def apply(module: ModuleOp) -> None:
        for p in passes:
            p().run(module, PassContext(CONTEXT))

    return apply


def observed(module: ModuleOp) -> ModuleOp:
    """Make each function return every value that it computes, so that validation compares all of them."""
    for function in module.body.block.ops:
        if isinstance(function, FuncOp) and len(function.body.blocks) == 1:
            block = function.body.block
            assert block.last_op is not None
            block.erase_op(block.last_op)
            values = [r for op in block.ops for r in op.results]
            block.add_op(ReturnOp(*values))
            types = FunctionType.from_lists(list(function.function_type.inputs), [v.type for v in values])
            function.properties["function_type"] = types
    return module


@pytest.mark.parametrize("pipeline", PIPELINES)
@pytest.mark.parametrize("name", CORE)
def test_every_example_of_every_op(name: str, pipeline: str):
    path = next(f for f in FILES if f.stem == name)
    before = observed(parse(path.read_text()))
    after = before.clone()
    rerun = through(PIPELINES[pipeline])
    rerun(after)
    report = validation_report(before, after, samples=6, rerun=rerun)
    assert report.failure is None, str(report.failure)
    assert not report.skipped
    assert len(report.checked) >= 6


TENSORS = """
!g1 = !cute.memref<f32, gmem, "((16,128),(?,?)):((?,1),(?{div=16},128))">
!c1 = !cute.coord_tensor<"(0,0)", "((16,128),(?,?)):((1@0,1@1),(16@0,128@1))">
!s1 = !cute.memref<f16, smem, align<1024>, "S<3,3,3> o 0 o (8,64):(64,1)">
func.func @slice(%g: !g1, %c: !cute.coord<"((_,_),?)">) -> !cute.memref<f32, gmem, "(16,128):(?,1)"> {
  %b = cute.slice(%g, %c) : !g1, !cute.coord<"((_,_),?)">
  return %b : !cute.memref<f32, gmem, "(16,128):(?,1)">
}
func.func @divide(%g: !cute.memref<f32, gmem, "(?,?):(?,1)">, %t: !cute.tile<"[16:1;128:1]">) -> !g1 {
  %b = cute.zipped_divide(%g, %t) : (!cute.memref<f32, gmem, "(?,?):(?,1)">, !cute.tile<"[16:1;128:1]">) -> !g1
  return %b : !g1
}
func.func @coordinates(%g: !c1, %c: !cute.coord<"((_,_),?)">)
    -> !cute.coord_tensor<"(?{div=16},?{div=128})", "(16,128):(1@0,1@1)"> {
  %b = cute.slice(%g, %c) : !c1, !cute.coord<"((_,_),?)">
  return %b : !cute.coord_tensor<"(?{div=16},?{div=128})", "(16,128):(1@0,1@1)">
}
func.func @swizzled(%g: !s1, %c: !cute.coord<"(?,_)">) -> !cute.ptr<f16, smem, align<16>> {
  %b = cute.slice(%g, %c) : !s1, !cute.coord<"(?,_)">
  %i = cute.get_iter(%b)
    : !cute.memref<f16, smem, align<16>, "((8,2,2,2)):((1,?{div=8},?{div=16},?{div=32}))">
  return %i : !cute.ptr<f16, smem, align<16>>
}
func.func @size(%g: !cute.memref<f32, gmem, "(?,?,4):(?,1,?)">) -> !cute.int_tuple<"?{div=4}"> {
  %b = cute.size(%g) : (!cute.memref<f32, gmem, "(?,?,4):(?,1,?)">) -> !cute.int_tuple<"?{div=4}">
  return %b : !cute.int_tuple<"?{div=4}">
}
"""


@pytest.mark.parametrize("pipeline", PIPELINES)
def test_tensors(pipeline: str):
    before = parse(TENSORS)
    after = before.clone()
    through(PIPELINES[pipeline])(after)
    report = validation_report(before, after, samples=30)
    assert report.failure is None, str(report.failure)
    assert len(report.checked) == 5 and not report.skipped


# --------------------------------------------------------------------------------------------------------- wrong passes

PROGRAM = """
func.func @f(%l: !cute.layout<"(?,8):(?,1)">, %c: !cute.coord<"(?,3)">, %n: i32) -> (!cute.int_tuple<"?">, i32) {
  %s = cute.size (%l) : (!cute.layout<"(?,8):(?,1)">) -> !cute.int_tuple<"?">
  %i = cute.layout_eval(%c, %l) : (!cute.coord<"(?,3)">, !cute.layout<"(?,8):(?,1)">) -> !cute.int_tuple<"?">
  %d = cute.tuple_sub(%i, %s) : (!cute.int_tuple<"?">, !cute.int_tuple<"?">) -> !cute.int_tuple<"?">
  cute.print(%l) : !cute.layout<"(?,8):(?,1)">
  return %d, %n : !cute.int_tuple<"?">, i32
}
"""


def find(module: ModuleOp, name: str) -> Operation:
    return next(op for op in module.walk() if op.name == name)


def swap(module: ModuleOp, name: str) -> None:
    op = find(module, name)
    op.operands = [*op.operands[1::-1], *op.operands[2:]]


def other_constant(module: ModuleOp) -> None:
    op = find(module, "arith.constant")
    op.properties["value"] = IntegerAttr(9, op.results[0].type)


def no_print(module: ModuleOp) -> None:
    op = find(module, "cute.print")
    op.parent.erase_op(op)


def added(module: ModuleOp) -> None:
    op = find(module, "arith.subi")
    new = arith.AddiOp(*op.operands)
    op.parent.insert_op_before(new, op)
    op.results[0].replace_all_uses_with(new.result)


def divided_by_zero(module: ModuleOp) -> None:
    op = find(module, "arith.subi")
    zero = arith.ConstantOp(IntegerAttr(0, 32))
    op.parent.insert_ops_before([zero, arith.DivSIOp(op.operands[0], zero)], op)


def wrong_promise(module: ModuleOp) -> None:
    op = find(module, "arith.subi")
    from cute_dialect.dialect.memory_types import constrained_int
    from cute_dialect.dialect.views import AssumeOp

    op.parent.insert_op_after(AssumeOp(op.results[0], constrained_int(32, 1 << 20)), op)


@pytest.mark.parametrize(
    ("sabotage", "message"),
    [
        (lambda m: swap(m, "arith.subi"), "result #0 is"),
        (other_constant, "result #0 is"),
        (added, "result #0 is"),
        (no_print, "line 1 of its output is 'nothing', expected '("),
        (divided_by_zero, "it no longer has a result: division by zero"),
        (wrong_promise, "it no longer has a result: cute.assume"),
    ],
)
def test_a_wrong_pass_is_caught(sabotage: Callable[[ModuleOp], None], message: str):
    before = parse(PROGRAM)
    after = before.clone()
    ExpandOpsPass().run(after, PassContext(CONTEXT))
    assert validate(before, after) is None
    sabotage(after)
    failure = validate(before, after)
    assert failure is not None and failure.function == "f"
    assert failure.message.startswith(message), failure.message
    assert len(failure.arguments) == 3 and failure.arguments[0].startswith("(")  # a layout in printed form


def test_the_first_wrong_op_is_named():
    before = parse(PROGRAM)

    def wrong(module: ModuleOp) -> None:
        ExpandOpsPass().run(module, PassContext(CONTEXT))
        for op in module.walk():  # Makes the result of layout_eval one too large.
            if op.name == "arith.constant" and op.properties["value"] == IntegerAttr(3, 32):
                op.properties["value"] = IntegerAttr(4, 32)

    after = before.clone()
    wrong(after)
    failure = validate(before, after)
    assert failure is not None and failure.op is not None
    assert failure.op.name == "cute.tuple_sub"  # Without a rerun the op is only approximate.
    failure = validate(before, after, rerun=wrong)
    assert failure is not None and failure.op is not None
    assert failure.op.name == "cute.layout_eval"
    assert "(computed by 'cute.layout_eval')" in str(failure)


def test_a_function_that_is_gone():
    failure = validate(parse(PROGRAM), parse("module {}"))
    assert failure is not None and failure.message == "the function is missing"


def test_undefined_results_are_not_compared():
    text = "func.func @f(%a: i32, %b: i32) -> i32 { %q = arith.divsi %a, %b : i32  return %q : i32 }"
    before, after = parse(text), parse(text)
    report = validation_report(before, after, samples=200)  # Some samples divide by zero.
    assert report.failure is None and report.checked == ["f"] and report.samples == 200


def test_poison_results_may_be_refined():
    before = parse("func.func @f(%a: i32) -> i32 { %p = ub.poison : i32  return %p : i32 }")
    after = parse("func.func @f(%a: i32) -> i32 { return %a : i32 }")
    assert validate(before, after) is None
    assert validate(after, before) is not None


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("func.func @f() { func.call @f() : () -> ()  return }", "runs for too long"),
        ("func.func @f(%p: !llvm.ptr) -> i32 { %x = llvm.load %p : !llvm.ptr -> i32  return %x : i32 }", "!llvm.ptr"),
        ("func.func @f() { gpu.barrier  return }", "the op gpu.barrier"),
    ],
)
def test_skipped_functions_are_reported(text: str, reason: str):
    report = validation_report(parse(text), parse(text))
    assert report.checked == [] and reason in report.skipped["f"]


def test_loops_and_branches():
    text = """
    func.func @f(%n: i32, %p: i1, %s: !cute.shape<"(?,4)">) -> !cute.int_tuple<"?"> {
      %c0 = arith.constant 0 : i32
      %c1 = arith.constant 1 : i32
      %z = cute.size (%s) : (!cute.shape<"(?,4)">) -> !cute.int_tuple<"?">
      %r = scf.for %i = %c0 to %n step %c1 iter_args(%a = %z) -> (!cute.int_tuple<"?">) : i32 {
        %k = cute.make_int_tuple(%i) : (i32) -> !cute.int_tuple<"?">
        %b = cute.tuple_add(%a, %k) : (!cute.int_tuple<"?">, !cute.int_tuple<"?">) -> !cute.int_tuple<"?">
        %d = scf.if %p -> (!cute.int_tuple<"?">) {
          scf.yield %b : !cute.int_tuple<"?">
        } else {
          scf.yield %z : !cute.int_tuple<"?">
        }
        cute.print(%d) : !cute.int_tuple<"?">
        scf.yield %d : !cute.int_tuple<"?">
      }
      return %r : !cute.int_tuple<"?">
    }
    """
    before = parse(text)
    for passes in PIPELINES.values():
        after = before.clone()
        through(passes)(after)
        report = validation_report(before, after)
        assert report.failure is None and report.checked == ["f"], str(report.failure)
