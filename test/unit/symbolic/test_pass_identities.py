"""Identities of layouts that lowering uses: each is proved for all extents, or listed with the reason, and evaluated.

`QUESTIONS` are questions of `cute-prove layout`. `EQUATIONS` are about single indices, such as the offset of a slice or
the bits of a swizzle; the same function computes both sides on terms, for the proof, and on integers. A test requires
an identity for each function of the layout algebra that the passes or the inference of ops import.
"""

from __future__ import annotations

import ast
import inspect
import random
import re
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple, cast

import pytest
from layout_questions import holds

from cute_dialect.algebra import (
    UNDERSCORE,
    AlgebraError,
    Coord,
    IntTuple,
    Layout,
    Leaf,
    Swizzle,
    crd2idx,
    dice,
    evaluate,
    idx2crd,
    leaves,
    local_tile,
    make_identity_layout,
    size,
    slice_,
)
from cute_dialect.algebra.evaluation import increment_coord
from cute_dialect.algebra.layout import make_layout_like
from cute_dialect.algebra.leaf import add, div, mod, mul, shl, xor
from cute_dialect.algebra.slicing import slice_and_offset
from cute_dialect.algebra.tiled_copy import local_partition, thread_slice, tile_to_thread
from cute_dialect.algebra.values import ComposedLayout, raw_layout
from cute_dialect.symbolic.expressions import as_layout, evaluate_text
from cute_dialect.symbolic.layouts import Conditions, Question
from cute_dialect.symbolic.terms import Domain, Term
from cute_dialect.tools.cute_prove import ask

ROOT = Path(__file__).parents[3]
E8, E4 = "M % 8 == 0", "N % 4 == 0"
TILES = (E8, E4)

