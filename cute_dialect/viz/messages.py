"""Drawings of the layouts in an error message, written if ``CUTE_ERROR_SVG=DIR`` is set."""

from __future__ import annotations

import os
import re
from dataclasses import replace
from hashlib import sha256

from cute_dialect.algebra.leaf import AlgebraError
from cute_dialect.algebra.text import parse_composed_layout
from cute_dialect.viz.cells import Panel
from cute_dialect.viz.errors import DrawingError
from cute_dialect.viz.layouts import draw_layout
from cute_dialect.viz.panels import beside

MOST = 4
"""Maximum number of layouts drawn per message."""

FEW = 1 << 12
"""Maximum number of cells per layout."""

_SWIZZLED = r"S<\d+,\d+,-?\d+> o [\d?(){}=div,]+ o "
_CANDIDATE = re.compile(rf"(?:{_SWIZZLED})?[\d?(][\d?(),{{}}=div]*:[\d?(-][\d?(),{{}}=div@-]*")


def layouts_in(text: str) -> list[str]:
    """Return the layouts in a message as text, without duplicates.

    >>> layouts_in("zipped_divide((4,8):(8,1), 3): 3 does not divide ((2,2),8):((1,2),4)")
    ['(4,8):(8,1)', '((2,2),8):((1,2),4)']
    """
    found: list[str] = []
    for m in _CANDIDATE.finditer(text):
        layout = _trimmed(m[0])
        if layout and layout not in found:
            found.append(layout)
    return found


def _trimmed(text: str) -> str:
    """Return the longest layout in a piece of text, without parentheses that belong to the sentence."""
    for start in range(min(4, len(text))):
        for end in range(len(text), max(start, len(text) - 6), -1):
            try:
                parse_composed_layout(text[start:end])
            except AlgebraError:
                continue
            return text[start:end]
    return ""


def draw_message(text: str, folder: str) -> str:
    """Draw the layouts in a message to a file in ``folder``. Returns its path, "" if there is nothing to draw."""
    panels: list[Panel] = []
    names: list[str] = []
    for layout in layouts_in(text):
        try:
            first = draw_layout(layout).panels[0]
        except DrawingError:
            continue
        if first.rows * first.columns <= FEW and len(panels) < MOST:
            panels.append(replace(first, title=layout))
            names.append(layout)
    if not panels:
        return ""
    path = os.path.join(folder, f"layouts-{sha256(' '.join(names).encode()).hexdigest()[:10]}.svg")
    if not os.path.exists(path):
        beside("layouts of an error", panels).save(path)
    return path
