"""Parallel compilation in other processes gives the same result as sequential compilation."""

from __future__ import annotations

import os
import runpy
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cute_dialect.lang as cute
from cute_dialect.pipelines import compiler


@pytest.fixture(autouse=True)
def settings(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("CUTE_DEVICE", raising=False)
    monkeypatch.setenv("CUTE_CHIP", "sm_90a")
    monkeypatch.setenv("CUTE_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(compiler, "_MEMORY", {})


@cute.kernel
def scale(x: cute.Tensor, y: cute.Tensor, by: cute.Constexpr[float]) -> None:
    i = cute.arch.thread_idx()[0]
    if i < 7:
        y[i] = x[i] * by


@cute.jit
def run(x: Any, y: Any, by: cute.Constexpr[float]) -> None:
    scale(x, y, by).launch(grid=1, block=32)


@cute.jit
def too_much(x: Any, y: Any, by: cute.Constexpr[float]) -> None:
    large(x, y).launch(grid=1, block=32)


@cute.kernel
def large(x: cute.Tensor, y: cute.Tensor) -> None:
    s = cute.utils.SmemAllocator().allocate_array(cute.Float32, 200_000)
    s[0] = 1.0
    y[0] = s[0]


X = np.zeros(32, np.float32)
CALLS = [(run, (X, X, float(n))) for n in range(4)]


def refuse(monkeypatch: pytest.MonkeyPatch) -> None:
    def compiled(*_: object, **__: object) -> None:
        raise AssertionError("compiled in this process")

    monkeypatch.setattr(compiler, "_compile", compiled)


def same(a: cute.Compiled, b: cute.Compiled) -> bool:
    one, other = a.compiled_module.artifact, b.compiled_module.artifact
    return (one.code, one.manifest) == (other.code, other.manifest) and a.remarks == b.remarks


@pytest.mark.sample("0")
@pytest.mark.parametrize("cache", ["0", "1"])
def test_parallel_results_match_sequential_ones(monkeypatch: pytest.MonkeyPatch, cache: str, tmp_path: Path) -> None:
    monkeypatch.setenv("CUTE_CACHE", cache)
    run.cache_clear()
    wanted = [cute.compile(f, *args, cache=False) for f, args in CALLS]
    run.cache_clear()
    with monkeypatch.context() as here:
        refuse(here)
        made = cute.precompile(CALLS, workers=2)
        later = cute.compile_async(run, X, X, 9.0).result()
    assert all(map(same, made, wanted)) and made[1].ptx != made[2].ptx
    assert later.mlir("trace") != made[0].mlir("trace")
    y = np.zeros(32, np.float32)
    made[3](X + 2, y, device="cpu")
    assert (y == np.where(np.arange(32) < 7, 6, 0)).all()
    if cache == "1":  # Later calls find the kernel in the cache.
        run.cache_clear()
        refuse(monkeypatch)
        assert all(map(same, [cute.compile(f, *args) for f, args in CALLS], wanted))


def test_line_information_is_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    from cute_dialect.lang.calls.compile import trace

    run.cache_clear()
    option = cute.GenerateLineInfo(True)
    wanted = cute.compile[option](run, X, X, 1.0)
    run.cache_clear()
    refuse(monkeypatch)
    kind = trace[option](run, X, X, 1.0)
    kind.kernel(cpu=False, elsewhere=True)
    assert same(kind, wanted) and f'"{__file__}"' in kind.ptx


def test_failures_are_reported_after_all_compilations(monkeypatch: pytest.MonkeyPatch) -> None:
    run.cache_clear()

    def message(call: Callable[[], object]) -> str:
        with pytest.raises(cute.CompileError, match="shared memory") as error:
            call()
        return str(error.value).splitlines()[0]

    wanted = message(lambda: cute.compile(too_much, X, X, 1.0))
    assert message(lambda: cute.precompile([(too_much, (X, X, 1.0)), *CALLS[:1]], workers=2)) == wanted
    assert len(run.kinds()) == 1
    assert message(lambda: cute.compile_async(too_much, X, X, 2.0).result()) == wanted


@pytest.mark.slow
def test_crashed_workers_fall_back_to_this_process(monkeypatch: pytest.MonkeyPatch) -> None:
    from cute_dialect.pipelines import worker as processes

    run.cache_clear()
    wanted = cute.compile(run, X, X, 5.0, cache=False)
    run.cache_clear()
    died: list[int] = []

    def dies(worker: processes.Worker, keywords: dict[str, object]) -> object:
        worker.start()
        assert worker.pid is not None
        died.append(worker.pid)
        os.kill(worker.pid, signal.SIGKILL)
        return worker.call("compile", keywords, {})

    monkeypatch.setattr(processes.Worker, "compiled", dies)
    assert same(cute.precompile([(run, (X, X, 5.0))], workers=1)[0], wanted) and len(died) == 1


WHILE_TRACED = """
import os, threading
import numpy as np
import cute_dialect.lang as cute

entered, entering = os.pipe()
assigned, assigning = os.pipe()

def wait_for_the_program():
    {assign}os.write(entering, b"x")
    os.read(assigned, 1)

@cute.kernel
def kernel(y: cute.Tensor):
    i = cute.arch.thread_idx()[0]
    if i < 7:
        wait_for_the_program()
        y[i] = 1

@cute.jit
def run(y: cute.Tensor):
    kernel(y).launch(grid=1, block=32)

coming = cute.compile_async(run, np.zeros(7, np.int32), device="cpu")
os.read(entered, 1)
for step in (1, 2):
    pass
os.write(assigning, b"x")
name = coming.result().name
"""


def test_program_assigns_globals_while_another_thread_traces(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(WHILE_TRACED.format(assign=""))
    assert runpy.run_path(str(program))["name"] == "run"


def test_global_that_a_kernel_assigns_while_the_program_assigns_others(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(WHILE_TRACED.format(assign="globals()['total'] = 3; "))
    with pytest.raises(cute.CuteError, match="F158: the global 'total' of module '<run_path>'"):
        runpy.run_path(str(program))
