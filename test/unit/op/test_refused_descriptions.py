"""What descriptions, plans and saved plans refuse, each with its whole message: a call for each raise."""

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
from cute_dialect.kernels.gemm.few_rows_config import SkinnyConfig
from cute_dialect.op.epilogue import exp, pairs
from cute_dialect.op.plans import saved
from cute_dialect.op.plans.arguments import Transfer
from cute_dialect.op.plans.configure import described as describe
from cute_dialect.op.plans.launch_sequence import partial_steps
from cute_dialect.op.plans.tuning import tuned_plan
from cute_dialect.op.select.kernel_choice import few_rows
from cute_dialect.runtime.binding import ReadOnlyError


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
    """Return an operation whose matrices are all alike, but for the type of the result."""
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
    """Return a plan as one is that was saved before it was run."""
    plan = op.Gemm(**F16)
    plan.saved = saved.SavedKernels(Path("nowhere"), [], {})
    return plan


def summing() -> object:
    """Call a saved plan whose epilogue has sums of rows, and that was saved without what combines them."""

    def summed(accum: Any) -> Any:
        return {"D": accum, "rows": op.epilogue.sum(accum, -1)}

    x = op.Gemm(**F16)
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
    """Return bytes that begin 8 after a whole 16."""
    whole = zeros(count + 32, dtype=np.int8)
    start = (-whole.ctypes.data) % 16 + 8
    return whole[start : start + count]


def torchs(*shape: int) -> Any:
    return pytest.importorskip("torch").zeros(*shape).half()


def with_hook() -> op.Gemm:
    """Return a plan whose function of (value, row, column) numpy cannot compute."""
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
    """A tile of few rows whose instruction is said to saturate."""
    plan = op.Gemm(element="f16", layout_A="row", layout_B="column", layout="row")
    few = describe(few_rows(SkinnyConfig()), plan.asked())
    assert few.math_instruction is not None
    bad = replace(few, math_instruction=replace(few.math_instruction, math_operation="multiply_add_saturate"))
    return plan.construct(bad)


