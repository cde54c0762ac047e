"""Remarks on register tensors in local memory: every tool prints one if a tensor cannot stay in registers."""

# pyright: basic

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from kernel_modules import Use, module_text

import cute_dialect.lang as cute
from cute_dialect.ir.printing import ir_text
from cute_dialect.pipelines import compile as compile_cute
from cute_dialect.runtime import load
from cute_dialect.tools.cute_opt import main as cute_opt
from cute_dialect.tools.cute_run import main as cute_run

REMARK = "remark: this register tensor is kept in local memory: it is indexed by a value known only at run time"


def text(index: str) -> str:
    """Build a kernel that stores one element of a register copy of ``x``, at a static, run-time or unrolled index."""

    @cute.kernel
    def pick(x: Any, n: cute.Int32):
        held = cute.make_rmem_tensor(4, cute.Float32)
        cute.autovec_copy(x, held)
        if index == "loop":
            for i in range(4):
                x[0] = held[i]
        else:
            x[0] = held[n if index == "n" else int(index)]

    return module_text([Use(pick, (cute.Tensor[cute.Float32, "4:1"], 0))])


@pytest.mark.parametrize(("index", "remarks"), [("3", 0), ("loop", 0), ("n", 1)])
def test_compiled_module_has_the_remark(index: str, remarks: int, tmp_path: Path) -> None:
    module = compile_cute(text(index), filename="pick.mlir", emit="base")
    assert len(module.remarks) == remarks
    assert all(REMARK in r and r.startswith("pick.mlir:") for r in module.remarks)
    assert ("llvm.alloca" in ir_text(module.lowered())) == bool(remarks)
    x = np.arange(1, 5, dtype=np.float32)
    module.kernel("pick")(x, np.int32(3), device="cpu", grid=(1, 1, 1))
    assert x[0] == 4
    assert load(module.save(tmp_path / "pick")).remarks == module.remarks


def test_tools_print_the_remark(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "pick.mlir"
    file.write_text(text("n"))
    assert cute_opt([str(file), "--pipeline=base", "-o", str(tmp_path / "out.mlir")]) == 0
    assert f"{file}:" in (said := capsys.readouterr().err) and REMARK in said
    for _ in range(2):  # The second run uses the cache.
        run = [str(file), "--kernel", "pick", "--device=cpu", "--in", "4", "--in", "3"]
        assert cute_run(run) == 0
        assert REMARK in capsys.readouterr().out
