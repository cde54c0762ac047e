"""Kernels of the language in upstream's own Python, both as traced modules and after lowering."""

from __future__ import annotations

import numpy as np

import cute_dialect.lang as cute


@cute.kernel
def doubled(x: cute.Tensor, y: cute.Tensor):
    i = cute.arch.thread_idx().x
    y[i] = x[i] * 2


@cute.jit
def run(x: cute.Tensor, y: cute.Tensor):
    doubled(x, y).launch(grid=1, block=32)


def test_modules_of_a_kernel() -> None:
    import mlir.ir as ir

    x = np.zeros(32, np.float32)
    made = cute.compile(run, x, x.copy())
    context = ir.Context()
    traced = made.as_upstream(context)
    assert traced.operation.verify() and "cute.memref.load" in str(traced) and "kernel attributes" in str(traced)
    lowered = made.as_upstream(context, "base")
    assert lowered.operation.verify() and "cute.memref" not in str(lowered).replace("!cute.memref", "")
    assert made.module().is_structurally_equivalent(made.module())
    assert made.module() is not made.module()
    assert "y[i] = x[i] * 2" in made.explain()
