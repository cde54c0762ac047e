"""The functions that are converted: the user's code and this package's kernel code, but no other libraries."""

from __future__ import annotations

import sys
import sysconfig
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any, TypeVar

from cute_dialect.files import PACKAGE
from cute_dialect.lang.tracing.source_location import is_kernel_code

__all__ = [
    "asked_for",
    "attributes_of",
    "convert_package",
    "is_asked_for",
    "is_users",
    "is_users_module",
    "native",
]

F = TypeVar("F", bound=Callable[..., Any])
_LIBRARIES = tuple(
    str(Path(p)) + "/" for key in ("stdlib", "platstdlib", "purelib", "platlib") if (p := sysconfig.get_path(key))
)
_SITE = ("/site-packages/", "/dist-packages/")
_ASKED_FOR: set[str] = set()
_users: dict[tuple[str, str], bool] = {}


def native(f: F) -> F:
    """Exclude a function from conversion: it runs as plain Python and sees run-time values as objects.

    >>> @native
    ... def table(n):
    ...     return [i * i for i in range(n)]
    """
    f.__cute_native__ = True  # pyright: ignore
    return f


def convert_package(name: str) -> None:
    """Convert the functions of an installed package or module too, when kernels call them."""
    _ASKED_FOR.add(name)
    _users.clear()


def asked_for() -> frozenset[str]:
    """Return the packages given to :func:`convert_package`."""
    return frozenset(_ASKED_FOR)


def is_users(path: str, module: str | None) -> bool:
    """Return True if the functions of a file are converted: the user's code, and this package's kernel code."""
    key = (path, module or "")
    known = _users.get(key)
    if known is None:
        known = _users[key] = _is_users(path, module or "")
    return known


def is_asked_for(module: str | None) -> bool:
    """Return True if a module, or a package above it, was given to :func:`convert_package`."""
    parts = (module or "").split(".")
    return any(".".join(parts[: k + 1]) in _ASKED_FOR for k in range(len(parts)))


def _is_users(path: str, module: str) -> bool:
    if is_asked_for(module):
        return True
    if path.startswith("<"):
        return not path.startswith(("<frozen", "<string>"))
    if path.startswith(PACKAGE):
        return is_kernel_code(path)
    return not (path.startswith(_LIBRARIES) or any(s in path for s in _SITE))


def is_users_module(names: Mapping[str, Any]) -> bool:
    """Return True if these are the globals of a user's module."""
    name = names.get("__name__", "")
    file = names.get("__file__")
    if name.split(".")[0] == "cute_dialect":
        return False
    return name not in sys.modules or name == "__main__" or (file is not None and is_users(file, name))


def attributes_of(module: ModuleType, names: Collection[str]) -> list[Any]:
    """Return the values of these names in a user's module and in the user's modules that it refers to."""
    found: list[Any] = []
    seen: set[int] = set()
    todo = [module]
    while todo:
        held = vars(todo.pop())
        if id(held) in seen or not is_users_module(held):
            continue
        seen.add(id(held))
        values = [held[n] for n in names if n in held]
        found += values
        todo += [v for v in values if isinstance(v, ModuleType)]
    return found
