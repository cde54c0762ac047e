"""How ``cute-run`` starts: as a program quickly, as a library without a trace; what it compiles, when it objects."""

from __future__ import annotations

import gc
import subprocess
import sys
from pathlib import Path

import pytest

from cute_dialect.ir.printing import ir_text
from cute_dialect.pipelines import compile as compile_cute
from cute_dialect.pipelines import stages
from cute_dialect.pipelines.stages import Timing, compile_module, compiled_before
from cute_dialect.runtime.launch import CompiledModule
from cute_dialect.tools import cute_run

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
ADD = str(EXAMPLES / "elementwise_add.mlir")

PROGRAM = """
import os, sys
from contextlib import contextmanager
from cute_dialect.tools import quick_definitions, quick_start

entered = []

def noted(name, make):
    @contextmanager
    def inside():
        entered.append(name)
        with make():
            yield
    return inside

for module, name in ((quick_definitions, "definitions_made_later"), (quick_start, "methods_made_later")):
    setattr(module, name, noted(name, getattr(module, name)))
leave = os._exit
def report(status):
    print(status, *sorted(entered), flush=True)
    leave(0)
os._exit = report

from cute_dialect.tools.cute_run import main

mode = sys.argv.pop(1)
print("gave", main(sys.argv[1:] if mode == "library" else None), *entered)
"""


def start(mode: str, *arguments: str) -> str:
    done = subprocess.run([sys.executable, "-c", PROGRAM, mode, *arguments], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()[-1]


def test_program_and_library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUTE_CACHE_DIR", str(tmp_path))
    run = (ADD, "--kernel=add", "--device=cpu", "--in=4x8", "--in=4x8", "--check=add")
    assert start("program", *run) == "0 definitions_made_later methods_made_later"
    assert start("library", *run) == "gave 0"


def test_the_library_leaves_the_collector(capsys: pytest.CaptureFixture[str]) -> None:
    before = gc.isenabled(), gc.get_threshold(), gc.get_freeze_count()
    assert cute_run.main([ADD, "--kernel=add", "--device=cpu", "--in=4x8", "-q"]) == 0
    assert (gc.isenabled(), gc.get_threshold(), gc.get_freeze_count()) == before


@pytest.mark.parametrize(
    ("arguments", "emit"),
    [
        (("--device=cpu",), "base"),
        (("--device=cpu", "--check=race"), "base"),
        (("--device=cpu", "--report=banks"), "base"),
        (("--device=cpu", "--report=banks,occupancy"), "auto"),
        (("--device=cpu", "--keep=out"), "auto"),
        (("--list",), "base"),
    ],
)
def test_how_far_is_compiled(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], emit: str
) -> None:
    """The CPU needs no machine code, except to tell how many registers a thread has."""
    pytest.importorskip("mlir.ir")
    asked: list[object] = []

    def compile_nothing(*_: object, **options: object) -> CompiledModule:
        asked.append(options["emit"])
        raise stages.CompileError("enough")

    monkeypatch.setattr(stages, "compile_module", compile_nothing)
    assert cute_run.main([ADD, "--no-cache", *arguments]) == 1
    assert capsys.readouterr().err == "enough\n"
    assert asked == [emit]


def test_arguments_are_checked_before_code_is_made(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("mlir.ir")
    seen: list[str] = []

    class Wrong(Exception):
        pass

    def refuse(module: CompiledModule) -> None:
        seen.extend(module.names)
        assert module.artifact.code == ()
        raise Wrong

    def no_code(*_: object) -> None:
        raise AssertionError("code was made")

    with monkeypatch.context() as m:
        m.setattr(stages._Work, "to_code", no_code)  # pyright: ignore[reportPrivateUsage]
        with pytest.raises(Wrong):
            compile_module(Path(ADD), emit="ptx", cache=False, before_code=refuse)
    assert seen == ["add", "add_v"]


@pytest.mark.parametrize("name", ["elementwise_add", "gemm_sm90", "transpose"])
def test_one_kernel_is_lowered(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a module from the cache the interpreter has only the kernel made that it runs: as it is among the others."""
    monkeypatch.setenv("CUTE_CACHE", "1")
    monkeypatch.setenv("CUTE_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(stages, "_MEMORY", {})
    source = EXAMPLES / f"{name}.mlir"
    assert compiled_before(source, emit="base") is None
    whole = functions(compile_cute(source, emit="base"), None)
    monkeypatch.setattr(stages, "_MEMORY", {})
    timings: list[Timing] = []
    again = compile_module(source, emit="base", timings=timings)
    assert [t.stage for t in timings] == ["cache"]
    assert again.names and functions(again, None) == whole
    for kernel in again.names:
        alone = functions(again, kernel)
        assert alone == {f: text for f, text in whole.items() if f in alone}
        assert kernel in alone and not set(again.names).intersection(alone) - {kernel}
        assert not {h["name"] for h in again.manifest["hosts"]}.intersection(alone)


def functions(module: CompiledModule, kernel: str | None) -> dict[str, str]:
    """The text of each function of the lowered module."""
    found: dict[str, str] = {}
    for op in module.lowered(kernel).walk():
        if op.name in ("llvm.func", "func.func"):
            found[str(op.properties["sym_name"]).strip('"')] = ir_text(op)
    return found
