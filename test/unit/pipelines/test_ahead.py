"""Upstream MLIR in a child: it answers as in this process, also when it dies; the one that a process keeps."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from cute_dialect.pipelines import ahead, compile
from cute_dialect.pipelines.stages import CompileError
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
def keeps(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[ahead.Ahead]]:
    """The idle children of a process that has kept none so far."""
    idle: list[ahead.Ahead] = []
    monkeypatch.setattr(ahead, "_idle", lambda pid: idle)  # pyright: ignore[reportUnknownLambdaType, reportUnknownArgumentType]
    yield idle
    for each in idle:
        each.close()


def pid_of(child: ahead.Ahead | None) -> int:
    """The process of a child that has one."""
    assert child is not None and child.child is not None
    return child.child.pid


def one_core(_: int) -> set[int]:
    """What a machine with one core says."""
    return {0}


def test_child_answers_as_this_process_does() -> None:
    child = ahead.start()
    assert child is not None
    here: UpstreamModule | ahead.AheadModule = UpstreamModule.from_text(KERNEL, "k.mlir")
    there = child.module(KERNEL, "k.mlir")
    assert isinstance(there, ahead.AheadModule)
    for name, options in STEPS:
        assert there.text(generic=True) == here.text(generic=True)
        here.run(name, options)
        there.run(name, options)
    assert there.ptx() == here.ptx()
    assert ".entry f(" in there.ptx()["k"]
    assert there.objects() == here.objects()
    child.close()
    child.close()


def test_errors_cross_with_their_positions() -> None:
    child = ahead.start()
    assert child is not None
    with pytest.raises(UpstreamError) as there:
        child.module("gpu.module @k {\n  nothing.like_this\n}", "k.mlir")
    with pytest.raises(UpstreamError) as here:
        UpstreamModule.from_text("gpu.module @k {\n  nothing.like_this\n}", "k.mlir")
    assert (there.value.message, there.value.line, there.value.col) == (
        here.value.message,
        here.value.line,
        here.value.col,
    )
    assert there.value.line == 2
    module = child.module(KERNEL)
    with pytest.raises(UpstreamError, match="no-such-pass"):
        module.run("no-such-pass")
    module.run("base-prepare")  # the child is as well as before
    child.close()


def test_abort_of_the_back_end_is_an_error_and_work_goes_on_in_another_child() -> None:
    child = ahead.start()
    assert child is not None
    module = child.module(UNSELECTABLE, "k.mlir")
    for name, options in STEPS[:-1]:
        module.run(name, options)
    with pytest.raises(UpstreamError, match=r"NVPTX back end aborted .*Cannot select"):
        module.run("emit-gpu-binary")
    with pytest.raises(UpstreamError, match="the process of upstream MLIR that held this module has ended"):
        module.text()
    assert "llvm.store" in child.module(KERNEL).text()
    child.close()


def test_killed_child_is_an_error() -> None:
    child = ahead.start()
    assert child is not None
    module = child.module(KERNEL)
    assert child.child is not None
    os.kill(child.child.pid, signal.SIGKILL)
    with pytest.raises(UpstreamError, match="signal 9"):
        module.text()


def test_on_one_core_a_child_is_started_when_it_is_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", one_core)
    later = ahead.start()
    assert later is not None and later.child is None
    assert "llvm.store" in later.module(KERNEL).text()
    later.close()


@pytest.mark.parametrize("emit", ["ptx", "llvm"])
def test_program_gives_the_same_on_one_core_and_on_two(emit: str) -> None:
    command = [sys.executable, "-m", "cute_dialect.tools.cute_opt", str(EXAMPLES / "elementwise_add.mlir")]
    two = subprocess.run([*command, f"--emit={emit}"], capture_output=True, text=True)
    core = str(min(os.sched_getaffinity(0)))
    one = subprocess.run(["taskset", "-c", core, *command, f"--emit={emit}"], capture_output=True, text=True)
    assert (two.returncode, two.stderr) == (0, "")
    assert two.stdout == one.stdout
    assert ("define ptx_kernel void @add_v" if emit == "llvm" else ".entry add_v") in two.stdout


# ------------------------------------------------------------------------------------ the one that a process keeps


def test_a_process_keeps_one_fresh_python(keeps: list[ahead.Ahead]) -> None:
    with ahead.borrowed() as first:
        assert first is not None
        assert keeps == []
        text = first.module(KERNEL, "k.mlir").text(generic=True)
        pid = pid_of(first)
        assert b"serve(" in Path(f"/proc/{pid}/cmdline").read_bytes()
        assert text == UpstreamModule.from_text(KERNEL, "k.mlir").text(generic=True)
    with ahead.borrowed() as second:
        assert second is not None and second is first and pid_of(second) == pid
        with pytest.raises(UpstreamError, match="AssertionError"):
            second.call("text", False, False, False)  # the module is dropped
        assert second.module(KERNEL, "k.mlir").text(generic=True) == text


def test_what_is_borrowed_at_a_time_is_apart(keeps: list[ahead.Ahead]) -> None:
    with ahead.borrowed() as first, ahead.borrowed() as second:
        assert first is not None and second is not None and first is not second
        a, b = first.module(KERNEL), second.module(KERNEL.replace("@f", "@g"))
        assert "@f" in a.text() and "@g" in b.text()
    assert len(keeps) == 2


def test_one_that_is_forked_ends_with_what_it_was_for(keeps: list[ahead.Ahead]) -> None:
    with ahead.borrowed(spawns=False) as child:
        assert child is not None
        child.module(KERNEL)
        pid = pid_of(child)
    assert keeps == []
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


@pytest.mark.parametrize("what", ["no Python", "no package"])
def test_where_no_fresh_python_can_be_had_a_child_is_forked(
    what: str, keeps: list[ahead.Ahead], monkeypatch: pytest.MonkeyPatch
) -> None:
    if what == "no Python":
        monkeypatch.setattr(sys, "executable", "/usr/bin/blender")
    else:
        monkeypatch.setattr(ahead, "__name__", "not_installed")
    with ahead.borrowed() as child:
        assert child is not None
        assert "llvm.store" in child.module(KERNEL).text()
        assert Path(f"/proc/{pid_of(child)}/cmdline").read_bytes() == Path("/proc/self/cmdline").read_bytes()
    assert keeps == []


def test_one_that_was_killed_while_it_waited_is_replaced(keeps: list[ahead.Ahead]) -> None:
    with ahead.borrowed() as child:
        assert child is not None
        child.module(KERNEL)
        pid = pid_of(child)
    os.kill(pid, signal.SIGKILL)
    os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
    with ahead.borrowed() as child:
        assert child is not None
        assert "llvm.store" in child.module(KERNEL).text()
        assert pid_of(child) != pid


def test_prepare_starts_it_where_another_core_is_free(
    keeps: list[ahead.Ahead], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", one_core)
    ahead.prepare()
    assert keeps == []
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {0, 1})  # pyright: ignore[reportUnknownLambdaType, reportUnknownArgumentType]
    ahead.prepare()
    ahead.prepare()
    (waiting,) = keeps
    pid = pid_of(waiting)
    with ahead.borrowed() as child:
        assert child is not None and child is waiting
        assert "llvm.store" in child.module(KERNEL).text()
        assert pid_of(child) == pid


def test_a_fork_of_the_process_has_children_of_its_own() -> None:
    with ahead.borrowed() as child:
        assert child is not None
        child.module(KERNEL)
        mine = pid_of(child)
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            with ahead.borrowed() as other:
                assert other is not None and "llvm.store" in other.module(KERNEL).text()
                code = 0 if pid_of(other) != mine else 1
        finally:
            os._exit(code)
    _, status = os.waitpid(pid, 0)
    assert status == 0
    with ahead.borrowed() as child:
        assert pid_of(child) == mine


def test_it_ends_with_the_process() -> None:
    script = (
        "from cute_dialect.pipelines import ahead\n"
        "with ahead.borrowed() as c: c.module('module {}')\n"
        "print(c.child.pid, flush=True)\n"
        "import os; os.kill(os.getpid(), 9)\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.returncode == -signal.SIGKILL
    gone = Path(f"/proc/{done.stdout.strip()}")
    while gone.exists() and "Z" not in (gone / "stat").read_text().rpartition(")")[2].split()[:1]:
        os.sched_yield()


def test_what_upstream_dies_of_is_an_error_of_compile(keeps: list[ahead.Ahead]) -> None:
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


def test_what_llvm_cannot_select_is_an_error_of_compile(keeps: list[ahead.Ahead]) -> None:
    with pytest.raises(CompileError, match=r"LLVM's NVPTX back end aborted .*Cannot select"):
        compile(UNSELECTABLE, chip="sm_80", features="+ptx80", emit="ptx", cache=False)
