"""cute-opt, run in this process: output, exit status and error messages."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest
from programs import CuteOpt
from xdsl.ir import Operation

from cute_dialect.passes import generic
from cute_dialect.passes.base import PassContext, PassError
from cute_dialect.pipelines.upstream import is_available
from cute_dialect.tools.cute_opt import main

ADD = """\
func.func @f(%a: i32, %b: i32) -> i32 {
  %0 = arith.addi %a, %b : i32
  %1 = arith.addi %a, %b : i32
  %2 = arith.addi %0, %1 : i32
  return %2 : i32
}
"""
needs_mlir = pytest.mark.skipif(not is_available(), reason="upstream MLIR is not installed")


class Tool(CuteOpt):
    """Runs cute-opt on a text and captures its output."""

    def __call__(self, text: str, *arguments: str) -> int:
        file = self.folder / "in.mlir"
        file.write_text(text)
        return super().__call__(str(file), *arguments)


@pytest.fixture
def opt(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Tool:
    return Tool(tmp_path, capsys)


def test_prints_source_names_with_the_option(opt: Tool):
    assert opt(ADD, "--mlir-use-nameloc-as-prefix") == 0
    assert opt.err == ""
    assert opt.out == "module {\n" + "".join(f"  {line}\n" for line in ADD.splitlines()) + "}\n"


NAMES = """
func.func @names(%x: i32, %c: i1, %n: index) -> (i32, i32) {
  %four = arith.constant 4 : i32
  %minus = arith.constant -4 : i32
  %again = arith.constant 4 : i32
  %yes = arith.constant true
  %i = arith.constant 7 : index
  %f = arith.constant 1.0 : f32
  %r:2 = scf.if %c -> (i32, i32) {
    %inner = arith.addi %x, %four : i32
    %third = arith.constant 4 : i32
    scf.yield %inner, %third : i32, i32
  } else {
    %other = arith.subi %x, %minus : i32
    scf.yield %other, %again : i32, i32
  }
  %sum = scf.for %k = %i to %n step %i iter_args(%acc = %r#1) -> (i32) {
    %next = arith.addi %acc, %r#0 : i32
    scf.yield %next : i32
  }
  %after = arith.muli %sum, %x : i32
  cf.br ^end(%after : i32)
^end(%last: i32):
  return %last, %r#0 : i32, i32
}
"""


@pytest.mark.parametrize("text", [ADD, NAMES], ids=["add", "names"])
@pytest.mark.parametrize("generic", [False, True])
def test_output_matches_upstream(opt: Tool, text: str, generic: bool):
    """The output equals that of upstream MLIR, including the names of values and blocks."""
    ir = pytest.importorskip("mlir.ir")
    with ir.Context():
        expected = ir.Module.parse(text).operation.get_asm(print_generic_op_form=generic)
    assert opt(text, *(["--mlir-print-op-generic"] if generic else [])) == 0
    ours, expected = (re.sub(r"//[^\n]*", "", x) for x in (opt.out, expected))
    ours, expected = (re.sub(r"\s+", " ", x).strip() for x in (ours, expected))
    assert ours == expected


def test_printed_text_round_trips(opt: Tool):
    for form in ((), ("--mlir-print-op-generic",), ("--mlir-print-debuginfo", "--mlir-print-op-generic")):
        assert opt(ADD, *form) == 0
        assert opt(opt.out) == 0
        assert opt(ADD) == 0 and "arith.addi" in opt.out


def test_an_empty_input_is_an_empty_module(opt: Tool):
    assert opt("") == 0
    assert opt.out == "module {\n}\n"


def test_passes_run_in_order(opt: Tool):
    assert opt(ADD, "-cse", "--mlir-print-ir-after-all") == 0
    assert opt.out.count("arith.addi") == 2
    assert opt.err.count("IR Dump After cse") == 1


def test_nested_passes_run_on_their_op_only(opt: Tool):
    nested = "gpu.module @m {\n" + ADD + "}\n" + ADD
    assert opt(nested, "--pass-pipeline=builtin.module(gpu.module(cse))") == 0
    assert opt.out.count("arith.addi") == 2 + 3


def test_output_file_is_written_only_on_success(opt: Tool, tmp_path: Path):
    target = tmp_path / "out.mlir"
    assert opt(ADD, "-o", str(target)) == 0
    assert opt.out == ""
    before = target.read_text()
    assert "arith.addi" in before
    assert opt(ADD.replace("-> i32", "-> i64"), "-o", str(target)) == 1
    assert target.read_text() == before
    assert sorted(p.name for p in tmp_path.iterdir()) == ["in.mlir", "out.mlir"]


def test_output_to_pipes_and_links(opt: Tool, tmp_path: Path):
    """cute-opt writes into an existing pipe, and keeps a link and the mode of its target."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        assert opt(ADD, "-o", str(pipe)) == 0
        assert pipe.is_fifo() and b"arith.addi" in os.read(reader, 1 << 16)
    finally:
        os.close(reader)
    file, link = tmp_path / "file.mlir", tmp_path / "link.mlir"
    file.write_text("")
    file.chmod(0o640)
    link.symlink_to(file.name)
    assert opt(ADD, "-o", str(link)) == 0
    assert link.is_symlink() and "arith.addi" in file.read_text() and file.stat().st_mode & 0o777 == 0o640


