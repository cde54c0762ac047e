"""Planned and described convolutions on the interpreter, compared with a loop over filter taps."""

# pyright: basic

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from conv_reference import How, forward, gradients, how, small

from cute_dialect import op

CPU: Any = {"device": "cpu", "checks": ("race", "uninit", "oob", "sync")}
HALF = op.MathInstruction([64, 64, 16], "f16", "f16", "f32")


@pytest.fixture(autouse=True)
def two_multiprocessors(monkeypatch: pytest.MonkeyPatch) -> None:
    from cute_dialect.op.plans import conv  # noqa: F401  (other modules import `here` before it is replaced)
    from cute_dialect.op.select import gemm_dispatch

    monkeypatch.setattr(gemm_dispatch, "here", lambda: ("NVIDIA H200", 2))


def tensor(element: str = "f16", alignment: int = 0) -> op.TensorDescription:
    return op.TensorDescription(element, op.TensorNHWC, alignment)


@pytest.mark.slow
@pytest.mark.end_to_end
def test_a_description_of_flat_arrays() -> None:
    """As in PyCUTLASS, the problem size gives the extents of flat arrays, and ``sync()`` returns the results."""
    rng = np.random.default_rng(1)
    tile = op.TileDescription([64, 64, 64], 3, [4, 1, 1], HALF)
    functor = op.LinearCombinationGeneric("relu", "f16", 8, "f32", "f32")
    operation = op.Conv2dOperation(
        "fprop", "optimized", 90, tile, tensor(), tensor(), tensor(), op.StrideSupport.strided, functor,
        op.StridedDgradIdentitySwizzle1,
    )  # fmt: skip
    problem = op.Conv2dProblemSize(
        op.Tensor4DCoord(1, 5, 4, 64), op.Tensor4DCoord(64, 3, 2, 64), op.Tensor4DCoord(1, 0, 0, 2),
        op.MatrixCoord(2, 1), op.MatrixCoord(1, 2), op.ConvMode.cross_correlation, 1, 1,
    )  # fmt: skip
    h = How((1, 0), (0, 2), (2, 1), (1, 2))
    x, f = small(rng, *problem.input), small(rng, *problem.filter)
    c, want = small(rng, *problem.output), forward(x, f, h)
    assert want.shape[1:3] == (problem.P, problem.Q) and x.shape == (problem.N, problem.H, problem.W, problem.C)
    assert f.shape[:3] == (problem.K, problem.R, problem.S)
    assert problem.implicit_gemm_size("wgrad") == (64, 3 * 2 * 64, problem.P * problem.Q)
    d = np.full(want.size, np.nan, np.float16)
    arguments = op.Conv2dArguments(
        operation, problem, x.ravel(), f.ravel(), c.ravel(), d, operation.epilogue_type(2.0, 0.5),
        op.SplitKMode.Serial, 1, **CPU,
    )  # fmt: skip
    operation.run(arguments)
    arguments.sync()
    assert (d.reshape(want.shape) == np.maximum(2 * want + 0.5 * c, 0)).all()
    assert [s.variant.name for s in arguments.launched] == [
        "fprop-f16-f16-3x2-p1x0to0x2-s2x1-d1x2-64x64-c1d-q3-alpha-beta-relu"
    ]
    assert arguments.problem_size == (want[..., 0].size, 64, 3 * 2 * 64)


@pytest.mark.slow
def test_kernels_of_sm_80() -> None:
    """A strided input gradient with mma.sync from im2col columns, with channel counts that TMA cannot read."""
    rng, h = np.random.default_rng(2), how(1, 2, groups=2)
    x, f = small(rng, 1, 4, 3, 6), small(rng, 4, 3, 3, 3)
    y = small(rng, *forward(x, f, h).shape)
    instruction = op.MathInstruction([16, 8, 16], "f16", "f16", "f32")
    tile = op.TileDescription([32, 32, 32], 2, [2, 2, 1], instruction)
    operation = op.Conv2dOperation("dgrad", "analytic", 80, tile, *[tensor(alignment=1)] * 3)
    problem = op.Conv2dProblemSize(1, 4, 3, 6, 4, 3, 3, 3, (1, 1), (2, 2), (1, 1), groups=2)
    c = small(rng, *x.shape)
    arguments = op.Conv2dArguments(operation, problem, y, f, c, None, operation.epilogue_type(1.0, 1.0), **CPU)
    operation.run(arguments)
    assert (gradients(x, f, y, h)[0] + c == arguments.D).all()
    names = [s.variant.name for s in arguments.launched]
    assert names[:2] == ["unfold-32-gradient", "unfold-16"] and names[2].startswith("f16-32x32x32-2-km-b")