def by_rows(columns: int, **tile: Any) -> Do:
    """Return a call of a plan whose function wants whole rows, and whose tile has 128 columns."""

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
            "Gemm: expected a kernel_schedule without few_rows for sums that saturate, got "
            "128x64x64_9_1x1x1_few_rows_immediate"
        ),
        with_few_rows_that_saturate,
    ),
    (
        op.UnsupportedError,
        "Gemm: expected a tile_description with a math_instruction, got 128x128x64_4_1x1x1 without",
        tiled([128, 128, 64], 4, None, None),
    ),
    (
        op.DtypeError,
        "Gemm: expected a math_instruction for bf16 and bf16, got one for f16 and f16",
        tiled([128, 128, 64], 4, None, HALF, element="bf16"),
    ),
    (
        op.DtypeError,
        "Gemm: expected a math_instruction for f16 and f16, got one for tf32 and tf32",
        tiled([128, 128, 32], 4, None, instruction([64, 128, 8], "tf32", "f32")),
    ),
    (
        op.UnsupportedError,
        "mm: kernel: expected A of bf16, as the math_instruction, got f16",
        lambda: op.mm(
            A, B, kernel=op.TileDescription([128, 128, 64], 4, None, instruction([64, 128, 16], "bf16", "f32")), **CPU
        ),
    ),
    (
        op.DtypeError,
        "Gemm: expected a math_instruction for tf32 and tf32, got one for f16 and f16",
        tiled([128, 128, 64], 4, None, HALF, element="tf32"),
    ),
    (
        op.UnsupportedError,
        "Gemm: expected an instruction_shape of [16, 8, 8] or [64, N, 8] for multiply_add_fast_f32, got [16, 8, 16]",
        tiled([128, 128, 32], 3, None, instruction([16, 8, 16], "f32", "f32", "multiply_add_fast_f32"), element="f32"),
    ),
    (
        op.UnsupportedError,
        "Gemm: there is no kernel of wgmma for f16, sums of f32, to f64 yet",
        tiled([128, 128, 64], 4, None, HALF, output="f64"),
    ),
    (
        op.UnsupportedError,
        "Gemm: expected sums in f32 for bf16, got f16 (wgmma has f16 sums for f16 only)",
        tiled([128, 128, 64], 4, None, instruction([64, 128, 16], "bf16", "f16"), element="bf16"),
    ),
    (
        op.UnsupportedError,
        "Gemm: expected a cluster_shape of (M, N, 1), got (1, 1, 2)",
        tiled([128, 128, 64], 4, None, HALF, cluster_shape=(1, 1, 2)),
    ),
    (
        op.UnsupportedError,
        "Gemm: expected blocks that share no K for mma.sync, got persistent of 2 parts",
        tiled([128, 128, 32], 3, None, SYNC, parts=2),
    ),
    (
        op.UnsupportedError,
        (
            "Gemm: there is no kernel of mma.sync 16x8x4 for f64, sums of f64, to f64 yet: [16, 8, 8] or [8, 8, "
            "4] has sums of f64"
        ),
        tiled([128, 128, 16], 3, None, instruction([16, 8, 4], "f64", "f64"), element="f64"),
    ),
    (
        op.UnsupportedError,
        "Gemm: there is no kernel of mma.sync 16x8x32 for i8, sums of i32, to f64 yet",
        tiled([64, 64, 64], 3, None, instruction([16, 8, 32], "i8", "i32"), element="i8", output="f64"),
    ),
    (
        op.UnsupportedError,
        (
            "Gemm: expected a tile of multiples of 64 x 16, 8 or 16 along K, two stages or more and 16 warps at "
            "most, got 72 x 64 x 16, 3 and [4, 2, 1]"
        ),
        tiled([72, 64, 16], 3, None, DOUBLES, element="f64"),
    ),
    (
        op.UnsupportedError,
        "Gemm: expected at most 166912 bytes of shared memory, got 327680: fewer stages",
        tiled([256, 256, 16], 4, [4, 4, 1], DOUBLES, element="f64"),
    ),
    (
        op.UnsupportedError,
        "Gemm: expected at most 64 sums a thread, got 128: more warps",
        tiled([128, 128, 16], 3, [2, 2, 1], DOUBLES, element="f64"),
    ),
    (
        op.UnsupportedError,
        "Gemm: expected powers of two, 32 or 64 along K, for mma.sync, got 96 x 96 x 32",
        tiled([96, 96, 32], 3, [2, 2, 1], SYNC),
    ),
    (
        op.UnsupportedError,
        "Gemm: expected two stages or more, of 166912 bytes at most, got 1 of 32768 bytes",
        tiled([128, 128, 64], 1, [2, 2, 1], SYNC),
    ),
    (
        op.UnsupportedError,
        "Gemm: expected at most 128 sums a thread, got 256: more warps, or a smaller tile",
        tiled([128, 256, 32], 2, [2, 2, 1], SYNC),
    ),
    (
        op.UnsupportedError,
        "Gemm: there is no kernel without tensor cores for f16, sums of f32, to f16 yet",
        tiled([128, 128, 16], 2, None, op.MathInstruction([1, 1, 1], "f16", "f16", "f32", "simt")),
    ),
    (
        op.UnsupportedError,
        (
            "Gemm: expected two stages or more, or a rung of the SGEMM ladder, [128, 128, 16] with 4, [128, 128, 16] "
            "with 3, [128, 128, 8] with 1, [64, 64, 8] with 1, [32, 32, 32] with 1 stages, for single row-major "
            "matrices, got [128, 128, 8] with 1 for A column, B row, D row"
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
            "Gemm: expected two stages or more, or a rung of the SGEMM ladder, [128, 128, 16] with 4, [128, 128, 16] "
            "with 3, [128, 128, 8] with 1, [64, 64, 8] with 1, [32, 32, 32] with 1 stages, for single row-major "
            "matrices, got [96, 96, 8] with 1 for A row, B row, D row"
        ),
        tiled([96, 96, 8], 1, None, SIMT, element="f32"),
    ),
    (
        op.UnsupportedError,
        "Gemm: sgemm-vector, a rung of the SGEMM ladder, has no epilogue: alpha 1, beta 0",
        lambda: described(op.TileDescription([128, 128, 8], 1, None, SIMT), "f32").variant(0.5).name,
    ),
]


