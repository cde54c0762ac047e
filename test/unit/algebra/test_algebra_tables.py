"""The algebra against tables of worked examples, row by row."""

from __future__ import annotations

import copy
import pickle

import pytest

from cute_dialect.algebra import (
    arithmetic,
    complements,
    compose,
    evaluation,
    inverses,
    layout,
    slicing,
    text,
    tiling,
    trees,
    vectors,
    verify,
)
from cute_dialect.algebra.leaf import AlgebraError
from cute_dialect.algebra.values import ComposedLayout, Layout

REJECTED = "rejected"


def read(kind: str, string: str) -> object:
    value = getattr(text, f"parse_{kind}")(string)
    if kind in ("layout", "composed_layout", "tile", "stride", "shape"):
        check = verify.verify_layout if isinstance(value, Layout) and kind == "composed_layout" else None
        (check or getattr(verify, f"verify_{kind}"))(value)
    return value


def guess(string: str) -> object:
    """Parse a layout or composed layout from its text and verify it."""
    value = text.parse_composed_layout(string)
    if isinstance(value, ComposedLayout):
        verify.verify_composed_layout(value)
    else:
        verify.verify_layout(value)
    return value


def show(value: object, kind: str | None = None) -> str:
    if isinstance(value, bool):
        return str(value)
    if isinstance(value, Layout):
        verify.verify_layout(value)
    if isinstance(value, ComposedLayout):
        verify.verify_composed_layout(value)
    return text.to_text(value, kind)


def check(expected: str, f, *operands: object) -> None:
    if expected == REJECTED:
        with pytest.raises(AlgebraError):
            show(f(*operands))
    else:
        assert show(f(*operands)) == expected


# ----------------------------------------------------------------------------------------------------------- text

CANONICAL = [
    ("shape", "( 6 , ( 2,5 ) )", "(6,(2,5))"),
    ("shape", "?{ i64 }", "?{i64}"),
    ("shape", "?{i32}", "?"),
    ("shape", "?{}", "?"),
    ("shape", "?{i8i16}", "?{i16}"),
    ("shape", "?{i64 div=16}", "?{i64 div=16}"),
    ("shape", "?{div=16,i64}", "?{i64 div=16}"),
    ("shape", "?{div=16}", "?{div=16}"),
    ("shape", "?{div=1}", "?"),
    ("shape", "(7,)", "(7)"),
    ("shape", "()", "()"),
    ("shape", "-007", "-7"),
    ("shape", "9223372036854775807", "9223372036854775807"),
    ("shape", "-9223372036854775808", "-9223372036854775808"),
    ("layout", "6", "6:1"),
    ("layout", "(6,1,5)", "(6,1,5):(1,0,6)"),
    ("layout", "1", "1:0"),
    ("layout", "((2,5),3)", "((2,5),3):((1,2),10)"),
    ("layout", "(6,?,5)", "(6,?,5):(1,6,?)"),
    ("layout", "(?{i64},9)", "(?{i64},9):(1,?{i64})"),
    ("layout", "( 6,5 ) : ( 5 ,1)", "(6,5):(5,1)"),
    ("layout", "():()", "():()"),
    ("layout", "20:2", "20:2"),
    ("layout", "(20):(2)", "(20):(2)"),
    ("tile", "[ 6 ; _ ]", "[6:1;_]"),
    ("tile", "[4;8]", "[4:1;8:1]"),
    ("tile", "6", "6:1"),
    ("tile", "[4:1]", "[4:1]"),
    ("tile", "[_;_]", "[_;_]"),
    ("tile", "_", "_"),
    ("tile", "[]", "[]"),
    ("tile", "[(2,4):(4,1);_;[3:1;?:2]]", "[(2,4):(4,1);_;[3:1;?:2]]"),
    ("composed_layout", "S< 2 , 3 , 3 >o 5 o(8,8)", "S<2,3,3> o 5 o (8,8):(1,8)"),
    ("composed_layout", "S<0,4,3> o 0 o (8,8)", "(8,8):(1,8)"),
    ("composed_layout", "(8,8):(8,1)", "(8,8):(8,1)"),
    ("stride", "( 1@0 , 2 @ 1 )", "(1@0,2@1)"),
    ("stride", "(0,(1@0,?@1))", "(0,(1@0,?@1))"),
    ("stride", "1@1@0", "1@1@0"),
    ("coord", "(_,(2,?))", "(_,(2,?))"),
    ("swizzle", "S<2,3,-3>", "S<2,3,-3>"),
]


@pytest.mark.parametrize(("kind", "source", "canonical"), CANONICAL)
def test_canonical_text(kind: str, source: str, canonical: str) -> None:
    value = getattr(text, f"parse_{kind}")(source)
    assert text.to_text(value, kind) == canonical
    again = getattr(text, f"parse_{kind}")(canonical)
    assert text.to_text(again, kind) == canonical
    if kind != "composed_layout":
        assert again == value


NOT_IN_THE_GRAMMAR = [
    ("shape", "", 0),
    ("shape", "4,4", 1),
    ("shape", "(4,4", 4),
    ("shape", "(4,,4)", 3),
    ("shape", "(,)", 1),
    ("shape", "(4))", 3),
    ("shape", "+4", 0),
    ("shape", "- 4", 0),
    ("shape", "4 4", 2),
    ("shape", "x", 0),
    ("shape", "1@0", 1),
    ("shape", "9223372036854775808", 0),
    ("shape", "-9223372036854775809", 0),
    ("shape", "?{u32}", 2),
    ("shape", "?{i64", 5),
    ("shape", "?{div=0}", 6),
    ("shape", "?{div=-4}", 6),
    ("shape", "?{div}", 5),
    ("shape", "٣", 0),
    ("int_tuple", "_", 0),
    ("stride", "1@", 2),
    ("stride", "1@-1", 2),
    ("stride", "3/4@0", 1),
    ("stride", "3/4", 1),
    ("stride", "_", 0),
    ("stride", "1@99999999", 2),
    ("coord", "1@0", 1),
    ("tile", "[4:1,4:1]", 4),
    ("tile", "[4:1;]", 5),
    ("tile", "[4:1", 4),
    ("tile", "(_,4)", 1),
    ("swizzle", "S<3,4>", 5),
    ("swizzle", "S<3,4,2>", 0),
    ("swizzle", "S<-1,4,2>", 2),
    ("swizzle", "S<3,-1,3>", 4),
    ("swizzle", "S<16,1,16>", 0),
    ("layout", "(4,4):(1,4):(1,1)", 11),
    ("layout", "(4,4:(1,4)", 4),
    ("layout", "(4,4):", 6),
    ("composed_layout", "S<2,3,3> o 0", 12),
    ("composed_layout", "S<2,3,3> o o (8,8)", 11),
    ("composed_layout", "S<2,3,3> o 0 o (8,8) o 4", 21),
    ("shape", "(" * 65 + ")" * 65, 64),
    ("tile", "[" * 65 + "_" + "]" * 65, 64),
    ("shape", "1" * 70000, 65536),
    ("shape", "-" + "1" * 5000, 0),
]


@pytest.mark.parametrize(("kind", "source", "position"), NOT_IN_THE_GRAMMAR)
def test_parse_errors_name_the_position(kind: str, source: str, position: int) -> None:
    with pytest.raises(text.TextError) as error:
        getattr(text, f"parse_{kind}")(source)
    assert error.value.position == position
    assert "expected" in str(error.value)


def test_core_only_rejects_divisors() -> None:
    for source in ("?{div=4}", "?{i64,i32}", "?{i64 div=4}"):
        text.parse_shape(source)
        with pytest.raises(text.TextError):
            text.parse_shape(source, core_only=True)
    assert show(text.parse_shape("?{i64}", core_only=True)) == "?{i64}"


# --------------------------------------------------------------------------------------------------- verification

