"""``cute-bench tune``: candidates are compiled without a GPU, and invalid requests are reported."""

from __future__ import annotations

from pathlib import Path

import pytest

from cute_dialect.runtime.driver import NoGpuError, driver
from cute_dialect.tools import cute_bench

EXAMPLE = Path(__file__).parents[3] / "examples" / "autotune.py"


def has_gpu() -> bool:
    try:
        driver()
    except NoGpuError:
        return False
    return True


def test_build_and_run_on_two_machines(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The folder that one machine builds is a compile cache with all candidates for another machine."""
    for name in ("CUTE_CACHE", "CUTE_CACHE_DIR", "CUTE_CHIP", "CUTE_DEVICE"):
        monkeypatch.setenv(name, "")
    text = EXAMPLE.read_text().replace("[32, 16, 8, 4]", "[32, 3, 16]").replace("[4, 8, 16]", "[4]")
    first = "    total = cute.Float32(0.0)\n"
    text = text.replace(first, f"    assert threads != 3, 'a power of two'\n{first}")
    file = tmp_path / "tuned.py"
    file.write_text(text)
    assert cute_bench.main(["tune", f"{file}:row_sum", "--build", str(tmp_path / "out")]) == 0
    printed = capsys.readouterr().out
    assert printed.count("2 candidates compiled into") == 2, printed.splitlines()
    assert printed.count("  skipped: threads=3, rows=4: ") == 2 and "a power of two" in printed
    assert len(list((tmp_path / "out").rglob("kernel.cubin"))) == 2, "both calls are of one kind"
    if not has_gpu():
        assert cute_bench.main(["tune", f"{file}:row_sum", "--run", str(tmp_path / "out"), "--no-save"]) == 1
        assert capsys.readouterr().err.startswith("cute-bench tune: error: no GPU")


@pytest.mark.parametrize(
    ("what", "message"),
    [
        ("row_sum", "expected FILE:NAME of a function decorated with @cute.autotune, got 'row_sum'"),
        ("nothing.py:f", "expected a Python file, got 'nothing.py'"),
        (f"{EXAMPLE}:main", "no function 'main' is decorated with @cute.autotune (available: row_sum)"),
    ],
)
def test_invalid_requests_are_rejected(what: str, message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cute_bench.main(["tune", what]) == 1
    assert message in capsys.readouterr().err


@pytest.mark.parametrize(
    ("name", "message"),
    [("absent", "expected a function absent() that returns the arguments"), ("main", "expected a list of tuples of")],
)
def test_invalid_arguments_are_rejected(
    name: str, message: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    file = tmp_path / "more.py"
    file.write_text(EXAMPLE.read_text().replace("def main() -> None:", "def main() -> None:\n    return 3\n"))
    assert cute_bench.main(["tune", f"{file}:row_sum", "--arguments", name]) == 1
    assert message in capsys.readouterr().err
