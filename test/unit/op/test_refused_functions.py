"""Errors of functions on arrays: complete messages, one call for each ``raise`` that no other file covers."""

# pyright: reportPrivateUsage=false, reportUnknownMemberType=false, reportUnknownLambdaType=false
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np
import pytest
from refused_calls import OnGpu, refuse_all, without_place

from cute_dialect import op
from cute_dialect.kernels.epilogue.combination import Epilogue
from cute_dialect.kernels.gemm.config import GemmConfig
from cute_dialect.op.arrays.operand_views import turned
from cute_dialect.op.epilogue import exp, pairs
from cute_dialect.op.epilogue.tracer_values import NoSuchAttribute
from cute_dialect.op.execute.grouped import _check_numbers
from cute_dialect.op.functions import tune
from cute_dialect.op.functions.attention import check_call
from cute_dialect.op.select import gemm_dispatch
from cute_dialect.op.select.cost_model import costs_of
from cute_dialect.op.select.grouped import ranked_grouped
from cute_dialect.op.select.kernel_choice import Choice, Problem, decode
from cute_dialect.op.tuning import check_place


@pytest.fixture(autouse=True)
def nothing_is_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    refuse_all(monkeypatch)


def zeros(*shape: int, dtype: Any = np.float16) -> np.ndarray:
    return np.zeros(shape, dtype)


Do = Callable[[], object]
Case = tuple[type[Exception], str, Do]
CPU: dict[str, Any] = {"device": "cpu"}
A, B = zeros(128, 64), zeros(64, 256)
E4M3 = ml_dtypes.float8_e4m3fn
A8, B8 = zeros(128, 256, dtype=E4M3), zeros(256, 256, dtype=E4M3)
ONE = zeros(1, dtype=np.float32)
INDICES = zeros(4, dtype=np.int32)
EXPERTS = zeros(4, 64, 40)
IMAGE, FILTER, HEADS = zeros(2, 7, 7, 64), zeros(32, 3, 3, 64), zeros(1, 2, 8, 64)


def call(function: Any, *arrays: Any, **more: Any) -> Do:
    return lambda: function(*arrays, **more, **CPU)


def unchanged(value: Any, row: Any, column: Any) -> Any:
    return value


class WithoutReshape:
    shape = (3, 5, 7)


def mm(epilogue: Any, a: Any = A, b: Any = B, **more: Any) -> Do:
    return call(op.mm, a, b, epilogue=epilogue, **more)


def grouped(a: Any = A, b: Any = EXPERTS, **more: Any) -> Do:
    return call(
        op.grouped_mm, a, b, **({"offs": INDICES} | more if not {"lengths", "row_groups"} & set(more) else more)
    )


def blocks(*shape: int) -> np.ndarray:
    return zeros(*shape, dtype=np.float32)


def shares(accum: Any) -> Any:
    x = exp(accum)
    return x / op.epilogue.sum(x, -1, whole_rows=True)


def paired(accum: Any) -> Any:
    even, odd = pairs(accum)
    return even * odd


def scaled(accum: Any, scale: Any) -> Any:
    return accum * scale


def twice(accum: Any) -> Any:
    D = accum
    return D, D


def saved_with(number: int) -> Any:
    """Return a saved epilogue whose function reads the value of a number argument."""

    def repeated(accum: Any, times: int) -> Any:
        for _ in range(times):
            accum = accum * 0.5
        return accum

    examples = {"accum": op.epilogue.FakeTensor("f32", (128, 256)), "times": number}
    return type(traced := op.epilogue.trace(repeated, examples)).from_json(traced.to_json())


class Device(NamedTuple):
    """A fake torch device."""

    type: str

    def __str__(self) -> str:
        return f"{self.type}:0"


def on(kind: str, dtype: str) -> Any:
    """Return a fake tensor on a device of the given type."""
    return SimpleNamespace(dtype=dtype, device=Device(kind))


def taken() -> object:
    """Choose a kernel for pairs of columns, with majors that no kernel supports."""
    problem = Problem(128, 256, 64, "tf32", "f32", "m", "k")
    traced = op.epilogue.trace(paired, {"accum": op.epilogue.FakeTensor("f32", (128, 256))})
    usual = Choice(GemmConfig("tf32", "f32", "m", "k", tile=(128, 128, 32)))
    return gemm_dispatch.taking(usual, Epilogue(graph=traced.graph), problem, costs_of("", 132))


