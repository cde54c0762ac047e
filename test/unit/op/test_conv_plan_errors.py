"""Errors of planned and described convolutions: complete messages, raised before anything is compiled."""

# pyright: basic

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from cute_dialect import op
from cute_dialect.op.execute import launcher


@pytest.fixture(autouse=True)
def nothing_is_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(*_: object, **__: object) -> None:
        raise AssertionError("something is compiled")

    monkeypatch.setattr(launcher.Launcher, "__init__", failing)


def half(*shape: int, dtype: Any = np.float16) -> np.ndarray[Any, Any]:
    return np.full(shape, 7, dtype)


X, F, Y = half(2, 7, 7, 64), half(32, 3, 3, 64), half(2, 5, 5, 32)
HALF = op.MathInstruction([64, 64, 16], "f16", "f16", "f32")
TILE = op.TileDescription([64, 64, 64], 3, [4, 1, 1], HALF)
T = op.TensorDescription("f16", op.TensorNHWC)
PROBLEM = op.Conv2dProblemSize((2, 7, 7, 64), (32, 3, 3, 64))
FAR = op.Conv2dProblemSize((1, 300, 3, 64), (32, 3, 1, 64), (0, 0), (1, 1), (130, 1))


def run(kind: str, *arrays: Any, plan: dict[str, Any] | None = None, algorithm: str | None = None, **how: Any) -> Any:
    def call() -> None:
        made = op.Conv2d(kind, **{"element": "f16", **(plan or {})})
        made.iterator_algorithm = algorithm
        made.run(*arrays, device="cpu", **how)

    return call


def described(kind: str = "fprop", algorithm: str = "optimized", tile: Any = TILE, support: str = "strided") -> Any:
    return op.Conv2dOperation(kind, algorithm, 90, tile, T, T, T, support)


def arguments(operation: Callable[[], Any], *given: Any, **how: Any) -> Any:
    return lambda: op.Conv2dArguments(operation(), *given, device="cpu", **how)


def visit(visitor: Any, **args: Any) -> Any:
    def call() -> None:
        plan = op.Conv2d(element="f16")
        plan.epilogue_visitor = visitor
        plan.run(X, F, device="cpu", visitor_args=args, **{"split_k": args.pop("split", None)})

    return call


def traced() -> Any:
    function = op.epilogue.trace(lambda accum, bias: accum + bias, {"accum": half(50, 32), "bias": half(32)})
    return op.Conv2dOperation("fprop", "optimized", 90, TILE, T, T, T, visitor=function)


def summed(accum: Any) -> Any:
    total = op.epilogue.sum(accum, -2)
    D = accum
    return D, total