QUESTIONS: list[tuple[str, tuple[str, ...]]] = [
    # coalesce: the modes of a vectorized copy, of a fragment, of a bulk copy
    ("coalesce((M,N):(S,M*S)) == (M,N):(S,M*S)", ()),
    ("coalesce(((2,M),(4,N)):((1,2),(2*M,8*M))) == ((2,M),(4,N)):((1,2),(2*M,8*M))", ()),
    ("coalesce((M,1,N):(S,T,U)) == (M,1,N):(S,T,U)", ()),
    # composition
    ("composition((M,N):(S,T), M*N:1) == (M,N):(S,T)", ()),
    ("composition((M,N):(N,1), (N,M):(M,1)) == (N,M):(1,N)", ()),
    ("composition(composition((M,N):(S,T), M*N:1), M:1) == composition((M,N):(S,T), composition(M*N:1, M:1))", ()),
    (
        "composition(composition((8*M,N):(S,T), [8:1;_]), (2,4):(4,1))"
        " == composition((8*M,N):(S,T), composition((8,N):(1,8*M), (2,4):(4,1)))",
        (),
    ),
    ("composition((8*M,N):(S,T), [8:1;_]) == (8,N):(S,T)", ()),
    ("composition((8*M,N):(S,T), [(2,M):(4,8);_]) == ((2,M),N):((4*S,8*S),T)", ()),
    # complement: a layout and the rest together are a permutation
    ("make_layout(4:2, complement(4:2, 8*M)) covers 8*M", ()),
    ("make_layout((4,M):(1,8), complement((4,M):(1,8), 8*M*K)) covers 8*M*K", ()),
    ("injective complement(M:2, 2*M*K)", ()),
    # divide: every element is in one tile, and the function stays
    ("logical_divide((M,N):(S,T), [8:1;4:1]) == (M,N):(S,T)", TILES),
    ("logical_divide(M:S, 8:1) == M:S", (E8,)),
    ("logical_divide(M:1, 2:4) covers M", (E8,)),
    ("zipped_divide((M,N):(1,M), [8:1;4:1]) covers M*N", TILES),
    ("zipped_divide((M,N):(S,T), (8,4)) == ((8,4),(M/8,N/4)):((S,T),(8*S,4*T))", TILES),
    ("tiled_divide((M,N):(S,T), (8,4)) == ((8,4),M/8,N/4):((S,T),8*S,4*T)", TILES),
    ("flat_divide((M,N):(S,T), (8,4)) == (8,4,M/8,N/4):(S,T,8*S,4*T)", TILES),
    ("zipped_divide((8*M,4*N):(1,8*M), (8,4)) == tiled_divide((8*M,4*N):(1,8*M), (8,4))", ()),
    ("flat_divide((8*M,4*N):(1,8*M), (8,4)) == tiled_divide((8*M,4*N):(1,8*M), (8,4))", ()),
    # product: repetitions of a tile are disjoint and leave no gap; a division by the tile undoes it
    ("logical_product((2,4):(1,2), (M,N):(N,1)) covers 8*M*N", ()),
    ("zipped_product((2,4):(1,2), (M,N):(N,1)) == logical_product((2,4):(1,2), (M,N):(N,1))", ()),
    ("tiled_product((2,4):(1,2), (M,N):(N,1)) == logical_product((2,4):(1,2), (M,N):(N,1))", ()),
    ("flat_product((2,4):(1,2), (M,N):(N,1)) == logical_product((2,4):(1,2), (M,N):(N,1))", ()),
    ("blocked_product((2,4):(4,1), (M,N):(N,1)) covers 8*M*N", ()),
    ("raked_product((2,4):(4,1), (M,N):(N,1)) covers 8*M*N", ()),
    ("tiled_divide(blocked_product((2,4):(4,1), M:1), (2,4)) == logical_product((2,4):(4,1), M:1)", ()),
    ("tile_to_shape((8,4):(4,1), (8*M,4*N)) covers 32*M*N", ()),
    ("zipped_divide(tile_to_shape((8,4):(4,1), (8*M,4*N)), (8,4)) == logical_product((8,4):(4,1), (M,N):(1,M))", ()),
    # ranks, orders, other element types
    ("group_modes((A,B,C):(S,T,U), 0, 2) == (A,B,C):(S,T,U)", ()),
    ("make_layout(M:S, N:T) == (M,N):(S,T)", ()),
    ("make_ordered_layout((A,B,C), (2,0,1)) covers A*B*C", ()),
    ("make_ordered_layout((A,B,C), (2,0,1)) == (A,B,C):(B*C,1,B)", ()),
    ("make_layout_like((M,8):(8,1)) covers 8*M", ()),
    ("append_to_rank((M,N):(S,T), 1:0, 3) == (M,N):(S,T)", ()),
    ("prepend_to_rank((M,N):(S,T), 1:0, 3) == (M,N):(S,T)", ()),
    ("recast_layout((M,N):(1,M), 8, 16) == (2*M,N):(1,2*M)", ("M >= 2",)),
    ("recast_layout((8*M,N):(1,8*M), 32, 16) == (4*M,N):(1,4*M)", ()),
    ("recast_layout(recast_layout((8*M,N):(1,8*M), 32, 16), 16, 32) == (8*M,N):(1,8*M)", ()),
    # inverses of thread-value layouts: extents are static
    ("composition(right_inverse(((4,8),2):((16,1),8)), 64:1) == right_inverse(((4,8),2):((16,1),8))", ()),
    ("composition(((4,8),2):((16,1),8), right_inverse(((4,8),2):((16,1),8))) == 64:1", ()),
    ("composition(left_inverse((4,8):(16,1)), (4,8):(16,1)) == 32:1", ()),
    # swizzles: bijections; rows of 128 bytes; atoms repeat along both modes
    ("injective S<3,4,3> o 0 o (8,M):(1,8)", ()),
    ("S<3,4,3> o 0 o (8,m):(128,1024) == S<3,4,3> o 0 o 8*m:128", ()),
    ("S<3,3,3> o 0 o (64,8,m):(1,64,512) == S<3,3,3> o 0 o 512*m:1", ()),
    ("S<2,4,3> o 0 o (512,m):(1,512) == S<2,4,3> o 0 o 512*m:1", ()),
    # tiles of different coordinates do not overlap
    ("(8,N):(1,16) disjoint 16*N:1 o 8 o (8,N):(1,16)", ()),
    ("M:1 disjoint M*8:1 o M o N:1", ()),
]  # fmt: skip

LISTED = [
    (
        "composition(composition((M,N):(S,T), (N,M):(M,1)), (M,N):(1,M))"
        " == composition((M,N):(S,T), composition((N,M):(M,1), (M,N):(1,M)))",
        (),
        "M and N do not divide each other, so the modes of the composition are split at min(M, N); static extents that"
        " do not divide are refused, and passes compose static layouts only",
    ),
    (
        "zipped_divide((M,N):(S,T), [8:1;4:1]) == composition((M,N):(S,T), zipped_divide((M,N):(1,M), [8:1;4:1]))",
        (E8, E4, "S <= 1", "T <= 1"),
        "a composition with a dynamic step inside of a mode rounds up; passes divide layouts themselves",
    ),
]
"""Identities that are not proved, with the reason."""


