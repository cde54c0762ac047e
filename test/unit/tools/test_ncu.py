"""Programs that read ``ncu`` counters, with a fake ``ncu`` that prints the same format."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cute_dialect.tools.bench import counters as bench_counters
from cute_dialect.tools.bench.counters import METRICS

STAND_IN = """#!/bin/sh
[ -n "$NCU_SAYS_NOTHING" ] && echo "==ERROR== The user does not have permission" && exit 1
echo '==PROF== Connected to process 7'
for i in 0 1; do echo '==PROF== Profiling "copy": 0%....50%....100% - 1 pass'; done
echo '"ID","Kernel Name","Metric Name","Metric Value"'
echo '"0","copy","{load}","1,024"'
echo '"0","copy","{store}","n/a"'
echo '"1","copy","{load}","7"'
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Create a folder with two cases as ``--build`` writes it, and put a fake ncu on PATH."""
    ncu = tmp_path / "bin" / "ncu"
    ncu.parent.mkdir()
    ncu.write_text(STAND_IN.replace("{load}", METRICS["global load"]).replace("{store}", METRICS["global store"]))
    ncu.chmod(0o755)
    monkeypatch.setenv("PATH", str(ncu.parent), prepend=":")
    counts = [dict.fromkeys(METRICS, 0) | {"global load": n} for n in (1024, 8)]
    told = [{"name": f"case {i}", "counts": c, "ideal": c} for i, c in enumerate(counts)]
    (tmp_path / "cases.json").write_text(json.dumps(told))
    return tmp_path


def test_counters_are_compared(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    events, result = folder / "events.jsonl", folder / "rows.json"
    told = ["--run", str(folder), "--json", str(result), "--progress-json", str(events)]
    assert bench_counters.main(told) == 0
    rows = json.loads(result.read_text())
    assert [(r["name"], r["kind"], r["ours"], r["ncu"], r["equal"]) for r in rows] == [
        ("case 0", "global load", 1024, 1024, True), ("case 1", "global load", 8, 7, False),
    ]  # fmt: skip
    assert "differs" in capsys.readouterr().out
    kinds = [json.loads(line) for line in events.read_text().splitlines()]
    assert kinds[0]["total"] == 2 and kinds[-1]["event"] == "done"


def test_missing_permission_is_reported(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NCU_SAYS_NOTHING", "1")
    with pytest.raises(SystemExit, match="ncu measured nothing: ==ERROR== The user does not have permission"):
        bench_counters.main(["--run", str(folder)])