GRAPHS: list[Case] = [
    (
        NoSuchAttribute,
        (
            "mm: epilogue <lambda>: sum() cannot be an operand, because a tile holds only a part of a row or column; "
            "return it as a result, or use whole_rows=True for rows of at most 256 elements"
        ),
        mm(lambda accum: op.epilogue.sum(accum, -1).real),
    ),
    (
        op.EpilogueError,
        (
            "mm: epilogue <lambda>: `if`, `while`, `and`, `or` or `not` needs a value that is known while tracing, "
            "but this one is computed by the kernel; use where(condition, x, y) to select per element"
        ),
        mm(lambda accum: accum if accum > 0 else -accum),
    ),
    (
        op.EpilogueError,
        "mm: epilogue <lambda>: a NumPy function that cannot be traced was called; use those of op.epilogue",
        mm(lambda accum: np.asarray(accum)),
    ),
    (
        op.EpilogueError,
        (
            "mm: epilogue <lambda>: numpy.cumsum cannot be traced; use functions of op.epilogue, arithmetic and "
            "comparisons"
        ),
        mm(lambda accum: np.cumsum(accum)),
    ),
    (op.EpilogueError, "mm: epilogue twice: results need different names, got D, D", mm(twice)),
    (
        op.EpilogueError,
        (
            "mm: epilogue repeated: the arguments {'times': 3} differ from those of the saved plan, {'times': 2}; "
            "make another plan for them"
        ),
        mm(saved_with(2), args={"times": 3}),
    ),
    (
        op.EpilogueError,
        "epilogue shares: element_compute='f16' is not supported; use 'f32'",
        lambda: op.epilogue.trace(shares, {"accum": op.epilogue.FakeTensor("f32", (8, 8))}, element_compute="f16"),
    ),
    (
        op.EpilogueError,
        "bmm: epilogue scaled: scale is one element, but was (L, 1, 1) in the trace; trace the epilogue again",
        call(
            op.bmm,
            zeros(2, 128, 64),
            zeros(2, 64, 256),
            args={"scale": zeros(1)},
            epilogue=op.epilogue.trace(
                scaled, {"accum": op.epilogue.FakeTensor("f32", (2, 128, 256)), "scale": zeros(2, 1, 1)}
            ),
        ),
    ),
    (
        op.LayoutError,
        "mm: out has strides (1, 128), but whole_rows in an epilogue needs contiguous rows; pass a contiguous out",
        mm(shares, out=zeros(256, 128).T),
    ),
    (
        op.LayoutError,
        "mm: out has strides (1, 128), but pairs() in an epilogue needs contiguous rows; pass a contiguous out",
        mm(paired, out=zeros(128, 128).T),
    ),
    (
        op.UnsupportedError,
        "mm: whole_rows needs a tile with all columns, at most 256, but N is 512; reduce N",
        mm(shares, A, zeros(64, 512)),
    ),
    (
        op.UnsupportedError,
        "mm: a traced epilogue computes in f32 and does not support f64; apply the function to the result",
        mm(scaled, A.astype(np.float64), B.astype(np.float64), args={"scale": 2.0}),
    ),
    (
        op.UnsupportedError,
        "mm: whole_rows needs a tile with all columns, at most 256, but N is 512; reduce N",
        lambda: op.explain(op.mm, (128, 64), (64, 512), epilogue=shares),
    ),
]