class Equation(NamedTuple):
    """Two indices that are equal.

    - sides: computes both from leaves
    - bounds: a range [0, n) for each leaf; None for any number of at least 1
    """

    sides: Callable[..., tuple[IntTuple, IntTuple]]
    bounds: tuple[int | None, ...]


def _sum(a: IntTuple, b: IntTuple) -> Leaf:
    return add(cast("Leaf", a), cast("Leaf", b))


def swizzle_keeps_multiples_of_its_period(x: Leaf, t: Leaf) -> tuple[IntTuple, IntTuple]:
    s = Swizzle(3, 4, 3)
    return s(add(x, mul(t, 1024))), add(s(x), mul(t, 1024))


def swizzle_is_its_inverse(x: Leaf) -> tuple[IntTuple, IntTuple]:
    s = Swizzle(3, 4, 3)
    return s(s(x)), x


def swizzle_is_linear_over_xor(x: Leaf) -> tuple[IntTuple, IntTuple]:
    s = Swizzle(2, 4, 3)
    return s(xor(x, 0x1B0)), xor(s(x), s(0x1B0))


def swizzle_adds_a_constant_without_common_bits(row: Leaf, t: Leaf) -> tuple[IntTuple, IntTuple]:
    # The constant 32 is swizzled at compile time and xored: its bits are not those of 128 * row.
    s = Swizzle(3, 4, 3)
    at = add(shl(row, 7), mul(t, 1024))
    return s(add(at, 32)), xor(s(at), s(32))


def swizzle_moves_whole_units(x: Leaf, byte: Leaf) -> tuple[IntTuple, IntTuple]:
    # 16 bytes stay contiguous: an access of 16 bytes needs one address.
    s = Swizzle(3, 4, 3)
    return s(add(mul(x, 16), byte)), add(s(mul(x, 16)), byte)


def swizzle_without_set_bits_is_the_identity(x: Leaf) -> tuple[IntTuple, IntTuple]:
    return Swizzle(3, 4, 3)(x), x


def _box(m: Leaf, n: Leaf, k: Leaf, s: Leaf, t: Leaf) -> Layout:
    return raw_layout((m, (n, k)), (s, (t, mul(t, n))))


def slice_and_its_offset_are_the_layout(i: Leaf, j: Leaf, k: Leaf, s: Leaf, t: Leaf) -> tuple[IntTuple, IntTuple]:
    layout = _box(16, 8, 4, s, t)
    part, offset = slice_and_offset((UNDERSCORE, (j, UNDERSCORE)), layout)
    return evaluate((i, (j, k)), layout), _sum(evaluate((i, k), part), offset)


def slice_of_a_layout_keeps_free_modes(i: Leaf, k: Leaf, s: Leaf, t: Leaf) -> tuple[IntTuple, IntTuple]:
    layout = _box(16, 8, 4, s, t)
    part = slice_((UNDERSCORE, (0, UNDERSCORE)), layout)
    return evaluate((i, (0, k)), layout), evaluate((i, k), part)


def dice_keeps_fixed_modes(i: Leaf, k: Leaf, s: Leaf, t: Leaf) -> tuple[IntTuple, IntTuple]:
    layout = _box(16, 8, 4, s, t)
    return evaluate((i, (0, k)), layout), evaluate((i, k), dice((0, (UNDERSCORE, 0)), layout))


def slice_of_a_swizzled_layout(i: Leaf, j: Leaf, t: Leaf) -> tuple[IntTuple, IntTuple]:
    layout = ComposedLayout(Swizzle(3, 3, 3), mul(t, 512), raw_layout((8, 64), (64, 1)))
    part, offset = slice_and_offset((i, UNDERSCORE), layout)
    return evaluate((i, j), layout), _sum(evaluate(j, part), offset)


def domain_offset_is_the_index_of_the_offset(
    i: Leaf, j: Leaf, a: Leaf, b: Leaf, s: Leaf, t: Leaf
) -> tuple[IntTuple, IntTuple]:
    layout = raw_layout((64, 32), (s, t))
    return evaluate((add(i, a), add(j, b)), layout), _sum(evaluate((i, j), layout), evaluate((a, b), layout))


def tile_is_the_tensor_at_its_corner(i: Leaf, j: Leaf, r: Leaf, c: Leaf, s: Leaf, t: Leaf) -> tuple[IntTuple, IntTuple]:
    layout = raw_layout((64, 32), (s, t))
    part, offset = local_tile(layout, (8, 4), (r, c))
    whole = evaluate((add(mul(r, 8), i), add(mul(c, 4), j)), layout)
    return whole, _sum(evaluate((i, j), part), offset)


