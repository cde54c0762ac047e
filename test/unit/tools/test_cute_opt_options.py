"""Options of cute-opt: wrong, missing, repeated and contradictory ones, and output between passes."""

from __future__ import annotations

from pathlib import Path

import pytest
from programs import CuteOpt

from cute_dialect.tools.opt_options import ROWS

TWICE = """\
func.func @f(%a: i32) -> i32 {
  %0 = arith.addi %a, %a : i32
  %1 = arith.addi %a, %a : i32
  %2 = arith.muli %0, %1 : i32
  return %2 : i32
}
"""


@pytest.fixture
def opt(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> CuteOpt:
    (tmp_path / "in.mlir").write_text(TWICE)
    monkeypatch.chdir(tmp_path)
    return CuteOpt(tmp_path, capsys)


WRONG = [
    (["-o"], "option '-o' needs a value: FILE"),
    (["-o="], "option '-o' needs a value: FILE"),
    (["-o", "--cse"],
     "option '-o' needs a value: FILE, got '--cse' (a value that starts with a dash is written -o=--cse)"),
    (["--emit"], "option '--emit' needs a value: KIND"),
    (["--emit="], "option '--emit' needs a value: KIND"),
    (["--emit=asm"], "option '--emit': expected one of mlir, llvm, ptx, cubin, got 'asm'"),
    (["--dialects=gpu"], "option '--dialects': expected one of cute, base, all, got 'gpu'"),
    (["--div=yes"], "option '--div': expected one of on, off, got 'yes'"),
    (["--pass-pipeline"], "option '--pass-pipeline' needs a value: TEXT"),
    (["--mlir-print-ir-tree-dir="], "option '--mlir-print-ir-tree-dir' needs a value: DIR"),
    (["--verify-each="], "option '--verify-each': expected true or false, got ''"),
    (["--verify-each=no"], "option '--verify-each': expected true or false, got 'no'"),
    (["--verify-each", "--verify-each=false"], "option '--verify-each' is given both as true and as false"),
    (["--emit=mlir", "--emit=ptx"], "option '--emit' is given twice: 'mlir' and 'ptx'"),
    (["-o", "a", "-o", "b"], "option '-o' is given twice: 'a' and 'b'"),
    (["--dialects=all", "--dialects=base"], "option '--dialects' is given twice: 'all' and 'base'"),
    (["--core-only", "--div=on"], "--core-only cannot be combined with --div=on"),
    (["--pass-pipeline=cse", "--pipeline"],
     "--pass-pipeline cannot be combined with passes given as flags or with --pipeline"),
    (["--mlir-print-ir-after=csee"], "option '--mlir-print-ir-after': unknown pass 'csee'; did you mean 'cse'?"),
    (["--mlir-print-ir-before=cse,cute-expand"],
     "option '--mlir-print-ir-before': unknown pass 'cute-expand'; did you mean 'cute-expand-ops'?"),
    (["--mlir-print-ir-after=qqqqqqqq"], "option '--mlir-print-ir-after': unknown pass 'qqqqqqqq'"),
    (["--mlir-print-ir-after"], "option '--mlir-print-ir-after' needs a value: PASS,…"),
    (["--mlir-print-ir-afterall"],
     "unknown option or pass '--mlir-print-ir-afterall'; did you mean 'mlir-print-ir-after-all'?"),
    (["--cute-expand"], "unknown option or pass '--cute-expand'; did you mean 'cute-expand-ops'?"),
    (["--pipeline=ptx"], "unknown pipeline 'ptx'; did you mean 'nvptx'? (known: nvptx, host, base)"),
    (["--pipeline=nvptx=chips=sm_90a"], "pipeline 'nvptx' has no option 'chips'; did you mean 'chip'? "
     "(its options: chip, features, O, arch-dialect, compilation-target, lineinfo, asserts)"),
    (["--pipeline=nvptx=chip"], "pipeline 'nvptx': expected key=value, got 'chip'"),
    (["--cse=fast"], "pass 'cse' has no option 'fast' (its options: none)"),
    (["--validate"], "--validate needs at least one pass that runs in xDSL; add a pass or --pipeline"),
    (["--cse", "--validate=samples=x"], "option '--validate': "),
    (["--help", "csee"], "unknown pass 'csee'; did you mean 'cse'?"),
    (["other.mlir"], "expected at most one input file, got 2: in.mlir other.mlir"),
]  # fmt: skip


@pytest.mark.parametrize("words, message", WRONG, ids=[" ".join(words) for words, _ in WRONG])
def test_invalid_options_are_reported_before_anything_runs(opt: CuteOpt, words: list[str], message: str):
    assert opt("in.mlir", *words) == 1
    assert opt.out == ""
    if message.endswith(": "):
        assert opt.err.startswith(f"cute-opt: error: {message}")
    else:
        assert opt.err == f"cute-opt: error: {message}\nTry 'cute-opt --help'.\n"
    assert sorted(p.name for p in Path().iterdir()) == ["in.mlir"]


@pytest.mark.parametrize("name", [name for name, row in ROWS.items() if row.kind == "value"])
def test_options_without_their_value_are_reported(opt: CuteOpt, name: str):
    dash = "-" if len(name) == 1 else "--"
    for words in ([f"{dash}{name}"], [f"{dash}{name}="], [f"{dash}{name}", "--cse"]):
        assert opt("in.mlir", *words) == 1
        assert opt.err.startswith(f"cute-opt: error: option '{dash}{name}' needs a value: ")


@pytest.mark.parametrize("name", [name for name, row in ROWS.items() if row.kind == "flag"])
def test_every_flag_takes_true_and_false_alone(opt: CuteOpt, name: str):
    assert opt("in.mlir", f"--{name}=perhaps") == 1
    assert opt.err.startswith(f"cute-opt: error: option '--{name}': expected true or false, got 'perhaps'\n")
    assert opt("in.mlir", f"--{name}", f"--{name}=false") == 1
    assert opt.err.startswith(f"cute-opt: error: option '--{name}' is given both as true and as false\n")


@pytest.mark.parametrize("name", list(ROWS))
def test_every_option_is_in_the_help_and_explains_itself(opt: CuteOpt, name: str):
    assert opt("--help") == 0
    dash = "-" if len(name) == 1 else "--"
    assert f"  {dash}{name}" in opt.out
    assert opt("--help", name) == 0
    assert opt.out.startswith(f"  {dash}{name}") and ROWS[name].help in opt.out


def test_repeated_equal_options_are_allowed(opt: CuteOpt):
    assert (
        opt(
            "in.mlir",
            "--emit=mlir",
            "--emit",
            "mlir",
            "--verify-each",
            "--verify-each=true",
            "--core-only",
            "--div=off",
        )
        == 0
    )


def test_options_match_mlir_opt(opt: CuteOpt):
    assert opt("in.mlir", "--verify-diagnostics=all", "--mlir-disable-threading") == 0


def test_the_terminal_is_not_waited_for_in_silence(opt: CuteOpt, monkeypatch: pytest.MonkeyPatch):
    import io

    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.setattr("sys.stdin", Terminal(TWICE))
    assert opt("--cse") == 0
    assert opt.err == "cute-opt: reading from the terminal; give a file name to read a file\n"


# --------------------------------------------------------------------------------------------------- between the passes


def test_dump_pass_pipeline(opt: CuteOpt):
    assert opt("in.mlir", "--dump-pass-pipeline", "--cse", "--pipeline=base") == 0
    text = "builtin.module(cse,cute-fold-static,cute-expand-ops,convert-cute-algo-to-arch,cute-to-base)"
    assert opt.err == f"Pass Manager with 5 passes:\n{text}\n\n"
    nested = "builtin.module(func.func(cse,canonicalize),gpu.module(func.func(cse)),strip-debuginfo)"
    assert opt("in.mlir", f"--pass-pipeline={nested}", "--dump-pass-pipeline") == 0
    assert opt.err == f"Pass Manager with 4 passes:\n{nested}\n\n"
    assert opt("in.mlir", "--attach-nvvm-target=chip=sm_90 opt-level=3", "--dump-pass-pipeline", "--help") == 0
    assert opt("in.mlir", "--dump-pass-pipeline") == 0
    assert opt.err == "Pass Manager with 0 passes:\nbuiltin.module()\n\n"


def test_dumped_pipeline_runs(opt: CuteOpt):
    pytest.importorskip("mlir.ir")
    words = ["--attach-nvvm-target=chip=sm_90 features=+ptx83,+ptx86", "--inline=inlining-threshold=3", "--cse"]
    assert opt("in.mlir", *words, "--dump-pass-pipeline") == 0
    out, text = opt.out, opt.err.splitlines()[1]
    assert text == (
        'builtin.module(attach-nvvm-target{chip=sm_90 features="+ptx83,+ptx86"},inline{inlining-threshold=3},cse)'
    )
    assert opt("in.mlir", f"--pass-pipeline={text}", "--dump-pass-pipeline") == 0
    assert opt.out == out and opt.err.splitlines()[1] == text


def test_print_after_change(opt: CuteOpt):
    assert opt("in.mlir", "--canonicalize", "--cse", "--cse", "--mlir-print-ir-after-change") == 0
    assert [line for line in opt.err.splitlines() if "Dump" in line] == ["// -----// IR Dump After cse //----- //"]
    assert opt.err.count("arith.addi") == 1
    assert (
        opt("in.mlir", "--canonicalize", "--cse", "--mlir-print-ir-after-change", "--mlir-print-ir-after=canonicalize")
        == 0
    )
    assert opt.err == ""
    assert opt("in.mlir", "--cse", "--cse", "--mlir-print-ir-after-change", "--mlir-print-ir-tree-dir=tree") == 0
    assert sorted(p.name for p in Path("tree").iterdir()) == ["00-input.mlir", "01-cse.mlir"]


def test_print_around_several(opt: CuteOpt):
    words = ["--mlir-print-ir-after=cse", "--mlir-print-ir-after", "canonicalize", "--mlir-print-ir-before=cse"]
    assert opt("in.mlir", "--cse", "--canonicalize", *words) == 0
    found = [line.split("IR Dump ")[1].split(" //")[0] for line in opt.err.splitlines() if "Dump" in line]
    assert found == ["Before cse", "After cse", "After canonicalize"]


def test_a_pass_that_does_not_run_is_not_printed_around(opt: CuteOpt):
    assert opt("in.mlir", "--cse", "--mlir-print-ir-after=canonicalize") == 0
    assert opt.err == "cute-opt: warning: cannot print the IR around 'canonicalize': it is not in the pipeline (cse)\n"