VERDICTS = [
    ("layout", "(4,4):(1,4)", True),
    ("layout", "(4,4):(1,(4))", False),
    ("layout", "(4,0):(1,4)", False),
    ("layout", "(4,-1):(1,4)", False),
    ("layout", "(4,4):(-1,0)", True),
    ("layout", "(4,4):(1,1@0)", False),
    ("layout", "():()", True),
    ("stride", "(0,1@0)", True),
    ("stride", "(1,1@0)", False),
    ("stride", "(?,?@0)", False),
    ("stride", "(2,1@0)", False),
    ("stride", "(1@0,1@1)", True),
    ("stride", "(1@0@0,1@1@0)", True),
    ("stride", "(1@1@0,1@0)", False),
    ("stride", "(1@0,1@0@0)", False),
    ("stride", "((1@0@0,1@0@1),1@1)", False),
    ("stride", "(1@0,2@0)", True),
    ("shape", "(0,-3)", True),
    ("tile", "[(4,0):(1,4);_]", True),
    ("tile", "[(4,4):(1,1@0);_]", False),
    ("composed_layout", "S<2,3,3> o 0 o (8,8):(8,1)", True),
    ("composed_layout", "S<0,4,3> o 0 o (8,8):(8,1)", False),
    ("composed_layout", "S<0,4,3> o 7 o (8,8):(8,1)", True),
    ("composed_layout", "S<2,3,3> o 0 o (8,8):(1@0,1@1)", False),
    ("composed_layout", "(6,4):(4,1) o 2 o (2,2):(2@0,1@1)", False),
    ("composed_layout", "(6,4):(4,1) o (1,2) o (2,2):(2@0,1@1)", True),
    ("composed_layout", "(6,4):(4,1) o (0,0,0) o (2,2):(2@0,1@1)", False),
    ("composed_layout", "(6,4):(4,1) o ? o (5):(2)", True),
    ("composed_layout", "(6,4):(4,1) o 0 o (0,5):(1,1)", False),
    ("composed_layout", "(8,8):(8,1)", False),
    ("composed_layout", "S<2,3,3> o 0 o (8,8):(8,(1))", False),
]


@pytest.mark.parametrize(("kind", "source", "legal"), VERDICTS)
def test_verification(kind: str, source: str, legal: bool) -> None:
    value = getattr(text, f"parse_{kind}")(source)
    verifier = getattr(verify, f"verify_{kind}")
    if legal:
        verifier(value)
    else:
        with pytest.raises(AlgebraError, match=r"expected|cannot add|are not coordinates"):
            verifier(value)


# -------------------------------------------------------------------------------------------------------- relations

RELATIONS = [
    ("(1,2)", "(2,(3,4))", False, True, False),
    ("3", "(2,3)", False, True, False),
    ("(1,(1,1))", "(2,(3,4))", True, True, True),
    ("(1,(1,1))", "(2,3)", False, False, True),
    ("(1)", "3", False, False, True),
    ("(1)", "(2,3)", False, False, False),
    ("1", "()", False, True, False),
]


@pytest.mark.parametrize(("a", "b", "same", "ab", "ba"), RELATIONS)
def test_congruence(a: str, b: str, same: bool, ab: bool, ba: bool) -> None:
    x, y = text.parse_shape(a), text.parse_shape(b)
    assert trees.congruent(x, y) is same
    assert trees.weakly_congruent(x, y) is ab
    assert trees.weakly_congruent(y, x) is ba


def test_compatible() -> None:
    assert trees.compatible((4, 6), ((2, 2), (3, 2)))
    assert trees.compatible(24, (4, 6))
    assert not trees.compatible((4, 5), ((2, 2), (3, 2)))
    assert not trees.compatible((24,), (4, 6))
    assert not trees.compatible(text.parse_shape("?"), text.parse_shape("?"))


# ------------------------------------------------------------------------------------------------------- evaluation

EVALUATE = [
    ("(3,(2,4)):(8,(4,1))", "0", "0"),
    ("(3,(2,4)):(8,(4,1))", "7", "9"),
    ("(3,(2,4)):(8,(4,1))", "(1,2)", "9"),
    ("(3,(2,4)):(8,(4,1))", "(1,(0,1))", "9"),
    ("(4,4):(4,1)", "20", "5"),
    ("(4,8):(1@1,2@0)", "(1,2)", "(4,1)"),
    ("(4,8):(2@2,1@0)", "(1,2)", "(2,0,2)"),
    ("(4,8):(1@1,2@1)", "(1,2)", "(0,5)"),
    ("(4,8):(?,4)", "(0,0)", "0"),
    ("(4,8):(1,4)", "(?{i64},0)", "?{i64}"),
    ("(6,5):(1@0,3@1)", "(?,2)", "(?,6)"),
    ("(6,5):(5,1)", "(_,2)", "2"),
    ("7:3@2", "1", "(0,0,3)"),
    ("7:1@0@1", "5", "(0,(5))"),
    ("7:2@1@0", "5", "((0,10))"),
    ("7:?@1", "5", "(0,?)"),
    ("7:3@1", "2", "(0,6)"),
    ("():()", "3", "()"),
    ("(6,5):(1@0,1@1)", "(?{i8},1)", "(?{i8},1)"),
    ("(6,5):(1@1,1@0)", "(?{i8},1)", "(1,?{i8})"),
    ("S<1,2,1> o 0 o (8,4):(1,8)", "(3,1)", "15"),
    ("S<1,2,1> o 0 o (8,4):(1,8)", "(5,1)", "9"),
    ("(4,5):(5,1) o 3 o (2,3):(1,2)", "(1,2)", "2"),
    ("(6,4):(4,1) o (1,2) o (2,2):(2@0,1@1)", "(1,1)", "15"),
    ("(6,5):(5,1)", "(1,2,3)", REJECTED),
    ("6:5", "(1,2)", REJECTED),
    ("(6,5):(5,1)", "(1,(2,3))", REJECTED),
]


@pytest.mark.parametrize(("source", "coord", "expected"), EVALUATE)
def test_evaluate(source: str, coord: str, expected: str) -> None:
    check(expected, evaluation.evaluate, text.parse_coord(coord), guess(source))


def test_swizzle_examples() -> None:
    s = text.parse_swizzle("S<3,4,3>")
    assert [s(x) for x in (0, 128, 130, 1024)] == [0, 144, 146, 1024]
    s = text.parse_swizzle("S<2,0,-2>")
    assert [s(x) for x in (1, 2, 5)] == [5, 10, 1]
    assert show(s(text.parse_shape("?{i64}"))) == "?{i64}"


ORDERED = [
    ("(6,5,2)", "(2,0,1)", "(10,1,5)"),
    ("(6,(5,2))", "(1,0)", "(10,(1,5))"),
    ("(6,1,5)", "(2,0,1)", "(5,0,1)"),
    ("(6,5)", "(3,3)", "(1,1)"),
    ("(6,5)", "9", "(1,6)"),
    ("(6,?,2)", "(2,1,3)", "(?,1,?)"),
    ("(6,?,2)", "(1,0,2)", "(?,1,?)"),
    ("((2,3),5)", "((1,0),2)", "((3,1),6)"),
    ("(6,5)", "(?,1)", REJECTED),
    ("6", "(0)", REJECTED),
    ("(6,5)", "(0,1,2)", REJECTED),
]


@pytest.mark.parametrize(("shape", "order", "expected"), ORDERED)
def test_ordered_strides(shape: str, order: str, expected: str) -> None:
    if expected != REJECTED:
        expected = f"{shape}:{expected}"
    check(expected, layout.make_ordered_layout, text.parse_shape(shape), text.parse_int_tuple(order))


COSIZE = [
    ("(5,3):(1,7)", "19", "19"),
    ("(5,3):(1,-7)", "19", "19"),
    ("(5,3):(0,2)", "5", "5"),
    ("(5,3):(2@1,1@0)", "(3,9)", "27"),
    ("(5,?):(1,5)", "?", "?"),
    ("3:7", "15", "15"),
    ("():()", "()", "1"),
]


