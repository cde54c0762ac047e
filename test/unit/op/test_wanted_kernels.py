"""``kernel=`` and ``split_k=`` of products, on the interpreter."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from cute_dialect import op
from cute_dialect.kernels.gemm.config import GemmConfig
from cute_dialect.op.select.cost_model import ranked
from cute_dialect.op.select.kernel_choice import Choice, Problem
from cute_dialect.op.select.kernel_override import Wanted, kernel_for

RNG = np.random.default_rng(3)


def integers(*shape: int) -> np.ndarray:
    return RNG.integers(-2, 3, shape).astype(np.float16)


A, B = integers(72, 264), integers(264, 88)
EXACT = (A.astype(np.float64) @ B.astype(np.float64)).astype(np.float16)
PROBLEM = Problem(72, 88, 264, major_b="n")


@pytest.mark.parametrize(
    "kernel", ["f16-f16-kn-64x32-c2d-q16", "f16-f16-kn-64x96-c1w-q10", "f16-f16-kn-64x64-c1-q13-s2"]
)
def test_a_kernel_by_its_name(kernel: str) -> None:
    """Also with what comes behind the sums."""
    bias = integers(88)
    assert np.array_equal(op.mm(A, B, kernel=kernel, device="cpu"), EXACT)
    want = (EXACT.astype(np.float64) + bias).astype(np.float16)
    assert np.array_equal(op.mm(A, B, bias=bias, kernel=kernel, device="cpu"), want)


def test_a_kernel_and_a_tile() -> None:
    choice = ranked(PROBLEM)[40][1]
    assert np.array_equal(op.mm(A, B, kernel=choice, device="cpu"), EXACT)
    tile = op.TileDescription(
        [64, 96, 64], 4, [4, 1, 1], op.MathInstruction([64, 96, 16], "f16", "f16", "f32"), (1, 1, 1)
    )
    assert np.array_equal(op.mm(A, B, kernel=tile, device="cpu"), EXACT)
    assert kernel_for(PROBLEM, Wanted(tile)).config.tile == (64, 96, 64)
    batch = np.stack([A, A + 1])
    name = ranked(PROBLEM._replace(matrices=2))[7][1].name
    found = op.bmm(batch, np.stack([B, B]), kernel=name, device="cpu")
    assert np.array_equal(found[0], EXACT) and found.shape == (2, 72, 88)


@pytest.mark.parametrize(("parts", "there"), [(1, 1), (2, 2), (100, 2)])
def test_parts_of_k(parts: int, there: int) -> None:
    """No more than K has steps for."""
    found = kernel_for(PROBLEM, Wanted(split_k=parts))
    assert (found.parts if found.skinny is None else found.skinny.parts) == there
    assert np.array_equal(op.mm(A, B, split_k=parts, device="cpu"), EXACT)


@pytest.mark.sample(every=3)
@pytest.mark.parametrize(
    ("more", "says"),
    [
        ({"kernel": "f16-f16-kn-64x33-c1"}, 'expected a kernel of the menu for .*; did you mean f16-f16-kn'),
        ({"kernel": 3}, "mm: kernel: expected a Choice, its name or a TileDescription, got 3"),
        (
            {"kernel": Choice(GemmConfig())},
            "mm: kernel: expected one for matrices of f16 to f16, majors k and n, got f16-f16-kk-128x256-c2d for",
        ),
        ({"split_k": 0}, "mm: split_k: expected at least 1 part, got 0"),
        ({"split_k": 1.5}, "mm: split_k: expected a number of parts, got 1.5"),
        ({"split_k": 2, "kernel": "x"}, "mm: expected kernel or split_k, got both"),
        ({"kernel": ranked(PROBLEM._replace(k=8192))[0][1]._replace(parts=16)}, "cannot compute 72x88x264"),
    ],
)  # fmt: skip
def test_what_is_refused(more: dict[str, Any], says: str) -> None:
    with pytest.raises(op.UnsupportedError, match=says):
        op.mm(A, B, device="cpu", **more)


def test_a_kernel_needs_rows_for_tma() -> None:
    with pytest.raises(op.UnsupportedError, match="mm: expected addresses and rows of whole 16 bytes"):
        op.mm(integers(9, 7), integers(7, 5), kernel="f16-f16-kk-64x32-c1", device="cpu")
