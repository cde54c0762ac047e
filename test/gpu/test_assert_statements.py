"""A failing kernel assert on the GPU: an error at the next synchronization, and a message on standard error."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

SOURCE = """\
import numpy as np, torch
import cute_dialect.lang as cute

@cute.kernel
def scale(x: cute.Tensor):
    i = cute.arch.thread_idx().x
    assert x[i] < 20, "too large"
    x[i] *= 2

@cute.jit
def run(x: cute.Tensor):
    scale(x).launch(grid=1, block=32)

x = torch.arange(32, dtype=torch.float32, device="cuda") - {below}
run(x)
torch.cuda.synchronize()
print(x.tolist() == [2.0 * (i - {below}) for i in range(32)])
"""


@pytest.mark.parametrize(
    ("below", "environment", "fails"), [(0, "", True), (16, "", False), (0, "0", False), (0, "1", True)]
)
def test_a_failing_assert_ends_the_launch(tmp_path: Path, below: int, environment: str, fails: bool) -> None:
    file = tmp_path / "scale.py"
    file.write_text(SOURCE.format(below=below))
    environment_of_run = {**os.environ, "CUTE_ASSERT": environment, "CUTE_DEVICE": "gpu"}
    made = subprocess.run(
        [sys.executable, str(file)], env=environment_of_run, capture_output=True, text=True, check=False
    )
    if fails:
        assert made.returncode != 0 and "True" not in made.stdout
        assert "scale.py:7" in made.stderr and "too large" in made.stderr and "assert" in made.stderr.lower()
    else:
        assert made.returncode == 0 and made.stdout == "True\n", made.stderr
