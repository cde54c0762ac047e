"""Assert statements in GPU kernels: compilation, messages, and the disk cache."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

import cute_dialect.lang as cute
from cute_dialect.interp import InterpError

SOURCE = """\
import cute_dialect.lang as cute

def check(v):
    assert v < 3, "too large"

@cute.kernel
def scale(x: cute.Tensor):
    i = cute.arch.thread_idx().x
    {body}
    x[i] *= 2

@cute.jit
def run(x: cute.Tensor):
    scale(x).launch(grid=1, block=32)
"""
MAIN = """
import numpy as np
made = cute.compile(run, np.zeros(32, np.float32), chip="sm_90a")
print("__assertfail" in made.ptx)
"""
X = np.zeros(32, np.float32)


@pytest.fixture(autouse=True)
def settings(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("CUTE_DEVICE", "CUTE_ASSERT"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("CUTE_CACHE_DIR", str(tmp_path / "cache"))


def load(path: Path, text: str, name: str) -> ModuleType:
    path.write_text(text)
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def strings(ptx: str) -> str:
    """Return the strings that a PTX module stores as byte arrays."""
    lines = [line for line in ptx.splitlines() if ".b8 " in line and "{" in line]
    listed = [line[line.index("{") + 1 : line.index("}")] for line in lines]
    return "".join(bytes(int(n) for n in one.split(",")).decode() for one in listed)


def test_gpu_code_checks_asserts_by_default_and_names_the_line(tmp_path: Path) -> None:
    module = load(tmp_path / "one.py", SOURCE.format(body="check(x[i])"), "asserts_one")
    made = cute.compile(module.run, X, chip="sm_90a")
    assert "__assertfail" in made.ptx and len(made.cubin) > 0  # ptxas accepts the code.
    text = strings(made.ptx)
    assert "too large" in text and "one.py" in text and "called from" in text and "one.py:9" in text


def test_cached_code_has_the_line_of_the_source(tmp_path: Path) -> None:
    text = SOURCE.format(body="check(x[i])")
    first = load(tmp_path / "two.py", text, "asserts_two")
    assert "two.py:9" in strings(cute.compile(first.run, X, chip="sm_90a").ptx)
    moved = load(tmp_path / "two.py", "# a comment\n\n" + text, "asserts_two")
    assert "two.py:11" in strings(cute.compile(moved.run, X, chip="sm_90a").ptx)


def test_disabled_asserts_leave_no_code(tmp_path: Path) -> None:
    module = load(tmp_path / "three.py", SOURCE.format(body="i += 0"), "asserts_three")
    made = cute.compile(module.run, X, chip="sm_90a")
    assert made.ptx == cute.compile[cute.EnableAssertions(False)](module.run, X, chip="sm_90a").ptx
    with_assert = load(tmp_path / "four.py", SOURCE.format(body="check(x[i])"), "asserts_four")
    off = cute.compile[cute.EnableAssertions(False)](with_assert.run, X, chip="sm_90a")
    assert "__assertfail" not in off.ptx


@pytest.mark.slow
@pytest.mark.parametrize(("flags", "environment", "checked"), [
    ([], "", True), (["-O"], "", False), ([], "0", False), (["-O"], "1", True),
])  # fmt: skip
def test_asserts_follow_the_flag_of_python_and_the_environment(
    tmp_path: Path, flags: list[str], environment: str, checked: bool
) -> None:
    file = tmp_path / "main.py"
    file.write_text(SOURCE.format(body="check(x[i])") + MAIN)
    command = [sys.executable, *flags, str(file)]
    made = subprocess.run(
        command, env={**os.environ, "CUTE_ASSERT": environment}, capture_output=True, text=True, check=False
    )
    assert made.stdout == f"{checked}\n", made.stderr


@cute.kernel
def promises(x: cute.Tensor, n: cute.Int32, how: cute.Constexpr):
    i = cute.arch.thread_idx().x
    if how == "range":
        i = cute.assume(i, range=(0, 10))
    elif how == "low":
        n = cute.assume(n, range=(8, None))
    elif how == "divby":
        n = cute.assume(n, divby=4)
    elif how == "static coordinate":
        grid = cute.make_tensor(x.iterator, cute.make_layout((4, 8)))
        grid[n, 0] = 1.0
    elif how == "step":
        for j in range(0, 8, n - 7):
            x[j] = 1.0
    if i < cute.size(x):
        x[i] = n


@cute.jit
def run_promises(x: cute.Tensor, n: cute.Int32, how: cute.Constexpr):
    promises(x, n, how).launch(grid=1, block=32)


@pytest.mark.parametrize(
    ("how", "n", "line"),
    [
        ("range", 7, "cute.assume promised less than 10"),
        ("low", 7, "cute.assume promised 8 or more"),
        ("divby", 7, "cute.assume promised a multiple of 4"),
        ("static coordinate", 7, "out-of-bounds"),
        ("step", 7, "the step of range is 0"),
    ],
)
def test_the_interpreter_checks_promises_coordinates_and_steps(how: str, n: int, line: str) -> None:
    with pytest.raises(InterpError, match=line) as caught:
        run_promises(np.zeros(32, np.float32), n, how, device="cpu")
    assert caught.value.kind == "assert"


@pytest.mark.parametrize(("how", "n"), [("low", 8), ("divby", 8), ("static coordinate", 3), ("step", 8)])
def test_promises_that_hold_are_no_errors(how: str, n: int) -> None:
    x = np.zeros(32, np.float32)
    run_promises(x, n, how, device="cpu", checks="none")  # Threads write the same elements.
    assert (x == n).all()


def test_promises_are_not_in_gpu_code(tmp_path: Path) -> None:
    made = cute.trace(run_promises, X, 8, "divby")
    assert "cf.assert" not in made.mlir()


@cute.kernel
def counts(x: cute.Tensor, n: cute.Int32):
    for j in range(cute.arch.block_idx().x * 64 + cute.arch.thread_idx().x, n, 7):
        x[j] = 1.0


@cute.jit
def run_counts(x: cute.Tensor, n: cute.Int32):
    counts(x, n).launch(grid=n, block=1)


def test_starts_of_loops_are_checked_on_the_interpreter_and_on_request(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "cf.assert" not in cute.trace(run_counts, X, 8).mlir()
    monkeypatch.setenv("CUTE_DEVICE", "cpu")
    assert "the start of range is negative" in cute.trace(run_counts, X, 8).mlir()
