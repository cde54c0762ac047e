"""Contents of code objects: bytecode without positions, normalized source text, and global names read.

>>> def f(x):
...     return math.floor(x) + limit
>>> [(r.name, r.attributes) for r in reads_of(f.__code__)]
[('math', ('floor',)), ('limit', ())]
"""

from __future__ import annotations

import linecache
import weakref
from collections.abc import Iterator
from functools import lru_cache
from opcode import opmap
from sys import version_info
from types import CodeType
from typing import NamedTuple

__all__ = ["Read", "codes_in", "content_of", "reads_of", "text_of"]

_GLOBAL, _NAME, _CONST, _IMPORT = (opmap[n] for n in ("LOAD_GLOBAL", "LOAD_NAME", "LOAD_CONST", "IMPORT_NAME"))
_NAMES = {_NAME, opmap.get("LOAD_FROM_DICT_OR_GLOBALS", _NAME)}
_SMALL_INT = opmap.get("LOAD_SMALL_INT", -1)
_ATTRIBUTES = {opmap[n] for n in ("LOAD_ATTR", "LOAD_METHOD") if n in opmap}
_EXTENDED, _CACHE, _NOP = opmap["EXTENDED_ARG"], opmap.get("CACHE", 0), opmap["NOP"]
_ATTRIBUTE_SHIFT = int(version_info >= (3, 12))
"""The lowest bit of the argument of LOAD_GLOBAL (since 3.11) and LOAD_ATTR (since 3.12) is a flag."""


class Read(NamedTuple):
    """A read of a global name or an imported module, with the chain of attributes read from it.

    ``level`` is the level of the import, or -1 for a name.
    """

    name: str
    attributes: tuple[str, ...]
    level: int = -1


def codes_in(code: CodeType) -> Iterator[CodeType]:
    """Yield a code object and, recursively, the code objects of its nested functions."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from codes_in(constant)


@lru_cache(maxsize=4096)
def reads_of(code: CodeType) -> tuple[Read, ...]:
    """Return the reads of a function and its nested functions, without duplicates, in code order."""
    return tuple(dict.fromkeys(r for c in codes_in(code) for r in _reads(c)))


def _reads(code: CodeType) -> Iterator[Read]:
    raw, names, consts = code.co_code, code.co_names, code.co_consts
    above = 0
    name: str | None = None
    attributes: list[str] = []
    loaded: list[object] = []
    for at in range(0, len(raw), 2):
        op = raw[at]
        if op in (_CACHE, _NOP):
            continue
        arg = raw[at + 1] | above
        if op == _EXTENDED:
            above = arg << 8
            continue
        above = 0
        if op in _ATTRIBUTES and name is not None:
            attributes.append(names[arg >> _ATTRIBUTE_SHIFT if op == opmap["LOAD_ATTR"] else arg])
            continue
        if name is not None:
            yield Read(name, tuple(attributes))
            name = None
        if op == _GLOBAL or op in _NAMES:
            name, attributes = names[arg >> 1 if op == _GLOBAL else arg], []
        elif op == _CONST:
            loaded.append(consts[arg])
        elif op == _SMALL_INT:
            loaded.append(arg)
        elif op == _IMPORT:
            level = loaded[-2] if len(loaded) > 1 else 0
            yield Read(names[arg], (), level if isinstance(level, int) else 0)
    if name is not None:
        yield Read(name, tuple(attributes))


_texts: dict[int, tuple[weakref.ref[CodeType], tuple[str, ...]]] = {}


def text_of(code: CodeType) -> tuple[str, ...]:
    """Return the source lines of a function without comments, blank lines and indentation; () if there is no source.

    The text is part of the compile key because bytecode does not contain the annotations of local variables, which
    convert values.  A line keeps its ``#`` if that may be part of a string.  The file is read once, before the function
    is converted.
    """
    key = id(code)
    known = _texts.get(key)
    if known is None or known[0]() is not code:
        known = _texts[key] = (weakref.ref(code, lambda _: _texts.pop(key, None)), _text(code))
    return known[1]


def _text(code: CodeType) -> tuple[str, ...]:
    linecache.checkcache(code.co_filename)
    lines = linecache.getlines(code.co_filename)
    last = max((line for c in codes_in(code) for _, _, line in c.co_lines() if line), default=0)
    found: list[str] = []
    before = ""
    for line in lines[code.co_firstlineno - 1 : last]:
        text = line.strip()
        if (text := text if _may_be_quoted(line, before) else line.partition("#")[0].strip()) != "":
            found.append(text)
        before = line
    return tuple(found)


def _may_be_quoted(line: str, before: str) -> bool:
    """Return True if the first ``#`` of a line may be part of a string, possibly one opened on an earlier line."""
    head, _, tail = line.partition("#")
    return "'" in head or '"' in head or "'''" in tail or '"""' in tail or before.endswith("\\\n")


def content_of(code: CodeType) -> tuple[object, ...]:
    """Return everything in a code object that affects execution. Source positions are left out."""
    return (
        code.co_name, code.co_code, code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars, code.co_flags,
        code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount, code.co_exceptiontable,
        tuple([_constant(c) for c in code.co_consts]),
    )  # fmt: skip


def _constant(value: object) -> object:
    if isinstance(value, CodeType):
        return content_of(value)
    if isinstance(value, tuple):
        return ("tuple", *[_constant(x) for x in value])
    if isinstance(value, frozenset):
        return ("frozenset", *sorted(map(repr, map(_constant, value))))
    return (type(value).__name__, value.hex() if isinstance(value, float) else repr(value))
