"""Declarations of upstream MLIR, one generated module per dialect (see `tools/upstream_tables.py`)."""

from importlib import import_module
from importlib.util import find_spec
from typing import Protocol, cast

OpRow = tuple[str, str, str, str, str, str | None]
"""Row of an op: name without dialect, operands, results, attributes, traits and type rules, assembly format.

The format is "custom" if upstream parses the op in C++, and None if there is only the generic form.
"""


class Table(Protocol):
    """One module of this package."""

    OPS: tuple[OpRow, ...]
    ATTRS: tuple[tuple[str, str, str], ...]
    ENUMS: dict[str, str]
    CONSTRAINTS: tuple[str, ...]


def table(dialect: str) -> Table:
    """Import the table of `dialect`."""
    return cast("Table", import_module(f"cute_dialect.upstream.tables.{dialect}"))


def has_table(dialect: str) -> bool:
    """Return True if there is a table for `dialect`."""
    return find_spec(f"cute_dialect.upstream.tables.{dialect}") is not None
