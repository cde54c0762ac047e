"""Tensors are read, written and sliced by coordinates; errors show the shape and the coordinate that do not match."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from tracing import run_kernel_on_cpu, text_of, trace_kernel

from cute_dialect.errors import CuteError
from cute_dialect.lang.tracing.tracer import current, parse_type
from cute_dialect.lang.values.dtypes import Boolean, Float32, Int8, Int32, Numeric, Uint8
from cute_dialect.lang.values.pointers import Pointer
from cute_dialect.lang.values.tensors import Tensor

VECTOR = '!cute.memref<f32, gmem, "32:1">'


def thread() -> Int32:
    """Return the thread's index."""
    return Int32.of(current().value("nvvm.read.ptx.sreg.tid.x", (), [parse_type("i32")]))


def wrap(ssa: Any) -> Any:
    """Return the language's value for a kernel parameter."""
    text = str(ssa.type)
    return Tensor.of(ssa) if "memref" in text or "tensor" in text else Int32.of(ssa)


def run(body: Callable[..., None], parameters: dict[str, str], *args: object, threads: int = 32) -> str:
    """Trace a body, run it, and return its IR as text."""
    module = trace_kernel(body, parameters, wrap, threads=threads)
    text = text_of(module)
    run_kernel_on_cpu(module, args, threads=threads)
    return text


def message(body: Callable[..., object], parameters: dict[str, str]) -> str:
    """Trace a body that must fail and return its error message without the location."""
    with pytest.raises(CuteError) as caught:
        trace_kernel(body, parameters, wrap)
    e = caught.value
    return f"{e.code}: {e.message}" + (f"\nhint: {e.hint}" if e.hint else "")


def test_twice() -> None:
    def body(x: Any, y: Any) -> None:
        tid = thread()
        y[tid] = x[tid] * 2

    x = np.arange(32, dtype=np.float32)
    y = np.full(32, np.nan, np.float32)
    run(body, {"x": VECTOR, "y": '!cute.memref<f32, gmem, "?:?">'}, x, y)
    assert (y == 2 * x).all()


