"""The cp.async GEMM on the GPU compared with float64: all variants and majors, odd shapes, bitwise repeatable runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from cute_dialect.runtime import load
from cute_dialect.runtime.launch import CompiledModule
from cute_dialect.tools.bench.cases.gemm_without_wgmma import CHECKS, check, configs, repeat

FOLDER = "gemm_sm80"


@pytest.fixture(scope="module", params=list(configs()))
def module(request: pytest.FixtureRequest, folder: Path) -> tuple[str, CompiledModule]:
    pytest.importorskip("torch", reason="NOT RUN: torch is not installed")
    return request.param, load(folder / request.param)


@pytest.mark.parametrize("case", CHECKS, ids=str)
def test_product(module: tuple[str, CompiledModule], case: object) -> None:
    name, compiled = module
    check(compiled, name, case)  # type: ignore[arg-type]


def test_a_hundred_runs_give_the_same_bits(module: tuple[str, CompiledModule]) -> None:
    repeat(module[1], module[0])
