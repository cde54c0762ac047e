"""A launch whose arguments satisfy the kernel's promises selects the specialized kernel, otherwise the fallback."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import cute_dialect.lang as cute
from cute_dialect.lang.tracing.errors import KernelTypeError
from cute_dialect.pipelines import compile as compile_cute

ANY = "(?,?):(?,?)"
STRONG = "(?,?):(?{div=4},1)"
ROWS = "(?,?):(?,1)"


@cute.kernel
def weak(x: cute.Tensor, y: cute.Tensor) -> None:
    thread, _, _ = cute.arch.thread_idx()
    y[0, thread] = x[0, thread]


@cute.kernel
def strong(x: cute.Tensor, y: cute.Tensor) -> None:
    thread, _, _ = cute.arch.thread_idx()
    y[0, thread] = x[0, thread] + 100


@cute.jit
def run(x: cute.Tensor[None, ANY], y: cute.Tensor[None, ANY]) -> None:
    fast = [cute.promise(t, STRONG, align=16) for t in (x, y)]
    strong(*fast).launch(grid=1, block=8, fallback=weak(x, y))


def aligned(columns: int, offset: int = 0) -> np.ndarray:
    raw = np.zeros(8 * columns + 8, np.float32)
    skip = -raw.ctypes.data % 16 // 4 + offset
    return raw[skip : skip + 2 * columns].reshape(2, columns)


@pytest.mark.parametrize(("columns", "offset", "kept"), [(8, 0, True), (12, 0, True), (9, 0, False), (8, 1, False)])
def test_launch_checks_the_promise(columns: int, offset: int, kept: bool) -> None:
    x, y = aligned(columns, offset), aligned(columns)
    x[:] = np.arange(x.size).reshape(x.shape)
    run(x, y, device="cpu")
    assert np.array_equal(y[0, :8], x[0, :8] + (100 if kept else 0))


def test_the_parameter_has_the_promised_type() -> None:
    matrix = cute.Tensor["f32", ANY]  # pyright: ignore
    text = cute.trace(run, matrix, matrix).mlir()
    assert '!cute.memref<f32, gmem, align<16>, "(?,?):(?{div=4},1)">' in text
    assert "launch_func @kernels::@weak" in text and "cute.variants = [@kernels::@strong]" in text
    assert compile_cute(text, emit="base").kernel("run").plan(aligned(8), aligned(8)).kernel == "strong"


@cute.kernel
def weak_of_all(tensors: Any) -> None:
    thread, _, _ = cute.arch.thread_idx()
    tensors[1][0, thread] = tensors[0][0, thread]


@cute.kernel
def strong_of_all(tensors: Any) -> None:
    thread, _, _ = cute.arch.thread_idx()
    tensors[1][0, thread] = tensors[0][0, thread] + 100


@cute.jit
def run_all(tensors: Any) -> None:
    fast = tuple([cute.promise(t, STRONG, align=16) for t in tensors])
    strong_of_all(fast).launch(grid=1, block=8, fallback=weak_of_all(tensors))


def test_promises_of_tensors_in_a_tuple() -> None:
    for columns in (8, 9):
        x, y = aligned(columns), aligned(columns)
        run_all((x, y), device="cpu")
        assert (y[0, :8] == (100 if columns == 8 else 0)).all()


def refused(function: Any) -> str:
    matrix = cute.Tensor["f32", ANY]  # pyright: ignore
    with pytest.raises(KernelTypeError) as e:
        cute.trace(function, matrix, matrix)
    return str(e.value)


def test_a_promise_needs_a_fallback_of_the_same_arguments() -> None:
    @cute.jit
    def alone(x: Any, y: Any) -> None:
        strong(cute.promise(x, STRONG), y).launch(grid=1, block=8)

    @cute.jit
    def swapped(x: Any, y: Any) -> None:
        strong(cute.promise(x, STRONG), y).launch(grid=1, block=8, fallback=weak(y, x))

    assert "'strong' is launched with promises but without a fallback" in refused(alone)
    assert "'strong' and its fallback, the kernel 'weak', take different arguments" in refused(swapped)


def test_promises_beyond_known_facts() -> None:
    @cute.jit
    def denied(x: Any, y: Any) -> None:
        cute.promise(x, "(?,?,?):(?,?,1)")

    @cute.kernel
    def inside(x: Any, y: Any) -> None:
        cute.promise(x, STRONG)

    @cute.jit
    def in_kernel(x: Any, y: Any) -> None:
        inside(x, y).launch(grid=1, block=1)

    assert "it must have the same modes and agree with every known leaf" in refused(denied)
    assert "cute.promise can only be used in a host function" in refused(in_kernel)


@cute.kernel
def strong_sum(x: cute.Tensor, y: cute.Tensor, more: cute.Int32) -> None:
    thread, _, _ = cute.arch.thread_idx()
    y[0, thread] = x[0, thread] + more


@cute.jit
def run_view(x: cute.Tensor[None, ANY], y: cute.Tensor[None, ANY]) -> None:
    fast = [cute.promise(t, STRONG, align=16).view for t in (x, y)]
    strong_sum(*fast, x.shape[0]).launch(grid=1, block=8, fallback=weak(x, y).on(grid=1, block=8))


@pytest.mark.parametrize(("columns", "offset", "kept"), [(8, 0, True), (9, 0, False), (8, 1, False)])
def test_view_passes_other_arguments_to_the_fallback(columns: int, offset: int, kept: bool) -> None:
    x, y = aligned(columns, offset), aligned(columns)
    x[:] = np.arange(x.size).reshape(x.shape)
    run_view(x, y, device="cpu")
    assert np.array_equal(y[0, :8], x[0, :8] + (2 if kept else 0))


@cute.kernel
def of_vectors(x: cute.Tensor, y: cute.Tensor, n: cute.Constexpr[int]) -> None:
    y[0, cute.arch.thread_idx().x] = x[0, 0] * 0 + n


@cute.jit
def run_rows(x: cute.Tensor[None, ROWS], y: cute.Tensor[None, ROWS]) -> None:
    launches = [of_vectors(*(cute.promise_vectors(t, n) for t in (x, y)), n) for n in (4, 2, 1)]
    launches[0].launch(grid=1, block=1, fallback=launches[1:])


@pytest.mark.parametrize(
    ("columns", "offset", "widest"), [(8, 0, 4), (8, 2, 2), (8, 1, 1), (6, 0, 2), (6, 2, 2), (7, 0, 1), (7, 4, 1)]
)
def test_first_matching_fallback_is_launched(columns: int, offset: int, widest: int) -> None:
    x, y = aligned(columns, offset), aligned(8)
    x[:] = 0
    run_rows(x, y, device="cpu")
    assert y[0, 0] == widest


def test_vectorization_with_and_without_promises() -> None:
    found: dict[str, Any] = {}

    @cute.jit
    def look(x: Any, y: Any) -> None:
        found["fits"] = [n for n in (1, 2, 4, 8) if cute.promise_vectors(x, n) is not None]
        found["known"] = [n for n in (1, 2, 4, 8) if cute.promise_vectors(x, n) is x]
        found["anyhow"] = cute.promise_vectors(y, 2)

    x = cute.Tensor["f32", "(?,12):(?{div=4},1)", "align<8>"]  # pyright: ignore
    cute.trace(look, x, cute.Tensor["f32", ANY])  # pyright: ignore
    assert found == {"fits": [1, 2, 4], "known": [1, 2], "anyhow": None}


def test_several_fallbacks_are_for_promises() -> None:
    @cute.jit
    def none(x: Any, y: Any) -> None:
        weak(x, y).launch(grid=1, block=8, fallback=[weak(x, y), weak(x, y)])

    @cute.jit
    def last(x: Any, y: Any) -> None:
        first, second = (strong(cute.promise(x, STRONG), y) for _ in range(2))
        first.launch(grid=1, block=8, fallback=[second])

    assert "'weak' has several fallbacks but no promised arguments" in refused(none)
    assert "'strong' is launched with promises but without a fallback" in refused(last)
