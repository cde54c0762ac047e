"""Exact arithmetic of the evaluator on boundary values."""

from __future__ import annotations

import pytest

from cute_dialect.interp.validation.evaluator import POISON, TESTS, Undefined, step, wrap

LOW, HIGH = -(1 << 31), (1 << 31) - 1


@pytest.mark.parametrize(
    ("name", "a", "b", "expected"),
    [
        ("addi", HIGH, 1, LOW),
        ("subi", LOW, 1, HIGH),
        ("muli", 65536, 65536, 0),
        ("divsi", -7, 2, -3),
        ("remsi", -7, 2, -1),
        ("divsi", 7, -2, -3),
        ("remsi", 7, -2, 1),
        ("ceildivsi", 7, 2, 4),
        ("ceildivsi", -7, 2, -3),
        ("ceildivsi", 7, -2, -3),
        ("floordivsi", -7, 2, -4),
        ("divui", -1, 2, HIGH),
        ("remui", -1, 10, 5),
        ("minsi", -1, 1, -1),
        ("minui", -1, 1, 1),
        ("maxui", -1, 1, -1),
        ("andi", -1, 12, 12),
        ("xori", -1, 12, -13),
        ("shli", 1, 31, LOW),
        ("shrui", -1, 28, 15),
        ("shrsi", -16, 2, -4),
        ("shli", 1, 32, POISON),
        ("shrui", 1, -1, POISON),
    ],
)
def test_step(name: str, a: int, b: int, expected: object):
    assert step(name, a, b, 32) == expected


@pytest.mark.parametrize(("name", "a", "b"), [("addi", HIGH, 1), ("subi", LOW, 1), ("muli", 65536, 65536)])
def test_signed_overflow_is_poison_only_with_nsw(name: str, a: int, b: int):
    assert step(name, a, b, 32, nsw=True) is POISON
    assert step(name, a, b, 32) is not POISON
    assert step(name, a, b, 64, nsw=True) is not POISON


@pytest.mark.parametrize("name", ["divsi", "remsi", "divui", "remui", "ceildivsi", "floordivsi"])
def test_division_by_zero_is_undefined(name: str):
    with pytest.raises(Undefined):
        step(name, 1, 0, 32)
    with pytest.raises(Undefined):
        step(name, 1, POISON, 32)
    assert step(name, POISON, 3, 32) is POISON


def test_wrap():
    assert [wrap(x, 8) for x in (127, 128, -129, 256)] == [127, -128, 127, 0]
    assert [wrap(x, 1) for x in (0, 1, -1, 2)] == [0, 1, 1, 0]


def test_predicates():
    signed, unsigned = TESTS[2], TESTS[6]
    assert signed(-1, 0, 32) and not unsigned(-1, 0, 32)
