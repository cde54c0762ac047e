"""Methods that a later module defines for a class, because they need the module's functions.

The class lists them with :func:`later_methods`, and the module defines them with :func:`method_of`.  The first call of
one imports the module, so that a program that only names a class loads no more than the class::

    later_methods(Tensor, indexing=("__getitem__", "__setitem__"))      # in tensors.py

    @method_of(Tensor)                                                   # in indexing.py
    def __getitem__(self: Tensor, coord: object) -> Any: ...
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from importlib import import_module
from typing import Any, TypeVar

__all__ = ["LATER_METHODS", "later_methods", "method_of"]

_F = TypeVar("_F", bound=Callable[..., Any])

LATER_METHODS: dict[type, dict[str, Iterable[str]]] = {}
"""For each class, the modules that define methods of it, and the names of these methods."""


def later_methods(cls: type, **modules: Iterable[str]) -> None:
    """Declare the methods of a class that later modules of this package define."""
    LATER_METHODS[cls] = modules
    for module, names in modules.items():
        for name in names:
            setattr(cls, name, _loading(cls, name, module))


def _loading(cls: type, name: str, module: str) -> Callable[..., Any]:
    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        import_module(f"{__package__}.{module}")
        found = getattr(cls, name)
        assert found is not method, f"{module} does not define {cls.__name__}.{name}"
        return found(self, *args, **kwargs)

    return method


def method_of(cls: type) -> Callable[[_F], _F]:
    """Decorate a function that becomes a method of a class of an earlier module."""

    def install(method: _F) -> _F:
        method.__qualname__ = f"{cls.__qualname__}.{method.__name__}"
        setattr(cls, method.__name__, method)
        return method

    return install
