"""Functions with the names and parameter order of cute-viz."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from cute_dialect.viz.drawing import Drawing, Path
from cute_dialect.viz.errors import DrawingError
from cute_dialect.viz.layouts import draw_layout, draw_swizzle
from cute_dialect.viz.panels import beside
from cute_dialect.viz.threads import copy_parts, draw_copy, draw_mma, draw_tv, tile_of

__all__ = [
    "render_copy_layout_svg",
    "render_layout_svg",
    "render_swizzle_layout_svg",
    "render_tiled_copy_svg",
    "render_tiled_mma_svg",
    "render_tv_layout_svg",
]


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
