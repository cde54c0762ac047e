"""Calls like earlier ones go to the launch without looking for their kind (:mod:`cute_dialect.runtime.fast_call`).

A function (or one compiled kind) becomes the generated code that recognises its last call; what is unlike that comes
back here, is compared with a few calls before, and is read in full at last.
"""

from __future__ import annotations

import types
from collections.abc import Mapping
from enum import Enum
from typing import TYPE_CHECKING, Any

from cute_dialect.front.arguments import Spec, StaticSpec, StreamSpec
from cute_dialect.runtime.fast_call import MISSING, Constants, QuickCall

if TYPE_CHECKING:
    from cute_dialect.front.compiled import Compiled

__all__ = ["constants_of", "learn", "other_call"]

_RECENT = 4


def constants_of(specs: Mapping[str, Spec], args: tuple[Any, ...]) -> tuple[Constants, tuple[Any, ...]] | None:
    """Return which of the arguments are constants, and those that are passed on; None where generated code cannot say.

    >>> from cute_dialect.front.specs import spec_of
    >>> specs = {"mode": spec_of("fast", None, "mode"), "n": spec_of(3, None, "n")}
    >>> constants_of(specs, ("fast", 3))
    (Constants(same=frozenset(), equal=frozenset({0}), stream=-1, watched=()), (3,))
    """
    same: set[int] = set()
    equal: set[int] = set()
    stream = -1
    passed: list[Any] = []
    for i, (arg, spec) in enumerate(zip(args, specs.values())):
        if isinstance(spec, StreamSpec):
            if stream >= 0:
                return None
            stream = i
        elif isinstance(spec, StaticSpec):
            if type(arg) in (int, str, bytes):
                equal.add(i)
            elif _never_changes(arg):
                same.add(i)
            else:
                return None
        elif spec.direct:
            passed.append(arg)
        else:
            return None
    if any(not isinstance(s, StaticSpec) for s in list(specs.values())[len(args) :]):
        return None
    return Constants(frozenset(same), frozenset(equal), stream), tuple(passed)


def _never_changes(value: Any) -> bool:
    if value is None or isinstance(value, bool | float | Enum | type | types.BuiltinFunctionType):
        return True
    return isinstance(value, types.FunctionType) and value.__closure__ is None


def learn(owner: Any, kind: Compiled, args: tuple[Any, ...], *, watch: bool) -> None:
    """Make ``owner`` (a function or a kind) recognise calls like the one that was just launched with ``args``."""
    if kind.outcome.result is not None or kind.outcome.outputs is not None:
        return
    if watch and kind.watched.contents:
        return
    found = constants_of(kind.specs, args)
    if found is None:
        return
    constants, passed = found
    if watch:
        constants = constants._replace(watched=kind.watched.names)
    quick = kind.kernel(cpu=False).quick(passed, args, owner.other, constants)
    if quick is None:
        return
    recent: tuple[QuickCall, ...] = owner.__dict__.get("_recent", ())
    owner.__dict__["_recent"] = (quick, *recent[: _RECENT - 1])
    owner.__call__ = quick.call


def other_call(owner: Any, args: tuple[object, ...], stream: object, options: dict[str, Any]) -> tuple[Any, ...] | None:
    """Return the arguments of a call that is not like the last ones; None where it was like one, and is launched."""
    args = tuple([a for a in args if a is not MISSING])
    if not options:
        for quick in owner.__dict__.get("_recent", ())[1:]:
            if quick.again(args, stream):
                return None
    return args
