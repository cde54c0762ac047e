"""Data classes whose methods are compiled at their first call behave as others do."""

from __future__ import annotations

import dataclasses
import doctest
import inspect

import pytest

from cute_dialect.tools import quick_methods, quick_start
from cute_dialect.tools.quick_methods import Unfit, interpreted


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
    stub, compared = base.__dict__["__lt__"], derived.__dict__["__eq__"]
    assert base(1) < base(2)
    assert base.__dict__["__lt__"] is not stub
    for _ in range(8):
        assert derived.__dict__["__eq__"] is compared
        assert derived(1) == derived(1)
    assert derived(1) == derived(1) and derived.__dict__["__eq__"] is not compared
    assert base.__dict__["__lt__"].__qualname__.endswith("Base.__lt__")
    assert derived(1) < derived(2)


def test_calls_that_do_not_fit() -> None:
    """What is wrong with the arguments is told as ever, by the method, which then takes its place."""
    with quick_start.methods_made_later():
        base, _ = make()
    compiled, _ = make()
    for wrong in ((), (1, [0], 3)):
        with pytest.raises(TypeError) as told:
            base(*wrong)
        with pytest.raises(TypeError) as expected:
            compiled(*wrong)
        assert str(told.value) == str(expected.value)
    with pytest.raises(TypeError, match="y"):
        base(1, y=2)
    assert base(3, names=["a"]).names == ["a"]


def test_what_is_interpreted() -> None:
    """From the text of the methods, for what there is in it; the rest is left to be compiled."""
    made: dict[str, object] = {"_HAS_DEFAULT_FACTORY": None, "_dflt_b": None, "_dflt_c": list}
    init = interpreted(
        "__init__",
        ["self", "a:_type_a", "b:_type_b=_dflt_b"],
        ["self.a=a", "__dataclass_builtins_object__.__setattr__(self,'b',b)", "self.c=_dflt_c()"],
        made,
    )
    assert init is not None

    class Thing: ...

    thing = Thing()
    init(thing, 1)
    assert vars(thing) == {"a": 1, "b": None, "c": []}
    init(thing, b=2, a=3)
    assert vars(thing) == {"a": 3, "b": 2, "c": []}
    for given, named in (((), {}), ((1, 2, 3), {}), ((1,), {"a": 2}), ((1,), {"x": 2})):
        with pytest.raises(Unfit):
            init(thing, *given, **named)
    assert vars(thing) == {"a": 3, "b": 2, "c": []}
    for args, body in (
        (["this", "a:_type_a"], ["this.a=a"]),
        (["self", "*", "a:_type_a"], ["self.a=a"]),
        (["self", "a:_type_a"], ["self.a=other"]),
        (["self", "a:_type_a"], ["self.__post_init__(a)"]),
        (["self", "a:_type_a"], ["self.__post_init__()", "self.a=a"]),
    ):
        assert interpreted("__init__", args, body, made) is None
    assert interpreted("__hash__", ["self"], ["return hash((self.a,)) + 1"], {}) is None
    same = ["if other.__class__ is self.__class__:", " return (self.a,)==(other.b,)", "return NotImplemented"]
    assert interpreted("__eq__", ["self", "other"], same, {}) is None
    assert interpreted("__repr__", ["self"], ["return ''"], {}) is None


def test_dataclasses_is_as_before_afterwards() -> None:
    before = vars(dataclasses).copy()
    with pytest.raises(RuntimeError), quick_start.methods_made_later():
        raise RuntimeError
    assert vars(dataclasses) == before


def test_no_signature_is_made_for_a_docstring() -> None:
    with quick_start.methods_made_later():
        base, _ = make()
        assert dataclasses.inspect.get_annotations is inspect.get_annotations  # pyright: ignore  (3.12 asks for it)
    assert base.__doc__ == "Base(…)"
    base, _ = make()
    assert base.__doc__ is not None and base.__doc__.startswith("Base(x:")


def test_example() -> None:
    assert doctest.testmod(quick_start).failed == 0
    assert doctest.testmod(quick_methods).failed == 0