PRODUCTS: list[Case] = [
    (
        op.ArgumentError,
        "explain: gpu is 3; pass a name such as 'NVIDIA H200'",
        lambda: op.explain(op.mm, A, B, gpu=3),  # type: ignore[call-overload]
    ),
    (
        op.ArgumentError,
        "explain: others is '4'; pass a number of candidates",
        lambda: op.explain(op.mm, A, B, others="4"),  # type: ignore[call-overload]
    ),
    (
        op.DtypeError,
        "mm: alpha is '2'; pass a number",
        lambda: op.explain(op.mm, A, B, alpha="2"),  # type: ignore[call-overload]
    ),
    (
        op.UnsupportedError,
        "mm: hook does not support f64 operands; apply the function to the result",
        call(op.mm, A.astype("f8"), B.astype("f8"), hook=unchanged),
    ),
    (
        op.UnsupportedError,
        "mm: hook does not support f32 operands with f16 results; use math='tf32', or an f32 result",
        call(op.mm, A.astype("f4"), B.astype("f4"), dtype="f16", hook=unchanged),
    ),
    (
        op.UnsupportedError,
        "mm: hook needs an even N, but it is 255; use epilogue",
        call(op.mm, A8[:, :64], zeros(64, 255, dtype=E4M3), hook=unchanged),
    ),
    (
        op.UnsupportedError,
        "elementwise <lambda>: random numbers are not supported for arrays of refused_calls; pass torch, numpy or cupy "
        "arrays",
        lambda: op.elementwise(lambda x: op.epilogue.dropout(x, 0.5, 1), OnGpu(4, 8), out=OnGpu(4, 8, at=8192)),
    ),
    (
        op.DtypeError,
        "layer_norm: x is a WithoutReshape without reshape(), which a normalized_shape of several dimensions needs; "
        "pass an array of torch, numpy or cupy",
        call(op.layer_norm, WithoutReshape(), (5, 7)),
    ),
    (
        op.EpilogueError,
        "conv2d: whole_rows is not supported in an epilogue of a convolution; use op.mm",
        call(op.conv2d, zeros(1, 8, 8, 16), zeros(8, 3, 3, 16), epilogue=shares),
    ),
    (
        op.DtypeError,
        "conv2d: a result of f64 is not supported for f16 operands; use f16, bf16, f32, f8E4M3FN or f8E5M2",
        call(op.conv2d, zeros(1, 8, 8, 16), zeros(8, 3, 3, 16), dtype="f64"),
    ),
    (
        op.UnsupportedError,
        "no kernel supports this epilogue for tf32-f32-mk 128x256x64; apply it to the result instead",
        taken,
    ),
    (op.DtypeError, "mm_array: As is None; pass a list of arrays or addresses", call(op.mm_array, None, [B])),
    (
        op.ShapeError,
        "scaled_mm: a has shape (1, 128, 256) and b has shape (256, 256); pass matrices (rank 2)",
        call(op.scaled_mm, A8[None], B8, ONE, ONE),
    ),
    (
        op.UnsupportedError,
        "scaled_mm: scale_out is not supported with block scales; scale the result instead",
        call(op.scaled_mm, A8, B8, blocks(128, 2), blocks(2, 2), scale_out=ONE),
    ),
    (
        op.LayoutError,
        "scaled_mm: out has strides (1, 128), but block scales need contiguous rows; pass a contiguous out",
        call(op.scaled_mm, A8, B8, blocks(128, 2), blocks(2, 2), out=zeros(256, 128).T),
    ),
    (
        op.UnsupportedError,
        "mm: kernel f16-f16-kn-64x16-c1wa-q16 has another accumulator than the f32 of this call; omit kernel",
        call(op.mm, A, B, kernel=op.explain(op.mm, (128, 64), (64, 256), accumulator="f16").choice),
    ),
    (
        op.UnsupportedError,
        "mm: kernel 128x128x32_3_1x1x1 does not use wgmma for 16-bit elements; pass another tile",
        call(
            op.mm,
            A,
            B,
            kernel=op.TileDescription([128, 128, 32], 3, None, op.MathInstruction([16, 8, 16], "f16", "f16", "f32")),
        ),
    ),
    (
        op.UnsupportedError,
        "bmm: kernel: kernel_schedule few_rows does not support a batch; use another schedule",
        call(
            op.bmm,
            zeros(3, 16, 64),
            zeros(3, 64, 128),
            kernel=op.TileDescription(
                [64, 128, 64],
                4,
                None,
                op.MathInstruction([64, 128, 16], "f16", "f16", "f32"),
                kernel_schedule="few_rows",
            ),
        ),
    ),
    (
        ValueError,
        "'f16 128x128x128' is not a problem; use the form f16-f16-kk 128x8192x4096",
        lambda: Problem.of_key("f16 128x128x128"),
    ),
    (ValueError, "parts is 'four'; it must be an integer", lambda: decode({"parts": "four"})),
    (op.DeviceError, "tune: a (ndarray) is not a torch tensor on a GPU; pass one", lambda: check_place(A, B)),
    (
        op.UnsupportedError,
        "attention: q has dtype f32; pass an array of bf16, f16, f8E4M3FN or f8E5M2",
        lambda: op.explain(op.attention, (1, 2, 64, 64), (1, 2, 64, 64), element="f32"),
    ),
    (
        op.UnsupportedError,
        "object has no permute or transpose; pass an array that has one",
        lambda: turned(object(), (0, 1)),
    ),
    (
        op.EpilogueError,
        "conv2d: pairs() is not supported in an epilogue of a convolution; use op.mm",
        call(op.conv2d, zeros(1, 8, 8, 16), zeros(8, 3, 3, 16), epilogue=paired),
    ),
]

