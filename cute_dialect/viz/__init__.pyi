# ruff: noqa: I001 (sorting would make a statement of each name)
"""The public names of drawings: each from the module that defines it."""

from cute_dialect.viz.dispatch import (
    render_copy_layout_svg as render_copy_layout_svg,
    render_layout_svg as render_layout_svg,
    render_swizzle_layout_svg as render_swizzle_layout_svg,
    render_tiled_copy_svg as render_tiled_copy_svg,
    render_tiled_mma_svg as render_tiled_mma_svg,
    render_tv_layout_svg as render_tv_layout_svg,
)
from cute_dialect.viz.banks import (
    draw_banks as draw_banks,
)
from cute_dialect.viz.dispatch import (
    draw as draw,
    print_latex as print_latex,
)
from cute_dialect.viz.drawing import (
    Drawing as Drawing,
)
from cute_dialect.viz.cells import (
    DrawingError as DrawingError,
)
from cute_dialect.viz.layouts import (
    draw_divide as draw_divide,
    draw_layout as draw_layout,
    draw_swizzle as draw_swizzle,
)
from cute_dialect.viz.threads import (
    draw_copy as draw_copy,
    draw_mma as draw_mma,
    draw_tv as draw_tv,
)
from cute_dialect.viz.timeline import (
    draw_timeline as draw_timeline,
)
from cute_dialect.viz.tma import (
    draw_tma as draw_tma,
)

render_mma_layout_svg = render_tiled_mma_svg
display_layout = render_layout_svg
display_swizzle_layout = render_swizzle_layout_svg
display_tv_layout = render_tv_layout_svg
display_copy_layout = render_copy_layout_svg
display_tiled_copy = render_tiled_copy_svg
display_tiled_mma = render_tiled_mma_svg
display_mma_layout = render_tiled_mma_svg
