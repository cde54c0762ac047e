"""cute-opt --validate accepts correct passes and reports the op and the input for which a wrong pass differs."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from xdsl.dialects.builtin import IntegerAttr
from xdsl.ir import Operation
from xdsl.parser import Parser

from cute_dialect.ir.context import make_context
from cute_dialect.ir.diagnostics import DiagnosticEngine
from cute_dialect.passes.base import Pass, PassContext, PassError
from cute_dialect.passes.expand_ops import ExpandOpsPass
from cute_dialect.passes.registry import PassInfo
from cute_dialect.pipelines.runner import IR, Runner, Step
from cute_dialect.pipelines.validation import ValidateOptionError, Validator
from cute_dialect.tools.cute_opt import main

TEXT = """\
func.func @g(%n: i32) -> i32 {
  return %n : i32
}
func.func @f(%l: !cute.layout<"(?,8):(?,1)">, %c: !cute.coord<"(?,3)">) -> !cute.int_tuple<"?"> {
  %s = cute.size (%l) : (!cute.layout<"(?,8):(?,1)">) -> !cute.int_tuple<"?">
  %i = cute.layout_eval(%c, %l) : (!cute.coord<"(?,3)">, !cute.layout<"(?,8):(?,1)">) -> !cute.int_tuple<"?">
  %d = cute.tuple_sub(%i, %s) : (!cute.int_tuple<"?">, !cute.int_tuple<"?">) -> !cute.int_tuple<"?">
  return %d : !cute.int_tuple<"?">
}
"""
EXPAND = ExpandOpsPass.run


class WrongExpansion(ExpandOpsPass):
    """A wrong pass that expands the coordinate 3 as 4."""

    name = "wrong-expansion"

    def run(self, op: Operation, ctx: PassContext) -> None:
        EXPAND(self, op, ctx)
        for inner in op.walk():
            if inner.name == "arith.constant" and inner.properties["value"] == IntegerAttr(3, 32):
                inner.properties["value"] = IntegerAttr(4, 32)


class Picky(WrongExpansion):
    """A wrong pass that raises an error unless the program contains a subtraction."""

    name = "picky"

    def run(self, op: Operation, ctx: PassContext) -> None:
        if not any(inner.name == "cute.tuple_sub" for inner in op.walk()):
            raise PassError("expected a subtraction", op)
        super().run(op, ctx)


def run(instance: Pass, validator: Validator, path: tuple[str, ...] = ()) -> tuple[bool, DiagnosticEngine]:
    """Run an unregistered pass on the text and validate it."""
    context = make_context()
    engine = DiagnosticEngine()
    step = Step(PassInfo(instance.name, "", "cute", "-"), {}, path, instance)
    module = Parser(context, TEXT).parse_module()
    return Runner(context, engine, validator=validator).run(IR(module), [step]), engine


def test_correct_passes_validate() -> None:
    ok, engine = run(ExpandOpsPass(), Validator())
    assert ok and not engine.seen


@pytest.mark.parametrize("path", [(), ("func.func",)])
def test_a_wrong_pass_is_caught_at_the_first_op_that_differs(path: tuple[str, ...]) -> None:
    ok, engine = run(WrongExpansion(), Validator(samples=5), path)
    assert not ok
    (error,) = engine.seen
    assert re.fullmatch(
        r"pass 'wrong-expansion' changes what @f does: 'cute.layout_eval' gives -?\d+, expected -?\d+, "
        r"for argument #0 = \(\d+,8\):\(-?\d+,1\), argument #1 = \(-?\d+,3\)",
        error.message,
    )


def test_wrong_passes_without_a_smaller_example_are_caught() -> None:
    ok, engine = run(Picky(), Validator())
    assert not ok and engine.seen[0].message.startswith("pass 'picky' changes what @f does: result #0 is ")


def test_the_numbers_in_the_message_show_it() -> None:
    """For the input in the message, (m,3) in (n,8):(d,1) is m * d + 3, and the wrong pass computes one more."""
    _, engine = run(WrongExpansion(), Validator(samples=1, seed=7))
    numbers = [int(n) for n in re.findall(r"-?\d+", engine.seen[0].message.split("gives", 1)[1])]
    got, want, _, _n, _, d, _, _, m, _ = numbers
    assert want == m * d + 3 and got == want + 1


def test_output_for_the_user(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "in.mlir"
    file.write_text(TEXT)
    assert main([str(file), "--validate", "--pipeline=base"]) == 0
    capsys.readouterr()
    monkeypatch.setattr(ExpandOpsPass, "run", WrongExpansion.run)
    assert main([str(file), "--cute-expand-ops"]) == 0, "without --validate nothing is wrong with it"
    capsys.readouterr()
    assert main([str(file), "--cute-fold-static", "--cute-expand-ops", "--validate=samples=3"]) == 1
    out, err = capsys.readouterr()
    assert out == ""
    first, line, caret = err.splitlines()
    assert "in.mlir:6:8: error: pass 'cute-expand-ops' changes what @f does: " in first
    assert line.strip().startswith("%i = cute.layout_eval") and caret.strip().startswith("^~~")


@pytest.mark.parametrize("text", ["samples", "samples=", "samples=0", "sample=3", "seed=x", "samples=1 seed=2", "3"])
def test_bad_options(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(ValidateOptionError):
        Validator.from_text(text)
    assert main(["--cse", f"--validate={text}"]) == 1
    assert "option '--validate': expected samples=N,seed=S" in capsys.readouterr().err


def test_there_must_be_a_pass(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--validate"]) == 1
    assert "--validate needs at least one pass that runs in xDSL" in capsys.readouterr().err
