"""PyCUTLASS descriptions on the interpreter: instructions, tiles, epilogues and modes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from cute_dialect import op
from cute_dialect.runtime.arrays import numpy_dtype

GENERATOR = np.random.default_rng(9)


def flat(element: str, count: int) -> np.ndarray:
    """Return small integers in a flat array, as in the PyCUTLASS examples."""
    return GENERATOR.integers(0 if element == "ui8" else -2, 3, count).astype(numpy_dtype(element))


def shaped(x: np.ndarray, rows: int, columns: int, layout: str) -> np.ndarray:
    return (x.reshape(rows, columns) if layout == "row" else x.reshape(columns, rows).T).astype(float)


TENSOR, SIMT = op.OpClass.TensorOp, op.OpClass.Simt
TABLE = [
    # instruction_shape, element_a, element_b, element_acc, opclass, element_c, threadblock_shape, stages, warp_count
    ([8, 8, 4], "f64", "f64", "f64", TENSOR, "f64", [64, 64, 16], 3, [2, 2, 1]),
    ([16, 8, 8], "tf32", "tf32", "f32", TENSOR, "f32", [64, 64, 32], 3, [2, 2, 1]),
    ([16, 8, 16], "f16", "f16", "f32", TENSOR, "f16", [64, 64, 32], 3, [2, 2, 1]),
    ([16, 8, 16], "f16", "f16", "f32", TENSOR, "f32", [64, 128, 32], 4, [2, 2, 1]),
    ([16, 8, 16], "bf16", "bf16", "f32", TENSOR, "bf16", [64, 64, 64], 3, [2, 2, 1]),
    ([16, 8, 32], "i8", "i8", "i32", TENSOR, "i32", [64, 64, 64], 3, [2, 2, 1]),
    ([16, 8, 32], "i8", "i8", "i32", TENSOR, "i8", [64, 64, 64], 3, [2, 2, 1]),
    ([1, 1, 1], "f32", "f32", "f32", SIMT, "f32", [128, 128, 16], 4, None),
    ([64, 64, 16], "f16", "f16", "f32", TENSOR, "f16", [64, 64, 64], 4, [4, 1, 1]),
    ([64, 64, 16], "f16", "f16", "f16", TENSOR, "f16", [64, 64, 64], 4, [4, 1, 1]),
    ([64, 64, 16], "bf16", "bf16", "f32", TENSOR, "f32", [128, 64, 64], 0, None),
    ([64, 64, 8], "tf32", "tf32", "f32", TENSOR, "f32", [64, 64, 32], 4, [4, 1, 1]),
    ([64, 64, 32], "i8", "ui8", "i32", TENSOR, "i32", [64, 64, 128], 4, [4, 1, 1]),
    ([64, 64, 32], "f8E4M3FN", "f8E5M2", "f32", TENSOR, "bf16", [64, 64, 128], 4, [4, 1, 1]),
    ([16, 8, 8], "f32", "f32", "f32", TENSOR, "f32", [32, 32, 32], 3, [1, 2, 1]),
    ([16, 8, 8], "f32", "f32", "f32", TENSOR, "f32", [32, 32, 32], 3, [1, 2, 1], "multiply_add_fast_f32"),
    ([16, 8, 8], "f32", "f32", "f32", TENSOR, "f32", [32, 32, 32], 3, [1, 1, 2], "multiply_add_fast_f16"),
    ([16, 8, 8], "f32", "f32", "f32", TENSOR, "f32", [32, 32, 32], 3, [1, 2, 1], "multiply_add_fast_bf16"),
    ([16, 8, 8], "f16", "f16", "f32", TENSOR, "f16", [32, 32, 32], 3, [2, 1, 1]),
    ([16, 8, 8], "bf16", "bf16", "f32", TENSOR, "bf16", [32, 32, 64], 3, [1, 1, 4]),
    ([16, 8, 16], "f16", "f16", "f16", TENSOR, "f16", [32, 64, 32], 3, [1, 2, 2]),
    ([16, 8, 32], "i8", "i8", "i32", TENSOR, "i32", [64, 64, 64], 3, [2, 2, 1], "multiply_add_saturate"),
    ([1, 1, 1], "f64", "f64", "f64", SIMT, "f64", [32, 32, 16], 2, [1, 2, 1]),
    ([64, 8, 32], "i8", "i8", "i32", TENSOR, "i32", [64, 8, 64], 4, [4, 1, 1], "multiply_add_saturate"),
    ([64, 24, 32], "ui8", "i8", "i32", TENSOR, "i32", [64, 24, 128], 4, [4, 1, 1]),
    ([64, 32, 16], "f16", "f16", "f32", TENSOR, "f16", [64, 32, 32], 4, [4, 1, 1], "multiply_add", [4, 2, 1]),
]
"""PyCUTLASS's table of instructions, with Hopper rows; a math operation and a cluster shape may follow."""


