"""The error of drawings."""

from __future__ import annotations

__all__ = ["DrawingError"]


class DrawingError(ValueError):
    """What was given cannot be drawn; the message says what was expected, and what to give instead."""
