"""Ops, attributes and formats that are defined at their first use are as if they had been defined at once."""

from __future__ import annotations

import subprocess
import sys
from abc import ABCMeta
from collections.abc import Iterator

import pytest
from xdsl.dialects.builtin import StringAttr, i32
from xdsl.ir import Attribute, Operation, ParametrizedAttribute
from xdsl.irdl import (
    AnyAttr,
    IRDLOperation,
    irdl_attr_definition,
    irdl_op_definition,
    operand_def,
    prop_def,
    result_def,
    traits_def,
)
from xdsl.traits import IsTerminator, Pure
from xdsl.utils.exceptions import PyRDLAttrDefinitionError, PyRDLOpDefinitionError, VerifyException

from cute_dialect.tools import quick_definitions

FINGERPRINTS = """
import re, sys
from contextlib import nullcontext

from cute_dialect.tools.quick_definitions import definitions_made_later

with definitions_made_later() if sys.argv[1] == "later" else nullcontext():
    from cute_dialect.context import make_context

    context = make_context()
    for name in list(context._registered_dialects):
        context.load_registered_dialect(name)
    ops = sorted(context.loaded_ops, key=lambda op: op.name)
    attributes = sorted({*context.loaded_attrs, *context.loaded_types}, key=lambda a: a.name)

    def clean(value):
        return re.sub(" at 0x[0-9a-f]+", "", repr(value))

    for op in ops:
        traits = sorted(type(t).__name__ for t in op.traits.traits)
        print("op", op.name, traits, hasattr(op, "parse"), getattr(op, "assembly_format", None))
        find = getattr(op, "get_irdl_definition", None)
        if find is not None:
            definition = find()
            for part in ("operands", "results", "regions", "successors", "properties", "attributes", "options"):
                print(" ", part, clean(getattr(definition, part)))
        for cls in op.__mro__[:-1]:
            # what a definition sets; functions by where they come from
            for name, value in sorted(cls.__dict__.items()):
                if not name.startswith("__") and name != "_abc_impl":
                    where = getattr(value, "__qualname__", None) or clean(value)
                    print("   ", cls.__name__, name, where)
        if hasattr(op, "OPERAND_KINDS"):
            print("  ", op.OPERAND_KINDS, op.RESULT_KINDS, op.MIN_OPERANDS, op.MAX_OPERANDS)
    for a in attributes:
        definition = a.get_irdl_definition() if hasattr(a, "get_irdl_definition") else None
        print("attribute", a.name, clean((definition.name, definition.parameters)) if definition else "")
"""


