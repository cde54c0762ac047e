"""Plans that compute f32 GEMMs as three tf32 GEMMs with wgmma, on the interpreter."""

from __future__ import annotations

from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cute_dialect import op
from cute_dialect.kernels.gemm.mma_sync import WarpConfig
from cute_dialect.kernels.gemm.split_tf32 import PartsConfig
from cute_dialect.op.epilogue import maximum, pairs
from cute_dialect.op.epilogue import sum as sum_of
from cute_dialect.op.execute.gemm import Step
from cute_dialect.op.select.descriptions import MathOperation
from cute_dialect.op.select.kernel_choice import Choice

GENERATOR = np.random.default_rng(21)
CHECKS = ("race", "uninit", "oob", "sync")
FAST = MathOperation.multiply_add_fast_f32


def normal(*shape: int, layout: str = "row") -> np.ndarray:
    *batch, m, n = shape
    order = (*batch, m, n) if layout == "row" else (*batch, n, m)
    found = GENERATOR.standard_normal(order).astype(np.float32)
    return found if layout == "row" else found.swapaxes(-1, -2)


def planned(**kinds: Any) -> op.Gemm:
    plan = op.Gemm(**{"element": "f32", "layout": "row", **kinds})
    plan.math_operation = FAST
    return plan


def in_f32(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return the GEMM in f32, accumulated step by step along K."""
    found = np.zeros((*np.broadcast_shapes(a.shape[:-2], b.shape[:-2]), a.shape[-2], b.shape[-1]), np.float32)
    for i in range(a.shape[-1]):
        found = found + a[..., :, i : i + 1] * b[..., i : i + 1, :]
    return found


def error(found: Any, want: np.ndarray) -> float:
    return float(np.abs(np.asarray(found, np.float64) - want).max())


def names(done: Any) -> list[str]:
    return [v.name for v in done.sources()]


LAYOUTS = [*product(("row", "column"), repeat=3)]


@pytest.mark.slow
@pytest.mark.parametrize("shape", [(40, 72, 56), (33, 65, 47)])
@pytest.mark.parametrize("layouts", LAYOUTS, ids="-".join)
def test_layouts(layouts: tuple[str, str, str], shape: tuple[int, int, int]) -> None:
    """The error is at most twice that of f32, with C, for any row alignment."""
    of_a, of_b, of_d = layouts
    m, n, k = shape
    plan = planned(layout=None, layout_A=of_a, layout_B=of_b, layout_C=of_d)
    a, b, c, d = (
        normal(*s, layout=x) for s, x in (((m, k), of_a), ((k, n), of_b), ((m, n), of_d), ((m, n), of_d))
    )  # fmt: skip
    d[...] = np.nan
    exact = plan.reference(a, b, c, alpha=0.5, beta=2.0)
    done = plan.run(a, b, c, d, 0.5, 2.0, device="cpu", checks=CHECKS)
    assert done.D is d and error(d, exact) <= 2 * error(np.float32(0.5) * in_f32(a, b) + np.float32(2.0) * c, exact)
    split = [f"split-a-{of_a}", f"split-b-{'row' if of_b == 'column' else 'column'}"]
    assert names(done)[:2] == split and names(done)[2].startswith("tf32-f32-kk-")
    assert len(names(done)) == (3 if m == 40 else 4)  # A second kernel writes results that TMA cannot.


A, B, EXACT = (x := normal(70, 100)), (y := normal(100, 68)), x.astype(float) @ y
OF_F32 = error(in_f32(A, B), EXACT)


@pytest.mark.slow
def test_synchronous_run() -> None:
    plan = planned()
    bias = normal(1, 68)
    done = plan.run(A, B, alpha=2.0, bias=bias, sync=False, device="cpu")
    done.sync()
    plan.sync()
    assert error(done.D, plan.reference(A, B, alpha=2.0, bias=bias)) <= 4 * OF_F32
    assert len(done.launched) == 3 and all([step.operands is done.operands for step in done.launched])
    found = plan.arguments(A, B, None, done.D, device="cpu")
    assert found.problem_size == (70, 68, 100) and names(found) == ["split-a-row", "split-b-column", names(found)[2]]
    assert found.operation.choice is not None and not found.operation.by_tma
    with pytest.raises(op.DeviceError, match="bind: the arrays are in CPU memory"):
        plan.bind(A, B)
    halves = planned(element_C="f16")
    halves.activation = "relu"
    assert error(halves.run(A, B, device="cpu").D, EXACT.clip(min=0)) <= np.abs(EXACT).max() * 2**-11


@pytest.mark.slow
@pytest.mark.parametrize("split", [2, ("parallel", 3)])
def test_split_k(split: Any) -> None:
    plan = planned()
    for a, b in ((A, B), (A[:33, :77], B[:77, :65].copy())):
        done = plan.run(a, b, split_k=split, device="cpu", checks=CHECKS)
        assert error(done.D, a.astype(float) @ b) <= 2 * OF_F32
    with pytest.raises(op.UnsupportedError, match="split_k='stream' is not supported for the tile"):
        plan.run(A, B, split_k="stream", device="cpu")
    assert "K in 3 slices" in str(plan.explain(A[:, :32], B[:32], split_k=3))  # K counts all three tf32 parts.


@pytest.mark.slow
@pytest.mark.parametrize(
    ("of_a", "of_b", "batches"),
    [((3, 24, 40), (3, 40, 72), "ab"), ((3, 24, 40), (40, 72), ""), ((24, 40), (3, 40, 72), "b"),
     ((1, 24, 40), (3, 40, 72), "b"), ((3, 9, 17), (3, 17, 5), "ab")],
)  # fmt: skip
@pytest.mark.parametrize("split", [None, ("parallel", 3)])
def test_batches(of_a: tuple[int, ...], of_b: tuple[int, ...], batches: str, split: Any) -> None:
    """A matrix shared by a batch is split once."""
    a, b, plan = normal(*of_a), normal(*of_b), planned()
    done = plan.run(a, b, split_k=split, device="cpu", checks=CHECKS)
    exact = plan.reference(a, b)
    assert done.D.shape == exact.shape and error(done.D, exact) <= 2 * error(in_f32(a, b), exact)
    assert [n[6] for n in names(done)[:2] if n.endswith("-b")] == list(batches)


@pytest.mark.slow
def test_alpha_of_zero_does_not_read_operands() -> None:
    """With alpha = 0, A and B may hold NaN."""
    plan, c = planned(), normal(70, 68)
    nothing = np.full_like(A, np.nan)
    assert error(plan.run(nothing, B, c, alpha=0.0, beta=1.0, device="cpu").D, c) == 0
    assert error(plan.run(A[:, :0].copy(), B[:0], device="cpu").D, np.zeros((70, 68))) == 0

    def summed(accum: Any) -> Any:
        D = accum + 1.0
        rows = sum_of(D, dim=-1)
        return D, rows

    plan.epilogue_visitor = summed
    done = plan.run(A[:, :0].copy(), B[:0], device="cpu")
    assert (done.D == 1).all() and (done.results["rows"] == 68).all()


@pytest.mark.slow
def test_epilogues() -> None:
    """Traced epilogues with reductions and pairs need wgmma, since mma.sync does not support them. Elementwise ones
    also support rows that TMA cannot write.
    """

    def reduced(accum: Any, residual: Any) -> Any:
        D = maximum(accum + residual, 0.0)
        rows = sum_of(D, dim=-1)
        return D, rows

    c = normal(70, 68)
    plan = planned()
    plan.epilogue_visitor = reduced
    done = plan.run(A, B, visitor_args={"residual": c}, device="cpu", checks=CHECKS)
    want = (EXACT + c).clip(min=0)
    assert error(done.D, want) <= 4 * OF_F32 and error(done.results["rows"].reshape(-1), want.sum(1)) <= 1e-4

    def gated(accum: Any) -> Any:
        gate, up = pairs(accum)
        D = gate * up
        return D

    plan.epilogue_visitor = gated
    found = plan.run(A, B[:, :64].copy(), device="cpu").D
    assert error(found, EXACT[:, :64:2] * EXACT[:, 1:64:2]) <= 1e-3
    with pytest.raises(op.EpilogueError, match="addresses and row strides are multiples of 16 bytes"):
        plan.run(A, B[:, :66].copy(), device="cpu")  # The result has 33 columns.
    plan.tile_description = plan.tile_descriptions()[0]
    with pytest.raises(op.EpilogueError, match="needs a D whose address and row stride are multiples of 16 bytes"):
        plan.run(A, B[:, :66].copy(), device="cpu")

    def added(accum: Any, residual: Any) -> Any:
        D = accum + residual
        return D

    plan = planned()
    plan.epilogue_visitor = added
    odd = plan.run(A, B[:, :65].copy(), visitor_args={"residual": c[:, :65].copy()}, device="cpu", checks=CHECKS)
    assert error(odd.D, (EXACT + c)[:, :65]) <= 4 * OF_F32 and names(odd)[-1].startswith("f32-f32-reduce-g")


@pytest.mark.slow
def test_tiles() -> None:
    """wgmma tiles come first. The mma.sync tiles after them are used on request."""
    plan = planned()
    tiles = plan.tile_descriptions((70, 68, 100))
    assert tiles[0].in_parts and tiles[0].math_instruction == op.MathInstruction(
        [64, tiles[0].threadblock_shape[1], 8], "f32", "f32", "f32", "tensor_op", FAST
    )
    assert [td.in_parts for td in tiles[-3:]] == [True, False, False] and len(list(tiles)) == len(tiles)
    assert len(tiles[1:-1]) == len(tiles) - 2 and tiles[1:-1][-1] == tiles[-2] and tiles[1:][0] == tiles[1]
    with pytest.raises(IndexError):
        tiles[len(tiles)]
    plan.tile_description = {"threadblock_shape": [64, 32, 32], "stages": 4, "cluster_shape": [1, 1, 1]}
    done = plan.run(A, B, device="cpu")
    assert error(done.D, EXACT) <= 2 * OF_F32 and names(done)[2] == "tf32-f32-kk-64x32-c1p"
    assert plan.compile().name == names(done)[2]
    for td in (tiles[-1], op.TileDescription([64, 64, 32], 3, [2, 2, 1], op.MathInstruction(
            [16, 8, 8], "f32", "f32", "f32", "tensor_op", FAST))):  # fmt: skip
        plan.tile_description = td
        done = plan.run(A, B, device="cpu")
        assert error(done.D, EXACT) <= 2 * OF_F32 and isinstance(done.operation.variant().configured, WarpConfig)
        assert len(names(done)) == 1
    older = planned(kernel_cc=80)
    assert not any([td.in_parts for td in older.tile_descriptions()])
    assert names(older.run(A, B, device="cpu"))[0].endswith("-fast_f32")
    for alignments in ((None, 1, None), (1, 1, 1)):
        assert planned().construct(None, *alignments).in_parts
    plan.math_operation = "multiply_add_fast_f16"
    assert not any([td.in_parts for td in plan.tile_descriptions()])


@pytest.mark.slow
def test_lists_of_matrices() -> None:
    """mma.sync needs one launch. A plan with a wgmma tile splits each matrix."""
    given = [normal(24, 40) for _ in range(3)], [normal(40, 72) for _ in range(3)]
    exact = np.stack([a.astype(float) @ b for a, b in zip(*given)])
    limit = 2 * max([error(in_f32(a, b), e) for a, b, e in zip(*given, exact)])
    plan = planned()
    done = plan.run(*given, device="cpu")
    assert error(np.stack(done.D), exact) <= limit and len(names(done)) == 1
    assert "fast_f32: no kernel splits f32 in pointer arrays into tf32 parts" in str(plan.explain(*given))
    assert error(np.stack(op.mm_array(*given, math="3xtf32", device="cpu")), exact) <= limit
    plan.tile_description = plan.tile_descriptions((24, 72, 40))[0]
    done = plan.run(*given, device="cpu")
    assert error(np.stack(done.D), exact) <= limit and len(names(done)) == 9
    assert "launches  3, one per matrix: f32 is split into tf32 parts first" in str(plan.explain(*given))


def test_explanation_of_split_f32_plans() -> None:
    plan = planned()
    found = plan.explain(A, B)
    assert found.parts == (PartsConfig("a"), PartsConfig("b", row_major=False))
    assert (found.problem.k, found.problem.sums, found.problem.element) == (300, "two", "tf32") and found.copies == ()
    assert "before    each operand is split from f32 into three tf32 parts" in str(found)
    assert found.kernel == plan.arguments(A, B, device="cpu").operation.name
    odd = plan.explain((33, 47), (47, 65))
    assert odd.copies == (("out", 33 * 65 * 4),) and odd.problem.k == 3 * 48
    batch = planned(layout_A="column", layout=None, layout_B="row", layout_C="row").explain((5, 32, 40), (40, 64))
    assert [c.name for c in batch.parts] == ["split-a-column-b", "split-b-column"]
    plan.tile_description = plan.tile_descriptions()[-1]
    assert plan.explain(A, B).parts == () and "fast_f32: set by the plan's tile_description" in str(plan.explain(A, B))


@pytest.mark.slow
def test_a_plan_in_a_folder(tmp_path: Path) -> None:
    plan = planned(layout_C="column", layout=None, layout_A="row", layout_B="row")
    plan.run(A, B, device="cpu")
    loaded = op.load(plan.save(tmp_path / "plan"))
    found = loaded.run(A, B, device="cpu")
    assert np.array_equal(found.D, plan.run(A, B, device="cpu").D)
    assert error(loaded.run(A[:40], B[:, :32].copy(), device="cpu").D, EXACT[:40, :32]) <= 2 * OF_F32
    assert "wgmma" in loaded.ptx and loaded.math_operation == FAST
    with pytest.raises(
        op.UnsupportedError, match=r"needs split-a-row, split-b-column, tf32.* which the folder does not have"
    ):
        loaded.run(A, B, alpha=2.0, device="cpu")


def tile(columns: int) -> op.TileDescription:
    instruction = op.MathInstruction([64, columns, 8], "f32", "f32", "f32", "tensor_op", FAST)
    return op.TileDescription([64, columns, 32], 0, None, instruction)


@pytest.mark.slow
def test_described_operations() -> None:
    """Operations compile their kernels, and run with split-K, a workspace, batches and pointer arrays."""
    operands = [op.TensorDescription("f32", layout, 4) for layout in ("row", "column", "row")]
    functor = op.LinearCombination("f32", 4, "f32", "f32")
    operation = op.GemmOperationUniversal(90, tile(64), *operands, functor)
    assert [v.name for v in operation.variants()][3:] == ["split-a-row", "split-b-row"]
    with pytest.raises(op.UnsupportedError, match="the tile uses wgmma, which sm_80 lacks"):
        op.GemmOperationUniversal(80, tile(64), *operands, functor)
    b = np.asfortranarray(B)
    arguments = op.GemmArguments(
        operation, op.GemmCoord(70, 68, 100), A, b, None, None, operation.epilogue_type(2.0, 0.0),
        op.Mode.GemmSplitKParallel, 2, device="cpu",
    )  # fmt: skip
    operation.run(arguments)
    workspace = arguments.workspace
    assert workspace is not None and arguments.partitions == 2
    reduction = op.ReductionOperation((4, 128), operands[2], "f32", "f32", "f32", functor)
    more = op.ReductionArguments(
        reduction, (70, 68), 2, workspace, like=A, output_op=reduction.epilogue_type(2.0), device="cpu"
    )  # fmt: skip
    reduction.run(more)
    assert error(more.D, 2 * EXACT) <= 4 * OF_F32
    twice, of_b = np.stack([A, -A]), np.stack([B, B]).swapaxes(-1, -2).copy().swapaxes(-1, -2)
    for mode, given in ((op.Mode.Batched, (twice, of_b)), (op.Mode.Array, (list(twice), list(of_b)))):
        many = op.GemmArguments(
            operation, op.GemmCoord(70, 68, 100), *given, None, None, operation.epilogue_type(1.0, 0.0), mode, 1, 2,
            device="cpu",
        )  # fmt: skip
        operation.run(many)
        assert error(np.stack(list(many.D)), np.stack([EXACT, -EXACT])) <= 2 * OF_F32
    compiled = op.Gemm.of_operation(operation).run(A, b, device="cpu")
    assert error(compiled.D, EXACT) <= 2 * OF_F32 and isinstance(compiled.operation.choice, Choice)


@pytest.mark.slow
def test_convolutions() -> None:
    """The GEMM on im2col columns is split into tf32 parts. Kernels with im2col loads cannot split f32."""
    x = GENERATOR.standard_normal((2, 6, 7, 8)).astype(np.float32)
    w = GENERATOR.standard_normal((24, 3, 3, 8)).astype(np.float32)
    plan = op.Conv2dFprop(element="f32")
    plan.math_operation = FAST
    exact = plan.reference(x, w, padding=1)
    for algorithm in (None, "optimized"):
        plan.iterator_algorithm = algorithm
        done = plan.run(x, w, padding=1, device="cpu")
        assert error(done.D, exact) <= 2e-5
        assert [n.partition("-")[0] for n in names(done)][-3:] == ["split", "split", "tf32"]
    assert plan.ptx.count("wgmma") > 0


def test_listing_steps_allocates_no_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    found = planned().arguments(A, B, split_k=("parallel", 2), device="cpu")
    taken: list[Step] = []
    steps = found.steps
    monkeypatch.setattr(found, "steps", lambda x: taken.extend(steps(x)) or taken)
    assert names(found)[-1] == "f32-f32-reduce"
    made = [step.operands.d for step in taken[:-1]]
    assert made and all([view.library == "nowhere" and view.keep is None for view in made])