@pytest.mark.parametrize(("source", "shape", "cosize"), COSIZE)
def test_cosize(source: str, shape: str, cosize: str) -> None:
    check(shape, evaluation.coshape, guess(source))
    check(cosize, evaluation.cosize, guess(source))


def test_cosize_of_composed_layouts() -> None:
    assert evaluation.cosize(guess("S<2,3,3> o 4 o (5,3):(1,7)")) == 19
    with pytest.raises(AlgebraError):
        evaluation.cosize(guess("(4,5):(5,1) o 3 o (2,3):(1,2)"))


LIKE = [
    ("(6,5):(10,2)", "(6,5):(5,1)"),
    ("(6,5,2):(0,2,20)", "(6,5,2):(0,1,5)"),
    ("((2,3),5):((15,1),3)", "((2,3),5):((15,1),3)"),
    ("(6,5):(?,1)", "(6,5):(5,1)"),
    ("(?,5):(?,?)", "(?,5):(1,?)"),
    ("S<2,3,3> o 4 o (6,5):(32,2)", "(6,5):(5,1)"),
    ("(6,5):(1@0,1@1)", REJECTED),
    ("(4,5):(5,1) o 3 o (2,3):(1,2)", REJECTED),
]


@pytest.mark.parametrize(("source", "expected"), LIKE)
def test_make_layout_like(source: str, expected: str) -> None:
    check(expected, layout.make_layout_like, guess(source))


IDENTITY = [
    ("7", "7:1"),
    ("(7)", "(7):(1@0)"),
    ("(6,(2,?))", "(6,(2,?)):(1@0,(1@0@1,1@1@1))"),
    ("()", "():()"),
    ("(6,1)", "(6,1):(1@0,1@1)"),
]


@pytest.mark.parametrize(("shape", "expected"), IDENTITY)
def test_identity(shape: str, expected: str) -> None:
    check(expected, layout.make_identity_layout, text.parse_shape(shape))


# -------------------------------------------------------------------------------------------------------- accessors


def test_accessors() -> None:
    tile = text.parse_tile("[6:1;[(2,5):(5,1);3:1]]")
    assert show(trees.tile_shape(tile)) == "(6,((2,5),3))"
    assert show(trees.tile_shape(text.parse_tile("[(2,3):(1,2)]"))) == "((2,3))"
    with pytest.raises(AlgebraError):
        trees.tile_shape(text.parse_tile("[6:1;_]"))
    assert [show(x) for x in trees.tile_layouts(text.parse_tile("[6:1;_;[(2,?):(?,1);_]]"))] == [
        "6:1",
        "(2,?):(?,1)",
    ]
    with pytest.raises(AlgebraError):
        trees.tile_layouts(text.parse_tile("[_;_]"))
    assert show(trees.get(guess("(6,(2,5)):(10,(5,1))"), [1, 0])) == "2:5"
    assert show(trees.get(guess("S<2,3,3> o 4 o (8,6):(6,1)"), [1])) == "S<2,3,3> o 4 o 6:1"
    assert trees.get(5, [0]) == 5
    for value, path in (((4, 2), [0, 0]), (5, [1]), (5, [0, 0]), ((4, 2), [2]), ((4, 2), [-1])):
        with pytest.raises(AlgebraError):
            trees.get(value, path)
    assert show(trees.tree_get(text.parse_tile("[(4,2):(2,1);_]"), [0]), "tile") == "(4,2):(2,1)"
    assert show(trees.select(guess("(6,5,2):(10,2,1)"), [2, 0])) == "(2,6):(1,10)"
    assert trees.select(6, [0]) == (6,)
    assert trees.select((6, 5), []) == ()
    with pytest.raises(AlgebraError):
        trees.select((6, 5), [2])


def test_leaves_are_in_storage_order() -> None:
    def of(kind: str, source: str) -> list[str]:
        return [show(x) for x in trees.leaves(getattr(text, f"parse_{kind}")(source))]

    assert of("layout", "(2,(3,?)):(1,(?{i64},6))") == ["2", "3", "?", "1", "?{i64}", "6"]
    assert of("tile", "[(2,?):(?,1);_;[3:1]]") == ["2", "?", "?", "1", "_", "3", "1"]
    assert of("composed_layout", "(4,?):(1,4) o 7 o (2):(1)") == ["2", "1", "7", "4", "?", "1", "4"]
    assert of("composed_layout", "S<2,3,3> o ? o (2):(1)") == ["2", "1", "?"]
    assert trees.carries_divisor(text.parse_tile("[_;4:?{div=2}]"))
    assert trees.tree_leaves(text.parse_tile("[4:1;[_]]")) == [Layout("4:1"), text.UNDERSCORE]


def test_tree_functions() -> None:
    assert (trees.rank(5), trees.rank((1, (2, 3))), trees.rank(())) == (1, 2, 0)
    assert (trees.depth(5), trees.depth((1, (2, 3))), trees.depth(())) == (0, 2, 1)
    assert trees.flatten(((2, 3), ())) == (2, 3)
    assert (trees.flatten(()), trees.flatten(5)) == ((), 5)
    assert show(trees.flatten(guess("(2,(5,(3))):(15,(3,(1)))"))) == "(2,5,3):(15,3,1)"
    assert show(trees.tree_flatten(text.parse_tile("[6:1;[2:1;_]]"))) == "[6:1;2:1;_]"
    assert show(trees.product_each(text.parse_shape("(6,(?,2),())"))) == "(6,?,1)"
    assert show(trees.product(text.parse_shape("(6,(?,2))"))) == "?"
    assert trees.product(()) == 1
    assert trees.unwrap(((5,),)) == 5
    assert trees.prefix_product((2, (3, 4))) == (1, (2, 6))
    assert trees.row_major((6, 1, (5, 2))) == (10, 10, (2, 1))
    with pytest.raises(AlgebraError):
        trees.product((2, text.UNDERSCORE))


# ------------------------------------------------------------------------------------------------------ composition

COMPOSITION = [
    ("(6,10):(10,1)", "(3,4):(2,6)", "layout", "(3,4):(20,1)"),
    ("(10,3):(12,4)", "(5,6):(1,5)", "layout", "(5,(2,3)):(12,(60,4))"),
    ("(5,3):(3,1)", "30:1", "layout", "(5,6):(3,1)"),
    ("(5,3):(3,1)", "10:1", "layout", "(5,2):(3,1)"),
    ("12:3", "(?,2):(1,?)", "layout", "(?,2):(3,?)"),
    ("(4,8):(1,4)", "(1,8)", "shape", "(1,8):(0,4)"),
    ("(4,8):(1,4)", "[1:1;8:1]", "tile", "(1,8):(1,4)"),
    ("(?,?):(?,1)", "(1,8)", "shape", "(1,8):(0,1)"),
    ("8:2", "1", "shape", "1:0"),
    ("(?,8):(1,?)", "4:1", "layout", "(?,?):(1,?)"),
    ("(4,?):(1,?)", "(24,2):(1,24)", "layout", "((4,6),2):((1,?),?)"),
    ("(4,8):(1,4)", "(2,3):(1@1,1@0)", "layout", "(2,3):(4,1)"),
    ("(4,8):(1@0,1@1)", "16:2", "layout", "(2,8):(2@0,1@1)"),
    ("8:2", "(2,2):(0,3)", "layout", "(2,2):(0,6)"),
    ("(6,2):(8,2)", "3:4", "layout", REJECTED),
    ("(4,3):(3,1)", "2:6", "layout", REJECTED),
    ("(5,4):(1,6)", "4:3", "layout", "4:3"),
    ("(4,3):(3,1)", "2:-6", "layout", "2:-2"),
    ("(4,3):(3,1)", "(2,3):(-1,-4)", "layout", "(2,3):(-3,-1)"),
    ("(12,8):(8,1)", "(3,2)", "shape", "(3,2):(8,1)"),
    ("(12,8):(8,1)", "6", "shape", "6:8"),
    ("(12,8):(8,1)", "((3,2),4)", "shape", REJECTED),
    ("(12,8):(8,1)", "[3:4;_]", "tile", "(3,8):(32,1)"),
    ("(12,8):(8,1)", "[3:4]", "tile", "(3):(32)"),
    ("(9,(6,4)):(48,(8,1))", "[3:3;6:2]", "tile", "(3,(3,2)):(144,(16,1))"),
    ("(9,(6,4)):(48,(8,1))", "[3:3;8:2]", "tile", REJECTED),
    ("(12,8):(8,1)", "[3:1;2:1;_]", "tile", REJECTED),
    ("(12,8):(8,1)", "(3,0)", "shape", REJECTED),
    ("(12,8):(8,1)", "[(3,2):(1,(3));_]", "tile", REJECTED),
    ("(12,8):(8,1)", "(2,3):(1@0@0,1@1)", "layout", "(2,3):(8,1)"),
    ("(12,8):(8,1)", "(2,3):(1@1@0,1@1)", "layout", REJECTED),
    ("12:1", "(2,3):(1@0,1@1)", "layout", REJECTED),
    ("(12,8):(8,1)", "?:1@0", "layout", REJECTED),
    ("S<2,3,3> o 4 o (12,8):(8,1)", "[3:4;_]", "tile", "S<2,3,3> o 4 o (3,8):(32,1)"),
    # Divisibility: exact quotients.
    ("(?{div=128},64):(1,?)", "128:1", "layout", "128:1"),
    ("(128,64):(64,1)", "?{div=256}:1", "layout", "(128,?{div=2}):(64,1)"),
    ("(?{div=128},?):(1,?)", "(64,2):(1,64)", "layout", "(64,2):(1,64)"),
    ("(?{div=128},?):(1,?)", "(64,3):(1,64)", "layout", "(64,(?,?)):(1,(64,?))"),
]


