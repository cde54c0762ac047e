"""Known ranges and divisors of integers in kernels: each inference rule is sound and simplifies the code."""

from __future__ import annotations

import re
from itertools import product
from typing import Any

import numpy as np
import pytest
from tracing import text_of, trace_kernel

import cute_dialect.lang as cute
from cute_dialect.lang.tracing.tracer import current
from cute_dialect.lang.values.dtypes import NUMBER_TYPES
from cute_dialect.lang.values.folding import (
    PYTHON,
    Facts,
    absolute_facts,
    binary_facts,
    converted_facts,
    facts_of,
    joined_facts,
    known_facts,
    least_greatest,
    rounded_up,
)

KINDS = [NUMBER_TYPES["Int4"], NUMBER_TYPES["Uint4"]]
SOME = [
    None, Facts(0), Facts(1, 3), Facts(-3, 2), Facts(None, -1), Facts(0, 6, 3), Facts(None, None, 4), Facts(-8, -2, 2),
    Facts(0, 3), Facts(2, 2, 2), Facts(5, None), Facts(0, 0, 8),
]  # fmt: skip


def members(kind: Any, facts: Facts | None) -> list[int]:
    """Return the numbers of a type that satisfy the facts."""
    low, high = least_greatest(kind)
    known = facts or Facts()
    low, high = low if known.low is None else max(low, known.low), high if known.high is None else min(high, known.high)
    return [n for n in range(low, high + 1) if n % known.divisor == 0]


def wrapped(n: int, kind: Any) -> int:
    n %= 1 << kind.width
    return n - (1 << kind.width) if kind.signed and n >> (kind.width - 1) else n


def of(kind: Any, facts: Facts | None) -> Any:
    """Return a dynamic number with these facts but no IR value."""
    return kind.of(None, facts)


NAMES = ("add", "sub", "mul", "min", "max", "and", "or", "xor", "floordiv", "mod", "shl", "shr")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", NAMES)
def test_facts_of_operations_hold_for_all_numbers(name: str, kind: Any) -> None:
    told = 0
    for a, b, static in product(SOME, SOME, (False, True)):
        xs, ys = members(kind, a), members(kind, b)
        for some in [[y] for y in ys] if static else [ys]:
            right = kind.exactly(some[0]) if static else of(kind, b)
            if static and name in ("shl", "shr") and not 0 <= some[0] < kind.width:
                continue
            made = binary_facts(name, of(kind, a), right)
            told += made is not None
            good = set(members(kind, made))
            for x, y in product(xs, some):
                if name in ("floordiv", "mod") and (y == 0 or (x, y) == (least_greatest(kind)[0], -1)):
                    continue
                if name in ("shl", "shr") and not 0 <= y < kind.width:
                    continue
                assert wrapped(PYTHON[name](x, y), kind) in good, (name, x, y, a, b, made)
    assert told > 20