GROUPS: list[Case] = [
    (
        op.ShapeError,
        "grouped_mm: lengths has shape (3,); it must have (4,), one per matrix of a",
        grouped(zeros(4, 32, 64), lengths=[1, 2, 3]),
    ),
    (
        op.ShapeError,
        "grouped_mm: b has 4 matrices, but a has 3; the numbers must be equal",
        grouped(zeros(3, 32, 64), lengths=[1, 2, 3]),
    ),
    (
        op.DeviceError,
        "grouped_mm: offs is on the CPU, but a is on cuda:0; move it, or pass a list",
        lambda: _check_numbers("grouped_mm", "offs", on("cpu", "int32"), on("cuda", "float16")),
    ),
    (
        op.UnsupportedError,
        "no grouped kernel supports the problem tf32-f32-mk 2x64x64x64",
        lambda: ranked_grouped(Problem(64, 64, 64, "tf32", "f32", "m", "k", 2), "m"),
    ),
    (
        op.DtypeError,
        "grouped_mm: offs has dtype i64; pass an i32 array or a list of integers",
        grouped(offs=np.zeros(4, np.int64)),
    ),
    (
        op.UnsupportedError,
        "grouped_mm: alpha cannot be combined with epilogue; compute it in the epilogue function",
        grouped(epilogue=scaled, args={"scale": 2.0}, alpha=blocks(4)),
    ),
    (
        op.UnsupportedError,
        "grouped_mm: args (scale) needs an epilogue; pass epilogue=",
        grouped(args={"scale": 2.0}),
    ),
    (
        op.LayoutError,
        "grouped_mm: a has strides (512, 8); its rows or columns must be contiguous",
        grouped(zeros(128, 512)[:, ::8]),
    ),
    (
        op.ShapeError,
        "grouped_mm: lengths[2] is 33; it must be between 0 and 32",
        grouped(zeros(4, 32, 64), lengths=[1, 2, 33, 4]),
    ),
    (op.ShapeError, "grouped_mm: row_groups[0] is 4; it must be between -1 and 3", grouped(row_groups=[4] * 128)),
    (
        op.ShapeError,
        "grouped_mm: row_groups[1] is 0, but follows 1; row_groups must be sorted",
        grouped(row_groups=[1, 0] * 64),
    ),
    (
        op.ShapeError,
        "grouped_mm: with gather, a must have rank 2 and gather rank 1; got shapes (128, 64) and (8, 2)",
        grouped(gather=zeros(8, 2, dtype=np.int32)),
    ),
    (
        op.ShapeError,
        "grouped_mm: a and gather must not be empty; got shapes (128, 64) and (0,)",
        grouped(gather=zeros(0, dtype=np.int32)),
    ),
    (
        op.ShapeError,
        "grouped_mm: gather[2] is 128; it must be between 0 and 127",
        grouped(gather=np.array([5, 0, 128, -1], np.int32)),
    ),
    (
        op.ShapeError,
        # Raised before the rows are gathered.
        "grouped_mm: offs[1] is 3, less than offs[0] = 4; offs must not decrease",
        grouped(gather=INDICES, offs=np.array([4, 3, 4, 4], np.int32)),
    ),
    (
        op.UnsupportedError,
        "conv2d: split_k=0 is not supported; pass at least 1 slice",
        call(op.conv2d, IMAGE, FILTER, split_k=("serial", 0)),
    ),
    (
        op.UnsupportedError,
        "conv2d: split_k: ('parallel', 2) is not supported; pass a number, ('serial', number), or use op.Conv2d",
        call(op.conv2d, IMAGE, FILTER, split_k=("parallel", 2)),
    ),
    (
        op.DeviceError,
        'attention: no GPU was found; pass device="cpu" to run on the interpreter',
        lambda: op.attention(HEADS, HEADS, HEADS),
    ),
    (
        op.DeviceError,
        'Attention.run: no GPU was found; pass device="cpu" to run on the interpreter',
        lambda: op.Attention(element="f16", head_size=64).run(HEADS, HEADS, HEADS),
    ),
    (
        op.UnsupportedError,
        (
            "grouped_mm: kernel f16-f16-kn-128x128-c2bw cannot compute groups: skinny, split-K and transposed kernels "
            "are not supported"
        ),
        grouped(
            offs=INDICES,
            kernel=Choice(GemmConfig(major_a="m", major_c="m", tile=(128, 128, 64), deferred=False, batch=True)),
        ),
    ),
    (
        op.UnsupportedError,
        "grouped_mm: accumulator of f16 is not supported by mma.sync tiles; use f32",
        grouped(
            accumulator="f16",
            kernel=op.TileDescription([128, 128, 32], 3, None, op.MathInstruction([16, 8, 16], "f16", "f16", "f32")),
        ),
    ),
    (
        op.UnsupportedError,
        (
            "grouped_mm: kernel sgemm-vector is not supported for groups of f32; use an mma.sync tile, or a tile "
            "without tensor cores that has at least two stages"
        ),
        grouped(
            A.astype(np.float32),
            EXPERTS.astype(np.float32),
            kernel=op.TileDescription([128, 128, 8], 1, None, op.MathInstruction([1, 1, 1], *["f32"] * 3, "simt")),
        ),
    ),
    (
        op.UnsupportedError,
        "grouped_mm: math='promote' is not supported for groups of f8E4M3FN along k; use math='default'",
        grouped(A8, B8, offs=[64, 256], math="promote"),
    ),
    (
        op.EpilogueError,
        "grouped_mm: groups of f32: the epilogue must be elementwise, without pairs() and reductions",
        grouped(A.astype(np.float32), EXPERTS.astype(np.float32), epilogue=paired),
    ),
    (
        op.EpilogueError,
        (
            "grouped_mm: groups of f64: an f64 epilogue supports alpha, beta, an f64 bias and relu, got a function "
            "that computes in f32"
        ),
        grouped(A.astype(np.float64), EXPERTS.astype(np.float64), activation="gelu"),
    ),
    (op.DtypeError, "grouped_mm: beta must be a number, got '2'", grouped(beta="2")),
    (
        op.ShapeError,
        "grouped_mm: c of shape (127, 40) does not broadcast to (128, 40)",
        grouped(c=zeros(127, 40)),
    ),
    (
        op.UnsupportedError,
        "grouped_mm: whole_rows=True in epilogue shares is not supported; use op.mm or op.bmm",
        grouped(epilogue=shares),
    ),
    (
        op.UnsupportedError,
        "explain: grouped_mm has no argument 'gather'; use offs, lengths or row_groups",
        lambda: op.explain(op.grouped_mm, A, EXPERTS, offs=(4,), gather=(4,)),
    ),
    (
        op.UnsupportedError,
        "grouped_mm: lengths does not suit a of rank 2 and b of rank 3; pass offs or row_groups",
        grouped(lengths=[1, 2, 3, 4]),
    ),
    (
        op.ShapeError,
        "grouped_mm: offs has shape (4, 1); it must have rank 1",
        grouped(offs=zeros(4, 1, dtype=np.int32)),
    ),
    (
        op.ShapeError,
        "grouped_mm: b has shape (4, 64, 40); it must have (G, 32, N), because a has (128, 32)",
        grouped(A[:, :32]),
    ),
    (
        op.ShapeError,
        "grouped_mm: row_groups has shape (64,); it must have (128,), one per row of a",
        grouped(row_groups=[0] * 64),
    ),
    (
        op.DtypeError,
        "scaled_grouped_mm: b must be an array, got list",
        call(op.scaled_grouped_mm, A8, [[1.0]], ONE, ONE, INDICES),
    ),
    (
        op.UnsupportedError,
        "scaled_grouped_mm: a has rank 2 and b rank 2; b must have rank 3, because groups are rows",
        call(op.scaled_grouped_mm, A8, B8, ONE, ONE, INDICES),
    ),
    (
        op.UnsupportedError,
        "scaled_grouped_mm: scale_a is per block and scale_b per tensor; either both or neither must be per block",
        call(op.scaled_grouped_mm, A8, zeros(4, 256, 256, dtype=E4M3), blocks(128, 2), ONE, INDICES),
    ),
    (
        op.UnsupportedError,
        "scaled_grouped_mm: recipe 'column' is not supported; use one of tensor, row, block",
        call(op.scaled_grouped_mm, A8, zeros(4, 256, 256, dtype=E4M3), ONE, ONE, INDICES, recipe="column"),
    ),
]


