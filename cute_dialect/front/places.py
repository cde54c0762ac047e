"""Places: what a branch or a loop can change besides locals, and putting it back.

A place is an element of a list or a dict, an attribute of an instance, a cell of a closure.  Reachable are those that
the locals which a region reads lead to, through containers, instances, and the closures and module-level containers
of the user's functions; not what libraries and the language's own values hold.
"""

from __future__ import annotations

import enum
from collections import deque
from collections.abc import Iterable, Iterator
from functools import partial
from operator import length_hint
from types import BuiltinFunctionType, CellType, FunctionType, GeneratorType, MethodType, ModuleType
from typing import Any

from cute_dialect.front.dtypes import Numeric
from cute_dialect.front.errors import LimitError
from cute_dialect.front.values import Dynamic, same_static

__all__ = ["LIMIT", "Snapshot", "U", "is_mutable", "kept_in", "same"]

LIMIT = 20_000
"""Objects that a snapshot may reach."""


WATCHED = 1 << 16
"""Bytes of an array of numpy that is compared before and after a branch."""


class _Unbound:
    """What a name without a value has while it is carried about."""

    def __repr__(self) -> str:
        return "<unbound>"


U = _Unbound()

(
    _LEAF, _LIST, _DICT, _SET, _INSTANCE, _TUPLE, _FUNCTION, _CELL, _SLOTS, _METHOD, _ITERATOR, _PARTIAL, _VALUE,
    _DEQUE,
) = range(14)  # fmt: skip
_KINDS: dict[type, int] = {
    int: _LEAF, float: _LEAF, bool: _LEAF, str: _LEAF, bytes: _LEAF, type(None): _LEAF, complex: _LEAF, range: _LEAF,
    type: _LEAF, ModuleType: _LEAF, BuiltinFunctionType: _LEAF, slice: _LEAF, _Unbound: _LEAF, list: _LIST, dict: _DICT,
    set: _SET, tuple: _TUPLE, FunctionType: _FUNCTION, CellType: _CELL, MethodType: _METHOD, partial: _PARTIAL,
    deque: _DEQUE, bytearray: _LIST, frozenset: _TUPLE, GeneratorType: _ITERATOR,
}  # fmt: skip
_FOREIGN = frozenset(("xdsl", "mlir", "numpy", "torch", "jax", "jaxlib", "cupy", "cuda", "ml_dtypes"))
_SLOT_NAMES: dict[type, tuple[str, ...]] = {}
_GLOBALS_READ: dict[int, tuple[Any, tuple[str, ...]]] = {}


def _kind(cls: type) -> int:
    if issubclass(cls, Dynamic):
        kind = _VALUE if hasattr(cls, "__cute_places__") else _LEAF
    elif cls.__module__ == "numpy" and cls.__name__ == "ndarray":
        kind = _ITERATOR  # watched, not restored
    elif issubclass(cls, type | enum.Enum | BaseException) or cls.__module__.split(".")[0] in _FOREIGN:
        kind = _LEAF
    elif issubclass(cls, list):
        kind = _LIST
    elif issubclass(cls, dict):
        kind = _DICT
    elif issubclass(cls, set):
        kind = _SET
    elif issubclass(cls, tuple):
        kind = _TUPLE
    elif issubclass(cls, Iterator):
        kind = _ITERATOR
    elif cls.__module__.startswith("cute_dialect.") and cls.__module__.split(".")[1] not in ("lang", "kernels"):
        kind = _VALUE if hasattr(cls, "__cute_places__") else _LEAF
    else:
        names = tuple(
            n for c in cls.__mro__ for n in _slots(c) if n not in ("__dict__", "__weakref__")
        )  # fmt: skip
        if names:
            _SLOT_NAMES[cls] = names
            kind = _SLOTS
        else:
            kind = _INSTANCE if hasattr(cls, "__dict__") and cls.__dictoffset__ else _LEAF
    _KINDS[cls] = kind
    return kind


