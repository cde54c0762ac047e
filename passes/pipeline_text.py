"""Parser and printer of pass pipelines in upstream MLIR's syntax.

    builtin.module(cute-fold-static,attach-nvvm-target{chip=sm_90a opt-level=3},gpu.module(canonicalize))

An element is either a pass with options in braces, or the name of an op with a list of elements to run on ops of that
name.  Options are ``key=value``, separated by spaces; a value may be quoted or enclosed in braces.  Op names contain a
dot, and pass names do not.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias


class PipelineTextError(ValueError):
    """The text is not a valid pipeline; holds the message, the text and the offset of the error."""

    def __init__(self, message: str, text: str, offset: int):
        super().__init__(f"{message} (at '{text[offset : offset + 20]}')")
        self.message = message
        self.text = text
        self.offset = offset


@dataclass(frozen=True)
class PassElement:
    """A pass in a pipeline: ``name{key=value key2=value2}``; ``offset`` is its position in the text."""

    name: str
    options: Mapping[str, str] = field(default_factory=dict[str, str])
    offset: int = 0

    def __str__(self) -> str:
        return self.name + (f"{{{options_text(self.options)}}}" if self.options else "")


@dataclass(frozen=True)
class NestElement:
    """A nested pipeline: ``op.name(element, …)``."""

    op_name: str
    elements: tuple[Element, ...]
    offset: int = 0

    def __str__(self) -> str:
        return f"{self.op_name}({','.join(map(str, self.elements))})"


Element: TypeAlias = PassElement | NestElement


def options_text(options: Mapping[str, str]) -> str:
    """Print options as ``key=value key2="two words"``: the inverse of :func:`parse_options`."""
    return " ".join(f"{key}={_quoted(value)}" if value else key for key, value in options.items())


def _quoted(value: str) -> str:
    return f'"{value}"' if any(c in value for c in " \t,(){}") and not value.startswith("{") else value


def pipeline_text(elements: Iterable[Element]) -> str:
    """Print the elements inside ``builtin.module(…)``."""
    return str(NestElement("builtin.module", tuple(elements)))


def parse_pipeline(text: str) -> tuple[Element, ...]:
    """Parse the elements inside ``builtin.module(…)``, which may be omitted.

    >>> parse_pipeline("builtin.module(cse,gpu.module(canonicalize))")[1].op_name
    'gpu.module'
    """
    reader = _Reader(text)
    elements = reader.elements()
    reader.skip()
    if reader.at < len(text):
        raise PipelineTextError(f"unexpected '{text[reader.at]}' in the pass pipeline", text, reader.at)
    if len(elements) == 1 and isinstance(elements[0], NestElement) and elements[0].op_name == "builtin.module":
        return elements[0].elements
    return tuple(elements)


def parse_options(text: str) -> dict[str, str]:
    """Parse the options of one pass, without braces: ``chip=sm_90a features="+ptx83" verbose``.

    >>> parse_options("chip=sm_90a opt-level=3")
    {'chip': 'sm_90a', 'opt-level': '3'}
    """
    reader = _Reader(text)
    options = reader.options(len(text))
    return options


class _Reader:
    def __init__(self, text: str):
        self.text = text
        self.at = 0

    def skip(self) -> None:
        while self.at < len(self.text) and self.text[self.at].isspace():
            self.at += 1

    def peek(self) -> str:
        self.skip()
        return self.text[self.at] if self.at < len(self.text) else ""

    def fail(self, message: str, offset: int | None = None) -> PipelineTextError:
        return PipelineTextError(message, self.text, self.at if offset is None else offset)

    def elements(self) -> list[Element]:
        out: list[Element] = []
        if self.peek() in ("", ")"):
            return out
        while True:
            out.append(self.element())
            if self.peek() != ",":
                return out
            self.at += 1

    def element(self) -> Element:
        self.skip()
        start = self.at
        while self.at < len(self.text) and (self.text[self.at].isalnum() or self.text[self.at] in "-_."):
            self.at += 1
        name = self.text[start : self.at]
        if not name:
            found = f"'{self.text[start]}'" if start < len(self.text) else "the end"
            raise self.fail(f"expected the name of a pass or of an op, got {found}", start)
        after = self.peek()
        if after == "(":
            opened = self.at
            self.at += 1
            elements = self.elements()
            if self.peek() != ")":
                raise self.fail("expected ')' to close this list of passes", opened)
            self.at += 1
            return NestElement(name, tuple(elements), start)
        if "." in name:
            raise self.fail(f"expected '(' after the op name '{name}'", start)
        if after != "{":
            return PassElement(name, {}, start)
        end = self._closing(self.at)
        self.at += 1
        options = self.options(end)
        self.at = end + 1
        return PassElement(name, options, start)

    def _closing(self, opened: int) -> int:
        """Return the offset of the brace that matches the one at ``opened``."""
        depth = 0
        quote = ""
        for i in range(opened, len(self.text)):
            c = self.text[i]
            if quote:
                quote = "" if c == quote else quote
            elif c in "\"'":
                quote = c
            elif c == "{":
                depth += 1
            elif c == "}":
                depth -= 1
                if depth == 0:
                    return i
        raise self.fail("expected '}' to close these options", opened)

    def options(self, end: int) -> dict[str, str]:
        out: dict[str, str] = {}
        while True:
            self.skip()
            if self.at >= end:
                return out
            start = self.at
            while self.at < end and (self.text[self.at].isalnum() or self.text[self.at] in "-_."):
                self.at += 1
            key = self.text[start : self.at]
            if not key:
                raise self.fail(f"expected the name of an option, got '{self.text[start]}'", start)
            if key in out:
                raise self.fail(f"option '{key}' is given twice", start)
            out[key] = ""
            if self.at < end and self.text[self.at] == "=":
                self.at += 1
                out[key] = self._value(end)

    def _value(self, end: int) -> str:
        if self.at >= end:
            return ""
        first = self.text[self.at]
        if first in "\"'":
            close = self.text.find(first, self.at + 1, end)
            if close < 0:
                raise self.fail("this quote is not closed")
            value = self.text[self.at + 1 : close]
            self.at = close + 1
            return value
        if first == "{":
            close = self._closing(self.at)
            value = self.text[self.at : close + 1]
            self.at = close + 1
            return value
        start = self.at
        while self.at < end and not self.text[self.at].isspace():
            self.at += 1
        return self.text[start : self.at]
