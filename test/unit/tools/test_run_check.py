"""``cute-run --check``: valid expressions, errors before the kernel runs, and parameters with any name."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from programs import run

from cute_dialect.pipelines.compilation import Compilation
from cute_dialect.tools import cute_run
from cute_dialect.tools.check_expressions import FUNCTIONS, KEYWORDS, REFERENCES, CheckError, read_expression
from cute_dialect.tools.run_check import check

EXAMPLE = Path(__file__).parents[2] / "examples" / "elementwise_add.mlir"
KNOWN = ", ".join(FUNCTIONS)
ADD = np.arange(4, dtype=np.float32)


def test_help_lists_every_spelling(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        cute_run.main(["--help"])
    words = capsys.readouterr().out.replace(",", " ").split()
    assert set(words) >= {*FUNCTIONS, *KEYWORDS, *REFERENCES, "race", "oob", "uninit", "sync"}


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        ("alclose(c, a)", f"unknown function 'alclose'; did you mean 'allclose'? (known: {KNOWN})"),
        ("c == np(a)", f"unknown function 'np' (known: {KNOWN})"),
        ("allclose(c, a, tol=1)", "unknown keyword 'tol' of allclose (known: atol, axis, equal_nan, rtol)"),
        ("c == ", "cannot read the expression 'c == ': invalid syntax"),
    ],
)
def test_option_errors_are_reported_before_the_file_is_read(
    expression: str, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    status, out, err = run(capsys, "no-such-file.mlir", "--check", expression)
    assert (status, out, err) == (1, "", f"cute-run: error: --check: {message}\n")


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        ("mCs == mA + mB", "unknown argument 'mCs'; did you mean 'mC'? (arguments: mA, mB, mC)"),
        ("d == a", "unknown argument 'd' (arguments: mA, mB, mC)"),
        ("c == in_d", "unknown argument 'in_d' (arguments: mA, mB, mC)"),
        ("c == a.shape", "'a.shape' is not allowed in an expression"),
        ("a < b < c", "'a < b < c' chains comparisons; write 'a < b and b < c'"),
        ("c == [a]", "'[a]' is not allowed in an expression"),
    ],
)
def test_unknown_names_are_reported_before_the_run(
    expression: str, message: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[str] = []

    def refuse(*_: Any, **__: Any) -> None:
        made.append("code")

    monkeypatch.setattr(Compilation, "to_code", refuse)
    monkeypatch.setattr(cute_run, "_run_cpu", refuse)
    words = (str(EXAMPLE), "--kernel", "add", "--device=cpu", "--in", "4x8", "--check", expression)
    status, out, err = run(capsys, *words)
    assert (status, out, err) == (1, "", f"cute-run: error: --check: {message}\n") and made == []


NAMES = ["in", "lambda", "sum", "abs", "x-y", "x.T", "a$b", "None", "in_x", "class", "and", "0", "T", "like"]


@pytest.mark.parametrize("name", [n for n in NAMES if n not in ("and", "0")])
def test_parameters_of_any_name(name: str) -> None:
    values = {name: ADD + 1, f"in_{name}": ADD, "other": ADD}
    for expression in (
        f"{name} == other + 1",
        f"other + 1 == {name}",
        f"sum({name}) == 10",
        f"allclose({name}, other + 1)",
    ):
        assert check(expression, values, [name, "other"]).ok, expression
    assert not check(f"{name} == other", values, [name, "other"]).ok
    assert check(f"in_{name} == other", values, [name, "other"]).ok
    assert check("copy", {"other": ADD, name: ADD}, ["other", name]).ok
    with pytest.raises(CheckError, match=r"^unknown argument 'nothing'"):
        read_expression(f"{name} == nothing", [name])


@pytest.mark.parametrize("name", ["and", "0"])
def test_reserved_names_use_their_letter(name: str) -> None:
    read_expression("a == a", [name], (), ["a"])


def test_a_kernel_with_such_names_runs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "odd.mlir"
    text = EXAMPLE.read_text()
    for old, new in (("mA", "class"), ("mB", "lambda"), ("mC", "out-1.x")):
        text = text.replace(f"%{old}", f"%{new}")
    file.write_text(text)
    words = (str(file), "--kernel", "add", "--device=cpu", "--no-cache", "--in", "class=4x8", "--in", "lambda=4x8=ones")
    saved = tmp_path / "c.npy"
    status, out, err = run(
        capsys, *words, "--check", "out-1.x == class + lambda", "--check", "add", "--out", f"out-1.x={saved}"
    )
    assert (status, err) == (0, "") and "check   out-1.x == class + lambda: ok, 32 elements equal" in out
    assert np.load(saved).shape == (4, 8)


def test_differing_floats_suggest_allclose() -> None:
    a = np.ones(2, dtype=np.float32)
    assert check("c == a", {"a": a, "c": a + 1}, ["a", "c"]).detail == (
        "2 of 2 elements differ, the first at (0,): got 2.0, expected 1.0; "
        "== compares bitwise, to allow for rounding use allclose(c, a, rtol=1e-3)"
    )
    n = np.ones(2, dtype=np.int32)
    assert "allclose" not in check("c == a", {"a": n, "c": n + 1}, ["a", "c"]).detail


def test_the_time_on_the_cpu_is_that_of_the_interpreter_alone(capsys: pytest.CaptureFixture[str]) -> None:
    """The printed speed is computed from the printed time, which excludes compilation."""
    words = (str(EXAMPLE), "--kernel", "add", "--device=cpu", "--no-cache", "--in", "64x256")
    _, out, _ = run(capsys, *words)
    time = re.search(r"  time    ([\d.]+) (us|s) \(interpreting one launch\); compiled in [\d.]+ s\n", out)
    speed = re.search(r"  cpu     \d+ blocks, ([\d.]+) ([kMG]?) ?lane-ops, ([\d.]+) ([kMG]?) ?lane-ops/s\n", out)
    assert time is not None and speed is not None, out
    unit = {"": 1.0, "k": 1e3, "M": 1e6, "G": 1e9}
    seconds = float(time[1]) * (1e-6 if time[2] == "us" else 1.0)
    ops, rate = float(speed[1]) * unit[speed[2]], float(speed[3]) * unit[speed[4]]
    assert seconds * rate == pytest.approx(ops, rel=0.1)


OPTIONS = [
    (["--seed", "-1"], "cute-run: error: argument --seed: expected a number of at least 0, got '-1'"),
    (["--repeat=x"], "cute-run: error: argument --repeat: expected a number of at least 0, got 'x'"),
    (["--smem=-5"], "cute-run: error: argument --smem: expected a number of at least 0, got '-5'"),
    (["--kernel", "add", "--kernel", "add_v"], "cute-run: error: --kernel is given twice: 'add' and 'add_v'"),
    (["--device=cpu", "--device", "gpu"], "cute-run: error: --device is given twice: 'cpu' and 'gpu'"),
    (["--devic=cpu"], "cute-run: error: unrecognized arguments: --devic=cpu"),
    (["--host=main", "--kernel", "add"],
     "cute-run: error: --kernel applies to kernels and cannot be combined with --host"),
    (["--report-json=x"],
     "cute-run: error: --report-json needs --report=NAMES; choose from banks,coalescing,occupancy,timeline"),
]  # fmt: skip


@pytest.mark.parametrize(("words", "message"), OPTIONS, ids=[" ".join(w) for w, _ in OPTIONS])
def test_invalid_options_are_rejected(words: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as e:
        cute_run.main([str(EXAMPLE), *words])
    assert e.value.code == 2 and capsys.readouterr().err.splitlines()[-1] == message


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--check", "race,foo"], "--check: unknown sanitizer 'foo'; expected race, oob, uninit, sync, strict"),
        (["--in", "4x8", "--out", "c=x.npy", "--out", "mC=y.npy"], "--out: mC is given twice: 'x.npy' and 'y.npy'"),
        (["--in", "4x8", "--kernel", "ad"],
         "no kernel or host function @ad in this module (known: add, add_v, launch)"),
        (["--in", "4x8", "--blocks=foo"],
         "invalid blocks 'foo'; use numbers and ranges like 0,5,16:32 or sample:COUNT[:SEED]"),
    ],
)  # fmt: skip
def test_invalid_values_are_rejected(words: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    kernel = [] if "--kernel" in words else ["--kernel", "add"]
    status, _, err = run(capsys, str(EXAMPLE), "--device=cpu", *kernel, *words)
    assert status == 1 and err.splitlines()[-1] == f"cute-run: error: {message}"


def test_repeated_equal_options_are_allowed(capsys: pytest.CaptureFixture[str]) -> None:
    words = ("--kernel", "add", "--kernel=add", "--device=cpu", "--in", "4x8", "-q")
    assert run(capsys, str(EXAMPLE), *words) == (0, "", "")
