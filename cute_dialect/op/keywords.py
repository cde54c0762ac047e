"""Check for keyword arguments that a function does not have.

>>> def scale(x, factor=1.0, **unknown): ...
>>> check_keywords("scale", scale, {"facter": 2.0}, interpreted=False)
Traceback (most recent call last):
    ...
cute_dialect.op.errors.ArgumentError: scale() has no argument 'facter'; did you mean 'factor'? Arguments: x, factor
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from difflib import get_close_matches
from functools import lru_cache, wraps
from inspect import Parameter, signature
from typing import Any, TypeVar, cast

from cute_dialect.op.errors import ArgumentError

__all__ = ["check_keywords", "checks_keywords"]


def check_keywords(
    call: str, function: Callable[..., Any], given: Mapping[str, object], *, also: Callable[..., Any] | None = None,
    without: Sequence[str] = (), interpreted: bool = True,
) -> None:  # fmt: skip
    """Raise ArgumentError if ``given`` has a name that is not an argument of the function.

    Args:
        call: the function's public name.
        given: the keyword arguments that its ``**`` parameter received.
        also: a function whose arguments are accepted as well, except those in ``without``.
        interpreted: the function also accepts the options of the interpreter.
    """
    from cute_dialect.op.product import Interpreted  # Lazy: modules that product imports decorate their functions.

    names, options = _names(function), list(Interpreted.__annotations__) if interpreted else []
    others = () if also is None else _names(also)
    for name in given:
        if name in names or name in options or (name in others and name not in without):
            continue
        names = list(dict.fromkeys([*names, *[n for n in others if n not in without]]))
        near = get_close_matches(name, names + options, 1)
        guess = f"; did you mean '{near[0]}'?" if near else ";"
        more = f'; with device="cpu" also {", ".join(sorted(options))}' if options else ""
        raise ArgumentError(f"{call}() has no argument '{name}'{guess} Arguments: {', '.join(names)}{more}")


_F = TypeVar("_F", bound=Callable[..., Any])


def checks_keywords(function: _F) -> _F:
    """Decorate a function, or the ``__init__`` of a class: an unknown keyword argument raises ArgumentError.

    Only for functions that need not be fast: the decorator costs a call.
    """

    @wraps(function)
    def checked(*args: Any, **kwargs: Any) -> Any:
        if any(name not in known for name in kwargs):
            call = type(args[0]).__name__ if function.__name__ == "__init__" else function.__name__
            check_keywords(call, function, kwargs, interpreted=False)
        return function(*args, **kwargs)

    known = frozenset(_names(function))
    return cast("_F", checked)


@lru_cache(maxsize=256)
def _names(function: Callable[..., Any]) -> tuple[str, ...]:
    kinds = (Parameter.VAR_KEYWORD, Parameter.VAR_POSITIONAL)
    return tuple([n for n, p in signature(function).parameters.items() if p.kind not in kinds and n != "self"])
