"""``device="cpu"`` with numpy arrays and without torch: results, operands that are not read, and options."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from cute_dialect import op
from cute_dialect.op.arrays.library import read_all
from cute_dialect.runtime.arrays import NotAnArray, view_of

NAN, INF = float("nan"), float("inf")
Array = np.ndarray[Any, Any]


def integers(*shape: int, dtype: Any = np.float16, seed: int = 0) -> Array:
    return np.random.default_rng(seed + sum(shape)).integers(-2, 3, shape).astype(dtype)


A, B = integers(48, 72), integers(72, 80)
EXACT = A.astype(np.float64) @ B


@pytest.mark.end_to_end
@pytest.mark.sample("float16")
@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16, np.float32, ml_dtypes.float8_e4m3fn])
def test_types(dtype: Any) -> None:
    a, b = A.astype(dtype), B.astype(dtype)
    found = op.mm(a, b, device="cpu")
    assert type(found) is np.ndarray and found.flags.c_contiguous
    assert found.dtype == (ml_dtypes.bfloat16 if dtype is ml_dtypes.float8_e4m3fn else dtype)
    assert np.array_equal(found.astype(np.float64), EXACT.astype(found.dtype).astype(np.float64))
    for wanted in ("f32", np.float32, np.dtype(np.float32), float) if dtype is np.float16 else ("f32",):
        assert np.array_equal(op.mm(a, b, device="cpu", dtype=wanted), EXACT)


def test_copies_of_bytes() -> None:
    """Arrays of element types that numpy lacks can also be copied to other strides."""
    for dtype in (ml_dtypes.float8_e5m2, ml_dtypes.float8_e4m3fn, np.int8):
        x = np.arange(12).reshape(3, 4).astype(dtype)
        where, views = read_all("mm", {"a": x}, "cpu")
        copied = where.library.native(where.library.copied(views["a"], (1, 16)))
        assert copied.strides == (1, 16) and copied.dtype == dtype
        assert np.array_equal(copied.astype(float), x.astype(float))


@pytest.mark.slow
@pytest.mark.parametrize(("m", "n"), [(48, 80), (47, 79)])
def test_epilogues(m: int, n: int) -> None:
    """Some epilogues run in the kernel, and others are finished by numpy."""
    a, b, c, v = A[:m], B[:, :n], integers(48, 80)[:m, :n], integers(80, dtype=np.float32)[:n]
    x = 0.5 * EXACT[:m, :n] + 2 * c.astype(float) + v
    phi = np.vectorize(__import__("math").erf)(x / np.sqrt(2))
    tanh = np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3))
    wanted = {
        "": x, "relu": np.maximum(x, 0), "gelu": 0.5 * x * (1 + phi), "gelu_tanh": 0.5 * x * (1 + tanh),
        "silu": x / (1 + np.exp(-x)),
    }  # fmt: skip
    for name, exact in wanted.items():
        found = op.mm(a, b, alpha=0.5, beta=2.0, c=c, bias=v, activation=name, device="cpu")
        assert np.abs(found - exact).max() <= 2.0**-10 * np.abs(exact).max()
    found = op.addmm(v.astype(np.float16), a, b, device="cpu", activation="relu")
    assert np.array_equal(found, np.maximum(EXACT[:m, :n] + v, 0))


@pytest.mark.slow
@pytest.mark.parametrize("batch", [False, True])
@pytest.mark.parametrize(("m", "n"), [(48, 80), (47, 79)])
def test_results_with_contiguous_columns(batch: bool, m: int, n: int) -> None:
    """The transposed problem swaps per-row and per-column biases and the coordinates of hooks."""
    matrices = (2,) if batch else ()
    function = op.bmm if batch else op.mm
    a, b, c = integers(*matrices, m, 72), integers(*matrices, 72, n), integers(*matrices, m, n)
    exact = a.astype(float) @ b
    out = np.full((*matrices, n, m), NAN, np.float16).swapaxes(-1, -2)
    assert function(a, b, out, device="cpu") is out and np.array_equal(out, exact)
    rows, columns = integers(m, 1), integers(n)
    assert np.array_equal(function(a, b, out, bias=rows, c=c, beta=2.0, device="cpu"), exact + rows + 2 * c)
    assert np.array_equal(
        function(a, b, out, bias=columns, c=out, device="cpu"), exact + rows + 2 * c + exact + columns
    )
    if m == 48:
        found = function(a, b, out, hook=lambda x, row, column: x if column > row else 0.0, device="cpu")
        assert np.array_equal(found, np.triu(exact, 1))


def test_result_may_share_a_buffer_with_an_operand() -> None:
    """The result may occupy other columns of the operand's buffer."""
    whole = np.zeros((48, 72 + 80), np.float16)
    whole[:, :72] = A
    assert np.array_equal(op.mm(whole[:, :72], B, whole[:, 72:], device="cpu"), EXACT)
    assert np.array_equal(whole[:, :72], A)