ERRORS: dict[str, tuple[type[op.OpError], Callable[[], object]]] = {
    (
        "kind='forward' is not supported; use one of fprop, dgrad, wgrad"
    ): (op.UnsupportedError, lambda: op.Conv2d("forward")),
    (
        "conv_kind='both' is not supported; use one of fprop, dgrad, wgrad"
    ): (op.UnsupportedError, lambda: described("both")),
    "iterator_algorithm='fast' is not supported; use one of analytic, optimized, fixed_channels, few_channels": (
        op.UnsupportedError, lambda: described("fprop", "fast")
    ),
    "stride_support='2' is not supported; use one of strided, unity": (
        op.UnsupportedError, lambda: described(support="2")
    ),
    "Conv2d: the type of A is unknown; pass A, element_A or element": (op.DtypeError, lambda: op.Conv2d()),
    "Conv2d: B and element_B are both given; pass one of them": (
        op.DtypeError, lambda: op.Conv2d(element_A="f16", B=F, element_B="f16")
    ),
    (
        "Conv2d: chip=75 is not supported; use 80, 86, 87, 88, 89 or 90"
    ): (op.UnsupportedError, lambda: op.Conv2d(element="f16", chip=75)),
    "Conv2d: kernel_cc=120 is not supported; use 80, 86, 87, 88, 89 or 90": (
        op.UnsupportedError, lambda: op.Conv2d(element="f16", kernel_cc=120)
    ),
    "Conv2d: accumulation in f16 is not supported for bf16; use f32 (wgmma accumulates in f16 for f16 operands only)": (
        op.UnsupportedError, lambda: op.Conv2d(element="bf16", element_accumulator="f16")
    ),
    "Conv2d: few_channels does not support dgrad; use optimized or analytic": (
        op.UnsupportedError, run("dgrad", Y, F, algorithm="few_channels")
    ),
    "Conv2d: fixed_channels does not support wgrad; use optimized or analytic": (
        op.UnsupportedError, lambda: described("wgrad", "fixed_channels")
    ),
    "Conv2d: optimized does not support the swapped, skinny or stream-K tile 64x64x64_3_1x1x1_stream_k; use "
    "another tile, or analytic": (
        op.UnsupportedError, lambda: described(tile=TILE.replace({"tile_scheduler": "stream_k"}))
    ),
    "Conv2d: the tile_description 64x64x64_0_1x1x1 has no math_instruction; add one": (
        op.UnsupportedError, lambda: described(tile=op.TileDescription([64, 64, 64]))
    ),
    "Conv2d: kernels with im2col loads are compiled per problem; pass problems=[…]": (
        op.UnsupportedError, lambda: described().ir()
    ),
    "Conv2d: the kernel depends on the arrays; call run first": (
        op.UnsupportedError, lambda: op.Conv2d(element="f16").ptx
    ),
    "Conv2d.run: optimized needs C to be a multiple of 8 (16 bytes of f16), got C = 3; pad, or use analytic": (
        op.AlignmentError, run("fprop", half(2, 7, 7, 3), half(32, 3, 3, 3), algorithm="optimized")
    ),
    "Conv2d.run: few_channels needs C to be a multiple of 8 (16 bytes of f16), got C = 12; pad, or use analytic": (
        op.AlignmentError, run("fprop", half(2, 7, 7, 12), half(32, 3, 3, 12), algorithm="few_channels"),
    ),
    "Conv2d.run: fixed_channels needs C = 8 of f16, got C = 64; use few_channels or analytic": (
        op.AlignmentError, run("fprop", X, F, algorithm="fixed_channels")
    ),
    "Conv2d.run: optimized needs K to be a multiple of 8 (16 bytes of f16), got K = 4; pad, or use analytic": (
        op.AlignmentError, run("dgrad", half(2, 5, 5, 4), half(4, 3, 3, 64), algorithm="optimized")
    ),
    "Conv2d: there is no kernel for optimized of i8 to i8, wgrad; use analytic": (
        op.UnsupportedError,
        run("wgrad", half(2, 5, 5, 32, dtype=np.int8), half(2, 7, 7, 64, dtype=np.int8), size=F.shape,
            plan={"element": "i8"}, algorithm="optimized"),
    ),
    "Conv2d: there is no kernel for optimized of f16 to f16, dgrad in 2 groups; use analytic": (
        op.UnsupportedError, run("dgrad", Y, half(32, 3, 3, 32), plan={"group": 2}, algorithm="optimized")
    ),
    "Conv2dArguments: strides are (2, 2), but the operation has stride_support unity; use stride 1, or strided": (
        op.UnsupportedError,
        arguments(lambda: described(support="unity"), ((2, 7, 7, 64), (32, 3, 3, 64), (0, 0), (2, 2)), X, F),
    ),
    "Conv2dArguments: A has shape (2, 5, 5, 32), but problem_size needs (2, 7, 7, 64); pass that shape": (
        op.ShapeError, arguments(described, PROBLEM, Y, F)
    ),
    "the numbers (0.5,) after alpha and beta need an activation; there is none": (
        op.EpilogueError,
        lambda: op.Conv2dArguments(described(), PROBLEM, X, F, None, None, described().epilogue_type(1.0, 0.0, 0.5)),
    ),
    "Conv2dArguments: output_op does not match the operation's epilogue; pass operation.epilogue_type(…) with the"
    " epilogue's arguments by name": (
        op.EpilogueError, lambda: op.Conv2dArguments(traced(), PROBLEM, X, F)
    ),
    "Conv2dProblemSize: got 1 arguments; pass input, filter, padding, stride, dilation, mode, split_k_slices, "
    "groups": (op.ShapeError, lambda: op.Conv2dProblemSize((1, 2, 3, 4))),
    "Conv2dProblemSize: input is (1, 2, 3); pass 4 integers": (
        op.ShapeError, lambda: op.Conv2dProblemSize((1, 2, 3), (1, 1, 1, 4))
    ),
    "Conv2dProblemSize: a filter of 5 x 5, dilation 1, does not fit an input of 3 x 3 with padding 0": (
        op.ShapeError, lambda: op.Conv2dProblemSize((1, 3, 3, 4), (1, 5, 5, 4))
    ),
    "Conv2d.run: A is missing, and the plan has none; pass A": (op.LayoutError, run("fprop")),
    "Conv2d: a tap is 260 pixels from the first one; im2col TMA supports at most 255; use analytic": (
        op.UnsupportedError, arguments(described, FAR, half(1, 300, 3, 64), half(32, 3, 1, 64))
    ),
    "Conv2d: dgrad with a stride needs an elementwise epilogue, got one over rows or columns": (
        op.UnsupportedError, lambda: reducing().ir()
    ),
    "Conv2d.run: A has shape (7, 7, 64); pass an array of rank 4": (op.ShapeError, run("fprop", X[0], F)),
    "Conv2d.run: A has dtype f32, but the plan has f16; pass that type": (
        op.DtypeError, run("fprop", X.astype(np.float32), F),
    ),
    "Conv2d.run: A has shape (2, 5, 4, 32); pass A of shape (2, 5, 5, 32)": (
        op.ShapeError, run("dgrad", half(2, 5, 4, 32), F, None, half(2, 7, 7, 64))
    ),
    "Conv2d.run: size is (7, 7); pass a shape of 4 numbers": (op.ShapeError, run("dgrad", Y, F, size=(7, 7))),
    "Conv2d.run: the shape of D is ambiguous with a stride of (2, 2); pass D or size=": (
        op.ShapeError, run("dgrad", Y, F, stride=2)
    ),
    "Conv2d.run: the shape of the filter is unknown; pass D or size=(K, R, S, C / groups)": (
        op.ShapeError, run("wgrad", Y, X)
    ),
    "Conv2d.run: beta is 0.5, but there is no C; pass C, or beta=0": (op.ShapeError, run("fprop", X, F, beta=0.5)),
    "Conv2d.run: D has shape (2, 5, 5, 33); pass D of shape (2, 5, 5, 32)": (
        op.ShapeError, run("fprop", X, F, None, half(2, 5, 5, 33))
    ),
    "Conv2d.run: C has shape (2, 5, 4, 32); pass C of (2, 5, 5, 32), or one value per channel": (
        op.ShapeError, run("fprop", X, F, half(2, 5, 4, 32), beta=1.0)
    ),
    "Conv2d.run: C has dtype f32, but the plan has f16; pass that type": (
        op.DtypeError, run("fprop", X, F, half(32, dtype=np.float32), beta=1.0)
    ),
    "Conv2d.run: bias has shape (64,); pass a bias of (32,)": (op.ShapeError, run("fprop", X, F, bias=half(64))),
    "Conv2d.run: wgrad does not support bias; omit it": (
        op.ShapeError, run("wgrad", Y, X, size=F.shape, bias=half(32)),
    ),
    "Conv2d.run: bias has strides (2,); pass a contiguous bias": (
        op.LayoutError, run("fprop", X, F, bias=half(64)[::2])
    ),
    "Conv2d.run: D shares memory with A; pass a separate D (only C may be D)": (
        op.LayoutError, run("fprop", X, half(64, 1, 1, 64), None, X)
    ),
    "Conv2d.run: A has strides (3136, 1, 448, 64); pass channels-last memory, with strides (…, 1), or "
    'data_format="NCHW" for shapes with channels first, or use op.conv2d, which copies it': (
        op.LayoutError, run("fprop", X.transpose(0, 3, 1, 2), half(32, 3, 3, 7))
    ),
    "Conv2d.run: A has strides (3136, 49, 7, 1); pass channels-last memory, with strides (…, 1, …), or use "
    "op.conv2d, which copies it": (
        op.LayoutError, run("fprop", half(2, 64, 7, 7), F.transpose(0, 3, 1, 2), plan={"data_format": "NCHW"})
    ),
    "Conv2d.run: D has strides (2400, 320, 32, 1), with gaps between pixels; pass a contiguous array": (
        op.LayoutError, run("fprop", X, F, None, half(2, 15, 5, 32)[:, ::2][:, :5].copy().repeat(3, 1)[:, ::2][:, :5])
    ),
    "Conv2d.run: A has an address of 2 mod 16, but TMA needs 16-byte alignment; use iterator_algorithm analytic, "
    "or op.conv2d, which copies": (
        op.AlignmentError, run("fprop", half(2, 7, 7, 72)[..., 1:65], F, algorithm="optimized"),
    ),
    "Conv2d.run: A has a stride of 130 bytes, but TMA needs multiples of 16; use iterator_algorithm analytic, or "
    "op.conv2d, which copies": (op.AlignmentError, run("fprop", half(2, 7, 7, 65)[..., :64], F, algorithm="optimized")),
    "Conv2d.run: the channels of D take 24 bytes, but TMA needs a multiple of 16; use iterator_algorithm "
    "analytic, or op.conv2d, which copies": (
        op.AlignmentError, run("fprop", X, half(12, 3, 3, 64), algorithm="optimized"),
    ),
    "Conv2d: the kernel cannot read the filter in place: its taps and channels must be contiguous (and transposed"
    " for dgrad of 8 bits and tf32); use analytic": (
        op.LayoutError,
        run("dgrad", Y.astype(np.float32), F.astype(np.float32), plan={"element": "tf32"}, algorithm="optimized"),
    ),
    "Conv2d: B has gaps between its taps or channels; pass a contiguous B": (
        op.LayoutError, run("fprop", X, half(32, 3, 3, 72)[..., :64], algorithm="analytic")
    ),
    "Conv2d: B has gaps between its taps; pass a contiguous B": (
        op.LayoutError, run("dgrad", Y, half(32, 3, 4, 64)[:, :, :3], algorithm="analytic")
    ),
    "Conv2d: A has gaps between its pixels; pass a contiguous A": (
        op.LayoutError, run("wgrad", half(2, 5, 6, 32)[:, :, :5], X, size=F.shape, algorithm="analytic")
    ),
    "split_k: im2col loads do not support stream; use serial or parallel, or analytic": (
        op.UnsupportedError, run("fprop", X, F, split_k="stream")
    ),
    "Conv2d.run: visitor_args has bias, but the plan has no traced epilogue; omit it": (
        op.EpilogueError, run("fprop", X, F, visitor_args={"bias": half(32)})
    ),
    "Conv2d.run: visitor_args has D; pass the array for the result as D": (
        op.EpilogueError, visit(lambda accum: accum, D=half(2, 5, 5, 32))
    ),
    "Conv2d.run: the epilogue has pairs() or whole_rows, which only op.mm and op.bmm support": (
        op.EpilogueError, visit(lambda accum: op.epilogue.pairs(accum)[0])
    ),
    "Conv2d.run: c has shape (2, 1, 1, 32); pass an array of (2, 5, 5, 32), one value per channel, or a number": (
        op.EpilogueError, visit(lambda accum, c: accum + c, c=half(2, 1, 1, 32))
    ),
    "Conv2d.run: c has gaps between its pixels; pass a contiguous array": (
        op.LayoutError, visit(lambda accum, c: accum + c, c=half(2, 5, 6, 32)[:, :, :5])
    ),
    "Conv2d: a second kernel computes the epilogue (for groups, strided dgrad, wgrad and split_k), so reductions,"
    " pairs() and whole_rows are not supported; omit them": (
        op.EpilogueError, visit(summed, split=("parallel", 2))
    ),
    "Conv2d.reference: numpy cannot compute an epilogue in the kernel language; use a traced epilogue": (
        op.UnsupportedError, lambda: hooked().reference(X, F)
    ),
    (
        "Conv2d: the epilogue_visitor is not traced yet; run the plan first, or set op.epilogue.trace(function, "
        "examples)"
    ): (
        op.EpilogueError, lambda: untraced().construct()
    ),
}  # fmt: skip