def partition_is_the_tensor_at_the_thread(
    v: Leaf, w: Leaf, thread: Leaf, s: Leaf, t: Leaf
) -> tuple[IntTuple, IntTuple]:
    # Thread i of (4,8):(8,1) has the elements (i / 8 + 4 v, i % 8 + 8 w).
    layout = raw_layout((16, 32), (s, t))
    part, offset = local_partition(layout, Layout("(4,8):(8,1)"), thread)
    row, column = div(thread, 8), mod(thread, 8)
    whole = evaluate((add(row, mul(v, 4)), add(column, mul(w, 8))), layout)
    return whole, _sum(evaluate((v, w), part), offset)


def thread_slice_is_the_block(thread: Leaf, v: Leaf, m: Leaf, s: Leaf, t: Leaf) -> tuple[IntTuple, IntTuple]:
    # Threads (2,2) with 2 values each cover (4,2); thread i has the rows 2 (i % 2) + v of column i / 2.
    block = raw_layout((8, 2), (s, t))
    tv = Layout("((2,2),2):((2,4),1)")
    part, offset = thread_slice(tile_to_thread(block, (4, 2), tv), thread)
    whole = evaluate((add(add(mul(mod(thread, 2), 2), v), mul(m, 4)), div(thread, 2)), block)
    return whole, _sum(evaluate(cast("Coord", (v, m, 0)), part), offset)


def index_of_a_coordinate_of_an_index(i: Leaf) -> tuple[IntTuple, IntTuple]:
    return crd2idx(idx2crd(i, (8, (4, 2))), (8, (4, 2))), i


def next_coordinate_has_the_next_index(i: Leaf, j: Leaf) -> tuple[IntTuple, IntTuple]:
    return crd2idx(increment_coord((i, j), (8, 5)), (8, 5)), add(cast("Leaf", crd2idx((i, j), (8, 5))), 1)


def identity_layout_returns_its_coordinate(i: Leaf, j: Leaf) -> tuple[IntTuple, IntTuple]:
    return evaluate((i, j), make_identity_layout((8, 4))), (i, j)


def compact_fragment_has_the_size_of_its_layout(m: Leaf, n: Leaf) -> tuple[IntTuple, IntTuple]:
    layout = raw_layout((m, n, 8), (8, mul(8, m), 1))
    return size(make_layout_like(layout)), size(layout)


EQUATIONS = [
    Equation(swizzle_keeps_multiples_of_its_period, (1024, None)),
    Equation(swizzle_is_its_inverse, (512,)),
    Equation(swizzle_is_linear_over_xor, (512,)),
    Equation(swizzle_adds_a_constant_without_common_bits, (8, None)),
    Equation(swizzle_moves_whole_units, (64, 16)),
    Equation(swizzle_without_set_bits_is_the_identity, (128,)),
    Equation(slice_and_its_offset_are_the_layout, (16, 8, 4, None, None)),
    Equation(slice_of_a_layout_keeps_free_modes, (16, 4, None, None)),
    Equation(dice_keeps_fixed_modes, (16, 4, None, None)),
    Equation(slice_of_a_swizzled_layout, (8, 64, None)),
    Equation(domain_offset_is_the_index_of_the_offset, (32, 16, 32, 16, None, None)),
    Equation(tile_is_the_tensor_at_its_corner, (8, 4, 8, 8, None, None)),
    Equation(partition_is_the_tensor_at_the_thread, (4, 4, 32, None, None)),
    Equation(thread_slice_is_the_block, (4, 2, 2, None, None)),
    Equation(index_of_a_coordinate_of_an_index, (64,)),
    Equation(identity_layout_returns_its_coordinate, (8, 4)),
    Equation(compact_fragment_has_the_size_of_its_layout, (None, None)),
]


@pytest.mark.parametrize(("question", "where"), QUESTIONS, ids=lambda x: x if isinstance(x, str) else "")
def test_question_is_proved(question: str, where: tuple[str, ...]) -> None:
    assert str(ask(question, where)).startswith("proved")


@pytest.mark.parametrize(("question", "where", "reason"), LISTED, ids=lambda x: "")
def test_listed_identity_is_not_refuted(question: str, where: tuple[str, ...], reason: str) -> None:
    verdict = ask(question, where)
    assert verdict.status == "not proved", f"it is {verdict}: move it to QUESTIONS"
    assert reason