def test_error_in_one_chunk_keeps_the_others(opt: Tool):
    assert opt(f"func.func @bad(\n// -----\n{ADD}", "--split-input-file") == 1
    assert "@f" in opt.out
    assert opt.err.startswith("in.mlir:2:1: error: ")


@pytest.mark.parametrize(
    "text",
    [
        "func.func",
        "func.func @f(%a: i32",
        'func.func @f() { "arith.constant"() : () -> i32 return }',
        "func.func @f() { %0 = arith.constant : i32 return }",
        "func.func @f() { %0 = arith.constant dense<[1,2]> : vector<3xi32> return }",
        "func.func @f(%a: vector<-1xi32>) { return }",
        "func.func @f() { cf.br ^nowhere }",
        "func.func @f() { return } func.func @f() { return }",
        "%0 = arith.constant 1 : i99999999999",
        '"builtin.module"() ({}, {}) : () -> ()',
        "#a = #a\n",
        "!t = !t\n",
        "func.func @f() attributes {a = b} { return }",
        "}",
        '"',
        "\\",
        "%",
        "func.func @f() { scf.for %i = %a to %b step %c { } return }",
        "func.func @\xe9() { \xff }",
        "module { module { } ",
        'func.func @f() { "' + " an open quote" * 20,
        "(" * 3000,
        "func.func @f(%a: " + "tuple<" * 3000,
    ],
)
def test_invalid_input_is_reported_with_its_position(opt: Tool, text: str):
    assert opt(text) == 1
    assert opt.err.startswith("in.mlir:")
    assert "error: " in opt.err
    assert "Traceback" not in opt.err
    assert "internal error" not in opt.err


