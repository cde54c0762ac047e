"""``cute.math``: functions of numbers and vectors."""

from __future__ import annotations

from cute_dialect.lang.values.math import *  # noqa: F403
from cute_dialect.lang.values.math import __all__ as __all__


def __dir__() -> list[str]:
    return sorted(__all__)