OPERATIONS: list[Case] = [
    (
        op.UnsupportedError,
        "emit.pytorch: expected D row-major with a traced epilogue",
        lambda: op.emit.pytorch(described(USUAL, layout="column", visitor=traced(alpha=1.0)), "some", "/nowhere"),
    ),
    (
        op.UnsupportedError,
        "split_k: expected no parts of K where sums saturate: those of parts would not",
        lambda: partial_steps(saturating().construct(), saturating().arguments(*bytes_of(64, 256), **CPU).operands, 2),
    ),
    (
        op.DtypeError,
        "Gemm: expected an element of D, as there is no C, got void",
        lambda: described(USUAL, "f16", "void"),
    ),
    (
        op.UnsupportedError,
        "Gemm: expected C of f32, row-major, as D, got f16, row-major",
        lambda: described(USUAL, "f16", D=op.TensorDescription("f32", "row")),
    ),
    (
        op.UnsupportedError,
        "Gemm: expected no traced epilogue of interleaved matrices, got doubled",
        lambda: interleaved(visitor=traced(alpha=1.0)),
    ),
    (
        op.UnsupportedError,
        "Gemm: expected mma.sync [16, 8, 32] for interleaved matrices, got i8-i8-kk-128x128-c1d",
        lambda: interleaved(tile=op.TileDescription([128, 128, 128], 4, None, instruction([64, 128, 32], "i8", "i32"))),
    ),
    (
        op.EpilogueError,
        "epilogue doubled: expected its arguments by name, got (2.0,)",
        lambda: described(USUAL, visitor=traced(alpha=1.0)).epilogue_type(2.0),
    ),
    (
        op.EpilogueError,
        "epilogue: expected LinearCombinationClamp without a visitor, or a visitor that clamps, got both",
        lambda: described(USUAL, epilogue_functor=op.LinearCombinationClamp("f16"), visitor=lambda x, row, column: x),
    ),
    (
        op.DtypeError,
        "Gemm: expected element_compute of a float, got 'i8'",
        lambda: op.Gemm(**F16, element_compute="i8"),
    ),
    (
        op.UnsupportedError,
        "emit: expected matrices that are not interleaved, got A of column-interleaved-32",
        lambda: op.emit.pytorch(interleaved(), "some", "/nowhere"),
    ),
    (
        op.UnsupportedError,
        "Gemm: there is no kernel of mma.sync for i8 and f16, sums of i32, to f16 yet",
        lambda: op.Gemm(element_A="i8", element_B="f16", layout="row", element_D="f16").construct(),
    ),
    (
        op.UnsupportedError,
        "ReductionOperation: expected sums and workspace of f32, f64 or i32, got f32 and f16",
        lambda: op.ReductionOperation((4, 128), op.TensorDescription("f16", "row"), element_workspace="f16"),
    ),
    (
        op.ShapeError,
        "ReductionArguments: expected the workspace of GemmArguments that ran, got None",
        reduced((64, 64), 2, None),
    ),
    (
        op.ShapeError,
        "ReductionArguments: expected 2 partitions, as the GEMM was asked for, got 3",
        reduced((64, 64), 3, workspace()),
    ),
    (
        op.UnsupportedError,
        "ReductionArguments: expected a workspace of f32, got i32",
        reduced((64, 64), 2, workspace(element="i32")),
    ),
    (
        op.ShapeError,
        "ReductionArguments: expected a workspace of 64 rows, got 32",
        reduced((64, 64), 2, workspace(rows=32)),
    ),
    (
        op.ShapeError,
        "ReductionArguments: expected source where beta is 0.5",
        reduced((64, 64), 2, workspace(), output_op=op.LinearCombination("f32").epilogue_type(1.0, 0.5), like=zeros(1)),
    ),
]

