"""The eight value types and attributes: canonical text, parse errors, verifier errors, equality."""

from __future__ import annotations

import pytest
from ops_support import CONTEXT, parse, printed, round_trip, type_of, verified
from xdsl.parser import Parser
from xdsl.utils.exceptions import ParseError

from cute_dialect.dialect.types import ATTRS, TYPES, is_static_type

CANONICAL = [
    ("shape", "( 6 , ( 2,5 ) )", "(6,(2,5))"),
    ("shape", "?{ i64 }", "?{i64}"),
    ("shape", "?{i32}", "?"),
    ("shape", "?{}", "?"),
    ("shape", "?{i8 i64}", "?{i64}"),
    ("shape", "(7,)", "(7)"),
    ("shape", "(-007,0)", "(-7,0)"),
    ("shape", "()", "()"),
    ("shape", "9223372036854775807", "9223372036854775807"),
    ("shape", "\t( 1 ,\t2 )", "(1,2)"),
    ("int_tuple", "(?{i1},?{i8},?{i16})", "(?{i1},?{i8},?{i16})"),
    ("int_tuple", "?{div=1}", "?"),
    ("int_tuple", "?{div=16,i64}", "?{i64 div=16}"),
    ("int_tuple", "?{ i32 div = 8 }", "?{div=8}"),
    ("coord", "( _ , (2, ?))", "(_,(2,?))"),
    ("stride", "( 1@0 , 2 @ 1 )", "(1@0,2@1)"),
    ("stride", "(0,(1@0@1,?{i64}@1@1))", "(0,(1@0@1,?{i64}@1@1))"),
    ("layout", "6", "6:1"),
    ("layout", "(6,1,5)", "(6,1,5):(1,0,6)"),
    ("layout", "((2,5),3)", "((2,5),3):((1,2),10)"),
    ("layout", "(6,?,5)", "(6,?,5):(1,6,?)"),
    ("layout", "(?{i64},9)", "(?{i64},9):(1,?{i64})"),
    ("layout", "( 6,5 ) : ( 5 ,1)", "(6,5):(5,1)"),
    ("layout", "20:2", "20:2"),
    ("layout", "(20):(2)", "(20):(2)"),
    ("layout", "():()", "():()"),
    ("layout", "(4,2):(-1,0)", "(4,2):(-1,0)"),
    ("tile", "[ 6 ; _ ]", "[6:1;_]"),
    ("tile", "6", "6:1"),
    ("tile", "[4;8]", "[4:1;8:1]"),
    ("tile", "[4:1]", "[4:1]"),
    ("tile", "_", "_"),
    ("tile", "[[2:1;_];(3,4):(4,1)]", "[[2:1;_];(3,4):(4,1)]"),
    ("composed_layout", "S< 2 , 3 , 3 >o 5 o(8,8)", "S<2,3,3> o 5 o (8,8):(1,8)"),
    ("composed_layout", "(6,4):(4,1) o (1,2) o (2,2):(2@0,1@1)", "(6,4):(4,1) o (1,2) o (2,2):(2@0,1@1)"),
    ("swizzle", "S<3,4,3>", "S<3,4,3>"),
    ("swizzle", "S<2,0,-2>", "S<2,0,-2>"),
    ("swizzle", "S<0,4,3>", "S<0,4,3>"),
]


@pytest.mark.parametrize(("kind", "written", "canonical"), CANONICAL)
def test_canonical_text(kind: str, written: str, canonical: str) -> None:
    type_ = type_of(f'!cute.{kind}<"{written}">')
    assert str(type_) == f'!cute.{kind}<"{canonical}">'
    assert type_of(str(type_)) == type_
    attribute = Parser(CONTEXT, f'#cute.{kind}<"{written}">').parse_attribute()
    assert str(attribute) == f'#cute.{kind}<"{canonical}">'
    assert TYPES[kind](type_.data).value_attr() == attribute  # pyright: ignore