def operation(row: Any, layouts: str = "rcr", chip: int = 0, **more: Any) -> op.GemmOperationUniversal:
    shape, a, b, acc, opclass, c, tile, stages, warps = row[:9]
    math, cluster = (row[9] if len(row) > 9 else "multiply_add"), (row[10] if len(row) > 10 else [1, 1, 1])
    instruction = op.MathInstruction(shape, a, b, acc, opclass, math)
    description = op.TileDescription(tile, stages, warps, instruction, cluster)
    named = ["row" if x == "r" else "column" for x in layouts]
    operands = [op.TensorDescription(e, layout, 8) for e, layout in zip((a, b, c), named)]
    chip = chip or (90 if shape[0] == 64 or shape[0] == 1 else 80)
    functor = more.pop("functor", None) or op.LinearCombination(c, 8, acc, "f32" if acc != "f64" else "f64")
    return op.GemmOperationUniversal(chip, description, *operands, functor, **more)


@pytest.mark.slow
@pytest.mark.parametrize(
    "row", TABLE, ids=lambda r: f"{'x'.join(map(str, r[0]))}-{r[1]}-{r[5]}{'-'.join(map(str, r[9:]))}"
)
def test_the_table_of_instructions(row: Any) -> None:
    found = operation(row)
    # f64 on SIMT is the slowest on the CPU
    m, n, k = (20, 24, 24) if row[0] == [1, 1, 1] and row[1] == "f64" else (40, 72, 80)
    a, b, c = (flat(e, count) for e, count in ((row[1], m * k), (row[2], k * n), (row[5], m * n)))
    d = np.zeros_like(c)
    alpha, beta = (2.0, 1.0)
    arguments = op.GemmArguments(
        found, op.GemmCoord(m, n, k), a, b, c, d, found.epilogue_type(alpha, beta), device="cpu"
    )
    found.run(arguments)
    arguments.sync()
    exact = alpha * shaped(a, m, k, "row") @ shaped(b, k, n, "column") + beta * shaped(c, m, n, "row")
    if row[5] == "i8":
        exact = exact.clip(-128, 127)
    np.testing.assert_array_equal(shaped(d, m, n, "row"), exact.astype(d.dtype).astype(float))
    assert found.procedural_name() in repr(found) and found.ir()


@pytest.mark.slow
@pytest.mark.parametrize("layouts", ["rrr", "ccc", "crc"])
def test_layouts_by_mma_sync(layouts: str) -> None:
    found = operation(TABLE[2], layouts, swizzling_functor=op.IdentitySwizzle4)
    m, n, k = 40, 72, 48
    named = ["row" if x == "r" else "column" for x in layouts]
    a, b, c = flat("f16", m * k), flat("f16", k * n), flat("f16", m * n)
    done = op.GemmArguments(found, (m, n, k), a, b, c, None, found.epilogue_type(1.0, 0.5), device="cpu")
    found.run(done)
    exact = shaped(a, m, k, named[0]) @ shaped(b, k, n, named[1]) + 0.5 * shaped(c, m, n, named[2])
    np.testing.assert_array_equal(done.D.reshape(-1).shape, (m * n,))
    np.testing.assert_array_equal(np.asarray(done.D, float), exact)