@pytest.mark.parametrize(("lhs", "rhs", "kind", "expected"), COMPOSITION)
def test_composition(lhs: str, rhs: str, kind: str, expected: str) -> None:
    check(expected, compose.composition, guess(lhs), getattr(text, f"parse_{kind}")(rhs))


COALESCE = [
    ("(2,(1,6)):(1,(6,2))", None, "12:1"),
    ("(2,1):(3,7)", None, "2:3"),
    ("(1,1):(3,7)", None, "1:7"),
    ("(1,4,1,2):(9,2,5,8)", None, "8:2"),
    ("(5,(4,2)):(1,(5,20))", "(1,1)", "(5,8):(1,5)"),
    ("(5,(4,2)):(1,(5,20))", "(1,(1,1))", "(5,(4,2)):(1,(5,20))"),
    ("((2,3),4):((1,2),6)", "(1)", "(6,4):(1,6)"),
    ("(?,1,3):(2,4,?)", None, "(?,3):(2,?)"),
    ("(2,3):(1@0,2@0)", None, "6:1@0"),
    ("(2,4):(0,0)", None, "8:0"),
    ("(4,2):(-1,-4)", None, "8:-1"),
    ("(?):(?)", None, "?:?"),
    ("():()", None, "():()"),
    ("(2,3):(1,2)", "(1,1,1)", REJECTED),
    ("(2,3):(1,2)", "((1,1),1)", REJECTED),
    ("4:1", "(1)", "(4):(1)"),
    ("S<2,3,3> o 4 o (2,(1,6)):(1,(6,2))", None, "S<2,3,3> o 4 o 12:1"),
]


@pytest.mark.parametrize(("source", "profile", "expected"), COALESCE)
def test_coalesce(source: str, profile: str | None, expected: str) -> None:
    check(expected, layout.coalesce, guess(source), None if profile is None else text.parse_coord(profile))


COMPLEMENT = [
    ("5:2", None, "(2,1):(1,10)"),
    ("5:1", None, "1:5"),
    ("(3,5):(5,1)", None, "1:15"),
    ("(2,3):(4,12)", None, "(4,1):(1,36)"),
    ("(3,2):(5,1)", None, "(2,1):(2,15)"),
    ("3:1@0", None, "(1):(3@0)"),
    ("(2,3):(1@1,2@0)", None, "((2,1),1):((1@0,6@0),2@1)"),
    ("3:2@1", None, "(1,(2,1)):(1@0,(1@1,6@1))"),
    ("(2,2):(1,1)", None, REJECTED),
    ("5:2", "30", "(2,3):(1,10)"),
    ("5:1", "30", "6:5"),
    ("6:5", "30", "5:1"),
    ("(5,6):(1,5)", "30", "1:30"),
    ("(2,3):(4,12)", "48", "(4,2):(1,36)"),
    ("(2,2):(1,6)", "24", "(3,2):(2,12)"),
    ("2:0", "12", "12:1"),
    ("5:1", "(5,6)", "6:5"),
    ("4:2", "(6,?)", "(2,?):(1,8)"),
    ("4:?", "24", "(?,?):(1,?)"),
    ("5:1", "?", "?:5"),
    ("(2,2):(1,1)", "8", REJECTED),
    ("(2,2):(1,1)", "(8)", REJECTED),
    ("1:7", "12", "12:1"),
    ("2:0", "1", "1:1"),
    ("():()", "(1,1)", "1:1"),
    ("(2,2):(1,?)", "8", REJECTED),
    ("4:1@0", "8", REJECTED),
    ("4:-1", "8", REJECTED),
    ("4:1", "0", REJECTED),
]


@pytest.mark.parametrize(("source", "cotarget", "expected"), COMPLEMENT)
def test_complement(source: str, cotarget: str | None, expected: str) -> None:
    check(expected, complements.complement, guess(source), None if cotarget is None else text.parse_shape(cotarget))


def test_complement_in_a_layout() -> None:
    assert show(complements.complement(guess("5:2"), guess("30:7"))) == "(2,3):(1,10)"


GROUP = [
    ("5:2", 0, 1, "(5):(2)"),
    ("(4,5):(1,4)", 0, 1, "((4),5):((1),4)"),
    ("(4,5,6):(1,4,20)", 1, 3, "(4,(5,6)):(1,(4,20))"),
    ("(4,5):(1,4)", 1, 1, REJECTED),
    ("(4,5):(1,4)", -1, 1, REJECTED),
    ("(4,5):(1,4)", 0, 3, REJECTED),
]


@pytest.mark.parametrize(("source", "begin", "end", "expected"), GROUP)
def test_group_modes(source: str, begin: int, end: int, expected: str) -> None:
    check(expected, layout.group_modes, guess(source), begin, end)


RECAST = [
    (16, 8, "(10,3):(1,10)", "(5,3):(1,5)"),
    (32, 8, "(6,4):(1,8)", "(2,4):(1,2)"),
    (8, 16, "(10,3):(1,10)", "(20,3):(1,20)"),
    (24, 16, "(9,5):(1,9)", "(6,5):(1,6)"),
    (48, 32, "(6,2):(1,6)", "(4,2):(1,4)"),
    (64, 16, "(8,4):(4,1)", "(8,1):(1,1)"),
    (32, 16, "(?,4):(1,?)", "(?,4):(1,?)"),
    (16, 8, "(2,3):(0,-4)", "(2,3):(0,-2)"),
    (32, 8, "S<3,4,3> o 0 o (64,8):(1,64)", "S<3,2,3> o 0 o (16,8):(1,16)"),
    (8, 32, "S<3,2,3> o 4 o (8,4):(1,8)", "S<3,4,3> o 16 o (32,4):(1,32)"),
    (32, 16, "(4,5):(1,4) o 3 o (8,4):(1,8)", REJECTED),
    (32, 16, "(4,5):(1,4) o 2 o (8,4):(1,8)", "(2,5):(1,2) o 1 o (4,4):(1,4)"),
    (16, 16, "(9,5):(1,9)", "(9,5):(1,9)"),
    (16, 16, "(9,5):(1@0,1@1)", REJECTED),
    (32, 16, "(9,5):(1@0,1@1)", REJECTED),
    (0, 16, "(9,5):(1,9)", REJECTED),
    (16, -8, "(9,5):(1,9)", REJECTED),
    (128, 8, "S<3,3,3> o 0 o (64,8):(1,64)", REJECTED),
    (24, 8, "S<3,3,3> o 0 o (63,8):(1,63)", REJECTED),
    (16, 8, "S<3,3,3> o ? o (64,8):(1,64)", REJECTED),
    # Divisibility: the number of elements per wider element divides the stride.
    (32, 8, "(?{div=4},4):(?{div=8},1)", "(?{div=4},1):(?{div=2},1)"),
    (32, 8, "(64,?):(1,?{div=64})", "(16,?):(1,?{div=16})"),
]


