"""The command line of cute-explore and its error messages."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from cute_dialect.tools.cute_explore import main

PROGRAM = """\
import sys
import numpy as np
import cute_dialect.lang as cute

assert all(a.isdecimal() or a == "more" for a in sys.argv[1:]), sys.argv  # as where a module reads its arguments

@cute.kernel
def fill_kernel(x, value):
    i, _, _ = cute.arch.thread_idx()
    if i < cute.size(x):
        x[i] = value

@cute.jit
def fill(x, value: cute.Float32):
    fill_kernel(x, value).launch(grid=1, block=32)

if __name__ == "__main__":
    if len(sys.argv) > 2:
        sys.exit(3)
    fill(np.zeros(int(sys.argv[1]), np.float32), 2.0)
    print("done")
"""


@pytest.fixture
def program(tmp_path: Path) -> Path:
    """Write a program whose functions have no examples."""
    path = tmp_path / "fill.py"
    path.write_text(PROGRAM)
    return path


def refused(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """Return the standard error of a run that exits with 1 and writes no page."""
    assert main([*arguments]) == 1
    said = capsys.readouterr()
    assert said.out == ""
    return said.err


@pytest.mark.slow
def test_a_program_is_run(program: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = tmp_path / "fill.html"
    assert main([str(program), "-o", str(page), "--", "21"]) == 0
    said = capsys.readouterr()
    assert said.out == f"wrote {page}; open it in a browser\n" and said.err == "done\n"
    assert "x 21 float32, value = 2.0" in page.read_text()


def test_a_program_that_fails(program: Path, capsys: pytest.CaptureFixture[str]) -> None:
    said = refused(capsys, str(program), "--", "21", "more")
    assert said == f"cute-explore: error: {program}: the program exited with 3; pass its arguments after --\n"


def test_another_function(program: Path, capsys: pytest.CaptureFixture[str]) -> None:
    said = refused(capsys, str(program), "--function", "empty", "--", "21")
    assert said == "done\ncute-explore: error: --function: expected one of fill, got 'empty'\n"


def test_a_file_without_kernels(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "none.py"
    path.write_text("x = 1\n")
    assert refused(capsys, str(path)) == (
        f"{path}: error: no function to show: add @cute.example or annotations to a function under "
        "@cute.jit or @cute.kernel, or call one when the file runs (see cute-explore --help)\n"
    )


def test_a_program_that_raises(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Errors at import, in a run and in an example are reported at their line, and later examples do not run."""
    path = tmp_path / "wrong.py"
    path.write_text("x = 1\nx / 0\n")
    assert refused(capsys, str(path)) == (
        f"{path}:2:1: error: cannot import the file: ZeroDivisionError: division by zero\n"
    )
    path.write_text("if __name__ == '__main__':\n    [][1]\n")
    assert refused(capsys, str(path)) == (
        f"{path}:2:1: error: the program raises IndexError: list index out of range\n"
    )
    path.write_text(PROGRAM.replace("@cute.jit", "@cute.example(lambda: 1 / 0)\n@cute.jit"))
    assert refused(capsys, str(path)) == (
        f"{path}:13:1: error: the example of fill raises ZeroDivisionError: division by zero\n"
    )


@pytest.mark.slow
def test_unwritable_output_leaves_no_files(program: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """If the page cannot be written, no partial page and no temporary file remains."""
    (tmp_path / "file").write_text("")
    said = refused(capsys, str(program), "-o", str(tmp_path / "file" / "x.html"), "-q", "--", "21")
    assert f"cute-explore: error: {tmp_path / 'file' / 'x.html'}: cannot write the file: Not a directory\n" in said
    assert sorted(p.name for p in tmp_path.iterdir()) == ["file", "fill.py"]
    assert main([str(program), "-o", str(tmp_path / "a" / "b" / "x.html"), "-q", "--", "21"]) == 0


def test_empty_files_are_rejected(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "empty.mlir"
    path.write_text("")
    assert refused(capsys, str(path)) == f"{path}: error: the file defines no kernel and no function\n"


def test_unknown_blocks_are_rejected(program: Path, capsys: pytest.CaptureFixture[str]) -> None:
    said = refused(capsys, str(program), "--blocks", "9", "--", "21")
    assert said == "done\ncute-explore: error: block 9 does not exist; the grid has 1 blocks\n"


def test_no_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "none.mlir" in refused(capsys, str(tmp_path / "none.mlir"))
    assert "none.py" in refused(capsys, str(tmp_path / "none.py"))


@pytest.mark.parametrize(
    "arguments, said",
    [
        (["x.txt"], "expected a file that ends in .py or .mlir, got 'x.txt'"),
        (["x.mlir", "--", "1"], "arguments after -- go to a Python program, not to a .mlir file"),
        (["x.py", "-o", "x.txt"], "-o: expected a file that ends in .html, got 'x.txt'"),
        (["x.py", "-o", "."], "-o: expected a file that ends in .html, got '.'"),
        (["x.py", "--size", "0"], "argument --size: expected a number of at least 1, got '0'"),
    ],
)
def test_invalid_command_lines_are_rejected(
    arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as e:
        main(arguments)
    assert e.value.code == 2 and capsys.readouterr().err.endswith(f"cute-explore: error: {said}\n")


@pytest.mark.slow
def test_both_lines_of_a_race(tmp_path: Path) -> None:
    """The page shows the line that a race check stopped at and the line of the earlier access."""
    path = tmp_path / "race.py"
    path.write_text(
        "import numpy as np\nimport cute_dialect.lang as cute\n\n@cute.kernel\ndef turned(x):\n"
        "    s = cute.utils.SmemAllocator().allocate_tensor(cute.Float32, cute.make_layout(64))\n"
        "    i, _, _ = cute.arch.thread_idx()\n    s[i] = x[i]\n    x[i] = s[63 - i]\n\n"
        "@cute.example(lambda: (np.zeros(64, np.float32),))\n@cute.jit\ndef turn(x):\n"
        "    turned(x).launch(grid=1, block=64)\n"
    )
    page = tmp_path / "race.html"
    assert main([str(path), "-o", str(page), "-q"]) == 0
    assert re.search(r'"cells":\["race","line 9","read-after-write race', page.read_text())
    assert re.search(r'"cells":\["race","line 8","the earlier store is by thread', page.read_text())
    assert re.search(r'"key":"timeline"[^[]*"parts":\[\{"html"', page.read_text())  # Run without checks.


@pytest.mark.slow
def test_a_fault_is_on_the_page(tmp_path: Path) -> None:
    """The page of a kernel that writes past the end of its array shows the fault and its line."""
    path = tmp_path / "wrong.py"
    path.write_text(PROGRAM.replace("if i < cute.size(x):", "if i <= cute.size(x):"))
    page = tmp_path / "wrong.html"
    path.write_text(path.read_text().replace("def fill(x,", 'def fill(x: cute.Tensor["f32", 24],'))
    assert main([str(path), "-o", str(page), "-q", "--in", "24", "--in", "value=2.0"]) == 0
    assert re.search(r'"cells":\["oob","line 11","out-of-bounds store of 4 bytes', page.read_text())
    assert re.search(r'"short":"oob","text":"out-of-bounds store of 4 bytes', page.read_text())
