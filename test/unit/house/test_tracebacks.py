"""Tracebacks of uncaught errors, for wrong programs of every stage: only the user's frames and one message."""

from __future__ import annotations

import os
import subprocess
import sys
import traceback
from pathlib import Path
from typing import Any

import pytest

from cute_dialect import op
from cute_dialect.errors import CuteError
from cute_dialect.tracebacks import shorten

HEAD = """
import numpy as np
import cute_dialect.lang as cute
from cute_dialect import op

@cute.kernel
def race(x: cute.Tensor, y: cute.Tensor):
    t = cute.arch.thread_idx().x
    s = cute.smem_tensor(cute.Float32, cute.make_layout(128))
    s[t] = x[t]
    y[t] = s[127 - t]

@cute.kernel
def outside(x: cute.Tensor, y: cute.Tensor):
    y[cute.arch.thread_idx().x + 100] = x[0]

@cute.kernel
def attribute(x: cute.Tensor, y: cute.Tensor):
    y[0] = x.foo

@cute.kernel
def alignment(x: cute.Tensor, y: cute.Tensor):
    atom = cute.make_copy_atom(cute.nvgpu.CopyUniversalOp(), cute.Float32, num_bits_per_copy=128)
    cute.copy(atom, cute.local_tile(x, (3,), (0,)), cute.local_tile(y, (3,), (0,)))

def down(n):
    return down(n + 1)

@cute.kernel
def recursive(x: cute.Tensor, y: cute.Tensor):
    y[0] = down(cute.arch.thread_idx().x)

@cute.jit
def run(x: cute.Tensor, y: cute.Tensor, which: cute.Constexpr):
    which(x, y).launch(grid=1, block=128)

@cute.jit
def run_blocks(x: cute.Tensor, y: cute.Tensor, block: cute.Int32):
    outside(x, y).launch(grid=1, block=block)

x, y = np.zeros(128, "f4"), np.zeros(128, "f4")
a, b = np.ones((4, 4), "f2"), np.ones((5, 4), "f2")
"""

WRONG = {
    "race": ('run(x, y, race, device="cpu", checks=("race",))', "race on shared memory"),
    "bounds": ('run(x, y, outside, device="cpu", checks=("oob",))', "out-of-bounds write of tensor 'y'"),
    "python": ('run(x, y, attribute, device="cpu")', "no attribute 'foo'"),
    "lowering": ('run(x, y, alignment, device="cpu")', "the atom moves 128 bits at a time"),
    "launch": ('run_blocks(x, y, 5000, device="cpu")', "block (5000, 1, 1)"),
    "recursion": ('run(x, y, recursive, device="cpu")', "recurses without end"),
    "folder": ('cute.load("no such folder")', "is not a compiled module"),
    "keyword": ('op.mm(a, a, devise="cpu")', "did you mean 'device'?"),
    "argument": ('cute.compile(run, x, y, outside)(x.astype("f8"), y, device="cpu")', "f64"),
    "shapes": ('op.mm(a, b, device="cpu")', "mm"),
    "epilogue": ('op.mm(a, a, epilogue=lambda accum: accum.foo, device="cpu")', "foo"),
    "layout": ("cute.make_layout((4, 8), stride=(1,))", "make_layout"),
    "algebra": (
        "from cute_dialect.algebra import Layout, composition; composition(Layout('(4,3):(1,7)'), Layout('5:2'))",
        "composition",
    ),
    "text": ("from cute_dialect.pipelines import compile; compile('module { cute.nothing }')", "nothing"),
    "method": ("class A:\n    def f(self): run_blocks(x, y, 5000, device='cpu')\nA().f()", "block (5000, 1, 1)"),
}

RECURSION = pytest.param("recursion", marks=pytest.mark.slow)


