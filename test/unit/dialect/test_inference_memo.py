"""Memoized result types equal the inferred ones for every op, and errors are not memoized."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
from xdsl.dialects.builtin import FileLineColLoc, IntAttr, StringAttr
from xdsl.dialects.test import TestOp as AnyOp
from xdsl.ir import Attribute
from xdsl.parser import Parser

from cute_dialect.algebra.leaf import AlgebraError
from cute_dialect.dialect.inference import infer_types_memo, make_inferred
from cute_dialect.dialect.typed_values import type_weaker_or_equal
from cute_dialect.ir.context import make_context
from cute_dialect.ir.diagnostics import DiagnosticEngine, Source
from cute_dialect.ir.parsing import parse_module

EXAMPLES = Path(__file__).parents[2] / "examples"
CONTEXT = make_context("all")


def attribute(text: str) -> Attribute:
    return Parser(CONTEXT, text).parse_attribute()


def infer(name: str, operands: str, **properties: str) -> list[str]:
    """Infer the result types of an op as text. Operand types are separated by ``;``."""
    op_class = CONTEXT.get_optional_op(name)
    assert op_class is not None
    types = [attribute(t) for t in operands.split(";") if t]
    return [str(t) for t in infer_types_memo(op_class, types, {k: attribute(v) for k, v in properties.items()})]


@pytest.mark.parametrize(
    ("file", "least"), [("gemm_sm90.mlir", 150), ("gemm_sm80.mlir", 50), ("layouts.mlir", 7), ("row_sum.mlir", 50)]
)
def test_ops_of_a_file(file: str, least: int) -> None:
    engine = DiagnosticEngine()
    module = parse_module(make_context("all"), Source(file, (EXAMPLES / file).read_text()), engine)
    assert module is not None
    inferred = 0
    for op in module.walk():
        if op.regions or not op.results:
            continue
        try:
            found = infer_types_memo(type(op), op.operand_types, op.properties)
        except TypeError as e:
            assert "needs result" in str(e)
            continue
        assert len(found) == len(op.results)
        for got, want in zip(found, op.result_types):
            assert type_weaker_or_equal(want, got), f"{op}: {got}"
        inferred += 1
    assert inferred >= least


def test_inference_for_each_class_of_op() -> None:
    assert infer("cute.slice", '!cute.layout<"((4,8),?):((1,4),32)">;!cute.coord<"(_,3)">') == [
        '!cute.layout<"((4,8)):((1,4))">'
    ]
    assert infer("arith.addi", "i32;i32") == ["i32"]
    assert infer("arith.addi", "vector<4xi8>;vector<4xi8>") == ["vector<4xi8>"]
    assert infer("arith.cmpi", "i32;i32", predicate="1 : i64") == ["i1"]
    assert infer("arith.cmpf", "vector<2xf32>;vector<2xf32>", predicate="1 : i64") == ["vector<2xi1>"]
    assert infer("arith.constant", "", value="7 : i16") == ["i16"]
    assert infer("arith.select", "i1;f32;f32") == ["f32"]
    assert infer("math.exp", "f32") == ["f32"]
    assert infer("cf.assert", "i1", msg='"x"') == []


def test_ops_with_undetermined_results_need_result_types() -> None:
    for name, operands in (("arith.extsi", "i32"), ("scf.if", "i1"), ("nvvm.read.ptx.sreg.tid.x", "")):
        with pytest.raises(TypeError, match=f"'{name}' needs result.types: "):
            infer(name, operands)


def test_errors_are_not_memoized() -> None:
    for _ in range(2):
        with pytest.raises(AlgebraError, match=r"'arith.addi' op operand 'rhs': .*i32.*i64"):
            infer("arith.addi", "i32;i64")
        with pytest.raises(AlgebraError, match=r"'arith.addi' op expected 2 operands, got 1"):
            infer("arith.addi", "i32")
        with pytest.raises(
            AlgebraError, match=r"'arith.divsi' op expected one type for lhs, rhs, result, got i32, i64"
        ):
            infer("arith.divsi", "i32;i64")
        with pytest.raises(AlgebraError, match=r"'arith.divsi' expects 2 operands, got 1"):
            infer("arith.divsi", "i32")
        with pytest.raises(AlgebraError, match=r"operand #0: expected .*, got i32"):
            infer("cute.slice", "i32;i32")


def test_properties_are_part_of_the_memo_key() -> None:
    """``get<[0]>`` and ``get<[1]>`` of one layout have different memo entries, as do types of other divisibility."""
    layout = '!cute.layout<"((4,8),?):((1,4),32)">'
    assert infer("cute.get", layout, mode="array<i32: 0>") != infer("cute.get", layout, mode="array<i32: 1>")
    plain = infer("cute.size", '!cute.shape<"(?,8)">')
    known = infer("cute.size", '!cute.shape<"(?{div=4},8)">')
    assert plain == ['!cute.int_tuple<"?">'] and known == ['!cute.int_tuple<"?{div=32}">']


class Counting(AnyOp):
    """An op that counts the calls of its type inference."""

    asked = 0

    @classmethod
    def infer_types(cls, operand_types: Sequence[Attribute], properties: Mapping[str, Attribute]) -> list[Attribute]:
        cls.asked += 1
        return list(operand_types)


def test_equal_types_are_inferred_once() -> None:
    """Types that are equal but not identical share a memo entry."""
    first, again = ([attribute('!cute.layout<"(97,?):(1,98)">')] for _ in range(2))
    assert first[0] is not again[0]
    assert infer_types_memo(Counting, first) is infer_types_memo(Counting, again)
    assert Counting.asked == 1


def test_made_with_a_location() -> None:
    where = FileLineColLoc(StringAttr("x.py"), IntAttr(3), IntAttr(5))
    left, right = AnyOp.create(result_types=[attribute("i32")] * 2).results
    op_class = CONTEXT.get_optional_op("arith.addi")
    assert op_class is not None
    op = make_inferred(op_class, (left, right), location=where)
    op.verify()
    assert op.location is where and op.results[0].type == attribute("i32")
