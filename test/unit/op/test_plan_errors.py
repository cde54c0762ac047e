"""What plans and descriptions refuse: message and class, before anything is compiled or written."""

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
    """Return a matrix whose rows are of whole 16 bytes, and whose address is not."""
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
    # Plans: what they are planned for.
    (op.DtypeError, "Gemm: expected one of B, element_B, element", lambda: op.Gemm(element_A="f16", layout="row")),
    (op.LayoutError, "Gemm: expected one of A, layout_A, layout", lambda: op.Gemm(element="f16")),
    (op.DtypeError, "Gemm: expected B or element_B, got both", lambda: op.Gemm(B=B, element_B="f16", **F16)),
    (op.LayoutError, "Gemm: expected A or layout_A, got both", lambda: op.Gemm(A=A, layout_A="row", **F16)),
    (op.DtypeError, "expected an element of f16, bf16, tf32, f32, f64, i8, ui8, i32, f8E4M3FN, f8E5M2, got 'i16'",
     lambda: op.Gemm(element="i16", layout="row")),
    (op.LayoutError, "expected a layout of row or column (also t, n), got 'diagonal'",
     lambda: op.Gemm(element="f16", layout="diagonal")),
    (op.UnsupportedError, "expected no interleaved matrices",
     lambda: op.Gemm(element="i8", layout=op.ColumnMajorInterleaved32)),
    (op.LayoutError,
     "Gemm: expected B contiguous along K for f8E4M3FN (wgmma reads 8-bit operands along K only), got row-major; mm() "
     "takes it", lambda: op.Gemm(element="f8E4M3FN", layout="row", element_C="bf16")),
    (op.LayoutError, "Gemm: expected A contiguous along K for tf32 (wgmma reads operands of tf32 along K only)",
     lambda: op.Gemm(element="tf32", layout="column")),
    (op.UnsupportedError, "Gemm: expected sums in f32 for bf16, got f16 (wgmma has f16 sums for f16 only)",
     lambda: op.Gemm(element="bf16", layout="row", element_accumulator="f16")),
    (op.UnsupportedError, "Gemm: expected C of f16, row-major, as D, got f32, row-major",
     lambda: op.Gemm(element="f16", layout="row", element_C="f32", element_D="f16")),
    (op.UnsupportedError, "Gemm: expected kernel_cc of 80 or 90, got 70", lambda: op.Gemm(**F16, kernel_cc=70)),
    (op.LayoutError, "Gemm: expected A with a contiguous mode, got strides (256, 2)",
     lambda: op.Gemm(A=zeros(64, 256)[:, ::2], element="f16", layout="row")),
    (op.ShapeError, "Gemm: expected A of rank 2, or 3 of a batch, got (8,)", lambda: op.Gemm(A=zeros(8), **F16)),
    # Plans: the arrays of a call.
    (op.DtypeError, "Gemm.run: expected A of f16, row-major, as planned, got f32, row-major",
     run(op.Gemm(**F16), A.astype(np.float32), B)),
    (op.LayoutError, "Gemm.run: expected B of f16, row-major, as planned, got f16, column-major",
     run(op.Gemm(**F16), A, zeros(256, 64).T)),
    (op.ShapeError, "Gemm.run: expected B of (64, N), as A is (128, 64), got (32, 256)",
     run(op.Gemm(**F16), A, zeros(32, 256))),
    (op.ShapeError, "Gemm.run: expected as many matrices in B as in A (3) or one, got 4",
     run(op.Gemm(**F16), zeros(3, 8, 8), zeros(4, 8, 8))),
    (op.ShapeError, "Gemm.run: expected D of (128, 256), got (128, 255)",
     run(op.Gemm(**F16), A, B, None, zeros(128, 255))),
    (op.ShapeError, "Gemm.run: expected C of (128, 256), got (128, 1)",
     run(op.Gemm(**F16, beta=1.0), A, B, zeros(128, 1))),
    (op.ShapeError, "Gemm.run: expected C where beta is 0.5", run(op.Gemm(**F16), A, B, beta=0.5)),
    (op.ShapeError, "Gemm.run: expected C where beta is 0.5",
     run(op.Gemm(**F16, element_C="void", element_D="f16"), A, B, zeros(128, 256), beta=0.5)),
    (op.ShapeError, "Gemm.run: expected a bias of (256,), (1, 256) or (128, 1), got (128,)",
     run(op.Gemm(**F16), A, B, bias=zeros(128))),
    (op.LayoutError, "Gemm.run: D shares memory with A; only C may be D",
     run(op.Gemm(**F16), A[:64], zeros(64, 64), None, A[32:96])),
    (op.LayoutError, "Gemm.run: D shares memory with C, which is not the same matrix",
     run(op.Gemm(**F16, beta=1.0), A, B, WIDE[1:129], WIDE[:128])),
    (op.LayoutError, "Gemm.run: D shares memory with bias; only C may be D",
     run(op.Gemm(**F16), A, B, None, WIDE[:128], bias=WIDE[3])),
    (op.LayoutError, "Gemm.run: D shares memory with C, which is not the same matrix",
     lambda: visited({"C": WIDE[1:129], "D": WIDE[:128]})),
    (op.LayoutError, "Gemm.run: D shares memory with A; only C may be D",
     lambda: visited({"C": WIDE[:128], "D": WIDE[:128]}, WIDE[:128, :64])),
    (op.ShapeError, "GemmArguments: expected problem_size of (M, N, K), 0 or more each, got (128, 256)",
     lambda: op.GemmArguments(op.Gemm(**F16).construct(), (128, 256), A, B, device="cpu")),
    (op.ShapeError, "GemmArguments: expected a batch of 1 or more, got 0",
     lambda: op.GemmArguments(op.Gemm(**F16).construct(), (128, 256, 64), A, B, gemm_mode=op.Mode.Batched, batch=0)),
    (op.UnsupportedError, "Gemm: a tile of 96 x 128 is not supported; M must be 64, 128, 192 or 256",
     lambda: op.Gemm(**F16).construct({"threadblock_shape": [96, 128, 64]})),
    (op.LayoutError, "Gemm.run: expected A, as the plan has none", run(op.Gemm(**F16))),
    (op.DtypeError, "Gemm.run: A: expected an array (torch, cupy, numpy", run(op.Gemm(**F16), [[1.0]], B)),
    (op.EpilogueError, "alpha: expected a number, got 'a'", run(op.Gemm(**F16), A, B, alpha="a")),
    (op.AlignmentError,
     "Gemm.run: A begins at an address of 8 mod 16; TMA needs 16: use alignment_A=4, or another tile_description",
     lambda: with_tile().run(odd_address(), B, device="cpu")),
    (op.AlignmentError,
     "Gemm.run: B has rows of 510 bytes; TMA needs whole 16: use alignment_B=1, or another tile_description",
     lambda: with_tile().run(A, zeros(64, 255), device="cpu")),
    (op.UnsupportedError, "split_k: expected at least 1 part, got 0",
     run(op.Gemm(**F16), A, B, split_k=("serial", 0))),
    (op.UnsupportedError, "split_k: expected parts, or (serial, parallel or stream, parts), got ('some', 2)",
     run(op.Gemm(**F16), A, B, split_k=("some", 2))),
    (op.UnsupportedError, "split_k: there is no kernel of stream-K for this tile yet",
     run(op.Gemm(**F16), zeros(3, 8, 8), zeros(3, 8, 8), split_k="stream")),
    (op.DeviceError, 'Gemm.run: no GPU here: device="cpu" runs it on the interpreter',
     lambda: op.Gemm(**F16).run(A, B)),
    (op.DeviceError, "bind: expected arrays in GPU memory, got one in CPU memory",
     lambda: op.Gemm(**F16).bind(A, B, None, zeros(128, 256))),
    # Plans: properties.
    (op.UnsupportedError, "opclass: expected one of tensor_op, simt, got 'vector'", set_property("opclass", "vector")),
    (op.UnsupportedError, "math_operation: expected one of multiply_add, ", set_property("math_operation", "add")),
    (op.UnsupportedError, "Gemm: expected f32 for multiply_add_fast_f16, got f16",
     set_property("math_operation", "multiply_add_fast_f16")),
    (op.EpilogueError, 'activation "swish" is not supported; silu is x * sigmoid(x)',
     set_property("activation", "swish")),
    (op.EpilogueError, "epilogue_visitor: expected a function of accum or of (value, row, column), got 3",
     set_property("epilogue_visitor", 3)),
    (op.UnsupportedError, "swizzling_functor: expected a swizzle, op.IdentitySwizzle4 say, got 4",
     set_property("swizzling_functor", 4)),
    (op.UnsupportedError, "tile_description: expected fields of threadblock_shape, stages,",
     set_property("tile_description", {"tile": 3})),
    (op.UnsupportedError, "ir: expected a stage of cute, expanded, arch, base, llvm, got 'ptx'",
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
    (op.ShapeError, "threadblock_shape: expected three positive numbers, got [128, 128]", tiled([128, 128])),
    (op.UnsupportedError, "Gemm: expected an instruction_shape of [64, 96, 16] for f16, got [64, 128, 16]",
     tiled([128, 96, 64])),
    (op.UnsupportedError, "Gemm: expected a warp_count of [8, 1, 1] for a tile of 128 x 128 (4 warps for 64 rows), got",
     lambda: op.Gemm(**F16).construct(op.TileDescription([128, 128, 64], 4, [2, 2, 1], HALF))),
    (op.UnsupportedError, "Gemm: expected a tile_scheduler of persistent, stream_k, or split_k with parts",
     tiled([128, 128, 64], tile_scheduler="other")),
    (op.UnsupportedError, "Gemm: expected an epilogue_schedule of deferred or immediate, got 'late'",
     tiled([128, 128, 64], epilogue_schedule="late")),
    (op.UnsupportedError, "Gemm: expected an instruction_shape of [1, 1, 1] for simt, [64, N, K], [16, 8, K]",
     tiled([128, 128, 64], op.MathInstruction([64, 128, 16], "f16", "f16", "f32", "simt"))),
    (op.UnsupportedError, "there is no kernel of mma.sync 16x8x32 for f16, sums of f32, to f16 yet: [16, 8, 16] and",
     tiled([128, 128, 32], op.MathInstruction([16, 8, 32], "f16", "f16", "f32"))),
    (op.UnsupportedError, "Gemm: expected 8-bit integers for multiply_add_saturate, got f16",
     set_property("math_operation", "multiply_add_saturate")),
    (op.UnsupportedError, "Gemm: expected f32 by tensor cores for multiply_add_fast_f32, got f16",
     tiled([128, 128, 32], op.MathInstruction([16, 8, 16], *["f16"] * 2, "f32", "tensor_op", "multiply_add_fast_f32"))),
    (op.UnsupportedError, "Gemm: expected a tile of multiples of 32 x 32 x 64 for warps of 2 x 2 x 4, 16 at most, got",
     lambda: op.Gemm(**F16).construct(op.TileDescription([128, 128, 32], 3, [2, 2, 4], SYNC))),
    (op.UnsupportedError, "Gemm: expected stages of whole 16 bytes for each of 256 threads, got 32 x 32 elements",
     lambda: op.Gemm(**F16).construct(op.TileDescription([32, 32, 32], 3, [2, 2, 2], SYNC))),
    (op.UnsupportedError, "Gemm: expected stages of whole 16 bytes for each of 256 threads, got 32 x 8 elements",
     lambda: op.GemmOperationUniversal(
         90, op.TileDescription([32, 32, 8], 2, None, op.MathInstruction([1, 1, 1], "f64", "f64", "f64", "simt")),
         *[op.TensorDescription("f64", "row", 1)] * 3)),
    (op.UnsupportedError, "Gemm: expected an instruction of sm_80, got wgmma, which needs sm_90",
     lambda: op.GemmOperationUniversal(80, op.TileDescription([128, 128, 64], 4, None, HALF),
                                       *[op.TensorDescription("f16", "row", 8)] * 3)),
    (op.EpilogueError, "Gemm: expected an epilogue_functor to f16, as D, got LinearCombination('f32', 8)",
     lambda: op.GemmOperationUniversal(90, op.TileDescription([128, 128, 64], 4, None, HALF),
                                       *[op.TensorDescription("f16", "row", 8)] * 3,
                                       op.LinearCombination("f32", 8, "f32", "f32"))),
    (op.ShapeError, "GemmArguments: expected A of (64, 64), as problem_size says, got (4095,)",
     lambda: op.GemmArguments(op.Gemm(**F16).construct(), (64, 64, 64), zeros(4095), zeros(4096), device="cpu")),
    (op.ShapeError, "GemmArguments: expected 3 matrices of A, as batch says, got 2",
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
        'Gemm.run: expected a GPU of sm_90 (wgmma), got sm_86: kernel_cc=80 runs on it, device="cpu" anywhere'
    )  # fmt: skip
