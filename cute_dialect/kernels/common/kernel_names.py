"""Kernel names: words for the fields of a configuration that differ from their defaults.

A configuration has a table of its fields, in the order of the words. A word is a format string for the value:

>>> class Config(NamedTuple):
...     tile: tuple[int, int] = (64, 64)
...     ahead: int = 2
...     rolled: bool = False
>>> WORDS = {"rolled": "r", "ahead": "a{}"}
>>> c = Config((32, 8), rolled=True, ahead=3)
>>> f"example-{by(c.tile)}{differing(c, WORDS)}"
'example-32x8ra3'
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple


def by(extents: Iterable[int]) -> str:
    """Return extents as in ``128x64``."""
    return "x".join(map(str, extents))


def differing(config: NamedTuple, words: Mapping[str, str], **plain: object) -> str:
    """Return the words of the fields that differ from their defaults, or from the values in ``plain``."""
    usual = config._field_defaults | plain
    values = {field: getattr(config, field) for field in words}
    return "".join([word.format(values[field]) for field, word in words.items() if values[field] != usual[field]])
