"""Chip and PTX version checks before LLVM runs, and a grid of kernels and chips."""

from __future__ import annotations

import pytest
import target_grid
from sync_support import around, example

from cute_dialect.arch.targets import TARGETS
from cute_dialect.cute_nvgpu.sync import OPS, ArchOp
from cute_dialect.errors import CompileError
from cute_dialect.pipelines import compile as compile_cute

PAIRS = {
    ("elementwise_add", "sm_50"): "ptx",
    ("transpose", "sm_61"): "ptx",
    ("gemm_sm80", "sm_75"): "refused",
    ("gemm_sm80", "sm_80"): "ptx",
    ("gemm_sm90", "sm_90"): "refused",
    ("gemm_sm90", "sm_100a"): "refused",
    ("tma_copy", "sm_120f"): "ptx",
}
"""Example and chip -> outcome; ``test/oracle/target_grid.py`` has all pairs."""


@pytest.mark.sample("elementwise_add-sm_50")
@pytest.mark.parametrize(("kernel", "chip"), PAIRS)
def test_kernels_for_chips(kernel: str, chip: str) -> None:
    assert target_grid.outcome(kernel, chip) == PAIRS[kernel, chip]


def text_of(op: type[ArchOp]) -> str:
    kernel = around(example(op), "k")
    return f"module attributes {{gpu.container_module}} {{\ngpu.module @kernels {{\n{kernel}\n}}\n}}\n"


ROWS = [op for op in OPS if issubclass(op, ArchOp) and op.ROW.sm > 50]


@pytest.mark.parametrize("op", ROWS, ids=lambda op: op.ROW.name)
def test_an_op_is_refused_on_the_chip_before(op: type[ArchOp]) -> None:
    """Each op is rejected, with an error at the op, on the newest chip that lacks it."""
    numbers = sorted({int(chip[3:]) for chip in TARGETS if chip[3:].isdigit()})
    before = max(n for n in numbers if n < op.ROW.sm)
    with pytest.raises(CompileError) as e:
        compile_cute(text_of(op), chip=f"sm_{before}", emit="base", cache=False)
    (said,) = [d for d in e.value.diagnostics if f"cute_nvgpu.arch.{op.ROW.name}," in d.message]
    assert said.message.startswith(f"sm_{before} has no cute_nvgpu.arch.{op.ROW.name}, which needs sm_")
    line = text_of(op).splitlines()[said.position.line - 1]
    assert f"cute_nvgpu.arch.{op.ROW.name}(" in line


@pytest.mark.slow
def test_the_cpu_has_every_instruction() -> None:
    """Without a target chip, every instruction is accepted, because no machine code is generated."""
    text = (target_grid.EXAMPLES / "gemm_sm90.mlir").read_text()
    compile_cute(text, emit="base", cache=False)
    with pytest.raises(CompileError, match="sm_80 has no"):
        compile_cute(text, chip="sm_80", emit="base", cache=False)


@pytest.mark.parametrize("chip", TARGETS)
def test_a_chip_without_features_gets_a_version_that_knows_it(chip: str) -> None:
    kernel = "gpu.module @m {\n  gpu.func @k() kernel {\n    gpu.return\n  }\n}\n"
    (code,) = compile_cute(kernel, chip=chip, emit="ptx", cache=False).artifact.code
    assert f".target {chip}\n" in code.ptx
