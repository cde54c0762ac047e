"""An uncaught error shows the user's frames and one message; wrong programs of every stage are run as programs."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

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

@cute.jit
def run(x: cute.Tensor, y: cute.Tensor, which: cute.Constexpr, block: cute.Constexpr = 128):
    which(x, y).launch(grid=1, block=block)

x, y = np.zeros(128, "f4"), np.zeros(128, "f4")
a, b = np.ones((4, 4), "f2"), np.ones((5, 4), "f2")
"""

WRONG = {
    "race": ('run(x, y, race, device="cpu", checks=("race",))', "race on shared memory"),
    "bounds": ('run(x, y, outside, device="cpu", checks=("oob",))', "here 128 < 128 is false"),
    "python": ('run(x, y, attribute, device="cpu")', "no attribute 'foo'"),
    "lowering": ('run(x, y, alignment, device="cpu")', "the atom moves 128 bits at a time"),
    "launch": ('run(x, y, outside, 5000, device="cpu")', "block (5000, 1, 1)"),
    "argument": ('cute.compile(run, x, y, outside)(x.astype("f8"), y, device="cpu")', "f64"),
    "shapes": ('op.mm(a, b, device="cpu")', "mm"),
    "epilogue": ('op.mm(a, a, epilogue=lambda accum: accum.foo, device="cpu")', "foo"),
    "layout": ("cute.make_layout((4, 8), stride=(1,))", "make_layout"),
    "algebra": (
        "from cute_dialect.algebra import Layout, composition; composition(Layout('(4,3):(1,7)'), Layout('5:2'))",
        "composition",
    ),
    "text": ("from cute_dialect.pipelines import compile; compile('module { cute.nothing }')", "nothing"),
    "method": ("class A:\n    def f(self): run(x, y, outside, 5000, device='cpu')\nA().f()", "block (5000, 1, 1)"),
}


def program(tmp_path: Path, name: str, **environment: str) -> str:
    """Run a wrong program and return what it prints on standard error."""
    path = tmp_path / "wrong.py"
    path.write_text(HEAD + WRONG[name][0] + "\n")
    done = subprocess.run(
        [sys.executable, str(path)], capture_output=True, text=True, check=False, env={**os.environ, **environment}
    )
    assert done.returncode == 1
    return done.stderr


@pytest.mark.parametrize("name", WRONG)
def test_only_the_users_frames(name: str, tmp_path: Path) -> None:
    text = program(tmp_path, name)
    frames = [line for line in text.splitlines() if line.startswith("  File ")]
    assert frames and all("wrong.py" in line or "<string>" in line for line in frames), text
    assert "another exception" not in text and "direct cause" not in text
    assert WRONG[name][1] in text
    assert len(text.splitlines()) <= 40, text


def test_all_frames(tmp_path: Path) -> None:
    text = program(tmp_path, "launch", CUTE_TRACEBACK="full")
    assert "launch_plan.py" in text


def test_errors_of_others_are_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "bug.py"
    path.write_text("from cute_dialect.algebra import Layout\nLayout.no_such_name(3)\n")
    done = subprocess.run([sys.executable, str(path)], capture_output=True, text=True, check=False)
    assert "AttributeError" in done.stderr and "bug.py" in done.stderr
