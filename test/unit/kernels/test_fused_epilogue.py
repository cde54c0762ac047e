"""The epilogue on the registers of one warp, without a GEMM: 16 rows and 32 columns, compared with float64."""

from __future__ import annotations

import re
from math import erf
from typing import Any

import numpy as np
import pytest

import cute_dialect.lang as cute
from cute_dialect.kernels.epilogue.combination import Addends, Epilogue
from cute_dialect.kernels.epilogue.emit import Fused
from cute_dialect.kernels.gemm import gemm_text
from cute_dialect.kernels.gemm.config import GemmConfig
from cute_dialect.pipelines import compile

FUNCTIONS = {
    "": lambda x: x,
    "relu": lambda x: np.maximum(x, 0),
    "silu": lambda x: x / (1 + np.exp(-x)),
    "gelu": lambda x: x * 0.5 * (1 + np.vectorize(erf)(x / np.sqrt(2))),
    "gelu_tanh": lambda x: x * 0.5 * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3))),
}


def diagonal(x: Any, row: Any, column: Any) -> Any:
    """Hook that uses the coordinates: the diagonal becomes 7."""
    return cute.Float32(7.0) if row == column else x


@cute.kernel
def warp(D: cute.Tensor, epilogue: cute.Constexpr, addends: Addends):
    """Load registers in the layout of a wgmma accumulator, apply the epilogue, and store them."""
    lane = cute.arch.lane_idx()
    values = cute.make_rmem_tensor(16, cute.Float32)
    for j in cute.range_constexpr(4):
        for half, i in ((0, 0), (0, 1), (1, 0), (1, 1)):
            values[4 * j + 2 * half + i] = D[lane // 4 + 8 * half, 8 * j + lane % 4 * 2 + i]
    Fused(epilogue, addends).apply(values, 32, cute.Int32(0), cute.Int32(0))
    for j in cute.range_constexpr(4):
        for half, i in ((0, 0), (0, 1), (1, 0), (1, 1)):
            D[lane // 4 + 8 * half, 8 * j + lane % 4 * 2 + i] = values[4 * j + 2 * half + i]


@cute.jit
def launch(D: cute.Tensor, addends: Addends, epilogue: cute.Constexpr):
    epilogue.check_shapes(D, addends)
    warp(D, epilogue, addends).launch(grid=1, block=32)


@pytest.mark.sample("alpha-0.5")
@pytest.mark.parametrize(
    "e",
    [
        Epilogue(alpha=-0.5),
        Epilogue(alpha="arg", beta="arg", bias="n"),
        Epilogue(beta=1.0, bias="m", activation="silu"),
        Epilogue(beta=2.0, bias="m", bias_type="f16", activation="relu"),
        Epilogue(bias="n", bias_type="f16", activation="gelu_tanh"),
        Epilogue(activation="gelu", hook=diagonal),
    ],
    ids=lambda e: e.name,
)
def test_values(e: Epilogue) -> None:
    rng = np.random.default_rng(0)
    d = rng.standard_normal((16, 32)).astype(np.float32)
    source = rng.standard_normal((16, 32)).astype(np.float32) if e.beta else None
    bias = (
        rng.standard_normal({"n": 32, "m": 16}[e.bias]).astype({"f32": "f4", "f16": "f2"}[e.bias_type])
        if e.bias
        else None
    )
    alpha = 0.75 if e.alpha == "arg" else None
    beta = -1.5 if e.beta == "arg" else None
    x = float(alpha or e.alpha) * d.astype(np.float64)
    if source is not None:
        x += float(beta or e.beta) * source
    if bias is not None:
        x += bias[:, None] if e.bias == "m" else bias
    x = FUNCTIONS[e.activation](x)
    if e.hook:
        np.fill_diagonal(x, 7.0)
    numbers = [None if n is None else cute.Float32(n) for n in (alpha, beta)]
    launch(d, Addends(source, bias, *numbers), e, device="cpu", checks=("race", "uninit", "oob"))
    assert np.abs(d - x).max() < 2e-6 * max(1, np.abs(x).max())


def test_mismatched_addends_are_rejected() -> None:
    d = np.zeros((16, 32), np.float32)
    for addends, e, says in (
        (Addends(np.zeros((16, 30), np.float32)), Epilogue(beta=1.0), "source and C must have the same N"),
        (Addends(bias=np.zeros(16, np.float32)), Epilogue(bias="n"), "bias must have a value for each column of C"),
    ):
        with pytest.raises(cute.LaunchError, match=says):
            launch(d, addends, e, device="cpu")


@pytest.mark.slow
def test_per_column_operands_are_prefetched_once_per_warp() -> None:
    """Each lane loads 8 of the 256 bias columns and gets 64 by shuffles. If C is also read, each thread loads its own
    columns.
    """
    exchanged = list[int]()
    for beta, before in ((0.0, 8), (1.0, 0)):
        config = GemmConfig(cluster_m=1, deferred=False, epilogue=Epilogue(bias="n", beta=beta))
        ptx = compile(gemm_text(config), emit="ptx").ptx
        loads = [(m.start(), {"2": 2, "4": 4}.get(m[1] or "", 1)) for m in re.finditer(r"ld\.global(?:\.v(\d))?", ptx)]
        assert sum(n for at, n in loads if at < ptx.index("wgmma.mma_async")) == before
        exchanged.append(ptx.count("shfl.sync.idx"))
    assert exchanged[0] - exchanged[1] == 64


SINGLE = {"deferred": False, "buffers": 1}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("tile", "more"),
    [((256, 192, 64), {"stages": 3, "deferred": False}), ((128, 256, 64), {}), ((192, 192, 64), SINGLE)],
)
def test_no_register_is_spilled_by_an_epilogue(tile: tuple[int, int, int], more: dict[str, Any]) -> None:
    """The accumulator of the largest tiles leaves few registers for the temporaries of an activation."""
    epilogue = Epilogue(bias="n", bias_type="bf16", activation="gelu")
    config = GemmConfig("bf16", "bf16", tile=tile, epilogue=epilogue, **more)
    assert " registers, 0 bytes spilled" in compile(gemm_text(config)).report
