"""Errors of plans and descriptions: class and message, raised before anything is compiled or written."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import numpy as np
import pytest
from refused_calls import refuse_compiling

from cute_dialect import op
from cute_dialect.runtime import driver as cuda


@pytest.fixture(autouse=True)
def nothing_is_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    refuse_compiling(monkeypatch)


def zeros(*shape: int, dtype: Any = np.float16) -> np.ndarray:
    return np.zeros(shape, dtype)


F16: dict[str, Any] = {"element": "f16", "layout": "row"}
HALF = op.MathInstruction([64, 128, 16], "f16", "f16", "f32")
SYNC = op.MathInstruction([16, 8, 16], "f16", "f16", "f32")
A, B = zeros(128, 64), zeros(64, 256)
WIDE = zeros(130, 256)


def visited(args: dict[str, Any], a: Any = A) -> object:
    plan = op.Gemm(**F16)
    plan.epilogue_visitor = cast(Any, lambda accum, C: accum + C)
    return plan.run(a, B, visitor_args=args, device="cpu")


def run(plan: op.Gemm, *arrays: Any, **more: Any) -> Callable[[], object]:
    return lambda: plan.run(*arrays, device="cpu", **more)


def tiled(shape: list[int], instruction: op.MathInstruction = HALF, stages: int = 4, **more: Any) -> Any:
    return lambda: op.Gemm(**F16).construct(op.TileDescription(shape, stages, None, instruction, **more))


def odd_address() -> np.ndarray:
    """Return a matrix with aligned row strides at a misaligned address."""
    whole = zeros(128 * 64 + 16).view(np.uint8)
    start = (-whole.ctypes.data) % 16 + 8
    return whole[start : start + 128 * 64 * 2].view(np.float16).reshape(128, 64)


def with_tile(**more: Any) -> op.Gemm:
    plan = op.Gemm(**{**F16, **more})
    plan.tile_description = op.TileDescription([128, 128, 64], 4, None, HALF)
    return plan


def set_property(name: str, value: object) -> Callable[[], object]:
    return lambda: setattr(op.Gemm(**F16), name, value)


CASES: list[tuple[type[op.OpError], str, Callable[[], object]]] = [
    # Plans: constructor arguments.
    (op.DtypeError, (
        "Gemm: the element type of B is unknown; pass B, element_B or element"
    ), lambda: op.Gemm(element_A="f16", layout="row")),
    (op.LayoutError, "Gemm: the layout of A is unknown; pass A, layout_A or layout", lambda: op.Gemm(element="f16")),
    (op.DtypeError, "Gemm: B and element_B are both given", lambda: op.Gemm(B=B, element_B="f16", **F16)),
    (op.LayoutError, "Gemm: A and layout_A are both given", lambda: op.Gemm(A=A, layout_A="row", **F16)),
    (op.DtypeError, "'i16' is not an element type; use f16, bf16, tf32, f32, f64, i8, ui8, i32, f8E4M3FN, f8E5M2",
     lambda: op.Gemm(element="i16", layout="row")),
    (op.LayoutError, "'diagonal' is not a layout; use row or column (also t, n)",
     lambda: op.Gemm(element="f16", layout="diagonal")),
    (op.UnsupportedError, "interleaved layout column-interleaved-32 is not supported here",
     lambda: op.Gemm(element="i8", layout=op.ColumnMajorInterleaved32)),
    (op.LayoutError,
     (
         "Gemm: B is row-major, but wgmma reads 8-bit operands along K only (f8E4M3FN)"
     ), lambda: op.Gemm(element="f8E4M3FN", layout="row", element_C="bf16")),
    (op.LayoutError, "Gemm: A is column-major, but wgmma reads operands of tf32 along K only (tf32)",
     lambda: op.Gemm(element="tf32", layout="column")),
    (op.UnsupportedError, (
        "Gemm: accumulation in f16 is not supported for bf16; use f32 (wgmma accumulates in f16 for f16 operands "
        "only)"
    ),
     lambda: op.Gemm(element="bf16", layout="row", element_accumulator="f16")),
    (op.UnsupportedError, "Gemm: C is f32, row-major; it must be f16, row-major, like D",
     lambda: op.Gemm(element="f16", layout="row", element_C="f32", element_D="f16")),
    (op.UnsupportedError, "Gemm: kernel_cc=70 is not supported; use 80, 86, 87, 88, 89, 90, 100, 103, 110, 120 or 121",
     lambda: op.Gemm(**F16, kernel_cc=70)),
    (op.LayoutError, "Gemm: A has strides (256, 2); its rows or columns must be contiguous",
     lambda: op.Gemm(A=zeros(64, 256)[:, ::2], element="f16", layout="row")),
    (op.ShapeError, (
        "Gemm: A has shape (8,); it must have rank 2, or 3 for a batch"
    ), lambda: op.Gemm(A=zeros(8), **F16)),
    # Plans: arrays of a call.
    (op.DtypeError, "Gemm.run: A has f32, row-major; the plan needs f16, row-major",
     run(op.Gemm(**F16), A.astype(np.float32), B)),
    (op.LayoutError, "Gemm.run: B has f16, column-major; the plan needs f16, row-major",
     run(op.Gemm(**F16), A, zeros(256, 64).T)),
    (op.ShapeError, "Gemm.run: B has shape (32, 256), but A has shape (128, 64); pass B of (64, N)",
     run(op.Gemm(**F16), A, zeros(32, 256))),
    (op.ShapeError, "Gemm.run: B has 4 matrices, but A has 3; pass 3, or one",
     run(op.Gemm(**F16), zeros(3, 8, 8), zeros(4, 8, 8))),
    (op.ShapeError, "Gemm.run: D has shape (128, 255); it must have (128, 256)",
     run(op.Gemm(**F16), A, B, None, zeros(128, 255))),
    (op.ShapeError, "Gemm.run: C has shape (128, 1); it must have (128, 256)",
     run(op.Gemm(**F16, beta=1.0), A, B, zeros(128, 1))),
    (op.ShapeError, "Gemm.run: beta is 0.5, but C is missing; pass C or beta=0", run(op.Gemm(**F16), A, B, beta=0.5)),
    (op.ShapeError, "Gemm.run: beta is 0.5, but C is missing; pass C or beta=0",
     run(op.Gemm(**F16, element_C="void", element_D="f16"), A, B, zeros(128, 256), beta=0.5)),
    (op.ShapeError, "Gemm.run: bias has shape (128,); pass a bias of (256,), (1, 256) or (128, 1)",
     run(op.Gemm(**F16), A, B, bias=zeros(128))),
    (op.LayoutError, "Gemm.run: D shares memory with A; pass a separate D (only C may be D)",
     run(op.Gemm(**F16), A[:64], zeros(64, 64), None, A[32:96])),
    (op.LayoutError, "Gemm.run: D shares memory with C",
     run(op.Gemm(**F16, beta=1.0), A, B, WIDE[1:129], WIDE[:128])),
    (op.LayoutError, "Gemm.run: D shares memory with bias; pass a separate D (only C may be D)",
     run(op.Gemm(**F16), A, B, None, WIDE[:128], bias=WIDE[3])),
    (op.LayoutError, "Gemm.run: D shares memory with C",
     lambda: visited({"C": WIDE[1:129], "D": WIDE[:128]})),
    (op.LayoutError, "Gemm.run: D shares memory with A; pass a separate D (only C may be D)",
     lambda: visited({"C": WIDE[:128], "D": WIDE[:128]}, WIDE[:128, :64])),
    (op.ShapeError, "GemmArguments: problem_size is (128, 256)",
     lambda: op.GemmArguments(op.Gemm(**F16).construct(), (128, 256), A, B, device="cpu")),
    (op.ShapeError, "GemmArguments: batch is 0; it must be at least 1",
     lambda: op.GemmArguments(op.Gemm(**F16).construct(), (128, 256, 64), A, B, gemm_mode=op.Mode.Batched, batch=0)),
    (op.UnsupportedError, "Gemm: a tile of 96 x 128 is not supported; M must be 64, 128, 192 or 256",
     lambda: op.Gemm(**F16).construct({"threadblock_shape": [96, 128, 64]})),
    (op.LayoutError, "Gemm.run: A is missing; pass it to the call or to the plan", run(op.Gemm(**F16))),
    (op.DtypeError, "Gemm.run: A: expected an array (torch, cupy, numpy", run(op.Gemm(**F16), [[1.0]], B)),
    (op.EpilogueError, "alpha must be a number, got 'a'", run(op.Gemm(**F16), A, B, alpha="a")),
    (op.AlignmentError,
     "Gemm.run: A has an address of 8 mod 16, but TMA needs 0",
     lambda: with_tile().run(odd_address(), B, device="cpu")),
    (op.AlignmentError,
     "Gemm.run: B has a row stride of 510 bytes, but TMA needs a multiple of 16",
     lambda: with_tile().run(A, zeros(64, 255), device="cpu")),
    (op.AlignmentError,
     "Gemm.run: D has lines of 510 bytes, but TMA stores multiples of 16",
     lambda: with_tile().run(A, B[:, :255], None, zeros(128, 264)[:, :255], device="cpu")),
    (op.UnsupportedError, "split_k=0 is not supported; pass at least 1 slice",
     run(op.Gemm(**F16), A, B, split_k=("serial", 0))),
    (op.UnsupportedError, "split_k=('some', 2) is not supported",
     run(op.Gemm(**F16), A, B, split_k=("some", 2))),
    (op.UnsupportedError, "split_k='stream' does not support a batch; pass a number of slices, such as split_k=2",
     run(op.Gemm(**F16), zeros(3, 8, 8), zeros(3, 8, 8), split_k="stream")),
    (op.DeviceError, 'Gemm.run: no GPU was found; pass device="cpu" to run on the interpreter',
     lambda: op.Gemm(**F16).run(A, B)),
    (op.DeviceError, "Gemm.bind: the arrays are in CPU memory; pass arrays on a GPU",
     lambda: op.Gemm(**F16).bind(A, B, None, zeros(128, 256))),
    # Plans: properties.
    (op.UnsupportedError, (
        "opclass='vector' is not supported; use one of tensor_op, simt"
    ), set_property("opclass", "vector")),
    (op.UnsupportedError, "Gemm: opclass simt supports f32 and f64 only, but A and B have f16; use opclass tensor_op",
     set_property("opclass", "simt")),
    (op.UnsupportedError, "split_k='stream' needs wgmma kernels of sm_90, but the tile uses sm_120 (kernel_cc=120)",
     run(op.Gemm(**F16, kernel_cc=120), A, B, split_k="stream")),
    (op.UnsupportedError, "math_operation='add' is not supported", set_property("math_operation", "add")),
    (op.UnsupportedError, "Gemm: multiply_add_fast_f16 supports f32 only, got f16",
     set_property("math_operation", "multiply_add_fast_f16")),
    (op.EpilogueError, 'activation "swish" is not supported; silu is x * sigmoid(x)',
     set_property("activation", "swish")),
    (op.EpilogueError, "epilogue_visitor=3 is not a function",
     set_property("epilogue_visitor", 3)),
    (op.UnsupportedError, "swizzling_functor=4 is not a swizzle; use one such as op.IdentitySwizzle4",
     set_property("swizzling_functor", 4)),
    (op.UnsupportedError, "tile_description has no field 'tile'",
     set_property("tile_description", {"tile": 3})),
    (op.UnsupportedError, "ir: stage 'ptx' is unknown; use one of cute, expanded, arch, base, llvm",
     lambda: op.Gemm(**F16).ir("ptx")),
    # Descriptions.
    (op.UnsupportedError, "Gemm: a tile of 96 x 128 is not supported; M must be 64, 128, 192 or 256",
     tiled([96, 128, 64])),
    (op.UnsupportedError,
     "Gemm: the kernel needs 278608 bytes of shared memory (5 stages of 49152, C 32768, barriers 80); at most 232448 "
     "are available, use fewer stages",
     tiled([128, 256, 64], op.MathInstruction([64, 256, 16], "f16", "f16", "f32"), stages=5)),
    (op.UnsupportedError, "Gemm: tile K is 16; it must be 64 elements (128 bytes) or 32",
     tiled([128, 128, 16])),
    (op.UnsupportedError, "Gemm: tile N is 24; it must be a multiple of 16 (with a 32-bit output and",
     tiled([128, 24, 64], op.MathInstruction([64, 24, 16], "f16", "f16", "f32"))),
    (op.ShapeError, "threadblock_shape is [128, 128]; it must be three positive integers", tiled([128, 128])),
    (op.UnsupportedError, "Gemm: instruction_shape [64, 128, 16] is not supported for f16; use [64, 96, 16]",
     tiled([128, 96, 64])),
    (op.UnsupportedError, "Gemm: warp_count is [2, 2, 1]",
     lambda: op.Gemm(**F16).construct(op.TileDescription([128, 128, 64], 4, [2, 2, 1], HALF))),
    (op.UnsupportedError, "Gemm: tile_scheduler 'other' with parts=1 is not supported",
     tiled([128, 128, 64], tile_scheduler="other")),
    (op.UnsupportedError, "Gemm: epilogue_schedule 'late' is not supported; use 'deferred' or 'immediate'",
     tiled([128, 128, 64], epilogue_schedule="late")),
    (op.UnsupportedError, "Gemm: instruction_shape [64, 128, 16] does not suit simt",
     tiled([128, 128, 64], op.MathInstruction([64, 128, 16], "f16", "f16", "f32", "simt"))),
    (op.UnsupportedError, "Gemm: no mma.sync 16x8x32 kernel supports f16 with f32 accumulation and f16 results",
     tiled([128, 128, 32], op.MathInstruction([16, 8, 32], "f16", "f16", "f32"))),
    (op.UnsupportedError, "Gemm: multiply_add_saturate supports 8-bit integers only, got f16",
     set_property("math_operation", "multiply_add_saturate")),
    (op.UnsupportedError, "Gemm: multiply_add_fast_f32 supports f32 on tensor cores only, got f16",
     tiled([128, 128, 32], op.MathInstruction([16, 8, 16], *["f16"] * 2, "f32", "tensor_op", "multiply_add_fast_f32"))),
    (op.UnsupportedError, "Gemm: a tile of 128 x 128 x 32 with 2 x 2 x 4 warps is not supported",
     lambda: op.Gemm(**F16).construct(op.TileDescription([128, 128, 32], 3, [2, 2, 4], SYNC))),
    (op.UnsupportedError, "Gemm: a stage of 32 x 32 elements is not a multiple of 16 bytes for each of 256 threads",
     lambda: op.Gemm(**F16).construct(op.TileDescription([32, 32, 32], 3, [2, 2, 2], SYNC))),
    (op.UnsupportedError, "Gemm: a stage of 32 x 8 elements is not a multiple of 16 bytes for each of 256 threads",
     lambda: op.GemmOperationUniversal(
         90, op.TileDescription([32, 32, 8], 2, None, op.MathInstruction([1, 1, 1], "f64", "f64", "f64", "simt")),
         *[op.TensorDescription("f64", "row", 1)] * 3)),
    (op.UnsupportedError, "Gemm: the tile uses wgmma, which sm_80 lacks; use an mma.sync tile",
     lambda: op.GemmOperationUniversal(80, op.TileDescription([128, 128, 64], 4, None, HALF),
                                       *[op.TensorDescription("f16", "row", 8)] * 3)),
    (op.EpilogueError, "Gemm: epilogue_functor is LinearCombination('f32', 8)",
     lambda: op.GemmOperationUniversal(90, op.TileDescription([128, 128, 64], 4, None, HALF),
                                       *[op.TensorDescription("f16", "row", 8)] * 3,
                                       op.LinearCombination("f32", 8, "f32", "f32"))),
    (op.ShapeError, "GemmArguments: A has shape (4095,); it must have (64, 64) for this problem_size",
     lambda: op.GemmArguments(op.Gemm(**F16).construct(), (64, 64, 64), zeros(4095), zeros(4096), device="cpu")),
    (op.ShapeError, "GemmArguments: A has 2 matrices, but batch is 3; they must be equal",
     lambda: op.GemmArguments(op.Gemm(**F16).construct(), (8, 8, 8), [zeros(64)] * 2, [zeros(64)] * 3,
                              gemm_mode=op.Mode.Array, batch=3, device="cpu")),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "message", "do"), CASES, ids=[m[:60] for _, m, _ in CASES])
def test_refused(kind: type[op.OpError], message: str, do: Callable[[], object]) -> None:
    with pytest.raises(op.OpError) as told:
        do()
    assert type(told.value) is kind and message in str(told.value), str(told.value)
    assert told.value.__suppress_context__ or told.value.__context__ is None


def test_a_gpu_without_wgmma(monkeypatch: pytest.MonkeyPatch) -> None:
    class Other:
        def capability(self, device: int) -> tuple[int, int]:
            return 8, 6

    monkeypatch.setattr(cuda, "driver", Other)
    with pytest.raises(op.UnsupportedError) as told:
        op.Gemm(**F16).run(A, B)
    assert str(told.value) == (
        'Gemm.run: wgmma kernels need sm_90, but the GPU is sm_86; use kernel_cc=80, or device="cpu"'
    )


def test_tensors_that_need_gradients() -> None:
    """Runs of plans have no gradients, and name the function that has."""
    torch = pytest.importorskip("torch")
    x, image = torch.zeros(16, 16).half().requires_grad_(), torch.zeros(1, 8, 8, 16).half().requires_grad_()
    filters = torch.zeros(16, 3, 3, 16).half()
    for plan, given, name in (
        (op.Gemm(**F16), (x, x), "mm"), (op.GroupedGemm(element="f16", layout="row"), ([x], [x]), "grouped_mm"),
        (op.Conv2dFprop(element="f16"), (image, filters), "conv2d"),
        (op.Conv2dDgrad(element="f16"), (image, filters), "conv2d_input"),
    ):  # fmt: skip
        with pytest.raises(op.UnsupportedError, match=f"plan have no gradients; use op.{name}, or call under"):
            plan.run(*given, device="cpu")
