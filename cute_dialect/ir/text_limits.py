"""Limits on input text, including text passed to upstream MLIR without being parsed here.

Upstream stores each type once but prints it in full (:mod:`.parsing` explains the problem), and takes a minute to read
a number of 20,000 digits.
"""

from __future__ import annotations

import re
from typing import NamedTuple

MAX_DIGITS = 600
"""Maximum number of digits of a number.  Python refuses to convert longer numbers to and from text; its limit can be
set to 640 or more."""
ROOM = 1 << 22
"""Number of characters and elements to which aliases and dense constants may expand in any file."""
ROOM_A_CHARACTER = 64
"""Additional number per character of the file."""

_LONG = re.compile(rf"[0-9]{{{MAX_DIGITS + 1}}}")
_STRING_OR_NUMBER = re.compile(
    r'"(?:[^"\\\n]++|\\.)*+"|//[^\n]*+|(?!x[0-9])[A-Za-z_$#!%@^][\w$.-]*+|0x[0-9A-Fa-f]++'
    rf"|([0-9]{{{MAX_DIGITS + 1},}}+)(?![.])"
)
_DEFINES = re.compile(r"[#!][\w$.-]+[ \t]*=(?!=)")
_TOKEN = re.compile(
    r'"(?:[^"\\\n]++|\\.)*+"|//[^\n]*+|->|([#!][\w$.-]+)[ \t]*=(?!=)|([#!][A-Za-z_$][\w$.-]*)'
    r"|([<(\[{])|([>)\]}])|(\n)"
)


def room(length: int) -> int:
    """Return the number of characters and elements to which aliases may expand in a file of ``length`` characters."""
    return ROOM + ROOM_A_CHARACTER * length


def too_much(what: str, got: int, length: int) -> str:
    """Return the message for a file in which ``what`` exceeds the limit."""
    return (
        f"expected aliases and dense constants that expand to at most {room(length)} characters and elements in a file "
        f"of this length, got {got} with {what}"
    )


def too_long(digits: int) -> str:
    """Return the message for a number of ``digits`` digits."""
    return f"expected a number of at most {MAX_DIGITS} digits, got {digits}"


class Overflow(NamedTuple):
    """A violation of a limit: its span and the message."""

    start: int
    end: int
    message: str


class _Definition:
    def __init__(self, start: int, end: int):
        self.start, self.end = start, end
        self.own = 0
        self.uses: list[str] = []


def text_overflow(text: str) -> Overflow | None:
    """Return the first number that is too long, or the first alias that expands too far, or None.

    >>> text_overflow("!a = i32\\n!b = tuple<!a, !a>\\n")
    """
    if _LONG.search(text) is not None:
        for found in _STRING_OR_NUMBER.finditer(text):
            if found[1] is not None:
                return Overflow(found.start(), found.end(), too_long(len(found[1])))
    return _alias_overflow(text)


def _alias_overflow(text: str) -> Overflow | None:
    if _DEFINES.search(text) is None:
        return None
    definitions = _definitions(text)
    sizes: dict[str, int] = {}
    limit = room(len(text))
    for name in definitions:
        if name in sizes:
            continue
        stack, met = [name], {name}
        while stack:
            at = stack[-1]
            definition = definitions[at]
            inner = next((u for u in definition.uses if u in definitions and u not in met), None)
            if inner is not None:
                stack.append(inner)
                met.add(inner)
                continue
            stack.pop()
            if at in sizes:
                continue
            sizes[at] = size = definition.own + sum(sizes.get(u, 0) for u in definition.uses)
            if size > limit:
                what = f"the alias '{at}' of {size}"
                return Overflow(definition.start, definition.end, too_much(what, size, len(text)))
    return None


def _definitions(text: str) -> dict[str, _Definition]:
    """Return the aliases that a text defines.  A definition ends at the end of the line that closes its brackets."""
    definitions: dict[str, _Definition] = {}
    here: _Definition | None = None
    depth = 0
    for found in _TOKEN.finditer(text):
        name, use, opening, closing, newline = found.groups()
        if name is not None and (here is None or depth <= 0):
            if here is not None:
                here.own = found.start() - here.start
            here = definitions.setdefault(name, _Definition(found.start(1), found.end(1)))
            depth = 0
        elif here is None:
            continue
        elif use is not None:
            here.uses.append(use)
        elif opening is not None:
            depth += 1
        elif closing is not None:
            depth -= 1
        elif newline is not None and depth <= 0:
            here.own, here = found.start() - here.start, None
    if here is not None:
        here.own = len(text) - here.start
    return definitions
