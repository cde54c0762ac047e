"""Vectors compute element by element and broadcast their shapes as numpy does."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from tracing import run_kernel_on_cpu, trace_kernel

from cute_dialect.errors import CuteError
from cute_dialect.lang.tracing.errors import MergeError
from cute_dialect.lang.values import vectors as vf
from cute_dialect.lang.values.dtypes import (
    BFloat16,
    Boolean,
    Float16,
    Float32,
    Float64,
    Int8,
    Int16,
    Int32,
    Int64,
    Numeric,
    Uint32,
)
from cute_dialect.lang.values.forms import form_of
from cute_dialect.lang.values.tensors import Tensor, clear, make_rmem_tensor, make_rmem_tensor_like
from cute_dialect.lang.values.vectors import ReductionOp, TensorSSA, broadcast_shape, mapped

RNG = np.random.default_rng(5)


def memref(dtype: type[Numeric], shape: str = "(4,6):(6,1)") -> str:
    """Return the type of a tensor in global memory."""
    return f'!cute.memref<{dtype.mlir_type}, gmem, "{shape}">'


def run(body: Callable[..., None], arrays: dict[str, Any], types: dict[str, type[Numeric]]) -> None:
    """Run a body on tensors like the arrays, which are row-major."""
    parameters: dict[str, str] = {}
    for name, a in arrays.items():
        strides = tuple(s // a.itemsize for s in a.strides)
        shape = ",".join(map(str, a.shape)), ",".join(map(str, strides))
        parameters[name] = memref(types[name], f"({shape[0]}):({shape[1]})")
    classes = iter(types[name] for name in arrays)
    module = trace_kernel(body, parameters, lambda ssa: Tensor.of(ssa, next(classes)), threads=1)
    run_kernel_on_cpu(module, list(arrays.values()), threads=1)


def message(body: Callable[..., object]) -> str:
    """Trace a body that must fail and return the first lines of its error."""
    with pytest.raises(CuteError) as caught:
        trace_kernel(body, {"x": memref(Float32), "n": memref(Float32, "(?,4):(4,1)")}, Tensor.of)
    e = caught.value
    return f"{e.code}: {e.message}" + (f"\nhint: {e.hint}" if e.hint else "")


FLOAT_FORMULAS: list[Callable[[Any, Any], Any]] = [
    lambda a, b: a + b, lambda a, b: a - b, lambda a, b: a * b, lambda a, b: a / b, lambda a, b: a // b,
    lambda a, b: a % b, lambda a, b: -a, lambda a, b: abs(a), lambda a, b: a**3, lambda a, b: 2 - a,
    lambda a, b: 1.5 / b, lambda a, b: 3 * a + 1, lambda a, b: a * a[0, 0], lambda a, b: +a,
]  # fmt: skip


@pytest.mark.parametrize("n", range(len(FLOAT_FORMULAS)))
@pytest.mark.parametrize("dtype", [Float32, Float64])
def test_float_arithmetic(n: int, dtype: type[Numeric]) -> None:
    f = FLOAT_FORMULAS[n]

    def body(a: Any, b: Any, out: Any) -> None:
        out.store(f(a.load(), b.load()))

    a = RNG.integers(-8, 8, (4, 6)).astype(dtype.numpy)
    b = RNG.integers(1, 5, (4, 6)).astype(dtype.numpy)
    out = np.full_like(a, np.nan)
    run(body, {"a": a, "b": b, "out": out}, dict.fromkeys(("a", "b", "out"), dtype))
    np.testing.assert_allclose(out, f(a, b), rtol=1e-6)


INT_FORMULAS: list[Callable[[Any, Any], Any]] = [
    lambda a, b: a + b, lambda a, b: a - b, lambda a, b: a * b, lambda a, b: a // b, lambda a, b: a % b,
    lambda a, b: a & b, lambda a, b: a | b, lambda a, b: a ^ b, lambda a, b: a << 2, lambda a, b: a >> 1,
    lambda a, b: ~a, lambda a, b: -a, lambda a, b: 7 - a,
    lambda a, b: 100 // b, lambda a, b: a // 3, lambda a, b: a % 4,
]  # fmt: skip


@pytest.mark.sample(every=3)
@pytest.mark.parametrize("n", range(len(INT_FORMULAS)))
@pytest.mark.parametrize("dtype", [Int32, Uint32, Int16, Int64])
def test_integer_arithmetic(n: int, dtype: type[Numeric]) -> None:
    f = INT_FORMULAS[n]

    def body(a: Any, b: Any, out: Any) -> None:
        out.store(f(a.load(), b.load()))

    a = RNG.integers(-100 if dtype.signed else 200, 1000, (4, 6)).astype(dtype.numpy)
    b = RNG.integers(1, 90, (4, 6)).astype(dtype.numpy)
    out = np.zeros_like(a)
    run(body, {"a": a, "b": b, "out": out}, dict.fromkeys(("a", "b", "out"), dtype))
    assert (out == f(a, b)).all()


COMPARISONS: list[Callable[[Any, Any], Any]] = [
    lambda a, b: a < b, lambda a, b: a <= b, lambda a, b: a > b, lambda a, b: a >= b, lambda a, b: a == b,
    lambda a, b: a != b, lambda a, b: a < 1, lambda a, b: b <= 2, lambda a, b: (a < b) | (b == 1),
    lambda a, b: ~(a < b) & (a != 0), lambda a, b: (a < b) ^ (b < 1),
]  # fmt: skip


@pytest.mark.parametrize("n", range(len(COMPARISONS)))
@pytest.mark.parametrize("dtype", [Float16, Int32, Uint32])
def test_comparisons(n: int, dtype: type[Numeric]) -> None:
    f = COMPARISONS[n]

    def body(a: Any, b: Any, out: Any) -> None:
        found = f(a.load(), b.load())
        assert found.dtype is Boolean and found.shape == (4, 6)
        out.store(found)

    a, b = (RNG.integers(0, 4, (4, 6)).astype(dtype.numpy) for _ in range(2))
    out = np.zeros((4, 6), bool)
    run(body, {"a": a, "b": b, "out": out}, {"a": dtype, "b": dtype, "out": Boolean})
    assert (out == f(a, b)).all()


@pytest.mark.parametrize(
    ("of", "to"),
    [(Float32, Float16), (Float16, Float32), (Float32, BFloat16), (BFloat16, Float16), (Float32, Int32),
     (Int32, Float32), (Int8, Int64), (Int64, Int8), (Uint32, Float64), (Float32, Boolean), (Boolean, Int32)],
)  # fmt: skip
def test_conversions(of: type[Numeric], to: type[Numeric]) -> None:
    import ml_dtypes

    def body(a: Any, out: Any) -> None:
        out.store(a.load().to(to))

    def numpy_type(t: type[Numeric]) -> Any:
        return ml_dtypes.bfloat16 if t is BFloat16 else np.dtype(t.numpy)

    values = RNG.integers(0 if of in (Boolean, Uint32) else -3, 4, (4, 6))
    a = values.astype(np.float32).astype(numpy_type(of))
    out = np.zeros((4, 6), numpy_type(to))
    run(body, {"a": a, "out": out}, {"a": of, "out": to})
    assert (out == a.astype(numpy_type(to))).all()


def test_types_are_promoted_like_numbers() -> None:
    def body(x: Any, n: Any) -> None:
        v = x.load()
        assert (v + 1).dtype is Float32 and (v.to(Int32) + 1.5).dtype is Float32
        assert (v.to(Float16) + v).dtype is Float32 and (v.to(Int8) + v.to(Int32)).dtype is Int32
        assert (v.to(Int32) / 2).dtype is Float32 and (v > 0).to(Float16).dtype is Float16
        assert (np.float32(2) * v).dtype is Float32 and isinstance(np.float32(2) * v, TensorSSA)
        assert repr(v) == "vector<24xf32> o (4,6)" and len(v) == v.size == 24

    trace_kernel(body, {"x": memref(Float32), "n": memref(Float32)}, Tensor.of)


@pytest.mark.parametrize(
    ("a", "b"),
    [((4, 1), (4, 6)), ((1, 6), (4, 1)), ((6,), (4, 6)), ((1,), (4, 6)), ((4, 6), (1, 1)), ((2, 1, 3), (5, 1))],
)
def test_shapes_broadcast_like_numpy(a: tuple[int, ...], b: tuple[int, ...]) -> None:
    shape = np.broadcast_shapes(a, b)
    assert broadcast_shape(a, b) == shape == broadcast_shape(b, a)

    def body(x: Any, y: Any, out: Any) -> None:
        v = x.load() * 100 + y.load()
        assert v.shape == shape
        out.store(v)

    x, y = (RNG.integers(0, 90, s).astype(np.float32) for s in (a, b))
    out = np.zeros(shape, np.float32)
    run(body, {"x": x, "y": y, "out": out}, dict.fromkeys(("x", "y", "out"), Float32))
    assert (out == x * 100 + y).all()


def test_nested_shapes_broadcast() -> None:
    assert broadcast_shape(((2, 1), 3), ((2, 4), 3)) == ((2, 4), 3)
    assert broadcast_shape((8, 3), ((2, 4), 3)) == ((2, 4), 3)
    assert broadcast_shape(((2, 4), 1), (1, 3)) == ((2, 4), 3)

    def body(x: Any, n: Any) -> None:
        v = x.load().reshape(((2, 2), 6))
        row = v[((None, 0), 0)].reshape(((2, 1), 1))
        x.store((v + row).reshape((4, 6)))

    x = RNG.integers(0, 90, (4, 6)).astype(np.float32)
    expected = x + np.tile(x[:2, 0], 2)[:, None]
    run(body, {"x": x, "n": x.copy()}, dict.fromkeys(("x", "n"), Float32))
    assert (x == expected).all()


def test_elements_and_slices() -> None:
    def body(x: Any, i: Any, out: Any) -> None:
        v = x.load()
        at = i[0]
        out[0] = v[5]
        out[1] = v[2, 3]
        out[2] = v[at]
        out[3] = v[at % 4, 1]
        out[4] = v[None, 2].sum()
        out[5] = v[(1, None)].reshape((2, 3))[1, 2]
        out[6] = v[at % 4, None][4]
        out[7] = v[1:3, 2:5].sum()
        out[8] = sum(v)
        assert v[1:3, 2:5].shape == (2, 3) and v[None, 2].shape == (4,)

    x = RNG.integers(0, 90, (4, 6)).astype(np.float32)
    out = np.zeros(9, np.float32)
    run(body, {"x": x, "i": np.array([7], np.int32), "out": out}, {"x": Float32, "i": Int32, "out": Float32})
    flat = x.ravel(order="F")
    expected = [flat[5], x[2, 3], flat[7], x[3, 1], x[:, 2].sum(), x[1].reshape(2, 3, order="F")[1, 2], x[3, 4],
                x[1:3, 2:5].sum(), x.sum()]  # fmt: skip
    assert out.tolist() == [float(e) for e in expected]


def test_bitcast() -> None:
    def body(x: Any, n: Any, out: Any) -> None:
        out.store(x.load().bitcast(Int32))
        n.store(x.load().bitcast(Float16))

    x = RNG.standard_normal((4, 6)).astype(np.float32)
    halves = np.zeros((8, 6), np.float16)
    out = np.zeros((4, 6), np.int32)
    run(body, {"x": x, "n": halves, "out": out}, {"x": Float32, "n": Float16, "out": Int32})
    assert (out == x.view(np.int32)).all()
    np.testing.assert_array_equal(halves.ravel(order="F").view(np.int16), x.ravel(order="F").view(np.int16))


NAMES = {"ADD": np.add, "MUL": np.multiply, "MAX": np.maximum, "MIN": np.minimum}


@pytest.mark.sample(pairs=True)
@pytest.mark.parametrize("order", ["tree", "serial"])
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("function", [False, True])
def test_reductions(name: str, order: str, function: bool) -> None:
    op: Any = ReductionOp[name]
    if function:
        op = {"ADD": lambda a, b: a + b, "MUL": lambda a, b: a * b, "MAX": lambda a, b: vf.where(a > b, a, b),
              "MIN": lambda a, b: vf.where(a < b, a, b)}[name]  # fmt: skip

    def body(x: Any, out: Any, rows: Any, columns: Any) -> None:
        v = x.load()
        out[0] = v.reduce(op, order=order)
        out[1] = v.reduce(op, 3.0, order=order)
        by_row = v.reduce(op, reduction_profile=(None, 1), order=order)
        assert by_row.shape == (5,)
        rows.store(by_row)
        columns.store(v.reduce(op, 2.0, (1, None), order=order))

    x = RNG.integers(1, 3, (5, 7)).astype(np.float32)
    out, rows, columns = (np.zeros(n, np.float32) for n in (2, 5, 7))
    run(
        body,
        {"x": x, "out": out, "rows": rows, "columns": columns},
        dict.fromkeys(("x", "out", "rows", "columns"), Float32),
    )
    u = NAMES[name]
    whole = u.reduce(x, axis=None)
    assert out.tolist() == [whole, u(np.float32(3), whole)]
    assert (rows == u.reduce(x, axis=1)).all() and (columns == u(2, u.reduce(x, axis=0))).all()


def test_a_tree_is_more_exact_than_a_chain() -> None:
    """Adding 1024 times 0.1 in f32 is less accurate in sequence than as a tree, where ten roundings accumulate."""

    def body(x: Any, out: Any) -> None:
        v = x.load()
        out[0] = v.sum()
        out[1] = v.reduce(ReductionOp.ADD, order="serial")

    x = np.full(1024, 0.1, np.float32)
    out = np.zeros(2, np.float32)
    run(body, {"x": x, "out": out}, {"x": Float32, "out": Float32})
    exact = float(np.float64(np.float32(0.1)) * 1024)
    assert abs(out[0] - exact) <= 10 * 2**-24 * exact < abs(out[1] - exact)


def test_truth_and_integer_reductions() -> None:
    def body(x: Any, out: Any, bits: Any) -> None:
        v = x.load()
        out[0] = (v >= 0).all()
        out[1] = (v > 88).any()
        out[2] = vf.any_(v == 3)
        out[3] = vf.all_(v == 3)
        bits[0] = v.reduce(ReductionOp.AND)
        bits[1] = v.reduce(ReductionOp.OR)
        bits[2] = v.reduce(ReductionOp.XOR)
        bits[3] = v.max()
        bits[4] = v.min()

    x = np.array([3, 7, 35, 67, 3], np.int32)
    out, bits = np.zeros(4, bool), np.zeros(5, np.int32)
    run(body, {"x": x, "out": out, "bits": bits}, {"x": Int32, "out": Boolean, "bits": Int32})
    assert out.tolist() == [True, False, True, False]
    expected = [np.bitwise_and.reduce(x), np.bitwise_or.reduce(x), np.bitwise_xor.reduce(x), 67, 3]
    assert bits.tolist() == [int(e) for e in expected]


def test_making_vectors() -> None:
    def body(x: Any, out: Any) -> None:
        v = x.load()
        w = vf.where(v > 1, v, -1.0) + vf.full((4, 6), 2.5) + vf.zeros_like(v) * vf.ones_like(x) + vf.full_like(v, 3)
        w = w + vf.arange(6).to(Float32) + vf.empty_like(v)
        both = vf.concat(v.reshape(24), vf.arange(1, 4).to(Float32))
        w = w + both[25] * 1000 + vf.where(v[0] > 100, 1.0, 5)
        w = w + vf.where(v > 2, 10.0, 20.0) + vf.where(True, v, 0.0)
        w = vf.where(v[0] > 100, 0.0, w)
        out.store(w)

    x = RNG.integers(0, 4, (4, 6)).astype(np.float32)
    out = np.zeros((4, 6), np.float32)
    run(body, {"x": x, "out": out}, {"x": Float32, "out": Float32})
    expected = np.where(x > 1, x, -1) + 2.5 + 3 + np.arange(6) + 2000 + 5 + np.where(x > 2, 10, 20) + x
    assert (out == expected).all()


def test_register_tensors() -> None:
    def body(x: Any, out: Any) -> None:
        r = make_rmem_tensor_like(x)
        assert r.shape == (4, 6) and r.stride == (1, 4) and r.memspace == "rmem" and r.element_type is Float32
        r.store(x.load())
        s = make_rmem_tensor((4, 6), Float32)
        assert s.stride == (1, 4)
        clear(s)
        s.fill(2)
        s[None, 1] = r[None, 2].load()
        s[0, None] = 9.0
        s[1, 1] = r[1, 1]
        s[2:4, 3:5] = 7
        flags = make_rmem_tensor_like(x, Boolean)
        flags.store(s.load() == 2.0)
        out.store(s.load() + flags.load().to(Float32) * 100)

    x = RNG.integers(20, 90, (4, 6)).astype(np.float32)
    out = np.zeros((4, 6), np.float32)
    run(body, {"x": x, "out": out}, {"x": Float32, "out": Float32})
    s = np.full((4, 6), 2, np.float32)
    s[:, 1] = x[:, 2]
    s[0] = 9
    s[1, 1] = x[1, 1]
    s[2:4, 3:5] = 7
    assert (out == s + (s == 2) * 100).all()


def test_functions_of_each_element() -> None:
    from cute_dialect.lang.values import numeric

    def body(x: Any, out: Any) -> None:
        v = x.load()
        once = v.__cute_map__(lambda a, b: numeric.binary("max", a, b), v, 2.0)
        each = mapped(lambda a: a * a + 1, (v,), by_element=True)
        assert once.shape == each.shape == (4, 6)
        out.store(once + each)

    x = RNG.integers(0, 4, (4, 6)).astype(np.float32)
    out = np.zeros((4, 6), np.float32)
    run(body, {"x": x, "out": out}, {"x": Float32, "out": Float32})
    assert (out == np.maximum(x, 2) + x * x + 1).all()


def test_forms_of_vectors() -> None:
    def body(x: Any, n: Any) -> None:
        v = x.load()
        form = form_of(v)
        assert form == form_of(v + 1) and hash(form) == hash(form_of(v + 1)) and form != form_of(v.to(Float16))
        again: Any = form.make(form.take(v))
        assert again.ssa is v.ssa and again.shape == v.shape and again.dtype is Float32
        with pytest.raises(MergeError) as caught:
            form.join(form_of(v.to(Float16).reshape(24)))
        assert str(caught.value) == (
            "error F205: it is a vector of Float32 with shape (4,6) or one of Float16 with shape (24)\n"
            "hint: convert with v.to(…), or change the shape with v.reshape(…) or v.broadcast_to(…)"
        )

    trace_kernel(body, {"x": memref(Float32), "n": memref(Float32)}, Tensor.of)


@pytest.mark.parametrize(
    ("body", "text"),
    [
        (lambda x, n: n.load(),
         "F240: a vector needs a static shape, but tensor 'n' has shape (?,4)\nhint: use a tile or a slice of "
         "static shape"),
        (lambda x, n: x.load() + x.load()[None, 0],
         "F243: vectors of shapes (4,6) and (4) cannot be broadcast: the extents of a mode must be equal, or "
         "one of them 1"),
        (lambda x, n: x.load().reshape((5, 5)), "F243: reshape: (5,5) has 25 elements, but the vector of shape "
         "(4,6) has 24"),
        (lambda x, n: x.load().broadcast_to((4, 7)),
         "F243: vectors of shapes (4,6) and (4,7) cannot be broadcast: the extents of a mode must be equal, or "
         "one of them 1"),
        (lambda x, n: x.store(x.load().to(Float16)),
         "F235: a vector of Float16 cannot be stored in a tensor of Float32\nhint: convert it with v.to(cute.Float32)"),
        (lambda x, n: x.store(x.load().reshape((6, 4))),
         "F243: a vector of shape (6,4) cannot be stored in a tensor of shape (4,6)\n"
         "hint: use v.reshape(…) for a different shape of equal size"),
        (lambda x, n: x.store(1.0),
         "F235: store needs a vector, got 1.0\nhint: use t.fill(x) to set all elements to a number"),
        (lambda x, n: x.load().__setitem__(0, 1.0),
         "F237: a vector is a value, and its elements cannot be assigned\n"
         "hint: assign to the register tensor that it came from, or to one created with cute.make_rmem_tensor"),
        (lambda x, n: x.load()[4, 0],
         "F242: the coordinate (4,0) is out of bounds for this vector of shape (4,6): 4 is not 0 to 3"),
        (lambda x, n: x.load().reduce(3),
         "F238: reduce: op must be one of ReductionOp.ADD, ReductionOp.MUL, ReductionOp.MAX, ReductionOp.MIN, "
         "ReductionOp.AND, ReductionOp.OR, ReductionOp.XOR, or a function of two numbers, got 3"),
        (lambda x, n: x.load().reduce("add", order="fast"),
         "F238: reduce: order must be 'tree' or 'serial', got 'fast'"),
        (lambda x, n: x.load().reduce("add", reduction_profile=(None, None, 1)),
         "F241: reduce: the reduction profile (_,_,1) does not match the shape (4,6)"),
        (lambda x, n: vf.full((33, 32), 1.0), "F171: a vector can have at most 1024 elements, but (33,32) has 1056"),
        (lambda x, n: (x.load() > 1).bitcast(Int8), "F236: Boolean elements cannot be reinterpreted as Int8"),
        (lambda x, n: x.load().to(Float16).reshape((3, 8)).bitcast(Float32),
         "F243: the first mode of (3,8) is not a whole number of Float32 elements (16 to 32 bits)"),
        (lambda x, n: x.load() & 1, "F236: '&' needs integers, got Float32"),
        (lambda x, n: n.fill(0),
         "F240: tensor 'n' of shape (?,4) cannot be filled because its number of elements is known only at run "
         "time\nhint: fill a tile of it, or assign the elements in a loop"),
        (lambda x, n: make_rmem_tensor_like(n),
         "F240: a register tensor needs a static shape, but tensor 'n' has (?,4)\n"
         "hint: use a tile or a slice of static shape"),
        (lambda x, n: vf.concat(x.load(), x.load().to(Int32)),
         "F203: concat: the vectors must have one element type, got Float32 and Int32\nhint: convert with .to(…)"),
        (lambda x, n: vf.where(x.load(), 1.0, 2.0),
         "F151: where: the condition must be Boolean, got this Float32\nhint: compare it: x != 0"),
        (lambda x, n: bool(x.load() == 1), "F143: the truth value of this vector of Boolean is known only at run "
         "time\nhint: this function is not compiled as kernel code; see cute.jit and cute.convert_package"),
    ],
)  # fmt: skip
def test_errors(body: Callable[..., object], text: str) -> None:
    assert message(body) == text
