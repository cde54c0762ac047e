"""Upstream MLIR in a worker process: same results as in this process, errors if it dies, reuse of idle workers."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from cute_dialect.errors import CompileError
from cute_dialect.pipelines import compile
from cute_dialect.pipelines import worker as processes
from cute_dialect.pipelines.upstream import UpstreamError, UpstreamModule

KERNEL = """
gpu.module @k {
  gpu.func @f(%p: !llvm.ptr<1>) kernel {
    %t = gpu.thread_id x
    %i = arith.index_cast %t : index to i32
    %q = llvm.getelementptr %p[%i] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
    llvm.store %i, %q : i32, !llvm.ptr<1>
    gpu.return
  }
}
"""
UNSELECTABLE = """
gpu.module @k {
  gpu.func @f(%p: !llvm.ptr<1>, %n: i32) kernel {
    %c = nvvm.elect.sync -> i1
    scf.if %c {
      llvm.store %n, %p : i32, !llvm.ptr<1>
    }
    gpu.return
  }
}
"""
STEPS = (
    ("base-prepare", {}),
    ("one-shot-convert-to-llvm", {}),
    ("attach-nvvm-target", {"chip": "sm_80"}),
    ("emit-gpu-binary", {}),
)
EXAMPLES = Path(__file__).parents[2] / "examples"
ASSERTS = "func.func @f(%a: memref<4294967296x4294967296xf32>) {\n  return\n}\n"
"""Upstream dies of this: an assertion about the size of the array."""


@pytest.fixture
def keeps(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[processes.Worker]]:
    """Yield the list of idle workers, initially empty."""
    idle: list[processes.Worker] = []
    monkeypatch.setattr(processes, "_idle", lambda pid, serve: idle)  # pyright: ignore[reportUnknownLambdaType, reportUnknownArgumentType]
    yield idle
    for each in idle:
        each.close()


def test_idle_worker_taken_by_another_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    """A thread gets a new worker if another one takes the last idle worker at the same time."""

    class Taken(list[processes.Worker]):
        def __bool__(self) -> bool:
            return True

    idle = Taken()
    monkeypatch.setattr(processes, "_idle", lambda pid, serve: idle)  # pyright: ignore[reportUnknownLambdaType, reportUnknownArgumentType]
    with processes.borrowed() as worker:
        assert worker.pid is None


def pid_of(worker: processes.Worker) -> int:
    """Return the process id of a running worker."""
    assert worker.pid is not None
    return worker.pid


def test_worker_results_match_this_process(keeps: list[processes.Worker]) -> None:
    here = UpstreamModule.from_text(KERNEL, "k.mlir")
    with processes.borrowed() as worker:
        there = worker.module(KERNEL, "k.mlir")
        for name, options in STEPS:
            assert there.text(generic=True) == here.text(generic=True)
            here.run(name, options)
            there.run(name, options)
        assert there.ptx() == here.ptx()
        assert ".entry f(" in there.ptx()["k"]
        assert there.objects() == here.objects()
    worker.close()
    worker.close()


def test_errors_cross_with_their_positions(keeps: list[processes.Worker]) -> None:
    wrong = "gpu.module @k {\n  nothing.like_this\n}"
    with processes.borrowed() as worker:
        with pytest.raises(UpstreamError) as there:
            worker.module(wrong, "k.mlir")
        with pytest.raises(UpstreamError) as here:
            UpstreamModule.from_text(wrong, "k.mlir")
        assert str(there.value) == str(here.value)
        assert (there.value.line, there.value.col) == (here.value.line, here.value.col)
        assert there.value.line == 2
        module = worker.module(KERNEL)
        with pytest.raises(UpstreamError, match="no-such-pass"):
            module.run("no-such-pass")
        module.run("base-prepare")  # The worker is still usable.


def test_abort_of_the_back_end_is_an_error_and_work_goes_on_in_another_process(
    keeps: list[processes.Worker],
) -> None:
    with processes.borrowed() as worker:
        module = worker.module(UNSELECTABLE, "k.mlir")
        for name, options in STEPS[:-1]:
            module.run(name, options)
        dead = pid_of(worker)
        with pytest.raises(UpstreamError, match=r"NVPTX back end aborted .*Cannot select.*elect.*does not have"):
            module.run("emit-gpu-binary")
        with pytest.raises(UpstreamError, match="the process of upstream MLIR that held this module has ended"):
            module.text()
        with pytest.raises(ProcessLookupError):
            os.kill(dead, 0)  # It has been reaped.
        assert "llvm.store" in worker.module(KERNEL).text()


def test_a_stack_that_is_too_small_is_an_error(keeps: list[processes.Worker]) -> None:
    deep = '"builtin.module"() ({\n' * 60_000 + "}) : () -> ()\n" * 60_000
    with (
        processes.borrowed() as worker,
        pytest.raises(UpstreamError, match=r"the parser .* aborted \(signal 11\)"),
    ):
        worker.module(deep)


@pytest.mark.slow
def test_a_text_of_many_megabytes_passes(keeps: list[processes.Worker]) -> None:
    text = f'module attributes {{a.b = "{"x" * (1 << 24)}"}} {{\n}}\n'
    with processes.borrowed() as worker:
        assert len(worker.module(text).text()) > 1 << 24


def test_a_process_that_is_killed_is_an_error(keeps: list[processes.Worker]) -> None:
    with processes.borrowed() as worker:
        module = worker.module(KERNEL)
        os.kill(pid_of(worker), signal.SIGKILL)
        with pytest.raises(UpstreamError, match="signal 9"):
            module.text()
    assert keeps == []


def test_an_interrupt_ends_the_process(keeps: list[processes.Worker], monkeypatch: pytest.MonkeyPatch) -> None:
    """An interrupt ends the worker, because its late reply would be taken as the answer to the next request."""

    def interrupt(pipe: int) -> None:
        raise KeyboardInterrupt

    with processes.borrowed() as worker:
        module = worker.module(KERNEL)
        dead = pid_of(worker)
        assert os.getpgid(dead) != os.getpgid(0)  # Ctrl-C does not reach the worker.
        with monkeypatch.context() as m, pytest.raises(KeyboardInterrupt):
            m.setattr(processes, "receive", interrupt)
            module.run("base-prepare")
        with pytest.raises(ProcessLookupError):
            os.kill(dead, 0)
        assert "llvm.store" in worker.module(KERNEL).text()


@pytest.mark.slow
@pytest.mark.parametrize("emit", ["ptx", "llvm"])
def test_a_program_gives_the_same_on_one_core_and_on_two(emit: str) -> None:
    command = [sys.executable, "-m", "cute_dialect.tools.cute_opt", str(EXAMPLES / "elementwise_add.mlir")]
    two = subprocess.run([*command, f"--emit={emit}"], capture_output=True, text=True)
    core = str(min(os.sched_getaffinity(0)))
    one = subprocess.run(["taskset", "-c", core, *command, f"--emit={emit}"], capture_output=True, text=True)
    assert (two.returncode, two.stderr) == (0, "")
    assert two.stdout == one.stdout
    assert ("define ptx_kernel void @add_v" if emit == "llvm" else ".entry add_v") in two.stdout


def test_one_idle_worker_is_kept_ready(keeps: list[processes.Worker]) -> None:
    with processes.borrowed() as first:
        assert keeps == []
        text = first.module(KERNEL, "k.mlir").text(generic=True)
        pid = pid_of(first)
        assert b"serve(" in Path(f"/proc/{pid}/cmdline").read_bytes()
    with processes.borrowed() as second:
        assert second is first and pid_of(second) == pid
        with pytest.raises(UpstreamError, match="AssertionError"):
            second.call("text", False, False, False)  # Its module was dropped.
        assert second.module(KERNEL, "k.mlir").text(generic=True) == text


def test_borrowed_workers_are_distinct(keeps: list[processes.Worker]) -> None:
    with processes.borrowed() as first, processes.borrowed() as second:
        assert first is not second
        a, b = first.module(KERNEL), second.module(KERNEL.replace("@f", "@g"))
        assert "@f" in a.text() and "@g" in b.text()
    assert len(keeps) == 2


def test_python_next_to_an_embedding_program_is_found(
    keeps: list[processes.Worker], monkeypatch: pytest.MonkeyPatch
) -> None:
    """If sys.executable embeds Python, as in Blender, the worker runs the Python in sys.exec_prefix."""
    monkeypatch.setattr(sys, "executable", "/usr/bin/blender")
    with processes.borrowed() as worker:
        assert "llvm.store" in worker.module(KERNEL).text()
    monkeypatch.setattr(sys, "exec_prefix", "/nowhere")
    processes.start()  # No error, because an idle worker exists.
    keeps.pop().close()
    processes.start()  # No error until a worker is used.
    with (
        processes.borrowed() as worker,
        pytest.raises(UpstreamError, match="neither '/usr/bin/blender' nor '/nowhere/bin"),
    ):
        worker.module(KERNEL)


def test_a_python_that_cannot_start_is_an_error(keeps: list[processes.Worker], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", [])
    with (
        processes.borrowed() as worker,
        pytest.raises(UpstreamError, match=r"exit status 1\): .*ModuleNotFoundError"),
    ):
        worker.module(KERNEL)


def test_killed_idle_workers_are_replaced(keeps: list[processes.Worker]) -> None:
    with processes.borrowed() as worker:
        worker.module(KERNEL)
        pid = pid_of(worker)
    os.kill(pid, signal.SIGKILL)
    os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
    with processes.borrowed() as worker:
        assert "llvm.store" in worker.module(KERNEL).text()
        assert pid_of(worker) != pid


def test_started_workers_stay_idle(keeps: list[processes.Worker]) -> None:
    processes.start()
    processes.start()
    (waiting,) = keeps
    pid = pid_of(waiting)
    with processes.borrowed() as worker:
        assert worker is waiting
        assert "llvm.store" in worker.module(KERNEL).text()
        assert pid_of(worker) == pid


def test_a_fork_of_the_process_has_workers_of_its_own() -> None:
    with processes.borrowed() as worker:
        worker.module(KERNEL)
        mine = pid_of(worker)
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            with processes.borrowed() as other:
                assert "llvm.store" in other.module(KERNEL).text()
                code = 0 if pid_of(other) != mine else 1
        finally:
            os._exit(code)
    _, status = os.waitpid(pid, 0)
    assert status == 0
    with processes.borrowed() as worker:
        assert pid_of(worker) == mine


def test_workers_end_with_the_process() -> None:
    script = (
        "from cute_dialect.pipelines import worker as processes\n"
        "with processes.borrowed() as w: w.module('module {}')\n"
        "print(w.pid, flush=True)\n"
        "import os; os.kill(os.getpid(), 9)\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.returncode == -signal.SIGKILL
    gone = Path(f"/proc/{done.stdout.strip()}")
    while gone.exists() and "Z" not in (gone / "stat").read_text().rpartition(")")[2].split()[:1]:
        os.sched_yield()


def test_crashes_of_upstream_are_compile_errors(keeps: list[processes.Worker]) -> None:
    good = compile(KERNEL, emit="ptx", cache=False)
    assert len(keeps) == 1
    with pytest.raises(CompileError) as seen:
        compile(ASSERTS, emit="ptx", cache=False, filename="in.mlir")
    message = str(seen.value)
    assert message.startswith("in.mlir: error: pass 'one-shot-convert-to-llvm' of upstream MLIR aborted (signal 6): ")
    assert "integer overflow in size computation" in message
    assert message.endswith("note: while running pass 'one-shot-convert-to-llvm' in upstream MLIR")
    assert keeps == []
    again = compile(KERNEL, emit="ptx", cache=False)
    assert again.artifact.code == good.artifact.code


def test_selection_failures_of_llvm_are_compile_errors(keeps: list[processes.Worker]) -> None:
    with pytest.raises(CompileError, match=r"LLVM's NVPTX back end aborted .*Cannot select"):
        compile(UNSELECTABLE, chip="sm_80", features="+ptx80", emit="ptx", cache=False)
