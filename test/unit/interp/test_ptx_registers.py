"""Accumulators in registers declared in PTX: the interpreter runs the output of cute-wgmma-registers."""

from __future__ import annotations

import numpy as np
import pytest
from pipelines_support import with_registers
from xdsl.dialects.builtin import ModuleOp, StringAttr

from cute_dialect.interp import InterpError
from cute_dialect.kernels.gemm import gemm_text
from cute_dialect.kernels.gemm.config import GemmConfig
from cute_dialect.pipelines import compile
from cute_dialect.runtime.launch import CompiledModule

BASE = GemmConfig()
CASES = {
    "deferred": BASE,
    "single": GemmConfig(cluster_m=1, deferred=False),
    "fp8, two levels": BASE._replace(
        element="f8E4M3FN", output="bf16", tile=(128, 192, 128), promote=True, deferred=False
    ),
    "three chunks a tile": BASE._replace(tile=(128, 192, 64), cluster_m=1, sms=2),
}
M, N, K = 200, 264, 144


def product(base: CompiledModule, lowered: ModuleOp, c: GemmConfig, *checks: str) -> np.ndarray:
    import ml_dtypes

    types = {"f16": np.float16, "bf16": ml_dtypes.bfloat16, "f8E4M3FN": ml_dtypes.float8_e4m3fn}
    rng = np.random.default_rng(7)
    a, b = (rng.standard_normal((rows, K)).astype(types[c.element]) for rows in (M, N))
    out = np.full((M, N), np.nan, types[c.output])
    module = CompiledModule(base.artifact, lowered=lambda _: lowered)
    module.kernel("launch")(a, b, out, device="cpu", checks=checks)
    return out


def ptx_of(module: ModuleOp) -> list[StringAttr]:
    return [op.properties["asm_string"] for op in module.walk() if op.name == "llvm.inline_asm"]  # type: ignore[misc]


@pytest.mark.slow
@pytest.mark.end_to_end
@pytest.mark.sample("single")
@pytest.mark.parametrize("name", CASES)
def test_the_hopper_gemm_gives_the_same_bits(name: str) -> None:
    c = CASES[name]
    base = compile(gemm_text(c), filename="gemm.mlir", emit="base")
    after = with_registers(base.lowered())
    assert any(text.data.startswith(".reg .f32 %acc0_<") for text in ptx_of(after))
    assert not any(op.name == "nvvm.wgmma.mma_async" for op in after.walk())
    before = product(base, base.lowered(), c)
    assert not np.isnan(before.astype(np.float32)).any()
    assert before.tobytes() == product(base, after, c, "race", "uninit").tobytes()


@pytest.mark.slow
def test_registers_are_read_after_the_wait_only() -> None:
    c = CASES["single"]
    base = compile(gemm_text(c), filename="gemm.mlir", emit="base")
    after = with_registers(base.lowered())
    waits = [op for op in after.walk() if op.name == "llvm.inline_asm" and "wait_group" in str(op.properties)]
    for op in waits:
        text = op.properties["asm_string"]
        assert isinstance(text, StringAttr)
        op.properties["asm_string"] = StringAttr(text.data.partition("\n")[2])
    with pytest.raises(InterpError, match="accumulator register is used before its wgmma has been waited for"):
        product(base, after, c)


def test_registers_are_written_before_they_are_read() -> None:
    c = CASES["single"]
    base = compile(gemm_text(c), filename="gemm.mlir", emit="base")
    after = with_registers(base.lowered())
    for op in after.walk():
        text = op.properties.get("asm_string")
        if isinstance(text, StringAttr):
            op.properties["asm_string"] = StringAttr(text.data.replace("setp.ne.b32 p, 0, 0", "setp.ne.b32 p, 1, 0"))
    with pytest.raises(InterpError, match="poison"):
        product(base, after, c)