@pytest.mark.parametrize(("kind", "message", "do"), [*GRAPHS, *PRODUCTS, *GROUPS])
def test_refused(kind: type[Exception], message: str, do: Do) -> None:
    with pytest.raises(ValueError) as told:
        do()
    assert (type(told.value), without_place(told.value)) == (kind, message)


def of_torch() -> list[Case]:
    """Return the cases that need torch. Tensors on "meta" have no memory, so nothing is computed."""
    torch = pytest.importorskip("torch")
    import cute_dialect.op.operators.table  # noqa: F401

    ops = torch.ops.cute
    a, b = torch.zeros(128, 64).half(), torch.zeros(64, 256).half()
    doubles, bytes_ = a.double().requires_grad_(), a.to(torch.float8_e4m3fn)
    scale = torch.zeros(1, requires_grad=True)
    nothing = {"device": "meta", "dtype": torch.float16, "requires_grad": True}
    experts = torch.zeros(4, 64, 40, **nothing)
    offs = torch.zeros(4, dtype=torch.int32, device="meta")
    filters = torch.zeros(8, 16, 3, 3, **nothing)

    class Cuda(torch.Tensor):
        """A tensor that claims to be on a GPU while its stream is being captured."""

        is_cuda = True

    def captured() -> object:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(torch.cuda, "is_current_stream_capturing", lambda: True)
            return check_place(a.as_subclass(Cuda), b.as_subclass(Cuda))

    def tuned() -> object:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(tune, "check_place", lambda *_: None)
            return op.tune(op.mm, torch.zeros(128, 63).half(), torch.zeros(63, 256).half())

    def second() -> object:
        grad = torch.zeros(1, 8, 6, 6, **nothing)
        return ops.conv_slope(grad, grad, "gelu")[0].sum().backward()

    cases: list[Case] = [
        (
            op.EpilogueError,
            (
                "epilogue <lambda>: torch.cumsum cannot be traced; use functions of op.epilogue, arithmetic and "
                "comparisons"
            ),
            mm(lambda accum: torch.cumsum(accum, 0), a, b),
        ),
        (
            op.DtypeError,
            "mm: a has dtype f64 and requires a gradient; only f16, bf16 and f32 have gradients",
            mm(scaled, doubles, b.double(), args={"scale": scale}),
        ),
        (
            op.DtypeError,
            "mm: gradients are not supported when a has dtype f8E4M3FN; call it under torch.no_grad()",
            mm(scaled, bytes_, torch.zeros(256, 64).to(bytes_.dtype).T, args={"scale": scale}),
        ),
        (
            op.ShapeError,
            "mm: cannot multiply shapes (128, 64) and (128, 64); pass (M, K) and (K, N)",
            lambda: ops.mm(a.to("meta"), a.to("meta")),
        ),
        (
            op.UnsupportedError,
            "grouped_mm: alpha is an array; it must be a number when gradients are required",
            call(op.grouped_mm, a.requires_grad_(), torch.zeros(4, 64, 40).half(), [1, 2, 3, 4], alpha=torch.ones(4)),
        ),
        (
            op.UnsupportedError,
            "grouped_mm: second derivatives with row_groups are not supported",
            lambda: ops.grouped_mm(torch.zeros(128, 64, **nothing), experts, offs, None, None, None, None, begins=offs),
        ),
        (
            op.UnsupportedError,
            "conv2d_input: c and alpha are not supported with gradients or torch.compile; omit them, or call "
            "under torch.no_grad()",
            call(op.conv2d_input, (1, 16, 8, 8), filters, torch.zeros(1, 8, 6, 6, **nothing), alpha=2.0),
        ),
        (
            op.UnsupportedError,
            ("conv: an activation has no second derivative; apply the activation with torch instead"),
            second,
        ),
        (op.DeviceError, "tune: a (Tensor) is not a torch tensor on a GPU; pass one", lambda: check_place(a, b)),
        (op.UnsupportedError, "tune: the current stream is being captured; tune outside of the capture", captured),
        (
            op.UnsupportedError,
            "tune: f16-f16-kn 128x256x63 has operands that TMA cannot read in place; pass 16-byte aligned matrices",
            tuned,
        ),
    ]
    return cases


