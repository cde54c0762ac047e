"""Row kernels on the GPU compared with float64: aligned, padded and misaligned rows, poisoned outputs."""

from __future__ import annotations

from pathlib import Path

import pytest

from cute_dialect.runtime import load
from cute_dialect.tools.bench.cases.rows import CASES, CHECKS, Case, check

KERNELS = {c.folder: c for c in CASES}


FOLDER = "rows"


@pytest.mark.parametrize("case", KERNELS.values(), ids=list(KERNELS))
def test_rows(folder: Path, case: Case) -> None:
    pytest.importorskip("torch", reason="NOT RUN: torch is not installed")
    kernel = load(folder / case.folder).kernel(case.op)
    chosen = [check(kernel, case, *shape) for shape in CHECKS]
    assert chosen == [f"{case.op}_v", f"{case.op}_v", case.op, case.op]