@pytest.mark.slow
def test_epilogues() -> None:
    a, b = flat("f16", 32 * 32), flat("f16", 32 * 32)
    product = shaped(a, 32, 32, "row") @ shaped(b, 32, 32, "column")
    for functor, alpha, exact in (
        (op.LinearCombinationClamp("f16", 8, "f32", "f32"), 4096.0, (4096.0 * product).clip(-65504, 65504)),
        (op.LinearCombinationGeneric("relu", "f16", 8, "f32", "f32"), 1.0, product.clip(min=0)),
        (op.LinearCombination("f16", 8, "f32", "f32"), 512.0, 512.0 * product),
    ):
        found = operation(TABLE[2], functor=functor)
        done = op.GemmArguments(found, (32, 32, 32), a, b, None, None, functor.epilogue_type(alpha, 0.0), device="cpu")
        found.run(done)
        np.testing.assert_array_equal(done.D.astype(float), np.asarray(exact, float))
    fast = op.FastLinearCombinationClamp("i8", 16)
    found = operation(TABLE[6], functor=fast)
    p, q = flat("i8", 32 * 32) * 20, flat("i8", 32 * 32) * 20
    done = op.GemmArguments(found, (32, 32, 32), p, q, None, None, fast.epilogue_type(1.0, 0.0), device="cpu")
    found.run(done)
    exact = shaped(p, 32, 32, "row") @ shaped(q, 32, 32, "column")
    np.testing.assert_array_equal(done.D, exact.clip(-128, 127))


@pytest.mark.slow
def test_a_simt_tile_has_the_stages_that_fit() -> None:
    """A dict without stages does not inherit those of the usual tile, which need 240 KiB for this one."""
    plan = op.Gemm(element="f32", layout="row")
    plan.opclass = "simt"
    plan.tile_description = {"threadblock_shape": [256, 128, 32]}
    a, b = (GENERATOR.integers(-3, 4, shape).astype(np.float32) for shape in ((72, 40), (40, 136)))
    plan.run(a, b, d := np.full((72, 136), np.nan, np.float32), d, device="cpu", beta=0.0)
    assert np.array_equal(d, a @ b) and plan.explain(a, b).kernel == "f32-f32-km-warps-256x128x32-4x2-q2-simt"


@pytest.mark.slow
def test_modes() -> None:
    """Serial and parallel split-K, a batch, and an array of pointers."""
    m, n, k, batch = 40, 72, 520, 3
    found = operation(TABLE[8], "rcr")
    a, b, c = (flat("f16", batch * x) for x in (m * k, k * n, m * n))
    output_op = found.epilogue_type(2.0, 0.5)

    def of(i: int) -> np.ndarray:
        x, y, z = (v.reshape(batch, -1)[i] for v in (a, b, c))
        return 2.0 * shaped(x, m, k, "row") @ shaped(y, k, n, "column") + 0.5 * shaped(z, m, n, "row")

    first = [x.reshape(batch, -1)[0] for x in (a, b, c)]
    for slices in (1, 4):
        done = op.GemmArguments(
            found, (m, n, k), *first, None, output_op, op.Mode.Gemm, slices, device="cpu"
        )  # fmt: skip
        found.run(done)
        np.testing.assert_array_equal(done.D, of(0))
    done = op.GemmArguments(found, (m, n, k), a, b, c, None, output_op, op.Mode.Batched, batch=batch, device="cpu")
    found.run(done)
    np.testing.assert_array_equal(done.D, np.stack([of(i) for i in range(batch)]))
    lists = [list(x.reshape(batch, -1)) for x in (a, b, c)]
    addresses = [np.array([y.ctypes.data for y in x]) for x in lists]
    outs = [np.zeros(m * n, np.float16) for _ in range(batch)]
    for given in (lists, addresses):
        done = op.GemmArguments(
            found, (m, n, k), *given, outs, output_op, op.Mode.Array, batch=batch, device="cpu"
        )  # fmt: skip
        found.run(done)
        done.sync()
        for i in range(batch):
            np.testing.assert_array_equal(outs[i].reshape(m, n), of(i))
            outs[i][...] = 0


