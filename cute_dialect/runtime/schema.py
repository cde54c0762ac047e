"""Validators for plain data read from a file, with errors that name the field.

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
"""Checks a value; the second argument is the name of its field.  Raises :class:`SchemaError`."""


class SchemaError(Exception):
    """A field has an invalid value.  The message names the field, the expected and the actual value."""


def expected(where: str, what: str, got: object) -> SchemaError:
    """Build the error for a field with a wrong value."""
    try:
        shown = json.dumps(got)
    except (TypeError, ValueError, RecursionError):
        shown = type(got).__name__
    return SchemaError(f"{where}: expected {what}, got {shown if len(shown) <= 80 else shown[:77] + '...'}")


def integer(low: int, high: int) -> Check:
    """Accept an integer from ``low`` to ``high``, but neither a bool nor ``1.0``."""

    def check(value: object, where: str) -> None:
        if type(value) is not int or not low <= value <= high:
            raise expected(where, f"an integer from {low} to {high}", value)

    return check


def one_of(*values: object) -> Check:
    """Accept one of these values."""

    def check(value: object, where: str) -> None:
        if not any(type(value) is type(v) and value == v for v in values):
            raise expected(where, "one of " + ", ".join(json.dumps(v) for v in values), value)

    return check


def text(pattern: str = ".*", what: str = "a text") -> Check:
    """Accept a string that ``pattern`` matches in full."""
    compiled = re.compile(pattern, re.S)

    def check(value: object, where: str) -> None:
        if not isinstance(value, str) or not compiled.fullmatch(value):
            raise expected(where, what, value)

    return check


def nullable(inner: Check) -> Check:
    """Accept ``null`` and the values that ``inner`` accepts."""
    return lambda value, where: None if value is None else inner(value, where)


def list_of(inner: Check, length: int | None = None) -> Check:
    """Accept a list whose entries ``inner`` accepts."""

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
    """Accept a list with one entry per column."""

    def check(value: object, where: str) -> None:
        if not isinstance(value, list) or len(cast("list[object]", value)) != len(columns):
            raise expected(where, f"a list of {len(columns)}", cast(object, value))
        for i, (column, entry) in enumerate(zip(columns, cast("list[object]", value))):
            column(entry, f"{where}[{i}]")

    return check


def map_of(key: Check, inner: Check) -> Check:
    """Accept an object with any field names that ``key`` accepts."""

    def check(value: object, where: str) -> None:
        if not isinstance(value, dict):
            raise expected(where, "an object", value)
        for name, entry in cast("dict[str, object]", value).items():
            key(name, f"a name in {where}")
            inner(entry, f"{where}[{json.dumps(name)}]")

    return check


def record(fields: Mapping[str, Check], optional: Mapping[str, Check] | None = None) -> Check:
    """Accept an object with these fields and no others; fields of ``optional`` may be missing."""
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
