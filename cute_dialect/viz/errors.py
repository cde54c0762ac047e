"""The error of drawings."""

from __future__ import annotations

from cute_dialect.errors import CuteError

__all__ = ["DrawingError"]


class DrawingError(CuteError, ValueError):
    """The object cannot be drawn. The message names the problem and the accepted input."""
