"""What a traced function has as constants without being given it: a call looks whether that is still what it was.

Globals and variables of enclosing functions are compared by identity, as is done on each call; lists, dicts, small
arrays and the user's own objects and classes by what they hold, which takes a call through the search of its kind.
"""

from __future__ import annotations

import sys
import sysconfig
import types
from collections.abc import Callable, Hashable, Iterator
from enum import Enum
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from cute_dialect.front.codes import reads_of
from cute_dialect.front.dtypes import Numeric
from cute_dialect.front.statics import Same, fields_of

__all__ = ["Watched", "can_change", "is_library", "is_users", "is_users_class", "watched_by"]

_PACKAGE = str(Path(__file__).parents[1]) + "/"
_LIKE_NUMBERS = (int, float, str, bytes, Numeric, type(None))


@lru_cache(maxsize=1024)
def is_library(filename: str) -> bool:
    """Tell whether a file belongs to Python, to an installed package, or to this one."""
    if filename.startswith("<frozen"):
        return True
    paths = sysconfig.get_paths()
    roots = [paths[n] for n in ("stdlib", "platstdlib", "purelib", "platlib")]
    return any(filename.startswith(r + "/") for r in roots) or filename.startswith(_PACKAGE)


def is_users(function: Any) -> bool:
    """Tell whether a function was written by the user: it is in no installed package."""
    code = getattr(function, "__code__", None)
    return code is not None and not is_library(code.co_filename)


class _Cell:
    """A variable of an enclosing function, read as an entry of a namespace is."""

    __slots__ = ("cell",)

    def __init__(self, cell: types.CellType):
        self.cell = cell

    def get(self, name: str, default: object = None) -> Any:
        """Return what the variable holds."""
        try:
            return self.cell.cell_contents
        except ValueError:  # not set yet
            return default


class Watched(NamedTuple):
    """What a kind depends on: ``names`` are compared by identity, ``contents`` by what they hold."""

    names: tuple[tuple[Any, str, object], ...] = ()
    contents: tuple[tuple[object, Hashable], ...] = ()

    def has_changed(self) -> bool:
        """Tell whether one of the values is another one now, or holds something else."""
        if any(space.get(name, _GONE) is not value for space, name, value in self.names):
            return True
        return any(_content(value) != held for value, held in self.contents)

    def after_trace(self) -> Watched:
        """Return what is left to watch: what the trace itself changed is what it says, not what it depends on."""
        names = tuple((space, name, space.get(name, _GONE)) for space, name, _ in self.names)
        return Watched(names, tuple((value, held) for value, held in self.contents if _content(value) == held))


_GONE = object()


def watched_by(function: Callable[..., Any], *constants: object) -> Watched:
    """Return what a function and what it calls name: numbers, and objects that can change.

    Of functions in ``__main__`` (a script, a notebook) those that are named are watched too. ``constants``: arguments
    that are constants, whose methods belong to the function.
    """
    found: dict[tuple[int, str], tuple[Any, str, object]] = {}
    contents: dict[int, tuple[object, Hashable]] = {}
    seen: set[int] = set()
    left: list[Any] = [function, *[type(x) for x in constants if is_users_class(type(x))]]

    def look(value: object) -> None:
        """Watch what a value holds, and the functions in it."""
        left.append(value)
        if id(value) not in contents and can_change(value) and is_users(f):
            contents[id(value)] = (value, _content(value))

    def watch(space: dict[str, Any], name: str) -> None:
        """Watch an entry of a module."""
        value = space[name]
        if _is_watched(value, space):
            found[id(space), name] = (space, name, value)
            left.append(value)
            return
        look(value)
        if can_change(value):
            found[id(space), name] = (space, name, value)

    while left:
        f = _plain(left.pop())
        if id(f) in seen:
            continue
        seen.add(id(f))
        if isinstance(f, type) and is_users_class(f):
            if can_change(f):
                contents[id(f)] = (f, _content(f))
            left += [x for kind in f.__mro__ if is_users_class(kind) for x in vars(kind).values()]
            continue
        if is_users_class(type(f)):
            left.append(type(f))
            continue
        if isinstance(f, staticmethod | classmethod | property):
            left.append(f.fget if isinstance(f, property) else f.__func__)
            continue
        if not isinstance(f, types.FunctionType) or not (is_users(f) or f is function):
            continue
        for read in reads_of(f.__code__):
            space, name, attributes = f.__globals__, read.name, list(read.attributes)
            while name in space and isinstance(value := space[name], types.ModuleType) and _users_module(value):
                if not attributes:  # the module as a value: whatever of it the code may ask for
                    for n in set(_names(f.__code__)) & vars(value).keys():
                        watch(vars(value), n)
                    break
                space, name = vars(value), attributes.pop(0)
            else:
                if name in space:
                    watch(space, name)
        for name, cell in zip(f.__code__.co_freevars, f.__closure__ or ()):
            try:
                value = cell.cell_contents
            except ValueError:  # not set yet
                continue
            found[id(cell), name] = (_Cell(cell), name, value)
            look(value)
    return Watched(tuple(found.values()), tuple(contents.values()))


