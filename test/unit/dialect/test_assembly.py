"""Custom assembly format of each op: canonical text, alternative spellings on input, round trips to generic form."""

from __future__ import annotations

import pytest
from canonical_ops import CANONICAL
from ops_support import cute_lines, parse, printed, round_trip, verified
from xdsl.utils.exceptions import ParseError


@pytest.mark.parametrize("line", CANONICAL)
def test_prints_as_written(line: str) -> None:
    assert round_trip(line) == [line]


def test_every_op_is_covered() -> None:
    from cute_dialect.dialect.registry import core_ops

    used = {word.split("(")[0].split("<")[0] for line in CANONICAL for word in line.split() if word.startswith("cute.")}
    assert {op.name for op in core_ops()} == used
    assert len(core_ops()) == 63


def test_divisibility_round_trips() -> None:
    line = (
        '%r = cute.zipped_divide(%l, %t) : (!cute.layout<"(?,?):(?{div=4},1)">, !cute.shape<"(16,128)">)'
        ' -> !cute.layout<"((16,128),(?,?)):((?{div=4},1),(?{div=64},128))">'
    )
    assert round_trip(line) == [line]


@pytest.mark.parametrize("result", ["(?{div=2},?{div=64})", "(?,?{div=32})", "(?,?)"])
def test_weaker_divisibility_is_accepted_and_kept(result: str) -> None:
    shape, stride = result.removeprefix("(").removesuffix(")").split(",")
    line = (
        '%r = cute.composition(%l, %t) : (!cute.layout<"(?{div=4},8):(?{div=4},?{div=64})">, !cute.tile<"[_;4:1]">)'
        f' -> !cute.layout<"({shape},4):(?{{div=4}},{stride})">'
    )
    assert round_trip(line) == [line]


SPELLINGS = [
    # Full types where the canonical form omits the type name, and omitted names where the op allows one kind only.
    (
        '%c = cute.make_composed_layout(%w, %o, %b) : (!cute.swizzle<"S<2,3,3>">, !cute.int_tuple<"?">,'
        ' !cute.layout<"8:1">) -> !cute.composed_layout<"S<2,3,3> o ? o 8:1">',
        '%c = cute.make_composed_layout(%w, %o, %b) : (!cute.swizzle<"S<2,3,3>">, <"?">, <"8:1">)'
        ' -> <"S<2,3,3> o ? o 8:1">',
    ),
    (
        '%b = cute.composed_get_outer(%c) : !cute.composed_layout<"S<2,3,3> o 5 o 8:1"> -> !cute.layout<"8:1">',
        '%b = cute.composed_get_outer(%c) : <"S<2,3,3> o 5 o 8:1"> -> <"8:1">',
    ),
    (
        '%d = cute.get_stride(%l) : !cute.layout<"8:1"> -> !cute.stride<"1">',
        '%d = cute.get_stride(%l) : <"8:1"> -> !cute.stride<"1">',
    ),
    (
        '%a = cute.get_layouts_from_tile(%t) : !cute.tile<"[6]">',
        '%a = cute.get_layouts_from_tile(%t) : <"[6:1]">',
    ),
    (
        '%s = cute.to_shape(%i) : <"( 6 , 5 )"> -> <"(6,5)">',
        '%s = cute.to_shape(%i) : !cute.int_tuple<"(6,5)"> -> !cute.shape<"(6,5)">',
    ),
    # Operand types in parentheses, and the name cute.get_strides, as printed IR listings spell them.
    (
        '%s = cute.get_shape(%l) : (!cute.layout<"8:1">) -> !cute.shape<"8">',
        '%s = cute.get_shape(%l) : !cute.layout<"8:1"> -> !cute.shape<"8">',
    ),
    (
        '%d = cute.get_strides(%l) : (!cute.layout<"8:1">) -> !cute.stride<"1">',
        '%d = cute.get_stride(%l) : <"8:1"> -> !cute.stride<"1">',
    ),
    (
        '%d = "cute.get_strides"(%l) : (!cute.layout<"8:1">) -> !cute.stride<"1">',
        '%d = cute.get_stride(%l) : <"8:1"> -> !cute.stride<"1">',
    ),
    (
        '%v = cute.get_scalars(%l) <{only_dynamic}> : !cute.layout<"(?,6):(6,1)">',
        '%v = cute.get_scalars<{only_dynamic}> (%l) : !cute.layout<"(?,6):(6,1)">',
    ),
    # Properties in the attribute dictionary of the generic form, as older MLIR prints them.
    (
        '%n = "cute.size"(%s) {mode = array<i32: 1>} : (!cute.shape<"(6,2)">) -> !cute.int_tuple<"2">',
        '%n = cute.size<[1]> (%s) : (!cute.shape<"(6,2)">) -> !cute.int_tuple<"2">',
    ),
    (
        '%n = cute.size<[1]>(%s) : (!cute.shape<"(6,2)">) -> (!cute.int_tuple<"2">)',
        '%n = cute.size<[1]> (%s) : (!cute.shape<"(6,2)">) -> !cute.int_tuple<"2">',
    ),
]


@pytest.mark.parametrize(("written", "canonical"), SPELLINGS)
def test_alternative_spellings(written: str, canonical: str) -> None:
    assert round_trip(written) == [canonical]


