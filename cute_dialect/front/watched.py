"""Globals that a traced function has as constants: a call looks whether they are still what they were."""

from __future__ import annotations

import sys
import sysconfig
import types
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any

from cute_dialect.front.dtypes import Numeric

__all__ = ["is_users", "watched_globals"]

_LIKE_NUMBERS = (int, float, str, bytes, Numeric, type(None))


@lru_cache(maxsize=1024)
def _is_library(filename: str) -> bool:
    """Tell whether a file belongs to Python, to an installed package, or to this one."""
    if filename.startswith("<frozen"):
        return True
    paths = sysconfig.get_paths()
    roots = [paths[n] for n in ("stdlib", "platstdlib", "purelib", "platlib")]
    return any(filename.startswith(r + "/") for r in roots) or "/cute_dialect/" in filename


def is_users(function: Any) -> bool:
    """Tell whether a function was written by the user: it is in no installed package."""
    code = getattr(function, "__code__", None)
    return code is not None and not _is_library(code.co_filename)


def watched_globals(function: Callable[..., Any]) -> list[tuple[dict[str, Any], str, object]]:
    """Return the number-like globals that a function and what it calls name: the namespace, the name, the value.

    Of functions in ``__main__`` (a script, a notebook) those that are named are watched too.
    """
    found: dict[tuple[int, str], tuple[dict[str, Any], str, object]] = {}
    seen: set[int] = set()
    left: list[Any] = [function]
    while left:
        f = _plain(left.pop())
        if not isinstance(f, types.FunctionType) or id(f) in seen or not (is_users(f) or f is function):
            continue
        seen.add(id(f))
        space = f.__globals__
        names = set(_names(f.__code__))
        for name in names:
            if name in space:
                value = space[name]
                if _is_watched(value, space):
                    found[id(space), name] = (space, name, value)
                if isinstance(value, types.ModuleType):
                    inner = _users_module(value)
                    for n in names & inner.keys():
                        left.append(inner[n])
                        if isinstance(inner[n], _LIKE_NUMBERS):
                            found[id(inner), n] = (inner, n, inner[n])
                left.append(value)
        for cell in f.__closure__ or ():
            try:
                left.append(cell.cell_contents)
            except ValueError:  # not set yet
                continue
    return list(found.values())


def _is_watched(value: object, space: dict[str, Any]) -> bool:
    if isinstance(value, tuple):
        return all(_is_watched(x, space) for x in value)
    if isinstance(value, _LIKE_NUMBERS):
        return True
    return space.get("__name__") == "__main__" and isinstance(_plain(value), types.FunctionType)


def _users_module(module: types.ModuleType) -> dict[str, Any]:
    file = getattr(module, "__file__", None)
    return vars(module) if file is not None and not _is_library(file) and module.__name__ in sys.modules else {}


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