def fingerprints(when: str) -> list[str]:
    done = subprocess.run([sys.executable, "-c", FINGERPRINTS, when], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_every_op_and_attribute() -> None:
    """All that the tools register, definition, traits and class variables: equal to what is defined at once."""
    later, at_once = fingerprints("later"), fingerprints("at once")
    for line, expected in zip(later, at_once):
        assert line == expected
    assert len(later) == len(at_once)
    assert sum(line.startswith("op ") for line in later) > 800
    assert sum(line.startswith("attribute ") for line in later) > 200


@pytest.fixture
def take() -> type[IRDLOperation]:
    """An op that is not defined yet."""
    with quick_definitions.ops_defined_later():
        from xdsl.irdl import irdl_op_definition as define

        @define
        class Take(IRDLOperation):
            name = "test.take"
            value = operand_def(AnyAttr())
            out = result_def(AnyAttr())
            word = prop_def(StringAttr)
            traits = traits_def(Pure())
            assembly_format = "$value $word attr-dict `:` type($value) `->` type($out)"

            def verify_(self) -> None:
                if self.word.data == "bad":
                    raise VerifyException("bad word")

    return Take


def is_defined(op: type[IRDLOperation]) -> bool:
    return "Accessor" in type(op.__dict__["value"]).__name__


def test_defined_when_made(take: type[IRDLOperation]) -> None:
    from xdsl.dialects.test import TestOp

    assert not is_defined(take)
    (value,) = TestOp(result_types=[i32]).results
    op = take.create(operands=[value], result_types=[i32], properties={"word": StringAttr("good")})
    assert is_defined(take)
    assert op.value is value and op.out is op.results[0] and op.word == StringAttr("good")  # pyright: ignore
    op.verify()
    bad = take.build(operands=[value], result_types=[i32], properties={"word": StringAttr("bad")})
    with pytest.raises(VerifyException, match="bad word"):
        bad.verify()
    assert op.clone().value is value  # pyright: ignore


def test_defined_when_asked(take: type[IRDLOperation]) -> None:
    assert take.has_trait(Pure) and not take.has_trait(IsTerminator)
    assert is_defined(take)


def test_defined_when_its_definition_is_asked_for(take: type[IRDLOperation]) -> None:
    assert [name for name, _ in take.get_irdl_definition().operands] == ["value"]
    assert is_defined(take)


def test_defined_when_parsed(take: type[IRDLOperation]) -> None:
    from xdsl.context import Context
    from xdsl.dialects.test import Test
    from xdsl.parser import Parser

    context = Context()
    context.load_dialect(Test)
    context.load_op(take)
    assert not is_defined(take)
    module = Parser(context, '%a = "test.op"() : () -> i32\n%b = test.take %a "w" : i32 -> i32').parse_module()
    assert is_defined(take)
    assert '%b = test.take %a "w" : i32 -> i32' in str(module)


def test_what_is_assigned_after_the_decorator_holds(take: type[IRDLOperation]) -> None:
    def verify(self: IRDLOperation) -> None:
        raise VerifyException("mine")

    take.verify_ = verify
    take.extra = 3  # pyright: ignore
    assert take.has_trait(Pure)
    assert take.verify_ is verify and take.extra == 3  # pyright: ignore


def test_a_base_is_defined_first() -> None:
    with quick_definitions.ops_defined_later():
        from xdsl.irdl import irdl_op_definition as define

        @define
        class Base(IRDLOperation):
            name = "test.base"
            value = operand_def(AnyAttr())

        @define
        class Derived(Base):
            name = "test.derived"

    with pytest.raises(PyRDLOpDefinitionError, match="value"):  # as at once: a field of Base is an accessor by now
        Derived.get_irdl_definition()
    assert is_defined(Base)


def test_wrong_definitions_are_told_at_the_first_use() -> None:
    with quick_definitions.definitions_made_later():
        from xdsl.irdl import irdl_op_definition as define

        @define
        class Wrong(IRDLOperation):
            name = "test.wrong"
            value = 5

        @irdl_attr_definition
        class WrongAttr(ParametrizedAttribute):
            name = "test.wrong_attr"
            value: int  # pyright: ignore

    with pytest.raises(PyRDLOpDefinitionError, match="value"):
        Wrong.get_irdl_definition()
    with pytest.raises(PyRDLAttrDefinitionError, match="value"):
        WrongAttr(i32)  # pyright: ignore
    with pytest.raises(PyRDLOpDefinitionError, match="value"):  # and as ever afterwards: when the op is defined

        @irdl_op_definition
        class AtOnce(IRDLOperation):  # pyright: ignore[reportUnusedClass]
            name = "test.wrong"
            value = 5


def subclasses(cls: type) -> Iterator[type]:
    for found in type.__subclasses__(cls):
        yield found
        yield from subclasses(found)


def test_no_virtual_subclasses() -> None:
    """What the short way to answer ``isinstance`` supposes of xDSL's classes and ours."""
    from _abc import _get_dump  # pyright: ignore

    with quick_definitions.no_virtual_subclasses():
        assert isinstance(i32, Attribute) and not isinstance(i32, Operation)
        roots = [c for c in (Attribute, Operation) if c.__subclasses__() == []]
    assert roots == [Attribute, Operation]
    assert Attribute.__subclasses__() and Operation.__subclasses__()
    from xdsl.ir import IRWithUses
    from xdsl.irdl import AttrConstraint, RangeConstraint

    for root in (Attribute, Operation, IRWithUses, AttrConstraint, RangeConstraint):
        for cls in (root, *subclasses(root)):
            if isinstance(cls, ABCMeta):
                assert not _get_dump(cls)[0], f"{cls} has registered subclasses"
            assert "__subclasshook__" not in cls.__dict__, cls


def test_formats_are_read_at_the_first_use() -> None:
    from xdsl.context import Context
    from xdsl.dialects.test import Test
    from xdsl.irdl import AnyAttr, IRDLOperation, irdl_op_definition, operand_def
    from xdsl.parser import Parser
    from xdsl.utils.exceptions import ParseError

    with quick_definitions.formats_read_later():

        @irdl_op_definition
        class Take(IRDLOperation):
            name = "test.take"
            value = operand_def(AnyAttr())
            assembly_format = "`<` $value `:` type($value) `>` attr-dict"

        @irdl_op_definition
        class Wrong(IRDLOperation):
            name = "test.wrong"
            assembly_format = "$nothing"

    context = Context()
    context.load_dialect(Test)
    context.load_op(Take)
    context.load_op(Wrong)
    text = '%a = "test.op"() : () -> i32\ntest.take<%a : i32>'
    module = Parser(context, text).parse_module()
    assert "test.take<%a : i32>" in str(module)
    with pytest.raises(ParseError, match="nothing"):
        Parser(context, "test.wrong").parse_module()
    with pytest.raises(Exception, match="nothing"):  # and as ever afterwards: when the op is defined

        @irdl_op_definition
        class AtOnce(IRDLOperation):  # pyright: ignore[reportUnusedClass]
            name = "test.wrong"
            assembly_format = "$nothing"
