"""``cute-check``: errors in kernels and modules, reported with their lines as text, JSON and SARIF."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from cute_dialect.tools.cute_check import main

KERNELS = """
import cute_dialect.lang as cute


@cute.kernel
def add(x: cute.Tensor["f32", "n"], y: cute.Tensor["f32", "n", 8]):
    i = cute.arch.thread_idx().x
    y[i, 0] = x[i] + x


@cute.kernel
def scale_kernel(x, by):
    x[cute.arch.thread_idx().x] = x[0] * by
    x[0, 0, 0] = by


@cute.example(lambda: (cute.runtime.make_fake_compact_tensor(cute.Float32, (cute.sym_int(),)), 2.0))
@cute.example(lambda: (cute.runtime.make_fake_compact_tensor(cute.Float32, (cute.sym_int(),)), 3.0))
@cute.jit
def scale(x, by):
    scale_kernel(x, by).launch(grid=1, block=32)


@cute.jit
def right(x: cute.Tensor["f32", "n", 8], n: cute.Int32, more=3):
    right_kernel(x, n).launch(grid=cute.ceil_div(n, 32), block=32)


@cute.example(lambda: (cute.make_layout(3), 7), grid=2, block=64)
@cute.kernel
def right_kernel(x, n):
    cute.printf("%d", n)


class Op:
    def __init__(self, width):
        self.width = width

    @cute.example(lambda: (Op(4), 7))
    @cute.jit
    def __call__(self, x):
        self.kernel(x).launch(grid=1, block=self.wide)

    @cute.kernel
    def kernel(self, x):
        pass


