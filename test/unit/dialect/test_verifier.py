"""Verifier errors: each names the op, the expected value and the actual value."""

from __future__ import annotations

import pytest
from ops_support import verified
from xdsl.utils.exceptions import ParseError, VerifyException

WRONG = [
    # Result types that differ from the inferred ones.
    (
        '%n = cute.size (%s) : (!cute.shape<"(6,5)">) -> !cute.int_tuple<"31">',
        """'cute.size' op result #0: expected !cute.int_tuple<"30">, got !cute.int_tuple<"31">""",
    ),
    (
        '%n = cute.size (%s) : (!cute.shape<"(6,?)">) -> !cute.int_tuple<"?{i64}">',
        """result #0: expected !cute.int_tuple<"?">, got !cute.int_tuple<"?{i64}">""",
    ),
    (
        '%n = cute.size (%s) : (!cute.shape<"6">) -> i32',
        """result #0: expected !cute.int_tuple<"6">, got i32""",
    ),
    (
        '%r = cute.get<[0]> (%s) : !cute.shape<"((6),5)"> -> !cute.shape<"6">',
        """result #0: expected !cute.shape<"(6)">, got !cute.shape<"6">""",
    ),
    (
        '%r = cute.get<[0]> (%s) : !cute.shape<"(6,5)"> -> !cute.int_tuple<"6">',
        """result #0: expected !cute.shape<"6">, got !cute.int_tuple<"6">""",
    ),
    (
        '%r = cute.size (%s) : (!cute.shape<"(?{div=4},6)">) -> !cute.int_tuple<"?{div=16}">',
        """result #0: expected !cute.int_tuple<"?{div=24}">, got !cute.int_tuple<"?{div=16}">""",
    ),
    (
        '%p = cute.equal(%a, %b) : (!cute.shape<"6">, !cute.shape<"6">) -> i32',
        "result #0: expected i1, got i32",
    ),
    (
        '%a:2 = "cute.get_leaves"(%s) : (!cute.shape<"(6,5,4)">) -> (!cute.shape<"6">, !cute.shape<"5">)',
        "'cute.get_leaves' op expected 3 results, got 2",
    ),
    ('%r = "cute.print"(%s) : (!cute.shape<"6">) -> i32', "'cute.print' op expected 0 results, got 1"),
    # operands
    (
        '%n = cute.size (%s) : (!cute.coord<"6">) -> !cute.int_tuple<"6">',
        "operand #0: expected !cute.int_tuple, !cute.shape, !cute.layout or !cute.composed_layout,"
        ' got !cute.coord<"6">',
    ),
    (
        '%s = cute.get_shape(%i) : i32 -> !cute.shape<"6">',
        "operand #0: expected !cute.layout, !cute.tile or !cute.composed_layout, got i32",
    ),
    ("cute.print(%i) : i32", "operand #0: expected a cute value, got i32"),
    (
        '%n = "cute.size"() : () -> !cute.int_tuple<"6">',
        "'cute.size' op expected 1 operand, got 0",
    ),
    (
        '%r = cute.coalesce(%l, %p, %p) : (!cute.layout<"6:1">, !cute.coord<"1">, !cute.coord<"1">)'
        ' -> !cute.layout<"6:1">',
        "'cute.coalesce' op expected 1 to 2 operands, got 3",
    ),
    # properties
    ('%r = "cute.select"(%s) : (!cute.shape<"6">) -> !cute.shape<"(6)">', "requires the property 'mode'"),
    (
        '%r = "cute.select"(%s) <{mode = array<i64: 0>}> : (!cute.shape<"6">) -> !cute.shape<"(6)">',
        "property 'mode' has the wrong type: array<i64: 0>",
    ),
    (
        '%n = "cute.size"(%s) <{made = 3 : i32}> : (!cute.shape<"6">) -> !cute.int_tuple<"6">',
        "has no property 'made'",
    ),
    # Preconditions. The message includes the path of the mode if there is one.
    (
        '%n = cute.size<[5]> (%l) : (!cute.layout<"(6,5):(5,1)">) -> !cute.int_tuple<"5">',
        "'cute.size' op expected mode index in [0, 2) at depth 0, got 5",
    ),
    (
        '%r = cute.get<[1, 2]> (%s) : !cute.shape<"(6,(2,5))"> -> !cute.shape<"2">',
        "expected mode index in [0, 2) at depth 1, got 2",
    ),
    (
        '%r = cute.get<[0, 0]> (%s) : !cute.shape<"(4,2)"> -> !cute.shape<"4">',
        "expected the path [0, 0] to end at the leaf at depth 1",
    ),
    (
        '%l = cute.make_layout(%s, %d) : (!cute.shape<"(6,5)">, !cute.stride<"1">) -> !cute.layout<"6:1">',
        "expected congruent shape and stride, got (6,5) and 1",
    ),
    (
        '%r = cute.group_modes<1, 3> (%l) : (!cute.layout<"(2,3):(1,2)">) -> !cute.layout<"(2,3):(1,2)">',
        "'cute.group_modes' op expected",
    ),
    (
        '%r = cute.tuple_add(%a, %b) : (!cute.shape<"1">, !cute.int_tuple<"1">) -> !cute.shape<"2">',
        "expected operands of the same kind, got !cute.shape and !cute.int_tuple",
    ),
    (
        '%r = cute.make_identity_layout(%s) : !cute.shape<"(0,2)"> -> !cute.layout<"(1,2):(1@0,1@1)">',
        "expected extents >= 1",
    ),
    # Preconditions of the layout algebra.
    (
        '%r = cute.composition(%a, %b) : (!cute.layout<"(6,2):(8,2)">, !cute.layout<"3:4">) -> !cute.layout<"3:4">',
        "'cute.composition' op expected an extent divisible by 2, got 3",
    ),
    (
        '%r = cute.composition(%a, %t) : (!cute.layout<"(12,8):(8,1)">, !cute.tile<"[3:4;_;_]">)'
        ' -> !cute.layout<"3:4">',
        "expected a tiler of rank at most 2 for (12,8):(8,1), got rank 3",
    ),
    (
        '%r = cute.coalesce(%l, %p) : (!cute.layout<"5:1">, !cute.coord<"(1,1)">) -> !cute.layout<"5:1">',
        "expected a profile of rank at most 1 for 5:1, got (1,1)",
    ),
    (
        '%r = cute.complement(%l) : (!cute.layout<"?:1">) -> !cute.layout<"1:1">',
        "'cute.complement' op expected a static layout or a cotarget, got the dynamic layout ?:1 and no cotarget",
    ),
    (
        '%r = cute.complement(%l) : (!cute.layout<"(2,2):(1,1)">) -> !cute.layout<"1:1">',
        "expected an injective layout, got (2,2):(1,1)",
    ),
    (
        '%r = cute.recast_layout<32, 16> (%l) : !cute.composed_layout<"(4,5):(1,4) o 3 o 8:1"> -> !cute.layout<"4:1">',
        "expected an offset divisible by 2, got 3",
    ),
    (
        '%r = cute.recast_layout<0, 16> (%l) : !cute.layout<"8:1"> -> !cute.layout<"8:1">',
        "expected positive element widths, got 0 and 16 bits",
    ),
    (
        '%r = cute.slice(%l, %c) : !cute.layout<"(6,5):(5,1)">, !cute.coord<"(_,2,3)">',
        "'cute.slice' op expected a coordinate that fits (6,5), got (_,2,3)",
    ),
    (
        '%r = cute.slice(%l, %c) : !cute.composed_layout<"S<2,0,2> o 0 o (4,4):(1,4)">, !cute.coord<"(1,1)">',
        "expected a coordinate with '_' for a swizzled layout, got (1,1)",
    ),
    (
        '%r = cute.dice(%l, %c) : !cute.layout<"(6,5):(5,1)">, !cute.coord<"(?,_)">',
        "'cute.dice' op expected a static coordinate, got (?,_)",
    ),
    (
        '%r = cute.right_inverse(%l) : (!cute.layout<"(?,2):(1,4)">) -> !cute.layout<"2:4">',
        "expected a static shape, got (?,2)",
    ),
    (
        '%r = cute.left_inverse(%l) : (!cute.layout<"(4,2):(?,1)">) -> !cute.layout<"2:4">',
        "expected a static layout, got (4,2):(?,1)",
    ),
    (
        '%i = cute.layout_eval(%c, %l) : (!cute.coord<"(1,2,3)">, !cute.layout<"(6,5):(5,1)">) -> !cute.int_tuple<"0">',
        "expected a coordinate of rank 2 for the shape (6,5), got (1,2,3)",
    ),
    (
        '%r = cute.append_to_rank<0> (%s, %e) : !cute.shape<"6">, !cute.shape<"1">',
        "'cute.append_to_rank' op expected a rank >= 1, got 0",
    ),
    (
        '%r = cute.tuple_add(%a, %b) : (!cute.shape<"3">, !cute.shape<"(4,5)">) -> !cute.shape<"(7,8)">',
        "expected two tuples or two integers at [], got 3 and (4,5)",
    ),
    (
        '%r = cute.shape_div(%a, %b) : (!cute.shape<"7">, !cute.shape<"3">) -> !cute.shape<"2">',
        "expected one of 7 and 3 to be a multiple of the other",
    ),
    (
        '%r = cute.ceil_div(%a, %b) : (!cute.shape<"(4,6)">, !cute.int_tuple<"(2,0)">) -> !cute.shape<"(2,1)">',
        "'cute.ceil_div' op division by zero",
    ),
    (
        '%p = cute.elem_less(%c, %s) : (!cute.coord<"(1,2)">, !cute.shape<"6">) -> i1',
        "expected congruent operands, got (1,2) and 6",
    ),
    (
        '%r = cute.logical_product(%a, %b) : (!cute.layout<"?:1">, !cute.layout<"2:1">) -> !cute.layout<"(?,2):(1,?)">',
        "expected a static layout to repeat, got ?:1",
    ),
    (
        '%r = cute.blocked_product(%a, %b) : (!cute.layout<"(8):(1)">, !cute.layout<"2:1">) -> !cute.layout<"8:1">',
        "expected two layouts of rank 1 to pair, got (8):(1) and 2:8",
    ),
    (
        '%r = cute.logical_divide(%l, %t) : (!cute.layout<"(6,10):(10,1)">, !cute.layout<"15:1">)'
        ' -> !cute.layout<"(15,4):(1,15)">',
        "expected an extent divisible by 6, got 15",
    ),
    (
        '%r = cute.zipped_divide(%l, %t) : (!cute.layout<"(12,10):(10,1)">, !cute.tile<"[4:1;_]">)'
        ' -> !cute.layout<"((4,10),3):((10,1),40)">',
        "expected mode 1 to divide into a tile and a rest, got 10:1",
    ),
    (
        '%r = cute.tile_to_shape(%b, %s, %o) : (!cute.layout<"(2,3):(3,1)">, !cute.shape<"(4,6)">,'
        ' !cute.int_tuple<"(0,0)">) -> !cute.layout<"(2,3):(3,1)">',
        "expected a permutation of 0 … 1 as the order, got (0,0)",
    ),
    # cute.static
    (
        '%s = cute.static : !cute.shape<"(6,?)">',
        """'cute.static' op result #0: expected a static type, got !cute.shape<"(6,?)">""",
    ),
    ("%s = cute.static : i32", "result #0: expected a cute value, got i32"),
    ('%s = cute.static : !cute.memref<f32, gmem, "8:1">', "expected a static type, got !cute.memref"),
    # Tuples built from scalars.
    ('%s = cute.make_shape(%m) : (i32) -> !cute.shape<"(?,?)">', "expected 2 operands, one per '?' of"),
    ('%s = cute.make_shape(%x) : (i64) -> !cute.shape<"?">', "operand #0: expected 32 bits for '?', got 64"),
    ('%c = cute.make_coord() : () -> !cute.coord<"(?,_)">', "expected 1 operand"),
    ('%s = cute.make_shape(%m) : (i32) -> !cute.stride<"?">', "result #0: expected !cute.shape, got !cute.stride"),
    (
        '%s = cute.make_shape(%m) : (!cute.int_tuple<"(?)">) -> !cute.shape<"?">',
        'operand #0: expected i32, i64 or a scalar !cute.int_tuple, got !cute.int_tuple<"(?)">',
    ),
    ('%s = cute.make_shape(%m) : (!cute.shape<"?">) -> !cute.shape<"?">', "operand #0: expected i32, i64 or"),
    ('%s = cute.make_shape(%m) : (i16) -> !cute.shape<"?{i16}">', "operand #0: expected i32, i64 or"),
    (
        '%s = cute.make_shape(%m) : (!cute.int_tuple<"4294967296">) -> !cute.shape<"?">',
        "operand #0: expected a value of 32 bits for '?', got 4294967296",
    ),
    (
        '%s = cute.make_shape(%m) : (i32) -> !cute.shape<"?{div=8}">',
        "operand #0: expected a known multiple of 8 for '?{div=8}', got a multiple of 1",
    ),
    (
        '%s = cute.make_shape(%m) : (!cute.i32<divby 4>) -> !cute.shape<"?{div=8}">',
        "expected a known multiple of 8 for '?{div=8}', got a multiple of 4",
    ),
    (
        '%s = cute.make_shape(%m) : (!cute.int_tuple<"12">) -> !cute.shape<"?{div=8}">',
        "expected a multiple of 8 for '?{div=8}', got 12",
    ),
    (
        '%s = cute.make_shape(%m) : (!cute.i64<divby 8>) -> !cute.shape<"?{div=8}">',
        "expected 32 bits for '?{div=8}', got 64",
    ),
]