@pytest.mark.parametrize(("new", "old", "source", "expected"), RECAST)
def test_recast(new: int, old: int, source: str, expected: str) -> None:
    check(expected, layout.recast_layout, guess(source), new, old)


# ----------------------------------------------------------------------------------------------------- slice, dice

SLICE = [
    ("layout", "(6,5):(5,1)", "(_,2)", "(6):(5)"),
    ("layout", "(6,5):(5,1)", "_", "(6,5):(5,1)"),
    ("layout", "(6,5):(5,1)", "(1,2)", "():()"),
    ("layout", "(6,5):(5,1)", "2", "():()"),
    ("layout", "(3,5,(2,4)):(40,8,(4,1))", "(_,2,(_,0))", "(3,2):(40,4)"),
    ("layout", "((16,128),(?,?)):((?,1),(?,128))", "((_,_),?)", "(16,128):(?,1)"),
    ("layout", "(6,5):(5,1)", "(_,2,_)", REJECTED),
    ("layout", "6:5", "(_)", REJECTED),
    ("shape", "(2,(3,4))", "(1,_)", "((3,4))"),
    ("int_tuple", "(1,(2,3))", "(1,(_,0))", "(2)"),
    ("coord", "(0,_)", "(_,1)", "(0)"),
    ("composed_layout", "(4,8):(1,4) o 3 o (2,3):(1,2)", "(_,1)", "(4,8):(1,4) o 5 o (2):(1)"),
    ("composed_layout", "S<2,0,2> o 0 o (4,4):(1,4)", "(_,_)", "S<2,0,2> o 0 o (4,4):(1,4)"),
    ("composed_layout", "S<2,0,2> o 0 o (4,4):(1,4)", "(_,1)", "((2,2)):((-1,2))"),
    ("composed_layout", "S<2,0,2> o 0 o (4,4):(1,4)", "(2,_)", "((2,2)):((5,6))"),
    ("composed_layout", "S<2,0,2> o 0 o (4,4):(1,4)", "(_,?)", "((2,2)):((?,?))"),
    ("composed_layout", "S<3,4,3> o 0 o (8,64):(64,1)", "(?,_)", "((16,2,2)):((1,?,?))"),
    ("composed_layout", "S<2,0,2> o 0 o (4,?):(1,4)", "(_,1)", REJECTED),
    ("composed_layout", "S<2,0,2> o 0 o (4,4):(1,4)", "(1,1)", REJECTED),
    # The stage of a multi-buffered tile moves the pointer only.
    (
        "composed_layout",
        "S<3,3,3> o 0 o ((8,8),64,3):((64,512),1,4096)",
        "(_,_,2)",
        "S<3,3,3> o 0 o ((8,8),64):((64,512),1)",
    ),
    (
        "composed_layout",
        "S<3,3,3> o 0 o ((8,8),64,3):((64,512),1,4096)",
        "(_,_,?)",
        "S<3,3,3> o ? o ((8,8),64):((64,512),1)",
    ),
    (
        "composed_layout",
        "S<3,3,3> o 0 o ((8,8),64,3):((64,512),1,4096)",
        "(_,_,?{div=2})",
        "S<3,3,3> o 0 o ((8,8),64):((64,512),1)",
    ),
]


@pytest.mark.parametrize(("kind", "source", "coord", "expected"), SLICE)
def test_slice(kind: str, source: str, coord: str, expected: str) -> None:
    check(expected, slicing.slice_, text.parse_coord(coord), getattr(text, f"parse_{kind}")(source))


DICE = [
    ("layout", "((3,2),5):((2,1),6)", "((1,_),_)", "(3):(2)"),
    ("layout", "(6,5):(5,1)", "(_,0)", "(5):(1)"),
    ("coord", "(0,_)", "(_,1)", "(_)"),
    ("layout", "(6,5):(5,1)", "3", "(6,5):(5,1)"),
    ("layout", "(6,5):(5,1)", "_", "():()"),
    ("layout", "(6,5):(5,1)", "(_,?)", REJECTED),
    ("layout", "(6,5):(5,1)", "(_,0,0)", REJECTED),
    ("composed_layout", "(4,8):(1,4) o 3 o (2,3):(1,2)", "(_,1)", "(4,8):(1,4) o 3 o (3):(2)"),
]


@pytest.mark.parametrize(("kind", "source", "coord", "expected"), DICE)
def test_dice(kind: str, source: str, coord: str, expected: str) -> None:
    check(expected, slicing.dice, text.parse_coord(coord), getattr(text, f"parse_{kind}")(source))


def test_pointer_offset_of_swizzled_slices() -> None:
    value = guess("S<2,0,2> o 0 o (4,4):(1,4)")
    assert slicing.slice_pointer_offset(text.parse_coord("(_,1)"), value) == 5
    assert slicing.slice_pointer_offset(text.parse_coord("(_,_)"), value) == 0
    staged = guess("S<3,3,3> o 0 o ((8,8),64,3):((64,512),1,4096)")
    assert slicing.slice_pointer_offset(text.parse_coord("(_,_,2)"), staged) == 8192
    assert show(slicing.slice_pointer_offset(text.parse_coord("(_,_,?{div=2})"), staged)) == "?{div=8192}"


# --------------------------------------------------------------------------------------------------------- inverses

RIGHT = [
    ("(5,3):(3,1)", "(3,5):(5,1)"),
    ("(5,8):(1,7)", "5:1"),
    ("(2,8):(4,1)", "8:2"),
    ("((2,2),4):((1,8),2)", "(2,4,2):(1,4,2)"),
    ("5:2", "1:0"),
    ("(2,2):(0,1)", "2:2"),
    ("(4,2):(?,1)", "2:4"),
    ("(2,3):(1@1,1@0)", "(3,2):(2,1)"),
    ("(4,2):(1,1)", "4:1"),
    ("(3,2,2):(2,1,2)", "4:3"),
    ("(?,2):(2,1)", REJECTED),
]


@pytest.mark.parametrize(("source", "expected"), RIGHT)
def test_right_inverse(source: str, expected: str) -> None:
    check(expected, inverses.right_inverse, guess(source))


LEFT = [
    ("(5,3):(3,1)", "(3,5):(5,1)"),
    ("5:2", "(2,5):(0,1)"),
    ("(3,4):(8,2)", "(2,4,3):(0,3,1)"),
    ("(3,2):(1,4)", "(4,2):(1,3)"),
    ("(2,4):(1,6)", "(6,4):(1,2)"),
    ("(2,3):(1@1,1@0)", "(3,2):(2,1)"),
    ("(2,3):(3,5)", REJECTED),
    ("(2,2):(1,1)", "2:2"),
    ("(2,?):(1,2)", REJECTED),
    ("(2,3):(1,?)", REJECTED),
    ("(2,3):(1,-2)", REJECTED),
]


@pytest.mark.parametrize(("source", "expected"), LEFT)
def test_left_inverse(source: str, expected: str) -> None:
    check(expected, inverses.left_inverse, guess(source))


# --------------------------------------------------------------------------------------------------- size and index


