"""``@cute.autotune`` functions measured on the GPU, with candidates compiled on another machine."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("torch")

ROOT = Path(__file__).parents[2]
FOLDER = "autotune"
"""Folder of the kernels; see ``folder``."""


def test_the_example_is_tuned(folder: Path, tmp_path: Path) -> None:
    """Every candidate is measured. The next process takes the fastest one from the table and computes correct sums."""
    config = tmp_path / "config"
    environment = {**os.environ, "CUTE_CONFIG_DIR": str(config)}
    what = f"{ROOT / 'examples' / 'autotune.py'}:row_sum"
    command = [sys.executable, "-m", "cute_dialect.tools.cute_bench", "tune", what, "--run", str(folder)]
    made = [*command, "--json", str(tmp_path / "found.json")]
    done = subprocess.run(made, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found = json.loads((tmp_path / "found.json").read_text())
    assert [f["key"] for f in found] == ["x=f32[256x1000]", "x=f32[4096x128]"]
    for f in found:
        assert len(f["measured"]) == 12 and all(us > 1 and runs >= 30 for _, us, runs in f["measured"])
    (table,) = (config / "functions").iterdir()
    entries = json.loads(table.read_text())["functions"]["autotune.row_sum"]
    assert {k: e["chosen"] for k, e in entries.items()} == {f["key"]: f["chosen"] for f in found}
    script = (
        "import sys, torch; sys.path.insert(0, sys.argv[1]); import autotune as a\n"
        "x, out = torch.ones(256, 1000, device='cuda'), torch.zeros(256, device='cuda')\n"
        "a.row_sum.tune = None\na.row_sum(x, out)\nassert (out == 1000).all()\n"
        "print({n: repr(v) for n, v in a.row_sum.best(x, out).items()})\n"
    )
    environment |= {"CUTE_CACHE_DIR": str(folder), "CUTE_CACHE": "1"}
    command = [sys.executable, "-c", script, str(ROOT / "examples")]
    again = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert again.returncode == 0, again.stderr
    assert again.stdout.strip() == str(found[0]["chosen"])
