"""Errors of descriptions, plans and saved plans: complete messages, one call for each ``raise``."""

# pyright: reportPrivateUsage=false, reportUnknownMemberType=false, reportUnknownLambdaType=false

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from refused_calls import OnGpu, refuse_all

from cute_dialect import op
from cute_dialect.kernels.gemm.config import SkinnyConfig
from cute_dialect.op.epilogue import exp, pairs
from cute_dialect.op.execute import saved
from cute_dialect.op.execute.arguments import Transfer
from cute_dialect.op.select.configurations import described as describe
from cute_dialect.op.select.kernel_choice import few_rows
from cute_dialect.op.tuning import tuned_plan
from cute_dialect.runtime.launch_plan import ReadOnlyError


@pytest.fixture(autouse=True)
def nothing_is_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    refuse_all(monkeypatch)


def zeros(*shape: int, dtype: Any = np.float16) -> np.ndarray:
    return np.zeros(shape, dtype)


Do = Callable[[], object]
Case = tuple[type[Exception], str, Do]
F16: dict[str, Any] = {"element": "f16", "layout": "row"}
CPU: dict[str, Any] = {"device": "cpu"}
A, B = zeros(128, 64), zeros(64, 256)
SIMT = op.MathInstruction([1, 1, 1], "f32", "f32", "f32", "simt")
HALF = op.MathInstruction([64, 128, 16], "f16", "f16", "f32")
SYNC = op.MathInstruction([16, 8, 16], "f16", "f16", "f32")
BYTES = op.MathInstruction([16, 8, 32], "i8", "i8", "i32", math_operation="multiply_add_saturate")
DOUBLES = op.MathInstruction([16, 8, 8], "f64", "f64", "f64")
USUAL = op.TileDescription([128, 128, 64], 4, None, HALF)
COLUMNS = op.ColumnMajorInterleaved32


def described(
    tile: op.TileDescription, element: str = "f16", output: str = "", layout: Any = "row", **more: Any
) -> op.GemmOperationUniversal:
    """Return an operation whose matrices are all alike, except for the result type."""
    operand = op.TensorDescription(element, layout)
    result = op.TensorDescription(output or element, layout)
    return op.GemmOperationUniversal(90, tile, operand, operand, result, **more)


def tiled(
    shape: list[int], stages: int, warps: list[int] | None, instruction: Any, *, element: str = "f16", output: str = "",
    layout: Any = "row", **more: Any,
) -> Do:  # fmt: skip
    return lambda: described(
        op.TileDescription(shape, stages, warps, instruction, **more), element, output, layout
    )  # fmt: skip


def instruction(shape: list[int], element: str, sums: str, operation: str = "multiply_add") -> op.MathInstruction:
    return op.MathInstruction(shape, element, element, sums, math_operation=operation)


def interleaved(**more: Any) -> op.GemmOperationUniversal:
    bytes_ = op.MathInstruction([16, 8, 32], "i8", "i8", "i32")
    column, row = (op.TensorDescription("i8", layout) for layout in (COLUMNS, op.RowMajorInterleaved32))
    tile = more.pop("tile", None) or op.TileDescription([128, 128, 64], 3, [4, 2, 1], bytes_)
    return op.GemmOperationUniversal(90, tile, column, row, column, **more)


def arguments(operation: op.GemmOperationUniversal, *given: Any, **more: Any) -> Do:
    return lambda: op.GemmArguments(operation, *given, **more, **CPU)


def planned(*arrays: Any, **more: Any) -> Do:
    return lambda: op.Gemm(**F16).run(*arrays, **more, **CPU)


def doubled(accum: Any, alpha: Any) -> Any:
    return alpha * accum


def shares(accum: Any) -> Any:
    x = exp(accum)
    return x / op.epilogue.sum(x, -1, whole_rows=True)


def paired(accum: Any) -> Any:
    even, odd = pairs(accum)
    return even * odd


def traced(function: Any = doubled, shape: tuple[int, ...] = (128, 256), **more: Any) -> Any:
    return op.epilogue.trace(function, {"accum": op.epilogue.FakeTensor("f32", shape), **more})