def _slots(cls: type) -> tuple[str, ...]:
    named = cls.__dict__.get("__slots__", ())
    return (named,) if isinstance(named, str) else tuple(named)


def kept_in(obj: Any) -> dict[Any, Any] | list[Any] | set[Any] | None:
    """Return a copy of what a mutable object holds now: by index, key or attribute; None for what holds nothing."""
    kind = _KINDS.get(type(obj))
    if kind is None:
        kind = _kind(type(obj))
    if kind in (_LIST, _DEQUE):
        return list(obj)
    if kind == _DICT:
        return dict(obj)
    if kind == _INSTANCE:
        return dict(obj.__dict__)
    if kind == _SET:
        return set(obj)
    if kind == _CELL:
        try:
            return [obj.cell_contents]
        except ValueError:
            return [U]
    if kind == _SLOTS:
        kept = {n: getattr(obj, n) for n in _SLOT_NAMES[type(obj)] if hasattr(obj, n)}
        kept.update(getattr(obj, "__dict__", {}))
        return kept
    if kind == _VALUE:
        return {n: getattr(obj, n) for n in obj.__cute_places__}
    return None


def is_mutable(obj: Any) -> bool:
    """Tell whether an object has places of its own, so that two names for it see each other's changes."""
    kind = _KINDS.get(type(obj))
    if kind is None:
        kind = _kind(type(obj))
    if kind in (_INSTANCE, _SLOTS):
        return not _is_frozen(type(obj))
    return kind in (_LIST, _DICT, _SET, _CELL, _DEQUE, _ITERATOR)


def _is_frozen(cls: type) -> bool:
    params = getattr(cls, "__dataclass_params__", None)
    return params is not None and params.frozen


def put_back(obj: Any, kept: Any) -> None:
    """Give an object back what it held."""
    kind = _KINDS[type(obj)]
    if kind == _LIST:
        obj[:] = kept
    elif kind == _DEQUE:
        obj.clear()
        obj.extend(kept)
    elif kind in (_DICT, _SET):
        obj.clear()
        obj.update(kept)
    elif kind == _CELL:
        if kept[0] is U:
            del obj.cell_contents
        else:
            obj.cell_contents = kept[0]
    elif kind == _INSTANCE:
        obj.__dict__.clear()
        obj.__dict__.update(kept)
    else:
        now = kept_in(obj)
        assert isinstance(now, dict)
        for name in now:
            if name not in kept:
                object.__delattr__(obj, name)
        for name, value in kept.items():
            if now.get(name, U) is not value:
                object.__setattr__(obj, name, value)


def put(obj: Any, slot: Any, value: Any) -> None:
    """Set one place."""
    kind = _KINDS[type(obj)]
    if kind in (_LIST, _DICT, _DEQUE):
        obj[slot] = value
    elif kind == _CELL:
        obj.cell_contents = value
    elif kind == _INSTANCE:
        obj.__dict__[slot] = value
    else:
        object.__setattr__(obj, slot, value)


def _led_to(f: FunctionType) -> list[Any]:
    """Return a function's cells, and what a user's reads of its module that can change or leads to what can."""
    from cute_dialect.front.convert import is_users

    code = f.__code__
    if not is_users(code.co_filename, f.__module__):
        return [*(f.__closure__ or ())]
    known = _GLOBALS_READ.get(id(code))
    if known is None or known[0] is not code:
        names: set[str] = set()
        todo = [code]
        while todo:
            c = todo.pop()
            names.update(c.co_names)
            todo += [k for k in c.co_consts if isinstance(k, type(c))]
        known = _GLOBALS_READ[id(code)] = (code, tuple(names))
    found = f.__globals__
    read = [v for n in known[1] if (v := found.get(n)) is not None and not isinstance(v, type | ModuleType)]
    return [*(f.__closure__ or ()), *read]


