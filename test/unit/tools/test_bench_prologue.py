"""``cute-bench prologue``: clock counters inserted into a kernel's PTX, and medians of their values."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from cute_dialect.runtime import load
from cute_dialect.tools.bench.cases import gemm_limits as bench_prologue
from cute_dialect.tools.bench.cases.gemm_limits import FIELDS, medians


@pytest.mark.slow
def test_kernels_with_counters(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A counter is declared once and written before each load, each ``wgmma`` and each return."""
    monkeypatch.setattr(bench_prologue, "PROLOGUE_SIZES", (128,))
    (said,) = bench_prologue.build_prologue(str(tmp_path), "sm_90a")
    name = bench_prologue.prologue_kernel(128).name
    assert said.startswith(f"{name}: gemm: ") and "0 bytes spilled" in said
    (code,) = load(tmp_path / name).artifact.code
    assert code.cubin is not None and code.ptx.count(".visible .global .align 8 .b64 block_clocks") == 1
    lines = code.ptx.splitlines()
    for instruction, field in (("cp.async.bulk.tensor", "load"), ("wgmma.mma_async", "wgmma"), ("ret;", "end")):
        found = [i for i, line in enumerate(lines) if instruction in line and "commit" not in line]
        found = [i for i in found if field != "load" or "shared::cluster" in lines[i]]
        assert found and all(f"+{8 * FIELDS.index(field)}]" in lines[i - 1] for i in found), field


def test_the_clock_is_that_between_two_launches_on_one_multiprocessor() -> None:
    """Two launches on one multiprocessor give a clock rate of 1.5 GHz. Other multiprocessors have different clocks."""

    def launch(ns: int, sms: tuple[int, ...]) -> np.ndarray:
        begin = [10**6 * sm + ns * 3 // 2 for sm in sms]
        return np.array([[t, t + 150, t + 300, t + 3000, ns, sm] for t, sm in zip(begin, sms)], np.uint64)

    assert medians([launch(0, (3, 7)), launch(10**5, (1, 7))]) == {"load": 0.1, "wgmma": 0.2, "end": 2.0}