def visiting(function: Any = doubled, *arrays: Any, plan: Any = F16, **more: Any) -> Do:
    def do() -> object:
        made = op.Gemm(**plan)
        made.epilogue_visitor = function
        return made.run(*arrays, **more, **CPU)

    return do


def workspace(rows: int = 64, asked: int = 2, element: str = "f32") -> Any:
    return SimpleNamespace(asked=asked, element=element, memory=SimpleNamespace(shape=(rows, 64, 2)))


def reduced(shape: Any, partitions: int, of: Any, **more: Any) -> Do:
    operation = op.ReductionOperation((4, 128), op.TensorDescription("f32", "row"))
    return lambda: op.ReductionArguments(operation, shape, partitions, of, **more, **CPU)


def of_doubles(activation: str = "", **more: Any) -> Do:
    def do() -> object:
        plan = op.Gemm(element="f64", layout="row")
        plan.activation = activation
        return plan.run(zeros(8, 8, dtype="f8"), zeros(8, 8, dtype="f8"), **more, **CPU)

    return do


def read_only() -> np.ndarray:
    found = zeros(128, 256)
    found.flags.writeable = False
    return found


def kept() -> op.Gemm:
    """Return a plan that was saved before it was run."""
    plan = op.Gemm(**F16)
    plan.saved = saved.SavedKernels(Path("nowhere"), [], {})
    return plan


def summing() -> object:
    """Run a saved plan with row sums that was saved without the kernel that combines them."""

    def summed(accum: Any) -> Any:
        return {"D": accum, "rows": op.epilogue.sum(accum, -1)}

    x = with_tile()
    x.epilogue_visitor = traced(summed)
    name = x.arguments(A, B, **CPU).sources()[0].name
    x.saved = saved.SavedKernels(Path("nowhere"), [name], {})
    return x.run(A, B, **CPU)


def tuned(plan: op.Gemm, *arrays: Any, **more: Any) -> Do:
    return lambda: tuned_plan(plan, plan.arguments(*arrays, **more, **CPU), 1.0, False, None)


def with_tile() -> op.Gemm:
    plan = op.Gemm(**F16)
    plan.tile_description = USUAL
    return plan


def eight_bytes_on(count: int) -> np.ndarray:
    """Return bytes at an address 8 past a 16-byte boundary."""
    whole = zeros(count + 32, dtype=np.int8)
    start = (-whole.ctypes.data) % 16 + 8
    return whole[start : start + count]


def torchs(*shape: int) -> Any:
    return pytest.importorskip("torch").zeros(*shape).half()


def with_hook() -> op.Gemm:
    """Return a plan whose hook of (value, row, column) numpy cannot evaluate."""
    plan = op.Gemm(**F16)
    plan.epilogue_visitor = lambda x, row, column: x if x > 0 else -x
    return plan


def bytes_of(rows: int, k: int) -> tuple[np.ndarray, np.ndarray]:
    return zeros(rows, k, dtype=np.int8), zeros(rows, k, dtype=np.int8).T


def saturating() -> op.Gemm:
    plan = op.Gemm(element_A="i8", element_B="i8", layout_A="row", layout_B="column", layout="row",
                   element_C="void", element_D="i32")  # fmt: skip
    plan.math_operation = "multiply_add_saturate"
    return plan


def with_few_rows_that_saturate() -> object:
    """Build a tile for few rows with a saturating instruction."""
    plan = op.Gemm(element="f16", layout_A="row", layout_B="column", layout="row")
    few = describe(few_rows(SkinnyConfig()), plan.asked())
    assert few.math_instruction is not None
    bad = replace(few, math_instruction=replace(few.math_instruction, math_operation="multiply_add_saturate"))
    return plan.construct(bad)


def by_rows(columns: int, **tile: Any) -> Do:
    """Return a call of a plan whose epilogue needs whole rows, with a tile of 128 columns."""

    def do() -> object:
        plan = op.Gemm(**F16)
        plan.epilogue_visitor = traced(shares, (128, columns))
        plan.tile_description = op.TileDescription([128, 128, 64], 4, None, HALF, **tile)
        return plan.run(A, zeros(64, columns), **CPU)

    return do


