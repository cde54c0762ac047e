"""Programs of several GPUs under torchrun. They are skipped, with a reason (``-rs``), unless two GPUs are visible."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from cute_dialect.op.execute.rank_groups import MULTICAST_OFF
from cute_dialect.runtime import driver as cuda

HERE = Path(__file__).parent
ROOT = HERE.parents[1]


def gpus() -> int:
    """Return the number of visible GPUs of sm_90."""
    try:
        driver = cuda.driver()
    except cuda.CudaError:
        return 0
    import torch

    return sum(driver.capability(i) == (9, 0) for i in range(torch.cuda.device_count()))


@pytest.mark.parametrize(
    "program",
    [
        HERE / "run.py",
        ROOT / "test/gpu/all_reduce_gpus.py",
        ROOT / "examples/tensor_parallel_rows.py",
        ROOT / "examples/tensor_parallel_mlp.py",
    ],
)
def test_under_torchrun(program: Path) -> None:
    count = gpus()
    if count < 2:
        pytest.skip(f"NOT RUN: needs two sm_90 GPUs of one host; {count} visible")
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={min(count, 8)}"]
    done = subprocess.run(
        [*command, str(program)], env={**os.environ, **MULTICAST_OFF}, capture_output=True, text=True, timeout=600
    )
    assert done.returncode == 0, done.stdout + done.stderr