@pytest.mark.parametrize("kind", KINDS)
def test_facts_of_other_rules_hold_for_all_numbers(kind: Any) -> None:
    for a, b in product(SOME, SOME):
        xs, ys = members(kind, a), members(kind, b)
        assert {*xs, *ys} <= set(members(kind, joined_facts(a, b)))
        other = KINDS[1 - KINDS.index(kind)]
        for to in (other, cute.Int8, cute.Uint8):
            assert {wrapped(x, to) for x in xs} <= set(members(to, converted_facts(of(kind, a), to)))
        if kind.signed:
            assert {wrapped(abs(x), kind) for x in xs} <= set(members(kind, absolute_facts(of(kind, a))))
        if all(n >= 0 for n in (*xs, *ys)):
            made = rounded_up(facts_of(of(kind, a)), facts_of(of(kind, b)), kind)
            assert {-(-x // y) for x in xs for y in ys if y} <= set(members(kind, made))


def test_products_that_may_wrap_have_no_range() -> None:
    """A multiple of an extent may wrap, so only its divisor is known. A quotient of an extent also keeps its range."""
    extent = of(cute.Int32, Facts(0))
    four, fifth = cute.Int32(4), cute.Int32(5)
    assert binary_facts("mul", extent, four) == Facts(None, None, 4)
    quotient = of(cute.Int32, binary_facts("floordiv", extent, fifth))
    assert binary_facts("mul", quotient, four) == Facts(0, (2**31 - 1) // 5 * 4, 4)
    assert binary_facts("add", extent, cute.Int32(1)) is None
    assert known_facts(cute.Int8, 0, 128, 6) == Facts(None, None, 2)


TENSOR = '!cute.memref<i32, gmem, "(?,?):(?,1)">'


def traced(body: Any) -> str:
    """Return the traced IR of a kernel of one matrix."""
    from cute_dialect.lang.values.tensors import Tensor

    return text_of(trace_kernel(lambda x: cute.jit(body)(Tensor.of(x)), {"x": TENSOR}))


def stored(x: Any, *numbers: Any) -> None:
    for i, n in enumerate(numbers):
        x[i, 0] = n if isinstance(n, cute.Numeric) else cute.Int32(n)


def test_extents_and_indices_are_non_negative() -> None:
    def body(x: Any) -> None:
        m, n = x.shape
        t, b = cute.arch.thread_idx().x, cute.arch.block_idx().x
        stored(x, m // n, b % m, min(t, m), max(n, m), cute.size(x) // m, cute.ceil_div(n, m), abs(t - 5) // m)
        stored(x, cute.Int32(cute.Int64(n) % m), cute.Int32(t < m), cute.Int32(m >= n), cute.ceil_div((m, n), 7)[0])

    text = traced(body)
    assert not re.findall(r"floordivsi|minsi|maxsi|extsi|ceildivsi|cmpi s", text), text
    assert text.count("arith.divui") == 4 and text.count("arith.remui") == 2
    assert text.count("minui") == text.count("maxui") == 1 and text.count("cmpi u") == 2


def test_possibly_negative_numbers_are_signed() -> None:
    def body(x: Any) -> None:
        m, n = x.shape
        t = cute.arch.thread_idx().x
        a, b, c = m - n, m * 4, m + 1  # The last two products may wrap.
        stored(x, a // n, b // n, c // n, min(a, n), cute.Int32(b < n), cute.ceil_div(a, n), (t - 1) // n)

    text = traced(body)
    assert text.count("floordivsi") == 4 and text.count("minsi") == 1 and text.count("cmpi slt") == 1
    assert text.count("cute.ceil_div") == 1 and not re.findall("divui|minui|cmpi u", text)


def test_ranges_of_loop_variables() -> None:
    """A loop index that counts up from 0 or down to 0 is non-negative; a loop-carried value has no known sign."""

    def up(x: Any) -> None:
        (m, n), left = x.shape, x.shape[0]
        for i in range(m):
            x[i, 0] = i // n
        for i in range(n - 1, -1, -1):
            x[i, 0] = i % m
        for i in range(2, n, 3):
            x[i, 0] = left // n
            left = left - 1

    text = traced(up)
    assert text.count("divui") == 1 and text.count("remui") == 1 and text.count("floordivsi") == 1


def test_branches_join_facts_of_both_sides() -> None:
    def body(x: Any) -> None:
        (m, n), t = x.shape, cute.arch.thread_idx().x
        a = m if t == 0 else n
        b = 3 if t == 1 else 8
        c = m if t == 2 else m - n
        if t == 3:
            d = m
        else:
            d = 7
        stored(x, a // n, b // m, c // n, d // n)

    text = traced(body)
    assert text.count("divui") == 3 and text.count("floordivsi") == 1


@cute.kernel
def divide(x: cute.Tensor, out: cute.Tensor, tiles: cute.Int32, layout: cute.Layout, n: cute.Int32):
    """Divide by numbers with and without known facts."""
    out[0] = tiles // x.shape[0]
    out[1] = layout.shape[0] // tiles
    out[2] = n // tiles
    for i in range(tiles - 1, -1, -1):
        out[3 + i] = i // x.shape[0]


@cute.jit
def run(x: cute.Tensor, out: cute.Tensor, n: cute.Int32):
    """Launch."""
    tiles = cute.ceil_div(x.shape[0], 4)
    divide(x, out, tiles, cute.make_layout((x.shape[0], 2)), n).launch(grid=1, block=1)


def test_facts_reach_kernels_from_the_host() -> None:
    x, out = np.zeros(10, np.int32), np.full(6, -1, np.int32)
    run(x, out, -7, device="cpu")
    assert out.tolist() == [0, 3, -3, 0, 0, 0]
    text = cute.compile(run, x, out, -7, chip="sm_90a").mlir("trace")
    assert text.count("divui") == 3 and text.count("floordivsi") == 1


@cute.kernel
def quotients(x: cute.Tensor, out: cute.Tensor):
    """Divide with and without known facts, rounding up."""
    m, n = x.shape
    a, b = cute.ceil_div(x.shape, (3, 2))
    for i, value in enumerate((cute.ceil_div(m, n), cute.ceil_div(n, 4), a, b, cute.ceil_div(cute.Int64(m), 7))):
        out[i] = cute.Int32(value)


@cute.jit
def run_quotients(x: cute.Tensor, out: cute.Tensor):
    """Launch."""
    quotients(x, out).launch(grid=1, block=1)


@pytest.mark.parametrize("shape", [(1, 1), (9, 4), (8, 5), (13, 2), (12, 16)])
def test_quotients_are_rounded_up(shape: tuple[int, int]) -> None:
    out = np.zeros(5, np.int32)
    run_quotients(np.zeros(shape, np.int32), out, device="cpu")
    m, n = shape
    assert out.tolist() == [-(-m // n), -(-n // 4), -(-m // 3), -(-n // 2), -(-m // 7)]


def test_assume_with_a_dynamic_end() -> None:
    def body(x: Any) -> None:
        m, n = x.shape
        tiles, row = m // 64, n - 5
        row = cute.assume(row, range=(0, tiles))
        assert row.facts == Facts(0, (2**31 - 1) // 64 - 1)
        stored(x, row * 64 // n)

    assert "divui" in traced(body)

    def broken(x: Any) -> None:
        current().state["asserts"] = True
        cute.assume(x.shape[0] - 5, range=(0, x.shape[1]))

    assert "cute.assume promised less than this Int32" in traced(broken)
