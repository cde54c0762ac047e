"""Records in branches and loops, default arguments, and constants that differ between loop iterations."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest

import cute_dialect.lang as cute
from cute_dialect.errors import CuteError
from cute_dialect.lang.nvgpu import warpgroup

CHECKS = ("race", "uninit", "sync", "oob")


@dataclass(frozen=True)
class Walk:
    at: Any
    total: Any
    step: int = 1

    def on(self, x: Any) -> "Walk":
        return replace(self, at=self.at + self.step, total=self.total + x)


class Pair:
    """A class with the methods of CuTe DSL for decomposition and reconstruction."""

    def __init__(self, a: Any, b: Any):
        self.a, self.b = a, b

    def __extract_mlir_values__(self) -> list[Any]:
        return [self.a, self.b]

    def __new_from_mlir_values__(self, values: list[Any]) -> "Pair":
        return Pair(*values)


class Plain:
    def __init__(self, a: Any):
        self.a = a


@cute.kernel
def walk_kernel(x: cute.Tensor, out: cute.Tensor, n: cute.Int32):
    walk = Walk(cute.Int32(0), cute.Float32(0))
    for i in range(n):
        walk = walk.on(x[i])
        if x[i] > 5:
            walk = Walk(walk.at, walk.total * 2)
    while walk.at < 40:
        walk = walk.on(cute.Float32(0))
    if cute.arch.thread_idx().x == 0:
        out[0] = walk.total
        out[1] = walk.at


@cute.kernel
def pair_kernel(x: cute.Tensor, out: cute.Tensor, n: cute.Int32):
    pair = Pair(cute.Float32(0), cute.Float32(1))
    other = pair
    for i in range(n):
        pair = Pair(pair.b, pair.a + x[i])
    if n > 3:
        other = pair
    if cute.arch.thread_idx().x == 0:
        out[0], out[1], out[2], out[3] = pair.a, pair.b, other.a, other.b


@cute.kernel
def plain_kernel(x: cute.Tensor, n: cute.Int32):
    p = first = Plain(cute.Float32(0))
    for i in range(n):
        p = Plain(p.a + x[i])
    x[0] = p.a + first.a


@cute.jit
def launch(kernel: cute.Constexpr, x: cute.Tensor, out: cute.Tensor, n: cute.Int32):
    kernel(x, out, n).launch(grid=1, block=32)


@pytest.mark.parametrize("n", [0, 1, 9])
def test_loops_carry_frozen_dataclasses(n: int) -> None:
    x, out = np.arange(9, dtype=np.float32), np.zeros(2, np.float32)
    launch(walk_kernel, x, out, n, device="cpu", checks=CHECKS)
    walk = Walk(0, 0.0)
    for i in range(n):
        walk = walk.on(x[i])
        if x[i] > 5:
            walk = Walk(walk.at, walk.total * 2)
    while walk.at < 40:
        walk = walk.on(0)
    np.testing.assert_array_equal(out, [walk.total, walk.at])


@pytest.mark.parametrize("n", [0, 2, 7])
def test_objects_of_classes_with_the_protocol_are_values(n: int) -> None:
    x, out = np.arange(9, dtype=np.float32), np.zeros(4, np.float32)
    launch(pair_kernel, x, out, n, device="cpu", checks=CHECKS)
    a, b = 0.0, 1.0
    for i in range(n):
        a, b = b, a + x[i]
    np.testing.assert_array_equal(out, [a, b, *((a, b) if n > 3 else (0, 1))])


def test_other_objects_keep_their_identity() -> None:
    with pytest.raises(CuteError, match=r"F220: 'p' .* two different Plain objects, and 'first' also refers"):
        plain_kernel(np.ones(3, np.float32), 3).launch(grid=1, block=32, device="cpu")


# ------------------------------------------------------------------------------------------------------------ settings


@cute.kernel
def accumulate_kernel(mma: cute.TiledMma, n: cute.Int32, wrong: cute.Constexpr):
    for _ in range(n):
        if not wrong:
            mma.set(warpgroup.Field.ACCUMULATE, False)
        a = cute.smem_tensor(cute.Float16, cute.make_layout(((8, 8), (8, 2)), stride=((8, 128), (1, 64))), 128)
        thread = mma.get_slice(0)
        rA = mma.make_fragment_A(thread.partition_A(a))
        rB = mma.make_fragment_B(thread.partition_B(cute.local_tile(a, (8, 16), (0, 0))))
        acc = mma.make_fragment_C(mma.partition_shape_C((64, 8)))
        warpgroup.fence()
        cute.gemm(mma, acc, rA[None, None, 0], rB[None, None, 0], acc)
        mma.set(warpgroup.Field.ACCUMULATE, True)


@cute.jit
def accumulate(n: cute.Int32, wrong: cute.Constexpr):
    major = warpgroup.OperandMajorMode.K
    mma = cute.hopper.make_trivial_tiled_mma(
        cute.Float16, cute.Float16, major, major, cute.Float32, (1, 1, 1), (64, 8)
    )  # fmt: skip
    accumulate_kernel(mma, n, wrong).launch(grid=1, block=128)


def test_mma_state_of_the_previous_iteration_is_not_read() -> None:
    text = cute.trace(accumulate, cute.Int32, False, chip="sm_90a").mlir()
    assert "cute.gemm" in text
    with pytest.raises(CuteError) as e:
        cute.trace(accumulate, cute.Int32, True, chip="sm_90a")
    assert "F254: cute.gemm: ACCUMULATE is undefined here, because an iteration of the loop changes" in str(e.value)


# ----------------------------------------------------------------------------------------------------------- arguments


class Scale:
    @cute.jit
    def __call__(
        self, x: cute.Tensor, bias: cute.Tensor | None, out: cute.Tensor, by: cute.Float32 = 2.0, add: int = 1
    ):
        scale_kernel(x, bias, out, by, add).launch(grid=1, block=32)


@cute.kernel
def scale_kernel(x: cute.Tensor, bias: cute.Tensor | None, out: cute.Tensor, by: cute.Float32, add: cute.Constexpr):
    i = cute.arch.thread_idx().x
    if i < cute.size(x):
        out[i] = x[i] * by + add
        if bias is not None:
            out[i] += bias[i]


def test_a_default_of_a_number_type_is_an_argument() -> None:
    x, out = np.arange(5, dtype=np.float32), np.zeros(5, np.float32)
    compiled = cute.compile(Scale(), x, None, out, device="cpu")
    for args, by in (((x, out), 2), ((x, None, out), 2), ((x, out, 5.0), 5), ((x, None, out, 7.0), 7)):
        compiled(*args)
        np.testing.assert_array_equal(out, x * by + 1)
    compiled(x, out, by=3.0)
    np.testing.assert_array_equal(out, x * 3 + 1)


# ------------------------------------------------------------------------------------------------------------- copies


@cute.kernel
def ranks_kernel(x: cute.Tensor, out: cute.Tensor):
    row = cute.make_rmem_tensor(8, cute.Float32)
    cute.autovec_copy(cute.local_tile(x, (2, 4), (0, 0)), row)  # From (2, 4) to (8), the first mode varies fastest.
    cute.autovec_copy(row, cute.local_tile(out, (8, 1), (0, 0)))


def test_tensors_of_other_ranks_are_copied_in_their_order() -> None:
    x, out = np.arange(8, dtype=np.float32).reshape(2, 4), np.zeros((8, 1), np.float32)
    ranks_kernel(x, out).launch(grid=1, block=1, device="cpu", checks=CHECKS)
    np.testing.assert_array_equal(out[:, 0], x.T.reshape(-1))
