"""Elementwise functions over arrays on the interpreter, compared with numpy and torch, and their errors."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

torch = pytest.importorskip("torch")

from cute_dialect import op  # noqa: E402
from cute_dialect.op import epilogue as ep  # noqa: E402

RNG = np.random.default_rng(5)


def integers(*shape: int, dtype: Any = np.float16) -> np.ndarray:
    return RNG.integers(-4, 5, shape).astype(dtype)


def two(x: Any, y: Any, z: Any, s: Any) -> Any:
    total = x * y + s
    return total - z, ep.maximum(total, 0.0)


@pytest.mark.slow
def test_shapes_and_layouts() -> None:
    """Vectors, scalars, gaps, transposed and reversed orders, and several modes give right results."""
    x = integers(6, 40)
    cases = [
        (x, integers(40), integers(6, 1)),
        (x[:, 3:30], integers(6, 27), integers(1, 1)),  # misaligned rows
        (x.T, integers(40, 6), integers(6)),  # The result has the memory order of x.
        (integers(3, 6, 40).transpose(1, 0, 2), integers(3, 40), integers(6, 1, 1)),
        (integers(2, 3, 4, 8), integers(3, 1, 8), integers(2, 1, 4, 1)),  # The operands are copied.
        (integers(7, 1), integers(1, 9), integers(7, 9)),
        (integers(1001), integers(1001), integers(1)),
        (integers(0, 5), integers(5), integers(1)),
    ]
    for i, (a, b, c) in enumerate(cases):
        d, e = op.elementwise(two, a, b, c, 0.5, dtype="f32", device="cpu")
        total = a.astype(float) * b + 0.5
        assert d.dtype == np.float32 and np.array_equal(d, total - c), i
        assert np.array_equal(e, np.broadcast_to(np.maximum(total, 0.0), d.shape)), i
    turned = op.add(x.T, 1.0, device="cpu")
    assert turned.strides == x.T.strides and np.array_equal(turned, x.T + 1)
    assert op.mul(np.full((), 3, np.float32), 2, device="cpu") == 6


def test_results_with_gaps_between_elements() -> None:
    """Writing one column of a matrix, or every second element, leaves the gaps unchanged."""
    for shape, strides in (((17, 1), (9, 1)), ((3, 1), (1, 1)), ((17,), (2,)), ((4, 1, 5), (10, 7, 2))):
        memory = torch.full((200,), 77.0)
        out = memory.as_strided(shape, strides, 3)
        x, y = torch.randn(shape), torch.randn(shape)
        assert op.sub(x, y, out=out, device="cpu") is out
        torch.testing.assert_close(out, x - y, rtol=0, atol=0)
        out.fill_(77.0)
        assert bool((memory == 77.0).all())


@pytest.mark.slow
def test_rows_of_any_length() -> None:
    """Contiguous matrices whose rows do not divide into vectors are processed as one long row."""
    for m, n in ((9, 33), (5, 17), (31, 8 + 3), (3, 257)):
        x, y, out = integers(m, n), integers(m, n), np.full((m, n), np.nan, np.float16)
        made = op.elementwise(lambda x, b, c, y: (x + b) * c + y)
        for b, c in ((integers(n), integers(m, 1)), (integers(n), integers(1)), (integers(1), integers(m, 1))):
            kernel = made.kernel(x, b, c, y)
            assert kernel.name.endswith("-flat"), kernel.name
            made(x, b, c, y, out=out, device="cpu")
            assert np.array_equal(out, (x.astype(float) + b) * c + y), (m, n)
        assert not made.kernel(x[:, :-1], b, c, y[:, :-1]).name.endswith("-flat")  # Rows have gaps.
        # Without broadcast operands the matrix is already one row.
        assert not op.add.kernel(x, y).name.endswith("-flat")


@pytest.mark.slow
def test_types() -> None:
    """Equal types give that type, mixed types f32, and an 8-bit type yields to the other. Results round once and
    saturate.
    """
    e4, bf = ml_dtypes.float8_e4m3fn, ml_dtypes.bfloat16
    x, y = integers(3, 48, dtype=np.float32) * 37, integers(48, dtype=np.int8)
    for kind, limit in ((np.int8, 127), (np.uint8, 255), (e4, 448), (bf, None), (np.float16, None)):
        found = op.elementwise(lambda x, y: x * y, x, y, dtype=np.dtype(kind), device="cpu")
        wanted = x * y
        if limit is not None:
            wanted = np.clip(wanted, 0 if kind is np.uint8 else -limit - (kind is np.int8), limit)
        assert found.dtype == kind and np.array_equal(found.astype(float), wanted.astype(kind).astype(float))
    assert op.add(y, y, device="cpu").dtype == np.int8 and op.add(x, y, device="cpu").dtype == np.float32
    assert op.add(x.astype(bf), x.astype(np.float16), device="cpu").dtype == np.float32
    assert op.div(y, x.astype(e4).astype(np.float16), device="cpu").dtype == np.float16


def test_results_in_given_memory() -> None:
    x, y = integers(4, 33), integers(4, 33)
    wanted = x - y
    place = np.full((4, 40), 7, np.float16)
    assert op.sub(x, y, out=place[:, 2:35], device="cpu").base is place
    assert np.array_equal(place[:, 2:35], wanted) and (place[:, :2] == 7).all() and (place[:, 35:] == 7).all()
    op.sub(x, y, out=x, device="cpu")
    assert np.array_equal(x, wanted)


@pytest.mark.slow
def test_functions_of_torch_and_gradients() -> None:
    """Torch functions are traced, and gradients of broadcast arrays are summed."""
    made = op.elementwise(lambda x, b, s: (torch.nn.functional.silu(x + b) * s, torch.sigmoid(x)))
    generator = torch.Generator().manual_seed(0)
    x, b = torch.randn(5, 24, generator=generator), torch.randn(24, generator=generator)
    for kind, within in ((torch.float32, 1e-5), (torch.bfloat16, 2e-2)):
        ours = [t.to(kind).requires_grad_() for t in (x, b)]
        exact = [t.detach().double().requires_grad_() for t in ours]
        found, wanted = made(*ours, 2.0, device="cpu"), made.function(*exact, 2.0)
        for f, w in zip(found, wanted):
            assert f.dtype == kind and f.shape == w.shape
            torch.testing.assert_close(f.double(), w, rtol=within, atol=within)
        dy = [torch.linspace(-1, 1, 120).view(5, 24) for _ in found]
        got = torch.autograd.grad(found, ours, [t.to(kind) for t in dy])
        want = torch.autograd.grad(wanted, exact, [t.to(kind).double() for t in dy])
        for g, w in zip(got, want):
            assert g.dtype == kind
            torch.testing.assert_close(g.double(), w, rtol=within, atol=4 * within)
    y = torch.compile(lambda x: op.mul(x, 2.0, device="cpu") + 1, fullgraph=True, backend="eager")(x)
    torch.testing.assert_close(y, 2 * x + 1)


X = integers(3, 8)
ERRORS: list[tuple[Any, type[Exception], str]] = [
    (lambda: op.add(X, X[:2], device="cpu"), op.ShapeError,
     r"add: arrays of shapes \(3, 8\), \(2, 8\) do not broadcast"),
    (lambda: op.elementwise(5, X, device="cpu"), op.ArgumentError, "function is 5; pass a function of the elements"),
    (lambda: op.add(X.astype(np.int16), X, device="cpu"), op.DtypeError, "argument 0 has dtype i16; it must"),
    (lambda: op.add(X, X.astype(np.uint32), device="cpu"), op.DtypeError, "argument 1 has dtype ui32; it must"),
    (lambda: op.add(X, X, dtype="i16", device="cpu"), op.DtypeError, "add: dtype i16 is not supported; use one of f16"),
    (lambda: op.add(X, X, dtype="f32", out=X, device="cpu"), op.DtypeError,
     "out has dtype f16, but dtype is f32; omit one"),
    (lambda: op.add(X, 1.0, out=np.zeros((8, 3), np.float16), device="cpu"), op.ShapeError,
     r"out has shape \(8, 3\); it must have \(3, 8\)"),
    (lambda: op.add(X[:, 1:], X[:, :-1], out=X[:, 1:], device="cpu"), op.LayoutError, "out overlaps an argument"),
    (lambda: op.add(X, 1.0, out=np.broadcast_to(np.zeros(8, np.float16), (3, 8)), device="cpu"), op.LayoutError,
     "its elements must not share addresses"),
    (lambda: op.add(X, X[0], out=np.zeros((3, 16), np.float16)[:, ::2], device="cpu"), op.LayoutError,
     "its rows must be contiguous"),
    (lambda: op.add(integers(3, 4, 8), 1.0, out=np.zeros((3, 6, 20), np.float16)[:, ::3][:, :, :8], device="cpu"),
     op.ShapeError, "out has shape"),
    (lambda: op.add(integers(3, 2, 4, 8), 1.0, out=np.zeros((3, 3, 6, 20), np.float16)[:, :2, :4, :8], device="cpu"),
     op.LayoutError, "the rows of out must have a constant stride"),
    (lambda: op.add(X, X, out=(X, X), device="cpu"), op.ShapeError, "out has 2 arrays; the function has 1 results"),
    (lambda: op.add(1.0, 2.0, device="cpu"), op.EpilogueError, "add: all arguments are numbers"),
    (lambda: op.add(X, device="cpu"), op.EpilogueError, "add: missing a required argument"),
    (lambda: op.elementwise(lambda x: "x", X, device="cpu"), op.EpilogueError, "computed from the arguments, got str"),
    (lambda: op.elementwise(lambda x: (), X, device="cpu"), op.EpilogueError, "the function returns nothing"),
    (lambda: op.elementwise(lambda x: x + ep.row(x), X, device="cpu"), op.EpilogueError, r"row\(\) is not supported"),
    (lambda: op.elementwise(lambda x: ep.sum(x, -1), X, device="cpu"), op.EpilogueError, "got Reduced"),
    (lambda: op.elementwise(lambda x: x if x > 0 else 0, X, device="cpu"), op.EpilogueError, "select per element"),
    (lambda: op.add(torch.ones(3, requires_grad=True), 1.0, out=torch.ones(3), device="cpu"), op.UnsupportedError,
     "out cannot be used when gradients are required"),
    (lambda: op.add(torch.ones(3), 1.0), op.DeviceError, 'no GPU was found; pass device="cpu"'),
]  # fmt: skip


@pytest.mark.parametrize("call, kind, message", ERRORS, ids=[e[2][:50] for e in ERRORS])
def test_mismatched_arguments_are_rejected(call: Any, kind: type[Exception], message: str) -> None:
    with pytest.raises(kind, match=message):
        call()


def test_classes_of_shapes() -> None:
    """One kernel serves all lengths, scalars and alignments. Another graph or layout needs another kernel."""
    made = op.elementwise(lambda x, s: x * s)
    like = made.kernel(X, 1.0).name
    assert all(made.kernel(*given).name == like for given in ((integers(3, 77), 2.0), (integers(9)[1:], -1.0)))
    others = [made.kernel(X, 2), made.kernel(X[:, ::2], 1.0), made.kernel(X, 1.0, dtype="f32"), op.add.kernel(X, 1.0)]
    assert len({like, *(k.name for k in others)}) == 5


def test_more_blocks_than_a_grid_dimension(monkeypatch: pytest.MonkeyPatch) -> None:
    """Modes are merged only up to the launch limit, and larger calls raise an error."""
    from cute_dialect.op.functions import elementwise as calls

    monkeypatch.setattr(calls, "_MOST", 16)
    assert np.array_equal(op.add(X, X, device="cpu"), X + X)  # three rows of 8, not one of 24
    with pytest.raises(
        op.UnsupportedError, match="add: 40 rows of 8 elements exceed the limit of 16 vectors of 16 bytes"
    ):
        op.add(integers(40, 8), 1.0, device="cpu")


def test_second_derivatives() -> None:
    x, y = (torch.rand(4, 8).requires_grad_() for _ in range(2))
    found = op.elementwise(lambda x, y: x * x * y, x, y, device="cpu")
    dx, dy = torch.autograd.grad(found.sum(), (x, y), create_graph=True)
    torch.testing.assert_close(dx, 2 * x * y)
    second = torch.autograd.grad((dx + dy).sum(), (x, y))
    for got, want in zip(second, (2 * y + 2 * x, 2 * x)):
        torch.testing.assert_close(got, want)
