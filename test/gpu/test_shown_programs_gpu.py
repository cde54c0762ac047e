"""Documented programs on a GPU: each example at its default size, each code block of README and docs.

Pages for the interpreter specify ``device="cpu"``. The tests replace it by the GPU and allocate tensors there. Blocks
with options of the interpreter (``checks=``, ``reports=``, ``schedule=``) run unchanged.
"""

# pyright: basic

from __future__ import annotations

import contextlib
import doctest
import io
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

ROOT = Path(__file__).parents[2]
CPU_ONLY = {"lit.cfg.py", "blackwell_gemm.py", "blackwell_attention.py"}  # The last two are for a later chip.
EXAMPLES = sorted(p.name for p in (ROOT / "examples").glob("*.py") if p.name not in CPU_ONLY)
PAGES = ("README.md", "docs/language.md", "docs/porting.md", *sorted(f"docs/tutorials/{p.name}" for p in (
    ROOT / "docs" / "tutorials").glob("*.md")))  # fmt: skip
INTERPRETED = re.compile(
    r"\b(checks|reports|schedule|blocks)=|\b(CuteError|InterpError|float4\w*)\b|no error was reported"
)


@pytest.mark.parametrize("name", EXAMPLES)
def test_example(name: str, tmp_path: Path) -> None:
    """Run an example in its own process without arguments. Each example checks its own results."""
    done = subprocess.run(
        [sys.executable, str(ROOT / "examples" / name)], cwd=tmp_path, capture_output=True, text=True, timeout=300,
        env={k: v for k, v in os.environ.items() if k != "CUTE_DEVICE"}, check=False,
    )  # fmt: skip
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    assert done.stdout and "on cpu" not in done.stdout and "interpreter" not in done.stdout


def test_commands_of_the_readme(tmp_path: Path) -> None:
    """The README test also runs the benchmark commands if the machine has a GPU."""
    words = ["-m", "pytest", "-q", "-p", "no:cacheprovider", "test/unit/house/test_readme.py"]
    done = subprocess.run([sys.executable, *words], cwd=ROOT, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stdout[-6000:]


def blocks_of(page: str) -> list[tuple[int, str, str]]:
    """Return the Python blocks of a page: line, code, and the output that the page shows after the block."""
    text = (ROOT / page).read_text(encoding="utf-8")
    found = list(re.finditer(r"^```(\w*)\n(.*?)^```$", text, re.M | re.S))
    blocks: list[tuple[int, str, str]] = []
    for one, after in zip(found, [*found[1:], None]):
        if one[1] == "python":
            is_output = after is not None and (
                after[1] == "text" or not (after[1] or text[one.end() : after.start()].strip())
            )
            blocks.append(
                (text.count("\n", 0, one.start()) + 2, one[2], after[2] if after is not None and is_output else "")
            )
    return blocks


def on_the_gpu(code: str) -> str:
    """Rewrite a block for the interpreter so that it runs on the GPU."""
    if INTERPRETED.search(code):
        return code
    code = code.replace('device="cpu"', "device=None").replace('run_on="cpu"', "run_on=None")
    return code.replace(".numpy()", ".cpu().numpy()")


@pytest.fixture
def tensors_on_the_gpu() -> Iterator[None]:
    """Allocate the tensors of a block on the GPU."""
    torch.manual_seed(0)
    torch.set_default_device("cuda")
    yield
    torch.set_default_device(None)


def ran(code: str, names: dict[str, Any], file: Path) -> str:
    """Run a block as a file and return its standard output."""
    file.write_text(code, encoding="utf-8")
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(code, str(file), "exec"), names)
    torch.cuda.synchronize()
    return printed.getvalue()


@pytest.mark.parametrize("page", ["docs/operations.md", "docs/plans.md"])
def test_operations(page: str, tmp_path: Path, tensors_on_the_gpu: None) -> None:
    """Each block of the page runs alone and prints the output on the page. All failing blocks are reported."""
    failed: list[str] = []
    for line, code, wanted in blocks_of(page):
        torch.manual_seed(0)
        try:
            printed = ran(on_the_gpu(code), {"__name__": "block"}, tmp_path / f"line{line}.py")
        except Exception as e:  # Continue with the remaining blocks.
            failed.append(f"line {line}: {type(e).__name__}: {str(e)[:400]}")
            continue
        printed = printed.replace(", device='cuda:0'", "")  # The pages show CPU tensors.
        if not (wanted == printed or doctest.OutputChecker().check_output(wanted, printed, doctest.ELLIPSIS)):
            failed.append(f"line {line}: prints\n{printed}where the page has\n{wanted}")
    assert not failed, "\n".join(failed)


@pytest.mark.parametrize("page", PAGES)
def test_page(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The blocks of a page, run in order on the GPU, print the output that the page shows.

    Output of ``cute.printf`` bypasses Python's standard output, so blocks whose kernels print are not compared.
    """
    monkeypatch.delenv("CUTE_DEVICE", raising=False)
    monkeypatch.setenv("CUTE_CHECKS", "auto")  # The pages show the default checks.
    monkeypatch.chdir(tmp_path)
    for folder in ("test", "examples"):
        (tmp_path / folder).symlink_to(ROOT / folder)
    small = np.arange(5 * 9, dtype=np.float32).reshape(5, 9)
    names: dict[str, Any] = {"__name__": "example", "a": small, "b": 2 * small, "c": np.zeros_like(small), "stream": 0}
    exec("import numpy as np\nimport cute_dialect.lang as cute", names)
    failed: list[str] = []
    for line, code, wanted in blocks_of(page):
        if code.startswith(">>>") or "PassManager" in code:
            continue  # Tests of the command-line tools run these blocks, which need no device.
        try:
            printed = ran(on_the_gpu(code), names, tmp_path / f"line{line}.py")
        except Exception as e:
            failed.append(f"line {line}: {type(e).__name__}: {str(e)[:400]}")
            continue
        printed = re.sub(rf"{re.escape(str(tmp_path))}/line\d+", "example", printed)
        same = wanted == printed or doctest.OutputChecker().check_output(wanted, printed, doctest.ELLIPSIS)
        if wanted and "printf" not in code and not same:
            failed.append(f"line {line}: prints\n{printed}where the page has\n{wanted}")
    assert not failed, "\n".join(failed)