@cute.example(lambda: 1 // 0)
@cute.jit
def never(x):
    pass
"""

MODULE = """func.func @f(%l: !cute.layout<"(6,5):(5,1)">) {
  %0 = cute.zipped_divide(%l, %l) : (!cute.layout<"(6,5):(5,1)">, !cute.layout<"(6,5):(5,1)">) -> !cute.layout<"6:5">
  return
}
"""


def found(capsys: pytest.CaptureFixture[str], *arguments: str) -> list[dict[str, Any]]:
    """Return the output of ``cute-check --json``, which prints nothing else."""
    status = main(["--json", *arguments])
    told = json.loads(capsys.readouterr().out)
    assert status == any(t["severity"] == "error" for t in told)
    return told


def test_functions_of_a_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Each error is reported once at its line, even if two examples show it; correct functions report nothing."""
    file = tmp_path / "kernels.py"
    file.write_text(KERNELS)
    told = found(capsys, str(file))
    lines = KERNELS.split("\n")
    places = {(t["code"], t["line"]): t for t in told}
    at = {
        word: next(n for n, line in enumerate(lines, 1) if word in line)
        for word in ("x[i] + x", "x[0, 0, 0]", "self.wide)", "def never", "scale_kernel(x, by).")
    }
    assert [(t["code"], t["line"], t["col"]) for t in told] == [
        ("F162", at["x[i] + x"], 15), ("F241", at["x[0, 0, 0]"], 5), ("F162", at["self.wide)"], 45),
        ("python", at["def never"] - 2, 1),
    ]  # fmt: skip
    assert all(t["file"] == str(file) for t in told)
    coordinate = places["F241", at["x[0, 0, 0]"]]
    assert coordinate["related"][0]["line"] == at["scale_kernel(x, by)."] and "1 modes" in coordinate["hint"]
    assert "the example of never raises ZeroDivisionError" in told[-1]["message"]
    assert main(["-v", str(file)]) == 1
    out, err = capsys.readouterr()
    assert f"{file}:{at['x[0, 0, 0]']}:5: error F241: " in out and "    x[0, 0, 0] = by\n" in out
    assert "right: checked" in err and "right_kernel: checked" in err and "scale, example 2: wrong" in err
    assert "scale_kernel: not checked; it has no example and incomplete annotations" in err
    assert "4 errors in 1 file; functions and modules checked: 7" in err


def test_files_without_examples_get_advice(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The suggested example is valid: once its names have values, the file is checked."""
    file = tmp_path / "bare.py"
    kernel = "@cute.kernel\ndef fill_kernel(x, by):\n    x[0] = by\n\n"
    function = "@cute.jit\ndef fill(x, by):\n    fill_kernel(x, by).launch(grid=1, block=32)\n"
    file.write_text(f"import numpy as np\nimport cute_dialect.lang as cute\n\n{kernel}{function}")
    assert main([str(file)]) == 0
    said = capsys.readouterr().err
    assert "fill_kernel, fill not checked: no example" in said and f"{file}:8:" in said
    line = "@cute.example(lambda: (x, by))"
    assert (
        f"    {line}\n    @cute.jit\n    def fill(x, by): ...\n" in said and "functions and modules checked: 0" in said
    )
    line = line.replace("(x, by)", "(np.zeros(4, np.float32), 2.0)")
    file.write_text(file.read_text().replace("@cute.jit", f"{line}\n@cute.jit"))
    assert main([str(file)]) == 0
    said = capsys.readouterr().err
    assert "not checked" not in said and "functions and modules checked: 1" in said


def test_generic_functions_need_an_example(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "kernels.py"
    file.write_text(
        "from __future__ import annotations\nimport cute_dialect.lang as cute\n\n"
        '@cute.generic("M", "T")\n@cute.kernel\n'
        "def copy(a: cute.Tensor[T, M], b: cute.Tensor[T, M]):\n"
        "    b[cute.arch.thread_idx().x] = a[cute.arch.thread_idx().x]\n"
    )
    assert main([str(file)]) == 0
    out, err = capsys.readouterr()
    assert "F124" not in out + err and "copy not checked" in out + err


def test_annotations_share_their_symbols(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """``n`` in the annotations of two tensors is the same number."""
    file = tmp_path / "shared.py"
    file.write_text(
        "import cute_dialect.lang as cute\n\n"
        '@cute.jit\ndef f(x: cute.Tensor["f32", "n", 4], y: cute.Tensor["f32", "n", ("m", 8)]):\n'
        "    print(x.shape, y.shape, x.stride)\n"
    )
    assert main([str(file)]) == 0
    assert capsys.readouterr().out.startswith("(Int32(?), 4) (Int32(?), Int32(?)) (4, 1)")


def test_files_that_cannot_be_imported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name, text, line, message in (
        ("syntax.py", "x = 1\ndef f(:\n", 2, "SyntaxError"),
        ("raises.py", "import os\n\nos.nothing\n", 3, "cannot import the file: AttributeError"),
        ("exits.py", "raise SystemExit(3)\n", 1, "cannot import the file: SystemExit: 3"),
    ):
        (tmp_path / name).write_text(text)
        (told,) = found(capsys, str(tmp_path / name))
        assert told["line"] == line and message in told["message"], told
    (told,) = found(capsys, str(tmp_path / "absent.py"))
    assert told["message"] == "cannot read the file: it does not exist" and told["line"] == 0


def test_modules(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Modules with errors in parsing, verification and lowering."""
    file = tmp_path / "x.mlir"
    file.write_text(MODULE)
    (told,) = found(capsys, str(file))
    assert (told["line"], told["col"]) == (2, 8) and "expected !cute.layout" in told["message"]
    file.write_text(MODULE.replace("zipped_divide", "zipped_divid"))
    (told,) = found(capsys, str(file))
    assert told["line"] == 2
    gemm = Path(__file__).parents[3] / "test" / "examples" / "elementwise_add.mlir"
    assert found(capsys, str(gemm)) == [] and found(capsys, "--pipeline", "none", str(gemm)) == []
    (told,) = found(capsys, str(gemm), "--pipeline", "bass")
    assert "unknown pipeline 'bass'" in told["message"]
    (told,) = found(capsys, str(tmp_path / "absent.mlir"))
    assert "cannot read the file: No such file" in told["message"]


def test_sarif(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Each SARIF result has a rule, a file relative to the current folder, and a region with positive numbers."""
    monkeypatch.chdir(tmp_path)
    Path("kernels.py").write_text(KERNELS)
    Path("x.mlir").write_text(MODULE)
    assert main(["--sarif", "-o", "out.sarif", "kernels.py", "x.mlir"]) == 1
    assert capsys.readouterr().out == ""
    log = json.loads(Path("out.sarif").read_text())
    assert log["version"] == "2.1.0" and log["$schema"].endswith("sarif-2.1.0.json")
    (run,) = log["runs"]
    rules = [r["id"] for r in run["tool"]["driver"]["rules"]]
    assert rules == sorted(set(rules)) and len(run["results"]) == 5
    for r in run["results"]:
        assert rules[r["ruleIndex"]] == r["ruleId"] and r["level"] == "error" and r["message"]["text"]
        place = r["locations"][0]["physicalLocation"]
        assert place["artifactLocation"]["uri"] in ("kernels.py", "x.mlir")
        assert all(n > 0 for n in place["region"].values()) and place["region"]["startLine"]
    assert any(r["relatedLocations"] for r in run["results"])


def test_remarks_are_no_errors(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "slow.py"
    file.write_text(
        "import cute_dialect.lang as cute\n\n"
        "@cute.example(lambda: (7,), grid=1, block=32)\n@cute.kernel\ndef f(n):\n"
        "    for i in range(n):\n        if i * i > n:\n            break\n        cute.printf('%d', i)\n"
    )
    assert found(capsys, str(file)) == []
    told = found(capsys, "--remarks", str(file))
    assert [t["severity"] for t in told] == ["remark"] and "R1: this loop is compiled as a while loop" in told[0][
        "message"
    ]
    assert told[0]["line"] == 6 and told[0]["file"] == str(file)


@pytest.mark.slow
def test_the_command(tmp_path: Path) -> None:
    """The command runs in a folder of files that import each other."""
    (tmp_path / "parts.py").write_text("WIDTH = 8\n")
    (tmp_path / "kernels.py").write_text(
        "import cute_dialect.lang as cute\nfrom parts import WIDTH\n\n"
        '@cute.kernel\ndef f(x: cute.Tensor["f32", 4]):\n    x[WIDTH] = 1.0\n'
    )
    command = [sys.executable, "-m", "cute_dialect.tools.cute_check"]
    done = subprocess.run([*command, "kernels.py"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode in (0, 1) and "functions and modules checked: 1" in done.stderr, done.stderr
    wrong = subprocess.run([*command, "kernels.txt"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert wrong.returncode == 2 and "expected files that end in .py or .mlir, got 'kernels.txt'" in wrong.stderr


@pytest.mark.parametrize(
    "arguments, message",
    [
        (["--chip", "sm_1", "x.py"], "--chip: expected one of sm_50"),
        (["--json", "--sarif", "x.py"], "not allowed with argument"),
        ([], "the following arguments are required: FILE"),
    ],
)
def test_invalid_command_lines_are_rejected(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as e:
        main(arguments)
    assert e.value.code == 2 and message in capsys.readouterr().err
