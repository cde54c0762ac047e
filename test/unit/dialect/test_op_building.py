"""Ops built in Python: constant folding, purity, and type inference from values."""

from __future__ import annotations

import pytest
from ops_support import CONTEXT, parse, type_of, value_of
from xdsl.dialects import test
from xdsl.dialects.builtin import i1, i32, i64
from xdsl.folder import Folder
from xdsl.ir import Operation
from xdsl.traits import ConstantLike, MemoryEffectKind, has_effects

from cute_dialect.algebra.leaf import AlgebraError, Dyn
from cute_dialect.algebra.text import parse_coord, parse_layout, parse_shape, to_text
from cute_dialect.algebra.values import Basis
from cute_dialect.dialect.access import GetLeavesOp, GetOp, GetScalarsOp, GetShapeOp, SelectOp, scalar_payloads
from cute_dialect.dialect.algebra import CoalesceOp, ComplementOp, GroupModesOp, RecastLayoutOp, SliceOp
from cute_dialect.dialect.arith import CeilDivOp, ElemLessOp, EqualOp, ShapeDivOp
from cute_dialect.dialect.diag import PrintOp
from cute_dialect.dialect.make import MakeLayoutOp, MakeShapeOp, StaticOp
from cute_dialect.dialect.registry import core_ops
from cute_dialect.dialect.sizes import AppendToRankOp, LayoutEvalOp, SizeOp
from cute_dialect.dialect.tile import TileToShapeOp, ZippedDivideOp
from cute_dialect.dialect.typed_values import Typed, bind, dynamic_leaves
from cute_dialect.dialect.types import LayoutType, ShapeType
from cute_dialect.passes.fold_static import is_pure

DYNAMIC = "layout (?,?):(?,1)"

BUILT = [
    (
        lambda: ZippedDivideOp(value_of(DYNAMIC), value_of("shape (16,128)")),
        ["layout ((16,128),(?,?)):((?,1),(?,128))"],
    ),
    (lambda: SizeOp(value_of("shape (6,(2,5))"), mode=[1]), ["int_tuple 10"]),
    (lambda: SizeOp(value_of("shape (6,(2,5))")), ["int_tuple 60"]),
    (lambda: GetOp(value_of(DYNAMIC), [1]), ["layout ?:1"]),
    (lambda: SelectOp(value_of(DYNAMIC), mode=[1, 0]), ["layout (?,?):(1,?)"]),
    (lambda: GetScalarsOp(value_of("layout (?{i64},6):(6,?)"), only_dynamic=True), ["i64", "i32"]),
    (lambda: GetLeavesOp(value_of("shape (6,?)")), ["shape 6", "shape ?"]),
    (lambda: GetShapeOp(value_of(DYNAMIC)), ["shape (?,?)"]),
    (lambda: CoalesceOp(value_of("layout (2,6):(1,2)")), ["layout 12:1"]),
    (lambda: CoalesceOp(value_of("layout (2,6):(1,2)"), profile=value_of("coord (1,1)")), ["layout (2,6):(1,2)"]),
    (lambda: ComplementOp(value_of("layout 5:2"), cotarget=value_of("shape 30")), ["layout (2,3):(1,10)"]),
    (lambda: GroupModesOp(value_of("layout (2,3):(1,2)"), begin=0, end=2), ["layout ((2,3)):((1,2))"]),
    (lambda: RecastLayoutOp(value_of("layout 8:1"), new_type_bits=16, old_type_bits=8), ["layout 4:1"]),
    (lambda: AppendToRankOp(value_of("layout 8:1"), value_of("layout 1:0"), rank=2), ["layout (8,1):(1,0)"]),
    (lambda: TileToShapeOp(value_of("layout 4:1"), value_of("shape 8")), ["layout ((4,(2))):((1,(4)))"]),
    (lambda: MakeLayoutOp(value_of("shape (?,6)"), value_of("stride (6,1)")), ["layout (?,6):(6,1)"]),
    (lambda: ElemLessOp(value_of("coord (1,2)"), value_of("shape (2,3)")), ["i1"]),
    (lambda: StaticOp(type_of("shape 6")), ["shape 6"]),
    (lambda: PrintOp(value_of("shape 6")), []),
]


