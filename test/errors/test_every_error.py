"""Every error about invalid input must have a test. ``error_sites`` defines which errors count."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.slow
@pytest.mark.parametrize("which", [(), ("lang",)], ids=["dialect", "lang"])
def test_every_error_has_a_test_and_is_as_it_says(which: tuple[str, ...]) -> None:
    script = Path(__file__).with_name("error_sites.py")
    done = subprocess.run([sys.executable, str(script), *which], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