def test_size() -> None:
    assert show(evaluation.size(text.parse_shape("(6,(2,?))"))) == "?"
    assert evaluation.size(()) == 1
    assert evaluation.size(guess("S<2,3,3> o 4 o (8,6):(6,1)")) == 48
    assert evaluation.size(guess("():()")) == 1


CRD2IDX = [
    ("(2,1)", "(6,3)", "8"),
    ("(1,(1,2))", "(2,(3,4))", "15"),
    ("(1,4)", "(2,(3,4))", "9"),
    ("7", "(6,3)", "7"),
    ("(2,0)", "(?,3)", "2"),
    ("(1,2)", "(?,3)", "?"),
    ("(1,2)", "(1,?)", "2"),
    ("(1,(2,3))", "(6,3)", REJECTED),
    ("0", "()", "0"),
]


@pytest.mark.parametrize(("coord", "shape", "expected"), CRD2IDX)
def test_crd2idx(coord: str, shape: str, expected: str) -> None:
    check(expected, evaluation.crd2idx, text.parse_coord(coord), text.parse_shape(shape))


IDX2CRD = [
    ("13", "(6,3)", "(1,2)"),
    ("20", "(6,3)", "(2,3)"),
    ("7", "6", "7"),
    ("11", "(2,(3,4))", "(1,(2,1))"),
    ("(1,7)", "(2,(3,4))", "(1,(1,2))"),
    ("?", "(1,8)", "(0,?)"),
    ("9", "(?,8)", "(?,?)"),
    ("0", "(?,8)", "(0,0)"),
    ("?{i64}", "(4,2)", "(?{i64},?{i64})"),
    ("(7)", "(2,3)", REJECTED),
    ("(1,2,3)", "(2,3)", REJECTED),
    ("?{div=16}", "(8,4)", "(0,?{div=2})"),
]


@pytest.mark.parametrize(("index", "shape", "expected"), IDX2CRD)
def test_idx2crd(index: str, shape: str, expected: str) -> None:
    check(expected, evaluation.idx2crd, text.parse_int_tuple(index), text.parse_shape(shape))


INCREMENT = [
    ("(1,1)", "(6,3)", "(2,1)"),
    ("(5,1)", "(6,3)", "(0,2)"),
    ("(5,2)", "(6,3)", "(0,3)"),
    ("(0,1)", "(1,3)", "(0,2)"),
    ("(1,(2,0))", "(2,(3,4))", "(0,(0,1))"),
    ("(?,1)", "(6,3)", "(?,?)"),
    ("(1,?)", "(6,3)", "(2,?)"),
    ("7", "8", "8"),
    ("(1,_)", "(6,3)", REJECTED),
    ("1", "(6,3)", REJECTED),
]


@pytest.mark.parametrize(("coord", "shape", "expected"), INCREMENT)
def test_increment(coord: str, shape: str, expected: str) -> None:
    check(expected, evaluation.increment_coord, text.parse_coord(coord), text.parse_shape(shape))


PAD = [
    ("layout", "append", "6:2", "1:0", 3, "(6,1,1):(2,0,0)"),
    ("layout", "prepend", "(6,2):(2,12)", "1:0", 3, "(1,6,2):(0,2,12)"),
    ("shape", "append", "(6,2)", "(5,5)", 3, "(6,2,(5,5))"),
    ("shape", "append", "6", "5", 1, "6"),
    ("shape", "append", "(6,2)", "5", 1, "(6,2)"),
    ("shape", "append", "6", "5", 0, REJECTED),
    ("shape", "prepend", "()", "5", 2, "(5,5)"),
]


@pytest.mark.parametrize(("kind", "side", "source", "element", "rank", "expected"), PAD)
def test_pad(kind: str, side: str, source: str, element: str, rank: int, expected: str) -> None:
    parse = getattr(text, f"parse_{kind}")
    check(expected, getattr(layout, f"{side}_to_rank"), parse(source), parse(element), rank)


# ------------------------------------------------------------------------------------------------------- arithmetic

SUMS = [
    ("add", "(1,2,3)", "(4,5)", "(5,7,3)"),
    ("add", "0", "(4,5)", "(4,5)"),
    ("add", "3", "(4,5)", REJECTED),
    ("add", "?", "(4,5)", REJECTED),
    ("add", "(1,?)", "(2,0)", "(3,?)"),
    ("add", "?", "?{i64}", "?{i64}"),
    ("add", "?", "4294967296", "?{i64}"),
    ("add", "?{i8}", "0", "?"),
    ("add", "?{i8}", "?{i8}", "?{i8}"),
    ("sub", "(7,8)", "(1,2,5)", "(6,6,5)"),
    ("sub", "(7,8)", "0", "(7,8)"),
    ("sub", "0", "(7,8)", REJECTED),
    ("add", "((1,2),3)", "(0,1)", REJECTED),
    ("add", "9223372036854775807", "1", REJECTED),
    ("sub", "-9223372036854775808", "1", REJECTED),
]


@pytest.mark.parametrize(("op", "lhs", "rhs", "expected"), SUMS)
def test_tuple_arithmetic(op: str, lhs: str, rhs: str, expected: str) -> None:
    check(expected, getattr(arithmetic, f"tuple_{op}"), text.parse_shape(lhs), text.parse_shape(rhs))


SHAPE_DIV = [
    ("(8,9)", "(2,3)", "(4,3)"),
    ("24", "(2,3)", "4"),
    ("3", "12", "1"),
    ("(6,4)", "12", "(1,2)"),
    ("4", "-12", "-1"),
    ("7", "3", REJECTED),
    ("(6,5)", "12", REJECTED),
    ("(8,9,2)", "(2,3)", REJECTED),
    ("(?,6)", "4", "(?,?)"),
    ("7", "0", REJECTED),
    ("?", "0", REJECTED),
    ("?{div=8}", "2", "?{div=4}"),
    ("?{div=8}", "3", "?"),
]


@pytest.mark.parametrize(("a", "b", "expected"), SHAPE_DIV)
def test_shape_div(a: str, b: str, expected: str) -> None:
    check(expected, arithmetic.shape_div, text.parse_shape(a), text.parse_shape(b))


CEIL_DIV = [
    ("(7,9,4)", "shape", "(2,4)", "(4,3,4)"),
    ("(7,9)", "shape", "5", "(2,9)"),
    ("(4,6)", "shape", "40", "(1,1)"),
    ("20", "shape", "(2,3)", "4"),
    ("-7", "shape", "2", "-3"),
    ("(8,18)", "tile", "[2:1;4:1]", "(4,5)"),
    ("(8,18)", "tile", "[2:1]", "(4,18)"),
    ("30", "tile", "5:2", "(2,3)"),
    ("(4,6)", "shape", "(2,2,2)", REJECTED),
    ("(4,6)", "shape", "(2,0)", REJECTED),
    ("(4,6)", "tile", "[2:1;_]", REJECTED),
    ("(4,6)", "tile", "_", REJECTED),
    ("(4,6)", "tile", "[2:1;2:1;2:1]", REJECTED),
    ("20", "tile", "[2:1;3:1]", "4"),
    ("?{div=128}", "shape", "32", "?{div=4}"),
]


@pytest.mark.parametrize(("x", "kind", "tiler", "expected"), CEIL_DIV)
def test_ceil_div(x: str, kind: str, tiler: str, expected: str) -> None:
    check(expected, tiling.ceil_div, text.parse_shape(x), getattr(text, f"parse_{kind}")(tiler))


COMPARE = [
    ("(3,(1,2))", "(4,(2,3))", "True"),
    ("(3,5)", "(4,5)", "False"),
    ("()", "()", "True"),
    ("(3,?)", "(4,?)", "?{i1}"),
    ("(5,?)", "(4,?)", "False"),
    ("(3)", "4", REJECTED),
    ("_", "4", REJECTED),
]


