"""``op.prefetch`` compiles kernels in other processes, and later calls find them."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from cute_dialect import op
from cute_dialect.kernels.gemm.config import GemmConfig
from cute_dialect.op.execute import kernel_cache, kernels
from cute_dialect.op.execute.kernel_cache import LIBRARIES
from cute_dialect.op.select.kernel_choice import Choice, Problem
from cute_dialect.pipelines import compiler
from cute_dialect.pipelines.upstream import is_available

pytestmark = pytest.mark.skipif(not is_available(), reason="upstream MLIR is not installed")
SMALL = [Problem(64, 64, 64), Problem(512, 1024, 256, "bf16", "bf16", "m", "n")]


@pytest.fixture(autouse=True)
def compiled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """Record the files compiled in this process, with an empty cache."""
    names: list[str] = []
    compile_here = compiler._compile

    def noted(request: Any, *rest: Any) -> Any:
        names.append(request.filename)
        return compile_here(request, *rest)

    monkeypatch.setattr(compiler, "_compile", noted)
    monkeypatch.delenv("CUTE_CACHE", raising=False)
    monkeypatch.setenv("CUTE_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("CUTE_CONFIG_DIR", str(tmp_path / "config"))
    compiler._MEMORY.clear()
    LIBRARIES.clear()
    yield names
    LIBRARIES.clear()


@pytest.mark.slow
def test_calls_after_prefetch_do_not_compile(compiled: list[str], tmp_path: Path) -> None:
    odd = op.explain(op.mm, (65, 33), (33, 65), element="i8")
    fused = op.explain(op.mm, (64, 64), (64, 64), bias=(64,), activation="relu")
    assert odd.choice is None and fused.choice is not None
    found = op.prefetch([*SMALL, SMALL[0], odd, fused, op.choose(SMALL[1])], workers=2)
    assert len(found) == 4
    found.wait(300)
    assert found.done() and compiled == []
    made = [kernels.library(op.choose(p)) for p in SMALL] + [kernels.library(fused.choice)]
    assert all("launch" in repr(k.kernel("launch")) and k.ptx for k in made)
    assert odd.other is not None and kernels.library(odd.other).ptx
    assert compiled == []
    # A second process finds the kernel on disk and compiles nothing either.
    code = (
        "from cute_dialect.op import Problem, choose; from cute_dialect.op.execute import kernels; "
        "from cute_dialect.pipelines import compiler; compiler._compile = None; "
        "print(len(kernels.library(choose(Problem(64, 64, 64))).ptx))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) == len(made[0].ptx)


def test_without_a_compile_cache(compiled: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUTE_CACHE", "0")
    op.prefetch(SMALL[:1]).wait(300)
    assert kernels.library(op.choose(SMALL[0])).ptx and compiled == []


def test_failures_are_raised_after_all_compilations() -> None:
    none = Choice(GemmConfig(stages=40))
    found = op.prefetch([none, SMALL[0]], workers=2)
    with pytest.raises(ValueError, match="at most 232448 are available"):
        found.wait(300)
    assert found.done() and kernels.library(op.choose(SMALL[0])).ptx
    with pytest.raises(ValueError, match="at most 232448 are available"):
        kernels.library(none)
    with pytest.raises(TypeError, match="is not a Problem, a Choice or a result"):
        op.prefetch([3])  # type: ignore[list-item]
    op.prefetch([]).wait()


def test_concurrent_calls_wait_for_the_compilation(monkeypatch: pytest.MonkeyPatch) -> None:
    """The kernel is compiled once, and both callers get it."""
    begun, go_on, calls = threading.Event(), threading.Event(), []

    def slowly(name: str, text: object, *, elsewhere: bool, **_: object) -> Any:
        calls.append((name, elsewhere))
        begun.set()
        assert go_on.wait(60)
        return name

    monkeypatch.setattr(kernel_cache, "load_or_compile", slowly)
    choice = op.choose(SMALL[0])
    found = op.prefetch([choice])
    assert begun.wait(60) and not found.done()
    with pytest.raises(TimeoutError, match="1 of 1 kernels are not compiled after"):
        found.wait(0.01)
    asked: list[Any] = []
    thread = threading.Thread(target=lambda: asked.append(kernels.library(choice)))
    thread.start()
    go_on.set()
    thread.join(60)
    found.wait(60)
    assert asked == [choice.name] and calls == [(choice.name, True)]


@pytest.mark.slow
def test_prefetch_compiles_the_f32_split(compiled: list[str]) -> None:
    wanted = op.explain(op.mm, (64, 32), (32, 64), math="3xtf32", element="f32")
    assert [c.name for c in wanted.parts] == ["split-a-row", "split-b-column"]
    found = op.prefetch([wanted])
    assert len(found) == 3
    found.wait(300)
    assert all([kernels.library(c).ptx for c in wanted.parts]) and compiled == []


@pytest.mark.parametrize("element", ["bf16", "f64"])
def test_kernels_of_grouped_gemms(compiled: list[str], element: str) -> None:
    found = op.explain(op.grouped_mm, (256, 64), (4, 64, 128), offs=(4,), element=element)
    pending = op.prefetch([found, found])
    assert len(pending) == 1
    pending.wait(300)
    assert kernels.library(found.config).ptx and compiled == []
