"""Lazy lowering: each kernel is lowered when it first runs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from cute_dialect.errors import CompileError
from cute_dialect.pipelines import compile as compile_cute
from cute_dialect.pipelines.compiler import compile_lazily

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.mark.slow
@pytest.mark.end_to_end
@pytest.mark.sample("gemm_sm90")
@pytest.mark.parametrize("name", ["gemm_sm90", "transpose", "sgemm_smem"])
def test_manifest_is_the_same_on_demand(name: str) -> None:
    """Kernels lowered one at a time have the same manifest and code as kernels lowered with the whole module."""
    text = (EXAMPLES / f"{name}.mlir").read_text()
    whole, made = compile_cute(text, emit="base", cache=False), compile_lazily(text, name)
    assert made.manifest == {k: v for k, v in whole.manifest.items() if k != "remarks"}
    functions: dict[str, str] = {}
    for kernel in made.names:
        module: Any = made.lowered(kernel)
        functions |= {
            str(f.sym_name): str(f) for f in module.walk() if f.name == "llvm.func" and kernel in str(f)[:200]
        }
    wanted: Any = whole.lowered()
    assert functions == {
        str(f.sym_name): str(f) for f in wanted.walk() if f.name == "llvm.func" and str(f.sym_name) in functions
    }
    assert len(functions) == len(made.names)


def test_errors_of_a_kernel_are_reported_when_it_runs() -> None:
    text = """
gpu.module @m {
  gpu.func @f(%a: !cute.memref<f32, gmem, "(4):(1)">) kernel {
    %s = cute.memref.alloc_smem() : !cute.memref<f32, smem, "(4):(1)">
    gpu.return
  }
  gpu.func @wrong(%a: !cute.memref<f32, gmem, "(4):(1)">) kernel {
    cute_nvgpu.arch.setmaxnreg() {action = "increase", count = 232 : i32} : () -> ()
    gpu.return
  }
}
"""
    made = compile_lazily(text, "x.mlir")
    assert made.names == ["f", "wrong"]
    made.lowered("f")
    with pytest.raises(CompileError, match="setmaxnreg requires a kernel with known_block_size"):
        made.lowered("wrong")
