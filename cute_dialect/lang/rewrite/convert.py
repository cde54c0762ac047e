"""Conversion of Python functions into traceable twins, once per code object.

The twin has the globals, closure, defaults and names of the function.  Its code calls the methods of a runtime object
wherever a value might be known only at run time.  The caller of the conversion creates that object; it is a
:class:`cute_dialect.lang.control.runtime.Hooks`.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Mapping
from inspect import CO_GENERATOR
from types import CellType, CodeType, FunctionType
from typing import TYPE_CHECKING, Any

from cute_dialect.errors import CompileError
from cute_dialect.lang.rewrite.control_flow import Rewriter
from cute_dialect.lang.rewrite.desugaring import without_carries
from cute_dialect.lang.rewrite.expressions import RUNTIME
from cute_dialect.lang.rewrite.source import class_of, codes_in, compiled_in, node_of, text_of
from cute_dialect.lang.tracing.errors import SyntaxErrorInKernel
from cute_dialect.lang.tracing.recorder import called

if TYPE_CHECKING:
    from cute_dialect.lang.rewrite.analysis import Site

Runtime = Callable[["list[Site]", Mapping[str, Any]], object]
"""Creates the runtime object of a function from its branches and loops and its globals."""

_codes: dict[int, tuple[weakref.ref[CodeType], Conversion | None]] = {}
_made: dict[int, CodeType] = {}


class Conversion:
    """The converted twin of a code object."""

    __slots__ = ("cells", "code", "last", "last_made", "runtime")

    def __init__(self, code: CodeType, module_globals: Mapping[str, object], runtime: Runtime):
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
        self.runtime = CellType(runtime(rewriter.sites, module_globals))
        self.cells = tuple(-1 if name == RUNTIME else code.co_freevars.index(name) for name in self.code.co_freevars)
        self.last: weakref.ref[FunctionType] | None = None
        self.last_made: FunctionType | None = None
        _made.update((id(c), c) for c in codes_in(self.code))

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


def is_converted(code: CodeType) -> bool:
    """Return True for code produced by a conversion."""
    return id(code) in _made


def conversion_of(code: CodeType, module_globals: Mapping[str, object], runtime: Runtime) -> Conversion | None:
    """Return the conversion of a code object, or None if it has no source."""
    key = id(code)
    known = _codes.get(key)
    if known is not None and known[0]() is code:
        return known[1]
    text_of(code)  # Read the text for the digest first: it must not be newer than the converted code.
    try:
        made = Conversion(code, module_globals, runtime)
    except CompileError as e:
        if e.code != "F102":
            raise
        made = None
    codes = _codes  # The module's global may already be gone when the process ends.
    codes[key] = (weakref.ref(code, lambda _: codes.pop(key, None)), made)
    return made
