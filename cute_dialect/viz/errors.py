"""The error of drawings."""

from __future__ import annotations

from cute_dialect.errors import CuteError

__all__ = ["DrawingError"]


class DrawingError(CuteError, ValueError):
    """What was given cannot be drawn; the message says what was expected, and what to give instead."""
