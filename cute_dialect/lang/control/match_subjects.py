"""Structural tests of ``match`` patterns, which are decided at compile time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

__all__ = ["attribute_of", "has_keys", "is_instance", "is_sequence", "part_of", "rest_of"]

_THEMSELVES = (bool, bytearray, bytes, dict, float, frozenset, int, list, set, str, tuple)
"""Classes whose single positional pattern matches the subject itself."""


def is_sequence(subject: Any, count: int, more: bool) -> bool:
    """Return True if a subject is a sequence of ``count`` elements, or at least ``count`` with ``more``.

    >>> is_sequence((1, 2), 2, False), is_sequence([1, 2], 1, True), is_sequence("ab", 2, False)
    (True, True, False)
    """
    if not isinstance(subject, Sequence) or isinstance(subject, str | bytes | bytearray):
        return False
    return len(subject) >= count if more else len(subject) == count


def part_of(subject: Any, first: int, last: int | None) -> list[Any]:
    """Return the elements captured by a starred name. ``last`` counts from the end.

    >>> part_of((1, 2, 3), 1, None), part_of((1, 2, 3), 0, -1)
    ([2, 3], [1, 2])
    """
    return [subject[i] for i in range(first, len(subject) + (last or 0))]


def has_keys(subject: Any, *keys: Any) -> bool:
    """Return True if a subject is a mapping with these keys.

    >>> has_keys({"a": 1}, "a"), has_keys([], "a")
    (True, False)
    """
    return isinstance(subject, Mapping) and all(key in subject for key in keys)


def rest_of(subject: Any, *keys: Any) -> dict[Any, Any]:
    """Return the items of a mapping without these keys.

    >>> rest_of({"a": 1, "b": 2}, "a")
    {'b': 2}
    """
    return {k: v for k, v in subject.items() if k not in keys}


def is_instance(subject: Any, cls: Any, count: int, *names: str) -> bool:
    """Return True if a subject is an instance of a class and has the attributes that the sub-patterns need."""
    if not isinstance(subject, cls):
        return False
    if cls not in _THEMSELVES:
        names = (*_positional(cls, count), *names)
    elif count > 1:
        raise TypeError(f"{cls.__name__}() accepts 1 positional sub-pattern ({count} given)")
    return all(hasattr(subject, name) for name in names)


def attribute_of(subject: Any, cls: Any, n: int) -> Any:
    """Return the value matched by positional pattern ``n`` of a class."""
    return subject if cls in _THEMSELVES else getattr(subject, _positional(cls, n + 1)[n])


def _positional(cls: Any, count: int) -> tuple[str, ...]:
    names: tuple[str, ...] = getattr(cls, "__match_args__", ()) if count else ()
    if count > len(names):
        raise TypeError(f"{cls.__name__}() accepts {len(names)} positional sub-patterns ({count} given)")
    return names[:count]
