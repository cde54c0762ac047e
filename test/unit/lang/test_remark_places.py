"""Remarks name the user's file even if the compile cache has the same kernel from another file."""

from __future__ import annotations

import re
import runpy
from pathlib import Path

import pytest

from cute_dialect.pipelines.cache import default_cache
from cute_dialect.pipelines.compiler import _MEMORY

PROGRAM = """
import numpy as np
import cute_dialect.lang as cute

@cute.kernel
def pick(x: cute.Tensor, n: cute.Int32):
    r = cute.make_rmem_tensor((8,), cute.Float32)
    for i in cute.range(8, unroll_full=True):
        r[i] = x[i]
    for i in range(n):
        if x[i] > 3.0:
            break
        x[i] = r[n]

@cute.jit
def run(x: cute.Tensor, n: cute.Int32):
    pick(x, n).launch(grid=1, block=1)

k = cute.compile(run, np.zeros(16, np.float32), 3, chip="sm_90a")
"""


@pytest.fixture(autouse=True)
def empty_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUTE_CACHE", "1")
    monkeypatch.setenv("CUTE_CACHE_DIR", str(tmp_path / "cache"))
    assert default_cache() is not None
    _MEMORY.clear()


@pytest.mark.parametrize("in_memory", [True, False])
def test_remarks_of_equal_kernels(in_memory: bool, tmp_path: Path) -> None:
    for name, lines in (("first.py", 0), ("second.py", 0), ("moved.py", 2), ("first.py", 0)):
        file = tmp_path / name
        file.write_text("\n" * lines + PROGRAM)
        k = runpy.run_path(str(file))["k"]
        remarks = [re.sub("remark R1: .*|remark: .*", "", r) for r in k.remarks]
        assert remarks == [f"{file}:{10 + lines}:14: ", f"{file}:{7 + lines}:9: "]
        if not in_memory:
            _MEMORY.clear()


def test_saved_remarks_are_those_of_the_file(tmp_path: Path) -> None:
    from cute_dialect.runtime import load

    for name in ("first.py", "second.py"):
        file = tmp_path / name
        file.write_text(PROGRAM)
        k = runpy.run_path(str(file))["k"]
        (remark,) = load(k.compiled_module.save(tmp_path / "saved")).remarks
        assert remark.startswith(f"{file}:7:9: remark: ")
