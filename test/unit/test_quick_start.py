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


def test_no_signature_is_made_for_a_docstring() -> None:
    with quick_start.methods_made_later():
        base, _ = make()
    assert base.__doc__ == "Base(…)"
    base, _ = make()
    assert base.__doc__ is not None and base.__doc__.startswith("Base(x:")


def test_example() -> None:
    assert doctest.testmod(quick_start).failed == 0
