"""``draw`` selects the drawing from the type of its argument."""

from __future__ import annotations

from typing import Any

from cute_dialect.arch.errors import AtomError
from cute_dialect.viz.drawing import Drawing, Path
from cute_dialect.viz.errors import DrawingError
from cute_dialect.viz.layouts import draw_layout, draw_swizzle
from cute_dialect.viz.subjects import Sizes, swizzle_given
from cute_dialect.viz.threads import draw_copy, draw_mma, is_copy, is_mma
from cute_dialect.viz.timeline import draw_timeline, is_run
from cute_dialect.viz.tma import draw_tma, is_tma

__all__ = ["draw", "print_latex"]


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
