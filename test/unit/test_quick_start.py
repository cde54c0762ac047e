"""Data classes whose methods are compiled at their first call behave as others do."""

from __future__ import annotations

import dataclasses
import doctest

import pytest

from cute_dialect.tools import quick_start


def make() -> tuple[type, type]:
    @dataclasses.dataclass(frozen=True, order=True)
    class Base:
        x: int
        names: list[str] = dataclasses.field(default_factory=list[str], compare=False)

    @dataclasses.dataclass(frozen=True)
    class Derived(Base):
        y: float = 0.5

        def __post_init__(self) -> None:
            if self.y < 0:
                raise ValueError("y")

    return Base, Derived


def test_same_behaviour() -> None:
    with quick_start.methods_made_later():
        later = make()
    for (base, derived), label in ((later, "later"), (make(), "at once")):
        one, two = derived(3), derived(3, ["a"], y=0.5)
        assert one == two and hash(one) == hash(two), label
        assert one.names == [] and one.names is not derived(3).names
        assert repr(two).endswith("Derived(x=3, names=['a'], y=0.5)")
        assert base(1) < base(2) and base(1) != one
        with pytest.raises(dataclasses.FrozenInstanceError):
            one.x = 4
        with pytest.raises(dataclasses.FrozenInstanceError):
            del one.x
        with pytest.raises(ValueError, match="y"):
            derived(1, y=-1.0)
        with pytest.raises(TypeError):
            derived()
        assert dataclasses.replace(one, x=9).x == 9
        assert dataclasses.astuple(one) == (3, [], 0.5)


def test_methods_take_their_own_place() -> None:
    with quick_start.methods_made_later():
        base, derived = make()
    stub = base.__dict__["__lt__"]
    assert base(1) < base(2)
    assert base.__dict__["__lt__"] is not stub
    assert base.__dict__["__lt__"].__qualname__.endswith("Base.__lt__")
    assert derived(1) < derived(2)


def test_dataclasses_is_as_before_afterwards() -> None:
    before = vars(dataclasses).copy()
    with pytest.raises(RuntimeError), quick_start.methods_made_later():
        raise RuntimeError
    assert vars(dataclasses) == before


def test_formats_are_read_at_the_first_use() -> None:
    from xdsl.context import Context
    from xdsl.dialects.test import Test
    from xdsl.irdl import AnyAttr, IRDLOperation, irdl_op_definition, operand_def
    from xdsl.parser import Parser
    from xdsl.utils.exceptions import ParseError

    with quick_start.formats_read_later():

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


def test_example() -> None:
    assert doctest.testmod(quick_start).failed == 0