@pytest.mark.parametrize(("line", "message"), WRONG)
def test_rejected(line: str, message: str) -> None:
    with pytest.raises((VerifyException, ParseError)) as error:
        verified(line)
    assert message in str(error.value)


def test_a_message_is_one_line_and_names_the_op_once() -> None:
    from ops_support import parse

    module = parse('%n = cute.size (%s) : (!cute.shape<"(6,5)">) -> !cute.int_tuple<"31">')
    (size,) = [op for op in module.walk() if op.name == "cute.size"]
    with pytest.raises(VerifyException) as error:
        size.verify_()
    assert str(error.value).count("cute.size") == 1
    assert "\n" not in str(error.value)


def test_accepted_constants_and_multiples() -> None:
    verified(
        '%s = cute.make_shape(%a, %b) : (!cute.int_tuple<"-5">, !cute.int_tuple<"16">) -> !cute.shape<"(?,?{div=8})">'
    )
    verified('%s = cute.make_shape(%a) : (!cute.int_tuple<"?{div=24}">) -> !cute.shape<"?{div=8}">')
    verified('%s = cute.make_shape(%a) : (!cute.i32<divby 16>) -> !cute.shape<"?">')
    verified('%s = cute.make_coord(%a) : (!cute.int_tuple<"9">) -> !cute.coord<"?{i8}">')