@pytest.mark.parametrize(("a", "b", "expected"), COMPARE)
def test_elem_less(a: str, b: str, expected: str) -> None:
    check(expected, arithmetic.elem_less, text.parse_coord(a), text.parse_coord(b))


EQUAL = [
    ("layout", "(4,8):(1,4)", "(4,8):(1,4)", "True"),
    ("layout", "(4,8):(1,4)", "(4,8):(8,1)", "False"),
    ("layout", "(4,8):(1,4)", "32:1", "False"),
    ("layout", "(4,?):(1,4)", "(4,?):(1,4)", "?{i1}"),
    ("layout", "(4,?):(1,4)", "(5,?):(1,4)", "False"),
    ("stride", "(1@0,?@1)", "(1@0,2@1)", "?{i1}"),
    ("stride", "(1@0,?@1)", "(1@1,2@0)", "False"),
    ("coord", "(_,?)", "(_,3)", "?{i1}"),
    ("coord", "(_,?)", "(2,3)", "False"),
    ("shape", "?{i8}", "300", "False"),
]


@pytest.mark.parametrize(("kind", "a", "b", "expected"), EQUAL)
def test_equal(kind: str, a: str, b: str, expected: str) -> None:
    parse = getattr(text, f"parse_{kind}")
    check(expected, arithmetic.equal, parse(a), parse(b))


# --------------------------------------------------------------------------------------------- products and divides

PRODUCTS = [
    ("logical", "(2,5):(5,1)", "(3,4):(1,3)", "((2,5),(3,4)):((5,1),(10,30))"),
    ("logical", "3:2", "2:1", "(3,2):(2,1)"),
    ("logical", "4:2", "4:1", "(4,(2,2)):(2,(1,8))"),
    ("logical", "4:1", "2:3", "(4,2):(1,12)"),
    ("logical", "4:2", "3:1", REJECTED),
    ("logical", "(2,5):(5,1)", "(?,4):(1,?)", "((2,5),(?,4)):((5,1),(10,?))"),
    ("logical", "(2,3):(1@0,1@1)", "4:1", "((2,3),4):((1@0,1@1),3@1)"),
    ("zipped", "(2,5):(5,1)", "(3,4):(1,3)", "((2,5),(3,4)):((5,1),(10,30))"),
    ("tiled", "(2,5):(5,1)", "(3,4):(1,3)", "((2,5),3,4):((5,1),10,30)"),
    ("flat", "(2,5):(5,1)", "(3,4):(1,3)", "(2,5,3,4):(5,1,10,30)"),
    ("flat", "4:1", "3:1", "(4,3):(1,4)"),
    ("blocked", "(2,5):(5,1)", "(3,4):(1,3)", "((2,3),(5,4)):((5,10),(1,30))"),
    ("blocked", "4:1", "(2,3):(1,2)", "((4,2),(1,3)):((1,4),(0,8))"),
    ("blocked", "4:1", "3:2", "((4,3)):((1,8))"),
    ("raked", "(2,5):(5,1)", "(3,4):(1,3)", "((3,2),(4,5)):((10,5),(30,1))"),
    ("raked", "(4,32):(32,1)", "(4,4):(4,1)", "((4,4),(4,32)):((512,32),(128,1))"),
    ("raked", "4:1", "3:2", "((3,4)):((8,1))"),
    ("blocked", "(8):(1)", "2:1", REJECTED),
    ("raked", "8:5", "6:3", REJECTED),
    ("blocked", "6:0", "(5):(1)", "((6,(5))):((0,(1)))"),
    ("logical", "(2,?):(5,1)", "3:1", REJECTED),
    ("logical", "(2,5):(5,1)", "3:1@0", REJECTED),
    ("logical", "(2,3):(1@0,1@1)", "?:1", REJECTED),
    ("tiled", "S<2,3,3> o 4 o (2,5):(5,1)", "(3,4):(1,3)", "S<2,3,3> o 4 o ((2,5),3,4):((5,1),10,30)"),
]


@pytest.mark.parametrize(("op", "lhs", "rhs", "expected"), PRODUCTS)
def test_products(op: str, lhs: str, rhs: str, expected: str) -> None:
    check(expected, getattr(tiling, f"{op}_product"), guess(lhs), guess(rhs))


DIVIDES = [
    ("logical", "20:2", "layout", "5:4", "(5,4):(8,2)"),
    ("logical", "24:3", "layout", "6:2", "(6,(2,2)):(6,(3,36))"),
    ("logical", "24:1", "layout", "5:1", "(5,5):(1,5)"),
    ("logical", "(6,10):(10,1)", "layout", "(3,5):(1,12)", "((3,5),(2,2)):((10,2),(30,1))"),
    ("logical", "(6,10):(10,1)", "layout", "15:1", REJECTED),
    ("logical", "?:3", "layout", "4:2", "(4,(2,?)):(6,(3,24))"),
    ("logical", "24:3", "layout", "?:1", "(?,?):(3,?)"),
    ("logical", "(12,10):(10,1)", "shape", "(4,5)", "((4,3),(5,2)):((10,40),(1,5))"),
    ("logical", "(10,7):(7,1)", "shape", "(4,5)", "((4,3),(5,2)):((7,28),(1,5))"),
    ("logical", "(12,10):(10,1)", "tile", "[4:1;_]", "((4,3),10):((10,40),1)"),
    ("logical", "(12,10):(10,1)", "tile", "[[4:1];5:1]", "(((4,3)),(5,2)):(((10,40)),(1,5))"),
    ("logical", "(128,64):(1@1,1@0)", "layout", "4:32@0", "(4,(32,64)):(32@1,(1@1,1@0))"),
    ("zipped", "(12,10,3):(10,1,120)", "shape", "(4,5)", "((4,5),(3,2,3)):((10,1),(40,5,120))"),
    ("zipped", "(?,?):(?,1)", "shape", "(16,128)", "((16,128),(?,?)):((?,1),(?,128))"),
    ("zipped", "(12,10):(10,1)", "tile", "[4:1;_]", REJECTED),
    ("zipped", "(12,(5,2)):(10,(1,5))", "tile", "[4:1;_]", "((4,5),(3,2)):((10,1),(40,5))"),
    ("zipped", "(6,10):(10,1)", "layout", "(3,2):(2,6)", "((3,2),(2,5)):((20,1),(10,2))"),
    ("tiled", "(12,10,3):(10,1,120)", "shape", "(4,5)", "((4,5),3,2,3):((10,1),40,5,120)"),
    ("tiled", "20:2", "layout", "5:4", "(5,4):(8,2)"),
    ("flat", "(12,10,3):(10,1,120)", "shape", "(4,5)", "(4,5,3,2,3):(10,1,40,5,120)"),
    ("flat", "(12,10,3):(10,1,120)", "tile", "[4:1;5:2]", "(4,5,3,2,3):(10,2,40,1,120)"),
    ("logical", "12:1", "shape", "(4,5)", REJECTED),
    ("logical", "(12,10):(10,1)", "tile", "[4:1@0;_]", REJECTED),
    ("logical", "(12,10):(10,1)", "layout", "(2,2):(1,?)", REJECTED),
    ("logical", "(12,10):(10,1)", "tile", "[(2,2):(1,?);_]", REJECTED),
    ("logical", "(12,10):(10,1)", "shape", "(0,5)", REJECTED),
    ("logical", "S<2,3,3> o 4 o (12,10):(10,1)", "tile", "[4:1;_]", "S<2,3,3> o 4 o ((4,3),10):((10,40),1)"),
    # Divisibility: dynamic leaves keep their divisors, and exact quotients have no remainder.
    (
        "zipped",
        "(?{div=128},?{div=1}):(?{div=8},1)",
        "shape",
        "(128,64)",
        "((128,64),(?,?)):((?{div=8},1),(?{div=1024},64))",
    ),
    ("zipped", "(4,8):(1,4)", "shape", "(1,8)", "((1,8),(4,1)):((0,4),(1,32))"),
    ("zipped", "(4,8):(1,4)", "tile", "[1:1;8:1]", "((1,8),(4,1)):((1,4),(1,32))"),
    ("zipped", "(?,8):(1,?)", "shape", "(1,8)", "((1,8),(?,1)):((0,?),(1,?))"),
    ("zipped", "((2,2),8):((1,2),4)", "shape", "(1,(1))", "((1,(1)),(4,(8))):((0,(0)),(1,(4)))"),
    ("logical", "((2,2),8):((1,2),4)", "shape", "(1,8)", "((1,4),(8,1)):((0,1),(4,32))"),
    ("logical", "8:2", "shape", "1", "(1,8):(0,2)"),
    ("logical", "?:2", "shape", "1", "(1,?):(0,2)"),
    ("tiled", "(?,8):(1,?)", "shape", "(1,1)", "((1,1),?,8):((0,0),1,?)"),
    ("flat", "(4,8):(1@0,1@1)", "shape", "(1,8)", "(1,8,4,1):(0,1@1,1@0,8@1)"),
    ("logical", "?{div=256}:1", "shape", "128", "(128,?{div=2}):(1,128)"),
    ("zipped", "(?{div=128},64):(64,1)", "tile", "[128:1;32:2]", "((128,32),(?,2)):((64,2),(8192,1))"),
]


