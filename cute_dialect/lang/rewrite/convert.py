"""Conversion of Python functions into traceable twins, once per code object.

``converted(f)`` has the globals, closure, defaults and names of ``f``.  Its code calls the hooks
(:class:`cute_dialect.lang.control.runtime.Hooks`) wherever a value might be known only at run time.
"""

from __future__ import annotations

import sysconfig
import weakref
from collections.abc import Callable, Mapping
from inspect import CO_GENERATOR
from pathlib import Path
from types import CellType, CodeType, FunctionType, MethodType
from typing import Any, TypeVar

from cute_dialect.files import PACKAGE
from cute_dialect.lang.rewrite.code_digest import text_of
from cute_dialect.lang.rewrite.source import class_of, compiled_in, node_of
from cute_dialect.lang.tracing.errors import CompileError, SyntaxErrorInKernel
from cute_dialect.lang.tracing.recorder import called
from cute_dialect.lang.tracing.source_location import is_kernel_code

__all__ = [
    "Conversion",
    "asked_for",
    "conversion_of",
    "convert_package",
    "converted",
    "is_asked_for",
    "is_converted",
    "is_users",
    "native",
]

F = TypeVar("F", bound=Callable[..., Any])
_LIBRARIES = tuple(
    str(Path(p)) + "/" for key in ("stdlib", "platstdlib", "purelib", "platlib") if (p := sysconfig.get_path(key))
)
_SITE = ("/site-packages/", "/dist-packages/")
_ASKED_FOR: set[str] = set()
_users: dict[tuple[str, str], bool] = {}
_codes: dict[int, tuple[weakref.ref[CodeType], Conversion | None]] = {}
_made: dict[int, CodeType] = {}


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


class Conversion:
    """The converted twin of a code object."""

    __slots__ = ("cells", "code", "hooks", "last", "last_made", "runtime")

    def __init__(self, code: CodeType, module_globals: Mapping[str, object]):
        from cute_dialect.lang.control.runtime import Hooks
        from cute_dialect.lang.rewrite.control_flow import Rewriter
        from cute_dialect.lang.rewrite.expressions import RUNTIME
        from cute_dialect.lang.rewrite.loop_carried import without_carries

        for tight in (False, True):
            node = node_of(code, module_globals)
            if code.co_flags & CO_GENERATOR:
                without_carries(node, module_globals, code.co_filename)
            rewriter = Rewriter(code.co_filename, class_of(code.co_qualname), tight=tight)
            rewriter.function(node)
            try:
                made = compiled_in(node, code, (RUNTIME,))
                break
            except SyntaxError as e:
                if "nested blocks" not in str(e):
                    raise
        else:
            raise SyntaxErrorInKernel(
                "F150", f"'{code.co_name}' nests too many blocks", hint="move inner blocks into other functions"
            )
        self.code = made.replace(co_qualname=code.co_qualname)
        self.hooks = Hooks(rewriter.sites, module_globals)
        self.runtime = CellType(self.hooks)
        self.cells = tuple(-1 if name == RUNTIME else code.co_freevars.index(name) for name in self.code.co_freevars)
        self.last: weakref.ref[FunctionType] | None = None
        self.last_made: FunctionType | None = None
        _remember(self.code)

    def bind(self, f: FunctionType) -> FunctionType:
        """Return the converted twin of a function with this code."""
        called(f)
        made = self.last_made
        if self.last is not None and self.last() is f and made is not None and made.__defaults__ is f.__defaults__:
            made.__kwdefaults__ = f.__kwdefaults__
            return made
        closure = f.__closure__ or ()
        cells = tuple(self.runtime if k < 0 else closure[k] for k in self.cells)
        made = FunctionType(self.code, f.__globals__, f.__name__, f.__defaults__, cells)
        made.__kwdefaults__ = f.__kwdefaults__
        made.__qualname__ = f.__qualname__
        if not closure:
            self.last, self.last_made = weakref.ref(f), made
        return made


def _remember(code: CodeType) -> None:
    _made[id(code)] = code
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            _remember(inner)


def is_converted(code: CodeType) -> bool:
    """Return True for code produced by a conversion."""
    return id(code) in _made


def conversion_of(code: CodeType, module_globals: Mapping[str, object]) -> Conversion | None:
    """Return the conversion of a code object, or None if it has no source."""
    key = id(code)
    known = _codes.get(key)
    if known is not None and known[0]() is code:
        return known[1]
    text_of(code)  # Read the text for the digest first: it must not be newer than the converted code.
    try:
        made = Conversion(code, module_globals)
    except CompileError as e:
        if e.code != "F102":
            raise
        made = None
    codes = _codes  # The module's global may already be gone when the process ends.
    codes[key] = (weakref.ref(code, lambda _: codes.pop(key, None)), made)
    return made


def converted(f: Any) -> Any:
    """Return the twin of ``f`` that also handles values known only at run time.

    A function without source is returned unchanged.  Raises F101 if the file changed after it was imported.

    >>> converted(len) is len
    True
    """
    if isinstance(f, MethodType):
        return MethodType(converted(f.__func__), f.__self__)
    if not isinstance(f, FunctionType) or is_converted(f.__code__) or getattr(f, "__cute_native__", False):
        return f
    conversion = conversion_of(f.__code__, f.__globals__)
    if conversion is None:
        return f
    made = conversion.bind(f)
    made.__dict__.update(f.__dict__)
    made.__doc__, made.__module__ = f.__doc__, f.__module__
    made.__annotations__ = f.__annotations__
    return made
