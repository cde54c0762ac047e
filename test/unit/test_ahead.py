"""Upstream MLIR in a child started ahead: it answers as in this process, also when it dies."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from cute_dialect.pipelines import ahead
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
EXAMPLES = Path(__file__).parents[1] / "examples"

pytestmark = pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="one core: no child is started")


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


def test_no_child_on_one_core(monkeypatch: pytest.MonkeyPatch) -> None:
    def one(_: int) -> set[int]:
        return {0}

    monkeypatch.setattr(os, "sched_getaffinity", one)
    assert ahead.start() is None


@pytest.mark.parametrize("emit", ["ptx", "llvm"])
def test_program_gives_the_same_on_one_core_and_on_two(emit: str) -> None:
    command = [sys.executable, "-m", "cute_dialect.tools.cute_opt", str(EXAMPLES / "elementwise_add.mlir")]
    two = subprocess.run([*command, f"--emit={emit}"], capture_output=True, text=True)
    core = str(min(os.sched_getaffinity(0)))
    one = subprocess.run(["taskset", "-c", core, *command, f"--emit={emit}"], capture_output=True, text=True)
    assert (two.returncode, two.stderr) == (0, "")
    assert two.stdout == one.stdout
    assert ("define ptx_kernel void @add_v" if emit == "llvm" else ".entry add_v") in two.stdout
