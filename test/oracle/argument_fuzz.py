"""Random arguments for every function of ``cute_dialect.algebra``.

    python test/oracle/argument_fuzz.py --count 100000 --seed 0

Each call must return a result or raise an AlgebraError that states the reason. Arguments are numbers, tuples, lists,
layouts and their text, composed and swizzled layouts, dynamic leaves, None, bools, numpy integers, negative numbers,
zero, empty tuples and strings.

An equivalent argument (a list for a tuple, a numpy integer for an int) must give the same result as the plain one.
Each failure is printed with its seed. The exit status is 1 if a call failed.
"""

from __future__ import annotations

import argparse
import contextlib
import io
from collections.abc import Callable
from random import Random

import numpy as np

from cute_dialect import algebra
from cute_dialect.algebra.argument_checks import SIGNATURES

L, S, C = algebra.Layout, algebra.Swizzle, algebra.ComposedLayout
PLAIN: tuple[object, ...] = (
    0, 1, 2, 5, 24, -3, 1 << 70, (), (4, 8), (2, (3, 4)), (0, 1), (-1, 4), (1, 1), (0, 0), ((),),
    (algebra.UNDERSCORE, 2), algebra.UNDERSCORE,
    algebra.Dyn(), algebra.Dyn(64, 8), (algebra.Dyn(), 4), (4, algebra.Dyn(div=4)),
    L("4:2"), L("(4,8):(8,1)"), L("(2,(3,4)):(12,(4,1))"), L("(?,8):(1,?)"), L("(4,8):(1@0,1@1)"), L((), ()), L("8:0"),
    L("(4,3):(-1,4)"), (L("2:1"), algebra.UNDERSCORE), (L("2:1"), L("4:2")),
    C(S(2, 3, 3), 0, L("(8,8):(8,1)")), C(L("(8,8):(8,1)"), 3, L("8:2")),
    C(S(1, 0, 1), algebra.Dyn(), L("(2,2):(1,2)")),
    S(2, 3, 3), algebra.Basis(1, (0,)), (1, "x"), "(4,8):(1,4)", "S<2,3,3> o 0 o (8,8):(8,1)", "4", "(", "", "x",
    None, True, False, 2.0, 2.5, object, b"4", {4}, {"a": 1}, range(2), [L("2:1")], np.arange(4),
    np.float32(2), (None,),
)  # fmt: skip
"""Valid and invalid arguments of every type."""

OTHERS = {"make_layout": 3, "Layout": 2, "Swizzle": 3}
"""Functions whose signature is not in the table -> number of arguments to pass."""


def respelled(value: object) -> object:
    """Return an equivalent argument of another type."""
    if isinstance(value, tuple):
        return [respelled(x) for x in value]
    if type(value) is int and -(1 << 63) <= value < 1 << 63:
        return np.int64(value)
    return value


def outcome(function: Callable[..., object], arguments: list[object]) -> object:
    """Return the result, or the text of the AlgebraError. Other exceptions propagate."""
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            return function(*arguments)
    except algebra.AlgebraError as e:
        assert str(e) and "object at 0x" not in str(e), f"a message that says nothing: {e}"
        return None


def case(seed: int) -> None:
    """Run one random call. Raises AssertionError for a wrong result; exceptions other than AlgebraError propagate."""
    rng = Random(seed)
    name = rng.choice([*SIGNATURES, *OTHERS])
    kinds = SIGNATURES.get(name, "").split()
    count = len(kinds) or OTHERS[name]
    if kinds and rng.random() < 0.1:
        count += rng.choice((-1, 1))
    arguments = [rng.choice(PLAIN) for _ in range(max(0, count))]
    function = getattr(algebra, name)
    shown = f"{name}({', '.join(map(repr, arguments))})"
    try:
        result = outcome(function, arguments)
        if kinds:
            assert outcome(function, [respelled(x) for x in arguments]) == result, "another form, another result"
    except Exception as e:
        raise AssertionError(f"seed {seed}: {shown}: {type(e).__name__}: {e}") from e


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--count", type=int, default=10000)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    failures = 0
    for seed in range(options.seed, options.seed + options.count):
        try:
            case(seed)
        except AssertionError as e:
            failures += 1
            print(e)
    print(f"{options.count} calls, {failures} failures")
    return 1 if failures else 0


if __name__ == "__main__":
    raise SystemExit(main())