UNPARSABLE = [
    '!cute.shape<"">',
    '!cute.shape<"4,4">',
    '!cute.shape<"(4,4">',
    '!cute.shape<"(4,4))">',
    '!cute.shape<"(4,,4)">',
    '!cute.shape<"(,4)">',
    '!cute.shape<"+4">',
    '!cute.shape<"9223372036854775808">',
    '!cute.shape<"-9223372036854775809">',
    '!cute.shape<"?{u32}">',
    '!cute.shape<"?{i32">',
    '!cute.shape<"?{div=0}">',
    '!cute.shape<"1@0">',
    '!cute.shape<"_">',
    "!cute.shape<32>",
    "!cute.shape",
    "!cute.shape<>",
    '!cute.shape<"4", "4">',
    '!cute.int_tuple<"_">',
    '!cute.int_tuple<"1/2">',
    '!cute.stride<"1@">',
    '!cute.stride<"1@?">',
    '!cute.stride<"1/2">',
    '!cute.coord<"1@0">',
    '!cute.tile<"[4:1,4:1]">',
    '!cute.tile<"[4:1;">',
    '!cute.swizzle<"S<3,4>">',
    '!cute.swizzle<"S<3,4,2>">',
    '!cute.swizzle<"S<-1,4,3>">',
    '!cute.swizzle<"S<8,16,16>">',
    '!cute.swizzle<"s<3,4,3>">',
    '!cute.layout<"(4,4):(1,4):(1,1)">',
    '!cute.layout<"(4,4:(1,4)">',
    '!cute.composed_layout<"S<2,3,3> o 0">',
    '!cute.composed_layout<"S<2,3,3> o _ o 8:1">',
]
UNVERIFIABLE = [
    ('!cute.layout<"(4,4):(1,(4))">', "congruent"),
    ('!cute.layout<"(4,4):(1,4,5)">', "congruent"),
    ('!cute.layout<"(4,0):(1,4)">', "extents"),
    ('!cute.layout<"-4:1">', "extents"),
    ('!cute.layout<"(4,4):(1,1@0)">', "basis"),
    ('!cute.stride<"(2,1@0)">', "basis"),
    ('!cute.stride<"(?,?@0)">', "basis"),
    ('!cute.stride<"(1@0,1@0@0)">', "distinct modes"),
    ('!cute.stride<"(1@1@0,1@0)">', "distinct modes"),
    ('!cute.stride<"((1@0@0,1@0@1),1@1)">', "distinct modes"),
    ('!cute.tile<"[(4,4):(2,1@0)]">', "basis"),
    ('!cute.composed_layout<"(8,8):(8,1)">', "plain"),
    ('!cute.composed_layout<"S<0,4,3> o 0 o (8,8):(8,1)">', "identity swizzle"),
    ('!cute.composed_layout<"S<2,3,3> o 0 o (8,8):(1@0,1@1)">', "swizzle"),
    ('!cute.composed_layout<"(6,4):(4,1) o 2 o (2,2):(2@0,1@1)">', "offset"),
    ('!cute.composed_layout<"(6,4):(4,1) o (0,0,0) o (2,2):(2@0,1@1)">', "coordinate"),
    ('!cute.composed_layout<"(6,4):(4,1) o 0 o (0,5):(1,1)">', "extents"),
    ('!cute.composed_layout<"(6,0):(4,1) o 0 o (5):(1)">', "extents"),
    ('!cute.composed_layout<"S<2,3,3> o 0 o (8,8):(8,(1))">', "congruent"),
]
LEGAL = [
    '!cute.stride<"(0,1@0)">',
    '!cute.stride<"(1@0,1@1)">',
    '!cute.stride<"(1@0@0,1@1@0)">',
    '!cute.stride<"(1@0,2@0)">',
    '!cute.shape<"(0,-4)">',
    '!cute.tile<"[0:1]">',
    '!cute.composed_layout<"S<2,3,3> o 0 o (8,8):(8,1)">',
    '!cute.composed_layout<"S<0,4,3> o 7 o (8,8):(8,1)">',
    '!cute.composed_layout<"(6,4):(4,1) o ? o (5):(2)">',
    '!cute.composed_layout<"(6,4):(4,1) o (1,2) o (2,2):(2@0,1@1)">',
]