TILES: list[Case] = [
    (
        op.UnsupportedError,
        (
            "Gemm: the tile 128x64x64_9_1x1x1_few_rows_immediate has kernel_schedule few_rows, which does "
            "not support saturating accumulators; use another tile"
        ),
        with_few_rows_that_saturate,
    ),
    (
        op.UnsupportedError,
        "Gemm: the tile_description 128x128x64_4_1x1x1 has no math_instruction; add one",
        tiled([128, 128, 64], 4, None, None),
    ),
    (
        op.DtypeError,
        "Gemm: the math_instruction is for f16 and f16; A and B have bf16 and bf16",
        tiled([128, 128, 64], 4, None, HALF, element="bf16"),
    ),
    (
        op.DtypeError,
        "Gemm: the math_instruction is for tf32 and tf32; A and B have f16 and f16",
        tiled([128, 128, 32], 4, None, instruction([64, 128, 8], "tf32", "f32")),
    ),
    (
        op.UnsupportedError,
        "mm: kernel: A has dtype f16, but the math_instruction has bf16; use equal ones",
        lambda: op.mm(
            A, B, kernel=op.TileDescription([128, 128, 64], 4, None, instruction([64, 128, 16], "bf16", "f32")), **CPU
        ),
    ),
    (
        op.DtypeError,
        "Gemm: the math_instruction is for f16 and f16; A and B have tf32 and tf32",
        tiled([128, 128, 64], 4, None, HALF, element="tf32"),
    ),
    (
        op.UnsupportedError,
        "Gemm: multiply_add_fast_f32 does not support instruction_shape [16, 8, 16]; use [16, 8, 8] or [64, N, 8]",
        tiled([128, 128, 32], 3, None, instruction([16, 8, 16], "f32", "f32", "multiply_add_fast_f32"), element="f32"),
    ),
    (
        op.UnsupportedError,
        "Gemm: no wgmma kernel supports f16 with f32 accumulation and f64 results",
        tiled([128, 128, 64], 4, None, HALF, output="f64"),
    ),
    (
        op.UnsupportedError,
        "Gemm: accumulation in f16 is not supported for bf16; use f32 (wgmma accumulates in f16 for f16 operands only)",
        tiled([128, 128, 64], 4, None, instruction([64, 128, 16], "bf16", "f16"), element="bf16"),
    ),
    (
        op.UnsupportedError,
        "Gemm: cluster_shape is (1, 1, 2); it must be (M, N, 1)",
        tiled([128, 128, 64], 4, None, HALF, cluster_shape=(1, 1, 2)),
    ),
    (
        op.UnsupportedError,
        (
            "Gemm: mma.sync does not support split-K or stream-K, got tile_scheduler persistent with parts=2; "
            "use split_k= of the call"
        ),
        tiled([128, 128, 32], 3, None, SYNC, parts=2),
    ),
    (
        op.UnsupportedError,
        (
            "Gemm: no mma.sync 16x8x4 kernel supports f64 with f64 accumulation and f64 results; use [16, 8, "
            "8] or [8, 8, 4] with f64 accumulation"
        ),
        tiled([128, 128, 16], 3, None, instruction([16, 8, 4], "f64", "f64"), element="f64"),
    ),
    (
        op.UnsupportedError,
        "Gemm: no mma.sync 16x8x32 kernel supports i8 with i32 accumulation and f64 results",
        tiled([64, 64, 64], 3, None, instruction([16, 8, 32], "i8", "i32"), element="i8", output="f64"),
    ),
    (
        op.UnsupportedError,
        (
            "Gemm: a tile of 72 x 64 x 16 with 3 stages and warps [4, 2, 1] is not supported; M x N must be "
            "multiples of 64 x 16, K 8 or 16, with at least two stages and at most 16 warps"
        ),
        tiled([72, 64, 16], 3, None, DOUBLES, element="f64"),
    ),
    (
        op.UnsupportedError,
        "Gemm: the tile needs 327680 bytes of shared memory, but 166912 are available; use fewer stages",
        tiled([256, 256, 16], 4, [4, 4, 1], DOUBLES, element="f64"),
    ),
    (
        op.UnsupportedError,
        "Gemm: the tile has 128 accumulators per thread, more than 64; use more warps",
        tiled([128, 128, 16], 3, [2, 2, 1], DOUBLES, element="f64"),
    ),
    (
        op.UnsupportedError,
        "Gemm: a tile of 96 x 96 x 32 is not supported by mma.sync; M and N must be powers of two, K 32 or 64",
        tiled([96, 96, 32], 3, [2, 2, 1], SYNC),
    ),
    (
        op.UnsupportedError,
        "Gemm: 1 stages of 32768 bytes are not supported; use at least two stages, in at most 166912 bytes",
        tiled([128, 128, 64], 1, [2, 2, 1], SYNC),
    ),
    (
        op.UnsupportedError,
        "Gemm: the tile has 256 accumulators per thread, more than 128; use more warps or a smaller tile",
        tiled([128, 256, 32], 2, [2, 2, 1], SYNC),
    ),
    (
        op.UnsupportedError,
        "Gemm: no kernel without tensor cores supports f16 with f32 accumulation and f16 results",
        tiled([128, 128, 16], 2, None, op.MathInstruction([1, 1, 1], "f16", "f16", "f32", "simt")),
    ),
    (
        op.UnsupportedError,
        (
            "Gemm: a tile [128, 128, 8] with one stage is not supported for A column, B row, D row; use at "
            "least two stages, or for single row-major matrices a rung of the SGEMM ladder: [128, 128, 16] "
            "with 4, [128, 128, 16] with 3, [128, 128, 8] with 1, [64, 64, 8] with 1, [32, 32, 32] with 1 "
            "stages"
        ),
        lambda: op.GemmOperationUniversal(
            90,
            op.TileDescription([128, 128, 8], 1, None, SIMT),
            op.TensorDescription("f32", "column"),
            *[op.TensorDescription("f32", "row")] * 2,
        ),
    ),
    (
        op.UnsupportedError,
        (
            "Gemm: a tile [96, 96, 8] with one stage is not supported for A row, B row, D row; use at least "
            "two stages, or for single row-major matrices a rung of the SGEMM ladder: [128, 128, 16] with 4, "
            "[128, 128, 16] with 3, [128, 128, 8] with 1, [64, 64, 8] with 1, [32, 32, 32] with 1 stages"
        ),
        tiled([96, 96, 8], 1, None, SIMT, element="f32"),
    ),
    (
        op.UnsupportedError,
        "Gemm: sgemm-vector, a rung of the SGEMM ladder, has no epilogue; use alpha=1 and beta=0, or another tile",
        lambda: described(op.TileDescription([128, 128, 8], 1, None, SIMT), "f32").variant(0.5).name,
    ),
]


