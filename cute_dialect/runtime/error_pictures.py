"""Pictures beside errors: the layouts that a message names, drawn into the folder that ``CUTE_ERROR_SVG`` names."""

from __future__ import annotations

import os

from cute_dialect.runtime.settings import SettingError, folder

__all__ = ["error_picture"]


def error_picture(message: str) -> str:
    """Draw the layouts of a message; return what names the file, "" where none is asked for or there are none.

    An error stays what it is, whatever happens here: what goes wrong is the sentence.
    """
    try:
        into = folder("CUTE_ERROR_SVG")
        if into is None:
            return ""
        from cute_dialect.viz.messages import draw_message

        os.makedirs(into, exist_ok=True)
        path = draw_message(message, into)
    except SettingError as e:
        return str(e)
    except OSError as e:
        return f"CUTE_ERROR_SVG: {e.strerror}: '{e.filename}'"
    return f"drawn in {path}" if path else ""