@pytest.mark.parametrize("text", UNPARSABLE)
def test_malformed_types_do_not_parse(text: str) -> None:
    with pytest.raises(ParseError) as error:
        Parser(CONTEXT, text).parse_type()
    assert 0 <= error.value.span.start <= len(text)


@pytest.mark.parametrize(("text", "word"), UNVERIFIABLE)
def test_illegal_types_are_rejected_at_the_literal(text: str, word: str) -> None:
    with pytest.raises(ParseError) as error:
        Parser(CONTEXT, text).parse_type()
    assert error.value.span.text == text[text.index('"') : text.rindex('"') + 1]
    assert word in error.value.msg


@pytest.mark.parametrize("text", LEGAL)
def test_legal_types(text: str) -> None:
    assert str(Parser(CONTEXT, text).parse_type()) == text


@pytest.mark.parametrize("text", [t for t, _ in UNVERIFIABLE if "S<0" not in t and "(8,8):(8,1)" not in t])
def test_attributes_are_not_verified_beyond_parsing(text: str) -> None:
    attribute = Parser(CONTEXT, "#" + text[1:]).parse_attribute()
    assert attribute == Parser(CONTEXT, str(attribute)).parse_attribute()


def test_nesting_makes_types_different() -> None:
    assert type_of("layout 20:2") != type_of("layout (20):(2)")
    assert type_of("tile [4:1]") != type_of("tile 4:1")
    assert type_of("shape ?") != type_of("shape ?{i64}")
    assert type_of("shape ?") == type_of("shape ?{i32}") and hash(type_of("shape ?")) == hash(type_of("shape ?{i32}"))
    assert type_of("shape 4") != type_of("int_tuple 4")


@pytest.mark.parametrize(
    ("text", "static"),
    [
        ("shape (6,(2,5))", True),
        ("shape (6,?)", False),
        ("coord (_,2)", True),
        ("stride (1@0,?@1)", False),
        ("tile [_;4:1]", True),
        ("tile [_;4:?]", False),
        ("swizzle S<2,3,3>", True),
        ("composed_layout S<2,3,3> o ? o 8:1", False),
        ("composed_layout 4:? o 0 o 4:1", False),
        ("composed_layout S<2,3,3> o 1 o 8:1", True),
    ],
)
def test_is_static(text: str, static: bool) -> None:
    assert is_static_type(type_of(text)) == static


def test_function_signature_round_trips() -> None:
    text = """func.func @t(%a : !cute.shape<"(?,(3,?{i64}))">, %b : !cute.stride<"(0,(1@0,?@1))">,
             %c : !cute.coord<"(_,(2,?))">, %d : !cute.tile<"[(2,4):(4,1);_;[3:1;?:2]]">,
             %e : !cute.composed_layout<"S<2,4,3> o ? o (16,8):(8,1)">) {
      func.return
    }"""
    module = verified(text)
    again = Parser(CONTEXT, printed(module)).parse_module()
    assert printed(again) == printed(module)
    for piece in (
        "(?,(3,?{i64}))",
        "(0,(1@0,?@1))",
        "(_,(2,?))",
        "[(2,4):(4,1);_;[3:1;?:2]]",
        "S<2,4,3> o ? o (16,8):(8,1)",
    ):
        assert f'<"{piece}">' in printed(module)


def test_attributes_on_any_op() -> None:
    (line,) = round_trip(
        '%s = cute.static {hint = #cute.shape<"( 8,8 )">, note = #cute.tile<"[4;_]">} : !cute.shape<"4">'
    )
    assert line == '%s = cute.static {hint = #cute.shape<"(8,8)">, note = #cute.tile<"[4:1;_]">} : !cute.shape<"4">'


def test_attribute_drops_values() -> None:
    from cute_dialect.algebra.leaf import Dyn

    plain = ATTRS["shape"]((4, Dyn()))
    assert plain == ATTRS["shape"]((4, Dyn(value="%x")))


def test_hostile_nesting_is_an_error_not_a_crash() -> None:
    with pytest.raises(ParseError):
        parse('cute.print(%x) : !cute.shape<"' + "(" * 100_000 + "1" + ")" * 100_000 + '">')
