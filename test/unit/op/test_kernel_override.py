"""``kernel=`` and ``split_k=`` of GEMM calls, on the interpreter."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from cute_dialect import op
from cute_dialect.kernels.gemm.config import GemmConfig
from cute_dialect.op.select.cost_model import ranked
from cute_dialect.op.select.gemm_dispatch import KernelOverride, kernel_for
from cute_dialect.op.select.kernel_choice import Choice, Problem

RNG = np.random.default_rng(3)


def integers(*shape: int) -> np.ndarray:
    return RNG.integers(-2, 3, shape).astype(np.float16)


A, B = integers(72, 264), integers(264, 88)
EXACT = (A.astype(np.float64) @ B.astype(np.float64)).astype(np.float16)
PROBLEM = Problem(72, 88, 264, major_b="n")


@pytest.mark.slow
@pytest.mark.parametrize(
    "kernel", ["f16-f16-kn-64x32-c2d-q16", "f16-f16-kn-64x96-c1w-q10", "f16-f16-kn-64x64-c1-q13-s2"]
)
def test_kernel_selected_by_name(kernel: str) -> None:
    """Calls with an epilogue can select a kernel by name too."""
    bias = integers(88)
    assert np.array_equal(op.mm(A, B, kernel=kernel, device="cpu"), EXACT)
    want = (EXACT.astype(np.float64) + bias).astype(np.float16)
    assert np.array_equal(op.mm(A, B, bias=bias, kernel=kernel, device="cpu"), want)


@pytest.mark.slow
def test_a_kernel_and_a_tile() -> None:
    choice = ranked(PROBLEM)[40][1]
    assert np.array_equal(op.mm(A, B, kernel=choice, device="cpu"), EXACT)
    tile = op.TileDescription(
        [64, 96, 64], 4, [4, 1, 1], op.MathInstruction([64, 96, 16], "f16", "f16", "f32"), (1, 1, 1)
    )
    assert np.array_equal(op.mm(A, B, kernel=tile, device="cpu"), EXACT)
    assert kernel_for(PROBLEM, KernelOverride(tile)).config.tile == (64, 96, 64)
    batch = np.stack([A, A + 1])
    name = ranked(PROBLEM._replace(matrices=2))[7][1].name
    found = op.bmm(batch, np.stack([B, B]), kernel=name, device="cpu")
    assert np.array_equal(found[0], EXACT) and found.shape == (2, 72, 88)


@pytest.mark.slow
@pytest.mark.parametrize(("parts", "there"), [(1, 1), (2, 2), (100, 2)])
def test_split_k(parts: int, there: int) -> None:
    """There are at most as many slices as K steps."""
    found = kernel_for(PROBLEM, KernelOverride(split_k=parts))
    assert (found.parts if found.skinny is None else found.skinny.parts) == there
    assert np.array_equal(op.mm(A, B, split_k=parts, device="cpu"), EXACT)


@pytest.mark.sample(every=4)
@pytest.mark.parametrize(
    ("more", "says"),
    [
        ({"kernel": "f16-f16-kn-64x33-c1"}, (
            'mm: there is no kernel "f16-f16-kn-64x33-c1" for f16-f16-kn 72x88x264; did you mean '
            r"f16-f16-kn-64x32-c1-q16\?"
        )),
        ({"kernel": 3}, "mm: kernel is 3; pass a Choice, a kernel name or a TileDescription"),
        (
            {"kernel": Choice(GemmConfig())},
            "mm: kernel f16-f16-kk-128x256-c2d is for matrices of f16 to f16, majors k and k, but the problem is "
            "matrices of f16 to f16, majors k and n; omit kernel",
        ),
        ({"split_k": 0}, "mm: split_k is 0; pass 1 or more"),
        ({"split_k": 1.5}, r"mm: split_k is 1\.5; pass an integer"),
        ({"split_k": 2, "kernel": "x"}, "mm: kernel and split_k are both given; pass one of them"),
        ({"kernel": ranked(PROBLEM._replace(k=8192))[0][1]._replace(parts=16)}, (
            "mm: kernel f16-f16-kn-64x32-c1-q16-s16 does not support 72x88x264: its split-K blocks would not all "
            "run at once, K has too few steps, or there are too many rows; omit kernel"
        )),
    ],
)  # fmt: skip
def test_invalid_arguments_are_rejected(more: dict[str, Any], says: str) -> None:
    with pytest.raises(op.UnsupportedError, match=says):
        op.mm(A, B, device="cpu", **more)


@pytest.mark.slow
def test_a_kernel_needs_rows_for_tma() -> None:
    with pytest.raises(
        op.UnsupportedError,
        match=(
            "mm: kernel and split_k need TMA, for which addresses and row strides must be multiples of 16 bytes; pass"
            " aligned operands"
        ),
    ):
        op.mm(integers(9, 7), integers(7, 5), kernel="f16-f16-kk-64x32-c1", device="cpu")
