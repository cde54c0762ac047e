"""`cute.static_assert_equal`: layouts of a trace that are equal for all sizes, and the errors for others."""

from __future__ import annotations

import re
import runpy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tracing import text_of, trace_kernel

import cute_dialect.lang as cute
from cute_dialect.lang import LayoutError

Body = Callable[[Any, Any, Any, Any], None]


def trace(body: Body) -> None:
    """Compile a kernel that calls ``body`` with a matrix of run-time extents and three integers."""

    @cute.kernel
    def kernel(x: cute.Tensor, m: cute.Int32, n: cute.Int32, s: cute.Int32) -> None:
        body(x, m, n, s)

    @cute.jit
    def host(x: cute.Tensor, m: cute.Int32, n: cute.Int32, s: cute.Int32) -> None:
        kernel(x, m, n, s).launch(grid=1, block=32)

    x = cute.runtime.from_dlpack(np.zeros((64, 32), np.float32)).mark_layout_dynamic()
    cute.compile(host, x, 8, 4, 3)


def refusal(body: Body) -> str:
    with pytest.raises(LayoutError) as caught:
        trace(body)
    return str(caught.value).split("\n")[0].split("error F247: static_assert_equal: ")[1]


def coalesced(x: Any, m: Any, n: Any, s: Any) -> None:
    cute.static_assert_equal(cute.coalesce(cute.make_layout((m, n), stride=(1, m))), cute.make_layout(m * n))


def divided(x: Any, m: Any, n: Any, s: Any) -> None:
    m = cute.assume(m, divby=8)
    whole = cute.make_layout((m, n), stride=(1, s))
    cute.static_assert_equal(cute.logical_divide(whole, (8, None)), whole)


def tile_of_tensor(x: Any, m: Any, n: Any, s: Any) -> None:
    tile = cute.local_tile(x, (8, 4), (0, n))
    cute.static_assert_equal(tile, cute.make_layout((8, 4), stride=(x.stride[0], 1)))
    tiles = cute.local_tile(x, (8, 4), (0, None))
    cute.static_assert_equal(cute.flat_divide(x, (8, 4))[None, None, 0, None], tiles)


