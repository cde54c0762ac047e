"""A quicker start for programs: what a short run never calls is not made.

Half of the time that importing xDSL takes goes into two things of which a run of ``cute-opt`` uses a tenth: compiling
the methods of its data classes (some 1,100: five for a frozen class), and reading the declarative assembly formats of
its ops.  :func:`methods_made_later` and :func:`formats_read_later` put both off to the first use.

For our own programs only, around all that they do; a process that has us as a library never comes here.
"""

# What is replaced is private to the standard library, and checked to be what we know.
# pyright: reportAttributeAccessIssue=false, reportPrivateUsage=false, reportUnknownMemberType=false, reportUnknownVariableType=false

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from xdsl.irdl import OpDef
    from xdsl.irdl.declarative_assembly_format import FormatProgram

_CODE = ("name", "args", "body", "globals", "locals", "return_type")
"""The parameters of ``dataclasses._create_fn`` in CPython 3.11 and 3.12 (3.13 compiles a class's methods at once)."""


@contextmanager
def methods_made_later() -> Generator[None]:
    """Inside, the methods that ``@dataclass`` writes are compiled when they are first called.

    Does nothing where :mod:`dataclasses` is not built as expected.

    >>> with methods_made_later():
    ...     @dataclasses.dataclass(frozen=True)
    ...     class Point:
    ...         x: int
    ...         y: int = 0
    >>> Point(1) == Point(1, 0), hash(Point(1)) == hash(Point(1)), Point(2)
    (True, True, Point(x=2, y=0))
    """
    create: Callable[..., Callable[..., object]] | None = getattr(dataclasses, "_create_fn", None)
    code = getattr(create, "__code__", None)
    if create is None or code is None or code.co_varnames[: code.co_argcount + code.co_kwonlyargcount] != _CODE:
        yield
        return
    made = create

    def later(name: str, *parts: object, **more: object) -> Callable[..., object]:
        return _later(made, name, parts, more)

    dataclasses._create_fn = later
    try:
        yield
    finally:
        dataclasses._create_fn = made


def _later(
    create: Callable[..., Callable[..., object]], name: str, parts: tuple[object, ...], more: dict[str, object]
) -> Callable[..., object]:
    real: Callable[..., object] | None = None

    def method(self: object, /, *arguments: object, **named: object) -> object:
        nonlocal real
        if real is None:
            real = create(name, *parts, **more)
            real.__qualname__ = method.__qualname__
            for cls in type(self).__mro__:
                if cls.__dict__.get(name) is method:
                    setattr(cls, name, real)
        return real(self, *arguments, **named)

    method.__name__ = name
    method.__qualname__ = name
    return method


@contextmanager
def formats_read_later() -> Generator[None]:
    """Inside, the ``assembly_format`` of an op that is defined is read when an op is first parsed or printed by it."""
    from xdsl.irdl.declarative_assembly_format import FormatProgram

    read = FormatProgram.from_str

    def later(input: str, op_def: OpDef) -> _Program:
        return _Program(read, input, op_def)

    FormatProgram.from_str = staticmethod(later)
    try:
        yield
    finally:
        FormatProgram.from_str = staticmethod(read)


class _Program:
    """Stands for the program of a format until it is needed."""

    def __init__(self, read: Callable[[str, OpDef], FormatProgram], text: str, op_def: OpDef):
        self._read = read
        self._text = text
        self._op_def = op_def

    def __getattr__(self, name: str) -> object:
        program = self._read(self._text, self._op_def)
        self.parse = program.parse
        self.print = program.print
        return getattr(program, name)
