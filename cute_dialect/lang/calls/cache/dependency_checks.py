"""Fast check that objects still hold the same contents, by identity only. Every cached call runs it.

>>> config = {"tile": (16, 8)}
>>> same = unchanged_since([config])
>>> same(), config.update(tile=(8, 8)), same()
(True, None, False)
"""

from __future__ import annotations

import types
from collections.abc import Callable, Iterable, Mapping
from enum import Enum
from operator import is_
from typing import Any, cast

from cute_dialect.lang.calls.cache.dependencies import can_change, is_users_class
from cute_dialect.lang.values.dtypes import Numeric

__all__ = ["never_changes", "unchanged_since"]

_PLAIN = (bool, int, float, complex, str, bytes, type(None), Enum, type, types.BuiltinFunctionType, types.ModuleType)
_MOST = 256
"""Maximum number of objects checked by a cached call. Beyond it, calls take the slow path."""


def never_changes(value: object) -> bool:
    """Return True if a value is immutable."""
    if isinstance(value, _PLAIN) or (isinstance(value, Numeric) and value.is_static):
        return True
    if isinstance(value, tuple):
        return all(map(never_changes, value))
    return isinstance(value, types.FunctionType) and value.__closure__ is None  # Its code is watched separately.


def _holds_attributes_only(kind: type) -> bool:
    """Return True if instances of a class are fully described by their attributes."""
    return is_users_class(kind) or kind is types.SimpleNamespace or kind.__module__.startswith("cute_dialect.")


def unchanged_since(
    values: Iterable[object], *, others: Callable[[object], bool] = lambda _: False
) -> Callable[[], bool] | None:
    """Return a function that checks whether the values still hold the same objects.

    The result is None if comparing identities does not suffice. ``others(x)`` returns True for opaque objects that are
    assumed not to change.
    """
    sequences: list[tuple[Any, int, tuple[object, ...]]] = []
    spaces: list[tuple[Any, Any, Mapping[str, Any], list[object], tuple[object, ...]]] = []
    seen: set[int] = set()
    left = list(values)
    while left:
        x = cast(Any, left.pop())
        if id(x) in seen or (never_changes(x) and not (isinstance(x, type) and can_change(x))):
            continue
        seen.add(id(x))
        kind: Any = type(x)
        if kind is list:
            sequences.append((x, len(x), tuple(x)))
            left += cast("list[object]", x)
        elif isinstance(x, tuple):
            left += cast("tuple[object, ...]", x)
        elif kind is dict:
            held: Mapping[str, Any] = cast("dict[str, Any]", x)
            spaces.append((None, None, held, [*held], tuple(held.values())))
            left += [*held, *held.values()]
        elif isinstance(x, type):
            for base in [k for k in kind.mro(x) if is_users_class(k)]:
                held = vars(base)
                spaces.append((None, None, held, [*held], tuple(held.values())))
                left += [v for n, v in held.items() if not n.startswith("__") and can_change(v)]
        elif hasattr(x, "__dict__") and all(map(_holds_attributes_only, kind.mro()[:-1])):
            if any("__slots__" in vars(k) for k in kind.mro()):
                return None
            held = vars(x)
            spaces.append((x, kind, held, [*held], tuple(held.values())))
            left += held.values()
        elif not others(x):
            return None
    if len(sequences) + len(spaces) > _MOST:
        return None

    def same() -> bool:
        for x, n, held in sequences:
            if len(x) != n or not all(map(is_, x, held)):
                return False
        for owner, kind, space, names, held in spaces:
            if [*space] != names or not all(map(is_, space.values(), held)):
                return False
            if owner is not None and (owner.__dict__ is not space or type(owner) is not kind):
                return False
        return True

    return same
