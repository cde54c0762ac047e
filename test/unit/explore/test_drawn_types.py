"""Drawings of types. The drawing of a tensor applies the swizzle of its pointer to the locations of its elements."""

from __future__ import annotations

import itertools

import pytest
from xdsl.parser import Parser

from cute_dialect.algebra.evaluation import evaluate
from cute_dialect.algebra.values import AnyLayout
from cute_dialect.explore.drawings import drawing_of, layout_of
from cute_dialect.ir.context import make_context


def layout(text: str) -> AnyLayout:
    """Return the drawn layout of a type."""
    found = layout_of(Parser(make_context(), text).parse_type())
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("element", "size", "swizzle"), [("f16", 2, "S<3,4,3>"), ("f32", 4, "S<2,4,3>"), ("i8", 1, "S<1,4,3>")]
)
def test_a_swizzle_of_the_pointer(element: str, size: int, swizzle: str) -> None:
    """The swizzle XORs address bits from bit 7 up into the bits from bit 4 up."""
    shown = layout(f'!cute.memref<{element}, smem, align<1024>, {swizzle}, "(32,64):(64,1)">')
    mask = (1 << int(swizzle[2])) - 1
    for i, j in itertools.product(range(32), range(64)):
        address = size * (64 * i + j)
        assert size * evaluate((i, j), shown) == address ^ ((address >> 7 & mask) << 4)


@pytest.mark.parametrize(
    "options", ["gmem", "smem, align<1024>", "smem, align<512>, S<3,4,3>"], ids=["global", "plain", "anywhere"]
)
def test_undetermined_swizzles_are_left_out(options: str) -> None:
    """If a pointer may start inside a swizzle period, the locations of its elements are unknown, so the swizzle is not
    drawn.
    """
    assert str(layout(f'!cute.memref<f16, {options}, "(32,64):(64,1)">')) == "(32,64):(64,1)"


def test_types_without_a_layout() -> None:
    drawing, part = drawing_of(Parser(make_context(), '!cute.int_tuple<"4">').parse_type())
    assert drawing is None and not part