@pytest.mark.parametrize(("build", "results"), BUILT)
def test_built_op_infers_its_results_and_verifies(build, results: list[str]) -> None:
    op = build()
    assert list(op.result_types) == [type_of(r) for r in results]
    op.verify()


def test_build_from_ops_and_with_weaker_result() -> None:
    source = test.TestOp(result_types=[i32])
    shape = MakeShapeOp([source], ShapeType(parse_shape("(?,8)")))
    shape.verify()
    stride = StaticOp(type_of("stride (8,1)"))
    layout = MakeLayoutOp(shape=shape, stride=stride)
    assert layout.result.type == LayoutType(parse_layout("(?,8):(8,1)"))
    with pytest.raises(AlgebraError, match="operand #0: expected !cute"):
        MakeLayoutOp(stride, stride)


def test_accessors_of_operands_and_properties() -> None:
    op = ZippedDivideOp(input=value_of(DYNAMIC), tiler=value_of("shape (16,128)"))
    assert op.input.type == type_of(DYNAMIC) and op.tiler.type == type_of("shape (16,128)")
    assert CoalesceOp(value_of("layout 8:1")).profile is None
    assert SizeOp(value_of("shape 6")).mode is None
    assert AppendToRankOp(value_of("shape 6"), value_of("shape 1"), 3).rank.value.data == 3


# -------------------------------------------------------------------------------------------------- folding, purity


def test_static_folds_to_its_attribute_and_back() -> None:
    op = StaticOp(type_of("layout (6,5):(5,1)"))
    assert op.has_trait(ConstantLike)
    assert ConstantLike.get_constant_value(op.result) == type_of("layout (6,5):(5,1)").value_attr()  # pyright: ignore
    results, new_ops = Folder(CONTEXT).try_fold(op) or ([], [])
    assert [r.type for r in results] == [op.result.type] and [type(o) for o in new_ops] == [StaticOp]


PURE = [
    ('%r = cute.shape_div(%a, %b) : (!cute.shape<"(?,6)">, !cute.shape<"4">) -> !cute.shape<"(?,?)">', True),
    ('%r = cute.shape_div(%a, %b) : (!cute.shape<"(?,6)">, !cute.shape<"(4,3)">) -> !cute.shape<"(?,2)">', True),
    ('%r = cute.shape_div(%a, %b) : (!cute.shape<"8">, !cute.shape<"?">) -> !cute.shape<"?">', False),
    ('%r = cute.ceil_div(%a, %b) : (!cute.shape<"8">, !cute.int_tuple<"3">) -> !cute.shape<"3">', True),
    ('%r = cute.ceil_div(%a, %b) : (!cute.shape<"8">, !cute.int_tuple<"?">) -> !cute.shape<"?">', False),
    ('%r = cute.ceil_div(%a, %b) : (!cute.shape<"(8)">, !cute.tile<"[2:1]">) -> !cute.shape<"(4)">', False),
    ('cute.print(%a) : !cute.shape<"8">', False),
    ('%s = cute.static : !cute.shape<"8">', True),
    ('%s = cute.make_shape(%m) : (i32) -> !cute.shape<"?">', True),
    ("%r = arith.addi %a, %b : i32", True),
    ("%r = arith.divsi %a, %b : i32", False),
    ("func.return", False),
    ('%r = "test.pureop"() : () -> i32', True),
    ('%r = "test.op"() : () -> i32', False),
]


@pytest.mark.parametrize(("line", "pure"), PURE)
def test_purity(line: str, pure: bool) -> None:
    op: Operation = [o for o in parse(line).walk() if o.name.split(".")[0] != "builtin"][-1]
    assert is_pure(op) == pure


def test_only_the_divisions_and_print_are_not_pure_by_trait() -> None:
    from xdsl.traits import NoMemoryEffect, Pure

    impure = {op.name for op in core_ops() if not op.has_trait(Pure)}
    assert impure == {"cute.shape_div", "cute.ceil_div", "cute.print"}
    assert ShapeDivOp.has_trait(NoMemoryEffect) and CeilDivOp.has_trait(NoMemoryEffect)
    assert has_effects(PrintOp(value_of("shape 6")), MemoryEffectKind.WRITE)


