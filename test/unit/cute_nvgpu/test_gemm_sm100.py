"""``gemm_sm100.mlir`` on the CPU interpreter, and changes to it that the interpreter must find."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

from cute_dialect.interp import InterpError
from cute_dialect.pipelines import compile as compile_cute
from cute_dialect.pipelines.ptxas import PtxasMissing, find_ptxas

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "blackwell.md").read_text(encoding="utf-8")
EXAMPLE = (ROOT / "test" / "examples" / "gemm_sm100.mlir").read_text(encoding="utf-8")
FINDINGS = {
    "tmem_wait": "a register of tcgen05.ld is used before the load is complete: missing tcgen05.wait::ld",
    "tcgen05_commit(%done)": "deadlock: 8 warps wait and none can continue",
    "mbarrier_wait(%done, %c0)": "write-after-read race on tensor memory of block (0, 0, 0)",
    "tmem_dealloc": "columns 0 to 255 of tensor memory, allocated here, are not freed",
}
"""Lines without which the example is wrong -> the finding."""
CHECKS = ("race", "oob", "uninit", "sync", "strict")


def aligned(rows: int, columns: int) -> np.ndarray:
    """Return a matrix of bf16 at a multiple of 32 bytes."""
    raw = np.full(2 * rows * columns + 32, 0x7F, np.uint8)
    start = -raw.ctypes.data % 32
    return raw[start : start + 2 * rows * columns].view(ml_dtypes.bfloat16).reshape(rows, columns)


def multiply(text: str, k: int, *checks: str) -> np.ndarray:
    """Run the example on one tile of ones and return its result."""
    a, b, c = aligned(128, k), aligned(256, k), aligned(128, 256)
    a[:], b[:] = 1, 1
    compile_cute(text, emit="base").kernel("launch")(a, b, c, device="cpu", checks=checks)
    return c.astype(np.float32)


def without(part: str) -> str:
    """Return the example without the lines that contain a text."""
    kept = [line for line in EXAMPLE.splitlines(keepends=True) if part not in line]
    assert len(kept) < len(EXAMPLE.splitlines())
    return "".join(kept)


def test_the_example_is_right() -> None:
    assert (multiply(EXAMPLE, 320, *CHECKS) == 320).all()


@pytest.mark.sample(every=3)
@pytest.mark.parametrize("line", FINDINGS)
def test_findings(line: str) -> None:
    with pytest.raises(InterpError) as e:
        multiply(without(line), 64, "race", "sync")
    assert FINDINGS[line] in str(e.value)


CHANGES = {
    "half of the columns": ("columns = 256", "columns = 128"),
    "no overwrite": ("arith.cmpi ne, %k, %c0", "arith.cmpi sge, %k, %c0"),
    "wait for the other phase": ("iter_args(%stage = %c0, %phase = %c0)", "iter_args(%stage = %c0, %phase = %c1)"),
    "bytes of A only": ("arith.constant 49152", "arith.constant 16384"),
    "stage not released": ("cute_nvgpu.arch.tcgen05_commit(%e) : (!bar) -> ()", ""),
    "lanes of another warp": ("%quarter = arith.andi %warp, %c3", "%quarter = arith.andi %warp, %c1"),
    "no fence before the MMA": (
        'cute_nvgpu.arch.tcgen05_fence() {kind = "after"} : () -> ()\n        %at = cute.make_coord(%stage)',
        "%at = cute.make_coord(%stage)",
    ),
}  # fmt: skip
"""Name -> a text of the example and its replacement, which makes the kernel wrong."""


@pytest.mark.slow
@pytest.mark.parametrize("change", CHANGES)
def test_wrong_kernels_are_found(change: str) -> None:
    before, after = CHANGES[change]
    assert before in EXAMPLE
    with pytest.raises(InterpError):
        multiply(EXAMPLE.replace(before, after), 384, *CHECKS)


def _commands() -> list[str]:
    blocks = re.findall(r"```sh\n(.*?)```", PAGE.partition("## Chips")[2], re.DOTALL)
    return [line for block in blocks for line in block.replace("\\\n", "").splitlines()]


@pytest.mark.slow
def test_commands(tmp_path: Path) -> None:
    for folder in ("examples", "test"):
        (tmp_path / folder).symlink_to(ROOT / folder)
    said = ""
    for command in _commands():
        if "--emit=cubin" in command:
            try:
                find_ptxas()
            except PtxasMissing:
                continue
        line = re.sub(r"^cute-(opt|run)", rf"{sys.executable} -m cute_dialect.tools.cute_\1", command)
        line = re.sub(r"^python\b", sys.executable, line)
        done = subprocess.run(
            ["bash", "-c", line],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
            env={**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), *sys.path])},
        )
        said += done.stdout + done.stderr
        is_wrong = "--break" in command or "--bug" in command
        assert done.returncode == is_wrong, f"{command}\n{done.stderr}"
    assert "check   gemm: ok" in said
