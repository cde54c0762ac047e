"""Hopper GEMMs that store C without TMA, because TMA cannot write its rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from cute_dialect.kernels.gemm import gemm_text
from cute_dialect.kernels.gemm.config import GemmConfig, SplitConfig
from cute_dialect.op.select.kernel_choice import Choice
from cute_dialect.pipelines import compile

F16 = GemmConfig(tile=(64, 48, 64), cluster_m=1, direct=True, deferred=False)
CASES = {
    "deferred": F16._replace(deferred=True, sms=2),
    "columns": F16._replace(major_a="m", major_c="m"),
    "two instructions of rows, 32 bits": F16._replace(tile=(256, 32, 64), output="f32"),
    "a batch": F16._replace(batch=True),
    "through registers": F16._replace(element="tf32", output="f32", tile=(64, 32, 32), major_a="m", major_c="m"),
}


@pytest.mark.end_to_end
@pytest.mark.sample("deferred")
@pytest.mark.parametrize("name", CASES)
def test_rows_of_any_length(name: str) -> None:
    c = CASES[name]
    m, n, k, matrices = 72, 37, 72, 2 if c.batch else 1
    rng, of_a, of_c = np.random.default_rng(0), np.float16, np.float32 if c.output == "f32" else np.float16
    of_a = np.float32 if c.element == "tf32" else of_a
    a, b = (rng.integers(-2, 3, (matrices, rows, k)).astype(of_a) for rows in (m, n))
    exact = a.astype(np.float64) @ b.transpose(0, 2, 1).astype(np.float64)
    if c.major_a == "m":
        a = a.transpose(0, 2, 1).copy().transpose(0, 2, 1)
    by_rows = c.major_c == "n"
    memory = np.full((matrices, m, n + 2) if by_rows else (matrices, n, m + 1), 77, of_c)
    out = memory[..., 1:-1] if by_rows else memory[..., :-1].transpose(0, 2, 1)
    given: Any = [x.transpose(1, 2, 0) if c.batch else x[0] for x in (a, b, out)]
    checks = ("race", "uninit", "sync", "oob")
    compile(gemm_text(c), emit="base").kernel("launch")(*given, device="cpu", checks=checks)
    assert (out == exact).all() and (memory[..., -1] == 77).all() and (not by_rows or (memory[..., 0] == 77).all())
    assert "o" in Choice(c).name.split("-")[4]


def test_no_epilogue() -> None:
    from cute_dialect.kernels.epilogue.combination import Epilogue

    with pytest.raises(ValueError, match="direct=True cannot be combined with an epilogue"):
        F16._replace(epilogue=Epilogue(activation="relu")).check()


@pytest.mark.slow
def test_dependent_launch() -> None:
    """With programmatic dependent launch, the kernel accesses no memory before the previous kernel ends, with split-K
    too. The ``race`` check verifies it.
    """
    base = F16._replace(direct=False, dependent=True, deferred=False, serpentine=False)
    rng = np.random.default_rng(1)
    a, b = (rng.integers(-2, 3, (rows, 264)).astype(np.float16) for rows in (72, 40))
    for c in (base, SplitConfig(base, 2)):
        out, more = np.full((72, 40), 77, np.float16), ()
        if isinstance(c, SplitConfig):
            floats, counters = Choice(base, 2).workspace(72, 40)
            more = np.full(floats, np.nan, np.float32), np.zeros(counters, np.int32)
        text = gemm_text(c)
        kernel = compile(text, emit="base").kernel("launch")
        kernel(a, b, out, *more, device="cpu", checks=("race", "uninit", "sync", "oob"))
        assert (out == a.astype(np.float64) @ b.astype(np.float64).T).all()
        assert "cute.pdl" in text and text.index("griddepcontrol_wait") < text.index("griddepcontrol_launch")