def test_short_form_of_make_layout() -> None:
    lines = round_trip(
        """
        %s = cute.make_shape(%m) : (i32) -> !cute.shape<"(?,6)">
        %d = cute.static : !cute.stride<"(6,1)">
        %l = cute.make_layout(%s, %d) {note} : !cute.layout<"(?,6):(6,1)">
        """
    )
    assert lines[-1] == (
        '%l = cute.make_layout(%s, %d) {note} : (!cute.shape<"(?,6)">, !cute.stride<"(6,1)">)'
        ' -> !cute.layout<"(?,6):(6,1)">'
    )


def test_generic_form_has_properties() -> None:
    module = verified(
        """
        %r = cute.recast_layout<32, 16> (%l) : !cute.layout<"(8,4):(1,8)"> -> !cute.layout<"(4,4):(1,4)">
        %g = cute.group_modes<0, 2> (%r) : (!cute.layout<"(4,4):(1,4)">) -> !cute.layout<"((4,4)):((1,4))">
        %a = cute.append_to_rank<2> (%g, %e) : !cute.layout<"((4,4)):((1,4))">, !cute.layout<"1:0">
        %v:4 = cute.get_scalars<{only_dynamic}> (%x) : !cute.shape<"(?,?,?,?)">
        """
    )
    text = printed(module, generic=True)
    assert "<{new_type_bits = 32 : i32, old_type_bits = 16 : i32}>" in text
    assert "<{begin = 0 : i32, end = 2 : i32}>" in text
    assert "<{rank = 2 : i32}>" in text
    assert "<{only_dynamic}>" in text


def test_results_omitted_in_the_text_are_inferred() -> None:
    module = verified(
        """
        %r = cute.slice(%l, %c) : !cute.layout<"(6,5):(5,1)">, !cute.coord<"(_,2)">
        %d = cute.dice(%l, %k) : !cute.layout<"(6,5):(5,1)">, !cute.coord<"(_,2)">
        %p = cute.prepend_to_rank<2> (%s, %e) : !cute.shape<"?{i64}">, !cute.shape<"1">
        %a, %b = cute.get_leaves(%t) : !cute.tile<"[6:1;_]">
        """
    )
    text = printed(module, generic=True)
    for piece in ('-> !cute.layout<"(6):(5)">', '-> !cute.layout<"(5):(1)">', '-> !cute.shape<"(1,?{i64})">'):
        assert piece in text
    assert '-> (!cute.layout<"6:1">, !cute.tile<"_">)' in text


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('%n = cute.size<[1]> %s : (!cute.shape<"(6,2)">) -> !cute.int_tuple<"2">', "'(' expected"),
        ('%n = cute.select (%s) : !cute.shape<"(6,2)"> -> !cute.shape<"2">', "Expected '<'"),
        ('%n = cute.size<[1.5]> (%s) : (!cute.shape<"(6,2)">) -> !cute.int_tuple<"2">', "integer literal"),
        ('%n = cute.size<[4294967296]> (%s) : (!cute.shape<"(6,2)">) -> !cute.int_tuple<"2">', "32-bit integer"),
        (
            '%r = cute.get_scalars<{only_static}> (%s) : !cute.shape<"(6,2)">',
            "unknown property only_static; only only_dynamic is allowed",
        ),
        ('%r = cute.flatten(%s, %t) : (!cute.shape<"6">) -> !cute.shape<"6">', "expected 2 operand types, got 1"),
        ('%a, %b = cute.get_leaves(%s) : !cute.shape<"(6,(?,2))">', "3 results, but was given 2"),
        ('%l = cute.make_layout(%s, %d) : !cute.layout<"6:1">', "defined above"),
        ("cute.static : i32, i32", "expected"),
        (
            '%n = cute.size (%s) {mode = array<i32: 1>} : (!cute.shape<"(6,2)">) -> !cute.int_tuple<"2">',
            "property 'mode' is written before the operands",
        ),
        ('%n = cute.get_scalars (%s) {only_dynamic} : !cute.shape<"6">', "property 'only_dynamic' is written before"),
        ('%n = cute.size (%s) : (<"6">) -> !cute.int_tuple<"6">', "type expected"),
    ],
)
def test_malformed_assembly(line: str, message: str) -> None:
    with pytest.raises(ParseError) as error:
        parse(line)
    assert message in error.value.msg


def test_locations_of_inference_errors_are_at_the_op() -> None:
    text = '%a = cute.static : !cute.shape<"6">\n'
    text += '%r = cute.slice(%l, %c) : !cute.layout<"(6,5):(5,1)">, !cute.coord<"(_,2,3)">\n'
    with pytest.raises(ParseError) as error:
        parse(text)
    assert text[: error.value.span.start].count("\n") == 1
    assert text.splitlines()[1].index("(") == error.value.span.start - text.index("\n") - 1


def test_printed_lines_are_ssa_stable() -> None:
    module = verified('%r = cute.flatten(%0) : (!cute.shape<"6">) -> !cute.shape<"6">')
    assert cute_lines(module) == ['%r = cute.flatten(%0) : (!cute.shape<"6">) -> !cute.shape<"6">']
