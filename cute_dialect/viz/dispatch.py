"""``draw`` selects the drawing from the type of its argument; ``draw_message`` draws the layouts in a message."""

from __future__ import annotations

import os
import re
from dataclasses import replace
from hashlib import sha256
from typing import Any

from cute_dialect.algebra.leaf import AlgebraError
from cute_dialect.algebra.text import parse_composed_layout
from cute_dialect.arch.errors import AtomError
from cute_dialect.viz.cells import DrawingError, Panel
from cute_dialect.viz.drawing import Drawing, Path
from cute_dialect.viz.layouts import draw_layout, draw_swizzle
from cute_dialect.viz.panels import beside
from cute_dialect.viz.subjects import Sizes, swizzle_given
from cute_dialect.viz.threads import copy_parts, draw_copy, draw_mma, draw_tv, is_copy, is_mma, tile_of
from cute_dialect.viz.timeline import draw_timeline, is_run
from cute_dialect.viz.tma import draw_tma, is_tma


def draw(x: Any, *, sizes: Sizes = None, file: Path | None = None) -> Drawing:
    """Draw a layout, tensor, swizzle, tiled copy, tiled MMA, TMA atom, atom of the table, or run.

    Args:
        x: The object, or text: a layout, a swizzle, or the name of an atom.
        sizes: Numbers for the dynamic extents and strides of a layout, by name or in order.
        file: Path to which the drawing is written.

    >>> draw("SM80_16x8x16_F32F16F16F32_TN").title
    'SM80_16x8x16_F32F16F16F32_TN'
    """
    if isinstance(x, str) and x.startswith(("SM", "Universal")):
        x = _atom(x)
    if swizzle_given(x) is not None:
        made = draw_swizzle(x)
    elif is_run(x):
        made = draw_timeline(x)
    elif is_tma(x):
        made = draw_tma(x)
    elif is_mma(x):
        made = draw_mma(x)
    elif is_copy(x):
        made = draw_copy(x)
    else:
        return draw_layout(x, sizes=sizes, file=file)
    if sizes:
        raise DrawingError(f"sizes= is not allowed, because {made.title} is static")
    return made.saved(file)


def _atom(name: str) -> object:
    from cute_dialect.arch.table import ATOMS  # late: start-up

    try:
        return ATOMS[name]
    except AtomError as e:
        raise DrawingError(str(e)) from None


def print_latex(x: Any, *, sizes: Sizes = None) -> None:
    """Print a LaTeX document of the drawing of ``x``, like CUTLASS's functions of that name."""
    print(draw(x, sizes=sizes).latex, end="")


def render_layout_svg(layout: Any, output_file: Path | None = None) -> Drawing:
    """Call :func:`draw_layout`."""
    return draw_layout(layout, file=output_file)


def render_swizzle_layout_svg(layout: Any, output_file: Path | None = None) -> Drawing:
    """Call :func:`draw_swizzle`."""
    return draw_swizzle(layout, file=output_file)


def render_tv_layout_svg(layout: Any, tile_mn: Any, output_file: Path | None = None) -> Drawing:
    """Call :func:`draw_tv`."""
    return draw_tv(layout, tile_mn, file=output_file)


def render_copy_layout_svg(layout_s: Any, layout_d: Any, tile_mn: Any, output_file: Path | None = None) -> Drawing:
    """Draw the thread-value layouts of both sides of a copy, each as :func:`draw_tv` does."""
    sides = [draw_tv(layout, tile_mn).panels[0] for layout in (layout_s, layout_d)]
    panels = [replace(p, title=t) for p, t in zip(sides, ("source", "destination"))]
    m, n = tile_of(tile_mn)
    return beside(f"copy of {m} x {n}", panels).saved(output_file)


def render_tiled_copy_svg(tiled_copy: Any, tile_mn: Any = None, output_file: Path | None = None) -> Drawing:
    """Call :func:`draw_copy`. ``tile_mn`` must be the copy's own tile."""
    _own_tile(tile_mn, copy_parts(tiled_copy).tile)
    return draw_copy(tiled_copy, file=output_file)


def render_tiled_mma_svg(tiled_mma: Any, tile_mnk: Any = None, output_file: Path | None = None) -> Drawing:
    """Call :func:`draw_mma`. ``tile_mnk`` must be the MMA's own tile."""
    _own_tile(tile_mnk, getattr(tiled_mma, "tile_shape_mnk", None))
    return draw_mma(tiled_mma, file=output_file)


def _own_tile(given: Any, own: Any) -> None:
    if given is not None and own is not None and tuple(given) != tuple(own):
        raise DrawingError(f"the tile must be {tuple(own)}, which all threads cover at once, got {tuple(given)}")


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
