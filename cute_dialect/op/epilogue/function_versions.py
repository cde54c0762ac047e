"""Versions of users' functions: a function that was edited in place counts as another one.

Kernels and recorded calls are cached by the identity of the functions in them.  :func:`current` returns the function
itself until its code, its defaults, or what it reads changes (``hook.__code__ = …``, a global, a variable of an
enclosing function); from then on it returns a copy, a new one after each change.

>>> def double(x): return 2 * x
>>> def triple(x): return 3 * x
>>> current(double) is double
True
>>> double.__code__ = triple.__code__
>>> current(double) is double, current(double) is current(double), current(double)(2)
(False, True, 6)
"""

from __future__ import annotations

import copy
from types import FunctionType, MethodType
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:  # pragma: no cover
    from cute_dialect.lang.calls.cache.dependencies import Watched

__all__ = ["current"]

_MOST = 1024
"""Maximum number of functions whose versions are tracked."""


class _Version(NamedTuple):
    function: Any
    """The function that the user passed; the reference keeps its id from being reused."""
    watched: Watched
    stands_for: Any
    """The function that caches use as the key of this version."""


_versions: dict[int, _Version] = {}
_forgotten = False
"""True if versions were dropped, so that a function without an entry may be a later version."""


def current(function: Any) -> Any:
    """Return the object that represents the current version of a function; None for None."""
    global _forgotten
    if function is None or not callable(function):
        return function
    known = _versions.get(id(function))
    if known is not None and known.function is function and not known.watched.has_changed():
        return known.stands_for
    # imported late: calls without user functions do not need the language
    from cute_dialect.lang.calls.cache.dependencies import watched_by  # late: start-up

    if len(_versions) >= _MOST:
        _versions.clear()
        _forgotten = True
    made = function if known is None and not _forgotten else _copied(function)
    _versions[id(function)] = _Version(function, watched_by(function), made)
    return made


def _copied(function: Any) -> Any:
    """Return a function with the same behavior that does not compare equal to it."""
    if isinstance(function, MethodType):
        return MethodType(_copied(function.__func__), function.__self__)
    if not isinstance(function, FunctionType):
        return copy.copy(function)
    made = FunctionType(
        function.__code__, function.__globals__, function.__name__, function.__defaults__, function.__closure__
    )
    made.__kwdefaults__ = function.__kwdefaults__
    made.__qualname__, made.__module__ = function.__qualname__, function.__module__
    made.__dict__.update(function.__dict__)
    return made
