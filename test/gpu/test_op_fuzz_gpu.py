"""A few hundred random calls of ``op`` on the GPU. ``python test/gpu/op_fuzz.py --count 5000`` runs more."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path


def test_random_calls_are_right() -> None:
    program = Path(__file__).with_name("op_fuzz.py")
    words = [sys.executable, str(program), "--count", "320", "--seed", "7"]
    done = subprocess.run(words, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, f"{done.stdout[-8000:]}\n{done.stderr[-2000:]}"
    assert "320 calls, 0 wrong, 0 refused" in done.stdout
