"""Errors of GEMM functions: class and message, raised before anything is compiled or written."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from refused_calls import OnGpu

from cute_dialect import op
from cute_dialect.kernels.epilogue.activations import PLAIN
from cute_dialect.op.execute import gemm as products
from cute_dialect.op.execute import kernel_cache
from cute_dialect.op.select import gemm_dispatch
from cute_dialect.runtime import driver as cuda


@pytest.fixture(autouse=True)
def nothing(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Fail if anything is compiled, and pretend that the GPU is an H200."""

    def failing(*_: object, **__: object) -> None:
        raise AssertionError("something is compiled")

    monkeypatch.setattr(products, "launcher_of", failing)
    monkeypatch.setattr(kernel_cache, "load_or_compile", failing)
    monkeypatch.setattr(cuda, "driver", lambda: Gpu())
    monkeypatch.setattr(cuda, "clusters_at_once", lambda number, size: 120 // size)
    monkeypatch.setattr(gemm_dispatch, "tell_clusters", lambda *_: None)  # must not affect later tests
    gemm_dispatch.forget_gpus()
    yield
    gemm_dispatch.forget_gpus()


class Gpu:
    """A fake GPU driver."""

    def __init__(self, capability: tuple[int, int] = (9, 0)) -> None:
        self.capability = lambda number: capability  # pyright: ignore[reportUnknownLambdaType]

    def name(self, number: int) -> str:
        return "NVIDIA H200"

    def multiprocessors(self, number: int) -> int:
        return 132


def half(*shape: int) -> np.ndarray[Any, Any]:
    return np.full(shape, 7, np.float16)


A, B = half(128, 64), half(64, 256)
BATCH = half(3, 128, 64)
MEMORY = half(3, 512, 512)
ACTIVATIONS = ", ".join(PLAIN)
EXPERTS, ZEROS = half(2, 64, 256), np.zeros((128, 256), np.float16)
A8, B8 = (np.zeros(shape, ml_dtypes.float8_e4m3fn) for shape in ((128, 256), (256, 256)))
E8, E8B = (np.ones((rows, 8), np.uint8).view(ml_dtypes.float8_e8m0fnu) for rows in (128, 256))
ONES = np.ones((256, 2), np.float32)
IMAGE, FILTER = half(1, 8, 8, 16), half(16, 1, 1, 16)
_PIXELS = half(1040)
PIXELS = _PIXELS[:1024].reshape(1, 8, 8, 16), _PIXELS[16:].reshape(1, 8, 8, 16)


def ADDED(accum: Any, C: Any) -> Any:
    return accum + C


def KEPT(accum: Any, C: Any) -> Any:
    return {"D": accum, "F": accum + C}


RESULTS = "f16, bf16, f32, f8E4M3FN or f8E5M2"
Case = tuple[Callable[..., Any], tuple[Any, ...], dict[str, Any], type[op.OpError], str]

CASES: list[Case] = [
    # shapes
    (op.mm, (A, half(32, 256)), {}, op.ShapeError, (
        "mm: b has shape (32, 256), but a has shape (128, 64); pass b of (64, N)"
    )),
    (op.bmm, (BATCH, half(3, 32, 9)), {}, op.ShapeError,
     "bmm: b has shape (3, 32, 9), but a has shape (3, 128, 64); pass b of (L, 64, N)"),
    (op.mm, (half(4, 128, 64), B), {}, op.ShapeError,
     "mm: a has shape (4, 128, 64), but rank 2 is needed; use bmm or matmul for batches"),
    (op.mm, (half(64), B), {}, op.ShapeError, "mm: a has shape (64,), but rank 2 is needed; use matmul for vectors"),
    (op.mm, (A, half(1, 1, 64, 256)), {}, op.ShapeError,
     "mm: b has shape (1, 1, 64, 256), but rank 2 is needed; use matmul for other ranks"),
    (op.addmm, (half(4, 8), half(4, 9), half(7, 8)), {}, op.ShapeError,
     "addmm: b has shape (7, 8), but a has shape (4, 9); pass b of (9, N)"),
    (op.baddbmm, (half(1, 4, 8), half(1, 4, 9), half(1, 7, 8)), {}, op.ShapeError,
     "baddbmm: b has shape (1, 7, 8), but a has shape (1, 4, 9); pass b of (L, 9, N)"),
    (op.linear, (half(4, 8), half(5, 8).astype("float32")), {}, op.DtypeError,
     "linear: weight.T has dtype f32, but x has dtype f16; pass operands of one dtype"),
    (op.bmm, (A, half(3, 64, 256)), {}, op.ShapeError, (
        "bmm: a has shape (128, 64), but rank 3 is needed; use mm for matrices"
    )),
    (op.bmm, (BATCH, half(4, 64, 256)), {}, op.ShapeError,
     "bmm: b has 4 matrices, but a has 3; pass 3, or one"),
    (op.bmm, (BATCH, half(0, 64, 256)), {}, op.ShapeError,
     "bmm: b has 0 matrices, but a has 3; pass 3, or one"),
    (op.mm, (A, B, half(128, 255)), {}, op.ShapeError, "mm: out has shape (128, 255); pass out of shape (128, 256)"),
    (op.bmm, (BATCH, half(1, 64, 256), half(128, 256)), {}, op.ShapeError,
     "bmm: out has shape (128, 256); pass out of shape (3, 128, 256)"),
    (op.mm, (A, B), {"bias": half(128)}, op.ShapeError,
     "mm: bias has shape (128,); pass a bias of (256,), (1, 256) or (128, 1)"),
    (op.mm, (A, B), {"c": half(128, 255)}, op.ShapeError,
     "mm: c has shape (128, 255); pass an array that broadcasts to (128, 256)"),
    (op.addmm, (half(1, 128, 256), A, B), {}, op.ShapeError,
     "addmm: c has shape (1, 128, 256); pass an array that broadcasts to (128, 256)"),
    (op.baddbmm, (half(2, 128, 256), BATCH, half(1, 64, 256)), {}, op.ShapeError,
     "baddbmm: c has shape (2, 128, 256); pass an array that broadcasts to (3, 128, 256)"),
    (op.linear, (A, half(256, 63)), {}, op.ShapeError,
     "linear: x has shape (128, 64) and weight has shape (256, 63); pass x of (…, K) and weight of (N, K)"),
    (op.matmul, (half(), B), {}, op.ShapeError, (
        "matmul: a has shape () and b has shape (64, 256); pass arrays of rank 1 or more"
    )),
    (op.matmul, (half(2, 128, 64), half(3, 64, 8)), {}, op.ShapeError,
     "matmul: cannot multiply shapes (2, 128, 64) and (3, 64, 8); pass a of (…, M, K) and b of (…, K, N), with "
     "batches that broadcast"),
    # types
    (op.mm, (A, B.astype(ml_dtypes.bfloat16)), {}, op.DtypeError, (
        "mm: b has dtype bf16, but a has dtype f16; pass operands of one dtype"
    )),
    (op.mm, (A.astype(np.int16), B.astype(np.int16)), {}, op.DtypeError,
     "mm: operands of i16 are not supported; use f16, bf16, f32, f8E4M3FN, f8E5M2, i8, ui8, f64"),
    (op.mm, (A, B), {"dtype": np.float64}, op.DtypeError,
     f"mm: a result of f64 is not supported for f16 operands; use {RESULTS}"),
    (op.mm, (A, B, half(128, 256).astype(np.float64)), {}, op.DtypeError,
     f"mm: a result of f64 is not supported for f16 operands; use {RESULTS}"),
    (op.mm, (A, B, half(128, 256)), {"dtype": "f32"}, op.DtypeError, (
        "mm: dtype is f32, but out has dtype f16; omit dtype"
    )),
    (op.mm, (A, B), {"bias": np.zeros(256)}, op.DtypeError,
     "mm: bias has dtype f64; pass a bias of f16, bf16, f32, f8E4M3FN, f8E5M2, i8, ui8 or i32"),
    (op.mm, (A, [[1.0]]), {}, op.DtypeError,
     "mm: b: expected an array (torch, cupy, numpy, or anything with DLPack or the CUDA array interface), got list; "
     "numpy.asarray(…, dtype=…) makes one"),
    (op.mm, (A.astype(np.complex64), B), {}, op.DtypeError,
     "mm: a: numpy arrays of complex64 are not supported (supported: float64, float32, float16, bfloat16, "
     "float8_e4m3fn, float8_e5m2, float8_e8m0fnu, int64, int32, int16, int8, uint64, uint32, uint16, uint8, bool): "
     "pass x.astype(…)"),
    (op.mm, (A, B), {"alpha": "2"}, op.DtypeError, "mm: alpha is a str; pass a number"),
    (op.mm, (A, B), {"beta": None, "c": half(128, 256)}, op.DtypeError, "mm: beta is a NoneType; pass a number"),
    (op.linear, ([[1.0]], B), {}, op.DtypeError, "linear: x is of type list; pass an array with a reshape method"),
    # memory
    (op.mm, (half(128, 512)[:, ::8], B), {}, op.LayoutError,
     "mm: a has strides (512, 8), but one must be 1; pass a contiguous copy"),
    (op.bmm, (BATCH, half(3, 128, 512)[:, ::2, ::2]), {}, op.LayoutError,
     "bmm: b has strides (1024, 2), but one must be 1; pass a contiguous copy"),
    (op.mm, (A, B, half(128, 512)[:, ::2]), {}, op.LayoutError,
     "mm: out has strides (512, 2), but one must be 1; pass a contiguous copy"),
    (op.mm, (A, B, np.lib.stride_tricks.as_strided(half(512), (128, 256), (2, 2))), {}, op.LayoutError,
     "mm: out has strides (1, 1), so its elements share memory; pass a contiguous out"),
    (op.bmm, (BATCH, half(3, 64, 256), np.lib.stride_tricks.as_strided(MEMORY, (3, 128, 256), (0, 512, 2))), {},
     op.LayoutError, "bmm: out has strides (0, 256, 1), so its elements share memory; pass a contiguous out"),
    (op.mm, (MEMORY[0, :128, :64], B, MEMORY[0, :128, :256]), {}, op.LayoutError,
     "mm: out shares memory with a; pass a separate out (only c may be out)"),
    (op.mm, (A, MEMORY[0, :64, :256], MEMORY[0, 63:191, 255:511]), {}, op.LayoutError,
     "mm: out shares memory with b; pass a separate out (only c may be out)"),
    (op.mm, (A, B, MEMORY[0, :128, :256]), {"bias": MEMORY[0, 5, :256]}, op.LayoutError,
     "mm: out shares memory with bias; pass a separate out (only c may be out)"),
    (op.mm, (A, B, MEMORY[0, :128, :256]), {"c": MEMORY[0, 1:129, :256]}, op.LayoutError,
     "mm: out shares memory with c, but is not the same matrix; pass c itself or a copy"),
    (op.mm, (A, B, MEMORY[0, :128, :256]), {"c": MEMORY[0, :1, :256]}, op.LayoutError,
     "mm: out shares memory with c, but is not the same matrix; pass c itself or a copy"),
    (op.mm, (A, B, MEMORY[0, :128, :256]), {"epilogue": ADDED, "args": {"C": MEMORY[0, 1:129, :256]}}, op.LayoutError,
     "mm: D shares memory with C; only an argument that is exactly the same matrix may be overwritten"),
    (op.mm, (A, B, MEMORY[0, :128, :256]), {"epilogue": ADDED, "args": {"C": MEMORY[0, 5, :256]}}, op.LayoutError,
     "mm: D shares memory with C; only an argument that is exactly the same matrix may be overwritten"),
    (op.bmm, (BATCH, half(3, 64, 256)),
     {"epilogue": KEPT, "args": {"C": MEMORY[:, :128, :256], "F": MEMORY[:, 1:129, :256]}}, op.LayoutError,
     "bmm: F shares memory with C; only an argument that is exactly the same matrix may be overwritten"),
    (op.mm, (A, B, MEMORY[0, :128, :256]), {"epilogue": KEPT, "args": {"C": A[:, :1], "F": MEMORY[0, 1:129, :256]}},
     op.LayoutError, "mm: F shares memory with D; pass separate arrays"),
    (op.mm, (MEMORY[0, :128, :64], B), {"epilogue": KEPT, "args": {"C": A[:, :1], "F": MEMORY[0, 1:129, :256]}},
     op.LayoutError, "mm: F shares memory with a; pass separate arrays"),
    (op.grouped_mm, (A, EXPERTS, [64, 128]), {"out": MEMORY[0, :128, :256], "c": MEMORY[0, 1:129, :256]},
     op.LayoutError, "grouped_mm: out shares memory with c, but is not the same matrix; pass c itself or a copy"),
    (op.grouped_mm, (A, EXPERTS, ZEROS[3, :4].view(np.int32)), {"out": ZEROS},
     op.LayoutError, "grouped_mm: out shares memory with offs; pass a separate out (only c may be out)"),
    (op.grouped_mm, (A, EXPERTS, [64, 128]),
     {"out": MEMORY[0, :128, :256], "epilogue": ADDED, "args": {"C": MEMORY[0, 1:129, :256]}},
     op.LayoutError, (
         "grouped_mm: D shares memory with C; only an argument that is exactly the same matrix may be overwritten"
     )),
    (op.grouped_mm, ([A], [B]), {"out": [MEMORY[0, :128, :256]], "c": [MEMORY[0, 1:129, :256]]}, op.LayoutError,
     "grouped_mm: D shares memory with C, but is not the same matrix; pass C itself or a copy (problem 0)"),
    (op.mm_array, ([A], [B], [MEMORY[0, :128, :256]]), {"bias": MEMORY[0, 7, :256]}, op.LayoutError,
     "mm_array: D shares memory with bias; pass a separate D (only C may be D)"),
    (op.conv2d, (IMAGE, FILTER), {"out": PIXELS[0], "epilogue": ADDED, "args": {"C": PIXELS[1]}}, op.LayoutError,
     "conv2d: D shares memory with C; only an argument that is exactly the same matrix may be overwritten"),
    # epilogues
    (op.scaled_mm, (A8, B8, np.ones((128, 8), np.float32), ONES[:2, :2]), {}, op.UnsupportedError,
     "scaled_mm: scale_a has dtype f32 and shape (128, 8), scales of blocks of 32 along K; pass scales of "
     "float8_e8m0fnu, or one scale per matrix, per row, or per block of 128 along K"),
    (op.scaled_mm, (A8, B8, np.ones((128 * 16,), np.float32), ONES[:2, :2]), {}, op.UnsupportedError,
     "scaled_mm: scale_a has dtype f32 and shape (2048,), scales of blocks of 16 along K; pass a and b of "
     "float4_e2m1fn_x2 with scales of f8E4M3FN, or one scale per matrix, per row, or per block of 128 along K"),
    (op.scaled_mm, (A8, B8, E8, np.ones((255, 8), np.uint8).view(E8.dtype)), {}, op.ShapeError,
     "scaled_mm: scale_b has shape (255, 8) for 256 columns and K = 256; pass (256, 8), one scale per 32 elements "
     "along K, or (2048,), blocks of 128 x 4 scales"),
    (op.scaled_mm, (A8[:33, :80], B8[:80], E8[:33, :2], E8), {}, op.ShapeError,
     "scaled_mm: scale_a has shape (33, 2) for 33 rows and K = 80; pass (33, 3), one scale per 32 elements along K, or "
     "(512,), blocks of 128 x 4 scales; or, for coarser scales, (1,) or (33, 1)"),
    (op.scaled_mm, (A8, B8, np.ones(2047, np.uint8).view(E8.dtype), E8B), {}, op.ShapeError,
     "scaled_mm: scale_a has shape (2047,) for 128 rows and K = 256; pass (128, 8), one scale per 32 elements along K, "
     "or (1024,), blocks of 128 x 4 scales; or, for coarser scales, (1,), (128, 1) or (128, 2)"),
    (op.scaled_mm, (A8, B8, E8, E8), {"recipe": "row"}, op.UnsupportedError,
     "scaled_mm: scale_a has dtype float8_e8m0fnu and shape (128, 8), scales of blocks of 32 along K; pass "
     'recipe="block1x32", or one scale per matrix, per row, or per block of 128 along K'),
    (op.scaled_mm, (A8.view(np.uint8), B8.view(np.uint8), ONES[:128], ONES), {}, op.DtypeError,
     "scaled_mm: scale_a has dtype f32; pass float8_e8m0fnu (blocks of 32 along K) or f8E4M3FN (blocks of 16)"),
    (op.scaled_mm, (A8.view(np.uint8), B8, E8, E8), {}, op.DtypeError,
     "scaled_mm: b has dtype f8E4M3FN; with scales of blocks of 32 or 16 pass float4_e2m1fn_x2 (or uint8 of two "
     "elements)"),
    (op.scaled_mm, (A, B8, E8, E8), {"recipe": "block1x32"}, op.DtypeError,
     "scaled_mm: a has dtype f16; with scales of blocks of 32 or 16 pass f8E4M3FN or f8E5M2, or float4_e2m1fn_x2 (or "
     "uint8 of two elements)"),
    (op.scaled_mm, (A8.view(np.uint8), B8.view(np.uint8), E8, E8.view(A8.dtype)), {}, op.DtypeError,
     "scaled_mm: scale_b has dtype f8E4M3FN, but scale_a has dtype float8_e8m0fnu; pass one dtype"),
    (op.scaled_mm, (A8, B8[:128], E8, E8), {}, op.ShapeError,
     "scaled_mm: a has shape (128, 256) and b has shape (128, 256); pass (M, K) and (K, N)"),
    (op.scaled_mm, (A8, B8, E8, np.ones((256, 8), np.float32)), {}, op.DtypeError,
     "scaled_mm: scale_b has dtype f32; pass float8_e8m0fnu"),
    (op.scaled_mm, (A8, 1, E8, E8), {"recipe": "block1x32"}, op.DtypeError,
     "scaled_mm: b is of type int; pass an array"),
    (op.scaled_mm, (A8, B8, E8, E8), {"recipe": "block1x16"}, op.UnsupportedError,
     "scaled_mm: recipe='block1x16' is not supported for f8E4M3FN with scales of float8_e8m0fnu; use 'block1x32'"),
    (op.scaled_mm, (A8, B8, (E8, E8, E8), E8B), {}, op.ShapeError,
     "scaled_mm: scale_a has 3 parts; pass (scales of blocks, factor of the matrix)"),
    (op.scaled_mm, (A8, B8, E8, E8B), {"dtype": "f8E4M3FN"}, op.DtypeError,
     "scaled_mm: the result has dtype f8E4M3FN; use one of bf16, f16, f32, that of out"),
    (op.scaled_mm, (A8, B8, E8, E8B), {"bias": half(256)}, op.DtypeError,
     "scaled_mm: bias has dtype f16; it must have f32"),
    (op.scaled_grouped_mm, (A8, np.stack([B8, B8]), ONES[:128], np.stack([ONES, ONES]), [64, 128]), {},
     op.UnsupportedError, (
         "scaled_grouped_mm: scale_b of shape (2, 256, 2) is for blocks of 1 x 128, which are not supported; use "
         "blocks of 128 x 128, of shape (2, 2, 2)"
     )),
    (op.scaled_grouped_mm, (A8, np.stack([B8, B8]), np.ones((128, 8), np.float32), ONES[:2, :1], [64, 128]), {},
     op.UnsupportedError, (
         "scaled_grouped_mm: scale_a has dtype f32 and shape (128, 8), scales of blocks of 32 along K; use "
         "scaled_mm with scales of float8_e8m0fnu, or one scale per matrix, per row, or per block of 128 along K"
     )),
    (op.mm, (A, B), {"args": {"x": 1.0}}, op.UnsupportedError, (
        "mm: args has x, but there is no epilogue; pass epilogue"
    )),
    (op.bmm, (BATCH, half(1, 64, 256)), {"args": {"x": 1.0}}, op.UnsupportedError,
     "bmm: args has x, but there is no epilogue; pass epilogue"),
    (op.mm_array, ([A], [B]), {"args": {"x": 1.0}}, op.UnsupportedError,
     "mm_array: args has x, but there is no epilogue; pass epilogue"),
    (op.conv2d, (IMAGE, FILTER), {"args": {"x": 1.0}}, op.UnsupportedError,
     "conv2d: args has x, but there is no epilogue; pass epilogue"),
    (op.mm, (A, B), {"activation": ("relu", 0.5)}, op.EpilogueError,
     f'mm: activation "relu(0.5)" is not supported; relu takes no parameters; use one of {ACTIVATIONS}'),
    (op.mm, (A, B), {"activation": ("leaky_relu", 0.5, 1)}, op.EpilogueError,
     'mm: activation "leaky_relu(0.5, 1.0)" is not supported; leaky_relu takes one parameter, slope; use one of '
     f"{ACTIVATIONS}"),
    (op.mm, (A, B), {"activation": ("elu", "x")}, op.EpilogueError,
     f"mm: activation ('elu', 'x') is not supported; elu takes one parameter, alpha; use one of {ACTIVATIONS}"),
    (op.mm, (A, B), {"activation": "swish"}, op.EpilogueError,
     f'mm: activation "swish" is not supported; silu is x * sigmoid(x); use one of {ACTIVATIONS}'),
    (op.linear, (A, half(256, 64)), {"activation": "GeLU"}, op.EpilogueError,
     f'linear: activation "GeLU" is not supported (did you mean gelu?); use one of {ACTIVATIONS}'),
    (op.mm, (A, B), {"activation": "cube"}, op.EpilogueError,
     f'mm: activation "cube" is not supported; use one of {ACTIVATIONS}'),
    (op.mm, (A, B), {"activation": None, "bias": half(256)}, op.EpilogueError,
     f"mm: activation None is not supported; use one of {ACTIVATIONS}"),
    (op.mm, (A, B), {"hook": "relu"}, op.EpilogueError, "mm: hook is 'relu'; pass a function"),
    (op.linear, (A, half(256, 64)), {"out": half(128, 256)}, op.UnsupportedError,
     "linear: out is not supported; use mm or addmm"),
]  # fmt: skip


@pytest.mark.parametrize("device", [None, "cpu"])
@pytest.mark.parametrize("case", CASES, ids=lambda case: case[4])
def test_invalid_arguments_are_rejected(case: Case, device: str | None) -> None:
    function, arrays, options, error, said = case
    before = [np.copy(x) for x in arrays if isinstance(x, np.ndarray)]
    with pytest.raises(op.OpError) as e:
        function(*arrays, device=device, **options)
    assert (type(e.value), str(e.value)) == (error, said) and isinstance(e.value, ValueError)
    for x, y in zip(before, [x for x in arrays if isinstance(x, np.ndarray)]):
        assert np.array_equal(x.astype(np.complex64), y.astype(np.complex64))


@pytest.mark.parametrize(
    ("arrays", "options", "error", "said"),
    [
        ((OnGpu(64, 32), OnGpu(32, 8, device=1)), {}, op.DeviceError, (
            "b is on cuda:1, but a is on cuda:0; move both to one device"
        )),
        ((OnGpu(64, 32), half(32, 8)), {}, op.DeviceError,
         "b is an array of numpy, but a is one of refused_calls; pass arrays of one library"),
        ((half(64, 32), OnGpu(32, 8)), {}, op.DeviceError,
         "b is an array of refused_calls, but a is one of numpy; pass arrays of one library"),
        ((half(64, 32), half(32, 8)), {"c": OnGpu(64, 8)}, op.DeviceError,
         "c is an array of refused_calls, but a is one of numpy; pass arrays of one library"),
        ((OnGpu(64, 32), OnGpu(32, 8)), {"device": "cpu"}, op.DeviceError,
         'a is on cuda:0, but device="cpu" (or CUTE_DEVICE=cpu) selects the interpreter; move a to the CPU, or pass '
         'device="gpu"'),
        ((OnGpu(64, 32, device=1), OnGpu(32, 8, device=1)), {"device": 0}, op.DeviceError,
         "a is on cuda:1, but device is cuda:0; move a, or omit device"),
        ((OnGpu(64, 32), OnGpu(32, 8)), {}, op.UnsupportedError,
         "cannot allocate an array of refused_calls; pass out"),
        ((OnGpu(64, 32, dtype="<f4"), OnGpu(32, 8, dtype="<f4", at=1 << 30), OnGpu(64, 8, dtype="<f4", at=1 << 20)),
         {"math": "tf32", "c": OnGpu(64, 8, dtype="<f4", at=1 << 22)},
         op.UnsupportedError, (
             "cannot copy an array of refused_calls into the layout that the kernel needs; pass arrays that it reads"
             " in place, see op.explain"
         )),
        ((OnGpu(64, 32), OnGpu(32, 8, at=4096 + 100), OnGpu(64, 8, at=4096 + 4000)), {}, op.LayoutError,
         "out shares memory with a; pass a separate out (only c may be out)"),
        ((OnGpu(64, 32, dtype="<c8"), OnGpu(32, 8)), {}, op.DtypeError, "a: arrays of type '<c8' are not supported"),
    ],
)  # fmt: skip
def test_arrays_on_another_device_are_rejected(
    arrays: tuple[Any, ...], options: dict[str, Any], error: type[op.OpError], said: str
) -> None:  # fmt: skip
    with pytest.raises(op.OpError) as e:
        op.mm(*arrays, **options)
    assert (type(e.value), str(e.value)) == (error, f"mm: {said}")


def test_tensors_of_torch() -> None:
    torch = pytest.importorskip("torch")
    a, b = torch.zeros(64, 32).half(), torch.zeros(32, 48).half()
    cases: list[tuple[tuple[Any, Any], dict[str, Any], type[op.OpError], str]] = [
        ((a, half(32, 48)), {"device": "cpu"}, op.DeviceError, (
            "b is an array of numpy, but a is one of torch; pass arrays of one library"
        )),
        ((a.to_sparse(), b), {"device": "cpu"}, op.LayoutError,
         "a is a tensor of torch.sparse_coo; pass a strided tensor"),
        ((a.to("meta"), b.to("meta")), {"device": "cpu"}, op.DtypeError, "a: torch tensors on meta are not supported"),
        ((a.short(), b.short()), {"device": "cpu"}, op.DtypeError,
         "operands of i16 are not supported; use f16, bf16, f32, f8E4M3FN, f8E5M2, i8, ui8, f64"),
        ((a, b), {"device": "cpu", "dtype": torch.float64}, op.DtypeError,
         f"a result of f64 is not supported for f16 operands; use {RESULTS}"),
    ]  # fmt: skip
    for arrays, options, error, said in cases:
        with pytest.raises(op.OpError) as e:
            op.mm(*arrays, **options)
        assert (type(e.value), str(e.value)) == (error, f"mm: {said}")


def test_cpu_tensors_are_rejected_with_a_gpu() -> None:
    torch = pytest.importorskip("torch")
    with pytest.raises(op.DeviceError) as e:
        op.mm(torch.zeros(64, 32).half(), torch.zeros(32, 48).half())
    assert str(e.value) == (
        'mm: a is on the CPU; move it to a GPU with a.cuda(), or pass device="cpu" to run on the interpreter'
    )


def test_gpus(monkeypatch: pytest.MonkeyPatch) -> None:
    """Calls raise errors without a GPU, and on a GPU without kernels."""
    monkeypatch.setattr(cuda, "driver", lambda: Gpu((7, 5)))
    with pytest.raises(op.UnsupportedError) as e:
        op.mm(A, B)
    assert str(e.value) == ('mm: wgmma kernels need sm_90, but the GPU is sm_75; use device="cpu"')
    assert gemm_dispatch.here() == (gemm_dispatch.WITHOUT_GPU, 132)

    def none() -> None:
        raise cuda.NoGpuError("no driver")

    monkeypatch.setattr(cuda, "driver", none)
    with pytest.raises(op.DeviceError) as f:
        op.mm(A, B)
    assert str(f.value) == 'mm: no GPU was found; pass device="cpu" to run on the interpreter'


def test_a_gpu_without_block_scales() -> None:
    with pytest.raises(op.UnsupportedError) as e:
        op.scaled_mm(A8, B8, E8, E8B)
    assert str(e.value) == (
        "scaled_mm: scales of blocks of 32 along K need sm_100, sm_103, sm_110, sm_120 or sm_121, but the GPU is "
        'sm_90; use one scale per matrix, per row, or per block of 128 along K, or device="cpu"'
    )


def test_options_of_the_interpreter() -> None:
    for options, said in (
        ({"checks": ["race"]}, 'checks: only the interpreter has this option; pass device="cpu"'),
        ({"device": "cpu", "schedule": "fast"}, "schedule: expected one of 'round-robin', 'reverse', 'random'"),
        ({"device": "tpu"}, "device: expected 'gpu', 'cuda:N', a number or 'cpu', got 'tpu'"),
    ):
        with pytest.raises(op.OptionError) as e:
            op.mm(A, B, **options)  # pyright: ignore[reportArgumentType]
        assert str(e.value).startswith(f"mm: {said}")


def test_a_plan_of_groups_is_bound_to_arrays_on_a_gpu() -> None:
    plan = op.GroupedGemm(element="f16", layout="row")
    with pytest.raises(op.DeviceError) as e:
        plan.bind(A, EXPERTS, None, half(128, 256), offs=[64, 128])
    assert str(e.value) == "GroupedGemm.bind: the arrays are in CPU memory; pass arrays on a GPU"


def test_supported_overlaps_get_a_kernel() -> None:
    """The result may lie next to the columns of an operand, or be an argument of its own epilogue."""
    whole = half(128, 512)
    d = whole[:, :256]
    for function, args in (
        (ADDED, {"C": d}),
        (ADDED, {"C": whole[:, 256:]}),
        (KEPT, {"C": whole[:, 256:], "F": d + 0}),
    ):
        with pytest.raises(AssertionError, match="something is compiled"):
            op.mm(A, B, d, epilogue=function, args=args, device="cpu")
    for arrays in (
        (A, B), (whole[:, :64], B, whole[:, 64:320]), (A, half(256, 64).T), (A, B, half(256, 128).T),
    ):  # fmt: skip
        for options in ({}, {"dtype": "f16"}, {"bias": half(1, 256)}, {"c": half(256), "beta": 0.5}):
            with pytest.raises(AssertionError, match="something is compiled"):
                op.mm(*arrays, device="cpu", **options)  # pyright: ignore[reportArgumentType]
