"""A fast sample of ``test/oracle/file_fuzz.py``: damaged files give output or a diagnostic, never anything else."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

PATH = Path(__file__).parents[1] / "oracle" / "file_fuzz.py"
spec = importlib.util.spec_from_file_location("file_fuzz", PATH)
assert spec is not None and spec.loader is not None
file_fuzz = importlib.util.module_from_spec(spec)
sys.modules["file_fuzz"] = file_fuzz
spec.loader.exec_module(file_fuzz)


def test_damaged_files_end_in_output_or_a_diagnostic() -> None:
    pieces = file_fuzz.corpus()
    assert len(pieces) > 100
    wrong = [(seed, said[0]) for seed in range(400) if (said := file_fuzz.check(seed, pieces)) is not None]
    assert not wrong