OPERATIONS: list[Case] = [
    (
        op.UnsupportedError,
        "emit.pytorch: a traced epilogue does not support a column-major D; use a row-major D",
        lambda: op.emit.pytorch(described(USUAL, layout="column", visitor=traced(alpha=1.0)), "some", "/nowhere"),
    ),
    (
        op.UnsupportedError,
        (
            "split_k cannot be combined with a saturating accumulator, because partial sums would not "
            "saturate; use split_k=1"
        ),
        lambda: saturating().construct().sliced_plan(saturating().arguments(*bytes_of(64, 256), **CPU).operands, 2),
    ),
    (
        op.DtypeError,
        "Gemm: C is void, so the element type of D is unknown; pass D",
        lambda: described(USUAL, "f16", "void"),
    ),
    (
        op.UnsupportedError,
        "Gemm: C is f16, row-major; it must be f32, row-major, like D",
        lambda: described(USUAL, "f16", D=op.TensorDescription("f32", "row")),
    ),
    (
        op.UnsupportedError,
        "Gemm: interleaved matrices do not support traced epilogues (doubled)",
        lambda: interleaved(visitor=traced(alpha=1.0)),
    ),
    (
        op.UnsupportedError,
        "Gemm: kernel i8-i8-kk-128x128-c1d does not support interleaved matrices; use mma.sync [16, 8, 32]",
        lambda: interleaved(tile=op.TileDescription([128, 128, 128], 4, None, instruction([64, 128, 32], "i8", "i32"))),
    ),
    (
        op.EpilogueError,
        "epilogue doubled: arguments must be passed by name, got (2.0,)",
        lambda: described(USUAL, visitor=traced(alpha=1.0)).epilogue_type(2.0),
    ),
    (
        op.EpilogueError,
        "epilogue: LinearCombinationClamp cannot be combined with a visitor; clamp in the visitor instead",
        lambda: described(USUAL, epilogue_functor=op.LinearCombinationClamp("f16"), visitor=lambda x, row, column: x),
    ),
    (
        op.DtypeError,
        "Gemm: element_compute='i8' is not supported; use a float type",
        lambda: op.Gemm(**F16, element_compute="i8"),
    ),
    (
        op.UnsupportedError,
        "emit: A has the interleaved layout column-interleaved-32; use a row or column layout",
        lambda: op.emit.pytorch(interleaved(), "some", "/nowhere"),
    ),
    (
        op.UnsupportedError,
        "Gemm: no mma.sync kernel supports i8 and f16 with i32 accumulation and f16 results",
        lambda: op.Gemm(element_A="i8", element_B="f16", layout="row", element_D="f16").construct(),
    ),
    (
        op.UnsupportedError,
        (
            "ReductionOperation: the accumulator has type f32 and the workspace f16; both must have the same "
            "type, f32, f64 or i32"
        ),
        lambda: op.ReductionOperation((4, 128), op.TensorDescription("f16", "row"), element_workspace="f16"),
    ),
    (
        op.ShapeError,
        "ReductionArguments: workspace is None; pass that of GemmArguments after the GEMM has run",
        reduced((64, 64), 2, None),
    ),
    (
        op.ShapeError,
        "ReductionArguments: partitions is 3, but the GEMM has 2 split-K slices",
        reduced((64, 64), 3, workspace()),
    ),
    (
        op.UnsupportedError,
        "ReductionArguments: the workspace has type i32; it must have f32",
        reduced((64, 64), 2, workspace(element="i32")),
    ),
    (
        op.ShapeError,
        "ReductionArguments: the workspace has 32 rows; problem_size needs 64",
        reduced((64, 64), 2, workspace(rows=32)),
    ),
    (
        op.ShapeError,
        "ReductionArguments: beta is 0.5, but source is missing; pass source or beta=0",
        reduced((64, 64), 2, workspace(), output_op=op.LinearCombination("f32").epilogue_type(1.0, 0.5), like=zeros(1)),
    ),
]

