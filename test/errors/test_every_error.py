"""Every error that names what is wrong with the input has a test: see ``error_sites`` for what counts and how."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path


def test_every_error_has_a_test_and_is_as_it_says() -> None:
    script = Path(__file__).with_name("error_sites.py")
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
