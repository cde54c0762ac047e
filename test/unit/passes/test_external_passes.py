"""External passes: entry points of installed packages, ``--load``, and their errors."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from programs import CuteOpt

from cute_dialect.passes.outside import OutsideError, PassTable
from cute_dialect.tools.opt_options import ROWS

ROOT = Path(__file__).resolve().parents[3]
ADD = """\
func.func @f(%a: i32, %b: i32) -> i32 {
  %0 = arith.addi %a, %b : i32
  %1 = arith.addi %a, %b : i32
  %2 = arith.addi %0, %1 : i32
  return %2 : i32
}
"""
COUNT = '''\
from dataclasses import dataclass

from xdsl.ir import Operation

from cute_dialect.passes.base import Pass, PassContext, PassError, PassOptions


class CountPass(Pass):
    """Count the ops of each function.

    func.func @f() { return }    gives    remark: 2 ops
    """

    name = "count-ops"
    summary = "remark how many ops each function has"
    anchor = ("func.func",)

    @dataclass(frozen=True)
    class Options(PassOptions):
        least: int = 0
        label: str | None = None

    def run(self, op: Operation, ctx: PassContext) -> None:
        options = self.options_as(self.Options)
        count = sum(1 for _ in op.walk())
        ctx.count("ops", count)
        if count < options.least:
            raise PassError(f"expected at least {options.least} ops, got {count}", op)
        ctx.remark(f"{options.label or 'ops'}: {count}", op)


class SwapPass(Pass):
    """Exchange the operands of additions."""

    name = "swap-adds"

    def run(self, op: Operation, ctx: PassContext) -> None:
        for found in op.walk():
            if found.name == "arith.addi":
                found.operands = found.operands[::-1]


class CrashPass(Pass):
    name = "crash-here"

    def run(self, op: Operation, ctx: PassContext) -> None:
        raise KeyError("oh")
'''
POINTS = {"count-ops": "counting.passes:CountPass", "swap-adds": "counting.passes:SwapPass"}


class Tool(CuteOpt):
    """A runner of cute-opt in a folder from which packages can be imported."""

    def write(self, name: str, text: str) -> None:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def install(self, package: str, points: dict[str, str], source: str) -> None:
        """Install a package with entry points into the folder, as pip does."""
        self.write(f"{package}/__init__.py", "")
        self.write(f"{package}/passes.py", source)
        info = f"{package}-1.5.dist-info"
        self.write(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.5\n")
        lines = "".join(f"{name} = {value}\n" for name, value in points.items())
        self.write(f"{info}/entry_points.txt", f"[cute_dialect.passes]\n{lines}")


@pytest.fixture
def opt(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Tool:
    monkeypatch.setattr(sys, "modules", sys.modules)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.chdir(tmp_path)
    for name in [
        n for n in sys.modules if n.split(".")[0] in ("counting", "other", "mine", "wrong", "my_passes", "my_package")
    ]:
        monkeypatch.delitem(sys.modules, name)
    (tmp_path / "in.mlir").write_text(ADD)
    return Tool(tmp_path, capsys)


@pytest.mark.parametrize("load", [(), ("--load=counting.passes",), ("-load", "counting/passes.py")])
def test_external_passes_work_like_built_in_ones(opt: Tool, load: tuple[str, ...]):
    opt.install("counting", POINTS if not load else {}, COUNT)
    here = [*load, "in.mlir"]
    assert opt(*here, "--count-ops=least=2", "label=sum", "-swap-adds") == 0
    assert opt.err.startswith("in.mlir:1:1: remark: sum: 5\n")
    assert "arith.addi %arg1, %arg0 : i32" in opt.out
    text = "--pass-pipeline=builtin.module(func.func(count-ops{least=3}),swap-adds)"
    assert opt(*here, text, "--dump-pass-pipeline") == 0
    assert opt.err.startswith(
        "Pass Manager with 2 passes:\nbuiltin.module(func.func(count-ops{least=3}),swap-adds)\n\n"
        "in.mlir:1:1: remark: ops: 5"
    )
    assert opt(*here, "--count-ops", "--mlir-timing", "--mlir-pass-statistics", "--cse") == 0
    assert "  count-ops\n" in opt.err and "5  ops\n" in opt.err
    assert opt(*here, "--swap-adds", "--mlir-print-ir-after=swap-adds", "--verify-legality", "--validate") == 0
    assert opt.err.count("IR Dump After swap-adds") == 1
    assert opt(*here, "--swap-adds", "--canonicalize", "--sccp") == 0
    assert opt(*here, "--count-ops=least=9") == 1
    assert opt.err.startswith("in.mlir:1:1: error: expected at least 9 ops, got 5\n")


def test_it_is_listed_and_explained(opt: Tool):
    opt.install("counting", POINTS, COUNT)
    assert opt("--list-passes") == 0
    assert "count-ops                    remark how many ops each function has [counting 1.5]\n" in opt.out
    assert "swap-adds                    no summary [counting 1.5]\n" in opt.out
    assert opt("--help") == 0
    assert f"  {'--count-ops':40} remark how many ops each function has [counting 1.5]\n" in opt.out
    assert opt("--help", "count-ops") == 0
    assert opt.out == (
        "--count-ops: remark how many ops each function has\n\nCount the ops of each function.\n\n"
        "func.func @f() { return }    gives    remark: 2 ops\n\n"
        "Options: least, label\n\nRuns on: func.func\n\nComes from: counting 1.5\n"
    )


def test_names_and_options_of_external_passes_are_checked(opt: Tool):
    opt.install("counting", POINTS, COUNT)
    assert opt("in.mlir", "--count-op") == 1
    assert opt.err == (
        "cute-opt: error: unknown option or pass '--count-op'; did you mean 'count-ops'?\nTry 'cute-opt --help'.\n"
    )
    assert opt("in.mlir", "--mlir-print-ir-before=count-opps", "--cse") == 1
    assert "option '--mlir-print-ir-before': unknown pass 'count-opps'; did you mean 'count-ops'?\n" in opt.err
    assert opt("in.mlir", "--count-ops=lest=3") == 1
    assert "pass 'count-ops' has no option 'lest'; did you mean 'least'? (its options: least, label)" in opt.err
    assert opt("in.mlir", "--count-ops=least=three") == 1
    assert "option 'least' of pass 'count-ops': expected int, got 'three'" in opt.err
    assert opt("in.mlir", "--base-prepare", "--count-ops") == 1
    assert "pass 'count-ops' cannot run after 'base-prepare'" in opt.err
    assert opt("in.mlir", "--pass-pipeline=builtin.module(count-opps)") == 1
    assert opt.err.startswith("<--pass-pipeline>:1:16: error: unknown pass 'count-opps'; did you mean 'count-ops'?\n")


def test_bugs_of_external_passes_name_their_origin(opt: Tool):
    opt.write("mine.py", COUNT)
    assert opt("in.mlir", "--load=./mine.py", "--cse", "--crash-here") == 1
    lines = opt.err.splitlines()
    assert lines[0] == "in.mlir: error: internal error in pass 'crash-here': KeyError: 'oh'"
    assert lines[1].startswith("in.mlir: note: the input was written to ")
    assert lines[1].endswith(".mlir --load=./mine.py --cse --crash-here")
    assert lines[2] == "in.mlir: note: the pass comes from './mine.py', where this is a bug (--debug shows where)"


HEAD = "from dataclasses import dataclass\nfrom cute_dialect.passes.base import Pass, PassOptions\n\n\n"
RUN = "    def run(self, op, ctx): pass\n"
LOADS = [
    ("", "--load=./wrong.py",
     "'./wrong.py' defines no pass: expected a subclass of cute_dialect.passes.base.Pass with a 'name'"),
    ("def f(:\n", "--load=./wrong.py", "cannot import './wrong.py': SyntaxError: invalid syntax (wrong.py:1)"),
    ("x = 1\nraise ValueError('no')\n", "--load=wrong", "cannot import 'wrong': ValueError: no (wrong.py:2)"),
    ("import sys\nsys.exit(3)\n", "--load=wrong", "cannot import 'wrong': SystemExit: 3 (wrong.py:2)"),
    ("import nowhere_to_be_found\n", "--load=wrong",
     "cannot import 'wrong': ModuleNotFoundError: No module named 'nowhere_to_be_found' (wrong.py:1)"),
    ("", "--load=./missing.py", "cannot import './missing.py': there is no such file"),
    ("", "--load=missing_module",
     "cannot import 'missing_module': ModuleNotFoundError: No module named 'missing_module'"),
    ("", "--load=", "option '--load' needs a value: MODULE"),
    ("", "--load", "option '--load' needs a value: MODULE"),
    (HEAD + "class A(Pass):\n    name = 'cse'\n" + RUN, "--load=wrong",
     "pass 'cse' of 'wrong' has the same name as a pass of cute_dialect"),
    (HEAD + "class A(Pass):\n    name = 'help'\n" + RUN, "--load=wrong",
     "pass 'help' of 'wrong' has the same name as an option of this program"),
    (HEAD + "class A(Pass):\n    name = 'a'\n" + RUN + "class B(Pass):\n    name = 'a'\n" + RUN, "--load=wrong",
     "pass 'a' of 'wrong' has the same name as a pass of 'wrong'"),
    (HEAD + "class A(Pass):\n    name = 'My Pass'\n" + RUN, "--load=wrong",
     "invalid pass name 'My Pass' in 'wrong'; use lower-case letters, digits and '-', starting with a letter"),
    (HEAD + "class A(Pass):\n    name = 'a'\n", "--load=wrong", "A of 'wrong': A has no method 'run'"),
    (HEAD + "class A(Pass):\n    name = 3\n" + RUN, "--load=wrong", "A of 'wrong': A has no 'name'"),
    (HEAD + "class A(Pass):\n    name = 'a'\n    Options = int\n" + RUN, "--load=wrong",
     "A of 'wrong': A.Options is not a dataclass derived from cute_dialect.passes.base.PassOptions"),
    (HEAD + "class A(Pass):\n    name = 'a'\n    @dataclass(frozen=True)\n    class Options(PassOptions):\n"
     "        x: int\n" + RUN, "--load=wrong", "A of 'wrong': option 'x' has no default"),
    (HEAD + "class A(Pass):\n    name = 'a'\n    @dataclass(frozen=True)\n    class Options(PassOptions):\n"
     "        x: complex = 1j\n" + RUN, "--load=wrong",
     "A of 'wrong': option 'x' has the type <class 'complex'>: expected int, bool, float, str, a tuple of one of these "
     "(tuple[int, ...]), or one of them | None"),
]  # fmt: skip


@pytest.mark.parametrize("source, option, message", LOADS, ids=[m for _, _, m in LOADS])
def test_a_module_that_cannot_be_loaded(opt: Tool, source: str, option: str, message: str):
    opt.write("wrong.py", source)
    name = option.removeprefix("--load").removeprefix("=")
    if name:
        with pytest.raises(OutsideError) as e:
            PassTable([name], ROWS)
        assert str(e.value).replace(f"{opt.folder}/", "") == message
    assert opt("in.mlir", "--cse", option) == 1
    assert opt.err == f"cute-opt: error: {message}\nTry 'cute-opt --help'.\n"
    assert opt.out == ""


def test_a_file_with_the_name_of_a_module_that_is_loaded(opt: Tool):
    opt.write("passes/json.py", COUNT)
    message = "cannot import './passes/json.py': a module 'json' already exists; rename the file"
    with pytest.raises(OutsideError) as e:
        PassTable(["./passes/json.py"])
    assert str(e.value) == message
    assert opt("in.mlir", "--load=./passes/json.py", "--count-ops") == 1
    assert opt.err == f"cute-opt: error: {message}\nTry 'cute-opt --help'.\n"


def test_modules_named_by_file(opt: Tool, monkeypatch: pytest.MonkeyPatch):
    opt.write("mine.py", COUNT)
    monkeypatch.setattr(sys, "path", [p for p in sys.path if p != str(opt.folder)])
    assert opt("in.mlir", "--load=mine", "--count-ops") == 1
    assert opt.err.startswith(
        "cute-opt: error: cannot import 'mine': ModuleNotFoundError: No module named 'mine' "
        "(there is a file of that name here: --load=./mine.py)\n"
    )


POINT_ERRORS = [
    ({"cse": "counting.passes:CountPass"}, "--nothing",
     "pass 'cse' of counting 1.5 has the same name as a pass of cute_dialect"),
    ({"o": "counting.passes:CountPass"}, "--nothing",
     "pass 'o' of counting 1.5 has the same name as an option of this program"),
    ({"x": "counting.passes"}, "--x", "entry point 'x = counting.passes' of counting 1.5: expected 'module:Class'"),
    ({"x": "counting.gone:CountPass"}, "--x",
     "pass 'x' of counting 1.5 cannot be imported: ModuleNotFoundError: No module named 'counting.gone'"),
    ({"x": "counting.passes:Gone"}, "--x", "pass 'x' of counting 1.5 cannot be imported: AttributeError: "
     "module 'counting.passes' has no attribute 'Gone'"),
    ({"x": "counting.passes:CountPass"}, "--x", "pass 'x' of counting 1.5: CountPass has the name 'count-ops'"),
    ({"x": "counting.passes:dataclass"}, "--x", "pass 'x' of counting 1.5: expected a subclass of "
     "cute_dialect.passes.base.Pass, got <function dataclass at "),
]  # fmt: skip


@pytest.mark.parametrize("points, flag, message", POINT_ERRORS, ids=[m for _, _, m in POINT_ERRORS])
def test_invalid_entry_points_are_reported(opt: Tool, points: dict[str, str], flag: str, message: str):
    opt.install("counting", points, COUNT)
    with pytest.raises(OutsideError) as e:
        table = PassTable([], ROWS)
        row = table.get(flag.removeprefix("--"))
        assert row is not None
        table.load(row)
    assert str(e.value).startswith(message)
    assert opt("in.mlir", flag) == 1
    assert opt.err.startswith(f"cute-opt: error: {message}")
    assert opt("in.mlir", "--cse") == 0  # Other passes still run.


def test_two_packages_with_one_name(opt: Tool):
    opt.install("counting", POINTS, COUNT)
    opt.install("other", {"count-ops": "other.passes:CountPass"}, COUNT)
    assert opt("in.mlir", "--count-ops") == 1
    assert opt.err.startswith(
        "cute-opt: error: pass 'count-ops' of other 1.5 has the same name as a pass of counting 1.5\n"
    )


def test_broken_entry_points_do_not_hide_others(opt: Tool):
    opt.install("counting", {**POINTS, "gone": "counting.passes:Gone"}, COUNT)
    assert opt("--list-passes") == 0
    assert "gone                         (pass 'gone' of counting 1.5 cannot be imported: AttributeError: " in opt.out
    assert opt("in.mlir", "--count-ops") == 0


def test_the_program_finds_it(opt: Tool):
    """A separate cute-opt process finds the entry points of a package in its environment."""
    opt.install("counting", POINTS, COUNT)
    program = [sys.executable, "-m", "cute_dialect.tools.cute_opt", "in.mlir", "--count-ops", "--cse"]
    paths = f"{opt.folder}:{ROOT}"
    ran = subprocess.run(program, env={"PYTHONPATH": paths, "PATH": ""}, capture_output=True, text=True, timeout=120)
    assert ran.returncode == 0, ran.stderr
    assert ran.stderr.startswith("in.mlir:1:1: remark: ops: 5\n")
    assert ran.stdout.count("arith.addi") == 2


def test_embedded_and_in_a_list(opt: Tool):
    """Pipelines embedded in upstream's Python bindings accept external passes too."""
    pytest.importorskip("mlir.ir")
    import mlir.ir as ir

    from cute_dialect.pipelines.embed import lower

    opt.install("counting", POINTS, COUNT)
    context = ir.Context()
    context.allow_unregistered_dialects = True
    for pipeline in ("swap-adds", ["swap-adds", "cse"]):
        assert "arith.addi %arg1, %arg0" in str(lower(ir.Module.parse(ADD, context), pipeline))


def test_as_the_document_shows(opt: Tool):
    text = (ROOT / "docs" / "passes.md").read_text()
    python, shell = (re.findall(rf"```{language}\n(.*?)```", text, re.DOTALL)[0] for language in ("python", "sh"))
    opt.write("my_passes.py", python)
    opt.write("my_package/passes.py", python)
    for command in shell.splitlines():
        program, *words = shlex.split(command)
        assert program == "cute-opt" and opt(*words) == 0
        assert opt.err == ("in.mlir:1:1: remark: 5 ops\nfunc.func @f(%a: i32, %b: i32) -> i32 {\n^~~~~~~~~\n")
        assert opt.out.count("arith.addi") == 2
    assert opt("in.mlir", "--load=./my_passes.py", "--count-ops=least=6") == 1
    assert opt.err.startswith("in.mlir:1:1: error: too few ops\n")