class Snapshot:
    """What the reachable mutable objects held at one moment."""

    __slots__ = ("iterators", "objects", "seen")

    def __init__(self, roots: Iterable[Any]):
        self.objects: dict[int, tuple[Any, Any]] = {}
        self.iterators: dict[int, tuple[Any, Any]] = {}
        self.seen: dict[int, Any] = {}
        self.add(roots)

    def add(self, roots: Iterable[Any]) -> None:
        """Reach further roots; what is known already stays as it was."""
        seen, objects, kinds = self.seen, self.objects, _KINDS
        todo = list(roots)
        while todo:
            obj = todo.pop()
            cls = type(obj)
            kind = kinds.get(cls)
            if kind is None:
                kind = _kind(cls)
            if kind == _LEAF:
                continue
            key = id(obj)
            if key in seen:
                continue
            seen[key] = obj
            if kind == _TUPLE:
                todo += obj
            elif kind == _FUNCTION:
                todo += _led_to(obj)
            elif kind == _METHOD:
                todo += (obj.__func__, obj.__self__)
            elif kind == _PARTIAL:
                todo += (obj.func, *obj.args, *obj.keywords.values())
            elif kind == _ITERATOR:
                self.iterators[key] = (obj, _position(obj))
            else:
                kept = kept_in(obj)
                objects[key] = (obj, kept)
                todo += kept.values() if isinstance(kept, dict) else kept or ()
                if kind == _DICT:
                    todo += kept  # pyright: ignore
            if len(seen) > LIMIT:
                raise LimitError(
                    "F170", f"more than {LIMIT:,} objects can be reached from what this branch or loop reads",
                    hint="keep large Python data in arrays of numpy, or out of the functions that kernels call",
                )  # fmt: skip

    def advanced(self) -> Any:
        """Return an iterator that has been advanced, or an array that has changed, if one is seen."""
        return next((obj for obj, position in self.iterators.values() if _position(obj) != position), None)

    def restore(self) -> None:
        """Put everything back."""
        for obj, kept in self.objects.values():
            if not _holds(kept_in(obj), kept):
                put_back(obj, kept)

    def state(self) -> dict[int, Any]:
        """Return what the objects hold now."""
        return {key: kept_in(obj) for key, (obj, _) in self.objects.items()}


def _position(iterator: Any) -> Any:
    """Return what changes when an iterator (a generator, one of a container) is advanced; an array's contents."""
    if isinstance(iterator, GeneratorType):
        frame = iterator.gi_frame
        return None if frame is None else frame.f_lasti
    if hasattr(iterator, "tobytes"):
        return iterator.tobytes() if iterator.nbytes <= WATCHED else None
    try:
        return length_hint(iterator, -1)
    except TypeError:
        return -1


def _holds(now: Any, kept: Any) -> bool:
    if len(now) != len(kept):
        return False
    if isinstance(now, dict):
        return all(a is b for a, b in zip(now, kept)) and all(a is b for a, b in zip(now.values(), kept.values()))
    if isinstance(now, set):
        return {id(x) for x in now} == {id(x) for x in kept}
    return all(a is b for a, b in zip(now, kept))


def same(a: Any, b: Any) -> bool:
    """Tell whether two values are one: the same object, equal static values of a type, or one form and leaves."""
    if a is b:
        return True
    if type(a) is not type(b):
        return False
    if isinstance(a, Dynamic):
        if getattr(a, "is_static", False) or getattr(b, "is_static", False):
            return same_static(a, b)
        if isinstance(a, Numeric):
            return a.value is b.value  # whatever is known of it
        form = a.__cute_form__()
        if form != b.__cute_form__():
            return False
        return all(x is y for x, y in zip(form.take(a), form.take(b)))
    if isinstance(a, tuple):
        return len(a) == len(b) and all(same(x, y) for x, y in zip(a, b))
    return same_static(a, b)
