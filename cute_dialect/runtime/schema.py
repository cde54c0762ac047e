"""Checks of plain data that was read from a file: what a field may be, as a value, and messages that name the field.

>>> check = record({"name": text(), "block": nullable(list_of(integer(1, 1024), 3))})
>>> check({"name": "add", "block": [128, 1, 1]}, "kernel")
>>> check({"name": "add", "block": [128, 0, 1]}, "kernel")
Traceback (most recent call last):
...
cute_dialect.runtime.schema.SchemaError: kernel.block[1]: expected an integer from 1 to 1024, got 0
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import TypeAlias, cast

__all__ = [
    "Check",
    "SchemaError",
    "expected",
    "integer",
    "list_of",
    "map_of",
    "nullable",
    "one_of",
    "record",
    "row",
    "text",
]

Check: TypeAlias = Callable[[object, str], None]
"""Looks at a value and the name of its field.  Raises :class:`SchemaError`."""


class SchemaError(Exception):
    """A field is not what it may be; the message names the field, what was expected, and what came."""


def expected(where: str, what: str, got: object) -> SchemaError:
    """Return the error of a field with a wrong value."""
    try:
        shown = json.dumps(got)
    except (TypeError, ValueError, RecursionError):
        shown = type(got).__name__
    return SchemaError(f"{where}: expected {what}, got {shown if len(shown) <= 80 else shown[:77] + '...'}")


def integer(low: int, high: int) -> Check:
    """Make the check of an integer from ``low`` to ``high``; neither a bool nor ``1.0``."""

    def check(value: object, where: str) -> None:
        if type(value) is not int or not low <= value <= high:
            raise expected(where, f"an integer from {low} to {high}", value)

    return check


def one_of(*values: object) -> Check:
    """Make the check of one of these values."""

    def check(value: object, where: str) -> None:
        if not any(type(value) is type(v) and value == v for v in values):
            raise expected(where, "one of " + ", ".join(json.dumps(v) for v in values), value)

    return check


def text(pattern: str = ".*", what: str = "a text") -> Check:
    """Make the check of a text that ``pattern`` matches, all of it."""
    compiled = re.compile(pattern, re.S)

    def check(value: object, where: str) -> None:
        if not isinstance(value, str) or not compiled.fullmatch(value):
            raise expected(where, what, value)

    return check


def nullable(inner: Check) -> Check:
    """Make the check of ``null``, or of what ``inner`` takes."""
    return lambda value, where: None if value is None else inner(value, where)


def list_of(inner: Check, length: int | None = None) -> Check:
    """Make the check of a list, each entry of which ``inner`` takes."""

    def check(value: object, where: str) -> None:
        if not isinstance(value, list):
            raise expected(where, "a list", value)
        entries = cast("list[object]", value)
        if length is not None and len(entries) != length:
            raise expected(where, f"a list of {length}", entries)
        for i, entry in enumerate(entries):
            inner(entry, f"{where}[{i}]")

    return check


def row(*columns: Check) -> Check:
    """Make the check of a list with one entry a column."""

    def check(value: object, where: str) -> None:
        if not isinstance(value, list) or len(cast("list[object]", value)) != len(columns):
            raise expected(where, f"a list of {len(columns)}", cast(object, value))
        for i, (column, entry) in enumerate(zip(columns, cast("list[object]", value))):
            column(entry, f"{where}[{i}]")

    return check


def map_of(key: Check, inner: Check) -> Check:
    """Make the check of an object with any names that ``key`` takes."""

    def check(value: object, where: str) -> None:
        if not isinstance(value, dict):
            raise expected(where, "an object", value)
        for name, entry in cast("dict[str, object]", value).items():
            key(name, f"a name in {where}")
            inner(entry, f"{where}[{json.dumps(name)}]")

    return check


def record(fields: Mapping[str, Check], optional: Mapping[str, Check] | None = None) -> Check:
    """Make the check of an object with these fields, each once, and no others; those of ``optional`` may be missing."""
    all_fields = {**fields, **(optional or {})}

    def check(value: object, where: str) -> None:
        dot = f"{where}." if where else ""
        if not isinstance(value, dict):
            raise expected(where or "the file", "an object", value)
        given = cast("dict[str, object]", value)
        for name in fields:
            if name not in given:
                raise SchemaError(f"{dot}{name}: expected this field, it is missing")
        for name, entry in given.items():
            if name not in all_fields:
                raise SchemaError(f"{dot}{name}: unknown field (known: {', '.join(all_fields)})")
            all_fields[name](entry, f"{dot}{name}")

    return check