@pytest.mark.sample(every=4)
@pytest.mark.parametrize(
    ("question", "where"), [*QUESTIONS, *[x[:2] for x in LISTED]], ids=lambda x: x if isinstance(x, str) else ""
)
def test_question_holds_for_random_integers(question: str, where: tuple[str, ...]) -> None:
    texts = re.sub(r"^injective ", "", question).replace(" covers ", " == ").replace(" disjoint ", " == ").split(" == ")
    drawn = [values for values, _ in Conditions(texts, where).samples()]
    evaluated = 0
    for values in random.Random(question).sample(drawn, min(40, len(drawn))):
        try:
            answer = disjoint(texts, values) if " disjoint " in question else holds(question, values)
        except AlgebraError:
            continue
        assert answer is not False, values
        evaluated += answer is True
    assert evaluated >= 3 or len(drawn) == 1 == evaluated


def disjoint(texts: list[str], values: dict[str, int]) -> bool:
    a, b = (as_layout(evaluate_text(t, values)) for t in texts)
    return not {evaluate(i, a) for i in range(cast("int", size(a)))} & {
        evaluate(i, b) for i in range(cast("int", size(b)))
    }


@pytest.mark.parametrize("equation", EQUATIONS, ids=lambda e: e.sides.__name__)
def test_equation_is_proved(equation: Equation) -> None:
    domain = Domain()
    names = list(inspect.signature(equation.sides).parameters)
    given = [
        domain.leaf(domain.symbol(n) if extent is None else domain.variable(n, extent))
        for n, extent in zip(names, equation.bounds, strict=True)
    ]
    left, right = ([domain.term(x) for x in leaves(side)] for side in equation.sides(*given))  # type: ignore[arg-type]
    question = Question(domain, [], "", lambda: iter(()))
    assert len(left) == len(right)
    for a, b in zip(left, right):
        assert question.are_equal(a, b), f"{a} and {b}"
    if len(left) == 1 and left[0].value is None:
        assert not question.are_equal(left[0], right[0] + Term.constant(1))


@pytest.mark.parametrize(
    "equation", [*EQUATIONS, Equation(next_coordinate_has_the_next_index, (7, 5))], ids=lambda e: e.sides.__name__
)
def test_equation_holds_for_random_integers(equation: Equation) -> None:
    rng = random.Random(equation.sides.__name__)
    for _ in range(100):
        left, right = equation.sides(
            *[rng.randrange(1, 50) if n is None else rng.randrange(n) for n in equation.bounds]
        )
        assert left == right


ELSEWHERE = {
    "cosize": "a bound of allocations; compared with enumeration in test/unit/algebra",
    "flat_modes": "the leaves of a layout; zero strides of scale factors are dropped from them",
    "ceil_div": "of shapes: the extents of the divides above",
    "reference_map": "static thread-value layouts of atoms; test/unit/algebra/test_tiled_copy.py enumerates them",
    "retile": "static thread-value layouts of atoms",
    "make_cotiled_layout": "static thread-value layouts of atoms",
    "make_layout_tv": "static thread-value layouts of atoms",
    "composed_thread_slice": "the offset of a swizzled slice may be any; slice_of_a_swizzled_layout proves the layout",
    "common_modes": "a choice of modes, verified by the copies that use it",
}
"""Functions without an identity here, and why."""


def test_each_function_that_lowering_imports_has_an_identity() -> None:
    here = Path(__file__).read_text()
    modules = (
        "compose",
        "complements",
        "inverses",
        "layout",
        "tiling",
        "slicing",
        "evaluation",
        "tiled_copy",
        "vectors",
    )
    used: set[str] = set()
    for folder in ("passes", "cute_dialect/cute_nvgpu", "cute_dialect/dialect"):
        for file in sorted((ROOT / folder).rglob("*.py")):
            for node in ast.walk(ast.parse(file.read_text())):
                if isinstance(node, ast.ImportFrom) and node.module in [f"cute_dialect.algebra.{m}" for m in modules]:
                    used |= {a.name for a in node.names if a.name[0].islower()}
    tiling = (ROOT / "cute_dialect/dialect/tile.py").read_text()
    used |= set(re.findall(r'name = "cute\.(\w+)"', tiling))
    synonyms = {"compose": "composition"}
    missing = {f for f in used if f not in ELSEWHERE and len(re.findall(rf"\b{synonyms.get(f, f)}\(", here)) == 0}
    assert not missing
    assert set(ELSEWHERE) <= used, "functions that no pass imports any more"
