"""The "flops" report, compared with counts from the problem size, which is a multiple of the tile size."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from cute_dialect.pipelines import compile

EXAMPLES = Path(__file__).parents[3] / "test" / "examples"

PRODUCTS = {
    "sgemm_naive": ((64, 32, 24), np.float32, False),
    "gemm_sm80": ((128, 256, 64), np.float16, True),
    "gemm_sm90": ((256, 256, 64), np.float16, True),
}
"""Kernel -> (M, N, K), element type, True if it uses tensor cores."""


@pytest.mark.slow
@pytest.mark.parametrize("name", PRODUCTS)
def test_products(name: str) -> None:
    """A GEMM counts 2·M·N·K operations, either all scalar or all on tensor cores."""
    (m, n, k), dtype, tensor_cores = PRODUCTS[name]
    rng = np.random.default_rng(0)
    a, b = (
        rng.standard_normal((m, k)).astype(dtype),
        rng.standard_normal((n, k) if tensor_cores else (k, n)).astype(dtype),
    )
    module = compile(EXAMPLES / f"{name}.mlir", emit="base")
    c = np.full((m, n), np.nan, dtype)
    report = module.kernel(module.manifest["hosts"][0]["name"])(a, b, c, device="cpu", reports=["flops"])
    scalar, tensor = sum(report.flops.scalar.values()), sum(report.flops.tensor.values())
    assert (scalar, tensor) == ((0, 2 * m * n * k) if tensor_cores else (2 * m * n * k, 0))
    assert report.flops.total == scalar + tensor


def test_additions() -> None:
    a = b = np.ones((32, 256), np.float32)
    c = np.empty_like(a)
    module = compile(EXAMPLES / "elementwise_add.mlir", emit="base")
    name = module.manifest["hosts"][0]["name"]
    report = module.kernel(name)(a, b, c, device="cpu", reports=["flops"])
    assert report.flops.total == 32 * 256
    assert report.flops.tensor == {} and (c == 2).all()
    assert module.kernel(name)(a, b, c, device="cpu").flops is None
