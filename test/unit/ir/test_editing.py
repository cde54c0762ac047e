"""Ops built field by field equal the ops that xDSL builds."""

from __future__ import annotations

from xdsl.dialects.arith import AddiOp
from xdsl.dialects.builtin import UNKNOWN_LOC, FileLineColLoc, IntAttr, StringAttr, UnitAttr, i32
from xdsl.dialects.test import TestOp as AnyOp
from xdsl.ir import Block, Operation, Region, SSAValue

from cute_dialect.ir.editing import all_ops, make_op
from cute_dialect.ir.xdsl_compat import append_op, insert_op
from cute_dialect.upstream import llvm


def values(n: int) -> list[SSAValue]:
    return list(AnyOp.create(result_types=[i32] * n).results)


def fields(op: Operation) -> dict[str, object]:
    """Return all fields of an op, with values represented by their types and uses by their operand index."""
    return {
        "operands": [(o.type, [(u.operation is op, u.index) for u in o.uses]) for o in op.operands],
        "results": [(r.type, r.index, r.op is op, r.name_hint, list(r.uses)) for r in op.results],
        "properties": op.properties,
        "attributes": op.attributes,
        "successors": list(op.successors),
        "successor uses": list(op.successor_uses),
        "regions": op.regions,
        "location": op.location,
        "around": (op.parent, op.next_op, op.prev_op),
    }


def test_make_op_matches_create() -> None:
    given = {"overflowFlags": AddiOp.create(operands=values(2), result_types=[i32]).properties["overflowFlags"]}
    for cls, count, properties in ((AddiOp, 2, given), (AddiOp, 2, {}), (llvm.PoisonOp, 0, {}), (AnyOp, 3, {})):
        mine = make_op(cls, values(count), [i32], properties)
        theirs = cls.create(operands=values(count), result_types=[i32], properties=properties)
        assert fields(mine) == fields(theirs)
        assert vars(mine).keys() <= vars(theirs).keys()
        mine.verify()


def test_one_value_twice() -> None:
    (value,) = values(1)
    first, second = make_op(AddiOp, [value, value], [i32]), make_op(AddiOp, [value, value], [i32])
    assert [(u.operation, u.index) for u in value.uses] == [(second, 1), (second, 0), (first, 1), (first, 0)]
    (other,) = values(1)
    first.operands[1] = other
    assert [(u.operation, u.index) for u in value.uses] == [(second, 1), (second, 0), (first, 0)]
    value.replace_all_uses_with(other)
    assert value.first_use is None
    assert other.uses.get_length() == 4


def test_new_ops_copy_their_properties() -> None:
    properties = {"x": UnitAttr()}
    op = make_op(AnyOp, properties=properties)
    op.properties["y"] = UnitAttr()
    op.attributes["z"] = UnitAttr()
    assert list(properties) == ["x"]
    assert make_op(AnyOp).attributes == {}


def test_location() -> None:
    at = FileLineColLoc(StringAttr("f"), IntAttr(1), IntAttr(2))
    assert make_op(AnyOp, location=at).location is at
    assert make_op(AnyOp).location is UNKNOWN_LOC


def test_append() -> None:
    mine, theirs = Block(), Block()
    made = [make_op(AnyOp) for _ in range(3)]
    for op in made:
        append_op(mine, op)
        theirs.add_op(AnyOp.create())
    assert list(mine.ops) == made
    assert list(reversed(mine.ops)) == made[::-1]
    assert [op.parent for op in made] == [mine] * 3
    assert (mine.first_op, mine.last_op) == (made[0], made[2])
    mine.erase_op(made[1])
    assert list(mine.ops) == [made[0], made[2]]


def test_insert() -> None:
    block = Block([AnyOp.create() for _ in range(2)])
    first, second = block.ops
    middle, front = make_op(AnyOp), make_op(AnyOp)
    insert_op(middle, second)
    insert_op(front, first)
    assert list(block.ops) == [front, first, middle, second]
    assert list(reversed(block.ops)) == [second, middle, first, front]
    assert block.first_op is front and front.parent is middle.parent is block


def test_all_ops_matches_walk() -> None:
    def nest(depth: int) -> Operation:
        blocks = [Block([AnyOp.create(), nest(depth - 1), AnyOp.create()]) for _ in range(2)] if depth else []
        return AnyOp.create(regions=[Region(blocks), Region()])

    op = nest(3)
    assert all_ops(op) == list(op.walk())
    assert len(all_ops(op)) == 43
