"""A quicker start for programs: what a short run never calls is not made.

Half of the time that importing xDSL takes goes into things of which a run of ``cute-opt`` uses a tenth: compiling the
methods of its data classes (some 1,100: five for a frozen class), and the definitions of its ops and attributes.
:func:`methods_made_later`, and :func:`.quick_definitions.definitions_made_later`, put them off to the first use.

For our own programs only, around all that they do; a process that has us as a library never comes here.
"""

# What is replaced is private to the standard library, and checked to be what we know.
# pyright: reportAttributeAccessIssue=false, reportPrivateUsage=false, reportUnknownMemberType=false, reportUnknownVariableType=false

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from typing import NoReturn, cast

from cute_dialect.tools.quick_modules import met_later

_CODE = ("name", "args", "body", "globals", "locals", "return_type")
"""The parameters of ``dataclasses._create_fn`` in CPython 3.11 and 3.12 (3.13 compiles a class's methods at once)."""
_CALLS = 8
"""How often a method is called before it is compiled; what stands in for it is slower."""


def leave(status: int) -> NoReturn:
    """End the process at once: taking xDSL's and MLIR's objects apart would cost a tenth of a short run."""
    for stream in (sys.stdout, sys.stderr):
        try:
            if stream is not None:
                stream.flush()
        except BrokenPipeError:
            status = 1
    os._exit(status)


@contextmanager
def methods_made_later() -> Generator[None]:
    """Inside, the methods that ``@dataclass`` writes are compiled when they have been called some times.

    Does nothing where :mod:`dataclasses` is not built as expected.

    >>> import dataclasses
    >>> with methods_made_later():
    ...     @dataclasses.dataclass(frozen=True)
    ...     class Point:
    ...         x: int
    ...         y: int = 0
    >>> Point(1) == Point(1, 0), hash(Point(1)) == hash(Point(1)), Point(2)
    (True, True, Point(x=2, y=0))
    """
    met_later("tokenize", "inspect")
    import dataclasses
    import inspect

    create: Callable[..., Callable[..., object]] | None = getattr(dataclasses, "_create_fn", None)
    code = getattr(create, "__code__", None)
    if create is None or code is None or code.co_varnames[: code.co_argcount + code.co_kwonlyargcount] != _CODE:
        yield
        return
    made = create

    def later(name: str, args: Sequence[str], body: Sequence[str], **more: object) -> Callable[..., object]:
        return _later(made, name, args, body, more)

    dataclasses._create_fn = later
    dataclasses.inspect = _NoSignature()
    try:
        yield
    finally:
        dataclasses._create_fn = made
        dataclasses.inspect = inspect


class _NoSignature:
    """:mod:`inspect` without the signature that :mod:`dataclasses` makes a docstring of, where a class has none."""

    def __getattr__(self, name: str) -> object:
        import inspect

        return getattr(inspect, name)

    @staticmethod
    def signature(of: type) -> str:
        """Stands for a signature."""
        return "(…)"


def _later(
    create: Callable[..., Callable[..., object]],
    name: str,
    args: Sequence[str],
    body: Sequence[str],
    more: dict[str, object],
) -> Callable[..., object]:
    simple: Callable[..., object] | None = None
    real: Callable[..., object] | None = None
    calls = -1

    def method(self: object, /, *arguments: object, **named: object) -> object:
        nonlocal calls, real, simple
        calls += 1
        if real is None and calls < _CALLS:
            from cute_dialect.tools.quick_methods import Unfit, interpreted

            if calls == 0:
                simple = interpreted(name, args, body, cast("dict[str, object]", more.get("locals") or {}))
            if simple is not None:
                try:
                    return simple(self, *arguments, **named)
                except Unfit:
                    pass  # the method says what is wrong
        if real is None:
            real = create(name, args, body, **more)
            real.__qualname__ = method.__qualname__
            for cls in type(self).__mro__:
                if cls.__dict__.get(name) is method:
                    setattr(cls, name, real)
        return real(self, *arguments, **named)

    method.__name__ = name
    method.__qualname__ = name
    return method