@pytest.mark.slow
def test_split_k_plan() -> None:
    """The filter gradient is split over images. A second kernel adds the slices and applies the epilogue."""
    rng, h = np.random.default_rng(3), how()
    x, f, y = small(rng, 3, 3, 4, 64), small(rng, 64, 3, 3, 64), small(rng, 3, 3, 4, 64)
    df, c = gradients(x, f, y, h)[1], small(rng, 64, 3, 3, 64)
    plan = op.Conv2dWgrad(element="f16", element_C="f32", beta=0.5)
    c = c.astype(np.float32)
    done = plan.run(y, x, c, padding=1, alpha=2.0, split_k=("parallel", 7), **CPU, size=f.shape)
    assert (2 * df + 0.5 * c == done.D).all() and done.D.dtype == np.float32 and done.parts == 3
    assert (plan.reference(y, x, c, padding=1, alpha=2.0, size=f.shape) == done.D).all()
    assert plan.ir().count("wgmma") and len(done.launched) == 4
    text = str(plan.explain(y.shape, x.shape, padding=1, size=f.shape, split_k=("parallel", 7)))
    assert "wgrad-f16-f32-3x3-p1x1-" in text and "3 split-K slices (7 requested)" in text


@pytest.mark.slow
def test_a_plan_with_an_epilogue() -> None:
    """The epilogue is traced at the call, with NCHW shapes. 16 channels use ``few_channels``, and one of two results is
    a per-channel sum.
    """
    torch = pytest.importorskip("torch")
    rng, h = np.random.default_rng(4), how()

    def residual(accum: Any, bias: Any, c: Any) -> Any:
        D = op.epilogue.relu(accum + bias) + c
        total = op.epilogue.sum(D, -2)
        return D, total

    x, f, c = small(rng, 1, 4, 4, 16), small(rng, 64, 3, 3, 16), small(rng, 1, 4, 4, 64)
    want = np.maximum(forward(x, f, h) + np.arange(64), 0) + c
    plan = op.Conv2d("fprop", element="f16", data_format="NCHW")
    plan.epilogue_visitor = residual
    first = [torch.from_numpy(t).permute(0, 3, 1, 2) for t in (x, f, c)]
    done = plan.run(*first[:2], padding=1, visitor_args={"bias": torch.arange(64.0), "c": first[2]}, **CPU)
    assert done.operation.algorithm == "few_channels" and done.launched[0].variant.name.count("-w16-")
    assert (done.D.permute(0, 2, 3, 1).numpy() == want).all() and done.D.shape == (1, 64, 4, 4)
    total = done.results["total"]
    assert total.shape == (1, 64, 1, 1) and (total.flatten().numpy() == want.sum((0, 1, 2))).all()
    exact = plan.reference(*first[:2], padding=1)
    assert (exact[0] == want.reshape(-1, 64)).all()


def test_algorithms_and_tiles_of_plans() -> None:
    """Channel counts select the algorithm, tiles are sorted by speed, and the result size needs no run."""
    ways = {
        (8, 9, 9, 64, 64): "optimized", (8, 9, 9, 8, 64): "fixed_channels", (8, 9, 9, 16, 64): "few_channels",
        (8, 9, 9, 3, 64): "analytic", (8, 9, 9, 64, 12): "analytic",
    }  # fmt: skip
    plan = op.Conv2dFprop(element="f16")
    for (n, h, w, c, k), name in ways.items():
        assert f": {name}, chosen for its operands" in str(plan.explain((n, h, w, c), (k, 3, 3, c), padding=1))
    assert "analytic, chosen" in str(op.Conv2d("dgrad", element="i8").explain((8, 9, 9, 64), (64, 3, 3, 64), padding=1))
    assert "analytic, chosen" in str(op.Conv2d(element="f64").explain((8, 9, 9, 64), (64, 3, 3, 64), padding=1))
    assert "analytic, chosen" in str(plan.explain((8, 9, 9, 64), (64, 1, 1, 64)))  # a 1x1 filter is a GEMM
    tiles = plan.tile_descriptions(op.Conv2dProblemSize(32, 56, 56, 256, 256, 3, 3, 256, (1, 1)))
    assert tiles[0].threadblock_shape[1] == 256 and len(tiles) > 20
    plan.tile_description = {"stages": 3}
    assert plan.tile_description is not None and plan.tile_description.stages == 3
    made = plan.construct(problem_size=op.Conv2dProblemSize(1, 9, 9, 64, 64, 3, 3, 64, (1, 1)))
    assert [v.name.split("-q3")[1] for v in made.variants()] == ["", "-alpha", "-alpha-beta"]
    assert op.Conv2d.output_size((8, 57, 56, 64), (128, 3, 3, 32), 1, 2) == (8, 29, 28, 128)