def program(tmp_path: Path, name: str, **environment: str) -> str:
    """Run a wrong program and return its standard error."""
    path = tmp_path / "wrong.py"
    path.write_text(HEAD + WRONG[name][0] + "\n")
    done = subprocess.run(
        [sys.executable, str(path)], capture_output=True, text=True, check=False, env={**os.environ, **environment}
    )
    assert done.returncode == 1
    return done.stderr


def error_of(tmp_path: Path, name: str) -> Exception:
    """Run a wrong program in this process and return the error that it raises."""
    path = tmp_path / "wrong.py"
    path.write_text(HEAD + WRONG[name][0] + "\n")
    try:
        exec(compile(path.read_text(), str(path), "exec"), {"__name__": "wrong", "__file__": str(path)})
    except Exception as e:
        return e
    raise AssertionError("it raises nothing")


def frames_of(text: str) -> list[str]:
    return [line for line in text.splitlines() if line.startswith("  File ") and __file__ not in line]


@pytest.mark.parametrize("name", [RECURSION if name == "recursion" else name for name in WRONG])
def test_only_the_users_frames(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    error = error_of(tmp_path, name)
    sys.excepthook(type(error), error, error.__traceback__)
    text = capsys.readouterr().err
    frames = frames_of(text)
    assert frames and all("wrong.py" in line for line in frames), text
    assert text.count("Traceback") == 1 and "called from" not in text, text
    assert WRONG[name][1] in text
    lines = [line.strip() for line in text.splitlines()]
    source = [line for line in lines if line.startswith(("run(", "which(", "y[0]"))]
    assert len(source) == len(set(source)), "a line is shown twice"
    assert len(lines) <= 28, text


def test_a_program(tmp_path: Path) -> None:
    text = program(tmp_path, "python")
    assert frames_of(text) and all("wrong.py" in line for line in frames_of(text)), text


@pytest.mark.parametrize("name", ["race", "bounds", "python", "lowering", RECURSION, "launch", "argument", "method"])
def test_calls_of_kernels_raise_short_tracebacks(name: str, tmp_path: Path) -> None:
    """Tracebacks have only the user's frames even without the hook, as in pytest and logging."""
    text = "".join(traceback.format_exception(error_of(tmp_path, name)))
    frames = frames_of(text)
    assert frames and all("wrong.py" in line for line in frames), text
    assert text.count("Traceback") == 1 and WRONG[name][1] in text


def test_ipython_prints_short_tracebacks(tmp_path: Path) -> None:
    error: Any = error_of(tmp_path, "shapes")
    lines = error._render_traceback_()
    assert len(frames_of("\n".join(lines))) == 1
    assert lines[-1].endswith(str(error))


@pytest.mark.slow
@pytest.mark.end_to_end
def test_pytest_shows_the_users_frames_of_op(tmp_path: Path) -> None:
    path = tmp_path / "test_wrong.py"
    path.write_text("from cute_dialect import op\n\n\ndef test_it():\n    op.softmax(3)\n")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert "DtypeError" in done.stdout and "softmax" in done.stdout
    assert "cute_dialect/op/" not in done.stdout, done.stdout


def test_handled_errors_keep_their_frames() -> None:
    """An error raised while the program handles another of its errors shows both."""
    with pytest.raises(CuteError) as caught:
        try:
            os.environ["NO_SUCH_VARIABLE"]
        except KeyError:
            op.softmax(3, scale=2)
    shorten(caught.value)
    assert isinstance(caught.value.__context__, KeyError) and not caught.value.__suppress_context__


@pytest.mark.slow
def test_all_frames(tmp_path: Path) -> None:
    text = program(tmp_path, "launch", CUTE_TRACEBACK="full")
    assert "launch_plan.py" in text


def test_all_frames_in_this_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUTE_TRACEBACK", "full")
    text = "".join(traceback.format_exception(error_of(tmp_path, "python")))
    assert "lang/tracing/tracer.py" in text and "direct cause" in text


def test_foreign_errors_are_not_changed(tmp_path: Path) -> None:
    path = tmp_path / "bug.py"
    path.write_text("from cute_dialect.algebra import Layout\nLayout.no_such_name(3)\n")
    done = subprocess.run([sys.executable, str(path)], capture_output=True, text=True, check=False)
    assert "AttributeError" in done.stderr and "bug.py" in done.stderr


class Reported(RuntimeError):
    """An error of torch.compile, with the stack of the traced code."""

    def __init__(self, message: str, *files: str) -> None:
        super().__init__(message)
        self.real_stack = [traceback.FrameSummary(file, 7, "f", line="op.mm(a, b)") for file in files]


Reported.__module__ = "torch._dynamo.exc"
OURS = str(op.__file__)


def shown(error: BaseException, capsys: pytest.CaptureFixture[str]) -> str:
    try:
        raise error
    except BaseException as e:
        sys.excepthook(type(e), e, e.__traceback__)
    return capsys.readouterr().err


def test_a_refusal_in_a_graph_is_shown_as_in_an_eager_call(capsys: pytest.CaptureFixture[str]) -> None:
    assert op.ShapeError.__name__ == "ShapeError"  # loads the class, as code that raises it does
    traced = Reported('Observed\n  raised exception ShapeError("mm: b\'s shape\\nis wrong")\n\nmore', "user.py", OURS)
    text = shown(traced, capsys)
    assert "cute_dialect.op.errors.ShapeError: mm: b's shape\nis wrong\n" in text
    assert 'torch.compile traced:\n  File "user.py", line 7, in f\n    op.mm(a, b)\n' in text
    assert "Observed" not in text and OURS not in text
    wrapped = Reported("RuntimeError when making fake tensor call", "user.py")
    wrapped.__cause__ = op.DtypeError("mm: a has dtype i64")
    text = shown(wrapped, capsys)
    assert "DtypeError: mm: a has dtype i64\n" in text and "fake tensor" not in text and "user.py" in text


def test_other_errors_of_graphs_are_not_changed(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    mine, words = "raised exception ShapeError('of the user')", "raised exception ShapeError('mm: b')"
    assert f"Reported: {mine}" in shown(Reported(mine, "user.py"), capsys)
    assert "Reported: raised exception KeyError" in shown(Reported("raised exception KeyError('a')", OURS), capsys)
    assert "Reported: raised exception" in shown(Reported("raised exception ShapeError(x + 1)", OURS), capsys)
    wrapped = RuntimeError("not torch's")
    wrapped.__cause__ = op.DtypeError("mm: a has dtype i64")
    assert "RuntimeError: not torch's" in shown(wrapped, capsys)
    monkeypatch.setenv("CUTE_TRACEBACK", "full")
    assert f"Reported: {words}" in shown(Reported(words, OURS), capsys)


@pytest.mark.slow
@pytest.mark.end_to_end
@pytest.mark.parametrize(
    ("call", "message"),
    [
        ('op.mm(a, a, device="cpu")', "ShapeError: mm: cannot multiply shapes (8, 16) and (8, 16); pass (M, K)"),
        ('op.softmax(a, dim=0, device="cpu")', "ShapeError: softmax: dim=0 is not the last dimension"),
        ('op.mm(a, device="cpu")', "ArgumentError: mm() needs an argument 'b'"),
    ],
)
def test_refusals_of_torch_compile(call: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "wrong.py"
    path.write_text(
        f"import torch\nfrom cute_dialect import op\n\n\ndef f(a):\n    return {call}\n\n\n"
        'torch.compile(f, fullgraph=True, backend="eager")(torch.ones(8, 16))\n'
    )
    done = subprocess.run([sys.executable, str(path)], capture_output=True, text=True, check=False)
    assert done.returncode == 1 and len(done.stderr.splitlines()) <= 10, done.stderr
    assert f"cute_dialect.op.errors.{message}" in done.stderr and f"    return {call}" in done.stderr