def test_tensors_are_refused() -> None:
    for kind, message, do in of_torch():
        with pytest.raises(ValueError) as told:
            do()
        assert (type(told.value), without_place(told.value)) == (kind, message)


def test_gpu_scalars_are_read_on_request(monkeypatch: pytest.MonkeyPatch) -> None:
    """With ``CUTE_OP_CHECK=1``, offsets of numpy calls are checked to be nondecreasing before they go to the GPU."""
    falling, begins = np.array([4, 64, 40, 128], np.int32), np.array([0, 5, 3], np.int32)

    def product() -> None:
        op.grouped_mm(A, EXPERTS, falling)

    there = SimpleNamespace(
        name="attention",
        cpu=False,
        check_gpu=lambda: None,
        x=SimpleNamespace(device=0),
        on_host=lambda _: begins.tolist(),
        views={"cu_seqlens_q": begins},
    )
    with pytest.raises(op.DeviceError, match="no GPU was found"):
        product()
    form = SimpleNamespace(packed=True, queries=8, keys=8, longest=None)
    check_call(there, form)  # type: ignore[arg-type]
    monkeypatch.setenv("CUTE_OP_CHECK", "1")
    with pytest.raises(op.ShapeError, match=r"offs\[2\] is 40, less than offs\[1\] = 64"):
        product()
    with pytest.raises(
        op.ShapeError, match=(r"attention: cu_seqlens_q is \[0, 5, 3\]; pass offsets that rise from 0 to at most 8")
    ):
        check_call(there, form)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("name", "call"),
    [
        ("softmax", lambda torch, x: op.softmax(x)),
        ("topk", lambda torch, x: op.topk(x, 2)),
        ("gated", lambda torch, x: op.gated(x)),
        ("cross_entropy", lambda torch, x: op.cross_entropy(x, torch.tensor([1, 2]))),
        ("route", lambda torch, x: op.route(x, 2)),
        ("embedding", lambda torch, x: op.embedding(torch.tensor([1, 0]), x)),
        ("mm", lambda torch, x: op.mm(x, x.mT)),
        ("attention", lambda torch, x: op.attention(*[x[None, None].half()] * 3)),
        ("merge_attention", lambda torch, x: op.merge_attention(x.view(2, 1, 1, 1, 16), torch.zeros(2, 1, 1, 1))),
        ("linear_cross_entropy", lambda torch, x: op.linear_cross_entropy(x, x, torch.tensor([1, 0]))),
    ],
)
@pytest.mark.parametrize("learns", [True, False])
def test_tensors_on_the_cpu_need_a_device(name: str, call: Any, learns: bool) -> None:
    """The device rule is one with gradients and without."""
    torch = pytest.importorskip("torch")
    with pytest.raises(op.DeviceError, match=rf"^{name}: (no GPU was found|\w+ is on the CPU)"):
        call(torch, torch.ones(2, 16, requires_grad=learns))
