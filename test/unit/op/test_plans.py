"""Plans on the interpreter: bitwise results, kernel choices and properties."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from cute_dialect import op
from cute_dialect.kernels.epilogue.reductions import ReduceConfig
from cute_dialect.op.select.gemm_dispatch import Plan
from cute_dialect.op.select.kernel_choice import Choice
from cute_dialect.runtime.arrays import numpy_dtype

GENERATOR = np.random.default_rng(7)


def integers(*shape: int, element: str = "f16", layout: str = "row") -> np.ndarray:
    """Return small integers, for which all results in this file are exact."""
    *batch, m, n = shape
    order = (*batch, m, n) if layout == "row" else (*batch, n, m)
    low = 0 if element == "ui8" else -2
    found = GENERATOR.integers(low, 3, order).astype(numpy_dtype(element))
    return found if layout == "row" else found.swapaxes(-1, -2)


def poisoned(*shape: int, element: str = "f16", layout: str = "row") -> np.ndarray:
    """Return memory filled with a value that no result has."""
    found = integers(*shape, element=element, layout=layout)
    found[...] = 99 if np.issubdtype(found.dtype, np.integer) else np.nan
    return found


def test_equal_calls_have_equal_plans() -> None:
    plan = op.Gemm(element="f16", layout="row")
    for split, slices in ((None, 0), (("parallel", 3), 3)):
        found: list[Plan] = []
        for _ in range(2):
            one = plan.arguments(integers(64, 264), integers(264, 96), split_k=split, device="cpu", beta=0.0)
            found.append(one.operation.plan_for(one.operands, one.split))
        assert found[0] == found[1] and len(set(found)) == 1
        assert sum(x.slices for x in found[0].slices) == slices
        assert [(x.begin, x.k) for x in found[0].slices] == [(0, 128), (256, 8)][: len(found[0].slices)]
        assert isinstance(found[0].kernel, ReduceConfig if split else Choice)


def test_the_kernel_of_an_explained_plan_without_tma_can_be_prefetched() -> None:
    found = op.Gemm(element="f32", layout="row").explain((64, 64), (64, 64))
    assert found.kernels is not None and [x.name for x in found.kernels] == [found.kernel]


@pytest.mark.slow
def test_a_plan_is_run() -> None:
    a, b, c, d = integers(64, 72), integers(72, 96), integers(64, 96), poisoned(64, 96)
    plan = op.Gemm(element="f16", layout="row")
    done = plan.run(a, b, c, d, device="cpu", checks=("race", "uninit", "oob", "sync"))
    assert done.D is d and np.array_equal(d, plan.reference(a, b, c, d))
    assert done.problem_size == (64, 96, 72)
    later = plan.run(a, b, c, alpha=2.0, beta=0.5, device="cpu", sync=False)
    later.sync()
    plan.sync()
    assert np.array_equal(later.D, plan.reference(a, b, c, alpha=2.0, beta=0.5))
    assert np.array_equal(later.D, 2.0 * (a.astype(float) @ b) + 0.5 * c)


@pytest.mark.slow
def test_arrays_of_the_plan() -> None:
    a, b, c, d = (integers(32, 32) for _ in range(4))
    plan = op.Gemm(A=a, B=b, C=c, D=d, beta=1.0)
    plan.run(device="cpu")
    assert np.array_equal(d, a.astype(float) @ b + c)
    assert str(op.Gemm(A=a.T, element="f16", layout="row").kinds.a) == "f16, column-major"


LAYOUTS = [(a, b, d) for a in ("row", "column") for b in ("row", "column") for d in ("row", "column")]


@pytest.mark.end_to_end
@pytest.mark.sample("f16-row-column-row")
@pytest.mark.parametrize("layouts", LAYOUTS, ids="-".join)
@pytest.mark.parametrize("output", ["f16", "f32"])
def test_layouts(layouts: tuple[str, str, str], output: str) -> None:
    of_a, of_b, of_d = layouts
    plan = op.Gemm(element="f16", element_C=output, layout_A=of_a, layout_B=of_b, layout_C=of_d, beta=1.0)
    a, b = integers(48, 72, layout=of_a), integers(72, 40, layout=of_b)
    c, d = (f(48, 40, element=output, layout=of_d) for f in (integers, poisoned))
    plan.run(a, b, c, d, device="cpu")
    assert np.array_equal(d, plan.reference(a, b, c))
    assert plan.run(a, b, c, device="cpu").D.flags.f_contiguous == (of_d == "column")


@pytest.mark.sample("bf16-bf16")
@pytest.mark.parametrize(
    ("element", "output"),
    [("bf16", "bf16"), ("tf32", "f32"), ("f8E4M3FN", "bf16"), ("f8E4M3FN", "f8E4M3FN"), ("i8", "i32"), ("ui8", "i32"),
     ("i8", "f32"), ("f32", "f32"), ("f64", "f64")],
)  # fmt: skip
def test_elements(element: str, output: str) -> None:
    simt = element in ("f32", "f64")
    plan = op.Gemm(element=element, layout_A="row", layout_B="row" if simt else "column", layout_C="row",
                   element_C=output)  # fmt: skip
    a, b = integers(32, 64, element=element), integers(64, 48, element=element, layout="row" if simt else "column")
    d = poisoned(32, 48, element=output)
    plan.run(a, b, None, d, device="cpu")
    exact = a.astype(float) @ b.astype(float)
    assert np.array_equal(d.astype(float), exact.astype(numpy_dtype(output)).astype(float))


@pytest.mark.slow
@pytest.mark.parametrize("shapes", [((3, 24, 40), (3, 40, 72)), ((3, 24, 40), (40, 72)), ((24, 40), (3, 40, 72)),
                                    ((1, 24, 40), (3, 40, 72))])  # fmt: skip
@pytest.mark.parametrize("kernel_cc", [80, 90])
def test_batches(shapes: tuple[Any, Any], kernel_cc: int) -> None:
    a, b = (integers(*s) for s in shapes)
    c = integers(3, 24, 72)
    plan = op.Gemm(element="f16", layout="row", kernel_cc=kernel_cc)
    done = plan.run(a, b, c, alpha=0.5, beta=2.0, device="cpu")
    assert done.D.shape == (3, 24, 72) and np.array_equal(done.D, 0.5 * (a.astype(float) @ b) + 2.0 * c)


@pytest.mark.slow
@pytest.mark.parametrize("shape", [(33, 65, 7), (1, 1, 1), (5, 8, 64), (64, 87, 72)])
def test_rows_not_readable_by_tma(shape: tuple[int, int, int]) -> None:
    m, n, k = shape
    a, b, c, bias = integers(m, k), integers(k, n), integers(m, n), integers(1, n, element="f32")
    plan = op.Gemm(element="f16", layout="row")
    plan.activation = "relu"
    done = plan.run(a, b, c, alpha=0.5, beta=2.0, bias=bias, device="cpu")
    exact = np.maximum(0.5 * (a.astype(float) @ b) + 2.0 * c + bias, 0)
    assert np.array_equal(done.D, exact)
    assert np.array_equal(exact, plan.reference(a, b, c, alpha=0.5, beta=2.0, bias=bias))


@pytest.mark.slow
def test_epilogues() -> None:
    def above(x: Any, row: Any, column: Any) -> Any:
        return x * (column > row)

    a, b, rows = integers(40, 64), integers(64, 40), integers(40, 1)
    for layout in ("row", "column"):
        plan = op.Gemm(element="f16", layout="row", layout_C=layout)
        plan.epilogue_visitor = above
        plan.activation = "relu"
        done = plan.run(a, b, bias=rows, device="cpu")
        exact = np.triu(np.maximum(a.astype(float) @ b + rows, 0), 1)
        assert np.array_equal(done.D, exact) and np.array_equal(plan.reference(a, b, bias=rows), exact)
    several = integers(3, 24, 64)  # A contiguous batch, where the row index restarts at 0 in each matrix.
    assert np.array_equal(
        plan.run(several, b, device="cpu").D, np.triu(np.maximum(several.astype(float) @ b, 0), 1)
    )  # fmt: skip
    plan.epilogue_visitor = None
    plan.activation = "identity"
    assert np.array_equal(plan.run(a, b, device="cpu").D, a.astype(float) @ b)


@pytest.mark.slow
def test_broadcast_c_and_missing_c() -> None:
    """With beta = 0, C is not read, so it may be NaN or missing."""
    a, b = integers(32, 32), integers(32, 32)
    nothing = np.full((32, 32), np.nan, np.float16)
    plan = op.Gemm(element="f16", layout="row")
    assert np.array_equal(plan.run(a, b, nothing, nothing, device="cpu").D, a.astype(float) @ b)
    void = op.Gemm(element="f16", layout="row", element_C="void", element_D="f32")
    done = void.run(a, b, device="cpu")
    assert done.D.dtype == np.float32 and np.array_equal(done.D, a.astype(float) @ b)
    same = integers(32, 32)
    exact = a.astype(float) @ b + same
    plan.run(a, b, same, same, beta=1.0, device="cpu")
    assert np.array_equal(same, exact)


def test_empty_problems() -> None:
    plan = op.Gemm(element="f16", layout="row")
    assert plan.run(integers(0, 8), integers(8, 16), device="cpu").D.shape == (0, 16)


@pytest.mark.slow
def test_tiles() -> None:
    plan = op.Gemm(element="f16", layout="row")
    tiles = plan.tile_descriptions()
    assert len(tiles) > 300 and tiles[0].threadblock_shape == (128, 256, 64) and "128x256x64" in repr(tiles)
    few = plan.tile_descriptions((16, 4096, 4096))
    assert few[0].threadblock_shape[0] == 64 and tiles[:2][1] == tiles[1]
    a, b, c = integers(70, 72), integers(72, 104), integers(70, 104)
    exact = a.astype(float) @ b + c
    kinds = {(td.kernel_schedule, td.tile_scheduler): td for td in plan.tile_descriptions((70, 104, 4096))}
    assert len(kinds) >= 3
    for td in kinds.values():
        if td.tile_scheduler == "split_k":
            continue  # its slices need a larger K
        operation = plan.construct(td)
        plan.tile_description = td
        done = plan.run(a, b, c, beta=1.0, device="cpu")
        assert done.operation.name == operation.name and np.array_equal(done.D, exact)
    plan.tile_description = None
    plan.tile_description = {"threadblock_shape": [128, 64, 64], "stages": 3, "cluster_shape": [1, 1, 1]}
    assert plan.td is not None and plan.td.stages == 3
    done = plan.run(a, b, c, beta=1.0, device="cpu")
    assert "128x64" in done.operation.name and np.array_equal(done.D, exact)


@pytest.mark.slow
def test_a_plan_is_read() -> None:
    a, b = integers(64, 72), integers(72, 96)
    plan = op.Gemm(element="f16", layout="row")
    found = plan.explain(a, b)
    assert found.choice is not None and found.choice.name in str(found)
    assert found.problem.key == "f16-f16-kn 64x96x72"
    assert plan.explain((4096, 4096), (4096, 4096)).microseconds > 100
    plan.tile_description = {"threadblock_shape": [64, 64, 64], "stages": 4, "cluster_shape": [1, 1, 1]}
    assert "set by the plan's tile_description" in str(plan.explain(a, b)) and "64x64" in str(plan.explain(a, b))
    assert "wgmma" in plan.ir() and " cute.tiled" not in plan.ir("base") and "llvm.func" in plan.ir("llvm")
    assert plan.ir("arch") != plan.ir("expanded") != plan.ir()
    assert ".entry" in plan.ptx and "0 bytes spilled" in plan.report
    operation = plan.compile()
    assert operation.procedural_name() in repr(operation)


@pytest.mark.slow
def test_swizzles() -> None:
    plan = op.Gemm(element="f16", layout="row")
    a, b = integers(200, 64), integers(64, 72)
    for swizzle in (op.IdentitySwizzle1, op.IdentitySwizzle4, op.ThreadblockSwizzleStreamK):
        plan.tile_description = op.TileDescription(
            [64, 64, 64], 0, [4, 1, 1], op.MathInstruction([64, 64, 16], "f16", "f16", "f32")
        )  # fmt: skip
        plan.swizzling_functor = swizzle
        done = plan.run(a, b, device="cpu")
        assert np.array_equal(done.D, a.astype(float) @ b)
        assert ("k" in done.operation.name.split("-")[4]) == swizzle.stream_k


@pytest.mark.slow
def test_dependent_launch() -> None:
    """Each kernel waits for the previous one before its first read, and then allows the next one to start."""
    plan = op.Gemm(element="f16", layout="row")
    plan.run(integers(200, 64), integers(64, 72), device="cpu")
    text, ptx = plan.ir("cute"), plan.ptx
    assert "griddepcontrol.wait" in ptx and "griddepcontrol.launch_dependents" in ptx
    assert text.index("griddepcontrol_wait") < text.index("cute.copy")


def test_the_problem_of_column_major_results() -> None:
    """The kernel is chosen for ``D^T = B^T A^T``, with N rows, M columns and swapped majors."""
    plan = op.Gemm(element="f16", layout="row", layout_C="column")
    assert plan.explain((64, 72), (72, 96)).problem.key == "f16-f16-mk 96x64x72"
    mixed = op.Gemm(
        element_A="i8", layout_A="row", element_B="ui8", layout_B="column", element_C="i32", layout_C="column"
    )
    assert mixed.explain((64, 72), (72, 96)).problem.key == "ui8_i8-i32-kk 96x64x72"


@pytest.mark.slow
@pytest.mark.parametrize("split", [("serial", 8), ("parallel", 8), ("serial", 7)])
@pytest.mark.parametrize("batch", [(), (2,)], ids=["matrix", "batch"])
def test_split_k(batch: tuple[int, ...], split: tuple[str, int]) -> None:
    a, b = integers(*batch, 136, 2048), integers(*batch, 2048, 120)
    plan = op.Gemm(element="f16", layout="row")
    done = plan.run(a, b, split_k=split, device="cpu")
    assert np.array_equal(done.D, plan.reference(a, b))
    names = [v.name for v in done.sources()]
    assert names[-1].endswith(f"-s{split[1]}" if split[0] == "serial" else "reduce" + "-b" * bool(batch))


def test_tiles_of_split_k() -> None:
    """Split-K uses larger tiles than a plain GEMM with few tiles, so that all blocks are resident at once."""
    a, b = np.empty((4, 256, 16384), np.float16), np.empty((4, 16384, 256), np.float16)  # never accessed
    plan = op.Gemm(element="f16", layout="row")
    serial, parallel = (
        [v.name for v in plan.arguments(a, b, split_k=(mode, 8), device="cpu").sources()]
        for mode in ("serial", "parallel")
    )
    assert len(serial) == 1 and "-128x128-" in serial[0] and serial[0].endswith("-s8")
    assert len(parallel) == 2 and "-128x128-" in parallel[0] and "-reduce-" in parallel[1]
