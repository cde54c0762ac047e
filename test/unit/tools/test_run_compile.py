"""Compilation and argument errors of ``cute-run``, and its use as a library without side effects."""

from __future__ import annotations

import gc
from pathlib import Path

import pytest

from cute_dialect.ir.printing import ir_text
from cute_dialect.pipelines import compile as compile_cute
from cute_dialect.pipelines import compiler
from cute_dialect.pipelines.compilation import Compilation, CompileRequest, LoweringError, Timing
from cute_dialect.pipelines.compiler import compile_module, compiled_before
from cute_dialect.runtime.launch import CompiledModule
from cute_dialect.tools import cute_run

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
ADD = str(EXAMPLES / "elementwise_add.mlir")


@pytest.mark.slow
def test_library_does_not_change_the_collector(capsys: pytest.CaptureFixture[str]) -> None:
    before, frozen = (gc.isenabled(), gc.get_threshold()), gc.get_freeze_count()
    assert cute_run.main([ADD, "--kernel=add", "--device=cpu", "--in=4x8", "-q"]) == 0
    assert (gc.isenabled(), gc.get_threshold()) == before
    assert gc.get_freeze_count() <= frozen  # Objects frozen earlier may have been freed.


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
    """A run on the CPU compiles to machine code only for reports of registers per thread."""
    pytest.importorskip("mlir.ir")
    asked: list[object] = []

    def compile_nothing(request: CompileRequest, **_: object) -> CompiledModule:
        asked.append(request.emit)
        raise LoweringError("enough")

    monkeypatch.setattr(compiler, "compile_module", compile_nothing)
    assert cute_run.main([ADD, "--no-cache", *arguments]) == 1
    assert capsys.readouterr().err == "enough\n"
    assert asked == [emit]


def test_arguments_are_checked_before_compilation(monkeypatch: pytest.MonkeyPatch) -> None:
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
        m.setattr(Compilation, "to_code", no_code)
        with pytest.raises(Wrong):
            compile_module(CompileRequest(Path(ADD), emit="ptx", cache=False), before_code=refuse)
    assert seen == ["add", "add_v"]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["elementwise_add", "gemm_sm90", "transpose"])
def test_one_kernel_is_lowered(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The interpreter lowers only the kernel of a cached module that runs, to the same code as lowering the module."""
    monkeypatch.setenv("CUTE_CACHE", "1")
    monkeypatch.setenv("CUTE_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(compiler, "_MEMORY", {})
    source = EXAMPLES / f"{name}.mlir"
    request = CompileRequest(source, emit="base")
    assert compiled_before(request) is None
    whole = functions(compile_cute(source, emit="base"), None)
    monkeypatch.setattr(compiler, "_MEMORY", {})
    timings: list[Timing] = []
    again = compile_module(request, timings=timings)
    assert [t.stage for t in timings] == ["cache"]
    assert again.names and functions(again, None) == whole
    for kernel in again.names:
        alone = functions(again, kernel)
        assert alone == {f: text for f, text in whole.items() if f in alone}
        assert kernel in alone and not set(again.names).intersection(alone) - {kernel}
        assert not {h["name"] for h in again.manifest["hosts"]}.intersection(alone)


def functions(module: CompiledModule, kernel: str | None) -> dict[str, str]:
    """Return the text of each function of the lowered module."""
    found: dict[str, str] = {}
    for op in module.lowered(kernel).walk():
        if op.name in ("llvm.func", "func.func"):
            found[str(op.properties["sym_name"]).strip('"')] = ir_text(op)
    return found