# ------------------------------------------------------------------------------------------- inference over values


class Recorder:
    """An emitter that represents each value by its expression as text."""

    def binary(self, op: str, a: object, b: object, width: int) -> object:
        return f"{op}({_value(a)},{_value(b)}):i{width}"

    def unary(self, op: str, a: object, width: int) -> object:
        return f"{op}({_value(a)}):i{width}"

    def compare(self, predicate: str, a: object, b: object, width: int) -> object:
        return f"{predicate}({_value(a)},{_value(b)})"

    def select(self, condition: object, a: object, b: object, width: int) -> object:
        return f"select({condition},{_value(a)},{_value(b)})"

    def same(self, a: object, b: object) -> bool:
        return a == b


def _value(leaf: object) -> object:
    return leaf.value if isinstance(leaf, Dyn) else leaf


def bound(kind: str, payload: object, *names: str) -> Typed:
    leaves = dynamic_leaves(payload)
    assert len(leaves) == len(names)
    return Typed(kind, bind(payload, [Dyn(d.width, d.div, n, Recorder()) for d, n in zip(leaves, names)]))


def test_inference_over_values_emits_the_arithmetic() -> None:
    coord = bound("coord", parse_coord("(?,3)"), "c")
    layout = bound("layout", parse_layout("(?,8):(8,1)"), "m")
    ((kind, index),) = LayoutEvalOp.infer([coord, layout], {})
    assert kind == "int_tuple" and _value(index) == "add(mul(c,8):i32,3):i32"


def test_inference_over_values_keeps_bound_leaves() -> None:
    layout = bound("layout", parse_layout("((16,128),(?,?{i64})):((?,1),(?,128))"), "a", "b", "c", "d")
    ((kind, part),) = SliceOp.infer([layout, bound("coord", parse_coord("((_,_),?)"), "x")], {})
    assert (kind, to_text(part)) == ("layout", "(16,128):(?,1)")
    assert [d.value for d in dynamic_leaves(part)] == ["c"]


def test_conditions() -> None:
    def less(a: Typed, b: Typed) -> object:
        return ElemLessOp.infer_condition([a, b])

    assert less(Typed("coord", (1, 2)), Typed("shape", (2, 3))) is True
    assert less(Typed("coord", (1, 3)), Typed("shape", (2, 3))) is False
    assert less(Typed("coord", ()), Typed("shape", ())) is True
    test = less(bound("coord", parse_coord("(?,2)"), "c"), Typed("shape", (2, 3)))
    assert isinstance(test, Dyn) and test.width == 1 and test.value == "slt(c,2)"
    equal = EqualOp.infer_condition([bound("shape", parse_shape("(?,2)"), "c"), Typed("shape", (4, 2))])
    assert isinstance(equal, Dyn) and equal.value == "eq(c,4)"
    assert EqualOp.infer_condition([Typed("shape", (4, 2)), Typed("shape", (4, (2,)))]) is False
    assert EqualOp.infer_condition([Typed("shape", (4, 2)), Typed("shape", (4, 2))]) is True


def test_scalars_in_order() -> None:
    payload = type_of("composed_layout (4,?{i64}):(1,4) o 5 o (2,?):(1,?)").data  # pyright: ignore
    every = scalar_payloads(payload)
    assert [s if isinstance(s, int) else str(s) for s in every] == [2, "?", 1, "?", 5, 4, "?{i64}", 1, 4]
    assert [str(s) for s in scalar_payloads(payload, only_dynamic=True)] == ["?", "?", "?{i64}"]
    assert [str(s) for s in dynamic_leaves(payload)] == ["?", "?", "?{i64}"]
    assert scalar_payloads((Basis(1, (0,)), Basis(3, (0, 2)))) == [1, 0, 3, 0, 2]
    assert scalar_payloads(type_of("swizzle S<2,3,4>").data) == [2, 3, 4]  # pyright: ignore
    assert GetScalarsOp(value_of("shape (1,4294967296)")).result_types == (i32, i64)
    assert i1 not in (i32, i64)