@pytest.mark.parametrize(("op", "source", "kind", "tiler", "expected"), DIVIDES)
def test_divides(op: str, source: str, kind: str, tiler: str, expected: str) -> None:
    check(expected, getattr(tiling, f"{op}_divide"), guess(source), getattr(text, f"parse_{kind}")(tiler))


TILE_TO_SHAPE = [
    ("(2,3):(3,1)", "(4,6)", None, "((2,2),(3,2)):((3,6),(1,12))"),
    ("(2,3):(3,1)", "(4,6)", "(1,0)", "((2,2),(3,2)):((3,12),(1,6))"),
    ("(2,3):(3,1)", "(5,6)", None, "((2,3),(3,2)):((3,6),(1,18))"),
    ("4:1", "(8,6)", None, "((4,2),(1,6)):((1,4),(0,8))"),
    ("(4,2):(1,4)", "(?,8)", None, "((4,?),(2,4)):((1,8),(4,?))"),
    ("(4,2):(1,4)", "((4,2),8)", None, "((4,2),(2,4)):((1,8),(4,16))"),
    ("(4,8):(8,1)", "(16,32,2)", "(2,1,0)", "((4,4),(8,4),(1,2)):((8,256),(1,64),(0,32))"),
    ("(4,8):(8,1)", "16", None, REJECTED),
    ("(4,8):(8,1)", "(16,32)", "(0,0)", REJECTED),
    ("(4,8):(8,1)", "(16,32)", "(0,1,2)", REJECTED),
    ("(4,8):(8,1)", "(16,32)", "(?,0)", REJECTED),
    (
        "((32,4),(?,4)):((16,4),(0,1))",
        "(256,?,2)",
        "(2,1,0)",
        "(((32,4),2),((?,4),?),(1,2)):(((16,4),?),((0,1),1024),(0,512))",
    ),
    ("(4,?):(1,4)", "(16,32)", None, "((4,4),(?,?)):((1,?),(4,?))"),
    ("(4,?{div=8}):(1,4)", "(16,32)", "(1,0)", "((4,4),(?{div=8},?)):((1,?{div=32}),(4,?{div=32}))"),
    ("(32,?):(4,0)", "(64,?)", None, "((32,2),(?,(?,?))):((4,1),(0,(2,128)))"),
    ("(?,?):(1,?)", "(16,32)", None, REJECTED),
    ("(?,2):(1@0,1@1)", "(16,32)", None, REJECTED),
    ("S<2,3,3> o 0 o (?,8):(8,1)", "(8,8)", None, "S<2,3,3> o 0 o ((?,?),(8,1)):((8,?),(1,0))"),
    ("S<2,3,3> o 0 o (4,8):(8,1)", "(8,8)", None, "S<2,3,3> o 0 o ((4,2),(8,1)):((8,32),(1,0))"),
]


@pytest.mark.parametrize(("block", "shape", "order", "expected"), TILE_TO_SHAPE)
def test_tile_to_shape(block: str, shape: str, order: str | None, expected: str) -> None:
    order_ = None if order is None else text.parse_int_tuple(order)
    check(expected, tiling.tile_to_shape, guess(block), text.parse_shape(shape), order_)


# ------------------------------------------------------------------------------------------------------------ range


def test_results_outside_64_bits_are_errors() -> None:
    big = 1 << 62
    assert Layout((big, 4)).stride == (1, big)
    assert Layout((4, big), trees.row_major((4, big))).stride == (big, 1)
    wide = Layout((4, 4), (big, 1))
    assert evaluation.evaluate((1, 3), wide) == big + 3
    cases = [
        lambda: evaluation.evaluate((2, 0), wide),
        lambda: evaluation.evaluate((1, 0, 1), Layout((4, 4, 4), (big, 1, big))),
        lambda: evaluation.evaluate(2, wide),
        lambda: evaluation.size(Layout((big, 4))),
        lambda: evaluation.cosize(wide),
        lambda: Layout((big, 4, 2)),
        lambda: compose.composition(Layout(8, big), Layout(2, 2)),
        lambda: compose.composition(Layout((8, 8), (big, 1)), Layout(2, 2)),
        lambda: complements.complement(Layout(4, big)),
        lambda: inverses.right_inverse(Layout((big, 4), (1, 0))),
        lambda: layout.coalesce(Layout((big, 4))),
        lambda: layout.recast_layout(Layout(4, big), 8, 64),
        lambda: tiling.logical_divide(Layout(8, big), 2),
        lambda: tiling.logical_product(Layout(2, big), Layout(2, 1)),
        lambda: trees.prefix_product((big, 4, 2)),
        lambda: evaluation.crd2idx((0, 2), (big, 4)),
    ]
    for case in cases:
        with pytest.raises(AlgebraError, match="64 bits"):
            case()


def test_vector_limits() -> None:
    a = Layout("(8,4):(1,8)")
    assert vectors.vector_bits(a, a, 16, 128, 128)[0] == 128
    assert vectors.vector_bits(a, a, 16, 128, 128, limit=64) == (64, Layout("4:1"))
    assert vectors.vector_bits(a, a, 16, 32, 128) == (32, Layout("2:1"))
    assert vectors.vector_bits(a, Layout("(8,4):(4,1)"), 16, 128, 128) == (16, None)
    assert vectors.vector_bits(Layout("3:1"), Layout("3:1"), 16, 128, 128) == (16, None)
    assert vectors.max_common_vector(Layout("4:2"), Layout("4:1")) == 1


def test_values_are_immutable_and_travel() -> None:
    value = Layout("(4,(2,?)):(1,(4,8))")
    with pytest.raises(AttributeError):
        value.shape = 4
    everything = [
        value,
        text.UNDERSCORE,
        (text.UNDERSCORE, 1),
        guess("S<2,3,3> o 0 o (8,8)"),
        text.parse_stride("1@1@0"),
    ]
    for x in everything:
        assert copy.deepcopy(x) == x and pickle.loads(pickle.dumps(x)) == x
        assert hash(copy.deepcopy(x)) == hash(x)


def test_constructor() -> None:
    assert Layout([4, [2, 3]]) == Layout((4, (2, 3))) == Layout("(4,(2,3))")
    assert Layout("(4,8)", "(8,1)") == Layout((4, 8), (8, 1))
    assert [str(m) for m in Layout("(4,8):(8,1)")] == ["4:8", "8:1"]
    for bad in (lambda: Layout((4, 4), (1,)), lambda: Layout((4, 0)), lambda: Layout((4, "4")), lambda: Layout("4,")):
        with pytest.raises(AlgebraError, match=r"expected|cannot add|are not coordinates"):
            bad()
    with pytest.raises(IndexError):
        Layout("(4,8)")[2]
