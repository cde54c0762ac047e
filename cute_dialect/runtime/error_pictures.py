"""Drawings of the layouts named in error messages, written to the folder ``CUTE_ERROR_SVG``."""

from __future__ import annotations

import os

from cute_dialect.runtime.settings import SettingError, folder

__all__ = ["error_picture"]


def error_picture(message: str) -> str:
    """Draw the layouts named in a message and return a note with the path of the file.

    Return "" if drawings are off or the message names no layout.  A failure to draw is returned as text, so that it
    does not hide the original error.
    """
    try:
        into = folder("CUTE_ERROR_SVG")
        if into is None:
            return ""
        from cute_dialect.viz.messages import draw_message  # late: start-up

        os.makedirs(into, exist_ok=True)
        path = draw_message(message, into)
    except SettingError as e:
        return str(e)
    except OSError as e:
        return f"CUTE_ERROR_SVG: {e.strerror}: '{e.filename}'"
    return f"drawn in {path}" if path else ""