@pytest.mark.slow
@pytest.mark.parametrize("layout", ["r", "c"])
def test_parallel_split_k_and_its_reduction(layout: str) -> None:
    m, n, k = 40, 72, 1000
    found = operation(TABLE[8], f"rc{layout}")
    a, b, c = flat("f16", m * k), flat("f16", k * n), flat("f16", m * n)
    arguments = op.GemmArguments(
        found, (m, n, k), a, b, c, None, found.epilogue_type(1.0, 0.0), op.Mode.GemmSplitKParallel, 5, device="cpu"
    )
    found.run(arguments)
    assert arguments.partitions == 4 and arguments.workspace is not None  # Four slices cover the 16 K steps.
    reduction = op.ReductionOperation((4, 128), found.C, "f32", "f32", "f32", found.epilogue_functor, 8)
    more = op.ReductionArguments(
        reduction, (m, n), 5, arguments.workspace, None, c, reduction.epilogue_type(2.0, 0.5), device="cpu"
    )
    reduction.run(more)
    more.sync()
    named = "row" if layout == "r" else "column"
    exact = 2.0 * shaped(a, m, k, "row") @ shaped(b, k, n, "column") + 0.5 * shaped(c, m, n, named)
    np.testing.assert_array_equal(np.asarray(more.D).reshape(exact.shape), exact)
    with pytest.raises(op.ShapeError, match="partitions is 3, but the GEMM has 5 split-K slices"):
        op.ReductionArguments(reduction, (m, n), 3, arguments.workspace, None, c, device="cpu")
    memory = flat("f16", m * n + 8)
    with pytest.raises(op.LayoutError, match="destination shares memory with source"):
        op.ReductionArguments(
            reduction, (m, n), 5, arguments.workspace, memory[8:], memory[:-8], reduction.epilogue_type(1.0, 0.5),
            device="cpu",
        )  # fmt: skip