_MOST, _DEEPEST = 4096, 64


@lru_cache(maxsize=1024)
def is_users_class(kind: type) -> bool:
    """Tell whether a class is in no installed package."""
    if kind.__module__ == "__main__":
        return True
    file = getattr(sys.modules.get(kind.__module__), "__file__", None)
    return file is not None and not is_library(file)


def _is_array(value: object) -> bool:
    return type(value).__module__ == "numpy" and type(value).__name__ == "ndarray"


def can_change(value: object) -> bool:
    """Tell whether a value may hold something else later."""
    if isinstance(value, tuple):
        return any(map(can_change, value))
    if isinstance(value, type):
        return any(_is_data(x) for k in value.__mro__ if is_users_class(k) for n, x in vars(k).items() if n[:2] != "__")
    if isinstance(value, Enum):
        return False
    return isinstance(value, list | dict | set) or _is_array(value) or is_users_class(type(value))


def _is_data(value: object) -> bool:
    return isinstance(value, (*_LIKE_NUMBERS, tuple, list, dict, set)) or _is_array(value)


def _content(value: object) -> Hashable:
    """Return what a value holds, of up to ``_MOST`` parts; functions and objects of libraries are known by identity."""
    left = [_MOST]
    above: set[int] = set()

    def walk(x: Any) -> Hashable:
        left[0] -= 1
        if isinstance(x, bool | int | str | bytes):
            return (type(x), x)
        if isinstance(x, float):
            return (float, x.hex())
        if isinstance(x, Numeric) and x.is_static:
            return (type(x), repr(x.value))
        if left[0] < 0 or len(above) > _DEEPEST or id(x) in above or (not can_change(x) and not isinstance(x, tuple)):
            return Same(x)
        above.add(id(x))
        try:
            if isinstance(x, list | tuple):
                return (type(x), *map(walk, x))
            if isinstance(x, set):
                return (set, frozenset(map(walk, x)))
            if isinstance(x, dict):
                return (type(x), *[(walk(k), walk(v)) for k, v in list(x.items())])
            if _is_array(x):
                return (x.shape, str(x.dtype), x.tobytes() if x.size <= _MOST and not x.dtype.hasobject else Same(x))
            if isinstance(x, type):
                kinds = [k for k in x.__mro__ if is_users_class(k)]
                return tuple((n, walk(v)) for k in kinds for n, v in list(vars(k).items()) if not n.startswith("__"))
            return (walk(type(x)), *[(n, walk(v)) for n, v in (fields_of(x) or {}).items()])
        finally:
            above.discard(id(x))

    return walk(value)


def _is_watched(value: object, space: dict[str, Any]) -> bool:
    if isinstance(value, tuple):
        return all(_is_watched(x, space) for x in value)
    if isinstance(value, _LIKE_NUMBERS):
        return True
    return space.get("__name__") == "__main__" and isinstance(_plain(value), types.FunctionType)


def _users_module(module: types.ModuleType) -> dict[str, Any]:
    file = getattr(module, "__file__", None)
    return vars(module) if file is not None and not is_library(file) and module.__name__ in sys.modules else {}


def _plain(value: Any) -> Any:
    from cute_dialect.front.jit import BoundMethod, plain

    if isinstance(value, BoundMethod):
        value = value.function
    if isinstance(value, types.MethodType):
        value = value.__func__
    return plain(value)


def _names(code: types.CodeType) -> Iterator[str]:
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _names(constant)