def test_input_that_is_not_text(opt: Tool, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    file = tmp_path / "b.mlir"
    file.write_bytes(b"ok\n \xff\n")
    assert main([str(file)]) == 1
    assert f"{file}:2:2: error: the input is not UTF-8: byte 0xff" in capsys.readouterr().err


def test_verify_diagnostics(opt: Tool):
    bad = "func.func @f(%a: i32) -> i64 {\n  return %a : i32 // expected-error {{'func.return' op}}\n}\n"
    assert opt(bad, "--verify-diagnostics") == 0
    assert (opt.out, opt.err) == ("", "")
    assert opt(bad.replace("{{'func", "{{'funk"), "--verify-diagnostics") == 1
    assert "in.mlir:2:3: error: unexpected error: 'func.return' op" in opt.err
    assert "in.mlir:2:22: error: expected error \"'funk.return' op\" was not produced" in opt.err


def test_verify_roundtrip(opt: Tool):
    assert opt(ADD, "--verify-roundtrip") == 0


def test_dialects_base_refuses_cute(opt: Tool):
    text = 'func.func @f(%a: !cute.layout<"(6,5):(5,1)">) {\n  return\n}\n'
    assert opt(text, "--dialects=base") == 1
    assert "in.mlir:1:18: error: type '!cute.layout' belongs to the unregistered dialect 'cute'" in opt.err


def test_unregistered_dialects_may_be_allowed(opt: Tool):
    text = 'func.func @f() {\n  %0 = "a.b"() {x = #a.c} : () -> !a.d<1>\n  return\n}\n'
    assert opt(text) == 1
    assert opt(text, "--allow-unregistered-dialect") == 0
    assert '"a.b"()' in opt.out
    assert opt("func.func @f() {\n  a.b\n  return\n}\n", "--allow-unregistered-dialect") == 1
    assert "in.mlir:2:3: error: unregistered operation 'a.b' must be written in generic form" in opt.err


def test_pass_error_is_shown_at_its_op(opt: Tool, monkeypatch: pytest.MonkeyPatch):
    def run(self: generic.CsePass, op: Operation, ctx: PassContext) -> None:
        add = next(o for o in op.walk() if o.name == "arith.addi")
        ctx.remark("so far so good", add)
        raise PassError("expected a subi, got an addi", add, [ctx.note("in here", op)])

    monkeypatch.setattr(generic.CsePass, "run", run)
    assert opt(ADD, "--cse") == 1
    assert opt.err == (
        "in.mlir:2:8: remark: so far so good\n  %0 = arith.addi %a, %b : i32\n       ^~~~~~~~~~\n"
        "in.mlir:2:8: error: expected a subi, got an addi\n  %0 = arith.addi %a, %b : i32\n       ^~~~~~~~~~\n"
        "in.mlir:1:1: note: in here\nfunc.func @f(%a: i32, %b: i32) -> i32 {\n^~~~~~~~~\n"
        "in.mlir:1:1: note: while running pass 'cse'\nfunc.func @f(%a: i32, %b: i32) -> i32 {\n^~~~~~~~~\n"
    )


def test_invalid_ir_after_a_pass(opt: Tool, monkeypatch: pytest.MonkeyPatch):
    def run(self: generic.CsePass, op: Operation, ctx: PassContext) -> None:
        returned = next(o for o in op.walk() if o.name == "func.return")
        returned.operands = ()

    monkeypatch.setattr(generic.CsePass, "run", run)
    assert opt(ADD, "--cse") == 1
    assert "in.mlir:5:3: error: 'func.return' op" in opt.err
    assert 'note: see current operation: "func.return"() : () -> ()' in opt.err
    assert opt(ADD, "--cse", "--verify-each=false") == 0


def test_illegal_ops_after_a_pass(opt: Tool, monkeypatch: pytest.MonkeyPatch):
    def legal_after(self: generic.CsePass, op: Operation) -> list[Operation]:
        return [o for o in op.walk() if o.name == "arith.addi"]

    monkeypatch.setattr(generic.CsePass, "legal_after", legal_after)
    assert opt(ADD, "--cse") == 0
    assert opt(ADD, "--cse", "--verify-legality") == 1
    assert opt.err.count("'arith.addi' op is not legal after pass 'cse'") == 2


def test_internal_errors_are_reported_with_a_reproducer(opt: Tool, monkeypatch: pytest.MonkeyPatch):
    def run(self: generic.CsePass, op: Operation, ctx: PassContext) -> None:
        raise KeyError("oops")

    monkeypatch.setattr(generic.CsePass, "run", run)
    assert opt(ADD, "--canonicalize", "--cse", "--canonicalize") == 1
    assert "error: internal error in pass 'cse': KeyError: 'oops'" in opt.err
    path = opt.err.split("the input was written to ")[1].split(";")[0]
    assert Path(path).read_text() == ADD
    assert f"to reproduce the error: cute-opt {path} --canonicalize --cse\n" in opt.err
    Path(path).unlink()
    assert "Traceback" not in opt.err
    with pytest.raises(Exception, match="cse"):
        opt(ADD, "--cse", "--debug")


def test_tree_of_dumps(opt: Tool, tmp_path: Path):
    tree = tmp_path / "tree"
    assert opt(ADD, "--cse", "--canonicalize", f"--mlir-print-ir-tree-dir={tree}") == 0
    assert sorted(p.name for p in tree.iterdir()) == ["00-input.mlir", "01-cse.mlir", "02-canonicalize.mlir"]
    assert (tree / "00-input.mlir").read_text().count("arith.addi") == 3
    assert (tree / "01-cse.mlir").read_text().count("arith.addi") == 2


def test_informational(opt: Tool, capsys: pytest.CaptureFixture[str]):
    assert main(["--show-dialects"]) == 0
    assert capsys.readouterr().out.startswith("Available Dialects: arith, ")
    assert main(["--dialects=base", "--show-dialects"]) == 0
    assert "cute" not in capsys.readouterr().out


KERNEL = """\
module attributes {gpu.container_module} {
gpu.module @kernels {
  gpu.func @k(%p: !llvm.ptr, %n: i32) kernel {
    %t = nvvm.read.ptx.sreg.tid.x : i32
    %s = arith.addi %t, %n : i32
    llvm.store %s, %p : i32, !llvm.ptr
    gpu.return
  }
}
}
"""


@needs_mlir
class TestUpstream:
    def test_ptx(self, opt: Tool):
        assert (
            opt(
                KERNEL,
                "--base-prepare",
                "--one-shot-convert-to-llvm",
                "--attach-nvvm-target=chip=sm_90a",
                "features=+ptx83",
                "--emit-gpu-binary",
                "--emit=ptx",
            )
            == 0
        )
        assert ".visible .entry k(" in opt.out
        assert ".target sm_90a" in opt.out
        assert ".version 8.3" in opt.out

    def test_llvm_ir(self, opt: Tool):
        assert opt(KERNEL, "--one-shot-convert-to-llvm", "--emit=llvm") == 0
        assert "define ptx_kernel void @k(ptr" in opt.out

    def test_emit_needs_the_passes(self, opt: Tool):
        assert opt(KERNEL, "--base-prepare", "--emit=ptx") == 1
        assert "no gpu.binary found" in opt.err
        assert opt(ADD, "--cse", "--emit=ptx") == 1
        assert "needs a pipeline that ends in upstream MLIR" in opt.err

    def test_errors_of_upstream_keep_their_place(self, opt: Tool):
        """Upstream errors in a later piece keep their line, with and without an xDSL pass before."""
        text = "// a\n// -----\n" + ADD.replace("%2 = arith.addi %0, %1", "%2 = llvm.freeze %0").replace(
            "%2 : i32", "%2 : i32"
        )
        bad = text.replace("llvm.freeze %0 : i32", "llvm.mlir.constant(0) : i32")
        for first in ((), ("--cse",)):
            assert (
                opt(
                    bad.replace("llvm.mlir.constant(0) : i32", "llvm.mlir.constant(0.5 : f64) : i32"),
                    "--split-input-file",
                    *first,
                    "--inline",
                )
                == 1
            )
            assert "in.mlir:6:8: error: 'llvm.mlir.constant' op" in opt.err

    def test_hand_over_keeps_the_meaning(self, opt: Tool):
        assert opt(ADD, "--cse", "--sccp") == 0
        assert opt.out.count("arith.addi") == 2

    def test_debuginfo_names_the_file(self, opt: Tool):
        assert opt(ADD, "--cse", "--sccp", "--mlir-print-debuginfo", "--mlir-print-local-scope") == 0
        assert 'in.mlir":2:8)' in opt.out

    def test_leftover_unknown_op(self, opt: Tool):
        text = 'func.func @f() {\n  "a.b"() : () -> ()\n  return\n}\n'
        assert opt(text, "--allow-unregistered-dialect", "--cse", "--sccp") == 1
        assert "in.mlir:2:3: error: " in opt.err
        assert "while running pass 'sccp' in upstream MLIR" in opt.err