CALLS: list[Case] = [
    # Arguments of operations.
    (
        op.EpilogueError,
        "the numbers (0.1,) after alpha and beta need an activation; there is none",
        arguments(
            described(USUAL),
            (8, 8, 8),
            zeros(64),
            zeros(64),
            None,
            zeros(64),
            op.LinearCombinationGeneric("leaky_relu", "f16").epilogue_type(1.0, 0.0, 0.1),
        ),
    ),
    (
        op.UnsupportedError,
        "GemmArguments: gemm_mode=array does not support a visitor; use gemm or batched",
        arguments(
            described(USUAL, visitor=traced(alpha=1.0)),
            (128, 256, 64),
            A,
            B,
            output_op=described(USUAL, visitor=traced(alpha=1.0)).epilogue_type(alpha=2.0),
            gemm_mode="array",
        ),
    ),
    (
        op.ShapeError,
        "GemmArguments: problem_size is (64, 64) in epilogue_type, but (128, 256) in the call",
        arguments(
            described(USUAL, visitor=traced(alpha=1.0)),
            (128, 256, 64),
            A,
            B,
            output_op=described(USUAL, visitor=traced(alpha=1.0)).epilogue_type(alpha=2.0, problem_size=[64, 64]),
        ),
    ),
    (
        op.LayoutError,
        "GemmArguments: A has strides (128, 1); interleaved matrices must be contiguous",
        arguments(
            interleaved(),
            (64, 64, 64),
            zeros(128, 64, dtype=np.int8)[::2],
            zeros(4096, dtype=np.int8),
            None,
            zeros(4096, dtype=np.int8),
        ),
    ),
    (
        op.AlignmentError,
        "GemmArguments: the address of A is 8 mod 16; it must be 16-byte aligned",
        arguments(
            interleaved(),
            (64, 64, 64),
            eight_bytes_on(4096),
            zeros(4096, dtype=np.int8),
            None,
            zeros(4096, dtype=np.int8),
        ),
    ),
    (
        op.ShapeError,
        "GemmArguments: A has addresses, which need problem_size; pass (M, N, K)",
        arguments(described(USUAL), None, [4096], [4096], None, [4096], gemm_mode="array", batch=1),
    ),
    # Plans.
    (op.ShapeError, "mm_array: As is empty; pass at least one matrix", lambda: op.mm_array([], [], device="cpu")),
    (
        op.ShapeError,
        "Gemm.run: a list must hold matrices, got a batch of shape (3, 8, 8)",
        planned([zeros(3, 8, 8)] * 2, [zeros(3, 8, 8)] * 2),
    ),
    (
        op.EpilogueError,
        "Gemm.run: A is a list, which a traced epilogue does not support; pass single arrays",
        visiting(doubled, [A, A], [B, B], visitor_args={"alpha": 2.0}),
    ),
    (
        op.EpilogueError,
        "Gemm.run: visitor_args (alpha) needs an epilogue_visitor with a parameter accum",
        planned(A, B, visitor_args={"alpha": 2.0}),
    ),
    (
        op.DeviceError,
        'Gemm.run: A is on GPU 0; with device="cpu" it must be in CPU memory',
        planned(OnGpu(128, 64), B),
    ),
    (op.ShapeError, "Gemm.run: A has shape (128,); it must have rank 2, or 3 for a batch", planned(zeros(128), B)),
    (
        op.ShapeError,
        "Gemm.run: D has shape (128, 256); it must have (3, 128, 256)",
        planned(zeros(3, 128, 64), B, None, zeros(128, 256)),
    ),
    (
        op.ShapeError,
        "Gemm.run: C has shape (128, 256); it must have (3, 128, 256)",
        planned(zeros(3, 128, 64), B, zeros(128, 256), beta=1.0),
    ),
    (
        op.DeviceError,
        "Gemm.run: bias is a torch array on the CPU, but A is a numpy array on the CPU; use one library and device",
        lambda: op.Gemm(**F16).run(A, B, bias=torchs(256), **CPU),
    ),
    (op.LayoutError, "Gemm.run: bias has strides (2,); it must be contiguous", planned(A, B, bias=zeros(512)[::2])),
    (
        op.DeviceError,
        'Gemm.run: A is in CPU memory; move it to the GPU, or pass device="cpu"',
        lambda: op.Gemm(**F16).run(torchs(128, 64), torchs(64, 256)),
    ),
    (
        op.DeviceError,
        "Gemm: D is missing, and arrays of type OnGpu cannot be allocated; pass D",
        lambda: op.Gemm(**F16).run(OnGpu(128, 64), OnGpu(64, 256)),
    ),
    (
        ReadOnlyError,
        (
            "argument D: the kernel writes to it, and this array is read-only; pass one that may be written (a "
            "copy: array.copy())"
        ),
        planned([A, A], [B, B], None, [read_only(), zeros(128, 256)]),
    ),
    (
        op.DeviceError,
        "Gemm.bind: the arrays are in CPU memory; pass arrays on a GPU",
        lambda: op.Gemm(**F16).bind([A, A], [B, B], None, [zeros(128, 256), zeros(128, 256)]),
    ),
    (
        op.DeviceError,
        'no GPU was found; pass device="cpu" to run on the interpreter',
        lambda: Transfer(op.Gemm(**F16).arguments(A, B, **CPU).operands),
    ),
    (
        op.ShapeError,
        "Gemm.explain: B has shape (32, 256), but A has shape (128, 64); pass B of (64, N)",
        lambda: op.Gemm(**F16).explain((128, 64), (32, 256)),
    ),
    (
        op.UnsupportedError,
        (
            "reference: NumPy cannot compute the epilogue_visitor (The truth value of an array with more "
            "than one element is ambiguous. Use a.any() or a.all()); use a function with a parameter accum"
        ),
        lambda: with_hook().reference(A, B),
    ),
    (
        op.UnsupportedError,
        (
            "split_k cannot be combined with a saturating accumulator, because partial sums would not saturate; "
            "use split_k=1"
        ),
        lambda: saturating().run(
            zeros(64, 256, dtype=np.int8), zeros(64, 256, dtype=np.int8).T, split_k=("parallel", 2), **CPU
        ),
    ),
    (
        op.AlignmentError,
        (
            "Gemm.run: A has an address or row stride that is not a multiple of 16 bytes, which TMA does not "
            "support for f16; use mm()"
        ),
        lambda: op.Gemm(**F16, element_accumulator="f16").run(zeros(128, 63), zeros(63, 256), **CPU),
    ),
    (
        op.EpilogueError,
        "Gemm: an f64 epilogue supports alpha, beta, an f64 bias and relu, got a bias of f32",
        of_doubles(bias=zeros(8, dtype=np.float32)),
    ),
    (
        op.EpilogueError,
        "Gemm: an f64 epilogue supports alpha, beta, an f64 bias and relu, got gelu",
        of_doubles("gelu"),
    ),
    (
        op.UnsupportedError,
        "Gemm.tune: tile_description already sets the kernel; set it to None",
        tuned(with_tile(), A, B),
    ),
    (
        op.UnsupportedError,
        "Gemm.tune: the operands need kernel f64-f64-km-warps, but only wgmma kernels can be tuned",
        tuned(op.Gemm(element="f64", layout="row"), zeros(8, 8, dtype="f8"), zeros(8, 8, dtype="f8")),
    ),
    (
        op.UnsupportedError,
        "Gemm.tune: nothing is multiplied (extents (128, 256, 64), alpha 0.0); pass matrices that are not empty",
        tuned(op.Gemm(**F16), A, B, alpha=0.0),
    ),
    (
        op.LayoutError,
        "Gemm.run: D is column-major; pairs() and whole_rows=True need a row-major D",
        visiting(paired, A, B, None, zeros(128, 128).T, plan={**F16, "layout_C": "column"}),
    ),
    (
        op.EpilogueError,
        "Gemm: this tile does not support the epilogue: whole_rows=True supports at most 128 columns here, got 192",
        by_rows(192),
    ),
    (
        op.EpilogueError,
        (
            "Gemm: this tile does not support the epilogue: pairs() and whole_rows=True do not support "
            "split-K and transposed kernels"
        ),
        by_rows(96, tile_scheduler="split_k", parts=2),
    ),
    # Saved plans.
    (op.LayoutError, "Gemm.run: A is missing; pass it to the call or to the plan", lambda: kept().run(None, B)),
    (
        op.UnsupportedError,
        (
            "Gemm.run: the call 128x256x64 needs f16-f16-kn-64x16-c1w-q16, which the folder does not have "
            "(it has none); run the call before saving the plan"
        ),
        lambda: kept().run(A, B, **CPU),
    ),
    (
        op.UnsupportedError,
        (
            "Gemm.run: the call 128x256x64 needs f16-f16-kn-128x128-c1d-g-aeccc37199c7, combine-sum-f32-32, "
            "which the folder does not have (it has f16-f16-kn-128x128-c1d-g-aeccc37199c7); run the call "
            "before saving the plan"
        ),
        summing,
    ),
    (
        op.UnsupportedError,
        (
            "load: the call needs f16-f16-kn-128x256-c2dw, which the folder does not have (it has none); run the "
            "call before saving the plan"
        ),
        lambda: kept().ptx,
    ),
]


@pytest.mark.parametrize(("kind", "message", "do"), [*TILES, *OPERATIONS, *CALLS])
def test_refused(kind: type[Exception], message: str, do: Do) -> None:
    with pytest.raises((op.OpError, ReadOnlyError)) as told:
        do()
    assert (type(told.value), str(told.value)) == (kind, message)


def test_a_plan_of_another_version(tmp_path: Path) -> None:
    file = tmp_path / "plan.json"
    file.write_text(json.dumps({"format": saved.FORMAT - 1}))
    with pytest.raises(op.UnsupportedError) as told:
        op.load(tmp_path)
    assert str(told.value) == (
        f"load: {file} has format {saved.FORMAT - 1}, but this version reads {saved.FORMAT}; save the plan again"
    )
