"""Predicates of code: whether it is converted, and whether it belongs to the user.

*Convertible* code is the user's and this package's kernel code, but no other libraries.  The *user's* code excludes
this package and installed ones: a specialization watches it for changes.  :func:`convert_package` adds a package to
both.
"""

from __future__ import annotations

import sys
import sysconfig
from collections.abc import Callable, Collection, Mapping
from functools import lru_cache
from pathlib import Path
from types import ModuleType
from typing import Any, TypeVar

from cute_dialect.files import PACKAGE
from cute_dialect.lang.tracing.source_location import is_kernel_code

F = TypeVar("F", bound=Callable[..., Any])
_LIBRARIES = tuple(
    str(Path(p)) + "/" for key in ("stdlib", "platstdlib", "purelib", "platlib") if (p := sysconfig.get_path(key))
)
_SITE = ("/site-packages/", "/dist-packages/")
_ASKED_FOR: set[str] = set()
_convertible: dict[tuple[str, str], bool] = {}


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
    _convertible.clear()


def asked_for() -> frozenset[str]:
    """Return the packages given to :func:`convert_package`."""
    return frozenset(_ASKED_FOR)


def is_convertible(path: str, module: str | None) -> bool:
    """Return True if the functions of a file are converted: the user's code, and this package's kernel code."""
    key = (path, module or "")
    known = _convertible.get(key)
    if known is None:
        known = _convertible[key] = _is_convertible(path, module or "")
    return known


def is_asked_for(module: str | None) -> bool:
    """Return True if a module, or a package above it, was given to :func:`convert_package`."""
    parts = (module or "").split(".")
    return any(".".join(parts[: k + 1]) in _ASKED_FOR for k in range(len(parts)))


def _is_convertible(path: str, module: str) -> bool:
    if is_asked_for(module):
        return True
    if path.startswith("<"):
        return not path.startswith(("<frozen", "<string>"))
    if path.startswith(PACKAGE):
        return is_kernel_code(path)
    return not (path.startswith(_LIBRARIES) or any(s in path for s in _SITE))


def has_convertible_globals(names: Mapping[str, Any]) -> bool:
    """Return True if these are the globals of a user's module."""
    name = names.get("__name__", "")
    file = names.get("__file__")
    if name.split(".")[0] == "cute_dialect":
        return False
    return name not in sys.modules or name == "__main__" or (file is not None and is_convertible(file, name))


@lru_cache(maxsize=4096)
def is_convertible_class(cls: type) -> bool:
    """Return True for a user-defined class, or one of this package's kernel code."""
    module = sys.modules.get(cls.__module__)
    if module is None or cls.__module__ == "__main__":
        return True
    file = getattr(module, "__file__", None)
    return file is not None and is_convertible(file, cls.__module__)


def attributes_of(module: ModuleType, names: Collection[str]) -> list[Any]:
    """Return the values of these names in a user's module and in the user's modules that it refers to."""
    found: list[Any] = []
    seen: set[int] = set()
    todo = [module]
    while todo:
        held = vars(todo.pop())
        if id(held) in seen or not has_convertible_globals(held):
            continue
        seen.add(id(held))
        values = [held[n] for n in names if n in held]
        found += values
        todo += [v for v in values if isinstance(v, ModuleType)]
    return found


# ----------------------------------------------------------------------------------------------------- the user's code


@lru_cache(maxsize=1024)
def is_installed(filename: str) -> bool:
    """Return True if a file belongs to Python, to an installed package, or to this package."""
    return filename.startswith(("<frozen", *_LIBRARIES, PACKAGE))


def is_users_function(function: Any) -> bool:
    """Return True if a function is user code, or of a package given to :func:`convert_package`."""
    code = getattr(function, "__code__", None)
    if code is None:
        return False
    return not is_installed(code.co_filename) or is_asked_for(getattr(function, "__module__", None))


@lru_cache(maxsize=1024)
def is_users_class(kind: type) -> bool:
    """Return True if a class is defined outside installed packages."""
    if kind.__module__ == "__main__":
        return True
    file = getattr(sys.modules.get(kind.__module__), "__file__", None)
    return file is not None and not is_installed(file)


def is_users_module(module: ModuleType) -> bool:
    """Return True if a module is user code. It may have no file."""
    file = getattr(module, "__file__", None)
    if file is not None:
        return not is_installed(file)
    return module.__name__.partition(".")[0] not in sys.stdlib_module_names