@pytest.mark.slow
def test_modules_are_compiled_at_once(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUTE_CACHE_DIR", str(tmp_path))
    found = operation(TABLE[2])
    reduction = op.ReductionOperation((4, 128), found.C)
    op.compiler.add_module([found, reduction], workers=2)
    assert ".entry" in found.ptx and "gemm_16" in found.report
    assert len({v.name for v in (*found.variants(), *reduction.variants())}) == 6


@pytest.mark.slow
@pytest.mark.parametrize("split", [3, ("serial", 4), ("parallel", 4), ("parallel", 100), "stream"])
@pytest.mark.parametrize("layout", ["row", "column"])
def test_plans_share_k(split: Any, layout: str) -> None:
    a, b, c = (flat("f16", x * y).reshape(x, y) for x, y in ((72, 1096), (1096, 96), (72, 96)))
    c = c if layout == "row" else np.asfortranarray(c)
    plan = op.Gemm(element="f16", layout="row", layout_C=layout, beta=0.5)
    plan.activation = "relu"
    done = plan.run(a, b, c, device="cpu", split_k=split)
    np.testing.assert_array_equal(done.D, plan.reference(a, b, c))


@pytest.mark.slow
@pytest.mark.parametrize("split", [("serial", 3), ("parallel", 3)])
@pytest.mark.parametrize("layout", ["row", "column"])
def test_batches_share_k(split: Any, layout: str) -> None:
    a, b, c = (flat("f16", 2 * x * y).reshape(2, x, y) for x, y in ((40, 456), (456, 32), (40, 32)))
    c = c if layout == "row" else np.ascontiguousarray(c.swapaxes(1, 2)).swapaxes(1, 2)
    plan = op.Gemm(element="f16", layout="row", layout_C=layout, beta=0.5)
    done = plan.run(a, b, c, device="cpu", split_k=split, checks=["race", "uninit"])
    np.testing.assert_array_equal(done.D, plan.reference(a, b, c))
    # Slices of equal length share a launch. The last slice is shorter and needs its own.
    assert len(done.launched) == (1 if split[0] == "serial" else 3)


@pytest.mark.slow
def test_equal_batch_slices_are_one_launch() -> None:
    """Matrices have gaps between rows. Torch and numpy arrays give the same launch."""
    torch = pytest.importorskip("torch")
    a, b = flat("f16", 3 * 40 * 300).reshape(3, 40, 300), flat("f16", 3 * 256 * 48).reshape(3, 256, 48)
    plan = op.Gemm(element="f16", layout="row")
    wanted = plan.reference(a[:, :, 8:264], b)
    for library in (np.asarray, torch.from_numpy):
        x, y, z = library(a)[:, :, 8:264], library(b), library(np.zeros((3, 40, 48), np.float16))
        done = plan.run(x, y, None, z, device="cpu", split_k=("parallel", 4), checks=["race", "uninit", "oob"])
        np.testing.assert_array_equal(np.asarray(z), wanted)
        assert [v.name.endswith("reduce-b") for v, _ in done.launched] == [False, True]


def test_reduced_split_k_is_reported() -> None:
    plan = op.Gemm(element="f16", layout="row")
    found = plan.explain((64, 200), (200, 64), split_k=("parallel", 100))
    assert found.split == (100, 4, "K 200 has 4 steps of 64") and "4 slices, 100 were requested" in str(found)
    assert plan.explain((64, 200), (200, 64), split_k=2).split == (2, 2, "")


def test_empty_k_and_zero_factors() -> None:
    """A and B are not read."""
    plan = op.Gemm(element="f16", layout="row", beta=0.5)
    c = flat("f16", 35).reshape(5, 7)
    nothing = np.full((5, 8), np.nan, np.float16)
    b = flat("f16", 56).reshape(8, 7)
    np.testing.assert_array_equal(plan.run(nothing[:, :0], b[:0], c, device="cpu").D, 0.5 * c)
    np.testing.assert_array_equal(plan.run(nothing, b, c, alpha=0.0, device="cpu").D, 0.5 * c)
    assert not plan.run(nothing, b, c, alpha=0.0, beta=0.0, device="cpu").D.any()
    batch = np.stack([nothing] * 2)
    cs = np.stack([c, c + 1])
    np.testing.assert_array_equal(plan.run(batch, b, cs, alpha=0.0, device="cpu").D, 0.5 * cs)


@pytest.mark.slow
def test_saturating_accumulators_are_not_split() -> None:
    """Split-K is refused, because each slice would saturate while their sum would wrap."""
    for row in [r for r in TABLE if "multiply_add_saturate" in r]:
        found = operation(row)
        assert "saturate" in found.ir()
        a, b = flat("i8", 16 * 256), flat("i8", 16 * 256)
        arguments = op.GemmArguments(found, (16, 16, 256), a, b, None, None, split_k_slices=2, device="cpu")
        with pytest.raises(op.UnsupportedError, match="split_k cannot be combined with a saturating accumulator"):
            found.run(arguments)


@pytest.mark.slow
def test_plans_report_the_math_mode() -> None:
    a, b = (GENERATOR.standard_normal(shape).astype(np.float32) for shape in ((32, 40), (40, 48)))
    plan = op.Gemm(element="f32", layout="row")
    exact = plan.reference(a, b)
    errors = {"numpy": float(np.abs(a @ b - exact).max())}
    for math in ("multiply_add_fast_f32", "multiply_add_fast_f16"):
        plan.math_operation = math
        assert plan.opclass == "tensor_op" and math in str(plan.tile_descriptions()[0].math_instruction)
        of_sync = plan.tile_descriptions()[-1]
        plan.tile_description = of_sync.replace({"threadblock_shape": [32, 32, 32], "warp_count": [1, 2, 1]})
        errors[math] = float(np.abs(plan.run(a, b, device="cpu").D - exact).max())
    assert errors["multiply_add_fast_f32"] < 2 * errors["numpy"] < errors["multiply_add_fast_f16"] < 0.05
    integers = op.Gemm(element="i8", element_C="i32", layout_A="row", layout_B="column", layout_C="row")
    integers.math_operation = "multiply_add_saturate"
    found = integers.tile_descriptions((40, 72, 80))[0]
    assert found.math_instruction is not None and found.math_instruction.math_operation == "multiply_add_saturate"
    p, q = flat("i8", 20 * 32).reshape(20, 32), np.asfortranarray(flat("i8", 32 * 24).reshape(32, 24))
    done = integers.run(p, q, device="cpu")
    np.testing.assert_array_equal(done.D, p.astype(int) @ q)
    assert "saturate" in done.operation.ir()


def interleaved(x: np.ndarray) -> np.ndarray:
    """Return a flat array of blocks of 32 columns, each with all rows."""
    rows, cols = x.shape
    return np.ascontiguousarray(x.reshape(rows, cols // 32, 32).swapaxes(0, 1)).reshape(-1)


def test_interleaved_matrices() -> None:
    m, n, k = 72, 96, 160
    row = ([16, 8, 32], "i8", "i8", "i32", TENSOR, "i8", [64, 64, 64], 3, [2, 2, 1])
    column, rows = op.ColumnMajorInterleaved32, op.RowMajorInterleaved32
    instruction = op.MathInstruction(*row[:5])
    tile = op.TileDescription(*row[6:8], row[8], instruction)
    operands = [op.TensorDescription("i8", layout, 16) for layout in (column, rows, column)]
    functor = op.LinearCombinationClamp("i8", 16, "i32", "f32")
    found = op.GemmOperationUniversal(80, tile, *operands, functor)
    a, b = flat("i8", m * k).reshape(m, k), flat("i8", k * n).reshape(k, n)
    d, bias = np.full(m * n, 77, np.int8), GENERATOR.integers(-9, 9, n).astype(np.float32)
    # B is interleaved by 32 rows, which are the columns of its transpose.
    done = op.GemmArguments(
        found, (m, n, k), interleaved(a), interleaved(b.T), None, d, found.epilogue_type(4.0), bias=bias, device="cpu",
        checks=["race", "uninit", "oob"],
    )  # fmt: skip
    found.run(done)
    done.sync()
    assert done.D is d
    np.testing.assert_array_equal(d, interleaved((4 * (a.astype(int) @ b) + bias).clip(-128, 127)))
    for change, error, said in (
        ({"problem_size": (m, n, 150)}, op.ShapeError, "that are multiples of 32"),
        ({"D": None}, op.ShapeError, "D is None; pass all interleaved matrices"),
        ({"split_k_slices": 2}, op.UnsupportedError, "interleaved matrices need gemm_mode=gemm"),
    ):
        given = {"problem_size": (m, n, k), "A": interleaved(a), "B": interleaved(b.T), "D": d, "device": "cpu"}
        with pytest.raises(error, match=said):
            op.GemmArguments(found, **{**given, **change})
    more = op.GemmArguments(found, (m, n, k), interleaved(a), interleaved(b.T), d, d, found.epilogue_type(1.0, 1.0),
                            device="cpu")  # fmt: skip
    with pytest.raises(op.UnsupportedError, match=r"beta=1.0 is not supported for interleaved matrices"):
        found.run(more)
    with pytest.raises(op.UnsupportedError, match="A, C and D ColumnMajorInterleaved32, and B RowMajorInterleaved32"):
        op.GemmOperationUniversal(80, tile, operands[0], op.TensorDescription("i8", "column", 16), operands[2], functor)