def reducing() -> op.Conv2dOperation:
    """Return an operation with a stride and a column reduction, for a problem size known when it is built."""
    plan = op.Conv2d("dgrad", element="f16")
    plan.epilogue_visitor = op.epilogue.trace(summed, {"accum": half(98, 64)})
    plan.iterator_algorithm, plan.tile_description = "optimized", TILE
    return plan.construct(problem_size=op.Conv2dProblemSize((2, 7, 7, 64), (32, 3, 3, 64), (1, 1), (2, 2)))


def hooked() -> op.Conv2d:
    plan = op.Conv2d(element="f16")
    plan.epilogue_visitor = lambda x, row, column: x
    return plan


def untraced() -> op.Conv2d:
    plan = op.Conv2d(element="f16")
    plan.epilogue_visitor = lambda accum: accum
    return plan


@pytest.mark.parametrize("message", ERRORS)
def test_refused(message: str) -> None:
    kind, call = ERRORS[message]
    with pytest.raises(kind) as caught:
        call()
    assert str(caught.value) == message


def test_arrays_of_another_library() -> None:
    torch = pytest.importorskip("torch")
    for name, arrays, bias in (("B", (X, torch.zeros(F.shape).half()), None), ("bias", (X, F), torch.zeros(32).half())):
        with pytest.raises(op.DeviceError) as caught:
            op.Conv2d(element="f16").run(*arrays, bias=bias, device="cpu")
        assert str(caught.value) == (
            f"Conv2d.run: {name} is an array of torch, the CPU, but A is one of numpy, the CPU; "
            "pass arrays of one library and device"
        )
