"""``cute-bench``: wrong or contradictory options are reported before anything is compiled."""

from __future__ import annotations

import sys
from importlib.machinery import ModuleSpec

import pytest

from cute_dialect.tools.cute_bench import main
from cute_dialect.tools.programs import user_message


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["opt", "--run", "x"], "opt runs on the CPU; it cannot be combined with --build or --run"),
        (["rows", "--shapes", "1x2x3"], "--shapes and --element apply only to --tune and gemm_tune"),
        (["rows", "--chip", "90a", "--build", "x"], "--chip: expected sm_<number>, e.g. sm_90a, got '90a'"),
        (["rows", "--tune"], "--tune applies only to gemm and attention, got rows"),
        (["rows", "--batched"], "--batched applies only to gemm without --tune and --random"),
        (["gemm", "--batched", "--random", "3"], "--batched applies only to gemm without --tune and --random"),
        (["gemm", "--batched", "--kernels", "all"], "--kernels: expected a number with --batched, got all"),
        (["gemm", "--batched", "--budget", "3"], "--budget applies only to --fit"),
        (["gemm", "--kernels", "3"], "--kernels applies only to --fit"),
        (["gemm", "--batched", "--regret", "x"], "--batched cannot be combined with --fit or --regret"),
        (["rows", "--groups", "rows"], "--groups applies only to op, got rows"),
        (["rows", "--runs", "0"], "--runs must be at least 1"),
        (["algebra", "--json", "/dev/null/x/y"], "--json: cannot write /dev/null/x/y: Not a directory"),
    ],
)
def test_contradictions(words: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(words) == 1
    assert capsys.readouterr() == ("", f"cute-bench: error: {message}\n")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["gemm", "--tune", "--shapes", "128x8192"],
         "argument --shapes: expected three sizes like 128x8192x8192, got '128x8192'"),
        (["gemm", "--runs", "1", "--runs", "2"], "--runs is given twice: '1' and '2'"),
        (["gemm", "--jso", "x"], "unrecognized arguments: --jso x"),
    ],
)  # fmt: skip
def test_invalid_options_are_rejected(words: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as e:
        main(words)
    assert e.value.code == 2 and capsys.readouterr().err.splitlines()[-1] == f"cute-bench: error: {message}"


def test_help_has_examples(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--help"])
    assert "cute-bench elementwise_add --build DIR " in capsys.readouterr().out


def test_errors_of_a_module_that_is_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """``python -m`` runs the module as ``__main__``."""
    error = type("OptionError", (Exception,), {"__module__": "__main__"})("--runs: too few")
    for name, message in (("cute_dialect.tools.cute_bench", "cute-bench: error: --runs: too few"), ("other", None)):
        monkeypatch.setattr(sys.modules["__main__"], "__spec__", ModuleSpec(name, None))
        assert user_message(error, "cute-bench") == message
