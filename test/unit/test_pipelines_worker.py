"""The process that LLVM's back end runs in from the third module on, against the forked child of the first two."""

from __future__ import annotations

import os
import select
import sys
import threading
from collections.abc import Iterator

import pytest
from pipelines_support import add_module, kernel, module

from cute_dialect.pipelines.upstream import UpstreamError, UpstreamModule
from cute_dialect.pipelines.worker import Workers, workers

EMIT = "builtin.module(gpu-module-to-binary{format=isa})"
ELECT = """\
      %p = nvvm.elect.sync -> i1
      scf.if %p {
        llvm.store %a1, %a0 : i32, !llvm.ptr<1>
      }
"""
CRASH = module(kernel("k", ["opaque", "i32"], ["!llvm.ptr<1>", "i32"], ELECT))


@pytest.fixture(autouse=True, scope="module")
def two_cores() -> Iterator[None]:
    """Whatever this machine has."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "sched_getaffinity", lambda pid: {0, 1})  # pyright: ignore[reportUnknownLambdaType, reportUnknownArgumentType]
        yield


def lowered(text: str, chip: str = "sm_90a") -> UpstreamModule:
    m = UpstreamModule.from_text(text, "in.mlir")
    m.run("base-prepare")
    m.run("one-shot-convert-to-llvm")
    m.run("attach-nvvm-target", {"chip": chip, "features": "+ptx83", "opt-level": "3"})
    return m


def ptx(bytecode: bytes | None) -> str:
    assert bytecode is not None
    (code,) = UpstreamModule.from_bytecode(bytecode).ptx().values()
    return code


def wait(made: Workers) -> None:
    """Until the worker has loaded everything, or failed to."""
    assert made.worker is not None
    assert select.select([made.worker.replies], [], [], 60)[0]


@pytest.fixture(scope="module")
def ready() -> Workers:
    made = Workers()
    m = lowered(add_module())
    assert made.emit(m, EMIT, "in.mlir") is None
    assert made.worker is None, "one module is no reason to start one"
    assert made.emit(m, EMIT, "in.mlir") is None
    wait(made)
    return made


def test_the_worker_gives_what_the_child_gives(ready: Workers) -> None:
    m = lowered(add_module())
    ours = [ptx(ready.emit(m, EMIT, "in.mlir")) for _ in range(2)]
    assert not m.ptx(), "the module itself is as it was"
    m.run("emit-gpu-binary")
    assert ours == list(m.ptx().values()) * 2


def test_a_module_runs_there_once_it_is_ready(ready: Workers, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cute_dialect.pipelines.worker.workers", lambda pid: ready)  # pyright: ignore[reportUnknownLambdaType, reportUnknownArgumentType]

    def no_child(work: object, filename: str) -> str:
        raise AssertionError("a child was asked")

    monkeypatch.setattr("cute_dialect.pipelines.upstream.in_child", no_child)
    m = lowered(add_module())
    m.run("emit-gpu-binary")
    assert ".entry add(" in m.ptx()["kernels"]


def test_what_a_pipeline_refuses_is_an_error(ready: Workers) -> None:
    with pytest.raises(UpstreamError, match="unknown pass 'no-such'"):
        ready.emit(lowered(add_module()), "builtin.module(no-such)", "in.mlir")
    assert ready.emit(lowered(add_module()), EMIT, "in.mlir"), "it goes on"


def test_only_one_module_at_a_time(ready: Workers) -> None:
    m = lowered(add_module())
    got: list[bytes | None] = []
    with ready.lock:
        other = threading.Thread(target=lambda: got.append(ready.emit(m, EMIT, "in.mlir")))
        other.start()
        other.join()
    assert got == [None]
    assert ready.emit(m, EMIT, "in.mlir")


def test_it_ends_with_what_llvm_cannot_select_and_comes_again() -> None:
    made = Workers()
    good, bad = lowered(add_module()), lowered(CRASH, "sm_80")
    for _ in range(2):
        made.emit(good, EMIT, "in.mlir")
    wait(made)
    with pytest.raises(UpstreamError, match=r"aborted.*Cannot select.*elect") as seen:
        made.emit(bad, EMIT, "in.mlir")
    assert seen.value.filename == "in.mlir"
    assert made.worker is None
    with pytest.raises(UpstreamError) as child:
        bad.run("emit-gpu-binary")
    assert child.value.message == seen.value.message, "a child says the same"
    assert [made.emit(good, EMIT, "in.mlir") for _ in range(2)] == [None, None]
    wait(made)
    assert ".entry add(" in ptx(made.emit(good, EMIT, "in.mlir"))


def test_one_that_cannot_start_is_never_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    made = Workers()
    m = lowered(add_module())
    made.emit(m, EMIT, "in.mlir")
    monkeypatch.setattr(sys, "path", ["/nowhere"])
    made.emit(m, EMIT, "in.mlir")
    monkeypatch.undo()
    wait(made)
    assert [made.emit(m, EMIT, "in.mlir") for _ in range(2)] == [None, None]
    assert made.worker is not None and made.worker.started is False


@pytest.mark.parametrize("what", ["one core", "not Python"])
def test_none_is_started(monkeypatch: pytest.MonkeyPatch, what: str) -> None:
    if what == "one core":
        monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {0})  # pyright: ignore[reportUnknownLambdaType, reportUnknownArgumentType]
    else:
        monkeypatch.setattr(sys, "executable", "/usr/bin/blender")
    made = Workers()
    m = lowered(add_module())
    assert [made.emit(m, EMIT, "in.mlir") for _ in range(3)] == [None] * 3
    assert made.worker is None


def test_a_fork_has_workers_of_its_own() -> None:
    mine = workers(os.getpid())
    assert workers(os.getpid()) is mine
    pid = os.fork()
    if pid == 0:
        os._exit(0 if workers(os.getpid()) is not mine else 1)
    _, status = os.waitpid(pid, 0)
    assert status == 0
    assert workers(os.getpid()) is mine


def test_it_ends_with_its_parent() -> None:
    made = Workers()
    m = lowered(add_module())
    for _ in range(2):
        made.emit(m, EMIT, "in.mlir")
    wait(made)
    assert made.worker is not None
    os.close(made.worker.requests)
    _, status = os.waitpid(made.worker.pid, 0)
    assert status == 0
