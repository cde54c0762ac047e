"""``range`` in kernels near the ends of the types, with steps known at run time: as Python's."""

from typing import Any

import numpy as np
import pytest

import cute_dialect.lang as cute
from cute_dialect.interp import InterpError

MOST = 12
SIGNED = {"Int8": 8, "Int16": 16, "Int32": 32, "Int64": 64}
UNSIGNED = {"Uint8": 8, "Uint16": 16, "Uint32": 32, "Uint64": 64}


def run(kind: Any, step: int | None, *, jumps: bool) -> Any:
    """Return a function of bounds (and a step) that gives how many numbers a range has, and the first of them."""

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
            if s == step and (name != "Int32" or b < high - 4):
                assert static(a, b, s) == list(range(a, b, s))
    if not signed:
        return
    for a, b, s in ((5, 0, -1), (high, high - 9, -4), (low + 9, low, -4), (low + 3, low, -2), (0, 5, -1), (5, 5, -3)):
        assert dynamic(a, b, s) == list(range(a, b, s))
    static = run(getattr(cute, name), -4, jumps=jumps)
    for a, b in ((high, high - 9), (low + 9, low), (low, high)):
        assert static(a, b, -4) == list(range(a, b, -4))
    if name == "Int32":
        static = run(cute.Int32, 4, jumps=jumps)
        assert static(high - 9, high - 3, 4) == list(range(high - 9, high - 3, 4))
        with pytest.raises(InterpError, match=r"the index of this range wraps.*2147483644 at most"):
            static(high - 9, high - 2, 4)
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
