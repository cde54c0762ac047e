"""Keys of static arguments. Values with equal keys are the same constant.

>>> static_key((1, 2.0)) == static_key((1, 2.0)), static_key(1) == static_key(True)
(True, False)
"""

from __future__ import annotations

import functools
import types
from collections.abc import Hashable
from enum import Enum
from typing import Any

from cute_dialect.lang.calls.runtime_tensor import is_array
from cute_dialect.lang.tracing.errors import KernelTypeError
from cute_dialect.lang.values.dtypes import Numeric
from cute_dialect.lang.values.dynamic import Dynamic


class Same:
    """A value compared by identity. It is kept alive, so that its id is not reused."""

    __slots__ = ("value",)

    def __init__(self, value: object):
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Same) and self.value is other.value

    def __hash__(self) -> int:
        return id(self.value)


def static_key(value: object, label: str = "value") -> Hashable:
    """Return a key that identifies a static value.  Raises F121 for an array."""
    return _key(value, label, ())


def _key(value: Any, label: str, above: tuple[int, ...]) -> Hashable:
    if value is None or isinstance(value, Enum | type | types.ModuleType | types.BuiltinFunctionType):
        return Same(value)
    if type(value) in (bool, int, str, bytes):
        return (type(value), value)
    if isinstance(value, float):
        return (float, value.hex())
    if isinstance(value, Numeric) and value.is_static:
        return (type(value), _key(value.value, label, above))
    if isinstance(value, Dynamic):
        return value.__cute_form__()
    if is_array(value):
        raise KernelTypeError(
            "F121", f"argument '{label}' is an array, which cannot be a compile-time constant",
            hint="pass the array as a separate argument without Constexpr",
        )  # fmt: skip
    if id(value) in above:
        return ("above", above.index(id(value)))
    inner = (*above, id(value))
    if isinstance(value, tuple | list):
        return (type(value), *[_key(x, f"{label}[{i}]", inner) for i, x in enumerate(value)])
    if isinstance(value, dict):
        return (type(value), *[(_key(k, label, inner), _key(x, f"{label}[{k!r}]", inner)) for k, x in value.items()])
    if isinstance(value, set | frozenset):
        return (type(value), frozenset(_key(x, label, inner) for x in value))
    return _key_of_object(value, label, inner)


def _key_of_object(value: Any, label: str, above: tuple[int, ...]) -> Hashable:
    if isinstance(value, types.MethodType):
        return ("method", _key(value.__self__, label, above), _key(value.__func__, label, above))
    if isinstance(value, functools.partial):
        return ("partial", *[_key(x, label, above) for x in (value.func, value.args, value.keywords)])
    if isinstance(value, types.FunctionType):
        cells = [_cell(c) for c in value.__closure__ or ()]
        parts = (value.__defaults__, value.__kwdefaults__, tuple(cells))
        return ("function", value.__code__, Same(value.__globals__), *[_key(x, label, above) for x in parts])
    wrapped = getattr(value, "__wrapped__", None)
    if isinstance(wrapped, types.FunctionType):
        return (type(value), _key(wrapped, label, above))
    kind = type(value)
    if kind.__module__.startswith("cute_dialect.") and kind.__hash__ not in (None, object.__hash__):
        return (kind, value)
    if kind.__hash__ not in (None, object.__hash__) and not hasattr(value, "__dict__"):
        return (kind, value)  # Element types of numpy and torch, ranges, slices, …
    fields = fields_of(value)
    if fields is None:
        return Same(value)
    return (kind, *[(n, _key(x, f"{label}.{n}", above)) for n, x in fields.items()])


def _cell(cell: Any) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # The cell is still empty.
        return None


def fields_of(value: Any) -> dict[str, Any] | None:
    """Return the attributes of an instance, or None if they are not accessible."""
    slots = [n for c in type(value).__mro__ for n in _slots(c)]
    if not hasattr(value, "__dict__") and not slots:
        return None
    found = dict(getattr(value, "__dict__", {}))
    found.update({n: getattr(value, n) for n in slots if hasattr(value, n)})
    return found


def _slots(kind: type) -> list[str]:
    given = kind.__dict__.get("__slots__", ())
    return [n for n in ((given,) if isinstance(given, str) else given) if n not in ("__dict__", "__weakref__")]


# ------------------------------------------------------------------------------------------------ state around a trace


def snapshot(*roots: object) -> list[tuple[Any, Any]]:
    """Return a copy of the state of all instances, lists, dicts and sets reachable from ``roots``."""
    seen: dict[int, tuple[Any, Any]] = {}
    left: list[Any] = list(roots)
    while left:
        value = left.pop()
        if id(value) in seen or isinstance(value, type | types.ModuleType | types.FunctionType | str | bytes | Dynamic):
            continue
        if isinstance(value, list | set | dict):
            seen[id(value)] = (value, value.copy())
            left += [*value, *value.values()] if isinstance(value, dict) else list(value)
        elif isinstance(value, tuple | frozenset):
            left += list(value)
        elif type(value).__module__ != "builtins" and not is_array(value) and not isinstance(value, Enum):
            fields = fields_of(value)
            if fields is not None:
                seen[id(value)] = (value, fields)
                left += list(fields.values())
    return list(seen.values())


def restored(state: list[tuple[Any, Any]]) -> None:
    """Restore objects to their state at the :func:`snapshot`."""
    for value, held in state:
        if isinstance(value, list):
            if len(value) != len(held) or any(a is not b for a, b in zip(value, held)):
                value[:] = held
        elif isinstance(value, set):
            if value != held:
                value.clear()
                value.update(held)
        elif isinstance(value, dict):
            if len(value) != len(held) or any(a is not b or value[a] is not held[b] for a, b in zip(value, held)):
                value.clear()
                value.update(held)
        else:
            now = fields_of(value) or {}
            for name in now.keys() - held.keys():
                object.__delattr__(value, name)
            for name, x in held.items():
                if name not in now or now[name] is not x:
                    object.__setattr__(value, name, x)
