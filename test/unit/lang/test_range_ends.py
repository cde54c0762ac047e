"""``range`` in kernels behaves as in Python, near the limits of integer types and with run-time steps."""

from typing import Any

import numpy as np
import pytest

import cute_dialect.lang as cute

MOST = 12
SIGNED = {"Int8": 8, "Int16": 16, "Int32": 32, "Int64": 64}
UNSIGNED = {"Uint8": 8, "Uint16": 16, "Uint32": 32, "Uint64": 64}


def run(kind: Any, step: int | None, *, jumps: bool) -> Any:
    """Return a function that maps range arguments to the count and the first numbers of the range in a kernel."""

    @cute.kernel
    def kernel(o: cute.Tensor, a: kind, b: kind, s: kind):
        n = 0
        for i in range(a, b, s if step is None else step):
            if n < 10:
                o[n] = cute.Int64(i)
            n += 1
            if jumps and n > 20:
                break
        o[MOST - 1] = n

    @cute.jit
    def call(o: cute.Tensor, a: kind, b: kind, s: kind):
        kernel(o, a, b, s).launch(grid=1, block=1)

    def numbers(a: int, b: int, s: int) -> list[int]:
        o = np.zeros(MOST, np.int64)
        call(o, a, b, s, device="cpu")
        assert o[MOST - 1] == len(range(a, b, s))
        found = o.view(np.uint64) if kind is cute.Uint64 else o
        return [int(x) for x in found[: min(10, int(o[MOST - 1]))]]

    return numbers


