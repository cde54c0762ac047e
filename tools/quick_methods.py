"""What the methods that ``@dataclass`` writes do, without compiling them: for methods that are called a few times.

Compiling a method takes as long as fifty calls of what :func:`interpreted` gives.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence

__all__ = ["Unfit", "interpreted"]

_SET = re.compile(r"(?:self\.(\w+)=|__dataclass_builtins_object__\.__setattr__\(self,'(\w+)',)(.*?)(\)?)$")
_FACTORY = re.compile(r"(\w+)\(\)(?: if (\w+) is _HAS_DEFAULT_FACTORY else (\w+))?$")
_HASH = re.compile(r"return hash\(\(((?:self\.\w+,)*)\)\)$")
_SAME = re.compile(r" return \(((?:self\.\w+,)*)\)==\(((?:other\.\w+,)*)\)$")


class Unfit(Exception):
    """The arguments are not those of the method, which says so better."""


def interpreted(
    name: str, args: Sequence[str], body: Sequence[str], values: Mapping[str, object]
) -> Callable[..., object] | None:
    """A function that does what a method does; None where that is not seen from its text.

    ``args``, ``body`` and ``values`` are what ``dataclasses._create_fn`` gets: parameters, lines and names in them.
    The function raises Unfit, and does nothing then, if it is called with other arguments than the method takes.

    >>> hash_ = interpreted("__hash__", ["self"], ["return hash((self.real,self.imag,))"], {})
    >>> hash_(5) == hash((5, 0))
    True
    """
    if name == "__init__":
        return _init(args, body, values)
    if name == "__hash__" and len(body) == 1:
        return _hash(body[0])
    if name == "__eq__" and len(body) == 3 and body[0] == "if other.__class__ is self.__class__:":
        return _eq(body[1])
    return None


def _names(text: str) -> tuple[str, ...]:
    return tuple(part.partition(".")[2] for part in text.split(",") if part)


def _hash(line: str) -> Callable[..., object] | None:
    found = _HASH.match(line)
    if found is None:
        return None
    names = _names(found[1])

    def hashed(self: object) -> int:
        return hash(tuple([getattr(self, name) for name in names]))

    return hashed


def _eq(line: str) -> Callable[..., object] | None:
    found = _SAME.match(line)
    if found is None or _names(found[1]) != _names(found[2]):
        return None
    names = _names(found[1])

    def eq(self: object, other: object) -> object:
        if other.__class__ is not self.__class__:
            return NotImplemented
        mine, theirs = [getattr(self, name) for name in names], [getattr(other, name) for name in names]
        return mine == theirs

    return eq


def _init(args: Sequence[str], body: Sequence[str], values: Mapping[str, object]) -> Callable[..., object] | None:
    names: list[str] = []
    defaults: dict[str, object] = {}
    for arg in args[1:]:
        name, _, rest = arg.partition(":")
        _, has_default, default = rest.partition("=")
        names.append(name)
        if has_default:
            defaults[name] = values[default]
    if args[0] != "self" or "*" in names:
        return None
    steps: list[tuple[bool, str, str, Callable[[], object] | None]] = []
    then_more = False
    for line in body:
        if line == "self.__post_init__()" and line is body[-1]:
            then_more = True
        elif line != "pass":
            found = _SET.match(line)
            if found is None:
                return None
            frozen, value = found[2] is not None, found[3]
            made = _FACTORY.match(value + ("" if frozen else found[4]))
            factory = values.get(made[1]) if made is not None else None
            if made is not None:
                value = made[2] or ""
                if not callable(factory) or made[2] != made[3]:
                    return None
            elif value not in names:
                return None
            steps.append((frozen, found[1] or found[2], value, factory if callable(factory) else None))
    absent = values.get("_HAS_DEFAULT_FACTORY")

    def init(self: object, /, *given: object, **named: object) -> None:
        if len(given) > len(names) or not named.keys() <= set(names[len(given) :]):
            raise Unfit
        now = {**defaults, **dict(zip(names, given)), **named}
        if len(now) < len(names):
            raise Unfit
        for frozen, attribute, name, factory in steps:
            value = factory() if factory is not None and (not name or now[name] is absent) else now[name]
            if frozen:
                object.__setattr__(self, attribute, value)
            else:
                setattr(self, attribute, value)
        if then_more:
            self.__post_init__()  # pyright: ignore

    return init
