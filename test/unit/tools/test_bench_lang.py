"""``cute-bench lang`` measures the cases that it lists."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cute_dialect.tools.bench.cases.lang import growth, lang_table
from cute_dialect.tools.cute_bench import main


@pytest.mark.slow
def test_every_row(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["lang", "--runs", "1", "--json", str(tmp_path / "lang.json")]) == 0
    rows = {row["name"]: row for row in json.loads((tmp_path / "lang.json").read_text())["rows"]}
    expected = ["import", "decorate", "trace: elementwise", "trace: Hopper GEMM", "to PTX: elementwise"]
    assert list(rows)[:5] == expected
    assert all(0 < row["least"] <= row["seconds"] for row in rows.values())
    assert rows["to PTX: Hopper GEMM"]["seconds"] > rows["trace: Hopper GEMM"]["seconds"] > rows["decorate"]["seconds"]
    assert "from disk" in capsys.readouterr().out


def test_growth() -> None:
    said: list[str] = []
    found = growth(3, said.append)
    assert found["count"] == 3 and len(said) == 3
    heading, row = lang_table({"rows": [], "growth": found})
    assert len(heading) == len(row) and row[0] == "3 compilations: MiB more"


def test_long_is_for_the_language(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["algebra", "--long"]) == 1
    assert capsys.readouterr().err == "cute-bench: error: --long applies only to lang, got algebra\n"