CALLS: list[Case] = [
    # Arguments of operations.
    (
        op.EpilogueError,
        "expected no numbers behind alpha and beta, as there is no activation, got (0.1,)",
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
        "GemmArguments: expected gemm_mode of gemm or batched with a visitor, got array",
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
        "GemmArguments: expected problem_size of (128, 256) in epilogue_type, got (64, 64)",
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
        "GemmArguments: expected A as runs of 32 without gaps, got strides (128, 1)",
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
        "GemmArguments: expected A at a whole 16 bytes, got 8 more",
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
        "GemmArguments: expected problem_size, as A is of addresses",
        arguments(described(USUAL), None, [4096], [4096], None, [4096], gemm_mode="array", batch=1),
    ),
    # Plans.
    (op.ShapeError, "mm_array: expected at least one matrix, got none", lambda: op.mm_array([], [], device="cpu")),
    (
        op.ShapeError,
        "Gemm.run: expected matrices in a list, got a batch (3, 8, 8)",
        planned([zeros(3, 8, 8)] * 2, [zeros(3, 8, 8)] * 2),
    ),
    (
        op.EpilogueError,
        "Gemm.run: expected single arrays with a traced epilogue, got lists of matrices",
        visiting(doubled, [A, A], [B, B], visitor_args={"alpha": 2.0}),
    ),
    (
        op.EpilogueError,
        "Gemm.run: expected no visitor_args of a function, got alpha",
        planned(A, B, visitor_args={"alpha": 2.0}),
    ),
    (
        op.DeviceError,
        'Gemm.run: expected A in CPU memory with device="cpu", got an array on GPU 0',
        planned(OnGpu(128, 64), B),
    ),
    (op.ShapeError, "Gemm.run: expected A of rank 2, or 3 of a batch, got (128,)", planned(zeros(128), B)),
    (
        op.ShapeError,
        "Gemm.run: expected D of (3, 128, 256), got (128, 256)",
        planned(zeros(3, 128, 64), B, None, zeros(128, 256)),
    ),
    (
        op.ShapeError,
        "Gemm.run: expected C of (3, 128, 256), got (128, 256)",
        planned(zeros(3, 128, 64), B, zeros(128, 256), beta=1.0),
    ),
    (
        op.DeviceError,
        "Gemm.run: expected bias of numpy, the CPU, as A, got one of torch, the CPU",
        lambda: op.Gemm(**F16).run(A, B, bias=torchs(256), **CPU),
    ),
    (op.LayoutError, "Gemm.run: expected a contiguous bias, got strides (2,)", planned(A, B, bias=zeros(512)[::2])),
    (
        op.DeviceError,
        'Gemm.run: expected A on a GPU, got one in CPU memory: move it there, or say device="cpu"',
        lambda: op.Gemm(**F16).run(torchs(128, 64), torchs(64, 256)),
    ),
    (
        op.DeviceError,
        "Gemm: expected D, as arrays of OnGpu cannot be made here",
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
        "bind: expected arrays in GPU memory, got one in CPU memory",
        lambda: op.Gemm(**F16).bind([A, A], [B, B], None, [zeros(128, 256), zeros(128, 256)]),
    ),
    (
        op.DeviceError,
        'no GPU here: device="cpu" runs it on the interpreter',
        lambda: Transfer(op.Gemm(**F16).arguments(A, B, **CPU).operands),
    ),
    (
        op.ShapeError,
        "Gemm.explain: expected B of (64, N), as A is (128, 64), got (32, 256)",
        lambda: op.Gemm(**F16).explain((128, 64), (32, 256)),
    ),
    (
        op.UnsupportedError,
        (
            "reference: the epilogue_visitor cannot be computed by numpy: The truth value of an array with more "
            "than one element is ambiguous. Use a.any() or a.all()"
        ),
        lambda: with_hook().reference(A, B),
    ),
    (
        op.UnsupportedError,
        "split_k: expected no parts of K where sums saturate: those of parts would not",
        lambda: saturating().run(
            zeros(64, 256, dtype=np.int8), zeros(64, 256, dtype=np.int8).T, split_k=("parallel", 2), **CPU
        ),
    ),
    (
        op.AlignmentError,
        ("Gemm.run: expected A with an address and rows of whole 16 bytes, which TMA needs for f16; mm() takes them"),
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
        "Gemm.tune: expected no tile_description, it says which kernel is taken",
        tuned(with_tile(), A, B),
    ),
    (
        op.UnsupportedError,
        "Gemm.tune: expected operands that wgmma multiplies where they are, got f64-f64-km-warps",
        tuned(op.Gemm(element="f64", layout="row"), zeros(8, 8, dtype="f8"), zeros(8, 8, dtype="f8")),
    ),
    (
        op.UnsupportedError,
        "Gemm.tune: expected a product of something, got (128, 256, 64) and alpha 0.0",
        tuned(op.Gemm(**F16), A, B, alpha=0.0),
    ),
    (
        op.LayoutError,
        "Gemm.run: expected D row-major for pairs() and whole_rows, got column-major",
        visiting(paired, A, B, None, zeros(128, 128).T, plan={**F16, "layout_C": "column"}),
    ),
    (
        op.EpilogueError,
        "Gemm: this tile does not take the epilogue: expected at most 128 columns for whole_rows, got 192",
        by_rows(192),
    ),
    (
        op.EpilogueError,
        (
            "Gemm: this tile does not take the epilogue: expected no blocks that share K, and no swapped "
            "problem, for pairs() and whole_rows"
        ),
        by_rows(96, tile_scheduler="split_k", parts=2),
    ),
    # Saved plans.
    (op.LayoutError, "Gemm.run: expected A, as the plan has none", lambda: kept().run(None, B)),
    (
        op.UnsupportedError,
        (
            "Gemm.run: expected a call that is saved (there are ), got 128x256x64 by f16-f16-kn-64x16-c1w-q16: run "
            "it before the plan is saved"
        ),
        lambda: kept().run(A, B, **CPU),
    ),
    (
        op.UnsupportedError,
        (
            "Gemm.run: expected a call that is saved (there are f16-f16-kn-64x32-c1-q16-g-aeccc37199c7), got "
            "128x256x64 by f16-f16-kn-64x32-c1-q16-g-aeccc37199c7, combine-sum-f32-32: run it "
            "before the plan is saved"
        ),
        summing,
    ),
    (
        op.UnsupportedError,
        (
            "load: expected a call whose kernels are saved (), got one by f16-f16-kn-128x256-c2dw: run it before the "
            "plan is saved"
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
    assert str(told.value) == f"load: {file} has format {saved.FORMAT - 1}, this version reads {saved.FORMAT}"