@pytest.mark.slow
def test_beta_is_zero() -> None:
    c, columns = np.full((48, 80), NAN, np.float16), integers(80)
    for m, n in ((48, 80), (47, 79)):
        found = op.mm(A[:m], B[:, :n], c=c[:m, :n], beta=0.0, bias=columns[:n], device="cpu")
        assert np.array_equal(found, (EXACT + columns)[:m, :n])
        out = c[:m, :n].copy()
        assert np.array_equal(op.addmm(out, A[:m], B[:, :n], beta=0, out=out, device="cpu"), EXACT[:m, :n])


@pytest.mark.slow
@pytest.mark.parametrize("dtype", [np.float16, np.float32, ml_dtypes.float8_e4m3fn])
@pytest.mark.parametrize(("m", "n"), [(48, 80), (47, 79)])
def test_alpha_is_zero(dtype: Any, m: int, n: int) -> None:
    """A and B are not read, so their infinities and NaN do not reach the result."""
    a, b = A.astype(dtype), B.astype(dtype)
    a[1, 2], b[3, 4], a[5] = NAN, NAN, NAN if dtype is ml_dtypes.float8_e4m3fn else INF
    a, b, c, rows = a[:m], b[:, :n], integers(m, n, dtype=np.float32), integers(m, 1, dtype=np.float32)
    for kind in (np.float16, np.float32) if dtype is np.float16 and m == 48 else (dtype,):
        kind = ml_dtypes.bfloat16 if kind is ml_dtypes.float8_e4m3fn else kind
        found = op.mm(
            a, b, alpha=0.0, beta=2.0, c=c.astype(kind), bias=rows, activation="relu", device="cpu", dtype=kind
        )
        assert np.array_equal(found.astype(float), np.maximum(2 * c + rows, 0))
        assert not op.mm(a, b, alpha=0, device="cpu", dtype=kind).any()
    batch = op.baddbmm(np.stack([c, -c]).astype(kind), np.stack([a, a]), b[None], alpha=0, device="cpu", dtype=kind)
    assert np.array_equal(batch.astype(float), np.stack([c, -c]))
    if m == 48:
        found = op.mm(a, b, alpha=0.0, hook=lambda x, row, column: x + 1.0, device="cpu")
        assert np.array_equal(found.astype(float), np.ones((m, n)))


@pytest.mark.sample("0-8-8", "8-0-8", "0-0-0")
@pytest.mark.parametrize(("m", "n", "k"), [(0, 8, 8), (8, 0, 8), (8, 16, 0), (0, 0, 0), (7, 9, 0)])
def test_empty_arrays(m: int, n: int, k: int) -> None:
    bias = integers(n)
    found = op.mm(integers(m, k), integers(k, n), bias=bias, device="cpu")
    assert found.shape == (m, n) and np.array_equal(found, np.broadcast_to(bias, (m, n)))
    assert np.array_equal(op.bmm(integers(2, m, k), integers(2, k, n), device="cpu"), np.zeros((2, m, n)))


@pytest.mark.sample("(72,)-(72,)")
@pytest.mark.parametrize(
    ("a", "b"),
    [((72,), (72,)), ((48, 72), (72,)), ((72,), (72, 80)), ((2, 48, 72), (72, 80)), ((2, 1, 8, 72), (3, 72, 16)),
     ((1, 8, 72), (2, 72, 16)), ((0, 8, 72), (72, 16)), ((2, 0, 8, 72), (72, 16))],
    ids=str,
)  # fmt: skip
def test_matmul(a: tuple[int, ...], b: tuple[int, ...]) -> None:
    x, y = integers(*a), integers(*b, seed=1)
    found, exact = op.matmul(x, y, device="cpu"), np.matmul(x.astype(float), y)
    assert found.shape == exact.shape and np.array_equal(found, exact)