def quotient(x: Any, m: Any, n: Any, s: Any) -> None:
    m = cute.assume(m, divby=8)
    cute.static_assert_equal(cute.make_layout((8, m // 8), stride=(1, 8)), cute.make_layout(m))


def rounded_up(x: Any, m: Any, n: Any, s: Any) -> None:
    m = cute.assume(m, range=(1, None))
    tiles = cute.make_layout((cute.ceil_div(m, 8), 8), stride=(8, 1))
    cute.static_assert_equal(tiles, cute.make_layout(((m + 7) // 8, (2, 4)), stride=(8, (1, 2))))


def of_any_sign(x: Any, m: Any, n: Any, s: Any) -> None:
    step = m // 5 - n % 7
    cute.static_assert_equal(cute.make_layout(8, stride=step), cute.make_layout((2, 4), stride=(step, 2 * step)))
    cute.static_assert_equal(cute.make_layout((m, n), stride=(-s, -(s * m))), cute.make_layout(m * n, stride=-s))


def swizzled(x: Any, m: Any, n: Any, s: Any) -> None:
    swizzle = cute.make_swizzle(3, 4, 3)
    rows = cute.make_composed_layout(swizzle, 0, cute.make_layout((8, m), stride=(128, 1024)))
    cute.static_assert_equal(rows, cute.make_composed_layout(swizzle, 0, cute.make_layout(8 * m, stride=128)))


def products(x: Any, m: Any, n: Any, s: Any) -> None:
    blocked = cute.blocked_product(cute.make_layout((2, 3)), cute.make_layout((m, n)))
    cute.static_assert_equal(blocked, cute.make_layout(((2, m), (3, n)), stride=((1, 6), (2, 6 * m))))
    transposed = cute.composition(cute.make_layout((m, n), stride=(n, 1)), cute.make_layout((n, m), stride=(m, 1)))
    cute.static_assert_equal(transposed, cute.make_layout((n, m), stride=(1, n)))


def of_threads(x: Any, m: Any, n: Any, s: Any) -> None:
    i = cute.arch.thread_idx().x
    cute.static_assert_equal(cute.make_layout((i + 1, n)), cute.make_layout((i + 1) * n))


def in_loop(x: Any, m: Any, n: Any, s: Any) -> None:
    for i in range(n):
        k = cute.assume(i, range=(1, None))
        cute.static_assert_equal(cute.make_layout((m, k)), cute.make_layout(m * k))


def coordinates(x: Any, m: Any, n: Any, s: Any) -> None:
    cute.static_assert_equal(cute.make_identity_layout((m, n)), cute.make_identity_layout((m, n)))


@pytest.mark.parametrize(
    "body",
    [
        coalesced,
        divided,
        tile_of_tensor,
        quotient,
        rounded_up,
        of_any_sign,
        swizzled,
        products,
        of_threads,
        in_loop,
        coordinates,
    ],
    ids=lambda f: f.__name__,
)
def test_equal_layouts_are_proved(body: Body) -> None:
    trace(body)


def test_an_assertion_adds_no_op() -> None:
    def plain(m: Any, n: Any) -> None:
        pass

    def compared(m: Any, n: Any) -> None:
        cute.static_assert_equal(cute.make_layout((m, n), stride=(1, m)), cute.make_layout((m, n), stride=(1, m)))

    texts = [text_of(trace_kernel(f, {"m": "i32", "n": "i32"}, cute.Int32.of)) for f in (plain, compared)]
    assert texts[0] == texts[1]


def without_divisor(x: Any, m: Any, n: Any, s: Any) -> None:
    whole = cute.make_layout((m, n), stride=(1, s))
    cute.static_assert_equal(cute.logical_divide(whole, (8, None)), whole)


def wrong_stride(x: Any, m: Any, n: Any, s: Any) -> None:
    cute.static_assert_equal(cute.make_layout((m, n), stride=(1, m + 1)), cute.make_layout(m * n))


def padded_tensor(x: Any, m: Any, n: Any, s: Any) -> None:
    cute.static_assert_equal(x, cute.make_layout(x.shape, stride=(x.shape[1], 1)))


def promise_of_branch(x: Any, m: Any, n: Any, s: Any) -> None:
    if n > 3:
        k = cute.assume(m, divby=8)
        cute.static_assert_equal(cute.make_layout((8, k // 8), stride=(1, 8)), cute.make_layout(k))
    m = cute.assume(m, range=(8, None))
    cute.static_assert_equal(cute.make_layout((8, m // 8), stride=(1, 8)), cute.make_layout(m))


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (without_divisor, "((8,?),?):((1,8),?) and (?,?):(1,?) differ: m = 1, n = 1, s = 1: the sizes are 8 and 1"),
        (wrong_stride, "(?,?):(1,?) and ?:1 differ: m = 1, n = 2: index 1 maps to 2 and to 1"),
        (
            padded_tensor,
            "(?,?):(?,1) differ: x.shape[0] = 2, x.shape[1] = 1, x.stride[0] = 2: index 1 maps to 2 and to 1",
        ),
        (promise_of_branch, "(8,?):(1,8) and ?:1 differ: m = 9: the sizes are 8 and 9"),
    ],
    ids=lambda x: getattr(x, "__name__", ""),
)
def test_refusal_names_sizes(body: Body, reason: str) -> None:
    assert refusal(body) == reason


def test_values_of_loops_are_not_called_counterexamples() -> None:
    def body(x: Any, m: Any, n: Any, s: Any) -> None:
        for i in range(n):
            cute.static_assert_equal(cute.make_layout((m, i)), cute.make_layout(m))

    assert refusal(body).endswith(
        "are not proved equal: they differ if m = 1, i = 2: the sizes are 2 and 1; "
        "the values that i can have at run time are not known"
    )


@pytest.mark.parametrize("is_loop", [False, True])
def test_sizes_that_a_branch_may_exclude_are_not_called_counterexamples(is_loop: bool) -> None:
    def branch(x: Any, m: Any, n: Any, s: Any) -> None:
        if m % 8 == 0:
            cute.static_assert_equal(cute.logical_divide(cute.make_layout(m), (8,)), cute.make_layout(m))

    def loop(x: Any, m: Any, n: Any, s: Any) -> None:
        for _ in range(n):
            cute.static_assert_equal(cute.make_layout(m), cute.make_layout(n))

    reason = refusal(loop if is_loop else branch)
    assert "are not proved equal: they differ if m = 1" in reason
    assert reason.endswith("the conditions of the branches and loops around are not used")


def test_an_assumption_in_a_branch_is_used() -> None:
    def body(x: Any, m: Any, n: Any, s: Any) -> None:
        if m % 8 == 0:
            m = cute.assume(m, divby=8)
            cute.static_assert_equal(cute.logical_divide(cute.make_layout(m), (8,)), cute.make_layout(m))

    trace(body)


def narrowed(kind: Any, factor: int = 1) -> Body:
    def body(x: Any, m: Any, n: Any, s: Any) -> None:
        cute.static_assert_equal(cute.make_layout(cute.Int32(kind(m)) * factor), cute.make_layout(m * factor))

    return body


def bits_shifted_out(x: Any, m: Any, n: Any, s: Any) -> None:
    cute.static_assert_equal(cute.make_layout((m << 24) >> 24), cute.make_layout(m))


@pytest.mark.parametrize(
    "body", [narrowed(cute.Int8), narrowed(cute.Uint8), narrowed(cute.Int16), narrowed(cute.Int8, 2), bits_shifted_out]
)
def test_a_value_that_may_lose_bits_is_another_one(body: Body) -> None:
    assert "are not proved equal" in refusal(body)


def test_a_narrow_type_that_fits_is_proved() -> None:
    def body(x: Any, m: Any, n: Any, s: Any) -> None:
        m = cute.assume(m, range=(1, 100))
        narrow = cute.Int32(cute.Int8(m))
        cute.static_assert_equal(cute.make_layout((narrow, 4), stride=(4, 1)), cute.make_layout((m, 4), stride=(4, 1)))
        cute.static_assert_equal(cute.make_layout(m << 2), cute.make_layout(4 * m))
        cute.static_assert_equal(cute.make_layout(cute.Int32(cute.Int64(n))), cute.make_layout(n))

    trace(body)


def test_an_extent_of_unknown_sign_is_not_proved() -> None:
    def body(x: Any, m: Any, n: Any, s: Any) -> None:
        extent = m // 5 - n % 7 + 1
        rows = cute.make_layout((extent, 8), stride=(-8, 1))
        cute.static_assert_equal(rows, cute.make_layout((extent, (2, 4)), stride=(-8, (1, 2))))

    reason = refusal(body)
    assert "are not proved equal" in reason and len(reason) < 500


def test_layouts_outside_of_kernels() -> None:
    cute.static_assert_equal(cute.make_layout((4, 8)), "32:1")
    cute.static_assert_equal("logical_divide(M:1, 8:1)", "M:1", where=["M % 8 == 0"])
    with pytest.raises(LayoutError, match=r"\(4,8\):\(1,4\) and \(4,8\):\(8,1\) differ: index 1 maps to 1 and to 8"):
        cute.static_assert_equal(cute.make_layout((4, 8)), cute.make_layout((4, 8), stride=(8, 1)))
    with pytest.raises(LayoutError, match="M = 1: the sizes are 8 and 1"):
        cute.static_assert_equal("logical_divide(M:1, 8:1)", "M:1")


def test_the_example_of_the_documentation(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = (Path(__file__).parents[3] / "docs" / "prove.md").read_text().partition("### In kernels")[2]
    program, printed = re.findall(r"```python\n(.*?)```\n\n```text\n(.*?)```", text, re.DOTALL)[0]
    cure = "m = cute.assume(m, divby=8)"
    assert cure in text.partition("```text")[2]
    file = tmp_path / "example.py"
    file.write_text(program)
    runpy.run_path(str(file))
    assert capsys.readouterr().out == printed
    file = tmp_path / "cured.py"
    file.write_text(program.replace("    rows = ", f"    {cure}\n    rows = "))
    y = runpy.run_path(str(file))["y"]
    assert y.tolist() == [2 * (8 * (i % 8 // 8) + (i % 8) * 4 + i // 8) for i in range(32)]
