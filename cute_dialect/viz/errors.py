"""The error of drawings."""

from __future__ import annotations

from cute_dialect.errors import CuteError


class DrawingError(CuteError, ValueError):
    """The object cannot be drawn. The message names the problem and the accepted input."""