@pytest.mark.slow
def test_options() -> None:
    """No check reports an error under any schedule, and ``report`` receives the reports."""
    reports: list[Any] = []
    for schedule in ("round-robin", "reverse", "random", "adversarial"):
        found = op.mm(
            A, B, device="cpu", checks=["race", "oob", "uninit", "sync"], schedule=schedule, seed=3, reports=["banks"],
            report=reports.append,
        )  # fmt: skip
        assert np.array_equal(found, EXACT)
    assert len(reports) == 4 and all(r.profile is not None and r.blocks == r.all_blocks > 0 for r in reports)
    steps: list[Any] = []
    op.mm(A, B, device="cpu", progress=steps.append, report=reports.append)
    assert len(reports) == 5
    out = np.full((48, 80), NAN, np.float16)
    op.mm(A, B, out, device="cpu", blocks=[0], report=reports.append)
    assert reports[-1].blocks == 1 and (reports[-1].all_blocks == 1) == (not np.isnan(out).any())


@pytest.mark.slow
def test_split_k() -> None:
    """The chosen split-K kernel runs on the interpreter."""
    a, b = integers(32, 8192), integers(8192, 40)
    found = op.explain(op.mm, a, b)
    assert found.choice is not None and found.choice.parts > 1
    assert np.array_equal(op.mm(a, b, device="cpu", dtype="f32"), a.astype(float) @ b)


class Foreign:
    """An array that supports only DLPack."""

    def __init__(self, array: Array) -> None:
        self.array = array

    def __dlpack__(self, **_: object) -> Any:
        return self.array.__dlpack__()

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.array.__dlpack_device__()


@pytest.mark.slow
def test_dlpack() -> None:
    out = np.zeros((48, 80), np.float16)
    given = Foreign(out)
    assert op.mm(Foreign(A), Foreign(B), given, device="cpu") is given and np.array_equal(out, EXACT)


@pytest.mark.slow
def test_without_torch() -> None:
    code = (
        "import sys; sys.modules['torch'] = None; import numpy as np; from cute_dialect import op; "
        "a = np.ones((16, 24), np.float16); c = op.linear(a[None], a, np.ones(16, np.float16), 'gelu', device='cpu'); "
        "assert c.shape == (1, 16, 16) and abs(c - 25).max() == 0; assert (op.matmul(a[0], a[1], device='cpu') == 24)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_views_beyond_their_memory() -> None:
    """Numpy can make views past the end of their buffer without an error, so ``op`` must refuse them."""
    memory = np.ones((64, 64), np.float16)
    b = np.ones((64, 32), np.float16)
    strided = np.lib.stride_tricks.as_strided
    view = view_of(memory)
    of_8192 = "mm: a: expected an array within the 8192 bytes of its underlying memory, got shape"
    cases: list[tuple[Any, str]] = [
        (strided(memory, (65, 64), (128, 2)), "(65, 64) with strides (64, 1), which spans bytes 0 to 8320"),
        (strided(memory[1:], (64, 64), (128, 2)), "(64, 64) with strides (64, 1), which spans bytes 128 to 8320"),
        (strided(memory, (2, 64), (-128, 2)), "(2, 64) with strides (-64, 1), which spans bytes -128 to 128"),
        (view._replace(shape=(65, 64)), "(65, 64) with strides (64, 1), which spans bytes 0 to 8320"),
    ]
    for a, said in cases:
        with pytest.raises(op.LayoutError) as told:
            op.mm(a, b, np.zeros((a.shape[0], 32), np.float16), device="cpu")
        assert str(told.value) == f"{of_8192} {said}"
    with pytest.raises(op.LayoutError, match=r"^Gemm.run: A: expected an array within the 8192 bytes"):
        op.Gemm(element="f16", layout="row").run(cases[0][0], b, device="cpu")
    with pytest.raises(NotAnArray, match="expected an array within"):
        view_of(strided(np.zeros(4, np.float32)[::-1], (5,), (-4,)))
    for inside in (memory[::-1], memory.T[3:], strided(memory[2:], (62, 32), (128, 2)), memory[5:5], memory.view("u1")):
        assert view_of(inside).shape == inside.shape
    buffer = bytearray(64)
    assert view_of(np.frombuffer(buffer, np.float32)[2:]).shape == (14,)