def test_linear_and_hierarchical_coordinates() -> None:
    def body(x: Any, y: Any, n: Any) -> None:
        tid = thread()
        y[tid % 4, tid // 4] = x[tid]
        y[tid % 4, tid // 4] = y[tid % 4, tid // 4] + x[(tid % 4, tid // 4)] * 1000
        y[0, 0] = 7
        y[3, n] = -1.5

    x = np.arange(32, dtype=np.float32).reshape(4, 8)
    y = np.full((4, 8), np.nan, np.float32)
    run(body, {"x": '!cute.memref<f32, gmem, "(4,8):(8,1)">', "y": '!cute.memref<f32, gmem, "(?,?):(?,1)">',
               "n": "i32"}, x, y, 5)  # fmt: skip
    linear = x.ravel(order="F")[np.arange(32)]
    expected = np.empty((4, 8), np.float32)
    for t in range(32):
        expected[t % 4, t // 4] = linear[t] + 1000 * x[t % 4, t // 4]
    expected[0, 0] = 7
    expected[3, 5] = -1.5
    assert (y == expected).all()


def test_slices() -> None:
    def body(x: Any, y: Any) -> None:
        tid = thread()
        row = x[tid // 8, None]
        same = x[tid // 8, :]
        whole = x[...]
        last = x[..., 7]
        assert row.shape == (8,) and same.shape == (8,) and whole.shape == (4, 8) and last.shape == (4,)
        y[tid] = row[tid % 8] + same[(tid % 8,)] + whole[tid // 8, tid % 8] + last[0]

    x = np.arange(32, dtype=np.float32).reshape(4, 8)
    y = np.zeros(32, np.float32)
    run(body, {"x": '!cute.memref<f32, gmem, "(4,8):(8,1)">', "y": VECTOR}, x, y)
    assert (y == 3 * x.ravel() + 7).all()


def test_the_parts_of_a_dynamic_tensor() -> None:
    def body(x: Any, out: Any) -> None:
        rows, columns = x.shape
        assert isinstance(rows, Int32) and x.stride[1] == 1
        out[0] = rows
        out[1] = columns
        out[2] = x.stride[0]
        out[3] = x[None, 2].shape[0]

    x = np.zeros((5, 7), np.float32)
    out = np.zeros(4, np.int32)
    run(body, {"x": '!cute.memref<f32, gmem, "(?,?):(?,1)">', "out": '!cute.memref<i32, gmem, "4:1">'}, x, out)
    assert out.tolist() == [5, 7, 7, 5]


def test_facts_of_tensors_and_pointers() -> None:
    def body(x: Any) -> None:
        assert x.element_type is x.dtype is Float32 and x.memspace == "gmem" and x.width == 32
        assert repr(x) == "tensor<ptr<f32, gmem> o ((1,32),(?,?)):((0,1),(?,32))>" == f"{x}"
        p = x.iterator
        assert isinstance(p, Pointer) and p.dtype is Float32 and p.memspace == "gmem" and p.alignment == 4
        assert repr(p) == "ptr<f32, gmem>"

    trace_kernel(body, {"x": '!cute.memref<f32, gmem, "((1,32),(?,?)):((0,1),(?,32))">'}, wrap)


def test_coordinate_tensors_give_integers() -> None:
    def body(c: Any, y: Any) -> None:
        tid = thread()
        i, j = c[tid]
        y[tid] = i * 100 + j
        part = c[None, tid // 4]
        i, j = part[tid % 4]
        y[tid] = y[tid] + (i * 100 + j) * 10000

    parameters = {"c": '!cute.coord_tensor<"(0,0)", "(4,8):(1@0,1@1)">', "y": '!cute.memref<i32, gmem, "32:1">'}
    from tracing import trace_kernel as trace

    from cute_dialect.lang.tracing.tracer import parse_type

    identity = Tensor.static(parse_type(parameters["c"]))
    assert identity[3, 5] == (3, 5) and identity[6] == (2, 1) and identity.shape == (4, 8)
    module = trace(lambda y: body(identity, y), {"y": parameters["y"]}, wrap)
    y = np.zeros(32, np.int32)
    run_kernel_on_cpu(module, [y])
    t = np.arange(32)
    one = t % 4 * 100 + t // 4
    assert (y == one * 10001).all()


@pytest.mark.parametrize(("element", "numpy", "kind"), [("i1", "bool", Boolean), ("i8", "int8", Int8)])
def test_elements_of_small_integers(element: str, numpy: str, kind: type[Numeric]) -> None:
    def body(x: Any, y: Any) -> None:
        tid = thread()
        assert x.element_type is kind
        y[tid] = x[tid]

    x = (np.arange(32) % 3).astype(numpy)
    y = np.zeros(32, numpy)
    t = f'!cute.memref<{element}, gmem, "32:1">'
    run(body, {"x": t, "y": t}, x, y)
    assert (y == x).all()


def test_an_unsigned_element_type() -> None:
    def body(x: Any, y: Any) -> None:
        tid = thread()
        y[tid] = x[tid]

    def unsigned(ssa: Any) -> Tensor:
        return Tensor.of(ssa, Uint8 if "i8" in str(ssa.type) else None)

    module = trace_kernel(
        body, {"x": '!cute.memref<i8, gmem, "32:1">', "y": '!cute.memref<i32, gmem, "32:1">'}, unsigned
    )
    x = (np.arange(32) * 8).astype(np.uint8)
    y = np.zeros(32, np.int32)
    run_kernel_on_cpu(module, [x, y])
    assert (y == x).all()


def test_stores_convert_without_loss() -> None:
    def body(f: Any, h: Any, i: Any) -> None:
        tid = thread()
        h[tid] = f[tid]
        f[tid] = h[tid]
        i[tid] = tid
        f[31] = tid * 0 + 3

    f = np.linspace(-1, 1, 32, dtype=np.float32)
    h = np.zeros(32, np.float16)
    i = np.zeros(32, np.int64)
    expected = f.astype(np.float16)
    run(body, {"f": VECTOR, "h": '!cute.memref<f16, gmem, "32:1">', "i": '!cute.memref<i64, gmem, "32:1">'}, f, h, i)
    assert (h == expected).all() and (i == np.arange(32)).all()
    assert (f[:31] == expected.astype(np.float32)[:31]).all() and f[31] == 3


MATRIX = '!cute.memref<f32, gmem, "(4,(2,?)):(8,(1,2))">'


@pytest.mark.parametrize(
    ("body", "text"),
    [
        (lambda x: x[1, 2, 3],
         "F241: the coordinate does not match the profile of this tensor's shape\n"
         "  shape      (4,(2,?))\n  coordinate (1,2,3)\n"
         "hint: (4,(2,?)) has 2 modes but the coordinate has 3"),
        (lambda x: x[(1, 2), 3],
         "F241: the coordinate does not match the profile of this tensor's shape\n"
         "  shape      (4,(2,?))\n  coordinate ((1,2),3)\n"
         "hint: a mode of extent 4 takes one integer, not a tuple of 2"),
        (lambda x: x[..., 1, ...], "F241: a coordinate can have one '...', got (...,1,...)"),
        (lambda x: x[1, 2, 3, ...],
         "F241: the coordinate has more elements than this tensor's shape\n"
         "  shape      (4,(2,?))\n  coordinate (1,2,3,...)"),
        (lambda x: x[4, 0],
         "F242: the coordinate (4,0) is out of bounds for this tensor of shape (4,(2,?)): 4 is not 0 to 3"),
        (lambda x: x[None, (-1, None)],
         "F242: the coordinate (_,(-1,_)) is out of bounds for this tensor of shape (4,(2,?)): -1 is not 0 to 1"),
        (lambda x: x[1, thread() * 1.5],
         "F241: a coordinate consists of integers, got this Float32\nhint: cute.Int32(x)"),
        (lambda x: x["a"], "F241: a coordinate consists of integers, None and ':', got 'a'"),
        (lambda x: x[1, 1:3],
         "F240: 'a:b' needs a mode of static extent, got (2,?)\n"
         "hint: use cute.domain_offset to shift a tensor, or cute.local_tile for a tile"),
        (lambda x: x[thread():3, 1],
         "F240: the bounds of 'a:b' must be known at compile time\n"
         "hint: use cute.domain_offset to shift a tensor by a run-time coordinate"),
        (lambda x: x[0:4:2, 1], "F240: a slice of a tensor cannot have a step, got step 2"),
        (lambda x: x[2:2, 1],
         "F242: the coordinate (2:2,1) is out of bounds for this tensor of shape (4,(2,?)): "
         "2:2 is empty or exceeds 0:4"),
        (lambda x: x.__setitem__((0, 0), "a"), "F234: an element of type Float32 must be assigned a number, got 'a'"),
        (lambda x: x.__setitem__((0, None), x[0, None]),
         "F235: a tensor cannot be assigned from another tensor; assign a vector or a number\nhint: assign "
         "other.load()"),
    ],
)  # fmt: skip
def test_errors(body: Callable[..., object], text: str) -> None:
    assert message(body, {"x": MATRIX}) == text


def test_lossy_stores_are_rejected() -> None:
    def float_to_int(i: Any, f: Any) -> None:
        i[0] = f[0]

    def narrow(i: Any, f: Any) -> None:
        i[0] = Int32(thread())

    def truth(b: Any, f: Any) -> None:
        b[0] = thread()

    small = '!cute.memref<i16, gmem, "4:1">'
    assert message(float_to_int, {"i": small, "f": VECTOR}) == (
        "F234: this Float32 cannot be stored without loss (Float32 to Int16)\nhint: convert it: .to(cute.Int16)"
    )
    assert message(narrow, {"i": small, "f": VECTOR}) == (
        "F234: this Int32 cannot be stored without loss (Int32 to Int16)\nhint: convert it: .to(cute.Int16)"
    )
    assert message(truth, {"b": '!cute.memref<i1, gmem, "4:1">', "f": VECTOR}) == (
        "F234: this Int32 cannot be stored without loss (Int32 to Boolean)\nhint: compare it: x != 0"
    )


def test_an_error_shows_the_users_line() -> None:
    def body(x: Any) -> None:
        x[9, 0] = 1.0

    with pytest.raises(ValueError, match="F242") as caught:
        trace_kernel(body, {"x": MATRIX}, wrap)
    assert "x[9, 0] = 1.0" in str(caught.value) and __file__ in str(caught.value)