@pytest.mark.sample(every=5)
@pytest.mark.parametrize("jumps", [False, True], ids=["for", "break"])
@pytest.mark.parametrize("name", [*SIGNED, *UNSIGNED])
def test_ranges_near_the_ends_of_a_type(name: str, jumps: bool):
    signed, bits = name in SIGNED, {**SIGNED, **UNSIGNED}[name]
    low, high = (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if signed else (0, (1 << bits) - 1)
    ranges = [
        (high - 5, high, 4), (high - 8, high, 4), (high - 1, high, 1), (high, low, 5), (high - 6, high - 1, 3),
        (low, low + 9, 4),
    ]  # fmt: skip
    dynamic = run(getattr(cute, name), None, jumps=jumps)
    for a, b, s in ranges:
        assert dynamic(a, b, s) == list(range(a, b, s))
    for step in (3, 4):
        static = run(getattr(cute, name), step, jumps=jumps)
        for a, b, s in ranges:
            if s == step:
                assert static(a, b, s) == list(range(a, b, s))
    if not signed:
        return
    for a, b, s in ((5, 0, -1), (high, high - 9, -4), (low + 9, low, -4), (low + 3, low, -2), (0, 5, -1), (5, 5, -3)):
        assert dynamic(a, b, s) == list(range(a, b, s))
    static = run(getattr(cute, name), -4, jumps=jumps)
    for a, b in ((high, high - 9), (low + 9, low), (low, high)):
        assert static(a, b, -4) == list(range(a, b, -4))
    if bits < 16:
        assert len(dynamic(100, -100, -20)) == 10 and dynamic(-128, 127, 40) == list(range(-128, 127, 40))


def test_unsigned_bounds_of_each_thread_across_the_middle_of_the_type():
    @cute.kernel
    def kernel(o: cute.Tensor, a: cute.Tensor, b: cute.Tensor):
        t, n = cute.arch.thread_idx().x, 0
        for _ in range(a[t], b[t]):
            n += 1
        o[t] = n

    @cute.jit
    def call(o: cute.Tensor, a: cute.Tensor, b: cute.Tensor):
        kernel(o, a, b).launch(grid=1, block=4)

    a = np.array([2**31 - 2, 5, 2**32 - 3, 7], np.uint32)
    o = np.zeros(4, np.int32)
    call(o, a, a + np.array([5, 0, 2, 3], np.uint32), device="cpu")
    assert o.tolist() == [5, 0, 2, 3]


def loops_of(make: Any) -> str:
    """Return the traced IR of a kernel whose loop ``make`` builds."""

    @cute.kernel
    def kernel(o: cute.Tensor, a: cute.Int32, n: cute.Int32, m: cute.Int64):
        make(o, a, n, m)

    @cute.jit
    def call(o: cute.Tensor, a: cute.Int32, n: cute.Int32, m: cute.Int64):
        kernel(o, a, n, m).launch(grid=n, block=n)

    return cute.trace(call, cute.Tensor[cute.Float32, "(?):(1)"], cute.Int32, cute.Int32, cute.Int64).mlir()


def grid_stride(o: Any, a: Any, n: Any, m: Any):
    for i in range(cute.arch.thread_idx().x, n, cute.arch.block_dim().x * cute.arch.grid_dim().x * 4):
        o[i] = 1


def tiles_of_clusters(o: Any, a: Any, n: Any, m: Any):
    for i in range(cute.arch.block_idx().x // 2, n, cute.arch.grid_dim().x // 2):
        o[i] = 1


def from_a_thread(o: Any, a: Any, n: Any, m: Any):
    for i in range(cute.arch.block_idx().x * 128 + cute.arch.thread_idx().x, n, 4):
        o[i] = 1


@pytest.mark.parametrize("make", [grid_stride, tiles_of_clusters, from_a_thread])
def test_loops_from_the_index_of_a_thread_count_without_a_sign(make: Any):
    text = loops_of(make)
    assert "scf.for unsigned %i =" in text
    assert text.count("arith.select") == 1 and "scf.while" not in text and "arith.subi" not in text


def test_loops_over_an_extent_clamp_nothing():
    def make(o: Any, a: Any, n: Any, m: Any):
        for i in range(cute.arch.thread_idx().x, o.shape[0], 32):
            o[i] = 1

    assert "arith.select" not in loops_of(make)


def downwards(o: Any, a: Any, n: Any, m: Any):
    for i in range(a, -1, -3):
        o[i] = 1


def long_downwards(o: Any, a: Any, n: Any, m: Any):
    for i in range(m, 0, -8):
        o[i] = 1


def long_upwards(o: Any, a: Any, n: Any, m: Any):
    for i in range(cute.Int64(a), m, 3):
        o[i] = 1


def any_step(o: Any, a: Any, n: Any, m: Any):
    for i in range(a, n, a):
        o[i] = 1


def long_step(o: Any, a: Any, n: Any, m: Any):
    for i in range(0, m, m):
        o[i] = 1


def narrow(o: Any, a: Any, n: Any, m: Any):
    for i in range(cute.Int8(a), cute.Int8(n), 3):
        o[i] = 1


@pytest.mark.parametrize("make", [downwards, long_downwards, long_upwards, any_step, long_step, narrow])
def test_trip_counts_need_no_division(make: Any):
    text = loops_of(make)
    assert "scf." in text and "div" not in text


def test_loops_with_a_step_of_unknown_sign_carry_values():
    @cute.kernel
    def kernel(o: cute.Tensor, a: cute.Int64, b: cute.Int64, s: cute.Int64):
        total, last = cute.Int64(0), cute.Int64(-7)
        for i in cute.range(a, b, s, unroll=1):
            if i % 3 == 0:
                continue
            for j in range(i, i + 2 * s, s):
                total += j
            last = i
        o[0], o[1] = total, last

    @cute.jit
    def call(o: cute.Tensor, a: cute.Int64, b: cute.Int64, s: cute.Int64):
        kernel(o, a, b, s).launch(grid=1, block=1)

    for a, b, s in ((0, 20, 3), (20, 0, -3), (7, 7, 1), (-5, 30, 7), (5, -40, -7), (1, 2, 2**40)):
        o = np.zeros(2, np.int64)
        call(o, a, b, s, device="cpu")
        kept = [i for i in range(a, b, s) if i % 3]
        assert o.tolist() == [sum(2 * i + s for i in kept), kept[-1] if kept else -7]


def test_grid_strides_that_end_near_the_limit():
    @cute.kernel
    def kernel(o: cute.Tensor, n: cute.Int32):
        for i in range(cute.arch.block_idx().x + (2**31 - 9), n, cute.arch.grid_dim().x * 2):
            o[0] = i

    @cute.jit
    def call(o: cute.Tensor, n: cute.Int32, blocks: cute.Int32):
        kernel(o, n).launch(grid=blocks, block=1)

    o = np.zeros(1, np.int32)
    call(o, 2**31 - 5, 2, device="cpu")
    assert o[0] in (2**31 - 9, 2**31 - 8)
    call(o, 2**31 - 2, 2, device="cpu")
    assert o[0] in (2**31 - 5, 2**31 - 4)


@pytest.mark.parametrize("last", [-5, 0, 2**31 - 40, 2**31 - 2, 2**31 - 1])
def test_indices_of_threads_near_the_limit(last: int):
    @cute.kernel
    def kernel(o: cute.Tensor, n: cute.Int32, s: cute.Constexpr[int]):
        first, count = cute.arch.thread_idx().x * 2**25, 0
        for _ in range(first, n, s):
            count += 1
        for _ in range(first, n, cute.arch.grid_dim().x * s):
            count += 1
        o[cute.arch.thread_idx().x] = count

    @cute.jit
    def call(o: cute.Tensor, n: cute.Int32, s: cute.Constexpr[int]):
        kernel(o, n, s).launch(grid=1, block=64)

    for s in (2**25, 2**30 - 7):
        o = np.zeros(64, np.int32)
        call(o, last, s, device="cpu")
        assert o.tolist() == [2 * len(range(t << 25, last, s)) for t in range(64)]
